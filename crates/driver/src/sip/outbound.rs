//! Calls that go out: which contact, by which way, and the INVITE.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::rc::Rc;

use ::sip::digest::{Answer as AuthAnswer, Login};
use ::sip::locate::Wanted;
use ::sip::stack::{Body, ClientId, DialogId, Flow, Outgoing, PeerName, Protocol, TransportId, Way};
use ::sip::{HeaderName, OwnedMessage, Uri};
use base::dns::Question;
use base::{Cause, ChannelId, Instant};
use call::{ChanState, Core, NewChannel, Request};

use super::config::{Auth, Bind, Config, Endpoint, Redirect, Rel100};
use super::flows::Bound;
use super::leg::{Leg, Stage};
use super::qualify::Reachable;
use super::session::{Media, Terms};
use super::{SipDriver, ask, identity};

/// How often one INVITE answers challenges; a peer that challenges on and on is given up.
pub(super) const CHALLENGES_MAX: u8 = 3;

/// How often one call follows a 3xx; a peer that sends it on and on is given up.
pub(crate) const REDIRECTS_MAX: u8 = 5;

/// Where a request goes.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Request-URI.
    pub(crate) uri: String,
    pub(crate) flow: Flow,
    /// Route values, first hop first.
    pub(crate) routes: Vec<String>,
    /// Where it goes when the first server fails (RFC 3263 §4.3), in order.
    pub(crate) next: Vec<Flow>,
    /// The flow of a phone that it is.
    pub(crate) bound: Option<Bound>,
}

/// Longest that a call waits for the address of a name: the resolver has tried every server twice by then.
const NAME_WAIT: Duration = Duration::from_secs(15);
/// Largest CSeq number that a call of ours begins with.
const FIRST_CSEQ_MAX: u64 = 10_000;

/// A call that waits for the address of a name before it can be placed.
pub(crate) struct Waiting {
    question: Question,
    handle: u64,
    until: Instant,
}

/// What a dial string after `PJSIP/` names.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) endpoint: Rc<Endpoint>,
    /// A URI given outright.
    pub(crate) uri: Option<String>,
    /// A number to put into the user part of the contact.
    pub(crate) number: Option<String>,
}

impl Route {
    /// The same way, to whoever has this number there.
    fn called_as(mut self, number: &str) -> Self {
        self.uri = with_user(&self.uri, number);
        self.bound.iter_mut().for_each(|bound| bound.number = Some(number.to_owned()));
        self
    }
}

impl SipDriver {
    /// `6001`, `6001/sip:a@b`, `number@trunk`, `sip:a@b` (with default_outbound_endpoint).
    pub(crate) fn target(&self, resource: &str) -> Result<Target, Cause> {
        let resource = resource.trim();
        let find = |name: &str| self.config.endpoints.get(name).cloned();
        if resource.starts_with("sip:") || resource.starts_with("sips:") {
            let endpoint = find(&self.config.default_outbound).ok_or(Cause::NO_ROUTE_DESTINATION)?;
            return Ok(Target { endpoint, uri: Some(resource.to_owned()), number: None });
        }
        if let Some((name, rest)) = resource.split_once('/') {
            // `endpoint/sip:uri`, and the old `SIP/trunk/number`; `number@endpoint/sip:uri` calls somebody else there.
            let is_uri = rest.starts_with("sip:") || rest.starts_with("sips:");
            if let (true, Some((user, name))) = (is_uri, name.rsplit_once('@')) {
                let endpoint = find(name).ok_or(Cause::NO_ROUTE_DESTINATION)?;
                let user = ::sip::uri::percent_decode(user.as_bytes());
                let uri = with_user(rest, &String::from_utf8_lossy(&user));
                return Ok(Target { endpoint, uri: Some(uri), number: None });
            }
            let endpoint = find(name).ok_or(Cause::NO_ROUTE_DESTINATION)?;
            let (uri, number) =
                if is_uri { (Some(rest.to_owned()), None) } else { (None, Some(rest.to_owned())) };
            return Ok(Target { endpoint, uri, number });
        }
        if let Some((number, name)) = resource.rsplit_once('@')
            && let Some(endpoint) = find(name)
        {
            return Ok(Target { endpoint, uri: None, number: Some(number.to_owned()) });
        }
        // The name itself may have a domain.
        let endpoint = find(resource).ok_or(Cause::NO_ROUTE_DESTINATION)?;
        Ok(Target { endpoint, uri: None, number: None })
    }

    /// The first contact of the endpoint's AORs that is not known to be unreachable, and the way to it.
    pub(crate) fn reach(&mut self, core: &mut Core, target: &Target) -> Result<Route, Cause> {
        if let Some(uri) = &target.uri {
            if let Some((aor, binding, user)) = self.binding_called(&target.endpoint, uri) {
                let route = self.route_to_binding(core, Some(&target.endpoint), &aor, &binding);
                let route = route.ok_or(Cause::NO_ROUTE_DESTINATION)?;
                return Ok(match user {
                    Some(user) => route.called_as(&user),
                    None => route,
                });
            }
            return self
                .route_uri(core, Some(&target.endpoint), uri, None)
                .ok_or(Cause::NO_ROUTE_DESTINATION);
        }
        let config = self.config.clone();
        for aor in target.endpoint.aors.iter().filter_map(|name| config.aors.get(name)) {
            let registered = self.registrations.registrar.bindings(&aor.name).iter().map(|b| b.uri.clone());
            let fixed = aor.contacts.iter().map(|uri| uri.clone().into_bytes());
            let mut contacts: Vec<Vec<u8>> = registered.chain(fixed).collect();
            contacts.retain(|uri| self.qualify.state(&aor.name, uri).0 != Reachable::No);
            for uri in contacts {
                if let Some(mut route) = self.route_to(core, Some(&target.endpoint), &aor.name, &uri) {
                    if let Some(number) = &target.number {
                        route = route.called_as(number);
                    }
                    return Ok(self.by_service_route(core, &target.endpoint, route));
                }
            }
        }
        Err(Cause::NO_ROUTE_DESTINATION)
    }
    /// The way that the registrar of the endpoint's line asked for (RFC 3608 §6.1), unless the site has one of its own.
    fn by_service_route(&mut self, core: &Core, endpoint: &Endpoint, route: Route) -> Route {
        let service = self.trunks.service_route(&endpoint.name, &route.uri).to_vec();
        let Some(first) = service.first().filter(|_| route.routes.is_empty()) else { return route };
        match self.hop(core, Some(endpoint), first, None) {
            Some(by) => Route { uri: route.uri, routes: service, ..by },
            None => route,
        }
    }
    /// The way to a contact of an AOR, registered or fixed: by the endpoint's proxy, by the Path it registered with
    /// (RFC 3327), or straight.
    pub(crate) fn route_to(
        &mut self,
        core: &Core,
        endpoint: Option<&Endpoint>,
        aor: &str,
        uri: &[u8],
    ) -> Option<Route> {
        let bindings = self.registrations.registrar.bindings(aor).iter();
        match bindings.rev().find(|binding| binding.uri == uri).cloned() {
            Some(binding) => self.route_to_binding(core, endpoint, aor, &binding),
            None => self.route_uri(core, endpoint, core::str::from_utf8(uri).ok()?, None),
        }
    }
    /// The way to a registered contact. A phone that keeps its flow open is reached by that flow and no other: by the
    /// Path that names it, or straight (RFC 5626 §5.3).
    pub(crate) fn route_to_binding(
        &mut self,
        core: &Core,
        endpoint: Option<&Endpoint>,
        aor: &str,
        binding: &super::Binding,
    ) -> Option<Route> {
        let text = core::str::from_utf8(&::sip::registrar::told_uri(&binding.uri)).ok()?.to_owned();
        let bound = Bound::of(aor, binding);
        let source = self.ways.inward(&self.config, &mut self.stack, binding.source);
        let routes: Vec<String> =
            binding.path.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let rewritten = endpoint.is_none_or(|e| e.rewrite_contact);
        // Behind NAT, and on connections, only the way it came from leads back.
        if rewritten || source.connection.is_some() || binding.outbound && routes.is_empty() {
            return Some(Route { uri: text, flow: source, routes, next: Vec::new(), bound });
        }
        let mut route = match routes.first() {
            Some(first) => self.hop(core, endpoint, first, Some(source))?,
            None => return self.route_uri(core, endpoint, &text, Some(source)),
        };
        (route.uri, route.routes, route.bound) = (text, routes, bound);
        Some(route)
    }
    /// The way to a URI, through the endpoint's proxy when it has one.
    pub(crate) fn route_uri(
        &mut self,
        core: &Core,
        endpoint: Option<&Endpoint>,
        text: &str,
        like: Option<Flow>,
    ) -> Option<Route> {
        let Some(proxy) = endpoint.map(|e| &e.outbound_proxy).filter(|proxy| !proxy.is_empty()) else {
            return self.hop(core, endpoint, text, like);
        };
        Uri::parse(text.as_bytes()).filter(Uri::is_sip)?;
        let proxy = loose(proxy);
        let by = self.hop(core, endpoint, &proxy, like)?;
        Some(Route { uri: text.to_owned(), routes: vec![proxy], ..by })
    }
    /// The way to the host of a URI or route value (RFC 3263), as far as the shell has asked the DNS.
    fn hop(
        &mut self,
        core: &Core,
        endpoint: Option<&Endpoint>,
        text: &str,
        like: Option<Flow>,
    ) -> Option<Route> {
        let bare = text.trim().strip_prefix('<').and_then(|rest| rest.split('>').next()).unwrap_or(text);
        let uri = Uri::parse(bare.as_bytes())?;
        // The endpoint's transport goes before what the URI says.
        let named = endpoint.filter(|e| !e.transport.is_empty());
        let named = named.and_then(|e| self.config.binds.iter().find(|bind| bind.name == e.transport));
        let mut wanted = Wanted::new(&uri, named.map(|bind| bind.protocol))?;
        if !wanted.secure {
            wanted.protocol = wanted.protocol.or(like.map(|flow| flow.protocol));
        }
        // Nobody is called by a WebSocket. Whoever is at one has come by it, and is reached by its connection; the host of
        // such a Contact is no name (RFC 7118 §5.2.3).
        let is_web = |protocol: Option<Protocol>| matches!(protocol, Some(Protocol::Ws | Protocol::Wss));
        if is_web(wanted.protocol) || is_web(Wanted::new(&uri, None)?.protocol) {
            return None;
        }
        // RFC 5922 §4: what the URI says is to be proved, not what the DNS made of it.
        let proof = match uri.host.ip() {
            Some(ip) => ip.to_string(),
            None => String::from_utf8_lossy(uri.host.as_bytes()).into_owned(),
        };
        let config = self.config.clone();
        let mut flows = Vec::new();
        for target in self.servers(&wanted, core.now) {
            let (protocol, remote) = (target.protocol, target.remote);
            let Some(bind) = self.bind_for(endpoint, protocol, remote.ip(), like) else { continue };
            let transport = bind.id;
            let name = match protocol {
                Protocol::Tls => self.proofs.number(&proof)?,
                Protocol::Udp | Protocol::Tcp | Protocol::Ws | Protocol::Wss => PeerName::NONE,
            };
            let flow = Flow { transport, protocol, connection: None, name, remote };
            flows.push(self.ways.inward(&config, &mut self.stack, flow));
        }
        self.names.prefer(&mut flows, core.now);
        let mut flows = flows.into_iter();
        let flow = flows.next()?;
        Some(Route { uri: bare.to_owned(), flow, routes: Vec::new(), next: flows.collect(), bound: None })
    }
    /// Those of these ways that a request may take when the one before fails, and our Contact there.
    pub(crate) fn other_ways(&self, next: &[Flow], contact: impl Fn(&Self, Flow) -> String) -> Vec<Way> {
        next.iter().map(|flow| Way { flow: *flow, contact: Some(contact(self, *flow)) }).collect()
    }
    /// A server failed, and a request of ours has gone to the next one.
    pub(crate) fn moved(
        &mut self,
        core: &mut Core,
        (dialog, request): (Option<DialogId>, Option<ClientId>),
        (failed, flow): (Flow, Flow),
        contact: Option<String>,
    ) {
        self.names.shun(failed, core.now);
        let line = format!(
            "{} {} failed; its request goes to {} {}",
            failed.protocol.name(),
            failed.remote,
            flow.protocol.name(),
            flow.remote
        );
        core.log(call::Level::Notice, "res_pjsip", &line);
        let handle = dialog.and_then(|dialog| self.legs.by_dialog(dialog));
        if let Some(leg) = handle.and_then(|handle| self.legs.get_mut(handle)) {
            leg.flow = flow;
            if let Some(contact) = &contact {
                leg.contact.clone_from(contact);
            }
        }
        if let Some(request) = request {
            self.trunks.moved(request, flow, contact.as_deref());
            self.probe_moved(request, flow, core.now);
        }
    }
    fn bind_for(
        &self,
        endpoint: Option<&Endpoint>,
        protocol: Protocol,
        to: IpAddr,
        like: Option<Flow>,
    ) -> Option<&Bind> {
        let fits = |bind: &&Bind| bind.local.is_ipv4() == to.is_ipv4() && bind.protocol == protocol;
        let named = endpoint.filter(|e| !e.transport.is_empty());
        let named = named.and_then(|e| self.config.binds.iter().find(|b| b.name == e.transport && fits(b)));
        let like = like.map(|flow| super::ways::bind_id(flow.transport));
        let like = || like.and_then(|id| self.config.binds.iter().find(|b| b.id == id && fits(b)));
        named.or_else(like).or_else(|| self.config.binds.iter().find(fits))
    }

    /// Makes the channel; nothing is sent.
    pub(crate) fn request_leg(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        let target = self.target(&request.resource)?;
        let endpoint = target.endpoint.clone();
        self.awaited = None;
        let (route, waits_for) = match self.reach(core, &target) {
            Ok(route) => (route, None),
            // The way is found when the call is placed, or soon after.
            Err(_) if self.awaited.is_some() => (NOWHERE, Some(target)),
            Err(cause) => return Err(cause),
        };
        let advertised = match &waits_for {
            None => self.advertised(&endpoint, route.flow)?,
            Some(_) => NOWHERE.flow.remote.ip(),
        };
        if !self.legs.has_room() {
            return Err(Cause::SWITCH_CONGESTION);
        }
        if self.legs.is_at_limit(core, &endpoint, request.requestor) {
            let (name, limit) = (&endpoint.name, endpoint.call_limit);
            let line = format!("no call to '{name}': it has as many as call_limit={limit} lets it have");
            core.log(call::Level::Notice, "chan_pjsip", &line);
            return Err(Cause::USER_BUSY);
        }
        let caller =
            request.requestor.and_then(|caller| self.leg_of(caller, core)).map(|leg| leg.endpoint.codecs);
        let formats = endpoint.codecs.offered(request.formats, endpoint.allow, caller.as_ref());
        if formats.is_empty() && !endpoint.allow.is_empty() {
            let name = &endpoint.name;
            let line = format!(
                "no call to '{name}': it shares no format with the caller, and codec_prefs_* forbid to transcode"
            );
            core.log(call::Level::Notice, "chan_pjsip", &line);
            return Err(Cause::BEARERCAPABILITY_NOTAVAIL);
        }
        let media = Media::new(core, &endpoint, formats, advertised);
        let channel = core
            .create(NewChannel {
                base_name: format!("PJSIP/{}", endpoint.name),
                tech: self.tech_index,
                state: ChanState::Down,
                account: endpoint.account.clone(),
                tenant: Some(endpoint.tenant.clone()),
                pickup: endpoint.pickup.clone(),
                language: endpoint.language.clone(),
                formats,
                linked_to: request.requestor,
                outgoing: true,
                caller: endpoint.caller.clone(),
                location: call::Location {
                    context: endpoint.context.clone(),
                    exten: "s".to_owned(),
                    priority: 1,
                },
                uniqueid: request.uniqueid.clone(),
                ..NewChannel::default()
            })
            .ok_or(Cause::SWITCH_CONGESTION)?;
        // Its Call-ID is known before anything is sent.
        let call_id = ::sip::stack::call_id(core.random(), core.random());
        let strayed = endpoint.guards_logins && self.strays(&endpoint, &route.uri);
        let inherited = request.requestor.map(|caller| ask::inherited_headers(core, caller));
        let leg = Leg {
            target: request_uri(&endpoint, route.uri),
            routes: route.routes,
            next: route.next,
            bound: route.bound,
            headers: inherited.unwrap_or_default(),
            waits_for,
            passes_with: request.requestor,
            call_id: Some(call_id.clone()),
            ..Leg::new(channel, endpoint.clone(), route.flow, media)
        };
        let handle = self.legs.insert(leg).ok_or(Cause::SWITCH_CONGESTION)?;
        let to_phone =
            self.legs.get(handle).is_some_and(|leg| self.is_phone_at(&leg.endpoint, leg.flow.remote));
        let hops = request.requestor.and_then(|caller| self.hops_left(core, caller, to_phone));
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.hops = hops;
            leg.strayed = strayed;
        }
        if let Some(entry) = core.get_mut(channel) {
            entry.handle = handle;
            entry.call_id = call_id.into();
            entry.passes_hold = endpoint.passes_hold;
            entry.fax_watch = endpoint.fax_detect;
            if let Some(caller) = request.shown_caller() {
                entry.connected = caller.clone();
            }
        }
        super::inbound::set_own_variables(core, channel, &endpoint);
        for (name, value) in &request.variables {
            let (inherit, name) = dialplan::Inherit::strip(name);
            let Some(entry) = core.get_mut(channel) else { break };
            entry.vars.set(dialplan::Var::named(name), value, inherit);
        }
        Ok(channel)
    }

    /// Hops that a call on behalf of this one may take: one less than it came with, so that a circle of servers ends
    /// (RFC 7332 §4). One that nobody has counted down yet and that ends at a registered phone has them all.
    fn hops_left(&self, core: &Core, caller: ChannelId, to_phone: bool) -> Option<u8> {
        let most = self.config.max_forwards;
        let came = core.get(caller)?.hops?;
        if to_phone && came >= most { None } else { Some(came.saturating_sub(1).min(most)) }
    }
    /// Hops that a call has come with; none are counted of one that begins here: at a phone that is registered where the
    /// call comes from.
    pub(crate) fn hops_of(&self, endpoint: &Endpoint, incoming: &::sip::stack::Incoming) -> Option<u8> {
        let came = incoming.message.view().max_forwards()?;
        let begins_here =
            came >= self.config.max_forwards && self.is_phone_at(endpoint, incoming.source.remote);
        (!begins_here).then_some(came)
    }
    /// Whether somebody has registered for the endpoint from there.
    fn is_phone_at(&self, endpoint: &Endpoint, remote: SocketAddr) -> bool {
        let bindings = endpoint.aors.iter().flat_map(|name| self.registrations.registrar.bindings(name));
        bindings.into_iter().any(|binding| binding.source.remote == remote)
    }
    /// Whether a call of this endpoint goes to a host that neither its contacts nor its proxy name.
    pub(crate) fn strays(&self, endpoint: &Endpoint, target: &str) -> bool {
        let host = |text: &[u8]| Some(Wanted::new(&Uri::parse(text)?, None)?.host);
        let Some(wanted) = host(target.as_bytes()) else { return false };
        let fixed = |name: &Rc<str>| {
            let of = self.config.aors.get(name);
            of.is_some_and(|aor| {
                aor.contacts.iter().any(|uri| host(uri.as_bytes()).as_ref() == Some(&wanted))
            })
        };
        let bound = |name: &Rc<str>| {
            let bindings = self.registrations.registrar.bindings(name);
            bindings.iter().any(|binding| host(&binding.uri).as_ref() == Some(&wanted))
        };
        let own = endpoint.aors.iter().any(|name| fixed(name) || bound(name));
        !own && endpoint.outbound_proxy.is_empty()
    }
    /// The peer sends the call elsewhere and the endpoint has us follow at once (`redirect_method=uri_pjsip`): `true`
    /// when another INVITE is on its way.
    pub(crate) fn redirected(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) -> bool {
        let Some(handle) = self.legs.by_dialog(dialog) else { return false };
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.endpoint.redirect == Redirect::UriPjsip)
        else {
            return false;
        };
        let named: Vec<String> = message
            .view()
            .preferred_contacts()
            .iter()
            .filter(|contact| contact.uri.can_be_sent_to())
            .filter_map(|contact| core::str::from_utf8(contact.uri.as_bytes()).ok().map(str::to_owned))
            .take(REDIRECTS_MAX.into())
            .collect();
        // Who was named before is asked after whom the last one names.
        let before = std::mem::take(&mut leg.elsewhere);
        leg.elsewhere = named.into_iter().chain(before).take(REDIRECTS_MAX.into()).collect();
        self.by_another_target(core, handle)
    }
    /// Calls the next of those whom a 3xx has named and to whom there is a way (RFC 3261 §8.1.3.4); `false` when there is
    /// none.
    pub(crate) fn by_another_target(&mut self, core: &mut Core, handle: u64) -> bool {
        loop {
            let Some(leg) = self.legs.get_mut(handle) else { return false };
            let (endpoint, channel) = (leg.endpoint.clone(), leg.channel);
            if core.get(channel).is_none_or(|entry| entry.hangup.is_some())
                || leg.redirects >= REDIRECTS_MAX
                || leg.elsewhere.is_empty()
            {
                return false;
            }
            leg.redirects += 1;
            let uri = leg.elsewhere.remove(0);
            let dialog = leg.dialog;
            self.awaited = None;
            let route = self.route_uri(core, Some(&endpoint), &uri, None);
            let question = self.awaited.take();
            if route.is_none() && question.is_none() {
                continue;
            }
            let strayed = self.strays(&endpoint, &uri);
            if let Some(leg) = self.legs.get_mut(handle) {
                leg.strayed |= strayed;
            }
            match (route, question) {
                (Some(route), _) => self.call_anew(core, handle, dialog, route),
                (None, Some(question)) => {
                    self.ready_anew(handle, dialog);
                    if let Some(leg) = self.legs.get_mut(handle) {
                        leg.waits_for = Some(Target { endpoint, uri: Some(uri), number: None });
                    }
                    self.waiting.push(Waiting { question, handle, until: core.now + NAME_WAIT });
                }
                (None, None) => {}
            }
            return true;
        }
    }
    /// The INVITE failed in a way that another one may not: it goes out once more, by another way.
    pub(crate) fn call_anew(&mut self, core: &mut Core, handle: u64, dialog: Option<DialogId>, route: Route) {
        self.ready_anew(handle, dialog);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let channel = leg.channel;
        let number = route.bound.as_ref().and_then(|bound| bound.number.as_deref());
        let uri = number.map_or_else(|| route.uri.clone(), |number| with_user(&route.uri, number));
        leg.target = request_uri(&leg.endpoint, uri);
        (leg.flow, leg.routes, leg.next, leg.bound) = (route.flow, route.routes, route.next, route.bound);
        if let Err(cause) = self.place_call(core, handle) {
            core.remote_hangup(channel, cause, "no other way");
        }
    }
    /// Makes a leg ready for another INVITE.
    fn ready_anew(&mut self, handle: u64, dialog: Option<DialogId>) {
        dialog.into_iter().for_each(|dialog| self.legs.unbind(dialog));
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.stage = Stage::Idle;
            (leg.authenticator, leg.challenges) = (::sip::digest::Authenticator::new(), 0);
        }
    }
    /// The address that our descriptions name in a call by this way.
    fn advertised(&self, endpoint: &Endpoint, flow: Flow) -> Result<IpAddr, Cause> {
        let bind = self.bind(flow.transport).ok_or(Cause::NO_ROUTE_DESTINATION)?;
        Ok(self.media_address(bind, endpoint, flow.remote.ip()).1)
    }
    /// Places the call, now or when the address of its name has come.
    pub(crate) fn call_leg(&mut self, core: &mut Core, handle: u64) -> Result<(), Cause> {
        let leg = self.legs.get(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let Some(target) = leg.waits_for.clone() else { return self.place_call(core, handle) };
        self.awaited = None;
        let route = match (self.reach(core, &target), self.awaited.take()) {
            (Ok(route), _) => route,
            (Err(_), Some(question)) => {
                self.waiting.push(Waiting { question, handle, until: core.now + NAME_WAIT });
                return Ok(());
            }
            (Err(cause), None) => return Err(cause),
        };
        let advertised = self.advertised(&target.endpoint, route.flow)?;
        let leg = self.legs.get_mut(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        (leg.flow, leg.routes, leg.next, leg.waits_for) = (route.flow, route.routes, route.next, None);
        leg.bound = route.bound;
        leg.target = request_uri(&target.endpoint, route.uri);
        leg.media.advertise(advertised);
        self.place_call(core, handle)
    }
    /// The DNS has said something new: calls that wait for it are placed, wait for more, or end.
    pub(crate) fn name_came(&mut self, core: &mut Core) {
        self.look_back_again(core);
        self.go_on(core, |_, _| true);
    }
    /// Calls that waited too long for a name end.
    pub(crate) fn names_due(&mut self, core: &mut Core) {
        if self.names_deadline().is_some_and(|at| at <= core.now) {
            self.look_back_again(core);
            self.go_on(core, |waiting, now| waiting.until <= now);
        }
    }
    /// When the first call has waited long enough.
    pub(crate) fn names_deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().map(|waiting| waiting.until).min();
        waiting.into_iter().chain(self.stranded_deadline()).min()
    }
    fn go_on(&mut self, core: &mut Core, which: impl Fn(&Waiting, Instant) -> bool) {
        let now = core.now;
        let (ready, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| which(waiting, now));
        self.waiting = rest;
        let ready: Vec<Waiting> = ready;
        for waiting in ready {
            // It may have been hung up meanwhile.
            let Some(channel) = self.legs.get(waiting.handle).map(|leg| leg.channel) else { continue };
            let placed = match waiting.until <= now {
                true => Err(Cause::NO_ROUTE_DESTINATION),
                false => self.call_leg(core, waiting.handle),
            };
            // Who waits for more waits no longer than before.
            if let Some(again) = self.waiting.iter_mut().find(|again| again.handle == waiting.handle) {
                again.until = waiting.until;
            }
            if let Err(cause) = placed
                && !self.by_another_target(core, waiting.handle)
            {
                let line = format!("no address of '{}' to call", waiting.question.name);
                core.log(call::Level::Warning, "chan_pjsip", &line);
                core.remote_hangup(channel, cause, "no address of the host");
            }
        }
    }
    /// Whether the way is as secure as the caller asked for by `CHANNEL(secure_bridge_signaling)` and
    /// `CHANNEL(secure_bridge_media)`.
    fn secure_enough(&self, core: &mut Core, handle: u64) -> Result<(), Cause> {
        let leg = self.legs.get(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let asks = |name: &str| {
            let value = core.get(leg.channel).and_then(|channel| channel.vars.get_name(name));
            value == Some("1")
        };
        let has_media = leg.endpoint.encryption.is_some_and(|encryption| !encryption.optimistic);
        let missing = match () {
            () if asks(call::SECURE_SIGNALING) && !leg.flow.protocol.is_secure() => "signalling over TLS",
            () if asks(call::SECURE_MEDIA) && !has_media => "media_encryption without optimistic",
            () => return Ok(()),
        };
        let line =
            format!("the caller asks for a secure bridge, and '{}' has no {missing}", leg.endpoint.name);
        core.log(call::Level::Warning, "chan_pjsip", &line);
        Err(Cause::BEARERCAPABILITY_NOTAVAIL)
    }
    /// Sends the INVITE.
    fn place_call(&mut self, core: &mut Core, handle: u64) -> Result<(), Cause> {
        let config = self.config.clone();
        let (endpoint, flow) = {
            let leg = self.legs.get(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
            (leg.endpoint.clone(), leg.flow)
        };
        self.secure_enough(core, handle)?;
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: flow.remote.ip() };
        let bind = self.bind(flow.transport).cloned().ok_or(Cause::NO_ROUTE_DESTINATION)?;
        let (local, _) = self.media_address(&bind, &endpoint, flow.remote.ip());
        let own_host = self.own_host(flow);
        let leg = self.legs.get_mut(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let channel = leg.channel;
        leg.described_by = None;
        // A call that was sent elsewhere has its stream already.
        if leg.stream.is_none() {
            let stream = leg.media.open(core, local, &terms).map_err(|why| {
                let line = format!("no media for a call to '{}': {why}", endpoint.name);
                core.log(call::Level::Error, "chan_pjsip", &line);
                Cause::SWITCH_CONGESTION
            })?;
            leg.stream = Some(stream);
            let format = leg.media.plan(None, &terms).format;
            core.set_stream(channel, stream, format);
        }
        self.offer_passed(core, handle);
        let leg = self.legs.get_mut(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let sdp = leg.media.offer(&terms);
        let connected = core.get(channel).map(|c| c.connected.clone()).unwrap_or_default();
        let domain = if bind.domain.is_empty() { &own_host } else { &bind.domain };
        let from = identity::from(&endpoint, &connected, domain, &config.default_from_user);
        let mut identities = identity::assertions(&endpoint, &connected, &own_host, "calling");
        if let Some(redirecting) = core.get(channel).map(|c| &c.redirecting) {
            let to = to_uri(&leg.target);
            identities.extend(identity::redirections(&endpoint, redirecting, &own_host, &to));
        }
        identities.push(("Supported".to_owned(), endpoint.supported_with_history()));
        if endpoint.rel100 == Rel100::No {
            identities.push(("Allow".to_owned(), endpoint.allowed().to_owned()));
        }
        if endpoint.rel100 == Rel100::Required {
            identities.push(("Require".to_owned(), "100rel".to_owned()));
        }
        identities.extend(leg.timer.ask().into_iter().map(|(name, value)| (name.to_owned(), value)));
        let agreement = self.agreement(&endpoint, flow);
        identities.extend(agreement.headers(false));
        identities.extend(self.advice_wanted(core, handle));
        identities.extend(self.attested(core, handle, &connected, &sdp));
        let leg = self.legs.get_mut(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        identities.extend(leg.hops.map(|hops| ("Max-Forwards".to_owned(), hops.to_string())));
        let from = ask::with_params(from, &leg.from_params);
        let target = leg.target.clone();
        let to = match endpoint.user_eq_phone {
            true => with_phone(to_uri(&target)),
            false => to_uri(&target),
        };
        let to = format!("<{to}>");
        let (added, routes) = (leg.headers.clone(), leg.routes.clone());
        let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
        let is_hidden = connected.number_presentation.is_hidden();
        let number = match config.callerid_contact {
            true if is_hidden => "anonymous".to_owned(),
            true => connected.number.clone().unwrap_or_default(),
            false => String::new(),
        };
        let user = [&endpoint.contact_user, &number, &endpoint.from_user, &config.default_from_user];
        let user = user.into_iter().find(|user| !user.is_empty()).cloned().unwrap_or_default();
        let contact = self.contact(flow, &user);
        // What is offered names one address of ours, which has to be ours towards the others too.
        let mut next =
            std::mem::take(&mut self.legs.get_mut(handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?.next);
        let own = self.advertised(&endpoint, flow)?;
        next.retain(|next| self.advertised(&endpoint, *next) == Ok(own));
        let ways = self.other_ways(&next, |driver, flow| driver.contact(flow, &user));
        let replacing = Self::replacing_headers(core, channel);
        let headers: Vec<(&str, &str)> = identities
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(added.iter().chain(&replacing).map(|(name, value)| (name.as_str(), value.as_str())))
            .collect();
        // Another INVITE of the same leg, to another server, is another call.
        let call_id = self.legs.get_mut(handle).and_then(|leg| leg.call_id.take());
        let first = 1 + u32::try_from(core.random() % FIRST_CSEQ_MAX).unwrap_or(0);
        let outgoing = Outgoing {
            method: ::sip::Method::Invite,
            target: &target,
            from: &from,
            to: &to,
            contact: Some(&contact),
            routes: &routes,
            headers: &headers,
            body: Some(Body::sdp(&sdp)),
            flow,
            series: call_id.as_deref().map(|call_id| (call_id, first)),
            symmetric: endpoint.rewrite_contact,
        };
        let dialog = self
            .with_stack(core, |stack, now, out| {
                let dialog = stack.invite(&outgoing, now, out)?;
                stack.invite_also_by(dialog, &ways);
                Ok::<_, ::sip::stack::Refused>(dialog)
            })
            .map_err(|_| Cause::SWITCH_CONGESTION)?;
        self.legs.bind(handle, dialog);
        let call_id = self.stack.names(dialog).map(|names| identity::text(names.call_id).into());
        if let Some(entry) = core.get_mut(channel) {
            entry.call_id = call_id.unwrap_or_else(|| "".into());
        }
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.stage = Stage::Calling;
            leg.contact = contact;
            leg.told = Some(connected);
            leg.agreement = agreement;
        }
        self.keep_agreement(handle);
        // The channel is down until it rings. Its device is as free as it was, but for limits that count who is called.
        if endpoint.call_limit > 0 {
            core.touched_devices.push(format!("PJSIP/{}", endpoint.name));
        }
        Ok(())
    }

    /// Answers a challenge to an INVITE of ours with the endpoint's `outbound_auth`; only for what we asked, and not for ever.
    pub(crate) fn challenged(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        let config = self.config.clone();
        let random = core.random();
        let Some(asked) = self.stack.asked_by_invite(dialog) else { return };
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let is_up = leg.stage == Stage::Up;
        if is_up && !asked.proves {
            // Each re-INVITE is challenged anew.
            (leg.authenticator, leg.challenges) = (::sip::digest::Authenticator::new(), 0);
        }
        let may_prove = !(is_up && leg.endpoint.guards_logins && leg.target.is_empty());
        let logins = if may_prove { logins_of(&config, leg) } else { Vec::new() };
        leg.challenges += 1;
        let answer = leg.authenticator.challenged(&message.view(), &logins);
        if answer == AuthAnswer::GiveUp || leg.challenges > CHALLENGES_MAX {
            let (channel, name) = (leg.channel, leg.endpoint.name.clone());
            core.log(
                call::Level::Warning,
                "chan_pjsip",
                &format!("endpoint '{name}' challenged our call and no outbound_auth of it fits; add outbound_auth= with its realm"),
            );
            if is_up {
                return self.reinvite_refused(core, handle);
            }
            if !self.by_another_target(core, handle) {
                self.legs.unbind(dialog);
                core.remote_hangup(channel, Cause::CALL_REJECTED, "SIP 401 Unauthorized");
            }
            self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 0, &[], now, out)).ok();
            return;
        }
        let mut headers = proofs(&config, leg, &asked.uri, random);
        leg.agreement.learn(&message.view());
        headers.extend(leg.agreement.verification());
        self.keep_agreement(handle);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.with_stack(core, |stack, now, out| stack.retry_invite(dialog, &headers, now, out)).ok();
    }
    /// Remembers a call that ends, if its peer may challenge our BYE.
    pub(crate) fn note_leaving(&mut self, dialog: DialogId, leg: &Leg) {
        let may_prove = match leg.endpoint.guards_logins {
            true => leg.authenticator.is_armed() && !leg.target.is_empty(),
            false => !leg.endpoint.outbound_auths.is_empty(),
        };
        if leg.stage == Stage::Up && may_prove && !leg.strayed {
            self.leaving.insert(dialog, leg.endpoint.clone());
        }
    }
    /// A request of ours inside a call was challenged: it is sent once more with the endpoint's login; `None` when it is not.
    pub(crate) fn challenged_inside(
        &mut self,
        core: &mut Core,
        dialog: DialogId,
        request: ClientId,
        message: &OwnedMessage,
    ) -> Option<ClientId> {
        let leg = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle));
        // Only a leg that we called has a target.
        let may_prove = |leg: &&Leg| !(leg.strayed || leg.endpoint.guards_logins && leg.target.is_empty());
        let known = leg.filter(may_prove).map(|leg| leg.endpoint.clone());
        let endpoint = self.leaving.remove(&dialog).or(known)?;
        self.prove(core, request, message, &endpoint.outbound_auths)
    }
    /// Sends a request of ours once more that was challenged and proved nothing, with one of these auths; the new request.
    pub(crate) fn prove(
        &mut self,
        core: &mut Core,
        request: ClientId,
        message: &OwnedMessage,
        auths: &[Rc<str>],
    ) -> Option<ClientId> {
        let asked = self.stack.asked(request).filter(|asked| !asked.proves)?;
        let config = self.config.clone();
        let logins = logins(&config, auths);
        let mut authenticator = ::sip::digest::Authenticator::new();
        if authenticator.challenged(&message.view(), &logins) == AuthAnswer::GiveUp {
            return None;
        }
        let cnonce = format!("{:016x}", core.random());
        let mut headers: Vec<(String, String)> = Vec::new();
        authenticator.credentials(&asked.method, &asked.uri, cnonce.as_bytes(), &logins, |name, value| {
            let name = String::from_utf8_lossy(HeaderName::as_bytes(name)).into_owned();
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        });
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.with_stack(core, |stack, now, out| stack.retry(request, &headers, now, out)).ok()
    }
    /// Our host towards the peer of a flow, without a port.
    pub(crate) fn own_host(&self, flow: Flow) -> String {
        let named = self.stack.sent_by(flow).unwrap_or("localhost");
        let bare = named.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        bare.map_or(named, |(host, _)| host).to_owned()
    }
}

/// The logins that challenges to a call are answered with. Where somebody else has sent the call (3xx), or the configuration does
/// not send calls of an endpoint whose logins are guarded, one without a realm would be shown to anybody who asks.
fn logins_of<'a>(config: &'a Config, leg: &Leg) -> Vec<Login<'a>> {
    let mut logins = logins(config, &leg.endpoint.outbound_auths);
    logins.retain(|login| login.realm.is_some() || !leg.strayed);
    logins
}

/// The headers that prove an INVITE of this leg to this URI, as far as challenges are known.
pub(crate) fn proofs(config: &Config, leg: &mut Leg, uri: &[u8], random: u64) -> Vec<(String, String)> {
    let logins = logins_of(config, leg);
    let (mut headers, cnonce) = (Vec::new(), format!("{random:016x}"));
    leg.authenticator.credentials(b"INVITE", uri, cnonce.as_bytes(), &logins, |name, value| {
        let name = String::from_utf8_lossy(HeaderName::as_bytes(name)).into_owned();
        headers.push((name, String::from_utf8_lossy(value).into_owned()));
    });
    headers
}

/// The logins that challenges are answered with.
pub(crate) fn logins<'a>(config: &'a Config, outbound_auths: &[Rc<str>]) -> Vec<Login<'a>> {
    let auths = outbound_auths.iter().filter_map(|name| config.auths.get(name)).map(|auth| &**auth);
    let login = |auth: &'a Auth, secret| Login {
        realm: (!auth.realm.is_empty()).then_some(auth.realm.as_bytes()),
        username: auth.username.as_bytes(),
        secret,
        algorithms: &auth.answers,
    };
    auths.flat_map(|auth| auth.secrets().map(move |secret| login(auth, secret))).collect()
}

/// Stands for a way that is not known yet.
const NOWHERE: Route = Route {
    uri: String::new(),
    flow: Flow {
        transport: TransportId(0),
        protocol: Protocol::Udp,
        connection: None,
        name: PeerName::NONE,
        remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    },
    routes: Vec::new(),
    next: Vec::new(),
    bound: None,
};

/// The Request-URI as the endpoint wants it.
fn request_uri(endpoint: &Endpoint, uri: String) -> String {
    if endpoint.user_eq_phone { with_phone(uri) } else { uri }
}

/// A proxy as a route value that asks for loose routing (RFC 3261 §16.12).
fn loose(proxy: &str) -> String {
    let bare = proxy.trim().trim_start_matches('<').trim_end_matches('>');
    let host = bare.split_once('@').map_or(bare, |(_, host)| host);
    let loose = host.split(';').skip(1).any(|param| param.trim().eq_ignore_ascii_case("lr"));
    if loose { format!("<{bare}>") } else { format!("<{bare};lr>") }
}

/// The URI with `user=phone` when its user is a number.
fn with_phone(uri: String) -> String {
    let user = uri.split_once(':').and_then(|(_, rest)| rest.split_once('@')).map(|(user, _)| user);
    if user.is_some_and(identity::is_number) && !uri.contains(";user=") {
        format!("{uri};user=phone")
    } else {
        uri
    }
}

/// The URI with another user part.
pub(crate) fn with_user(uri: &str, user: &str) -> String {
    let Some(colon) = uri.find(':') else { return uri.to_owned() };
    let (scheme, rest) = uri.split_at(colon + 1);
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    let mut encoded = Vec::new();
    ::sip::uri::percent_encode_user(user.as_bytes(), &mut encoded);
    format!("{scheme}{}@{host}", String::from_utf8_lossy(&encoded))
}

/// The URI as it belongs into To: without parameters and headers.
pub(crate) fn without_params(uri: &str) -> &str {
    // A user part may hold both (RFC 3261 §25.1).
    let host = uri.find('@').map_or(0, |at| at + 1);
    let end = uri.get(host..).and_then(|rest| rest.find([';', '?'])).map_or(uri.len(), |at| host + at);
    uri.get(..end).unwrap_or(uri)
}

/// The URI as From and To have it: without parameters, headers and port (RFC 3261 §19.1.1, table 1).
pub(crate) fn to_uri(uri: &str) -> String {
    without_port(without_params(uri))
}

/// The URI without its port.
pub(crate) fn without_port(uri: &str) -> String {
    let port = Uri::parse(uri.as_bytes()).and_then(|uri| uri.port_range());
    let without = port.and_then(|(from, to)| Some([uri.get(..from)?, uri.get(to..)?].concat()));
    without.unwrap_or_else(|| uri.to_owned())
}

/// The user part of a URI; empty without one.
pub(crate) fn user_of(uri: &str) -> String {
    let user = Uri::parse(uri.as_bytes()).map(|uri| identity::text(&uri.user_decoded()));
    user.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3261_19_1_1_a_uri_of_from_and_to_has_neither_port_nor_parameters() {
        for (uri, expected) in [
            ("sip:bob@192.0.2.1:5060", "sip:bob@192.0.2.1"),
            ("sip:bob@192.0.2.1:5070;transport=tcp", "sip:bob@192.0.2.1"),
            ("sips:bob@example.com:5061?a=b", "sips:bob@example.com"),
            ("sip:bob@[2001:db8::1]:5060", "sip:bob@[2001:db8::1]"),
            ("sip:bob@[2001:db8::1]", "sip:bob@[2001:db8::1]"),
            ("sip:bob:secret@example.com:5060", "sip:bob:secret@example.com"),
            ("sip:192.0.2.1:5060", "sip:192.0.2.1"),
            ("sip:example.com", "sip:example.com"),
        ] {
            assert_eq!(to_uri(uri), expected, "{uri}");
        }
    }

    #[test]
    fn a_dialled_number_replaces_the_user_of_the_contact() {
        for (uri, user, expected) in [
            ("sip:trunk@192.0.2.1:5080", "4930123", "sip:4930123@192.0.2.1:5080"),
            ("sip:192.0.2.1", "123", "sip:123@192.0.2.1"),
            ("sip:a@h;transport=tcp", "b c", "sip:b%20c@h;transport=tcp"),
        ] {
            assert_eq!(with_user(uri, user), expected);
        }
        assert_eq!(without_params("sip:a@h;transport=tcp"), "sip:a@h");
        assert_eq!(without_params("sip:+49;ext=1?@h;transport=tcp"), "sip:+49;ext=1?@h");
        assert_eq!(loose("sip:proxy.example:5070"), "<sip:proxy.example:5070;lr>");
        assert_eq!(loose("<sip:p;transport=tcp;lr>"), "<sip:p;transport=tcp;lr>");
        assert_eq!(with_phone("sip:+49301@h".to_owned()), "sip:+49301@h;user=phone");
        assert_eq!(with_phone("sip:alice@h".to_owned()), "sip:alice@h");
    }
}
