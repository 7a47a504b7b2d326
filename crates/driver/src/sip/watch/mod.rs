//! Watchers: SUBSCRIBE to extensions (`dialog`, `presence`), mailboxes (`message-summary`) and the keys of phones
//! (`as-feature-event`), and what each is told.
//!
//! The stack owns dialogs and expiry; here is who may watch what, and the documents. Whoever watches one thing in one
//! form shares its document: a change is written once, however many lamps it lights.

pub(crate) mod body;
mod features;
mod kept;
mod list;
mod mailboxes;
mod pickup;

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use ::sip::header::Event as EventHeader;
use ::sip::stack::{Accept, Answer, Body, Flow, Incoming, Refused, ServerId, SubscriptionId};
use ::sip::subscription::{Reason, Standing};
use ::sip::{HeaderName, Message, OwnedMessage};
use base::Instant;
use call::{Core, DeviceState, Level, Watched};

use super::config::Endpoint;
use super::inbound::{Known, exten_of};
use super::{SipDriver, identity};
use body::{Document, Kind};
pub use kept::{KeptSubscription, SubscriptionChange};

/// Subscriptions of one endpoint: a switchboard with every extension of a large site on its panel.
pub const PER_ENDPOINT_MAX: usize = 4096;
/// Seconds that a subscription lasts when its watcher does not say.
const DEFAULT_SECONDS: u32 = 3600;
/// Longest subscription, seconds: a watcher that is gone is noticed within a day even when nothing changes.
const SECONDS_MAX: u32 = 24 * 3600;
/// Watchers that are told in one turn: as many as messages are read in one. With thousands on one lamp, calls get their
/// turns in between, and answers are read as fast as they come, before they overflow the socket's buffer.
const TOLD_A_TURN: usize = 64;
/// How long watchers wait for more room among the transactions; each of those rests five seconds (RFC 3261 timer K).
const HELD_FOR: Duration = Duration::from_millis(100);
/// Packages that watchers may name.
pub(crate) const PACKAGES: &str = "dialog, presence, message-summary, as-feature-event, refer";

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Topic {
    Extension(Rc<Watched>),
    /// Mailboxes, told together, and the account by which they are heard.
    Mailboxes {
        boxes: Rc<[String]>,
        account: Rc<str>,
    },
    /// What is set of a number by keys.
    Features(Rc<str>),
}

struct Watcher {
    endpoint: Rc<Endpoint>,
    /// One thing, or what a list is made of.
    items: Vec<Item>,
    /// URI that is watched, as the watcher wrote it.
    entity: Rc<str>,
    /// The watcher's own URI, as documents about presence name it.
    contact: Rc<str>,
    /// Set when it watches a list.
    list: Option<list::Listed>,
    /// What it knows of the keys that it watches.
    told: features::Told,
    /// How it began, when it is to outlive a restart.
    began: Option<kept::Beginning>,
}

/// One thing that is watched.
struct Item {
    topic: Topic,
    kind: Kind,
    /// URI that its documents speak of.
    entity: Rc<str>,
    /// What a list calls it.
    name: Rc<str>,
    /// Number of its next dialog-info document.
    version: u32,
    /// It has changed since it was told.
    changed: bool,
    /// It is not there any more.
    gone: bool,
}

impl Item {
    fn new(topic: Topic, kind: Kind, entity: Rc<str>, name: &str) -> Self {
        Self { topic, kind, entity, name: name.into(), version: 0, changed: false, gone: false }
    }
}

/// A document with its form and the URI that it speaks of.
type Written = ((Kind, Rc<str>), Rc<Document>);
/// The status that refuses a SUBSCRIBE, and a header that says what would do.
type Refusal = (u16, Option<(&'static str, String)>);

#[derive(Default)]
struct Subject {
    watchers: BTreeSet<SubscriptionId>,
    /// What its state looks like, as far as anybody has asked since it changed.
    documents: Vec<Written>,
}

/// A change that is being told, a part of its watchers each turn.
struct Telling {
    topic: Topic,
    /// What is watched is not there any more.
    end: Option<Reason>,
    left: std::vec::IntoIter<SubscriptionId>,
}

/// Whose watchers are to be looked at again: endpoints are others than before.
enum Review {
    All,
    Of(BTreeSet<Rc<str>>),
}

impl Default for Review {
    fn default() -> Self {
        Self::Of(BTreeSet::new())
    }
}

/// All watchers.
#[derive(Default)]
pub(crate) struct Watchers {
    all: HashMap<SubscriptionId, Watcher>,
    subjects: HashMap<Topic, Subject>,
    by_endpoint: HashMap<Rc<str>, BTreeSet<SubscriptionId>>,
    told_unasked: mailboxes::ToldUnasked,
    /// When changes in lists are told that are gathered for a while.
    batches: BTreeSet<(Instant, SubscriptionId)>,
    review: Review,
    telling: VecDeque<Telling>,
    /// Until when that waits for room.
    held_until: Option<Instant>,
    /// Documents written since the start.
    written: u64,
    keeping: kept::Keeping,
}

/// One subscription, for `pjsip show subscriptions inbound`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    /// Endpoint that watches.
    pub endpoint: String,
    /// What it watches: extension or mailboxes.
    pub resource: String,
    /// Package.
    pub event: &'static str,
    /// Context of the extension.
    pub context: String,
    /// Call-ID.
    pub call_id: String,
    /// Where it is told.
    pub remote: String,
    /// Seconds it still lasts.
    pub expires: u32,
}

/// What a SUBSCRIBE asks for.
struct Wanted {
    items: Vec<Item>,
    entity: Rc<str>,
    contact: Rc<str>,
    list: Option<list::Listed>,
    /// Names in the list that mean nothing.
    missing: Vec<String>,
    /// What it sets.
    change: Option<::sip::feature::Change>,
    event: String,
    seconds: u32,
}

impl Watchers {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.telling.is_empty() {
            return Some(self.held_until.unwrap_or(Instant::ZERO));
        }
        self.batches.first().map(|(at, _)| *at)
    }
}

impl SipDriver {
    /// A SUBSCRIBE outside dialogs.
    pub(crate) fn subscribed(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let contact = self.own_contact(incoming.source, &endpoint);
        let wanted = match self.wanted(core, &endpoint, &incoming.message.view(), &contact) {
            Ok(wanted) => wanted,
            Err((status, header)) => {
                let headers: Vec<(&str, &str)> = header.iter().map(|(n, v)| (*n, v.as_str())).collect();
                return self.refuse(&incoming, &Answer::new(status).headers(&headers));
            }
        };
        if self.watchers.by_endpoint.get(&endpoint.name).is_some_and(|own| own.len() >= PER_ENDPOINT_MAX) {
            let line = format!(
                "endpoint '{}' has {PER_ENDPOINT_MAX} subscriptions, no more are taken",
                endpoint.name
            );
            core.log(Level::Warning, "res_pjsip_pubsub", &line);
            return self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", "60")]));
        }
        for name in &wanted.missing {
            let (entity, own) = (&wanted.entity, &endpoint.name);
            let line = format!("list '{entity}' for '{own}': nothing of the name '{name}' can be watched");
            core.log(Level::Warning, "res_pjsip_pubsub", &line);
        }
        let accept = Accept { contact: &contact, symmetric: endpoint.rewrite_contact, unproved: false };
        let (event, seconds) = (wanted.event.as_str(), wanted.seconds);
        // The first NOTIFY is asked for while the watcher is not written down yet; it follows below.
        let mut out = Vec::new();
        let terms = (&accept, event, seconds, wanted.list.is_some());
        let made = self.stack.accept_subscribe(&incoming, terms, core.now, &mut out);
        let subscription = match made {
            Ok(subscription) => subscription,
            Err(Refused::Gone) => return,
            Err(_) => return self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", "60")])),
        };
        // A restart knows the ways of the configuration, not those that were made of them.
        let source = super::ways::outward(incoming.source);
        let change = wanted.change.clone();
        self.watch(core, subscription, (endpoint, wanted), (&incoming.message, source), 0);
        self.feature_asked(core, subscription, change.as_ref());
        self.carry_out(core, &mut out);
    }
    /// Writes down who watches what; the documents of its items begin with this number.
    fn watch(
        &mut self,
        core: &mut Core,
        subscription: SubscriptionId,
        (endpoint, wanted): (Rc<Endpoint>, Wanted),
        (message, source): (&OwnedMessage, Flow),
        version: u32,
    ) {
        let Wanted { mut items, entity, contact, list, .. } = wanted;
        self.watchers.by_endpoint.entry(endpoint.name.clone()).or_default().insert(subscription);
        for Item { topic, version: own, .. } in &mut items {
            *own = version;
            self.watchers.subjects.entry(topic.clone()).or_default().watchers.insert(subscription);
            if let Topic::Extension(extension) = topic {
                core.board.follow(extension);
            }
        }
        let began = self.beginning(subscription, message, source);
        self.watchers.keeping.touch(subscription, began.as_ref());
        let told = Default::default();
        self.watchers
            .all
            .insert(subscription, Watcher { endpoint, items, entity, contact, list, told, began });
    }

    /// What may be watched, or the status and header that refuse it.
    fn wanted(
        &self,
        core: &Core,
        endpoint: &Endpoint,
        message: &Message<'_>,
        own_contact: &str,
    ) -> Result<Wanted, Refusal> {
        if !endpoint.watching.allow {
            return Err((603, None));
        }
        let no_such_package = || (489, Some(("Allow-Events", PACKAGES.to_owned())));
        let event =
            message.header(HeaderName::Event).and_then(EventHeader::parse).ok_or_else(no_such_package)?;
        let accepts = |kind: Kind| message.accepts(kind.content_type()).unwrap_or(true);
        let early = endpoint.watching.early_ringing;
        let kinds: &[Kind] = match event.package {
            b"dialog" => &[Kind::DialogInfo { early, pickup: !endpoint.pickup.pickup.is_empty() }],
            b"presence" => {
                &[Kind::Pidf { early }, Kind::Xpidf { early, cpim: false }, Kind::Xpidf { early, cpim: true }]
            }
            b"message-summary" => &[Kind::Summary],
            b"as-feature-event" => &[Kind::Features],
            _ => return Err(no_such_package()),
        };
        // What it names first it likes best; where it names a range, or nothing, the package's own first.
        let named = |range: &[u8]| {
            let range = range.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            kinds.iter().find(|kind| range.eq_ignore_ascii_case(kind.content_type().as_bytes()))
        };
        let first = message.values(HeaderName::Accept).find_map(named);
        let kind = first.or_else(|| kinds.iter().find(|kind| accepts(**kind)));
        let kind = *kind.ok_or_else(no_such_package)?;
        let exten = exten_of(message, self.config.ignore_user_options);
        let entity: Rc<str> =
            message.to().map(|to| identity::text(to.uri.as_bytes())).unwrap_or_default().into();
        let context = [&endpoint.watching.context, &endpoint.context];
        let context = context.into_iter().find(|context| !context.is_empty()).cloned().unwrap_or_default();
        let list = self.list_of(&exten, &identity::text(event.package));
        let mut missing = Vec::new();
        let (items, list) = match list.filter(|_| list::is_understood(message)) {
            Some(list) => {
                let made = self.made_of(core, endpoint, (&exten, &list), (kind, &context, own_contact));
                missing = made.missing;
                (made.items, Some(made.list))
            }
            None => {
                let topic = match kind {
                    Kind::Summary => match self.mailboxes_topic(endpoint, &exten, message) {
                        Some(Topic::Mailboxes { boxes, .. }) if Self::is_told_unasked(endpoint, &boxes) => {
                            return Err((500, None));
                        }
                        topic => topic,
                    },
                    Kind::Features => Some(Topic::Features(features::number_of(endpoint))),
                    _ => (core.hinted)(core, &context, &exten)
                        .then(|| Topic::Extension(Rc::new(Watched { context, exten: exten.clone() }))),
                };
                (
                    topic.map(|topic| Item::new(topic, kind, entity.clone(), &exten)).into_iter().collect(),
                    None,
                )
            }
        };
        if items.is_empty() {
            // What is a list only is nothing to who does not know lists.
            let package = identity::text(event.package);
            let named = self.config.lists.get(exten.as_str());
            return Err(match (&list, named) {
                // A list of which nothing is there.
                (Some(_), _) => (500, None),
                (None, Some(named)) if named.event != package => no_such_package(),
                (None, _) => (404, None),
            });
        }
        let change = if kind == Kind::Features { features::change_in(message)? } else { None };
        let seconds = granted(endpoint, message)?;
        let package = identity::text(event.package);
        let event = match event.id() {
            Some(id) => format!("{package};id={}", identity::text(id)),
            None => package,
        };
        let contact = message.from().map(|from| identity::text(from.uri.as_bytes())).unwrap_or_default();
        let contact = super::outbound::to_uri(&contact).into();
        Ok(Wanted { items, entity, contact, list, missing, change, event, seconds })
    }

    /// A SUBSCRIBE inside a subscription: it goes on, or ends.
    pub(crate) fn resubscribed(
        &mut self,
        core: &mut Core,
        subscription: SubscriptionId,
        (request, source): (ServerId, Flow),
        message: &OwnedMessage,
    ) {
        let Some(endpoint) = self.watchers.all.get(&subscription).map(|watcher| watcher.endpoint.clone())
        else {
            return;
        };
        let view = message.view();
        // Who has proved itself at the beginning and is still there need not do so again, as in calls; but who sets
        // something does.
        let is_plain = view.body().is_empty() && self.stack.is_from_watcher(subscription, source);
        let challenge = match is_plain {
            true => None,
            false if self.watches_from_elsewhere(core, subscription, &endpoint, source) => {
                Some((481, Vec::new()))
            }
            false => self.challenge_inside(core, &endpoint, &view, source),
        };
        let granted = match challenge {
            Some(challenge) => Err(challenge),
            None => self
                .feature_change(subscription, message)
                .and_then(|change| Ok((granted(&endpoint, &view)?, change)))
                .map_err(|(status, header)| (status, header.into_iter().collect::<Vec<_>>())),
        };
        let list = self.watchers.all.get_mut(&subscription).and_then(|watcher| watcher.list.as_mut());
        if let (Some(list), Ok(_)) = (list, &granted) {
            list.tells_all = true;
        }
        if let (Some(watcher), Ok((_, change))) = (self.watchers.all.get(&subscription), &granted) {
            self.watchers.keeping.touch(subscription, watcher.began.as_ref());
            self.feature_asked(core, subscription, change.as_ref());
        }
        let done = self.with_stack(core, |stack, now, out| match &granted {
            Ok((seconds, _)) => stack.refresh(subscription, request, (&view, source), *seconds, now, out),
            Err((status, header)) => {
                let headers: Vec<(&str, &str)> = header.iter().map(|(n, v)| (*n, v.as_str())).collect();
                stack.respond(request, &Answer::new(*status).headers(&headers), now, out)
            }
        });
        // The stack answers for a subscription that went meanwhile.
        done.ok();
    }

    /// A NOTIFY is to leave: with the state as it is.
    pub(crate) fn notify_due(&mut self, core: &mut Core, subscription: SubscriptionId, standing: Standing) {
        let Some(watcher) = self.watchers.all.get(&subscription) else { return };
        if watcher.list.is_some() {
            return self.list_due(core, subscription, standing);
        }
        let Some(item) = watcher.items.first() else { return };
        let (topic, kind, entity) = (item.topic.clone(), item.kind, item.entity.clone());
        if let Topic::Features(number) = &topic {
            return self.features_due(core, subscription, (number, standing));
        }
        let Some(document) = self.document(core, &topic, kind, &entity) else {
            // The state of an extension comes when its hint has been looked at; the NOTIFY is owed until then, also the only
            // one of a fetch (RFC 6665 §4.4.3).
            if matches!(standing, Standing::Terminated(reason) if reason != Reason::Timeout) {
                self.with_stack(core, |stack, now, out| stack.notify(subscription, &[], None, now, out)).ok();
            }
            return;
        };
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return };
        let Some(item) = watcher.items.first_mut() else { return };
        let unique = u128::from(core.random()) << 64 | u128::from(core.random());
        let watching = body::Watching { version: item.version, contact: &watcher.contact, unique };
        let bytes = document.bytes(&watching);
        item.version = item.version.wrapping_add(1);
        let body = Body { content_type: kind.content_type(), bytes: &bytes };
        self.with_stack(core, |stack, now, out| stack.notify(subscription, &[], Some(body), now, out)).ok();
    }

    /// The document that watchers read as things stand.
    fn document(&mut self, core: &Core, topic: &Topic, kind: Kind, entity: &Rc<str>) -> Option<Rc<Document>> {
        let subject = self.watchers.subjects.get_mut(topic)?;
        let key = (kind, entity.clone());
        if let Some((_, known)) = subject.documents.iter().find(|(known, _)| *known == key) {
            return Some(known.clone());
        }
        let document = match topic {
            Topic::Extension(extension) => {
                let state = core.board.state(extension)?;
                // Nothing else says who rings, and nothing else is looked through for it.
                let rings = matches!(state, DeviceState::Ringing | DeviceState::RingInUse);
                let parties = match kind {
                    Kind::DialogInfo { .. } if rings => ringing_parties(core, extension, entity),
                    _ => body::Parties::default(),
                };
                body::extension(kind, state, &extension.exten, entity, Some(&parties))
            }
            Topic::Mailboxes { boxes, account } => body::summary(mailboxes::sum(core, boxes), account),
            // Each phone is told what it does not know.
            Topic::Features(_) => return None,
        };
        self.watchers.written += 1;
        subject.documents.push((key, document.clone()));
        Some(document)
    }

    /// The subscription is gone.
    pub(crate) fn unsubscribed(&mut self, core: &mut Core, subscription: SubscriptionId) {
        let Some(watcher) = self.watchers.all.remove(&subscription) else { return };
        let name = &watcher.endpoint.name;
        if let Some(own) = self.watchers.by_endpoint.get_mut(name) {
            own.remove(&subscription);
            if own.is_empty() {
                self.watchers.by_endpoint.remove(name);
            }
        }
        for Item { topic, .. } in &watcher.items {
            if let Some(subject) = self.watchers.subjects.get_mut(topic) {
                subject.watchers.remove(&subscription);
                if subject.watchers.is_empty() {
                    self.watchers.subjects.remove(topic);
                }
            }
            if let Topic::Extension(extension) = topic {
                core.board.unfollow(extension);
            }
        }
        self.forget_batch(subscription, watcher.list.as_ref());
        self.watchers.keeping.forget(subscription, watcher.began);
    }

    /// Tells watchers what has changed this turn, and transferers how it goes. The shard's owner calls it each turn, after the hints were looked at.
    pub fn tell_watchers(&mut self, core: &mut Core) {
        self.review_watchers(core);
        self.resume_watchers(core);
        self.tell_transferers(core);
        let (extensions, mailboxes) = core.board.take_changed();
        for extension in extensions {
            let gone = core.board.state(&extension).is_none();
            self.topic_changed(&Topic::Extension(extension), gone.then_some(Reason::NoResource));
        }
        if !mailboxes.is_empty() {
            self.mailboxes_changed(core, &mailboxes);
            self.publish_mailboxes(core, &mailboxes);
        }
        for number in core.take_diverted() {
            self.topic_changed(&Topic::Features(number.into()), None);
        }
        self.publications_due(core);
        self.tell_some(core);
    }
    /// Whoever watches this is told from this turn on. Who still waits for word of an earlier change hears of this one alone.
    fn topic_changed(&mut self, topic: &Topic, end: Option<Reason>) {
        let Some(subject) = self.watchers.subjects.get_mut(topic) else { return };
        subject.documents.clear();
        let left: Vec<SubscriptionId> = subject.watchers.iter().copied().collect();
        self.watchers.telling.retain(|telling| telling.topic != *topic);
        self.watchers.telling.push_back(Telling { topic: topic.clone(), end, left: left.into_iter() });
    }
    fn tell_some(&mut self, core: &mut Core) {
        if self.watchers.held_until.is_some_and(|until| until > core.now) {
            return;
        }
        self.watchers.held_until = None;
        for _ in 0..TOLD_A_TURN {
            if !self.stack.has_room_to_tell() {
                self.watchers.held_until = Some(core.now + HELD_FOR);
                return;
            }
            let Some(telling) = self.watchers.telling.front_mut() else { return };
            let (topic, end) = (telling.topic.clone(), telling.end);
            match telling.left.next() {
                Some(subscription) => self.tell_of(core, subscription, &topic, end),
                None => drop(self.watchers.telling.pop_front()),
            }
        }
    }
    fn tell_of(&mut self, core: &mut Core, subscription: SubscriptionId, topic: &Topic, end: Option<Reason>) {
        let is_gone = !self.watchers.all.contains_key(&subscription);
        let is_known = end.is_none() && self.features_known(core, subscription, topic);
        if is_gone || is_known || self.list_changed(core, subscription, topic, end.is_some()) {
            return;
        }
        match (end, self.stack.owed(subscription)) {
            (Some(reason), None) => {
                self.with_stack(core, |stack, now, out| {
                    stack.end_subscription(subscription, reason, now, out)
                });
            }
            (None, None) => self.with_stack(core, |stack, now, out| stack.touch(subscription, now, out)),
            (Some(reason), Some(_)) => {
                let sent = |stack: &mut ::sip::stack::Stack, now, out: &mut _| {
                    stack.end_subscription(subscription, reason, now, out);
                    stack.notify(subscription, &[], None, now, out)
                };
                self.with_stack(core, sent).ok();
            }
            (None, Some(standing)) => self.notify_due(core, subscription, standing),
        }
    }
    /// Watchers whose endpoint is gone or may not watch any more are told so; the others keep what they have.
    fn review_watchers(&mut self, core: &mut Core) {
        let Watchers { all, by_endpoint, review, .. } = &mut self.watchers;
        let reviewed: Vec<SubscriptionId> = match std::mem::take(review) {
            Review::All => all.keys().copied().collect(),
            Review::Of(endpoints) => {
                endpoints.iter().filter_map(|name| by_endpoint.get(name)).flatten().copied().collect()
            }
        };
        let mut ended = Vec::new();
        for subscription in reviewed {
            let Some(watcher) = all.get_mut(&subscription) else { continue };
            match self.config.endpoints.get(&watcher.endpoint.name).filter(|endpoint| endpoint.watching.allow)
            {
                // Another number has keys of its own: the phone subscribes anew and hears of them.
                Some(endpoint) if !features::are_of(&watcher.items, endpoint) => {
                    ended.push((subscription, Reason::Deactivated));
                }
                Some(endpoint) => watcher.endpoint = endpoint.clone(),
                None => ended.push((subscription, Reason::Rejected)),
            }
        }
        ended.sort_unstable_by_key(|(subscription, _)| *subscription);
        for (subscription, reason) in ended {
            self.with_stack(core, |stack, now, out| stack.end_subscription(subscription, reason, now, out));
        }
    }
    /// Every subscription, by endpoint and resource.
    pub fn subscription_rows(&self, core: &Core) -> Vec<SubscriptionRow> {
        let row = |(id, watcher): (&SubscriptionId, &Watcher)| {
            let (call_id, flow) = self.stack.subscription_names(*id)?;
            let first = watcher.items.first()?;
            let (resource, context) = match (&first.topic, &watcher.list) {
                (_, Some(_)) => (watcher.entity.to_string(), String::new()),
                (Topic::Extension(extension), None) => (extension.exten.clone(), extension.context.clone()),
                (Topic::Mailboxes { boxes, .. }, None) => (boxes.join(","), String::new()),
                (Topic::Features(number), None) => (number.to_string(), String::new()),
            };
            let event = match first.kind {
                Kind::DialogInfo { .. } => "dialog",
                Kind::Pidf { .. } | Kind::Xpidf { .. } => "presence",
                Kind::Summary => "message-summary",
                Kind::Features => ::sip::feature::PACKAGE,
            };
            Some(SubscriptionRow {
                endpoint: watcher.endpoint.name.to_string(),
                resource,
                event,
                context,
                call_id: identity::text(call_id),
                remote: flow.remote.to_string(),
                expires: self.stack.subscription_seconds(*id, core.now),
            })
        };
        let mut rows: Vec<SubscriptionRow> = self.watchers.all.iter().filter_map(row).collect();
        rows.sort_by(|a, b| {
            (&a.endpoint, &a.resource, &a.call_id).cmp(&(&b.endpoint, &b.resource, &b.call_id))
        });
        rows
    }
    /// Subscriptions to each extension that is watched: context, extension and how many.
    pub fn watched_extensions(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.watchers.subjects.iter().filter_map(|(topic, subject)| match topic {
            Topic::Extension(of) => Some((of.context.as_str(), of.exten.as_str(), subject.watchers.len())),
            Topic::Mailboxes { .. } | Topic::Features(_) => None,
        })
    }
    /// Documents written since the start: however many watchers, one for each change and form.
    #[doc(hidden)]
    pub fn documents_written(&self) -> u64 {
        self.watchers.written
    }
}

/// Who calls an extension and who is called there, as the channel that rings has them.
fn ringing_parties(core: &Core, extension: &Rc<Watched>, entity: &str) -> body::Parties {
    let host = entity.rsplit_once('@').map_or("", |(_, host)| host);
    let Some(channel) = pickup::ringing_at(core, extension).and_then(|id| core.get(id)) else {
        return body::Parties::default();
    };
    let named = |party: &call::PartyId| match party.number_presentation.is_hidden() {
        _ if party.number().is_empty() => None,
        true => Some(("anonymous".to_owned(), "sip:anonymous@anonymous.invalid".to_owned())),
        false => {
            let uri = identity::name_addr("", party.number(), host, false);
            Some((party.name().to_owned(), uri.trim_matches(['<', '>']).to_owned()))
        }
    };
    body::Parties { remote: named(&channel.connected), local: named(&channel.caller) }
}

/// Seconds that a watcher gets, or the status that tells him to ask for more (RFC 6665 §4.2.1.1).
fn granted(endpoint: &Endpoint, message: &Message<'_>) -> Result<u32, Refusal> {
    let asked = message.expires().unwrap_or(DEFAULT_SECONDS);
    let least = endpoint.watching.seconds_min;
    if asked != 0 && asked < least {
        return Err((423, Some(("Min-Expires", least.to_string()))));
    }
    Ok(asked.min(SECONDS_MAX.max(least)))
}
