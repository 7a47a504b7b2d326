//! Callers who wait, members who take their calls, and who is called for whom.
//!
//! [`Queues`] owns all queues. It is told what happens ([`Queues::join`], [`Queues::input`], [`Queues::due`] and what
//! administrators do) and says what is to be done ([`Output`]): which members a caller's story calls, what the caller is
//! told, what is written into `queue_log`, what watchers hear. What always holds: a caller is in one place and is offered to
//! members by one attempt at a time; a member is called for one caller at a time unless `ringinuse` lets it; every caller
//! who entered leaves by exactly one line of the log.
//!
//! This room knows no channel, no protocol, no file and no clock.
#![forbid(unsafe_code)]

mod announce;
mod caller;
mod change;
mod device;
mod log;
mod machine;
mod member;
mod names;
mod pace;
mod queue;
mod rules;
mod settings;
mod skills;
pub mod strategy;

use std::rc::Rc;

use base::{ChannelId, Instant};

pub use announce::{Said, minutes_and_seconds};
pub use caller::{Caller, CallerId, Join, Offer, Stage};
pub use change::{Edit, Refused, Whom};
pub use device::DeviceState;
pub use log::{Entry, Line};
pub use machine::{Queues, Talk};
pub use member::{Member, Membership, parse_persisted};
pub use queue::{Queue, Stats};
pub use rules::{Bounds, PenaltyChange, Shift};
pub use settings::{
    Absence, Announcing, Autopause, Config, General, Handling, NewMember, QueueConfig, Settings, Sounds,
    Strategy, TellHold, TellPosition,
};
pub use skills::{LEVEL_MAX, SKILLS_MAX, SkillChange, Skills};

/// Time by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// By the one that never goes back.
    pub at: Instant,
    /// Seconds since the epoch.
    pub wall: i64,
}

/// Why a caller may not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// There is no such queue.
    NoQueue,
    /// As many wait as may.
    Full,
    /// No member is there.
    Empty,
}

/// Why a member who was called does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is busy.
    Busy,
    /// It cannot be reached.
    Unavailable,
    /// It rang and refused, or hung up.
    Declined,
    /// No call to it could be begun.
    NoChannel,
}

/// Why a caller leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It hung up, or went elsewhere.
    Abandoned,
    /// It pressed this.
    Key(String),
    /// It has waited long enough.
    Timeout,
    /// No member is there.
    Empty,
    /// Somebody took it out; what they said.
    Withdrawn(String),
}

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The caller hung up.
    Caller,
    /// The member did.
    Agent,
    /// Somebody was sent to an extension of a context.
    Blind {
        /// Extension.
        exten: String,
        /// Context.
        context: String,
    },
    /// Somebody was connected to another: how (`BRIDGE`, `APP`), and to what.
    Attended {
        /// How.
        method: String,
        /// To what.
        to: String,
    },
}

/// What a caller's story tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A member's channel is being called.
    Calling {
        /// Member.
        interface: Rc<str>,
        /// Channel.
        channel: ChannelId,
    },
    /// A member does not answer.
    Refused {
        /// Member.
        interface: Rc<str>,
        /// Why.
        refusal: Refusal,
    },
    /// A member has answered. Nothing comes of it when it is not being called any more.
    Answered {
        /// Member.
        interface: Rc<str>,
    },
    /// The member who answered went away before it talked.
    Dumped,
    /// The two talk: UNIQUEID of the member's channel.
    Connected {
        /// UNIQUEID.
        bridged: String,
    },
    /// They do not talk any more.
    Ended(End),
    /// The caller leaves.
    Left(Exit),
    /// An announcement has been heard.
    Heard,
    /// What the caller's channel says of its wait is set: watchers may hear that it talks.
    Introduced,
}

/// What a caller's story is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Call these.
    Ring(Vec<Offer>),
    /// Let all be who are called.
    LetBe,
    /// Say this to the caller; another that is being said gives way.
    Say(Vec<Said>),
    /// The caller may get other members from here on.
    Bounds(Bounds),
    /// The caller needs these skills of members from here on.
    Skills(Skills),
    /// The caller is out, for this reason.
    Leave(Exit),
}

/// Something that watchers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A caller entered.
    CallerJoin {
        /// Its channel.
        caller: ChannelId,
        /// Its place.
        position: usize,
        /// Callers in the queue then.
        count: usize,
    },
    /// A caller is out: it left, or talks to a member.
    CallerLeave {
        /// Its channel.
        caller: ChannelId,
        /// The place that it had.
        position: usize,
        /// Callers in the queue then.
        count: usize,
    },
    /// A caller gave up, or was given up.
    CallerAbandon {
        /// Its channel.
        caller: ChannelId,
        /// The place that it had.
        position: usize,
        /// The place at which it entered.
        original: usize,
        /// Seconds.
        hold: u64,
    },
    /// Something about a member changed.
    Member {
        /// What.
        change: MemberChange,
        /// The member as it is now, and what its device does.
        member: Box<(Member, DeviceState)>,
    },
    /// Something about a member and a caller.
    Agent {
        /// What.
        step: AgentStep,
        /// The caller's channel.
        caller: ChannelId,
        /// The member's channel.
        channel: Option<ChannelId>,
        /// The member's interface.
        interface: Rc<str>,
        /// The member's name.
        name: Rc<str>,
    },
}

/// What changed about a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// It was added.
    Added,
    /// It was removed.
    Removed,
    /// It was paused, or is not paused any more.
    Pause,
    /// Its penalty.
    Penalty,
    /// Whether it is called while it is on a call.
    RingInUse,
    /// Its skills.
    Skills,
    /// What its device does, or its count of calls.
    Status,
}

/// A step between a member and a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentStep {
    /// It is being called.
    Called,
    /// It did not answer.
    NoAnswer {
        /// Milliseconds.
        ring_ms: u64,
    },
    /// They talk.
    Connect {
        /// Seconds that it was called.
        ring: u64,
        /// Seconds that the caller waited.
        hold: u64,
    },
    /// They do not talk any more.
    Complete {
        /// Seconds that the caller waited.
        hold: u64,
        /// Seconds that they talked.
        talk: u64,
        /// `caller`, `agent`, `transfer`.
        reason: &'static str,
    },
    /// It went away before it talked.
    Dump,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A caller's story is to do something.
    Order {
        /// The caller's channel.
        caller: ChannelId,
        /// What.
        order: Order,
    },
    /// A line for `queue_log`.
    Log(Line),
    /// Watchers are told.
    Event {
        /// The queue.
        queue: Rc<str>,
        /// What.
        event: Event,
    },
    /// The dynamic members of a queue are these; `None`: it has none.
    Persist {
        /// The queue.
        queue: Rc<str>,
        /// As the database keeps them.
        value: Option<String>,
    },
    /// What `Queue:NAME` is may have changed.
    Device(Rc<str>),
}
