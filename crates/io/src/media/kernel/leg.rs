//! A leg whose ports are steered: no descriptor of its own, two places in the table of ports, and the way to its peer.
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use base::{Instant, Marking};

use super::carrier::Underway;
use super::frame::Template;
use super::ports::{Owner, Ports};
use super::relays::{Relays, Ticket};
use super::sys::Via;
use crate::media::ports::{self, Lease};

/// The ports of one stream. What each packet touches stands first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SteeredLeg {
    /// Something was sent.
    pub(super) spoken: bool,
    rtp_way: Option<Way>,
    pub(super) ip: Ipv4Addr,
    pub(super) marking: Marking,
    /// The peer sends its reports to a port of their own.
    pub(super) wants_rtcp: bool,
    /// The odd port is ours too; before the first talk it is not asked for, as with sockets.
    pub(super) rtcp: bool,
    rtcp_way: Option<Box<Way>>,
    /// For packets that are too long for every other way; made when there is one.
    pub(super) plain: Option<UdpSocket>,
    /// What comes to this leg is relayed below.
    pub(super) underway: Option<Box<Underway>>,
    /// What leaves by this leg is; kept until the next time, and of no use once that has ended.
    pub(super) fed: Option<(Arc<Relays>, Ticket)>,
    ports: Arc<Ports>,
    /// Declared last: what is left in the table is taken out before the ports are leased again.
    lease: Lease,
}

/// How packets of a leg reach one peer.
#[derive(Debug)]
pub(crate) struct Way {
    pub(super) to: SocketAddrV4,
    pub(super) headers: Template,
    pub(super) via: Via,
    /// Place of the AF_XDP queue on that interface, when there is one.
    pub(super) queue: Option<usize>,
    /// Longest payload that goes this way.
    pub(super) room: usize,
    /// When the kernel's tables are to be asked again.
    pub(super) good_until: Instant,
    /// The next packet goes by the kernel's own way, so that it goes on caring for its neighbour.
    pub(super) by_kernel: bool,
}

impl SteeredLeg {
    pub(crate) fn new(
        ip: Ipv4Addr,
        lease: Lease,
        wants_rtcp: bool,
        marking: Marking,
        ports: Arc<Ports>,
    ) -> Self {
        Self {
            ip,
            marking,
            wants_rtcp,
            rtcp: false,
            spoken: false,
            rtp_way: None,
            rtcp_way: None,
            plain: None,
            underway: None,
            fed: None,
            ports,
            lease,
        }
    }
    /// The RTP port; RTCP has the one above.
    pub(crate) fn port(&self) -> u16 {
        self.lease.port()
    }
    fn rtcp_port(&self) -> u16 {
        self.lease.port().saturating_add(1)
    }
    /// Receives for `slot` on `worker` from here on.
    pub(crate) fn attach(&self, worker: u16, slot: u32) {
        self.ports.give(self.ip, self.port(), Owner { worker, slot, rtcp: false });
        if self.rtcp {
            self.ports.give(self.ip, self.rtcp_port(), Owner { worker, slot, rtcp: true });
        }
    }
    /// How RTP or RTCP leaves, once it is known.
    pub(super) fn way(&mut self, rtcp: bool) -> Option<&mut Way> {
        if rtcp { self.rtcp_way.as_deref_mut() } else { self.rtp_way.as_mut() }
    }
    pub(super) fn set_way(&mut self, rtcp: bool, way: Way) {
        if rtcp {
            self.rtcp_way = Some(Box::new(way));
        } else {
            self.rtp_way = Some(way);
        }
    }
    /// Takes the odd port, unless another program holds it; then there are no reports.
    pub(super) fn open_rtcp(&mut self, worker: u16, slot: u32) -> bool {
        if !self.rtcp && ports::bind(IpAddr::V4(self.ip), self.rtcp_port()).is_ok() {
            self.rtcp = true;
            self.ports.give(self.ip, self.rtcp_port(), Owner { worker, slot, rtcp: true });
        }
        self.rtcp
    }
    pub(super) fn let_in(&self, source: Option<SocketAddr>) {
        let source = source.and_then(|source| match source {
            SocketAddr::V4(source) => Some(source),
            SocketAddr::V6(_) => None,
        });
        self.ports.let_in(self.port(), source);
    }
    /// An ordinary socket on the leg's port, to send with; what arrives is steered all the same.
    pub(super) fn plain(&mut self, rtcp: bool) -> Option<&UdpSocket> {
        if rtcp {
            // Reports are never that long.
            return None;
        }
        if self.plain.is_none() {
            let socket = ports::bind(IpAddr::V4(self.ip), self.port()).ok()?;
            if self.marking != Marking::default() {
                // A call without its mark is better than none.
                let _ = crate::sys::mark(&socket, false, self.marking);
            }
            self.plain = Some(socket);
        }
        self.plain.as_ref()
    }
}

impl Drop for SteeredLeg {
    fn drop(&mut self) {
        // The worker has ended these, unless it came to grief.
        if let Some(underway) = self.underway.take() {
            underway.end();
        }
        if let Some((relays, ticket)) = self.fed.take() {
            relays.end(ticket);
        }
        self.ports.take(self.port());
        if self.rtcp {
            self.ports.take(self.rtcp_port());
        }
    }
}
