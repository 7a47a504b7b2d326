//! `pjsip.conf` in the words of the SIP driver: what holds for the whole stack, and each object under it.

mod auth;
mod binds;
mod endpoint;
mod identify;
mod publication;
mod registration;

use std::rc::Rc;
use std::time::Duration;

use conf::Findings;
use driver::sip::{Access, Bind, Config, Patience, Trace};
use sip::digest::Algorithm;
use sip::stack::Timers;
use store::Snapshot;
use store::config::pjsip;
use store::config::rtp::StrictRtp;

use self::auth::algorithm;
use self::binds::binds;
use self::identify::{identify, order};
use self::publication::{exchange, inbound_publication, outbound_publish, resource_list};
use self::registration::registration;
use super::Hosts;

pub(crate) use self::auth::sip_auth;
pub(crate) use self::endpoint::sip_endpoint;
pub(crate) use self::registration::sip_aor;

/// The SIP driver's configuration. `hosts` are the addresses of host names in `match=` and of external addresses, as far
/// as they are known; binds that were there `before` keep their numbers.
pub(crate) fn sip_config(
    snapshot: &Snapshot,
    hosts: &Hosts,
    before: &[Bind],
    findings: &mut Findings,
) -> Config {
    let pjsip = &snapshot.pjsip;
    let endpoints = pjsip.endpoints.iter().map(|(name, of)| sip_endpoint(pjsip, name, of, hosts));
    let aors = pjsip.aors.iter().map(|(name, of)| sip_aor(name, of));
    let auths = pjsip.auths.iter().map(|(name, of)| sip_auth(pjsip, name, of));
    let defaults: Vec<Algorithm> =
        pjsip.global.default_auth_algorithms_uas.iter().map(|a| algorithm(*a)).collect();
    let contact_acls: Vec<_> =
        pjsip.acls.iter().filter(|acl| !acl.contact_access.is_empty()).cloned().collect();
    let contact_access: Option<Access> = (!contact_acls.is_empty())
        .then(|| Rc::new(move |ip| contact_acls.iter().all(|acl| acl.contact_access.allows(ip))) as Access);
    let acls = pjsip.acls.clone();
    let access: Option<Access> =
        (!acls.is_empty()).then(|| Rc::new(move |ip| acls.iter().all(|acl| acl.access.allows(ip))) as Access);
    Config {
        endpoints: endpoints.collect(),
        aors: aors.collect(),
        auths: auths.collect(),
        multi_domain: !pjsip.global.disable_multi_domain,
        domain_aliases: pjsip
            .domain_aliases
            .iter()
            .filter(|(_, of)| !of.domain.is_empty())
            .map(|(alias, of)| (alias.to_ascii_lowercase(), of.domain.clone()))
            .collect(),
        identifies: pjsip.identifies.iter().map(|i| identify(i, hosts, findings)).collect(),
        lists: pjsip
            .lists
            .iter()
            .map(|(name, list)| (name.as_str().into(), Rc::new(resource_list(list))))
            .collect(),
        publishes: pjsip
            .publishes
            .iter()
            .filter_map(|(name, of)| Some(Rc::new(outbound_publish(name, of, pjsip, findings)?)))
            .collect(),
        publications: pjsip
            .publications
            .iter()
            .map(|(name, of)| (name.as_str().into(), Rc::new(inbound_publication(of))))
            .collect(),
        exchanges: pjsip
            .exchanges
            .iter()
            .filter_map(|(name, of)| Some((name.as_str().into(), Rc::new(exchange(of, findings)?))))
            .collect(),
        registrations: pjsip.registrations.iter().map(|(name, of)| Rc::new(registration(name, of))).collect(),
        binds: binds(pjsip, hosts, before, findings),
        order: order(&pjsip.global.endpoint_identifier_order),
        default_realm: pjsip.global.default_realm.clone(),
        user_agent: pjsip.global.user_agent.clone(),
        access,
        srtp_replay_protection: snapshot.rtp.srtpreplayprotection,
        strict_rtp: snapshot.rtp.strictrtp != StrictRtp::No,
        rtcp_interval_ms: u16::try_from(snapshot.rtp.rtcpinterval.as_millis()).unwrap_or(5000),
        max_forwards: u8::try_from(pjsip.global.max_forwards).unwrap_or(u8::MAX),
        timers: timers(&pjsip.system),
        tcp_switch: !pjsip.system.disable_tcp_switch,
        default_outbound: pjsip.global.default_outbound_endpoint.clone(),
        default_from_user: pjsip.global.default_from_user.clone(),
        default_algorithms: defaults.clone(),
        contact_access,
        trace: trace(&pjsip.global.debug),
        ignore_user_options: pjsip.global.ignore_uri_user_options,
        ringing_after_progress: pjsip.global.allow_sending_180_after_183,
        initial_qualify: pjsip.global.max_initial_qualify_time,
        callerid_contact: pjsip.global.use_callerid_contact,
        tells_refreshes: pjsip.global.send_contact_status_on_update_registration,
        patience: Patience {
            count: pjsip.global.unidentified_request_count,
            period: pjsip.global.unidentified_request_period,
            prune: pjsip.global.unidentified_request_prune_interval,
        },
        form: sip::Form { compact: pjsip.system.compact_headers, no_rport: pjsip.system.disable_rport },
        offers_all_when_asked: pjsip.global.all_codecs_on_empty_reinvite,
        reg_context: pjsip.global.regcontext.clone(),
        stir: Rc::default(),
    }
}

fn timers(system: &pjsip::System) -> Timers {
    Timers::new(system.timer_t1, Some(system.timer_b).filter(|timeout| !timeout.is_zero()))
}

fn trace(text: &str) -> Trace {
    match (conf::boolean(text), text.parse()) {
        (Some(true), _) => Trace::All,
        (None, Ok(host)) => Trace::Hosts(vec![host]),
        _ => Trace::Off,
    }
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

fn names(list: &[String]) -> Vec<Rc<str>> {
    list.iter().map(|name| name.as_str().into()).collect()
}

/// Mechanisms of security agreements, where such are made; malformed ones were named when they were read.
fn security(negotiation: pjsip::SecurityNegotiation, mechanisms: &[String]) -> Vec<String> {
    let usable = |mechanism: &&String| sip::agreement::is_mechanism(mechanism.as_bytes());
    match negotiation {
        pjsip::SecurityNegotiation::No => Vec::new(),
        pjsip::SecurityNegotiation::Mediasec => mechanisms.iter().filter(usable).cloned().collect(),
    }
}

#[cfg(test)]
mod tests;
