//! The signalling shard's reactor: one thread, one `epoll`, everything in batches.
//!
//! It moves bytes and keeps bounds. It knows no protocol, decides no retransmission and never reads a clock: `now`
//! comes in with `wait`, so that deadlines can be tested on invented time. A quiet reactor sleeps until its earliest
//! deadline and not one wake-up earlier.
#![deny(unsafe_code)]

mod burst;
mod event;
mod flow;
mod listen;
mod moderation;
mod streams;
#[cfg(test)]
mod tests;
mod tls;
mod udp;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use base::Instant;

use crate::sys::{self, Epoll, NOT_READY, Ready};
use burst::{Burst, SENDS_MAX};
use flow::{Flows, Limit, Phase};
use listen::Listeners;
use moderation::Moderation;
use tls::Session;
use udp::{Sharing, Udp};

pub use event::{
    Close, Closing, FlowId, FlowKind, Keepalive, Limits, ListenerId, NetEvent, NetStats, Peer, Signal, Token,
    TransportId,
};
pub use listen::{BindError, try_bind};
pub use tls::{KeyPassword, Tls, TlsError, TlsFault, TlsSettings, Versions, is_provable, unknown_ciphers};
pub use udp::RECEIVE_BUFFER_BYTES;

/// Bytes a flow's peer may leave unread before it is disconnected: the manager event backlog.
pub const WRITE_BACKLOG_BYTES: usize = 1024 * 1024;
/// How long an accepted flow may stay before its owner vouches for it with `keep`.
pub const PROBATION: Duration = Duration::from_secs(5);
/// How long an outgoing connection may take.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Descriptors looked at in one turn.
const READY_PER_TURN: usize = 64;
/// Connections whose handshake goes on in one turn: a key exchange takes up to a millisecond, and others wait for it.
const HANDSHAKES_PER_TURN: usize = 8;
/// Bytes read from one flow in one turn: a whole SIP message of the largest size allowed.
const READ_BYTES: usize = 64 * 1024;

const KEY_UDP: u8 = 0;
const KEY_LISTENER: u8 = 1;
const KEY_FLOW: u8 = 2;
const KEY_WATCH: u8 = 3;
const KEY_SIGNAL: u8 = 4;

/// The word `epoll` keeps for a descriptor: what it is, and which.
fn key(what: u8, which: u64) -> u64 {
    u64::from(what) << 56 | which & (u64::MAX >> 8)
}

/// Reports that wait for the next turn.
enum Pending {
    Closed { flow: FlowId, kind: FlowKind, why: Close },
    Unsent(udp::Refused),
    Insecure { kind: FlowKind, remote: SocketAddr, outgoing: bool, fault: TlsFault },
}

/// The reactor. Owned by the signalling thread.
pub struct Net {
    epoll: Epoll,
    udp: Udp,
    listeners: Listeners,
    flows: Flows,
    dirty: Vec<FlowId>,
    burst: Option<Burst>,
    pending: VecDeque<Pending>,
    signals: Option<OwnedFd>,
    buffer: Vec<u8>,
    /// What came under TLS, in the clear.
    plain: Vec<u8>,
    /// Connections that were read in this turn.
    reads: u64,
    /// Datagrams, but for those of prompt binds, and reads of SIP connections that have been vouched for, in this turn.
    messages: u64,
    /// Handshakes that may go on in this turn.
    handshakes_left: usize,
    /// This turn has left to the next what it could have done: that one does not nap.
    left_over: bool,
    stats: NetStats,
    moderation: Moderation,
    /// Whose connections are not taken at all.
    shut_out: Box<dyn Fn(IpAddr) -> bool>,
}

impl Net {
    /// From here on connections are not taken from addresses of which this says so. It is asked before anything is spent
    /// on them.
    pub fn set_shut_out(&mut self, shut_out: impl Fn(IpAddr) -> bool + 'static) {
        self.shut_out = Box::new(shut_out);
    }
    /// An empty reactor. Fails only when the process has no descriptor left.
    pub fn new(limits: Limits) -> io::Result<Self> {
        sys::ignore_sigpipe();
        Ok(Self {
            epoll: Epoll::new()?,
            udp: Udp::new(),
            listeners: Listeners::default(),
            flows: Flows::new(limits),
            dirty: Vec::new(),
            burst: Burst::new(),
            pending: VecDeque::new(),
            signals: None,
            buffer: vec![0; READ_BYTES],
            plain: vec![0; READ_BYTES],
            reads: 0,
            messages: 0,
            handshakes_left: HANDSHAKES_PER_TURN,
            left_over: false,
            stats: NetStats::default(),
            shut_out: Box::new(|_| false),
            moderation: Moderation::default(),
        })
    }

    /// Binds a UDP socket. Port 0 lets the kernel choose; `udp_addr` tells.
    pub fn bind_udp(&mut self, addr: SocketAddr) -> Result<TransportId, BindError> {
        self.udp.bind(&self.epoll, addr, Sharing::Own)
    }
    /// Binds a UDP socket beside those of other processes that share the address too; the kernel hands what comes to the
    /// last of them.
    pub fn bind_udp_shared(&mut self, addr: SocketAddr) -> Result<TransportId, BindError> {
        self.udp.bind(&self.epoll, addr, Sharing::Shared)
    }
    /// The address of a bind, with the port the kernel chose.
    pub fn udp_addr(&self, transport: TransportId) -> Option<SocketAddr> {
        self.udp.addr(transport)
    }
    /// Takes each datagram of a bind when it comes: its senders wait for one answer after the other, and none of them is a
    /// reason for the naps that share turns under load.
    pub fn set_udp_prompt(&mut self, transport: TransportId) {
        self.udp.set_prompt(transport);
    }
    /// Says that what has come belongs to a call: somebody waits, and for the next two seconds turns are hardly shared.
    pub fn hurry(&mut self, now: Instant) {
        self.moderation.hurry(now);
    }
    /// Marks what a bind sends.
    pub fn mark_udp(&self, transport: TransportId, marking: base::Marking) -> io::Result<()> {
        self.udp.mark(transport, marking)
    }
    /// Marks what connections send that a listener accepts from here on.
    pub fn mark_listener(&self, listener: ListenerId, marking: base::Marking) -> io::Result<()> {
        let Some(found) = self.listeners.get(listener) else { return Ok(()) };
        sys::mark(&found.fd, found.addr.is_some_and(|addr| addr.is_ipv6()), marking)
    }
    /// Marks what a connection to `remote` sends.
    pub fn mark_flow(&self, flow: FlowId, remote: SocketAddr, marking: base::Marking) -> io::Result<()> {
        self.flows.get(flow).map_or(Ok(()), |open| sys::mark(&open.fd, remote.is_ipv6(), marking))
    }
    /// Closes a bind and drops what is queued on it.
    pub fn close_udp(&mut self, transport: TransportId) {
        self.udp.close(transport);
    }
    /// Listens on TCP.
    pub fn listen_tcp(&mut self, addr: SocketAddr, kind: FlowKind) -> Result<ListenerId, BindError> {
        self.listeners.listen_tcp(&self.epoll, addr, kind)
    }
    /// Listens on a unix socket whose file has the permission bits `mode`; a file left by a dead process is replaced.
    pub fn listen_unix(&mut self, path: &Path, mode: u32, kind: FlowKind) -> Result<ListenerId, BindError> {
        self.listeners.listen_unix(&self.epoll, path, mode, kind)
    }
    /// The address of a TCP listener; `None` for a unix one.
    pub fn listener_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(listener)?.addr
    }
    /// Has the kernel probe connections that a listener accepts from here on.
    pub fn set_listener_keepalive(&self, listener: ListenerId, keepalive: Keepalive) -> io::Result<()> {
        self.listeners.get(listener).map_or(Ok(()), |found| keepalive.set(&found.fd))
    }
    /// Has the kernel probe a connection.
    pub fn set_flow_keepalive(&self, flow: FlowId, keepalive: Keepalive) -> io::Result<()> {
        self.flows.get(flow).map_or(Ok(()), |open| keepalive.set(&open.fd))
    }
    /// Puts the connections of a TCP listener under TLS, those that are accepted from here on; `None`: in the clear.
    pub fn set_listener_tls(&mut self, listener: ListenerId, tls: Option<Tls>) {
        self.listeners.set_tls(listener, tls);
    }
    /// The name of ours that the client of a flow under TLS has asked for (RFC 6066 §3).
    pub fn asked_for(&self, flow: FlowId) -> Option<&str> {
        self.flows.get(flow)?.session.as_ref()?.asked_for()
    }
    /// Stops listening; flows that were accepted stay.
    pub fn close_listener(&mut self, listener: ListenerId) {
        self.listeners.close(listener);
    }

    /// Begins an outgoing connection, from `local` when given; `Connected` or `Closed` follows.
    /// Bytes may be sent at once; they leave when it is open.
    pub fn connect_tcp(
        &mut self,
        to: SocketAddr,
        local: Option<SocketAddr>,
        kind: FlowKind,
    ) -> io::Result<FlowId> {
        if self.flows.is_full() {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "no place for another connection"));
        }
        let fd = sys::socket(to, libc::SOCK_STREAM)?;
        sys::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        if let Some(local) = local {
            sys::bind(&fd, local)?;
        }
        // Even a connection that is open at once is reported by `epoll` as writable, and `Connected` comes from there.
        sys::connect(&fd, to)?;
        let limit = Limit::Within(CONNECT_WITHIN);
        self.insert_flow(fd, kind, Phase::Connecting, limit, None)
    }
    /// As `connect_tcp`, under TLS with a server that has to prove to be `name`, a host name or an address. Bytes that
    /// are sent at once leave when it has.
    pub fn connect_tls(
        &mut self,
        to: SocketAddr,
        local: Option<SocketAddr>,
        kind: FlowKind,
        tls: &Tls,
        name: &str,
    ) -> io::Result<FlowId> {
        let session = Session::client(tls, name, to)
            .map_err(|fault| io::Error::new(io::ErrorKind::InvalidInput, fault.what))?;
        let flow = self.connect_tcp(to, local, kind)?;
        if let Some(open) = self.flows.get_mut(flow) {
            open.session = Some(Box::new(session));
        }
        Ok(flow)
    }

    /// Vouches for a flow: it leaves probation and stays until `until`, or as long as it likes.
    pub fn keep(&mut self, flow: FlowId, until: Option<Instant>) {
        if self.flows.get(flow).is_some_and(|f| f.phase == Phase::Open) {
            self.flows.end_probation(flow);
            self.flows.set_limit(flow, until.map_or(Limit::Open, Limit::At));
        }
    }

    /// Queues a datagram; `local` (from `NetEvent::Datagram`) chooses the source address on a wildcard bind.
    pub fn send_udp(&mut self, transport: TransportId, local: Option<IpAddr>, to: SocketAddr, bytes: &[u8]) {
        if self.udp.queue(transport, local, to, bytes) {
            self.flush_udp();
        }
    }
    /// Queues bytes on a flow; one that is gone ignores them, and a peer that does not read is disconnected.
    pub fn send_flow(&mut self, flow: FlowId, bytes: &[u8]) {
        let Some(open) = self.flows.get_mut(flow) else { return };
        if !matches!(open.phase, Phase::Open | Phase::Connecting | Phase::Securing) {
            return;
        }
        if !open.queue(bytes) {
            self.stats.backlogged += 1;
            self.end(flow, Close::Backlog);
        } else {
            self.write_later(flow);
        }
    }
    /// Bytes that a flow's peer has not taken yet; nothing of one that is gone.
    pub fn unsent(&self, flow: FlowId) -> usize {
        self.flows.get(flow).map_or(0, flow::Flow::unsent)
    }
    /// Lets go of a flow. Nothing more is reported of it.
    pub fn close_flow(&mut self, flow: FlowId, closing: Closing) {
        let Some(open) = self.flows.get_mut(flow) else { return };
        match (closing, open.phase) {
            (Closing::Flush, Phase::Open) => {
                if let Some(session) = &mut open.session {
                    session.end();
                    open.take_records();
                }
                self.drain_flow(flow);
            }
            (Closing::AtOnce, _) | (Closing::Flush, Phase::Connecting | Phase::Securing) => {
                drop(self.flows.remove(flow));
            }
            (Closing::Flush, Phase::Flushing | Phase::Lingering) => {}
        }
    }

    /// Reports `token` whenever `fd` becomes readable: once for each change, so empty what it stands for each time.
    /// The descriptor leaves by being closed or by `unwatch`.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        self.epoll.add(fd, libc::EPOLLIN | libc::EPOLLET, key(KEY_WATCH, u64::from(token.0)))
    }
    /// Takes back `watch`.
    pub fn unwatch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.epoll.remove(fd)
    }
    /// Turns SIGTERM, SIGINT and SIGHUP into events. Call it before any other thread is started, because a thread
    /// that has not blocked them would still be ended by them.
    pub fn catch_signals(&mut self) -> io::Result<()> {
        let fd = sys::signalfd(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        self.epoll.add(fd.as_fd(), libc::EPOLLIN, key(KEY_SIGNAL, 0))?;
        self.signals = Some(fd);
        Ok(())
    }

    /// Writes everything queued: datagrams in batches, each flow once. `wait` does so first.
    pub fn flush(&mut self) {
        self.flush_udp();
        let dirty = std::mem::take(&mut self.dirty);
        dirty.chunks(SENDS_MAX).filter(|some| some.len() > 1).for_each(|some| self.write_together(some));
        for flow in dirty {
            if let Some(open) = self.flows.get_mut(flow) {
                open.dirty = false;
                self.write_flow(flow);
            }
        }
    }

    /// Flushes, ends what is overdue at `now`, then sleeps until `until` (`None`: for ever) or the reactor's own
    /// earliest deadline, and reports what happened. Returns at once when there is something to report, and a moment
    /// later when so much comes that turns are to be shared.
    pub fn wait(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        sink: &mut dyn FnMut(NetEvent<'_>),
    ) -> io::Result<()> {
        self.flush();
        self.flows.stamp(now);
        self.listeners.stamp(&self.epoll, now);
        while let Some(flow) = self.flows.expired(now) {
            self.stats.expired += 1;
            self.end(flow, Close::Deadline);
        }
        let timeout = if self.pending.is_empty() {
            let deadlines = [until, self.flows.deadline(), self.listeners.deadline()];
            deadlines.into_iter().flatten().min().map(|at| at.since(now))
        } else {
            Some(Duration::ZERO)
        };
        let nap = self.moderation.nap(now);
        let hurries = std::mem::take(&mut self.left_over) || timeout == Some(Duration::ZERO);
        let timeout = if nap.is_zero() || hurries {
            timeout
        } else {
            moderation::sleep(nap);
            timeout.map(|timeout| timeout.saturating_sub(nap))
        };
        self.report_pending(sink);
        self.handshakes_left = HANDSHAKES_PER_TURN;
        let mut ready = [NOT_READY; READY_PER_TURN];
        let count = self.epoll.wait(&mut ready, timeout)?;
        self.stats.wakes += 1;
        self.left_over = count == READY_PER_TURN;
        for event in ready.into_iter().take(count) {
            self.dispatch(event, sink);
        }
        self.moderation.arrived(std::mem::take(&mut self.messages), std::mem::take(&mut self.reads));
        self.report_pending(sink);
        Ok(())
    }

    /// Totals since the start.
    pub fn stats(&self) -> NetStats {
        self.stats
    }
    /// How many flows there are, and how many of them are on probation.
    pub fn flow_counts(&self) -> (usize, usize) {
        (self.flows.len(), self.flows.on_probation())
    }

    fn flush_udp(&mut self) {
        let pending = &mut self.pending;
        self.udp.flush(&mut self.stats, &mut |refused| pending.push_back(Pending::Unsent(refused)));
    }

    fn report_pending(&mut self, sink: &mut dyn FnMut(NetEvent<'_>)) {
        for pending in self.pending.drain(..) {
            sink(match pending {
                Pending::Closed { flow, kind, why } => NetEvent::Closed { flow, kind, why },
                Pending::Unsent(udp::Refused { transport, to, why }) => {
                    NetEvent::Unsent { transport, to, why }
                }
                Pending::Insecure { kind, remote, outgoing, ref fault } => {
                    NetEvent::Insecure { kind, remote, outgoing, fault }
                }
            });
        }
    }

    fn dispatch(&mut self, event: Ready, sink: &mut dyn FnMut(NetEvent<'_>)) {
        let (events, word) = (event.events, event.u64);
        let which = word & (u64::MAX >> 8);
        let small = u32::try_from(which).unwrap_or(u32::MAX);
        match (word >> 56) as u8 {
            KEY_UDP => {
                if events & libc::EPOLLERR as u32 != 0 {
                    self.udp.read_errors(TransportId(small), &mut self.stats, sink);
                }
                self.messages += self.udp.receive(TransportId(small), &mut self.stats, sink);
            }
            KEY_LISTENER => self.accept(ListenerId(small), sink),
            KEY_FLOW => self.flow_ready(FlowId(which), events, sink),
            KEY_WATCH => sink(NetEvent::Readable { token: Token(small) }),
            // KEY_SIGNAL: the only one left that is ever registered.
            _ => self.read_signals(sink),
        }
    }

    fn read_signals(&mut self, sink: &mut dyn FnMut(NetEvent<'_>)) {
        let Some(fd) = &self.signals else { return };
        while let Some(number) = sys::signalfd_next(fd) {
            sink(NetEvent::Signal(if number == libc::SIGHUP { Signal::Reload } else { Signal::Stop }));
        }
    }
}

impl Keepalive {
    fn set(self, fd: &OwnedFd) -> io::Result<()> {
        let seconds = |period: Duration| libc::c_int::try_from(period.as_secs()).unwrap_or(libc::c_int::MAX);
        let probes = libc::c_int::try_from(self.probes).unwrap_or(libc::c_int::MAX);
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(self.idle))?;
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(self.interval))?;
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, probes)
    }
}

/// Whether the process, or the whole machine, has no descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
