//! URIs: `sip`, `sips`, `tel`, and any other scheme as opaque text (RFC 3261 §19.1, RFC 3966).
//!
//! Borrowed and split at the structural bytes only; percent-encoding is undone when asked for. What the field sends and
//! the grammar does not allow, but nobody can misread, is accepted: `#` in users, `_` in hosts, bytes above 127 in users.

use core::net::{IpAddr, Ipv6Addr};
use std::borrow::Cow;

use crate::header::lex::{Params, number, split_around, split_once};

/// The scheme of a URI; compared without regard to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme<'a> {
    /// `sip`
    Sip,
    /// `sips`
    Sips,
    /// `tel`
    Tel,
    /// Any other, as it was written.
    Other(&'a [u8]),
}

impl<'a> Scheme<'a> {
    /// The scheme without its colon.
    pub const fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Sip => b"sip",
            Self::Sips => b"sips",
            Self::Tel => b"tel",
            Self::Other(scheme) => scheme,
        }
    }
}

/// A host as it stands on the wire: a name, an IPv4 address, or an IPv6 address in brackets.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Host<'a>(&'a [u8]);

impl<'a> Host<'a> {
    /// Checks that `bytes` is a host; bracketed IPv6 must be an address, names may hold `_`.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let valid = match bytes {
            [] => false,
            [b'[', inner @ .., b']'] => parse_ipv6(inner).is_some(),
            name => name.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
        };
        valid.then_some(Self(bytes))
    }
    /// The text, brackets included.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
    /// The address, when the host is one and not a name.
    pub fn ip(self) -> Option<IpAddr> {
        parse_ip(self.0)
    }
}

impl core::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// The IP address these bytes are, IPv6 with or without brackets (RFC 5118 §4.5 asks for both in `received`).
pub fn parse_ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes {
        [b'[', inner @ .., b']'] => parse_ipv6(inner).map(IpAddr::V6),
        [b'0'..=b'9', ..] if !bytes.contains(&b':') => {
            core::str::from_utf8(bytes).ok()?.parse().ok().map(IpAddr::V4)
        }
        _ if bytes.contains(&b':') => parse_ipv6(bytes).map(IpAddr::V6),
        _ => None,
    }
}

/// Longest text of an IPv6 address with an IPv4 tail, plus the spare colon of RFC 5118 §4.10.
const IPV6_TEXT_MAX: usize = 46;

fn parse_ipv6(bytes: &[u8]) -> Option<Ipv6Addr> {
    if bytes.len() > IPV6_TEXT_MAX {
        return None;
    }
    let text = core::str::from_utf8(bytes).ok()?;
    match text.parse() {
        Ok(ip) => Some(ip),
        // RFC 3261's grammar once allowed three colons before an IPv4 tail; RFC 5118 §4.10 asks to read them as two.
        Err(_) if text.contains(":::") && text.contains('.') => text.replacen(":::", "::", 1).parse().ok(),
        Err(_) => None,
    }
}

/// A parsed URI that borrows the text it was parsed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uri<'a> {
    raw: &'a [u8],
    /// Scheme.
    pub scheme: Scheme<'a>,
    /// User part, still percent-encoded; the number of a `tel` URI; the whole text after the scheme of any other.
    pub user: &'a [u8],
    /// Password, still percent-encoded.
    pub password: Option<&'a [u8]>,
    /// Host; empty when the scheme is neither `sip` nor `sips`.
    pub host: Host<'a>,
    /// Port, when written.
    pub port: Option<u16>,
    /// Parameters.
    pub params: Params<'a>,
    /// What follows `?`, without it; empty when there is none.
    pub headers: &'a [u8],
}

impl<'a> Uri<'a> {
    /// Where `:port` stands in the text; `None` without a port.
    pub fn port_range(&self) -> Option<(usize, usize)> {
        self.port?;
        let host = self.host.as_bytes();
        // The host is a part of the text.
        let end = (host.as_ptr() as usize).checked_sub(self.raw.as_ptr() as usize)? + host.len();
        let digits =
            self.raw.get(end..)?.strip_prefix(b":")?.iter().take_while(|b| b.is_ascii_digit()).count();
        Some((end, end + 1 + digits))
    }
    /// Parses a URI that fills `raw`; `None` when it is none or holds white space, `<`, `>` or quotes.
    pub fn parse(raw: &'a [u8]) -> Option<Self> {
        if holds_forbidden(raw) {
            return None;
        }
        let (scheme, rest) = match raw {
            [s, i, p, b':', rest @ ..] if [*s, *i, *p].eq_ignore_ascii_case(b"sip") => (Scheme::Sip, rest),
            _ => split_scheme(raw)?,
        };
        let mut uri = Self {
            raw,
            scheme,
            user: &[],
            password: None,
            host: Host::default(),
            port: None,
            params: Params::default(),
            headers: &[],
        };
        match scheme {
            Scheme::Sip | Scheme::Sips => uri.parse_sip(rest)?,
            Scheme::Tel => {
                let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
                let (number, params) = rest.split_at_checked(end)?;
                uri.user = number;
                uri.params = Params::new(params);
            }
            Scheme::Other(_) => uri.user = rest,
        }
        (!rest.is_empty()).then_some(uri)
    }

    fn parse_sip(&mut self, rest: &'a [u8]) -> Option<()> {
        let host_part = match memchr::memchr(b'@', rest) {
            Some(at) => {
                let (userinfo, host_part) = split_around(rest, at);
                (self.user, self.password) = split_once(userinfo, b':');
                host_part
            }
            None => rest,
        };
        let host_end = match host_part {
            [b'[', ..] => memchr::memchr(b']', host_part)? + 1,
            _ => memchr::memchr3(b':', b';', b'?', host_part).unwrap_or(host_part.len()),
        };
        let (host, mut rest) = host_part.split_at_checked(host_end)?;
        self.host = Host::parse(host)?;
        if let [b':', after @ ..] = rest {
            let end = memchr::memchr2(b';', b'?', after).unwrap_or(after.len());
            let (port, after) = after.split_at_checked(end)?;
            self.port = Some(u16::try_from(number(port)?).ok()?);
            rest = after;
        }
        match rest {
            [] => {}
            [b';' | b'?', ..] => {
                let end = memchr::memchr(b'?', rest).unwrap_or(rest.len());
                let (params, headers) = rest.split_at_checked(end)?;
                self.params = Params::new(params);
                self.headers = headers.get(1..).unwrap_or_default();
            }
            _ => return None,
        }
        Some(())
    }

    /// The text this was parsed from.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }
    /// Whether the scheme is `sip` or `sips`.
    pub const fn is_sip(&self) -> bool {
        matches!(self.scheme, Scheme::Sip | Scheme::Sips)
    }
    /// Whether a request can be sent there: the scheme is `sip` or `sips`, and there is a host.
    pub fn can_be_sent_to(&self) -> bool {
        self.is_sip() && !self.host.as_bytes().is_empty()
    }
    /// The user part with percent-encoding undone.
    pub fn user_decoded(&self) -> Cow<'a, [u8]> {
        percent_decode(self.user)
    }
    /// The same, without parameters in it where they are not wanted ([`user_without_options`](Self::user_without_options)).
    pub fn user_meant(&self, without_options: bool) -> Cow<'a, [u8]> {
        if without_options { percent_decode(self.user_without_options()) } else { self.user_decoded() }
    }
    /// Port, or the default of scheme and transport (RFC 3261 §19.1.2).
    pub fn port_or_default(&self) -> u16 {
        let tls = self.scheme == Scheme::Sips
            || self.params.get(b"transport").is_some_and(|t| t.eq_ignore_ascii_case(b"tls"));
        self.port.unwrap_or(if tls { 5061 } else { 5060 })
    }
    /// The user without parameters that some phones put inside it (`1001;phone-context=x@host`).
    pub fn user_without_options(&self) -> &'a [u8] {
        split_once(self.user, b';').0
    }
    /// The `?name=value` headers, still percent-encoded.
    pub fn header_fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.headers.split(|&b| b == b'&').filter(|field| !field.is_empty()).map(|field| {
            let (name, value) = split_once(field, b'=');
            (name, value.unwrap_or_default())
        })
    }

    /// Whether two URIs name the same resource (RFC 3261 §19.1.4; other schemes by their bytes, scheme without case).
    pub fn matches(&self, other: &Uri<'_>) -> bool {
        if !self.scheme.as_bytes().eq_ignore_ascii_case(other.scheme.as_bytes()) {
            return false;
        }
        match self.scheme {
            Scheme::Sip | Scheme::Sips => {}
            Scheme::Tel => return tel_digits(self.user).eq(tel_digits(other.user)),
            Scheme::Other(_) => return self.user == other.user,
        }
        decoded(self.user).eq(decoded(other.user))
            && self.password.map(|p| decoded(p).collect::<Vec<_>>())
                == other.password.map(|p| decoded(p).collect::<Vec<_>>())
            && same_host(self.host, other.host)
            && self.port == other.port
            && params_match(self.params, other.params)
            && params_match(other.params, self.params)
            && headers_match(self, other)
            && headers_match(other, self)
    }
}

/// Whether there is what a URI may never hold: controls, space, and the bytes that delimit it elsewhere.
/// No early exit, so that the loop becomes vector code.
fn holds_forbidden(raw: &[u8]) -> bool {
    raw.iter()
        .fold(false, |found, &b| found | (b <= b' ') | (b == 0x7F) | (b == b'<') | (b == b'>') | (b == b'"'))
}

fn split_scheme(raw: &[u8]) -> Option<(Scheme<'_>, &[u8])> {
    let (scheme, rest) = split_once(raw, b':');
    let rest = rest?;
    let valid = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if !valid {
        return None;
    }
    let scheme = if scheme.eq_ignore_ascii_case(b"sip") {
        Scheme::Sip
    } else if scheme.eq_ignore_ascii_case(b"sips") {
        Scheme::Sips
    } else if scheme.eq_ignore_ascii_case(b"tel") {
        Scheme::Tel
    } else {
        Scheme::Other(scheme)
    };
    Some((scheme, rest))
}

/// Visual separators do not tell telephone numbers apart (RFC 3966 §3).
fn tel_digits(number: &[u8]) -> impl Iterator<Item = u8> + '_ {
    number.iter().filter(|b| !matches!(b, b'-' | b'.' | b'(' | b')')).map(u8::to_ascii_lowercase)
}

fn same_host(a: Host<'_>, b: Host<'_>) -> bool {
    match (a.ip(), b.ip()) {
        (Some(a), Some(b)) => a == b,
        _ => a.0.eq_ignore_ascii_case(b.0),
    }
}

/// Each parameter of `a` that also stands in `b` is equal there; user, ttl, method, maddr and transport must stand in both.
fn params_match(a: Params<'_>, b: Params<'_>) -> bool {
    const IN_BOTH: [&[u8]; 5] = [b"user", b"ttl", b"method", b"maddr", b"transport"];
    // Of a name that stands twice the first counts, on both sides.
    let pairs = a.iter().take(MAX_COMPARED).map(|(name, _)| (name, a.get(name), b.find(name)));
    pairs.into_iter().all(|(name, value, found)| match found {
        Some(found) => decoded(value.unwrap_or_default())
            .map(|b| b.to_ascii_lowercase())
            .eq(decoded(found.unwrap_or_default()).map(|b| b.to_ascii_lowercase())),
        None => !IN_BOTH.iter().any(|special| special.eq_ignore_ascii_case(name)),
    })
}

/// Parameters and headers of a URI that a comparison looks at: the rest cannot make a message quadratic.
const MAX_COMPARED: usize = 64;

fn headers_match(a: &Uri<'_>, b: &Uri<'_>) -> bool {
    a.header_fields().take(MAX_COMPARED).all(|(name, value)| {
        b.header_fields()
            .take(MAX_COMPARED)
            .any(|(other, found)| other.eq_ignore_ascii_case(name) && decoded(value).eq(decoded(found)))
    })
}

/// The bytes with percent-encoding undone; a `%` without two hex digits stands for itself.
fn decoded(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (byte, after) = match rest {
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (b'%', rest.get(1..)?),
            },
            [byte, after @ ..] => (*byte, after),
            [] => return None,
        };
        rest = after;
        Some(byte)
    })
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Undoes percent-encoding; borrows when there is none. The result may hold any byte, NUL included.
pub fn percent_decode(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', bytes).is_none() {
        return bytes.into();
    }
    decoded(bytes).collect::<Vec<_>>().into()
}

/// Appends `user` so that it is a valid user part (RFC 3261 §25.1 `user`); bytes outside the grammar become `%XX`.
pub fn percent_encode_user(user: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in user {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')')
            || matches!(byte, b'&' | b'=' | b'+' | b'$' | b',' | b';' | b'?' | b'/');
        if plain {
            out.push(byte);
        } else {
            let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_the_field_split_where_they_should() {
        for (text, user, host, port) in [
            ("sip:alice@example.com", "alice", "example.com", None),
            ("SIP:alice:secret@example.com:5070;transport=tcp?Subject=x", "alice", "example.com", Some(5070)),
            ("sip:*72#100@pbx", "*72#100", "pbx", None),
            ("sips:[2001:db8::10]:5061", "", "[2001:db8::10]", Some(5061)),
            ("sip:user@[2001:db8:::192.0.2.1]", "user", "[2001:db8:::192.0.2.1]", None),
            ("sip:1;p=a?b@my_host", "1;p=a?b", "my_host", None),
            ("tel:+1-201-555-0123;phone-context=x", "+1-201-555-0123", "", None),
            ("urn:service:sos", "service:sos", "", None),
        ] {
            let uri = Uri::parse(text.as_bytes()).unwrap();
            assert_eq!(uri.user, user.as_bytes(), "{text}");
            assert_eq!(uri.host.as_bytes(), host.as_bytes(), "{text}");
            assert_eq!(uri.port, port, "{text}");
        }
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for text in [
            "",
            "sip",
            "sip:",
            "sip:@",
            "sip:a@",
            "sip:a@b:70000",
            "sip:a@b:x",
            "sip:2001:db8::10",
            "sip:a@[::g]",
            "sip:a@[::1",
            "sip:a b@c",
            "<sip:a@b>",
            "1a:b",
            "sip:a@b/c",
            "sip:a@b:",
        ] {
            assert_eq!(Uri::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn comparison_follows_rfc_3261_19_1_4() {
        for (a, b, same) in [
            ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtLanTa.CoM;Transport=tcp", true),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5", true),
            ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;newparam=5", true),
            (
                "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
                "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com",
                true,
            ),
            (
                "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
                "sip:alice@atlanta.com?priority=urgent&subject=project%20x",
                true,
            ),
            ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP", false),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060", false),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp", false),
            ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting", false),
            ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off", false),
            ("sip:a@[2001:DB8::1]", "sip:a@[2001:db8:0::1]", true),
            ("tel:+1-201-555", "tel:+1201555", true),
            ("sips:a@b", "sip:a@b", false),
            ("sip:a@b;p=1;p=2", "sip:a@b;p=1;p=2", true),
            ("sip:a@b;p=1;p=2", "sip:a@b;p=2;p=1", false),
        ] {
            let (left, right) = (Uri::parse(a.as_bytes()).unwrap(), Uri::parse(b.as_bytes()).unwrap());
            assert_eq!(left.matches(&right), same, "{a} | {b}");
            assert_eq!(right.matches(&left), same, "{b} | {a}");
        }
    }

    #[test]
    fn users_are_encoded_so_that_they_parse_back() {
        let user: Vec<u8> = (0..=255).collect();
        let mut text = b"sip:".to_vec();
        percent_encode_user(&user, &mut text);
        text.extend_from_slice(b"@h");
        assert_eq!(Uri::parse(&text).unwrap().user_decoded().as_ref(), user);
    }
}
