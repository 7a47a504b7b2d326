//! Session descriptions (RFC 8866): a tolerant reader here, offer and answer (RFC 3264) in [`Negotiator`].
//!
//! The reader keeps one entry a stream and finds attributes in the text when asked. What phones get wrong (LF alone, no
//! `t=` or `s=`, blanks, unknown lines, bytes that are not UTF-8) costs nothing; only a stream line nobody can read is an
//! error, because streams are matched by position. This room knows formats as [`base::FormatId`], never codecs.

use core::net::IpAddr;

use base::Direction;

use crate::header::lex::{is_token, number, split_once, trim};
use crate::uri::parse_ip;

mod answer;
pub(crate) mod crypto;
mod fault;
mod fax;
mod local;
mod passed;
mod payload;

pub use answer::{Negotiated, Negotiator, SdpError, SendFormat};
pub use crypto::{CryptoFlaw, Encryption, hide_keys};
pub use fault::{Fault, fault};
pub use fax::{FaxStream, FaxTerms};
pub use local::{Elsewhere, Feedback, Local};
pub use passed::{LocalPassed, NegotiatedPassed, PassedFormat, VideoFeedback, passed_offered, video_offered};

/// Longest session description in bytes; far more than the streams below can need.
pub const MAX_SDP: usize = 16 * 1024;
/// Most streams of a description; browsers with several cameras send about ten.
pub const MAX_STREAMS: usize = 16;
/// Payload types of one stream that are looked at.
pub const MAX_STREAM_FORMATS: usize = 64;

/// A connection address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    /// An IP address.
    Ip(IpAddr),
    /// A name that has to be resolved.
    Name(&'a [u8]),
}

/// The `o=` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Session id; with the address it names the session.
    pub id: &'a [u8],
    /// Version, which grows with every change; `None` when it is no number.
    pub version: Option<u64>,
}

/// One `m=` section.
#[derive(Debug, Clone, Copy)]
pub struct Stream<'a> {
    /// `audio`, `video`, `image`, ...
    pub kind: &'a [u8],
    /// Port; 0 refuses or ends the stream.
    pub port: u16,
    /// `RTP/AVP` and so on.
    pub protocol: &'a [u8],
    /// Formats as written, separated by blanks.
    pub formats: &'a [u8],
    /// The stream's own address.
    pub connection: Option<Address<'a>>,
    lines: &'a [u8],
}

impl<'a> Stream<'a> {
    /// The attributes of the stream, in order.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        attributes(self.lines)
    }
    /// The value of the first attribute of that name; empty for a flag.
    pub fn attribute(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.attributes().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
    /// Its own `c=` as written.
    fn connection_line(&self) -> Option<&'a [u8]> {
        let mut lines = Lines { text: self.lines, at: 0 };
        lines.find(|(_, kind, _)| *kind == b'c').map(|(_, _, value)| value)
    }
    /// RTP payload types, those above 127 left out.
    pub fn payloads(&self) -> impl Iterator<Item = u8> + use<'a> {
        words(self.formats)
            .take(MAX_STREAM_FORMATS)
            .filter_map(|word| number(word).and_then(|n| u8::try_from(n).ok()).filter(|&n| n < 128))
    }
}

/// A session description that borrows its text.
#[derive(Debug, Clone)]
pub struct Session<'a> {
    /// Who made it.
    pub origin: Option<Origin<'a>>,
    /// Address of streams without one.
    pub connection: Option<Address<'a>>,
    /// Streams in order.
    pub streams: Vec<Stream<'a>>,
    lines: &'a [u8],
}

impl<'a> Session<'a> {
    /// Reads a description; `None` when it is none, too long, or has a stream line that cannot be read.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        if text.len() > MAX_SDP {
            return None;
        }
        let mut session =
            Self { origin: None, connection: None, streams: Vec::with_capacity(2), lines: text };
        let mut seen = false;
        let mut section = 0;
        for (at, kind, value) in (Lines { text, at: 0 }) {
            match kind {
                b'v' => seen = true,
                b'o' => session.origin = session.origin.or_else(|| origin(value)),
                b'c' => {
                    let address = connection(value);
                    let place = match session.streams.last_mut() {
                        Some(stream) => &mut stream.connection,
                        None => &mut session.connection,
                    };
                    *place = place.or(address);
                }
                b'm' => {
                    session.end_section(text.get(section..at).unwrap_or_default());
                    section = at;
                    if session.streams.len() == MAX_STREAMS {
                        return None;
                    }
                    session.streams.push(stream(value)?);
                    seen = true;
                }
                _ => {}
            }
        }
        session.end_section(text.get(section..).unwrap_or_default());
        seen.then_some(session)
    }

    fn end_section(&mut self, lines: &'a [u8]) {
        match self.streams.last_mut() {
            Some(stream) => stream.lines = lines,
            None => self.lines = lines,
        }
    }

    /// The attributes before the first stream.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        attributes(self.lines)
    }
    /// The attribute of the stream, or else of the session.
    pub fn attribute(&self, stream: &Stream<'a>, name: &[u8]) -> Option<&'a [u8]> {
        stream
            .attribute(name)
            .or_else(|| self.attributes().find(|(found, _)| *found == name).map(|(_, value)| value))
    }
    /// Where the stream wants its packets.
    pub fn address(&self, stream: &Stream<'a>) -> Option<Address<'a>> {
        stream.connection.or(self.connection)
    }
    /// The direction from the describer's side: the stream's attribute, the session's, or both ways (RFC 8866 §6.7).
    pub fn direction(&self, stream: &Stream<'a>) -> Direction {
        let named = |(name, _): (&[u8], &[u8])| match name {
            b"sendrecv" => Some(Direction::SendRecv),
            b"sendonly" => Some(Direction::SendOnly),
            b"recvonly" => Some(Direction::RecvOnly),
            b"inactive" => Some(Direction::Inactive),
            _ => None,
        };
        stream.attributes().find_map(named).or_else(|| self.attributes().find_map(named)).unwrap_or_default()
    }
}

/// The lines `x=value`, each with the offset where it begins; others are skipped. CR and LF both end a line.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, u8, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
            let len = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            self.at = start + len + 1;
            let line = trim(rest.get(..len)?);
            // As nearly all write it; what follows reads `x = value` too.
            if let [kind, b'=', value @ ..] = line
                && *kind != b'='
            {
                return Some((start, kind.to_ascii_lowercase(), trim(value)));
            }
            let (kind, value) = split_once(line, b'=');
            if let ([kind], Some(value)) = (trim(kind), value) {
                return Some((start, kind.to_ascii_lowercase(), trim(value)));
            }
        }
    }
}

fn attributes(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    Lines { text: lines, at: 0 }.filter(|(_, kind, _)| *kind == b'a').map(|(_, _, value)| {
        let (name, value) = split_once(value, b':');
        (trim(name), value.map(trim).unwrap_or_default())
    })
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b' ' || b == b'\t').filter(|word| !word.is_empty())
}

fn origin(value: &[u8]) -> Option<Origin<'_>> {
    let mut words = words(value).skip(1);
    Some(Origin { id: words.next()?, version: number(words.next()?) })
}

fn connection(value: &[u8]) -> Option<Address<'_>> {
    let address = words(value).nth(2)?;
    let address = split_once(address, b'/').0; // multicast TTL
    Some(parse_ip(address).map_or(Address::Name(address), Address::Ip))
}

fn stream(value: &[u8]) -> Option<Stream<'_>> {
    let mut rest = value;
    let mut word = || {
        let start = trim(rest);
        let len = start.iter().position(|&b| b == b' ' || b == b'\t').unwrap_or(start.len());
        let (word, after) = start.split_at_checked(len)?;
        rest = after;
        (!word.is_empty()).then_some(word)
    };
    let (kind, port, protocol) = (word()?, word()?, word()?);
    let port = u16::try_from(number(split_once(port, b'/').0)?).ok()?;
    // Both go back to the peer when the stream is declined.
    if !is_token(kind) || !protocol.split(|&b| b == b'/').all(is_token) {
        return None;
    }
    Some(Stream { kind, port, protocol, formats: trim(rest), connection: None, lines: &[] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_but_common_descriptions_are_read() {
        let whole = "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=sendonly\r\n";
        let latin1 = [whole.as_bytes(), b"i=J\xf6rg\r\n"].concat();
        for (name, text) in [
            ("as it should be", whole.as_bytes().to_vec()),
            ("LF only", whole.replace('\r', "").into_bytes()),
            ("CR only", whole.replace('\n', "").into_bytes()),
            ("no t=", whole.replace("t=0 0\r\n", "").into_bytes()),
            ("no s=", whole.replace("s=-\r\n", "").into_bytes()),
            ("empty s=", whole.replace("s=-", "s=").into_bytes()),
            ("no v=", whole.replace("v=0\r\n", "").into_bytes()),
            (
                "blanks",
                whole.replace("m=audio 4000", " m= audio  4000").replace("\r\n", "  \r\n").into_bytes(),
            ),
            ("unknown lines", whole.replace("t=0 0", "t=0 0\r\nx=y\r\nnonsense\r\n\r\nzz=1").into_bytes()),
            ("not UTF-8", latin1),
            ("no line break at the end", whole.trim_end().as_bytes().to_vec()),
            ("port count", whole.replace("4000 ", "4000/1 ").into_bytes()),
        ] {
            let session = Session::parse(&text).unwrap_or_else(|| panic!("{name}"));
            let stream = session.streams[0];
            assert_eq!((stream.port, stream.payloads().collect::<Vec<_>>()), (4000, vec![0, 101]), "{name}");
            assert_eq!(session.address(&stream), Some(Address::Ip([192, 0, 2, 1].into())), "{name}");
            assert_eq!(session.direction(&stream), Direction::SendOnly, "{name}");
            assert_eq!(stream.attribute(b"rtpmap"), Some(&b"101 telephone-event/8000"[..]), "{name}");
        }
    }

    #[test]
    fn addresses_and_attributes_of_a_stream_win_over_those_of_the_session() {
        let text = b"v=0\nc=IN IP6 2001:db8::1\na=inactive\na=ptime:30\nm=audio 1 RTP/AVP 0\nm=video 2 RTP/AVP 31\nc=IN IP4 224.2.1.1/127\na=recvonly\n";
        let session = Session::parse(text).unwrap();
        let [audio, video] = session.streams[..] else { panic!() };
        assert_eq!(session.address(&audio), Some(Address::Ip("2001:db8::1".parse().unwrap())));
        assert_eq!(session.address(&video), Some(Address::Ip([224, 2, 1, 1].into())));
        assert_eq!(session.direction(&audio), Direction::Inactive);
        assert_eq!(session.direction(&video), Direction::RecvOnly);
        assert_eq!(session.attribute(&video, b"ptime"), Some(&b"30"[..]));
    }

    #[test]
    fn what_cannot_be_matched_by_position_is_refused() {
        let many = "m=audio 1 RTP/AVP 0\n".repeat(MAX_STREAMS + 1);
        let long = "a=x\n".repeat(MAX_SDP);
        for text in [
            "",
            "hello",
            "v=0\nm=audio x RTP/AVP 0\n",
            "v=0\nm=audio 1\n",
            "v=0\nm=au\0dio 1 RTP/AVP 0\n",
            "v=0\nm=audio 70000 RTP/AVP 0\n",
            &many,
            &long,
        ] {
            assert!(Session::parse(text.as_bytes()).is_none(), "{}", &text[..text.len().min(40)]);
        }
    }
}
