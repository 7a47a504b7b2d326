//! Many addresses on few sockets.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ::io::net::{Limits, Net, NetEvent, TransportId};
use base::Instant;

/// Where a peer sends from: an address and a socket, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    address: usize,
    socket: usize,
}

/// Sockets that are bound to every address of this machine, and the addresses that are used.
pub(super) struct Sources {
    net: Net,
    server: SocketAddr,
    addresses: Vec<IpAddr>,
    by_address: HashMap<IpAddr, usize>,
    sockets: Vec<TransportId>,
    /// What came, one after the other, and from which byte to which it is.
    bytes: Vec<u8>,
    came: Vec<(TransportId, IpAddr, std::ops::Range<usize>)>,
}

impl Sources {
    pub(super) fn open(server: SocketAddr, addresses: Vec<IpAddr>, ports: usize) -> io::Result<Self> {
        let mut net = Net::new(Limits::default())?;
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut sockets = Vec::new();
        for _ in 0..ports.max(1) {
            let socket = net.bind_udp(SocketAddr::new(any, 0)).map_err(io::Error::other)?;
            net.set_udp_prompt(socket);
            sockets.push(socket);
        }
        if addresses.is_empty() || addresses.iter().any(|address| address.is_ipv4() != any.is_ipv4()) {
            return Err(io::Error::other("no address to register from of the server's family"));
        }
        let by_address = addresses.iter().copied().zip(0..).collect();
        Ok(Self { net, server, addresses, by_address, sockets, bytes: Vec::new(), came: Vec::new() })
    }
    /// The place of a peer by its number.
    pub(super) fn of(&self, peer: usize) -> Place {
        let (address, rest) = (peer % self.addresses.len(), peer / self.addresses.len());
        Place { address, socket: rest % self.sockets.len() }
    }
    pub(super) fn send(&mut self, place: Place, bytes: &[u8]) {
        let (address, socket) = (self.addresses.get(place.address), self.sockets.get(place.socket));
        if let (Some(address), Some(socket)) = (address, socket) {
            self.net.send_udp(*socket, Some(*address), self.server, bytes);
        }
    }
    /// Sends what is queued and sleeps until something comes.
    pub(super) fn wait(&mut self, now: Instant, until: Instant) {
        let Self { net, server, bytes, came, .. } = self;
        let waited = net.wait(now, Some(until), &mut |event| {
            if let NetEvent::Datagram { transport, from, local, bytes: datagram } = event
                && from == *server
            {
                let start = bytes.len();
                bytes.extend_from_slice(datagram);
                came.push((transport, local.ip(), start..bytes.len()));
            }
        });
        // The reactor only waits; what it cannot is said by everybody being lost.
        debug_assert!(waited.is_ok(), "{waited:?}");
    }
    /// Hands out what has come: to which place, and what.
    pub(super) fn take(&mut self, mut each: impl FnMut(&mut Self, Place, &[u8])) {
        let (mut came, mut bytes) = (std::mem::take(&mut self.came), std::mem::take(&mut self.bytes));
        for (socket, address, range) in came.drain(..) {
            let socket = self.sockets.iter().position(|own| *own == socket);
            let address = self.by_address.get(&address).copied();
            if let (Some(address), Some(socket)) = (address, socket) {
                each(self, Place { address, socket }, bytes.get(range).unwrap_or_default());
            }
        }
        bytes.clear();
        (self.came, self.bytes) = (came, bytes);
    }
}
