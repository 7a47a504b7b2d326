//! What two sides of a dialog must remember (RFC 3261 §12): identifiers, route set, remote target, sequence numbers.
//!
//! It knows no transaction and no timer: it says how the next request in the dialog looks and where it goes, and whether
//! a request of the peer is in order.

use crate::header::{HeaderName, NameAddr};
use crate::layer::{Flow, Protocol};
use crate::message::Message;
use crate::uri::Uri;
use core::net::{IpAddr, SocketAddr};
use std::borrow::Cow;

/// Most early dialogs that one INVITE of ours may have; a proxy that forks wider gets its further answers refused by BYE.
pub(crate) const FORKS_MAX: usize = 16;
/// Largest sequence number (RFC 3261 §8.1.1.5).
const CSEQ_MAX: u32 = 0x7FFF_FFFF;
/// Most routes of a dialog: longer than any path that a Max-Forwards of 70 can have taken.
const ROUTES_MAX: usize = 70;

/// The other side as one To tag of it is known.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its tag; empty from RFC 2543 peers.
    pub(crate) tag: Box<[u8]>,
    /// Its From or To value, tag included.
    value: Box<[u8]>,
    /// Request-URI of requests to it.
    target: Box<[u8]>,
    /// Route values, first hop first.
    routes: Box<[Box<[u8]>]>,
    /// Highest CSeq number that it has sent.
    cseq: Option<u32>,
}

/// How requests to the peer find their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As route set and Contact say.
    Routed,
    /// To where the peer's messages come from.
    Symmetric,
    /// As the driver has said.
    Pinned,
}

/// One call's dialog, or the early dialogs of one INVITE of ours while it is forked.
#[derive(Debug)]
pub(crate) struct Dialog {
    pub(crate) call_id: Box<[u8]>,
    pub(crate) local_tag: Box<str>,
    /// Our From or To value, tag included.
    local: Box<[u8]>,
    pub(crate) contact: Box<[u8]>,
    /// The way that the last message to or from the peer took.
    pub(crate) flow: Flow,
    /// The address that the peer was last known to be at: whoever made the dialog was let in from there, or has answered
    /// our request.
    proved: IpAddr,
    way: Way,
    caller: bool,
    pub(crate) force_rport: bool,
    peers: Vec<Peer>,
    active: usize,
    local_cseq: u32,
}

/// How the peer's request stands to those before it (RFC 3261 §12.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// It follows.
    Next,
    /// It is older than one that was seen: 500.
    Old,
    /// Its From tag is none that this dialog knows: 481.
    Stranger,
}

impl Dialog {
    /// The dialog of an INVITE that we answer; its route set is the Record-Route in order (§12.1.1).
    pub(crate) fn answering(
        invite: &Message<'_>,
        local_tag: &str,
        (contact, flow, symmetric, force_rport): (&str, Flow, bool, bool),
    ) -> Self {
        let to = invite.header(HeaderName::To).unwrap_or_default();
        let mut peer = Peer::new(
            invite.from_tag().unwrap_or_default(),
            invite.header(HeaderName::From).unwrap_or_default(),
        );
        peer.cseq = invite.cseq().map(|cseq| cseq.number);
        peer.routes = routes(invite, false);
        peer.refresh_target(invite);
        if symmetric {
            peer.relocate(flow);
        }
        Self {
            call_id: invite.call_id().unwrap_or_default().into(),
            local_tag: local_tag.into(),
            local: [&*without_port(to), b";tag=", local_tag.as_bytes()].concat().into(),
            contact: contact.as_bytes().into(),
            flow,
            proved: flow.remote.ip().to_canonical(),
            way: if symmetric { Way::Symmetric } else { Way::Routed },
            caller: false,
            force_rport,
            peers: vec![peer],
            active: 0,
            local_cseq: 0,
        }
    }

    /// The dialogs-to-be of an INVITE that we send; `local` is From with our tag, `to` the To without.
    pub(crate) fn calling(
        (call_id, local_tag, cseq): (&[u8], &str, u32),
        local: &[u8],
        contact: &str,
        (flow, symmetric): (Flow, bool),
    ) -> Self {
        Self {
            call_id: call_id.into(),
            local_tag: local_tag.into(),
            local: local.into(),
            contact: contact.as_bytes().into(),
            flow,
            proved: flow.remote.ip().to_canonical(),
            way: if symmetric { Way::Symmetric } else { Way::Routed },
            caller: true,
            force_rport: symmetric,
            peers: Vec::new(),
            active: 0,
            local_cseq: cseq,
        }
    }

    /// The peer that requests go to.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.peers.get(self.active)
    }

    /// Which fork has this tag.
    pub(crate) fn fork(&self, tag: &[u8]) -> Option<u16> {
        self.peers.iter().position(|peer| *peer.tag == *tag).and_then(|at| u16::try_from(at).ok())
    }

    /// Takes note of a response to our INVITE that makes or refreshes a dialog (§12.1.2, §13.2.2.4): its fork becomes the
    /// one that requests go to. `None` when there are too many forks.
    pub(crate) fn learn(&mut self, response: &Message<'_>) -> Option<u16> {
        let tag = response.to_tag().unwrap_or_default();
        let at = match self.peers.iter().position(|peer| *peer.tag == *tag) {
            Some(at) => at,
            None if self.peers.len() < FORKS_MAX => {
                self.peers.push(Peer::new(tag, response.header(HeaderName::To).unwrap_or_default()));
                self.peers.len() - 1
            }
            None => return None,
        };
        self.active = at;
        let peer = self.peers.get_mut(at)?;
        peer.routes = routes(response, true);
        peer.refresh_target(response);
        // Whoever answers from where its Contact says it is has said it well.
        let is_there = peer.routes.is_empty() && is_at(&peer.target, self.flow);
        if self.way == Way::Symmetric && !is_there {
            peer.relocate(self.flow);
        }
        u16::try_from(at).ok()
    }

    /// One fork has answered: the others are gone.
    pub(crate) fn settle(&mut self) {
        if let Some(peer) = self.peers.get(self.active).cloned() {
            self.peers = vec![peer];
            self.active = 0;
        }
    }

    /// Takes over the Contact of a target refresh request or of its 2xx (§12.2.1.2, §12.2.2).
    pub(crate) fn refresh_target(&mut self, message: &Message<'_>) {
        if let Some(peer) = self.peers.get_mut(self.active) {
            peer.refresh_target(message);
            // Behind a route set, which is never another one, its Contact means itself.
            let is_there = message.status().is_some() && is_at(&peer.target, self.flow);
            if self.way == Way::Symmetric && peer.routes.is_empty() && !is_there {
                peer.relocate(self.flow);
            }
        }
    }

    /// Checks and notes the sequence number of a request from the peer. ACK and CANCEL are not asked about.
    pub(crate) fn order(&mut self, request: &Message<'_>) -> Order {
        let order = self.order_of(request);
        if order == Order::Next {
            self.ordered(request);
        }
        order
    }

    /// Checks the sequence number and notes nothing: the sender has still to prove himself.
    pub(crate) fn order_of(&self, request: &Message<'_>) -> Order {
        let tag = request.from_tag().unwrap_or_default();
        let Some(peer) = self.peers.iter().find(|peer| *peer.tag == *tag) else { return Order::Stranger };
        let number = request.cseq().map_or(0, |cseq| cseq.number);
        // A transaction absorbs retransmissions, so that an equal number is another request with an old number.
        if peer.cseq.is_some_and(|seen| number <= seen) { Order::Old } else { Order::Next }
    }

    /// Notes the sequence number of a request that was in order.
    pub(crate) fn ordered(&mut self, request: &Message<'_>) {
        let tag = request.from_tag().unwrap_or_default();
        if let Some(peer) = self.peers.iter_mut().find(|peer| *peer.tag == *tag) {
            peer.cseq = Some(request.cseq().map_or(0, |cseq| cseq.number));
        }
    }

    /// The number for the next request of ours (§12.2.1.1).
    pub(crate) fn next_cseq(&mut self) -> u32 {
        // The field allows 2^31 - 1; a dialog that comes there starts over rather than to send what nobody can read.
        self.local_cseq = if self.local_cseq >= CSEQ_MAX { 1 } else { self.local_cseq + 1 };
        self.local_cseq
    }

    /// The number of the last request of ours; 0: there was none.
    pub(crate) fn last_cseq(&self) -> u32 {
        self.local_cseq
    }

    /// Leaves numbers out: the next request of ours has one after this.
    pub(crate) fn skip_cseq(&mut self, to: u32) {
        self.local_cseq = self.local_cseq.max(to.min(CSEQ_MAX));
    }

    /// Whether the dialog was made by an INVITE of ours, so that its Call-ID is ours too.
    pub(crate) fn is_caller(&self) -> bool {
        self.caller
    }

    /// Whether a message may be the peer's by where it comes from: where it was last known to be, where it has said that
    /// it is, or where our requests to it go. What comes inside a dialog that runs over TLS is known by the names of the
    /// dialog, which nobody has overheard.
    pub(crate) fn is_from_peer(&self, source: Flow) -> bool {
        let ip = source.remote.ip().to_canonical();
        let is_secret = |flow: Flow| matches!(flow.protocol, Protocol::Tls | Protocol::Wss);
        ip == self.proved
            || [self.flow, self.next_hop()].iter().any(|flow| flow.remote.ip().to_canonical() == ip)
            || (is_secret(source) && is_secret(self.flow))
    }

    /// The peer was shown to be where this message comes from.
    pub(crate) fn prove(&mut self, source: Flow) {
        self.proved = source.remote.ip().to_canonical();
    }

    /// Notes the way that a message of the peer came: the way back, when requests follow the peer's address.
    pub(crate) fn arrived(&mut self, source: Flow) {
        let follows = source.protocol.is_reliable() || self.peer().is_some_and(Peer::keeps_flow);
        if self.way == Way::Symmetric || (self.way == Way::Routed && follows) {
            self.flow = source;
        }
    }

    /// Sets the way that requests take, against what route set and Contact say.
    pub(crate) fn redirect(&mut self, flow: Flow) {
        (self.flow, self.way) = (flow, Way::Pinned);
    }

    /// Our From in requests of this dialog.
    pub(crate) fn local(&self) -> &[u8] {
        &self.local
    }

    /// Shows these names in From and To until [`Self::rename`] is called with what it gives: tags and URIs stay.
    pub(crate) fn named(&mut self, [local, peer]: [Option<&str>; 2]) -> [Option<Box<[u8]>>; 2] {
        let local = local.map(|name| with_name(&self.local, name));
        let peer = self.peer().and_then(|known| peer.map(|name| with_name(&known.value, name)));
        self.rename([local, peer])
    }
    /// From and To are these from here on; those that they were.
    pub(crate) fn rename(&mut self, [local, peer]: [Option<Box<[u8]>>; 2]) -> [Option<Box<[u8]>>; 2] {
        let local = local.map(|local| std::mem::replace(&mut self.local, local));
        let known = self.peers.get_mut(self.active);
        let peer = known.zip(peer).map(|(known, peer)| std::mem::replace(&mut known.value, peer));
        [local, peer]
    }

    /// Where requests in the dialog go (§12.2.1.1, §8.1.2).
    ///
    /// A connection is used as long as it lasts: the peer's Contact port is often one it does not listen on. A peer whose
    /// Contact has `ob` is reached by the flow that it has opened and nowhere else (RFC 5626 §4.3). A host name
    /// would have to be resolved, which is the driver's to do; until it says otherwise the known way is taken.
    pub(crate) fn next_hop(&self) -> Flow {
        if self.way != Way::Routed || self.flow.connection.is_some() {
            return self.flow;
        }
        let Some(peer) = self.peer().filter(|peer| !peer.keeps_flow()) else { return self.flow };
        let hop = peer.routes.first().map_or(&peer.target, |route| route);
        match resolved(hop) {
            Some(remote) => self.flow.towards(remote),
            None => self.flow,
        }
    }
}

/// Whether a URI is of the far end of this flow, transport included.
fn is_at(uri: &[u8], flow: Flow) -> bool {
    let Some(uri) = Uri::parse(uri) else { return false };
    let remote = SocketAddr::new(flow.remote.ip().to_canonical(), flow.remote.port());
    let transport = uri.params.get(b"transport").unwrap_or(b"udp");
    uri.host.ip().map(|ip| ip.to_canonical()) == Some(remote.ip())
        && uri.port.unwrap_or(5060) == remote.port()
        && transport.eq_ignore_ascii_case(flow.protocol.parameter().as_bytes())
}

/// A URI, or an address in brackets, with the far end of this flow in the place of its host, port and transport. WebSockets
/// are named as they were: nobody connects to their addresses.
pub(crate) fn relocated(value: &[u8], flow: Flow) -> Box<[u8]> {
    let open = value.iter().position(|byte| *byte == b'<').map_or(0, |at| at + 1);
    let close = value.iter().rposition(|byte| *byte == b'>').unwrap_or(value.len()).max(open);
    let (head, uri, tail) = (
        value.get(..open).unwrap_or_default(),
        value.get(open..close).unwrap_or_default(),
        value.get(close..).unwrap_or_default(),
    );
    let headers = uri.iter().position(|byte| *byte == b'?').unwrap_or(uri.len());
    let (uri, headers) = uri.split_at(headers);
    let host = match uri.iter().rposition(|byte| *byte == b'@').or(uri.iter().position(|byte| *byte == b':'))
    {
        Some(before) => before + 1,
        None => return value.into(),
    };
    let (before, rest) = uri.split_at(host);
    let by_name = matches!(flow.protocol, Protocol::Ws | Protocol::Wss);
    let is_transport =
        |param: &&[u8]| param.get(..10).is_some_and(|name| name.eq_ignore_ascii_case(b"transport="));
    let params = rest.split(|byte| *byte == b';').skip(1).filter(|param| by_name || !is_transport(param));
    let remote = SocketAddr::new(flow.remote.ip().to_canonical(), flow.remote.port());
    let mut out = [head, before, remote.to_string().as_bytes()].concat();
    if matches!(flow.protocol, Protocol::Tcp | Protocol::Tls) {
        out.extend_from_slice(b";transport=");
        out.extend_from_slice(flow.protocol.parameter().to_ascii_uppercase().as_bytes());
    }
    for param in params {
        out.push(b';');
        out.extend_from_slice(param);
    }
    out.extend_from_slice(headers);
    out.extend_from_slice(tail);
    out.into()
}

/// A From or To value with another name; a value without angle brackets stays.
fn with_name(value: &[u8], name: &str) -> Box<[u8]> {
    let Some(address) = NameAddr::parse(value) else { return value.into() };
    let uri = address.uri.as_bytes();
    let Some(at) = value.windows(uri.len().max(1)).position(|part| part == uri) else { return value.into() };
    let Some(rest) = value.get(at..).filter(|_| at > 0 && value.get(at - 1) == Some(&b'<')) else {
        return value.into();
    };
    let plain = |c: &char| !c.is_control();
    let mut named = String::from("\"");
    for symbol in name.chars().filter(plain) {
        if matches!(symbol, '"' | '\\') {
            named.push('\\');
        }
        named.push(symbol);
    }
    [named.as_bytes(), b"\" <", rest].concat().into()
}

impl Peer {
    /// Request-URI of requests to it.
    pub(crate) fn target(&self) -> &[u8] {
        &self.target
    }
    /// Until its Contact is known, and if it never sends one as RFC 2543 allowed, it is reached as it is called.
    fn new(tag: &[u8], value: &[u8]) -> Self {
        let target = NameAddr::parse(value).map_or(&[][..], |addr| addr.uri.as_bytes());
        Self {
            tag: tag.into(),
            value: without_port(value).into(),
            target: target.into(),
            routes: Box::default(),
            cseq: None,
        }
    }

    fn refresh_target(&mut self, message: &Message<'_>) {
        if let Some(contact) = message.contact() {
            self.target = contact.uri.as_bytes().into();
        }
    }

    /// It is at the other end of this flow, whatever it says: the first hop to it, or without one its target, has that
    /// address.
    fn relocate(&mut self, flow: Flow) {
        match self.routes.first_mut() {
            Some(first) => *first = relocated(first, flow),
            None => self.target = relocated(&self.target, flow),
        }
    }

    /// Whether it asks to be sent to by the flow that its messages come by (`ob`, RFC 5626 §4.3), and no proxy stands
    /// between that would see to it.
    fn keeps_flow(&self) -> bool {
        self.routes.is_empty() && Uri::parse(&self.target).is_some_and(|uri| uri.params.has(b"ob"))
    }

    /// Its From or To value, tag included.
    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// Request-URI and Route values of a request to it: through a strict router they change places (§12.2.1.1).
    pub(crate) fn path(&self) -> (&[u8], impl Iterator<Item = Vec<u8>>) {
        let first = self.routes.first().and_then(|route| NameAddr::parse(route));
        let strict = first.filter(|first| !first.uri.params.has(b"lr"));
        let (uri, skip, last) = match strict {
            Some(first) => (first.uri.as_bytes(), 1, Some([b"<", &*self.target, b">"].concat())),
            None => (&*self.target, 0, None),
        };
        (uri, self.routes.iter().skip(skip).map(|route| route.to_vec()).chain(last))
    }
}

/// A From or To value as requests of ours have it: the URI without a port, which has no place there (RFC 3261 §19.1.1,
/// table 1).
fn without_port(value: &[u8]) -> Cow<'_, [u8]> {
    let bare = NameAddr::parse(value).and_then(|addr| {
        let uri = addr.uri.as_bytes();
        let start = (uri.as_ptr() as usize).checked_sub(value.as_ptr() as usize)?;
        let (from, to) = addr.uri.port_range()?;
        let (before, after) = (value.get(..start + from)?, value.get(start + to..)?);
        (value.get(start..start + uri.len())? == uri).then(|| [before, after].concat())
    });
    bare.map_or(value.into(), Cow::from)
}

/// The route set that a message with Record-Route gives.
fn routes(message: &Message<'_>, reversed: bool) -> Box<[Box<[u8]>]> {
    let mut routes: Vec<Box<[u8]>> =
        message.values(HeaderName::RecordRoute).take(ROUTES_MAX).map(Box::from).collect();
    if reversed {
        routes.reverse();
    }
    routes.into()
}

/// The address of a URI or name-addr whose host is an IP address.
fn resolved(hop: &[u8]) -> Option<SocketAddr> {
    let uri = Uri::parse(hop).or_else(|| NameAddr::parse(hop).map(|addr| addr.uri))?;
    Some(SocketAddr::new(uri.host.ip()?, uri.port_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::TransportId;

    #[test]
    fn a_peer_is_where_its_messages_come_from() {
        for (protocol, remote, value, expected) in [
            (
                Protocol::Udp,
                "198.51.100.4:6061",
                "sip:p@10.1.1.9:5099;transport=UDP",
                "sip:p@198.51.100.4:6061",
            ),
            (Protocol::Udp, "198.51.100.4:6061", "sip:10.1.1.9;ob", "sip:198.51.100.4:6061;ob"),
            (Protocol::Udp, "198.51.100.4:6061", "<sip:10.1.1.1;lr>", "<sip:198.51.100.4:6061;lr>"),
            (
                Protocol::Tcp,
                "198.51.100.4:6061",
                "sip:a;b@10.1.1.9?X=y",
                "sip:a;b@198.51.100.4:6061;transport=TCP?X=y",
            ),
            (
                Protocol::Tls,
                "[2001:db8::7]:6061",
                "\"P\" <sips:p@[2001:db8::1]:5061;transport=tcp;x=1>;lr",
                "\"P\" <sips:p@[2001:db8::7]:6061;transport=TLS;x=1>;lr",
            ),
            (
                Protocol::Wss,
                "198.51.100.4:6061",
                "sip:p@abc.invalid;transport=ws",
                "sip:p@198.51.100.4:6061;transport=ws",
            ),
            (Protocol::Udp, "198.51.100.4:6061", "nothing", "nothing"),
        ] {
            let remote = remote.parse().unwrap();
            let (transport, name) = (TransportId(0), crate::layer::PeerName::NONE);
            let flow = Flow { transport, protocol, connection: None, name, remote };
            let told = relocated(value.as_bytes(), flow);
            assert_eq!(String::from_utf8_lossy(&told), expected, "{value}");
        }
    }
}
