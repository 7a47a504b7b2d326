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
            rows.extend(aor.contacts.iter().map(|uri| row(uri.as_bytes())));
            rows.extend(self.registrations.registrar.bindings(&aor.name).iter().map(|binding| ContactRow {
                user_agent: identity::text(&binding.user_agent),
                via: binding.source.remote.to_string(),
                expires: Some(binding.expires_at.since(core.now).as_secs()),
                call_id: identity::text(&binding.call_id),
                path: binding.path.iter().map(|hop| identity::text(hop)).collect::<Vec<_>>().join(", "),
                ..row(&binding.uri)
            }));
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
    let yes = |value: bool| if value { "true" } else { "false" }.to_owned();
    let formats = endpoint.allow.iter().map(|format| format.name()).collect::<Vec<_>>().join("|");
    let dtmf = match endpoint.dtmf {
        super::Dtmf::Rfc4733 => "rfc4733",
        super::Dtmf::Inband => "inband",
        super::Dtmf::Info => "info",
        super::Dtmf::Auto => "auto",
        super::Dtmf::AutoInfo => "auto_info",
        super::Dtmf::None => "none",
    };
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
    vec![
        ("100rel", rel100.to_owned()),
        ("accountcode", endpoint.account.clone()),
        ("allow", format!("({formats})")),
        ("aors", endpoint.aors.join(",")),
        ("auth", endpoint.auths.join(",")),
        ("callerid", endpoint.caller.all()),
        ("call_limit", endpoint.call_limit.to_string()),
        ("context", endpoint.context.clone()),
        ("device_state_busy_at", endpoint.busy_at.to_string()),
        ("dtmf_mode", dtmf.to_owned()),
        ("force_rport", yes(endpoint.force_rport)),
        ("from_domain", endpoint.from_domain.clone()),
        ("from_user", endpoint.from_user.clone()),
        ("inband_progress", yes(endpoint.inband_progress)),
        ("language", endpoint.language.clone()),
        ("media_address", endpoint.media_address.map(|ip| ip.to_string()).unwrap_or_default()),
        ("media_encryption", if endpoint.encryption.is_some() { "sdes" } else { "no" }.to_owned()),
        ("media_encryption_optimistic", yes(endpoint.encryption.is_some_and(|wanted| wanted.optimistic))),
        ("moh_suggest", endpoint.music_class.clone()),
        ("outbound_auth", endpoint.outbound_auths.join(",")),
        ("redirect_method", redirect.to_owned()),
        ("rewrite_contact", yes(endpoint.rewrite_contact)),
        ("rtp_keepalive", endpoint.rtp_keepalive.to_string()),
        ("rtp_symmetric", yes(endpoint.rtp_symmetric)),
        ("rtp_timeout", endpoint.rtp_timeout.to_string()),
        ("rtp_timeout_hold", endpoint.rtp_timeout_hold.to_string()),
        ("security_mechanisms", endpoint.security.join(",")),
        ("security_negotiation", negotiation(&endpoint.security).to_owned()),
        ("send_connected_line", yes(endpoint.send_connected_line)),
        ("send_diversion", yes(endpoint.send_diversion)),
        ("send_history_info", yes(endpoint.send_history)),
        ("one_touch_recording", yes(endpoint.recording.by_key)),
        ("record_on_feature", endpoint.recording.on_feature.clone()),
        ("record_off_feature", endpoint.recording.off_feature.clone()),
        ("send_aoc", yes(endpoint.send_aoc)),
        ("send_pai", yes(endpoint.send_pai)),
        ("send_rpid", yes(endpoint.send_rpid)),
        ("timers", timers.to_owned()),
        ("timers_min_se", endpoint.timers.min_se.to_string()),
        ("timers_sess_expires", endpoint.timers.expires.to_string()),
        ("tone_zone", endpoint.tone_zone.clone()),
        ("transport", endpoint.transport.clone()),
        ("trust_id_inbound", yes(endpoint.trust_id_inbound)),
        ("trust_id_outbound", yes(endpoint.trust_id_outbound)),
        ("use_ptime", yes(endpoint.use_ptime)),
    ]
}
