//! Subscriptions of watchers: their dialogs, found like calls, and the NOTIFYs that leave in them.

use super::connections::Connections;
use super::uac::{finish_request, write_request};
use super::{Accept, Answer, Body, Event, Header, Incoming, Output, Refused, ServerId, Stack};
use crate::dialog::{Dialog, Order};
use crate::header::Method;
use crate::layer::{
    ClientMethod, ConnectionId, Deadlines, DigestMap, Flow, Owner, Place, Purpose, Scheduled, Slab,
    TransactionKey,
};
use crate::message::{Message, Status};
use crate::subscription::{self, Input, Notifier, Reason, Standing};
use base::Instant;
use std::collections::HashMap;

/// Most subscriptions: a hundred lamps on each of the phones of a large site.
pub const SUBSCRIPTIONS_MAX: usize = 128 * 1024;

/// A subscription: the driver's handle of one watcher of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub(crate) Place);

/// Our side of a subscription's dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionMark {
    /// Our tag.
    pub tag: Box<str>,
    /// CSeq number of our last NOTIFY.
    pub cseq: u32,
}

/// One subscription.
#[derive(Debug)]
struct Watch {
    dialog: Dialog,
    machine: Notifier,
    /// What is watched is a list (RFC 4662 §4.1).
    is_list: bool,
    /// `Event` as the watcher gave it, which each NOTIFY repeats.
    event: Box<str>,
    /// The NOTIFY that has no final response.
    out: Option<Place>,
    /// What the NOTIFY that the driver has been asked for is to say.
    owed: Option<Standing>,
    scheduled: Scheduled,
    connection: Option<ConnectionId>,
}

/// All subscriptions of a stack.
#[derive(Debug)]
pub(super) struct Watches {
    all: Slab<Watch>,
    by_tag: DigestMap<Place>,
    by_connection: Connections,
    /// Our NOTIFYs and whose they are.
    notifies: HashMap<Place, Place>,
    deadlines: Deadlines<Place>,
    scratch: Vec<subscription::Output>,
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            all: Slab::new(SUBSCRIPTIONS_MAX),
            by_tag: DigestMap::default(),
            by_connection: Connections::default(),
            notifies: HashMap::new(),
            deadlines: Deadlines::default(),
            scratch: Vec::new(),
        }
    }
}

impl Watches {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }
    /// The watchers that were reached by this connection are reached as their Contact says.
    pub(super) fn connection_closed(&mut self, connection: ConnectionId) {
        for place in self.by_connection.of(connection) {
            if let Some(watch) = self.all.get_mut(place) {
                watch.dialog.flow.connection = None;
            }
            self.follow(place);
        }
    }
    fn follow(&mut self, place: Place) {
        let Some(watch) = self.all.get_mut(place) else { return };
        self.by_connection.follow(place, &mut watch.connection, watch.dialog.flow.connection);
    }
}

impl Stack {
    /// Accepts a SUBSCRIBE for so many seconds: answers 200 and asks for the first NOTIFY by [`Event::NotifyDue`].
    /// `event` is what each NOTIFY says of its package; `is_list` tells the watcher that it is a list.
    ///
    /// A retransmission of a SUBSCRIBE that was accepted before is answered by its transaction and never comes here.
    pub fn accept_subscribe(
        &mut self,
        incoming: &Incoming,
        (accept, event, seconds, is_list): (&Accept<'_>, &str, u32, bool),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<SubscriptionId, Refused> {
        let message = incoming.message.view();
        let tag = self.tag_for(&message);
        let (source, force_rport) = (incoming.source, incoming.force_rport);
        let way = (accept.contact, source, accept.symmetric, force_rport);
        let dialog = Dialog::answering(&message, &tag, way);
        let key = self.dialog_key(&dialog.call_id, tag.as_bytes());
        if self.watches.by_tag.contains_key(&key) {
            return Err(Refused::Gone);
        }
        if self.watches.all.room() == 0 {
            return Err(Refused::Full);
        }
        let request = self.accept(incoming, now)?;
        let mut steps = Vec::new();
        let machine = Notifier::start(seconds, now, &mut steps);
        let place = self.insert_watch(key, (dialog, machine), (event, is_list))?;
        self.answer_subscribe(request, (accept.contact, is_list), seconds, now, out)?;
        self.step(place, steps, out);
        Ok(SubscriptionId(place))
    }

    /// Goes on with a subscription that another process has accepted, for so many seconds: nothing is answered, the state
    /// is told as it is now.
    pub fn resume_subscribe(
        &mut self,
        (message, source): (&Message<'_>, Flow),
        mark: &SubscriptionMark,
        (accept, event, seconds, is_list): (&Accept<'_>, &str, u32, bool),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<SubscriptionId, Refused> {
        let way = (accept.contact, source, accept.symmetric, true);
        let mut dialog = Dialog::answering(message, &mark.tag, way);
        dialog.skip_cseq(mark.cseq);
        let key = self.dialog_key(&dialog.call_id, mark.tag.as_bytes());
        if self.watches.by_tag.contains_key(&key) {
            return Err(Refused::Gone);
        }
        let mut steps = Vec::new();
        let machine = Notifier::start(seconds, now, &mut steps);
        let place = self.insert_watch(key, (dialog, machine), (event, is_list))?;
        self.step(place, steps, out);
        Ok(SubscriptionId(place))
    }

    fn insert_watch(
        &mut self,
        key: u128,
        (dialog, machine): (Dialog, Notifier),
        (event, is_list): (&str, bool),
    ) -> Result<Place, Refused> {
        let watch = Watch {
            dialog,
            machine,
            is_list,
            event: event.into(),
            out: None,
            owed: None,
            scheduled: Scheduled::default(),
            connection: None,
        };
        let place = self.watches.all.insert_with(|_| watch).ok_or(Refused::Full)?;
        self.watches.by_tag.insert(key, place);
        self.watches.follow(place);
        Ok(place)
    }

    /// Answers [`Event::Resubscribe`] with 200: the subscription lasts so many seconds from here, 0 ends it. The state is
    /// told once more, to where `message` says that the watcher is.
    pub fn refresh(
        &mut self,
        subscription: SubscriptionId,
        request: ServerId,
        (message, source): (&Message<'_>, Flow),
        seconds: u32,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let watch = self.watches.all.get_mut(subscription.0).ok_or(Refused::Gone)?;
        watch.dialog.ordered(message);
        watch.dialog.prove(source);
        watch.dialog.arrived(source);
        watch.dialog.refresh_target(message);
        self.watches.follow(subscription.0);
        let watch = self.watches.all.get(subscription.0).ok_or(Refused::Gone)?;
        let (contact, is_list) = (String::from_utf8_lossy(&watch.dialog.contact).into_owned(), watch.is_list);
        self.answer_subscribe(request, (&contact, is_list), seconds, now, out)?;
        self.turn_watch(subscription.0, Input::Subscribed(seconds), now, out);
        Ok(())
    }

    /// Whether a watcher was known to be where this message comes from.
    pub fn is_from_watcher(&self, subscription: SubscriptionId, source: Flow) -> bool {
        self.watches.all.get(subscription.0).is_some_and(|watch| watch.dialog.is_from_peer(source))
    }

    /// What is watched has changed: [`Event::NotifyDue`] follows, now or when the watcher has answered the last NOTIFY.
    pub fn touch(&mut self, subscription: SubscriptionId, now: Instant, out: &mut Vec<Output>) {
        self.turn_watch(subscription.0, Input::Changed, now, out);
    }

    /// Ends a subscription: [`Event::NotifyDue`] follows for its last NOTIFY.
    pub fn end_subscription(
        &mut self,
        subscription: SubscriptionId,
        reason: Reason,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        self.turn_watch(subscription.0, Input::End(reason), now, out);
    }

    /// Sends the NOTIFY that [`Event::NotifyDue`] asked for.
    pub fn notify(
        &mut self,
        subscription: SubscriptionId,
        headers: &[Header<'_>],
        body: Option<Body<'_>>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let place = subscription.0;
        let watch = self.watches.all.get_mut(place).ok_or(Refused::Gone)?;
        let standing = watch.owed.take().ok_or(Refused::WrongState)?;
        let (flow, cseq) = (watch.dialog.next_hop(), watch.dialog.next_cseq());
        let secret = self.random.next();
        let sent_by = self.via_host(flow).to_owned();
        let watch = self.watches.all.get(place).ok_or(Refused::Gone)?;
        let standing = standing.to_string();
        let mut all: Vec<Header<'_>> = vec![("Event", &watch.event), ("Subscription-State", &standing)];
        if !self.config.allow_events.is_empty() {
            all.push(("Allow-Events", &self.config.allow_events));
        }
        all.extend_from_slice(headers);
        let (config, dialog) = (&self.config, &watch.dialog);
        let write = |branch: &str, bytes: &mut Vec<u8>| {
            write_request(dialog, Method::Notify, (&sent_by, branch, cseq, flow), config, bytes);
            finish_request(config, ClientMethod::Other, Some(&dialog.contact), &all, body, bytes);
        };
        let owner = Owner { dialog: None, purpose: Purpose::Notify };
        let started = self.layer.start_client((ClientMethod::Other, owner, flow, secret), write, now, out);
        match self.started(started, now, out) {
            Ok(client) => {
                if let Some(watch) = self.watches.all.get_mut(place) {
                    watch.out = Some(client);
                }
                self.watches.notifies.insert(client, place);
            }
            // No room for a transaction: as if it had been lost and refused for now.
            Err(_) => self.turn_watch(place, Input::Answered(503), now, out),
        }
        Ok(())
    }

    /// Forgets a subscription without a word to its watcher. For a driver that caught a panic.
    pub fn drop_subscription(&mut self, subscription: SubscriptionId) {
        self.forget_watch(subscription.0, &mut Vec::new());
    }

    /// Whether there is room for NOTIFYs of changes: the other half of the transactions that begin here is kept for calls.
    pub fn has_room_to_tell(&self) -> bool {
        self.layer.len().0 < self.config.transactions_max / 2
    }

    /// What the NOTIFY says that [`Event::NotifyDue`] asked for and that has not been sent.
    pub fn owed(&self, subscription: SubscriptionId) -> Option<Standing> {
        self.watches.all.get(subscription.0)?.owed
    }

    /// Seconds that a subscription still lasts.
    pub fn subscription_seconds(&self, subscription: SubscriptionId, now: Instant) -> u32 {
        self.watches.all.get(subscription.0).map_or(0, |watch| watch.machine.seconds_left(now))
    }
    /// What another process has to know to go on with a subscription.
    pub fn subscription_mark(&self, subscription: SubscriptionId) -> Option<SubscriptionMark> {
        let dialog = &self.watches.all.get(subscription.0)?.dialog;
        Some(SubscriptionMark { tag: dialog.local_tag.clone(), cseq: dialog.last_cseq() })
    }
    /// Call-ID of a subscription and the way to its watcher.
    pub fn subscription_names(&self, subscription: SubscriptionId) -> Option<(&[u8], Flow)> {
        self.watches.all.get(subscription.0).map(|watch| (&*watch.dialog.call_id, watch.dialog.next_hop()))
    }

    fn answer_subscribe(
        &mut self,
        request: ServerId,
        (contact, is_list): (&str, bool),
        seconds: u32,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let expires = seconds.to_string();
        let headers = [("Expires", expires.as_str()), ("Require", "eventlist")];
        let count = if is_list { headers.len() } else { headers.len() - 1 };
        let answer = Answer::new(200).headers(headers.get(..count).unwrap_or_default());
        self.respond_with(request.0, Status::OK, &answer, Some(contact.as_bytes()), now, out).map(drop)
    }

    /// A SUBSCRIBE with a To tag: whether it belongs to a subscription.
    pub(super) fn receive_resubscribe(
        &mut self,
        tag: &[u8],
        message: &Message<'_>,
        source: Flow,
        key: TransactionKey,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> bool {
        let dialog_key = self.dialog_key(message.call_id().unwrap_or_default(), tag);
        let Some(&place) = self.watches.by_tag.get(&dialog_key) else { return false };
        let Some(watch) = self.watches.all.get_mut(place) else { return false };
        let force_rport = watch.dialog.force_rport;
        let refusal = match watch.dialog.order_of(message) {
            Order::Stranger => return false,
            Order::Old => Some(500), // RFC 3261 §12.2.2
            Order::Next if message.method() != Method::Subscribe => Some(405),
            Order::Next => None,
        };
        if let Some(status) = refusal {
            let allow = [("Allow", "SUBSCRIBE")];
            let answer = Answer::new(status);
            let answer = if status == 405 { answer.headers(&allow) } else { answer };
            self.refuse_inside(message, source, (key, force_rport), &answer, now, out);
            return true;
        }
        // Who sends it has still to prove himself: nothing is learned from it yet.
        match self.start_server(message, source, force_rport, key, None, now) {
            Ok(request) => out.push(Output::Event(Event::Resubscribe {
                subscription: SubscriptionId(place),
                request: ServerId(request),
                source,
                message: message.into_owned(),
            })),
            Err(_) => self.answer_statelessly(message, source, force_rport, &Answer::new(503), out),
        }
        true
    }

    pub(super) fn notify_answered(
        &mut self,
        client: Place,
        answer: Option<(&Message<'_>, Flow)>,
        status: u16,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(place) = self.watches.notifies.get(&client).copied() else { return };
        if status >= 200 {
            self.watches.notifies.remove(&client);
        }
        let Some(watch) = self.watches.all.get_mut(place).filter(|watch| watch.out == Some(client)) else {
            return;
        };
        if status >= 200 {
            watch.out = None;
        }
        // RFC 6665 §4.4.1: a 2xx to NOTIFY refreshes the target as one to any target refresh request does.
        if let Some((message, source)) = answer.filter(|_| (200..300).contains(&status)) {
            watch.dialog.arrived(source);
            watch.dialog.refresh_target(message);
            self.watches.follow(place);
        }
        self.turn_watch(place, Input::Answered(status), now, out);
    }

    pub(super) fn notify_unanswered(&mut self, client: Place, now: Instant, out: &mut Vec<Output>) {
        let Some(place) = self.watches.notifies.remove(&client) else { return };
        if self.watches.all.get(place).is_some_and(|watch| watch.out == Some(client)) {
            self.turn_watch(place, Input::Unanswered, now, out);
        }
    }

    pub(super) fn watches_due(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some((at, place)) = self.watches.deadlines.pop_due(now) {
            if let Some(watch) = self.watches.all.get_mut(place) {
                watch.scheduled.fired(at);
                self.turn_watch(place, Input::Timeout, now, out);
            }
        }
    }

    fn turn_watch(&mut self, place: Place, input: Input, now: Instant, out: &mut Vec<Output>) {
        let mut steps = core::mem::take(&mut self.watches.scratch);
        if let Some(watch) = self.watches.all.get_mut(place) {
            watch.machine.handle(input, now, &mut steps);
        }
        let steps = self.step(place, steps, out);
        self.watches.scratch = steps;
    }

    fn step(
        &mut self,
        place: Place,
        mut steps: Vec<subscription::Output>,
        out: &mut Vec<Output>,
    ) -> Vec<subscription::Output> {
        let subscription = SubscriptionId(place);
        for step in steps.drain(..) {
            match step {
                subscription::Output::Notify(standing) => {
                    if let Some(watch) = self.watches.all.get_mut(place) {
                        watch.owed = Some(standing);
                    }
                    out.push(Output::Event(Event::NotifyDue { subscription, standing }));
                }
                subscription::Output::Gone => self.forget_watch(place, out),
            }
        }
        if let Some(watch) = self.watches.all.get_mut(place) {
            let deadline = watch.machine.deadline();
            self.watches.deadlines.schedule(place, &mut watch.scheduled, deadline);
        }
        steps
    }

    fn forget_watch(&mut self, place: Place, out: &mut Vec<Output>) {
        let Some(watch) = self.watches.all.remove(place) else { return };
        self.watches.by_connection.forget(place, watch.connection);
        let key = self.dialog_key(&watch.dialog.call_id, watch.dialog.local_tag.as_bytes());
        self.watches.by_tag.remove(&key);
        out.push(Output::Event(Event::Unsubscribed { subscription: SubscriptionId(place) }));
    }
}
