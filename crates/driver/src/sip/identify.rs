//! Who sent this request? Answers with an endpoint, or nobody; asks no password.

use core::net::IpAddr;
use std::rc::Rc;

use ::sip::digest::Credentials;
use ::sip::{HeaderName, Message};

use super::config::{Config, Endpoint, GUEST, IdentifyBy, Match};

/// The way a request came.
pub(crate) struct Arrival<'a> {
    /// The peer's address.
    pub(crate) source: IpAddr,
    /// The peer's port.
    pub(crate) port: u16,
    /// Our own address that it came to.
    pub(crate) local: IpAddr,
    /// Name of the transport.
    pub(crate) transport: &'a str,
}

/// Finds the endpoint of a request, in the configured order, whatever access lists say: [`may_send`], [`let_in`].
pub(crate) fn endpoint_of(
    config: &Config,
    message: &Message<'_>,
    came: &Arrival<'_>,
) -> Option<Rc<Endpoint>> {
    // All are looked at, also after one has found somebody, so that the time tells nothing of who exists.
    config.order.iter().fold(None, |found, way| {
        let other = by(config, *way, message, came);
        found.or(other)
    })
}

/// Whether anybody at this address may send SIP.
pub(crate) fn may_send(config: &Config, came: &Arrival<'_>) -> bool {
    config.access.as_ref().is_none_or(|allowed| allowed(came.source))
}

/// The endpoint, if its own access list allows the source; whom it refuses gets the answer that strangers get.
pub(crate) fn let_in(found: Rc<Endpoint>, came: &Arrival<'_>) -> Option<Rc<Endpoint>> {
    let allowed = found.access.as_ref().is_none_or(|allowed| allowed(came.source));
    allowed.then_some(found)
}

/// Names that endpoints of a request may have, found or not: each that it says of itself, in the configured order, until one
/// is known. Empty for whoever may not send SIP at all.
pub(crate) fn names(config: &Config, message: &Message<'_>, came: &Arrival<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if !may_send(config, came) {
        return names;
    }
    for way in &config.order {
        let said = match way {
            IdentifyBy::Username => {
                message.from().map(|from| from.uri.user_meant(config.ignore_user_options).into_owned())
            }
            IdentifyBy::AuthUsername => message
                .header(HeaderName::Authorization)
                .and_then(Credentials::parse)
                .map(|credentials| credentials.user().into_owned()),
            _ => None,
        };
        let found = by(config, *way, message, came);
        let said = said.and_then(|said| String::from_utf8(said).ok());
        let name = found.as_ref().map(|endpoint| endpoint.name.to_string()).or(said);
        names.extend(
            name.filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX && !names.contains(name)),
        );
        if found.is_some() {
            break;
        }
    }
    names
}

/// Longest name that is looked up, bytes: what the column `id` of the standard tables holds.
const NAME_BYTES_MAX: usize = 255;

fn by(config: &Config, way: IdentifyBy, message: &Message<'_>, came: &Arrival<'_>) -> Option<Rc<Endpoint>> {
    let willing = |endpoint: &Rc<Endpoint>| endpoint.identify_by.contains(&way);
    match way {
        IdentifyBy::Username => {
            let from = message.from()?;
            let user = from.uri.user_meant(config.ignore_user_options);
            named(config, &user, from.uri.host.as_bytes()).filter(willing)
        }
        IdentifyBy::AuthUsername => {
            let value = message.header(HeaderName::Authorization)?;
            let credentials = Credentials::parse(value)?;
            named(config, &credentials.user(), credentials.realm).filter(willing)
        }
        // A site that names such an endpoint has decided to take calls from anybody.
        IdentifyBy::Anonymous => {
            named(config, GUEST.as_bytes(), message.from().map_or(b"", |from| from.uri.host.as_bytes()))
        }
        IdentifyBy::Ip | IdentifyBy::Header | IdentifyBy::RequestUri | IdentifyBy::Transport => config
            .identifies
            .iter()
            .filter(|identify| identify.transport.is_empty() || identify.transport == came.transport)
            .filter(|identify| identify.matches.iter().any(|m| matches(m, way, message, came)))
            // They name the endpoint themselves: its identify_by is about ways that use a name of its own.
            .find_map(|identify| config.endpoints.get(&identify.endpoint).cloned()),
    }
}

fn named(config: &Config, user: &[u8], domain: &[u8]) -> Option<Rc<Endpoint>> {
    let user = core::str::from_utf8(user).ok()?;
    config.find_user(user, domain, |name| config.endpoints.get(name).cloned())
}

fn matches(rule: &Match, way: IdentifyBy, message: &Message<'_>, came: &Arrival<'_>) -> bool {
    match (rule, way) {
        (Match::Source(within), IdentifyBy::Ip) => within(came.source.to_canonical()),
        (Match::SourcePort(port, within), IdentifyBy::Ip) => {
            *port == came.port && within(came.source.to_canonical())
        }
        (Match::Source(within), IdentifyBy::Transport) => within(came.local.to_canonical()),
        (Match::Header(name, test), IdentifyBy::Header) => {
            let name = HeaderName::from_bytes(name.as_bytes());
            message.headers(name).any(|value| core::str::from_utf8(value).is_ok_and(|value| test(value)))
        }
        (Match::RequestUri(test), IdentifyBy::RequestUri) => {
            core::str::from_utf8(message.request_uri_bytes()).is_ok_and(|uri| test(uri))
        }
        _ => false,
    }
}
