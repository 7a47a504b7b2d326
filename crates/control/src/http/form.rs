//! What a browser sends: queries and forms.

/// Fields of one request: an action of the manager has at most as many headers.
const FIELDS_MAX: usize = 256;

/// The fields of `a=1&b=x+y%21` (application/x-www-form-urlencoded), in order.
pub(crate) fn fields(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(FIELDS_MAX);
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

/// A text as it may stand in a query.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&unescaped(text, true)).into_owned()
}

/// `%41` as `A`, and in forms `+` as a blank; what is no such thing stays as it is.
pub(crate) fn unescaped(text: &str, is_form: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    tail
                }
                _ => {
                    bytes.push(b'%');
                    rest.get(1..).unwrap_or_default()
                }
            },
            (b'+', _) if is_form => {
                bytes.push(b' ');
                tail
            }
            (byte, _) => {
                bytes.push(*byte);
                tail
            }
        };
    }
    bytes
}

/// The value of a cookie in a `Cookie` header, without quotation marks.
pub(crate) fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_nonsense_stays_text() {
        for (text, expected) in [
            ("", vec![]),
            ("action=ping", vec![("action", "ping")]),
            ("a=x+y%21&b&=c&", vec![("a", "x y!"), ("b", ""), ("", "c")]),
            ("a=%0d%0aEvent", vec![("a", "\r\nEvent")]),
            ("a=%zz%4&b=%C3%A9", vec![("a", "%zz%4"), ("b", "é")]),
        ] {
            let expected: Vec<_> = expected.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(fields(text), expected, "{text}");
        }
        assert_eq!(fields(&"a=b&".repeat(10_000)).len(), FIELDS_MAX);
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        assert_eq!(cookie("a=1; mansession_id=\"ab12\"; c=2", "mansession_id"), Some("ab12"));
        assert_eq!(cookie("xmansession_id=1", "mansession_id"), None);
    }
}
