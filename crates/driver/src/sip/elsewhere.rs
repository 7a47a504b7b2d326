//! Requests inside a dialog, and those that would replace one, from an address that its peer was not known to be at: whoever
//! knows the names of a dialog may have overheard them.

use core::net::IpAddr;

use ::sip::digest::Credentials;
use ::sip::locate::Wanted;
use ::sip::stack::{Answer, DialogId, Flow, Incoming, SubscriptionId};
use ::sip::{HeaderName, Method, Uri};
use call::{Core, Level};

use super::config::{Endpoint, Match};
use super::{SipDriver, identity};

impl SipDriver {
    /// A request inside a dialog from elsewhere: it passes from where the endpoint is otherwise known to be, or with the
    /// endpoint's password; without one to ask for there is no such dialog.
    pub(crate) fn elsewhere(&mut self, core: &mut Core, dialog: DialogId, incoming: &Incoming) {
        let handle = self.legs.by_dialog(dialog);
        let endpoint = handle.and_then(|handle| self.legs.get(handle)).map(|leg| leg.endpoint.clone());
        let Some(endpoint) = endpoint.or_else(|| self.leaving.get(&dialog).cloned()) else {
            return self.refuse(incoming, &Answer::new(481));
        };
        let (view, source) = (incoming.message.view(), incoming.source);
        let is_lone = matches!(view.method(), Method::Ack | Method::Cancel);
        if !self.is_of_endpoint(core, &endpoint, source.remote.ip()) {
            let challenge = match endpoint.auths.is_empty() || is_lone {
                // Neither can be challenged (RFC 3261 §22.1).
                true => Some((481, Vec::new())),
                false => self.challenge_inside(core, &endpoint, &view, source),
            };
            if let Some((status, headers)) = challenge {
                self.tell_elsewhere(core, &endpoint, incoming);
                let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
                return self.refuse(incoming, &Answer::new(status).headers(&headers));
            }
        }
        self.with_stack(core, |stack, now, out| stack.receive_proved(dialog, incoming, now, out));
    }
    /// Whether an INVITE may replace this call: its sender has proved a password, or is where the peer of the call or its
    /// own endpoint is known to be. `None` when it may, else what the answer is.
    pub(crate) fn may_not_replace(
        &mut self,
        core: &mut Core,
        incoming: &Incoming,
        endpoint: &Endpoint,
        replaced: Option<DialogId>,
    ) -> Option<(u16, super::inbound::Headers)> {
        let source = incoming.source;
        let waives = endpoint.auths.is_empty() || endpoint.insecure_invite;
        let is_known = !waives
            || replaced.is_some_and(|dialog| self.stack.is_from_peer(dialog, source))
            || (!endpoint.is_guest() && self.is_of_endpoint(core, endpoint, source.remote.ip()));
        if is_known {
            return None;
        }
        match endpoint.auths.is_empty() {
            true => Some((481, Vec::new())),
            false => self.challenge_inside(core, endpoint, &incoming.message.view(), source),
        }
    }
    /// Whether a SUBSCRIBE inside a subscription of somebody without a password comes from elsewhere.
    pub(crate) fn watches_from_elsewhere(
        &mut self,
        core: &Core,
        subscription: SubscriptionId,
        endpoint: &Endpoint,
        source: Flow,
    ) -> bool {
        endpoint.auths.is_empty()
            && !self.stack.is_from_watcher(subscription, source)
            && !self.is_of_endpoint(core, endpoint, source.remote.ip())
    }
    /// Whether an endpoint is known to be at an address: one by which it is told, that it has registered from, where its
    /// contacts and proxies are, or where its line is registered.
    pub(crate) fn is_of_endpoint(&mut self, core: &Core, endpoint: &Endpoint, ip: IpAddr) -> bool {
        let (config, ip) = (self.config.clone(), ip.to_canonical());
        let own = config.identifies.iter().filter(|identify| identify.endpoint == endpoint.name);
        let mut told = own.flat_map(|identify| &identify.matches);
        if told.any(|way| matches!(way, Match::Source(is_in) if is_in(ip))) {
            return true;
        }
        let registrar = &self.registrations.registrar;
        let mut bound = endpoint.aors.iter().flat_map(|aor| registrar.bindings(aor));
        if bound.any(|binding| binding.source.remote.ip().to_canonical() == ip) {
            return true;
        }
        let aors = endpoint.aors.iter().filter_map(|aor| config.aors.get(aor));
        let fixed = aors.flat_map(|aor| aor.contacts.iter().chain([&aor.outbound_proxy]));
        let lines = config.registrations.iter().filter(|line| line.endpoint == endpoint.name);
        let lines = lines.flat_map(|line| [&line.server_uri, &line.outbound_proxy]);
        let mut uris = fixed.chain([&endpoint.outbound_proxy]).chain(lines);
        let found = uris.any(|uri| self.is_server_of(uri, ip, core.now));
        self.awaited = None;
        found
    }
    /// Whether a URI leads to this address, as far as the DNS has said where it leads.
    fn is_server_of(&mut self, uri: &str, ip: IpAddr, now: base::Instant) -> bool {
        let uri = Uri::parse(uri.trim_matches(['<', '>', ' ']).as_bytes());
        let Some(uri) = uri else { return false };
        if let Some(host) = uri.host.ip() {
            return host.to_canonical() == ip;
        }
        let Some(wanted) = Wanted::new(&uri, None) else { return false };
        let at = |known: IpAddr| known.to_canonical() == ip;
        self.names.known(&wanted.host).iter().any(|known| at(*known))
            || self.servers(&wanted, now).iter().any(|server| at(server.remote.ip()))
    }
    /// A notice of a request that was not obeyed.
    fn tell_elsewhere(&self, core: &mut Core, endpoint: &Endpoint, incoming: &Incoming) {
        let from = incoming.source.remote;
        let view = incoming.message.view();
        // The first try without a password is what a phone does that has moved.
        let proves = view.headers(HeaderName::Authorization).any(|value| Credentials::parse(value).is_some());
        if !(proves || endpoint.auths.is_empty()) || !core.tells_of(from.ip(), self.presence_of(incoming)) {
            return;
        }
        let call_id = call::security::shown(&identity::text(view.call_id().unwrap_or_default()));
        let line = format!(
            "{} inside the call '{call_id}' of '{}' is not obeyed: it comes from '{from}', where nothing shows that its \
             phone is",
            view.method(),
            endpoint.name
        );
        core.log(Level::Notice, "res_pjsip", &line);
    }
}
