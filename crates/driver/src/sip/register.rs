//! REGISTER: who may bind what, and what is told of it.

use core::net::IpAddr;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ::sip::header::Contact;
use ::sip::registrar::{Cause, Refusal, Registrar, Rules};
use ::sip::stack::{Answer, ConnectionId, Flow, Incoming};
use ::sip::{Message, Uri};
use base::Instant;
use call::{Core, Level, Notice};

use super::config::{Aor, Config, Endpoint};
use super::flows::Asks;
use super::inbound::Known;
use super::qualify::Reachable;
use super::{SipDriver, identity};

pub use ::sip::registrar::{Binding, Change};

/// Where changes of bindings go before the reply leaves; the shell writes them to its journal.
pub type Journal = Vec<Change>;

/// Bindings and what changed in them since the shell last looked.
pub(crate) struct Registrations {
    pub(crate) registrar: Registrar,
    pub(crate) changes: Journal,
    /// AORs that registered over a connection; forgotten when it closes.
    over: HashMap<ConnectionId, BTreeSet<String>>,
    /// Connections of phones that keep their flows open, and die when nothing comes on them.
    pub(crate) timed: BTreeSet<ConnectionId>,
    /// Endpoints of which watchers were told whether they can be reached.
    there: HashMap<Rc<str>, bool>,
    /// Which extensions registrations make has to be said anew.
    pub(super) unsaid: bool,
}

impl Registrations {
    pub(crate) fn new(seed: u128) -> Self {
        Self {
            registrar: Registrar::new(seed),
            changes: Vec::new(),
            over: HashMap::new(),
            timed: BTreeSet::new(),
            there: HashMap::new(),
            unsaid: false,
        }
    }
    /// AORs that are gone lose their bindings.
    pub(crate) fn configure(&mut self, config: &Config, now: Instant) {
        self.unsaid = true;
        let gone: Vec<(String, Vec<u8>)> = self
            .registrar
            .iter()
            .filter(|(aor, _)| !config.aors.contains_key(*aor))
            .flat_map(|(aor, bindings)| bindings.iter().map(|b| (aor.to_owned(), b.uri.clone())))
            .collect();
        for (aor, uri) in gone {
            self.registrar.remove(&aor, &uri, now, &mut self.changes);
        }
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.registrar.deadline()
    }
}

fn rules(aor: &Aor) -> Rules {
    Rules {
        max_contacts: u32::try_from(aor.max_contacts).unwrap_or(u32::MAX),
        remove_existing: aor.remove_existing,
        remove_unavailable: aor.remove_unavailable,
        minimum_expiration: aor.minimum_expiration,
        default_expiration: aor.default_expiration,
        maximum_expiration: aor.maximum_expiration,
        support_path: aor.support_path,
        rewrites: false,
    }
}

/// Whether every contact of a registration lies where contacts may lie. A name may lead anywhere, so that a list of
/// addresses does not allow it.
fn contacts_allowed(config: &Config, endpoint: &Endpoint, message: &Message<'_>) -> bool {
    let lists = [&config.contact_access, &endpoint.contact_access];
    let allowed = |address: Option<IpAddr>| {
        lists.iter().filter_map(|list| list.as_ref()).all(|list| address.is_some_and(|ip| list(ip)))
    };
    // Requests to a contact with `maddr` go there.
    let elsewhere = |uri: &Uri<'_>| uri.params.get(b"maddr").map(::sip::uri::parse_ip);
    message
        .contacts()
        .filter_map(Contact::addr)
        .all(|contact| allowed(contact.uri.host.ip()) && elsewhere(&contact.uri).is_none_or(&allowed))
}

/// A time as Date has it (RFC 3261 §20.17); `seconds` since the epoch.
fn date(seconds: i64) -> String {
    let mut date = String::new();
    let (wall, offset) = (
        dialplan::Wall { seconds, micros: 0 },
        dialplan::Offset { seconds: 0, daylight: false, abbreviation: "GMT".to_owned() },
    );
    dialplan::strftime::format(wall, &offset, "%a, %d %b %Y %H:%M:%S GMT", &mut date);
    date
}

/// What the answer to OPTIONS says of us (RFC 3261 §11.2).
const PONG: [(&str, &str); 4] = [
    ("Accept", super::ACCEPT),
    ("Accept-Encoding", "identity"),
    ("Accept-Language", "en"),
    ("Allow", super::ALLOW),
];

impl SipDriver {
    /// Puts back what the journal kept.
    pub fn restore(&mut self, aor: &str, binding: Binding, now: Instant) {
        if self.config.aors.contains_key(aor) {
            self.registrations.registrar.restore(aor, binding.clone(), now);
            self.registrations.unsaid = true;
            self.qualify.add(&self.config, aor, &binding.uri, now);
        }
    }
    /// Changes of bindings since the last call; to be on their way to disk before the replies are.
    pub fn take_changes(&mut self) -> Journal {
        std::mem::take(&mut self.registrations.changes)
    }
    /// Every binding there is, for compaction of the journal.
    pub fn bindings(&self) -> impl Iterator<Item = (&str, &Binding)> {
        self.registrations
            .registrar
            .iter()
            .flat_map(|(aor, list)| list.iter().map(move |binding| (aor, binding)))
    }

    /// A REGISTER.
    pub(crate) fn registered(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let config = self.config.clone();
        let message = incoming.message.view();
        let to = message.to();
        let name = to.as_ref().map(|to| identity::text(&to.uri.user_meant(config.ignore_user_options)));
        let name = name.unwrap_or_default();
        let domain = to.as_ref().map_or(&b""[..], |to| to.uri.host.as_bytes());
        let own = |name: &str| endpoint.aors.iter().find(|own| ***own == *name);
        let aor = config.find_user(&name, domain, |name| own(name).and_then(|own| config.aors.get(own)));
        let Some(aor) = aor.filter(|aor| aor.max_contacts > 0) else {
            let line = format!("AOR '{name}' is not one that endpoint '{}' may register", endpoint.name);
            core.log(Level::Warning, "res_pjsip_registrar", &line);
            return self.refuse(&incoming, &Answer::new(if aor.is_some() { 403 } else { 404 }));
        };
        if !contacts_allowed(&config, &endpoint, &message) {
            super::inbound::note_refusal(
                core,
                &message,
                incoming.source,
                super::inbound::CONTACT_NOT_ALLOWED,
            );
            return self.refuse(&incoming, &Answer::new(403));
        }
        let asks = Asks::of(&message);
        if asks == Asks::Unsupported {
            return self.refuse(&incoming, &Answer::new(439));
        }
        let requires_path =
            message.values(::sip::HeaderName::Require).any(|tag| tag.eq_ignore_ascii_case(b"path"));
        if requires_path && !aor.support_path {
            return self.refuse(&incoming, &Answer::new(420).headers(&[("Unsupported", "path")]));
        }
        // RFC 3327 §5.3: a path is kept for whoever knows what that is.
        let takes_path = message.lists(::sip::HeaderName::Supported, b"path") || requires_path;
        if aor.support_path && message.has(::sip::HeaderName::Path) && !takes_path {
            return self.refuse(&incoming, &Answer::new(420).headers(&[("Unsupported", "path")]));
        }
        let before = self.registrations.changes.len();
        let qualify = &self.qualify;
        let source = super::ways::outward(incoming.source);
        let outcome = self.registrations.registrar.register(
            &aor.name,
            &Rules { rewrites: endpoint.rewrite_contact, ..rules(aor) },
            (&message, source),
            &|binding| qualify.is_unreachable(&aor.name, &binding.uri),
            core.now,
            &mut self.registrations.changes,
        );
        // What follows from it leaves first: a phone that goes on at once has heard of its messages.
        self.tell_changes(core, before);
        match outcome {
            Ok(()) => {
                let mut bound: Vec<&Binding> =
                    self.registrations.registrar.bindings(&aor.name).iter().collect();
                bound.sort_by_cached_key(|binding| super::show::contact_hash(&binding.uri));
                let contacts: Vec<String> = bound
                    .iter()
                    .map(|binding| String::from_utf8_lossy(&binding.contact(core.now)).into_owned())
                    .collect();
                // RFC 3261 §20.17: phones set their clocks by it.
                let seconds = core.services.wall.now_micros().div_euclid(1_000_000);
                let mut headers: Vec<(&str, String)> = vec![("Date", date(seconds))];
                headers.extend(contacts.into_iter().map(|contact| ("Contact", contact)));
                let expires = message.expires().map(|asked| rules(aor).granted(asked).to_string());
                headers.extend(expires.map(|expires| ("Expires", expires)));
                if aor.support_path {
                    // RFC 3327 §5.3: the Path that is kept is told.
                    headers.push(("Supported", "path".to_owned()));
                    let path = message.headers(::sip::HeaderName::Path).map(identity::text);
                    headers.extend(path.map(|path| ("Path", path)));
                }
                let bound = self.registrations.registrar.bindings(&aor.name).iter();
                let is_bound = bound.into_iter().any(|binding| binding.outbound && binding.source == source);
                if is_bound {
                    headers.extend(self.flow_headers(asks, source));
                }
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                self.refuse(&incoming, &Answer::new(200).headers(&headers));
            }
            Err(refusal) => {
                let line = format!("registration of '{}' refused: {refusal:?}", aor.name);
                core.log(Level::Warning, "res_pjsip_registrar", &line);
                let why = match refusal {
                    Refusal::TooMany => "registrar_attempt_exceeds_maximum_configured_contacts",
                    Refusal::Malformed => "registrar_invalid_contacts_provided",
                    Refusal::OutOfOrder | Refusal::Full => "",
                };
                if !why.is_empty() {
                    self.tell_attempt(core, &incoming, "FailedACL", Some(&endpoint), why);
                }
                self.refuse(&incoming, &Answer::new(refusal.status()));
            }
        }
    }
    /// A connection is gone, and with it the only way to what registered over it.
    pub(crate) fn connection_lost(&mut self, core: &mut Core, flow: Flow) {
        let Some(connection) = flow.connection else { return };
        let aors = self.registrations.over.remove(&connection).unwrap_or_default();
        self.registrations.timed.remove(&connection);
        let before = self.registrations.changes.len();
        let lost = |binding: &Binding| binding.source.connection == Some(connection);
        for aor in aors {
            let Registrations { registrar, changes, .. } = &mut self.registrations;
            registrar.remove_those(&aor, &lost, core.now, changes);
        }
        self.tell_changes(core, before);
    }
    /// Drops bindings that have lapsed.
    pub(crate) fn expire_registrations(&mut self, core: &mut Core) {
        let before = self.registrations.changes.len();
        self.registrations.registrar.due(core.now, &mut self.registrations.changes);
        self.tell_changes(core, before);
    }
    /// Tells watchers, the log and the prober of changes from `from` on.
    pub(crate) fn tell_changes(&mut self, core: &mut Core, from: usize) {
        let changes: Vec<Change> = self.registrations.changes.get(from..).unwrap_or_default().to_vec();
        for change in changes {
            let endpoint = self.endpoint_of_aor(&change.aor);
            let uri = String::from_utf8_lossy(&change.binding.uri).into_owned();
            let (verb, contact_status) = match change.cause {
                Cause::Added => ("Added", "NonQualified"),
                Cause::Refreshed => ("Refreshed", "Updated"),
                Cause::Removed | Cause::Expired => ("Removed", "Removed"),
            };
            if let Some(connection) = change.binding.source.connection
                && matches!(change.cause, Cause::Added | Cause::Refreshed)
            {
                self.registrations.over.entry(connection).or_default().insert(change.aor.clone());
            }
            match change.cause {
                Cause::Added => {
                    self.qualify.add(&self.config, &change.aor, &change.binding.uri, core.now);
                    self.probe_new_contact(core, &change.aor, &change.binding.uri);
                    self.tell_new_contact(core, &change.aor);
                }
                // Another flow may have the same contact.
                Cause::Removed | Cause::Expired => {
                    let left = self.registrations.registrar.bindings(&change.aor);
                    if !left.iter().any(|binding| binding.uri == change.binding.uri) {
                        self.qualify.remove(&change.aor, &change.binding.uri);
                    }
                }
                // Whoever comes back may have forgotten what he knew.
                Cause::Refreshed => self.tell_new_contact(core, &change.aor),
            }
            if change.cause != Cause::Refreshed {
                let why = if change.cause == Cause::Expired { " due to expiration" } else { "" };
                let line = format!(
                    "{verb} contact '{uri}' {} AOR '{}'{why}",
                    if verb == "Added" { "to" } else { "from" },
                    change.aor
                );
                core.log(Level::Verbose(3), "res_pjsip_registrar", &line);
                core.touched_devices.push(format!("PJSIP/{endpoint}"));
                self.show_present(core, &endpoint);
            }
            self.tell_reach(core, &endpoint);
            let aor = change.aor;
            let told = change.cause != Cause::Refreshed || self.config.tells_refreshes;
            core.notice(|_| {
                let endpoint = endpoint.clone();
                told.then_some(Notice::ContactStatus {
                    uri,
                    status: contact_status,
                    aor,
                    endpoint,
                    roundtrip_us: None,
                })
            });
        }
    }
    /// Tells watchers when an endpoint has got its first contact that can be used, or has lost the last one.
    pub(crate) fn tell_reach(&mut self, core: &mut Core, endpoint: &str) {
        let (config, qualify) = (&self.config, &self.qualify);
        let Some(known) = config.endpoints.get(endpoint) else { return };
        let usable = |reachable| matches!(reachable, Reachable::Yes | Reachable::NotAsked);
        let bound = |aor: &Rc<str>| {
            let bindings = self.registrations.registrar.bindings(aor);
            bindings.iter().any(|binding| usable(qualify.state(aor, &binding.uri).0))
        };
        let fixed = |aor: &Rc<str>, is_meant: &dyn Fn(Reachable) -> bool| {
            let contacts = config.aors.get(aor).map(|aor| &aor.contacts[..]).unwrap_or_default();
            contacts.iter().any(|uri| is_meant(qualify.state(aor, uri.as_bytes()).0))
        };
        let is_there = known.aors.iter().any(|aor| bound(aor) || fixed(aor, &usable));
        // Who has a contact that is never asked was there from the start, and nobody has said so.
        let is_unasked = |reachable| reachable == Reachable::NotAsked;
        let was_there = self.registrations.there.insert(known.name.clone(), is_there);
        let was_there = was_there.unwrap_or_else(|| known.aors.iter().any(|aor| fixed(aor, &is_unasked)));
        if is_there == was_there {
            return;
        }
        let status = if is_there { "Reachable" } else { "Unreachable" };
        core.log(Level::Verbose(2), "res_pjsip", &format!("Endpoint {endpoint} is now {status}"));
        let peer = format!("PJSIP/{endpoint}");
        core.notice(|_| {
            let (address, cause) = (String::new(), "");
            Some(Notice::PeerStatus { channel_type: "PJSIP", peer, status, address, cause, time_ms: None })
        });
    }
    /// The endpoint that lists an AOR; the AOR's own name when none does.
    pub(crate) fn endpoint_of_aor(&self, aor: &str) -> String {
        if self.config.endpoints.get(aor).is_some_and(|e| e.aors.iter().any(|own| **own == *aor)) {
            return aor.to_owned();
        }
        let found = self.config.endpoints.values().find(|e| e.aors.iter().any(|own| **own == *aor));
        found.map_or_else(|| aor.to_owned(), |endpoint| endpoint.name.to_string())
    }
    /// An OPTIONS from somebody known.
    pub(crate) fn pinged(&mut self, core: &mut Core, mut incoming: Incoming) {
        // Where some are answered who have proved nothing, all are, or it would tell who exists.
        let proves = incoming.message.view().has(::sip::HeaderName::Authorization);
        if self.open_options && !proves {
            incoming.force_rport = true;
            return self.refuse(&incoming, &Answer::new(200).headers(&PONG));
        }
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let exten = super::inbound::exten_of(&incoming.message.view(), self.config.ignore_user_options);
        let there = exten == "s" || (core.reach)(core, &endpoint.context, &exten, "") == call::Reach::Whole;
        self.refuse(&incoming, &Answer::new(if there { 200 } else { 404 }).headers(&super::ABILITIES));
    }
    /// A request outside dialogs that nobody here serves; strangers are challenged like for any other.
    pub(crate) fn not_served(&mut self, core: &mut Core, mut incoming: Incoming) {
        if self.admit(core, &mut incoming).is_none() {
            return;
        }
        let status = match incoming.message.view().method() {
            // No call has it (RFC 3261 §15.1.2).
            ::sip::Method::Bye => 481,
            _ => 501,
        };
        self.refuse(&incoming, &Answer::new(status));
    }
}
