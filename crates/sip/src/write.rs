//! Writers: requests and responses straight into a buffer that is used again and again.
//!
//! Whatever a caller passes, a value stays one value: CR, LF and NUL become spaces in [`push_clean`], the one place all
//! values go through. Lines of a received message are copied whole where the parser found them to be single lines.

use core::fmt::Write as _;
use core::net::{IpAddr, SocketAddr};

use crate::header::lex::{Params, is_token_byte, trim_end};
use crate::header::{HeaderName, Method, NameAddr, Via};
use crate::message::{Message, Slot, Status};

/// What a response says besides its status.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reply<'a> {
    /// Our tag, added to To when it has none; `None` in a 100.
    pub to_tag: Option<&'a [u8]>,
    /// Where the request came from: noted in the top Via as `received` and `rport` (RFC 3261 §18.2.1, RFC 3581 §4).
    /// `None` copies the Via as it is.
    pub source: Option<SocketAddr>,
    /// Another phrase than the usual one.
    pub phrase: Option<&'a [u8]>,
    /// Fills `rport` although the request did not ask for it (`force_rport`).
    pub force_rport: bool,
}

/// Writes one message; made by [`MessageWriter::request`] or [`MessageWriter::response`], ended by
/// [`MessageWriter::body`] or [`MessageWriter::finish`].
#[derive(Debug)]
#[must_use = "the message is complete only after `body` or `finish`"]
pub struct MessageWriter<'o> {
    out: &'o mut Vec<u8>,
}

/// Room that holds an ordinary message, so that the buffer grows once at most.
const ROOM: usize = 2 * 1024;

impl<'o> MessageWriter<'o> {
    /// Empties `out` and writes the request line.
    pub fn request(out: &'o mut Vec<u8>, method: Method<'_>, uri: impl AsRef<[u8]>) -> Self {
        out.clear();
        out.reserve(ROOM);
        push_token(out, method.as_bytes());
        out.push(b' ');
        push_word(out, uri.as_ref());
        out.extend_from_slice(b" SIP/2.0\r\n");
        Self { out }
    }

    /// Empties `out` and writes the status line and what a response takes over from its request: Via, From, To, Call-ID,
    /// CSeq, in 101 to 299 Record-Route, in 100 Timestamp (RFC 3261 §8.2.6.2, §12.1.1).
    pub fn response(out: &'o mut Vec<u8>, request: &Message<'_>, status: Status, reply: &Reply<'_>) -> Self {
        out.clear();
        out.reserve(ROOM);
        let [hundreds, tens, ones] = status.digits();
        out.extend_from_slice(&[b'S', b'I', b'P', b'/', b'2', b'.', b'0', b' ', hundreds, tens, ones, b' ']);
        match reply.phrase {
            Some(phrase) => push_clean(out, phrase),
            None => out.extend_from_slice(status.phrase().as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
        let mut writer = Self { out };
        writer.take_over(request, status, reply);
        writer
    }

    fn take_over(&mut self, request: &Message<'_>, status: Status, reply: &Reply<'_>) {
        const VIA: u8 = HeaderName::Via.id();
        const TO: u8 = HeaderName::To.id();
        const FROM: u8 = HeaderName::From.id();
        const CALL_ID: u8 = HeaderName::CallId.id();
        const CSEQ: u8 = HeaderName::CSeq.id();
        const RECORD_ROUTE: u8 = HeaderName::RecordRoute.id();
        const TIMESTAMP: u8 = HeaderName::Timestamp.id();
        let code = status.code();
        let mut source = reply.source;
        // Lines that follow each other in the request are copied together.
        let mut run: Option<(usize, usize)> = None;
        for slot in request.slots() {
            let copied = match slot.id {
                VIA => source.is_none(),
                TO => reply.to_tag.is_none() || has_tag(slot.value(request)),
                FROM | CALL_ID | CSEQ => true,
                RECORD_ROUTE if code > 100 && code < 300 => true,
                TIMESTAMP if code == 100 => true,
                _ => continue,
            };
            if copied && let Some((start, end)) = slot.line_range() {
                run = match run {
                    Some((from, to)) if to == start => Some((from, end)),
                    _ => {
                        self.flush(request, run);
                        Some((start, end))
                    }
                };
                continue;
            }
            self.flush(request, run.take());
            match (slot.id, source.take_if(|_| slot.id == VIA), reply.to_tag) {
                (VIA, Some(source), _) => self.top_via(slot.value(request), source, reply.force_rport),
                (TO, _, Some(tag)) if !copied => {
                    self.out.extend_from_slice(b"To: ");
                    push_clean(self.out, slot.value(request));
                    self.out.extend_from_slice(b";tag=");
                    push_clean(self.out, tag);
                    self.out.extend_from_slice(b"\r\n");
                }
                _ => self.copy_slot(request, slot),
            }
        }
        self.flush(request, run);
    }

    fn flush(&mut self, request: &Message<'_>, run: Option<(usize, usize)>) {
        if let Some((start, end)) = run {
            self.out.extend_from_slice(request.as_bytes().get(start..end).unwrap_or_default());
        }
    }

    /// The field with the topmost Via, `received` and `rport` set to `source`; further values of the field follow as they are.
    fn top_via(&mut self, value: &[u8], source: SocketAddr, force_rport: bool) {
        let first = crate::header::CommaList::new(value).next().unwrap_or_default();
        let Some(via) = Via::parse(first) else { return self.line(HeaderName::Via, value) };
        let sent_by_end = memchr::memchr(b';', first).unwrap_or(first.len());
        self.out.extend_from_slice(b"Via: ");
        push_clean(self.out, trim_end(first.get(..sent_by_end).unwrap_or_default()));
        let ip = unmapped(source.ip());
        let wants_rport = force_rport || via.rport().is_some();
        if wants_rport {
            write!(Clean(self.out), ";rport={}", source.port()).ok();
        }
        if wants_rport || via.host.ip().map(unmapped) != Some(ip) {
            write!(Clean(self.out), ";received={ip}").ok();
        }
        // The branch comes last: some peers make their next Via by appending to the one they got.
        push_params_but(self.out, via.params, &[b"received", b"rport", b"branch"]);
        if let Some(branch) = via.branch() {
            self.out.extend_from_slice(b";branch=");
            push_clean(self.out, branch);
        }
        let rest = memchr::memchr(b',', value)
            .and_then(|_| value.get(crate::header::lex::find_outside(value, b',')..))
            .unwrap_or_default();
        push_clean(self.out, rest);
        self.out.extend_from_slice(b"\r\n");
    }

    fn copy_slot(&mut self, message: &Message<'_>, slot: &Slot) {
        match slot.line(message) {
            Some(line) => self.out.extend_from_slice(line),
            None => self.line(slot.name(message), slot.value(message)),
        }
    }

    fn name(&mut self, name: HeaderName<'_>) {
        match name.prefix() {
            Some(prefix) => self.out.extend_from_slice(prefix),
            None => {
                push_token(self.out, name.as_bytes());
                self.out.extend_from_slice(b": ");
            }
        }
    }

    fn line(&mut self, name: HeaderName<'_>, value: &[u8]) {
        self.name(name);
        push_clean(self.out, value);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes one field.
    pub fn header(&mut self, name: HeaderName<'_>, value: impl AsRef<[u8]>) -> &mut Self {
        self.line(name, value.as_ref());
        self
    }
    /// Writes one field whose value is these parts, one after the other.
    pub fn header_parts(&mut self, name: HeaderName<'_>, parts: &[&[u8]]) -> &mut Self {
        self.name(name);
        parts.iter().for_each(|part| push_clean(self.out, part));
        self.out.extend_from_slice(b"\r\n");
        self
    }
    /// Writes one field whose value is formatted: `writer.header_fmt(HeaderName::CSeq, format_args!("{n} {method}"))`.
    pub fn header_fmt(&mut self, name: HeaderName<'_>, value: core::fmt::Arguments<'_>) -> &mut Self {
        self.name(name);
        // Formatting into a Vec cannot fail, and a Display that does leaves a shorter value.
        Clean(self.out).write_fmt(value).ok();
        self.out.extend_from_slice(b"\r\n");
        self
    }
    /// Copies every field of that name from another message.
    pub fn copy(&mut self, message: &Message<'_>, name: HeaderName<'_>) -> &mut Self {
        for slot in message.slots_of(name) {
            self.copy_slot(message, slot);
        }
        self
    }
    /// Copies every field of that name from another message under a new name (Record-Route to Route).
    pub fn copy_as(&mut self, message: &Message<'_>, name: HeaderName<'_>, new: HeaderName<'_>) -> &mut Self {
        for slot in message.slots_of(name) {
            self.line(new, slot.value(message));
        }
        self
    }
    /// Ends the message with a body.
    pub fn body(self, content_type: impl AsRef<[u8]>, body: &[u8]) {
        self.out.extend_from_slice(b"Content-Type: ");
        push_clean(self.out, content_type.as_ref());
        self.out.extend_from_slice(b"\r\nContent-Length: ");
        push_number(self.out, body.len());
        self.out.extend_from_slice(b"\r\n\r\n");
        self.out.extend_from_slice(body);
    }
    /// Ends the message without a body.
    pub fn finish(self) {
        self.out.extend_from_slice(b"Content-Length: 0\r\n\r\n");
    }
}

/// IPv4-mapped IPv6 addresses, which dual-stack sockets report, are IPv4 to everyone else.
fn unmapped(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// Whether a To has a tag. One that ends with its angle bracket has no parameters at all.
fn has_tag(to: &[u8]) -> bool {
    to.last() != Some(&b'>') && NameAddr::parse(to).is_some_and(|to| to.tag().is_some())
}

fn push_params_but(out: &mut Vec<u8>, params: Params<'_>, without: &[&[u8]]) {
    for (name, value) in params.iter() {
        if without.iter().any(|skip| skip.eq_ignore_ascii_case(name)) {
            continue;
        }
        out.push(b';');
        push_clean(out, name);
        if let Some(value) = value {
            out.push(b'=');
            push_clean(out, value);
        }
    }
}

/// Appends `value` with CR, LF and NUL made spaces: the only way a value reaches the wire.
pub fn push_clean(out: &mut Vec<u8>, value: &[u8]) {
    // All three lie below 14; no early exit, so that the loop becomes vector code.
    if !value.iter().fold(false, |found, &b| found | (b < 14)) {
        out.extend_from_slice(value);
    } else {
        out.extend(value.iter().map(|&b| if matches!(b, b'\r' | b'\n' | 0) { b' ' } else { b }));
    }
}

/// Appends a method or header name, other bytes than a token's left out.
fn push_token(out: &mut Vec<u8>, token: &[u8]) {
    if token.iter().all(|&b| is_token_byte(b)) {
        out.extend_from_slice(token);
    } else {
        out.extend(token.iter().filter(|&&b| is_token_byte(b)));
    }
}

/// Appends a Request-URI; white space and controls, which would end it, are left out.
fn push_word(out: &mut Vec<u8>, word: &[u8]) {
    if word.iter().all(|&b| b > b' ') {
        out.extend_from_slice(word);
    } else {
        out.extend(word.iter().filter(|&&b| b > b' '));
    }
}

/// Appends a display name in quotes, its own quotes and backslashes escaped; nothing for an empty one.
pub fn push_display_name(out: &mut Vec<u8>, name: &[u8]) {
    if name.is_empty() {
        return;
    }
    out.push(b'"');
    for &byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\r' | b'\n' | 0 => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(b"\" ");
}

fn push_number(out: &mut Vec<u8>, number: usize) {
    let mut digits = [0_u8; 20];
    let mut rest = number;
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// Formats into the buffer through [`push_clean`].
struct Clean<'o>(&'o mut Vec<u8>);

impl core::fmt::Write for Clean<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        push_clean(self.0, text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Index;

    const REQUEST: &[u8] = b"INVITE sip:bob@h SIP/2.0\r\n\
        Via: SIP/2.0/UDP 10.0.0.1:5060;rport;branch=z9hG4bK1, SIP/2.0/UDP p2\r\n\
        v: SIP/2.0/UDP p3\r\n\
        Record-Route: <sip:p1;lr>,\r\n <sip:p2;lr>\r\n\
        From: <sip:a@b>;tag=1\r\nTo: Bob\r\n <sip:b@b>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\nTimestamp: 5\r\n\r\n";

    fn respond(status: Status, reply: &Reply<'_>) -> String {
        let mut index = Index::new();
        let request = Message::parse(REQUEST, &mut index).unwrap();
        let mut out = Vec::new();
        MessageWriter::response(&mut out, &request, status, reply).finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_response_takes_over_what_rfc_3261_8_2_6_2_names() {
        let reply = Reply {
            to_tag: Some(b"us"),
            source: Some("[::ffff:192.0.2.7]:4321".parse().unwrap()),
            ..Reply::default()
        };
        assert_eq!(
            respond(Status::RINGING, &reply),
            "SIP/2.0 180 Ringing\r\n\
             Via: SIP/2.0/UDP 10.0.0.1:5060;rport=4321;received=192.0.2.7;branch=z9hG4bK1, SIP/2.0/UDP p2\r\n\
             Via: SIP/2.0/UDP p3\r\n\
             Record-Route: <sip:p1;lr>,   <sip:p2;lr>\r\n\
             From: <sip:a@b>;tag=1\r\nTo: Bob   <sip:b@b>;tag=us\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\n\
             Content-Length: 0\r\n\r\n"
        );
        let trying = respond(Status::TRYING, &Reply::default());
        assert!(trying.contains("Timestamp: 5\r\n") && !trying.contains("Record-Route"), "{trying}");
        assert!(!respond(Status::BUSY_HERE, &reply).contains("Record-Route"));
    }

    #[test]
    fn no_value_can_end_its_line() {
        let evil = "a\r\nX-Evil: 1\r\n\r\nbody\0";
        let bytes = evil.as_bytes();
        let reply = Reply { to_tag: Some(bytes), phrase: Some(bytes), ..Reply::default() };
        assert_eq!(respond(Status::OK, &reply).matches("\r\n").count(), 10);
        let mut out = Vec::new();
        let mut index = Index::new();
        let request = Message::parse(REQUEST, &mut index).unwrap();
        let mut writer = MessageWriter::request(&mut out, Method::Other(bytes), evil);
        writer
            .header(HeaderName::Subject, evil)
            .header(HeaderName::Other(bytes), evil)
            .header_parts(HeaderName::Contact, &[bytes, bytes])
            .header_fmt(HeaderName::CSeq, format_args!("{evil}"))
            .copy(&request, HeaderName::RecordRoute)
            .copy_as(&request, HeaderName::RecordRoute, HeaderName::Route);
        writer.body(evil, b"x");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("\r\n").count(), 10, "{text}");
        assert!(!text.contains("\nX-Evil") && !text.contains('\0'), "{text}");
        let mut name = Vec::new();
        push_display_name(&mut name, b"a\"b\\\r\nc");
        assert_eq!(name, b"\"a\\\"b\\\\  c\" ");
    }

    #[test]
    fn a_bare_carriage_return_is_not_passed_on() {
        let bytes = b"OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/UDP h\r\nTo: <sip:a>\r\nFrom: x\rX-Evil: 1 <sip:a>\r\n\r\n";
        let mut index = Index::new();
        let request = Message::parse(bytes, &mut index).unwrap();
        let mut out = Vec::new();
        MessageWriter::response(&mut out, &request, Status::OK, &Reply::default()).finish();
        assert!(!out.windows(2).any(|w| w[0] == b'\r' && w[1] != b'\n'), "{}", out.escape_ascii());
    }

    #[test]
    fn lengths_are_written_in_decimal() {
        for number in [0, 9, 10, 65_535, usize::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
