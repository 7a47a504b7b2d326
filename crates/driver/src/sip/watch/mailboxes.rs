//! Message waiting: who may watch which mailboxes, and who is told without having asked (RFC 3842).

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ::sip::header::Event as EventHeader;
use ::sip::stack::{Answer, Body, Incoming};
use ::sip::{HeaderName, Message, Method};
use call::{Core, Mailbox};

use super::{Review, Topic, Watchers, body};
use crate::sip::config::{Config, Endpoint};
use crate::sip::inbound::Known;
use crate::sip::outside::Request;
use crate::sip::{SipDriver, identity};

/// What is in these mailboxes together; nothing in one of which nobody has said anything.
pub(super) fn sum(core: &Core, boxes: &[String]) -> Mailbox {
    boxes.iter().filter_map(|name| core.mailbox(name)).fold(Mailbox::default(), |sum, one| sum + one)
}

/// Whether a mailbox as the configuration names it is this one, whose context is given.
fn is_same(named: &str, full: &str) -> bool {
    named == full || full.strip_suffix("@default") == Some(named)
}

/// A mailbox with its context.
fn full_name(mailbox: &str) -> String {
    if mailbox.contains('@') { mailbox.to_owned() } else { format!("{mailbox}@default") }
}

impl Watchers {
    /// Takes note of another configuration.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.review = Review::All;
        self.told_unasked.clear();
        for endpoint in config.endpoints.values() {
            self.tell_of(&endpoint.name, endpoint);
        }
    }
    /// Takes note of an endpoint in the place of another, or of none.
    pub(crate) fn learn(&mut self, name: &Rc<str>, old: Option<&Endpoint>, new: Option<&Endpoint>) {
        for mailbox in old.iter().flat_map(|old| &old.watching.mailboxes) {
            let full = full_name(mailbox);
            if let Some(told) = self.told_unasked.get_mut(&full) {
                told.retain(|other| other != name);
                if told.is_empty() {
                    self.told_unasked.remove(&full);
                }
            }
        }
        new.into_iter().for_each(|new| self.tell_of(name, new));
        if let (Review::Of(endpoints), true) = (&mut self.review, self.by_endpoint.contains_key(name)) {
            endpoints.insert(name.clone());
        }
    }
    fn tell_of(&mut self, name: &Rc<str>, endpoint: &Endpoint) {
        for mailbox in &endpoint.watching.mailboxes {
            self.told_unasked.entry(full_name(mailbox)).or_default().push(name.clone());
        }
    }
}

/// Endpoints by the mailboxes that they are told of without asking.
pub(super) type ToldUnasked = HashMap<String, Vec<Rc<str>>>;

impl SipDriver {
    /// Whether an endpoint is told of one of these mailboxes without asking, so that it has nothing to ask for.
    pub(super) fn is_told_unasked(endpoint: &Endpoint, boxes: &[String]) -> bool {
        let told =
            |own: &String| endpoint.watching.mailboxes.iter().any(|told| full_name(told) == full_name(own));
        !endpoint.watching.subscribing_replaces && boxes.iter().any(told)
    }
    /// The mailboxes that a SUBSCRIBE asks for: those of the AOR of that name, with or without the domain that was asked,
    /// whosever it is, or all of the endpoint's AORs'.
    pub(super) fn mailboxes_topic(
        &self,
        endpoint: &Endpoint,
        name: &str,
        message: &Message<'_>,
    ) -> Option<Topic> {
        let own = endpoint.aors.iter().filter_map(|aor| self.config.aors.get(aor));
        let domain = message.request_uri().map(|uri| uri.host.as_bytes().to_vec()).unwrap_or_default();
        let is_own = |name: &str| endpoint.aors.iter().find(|aor| ***aor == *name);
        let named = self.config.find_user(name, &domain, is_own);
        let foreign = named.is_none().then(|| self.config.aors.get(name)).flatten();
        let mut aors: Vec<_> = own.filter(|aor| named.is_none_or(|named| aor.name == *named)).collect();
        if let Some(foreign) = foreign.filter(|aor| !aor.mailboxes.is_empty()) {
            aors = vec![foreign];
        }
        let boxes: Vec<String> = aors.iter().flat_map(|aor| aor.mailboxes.iter().cloned()).collect();
        if boxes.is_empty() {
            return None;
        }
        let voicemail = aors.iter().map(|aor| &aor.voicemail).chain([&endpoint.watching.voicemail]);
        let voicemail = voicemail.into_iter().find(|exten| !exten.is_empty());
        let host = message.to().map(|to| identity::text(to.uri.host.as_bytes())).unwrap_or_default();
        let account = voicemail.map(|exten| account(exten, &host)).unwrap_or_default();
        Some(Topic::Mailboxes { boxes: boxes.into(), account: account.into() })
    }

    /// The mailboxes of an AOR that a list names.
    pub(super) fn mailboxes_of_aor(&self, endpoint: &Endpoint, name: &str, host: &str) -> Option<Topic> {
        let aor = self.config.aors.get(name).filter(|aor| !aor.mailboxes.is_empty())?;
        let voicemail = [&aor.voicemail, &endpoint.watching.voicemail];
        let voicemail = voicemail.into_iter().find(|exten| !exten.is_empty());
        let account = voicemail.map(|exten| account(exten, host)).unwrap_or_default();
        Some(Topic::Mailboxes { boxes: aor.mailboxes.clone().into(), account: account.into() })
    }

    pub(super) fn mailboxes_changed(&mut self, core: &mut Core, changed: &BTreeSet<String>) {
        let touches = |topic: &&Topic| match topic {
            Topic::Mailboxes { boxes, .. } => {
                boxes.iter().any(|own| changed.iter().any(|full| is_same(own, full)))
            }
            Topic::Extension(_) | Topic::Features(_) => false,
        };
        let mut topics: Vec<Topic> = self.watchers.subjects.keys().filter(touches).cloned().collect();
        topics.sort_unstable();
        for topic in topics {
            self.topic_changed(&topic, None);
        }
        let told = changed.iter().filter_map(|full| self.watchers.told_unasked.get(full)).flatten();
        let endpoints: BTreeSet<Rc<str>> = told.cloned().collect();
        for name in endpoints {
            let Some(endpoint) = self.config.endpoints.get(&name).cloned() else { continue };
            for (aor, uri) in self.contacts_of(&endpoint) {
                self.tell_unasked(core, &endpoint, &aor, &uri);
            }
        }
    }
    /// A contact has registered: all those of its endpoint are told what is in its mailboxes, as when that changes.
    pub(crate) fn tell_new_contact(&mut self, core: &mut Core, aor: &str) {
        let name = self.endpoint_of_aor(aor);
        let Some(endpoint) = self.config.endpoints.get(&*name).cloned() else { return };
        if !endpoint.watching.mailboxes.is_empty() {
            for (aor, uri) in self.contacts_of(&endpoint) {
                self.tell_unasked(core, &endpoint, &aor, &uri);
            }
        }
    }
    /// A NOTIFY outside of subscriptions: what a provider says is in a mailbox of ours (`incoming_mwi_mailbox`).
    pub(crate) fn told_of_mailbox(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let view = incoming.message.view();
        let event = view.header(HeaderName::Event).and_then(EventHeader::parse);
        let about_mail = event.is_some_and(|event| event.package.eq_ignore_ascii_case(b"message-summary"));
        let mailbox = &endpoint.watching.incoming;
        if mailbox.is_empty() || !about_mail {
            return self.refuse(&incoming, &Answer::new(501).headers(&[("Allow", crate::sip::ALLOW)]));
        }
        let is_summary =
            view.content_type().is_some_and(|kind| kind.is("application", "simple-message-summary"));
        if !is_summary {
            let accept = [("Accept", "application/simple-message-summary")];
            return self.refuse(&incoming, &Answer::new(415).headers(&accept));
        }
        let Some(messages) = read_summary(view.body()) else {
            return self.refuse(&incoming, &Answer::new(400));
        };
        core.set_mailbox(mailbox, Some(messages));
        self.refuse(&incoming, &Answer::new(200));
    }
    fn tell_unasked(&mut self, core: &mut Core, endpoint: &Rc<Endpoint>, aor: &str, uri: &[u8]) {
        let watching = &endpoint.watching;
        let watches_mail = |subscription| {
            let watcher: Option<&super::Watcher> = self.watchers.all.get(subscription);
            let mut items = watcher.into_iter().flat_map(|watcher| &watcher.items);
            items.any(|item| matches!(item.topic, Topic::Mailboxes { .. }))
        };
        let own = self.watchers.by_endpoint.get(&endpoint.name);
        if watching.subscribing_replaces && own.into_iter().flatten().any(watches_mail) {
            return;
        }
        let groups: Vec<&[String]> = match watching.aggregate {
            true => vec![&watching.mailboxes],
            false => watching.mailboxes.chunks(1).collect(),
        };
        for boxes in groups {
            let Some(route) = self.route_to(core, Some(endpoint), aor, uri) else { return };
            let host = self.own_host(route.flow);
            let account = Some(&watching.voicemail)
                .filter(|exten| !exten.is_empty())
                .map(|exten| account(exten, &host));
            let document = body::summary(sum(core, boxes), &account.unwrap_or_default());
            let bytes = document.bytes(&body::Watching { version: 0, contact: "", unique: 0 });
            let from = self.own_from(endpoint, &watching.from_user, &route);
            let request = Request {
                method: Method::Notify,
                from,
                headers: &[
                    ("Subscription-State", "terminated"),
                    ("Event", "message-summary"),
                    ("Allow-Events", crate::sip::ALLOW_EVENTS),
                ],
                body: Some(Body { content_type: body::Kind::Summary.content_type(), bytes: &bytes }),
            };
            self.send_outside(core, endpoint, route, &request);
        }
    }
}

/// What a message summary says of voice messages (RFC 3842 §5.2); without a count, whether there are any.
fn read_summary(body: &[u8]) -> Option<Mailbox> {
    let text = core::str::from_utf8(body).ok()?;
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.trim().eq_ignore_ascii_case(name).then_some(value.trim())
        })
    };
    let waiting = value("Messages-Waiting")?.eq_ignore_ascii_case("yes");
    let counts = value("Voice-Message").map(|value| value.split('(').next().unwrap_or_default().trim());
    match counts.and_then(|counts| counts.split_once('/')) {
        Some((new, old)) => Some(Mailbox { new: new.trim().parse().ok()?, old: old.trim().parse().ok()? }),
        None => Some(Mailbox { new: u32::from(waiting), old: 0 }),
    }
}

/// The URI by which messages are heard.
fn account(exten: &str, host: &str) -> String {
    match exten.contains('@') {
        true => format!("sip:{exten}"),
        false => format!("sip:{exten}@{host}"),
    }
}
