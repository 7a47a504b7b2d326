//! What is wrong with a description as a whole, for peers who are told of it. The reader of [`Session`](super::Session) is
//! tolerant; who answers asks here first.

use super::{Lines, MAX_STREAM_FORMATS, attributes, words};
use crate::header::lex::{number, split_once};

/// First payload type without a meaning of its own (RFC 3551 §6).
const DYNAMIC_FIRST: u64 = 96;
/// Last payload type that there is.
const PAYLOAD_MAX: u64 = 127;

/// Why a description cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `o=` is missing, or has no user, network, family and address.
    Origin,
    /// `s=` is missing or empty.
    Name,
    /// A `c=` has no network, family and address.
    Connection,
    /// A stream with a port has no address, of its own or of the session.
    NoConnection,
    /// An `m=` line has no media, port and profile.
    Media,
    /// A stream with a port has no format.
    NoFormat,
    /// A payload type is no number up to 127.
    Payload,
    /// A dynamic payload type has no `a=rtpmap`.
    NoMap,
}

impl Fault {
    /// The fault in the words of the library that most servers of the field read descriptions with.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Origin => "Invalid SDP origin line (PJMEDIA_SDP_EINORIGIN)",
            Self::Name => "SDP name/subject line is empty (PJMEDIA_SDP_EINNAME)",
            Self::Connection => "Invalid SDP connection line (PJMEDIA_SDP_EINCONN)",
            Self::NoConnection => "Missing SDP connection line (PJMEDIA_SDP_EMISSINGCONN)",
            Self::Media => "Invalid SDP media line (PJMEDIA_SDP_EINMEDIA)",
            Self::NoFormat => "No SDP payload format in the media line (PJMEDIA_SDP_ENOFMT)",
            Self::Payload => "Invalid SDP payload type in media line (PJMEDIA_SDP_EINPT)",
            Self::NoMap => "Missing SDP rtpmap for dynamic payload type (PJMEDIA_SDP_EMISSINGRTPMAP)",
        }
    }
}

/// What is wrong with a description; `None` when nothing is.
pub fn fault(text: &[u8]) -> Option<Fault> {
    let mut named = false;
    let mut owned = false;
    let mut has_address = false;
    let mut media: Vec<(usize, Media<'_>)> = Vec::new();
    for (at, kind, value) in (Lines { text, at: 0 }) {
        match kind {
            b'o' => {
                owned = true;
                if !is_place(value, 3) {
                    return Some(Fault::Origin);
                }
            }
            b's' => named |= !value.is_empty() || is_blank(text, at),
            b'c' => {
                if !is_place(value, 0) {
                    return Some(Fault::Connection);
                }
                match media.last_mut() {
                    Some((_, media)) => media.has_address = true,
                    None => has_address = true,
                }
            }
            b'm' => match Media::of(value) {
                Some(line) => media.push((at, line)),
                None => return Some(Fault::Media),
            },
            _ => {}
        }
    }
    let whole = match (owned, named) {
        (false, _) => Some(Fault::Origin),
        (true, false) => Some(Fault::Name),
        (true, true) => None,
    };
    let ends = media.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    let mut sections = media.iter().zip(ends);
    whole.or_else(|| {
        sections.find_map(|((at, line), end)| line.fault(has_address, text.get(*at..end).unwrap_or_default()))
    })
}

/// Whether a name is a blank, which RFC 8866 §5.3 has for sessions without a name.
fn is_blank(text: &[u8], at: usize) -> bool {
    text.get(at..).is_some_and(|line| line.starts_with(b"s= "))
}

/// Whether a line has `IN IP4|IP6 address` after so many words.
fn is_place(value: &[u8], skip: usize) -> bool {
    let mut words = words(value).skip(skip);
    let (network, family, address) = (words.next(), words.next(), words.next());
    network.is_some_and(|word| word.eq_ignore_ascii_case(b"IN"))
        && family.is_some_and(|word| word.eq_ignore_ascii_case(b"IP4") || word.eq_ignore_ascii_case(b"IP6"))
        && address.is_some()
}

/// A media line.
struct Media<'a> {
    is_on: bool,
    is_rtp: bool,
    formats: Vec<&'a [u8]>,
    has_address: bool,
}

impl<'a> Media<'a> {
    fn of(value: &'a [u8]) -> Option<Self> {
        let mut words = words(value);
        let (_, port, profile) = (words.next()?, words.next()?, words.next()?);
        let port = number(split_once(port, b'/').0)?;
        let is_rtp = super::answer::is_rtp(profile);
        let formats = words.take(MAX_STREAM_FORMATS).collect();
        Some(Self { is_on: port > 0, is_rtp, formats, has_address: false })
    }
    /// What is wrong with a stream that is not declined.
    fn fault(&self, has_address: bool, section: &[u8]) -> Option<Fault> {
        match () {
            () if !self.is_on => return None,
            () if self.formats.is_empty() => return Some(Fault::NoFormat),
            () if !(self.has_address || has_address) => return Some(Fault::NoConnection),
            () if !self.is_rtp => return None,
            () => {}
        }
        let mapped: Vec<u64> = attributes(section)
            .filter(|(name, _)| *name == b"rtpmap")
            .take(2 * MAX_STREAM_FORMATS)
            .filter_map(|(_, value)| number(words(value).next()?))
            .collect();
        self.formats.iter().find_map(|format| match number(format) {
            None => Some(Fault::Payload),
            Some(payload) if payload > PAYLOAD_MAX => Some(Fault::Payload),
            Some(payload) if payload >= DYNAMIC_FIRST && !mapped.contains(&payload) => Some(Fault::NoMap),
            Some(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc4566_5_what_is_wrong_with_a_description_is_found() {
        let good = "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 97 101\r\na=rtpmap:97 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\n";
        let own = "c=IN IP6 2001:db8::1\r\na=rtpmap:97";
        for (name, from, to, expected) in [
            ("as it should be", "", "", None),
            ("LF alone", "\r\n", "\n", None),
            ("no owner", "o=- 1 2 IN IP4 192.0.2.1\r\n", "", Some(Fault::Origin)),
            (
                "an owner without an address",
                "o=- 1 2 IN IP4 192.0.2.1",
                "o=- 1 2 IN IP4",
                Some(Fault::Origin),
            ),
            ("an owner elsewhere", "o=- 1 2 IN", "o=- 1 2 XX", Some(Fault::Origin)),
            ("no name", "s=-\r\n", "", Some(Fault::Name)),
            ("an empty name", "s=-", "s=", Some(Fault::Name)),
            ("a blank name", "s=-", "s= ", None),
            ("no address", "c=IN IP4 192.0.2.1\r\n", "", Some(Fault::NoConnection)),
            ("an address of a third kind", "c=IN IP4", "c=IN IP7", Some(Fault::Connection)),
            ("no address, no port", "c=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000", "m=audio 0", None),
            ("an address of its own", "a=rtpmap:97", own, None),
            ("no profile", "m=audio 4000 RTP/AVP 0 97 101", "m=audio 4000", Some(Fault::Media)),
            ("no port", "4000", "x", Some(Fault::Media)),
            ("no format", " 0 97 101", "", Some(Fault::NoFormat)),
            ("no format, no port", "4000 RTP/AVP 0 97 101", "0 RTP/AVP", None),
            ("a number beyond", " 0 97", " 0 128 97", Some(Fault::Payload)),
            ("no number", " 0 97", " 0 x 97", Some(Fault::Payload)),
            ("no map", "a=rtpmap:97 opus/48000/2\r\n", "", Some(Fault::NoMap)),
            ("no map, no port", "4000", "0", None),
            ("no RTP", "m=audio 4000 RTP/AVP 0 97 101", "m=image 4000 udptl t38", None),
            (
                "the second stream",
                "a=rtpmap:101",
                "m=video 5000 RTP/AVP 99\r\na=rtpmap:101",
                Some(Fault::NoMap),
            ),
        ] {
            let text = if from.is_empty() { good.to_owned() } else { good.replace(from, to) };
            assert_eq!(fault(text.as_bytes()), expected, "{name}");
        }
    }
}
