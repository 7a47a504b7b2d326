//! Times as text in the C locale, or with the names of another one, and back.

use std::fmt::Write as _;

use crate::env::Wall;
use crate::words::{ENGLISH, Words};
use crate::zone::{Civil, DAY, Offset, days_from_date};

fn name<'a>(names: &[&'a str], at: u32) -> &'a str {
    usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or("?")
}

fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

/// Year and week as ISO 8601 counts them: weeks begin on Monday, the first has the year's first Thursday.
fn iso_week(civil: &Civil) -> (i64, u32) {
    let monday_based = (i64::from(civil.weekday) + 6) % 7;
    let yearday = i64::from(civil.yearday);
    let week = (yearday - monday_based + 10) / 7;
    let weeks_in = |year: i64| {
        let january_first = (days_from_date(year, 1, 1) + 4).rem_euclid(7);
        let leap = days_from_date(year + 1, 1, 1) - days_from_date(year, 1, 1) == 366;
        if january_first == 4 || (leap && january_first == 3) { 53 } else { 52 }
    };
    let (year, week) = if week < 1 {
        (civil.year - 1, weeks_in(civil.year - 1))
    } else if week > weeks_in(civil.year) {
        (civil.year + 1, 1)
    } else {
        (civil.year, week)
    };
    (year, u32::try_from(week).unwrap_or(0))
}

/// Appends a time by a strftime format, as a wall in the zone of `offset` shows it.
///
/// `%q` is milliseconds, `%1q` to `%6q` are so many digits of the second's fraction, as in Asterisk. What is no conversion
/// stays as it is.
pub fn format(wall: Wall, offset: &Offset, pattern: &str, out: &mut String) {
    format_in(&ENGLISH, wall, offset, pattern, out);
}

/// The same with other names of days and months. The order of compound conversions stays that of the C locale.
pub fn format_in(words: &Words, wall: Wall, offset: &Offset, pattern: &str, out: &mut String) {
    let c = Civil::at(wall.seconds, offset.seconds);
    let twelve = if c.hour.is_multiple_of(12) { 12 } else { c.hour % 12 };
    let mut symbols = pattern.chars();
    while let Some(symbol) = symbols.next() {
        if symbol != '%' {
            out.push(symbol);
            continue;
        }
        let mut letter = symbols.next();
        let mut digits = 3;
        if let Some(count) = letter.and_then(|letter| letter.to_digit(10)) {
            digits = usize::try_from(count).unwrap_or(3).clamp(1, 6);
            letter = symbols.next();
        }
        while matches!(letter, Some('E' | 'O' | '-' | '_')) {
            letter = symbols.next();
        }
        let Some(letter) = letter else {
            out.push('%');
            break;
        };
        let _ = match letter {
            'a' => write!(out, "{}", name(&words.short_days, c.weekday)),
            'A' => write!(out, "{}", name(&words.days, c.weekday)),
            'b' | 'h' => write!(out, "{}", name(&words.short_months, c.month - 1)),
            'B' => write!(out, "{}", name(&words.months, c.month - 1)),
            'c' => return_to(words, wall, offset, "%a %b %e %H:%M:%S %Y", out),
            'C' => write!(out, "{:02}", c.year.div_euclid(100)),
            'd' => write!(out, "{:02}", c.day),
            'D' | 'x' => return_to(words, wall, offset, "%m/%d/%y", out),
            'e' => write!(out, "{:2}", c.day),
            'F' => return_to(words, wall, offset, "%Y-%m-%d", out),
            'g' => write!(out, "{:02}", iso_week(&c).0.rem_euclid(100)),
            'G' => write!(out, "{}", iso_week(&c).0),
            'H' => write!(out, "{:02}", c.hour),
            'I' => write!(out, "{twelve:02}"),
            'j' => write!(out, "{:03}", c.yearday + 1),
            'k' => write!(out, "{:2}", c.hour),
            'l' => write!(out, "{twelve:2}"),
            'm' => write!(out, "{:02}", c.month),
            'M' => write!(out, "{:02}", c.minute),
            'n' => writeln!(out),
            'p' => write!(out, "{}", if c.hour < 12 { "AM" } else { "PM" }),
            'P' => write!(out, "{}", if c.hour < 12 { "am" } else { "pm" }),
            'q' => {
                let fraction = format!("{:06}", wall.micros.min(999_999));
                write!(out, "{}", fraction.get(..digits).unwrap_or(""))
            }
            'r' => return_to(words, wall, offset, "%I:%M:%S %p", out),
            'R' => return_to(words, wall, offset, "%H:%M", out),
            's' => write!(out, "{}", wall.seconds),
            'S' => write!(out, "{:02}", c.second),
            't' => write!(out, "\t"),
            'T' | 'X' => return_to(words, wall, offset, "%H:%M:%S", out),
            'u' => write!(out, "{}", if c.weekday == 0 { 7 } else { c.weekday }),
            'U' => write!(out, "{:02}", (c.yearday + 7 - c.weekday) / 7),
            'V' => write!(out, "{:02}", iso_week(&c).1),
            'w' => write!(out, "{}", c.weekday),
            'W' => write!(out, "{:02}", (c.yearday + 7 - (c.weekday + 6) % 7) / 7),
            'y' => write!(out, "{:02}", c.year.rem_euclid(100)),
            'Y' => write!(out, "{}", c.year),
            'z' => {
                let minutes = offset.seconds.unsigned_abs() / 60;
                let sign = if offset.seconds < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            'Z' => write!(out, "{}", offset.abbreviation),
            '%' => write!(out, "%"),
            other => write!(out, "%{other}"),
        };
    }
}

/// Formats a compound conversion by its parts.
fn return_to(
    words: &Words,
    wall: Wall,
    offset: &Offset,
    pattern: &str,
    out: &mut String,
) -> std::fmt::Result {
    format_in(words, wall, offset, pattern, out);
    Ok(())
}

#[derive(Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    twelve: bool,
    afternoon: Option<bool>,
    epoch: Option<i64>,
    yearday: Option<i64>,
}

/// Reads a number of at most `digits` digits.
fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<i64>) -> Option<(i64, &str)> {
    let text = text.trim_start();
    let count = text.bytes().take(digits).take_while(u8::is_ascii_digit).count();
    let value = text.get(..count)?.parse().ok()?;
    range.contains(&value).then_some((value, text.get(count..)?))
}

/// Reads a name, whole or its first three letters.
fn named<'t>(names: &[&str], text: &'t str) -> Option<(i64, &'t str)> {
    let text = text.trim_start();
    let starts = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let at = names.iter().position(|name| starts(short(name)))?;
    let full = names.get(at).copied().unwrap_or("");
    let taken = if starts(full) { full.len() } else { 3 };
    Some((i64::try_from(at).ok()?, text.get(taken..)?))
}

fn some((value, rest): (i64, &str)) -> (Option<i64>, &str) {
    (Some(value), rest)
}

fn read<'t>(mut text: &'t str, pattern: &str, parts: &mut Parts) -> Option<&'t str> {
    let mut symbols = pattern.chars();
    while let Some(symbol) = symbols.next() {
        if symbol.is_whitespace() {
            text = text.trim_start();
            continue;
        }
        if symbol != '%' {
            text = text.strip_prefix(symbol)?;
            continue;
        }
        match symbols.next()? {
            'Y' => (parts.year, text) = some(number(text, 4, 0..=9_999)?),
            'y' => {
                let (short, rest) = number(text, 2, 0..=99)?;
                (parts.year, text) = (Some(if short < 69 { 2_000 + short } else { 1_900 + short }), rest);
            }
            'm' => (parts.month, text) = some(number(text, 2, 1..=12)?),
            'b' | 'B' | 'h' => {
                let (month, rest) = named(&ENGLISH.months, text)?;
                (parts.month, text) = (Some(month + 1), rest);
            }
            'd' | 'e' => (parts.day, text) = some(number(text, 2, 1..=31)?),
            'j' => (parts.yearday, text) = some(number(text, 3, 1..=366)?),
            's' => (parts.epoch, text) = some(number(text, 12, 0..=i64::MAX)?),
            'a' | 'A' => text = named(&ENGLISH.days, text)?.1,
            'H' | 'k' => (parts.hour, text) = number(text, 2, 0..=23)?,
            'I' | 'l' => {
                parts.twelve = true;
                (parts.hour, text) = number(text, 2, 1..=12)?;
            }
            'M' => (parts.minute, text) = number(text, 2, 0..=59)?,
            'S' => (parts.second, text) = number(text, 2, 0..=60)?,
            'p' | 'P' => {
                let rest = text.trim_start();
                parts.afternoon = Some(!rest.get(..2)?.eq_ignore_ascii_case("am"));
                text = rest.get(2..)?;
            }
            'D' => text = read(text, "%m/%d/%y", parts)?,
            'F' => text = read(text, "%Y-%m-%d", parts)?,
            'T' => text = read(text, "%H:%M:%S", parts)?,
            'R' => text = read(text, "%H:%M", parts)?,
            'n' | 't' => text = text.trim_start(),
            '%' => text = text.strip_prefix('%')?,
            _ => return None,
        }
    }
    Some(text)
}

/// Reads a time by a strptime format: seconds since 1970 as if the wall showed UTC.
pub(crate) fn parse(text: &str, pattern: &str) -> Option<i64> {
    let mut parts = Parts::default();
    read(text, pattern, &mut parts)?;
    if let Some(epoch) = parts.epoch {
        return Some(epoch);
    }
    let hour = match (parts.twelve, parts.afternoon) {
        (true, Some(afternoon)) => parts.hour % 12 + if afternoon { 12 } else { 0 },
        _ => parts.hour,
    };
    let year = parts.year.unwrap_or(1970);
    let days = match parts.yearday {
        Some(day) if parts.month.is_none() => days_from_date(year, 1, 1) + day - 1,
        _ => {
            let month = u32::try_from(parts.month.unwrap_or(1)).ok()?;
            days_from_date(year, month, parts.day.unwrap_or(1))
        }
    };
    Some(days * DAY + hour * 3_600 + parts.minute * 60 + parts.second)
}
