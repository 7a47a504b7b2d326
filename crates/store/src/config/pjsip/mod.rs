//! `pjsip.conf`: endpoints, AORs, auths, identifies, transports and the settings of the stack.
//!
//! An object is its type and the name of its section, so sections of one name and different types are different objects.

mod objects;
mod values;

pub use objects::{
    Aor, AsteriskPublication, Auth, DomainAlias, Endpoint, Global, Identify, InboundPublication,
    OutboundPublish, Registration, ResourceList, SipAcl, StaticContact, System, Transport,
};
pub use values::{
    AuthType, CodecKeep, CodecOperation, CodecPrefer, CodecPreference, CodecTranscode, ConnectedLine,
    DigestAlgorithm, DirectMediaMethod, DtmfChoice, FaxProtection, GlareMitigation, HeaderMatch, IdentifyBy,
    Inband, IncomingOfferPref, MediaEncryption, OutgoingOfferPref, PasswordDigest, Presence, Protocol,
    RedirectMethod, RedirectedMethod, Rel100, SecurityNegotiation, SessionTimers, SourceMatch, TlsMethod,
};

use super::acl::NamedAcls;
use super::web::HttpGeneral;
use super::{Object, Origin, Row, Status, kind::Secret, read_object, suggestion};
use base::Coded;
use conf::{File, Findings, Place, Section};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Shortest secret that draws no remark, in characters; what `specs` and scanners agree is out of reach of guessing.
const SECRET_CHARS: usize = 12;

/// `pjsip.conf` as a whole. Maps are by section name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pjsip {
    /// `type=global`.
    pub global: Global,
    /// `type=system`.
    pub system: System,
    /// `type=transport`.
    pub transports: BTreeMap<String, Transport>,
    /// `type=endpoint`.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// `type=aor`.
    pub aors: BTreeMap<String, Aor>,
    /// `type=auth`.
    pub auths: BTreeMap<String, Auth>,
    /// `type=identify`, in file order, which is the order they are tried in.
    pub identifies: Vec<Identify>,
    /// `type=registration`: where we register ourselves.
    pub registrations: BTreeMap<String, Registration>,
    /// `type=resource_list`: what is watched by one subscription.
    pub lists: BTreeMap<String, ResourceList>,
    /// `type=outbound-publish`: state of ours that other servers are told by PUBLISH.
    pub publishes: BTreeMap<String, OutboundPublish>,
    /// `type=inbound-publication`: what may be published here.
    pub publications: BTreeMap<String, InboundPublication>,
    /// `type=asterisk-publication`: which states of other servers are believed.
    pub exchanges: BTreeMap<String, AsteriskPublication>,
    /// `type=domain_alias`, by the domain that is an alias.
    pub domain_aliases: BTreeMap<String, DomainAlias>,
    /// `type=acl`: who may send SIP at all. Every list must allow.
    pub acls: Vec<SipAcl>,
}

/// Types that Asterisk knows and this reader does not make objects of, with what happens instead.
const LATER_TYPES: &[(&str, &str)] = &[
    ("phoneprov", "phones are not provisioned"),
    ("mwi", "message waiting is not reported"),
    ("wizard", "it belongs into pjsip_wizard.conf"),
    ("http_client", "it is not read"),
];

const TYPES: &[&str] = &[
    "endpoint",
    "aor",
    "contact",
    "auth",
    "identify",
    "registration",
    "resource_list",
    "outbound-publish",
    "inbound-publication",
    "asterisk-publication",
    "domain_alias",
    "transport",
    "global",
    "system",
    "acl",
];

/// Names and defaults of the options of a type of objects.
pub fn options_of(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows().into_iter().filter(move |row| row.section == kind).map(|row| (row.name, row.default))
}

/// Options of every type, for the manual.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = [
        Endpoint::rows(),
        Aor::rows(),
        StaticContact::rows(),
        Auth::rows(),
        Identify::rows(),
        Registration::rows(),
        ResourceList::rows(),
        OutboundPublish::rows(),
        InboundPublication::rows(),
        AsteriskPublication::rows(),
        DomainAlias::rows(),
        Transport::rows(),
        Global::rows(),
        System::rows(),
        SipAcl::rows(),
    ]
    .concat();
    rows.extend(LATER_TYPES.iter().map(|&(section, what)| Row {
        file: "pjsip.conf",
        section,
        name: "type",
        kind: section.to_owned(),
        default: "",
        doc: "",
        status: Status::Later(what),
    }));
    rows
}

impl Pjsip {
    /// Whether phones may come by WebSocket.
    pub fn has_websockets(&self) -> bool {
        self.transports.values().any(Transport::is_websocket)
    }
    /// What does not fit together with the server that listens for WebSockets.
    pub(crate) fn check_websockets(&self, http: &HttpGeneral, findings: &mut Findings) {
        for transport in self.transports.values().filter(|transport| transport.is_websocket()) {
            let (name, place) = (&transport.origin.name, transport.origin.place_of("protocol"));
            let served = http.address().is_some() || http.tls_address().is_some();
            if !served {
                findings.warning(
                    place,
                    format!("transport '{name}' waits for WebSockets, and http.conf serves nothing"),
                    "write enabled=yes in [general] of http.conf",
                );
            } else if transport.protocol == Protocol::Wss && http.tls_address().is_none() {
                findings.note(
                    place,
                    format!(
                        "transport '{name}' is served in the clear, as a proxy that speaks TLS for it wants"
                    ),
                    "write tlsenable=yes in [general] of http.conf if phones come straight",
                );
            }
        }
    }
    /// Reads the file. An object with an error is skipped, the others stay.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        Self::read_beside(file, false, findings)
    }
    /// As [`Self::read`]; what objects name may lie `elsewhere`, in a database.
    pub(crate) fn read_beside(file: &File, elsewhere: bool, findings: &mut Findings) -> Self {
        let mut pjsip = Self::default();
        let mut contacts: Vec<StaticContact> = Vec::new();
        for section in file.objects() {
            let Some(kind) = section.last("type") else {
                let message = format!("section [{}] has no type and is skipped", section.name);
                findings.error(&section.place, message, "add a line such as type=endpoint");
                continue;
            };
            match kind.value.to_ascii_lowercase().as_str() {
                "endpoint" => keep(&mut pjsip.endpoints, read(section, findings), section, findings),
                "aor" => keep(&mut pjsip.aors, read(section, findings), section, findings),
                "contact" => contacts.extend(read::<StaticContact>(section, findings)),
                "subscription_persistence" => findings.note(
                    &kind.place,
                    "subscriptions outlive a restart without a section for each",
                    "remove the section",
                ),
                "auth" => keep(&mut pjsip.auths, read(section, findings), section, findings),
                "transport" => keep(&mut pjsip.transports, read(section, findings), section, findings),
                "registration" => keep(&mut pjsip.registrations, read(section, findings), section, findings),
                "resource_list" => keep(&mut pjsip.lists, read(section, findings), section, findings),
                "outbound-publish" => keep(&mut pjsip.publishes, read(section, findings), section, findings),
                "inbound-publication" => {
                    keep(&mut pjsip.publications, read(section, findings), section, findings);
                }
                "asterisk-publication" => {
                    keep(&mut pjsip.exchanges, read(section, findings), section, findings);
                }
                "domain_alias" => keep(&mut pjsip.domain_aliases, read(section, findings), section, findings),
                "identify" => pjsip.identifies.extend(read::<Identify>(section, findings)),
                "acl" => pjsip.acls.extend(read::<SipAcl>(section, findings)),
                "global" => pjsip.global = read(section, findings).unwrap_or_default(),
                "system" => pjsip.system = read(section, findings).unwrap_or_default(),
                other => match LATER_TYPES.iter().find(|(name, _)| *name == other) {
                    Some((_, what)) => findings.warning(
                        &kind.place,
                        format!(
                            "type={other} of [{}] is known to Asterisk and not supported yet: {what}",
                            section.name
                        ),
                        "remove the section if that will do",
                    ),
                    None => findings.error(
                        &kind.place,
                        format!("type={other} of [{}] does not exist; the section is skipped", section.name),
                        suggestion(other, TYPES),
                    ),
                },
            }
        }
        contacts.into_iter().for_each(|contact| pjsip.place_contact(contact, findings));
        pjsip.check_each(&file.place(), findings);
        if !elsewhere {
            pjsip.check_references(findings);
        }
        pjsip
    }

    /// Objects of rows of a database: each is judged by itself, as others come and go.
    pub fn of_rows(sections: Vec<Section>, acls: &NamedAcls, coded: Coded, findings: &mut Findings) -> Self {
        let mut pjsip = Self::default();
        for section in &sections {
            match section.value("type") {
                Some("endpoint") => keep(&mut pjsip.endpoints, read(section, findings), section, findings),
                Some("aor") => keep(&mut pjsip.aors, read(section, findings), section, findings),
                Some("auth") => keep(&mut pjsip.auths, read(section, findings), section, findings),
                _ => {}
            }
        }
        pjsip.endpoints.retain(|_, endpoint| endpoint.check(findings));
        pjsip.auths.retain(|_, auth| auth.check(findings));
        pjsip.aors.values().for_each(|aor| aor.check(findings));
        pjsip.resolve_acls(acls, findings);
        pjsip.resolve_formats(coded, findings);
        pjsip
    }

    /// Puts a contact with a section of its own among those of its AOR.
    fn place_contact(&mut self, contact: StaticContact, findings: &mut Findings) {
        if !contact.check(findings) {
            return;
        }
        let (name, place) = (&contact.origin.name, &contact.origin.place);
        let Some(aor) = self.aors.get_mut(contact.aor()) else {
            let message =
                format!("contact '{name}' belongs to the aor '{}', which does not exist", contact.aor());
            let remedy = "name the section after its aor, as [6001] or [6001\\;@desk]";
            return findings.error(place, message, remedy);
        };
        if !aor.contact.contains(&contact.uri) {
            aor.contact.push(contact.uri);
        }
    }

    /// What an object says about itself.
    fn check_each(&mut self, file: &Place, findings: &mut Findings) {
        self.transports.retain(|_, transport| transport.check(findings));
        self.endpoints.retain(|_, endpoint| endpoint.check(findings));
        self.auths.retain(|_, auth| auth.check(findings));
        self.aors.values().for_each(|aor| aor.check(findings));
        self.identifies.retain(|identify| identify.check(findings));
        self.registrations.retain(|_, registration| registration.check(findings));
        self.lists.retain(|_, list| list.check(findings));
        self.publishes.retain(|_, publish| publish.check(findings));
        for (name, auth) in &self.auths {
            check_secret(name, auth, findings);
        }
        if self.transports.is_empty() {
            findings.warning(
                file,
                "no transport is configured; SIP is not served",
                "add a section with type=transport, protocol=udp and bind=0.0.0.0",
            );
        }
    }

    /// What objects say about each other.
    fn check_references(&self, findings: &mut Findings) {
        for (name, endpoint) in &self.endpoints {
            let origin = &endpoint.origin;
            for aor in endpoint.aors.iter().filter(|aor| !self.aors.contains_key(*aor)) {
                findings.warning(
                    origin.place_of("aors"),
                    format!("endpoint '{name}' names the aor '{aor}', which does not exist"),
                    format!("add a section [{aor}] with type=aor"),
                );
            }
            for (option, names) in [("auth", &endpoint.auth), ("outbound_auth", &endpoint.outbound_auth)] {
                for auth in names.iter().filter(|auth| !self.auths.contains_key(*auth)) {
                    findings.error(
                        origin.place_of(option),
                        format!("endpoint '{name}' names the auth '{auth}', which does not exist; it cannot authenticate"),
                        format!("add a section [{auth}] with type=auth"),
                    );
                }
            }
            let by_name = endpoint
                .identify_by
                .iter()
                .any(|by| matches!(by, IdentifyBy::Username | IdentifyBy::AuthUsername));
            if endpoint.auth.is_empty() && by_name {
                findings.warning(
                    &origin.place,
                    format!(
                        "endpoint '{name}' has no auth: whoever says its name may call without a password"
                    ),
                    "add auth= and a section with type=auth, or identify it by address only: identify_by=ip",
                );
            }
            if !endpoint.transport.is_empty() && !self.transports.contains_key(&endpoint.transport) {
                findings.warning(
                    origin.place_of("transport"),
                    format!(
                        "endpoint '{name}' names the transport '{}', which does not exist",
                        endpoint.transport
                    ),
                    "correct the name, or remove the line to use any transport that fits",
                );
            }
        }
        for identify in
            self.identifies.iter().filter(|identify| !self.endpoints.contains_key(&identify.endpoint))
        {
            findings.warning(
                identify.origin.place_of("endpoint"),
                format!(
                    "identify '{}' names the endpoint '{}', which does not exist",
                    identify.origin.name, identify.endpoint
                ),
                format!("add a section [{}] with type=endpoint", identify.endpoint),
            );
        }
        self.check_registrations(findings);
        self.check_publications(findings);
        self.check_domains(findings);
        let default = &self.global.default_outbound_endpoint;
        if self.global.origin.has("default_outbound_endpoint") && !self.endpoints.contains_key(default) {
            findings.warning(
                self.global.origin.place_of("default_outbound_endpoint"),
                format!("default_outbound_endpoint={default} does not exist"),
                "correct the name",
            );
        }
    }

    /// What registrations say about auths, transports and endpoints.
    fn check_registrations(&self, findings: &mut Findings) {
        for (name, registration) in &self.registrations {
            let origin = &registration.origin;
            for auth in registration.outbound_auth.iter().filter(|auth| !self.auths.contains_key(*auth)) {
                findings.error(
                    origin.place_of("outbound_auth"),
                    format!("registration '{name}' names the auth '{auth}', which does not exist; it cannot authenticate"),
                    format!("add a section [{auth}] with type=auth"),
                );
            }
            let missing = |known: bool, option: &str, of: &str| {
                let text = format!("registration '{name}' names the {option} '{of}', which does not exist");
                (!known && !of.is_empty()).then(|| (origin.place_of(option).clone(), text))
            };
            let transport = &registration.transport;
            let endpoint = &registration.endpoint;
            let found = [
                missing(self.transports.contains_key(transport), "transport", transport),
                missing(self.endpoints.contains_key(endpoint), "endpoint", endpoint),
            ];
            for (place, text) in found.into_iter().flatten() {
                findings.warning(&place, text, "correct the name");
            }
        }
    }

    /// Whether domains lead to names.
    fn check_domains(&self, findings: &mut Findings) {
        for (alias, of) in &self.domain_aliases {
            let end = format!("@{}", of.domain);
            let mut names = self.endpoints.keys().chain(self.aors.keys());
            if of.domain.is_empty() {
                let message = format!("domain_alias '{alias}' has no domain");
                findings.warning(&of.origin.place, message, "add domain=");
            } else if !names.any(|name| name.ends_with(&end)) {
                let message = format!(
                    "domain_alias '{alias}' changes nothing: no endpoint or aor is named user@{}, and names without a \
                     domain are found whatever the domain is",
                    of.domain
                );
                findings.note(&of.origin.place, message, "remove the section if that will do");
            }
        }
    }

    /// What publications in both directions say about auths, transports, endpoints and each other.
    fn check_publications(&self, findings: &mut Findings) {
        let mut missing = |origin: &Origin, option: &str, name: &str, known: bool| {
            if !known && !name.is_empty() {
                let message = format!("[{}] names {option}={name}, which does not exist", origin.name);
                findings.warning(origin.place_of(option), message, "correct the name");
            }
        };
        for publish in self.publishes.values() {
            let origin = &publish.origin;
            for auth in &publish.outbound_auth {
                missing(origin, "outbound_auth", auth, self.auths.contains_key(auth));
            }
            let transport = &publish.transport;
            missing(origin, "transport", transport, self.transports.contains_key(transport));
        }
        for publication in self.publications.values() {
            let origin = &publication.origin;
            let endpoint = &publication.endpoint;
            missing(origin, "endpoint", endpoint, self.endpoints.contains_key(endpoint));
            for (option, name) in [
                ("event_asterisk-devicestate", &publication.devices),
                ("event_asterisk-mwi", &publication.mailboxes),
            ] {
                missing(origin, option, name, self.exchanges.contains_key(name));
            }
        }
        for exchange in self.exchanges.values() {
            for (option, name) in [
                ("devicestate_publish", &exchange.devicestate_publish),
                ("mailboxstate_publish", &exchange.mailboxstate_publish),
            ] {
                missing(&exchange.origin, option, name, self.publishes.contains_key(name));
            }
        }
        for exchange in self.exchanges.values() {
            findings.note(
                &exchange.origin.place,
                format!(
                    "asterisk-publication '{}' takes part with other Strowger servers only: the body in which Asterisk sends \
                     states is documented nowhere, and is refused with 415",
                    exchange.origin.name
                ),
                "",
            );
        }
    }

    /// Judges what endpoints allow, when these formats are coded here.
    pub fn resolve_formats(&mut self, coded: Coded, findings: &mut Findings) {
        for (name, endpoint) in &mut self.endpoints {
            endpoint.allow.resolve(coded);
            let place = endpoint.origin.place_of("allow");
            let formats = &endpoint.allow.formats;
            for format in formats.iter().filter(|format| !coded.contains(*format)) {
                let message = format!(
                    "endpoint '{name}': {format} can only be passed through, between two parties that both use it; \
                     nothing here can play, record, mix or turn it into another format"
                );
                let remedy =
                    "allow ulaw or alaw beside it, so that calls reach voicemail, prompts and other phones";
                findings.note(place, message, remedy);
            }
            if !formats.is_empty() && !formats.iter().any(|format| coded.contains(format)) {
                let message = format!(
                    "endpoint '{name}' allows only formats that are passed through: it hears no prompt and no party \
                     with other formats"
                );
                findings.warning(place, message, "add allow=ulaw,alaw");
            }
        }
    }
    /// Resolves the named lists that endpoints and the stack refer to. A missing list lets nobody in.
    pub fn resolve_acls(&mut self, named: &NamedAcls, findings: &mut Findings) {
        for endpoint in self.endpoints.values_mut() {
            let origin = &endpoint.origin;
            endpoint.access = named.access(&endpoint.permit, &endpoint.acl, origin.place_of("acl"), findings);
            endpoint.contact_access = named.access(
                &endpoint.contact_permit,
                &endpoint.contact_acl,
                origin.place_of("contact_acl"),
                findings,
            );
        }
        for acl in &mut self.acls {
            let origin = &acl.origin;
            acl.access = named.access(&acl.permit, &acl.acl, origin.place_of("acl"), findings);
            acl.contact_access =
                named.access(&acl.contact_permit, &acl.contact_acl, origin.place_of("contact_acl"), findings);
        }
    }

    /// Whether the source may send SIP at all.
    pub fn allows_source(&self, ip: std::net::IpAddr) -> bool {
        self.acls.iter().all(|acl| acl.access.allows(ip))
    }
}

fn read<T: Object>(section: &Section, findings: &mut Findings) -> Option<T> {
    read_object(section, findings, &mut |_, variable, _| variable.is("type"))
}

/// Keeps the first object of a name and type.
fn keep<T>(map: &mut BTreeMap<String, T>, object: Option<T>, section: &Section, findings: &mut Findings) {
    let Some(object) = object else { return };
    match map.entry(section.name.to_string()) {
        Entry::Vacant(entry) => {
            entry.insert(object);
        }
        Entry::Occupied(_) => findings.error(
            &section.place,
            format!("there is another [{}] of this type above; this one is skipped", section.name),
            "rename one of them, or write (+) after the name to continue the first",
        ),
    }
}

/// Remarks on a secret without telling it.
fn check_secret(name: &str, auth: &Auth, findings: &mut Findings) {
    let weak = |secret: &Secret| {
        let text = secret.expose();
        if text.is_empty() {
            None
        } else if text.eq_ignore_ascii_case(&auth.username) || text.eq_ignore_ascii_case(name) {
            Some("equals its user name")
        } else if text.chars().count() < SECRET_CHARS {
            Some("is shorter than 12 characters")
        } else {
            None
        }
    };
    if let Some(why) = weak(&auth.password) {
        findings.warning(
            auth.origin.place_of("password"),
            format!("the password of auth '{name}' {why}; scanners try such passwords first"),
            "choose a longer one, for example with: openssl rand -base64 18",
        );
    }
}
