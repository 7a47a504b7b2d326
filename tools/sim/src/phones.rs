//! The technology `SIM`: phones that do what a test wrote down for them.

use core::time::Duration;
use std::collections::HashMap;
use std::rc::Rc;

use base::{Cause, ChannelId, Digit, FormatId, FormatSet};
use call::charge::Advice;
use call::{
    ChanState, Core, DeviceState, Indication, Location, NewChannel, PartyId, Redirecting, Request, Tech,
    Transferring,
};

use crate::fakes::{Due, Shared};

/// Something a phone does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A called phone takes the call on without ringing yet.
    Proceed,
    /// A called phone rings.
    Ring,
    /// A called phone sends early audio.
    Progress,
    /// A called phone is picked up.
    Answer,
    /// Its user hangs up, or it refuses, with this cause.
    Hangup(Cause),
    /// A digit is pressed for 100 ms.
    Press(char),
    /// It sends the call elsewhere.
    Forward(String),
    /// It tells who is there.
    Tell(PartyId),
    /// Its side says what the call costs.
    Charge(Advice),
    /// Hold is pressed.
    Hold,
    /// And pressed again.
    Unhold,
    /// A digit is pressed that the media worker has passed on itself.
    PressRelayed(char),
    /// It sends text.
    Text(String),
    /// Its user has said nothing for so many milliseconds.
    Silence(u32),
    /// What it says has become sound, or silence, which the opposite lasted so many milliseconds before; its watches say so.
    Sound(bool, u32),
    /// A tone has come that is watched for, in what is sent to it; else in what it says.
    Tone(bool),
    /// It sounds like a fax that calls.
    FaxTone,
    /// No RTP came for the time that is allowed.
    MediaTimeout,
    /// Somebody else sends it to another place in the dialplan.
    Redirect(Location),
}

/// How a phone reacts when it is called.
#[derive(Debug, Clone, Default)]
pub struct Phone {
    /// What it does, each after so many milliseconds from the start of the call.
    pub acts: Vec<(u64, Act)>,
    /// Set when calls to it fail at once.
    pub refuses: Option<Cause>,
}

/// Phones by name.
pub(crate) struct SimTech {
    pub(crate) state: Shared,
    pub(crate) phones: HashMap<String, Phone>,
    pub(crate) index: usize,
    pub(crate) names: &'static [&'static str],
}

impl SimTech {
    fn open_stream(&self, core: &mut Core, id: ChannelId) {
        let stream = self.state.borrow_mut().open_stream();
        core.set_stream(id, stream, FormatId::SLIN);
    }
    pub(crate) fn incoming(
        &self,
        core: &mut Core,
        phone: &str,
        caller: PartyId,
        location: Location,
    ) -> Option<ChannelId> {
        let id = core.create(NewChannel {
            base_name: format!("SIM/{phone}"),
            tech: self.index,
            state: ChanState::Ring,
            caller,
            location,
            formats: formats(),
            ..NewChannel::default()
        })?;
        self.open_stream(core, id);
        Some(id)
    }
    fn say(&self, core: &Core, id: ChannelId, text: &str) {
        let name: Rc<str> = core.get(id).map(|c| c.name.clone()).unwrap_or_default();
        self.state.borrow_mut().say(&format!("{name} {text}"));
    }
}

fn formats() -> FormatSet {
    let mut formats = FormatSet::EMPTY;
    formats.push(FormatId::SLIN);
    formats
}

/// How long after an answer the first packet comes.
const MEDIA_AFTER: Duration = Duration::from_millis(20);

impl Tech for SimTech {
    fn names(&self) -> &'static [&'static str] {
        self.names
    }
    fn request(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        let phone = request.resource.split('/').next().unwrap_or_default();
        let known = self.phones.get(phone).ok_or(Cause::UNALLOCATED)?;
        if let Some(cause) = known.refuses {
            return Err(cause);
        }
        let requestor = request.requestor.and_then(|id| core.get(id));
        let caller =
            request.caller.clone().or_else(|| requestor.map(|c| c.caller.clone())).unwrap_or_default();
        let vars = requestor.map(|c| c.vars.inherited()).unwrap_or_default();
        let id = core
            .create(NewChannel {
                base_name: format!("SIM/{phone}"),
                tech: self.index,
                formats: formats(),
                outgoing: true,
                linked_to: request.requestor,
                uniqueid: request.uniqueid.clone(),
                ..NewChannel::default()
            })
            .ok_or(Cause::SWITCH_CONGESTION)?;
        if let Some(channel) = core.get_mut(id) {
            channel.connected = caller;
            channel.caller.number = Some(phone.to_owned());
            channel.vars = vars;
            for (name, value) in &request.variables {
                let (inherit, name) = dialplan::Inherit::strip(name);
                channel.vars.set(dialplan::Var::named(name), value, inherit);
            }
        }
        self.open_stream(core, id);
        Ok(id)
    }
    fn call(&mut self, core: &mut Core, channel: ChannelId) -> Result<(), Cause> {
        self.say(core, channel, "is called");
        let name = core.get(channel).map(|c| c.name.clone()).unwrap_or_default();
        let phone = name.split(['/', '-']).nth(1).unwrap_or_default();
        let mut state = self.state.borrow_mut();
        let now = state.now;
        for (after, act) in self.phones.get(phone).map(|phone| phone.acts.clone()).unwrap_or_default() {
            state.at(now + Duration::from_millis(after), Due::Act(channel, act));
        }
        Ok(())
    }
    fn indicate(&mut self, core: &mut Core, channel: ChannelId, indication: &Indication) {
        let text = match indication {
            Indication::Ringing => "is told it rings",
            Indication::Progress => "is told of early audio",
            Indication::Proceeding => "is told to wait",
            Indication::Hold => "is held",
            Indication::Unhold => "is held no more",
            Indication::ConnectedLine(party) => {
                let text = format!("is shown {}", party.all());
                return self.say(core, channel, &text);
            }
            Indication::Redirecting(redirecting) => {
                let Redirecting { from, to, reason, count, .. } = &**redirecting;
                let text =
                    format!("is told that {} sends it on to {} ({reason}, {count})", from.all(), to.all());
                return self.say(core, channel, &text);
            }
        };
        self.say(core, channel, text);
    }
    fn answer(&mut self, core: &mut Core, channel: ChannelId) {
        self.say(core, channel, "is answered");
        let stream = core.get(channel).and_then(|c| c.stream);
        let mut state = self.state.borrow_mut();
        let when = state.now + MEDIA_AFTER;
        if let Some(stream) = stream.filter(|_| !state.mute) {
            let remote = core::net::SocketAddr::from(([127, 0, 0, 1], 4000));
            state.at(when, Due::Media(base::Event::Latched { stream, remote }));
        }
    }
    fn hangup(&mut self, core: &mut Core, channel: ChannelId, cause: Cause) {
        self.say(core, channel, &format!("ends with {}", cause.0));
    }
    fn send_digit(&mut self, _: &mut Core, _: ChannelId, _: Digit, _: u16) -> bool {
        false
    }
    fn send_text(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool {
        self.say(core, channel, &format!("is sent text: {text}"));
        true
    }
    fn send_document(&mut self, core: &mut Core, channel: ChannelId, kind: &str, document: &str) -> bool {
        self.say(core, channel, &format!("is sent {kind}: {document}"));
        true
    }
    fn advise_charge(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        advice: &Advice,
    ) -> Result<(), &'static str> {
        let kind = match advice {
            Advice::Setup { .. } => "the price",
            Advice::During { .. } => "the cost so far",
            Advice::End { .. } => "the cost",
            Advice::Rates(_) => "the rates",
        };
        self.say(core, channel, &format!("is told {kind}"));
        Ok(())
    }
    fn transfer(&mut self, core: &mut Core, channel: ChannelId, target: &str) -> Transferring {
        self.say(core, channel, &format!("is transferred to {target}"));
        Transferring::Begun
    }
    fn ear(&mut self, core: &mut Core, on: ChannelId, uniqueid: Option<String>) -> Option<[ChannelId; 2]> {
        let other = uniqueid.as_ref().map(|id| format!("{id};2"));
        let mut half = |uniqueid, outgoing| {
            let new = NewChannel {
                base_name: "Snoop/1".to_owned(),
                tech: self.index,
                formats: formats(),
                outgoing,
                linked_to: Some(on),
                uniqueid,
                ..NewChannel::default()
            };
            let id = core.create(new)?;
            self.open_stream(core, id);
            core.answered(id);
            Some(id)
        };
        Some([half(uniqueid, true)?, half(other, false)?])
    }
    fn device_state(&self, core: &Core, resource: &str) -> DeviceState {
        if !self.phones.contains_key(resource) {
            return DeviceState::Invalid;
        }
        let prefix = format!("SIM/{resource}-");
        let states: Vec<ChanState> =
            core.channels().filter(|c| c.name.starts_with(&prefix)).map(|c| c.state).collect();
        let (ringing, others) =
            (states.contains(&ChanState::Ringing), states.iter().any(|s| *s != ChanState::Ringing));
        match (ringing, others) {
            (true, true) => DeviceState::RingInUse,
            (true, false) => DeviceState::Ringing,
            (false, true) => DeviceState::InUse,
            (false, false) => DeviceState::NotInUse,
        }
    }
    fn read(&mut self, _: &mut Core, channel: ChannelId, function: &str, args: &str) -> Option<String> {
        self.state.borrow().headers.get(&(channel, format!("{function}({args})"))).cloned()
    }
    fn write(&mut self, _: &mut Core, channel: ChannelId, function: &str, args: &str, value: &str) -> bool {
        if function == "CHANNEL" {
            return false;
        }
        self.state.borrow_mut().headers.insert((channel, format!("{function}({args})")), value.to_owned());
        true
    }
}
