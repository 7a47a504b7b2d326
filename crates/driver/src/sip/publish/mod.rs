//! PUBLISH (RFC 3903), both ways: what other servers publish here of their devices and mailboxes, and what of ours others
//! are told.
//!
//! Which publication lasts how long is [`sip::publication`]'s to know, when one of ours is sent again [`sip::publisher`]'s.

mod outward;
mod states;

use std::collections::BTreeSet;
use std::rc::Rc;

use ::sip::publication::{
    Cause, Change, Compositor, Package, Publication, PublicationId, Refusal, Rules, Target,
};
use ::sip::stack::{Answer, Incoming};
use ::sip::{HeaderName, header::Event};
use base::Instant;
use call::{Core, Level, Mailbox};

use super::SipDriver;
use super::config::{Config, Exchange, InboundPublication};
use super::inbound::{Known, exten_of};
use states::Line;

pub(crate) use outward::Outward;

/// Packages that may be published here.
const PACKAGES: &str = "asterisk-devicestate, asterisk-mwi";
const DEVICES: &str = "asterisk-devicestate";
const MAILBOXES: &str = "asterisk-mwi";
/// How long publications of other servers last, unless they ask for less.
const RULES: Rules = Rules { minimum_expiration: 60, default_expiration: 3600, maximum_expiration: 86_400 };

/// What is published here, and whom we publish to.
pub(crate) struct Publishing {
    compositor: Compositor,
    pub(super) outward: Outward,
    /// Mailboxes of which other servers said something since the start.
    mailboxes: BTreeSet<String>,
    /// The configuration is another.
    to_review: bool,
}

impl Publishing {
    pub(crate) fn new(seed: u128) -> Self {
        Self {
            compositor: Compositor::new(seed),
            outward: Outward::default(),
            mailboxes: BTreeSet::new(),
            to_review: false,
        }
    }
    pub(crate) fn configure(&mut self, config: &Config) {
        self.to_review = true;
        self.outward.configure(config);
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.compositor.deadline(), self.outward.deadline()].into_iter().flatten().min()
    }
}

/// What an inbound-publication lets this package be believed of.
fn exchange_of<'c>(config: &'c Config, of: &InboundPublication, package: &str) -> Option<&'c Rc<Exchange>> {
    let name = if package == DEVICES { &of.devices } else { &of.mailboxes };
    config.exchanges.get(&**name)
}

impl SipDriver {
    /// A PUBLISH.
    pub(crate) fn published(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let config = self.config.clone();
        let view = incoming.message.view();
        let no_such_package = [("Allow-Events", PACKAGES), ("Allow", super::ALLOW)];
        let event = view.header(HeaderName::Event).and_then(Event::parse).map(|event| event.package);
        let package = [DEVICES, MAILBOXES].into_iter().find(|own| Some(own.as_bytes()) == event);
        let Some(package) = package else {
            return self.refuse(&incoming, &Answer::new(489).headers(&no_such_package));
        };
        let resource = exten_of(&view, config.ignore_user_options);
        let found = config.publications.get(&*resource);
        let Some(found) = found.filter(|found| exchange_of(&config, found, package).is_some()) else {
            let status = if found.is_some() { 489 } else { 404 };
            return self.refuse(&incoming, &Answer::new(status).headers(&no_such_package));
        };
        if !found.endpoint.is_empty() && found.endpoint != endpoint.name {
            let line = format!("endpoint '{}' may not publish to '{resource}'", endpoint.name);
            core.log(Level::Warning, "res_pjsip_pubsub", &line);
            return self.refuse(&incoming, &Answer::new(403));
        }
        // Which body it is, the compositor looks at; here is what that body may say.
        let is_ours = view.content_type().is_some_and(|kind| kind.is(states::KIND.0, states::KIND.1));
        let lines = states::read(view.body());
        if is_ours && lines.is_none() {
            return self.refuse(&incoming, &Answer::new(400));
        }
        // A retransmission finds its transaction and never comes here: its entity tag is used up.
        let Ok(request) = self.stack.accept(&incoming, core.now) else {
            return self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", "10")]));
        };
        let mut changes = Vec::new();
        let target = Target { resource: &resource, publisher: &endpoint.name };
        let packages = [Package { name: package, bodies: &[states::KIND] }];
        let compositor = &mut self.publishing.compositor;
        let granted = compositor.publish(target, (&packages, &RULES), &view, core.now, &mut changes);
        let (status, headers) = match granted {
            Ok(granted) => (200, vec![("SIP-ETag", granted.tag), ("Expires", granted.seconds.to_string())]),
            Err(refusal) => (refusal.status(), refusal_headers(refusal)),
        };
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let answer = Answer::new(status).headers(&headers);
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
        self.publications_changed(core, changes);
    }

    /// What was published has changed: it is believed, or no longer.
    fn publications_changed(&mut self, core: &mut Core, changes: Vec<Change>) {
        for Change { id, cause, publication } in changes {
            match cause {
                Cause::Added => {
                    // A server that began anew says everything again, and what it said before is over.
                    let mut gone = Vec::new();
                    let before = |other: PublicationId, of: &Publication| {
                        other != id
                            && (&of.resource, &of.package, &of.publisher)
                                == (&publication.resource, &publication.package, &publication.publisher)
                    };
                    self.publishing.compositor.remove_those(&before, &mut gone);
                    gone.iter().for_each(|change| core.forget_teller(change.id.number()));
                    self.believe(core, id, &publication);
                }
                Cause::Modified => self.believe(core, id, &publication),
                Cause::Refreshed => {}
                Cause::Removed | Cause::Expired => core.forget_teller(id.number()),
            }
        }
    }
    fn believe(&mut self, core: &mut Core, id: PublicationId, publication: &Publication) {
        let config = self.config.clone();
        let found = config.publications.get(&*publication.resource);
        let exchange = found.and_then(|found| exchange_of(&config, found, &publication.package));
        let (Some(exchange), Some(lines)) = (exchange, states::read(&publication.body)) else { return };
        for line in lines {
            match line {
                Line::Device(device, state) => {
                    if *publication.package == *DEVICES
                        && exchange.devices.as_ref().is_some_and(|filter| filter.passes(device))
                    {
                        core.told_of_device(device, id.number(), state);
                    }
                }
                Line::Mailbox(mailbox, messages) => {
                    if *publication.package == *MAILBOXES
                        && exchange.mailboxes.as_ref().is_some_and(|filter| filter.passes(mailbox))
                        && self.publishing.takes_mailbox(mailbox)
                    {
                        core.services.db.put(TOLD_FAMILY, mailbox, &counts(messages));
                        core.set_mailbox(mailbox, Some(messages));
                    }
                }
                Line::Refresh => {
                    let by = match *publication.package == *DEVICES {
                        true => &exchange.devices_publish,
                        false => &exchange.mailboxes_publish,
                    };
                    self.publish_all(core, &publication.package, by);
                }
            }
        }
    }
    /// Looks after publications once a turn: what has lapsed, what the configuration no longer allows, and what others are
    /// to be told.
    pub(crate) fn publications_due(&mut self, core: &mut Core) {
        let mut changes = Vec::new();
        self.publishing.compositor.due(core.now, &mut changes);
        if std::mem::take(&mut self.publishing.to_review) {
            let config = self.config.clone();
            let gone = |_: PublicationId, of: &Publication| {
                let found = config.publications.get(&*of.resource);
                let allows = |found: &&Rc<InboundPublication>| {
                    found.endpoint.is_empty() || *found.endpoint == *of.publisher
                };
                !config.endpoints.contains_key(&*of.publisher)
                    || found
                        .filter(allows)
                        .and_then(|found| exchange_of(&config, found, &of.package))
                        .is_none()
            };
            self.publishing.compositor.remove_those(&gone, &mut changes);
        }
        self.publications_changed(core, changes);
        self.outward_due(core);
    }
}

/// Mailboxes of other servers that are taken.
const MAILBOXES_MAX: usize = 100_000;
/// Family of the database that keeps what other servers said of mailboxes: while a mailbox holds that, it is theirs, and
/// nobody is told of it. It outlasts a restart, after which theirs may have changed.
const TOLD_FAMILY: &str = "MWIElsewhere";

fn counts(messages: Mailbox) -> String {
    format!("{}/{}", messages.new, messages.old)
}

/// Whether a mailbox holds what another server said it holds.
fn is_told(core: &Core, mailbox: &str, messages: Mailbox) -> bool {
    core.services.db.get(TOLD_FAMILY, mailbox).is_some_and(|told| told == counts(messages))
}

impl Publishing {
    /// Whether another server may say something of this mailbox, which it names with its context.
    fn takes_mailbox(&mut self, mailbox: &str) -> bool {
        let room = self.mailboxes.len() < MAILBOXES_MAX || self.mailboxes.contains(mailbox);
        if room {
            self.mailboxes.insert(mailbox.to_owned());
        }
        room && mailbox.contains('@')
    }
}

fn refusal_headers(refusal: Refusal) -> Vec<(&'static str, String)> {
    match refusal {
        Refusal::BadEvent => vec![("Allow-Events", PACKAGES.to_owned())],
        Refusal::TooBrief(least) => vec![("Min-Expires", least.to_string())],
        Refusal::Unreadable => vec![("Accept", states::CONTENT_TYPE.to_owned())],
        Refusal::Full => vec![("Retry-After", "60".to_owned())],
        Refusal::Malformed | Refusal::Unmatched | Refusal::TooLarge => Vec::new(),
    }
}
