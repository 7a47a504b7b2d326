//! What `iax2 show …` and the manager's lists tell, as data; the dialects print it.

use core::net::SocketAddr;
use core::time::Duration;

use base::FormatId;

/// How a peer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    /// Nobody asks it.
    Unmonitored,
    /// Asked, no answer yet; or nobody knows where it is.
    Unknown,
    /// Answers in time, with this round trip.
    Ok(Duration),
    /// Answers later than it should.
    Lagged(Duration),
    /// Does not answer.
    Unreachable,
}

impl PeerState {
    /// As `iax2 show peers` writes it: `OK (12 ms)`.
    pub fn text(self) -> String {
        match self {
            Self::Unmonitored => "Unmonitored".to_owned(),
            Self::Unknown => "UNKNOWN".to_owned(),
            Self::Ok(way) => format!("OK ({} ms)", way.as_millis()),
            Self::Lagged(way) => format!("LAGGED ({} ms)", way.as_millis()),
            Self::Unreachable => "UNREACHABLE".to_owned(),
        }
    }
}

/// One peer.
#[derive(Debug, Clone)]
pub struct PeerRow {
    /// Section name.
    pub name: String,
    /// Our user name there.
    pub username: String,
    /// Where it is, when that is known.
    pub address: Option<SocketAddr>,
    /// Whether it registers.
    pub is_dynamic: bool,
    /// `trunk=yes`.
    pub trunk: bool,
    /// `encryption`.
    pub encrypted: bool,
    /// How it answers.
    pub state: PeerState,
    /// Seconds until its registration lapses.
    pub expires: Option<u64>,
    /// Calls with it: names of channels.
    pub channels: Vec<String>,
    /// Options in effect, name and value, for `iax2 show peer NAME`.
    pub options: Vec<(&'static str, String)>,
}

/// How a registration of ours is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryState {
    /// Its host is not known yet, or nothing was asked so far.
    Unregistered,
    /// Asked, no answer yet.
    Sent,
    /// It holds.
    Registered,
    /// Refused; tried again later.
    Rejected,
    /// No answer; tried again later.
    Timeout,
}

impl RegistryState {
    /// As `iax2 show registry` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unregistered => "Unregistered",
            Self::Sent => "Request Sent",
            Self::Registered => "Registered",
            Self::Rejected => "Rejected",
            Self::Timeout => "Timeout",
        }
    }
}

/// One registration of ours.
#[derive(Debug, Clone)]
pub struct RegistryRow {
    /// `host:port` as configured.
    pub place: String,
    /// Where that is, when it is known.
    pub address: Option<SocketAddr>,
    /// Our user there.
    pub username: String,
    /// The address that the registrar sees.
    pub perceived: Option<SocketAddr>,
    /// Seconds of the lease.
    pub refresh: u16,
    /// How it is.
    pub state: RegistryState,
}

/// One call.
#[derive(Debug, Clone)]
pub struct ChannelRow {
    /// `IAX2/alice-00000001`.
    pub channel: String,
    /// The other side.
    pub remote: SocketAddr,
    /// User or peer; empty for a bare address.
    pub username: String,
    /// Call numbers: ours, the other side's (0 before it has told).
    pub numbers: (u16, u16),
    /// Round trip, as far as it was measured.
    pub round_trip: Duration,
    /// Jitter of what comes, ms.
    pub jitter_ms: u32,
    /// Format; `None` before the call is accepted.
    pub format: Option<FormatId>,
    /// Whether it is enciphered.
    pub encrypted: bool,
    /// Whether its voice goes together with that of others.
    pub trunk: bool,
}

/// One side of a call, as it was received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Netstats {
    /// Jitter, ms.
    pub jitter_ms: u32,
    /// Frames that never came, per cent.
    pub loss_percent: u32,
    /// Frames that never came.
    pub lost: u32,
    /// Frames received.
    pub received: u32,
    /// Longest wait in the jitter buffer, ms.
    pub delay_ms: u32,
    /// Frames that came too late to be heard.
    pub dropped: u32,
    /// Frames out of order.
    pub out_of_order: u32,
}

/// How the network treats one call.
#[derive(Debug, Clone)]
pub struct NetstatRow {
    /// Channel.
    pub channel: String,
    /// Round trip.
    pub round_trip: Duration,
    /// What we received.
    pub local: Netstats,
    /// What the other side says it received.
    pub remote: Netstats,
}

/// Totals of all sockets.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Calls, registrations and pokes under way.
    pub legs: usize,
    /// Trunks with voice to send, or lately.
    pub trunks: usize,
    /// Datagrams dropped, by reason; names of the reasons first.
    pub discards: Vec<(&'static str, u64)>,
}

/// Use of call numbers on all sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers {
    /// Numbers that are unique on their socket: in use.
    pub shared_in_use: usize,
    /// The same: at rest.
    pub shared_resting: usize,
    /// Numbers of one remote each, at rest after a long life.
    pub own_resting: usize,
    /// Addresses with numbers.
    pub hosts: usize,
    /// Numbers that were given without a call token.
    pub without_token: u32,
    /// Most of these.
    pub without_token_max: u32,
    /// Most of one address, where nothing else is said.
    pub of_address_max: u32,
}
