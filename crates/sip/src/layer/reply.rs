//! What a response takes from its request, and the keys under which a request is found again.

use super::build::Written;
use super::{Flow, Key, Protocol};
use crate::header::{HeaderName, Method, Via};
use crate::message::{Message, Status};
use crate::uri::Host;
use crate::write::{MessageWriter, Reply};
use core::net::SocketAddr;

/// Under which a request is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransactionKey {
    /// Branch, sent-by, method and CSeq number; for an ACK those of its INVITE (RFC 3261 §17.2.3). The number, because there are
    /// peers that make the Via of their next request out of the one that they got back.
    pub(crate) transaction: u128,
    /// From tag, Call-ID and CSeq of a request without To tag (RFC 3261 §8.2.2.2).
    pub(crate) merge: Option<u128>,
}

impl TransactionKey {
    /// The key of a valid request.
    pub(crate) fn of(message: &Message<'_>, key: Key) -> Self {
        let method = message.method();
        let merge =
            (method != Method::Ack && method != Method::Cancel && message.to_tag().is_none()).then(|| {
                key.digest(&[
                    b"merge",
                    message.from_tag().unwrap_or_default(),
                    message.call_id().unwrap_or_default(),
                    message.header(HeaderName::CSeq).unwrap_or_default(),
                ])
            });
        let named = if method == Method::Ack { Method::Invite } else { method };
        Self { transaction: Self::transaction(message, named, key), merge }
    }

    /// The key that the INVITE of this CANCEL has.
    pub(crate) fn of_canceled(message: &Message<'_>, key: Key) -> u128 {
        Self::transaction(message, Method::Invite, key)
    }

    fn transaction(message: &Message<'_>, method: Method<'_>, key: Key) -> u128 {
        let Some(via) = message.top_via() else { return 0 };
        let port = via.port.unwrap_or(0).to_be_bytes();
        let host = via.host.as_bytes();
        let number = message.cseq().map_or(0, |cseq| cseq.number).to_be_bytes();
        if via.has_magic_cookie() {
            let branch = via.branch().unwrap_or_default();
            return key.digest(&[b"3261", branch, host, &port, method.as_bytes(), &number]);
        }
        // RFC 2543 peers: all that an INVITE, its retransmission, its CANCEL and its ACK have in common. The To tag is
        // left out, because the ACK has one and the INVITE has none.
        key.digest(&[
            b"2543",
            via.branch().unwrap_or_default(),
            host,
            &port,
            method.as_bytes(),
            message.request_uri_bytes(),
            message.from_tag().unwrap_or_default(),
            message.call_id().unwrap_or_default(),
            &number,
        ])
    }
}

/// Where responses to this request go (RFC 3261 §18.2.2, RFC 3581 §4).
///
/// A `maddr` is not followed: it would let anybody aim our answers at a third party.
pub(crate) fn reply_flow(message: &Message<'_>, source: Flow, force_rport: bool) -> Flow {
    let Some(via) = message.top_via() else { return source };
    if source.protocol.is_reliable() || force_rport || via.rport().is_some() {
        return source;
    }
    let port = via.port.unwrap_or(source.protocol.default_port());
    source.towards(SocketAddr::new(source.remote.ip(), port))
}

/// Where the sender of a request says that it is, in a response to it: host and port of the topmost Via.
pub(crate) fn sent_by(response: &[u8]) -> Option<(Host<'_>, Option<u16>)> {
    let via = Via::parse(Written::new(response).value("Via")?)?;
    Some((via.host, via.port))
}

/// Where a response goes whose connection is gone: to the address that the request came from, at the port that its sender
/// says it listens at (RFC 3261 §18.2.2). Nobody can be connected to by WebSocket.
pub(crate) fn way_back(response: &[u8], flow: Flow) -> Flow {
    let back = Flow { connection: None, ..flow };
    match (flow.protocol, sent_by(response)) {
        (Protocol::Ws | Protocol::Wss, _) | (_, None) => back,
        (Protocol::Udp | Protocol::Tcp | Protocol::Tls, Some((_, port))) => {
            let port = port.unwrap_or(flow.protocol.default_port());
            back.towards(SocketAddr::new(flow.remote.ip(), port))
        }
    }
}

/// Via, From, To with our tag, Call-ID, CSeq and Record-Route as all responses to one request carry them.
#[derive(Debug)]
pub(crate) struct ReplyHead {
    lines: Box<[u8]>,
    /// The request had no To tag, so that the one in the lines is ours.
    adds_tag: bool,
}

impl ReplyHead {
    /// Takes from a valid request what its responses need; `scratch` is overwritten.
    pub(crate) fn new(
        message: &Message<'_>,
        tag: &str,
        (source, force_rport): (SocketAddr, bool),
        scratch: &mut Vec<u8>,
    ) -> Self {
        let dialog = matches!(message.method(), Method::Invite | Method::Subscribe | Method::Refer);
        let status = if dialog { Status::RINGING } else { Status::BAD_REQUEST };
        let reply = Reply { to_tag: Some(tag.as_bytes()), source: Some(source), phrase: None, force_rport };
        let _unfinished = MessageWriter::response(scratch, message, status, &reply);
        let start = memchr::memchr(b'\n', scratch).map_or(0, |at| at + 1);
        let adds_tag = message.to_tag().is_none();
        Self { lines: scratch.get(start..).unwrap_or_default().into(), adds_tag }
    }

    /// These lines, behind an empty one that stands for the status line.
    pub(crate) fn as_response(&self) -> Vec<u8> {
        [b"\r\n", &*self.lines].concat()
    }

    /// Whether a 2xx to the request says where its sender is reached from now on (RFC 3261 §12.2.1.2, RFC 3515 §2.2,
    /// RFC 6665 §4.5.1).
    pub(crate) fn refreshes_target(&self) -> bool {
        let mut lines = self.lines.split(|byte| *byte == b'\n');
        let cseq = lines.find_map(|line| line.strip_prefix(b"CSeq:")).unwrap_or_default().trim_ascii();
        let method = cseq.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        [&b"INVITE"[..], b"UPDATE", b"REFER", b"SUBSCRIBE"].contains(&method)
    }

    /// Appends the status line and these lines.
    pub(crate) fn write(&self, status: Status, phrase: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"SIP/2.0 ");
        out.extend_from_slice(&status.digits());
        out.push(b' ');
        let phrase = if phrase.is_empty() { status.phrase() } else { phrase };
        crate::write::push_clean(out, phrase.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.lines);
    }

    /// A whole 100. Its To has the tag of the request alone: no dialog begins with it (RFC 3261 §8.2.6.2).
    pub(crate) fn trying(&self, out: &mut Vec<u8>) {
        if !self.adds_tag {
            self.write(Status::TRYING, "", out);
            return super::build::finish(out, None);
        }
        let start = out.len();
        self.write(Status::TRYING, "", out);
        let head = out.split_off(start);
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let ours = memchr::memmem::rfind(line, b";tag=").filter(|_| line.starts_with(b"To:"));
            match ours.and_then(|at| line.get(..at)) {
                Some(bare) => {
                    out.extend_from_slice(bare);
                    out.extend_from_slice(b"\r\n");
                }
                None => out.extend_from_slice(line),
            }
        }
        super::build::finish(out, None);
    }
}
