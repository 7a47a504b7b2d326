//! Our addresses towards peers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Our address towards a peer, as the kernel's routes say; remembered, because a call asks for it every time.
#[derive(Default)]
pub(crate) struct Routes {
    known: std::cell::RefCell<std::collections::HashMap<IpAddr, IpAddr>>,
}

/// Peers remembered; beyond it all are asked for again.
const ROUTES_MAX: usize = 4096;

impl Routes {
    pub(crate) fn towards(&self, peer: IpAddr) -> Option<IpAddr> {
        if let Some(known) = self.known.borrow().get(&peer) {
            return Some(*known);
        }
        // Connecting a datagram socket sends nothing; it only chooses the source address.
        let any: IpAddr =
            if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((peer, 5060)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        let mut known = self.known.borrow_mut();
        if known.len() >= ROUTES_MAX {
            known.clear();
        }
        known.insert(peer, own);
        Some(own)
    }
}
