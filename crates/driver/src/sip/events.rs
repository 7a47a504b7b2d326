//! What the SIP machines report, told to the call core.

use ::sip::stack::Failure;
use ::sip::stack::{Answer, Body, DialogId, End, Event, ServerId};
use ::sip::{Method, OwnedMessage};
use base::{Cause, Command, Digit};
use call::{ChanEvent, Core};

use super::leg::Stage;
use super::session::Terms;
use super::{SipDriver, identity};

/// The dialog an event belongs to.
pub(crate) fn dialog_of(event: &Event) -> Option<DialogId> {
    match event {
        Event::InDialog { dialog, .. }
        | Event::Provisional { dialog, .. }
        | Event::Answered { dialog, .. }
        | Event::Challenged { dialog, .. }
        | Event::Failed { dialog, .. }
        | Event::ReinviteFailed { dialog, .. }
        | Event::Acked { dialog, .. }
        | Event::Canceled { dialog, .. }
        | Event::Withdrawn { dialog, .. }
        | Event::Ended { dialog, .. } => Some(*dialog),
        Event::Response { dialog, .. } | Event::Unanswered { dialog, .. } => *dialog,
        Event::Invite(_) | Event::Request(_) | Event::Malformed { .. } => None,
    }
}

impl SipDriver {
    pub(crate) fn event(&mut self, core: &mut Core, event: Event) {
        match event {
            Event::Invite(incoming) => self.invited(core, *incoming),
            Event::Request(incoming) => match incoming.message.view().method() {
                Method::Register => self.registered(core, *incoming),
                Method::Options => self.pinged(core, *incoming),
                _ => self.not_served(core, *incoming),
            },
            Event::InDialog { dialog, request, message, .. } => {
                self.in_dialog(core, dialog, request, &message)
            }
            Event::Provisional { dialog, status, message, .. } => {
                self.progressed(core, dialog, status, &message)
            }
            Event::Answered { dialog, message, .. } => self.answered(core, dialog, message),
            Event::Challenged { dialog, message } => self.challenged(core, dialog, &message),
            Event::Failed { dialog, failure } => self.failed(core, dialog, &failure),
            Event::Response { request, status, .. } if status >= 200 => {
                if let Some(probe) = self.requests.remove(&request) {
                    self.probed(core, &probe, true);
                }
            }
            Event::Unanswered { request, .. } => {
                if let Some(probe) = self.requests.remove(&request) {
                    self.probed(core, &probe, false);
                }
            }
            Event::Acked { dialog, message } => self.acked(core, dialog, &message),
            Event::Canceled { dialog, message } => {
                let cause = reason_of(&message).unwrap_or(Cause::NORMAL_CLEARING);
                self.over(core, dialog, cause, "SIP CANCEL");
            }
            Event::Ended { dialog, reason, message } => {
                let told = message.as_ref().and_then(reason_of);
                let cause = match reason {
                    End::Bye | End::Local => told.unwrap_or(Cause::NORMAL_CLEARING),
                    End::NoAck | End::PeerLost => Cause::RECOVERY_ON_TIMER_EXPIRE,
                    End::Abandoned => Cause::CALL_REJECTED,
                };
                self.over(core, dialog, cause, "SIP BYE");
            }
            // The session goes on as it was; strangers' nonsense was answered by the stack.
            Event::ReinviteFailed { .. }
            | Event::Withdrawn { .. }
            | Event::Response { .. }
            | Event::Malformed { .. } => {}
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

    /// 101 to 199 to our INVITE.
    fn progressed(&mut self, core: &mut Core, dialog: DialogId, status: u16, message: &OwnedMessage) {
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        let early = self.take_description(core, handle, message);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let channel = leg.channel;
        leg.status = status;
        match status {
            180 => {
                core.set_state(channel, call::ChanState::Ringing);
                core.push_event(channel, ChanEvent::Ringing);
            }
            _ if !early => core.push_event(channel, ChanEvent::Proceeding),
            _ => {}
        }
        if early {
            core.push_event(channel, ChanEvent::Progress);
        }
    }
    /// Takes the answer to our offer from a response; whether there was a good one.
    fn take_description(&mut self, core: &mut Core, handle: u64, message: &OwnedMessage) -> bool {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let view = message.view();
        let Some(Ok(agreed)) = view.sdp().map(|sdp| leg.media.accept(sdp, &terms)) else { return false };
        let plan = leg.media.plan(Some(&agreed), &terms);
        let (channel, format) = (leg.channel, plan.format);
        if let Some(stream) = leg.stream {
            core.media(Command::Plan { stream, plan: Box::new(plan) });
            core.set_stream(channel, stream, format);
        }
        if let Some(entry) = core.get_mut(channel) {
            entry.formats = agreed.formats();
        }
        true
    }
    /// The first 2xx to our INVITE, or a 2xx to our re-INVITE.
    fn answered(&mut self, core: &mut Core, dialog: DialogId, message: OwnedMessage) {
        let described = message.view().sdp().is_some();
        self.with_stack(core, |stack, _, out| stack.ack(dialog, None, out)).ok();
        let Some(handle) = self.legs.by_dialog(dialog) else {
            // The channel went while the 200 was on its way.
            self.with_stack(core, |stack, now, out| stack.bye(dialog, &[], now, out)).ok();
            return;
        };
        let good = self.take_description(core, handle, &message);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let channel = leg.channel;
        let first = leg.stage == Stage::Calling;
        // An answer may have come with a reliable or early 183 and need not be repeated.
        let usable = good || (!described && leg.media.agreed().is_some());
        if first && !usable {
            self.with_stack(core, |stack, now, out| {
                stack.bye(dialog, &[("Reason", "Q.850;cause=58")], now, out)
            })
            .ok();
            self.legs.unbind(dialog);
            core.remote_hangup(channel, Cause::BEARERCAPABILITY_NOTAVAIL, "SIP 200 without a usable session");
            return;
        }
        if first {
            leg.stage = Stage::Up;
            leg.status = 200;
            leg.invite = Some(message);
            core.answered(channel);
            core.push_event(channel, ChanEvent::Answered);
        }
    }
    /// Our INVITE failed for good.
    fn failed(&mut self, core: &mut Core, dialog: DialogId, failure: &Failure) {
        let (cause, source) = match failure {
            Failure::Refused { status, message } => {
                let told = reason_of(message).unwrap_or_else(|| Cause::from_sip(*status));
                let phrase = identity::text(message.view().reason_phrase());
                (told, format!("SIP {status} {phrase}"))
            }
            Failure::Timeout => (Cause::NO_USER_RESPONSE, "SIP 408 Request Timeout".to_owned()),
            Failure::Transport => (Cause::NETWORK_OUT_OF_ORDER, "SIP 503 Service Unavailable".to_owned()),
            Failure::Canceled => (Cause::NORMAL_CLEARING, "SIP 487 Request Terminated".to_owned()),
        };
        self.over(core, dialog, cause, &source);
    }
    /// The ACK may carry the answer to the offer of our 200.
    fn acked(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) {
        if let Some(handle) = self.legs.by_dialog(dialog)
            && message.view().sdp().is_some()
        {
            self.take_description(core, handle, message);
        }
    }

    /// A request inside a dialog.
    fn in_dialog(&mut self, core: &mut Core, dialog: DialogId, request: ServerId, message: &OwnedMessage) {
        let handle = self.legs.by_dialog(dialog);
        let method = message.view().method();
        let status = match (handle, method) {
            (None, _) => 481,
            (Some(handle), Method::Invite | Method::Update) => {
                return self.renegotiated(core, handle, request, message);
            }
            (Some(handle), Method::Info) => self.info(core, handle, message),
            (Some(handle), Method::Message) => {
                let view = message.view();
                if let Some(leg) = self.legs.get(handle) {
                    let text = String::from_utf8_lossy(view.body()).into_owned();
                    core.push_event(leg.channel, ChanEvent::Text(text));
                }
                200
            }
            (Some(_), Method::Options | Method::Notify) => 200,
            (Some(_), method) if method.known().is_some() => 405,
            (Some(_), _) => 501,
        };
        let headers = [("Allow", super::ALLOW)];
        let answer = if status == 405 { Answer::new(status).headers(&headers) } else { Answer::new(status) };
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
    }
    /// A re-INVITE or UPDATE: hold, resume, another address, another format. Without an offer we offer what stands.
    fn renegotiated(&mut self, core: &mut Core, handle: u64, request: ServerId, message: &OwnedMessage) {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let view = message.view();
        let described = match view.sdp() {
            Some(offer) => leg.media.answer(offer, &terms).map(|(sdp, agreed)| (Some(sdp), Some(agreed))),
            None if view.method() == Method::Update => Ok((None, None)),
            None => Ok((Some(leg.media.offer(&terms)), None)),
        };
        let (sdp, agreed) = match described {
            Ok(described) => described,
            Err(why) => {
                let answer = Answer::new(why.status().code());
                self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
                return;
            }
        };
        if let Some(agreed) = agreed {
            let plan = leg.media.plan(Some(&agreed), &terms);
            let (channel, format, held) = (leg.channel, plan.format, agreed.held);
            let was_held = std::mem::replace(&mut leg.held, held);
            if let Some(stream) = leg.stream {
                core.media(Command::Plan { stream, plan: Box::new(plan) });
                core.set_stream(channel, stream, format);
            }
            match (was_held, held) {
                (false, true) => core.push_event(channel, ChanEvent::Hold),
                (true, false) => core.push_event(channel, ChanEvent::Unhold),
                _ => {}
            }
        }
        let answer = match &sdp {
            Some(sdp) => Answer::new(200).body(Body::sdp(sdp)),
            None => Answer::new(200),
        };
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
    }
    /// INFO: digits in the two usual forms; anything else is unsupported media.
    fn info(&mut self, core: &mut Core, handle: u64, message: &OwnedMessage) -> u16 {
        let view = message.view();
        let Some(leg) = self.legs.get(handle) else { return 481 };
        let Some(kind) = view.content_type() else { return 200 };
        let digit = if kind.is("application", "dtmf-relay") {
            relay_digit(view.body())
        } else if kind.is("application", "dtmf") {
            bare_digit(view.body()).map(|digit| (digit, INFO_DIGIT_MS))
        } else {
            return 415;
        };
        let Some((digit, duration_ms)) = digit else { return 400 };
        core.push_event(leg.channel, ChanEvent::DigitBegin(digit));
        core.push_event(leg.channel, ChanEvent::Digit { digit, duration_ms, relayed: false });
        200
    }
}

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

/// The Q.850 cause of a Reason header (RFC 3326).
pub(crate) fn reason_of(message: &OwnedMessage) -> Option<Cause> {
    let view = message.view();
    ::sip::header::q850_cause(view.headers(::sip::HeaderName::Reason))
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
