//! Addresses of host names: the shell asks the DNS, this remembers what it said.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use base::Instant;
use base::dns::{Answer, Kind, Question};

/// After this long without an answer a name is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Names remembered; a site has tens. Beyond it the table starts over, so that nobody can fill it.
const NAMES_MAX: usize = 4096;

#[derive(Default)]
struct Known {
    addresses: Vec<IpAddr>,
    ask_at: Instant,
    answered: bool,
}

/// What a name means.
pub(super) enum Found {
    At(IpAddr),
    /// The answer is awaited.
    Awaited,
    Nowhere,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Hosts {
    known: BTreeMap<String, Known>,
    wanted: Vec<Question>,
}

impl Hosts {
    /// The address of a host, by name or as it is written; asks when it is not known or no longer fresh.
    pub(super) fn find(&mut self, host: &str, now: Instant) -> Found {
        if let Ok(ip) = host.trim_matches(['[', ']']).parse() {
            return Found::At(ip);
        }
        let question = Question::new(Kind::Addresses, host);
        if !question.is_askable() {
            return Found::Nowhere;
        }
        if self.known.len() >= NAMES_MAX && !self.known.contains_key(&question.name) {
            self.known.clear();
        }
        let known = self.known.entry(question.name.clone()).or_default();
        if known.ask_at <= now {
            known.ask_at = now + ASK_AGAIN;
            self.wanted.push(question);
        }
        match (known.addresses.first(), known.answered) {
            (Some(address), _) => Found::At(*address),
            (None, true) => Found::Nowhere,
            (None, false) => Found::Awaited,
        }
    }
    /// The answer; whether it is news.
    pub(super) fn learn(&mut self, question: &Question, answer: &Answer, now: Instant) -> bool {
        let Some(known) = self.known.get_mut(&question.name).filter(|_| question.kind == Kind::Addresses)
        else {
            return false;
        };
        let addresses =
            answer.records.as_ref().map(|records| records.addresses().to_vec()).unwrap_or_default();
        let news = !known.answered || known.addresses != addresses;
        *known = Known { addresses, ask_at: now + answer.keep, answered: true };
        news
    }
    pub(super) fn take_wanted(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.wanted)
    }
}
