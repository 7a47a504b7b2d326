//! Requests of ours outside calls: NOTIFY, MESSAGE and what an administrator sends by hand.

use std::rc::Rc;

use ::sip::stack::{Body, ClientId, Header, Outgoing};
use ::sip::{Method, OwnedMessage};
use call::{Core, Level};

use super::SipDriver;
use super::config::Endpoint;
use super::outbound::{REDIRECTS_MAX, Route, to_uri, user_of};

/// A request on its way, for as long as it may be challenged or sent elsewhere.
pub(crate) struct Sent {
    endpoint: Rc<Endpoint>,
    /// What it takes to say it again elsewhere, when it may follow there.
    errand: Option<Box<Errand>>,
}

/// A message that follows a 3xx.
struct Errand {
    from: String,
    to: String,
    headers: Vec<(String, String)>,
    content_type: String,
    bytes: Vec<u8>,
    /// Where it has been, the first place first.
    been: Vec<String>,
    /// It is at a host that the configuration does not name: only logins for a realm of their own are shown there.
    strayed: bool,
}

impl Errand {
    fn new(request: &Request<'_>, to: &str, target: &str) -> Self {
        let owned = |(name, value): &Header<'_>| ((*name).to_owned(), (*value).to_owned());
        Self {
            from: request.from.clone(),
            to: to.to_owned(),
            headers: request.headers.iter().map(owned).collect(),
            content_type: request.body.map(|body| body.content_type.to_owned()).unwrap_or_default(),
            bytes: request.body.map(|body| body.bytes.to_vec()).unwrap_or_default(),
            been: vec![target.to_owned()],
            strayed: false,
        }
    }
}

/// What is sent.
pub(crate) struct Request<'a> {
    pub(crate) method: Method<'a>,
    /// Our From, without tag.
    pub(crate) from: String,
    pub(crate) headers: &'a [Header<'a>],
    pub(crate) body: Option<Body<'a>>,
}

/// Whom a NOTIFY by hand is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyTo<'a> {
    /// Every contact of an endpoint.
    Endpoint(&'a str),
    /// A URI, by the way of `default_outbound_endpoint`.
    Uri(&'a str),
    /// The phone of a channel, inside its call.
    Channel(&'a str),
}

/// Whom somebody is asked to call, outside of any call.
#[derive(Debug, Clone, Copy)]
pub struct Refer<'a> {
    /// From whom the wish is.
    pub from: &'a str,
    /// A URI, or an endpoint.
    pub refer_to: &'a str,
    /// An endpoint is to be called by us.
    pub to_self: bool,
    /// The name of whoever is to be called; empty: none.
    pub display_name: &'a str,
    /// Further headers.
    pub headers: &'a [(String, String)],
}

impl SipDriver {
    /// Sends a NOTIFY by hand. `lines` are its headers; `Content` is a line of its body, `Content-Type` the body's type.
    /// How many left; `None` when nobody of that name is known.
    pub fn send_notify(
        &mut self,
        core: &mut Core,
        to: NotifyTo<'_>,
        lines: &[(String, String)],
    ) -> Option<usize> {
        let line = |name: &str| {
            lines.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        // Fixed ones come first.
        let mut headers: Vec<Header<'_>> = vec![("Subscription-State", "terminated")];
        for (name, value) in lines {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let has_event = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case("Event"));
            match () {
                () if is("Content") || is("Content-Type") => {}
                () if is("Content-Length") => {
                    core.log(
                        Level::Notice,
                        "res_pjsip_notify",
                        "It is not necessary to specify Content-Length, ignoring",
                    );
                }
                () if is("Subscription-State") => {
                    headers.splice(..1, [(name.as_str(), value.as_str())]);
                }
                () if !super::ask::is_free_header(name) || is("Event") && has_event => {
                    let line = format!("Cannot specify {name} header, ignoring");
                    core.log(Level::Warning, "res_pjsip_notify", &line);
                }
                () => headers.push((name, value)),
            }
        }
        let text: Vec<&str> = lines
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("Content"))
            .map(|(_, value)| value.as_str())
            .collect();
        let text = text.join("\r\n");
        let content_type = line("Content-Type").map_or("text/plain", String::as_str);
        let body = (!text.is_empty()).then_some(Body { content_type, bytes: text.as_bytes() });
        let (endpoint, routes) = match to {
            NotifyTo::Channel(name) => {
                let id = core.by_name(name)?;
                let dialog = self.leg_of(id, core)?.dialog?;
                let sent = self.with_stack(core, |stack, now, out| {
                    stack.request_inside(dialog, (Method::Notify, &headers, body), now, out)
                });
                return Some(usize::from(sent.is_ok()));
            }
            NotifyTo::Endpoint(name) => {
                let endpoint = self.config.endpoints.get(name).cloned()?;
                let contacts = self.contacts_of(&endpoint);
                let routes: Vec<Route> = contacts
                    .iter()
                    .filter_map(|(aor, uri)| self.route_to(core, Some(&endpoint), aor, uri))
                    .collect();
                (endpoint, routes)
            }
            NotifyTo::Uri(uri) => {
                let endpoint = self.config.endpoints.get(&*self.config.default_outbound).cloned()?;
                let route = self.route_uri(core, Some(&endpoint), uri, None)?;
                (endpoint, vec![route])
            }
        };
        let mut sent = 0;
        for route in routes {
            let from = self.own_from(&endpoint, "", &route);
            let request = Request { method: Method::Notify, from, headers: &headers, body };
            sent += usize::from(self.send_outside(core, &endpoint, route, &request));
        }
        Some(sent)
    }

    /// Asks whoever `to` names to call somebody else, outside of any call (RFC 3515). `refer_to` is a URI or an endpoint,
    /// whose contact is told, or with `to_self` its name here. `false`: nobody could be asked, or is to be called.
    pub fn send_refer(&mut self, core: &mut Core, to: &str, refer: &Refer<'_>) -> bool {
        let resource = super::message::resource_of(to);
        let Ok(target) = self.target(&resource) else { return false };
        let endpoint = target.endpoint.clone();
        let Ok(route) = self.reach(core, &target) else { return false };
        let host = self.own_host(route.flow);
        let wanted = super::message::resource_of(refer.refer_to.trim());
        let wanted = wanted.strip_prefix("PJSIP/").unwrap_or(&wanted).to_owned();
        let called = if wanted.starts_with("sip:") || wanted.starts_with("sips:") {
            wanted
        } else {
            let Ok(other) = self.target(&wanted) else { return false };
            match refer.to_self {
                true => format!("sip:{wanted}@{host}"),
                false => match self.reach(core, &other) {
                    Ok(route) => route.uri,
                    Err(_) => return false,
                },
            }
        };
        let from = self.message_from(refer.from, &endpoint.from_user, &endpoint.from_domain, &host);
        let name = match refer.display_name {
            "" => String::new(),
            name => format!("\"{}\" ", name.replace(['"', '\\'], "")),
        };
        let called = format!("{name}<{called}>");
        let mut headers: Vec<Header<'_>> = vec![("Refer-To", &called), ("Referred-By", &from)];
        let free = refer.headers.iter().filter(|(name, _)| super::ask::is_free_header(name));
        headers.extend(free.map(|(name, value)| (name.as_str(), value.as_str())));
        let request = Request { method: Method::Refer, from: from.clone(), headers: &headers, body: None };
        self.send_outside(core, &endpoint, route, &request)
    }

    /// Every contact of an endpoint's AORs that may be reached, registered and fixed ones, with its AOR.
    pub(crate) fn contacts_of(&self, endpoint: &Endpoint) -> Vec<(String, Vec<u8>)> {
        let aors = endpoint.aors.iter().filter_map(|name| self.config.aors.get(name));
        let contacts = aors.flat_map(|aor| {
            let registered = self.registrations.registrar.bindings(&aor.name).iter().map(|b| b.uri.clone());
            let fixed = aor.contacts.iter().map(|uri| uri.clone().into_bytes());
            registered.chain(fixed).map(|uri| (aor.name.to_string(), uri)).collect::<Vec<_>>()
        });
        contacts
            .filter(|(aor, uri)| self.qualify.state(aor, uri).0 != super::qualify::Reachable::No)
            .collect()
    }

    /// What we are called in a request outside calls: as the endpoint wants it, else as whoever it is for, else by
    /// `default_from_user`.
    fn user_towards(&self, endpoint: &Endpoint, uri: &str) -> String {
        let names = [endpoint.from_user.clone(), user_of(uri)];
        names
            .into_iter()
            .find(|user| !user.is_empty())
            .unwrap_or_else(|| self.config.default_from_user.clone())
    }
    /// From of such a request, without tag; `user` goes before all others when there is one.
    pub(crate) fn own_from(&self, endpoint: &Endpoint, user: &str, route: &Route) -> String {
        let own_host = self.own_host(route.flow);
        let host = if endpoint.from_domain.is_empty() { &own_host } else { &endpoint.from_domain };
        let towards = self.user_towards(endpoint, &route.uri);
        super::identity::name_addr("", if user.is_empty() { &towards } else { user }, host, false)
    }
    /// Sends a request outside calls. A challenge is answered once with the endpoint's `outbound_auth`. `false`: it could
    /// not leave.
    pub(crate) fn send_outside(
        &mut self,
        core: &mut Core,
        endpoint: &Rc<Endpoint>,
        route: Route,
        request: &Request<'_>,
    ) -> bool {
        self.send_outside_to(core, endpoint, route, request, None)
    }
    /// The same, with a To of its own.
    pub(crate) fn send_outside_to(
        &mut self,
        core: &mut Core,
        endpoint: &Rc<Endpoint>,
        route: Route,
        request: &Request<'_>,
        to: Option<String>,
    ) -> bool {
        let to = to.unwrap_or_else(|| format!("<{}>", to_uri(&route.uri)));
        let follows = request.method == Method::Message && endpoint.follows_messages;
        let errand = follows.then(|| Box::new(Errand::new(request, &to, &route.uri)));
        self.send_by(core, route, request, &to, Sent { endpoint: endpoint.clone(), errand })
    }
    fn send_by(
        &mut self,
        core: &mut Core,
        route: Route,
        request: &Request<'_>,
        to: &str,
        sent: Sent,
    ) -> bool {
        let endpoint = sent.endpoint.clone();
        let user = match endpoint.contact_user.as_str() {
            "" => self.user_towards(&endpoint, &route.uri),
            user => user.to_owned(),
        };
        let user = user.as_str();
        let contact = self.contact(route.flow, user);
        let mut ways = self.other_ways(&route.next, |driver, flow| driver.contact(flow, user));
        if request.method == Method::Message {
            ways.iter_mut().for_each(|way| way.contact = None);
        }
        let routes: Vec<&str> = route.routes.iter().map(String::as_str).collect();
        // MESSAGE has no Contact (RFC 3428 §4).
        let outgoing = Outgoing {
            method: request.method,
            target: &route.uri,
            from: &request.from,
            to,
            contact: Some(contact.as_str()).filter(|_| request.method != Method::Message),
            routes: &routes,
            headers: request.headers,
            body: request.body,
            flow: route.flow,
            series: None,
            symmetric: false,
        };
        let left = self.with_stack(core, |stack, now, out| {
            let id = stack.request(&outgoing, now, out)?;
            stack.request_also_by(id, &ways);
            Ok::<_, ::sip::stack::Refused>(id)
        });
        match left {
            Ok(id) => {
                self.outside.insert(id, sent);
                true
            }
            Err(_) => false,
        }
    }
    /// A response to such a request.
    pub(crate) fn outside_answered(
        &mut self,
        core: &mut Core,
        request: ClientId,
        status: u16,
        message: &OwnedMessage,
    ) {
        if status < 200 {
            return;
        }
        let Some(sent) = self.outside.remove(&request) else { return };
        match status {
            300..=399 => self.follow(core, sent, message),
            401 | 407 => {
                let strayed = sent.errand.as_ref().is_some_and(|errand| errand.strayed);
                let config = self.config.clone();
                let has_realm =
                    |name: &&Rc<str>| config.auths.get(*name).is_some_and(|auth| !auth.realm.is_empty());
                let auths = sent.endpoint.outbound_auths.iter();
                let auths: Vec<Rc<str>> = auths.filter(|name| !strayed || has_realm(name)).cloned().collect();
                if let Some(again) = self.prove(core, request, message, &auths) {
                    self.outside.insert(again, sent);
                }
            }
            _ => {}
        }
    }
    /// A message was sent elsewhere (RFC 3261 §8.1.3.4): it goes there, unless it has been there or to too many places.
    fn follow(&mut self, core: &mut Core, mut sent: Sent, message: &OwnedMessage) {
        let Some(mut errand) = sent.errand.take() else { return };
        let targets: Vec<String> = message
            .view()
            .preferred_contacts()
            .iter()
            .map(|contact| super::identity::text(contact.uri.as_bytes()))
            .filter(|target| !errand.been.contains(target))
            .take(usize::from(REDIRECTS_MAX))
            .collect();
        if errand.been.len() > usize::from(REDIRECTS_MAX) || targets.is_empty() {
            return;
        }
        let endpoint = sent.endpoint.clone();
        let reached = |driver: &mut Self, target: &String| {
            Some((target.clone(), driver.route_uri(core, Some(&endpoint), target, None)?))
        };
        let Some((target, route)) = targets.iter().find_map(|target| reached(self, target)) else {
            let (name, all) = (&endpoint.name, targets.join("', '"));
            let line = format!("'{name}' sends a message to '{all}', and there is no way there");
            return core.log(Level::Notice, "res_pjsip_messaging", &line);
        };
        errand.strayed |= self.strays(&endpoint, &route.uri);
        errand.been.push(target);
        let headers = errand.headers.clone();
        let headers: Vec<Header<'_>> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let (content_type, bytes) = (errand.content_type.clone(), errand.bytes.clone());
        let body = Some(Body { content_type: &content_type, bytes: &bytes });
        let (from, to) = (errand.from.clone(), errand.to.clone());
        let request = Request { method: Method::Message, from, headers: &headers, body };
        sent.errand = Some(errand);
        self.send_by(core, route, &request, &to, sent);
    }
}
