//! MESSAGE (RFC 3428): in a call it is text for whoever talks there; outside of one it runs the dialplan. And messages
//! of ours.

use ::sip::stack::{Answer, Body, Incoming};
use ::sip::{HeaderName, Message, Method, NameAddr, Uri};
use call::{ChanState, Core, Level, Location, NewChannel, Reach, Sending, TextMessage};

use super::inbound::{Known, exten_of};
use super::outside::Request;
use super::{SipDriver, identity};

/// Longest text that is taken, bytes: several times what fits a datagram, for those that come by a connection.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Messages whose dialplans run at once; what comes beyond is asked to come again.
const RUNNING_MAX: usize = 256;
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

/// The text of a MESSAGE: bytes that are no UTF-8 and control characters but line breaks and tabs do not reach anybody.
pub(crate) fn text_of(message: &Message<'_>) -> String {
    let text = String::from_utf8_lossy(message.part("text", "plain").unwrap_or_default());
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
        let caller = identity::caller_of(&view, &endpoint);
        if (core.reach)(core, &context, &exten, caller.number()) != Reach::Whole {
            let line = format!(
                "message from '{}' to '{exten}' refused: no such extension in '{context}'",
                endpoint.name
            );
            if self.tells_of(core, &endpoint, &incoming) {
                core.log(Level::Notice, "res_pjsip_messaging", &line);
            }
            return self.refuse(&incoming, &Answer::new(404));
        }
        let message = read(&view, incoming.source.remote);
        // A retransmission finds its transaction and never comes here; the answer is kept with it.
        let Ok(request) = self.stack.accept(&incoming, core.now) else {
            return self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", "10")]));
        };
        let location = Location { context, exten, priority: 1 };
        self.running.retain(|id| core.get(*id).is_some());
        let room = self.running.len() < RUNNING_MAX;
        let channel = room.then(|| {
            core.create(NewChannel {
                base_name: "Message/ast_msg_queue".to_owned(),
                tech: self.tech_index,
                state: ChanState::Up,
                caller,
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
        let resource = destination.strip_prefix("pjsip:").unwrap_or(destination).trim();
        let resource = match NameAddr::parse(resource.as_bytes()) {
            Some(address) if resource.contains('<') => identity::text(address.uri.as_bytes()),
            _ => resource.to_owned(),
        };
        let Ok(target) = self.target(&resource) else { return Sending::InvalidUri };
        let endpoint = target.endpoint.clone();
        let Ok(route) = self.reach(core, &target) else { return Sending::InvalidUri };
        let host = self.own_host(route.flow);
        let from = self.message_from(&message.from, &endpoint.from_user, &endpoint.from_domain, &host);
        let headers: Vec<(&str, &str)> = message
            .data
            .iter()
            .filter(|data| data.goes_out && super::ask::is_free_header(&data.name))
            .map(|data| (data.name.as_str(), data.value.as_str()))
            .collect();
        let body = Body { content_type: "text/plain;charset=UTF-8", bytes: message.body.as_bytes() };
        let request = Request { method: Method::Message, from, headers: &headers, body: Some(body) };
        if self.send_outside(core, &endpoint, route, &request) { Sending::Sent } else { Sending::Failed }
    }
    /// From of a message: what the dialplan said of it, unless the endpoint has its own.
    fn message_from(&self, from: &str, own_user: &str, own_domain: &str, own_host: &str) -> String {
        let bare = from.trim().strip_prefix("pjsip:").unwrap_or(from).trim();
        let address = NameAddr::parse(bare.as_bytes());
        let uri =
            address.map(|address| address.uri).or_else(|| Uri::parse(bare.as_bytes())).filter(Uri::is_sip);
        let (name, user, host) = match (&address, &uri) {
            (_, Some(uri)) => (
                address.map(|address| identity::text(&address.display_name())).unwrap_or_default(),
                identity::text(&uri.user_decoded()),
                identity::text(uri.host.as_bytes()),
            ),
            _ => (String::new(), identity::text(bare.as_bytes()), String::new()),
        };
        let first = |options: [&str; 3]| {
            options.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
        };
        let user = first([own_user, &user, &self.config.default_from_user]);
        let host = first([own_domain, &host, own_host]);
        identity::name_addr(&name, &user, &host, false)
    }
}

/// What the dialplan learns of a message.
fn read(message: &Message<'_>, source: core::net::SocketAddr) -> TextMessage {
    let to = message.to().map(|to| identity::text(to.uri.as_bytes())).unwrap_or_default();
    let to = to.strip_prefix("sip:").map(|rest| format!("pjsip:{rest}")).unwrap_or(to);
    let from = message.from().map(|from| {
        let (name, uri) = (identity::text(&from.display_name()), identity::text(from.uri.as_bytes()));
        if name.is_empty() { format!("<{uri}>") } else { format!("\"{name}\" <{uri}>") }
    });
    let mut read =
        TextMessage { to, from: from.unwrap_or_default(), body: text_of(message), ..TextMessage::default() };
    read.set("PJSIP_RECVADDR", &source.to_string(), false);
    for (name, value) in message.fields().take(DATA_MAX) {
        let name = identity::text(name.as_bytes());
        if super::ask::is_free_header(&name)
            && !HeaderName::from_bytes(name.as_bytes()).eq(&HeaderName::Authorization)
        {
            read.set(&name, &identity::text(value), false);
        }
    }
    read
}
