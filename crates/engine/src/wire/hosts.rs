//! Names that the configuration itself depends on: which are to be asked for, and what the DNS has said of them.

use core::net::IpAddr;
use std::collections::BTreeMap;

use base::dns::{Kind, Question, Records};
use store::Snapshot;
use store::config::pjsip::SourceMatch;

/// The services of SIP that a name may have (RFC 3263 §4.1), as labels before it.
const SERVICES: [&str; 3] = ["_sip._udp", "_sip._tcp", "_sips._tcp"];
/// Servers of one service that are looked at.
const SERVERS_MAX: usize = 32;

/// What the DNS has said of the names that the configuration itself depends on.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Addresses of hosts.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Hosts that serve, by the name of the service.
    services: BTreeMap<String, Vec<String>>,
}

impl Hosts {
    /// Takes an answer in; whether it says something new.
    pub(crate) fn learn(&mut self, question: &Question, records: &Records) -> bool {
        let name = question.name.clone();
        match records {
            Records::Addresses(found) => {
                let found = found.to_vec();
                self.addresses.insert(name, found.clone()).as_ref() != Some(&found)
            }
            Records::Srv(found) => {
                let targets = found.iter().take(SERVERS_MAX).filter(|record| !record.target.is_empty());
                let targets: Vec<String> =
                    targets.map(|record| Question::new(Kind::Addresses, &record.target).name).collect();
                self.services.insert(name, targets.clone()).as_ref() != Some(&targets)
            }
            Records::Naptr(_) => false,
        }
    }
    /// The addresses of a host, and of its servers when they count.
    pub(super) fn of(&self, host: &str, with_servers: bool) -> Vec<IpAddr> {
        let servers = SERVICES.iter().filter(|_| with_servers).flat_map(|service| {
            self.services.get(&format!("{service}.{host}")).into_iter().flatten().map(String::as_str)
        });
        let addresses = |name| self.addresses.get(name).into_iter().flatten().copied();
        core::iter::once(host).chain(servers).flat_map(addresses).collect()
    }
}

/// What is to be asked for `identify` objects and for our own addresses as the world sees them, as far as it is known that it
/// has to be: which servers a name has, another answer says. Contacts and proxies are asked for by the driver.
pub(crate) fn questions(snapshot: &Snapshot, hosts: &Hosts) -> Vec<Question> {
    let mut questions: Vec<Question> =
        host_names(snapshot).iter().map(|name| Question::new(Kind::Addresses, name)).collect();
    let identifies = snapshot.pjsip.identifies.iter().filter(|identify| identify.srv_lookups);
    for source in identifies.flat_map(|identify| &identify.match_source) {
        let SourceMatch::Host(host) = source else { continue };
        for service in SERVICES {
            let service = Question::new(Kind::Srv, &format!("{service}.{}", bare(host)));
            let servers = hosts.services.get(&service.name).into_iter().flatten();
            questions.extend(servers.map(|server| Question::new(Kind::Addresses, server)));
            questions.push(service);
        }
    }
    questions
}

/// Host names that the configuration itself depends on, for the resolver: in `match=`, and our own addresses as the world
/// sees them. Contacts and proxies are asked for by the driver.
fn host_names(snapshot: &Snapshot) -> Vec<String> {
    let pjsip = &snapshot.pjsip;
    let sources = pjsip.identifies.iter().flat_map(|identify| &identify.match_source);
    let mut names: Vec<String> = sources
        .filter_map(|source| match source {
            SourceMatch::Host(host) => Some(bare(host)),
            SourceMatch::Net(_) | SourceMatch::Port(..) => None,
        })
        .collect();
    let own = pjsip.transports.values().map(|transport| &transport.external_media_address);
    let own = own.chain(pjsip.endpoints.values().map(|endpoint| &endpoint.media_address));
    let named = own.filter(|text| !text.is_empty() && text.parse::<IpAddr>().is_err());
    names.extend(named.map(|text| text.to_ascii_lowercase()));
    names.sort();
    names.dedup();
    names
}

/// A host of `match=` without its port.
pub(super) fn bare(host: &str) -> String {
    host.split(':').next().unwrap_or(host).to_ascii_lowercase()
}

/// An address written as one, or the first that its name has.
pub(super) fn address_of(text: &str, hosts: &Hosts) -> Option<IpAddr> {
    let first = || hosts.addresses.get(&text.to_ascii_lowercase())?.first().copied();
    text.parse().ok().or_else(first)
}

#[cfg(test)]
mod tests;
