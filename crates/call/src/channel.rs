//! The state of one channel. Data only: who may change what is said at each field.

use std::collections::VecDeque;
use std::rc::Rc;

use base::{BridgeId, Cause, ChannelId, Digit, FormatId, FormatSet, Instant, PlayEnd, PlayId, StreamId};

use crate::charge::Advice;
use crate::exec::TaskId;
use crate::{CdrState, PartyId, Redirecting, Text};

/// Where a channel keeps that calls on its behalf need secure signalling: `CHANNEL(secure_bridge_signaling)`. No dialplan
/// can write that name, and every channel below inherits it.
pub const SECURE_SIGNALING: &str = "CHANNEL(secure_bridge_signaling)";
/// The same for media: `CHANNEL(secure_bridge_media)`.
pub const SECURE_MEDIA: &str = "CHANNEL(secure_bridge_media)";

/// Channel states, with the numbers and words manager clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ChanState {
    /// Exists, nothing was sent.
    #[default]
    Down = 0,
    /// Reserved for a call.
    Reserved = 1,
    /// Off hook.
    OffHook = 2,
    /// Digits are being dialled.
    Dialing = 3,
    /// An incoming call that is not answered: the line rings at us.
    Ring = 4,
    /// An outgoing call that rings at the other end.
    Ringing = 5,
    /// Answered.
    Up = 6,
    /// The line is busy.
    Busy = 7,
}

impl ChanState {
    /// `ChannelStateDesc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "Down",
            Self::Reserved => "Rsrvd",
            Self::OffHook => "OffHook",
            Self::Dialing => "Dialing",
            Self::Ring => "Ring",
            Self::Ringing => "Ringing",
            Self::Up => "Up",
            Self::Busy => "Busy",
        }
    }
}

/// What can be done to a sound that plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steer {
    /// It ends.
    Stop,
    /// It goes on some way further on.
    Forward,
    /// It goes back some way.
    Reverse,
    /// It rests, or goes on after that.
    Pause,
    /// It begins anew.
    Restart,
}

/// What a story hears of its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChanEvent {
    /// An outgoing call was taken on by the network.
    Proceeding,
    /// The other end rings.
    Ringing,
    /// Early audio comes from the other end.
    Progress,
    /// The other end answered.
    Answered,
    /// The other end sent the call elsewhere (3xx): a dial string.
    Forwarded(String),
    /// A digit went down.
    DigitBegin(Digit),
    /// A digit is complete; `relayed`: the bridged peer has heard it already.
    Digit {
        /// Which.
        digit: Digit,
        /// Milliseconds it lasted.
        duration_ms: u32,
        /// The media worker passed it on.
        relayed: bool,
    },
    /// A play request ended.
    Played {
        /// Which.
        play: PlayId,
        /// Why.
        end: PlayEnd,
        /// Byte of the clip that was reached.
        offset: usize,
    },
    /// Queued digits have left.
    DigitsSent,
    /// The watched silence lasted this long, milliseconds.
    Silence(u32),
    /// What it says has become sound or silence, as the watch of the application tells them apart.
    Sound {
        /// Sound.
        sounds: bool,
        /// Milliseconds that the opposite lasted before.
        before_ms: u32,
    },
    /// A tone has come that the application listens for.
    Tone {
        /// In what it hears; else in what it says.
        sent: bool,
    },
    /// Its place in its conference was changed or taken away by somebody else; the conference knows how.
    Conference,
    /// What an agent does has changed, or the agent that it is or has asked for has something to do.
    Agent,
    /// A program that has it wants something of its story, or what it is in has changed;
    /// [`Core::stasis_next_order`](crate::Core::stasis_next_order) has what is wanted.
    Stasis,
    /// The queue that it waits in has orders for its story; [`Core::queue_order`](crate::Core::queue_order) has them.
    Queue,
    /// The signal that it waits for has come, with this.
    Signal(String),
    /// Whom it spies on has changed its bridge or its place, or is gone.
    Spied,
    /// Somebody else steers what it plays.
    Steer(Steer),
    /// Its side tells who is there.
    ConnectedLine(Box<PartyId>),
    /// Its side sends the call on.
    Redirecting(Box<Redirecting>),
    /// Its side says what the call costs.
    Charge(Box<Advice>),
    /// Held by its own user.
    Hold,
    /// No longer held.
    Unhold,
    /// What our request to transfer the other side came to: the status it told.
    Transferred(u16),
    /// Text from the other side.
    Text(Box<Text>),
    /// No media for the configured time.
    MediaTimeout,
    /// The media path is known to work: the first valid packet came.
    MediaFlowing,
}

/// Where in the dialplan a channel is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// Context.
    pub context: String,
    /// Extension.
    pub exten: String,
    /// Priority; 0 when not running.
    pub priority: u32,
}

/// Where somebody else sends a channel, out of whatever its story does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// To another place in the dialplan (manager `Redirect`, blind transfers).
    Dialplan(Location),
    /// Into the hands of this story ([`Chan::take_all`](crate::Chan::take_all)): whoever has the channel lets go of it
    /// without ending it.
    Story(TaskId),
}

/// Everything a driver knows when it makes a channel.
#[derive(Debug, Clone, Default)]
pub struct NewChannel {
    /// Technology and resource, without the serial: `PJSIP/6001`.
    pub base_name: String,
    /// The whole name, for channels that come in pairs; `None` adds a serial to `base_name`.
    pub exact_name: Option<String>,
    /// Index of the technology in the shard.
    pub tech: usize,
    /// First state.
    pub state: ChanState,
    /// Caller.
    pub caller: PartyId,
    /// Account code.
    pub account: String,
    /// Where the dialplan begins.
    pub location: Location,
    /// Language; empty is the system's.
    pub language: String,
    /// Music class; empty is `default`.
    pub music_class: String,
    /// Music class for whom it holds, when they have none of their own; empty: its own.
    pub music_suggested: String,
    /// Formats of the channel, preferred first.
    pub formats: FormatSet,
    /// Whether we call rather than are called.
    pub outgoing: bool,
    /// The channel on whose behalf it is made: gives its linkedid.
    pub linked_to: Option<ChannelId>,
    /// Parking lot; empty is the default one.
    pub parking_lot: String,
    /// In which groups its calls ring, and of which it may take calls.
    pub pickup: crate::pickup::SharedGroups,
    /// Driver's own handle.
    pub handle: u64,
    /// UNIQUEID given by whoever originated it.
    pub uniqueid: Option<String>,
    /// Its tenant, also an empty one; `None`: that of the channel on whose behalf it is made.
    pub tenant: Option<Rc<str>>,
}

/// A place in a queue that may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// The queue.
    pub queue: Rc<str>,
    /// When it was taken.
    pub since: queue::Now,
    /// `QUEUE_PRIO`.
    pub priority: i32,
    /// Which members it may get.
    pub bounds: queue::Bounds,
    /// What it needs of members.
    pub skills: queue::Skills,
    /// The rule by which both change; empty: that of the queue.
    pub rule: String,
}

/// A part of a channel as watchers have seen it last.
pub(crate) struct Seen {
    pub(crate) location: Location,
    pub(crate) app: &'static str,
    pub(crate) app_data: String,
    pub(crate) connected: PartyId,
}

impl Seen {
    pub(crate) fn of(channel: &Channel) -> Self {
        Self {
            location: channel.location.clone(),
            app: channel.app,
            app_data: channel.app_data.clone(),
            connected: channel.connected.clone(),
        }
    }
    pub(crate) fn show_in(&self, shown: &mut crate::Snapshot) {
        shown.location.clone_from(&self.location);
        shown.app = self.app;
        shown.app_data.clone_from(&self.app_data);
        shown.connected.clone_from(&self.connected);
    }
}

/// One channel.
pub struct Channel {
    /// Id.
    pub id: ChannelId,
    /// `PJSIP/6001-0000002a`.
    pub name: Rc<str>,
    /// `epoch.serial`.
    pub uniqueid: Rc<str>,
    /// UNIQUEID of the oldest channel of the call.
    pub linkedid: Rc<str>,
    /// The tenant that it belongs to; empty: none.
    pub tenant: Rc<str>,
    /// Audio is let through neither from its party, nor to it; see [`Core::mute`](crate::Core::mute).
    pub muted: (bool, bool),
    /// Number of the call for the log; all channels of one LINKEDID have the same.
    pub call_number: u32,
    /// Index of the technology.
    pub tech: usize,
    /// The driver's own handle.
    pub handle: u64,
    /// State; changed through [`Core::set_state`](crate::Core::set_state).
    pub state: ChanState,
    /// Caller id.
    pub caller: PartyId,
    /// Automatic number identification.
    pub ani: Option<String>,
    /// What kind of line it comes from: the two digits of ANI II.
    pub ani2: u16,
    /// The number that was dialled (DNID), when the driver knows it.
    pub dialed: Option<String>,
    /// Who is at the other end of the conversation.
    pub connected: PartyId,
    /// Who sent it here.
    pub redirecting: Redirecting,
    /// Account code for call records.
    pub account: String,
    /// Account of the peer.
    pub peer_account: String,
    /// Language of prompts.
    pub language: String,
    /// Zone of tones; empty is the configured country.
    pub tone_zone: String,
    /// Music on hold class.
    pub music_class: String,
    /// The dialplan has chosen its class (`CHANNEL(musicclass)`), which goes before what applications name.
    pub music_chosen: bool,
    /// The class that those hear whom it holds, when they have none of their own; empty: its own.
    pub music_suggested: String,
    /// The lot that it parks in where nobody names another (`CHANNEL(parkinglot)`).
    pub parking_lot: String,
    /// In which groups its calls ring, and of which it may take calls.
    pub pickup: crate::pickup::SharedGroups,
    /// It was called because somebody dialled this.
    pub rung_at: Option<Box<Location>>,
    /// Another one is about to take its call.
    pub(crate) picked_up: bool,
    /// Position in the dialplan.
    pub location: Location,
    /// The last other context and extension that it was in.
    pub last_place: Location,
    /// Application that runs, and its arguments; empty between.
    pub app: &'static str,
    /// Arguments of `app`.
    pub app_data: String,
    /// The application whose beginning was kept as an event, and whose end is to be.
    pub told_app: &'static str,
    /// Channel variables.
    pub vars: dialplan::Vars,
    /// Preferred formats.
    pub formats: FormatSet,
    /// What the stream sends.
    pub format: FormatId,
    /// What its technology knows the call by: the Call-ID of SIP; empty: nothing.
    pub call_id: Rc<str>,
    /// How it carries digits, when its media is RTP of its own.
    pub rtp_digits: Option<base::DtmfMode>,
    /// Media stream, once the driver has opened one.
    pub stream: Option<StreamId>,
    /// Its streams that are passed through, by their slots; `None` where there is none.
    pub passed: Vec<Option<StreamId>>,
    /// What those streams send.
    pub video_formats: FormatSet,
    /// The prompt that it hears, as channel event logging has it.
    pub(crate) sounding: Option<PlayId>,
    /// Its user moves about in what it hears.
    pub(crate) steers: bool,
    /// It hears music on hold.
    pub(crate) hears_music: bool,
    /// The application that shows on it while it runs no dialplan: what it was called for.
    pub(crate) own_app: &'static str,
    /// What watchers still see of it, until they are told of its next state.
    pub(crate) seen: Option<Box<Seen>>,
    /// The last play request.
    pub last_play: PlayId,
    /// Bridge it is in.
    pub bridge: Option<BridgeId>,
    /// Set when the call has ended or is to end; sticky.
    pub hangup: Option<Cause>,
    /// A note of the site's own on it (`CHANNEL(userfield)`), which its events show.
    pub user_field: String,
    /// Technology's own word on the cause (`SIP 486 Busy Here`).
    pub hangup_source: String,
    /// Name of the channel whose side has ended the call; empty: nobody's has.
    pub hangup_by: Rc<str>,
    /// The final status that refused the call, by its technology or ours: 486.
    pub tech_cause: Option<u16>,
    /// What it is now left the place that it had here by an attended transfer: who was here talks elsewhere, in a bridge
    /// (`true`) or an application, which this names.
    pub sent_into: Option<(bool, String)>,
    /// Where somebody else sends it.
    pub goto: Option<Elsewhere>,
    /// Where it was sent while it was in something else, as watchers were told.
    pub told_place: Option<Location>,
    /// Priority of the step that watchers were told of last.
    pub told_step: Option<u32>,
    /// A story has just begun that will [take](crate::Chan::take_all) it: nothing is to be done with it before.
    pub wanted: bool,
    /// The story that it was handed to and that has not yet noticed.
    pub(crate) keeper: Option<TaskId>,
    /// The channel that it asks whether to transfer a call there.
    pub consulted: Option<ChannelId>,
    /// By what it is known that a fax calls; [`Core::watch_fax`](crate::Core::watch_fax).
    pub fax_watch: Option<crate::FaxWatch>,
    /// The agent that is logged in on it.
    pub(crate) agent: Option<std::rc::Rc<str>>,
    /// Whether a dialplan runs on it; set by [`Core::enter_pbx`](crate::Core::enter_pbx).
    pub has_pbx: bool,
    /// Whether it was dialled rather than called in.
    pub outgoing: bool,
    /// Held by its user.
    pub held: bool,
    /// Functions that are written before its dialplan begins, with their values (`set_var`).
    pub assigned: Vec<(String, String)>,
    /// Its user was told that the other party holds it.
    pub told_held: bool,
    /// How often a call may still be sent on from here: each channel that is called for another has one less
    /// (`CHANNEL(max_forwards)`).
    pub forwards: i32,
    /// Hops that the call may still take, when it came with a number of them (Max-Forwards of RFC 3261 §8.1.1.6).
    pub hops: Option<u8>,
    /// When it was made.
    pub created: Instant,
    /// Wall time of the same, microseconds since the epoch.
    pub created_wall: i64,
    /// When it was answered.
    pub answered: Option<Instant>,
    /// `TIMEOUT(absolute)`.
    pub absolute_deadline: Option<Instant>,
    /// `TIMEOUT(digit)`, milliseconds.
    pub digit_timeout_ms: u32,
    /// `TIMEOUT(response)`, milliseconds.
    pub response_timeout_ms: u32,
    /// Call record.
    pub cdr: CdrState,
    /// Hang-up handlers (`CHANNEL(hangup_handler_push)`), last pushed first run.
    pub hangup_handlers: Vec<String>,
    /// Cause of the last leg that this channel dialled, then of its own end: what `HANGUPCAUSE` reads.
    pub last_cause: Cause,
    /// How dialled channels ended: name, cause, the technology's own words (`HANGUPCAUSE()`).
    pub hangup_causes: Vec<(String, Cause, String)>,
    /// Variables that other channels may touch (`SHARED()`).
    pub shared: dialplan::Vars,
    /// Groups it counts in, as (category, group) (`GROUP()`).
    pub groups: Vec<(String, String)>,
    /// What writes it down.
    pub monitors: Vec<crate::monitor::Monitor>,
    /// Number of the last of these.
    pub(crate) last_monitor: u32,
    /// Commands of managers that wait, while the channel is in `AGI(agi:async)`.
    pub agi: Option<crate::AgiQueue>,
    /// What has happened and was not yet heard.
    pub(crate) events: VecDeque<ChanEvent>,
    /// The story that listens.
    pub(crate) waiter: Option<TaskId>,
    /// Names of variables that a program wants told with the channel (`report_events`).
    pub reported: std::collections::BTreeSet<String>,
    /// Media of the other end has come.
    pub media_flows: bool,
    /// How good its audio was, as far as it was told.
    pub quality: Option<Box<crate::Quality>>,
    /// Watchers were told of it.
    pub is_quality_told: bool,
    /// The stream's totals were asked for and have not come.
    pub(crate) asked_quality: bool,
    /// The text message that runs its dialplan, or that it sends.
    pub message: Option<Box<crate::TextMessage>>,
    /// Number under which somebody hears in [`Core::advances`](crate::Core::advances) how its call comes on.
    pub advance_watch: Option<u64>,
    /// Its other end was told that it rings.
    pub(crate) is_told_ringing: bool,
    /// It hears ringing until it is bridged.
    pub(crate) rings_inside: bool,
    /// What its party may do with keys while it is bridged.
    pub rights: crate::features::Rights,
    /// Tones that it is listened to for.
    pub tones: Option<Box<crate::ToneCounts>>,
    /// How loud it is and what it hears, when that was ever said.
    pub volume: Option<Box<crate::Volume>>,
    /// What its dialplan has made of profiles of conferences (`CONFBRIDGE()`).
    pub conference: Option<Box<crate::conference::Custom>>,
    /// Its place in the queue that it waited in last, while it has talked to nobody there.
    pub queue_place: Option<Box<QueuePlace>>,
    /// What keys do on it, when its dialplan has said so; else what features.conf says.
    pub features: Option<Rc<crate::features::Features>>,
    /// Its digits are not passed on to whom it is bridged to.
    pub(crate) keeps_digits: bool,
    /// Its driver tells its peer of a hold: no music is played to it.
    pub passes_hold: bool,
    /// Holds that it is given are told to watchers and go no further (`HOLD_INTERCEPT()`).
    pub keeps_holds: bool,
    /// How long what Record took last is (`RECORDING_INFO()`).
    pub last_recording: Option<core::time::Duration>,
    /// What the media plane does for it.
    pub(crate) engaged: crate::engaged::Engaged,
    /// How far it is in music that each hears for itself.
    pub(crate) music_place: crate::music::MusicPlace,
}

impl Channel {
    /// Whether it is a half of a Local channel.
    pub fn is_local(&self) -> bool {
        self.name.starts_with("Local/")
    }
    /// Its streams of video, of those that are passed through.
    pub fn pictures(&self) -> &[Option<StreamId>] {
        self.passed.get(..self.passed.len().min(base::VIDEO_SLOTS)).unwrap_or_default()
    }
}

/// Most events a channel keeps for a story that does not listen; digits beyond are dropped, oldest first.
pub(crate) const EVENTS_MAX: usize = 256;
