//! Does a contact answer? OPTIONS at its AOR's frequency, round trips, and what is told when that changes.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use ::sip::Method;
use ::sip::stack::{ClientId, Flow, Outgoing};
use base::Instant;
use call::{Core, Level, Notice};

use super::config::Config;
use super::register::Registrations;
use super::{SipDriver, identity};

/// First questions are spread over so long when the site does not say.
const SPREAD: Duration = Duration::from_secs(1);
/// In so many steps.
const SPREAD_STEPS: u32 = 1000;

/// What is known of a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reachable {
    /// It is not asked (`qualify_frequency=0`).
    #[default]
    NotAsked,
    /// Asked, no answer yet.
    Unknown,
    /// It answered.
    Yes,
    /// It did not.
    No,
}

type ContactKey = (Rc<str>, Rc<[u8]>);

#[derive(Debug, Clone, Default)]
struct State {
    reachable: Reachable,
    roundtrip: Option<Duration>,
    generation: u32,
    /// The DNS knows no way to it, or has not answered yet.
    unresolved: bool,
}

/// One OPTIONS on its way.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    key: ContactKey,
    sent: Instant,
    flow: Flow,
    /// When it counts as unanswered by the server that it has gone to.
    until: Option<Instant>,
}

impl Probe {
    /// AOR and URI of the contact that is asked.
    pub(crate) fn contact(&self) -> (&str, &[u8]) {
        (&self.key.0, &self.key.1)
    }
}

/// All contacts that are asked.
#[derive(Default)]
pub(crate) struct Qualify {
    contacts: BTreeMap<ContactKey, State>,
    due: BinaryHeap<Reverse<(Instant, u32, ContactKey)>>,
    /// Questions that count as unanswered from this moment on (`qualify_timeout`), though the transaction may go on.
    overdue: BinaryHeap<Reverse<(Instant, ClientId)>>,
    generation: u32,
}

impl Qualify {
    /// Asks what the configuration and the registrations name.
    pub(crate) fn configure(&mut self, config: &Config, registrations: &Registrations, now: Instant) {
        let mut wanted: Vec<(String, Vec<u8>)> = Vec::new();
        for aor in config.aors.values() {
            wanted.extend(aor.contacts.iter().map(|uri| (aor.name.to_string(), uri.clone().into_bytes())));
        }
        for (aor, bindings) in registrations.registrar.iter() {
            wanted.extend(bindings.iter().map(|b| (aor.to_owned(), b.uri.clone())));
        }
        let old = std::mem::take(&mut self.contacts);
        self.due.clear();
        for (aor, uri) in wanted {
            self.add(config, &aor, &uri, now);
            let key = (Rc::from(aor.as_str()), Rc::from(uri.as_slice()));
            let asked = |state: &&mut State| state.reachable != Reachable::NotAsked;
            if let (Some(state), Some(known)) = (self.contacts.get_mut(&key).filter(asked), old.get(&key)) {
                let known_reach =
                    if known.reachable == Reachable::NotAsked { Reachable::Unknown } else { known.reachable };
                (state.reachable, state.roundtrip) = (known_reach, known.roundtrip);
            }
        }
    }
    /// A contact came up; the first question is spread so that a restart does not ask all at once.
    pub(crate) fn add(&mut self, config: &Config, aor: &str, uri: &[u8], now: Instant) {
        let Some(rules) = config.aors.get(aor) else { return };
        let key: ContactKey = (rules.name.clone(), Rc::from(uri));
        self.generation = self.generation.wrapping_add(1);
        let asked = rules.qualify_frequency > 0;
        let reachable = if asked { Reachable::Unknown } else { Reachable::NotAsked };
        self.contacts
            .insert(key.clone(), State { reachable, generation: self.generation, ..State::default() });
        if asked {
            // Who starts together with us has half of it to be there.
            let (least, span) = match config.initial_qualify.is_zero() {
                true => (SPREAD / 2, SPREAD / 2),
                false => (Duration::ZERO, config.initial_qualify),
            };
            let spread = span * (self.generation.wrapping_mul(37) % SPREAD_STEPS) / SPREAD_STEPS;
            self.due.push(Reverse((now + least + spread, self.generation, key)));
        }
    }
    pub(crate) fn remove(&mut self, aor: &str, uri: &[u8]) {
        self.contacts.remove(&(Rc::from(aor), Rc::from(uri)) as &ContactKey);
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        let overdue = self.overdue.peek().map(|Reverse((at, _))| *at);
        [due, overdue].into_iter().flatten().min()
    }
    /// The DNS has said something else than before: contacts to which it knew no way are asked at once.
    pub(crate) fn ask_again(&mut self, now: Instant) {
        for (key, state) in &mut self.contacts {
            if std::mem::take(&mut state.unresolved) {
                self.generation = self.generation.wrapping_add(1);
                state.generation = self.generation;
                self.due.push(Reverse((now, self.generation, key.clone())));
            }
        }
    }
    pub(crate) fn is_unreachable(&self, aor: &str, uri: &[u8]) -> bool {
        self.state(aor, uri).0 == Reachable::No
    }
    /// What is known, and the last round trip.
    pub(crate) fn state(&self, aor: &str, uri: &[u8]) -> (Reachable, Option<Duration>) {
        let state = self.contacts.get(&(Rc::from(aor), Rc::from(uri)) as &ContactKey);
        state.map_or((Reachable::NotAsked, None), |s| (s.reachable, s.roundtrip))
    }
    /// Gives a question so long from `sent` on; until when.
    fn patience(&mut self, request: ClientId, timeout: Duration, sent: Instant) -> Option<Instant> {
        let until = (!timeout.is_zero()).then(|| sent + timeout)?;
        self.overdue.push(Reverse((until, request)));
        Some(until)
    }
    fn pop_due(&mut self, now: Instant) -> Option<ContactKey> {
        while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Reverse((_, generation, key)) = self.due.pop()?;
            if self.contacts.get(&key).is_some_and(|state| state.generation == generation) {
                return Some(key);
            }
        }
        None
    }
}

impl SipDriver {
    /// Asks every contact of an endpoint at once, also those that are never asked by themselves; how many there are, or
    /// `None` when there is no such endpoint.
    pub fn qualify_endpoint(&mut self, core: &mut Core, endpoint: &str) -> Option<usize> {
        let aors = self.config.endpoints.get(endpoint)?.aors.clone();
        let of_endpoint = |key: &&ContactKey| aors.contains(&key.0);
        let keys: Vec<ContactKey> = self.qualify.contacts.keys().filter(of_endpoint).cloned().collect();
        keys.iter().for_each(|key| self.probe(core, key));
        Some(keys.len())
    }
    /// Asks every contact whose time has come, and gives up on those that had theirs to answer.
    pub(crate) fn probe_due(&mut self, core: &mut Core) {
        while let Some(&Reverse((at, id))) =
            self.qualify.overdue.peek().filter(|Reverse((at, _))| *at <= core.now)
        {
            self.qualify.overdue.pop();
            if self.requests.get(&id).is_none_or(|probe| probe.until != Some(at)) {
                continue;
            }
            // The contact has not failed while it has a server that was not asked (RFC 3263 §4.3).
            if self.with_stack(core, |stack, now, out| stack.next_server(id, now, out)) {
                continue;
            }
            if let Some(probe) = self.requests.remove(&id) {
                self.names.shun(probe.flow, core.now);
                self.probed(core, &probe, false);
            }
        }
        while let Some(key) = self.qualify.pop_due(core.now) {
            let Some(aor) = self.config.aors.get(&key.0).cloned() else { continue };
            let frequency = Duration::from_secs(u64::from(aor.qualify_frequency.max(1)));
            if let Some(state) = self.qualify.contacts.get(&key) {
                let next = core.now + frequency;
                self.qualify.due.push(Reverse((next, state.generation, key.clone())));
            }
            self.probe(core, &key);
        }
    }
    fn probe(&mut self, core: &mut Core, key: &ContactKey) {
        let endpoint = self.config.endpoints.get(&*self.endpoint_of_aor(&key.0)).cloned();
        // The AOR may have a proxy of its own for these.
        let proxy = self.config.aors.get(&key.0).map(|aor| aor.outbound_proxy.clone()).unwrap_or_default();
        let endpoint = match (endpoint, proxy.is_empty()) {
            (endpoint, true) => endpoint,
            (endpoint, false) => {
                let own = endpoint.as_deref().cloned().unwrap_or_default();
                Some(Rc::new(super::Endpoint { outbound_proxy: proxy, ..own }))
            }
        };
        self.awaited = None;
        let Some(route) = self.route_to(core, endpoint.as_deref(), &key.0, &key.1) else {
            if let Some(state) = self.qualify.contacts.get_mut(key) {
                state.unresolved = true;
            }
            if self.awaited.take().is_some() {
                return;
            }
            return self.heard(core, key, None);
        };
        let ways = self.other_ways(&route.next, |driver, flow| driver.contact(flow, &key.0));
        let host = self.own_host(route.flow);
        let from = identity::name_addr("", &key.0, &host, false);
        let to = format!("<{}>", super::outbound::to_uri(&route.uri));
        let contact = self.contact(route.flow, &key.0);
        let routes: Vec<&str> = route.routes.iter().map(String::as_str).collect();
        let request = Outgoing {
            method: Method::Options,
            target: &route.uri,
            from: &from,
            to: &to,
            contact: Some(&contact),
            routes: &routes,
            headers: &[],
            body: None,
            flow: route.flow,
            series: None,
            symmetric: false,
        };
        let timeout = self.qualify_timeout(&key.0);
        let sent = self.with_stack(core, |stack, now, out| {
            let id = stack.request(&request, now, out)?;
            stack.request_also_by(id, &ways);
            Ok::<_, ::sip::stack::Refused>(id)
        });
        match sent {
            Ok(id) => {
                let (sent, flow) = (core.now, route.flow);
                let until = self.qualify.patience(id, timeout, sent);
                self.requests.insert(id, Probe { key: key.clone(), sent, flow, until });
            }
            Err(_) => self.heard(core, key, None),
        }
    }
    /// How long a server has to answer; zero is as long as the transaction lasts.
    fn qualify_timeout(&self, aor: &str) -> Duration {
        self.config.aors.get(aor).map_or(Duration::ZERO, |aor| aor.qualify_timeout)
    }
    /// A question has gone to another server, which has its own time to answer.
    pub(crate) fn probe_moved(&mut self, request: ClientId, flow: Flow, now: Instant) {
        let Some(aor) = self.requests.get(&request).map(|probe| probe.key.0.clone()) else { return };
        let until = self.qualify.patience(request, self.qualify_timeout(&aor), now);
        if let Some(probe) = self.requests.get_mut(&request) {
            (probe.sent, probe.flow, probe.until) = (now, flow, until);
        }
    }
    /// A contact has registered: it is asked at once, where it is asked at all, and then at its AOR's frequency.
    pub(crate) fn probe_new_contact(&mut self, core: &mut Core, aor: &str, uri: &[u8]) {
        let key: ContactKey = (Rc::from(aor), Rc::from(uri));
        let Some(rules) = self.config.aors.get(aor).filter(|rules| rules.qualify_frequency > 0) else {
            return;
        };
        let next = core.now + Duration::from_secs(u64::from(rules.qualify_frequency));
        let generation = self.qualify.generation.wrapping_add(1);
        let Some(state) = self.qualify.contacts.get_mut(&key) else { return };
        (self.qualify.generation, state.generation) = (generation, generation);
        self.qualify.due.push(Reverse((next, generation, key.clone())));
        self.probe(core, &key);
    }
    /// A question was challenged: it is asked once more with the endpoint's login, where there is one; else the challenge is
    /// an answer as any other. `authenticate_qualify` makes no difference, as in the field.
    pub(crate) fn probe_challenged(
        &mut self,
        core: &mut Core,
        request: ClientId,
        message: &::sip::OwnedMessage,
    ) {
        let Some(probe) = self.requests.remove(&request) else { return };
        let endpoint = self.config.endpoints.get(&*self.endpoint_of_aor(&probe.key.0)).cloned();
        let again = endpoint
            .filter(|endpoint| !endpoint.outbound_auths.is_empty())
            .and_then(|endpoint| self.prove(core, request, message, &endpoint.outbound_auths));
        match again {
            Some(again) => {
                let until = self.qualify.patience(again, self.qualify_timeout(&probe.key.0), probe.sent);
                self.requests.insert(again, Probe { until, ..probe });
            }
            None => {
                let status = message.view().status().map_or(401, |status| status.code());
                let good = self.counts_as_answer(&probe, status);
                self.probed(core, &probe, good);
            }
        }
    }
    /// Whether this status shows that the contact is there.
    pub(crate) fn counts_as_answer(&self, probe: &Probe, status: u16) -> bool {
        let only_2xx = self.config.aors.get(&probe.key.0).is_some_and(|aor| aor.qualify_2xx_only);
        !only_2xx || (200..300).contains(&status)
    }
    /// A probe came to something: a response after this time, or nothing.
    pub(crate) fn probed(&mut self, core: &mut Core, probe: &Probe, answered: bool) {
        let roundtrip = answered.then(|| core.now.since(probe.sent));
        self.heard(core, &probe.key, roundtrip);
    }
    fn heard(&mut self, core: &mut Core, key: &ContactKey, roundtrip: Option<Duration>) {
        let Some(state) = self.qualify.contacts.get_mut(key) else { return };
        let reachable = match (roundtrip, state.reachable) {
            (Some(_), _) => Reachable::Yes,
            // Asked by hand only: nobody would ask again and find it back.
            (None, Reachable::NotAsked) => Reachable::NotAsked,
            (None, _) => Reachable::No,
        };
        let changed = state.reachable != reachable;
        state.reachable = reachable;
        state.roundtrip = roundtrip;
        if !changed {
            return;
        }
        let status = if roundtrip.is_some() { "Reachable" } else { "Unreachable" };
        let uri = identity::text(&key.1);
        let endpoint = self.endpoint_of_aor(&key.0);
        let text = match roundtrip {
            Some(rtt) => format!(
                "Contact {}/{uri} is now Reachable.  RTT: {:.3} msec",
                key.0,
                rtt.as_secs_f64() * 1000.0
            ),
            None => format!("Contact {}/{uri} is now Unreachable.  RTT: 0.000 msec", key.0),
        };
        core.log(Level::Verbose(3), "res_pjsip/pjsip_options", &text);
        core.touched_devices.push(format!("PJSIP/{endpoint}"));
        let roundtrip_us = roundtrip.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX));
        let aor = key.0.to_string();
        self.tell_reach(core, &endpoint);
        core.notice(|_| Some(Notice::ContactStatus { uri, status, aor, endpoint, roundtrip_us }));
    }
}
