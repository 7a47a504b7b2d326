//! The DNS as the loop asks it: one client for the SIP driver, for dialplans and for the configuration's own names.
//!
//! The driver remembers its answers itself. What dialplans ask is remembered here, for as long as the DNS allows.

use std::collections::HashMap;

use base::Instant;
use base::dns::{Answer, Question, Records};
use call::DnsAnswer;
use io::dns::Client;
use store::config::resolver::Resolver;

/// Questions of dialplans that are remembered; beyond it all are asked again.
const KNOWN_MAX: usize = 4096;
/// The DNS's port.
const PORT: u16 = 53;

/// Whom the configuration has asked.
fn settings(resolver: &Resolver) -> io::dns::Settings {
    io::dns::Settings {
        servers: resolver.nameserver.iter().map(|server| server.or_port(PORT)).collect(),
        resolv_conf: resolver.resolv_conf().to_owned(),
        ..io::dns::Settings::default()
    }
}

/// The loop's end.
pub(crate) struct Names {
    client: Client,
    settings: io::dns::Settings,
    kept: Kept,
}

impl Names {
    pub(crate) fn start(resolver: &Resolver) -> std::io::Result<Self> {
        let settings = settings(resolver);
        let random = || u64::from_le_bytes(crate::secret());
        Ok(Self { client: Client::start(settings.clone(), random)?, settings, kept: Kept::default() })
    }
    pub(crate) fn configure(&mut self, resolver: &Resolver) {
        let settings = settings(resolver);
        if settings != self.settings {
            self.client.configure(settings.clone());
            self.settings = settings;
            self.kept.forget();
        }
    }
    /// Readable when there are answers.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
    /// Asks, once until it was answered.
    pub(crate) fn ask(&mut self, question: &Question) {
        self.client.ask(question);
    }
    /// What is known for dialplans; asks when nothing is.
    pub(crate) fn look_up(&mut self, question: &Question, now: Instant) -> DnsAnswer {
        self.kept.look_up(question, now).unwrap_or_else(|| {
            self.client.ask(question);
            DnsAnswer::Loading
        })
    }
    /// The answers that came.
    pub(crate) fn take_in(&mut self, now: Instant) -> Vec<(Question, Answer)> {
        let came = self.client.take_in();
        came.iter().for_each(|(question, answer)| self.kept.learn(question, answer, now));
        came
    }
}

enum Known {
    Asked,
    Answered { records: Option<Records>, until: Instant },
}

/// What dialplans have asked.
#[derive(Default)]
struct Kept(HashMap<Question, Known>);

impl Kept {
    /// What is known; `None` when it is to be asked.
    fn look_up(&mut self, question: &Question, now: Instant) -> Option<DnsAnswer> {
        match self.0.get(question) {
            Some(Known::Asked) => return Some(DnsAnswer::Loading),
            Some(Known::Answered { records, until }) if now < *until => {
                return Some(records.clone().map_or(DnsAnswer::Failed, DnsAnswer::Ready));
            }
            Some(Known::Answered { .. }) | None => {}
        }
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(question.clone(), Known::Asked);
        None
    }
    /// Keeps an answer that a dialplan has asked for.
    fn learn(&mut self, question: &Question, answer: &Answer, now: Instant) {
        if let Some(known) = self.0.get_mut(question) {
            *known = Known::Answered { records: answer.records.clone(), until: now + answer.keep };
        }
    }
    fn forget(&mut self) {
        self.0.retain(|_, known| matches!(known, Known::Asked));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::dns::Kind;

    use super::*;

    #[test]
    fn an_answer_is_kept_as_long_as_the_dns_allows_and_asked_for_once() {
        let mut kept = Kept::default();
        let (start, wanted) = (Instant::ZERO, Question::new(Kind::Naptr, "1.e164.arpa"));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(kept.look_up(&wanted, start), None, "asked");
        assert_eq!(kept.look_up(&wanted, start), Some(DnsAnswer::Loading), "asked once");
        let none = Records::none(Kind::Naptr);
        let answer = Answer { records: Some(none.clone()), keep: Duration::from_secs(300) };
        kept.learn(&Question::new(Kind::Srv, "1.e164.arpa"), &answer, start);
        assert_eq!(kept.look_up(&wanted, start), Some(DnsAnswer::Loading), "another question's answer");
        kept.learn(&wanted, &answer, start);
        assert_eq!(kept.look_up(&wanted, at(299)), Some(DnsAnswer::Ready(none)));
        assert_eq!(kept.look_up(&wanted, at(300)), None, "asked again");
        kept.learn(&wanted, &Answer { records: None, ..answer.clone() }, at(300));
        assert_eq!(kept.look_up(&wanted, at(301)), Some(DnsAnswer::Failed));
        kept.forget();
        assert_eq!(kept.look_up(&wanted, at(302)), None, "other servers are asked");
        // What only the driver asks is not remembered here.
        kept.learn(&Question::new(Kind::Addresses, "pbx.example"), &answer, start);
        assert_eq!(kept.0.len(), 1);
    }
}
