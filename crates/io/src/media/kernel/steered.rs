//! Every media port of a worker on one socket, and sends in batches with headers of our own.
//!
//! Queues of interfaces with an AF_XDP socket are a quicker way in and out beside that. What does not come by one (fragments,
//! other interfaces, ports of a worker that has no queue) comes by the socket.
//!
//! What leaves by a packet socket has passed the kernel's tables of routes and neighbours, which are asked again every
//! two seconds; no filter of the output chain and no address translation sees it. What the tables do not know goes
//! through a raw socket, by the kernel's own way.
#![forbid(unsafe_code)]

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use base::Instant;
use lanes::prefetch;
use media::{Batch, PacketIo, RelayPlan, Relayed};
use std::sync::Arc;

use super::carrier::Carrier;
use super::frame::{self, ETHERNET, HEADERS, IPV4, Template, UDP};
use super::leg::{SteeredLeg, Way};
use super::ports::{Owner, Ports};
use super::ring::Queue;
use super::sys::{self, FRAME_BYTES, Outbox, Receiver, Via};
use super::tables::Tables;
use crate::clock::Clock;

/// Questions to the kernel's tables in one tick, some 10 us each; more ways that are due wait for the next tick.
const ASKED_PER_TICK: u32 = 16;
/// Datagrams of one receive phase, as with sockets of their own.
const DATAGRAMS_MAX: usize = 2048;
/// Frames ahead of the one that is read whose memory is asked for.
const AHEAD: u32 = 4;
/// Lines of the cache that a frame with a packet of G.711 has.
const FRAME_LINES: usize = 4;
/// Priorities of packets (`SO_PRIORITY`); a socket each, because the mark is the socket's.
const PRIORITIES: u8 = 8;
/// Bytes that a worker's socket may hold while the worker is late: 100 ms of 5,000 streams.
const RECEIVE_BYTES: i32 = 32 << 20;
/// Bytes of frames on their way to an interface.
const SEND_BYTES: i32 = 8 << 20;

/// Everything of one worker that needs privileges to be made.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pub(super) receiver: OwnedFd,
    /// Packet sockets by priority, then raw sockets by priority.
    senders: Vec<OwnedFd>,
}

impl Descriptors {
    pub(super) fn open() -> io::Result<Self> {
        let receiver = sys::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        crate::sys::bind(&receiver, SocketAddr::from(([127, 0, 0, 1], 0)))?;
        crate::sys::set_option(&receiver, libc::SOL_IP, libc::IP_RECVORIGDSTADDR, 1)?;
        crate::sys::set_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)?;
        let mut senders = Vec::with_capacity(2 * usize::from(PRIORITIES));
        // Protocol 0: a packet socket that receives nothing.
        for (family, protocol) in [(libc::AF_PACKET, 0), (libc::AF_INET, libc::IPPROTO_RAW)] {
            for priority in 0..PRIORITIES {
                let socket = sys::open(family, libc::SOCK_RAW, protocol)?;
                crate::sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BYTES)?;
                crate::sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority.into())?;
                senders.push(socket);
            }
        }
        Ok(Self { receiver, senders })
    }
}

/// One queue of an interface.
struct Ring {
    interface: u32,
    queue: Queue,
}

/// One worker's part.
pub(crate) struct SteeredIo {
    worker: u16,
    ports: Arc<Ports>,
    fds: Descriptors,
    receiver: Receiver,
    next: usize,
    filled: usize,
    datagrams: usize,
    queues: Vec<Ring>,
    /// The receive phase has come to the queues, and is at this one.
    socket_done: bool,
    queue: usize,
    outbox: Outbox,
    tables: Tables,
    now: Instant,
    /// Questions left in this tick.
    may_ask: u32,
    /// Frames that no socket took.
    refused: u64,
    /// Datagrams that came by a queue.
    by_xdp: u64,
    /// Where bridges can be relayed by the program of the interfaces.
    carrier: Option<Box<Carrier>>,
}

impl SteeredIo {
    /// `direct`: packets to neighbours may leave past the kernel's IP layer.
    pub(super) fn new(worker: u16, ports: Arc<Ports>, fds: Descriptors, direct: bool) -> io::Result<Self> {
        Ok(Self {
            worker,
            ports,
            fds,
            receiver: Receiver::new(),
            next: 0,
            filled: 0,
            datagrams: 0,
            queues: Vec::new(),
            socket_done: false,
            queue: 0,
            outbox: Outbox::new(),
            tables: Tables::new(direct)?,
            now: Clock.now(),
            may_ask: ASKED_PER_TICK,
            refused: 0,
            by_xdp: 0,
            carrier: None,
        })
    }
    /// Receives and sends by a queue of an interface, too.
    pub(super) fn add_queue(&mut self, interface: u32, queue: Queue) {
        self.queues.push(Ring { interface, queue });
    }
    /// Has the program of the interfaces relay bridges.
    pub(super) fn set_carrier(&mut self, carrier: Carrier) {
        self.carrier = Some(Box::new(carrier));
    }
    /// Datagrams that came by a queue, so far.
    pub(crate) const fn by_xdp(&self) -> u64 {
        self.by_xdp
    }
    /// Frames that no socket took, so far.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Another batch; false when the socket's part of the phase is over.
    fn next_batch(&mut self) -> bool {
        if self.socket_done {
            return false;
        }
        let ran_dry = self.filled > 0 && self.filled < sys::BATCH;
        (self.next, self.filled) = (0, 0);
        if !ran_dry && self.datagrams < DATAGRAMS_MAX {
            self.filled = self.receiver.fill(&self.fds.receiver);
            self.datagrams += self.filled;
        }
        if self.filled == 0 {
            // A flood of the socket takes nothing from the queues.
            (self.socket_done, self.datagrams) = (true, 0);
        }
        self.filled > 0
    }
    /// Datagrams of the queues; true when the batch was full before they were empty.
    fn receive_frames(&mut self, batch: &mut Batch) -> bool {
        while let Some(ring) = self.queues.get_mut(self.queue) {
            while self.datagrams < DATAGRAMS_MAX {
                if batch.room().is_none() {
                    return true;
                }
                let (ports, worker) = (&self.ports, self.worker);
                // Frames were written by another processor, and the table of ports is larger than the nearest caches.
                if let Some(frame) = ring.queue.ahead(2 * AHEAD) {
                    prefetch(frame, 0..FRAME_LINES);
                }
                if let Some(port) = ring.queue.ahead(AHEAD).and_then(frame::port) {
                    ports.fetch(port);
                }
                let seen = ring.queue.receive(|frame| {
                    let Some(parsed) = frame::parse(frame) else { return false };
                    arrive(ports.owner(parsed.to.port()), worker, parsed.from, parsed.payload, batch)
                });
                let Some(is_ours) = seen else { break };
                self.datagrams += 1;
                self.by_xdp += u64::from(is_ours);
            }
            ring.queue.end_receive();
            (self.queue, self.datagrams) = (self.queue + 1, 0);
        }
        false
    }

    /// Looks a way up in the kernel's tables, when it is not known.
    fn ask_way(&mut self, leg: &SteeredLeg, rtcp: bool, to: SocketAddrV4) -> Way {
        let from = SocketAddrV4::new(leg.ip, leg.port().saturating_add(u16::from(rtcp)));
        let known = self.tables.known(leg.ip, *to.ip(), self.now);
        let answer = known.unwrap_or_else(|| {
            self.may_ask = self.may_ask.saturating_sub(1);
            self.tables.ask(leg.ip, *to.ip(), self.now)
        });
        let room = answer.route.map_or(0, |route| route.mtu).min(FRAME_BYTES - ETHERNET);
        let (via, macs) = match answer.neighbour {
            Some((interface, macs, _)) => (Via::Interface(interface), macs),
            None => (Via::Kernel(leg.ip, *to.ip()), Default::default()),
        };
        let queue = match via {
            Via::Interface(wanted) => self.queues.iter().position(|ring| ring.interface == wanted),
            Via::Kernel(..) => None,
        };
        Way {
            to,
            headers: Template::new(from, to, leg.marking.tos, macs),
            via,
            queue,
            room: room.saturating_sub(IPV4 + UDP),
            good_until: answer.good_until,
            by_kernel: answer.neighbour.is_some() && known.is_none(),
        }
    }

    fn add(&mut self, leg: &mut SteeredLeg, rtcp: bool, to: SocketAddr, packet: &[u8]) -> bool {
        let SocketAddr::V4(to) = to else { return false };
        let (now, may_ask) = (self.now, self.may_ask > 0);
        let is_right = |way: &mut Way| way.to == to && (now < way.good_until || !may_ask);
        if !leg.way(rtcp).is_some_and(is_right) {
            let way = self.ask_way(leg, rtcp, to);
            leg.set_way(rtcp, way);
        }
        let (from, priority) = (leg.ip, leg.marking.priority.min(PRIORITIES - 1));
        let Some(way) = leg.way(rtcp) else { return false };
        let by_kernel = std::mem::take(&mut way.by_kernel);
        if packet.len() > way.room {
            return leg.plain(rtcp).is_some_and(|socket| socket.send_to(packet, to).is_ok());
        }
        let write = |room: &mut [u8]| way.headers.write(packet, room);
        if !by_kernel
            && let Some(ring) = way.queue.and_then(|place| self.queues.get_mut(place))
            && ring.queue.push(write)
        {
            return true;
        }
        if self.outbox.is_full() {
            self.send_batch();
        }
        match way.via {
            Via::Interface(_) if !by_kernel => self.outbox.push(priority, way.via, 0, write),
            _ => self.outbox.push(PRIORITIES + priority, Via::Kernel(from, *to.ip()), ETHERNET, write),
        }
    }
    fn send_batch(&mut self) {
        self.refused += self.outbox.send(&self.fds.senders) as u64;
    }
}

/// Copies a datagram that came for one of the worker's own ports; false when it did not, or the batch is full.
fn arrive(owner: Option<Owner>, worker: u16, from: SocketAddrV4, bytes: &[u8], batch: &mut Batch) -> bool {
    let owner = owner.filter(|owner| owner.worker == worker);
    owner.is_some_and(|owner| batch.copy(owner.slot, owner.rtcp, SocketAddr::V4(from), bytes))
}

const _: () = assert!(HEADERS < FRAME_BYTES);

impl PacketIo for SteeredIo {
    type Leg = SteeredLeg;

    fn attach(&mut self, slot: u32, leg: &mut SteeredLeg) -> bool {
        leg.attach(self.worker, slot);
        true
    }
    fn detach(&mut self, _: &mut SteeredLeg) {
        // What arrives until the next worker has it comes here, where nobody knows the stream any more.
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        loop {
            while self.next < self.filled {
                if batch.room().is_none() {
                    return true;
                }
                let datagram = self.receiver.get(self.next);
                self.next += 1;
                let Some(datagram) = datagram else { continue };
                let owner = self.ports.owner(datagram.to.port());
                arrive(owner, self.worker, datagram.from, datagram.bytes, batch);
            }
            if !self.next_batch() {
                break;
            }
        }
        if self.receive_frames(batch) {
            return true;
        }
        (self.socket_done, self.queue, self.datagrams) = (false, 0, 0);
        self.now = Clock.now();
        self.may_ask = ASKED_PER_TICK;
        false
    }
    fn put(&mut self, slot: u32, leg: &mut SteeredLeg, to: SocketAddr, packet: &[u8]) -> bool {
        if !leg.spoken {
            leg.spoken = true;
            if leg.wants_rtcp {
                leg.open_rtcp(self.worker, slot);
            }
        }
        self.add(leg, false, to, packet)
    }
    fn put_rtcp(
        &mut self,
        slot: u32,
        leg: &mut SteeredLeg,
        to: SocketAddr,
        shared: bool,
        packet: &[u8],
    ) -> bool {
        if shared {
            return self.put(slot, leg, to, packet);
        }
        leg.open_rtcp(self.worker, slot) && self.add(leg, true, to, packet)
    }
    fn lock(&mut self, leg: &mut SteeredLeg, source: Option<SocketAddr>) {
        leg.let_in(source);
    }
    fn relay(&mut self, from: &mut SteeredLeg, to: &mut SteeredLeg, plan: &RelayPlan) -> bool {
        let Some(carrier) = self.carrier.as_mut().filter(|_| self.tables.is_direct()) else { return false };
        carrier.begin((from, to), plan, self.now, &mut self.tables)
    }
    fn relayed(&mut self, leg: &mut SteeredLeg) -> Option<Relayed> {
        self.carrier.as_mut()?.read(leg, self.now, &mut self.tables)
    }
    fn unrelay(&mut self, leg: &mut SteeredLeg) -> Option<Relayed> {
        leg.underway.take()?.end()
    }
    fn tx_batch(&mut self) {
        // Packets that went by the kernel are the first ones of their stream in this tick.
        if !self.outbox.is_empty() {
            self.send_batch();
        }
        for ring in &mut self.queues {
            ring.queue.flush();
        }
    }
}
