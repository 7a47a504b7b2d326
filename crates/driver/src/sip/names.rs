//! What the DNS says of names: the shell asks it, this remembers the answers for as long as they hold, and finds the servers
//! of a URI by them.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::HashMap;

use ::sip::Uri;
use ::sip::locate::{Found, Wanted, locate};
use ::sip::stack::{Flow, Protocol};
use base::dns::{Answer, Kind, Question, Records};
use base::{Instant, Random};

use super::SipDriver;

/// After this long without an answer a name is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Questions remembered; a site has tens. Beyond it the table starts over, so that nobody can fill it.
const NAMES_MAX: usize = 4096;
/// For so long a server that failed is the last of its name to be tried, so that not every call waits for it.
const SHUN: Duration = Duration::from_secs(60);
/// Servers that are remembered to have failed.
const SHUNNED_MAX: usize = 256;

struct Known {
    records: Records,
    ask_at: Instant,
    /// The shell has answered, be it with nothing.
    answered: bool,
}

/// See the module's page.
pub(super) struct Names {
    known: HashMap<Question, Known>,
    wanted: Vec<Question>,
    shunned: HashMap<(SocketAddr, Protocol), Instant>,
    /// State of the numbers that weights are drawn with.
    luck: Random,
}

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        Self { known: HashMap::new(), wanted: Vec::new(), shunned: HashMap::new(), luck: Random::new(seed) }
    }
    /// What is known; `None` while the first answer is awaited. Asks when nothing is known, or it is no longer fresh: old
    /// records serve until the new ones come.
    fn ask(&mut self, question: &Question, now: Instant) -> Option<Records> {
        if self.known.get(question).is_none_or(|known| known.ask_at <= now) {
            self.want(question, now);
        }
        self.known.get(question).filter(|known| known.answered).map(|known| known.records.clone())
    }
    fn want(&mut self, question: &Question, now: Instant) {
        if self.known.len() >= NAMES_MAX && !self.known.contains_key(question) {
            self.known.clear();
        }
        let unknown = Known { records: Records::none(question.kind), ask_at: now, answered: false };
        let known = self.known.entry(question.clone()).or_insert(unknown);
        // Not again before the answer, or before it has taken too long.
        known.ask_at = now + ASK_AGAIN;
        if !self.wanted.contains(question) {
            self.wanted.push(question.clone());
        }
    }
    /// The addresses of a name, as far as they are known; asks when they are not, or no longer fresh.
    pub(super) fn addresses(&mut self, host: &str, now: Instant) -> &[IpAddr] {
        self.ask(&Question::new(Kind::Addresses, host), now);
        self.known(host)
    }
    /// The addresses of a name, as far as they are known; asks nobody.
    pub(super) fn known(&self, host: &str) -> &[IpAddr] {
        let known = self.known.get(&Question::new(Kind::Addresses, host));
        known.map_or(&[], |known| known.records.addresses())
    }
    /// The answer. Whether it is the first, or another one than before.
    pub(super) fn learn(&mut self, question: &Question, answer: Answer, now: Instant) -> bool {
        let records = answer.records.unwrap_or_else(|| Records::none(question.kind));
        let known = Known { records: records.clone(), ask_at: now + answer.keep, answered: true };
        let old = self.known.insert(question.clone(), known);
        old.is_none_or(|old| !old.answered || old.records != records)
    }
    pub(super) fn take_wanted(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.wanted)
    }
    /// The servers of a URI among these transports; the first question whose answer is awaited, when some are.
    fn locate(
        &mut self,
        wanted: &Wanted,
        available: &[Protocol],
        now: Instant,
    ) -> Result<Vec<::sip::locate::Target>, Question> {
        let (mut missing, mut luck) = (None, self.luck);
        let mut known = |question: &Question| {
            let records = self.ask(question, now);
            if records.is_none() {
                missing.get_or_insert_with(|| question.clone());
            }
            records
        };
        // What is drawn only shares out load.
        let mut draw = |most: u32| u32::try_from(luck.below(u64::from(most) + 1)).unwrap_or_default();
        let found = locate(wanted, available, &mut known, &mut draw);
        self.luck = luck;
        match (found, missing) {
            (Found::Targets(targets), _) => Ok(targets),
            (Found::Awaited, Some(question)) => Err(question),
            (Found::Awaited, None) => Ok(Vec::new()),
        }
    }
    /// A server has failed.
    pub(super) fn shun(&mut self, flow: Flow, now: Instant) {
        if self.shunned.len() >= SHUNNED_MAX {
            self.shunned.retain(|_, until| *until > now);
        }
        if self.shunned.len() < SHUNNED_MAX {
            self.shunned.insert((flow.remote, flow.protocol), now + SHUN);
        }
    }
    fn is_shunned(&self, flow: &Flow, now: Instant) -> bool {
        self.shunned.get(&(flow.remote, flow.protocol)).is_some_and(|until| *until > now)
    }
    /// Those that have not failed lately first.
    pub(super) fn prefer(&self, flows: &mut [Flow], now: Instant) {
        flows.sort_by_key(|flow| self.is_shunned(flow, now));
    }
}

impl SipDriver {
    /// The servers that a URI leads to, best first; none when there are none, or while answers are awaited, which
    /// `self.awaited` then says.
    pub(super) fn servers(&mut self, wanted: &Wanted, now: Instant) -> Vec<::sip::locate::Target> {
        let here = |protocol: &Protocol| self.config.binds.iter().any(|bind| bind.protocol == *protocol);
        let available: Vec<Protocol> =
            [Protocol::Udp, Protocol::Tcp, Protocol::Tls].into_iter().filter(here).collect();
        match self.names.locate(wanted, &available, now) {
            Ok(targets) => targets,
            Err(question) => {
                self.awaited = Some(question);
                Vec::new()
            }
        }
    }
    /// Asks for the names that the configuration sends requests to, before the first call needs them.
    pub(super) fn foresee(&mut self, now: Instant) {
        let config = self.config.clone();
        let contacts = config.aors.values().flat_map(|aor| &aor.contacts);
        let proxies = config.endpoints.values().map(|endpoint| &endpoint.outbound_proxy);
        let own = super::trunk::Trunks::hosts(&config).chain(super::publish::Outward::hosts(&config));
        for text in contacts.chain(proxies).chain(own) {
            let uri = Uri::parse(text.trim_matches(['<', '>', ' ']).as_bytes());
            if let Some(wanted) = uri.and_then(|uri| Wanted::new(&uri, None)) {
                self.servers(&wanted, now);
            }
        }
        self.awaited = None;
    }
}
