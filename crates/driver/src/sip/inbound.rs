//! Calls that come in: who it is, whether it may, where it goes, and what is agreed.

use core::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use ::sip::digest::Credentials;
use ::sip::header::MediaType;
use ::sip::sdp::{Fault, Negotiated, fault, video_offered};
use ::sip::stack::{Accept, Answer, Body, Flow, Incoming, Refused};
use ::sip::{HeaderName, Message, Method};
use base::{Cause, ChannelId, Command, FormatId, FormatSet, Instant, StreamId};
use call::security::{self, Attempt, Presence};
use call::{ChanState, Core, Level, Location, MediaRefused, NewChannel, Reach};

use super::config::{Config, Endpoint, Match, Rel100};
use super::gate::Admitted;
use super::leg::{Leg, Stage};
use super::session::{Media, Terms};
use super::{Begun, SipDriver, identify, identity};

/// Longest extension taken from a Request-URI, bytes; the field's own limit is 80.
const EXTEN_BYTES_MAX: usize = 80;

/// Why most numbers are refused, in the words that tools look for.
const NOT_FOUND: &str = "extension not found";

/// Why a request is refused, in the words that fail2ban and its kin look for.
const NO_ENDPOINT: &str = "No matching endpoint found";
const NOT_ALLOWED: &str = "Not match Endpoint ACL";
const NOT_PROVED: &str = "Failed to authenticate";
pub(crate) const CONTACT_NOT_ALLOWED: &str = "Not match Endpoint Contact ACL";

/// Logs a request that is refused, in the field's line. What a stranger wrote holds nothing that delimits there.
pub(crate) fn note_refusal(core: &mut Core, message: &Message<'_>, source: Flow, why: &str) {
    let shown = |bytes: &[u8]| security::shown(&identity::text(bytes));
    let from = message.from();
    let name = from.as_ref().map(|from| shown(&from.display_name())).filter(|name| !name.is_empty());
    let name = name.map(|name| format!("\"{name}\" ")).unwrap_or_default();
    let uri = from.as_ref().map(|from| shown(from.uri.as_bytes())).unwrap_or_default();
    let call_id = shown(message.call_id().unwrap_or_default()).replace(')', "");
    let remote = SocketAddr::new(source.remote.ip().to_canonical(), source.remote.port());
    let line = format!(
        "Request '{}' from '{name}<{uri}>' failed for '{remote}' (callid: {call_id}) - {why}",
        shown(message.method().as_bytes()),
    );
    core.log(Level::Notice, "res_pjsip", &line);
}

/// The time after which a request that is repeated is answered at the other port of [`SipDriver::challenge`]: T1, after
/// which it is repeated first.
const TURN_MILLIS: u64 = 500;

/// A request whose sender is known and may go on.
pub(crate) struct Known {
    pub(crate) endpoint: Rc<Endpoint>,
}

impl SipDriver {
    /// Identifies and authenticates; what cannot pass has been answered, and nothing was stored for it.
    ///
    /// Who exists shows neither in the answer nor in what it takes: an endpoint without its password and nobody take the
    /// same steps.
    pub(crate) fn admit(&mut self, core: &mut Core, incoming: &mut Incoming) -> Option<Known> {
        let config = self.config.clone();
        let source = incoming.source;
        let view = incoming.message.view();
        let endpoint = self.endpoint_of(&config, &view, source).filter(|found| may_come(found, &view));
        let open = endpoint.as_ref().is_some_and(|endpoint| waives(endpoint, &view));
        let verdict = match open {
            true => Admitted::Yes(None),
            false => self.gate.check(&config, endpoint.as_deref(), &view, source, &core.bans, core.now),
        };
        incoming.force_rport = endpoint.as_ref().is_none_or(|endpoint| endpoint.force_rport);
        match (endpoint, verdict) {
            (Some(endpoint), Admitted::Yes(user)) => {
                let has_proved = user.is_some() || self.is_there(core, &endpoint, incoming);
                incoming.proved = has_proved;
                if let Some(user) = user {
                    core.bans.succeeded(source.remote.ip(), &user);
                    self.tell_attempt(core, incoming, "SuccessfulAuth", Some(&endpoint), "");
                }
                let length = incoming.message.bytes().len();
                let has_room = has_proved || self.unproved.admit(source.remote.ip(), length, core.now);
                has_room.then_some(Known { endpoint })
            }
            (endpoint, Admitted::Challenge { values, guess, astray }) => {
                let has_tried = guess.is_some() || astray.is_some();
                let presence = if has_tried { Presence::Shown } else { Presence::Claimed };
                let is_told = core.tells_of(source.remote.ip(), presence);
                let event = if guess.is_some() { "ChallengeResponseFailed" } else { "ChallengeSent" };
                self.count_stranger(core, incoming, endpoint.is_some(), is_told && guess.is_none());
                match &endpoint {
                    _ if !is_told => {}
                    Some(endpoint) => self.tell_attempt(core, incoming, event, Some(endpoint), ""),
                    None => self.tell_attempt_of_nobody(core, incoming, event),
                }
                // One without credentials is the normal first try.
                if is_told && incoming.message.view().has(HeaderName::Authorization) {
                    let why = self.why_refused(&incoming.message.view(), endpoint.is_some(), source);
                    note_refusal(core, &incoming.message.view(), source, why);
                    Self::note_astray(core, incoming, astray.as_deref());
                }
                if let Some(user) = guess {
                    let ip = source.remote.ip();
                    core.password_refused("PJSIP", ip, &user, || self.is_home(ip));
                }
                let headers: Vec<(&str, &str)> =
                    values.iter().map(|v| ("WWW-Authenticate", v.as_str())).collect();
                self.challenge(core.now, incoming, &Answer::new(401).headers(&headers));
                None
            }
            (None, Admitted::Yes(_)) => {
                self.refuse(incoming, &Answer::new(403));
                None
            }
        }
    }
    /// Whether somebody who was let in without a password is where the request says to come from, by what is known: the
    /// site vouches for endpoints that it gives none, not for guests and not for those whose calls alone need none.
    fn is_there(&mut self, core: &Core, endpoint: &Endpoint, incoming: &Incoming) -> bool {
        let source = incoming.source;
        source.protocol.is_reliable()
            || !(endpoint.is_guest() || endpoint.insecure_invite)
            || self.gate.is_there(&incoming.message.view(), source)
            || (!endpoint.is_guest() && self.is_of_endpoint(core, endpoint, source.remote.ip()))
    }
    /// Whether the log is told of a request that was let in and then refused: always of those who have proved who they
    /// are, of others as of strangers.
    pub(crate) fn tells_of(&self, core: &mut Core, endpoint: &Endpoint, incoming: &Incoming) -> bool {
        !(endpoint.is_guest() || endpoint.insecure_invite)
            || core.tells_of(incoming.source.remote.ip(), self.presence_of(incoming))
    }
    /// What shows that whoever sent this is where it says to come from.
    pub(crate) fn presence_of(&self, incoming: &Incoming) -> Presence {
        let is_shown = incoming.source.protocol.is_reliable()
            || self.gate.is_there(&incoming.message.view(), incoming.source);
        if is_shown { Presence::Shown } else { Presence::Claimed }
    }
    /// Asks for a password inside a dialog as it was asked for at its beginning: the status and headers that challenge,
    /// `None` when the request has proved itself.
    pub(crate) fn challenge_inside(
        &mut self,
        core: &mut Core,
        endpoint: &Endpoint,
        message: &Message<'_>,
        source: Flow,
    ) -> Option<(u16, Headers)> {
        let config = self.config.clone();
        let ip = source.remote.ip();
        match self.gate.check(&config, Some(endpoint), message, source, &core.bans, core.now) {
            Admitted::Yes(user) => {
                user.into_iter().for_each(|user| core.bans.succeeded(ip, &user));
                None
            }
            Admitted::Challenge { values, guess, .. } => {
                if let Some(user) = guess {
                    note_refusal(core, message, source, NOT_PROVED);
                    core.password_refused("PJSIP", ip, &user, || self.is_home(ip));
                }
                Some((401, values.into_iter().map(|value| ("WWW-Authenticate", value)).collect()))
            }
        }
    }
    /// Somebody who is no endpoint: a report, when there are too many requests of that address. Who has tried to prove an
    /// account is reported in any case, so that it is not told (`is_told`) here, too.
    fn count_stranger(&mut self, core: &mut Core, incoming: &Incoming, is_endpoint: bool, is_told: bool) {
        let (from, patience) = (incoming.source.remote.ip(), self.config.patience);
        let count = self.strangers.comes(from, is_endpoint, patience, core.now);
        let Some(count) = count.filter(|_| is_told) else { return };
        // Once a period is enough for people.
        if count == patience.count.max(1) {
            let message = incoming.message.view();
            let why = self.why_refused(&message, false, incoming.source);
            note_refusal(core, &message, incoming.source, why);
        }
    }
    /// Why a request is refused, in the field's words: no endpoint, one whose access list forbids the address, or no proof.
    fn why_refused(&self, message: &Message<'_>, is_known: bool, source: Flow) -> &'static str {
        if is_known {
            return NOT_PROVED;
        }
        let (config, came) = (&self.config, self.arrival(source));
        let is_kept_out = !identify::may_send(config, &came) || self.listed(config, message, &came).is_some();
        if is_kept_out { NOT_ALLOWED } else { NO_ENDPOINT }
    }
    /// Whether somebody is at home at an address: an endpoint that is told by it, or a phone that has registered from it.
    /// Others who come from there, through one router, are not to shut them out.
    pub fn is_home(&self, address: IpAddr) -> bool {
        let ip = address.to_canonical();
        let told = self.config.identifies.iter().flat_map(|identify| &identify.matches);
        let told = told.filter_map(|way| match way {
            Match::Source(is_in) => Some(is_in),
            // What holds for one port says nothing of the others behind that address.
            Match::SourcePort(..) | Match::Header(..) | Match::RequestUri(_) => None,
        });
        told.into_iter().any(|is_in| is_in(ip))
            || self.bindings().any(|(_, binding)| binding.source.remote.ip().to_canonical() == ip)
    }
    /// Whose request it is: the line that a registration of ours gave out comes before everything else.
    fn endpoint_of(&self, config: &Config, message: &Message<'_>, source: Flow) -> Option<Rc<Endpoint>> {
        let came = self.arrival(source);
        self.listed(config, message, &came)
            .filter(|_| identify::may_send(config, &came))
            .and_then(|endpoint| identify::let_in(endpoint, &came))
    }
    /// Whose request it would be, if access lists let it pass.
    fn listed(
        &self,
        config: &Config,
        message: &Message<'_>,
        came: &identify::Arrival<'_>,
    ) -> Option<Rc<Endpoint>> {
        let line = self.trunks.line(config, message).cloned();
        line.or_else(|| identify::endpoint_of(config, message, came))
    }
    /// By which way a request has come, as identities are judged by it.
    pub(super) fn arrival(&self, source: Flow) -> identify::Arrival<'_> {
        let (bind, peer) = (self.bind(source.transport), source.remote.ip());
        identify::Arrival {
            source: peer,
            port: source.remote.port(),
            local: bind.map_or(peer, |bind| self.ways.local_ip(bind, peer)),
            transport: bind.map_or("", |bind| &bind.name),
        }
    }
    /// Challenges alike whoever is asked for: the port that the answer goes to must not tell whether an endpoint has that
    /// name. Where endpoints differ in `force_rport`, and the request does not say itself, it goes to one of both ports
    /// that it might have to, and to the other one when the request is repeated after half a second.
    fn challenge(&mut self, now: Instant, incoming: &mut Incoming, answer: &Answer<'_>) {
        let turn = now.as_millis() / TURN_MILLIS;
        incoming.force_rport = match self.challenge_ports {
            [Some(_), Some(_)] => (u128::from(turn) ^ incoming.key()) & 1 == 0,
            [_, None] => true,
            [None, Some(_)] => false,
        };
        self.refuse(incoming, answer);
    }
    /// A right password for another request is worth a notice of its own.
    fn note_astray(core: &mut Core, incoming: &Incoming, astray: Option<&str>) {
        let Some(uri) = astray else { return };
        let message = incoming.message.view();
        let asked = identity::text(message.request_uri_bytes());
        let line = format!(
            "{} for '{}' from '{}' has a right password for another request: the uri of its digest is '{}'",
            message.method(),
            security::shown(&asked),
            incoming.source.remote,
            security::shown(uri)
        );
        core.log(Level::Notice, "res_pjsip", &line);
    }
    /// Tells watchers that nobody has this name, and what became of the request (`event`); the log has one line of both, as it
    /// has of a user: who fails by it is named there.
    fn tell_attempt_of_nobody(&self, core: &mut Core, incoming: &Incoming, event: &'static str) {
        for told in ["InvalidAccountID", event] {
            let is_logged = (told == "InvalidAccountID") != (event == "ChallengeSent");
            let attempt = |_: &Core| self.attempt(incoming, told, None, "");
            if is_logged { core.tell_attempt(attempt) } else { core.tell_attempt_aside(attempt) }
        }
    }
    /// Tells the security log and watchers of an attempt to get in. Who it is shows where an endpoint was found or named.
    pub(crate) fn tell_attempt(
        &self,
        core: &mut Core,
        incoming: &Incoming,
        event: &'static str,
        endpoint: Option<&Endpoint>,
        acl: &str,
    ) {
        core.tell_attempt(|_| self.attempt(incoming, event, endpoint, acl));
    }
    fn attempt(
        &self,
        incoming: &Incoming,
        event: &'static str,
        endpoint: Option<&Endpoint>,
        acl: &str,
    ) -> Attempt {
        let message = incoming.message.view();
        let source = incoming.source;
        let bind = self.bind(source.transport);
        let transport = bind.map_or_else(String::new, |bind| format!("{:?}", bind.protocol).to_uppercase());
        let credentials = message.headers(HeaderName::Authorization).find_map(Credentials::parse);
        // What nobody's name is stands in the event that says so, and in no other.
        let account = match endpoint {
            Some(endpoint) => endpoint.name.to_string(),
            None if event == "InvalidAccountID" => {
                message.from().map(|from| identity::text(&from.uri.user_decoded())).unwrap_or_default()
            }
            None => "<unknown>".to_owned(),
        };
        let answered = credentials.filter(|_| event == "ChallengeResponseFailed");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Attempt {
            event,
            service: "PJSIP",
            account,
            session: identity::text(message.call_id().unwrap_or_default()),
            local: bind.map_or_else(String::new, |bind| security::address(&transport, bind.local)),
            remote: security::address(&transport, source.remote),
            challenge: answered.as_ref().map_or_else(|| acl.to_owned(), |answered| text(answered.nonce)),
            response: answered.as_ref().map(|answered| text(answered.response())).unwrap_or_default(),
            ..Attempt::default()
        }
    }
    /// Answers without keeping anything.
    pub(crate) fn refuse(&mut self, incoming: &Incoming, answer: &Answer<'_>) {
        let mut out = Vec::new();
        self.stack.respond_stateless(incoming, answer, &mut out);
        for output in out {
            if let ::sip::stack::Output::Send(send) = output {
                // An account is kept for longer than the turn anyway.
                self.put(send, Instant::ZERO);
            }
        }
    }

    /// An INVITE outside any dialog. What its body may be is asked after who sent it: strangers get the same answer
    /// whatever they send.
    pub(crate) fn invited(&mut self, core: &mut Core, mut incoming: Incoming) {
        let Some(Known { endpoint }) = self.admit(core, &mut incoming) else { return };
        if let Some(status) = foreign(&incoming.message.view()) {
            return self.refuse(&incoming, &Answer::new(status).headers(accepted(status)));
        }
        if let Some((status, headers)) = unsuitable(&incoming.message.view(), &endpoint) {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            return self.refuse(&incoming, &Answer::new(status).headers(&headers));
        }
        let unknown = self.stack.unknown_extensions(&incoming.message.view());
        if !unknown.is_empty() {
            let headers = [("Unsupported", unknown.as_str()), ("Supported", super::SUPPORTED)];
            return self.refuse(&incoming, &Answer::new(420).headers(&headers));
        }
        let spread = core.random() as u32;
        let (now, calls) = (core.now, core.call_count());
        if let Err(refused) = core.admission.admit(calls, spread, now) {
            let line = format!("call of '{}' refused: {} reached", endpoint.name, refused.limit);
            core.log(Level::Warning, "chan_pjsip", &line);
            let after = refused.retry_after_secs.to_string();
            self.refuse(&incoming, &Answer::new(503).headers(&[("Retry-After", &after)]));
            return;
        }
        let known = Known { endpoint };
        if self.replaces(core, &incoming, &known) {
            return;
        }
        // Who takes over a call that is there already has no more than before.
        if self.legs.is_at_limit(core, &known.endpoint, None) {
            let (name, limit) = (&known.endpoint.name, known.endpoint.call_limit);
            let line = format!("call of '{name}' refused: it has as many as call_limit={limit} lets it have");
            core.log(Level::Notice, "chan_pjsip", &line);
            return self.refuse(&incoming, &Answer::new(480));
        }
        let Known { endpoint } = known;
        let exten = exten_of(&incoming.message.view(), self.config.ignore_user_options);
        let mut caller = identity::caller_of(&incoming.message.view(), &endpoint);
        if let Some(number) = caller.number.as_mut().filter(|_| self.config.ignore_user_options) {
            number.truncate(number.find(';').unwrap_or(number.len()));
        }
        match core.reach_of_call(&endpoint.context, &exten, caller.number()) {
            Reach::Whole => {}
            Reach::Partial | Reach::None if self.may_grow(core, &endpoint, &exten, caller.number()) => {
                return self.no_such_number(core, &incoming, &endpoint, &exten, (484, NOT_FOUND));
            }
            Reach::Partial | Reach::None => {
                return self.no_such_number(core, &incoming, &endpoint, &exten, (404, NOT_FOUND));
            }
            Reach::Separator(separator) => {
                let why = format!(
                    "it holds '{separator}', which a dial string takes for its own, and no extension has exactly this \
                     name"
                );
                return self.no_such_number(core, &incoming, &endpoint, &exten, (404, &why));
            }
        }
        let location = Location { context: endpoint.context.clone(), exten: exten.clone(), priority: 1 };
        if let Some(channel) = self.ring(core, &incoming, &endpoint, exten, caller) {
            self.verify_caller(core, channel, location, &incoming, &endpoint);
        }
    }
    /// Whether more digits could make a number of it (`allow_overlap`, `overlap_context`).
    fn may_grow(&self, core: &mut Core, endpoint: &Endpoint, exten: &str, caller: &str) -> bool {
        let context = match endpoint.overlap_context.as_str() {
            "" => &endpoint.context,
            other => other,
        };
        endpoint.allow_overlap && (core.reach)(core, context, exten, caller) == Reach::Partial
    }
    fn no_such_number(
        &mut self,
        core: &mut Core,
        incoming: &Incoming,
        endpoint: &Endpoint,
        exten: &str,
        (status, why): (u16, &str),
    ) {
        let line = format!(
            "Call from '{}' ({}) to extension '{exten}' rejected because {why} in context '{}'.",
            endpoint.name, incoming.source.remote, endpoint.context
        );
        if self.tells_of(core, endpoint, incoming) {
            core.log(Level::Notice, "res_pjsip_session", &line);
        }
        self.refuse(incoming, &Answer::new(status));
    }

    /// Stores the dialog, opens the media stream and makes the channel.
    pub(crate) fn ring(
        &mut self,
        core: &mut Core,
        incoming: &Incoming,
        endpoint: &Rc<Endpoint>,
        exten: String,
        caller: call::PartyId,
    ) -> Option<ChannelId> {
        let source = incoming.source;
        let (media, stream, agreed) = self.open_session(core, incoming, endpoint)?;
        let contact = self.own_contact(source, endpoint);
        let unproved = !incoming.proved;
        let accept = Accept { contact: &contact, symmetric: endpoint.rewrite_contact, unproved };
        let dialog = match self.stack.accept_invite(incoming, &accept, core.now) {
            Ok(dialog) if self.legs.by_dialog(dialog).is_none() => dialog,
            // A retransmission that overtook: the call is there already, or has ended.
            Ok(_) | Err(Refused::Gone) => {
                core.media(Command::Close { stream });
                return None;
            }
            Err(_) => {
                core.media(Command::Close { stream });
                self.refuse(incoming, &Answer::new(503).headers(&[("Retry-After", "10")]));
                return None;
            }
        };
        self.in_hand.dialog = Some(dialog);
        // The caller stops repeating its INVITE, however long the dialplan takes to begin.
        self.with_stack(core, |stack, now, out| stack.trying(dialog, now, out));
        let format = agreed.as_ref().and_then(|a| a.primary()).map_or(FormatId::ULAW, |p| p.format);
        let formats = agreed.as_ref().map_or(endpoint.allow, |a| a.formats());
        let location = Location { context: endpoint.context.clone(), exten: exten.clone(), priority: 1 };
        let room = self.legs.has_room();
        let created = room.then(|| NewChannel {
            base_name: format!("PJSIP/{}", endpoint.name),
            tech: self.tech_index,
            state: ChanState::Ring,
            caller,
            account: endpoint.account.clone(),
            tenant: Some(endpoint.tenant.clone()),
            pickup: endpoint.pickup.clone(),
            location: location.clone(),
            language: endpoint.language.clone(),
            music_class: endpoint.music_class.clone(),
            formats,
            ..NewChannel::default()
        });
        let Some(channel) = created.and_then(|new| core.create(new)) else {
            self.in_hand = Begun::default();
            core.media(Command::Close { stream });
            self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 503, &[], now, out)).ok();
            return None;
        };
        core.set_stream(channel, stream, format);
        if let Some(entry) = core.get_mut(channel) {
            entry.call_id = identity::text(incoming.message.view().call_id().unwrap_or_default()).into();
            entry.ani2 = identity::originating_line(&incoming.message.view());
        }
        self.in_hand.channel = Some(channel);
        let leg = Leg {
            stage: Stage::Ringing,
            dialog: Some(dialog),
            contact,
            reliable: wants_reliable(&incoming.message.view(), endpoint),
            peer_updates: super::timers::takes_update(&incoming.message.view()).unwrap_or(false),
            stream: Some(stream),
            taken: agreed.as_ref().map_or(FormatSet::EMPTY, Negotiated::formats),
            invite: Some(incoming.message.clone()),
            ..Leg::new(channel, endpoint.clone(), source, media)
        };
        let agreement = self.agreement(endpoint, source);
        let leg = Leg { agreement, ..leg };
        let handle = self.legs.insert(leg).unwrap_or(u64::MAX);
        self.keep_agreement(handle);
        let domain = incoming.message.view().request_uri().map(|uri| identity::text(uri.host.as_bytes()));
        if let Some(plan) = agreed.and_then(|_| self.plan(core, handle)) {
            core.media(Command::Plan { stream, plan: Box::new(plan) });
        }
        if let Some(offer) = incoming.message.view().sdp() {
            self.answer_passed(core, handle, offer);
        }
        let hops = self.hops_of(endpoint, incoming);
        if let Some(entry) = core.get_mut(channel) {
            entry.handle = handle;
            entry.dialed = Some(exten);
            entry.hops = hops;
            entry.tone_zone.clone_from(&endpoint.tone_zone);
            entry.passes_hold = endpoint.passes_hold;
            entry.fax_watch = endpoint.fax_detect;
            if let Some(redirecting) = identity::redirected_by(&incoming.message.view()) {
                entry.redirecting = redirecting;
            }
        }
        set_own_variables(core, channel, endpoint);
        core.set_variable(channel, "SIPDOMAIN", &domain.unwrap_or_default());
        self.in_hand = Begun::default();
        self.note_withdrawal(core, handle);
        Some(channel)
    }
    /// Opens the stream and answers the offer, if there is one; what cannot be has been refused.
    fn open_session(
        &mut self,
        core: &mut Core,
        incoming: &Incoming,
        endpoint: &Rc<Endpoint>,
    ) -> Option<(Media, StreamId, Option<Negotiated>)> {
        let config = self.config.clone();
        let peer = incoming.source.remote.ip();
        let bind = self.bind(incoming.source.transport)?.clone();
        let (local, advertised) = self.media_address(&bind, endpoint, peer);
        let terms = Terms { config: &config, endpoint, signalling: peer };
        if let Some(fault) = incoming.message.view().sdp().and_then(fault) {
            let line = format!("offer of '{}' refused: {}", endpoint.name, fault.text());
            core.log(Level::Notice, "chan_pjsip", &line);
            let warning = self.warning(incoming.source, fault);
            self.refuse(incoming, &Answer::new(400).headers(&[("Warning", &warning)]));
            return None;
        }
        let mut media = Media::new(core, endpoint, endpoint.allow, advertised);
        let stream = match media.open(core, local, &terms) {
            Ok(stream) => stream,
            Err(why) => {
                let name = &endpoint.name;
                let line = format!("no media for a call of '{name}': {why}");
                core.log(Level::Error, "chan_pjsip", &line);
                // Without a port there is nothing to agree on; what is only too much now may be tried again.
                if why == MediaRefused::NoPorts {
                    self.refuse(incoming, &Answer::new(100));
                    self.refuse(incoming, &Answer::new(488));
                } else {
                    self.refuse(incoming, &Answer::new(503).headers(&[("Retry-After", "5")]));
                }
                return None;
            }
        };
        self.in_hand.stream = Some(stream);
        let may_see = endpoint.video.streams > 0;
        let offer = incoming.message.view().sdp().filter(|_| may_see);
        media.without_audio = offer.is_some_and(|offer| video_offered(offer, endpoint.video.formats));
        match incoming.message.view().sdp().map(|sdp| media.answer(sdp, &terms)) {
            None => Some((media, stream, None)),
            Some(Ok((_, agreed))) => Some((media, stream, Some(agreed))),
            Some(Err(why)) => {
                self.in_hand = Begun::default();
                core.media(Command::Close { stream });
                let line = format!("offer of '{}' refused: {why}", endpoint.name);
                core.log(Level::Notice, "chan_pjsip", &line);
                // The number is there: that is said before anybody looks at the offer.
                self.refuse(incoming, &Answer::new(100));
                self.refuse(incoming, &Answer::new(why.status().code()));
                None
            }
        }
    }

    /// What a refusal says of a description that cannot be understood (RFC 3261 §20.43).
    pub(crate) fn warning(&self, source: Flow, fault: Fault) -> String {
        format!("399 {} \"{}\"", self.own_host(source), fault.text())
    }
    /// 200 to the INVITE that made this channel, with the identity of who answered.
    pub(crate) fn answer_leg(&mut self, core: &mut Core, handle: u64) {
        self.still(core, handle);
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.stage == Stage::Ringing) else { return };
        let Some(dialog) = leg.dialog else { return };
        leg.stage = Stage::Up;
        leg.awaits_answer = leg.media.agreed().is_none();
        let (channel, endpoint) = (leg.channel, leg.endpoint.clone());
        let sdp = self.description(core, handle);
        let mut headers = self.shown_party(core, handle);
        headers.extend(self.added_headers(handle));
        headers.extend(self.unproved_reason(handle));
        let is_sent_on = headers.iter().any(|(name, _)| name == "Supported");
        if let Some(leg) = self.legs.get_mut(handle) {
            let invite = leg.invite.clone();
            let timed = invite.map(|invite| leg.timer.answer(&invite.view(), core.now)).unwrap_or_default();
            headers.extend(timed.into_iter().map(|(name, value)| (name.to_owned(), value)));
            if !is_sent_on {
                headers.push(("Supported".to_owned(), endpoint.supported()));
            }
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let (kind, bytes) = self.with_rates(core, handle, sdp);
        let answer = Answer::new(200).headers(&headers).body(Body { content_type: &kind, bytes: &bytes });
        let sent = self.with_stack(core, |stack, now, out| stack.answer(dialog, &answer, now, out));
        if sent.is_err() {
            core.remote_hangup(channel, Cause::NORMAL_TEMPORARY_FAILURE, "SIP dialog is gone");
        }
        self.watch_session(handle);
    }
    /// Who is at our end, for the responses to an INVITE: as things stand or, where the endpoint is not to be told of
    /// changes (`send_connected_line=no`), as the first response has said.
    fn shown_party(&mut self, core: &Core, handle: u64) -> Vec<(String, String)> {
        let Some(leg) = self.legs.get_mut(handle) else { return Vec::new() };
        let Some(party) = core.get(leg.channel).map(|c| c.connected.clone()) else { return Vec::new() };
        let (endpoint, flow) = (leg.endpoint.clone(), leg.flow);
        leg.told = Some(party.clone());
        if !endpoint.send_connected_line && !leg.shown.is_empty() {
            return leg.shown.clone();
        }
        let headers = identity::assertions(&endpoint, &party, &self.own_host(flow), "called");
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.shown.clone_from(&headers);
        }
        headers
    }
    /// What the dialplan has added, and what a forwarding has: that stays on every response after the 181.
    fn added_headers(&self, handle: u64) -> Vec<(String, String)> {
        let Some(leg) = self.legs.get(handle) else { return Vec::new() };
        let allow = (leg.endpoint.rel100 == Rel100::No)
            .then(|| ("Allow".to_owned(), leg.endpoint.allowed().to_owned()));
        leg.headers.iter().chain(&leg.sent_on).cloned().chain(allow).collect()
    }
    /// Headers of the response that refuses a call: who is at our end, and what the provisional ones have said.
    pub(crate) fn refusal_headers(&mut self, core: &Core, handle: u64) -> Vec<(String, String)> {
        let mut headers = self.shown_party(core, handle);
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.has_rung) else { return headers };
        headers.push(("Allow".to_owned(), leg.endpoint.allowed().to_owned()));
        headers.extend(leg.sent_on.iter().cloned());
        headers
    }
    /// What the 487 says, should the caller withdraw the call: the stack sends it by itself.
    fn note_withdrawal(&mut self, core: &Core, handle: u64) {
        let mut headers = self.refusal_headers(core, handle);
        let Some(leg) = self.legs.get(handle) else { return };
        if !leg.endpoint.suppress_reason {
            headers.push(("Reason".to_owned(), "Q.850;cause=0".to_owned()));
        }
        if let Some(dialog) = leg.dialog {
            self.stack.set_withdrawal(dialog, headers);
        }
    }
    /// A provisional response, with a session for early media. Without an offer there is none before the 200: ours may
    /// only stand in a response that is acknowledged (RFC 3261 §13.2.1).
    pub(crate) fn provisional(&mut self, core: &mut Core, handle: u64, status: u16, with_session: bool) {
        let after_progress = self.config.ringing_after_progress;
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.stage == Stage::Ringing) else { return };
        let Some(dialog) = leg.dialog.filter(|_| leg.indicated != status) else { return };
        if leg.indicated == 183 && !after_progress {
            return;
        }
        (leg.indicated, leg.has_rung) = (status, true);
        let with_session = with_session && leg.media.agreed().is_some();
        let sdp = if with_session { self.description(core, handle) } else { Vec::new() };
        let mut headers = self.shown_party(core, handle);
        headers.extend(self.added_headers(handle));
        headers.extend(self.unproved_reason(handle));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let answer = Answer::new(status).headers(&headers);
        let (kind, bytes) = self.with_rates(core, handle, sdp);
        let answer = match bytes.is_empty() {
            true => answer,
            false => answer.body(Body { content_type: &kind, bytes: &bytes }),
        };
        let reliable = self.legs.get(handle).is_some_and(|leg| leg.reliable);
        self.with_stack(core, |stack, now, out| match reliable {
            true => stack.answer_reliably(dialog, &answer, now, out),
            false => stack.answer(dialog, &answer, now, out),
        })
        .ok();
        self.note_withdrawal(core, handle);
    }
    /// Our description for a response: the answer to their offer, or our offer when they made none.
    fn description(&mut self, core: &mut Core, handle: u64) -> Vec<u8> {
        let config = self.config.clone();
        let Some(leg) = self.legs.get(handle) else { return Vec::new() };
        let offered = leg.invite.as_ref().is_some_and(|invite| invite.view().sdp().is_some());
        if !offered {
            self.offer_passed_unasked(core, handle);
        }
        let Some(leg) = self.legs.get_mut(handle) else { return Vec::new() };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        if !offered {
            return leg.media.offer(&terms);
        }
        let has_video = self.suit_passed(core, handle);
        let Some(leg) = self.legs.get_mut(handle) else { return Vec::new() };
        let suits = std::mem::take(&mut leg.suits);
        let chosen = leg.media.agreed().and_then(|agreed| better(agreed, suits)).filter(|_| !leg.described);
        let is_first = !std::mem::replace(&mut leg.described, true);
        let offer = leg.invite.as_ref().filter(|_| chosen.is_some() || has_video).cloned();
        let again = offer.as_ref().and_then(|offer| offer.view().sdp()).and_then(|offer| match chosen {
            Some(format) => leg.media.answer_with(format, offer, &terms).ok(),
            None => leg.media.answer(offer, &terms).ok().map(|(_, agreed)| agreed),
        });
        // The offer was answered when the call came in: the same text again, so that 183 and 200 agree.
        let sdp = leg.media.repeat(&terms);
        if let Some(agreed) = again {
            self.agreed(core, handle, &agreed);
        }
        if is_first {
            self.plan_passed(core, handle, true);
        }
        sdp
    }
}

/// What an endpoint's `set_var` says of each of its channels, the caller id among it.
pub(crate) fn set_own_variables(core: &mut Core, channel: ChannelId, endpoint: &Endpoint) {
    // All functions before any variable, which shows what they have set.
    for (name, value) in &endpoint.set_var {
        let Some(entry) = core.get_mut(channel) else { return };
        match name.to_ascii_lowercase().as_str() {
            "callerid(name)" => entry.caller.name = Some(value.clone()),
            "callerid(num)" | "callerid(number)" => entry.caller.number = Some(value.clone()),
            "callerid(all)" | "callerid" => {
                let said = call::PartyId::parse(value);
                (entry.caller.name, entry.caller.number) = (said.name, said.number);
            }
            // Whoever runs its dialplan knows what they do.
            function if function.contains('(') => entry.assigned.push((name.clone(), value.clone())),
            _ => {}
        }
    }
    let is_plain = |name: &str| !name.contains('(');
    for (name, value) in endpoint.set_var.iter().filter(|(name, _)| is_plain(name)) {
        core.set_variable(channel, name, value);
    }
}

/// Whether an endpoint may ask for this at all: guests may call, and send messages where there is a context for them.
fn may_come(endpoint: &Endpoint, message: &Message<'_>) -> bool {
    match message.method() {
        _ if !endpoint.is_guest() => true,
        Method::Invite => true,
        Method::Message => !endpoint.message_context.is_empty(),
        _ => false,
    }
}

/// Whether an endpoint that has a password is not asked for it. What takes part in another's call is never waived.
fn waives(endpoint: &Endpoint, message: &Message<'_>) -> bool {
    match message.method() {
        Method::Options => endpoint.unauthenticated_options,
        Method::Invite => endpoint.insecure_invite && !message.has(HeaderName::Replaces),
        _ => false,
    }
}

/// The format that spares transcoding, when another than the first agreed on does: the other party's most wanted one that
/// both have.
fn better(agreed: &Negotiated, suits: FormatSet) -> Option<FormatId> {
    let formats = agreed.formats();
    let best = suits.iter().find(|format| formats.contains(*format))?;
    (formats.first() != Some(best)).then_some(best)
}

/// Headers of a refusal.
pub(crate) type Headers = Vec<(&'static str, String)>;

/// Why a call cannot be taken from this endpoint whatever number it asks for, and what the answer says.
fn unsuitable(invite: &Message<'_>, endpoint: &Endpoint) -> Option<(u16, Headers)> {
    // A call that may go no further: whatever it was to reach here would be one more hop (RFC 7332 §4).
    if invite.max_forwards() == Some(0) {
        return Some((483, Vec::new()));
    }
    // RFC 3261 §20.1: without Accept a description is what is read.
    if invite.accepts("application/sdp") == Some(false) {
        return Some((406, Vec::new()));
    }
    let supports =
        |tag: &[u8]| invite.lists(HeaderName::Supported, tag) || invite.lists(HeaderName::Require, tag);
    match endpoint.rel100 {
        Rel100::No if invite.lists(HeaderName::Require, b"100rel") => {
            let supported = ("Supported", endpoint.supported());
            return Some((420, vec![("Unsupported", "100rel".to_owned()), supported]));
        }
        Rel100::Required if !supports(b"100rel") => {
            return Some((421, vec![("Require", "100rel".to_owned())]));
        }
        Rel100::No | Rel100::Yes | Rel100::PeerSupported | Rel100::Required => {}
    }
    ::sip::session::SessionTimer::new(endpoint.timers).judge(invite).err().map(untimely)
}

/// The answer to a request whose session timer cannot be (RFC 4028 §9).
pub(crate) fn untimely(refusal: ::sip::session::Refusal) -> (u16, Headers) {
    use ::sip::session::Refusal;
    match refusal {
        Refusal::TooSmall(least) => (422, vec![("Min-SE", least.to_string())]),
        Refusal::Needed => (421, vec![("Require", "timer".to_owned())]),
        Refusal::Unwanted => (420, vec![("Unsupported", "timer".to_owned())]),
    }
}

/// Whether our provisional responses to this INVITE are to be acknowledged (RFC 3262 §3).
fn wants_reliable(invite: &Message<'_>, endpoint: &Endpoint) -> bool {
    match endpoint.rel100 {
        Rel100::No => false,
        Rel100::Yes => invite.lists(HeaderName::Require, b"100rel"),
        Rel100::PeerSupported | Rel100::Required => {
            invite.lists(HeaderName::Require, b"100rel") || invite.lists(HeaderName::Supported, b"100rel")
        }
    }
}

/// The status that refuses a body which has to be read and cannot be: one that is no description, or is in a coding that
/// we do not know, or has such a part (RFC 3261 §8.2.3, RFC 5621 §4).
pub(crate) fn foreign(message: &Message<'_>) -> Option<u16> {
    let reads =
        |kind: &MediaType<'_>| kind.is("application", "sdp") || kind.is("application", "vnd.etsi.aoc+xml");
    message.body_fits(reads).err().map(::sip::Status::code)
}

/// What a refusal of a body says of those that are read.
pub(crate) const fn accepted(status: u16) -> &'static [(&'static str, &'static str)] {
    match status {
        415 => &[("Accept", "application/sdp, multipart/mixed"), ("Accept-Encoding", "identity")],
        _ => &[],
    }
}

/// The extension that a request asks for; `s` without a user part. What follows a `;` in the user may be left out.
pub(crate) fn exten_of(message: &Message<'_>, without_options: bool) -> String {
    let Some(uri) = message.request_uri() else { return "s".to_owned() };
    let user = identity::text(&uri.user_meant(without_options));
    let mut end = user.len().min(EXTEN_BYTES_MAX);
    while !user.is_char_boundary(end) {
        end -= 1;
    }
    let exten = user.get(..end).unwrap_or_default();
    if exten.is_empty() { "s".to_owned() } else { exten.to_owned() }
}
