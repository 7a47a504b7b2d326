//! One who waits.

use core::time::Duration;
use std::rc::Rc;

use base::{ChannelId, Instant};

use crate::announce::Voice;
use crate::{Bounds, Member, Now, PenaltyChange, SkillChange, Skills};

/// Who calls, as the log may have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerId {
    /// Its number.
    pub number: String,
    /// Its name.
    pub name: String,
    /// It does not want to be known.
    pub is_restricted: bool,
}

impl CallerId {
    /// A caller of that number who has nothing against being known.
    pub fn of(number: &str) -> Self {
        Self { number: number.into(), ..Self::default() }
    }
}

/// A caller who wants to enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The caller's channel.
    pub caller: ChannelId,
    /// Its UNIQUEID.
    pub uniqueid: Rc<str>,
    /// Who it is, for the log.
    pub id: CallerId,
    /// The URL that the dialplan gave, for the log.
    pub url: String,
    /// `QUEUE_PRIO`: higher ones go before.
    pub priority: i32,
    /// The place that it wants, from 1 on, as far as priorities let it.
    pub position: Option<usize>,
    /// When it entered before, if it has kept its place since: it stands among those of its priority as if it had never
    /// left. A moment that is still to come is now.
    pub since: Option<Now>,
    /// The longest it waits.
    pub timeout: Option<Duration>,
    /// Option `n`: it leaves when every member was tried.
    pub no_retry: bool,
    /// Which members it may get.
    pub bounds: Bounds,
    /// What it needs of members.
    pub skills: Skills,
    /// The rule by which both change; empty: that of the queue.
    pub rule: String,
}

/// One who is called for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What is dialled.
    pub interface: Rc<str>,
    /// The member's name.
    pub name: Rc<str>,
    /// Since when.
    pub since: Instant,
    /// Its channel, once there is one.
    pub channel: Option<ChannelId>,
}

/// What happens to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Nothing; nobody is called for it before `until`.
    Waiting {
        /// End of the pause between two attempts.
        until: Instant,
    },
    /// Members are being called.
    Ringing {
        /// Who; never none.
        offers: Vec<Offer>,
        /// When they are let be; `None`: they ring until they answer.
        ends: Option<Instant>,
    },
    /// A member has answered, and does not talk to the caller yet.
    Answered {
        /// Who.
        offer: Offer,
        /// How long it was called.
        rang: Duration,
    },
}

/// One caller in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its channel.
    pub channel: ChannelId,
    /// Its UNIQUEID.
    pub uniqueid: Rc<str>,
    /// Higher ones go before.
    pub priority: i32,
    /// When it entered.
    pub joined: Now,
    /// The place at which it entered, from 1 on.
    pub original: usize,
    /// What happens to it.
    pub stage: Stage,
    /// Which members it may get.
    pub bounds: Bounds,
    /// What it needs of members.
    pub skills: Skills,
    /// When it leaves at the latest.
    pub expires: Option<Instant>,
    pub(crate) no_retry: bool,
    /// Attempts that came to nothing.
    pub(crate) tries: usize,
    /// Where `linear` goes on.
    pub(crate) linear: usize,
    /// Who was called in this attempt and refused.
    pub(crate) tried: Vec<Rc<str>>,
    pub(crate) rule: Rc<[PenaltyChange]>,
    pub(crate) rules_done: usize,
    pub(crate) skill_rule: Rc<[SkillChange]>,
    pub(crate) skill_rules_done: usize,
    pub(crate) voice: Voice,
    /// What was thought of its wait when it entered.
    pub(crate) expected: Option<Duration>,
}

impl Caller {
    /// How long it has been here, in whole seconds.
    pub fn waited(&self, now: Instant) -> u64 {
        now.since(self.joined.at).as_secs()
    }
    /// Whether nobody is called for it.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }
    pub(crate) fn next_rule(&self) -> Option<Instant> {
        let penalties = self.rule.get(self.rules_done).map(|change| change.after);
        let skills = self.skill_rule.get(self.skill_rules_done).map(|change| change.after);
        penalties.into_iter().chain(skills).min().map(|after| self.joined.at + after)
    }
    /// Lets time change the skills that are needed; whether it did.
    pub(crate) fn follow_skill_rules(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(change) = self.skill_rule.get(self.skill_rules_done)
            && self.joined.at + change.after <= now
        {
            let skills = change.apply(&self.skills);
            changed |= skills != self.skills;
            self.skills = skills;
            self.skill_rules_done += 1;
        }
        changed
    }
    /// Whether it may get a member, as far as the member's skills go.
    pub(crate) fn suits(&self, member: &Member) -> bool {
        member.skills.meet(&self.skills)
    }
    /// Lets time change the bounds; whether it did.
    pub(crate) fn follow_rules(&mut self, now: Instant) -> bool {
        let before = self.rules_done;
        while let Some(change) = self.rule.get(self.rules_done)
            && self.joined.at + change.after <= now
        {
            self.bounds = change.apply(self.bounds);
            self.rules_done += 1;
        }
        self.rules_done != before
    }
    /// Those who are being called.
    pub fn offers(&self) -> &[Offer] {
        match &self.stage {
            Stage::Ringing { offers, .. } => offers,
            Stage::Waiting { .. } | Stage::Answered { .. } => &[],
        }
    }
}
