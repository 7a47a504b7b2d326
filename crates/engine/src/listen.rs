//! Sockets of the transports: which bind of the configuration is which socket, and which TCP connection leads where.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base::Instant;

use control::http::ws::Socket as WebSocket;
use driver::sip::Bind;
use io::net::{BindError, FlowId, FlowKind, ListenerId, Net, Tls, TransportId as Socket};
use sip::frame::Framer;
use sip::stack::{ConnectionId, Flow, PeerName, Protocol, TransportId};

use crate::secure::{Wire, Wires};

enum Open {
    Udp(Socket),
    /// TCP, and TLS on it; transports under TLS may share it.
    Stream(ListenerId),
}

/// Those who share a listener.
#[derive(Default)]
struct Door {
    /// Whom its connections belong to: under TLS the one whose certificate the client met (RFC 6066 §3).
    transports: Vec<TransportId>,
    /// What it presents.
    tls: Option<Tls>,
}

/// How messages are told apart.
pub(crate) enum Framing {
    /// By Content-Length.
    Stream(Framer),
    /// By the frames of a WebSocket.
    WebSocket(Box<WebSocket>),
}

impl Framing {
    /// What carries a message.
    fn wrap<'a>(&mut self, message: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Stream(_) => message.into(),
            Self::WebSocket(socket) => {
                socket.send(message);
                socket.take_output().into()
            }
        }
    }
    /// What asks whether the peer is there; routers on the way see traffic.
    fn ping(&mut self) -> Cow<'static, [u8]> {
        match self {
            Self::Stream(framer) => {
                framer.expect_pong();
                b"\r\n\r\n".into()
            }
            Self::WebSocket(socket) => {
                socket.ping();
                socket.take_output().into()
            }
        }
    }
}

/// One SIP connection.
pub(crate) struct Connection {
    pub(crate) flow: Flow,
    pub(crate) framing: Framing,
    /// When it is pinged next.
    ping_at: Option<Instant>,
    /// Time between pings that its peer has to have, whatever the site says.
    quiet: Option<Duration>,
    /// The peer has answered pings.
    answers: bool,
    /// When it is given up unless something comes.
    silent_at: Option<Instant>,
    /// It came to us and has brought no message yet.
    unheard: bool,
}

/// Connections of one address that may say nothing for long: those of a few phones or balancers that open them ahead of
/// use. Further ones have the time that every stranger has.
const UNHEARD_PER_ADDRESS_MAX: u32 = 8;

/// All of them.
#[derive(Default)]
pub(crate) struct Listeners {
    open: BTreeMap<TransportId, (Bind, Open)>,
    /// All binds, as the configuration in force has them.
    order: Vec<Bind>,
    /// Binds that could not be opened so far; nobody misses them as long as they do not come.
    absent: Vec<Bind>,
    /// Why those could not be opened the last time.
    still_absent: Vec<(String, BindError)>,
    by_socket: HashMap<Socket, TransportId>,
    doors: HashMap<ListenerId, Door>,
    connections: HashMap<FlowId, Connection>,
    /// Connections that others may share. Under TLS only those are among them that we made, by the name that was proved:
    /// whoever comes to us from an address has not proved to be what is called there.
    by_remote: HashMap<(TransportId, SocketAddr, PeerName), FlowId>,
    by_id: HashMap<ConnectionId, FlowId>,
    next: u64,
    /// Transports of WebSockets, for which the HTTP server listens.
    web: Vec<(TransportId, Protocol)>,
    wires: BTreeMap<TransportId, Wire>,
    ping: Option<Duration>,
    pings: BTreeSet<(Instant, FlowId)>,
    silent: BTreeSet<(Instant, FlowId)>,
    /// How many connections of each address have brought no message yet.
    unheard: HashMap<IpAddr, u32>,
}

/// Whether a bind keeps the socket it has.
pub(crate) fn same_socket(old: &Bind, new: &Bind) -> bool {
    new.id == old.id && new.local == old.local && new.protocol == old.protocol
}

/// Whether a bind has a socket of its own; for WebSockets the HTTP server listens.
pub(crate) fn listens(bind: &Bind) -> bool {
    !matches!(bind.protocol, Protocol::Ws | Protocol::Wss)
}

/// Whether two binds listen by one socket: transports under TLS at one address, which clients tell apart by name
/// (RFC 6066 §3).
pub(crate) fn shares(one: &Bind, other: &Bind) -> bool {
    let is_tls = one.protocol == Protocol::Tls && other.protocol == Protocol::Tls;
    is_tls && one.local == other.local && one.local.port() != 0
}

/// Whether two addresses cannot both be listened at: one port, and one address or one of them at all.
pub(crate) fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && a.is_ipv4() == b.is_ipv4() && (everywhere || a.ip() == b.ip())
}

/// Whether a transport, as long as it is open, keeps another from being opened: both are of UDP or both are not.
fn is_in_the_way(one: &Bind, other: &Bind) -> bool {
    let datagrams = |bind: &Bind| bind.protocol == Protocol::Udp;
    datagrams(one) == datagrams(other) && overlap(one.local, other.local)
}

/// Whether an old bind is closed so that a new one of these can be opened.
pub(crate) fn gives_way(old: &Bind, new: &Bind, binds: &[Bind]) -> bool {
    is_in_the_way(old, new) && !shares(old, new) && !binds.iter().any(|bind| same_socket(old, bind))
}

/// How long the answer to a ping may take, from a peer that has answered others (RFC 5626 §4.4.1).
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// Most SIP connections; beyond it the reactor's own limit has long closed the door.
const CONNECTIONS_MAX: usize = 8192;

impl Listeners {
    /// Opens what can be opened at the start, and says of what cannot, by the names of the transports: that is off, and each
    /// reload tries it again.
    pub(crate) fn begin(&mut self, net: &mut Net, binds: &[Bind], wires: &Wires) -> Vec<(String, BindError)> {
        self.absent = binds.to_vec();
        let refused = self.configure(net, binds, wires);
        refused.into_iter().chain(std::mem::take(&mut self.still_absent)).collect()
    }
    /// Names of the transports that are off: without their address, or without a certificate that can be used.
    pub(crate) fn down(&self) -> BTreeSet<String> {
        let has_no_certificate = |bind: &Bind| {
            bind.protocol == Protocol::Tls && self.wires.get(&bind.id).is_none_or(|wire| wire.tls.is_none())
        };
        let is_down = |bind: &&Bind| listens(bind) && (!self.has(bind) || has_no_certificate(bind));
        self.order.iter().filter(is_down).map(|bind| bind.name.clone()).collect()
    }
    /// What a reload could not open either, although it was to be open already.
    pub(crate) fn take_still_absent(&mut self) -> Vec<(String, BindError)> {
        std::mem::take(&mut self.still_absent)
    }
    /// Opens what is new, keeps what is the same, closes what is gone; or, when anything cannot be opened, changes nothing
    /// and says why, by the names of the transports.
    pub(crate) fn configure(
        &mut self,
        net: &mut Net,
        binds: &[Bind],
        wires: &Wires,
    ) -> Vec<(String, BindError)> {
        let given_way = self.give_way(net, binds);
        let mut absent = Vec::new();
        self.still_absent.clear();
        let mut fresh = Vec::new();
        let mut errors = Vec::new();
        for bind in binds.iter().filter(|bind| listens(bind)) {
            // Without its certificates, of which the log speaks, it would serve nobody.
            let is_mute = bind.protocol == Protocol::Tls && !wires.transports.contains_key(&bind.name);
            if is_mute || self.has(bind) {
                continue;
            }
            match self.open(net, &fresh, bind) {
                Ok(open) => fresh.push((bind.clone(), open)),
                Err(error) if self.absent.iter().any(|old| same_socket(old, bind)) => {
                    absent.push(bind.clone());
                    self.still_absent.push((bind.name.clone(), error));
                }
                Err(error) => errors.push((bind.name.clone(), error)),
            }
        }
        if !errors.is_empty() {
            fresh.into_iter().for_each(|(_, open)| self.close(net, open));
            errors.extend(self.take_back(net, given_way));
            return errors;
        }
        self.absent = absent;
        let is_gone =
            |(_, (old, _)): &(&TransportId, &(Bind, Open))| !binds.iter().any(|new| same_socket(old, new));
        let gone: Vec<TransportId> = self.open.iter().filter(is_gone).map(|(id, _)| *id).collect();
        let gone: Vec<Open> =
            gone.iter().filter_map(|id| self.open.remove(id)).map(|(_, open)| open).collect();
        fresh.into_iter().for_each(|(bind, open)| self.keep_open(bind, open));
        // Not before what is new has taken its share of a listener.
        gone.into_iter().for_each(|open| self.close(net, open));
        // What a reload changes of a bind that stays open.
        self.ping = wires.ping;
        let of_web = binds.iter().filter(|bind| !listens(bind));
        self.web = of_web.map(|bind| (bind.id, bind.protocol)).collect();
        for bind in binds {
            let Some((kept, open)) = self.open.get_mut(&bind.id) else { continue };
            kept.clone_from(bind);
            let wire = self.wires.entry(bind.id).or_default();
            wire.take(wires.transports.get(&bind.name));
            if let Open::Udp(socket) = open {
                // Packets without their mark are better than no packets.
                let _ = net.mark_udp(*socket, bind.marking);
            }
        }
        binds.clone_into(&mut self.order);
        self.open_doors(net);
        errors
    }
    /// Whether a bind has its socket.
    fn has(&self, bind: &Bind) -> bool {
        self.open.get(&bind.id).is_some_and(|(old, _)| same_socket(old, bind))
    }
    fn open(&self, net: &mut Net, fresh: &[(Bind, Open)], bind: &Bind) -> Result<Open, BindError> {
        if bind.protocol == Protocol::Udp {
            return net.bind_udp(bind.local).map(Open::Udp);
        }
        match self.shared(fresh, bind) {
            Some(listener) => Ok(Open::Stream(listener)),
            None => net.listen_tcp(bind.local, FlowKind::Sip).map(Open::Stream),
        }
    }
    fn keep_open(&mut self, bind: Bind, open: Open) {
        if let Open::Udp(socket) = open {
            self.by_socket.insert(socket, bind.id);
        }
        self.open.insert(bind.id, (bind, open));
    }
    /// Closes, of what is gone, what is in the way of something new: one address is not bound twice.
    fn give_way(&mut self, net: &mut Net, binds: &[Bind]) -> Vec<Bind> {
        let new = || binds.iter().filter(|bind| listens(bind) && !self.has(bind));
        let gives_way = |old: &Bind| new().any(|new| gives_way(old, new, binds));
        let open = self.open.values().map(|(bind, _)| bind);
        let given: Vec<Bind> = open.filter(|old| gives_way(old)).cloned().collect();
        let closed: Vec<Open> =
            given.iter().filter_map(|bind| self.open.remove(&bind.id)).map(|(_, open)| open).collect();
        closed.into_iter().for_each(|open| self.close(net, open));
        given
    }
    /// Opens again what has given way in vain.
    fn take_back(&mut self, net: &mut Net, given: Vec<Bind>) -> Vec<(String, BindError)> {
        let mut errors = Vec::new();
        for bind in given {
            match self.open(net, &[], &bind) {
                Ok(open) => {
                    if let Open::Udp(socket) = open {
                        let _ = net.mark_udp(socket, bind.marking);
                    }
                    self.keep_open(bind, open);
                }
                // Somebody else was quicker.
                Err(error) => errors.push((bind.name, error)),
            }
        }
        self.open_doors(net);
        errors
    }
    /// Of a transport under TLS the listener that another one has at its address, and shares.
    fn shared(&self, fresh: &[(Bind, Open)], bind: &Bind) -> Option<ListenerId> {
        let mut open = self.open.values().chain(fresh).filter(|(other, _)| shares(other, bind));
        open.find_map(|(_, open)| if let Open::Stream(listener) = open { Some(*listener) } else { None })
    }
    /// Says whose connections come by which listener, and what they are shown. Of those who share one, the first in the
    /// order of the configuration says how its packets are marked and probed, and who is met by clients that name nobody.
    fn open_doors(&mut self, net: &mut Net) {
        let mut before = std::mem::take(&mut self.doors);
        let mut shown: HashMap<ListenerId, Vec<Tls>> = HashMap::new();
        for bind in &self.order {
            let Some((_, Open::Stream(listener))) = self.open.get(&bind.id) else { continue };
            let wire = self.wires.entry(bind.id).or_default();
            if bind.protocol == Protocol::Tls && wire.tls.is_none() {
                continue;
            }
            let door = self.doors.entry(*listener).or_default();
            if door.transports.is_empty() {
                // A connection is no worse for not being probed, nor for a mark that is missing.
                let _ = wire.keepalive.map(|keepalive| net.set_listener_keepalive(*listener, keepalive));
                let _ = net.mark_listener(*listener, bind.marking);
            }
            door.transports.push(bind.id);
            shown.entry(*listener).or_default().extend(wire.tls.clone());
        }
        for (listener, door) in &mut self.doors {
            let tls = shown.get(listener).and_then(|all| Tls::by_name(all));
            let old = before.remove(listener).and_then(|door| door.tls);
            // Sessions that can be resumed survive when nothing has changed.
            door.tls = match (old, tls) {
                (Some(old), Some(new)) if old.same(&new) => Some(old),
                (_, new) => new,
            };
            net.set_listener_tls(*listener, door.tls.clone());
        }
    }
    fn close(&mut self, net: &mut Net, open: Open) {
        match open {
            Open::Udp(socket) => {
                self.by_socket.remove(&socket);
                net.close_udp(socket);
            }
            Open::Stream(listener) => {
                let is_used =
                    |(_, open): &(Bind, Open)| matches!(open, Open::Stream(other) if *other == listener);
                if !self.open.values().any(is_used) {
                    self.doors.remove(&listener);
                    net.close_listener(listener);
                }
            }
        }
    }
    /// The bind a datagram came to.
    pub(crate) fn datagram(&self, socket: Socket, from: SocketAddr) -> Option<Flow> {
        let id = *self.by_socket.get(&socket)?;
        Some(Flow {
            transport: id,
            protocol: Protocol::Udp,
            connection: None,
            name: PeerName::NONE,
            remote: from,
        })
    }
    /// The flow of a datagram that could not be sent.
    pub(crate) fn unsent(&self, socket: Socket, to: SocketAddr) -> Option<Flow> {
        self.datagram(socket, to)
    }
    /// A connection came in; under TLS its client has asked for this `name`.
    pub(crate) fn accepted(
        &mut self,
        listener: ListenerId,
        flow: FlowId,
        remote: SocketAddr,
        name: Option<&str>,
        now: Instant,
    ) -> bool {
        let Some(door) = self.doors.get(&listener) else { return false };
        let chosen = door.tls.as_ref().map_or(0, |tls| tls.chosen(name));
        let Some(id) = door.transports.get(chosen).copied() else { return false };
        let protocol = self.open.get(&id).map_or(Protocol::Tcp, |(bind, _)| bind.protocol);
        let way = Flow { transport: id, protocol, connection: None, name: PeerName::NONE, remote };
        let added = self.add(way, flow, protocol == Protocol::Tcp, now);
        if let Some(connection) = self.connections.get_mut(&flow).filter(|_| added) {
            connection.unheard = true;
            *self.unheard.entry(remote.ip()).or_default() += 1;
        }
        added
    }
    /// Whether a connection has brought no message yet and may go on so for long.
    pub(crate) fn may_say_nothing(&self, flow: FlowId) -> bool {
        let unheard = self.connections.get(&flow).filter(|connection| connection.unheard);
        let count = |connection: &Connection| self.unheard.get(&connection.flow.remote.ip()).copied();
        unheard.and_then(count).is_some_and(|count| count <= UNHEARD_PER_ADDRESS_MAX)
    }
    /// A connection has brought a message, or is gone.
    pub(crate) fn has_spoken(&mut self, flow: FlowId) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        if std::mem::take(&mut connection.unheard)
            && let Entry::Occupied(mut count) = self.unheard.entry(connection.flow.remote.ip())
        {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
    /// A connection of HTTP has become a WebSocket. `false`: no transport waits for one, or there are too many.
    ///
    /// Behind a proxy that speaks TLS for us, a site has wss in its configuration and ws on the wire, so that any transport
    /// of WebSockets takes what its own does not.
    pub(crate) fn adopt(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        protocol: Protocol,
        now: Instant,
    ) -> bool {
        let exact = self.web.iter().find(|(_, of)| *of == protocol);
        let Some((transport, _)) = exact.or(self.web.first()).copied() else { return false };
        let way = Flow { transport, protocol, connection: None, name: PeerName::NONE, remote };
        let added = self.add(way, flow, false, now);
        if let Some(connection) = self.connections.get_mut(&flow) {
            connection.framing = Framing::WebSocket(Box::default());
        }
        added
    }
    /// Whether a connection is a WebSocket.
    pub(crate) fn is_websocket(&self, flow: FlowId) -> bool {
        let framing = self.connections.get(&flow).map(|connection| &connection.framing);
        matches!(framing, Some(Framing::WebSocket(_)))
    }
    fn add(&mut self, way: Flow, flow: FlowId, shared: bool, now: Instant) -> bool {
        if self.connections.len() >= CONNECTIONS_MAX {
            return false;
        }
        self.next += 1;
        let connection = ConnectionId(self.next);
        let ping_at = self.ping.map(|ping| now + ping);
        let sip = Flow { connection: Some(connection), ..way };
        self.connections.insert(
            flow,
            Connection {
                flow: sip,
                framing: Framing::Stream(Framer::new()),
                ping_at,
                quiet: None,
                answers: false,
                silent_at: None,
                unheard: false,
            },
        );
        self.pings.extend(ping_at.map(|at| (at, flow)));
        if shared {
            self.by_remote.insert((way.transport, way.remote, way.name), flow);
        }
        self.by_id.insert(connection, flow);
        true
    }
    /// When the next connection is to be pinged.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pings.first().into_iter().chain(self.silent.first()).map(|(at, _)| *at).min()
    }
    /// Something came on a connection; `answers` when it was the answer to a ping, of which more are expected then.
    pub(crate) fn heard(&mut self, flow: FlowId, answers: bool) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.answers |= answers;
        if let Some(at) = connection.silent_at.take() {
            self.silent.remove(&(at, flow));
        }
    }
    /// The peer of a connection keeps it as a flow: it is pinged at least this often, and answers (RFC 5626 §4.4.1).
    pub(crate) fn keep(&mut self, flow: FlowId, quiet: Duration, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        if connection.quiet.replace(quiet) == Some(quiet) {
            return;
        }
        connection.answers = true;
        let at = connection.ping_at.map_or(now + quiet, |at| at.min(now + quiet));
        if let Some(before) = connection.ping_at.replace(at) {
            self.pings.remove(&(before, flow));
        }
        self.pings.insert((at, flow));
    }
    /// Pings what has to be (RFC 5626 §3.5.1): routers on the way keep what is used. Gives the connections whose peers have
    /// answered pings before, and this time not: they are dead, whatever the kernel believes.
    #[must_use]
    pub(crate) fn due(&mut self, net: &mut Net, now: Instant) -> Vec<FlowId> {
        while let Some((at, flow)) = self.pings.first().copied().filter(|(at, _)| *at <= now) {
            self.pings.remove(&(at, flow));
            let Some(connection) = self.connections.get_mut(&flow) else { continue };
            net.send_flow(flow, &connection.framing.ping());
            let every = self.ping.into_iter().chain(connection.quiet).min();
            connection.ping_at = every.map(|every| now + every);
            self.pings.extend(connection.ping_at.map(|at| (at, flow)));
            if connection.answers && connection.silent_at.is_none() {
                connection.silent_at = Some(now + PONG_WITHIN);
                self.silent.insert((now + PONG_WITHIN, flow));
            }
        }
        self.silent.iter().take_while(|(at, _)| *at <= now).map(|(_, flow)| *flow).collect()
    }
    /// A connection's state.
    pub(crate) fn connection(&mut self, flow: FlowId) -> Option<&mut Connection> {
        self.connections.get_mut(&flow)
    }
    /// A connection is gone; the flow the SIP machines knew it by.
    pub(crate) fn closed(&mut self, flow: FlowId) -> Option<Flow> {
        self.has_spoken(flow);
        let connection = self.connections.remove(&flow)?;
        if let Some(at) = connection.ping_at {
            self.pings.remove(&(at, flow));
        }
        if let Some(at) = connection.silent_at {
            self.silent.remove(&(at, flow));
        }
        let key = (connection.flow.transport, connection.flow.remote, connection.flow.name);
        if self.by_remote.get(&key) == Some(&flow) {
            self.by_remote.remove(&key);
        }
        if let Some(id) = connection.flow.connection {
            self.by_id.remove(&id);
        }
        Some(connection.flow)
    }
    /// Sends one message, to nobody else than who proves to be `name` when the way asks for a proof. `false`: it cannot
    /// be sent that way.
    pub(crate) fn send(
        &mut self,
        net: &mut Net,
        flow: Flow,
        name: Option<&str>,
        bytes: &[u8],
        now: Instant,
    ) -> bool {
        if let (Protocol::Udp, Some((_, Open::Udp(socket)))) = (flow.protocol, self.open.get(&flow.transport))
        {
            net.send_udp(*socket, None, flow.remote, bytes);
            return true;
        }
        let by_id = flow.connection.and_then(|id| self.by_id.get(&id).copied());
        let key = (flow.transport, flow.remote, flow.name);
        let known = by_id.or_else(|| self.by_remote.get(&key).copied());
        match known.or_else(|| self.connect(net, flow, name, now)) {
            Some(open) => match self.connections.get_mut(&open) {
                Some(connection) => {
                    net.send_flow(open, &connection.framing.wrap(bytes));
                    true
                }
                None => false,
            },
            None => false,
        }
    }
    fn connect(&mut self, net: &mut Net, flow: Flow, name: Option<&str>, now: Instant) -> Option<FlowId> {
        let wire = self.wires.get(&flow.transport);
        let made = match flow.protocol {
            Protocol::Tls => {
                let tls = wire.and_then(|wire| wire.tls.as_ref())?;
                let address = flow.remote.ip().to_string();
                net.connect_tls(flow.remote, None, FlowKind::Sip, tls, name.unwrap_or(&address)).ok()?
            }
            Protocol::Tcp | Protocol::Udp => net.connect_tcp(flow.remote, None, FlowKind::Sip).ok()?,
            // Browsers come to us; nobody is called that way.
            Protocol::Ws | Protocol::Wss => return None,
        };
        if let Some(keepalive) = wire.and_then(|wire| wire.keepalive) {
            let _ = net.set_flow_keepalive(made, keepalive);
        }
        let marking = self.open.get(&flow.transport).map(|(bind, _)| bind.marking).unwrap_or_default();
        if marking != base::Marking::default() {
            let _ = net.mark_flow(made, flow.remote, marking);
        }
        let protocol = if flow.protocol == Protocol::Udp { Protocol::Tcp } else { flow.protocol };
        self.add(Flow { protocol, connection: None, ..flow }, made, true, now).then_some(made)
    }
}

impl Wire {
    /// Takes over what a reload says; sessions that can be resumed survive when nothing has changed.
    fn take(&mut self, new: Option<&Self>) {
        let new = new.cloned().unwrap_or_default();
        let same = matches!((&self.tls, &new.tls), (Some(old), Some(new)) if old.same(new));
        let kept = if same { self.tls.take() } else { None };
        *self = Self { tls: kept.or(new.tls), keepalive: new.keepalive };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::net::Limits;

    fn bind(name: &str, id: u16, protocol: Protocol, local: SocketAddr) -> Bind {
        Bind {
            name: name.to_owned(),
            id: TransportId(id),
            protocol,
            local,
            external_media: None,
            external_signaling: None,
            local_nets: Vec::new(),
            domain: String::new(),
            marking: base::Marking::default(),
        }
    }
    fn names(listeners: &Listeners) -> Vec<String> {
        listeners.open.values().map(|(bind, _)| bind.name.clone()).collect()
    }
    /// Any port that is free.
    fn any() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }
    /// An address that nobody listens at.
    fn free() -> SocketAddr {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn rfc5626_4_4_1_a_peer_that_answers_pings_is_dead_when_it_answers_one_no_more() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let mut listeners = Listeners::default();
        let wires = Wires { ping: Some(Duration::from_secs(90)), ..Wires::default() };
        assert!(listeners.configure(&mut net, &[bind("b", 1, Protocol::Tcp, any())], &wires).is_empty());
        let listener = *listeners.doors.keys().next().unwrap();
        let door = net.listener_addr(listener).unwrap();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        // Whether anybody is there is not the point: they are names.
        let [answering, mute] = [(); 2].map(|()| net.connect_tcp(door, None, FlowKind::Sip).unwrap());
        for flow in [answering, mute] {
            assert!(listeners.accepted(listener, flow, "192.0.2.1:4000".parse().unwrap(), None, at(0)));
        }
        assert_eq!(listeners.due(&mut net, at(90)), []);
        listeners.heard(answering, true);
        listeners.heard(mute, false);
        assert_eq!(listeners.due(&mut net, at(180)), [], "the second ping leaves");
        assert_eq!(listeners.deadline(), Some(at(190)));
        // Whatever comes shows that the peer is there.
        listeners.heard(answering, false);
        assert_eq!(listeners.due(&mut net, at(270)), []);
        assert_eq!(listeners.due(&mut net, at(279)), []);
        assert_eq!(listeners.due(&mut net, at(280)), [answering], "who never answered is not asked to");
        assert!(listeners.closed(answering).is_some());
        assert_eq!(listeners.due(&mut net, at(281)), []);
    }

    #[test]
    fn rfc5626_4_4_1_a_flow_is_pinged_as_often_as_its_registrar_wants_and_dead_without_an_answer() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for (name, site, quiet, second) in [
            ("the site's pings are too seldom", Some(90), 30, 60),
            ("they are enough", Some(90), 110, 180),
            ("the site has none", None, 110, 220),
        ] {
            let mut listeners = Listeners::default();
            let wires = Wires { ping: site.map(Duration::from_secs), ..Wires::default() };
            assert!(listeners.configure(&mut net, &[bind("b", 1, Protocol::Tcp, any())], &wires).is_empty());
            let listener = *listeners.doors.keys().next().unwrap();
            let door = net.listener_addr(listener).unwrap();
            let flow = net.connect_tcp(door, None, FlowKind::Sip).unwrap();
            assert!(listeners.accepted(listener, flow, "192.0.2.1:4000".parse().unwrap(), None, at(0)));
            listeners.keep(flow, Duration::from_secs(quiet), at(0));
            let first = listeners.deadline().unwrap();
            assert_eq!(first, at(second / 2), "{name}");
            assert_eq!(listeners.due(&mut net, first), [], "{name}");
            listeners.heard(flow, true);
            // What is said again changes nothing.
            listeners.keep(flow, Duration::from_secs(quiet), first);
            assert_eq!(listeners.deadline(), Some(at(second)), "{name}");
            assert_eq!(listeners.due(&mut net, at(second)), [], "{name}");
            assert_eq!(listeners.due(&mut net, at(second + 10)), [flow], "{name}");
            assert!(listeners.closed(flow).is_some());
        }
    }

    #[test]
    fn rfc5923_8_a_connection_is_shared_by_those_who_ask_for_the_same_name_and_by_nobody_else() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let mut listeners = Listeners::default();
        let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = bind("b", 1, Protocol::Tcp, any());
        assert!(listeners.configure(&mut net, &[own], &Wires::default()).is_empty());
        let remote = peer.local_addr().unwrap();
        let flow = |name| Flow {
            transport: TransportId(1),
            protocol: Protocol::Tcp,
            connection: None,
            name: PeerName(name),
            remote,
        };
        for (what, name, connections) in [
            ("the first", 1, 1),
            ("the same name", 1, 1),
            ("another name at the same address", 2, 2),
            ("no name", 0, 3),
            ("the first again", 1, 3),
        ] {
            assert!(listeners.send(&mut net, flow(name), None, b"x", Instant::ZERO), "{what}");
            assert_eq!(listeners.connections.len(), connections, "{what}");
        }
        // Who came to us under TLS has proved no name: nobody else is sent there.
        let listener = *listeners.doors.keys().next().unwrap();
        let came = net.connect_tcp(remote, None, FlowKind::Sip).unwrap();
        if let Some((bind, _)) = listeners.open.get_mut(&TransportId(1)) {
            bind.protocol = Protocol::Tls;
        }
        let shared = listeners.by_remote.len();
        assert!(listeners.accepted(listener, came, "192.0.2.1:4000".parse().unwrap(), None, Instant::ZERO));
        assert_eq!((listeners.connections.len(), listeners.by_remote.len()), (4, shared));
    }

    #[test]
    fn transports_under_tls_share_a_listener_until_the_last_of_them_is_gone() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let mut listeners = Listeners::default();
        let tls = Tls::load(&io::net::TlsSettings::default()).unwrap();
        let wire = Wire { tls: Some(tls), keepalive: None };
        let transports = ["a", "b", "c"].map(|name| (name.to_owned(), wire.clone())).into();
        let wires = Wires { transports, ..Wires::default() };
        let at = free();
        let [a, b, c] = [("a", 0), ("b", 1), ("c", 2)].map(|(name, id)| bind(name, id, Protocol::Tls, at));
        let is_open = || std::net::TcpListener::bind(at).is_err();
        for (name, binds, owners) in [
            ("one", vec![a.clone()], vec![0_u16]),
            ("another beside it", vec![a.clone(), b.clone()], vec![0, 1]),
            ("in another order", vec![b.clone(), a.clone()], vec![1, 0]),
            ("the first is gone", vec![b], vec![1]),
            ("one comes as the last goes", vec![c], vec![2]),
        ] {
            let errors = listeners.configure(&mut net, &binds, &wires);
            assert!(errors.is_empty(), "{name}: {}", errors[0].1);
            let doors: Vec<Vec<u16>> = listeners
                .doors
                .values()
                .map(|door| door.transports.iter().map(|transport| transport.0).collect())
                .collect();
            assert_eq!(doors, [owners], "{name}");
            assert!(is_open(), "{name}");
        }
        assert!(listeners.configure(&mut net, &[], &wires).is_empty());
        assert!(listeners.doors.is_empty() && !is_open());
    }

    #[test]
    fn what_is_new_takes_over_the_address_of_what_is_gone_or_leaves_it_as_it_was() {
        let (udp, tcp) = (Protocol::Udp, Protocol::Tcp);
        let everywhere = |at: SocketAddr| SocketAddr::from(([0, 0, 0, 0], at.port()));
        let here = |at: SocketAddr| at;
        type Side = (Protocol, fn(SocketAddr) -> SocketAddr);
        let rows: [(&str, Side, Side); 6] = [
            ("another number", (udp, here), (udp, here)),
            ("of all addresses one", (udp, everywhere), (udp, here)),
            ("all instead of one", (udp, here), (udp, everywhere)),
            ("of all addresses one, by TCP", (tcp, everywhere), (tcp, here)),
            ("all instead of one, by TCP", (tcp, here), (tcp, everywhere)),
            ("TLS instead of TCP", (tcp, here), (Protocol::Tls, here)),
        ];
        for (name, (old_protocol, old_place), (new_protocol, new_place)) in rows {
            let mut net = Net::new(Limits::within(256)).unwrap();
            let mut listeners = Listeners::default();
            let tls = Tls::load(&io::net::TlsSettings::default()).unwrap();
            let wire = Wire { tls: Some(tls), keepalive: None };
            let wires = Wires { transports: [("new".to_owned(), wire)].into(), ..Wires::default() };
            let at = free();
            let old = bind("old", 0, old_protocol, old_place(at));
            let new = bind("new", 1, new_protocol, new_place(at));
            let owner = |listeners: &Listeners| {
                let doors = listeners.doors.values().map(|door| door.transports.clone());
                doors.chain(listeners.by_socket.values().map(|id| vec![*id])).collect::<Vec<_>>()
            };
            let is_open = || match old_protocol {
                Protocol::Udp => std::net::UdpSocket::bind(at).is_err(),
                _ => std::net::TcpListener::bind(at).is_err(),
            };
            assert!(listeners.configure(&mut net, &[old], &wires).is_empty(), "{name}");
            // Beside it something is wanted that cannot be had.
            let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let wrong = bind("wrong", 2, udp, taken.local_addr().unwrap());
            let refused = listeners.configure(&mut net, &[new.clone(), wrong], &wires);
            assert_eq!(
                refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
                ["wrong"],
                "{name}"
            );
            assert_eq!(owner(&listeners), [[TransportId(0)]], "{name}");
            assert!(is_open(), "{name}");
            let refused = listeners.configure(&mut net, &[new], &wires);
            assert!(refused.is_empty(), "{name}: {}", refused[0].1);
            assert_eq!(owner(&listeners), [[TransportId(1)]], "{name}");
            assert!(is_open(), "{name}");
            assert!(listeners.configure(&mut net, &[], &wires).is_empty());
            assert!(owner(&listeners).is_empty() && !is_open(), "{name}");
        }
    }

    #[test]
    fn a_reload_opens_what_is_new_closes_what_is_gone_and_is_whole_or_nothing() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let mut listeners = Listeners::default();
        let wires = Wires::default();
        let (a, b, c) = (free(), free(), free());
        let first = [bind("a", 0, Protocol::Udp, a), bind("b", 1, Protocol::Tcp, b)];
        assert!(listeners.configure(&mut net, &first, &wires).is_empty());
        assert_eq!(names(&listeners), ["a", "b"]);
        // One of the new ones is taken by somebody else: nothing changes, and the error has a remedy.
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let wrong =
            [bind("c", 2, Protocol::Udp, c), bind("d", 3, Protocol::Udp, taken.local_addr().unwrap())];
        let refused = listeners.configure(&mut net, &wrong, &wires);
        assert_eq!(refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["d"]);
        assert!(!refused.first().unwrap().1.remedy().is_empty());
        assert_eq!(names(&listeners), ["a", "b"]);
        // What the refused reload had opened is free again.
        drop(taken);
        let second = [bind("a", 0, Protocol::Udp, a), bind("c", 2, Protocol::Udp, c)];
        assert!(listeners.configure(&mut net, &second, &wires).is_empty());
        assert_eq!(names(&listeners), ["a", "c"]);
        assert!(std::net::TcpListener::bind(b).is_ok(), "what is gone is closed");
    }
}
