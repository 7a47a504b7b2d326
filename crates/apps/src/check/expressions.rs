//! What callers write and expressions read.

/// Functions whose value a caller, or whoever sent the message, has written.
const OF_CALLERS: [&str; 7] =
    ["CALLERID", "CONNECTEDLINE", "REDIRECTING", "PJSIP_HEADER", "SIP_HEADER", "MESSAGE", "MESSAGE_DATA"];

/// Those of [`OF_CALLERS`] that stand in `$[…]` of a text and not between quotation marks, each once.
pub(super) fn unquoted(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    // What is open, innermost last: `$[` with whether a quotation mark is, or `${`.
    let mut open: Vec<(u8, bool)> = Vec::new();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let after_dollar = at > 0 && bytes.get(at - 1) == Some(&b'$');
        match (byte, open.last_mut()) {
            (b'[', _) if after_dollar => open.push((b'[', false)),
            (b'{', last) if after_dollar => {
                if last.is_some_and(|(kind, quoted)| *kind == b'[' && !*quoted) {
                    let name =
                        text.get(at + 1..).and_then(|rest| rest.split_once('(')).map_or("", |(name, _)| name);
                    let named = OF_CALLERS.into_iter().find(|known| known.eq_ignore_ascii_case(name));
                    found.extend(named.filter(|name| !found.contains(name)));
                }
                open.push((b'{', false));
            }
            (b'"', Some((b'[', quoted))) => *quoted = !*quoted,
            (b']', Some((b'[', false))) | (b'}', Some((b'{', _))) => drop(open.pop()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn what_callers_write_is_named_where_an_expression_reads_it() {
        for (text, expected) in [
            ("$[\"${CALLERID(name)}\" = \"boss\"]?yes", vec![]),
            ("$[${CALLERID(name)} = boss]?yes", vec!["CALLERID"]),
            ("$[\"${EXTEN}\" = \"1\" & ${callerid(num)} > 5]?yes", vec!["CALLERID"]),
            ("$[${LEN(${CALLERID(name)})} > 3]?yes", vec![]),
            ("${CALLERID(name)}?yes", vec![]),
            ("$[ \"a\" : \"[a-z]\" & ${PJSIP_HEADER(read,X)}]", vec!["PJSIP_HEADER"]),
            ("$[${EXTEN} = 100]?yes", vec![]),
            ("x=${IF($[${CALLERID(num)}=1]?a:b)}$[${CALLERID(ani)}+1]", vec!["CALLERID"]),
            ("$[", vec![]),
        ] {
            assert_eq!(unquoted(text), expected, "{text}");
        }
    }
}
