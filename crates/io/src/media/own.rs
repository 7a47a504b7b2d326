//! Sockets of their own, by whichever of the two ways they are looked into.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;

use media::{Batch, PacketIo};

use super::sockets::{SocketIo, SocketLeg};
use super::uring::UringIo;

/// The sockets of one worker's legs.
pub(crate) enum OwnSockets {
    /// Looked into by `epoll`.
    Epoll(SocketIo),
    /// By io_uring.
    Uring(Box<UringIo>),
}

impl OwnSockets {
    /// Looked into by `epoll`. Fails only without descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::Epoll(SocketIo::new()?))
    }
    /// Goes over to a ring of the calling thread, before the first leg; says why not.
    pub(crate) fn use_uring(&mut self) -> Result<(), String> {
        let ring = UringIo::new().map_err(|refused| format!("{}; {}", refused.why, refused.remedy))?;
        *self = Self::Uring(Box::new(ring));
        Ok(())
    }
    /// Packets that were taken for sending and that no socket took.
    pub(crate) fn refused(&self) -> u64 {
        match self {
            Self::Epoll(_) => 0,
            Self::Uring(ring) => ring.refused(),
        }
    }
}

impl PacketIo for OwnSockets {
    type Leg = SocketLeg;

    fn attach(&mut self, slot: u32, leg: &mut SocketLeg) -> bool {
        match self {
            Self::Epoll(io) => io.attach(slot, leg),
            Self::Uring(io) => io.attach(slot, leg),
        }
    }
    fn detach(&mut self, leg: &mut SocketLeg) {
        match self {
            Self::Epoll(io) => io.detach(leg),
            Self::Uring(io) => io.detach(leg),
        }
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        match self {
            Self::Epoll(io) => io.rx_batch(batch),
            Self::Uring(io) => io.rx_batch(batch),
        }
    }
    fn put(&mut self, slot: u32, leg: &mut SocketLeg, to: SocketAddr, packet: &[u8]) -> bool {
        match self {
            Self::Epoll(io) => io.put(slot, leg, to, packet),
            Self::Uring(io) => io.put(slot, leg, to, packet),
        }
    }
    fn put_rtcp(
        &mut self,
        slot: u32,
        leg: &mut SocketLeg,
        to: SocketAddr,
        shared: bool,
        packet: &[u8],
    ) -> bool {
        match self {
            Self::Epoll(io) => io.put_rtcp(slot, leg, to, shared, packet),
            Self::Uring(io) => io.put_rtcp(slot, leg, to, shared, packet),
        }
    }
    fn tx_batch(&mut self) {
        match self {
            Self::Epoll(io) => io.tx_batch(),
            Self::Uring(io) => io.tx_batch(),
        }
    }
    fn lock(&mut self, leg: &mut SocketLeg, source: Option<SocketAddr>) {
        match self {
            Self::Epoll(io) => io.lock(leg, source),
            Self::Uring(io) => io.lock(leg, source),
        }
    }
}
