//! Telephone numbers as a PASSporT has them (RFC 8224 §8.3).

/// Longest number, digits: twice what E.164 allows, so that internal prefixes fit.
const DIGITS_MAX: usize = 32;

/// The digits of a number, with `*` and `#`; a `+`, blanks and punctuation go.
pub fn digits(number: &str) -> String {
    let kept = number.chars().filter(|symbol| symbol.is_ascii_digit() || matches!(symbol, '*' | '#'));
    kept.take(DIGITS_MAX).collect()
}

/// The digits of the user part of a URI, decoded: what follows a `;` is no number (RFC 3966 §3).
pub fn number_of_user(user: &str) -> String {
    digits(user.split(';').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc8224_8_3_numbers_are_reduced_to_what_is_dialled() {
        for (written, expected) in [
            ("+1 (800) 555-1000", "18005551000"),
            ("18005551000", "18005551000"),
            ("*67#", "*67#"),
            ("alice", ""),
            ("anonymous", ""),
            ("", ""),
            ("1234567890123456789012345678901234567890", "12345678901234567890123456789012"),
        ] {
            assert_eq!(digits(written), expected, "{written}");
        }
        assert_eq!(number_of_user("+18005551000;npdi;rn=1404"), "18005551000");
    }
}
