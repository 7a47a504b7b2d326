//! Who a request is from: the rules of `identify` objects, and the order in which ways to find out are tried.

use std::rc::Rc;

use conf::Findings;
use driver::sip::{Identify, IdentifyBy, Match};
use store::config::pjsip::{self, SourceMatch};

use crate::wire::hosts::{Hosts, bare};

/// The order of identification: as written, and then every other way there is.
pub(super) fn order(names: &[String]) -> Vec<IdentifyBy> {
    let written = names.iter().filter_map(|name| match name.to_ascii_lowercase().as_str() {
        "ip" => Some(IdentifyBy::Ip),
        "username" => Some(IdentifyBy::Username),
        "auth_username" => Some(IdentifyBy::AuthUsername),
        "header" => Some(IdentifyBy::Header),
        "request_uri" => Some(IdentifyBy::RequestUri),
        "transport" => Some(IdentifyBy::Transport),
        "anonymous" => Some(IdentifyBy::Anonymous),
        _ => None,
    });
    let mut order: Vec<IdentifyBy> = written.collect();
    let all = [
        IdentifyBy::Ip,
        IdentifyBy::Username,
        IdentifyBy::Anonymous,
        IdentifyBy::AuthUsername,
        IdentifyBy::Header,
        IdentifyBy::RequestUri,
        IdentifyBy::Transport,
    ];
    for unnamed in all {
        if !order.contains(&unnamed) {
            order.push(unnamed);
        }
    }
    order
}

pub(super) fn identify(from: &pjsip::Identify, hosts: &Hosts, findings: &mut Findings) -> Identify {
    let mut matches = Vec::new();
    for source in &from.match_source {
        match source {
            SourceMatch::Net(net) => {
                let net = *net;
                matches.push(Match::Source(Rc::new(move |ip| net.contains(ip))));
            }
            SourceMatch::Port(net, port) => {
                let net = *net;
                matches.push(Match::SourcePort(*port, Rc::new(move |ip| net.contains(ip))));
            }
            SourceMatch::Host(host) => {
                // A port says which one is meant: no service is asked for (RFC 3263 §4.2).
                let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
                let known = hosts.of(&bare(host), from.srv_lookups && port.is_none());
                let is_in: driver::sip::Access = Rc::new(move |ip| known.contains(&ip.to_canonical()));
                matches.push(match port {
                    Some(port) => Match::SourcePort(port, is_in),
                    None => Match::Source(is_in),
                });
            }
        }
    }
    for header in &from.match_header {
        if let Some(test) = tester(&header.value, header.regex, from, findings) {
            matches.push(Match::Header(header.name.clone(), test));
        }
    }
    let uri = &from.match_request_uri;
    if !uri.is_empty() {
        let inner = uri.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
        if let Some(test) = tester(inner.unwrap_or(uri), inner.is_some(), from, findings) {
            matches.push(Match::RequestUri(test));
        }
    }
    Identify {
        name: Rc::from(&*from.origin.name),
        endpoint: from.endpoint.as_str().into(),
        matches,
        transport: from.transport.clone(),
    }
}

/// A test of a header's value or of a Request-URI.
type Test = Rc<dyn Fn(&str) -> bool>;

fn tester(text: &str, is_regex: bool, from: &pjsip::Identify, findings: &mut Findings) -> Option<Test> {
    if !is_regex {
        let wanted = text.to_owned();
        return Some(Rc::new(move |value| value.trim() == wanted));
    }
    match regex::Regex::new(text) {
        Ok(pattern) => Some(Rc::new(move |value| pattern.is_match(value))),
        Err(why) => {
            let message =
                format!("identify '{}' has an expression that cannot be read: {why}", from.origin.name);
            findings.error(&from.origin.place, message, "correct the expression");
            None
        }
    }
}
