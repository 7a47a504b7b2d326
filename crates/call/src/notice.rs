//! What watchers are told. Made only while somebody watches.

use core::net::SocketAddr;
use std::rc::Rc;

use base::{BridgeId, Cause, Digit, RtcpReport};

use crate::{ChanState, Channel, Location, PartyId};

/// A channel as it was at the moment of the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Name.
    pub name: Rc<str>,
    /// UNIQUEID.
    pub uniqueid: Rc<str>,
    /// LINKEDID.
    pub linkedid: Rc<str>,
    /// Its tenant; empty: none.
    pub tenant: Rc<str>,
    /// State.
    pub state: ChanState,
    /// Caller.
    pub caller: PartyId,
    /// Other party.
    pub connected: PartyId,
    /// Language.
    pub language: String,
    /// Account code.
    pub account: String,
    /// Position in the dialplan.
    pub location: Location,
    /// When it was made, microseconds since the Unix epoch.
    pub created_wall: i64,
    /// The Call-ID, or what its protocol has instead; empty: not known yet, or there is none.
    pub call_id: Rc<str>,
    /// The application that runs on it.
    pub app: &'static str,
    /// Its arguments.
    pub app_data: String,
    /// The status by which its technology has refused the call.
    pub tech_cause: Option<u16>,
    /// The number that has sent the call here; empty: none has.
    pub rdnis: String,
    /// Names of variables that a program wants told with the channel.
    pub reported: std::collections::BTreeSet<String>,
}

/// The application that an attended transfer leads into: that of whichever of the transferer's channels talks to nobody.
pub fn transfer_app(first: &Snapshot, second: Option<&Snapshot>, second_talks: bool) -> &'static str {
    second.filter(|_| !second_talks).unwrap_or(first).app
}

impl Snapshot {
    /// Takes one.
    pub fn of(channel: &Channel) -> Self {
        Self {
            name: channel.name.clone(),
            uniqueid: channel.uniqueid.clone(),
            linkedid: channel.linkedid.clone(),
            tenant: channel.tenant.clone(),
            state: channel.state,
            caller: channel.caller.clone(),
            connected: channel.connected.clone(),
            language: channel.language.clone(),
            account: channel.account.clone(),
            location: channel.location.clone(),
            created_wall: channel.created_wall,
            call_id: channel.call_id.clone(),
            app: channel.app,
            app_data: channel.app_data.clone(),
            tech_cause: channel.tech_cause,
            rdnis: channel.redirecting.from.number().to_owned(),
            reported: channel.reported.clone(),
        }
    }
}

/// Who wants a channel to end: the kind of request, which is no cause of Q.850.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SoftHangup {
    /// Its own technology: no media comes, or it was the second leg of a transfer.
    Device = 1,
    /// The server stops.
    Shutdown = 4,
    /// Its dialplan has ended.
    DialplanOver = 16,
    /// Somebody asked for it: console, program, another dialplan.
    Explicit = 32,
}

/// What a bridge is for: its type, creator and technology in the field's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeUse {
    /// Parties of a call (Dial, Queue, Bridge and the like).
    Call,
    /// ConfBridge() and MeetMe().
    Conference,
    /// Agents who are logged in and wait for calls.
    Agents,
    /// Calls that are parked in one lot.
    Parking,
    /// BridgeWait().
    Waiting,
    /// A program of ARI; whether its channels wait instead of talking.
    Program {
        /// They hear music, or who announces something.
        holds: bool,
        /// Whose video is seen.
        video: VideoChoice,
    },
}

/// How whose video is seen in a bridge of programs is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VideoChoice {
    /// Who talks is seen.
    #[default]
    Talker,
    /// One that a program names.
    Single,
    /// All are seen by all.
    Sfu,
}

impl VideoChoice {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Talker => "talker",
            Self::Single => "single",
            Self::Sfu => "sfu",
        }
    }
}

impl BridgeUse {
    /// `BridgeType`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Call => "basic",
            Self::Conference | Self::Waiting => "base",
            Self::Agents => "agent_hold",
            Self::Parking => "parking",
            Self::Program { .. } => "stasis",
        }
    }
    /// `BridgeCreator`; empty: nobody is named.
    pub fn creator(self) -> &'static str {
        match self {
            Self::Call => "",
            Self::Conference => "ConfBridge",
            Self::Agents => "AgentPool",
            Self::Parking => "Parking",
            Self::Waiting => "BridgeWait",
            Self::Program { .. } => "Stasis",
        }
    }
    /// `BridgeVideoSourceMode`, where nobody has chosen another.
    pub fn video_mode(self) -> &'static str {
        match self {
            Self::Program { video, .. } => video.name(),
            _ => "none",
        }
    }
    /// Whether each of its channels may be seen by all others.
    pub fn sees_all(self) -> bool {
        matches!(self, Self::Program { video: VideoChoice::Sfu, .. })
    }
    /// `BridgeTechnology` with so many channels.
    pub fn technology(self, channels: usize) -> &'static str {
        match (self, channels) {
            (Self::Program { holds: true, .. } | Self::Agents | Self::Parking | Self::Waiting, _) => {
                "holding_bridge"
            }
            (Self::Conference | Self::Program { video: VideoChoice::Sfu, .. }, _) => "softmix",
            (_, 0..=2) => "simple_bridge",
            _ => "softmix",
        }
    }
}

/// A bridge as it was at the moment of the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeSnapshot {
    /// Bridge.
    pub id: BridgeId,
    /// `BridgeUniqueid`.
    pub uid: Rc<str>,
    /// What it is for.
    pub used_for: BridgeUse,
    /// `BridgeTechnology`.
    pub technology: &'static str,
    /// `BridgeName`; empty: it has none.
    pub name: Rc<str>,
    /// Channels in it, and who is in it and no channel.
    pub count: usize,
    /// `BridgeVideoSourceMode`.
    pub video_mode: &'static str,
    /// UNIQUEID of who is seen.
    pub video_source: Option<Rc<str>>,
}

/// What can happen to a hang-up handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerChange {
    /// It was pushed.
    Push,
    /// It was taken away.
    Pop,
    /// It is about to run.
    Run,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// All parts are up.
    FullyBooted,
    /// A channel was made.
    NewChannel(Snapshot),
    /// Its state changed.
    NewState(Snapshot),
    /// It takes a dialplan step.
    NewExten {
        /// Channel.
        channel: Snapshot,
        /// Application.
        application: &'static str,
        /// Its arguments, expanded.
        data: String,
    },
    /// Its caller id changed.
    NewCallerId(Snapshot),
    /// Its other party changed.
    NewConnectedLine(Snapshot),
    /// Its account code changed.
    NewAccountCode {
        /// Channel.
        channel: Snapshot,
        /// Code before.
        old: String,
    },
    /// A variable was set; `channel` is `None` for a global one.
    VarSet {
        /// Channel.
        channel: Option<Snapshot>,
        /// Name.
        variable: String,
        /// Value.
        value: String,
    },
    /// A leg is being called.
    DialBegin {
        /// Who dials.
        caller: Option<Snapshot>,
        /// The leg.
        dest: Snapshot,
        /// What was dialled.
        dial_string: String,
    },
    /// The leg's state became known while dialling (`RINGING`, `PROGRESS`, `PROCEEDING`).
    DialState {
        /// Who dials.
        caller: Option<Snapshot>,
        /// The leg.
        dest: Snapshot,
        /// State.
        status: &'static str,
        /// What was dialled, where watchers are told so again.
        dial_string: String,
    },
    /// Calling the leg has ended (`ANSWER`, `BUSY`, `CANCEL` …).
    DialEnd {
        /// Who dialled.
        caller: Option<Snapshot>,
        /// The leg.
        dest: Snapshot,
        /// DIALSTATUS of this leg.
        status: &'static str,
        /// Where the call was forwarded to.
        forward: Option<String>,
        /// The leg that is called instead.
        forwarded: Option<Box<Snapshot>>,
        /// What was dialled, where watchers are told so again.
        dial_string: String,
    },
    /// A bridge was made.
    BridgeCreate {
        /// Bridge.
        bridge: BridgeSnapshot,
    },
    /// A channel entered a bridge.
    BridgeEnter {
        /// Bridge, after that.
        bridge: BridgeSnapshot,
        /// Channel.
        channel: Snapshot,
        /// UNIQUEID of the channel whose place it takes.
        instead_of: Option<Rc<str>>,
    },
    /// A channel left a bridge.
    BridgeLeave {
        /// Bridge, after that.
        bridge: BridgeSnapshot,
        /// Channel.
        channel: Snapshot,
    },
    /// The two halves of a Local channel were tied to each other.
    LocalBridge {
        /// The half that was dialled.
        first: Box<Snapshot>,
        /// The half that runs the dialplan.
        second: Box<Snapshot>,
        /// It may be taken out of the way once both sides talk.
        optimizes: bool,
    },
    /// The two halves of a Local channel are about to be taken out of the way of the two that they connect.
    LocalOptimizationBegin {
        /// The half that was dialled.
        first: Box<Snapshot>,
        /// The half that runs the dialplan.
        second: Box<Snapshot>,
        /// Who moves to the place of the second half.
        source: Box<Snapshot>,
        /// Number of the attempt.
        id: u32,
    },
    /// That is done.
    LocalOptimizationEnd {
        /// The half that was dialled.
        first: Box<Snapshot>,
        /// The half that runs the dialplan.
        second: Box<Snapshot>,
        /// Number of the attempt.
        id: u32,
    },
    /// A party sent the other one elsewhere.
    BlindTransfer {
        /// Who sent it.
        transferer: Box<Snapshot>,
        /// Who was sent; nobody where several were in the bridge.
        transferee: Option<Box<Snapshot>>,
        /// Who sits in the seat of whoever sent it from here on, where that was kept.
        replacement: Option<Box<Snapshot>>,
        /// The bridge they were in.
        bridge: BridgeSnapshot,
        /// UNIQUEIDs of those who were in it.
        members: Vec<Rc<str>>,
        /// A phone asked for it, not a program.
        external: bool,
        /// Where to: context and extension.
        to: (String, String),
    },
    /// A party connected two others.
    AttendedTransfer {
        /// Who connected them.
        transferer: Box<Snapshot>,
        /// Its other channel, on which it asked; the same one when a program did the asking.
        second: Option<Box<Snapshot>>,
        /// Who had been talking to it; nobody when its calls were to conferences.
        transferee: Option<Box<Snapshot>>,
        /// Whom it asked; nobody when that is an application.
        target: Option<Box<Snapshot>>,
        /// The pair of Local channels through which two conferences hear each other.
        link: Option<(Box<Snapshot>, Box<Snapshot>)>,
        /// The bridges that its two channels were in when it asked.
        bridges: [Option<BridgeSnapshot>; 2],
        /// The id of the one of them in which the other two talk from here on.
        stays: Option<Rc<str>>,
        /// A phone asked for it, not a program.
        external: bool,
    },
    /// A channel begins to listen to another one.
    SpyStart {
        /// Who listens.
        spyer: Box<Snapshot>,
        /// Whom.
        spyee: Box<Snapshot>,
    },
    /// It listens no more.
    SpyStop {
        /// Who listened.
        spyer: Box<Snapshot>,
        /// Whom, unless that is gone.
        spyee: Option<Box<Snapshot>>,
    },
    /// A bridge is gone.
    BridgeDestroy {
        /// Bridge.
        bridge: BridgeSnapshot,
    },
    /// A conference began, with its first member.
    ConferenceStart {
        /// Its name.
        conference: String,
        /// Its bridge.
        bridge: BridgeSnapshot,
    },
    /// A conference ended, with its last member.
    ConferenceEnd {
        /// Its name.
        conference: String,
        /// Its bridge.
        bridge: BridgeSnapshot,
    },
    /// The video of another member is seen in a conference, or nobody's.
    ConferenceVideo {
        /// Its name.
        conference: String,
        /// Its bridge.
        bridge: BridgeSnapshot,
        /// UNIQUEID of who was seen before.
        previous: Option<String>,
    },
    /// A conference is recorded from here on, or not any more.
    ConferenceRecord {
        /// Its name.
        conference: String,
        /// Its bridge.
        bridge: BridgeSnapshot,
        /// It is recorded from here on.
        runs: bool,
    },
    /// Something happened to a member of a conference.
    ConferenceMember {
        /// Its name.
        conference: String,
        /// Its bridge.
        bridge: BridgeSnapshot,
        /// The member.
        channel: Snapshot,
        /// It is an administrator.
        is_admin: bool,
        /// It is not heard.
        is_muted: bool,
        /// What happened.
        change: crate::conference::MemberChange,
    },
    /// Something happened in a call queue.
    Queue {
        /// The queue's name.
        queue: Rc<str>,
        /// What.
        event: Box<queue::Event>,
        /// The caller it is about.
        caller: Option<Box<Snapshot>>,
        /// The member's channel.
        member: Option<Box<Snapshot>>,
    },
    /// A channel takes a call that rings at another.
    Pickup {
        /// Who takes it.
        channel: Box<Snapshot>,
        /// Where it rings.
        target: Box<Snapshot>,
    },
    /// Something happened to what programs have that steer calls from outside.
    Stasis(Box<crate::stasis::StasisNotice>),
    /// Something happened to a parked call.
    Parking(Box<crate::parking::ParkingNotice>),
    /// An agent logged in or off.
    Agent {
        /// The agent.
        agent: String,
        /// Its channel.
        channel: Option<Box<Snapshot>>,
        /// What happened.
        change: crate::AgentChange,
    },
    /// Something happened to a recording of a channel.
    Monitor {
        /// Channel.
        channel: Snapshot,
        /// The application that began it.
        by: &'static str,
        /// What happened.
        change: crate::monitor::MonitorChange,
    },
    /// A script or a manager steers a channel by AGI.
    Agi {
        /// Channel.
        channel: Snapshot,
        /// What happened.
        change: crate::AgiChange,
    },
    /// A digit began or ended on a channel.
    Dtmf {
        /// Channel.
        channel: Snapshot,
        /// Digit.
        digit: Digit,
        /// Milliseconds; `None` at its beginning.
        duration_ms: Option<u32>,
        /// Whether the channel received it (or we sent it).
        received: bool,
    },
    /// The user of a channel began or ceased to talk (`TALK_DETECT()`).
    Talking {
        /// Channel.
        channel: Snapshot,
        /// Milliseconds that it has talked; `None` at its beginning.
        duration_ms: Option<u32>,
    },
    /// The user of a channel is told what its call costs, or its side has said it.
    Charge {
        /// Channel.
        channel: Snapshot,
        /// What it is told.
        advice: Box<crate::charge::Advice>,
    },
    /// Something happened to a hang-up handler of a channel.
    HangupHandler {
        /// Channel.
        channel: Snapshot,
        /// What.
        change: HandlerChange,
        /// `context,extension,priority(arguments)`.
        handler: String,
    },
    /// A report of RTCP left or came.
    Rtcp {
        /// Channel.
        channel: Snapshot,
        /// Our end.
        local: SocketAddr,
        /// What it said.
        report: Box<RtcpReport>,
    },
    /// Its user put the other party on hold.
    Hold {
        /// Channel.
        channel: Snapshot,
        /// Music that it suggests for the other one; empty: none.
        class: String,
    },
    /// And took it back.
    Unhold(Snapshot),
    /// Music on hold began.
    MusicOnHoldStart {
        /// Channel.
        channel: Snapshot,
        /// Class.
        class: String,
    },
    /// Music on hold ended.
    MusicOnHoldStop(Snapshot),
    /// Somebody asked for the channel to be hung up, or its dialplan is over.
    SoftHangup {
        /// Channel.
        channel: Snapshot,
        /// Who asks.
        by: SoftHangup,
    },
    /// The other side hung up.
    HangupRequest {
        /// Channel.
        channel: Snapshot,
        /// Why, when that is known.
        cause: Option<Cause>,
    },
    /// The channel is gone.
    Hangup {
        /// Channel.
        channel: Snapshot,
        /// Cause.
        cause: Cause,
    },
    /// The dialplan or a manager client sends word to all.
    UserEvent {
        /// Channel.
        channel: Option<Snapshot>,
        /// Name of the event.
        name: String,
        /// `Key: value` headers, in order.
        fields: Vec<(String, String)>,
    },
    /// A program of ARI sends word of a channel: managers hear of it, and no other program.
    ProgramEvent {
        /// Channel.
        channel: Snapshot,
        /// The bridge that it is about as well.
        bridge: Option<BridgeSnapshot>,
        /// Name of the event.
        name: String,
        /// `Key: value` headers, in order.
        fields: Vec<(String, String)>,
    },
    /// An originated call has come to something.
    OriginateResponse {
        /// ActionID of the request.
        action_id: String,
        /// Dialled channel, when there was one.
        channel: Option<Snapshot>,
        /// What was asked for: `PJSIP/6001`.
        target: String,
        /// Context and extension that were asked for; empty for an application.
        location: (String, String),
        /// Application and its arguments.
        application: Option<(String, String)>,
        /// Caller id that was asked for.
        caller: PartyId,
        /// Whether it was answered.
        success: bool,
        /// Manager's reason code: 0 no such extension, 1 no answer, 3 ringing, 4 answered, 5 busy, 8 congested.
        reason: u8,
    },
    /// A phone registered, unregistered or became (un)reachable.
    PeerStatus {
        /// Channel type: `PJSIP`.
        channel_type: &'static str,
        /// `PJSIP/6001`.
        peer: String,
        /// `Registered`, `Unregistered`, `Reachable`, `Lagged`, `Unreachable`.
        status: &'static str,
        /// Address, when known.
        address: String,
        /// Why, where that is not plain: `Expired`; else empty.
        cause: &'static str,
        /// How long it took to answer, ms, when it was asked.
        time_ms: Option<u64>,
    },
    /// A contact changed.
    ContactStatus {
        /// Contact URI.
        uri: String,
        /// `Created`, `Removed`, `Reachable`, `Unreachable`, `NonQualified`, `Updated`.
        status: &'static str,
        /// AOR.
        aor: String,
        /// Endpoint.
        endpoint: String,
        /// Round trip in microseconds of the last qualify.
        roundtrip_us: Option<u64>,
    },
    /// A registration of ours with another server came to something.
    Registry {
        /// Channel type: `PJSIP`.
        channel_type: &'static str,
        /// The account, `client_uri`.
        username: String,
        /// The registrar, `server_uri`.
        domain: String,
        /// `Registered`, `Unregistered`, `Rejected`, `Stopped`.
        status: &'static str,
        /// Why, when it failed.
        cause: String,
    },
    /// A device state changed.
    DeviceStateChange {
        /// `PJSIP/6001`.
        device: String,
        /// State word.
        state: &'static str,
    },
    /// A presence provider says something else.
    PresenceStateChange {
        /// `CustomPresence:alice`.
        presentity: String,
        /// State word.
        state: &'static str,
        /// More of it.
        subtype: String,
        /// For people.
        message: String,
    },
    /// The presence of an extension changed whose hint names a provider.
    PresenceStatus {
        /// Extension.
        exten: String,
        /// Context.
        context: String,
        /// Its hint.
        hint: String,
        /// State word.
        state: &'static str,
        /// More of it.
        subtype: String,
        /// For people.
        message: String,
    },
    /// An extension with a hint changed.
    ExtensionStatus {
        /// Extension.
        exten: String,
        /// Context.
        context: String,
        /// Hint.
        hint: String,
        /// State.
        state: crate::DeviceState,
    },
    /// The messages in a mailbox changed.
    MessageWaiting {
        /// Whoever has left a message or heard one.
        channel: Option<Snapshot>,
        /// Mailbox, with its context.
        mailbox: String,
        /// What is in it.
        messages: crate::Mailbox,
    },
    /// Somebody proved who it is, or did not.
    Security(Box<crate::Attempt>),
    /// A call record was written.
    Cdr {
        /// Its fields, by name, in order.
        fields: Vec<(String, String)>,
    },
    /// A channel event was kept.
    Cel {
        /// Its fields, by name, in order.
        fields: Vec<(&'static str, String)>,
    },
    /// Configuration of a module was loaded again.
    Reload {
        /// Module or `All`.
        module: String,
        /// 0 when it was taken.
        status: u8,
    },
    /// The process stops.
    Shutdown {
        /// Whether calls were allowed to end.
        graceful: bool,
        /// Whether it starts again.
        restart: bool,
    },
}
