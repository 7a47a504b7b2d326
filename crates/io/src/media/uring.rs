//! Per-leg sockets through one io_uring a worker: the variant of `epoll` that receives and sends in batches.
//!
//! A socket that is listened to is so until it is closed: what arrives is put into shared buffers when the worker looks (at
//! its ticks, never in between), and a batch of packets leaves by one system call. The kernel keeps a reference to every
//! socket that it listens to, so closing the descriptor alone would leave the port bound: a leg that goes tells the ring,
//! which ends the listening, gives the place up, and only then lets the port be leased again.
//!
//! The kernel does only so much of its work for the ring in one call. So whoever looks goes on until nothing is left.
#![deny(unsafe_code)]

mod ring;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use media::{Batch, PacketIo};

use super::kernel::Refused;
use super::ports::Lease;
use super::sockets::{SocketLeg, connect, open_rtcp};
use ring::{BUFFERS, Filled, Ring, Told};

/// Datagrams of one receive phase, after which prompts have their turn; as with `epoll`.
const DATAGRAMS_MAX: usize = 2048;
/// Sockets of one worker at most: two for each of 65,536 ports. The limit of open files is nearly always lower.
const SOCKETS_MAX: u64 = 1 << 17;
/// Looks at the kernel's work in one go, each at some 20 of its pieces: more than a receive phase takes.
const LOOKS_MAX: usize = 256;

/// What the ring knows a leg's sockets by. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Seat {
    rtp: u32,
    rtcp: Option<u32>,
    closed: Sender<u32>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        for index in [Some(self.rtp), self.rtcp].into_iter().flatten() {
            // Without a ring nothing is listened to.
            let _ = self.closed.send(index);
        }
    }
}

/// How far a socket of the ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody has this number.
    Free,
    /// It is listened to.
    Listening,
    /// The kernel has stopped to listen; it begins again with the next look.
    Stopped,
    /// The leg has gone, and listening is about to end.
    Leaving,
}

#[derive(Debug)]
struct Socket {
    stage: Stage,
    slot: u32,
    rtcp: bool,
    /// Until the ring has let the socket go its port is not leased to another.
    _lease: Option<Arc<Lease>>,
}

/// The sockets of one worker.
pub(crate) struct UringIo {
    ring: Ring,
    sockets: Vec<Socket>,
    free: Vec<u32>,
    most: u32,
    /// Sockets whose listening ends, and those where it has ended and is to begin again.
    leaving: usize,
    stopped: Vec<u32>,
    close: Sender<u32>,
    closed: Receiver<u32>,
    /// What was received while nobody asked for it.
    heard: VecDeque<(u32, Filled)>,
    /// The last look may have left something.
    is_unfinished: bool,
    datagrams: usize,
    refused: u64,
}

impl UringIo {
    /// A ring of the calling thread, which is the only one that may use it.
    ///
    /// A ring that goes interrupts system calls of the thread that made it, some time later.
    pub(crate) fn new() -> Result<Self, Refused> {
        let most =
            crate::sys::process::limit(libc::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft).min(SOCKETS_MAX);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let ring = Ring::new(most).map_err(refusal)?;
        let (close, closed) = channel();
        Ok(Self {
            ring,
            sockets: Vec::new(),
            free: Vec::new(),
            most,
            leaving: 0,
            stopped: Vec::new(),
            close,
            closed,
            heard: VecDeque::with_capacity(usize::from(BUFFERS)),
            is_unfinished: false,
            datagrams: 0,
            refused: 0,
        })
    }
    /// Packets that were taken for sending and that no socket took.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn seat(&mut self, slot: u32, socket: &UdpSocket, rtcp: bool, lease: &Arc<Lease>) -> io::Result<u32> {
        // To the ring a socket that does not block is one that does not wait for datagrams either.
        socket.set_nonblocking(false)?;
        let new = self.sockets.len() as u32;
        let index = match self.free.pop() {
            Some(index) => index,
            None if new < self.most => {
                self.sockets.push(Socket { stage: Stage::Free, slot: 0, rtcp: false, _lease: None });
                new
            }
            None => return Err(io::ErrorKind::QuotaExceeded.into()),
        };
        if let Err(error) = self.ring.seat(index, socket) {
            self.free.push(index);
            return Err(error);
        }
        if let Some(place) = self.sockets.get_mut(index as usize) {
            *place = Socket { stage: Stage::Stopped, slot, rtcp, _lease: Some(lease.clone()) };
        }
        self.stopped.push(index);
        Ok(index)
    }
    /// Ends listening to a socket, which may take until the kernel is looked at again.
    fn leave(&mut self, index: u32) {
        let Some(socket) = self.sockets.get_mut(index as usize) else { return };
        match socket.stage {
            Stage::Listening => {
                socket.stage = Stage::Leaving;
                self.leaving += 1;
                self.ring.cancel(index);
            }
            Stage::Stopped => self.vacate(index),
            Stage::Free | Stage::Leaving => {}
        }
    }
    fn vacate(&mut self, index: u32) {
        let Some(socket) = self.sockets.get_mut(index as usize) else { return };
        self.leaving -= usize::from(socket.stage == Stage::Leaving);
        self.ring.unseat(index);
        // The lease ends after the socket.
        *socket = Socket { stage: Stage::Free, slot: 0, rtcp: false, _lease: None };
        self.free.push(index);
    }
    /// Ends what legs that are gone have left, and begins to listen where listening stopped.
    fn tidy(&mut self) {
        while let Ok(index) = self.closed.try_recv() {
            self.leave(index);
        }
        // Those that stop again at once, because buffers are short, wait for the next phase.
        for _ in 0..self.stopped.len() {
            let Some(index) = self.stopped.pop() else { return };
            let Some(socket) = self.sockets.get_mut(index as usize) else { continue };
            if socket.stage == Stage::Stopped && self.ring.listen(index) {
                socket.stage = Stage::Listening;
            }
        }
    }
    /// Takes a completion in; a datagram waits to be asked for.
    fn learn(&mut self, told: Told) {
        match told {
            Told::Heard { index, filled, ended } => {
                self.heard.extend(filled.map(|filled| (index, filled)));
                let Some(socket) = self.sockets.get_mut(index as usize).filter(|_| ended) else { return };
                if socket.stage == Stage::Leaving {
                    self.vacate(index);
                } else {
                    socket.stage = Stage::Stopped;
                    self.stopped.push(index);
                }
            }
            Told::Unsent { .. } => self.refused += 1,
        }
    }
    /// Sends what was put.
    fn send(&mut self) {
        let count = self.ring.waiting();
        if count == 0 {
            return;
        }
        self.ring.send(0);
        let mut again = false;
        while let Some(told) = self.ring.told() {
            match told {
                // The peer's earlier ICMP is told once and takes this packet's place: send it again.
                Told::Unsent { place, refused: true } => again |= self.ring.send_again(place),
                told => self.learn(told),
            }
        }
        if again {
            self.ring.submit();
            self.hear();
        }
        self.is_unfinished = true;
        self.ring.clear();
    }
    fn put_to(&mut self, index: u32, to: Option<SocketAddr>, packet: &[u8]) -> bool {
        if self.ring.put(index, to, packet) {
            return true;
        }
        self.send();
        self.ring.put(index, to, packet)
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
        let lease = leg.lease.clone();
        let index = open_rtcp(leg).and_then(|socket| self.seat(slot, socket, true, &lease).ok());
        if let (Some(index), Some(seat)) = (index, &mut leg.seat) {
            seat.rtcp = Some(index);
        }
    }
    /// Looks until nothing is left, or the phase has enough; what is heard waits.
    fn look(&mut self) {
        for _ in 0..LOOKS_MAX {
            if !self.is_unfinished && !self.ring.has_work() {
                return;
            }
            self.send();
            self.ring.submit();
            // The kernel does not say whether it stopped because it was done or because it had done enough.
            self.is_unfinished = self.hear();
            if self.heard.len() >= usize::from(BUFFERS) / 2 {
                return;
            }
        }
    }
    /// Takes completions in; whether there were any.
    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Some(told) = self.ring.told() {
            any = true;
            self.learn(told);
        }
        any
    }
}

/// Whether a ring can be had: one is made, by a thread that ends.
pub(crate) fn probe() -> Result<(), Refused> {
    let made = std::thread::spawn(|| UringIo::new().map(drop)).join();
    made.unwrap_or_else(|_| Err(Refused { why: "io_uring failed".into(), remedy: "write media_io=epoll" }))
}

/// Why there is no ring, and what helps.
fn refusal(error: io::Error) -> Refused {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "set kernel.io_uring_disabled=0 with sysctl, or let the container's seccomp profile pass io_uring; or write \
             media_io=epoll"
        }
        Some(libc::ENOSYS) => {
            "use a kernel with io_uring (6.1 or later), outside sandboxes that hide it; or write media_io=epoll"
        }
        Some(libc::EINVAL) => "use a kernel of 6.1 or later; or write media_io=epoll",
        Some(libc::ENOMEM) => "raise the limit of locked memory (LimitMEMLOCK=); or write media_io=epoll",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit on open files (ulimit -n, LimitNOFILE=)",
        _ => "write media_io=epoll",
    };
    Refused { why: format!("io_uring is refused: {error}"), remedy }
}

impl PacketIo for UringIo {
    type Leg = SocketLeg;

    fn attach(&mut self, slot: u32, leg: &mut SocketLeg) -> bool {
        let Ok(rtp) = self.seat(slot, &leg.rtp, false, &leg.lease) else { return false };
        let rtcp = leg.rtcp.as_ref().map(|socket| self.seat(slot, socket, true, &leg.lease));
        let is_whole = rtcp.as_ref().is_none_or(Result::is_ok);
        let rtcp = rtcp.and_then(Result::ok);
        leg.seat = Some(Box::new(Seat { rtp, rtcp, closed: self.close.clone() }));
        is_whole
    }
    fn detach(&mut self, leg: &mut SocketLeg) {
        // Listening ends before the kernel looks for what came: that is for whom the leg moves to.
        leg.seat = None;
        self.tidy();
        self.send();
        self.ring.submit();
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        if self.datagrams == 0 {
            self.tidy();
        }
        loop {
            while let Some((index, filled)) = self.heard.pop_front() {
                let Some(socket) = self.sockets.get(index as usize) else { continue };
                let (slot, rtcp) = (socket.slot, socket.rtcp);
                let taken = self.ring.take(filled, |from, bytes| batch.copy(slot, rtcp, from, bytes));
                self.datagrams += usize::from(taken == Some(true));
                if batch.room().is_none() {
                    return true;
                }
            }
            if self.datagrams < DATAGRAMS_MAX {
                self.look();
            }
            if self.heard.is_empty() {
                self.datagrams = 0;
                return false;
            }
        }
    }
    fn put(&mut self, slot: u32, leg: &mut SocketLeg, to: SocketAddr, packet: &[u8]) -> bool {
        if !leg.spoken {
            self.begin_talk(slot, leg);
        }
        let name = (leg.connected != Some(to)).then_some(to);
        leg.seat.as_ref().map(|seat| seat.rtp).is_some_and(|index| self.put_to(index, name, packet))
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
        let index = leg.seat.as_ref().and_then(|seat| seat.rtcp);
        index.is_some_and(|index| self.put_to(index, Some(to), packet))
    }
    fn tx_batch(&mut self) {
        self.send();
        self.tidy();
        // There may be no tick to end this in.
        if self.leaving > 0 {
            self.look();
        }
    }
    fn lock(&mut self, leg: &mut SocketLeg, source: Option<SocketAddr>) {
        leg.locked = source;
        if leg.spoken && leg.connected != leg.locked {
            // What was put goes where the socket is connected to by now.
            self.send();
            connect(leg);
        }
    }
}

impl Drop for UringIo {
    fn drop(&mut self) {
        self.send();
        for index in 0..self.sockets.len() as u32 {
            self.leave(index);
        }
        // A ring that goes with listening under way would hold the ports until the kernel finds time for it.
        for _ in 0..LOOKS_MAX {
            if self.leaving == 0 {
                return;
            }
            self.ring.submit();
            self.hear();
        }
    }
}
