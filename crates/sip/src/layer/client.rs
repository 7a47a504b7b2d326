//! Client transactions: kept by place, and the place is written into the branch, so that a response finds its
//! transaction without a map.

use super::build::Written;
use super::{Flow, Layer, Member, Notice, Owner, Place, Protocol, Purpose, Scheduled, send};
use crate::header::MAGIC_COOKIE;
use crate::message::Status;
use crate::stack::Output;
use crate::transaction::{InviteClient, NonInviteClient, invite_client, non_invite_client};
use base::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// Our branch: magic cookie, place, and 64 unpredictable bits so that nobody off the path can forge a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) place: Place,
    pub(crate) secret: u64,
}

impl core::fmt::Display for Branch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Place { slot, generation } = self.place;
        write!(f, "z9hG4bK{slot:08x}{generation:08x}{:016x}", self.secret)
    }
}

impl Branch {
    /// Length of every branch of ours.
    pub(crate) const BYTES: usize = MAGIC_COOKIE.len() + 32;

    /// Reads a branch that we wrote.
    pub(crate) fn parse(branch: &[u8]) -> Option<Self> {
        let digits = branch.strip_prefix(MAGIC_COOKIE)?;
        let (slot, rest) = digits.split_at_checked(8)?;
        let (generation, secret) = rest.split_at_checked(8)?;
        let place = Place { slot: hex(slot)? as u32, generation: hex(generation)? as u32 };
        (secret.len() == 16).then_some(Self { place, secret: hex(secret)? })
    }
}

/// At most 16 hexadecimal digits.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// What kind of transaction a request makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientMethod {
    Invite,
    Other,
}

/// Largest request that goes as a datagram while nobody knows the MTU of the path, in bytes (RFC 3261 §18.1.1).
const DATAGRAM_REQUEST_MAX: usize = 1300;

#[derive(Debug)]
enum Machine {
    Invite(InviteClient),
    Other(NonInviteClient),
}

/// Another server that a request may go to, and what it is called there.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) flow: Flow,
    pub(crate) secret: u64,
    pub(crate) sent_by: String,
    pub(crate) contact: Option<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Client {
    machine: Machine,
    pub(super) flow: Flow,
    secret: u64,
    pub(super) owner: Owner,
    /// The request, while it may have to be repeated, canceled, acknowledged or retried.
    request: Option<Arc<[u8]>>,
    /// Header lines of an INVITE with a 2xx that prove who we are: the ACK repeats them (RFC 3261 §13.2.2.4).
    credentials: Box<[u8]>,
    /// The ACK for a failure, while the failure may be repeated.
    ack: Option<Arc<[u8]>>,
    /// The request as a datagram, should nobody answer at the stream that it went to because of its size.
    datagram: Option<Box<(Flow, Arc<[u8]>)>>,
    /// Where it goes when this server fails (RFC 3263 §4.3), in order.
    ways: VecDeque<Way>,
    /// The CANCEL transaction, which shares the branch (RFC 3261 §9.1).
    cancel: Option<Place>,
    scheduled: Scheduled,
}

impl Client {
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
    /// Whether there is somewhere else to go when this server is not there.
    pub(super) fn has_another_way(&self) -> bool {
        self.datagram.is_some() || !self.ways.is_empty()
    }
    /// Whether a branch is that of this transaction, and the peer has not answered it yet: what the network says of an
    /// earlier copy of the request is out of date then.
    pub(super) fn is_meant(&self, branch: Branch) -> bool {
        let unanswered = match &self.machine {
            Machine::Invite(machine) => machine.is_calling(),
            Machine::Other(machine) => machine.is_trying(),
        };
        self.secret == branch.secret && unanswered
    }
}

impl Layer {
    /// Starts a client transaction; `write` puts the request together for its branch. `None` when the table is full.
    pub(crate) fn start_client(
        &mut self,
        (method, owner, flow, secret): (ClientMethod, Owner, Flow, u64),
        write: impl FnOnce(&str, &mut Vec<u8>),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Option<Place> {
        let pace = self.pace(flow);
        let machine = match method {
            ClientMethod::Invite => Machine::Invite(InviteClient::start(pace, now, &mut self.client_invite)),
            ClientMethod::Other => Machine::Other(NonInviteClient::start(pace, now, &mut self.client_other)),
        };
        // The machines' first output is always the request itself.
        self.client_invite.clear();
        self.client_other.clear();
        let scheduled = Scheduled::default();
        let client = Client {
            machine,
            flow,
            secret,
            owner,
            request: None,
            credentials: Box::default(),
            ack: None,
            datagram: None,
            ways: VecDeque::new(),
            cancel: None,
            scheduled,
        };
        let place = self.clients.insert_with(|_| client)?;
        self.by_peer.insert((flow.remote, Member::Client(place)));
        self.scratch.clear();
        write(&Branch { place, secret }.to_string(), &mut self.scratch);
        let client = self.clients.get_mut(place)?;
        client.request = Some(Arc::from(self.scratch.as_slice()));
        send(out, flow, &client.request);
        let deadline = client.deadline();
        self.deadlines.schedule(Member::Client(place), &mut client.scheduled, deadline);
        Some(place)
    }

    /// Finds the transaction of a response and feeds it (RFC 3261 §17.1.3). `Some` when the response goes up.
    pub(crate) fn response(
        &mut self,
        branch: Branch,
        (method, status, to): (&[u8], Status, &[u8]),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Option<(Place, Owner)> {
        let mut place = branch.place;
        let client = self.clients.get(place).filter(|client| client.secret == branch.secret)?;
        if method == b"CANCEL"
            && let Machine::Invite(_) = client.machine
        {
            place = client.cancel?;
        }
        let pace = self.pace(client.flow);
        self.in_hand = Some(Member::Client(place));
        let client = self.clients.get_mut(place)?;
        client.datagram = None;
        // RFC 3263 §4.3: a 503 is a failure of this server. Once the call has got further, it is that of the call.
        let fails = status == Status::SERVICE_UNAVAILABLE && !client.ways.is_empty();
        if status != Status::TRYING && !fails {
            client.ways.clear();
        }
        let request = client.request.clone().filter(|_| fails);
        let mut deliver = false;
        match &mut client.machine {
            Machine::Invite(machine) if method == b"INVITE" => {
                machine.handle(invite_client::Input::Response(status), pace, now, &mut self.client_invite);
                for output in self.client_invite.drain(..) {
                    match output {
                        invite_client::Output::SendAck => {
                            if let (None, Some(request)) = (&client.ack, &client.request) {
                                self.scratch.clear();
                                Written::new(request).ack_for_failure(to, &mut self.scratch);
                                client.ack = Some(Arc::from(self.scratch.as_slice()));
                            }
                            send(out, client.flow, &client.ack);
                        }
                        invite_client::Output::Deliver(_) => deliver = true,
                        // A response causes neither.
                        invite_client::Output::SendRequest
                        | invite_client::Output::TimedOut
                        | invite_client::Output::Failed => {}
                    }
                }
                if status.is_final()
                    && let Some(request) = client.request.take()
                    && status.is_success()
                {
                    client.credentials = Written::new(&request).credentials().into();
                }
            }
            Machine::Other(machine) if method != b"INVITE" => {
                machine.handle(non_invite_client::Input::Response(status), pace, now, &mut self.client_other);
                deliver =
                    self.client_other.iter().any(|o| matches!(o, non_invite_client::Output::Deliver(_)));
                self.client_other.clear();
                if status.is_final() && !matches!(status.code(), 401 | 407 | 494) {
                    client.request = None; // kept for a retry with credentials
                }
            }
            // The CSeq of the response is not that of the request.
            Machine::Invite(_) | Machine::Other(_) => return None,
        }
        let owner = client.owner;
        if owner.purpose == Purpose::Quiet {
            self.give_up(place, now);
        }
        let moved = deliver && request.is_some_and(|request| self.elsewhere(place, &request, now, out));
        self.settle_client(place);
        self.in_hand = None;
        (deliver && !moved).then_some((place, owner))
    }

    /// Says where a request goes when its server fails, that has just been started.
    pub(crate) fn also_by(&mut self, place: Place, ways: impl IntoIterator<Item = Way>) {
        if let Some(client) = self.clients.get_mut(place) {
            client.ways.extend(ways);
        }
    }

    /// The server has failed: the same request goes to the next one, as a transaction of its own (RFC 3263 §4.3). An INVITE
    /// gets another place, for the old one may have to acknowledge its failure again. `false` when there is no next.
    fn elsewhere(&mut self, place: Place, request: &[u8], now: Instant, out: &mut Vec<Output>) -> bool {
        let Some(client) = self.clients.get_mut(place) else { return false };
        let Some(Way { flow, secret, sent_by, contact }) = client.ways.pop_front() else { return false };
        let (owner, failed) = (client.owner, client.flow);
        let write = |branch: &str, bytes: &mut Vec<u8>| {
            Written::new(request).elsewhere((flow.protocol, &sent_by, branch), contact.as_deref(), bytes);
        };
        let to = match client.machine {
            Machine::Invite(_) => {
                let ways = core::mem::take(&mut client.ways);
                client.owner = Owner { dialog: None, purpose: Purpose::Quiet };
                let started = self.start_client((ClientMethod::Invite, owner, flow, secret), write, now, out);
                let Some(to) = started else {
                    // There is no room for another transaction: the failure stands.
                    if let Some(client) = self.clients.get_mut(place) {
                        client.owner = owner;
                    }
                    return false;
                };
                self.also_by(to, ways);
                to
            }
            Machine::Other(_) => {
                self.scratch.clear();
                write(&Branch { place, secret }.to_string(), &mut self.scratch);
                let request = Arc::from(self.scratch.as_slice());
                client.secret = secret;
                self.by_peer.remove(&(failed.remote, Member::Client(place)));
                self.by_peer.insert((flow.remote, Member::Client(place)));
                self.restart(place, (flow, request), now, out);
                place
            }
        };
        self.notices.push_back(Notice::Moved { to, owner, failed, flow, contact });
        true
    }

    /// Has waited long enough for the server that a request has gone to: the next one that was named for it is asked.
    /// `false` when there is none, and nothing has changed.
    pub(crate) fn next_server(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) -> bool {
        let request = self.clients.get(place).and_then(|client| client.request.clone());
        let moved = request.is_some_and(|request| self.elsewhere(place, &request, now, out));
        self.settle_client(place);
        moved
    }

    /// The transaction of ours with this branch, and whether it is that of an INVITE.
    pub(crate) fn client_of(&self, branch: Branch) -> Option<(Place, bool)> {
        let client = self.clients.get(branch.place).filter(|client| client.secret == branch.secret)?;
        Some((branch.place, matches!(client.machine, Machine::Invite(_))))
    }

    /// Whose a transaction of ours is.
    pub(crate) fn owner(&self, place: Place) -> Option<Owner> {
        self.clients.get(place).map(|client| client.owner)
    }

    /// The request of a transaction, while it is kept.
    pub(crate) fn request_bytes(&self, place: Place) -> Option<(Arc<[u8]>, Flow, Owner)> {
        let client = self.clients.get(place)?;
        Some((Arc::clone(client.request.as_ref()?), client.flow, client.owner))
    }

    /// Header lines by which an INVITE that was answered proved who we are; empty when it did not.
    pub(crate) fn credentials(&self, invite: Place) -> &[u8] {
        self.clients.get(invite).map_or(&[], |client| &client.credentials)
    }

    /// Whether an INVITE has heard a provisional response, so that CANCEL may leave (RFC 3261 §9.1).
    pub(crate) fn may_cancel(&self, place: Place) -> bool {
        self.clients.get(place).is_some_and(|client| match &client.machine {
            Machine::Invite(machine) => machine.is_proceeding(),
            Machine::Other(_) => false,
        })
    }

    /// Sends a CANCEL for an INVITE that may be canceled; once.
    pub(crate) fn cancel(
        &mut self,
        place: Place,
        headers: &[(&str, &str)],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> bool {
        if let Some(client) = self.clients.get_mut(place) {
            client.ways.clear();
        }
        if !self.may_cancel(place) {
            return false;
        }
        let Some(client) = self.clients.get(place).filter(|client| client.cancel.is_none()) else {
            return false;
        };
        let (Some(request), flow, secret) = (client.request.clone(), client.flow, client.secret) else {
            return false;
        };
        let owner = Owner { dialog: None, purpose: Purpose::Quiet };
        let write = |_: &str, bytes: &mut Vec<u8>| Written::new(&request).cancel(headers, bytes);
        let cancel = self.start_client((ClientMethod::Other, owner, flow, secret), write, now, out);
        if let Some(client) = self.clients.get_mut(place) {
            client.cancel = cancel;
        }
        self.give_up(place, now);
        cancel.is_some()
    }

    /// Gives a transaction up without a word: nobody waits for it.
    pub(crate) fn forget_client(&mut self, place: Place) {
        self.remove_client(place);
    }

    /// Cuts a transaction from its dialog; it runs on to its end alone, and an INVITE does not ring for ever.
    pub(crate) fn disown_client(&mut self, place: Place, now: Instant) {
        if let Some(client) = self.clients.get_mut(place) {
            client.owner = Owner { dialog: None, purpose: Purpose::Quiet };
            client.ways.clear();
        }
        self.give_up(place, now);
    }

    /// Bounds how long an INVITE that has rung is waited for.
    fn give_up(&mut self, place: Place, now: Instant) {
        let Some(flow) = self.clients.get(place).map(|client| client.flow) else { return };
        let pace = self.pace(flow);
        if let Some(Client { machine: Machine::Invite(machine), .. }) = self.clients.get_mut(place) {
            machine.handle(invite_client::Input::GiveUp, pace, now, &mut self.client_invite);
        }
        self.settle_client(place);
    }

    pub(super) fn client_due(&mut self, place: Place, at: Instant, now: Instant, out: &mut Vec<Output>) {
        let Some(client) = self.clients.get_mut(place) else { return };
        client.scheduled.fired(at);
        if client.deadline().is_some_and(|deadline| deadline <= now) {
            self.drive_client(place, false, now, out);
        }
        self.settle_client(place);
    }

    /// The way of a request that has just been started and is too large for its datagram (RFC 3261 §18.1.1).
    pub(crate) fn too_large(&self, place: Place) -> Option<Flow> {
        let client = self.clients.get(place).filter(|client| client.flow.protocol == Protocol::Udp)?;
        self.is_large(place).then_some(client.flow)
    }

    /// Whether a request is larger than datagrams are to be.
    pub(crate) fn is_large(&self, place: Place) -> bool {
        let request = self.clients.get(place).and_then(|client| client.request.as_ref());
        request.is_some_and(|request| request.len() > DATAGRAM_REQUEST_MAX)
    }

    /// Takes a request that has just been started to a stream; when that cannot be had, it goes as the datagram it was.
    pub(crate) fn take_to_stream(
        &mut self,
        place: Place,
        (flow, sent_by): (Flow, &str),
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(client) = self.clients.get_mut(place) else { return };
        let Some(request) = client.request.clone() else { return };
        // The last thing that was put out is the datagram, which has not left.
        out.pop_if(|output| matches!(output, Output::Send(send) if Arc::ptr_eq(&send.bytes, &request)));
        client.datagram = Some(Box::new((client.flow, Arc::clone(&request))));
        self.scratch.clear();
        Written::new(&request).over((flow.protocol, sent_by), &mut self.scratch);
        let request = Arc::from(self.scratch.as_slice());
        self.restart(place, (flow, request), now, out);
    }

    /// Begins a transaction anew by another way; nobody has answered it yet.
    fn restart(
        &mut self,
        place: Place,
        (flow, request): (Flow, Arc<[u8]>),
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let pace = self.pace(flow);
        let Some(client) = self.clients.get_mut(place) else { return };
        client.machine = match client.machine {
            Machine::Invite(_) => Machine::Invite(InviteClient::start(pace, now, &mut self.client_invite)),
            Machine::Other(_) => Machine::Other(NonInviteClient::start(pace, now, &mut self.client_other)),
        };
        self.client_invite.clear();
        self.client_other.clear();
        (client.flow, client.request) = (flow, Some(request));
        send(out, flow, &client.request);
        self.settle_client(place);
    }

    pub(super) fn client_failed(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        if let Some(datagram) = self.clients.get_mut(place).and_then(|client| client.datagram.take()) {
            return self.restart(place, *datagram, now, out);
        }
        self.drive_client(place, true, now, out);
        self.settle_client(place);
    }

    fn drive_client(&mut self, place: Place, failed: bool, now: Instant, out: &mut Vec<Output>) {
        let Some(flow) = self.clients.get(place).map(|client| client.flow) else { return };
        let pace = self.pace(flow);
        self.in_hand = Some(Member::Client(place));
        let Some(client) = self.clients.get_mut(place) else { return };
        let owner = client.owner;
        let request = client.request.clone().filter(|_| !client.ways.is_empty());
        let mut over = None;
        match &mut client.machine {
            Machine::Invite(machine) => {
                use invite_client::{Input, Output as Said};
                let input = if failed { Input::TransportError } else { Input::Timeout };
                machine.handle(input, pace, now, &mut self.client_invite);
                for output in self.client_invite.drain(..) {
                    match output {
                        Said::SendRequest => send(out, client.flow, &client.request),
                        Said::SendAck => send(out, client.flow, &client.ack),
                        Said::TimedOut => over = Some(Notice::TimedOut(place, owner)),
                        Said::Failed => over = Some(Notice::Failed(place, owner)),
                        // Only a response is delivered.
                        Said::Deliver(_) => {}
                    }
                }
            }
            Machine::Other(machine) => {
                use non_invite_client::{Input, Output as Said};
                let input = if failed { Input::TransportError } else { Input::Timeout };
                machine.handle(input, pace, now, &mut self.client_other);
                for output in self.client_other.drain(..) {
                    match output {
                        Said::SendRequest => send(out, client.flow, &client.request),
                        Said::TimedOut => over = Some(Notice::TimedOut(place, owner)),
                        Said::Failed => over = Some(Notice::Failed(place, owner)),
                        // Only a response is delivered.
                        Said::Deliver(_) => {}
                    }
                }
            }
        }
        if let Some(over) = over
            && !request.is_some_and(|request| self.elsewhere(place, &request, now, out))
        {
            self.notices.push_back(over);
        }
        self.in_hand = None;
    }

    /// Removes a transaction that has ended, else sees to its next deadline.
    fn settle_client(&mut self, place: Place) {
        let Some(client) = self.clients.get_mut(place) else { return };
        if client.is_terminated() {
            let owner = client.owner;
            let invite = matches!(client.machine, Machine::Invite(_));
            self.remove_client(place);
            if invite {
                self.notices.push_back(Notice::InviteGone(place, owner));
            }
        } else {
            let deadline = client.deadline();
            self.deadlines.schedule(Member::Client(place), &mut client.scheduled, deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3261_8_1_1_7_branch_carries_the_cookie_and_comes_back_as_it_went() {
        let branch = Branch { place: Place { slot: 0xABCD, generation: 7 }, secret: u64::MAX - 1 };
        let text = branch.to_string();
        assert!(text.starts_with("z9hG4bK") && text.len() == 39);
        assert_eq!(Branch::parse(text.as_bytes()), Some(branch));
        for forged in [
            "",
            "z9hG4bK",
            "z9hG4bK0000abcd00000007",
            "z9hG4bK0000abcd00000007fffffffffffffffe0",
            "z9hG4bK0000abcd0000000gfffffffffffffffe",
        ] {
            assert_eq!(Branch::parse(forged.as_bytes()), None, "{forged}");
        }
    }
}
