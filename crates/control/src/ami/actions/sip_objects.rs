//! Objects of pjsip.conf in events: the fields that the field's manual names for each, without their secrets.

use driver::sip::{Aor, AorRow, ContactRow, RegistrationRow};
use store::config::pjsip::{Identify, Pjsip, Registration, SourceMatch, Transport};
use store::config::word_of;

use super::super::packet::Message;

/// Stands for a secret in the lists, whose readers want to know that there is one.
const HIDDEN: &str = "********";

pub(super) fn names<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.collect::<Vec<_>>().join(",")
}

/// The options of TLS are shown with a capital.
const fn yes(yes: bool) -> &'static str {
    if yes { "Yes" } else { "No" }
}

const fn truth(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}

/// Fields of AorDetail, AorList and InboundRegistrationDetail, but for its contacts.
pub(super) fn aor<'a>(message: Message<'a>, row: &AorRow) -> Message<'a> {
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
    message.field("MaxContacts", row.max_contacts)
}

/// Contacts of an AOR, each behind its name.
pub(super) fn contacts_of(row: &AorRow) -> String {
    let contacts = row.contacts.iter().map(|contact| format!("{}/{}", contact.aor, contact.uri));
    contacts.collect::<Vec<_>>().join(",")
}

/// How many contacts an AOR has, and how many of them have registered.
pub(super) fn aor_counts<'a>(message: Message<'a>, row: &AorRow) -> Message<'a> {
    let registered = row.contacts.iter().filter(|contact| contact.expires.is_some()).count();
    message.field("TotalContacts", row.contacts.len()).field("ContactsRegistered", registered)
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

/// Fields of ContactStatusDetail; `now` is seconds since the epoch. Of one that is written it is not told how it is asked.
pub(super) fn contact_detail<'a>(message: Message<'a>, contact: &ContactRow, now: i64) -> Message<'a> {
    let is_registered = contact.expires.is_some();
    let asked = Some(&contact.object).filter(|_| is_registered);
    let number = |is: fn(&Aor) -> bool| u8::from(asked.is_some_and(|object| is(object)));
    message
        .field("AOR", &contact.aor)
        .field("URI", &contact.uri)
        .field("UserAgent", &contact.user_agent)
        .field("RegExpire", lapses(contact, now))
        .optional("ViaAddress", is_registered.then_some(&contact.via))
        .optional("CallID", is_registered.then_some(&contact.call_id))
        .field("Status", contact.state.status())
        .field("RoundtripUsec", contact.roundtrip_text())
        .field("EndpointName", &contact.endpoint)
        .field("ID", contact.id())
        .field("AuthenticateQualify", number(|object| object.authenticate_qualify))
        .field("OutboundProxy", &contact.object.outbound_proxy)
        .field("Path", &contact.path)
        .field("QualifyFrequency", asked.map_or(0, |object| object.qualify_frequency))
        .field(
            "QualifyTimeout",
            format_args!("{:.3}", asked.map_or(3.0, |object| object.qualify_timeout.as_secs_f64())),
        )
        .field("Qualify2xxOnly", number(|object| object.qualify_2xx_only))
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
        .field("Uri", &contact.uri)
        .field("UserAgent", &contact.user_agent)
        .field("ExpirationTime", lapses(contact, now))
        .field("OutboundProxy", &contact.object.outbound_proxy)
        .field("Status", contact.state.status())
        .field("RoundtripUsec", contact.roundtrip_text());
    let object = &contact.object;
    message
        .field("QualifyFrequency", object.qualify_frequency)
        .field("QualifyTimeout", format_args!("{:.6}", object.qualify_timeout.as_secs_f64()))
        .field("Qualify2xxOnly", truth(object.qualify_2xx_only))
        .field("AuthenticateQualify", if object.authenticate_qualify { "yes" } else { "no" })
}

/// Fields of AuthDetail and AuthList. Of what proves the user it is said that it is there.
pub(super) fn auth<'a>(message: Message<'a>, pjsip: &Pjsip, name: &str, user: &str) -> Message<'a> {
    let message = message.field("ObjectType", "auth").field("ObjectName", name);
    // A row of a database.
    let Some(auth) = pjsip.auths.get(name) else { return message.field("Username", user) };
    let hidden = |is_empty: bool| if is_empty { "" } else { HIDDEN };
    let algorithms = |own: &[_], default: &[_]| {
        let list = if own.is_empty() { default } else { own };
        names(list.iter().map(|algorithm| word_of(*algorithm)))
    };
    let default_uac = [store::config::pjsip::DigestAlgorithm::Md5];
    message
        .field("AuthType", word_of(auth.auth_type))
        .field("Md5Cred", hidden(auth.md5_cred.is_empty()))
        .field("NonceLifetime", auth.nonce_lifetime.as_secs())
        .field("OauthClientid", "")
        .field("OauthSecret", "")
        .field("Password", hidden(auth.password.is_empty()))
        .field("PasswordDigest", hidden(auth.password_digest.is_empty()))
        .field("Realm", &auth.realm)
        .field("RefreshToken", "")
        .field("SupportedAlgorithmsUac", algorithms(&auth.supported_algorithms_uac, &default_uac))
        .field(
            "SupportedAlgorithmsUas",
            algorithms(&auth.supported_algorithms_uas, &pjsip.global.default_auth_algorithms_uas),
        )
        .field("Username", &auth.username)
}

/// A source of an identify: an address with its mask in full.
fn source(source: &SourceMatch) -> String {
    match source {
        SourceMatch::Host(host) => host.clone(),
        SourceMatch::Net(net) => {
            let (address, mask) = net.pair();
            format!("{address}/{mask}")
        }
        SourceMatch::Port(net, port) => {
            let (address, mask) = net.pair();
            format!("{}/{mask}", core::net::SocketAddr::new(address, *port))
        }
    }
}

/// Fields of IdentifyDetail.
pub(super) fn identify<'a>(message: Message<'a>, name: &str, object: Option<&Identify>) -> Message<'a> {
    let message = message.field("ObjectType", "identify").field("ObjectName", name);
    let Some(object) = object else { return message };
    let headers = object.match_header.iter().map(|header| {
        let quote = if header.regex { "/" } else { "" };
        format!("{}: {quote}{}{quote}", header.name, header.value)
    });
    message
        .field("Endpoint", &object.endpoint)
        .field("Match", object.match_source.iter().map(source).collect::<Vec<_>>().join(","))
        .field("MatchHeader", headers.collect::<Vec<_>>().join(","))
        .field("MatchRequestUri", &object.match_request_uri)
        .field("SrvLookups", truth(object.srv_lookups))
}

/// Fields of TransportDetail.
pub(super) fn transport<'a>(message: Message<'a>, name: &str, object: &Transport) -> Message<'a> {
    let nets = object.local_net.iter().map(|net| {
        let (address, mask) = net.pair();
        format!("{address}/{mask}")
    });
    // The method of the field's own default has this name.
    let method = match word_of(object.method) {
        "default" => "unspecified",
        method => method,
    };
    message
        .field("ObjectType", "transport")
        .field("ObjectName", name)
        .field("AllowReload", truth(object.allow_reload))
        .field("AllowWildcardCerts", yes(object.allow_wildcard_certs))
        .field("AsyncOperations", 1)
        .field("Bind", object.address().map(|address| address.to_string()).unwrap_or_default())
        .field("CaListFile", &object.ca_list_file)
        .field("CaListPath", &object.ca_list_path)
        .field("CertFile", &object.cert_file)
        .field("Cipher", object.cipher.join(","))
        .field("Cos", object.cos)
        .field("Domain", &object.domain)
        .field("ExternalMediaAddress", &object.external_media_address)
        .field("ExternalSignalingAddress", &object.external_signaling_address)
        .field("ExternalSignalingPort", object.external_signaling_port)
        .field("LocalNet", nets.collect::<Vec<_>>().join(","))
        .field("Method", method)
        .field("Password", if object.password.is_empty() { "" } else { HIDDEN })
        .field("PrivKeyFile", &object.priv_key_file)
        .field("Protocol", format!("{:?}", object.protocol).to_ascii_lowercase())
        .field("RequireClientCert", yes(object.require_client_cert))
        .field("SymmetricTransport", truth(object.symmetric_transport))
        .field("TcpKeepaliveEnable", truth(object.tcp_keepalive_enable))
        .field("TcpKeepaliveIdleTime", object.tcp_keepalive_idle_time.as_secs())
        .field("TcpKeepaliveIntervalTime", object.tcp_keepalive_interval_time.as_secs())
        .field("TcpKeepaliveProbeCount", object.tcp_keepalive_probe_count)
        .field("Tos", object.tos)
        .field("VerifyClient", yes(object.verify_client))
        .field("VerifyServer", yes(object.verify_server))
        .field("WebsocketWriteTimeout", 100)
}

/// Fields of OutboundRegistrationDetail, but for how it stands.
pub(super) fn registration<'a>(
    message: Message<'a>,
    row: &RegistrationRow,
    object: Option<&Registration>,
) -> Message<'a> {
    let message = message.field("ObjectType", "registration").field("ObjectName", &row.name);
    let Some(object) = object else {
        return message
            .field("ClientUri", &row.client_uri)
            .field("OutboundAuth", &row.auth)
            .field("ServerUri", &row.server_uri);
    };
    message
        .field("AuthRejectionPermanent", truth(object.auth_rejection_permanent))
        .field("ClientUri", &row.client_uri)
        .field("ContactHeaderParams", &object.contact_header_params)
        .field("ContactUser", if object.origin.has("contact_user") { &*object.contact_user } else { "" })
        .field("Endpoint", &object.endpoint)
        .field("Expiration", object.expiration.as_secs())
        .field("FatalRetryInterval", object.fatal_retry_interval.as_secs())
        .field("ForbiddenRetryInterval", object.forbidden_retry_interval.as_secs())
        .field("Line", truth(object.line))
        .field("MaxRandomInitialDelay", object.max_random_initial_delay.as_secs())
        .field("MaxRetries", object.max_retries)
        .field("OutboundAuth", object.outbound_auth.join(","))
        .field("OutboundProxy", &object.outbound_proxy)
        .field("RetryInterval", object.retry_interval.as_secs())
        .field("SecurityNegotiation", word_of(object.security_negotiation))
        .field("ServerUri", &row.server_uri)
        .field("SupportOutbound", if object.support_outbound { "yes" } else { "no" })
        .field("SupportPath", truth(object.support_path))
        .field("Transport", &object.transport)
        .field("UserAgent", &object.user_agent)
}
