//! Writes requests and responses, and derives ACK, CANCEL and retries from a request that we wrote.
//!
//! Everything we write has one shape: long header names, one header a line, `branch` last of what names our Via. So a request of
//! ours is read back by lines, without a parser; [`crate::Form`] spells it otherwise on its way out.

use super::flow::Protocol;
use crate::header::Method;
use crate::write::push_clean;
use std::fmt::Write as _;

/// Writes text into a byte buffer; cannot fail.
struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn number(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing into a Vec cannot fail.
    let _ = write!(Text(out), "{value}");
}

/// `name: value`; a value that would end the line stays one value.
pub(crate) fn header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    if name.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0 | b':')) {
        return;
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    push_clean(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Content-Type, Content-Length, the empty line and the body.
pub(crate) fn finish(out: &mut Vec<u8>, body: Option<(&str, &[u8])>) {
    let bytes = match body {
        Some((content_type, bytes)) => {
            header(out, "Content-Type", content_type.as_bytes());
            bytes
        }
        None => &[],
    };
    out.extend_from_slice(b"Content-Length: ");
    number(out, bytes.len());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(bytes);
}

/// The fixed part of a request: everything up to and including CSeq.
pub(crate) struct RequestHead<'a> {
    pub(crate) method: Method<'a>,
    pub(crate) uri: &'a [u8],
    pub(crate) protocol: Protocol,
    pub(crate) sent_by: &'a str,
    pub(crate) branch: &'a str,
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
    pub(crate) call_id: &'a [u8],
    pub(crate) cseq: u32,
    pub(crate) max_forwards: u8,
}

impl RequestHead<'_> {
    pub(crate) fn write<'r>(&self, routes: impl Iterator<Item = &'r [u8]>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.uri);
        out.extend_from_slice(b" SIP/2.0\r\n");
        via(self.protocol, self.sent_by, self.branch.as_bytes(), out);
        for route in routes {
            header(out, "Route", route);
        }
        out.extend_from_slice(b"Max-Forwards: ");
        number(out, self.max_forwards);
        out.extend_from_slice(b"\r\n");
        header(out, "From", self.from);
        header(out, "To", self.to);
        header(out, "Call-ID", self.call_id);
        cseq(out, self.cseq, self.method.as_bytes());
    }
}

/// A Via. On a connection it says that requests may come back by that (RFC 5923 §4).
fn via(protocol: Protocol, sent_by: &str, branch: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"Via: SIP/2.0/");
    out.extend_from_slice(protocol.name().as_bytes());
    out.push(b' ');
    out.extend_from_slice(sent_by.as_bytes());
    out.extend_from_slice(b";rport;branch=");
    out.extend_from_slice(branch);
    if matches!(protocol, Protocol::Tcp | Protocol::Tls) {
        out.extend_from_slice(b";alias");
    }
    out.extend_from_slice(b"\r\n");
}

fn cseq(out: &mut Vec<u8>, sequence: u32, method: &[u8]) {
    out.extend_from_slice(b"CSeq: ");
    number(out, sequence);
    out.push(b' ');
    out.extend_from_slice(method);
    out.extend_from_slice(b"\r\n");
}

/// A request of ours, taken apart by lines.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    head: &'a [u8],
    body: &'a [u8],
}

impl<'a> Written<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        let end = memchr::memmem::find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 2);
        let (head, rest) = message.split_at(end);
        Self { head, body: rest.get(2..).unwrap_or_default() }
    }

    /// Header lines with their CRLF, the request line first.
    fn lines(self) -> impl Iterator<Item = &'a [u8]> {
        self.head.split_inclusive(|byte| *byte == b'\n')
    }

    /// The value of the first header of that name.
    pub(crate) fn value(self, name: &str) -> Option<&'a [u8]> {
        self.lines().skip(1).find_map(|line| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b": ")?;
            value.strip_suffix(b"\r\n")
        })
    }

    /// The method.
    pub(crate) fn method(self) -> &'a [u8] {
        self.head.split(|byte| *byte == b' ').next().unwrap_or_default()
    }

    /// The Request-URI.
    pub(crate) fn uri(self) -> &'a [u8] {
        self.lines().next().and_then(|line| line.split(|byte| *byte == b' ').nth(1)).unwrap_or_default()
    }

    /// Header lines that prove who we are, with their CRLF.
    pub(crate) fn credentials(self) -> Vec<u8> {
        let proves =
            |line: &&[u8]| line.starts_with(b"Authorization: ") || line.starts_with(b"Proxy-Authorization: ");
        self.lines().filter(proves).collect::<Vec<_>>().concat()
    }

    /// The number in CSeq.
    pub(crate) fn sequence(self) -> u32 {
        let digits = self.value("CSeq").and_then(|value| value.split(|byte| *byte == b' ').next());
        digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
    }

    /// The ACK for a failure (RFC 3261 §17.1.1.3): everything as in the INVITE, To as in the response.
    pub(crate) fn ack_for_failure(self, to: &[u8], out: &mut Vec<u8>) {
        self.same_transaction(Method::Ack, Some(to), out);
        finish(out, None);
    }

    /// The CANCEL for this INVITE (RFC 3261 §9.1).
    pub(crate) fn cancel(self, headers: &[(&str, &str)], out: &mut Vec<u8>) {
        self.same_transaction(Method::Cancel, None, out);
        for (name, value) in headers {
            header(out, name, value.as_bytes());
        }
        finish(out, None);
    }

    fn same_transaction(self, method: Method<'_>, to: Option<&[u8]>, out: &mut Vec<u8>) {
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.uri());
        out.extend_from_slice(b" SIP/2.0\r\n");
        for line in self.lines().skip(1) {
            match (line, to) {
                ([b'T', b'o', b':', ..], Some(to)) => header(out, "To", to),
                ([b'C', b'S', b'e', b'q', b':', ..], _) => cseq(out, self.sequence(), method.as_bytes()),
                _ if [&b"Via:"[..], b"Route:", b"Max-Forwards:", b"From:", b"To:", b"Call-ID:"]
                    .iter()
                    .any(|name| line.starts_with(name)) =>
                {
                    out.extend_from_slice(line);
                }
                _ => {}
            }
        }
    }

    /// The same request by another transport: same transaction, another Via (RFC 3261 §18.1.1).
    pub(crate) fn over(self, (protocol, sent_by): (Protocol, &str), out: &mut Vec<u8>) {
        for line in self.lines() {
            match branch_in(line).filter(|_| line.starts_with(b"Via: ")) {
                Some(branch) => via(protocol, sent_by, branch, out),
                None => out.extend_from_slice(line),
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }

    /// The same request to another server: a new transaction by another Via, and our Contact as it is there
    /// (RFC 3263 §4.3).
    pub(crate) fn elsewhere(
        self,
        (protocol, sent_by, branch): (Protocol, &str, &str),
        contact: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        for line in self.lines() {
            match contact {
                _ if line.starts_with(b"Via: ") => {
                    via(protocol, sent_by, branch.as_bytes(), out);
                }
                Some(contact) if line.starts_with(b"Contact: ") => header(out, "Contact", contact),
                _ => out.extend_from_slice(line),
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }

    /// The same request as a new transaction: new Via and CSeq, `headers` added in place of those of the same name.
    /// Credentials of an earlier try do not come along; when `headers` is empty they do (RFC 3261 §22.2: a repeated
    /// request keeps them).
    pub(crate) fn again(
        self,
        (protocol, sent_by, branch): (Protocol, &str, &str),
        sequence: u32,
        headers: &[(&str, &str)],
        out: &mut Vec<u8>,
    ) {
        let mut lines = self.lines();
        out.extend_from_slice(lines.next().unwrap_or_default());
        let method = self.method();
        for line in lines {
            let is = |name: &str| line.starts_with(name.as_bytes());
            if is("Via: ") {
                via(protocol, sent_by, branch.as_bytes(), out);
            } else if is("CSeq: ") {
                cseq(out, sequence, method);
            } else if is("Content-Length: ") {
                for (name, value) in headers {
                    header(out, name, value.as_bytes());
                }
                out.extend_from_slice(line);
            } else if headers.is_empty()
                || !(is("Authorization: ") || is("Proxy-Authorization: ") || is_named(line, headers))
            {
                out.extend_from_slice(line);
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }
}

/// The branch in a Via of ours.
fn branch_in(line: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b";branch=";
    let rest = line.get(memchr::memmem::rfind(line, NAME)? + NAME.len()..)?;
    rest.split(|byte| matches!(byte, b';' | b'\r' | b'\n')).next()
}

/// Whether a line is a header of one of these names.
fn is_named(line: &[u8], headers: &[(&str, &str)]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    headers.iter().any(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invite() -> Vec<u8> {
        let mut out = Vec::new();
        RequestHead {
            method: Method::Invite,
            uri: b"sip:bob@biloxi.example",
            protocol: Protocol::Udp,
            sent_by: "pc33.atlanta.example",
            branch: "z9hG4bK1",
            from: b"<sip:alice@atlanta.example>;tag=1928301774",
            to: b"<sip:bob@biloxi.example>",
            call_id: b"a84b4c76e66710",
            cseq: 314159,
            max_forwards: 70,
        }
        .write([&b"<sip:p1;lr>"[..], b"<sip:p2;lr>"].into_iter(), &mut out);
        header(&mut out, "Authorization", b"Digest old");
        header(&mut out, "Contact", b"<sip:alice@pc33.atlanta.example>");
        finish(&mut out, Some(("application/sdp", b"v=0\r\n")));
        out
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn rfc3261_17_1_1_3_ack_copies_the_invite_but_for_to_and_method() {
        let mut ack = Vec::new();
        Written::new(&invite()).ack_for_failure(b"<sip:bob@biloxi.example>;tag=a6c85cf", &mut ack);
        assert_eq!(
            text(&ack),
            "ACK sip:bob@biloxi.example SIP/2.0\r\n\
             Via: SIP/2.0/UDP pc33.atlanta.example;rport;branch=z9hG4bK1\r\n\
             Route: <sip:p1;lr>\r\nRoute: <sip:p2;lr>\r\nMax-Forwards: 70\r\n\
             From: <sip:alice@atlanta.example>;tag=1928301774\r\n\
             To: <sip:bob@biloxi.example>;tag=a6c85cf\r\nCall-ID: a84b4c76e66710\r\n\
             CSeq: 314159 ACK\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn rfc3261_9_1_cancel_has_the_branch_and_number_of_the_invite() {
        let mut cancel = Vec::new();
        Written::new(&invite())
            .cancel(&[("Reason", "SIP;cause=200"), ("X", "a\r\nInjected: 1")], &mut cancel);
        let cancel = text(&cancel);
        assert!(
            cancel.contains("branch=z9hG4bK1\r\n") && cancel.contains("CSeq: 314159 CANCEL\r\n"),
            "{cancel}"
        );
        assert!(cancel.contains("Reason: SIP;cause=200\r\n") && !cancel.contains("\nInjected"), "{cancel}");
        assert!(!cancel.contains("Contact") && !cancel.contains("v=0"), "{cancel}");
    }

    #[test]
    fn rfc3261_22_2_retry_has_a_new_branch_number_and_credentials_and_the_same_rest() {
        let mut again = Vec::new();
        Written::new(&invite()).again(
            (Protocol::Udp, "pc33.atlanta.example", "z9hG4bK2"),
            314160,
            &[("Authorization", "Digest new")],
            &mut again,
        );
        let expected = text(&invite())
            .replace("z9hG4bK1", "z9hG4bK2")
            .replace("314159", "314160")
            .replace("Authorization: Digest old\r\n", "")
            .replace("Content-Length", "Authorization: Digest new\r\nContent-Length");
        assert_eq!(text(&again), expected);
        let mut elsewhere = Vec::new();
        let way = (Protocol::Tcp, "192.0.2.1:5070", "z9hG4bK3");
        Written::new(&invite()).elsewhere(way, Some(b"<sip:alice@192.0.2.1;transport=tcp>"), &mut elsewhere);
        let expected = text(&invite())
            .replace("SIP/2.0/UDP pc33.atlanta.example", "SIP/2.0/TCP 192.0.2.1:5070")
            .replace("z9hG4bK1", "z9hG4bK3;alias")
            .replace(
                "Contact: <sip:alice@pc33.atlanta.example>",
                "Contact: <sip:alice@192.0.2.1;transport=tcp>",
            );
        assert_eq!(text(&elsewhere), expected);
        let mut same = Vec::new();
        Written::new(&invite()).again(
            (Protocol::Udp, "pc33.atlanta.example", "z9hG4bK1"),
            314159,
            &[],
            &mut same,
        );
        assert_eq!(text(&same), text(&invite()));
    }
}
