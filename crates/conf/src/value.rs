//! Values that are more than text, with errors that name the line.

use crate::file::Variable;
use crate::finding::{Finding, Level};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// `yes true y t 1 on` are true, `no false n f 0 off` false, in any case; any other text is neither, and the option's
/// default holds.
pub fn boolean(text: &str) -> Option<bool> {
    const TRUE: [&str; 6] = ["yes", "true", "y", "t", "1", "on"];
    const FALSE: [&str; 6] = ["no", "false", "n", "f", "0", "off"];
    let is = |word: &&str| text.eq_ignore_ascii_case(word);
    if TRUE.iter().any(is) {
        Some(true)
    } else if FALSE.iter().any(is) {
        Some(false)
    } else {
        None
    }
}

impl Variable {
    /// A finding about this variable.
    pub fn finding(&self, level: Level, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level, place: self.place.clone(), message: message.into(), remedy: remedy.into() }
    }
    /// The value as a boolean; see [`boolean`].
    pub fn boolean(&self) -> Result<bool, Finding> {
        boolean(&self.value).ok_or_else(|| {
            self.finding(
                Level::Warning,
                format!("{}={} is neither true nor false; the default holds", self.name, self.value),
                "write yes or no",
            )
        })
    }
    /// The value as a whole number in a range.
    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Result<T, Finding>
    where
        T: FromStr + PartialOrd + Display,
    {
        let parsed = self.value.parse::<T>().ok().filter(|number| range.contains(number));
        parsed.ok_or_else(|| {
            self.finding(
                Level::Error,
                format!(
                    "{}={} is not a whole number from {} to {}",
                    self.name,
                    self.value,
                    range.start(),
                    range.end()
                ),
                "correct the number, or remove the line to get the default",
            )
        })
    }
    /// The whole number that the value begins with, and the text behind it, as `scanf` reads numbers.
    pub fn leading_integer(&self) -> Option<(i64, &str)> {
        let (number, rest) = self.value.split_at(number_end(&self.value, false));
        Some((number.parse().ok()?, rest.trim()))
    }
    /// The decimal number that the value begins with, and the text behind it.
    pub fn leading_decimal(&self) -> Option<(f64, &str)> {
        let (number, rest) = self.value.split_at(number_end(&self.value, true));
        Some((number.parse().ok()?, rest.trim()))
    }
    /// The value as a span of whole seconds, at most `max` seconds.
    pub fn seconds(&self, max: u32) -> Result<Duration, Finding> {
        self.integer(0..=max).map(|seconds| Duration::from_secs(u64::from(seconds)))
    }
    /// The value as a span of whole milliseconds, at most `max` milliseconds.
    pub fn milliseconds(&self, max: u32) -> Result<Duration, Finding> {
        self.integer(0..=max).map(|ms| Duration::from_millis(u64::from(ms)))
    }
    /// The value as a decimal number in a range.
    pub fn decimal(&self, range: RangeInclusive<f64>) -> Result<f64, Finding> {
        let parsed = self.value.parse::<f64>().ok().filter(|number| range.contains(number));
        parsed.ok_or_else(|| {
            self.finding(
                Level::Error,
                format!(
                    "{}={} is not a number from {} to {}",
                    self.name,
                    self.value,
                    range.start(),
                    range.end()
                ),
                "correct the number, or remove the line to get the default",
            )
        })
    }
}

/// Where the number that a text begins with ends: sign, digits and, with `decimals`, a point among them.
fn number_end(text: &str, decimals: bool) -> usize {
    let mut points = 0;
    let is_part = |(at, c): (usize, char)| match c {
        '0'..='9' => true,
        '+' | '-' => at == 0,
        '.' if decimals => {
            points += 1;
            points == 1
        }
        _ => false,
    };
    text.char_indices().map(is_part).take_while(|part| *part).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Place;

    fn variable(value: &str) -> Variable {
        Variable {
            name: "timeout".into(),
            value: value.into(),
            object: false,
            place: Place::new("pjsip.conf", 7),
            inherited: false,
        }
    }

    #[test]
    fn rule_8_six_words_are_true_six_are_false_and_the_rest_is_neither() {
        for (text, expected) in [
            ("yes", Some(true)),
            ("TRUE", Some(true)),
            ("y", Some(true)),
            ("T", Some(true)),
            ("1", Some(true)),
            ("On", Some(true)),
            ("no", Some(false)),
            ("False", Some(false)),
            ("n", Some(false)),
            ("F", Some(false)),
            ("0", Some(false)),
            ("OFF", Some(false)),
            ("", None),
            ("2", None),
            ("enabled", None),
            ("yes ", None),
        ] {
            assert_eq!(boolean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_bad_number_names_its_line_and_the_range() {
        assert_eq!(variable("32").integer(1..=90u32), Ok(32));
        assert_eq!(variable("1.5").decimal(0.0..=3.0), Ok(1.5));
        assert_eq!(variable("250").milliseconds(1000), Ok(Duration::from_millis(250)));
        for (text, range) in [("91", 1..=90), ("-1", 1..=90), ("3s", 1..=90), ("", 1..=90), ("1.0", 1..=90)] {
            let finding = variable(text).integer::<u32>(range).unwrap_err();
            assert_eq!(finding.place.to_string(), "pjsip.conf:7", "{text:?}");
            assert!(finding.message.contains("from 1 to 90"), "{text:?}: {}", finding.message);
        }
        assert!(variable("nan").decimal(0.0..=3.0).is_err());
    }

    #[test]
    fn a_number_ends_where_its_digits_do() {
        for (text, whole, decimal) in [
            ("32", Some((32, "")), Some((32.0, ""))),
            ("-1", Some((-1, "")), Some((-1.0, ""))),
            ("30s", Some((30, "s")), Some((30.0, "s"))),
            ("2.5 // seconds", Some((2, ".5 // seconds")), Some((2.5, "// seconds"))),
            ("1.2.3", Some((1, ".2.3")), Some((1.2, ".3"))),
            (".5", None, Some((0.5, ""))),
            ("many", None, None),
            ("-", None, None),
            ("", None, None),
            ("1\u{e9}", Some((1, "\u{e9}")), Some((1.0, "\u{e9}"))),
            ("99999999999999999999", None, Some((1e20, ""))),
        ] {
            assert_eq!(variable(text).leading_integer(), whole, "{text:?}");
            assert_eq!(variable(text).leading_decimal(), decimal, "{text:?}");
        }
    }
}
