//! Registrations of ours with other servers (`type=registration`): the REGISTER that each sends, and what its answer says.
//!
//! When one leaves and what a failure means is [`sip::registration`]'s to know. A registration with `line` puts a token
//! into its Contact; a request that comes back with the token belongs to the endpoint that the registration names.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use ::sip::agreement::Agreement;
use ::sip::digest::{Answer as AuthAnswer, Authenticator};
use ::sip::keeper::{self, Keeper};
use ::sip::registration::{Outcome, Output, Registration as Machine, Status};
use ::sip::stack::{ClientId, Flow, Outgoing, Protocol, Send};
use ::sip::{HeaderName, Message, Method, NameAddr, OwnedMessage, Uri};
use base::Instant;
use call::{Core, Level, Notice};

use super::config::{Config, Endpoint, Registration};
use super::{SipDriver, identity};

/// How often one REGISTER answers challenges; a peer that challenges on and on is given up.
const CHALLENGES_MAX: u8 = 3;
/// Pause before a registration whose server has no address yet is looked at again.
const NAME_PAUSE: Duration = Duration::from_millis(500);
/// First requests of so many registrations leave at moments of their own after a start; more share them.
const STARTS_A_SPAN: u32 = 100;
/// Span over which they are spread when nobody says (`max_random_initial_delay`): short, for calls wait for them.
const INITIAL_SPREAD_MIN: Duration = Duration::from_secs(1);
/// Most routes of a Service-Route that are kept (RFC 3608); a network that needs more has a loop.
const SERVICE_ROUTES_MAX: usize = 16;

/// Longest silence on a connection to a registrar that knows flows but does not say how long it waits, and on a flow of
/// datagrams, which routers forget sooner (RFC 5626 §4.4.1, §4.4.2).
const QUIET_MAX: [Duration; 2] = [Duration::from_secs(120), Duration::from_secs(29)];
/// However short a `Flow-Timer` is, we ask no more often: registrars of the field say 30 seconds and more.
const QUIET_MIN: Duration = Duration::from_secs(5);

/// One registration as it runs.
struct Trunk {
    config: Rc<Registration>,
    machine: Machine,
    authenticator: Authenticator,
    challenges: u8,
    /// Call-ID and last CSeq number: one series for as long as the process runs (RFC 3261 §10.2).
    call_id: String,
    cseq: u32,
    /// What `line` puts into Contact.
    token: String,
    /// The request that is awaited.
    request: Option<ClientId>,
    /// Where the last request went.
    flow: Option<Flow>,
    /// The Contact URI of the last request.
    contact: String,
    /// Where requests of ours are to go first (RFC 3608).
    service_route: Vec<String>,
    /// The server before us knows nothing of flows (439): they are not spoken of to it.
    without_outbound: bool,
    /// How long the flow may be silent, when the registrar keeps it as one (RFC 5626 §4.4).
    quiet: Option<Duration>,
    /// Asks the registrar whether the flow is there, when it is one of datagrams.
    keeper: Option<Keeper>,
    /// What the registrar and we protect media by (RFC 3329).
    agreement: Agreement,
}

impl Trunk {
    /// Whether flows are spoken of.
    fn is_outbound(&self) -> bool {
        self.config.outbound && !self.without_outbound
    }
}

/// One line of `pjsip show registrations`.
#[derive(Debug, Clone)]
pub struct RegistrationRow {
    /// Section name.
    pub name: String,
    /// `server_uri`.
    pub server_uri: String,
    /// `client_uri`.
    pub client_uri: String,
    /// Section of the first `outbound_auth`; empty without one.
    pub auth: String,
    /// How it stands.
    pub status: Status,
    /// Seconds until the binding lapses, when there is one.
    pub expires: Option<u64>,
    /// Options in effect, name and value.
    pub options: Vec<(&'static str, String)>,
}

/// All registrations of ours.
#[derive(Default)]
pub(crate) struct Trunks {
    by_name: BTreeMap<Rc<str>, Trunk>,
    /// Those taken out of the configuration while they were bound: they say goodbye.
    leaving: Vec<Trunk>,
    /// The earliest deadline of any.
    next: Option<Instant>,
    /// How long flows to these registrars may be silent.
    quiets: HashMap<SocketAddr, (Protocol, Duration)>,
}

impl Trunks {
    /// Takes over the configuration. What did not change goes on; what had given up begins anew.
    pub(crate) fn configure(&mut self, config: &Config, now: Instant) {
        let mut old = std::mem::take(&mut self.by_name);
        for (place, registration) in config.registrations.iter().enumerate() {
            let known = old.remove(&registration.name);
            let slot = u32::try_from(place).unwrap_or(u32::MAX) % STARTS_A_SPAN;
            let span = registration.initial_spread.max(INITIAL_SPREAD_MIN);
            let at = now + span * slot / STARTS_A_SPAN;
            let trunk = match known {
                Some(trunk)
                    if *trunk.config == **registration && trunk.machine.status() != Status::Stopped =>
                {
                    trunk
                }
                known => {
                    // A Contact with another token or address would be a second binding.
                    let (token, call_id, cseq) = match known {
                        Some(before) => {
                            let kept = (before.token.clone(), before.call_id.clone(), before.cseq);
                            if before.config.server_uri != registration.server_uri
                                || before.config.client_uri != registration.client_uri
                                || before.config.contact_user != registration.contact_user
                            {
                                self.leaving.push(Trunk { request: None, ..before });
                                (String::new(), String::new(), 0)
                            } else {
                                kept
                            }
                        }
                        None => (String::new(), String::new(), 0),
                    };
                    let mut machine = Machine::new(registration.rules);
                    machine.start_at(at);
                    Trunk {
                        config: registration.clone(),
                        machine,
                        authenticator: Authenticator::new(),
                        challenges: 0,
                        call_id,
                        cseq,
                        token,
                        request: None,
                        flow: None,
                        contact: String::new(),
                        service_route: Vec::new(),
                        without_outbound: false,
                        quiet: None,
                        keeper: None,
                        agreement: Agreement::new(&registration.security),
                    }
                }
            };
            self.by_name.insert(registration.name.clone(), trunk);
        }
        self.leaving.extend(old.into_values().map(|trunk| Trunk { request: None, ..trunk }));
        self.leaving.retain(|trunk| trunk.machine.status() == Status::Registered);
        self.settle();
    }
    /// When the first of them has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next
    }
    fn settle(&mut self) {
        let quiet = |trunk: &Trunk| {
            trunk.flow.zip(trunk.quiet).map(|(flow, quiet)| (flow.remote, (flow.protocol, quiet)))
        };
        self.quiets = self.by_name.values().filter_map(quiet).collect();
        let waiting = self.leaving.iter().any(|trunk| trunk.request.is_none());
        self.next = match waiting {
            true => Some(Instant::ZERO),
            false => {
                let deadlines = |trunk: &Trunk| {
                    let keeper = trunk.keeper.as_ref().and_then(Keeper::deadline);
                    trunk.machine.deadline().into_iter().chain(keeper).min()
                };
                self.by_name.values().filter_map(deadlines).min()
            }
        };
    }
    fn waits(&mut self, request: ClientId) -> Option<&mut Trunk> {
        let all = self.by_name.values_mut().chain(&mut self.leaving);
        all.into_iter().find(|trunk| trunk.request == Some(request))
    }
    /// Whether this request is one of a registration.
    pub(crate) fn owns(&self, request: ClientId) -> bool {
        self.by_name.values().chain(&self.leaving).any(|trunk| trunk.request == Some(request))
    }
    /// A REGISTER has gone to another server.
    pub(crate) fn moved(&mut self, request: ClientId, flow: Flow, contact: Option<&str>) {
        if let Some(trunk) = self.waits(request) {
            trunk.flow = Some(flow);
            if let Some(contact) = contact {
                trunk.contact = bare_uri(contact).to_owned();
            }
        }
    }
    /// How long a flow of ours may be silent before it has to be shown to be in use, when a registrar keeps it as one.
    pub(crate) fn quiet(&self, flow: Flow) -> Option<Duration> {
        self.quiets
            .get(&flow.remote)
            .filter(|(protocol, _)| *protocol == flow.protocol)
            .map(|(_, quiet)| *quiet)
    }
    /// The endpoint whose line this Request-URI names.
    pub(crate) fn line<'c>(&self, config: &'c Config, message: &Message<'_>) -> Option<&'c Rc<Endpoint>> {
        let uri = message.request_uri()?;
        let token = uri.params.get(b"line")?;
        let of =
            |trunk: &&Trunk| trunk.config.line && !trunk.token.is_empty() && trunk.token.as_bytes() == token;
        let trunk = self.by_name.values().find(of)?;
        config.endpoints.get(&trunk.config.endpoint)
    }
    /// The routes that the registrar of this endpoint's line wants requests to take, for requests to that server only.
    pub(crate) fn service_route(&self, endpoint: &str, target: &str) -> &[String] {
        let host =
            |text: &str| Uri::parse(text.as_bytes()).map(|uri| uri.host.as_bytes().to_ascii_lowercase());
        let of = |trunk: &&Trunk| *trunk.config.endpoint == *endpoint && !trunk.service_route.is_empty();
        let found = self.by_name.values().filter(of).find(|trunk| {
            host(target).is_some_and(|wanted| {
                Some(&wanted) == host(&trunk.config.server_uri).as_ref()
                    || Some(&wanted) == host(&trunk.config.client_uri).as_ref()
            })
        });
        found.map_or(&[], |trunk| &trunk.service_route)
    }
    /// What was agreed on with the registrar of this endpoint's line, or of this way.
    pub(super) fn agreement(&self, endpoint: &str, flow: Flow) -> Option<&Agreement> {
        let of = |trunk: &&Trunk| {
            *trunk.config.endpoint == *endpoint || trunk.flow.is_some_and(|own| same_way(own, flow))
        };
        self.by_name.values().filter(of).map(|trunk| &trunk.agreement).find(|agreement| agreement.is_made())
    }
    /// What requests of the registrations go to, for the resolver.
    pub(crate) fn hosts(config: &Config) -> impl Iterator<Item = &String> {
        config
            .registrations
            .iter()
            .flat_map(|registration| [&registration.server_uri, &registration.outbound_proxy])
    }
}

impl SipDriver {
    /// Sends what is due.
    pub(crate) fn trunks_due(&mut self, core: &mut Core) {
        if self.trunks.next.is_none_or(|at| at > core.now) {
            return;
        }
        let names: Vec<Rc<str>> = self.trunks.by_name.keys().cloned().collect();
        for name in names {
            let mut out = Vec::new();
            if let Some(trunk) = self.trunks.by_name.get_mut(&name) {
                trunk.machine.due(core.now, &mut out);
            }
            self.trunk_out(core, &name, out);
            let random = [core.random(), core.random()];
            let keeper = self.trunks.by_name.get_mut(&name).and_then(|trunk| trunk.keeper.as_mut());
            let said = keeper.and_then(|keeper| keeper.due(random, core.now));
            self.keeper_said(core, &name, said);
        }
        let leaving = std::mem::take(&mut self.trunks.leaving);
        for mut trunk in leaving {
            if trunk.request.is_none() {
                trunk.machine.stop(&mut Vec::new());
                if !self.send_register(core, &mut trunk, 0) {
                    continue;
                }
            }
            self.trunks.leaving.push(trunk);
        }
        self.trunks.settle();
    }
    /// How long nothing may leave on a flow, when it is one of ours that a registrar keeps (RFC 5626 §4.4.1).
    pub fn quiet(&self, flow: Flow) -> Option<Duration> {
        self.trunks.quiet(flow)
    }
    /// A message of STUN that is no request came: the answer of a registrar that was asked whether our flow is there.
    pub fn stun_answered(&mut self, core: &mut Core, flow: Flow, message: &[u8]) {
        let of = |trunk: &Trunk| trunk.flow.is_some_and(|own| same_way(own, flow));
        let names: Vec<Rc<str>> =
            self.trunks.by_name.iter().filter(|(_, trunk)| of(trunk)).map(|(name, _)| name.clone()).collect();
        for name in names {
            let keeper = self.trunks.by_name.get_mut(&name).and_then(|trunk| trunk.keeper.as_mut());
            let said = keeper.and_then(|keeper| keeper.handle(message, core.now));
            self.keeper_said(core, &name, said);
        }
        self.trunks.settle();
    }
    fn keeper_said(&mut self, core: &mut Core, name: &str, said: Option<keeper::Output>) {
        let Some(trunk) = self.trunks.by_name.get_mut(name) else { return };
        match (said, trunk.flow) {
            (Some(keeper::Output::Send(bytes)), Some(flow)) => {
                self.sends.push(Send { flow, bytes: bytes.into() });
            }
            (Some(keeper::Output::Lost), _) => {
                trunk.keeper = None;
                if trunk.machine.status() == Status::Registered && trunk.request.is_none() {
                    trunk.machine.start_at(core.now);
                }
                let line = format!("the flow of registration '{name}' is lost, it registers anew");
                core.log(Level::Notice, "res_pjsip_outbound_registration", &line);
            }
            (Some(keeper::Output::Send(_)) | None, _) => {}
        }
    }
    /// A connection closed: what registered over it cannot be reached any more and registers anew.
    pub(crate) fn trunks_lost(&mut self, core: &Core, flow: Flow) {
        if flow.connection.is_none() {
            return;
        }
        for trunk in self.trunks.by_name.values_mut() {
            let over =
                trunk.flow.is_some_and(|own| own.remote == flow.remote && own.protocol == flow.protocol);
            if over && trunk.machine.status() == Status::Registered && trunk.request.is_none() {
                trunk.machine.start_at(core.now + NAME_PAUSE);
            }
        }
        self.trunks.settle();
    }
    /// Registers now (`pjsip send register`): one, or all of them with `*all`. `false` when there is none of that name.
    pub fn register_now(&mut self, core: &mut Core, name: &str) -> bool {
        self.steer(core, name, Machine::start)
    }
    /// Takes a registration back (`pjsip send unregister`); it stays so until it is registered again.
    pub fn unregister_now(&mut self, core: &mut Core, name: &str) -> bool {
        self.steer(core, name, Machine::stop)
    }
    /// The process ends: what is bound is taken back, so that calls go where the registrar sends them without us. After a
    /// restart nobody would know the token of `line` in them.
    pub fn take_back_registrations(&mut self, core: &mut Core) {
        let bound = |trunk: &Trunk| trunk.machine.status() == Status::Registered && trunk.request.is_none();
        let names: Vec<Rc<str>> = self
            .trunks
            .by_name
            .iter()
            .filter(|(_, trunk)| bound(trunk))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.steer(core, &name, Machine::stop);
        }
    }
    /// Whether a registrar that is asked by datagrams has not answered yet.
    pub fn awaits_registrars(&self) -> bool {
        let by_datagrams = |trunk: &Trunk| trunk.flow.is_some_and(|flow| flow.protocol == Protocol::Udp);
        self.trunks.by_name.values().any(|trunk| trunk.request.is_some() && by_datagrams(trunk))
    }
    fn steer(&mut self, core: &mut Core, name: &str, act: fn(&mut Machine, &mut Vec<Output>)) -> bool {
        let chosen = |own: &&Rc<str>| name == "*all" || ***own == *name;
        let names: Vec<Rc<str>> = self.trunks.by_name.keys().filter(chosen).cloned().collect();
        for name in &names {
            let mut out = Vec::new();
            if let Some(trunk) = self.trunks.by_name.get_mut(name) {
                act(&mut trunk.machine, &mut out);
            }
            self.trunk_out(core, name, out);
        }
        self.trunks.settle();
        !names.is_empty()
    }
    /// What `pjsip show registrations` lists.
    pub fn registration_rows(&self, now: Instant) -> Vec<RegistrationRow> {
        let yes = |value: bool| if value { "true" } else { "false" }.to_owned();
        let wait = |wait: Option<Duration>| wait.map_or(0, |wait| wait.as_secs()).to_string();
        let row = |trunk: &Trunk| {
            let config = &trunk.config;
            let rules = &config.rules;
            RegistrationRow {
                name: config.name.to_string(),
                server_uri: config.server_uri.clone(),
                client_uri: config.client_uri.clone(),
                auth: config.outbound_auths.first().map(|auth| auth.to_string()).unwrap_or_default(),
                status: trunk.machine.status(),
                expires: trunk
                    .machine
                    .until()
                    .filter(|until| *until > now)
                    .map(|until| until.since(now).as_secs()),
                options: vec![
                    ("auth_rejection_permanent", yes(rules.rejection_is_permanent)),
                    ("client_uri", config.client_uri.clone()),
                    ("contact_header_params", config.contact_params.clone()),
                    ("contact_user", config.contact_user.clone()),
                    ("endpoint", config.endpoint.to_string()),
                    ("expiration", rules.expiration.to_string()),
                    ("fatal_retry_interval", wait(rules.fatal_retry)),
                    ("forbidden_retry_interval", wait(rules.forbidden_retry)),
                    ("line", yes(config.line)),
                    ("max_random_initial_delay", config.initial_spread.as_secs().to_string()),
                    ("max_retries", rules.max_retries.to_string()),
                    ("outbound_auth", config.outbound_auths.join(",")),
                    ("outbound_proxy", config.outbound_proxy.clone()),
                    ("retry_interval", wait(rules.retry)),
                    ("security_mechanisms", config.security.join(",")),
                    ("security_negotiation", super::show::negotiation(&config.security).to_owned()),
                    ("server_uri", config.server_uri.clone()),
                    ("support_outbound", yes(config.outbound)),
                    ("support_path", yes(config.path)),
                    ("transport", config.transport.clone()),
                    ("user_agent", config.user_agent.clone()),
                ],
            }
        };
        self.trunks.by_name.values().map(row).collect()
    }

    /// A response to a REGISTER, or none (`None`).
    pub(crate) fn registration_answered(
        &mut self,
        core: &mut Core,
        request: ClientId,
        answer: Option<(u16, &OwnedMessage)>,
    ) {
        if answer.is_some_and(|(status, _)| status < 200) {
            return;
        }
        let config = self.config.clone();
        let cnonce = core.random();
        let Some(trunk) = self.trunks.waits(request) else { return };
        let outcome = match answer {
            None => Outcome::Unanswered,
            Some((status @ (401 | 407 | 494), message)) => {
                match proven(&config, trunk, status, message, cnonce) {
                    None if status == 494 => Outcome::Refused(status, None),
                    None => Outcome::Rejected,
                    Some(headers) => {
                        let headers: Vec<(&str, &str)> =
                            headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                        let again =
                            self.with_stack(core, |stack, now, out| stack.retry(request, &headers, now, out));
                        let Some(trunk) = self.trunks.waits(request) else { return };
                        match again {
                            Ok(again) => {
                                (trunk.request, trunk.cseq) = (Some(again), trunk.cseq.saturating_add(1));
                                return;
                            }
                            Err(_) => Outcome::Unanswered,
                        }
                    }
                }
            }
            Some((status, message)) => read(trunk, status, &message.view()),
        };
        self.registration_came_to(
            core,
            request,
            outcome,
            answer.map(|(status, message)| {
                format!("{status} {}", identity::text(message.view().reason_phrase()))
            }),
        );
    }
    fn registration_came_to(
        &mut self,
        core: &mut Core,
        request: ClientId,
        outcome: Outcome,
        said: Option<String>,
    ) {
        let spread = (core.random() % 100) as u32;
        // Flows of many are shown to be in use at different moments (RFC 5626 §4.4.1).
        let percent = 80 + (core.random() % 21) as u32;
        let left = self.trunks.leaving.iter().position(|trunk| trunk.request == Some(request));
        if let Some(left) = left {
            self.trunks.leaving.swap_remove(left);
            return self.trunks.settle();
        }
        let Some(trunk) = self.trunks.waits(request) else { return };
        trunk.request = None;
        let before = trunk.machine.status();
        let mut out = Vec::new();
        let is_news = matches!(outcome, Outcome::Accepted(_));
        if matches!(outcome, Outcome::Rejected | Outcome::Refused(..) | Outcome::Unanswered) {
            trunk.agreement.forget();
            // Whoever has failed is asked anew.
            trunk.authenticator = Authenticator::new();
        }
        trunk.machine.outcome(outcome, spread, core.now, &mut out);
        if is_news || trunk.machine.status() != Status::Registered {
            keep_open(trunk, percent, core.now);
        }
        let (name, said) = (trunk.config.name.clone(), said.unwrap_or_else(|| "no answer".to_owned()));
        tell(core, trunk, before, &said);
        self.trunk_out(core, &name, out);
        self.trunks.settle();
    }
    /// Carries out what a machine wants.
    fn trunk_out(&mut self, core: &mut Core, name: &Rc<str>, out: Vec<Output>) {
        for output in out {
            let Output::Send(expires) = output else { continue };
            let Some(mut trunk) = self.trunks.by_name.remove(name) else { return };
            let sent = self.send_register(core, &mut trunk, expires);
            if !sent && trunk.request.is_none() {
                let before = trunk.machine.status();
                let mut out = Vec::new();
                trunk.machine.outcome(Outcome::Unanswered, 0, core.now, &mut out);
                tell(core, &trunk, before, "no way to the server");
            }
            self.trunks.by_name.insert(name.clone(), trunk);
        }
    }
    /// Sends a REGISTER. `false` when it cannot leave; when only the address of the server is awaited, it is tried again
    /// soon.
    fn send_register(&mut self, core: &mut Core, trunk: &mut Trunk, expires: u32) -> bool {
        let config = trunk.config.clone();
        let way = Endpoint {
            transport: config.transport.clone(),
            outbound_proxy: config.outbound_proxy.clone(),
            ..Endpoint::default()
        };
        self.awaited = None;
        let Some(route) = self.route_uri(core, Some(&way), &config.server_uri, None) else {
            if self.awaited.take().is_some() && expires > 0 {
                trunk.machine.start_at(core.now + NAME_PAUSE);
                return true;
            }
            return false;
        };
        if trunk.token.is_empty() {
            trunk.token = format!("{:016x}", core.random());
            trunk.call_id = ::sip::stack::call_id(core.random(), core.random());
        }
        trunk.cseq = trunk.cseq.saturating_add(1);
        trunk.challenges = 0;
        let token = trunk.token.clone();
        let outbound = trunk.is_outbound();
        let binding = |driver: &Self, flow: Flow| {
            let uri = contact_uri(&driver.contact(flow, &config.contact_user), &config, &token);
            contact_value(&uri, &config, outbound)
        };
        let contact = binding(self, route.flow);
        trunk.contact = bare_uri(&contact).to_owned();
        let ways = self.other_ways(&route.next, binding);
        let lasts = expires.to_string();
        let mut headers = vec![("Expires".to_owned(), lasts)];
        let supported: Vec<&str> = [(config.path, "path"), (outbound, "outbound")]
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, tag)| *tag)
            .collect();
        if !supported.is_empty() {
            headers.push(("Supported".to_owned(), supported.join(", ")));
        }
        if !config.user_agent.is_empty() {
            headers.push(("User-Agent".to_owned(), config.user_agent.clone()));
        }
        headers.extend(trunk.agreement.headers(true));
        headers.extend(armed(&self.config.clone(), trunk, core.random()));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let routes: Vec<&str> = route.routes.iter().map(String::as_str).collect();
        let account = format!("<{}>", super::outbound::without_port(&config.client_uri));
        let request = Outgoing {
            method: Method::Register,
            target: &config.server_uri,
            from: &account,
            to: &account,
            contact: Some(&contact),
            routes: &routes,
            headers: &headers,
            body: None,
            flow: route.flow,
            series: Some((&trunk.call_id, trunk.cseq)),
            symmetric: false,
        };
        trunk.flow = Some(route.flow);
        let sent = self.with_stack(core, |stack, now, out| {
            let id = stack.request(&request, now, out)?;
            stack.request_also_by(id, &ways);
            Ok::<_, ::sip::stack::Refused>(id)
        });
        trunk.request = sent.ok();
        trunk.request.is_some()
    }
}

/// The Contact URI: `<sip:user@host>` with the token of `line`.
fn contact_uri(contact: &str, config: &Registration, token: &str) -> String {
    let bare = contact.trim_start_matches('<').trim_end_matches('>');
    match config.line {
        true => format!("{bare};line={token}"),
        false => bare.to_owned(),
    }
}

/// The Contact value: the URI with the parameters of the binding.
fn contact_value(uri: &str, config: &Registration, outbound: bool) -> String {
    let mut contact = format!("<{uri}>");
    if outbound {
        // RFC 5626 §4.2: the same instance after a restart, another for every account.
        let instance = instance_id(config);
        contact.push_str(&format!(";reg-id=1;+sip.instance=\"<urn:uuid:{instance}>\""));
    }
    if !config.contact_params.is_empty() {
        contact.push(';');
        contact.push_str(config.contact_params.trim_start_matches(';'));
    }
    contact
}

/// The URI of such a value.
fn bare_uri(contact: &str) -> &str {
    contact.trim_start_matches('<').split('>').next().unwrap_or_default()
}

/// A name-based UUID (RFC 9562 §5.3) of the account.
fn instance_id(config: &Registration) -> String {
    let hash = ::sip::digest::Algorithm::Md5.ha1(
        config.name.as_bytes(),
        config.server_uri.as_bytes(),
        config.client_uri.as_bytes(),
    );
    let hex = String::from_utf8_lossy(hash.as_bytes()).into_owned();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    format!("{}-{}-3{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn logins_of<'c>(config: &'c Config, trunk: &Trunk) -> Vec<::sip::digest::Login<'c>> {
    super::outbound::logins(config, &trunk.config.outbound_auths)
}

/// What the REGISTER that is sent again has: for a challenge a login, for a 494 what the registrar says it can do
/// (RFC 3329 §2.3.1), which a challenge may say as well.
fn proven(
    config: &Config,
    trunk: &mut Trunk,
    status: u16,
    message: &OwnedMessage,
    cnonce: u64,
) -> Option<Vec<(String, String)>> {
    let is_news = trunk.agreement.learn(&message.view());
    let mut headers = match status {
        494 => {
            trunk.challenges += 1;
            let may_help = is_news && trunk.challenges <= CHALLENGES_MAX;
            may_help.then(|| armed(config, trunk, cnonce))?
        }
        _ => credentials(config, trunk, message, cnonce)?,
    };
    headers.extend(trunk.agreement.verification());
    Some(headers)
}

/// The headers that answer a challenge, if a login of the registration fits.
fn credentials(
    config: &Config,
    trunk: &mut Trunk,
    message: &OwnedMessage,
    cnonce: u64,
) -> Option<Vec<(String, String)>> {
    trunk.challenges += 1;
    let logins = logins_of(config, trunk);
    let answer = trunk.authenticator.challenged(&message.view(), &logins);
    if answer == AuthAnswer::GiveUp || trunk.challenges > CHALLENGES_MAX {
        trunk.authenticator = Authenticator::new();
        return None;
    }
    Some(armed(config, trunk, cnonce))
}

/// The headers that prove a REGISTER before it is asked to, as far as challenges are known.
fn armed(config: &Config, trunk: &mut Trunk, cnonce: u64) -> Vec<(String, String)> {
    let logins = logins_of(config, trunk);
    let (mut headers, uri) = (Vec::new(), trunk.config.server_uri.clone());
    let cnonce = format!("{cnonce:016x}");
    trunk.authenticator.credentials(
        b"REGISTER",
        uri.as_bytes(),
        cnonce.as_bytes(),
        &logins,
        |name, value| {
            let name = String::from_utf8_lossy(HeaderName::as_bytes(name)).into_owned();
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        },
    );
    headers
}

/// What a final response other than a challenge means.
fn read(trunk: &mut Trunk, status: u16, message: &Message<'_>) -> Outcome {
    let seconds = |name| {
        let value = message.header(name)?;
        let digits = value.split(|byte| !byte.is_ascii_digit()).next()?;
        ::sip::header::delta_seconds(digits)
    };
    match status {
        200..300 => {
            trunk.agreement.learn(message);
            let routes = message.values(HeaderName::ServiceRoute).take(SERVICE_ROUTES_MAX);
            trunk.service_route = routes.map(|route| String::from_utf8_lossy(route).into_owned()).collect();
            let timer =
                message.header(HeaderName::Other(b"Flow-Timer")).and_then(::sip::header::delta_seconds);
            let required = message.values(HeaderName::Require);
            let knows =
                timer.is_some() || required.into_iter().any(|tag| tag.eq_ignore_ascii_case(b"outbound"));
            trunk.quiet = (trunk.is_outbound() && knows).then(|| quiet(timer, trunk.flow));
            let general = seconds(HeaderName::Expires);
            Outcome::Accepted(granted(trunk, message, general).or(general))
        }
        // RFC 5626 §11.6: once more as everybody else.
        439 if trunk.is_outbound() => {
            trunk.without_outbound = true;
            Outcome::Again
        }
        423 => seconds(HeaderName::MinExpires).map_or(Outcome::Refused(423, None), Outcome::TooBrief),
        _ => Outcome::Refused(status, seconds(HeaderName::RetryAfter)),
    }
}

/// The longest silence on a flow, of which a registrar says so many seconds or nothing.
fn quiet(timer: Option<u32>, flow: Option<Flow>) -> Duration {
    let [stream, datagrams] = QUIET_MAX;
    let usual = match flow.map(|flow| flow.protocol) {
        Some(Protocol::Udp) | None => datagrams,
        Some(Protocol::Tcp | Protocol::Tls | Protocol::Ws | Protocol::Wss) => stream,
    };
    timer.map_or(usual, |seconds| Duration::from_secs(seconds.into())).max(QUIET_MIN)
}

/// Keeps a flow of datagrams open, or ceases to, as the last answer has it. Connections are pinged by whoever owns them.
fn keep_open(trunk: &mut Trunk, percent: u32, now: Instant) {
    let is_bound = trunk.machine.status() == Status::Registered;
    trunk.quiet = trunk.quiet.filter(|_| is_bound).map(|quiet| (quiet * percent / 100).max(QUIET_MIN));
    let is_datagrams = trunk.flow.is_some_and(|flow| flow.protocol == Protocol::Udp);
    match (trunk.quiet.filter(|_| is_datagrams), &mut trunk.keeper) {
        (Some(every), Some(keeper)) if keeper.deadline().is_some() => keeper.set_interval(every, now),
        (Some(every), keeper) => *keeper = Some(Keeper::new(every, now)),
        (None, keeper) => *keeper = None,
    }
}

/// Whether two flows are the same way to a peer.
fn same_way(one: Flow, other: Flow) -> bool {
    let [one, other] = [one, other].map(super::ways::outward);
    (one.transport, one.protocol, one.remote) == (other.transport, other.protocol, other.remote)
}

/// How surely a binding that a registrar lists is ours: the surest counts. Registrars write bindings as they like: with
/// further parameters, other escapes, the address that a NAT gave us, or the name that we have there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// Of somebody else, as far as can be seen.
    None,
    /// The same user at another address.
    User,
    /// The same user and host.
    Host,
    /// The same user, host and port.
    Address,
    /// Equal by RFC 3261 §19.1.4.
    Equal,
    /// It has the instance and flow, or the token, that nobody else gives.
    Named,
}

/// How like our own Contact another one is.
fn likeness(trunk: &Trunk, own: &Uri<'_>, listed: &NameAddr<'_>) -> Likeness {
    let uri = &listed.uri;
    let unquoted = |name| listed.params.get(name).map(::sip::header::unquote);
    let instance = format!("<urn:uuid:{}>", instance_id(&trunk.config));
    let is_named = trunk.is_outbound()
        && unquoted(b"+sip.instance").is_some_and(|id| id.eq_ignore_ascii_case(instance.as_bytes()));
    let line = uri.params.get(b"line");
    if is_named || trunk.config.line && line.is_some() && line == own.params.get(b"line") {
        return Likeness::Named;
    }
    if !uri.is_sip() || uri.user_decoded() != own.user_decoded() {
        return Likeness::None;
    }
    let host = match (uri.host.ip(), own.host.ip()) {
        (Some(one), Some(other)) => one.to_canonical() == other.to_canonical(),
        _ => uri.host.as_bytes().eq_ignore_ascii_case(own.host.as_bytes()),
    };
    match host {
        true if uri.matches(own) => Likeness::Equal,
        true if uri.port_or_default() == own.port_or_default() => Likeness::Address,
        true => Likeness::Host,
        false => Likeness::User,
    }
}

/// The seconds that the registrar gives our binding among those it lists (RFC 3261 §10.2.4); `general` is its Expires. Of
/// several that are equally like ours the shortest counts: who refreshes early loses nothing.
fn granted(trunk: &Trunk, message: &Message<'_>, general: Option<u32>) -> Option<u32> {
    let own = Uri::parse(trunk.contact.as_bytes())?;
    let listed: Vec<(Likeness, Option<u32>)> = message
        .contacts()
        .filter_map(|contact| contact.addr())
        .map(|contact| (likeness(trunk, &own, &contact), contact.expires().or(general)))
        .collect();
    let best = listed.iter().map(|(likeness, _)| *likeness).max()?;
    // What is like nobody's is ours when it is alone.
    if best == Likeness::None && listed.len() > 1 {
        return general;
    }
    listed.iter().filter(|(likeness, _)| *likeness == best).filter_map(|(_, seconds)| *seconds).min()
}

/// Tells the log and watchers how a registration stands.
fn tell(core: &mut Core, trunk: &Trunk, before: Status, said: &str) {
    let (status, config) = (trunk.machine.status(), &trunk.config);
    let (name, server, client) = (&config.name, &config.server_uri, &config.client_uri);
    let next = trunk.machine.deadline().map_or(0, |at| at.since(core.now).as_secs());
    let (level, line) = match status {
        Status::Registered if before == status => {
            (Level::Debug(1), format!("registration '{name}' of '{client}' with '{server}' was refreshed"))
        }
        Status::Registered => {
            (Level::Verbose(2), format!("registration '{name}' of '{client}' with '{server}' holds"))
        }
        Status::Rejected => (
            Level::Warning,
            format!(
                "registration '{name}' of '{client}' with '{server}' failed ({said}), retrying in '{next}' seconds"
            ),
        ),
        Status::Stopped => (
            Level::Warning,
            format!(
                "registration '{name}' of '{client}' with '{server}' failed ({said}), stopping; correct it and reload, or use \
                 'pjsip send register {name}'"
            ),
        ),
        Status::Unregistered => {
            (Level::Verbose(2), format!("registration '{name}' of '{client}' with '{server}' was taken back"))
        }
    };
    core.log(level, "res_pjsip_outbound_registration", &line);
    let (username, domain) = (client.clone(), server.clone());
    core.notice(|_| {
        let cause = String::new();
        Some(Notice::Registry { channel_type: "PJSIP", username, domain, status: status.word(), cause })
    });
}
