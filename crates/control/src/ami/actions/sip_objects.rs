//! Objects of pjsip.conf in events: the fields that the field's manual names for each, without their secrets.

use driver::sip::{Aor, AorRow, ContactRow};
use store::config::pjsip::{Identify, Pjsip, Transport};

use super::super::packet::Message;
use crate::cli::identify_matches;

pub(super) fn names<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.collect::<Vec<_>>().join(",")
}

const fn truth(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}

/// Fields of AorDetail, AorList and InboundRegistrationDetail.
pub(super) fn aor<'a>(message: Message<'a>, row: &AorRow) -> Message<'a> {
    let registered = row.contacts.iter().filter(|contact| contact.expires.is_some()).count();
    let message = message.field("ObjectType", "aor").field("ObjectName", &row.name);
    let message = match &row.object {
        Some(object) => qualification(
            message
                .field("MinimumExpiration", object.minimum_expiration)
                .field("MaximumExpiration", object.maximum_expiration)
                .field("DefaultExpiration", object.default_expiration),
            object,
        )
        .field("RemoveExisting", truth(object.remove_existing))
        .field("RemoveUnavailable", truth(object.remove_unavailable))
        .field("Mailboxes", object.mailboxes.join(","))
        .field("OutboundProxy", &object.outbound_proxy)
        .field("SupportPath", truth(object.support_path))
        .field("VoicemailExtension", &object.voicemail),
        None => message,
    };
    message
        .field("MaxContacts", row.max_contacts)
        .field("Contacts", names(row.contacts.iter().map(|contact| contact.uri.as_str())))
        .field("TotalContacts", row.contacts.len())
        .field("ContactsRegistered", registered)
}

/// How the contacts of an AOR are asked whether they answer.
fn qualification<'a>(message: Message<'a>, object: &Aor) -> Message<'a> {
    message
        .field("QualifyFrequency", object.qualify_frequency)
        .field("QualifyTimeout", format_args!("{:.6}", object.qualify_timeout.as_secs_f64()))
        .field("Qualify2xxOnly", truth(object.qualify_2xx_only))
        .field("AuthenticateQualify", truth(object.authenticate_qualify))
}

/// When a contact lapses, seconds since the epoch; 0 for one that does not.
fn lapses(contact: &ContactRow, now: i64) -> i64 {
    contact.expires.map_or(0, |left| now.saturating_add_unsigned(left))
}

/// Fields of ContactStatusDetail; `now` is seconds since the epoch.
pub(super) fn contact_detail<'a>(message: Message<'a>, contact: &ContactRow, now: i64) -> Message<'a> {
    let message = message
        .field("AOR", &contact.aor)
        .field("URI", &contact.uri)
        .field("UserAgent", &contact.user_agent)
        .field("RegExpire", lapses(contact, now))
        .field("ViaAddress", &contact.via)
        .field("CallID", &contact.call_id)
        .field("Status", contact.state.status())
        .field("RoundtripUsec", contact.roundtrip.map_or(0, |time| time.as_micros()))
        .field("EndpointName", &contact.endpoint)
        .field("ID", contact.id())
        .field("OutboundProxy", &contact.object.outbound_proxy)
        .field("Path", &contact.path);
    qualification(message, &contact.object)
}

/// Fields of ContactList; `now` is seconds since the epoch.
pub(super) fn contact_listed<'a>(
    message: Message<'a>,
    contact: &ContactRow,
    server: &str,
    now: i64,
) -> Message<'a> {
    let (address, port) = contact.via.rsplit_once(':').unwrap_or((&contact.via, ""));
    let message = message
        .field("ObjectType", "contact")
        .field("ObjectName", contact.id())
        .field("ViaAddr", address.trim_matches(['[', ']']))
        .field("ViaPort", port)
        .field("CallId", &contact.call_id)
        .field("RegServer", server)
        .field("PruneOnBoot", "no")
        .field("Path", &contact.path)
        .field("Endpoint", &contact.endpoint)
        .field("Aor", &contact.aor)
        .field("Uri", &contact.uri)
        .field("UserAgent", &contact.user_agent)
        .field("ExpirationTime", lapses(contact, now))
        .field("OutboundProxy", &contact.object.outbound_proxy)
        .field("Status", contact.state.status())
        .field("RoundtripUsec", contact.roundtrip.map_or(0, |time| time.as_micros()));
    qualification(message, &contact.object)
}

/// Fields of AuthDetail and AuthList. What proves the user has none.
pub(super) fn auth<'a>(message: Message<'a>, pjsip: &Pjsip, name: &str, user: &str) -> Message<'a> {
    let message = message.field("ObjectType", "auth").field("ObjectName", name).field("Username", user);
    match pjsip.auths.get(name) {
        Some(auth) => message
            .field("Realm", &auth.realm)
            .field("NonceLifetime", auth.nonce_lifetime.as_secs())
            .field("AuthType", if auth.password.is_empty() { "md5" } else { "userpass" }),
        // A row of a database.
        None => message,
    }
}

/// Fields of IdentifyDetail.
pub(super) fn identify<'a>(message: Message<'a>, name: &str, object: Option<&Identify>) -> Message<'a> {
    let message = message.field("ObjectType", "identify").field("ObjectName", name);
    match object {
        Some(object) => message
            .field("Endpoint", &object.endpoint)
            .field("SrvLookups", truth(object.srv_lookups))
            .field("Match", identify_matches(object).join(",")),
        None => message,
    }
}

/// Fields of TransportDetail.
pub(super) fn transport<'a>(message: Message<'a>, name: &str, object: &Transport) -> Message<'a> {
    message
        .field("ObjectType", "transport")
        .field("ObjectName", name)
        .field("Protocol", format!("{:?}", object.protocol).to_ascii_lowercase())
        .field("Bind", object.address().map(|address| address.to_string()).unwrap_or_default())
        .field("CaListFile", &object.ca_list_file)
        .field("CertFile", &object.cert_file)
        .field("PrivKeyFile", &object.priv_key_file)
        .field("ExternalSignalingAddress", &object.external_signaling_address)
        .field("ExternalSignalingPort", object.external_signaling_port)
        .field("ExternalMediaAddress", &object.external_media_address)
        .field("Domain", &object.domain)
        .field("Tos", object.tos)
        .field("Cos", object.cos)
}
