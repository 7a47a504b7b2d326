//! UDP sockets of the signalling shard: received in batches, queued and sent in batches.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::{self, BATCH, Epoll, Outgoing, RecvBatch};

use super::{BindError, KEY_UDP, NetEvent, NetStats, TransportId, key};

/// Asked of the kernel for each signalling socket: about 12,000 INVITEs of 1.2 kB or 40,000 frames of IAX2 that arrive while
/// the shard is busy, as when all phones come back at once: what it takes in within half a second. What finds no room costs
/// its sender a repetition, a second with most, after which an answer would be late too. The kernel caps it at
/// `net.core.rmem_max` unless the process may administer the network.
pub const RECEIVE_BUFFER_BYTES: libc::c_int = 16 * 1024 * 1024;

/// Places offered to the kernel when the last wake-up did not fill them: a quiet socket need not prepare all.
const QUIET_BATCH: usize = sys::SMALL_BATCH;

struct Bound {
    fd: OwnedFd,
    addr: SocketAddr,
    /// Bound to a wildcard: each datagram says where it was sent to, and each answer where it leaves from.
    wildcard: bool,
    wanted: usize,
    /// Whoever sends here waits for each answer: what comes is no reason for a nap.
    prompt: bool,
    /// The kernel takes several datagrams as one and takes them apart; not every device and every way lets it.
    joins: bool,
}

pub(super) struct Udp {
    bound: Vec<Option<Bound>>,
    batch: RecvBatch,
    queue: Vec<(TransportId, Outgoing)>,
    /// The bytes of everything in `queue`.
    arena: Vec<u8>,
    scratch: Vec<Outgoing>,
    /// What a report quotes.
    quoted: Vec<u8>,
}

/// Reports of the network taken in one turn; a flood of them leaves room for the rest.
const REPORTS_PER_TURN: usize = 64;
/// Bytes of a datagram that a report may quote: routers send 548 at most (RFC 1812 §4.3.2.3).
const QUOTED_BYTES: usize = 576;

/// A datagram that the kernel refused.
pub(super) struct Refused {
    pub(super) transport: TransportId,
    pub(super) to: SocketAddr,
    pub(super) why: io::ErrorKind,
}

impl Udp {
    pub(super) fn new() -> Self {
        Self {
            bound: Vec::new(),
            batch: RecvBatch::new(),
            queue: Vec::new(),
            arena: Vec::new(),
            scratch: Vec::new(),
            quoted: vec![0; QUOTED_BYTES],
        }
    }

    /// What the network says of datagrams that have left; what is left wakes the loop again.
    pub(super) fn read_errors(
        &mut self,
        id: TransportId,
        stats: &mut NetStats,
        sink: &mut dyn FnMut(NetEvent<'_>),
    ) {
        let Some(bound) = self.bound.get(id.0 as usize).and_then(Option::as_ref) else { return };
        for _ in 0..REPORTS_PER_TURN {
            let Some(report) = sys::next_error(&bound.fd, &mut self.quoted) else { return };
            if let Some(report) = report.filter(|report| report.is_unreachable) {
                stats.datagrams_undelivered += 1;
                let quoted = self.quoted.get(..report.quoted).unwrap_or_default();
                sink(NetEvent::Undelivered { transport: id, to: report.to, quoted });
            }
        }
    }

    pub(super) fn bind(
        &mut self,
        epoll: &Epoll,
        addr: SocketAddr,
        sharing: Sharing,
    ) -> Result<TransportId, BindError> {
        let place = self.bound.iter().position(Option::is_none).unwrap_or(self.bound.len());
        let id = TransportId(u32::try_from(place).unwrap_or(u32::MAX));
        let bound =
            open(epoll, addr, id, sharing).map_err(|error| BindError::new(addr.to_string(), "UDP", error))?;
        if place == self.bound.len() {
            self.bound.push(Some(bound));
        } else {
            self.bound[place] = Some(bound);
        }
        Ok(id)
    }

    pub(super) fn close(&mut self, id: TransportId) {
        if let Some(place) = self.bound.get_mut(id.0 as usize) {
            *place = None;
        }
        self.queue.retain(|(transport, _)| *transport != id);
    }

    pub(super) fn addr(&self, id: TransportId) -> Option<SocketAddr> {
        self.get(id).map(|bound| bound.addr)
    }

    pub(super) fn set_prompt(&mut self, id: TransportId) {
        if let Some(bound) = self.bound.get_mut(id.0 as usize).and_then(Option::as_mut) {
            bound.prompt = true;
        }
    }

    pub(super) fn mark(&self, id: TransportId, marking: base::Marking) -> io::Result<()> {
        self.get(id).map_or(Ok(()), |bound| sys::mark(&bound.fd, bound.addr.is_ipv6(), marking))
    }

    fn get(&self, id: TransportId) -> Option<&Bound> {
        self.bound.get(id.0 as usize)?.as_ref()
    }

    /// One system call's worth of datagrams; what is left wakes the loop again. Says how many are a reason for a nap.
    pub(super) fn receive(
        &mut self,
        id: TransportId,
        stats: &mut NetStats,
        sink: &mut dyn FnMut(NetEvent<'_>),
    ) -> u64 {
        let Some(bound) = self.bound.get_mut(id.0 as usize).and_then(Option::as_mut) else { return 0 };
        // An error here is a pending ICMP report or a spurious wake-up; either way the next call starts afresh.
        let count = self.batch.receive(&bound.fd, bound.wanted).unwrap_or(0);
        bound.wanted = if count == bound.wanted { BATCH } else { QUIET_BATCH };
        let (default, prompt) = (bound.addr, bound.prompt);
        let before = stats.datagrams_in;
        for received in (0..count).filter_map(|index| self.batch.get(index)) {
            let from = received.from;
            let local = received.local.map_or(default, |ip: IpAddr| SocketAddr::new(ip, default.port()));
            for bytes in received.datagrams() {
                stats.datagrams_in += 1;
                sink(NetEvent::Datagram { transport: id, from, local, bytes });
            }
        }
        if prompt { 0 } else { stats.datagrams_in - before }
    }

    /// Queues a datagram; true when the queue holds a whole batch and wants to be flushed.
    pub(super) fn queue(
        &mut self,
        id: TransportId,
        local: Option<IpAddr>,
        to: SocketAddr,
        bytes: &[u8],
    ) -> bool {
        let Some(wildcard) = self.get(id).map(|bound| bound.wildcard) else { return false };
        let local = local.filter(|ip| wildcard && !ip.is_unspecified() && ip.is_ipv4() == to.is_ipv4());
        let start = self.arena.len();
        self.arena.extend_from_slice(bytes);
        self.queue.push((id, Outgoing { to, local, start, len: bytes.len() }));
        self.queue.len() >= BATCH
    }

    /// Sends everything queued, each run for one socket in as few calls as possible.
    pub(super) fn flush(&mut self, stats: &mut NetStats, refused: &mut impl FnMut(Refused)) {
        let mut rest = self.queue.as_slice();
        while let Some(&(id, _)) = rest.first() {
            let run = rest.iter().take_while(|(other, _)| *other == id).count();
            let (now, later) = rest.split_at(run);
            rest = later;
            self.scratch.clear();
            self.scratch.extend(now.iter().map(|(_, datagram)| *datagram));
            let Some(bound) = self.bound.get_mut(id.0 as usize).and_then(Option::as_mut) else { continue };
            send_run(bound, &self.arena, &self.scratch, stats, |to, why| {
                refused(Refused { transport: id, to, why });
            });
        }
        self.queue.clear();
        self.arena.clear();
        if self.arena.capacity() > ARENA_KEPT_BYTES {
            self.arena = Vec::new();
        }
    }
}

/// The arena keeps this much between flushes: a batch of ordinary messages.
const ARENA_KEPT_BYTES: usize = BATCH * 2048;

fn send_run(
    bound: &mut Bound,
    arena: &[u8],
    mut run: &[Outgoing],
    stats: &mut NetStats,
    mut refused: impl FnMut(SocketAddr, io::ErrorKind),
) {
    let (mut once_more, mut joins, mut is_suspect) = (true, bound.joins, false);
    while let Some(first) = run.first() {
        let taken = match sys::send_batch(&bound.fd, arena, run, joins) {
            Ok(0) => return,
            Ok(sent) => {
                // What was refused together goes alone: the way is too narrow, or no device on it takes it apart.
                if std::mem::take(&mut is_suspect) {
                    bound.joins = false;
                }
                stats.datagrams_out += sent as u64;
                sent
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            // It may be what the network said of an earlier datagram, to anybody: being told clears it.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && once_more => {
                once_more = false;
                continue;
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && joins && sys::joined(run) > 1 => {
                // Each by itself costs more and always works.
                (joins, is_suspect) = (false, sys::is_of_joining(&error));
                0
            }
            Err(error) => {
                is_suspect = false;
                // The error is the first datagram's: no route, too long, or no room. The rest may still go.
                stats.datagrams_unsent += 1;
                if error.kind() != io::ErrorKind::WouldBlock {
                    refused(first.to, error.kind());
                }
                1
            }
        };
        once_more = true;
        run = run.get(taken..).unwrap_or(&[]);
    }
}

/// Whether other processes may bind the address of a socket as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// `SO_REUSEADDR` stays off: on UDP it lets a second process take the datagrams silently.
    Own,
    /// `SO_REUSEADDR`, as IAX2 has it in the field, so that two servers with the port that all have come up side by side.
    Shared,
}

/// A bound socket.
fn open(epoll: &Epoll, addr: SocketAddr, id: TransportId, sharing: Sharing) -> io::Result<Bound> {
    let fd = sys::socket(addr, libc::SOCK_DGRAM)?;
    if sharing == Sharing::Shared {
        sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    }
    let wildcard = addr.ip().is_unspecified();
    if wildcard && addr.is_ipv4() {
        sys::set_option(&fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    } else if wildcard {
        sys::set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
    }
    // Without reports of what could not be delivered silence says it, later.
    let (level, option) = if addr.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_RECVERR)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    };
    let _silent = sys::set_option(&fd, level, option, 1);
    // Who may administer the network is not held by net.core.rmem_max; a smaller buffer than asked for still works.
    let _capped = [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF]
        .into_iter()
        .find(|option| sys::set_option(&fd, libc::SOL_SOCKET, *option, RECEIVE_BUFFER_BYTES).is_ok());
    // A kernel that cannot join what comes from one sender hands it over as it is.
    let _joined = sys::set_option(&fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    sys::bind(&fd, addr)?;
    let addr = sys::local_addr(&fd)?.unwrap_or(addr);
    epoll.add(fd.as_fd(), libc::EPOLLIN, key(KEY_UDP, u64::from(id.0)))?;
    Ok(Bound { fd, addr, wildcard, wanted: QUIET_BATCH, prompt: false, joins: true })
}
