//! A back-end without a media plane: for a program that is the other side of one and moves all packets on its own thread.
#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::Marking;
use media::{Batch, PacketIo as _};

use super::backend::{Io, Leg, MediaIo};
use super::front::OpenError;
use super::ports::{NoPort, PortPool, PortRange};
use super::sys;

/// Ports of one call.
#[derive(Debug)]
pub struct WireLeg {
    leg: Leg,
    port: u16,
}

impl WireLeg {
    /// The RTP port; RTCP has the one above.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// Opens legs and moves their packets. Legs are dropped before it.
pub struct Wire {
    pool: Arc<PortPool>,
    backend: MediaIo,
    unrouted: u64,
    /// Last: the programs are detached when nothing uses them.
    io: Io,
}

impl core::fmt::Debug for Wire {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Wire({:?})", self.io)
    }
}

impl Wire {
    /// Takes the first worker's part of what was set up. Fails only without descriptors.
    pub fn new(mut io: Io, ports: PortRange) -> io::Result<Self> {
        Ok(Self { pool: PortPool::new(ports), backend: io.take_worker(0)?, unrouted: 0, io })
    }
    /// How packets are moved, and why so.
    pub const fn io(&self) -> &Io {
        &self.io
    }
    /// Ports of a call on `ip`; what arrives carries `slot`. `random` chooses the port.
    ///
    /// # Errors
    /// When ports or descriptors have run out, or the address is not ours.
    pub fn open(&mut self, slot: u32, ip: IpAddr, random: u64) -> Result<WireLeg, OpenError> {
        let leased = self.pool.lease(ip, random).map_err(|why| match why {
            NoPort::Exhausted { foreign } => {
                let PortRange { first, last } = self.pool.range();
                OpenError::NoPort { first, last, leased: self.pool.leased(), foreign }
            }
            NoPort::Bind(error) => OpenError::Bind { ip, error },
        })?;
        let port = leased.0.port();
        let mut leg = self.io.leg((0, slot), ip, leased, true, Marking::default());
        if self.backend.attach(slot, &mut leg) {
            return Ok(WireLeg { leg, port });
        }
        Err(OpenError::Bind { ip, error: io::Error::from_raw_os_error(libc::EMFILE) })
    }
    /// Adds what has arrived to an empty batch. True when there may be more.
    pub fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        self.backend.rx_batch(batch)
    }
    /// Puts RTP into what [`Self::tx_batch`] sends.
    pub fn put(&mut self, slot: u32, leg: &mut WireLeg, to: SocketAddr, packet: &[u8]) {
        if !self.backend.put(slot, &mut leg.leg, to, packet) {
            self.unrouted += 1;
        }
    }
    /// Sends all that was put.
    pub fn tx_batch(&mut self) {
        self.backend.tx_batch();
    }
    /// Packets that no socket took.
    pub fn unsent(&self) -> u64 {
        self.unrouted + self.backend.refused()
    }
}

/// Keeps the calling thread on a processor and, where that is allowed, gives it real-time priority.
///
/// # Errors
/// When either is refused; the other is done all the same.
pub fn settle_thread(processor: Option<usize>, real_time: bool) -> io::Result<()> {
    let pinned = processor.map_or(Ok(()), sys::pin_to);
    let preferred = if real_time { sys::become_real_time() } else { Ok(()) };
    pinned.and(preferred)
}
