//! Dates and times in the letters of `SayUnixTime`, language by language.

use dialplan::zone::Civil;

use super::number::{number, ordinal};
use super::tongue::{Gender, Tongue};

/// How a language says the day of a month.
#[derive(Clone, Copy)]
enum Day {
    /// The twenty-first.
    Ordinal,
    /// Twenty-one.
    Number,
    /// The first, then two, three.
    FirstIsOrdinal,
}

/// How a language says a year.
#[derive(Clone, Copy)]
enum Year {
    /// Nineteen ninety-nine, nineteen oh five, two thousand twenty-six.
    Pairs,
    /// Nineteen hundred ninety-nine, two thousand twenty-six.
    Hundreds,
    /// As any number.
    Number,
    /// Two, zero, two, six.
    Digits,
}

/// How a language says a date and a time.
struct Manner {
    /// The format when nobody names one.
    format: &'static str,
    /// Its date, for days that are neither today nor yesterday.
    date: &'static str,
    day: Day,
    year: Year,
    /// Gender of hours and of minutes.
    hour: Gender,
    minute: Gender,
    /// What follows year, day, hour and minute; empty where nothing does.
    marks: [&'static str; 4],
}

const PLAIN: [&str; 4] = ["", "", "", ""];

fn manner(tongue: Tongue) -> Manner {
    use Gender::{Feminine, Neuter, Plain};
    let of = |format, date, day, year, hour, minute, marks| Manner {
        format,
        date,
        day,
        year,
        hour,
        minute,
        marks,
    };
    let oclock = ["", "", "digits/oclock", ""];
    match tongue {
        Tongue::English | Tongue::British => {
            of("ABdY 'digits/at' IMp", "ABdY", Day::Ordinal, Year::Pairs, Plain, Plain, PLAIN)
        }
        Tongue::Danish => of("A dBY HMS", "AdBY", Day::Ordinal, Year::Hundreds, Plain, Plain, PLAIN),
        Tongue::German => of("A dBY HMS", "AdBY", Day::Ordinal, Year::Hundreds, Neuter, Plain, oclock),
        Tongue::Dutch => of("AdBY 'digits/at' HM", "AdBY", Day::Number, Year::Number, Plain, Plain, oclock),
        Tongue::French => {
            of("AdBY 'digits/at' HM", "AdBY", Day::FirstIsOrdinal, Year::Number, Feminine, Feminine, oclock)
        }
        Tongue::Italian => {
            of("AdBY 'digits/at' HM", "AdBY", Day::FirstIsOrdinal, Year::Number, Plain, Plain, PLAIN)
        }
        Tongue::Spanish => of(
            "'digits/es-el' Ad 'digits/es-de' B 'digits/es-de' Y 'digits/at' IMp",
            "'digits/es-el' Ad 'digits/es-de' B 'digits/es-de' Y",
            Day::Number,
            Year::Number,
            Feminine,
            Plain,
            PLAIN,
        ),
        Tongue::Portuguese => of(
            "Ad 'digits/pt-de' B 'digits/pt-de' Y H 'digits/pt-e' M",
            "Ad 'digits/pt-de' B 'digits/pt-de' Y",
            Day::Number,
            Year::Number,
            Feminine,
            Plain,
            PLAIN,
        ),
        Tongue::Swedish => of("AdBY HM", "AdBY", Day::Ordinal, Year::Hundreds, Plain, Plain, PLAIN),
        Tongue::Polish => {
            of("AdBY 'digits/at' HM", "AdBY", Day::Ordinal, Year::Number, Feminine, Feminine, PLAIN)
        }
        Tongue::Russian => of("AdBY HM", "AdBY", Day::Ordinal, Year::Number, Plain, Feminine, PLAIN),
        Tongue::Japanese => of(
            "YBdAHM",
            "YBdA",
            Day::Number,
            Year::Number,
            Plain,
            Plain,
            ["digits/nen", "digits/nichi", "digits/ji", "digits/fun"],
        ),
        Tongue::Mandarin => of(
            "YBdAHM",
            "YBdA",
            Day::Number,
            Year::Digits,
            Plain,
            Plain,
            ["digits/year", "digits/day", "digits/oclock", "minute"],
        ),
    }
}

/// How a language says a date and a time when nobody names a format.
pub(crate) fn default_format(tongue: Tongue) -> &'static str {
    manner(tongue).format
}

/// How a language says a date.
pub(crate) fn date_format(tongue: Tongue) -> &'static str {
    manner(tongue).date
}

/// How a language says a time of day.
pub(crate) fn time_format(tongue: Tongue) -> &'static str {
    if tongue.is_english() { "IMp" } else { "HM" }
}

/// Files for a moment in a format.
pub(crate) fn moment(tongue: Tongue, then: Civil, today: Civil, format: &str) -> Vec<String> {
    let manner = manner(tongue);
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
            'd' | 'e' => day(tongue, &manner, then.day, &mut files),
            'm' => files.extend(ordinal(tongue, i64::from(then.month), Gender::Plain)),
            'Y' => year(tongue, &manner, then.year, &mut files),
            'I' | 'l' => hour(tongue, &manner, twelve(then.hour), false, &mut files),
            'H' | 'k' => hour(tongue, &manner, then.hour, letter == 'H', &mut files),
            'M' => minute(tongue, &manner, then.minute, &mut files),
            'S' => files.extend(number(tongue, i64::from(then.second), manner.minute)),
            'P' | 'p' => files.push(if then.hour < 12 { "digits/a-m" } else { "digits/p-m" }.to_owned()),
            'Q' | 'q' => relative(tongue, then, today, letter == 'q', &mut files),
            'R' => files.extend(moment(tongue, then, today, "HM")),
            'T' => files.extend(moment(tongue, then, today, "HMS")),
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

/// Appends a word that follows a number, where the language has one.
fn mark(mark: &str, files: &mut Vec<String>) {
    if !mark.is_empty() {
        files.push(mark.to_owned());
    }
}

fn day(tongue: Tongue, manner: &Manner, day: u32, files: &mut Vec<String>) {
    let day = i64::from(day);
    files.extend(match manner.day {
        Day::Ordinal => ordinal(tongue, day, Gender::Masculine),
        Day::FirstIsOrdinal if day == 1 => ordinal(tongue, day, Gender::Masculine),
        Day::Number | Day::FirstIsOrdinal => number(tongue, day, Gender::Plain),
    });
    mark(manner.marks[1], files);
}

fn hour(tongue: Tongue, manner: &Manner, hour: u32, two_digits: bool, files: &mut Vec<String>) {
    match (tongue, hour) {
        (Tongue::English | Tongue::British, ..10) if two_digits => {
            files.extend(["digits/oh".to_owned(), format!("digits/{hour}")]);
        }
        (Tongue::Italian, 0) => files.push("digits/ore-mezzanotte".to_owned()),
        (Tongue::Italian, 1) => files.push("digits/ore-una".to_owned()),
        // The hour is counted: the twenty-second.
        (Tongue::Polish, _) => files.extend(ordinal(tongue, i64::from(hour), manner.hour)),
        _ => files.extend(number(tongue, i64::from(hour), manner.hour)),
    }
    mark(manner.marks[2], files);
}

fn minute(tongue: Tongue, manner: &Manner, minute: u32, files: &mut Vec<String>) {
    match (tongue, minute) {
        (Tongue::English | Tongue::British, 0) => files.push("digits/oclock".to_owned()),
        (Tongue::English | Tongue::British, 1..=9) => {
            files.extend(["digits/oh".to_owned(), format!("digits/{minute}")]);
        }
        // Twenty-two, and nothing more.
        (Tongue::German | Tongue::French | Tongue::Dutch | Tongue::Spanish | Tongue::Italian, 0) => {}
        _ => {
            files.extend(number(tongue, i64::from(minute), manner.minute));
            mark(manner.marks[3], files);
        }
    }
}

fn year(tongue: Tongue, manner: &Manner, year: i64, files: &mut Vec<String>) {
    let say = |value| number(tongue, value, Gender::Plain);
    let (century, rest) = (year.div_euclid(100), year.rem_euclid(100));
    let in_hundreds = (1100..2000).contains(&year);
    match manner.year {
        Year::Pairs if in_hundreds => {
            files.extend(say(century));
            match rest {
                0 => files.push("digits/hundred".to_owned()),
                1..=9 => files.extend(["digits/oh".to_owned(), format!("digits/{rest}")]),
                _ => files.extend(say(rest)),
            }
        }
        Year::Hundreds if in_hundreds => {
            files.extend(say(century));
            files.push("digits/hundred".to_owned());
            if rest > 0 {
                files.extend(say(rest));
            }
        }
        Year::Digits => files.extend(super::digits(&year.to_string())),
        Year::Pairs | Year::Hundreds | Year::Number => files.extend(say(year)),
    }
    mark(manner.marks[0], files);
}

/// Today (`q` says nothing then), yesterday, a weekday within a week, else the date.
fn relative(tongue: Tongue, then: Civil, today: Civil, quiet: bool, files: &mut Vec<String>) {
    let ordinal_day = |c: Civil| c.year * 366 + i64::from(c.yearday);
    match ordinal_day(today) - ordinal_day(then) {
        0 if quiet => {}
        0 => files.push("digits/today".to_owned()),
        1 => files.push("digits/yesterday".to_owned()),
        2..=6 => files.push(format!("digits/day-{}", then.weekday)),
        _ => files.extend(moment(tongue, then, today, manner(tongue).date)),
    }
}
