//! The SIP messages of the last while, kept when somebody asks for it (`pjsip set history on`).

use core::net::SocketAddr;
use std::collections::VecDeque;

use ::sip::message::{Index, Message};
use ::sip::stack::{Flow, Protocol};

/// Most messages kept; the oldest make room. A call has about ten.
pub const HISTORY_MAX: usize = 10_000;
/// Most bytes of messages kept.
pub const HISTORY_BYTES_MAX: usize = 16 << 20;

/// A message that was received or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Its number since the history was cleared, from 0.
    pub number: u64,
    /// When, in microseconds since 1970.
    pub at_micros: i64,
    /// We sent it.
    pub outgoing: bool,
    /// What it went over.
    pub protocol: Protocol,
    /// The peer.
    pub remote: SocketAddr,
    /// The message, without the keys of SRTP.
    pub bytes: Box<[u8]>,
}

/// What ties the messages of a call together for a capture server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correlation {
    /// The Call-ID of the leg.
    CallId,
    /// The name of its channel; the Call-ID as long as it has none, and after that.
    Channel,
}

/// What a report of RTCP said, for a capture server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedReport {
    /// Microseconds since the epoch.
    pub at_micros: i64,
    /// Our end.
    pub local: SocketAddr,
    /// What ties it to the messages of its leg.
    pub correlation: Vec<u8>,
    /// What it said, to or from whom.
    pub report: base::RtcpReport,
}

/// A copy of a message for a capture server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// When, in microseconds since 1970.
    pub at_micros: i64,
    /// We sent it.
    pub outgoing: bool,
    /// What it went over.
    pub protocol: Protocol,
    /// Our address; of a connection that we opened, with the port that we listen on.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// What ties it to the others of its call; empty when nothing does.
    pub correlation: Vec<u8>,
    /// The message, without the keys of SRTP.
    pub bytes: Box<[u8]>,
}

impl Captured {
    /// `name` is what a leg is called by whom it is tied together, by its Call-ID and our tag.
    pub(super) fn new(
        (outgoing, at_micros): (bool, i64),
        flow: Flow,
        local: SocketAddr,
        bytes: &[u8],
        name: impl FnOnce(&[u8], &[u8]) -> Option<Vec<u8>>,
    ) -> Self {
        let mut bytes = bytes.to_vec();
        ::sip::sdp::hide_keys(&mut bytes);
        let mut index = Index::default();
        let message = Message::parse(&bytes, &mut index);
        let correlation = message.ok().and_then(|message| {
            // Who asks is named by From.
            let own = if outgoing == message.is_request() { message.from_tag() } else { message.to_tag() };
            let call_id = message.call_id()?;
            own.and_then(|own| name(call_id, own)).or_else(|| Some(call_id.to_vec()))
        });
        let correlation = correlation.unwrap_or_default();
        let (protocol, remote) = (flow.protocol, flow.remote);
        Self { at_micros, outgoing, protocol, local, remote, correlation, bytes: bytes.into() }
    }
}

/// What a message is, in a few words without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gist {
    /// Call-ID; empty when the bytes are no message.
    pub call_id: String,
    /// Method of the request, or of the one that it answers.
    pub method: String,
    /// Its first line.
    pub summary: String,
    /// A short name: `INVITE (SDP)`, `200 OK (BYE)`.
    pub label: String,
}

impl Heard {
    /// Reads what the message is.
    pub fn gist(&self) -> Gist {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(char::is_control, " ");
        let summary = text(self.bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default());
        let mut index = Index::default();
        let Ok(message) = Message::parse(&self.bytes, &mut index) else {
            let label = "(no SIP)".to_owned();
            return Gist { call_id: String::new(), method: String::new(), summary, label };
        };
        let method = text(message.method().as_bytes());
        let mut label = match message.status() {
            Some(status) if method == "INVITE" => {
                format!("{} {}", status.code(), text(message.reason_phrase()))
            }
            Some(status) => format!("{} {} ({method})", status.code(), text(message.reason_phrase())),
            None => method.clone(),
        };
        if message.sdp().is_some() {
            label.push_str(" (SDP)");
        }
        Gist { call_id: text(message.call_id().unwrap_or_default()), method, summary, label }
    }
}

/// The ring of messages. Costs nothing while it is off; what it has stays until it is cleared.
#[derive(Debug, Default)]
pub struct History {
    on: bool,
    next: u64,
    bytes: usize,
    messages: VecDeque<Heard>,
}

impl History {
    /// Whether messages are kept.
    pub fn is_on(&self) -> bool {
        self.on
    }
    /// Begins to keep messages, or ends it.
    pub fn set(&mut self, on: bool) {
        self.on = on;
    }
    /// Forgets all messages; how many there were.
    pub fn clear(&mut self) -> usize {
        let had = self.messages.len();
        *self = Self { on: self.on, ..Self::default() };
        had
    }
    /// All that is kept, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Heard> {
        self.messages.iter()
    }
    /// The message of this number.
    pub fn get(&self, number: u64) -> Option<&Heard> {
        let first = self.messages.front()?.number;
        self.messages.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }
    /// Keeps a message.
    pub(super) fn keep(&mut self, outgoing: bool, flow: Flow, bytes: &[u8], at_micros: i64) {
        let mut bytes = bytes.to_vec();
        ::sip::sdp::hide_keys(&mut bytes);
        self.bytes += bytes.len();
        self.messages.push_back(Heard {
            number: self.next,
            at_micros,
            outgoing,
            protocol: flow.protocol,
            remote: flow.remote,
            bytes: bytes.into(),
        });
        self.next += 1;
        while self.messages.len() > HISTORY_MAX || self.bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::sip::stack::{PeerName, TransportId};

    fn flow() -> Flow {
        Flow {
            transport: TransportId(0),
            protocol: Protocol::Udp,
            connection: None,
            name: PeerName::NONE,
            remote: SocketAddr::from(([192, 0, 2, 1], 5060)),
        }
    }

    #[test]
    fn the_oldest_messages_make_room_for_new_ones() {
        let mut history = History::default();
        for n in 0..HISTORY_MAX as i64 + 5 {
            history.keep(n % 2 == 0, flow(), b"OPTIONS", n);
        }
        assert_eq!(history.messages().count(), HISTORY_MAX);
        assert_eq!(history.messages().next().map(|first| first.number), Some(5));
        assert!(history.get(4).is_none() && history.get(HISTORY_MAX as u64 + 5).is_none());
        assert_eq!(history.get(7).map(|found| found.at_micros), Some(7));
        let large = vec![b'x'; HISTORY_BYTES_MAX / 4];
        for _ in 0..10 {
            history.keep(true, flow(), &large, 0);
        }
        assert_eq!(history.messages().count(), 4, "bytes are bounded as well");
        assert_eq!(history.clear(), 4);
        history.keep(true, flow(), b"BYE", 1);
        assert_eq!(history.get(0).map(|found| &*found.bytes), Some(&b"BYE"[..]));
    }

    #[test]
    fn keys_of_srtp_are_not_kept() {
        let mut history = History::default();
        let text = b"INVITE sip:a@b SIP/2.0\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\
            a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\r\n";
        history.keep(false, flow(), text, 0);
        let kept = String::from_utf8_lossy(&history.get(0).unwrap().bytes).into_owned();
        assert!(kept.contains("a=crypto:1") && !kept.contains("c2VjcmV0"), "{kept}");
    }
}
