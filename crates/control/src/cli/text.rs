//! What the tables have in common: safe cells, counts with their nouns, spans of time.

use core::time::Duration;
use std::borrow::Cow;

/// Text that came from outside, for a terminal: control characters become `?`, so that no name steers it.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The text, or `instead` when there is none.
pub(crate) fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

/// `s` for every count but one.
pub(crate) fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// `Yes` or `No`.
pub(crate) fn yes_no(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

/// `1 day, 2 hours, 3 minutes, 4 seconds`: units that are 0 are left out, except seconds of a span without any.
pub(crate) fn span(duration: Duration) -> String {
    const UNITS: [(u64, &str); 6] = [
        (365 * 86_400, "year"),
        (7 * 86_400, "week"),
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let mut left = duration.as_secs();
    let mut parts = Vec::new();
    for (length, name) in UNITS {
        let count = left / length;
        left %= length;
        if count > 0 || (length == 1 && parts.is_empty()) {
            parts.push(format!("{count} {name}{}", if count == 1 { "" } else { "s" }));
        }
    }
    parts.join(", ")
}

/// `01:02:03`.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Whether `text` holds `part`, in any case.
pub(crate) fn holds(text: &str, part: &str) -> bool {
    text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_every_unit_that_is_not_zero() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (3_661, "1 hour, 1 minute, 1 second"),
            (7_200, "2 hours"),
            (40 * 86_400 + 5, "5 weeks, 5 days, 5 seconds"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(clock(Duration::from_secs(100 * 3_600 + 62)), "100:01:02");
    }

    #[test]
    fn nothing_from_outside_steers_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a?[2Jb?c");
        assert!(matches!(clean("plain é"), Cow::Borrowed(_)));
    }
}
