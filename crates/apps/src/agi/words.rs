//! The words of a command line.

use super::WORDS_MAX;

/// Cuts a line at blanks. Double quotes hold words together and may stand for an empty one; a backslash takes the next
/// character as it is. `None`: too many words.
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut escaped = false;
    for c in line.chars() {
        if escaped {
            word.get_or_insert_default().push(c);
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
            word.get_or_insert_default();
        } else if !quoted && (c == ' ' || c == '\t') {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    (words.len() <= WORDS_MAX).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_blanks_that_are_neither_quoted_nor_escaped() {
        for (line, expected) in [
            ("", vec![]),
            ("  NOOP  ", vec!["NOOP"]),
            ("SET VARIABLE a b", vec!["SET", "VARIABLE", "a", "b"]),
            ("SET VARIABLE a \"b c\"", vec!["SET", "VARIABLE", "a", "b c"]),
            ("SET VARIABLE a \"\"", vec!["SET", "VARIABLE", "a", ""]),
            ("x \"say \\\"hi\\\"\"", vec!["x", "say \"hi\""]),
            ("x a\\ b", vec!["x", "a b"]),
            ("x C:\\\\dir", vec!["x", "C:\\dir"]),
            ("x a\"b c\"d", vec!["x", "ab cd"]),
            ("x \"open", vec!["x", "open"]),
            ("x\ty", vec!["x", "y"]),
            ("x \u{e4}\u{f6}", vec!["x", "\u{e4}\u{f6}"]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line:?}");
        }
        assert!(split(&"a ".repeat(WORDS_MAX)).is_some());
        assert!(split(&"a ".repeat(WORDS_MAX + 1)).is_none());
    }
}
