//! Notices as the events that manager clients know.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::SocketAddr;

use base::RtcpReport;
pub use call::bridge_name;
use call::monitor::MonitorChange;
use call::{
    AgentChange, AgiChange, BridgeSnapshot, DeviceState, HandlerChange, Notice, Presentation, Snapshot,
};
use store::config::manager::Classes;

use super::packet::Message;

/// One event: name, class, when it is sent, and its own fields beside those of channels and bridges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// Name.
    pub name: &'static str,
    /// Class a user needs in `read=`.
    pub class: &'static str,
    /// One sentence.
    pub synopsis: &'static str,
    /// Fields. `Channel*` stands for the fields of a channel, `Dest*` for those of the dialled one, `Bridge*` for those
    /// of a bridge.
    pub fields: &'static [&'static str],
}

macro_rules! events {
    ($($name:literal $class:literal $synopsis:literal [$($field:literal),*];)*) => {
        /// Every event in the order of the manual.
        pub const EVENTS: &[EventRow] = &[$(EventRow {
            name: $name, class: $class, synopsis: $synopsis, fields: &[$($field),*],
        },)*];
    };
}

events! {
    "FullyBooted" "system" "All parts are up; also the first event after login." ["Status", "Uptime", "LastReload"];
    "Newchannel" "call" "A channel was made." ["Channel*"];
    "Newstate" "call" "The state of a channel changed." ["Channel*"];
    "Newexten" "dialplan" "A channel takes a step of the dialplan." ["Channel*", "Extension", "Application", "AppData"];
    "NewCallerid" "call" "The caller id of a channel changed." ["Channel*", "CID-CallingPres"];
    "NewConnectedLine" "call" "The other party of a channel changed." ["Channel*"];
    "NewAccountCode" "call" "The account code of a channel changed." ["Channel*", "OldAccountCode"];
    "VarSet" "dialplan" "A variable was set; Channel is none for a global one." ["Channel*", "Variable", "Value"];
    "DialBegin" "call" "A leg is being called." ["Channel*", "Dest*", "DialString"];
    "DialState" "call" "The state of a dialled leg became known." ["Channel*", "Dest*", "DialStatus"];
    "DialEnd" "call" "Calling a leg has ended." ["Channel*", "Dest*", "Forward", "DialStatus"];
    "BridgeCreate" "call" "A bridge was made." ["Bridge*"];
    "BridgeEnter" "call" "A channel entered a bridge." ["Bridge*", "Channel*"];
    "BridgeLeave" "call" "A channel left a bridge." ["Bridge*", "Channel*"];
    "LocalBridge" "call" "The two halves of a Local channel were tied to each other." ["LocalOne*", "LocalTwo*", "Context", "Exten", "LocalOptimization"];
    "LocalOptimizationBegin" "call" "A Local channel is about to be taken out of the way of the two that it connects." ["LocalOne*", "LocalTwo*", "Source*", "DestUniqueId", "Id"];
    "LocalOptimizationEnd" "call" "A Local channel was taken out of the way." ["LocalOne*", "LocalTwo*", "Success", "Id"];
    "BlindTransfer" "call" "A party sent the other elsewhere." ["Result", "Transferer*", "Transferee*", "Bridge*", "IsExternal", "Context", "Extension"];
    "AttendedTransfer" "call" "A party connected two others." ["Result", "OrigTransferer*", "OrigBridge*", "SecondTransferer*", "SecondBridge*", "Transferee*", "TransferTarget*", "LocalOne*", "LocalTwo*", "IsExternal", "DestType", "DestBridgeUniqueid", "DestApp"];
    "ChanSpyStart" "call" "A channel begins to listen to another one." ["Spyer*", "Spyee*"];
    "ChanSpyStop" "call" "A channel listens to another one no more." ["Spyer*", "Spyee*"];
    "BridgeDestroy" "call" "A bridge is gone." ["Bridge*"];
    "ConfbridgeStart" "call" "A conference began." ["Conference", "Bridge*"];
    "ConfbridgeEnd" "call" "A conference ended." ["Conference", "Bridge*"];
    "ConfbridgeJoin" "call" "A channel joined a conference." ["Conference", "Bridge*", "Channel*", "Admin", "Muted"];
    "ConfbridgeLeave" "call" "A channel left a conference." ["Conference", "Bridge*", "Channel*", "Admin"];
    "ConfbridgeMute" "call" "A member of a conference is not heard any more." ["Conference", "Bridge*", "Channel*", "Admin"];
    "ConfbridgeUnmute" "call" "A member of a conference is heard again." ["Conference", "Bridge*", "Channel*", "Admin"];
    "BridgeVideoSourceUpdate" "call" "The video of another member is seen in a conference; of nobody, when BridgeVideoSource is not there." ["Bridge*", "BridgeVideoSource", "BridgePreviousVideoSource"];
    "ConfbridgeRecord" "call" "A conference is recorded from here on." ["Conference", "Bridge*"];
    "ConfbridgeStopRecord" "call" "A conference is not recorded any more." ["Conference", "Bridge*"];
    "QueueCallerJoin" "agent" "A caller entered a queue." ["Channel*", "Queue", "Position", "Count"];
    "QueueCallerLeave" "agent" "A caller is out of a queue: it left, or talks to a member." ["Channel*", "Queue", "Position", "Count"];
    "QueueCallerAbandon" "agent" "A caller gave up, or was given up." ["Channel*", "Queue", "Position", "OriginalPosition", "HoldTime"];
    "QueueMemberAdded" "agent" "A queue has a new member." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "QueueMemberRemoved" "agent" "A queue has lost a member." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "QueueMemberPause" "agent" "A member is paused, or is not paused any more." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "QueueMemberPenalty" "agent" "The penalty of a member changed." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "QueueMemberRinginuse" "agent" "Whether a member is called while it is on a call changed." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "QueueMemberStatus" "agent" "The device of a member does something else, or the member has had a call." ["Queue", "MemberName", "Interface", "StateInterface", "Membership", "Penalty", "CallsTaken", "LastCall", "LastPause", "LoginTime", "InCall", "Status", "Paused", "PausedReason", "Ringinuse", "Wrapuptime"];
    "AgentCalled" "agent" "A member is called for a caller." ["Channel*", "Dest*", "Queue", "Interface", "MemberName"];
    "AgentRingNoAnswer" "agent" "A member was called and did not answer; RingTime is in milliseconds." ["Channel*", "Dest*", "Queue", "Interface", "MemberName", "RingTime"];
    "AgentConnect" "agent" "A member and a caller talk; times are in seconds." ["Channel*", "Dest*", "Queue", "Interface", "MemberName", "HoldTime", "RingTime"];
    "AgentComplete" "agent" "They do not talk any more; Reason is caller, agent or transfer." ["Channel*", "Dest*", "Queue", "Interface", "MemberName", "HoldTime", "TalkTime", "Reason"];
    "AgentDump" "agent" "A member hung up before it talked to the caller." ["Channel*", "Dest*", "Queue", "Interface", "MemberName"];
    "Pickup" "call" "A channel takes a call that rings at another." ["Channel*", "Target*"];
    "ParkedCall" "call" "A call was parked. ParkingTimeout and ParkingDuration are seconds: until its time is up, and since it was parked. Parker* is there while who parked it has a channel." ["Parkee*", "Parker*", "ParkerDialString", "Parkinglot", "ParkingSpace", "ParkingTimeout", "ParkingDuration"];
    "UnParkedCall" "call" "Somebody has fetched a parked call." ["Parkee*", "Parker*", "Retriever*", "ParkerDialString", "Parkinglot", "ParkingSpace", "ParkingTimeout", "ParkingDuration"];
    "ParkedCallTimeOut" "call" "Nobody fetched a parked call in time." ["Parkee*", "Parker*", "ParkerDialString", "Parkinglot", "ParkingSpace", "ParkingTimeout", "ParkingDuration"];
    "ParkedCallGiveUp" "call" "A parked call hung up, or was sent elsewhere." ["Parkee*", "Parker*", "ParkerDialString", "Parkinglot", "ParkingSpace", "ParkingTimeout", "ParkingDuration"];
    "ParkedCallSwap" "call" "Another channel takes the place of a parked one: the end of an attended transfer to Park()." ["Parkee*", "Parker*", "ParkerDialString", "Parkinglot", "ParkingSpace", "ParkingTimeout", "ParkingDuration"];
    "AgentLogin" "agent" "An agent of agents.conf logged in." ["Channel*", "Agent"];
    "AgentLogoff" "agent" "An agent of agents.conf logged off; Logintime is in seconds." ["Channel*", "Agent", "Logintime"];
    "MixMonitorStart" "call" "MixMonitor began to record a channel." ["Channel*"];
    "MixMonitorStop" "call" "A recording of MixMonitor ended, or the channel with it; with File and Reason when a file cannot be written any more: the disk is full, broken or too slow." ["Channel*", "File", "Reason"];
    "MixMonitorMute" "call" "MixMonitor writes silence for one side of a channel or both, or sound again." ["Channel*", "Direction", "State"];
    "MonitorStart" "call" "Monitor began to record a channel." ["Channel*"];
    "MonitorStop" "call" "What Monitor records ended, as with MixMonitorStop." ["Channel*", "File", "Reason"];
    "ConfbridgeTalking" "call" "A member of a conference began or ceased to talk." ["Conference", "Bridge*", "Channel*", "TalkingStatus", "Admin"];
    "AsyncAGIStart" "agi" "A channel entered AGI(agi:async): managers may send it commands. Env is its environment, with URI escapes." ["Channel*", "Env"];
    "AsyncAGIExec" "agi" "A command of the action AGI was carried out. Result is its answer, with URI escapes." ["Channel*", "CommandID", "Result"];
    "AsyncAGIEnd" "agi" "A channel left AGI(agi:async)." ["Channel*"];
    "AGIExecStart" "agi" "A channel carries out an AGI command." ["Channel*", "Command", "CommandId"];
    "AGIExecEnd" "agi" "An AGI command is done." ["Channel*", "Command", "CommandId", "ResultCode", "Result"];
    "DTMFBegin" "dtmf" "A digit began." ["Channel*", "Digit", "Direction"];
    "DTMFEnd" "dtmf" "A digit ended." ["Channel*", "Digit", "DurationMs", "Direction"];
    "ChannelTalkingStart" "call" "The user of a channel began to talk; with TALK_DETECT()." ["Channel*"];
    "ChannelTalkingStop" "call" "The user of a channel ceased to talk. Duration: milliseconds that it talked." ["Channel*", "Duration"];
    "AOC-S" "aoc" "The user of a channel is told what its call will cost, or its carrier says it. Cost is in units of Multiplier (1/1000 to 1000) of the currency; Length is in units of Scale, as is Granularity of its own." ["Channel*", "Chargeable", "RateType", "Currency", "Name", "Cost", "Multiplier", "ChargingType", "StepFunction", "Granularity", "GranularityScale", "Length", "Scale", "Unit", "SpecialCode"];
    "AOC-D" "aoc" "The user of a channel is told what its call has cost so far, or its carrier says it. With units: the number of each entry and its type, separated by commas." ["Channel*", "Charge", "Type", "BillingID", "TotalType", "Currency", "Name", "Cost", "Multiplier", "Units", "NumberOf", "TypeOf"];
    "AOC-E" "aoc" "The user of a channel is told what its call has cost, or its carrier says it, perhaps after the Hangup of the channel; as with AOC-D." ["Channel*", "ChargingAssociation", "Number", "Plan", "ID", "Charge", "Type", "BillingID", "Currency", "Name", "Cost", "Multiplier", "Units", "NumberOf", "TypeOf"];
    "HangupHandlerPush" "dialplan" "A hang-up handler was pushed on a channel." ["Channel*", "Handler"];
    "HangupHandlerPop" "dialplan" "A hang-up handler was taken off a channel." ["Channel*", "Handler"];
    "HangupHandlerRun" "dialplan" "A hang-up handler is about to run." ["Channel*", "Handler"];
    "RTCPSent" "reporting" "A report of RTCP left." ["Channel*", "To", "From", "SSRC", "PT", "ReportCount", "SentNTP", "SentRTP", "SentPackets", "SentOctets", "Report0SourceSSRC", "Report0FractionLost", "Report0CumulativeLost", "Report0HighestSequence", "Report0SequenceNumberCycles", "Report0IAJitter", "Report0LSR", "Report0DLSR"];
    "RTCPReceived" "reporting" "A report of RTCP came; RTT is in seconds." ["Channel*", "To", "From", "RTT", "SSRC", "PT", "ReportCount", "SentNTP", "SentRTP", "SentPackets", "SentOctets", "Report0SourceSSRC", "Report0FractionLost", "Report0CumulativeLost", "Report0HighestSequence", "Report0SequenceNumberCycles", "Report0IAJitter", "Report0LSR", "Report0DLSR"];
    "Hold" "call" "A user put the other party on hold." ["Channel*", "MusicClass"];
    "Unhold" "call" "A user took the other party back." ["Channel*"];
    "MusicOnHoldStart" "call" "Music on hold began." ["Channel*", "Class"];
    "MusicOnHoldStop" "call" "Music on hold ended." ["Channel*"];
    "SoftHangupRequest" "call" "A channel is to be hung up by us; Cause says who asks: 1 its technology, 4 the end of the server, 16 its dialplan is over, 32 anybody else." ["Channel*", "Cause"];
    "HangupRequest" "call" "The other side hung up." ["Channel*", "Cause"];
    "Hangup" "call" "A channel is gone." ["Channel*", "Cause", "Cause-txt"];
    "UserEvent" "user" "Word of the dialplan or of a client to all." ["Channel*", "UserEvent"];
    "OriginateResponse" "call" "What became of an asynchronous Originate." ["ActionID", "Response", "Channel", "Context", "Exten", "Application", "Data", "Reason", "Uniqueid", "CallerIDNum", "CallerIDName"];
    "PeerStatus" "system" "A phone registered, unregistered or became reachable or unreachable." ["ChannelType", "Peer", "PeerStatus", "Cause", "Address", "Time"];
    "ContactStatus" "system" "A contact changed." ["URI", "ContactStatus", "AOR", "EndpointName", "RoundtripUsec", "UserAgent"];
    "Registry" "system" "A registration of ours with another server was made, failed or was taken back." ["ChannelType", "Username", "Domain", "Status", "Cause"];
    "DeviceStateChange" "call" "The state of a device changed." ["Device", "State"];
    "PresenceStateChange" "call" "A presence provider says something else." ["Presentity", "Status", "Subtype", "Message"];
    "PresenceStatus" "call" "The presence of an extension changed whose hint names a provider." ["Exten", "Context", "Hint", "Status", "Subtype", "Message"];
    "ExtensionStatus" "call" "The state of an extension with a hint changed." ["Exten", "Context", "Hint", "Status", "StatusText"];
    "MessageWaiting" "call" "The messages in a mailbox changed." ["Channel*", "Mailbox", "Waiting", "New", "Old"];
    "SuccessfulAuth" "security" "Somebody logged in." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "UsingPassword", "SessionTV"];
    "ChallengeSent" "security" "A phone was asked for its password." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "Challenge"];
    "InvalidAccountID" "security" "A user who does not exist was refused." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "SessionTV"];
    "InvalidPassword" "security" "A wrong secret was refused." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "SessionTV"];
    "ChallengeResponseFailed" "security" "A wrong answer to a challenge was refused." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "Challenge", "Response", "ExpectedResponse", "SessionTV"];
    "FailedACL" "security" "An address that is not permitted was refused, or a registration with contacts that are not." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "ACLName", "SessionTV"];
    "Cdr" "cdr" "A call record was written; with enabled=yes in cdr_manager.conf. The fields that its [mappings] name come last." ["AccountCode", "Source", "Destination", "DestinationContext", "CallerID", "Channel", "DestinationChannel", "LastApplication", "LastData", "StartTime", "AnswerTime", "EndTime", "Duration", "BillableSeconds", "Disposition", "AMAFlags", "UniqueID", "UserField"];
    "CEL" "call" "A channel event was kept; with enabled=yes in the section [manager] of cel.conf." ["EventName", "AccountCode", "CallerIDnum", "CallerIDname", "CallerIDani", "CallerIDrdnis", "CallerIDdnid", "Exten", "Context", "Channel", "Application", "AppData", "EventTime", "AMAFlags", "UniqueID", "LinkedID", "Userfield", "Peer", "PeerAccount", "Extra"];
    "RequestNotAllowed" "security" "An action was refused that its session may not use." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "LocalAddress", "RemoteAddress", "RequestType", "SessionTV"];
    "RequestBadFormat" "security" "An action was refused that there is not, or that has no name." ["EventTV", "Severity", "Service", "EventVersion", "SessionID", "LocalAddress", "RemoteAddress", "RequestType", "SessionTV", "AccountID"];
    "AddressBanned" "security" "Somebody gave too many wrong passwords: one user at an address, or without AccountID all that comes from it." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "RemoteAddress"];
    "AddressUnbanned" "security" "A ban was taken back before its time." ["EventTV", "Severity", "Service", "EventVersion", "AccountID", "SessionID", "RemoteAddress"];
    "Reload" "system" "The configuration was read again." ["Module", "Status"];
    "Shutdown" "system" "The process stops." ["Shutdown", "Restart"];
}

/// What most events have room in, bytes: those of one channel and a bridge.
const EVENT_BYTES: usize = 768;

/// An event, written once for all who hear it.
#[derive(Debug)]
pub(crate) struct Event {
    pub name: &'static str,
    pub class: Classes,
    /// `Event` and `Privilege`.
    head: String,
    /// The rest, without the blank line.
    body: String,
}

impl Event {
    pub fn new(name: &'static str) -> Self {
        let row = EVENTS.iter().find(|row| row.name == name);
        let class = row.map_or("system", |row| row.class);
        let mut head = String::with_capacity(64);
        for part in ["Event: ", name, "\r\nPrivilege: ", class, ",all\r\n"] {
            head.push_str(part);
        }
        let class = Classes::named(class).unwrap_or(Classes::ALL);
        Self { name, class, head, body: String::with_capacity(EVENT_BYTES) }
    }
    pub fn with(mut self, fill: impl FnOnce(Message<'_>) -> Message<'_>) -> Self {
        fill(Message::open(&mut self.body));
        self
    }
    /// Appends it as one session sees it; `stamp` is the wall time in microseconds when it wants that, `system` the name of
    /// this system when it is to be told.
    pub fn write(&self, stamp: Option<i64>, system: &str, out: &mut String) {
        out.push_str(&self.head);
        if let Some(micros) = stamp {
            let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
            // Writing to a String cannot fail.
            let _ = write!(out, "Timestamp: {seconds}.{rest:06}\r\n");
        }
        if !system.is_empty() {
            Message::open(out).field("SystemName", system);
        }
        out.push_str(&self.body);
        out.push_str("\r\n");
    }
    /// Adds the variables that `channelvars` asks for of the channel in the fields with this prefix.
    pub fn add_variable(&mut self, prefix: &str, name: &str, value: &str) {
        let mut line = String::new();
        Message::open(&mut line).prefixed(prefix, "ChanVariable", format_args!("{name}={}", escaped(value)));
        // They are the last of the channel's fields.
        let starts =
            [format!("{prefix}Linkedid: "), format!("{prefix}Tenantid: "), format!("{prefix}ChanVariable: ")];
        let (mut at, mut end) = (0, None);
        for own in self.body.split_inclusive("\r\n") {
            at += own.len();
            if starts.iter().any(|start| own.starts_with(start)) {
                end = Some(at);
            }
        }
        self.body.insert_str(end.unwrap_or(self.body.len()), &line);
    }
    /// What filters look at.
    pub fn text(&self) -> String {
        format!("{}{}", self.head, self.body)
    }
}

/// Value of fields that are empty.
pub(crate) fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "<unknown>" } else { text }
}

/// Names of the fields that [`channel`] writes.
const CHANNEL: [&str; 14] = [
    "Channel",
    "ChannelState",
    "ChannelStateDesc",
    "CallerIDNum",
    "CallerIDName",
    "ConnectedLineNum",
    "ConnectedLineName",
    "Language",
    "AccountCode",
    "Context",
    "Exten",
    "Priority",
    "Uniqueid",
    "Linkedid",
];
/// Names of the fields that [`bridge`] writes.
const BRIDGE: [&str; 7] = [
    "BridgeUniqueid",
    "BridgeType",
    "BridgeTechnology",
    "BridgeCreator",
    "BridgeName",
    "BridgeNumChannels",
    "BridgeVideoSourceMode",
];

impl EventRow {
    /// Its fields one by one: `Channel*` and the like are what they stand for.
    pub fn all_fields(&self) -> Vec<String> {
        let whole = |field: &&str| -> Vec<String> {
            match field.strip_suffix('*') {
                None => vec![(*field).to_owned()],
                Some("Bridge") => BRIDGE.map(str::to_owned).to_vec(),
                Some("Channel") => CHANNEL.map(str::to_owned).to_vec(),
                Some(prefix) => CHANNEL.iter().map(|name| format!("{prefix}{name}")).collect(),
            }
        };
        self.fields.iter().flat_map(whole).collect()
    }
}

/// The fields of a channel, each name with `prefix` before it.
pub(crate) fn channel<'a>(message: Message<'a>, prefix: &str, of: &Snapshot) -> Message<'a> {
    message
        .prefixed(prefix, "Channel", &of.name)
        .prefixed(prefix, "ChannelState", of.state as u8)
        .prefixed(prefix, "ChannelStateDesc", of.state.name())
        .prefixed(prefix, "CallerIDNum", or_unknown(of.caller.number()))
        .prefixed(prefix, "CallerIDName", escaped(or_unknown(of.caller.name())))
        .prefixed(prefix, "ConnectedLineNum", or_unknown(of.connected.number()))
        .prefixed(prefix, "ConnectedLineName", escaped(or_unknown(of.connected.name())))
        .prefixed(prefix, "Language", &of.language)
        .prefixed(prefix, "AccountCode", &of.account)
        .prefixed(prefix, "Context", &of.location.context)
        .prefixed(prefix, "Exten", &of.location.exten)
        .prefixed(prefix, "Priority", of.location.priority)
        .prefixed(prefix, "Uniqueid", &of.uniqueid)
        .prefixed(prefix, "Linkedid", &of.linkedid)
        .optional_prefixed(prefix, "Tenantid", &of.tenant)
}

/// The status by which a channel's technology has refused the call, when it has.
fn tech_cause<'a>(message: Message<'a>, of: &Snapshot) -> Message<'a> {
    message.optional("TechCause", of.tech_cause.map(|status| status.to_string()).as_deref())
}

/// The fields of a bridge.
pub(crate) fn bridge<'a>(message: Message<'a>, of: &BridgeSnapshot) -> Message<'a> {
    prefixed_bridge(message, "", of)
}

/// The same with a word before each name: `OrigBridgeUniqueid`.
fn prefixed_bridge<'a>(message: Message<'a>, prefix: &str, of: &BridgeSnapshot) -> Message<'a> {
    message
        .prefixed(prefix, "BridgeUniqueid", &of.uid)
        .prefixed(prefix, "BridgeType", of.used_for.type_name())
        .prefixed(prefix, "BridgeTechnology", of.technology)
        .prefixed(prefix, "BridgeCreator", or_unknown(of.used_for.creator()))
        .prefixed(prefix, "BridgeName", or_unknown(&of.name))
        .prefixed(prefix, "BridgeNumChannels", of.count)
        .prefixed(prefix, "BridgeVideoSourceMode", of.video_mode)
        .optional_prefixed(prefix, "BridgeVideoSource", of.video_source.as_deref().unwrap_or_default())
}

/// The fields of a bridge with a word before each name; nothing of one that is not there.
fn bridge_within<'a>(message: Message<'a>, prefix: &str, of: Option<&BridgeSnapshot>) -> Message<'a> {
    match of {
        Some(of) => prefixed_bridge(message, prefix, of),
        None => message,
    }
}

/// The number that clients know for the state of an extension.
pub(crate) fn extension_status(state: DeviceState) -> (i8, &'static str) {
    match state {
        DeviceState::NotInUse | DeviceState::Unknown => (0, "Idle"),
        DeviceState::InUse => (1, "InUse"),
        DeviceState::Busy => (2, "Busy"),
        DeviceState::Unavailable | DeviceState::Invalid => (4, "Unavailable"),
        DeviceState::Ringing => (8, "Ringing"),
        DeviceState::RingInUse => (9, "InUse&Ringing"),
        DeviceState::OnHold => (16, "Hold"),
    }
}

/// The presentation as `CID-CallingPres` says it.
fn presentation(of: Presentation) -> String {
    format!("{} ({})", of.code(), presentation_words(of))
}

/// The presentation in words.
pub(crate) const fn presentation_words(of: Presentation) -> &'static str {
    match of {
        Presentation::AllowedNotScreened => "Presentation Allowed, Not Screened",
        Presentation::AllowedPassedScreen => "Presentation Allowed, Passed Screen",
        Presentation::AllowedFailedScreen => "Presentation Allowed, Failed Screen",
        Presentation::Allowed => "Presentation Allowed, Network Number",
        Presentation::ProhibNotScreened => "Presentation Prohibited, Not Screened",
        Presentation::ProhibPassedScreen => "Presentation Prohibited, Passed Screen",
        Presentation::ProhibFailedScreen => "Presentation Prohibited, Failed Screen",
        Presentation::Prohib => "Presentation Prohibited, Network Number",
        Presentation::Unavailable => "Number Unavailable",
    }
}

/// How long the process runs, and since when its configuration is in force.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ages {
    pub uptime: u64,
    pub last_reload: u64,
}

/// `FullyBooted`, as told to one session after login or to all.
pub(crate) fn fully_booted(ages: Ages) -> Event {
    Event::new("FullyBooted").with(|m| {
        m.field("Uptime", ages.uptime).field("LastReload", ages.last_reload).field("Status", "Fully Booted")
    })
}

/// A notice as an event.
pub(crate) fn event_of(notice: &Notice, ages: Ages) -> Event {
    let plain = |name, of: &Snapshot| Event::new(name).with(|m| channel(m, "", of));
    match notice {
        Notice::FullyBooted => fully_booted(ages),
        Notice::NewChannel(of) => plain("Newchannel", of),
        Notice::NewState(of) => plain("Newstate", of),
        Notice::NewConnectedLine(of) => plain("NewConnectedLine", of),
        Notice::Talking { channel, duration_ms: None } => plain("ChannelTalkingStart", channel),
        Notice::Talking { channel, duration_ms: Some(ms) } => {
            plain("ChannelTalkingStop", channel).with(|m| m.field("Duration", ms))
        }
        Notice::Charge { channel: of, advice } => {
            plain(super::charge::event_name(advice), of).with(|m| super::charge::fields(m, advice))
        }
        Notice::HangupHandler { channel, change, handler } => {
            let name = match change {
                HandlerChange::Push => "HangupHandlerPush",
                HandlerChange::Pop => "HangupHandlerPop",
                HandlerChange::Run => "HangupHandlerRun",
            };
            plain(name, channel).with(|m| m.field("Handler", handler))
        }
        Notice::Hold { channel: of, class } => plain("Hold", of)
            .with(|m| m.optional("MusicClass", Some(class).filter(|class| !class.is_empty()))),
        Notice::Agi { channel: of, change } => agi(of, change),
        Notice::Unhold(of) => plain("Unhold", of),
        Notice::MusicOnHoldStop(of) => plain("MusicOnHoldStop", of),
        Notice::NewExten { channel: of, application, data } => plain("Newexten", of).with(|m| {
            m.field("Extension", &of.location.exten).field("Application", application).field("AppData", data)
        }),
        Notice::NewCallerId(of) => plain("NewCallerid", of)
            .with(|m| m.field("CID-CallingPres", presentation(of.caller.number_presentation))),
        Notice::NewAccountCode { channel: of, old } => {
            plain("NewAccountCode", of).with(|m| m.field("OldAccountCode", old))
        }
        Notice::VarSet { channel: of, variable, value } => {
            let event = match of {
                Some(of) => plain("VarSet", of),
                None => Event::new("VarSet").with(|m| m.field("Channel", "none").field("Uniqueid", "none")),
            };
            event.with(|m| m.field("Variable", variable).field("Value", escaped(value)))
        }
        Notice::MusicOnHoldStart { channel: of, class } => {
            plain("MusicOnHoldStart", of).with(|m| m.field("Class", class))
        }
        Notice::SoftHangup { channel: of, by } => {
            plain("SoftHangupRequest", of).with(|m| tech_cause(m.field("Cause", *by as u8), of))
        }
        Notice::HangupRequest { channel: of, cause } => plain("HangupRequest", of).with(|m| {
            let cause = cause.filter(|cause| cause.0 > 0).map(|cause| cause.0.to_string());
            tech_cause(m.optional("Cause", cause.as_deref()), of)
        }),
        Notice::Hangup { channel: of, cause } => plain("Hangup", of)
            .with(|m| tech_cause(m.field("Cause", cause.0).field("Cause-txt", cause.text()), of)),
        Notice::UserEvent { channel: of, name, fields } => user_event(of.as_ref(), None, name, fields),
        Notice::ProgramEvent { channel: of, bridge, name, fields } => {
            user_event(Some(of), bridge.as_ref(), name, fields)
        }
        Notice::DialBegin { caller, dest, dial_string } => {
            dial("DialBegin", caller.as_ref(), dest).with(|m| m.field("DialString", dial_string))
        }
        Notice::DialState { caller, dest, status, .. } => {
            dial("DialState", caller.as_ref(), dest).with(|m| m.field("DialStatus", status))
        }
        Notice::DialEnd { caller, dest, status, forward, .. } => dial("DialEnd", caller.as_ref(), dest)
            .with(|m| m.optional("Forward", forward.as_deref()).field("DialStatus", status)),
        Notice::BridgeCreate { bridge: of } => Event::new("BridgeCreate").with(|m| bridge(m, of)),
        Notice::LocalBridge { first, second, optimizes } => Event::new("LocalBridge").with(|m| {
            channel(channel(m, "LocalOne", first), "LocalTwo", second)
                .field("Context", &second.location.context)
                .field("Exten", &second.location.exten)
                .field("LocalOptimization", yes_no(*optimizes))
        }),
        Notice::LocalOptimizationBegin { first, second, source, id } => Event::new("LocalOptimizationBegin")
            .with(|m| {
                let m = channel(channel(m, "LocalOne", first), "LocalTwo", second);
                channel(m, "Source", source).field("DestUniqueId", &second.uniqueid).field("Id", id)
            }),
        Notice::LocalOptimizationEnd { first, second, id } => Event::new("LocalOptimizationEnd").with(|m| {
            let m = channel(channel(m, "LocalOne", first), "LocalTwo", second);
            // The field's servers say No whether it has come about or not.
            m.field("Success", "No").field("Id", id)
        }),
        Notice::Rtcp { channel: of, local, report } => rtcp(of, *local, report),
        Notice::BlindTransfer { transferer, transferee, bridge: of, external, to, .. } => {
            Event::new("BlindTransfer").with(|m| {
                let m = channel(m.field("Result", "Success"), "Transferer", transferer);
                let m = match transferee {
                    Some(transferee) => channel(m, "Transferee", transferee),
                    None => m,
                };
                bridge(m, of)
                    .field("IsExternal", yes_no(*external))
                    .field("Context", &to.0)
                    .field("Extension", &to.1)
            })
        }
        Notice::AttendedTransfer {
            transferer,
            second,
            transferee,
            target,
            link,
            bridges: [first_bridge, second_bridge],
            stays,
            external,
        } => Event::new("AttendedTransfer").with(|m| {
            let m = channel(m.field("Result", "Success"), "OrigTransferer", transferer);
            let m = bridge_within(m, "Orig", first_bridge.as_ref());
            let m = channel(m, "SecondTransferer", second.as_ref().unwrap_or(transferer));
            let m = bridge_within(m, "Second", second_bridge.as_ref());
            let m = match transferee {
                Some(transferee) => channel(m, "Transferee", transferee),
                None => m,
            };
            let (m, kind) = match (target, link) {
                (_, Some((one, two))) => (channel(channel(m, "LocalOne", one), "LocalTwo", two), "Link"),
                (Some(target), None) => (channel(m, "TransferTarget", target), "Bridge"),
                (None, None) => (m, "App"),
            };
            let app = (kind == "App")
                .then(|| call::transfer_app(transferer, second.as_deref(), second_bridge.is_some()));
            m.field("IsExternal", yes_no(*external))
                .field("DestType", kind)
                .optional("DestBridgeUniqueid", stays.as_deref())
                .optional("DestApp", app)
        }),
        Notice::SpyStart { spyer, spyee } => {
            Event::new("ChanSpyStart").with(|m| channel(channel(m, "Spyer", spyer), "Spyee", spyee))
        }
        Notice::SpyStop { spyer, spyee } => Event::new("ChanSpyStop").with(|m| {
            let m = channel(m, "Spyer", spyer);
            match spyee {
                Some(spyee) => channel(m, "Spyee", spyee),
                None => m,
            }
        }),
        Notice::BridgeDestroy { bridge: of } => Event::new("BridgeDestroy").with(|m| bridge(m, of)),
        Notice::BridgeEnter { bridge: of, channel: who, instead_of } => Event::new("BridgeEnter")
            .with(|m| channel(bridge(m, of), "", who).optional("SwapUniqueid", instead_of.as_deref())),
        Notice::BridgeLeave { bridge: of, channel: who } => {
            Event::new("BridgeLeave").with(|m| channel(bridge(m, of), "", who))
        }
        Notice::ConferenceStart { conference, bridge: of } => {
            Event::new("ConfbridgeStart").with(|m| bridge(m.field("Conference", conference), of))
        }
        Notice::ConferenceEnd { conference, bridge: of } => {
            Event::new("ConfbridgeEnd").with(|m| bridge(m.field("Conference", conference), of))
        }
        Notice::ConferenceRecord { conference, bridge: of, runs } => {
            let name = if *runs { "ConfbridgeRecord" } else { "ConfbridgeStopRecord" };
            Event::new(name).with(|m| bridge(m.field("Conference", conference), of))
        }
        Notice::ConferenceVideo { bridge: of, previous, .. } => {
            Event::new("BridgeVideoSourceUpdate").with(|m| {
                bridge(m, of).field("BridgePreviousVideoSource", previous.as_deref().unwrap_or_default())
            })
        }
        Notice::ConferenceMember { .. } => conference_member(notice),
        Notice::Queue { queue, event, caller, member } => {
            super::queues::event(queue, event, caller.as_deref(), member.as_deref())
        }
        Notice::Pickup { channel: of, target } => plain("Pickup", of).with(|m| channel(m, "Target", target)),
        Notice::Parking(of) => super::parking::event(of),
        // Told by the other dialect; nobody asks for this one.
        Notice::Stasis(_) => Event::new("Stasis"),
        Notice::Monitor { channel: of, by, change } => monitor(of, by, change),
        Notice::Dtmf { channel: of, digit, duration_ms, received } => {
            let direction = if *received { "Received" } else { "Sent" };
            let name = if duration_ms.is_some() { "DTMFEnd" } else { "DTMFBegin" };
            plain(name, of).with(|m| {
                m.field("Digit", digit.to_char())
                    .optional("DurationMs", *duration_ms)
                    .field("Direction", direction)
            })
        }
        Notice::OriginateResponse {
            action_id,
            channel,
            target,
            location,
            application,
            caller,
            success,
            reason,
        } => {
            let action_id = Some(action_id).filter(|id| !id.is_empty());
            Event::new("OriginateResponse").with(|m| {
                m.optional("ActionID", action_id)
                    .field("Response", if *success { "Success" } else { "Failure" })
                    .field("Channel", channel.as_ref().map_or(target.as_str(), |of| &*of.name))
                    .optional("Context", application.is_none().then_some(&location.0))
                    .optional("Exten", application.is_none().then_some(&location.1))
                    .optional("Application", application.as_ref().map(|(name, _)| name.as_str()))
                    .optional("Data", application.as_ref().map(|(_, data)| data.as_str()))
                    .field("Reason", reason)
                    .field("Uniqueid", channel.as_ref().map_or("<unknown>", |of| &*of.uniqueid))
                    .field("CallerIDNum", or_unknown(caller.number()))
                    .field("CallerIDName", or_unknown(caller.name()))
            })
        }
        Notice::PeerStatus { channel_type, peer, status, address, cause, time_ms } => {
            Event::new("PeerStatus").with(|m| {
                m.field("ChannelType", channel_type)
                    .field("Peer", peer)
                    .field("PeerStatus", status)
                    .optional("Cause", Some(cause).filter(|cause| !cause.is_empty()))
                    .optional("Address", Some(address).filter(|address| !address.is_empty()))
                    .optional("Time", *time_ms)
            })
        }
        Notice::ContactStatus { uri, status, aor, endpoint, roundtrip_us } => Event::new("ContactStatus")
            .with(|m| {
                m.field("URI", uri)
                    .field("ContactStatus", status)
                    .field("AOR", aor)
                    .field("EndpointName", endpoint)
                    .field("RoundtripUsec", roundtrip_us.unwrap_or(0))
            }),
        Notice::Registry { channel_type, username, domain, status, cause } => {
            Event::new("Registry").with(|m| {
                m.field("ChannelType", channel_type)
                    .field("Username", username)
                    .field("Domain", domain)
                    .field("Status", status)
                    .optional("Cause", Some(cause).filter(|cause| !cause.is_empty()))
            })
        }
        Notice::DeviceStateChange { device, state } => device_state(device, state),
        Notice::PresenceStateChange { presentity, state, subtype, message } => {
            Event::new("PresenceStateChange")
                .with(|m| presence_change(m.field("Presentity", presentity), state, subtype, message))
        }
        Notice::PresenceStatus { exten, context, hint, state, subtype, message } => {
            Event::new("PresenceStatus").with(|m| {
                let m = m.field("Exten", exten).field("Context", context).field("Hint", hint);
                presence(m, state, subtype, message)
            })
        }
        Notice::ExtensionStatus { exten, context, hint, state } => {
            Event::new("ExtensionStatus").with(|m| extension(m, exten, context, hint, *state))
        }
        Notice::MessageWaiting { channel: of, mailbox, messages } => Event::new("MessageWaiting").with(|m| {
            let m = of.as_ref().into_iter().fold(m, |m, of| channel(m, "", of));
            m.field("Mailbox", mailbox)
                .field("Waiting", u8::from(messages.new > 0))
                .field("New", messages.new)
                .field("Old", messages.old)
        }),
        Notice::Security(attempt) => Event::new(attempt.event)
            .with(|m| attempt.fields().fold(m, |m, (name, value)| m.field(name, value))),
        Notice::Cdr { fields } => {
            Event::new("Cdr").with(|m| fields.iter().fold(m, |m, (name, value)| m.field(name, value)))
        }
        Notice::Agent { agent, channel: of, change } => {
            let (name, seconds) = match change {
                AgentChange::Login => ("AgentLogin", None),
                AgentChange::Logoff(seconds) => ("AgentLogoff", Some(seconds)),
            };
            Event::new(name).with(|m| {
                let m = match of {
                    Some(of) => channel(m, "", of),
                    None => m,
                };
                let m = m.field("Agent", agent);
                match seconds {
                    Some(seconds) => m.field("Logintime", seconds),
                    None => m,
                }
            })
        }
        Notice::Cel { fields } => {
            Event::new("CEL").with(|m| fields.iter().fold(m, |m, (name, value)| m.field(name, value)))
        }
        Notice::Reload { module, status } => {
            Event::new("Reload").with(|m| m.field("Module", module).field("Status", status))
        }
        Notice::Shutdown { graceful, restart } => Event::new("Shutdown").with(|m| {
            m.field("Shutdown", if *graceful { "Cleanly" } else { "Uncleanly" })
                .field("Restart", if *restart { "True" } else { "False" })
        }),
    }
}

/// Yes or No.
pub(crate) const fn yes_no(yes: bool) -> &'static str {
    if yes { "Yes" } else { "No" }
}

fn conference_member(notice: &Notice) -> Event {
    use call::conference::MemberChange;
    let Notice::ConferenceMember { conference, bridge: of, channel: who, is_admin, is_muted, change } =
        notice
    else {
        return Event::new("ConfbridgeJoin");
    };
    let name = match change {
        MemberChange::Entered => "ConfbridgeJoin",
        MemberChange::Left => "ConfbridgeLeave",
        MemberChange::Muted => "ConfbridgeMute",
        MemberChange::Unmuted => "ConfbridgeUnmute",
        MemberChange::Talking(_) => "ConfbridgeTalking",
    };
    Event::new(name).with(|m| {
        let m = bridge(m.field("Conference", conference), of);
        let m = channel(m, "", who);
        let m = match change {
            MemberChange::Talking(talks) => m.field("TalkingStatus", if *talks { "on" } else { "off" }),
            _ => m,
        };
        let m = m.field("Admin", yes_no(*is_admin));
        if *change == MemberChange::Entered { m.field("Muted", yes_no(*is_muted)) } else { m }
    })
}

fn agi(of: &Snapshot, change: &AgiChange) -> Event {
    let event = |name| Event::new(name).with(|m| channel(m, "", of));
    match change {
        AgiChange::AsyncStart(env) => event("AsyncAGIStart").with(|m| m.field("Env", uri_escaped(env))),
        AgiChange::AsyncExec { id, result } => event("AsyncAGIExec").with(|m| {
            let id = Some(id.as_str()).filter(|id| !id.is_empty());
            m.optional("CommandID", id).field("Result", uri_escaped(result))
        }),
        AgiChange::AsyncEnd => event("AsyncAGIEnd"),
        AgiChange::ExecStart { id, command } => {
            event("AGIExecStart").with(|m| m.field("Command", command).field("CommandId", id))
        }
        AgiChange::ExecEnd { id, command, code, result } => event("AGIExecEnd").with(|m| {
            m.field("Command", command)
                .field("CommandId", id)
                .field("ResultCode", code)
                .field("Result", result)
        }),
    }
}

/// Seconds between NTP's epoch (1900) and Unix's (1970), in which the field tells the time.
const NTP_UNIX: u64 = 2_208_988_800;

/// A report of RTCP. Both ends as host and port; the delay since the last report in seconds.
fn rtcp(of: &Snapshot, local: SocketAddr, report: &RtcpReport) -> Event {
    let name = if report.sent { "RTCPSent" } else { "RTCPReceived" };
    let (from, to) = if report.sent { (local, report.peer) } else { (report.peer, local) };
    let seconds = |fraction: f64| format!("{fraction:.4}");
    Event::new(name).with(|m| {
        let m = channel(m, "", of).field("To", to).field("From", from);
        let m = if report.sent { m } else { m.field("RTT", seconds(f64::from(report.round_trip_us) / 1e6)) };
        let m = m
            .field("SSRC", format_args!("{:#010x}", report.ssrc))
            .field("PT", if report.sender.is_some() { "200(SR)" } else { "201(RR)" })
            .field("ReportCount", u8::from(report.block.is_some()));
        let m = match &report.sender {
            Some(sender) => {
                let micros = ((sender.ntp & 0xffff_ffff) * 1_000_000) >> 32;
                let whole = (sender.ntp >> 32).saturating_sub(NTP_UNIX);
                m.field("SentNTP", format_args!("{whole}.{micros:06}"))
                    .field("SentRTP", sender.timestamp)
                    .field("SentPackets", sender.packets)
                    .field("SentOctets", sender.bytes)
            }
            None => m,
        };
        let Some(block) = &report.block else { return m };
        m.field("Report0SourceSSRC", format_args!("{:#010x}", block.ssrc))
            .field("Report0FractionLost", block.fraction_lost)
            .field("Report0CumulativeLost", block.lost)
            .field("Report0HighestSequence", block.highest & 0xffff)
            .field("Report0SequenceNumberCycles", block.highest >> 16)
            .field("Report0IAJitter", block.jitter)
            .field("Report0LSR", block.last_report)
            .field("Report0DLSR", seconds(f64::from(block.delay) / 65_536.0))
    })
}

/// Text in which everything but what RFC 3986 §2.3 leaves alone is escaped.
fn uri_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn device_state(device: &str, state: &str) -> Event {
    Event::new("DeviceStateChange").with(|m| m.field("Device", device).field("State", state))
}

/// What a presence provider says.
pub(crate) fn presence<'a>(of: Message<'a>, state: &str, subtype: &str, message: &str) -> Message<'a> {
    of.field("Status", state).field("Subtype", subtype).field("Message", message)
}

/// The same of a provider, whose words may hold anything.
fn presence_change<'a>(of: Message<'a>, state: &str, subtype: &str, message: &str) -> Message<'a> {
    presence(of, state, &escaped(subtype), &escaped(message))
}

/// The fields of an extension with a hint.
pub(crate) fn extension<'a>(
    message: Message<'a>,
    exten: &str,
    context: &str,
    hint: &str,
    state: DeviceState,
) -> Message<'a> {
    let (status, text) = extension_status(state);
    message
        .field("Exten", exten)
        .field("Context", context)
        .field("Hint", hint)
        .field("Status", status)
        .field("StatusText", text)
}

/// The channels that an event's fields tell of, each with the prefix of its fields.
pub(crate) fn channels_of(notice: &Notice) -> impl Iterator<Item = (&'static str, &Snapshot)> {
    let (own, dest) = match notice {
        Notice::NewChannel(of)
        | Notice::NewState(of)
        | Notice::NewCallerId(of)
        | Notice::NewConnectedLine(of)
        | Notice::Hold { channel: of, .. }
        | Notice::Unhold(of)
        | Notice::MusicOnHoldStop(of)
        | Notice::NewExten { channel: of, .. }
        | Notice::NewAccountCode { channel: of, .. }
        | Notice::BridgeEnter { channel: of, .. }
        | Notice::BridgeLeave { channel: of, .. }
        | Notice::ConferenceMember { channel: of, .. }
        | Notice::Monitor { channel: of, .. }
        | Notice::Talking { channel: of, .. }
        | Notice::Charge { channel: of, .. }
        | Notice::HangupHandler { channel: of, .. }
        | Notice::Agi { channel: of, .. }
        | Notice::Dtmf { channel: of, .. }
        | Notice::Rtcp { channel: of, .. }
        | Notice::MusicOnHoldStart { channel: of, .. }
        | Notice::SoftHangup { channel: of, .. }
        | Notice::HangupRequest { channel: of, .. }
        | Notice::ProgramEvent { channel: of, .. }
        | Notice::Hangup { channel: of, .. } => (Some(of), None),
        Notice::VarSet { channel, .. } | Notice::UserEvent { channel, .. } => (channel.as_ref(), None),
        Notice::Queue { caller, member, .. } => (caller.as_deref(), member.as_deref()),
        Notice::Agent { channel, .. } => (channel.as_deref(), None),
        Notice::DialBegin { caller, dest, .. }
        | Notice::DialState { caller, dest, .. }
        | Notice::DialEnd { caller, dest, .. } => (caller.as_ref(), Some(dest)),
        Notice::FullyBooted
        | Notice::BridgeCreate { .. }
        | Notice::BridgeDestroy { .. }
        | Notice::ConferenceStart { .. }
        | Notice::ConferenceEnd { .. }
        | Notice::ConferenceRecord { .. }
        | Notice::ConferenceVideo { .. }
        | Notice::OriginateResponse { .. }
        | Notice::PeerStatus { .. }
        | Notice::ContactStatus { .. }
        | Notice::Registry { .. }
        | Notice::DeviceStateChange { .. }
        | Notice::PresenceStateChange { .. }
        | Notice::PresenceStatus { .. }
        | Notice::ExtensionStatus { .. }
        | Notice::LocalBridge { .. }
        | Notice::LocalOptimizationBegin { .. }
        | Notice::LocalOptimizationEnd { .. }
        | Notice::Pickup { .. }
        | Notice::Parking(_)
        | Notice::Stasis(_)
        | Notice::BlindTransfer { .. }
        | Notice::AttendedTransfer { .. }
        | Notice::SpyStart { .. }
        | Notice::SpyStop { .. }
        | Notice::MessageWaiting { .. }
        | Notice::Security(_)
        | Notice::Cdr { .. }
        | Notice::Cel { .. }
        | Notice::Reload { .. }
        | Notice::Shutdown { .. } => (None, None),
    };
    own.map(|of| ("", of)).into_iter().chain(dest.map(|of| ("Dest", of)))
}

/// What C escapes, escaped as C does, so that a client can tell a line break of a value from a blank.
fn escaped(value: &str) -> Cow<'_, str> {
    let escape = |c: char| {
        Some(match c {
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{b}' => 'v',
            '\\' | '\'' | '"' | '?' => c,
            _ => return None,
        })
    };
    // Nearly all values have nothing of this.
    if !value.chars().any(|c| escape(c).is_some()) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.chars().fold(String::with_capacity(value.len() + 8), |mut out, c| {
        match escape(c) {
            Some(letter) => out.extend(['\\', letter]),
            None => out.push(c),
        }
        out
    }))
}

fn user_event(
    of: Option<&Snapshot>,
    within: Option<&BridgeSnapshot>,
    name: &str,
    fields: &[(String, String)],
) -> Event {
    Event::new("UserEvent").with(|m| {
        let m = match of {
            Some(of) => channel(m, "", of),
            None => m,
        };
        let m = bridge_within(m, "", within);
        fields.iter().fold(m.field("UserEvent", name), |m, (key, value)| m.field(key, value))
    })
}

/// The events of MixMonitor, and of Monitor as Asterisk 16 had them.
fn monitor(of: &Snapshot, by: &str, change: &MonitorChange) -> Event {
    let mixed = by != "Monitor";
    let name = match change {
        MonitorChange::Started if mixed => "MixMonitorStart",
        MonitorChange::Started => "MonitorStart",
        MonitorChange::Stopped | MonitorChange::Failed(..) if mixed => "MixMonitorStop",
        MonitorChange::Stopped | MonitorChange::Failed(..) => "MonitorStop",
        MonitorChange::Muted { .. } => "MixMonitorMute",
    };
    Event::new(name).with(|m| {
        let m = channel(m, "", of);
        match change {
            MonitorChange::Started | MonitorChange::Stopped => m,
            MonitorChange::Failed(file, why) => m.field("File", file).field("Reason", why),
            MonitorChange::Muted { read, write, silent } => {
                let direction = match (read, write) {
                    (true, true) => "both",
                    (true, false) => "read",
                    (false, _) => "write",
                };
                m.field("Direction", direction).field("State", u8::from(*silent))
            }
        }
    })
}

fn dial(name: &'static str, caller: Option<&Snapshot>, dest: &Snapshot) -> Event {
    Event::new(name).with(|m| {
        let m = match caller {
            Some(caller) => channel(m, "", caller),
            None => m,
        };
        channel(m, "Dest", dest)
    })
}
