//! Users and peers that a database holds: who calls or registers and is not known, or not fresh, waits in a bounded place until
//! the shell has looked the name up, and goes on as if it came that moment.
//!
//! It has shown by a call token that it receives where it says to be, and holds a number of its address; the name is all that
//! is looked at before. Whether there is such a name shows in no answer.

use core::net::SocketAddr;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use ::iax2::machine::{Request, TokenRule};
use base::{Cause, Instant};
use call::Core;

use super::config::{Config, Host, Peer, Transfer, User};
use super::{At, IaxDriver, text};
use crate::Lookup;

/// Requests that wait for a database at once: the phones of a large site that all register within the patience of one
/// look-up. A request holds about a kilobyte.
const PARKED_MAX: usize = 16_384;

/// What a row makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Who calls.
    User,
    /// Who registers, and is called.
    Peer,
}

/// Whoever looks users and peers up.
pub trait Directory {
    /// Looks one up.
    fn look_up(&mut self, kind: Kind, name: &str, now: Instant) -> Lookup;
}

/// Users and peers that a database has, or has no more.
#[derive(Default, Clone)]
pub struct Learned {
    /// Users by name.
    pub users: Vec<(Rc<str>, Option<Rc<User>>)>,
    /// Peers by name.
    pub peers: Vec<(Rc<str>, Option<Rc<Peer>>)>,
}

impl Learned {
    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.peers.is_empty()
    }
}

/// What a stranger asks for.
pub(super) enum Asking {
    Call(Request),
    /// Registration, or its end.
    Register(bool, Request),
}

impl Asking {
    fn whom(&self) -> (Kind, String) {
        match self {
            Self::Call(request) => (Kind::User, text(request.fields().username)),
            Self::Register(_, request) => (Kind::Peer, text(request.fields().username)),
        }
    }
}

type Directed = Rc<RefCell<dyn Directory>>;

/// Who waits, and who looks up what they wait for.
#[derive(Default)]
pub(super) struct Lookups {
    directory: Option<Directed>,
    parked: HashMap<(Kind, String), Vec<(At, Asking)>>,
    /// Legs that wait and are not over.
    waiting: HashSet<At>,
    /// Peers that somebody dials, and what turns true when they are known.
    dialled: HashMap<String, Rc<Cell<bool>>>,
    /// Where peers are that registered before the process began, and that no database has told of yet.
    pub(super) homeless: BTreeMap<Rc<str>, (SocketAddr, Instant)>,
}

impl IaxDriver {
    /// Has users and peers looked up from here on; `None`: what is configured is all there is.
    pub fn set_directory(&mut self, directory: Option<Rc<RefCell<dyn Directory>>>) {
        self.lookups.directory = directory;
    }
    /// Requests that wait for a look-up.
    pub fn parked(&self) -> usize {
        self.lookups.waiting.len()
    }
    pub(super) fn has_directory(&self) -> bool {
        self.lookups.directory.is_some()
    }
    pub(super) fn look_up(&self, kind: Kind, name: &str, now: Instant) -> Lookup {
        match self.lookups.directory.clone() {
            Some(directory) if !name.is_empty() => directory.borrow_mut().look_up(kind, name, now),
            Some(_) | None => Lookup::Ready,
        }
    }
    /// Handles what a stranger asks for, at once or when its name was looked up.
    pub(super) fn asked_for(&mut self, core: &mut Core, at: At, asking: Asking) {
        let (kind, name) = asking.whom();
        match self.look_up(kind, &name, core.now) {
            Lookup::Ready => self.go_on(core, at, asking),
            Lookup::Awaited if self.lookups.waiting.len() < PARKED_MAX => {
                self.lookups.waiting.insert(at);
                self.lookups.parked.entry((kind, name)).or_default().push((at, asking));
            }
            Lookup::Awaited | Lookup::Unavailable => self.refuse_for_now(core.now, at),
        }
    }
    /// Has a peer looked up that is dialled and not known.
    pub(super) fn look_up_dialled(&mut self, name: &str, now: Instant) -> Option<Rc<Cell<bool>>> {
        if self.config.peers.contains_key(name) || self.look_up(Kind::Peer, name, now) != Lookup::Awaited {
            return None;
        }
        Some(self.lookups.dialled.entry(name.to_owned()).or_default().clone())
    }
    fn go_on(&mut self, core: &mut Core, at: At, asking: Asking) {
        match asking {
            Asking::Call(request) => self.called(core, at, request),
            Asking::Register(release, request) => self.registering(core, at, release, request),
        }
    }
    /// Neither yes nor no.
    fn refuse_for_now(&mut self, now: Instant, at: At) {
        self.refuse(now, at, Cause::SWITCH_CONGESTION, b"Try again later");
    }
    /// A leg is over: it waits no more.
    pub(super) fn forget_parked(&mut self, at: At) {
        self.lookups.waiting.remove(&at);
    }
    /// All legs of a socket are.
    pub(super) fn forget_parked_of(&mut self, socket: u32) {
        self.lookups.waiting.retain(|(of, _)| *of != socket);
    }
    /// A name that was awaited was looked up, or cannot be. What waited for it goes on.
    pub fn looked_up(&mut self, core: &mut Core, kind: Kind, name: &str, is_available: bool) {
        if kind == Kind::Peer
            && let Some(known) = self.lookups.dialled.remove(name)
        {
            known.set(true);
            core.outside_changed();
        }
        let parked = self.lookups.parked.remove(&(kind, name.to_owned())).unwrap_or_default();
        for (at, asking) in parked {
            match (self.lookups.waiting.remove(&at), is_available) {
                (false, _) => {}
                (true, true) => self.go_on(core, at, asking),
                (true, false) => self.refuse_for_now(core.now, at),
            }
        }
        self.settle(core);
    }
    /// Takes what a database has, in place of what was known under the same names.
    pub fn learn(&mut self, core: &mut Core, learned: Learned) {
        let config = Rc::make_mut(&mut self.config);
        let before = |config: &Config, name: &Rc<str>| (name.clone(), config.token_rule(name));
        let users = learned.users.iter().map(|(name, _)| name);
        let names = users.chain(learned.peers.iter().map(|(name, _)| name));
        let rules: BTreeMap<Rc<str>, TokenRule> = names.map(|name| before(config, name)).collect();
        let mut transfers = false;
        for (name, user) in learned.users {
            transfers |= user.as_ref().is_some_and(|user| user.common.transfer != Transfer::No);
            if let Some(before) = config.users.get(&name) {
                self.index.take_user(before);
            }
            match user {
                Some(user) => {
                    self.index.put_user(&user);
                    config.users.insert(name, user);
                }
                None => _ = config.users.remove(&name),
            }
        }
        let peers: Vec<Rc<str>> = learned.peers.iter().map(|(name, _)| name.clone()).collect();
        for (name, peer) in learned.peers {
            if let Some(before) = config.peers.get(&name) {
                self.index.take_peer(before);
            }
            match peer {
                Some(peer) => {
                    self.index.put_peer(&peer);
                    config.peers.insert(name, peer);
                }
                None => _ = config.peers.remove(&name),
            }
        }
        let changed: Vec<(Rc<str>, TokenRule)> = rules
            .into_iter()
            .map(|(name, rule)| (config.token_rule(&name), name, rule))
            .filter(|(rule, _, before)| rule != before)
            .map(|(rule, name, _)| (name, rule))
            .collect();
        for socket in self.sockets.iter_mut().flatten() {
            if transfers {
                socket.machine.allow_transfers();
            }
            for (name, rule) in &changed {
                socket.machine.set_token_rule(name.as_bytes(), *rule);
            }
        }
        for name in peers {
            self.peer_changed(core, &name);
        }
        self.settle(core);
    }
    /// What is known of where a peer is follows what the database says of it.
    fn peer_changed(&mut self, core: &mut Core, name: &Rc<str>) {
        let Some(peer) = self.config.peers.get(name).cloned() else {
            self.forget_peer(core, name);
            return;
        };
        if !matches!(peer.host, Host::Dynamic(_)) {
            self.unbind(core, name, false);
        } else if let Some((address, expires_at)) = self.lookups.homeless.remove(name) {
            self.expiries.remove(&(expires_at, name.clone()));
            if self.peers.get(name).is_none_or(|live| live.address().is_none()) && core.now < expires_at {
                self.bind(core, &peer, address, expires_at);
            }
        }
        self.watch(core, &peer);
    }
}
