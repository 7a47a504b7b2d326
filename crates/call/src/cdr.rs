//! Call detail records.
//!
//! A record stands for one conversation of party A (who called) with party B (who was dialled). It begins when A's
//! channel begins, is answered when A is answered, and is finished when A hangs up or turns to another B.

use core::time::Duration;

use base::Instant;

/// How the call came out, in the words of Master.csv.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Disposition {
    /// Nobody answered.
    #[default]
    NoAnswer,
    /// Something in the way.
    Failed,
    /// Busy.
    Busy,
    /// Congestion.
    Congestion,
    /// Answered.
    Answered,
}

impl Disposition {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAnswer => "NO ANSWER",
            Self::Failed => "FAILED",
            Self::Busy => "BUSY",
            Self::Congestion => "CONGESTION",
            Self::Answered => "ANSWERED",
        }
    }
}

/// What the record is for (`CHANNEL(amaflags)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum AmaFlags {
    /// Leave out.
    Omit = 1,
    /// Bill.
    Billing = 2,
    /// Keep for the record.
    #[default]
    Documentation = 3,
}

impl AmaFlags {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Omit => "OMIT",
            Self::Billing => "BILLING",
            Self::Documentation => "DOCUMENTATION",
        }
    }
}

/// One finished record; times in microseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cdr {
    /// Account code.
    pub account: String,
    /// Caller's number.
    pub src: String,
    /// Extension that was dialled.
    pub dst: String,
    /// Its context.
    pub dcontext: String,
    /// Caller id with name.
    pub clid: String,
    /// Party A's channel.
    pub channel: String,
    /// Party B's channel.
    pub dst_channel: String,
    /// Last application.
    pub last_app: String,
    /// Its arguments.
    pub last_data: String,
    /// Start.
    pub start: i64,
    /// Answer.
    pub answer: Option<i64>,
    /// End.
    pub end: i64,
    /// Start to end, from the monotonic clock.
    pub duration: Duration,
    /// Answer to end.
    pub billsec: Duration,
    /// How it came out.
    pub disposition: Disposition,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// UNIQUEID of party A.
    pub uniqueid: String,
    /// LINKEDID.
    pub linkedid: String,
    /// User field.
    pub user_field: String,
    /// Serial within the linkedid.
    pub sequence: u32,
    /// Account of party B.
    pub peer_account: String,
    /// Variables set with `CDR(name)=`.
    pub custom: Vec<(String, String)>,
}

/// What a channel keeps for its records while it lives.
#[derive(Debug, Clone, Default)]
pub struct CdrState {
    /// `CDR_PROP(disable)` or `NoCDR`.
    pub disabled: bool,
    /// Which party B is being recorded; set by [`Core::turn_to_party`](crate::Core::turn_to_party).
    pub dst_channel: String,
    /// Application and arguments that dialled party B.
    pub dialled_by: Option<(&'static str, String)>,
    /// Account of party B.
    pub peer_account: String,
    /// Start of the current record; `None` is the channel's own.
    pub start: Option<(Instant, i64)>,
    /// Answer of the current record.
    pub answer: Option<(Instant, i64)>,
    /// Worst or best that happened so far.
    pub disposition: Disposition,
    /// Last application that ran before the channel's end, and its arguments.
    pub last_app: &'static str,
    /// Arguments of `last_app`.
    pub last_data: String,
    /// Extension and context of the record, frozen when party B was dialled or `h` began.
    pub dialed: Option<(String, String)>,
    /// User field.
    pub user_field: String,
    /// Overrides the channel's account code.
    pub account: Option<String>,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// Variables set with `CDR(name)=`.
    pub custom: Vec<(String, String)>,
    /// Records already written for this channel.
    pub written: u32,
}
