//! `name-addr` and `addr-spec` headers: From, To, Contact, Route, Record-Route, P-Asserted-Identity and their like.

use std::borrow::Cow;

use super::lex::{Params, find_outside, find_unquoted, quoted_len, trim, trim_end, trim_start, unquote};
use crate::uri::Uri;

/// A display name, a URI and header parameters (RFC 3261 §20.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameAddr<'a> {
    /// Display name as written, quotes included; empty when there is none. Any byte but line breaks may be in it.
    pub display: &'a [u8],
    /// The URI.
    pub uri: Uri<'a>,
    /// Parameters of the header, not of the URI.
    pub params: Params<'a>,
}

impl<'a> NameAddr<'a> {
    /// Parses one value. Without angle brackets, parameters belong to the header and `?` is refused (RFC 3261 §20).
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = trim(value);
        if value.first() == Some(&b'"') {
            quoted_len(value)?;
        }
        // A bracket within quotes is text: of a display name, or of a parameter of an address without brackets.
        let Some(open) = find_unquoted(value, b'<') else { return Self::parse_bare(value) };
        let (display, rest) = value.split_at_checked(open)?;
        let rest = rest.get(1..)?;
        let close = memchr::memchr(b'>', rest)?;
        let (uri, rest) = rest.split_at_checked(close)?;
        let params = trim_start(rest.get(1..)?);
        if !matches!(params, [] | [b';', ..]) {
            return None;
        }
        Some(Self { display: trim_end(display), uri: Uri::parse(trim(uri))?, params: Params::new(params) })
    }

    fn parse_bare(value: &'a [u8]) -> Option<Self> {
        let (uri, params) = value.split_at_checked(find_outside(value, b';'))?;
        let uri = trim_end(uri);
        if uri.iter().any(|b| matches!(b, b'?' | b',')) {
            return None;
        }
        Some(Self { display: &[], uri: Uri::parse(uri)?, params: Params::new(params) })
    }

    /// The display name without quotes and escapes.
    pub fn display_name(&self) -> Cow<'a, [u8]> {
        unquote(self.display)
    }
    /// The `tag` parameter of From and To.
    pub fn tag(&self) -> Option<&'a [u8]> {
        self.params.get(b"tag").filter(|tag| !tag.is_empty())
    }
    /// The `expires` parameter of a Contact, seconds; a number too large counts as the largest (RFC 3261 §10.3 step 6).
    pub fn expires(&self) -> Option<u32> {
        self.params.get(b"expires").and_then(super::delta_seconds)
    }
    /// The `q` parameter of a Contact in thousandths, 0 to 1000.
    pub fn q(&self) -> Option<u16> {
        let text = self.params.get(b"q")?;
        let (whole, fraction) = super::lex::split_once(text, b'.');
        let whole = super::lex::number(whole)?;
        let fraction = fraction.unwrap_or_default();
        if whole > 1 || fraction.len() > 3 {
            return None;
        }
        let mut thousandths = 0;
        for place in 0..3 {
            let digit = match fraction.get(place) {
                Some(digit @ b'0'..=b'9') => u16::from(digit - b'0'),
                Some(_) => return None,
                None => 0,
            };
            thousandths = thousandths * 10 + digit;
        }
        let thousandths = if whole == 1 { 1000 + thousandths } else { thousandths };
        (thousandths <= 1000).then_some(thousandths)
    }
}

/// One value of a Contact header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contact<'a> {
    /// `*`: every binding of the address of record (RFC 3261 §10.2.2).
    Star,
    /// An address.
    Addr(NameAddr<'a>),
}

impl<'a> Contact<'a> {
    /// Parses one value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        match trim(value) {
            b"*" => Some(Self::Star),
            value => NameAddr::parse(value).map(Self::Addr),
        }
    }
    /// The address, unless it is `*`.
    pub fn addr(self) -> Option<NameAddr<'a>> {
        match self {
            Self::Star => None,
            Self::Addr(addr) => Some(addr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_field_parse() {
        for (text, display, user, tag) in [
            ("sip:a@b;tag=1", "", "a", Some("1")),
            ("<sip:a@b;tag=x>;tag=1", "", "a", Some("1")),
            ("caller<sip:a@b>;tag=323", "caller", "a", Some("323")),
            ("\"E\\\" <x> \\\\\" < sip:a@b > ; tag = 7", "\"E\\\" <x> \\\\\"", "a", Some("7")),
            ("Bell, Alexander <sip:a@b>", "Bell, Alexander", "a", None),
            ("J\u{f6}rg M. <sip:a@b>;tag=", "J\u{f6}rg M.", "a", None),
            ("<urn:service:sos>", "", "service:sos", None),
            ("tel:911;tag=1", "", "911", Some("1")),
            // Parameters of an address without brackets may quote anything (RFC 3261 §25.1).
            ("sip:a@b;x=\"<sip:c@d>\";tag=1", "", "a", Some("1")),
            ("sip:a@b;x=\">\";y=\"<\";tag=1", "", "a", Some("1")),
            ("sip:a@b;x=\"p;tag=2,q\";tag=1", "", "a", Some("1")),
            ("sip:a@b;x=\"\\\"<\";tag=1", "", "a", Some("1")),
            ("<sip:a@b>;x=\"<sip:c@d>;tag=2\";tag=1", "", "a", Some("1")),
            ("A \"<x>\" <sip:a@b>;tag=1", "A \"<x>\"", "a", Some("1")),
            ("O\"Neil <sip:a@b>;tag=1", "O\"Neil", "a", Some("1")),
        ] {
            let addr = NameAddr::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(addr.display, display.as_bytes(), "{text}");
            assert_eq!(addr.uri.user, user.as_bytes(), "{text}");
            assert_eq!(addr.tag(), tag.map(str::as_bytes), "{text}");
        }
        let latin1 = NameAddr::parse(b"\"J\xf6rg\" <sip:a@b>;tag=1").unwrap();
        assert_eq!(latin1.display_name().as_ref(), b"J\xf6rg");
        let quoted = NameAddr::parse(b"\"E\\\" <x>\" <sip:a@b>").unwrap();
        assert_eq!(quoted.display_name().as_ref(), b"E\" <x>");
    }

    #[test]
    fn addresses_that_can_be_misread_are_refused() {
        for text in [
            "\"Mr. J. User <sip:a@b>",
            "sip:a@b?Route=x",
            "<sip:a@b",
            "<sip:a@b> x",
            "",
            "<>",
            "a@b",
            "sip:a b@c",
        ] {
            assert_eq!(NameAddr::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn q_values_are_thousandths() {
        for (q, expected) in [
            ("1", Some(1000)),
            ("0.5", Some(500)),
            ("1.000", Some(1000)),
            ("0.333", Some(333)),
            ("1.1", None),
            ("x", None),
        ] {
            let text = format!("<sip:a@b>;q={q}");
            assert_eq!(NameAddr::parse(text.as_bytes()).unwrap().q(), expected, "{q}");
        }
    }
}
