//! Call forward and do-not-disturb, told to phones that keep their keys alike and set by them (`as-feature-event`).
//!
//! What is set lies in the database, where the dialplan looks; a phone is a watcher of its own number, whose SUBSCRIBE may
//! also set something.

use std::rc::Rc;

use ::sip::feature::{self, Change, Forwarding, State};
use ::sip::stack::{Body, SubscriptionId};
use ::sip::subscription::Standing;
use ::sip::{Message, OwnedMessage};
use call::{Core, Diversion, Level};

use super::{Item, Refusal, Topic};
use crate::sip::SipDriver;
use crate::sip::config::Endpoint;

/// What a phone has been told, in the order of [`Diversion::ALL`]; `None`: nothing, or to be told once more.
pub(super) type Told = [Option<Set>; Diversion::ALL.len()];

/// What is set, and the rings after which calls are forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    to: Option<String>,
    rings: Option<u8>,
}

/// The number that an endpoint's phones are called by: that of `callerid`, by which feature codes know who dials them,
/// else the endpoint's name.
pub(super) fn number_of(endpoint: &Endpoint) -> Rc<str> {
    let own = endpoint.caller.number.as_deref().map(str::trim).filter(|number| !number.is_empty());
    own.unwrap_or(&endpoint.name).into()
}

/// Whether what is watched, if it is keys, are those of this endpoint.
pub(super) fn are_of(items: &[Item], endpoint: &Endpoint) -> bool {
    items.iter().all(|item| match &item.topic {
        Topic::Features(number) => *number == number_of(endpoint),
        Topic::Extension(_) | Topic::Mailboxes { .. } => true,
    })
}

/// What the body of a SUBSCRIBE sets; `None` without one.
pub(super) fn change_in(message: &Message<'_>) -> Result<Option<Change>, Refusal> {
    let body = message.body();
    if body.is_empty() {
        return Ok(None);
    }
    if !message.content_type().is_some_and(|kind| kind.is("application", "x-as-feature-event+xml")) {
        return Err((415, Some(("Accept", feature::CONTENT_TYPE.to_owned()))));
    }
    if body.len() > feature::BODY_BYTES_MAX {
        return Err((413, None));
    }
    feature::read(body).map(Some).ok_or((400, None))
}

fn diversion_of(change: &Change) -> Diversion {
    match change {
        Change::DoNotDisturb(_) => Diversion::Disturb,
        Change::Forward { when: Forwarding::Immediate, .. } => Diversion::All,
        Change::Forward { when: Forwarding::Busy, .. } => Diversion::Busy,
        Change::Forward { when: Forwarding::NoAnswer, .. } => Diversion::NoAnswer,
    }
}

fn now_set(core: &Core, number: &str, diversion: Diversion) -> Set {
    let to = core.diversion(number, diversion);
    let rings = if diversion == Diversion::NoAnswer { core.rings(number) } else { None };
    Set { to, rings }
}

fn document(number: &str, diversion: Diversion, set: &Set) -> String {
    let forward = |when| State::Forward { when, to: set.to.as_deref(), rings: set.rings };
    let state = match diversion {
        Diversion::Disturb => State::DoNotDisturb(set.to.is_some()),
        Diversion::All => forward(Forwarding::Immediate),
        Diversion::Busy => forward(Forwarding::Busy),
        Diversion::NoAnswer => forward(Forwarding::NoAnswer),
    };
    feature::write(number, state)
}

/// Writes down what a phone has set. A number that nobody could dial changes nothing; the phone is told how things stand.
fn obey(core: &mut Core, endpoint: &str, number: &str, change: &Change) {
    let diversion = diversion_of(change);
    let kept = match change {
        Change::DoNotDisturb(on) => core.set_diversion(number, diversion, on.then_some("YES")),
        Change::Forward { active: false, .. } => core.set_diversion(number, diversion, None),
        Change::Forward { active: true, to: None, .. } => {
            let line =
                format!("endpoint '{endpoint}' asks to be forwarded without a number that could be dialled");
            return core.log(Level::Notice, "res_pjsip_feature_event", &line);
        }
        Change::Forward { active: true, to: Some(to), .. } => core.set_diversion(number, diversion, Some(to)),
    };
    if let Change::Forward { when: Forwarding::NoAnswer, active, rings, .. } = change {
        core.set_rings(number, rings.filter(|_| *active));
    }
    if !kept {
        let line = format!("what endpoint '{endpoint}' has set cannot be kept: the database is full");
        core.log(Level::Warning, "res_pjsip_feature_event", &line);
    }
}

impl SipDriver {
    /// Obeys a SUBSCRIBE of this subscription, which has been accepted. Without a body it asks how everything stands, with
    /// one how that stands which it sets.
    pub(super) fn feature_asked(
        &mut self,
        core: &mut Core,
        subscription: SubscriptionId,
        change: Option<&Change>,
    ) {
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return };
        let Some(Topic::Features(number)) = watcher.items.first().map(|item| item.topic.clone()) else {
            return;
        };
        let Some(change) = change else {
            watcher.told = Told::default();
            return;
        };
        let at = Diversion::ALL.iter().position(|diversion| *diversion == diversion_of(change));
        if let Some(told) = at.and_then(|at| watcher.told.get_mut(at)) {
            *told = None;
        }
        let endpoint = watcher.endpoint.name.clone();
        obey(core, &endpoint, &number, change);
    }
    /// What a SUBSCRIBE inside this subscription sets.
    pub(super) fn feature_change(
        &self,
        subscription: SubscriptionId,
        message: &OwnedMessage,
    ) -> Result<Option<Change>, Refusal> {
        let item = self.watchers.all.get(&subscription).and_then(|watcher| watcher.items.first());
        match item.map(|item| &item.topic) {
            Some(Topic::Features(_)) => change_in(&message.view()),
            _ => Ok(None),
        }
    }
    /// Whether this phone knows already how things stand with the number.
    pub(super) fn features_known(&self, core: &Core, subscription: SubscriptionId, topic: &Topic) -> bool {
        let (Topic::Features(number), Some(watcher)) = (topic, self.watchers.all.get(&subscription)) else {
            return false;
        };
        let each = Diversion::ALL.iter().zip(&watcher.told);
        each.into_iter().all(|(diversion, told)| *told == Some(now_set(core, number, *diversion)))
    }
    /// The NOTIFY of a phone's keys is to leave: with all that it has not been told as it is.
    pub(super) fn features_due(
        &mut self,
        core: &mut Core,
        subscription: SubscriptionId,
        (number, standing): (&str, Standing),
    ) {
        let is_last = matches!(standing, Standing::Terminated(_));
        let boundary = format!("{:016x}{:016x}", core.random(), core.random());
        let Some(watcher) = self.watchers.all.get_mut(&subscription) else { return };
        let mut documents = Vec::with_capacity(Diversion::ALL.len());
        for (diversion, told) in Diversion::ALL.iter().zip(&mut watcher.told) {
            let set = now_set(core, number, *diversion);
            if told.as_ref() != Some(&set) {
                documents.push(document(number, *diversion, &set));
                *told = Some(set);
            }
        }
        if documents.is_empty() && !is_last {
            // It went and came back before it could be told.
            let all = Diversion::ALL.iter();
            documents.extend(all.map(|of| document(number, *of, &now_set(core, number, *of))));
        }
        self.watchers.written += documents.len() as u64;
        let (content_type, text) = feature::gather(&documents, &boundary);
        let body = Body { content_type: &content_type, bytes: text.as_bytes() };
        let body = (!documents.is_empty()).then_some(body);
        self.with_stack(core, |stack, now, out| stack.notify(subscription, &[], body, now, out)).ok();
    }
}
