//! Numbers, letters, dates and money, spoken from the sound files that the field's prompt sets have.
//!
//! Which files, and in which order, is pure: `number` and `moment` know the languages. Here are the applications, and what
//! becomes of a language whose files are not all there.

mod counted;
mod moment;
mod number;
#[cfg(test)]
mod tests;
mod tongue;

use base::Digit;
use call::{Chan, Heard, Level, Stop};
use dialplan::zone::Civil;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

pub(crate) use moment::{date_format, default_format, moment, time_format};
pub(crate) use number::{NUMBER_MAX, number, ordinal};
pub(crate) use tongue::{Gender, Tongue};

/// Most files one application plays: a sentence; bounds what text from the network can make it do.
const FILES_MAX: usize = 512;

/// Digits that end saying when the caller may interrupt.
const ANY_DIGIT: &str = "0123456789*#ABCD";

pub(crate) const ROWS: &[AppRow] = rows! {
    "SayDigits" "pbx_builtins" Run::Story(|call, text| say(call, digits(&text))),
        "Says digits one by one.", "SayDigits(digits)",
        "Says digits, '*', '#' and '-' one by one. While SAY_DTMF_INTERRUPT is true a digit ends it and begins an extension.";
    "SayNumber" "pbx_builtins" Run::Story(|call, text| numbered(call, text, "SayNumber", number)),
        "Says a number.", "SayNumber(number[,gender])",
        "Says a whole number in the words of the channel's language. The gender (f, m, c, n) is that of what is counted,\n\
         where the language has one. Languages: da de en en_GB es fr it ja nl pl pt ru sv zh; others in English order.";
    "SayOrdinal" "pbx_builtins" Run::Story(|call, text| numbered(call, text, "SayOrdinal", ordinal)),
        "Says a number as first, second, third.", "SayOrdinal(number[,gender])",
        "Says first, second, third and so on in the words of the channel's language; the gender as in SayNumber.";
    "SayAlpha" "pbx_builtins" Run::Story(|call, text| say(call, spelled(&text))),
        "Spells a text.", "SayAlpha(string)", "Spells text letter by letter.";
    "SayAlphaCase" "pbx_builtins" Run::Story(say_alpha_case),
        "Spells a text and says which letters are capitals.", "SayAlphaCase(casetype,string)",
        "Spells text letter by letter with 'uppercase' or 'lowercase' before letters.\n\n\
         casetype:\n  a  before all letters.\n  l  before small ones.\n  u  before capitals.\n  n  before none.";
    "SayPhonetic" "pbx_builtins" Run::Story(|call, text| say(call, phonetic(&text))),
        "Spells a text in the phonetic alphabet.", "SayPhonetic(string)", "Spells text in the spelling alphabet.";
    "SayMoney" "pbx_builtins" Run::Story(say_money),
        "Says an amount of dollars.", "SayMoney(dollars)",
        "Says dollars and cents of an amount with a point (12.50). The words are English.";
    "SayCountedNoun" "app_saycounted" Run::Story(counted::say_noun),
        "Says the form of a noun that goes with a number.", "SayCountedNoun(number,filename)",
        "Plays filename for one and filename with 's' for many; in Russian and Polish with nothing, 'x1' (two, three, four)\n\
         or 'x2' (five). The number itself is not said.";
    "SayCountedAdj" "app_saycounted" Run::Story(counted::say_adjective),
        "Says the form of an adjective that goes with a number.", "SayCountedAdj(number,filename[,gender])",
        "Plays filename; in Russian and Polish with 'a' (f), 'o' (n) or nothing behind it for one, and 'x' for many.";
    "SayUnixTime" "app_sayunixtime" Run::Story(say_unix_time),
        "Says a date and time.", "SayUnixTime([unixtime[,timezone[,format[,options]]]])",
        "Says a moment (without unixtime the present one). In the format A or a is the weekday, B b h the month, d e the\n\
         day, m the month's number, Y the year, I l the hour of twelve, H k of twenty-four, M the minute, S the second, p P\n\
         the half of the day, Q today, yesterday or the date, q the same without today, R H:M, T H:M:S, and 'name' a file.\n\
         Without a format it is said as the channel's language does.\n\n\
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

/// The language of a channel, as far as its words are known.
pub(crate) fn tongue_of(chan: &Chan) -> Tongue {
    chan.with(|c| Tongue::of(&c.language)).unwrap_or_default()
}

/// What is to be said, in the words of the channel's language; in English order when one of its files is not there, which is
/// logged once.
pub(crate) async fn words(chan: &Chan, spell: impl Fn(Tongue) -> Vec<String>) -> Result<Vec<String>, Stop> {
    let tongue = tongue_of(chan);
    let files = spell(tongue);
    if tongue.is_english() {
        return Ok(files);
    }
    for file in files.iter().take(FILES_MAX) {
        if !chan.has_clip(file).await? {
            let language = chan.with(|c| c.language.clone())?;
            let text = format!("there is no {file} for language '{language}': it is said in English order");
            chan.log(Level::Warning, "say", &text);
            return Ok(spell(Tongue::English));
        }
    }
    Ok(files)
}

/// A number in the words of the channel's language.
pub(crate) async fn number_words(chan: &Chan, value: i64) -> Result<Vec<String>, Stop> {
    words(chan, |tongue| number(tongue, value, Gender::Plain)).await
}

fn say(call: Call, files: Vec<String>) -> AppFuture {
    Box::pin(async move { speak(&call, files, interruptible(&call)).await })
}

/// Whether the caller may interrupt what is said.
fn interruptible(call: &Call) -> bool {
    call.get("SAY_DTMF_INTERRUPT").is_some_and(|value| is_yes(&value))
}

async fn speak(call: &Call, files: Vec<String>, interruptible: bool) -> Outcome {
    let stop_on = if interruptible { ANY_DIGIT } else { "" };
    Ok(play_all(call, files, stop_on).await?.map_or(Flow::Continue, Flow::Digit))
}

/// Whether text means yes, as dialplans write it.
pub(crate) fn is_yes(text: &str) -> bool {
    conf::boolean(text.trim()) == Some(true)
}

/// A number that can be said.
pub(crate) fn sayable(text: &str) -> Option<i64> {
    text.trim().parse::<i64>().ok().filter(|value| value.unsigned_abs() <= NUMBER_MAX)
}

fn numbered(
    call: Call,
    text: String,
    app: &'static str,
    spell: fn(Tongue, i64, Gender) -> Vec<String>,
) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&text);
        let Some(value) = sayable(args::nth(&parts, 0)) else {
            call.log(Level::Warning, &format!("argument '{text}' to {app} is no number that can be said"));
            return Ok(Flow::Continue);
        };
        let gender = Gender::of(args::nth(&parts, 1));
        let files = words(&call.chan, |tongue| spell(tongue, value, gender)).await?;
        speak(&call, files, interruptible(&call)).await
    })
}

fn say_alpha_case(call: Call, text: String) -> AppFuture {
    let (kind, spelt) = text.split_once(',').unwrap_or((&text, ""));
    match with_case(kind.trim(), spelt) {
        Some(files) => say(call, files),
        None => {
            let text = format!("SayAlphaCase has no casetype '{}': a, l, n or u", kind.trim());
            call.log(Level::Warning, &text);
            Box::pin(async { Ok(Flow::Continue) })
        }
    }
}

/// Files that spell text and say which letters are capitals; `None`: there is no such kind.
fn with_case(kind: &str, text: &str) -> Option<Vec<String>> {
    let (small, capital) = match kind {
        "a" => (true, true),
        "l" => (true, false),
        "u" => (false, true),
        "n" => (false, false),
        _ => return None,
    };
    let mut files = Vec::new();
    for letter in text.chars() {
        match letter {
            'a'..='z' if small => files.push("lowercase".to_owned()),
            'A'..='Z' if capital => files.push("uppercase".to_owned()),
            _ => {}
        }
        files.extend(spelled(letter.encode_utf8(&mut [0; 4])));
    }
    Some(files)
}

fn say_money(call: Call, text: String) -> AppFuture {
    match money(text.trim()) {
        Some(files) => say(call, files),
        None => {
            call.log(Level::Warning, &format!("argument '{text}' to SayMoney is no amount of dollars"));
            Box::pin(async { Ok(Flow::Continue) })
        }
    }
}

/// Files for an amount of dollars and cents.
pub(crate) fn money(text: &str) -> Option<Vec<String>> {
    let (minus, amount) = text.strip_prefix('-').map_or((false, text), |amount| (true, amount));
    let amount = amount.strip_prefix('$').unwrap_or(amount);
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let dollars = if whole.is_empty() { 0 } else { sayable(whole)? };
    let cents: i64 = format!("{part:0<2}").get(..2)?.parse().ok()?;
    let mut files = Vec::new();
    if minus {
        files.push("digits/minus".to_owned());
    }
    if dollars > 0 {
        files.extend(number(Tongue::English, dollars, Gender::Plain));
        files.push(if dollars == 1 { "letters/dollar" } else { "dollars" }.to_owned());
        if cents > 0 {
            files.push("and".to_owned());
        }
    }
    if cents > 0 || dollars == 0 {
        files.extend(number(Tongue::English, cents, Gender::Plain));
        files.push(if cents == 1 { "cent" } else { "cents" }.to_owned());
    }
    Some(files)
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
        let zone = args::nth(&parts, 1);
        let format = args::nth(&parts, 2);
        let (then, today) = call.chan.core(|core| {
            let civil = |at: i64| Civil::at(at, core.services.wall.offset(at, zone).seconds);
            (civil(at), civil(now))
        });
        let files = moment_words(&call.chan, then, today, format).await?;
        speak(&call, files, args::nth(&parts, 3).contains('j')).await
    })
}

/// A moment in the words of the channel's language; an empty format is the language's own.
pub(crate) async fn moment_words(
    chan: &Chan,
    then: Civil,
    today: Civil,
    format: &str,
) -> Result<Vec<String>, Stop> {
    words(chan, |tongue| {
        let format = if format.is_empty() { default_format(tongue) } else { format };
        moment(tongue, then, today, format)
    })
    .await
}
