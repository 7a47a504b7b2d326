//! Which of our addresses a peer reaches us at, for binds that listen on all of them.
//!
//! The stack names itself by transport. A wildcard bind is therefore several transports to the stack, one for each
//! address of ours that routes lead from; outside this module and the shell there is only the bind.

use core::net::{IpAddr, SocketAddr};

use ::sip::stack::{Flow, Protocol, Stack, Transport, TransportId};

use super::config::{Bind, Config};

/// Bits of a transport's number that stand for the bind: 64 binds.
const BIND_BITS: u16 = 6;
/// Binds that can be told apart; their numbers are below it.
pub const BINDS_MAX: u16 = 1 << BIND_BITS;
/// Addresses of ours that are told apart; a machine with more names itself by the last of them.
const OWN_MAX: usize = (1 << (16 - BIND_BITS)) - 2;

/// Our address towards a peer; the shell knows the routes.
type Route = Box<dyn Fn(IpAddr) -> Option<IpAddr>>;

/// See the module's page.
pub(super) struct Ways {
    route: Route,
    own: Vec<IpAddr>,
    /// Numbers the stack has been told of, besides those of the binds themselves.
    told: Vec<TransportId>,
}

/// The number of the bind itself.
pub(super) fn bind_id(id: TransportId) -> TransportId {
    TransportId(id.0 % BINDS_MAX)
}

/// The flow as the shell knows it.
pub(super) fn outward(flow: Flow) -> Flow {
    Flow { transport: bind_id(flow.transport), ..flow }
}

impl Ways {
    pub(super) fn new(route: impl Fn(IpAddr) -> Option<IpAddr> + 'static) -> Self {
        Self { route: Box::new(route), own: Vec::new(), told: Vec::new() }
    }
    /// Our address as `peer` can reach it from this bind, before any translation.
    pub(super) fn local_ip(&self, bind: &Bind, peer: IpAddr) -> IpAddr {
        let bound = bind.local.ip();
        if bound.is_unspecified() { (self.route)(peer.to_canonical()).unwrap_or(bound) } else { bound }
    }
    /// The flow as the stack knows it.
    pub(super) fn inward(&mut self, config: &Config, stack: &mut Stack, flow: Flow) -> Flow {
        let id = bind_id(flow.transport);
        let Some(bind) = config.binds.iter().find(|bind| bind.id == id) else { return flow };
        if !bind.local.ip().is_unspecified() {
            return Flow { transport: id, ..flow };
        }
        let own = self.local_ip(bind, flow.remote.ip());
        let at = self.own.iter().position(|known| *known == own).unwrap_or_else(|| {
            if self.own.len() < OWN_MAX {
                self.own.push(own);
            }
            self.own.len() - 1
        });
        let number = u16::try_from(at + 1).unwrap_or(1);
        let transport = TransportId(number << BIND_BITS | id.0);
        if !self.told.contains(&transport) {
            let beside = stream_beside(config, bind).map(|id| TransportId(number << BIND_BITS | id.0));
            for transport in [Some(transport), beside].into_iter().flatten() {
                self.told.push(transport);
                self.tell(config, stack, transport);
            }
        }
        Flow { transport, ..flow }
    }
    /// Tells the stack what it is called on every bind.
    pub(super) fn configure(&mut self, config: &Config, stack: &mut Stack) {
        for transport in self.told.clone() {
            let bind = config.binds.iter().find(|bind| bind.id == bind_id(transport));
            let beside = bind.and_then(|bind| stream_beside(config, bind));
            let beside = beside.map(|id| TransportId((transport.0 & !(BINDS_MAX - 1)) | id.0));
            self.told.extend(beside.filter(|beside| !self.told.contains(beside)));
        }
        for bind in &config.binds {
            self.tell(config, stack, bind.id);
        }
        for transport in &self.told {
            self.tell(config, stack, *transport);
        }
    }
    fn tell(&self, config: &Config, stack: &mut Stack, transport: TransportId) {
        let number = transport.0 >> BIND_BITS;
        let own = usize::from(number).checked_sub(1).and_then(|at| self.own.get(at));
        if let Some(bind) = config.binds.iter().find(|bind| bind.id == bind_id(transport)) {
            let own = own.copied().filter(|_| bind.local.ip().is_unspecified());
            let stream = stream_beside(config, bind).map(|id| TransportId(number << BIND_BITS | id.0));
            stack.set_transport(transport, named(bind, own, stream));
        }
    }
}

/// The TCP bind on the address of a UDP bind, when large requests are to go by it (`disable_tcp_switch=no`).
fn stream_beside(config: &Config, bind: &Bind) -> Option<TransportId> {
    let datagrams = config.tcp_switch && bind.protocol == Protocol::Udp;
    let beside = |other: &&Bind| other.protocol == Protocol::Tcp && other.local.ip() == bind.local.ip();
    config.binds.iter().filter(|_| datagrams).find(beside).map(|other| other.id)
}

/// A bind as the stack names it, with `own` in place of the address it is bound to.
fn named(bind: &Bind, own: Option<IpAddr>, stream: Option<TransportId>) -> Transport {
    let local = SocketAddr::new(own.unwrap_or(bind.local.ip()), bind.local.port());
    Transport {
        sent_by: local.to_string(),
        external: bind.external_signaling.clone(),
        local_nets: bind.local_nets.clone(),
        stream,
    }
}
