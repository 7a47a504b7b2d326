//! What answers and events are made of: the models that descriptions name, a row each.

/// One field of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelField {
    /// Name.
    pub name: &'static str,
    /// Kind: `string`, `int`, `Channel`, `List[string]`.
    pub kind: &'static str,
    /// It is always there.
    pub required: bool,
    /// What it says.
    pub text: &'static str,
}

/// A model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Name.
    pub name: &'static str,
    /// The resource whose description it stands in.
    pub resource: &'static str,
    /// One sentence.
    pub text: &'static str,
    /// Fields.
    pub fields: &'static [ModelField],
}

/// A field that is always there.
const fn has(name: &'static str, kind: &'static str, text: &'static str) -> ModelField {
    ModelField { name, kind, required: true, text }
}
/// A field that may be there.
const fn may(name: &'static str, kind: &'static str, text: &'static str) -> ModelField {
    ModelField { name, kind, required: false, text }
}

macro_rules! models {
    ($($resource:literal $name:literal $text:literal [$($field:expr),* $(,)?];)*) => {
        /// All models but those of events.
        pub const MODELS: &[Model] = &[$(Model {
            name: $name, resource: $resource, text: $text, fields: &[$($field),*],
        },)*];
    };
}

models! {
    "asterisk" "AsteriskInfo" "What the server is." [
        may("build", "BuildInfo", "How it was built"),
        may("system", "SystemInfo", "Its version and identity"),
        may("config", "ConfigInfo", "What its configuration says"),
        may("status", "StatusInfo", "Since when it runs"),
    ];
    "asterisk" "BuildInfo" "How the program was built." [
        has("os", "string", "Operating system"),
        has("kernel", "string", "Its version"),
        has("options", "string", "Name and version of this program"),
        has("machine", "string", "Processor"),
        has("date", "string", "Always the epoch: builds can be repeated"),
        has("user", "string", "By whom; always strowger"),
    ];
    "asterisk" "SystemInfo" "Version and identity." [
        has("version", "string", "Version"),
        has("entity_id", "string", "Identity in the form of a MAC address"),
    ];
    "asterisk" "ConfigInfo" "What the configuration says." [
        has("name", "string", "systemname of asterisk.conf"),
        has("default_language", "string", "Language of channels that name none"),
        may("max_channels", "int", "maxcalls of asterisk.conf"),
        may("max_open_files", "int", "maxfiles of asterisk.conf"),
        may("max_load", "double", "maxload of asterisk.conf"),
        has("setid", "SetId", "As whom it runs"),
    ];
    "asterisk" "SetId" "As whom the process runs." [
        has("user", "string", "Number of the user"),
        has("group", "string", "Number of the group"),
    ];
    "asterisk" "StatusInfo" "Since when the process runs." [
        has("startup_time", "Date", "When it started"),
        has("last_reload_time", "Date", "When its configuration was last read"),
    ];
    "asterisk" "AsteriskPing" "A sign of life." [
        has("asterisk_id", "string", "Identity of the server"),
        has("ping", "string", "Always pong"),
        has("timestamp", "string", "Its time"),
    ];
    "asterisk" "Module" "What modules.conf may switch off." [
        has("name", "string", "Name, res_pjsip.so"),
        has("description", "string", "What it is for"),
        has("use_count", "int", "Always 0: nothing is loaded"),
        has("status", "string", "Running or Not Running"),
        has("support_level", "string", "Always core"),
    ];
    "asterisk" "LogChannel" "A file that the log is written to." [
        has("channel", "string", "Its name"),
        has("type", "string", "File, Console, Syslog"),
        has("status", "string", "Enabled"),
        has("configuration", "string", "Levels"),
    ];
    "asterisk" "Variable" "The value of a variable." [has("value", "string", "The value")];
    "asterisk" "Variables" "Values of variables." [has("variables", "object", "The value of each, by its name")];
    "asterisk" "ConfigTuple" "An option of an object of the configuration." [
        has("attribute", "string", "Its name"),
        has("value", "string", "Its value"),
    ];
    "applications" "Application" "A program that is connected." [
        has("name", "string", "Its name"),
        has("channel_ids", "List[string]", "Channels that it hears of"),
        has("bridge_ids", "List[string]", "Bridges that it hears of"),
        has("endpoint_ids", "List[string]", "Endpoints that it hears of, tech/resource"),
        has("device_names", "List[string]", "Devices that it hears of"),
        has("events_allowed", "List[object]", "Kinds of events that it hears; empty: all"),
        has("events_disallowed", "List[object]", "Kinds that it does not hear"),
    ];
    "bridges" "Bridge" "Channels that hear each other." [
        has("id", "string", "Its id"),
        has("technology", "string", "How they are connected"),
        has("bridge_type", "string", "mixing or holding"),
        has("bridge_class", "string", "stasis for bridges of programs, basic for others"),
        has("creator", "string", "Who made it"),
        has("name", "string", "The name that its maker gave it"),
        has("channels", "List[string]", "Ids of the channels in it"),
        may("video_mode", "string", "How whose video is seen is chosen: talker, single, sfu; none where no program has made it"),
        may("video_source_id", "string", "Whose video is seen"),
        has("creationtime", "Date", "When it was made"),
        may("bridgevars", "object", "Its variables that are told with it"),
    ];
    "channels" "Channel" "One side of a call." [
        has("id", "string", "Its UNIQUEID"),
        has("name", "string", "Its name, PJSIP/6001-0000002a"),
        has("state", "string", "Down, Ring, Ringing, Up and so on"),
        has("protocol_id", "string", "The Call-ID of SIP; empty for others"),
        has("caller", "CallerID", "Who it is"),
        has("connected", "CallerID", "Who is at the other end"),
        has("accountcode", "string", "Account code"),
        has("dialplan", "DialplanCEP", "Where it is in the dialplan"),
        has("creationtime", "Date", "When it was made"),
        has("language", "string", "Its language"),
        may("caller_rdnis", "string", "The number that has sent the call here"),
        may("channelvars", "object", "Variables and functions that channelvars of ari.conf names, and those that are told with it"),
    ];
    "channels" "AdditionalParam" "A parameter of the call that a transfer names." [
        has("parameter_name", "string", "Name"),
        has("parameter_value", "string", "Value"),
    ];
    "channels" "RequiredDestination" "Whom a phone wants somebody sent to." [
        may("protocol_id", "string", "Call-ID of the call that it names"),
        may("destination", "string", "Number or name"),
        may("additional_protocol_params", "List[AdditionalParam]", "What else it says of that call"),
    ];
    "channels" "ReferTo" "Where a transfer goes to." [
        has("requested_destination", "RequiredDestination", "Whom the phone has named"),
        may("destination_channel", "Channel", "The channel of the call that it names"),
        may("connected_channel", "Channel", "Who talks to that"),
        may("bridge", "Bridge", "The bridge of that"),
    ];
    "channels" "ReferredBy" "Who asks for a transfer." [
        has("source_channel", "Channel", "The channel whose phone asks"),
        may("connected_channel", "Channel", "Who talks to it"),
        may("bridge", "Bridge", "Its bridge"),
    ];
    "channels" "RTPstat" "How the RTP of a channel fares; times in seconds, and what no report has said yet is not there." [
        has("txcount", "int", "Packets sent"),
        has("rxcount", "int", "Packets received"),
        has("txploss", "int", "Packets of ours that the peer misses"),
        has("rxploss", "int", "Packets that we miss"),
        has("local_ssrc", "long", "Our source"),
        has("remote_ssrc", "long", "The peer's"),
        has("txoctetcount", "long", "Bytes sent"),
        has("rxoctetcount", "long", "Bytes received"),
        has("channel_uniqueid", "string", "The channel"),
        may("txjitter", "double", "Jitter that we see"),
        may("rxjitter", "double", "Jitter that the peer sees"),
        may("rtt", "double", "Round trip"),
        may("remote_maxjitter", "double", "Greatest jitter that the peer has seen"),
        may("remote_minjitter", "double", "Least"),
        may("remote_normdevjitter", "double", "Mean"),
        may("remote_stdevjitter", "double", "Deviation"),
        may("local_maxjitter", "double", "Greatest jitter that we have seen"),
        may("local_minjitter", "double", "Least"),
        may("local_normdevjitter", "double", "Mean"),
        may("local_stdevjitter", "double", "Deviation"),
        may("remote_maxrxploss", "double", "Most packets that the peer missed between two reports"),
        may("remote_minrxploss", "double", "Fewest"),
        may("remote_normdevrxploss", "double", "Mean"),
        may("remote_stdevrxploss", "double", "Deviation"),
        may("local_maxrxploss", "double", "Most packets that we missed between two reports"),
        may("local_minrxploss", "double", "Fewest"),
        may("local_normdevrxploss", "double", "Mean"),
        may("local_stdevrxploss", "double", "Deviation"),
        may("maxrtt", "double", "Longest round trip"),
        may("minrtt", "double", "Shortest"),
        may("normdevrtt", "double", "Mean"),
        may("stdevrtt", "double", "Deviation"),
    ];
    "channels" "CallerID" "A party." [has("name", "string", "Name"), has("number", "string", "Number")];
    "channels" "DialplanCEP" "A place in the dialplan." [
        has("context", "string", "Context"),
        has("exten", "string", "Extension"),
        has("priority", "long", "Priority"),
        has("app_name", "string", "The application that runs"),
        has("app_data", "string", "Its arguments"),
    ];
    "deviceStates" "DeviceState" "What a device does." [
        has("name", "string", "Its name, PJSIP/6001"),
        has("state", "string", "UNKNOWN, NOT_INUSE, INUSE, BUSY, INVALID, UNAVAILABLE, RINGING, RINGINUSE, ONHOLD"),
    ];
    "endpoints" "Endpoint" "Somebody who may call and be called." [
        has("technology", "string", "PJSIP or IAX2"),
        has("resource", "string", "Its name"),
        may("state", "string", "online, offline or unknown"),
        has("channel_ids", "List[string]", "Its channels"),
    ];
    "endpoints" "TextMessage" "A text outside of calls." [
        has("from", "string", "Who sent it"),
        has("to", "string", "To whom"),
        has("body", "string", "The text"),
        may("variables", "object", "What came with it"),
    ];
    "mailboxes" "Mailbox" "A mailbox that others look after." [
        has("name", "string", "mailbox@context"),
        has("old_messages", "int", "Messages that were heard"),
        has("new_messages", "int", "Messages that were not"),
    ];
    "playbacks" "Playback" "A sound, or several, on their way." [
        has("id", "string", "Its id"),
        has("media_uri", "string", "What is heard"),
        may("next_media_uri", "string", "What is heard next"),
        has("target_uri", "string", "Who hears it, channel:id or bridge:id"),
        may("language", "string", "Its language"),
        has("state", "string", "queued, playing, continuing, paused, done or failed"),
    ];
    "sounds" "FormatLangPair" "A language and a format in which a sound is there." [
        has("language", "string", "Language"),
        has("format", "string", "Format"),
    ];
    "sounds" "Sound" "A sound that can be played." [
        has("id", "string", "Its name"),
        may("text", "string", "What is said"),
        has("formats", "List[FormatLangPair]", "Languages and formats in which it is there"),
    ];
    "events" "RESTHeader" "A header of an answer." [
        has("name", "string", "Name"),
        has("value", "string", "Value"),
    ];
    "events" "RESTQueryStringParameter" "A parameter of a request." [
        has("name", "string", "Name"),
        has("value", "string", "Value"),
    ];
    "events" "RESTRequest" "A request that a program sends on the connection that it hears events by." [
        has("type", "string", "RESTRequest"),
        may("transaction_id", "string", "What the answer repeats"),
        may("request_id", "string", "What the answer repeats"),
        has("method", "string", "GET, POST, PUT or DELETE"),
        has("uri", "string", "Path below /ari, with or without its query"),
        may("content_type", "string", "What the body is: application/json or application/x-www-form-urlencoded"),
        may("query_strings", "List[RESTQueryStringParameter]", "More of the query"),
        may("message_body", "string", "The body"),
    ];
    "events" "RESTResponse" "The answer to a RESTRequest." [
        has("type", "string", "RESTResponse"),
        has("transaction_id", "string", "That of the request"),
        has("request_id", "string", "That of the request"),
        has("status_code", "int", "Status, as by HTTP"),
        has("reason_phrase", "string", "Its reason"),
        has("uri", "string", "What was asked, without the query"),
        may("content_type", "string", "What the body is"),
        may("message_body", "string", "The body"),
    ];
    "recordings" "LiveRecording" "A recording that runs." [
        has("name", "string", "Its name"),
        has("format", "string", "Its format"),
        has("target_uri", "string", "What is recorded, channel:id or bridge:id"),
        has("state", "string", "queued, recording, paused, done, failed or canceled"),
        may("duration", "int", "Seconds, once it is over"),
        may("talking_duration", "int", "Seconds without the silence at its end"),
        may("silence_duration", "int", "Seconds of silence at its end"),
        may("cause", "string", "Why it failed"),
    ];
    "recordings" "StoredRecording" "A recording that is kept." [
        has("name", "string", "Its name"),
        has("format", "string", "Its format"),
    ];
}

/// Fields that every event has.
pub const EVENT_FIELDS: &[ModelField] = &[
    has("type", "string", "Which event"),
    has("application", "string", "The program that hears it"),
    has("timestamp", "Date", "When"),
    has("asterisk_id", "string", "Identity of the server"),
];

macro_rules! events {
    ($($name:literal $text:literal [$($field:expr),* $(,)?];)*) => {
        /// Events, in the order of the manual.
        pub const EVENTS: &[Model] = &[$(Model {
            name: $name, resource: "events", text: $text, fields: &[$($field),*],
        },)*];
    };
}

events! {
    "StasisStart" "A channel has come to the program." [
        has("args", "List[string]", "What Stasis() said beside"),
        has("channel", "Channel", "The channel"),
        may("replace_channel", "Channel", "The channel whose place it took"),
    ];
    "StasisEnd" "A channel has left the program." [has("channel", "Channel", "The channel")];
    "ApplicationReplaced" "Another connection hears for the program from here on." [];
    "ApplicationMoveFailed" "A channel was to go to a program that is not there, and stays." [
        has("channel", "Channel", "The channel"),
        has("destination", "string", "Where it was to go"),
        has("args", "List[string]", "What was to come along"),
    ];
    "ChannelCreated" "A channel was made." [has("channel", "Channel", "The channel")];
    "ChannelDestroyed" "A channel is gone." [
        has("cause", "int", "Q.850 cause"),
        has("cause_txt", "string", "Its words"),
        may("tech_cause", "int", "The status of SIP that refused it"),
        has("channel", "Channel", "The channel"),
    ];
    "ChannelEnteredBridge" "A channel entered a bridge." [
        has("bridge", "Bridge", "The bridge"),
        may("channel", "Channel", "The channel"),
    ];
    "ChannelLeftBridge" "A channel left a bridge." [
        has("bridge", "Bridge", "The bridge"),
        has("channel", "Channel", "The channel"),
    ];
    "ChannelStateChange" "The state of a channel changed." [has("channel", "Channel", "The channel")];
    "ChannelDtmfReceived" "A digit has come to its end." [
        has("digit", "string", "The digit"),
        has("duration_ms", "int", "Milliseconds"),
        has("channel", "Channel", "The channel"),
    ];
    "ChannelDialplan" "A channel takes a step of the dialplan." [
        has("channel", "Channel", "The channel"),
        has("dialplan_app", "string", "Application"),
        has("dialplan_app_data", "string", "Its arguments"),
    ];
    "ChannelCallerId" "The caller id of a channel changed." [
        has("caller_presentation", "int", "Presentation, as a number"),
        has("caller_presentation_txt", "string", "The same in words"),
        has("channel", "Channel", "The channel"),
    ];
    "ChannelConnectedLine" "The other party of a channel changed." [has("channel", "Channel", "The channel")];
    "ChannelUserevent" "Word of the dialplan or of a program to all who listen." [
        has("eventname", "string", "Its name"),
        may("channel", "Channel", "The channel that it is about"),
        may("bridge", "Bridge", "The bridge that it is about"),
        may("endpoint", "Endpoint", "The endpoint that it is about"),
        has("userevent", "object", "What it says"),
    ];
    "ChannelHangupRequest" "A channel is to be hung up." [
        may("cause", "int", "Q.850 cause; with soft the kind of the wish"),
        may("tech_cause", "int", "The status of SIP that refused it"),
        may("soft", "boolean", "By us; the other side did not hang up"),
        has("channel", "Channel", "The channel"),
    ];
    "ChannelVarset" "A variable was set; without channel a global one." [
        has("variable", "string", "Name"),
        has("value", "string", "Value"),
        may("channel", "Channel", "The channel"),
    ];
    "ChannelHold" "A user put the other party on hold." [
        has("channel", "Channel", "The channel"),
        may("musicclass", "string", "The class of music that was asked for"),
    ];
    "ChannelUnhold" "A user took the other party back." [has("channel", "Channel", "The channel")];
    "ChannelTalkingStarted" "The user of a channel began to talk; with TALK_DETECT()." [
        has("channel", "Channel", "The channel"),
    ];
    "ChannelTransfer" "A phone asks for a transfer that programs carry out, or one has said how it comes on." [
        may("state", "string", "What was said last: channel_progress, channel_answered, channel_unavailable or channel_declined"),
        has("refer_to", "ReferTo", "Whom somebody is sent to"),
        has("referred_by", "ReferredBy", "Who asks"),
    ];
    "ChannelToneDetected" "The tone was heard that TONE_DETECT() listens for on a channel." [
        has("channel", "Channel", "The channel"),
    ];
    "ChannelTalkingFinished" "The user of a channel ceased to talk." [
        has("channel", "Channel", "The channel"),
        has("duration", "int", "Milliseconds that it talked"),
    ];
    "Dial" "A leg is being called, or how that came out." [
        may("caller", "Channel", "Who calls"),
        has("peer", "Channel", "The leg"),
        may("forwarded", "Channel", "The leg that is called instead"),
        has("forward", "string", "Where the call was forwarded to; empty: nowhere"),
        has("dialstring", "string", "What was dialled; empty where that was told before"),
        has("dialstatus", "string", "Empty at the beginning; RINGING, ANSWER, BUSY and so on"),
    ];
    "BridgeCreated" "A bridge was made." [has("bridge", "Bridge", "The bridge")];
    "BridgeDestroyed" "A bridge is gone." [has("bridge", "Bridge", "The bridge")];
    "BridgeVideoSourceChanged" "The video of another channel is seen in a bridge." [
        has("bridge", "Bridge", "The bridge"),
        may("old_video_source_id", "string", "Whose video was seen before"),
    ];
    "CallBroadcast" "A call is offered to programs, of which the first that claims it has it." [
        has("channel", "Channel", "The channel"),
        may("caller", "string", "Who calls"),
        may("called", "string", "Whom"),
    ];
    "CallClaimed" "A program has claimed a call that was offered." [
        has("channel", "Channel", "The channel"),
        has("winner_app", "string", "Which program"),
    ];
    "BridgeBlindTransfer" "A party sent the other one elsewhere." [
        has("channel", "Channel", "Who sent it"),
        may("transferee", "Channel", "Who was sent"),
        has("exten", "string", "Extension"),
        has("context", "string", "Context"),
        has("result", "string", "Success"),
        has("is_external", "boolean", "A phone asked for it, not a program"),
        may("bridge", "Bridge", "The bridge they were in, as it was"),
        may("replace_channel", "Channel", "Who sits in the seat of whoever sent it from here on"),
    ];
    "BridgeAttendedTransfer" "A party connected two others." [
        has("transferer_first_leg", "Channel", "Who connected them"),
        has("transferer_second_leg", "Channel", "Its other channel"),
        may("transferee", "Channel", "Who had been talking to it"),
        may("transfer_target", "Channel", "Whom it asked"),
        may("transferer_first_leg_bridge", "Bridge", "The bridge in which it had been talking"),
        may("transferer_second_leg_bridge", "Bridge", "The bridge in which it asked"),
        may("destination_bridge", "string", "The bridge in which the others talk from here on"),
        may("destination_application", "string", "The application that the other comes into"),
        may("destination_link_first_leg", "Channel", "One end of the link between two conferences"),
        may("destination_link_second_leg", "Channel", "The other end"),
        has("result", "string", "Success"),
        has("is_external", "boolean", "A phone asked for it, not a program"),
        has("destination_type", "string", "bridge, application or link"),
    ];
    "PlaybackStarted" "A sound is heard." [has("playback", "Playback", "The sound")];
    "PlaybackContinuing" "The next sound of several is heard." [has("playback", "Playback", "The sound")];
    "PlaybackFinished" "A sound is over; its state is done or failed." [has("playback", "Playback", "The sound")];
    "RecordingStarted" "A recording runs." [has("recording", "LiveRecording", "The recording")];
    "RecordingFinished" "A recording is over." [has("recording", "LiveRecording", "The recording")];
    "RecordingFailed" "A recording could not be made." [has("recording", "LiveRecording", "The recording")];
    "DeviceStateChanged" "A device does something else." [has("device_state", "DeviceState", "The device")];
    "TextMessageReceived" "Somebody sent a text outside of calls." [
        has("message", "TextMessage", "The text"),
        may("endpoint", "Endpoint", "Who sent it"),
    ];
    "EndpointStateChange" "An endpoint can be reached from here on, or cannot." [has("endpoint", "Endpoint", "The endpoint")];
    "PeerStatusChange" "A phone registered, unregistered or became reachable or unreachable." [
        has("endpoint", "Endpoint", "The endpoint"),
        has("peer", "Peer", "What changed"),
    ];
    "ContactStatusChange" "A contact changed." [
        has("endpoint", "Endpoint", "The endpoint"),
        has("contact_info", "ContactInfo", "What changed"),
    ];
}

/// Models that only events have.
pub const EVENT_PARTS: &[Model] = &[
    Model {
        name: "Peer",
        resource: "events",
        text: "What is known of a phone.",
        fields: &[
            has("peer_status", "string", "Registered, Unregistered, Reachable, Unreachable, Lagged"),
            may("cause", "string", "Why"),
            may("address", "string", "Where it is"),
            may("port", "string", "Its port"),
            may("time", "string", "Milliseconds that it took to answer"),
        ],
    },
    Model {
        name: "ContactInfo",
        resource: "events",
        text: "What is known of a contact.",
        fields: &[
            has("uri", "string", "Where it is"),
            has(
                "contact_status",
                "string",
                "Created, Removed, Reachable, Unreachable, NonQualified, Updated",
            ),
            has("aor", "string", "Whose it is"),
            may("roundtrip_usec", "string", "Microseconds that it took to answer"),
        ],
    },
];
