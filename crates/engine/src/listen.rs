//! Sockets of the transports: which bind of the configuration is which socket, and which TCP connection leads where.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use driver::sip::Bind;
use io::net::{BindError, FlowId, FlowKind, ListenerId, Net, TransportId as Socket};
use sip::frame::Framer;
use sip::stack::{ConnectionId, Flow, Protocol, TransportId};

enum Open {
    Udp(Socket),
    Tcp(ListenerId),
}

/// One SIP connection.
pub(crate) struct Connection {
    pub(crate) flow: Flow,
    pub(crate) framer: Framer,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Listeners {
    open: BTreeMap<TransportId, (Bind, Open)>,
    by_socket: HashMap<Socket, TransportId>,
    by_listener: HashMap<ListenerId, TransportId>,
    connections: HashMap<FlowId, Connection>,
    by_remote: HashMap<(TransportId, SocketAddr), FlowId>,
    by_id: HashMap<ConnectionId, FlowId>,
    next: u64,
}

/// Whether a bind keeps the socket it has.
pub(crate) fn same_socket(old: &Bind, new: &Bind) -> bool {
    new.id == old.id && new.local == old.local && new.protocol == old.protocol
}

/// Most SIP connections; beyond it the reactor's own limit has long closed the door.
const CONNECTIONS_MAX: usize = 8192;

impl Listeners {
    /// Opens what is new, keeps what is the same, closes what is gone; or, when anything cannot be opened, changes nothing
    /// and says why, by the names of the transports.
    pub(crate) fn configure(&mut self, net: &mut Net, binds: &[Bind]) -> Vec<(String, BindError)> {
        let mut fresh = Vec::new();
        let mut errors = Vec::new();
        for bind in binds {
            if self.open.get(&bind.id).is_some_and(|(old, _)| same_socket(old, bind)) {
                continue;
            }
            let opened = match bind.protocol {
                Protocol::Udp => net.bind_udp(bind.local).map(Open::Udp),
                _ => net.listen_tcp(bind.local, FlowKind::Sip).map(Open::Tcp),
            };
            match opened {
                Ok(open) => fresh.push((bind.clone(), open)),
                Err(error) => errors.push((bind.name.clone(), error)),
            }
        }
        if !errors.is_empty() {
            fresh.into_iter().for_each(|(_, open)| self.close(net, open));
            return errors;
        }
        let gone: Vec<TransportId> = self
            .open
            .iter()
            .filter(|(_, (old, _))| !binds.iter().any(|new| same_socket(old, new)))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            if let Some((_, open)) = self.open.remove(&id) {
                self.close(net, open);
            }
        }
        for (bind, open) in fresh {
            match open {
                Open::Udp(socket) => self.by_socket.insert(socket, bind.id),
                Open::Tcp(listener) => self.by_listener.insert(listener, bind.id),
            };
            self.open.insert(bind.id, (bind, open));
        }
        // What a reload changes of a bind that stays open.
        for bind in binds {
            let Some((kept, open)) = self.open.get_mut(&bind.id) else { continue };
            kept.clone_from(bind);
            // Packets without their mark are better than no packets.
            let _ = match open {
                Open::Udp(socket) => net.mark_udp(*socket, bind.marking),
                Open::Tcp(listener) => net.mark_listener(*listener, bind.marking),
            };
        }
        errors
    }
    fn close(&mut self, net: &mut Net, open: Open) {
        match open {
            Open::Udp(socket) => {
                self.by_socket.remove(&socket);
                net.close_udp(socket);
            }
            Open::Tcp(listener) => {
                self.by_listener.remove(&listener);
                net.close_listener(listener);
            }
        }
    }
    /// The bind a datagram came to.
    pub(crate) fn datagram(&self, socket: Socket, from: SocketAddr) -> Option<Flow> {
        let id = *self.by_socket.get(&socket)?;
        Some(Flow { transport: id, protocol: Protocol::Udp, connection: None, remote: from })
    }
    /// The flow of a datagram that could not be sent.
    pub(crate) fn unsent(&self, socket: Socket, to: SocketAddr) -> Option<Flow> {
        self.datagram(socket, to)
    }
    /// A connection came in.
    pub(crate) fn accepted(&mut self, listener: ListenerId, flow: FlowId, remote: SocketAddr) -> bool {
        let Some(id) = self.by_listener.get(&listener).copied() else { return false };
        self.add(id, flow, remote)
    }
    fn add(&mut self, id: TransportId, flow: FlowId, remote: SocketAddr) -> bool {
        if self.connections.len() >= CONNECTIONS_MAX {
            return false;
        }
        self.next += 1;
        let connection = ConnectionId(self.next);
        let sip = Flow { transport: id, protocol: Protocol::Tcp, connection: Some(connection), remote };
        self.connections.insert(flow, Connection { flow: sip, framer: Framer::new() });
        self.by_remote.insert((id, remote), flow);
        self.by_id.insert(connection, flow);
        true
    }
    /// A connection's state.
    pub(crate) fn connection(&mut self, flow: FlowId) -> Option<&mut Connection> {
        self.connections.get_mut(&flow)
    }
    /// A connection is gone; the flow the SIP machines knew it by.
    pub(crate) fn closed(&mut self, flow: FlowId) -> Option<Flow> {
        let connection = self.connections.remove(&flow)?;
        let key = (connection.flow.transport, connection.flow.remote);
        if self.by_remote.get(&key) == Some(&flow) {
            self.by_remote.remove(&key);
        }
        if let Some(id) = connection.flow.connection {
            self.by_id.remove(&id);
        }
        Some(connection.flow)
    }
    /// Sends one message. `false`: it cannot be sent that way.
    pub(crate) fn send(&mut self, net: &mut Net, flow: Flow, bytes: &[u8]) -> bool {
        match self.open.get(&flow.transport) {
            Some((_, Open::Udp(socket))) if flow.protocol == Protocol::Udp => {
                net.send_udp(*socket, None, flow.remote, bytes);
                true
            }
            _ => self.send_stream(net, flow, bytes),
        }
    }
    fn send_stream(&mut self, net: &mut Net, flow: Flow, bytes: &[u8]) -> bool {
        let by_id = flow.connection.and_then(|id| self.by_id.get(&id).copied());
        let known = by_id.or_else(|| self.by_remote.get(&(flow.transport, flow.remote)).copied());
        let open = known.or_else(|| {
            let made = net.connect_tcp(flow.remote, None, FlowKind::Sip).ok()?;
            let marking = self.open.get(&flow.transport).map(|(bind, _)| bind.marking).unwrap_or_default();
            if marking != base::Marking::default() {
                let _ = net.mark_flow(made, flow.remote, marking);
            }
            self.add(flow.transport, made, flow.remote).then_some(made)
        });
        match open {
            Some(open) => {
                net.send_flow(open, bytes);
                true
            }
            None => false,
        }
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
            marking: base::Marking::default(),
        }
    }
    fn names(listeners: &Listeners) -> Vec<String> {
        listeners.open.values().map(|(bind, _)| bind.name.clone()).collect()
    }
    /// An address that nobody listens at.
    fn free() -> SocketAddr {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn a_reload_opens_what_is_new_closes_what_is_gone_and_is_whole_or_nothing() {
        let mut net = Net::new(Limits::within(256)).unwrap();
        let mut listeners = Listeners::default();
        let (a, b, c) = (free(), free(), free());
        let first = [bind("a", 0, Protocol::Udp, a), bind("b", 1, Protocol::Tcp, b)];
        assert!(listeners.configure(&mut net, &first).is_empty());
        assert_eq!(names(&listeners), ["a", "b"]);
        // One of the new ones is taken by somebody else: nothing changes, and the error has a remedy.
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let wrong =
            [bind("c", 2, Protocol::Udp, c), bind("d", 3, Protocol::Udp, taken.local_addr().unwrap())];
        let refused = listeners.configure(&mut net, &wrong);
        assert_eq!(refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["d"]);
        assert!(!refused.first().unwrap().1.remedy().is_empty());
        assert_eq!(names(&listeners), ["a", "b"]);
        // What the refused reload had opened is free again.
        drop(taken);
        let second = [bind("a", 0, Protocol::Udp, a), bind("c", 2, Protocol::Udp, c)];
        assert!(listeners.configure(&mut net, &second).is_empty());
        assert_eq!(names(&listeners), ["a", "c"]);
        assert!(std::net::TcpListener::bind(b).is_ok(), "what is gone is closed");
    }
}
