//! States that are told outside of calls: resource lists, what is published elsewhere, and what others may publish here.

use std::rc::Rc;
use std::time::Duration;

use conf::Findings;
use driver::sip::{Exchange, Filter, InboundPublication, OutboundPublish, ResourceList};
use store::config::{Origin, pjsip};

use super::{names, seconds};

pub(super) fn resource_list(from: &pjsip::ResourceList) -> ResourceList {
    ResourceList {
        event: from.event.clone(),
        items: from.list_item.clone(),
        full_state: from.full_state,
        display_names: from.resource_display_name,
        batch: Duration::from_millis(from.notification_batch_interval.into()),
    }
}

/// A regular expression of an option; empty lets everything pass. `None`: it cannot be read, and what it belongs to is left
/// out, so that nothing is told or believed that should not be.
fn filter(text: &str, option: &str, origin: &Origin, findings: &mut Findings) -> Option<Filter> {
    if text.is_empty() {
        return Some(Filter::default());
    }
    match regex::Regex::new(text) {
        Ok(pattern) => {
            Some(Filter { text: text.to_owned(), test: Rc::new(move |name| pattern.is_match(name)) })
        }
        Err(why) => {
            let message =
                format!("[{}] has an expression in {option} that cannot be read: {why}", origin.name);
            findings.error(origin.place_of(option), message, "correct the expression");
            None
        }
    }
}

pub(super) fn outbound_publish(
    name: &str,
    from: &pjsip::OutboundPublish,
    pjsip: &pjsip::Pjsip,
    findings: &mut Findings,
) -> Option<OutboundPublish> {
    let mut filter = |text: &str, option: &str| filter(text, option, &from.origin, findings);
    let asks = pjsip.exchanges.values().any(|exchange| {
        (exchange.device_state && exchange.devicestate_publish == name)
            || (exchange.mailbox_state && exchange.mailboxstate_publish == name)
    });
    Some(OutboundPublish {
        name: name.into(),
        event: from.event.clone(),
        server_uri: from.server_uri.clone(),
        from_uri: from.from_uri.clone(),
        to_uri: from.to_uri.clone(),
        expiration: seconds(from.expiration),
        rejections_max: from.max_auth_attempts,
        multi_user: from.multi_user,
        outbound_auths: names(&from.outbound_auth),
        outbound_proxy: from.outbound_proxy.clone(),
        transport: from.transport.clone(),
        body: from.body.clone(),
        contexts: filter(&from.context, "@context")?,
        extens: filter(&from.exten, "@exten")?,
        devices: filter(&from.device_state_filter, "@device_state_filter")?,
        mailboxes: filter(&from.mailbox_state_filter, "@mailbox_state_filter")?,
        asks,
    })
}

pub(super) fn inbound_publication(from: &pjsip::InboundPublication) -> InboundPublication {
    InboundPublication {
        endpoint: from.endpoint.as_str().into(),
        devices: from.devices.as_str().into(),
        mailboxes: from.mailboxes.as_str().into(),
    }
}

pub(super) fn exchange(from: &pjsip::AsteriskPublication, findings: &mut Findings) -> Option<Exchange> {
    let mut filter = |text: &str, option: &str| filter(text, option, &from.origin, findings);
    let devices = filter(&from.device_state_filter, "device_state_filter")?;
    let mailboxes = filter(&from.mailbox_state_filter, "mailbox_state_filter")?;
    Some(Exchange {
        devices: from.device_state.then_some(devices),
        mailboxes: from.mailbox_state.then_some(mailboxes),
        devices_publish: from.devicestate_publish.clone(),
        mailboxes_publish: from.mailboxstate_publish.clone(),
    })
}
