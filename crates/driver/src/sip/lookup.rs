//! Endpoints that a database holds: a request of one that is not known, or not fresh, waits in a bounded place until the shell
//! has looked it up, and is then handled as if it came that moment.
//!
//! Who it may be of is all that is looked at before: whether there is such an endpoint shows in no answer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use ::sip::stack::{Answer, Event, Incoming};
use base::Instant;
use call::Core;

pub use crate::Lookup;

use super::config::{Aor, Auth, Endpoint};
use super::{SipDriver, identify};

/// Requests that wait for the database at once: the phones of a large site that all register within the patience of one
/// look-up. A request holds some kilobytes.
const PARKED_MAX: usize = 4_096;
/// Seconds after which a request that nobody can answer for is to be sent again.
const RETRY_AFTER: &str = "5";

/// Whoever looks endpoints up.
pub trait Directory {
    /// Looks an endpoint up with its AORs and auths.
    fn look_up(&mut self, endpoint: &str, now: Instant) -> Lookup;
}

/// Objects that a database has, or has no more.
#[derive(Default, Clone)]
pub struct Learned {
    /// Endpoints by name.
    pub endpoints: Vec<(Rc<str>, Option<Rc<Endpoint>>)>,
    /// AORs by name.
    pub aors: Vec<(Rc<str>, Option<Rc<Aor>>)>,
    /// Auths by name.
    pub auths: Vec<(Rc<str>, Option<Rc<Auth>>)>,
}

impl Learned {
    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.aors.is_empty() && self.auths.is_empty()
    }
}

/// A request that waits.
struct Parked {
    event: Event,
    /// Endpoints that have still to be looked up.
    awaited: usize,
    unavailable: bool,
}

/// Requests that wait, and who looks up what they wait for.
#[derive(Default)]
pub(super) struct Lookups {
    directory: Option<Rc<RefCell<dyn Directory>>>,
    /// Endpoints that somebody dials, and what turns true when they are known.
    dialled: HashMap<String, Rc<Cell<bool>>>,
    /// By what retransmissions of a request share.
    parked: HashMap<u128, Parked>,
    /// Requests that wait for an endpoint, in the order in which they came.
    by_endpoint: HashMap<String, Vec<u128>>,
    /// The request in hand has waited.
    is_resumed: bool,
}

impl SipDriver {
    /// Has endpoints looked up from here on; `None`: what is configured is all there is.
    pub fn set_directory(&mut self, directory: Option<Rc<RefCell<dyn Directory>>>) {
        self.lookups.directory = directory;
    }
    /// Requests that wait for a look-up.
    pub fn parked(&self) -> usize {
        self.lookups.parked.len()
    }
    /// Lets a request pass whose sender is known as well as can be; else it waits, or was answered.
    pub(super) fn after_lookup(
        &mut self,
        core: &Core,
        incoming: Box<Incoming>,
        is_invite: bool,
    ) -> Option<Box<Incoming>> {
        if std::mem::take(&mut self.lookups.is_resumed) {
            return Some(incoming);
        }
        let Some(directory) = self.lookups.directory.clone() else { return Some(incoming) };
        let mut awaited = Vec::new();
        let mut unavailable = false;
        for name in self.names_in(&incoming) {
            match directory.borrow_mut().look_up(&name, core.now) {
                Lookup::Ready => {}
                Lookup::Awaited => awaited.push(name),
                Lookup::Unavailable => unavailable = true,
            }
        }
        if awaited.is_empty() && !unavailable {
            return Some(incoming);
        }
        let key = incoming.key();
        let Lookups { parked, by_endpoint, .. } = &mut self.lookups;
        // A retransmission waits with the first.
        if parked.contains_key(&key) {
            return None;
        }
        if awaited.is_empty() || parked.len() >= PARKED_MAX {
            self.refuse_for_now(&incoming);
            return None;
        }
        let event = if is_invite { Event::Invite(incoming) } else { Event::Request(incoming) };
        parked.insert(key, Parked { event, awaited: awaited.len(), unavailable });
        awaited.into_iter().for_each(|name| by_endpoint.entry(name).or_default().push(key));
        None
    }
    /// Has the endpoint looked up that a dial string names, when it is not known.
    pub(super) fn look_up_dialled(&mut self, resource: &str, now: Instant) -> Option<Rc<Cell<bool>>> {
        let directory = self.lookups.directory.clone()?;
        let name = named(resource.trim())?;
        let known = |name: &str| self.config.endpoints.contains_key(name);
        if known(name)
            || known(resource.trim())
            || directory.borrow_mut().look_up(name, now) != Lookup::Awaited
        {
            return None;
        }
        Some(self.lookups.dialled.entry(name.to_owned()).or_default().clone())
    }
    /// An endpoint that was awaited was looked up, or cannot be. What waited for it goes on.
    pub fn looked_up(&mut self, core: &mut Core, endpoint: &str, is_available: bool) {
        if let Some(known) = self.lookups.dialled.remove(endpoint) {
            known.set(true);
            core.outside_changed();
        }
        let mut ready = Vec::new();
        for key in self.lookups.by_endpoint.remove(endpoint).unwrap_or_default() {
            let Some(request) = self.lookups.parked.get_mut(&key) else { continue };
            request.awaited = request.awaited.saturating_sub(1);
            request.unavailable |= !is_available;
            if request.awaited == 0 {
                ready.extend(self.lookups.parked.remove(&key));
            }
        }
        for Parked { event, unavailable, .. } in ready {
            match (&event, unavailable) {
                (Event::Invite(incoming) | Event::Request(incoming), true) => self.refuse_for_now(incoming),
                _ => {
                    self.lookups.is_resumed = true;
                    self.guarded(core, event);
                    self.lookups.is_resumed = false;
                }
            }
        }
    }
    /// Takes what a database has, in place of what was known under the same names.
    pub fn learn(&mut self, core: &mut Core, learned: Learned) {
        let now = core.now;
        let config = Rc::make_mut(&mut self.config);
        for (name, endpoint) in learned.endpoints {
            if let Some(endpoint) = &endpoint {
                let [forced, unforced] = &mut self.challenge_ports;
                let obeyed = if endpoint.force_rport { forced } else { unforced };
                *obeyed = Some(endpoint.force_rport);
                self.open_options |= endpoint.opens_options();
            }
            let old = put(&mut config.endpoints, name.clone(), endpoint.clone());
            self.watchers.learn(&name, old.as_deref(), endpoint.as_deref());
        }
        for (name, auth) in learned.auths {
            auth.iter().for_each(|auth| self.gate.learn(auth));
            put(&mut config.auths, name, auth);
        }
        let before = self.registrations.changes.len();
        for (name, aor) in learned.aors {
            let old = put(&mut config.aors, name.clone(), aor);
            let fixed = old.iter().flat_map(|aor| &aor.contacts).map(|uri| uri.clone().into_bytes());
            let bound =
                self.registrations.registrar.bindings(&name).iter().map(|binding| binding.uri.clone());
            let fixed: Vec<Vec<u8>> = fixed.collect();
            let bound: Vec<Vec<u8>> = bound.collect();
            fixed.iter().for_each(|uri| self.qualify.remove(&name, uri));
            let Some(aor) = config.aors.get(&name) else {
                let super::register::Registrations { registrar, changes, .. } = &mut self.registrations;
                registrar.remove_those(&name, &|_| true, now, changes);
                continue;
            };
            let fixed = aor.contacts.iter().map(|uri| uri.clone().into_bytes());
            let asked = fixed.chain(bound).collect::<Vec<_>>();
            asked.iter().for_each(|uri| self.qualify.add(config, &name, uri, now));
        }
        self.tell_changes(core, before);
    }

    /// Whose request it may be, in the configured order, as far as names are said.
    fn names_in(&self, incoming: &Incoming) -> Vec<String> {
        identify::names(&self.config, &incoming.message.view(), &self.arrival(incoming.source))
    }
    fn refuse_for_now(&mut self, incoming: &Incoming) {
        self.refuse(incoming, &Answer::new(503).headers(&[("Retry-After", RETRY_AFTER)]));
    }
}

/// The endpoint that a dial string names; `None` when it is that of all strangers.
fn named(resource: &str) -> Option<&str> {
    if resource.starts_with("sip:") || resource.starts_with("sips:") {
        return None;
    }
    match (resource.split_once('/'), resource.rsplit_once('@')) {
        (Some((name, _)), _) | (None, Some((_, name))) => Some(name),
        (None, None) => Some(resource),
    }
}

/// Puts an object in the place of another, or takes it away.
fn put<T>(map: &mut std::collections::BTreeMap<Rc<str>, T>, name: Rc<str>, object: Option<T>) -> Option<T> {
    match object {
        Some(object) => map.insert(name, object),
        None => map.remove(&name),
    }
}
