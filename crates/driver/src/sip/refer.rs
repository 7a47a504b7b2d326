//! Transfers that phones ask for: REFER (RFC 3515), with Replaces (RFC 3891) when they have asked the target before, and
//! what they are told of it; and INVITE that replaces a call.
//!
//! Where a phone sends somebody is text of a stranger: it is looked up in the dialplan as a dialled number is, and what a
//! dialplan may put into a dial string is put together here from checked parts.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use ::sip::header::Replaces;
use ::sip::stack::{Answer, Body, ClientId, DialogId, Flow, Header, Incoming, ServerId};
use ::sip::subscription::{Input, Notifier, Output, Reason, Standing};
use ::sip::{HeaderName, Message, Method, NameAddr, OwnedMessage, Status, Uri};
use base::{Cause, ChannelId, Instant};
use call::parking::ParkWish;
use call::{Advance, CelKind, Core, Coupling, Exchange, Level, Location, Notice, Reach, StandIn};
use dialplan::{Inherit, Var};

use super::config::Endpoint;
use super::inbound::Known;
use super::leg::{Leg, Stage};
use super::session::{Media, Terms};
use super::{SipDriver, identity};

mod carried;
mod told;

/// Seconds in which a transferer is told how it goes: longer than anybody lets it ring, and a little less than the 202 says.
const TELL_SECONDS: u32 = 599;
/// How long after the REFER a transferer may end his call himself (RFC 5589 §6); after that he is sent BYE.
const REST: Duration = Duration::from_secs(60);
/// Extension for targets that only another server knows.
const EXTERNAL: &str = "external_replaces";

/// What a transferer is told of one REFER.
struct Referral {
    machine: Notifier,
    /// Status that the next NOTIFY tells.
    status: u16,
    /// The NOTIFY that is out.
    out: Option<ClientId>,
    /// Number under which the call of whoever was transferred is followed.
    token: u64,
    until: Instant,
    /// What it has asked for, when programs carry it out.
    asked: Option<Box<told::Asked>>,
}

/// A transferer who is left to end his call himself.
struct Rest {
    /// When he is sent BYE.
    until: Instant,
    /// What is left of his leg, once his channel is gone.
    session: Option<Box<Session>>,
}

/// What an offer of a transferer is still answered from.
struct Session {
    endpoint: Rc<Endpoint>,
    media: Media,
    flow: Flow,
}

/// All REFERs of which somebody is still told, one a dialog.
#[derive(Default)]
pub(crate) struct Referrals {
    all: HashMap<DialogId, Referral>,
    by_token: HashMap<u64, DialogId>,
    by_request: HashMap<ClientId, DialogId>,
    deadlines: BTreeSet<(Instant, DialogId)>,
    next: u64,
    /// REFERs of ours that have no final response.
    pub(super) ours: HashMap<ClientId, DialogId>,
    /// Dialogs whose transferer has no channel any more, or will have none.
    resting: BTreeMap<DialogId, Rest>,
}

impl Referrals {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let rest = self.resting.values().map(|rest| rest.until).min();
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(rest).min()
    }
    /// Whether this is a NOTIFY of a REFER, or a REFER of ours.
    pub(crate) fn owns(&self, request: ClientId) -> bool {
        self.by_request.contains_key(&request) || self.ours.contains_key(&request)
    }
    /// A request has been sent once more.
    pub(crate) fn asked_again(&mut self, request: ClientId, again: ClientId) {
        if let Some(dialog) = self.ours.remove(&request) {
            self.ours.insert(again, dialog);
        }
        let Some(dialog) = self.by_request.remove(&request) else { return };
        self.by_request.insert(again, dialog);
        if let Some(referral) = self.all.get_mut(&dialog) {
            referral.out = Some(again);
        }
    }
    fn forget(&mut self, dialog: DialogId) -> Option<Referral> {
        let referral = self.all.remove(&dialog)?;
        self.by_token.remove(&referral.token);
        self.deadlines.remove(&(referral.until, dialog));
        if let Some(request) = referral.out {
            self.by_request.remove(&request);
        }
        Some(referral)
    }
}

/// Where a REFER points.
struct ReferTo {
    user: String,
    /// The URI put together anew from its checked parts; none when it has parts that no dial string may hold.
    uri: Option<String>,
    replaces: Option<String>,
}

/// A call that an INVITE replaces.
enum Replaced {
    /// It is answered.
    Up(ChannelId),
    /// We call, and nobody has answered.
    Early(ChannelId),
    /// It rings at an extension whose lamp the sender watches, at whatever phone.
    AtLamp(ChannelId),
}

/// A transfer that can be carried out.
enum Plan {
    /// The other party goes to an extension.
    Blind { to: Location, transferee: ChannelId, external: Option<(String, String)> },
    /// The other party is parked, at an extension that does that with these arguments; the transferer hears where.
    Park { to: Location, transferee: ChannelId, arguments: String },
    /// Whoever is at an extension takes the transferer's seat in a conference.
    Seat { to: Location, external: Option<(String, String)> },
    /// The newcomer takes the place of one of the transferer's own channels.
    Attended { place: ChannelId, newcomer: ChannelId, second: ChannelId },
    /// A conference hears what the transferer's other channel is in: another conference, or an application.
    Coupled { places: [ChannelId; 2] },
    /// The dialplan has no such extension: the call stays as it is, and the transferer is told.
    Nowhere,
}

impl SipDriver {
    /// A REFER inside a call.
    pub(crate) fn referred(
        &mut self,
        core: &mut Core,
        (dialog, handle): (DialogId, u64),
        request: ServerId,
        message: &OwnedMessage,
    ) {
        let view = message.view();
        let Some((channel, endpoint)) = self.legs.get(handle).map(|leg| (leg.channel, leg.endpoint.clone()))
        else {
            return;
        };
        if self.legs.get(handle).is_some_and(|leg| leg.transfers_told) && endpoint.allow_transfer {
            return self.referred_to_programs(core, (dialog, channel), request, message);
        }
        let planned = match self.referrals.all.contains_key(&dialog) {
            true => Err(491),
            false => self.plan_transfer(core, channel, &endpoint, &view),
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(status) => {
                let line = format!("transfer by '{}' refused with {status}", endpoint.name);
                core.log(Level::Notice, "res_pjsip_refer", &line);
                let answer = Answer::new(status);
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
                return;
            }
        };
        // RFC 4488 §4: who does not want to be told says so, and hears that we comply.
        let silent = view
            .header(HeaderName::ReferSub)
            .is_some_and(|value| !value.trim_ascii().eq_ignore_ascii_case(b"true"));
        let asked = view.has(HeaderName::ReferSub);
        let nowhere = matches!(plan, Plan::Nowhere);
        let supported = endpoint.supported();
        let headers = [
            ("Refer-Sub", if silent { "false" } else { "true" }),
            ("Supported", supported.as_str()),
            ("Expires", "600"),
        ];
        // Whom nobody tells later is told the outcome at once.
        let (status, headers) = match (silent, asked) {
            (true, _) if nowhere => (404, &headers[..1]),
            (true, _) => (200, &headers[..2]),
            (false, true) => (202, &headers[..]),
            (false, false) => (202, &headers[1..]),
        };
        let answer = Answer::new(status).headers(headers);
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
        let referred_by = view.header(HeaderName::ReferredBy).map(identity::text).unwrap_or_default();
        let refer_to = view.header(HeaderName::ReferTo).and_then(NameAddr::parse);
        let refer_to = refer_to.map(|to| identity::text(to.uri.as_bytes())).unwrap_or_default();
        // Without what it asks to be sent there.
        let refer_to = refer_to.split('?').next().unwrap_or_default().to_owned();
        let follows = !silent
            && endpoint.refer_progress
            && !matches!(
                plan,
                Plan::Attended { .. } | Plan::Coupled { .. } | Plan::Park { .. } | Plan::Nowhere
            );
        // The seat has to be there until somebody else sits in it, and who parks is told the space.
        let mut stays =
            matches!(plan, Plan::Seat { .. } | Plan::Coupled { .. } | Plan::Park { .. } | Plan::Nowhere);
        self.referrals.next += 1;
        let token = self.referrals.next;
        match plan {
            Plan::Blind { to, transferee, external } => {
                // Media that goes past us comes back before anybody is told anything.
                let party = core.get(transferee).filter(|party| party.tech == self.tech_index);
                let party = party.map(|party| party.handle);
                self.legs
                    .by_dialog(dialog)
                    .into_iter()
                    .chain(party)
                    .for_each(|leg| self.take_back(core, leg));
                self.pass_on(core, transferee, &view);
                let said = (&*endpoint.context, &*refer_to, &*referred_by);
                blind(core, (channel, transferee), &to, said, external);
                core.request_goto(transferee, to);
                if let Some(other) = core.get_mut(transferee).filter(|_| follows) {
                    other.advance_watch = Some(token);
                }
            }
            Plan::Park { to, transferee, arguments } => {
                self.pass_on(core, transferee, &view);
                let said = (&*endpoint.context, &*refer_to, &*referred_by);
                blind(core, (channel, transferee), &to, said, None);
                core.request_parking(ParkWish { parker: channel, parkee: transferee, arguments });
            }
            Plan::Seat { to, external } => {
                let variables = seat_variables(core, channel, &referred_by, external);
                let watch = follows.then_some(token);
                core.request_stand_in(StandIn { place: channel, to, watch, variables, external: true });
            }
            // Where somebody else takes the transferer's place it is his that ends with that.
            Plan::Attended { place, newcomer, second } => {
                stays |= attended(core, channel, (place, newcomer, second));
            }
            Plan::Coupled { places } => core.request_coupling(Coupling { places }),
            Plan::Nowhere => {}
        }
        if !nowhere {
            let rest = Rest { until: core.now + REST, session: None };
            self.referrals.resting.insert(dialog, rest);
        }
        if !silent {
            let outcome = if nowhere { 404 } else { 200 };
            self.begin_referral(core, dialog, token, (!follows).then_some(outcome));
        }
        if !stays {
            core.request_hangup(channel, Cause::NORMAL_CLEARING);
        }
    }

    /// What a REFER comes to, or the status that refuses it.
    fn plan_transfer(
        &mut self,
        core: &Core,
        channel: ChannelId,
        endpoint: &Endpoint,
        message: &Message<'_>,
    ) -> Result<Plan, u16> {
        if !endpoint.allow_transfer {
            return Err(603);
        }
        let target = refer_to(message, self.config.ignore_user_options)?;
        let peer = peer_of(core, channel);
        if peer.is_none() && carried::sends_to_voicemail(message) {
            return Err(400);
        }
        if let Some(replaces) = &target.replaces {
            let parsed = Replaces::parse(replaces.as_bytes()).ok_or(400_u16)?;
            let other = self.stack.find_dialog(parsed.call_id, parsed.to_tag, parsed.from_tag);
            let leg =
                other.and_then(|dialog| self.legs.by_dialog(dialog)).and_then(|handle| self.legs.get(handle));
            // A guest has proved no more than where it calls from.
            let own = core.get(channel).and_then(|channel| self.legs.get(channel.handle)).map(|leg| leg.flow);
            let is_own = other.zip(own).is_some_and(|(other, flow)| self.stack.is_from_peer(other, flow));
            if leg.is_some() && endpoint.is_guest() && !is_own {
                return Err(481);
            }
            if let Some(second) = leg.map(|leg| leg.channel) {
                if second == channel || peer == Some(second) {
                    return Err(400);
                }
                let lives = |id| core.get(id).is_some_and(|channel| channel.hangup.is_none());
                if !lives(second) {
                    return Err(481);
                }
                // A bridge of a program keeps its places: nobody is moved into it, nor out of it.
                let is_program = |id| core.stasis_bridge_of(id).is_some();
                if is_program(channel) {
                    return coupled(core, [channel, second]).ok_or(404);
                }
                if is_program(second) {
                    let talks = core.get(channel).is_some_and(|channel| channel.bridge.is_some());
                    let places = if talks { [channel, second] } else { [second, channel] };
                    return Ok(Plan::Coupled { places });
                }
                return match (peer, peer_of(core, second)) {
                    (Some(newcomer), _) => Ok(Plan::Attended { place: second, newcomer, second }),
                    (None, Some(newcomer)) => Ok(Plan::Attended { place: channel, newcomer, second }),
                    (None, None) => coupled(core, [channel, second]).ok_or(404),
                };
            }
        }
        let in_conference = core.conferences.of(channel).is_some();
        let transferee = match peer {
            Some(peer) => peer,
            None if in_conference => channel,
            None => return Err(404),
        };
        let context = core.get(channel).map(|c| transfer_context(c, &endpoint.context)).unwrap_or_default();
        let context = &context;
        let (exten, external) = match target.replaces {
            Some(replaces) => (EXTERNAL.to_owned(), Some((target.uri.ok_or(400_u16)?, replaces))),
            None => (target.user, None),
        };
        let caller = core.get(transferee).map(|c| c.caller.number().to_owned()).unwrap_or_default();
        match (core.reach)(core, context, &exten, &caller) {
            Reach::Whole => {
                let to = Location { context: context.to_owned(), exten, priority: 1 };
                if in_conference {
                    return Ok(Plan::Seat { to, external });
                }
                if let Some(arguments) = (core.parks)(core, &to.context, &to.exten, &caller) {
                    return Ok(Plan::Park { to, transferee, arguments });
                }
                Ok(Plan::Blind { to, transferee, external })
            }
            Reach::Partial | Reach::None | Reach::Separator(_) => Ok(Plan::Nowhere),
        }
    }

    /// Begins to tell the transferer how it goes: that it is tried, and the outcome at once when that is known already.
    fn begin_referral(&mut self, core: &mut Core, dialog: DialogId, token: u64, outcome: Option<u16>) {
        let mut steps = Vec::new();
        let machine = Notifier::start(TELL_SECONDS, core.now, &mut steps);
        let until = machine.deadline().unwrap_or(core.now);
        let referral = Referral { machine, status: 100, out: None, token, until, asked: None };
        self.referrals.all.insert(dialog, referral);
        if outcome.is_none() {
            self.referrals.by_token.insert(token, dialog);
        }
        self.referrals.deadlines.insert((until, dialog));
        self.referral_steps(core, dialog, steps);
        if let (Some(outcome), Some(referral)) = (outcome, self.referrals.all.get_mut(&dialog)) {
            referral.status = outcome;
            self.turn_referral(core, dialog, Input::End(Reason::NoResource));
        }
    }

    /// Tells transferers how the calls of those whom they sent have come on. The shard's owner calls it each turn.
    pub(crate) fn tell_transferers(&mut self, core: &mut Core) {
        for (token, advance) in std::mem::take(&mut core.advances) {
            let Some(&dialog) = self.referrals.by_token.get(&token) else { continue };
            let Some(referral) = self.referrals.all.get_mut(&dialog) else { continue };
            let (status, input) = match advance {
                Advance::Ringing => (180, Input::Changed),
                Advance::Early => (183, Input::Changed),
                Advance::Connected => (200, Input::End(Reason::NoResource)),
                Advance::Failed(cause) => (failure(cause), Input::End(Reason::NoResource)),
            };
            if referral.status != status {
                referral.status = status;
                self.turn_referral(core, dialog, input);
            }
        }
        while let Some(&(at, dialog)) = self.referrals.deadlines.first().filter(|(at, _)| *at <= core.now) {
            self.referrals.deadlines.remove(&(at, dialog));
            self.turn_referral(core, dialog, Input::Timeout);
        }
        let over = self.referrals.resting.iter().filter(|(_, rest)| rest.until <= core.now);
        let rested: Vec<DialogId> = over.map(|(dialog, _)| *dialog).collect();
        for dialog in rested {
            self.referrals.resting.remove(&dialog);
            // Whose channel is there still has a call.
            if self.legs.by_dialog(dialog).is_none() {
                self.referrals.forget(dialog);
                let reason = [("Reason", "Q.850;cause=16")];
                self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 603, &reason, now, out)).ok();
            }
        }
    }
    fn turn_referral(&mut self, core: &mut Core, dialog: DialogId, input: Input) {
        let mut steps = Vec::new();
        if let Some(referral) = self.referrals.all.get_mut(&dialog) {
            referral.machine.handle(input, core.now, &mut steps);
        }
        self.referral_steps(core, dialog, steps);
    }
    fn referral_steps(&mut self, core: &mut Core, dialog: DialogId, steps: Vec<Output>) {
        for step in steps {
            match step {
                Output::Notify(standing) => self.tell_referral(core, dialog, standing),
                // His call is his to end.
                Output::Gone => drop(self.referrals.forget(dialog)),
            }
        }
    }
    fn tell_referral(&mut self, core: &mut Core, dialog: DialogId, standing: Standing) {
        let Some(referral) = self.referrals.all.get(&dialog) else { return };
        let status = Status::new(referral.status).unwrap_or(Status::OK);
        let body = format!("SIP/2.0 {} {}\r\n", status.code(), status.phrase());
        let standing = standing.to_string();
        let headers: [Header<'_>; 3] =
            [("Event", "refer"), ("Subscription-State", &standing), ("Allow-Events", super::ALLOW_EVENTS)];
        let body = Body { content_type: "message/sipfrag;version=2.0", bytes: body.as_bytes() };
        let sent = self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Notify, &headers, Some(body)), now, out)
        });
        match sent {
            Ok(request) => {
                self.referrals.by_request.insert(request, dialog);
                if let Some(referral) = self.referrals.all.get_mut(&dialog) {
                    referral.out = Some(request);
                }
            }
            Err(_) => self.turn_referral(core, dialog, Input::Unanswered),
        }
    }
    /// A response to a NOTIFY of a REFER, or to a REFER of ours; `None` when none came.
    pub(crate) fn referral_answered(
        &mut self,
        core: &mut Core,
        request: ClientId,
        answer: Option<(u16, &OwnedMessage)>,
    ) {
        if answer.is_some_and(|(status, _)| status < 200) || self.own_refer_answered(core, request, answer) {
            return;
        }
        let Some(dialog) = self.referrals.by_request.remove(&request) else { return };
        let input = answer.map_or(Input::Unanswered, |(status, _)| Input::Answered(status));
        self.turn_referral(core, dialog, input);
    }
    /// The dialog of a transferer has ended: there is nobody to tell.
    pub(crate) fn referral_lost(&mut self, dialog: DialogId) {
        self.referrals.resting.remove(&dialog);
        self.referrals.forget(dialog);
    }
    /// The channel of a transferer goes. Whether its dialog stays, so that he is told all and ends it himself.
    pub(crate) fn is_referral_open(&self, dialog: DialogId) -> bool {
        self.referrals.resting.contains_key(&dialog)
    }

    /// The channel of a transferer has gone: this is left of his leg.
    pub(crate) fn rest(&mut self, dialog: DialogId, leg: Box<Leg>) {
        if let Some(rest) = self.referrals.resting.get_mut(&dialog) {
            let Leg { endpoint, media, flow, .. } = *leg;
            rest.session = Some(Box::new(Session { endpoint, media, flow }));
        }
    }
    /// A re-INVITE of a transferer whose channel has gone: it is answered, and he is sent BYE when he has acknowledged that.
    /// `false`: there is no such transferer.
    pub(crate) fn offered_at_rest(
        &mut self,
        core: &mut Core,
        dialog: DialogId,
        request: ServerId,
        message: &OwnedMessage,
    ) -> bool {
        let config = self.config.clone();
        let rest = self.referrals.resting.get_mut(&dialog);
        let Some(session) = rest.and_then(|rest| rest.session.as_mut()) else { return false };
        let Session { endpoint, media, flow } = &mut **session;
        let terms = Terms { config: &config, endpoint, signalling: flow.remote.ip() };
        let described = match message.view().sdp() {
            Some(offer) => media.answer(offer, &terms).map(|(sdp, _)| sdp),
            None => Ok(media.offer(&terms)),
        };
        let supported = endpoint.supported();
        match described {
            Ok(sdp) => {
                let headers = [("Supported", supported.as_str())];
                let answer = Answer::new(200).headers(&headers).body(Body::sdp(&sdp));
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
                self.referral_lost(dialog);
                self.with_stack(core, |stack, now, out| stack.bye(dialog, &[], now, out)).ok();
            }
            Err(why) => {
                let answer = Answer::new(why.status().code());
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
            }
        }
        true
    }

    /// An INVITE that replaces a call (RFC 3891 §3). `true`: it was one, and has been seen to.
    pub(crate) fn replaces(&mut self, core: &mut Core, incoming: &Incoming, known: &Known) -> bool {
        let view = incoming.message.view();
        let mut values = view.headers(HeaderName::Replaces);
        let Some(value) = values.next() else { return false };
        let parsed = Replaces::parse(value);
        let replaced = parsed.as_ref().and_then(|replaces| {
            self.stack.find_dialog(replaces.call_id, replaces.to_tag, replaces.from_tag)
        });
        if let Some((status, headers)) = self.may_not_replace(core, incoming, &known.endpoint, replaced) {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            self.refuse(incoming, &Answer::new(status).headers(&headers));
            return true;
        }
        let place = match (parsed, values.next()) {
            (Some(replaces), None) => match self.rings_at_lamp(core, &known.endpoint, &replaces) {
                Some(target) => target.map(Replaced::AtLamp),
                None => self.replaced(core, &replaces),
            },
            _ => Err(400),
        };
        let place = match place {
            Ok(found) => found,
            Err(status) => {
                self.refuse(incoming, &Answer::new(status));
                return true;
            }
        };
        let endpoint = &known.endpoint;
        let exten = super::inbound::exten_of(&view, self.config.ignore_user_options);
        let caller = identity::caller_of(&view, endpoint);
        let Some(newcomer) = self.ring(core, incoming, endpoint, exten, caller) else { return true };
        let Some(handle) = core.get(newcomer).map(|channel| channel.handle) else { return true };
        self.answer_leg(core, handle);
        core.answered(newcomer);
        let (place, was_early) = match place {
            Replaced::Up(place) => (place, false),
            Replaced::Early(place) => (place, true),
            Replaced::AtLamp(target) => {
                core.pick_up_by_new(newcomer, target);
                return true;
            }
        };
        let cause = if was_early { Cause::ANSWERED_ELSEWHERE } else { Cause::NORMAL_CLEARING };
        core.request_exchange(Exchange {
            place,
            newcomer,
            leaving: Vec::new(),
            is_fresh: true,
            mirrored: false,
            answers: was_early,
            notice: None,
            cause,
        });
        true
    }
    /// The call that is replaced, or the status that refuses to.
    fn replaced(&self, core: &Core, replaces: &Replaces<'_>) -> Result<Replaced, u16> {
        let dialog =
            self.stack.find_dialog(replaces.call_id, replaces.to_tag, replaces.from_tag).ok_or(481_u16)?;
        let leg = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle)).ok_or(481_u16)?;
        if core.get(leg.channel).is_none_or(|channel| channel.hangup.is_some()) {
            return Err(603);
        }
        match leg.stage {
            Stage::Up if replaces.early_only => Err(486),
            Stage::Up => Ok(Replaced::Up(leg.channel)),
            Stage::Calling => Ok(Replaced::Early(leg.channel)),
            // §3: an early dialog that we did not begin is not replaced.
            Stage::Ringing | Stage::Idle | Stage::Over => Err(481),
        }
    }

    /// Headers of an INVITE by which another server replaces a call there, from the channel's variables.
    pub(crate) fn replacing_headers(core: &Core, channel: ChannelId) -> Vec<(String, String)> {
        let value = |name: &str| {
            let text = core.get(channel)?.vars.get_name(name)?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let mut headers = Vec::new();
        if let Some(replaces) = value("SIPREPLACESHDR") {
            headers.push(("Require".to_owned(), "replaces".to_owned()));
            headers.push(("Replaces".to_owned(), replaces));
        }
        headers.extend(value("SIPREFERREDBYHDR").map(|by| ("Referred-By".to_owned(), by)));
        headers
    }
}

/// The status of a message that ends as this cause says, for a transferer.
fn failure(cause: Cause) -> u16 {
    match cause {
        // Whoever was sent has given up, or has heard all there was.
        Cause::NONE | Cause::NORMAL_CLEARING => 503,
        cause => cause.to_sip(),
    }
}

/// The one that a channel talks to.
fn peer_of(core: &Core, channel: ChannelId) -> Option<ChannelId> {
    let bridge = core.get(channel)?.bridge?;
    match core.bridge_members(bridge) {
        &[a, b] if core.conferences.of(channel).is_none() => Some(if a == channel { b } else { a }),
        _ => None,
    }
}

/// How two channels come together of which neither talks to exactly one: one of them has to be in a conference. Two seats in
/// the same one are its own echo.
fn coupled(core: &Core, [own, second]: [ChannelId; 2]) -> Option<Plan> {
    match (core.conferences.of(own), core.conferences.of(second)) {
        (Some(a), Some(b)) if a.room == b.room => None,
        (Some(_), _) => Some(Plan::Coupled { places: [own, second] }),
        (None, Some(_)) => Some(Plan::Coupled { places: [second, own] }),
        (None, None) => None,
    }
}

/// The context in which the numbers are that a channel transfers to.
fn transfer_context(channel: &call::Channel, own: &str) -> String {
    let named = channel.vars.get_name("TRANSFER_CONTEXT").filter(|context| !context.is_empty());
    named.unwrap_or(own).to_owned()
}

/// What the dialplan of the transferee's extension may want to know; and watchers are told.
fn blind(
    core: &mut Core,
    (transferer, transferee): (ChannelId, ChannelId),
    to: &Location,
    (context, refer_to, referred_by): (&str, &str, &str),
    external: Option<(String, String)>,
) {
    let name = |core: &Core, id| core.get(id).map(|channel| channel.name.to_string()).unwrap_or_default();
    let (by, who) = (name(core, transferer), name(core, transferee));
    let context = core.get(transferer).map(|channel| transfer_context(channel, context)).unwrap_or_default();
    core.end_hold(transferer);
    core.set_variable(transferee, "BLINDTRANSFER", &by);
    core.set_variable(transferer, "BLINDTRANSFER", &who);
    if let Some(channel) = core.get_mut(transferee) {
        channel.vars.set(Var::named("ATTENDEDTRANSFER"), "", Inherit::Never);
        channel.vars.set(Var::named("TRANSFERERNAME"), &by, Inherit::Never);
    }
    core.set_variable(transferee, "SIPTRANSFER", "yes");
    core.set_variable(transferee, "SIPREFERRINGCONTEXT", &context);
    if !referred_by.is_empty() {
        core.set_variable(transferee, "__SIPREFERREDBYHDR", referred_by);
    }
    if let Some((_, replaces)) = &external {
        core.set_variable(transferee, "__SIPREPLACESHDR", replaces);
    }
    core.set_variable(transferee, "SIPREFERTOHDR", refer_to);
    core.notice_logged(CelKind::BlindTransfer, |core| {
        let bridge = core.get(transferer)?.bridge?;
        Some(Notice::BlindTransfer {
            transferer: core.snapshot(transferer).map(Box::new)?,
            transferee: core.snapshot(transferee).map(Box::new),
            replacement: None,
            bridge: core.bridge_snapshot(bridge)?,
            members: core.bridge_uniqueids(bridge),
            external: true,
            to: (to.context.clone(), to.exten.clone()),
        })
    });
}

/// What the dialplan of whoever takes the transferer's seat may want to know.
fn seat_variables(
    core: &Core,
    transferer: ChannelId,
    referred_by: &str,
    external: Option<(String, String)>,
) -> Vec<(String, String)> {
    let by = core.get(transferer).map(|channel| channel.name.to_string()).unwrap_or_default();
    let mut variables =
        vec![("BLINDTRANSFER", by.clone()), ("TRANSFERERNAME", by), ("SIPTRANSFER", "yes".to_owned())];
    if !referred_by.is_empty() {
        variables.push(("__SIPREFERREDBYHDR", referred_by.to_owned()));
    }
    if let Some((uri, replaces)) = external {
        variables.extend([("SIPREFERTOHDR", uri), ("__SIPREPLACESHDR", replaces)]);
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Lets the newcomer take the transferer's place; or where the newcomer's dialplan goes on, lets whom the transferer has
/// called the second time take his first place: `true`.
fn attended(
    core: &mut Core,
    first: ChannelId,
    (place, newcomer, second): (ChannelId, ChannelId, ChannelId),
) -> bool {
    let name = |core: &Core, id| core.get(id).map(|channel| channel.name.to_string()).unwrap_or_default();
    let (by, who) = (name(core, first), name(core, newcomer));
    let target = peer_of(core, place);
    core.end_hold(first);
    core.end_hold(second);
    core.set_variable(newcomer, "ATTENDEDTRANSFER", &by);
    core.set_variable(first, "ATTENDEDTRANSFER", &who);
    if let Some(channel) = core.get_mut(newcomer) {
        channel.vars.set(Var::named("BLINDTRANSFER"), "", Inherit::Never);
    }
    let runs = |id| core.get(id).is_some_and(|channel| channel.has_pbx);
    // Whoever has come by a queue is through with it, and so is the agent: its story has to hear that it ends.
    let is_dialled = core.get(newcomer).is_some_and(|channel| channel.app == "Dial");
    let mirrored = place == second
        && runs(newcomer)
        && is_dialled
        && !runs(first)
        && runs(second)
        && target.is_some_and(|target| !runs(target));
    let snapshot = |id| core.snapshot(id).map(Box::new);
    let notice = (|| {
        Some(Notice::AttendedTransfer {
            transferer: snapshot(first)?,
            second: snapshot(second),
            transferee: Some(snapshot(newcomer)?),
            target: target.and_then(snapshot),
            link: None,
            bridges: [first, second].map(|id| core.bridge_around(id)),
            stays: core.bridge_around(place).map(|bridge| bridge.uid),
            external: false,
        })
    })();
    let (place, newcomer, leaving) = match target.filter(|_| mirrored) {
        Some(target) => (first, target, vec![second]),
        // Whichever of the transferer's channels is not the place that is taken talks to the newcomer: it goes with him.
        None => (place, newcomer, [first, second].into_iter().filter(|id| *id != place).collect()),
    };
    let cause = Cause::NORMAL_CLEARING;
    core.request_exchange(Exchange {
        place,
        newcomer,
        leaving,
        is_fresh: false,
        mirrored,
        answers: false,
        notice,
        cause,
    });
    mirrored
}

/// Refer-To, of which there is exactly one (RFC 3515 §2.4.1).
fn refer_to(message: &Message<'_>, without_options: bool) -> Result<ReferTo, u16> {
    let mut values = message.headers(HeaderName::ReferTo);
    let (value, None) = (values.next().ok_or(400_u16)?, values.next()) else { return Err(400) };
    let address = NameAddr::parse(value).ok_or(400_u16)?;
    let uri = address.uri;
    if !uri.is_sip() {
        return Err(400);
    }
    let replaces = uri.header_fields().find(|(name, _)| name.eq_ignore_ascii_case(b"Replaces"));
    let replaces = replaces.map(|(_, value)| identity::text(&::sip::uri::percent_decode(value)));
    let user = identity::text(&uri.user_meant(without_options));
    Ok(ReferTo { uri: plain_uri(&uri, &user), user, replaces })
}

/// A URI of user, host and port that means itself in a dial string, whatever it was before.
fn plain_uri(uri: &Uri<'_>, user: &str) -> Option<String> {
    let plain = |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
    let host = core::str::from_utf8(uri.host.as_bytes()).ok()?;
    let address = uri.host.ip().is_some() || plain(host, ".-");
    if !address || host.is_empty() || !plain(user, "+*#-_.") {
        return None;
    }
    let at = if user.is_empty() { "" } else { "@" };
    let port = uri.port.map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("sip:{user}{at}{host}{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_could_mean_more_in_a_dial_string_is_none() {
        for (text, plain) in [
            ("sip:600@192.0.2.4:5070;transport=tcp", Some("sip:600@192.0.2.4:5070")),
            ("sip:600@pbx.example", Some("sip:600@pbx.example")),
            ("sip:pbx.example", Some("sip:pbx.example")),
            ("sip:600&PJSIP%2Ftrunk@pbx.example", None),
            ("sip:600%26PJSIP@pbx.example", None),
            ("sip:6|00@pbx.example", None),
            ("sip:6,00@pbx.example", None),
            ("sip:${EXTEN}@pbx.example", None),
        ] {
            let parsed = Uri::parse(text.as_bytes());
            let got = parsed.and_then(|uri| {
                let user = identity::text(&uri.user_decoded());
                plain_uri(&uri, &user)
            });
            assert_eq!(got.as_deref(), plain, "{text}");
        }
    }
}
