//! What applications need of their argument text beyond the dialplan's own helpers.

pub use dialplan::{args::split_app, condition as is_true, split_args as split};

/// The `index`th of arguments, trimmed; empty when it is not there.
pub fn nth(args: &[String], index: usize) -> &str {
    args.get(index).map_or("", |arg| arg.trim())
}

/// Whether this is one of the field's words for yes.
pub fn says_yes(text: &str) -> bool {
    ["yes", "true", "y", "t", "1", "on"].iter().any(|word| word.eq_ignore_ascii_case(text.trim()))
}

/// Splits `text` at the first `at` that stands outside `()`, `[]`, `{}` and `""`.
pub fn split_once_outside(text: &str, at: char) -> Option<(&str, &str)> {
    let (mut depth, mut quoted) = (0u32, false);
    for (index, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if c == at && depth == 0 => {
                return Some((text.get(..index)?, text.get(index + c.len_utf8()..)?));
            }
            _ => {}
        }
    }
    None
}

/// Seconds as dialplans write them (`1.5`, ` 10 `, `2s`): leading number, blanks around; `None` for other text or below zero.
pub fn seconds(text: &str) -> Option<core::time::Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let value: f64 = number.parse().ok()?;
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "h" | "hr" | "hour" | "hours" => 3600.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "ms" | "msec" | "millisecond" | "milliseconds" => 0.001,
        _ => 1.0,
    };
    core::time::Duration::try_from_secs_f64(value * unit).ok()
}

/// `cond?yes:no` at the first `?` and the first `:` after it that stand outside parentheses and quotes.
pub fn branches(text: &str) -> Option<(&str, &str, &str)> {
    let (condition, rest) = split_once_outside(text, '?')?;
    let (yes, no) = split_once_outside(rest, ':').unwrap_or((rest, ""));
    Some((condition.trim(), yes.trim(), no.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section5_branches_respect_parentheses_and_may_be_empty() {
        for (text, expected) in [
            ("1?a:b", Some(("1", "a", "b"))),
            ("1?:b", Some(("1", "", "b"))),
            ("1?a", Some(("1", "a", ""))),
            ("1?Set(x=a:b):NoOp(c)", Some(("1", "Set(x=a:b)", "NoOp(c)"))),
            ("?a:b", Some(("", "a", "b"))),
            ("nothing", None),
        ] {
            assert_eq!(branches(text), expected, "{text}");
        }
    }

    #[test]
    fn seconds_may_have_fractions_and_a_unit() {
        for (text, expected) in [
            ("1.5", Some(1500)),
            (" 2 ", Some(2000)),
            ("", None),
            ("x", None),
            ("0", Some(0)),
            ("500ms", Some(500)),
            ("0.5 ms", Some(0)),
            ("3s", Some(3000)),
            ("1.5m", Some(90_000)),
            ("2 H", Some(7_200_000)),
            ("5x", Some(5000)),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(seconds(text).map(|d| d.as_millis()), expected, "{text}");
        }
    }
}
