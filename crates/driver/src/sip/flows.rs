//! Flows that phones keep open (RFC 5626): how long one may be silent, and what follows when one is lost.

use core::time::Duration;
use std::rc::Rc;

use ::sip::stack::{DialogId, Failure, Flow, Protocol};
use ::sip::{HeaderName, Message, Uri};
use call::{Core, Level};

use super::config::Endpoint;
use super::leg::Stage;
use super::{SipDriver, identity};

/// A phone has to be heard of this often on a connection that it registered by as a flow (`Flow-Timer`): the longest that
/// RFC 5626 §4.4.1 has a phone wait between two pings of its own accord.
const FLOW_TIMER: Duration = Duration::from_secs(120);
/// Beyond it a flow is dead: a ping may be late by as much as its answer is waited for (RFC 5626 §4.4.1).
const GRACE: Duration = Duration::from_secs(10);

/// One of the flows of a phone, as a call takes it.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    aor: Rc<str>,
    instance: Vec<u8>,
    /// Flows of this instance that the call has tried.
    tried: Vec<u32>,
    /// The number that was dialled in place of the contact's user.
    pub(crate) number: Option<String>,
}

impl Bound {
    /// The flow that a binding names.
    pub(crate) fn of(aor: &str, binding: &super::Binding) -> Option<Self> {
        let (instance, reg_id) = (binding.instance.clone()?, binding.reg_id.filter(|_| binding.outbound)?);
        Some(Self { aor: aor.into(), instance, tried: vec![reg_id], number: None })
    }
}

/// What a registration asks of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Nothing.
    Nothing,
    /// It is one by a flow, from the phone itself.
    Straight,
    /// It is one by a flow that a proxy before us keeps, and names in its Path.
    ByProxy,
    /// It would be, and the proxy knows nothing of flows: 439.
    Unsupported,
}

impl Asks {
    /// RFC 5626 §6: the Path of the first proxy, the last that is named, has to say `ob`.
    pub(crate) fn of(message: &Message<'_>) -> Self {
        let flow = message
            .contacts()
            .filter_map(::sip::header::Contact::addr)
            .any(|contact| contact.params.has(b"reg-id") && contact.params.has(b"+sip.instance"));
        let supports = message.values(HeaderName::Supported).any(|tag| tag.eq_ignore_ascii_case(b"outbound"));
        if !flow || !supports {
            return Self::Nothing;
        }
        let first = message.values(HeaderName::Path).last().and_then(::sip::NameAddr::parse);
        match (message.values(HeaderName::Via).nth(1), first) {
            (None, None) => Self::Straight,
            (_, Some(first)) if first.uri.params.has(b"ob") => Self::ByProxy,
            (Some(_), _) => Self::Unsupported,
            // A Path that nobody has written on the way.
            (None, Some(_)) => Self::Nothing,
        }
    }
}

impl SipDriver {
    /// What the 200 to such a registration says of its flow. A connection that a phone registered by straight has to be
    /// used from here on, if only by pings; browsers have pings of their own, which they know nothing of.
    pub(crate) fn flow_headers(&mut self, asks: Asks, source: Flow) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if matches!(asks, Asks::Straight | Asks::ByProxy) {
            headers.push(("Require", "outbound".to_owned()));
        }
        if let (Asks::Straight, Protocol::Tcp | Protocol::Tls, Some(connection)) =
            (asks, source.protocol, source.connection)
        {
            self.registrations.timed.insert(connection);
            headers.push(("Flow-Timer", FLOW_TIMER.as_secs().to_string()));
        }
        headers
    }
    /// How long nothing may come on a connection, when it is one of a phone that keeps its flow open.
    pub fn patience(&self, flow: Flow) -> Option<Duration> {
        let timed = flow.connection.is_some_and(|connection| self.registrations.timed.contains(&connection));
        timed.then_some(FLOW_TIMER + GRACE)
    }
    /// A call by one flow of a phone failed because the flow did: the phone is called by another one (RFC 5626 §7), newest
    /// first. `false` when that was not why, or there is none.
    pub(crate) fn by_another_flow(&mut self, core: &mut Core, dialog: DialogId, failure: &Failure) -> bool {
        let Some(handle) = self.legs.by_dialog(dialog) else { return false };
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        let lost = match failure {
            Failure::Refused { status: 430, .. } => true,
            // It has not rung.
            Failure::Timeout | Failure::Transport if leg.status == 0 => false,
            Failure::Refused { .. } | Failure::Timeout | Failure::Transport | Failure::Canceled => {
                return false;
            }
        };
        let (Some(bound), Stage::Calling) = (leg.bound.take(), leg.stage) else { return false };
        let (endpoint, channel) = (leg.endpoint.clone(), leg.channel);
        if lost && let Some(reg_id) = bound.tried.last().copied() {
            self.flow_lost(core, &bound.aor, |b| {
                b.reg_id == Some(reg_id) && b.instance.as_ref() == Some(&bound.instance)
            });
        }
        let bindings = self.registrations.registrar.bindings(&bound.aor).iter().rev();
        let other = |b: &&super::Binding| {
            let fresh = b.reg_id.is_some_and(|id| !bound.tried.contains(&id));
            fresh
                && b.instance.as_ref() == Some(&bound.instance)
                && !self.qualify.is_unreachable(&bound.aor, &b.uri)
        };
        let Some(binding) = bindings.into_iter().find(other).cloned() else { return false };
        let Some(mut route) = self.route_to_binding(core, Some(&endpoint), &bound.aor, &binding) else {
            return false;
        };
        let tried = bound.tried.into_iter().chain(binding.reg_id).collect();
        route.bound = Some(Bound { tried, ..bound });
        let name = core.get(channel).map(|c| c.name.to_string()).unwrap_or_default();
        let line = format!("{name}: a flow of '{}' is lost, its next one is tried", endpoint.name);
        core.log(Level::Verbose(3), "res_pjsip_outbound", &line);
        self.call_anew(core, handle, Some(dialog), route);
        true
    }
    /// The proxy that kept a flow says that it is no more (430): so is its binding.
    pub(crate) fn flow_lost(&mut self, core: &mut Core, aor: &str, which: impl Fn(&super::Binding) -> bool) {
        let before = self.registrations.changes.len();
        let gone = |binding: &super::Binding| binding.outbound && which(binding);
        self.registrations.registrar.remove_those(aor, &gone, core.now, &mut self.registrations.changes);
        self.tell_changes(core, before);
    }
    /// The contact of an endpoint that is called by its URI: the way to it is that of its registration, if it has one. With
    /// another user in it, it is that contact still, and this is who it is called as.
    pub(crate) fn binding_called(
        &self,
        endpoint: &Endpoint,
        uri: &str,
    ) -> Option<(Rc<str>, super::Binding, Option<String>)> {
        let named = Uri::parse(uri.as_bytes())?;
        let find = |is: &dyn Fn(&super::Binding) -> bool| {
            endpoint.aors.iter().find_map(|aor| {
                let mut newest_first = self.registrations.registrar.bindings(aor).iter().rev();
                Some((aor.clone(), newest_first.find(|binding| is(binding))?.clone()))
            })
        };
        let is_named =
            |own: &[u8]| own == uri.as_bytes() || Uri::parse(own).is_some_and(|own| own.matches(&named));
        if let Some((aor, binding)) = find(&|binding| is_named(&binding.uri)) {
            return Some((aor, binding, None));
        }
        let user = identity::text(&named.user_decoded());
        let renamed = |own: &[u8]| super::outbound::with_user(&identity::text(own), &user);
        let (aor, binding) = find(&|binding| !user.is_empty() && is_named(renamed(&binding.uri).as_bytes()))?;
        Some((aor, binding, Some(user)))
    }
    /// The contacts of an AOR that one dial is to reach: of several flows of one phone the newest only (RFC 5626 §7).
    pub(crate) fn contacts_called(&self, aor: &str) -> Vec<String> {
        let bindings = self.registrations.registrar.bindings(aor);
        let newest = |at: usize, binding: &super::Binding| {
            let later = bindings.get(at + 1..).unwrap_or_default();
            !binding.outbound || !later.iter().any(|b| b.outbound && b.instance == binding.instance)
        };
        let called = bindings.iter().enumerate().filter(|(at, binding)| newest(*at, binding));
        let mut uris: Vec<String> = called.map(|(_, binding)| identity::text(&binding.uri)).collect();
        uris.sort_by_cached_key(|uri| super::show::contact_hash(uri.as_bytes()));
        uris
    }
}
