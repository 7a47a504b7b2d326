//! Users and peers that are looked for by something else than their names, so that nobody walks through all of them.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::config::{Config, Host, Peer, User};

/// See the module's page.
#[derive(Default)]
pub(super) struct Index {
    /// Users that anybody may be: no password, no key.
    open: BTreeSet<Rc<str>>,
    /// Peers by mailboxes that they are told of.
    mailboxes: HashMap<String, BTreeSet<Rc<str>>>,
    /// How many peers are at home at an address: always, or as long as they are registered from there.
    homes: HashMap<IpAddr, u32>,
}

/// Whether anybody may be this user.
pub(super) fn is_open(user: &User) -> bool {
    user.secret.is_none() && user.secret_in.is_none() && user.keys.is_empty()
}

fn mailboxes(peer: &Peer) -> impl Iterator<Item = String> {
    peer.mailboxes.iter().map(|mailbox| call::mailbox_name(mailbox))
}

impl Index {
    /// Of a whole configuration, and the places where peers are registered.
    pub(super) fn of(config: &Config, registered: impl Iterator<Item = SocketAddr>) -> Self {
        let mut index = Self::default();
        config.users.values().for_each(|user| index.put_user(user));
        config.peers.values().for_each(|peer| index.put_peer(peer));
        registered.for_each(|address| index.settle(address));
        index
    }
    pub(super) fn put_user(&mut self, user: &User) {
        if is_open(user) {
            self.open.insert(user.name.clone());
        }
    }
    pub(super) fn take_user(&mut self, user: &User) {
        self.open.remove(&user.name);
    }
    pub(super) fn put_peer(&mut self, peer: &Peer) {
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
    /// Users that anybody may be, by name.
    pub(super) fn open_users(&self) -> impl Iterator<Item = &Rc<str>> {
        self.open.iter()
    }
    /// Peers that are told of any of these mailboxes, each once, by name.
    pub(super) fn told_of<'m>(&self, changed: impl Iterator<Item = &'m str>) -> BTreeSet<Rc<str>> {
        changed.filter_map(|mailbox| self.mailboxes.get(mailbox)).flatten().cloned().collect()
    }
}
