//! The actions and events that 99 % of uses need, by the counts of the wild, against the table.
//!
//! A name whose subsystem does not exist is named with that subsystem; it fails here as soon as the table has it, so that
//! the list stays true.

use super::super::table;
use super::*;

/// Actions, the most used first.
const ACTIONS: &[&str] = &[
    "Originate",
    "Command",
    "SetVar",
    "Hangup",
    "UpdateConfig",
    "Redirect",
    "MWIUpdate",
    "Login",
    "MessageSend",
    "GetConfig",
    "Ping",
    "UserEvent",
    "PJSIPQualify",
    "WaitEvent",
    "Logoff",
    "PJSIPShowEndpoint",
    "AOCMessage",
    "Bridge",
    "Status",
    "DialplanExtensionAdd",
    "PlayDTMF",
    "PlayMF",
    "MailboxCount",
    "CreateConfig",
    "PJSIPNotify",
    "MixMonitorMute",
    "DialplanExtensionRemove",
    "ShowDialPlan",
    "PJSIPShowSubscriptionsInbound",
    "ConfbridgeKick",
    "Monitor",
    "MixMonitor",
    "StopMixMonitor",
    "SendText",
    "DeviceStateList",
    "ExtensionStateList",
    "BridgeList",
    "BridgeInfo",
    "MWIGet",
    "MWIDelete",
    "DBPut",
    "DBGet",
    "DBDel",
    "DBDelTree",
    "Getvar",
    "LocalOptimizeAway",
    "Challenge",
    "SIPpeers",
    "CoreShowChannels",
    "ExtensionState",
    "AbsoluteTimeout",
    "MailboxStatus",
    "VoicemailUsersList",
    "VoicemailUserStatus",
    "VoicemailRefresh",
    "PresenceStateList",
    "PresenceState",
    // Those that the requirements name besides.
    "Atxfer",
    "BlindTransfer",
    "Events",
    "Filter",
    "PJSIPShowEndpoints",
    "PJSIPShowAors",
    "PJSIPShowAuths",
    "PJSIPShowContacts",
    "PJSIPShowRegistrationsInbound",
    "PJSIPShowRegistrationsOutbound",
    "PJSIPShowRegistrationInboundContactStatuses",
    "PJSIPShowResourceLists",
    "PJSIPShowSubscriptionsOutbound",
    "PJSIPRegister",
    "PJSIPUnregister",
    "DBGetTree",
    "GetConfigJSON",
    "ListCategories",
    "ModuleCheck",
    "ModuleLoad",
    "Reload",
    "CoreSettings",
    "CoreStatus",
    "ListCommands",
    "MuteAudio",
    "ConfbridgeList",
    "ConfbridgeListRooms",
    "ConfbridgeMute",
    "ConfbridgeUnmute",
    "ConfbridgeLock",
    "ConfbridgeUnlock",
    "LoggerRotate",
    "QueueStatus",
    "QueueSummary",
    "QueueAdd",
    "QueueRemove",
    "QueuePause",
    "QueuePenalty",
    "QueueLog",
    "QueueReload",
    "Agents",
    "AgentLogoff",
    "AGI",
    "Park",
    "ParkedCalls",
    "Parkinglots",
];

/// Actions of subsystems that do not exist.
const NO_SUBSYSTEM: &[(&str, &str)] = &[];

/// Events, the most used first.
const HEARD: &[&str] = &[
    "UserEvent",
    "Hangup",
    "BridgeEnter",
    "Newexten",
    "VarSet",
    "ConfbridgeJoin",
    "ConfbridgeLeave",
    "MusicOnHoldStart",
    "DialEnd",
    "Newchannel",
    "DialBegin",
    "ConfbridgeEnd",
    "ConfbridgeStart",
    "MusicOnHoldStop",
    "BridgeLeave",
    "RTCPReceived",
    "ExtensionStatus",
    "AttendedTransfer",
    "Registry",
    "NewConnectedLine",
    "MessageWaiting",
    "BlindTransfer",
    "PeerStatus",
    "SoftHangupRequest",
    "LocalBridge",
    "FullyBooted",
    "DeviceStateChange",
    "ContactStatus",
    "HangupRequest",
    "OriginateResponse",
    // Those that go with them.
    "RTCPSent",
    "AgentCalled",
    "QueueCallerJoin",
    "QueueMemberStatus",
    "LocalOptimizationBegin",
    "LocalOptimizationEnd",
    "Newstate",
    "NewCallerid",
    "NewAccountCode",
    "DialState",
    "BridgeCreate",
    "BridgeDestroy",
    "DTMFBegin",
    "DTMFEnd",
    "Hold",
    "Unhold",
    "ConfbridgeTalking",
    "ConfbridgeMute",
    "ConfbridgeUnmute",
    "MixMonitorStart",
    "MixMonitorStop",
    "MixMonitorMute",
    "AsyncAGIStart",
    "AsyncAGIExec",
    "AsyncAGIEnd",
    "AGIExecStart",
    "AGIExecEnd",
    "SuccessfulAuth",
    "InvalidAccountID",
    "InvalidPassword",
    "ChallengeResponseFailed",
    "FailedACL",
    "Reload",
    "Shutdown",
    "Cdr",
    "CEL",
    "AgentLogin",
    "AgentLogoff",
    "PresenceStateChange",
    "PresenceStatus",
    "HangupHandlerPush",
    "HangupHandlerPop",
    "HangupHandlerRun",
    "Pickup",
    "ParkedCall",
    "UnParkedCall",
    "ParkedCallTimeOut",
    "ParkedCallGiveUp",
    "ParkedCallSwap",
];

/// Events of subsystems that do not exist, and of what does not happen here.
const UNHEARD: &[(&str, &str)] = &[
    // Channels change places and keep their names; nobody is moved out of a bridge by another bridge.
    ("Rename", "masquerades"),
    ("BridgeMerge", "bridges that merge"),
];

#[test]
fn every_action_that_99_percent_of_uses_need_is_in_the_table_if_its_subsystem_exists() {
    let missing: Vec<&&str> = ACTIONS.iter().filter(|name| table::lookup(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} are not in the table");
    for (name, subsystem) in NO_SUBSYSTEM {
        assert!(
            table::lookup(name).is_none(),
            "{name} is in the table: there are {subsystem}, so that it goes to the others here"
        );
    }
}

#[test]
fn every_event_that_99_percent_of_uses_need_is_in_the_table_if_its_subsystem_exists() {
    let has = |name: &str| EVENTS.iter().any(|row| row.name == name);
    let missing: Vec<&&str> = HEARD.iter().filter(|name| !has(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in the table");
    for (name, subsystem) in UNHEARD {
        assert!(
            !has(name),
            "{name} is in the table: there are {subsystem}, so that it goes to the others here"
        );
    }
}

#[test]
fn every_row_has_a_sentence_known_classes_and_fields_that_differ() {
    for row in table::actions() {
        assert!(row.synopsis.ends_with('.'), "{}: {}", row.name, row.synopsis);
        assert!(row.class.iter().all(|class| Classes::named(class).is_some()), "{}", row.name);
        let mut names: Vec<String> = row.fields.iter().map(|field| field.name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), row.fields.len(), "{}", row.name);
    }
    for row in EVENTS {
        assert!(row.synopsis.ends_with('.'), "{}: {}", row.name, row.synopsis);
        assert!(Classes::named(row.class).is_some(), "{}", row.name);
    }
}
