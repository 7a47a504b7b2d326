//! MESSAGE (RFC 3428): in a call it is text for whoever talks there; outside of one it runs the dialplan. And messages
//! of ours.

use ::sip::stack::{Answer, Body, Flow, Incoming};
use ::sip::{Message, Method, NameAddr, Uri};
use call::{ChanState, Core, Level, Location, NewChannel, Reach, Sending, Text, TextMessage};

use super::inbound::{Known, exten_of};
use super::outbound::Target;
use super::outside::Request;
use super::{SipDriver, identity};

/// Longest text that is taken, bytes: several times what fits a datagram, for those that come by a connection.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Messages whose dialplans run at once; what comes beyond is asked to come again.
const RUNNING_MAX: usize = 256;
/// Name of the channel that runs a message's dialplan.
const QUEUE: &str = "Message/ast_msg_queue";
/// Handle of a channel that has no leg.
const NO_LEG: u64 = u64::MAX;
/// Headers of a message that the dialplan may read, beside those that the machines own.
const DATA_MAX: usize = 64;

/// The status that refuses the body of a MESSAGE; `None` when it is text that we take, or holds a part that is.
pub(crate) fn refusal(message: &Message<'_>) -> Option<u16> {
    if message.body().len() > TEXT_BYTES_MAX {
        return Some(413);
    }
    let fits = message.body_fits(|kind| kind.is("text", "plain"));
    let status = fits.err().map(::sip::Status::code);
    status.or_else(|| message.part("text", "plain").is_none().then_some(415))
}

/// What a MESSAGE in a call says, or the status that refuses it: text of any kind and documents of applications pass.
pub(crate) fn text_in_call(message: &Message<'_>) -> Result<Text, u16> {
    if message.body().len() > TEXT_BYTES_MAX {
        return Err(413);
    }
    let known = |kind: &::sip::header::MediaType<'_>| {
        kind.kind.eq_ignore_ascii_case(b"text") || kind.kind.eq_ignore_ascii_case(b"application")
    };
    // Plain text among other parts is what is read.
    if message.content_type().is_some_and(|kind| !known(&kind)) && message.part("text", "plain").is_some() {
        return Ok(*Text::plain(text_of(message)));
    }
    match message.content_type().filter(known).filter(|_| !message.body().is_empty()) {
        Some(kind) => {
            let kind = format!("{}/{}", identity::text(kind.kind), identity::text(kind.subtype));
            Ok(Text { body: readable(message.body()), kind })
        }
        None => Err(415),
    }
}

/// The text of a MESSAGE: bytes that are no UTF-8 and control characters but line breaks and tabs do not reach anybody.
pub(crate) fn text_of(message: &Message<'_>) -> String {
    readable(message.part("text", "plain").unwrap_or_default())
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t')).collect()
}

impl SipDriver {
    /// A MESSAGE outside calls.
    pub(crate) fn messaged(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        let view = incoming.message.view();
        if let Some(status) = refusal(&view) {
            let headers = [("Accept", "text/plain")];
            let answer = Answer::new(status);
            let answer = if status == 415 { answer.headers(&headers) } else { answer };
            return self.refuse(&incoming, &answer);
        }
        let context = [&endpoint.message_context, &endpoint.context];
        let context = context.into_iter().find(|context| !context.is_empty()).cloned().unwrap_or_default();
        let exten = exten_of(&view, self.config.ignore_user_options);
        // Who listens is a destination, whatever the dialplan has.
        let is_heard = core.stasis_hears_of("PJSIP", &endpoint.name);
        if is_heard {
            let told = told(&view, incoming.source, &endpoint);
            core.stasis_tell_text(("PJSIP", endpoint.name.to_string()), told);
        }
        if (core.reach)(core, &context, &exten, "") != Reach::Whole {
            if is_heard {
                // A retransmission finds its transaction, and is not told again.
                let Ok(request) = self.stack.accept(&incoming, core.now) else { return };
                let answer = Answer::new(202);
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
                return;
            }
            let line = format!(
                "message from '{}' to '{exten}' refused: no such extension in '{context}'",
                endpoint.name
            );
            if self.tells_of(core, &endpoint, &incoming) {
                core.log(Level::Notice, "res_pjsip_messaging", &line);
            }
            return self.refuse(&incoming, &Answer::new(404));
        }
        let message = read(&view, incoming.source, &endpoint);
        // A retransmission finds its transaction and never comes here; the answer is kept with it.
        let Ok(request) = self.stack.accept(&incoming, core.now) else {
            return self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", "10")]));
        };
        let location = Location { context, exten, priority: 1 };
        self.running.retain(|id| core.get(*id).is_some());
        let room = self.running.len() < RUNNING_MAX;
        // The field's server has one such channel, for one message after the other.
        let is_alone = core.by_name(QUEUE).is_none();
        let channel = room.then(|| {
            core.create(NewChannel {
                base_name: QUEUE.to_owned(),
                exact_name: is_alone.then(|| QUEUE.to_owned()),
                tech: self.tech_index,
                state: ChanState::Up,
                language: endpoint.language.clone(),
                location: location.clone(),
                handle: NO_LEG,
                ..NewChannel::default()
            })
        });
        let retry = [("Retry-After", "10")];
        let answer = match channel.flatten() {
            Some(id) => {
                if let Some(channel) = core.get_mut(id) {
                    channel.cdr.disabled = true;
                    channel.message = Some(Box::new(message));
                }
                self.running.push(id);
                self.started.push((id, location));
                Answer::new(202)
            }
            None => Answer::new(503).headers(&retry),
        };
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
    }

    /// Sends a message of ours: to an endpoint, to a URI by an endpoint's way, to a number at an endpoint.
    pub(crate) fn send_message(
        &mut self,
        core: &mut Core,
        destination: &str,
        message: &TextMessage,
    ) -> Sending {
        let Ok((target, aor)) = self.message_target(destination) else { return Sending::InvalidUri };
        let endpoint = target.endpoint.clone();
        let route = match aor {
            Some(aor) => self.reach_aor(core, &endpoint, &aor),
            None => self.reach(core, &target).ok(),
        };
        let Some(route) = route else { return Sending::InvalidUri };
        let host = self.own_host(route.flow);
        let from = self.message_from(&message.from, &endpoint.from_user, &endpoint.from_domain, &host);
        let to = match message.said_to.trim() {
            "" => None,
            said => {
                let far = Uri::parse(route.uri.as_bytes()).map(|uri| identity::text(uri.host.as_bytes()));
                let (name, user, said_host) = parts_of(said);
                let host = if said_host.is_empty() { far.unwrap_or_default() } else { said_host };
                Some(identity::name_addr(&name, &user, &host, false))
            }
        };
        let headers: Vec<(&str, &str)> = message
            .data
            .iter()
            .filter(|data| data.goes_out && super::ask::is_free_header(&data.name))
            .map(|data| (data.name.as_str(), data.value.as_str()))
            .collect();
        let body = Body { content_type: "text/plain", bytes: message.body.as_bytes() };
        let request = Request { method: Method::Message, from, headers: &headers, body: Some(body) };
        let sent = self.send_outside_to(core, &endpoint, route, &request, to);
        if sent { Sending::Sent } else { Sending::Failed }
    }
    /// Whom a destination means, and the AOR where it names one: an endpoint, whatever domain it has behind it; a URI or
    /// an AOR by an endpoint's way; a number at an endpoint; any other address by `default_outbound_endpoint`.
    fn message_target(&self, destination: &str) -> Result<(Target, Option<String>), base::Cause> {
        let resource = destination.strip_prefix("pjsip:").unwrap_or(destination).trim();
        let resource = match NameAddr::parse(resource.as_bytes()) {
            Some(address) if resource.contains('<') => identity::text(address.uri.as_bytes()),
            _ => resource.to_owned(),
        };
        let find = |name: &str| self.config.endpoints.get(name).cloned();
        let whole = |endpoint| Target { endpoint, uri: None, number: None };
        if let Some(number) = resource.strip_prefix("PJSIP/") {
            return self.target(number).map(|target| (target, None));
        }
        if resource.starts_with("sip:") || resource.starts_with("sips:") {
            return self.target(&resource).map(|target| (target, None));
        }
        if let Some((name, rest)) = resource.split_once('/') {
            let is_uri = rest.starts_with("sip:") || rest.starts_with("sips:");
            let endpoint = find(name).filter(|_| !is_uri && self.config.aors.contains_key(rest));
            return match endpoint {
                Some(endpoint) => Ok((whole(endpoint), Some(rest.to_owned()))),
                None => self.target(&resource).map(|target| (target, None)),
            };
        }
        let name = resource.split('@').next().unwrap_or_default();
        if let Some(endpoint) = find(name) {
            return Ok((whole(endpoint), None));
        }
        if let Ok(target) = self.target(&resource) {
            return Ok((target, None));
        }
        // A bare word is an endpoint that does not exist.
        if !resource.contains(['@', ':', '.']) {
            return Err(base::Cause::NO_ROUTE_DESTINATION);
        }
        self.target(&format!("sip:{resource}")).map(|target| (target, None))
    }
    /// The first contact of one AOR that may be reached, and the way to it.
    fn reach_aor(
        &mut self,
        core: &mut Core,
        endpoint: &std::rc::Rc<super::config::Endpoint>,
        aor: &str,
    ) -> Option<super::outbound::Route> {
        let aor: std::rc::Rc<str> = aor.into();
        let only = std::rc::Rc::new(super::config::Endpoint { aors: vec![aor], ..(**endpoint).clone() });
        self.reach(core, &Target { endpoint: only, uri: None, number: None }).ok()
    }
    /// From of a message: what the dialplan said of it, unless the endpoint has its own.
    pub(crate) fn message_from(
        &self,
        from: &str,
        own_user: &str,
        own_domain: &str,
        own_host: &str,
    ) -> String {
        let (name, user, host) = parts_of(from);
        let first = |options: [&str; 3]| {
            options.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
        };
        let user = first([own_user, &user, &self.config.default_from_user]);
        let host = first([own_domain, &host, own_host]);
        identity::name_addr(&name, &user, &host, false)
    }
}

/// Display name, user and host of an address as dialplans write it; a word without `@` is a user.
fn parts_of(text: &str) -> (String, String, String) {
    let bare = text.trim().strip_prefix("pjsip:").unwrap_or(text).trim();
    let address = NameAddr::parse(bare.as_bytes());
    let uri = address.map(|address| address.uri).or_else(|| Uri::parse(bare.as_bytes())).filter(Uri::is_sip);
    let Some(uri) = uri else { return (String::new(), identity::text(bare.as_bytes()), String::new()) };
    let name = address.map(|address| identity::text(&address.display_name())).unwrap_or_default();
    let (user, host) = (identity::text(&uri.user_decoded()), identity::text(uri.host.as_bytes()));
    if user.is_empty() { (name, host, String::new()) } else { (name, user, host) }
}

/// A URI without port and parameters.
fn bare(uri: &Uri<'_>, scheme: &str) -> String {
    let (user, host) = (identity::text(&uri.user_decoded()), identity::text(uri.host.as_bytes()));
    if user.is_empty() { format!("{scheme}:{host}") } else { format!("{scheme}:{user}@{host}") }
}

/// What a destination names, without its technology and without a display name.
pub(crate) fn resource_of(destination: &str) -> String {
    let resource = destination.strip_prefix("pjsip:").unwrap_or(destination).trim();
    match NameAddr::parse(resource.as_bytes()) {
        Some(address) if resource.contains('<') => identity::text(address.uri.as_bytes()),
        _ => resource.to_owned(),
    }
}

/// What programs learn of a message: as the dialplan, but for whom it was sent to, and who the endpoint is called.
fn told(message: &Message<'_>, source: Flow, endpoint: &super::config::Endpoint) -> TextMessage {
    let mut told = read(message, source, endpoint);
    if let Some(uri) = message.request_uri() {
        told.to = bare(&uri, "pjsip");
    }
    told.set("PJSIP_ENDPOINT", "", false);
    told
}

/// What the dialplan learns of a message.
fn read(message: &Message<'_>, source: Flow, endpoint: &super::config::Endpoint) -> TextMessage {
    let to = message.to().map(|to| bare(&to.uri, "pjsip")).unwrap_or_default();
    let from = message.from().map(|from| {
        let name: String = String::from_utf8_lossy(&from.display_name())
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let scheme = identity::text(from.uri.scheme.as_bytes());
        let uri =
            if from.uri.is_sip() { bare(&from.uri, &scheme) } else { identity::text(from.uri.as_bytes()) };
        if name.is_empty() { format!("<{uri}>") } else { format!("\"{name}\" <{uri}>") }
    });
    let mut read =
        TextMessage { to, from: from.unwrap_or_default(), body: text_of(message), ..TextMessage::default() };
    read.set("PJSIP_RECVADDR", &source.remote.to_string(), false);
    read.set("PJSIP_TRANSPORT", &source.protocol.name().to_ascii_lowercase(), false);
    read.set("PJSIP_ENDPOINT", endpoint.caller.name(), false);
    for (name, value) in message.fields().take(DATA_MAX) {
        let name = identity::text(name.as_bytes());
        let proves =
            ["Authorization", "Proxy-Authorization"].iter().any(|own| own.eq_ignore_ascii_case(&name));
        // Of several of one name the first counts.
        if !proves && read.get(&name).is_empty() {
            read.set(&name, &identity::text(value), false);
        }
    }
    read
}
