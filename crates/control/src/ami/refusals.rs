//! What the field says of actions that lack something: each has words of its own for a header that is missing and for a
//! channel that is not there, and programs compare them.

/// What an action without this header is told.
pub(super) fn missing(action: &str, header: &str) -> String {
    let own = MISSING.iter().find(|(of, names, _)| is_of(of, action) && names.contains(&header));
    own.map_or_else(|| format!("{header} not specified"), |(.., text)| (*text).to_owned())
}

/// What an action is told whose header names a channel that is not there.
pub(super) fn no_channel(action: &str, header: &str, name: &str) -> String {
    let own = NO_CHANNEL.iter().find(|(of, at, _)| is_of(of, action) && at.is_none_or(|at| at == header));
    own.map_or_else(|| "No such channel".to_owned(), |(.., text)| text.replace("{}", name))
}

/// Whether a row is about an action: one of its names; a `*` at the end of one stands for any rest.
fn is_of(names: &[&str], action: &str) -> bool {
    names.iter().any(|name| match name.strip_suffix('*') {
        Some(start) => action.starts_with(start),
        None => *name == action,
    })
}

/// Actions, headers and what is said without one of these; of all others it is `Header not specified`.
const MISSING: &[(&[&str], &[&str], &str)] = &[
    (&["AbsoluteTimeout"], &["Timeout"], "No timeout specified"),
    (&["AGI"], &["Channel", "Command"], "Both, Channel and Command are *required*"),
    (&["AgentLogoff"], &["Agent"], "No agent specified"),
    (&["Atxfer", "BlindTransfer"], &["Exten"], "No extension specified"),
    (&["Bridge"], &["Channel1", "Channel2"], "Missing channel parameter in request"),
    (&["BridgeInfo", "BridgeDestroy"], &["BridgeUniqueid"], "BridgeUniqueid must be provided"),
    (&["BridgeKick"], &["Channel"], "Channel must be provided"),
    (&["BridgeTechnology*"], &["BridgeTechnology"], "BridgeTechnology must be provided"),
    (&["Challenge"], &["AuthType"], "Must specify AuthType"),
    (&["Command"], &["Command"], "No command provided"),
    (&["Confbridge*"], &["Conference"], "No Conference name provided."),
    (&["Confbridge*"], &["Channel"], "No channel name provided."),
    (&["DBGet", "DBDel", "DBDelTree"], &["Family"], "No family specified."),
    (&["DBGet", "DBDel"], &["Key"], "No key specified."),
    (&["DBPut"], &["Family"], "No family specified"),
    (&["DBPut"], &["Key"], "No key specified"),
    (
        &["DialplanExtensionAdd"],
        &["Context", "Extension", "Priority", "Application"],
        "Context, Extension, Priority, and Application must be defined for DialplanExtensionAdd.",
    ),
    (
        &["DialplanExtensionRemove"],
        &["Context", "Extension"],
        "Context and Extension must be provided for DialplanExtensionRemove.",
    ),
    (&["Events"], &["EventMask"], "Invalid event mask"),
    (&["ExtensionState"], &["Exten"], "Extension not specified"),
    (&["Getvar", "Setvar"], &["Variable"], "No variable specified"),
    (
        &["GetConfig*", "ListCategories", "CreateConfig", "UpdateConfig"],
        &["Filename", "SrcFilename", "DstFilename"],
        "Filename not specified",
    ),
    (&["LocalOptimizeAway"], &["Channel"], "'Channel' not specified."),
    (&["ModuleCheck"], &["Module"], "Module not loaded"),
    (&["PlayDTMF", "PlayMF", "SendFlash"], &["Channel"], "Channel not found"),
    (&["PlayDTMF", "PlayMF"], &["Digit"], "No digit specified"),
    (&["PresenceState"], &["Provider"], "No provider specified"),
    (&["QueueAdd", "QueueChange*", "QueueWithdraw*"], &["Queue"], "'Queue' not specified."),
    (&["QueueAdd"], &["Interface"], "'Interface' not specified."),
    (&["QueueChange*", "QueueWithdraw*"], &["Caller"], "'Caller' not specified."),
    (&["QueueChange*"], &["Priority"], "'Priority' not specified."),
    (&["QueueRemove"], &["Queue", "Interface"], "Need 'Queue' and 'Interface' parameters."),
    (&["QueuePause"], &["Interface", "Paused"], "Need 'Interface' and 'Paused' parameters."),
    (&["QueuePenalty"], &["Interface", "Penalty"], "Need 'Interface' and 'Penalty' parameters."),
    (&["QueueMemberRingInUse"], &["Interface", "RingInUse"], "Need 'Interface' and 'RingInUse' parameters."),
    (&["QueueLog"], &["Queue", "Event"], "Need 'Queue' and 'Event' parameters."),
    (&["SendText"], &["Message"], "No message specified"),
    (
        &["VoicemailUserStatus", "VoicemailBoxSummary"],
        &["Context", "Mailbox"],
        "Need 'Context' and 'Mailbox' parameters.",
    ),
    (
        &[
            "AbsoluteTimeout",
            "Atxfer",
            "BlindTransfer",
            "CancelAtxfer",
            "CoreShowChannelMap",
            "Hangup",
            "MixMonitor",
            "MixMonitorMute",
            "SendText",
            "StopMixMonitor",
        ],
        &["Channel"],
        "No channel specified",
    ),
];

/// Actions, the header (any), and what is said when it names no channel; of all others it is `No such channel`.
const NO_CHANNEL: &[(&[&str], Option<&str>, &str)] = &[
    (&["AGI"], None, "Channel {} does not exist or cannot get its lock"),
    (&["Atxfer", "BlindTransfer", "CancelAtxfer"], None, "Channel specified does not exist"),
    (&["Bridge"], Some("Channel1"), "Channel1 does not exist: {}"),
    (&["Bridge"], Some("Channel2"), "Channel2 does not exist: {}"),
    (&["BridgeKick"], None, "Channel does not exist"),
    (&["LocalOptimizeAway"], None, "Channel does not exist."),
    (&["MuteAudio", "PlayDTMF", "PlayMF", "SendFlash"], None, "Channel not found"),
    (&["Redirect"], Some("ExtraChannel"), "ExtraChannel does not exist: {}"),
    (&["Redirect"], None, "Channel does not exist: {}"),
];
