//! What a manager user may reach without the class `system`: lists of what is harmless, never of what is not, so that an
//! application or function that is new is refused until somebody has looked at it.

/// Applications that act on calls alone: no files, no database, no other application by name.
pub(super) const PLAIN_APPLICATIONS: &[&str] = &[
    "Answer",
    "BackGround",
    "Busy",
    "ConfBridge",
    "Congestion",
    "ContinueWhile",
    "ControlPlayback",
    "DateTime",
    "Dial",
    "DumpChan",
    "Echo",
    "Else",
    "ElseIf",
    "EndIf",
    "EndWhile",
    "ExitIf",
    "ExitWhile",
    "ForkCDR",
    "Gosub",
    "GosubIf",
    "Goto",
    "GotoIf",
    "GotoIfTime",
    "Hangup",
    "If",
    "Incomplete",
    "Log",
    "Macro",
    "MacroExclusive",
    "MacroExit",
    "MacroIf",
    "Milliwatt",
    "MusicOnHold",
    "NoCDR",
    "NoOp",
    "PauseMonitor",
    "PlayTones",
    "Playback",
    "Proceeding",
    "Progress",
    "RaiseException",
    "Random",
    "Read",
    "ResetCDR",
    "Return",
    "Ringing",
    "SayAlpha",
    "SayDigits",
    "SayNumber",
    "SayOrdinal",
    "SayPhonetic",
    "SayUnixTime",
    "SendDTMF",
    "SendText",
    "SetAMAFlags",
    "SetCallerPres",
    "SetLanguage",
    "SetMusicOnHold",
    "StackPop",
    "StartMusicOnHold",
    "StopMixMonitor",
    "StopMonitor",
    "StopMusicOnHold",
    "StopPlayTones",
    "Transfer",
    "UnpauseMonitor",
    "UserEvent",
    "Verbose",
    "Wait",
    "WaitDigit",
    "WaitExten",
    "WaitUntil",
    "While",
];
/// Functions that read calls, text and numbers.
const PLAIN_READS: &[&str] = &[
    "ABS",
    "BASE64_DECODE",
    "BASE64_ENCODE",
    "BLACKLIST",
    "CALLERID",
    "CDR",
    "CHANNEL",
    "CHANNELS",
    "CHANNEL_EXISTS",
    "CONNECTEDLINE",
    "CSV_QUOTE",
    "CUT",
    "DB",
    "DB_EXISTS",
    "DB_KEYCOUNT",
    "DB_KEYS",
    "DEC",
    "DEVICE_STATE",
    "DIALPLAN_EXISTS",
    "EXCEPTION",
    "EXISTS",
    "EXTENSION_STATE",
    "FIELDNUM",
    "FIELDQTY",
    "FILTER",
    "GLOBAL",
    "GLOBAL_EXISTS",
    "GROUP",
    "GROUP_COUNT",
    "GROUP_LIST",
    "GROUP_MATCH_COUNT",
    "HANGUPCAUSE",
    "HANGUPCAUSE_KEYS",
    "HASH",
    "HASHKEYS",
    "HINT",
    "IF",
    "IFMODULE",
    "IFTIME",
    "INC",
    "ISNULL",
    "KEYPADHASH",
    "LEN",
    "LISTFILTER",
    "LOCAL",
    "LOCAL_PEEK",
    "LTRIM",
    "MATH",
    "MAX",
    "MD5",
    "MESSAGE",
    "MESSAGE_DATA",
    "MIN",
    "MIXMONITOR",
    "PASSTHRU",
    "PJSIP_AOR",
    "PJSIP_CONTACT",
    "PJSIP_DIAL_CONTACTS",
    "PJSIP_ENDPOINT",
    "PJSIP_HEADER",
    "PJSIP_HEADER_PARAM",
    "PJSIP_INHERITABLE_HEADER",
    "PJSIP_PARSE_URI",
    "PJSIP_PARSE_URI_FROM",
    "POP",
    "QUOTE",
    "RAND",
    "REDIRECTING",
    "REGEX",
    "REPLACE",
    "RTRIM",
    "SET",
    "SHA1",
    "SHARED",
    "SHIFT",
    "SIP_HEADER",
    "SORT",
    "SPRINTF",
    "STACK_PEEK",
    "STRBETWEEN",
    "STRFTIME",
    "STRPTIME",
    "STRREPLACE",
    "TIMEOUT",
    "TOLOWER",
    "TOUPPER",
    "TRIM",
    "URIDECODE",
    "URIENCODE",
    "VALID_EXTEN",
    "VARIABLE_EXISTS",
    "VERSION",
];
/// Functions that write calls and their variables.
const PLAIN_WRITES: &[&str] = &[
    "ARRAY",
    "CALLERID",
    "CDR",
    "CDR_PROP",
    "CHANNEL",
    "CONNECTEDLINE",
    "DEVICE_STATE",
    "GLOBAL",
    "GROUP",
    "HASH",
    "LOCAL",
    "MESSAGE",
    "MESSAGE_DATA",
    "PJSIP_HEADER",
    "PJSIP_HEADER_PARAM",
    "PJSIP_INHERITABLE_HEADER",
    "PUSH",
    "REDIRECTING",
    "SHARED",
    "TIMEOUT",
    "UNSHIFT",
];

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether an application may be originated by every user of class `originate`.
pub(super) fn is_plain_application(name: &str) -> bool {
    is_in(PLAIN_APPLICATIONS, name)
}

/// Whether a function may be read by every user who may read variables.
pub(super) fn is_plain_to_read(function: &str) -> bool {
    is_in(PLAIN_READS, function)
}

/// Whether a function may be written by every user who may set variables.
pub(super) fn is_plain_to_write(function: &str) -> bool {
    is_in(PLAIN_WRITES, function)
}

/// Whether text that will be expanded on a channel calls harmless functions alone. Text that puts a name together at
/// run time cannot be looked at and is not plain.
pub(super) fn expands_plainly(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("${") {
        let name = after.split(['}', '(', '$', '{']).next().unwrap_or_default();
        let next = after.get(name.len()..).and_then(|tail| tail.chars().next());
        match next {
            Some('}') => {}
            Some('(') if is_plain_to_read(name) => {}
            _ => return false,
        }
        rest = after;
    }
    true
}
