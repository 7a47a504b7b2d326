//! Users and peers that are looked for by something else than their names, so that nobody walks through all of them.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ::iax2::frame::Auth;
use ::iax2::machine::Encrypt;
use base::hash::Key;

use super::config::{Common, Config, Host, Peer, User};

/// Most different challenges that are told apart; a site has a handful.
const FACES_MAX: usize = 64;

/// What a challenge shows of who is challenged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) methods: Auth,
    pub(super) encrypt: Encrypt,
    pub(super) keys_stay: bool,
    /// `maxauthreq`.
    pub(super) calls_max: u32,
}

impl Face {
    /// Of whom there is a key or a password to check with: methods that are configured and have something to go by.
    fn of(common: &Common, has_keys: bool, has_secret: bool) -> Self {
        let methods = match (has_keys, has_secret) {
            (true, true) => common.auth,
            (true, false) => Auth(common.auth.0 & Auth::RSA.0),
            (false, _) => Auth(common.auth.0 & !Auth::RSA.0),
        };
        // Keys of calls are made of passwords.
        let encrypt =
            if common.encrypt == Encrypt::Wanted && !has_secret { Encrypt::No } else { common.encrypt };
        Self { methods, encrypt, keys_stay: common.keys_stay, calls_max: common.challenges_max }
    }
    pub(super) fn of_user(user: &User) -> Self {
        Self::of(&user.common, !user.keys.is_empty(), user.secret.is_some() || user.secret_in.is_some())
    }
    /// Registrations are not enciphered, and as many may wait for a proof as there are.
    pub(super) fn of_peer(peer: &Peer) -> Self {
        let has_secret = peer.secret.is_some() || peer.secret_in.is_some();
        let face = Self::of(&peer.common, !peer.keys.is_empty(), has_secret);
        Self { encrypt: Encrypt::No, keys_stay: false, calls_max: 0, ..face }
    }
}

/// The challenges of those who have to prove who they are, how many have each, and the keys of the first of them: what those
/// are shown, and cost, whom nobody knows.
#[derive(Debug, Default)]
struct Faces(Vec<(Face, u64, Vec<String>)>);

impl Faces {
    fn count(&mut self, face: Face, keys: &[String]) {
        if let Some((_, count, _)) = self.0.iter_mut().find(|(known, ..)| *known == face) {
            *count += 1;
        } else if self.0.len() < FACES_MAX {
            self.0.push((face, 1, keys.to_vec()));
        }
    }
    /// One that was not there when the configuration was read. How many have it is not counted: what is shown to unknown names
    /// must not change with each row that is read.
    fn meet(&mut self, face: Face, keys: &[String]) {
        if !self.0.iter().any(|(known, ..)| *known == face) {
            self.count(face, keys);
        }
    }
    /// That of a name: each as likely as it is among those who are known, and always the same for the same name.
    fn draw(&self, key: Key, name: &str) -> Option<(Face, &[String])> {
        let all: u64 = self.0.iter().map(|(_, count, _)| count).sum();
        let mut at = (key.digest(&[name.as_bytes()]) as u64).checked_rem(all)?;
        for (face, count, keys) in &self.0 {
            match at.checked_sub(*count) {
                Some(rest) => at = rest,
                None => return Some((*face, keys)),
            }
        }
        None
    }
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Index {
    /// Users that anybody may be: no password, no key.
    open: BTreeSet<Rc<str>>,
    /// Peers by mailboxes that they are told of.
    mailboxes: HashMap<String, BTreeSet<Rc<str>>>,
    /// How many peers are at home at an address: always, or as long as they are registered from there.
    homes: HashMap<IpAddr, u32>,
    /// What users are asked who call, and peers who register.
    faces: [Faces; 2],
}

/// Whether anybody may be this user.
pub(super) fn is_open(user: &User) -> bool {
    user.secret.is_none() && user.secret_in.is_none() && user.keys.is_empty()
}

/// Whether who registers as this peer has to prove that it is.
fn has_to_prove(peer: &Peer) -> bool {
    let has_proof = peer.secret.is_some() || peer.secret_in.is_some() || !peer.keys.is_empty();
    has_proof && matches!(peer.host, Host::Dynamic(_))
}

fn mailboxes(peer: &Peer) -> impl Iterator<Item = String> {
    peer.mailboxes.iter().map(|mailbox| call::mailbox_name(mailbox))
}

impl Index {
    /// Of a whole configuration, and the places where peers are registered.
    pub(super) fn of(config: &Config, registered: impl Iterator<Item = SocketAddr>) -> Self {
        let mut index = Self::default();
        let [of_users, of_peers] = &mut index.faces;
        for user in config.users.values().filter(|user| !is_open(user)) {
            of_users.count(Face::of_user(user), &user.keys);
        }
        let mut proving: Vec<&Rc<Peer>> = config.peers.values().filter(|peer| has_to_prove(peer)).collect();
        proving.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for peer in proving {
            of_peers.count(Face::of_peer(peer), &peer.keys);
        }
        config.users.values().for_each(|user| index.put_user(user));
        config.peers.values().for_each(|peer| index.put_peer(peer));
        registered.for_each(|address| index.settle(address));
        index
    }
    pub(super) fn put_user(&mut self, user: &User) {
        let [of_users, _] = &mut self.faces;
        if is_open(user) {
            self.open.insert(user.name.clone());
        } else {
            of_users.meet(Face::of_user(user), &user.keys);
        }
    }
    pub(super) fn take_user(&mut self, user: &User) {
        self.open.remove(&user.name);
    }
    pub(super) fn put_peer(&mut self, peer: &Peer) {
        let [_, of_peers] = &mut self.faces;
        if has_to_prove(peer) {
            of_peers.meet(Face::of_peer(peer), &peer.keys);
        }
        for mailbox in mailboxes(peer) {
            self.mailboxes.entry(mailbox).or_default().insert(peer.name.clone());
        }
        if let Host::Fixed(address) = peer.host {
            self.settle(address);
        }
    }
    pub(super) fn take_peer(&mut self, peer: &Peer) {
        for mailbox in mailboxes(peer) {
            if let Some(peers) = self.mailboxes.get_mut(&mailbox) {
                peers.remove(&peer.name);
                if peers.is_empty() {
                    self.mailboxes.remove(&mailbox);
                }
            }
        }
        if let Host::Fixed(address) = peer.host {
            self.leave(address);
        }
    }
    /// A peer is at home at an address from here on.
    pub(super) fn settle(&mut self, address: SocketAddr) {
        *self.homes.entry(address.ip().to_canonical()).or_default() += 1;
    }
    /// And no longer.
    pub(super) fn leave(&mut self, address: SocketAddr) {
        let ip = address.ip().to_canonical();
        if let Some(count) = self.homes.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                self.homes.remove(&ip);
            }
        }
    }
    /// Whether any peer is at home at an address.
    pub(super) fn is_home(&self, ip: IpAddr) -> bool {
        self.homes.contains_key(&ip.to_canonical())
    }
    /// How a name is challenged that nobody has, and keys that an answer of it is looked at with, so that this takes as long as
    /// for one that somebody has: as somebody is, or, when there is nobody, as the general section says.
    pub(super) fn face_of_nobody(
        &self,
        calls: bool,
        key: Key,
        name: &str,
        defaults: &Common,
    ) -> (Face, Vec<String>) {
        let [of_users, of_peers] = &self.faces;
        let faces = if calls { of_users } else { of_peers };
        let drawn = faces.draw(key, name).map(|(face, keys)| (face, keys.to_vec()));
        drawn.unwrap_or_else(|| (Face::of(defaults, false, true), Vec::new()))
    }
    /// Users that anybody may be, by name.
    pub(super) fn open_users(&self) -> impl Iterator<Item = &Rc<str>> {
        self.open.iter()
    }
    /// Peers that are told of any of these mailboxes, each once, by name.
    pub(super) fn told_of<'m>(&self, changed: impl Iterator<Item = &'m str>) -> BTreeSet<Rc<str>> {
        changed.filter_map(|mailbox| self.mailboxes.get(mailbox)).flatten().cloned().collect()
    }
}
