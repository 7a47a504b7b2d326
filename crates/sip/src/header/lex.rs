//! Lexical helpers that every header shares: white space, tokens, quoted strings, parameters, comma lists.
//!
//! A header value may still hold the line breaks of folding (RFC 3261 §7.3.1), so CR and LF count as white space.

/// Most values a comma list or repeated header is walked for; more than any honest message carries.
pub const MAX_LIST_VALUES: usize = 512;

/// Space, tab, and the line breaks of folding.
pub(crate) const fn is_lws(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The bytes of an RFC 3261 `token`.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric()
            || matches!(byte as u8, b'-' | b'.' | b'!' | b'%' | b'*' | b'_' | b'+' | b'`' | b'\'' | b'~');
        byte += 1;
    }
    table
};

/// Whether a `token` may hold this byte.
#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Whether `bytes` is a non-empty `token`.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| is_token_byte(b))
}

/// `bytes` without white space at either end.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    trim_end(trim_start(bytes))
}
pub(crate) fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes {
        if !is_lws(*first) {
            break;
        }
        bytes = rest;
    }
    bytes
}
pub(crate) fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., last] = bytes {
        if !is_lws(*last) {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// Splits at `at`, without the byte there; everything and nothing when `at` lies outside.
pub(crate) fn split_around(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    match bytes.split_at_checked(at) {
        Some((before, after)) => (before, after.get(1..).unwrap_or_default()),
        None => (bytes, &[]),
    }
}

/// Splits at the first `separator`; the second part is `None` without one.
pub(crate) fn split_once(bytes: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(separator, bytes) {
        Some(at) => {
            let (before, after) = split_around(bytes, at);
            (before, Some(after))
        }
        None => (bytes, None),
    }
}

/// The unsigned decimal number these bytes are, no sign and no blanks; `None` above `u64::MAX`.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Length of the quoted string `bytes` begins with, both quotes included; `None` when it is not closed.
pub(crate) fn quoted_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = bytes.get(at..)?;
        let stop = memchr::memchr2(b'"', b'\\', rest)?;
        at += stop + 1;
        if rest.get(stop) == Some(&b'"') {
            return Some(at);
        }
        at += 1; // the escaped byte
    }
}

/// Where `wanted` first stands outside quoted strings. What follows a quote that is never closed is not quoted: only a
/// display name that begins with it is refused for that, which is its reader's to do.
pub(crate) fn find_unquoted(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let stop = memchr::memchr2(wanted, b'"', rest)?;
        let rest = rest.get(stop..)?;
        at += stop;
        match rest {
            [b'"', ..] if wanted != b'"' => at += quoted_len(rest).unwrap_or(1),
            _ => return Some(at),
        }
    }
}

/// Where `separator` first stands outside quoted strings and angle brackets; the length when it does not.
pub(crate) fn find_outside(bytes: &[u8], separator: u8) -> usize {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && let Some(stop) = memchr::memchr3(separator, b'"', b'<', rest)
    {
        let Some(rest) = rest.get(stop..) else { break };
        at += stop;
        match rest {
            [b'"', ..] => match quoted_len(rest) {
                Some(len) => at += len,
                None => break,
            },
            [b'<', ..] => match memchr::memchr(b'>', rest) {
                Some(len) => at += len + 1,
                None => break,
            },
            _ => return at,
        }
    }
    bytes.len()
}

/// The content of a quoted string with its escapes undone; other text as it is.
pub fn unquote(bytes: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let inner = match bytes {
        [b'"', inner @ .., b'"'] => inner,
        _ => return bytes.into(),
    };
    if memchr::memchr(b'\\', inner).is_none() {
        return inner.into();
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => out.extend(bytes.next()),
            _ => out.push(byte),
        }
    }
    out.into()
}

/// `;name=value` parameters, parsed as they are asked for; empty ones between separators are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Params<'a>(&'a [u8]);

impl<'a> Params<'a> {
    /// The parameters in `raw`, which begins with `;` or is empty.
    pub const fn new(raw: &'a [u8]) -> Self {
        Self(raw)
    }
    /// The text, with its leading `;`.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
    /// Name and value of each, white space around both removed; quotes stay.
    pub fn iter(self) -> ParamsIter<'a> {
        ParamsIter(self.0)
    }
    /// The first parameter of that name, any case: `Some(None)` is one without a value.
    pub fn find(self, name: &[u8]) -> Option<Option<&'a [u8]>> {
        self.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
    /// The value of the first parameter of that name, any case.
    pub fn get(self, name: &[u8]) -> Option<&'a [u8]> {
        self.find(name).flatten()
    }
    /// Whether there is a parameter of that name.
    pub fn has(self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }
    /// Whether each parameter is a token with an optional value, and none is empty or holds controls (RFC 3261 §25.1).
    pub fn well_formed(self) -> bool {
        let Some(mut rest) = self.0.strip_prefix(b";") else { return trim(self.0).is_empty() };
        loop {
            let end = find_outside(rest, b';');
            let (one, after) = split_around(rest, end);
            let (name, value) = split_once(one, b'=');
            let value_ok = value.is_none_or(|value| match trim(value) {
                quoted @ [b'"', ..] => quoted_len(quoted) == Some(quoted.len()) && !quoted.contains(&0),
                plain => !plain.iter().any(|&b| b <= b' ' || matches!(b, 0x7F | b',' | b'"')),
            });
            if !is_token(trim(name)) || !value_ok {
                return false;
            }
            if end >= rest.len() {
                return true;
            }
            rest = after;
        }
    }
}

/// Iterator of [`Params::iter`].
#[derive(Debug, Clone)]
pub struct ParamsIter<'a>(&'a [u8]);

impl<'a> Iterator for ParamsIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);
    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let (one, rest) = split_around(self.0, find_outside(self.0, b';'));
            self.0 = rest;
            let (name, value) = split_once(one, b'=');
            let name = trim(name);
            if !name.is_empty() {
                return Some((name, value.map(trim)));
            }
        }
        None
    }
}

/// The values of one comma-separated field, white space removed, empty ones skipped.
#[derive(Debug, Clone)]
pub struct CommaList<'a>(&'a [u8]);

impl<'a> CommaList<'a> {
    /// Splits `value` at the commas outside quotes and angle brackets.
    pub const fn new(value: &'a [u8]) -> Self {
        Self(value)
    }
}

impl<'a> Iterator for CommaList<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.0.is_empty() {
            let (one, rest) = split_around(self.0, find_outside(self.0, b','));
            self.0 = rest;
            let one = trim(one);
            if !one.is_empty() {
                return Some(one);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_semicolons_inside_quotes_and_brackets_do_not_split() {
        let list: Vec<_> =
            CommaList::new(b"\"a, \\\"b\" <sip:x,y@h>;q=1 ,, <sip:z>;p=\"1,2\",\r\n w").collect();
        assert_eq!(list, [&b"\"a, \\\"b\" <sip:x,y@h>;q=1"[..], b"<sip:z>;p=\"1,2\"", b"w"]);
        let params = Params::new(b"; a = 1 ;;b;c=\"x;y\" ; D=4");
        assert_eq!(params.get(b"A"), Some(&b"1"[..]));
        assert_eq!(params.find(b"b"), Some(None));
        assert_eq!(params.get(b"c"), Some(&b"\"x;y\""[..]));
        assert_eq!(params.get(b"d"), Some(&b"4"[..]));
        assert!(!params.well_formed());
        assert!(Params::new(b";a;b=\"c d\";e=f").well_formed());
        assert_eq!(unquote(b"\"a\\\"b\\\\\"").as_ref(), b"a\"b\\");
    }

    #[test]
    fn an_open_quote_or_bracket_takes_the_rest() {
        for text in [&b"\"abc, d"[..], b"<abc, d", b"\"abc\\"] {
            assert_eq!(CommaList::new(text).count(), 1, "{}", text.escape_ascii());
        }
    }
}
