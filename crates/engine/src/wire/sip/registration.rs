//! Where somebody is reached: AORs, at which others register, and registrations of ours elsewhere.

use std::rc::Rc;
use std::time::Duration;

use driver::sip::{Aor, Registration};
use sip::registration::Rules;
use store::config::pjsip;

use super::{names, seconds, security};
use crate::wire::list;

/// An AOR by its name.
pub(crate) fn sip_aor(name: &str, from: &pjsip::Aor) -> (Rc<str>, Rc<Aor>) {
    let name: Rc<str> = name.into();
    (name.clone(), Rc::new(self::aor(name, from)))
}

fn aor(name: Rc<str>, from: &pjsip::Aor) -> Aor {
    Aor {
        name,
        contacts: from.contact.clone(),
        max_contacts: usize::try_from(from.max_contacts).unwrap_or(usize::MAX),
        remove_existing: from.remove_existing,
        remove_unavailable: from.remove_unavailable,
        default_expiration: seconds(from.default_expiration),
        minimum_expiration: seconds(from.minimum_expiration),
        maximum_expiration: seconds(from.maximum_expiration),
        qualify_frequency: seconds(from.qualify_frequency),
        qualify_timeout: from.qualify_timeout,
        qualify_2xx_only: from.qualify_2xx_only,
        authenticate_qualify: from.authenticate_qualify,
        outbound_proxy: from.outbound_proxy.clone(),
        support_path: from.support_path,
        mailboxes: list(&from.mailboxes),
        voicemail: from.voicemail_extension.clone(),
    }
}

pub(super) fn registration(name: &str, from: &pjsip::Registration) -> Registration {
    let wait = |wait: Duration| Some(wait).filter(|wait| !wait.is_zero());
    Registration {
        name: name.into(),
        server_uri: from.server_uri.clone(),
        client_uri: from.client_uri.clone(),
        transport: from.transport.clone(),
        outbound_proxy: from.outbound_proxy.clone(),
        outbound_auths: names(&from.outbound_auth),
        contact_user: from.contact_user.clone(),
        contact_params: from.contact_header_params.clone(),
        rules: Rules {
            expiration: seconds(from.expiration),
            retry: wait(from.retry_interval),
            forbidden_retry: wait(from.forbidden_retry_interval),
            fatal_retry: wait(from.fatal_retry_interval),
            max_retries: from.max_retries,
            rejection_is_permanent: from.auth_rejection_permanent,
        },
        initial_spread: from.max_random_initial_delay,
        line: from.line,
        endpoint: from.endpoint.as_str().into(),
        path: from.support_path,
        outbound: from.support_outbound,
        user_agent: from.user_agent.clone(),
        security: security(from.security_negotiation, &from.security_mechanisms),
    }
}
