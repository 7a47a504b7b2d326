//! Numbers, letters and dates, spoken from the sound files that the field's prompt sets have.
//!
//! The words stand in English order; a channel of another language hears that language's files in it.

use base::Digit;
use call::{Heard, Level, Stop};
use dialplan::zone::Civil;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

/// Most files one application plays: a sentence; bounds what text from the network can make it do.
const FILES_MAX: usize = 512;

/// Digits that end saying when the caller may interrupt.
const ANY_DIGIT: &str = "0123456789*#ABCD";

/// How SayUnixTime says a moment when nobody tells it.
pub(crate) const DATE_FORMAT: &str = "ABdY 'digits/at' IMp";

pub(crate) const ROWS: &[AppRow] = rows! {
    "SayDigits" "app_sayunixtime" Run::Story(|call, text| say(call, digits(&text))),
        "Says digits one by one.", "SayDigits(digits)",
        "Says digits, '*', '#' and '-' one by one. While SAY_DTMF_INTERRUPT is true a digit ends it and begins an extension.";
    "SayNumber" "app_sayunixtime" Run::Story(say_number),
        "Says a number.", "SayNumber(number[,gender])",
        "Says a whole number. The gender (f, m, c, n) is taken; English has none.";
    "SayOrdinal" "app_sayunixtime" Run::Story(say_ordinal),
        "Says a number as first, second, third.", "SayOrdinal(number[,gender])", "Says first, second, third and so on.";
    "SayAlpha" "app_sayunixtime" Run::Story(|call, text| say(call, spelled(&text))),
        "Spells a text.", "SayAlpha(string)", "Spells text letter by letter.";
    "SayPhonetic" "app_sayunixtime" Run::Story(|call, text| say(call, phonetic(&text))),
        "Spells a text in the phonetic alphabet.", "SayPhonetic(string)", "Spells text in the spelling alphabet.";
    "SayUnixTime" "app_sayunixtime" Run::Story(say_unix_time),
        "Says a date and time.", "SayUnixTime([unixtime[,timezone[,format[,options]]]])",
        "Says a moment (without unixtime the present one). In the format A or a is the weekday, B b h the month, d e the\n\
         day, Y the year, I l the hour of twelve, H k of twenty-four, M the minute, S the second, p P the half of the\n\
         day, Q today, yesterday or the date, R H:M, T H:M:S, and 'name' a file.\n\n\
         options:\n  j  a digit ends it and begins an extension.";
    "DateTime" "app_sayunixtime" Run::Story(say_unix_time),
        "Says a date and time.", "DateTime([unixtime[,timezone[,format]]])", "As SayUnixTime.";
};

/// Plays files one after the other. `Some`: a digit interrupted them.
pub(crate) async fn play_all(call: &Call, files: Vec<String>, stop_on: &str) -> Result<Option<Digit>, Stop> {
    for file in files.into_iter().take(FILES_MAX) {
        if let Heard::Interrupted(digit, _) = call.chan.play(&file, stop_on).await? {
            return Ok(Some(digit));
        }
    }
    Ok(None)
}

fn say(call: Call, files: Vec<String>) -> AppFuture {
    Box::pin(async move {
        let interruptible = call.get("SAY_DTMF_INTERRUPT").is_some_and(|value| is_yes(&value));
        speak(&call, files, interruptible).await
    })
}

async fn speak(call: &Call, files: Vec<String>, interruptible: bool) -> Outcome {
    let stop_on = if interruptible { ANY_DIGIT } else { "" };
    Ok(play_all(call, files, stop_on).await?.map_or(Flow::Continue, Flow::Digit))
}

/// Whether text means yes, as dialplans write it.
pub(crate) fn is_yes(text: &str) -> bool {
    ["yes", "true", "y", "t", "1", "on"].iter().any(|word| word.eq_ignore_ascii_case(text.trim()))
}

fn say_number(call: Call, text: String) -> AppFuture {
    numbered(call, text, "SayNumber", number)
}

fn say_ordinal(call: Call, text: String) -> AppFuture {
    numbered(call, text, "SayOrdinal", ordinal)
}

fn numbered(call: Call, text: String, app: &'static str, spell: fn(i64) -> Vec<String>) -> AppFuture {
    let parts = args::split(&text);
    match args::nth(&parts, 0).parse::<i64>() {
        Ok(value) if value.unsigned_abs() <= u64::from(u32::MAX) => say(call, spell(value)),
        _ => Box::pin(async move {
            call.log(Level::Warning, &format!("argument '{text}' to {app} is no number that can be said"));
            Ok(Flow::Continue)
        }),
    }
}

/// Files for digits, one by one. What has no file is passed over.
pub(crate) fn digits(text: &str) -> Vec<String> {
    let file = |c: char| match c {
        '0'..='9' => Some(format!("digits/{c}")),
        '*' => Some("digits/star".to_owned()),
        '#' => Some("digits/pound".to_owned()),
        '-' => Some("digits/minus".to_owned()),
        _ => None,
    };
    text.chars().filter_map(file).collect()
}

/// Files for a whole number.
pub(crate) fn number(value: i64) -> Vec<String> {
    let mut files = Vec::new();
    if value < 0 {
        files.push("digits/minus".to_owned());
    }
    cardinal(value.unsigned_abs(), &mut files);
    files
}

fn cardinal(value: u64, files: &mut Vec<String>) {
    for (unit, name) in [
        (1_000_000_000, "digits/billion"),
        (1_000_000, "digits/million"),
        (1_000, "digits/thousand"),
        (100, "digits/hundred"),
    ] {
        if value >= unit {
            cardinal(value / unit, files);
            files.push(name.to_owned());
            if !value.is_multiple_of(unit) {
                cardinal(value % unit, files);
            }
            return;
        }
    }
    match value {
        0..=20 => files.push(format!("digits/{value}")),
        _ => {
            files.push(format!("digits/{}", value / 10 * 10));
            if !value.is_multiple_of(10) {
                files.push(format!("digits/{}", value % 10));
            }
        }
    }
}

/// Files for first, second, and so on: the last word of the number becomes its ordinal.
pub(crate) fn ordinal(value: i64) -> Vec<String> {
    let mut files = number(value);
    if let Some(last) = files.last_mut() {
        *last = last.replacen("digits/", "digits/h-", 1);
    }
    files
}

/// Files that spell text.
pub(crate) fn spelled(text: &str) -> Vec<String> {
    letters(text, "letters/", "")
}

/// Files that spell text in the phonetic alphabet.
pub(crate) fn phonetic(text: &str) -> Vec<String> {
    letters(text, "phonetic/", "_p")
}

/// Files that spell text; letters lie under `folder` with `suffix`.
fn letters(text: &str, folder: &str, suffix: &str) -> Vec<String> {
    let file = |c: char| {
        let c = c.to_ascii_lowercase();
        let named = match c {
            'a'..='z' => return Some(format!("{folder}{c}{suffix}")),
            '0'..='9' => return Some(format!("digits/{c}")),
            '!' => "exclaimation-point",
            '@' => "at",
            '$' => "dollar",
            '*' => "asterisk",
            '#' => "number",
            '+' => "plus",
            '-' => "dash",
            '=' => "equals",
            '/' => "slash",
            '.' => "dot",
            ' ' => "space",
            _ => return None,
        };
        Some(format!("letters/{named}"))
    };
    text.chars().filter_map(file).collect()
}

fn say_unix_time(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        call.answer_for_sound().await?;
        let parts = args::split(&text);
        let now = call.chan.core(|core| core.services.wall.now_micros()).div_euclid(1_000_000);
        let at = args::nth(&parts, 0).parse::<f64>().map_or(now, |seconds| seconds as i64);
        let format = args::nth(&parts, 2);
        let format = if format.is_empty() { DATE_FORMAT } else { format };
        let zone = args::nth(&parts, 1);
        let (then, today) = call.chan.core(|core| {
            let civil = |at: i64| Civil::at(at, core.services.wall.offset(at, zone).seconds);
            (civil(at), civil(now))
        });
        let interruptible = args::nth(&parts, 3).contains('j');
        speak(&call, moment(then, today, format), interruptible).await
    })
}

/// Files for a moment in a format.
pub(crate) fn moment(then: Civil, today: Civil, format: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let name: String = letters.by_ref().take_while(|c| *c != '\'').collect();
                files.push(name);
            }
            'A' | 'a' => files.push(format!("digits/day-{}", then.weekday)),
            'B' | 'b' | 'h' => files.push(format!("digits/mon-{}", then.month.saturating_sub(1))),
            'd' | 'e' => files.extend(ordinal(i64::from(then.day))),
            'm' => files.extend(ordinal(i64::from(then.month))),
            'Y' => year(then.year, &mut files),
            'I' | 'l' => files.push(format!("digits/{}", twelve(then.hour))),
            'H' | 'k' => {
                if letter == 'H' && then.hour < 10 {
                    files.push("digits/oh".to_owned());
                }
                files.extend(number(i64::from(then.hour)));
            }
            'M' => minute(then.minute, &mut files),
            'S' => files.extend(number(i64::from(then.second))),
            'P' | 'p' => files.push(if then.hour < 12 { "digits/a-m" } else { "digits/p-m" }.to_owned()),
            'Q' | 'q' => relative(then, today, letter == 'q', &mut files),
            'R' => files.extend(moment(then, today, "HM")),
            'T' => files.extend(moment(then, today, "HMS")),
            _ => {}
        }
    }
    files
}

fn twelve(hour: u32) -> u32 {
    match hour % 12 {
        0 => 12,
        other => other,
    }
}

fn minute(minute: u32, files: &mut Vec<String>) {
    match minute {
        0 => files.push("digits/oclock".to_owned()),
        1..=9 => files.extend(["digits/oh".to_owned(), format!("digits/{minute}")]),
        _ => files.extend(number(i64::from(minute))),
    }
}

/// 1999 is nineteen ninety-nine, 2026 two thousand twenty-six.
fn year(year: i64, files: &mut Vec<String>) {
    let (century, rest) = (year.div_euclid(100), year.rem_euclid(100));
    if !(1100..2000).contains(&year) {
        files.extend(number(year));
        return;
    }
    files.extend(number(century));
    match rest {
        0 => files.push("digits/hundred".to_owned()),
        1..=9 => files.extend(["digits/oh".to_owned(), format!("digits/{rest}")]),
        _ => files.extend(number(rest)),
    }
}

/// Today (`q` says nothing then), yesterday, a weekday within a week, else the date.
fn relative(then: Civil, today: Civil, quiet: bool, files: &mut Vec<String>) {
    let ordinal_day = |c: Civil| c.year * 366 + i64::from(c.yearday);
    match ordinal_day(today) - ordinal_day(then) {
        0 if quiet => {}
        0 => files.push("digits/today".to_owned()),
        1 => files.push("digits/yesterday".to_owned()),
        2..=6 => files.push(format!("digits/day-{}", then.weekday)),
        _ => files.extend(moment(then, today, "ABdY")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_english_order() {
        for (value, expected) in [
            (0, "0"),
            (7, "7"),
            (20, "20"),
            (42, "40 2"),
            (100, "1 hundred"),
            (115, "1 hundred 15"),
            (-3, "minus 3"),
            (2_000, "2 thousand"),
            (12_345, "12 thousand 3 hundred 40 5"),
            (1_000_001, "1 million 1"),
            (3_000_000_000, "3 billion"),
        ] {
            let expected: Vec<String> = expected.split(' ').map(|word| format!("digits/{word}")).collect();
            assert_eq!(number(value), expected, "{value}");
        }
        assert_eq!(ordinal(21), ["digits/20", "digits/h-1"]);
    }

    #[test]
    fn the_default_date_format_says_weekday_month_day_year_and_time() {
        // Saturday 2026-11-21 22:05:09 UTC.
        let then = Civil::at(1_795_298_709, 0);
        let files = moment(then, then, DATE_FORMAT);
        let expected = "day-6 mon-10 20 h-1 2 thousand 20 6 at 10 oh 5 p-m";
        let expected: Vec<String> = expected.split(' ').map(|word| format!("digits/{word}")).collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn dates_near_today_are_said_by_name() {
        let today = Civil::at(1_795_298_709, 0);
        for (days, expected) in [(0, "digits/today"), (1, "digits/yesterday"), (3, "digits/day-3")] {
            let then = Civil::at(1_795_298_709 - days * 86_400, 0);
            assert_eq!(moment(then, today, "Q"), [expected], "{days} days ago");
        }
        assert!(moment(today, today, "q").is_empty());
    }

    #[test]
    fn letters_and_marks_have_files_and_others_are_passed_over() {
        assert_eq!(letters("A1-", "letters/", ""), ["letters/a", "digits/1", "letters/dash"]);
        assert_eq!(letters("b", "phonetic/", "_p"), ["phonetic/b_p"]);
        assert_eq!(digits("1*#x"), ["digits/1", "digits/star", "digits/pound"]);
    }
}
