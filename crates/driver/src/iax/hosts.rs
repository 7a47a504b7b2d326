//! Addresses of host names: the shell asks the DNS, this remembers what it said.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;

use base::Instant;
use base::dns::{Answer, Kind, Question, Records, by_rank};
use base::hash::Randomness;

/// Whether a host is written as an address, which the DNS is not asked for.
pub(super) fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// After this long without an answer a name is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Names remembered; a site has tens. Beyond it the table starts over, so that nobody can fill it.
const NAMES_MAX: usize = 4096;
/// Services of a host that are tried.
const SERVICES_MAX: usize = 8;

/// The services of a host that speaks IAX2 (RFC 2782; `srvlookup`).
const SERVICE: &str = "_iax._udp";

#[derive(Default)]
struct Known {
    addresses: Vec<IpAddr>,
    /// Host and port of services, in the order in which they are to be tried.
    services: Vec<(String, u16)>,
    ask_at: Instant,
    answered: bool,
}

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    At(SocketAddr),
    /// The answer is awaited.
    Awaited,
    Nowhere,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Hosts {
    known: BTreeMap<Question, Known>,
    wanted: Vec<Question>,
}

impl Hosts {
    /// What is known, after asking when it is not or no longer fresh; `None`: that name cannot be asked for.
    fn look(&mut self, kind: Kind, name: &str, now: Instant) -> Option<&Known> {
        let question = Question::new(kind, name);
        if !question.is_askable() {
            return None;
        }
        if self.known.len() >= NAMES_MAX && !self.known.contains_key(&question) {
            self.known.clear();
        }
        let known = self.known.entry(question.clone()).or_default();
        if known.ask_at <= now {
            known.ask_at = now + ASK_AGAIN;
            self.wanted.push(question);
        }
        Some(known)
    }
    /// The address of a host, by name or as it is written. With `services` its SRV records go first, and have ports of their
    /// own.
    pub(super) fn find(&mut self, host: &str, port: u16, services: bool, now: Instant) -> Found {
        self.find_again(host, port, services, now, None)
    }
    /// The same for who was found `before`: while the name still means that address it stays, in whatever order the DNS
    /// names its addresses, and while nobody knows better, too.
    pub(super) fn find_again(
        &mut self,
        host: &str,
        port: u16,
        services: bool,
        now: Instant,
        before: Option<SocketAddr>,
    ) -> Found {
        match (self.look_through(host, port, services, now, before), before) {
            (Found::Awaited | Found::Nowhere, Some(before)) => Found::At(before),
            (found, _) => found,
        }
    }
    fn look_through(
        &mut self,
        host: &str,
        port: u16,
        services: bool,
        now: Instant,
        before: Option<SocketAddr>,
    ) -> Found {
        if let Ok(ip) = host.trim_matches(['[', ']']).parse() {
            return Found::At(SocketAddr::new(ip, port));
        }
        if services {
            let known = self.look(Kind::Srv, &format!("{SERVICE}.{host}"), now);
            let Some(known) = known.filter(|known| known.answered) else { return Found::Awaited };
            let mut awaited = false;
            for (target, port) in known.services.clone() {
                match self.address(&target, port, now, before) {
                    Found::Nowhere => {}
                    Found::Awaited => awaited = true,
                    // Better ones may still be asked for: this one is there.
                    found @ Found::At(_) => return found,
                }
            }
            if awaited {
                return Found::Awaited;
            }
        }
        self.address(host, port, now, before)
    }
    fn address(&mut self, host: &str, port: u16, now: Instant, before: Option<SocketAddr>) -> Found {
        let Some(known) = self.look(Kind::Addresses, host, now) else { return Found::Nowhere };
        let before = before.filter(|before| before.port() == port).map(|before| before.ip());
        let same = known.addresses.iter().find(|address| Some(**address) == before);
        match (same.or(known.addresses.first()), known.answered) {
            (Some(address), _) => Found::At(SocketAddr::new(*address, port)),
            (None, true) => Found::Nowhere,
            (None, false) => Found::Awaited,
        }
    }
    /// The answer; whether it is news.
    pub(super) fn learn(
        &mut self,
        question: &Question,
        answer: &Answer,
        random: &mut Randomness,
        now: Instant,
    ) -> bool {
        let Some(known) = self.known.get_mut(question) else { return false };
        if answer.records.is_none() && known.answered {
            // Nobody says otherwise.
            known.ask_at = now + answer.keep.max(ASK_AGAIN);
            return false;
        }
        let records = answer.records.as_ref();
        let addresses = records.map(|records| records.addresses().to_vec()).unwrap_or_default();
        let services = match records {
            Some(Records::Srv(found)) => {
                let mut draw = |most: u32| random.below(u64::from(most) + 1) as u32;
                let ranked = by_rank(found, &mut draw).into_iter().take(SERVICES_MAX);
                ranked.map(|service| (service.target.clone(), service.port)).collect()
            }
            _ => Vec::new(),
        };
        let same_services = services.len() == known.services.len()
            && services.iter().all(|service| known.services.contains(service));
        let news = !known.answered || known.addresses != addresses || !same_services;
        // The order that was drawn stays while the services do.
        let services = if same_services { core::mem::take(&mut known.services) } else { services };
        *known = Known { addresses, services, ask_at: now + answer.keep, answered: true };
        news
    }
    pub(super) fn take_wanted(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::dns::Srv;
    use base::hash::Key;

    fn answer(records: Records) -> Answer {
        Answer { records: Some(records), keep: Duration::from_secs(60) }
    }

    #[test]
    fn rfc2782_services_go_before_the_hosts_own_address_and_have_ports_of_their_own() {
        let (now, mut random) = (Instant::ZERO + Duration::from_secs(1), Randomness::new(Key::new(1)));
        let service =
            |priority, port, target: &str| Srv { priority, weight: 0, port, target: target.to_owned() };
        for (name, services, expected) in [
            (
                "the one that is preferred",
                vec![service(2, 1, "b.example"), service(1, 5036, "a.example")],
                "192.0.2.1:5036",
            ),
            (
                "the next one that is there",
                vec![service(1, 7, "gone.example"), service(2, 8, "b.example")],
                "192.0.2.2:8",
            ),
            ("none", vec![], "192.0.2.9:4569"),
        ] {
            let mut hosts = Hosts::default();
            for _ in 0..4 {
                let _ = hosts.find("x.example", 4569, true, now);
                for question in hosts.take_wanted() {
                    let addresses =
                        |ip: [u8; 4]| Records::Addresses([IpAddr::from(ip)].into_iter().collect());
                    let records = match (question.kind, question.name.as_str()) {
                        (Kind::Srv, "_iax._udp.x.example") => {
                            Records::Srv(services.iter().cloned().collect())
                        }
                        (_, "a.example") => addresses([192, 0, 2, 1]),
                        (_, "b.example") => addresses([192, 0, 2, 2]),
                        (_, "x.example") => addresses([192, 0, 2, 9]),
                        (kind, _) => Records::none(kind),
                    };
                    hosts.learn(&question, &answer(records), &mut random, now);
                }
            }
            assert_eq!(
                hosts.find("x.example", 4569, true, now),
                Found::At(expected.parse().unwrap()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_written_as_an_address_is_asked_of_nobody() {
        let mut hosts = Hosts::default();
        let found = hosts.find("192.0.2.1", 4569, true, Instant::ZERO);
        assert_eq!(found, Found::At("192.0.2.1:4569".parse().unwrap()));
        assert!(hosts.take_wanted().is_empty());
    }
}
