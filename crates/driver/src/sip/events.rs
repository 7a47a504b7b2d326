//! What the SIP machines report, told to the call core.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use ::sip::header::MediaType;
use ::sip::sdp::{FaxStream, Negotiated, fault};
use ::sip::stack::{
    Answer, Body, ClientId, DialogId, End, Event, Failure, Flow, Incoming, ServerId, SubscriptionId,
};
use ::sip::{HeaderName, Message, Method, OwnedMessage};
use base::{Cause, Command, Digit, Plan};
use call::{ChanEvent, Core, Notice};

use super::leg::Stage;
use super::session::Terms;
use super::{Patience, SipDriver, identity};

/// Lines in the log of messages that cannot be read, from one address and from all within [`UNREAD_PERIOD`]: enough to
/// see what is wrong with a peer, and less than what strangers could fill a disk with.
const UNREAD_LINES_MAX: u32 = 8;
const UNREAD_LINES_ALL_MAX: u32 = 64;
const UNREAD_PERIOD: Duration = Duration::from_secs(10);

/// The dialog an event belongs to.
pub(crate) fn dialog_of(event: &Event) -> Option<DialogId> {
    match event {
        Event::InDialog { dialog, .. }
        | Event::Elsewhere { dialog, .. }
        | Event::Provisional { dialog, .. }
        | Event::Answered { dialog, .. }
        | Event::Challenged { dialog, .. }
        | Event::Failed { dialog, .. }
        | Event::ReinviteFailed { dialog, .. }
        | Event::Acked { dialog, .. }
        | Event::Canceled { dialog, .. }
        | Event::Withdrawn { dialog, .. }
        | Event::Ended { dialog, .. } => Some(*dialog),
        Event::Response { dialog, .. } | Event::Unanswered { dialog, .. } | Event::Moved { dialog, .. } => {
            *dialog
        }
        Event::Invite(_)
        | Event::Request(_)
        | Event::NotifyDue { .. }
        | Event::Resubscribe { .. }
        | Event::Unsubscribed { .. }
        | Event::Stranded { .. }
        | Event::Malformed { .. } => None,
    }
}

/// The subscription an event belongs to.
pub(crate) fn subscription_of(event: &Event) -> Option<SubscriptionId> {
    match event {
        Event::NotifyDue { subscription, .. } | Event::Resubscribe { subscription, .. } => {
            Some(*subscription)
        }
        _ => None,
    }
}

impl SipDriver {
    /// A request outside dialogs that is no INVITE.
    fn requested(&mut self, core: &mut Core, incoming: Incoming) {
        match incoming.message.view().method() {
            Method::Register => self.registered(core, incoming),
            Method::Options => self.pinged(core, incoming),
            Method::Subscribe => self.subscribed(core, incoming),
            Method::Message => self.messaged(core, incoming),
            Method::Notify => self.told_of_mailbox(core, incoming),
            Method::Publish => self.published(core, incoming),
            _ => self.not_served(core, incoming),
        }
    }
    pub(crate) fn event(&mut self, core: &mut Core, event: Event) {
        if let Some(handle) = dialog_of(&event).and_then(|dialog| self.legs.by_dialog(dialog)) {
            self.unsettle(handle);
        }
        match event {
            Event::Invite(incoming) => {
                if let Some(incoming) = self.after_lookup(core, incoming, true) {
                    self.invited(core, *incoming);
                }
            }
            Event::Request(incoming) => {
                if let Some(incoming) = self.after_lookup(core, incoming, false) {
                    self.requested(core, *incoming);
                }
            }
            Event::InDialog { dialog, request, message, .. } => {
                self.in_dialog(core, dialog, request, &message)
            }
            Event::Elsewhere { dialog, incoming } => self.elsewhere(core, dialog, &incoming),
            Event::Provisional { dialog, status, message, .. } => {
                self.progressed(core, dialog, status, &message)
            }
            Event::Answered { dialog, message, .. } => self.answered(core, dialog, message),
            Event::Challenged { dialog, message }
                if message.view().status().map(|s| s.code()) == Some(422) =>
            {
                if !self.ask_longer(core, dialog, &message) {
                    self.over(core, dialog, Cause::from_sip(422), "SIP 422 Session Interval Too Small");
                    self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 0, &[], now, out)).ok();
                }
            }
            Event::Challenged { dialog, message }
                if message.view().status().map(|s| s.code()) == Some(494) =>
            {
                if !self.agree(core, dialog, &message) {
                    self.over(core, dialog, Cause::from_sip(494), "SIP 494 Security Agreement Required");
                    self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 0, &[], now, out)).ok();
                }
            }
            Event::Challenged { dialog, message } => self.challenged(core, dialog, &message),
            Event::Failed { dialog, failure } => self.failed(core, dialog, &failure),
            Event::Response { request, status, message, .. }
                if self.referrals.owns(request) && !matches!(status, 401 | 407) =>
            {
                self.referral_answered(core, request, Some((status, &message)));
            }
            Event::Unanswered { request, .. } if self.referrals.owns(request) => {
                self.referral_answered(core, request, None);
            }
            Event::Response { request, dialog: Some(dialog), status: status @ (401 | 407), message } => {
                match self.challenged_inside(core, dialog, request, &message) {
                    Some(again) => self.asked_again(request, again),
                    None if self.referrals.owns(request) => {
                        self.referral_answered(core, request, Some((status, &message)));
                    }
                    None if self.updates.contains_key(&request) => {
                        self.updated(core, request, Ok((status, &message)));
                    }
                    None => {}
                }
            }
            Event::Response { request, status, message, .. } if self.updates.contains_key(&request) => {
                if status >= 200 {
                    self.updated(core, request, Ok((status, &message)));
                }
            }
            Event::Unanswered { request, failure, .. } if self.updates.contains_key(&request) => {
                self.updated(core, request, Err(&failure));
            }
            Event::Response { request, status, message, .. } if self.trunks.owns(request) => {
                self.registration_answered(core, request, Some((status, &message)));
            }
            Event::Unanswered { request, .. } if self.trunks.owns(request) => {
                self.registration_answered(core, request, None);
            }
            Event::Response { request, status, message, .. } if self.publishing.outward.owns(request) => {
                self.publish_answered(core, request, Some((status, &message)));
            }
            Event::Unanswered { request, .. } if self.publishing.outward.owns(request) => {
                self.publish_answered(core, request, None);
            }
            Event::Response { request, dialog: None, status, message }
                if self.outside.contains_key(&request) =>
            {
                self.outside_answered(core, request, status, &message);
            }
            Event::Unanswered { request, .. } if self.outside.contains_key(&request) => {
                self.outside.remove(&request);
            }
            Event::Response { request, status: 401 | 407, message, .. }
                if self.requests.contains_key(&request) =>
            {
                self.probe_challenged(core, request, &message);
            }
            Event::NotifyDue { subscription, standing } => self.notify_due(core, subscription, standing),
            Event::Resubscribe { subscription, request, source, message } => {
                self.resubscribed(core, subscription, (request, source), &message);
            }
            Event::Unsubscribed { subscription } => self.unsubscribed(core, subscription),
            Event::Response { request, status, .. } if status >= 200 => {
                if let Some(probe) = self.requests.remove(&request) {
                    let good = status != 430 && self.counts_as_answer(&probe, status);
                    self.probed(core, &probe, good);
                    if status == 430 {
                        let (aor, uri) = probe.contact();
                        self.flow_lost(core, aor, |binding| *binding.uri == *uri);
                    }
                }
            }
            Event::Unanswered { request, .. } => {
                if let Some(probe) = self.requests.remove(&request) {
                    self.probed(core, &probe, false);
                }
            }
            Event::Moved { dialog, request, failed, flow, contact } => {
                self.moved(core, (dialog, request), (failed, flow), contact);
            }
            Event::Stranded { request, host, port, failed } => {
                self.strand(core, request, (host, port), failed)
            }
            Event::Acked { dialog, message } => self.acked(core, dialog, &message),
            Event::Canceled { dialog, message } => {
                let cause = reason_of(&message).unwrap_or(Cause::INTERWORKING);
                self.over(core, dialog, cause, "SIP 487 Request Terminated");
            }
            Event::Ended { dialog, reason, message } => {
                self.leaving.remove(&dialog);
                self.referral_lost(dialog);
                let said = message.as_ref().map(|message| message.view());
                match self.legs.by_dialog(dialog) {
                    Some(handle) => _ = said.and_then(|said| self.charged(core, handle, &said)),
                    None => self.charged_after(core, dialog, said.as_ref()),
                }
                let told = message.as_ref().and_then(reason_of);
                let channel = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle));
                let channel = channel.map(|leg| leg.channel);
                // A cause of its own in a BYE stands for a status, too.
                let is_odd = |cause: &Cause| !matches!(*cause, Cause::NONE | Cause::NORMAL_CLEARING);
                if let Some(cause) = told.filter(|cause| reason == End::Bye && is_odd(cause))
                    && let Some(entry) = channel.and_then(|channel| core.get_mut(channel))
                {
                    entry.tech_cause = Some(super::tech::refusal_status(cause));
                }
                let cause = match reason {
                    End::Bye if told.is_none() => return self.over_unsaid(core, dialog, "SIP BYE"),
                    End::Bye | End::Local => told.unwrap_or(Cause::NORMAL_CLEARING),
                    End::NoAck | End::PeerLost => Cause::RECOVERY_ON_TIMER_EXPIRE,
                    End::Abandoned => Cause::CALL_REJECTED,
                };
                self.over(core, dialog, cause, "SIP BYE");
            }
            // The session goes on as it was.
            Event::ReinviteFailed { dialog, .. } => {
                if let Some(handle) = self.legs.by_dialog(dialog) {
                    self.reinvite_refused(core, handle);
                }
            }
            Event::Withdrawn { request, .. } => self.fax_withdrawn(request),
            Event::Malformed { source, what } => self.unread(core, source, &what),
            Event::Response { .. } => {}
        }
    }

    /// The peer would not take a re-INVITE: the session goes on as it was.
    pub(crate) fn reinvite_refused(&mut self, core: &mut Core, handle: u64) {
        self.fax_refused(core, handle);
        self.fax_stays(core, handle);
        self.direct_refused(core, handle);
        self.plan_passed(core, handle, false);
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.media.lead(None);
        }
        self.tell_owed(core, handle);
    }
    /// A challenged request of ours inside a call is out once more, with a proof: what was awaited of it is awaited of this one.
    fn asked_again(&mut self, request: ClientId, again: ClientId) {
        if let Some(dialog) = self.updates.remove(&request) {
            self.updates.insert(again, dialog);
        }
        self.referrals.asked_again(request, again);
    }
    /// A message that cannot be read, which the stack has seen to: people learn which header, and why. Who sends many is
    /// not told of each.
    fn unread(&mut self, core: &mut Core, source: Flow, what: &str) {
        let all = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mut counted = |from, count| {
            let patience = Patience { count: 0, period: UNREAD_PERIOD, prune: UNREAD_PERIOD };
            self.unread.comes(from, false, patience, core.now).is_some_and(|sofar| sofar <= count)
        };
        if counted(source.remote.ip(), UNREAD_LINES_MAX) && counted(all, UNREAD_LINES_ALL_MAX) {
            let line = format!("{} {}: {what}", source.protocol.name(), source.remote);
            core.log(call::Level::Warning, "res_pjsip", &line);
        }
    }
    /// The dialog is gone: its channel ends.
    fn over(&mut self, core: &mut Core, dialog: DialogId, cause: Cause, source: &str) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        self.legs.unbind(dialog);
        if let Some(leg) = self.legs.get(handle) {
            core.remote_hangup(leg.channel, cause, source);
        }
    }

    /// The same where nobody says why.
    fn over_unsaid(&mut self, core: &mut Core, dialog: DialogId, source: &str) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        self.legs.unbind(dialog);
        if let Some(leg) = self.legs.get(handle) {
            core.remote_end(leg.channel, source);
        }
    }

    /// 101 to 199 to our INVITE. A 183 means early audio even without a description, unless the endpoint says otherwise.
    fn progressed(&mut self, core: &mut Core, dialog: DialogId, status: u16, message: &OwnedMessage) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        if message.view().sdp().and_then(fault).is_some() {
            return self.give_up_early(core, dialog, handle);
        }
        let early = self.take_answer(core, handle, message, false);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let channel = leg.channel;
        leg.status = status;
        if let Some(takes) = super::timers::takes_update(&message.view()) {
            leg.peer_updates = takes;
        }
        self.connected_by(core, handle, &message.view());
        self.charged(core, handle, &message.view());
        let Some(leg) = self.legs.get(handle) else { return };
        if status == 181 {
            sent_on(core, channel, &message.view());
        }
        let bare_progress = status == 183 && !leg.endpoint.ignore_183_without_sdp;
        if status == 180 {
            core.set_state(channel, call::ChanState::Ringing);
            core.push_event(channel, ChanEvent::Ringing);
        }
        if early || bare_progress {
            core.push_event(channel, ChanEvent::Progress);
        } else if !matches!(status, 180 | 183) {
            core.push_event(channel, ChanEvent::Proceeding);
        }
    }
    /// Takes the answer to the offer of our first INVITE from a response, when it counts; whether it was taken and good.
    fn take_answer(&mut self, core: &mut Core, handle: u64, message: &OwnedMessage, is_final: bool) -> bool {
        let view = message.view();
        let tag = view.to_tag().unwrap_or_default();
        let counts = self.legs.get(handle).is_some_and(|leg| leg.takes_answer(tag, is_final));
        let good = counts && self.take_description(core, handle, message);
        if let Some(leg) = self.legs.get_mut(handle).filter(|_| good) {
            leg.described_by = Some(tag.into());
        }
        good
    }
    /// Who a message of the peer says it speaks for, when that is believed: its channel is that party from here on, and
    /// whoever talks to it learns so.
    fn connected_by(&mut self, core: &mut Core, handle: u64, message: &Message<'_>) {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.endpoint.trust_connected_line) else { return };
        let Some(mut told) = identity::asserted_by(message, &leg.endpoint) else { return };
        told.tag.clone_from(&leg.endpoint.caller.tag);
        let channel = leg.channel;
        let Some(entry) = core.get_mut(channel).filter(|entry| entry.caller != told) else { return };
        entry.caller.clone_from(&told);
        core.notice_of(channel, Notice::NewCallerId);
        core.push_event(channel, ChanEvent::ConnectedLine(Box::new(told)));
    }
    /// Takes the answer to our offer from a response or an ACK; whether there was a good one.
    pub(crate) fn take_description(&mut self, core: &mut Core, handle: u64, message: &OwnedMessage) -> bool {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let view = message.view();
        if let Some(fault) = view.sdp().and_then(fault) {
            let line = format!("answer of '{}' cannot be used: {}", endpoint.name, fault.text());
            core.log(call::Level::Notice, "chan_pjsip", &line);
            return false;
        }
        let agreed = match view.sdp().map(|sdp| leg.media.accept(sdp, &terms)) {
            None => return false,
            Some(Ok(agreed)) => agreed,
            Some(Err(why)) => {
                let line = format!("answer of '{}' cannot be used: {why}", endpoint.name);
                core.log(call::Level::Notice, "chan_pjsip", &line);
                return false;
            }
        };
        self.agreed(core, handle, &agreed);
        true
    }
    /// The stream and the channel follow an agreement.
    pub(crate) fn agreed(&mut self, core: &mut Core, handle: u64, agreed: &Negotiated) {
        self.end_fax(core, handle);
        let Some(plan) = self.plan(core, handle) else { return };
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let (channel, format) = (leg.channel, plan.format);
        // Where media was seen to come from is no news of where it comes from after a move.
        if leg.moving.seen.is_some() && leg.agreed_at != agreed.remote {
            leg.moving.seen = None;
        }
        leg.agreed_at = agreed.remote;
        leg.taken = leg.taken.iter().chain(agreed.formats().iter()).collect();
        let was_held = std::mem::replace(&mut leg.held, agreed.held);
        if let Some(stream) = leg.stream {
            core.media(Command::Plan { stream, plan: Box::new(plan) });
            core.set_stream(channel, stream, format);
        }
        self.plan_passed(core, handle, false);
        let Some(leg) = self.legs.get(handle) else { return };
        if let Some(entry) = core.get_mut(channel) {
            // Of those that an answer to us names one is used, but where both sides may differ.
            let count = if leg.target.is_empty() || leg.endpoint.asymmetric_codec { usize::MAX } else { 1 };
            entry.formats = agreed.formats().iter().take(count).collect();
        }
        let is_told = !leg.endpoint.silent_hold;
        match (was_held, agreed.held) {
            // Nobody is told of a hold that nobody is to hear.
            (false, true) if is_told => core.push_event(channel, ChanEvent::Hold),
            (true, false) if is_told => core.push_event(channel, ChanEvent::Unhold),
            _ => core.bridge_of_changed(channel),
        }
    }
    /// The stream's plan as the last agreement has it. A name in `c=` is looked up; media flows when its address is known.
    pub(crate) fn plan(&mut self, core: &Core, handle: u64) -> Option<Plan> {
        let config = self.config.clone();
        let leg = self.legs.get(handle)?;
        let terms = Terms { config: &config, endpoint: &leg.endpoint, signalling: leg.flow.remote.ip() };
        if let Some(fax) = &leg.fax {
            return Some(leg.media.fax_plan(fax, &terms));
        }
        let mut plan = leg.media.plan(leg.media.agreed(), &terms);
        if let Some((host, port)) = leg.media.agreed().and_then(|agreed| agreed.remote_name.clone()) {
            let like = leg.media.advertised();
            let addresses = self.names.addresses(&host, core.now);
            let address = addresses.iter().find(|ip| ip.is_ipv4() == like.is_ipv4()).copied();
            plan.remote = address.map(|ip| SocketAddr::new(ip, port));
            let shared = leg.media.agreed().is_some_and(|agreed| agreed.rtcp_mux);
            let after = port.checked_add(u16::from(!shared));
            plan.remote_rtcp = plan.remote.and_then(|at| Some(SocketAddr::new(at.ip(), after?)));
        }
        Some(plan)
    }
    /// The address of a name came: sessions whose `c=` holds it can begin.
    pub(crate) fn replan_named(&mut self, core: &mut Core, host: &str) {
        let waits = |leg: &super::Leg| {
            let name = leg.media.agreed().and_then(|agreed| agreed.remote_name.as_ref());
            name.is_some_and(|(name, _)| name.eq_ignore_ascii_case(host))
        };
        let waiting: Vec<u64> =
            self.legs.handles().filter(|handle| self.legs.get(*handle).is_some_and(waits)).collect();
        for handle in waiting {
            let stream = self.legs.get(handle).and_then(|leg| leg.stream);
            if let (Some(stream), Some(plan)) = (stream, self.plan(core, handle)) {
                core.media(Command::Plan { stream, plan: Box::new(plan) });
            }
        }
    }
    /// The first 2xx to our INVITE, or a 2xx to our re-INVITE.
    fn answered(&mut self, core: &mut Core, dialog: DialogId, message: OwnedMessage) {
        let described = message.view().sdp().is_some();
        self.with_stack(core, |stack, _, out| stack.ack(dialog, None, out)).ok();
        let Some(handle) = self.legs.by_dialog(dialog) else {
            // The channel went while the 200 was on its way. A transferer ends his call himself.
            if !self.is_referral_open(dialog) {
                self.with_stack(core, |stack, now, out| stack.bye(dialog, &[], now, out)).ok();
            }
            return;
        };
        self.direct_agreed(handle);
        let is_fax = self.fax_answered(core, handle, message.view().sdp());
        let first = self.legs.get(handle).is_some_and(|leg| leg.stage == Stage::Calling);
        let tag = message.view().to_tag().unwrap_or_default().to_vec();
        // A branch that has described itself need not do it again, and what it says then may be ignored.
        let known = self.legs.get(handle).is_some_and(|leg| leg.described_by.as_deref() == Some(&*tag));
        let good = match first {
            _ if is_fax => false,
            true => self.take_answer(core, handle, &message, true),
            false => self.take_description(core, handle, &message),
        };
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let channel = leg.channel;
        if let Some(takes) = super::timers::takes_update(&message.view()) {
            leg.peer_updates = takes;
        }
        leg.timer.accepted(&message.view(), core.now);
        // An answer may have come with a reliable or early 183 and need not be repeated.
        let usable = good || ((!described || known) && leg.media.agreed().is_some());
        if first && !usable {
            // It has answered, and that is all: the call counts as taken, and ends.
            core.answered(channel);
            core.push_event(channel, ChanEvent::Answered);
            return self.give_up(core, dialog, channel, "SIP 200 without a usable session");
        }
        if first {
            leg.stage = Stage::Up;
            leg.described_by = None;
            leg.status = 200;
            leg.invite = Some(message.clone());
            self.connected_by(core, handle, &message.view());
            self.charged(core, handle, &message.view());
            core.answered(channel);
            core.push_event(channel, ChanEvent::Answered);
        }
        self.watch_session(handle);
        self.tell_owed(core, handle);
    }
    /// Withdraws a call of whose session nothing can be understood before it is answered.
    fn give_up_early(&mut self, core: &mut Core, dialog: DialogId, handle: u64) {
        let Some(leg) = self.legs.get(handle) else { return };
        let (channel, name) = (leg.channel, leg.endpoint.name.clone());
        let line = format!("call to '{name}' withdrawn: its description cannot be understood");
        core.log(call::Level::Notice, "chan_pjsip", &line);
        self.legs.unbind(dialog);
        core.remote_hangup(channel, Cause::BEARERCAPABILITY_NOTAVAIL, "SIP 183 without a usable session");
        self.with_stack(core, |stack, now, out| stack.hang_up(dialog, 0, &[], now, out)).ok();
    }
    /// Ends an answered call whose session cannot be used.
    fn give_up(&mut self, core: &mut Core, dialog: DialogId, channel: base::ChannelId, source: &str) {
        let cause = Cause::BEARERCAPABILITY_NOTAVAIL;
        self.legs.unbind(dialog);
        core.remote_hangup(channel, cause, source);
        let reason = format!("Q.850;cause={}", cause.0);
        self.with_stack(core, |stack, now, out| stack.bye(dialog, &[("Reason", &reason)], now, out)).ok();
    }
    /// Our INVITE failed for good.
    fn failed(&mut self, core: &mut Core, dialog: DialogId, failure: &Failure) {
        if self.by_another_flow(core, dialog, failure) {
            return;
        }
        // RFC 3261 §8.1.3.4, §16.7: whom a 3xx has named is called until one answers, or one speaks for all.
        let goes_on = matches!(
            failure,
            Failure::Refused { status: 400..=599, .. } | Failure::Timeout | Failure::Transport
        );
        let handle = self.legs.by_dialog(dialog);
        if goes_on && handle.is_some_and(|handle| self.by_another_target(core, handle)) {
            return;
        }
        let (cause, source) = match failure {
            Failure::Refused { status: status @ 300..=399, message } => {
                if self.redirected(core, dialog, message) {
                    return;
                }
                self.forwarded(core, dialog, message);
                (Cause::REDIRECTED, format!("SIP {status} Redirected"))
            }
            Failure::Refused { status, message } => {
                let told = reason_of(message).unwrap_or_else(|| Cause::from_sip(*status));
                let phrase = identity::text(message.view().reason_phrase());
                (told, format!("SIP {status} {phrase}"))
            }
            Failure::Timeout => (Cause::NO_USER_RESPONSE, "SIP 408 Request Timeout".to_owned()),
            Failure::Transport => (Cause::NETWORK_OUT_OF_ORDER, "SIP 503 Service Unavailable".to_owned()),
            Failure::Canceled => (Cause::INTERWORKING, "SIP 487 Request Terminated".to_owned()),
        };
        self.over(core, dialog, cause, &source);
    }
    /// The peer sends the call elsewhere (`redirect_method=user`): the number in its Contact, in the endpoint's context.
    /// Whoever dialled may follow; nothing leaves by itself, so that the dialplan decides what may be dialled.
    fn forwarded(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) {
        let Some(leg) = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle)) else { return };
        let view = message.view();
        // Whoever follows says so, once for both.
        if let (Some(redirecting), Some(entry)) = (identity::redirected_by(&view), core.get_mut(leg.channel))
        {
            entry.redirecting = redirecting;
        }
        if leg.endpoint.redirect == super::Redirect::UriPjsip {
            let line = format!("'{}' sends the call to nobody whom we can call", leg.endpoint.name);
            return core.log(call::Level::Notice, "chan_pjsip", &line);
        }
        // What would end the number, or the URI, in a dial string has no place in one.
        let plain = |c: char| c.is_ascii_alphanumeric() || "+*#-_.".contains(c);
        let delimits = ['&', '|', ',', '^', '/', '"', '$', '{', '}', '\\', ' '];
        let (channel, context) = (leg.channel, leg.endpoint.context.clone());
        let contacts = view.preferred_contacts();
        if leg.endpoint.redirect == super::Redirect::UriCore {
            let mut uris = contacts
                .iter()
                .filter(|contact| contact.uri.can_be_sent_to())
                .map(|contact| identity::text(contact.uri.as_bytes()));
            if let Some(uri) = uris.find(|uri| !uri.contains(delimits)) {
                let name = &leg.endpoint.name;
                return core.push_event(channel, ChanEvent::Forwarded(format!("PJSIP/{name}/{uri}")));
            }
        }
        let user = contacts
            .iter()
            .map(|contact| identity::text(&contact.uri.user_decoded()))
            .find(|user| !user.is_empty() && user.chars().all(plain))
            .unwrap_or_default();
        if !user.is_empty() {
            core.push_event(channel, ChanEvent::Forwarded(format!("Local/{user}@{context}")));
        } else {
            let line = format!("'{}' forwards the call to a contact without a number", leg.endpoint.name);
            core.log(call::Level::Notice, "chan_pjsip", &line);
        }
    }
    /// The ACK carries the answer when our 200 made the offer; a call without an answer has no session and ends.
    fn acked(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        self.tell_owed(core, handle);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        self.unproved.prove(leg.flow.remote.ip());
        if !std::mem::take(&mut leg.awaits_answer) {
            return;
        }
        let (channel, unheard) = (leg.channel, leg.media.agreed().is_none());
        if self.fax_answered(core, handle, message.view().sdp()) {
            return;
        }
        if !self.take_description(core, handle, message) && unheard {
            self.legs.unbind(dialog);
            core.remote_hangup(channel, Cause::INTERWORKING, "SIP 400 Bad Request");
            let reason = [("Reason", "Q.850;cause=0")];
            self.with_stack(core, |stack, now, out| stack.bye(dialog, &reason, now, out)).ok();
        }
    }

    /// A request inside a dialog.
    fn in_dialog(&mut self, core: &mut Core, dialog: DialogId, request: ServerId, message: &OwnedMessage) {
        let handle = self.legs.by_dialog(dialog);
        let method = message.view().method();
        if handle.is_none()
            && method == Method::Invite
            && self.offered_at_rest(core, dialog, request, message)
        {
            return;
        }
        let status = match (handle, method) {
            (None, _) => 481,
            (Some(handle), Method::Invite | Method::Update | Method::Prack) => {
                return self.renegotiated(core, handle, request, message);
            }
            (Some(handle), Method::Info) => self.info(core, handle, message),
            (Some(handle), Method::Refer) => return self.referred(core, (dialog, handle), request, message),
            (Some(_), Method::Notify) => {
                self.told(core, dialog, &message.view());
                200
            }
            (Some(handle), Method::Message) => {
                let view = message.view();
                let text = super::message::text_in_call(&view);
                match (text, self.legs.get(handle)) {
                    (Err(status), _) => status,
                    (Ok(_), None) => 404,
                    (Ok(text), Some(leg)) => {
                        core.push_event(leg.channel, ChanEvent::Text(Box::new(text)));
                        202
                    }
                }
            }
            (Some(_), Method::Options) => 200,
            (Some(_), method) if method.known().is_some() => 405,
            (Some(_), _) => 501,
        };
        let (allow, accept) = ([("Allow", super::ALLOW)], [("Accept", super::ACCEPT)]);
        let answer = match status {
            405 => Answer::new(status).headers(&allow),
            415 => Answer::new(status).headers(&accept),
            200 if method == Method::Options => Answer::new(status).headers(&super::ABILITIES),
            // RFC 6086 §4.2.2: no package is welcome here.
            469 => Answer::new(status).headers(&[("Recv-Info", "")]),
            _ => Answer::new(status),
        };
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
    }
    /// A re-INVITE or UPDATE: hold, resume, another address, another format. Without an offer we offer what stands.
    fn renegotiated(&mut self, core: &mut Core, handle: u64, request: ServerId, message: &OwnedMessage) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let view = message.view();
        let timed = matches!(view.method(), Method::Invite | Method::Update);
        if let (true, Err(refusal)) = (timed, leg.timer.judge(&view)) {
            let (status, headers) = super::inbound::untimely(refusal);
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let answer = Answer::new(status).headers(&headers);
            self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
            return;
        }
        let fax = view.sdp().filter(|_| view.method() == Method::Invite).and_then(FaxStream::of);
        let foreign = super::inbound::foreign(&view);
        if let Some(fault) = view.sdp().and_then(fault).filter(|_| foreign.is_none()) {
            let source = leg.flow;
            let warning = self.warning(source, fault);
            let headers = [("Warning", warning.as_str())];
            let answer = Answer::new(400).headers(&headers);
            self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
            return;
        }
        let format = |leg: &super::Leg| Some(leg.media.agreed()?.primary()?.format);
        let state = |driver: &Self| driver.legs.get(handle).map(|leg| (leg.channel, leg.held, format(leg)));
        let before = state(self);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        if let Some(fax) = fax.filter(|_| foreign.is_none()) {
            return self.fax_offered(core, handle, request, message, fax);
        }
        let described = match (foreign, view.sdp()) {
            (Some(status), _) => Err(status),
            (None, Some(offer)) => match self.answer_offer(core, handle, offer) {
                Some(Ok((sdp, agreed))) => Ok((Some(sdp), Some(agreed))),
                Some(Err(why)) => Err(why.status().code()),
                None => return,
            },
            (None, None) if view.method() != Method::Invite => Ok((None, None)),
            (None, None) => {
                // Whoever asks what there is hears of our address, and holds nobody any more: our offer says sendrecv.
                leg.media.set_direct(None);
                leg.held = false;
                if !leg.endpoint.silent_hold {
                    core.push_event(leg.channel, ChanEvent::Unhold);
                }
                if self.config.offers_all_when_asked {
                    leg.media.set_formats(leg.endpoint.allow);
                    leg.media.offer_all();
                }
                Ok((Some(self.standing_offer(handle)), None))
            }
        };
        let (sdp, agreed) = match described {
            Ok(described) => described,
            Err(status) => {
                let answer = Answer::new(status).headers(super::inbound::accepted(status));
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
                return;
            }
        };
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.awaits_answer |= sdp.is_some() && agreed.is_none();
        }
        if let Some(agreed) = agreed {
            self.agreed(core, handle, &agreed);
            self.has_chosen(core, handle);
            if let (Some(before), Some(after)) = (before, state(self)) {
                core.media_renewed(after.0, before.1 != after.1, before.2 != after.2);
            }
        }
        self.unsettle(handle);
        if timed {
            self.connected_by(core, handle, &view);
        }
        let headers = match self.legs.get_mut(handle).filter(|_| timed) {
            Some(leg) => {
                if let Some(takes) = super::timers::takes_update(&view) {
                    leg.peer_updates = takes;
                }
                let mut headers = leg.timer.answer(&view, core.now);
                headers.push(("Supported", leg.endpoint.supported()));
                if leg.endpoint.rel100 == super::Rel100::No {
                    headers.push(("Allow", leg.endpoint.allowed().to_owned()));
                }
                headers
            }
            None => Vec::new(),
        };
        let party = if timed { self.standing_party(core, handle) } else { Vec::new() };
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(n, v)| (*n, v.as_str()))
            .chain(party.iter().map(|(n, v)| (n.as_str(), v.as_str())))
            .collect();
        let answer = Answer::new(200).headers(&headers);
        let answer = match &sdp {
            Some(sdp) => answer.body(Body::sdp(sdp)),
            None => answer,
        };
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
        self.watch_session(handle);
    }
    /// INFO: digits in the two usual forms, and what whom we call says of charges; anything else is unsupported media.
    fn info(&mut self, core: &mut Core, handle: u64, message: &OwnedMessage) -> u16 {
        let view = message.view();
        let Some(leg) = self.legs.get(handle) else { return 481 };
        if view.has(HeaderName::InfoPackage) {
            return 469;
        }
        if let Some(status) = self.record_key(core, handle, &view) {
            return status;
        }
        if !view.has(HeaderName::ContentType) {
            return 200;
        }
        let reads = |kind: &MediaType<'_>| INFO_BODIES.iter().any(|subtype| kind.is("application", subtype));
        if let Err(status) = view.body_fits(reads) {
            return status.code();
        }
        let part = |subtype| view.part("application", subtype);
        let digit = if let Some(relayed) = part("dtmf-relay") {
            relay_digit(relayed)
        } else if let Some(bare) = part("dtmf") {
            bare_digit(bare).map(|digit| (digit, INFO_DIGIT_MS))
        } else if let Some(wish) = part("media_control+xml") {
            self.pass_picture_request(core, handle, wish);
            return 200;
        } else if let Some(is_read) = self.charged(core, handle, &view) {
            return if is_read { 200 } else { 400 };
        } else {
            // Advice of charge from whom we do not believe it, nothing, or what may be passed over.
            return view
                .body_fits(|_| false)
                .map_or(415, |()| if view.body().is_empty() { 415 } else { 200 });
        };
        let Some((digit, duration_ms)) = digit else { return 400 };
        // A digit of signalling has no beginning of its own.
        core.push_event(leg.channel, ChanEvent::Digit { digit, duration_ms, relayed: false });
        200
    }
}

/// Bodies of INFO that are read, of type `application`.
const INFO_BODIES: [&str; 4] = ["dtmf-relay", "dtmf", "media_control+xml", "vnd.etsi.aoc+xml"];
/// Length of a digit whose INFO names none, milliseconds.
const INFO_DIGIT_MS: u32 = 250;

/// `Signal=5` and `Duration=160` lines.
fn relay_digit(body: &[u8]) -> Option<(Digit, u32)> {
    let text = core::str::from_utf8(body).ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            key.trim().eq_ignore_ascii_case(name).then_some(value.trim())
        })
    };
    let digit = digit_of(field("Signal")?)?;
    let duration = field("Duration").and_then(|ms| ms.parse::<u32>().ok()).unwrap_or(INFO_DIGIT_MS);
    Some((digit, duration.clamp(40, 6000)))
}

/// The digit alone, or its event number.
fn bare_digit(body: &[u8]) -> Option<Digit> {
    digit_of(core::str::from_utf8(body).ok()?.trim())
}

fn digit_of(text: &str) -> Option<Digit> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(symbol), None) => Digit::from_char(symbol),
        (Some(_), Some(_)) => text.parse::<u8>().ok().and_then(Digit::from_event),
        (None, _) => None,
    }
}

/// The peer sends the call on (181): whoever dialled learns where to, when Diversion or History-Info says it.
fn sent_on(core: &mut Core, channel: base::ChannelId, message: &Message<'_>) {
    let Some(redirecting) = identity::sent_on_by(message) else { return };
    if let Some(entry) = core.get_mut(channel) {
        entry.redirecting.clone_from(&redirecting);
    }
    core.push_event(channel, ChanEvent::Redirecting(Box::new(redirecting)));
}

/// The cause that a Reason header gives (RFC 3326): its Q.850 value; the SIP status 200 of a CANCEL says that another
/// phone was faster.
pub(crate) fn reason_of(message: &OwnedMessage) -> Option<Cause> {
    let view = message.view();
    let elsewhere = |value: &[u8]| {
        ::sip::header::Reason::parse(value)
            .is_some_and(|reason| reason.protocol.eq_ignore_ascii_case(b"SIP") && reason.cause() == Some(200))
    };
    ::sip::header::q850_cause(view.values(HeaderName::Reason))
        .or_else(|| view.values(HeaderName::Reason).any(elsewhere).then_some(Cause::ANSWERED_ELSEWHERE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_info_bodies_are_read_in_both_forms() {
        for (body, expected) in [
            ("Signal=5\r\nDuration=160\r\n", Some(('5', 160))),
            ("Signal= *\nDuration= 9999999\n", Some(('*', 6000))),
            ("signal=11\r\n", Some(('#', 250))),
            ("Duration=160\r\n", None),
            ("Signal=x\r\n", None),
        ] {
            let read = relay_digit(body.as_bytes()).map(|(digit, ms)| (digit.to_char(), ms));
            assert_eq!(read, expected, "{body:?}");
        }
        assert_eq!(bare_digit(b"16"), Some(Digit::FLASH));
        assert_eq!(bare_digit(b""), None);
    }
}
