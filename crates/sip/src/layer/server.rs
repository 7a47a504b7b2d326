//! Server transactions: found by a keyed digest of what the peer chose (RFC 3261 §17.2.3).

use super::reply::{sent_by, way_back};
use super::{Flow, Layer, Member, Notice, Pace, Place, Protocol, ReplyHead, Scheduled, TransactionKey, send};
use crate::message::Status;
use crate::stack::Output;
use crate::transaction::{InviteServer, NonInviteServer, invite_server, non_invite_server};
use base::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// What kind of transaction a request makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerMethod {
    Invite,
    Other,
}

#[derive(Debug)]
enum Machine {
    Invite(InviteServer),
    Other(NonInviteServer),
}

#[derive(Debug)]
pub(super) struct Server {
    machine: Machine,
    key: TransactionKey,
    pub(super) flow: Flow,
    dialog: Option<Place>,
    /// The head of our responses, until the final one has left.
    head: Option<Box<ReplyHead>>,
    /// The latest response, while it may have to be repeated.
    response: Option<Arc<[u8]>>,
    /// Whoever can ask the DNS has been asked for other ways to the peer (RFC 3263 §5).
    searched: bool,
    /// Those, best first, as far as they have not been tried.
    ways: VecDeque<Flow>,
    scheduled: Scheduled,
}

impl Server {
    /// Whether the connection that the request came by is gone.
    fn is_cut_off(&self) -> bool {
        self.flow.protocol.is_reliable() && self.flow.connection.is_none()
    }
    fn deadline(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Invite(machine) => machine.deadline(),
            Machine::Other(machine) => machine.deadline(),
        }
    }
    fn is_terminated(&self) -> bool {
        match &self.machine {
            Machine::Invite(machine) => machine.is_terminated(),
            Machine::Other(machine) => machine.is_terminated(),
        }
    }
    fn is_open(&self) -> bool {
        match &self.machine {
            Machine::Invite(machine) => machine.is_proceeding(),
            Machine::Other(machine) => machine.is_open(),
        }
    }
}

/// What a request turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matched {
    /// No transaction has this key.
    New,
    /// A retransmission or an ACK; the transaction has dealt with it.
    Absorbed,
    /// An ACK whose branch is that of an accepted INVITE: it belongs to the dialog.
    ForDialog,
}

impl Layer {
    /// Stores a server transaction. `None` when the table is full.
    pub(crate) fn start_server(
        &mut self,
        method: ServerMethod,
        key: TransactionKey,
        (flow, head, dialog): (Flow, ReplyHead, Option<Place>),
        now: Instant,
    ) -> Option<Place> {
        let pace = self.pace(flow);
        let machine = match method {
            ServerMethod::Invite => Machine::Invite(InviteServer::start(pace, now)),
            ServerMethod::Other => Machine::Other(NonInviteServer::start(pace, now)),
        };
        let scheduled = Scheduled::default();
        let server = Server {
            machine,
            key,
            flow,
            dialog,
            head: Some(Box::new(head)),
            response: None,
            searched: false,
            ways: VecDeque::new(),
            scheduled,
        };
        let place = self.servers.insert_with(|_| server)?;
        self.by_peer.insert((flow.remote, Member::Server(place)));
        self.by_key.insert(key.transaction, place);
        if let Some(merge) = key.merge {
            self.by_merge.insert(merge, place);
        }
        self.settle_server(place);
        Some(place)
    }

    /// Whether a transaction with this key is stored.
    pub(crate) fn server_by_key(&self, transaction: u128) -> Option<(Place, Option<Place>)> {
        let place = *self.by_key.get(&transaction)?;
        Some((place, self.servers.get(place)?.dialog))
    }

    /// Whether the same request is in progress under another branch (RFC 3261 §8.2.2.2).
    pub(crate) fn is_merged(&self, key: TransactionKey) -> bool {
        key.merge.is_some_and(|merge| {
            self.by_merge
                .get(&merge)
                .and_then(|place| self.servers.get(*place))
                .is_some_and(|server| server.key.transaction != key.transaction)
        })
    }

    /// Feeds a request or ACK to the transaction that has its key, if any.
    pub(crate) fn request(
        &mut self,
        transaction: u128,
        is_ack: bool,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Matched {
        let Some((place, _)) = self.server_by_key(transaction) else { return Matched::New };
        let Some(server) = self.servers.get(place) else { return Matched::New };
        let pace = self.pace(server.flow);
        self.in_hand = Some(Member::Server(place));
        let Some(server) = self.servers.get_mut(place) else { return Matched::New };
        let mut matched = Matched::Absorbed;
        match &mut server.machine {
            Machine::Invite(machine) if is_ack => {
                machine.handle(invite_server::Input::Ack, pace, now, &mut self.server_invite);
                if self.server_invite.is_empty() {
                    matched = Matched::ForDialog;
                }
            }
            Machine::Invite(machine) => {
                machine.handle(invite_server::Input::Retransmission, pace, now, &mut self.server_invite);
            }
            Machine::Other(machine) => {
                machine.handle(non_invite_server::Input::Retransmission, pace, now, &mut self.server_other);
            }
        }
        self.carry_out(place, out);
        self.settle_server(place);
        matched
    }

    /// Whether a request that has no final response yet asks for our Contact in it.
    pub(crate) fn refreshes_target(&self, place: Place) -> bool {
        let head = self.servers.get(place).and_then(|server| server.head.as_deref());
        head.is_some_and(super::reply::ReplyHead::refreshes_target)
    }

    /// Puts a response through the transaction: `write` appends it to the given bytes, knowing the head. `None` when the
    /// transaction is gone or has had its final response. Gives the bytes that left.
    pub(crate) fn respond(
        &mut self,
        place: Place,
        status: Status,
        write: impl FnOnce(&ReplyHead, &mut Vec<u8>),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Option<(Arc<[u8]>, Flow)> {
        let server = self.servers.get(place).filter(|server| server.is_open())?;
        let (pace, flow) = (self.pace(server.flow), server.flow);
        // A connection that has still to be made may fail: the response is kept as if it were a datagram.
        let linger = Pace { reliable: pace.reliable && !server.is_cut_off(), ..pace };
        self.in_hand = Some(Member::Server(place));
        let server = self.servers.get_mut(place)?;
        self.scratch.clear();
        write(server.head.as_deref()?, &mut self.scratch);
        let bytes: Arc<[u8]> = Arc::from(self.scratch.as_slice());
        server.response = Some(Arc::clone(&bytes));
        if status.is_final() {
            server.head = None;
        }
        match &mut server.machine {
            Machine::Invite(machine) => {
                machine.handle(invite_server::Input::Respond(status), pace, now, &mut self.server_invite);
            }
            Machine::Other(machine) => {
                machine.handle(
                    non_invite_server::Input::Respond(status),
                    linger,
                    now,
                    &mut self.server_other,
                );
            }
        }
        self.carry_out(place, out);
        self.settle_server(place);
        Some((bytes, flow))
    }

    /// Repeats the latest provisional response (RFC 3261 §13.3.1.1).
    pub(crate) fn repeat_response(&mut self, place: Place, out: &mut Vec<Output>) {
        if let Some(server) = self.servers.get(place).filter(|server| server.is_open()) {
            send(out, server.flow, &server.response);
        }
    }

    /// Whether the final response is still to be given.
    pub(crate) fn is_open(&self, place: Place) -> bool {
        self.servers.get(place).is_some_and(Server::is_open)
    }

    /// The dialog a server transaction belongs to.
    pub(crate) fn server_dialog(&self, place: Place) -> Option<Place> {
        self.servers.get(place)?.dialog
    }

    /// Cuts a transaction from its dialog; it runs on to its end alone.
    pub(crate) fn disown_server(&mut self, place: Place) {
        if let Some(server) = self.servers.get_mut(place) {
            server.dialog = None;
        }
    }

    /// Gives a transaction up without a word.
    pub(crate) fn forget_server(&mut self, place: Place) {
        let Some(server) = self.servers.remove(place) else { return };
        self.by_peer.remove(&(server.flow.remote, Member::Server(place)));
        if self.by_key.get(&server.key.transaction) == Some(&place) {
            self.by_key.remove(&server.key.transaction);
        }
        if let Some(merge) = server.key.merge
            && self.by_merge.get(&merge) == Some(&place)
        {
            self.by_merge.remove(&merge);
        }
    }

    pub(super) fn server_due(&mut self, place: Place, at: Instant, now: Instant, out: &mut Vec<Output>) {
        let Some(server) = self.servers.get_mut(place) else { return };
        server.scheduled.fired(at);
        if server.deadline().is_some_and(|deadline| deadline <= now) {
            self.drive_server(place, false, now, out);
        }
        self.settle_server(place);
    }

    /// The connection that a request came by is gone: its responses go where its sender says that it listens.
    pub(super) fn server_cut_off(&mut self, place: Place) {
        let Some(server) = self.servers.get(place) else { return };
        let response = match (&server.response, &server.head) {
            (Some(response), _) => response.to_vec(),
            (None, Some(head)) => head.as_response(),
            (None, None) => return,
        };
        self.turn_server(place, way_back(&response, server.flow));
    }

    /// Responses go by another way from here on.
    fn turn_server(&mut self, place: Place, flow: Flow) {
        let Some(server) = self.servers.get_mut(place) else { return };
        let before = core::mem::replace(&mut server.flow, flow);
        self.by_peer.remove(&(before.remote, Member::Server(place)));
        self.by_peer.insert((flow.remote, Member::Server(place)));
    }

    /// A response could not be sent: it goes by the next way there is, and when there is none whoever knows the DNS is
    /// asked for some, once (RFC 3261 §18.2.2, RFC 3263 §5).
    pub(super) fn server_stranded(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        let Some(server) = self.servers.get_mut(place) else { return };
        if let Some(next) = server.ways.pop_front() {
            self.turn_server(place, next);
            let Some(server) = self.servers.get(place) else { return };
            return send(out, server.flow, &server.response);
        }
        let named = server.response.as_deref().filter(|_| !server.searched).and_then(sent_by);
        let searchable = !matches!(server.flow.protocol, Protocol::Ws | Protocol::Wss);
        match named.filter(|_| searchable) {
            Some((host, port)) => {
                let host = String::from_utf8_lossy(host.as_bytes()).into_owned();
                self.notices.push_back(Notice::Stranded { request: place, host, port, failed: server.flow });
                server.searched = true;
            }
            None => self.server_failed(place, now, out),
        }
    }

    /// The ways that were asked for: the response that is stranded goes by the first of them.
    pub(crate) fn server_ways(
        &mut self,
        place: Place,
        ways: impl Iterator<Item = Flow>,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(server) = self.servers.get_mut(place).filter(|server| server.searched) else { return };
        let failed = server.flow;
        server.ways.extend(ways.filter(|way| *way != failed));
        self.server_stranded(place, now, out);
    }

    /// An INVITE that has heard nothing yet hears 100.
    pub(crate) fn trying(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        let is_silent = |server: &&Server| server.response.is_none() && server.is_open();
        if self.servers.get(place).filter(is_silent).is_some() {
            self.drive_server(place, false, now, out);
            self.settle_server(place);
        }
    }

    pub(super) fn server_failed(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        self.drive_server(place, true, now, out);
        self.settle_server(place);
    }

    fn drive_server(&mut self, place: Place, failed: bool, now: Instant, out: &mut Vec<Output>) {
        let Some(flow) = self.servers.get(place).map(|server| server.flow) else { return };
        let pace = self.pace(flow);
        self.in_hand = Some(Member::Server(place));
        let Some(server) = self.servers.get_mut(place) else { return };
        match &mut server.machine {
            Machine::Invite(machine) => {
                use invite_server::Input::{Timeout, TransportError};
                let input = if failed { TransportError } else { Timeout };
                machine.handle(input, pace, now, &mut self.server_invite);
            }
            Machine::Other(machine) => {
                use non_invite_server::Input::{Timeout, TransportError};
                let input = if failed { TransportError } else { Timeout };
                machine.handle(input, pace, now, &mut self.server_other);
            }
        }
        self.carry_out(place, out);
    }

    /// Does what the machine just fed has asked for.
    fn carry_out(&mut self, place: Place, out: &mut Vec<Output>) {
        let Some(server) = self.servers.get_mut(place) else { return };
        for output in self.server_invite.drain(..) {
            match output {
                invite_server::Output::SendTrying => {
                    if let Some(head) = &server.head {
                        self.scratch.clear();
                        head.trying(&mut self.scratch);
                        server.response = Some(Arc::from(self.scratch.as_slice()));
                    }
                    send(out, server.flow, &server.response);
                }
                invite_server::Output::SendResponse => send(out, server.flow, &server.response),
                invite_server::Output::ForgetResponse => server.response = None,
                invite_server::Output::Failed => {
                    self.notices.extend(server.dialog.map(|dialog| Notice::Unreachable(place, dialog)));
                }
                // Nobody acknowledged our refusal; there is nobody left to tell.
                invite_server::Output::TimedOut => {}
            }
        }
        for output in self.server_other.drain(..) {
            match output {
                non_invite_server::Output::SendResponse => send(out, server.flow, &server.response),
                non_invite_server::Output::ForgetResponse => server.response = None,
                non_invite_server::Output::Failed => {}
            }
        }
    }

    fn settle_server(&mut self, place: Place) {
        self.in_hand = None;
        let Some(server) = self.servers.get_mut(place) else { return };
        if server.is_terminated() {
            self.forget_server(place);
        } else {
            let deadline = server.deadline();
            self.deadlines.schedule(Member::Server(place), &mut server.scheduled, deadline);
        }
    }
}
