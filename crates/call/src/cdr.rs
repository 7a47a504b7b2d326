//! Call detail records.
//!
//! A record stands for one conversation of party A with at most one party B. A channel has a chain of them ([`chain`]), which
//! is written when the channel is gone, oldest first. What the channel does goes into those that are open; an attempt to
//! reach somebody, a bridge and `ForkCDR` open others and close them.

mod chain;

use core::time::Duration;

pub use chain::{CDR_CHAIN_MAX, CDR_FORKS_MAX, CdrState};

/// How the call came out, in the words of Master.csv.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Disposition {
    /// Nobody answered.
    #[default]
    NoAnswer,
    /// The caller gave up before anybody answered; told as [`Self::NoAnswer`] unless the settings have it.
    Cancel,
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
            Self::Cancel => "CANCEL",
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
    /// Whole seconds of `billsec` to bill: cut, or with `initiatedseconds` rounded up.
    pub billed: u64,
    /// How it came out.
    pub disposition: Disposition,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// UNIQUEID of party A.
    pub uniqueid: String,
    /// LINKEDID.
    pub linkedid: String,
    /// Tenant of the channel.
    pub tenant: String,
    /// Tenant of the other one.
    pub peer_tenant: String,
    /// User field.
    pub user_field: String,
    /// Number of the record, counted over the whole server from 0.
    pub sequence: u32,
    /// Account of party B.
    pub peer_account: String,
    /// Variables set with `CDR(name)=`.
    pub custom: Vec<(String, String)>,
}

/// What becomes of the records at a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CdrFork {
    /// The present record ends; otherwise it runs on beside the new one.
    pub end: bool,
    /// The new record is answered at this moment, if the channel is.
    pub answer: bool,
    /// The new record begins at this moment.
    pub restart: bool,
    /// The new record has the variables of the present one.
    pub keep: bool,
}
