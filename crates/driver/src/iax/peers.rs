//! Where peers are and how they answer: leases of those who register, and the POKEs that watch them.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;

use ::iax2::machine::{Lease as Confirmed, Reach, Request, Watch};
use base::{Cause, Instant};
use call::{Core, Level, Notice};

use super::config::{Config, Host, Peer};
use super::hosts::Found;
use super::leg::Party;
use super::registry::LOOK_EVERY;
use super::show::PeerState;
use super::{At, IaxDriver, datetime};

/// The port of the protocol (RFC 5456 §8).
pub(super) const PORT: u16 = 4569;
/// What a peer that says nothing about it wants, s (RFC 5456 §8.6.18).
const REFRESH_DEFAULT: u16 = 60;

/// A registration of a peer at us, as it is to be written down: with the address that it has, or without one when it has
/// ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The peer.
    pub peer: Rc<str>,
    /// Where it is.
    pub address: Option<SocketAddr>,
    /// When that ends.
    pub expires_at: Instant,
}

/// What is known of a peer beside its configuration.
#[derive(Default)]
pub(super) struct Live {
    lease: Option<(SocketAddr, Instant)>,
    /// Until when it has registered here, at last: what a database says up to then it has from us.
    ours_until: Option<Instant>,
    /// Who is watched, and where it was then.
    watch: Option<(At, Watch)>,
    reach: Option<Reach>,
    /// Its extensions that exist while it is registered: context and name.
    present: Vec<(String, String)>,
}

/// Whose extensions they are, as `dialplan show` names it.
const REGISTRAR: &str = "IAX2";

/// The extensions of a peer while it is registered (`regexten`, `regcontext`): its own name unless it says others, each in
/// the context that it names or else in that of all.
fn extensions(config: &Config, peer: &Peer) -> Vec<(String, String)> {
    if config.reg_context.is_empty() {
        return Vec::new();
    }
    let said = if peer.extensions.is_empty() { &*peer.name } else { &peer.extensions };
    let each = said.split('&').map(str::trim).filter(|name| !name.is_empty());
    each.map(|name| match name.split_once('@') {
        Some((name, context)) => (context.to_owned(), name.to_owned()),
        None => (config.reg_context.clone(), name.to_owned()),
    })
    .collect()
}

impl Live {
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.lease.map(|(address, _)| address)
    }
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.lease.map(|(_, at)| at)
    }
}

/// Messages that wait, as the protocol says it: old ones in the high octet, new ones in the low one (RFC 5456 §8.6.23).
fn messages(core: &Core, config: &Config, peer: &Peer) -> Option<u16> {
    if peer.mailboxes.is_empty() {
        return None;
    }
    let known = peer.mailboxes.iter().filter_map(|mailbox| core.mailbox(mailbox));
    let (new, old) = known.fold((0u32, 0u32), |(new, old), mailbox| (new + mailbox.new, old + mailbox.old));
    let most = if config.mailbox_detail { 255 } else { 1 };
    let octet = |count: u32| u16::try_from(count.min(most)).unwrap_or(0);
    Some(octet(old) << 8 | octet(new))
}

impl IaxDriver {
    /// Tells peers of the messages in mailboxes that have changed this turn. The shard's owner calls it each turn, before the
    /// changes are taken.
    pub fn tell_messages(&mut self, core: &mut Core) {
        let changed = core.board.changed_mailboxes();
        if changed.is_empty() {
            return;
        }
        let names = self.index.told_of(changed.iter().map(String::as_str));
        let peers: Vec<Rc<Peer>> =
            names.iter().filter_map(|name| self.config.peers.get(name)).cloned().collect();
        let now = core.now;
        for peer in peers {
            let address = self.known_address(&peer, now);
            let (Some(to), Some(count)) = (address, messages(core, &self.config, &peer)) else { continue };
            if let Some(socket) = self.socket_for(to, &peer.common) {
                // It hears of them when it registers again.
                let _ = self.order(socket, |machine, out| machine.announce(now, to, count, out));
            }
        }
    }
    /// Registrations that began or ended, to be written down before [`send`](Self::send).
    pub fn take_changes(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.changes)
    }
    /// All that hold.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        let homeless = self.lookups.homeless.iter();
        let homeless = homeless.map(|(peer, (address, expires_at))| Lease {
            peer: peer.clone(),
            address: Some(*address),
            expires_at: *expires_at,
        });
        let held = self.peers.iter().filter_map(|(peer, live)| {
            let (address, expires_at) = live.lease?;
            Some(Lease { peer: peer.clone(), address: Some(address), expires_at })
        });
        held.chain(homeless)
    }
    /// Puts one back that was written down. Of a peer that a database may still tell of it is kept until then.
    pub fn restore(&mut self, core: &mut Core, lease: &Lease) {
        let (known, Some(address)) = (self.config.peers.get(&lease.peer).cloned(), lease.address) else {
            return;
        };
        match known {
            Some(peer) if matches!(peer.host, Host::Dynamic(_)) => {
                self.bind(core, &peer, address, lease.expires_at);
                self.settle(core);
            }
            None if self.has_directory() => {
                self.lookups.homeless.insert(lease.peer.clone(), (address, lease.expires_at));
                self.expiries.insert((lease.expires_at, lease.peer.clone()));
            }
            Some(_) | None => {}
        }
    }
    pub(super) fn bind(
        &mut self,
        core: &mut Core,
        peer: &Rc<Peer>,
        address: SocketAddr,
        expires_at: Instant,
    ) {
        let live = self.peers.entry(peer.name.clone()).or_default();
        live.ours_until = Some(expires_at);
        self.index.settle(address);
        if let Some((left, before)) = live.lease.replace((address, expires_at)) {
            self.index.leave(left);
            self.expiries.remove(&(before, peer.name.clone()));
        }
        self.expiries.insert((expires_at, peer.name.clone()));
        self.show_present(core, peer);
        self.watch(core, peer);
    }
    /// Grants what a peer asks for that has proven who it is.
    pub(super) fn lease(
        &mut self,
        core: &mut Core,
        at: At,
        peer: &Rc<Peer>,
        release: bool,
        request: &Request,
    ) {
        let now = core.now;
        let asked = request.fields().refresh.unwrap_or(REFRESH_DEFAULT);
        let (least, most) = (self.config.lease_min, self.config.lease_max);
        let refresh = asked.clamp(least.min(most), most.max(1));
        let before = self.peers.get(&peer.name).and_then(Live::address);
        let confirmed = Confirmed {
            refresh,
            messages: messages(core, &self.config, peer),
            datetime: Some(datetime(core)),
            calling: peer.common.caller.number().as_bytes(),
            name: peer.common.caller.name().as_bytes(),
        };
        let done = self.order(at.0, |machine, out| machine.register(now, at.1, &confirmed, out));
        if !matches!(done, Some(Ok(()))) {
            return;
        }
        if release {
            return self.unbind(core, &peer.name, false);
        }
        let expires_at = now + Duration::from_secs(u64::from(refresh));
        self.bind(core, peer, request.from, expires_at);
        self.changes.push(Lease { peer: peer.name.clone(), address: Some(request.from), expires_at });
        if before != Some(request.from) {
            let line = format!("Registered IAX2 '{}' at {}", peer.name, request.from);
            core.log(Level::Verbose(3), "chan_iax2", &line);
        }
        tell(core, &peer.name, News::Registered(request.from));
    }
    pub(super) fn unbind(&mut self, core: &mut Core, name: &Rc<str>, expired: bool) {
        let now = core.now;
        let Some(live) = self.peers.get_mut(name) else { return };
        let Some((left, until)) = live.lease.take() else { return };
        self.index.leave(left);
        for (context, exten) in core::mem::take(&mut live.present) {
            core.registered.remove(&context, &exten, REGISTRAR, name);
        }
        self.expiries.remove(&(until, name.clone()));
        self.unwatch(now, name);
        self.changes.push(Lease { peer: name.clone(), address: None, expires_at: now });
        core.log(Level::Verbose(3), "chan_iax2", &format!("IAX2 '{name}' is no longer registered"));
        tell(core, name, News::Unregistered { expired });
    }
    /// Forgets where a peer has registered from; `false` when it has not.
    pub fn unregister(&mut self, core: &mut Core, name: &str) -> bool {
        let Some((name, _)) = self.peers.get_key_value(name).filter(|(_, live)| live.lease.is_some()) else {
            return false;
        };
        let name = name.clone();
        self.unbind(core, &name, false);
        true
    }
    /// Ends what has lapsed.
    pub(super) fn expire(&mut self, core: &mut Core) {
        while let Some((at, name)) = self.expiries.first().filter(|(at, _)| *at <= core.now).cloned() {
            if self.lookups.homeless.remove(&name).is_some() {
                self.expiries.remove(&(at, name.clone()));
                self.changes.push(Lease { peer: name, address: None, expires_at: at });
                continue;
            }
            self.unbind(core, &name, true);
        }
    }
    /// The extensions of a peer that has registered are as its section says.
    fn show_present(&mut self, core: &mut Core, peer: &Peer) {
        let Some(live) = self.peers.get_mut(&peer.name) else { return };
        let wanted = if live.lease.is_some() { extensions(&self.config, peer) } else { Vec::new() };
        if wanted == live.present {
            return;
        }
        for (context, exten) in &live.present {
            core.registered.remove(context, exten, REGISTRAR, &peer.name);
        }
        for (context, exten) in &wanted {
            core.registered.add(context, exten, REGISTRAR, &peer.name);
        }
        live.present = wanted;
    }
    /// There is no such peer any more.
    pub(super) fn forget_peer(&mut self, core: &mut Core, name: &Rc<str>) {
        self.unbind(core, name, false);
        self.unwatch(core.now, name);
        self.peers.remove(name);
    }
    /// Peers are as the configuration says from here on.
    pub(super) fn configure_peers(&mut self, core: &mut Core) {
        let config = self.config.clone();
        let known: Vec<Rc<str>> = self.peers.keys().cloned().collect();
        for name in known {
            let dynamic = config.peers.get(&name).map(|peer| matches!(peer.host, Host::Dynamic(_)));
            match dynamic {
                Some(true) => {}
                Some(false) => self.unbind(core, &name, false),
                None => self.forget_peer(core, &name),
            }
        }
        for peer in config.peers.values() {
            self.show_present(core, peer);
            self.watch(core, peer);
        }
    }
    /// A socket was closed: nobody is watched by it.
    pub(super) fn sockets_changed(&mut self, socket: u32) {
        for live in self.peers.values_mut() {
            live.watch = live.watch.filter(|((of, _), _)| *of != socket);
        }
        self.watched.retain(|(of, _), _| *of != socket);
        for ours in self.ours.iter_mut().filter(|ours| ours.place.is_some_and(|(of, _)| of == socket)) {
            ours.place = None;
        }
    }
    /// Where a peer has registered from, here or as a database says.
    pub(super) fn registered_at(&self, peer: &Peer, now: Instant) -> Option<SocketAddr> {
        let live = self.peers.get(&peer.name);
        let ours_until = live.and_then(|live| live.ours_until);
        let seen = peer.seen.filter(|(_, until)| now < *until && ours_until < Some(*until));
        live.and_then(Live::address).or(seen.map(|(address, _)| address))
    }
    fn address_of_peer(&mut self, peer: &Peer, now: Instant) -> Option<SocketAddr> {
        match &peer.host {
            Host::Dynamic(fallback) => self.registered_at(peer, now).or(*fallback),
            Host::Fixed(address) => Some(*address),
            Host::Named(host, port, services) => {
                let before = self.known_address(peer, now);
                match self.hosts.find_again(host, *port, *services, now, before) {
                    Found::At(address) => Some(address),
                    Found::Awaited | Found::Nowhere => None,
                }
            }
            Host::Nowhere => None,
        }
    }
    /// Has the name of a watched peer looked up, once what is known of it is no longer fresh.
    pub(super) fn look_again_for(&mut self, peer: &Peer, now: Instant) {
        if let Some((host, port, services)) = peer.watched_name() {
            let _ = self.hosts.find(host, port, services, now);
        }
    }
    /// Asks a peer from time to time whether it is there, if that is wished and it is known where it is.
    pub(super) fn watch(&mut self, core: &mut Core, peer: &Rc<Peer>) {
        let now = core.now;
        if peer.watched_name().is_some() {
            self.names_at.get_or_insert(now + LOOK_EVERY);
        }
        let address = self.address_of_peer(peer, now);
        let wanted = address.zip(peer.qualify).map(|(to, most)| Watch {
            to,
            most,
            every: peer.qualify_every,
            every_down: peer.qualify_every_down,
            smooth: peer.qualify_smooth,
        });
        let present = self.peers.get(&peer.name).and_then(|live| live.watch).map(|(_, what)| what);
        if wanted == present {
            return;
        }
        self.unwatch(now, &peer.name);
        let Some(what) = wanted else { return };
        let Some(socket) = self.socket_for(what.to, &peer.common) else { return };
        if let Some(Ok(place)) = self.order(socket, |machine, out| machine.watch(now, what, out)) {
            let at = (socket, place);
            self.watched.insert(at, peer.name.clone());
            self.peers.entry(peer.name.clone()).or_default().watch = Some((at, what));
        }
    }
    fn unwatch(&mut self, now: Instant, name: &Rc<str>) {
        let Some(live) = self.peers.get_mut(name) else { return };
        live.reach = None;
        let Some((at, _)) = live.watch.take() else { return };
        self.watched.remove(&at);
        let _ = self.order(at.0, |machine, out| machine.unwatch(now, at.1, out));
    }
    /// A watched peer answers otherwise than before.
    pub(super) fn peer_answered(&mut self, core: &mut Core, watch: At, reach: Reach) {
        let Some(name) = self.watched.get(&watch).cloned() else { return };
        let Some(live) = self.peers.get_mut(&name) else { return };
        let before = live.reach.replace(reach);
        if let Some(peer) = self.config.peers.get(&name).filter(|_| reach == Reach::Unreachable).cloned() {
            self.look_again_for(&peer, core.now);
        }
        let (status, line) = match reach {
            Reach::Reachable(way) => ("Reachable", format!("is now REACHABLE! Time: {}", way.as_millis())),
            Reach::Lagged(way) => ("Lagged", format!("is now TOO LAGGED ({} ms)!", way.as_millis())),
            Reach::Unreachable => ("Unreachable", "is now UNREACHABLE!".to_owned()),
        };
        // That it answers for the first time is no news to worry about.
        let level = if before.is_none() && status == "Reachable" { Level::Verbose(3) } else { Level::Notice };
        core.log(level, "chan_iax2", &format!("Peer '{name}' {line}"));
        tell(core, &name, News::Answers(reach));
    }
    /// Whether a call to this party has a chance.
    pub(super) fn is_reachable(&self, party: &Party) -> bool {
        let Party::Peer(peer) = party else { return true };
        let reach = self.peers.get(&peer.name).and_then(|live| live.reach);
        !matches!(reach, Some(Reach::Unreachable | Reach::Lagged(_)))
    }
    /// How a peer answers.
    pub(super) fn peer_state(&self, peer: &Peer) -> PeerState {
        if peer.qualify.is_none() {
            return PeerState::Unmonitored;
        }
        let live = self.peers.get(&peer.name);
        // The machine knows the last round trip; what was told is only the last change.
        let last = live.and_then(|live| live.watch).and_then(|((socket, place), _)| {
            self.sockets.get(socket as usize)?.as_ref()?.machine.reach(place)
        });
        match last.or(live.and_then(|live| live.reach)) {
            None => PeerState::Unknown,
            Some(Reach::Reachable(way)) => PeerState::Ok(way),
            Some(Reach::Lagged(way)) => PeerState::Lagged(way),
            Some(Reach::Unreachable) => PeerState::Unreachable,
        }
    }
    /// Where a peer is, as far as that is known without asking.
    pub(super) fn known_address(&self, peer: &Peer, now: Instant) -> Option<SocketAddr> {
        let live = self.peers.get(&peer.name);
        match &peer.host {
            Host::Dynamic(fallback) => self.registered_at(peer, now).or(*fallback),
            Host::Fixed(address) => Some(*address),
            Host::Named(..) => live.and_then(|live| live.watch).map(|(_, watch)| watch.to),
            Host::Nowhere => None,
        }
    }
}

/// What is new of a peer.
#[derive(Debug, Clone, Copy)]
enum News {
    Registered(SocketAddr),
    Unregistered { expired: bool },
    Answers(Reach),
}

/// Tells watchers and hints.
fn tell(core: &mut Core, name: &str, news: News) {
    let peer = format!("IAX2/{name}");
    core.touched_devices.push(peer.clone());
    let (status, address, cause, time_ms) = match news {
        News::Registered(address) => ("Registered", address.to_string(), "", None),
        News::Unregistered { expired } => {
            ("Unregistered", String::new(), if expired { "Expired" } else { "" }, None)
        }
        News::Answers(Reach::Reachable(way)) => ("Reachable", String::new(), "", Some(millis(way))),
        News::Answers(Reach::Lagged(way)) => ("Lagged", String::new(), "", Some(millis(way))),
        News::Answers(Reach::Unreachable) => ("Unreachable", String::new(), "", None),
    };
    core.notice(|_| Some(Notice::PeerStatus { channel_type: "IAX2", peer, status, address, cause, time_ms }));
}

fn millis(way: Duration) -> u64 {
    u64::try_from(way.as_millis()).unwrap_or(u64::MAX)
}

/// A cause of the protocol as a word for people.
pub(super) fn cause_text(cause: Cause, text: &[u8]) -> String {
    match text.is_empty() {
        true => format!("cause {}", cause.0),
        false => call::security::shown(&super::text(Some(text))),
    }
}
