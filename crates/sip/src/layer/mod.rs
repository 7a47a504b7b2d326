//! The transaction layer: every transaction there is, found by what a message says of it, woken by one deadline.
//!
//! It knows bytes to repeat and flows to send them on. It does not know dialogs: a transaction carries an [`Owner`] that
//! means something above, and what is of interest above comes back as a [`Notice`].

pub(crate) mod build;
mod client;
mod flow;
mod reply;
mod server;

pub(crate) use base::hash::DigestMap;
pub use base::hash::{Key, Randomness};
pub(crate) use base::{Deadlines, Place, Scheduled, Slab};
pub(crate) use client::{Branch, ClientMethod, Way};
pub use flow::{ConnectionId, Flow, PeerName, Protocol, Send, Transport, TransportId};
pub(crate) use reply::{ReplyHead, TransactionKey, reply_flow, way_back};
pub(crate) use server::{Matched, ServerMethod};

use crate::stack::Output;
use crate::transaction::{Pace, Timers};
use base::Instant;
use client::Client;
use core::net::SocketAddr;
use server::Server;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What a transaction belongs to: a dialog, if any, and the part it plays there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) dialog: Option<Place>,
    pub(crate) purpose: Purpose,
}

/// The part a client transaction plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An INVITE, initial or not.
    Invite,
    /// A BYE.
    Bye,
    /// Any request whose outcome the driver hears of.
    Request,
    /// A NOTIFY of a subscription.
    Notify,
    /// A CANCEL or the BYE of a surplus fork: nobody listens.
    Quiet,
}

/// What the layer tells upwards besides responses.
#[derive(Debug)]
pub(crate) enum Notice {
    /// No final response came in time.
    TimedOut(Place, Owner),
    /// The request could not be sent.
    Failed(Place, Owner),
    /// An INVITE client transaction that was accepted has ended: no further 2xx can come.
    InviteGone(Place, Owner),
    /// A server failed and the request went to the next one.
    Moved { to: Place, owner: Owner, failed: Flow, flow: Flow, contact: Option<Box<[u8]>> },
    /// The final response of this INVITE has no way to its dialog's peer.
    Unreachable(Place, Place),
    /// A response cannot go where it should: what the DNS says of its peer may help.
    Stranded { request: Place, host: String, port: Option<u16>, failed: Flow },
}

impl Notice {
    /// The dialog it is about.
    pub(crate) fn dialog(&self) -> Option<Place> {
        match self {
            Self::TimedOut(_, owner) | Self::Failed(_, owner) | Self::InviteGone(_, owner) => owner.dialog,
            Self::Moved { owner, .. } => owner.dialog,
            Self::Unreachable(_, dialog) => Some(*dialog),
            Self::Stranded { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Client(Place),
    Server(Place),
}

/// All transactions of one stack.
#[derive(Debug)]
pub(crate) struct Layer {
    timers: Timers,
    clients: Slab<Client>,
    servers: Slab<Server>,
    by_key: DigestMap<Place>,
    by_merge: DigestMap<Place>,
    /// Every transaction under the peer that it speaks to. In order, so that no peer can make look-ups slow.
    by_peer: BTreeSet<(SocketAddr, Member)>,
    deadlines: Deadlines<Member>,
    /// Reused for what machines put out.
    client_invite: Vec<crate::transaction::invite_client::Output>,
    client_other: Vec<crate::transaction::non_invite_client::Output>,
    server_invite: Vec<crate::transaction::invite_server::Output>,
    server_other: Vec<crate::transaction::non_invite_server::Output>,
    notices: VecDeque<Notice>,
    scratch: Vec<u8>,
    /// The transaction whose machine is running, to blame when it panics.
    in_hand: Option<Member>,
}

impl Layer {
    /// An empty layer for at most `max` transactions of each side.
    pub(crate) fn new(timers: Timers, max: usize) -> Self {
        Self {
            timers,
            clients: Slab::new(max),
            servers: Slab::new(max),
            by_key: DigestMap::default(),
            by_merge: DigestMap::default(),
            by_peer: BTreeSet::new(),
            deadlines: Deadlines::default(),
            client_invite: Vec::new(),
            client_other: Vec::new(),
            server_invite: Vec::new(),
            server_other: Vec::new(),
            notices: VecDeque::new(),
            scratch: Vec::new(),
            in_hand: None,
        }
    }

    /// After a panic: takes out the transaction whose machine it was, and tells as if it had failed. The dialog it
    /// belonged to.
    pub(crate) fn abandon_in_hand(&mut self) -> Option<Place> {
        // What the machine had put out is nobody's any more.
        self.client_invite.clear();
        self.client_other.clear();
        self.server_invite.clear();
        self.server_other.clear();
        match self.in_hand.take()? {
            Member::Client(place) => {
                let owner = self.remove_client(place)?.owner;
                self.notices.push_back(Notice::Failed(place, owner));
                owner.dialog
            }
            Member::Server(place) => {
                let dialog = self.server_dialog(place);
                self.forget_server(place);
                self.notices.extend(dialog.map(|dialog| Notice::Unreachable(place, dialog)));
                dialog
            }
        }
    }

    /// As if the machine of some transaction had panicked.
    #[cfg(test)]
    pub(crate) fn blame_one(&mut self) {
        let client = self.clients.iter().map(|(place, _)| Member::Client(place)).next();
        self.in_hand = client.or_else(|| self.servers.iter().map(|(place, _)| Member::Server(place)).next());
    }

    /// Takes other timer values for what happens from here on.
    pub(crate) fn set_timers(&mut self, timers: Timers) {
        self.timers = timers;
    }

    fn pace(&self, flow: Flow) -> Pace {
        Pace { timers: self.timers, reliable: flow.protocol.is_reliable() }
    }

    /// Client and server transactions present.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.clients.len(), self.servers.len())
    }

    /// Server transactions that may still be stored.
    pub(crate) fn server_room(&self) -> usize {
        self.servers.room()
    }

    /// When [`due`](Self::due) next wants to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// Wakes every machine whose time has come.
    pub(crate) fn due(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some((at, member)) = self.deadlines.pop_due(now) {
            match member {
                Member::Client(place) => self.client_due(place, at, now, out),
                Member::Server(place) => self.server_due(place, at, now, out),
            }
        }
    }

    /// What there is to tell, oldest first.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// A flow is gone or refused a message: tells every transaction that uses it.
    ///
    /// A request whose connection the driver made for it fails with that connection. A response may still leave by
    /// another one (RFC 3261 §18.2.2), so that after a closed connection it is only looked for there; when no connection
    /// can be made either, and the DNS knows no other server of the peer's (RFC 3263 §5), the transaction fails.
    pub(crate) fn transport_error(&mut self, flow: Flow, now: Instant, out: &mut Vec<Output>) {
        let made_for = Flow { connection: None, ..flow };
        for member in self.members_of(flow.remote) {
            match member {
                Member::Client(place) => {
                    let uses = |client: &&Client| client.flow == flow || client.flow == made_for;
                    if self.clients.get(place).filter(uses).is_some() {
                        self.client_failed(place, now, out);
                    }
                }
                Member::Server(place) => {
                    let Some(uses) = self.servers.get(place).map(|server| server.flow) else { continue };
                    match flow.connection {
                        Some(_) if uses == flow => self.server_cut_off(place),
                        // Of a connection that was to be made for the response, or of a datagram.
                        _ if uses == made_for => self.server_stranded(place, now, out),
                        _ => {}
                    }
                }
            }
        }
    }

    /// The network says that a datagram to this peer could not be delivered, and quotes how it began (RFC 3261 §18.4). The
    /// quotation has to hold a branch of ours, which nobody can guess: anybody can make such a message up. With another
    /// server left the request goes there; with none it is no answer, for whoever starts this moment gets the repetition
    /// (RFC 3261 §17.1.1.2).
    pub(crate) fn undelivered(&mut self, flow: Flow, quoted: &[u8], now: Instant, out: &mut Vec<Output>) {
        let Some(branch) = quoted_branch(quoted) else { return };
        let fits = |client: &&Client| {
            client.is_meant(branch)
                && client.flow.remote == flow.remote
                && !client.flow.protocol.is_reliable()
                && client.has_another_way()
        };
        if self.clients.get(branch.place).filter(fits).is_some() {
            self.client_failed(branch.place, now, out);
        }
    }

    /// Every transaction with this peer.
    fn members_of(&self, peer: SocketAddr) -> Vec<Member> {
        let (first, last) =
            (Place { slot: 0, generation: 0 }, Place { slot: u32::MAX, generation: u32::MAX });
        let range = (peer, Member::Client(first))..=(peer, Member::Server(last));
        self.by_peer.range(range).map(|(_, member)| *member).collect()
    }

    fn remove_client(&mut self, place: Place) -> Option<Client> {
        let client = self.clients.remove(place)?;
        self.by_peer.remove(&(client.flow.remote, Member::Client(place)));
        Some(client)
    }
}

/// The branch in the beginning of a request of ours: its Via is the first header, and `branch` the last parameter there.
fn quoted_branch(quoted: &[u8]) -> Option<Branch> {
    const NAME: &[u8] = b";branch=";
    let at = memchr::memmem::find(quoted, NAME)? + NAME.len();
    Branch::parse(quoted.get(at..at + Branch::BYTES)?)
}

fn send(out: &mut Vec<Output>, flow: Flow, bytes: &Option<Arc<[u8]>>) {
    if let Some(bytes) = bytes {
        out.push(Output::Send(Send { flow, bytes: Arc::clone(bytes) }));
    }
}
