//! What the protocol's events mean for channels.

use ::iax2::Event;
use ::iax2::frame::Control;
use base::{Cause, Command, Digit, FormatId, HoldBack};
use call::{ChanEvent, ChanState, Core, Level, Location};

use super::leg::Stage;
use super::lookup::Asking;
use super::voice::Voice;
use super::{At, IaxDriver};

/// What a digit that comes whole is said to last, ms.
const DIGIT_MS: u32 = 100;
/// What voice waits at least that is evened out in any case, ms: a packet of the field's usual length in hand.
const EVENED_LEAST_MS: u16 = 20;

impl IaxDriver {
    pub(super) fn happened(&mut self, core: &mut Core, socket: u32, event: Event) {
        match event {
            Event::Voice { leg, format, timestamp, payload } => {
                self.heard(core, (socket, leg), format, timestamp, &payload);
            }
            Event::Call(place, request) => {
                self.asked_for(core, (socket, place), Asking::Call(*request));
            }
            Event::Register { leg, release, request } => {
                self.asked_for(core, (socket, leg), Asking::Register(release, *request));
            }
            Event::Proven(place) => self.proven(core, (socket, place)),
            Event::Unproven(place) => self.unproven(core, (socket, place)),
            Event::Signed { leg, challenge, signature } => {
                self.signed(core, (socket, leg), &challenge, &signature);
            }
            Event::Challenged { leg, methods, challenge } => {
                self.challenged(core, (socket, leg), methods, &challenge);
            }
            Event::Accepted(place, _) if self.switch_taken(core, (socket, place)) => {}
            Event::Accepted(place, format) => self.accepted(core, (socket, place), format),
            Event::Connected { leg, number, name, presentation } => {
                self.connected_by(core, (socket, leg), &number, &name, presentation);
            }
            Event::Control(place, control) => self.control(core, (socket, place), control),
            Event::Asked(place) => self.tell_played(core, (socket, place)),
            Event::Digit(place, digit, begins) => self.digit(core, (socket, place), digit, begins),
            Event::Text(place, text) => {
                if let Some(leg) = self.leg_at((socket, place)) {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    core.push_event(leg.channel, ChanEvent::Text(call::Text::plain(text)));
                }
            }
            Event::Quelched(place, music) => {
                if music.is_some() {
                    self.hold(core, (socket, place), true);
                }
            }
            Event::Unquelched(place) => self.hold(core, (socket, place), false),
            Event::NumberAsked(place, number) => self.number_asked(core, (socket, place), &number),
            Event::NumberTold { leg, number, status, refresh } => {
                self.number_told(core, (socket, leg), &number, status, refresh);
            }
            Event::Dialled(place, number) => self.dialled(core, (socket, place), &number),
            Event::SendOn(place, number, context) => {
                self.sent_on(core, (socket, place), &number, context.as_deref());
            }
            Event::Transferred(place, _) | Event::MediaTransferred(place, _) => {
                if let Some(voice) = self.voices.of_leg((socket, place)) {
                    voice.restart();
                }
            }
            Event::Joined(a, b) => self.joined(core, (socket, a), (socket, b)),
            Event::Ended { leg, cause, .. } if self.switch_ended(core, (socket, leg), cause) => {}
            Event::Ended { leg, cause, text } => self.ended(core, (socket, leg), cause, &text),
            Event::Registered { registration, apparent, refresh, .. } => {
                self.registered(core, (socket, registration), apparent, refresh);
            }
            Event::RegistrationRefused { registration, cause, text } => {
                self.registration_refused(core, (socket, registration), cause, &text);
            }
            Event::RegistrationLost(registration) => self.registration_lost(core, (socket, registration)),
            Event::Peer(watch, reach) => self.peer_answered(core, (socket, watch), reach),
            Event::Video { leg, format, timestamp, mark, payload } => {
                self.seen(core, (socket, leg), (format, mark), timestamp, &payload);
            }
            // Channels carry no pages, silence is silence without a level, and nobody here asks for other people's
            // messages.
            Event::Html(..)
            | Event::Noise(..)
            | Event::Messages(..)
            | Event::NotJoined(..)
            | Event::Unregistered(_) => {}
        }
    }

    /// The other side asks how it is heard: what is known it learns the next time, and what is to be known then is asked.
    fn tell_played(&mut self, core: &mut Core, at: At) {
        let stream = self.voices.of_leg(at).map(|voice| voice.stream);
        let Some(leg) = self.leg_at(at) else { return };
        if let Some((delay_ms, dropped)) = super::show::played(core, leg) {
            self.order(at.0, |machine, _| machine.set_played(at.1, delay_ms, dropped));
        }
        if let Some(stream) = stream {
            core.services.media.command(base::Command::Stats { stream });
        }
    }
    /// Opens the stream of a leg, which sends `format`.
    pub(super) fn open_voice(&mut self, core: &mut Core, handle: u64, format: FormatId) -> bool {
        let ssrc = self.random.next() as u32;
        let Some(leg) = self.legs.get_mut(&handle) else { return false };
        let Some(at) = leg.place else { return false };
        let mut formats = [format].into_iter().collect::<base::FormatSet>();
        leg.formats.iter().for_each(|other| formats.push(other));
        let jitter = leg.party.common().jitter;
        let jitter = jitter.map_or(0, |most| u16::try_from(most.as_millis()).unwrap_or(u16::MAX));
        match core.services.media.open_piped(Voice::plan(format, formats, jitter, ssrc)) {
            Ok(stream) => {
                self.voices.add(at, Voice::new(stream, formats));
                core.set_stream(leg.channel, stream, format);
                if leg.party.common().evens_out && jitter > 0 {
                    let limits = HoldBack { least_ms: EVENED_LEAST_MS.min(jitter), most_ms: jitter };
                    core.media(Command::HoldBack { stream, limits: Some(limits) });
                }
                true
            }
            Err(why) => {
                let line = format!("no media for a call of '{}': {why}", leg.party.name());
                core.log(Level::Error, "chan_iax2", &line);
                false
            }
        }
    }
    /// The other side takes a call of ours.
    fn accepted(&mut self, core: &mut Core, at: At, format: FormatId) {
        let Some(handle) = self.by_place.get(&at).copied() else { return };
        let Some(channel) = self.legs.get(&handle).map(|leg| leg.channel) else { return };
        if self.open_voice(core, handle, format) {
            self.open_video(core, handle);
            core.push_event(channel, ChanEvent::Proceeding);
            // It may have changed since NEW.
            self.tell_connected(core, channel);
        } else {
            core.remote_hangup(channel, Cause::SWITCH_CONGESTION, "no media");
        }
    }
    fn control(&mut self, core: &mut Core, at: At, control: Control) {
        let Some(leg) = self.leg_at(at) else { return };
        let (channel, calls) = (leg.channel, leg.stage == Stage::Calling);
        match control {
            Control::RINGING if calls => {
                core.set_state(channel, ChanState::Ringing);
                core.push_event(channel, ChanEvent::Ringing);
            }
            Control::PROGRESS if calls => core.push_event(channel, ChanEvent::Progress),
            Control::PROCEEDING if calls => core.push_event(channel, ChanEvent::Proceeding),
            Control::ANSWER if calls => {
                leg.stage = Stage::Up;
                core.answered(channel);
                core.push_event(channel, ChanEvent::Answered);
            }
            Control::BUSY if calls => core.remote_hangup(channel, Cause::USER_BUSY, "IAX2 BUSY"),
            Control::CONGESTION if calls => {
                core.remote_hangup(channel, Cause::SWITCH_CONGESTION, "IAX2 CONGESTION");
            }
            Control::HANGUP => core.remote_hangup(channel, Cause::NORMAL_CLEARING, "IAX2 HANGUP"),
            Control::HOLD => self.hold(core, at, true),
            Control::UNHOLD => self.hold(core, at, false),
            // What radios, devices and screens want.
            _ => {}
        }
    }
    fn hold(&mut self, core: &mut Core, at: At, held: bool) {
        let Some(leg) = self.leg_at(at).filter(|leg| leg.held != held) else { return };
        leg.held = held;
        core.push_event(leg.channel, if held { ChanEvent::Hold } else { ChanEvent::Unhold });
    }
    fn digit(&mut self, core: &mut Core, at: At, digit: Digit, begins: bool) {
        let now = core.now;
        let Some(leg) = self.leg_at(at) else { return };
        let channel = leg.channel;
        if begins {
            leg.digit = Some(now);
            return core.push_event(channel, ChanEvent::DigitBegin(digit));
        }
        let lasted = leg.digit.take().map(|began| (now - began).as_millis());
        let duration_ms = lasted.map_or(DIGIT_MS, |ms| u32::try_from(ms).unwrap_or(DIGIT_MS).max(1));
        core.push_event(channel, ChanEvent::Digit { digit, duration_ms, relayed: false });
    }
    /// The other side asks to be sent on: whom it talks to goes to that number.
    fn sent_on(&mut self, core: &mut Core, at: At, number: &[u8], context: Option<&[u8]>) {
        let Some(leg) = self.leg_at(at) else { return };
        let (channel, exten) = (leg.channel, super::text(Some(number)));
        let Some(entry) = core.get(channel) else { return };
        let own = entry.location.context.clone();
        let context = match super::text(context) {
            // It may not choose where a user of its kind may not go.
            named if named.is_empty() => own,
            named if leg.may_go_to(&named) => named,
            _ => own,
        };
        let members = entry.bridge.map(|bridge| core.bridge_members(bridge).to_vec()).unwrap_or_default();
        let other = members.into_iter().find(|member| *member != channel);
        let reached = (core.reach)(core, &context, &exten, "") == call::Reach::Whole;
        match other.filter(|_| reached) {
            Some(other) => {
                core.request_goto(other, Location { context, exten, priority: 1 });
                core.request_hangup(channel, Cause::NORMAL_CLEARING);
            }
            None => {
                let line = format!("a transfer to '{}' is not possible", call::security::shown(&exten));
                core.log(Level::Notice, "chan_iax2", &line);
            }
        }
    }
    /// Two legs of ours talk directly from here on: nobody has hung up, but nothing is left to do here.
    fn joined(&mut self, core: &mut Core, a: At, b: At) {
        for at in [a, b] {
            let Some(handle) = self.by_place.get(&at).copied() else { continue };
            let native = self.order(at.0, |machine, _| machine.look(at.1).is_none()).unwrap_or(true);
            if let (true, Some(leg)) = (native, self.legs.get_mut(&handle)) {
                (leg.stage, leg.place) = (Stage::Over, None);
                let channel = leg.channel;
                self.unplace(at);
                core.remote_hangup(channel, Cause::NORMAL_CLEARING, "IAX2 transferred");
            }
        }
    }
    /// A leg is over.
    pub(super) fn ended(&mut self, core: &mut Core, at: At, cause: Cause, why: &[u8]) {
        self.door.take(at);
        self.unnumbered.remove(&at);
        self.forget_parked(at);
        let Some(handle) = self.unplace(at) else { return };
        let Some(leg) = self.legs.get_mut(&handle) else { return };
        let calls = leg.stage == Stage::Calling;
        (leg.stage, leg.place) = (Stage::Over, None);
        let (channel, name) = (leg.channel, leg.party.name().to_owned());
        let said = call::security::shown(&super::text(Some(why)));
        let cause = match cause {
            Cause::NONE if calls => Cause::CALL_REJECTED,
            Cause::NONE => Cause::NORMAL_CLEARING,
            other => other,
        };
        if calls && !said.is_empty() {
            core.log(Level::Notice, "chan_iax2", &format!("a call to '{name}' was refused: {said}"));
        }
        core.remote_hangup(channel, cause, &format!("IAX2 {said}"));
    }
}
