//! What `iax2 show …` and the manager's lists tell, as data; the dialects print it.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use std::collections::HashMap;
use std::rc::Rc;

use ::iax2::frame::{Auth, Discard};
use ::iax2::machine::{Encrypt, Look, Message, Priority};
use base::FormatId;
use call::Core;

use super::IaxDriver;
use super::config::{Host, Peer, Transfer, User};
use super::leg::Leg;

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
    /// It is a row of a database.
    pub is_realtime: bool,
    /// Options in effect, name and value, for `iax2 show peer NAME`.
    pub options: Vec<(&'static str, String)>,
}

/// One user.
#[derive(Debug, Clone)]
pub struct UserRow {
    /// Section name, or that of its row.
    pub name: String,
    /// Whether it has a secret.
    pub has_secret: bool,
    /// Whether it proves itself by a key.
    pub has_keys: bool,
    /// Whether it may prove itself by MD5, RSA and in the clear.
    pub auth: [bool; 3],
    /// The first of its contexts.
    pub context: String,
    /// Whether its addresses are restricted.
    pub restricted: bool,
    /// Whose wishes go first, in the words of `iax2 show users`.
    pub priority: &'static str,
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
    /// The number of our next frame, and of the other side's.
    pub sequence: (u8, u8),
    /// How long the way there and back was last, ms; 0 before that was asked.
    pub lag_ms: u32,
    /// Jitter of what comes, ms.
    pub jitter_ms: u32,
    /// How long voice waits before it is heard, ms.
    pub buffer_ms: u32,
    /// The first and the latest message of the protocol: `Tx:NEW`, `Rx:ACK`.
    pub messages: [String; 2],
    /// Format; `None` before the call is accepted.
    pub format: Option<FormatId>,
    /// Whether it is enciphered.
    pub encrypted: bool,
    /// Whether its voice goes together with that of others.
    pub trunk: bool,
}

pub use ::iax2::machine::Report as Netstats;

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
    /// The first and the latest message of the protocol.
    pub messages: [String; 2],
}

/// Call numbers of one address (IPv6: a /64), on all sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostNumbers {
    /// The address.
    pub address: IpAddr,
    /// Numbers in use and at rest.
    pub used: u32,
    /// The most that it may have.
    pub most: u32,
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

/// Words of the reasons for which datagrams are dropped, in the order of [`Discard::ALL`].
const REASONS: [&str; Discard::ALL.len()] = [
    "too short",
    "too long",
    "unknown meta command",
    "element overruns its frame",
    "no such call",
    "cannot be deciphered",
    "out of order",
    "not expected",
    "too many answers to its network",
    "bad call token",
    "no call number left for its address",
];

impl IaxDriver {
    /// Peers by name, or one of them.
    pub fn show_peers(&self, core: &Core, only: Option<&str>) -> Vec<PeerRow> {
        let wanted = |peer: &&Rc<Peer>| only.is_none_or(|only| *peer.name == *only);
        let mut rows = Vec::new();
        let mut peers: Vec<&Rc<Peer>> = self.config.peers.values().filter(wanted).collect();
        peers.sort_unstable_by_key(|peer| &*peer.name);
        for peer in peers {
            let live = self.peers.get(&peer.name);
            let legs = self.legs.values().filter(|leg| leg.party.name() == &*peer.name);
            let channels = legs.filter_map(|leg| core.get(leg.channel)).map(|entry| entry.name.to_string());
            rows.push(PeerRow {
                name: peer.name.to_string(),
                username: peer.username.clone(),
                address: self.known_address(peer, core.now),
                is_dynamic: matches!(peer.host, Host::Dynamic(_)),
                trunk: peer.common.trunk,
                encrypted: peer.common.encrypt != Encrypt::No,
                state: self.peer_state(peer),
                expires: live.and_then(|live| live.expires_at()).map(|at| at.since(core.now).as_secs()),
                channels: channels.collect(),
                is_realtime: peer.common.is_realtime,
                options: options(peer, self.config.users.get(&peer.name)),
            });
        }
        rows
    }
    /// Users that rows of a database have made, by name.
    pub fn show_users_of_rows(&self) -> Vec<UserRow> {
        let mut rows: Vec<&Rc<User>> =
            self.config.users.values().filter(|user| user.common.is_realtime).collect();
        rows.sort_unstable_by_key(|user| &*user.name);
        let row = |user: &Rc<User>| UserRow {
            name: user.name.to_string(),
            has_secret: user.secret.is_some() || user.secret_in.is_some(),
            has_keys: !user.keys.is_empty(),
            auth: [Auth::MD5, Auth::RSA, Auth::PLAINTEXT].map(|method| user.common.auth.has(method)),
            context: user.contexts.first().cloned().unwrap_or_default(),
            restricted: user.common.access.is_some(),
            priority: match user.common.priority {
                Priority::Host => "Host",
                Priority::Caller => "Caller",
                Priority::Disabled => "Disabled",
                Priority::ReqOnly => "REQ Only",
            },
        };
        rows.into_iter().map(row).collect()
    }
    /// Registrations of ours, in file order.
    pub fn show_registry(&self) -> Vec<RegistryRow> {
        let row = |ours: &super::registry::Ours| RegistryRow {
            place: ours.config.place.clone(),
            address: ours.address,
            username: ours.config.username.clone(),
            perceived: ours.perceived,
            refresh: ours.refresh,
            state: ours.state,
        };
        self.ours.iter().map(row).collect()
    }
    /// Calls, in the order in which they began.
    pub fn show_channels(&self, core: &Core) -> Vec<ChannelRow> {
        let look = |leg: &Leg| {
            let (socket, place) = leg.place?;
            let seen = self.sockets.get(socket as usize)?.as_ref()?.machine.look(place)?;
            Some(ChannelRow {
                channel: core.get(leg.channel)?.name.to_string(),
                remote: seen.remote,
                username: leg.party.name().to_owned(),
                numbers: (seen.ours, seen.theirs),
                sequence: seen.sequence,
                lag_ms: seen.lag_ms.unwrap_or(0),
                jitter_ms: seen.local.jitter_ms,
                buffer_ms: played(core, leg).map_or(0, |(waits, _)| waits),
                messages: messages(&seen),
                format: seen.format,
                encrypted: seen.encrypted,
                trunk: seen.trunk,
            })
        };
        self.legs.values().filter_map(look).collect()
    }
    /// How the network treats calls, in the order in which they began.
    pub fn show_netstats(&self, core: &Core) -> Vec<NetstatRow> {
        self.netstats(core).collect()
    }
    /// The same, as far as somebody wants them.
    pub(super) fn netstats(&self, core: &Core) -> impl Iterator<Item = NetstatRow> {
        let look = move |leg: &Leg| {
            let (socket, place) = leg.place?;
            let seen = self.sockets.get(socket as usize)?.as_ref()?.machine.look(place)?;
            let mut local = seen.local;
            if let Some((delay_ms, dropped)) = played(core, leg) {
                (local.delay_ms, local.dropped) = (delay_ms, dropped);
            }
            let channel = core.get(leg.channel)?.name.to_string();
            let (remote, messages) = (seen.remote_report, messages(&seen));
            Some(NetstatRow { channel, round_trip: seen.round_trip, local, remote, messages })
        };
        self.legs.values().filter_map(look)
    }
    /// Totals of all sockets.
    pub fn show_stats(&self) -> Stats {
        let mut stats =
            Stats { discards: REASONS.iter().map(|name| (*name, 0)).collect(), ..Stats::default() };
        for socket in self.sockets.iter().flatten() {
            let counts = socket.machine.counts();
            stats.received += socket.received;
            stats.sent += socket.sent;
            stats.legs += counts.legs;
            stats.trunks += counts.trunks;
            for ((_, total), more) in stats.discards.iter_mut().zip(counts.discards) {
                *total += more;
            }
        }
        stats.discards.push(("thrown away by iax2 test losspct", self.trial.thrown_away));
        stats
    }
    /// Addresses with call numbers, those with most first, or the one that is wanted; this many at most.
    pub fn show_hosts(&self, only: Option<IpAddr>, most: usize) -> Vec<HostNumbers> {
        let mut hosts: HashMap<IpAddr, HostNumbers> = HashMap::new();
        for socket in self.sockets.iter().flatten() {
            for (address, used, most) in socket.machine.numbers_of_hosts() {
                if only.is_none_or(|only| base::source_of(only) == address) {
                    hosts.entry(address).or_insert(HostNumbers { address, used: 0, most }).used += used;
                }
            }
        }
        let mut rows: Vec<HostNumbers> = hosts.into_values().collect();
        rows.sort_unstable_by_key(|row| (core::cmp::Reverse(row.used), row.address));
        rows.truncate(most);
        rows
    }
    /// Use of call numbers on all sockets.
    pub fn show_numbers(&self) -> Numbers {
        let mut numbers = Numbers {
            without_token_max: self.config.numbers_without_token,
            of_address_max: self.config.numbers_of_address,
            ..Numbers::default()
        };
        for socket in self.sockets.iter().flatten() {
            let counts = socket.machine.counts();
            numbers.shared_in_use += counts.shared.0;
            numbers.shared_resting += counts.shared.1;
            numbers.own_resting += counts.own_resting;
            numbers.hosts += counts.hosts;
            numbers.without_token += counts.without_token;
        }
        numbers
    }
}

/// The first and the latest message of a call.
fn messages(seen: &Look) -> [String; 2] {
    let word = |message: Option<Message>| {
        message.map_or_else(String::new, |Message { sent, command }| {
            let name = command.name();
            let name = if name.is_empty() { "(unknown)" } else { name };
            format!("{}:{name}", if sent { "Tx" } else { "Rx" })
        })
    };
    [word(seen.messages.map(|(first, _)| first)), word(seen.messages.map(|(_, last)| last))]
}

/// What the media plane said last of the voice of a leg: how long it waits before it is heard, ms, and how many frames came
/// too late for that.
pub(super) fn played(core: &Core, leg: &Leg) -> Option<(u32, u32)> {
    let quality = core.get(leg.channel)?.quality.as_ref()?;
    Some((quality.latest.buffer_ms, quality.latest.late_packets))
}

/// Contexts that calls of a peer go to: those of its user where it is a friend, for which more than what is written holds.
pub(super) fn contexts(peer: &Peer, user: Option<&Rc<User>>) -> String {
    user.filter(|_| peer.is_friend).map_or(&peer.contexts, |user| &user.contexts).join(",")
}

/// Options of a peer in effect.
fn options(peer: &Peer, user: Option<&Rc<User>>) -> Vec<(&'static str, String)> {
    let word = |on: bool| if on { "yes" } else { "no" }.to_owned();
    let formats: Vec<&str> = peer.common.formats.iter().map(|format| format.name()).collect();
    let transfer = match peer.common.transfer {
        Transfer::No => "no",
        Transfer::Yes => "yes",
        Transfer::MediaOnly => "mediaonly",
    };
    vec![
        ("context", contexts(peer, user)),
        ("peercontext", peer.context.clone()),
        ("mailbox", peer.mailboxes.join(",")),
        ("dynamic", word(matches!(peer.host, Host::Dynamic(_)))),
        ("callerid", peer.common.caller.all()),
        ("allow", formats.join(",")),
        ("secret", word(peer.secret.is_some() || peer.secret_in.is_some())),
        ("trunk", word(peer.common.trunk)),
        ("transfer", transfer.to_owned()),
        ("encryption", word(peer.common.encrypt != Encrypt::No)),
        ("qualify", peer.qualify.map_or_else(|| "no".to_owned(), |most| format!("{} ms", most.as_millis()))),
        ("jitterbuffer", word(peer.common.jitter.is_some())),
        ("language", peer.common.language.clone()),
        ("accountcode", peer.common.account.clone()),
    ]
}
