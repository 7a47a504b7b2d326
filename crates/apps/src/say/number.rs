//! Numbers as the files of the field's prompt sets name their words, language by language.
//!
//! The sets of English, Spanish, French, Italian and Russian are those of Debian's packages; of the others the names are
//! those that sets in use have. A language's function says in its comment what it needs beside the English files.

use core::fmt::Display;

use super::tongue::{Gender, Tongue};

/// Files of `digits/`.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn file(&mut self, name: impl Display) -> &mut Self {
        self.0.push(format!("digits/{name}"));
        self
    }
}

/// The largest number that is said: beyond billions no set has words.
pub(crate) const NUMBER_MAX: u64 = 999_999_999_999;

const THOUSAND: u64 = 1_000;
const MILLION: u64 = 1_000_000;
const BILLION: u64 = 1_000_000_000;
const MYRIAD: u64 = 10_000;
const HUNDRED_MILLION: u64 = 100_000_000;

/// Files for a whole number, up to [`NUMBER_MAX`] either way.
pub(crate) fn number(tongue: Tongue, value: i64, gender: Gender) -> Vec<String> {
    let mut words = Words::default();
    if value < 0 {
        words.file("minus");
    }
    let value = value.unsigned_abs();
    if value == 0 {
        words.file(0);
        return words.0;
    }
    match tongue {
        Tongue::English => english(&mut words, value, false),
        Tongue::British => english(&mut words, value, true),
        Tongue::Danish => danish(&mut words, value, gender),
        Tongue::Dutch => dutch(&mut words, value),
        Tongue::French => french(&mut words, value, gender),
        Tongue::German => german(&mut words, value, gender, true),
        Tongue::Italian => italian(&mut words, value),
        Tongue::Japanese => japanese(&mut words, value),
        Tongue::Mandarin => mandarin(&mut words, value),
        Tongue::Polish => polish(&mut words, value, gender),
        Tongue::Portuguese => portuguese(&mut words, value, gender),
        Tongue::Russian => russian(&mut words, value, gender),
        Tongue::Spanish => spanish(&mut words, value, gender),
        Tongue::Swedish => swedish(&mut words, value, gender),
    }
    words.0
}

/// Tens that are not zero, in one file.
fn tens(words: &mut Words, value: u64) {
    if value >= 10 {
        words.file(value / 10 * 10);
    }
}

/// Twenty and one; British English says "and" behind hundreds (`vm-and`).
fn english(words: &mut Words, value: u64, and: bool) {
    for (unit, name) in [(BILLION, "billion"), (MILLION, "million"), (THOUSAND, "thousand"), (100, "hundred")]
    {
        if value < unit {
            continue;
        }
        english(words, value / unit, and);
        words.file(name);
        let rest = value % unit;
        if and && (1..100).contains(&rest) {
            words.0.push("vm-and".to_owned());
        }
        if rest > 0 {
            english(words, rest, and);
        }
        return;
    }
    if value > 20 {
        tens(words, value);
        if !value.is_multiple_of(10) {
            words.file(value % 10);
        }
    } else {
        words.file(value);
    }
}

/// One and twenty. Needs `1F` (eine), `1N` (ein), `1-and` to `9-and`, `millions`, `milliard`, `milliards`. `first`: nothing
/// was said before, so that a hundred is just that.
fn german(words: &mut Words, value: u64, gender: Gender, first: bool) {
    match value {
        0 => {}
        1 => {
            words.file(match gender {
                Gender::Feminine => "1F",
                Gender::Neuter => "1N",
                Gender::Plain | Gender::Masculine | Gender::Common => "1",
            });
        }
        2..=20 => {
            words.file(value);
        }
        21..100 => {
            if !value.is_multiple_of(10) {
                words.file(format_args!("{}-and", value % 10));
            }
            tens(words, value);
        }
        100 | 1000 if first => {
            words.file(if value == 100 { "hundred" } else { "thousand" });
        }
        100..THOUSAND => {
            if value / 100 == 1 { words.file("1N") } else { words.file(value / 100) }.file("hundred");
            german(words, value % 100, gender, false);
        }
        THOUSAND..MILLION => {
            german(words, value / THOUSAND, Gender::Neuter, value >= 2 * THOUSAND);
            words.file("thousand");
            german(words, value % THOUSAND, gender, false);
        }
        _ => {
            let (unit, one, many) = large(value, ("million", "millions"), ("milliard", "milliards"));
            german(words, value / unit, Gender::Feminine, true);
            words.file(if value / unit == 1 { one } else { many });
            german(words, value % unit, gender, false);
        }
    }
}

/// The unit of a number of a million and more, with its words for one and for many.
fn large<T>(value: u64, millions: (T, T), milliards: (T, T)) -> (u64, T, T) {
    let (unit, (one, many)) = if value < BILLION { (MILLION, millions) } else { (BILLION, milliards) };
    (unit, one, many)
}

/// One and twenty, with "and" before the last part. Needs `1N` (et), `1-and` to `9-and`, `and`, `millions`, `milliard`,
/// `milliards`.
fn danish(words: &mut Words, value: u64, gender: Gender) {
    let rest = |words: &mut Words, rest: u64| {
        if (1..100).contains(&rest) {
            words.file("and");
        }
        danish(words, rest, gender);
    };
    match value {
        0 => {}
        1 if gender == Gender::Neuter => {
            words.file("1N");
        }
        1..=20 => {
            words.file(value);
        }
        21..100 => {
            if !value.is_multiple_of(10) {
                words.file(format_args!("{}-and", value % 10));
            }
            tens(words, value);
        }
        100..THOUSAND => {
            danish(words, value / 100, Gender::Neuter);
            words.file("hundred");
            rest(words, value % 100);
        }
        THOUSAND..MILLION => {
            danish(words, value / THOUSAND, Gender::Neuter);
            words.file("thousand");
            rest(words, value % THOUSAND);
        }
        _ => {
            let (unit, one, many) = large(value, ("million", "millions"), ("milliard", "milliards"));
            danish(words, value / unit, Gender::Common);
            words.file(if value / unit == 1 { one } else { many });
            rest(words, value % unit);
        }
    }
}

/// One and twenty; eleven hundred up to ninety-nine hundred. Needs `1-en` to `9-en`.
fn dutch(words: &mut Words, value: u64) {
    match value {
        0 => {}
        1..=20 => {
            words.file(value);
        }
        21..100 => {
            if !value.is_multiple_of(10) {
                words.file(format_args!("{}-en", value % 10));
            }
            tens(words, value);
        }
        100..200 => {
            words.file("hundred");
            dutch(words, value - 100);
        }
        1_100..10_000 if !(value / 100).is_multiple_of(10) => {
            dutch(words, value / 100);
            words.file("hundred");
            dutch(words, value % 100);
        }
        200..THOUSAND => {
            words.file(value / 100).file("hundred");
            dutch(words, value % 100);
        }
        THOUSAND..MILLION => {
            if value >= 2 * THOUSAND {
                dutch(words, value / THOUSAND);
            }
            words.file("thousand");
            dutch(words, value % THOUSAND);
        }
        _ => {
            let (unit, name, _) = large(value, ("million", ""), ("billion", ""));
            dutch(words, value / unit);
            words.file(name);
            dutch(words, value % unit);
        }
    }
}

/// Sixty and ten, four twenties; "et" before one and eleven. Needs `et`, and `1F` (une) for a feminine one.
fn french(words: &mut Words, value: u64, gender: Gender) {
    match value {
        0 => {}
        1 if gender == Gender::Feminine => {
            words.file("1F");
        }
        1..=20 => {
            words.file(value);
        }
        21..70 => {
            tens(words, value);
            if value % 10 == 1 {
                words.file("et");
            }
            french(words, value % 10, gender);
        }
        70..80 => {
            words.file(60);
            if value == 71 {
                words.file("et");
            }
            french(words, value - 60, gender);
        }
        80..100 => {
            words.file(80);
            french(words, value - 80, gender);
        }
        100..THOUSAND => {
            if value >= 200 {
                words.file(value / 100);
            }
            words.file("hundred");
            french(words, value % 100, gender);
        }
        THOUSAND..MILLION => {
            if value >= 2 * THOUSAND {
                french(words, value / THOUSAND, Gender::Masculine);
            }
            words.file("thousand");
            french(words, value % THOUSAND, gender);
        }
        _ => {
            let (unit, name, _) = large(value, ("million", ""), ("billion", ""));
            french(words, value / unit, Gender::Masculine);
            words.file(name);
            french(words, value % unit, gender);
        }
    }
}

/// Twenty-one and twenty-eight are one word (`21`, `28`, … `98`). Needs `thousands`, `millions` and `un`.
fn italian(words: &mut Words, value: u64) {
    match value {
        0 => {}
        1..=20 => {
            words.file(value);
        }
        21..100 if matches!(value % 10, 0 | 1 | 8) => {
            words.file(value);
        }
        21..100 => {
            tens(words, value);
            words.file(value % 10);
        }
        100..THOUSAND => {
            if value >= 200 {
                words.file(value / 100);
            }
            words.file("hundred");
            italian(words, value % 100);
        }
        THOUSAND..MILLION => {
            if value >= 2 * THOUSAND {
                italian(words, value / THOUSAND);
                words.file("thousands");
            } else {
                words.file("thousand");
            }
            italian(words, value % THOUSAND);
        }
        _ => {
            let (unit, one, many) = large(value, ("million", "millions"), ("billion", "billion"));
            if value / unit == 1 {
                words.file("un").file(one);
            } else {
                italian(words, value / unit);
                words.file(many);
            }
            italian(words, value % unit);
        }
    }
}

/// Up to thirty in one word, thirty and one; hundreds have words of their own. Needs `1F` (una), `1M` (un), `21` to `29`,
/// `and`, `100-and`, `200` to `900`, `millions`.
fn spanish(words: &mut Words, value: u64, gender: Gender) {
    match value {
        0 => {}
        1 => {
            words.file(match gender {
                Gender::Feminine => "1F",
                Gender::Masculine => "1M",
                Gender::Plain | Gender::Common | Gender::Neuter => "1",
            });
        }
        2..=30 => {
            words.file(value);
        }
        31..100 => {
            tens(words, value);
            if !value.is_multiple_of(10) {
                words.file("and");
                spanish(words, value % 10, gender);
            }
        }
        100 => {
            words.file("hundred");
        }
        101..200 => {
            words.file("100-and");
            spanish(words, value - 100, gender);
        }
        200..THOUSAND => {
            words.file(value / 100 * 100);
            spanish(words, value % 100, gender);
        }
        THOUSAND..MILLION => {
            if value >= 2 * THOUSAND {
                spanish(words, value / THOUSAND, Gender::Masculine);
            }
            words.file("thousand");
            spanish(words, value % THOUSAND, gender);
        }
        _ => {
            // A thousand millions: there is no other word for a billion.
            spanish(words, value / MILLION, Gender::Masculine);
            words.file(if value / MILLION == 1 { "million" } else { "millions" });
            spanish(words, value % MILLION, gender);
        }
    }
}

/// With "e" between the parts of what is below a hundred, and before what ends a number. Needs `1F`, `2F`, `pt-e`, `100`,
/// `100E` (cento), `200` to `900` (and with `F`), `1000`, `1000000`, `1000000S`.
fn portuguese(words: &mut Words, value: u64, gender: Gender) {
    let feminine = if gender == Gender::Feminine { "F" } else { "" };
    match value {
        0 => {}
        1 | 2 => {
            words.file(format_args!("{value}{feminine}"));
        }
        3..=20 => {
            words.file(value);
        }
        21..100 => {
            tens(words, value);
            if !value.is_multiple_of(10) {
                words.file("pt-e");
                portuguese(words, value % 10, gender);
            }
        }
        100 => {
            words.file(100);
        }
        101..THOUSAND => {
            if value < 200 {
                words.file("100E");
            } else {
                words.file(format_args!("{}{feminine}", value / 100 * 100));
            }
            if !value.is_multiple_of(100) {
                words.file("pt-e");
                portuguese(words, value % 100, gender);
            }
        }
        THOUSAND..MILLION => {
            if value >= 2 * THOUSAND {
                portuguese(words, value / THOUSAND, gender);
            }
            words.file(1000);
            let rest = value % THOUSAND;
            if rest > 0 && (rest < 100 || rest.is_multiple_of(100)) {
                words.file("pt-e");
            }
            portuguese(words, rest, gender);
        }
        _ => {
            // A thousand millions, as Portugal counts.
            portuguese(words, value / MILLION, Gender::Masculine);
            words.file(if value / MILLION == 1 { "1000000" } else { "1000000S" });
            portuguese(words, value % MILLION, gender);
        }
    }
}

/// Needs `1N` (ett), `millions`, `milliard`, `milliards`.
fn swedish(words: &mut Words, value: u64, gender: Gender) {
    match value {
        0 => {}
        1 if gender == Gender::Neuter => {
            words.file("1N");
        }
        1..=20 => {
            words.file(value);
        }
        21..100 => {
            tens(words, value);
            swedish(words, value % 10, gender);
        }
        100..THOUSAND => {
            swedish(words, value / 100, Gender::Neuter);
            words.file("hundred");
            swedish(words, value % 100, gender);
        }
        THOUSAND..MILLION => {
            swedish(words, value / THOUSAND, Gender::Neuter);
            words.file("thousand");
            swedish(words, value % THOUSAND, gender);
        }
        _ => {
            let (unit, one, many) = large(value, ("million", "millions"), ("milliard", "milliards"));
            swedish(words, value / unit, Gender::Common);
            words.file(if value / unit == 1 { one } else { many });
            swedish(words, value % unit, gender);
        }
    }
}

/// What a Slavic language does with what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// One, twenty-one: nominative.
    One,
    /// Two to four, twenty-two: genitive singular.
    Few,
    /// Five, eleven to fourteen, a hundred: genitive plural.
    Many,
}

/// How Russian counts; Polish has "one" for one alone.
pub(super) fn slavic(value: u64) -> Count {
    match (value % 100, value % 10) {
        (11..=14, _) => Count::Many,
        (_, 1) => Count::One,
        (_, 2..=4) => Count::Few,
        _ => Count::Many,
    }
}

/// Needs `1f`, `2f`, `1n`, `100` to `900`, `thousands-i`, `thousands`, `million-a`, `millions`, `billion-a`, `billions`.
fn russian(words: &mut Words, value: u64, gender: Gender) {
    let scale = |words: &mut Words, unit: u64, gender: Gender, names: [&str; 3]| {
        russian(words, value / unit, gender);
        let [one, few, many] = names;
        words.file(match slavic(value / unit) {
            Count::One => one,
            Count::Few => few,
            Count::Many => many,
        });
    };
    match value {
        0 => {}
        1 | 2 => {
            let suffix = match gender {
                Gender::Feminine => "f",
                Gender::Neuter if value == 1 => "n",
                _ => "",
            };
            words.file(format_args!("{value}{suffix}"));
        }
        3..=20 => {
            words.file(value);
        }
        21..100 => {
            tens(words, value);
            russian(words, value % 10, gender);
        }
        100..THOUSAND => {
            words.file(value / 100 * 100);
            russian(words, value % 100, gender);
        }
        THOUSAND..MILLION => {
            scale(words, THOUSAND, Gender::Feminine, ["thousand", "thousands-i", "thousands"]);
            russian(words, value % THOUSAND, gender);
        }
        MILLION..BILLION => {
            scale(words, MILLION, Gender::Masculine, ["million", "million-a", "millions"]);
            russian(words, value % MILLION, gender);
        }
        _ => {
            scale(words, BILLION, Gender::Masculine, ["billion", "billion-a", "billions"]);
            russian(words, value % BILLION, gender);
        }
    }
}

/// Needs `1z`, `2z`, `1n`, `100` to `900`, and `1000`, `1000.2`, `1000.5` with the same for a million and a milliard.
fn polish(words: &mut Words, value: u64, gender: Gender) {
    match value {
        0 => {}
        1 | 2 => {
            let suffix = match gender {
                Gender::Feminine => "z",
                Gender::Neuter if value == 1 => "n",
                _ => "",
            };
            words.file(format_args!("{value}{suffix}"));
        }
        3..=20 => {
            words.file(value);
        }
        21..100 => {
            tens(words, value);
            match value % 10 {
                // One stays one behind tens, of whatever gender.
                1 => drop(words.file(1)),
                units => polish(words, units, gender),
            }
        }
        100..THOUSAND => {
            words.file(value / 100 * 100);
            match value % 100 {
                1 => drop(words.file(1)),
                rest => polish(words, rest, gender),
            }
        }
        _ => {
            let unit =
                [BILLION, MILLION, THOUSAND].into_iter().find(|unit| value >= *unit).unwrap_or(THOUSAND);
            let count = value / unit;
            if count > 1 {
                polish(words, count, Gender::Masculine);
            }
            match (count, slavic(count)) {
                (1, _) => words.file(unit),
                (_, Count::Few) => words.file(format_args!("{unit}.2")),
                (_, Count::One | Count::Many) => words.file(format_args!("{unit}.5")),
            };
            polish(words, value % unit, gender);
        }
    }
}

/// Counts in ten thousands; hundreds and thousands have files of their own because their sound changes. Needs `100` to
/// `900`, `1000` to `9000`, `10000`, `100000000`.
fn japanese(words: &mut Words, value: u64) {
    match value {
        0 => {}
        1..10 => {
            words.file(value);
        }
        10..100 => {
            tens(words, value);
            japanese(words, value % 10);
        }
        100..THOUSAND => {
            words.file(value / 100 * 100);
            japanese(words, value % 100);
        }
        THOUSAND..MYRIAD => {
            words.file(value / THOUSAND * THOUSAND);
            japanese(words, value % THOUSAND);
        }
        _ => {
            let unit = if value < HUNDRED_MILLION { MYRIAD } else { HUNDRED_MILLION };
            japanese(words, value / unit);
            words.file(unit);
            japanese(words, value % unit);
        }
    }
}

/// Counts in ten thousands; a gap within a number is a zero. Needs `wan` and `yi`.
fn mandarin(words: &mut Words, value: u64) {
    let rest = |words: &mut Words, unit: u64| {
        let rest = value % unit;
        if rest > 0 && rest < unit / 10 {
            words.file(0);
        }
        mandarin(words, rest);
    };
    match value {
        0 => {}
        1..=10 => {
            words.file(value);
        }
        11..20 => {
            words.file(10).file(value - 10);
        }
        20..100 => {
            tens(words, value);
            mandarin(words, value % 10);
        }
        100..THOUSAND => {
            words.file(value / 100).file("hundred");
            // Behind a hundred ten is one ten.
            match value % 100 {
                tail @ 10..20 => {
                    words.file(1);
                    mandarin(words, tail);
                }
                _ => rest(words, 100),
            }
        }
        THOUSAND..MYRIAD => {
            words.file(value / THOUSAND).file("thousand");
            rest(words, THOUSAND);
        }
        MYRIAD..HUNDRED_MILLION => {
            mandarin(words, value / MYRIAD);
            words.file("wan");
            rest(words, MYRIAD);
        }
        _ => {
            mandarin(words, value / HUNDRED_MILLION);
            words.file("yi");
            rest(words, HUNDRED_MILLION);
        }
    }
}

/// Files for first, second, and so on.
pub(crate) fn ordinal(tongue: Tongue, value: i64, gender: Gender) -> Vec<String> {
    let mut files = number(tongue, value, gender);
    let of = |file: &str| file.replacen("digits/", "digits/h-", 1);
    match tongue {
        // Every part is an ordinal: vigésimo primero, dwudziesty pierwszy.
        Tongue::Spanish | Tongue::Portuguese | Tongue::Italian | Tongue::Polish
            if value.unsigned_abs() < 100 =>
        {
            let value = value.unsigned_abs();
            let parts = if value <= 20 || value.is_multiple_of(10) {
                vec![value]
            } else {
                vec![value / 10 * 10, value % 10]
            };
            let minus = files.first().filter(|file| *file == "digits/minus").cloned();
            minus.into_iter().chain(parts.iter().map(|part| format!("digits/h-{part}"))).collect()
        }
        Tongue::Japanese | Tongue::Mandarin => {
            files.insert(0, if tongue == Tongue::Japanese { "digits/dai" } else { "digits/di" }.to_owned());
            files
        }
        // The last word becomes the ordinal of its plain form: die erste, einundzwanzigste.
        _ => {
            if let Some(last) = files.last_mut() {
                *last = match (tongue, last.as_str()) {
                    (Tongue::German, "digits/1F" | "digits/1N" | "digits/1") => {
                        let suffix = match gender {
                            Gender::Feminine => "F",
                            Gender::Neuter => "N",
                            Gender::Plain | Gender::Masculine | Gender::Common => "",
                        };
                        format!("digits/h-1{suffix}")
                    }
                    (_, last) => of(without_gender(last)),
                };
            }
            files
        }
    }
}

/// A digit's file without the letter of its gender.
fn without_gender(file: &str) -> &str {
    let plain = file.trim_end_matches(|symbol: char| symbol.is_ascii_alphabetic());
    if plain.ends_with(|symbol: char| symbol.is_ascii_digit()) { plain } else { file }
}
