//! What a channel driver does for the call core.

use std::cell::Cell;
use std::rc::Rc;

use base::{Cause, ChannelId, Digit, FormatSet};

use crate::charge::Advice;
use crate::{Core, DeviceState, PartyId, Redirecting, Sending, Text, TextMessage};

/// What the other side of a channel is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Indication {
    /// It rings (180); the far end makes its own tone.
    Ringing,
    /// Audio comes before the answer (183 with a session).
    Progress,
    /// The call is on its way (100 or 183 without a session).
    Proceeding,
    /// Held by the other party.
    Hold,
    /// No longer held.
    Unhold,
    /// The other party is someone else from here on.
    ConnectedLine(PartyId),
    /// The call that its side made is sent on.
    Redirecting(Box<Redirecting>),
}

/// An outgoing channel that an application asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What stands after the first `/` of the dial string.
    pub resource: String,
    /// The channel on whose behalf it is: caller id, language, account, linkedid and inheritable variables come from it.
    pub requestor: Option<ChannelId>,
    /// Caller id to present instead of the requestor's.
    pub caller: Option<PartyId>,
    /// Whoever asks tells the channel itself who calls, once it is there, and watchers with it: until then it shows nobody.
    pub is_told_later: bool,
    /// Formats the requestor can use without transcoding, most preferred first; empty: no preference.
    pub formats: base::FormatSet,
    /// Variables to set on the new channel before it dials.
    pub variables: Vec<(String, String)>,
    /// UNIQUEID of the new channel, when whoever asks gives it one.
    pub uniqueid: Option<String>,
    /// UNIQUEID of the second channel, for technologies that make two.
    pub other_uniqueid: Option<String>,
}

impl Request {
    /// Who calls, as the new channel shows it from the first.
    pub fn shown_caller(&self) -> Option<&PartyId> {
        self.caller.as_ref().filter(|_| !self.is_told_later)
    }
}

/// A text in a call, with its type and the names that are shown beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RichText {
    /// The text.
    pub body: String,
    /// Its Content-Type; `None`: plain text.
    pub kind: Option<String>,
    /// Who it is from, by name; `None`: as the call has it.
    pub from_name: Option<String>,
    /// The same of whom it is for.
    pub to_name: Option<String>,
}

/// How sending a channel's peer elsewhere has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transferring {
    /// It is on its way. Of one that is answered [`ChanEvent::Transferred`](crate::ChanEvent::Transferred) tells how it comes out.
    Begun,
    /// There is nobody of that name, or no call to send elsewhere.
    Failed,
    /// Channels of this kind cannot.
    Unsupported,
}

/// One technology of channels. Calls are synchronous and never wait; what happens later is pushed into the core as
/// [`ChanEvent`](crate::ChanEvent)s. A driver is never called from inside its own calls to the core.
pub trait Tech {
    /// Names in dial strings, the first one in channel names; compared without case (`PJSIP`, alias `SIP`).
    fn names(&self) -> &'static [&'static str];
    /// Has who `resource` names looked up, when that is not known and a database may tell. What is given turns true, and
    /// [`Core::outside_changed`](crate::Core::outside_changed) is called, when all is known that will be: soon, whatever the
    /// database does. `None`: that is so already.
    fn look_up(&mut self, _core: &mut Core, _resource: &str) -> Option<Rc<Cell<bool>>> {
        None
    }
    /// Makes a channel towards `request.resource` in state `Down`, marked outgoing, without calling it yet.
    /// Errors are Q.850: no such peer `UNALLOCATED`, not registered `NO_ROUTE_DESTINATION`, full `CONGESTION`.
    fn request(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause>;
    /// Starts calling. Events follow: `Proceeding`, `Ringing`, `Progress`, `Answered`, or a hang-up with its cause.
    fn call(&mut self, core: &mut Core, channel: ChannelId) -> Result<(), Cause>;
    /// The channel at the other end of one that begins and ends in here.
    fn other_half(&self, _channel: ChannelId) -> Option<ChannelId> {
        None
    }
    /// Tells the other side.
    fn indicate(&mut self, core: &mut Core, channel: ChannelId, indication: &Indication);
    /// The other party of `channel` is `_other` and uses these formats, the one in use first. What has still to be agreed on with the
    /// channel's own peer may be chosen so that nothing has to be transcoded.
    fn suit(&mut self, _core: &mut Core, _channel: ChannelId, _other: ChannelId, _formats: FormatSet) {}
    /// Answers an incoming call; the media stream carries both ways after it.
    fn answer(&mut self, core: &mut Core, channel: ChannelId);
    /// Ends the call if the other side has not, and forgets the channel. The last call for `channel`.
    fn hangup(&mut self, core: &mut Core, channel: ChannelId, cause: Cause);
    /// Sends a digit by signalling; `false`: the media stream should.
    fn send_digit(&mut self, core: &mut Core, channel: ChannelId, digit: Digit, duration_ms: u16) -> bool;
    /// Sends text (`SendText`); `false`: not possible.
    fn send_text(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool;
    /// Passes on what the other party has written, with its type where the technology carries one; `false`: not possible.
    fn pass_text(&mut self, core: &mut Core, channel: ChannelId, text: &Text) -> bool {
        self.send_text(core, channel, &text.body)
    }
    /// Sends text with what only some technologies carry beside it; others send the text alone.
    fn send_rich_text(&mut self, core: &mut Core, channel: ChannelId, text: &RichText) -> bool {
        self.send_text(core, channel, &text.body)
    }
    /// Sends a document of this type (RFC 3428 §8) in its call; `false`: not possible, as with channels that carry plain
    /// text at most.
    fn send_document(&mut self, _core: &mut Core, _channel: ChannelId, _kind: &str, _document: &str) -> bool {
        false
    }
    /// Tells the user of a channel what its call costs. The error says why it is not told.
    fn advise_charge(
        &mut self,
        _core: &mut Core,
        _channel: ChannelId,
        _advice: &Advice,
    ) -> Result<(), &'static str> {
        Err("channels of this kind carry no advice of charge")
    }
    /// Sends an unanswered caller elsewhere (302) or transfers an answered one.
    fn transfer(&mut self, core: &mut Core, channel: ChannelId, target: &str) -> Transferring;
    /// Two channels have changed places: what was known of one id is true of the other from here on, as
    /// [`Channel::handle`](crate::Channel::handle) says. Called for every technology; either may be another's.
    fn exchanged(&mut self, _core: &Core, _a: ChannelId, _b: ChannelId) {}
    /// Takes a channel that only connects two others out of their way, at once or as soon as it can be; `false`: it is none.
    fn optimize_away(&mut self, _core: &mut Core, _channel: ChannelId) -> bool {
        false
    }
    /// Two answered channels back to back that run no dialplan, named after `name`, each with what its place has: caller,
    /// formats, account. `None`: this technology has none, or there is no room.
    fn pair(&mut self, _core: &mut Core, _name: &str, _places: [ChannelId; 2]) -> Option<[ChannelId; 2]> {
        None
    }
    /// Two answered channels back to back that run no dialplan, through which somebody listens to `on`: what the second one
    /// hears the first one says. The first has this UNIQUEID, when there is one. `None`: this technology has none, or there is no
    /// room.
    fn ear(&mut self, _core: &mut Core, _on: ChannelId, _uniqueid: Option<String>) -> Option<[ChannelId; 2]> {
        None
    }
    /// Sends a text message outside of calls; the destination has its protocol's word before a colon.
    fn message(&mut self, _core: &mut Core, _destination: &str, _message: &TextMessage) -> Sending {
        Sending::InvalidUri
    }
    /// The state of a device of this technology.
    fn device_state(&self, core: &Core, resource: &str) -> DeviceState;
    /// `CHANNEL(item)` and the technology's own functions (`PJSIP_HEADER`), arguments already expanded.
    fn read(&mut self, core: &mut Core, channel: ChannelId, function: &str, args: &str) -> Option<String>;
    /// A program says how a transfer comes on that it carries out for the phone of a channel; `false` when there is none.
    fn transfer_progress(&mut self, _core: &mut Core, _channel: ChannelId, _state: &str) -> bool {
        false
    }
    /// Writes one; `false` when there is no such item or it cannot be written.
    fn write(&mut self, core: &mut Core, channel: ChannelId, function: &str, args: &str, value: &str)
    -> bool;
}
