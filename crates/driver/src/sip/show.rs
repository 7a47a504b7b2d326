//! What `pjsip show …` and the manager's lists tell, as data; the dialects print it.

use core::time::Duration;
use std::rc::Rc;

use call::{Core, DeviceState, Tech as _};

use super::config::{Aor, ResourceList};
use super::qualify::Reachable;
use super::{SipDriver, identity};

/// What is known of a contact, in the words of `pjsip show contacts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContactState {
    /// Not asked.
    NonQualified,
    /// Asked, no answer yet.
    Unknown,
    /// Answers.
    Available,
    /// Does not answer.
    Unavailable,
}

impl ContactState {
    /// The word of events and of `PJSIP_CONTACT()`.
    pub const fn status(self) -> &'static str {
        match self {
            Self::NonQualified => "NonQualified",
            Self::Unknown => "Unknown",
            Self::Available => "Reachable",
            Self::Unavailable => "Unreachable",
        }
    }
    /// The column's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonQualified => "NonQual",
            Self::Unknown => "Unknown",
            Self::Available => "Avail",
            Self::Unavailable => "Unavail",
        }
    }
}

/// One contact.
#[derive(Debug, Clone)]
pub struct ContactRow {
    /// AOR.
    pub aor: String,
    /// Endpoint that lists the AOR.
    pub endpoint: String,
    /// URI.
    pub uri: String,
    /// State.
    pub state: ContactState,
    /// Last round trip.
    pub roundtrip: Option<Duration>,
    /// User agent, when it registered.
    pub user_agent: String,
    /// Where it registered from.
    pub via: String,
    /// Seconds until it lapses; `None` for a contact of the configuration.
    pub expires: Option<u64>,
    /// Call-ID of the REGISTER that made it.
    pub call_id: String,
    /// Path of that REGISTER, first hop first.
    pub path: String,
    /// The AOR as it is configured: how the contact is asked whether it answers.
    pub object: Rc<Aor>,
}

impl ContactRow {
    /// Its name in lists, in databases and for `PJSIP_CONTACT()`: the AOR's, and the MD5 of the URI.
    pub fn id(&self) -> String {
        let sign = if self.expires.is_some() { ";@" } else { "@@" };
        format!("{}{sign}{}", self.aor, self.hash())
    }
    /// The MD5 of its URI, in hexadecimal.
    pub fn hash(&self) -> String {
        contact_hash(self.uri.as_bytes())
    }
    /// Microseconds of the last round trip, as they are shown.
    pub fn roundtrip_text(&self) -> String {
        self.roundtrip.map_or_else(|| "N/A".to_owned(), |time| time.as_micros().to_string())
    }
}

/// The MD5 of a contact's URI, by which contacts of one AOR are told apart and put in order.
pub(crate) fn contact_hash(uri: &[u8]) -> String {
    identity::text(::sip::digest::Algorithm::Md5.hash(&[uri]).as_bytes())
}

/// One AOR.
#[derive(Debug, Clone)]
pub struct AorRow {
    /// Name.
    pub name: String,
    /// `max_contacts`.
    pub max_contacts: usize,
    /// Contacts.
    pub contacts: Vec<ContactRow>,
    /// As it is configured; `None` for a name that an endpoint lists and nobody describes.
    pub object: Option<Rc<Aor>>,
}

/// One endpoint.
#[derive(Debug, Clone)]
pub struct EndpointRow {
    /// Name.
    pub name: String,
    /// Caller id.
    pub caller: String,
    /// Device state.
    pub state: DeviceState,
    /// Channels up or on their way: names.
    pub channels: Vec<String>,
    /// Auths for its requests: section and user name.
    pub auths: Vec<(String, String)>,
    /// AORs.
    pub aors: Vec<AorRow>,
    /// Transport, when one is named.
    pub transport: String,
    /// Identifies that point at it.
    pub identifies: Vec<String>,
    /// It is a row of a database.
    pub is_realtime: bool,
    /// Options in effect, name and value, for `pjsip show endpoint NAME`.
    pub options: Vec<(&'static str, String)>,
}

impl SipDriver {
    /// Resource lists by name.
    pub fn resource_lists(&self) -> Vec<(String, Rc<ResourceList>)> {
        self.config.lists.iter().map(|(name, list)| (name.to_string(), list.clone())).collect()
    }
    /// Contacts, of one AOR or of all.
    pub fn contact_rows(&self, only: Option<&str>, core: &Core) -> Vec<ContactRow> {
        let mut rows = Vec::new();
        for aor in self.config.aors.values().filter(|aor| only.is_none_or(|only| *aor.name == *only)) {
            let endpoint = self.endpoint_of_aor(&aor.name);
            let row = |uri: &[u8]| {
                let (reachable, roundtrip) = self.qualify.state(&aor.name, uri);
                ContactRow {
                    aor: aor.name.to_string(),
                    endpoint: endpoint.clone(),
                    uri: identity::text(uri),
                    state: match reachable {
                        Reachable::NotAsked => ContactState::NonQualified,
                        Reachable::Unknown => ContactState::Unknown,
                        Reachable::Yes => ContactState::Available,
                        Reachable::No => ContactState::Unavailable,
                    },
                    roundtrip,
                    user_agent: String::new(),
                    via: String::new(),
                    expires: None,
                    call_id: String::new(),
                    path: String::new(),
                    object: aor.clone(),
                }
            };
            let first = rows.len();
            rows.extend(aor.contacts.iter().map(|uri| row(uri.as_bytes())));
            rows.extend(self.registrations.registrar.bindings(&aor.name).iter().map(|binding| ContactRow {
                user_agent: identity::text(&binding.user_agent),
                via: binding.source.remote.to_string(),
                expires: Some(binding.expires_at.since(core.now).as_secs()),
                call_id: identity::text(&binding.call_id),
                path: binding.path.iter().map(|hop| identity::text(hop)).collect::<Vec<_>>().join(", "),
                ..row(&binding.uri)
            }));
            rows.get_mut(first..).unwrap_or_default().sort_by_cached_key(ContactRow::id);
        }
        rows
    }
    /// AORs.
    pub fn aor_rows(&self, core: &Core) -> Vec<AorRow> {
        self.config.aors.keys().map(|name| self.aor_row(name, core)).collect()
    }
    fn aor_row(&self, name: &str, core: &Core) -> AorRow {
        let object = self.config.aors.get(name).cloned();
        AorRow {
            name: name.to_owned(),
            max_contacts: object.as_ref().map_or(0, |aor| aor.max_contacts),
            contacts: self.contact_rows(Some(name), core),
            object,
        }
    }
    /// Endpoints, one or all.
    pub fn endpoint_rows(&self, only: Option<&str>, core: &Core) -> Vec<EndpointRow> {
        let wanted = self.config.endpoints.values().filter(|e| only.is_none_or(|only| *e.name == *only));
        wanted
            .map(|endpoint| {
                let channels = self.legs.of_endpoint(&endpoint.name);
                let names =
                    channels.filter_map(|leg| core.get(leg.channel)).map(|c| c.name.to_string()).collect();
                let auths = endpoint.auths.iter().map(|name| {
                    let user = self.config.auths.get(name).map(|auth| auth.username.clone());
                    (name.to_string(), user.unwrap_or_default())
                });
                let aors = endpoint.aors.iter().map(|name| self.aor_row(name, core));
                let identifies = self.config.identifies.iter().filter(|i| i.endpoint == endpoint.name);
                EndpointRow {
                    name: endpoint.name.to_string(),
                    caller: endpoint.caller.all(),
                    state: self.device_state(core, &endpoint.name),
                    channels: names,
                    auths: auths.collect(),
                    aors: aors.collect(),
                    transport: endpoint.transport.clone(),
                    identifies: identifies.map(|i| i.name.to_string()).collect(),
                    is_realtime: endpoint.is_realtime,
                    options: options(endpoint),
                }
            })
            .collect()
    }
}

/// `security_negotiation` as it has effect with these mechanisms.
pub(super) fn negotiation(mechanisms: &[String]) -> &'static str {
    if mechanisms.is_empty() { "no" } else { "mediasec" }
}

/// The options `pjsip show endpoint` lists, in its order.
pub(super) fn options(endpoint: &super::Endpoint) -> Vec<(&'static str, String)> {
    let formats = endpoint.allow.iter().map(|format| format.name()).collect::<Vec<_>>().join("|");
    let rel100 = match endpoint.rel100 {
        super::Rel100::No => "no",
        super::Rel100::Yes => "yes",
        super::Rel100::PeerSupported => "peer_supported",
        super::Rel100::Required => "required",
    };
    let redirect = match endpoint.redirect {
        super::Redirect::User => "user",
        super::Redirect::UriCore => "uri_core",
        super::Redirect::UriPjsip => "uri_pjsip",
    };
    let timers = match endpoint.timers.policy {
        ::sip::session::Policy::No => "no",
        ::sip::session::Policy::Yes => "yes",
        ::sip::session::Policy::Required => "required",
        ::sip::session::Policy::Always => "always",
    };
    let mut all = vec![
        ("100rel", rel100.to_owned()),
        ("accountcode", endpoint.account.clone()),
        ("tenantid", endpoint.tenant.to_string()),
        ("allow", format!("({formats})")),
        ("aors", endpoint.aors.join(",")),
        ("auth", endpoint.auths.join(",")),
        (
            "callerid",
            Some(endpoint.caller.all())
                .filter(|all| !all.is_empty())
                .unwrap_or_else(|| "<unknown>".to_owned()),
        ),
        ("call_limit", endpoint.call_limit.to_string()),
        ("context", endpoint.context.clone()),
        ("device_state_busy_at", endpoint.busy_at.to_string()),
        ("dtmf_mode", endpoint.dtmf.name().to_owned()),
        ("force_rport", truth(endpoint.force_rport)),
        ("from_domain", endpoint.from_domain.clone()),
        ("from_user", endpoint.from_user.clone()),
        ("inband_progress", truth(endpoint.inband_progress)),
        ("language", endpoint.language.clone()),
        ("media_address", endpoint.media_address.map(|ip| ip.to_string()).unwrap_or_default()),
        ("media_encryption", if endpoint.encryption.is_some() { "sdes" } else { "no" }.to_owned()),
        ("media_encryption_optimistic", truth(endpoint.encryption.is_some_and(|wanted| wanted.optimistic))),
        ("moh_suggest", endpoint.music_class.clone()),
        ("outbound_auth", endpoint.outbound_auths.join(",")),
        ("redirect_method", redirect.to_owned()),
        ("rewrite_contact", truth(endpoint.rewrite_contact)),
        ("rtp_keepalive", endpoint.rtp_keepalive.to_string()),
        ("rtp_symmetric", truth(endpoint.rtp_symmetric)),
        ("rtp_timeout", endpoint.rtp_timeout.to_string()),
        ("rtp_timeout_hold", endpoint.rtp_timeout_hold.to_string()),
        ("security_mechanisms", endpoint.security.join(",")),
        ("security_negotiation", negotiation(&endpoint.security).to_owned()),
        ("send_connected_line", yes(endpoint.send_connected_line)),
        ("send_diversion", truth(endpoint.send_diversion)),
        ("send_history_info", truth(endpoint.send_history)),
        ("one_touch_recording", truth(endpoint.recording.by_key)),
        ("record_on_feature", endpoint.recording.on_feature.clone()),
        ("record_off_feature", endpoint.recording.off_feature.clone()),
        ("send_aoc", truth(endpoint.send_aoc)),
        ("send_pai", truth(endpoint.send_pai)),
        ("send_rpid", truth(endpoint.send_rpid)),
        ("stir_shaken_profile", endpoint.stir_profile.clone()),
        ("timers", timers.to_owned()),
        ("timers_min_se", endpoint.timers.min_se.to_string()),
        ("timers_sess_expires", endpoint.timers.expires.to_string()),
        ("tone_zone", endpoint.tone_zone.clone()),
        ("transport", endpoint.transport.clone()),
        ("trust_id_inbound", truth(endpoint.trust_id_inbound)),
        ("trust_id_outbound", truth(endpoint.trust_id_outbound)),
        ("use_ptime", truth(endpoint.use_ptime)),
    ];
    all.extend(options_of_media(endpoint));
    all.extend(options_of_watching(endpoint));
    all.extend(options_of_parties(endpoint));
    all.extend(endpoint.shown.iter().cloned());
    let known: std::collections::BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    let rest: Vec<_> = SHOWN.iter().filter(|(name, _)| !known.contains(name)).collect();
    all.extend(rest.into_iter().map(|(name, value)| (*name, (*value).to_owned())));
    all.sort_by_key(|(name, _)| *name);
    all.dedup_by_key(|(name, _)| *name);
    all
}

/// Options that readers of all of an endpoint look for, with what holds where nothing else is said.
const SHOWN: [(&str, &str); 45] = [
    ("acl", ""),
    ("bundle", "false"),
    ("callerid_privacy", "allowed_not_screened"),
    ("codec_prefs_incoming_answer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("codec_prefs_incoming_offer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("codec_prefs_outgoing_answer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("codec_prefs_outgoing_offer", "prefer:pending, operation:union, keep:all, transcode:allow"),
    ("contact_acl", ""),
    ("cos_video", "0"),
    ("dtls_auto_generate_cert", "No"),
    ("dtls_ca_file", ""),
    ("dtls_ca_path", ""),
    ("dtls_cert_file", ""),
    ("dtls_cipher", ""),
    ("dtls_fingerprint", "SHA-256"),
    ("dtls_private_key", ""),
    ("dtls_rekey", "0"),
    ("dtls_setup", "active"),
    ("dtls_verify", "No"),
    ("fax_detect_timeout", "0"),
    ("follow_redirect_methods", ""),
    ("force_avp", "false"),
    ("geoloc_incoming_call_profile", ""),
    ("geoloc_outgoing_call_profile", ""),
    ("ice_support", "false"),
    ("incoming_call_offer_pref", "local"),
    ("max_video_streams", "1"),
    ("media_use_received_transport", "false"),
    ("outgoing_call_offer_pref", "remote_merge"),
    ("preferred_codec_only", "false"),
    ("rtp_engine", "asterisk"),
    ("rtp_ipv6", "false"),
    ("rtp_port_end", "0"),
    ("rtp_port_start", "0"),
    ("set_var", ""),
    ("srtp_tag_32", "false"),
    ("stir_shaken", "no"),
    ("suppress_moh_on_sendonly", "false"),
    ("t38_bind_udptl_to_media_address", "false"),
    ("t38_udptl_ec", "none"),
    ("t38_udptl_ipv6", "false"),
    ("t38_udptl_maxdatagram", "0"),
    ("tos_video", "0"),
    ("use_avpf", "false"),
    ("webrtc", "no"),
];

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn truth(value: bool) -> String {
    if value { "true" } else { "false" }.to_owned()
}

/// What media of an endpoint obeys, beside what [`options`] begins with.
fn options_of_media(endpoint: &super::Endpoint) -> Vec<(&'static str, String)> {
    let direct = endpoint.direct.as_ref();
    let method = |by_update: bool| if by_update { "update" } else { "invite" }.to_owned();
    let glare = match direct.map(|direct| direct.glare).unwrap_or_default() {
        super::Glare::None => "none",
        super::Glare::Outgoing => "outgoing",
        super::Glare::Incoming => "incoming",
    };
    vec![
        ("asymmetric_rtp_codec", truth(endpoint.asymmetric_codec)),
        ("bind_rtp_to_media_address", truth(endpoint.bind_media)),
        ("cos_audio", endpoint.marking.priority.to_string()),
        ("direct_media", truth(direct.is_some())),
        ("direct_media_glare_mitigation", glare.to_owned()),
        ("direct_media_method", method(direct.is_some_and(|direct| direct.by_update))),
        ("disable_direct_media_on_nat", truth(direct.is_some_and(|direct| direct.not_behind_nat))),
        ("fax_detect", truth(endpoint.fax_detect.is_some())),
        ("g726_non_standard", truth(endpoint.g726_aal2)),
        ("ignore_183_without_sdp", truth(endpoint.ignore_183_without_sdp)),
        ("max_audio_streams", endpoint.audio_streams.to_string()),
        ("moh_passthrough", truth(endpoint.passes_hold)),
        ("rtcp_mux", truth(endpoint.rtcp_mux)),
        ("sdp_owner", endpoint.sdp_owner.clone()),
        ("sdp_session", endpoint.sdp_session.clone()),
        ("t38_udptl", truth(endpoint.fax.is_some())),
        ("t38_udptl_nat", truth(endpoint.fax.as_ref().is_some_and(|fax| fax.nat))),
        ("tos_audio", endpoint.marking.tos.to_string()),
    ]
}

/// What its subscriptions and messages obey.
fn options_of_watching(endpoint: &super::Endpoint) -> Vec<(&'static str, String)> {
    let watching = &endpoint.watching;
    vec![
        ("aggregate_mwi", truth(watching.aggregate)),
        ("allow_subscribe", truth(watching.allow)),
        ("incoming_mwi_mailbox", watching.incoming.clone()),
        ("mailboxes", watching.mailboxes.join(",")),
        ("message_context", endpoint.message_context.clone()),
        ("mwi_from_user", watching.from_user.clone()),
        ("mwi_subscribe_replaces_unsolicited", yes(watching.subscribing_replaces)),
        ("notify_early_inuse_ringing", truth(watching.early_ringing)),
        ("sub_min_expiry", watching.seconds_min.to_string()),
        ("subscribe_context", watching.context.clone()),
        ("voicemail_extension", watching.voicemail.clone()),
    ]
}

/// What parties and transfers of its calls obey.
fn options_of_parties(endpoint: &super::Endpoint) -> Vec<(&'static str, String)> {
    let identify = endpoint.identify_by.iter().map(|by| match by {
        super::IdentifyBy::Username => "username",
        super::IdentifyBy::AuthUsername => "auth_username",
        super::IdentifyBy::Ip => "ip",
        super::IdentifyBy::Header => "header",
        super::IdentifyBy::RequestUri => "request_uri",
        super::IdentifyBy::Transport => "transport",
        super::IdentifyBy::Anonymous => "anonymous",
    });
    let connected = if endpoint.connected_by_update { "update" } else { "invite" };
    let (call, pickup) = (&endpoint.pickup.call, &endpoint.pickup.pickup);
    vec![
        ("allow_overlap", truth(endpoint.allow_overlap)),
        ("allow_transfer", truth(endpoint.allow_transfer)),
        ("allow_unauthenticated_options", truth(endpoint.unauthenticated_options)),
        ("call_group", call.numbers()),
        ("callerid_tag", endpoint.caller.tag.clone()),
        ("connected_line_method", connected.to_owned()),
        ("contact_user", endpoint.contact_user.clone()),
        ("follow_early_media_fork", truth(endpoint.follow_fork)),
        ("accept_multiple_sdp_answers", truth(endpoint.take_every_answer)),
        ("identify_by", identify.collect::<Vec<_>>().join(",")),
        ("named_call_group", call.names()),
        ("named_pickup_group", pickup.names()),
        ("outbound_proxy", endpoint.outbound_proxy.clone()),
        ("overlap_context", endpoint.overlap_context.clone()),
        ("pickup_group", pickup.numbers()),
        ("refer_blind_progress", truth(endpoint.refer_progress)),
        ("rpid_immediate", truth(endpoint.rpid_immediate)),
        ("suppress_q850_reason_headers", truth(endpoint.suppress_reason)),
        ("trust_connected_line", yes(endpoint.trust_connected_line)),
        ("user_eq_phone", truth(endpoint.user_eq_phone)),
    ]
}
