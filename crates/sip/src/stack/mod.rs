//! The one thing a SIP driver holds: bytes and operations go in, bytes and events come out.
//!
//! [`Stack`] joins the transaction layer and the dialogs. It knows no endpoint, no password, no SDP, no name service and
//! no clock; what it cannot know it asks as an [`Event`] or is told as an argument.
//!
//! - **Nothing is stored for a request until the driver accepts it.** [`Event::Invite`] and [`Event::Request`] carry the
//!   request; [`Stack::respond_stateless`] answers it and forgets. Our tag in such an answer is a keyed digest of the
//!   request, so that every retransmission gets the same bytes, and the ACK for it meets nothing and is dropped.
//! - **A dialog is one handle.** [`DialogId`] stands for one INVITE and all it leads to; forks of our INVITE are numbered
//!   inside it until one answers.
//! - **Each dialog is an entry of its own.** A driver that caught a panic while working on one calls [`Stack::evict`] and
//!   goes on with the others.

mod call;
mod connections;
mod event;
mod guard;
mod inside;
mod reliable;
mod uac;
mod uas;
mod unread;
mod watch;

pub use crate::layer::{ConnectionId, Flow, PeerName, Protocol, Send, Transport, TransportId};
pub use crate::transaction::Timers;
pub use event::{Accept, Answer, Body, End, Event, Failure, Header, Incoming, Outgoing, Output, Way};
pub use uac::call_id;
pub use watch::{SUBSCRIPTIONS_MAX, SubscriptionId, SubscriptionMark};

use crate::header::{HeaderName, Method};
use crate::layer::{
    Branch, Deadlines, DigestMap, Key, Layer, Matched, Notice, Place, Purpose, Randomness, Slab,
    TransactionKey, build, reply_flow,
};
use crate::message::{Index, Invalid, Message, ParseError, Status};
use crate::write::{MessageWriter, Reply};
use base::{Instant, answer_octets, datagram_overhead};
use call::Call;
use std::sync::Arc;
use watch::Watches;

/// Most transactions of each side: 64*T1 of 3,000 requests a second, which is several times what one core carries.
pub const TRANSACTIONS_MAX: usize = 96 * 1024;
/// Most dialogs: the calls that one machine's media could carry, several times over.
pub const DIALOGS_MAX: usize = 32 * 1024;
/// A part of the server transactions, one in this many, that only requests inside dialogs may use: a flood of new
/// requests must not keep an old call from ending.
const DIALOG_SHARE: usize = 16;

/// Hops a request of ours may take when nobody says otherwise (RFC 3261 §8.1.1.6).
const MAX_FORWARDS: u8 = 70;

/// A dialog or one to be: the driver's handle of one call leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DialogId(pub(crate) Place);

/// A request of the peer that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub(crate) Place);

/// A request of ours, other than an INVITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(crate) Place);

/// Why an operation was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The table of transactions or dialogs is full: answer 503.
    Full,
    /// The dialog or transaction is gone, or answered already.
    Gone,
    /// The dialog is not in a state for this.
    WrongState,
    /// Another INVITE is in progress in this dialog (RFC 3261 §14.1); try again when it has ended.
    Pending,
    /// The status is not one that this operation can send.
    BadStatus,
    /// The transport was never set.
    UnknownTransport,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "no room for another transaction or dialog",
            Self::Gone => "the dialog or transaction has ended",
            Self::WrongState => "the dialog is not in a state for this",
            Self::Pending => "another INVITE is in progress in this dialog",
            Self::BadStatus => "this status cannot be sent here",
            Self::UnknownTransport => "the transport was never set",
        })
    }
}
impl std::error::Error for Refused {}

/// What a site may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Timer values.
    pub timers: Timers,
    /// Bound of each transaction table.
    pub transactions_max: usize,
    /// Bound of the dialog table.
    pub dialogs_max: usize,
    /// User-Agent of requests and Server of responses; empty for none.
    pub product: String,
    /// Allow in INVITE and in 2xx to INVITE; empty for none.
    pub allow: String,
    /// Extensions (option tags, comma-separated) for Supported in INVITE and in 2xx to INVITE; a request that
    /// requires another one is refused with 420, unless it ends a dialog.
    pub supported: String,
    /// Packages for Allow-Events in NOTIFY (RFC 6665 §8.2.2); empty for none.
    pub allow_events: String,
    /// Hops a request of ours may take (RFC 3261 §8.1.1.6).
    pub max_forwards: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            timers: Timers::default(),
            transactions_max: TRANSACTIONS_MAX,
            dialogs_max: DIALOGS_MAX,
            product: String::new(),
            allow: String::new(),
            supported: String::new(),
            allow_events: String::new(),
            max_forwards: MAX_FORWARDS,
        }
    }
}

/// How much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Client transactions.
    pub clients: usize,
    /// Server transactions.
    pub servers: usize,
    /// Dialogs, early ones and challenged INVITEs included.
    pub dialogs: usize,
    /// Subscriptions of watchers.
    pub subscriptions: usize,
}

/// What a dialog is called on the wire, and its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    /// Call-ID.
    pub call_id: &'a [u8],
    /// Our tag.
    pub local_tag: &'a str,
    /// The peer's tag; empty before its first response.
    pub remote_tag: &'a [u8],
    /// Where requests go.
    pub flow: Flow,
}

/// What a request of ours asked, for whoever proves to be allowed to (RFC 3261 §22.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method.
    pub method: Vec<u8>,
    /// Request-URI.
    pub uri: Vec<u8>,
    /// It carried credentials already.
    pub proves: bool,
}

/// SIP for one shard: transactions, dialogs and their timers.
#[derive(Debug)]
pub struct Stack {
    config: Config,
    key: Key,
    random: Randomness,
    transports: Vec<Option<Transport>>,
    layer: Layer,
    calls: Slab<Call>,
    /// Digest of Call-ID and our tag → call.
    by_tag: DigestMap<Place>,
    /// Every call whose next request takes a connection, under that connection.
    by_connection: connections::Connections,
    deadlines: Deadlines<Place>,
    watches: Watches,
    /// Taken out while a message is parsed.
    index: Option<Box<Index>>,
    scratch: Vec<u8>,
    /// The call that is worked on, to blame when that panics.
    in_hand: Option<Place>,
    /// See [`Self::take_hurries`].
    hurries: bool,
}

impl Stack {
    /// An empty stack. `seed` must be unpredictable from outside: tags, branches, Call-IDs and table keys come from it.
    pub fn new(config: Config, seed: u128) -> Self {
        let key = Key::new(seed);
        let config = Config { timers: config.timers.bounded(), ..config };
        Self {
            layer: Layer::new(config.timers, config.transactions_max),
            calls: Slab::new(config.dialogs_max),
            config,
            key,
            random: Randomness::new(Key::new(key.digest(&[b"random"]))),
            transports: Vec::new(),
            by_tag: DigestMap::default(),
            by_connection: connections::Connections::default(),
            deadlines: Deadlines::default(),
            watches: Watches::default(),
            index: None,
            scratch: Vec::new(),
            in_hand: None,
            hurries: false,
        }
    }

    /// Says how we are called on a bind; before anything is sent from it.
    pub fn set_transport(&mut self, id: TransportId, transport: Transport) {
        let slot = usize::from(id.0);
        if self.transports.len() <= slot {
            self.transports.resize_with(slot + 1, || None);
        }
        if let Some(entry) = self.transports.get_mut(slot) {
            *entry = Some(transport);
        }
    }

    /// `host[:port]` by which the peer at the end of `flow` reaches us; for Contact.
    pub fn sent_by(&self, flow: Flow) -> Option<&str> {
        let transport = self.transports.get(usize::from(flow.transport.0))?.as_ref()?;
        Some(transport.sent_by(flow.remote.ip()))
    }

    /// Takes other timer values, another name and another number of hops for what happens from here on; what runs keeps its deadlines.
    pub fn set_config(&mut self, timers: Timers, product: String, max_forwards: u8) {
        self.config.timers = timers.bounded();
        (self.config.product, self.config.max_forwards) = (product, max_forwards);
        self.layer.set_timers(self.config.timers);
    }

    /// How much is stored.
    pub fn load(&self) -> Load {
        let (clients, servers) = self.layer.len();
        Load { clients, servers, dialogs: self.calls.len(), subscriptions: self.watches.len() }
    }

    /// When [`due`](Self::due) next wants to be called. May be earlier than needed, never later.
    pub fn deadline(&self) -> Option<Instant> {
        [self.layer.deadline(), self.deadlines.earliest(), self.watches.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes in one datagram, or one framed message of a stream. Never fails: what cannot be used is answered or dropped.
    pub fn receive(&mut self, source: Flow, bytes: &[u8], now: Instant, out: &mut Vec<Output>) {
        self.in_hand = None;
        let mut index = self.index.take().unwrap_or_default();
        let parsed = Message::parse(bytes, &mut index);
        self.hurries |= parsed.as_ref().is_ok_and(|message| !is_patient(message.method()));
        match parsed {
            Ok(message) => match message.validate() {
                Ok(()) if message.is_request() => self.receive_request(source, &message, now, out),
                Ok(()) => self.receive_response(&message, source, now, out),
                Err(Invalid::Answer(status, why)) => {
                    let reason = if why == crate::message::MISSING_CONTACT { why } else { "" };
                    let answer = Answer { reason, ..Answer::new(status.code()) };
                    self.answer_statelessly(&message, source, false, &answer, out);
                    Self::tell_unread(&message, why, source, out);
                }
                Err(Invalid::Drop(why)) => {
                    Self::tell_unread(&message, why, source, out);
                    self.receive_unread(&message, source, now, out);
                }
            },
            Err(ParseError::Empty) => {} // a keep-alive
            Err(ParseError::TooLarge) => {
                out.push(Output::Event(Event::Malformed { source, what: "a message is too large".into() }));
            }
            Err(ParseError::NotSip) => {
                let what = "what came is no SIP message".into();
                out.push(Output::Event(Event::Malformed { source, what }));
            }
        }
        self.index = Some(index);
        self.heed_notices(now, out);
    }

    /// Whether something came since the last time for which a person waits: what sets up, changes or ends a call, or a text.
    pub const fn take_hurries(&mut self) -> bool {
        core::mem::replace(&mut self.hurries, false)
    }

    /// Wakes everything whose time has come.
    pub fn due(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.in_hand = None;
        self.layer.due(now, out);
        self.heed_notices(now, out);
        while let Some((at, place)) = self.deadlines.pop_due(now) {
            if let Some(call) = self.calls.get_mut(place) {
                call.scheduled.fired(at);
                self.enter(place);
                self.call_due(place, now, out);
                self.schedule(place);
            }
        }
        self.watches_due(now, out);
        self.heed_notices(now, out);
    }

    /// The driver could not send on `flow`, as it stood in the [`Send`], or its connection closed.
    pub fn transport_error(&mut self, flow: Flow, now: Instant, out: &mut Vec<Output>) {
        self.in_hand = None;
        if let Some(connection) = flow.connection {
            self.connection_closed(connection);
            self.watches.connection_closed(connection);
        }
        self.layer.transport_error(flow, now, out);
        self.heed_notices(now, out);
    }

    /// The network says that a datagram on `flow` could not be delivered, and quotes how it began.
    pub fn undelivered(&mut self, flow: Flow, quoted: &[u8], now: Instant, out: &mut Vec<Output>) {
        self.in_hand = None;
        self.layer.undelivered(flow, quoted, now, out);
        self.heed_notices(now, out);
    }

    /// The servers that the DNS knows of a peer, for the response that [`Event::Stranded`] has told of: it goes to the
    /// first, to the next when that fails, and to nobody after the last.
    pub fn respond_by(&mut self, request: ServerId, ways: &[Flow], now: Instant, out: &mut Vec<Output>) {
        let known: Vec<Flow> = ways.iter().copied().filter(|way| self.sent_by(*way).is_some()).collect();
        self.layer.server_ways(request.0, known.into_iter(), now, out);
        self.heed_notices(now, out);
    }

    /// What a dialog is called on the wire.
    pub fn names(&self, dialog: DialogId) -> Option<Names<'_>> {
        let dialog = &self.calls.get(dialog.0)?.dialog;
        let remote_tag = dialog.peer().map_or(&[][..], |peer| &peer.tag);
        Some(Names {
            call_id: &dialog.call_id,
            local_tag: &dialog.local_tag,
            remote_tag,
            flow: dialog.next_hop(),
        })
    }

    /// Where requests of ours in a dialog are for: the Request-URI that its peer has given (RFC 3261 §12.1).
    pub fn remote_target(&self, dialog: DialogId) -> Option<&[u8]> {
        self.calls.get(dialog.0)?.dialog.peer().map(|peer| peer.target())
    }
    /// Who we are in a dialog: our From or To in it, without the tag.
    pub fn own_identity(&self, dialog: DialogId) -> Option<&[u8]> {
        let dialog = &self.calls.get(dialog.0)?.dialog;
        let tag = [b";tag=", dialog.local_tag.as_bytes()].concat();
        dialog.local().strip_suffix(&*tag)
    }

    /// The dialog with these names: Call-ID, our tag, the peer's (RFC 3891 §3).
    pub fn find_dialog(&self, call_id: &[u8], local_tag: &[u8], remote_tag: &[u8]) -> Option<DialogId> {
        let place = self.find(call_id, local_tag)?;
        self.calls.get(place)?.dialog.fork(remote_tag).map(|_| DialogId(place))
    }

    /// The dialog with this Call-ID and this tag of ours, whatever its peer's.
    pub fn own_dialog(&self, call_id: &[u8], local_tag: &[u8]) -> Option<DialogId> {
        self.find(call_id, local_tag).map(DialogId)
    }

    /// Answers a request and stores nothing (RFC 3261 §8.2.7). The same request gets the same answer again.
    ///
    /// Whoever has proved nothing may have written another's address on a datagram, and gets at most one and a half times
    /// what it has sent: first what is optional is left out, then nothing leaves at all.
    pub fn respond_stateless(&self, incoming: &Incoming, answer: &Answer<'_>, out: &mut Vec<Output>) {
        let way = (incoming.source, incoming.force_rport, incoming.proved);
        self.write_statelessly(&incoming.message.view(), way, answer, out);
    }

    /// Stores a transaction for a request other than INVITE; retransmissions are absorbed from here on.
    pub fn accept(&mut self, incoming: &Incoming, now: Instant) -> Result<ServerId, Refused> {
        let message = incoming.message.view();
        if let Some((place, _)) = self.layer.server_by_key(incoming.key.transaction) {
            return if self.layer.is_open(place) { Ok(ServerId(place)) } else { Err(Refused::Gone) };
        }
        self.start_server(&message, incoming.source, incoming.force_rport, incoming.key, None, now)
            .map(ServerId)
    }

    /// Answers an accepted request or a request inside a dialog.
    pub fn respond(
        &mut self,
        request: ServerId,
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let status = Status::new(answer.status).ok_or(Refused::BadStatus)?;
        let done = match self.layer.server_dialog(request.0) {
            Some(dialog) => self.respond_inside(request.0, dialog, status, answer, now, out),
            None => self.respond_with(request.0, status, answer, None, now, out).map(drop),
        };
        self.heed_notices(now, out);
        done
    }

    /// Forgets a dialog and its transactions without a word to the peer. For a driver that caught a panic.
    pub fn evict(&mut self, dialog: DialogId) {
        if let Some(call) = self.calls.get(dialog.0) {
            let (client, server) = (call.invite_client, call.invite_server);
            if let Some(client) = client {
                self.layer.forget_client(client);
            }
            if let Some(server) = server {
                self.layer.forget_server(server);
            }
            self.remove(dialog.0);
        }
    }

    /// Takes in a request that [`Event::Elsewhere`] brought, when whoever sent it was let in: the peer of its dialog is
    /// known to be there from here on.
    pub fn receive_proved(
        &mut self,
        dialog: DialogId,
        incoming: &Incoming,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let (message, source, key) = (incoming.message.view(), incoming.source, incoming.key);
        let Some(call) = self.calls.get_mut(dialog.0) else {
            return self.answer_statelessly(&message, source, incoming.force_rport, &Answer::new(481), out);
        };
        call.dialog.prove(source);
        match message.method() {
            Method::Ack => self.receive_ack(&message, source, now, out),
            Method::Cancel => self.receive_cancel(&message, source, key, now, out),
            _ => {
                self.enter(dialog.0);
                self.receive_inside(dialog.0, &message, source, key, now, out);
            }
        }
        self.heed_notices(now, out);
    }

    /// Whether a dialog's peer was known to be where this message comes from.
    pub fn is_from_peer(&self, dialog: DialogId, source: Flow) -> bool {
        self.calls.get(dialog.0).is_some_and(|call| call.dialog.is_from_peer(source))
    }

    /// What comes inside a dialog from elsewhere is for the driver to judge; `false`: it comes from the peer.
    fn is_elsewhere(
        &mut self,
        place: Place,
        (message, source): (&Message<'_>, Flow),
        key: TransactionKey,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(call) = self.calls.get(place).filter(|call| !call.dialog.is_from_peer(source)) else {
            return false;
        };
        let (dialog, force_rport) = (DialogId(place), call.dialog.force_rport);
        let message = message.into_owned();
        let incoming = Box::new(Incoming { message, source, force_rport, proved: false, key });
        out.push(Output::Event(Event::Elsewhere { dialog, incoming }));
        true
    }

    fn receive_request(&mut self, source: Flow, message: &Message<'_>, now: Instant, out: &mut Vec<Output>) {
        let key = TransactionKey::of(message, self.key);
        let method = message.method();
        match self.layer.request(key.transaction, method == Method::Ack, now, out) {
            Matched::Absorbed => return,
            Matched::New | Matched::ForDialog => {}
        }
        match (method, message.to_tag()) {
            (Method::Ack, _) => self.receive_ack(message, source, now, out),
            (Method::Cancel, _) => self.receive_cancel(message, source, key, now, out),
            // A registration is outside dialogs, whatever tag some phones put into it.
            (Method::Register, _) | (_, None) => self.receive_outside(message, source, key, out),
            (_, Some(tag)) => match self.find(message.call_id().unwrap_or_default(), tag) {
                Some(place) => {
                    self.enter(place);
                    self.receive_inside(place, message, source, key, now, out);
                }
                None if self.receive_resubscribe(tag, message, source, key, now, out) => {}
                None => self.answer_statelessly(message, source, false, &Answer::new(481), out),
            },
        }
    }

    fn receive_outside(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        key: TransactionKey,
        out: &mut Vec<Output>,
    ) {
        if self.layer.is_merged(key) {
            return self.answer_statelessly(message, source, false, &Answer::new(482), out); // §8.2.2.2
        }
        // Who calls is asked for a password first, and who only asks hears what there is: the driver sees to both.
        let is_asked_later = matches!(message.method(), Method::Invite | Method::Options);
        let unknown = if is_asked_later { String::new() } else { self.unknown_extensions(message) };
        if !unknown.is_empty() {
            let headers = [("Unsupported", unknown.as_str())];
            return self.answer_statelessly(message, source, false, &Answer::new(420).headers(&headers), out); // §8.2.2.3
        }
        let invite = message.method() == Method::Invite;
        let reserved = self.config.transactions_max / DIALOG_SHARE;
        if self.layer.server_room() <= reserved || (invite && self.calls.room() == 0) {
            // Spread, so that they do not all come back at once, and the same each time this request comes.
            let seconds = (5 + key.transaction % 26).to_string();
            let headers = [("Retry-After", seconds.as_str())];
            return self.answer_statelessly(message, source, false, &Answer::new(503).headers(&headers), out);
        }
        let message = message.into_owned();
        let incoming = Box::new(Incoming { message, source, force_rport: false, proved: false, key });
        out.push(Output::Event(if invite { Event::Invite(incoming) } else { Event::Request(incoming) }));
    }

    /// What the peer requires and we do not support, as a list.
    pub fn unknown_extensions(&self, message: &Message<'_>) -> String {
        let supported = |tag: &[u8]| {
            self.config.supported.split(',').any(|known| known.trim().as_bytes().eq_ignore_ascii_case(tag))
        };
        // What these ask of a registrar is the driver's to do (RFC 3327 §5.3, RFC 5626 §6).
        let register = message.method() == Method::Register;
        let understood = |tag: &[u8]| {
            let more: &[&[u8]] = if register { &[b"path", b"outbound"] } else { &[b"eventlist"] };
            more.iter().any(|known| tag.eq_ignore_ascii_case(known))
        };
        let unknown = message.values(HeaderName::Require).filter(|tag| !supported(tag) && !understood(tag));
        unknown.map(String::from_utf8_lossy).collect::<Vec<_>>().join(", ")
    }

    fn receive_response(&mut self, message: &Message<'_>, source: Flow, now: Instant, out: &mut Vec<Output>) {
        let Some(status) = message.status() else { return };
        if message.values(HeaderName::Via).nth(1).is_some() {
            return; // meant for somebody else (§8.1.3.3)
        }
        let branch = message.top_via().and_then(|via| via.branch()).and_then(Branch::parse);
        let (Some(branch), Some(cseq)) = (branch, message.cseq()) else { return };
        let to = message.header(HeaderName::To).unwrap_or_default();
        let delivered = self.layer.response(branch, (cseq.method.as_bytes(), status, to), now, out);
        let Some((place, owner)) = delivered else { return };
        if let Some(dialog) = owner.dialog {
            self.enter(dialog);
        }
        match (owner.purpose, owner.dialog) {
            (Purpose::Invite, Some(dialog)) if self.calls.get(dialog).is_some() => {
                self.invite_response(dialog, place, message, source, status, now, out);
            }
            (Purpose::Invite | Purpose::Quiet, _) if cseq.method == Method::Invite && status.is_success() => {
                self.refuse_late_answer(place, message, source, now, out);
            }
            (Purpose::Invite | Purpose::Quiet, _) => {}
            (Purpose::Notify, _) => {
                self.notify_answered(place, Some((message, source)), status.code(), now, out)
            }
            (Purpose::Bye, dialog) => self.bye_response(place, dialog, message, status, out),
            (Purpose::Request, dialog) => self.request_response(place, dialog, message, status, now, out),
        }
    }

    fn heed_notices(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some(notice) = self.layer.take_notice() {
            if let Some(dialog) = notice.dialog() {
                self.enter(dialog);
            }
            match notice {
                Notice::TimedOut(place, owner) => self.unanswered(place, owner, Failure::Timeout, now, out),
                Notice::Failed(place, owner) => self.unanswered(place, owner, Failure::Transport, now, out),
                Notice::InviteGone(place, owner) => {
                    if let Some(call) = owner.dialog.and_then(|dialog| self.calls.get_mut(dialog)) {
                        call.invite_gone(place);
                    }
                }
                Notice::Moved { to, owner, failed, flow, contact } => {
                    self.moved((to, owner), (failed, flow), contact, out);
                }
                Notice::Unreachable(request, dialog) => self.unreachable(request, dialog, out),
                Notice::Stranded { request, host, port, failed } => {
                    let request = ServerId(request);
                    out.push(Output::Event(Event::Stranded { request, host, port, failed }));
                }
            }
        }
    }

    fn answer_statelessly(
        &self,
        message: &Message<'_>,
        source: Flow,
        force_rport: bool,
        answer: &Answer<'_>,
        out: &mut Vec<Output>,
    ) {
        self.write_statelessly(message, (source, force_rport, false), answer, out);
    }

    fn write_statelessly(
        &self,
        message: &Message<'_>,
        (source, force_rport, is_proved): (Flow, bool, bool),
        answer: &Answer<'_>,
        out: &mut Vec<Output>,
    ) {
        let Some(status) = Status::new(answer.status) else { return };
        if message.method() == Method::Ack {
            return;
        }
        let tag = self.tag_for(message);
        let reply = Reply {
            to_tag: Some(tag.as_bytes()).filter(|_| status != Status::TRYING),
            source: Some(source.remote),
            phrase: (!answer.reason.is_empty()).then_some(answer.reason.as_bytes()),
            force_rport,
        };
        let mut bytes = Vec::new();
        let _unfinished = MessageWriter::response(&mut bytes, message, status, &reply);
        let head = bytes.len();
        self.finish_response(answer, None, &mut bytes);
        if !is_proved && !source.protocol.is_reliable() {
            let around = datagram_overhead(source.remote.ip());
            let most = answer_octets(message.as_bytes().len() + around).saturating_sub(around);
            if bytes.len() > most && !shorten(&mut bytes, (head, status), answer, most) {
                return;
            }
        }
        let flow = reply_flow(message, source, force_rport);
        out.push(Output::Send(Send { flow, bytes: Arc::from(bytes) }));
    }

    /// Everything after the head of a response.
    fn finish_response(&self, answer: &Answer<'_>, contact: Option<&[u8]>, bytes: &mut Vec<u8>) {
        if !self.config.product.is_empty() {
            build::header(bytes, "Server", self.config.product.as_bytes());
        }
        if let Some(contact) = contact {
            build::header(bytes, "Contact", contact);
            for (name, value) in [("Allow", &self.config.allow), ("Supported", &self.config.supported)] {
                let own = answer.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
                let is_said = answer.status >= 200 || name == "Allow";
                if is_said && !value.is_empty() && !own {
                    build::header(bytes, name, value.as_bytes());
                }
            }
        }
        for (name, value) in answer.headers {
            build::header(bytes, name, value.as_bytes());
        }
        build::finish(bytes, answer.body.map(|body| (body.content_type, body.bytes)));
    }

    /// Our tag in answers to this request: the same each time it comes, and nobody can guess it.
    fn tag_for(&self, message: &Message<'_>) -> String {
        let digest = self.key.digest(&[
            b"tag",
            message.top_via().and_then(|via| via.branch()).unwrap_or_default(),
            message.from_tag().unwrap_or_default(),
            message.call_id().unwrap_or_default(),
            message
                .header(HeaderName::CSeq)
                .unwrap_or_default()
                .split(|byte| *byte == b' ')
                .next()
                .unwrap_or_default(),
        ]);
        format!("{:016x}", digest as u64)
    }

    fn dialog_key(&self, call_id: &[u8], tag: &[u8]) -> u128 {
        self.key.digest(&[b"dialog", call_id, tag])
    }

    fn find(&self, call_id: &[u8], tag: &[u8]) -> Option<Place> {
        self.by_tag.get(&self.dialog_key(call_id, tag)).copied()
    }
}

/// Whether whoever sends such a request is a device that nobody waits for.
const fn is_patient(method: Method<'_>) -> bool {
    matches!(
        method,
        Method::Register
            | Method::Options
            | Method::Subscribe
            | Method::Notify
            | Method::Publish
            | Method::Other(_)
    )
}

/// Writes a response again with what it cannot be without, until it has at most so many bytes; `false` when that is not
/// enough. `head` is the length of what it takes over from its request.
fn shorten(bytes: &mut Vec<u8>, (head, status): (usize, Status), answer: &Answer<'_>, most: usize) -> bool {
    const NEEDED: [&str; 5] = ["WWW-Authenticate", "Unsupported", "Retry-After", "Min-Expires", "Contact"];
    let needed: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| NEEDED.iter().any(|own| name.eq_ignore_ascii_case(own)))
        .collect();
    // Whoever knows a strong algorithm knows the weaker one, too, which comes last.
    let last = needed.len().saturating_sub(1);
    let taken_over = bytes.get(..head).unwrap_or_default();
    let start = memchr::memchr(b'\n', taken_over).map_or(0, |at| at + 1);
    let kept = taken_over.get(start..).unwrap_or_default().to_vec();
    let (all, weakest) = (needed.as_slice(), needed.get(last..).unwrap_or_default());
    for (headers, is_whole) in [(all, true), (all, false), (weakest, true), (weakest, false)] {
        let phrase = if answer.reason.is_empty() { status.phrase() } else { answer.reason };
        bytes.clear();
        bytes.extend_from_slice(b"SIP/2.0 ");
        bytes.extend_from_slice(&status.digits());
        bytes.push(b' ');
        bytes.extend_from_slice(if is_whole { phrase.as_bytes() } else { b"" });
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&kept);
        headers.iter().for_each(|(name, value)| build::header(bytes, name, value.as_bytes()));
        build::finish(bytes, None);
        let compact = crate::Form { compact: true, ..crate::Form::default() };
        if bytes.len() > most
            && !is_whole
            && let Some(short) = compact.of(bytes)
        {
            *bytes = short;
        }
        if bytes.len() <= most {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
