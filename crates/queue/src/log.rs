//! The lines of `queue_log`.

use core::fmt;
use std::rc::Rc;

/// What a line tells; numbers are whole seconds where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the names of the field's manual, and each variant says what it is"
)]
pub enum Entry {
    /// The caller hung up, or was taken away.
    Abandon { position: usize, original: usize, wait: u64 },
    /// A member was added.
    AddMember { paused: bool },
    /// The member hung up while it heard the announcement.
    AgentDump,
    /// The caller was transferred to a target by asking there first: how, and to what.
    AttendedTransfer { method: String, to: String, hold: u64, talk: u64, original: usize },
    /// The caller was transferred.
    BlindTransfer { exten: String, context: String, hold: u64, talk: u64, original: usize },
    /// The conversation ended; the member hung up.
    CompleteAgent { hold: u64, talk: u64, original: usize },
    /// The conversation ended; the caller hung up.
    CompleteCaller { hold: u64, talk: u64, original: usize },
    /// The configuration was read again.
    ConfigReload,
    /// The two talk: the member's channel by its UNIQUEID.
    Connect { hold: u64, bridged: String, ring: u64 },
    /// The caller entered.
    EnterQueue { url: String, number: String, position: usize, name: Option<String> },
    /// The caller left because no member was there.
    ExitEmpty { position: usize, original: usize, wait: u64 },
    /// The caller left by a key.
    ExitWithKey { key: String, position: usize, original: usize, wait: u64 },
    /// The caller had waited long enough.
    ExitWithTimeout { position: usize, original: usize, wait: u64 },
    /// A member is paused.
    Pause { reason: String },
    /// A member is paused in all queues.
    PauseAll { reason: String },
    /// A penalty was changed.
    Penalty(u32),
    /// The process started.
    QueueStart,
    /// A member was removed.
    RemoveMember,
    /// The caller went away while a member was called; milliseconds.
    RingCanceled { ms: u64 },
    /// Whether a member is called while it is on a call was changed.
    RingInUse(bool),
    /// A member was called and did not answer; milliseconds.
    RingNoAnswer { ms: u64 },
    /// A member is not paused any more.
    Unpause { reason: String },
    /// A member is not paused in any queue any more.
    UnpauseAll { reason: String },
    /// The caller was taken out by somebody.
    Withdraw { position: usize, original: usize, wait: u64, info: String },
    /// What a dialplan or a manager wrote, and what Asterisk has no line for.
    Custom { event: String, data: Vec<String> },
}

impl Entry {
    /// The event's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Abandon { .. } => "ABANDON",
            Self::AddMember { .. } => "ADDMEMBER",
            Self::AgentDump => "AGENTDUMP",
            Self::AttendedTransfer { .. } => "ATTENDEDTRANSFER",
            Self::BlindTransfer { .. } => "BLINDTRANSFER",
            Self::CompleteAgent { .. } => "COMPLETEAGENT",
            Self::CompleteCaller { .. } => "COMPLETECALLER",
            Self::ConfigReload => "CONFIGRELOAD",
            Self::Connect { .. } => "CONNECT",
            Self::EnterQueue { .. } => "ENTERQUEUE",
            Self::ExitEmpty { .. } => "EXITEMPTY",
            Self::ExitWithKey { .. } => "EXITWITHKEY",
            Self::ExitWithTimeout { .. } => "EXITWITHTIMEOUT",
            Self::Pause { .. } => "PAUSE",
            Self::PauseAll { .. } => "PAUSEALL",
            Self::Penalty(_) => "PENALTY",
            Self::QueueStart => "QUEUESTART",
            Self::RemoveMember => "REMOVEMEMBER",
            Self::RingCanceled { .. } => "RINGCANCELED",
            Self::RingInUse(_) => "RINGINUSE",
            Self::RingNoAnswer { .. } => "RINGNOANSWER",
            Self::Unpause { .. } => "UNPAUSE",
            Self::UnpauseAll { .. } => "UNPAUSEALL",
            Self::Withdraw { .. } => "WITHDRAW",
            Self::Custom { event, .. } => event,
        }
    }
    /// `data1` to `data5`; as many as the event has.
    pub fn data(&self) -> Vec<String> {
        let text = |parts: &[&dyn fmt::Display]| parts.iter().map(ToString::to_string).collect();
        match self {
            Self::Abandon { position, original, wait }
            | Self::ExitEmpty { position, original, wait }
            | Self::ExitWithTimeout { position, original, wait } => text(&[position, original, wait]),
            Self::AddMember { paused } => text(&[&if *paused { "PAUSED" } else { "" }]),
            Self::AgentDump | Self::ConfigReload | Self::QueueStart | Self::RemoveMember => text(&[&""]),
            Self::AttendedTransfer { method, to, hold, talk, original } => {
                text(&[method, to, hold, talk, original])
            }
            Self::BlindTransfer { exten, context, hold, talk, original } => {
                text(&[exten, context, hold, talk, original])
            }
            Self::CompleteAgent { hold, talk, original } | Self::CompleteCaller { hold, talk, original } => {
                text(&[hold, talk, original])
            }
            Self::Connect { hold, bridged, ring } => text(&[hold, bridged, ring]),
            Self::EnterQueue { url, number, position, name } => {
                let mut data: Vec<String> = text(&[url, number, position]);
                // The field's readers expect `_` here, unlike elsewhere.
                data.extend(name.as_ref().map(|name| name.replace('|', "_")));
                data
            }
            Self::ExitWithKey { key, position, original, wait } => text(&[key, position, original, wait]),
            Self::Pause { reason }
            | Self::PauseAll { reason }
            | Self::Unpause { reason }
            | Self::UnpauseAll { reason } => text(&[reason]),
            Self::Penalty(penalty) => text(&[penalty]),
            Self::RingInUse(rings) => text(&[&u8::from(*rings)]),
            Self::RingCanceled { ms } | Self::RingNoAnswer { ms } => text(&[ms]),
            Self::Withdraw { position, original, wait, info } => text(&[position, original, wait, info]),
            Self::Custom { data, .. } => data.clone(),
        }
    }
    /// Whether a caller's time in the queue ends with it.
    pub fn ends_a_call(&self) -> bool {
        matches!(
            self,
            Self::Abandon { .. }
                | Self::AttendedTransfer { .. }
                | Self::BlindTransfer { .. }
                | Self::CompleteAgent { .. }
                | Self::CompleteCaller { .. }
                | Self::ExitEmpty { .. }
                | Self::ExitWithKey { .. }
                | Self::ExitWithTimeout { .. }
                | Self::Withdraw { .. }
        )
    }
}

/// One line. Its `Display` is the line as it stands in the file, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Seconds since the epoch.
    pub time: i64,
    /// UNIQUEID of the caller, or who did it (`MANAGER`, `COMMAND`, `NONE`).
    pub call: Rc<str>,
    /// Queue, or `NONE`.
    pub queue: Rc<str>,
    /// Member, or `NONE`.
    pub agent: Rc<str>,
    /// What happened.
    pub entry: Entry,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: &str| text.replace(['|', '\n', '\r'], " ");
        let Self { time, call, queue, agent, entry } = self;
        write!(f, "{time}|{}|{}|{}|{}", plain(call), plain(queue), plain(agent), plain(entry.name()))?;
        let data = entry.data();
        if data.is_empty() {
            return f.write_str("|");
        }
        data.iter().try_for_each(|part| write!(f, "|{}", plain(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_fields_of_the_file() {
        for (entry, expected) in [
            (Entry::QueueStart, "QUEUESTART|"),
            (Entry::AddMember { paused: false }, "ADDMEMBER|"),
            (Entry::AddMember { paused: true }, "ADDMEMBER|PAUSED"),
            (
                Entry::EnterQueue { url: String::new(), number: "6001".into(), position: 2, name: None },
                "ENTERQUEUE||6001|2",
            ),
            (
                Entry::EnterQueue {
                    url: String::new(),
                    number: "6001".into(),
                    position: 2,
                    name: Some("Anna|Bea\nC".into()),
                },
                "ENTERQUEUE||6001|2|Anna_Bea C",
            ),
            (Entry::Connect { hold: 7, bridged: "1.2".into(), ring: 3 }, "CONNECT|7|1.2|3"),
            (Entry::CompleteCaller { hold: 7, talk: 60, original: 1 }, "COMPLETECALLER|7|60|1"),
            (Entry::RingNoAnswer { ms: 15_000 }, "RINGNOANSWER|15000"),
            (
                Entry::ExitWithKey { key: "5".into(), position: 1, original: 2, wait: 9 },
                "EXITWITHKEY|5|1|2|9",
            ),
            (Entry::RingInUse(true), "RINGINUSE|1"),
            (Entry::Pause { reason: "a|b\nc".into() }, "PAUSE|a b c"),
            (Entry::Custom { event: "DID".into(), data: vec![] }, "DID|"),
        ] {
            let line = Line { time: 12, call: "1.1".into(), queue: "q".into(), agent: "NONE".into(), entry };
            assert_eq!(line.to_string(), format!("12|1.1|q|NONE|{expected}"));
        }
    }
}
