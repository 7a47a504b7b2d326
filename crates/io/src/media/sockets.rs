//! Per-leg sockets, drained through `epoll` at each tick, sent from one by one.
//!
//! Sockets of their own cannot share a batch: `recvmmsg` on one of them was measured 4 to 9 % dearer than single
//! calls, because a leg has one packet a tick. So each ready socket is read once a pass.
#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use base::Marking;
use media::{Arrival, Batch, PacketIo};

use super::ports::{self, Lease};
use super::sys;
use super::uring::Seat;
use crate::sys::{Epoll, NOT_READY, Ready};

/// Sockets that one pass of a receive phase looks at.
const READY_PER_PASS: usize = 256;
/// Passes of a receive phase: a leg may be behind by so many packets and still catch up within one tick.
const PASSES_MAX: usize = 64;
/// Datagrams of one receive phase, after which prompts have their turn: some 15 ms of work. A flood beyond it waits in
/// the sockets' own bounded queues, and `epoll` goes round so that every socket is read in the end.
const DATAGRAMS_MAX: usize = 2048;

/// The ports of one stream.
///
/// A call that is refused, or that nobody speaks on, is all that many legs ever see. So what only talk needs is done
/// when we first speak: the RTCP port is bound, and the RTP port connected to the one source that is let in.
#[derive(Debug)]
pub(crate) struct SocketLeg {
    pub(super) rtp: UdpSocket,
    pub(super) rtcp: Option<UdpSocket>,
    /// The only source let in, as the worker judges.
    pub(super) locked: Option<SocketAddr>,
    pub(super) connected: Option<SocketAddr>,
    /// The peer sends its reports to a port of their own.
    pub(super) wants_rtcp: bool,
    /// Something was sent.
    pub(super) spoken: bool,
    ip: IpAddr,
    marking: Marking,
    /// What an io_uring knows the sockets by; it holds the lease too, until it has let them go.
    pub(super) seat: Option<Box<Seat>>,
    /// Declared last: the sockets are closed before their ports are leased again.
    pub(super) lease: Arc<Lease>,
}

impl SocketLeg {
    pub(crate) fn new(
        ip: IpAddr,
        (lease, rtp): (Lease, UdpSocket),
        wants_rtcp: bool,
        marking: Marking,
    ) -> Self {
        mark(&rtp, ip, marking);
        let (rtcp, locked, connected, seat, lease) = (None, None, None, None, Arc::new(lease));
        Self { rtp, rtcp, locked, connected, wants_rtcp, spoken: false, ip, marking, seat, lease }
    }
    /// The RTP port.
    pub(crate) fn port(&self) -> u16 {
        self.lease.port()
    }
}

/// Marks what a socket sends, as far as the kernel lets us: a call without its mark is better than none.
fn mark(socket: &UdpSocket, ip: IpAddr, marking: Marking) {
    if marking != Marking::default() {
        let _ = crate::sys::mark(socket, ip.is_ipv6(), marking);
    }
}

/// The sockets of one worker.
pub(crate) struct SocketIo {
    epoll: Epoll,
    ready: Box<[Ready]>,
    filled: usize,
    next: usize,
    passes: usize,
    datagrams: usize,
}

impl SocketIo {
    /// Fails only without descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            ready: vec![NOT_READY; READY_PER_PASS].into(),
            filled: 0,
            next: 0,
            passes: 0,
            datagrams: 0,
        })
    }

    /// What was put off until the leg speaks.
    fn begin_talk(&mut self, slot: u32, leg: &mut SocketLeg) {
        leg.spoken = true;
        if leg.wants_rtcp {
            self.open_rtcp(slot, leg);
        }
        connect(leg);
    }
    fn open_rtcp(&mut self, slot: u32, leg: &mut SocketLeg) {
        if let Some(socket) = open_rtcp(leg) {
            let key = key(slot, socket.as_raw_fd(), true);
            let _ = self.epoll.add(socket.as_fd(), libc::EPOLLIN, key);
        }
    }

    /// Another look at what is ready; false when the phase is over.
    fn next_pass(&mut self) -> bool {
        (self.next, self.filled) = (0, 0);
        if self.passes < PASSES_MAX && self.datagrams < DATAGRAMS_MAX {
            self.passes += 1;
            self.filled = self.epoll.wait(&mut self.ready, Some(Duration::ZERO)).unwrap_or(0);
        }
        if self.filled == 0 {
            (self.passes, self.datagrams) = (0, 0);
        }
        self.filled > 0
    }
}

/// What `epoll` carries for a socket: slot, descriptor and which of the two ports.
fn key(slot: u32, fd: RawFd, rtcp: bool) -> u64 {
    u64::from(slot) << 32 | u64::from(fd.cast_unsigned()) << 1 | u64::from(rtcp)
}

impl PacketIo for SocketIo {
    type Leg = SocketLeg;

    fn attach(&mut self, slot: u32, leg: &mut SocketLeg) -> bool {
        let watch = |socket: &UdpSocket, rtcp| {
            self.epoll.add(socket.as_fd(), libc::EPOLLIN, key(slot, socket.as_raw_fd(), rtcp)).is_ok()
        };
        watch(&leg.rtp, false) && leg.rtcp.as_ref().is_none_or(|socket| watch(socket, true))
    }
    fn detach(&mut self, leg: &mut SocketLeg) {
        // A socket that was never attached is no loss.
        let _ = self.epoll.remove(leg.rtp.as_fd());
        if let Some(socket) = &leg.rtcp {
            let _ = self.epoll.remove(socket.as_fd());
        }
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        loop {
            while let Some(ready) = self.ready.get(self.next).filter(|_| self.next < self.filled) {
                let Some(room) = batch.room() else { return true };
                self.next += 1;
                let key = ready.u64;
                let fd = ((key as u32) >> 1).cast_signed();
                // A late ICMP answer of a connected peer comes as an error; the socket goes on.
                if let Ok((length, from)) = sys::receive_from(fd, room) {
                    self.datagrams += 1;
                    batch.push(Arrival { slot: (key >> 32) as u32, rtcp: key & 1 != 0, from, length });
                }
            }
            if !self.next_pass() {
                return false;
            }
        }
    }
    fn put(&mut self, slot: u32, leg: &mut SocketLeg, to: SocketAddr, packet: &[u8]) -> bool {
        if !leg.spoken {
            self.begin_talk(slot, leg);
        }
        let sent = if leg.connected == Some(to) { leg.rtp.send(packet) } else { leg.rtp.send_to(packet, to) };
        match sent {
            Ok(_) => true,
            // The peer's earlier ICMP is told once and takes this packet's place: send it again.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                leg.rtp.send_to(packet, to).is_ok()
            }
            Err(_) => false,
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
        if shared {
            return self.put(slot, leg, to, packet);
        }
        self.open_rtcp(slot, leg);
        leg.rtcp.as_ref().is_some_and(|socket| socket.send_to(packet, to).is_ok())
    }
    fn lock(&mut self, leg: &mut SocketLeg, source: Option<SocketAddr>) {
        leg.locked = source;
        if leg.spoken {
            connect(leg);
        }
    }
}

/// Binds the odd port, unless it is bound, or another program holds it; then there are no reports.
pub(super) fn open_rtcp(leg: &mut SocketLeg) -> Option<&UdpSocket> {
    if leg.rtcp.is_some() {
        return None;
    }
    let socket = ports::bind(leg.ip, leg.port() + 1).ok()?;
    mark(&socket, leg.ip, leg.marking);
    Some(leg.rtcp.insert(socket))
}

/// Lets the kernel know who is let in.
pub(super) fn connect(leg: &mut SocketLeg) {
    if leg.connected == leg.locked {
        return;
    }
    let connected = leg.locked.filter(|source| leg.rtp.connect(source).is_ok());
    if connected.is_none() {
        // Nobody in particular, or one that the kernel has no way to: the worker's own judgement remains.
        let _ = sys::disconnect(&leg.rtp);
    }
    leg.connected = connected;
}
