//! The reactor's words: names of sockets, what it reports, what bounds it.

use std::io;
use std::net::SocketAddr;

use super::tls::TlsFault;

/// A UDP bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportId(pub(crate) u32);
/// A stream listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u32);
/// A byte stream; never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) u64);
/// The owner's name for a watched descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// Which dialect a flow speaks; the reactor carries it and does not look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowKind {
    /// SIP over TCP.
    Sip,
    /// The manager protocol.
    Manager,
    /// The command line's socket.
    Control,
    /// HTTP.
    Http,
}

/// Who is at the other end of an accepted flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A host, and the address of ours it came to.
    Ip {
        /// Its address.
        remote: SocketAddr,
        /// Ours.
        local: SocketAddr,
    },
    /// A process of this machine, with its user and group as the kernel knows them.
    Local {
        /// The user id.
        uid: u32,
        /// The group id.
        gid: u32,
    },
}

/// How the kernel finds out that a silent peer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe, whole seconds.
    pub idle: std::time::Duration,
    /// Time between probes, whole seconds.
    pub interval: std::time::Duration,
    /// Unanswered ones that end the connection.
    pub probes: u32,
}

/// Why a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The peer closed it.
    Peer,
    /// Its deadline passed: not vouched for, not connected, or whatever `keep` had set.
    Deadline,
    /// The peer did not read.
    Backlog,
    /// Others needed the place while nobody had vouched for it.
    Evicted,
    /// The kernel reported an error, such as a refused connection.
    Failed(io::ErrorKind),
    /// Its TLS was broken off; `Insecure` has said why.
    Insecure,
}

/// What `close_flow` does with bytes that are still queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Writes them first.
    Flush,
    /// Drops them.
    AtOnce,
}

/// A signal the process was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT: stop.
    Stop,
}

/// What `wait` reports.
#[derive(Debug)]
pub enum NetEvent<'a> {
    /// A datagram came in.
    Datagram {
        /// The bind it came to.
        transport: TransportId,
        /// Its sender.
        from: SocketAddr,
        /// The address it was sent to, true even on a wildcard bind; answer with its IP.
        local: SocketAddr,
        /// All of it.
        bytes: &'a [u8],
    },
    /// The kernel refused a queued datagram (no route, too long); RFC 3261 §18.4 wants to know.
    Unsent {
        /// The bind it was to leave by.
        transport: TransportId,
        /// Its destination.
        to: SocketAddr,
        /// The kernel's reason.
        why: io::ErrorKind,
    },
    /// The network says that a datagram could not be delivered. Anybody can make such a message up, so that only what it
    /// quotes proves that it is about something we have sent.
    Undelivered {
        /// The bind that it left by.
        transport: TransportId,
        /// Whom it was for.
        to: SocketAddr,
        /// How it began, as far as that was sent back; often nothing.
        quoted: &'a [u8],
    },
    /// TLS with somebody could not begin or go on. An incoming flow was not reported before and is not from here on; an
    /// outgoing one is `Closed` next.
    Insecure {
        /// The flow's kind.
        kind: FlowKind,
        /// The peer.
        remote: SocketAddr,
        /// Whether we called it.
        outgoing: bool,
        /// Why, and what to do.
        fault: &'a TlsFault,
    },
    /// A flow on probation: `keep` it within `PROBATION`, or it ends. Under TLS its handshake is over by then.
    Accepted {
        /// Its name from here on.
        flow: FlowId,
        /// Where it came in.
        listener: ListenerId,
        /// The listener's kind.
        kind: FlowKind,
        /// Who it is.
        peer: Peer,
    },
    /// An outgoing flow is open, and its peer has proved its name when it was asked to.
    Connected {
        /// Which.
        flow: FlowId,
        /// Its kind.
        kind: FlowKind,
        /// The address of ours that the kernel chose.
        local: SocketAddr,
    },
    /// Bytes came in, in any portions.
    Bytes {
        /// Which.
        flow: FlowId,
        /// Its kind.
        kind: FlowKind,
        /// At least one.
        bytes: &'a [u8],
    },
    /// A flow ended by itself. Not reported for those that the owner closed.
    Closed {
        /// Which.
        flow: FlowId,
        /// Its kind.
        kind: FlowKind,
        /// How.
        why: Close,
    },
    /// A watched descriptor has become ready.
    Readable {
        /// Its name.
        token: Token,
    },
    /// A signal came.
    Signal(Signal),
}

/// How many flows there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Flows in total; one descriptor each.
    pub flows: usize,
    /// Accepted flows that nobody has vouched for. Beyond it the oldest makes room.
    pub probation: usize,
    /// Of those, from one IPv4 address or one IPv6 /64.
    pub per_source: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { flows: 8192, probation: 1024, per_source: 32 }
    }
}

impl Limits {
    /// Limits that fit into `descriptors`: a quarter of them for flows, the rest for media, files and a reserve.
    pub fn within(descriptors: u64) -> Self {
        let default = Self::default();
        let flows = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(16, default.flows);
        Self { flows, probation: default.probation.min(flows / 2), per_source: default.per_source }
    }
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetStats {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Datagrams the kernel took.
    pub datagrams_out: u64,
    /// Datagrams it did not take.
    pub datagrams_unsent: u64,
    /// Datagrams of which the network said that they could not be delivered.
    pub datagrams_undelivered: u64,
    /// Flows let in.
    pub accepted: u64,
    /// Connections closed at the door: a source over its share, or no place.
    pub refused: u64,
    /// Flows that made room for others.
    pub evicted: u64,
    /// Flows whose deadline passed.
    pub expired: u64,
    /// Flows whose peer did not read.
    pub backlogged: u64,
    /// Times that a listener rested because the process had no descriptor left.
    pub rests: u64,
    /// Handshakes of TLS that came to their end.
    pub secured: u64,
    /// Connections whose TLS was broken off.
    pub insecure: u64,
    /// Returns of the kernel's wait; an idle process adds none.
    pub wakes: u64,
}
