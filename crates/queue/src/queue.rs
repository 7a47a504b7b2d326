//! One queue: its members, those who wait, and its figures.

use core::time::Duration;
use std::rc::Rc;

use base::{ChannelId, Instant, Scheduled};

use crate::pace::Pace;
use crate::{Caller, Member, Settings};

/// What a queue has done since it was made, or since its figures were set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Seconds that callers wait, on average; the last one counts a quarter.
    pub hold: u64,
    /// Seconds that they talk, on average; the last one counts a quarter.
    pub talk: u64,
    /// Conversations that have ended.
    pub completed: u32,
    /// Of these, how many waited no longer than the service level.
    pub completed_in_level: u32,
    /// Callers who gave up, or were given up.
    pub abandoned: u32,
    /// Of these, how many within the service level.
    pub abandoned_in_level: u32,
}

impl Stats {
    pub(crate) fn waited(&mut self, seconds: u64) {
        self.hold = (self.hold * 3 + seconds) / 4;
    }
    pub(crate) fn talked(&mut self, seconds: u64) {
        self.talk = (self.talk * 3 + seconds) / 4;
    }
    /// Percent of completed calls that waited no longer than the service level.
    pub fn level_of_completed(&self) -> f64 {
        percent(self.completed_in_level, self.completed)
    }
    /// Percent of all calls that were completed or given up within it.
    pub fn level_of_all(&self) -> f64 {
        percent(self.completed_in_level + self.abandoned_in_level, self.completed + self.abandoned)
    }
}

fn percent(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * f64::from(part) / f64::from(whole) }
}

/// One queue.
#[derive(Debug)]
pub struct Queue {
    /// Its name.
    pub name: Rc<str>,
    /// How it behaves.
    pub settings: Rc<Settings>,
    /// Its figures.
    pub stats: Stats,
    pub(crate) members: Vec<Member>,
    pub(crate) callers: Vec<Caller>,
    /// The member from which a round robin goes on.
    pub(crate) turn: usize,
    /// The configuration has it no more; it goes with its last caller.
    pub(crate) is_dead: bool,
    /// It is a row of a database.
    pub is_row: bool,
    pub(crate) scheduled: Scheduled,
    pub(crate) pace: Pace,
}

impl Queue {
    pub(crate) fn new(name: Rc<str>, settings: Rc<Settings>) -> Self {
        Self {
            name,
            settings,
            stats: Stats::default(),
            members: Vec::new(),
            callers: Vec::new(),
            turn: 0,
            is_dead: false,
            is_row: false,
            scheduled: Scheduled::default(),
            pace: Pace::default(),
        }
    }
    /// Its members, in the order in which they were added.
    pub fn members(&self) -> &[Member] {
        &self.members
    }
    /// Those who are in it, first first.
    pub fn callers(&self) -> &[Caller] {
        &self.callers
    }
    /// The member of this interface.
    pub fn member(&self, interface: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.interface.eq_ignore_ascii_case(interface))
    }
    pub(crate) fn place_of(&self, channel: ChannelId) -> Option<usize> {
        self.callers.iter().position(|caller| caller.channel == channel)
    }
    /// Where a newcomer stands: behind all of its priority, or at the place that it wants as far as others' priorities let it.
    pub(crate) fn place_for(&self, priority: i32, wanted: Option<usize>) -> usize {
        let first_lower = self.callers.iter().position(|other| other.priority < priority);
        let behind = first_lower.unwrap_or(self.callers.len());
        let before_equals = self.callers.iter().position(|other| other.priority <= priority);
        let ahead = before_equals.unwrap_or(self.callers.len());
        wanted.map_or(behind, |place| place.saturating_sub(1).clamp(ahead, behind))
    }
    /// Where one stands who has kept its place since then: among those of its priority, before the first who came later.
    pub(crate) fn place_since(&self, priority: i32, since: Instant) -> usize {
        let later = |other: &Caller| {
            other.priority < priority || other.priority == priority && other.joined.at > since
        };
        self.callers.iter().position(later).unwrap_or(self.callers.len())
    }
    /// Whether penalties count among so many members.
    pub fn penalises(&self) -> bool {
        let limit = self.settings.penalty_members_limit as usize;
        self.members.len() > limit
    }
    pub(crate) fn is_in_level(&self, seconds: u64) -> bool {
        Duration::from_secs(seconds) <= self.settings.service_level
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Now, Stage};

    fn waiting(slot: u32, priority: i32) -> Caller {
        Caller {
            channel: ChannelId::new(slot, 0),
            uniqueid: "".into(),
            priority,
            joined: Now::default(),
            original: 1,
            stage: Stage::Waiting { until: Instant::ZERO },
            bounds: Default::default(),
            skills: Default::default(),
            expires: None,
            no_retry: false,
            tries: 0,
            linear: 0,
            tried: Vec::new(),
            rule: [].into(),
            rules_done: 0,
            skill_rule: [].into(),
            skill_rules_done: 0,
            voice: Default::default(),
            expected: None,
        }
    }

    #[test]
    fn newcomers_stand_behind_their_priority_or_where_they_want_as_far_as_it_lets_them() {
        let mut queue = Queue::new("q".into(), Rc::default());
        queue.callers =
            [5, 5, 0, 0].iter().zip(0..).map(|(priority, slot)| waiting(slot, *priority)).collect();
        for (priority, wanted, expected) in [
            (0, None, 4),
            (5, None, 2),
            (9, None, 0),
            (-1, None, 4),
            (0, Some(1), 2),
            (0, Some(4), 3),
            (0, Some(99), 4),
            (5, Some(1), 0),
            (5, Some(9), 2),
            (9, Some(3), 0),
            (5, Some(0), 0),
        ] {
            assert_eq!(queue.place_for(priority, wanted), expected, "{priority} {wanted:?}");
        }
    }

    #[test]
    fn who_kept_his_place_stands_before_those_of_his_priority_who_came_later() {
        let at = |second: u64| Instant::ZERO + Duration::from_secs(second);
        let mut queue = Queue::new("q".into(), Rc::default());
        let came = |(slot, (priority, second)): (u32, (i32, u64))| {
            let joined = Now { at: at(second), wall: 0 };
            Caller { joined, ..waiting(slot, priority) }
        };
        queue.callers = (0..).zip([(5, 40), (5, 50), (0, 10), (0, 20), (0, 30)]).map(came).collect();
        for (priority, second, expected) in [
            (0, 5, 2),
            (0, 10, 3),
            (0, 25, 4),
            (0, 99, 5),
            (5, 1, 0),
            (5, 45, 1),
            (5, 99, 2),
            (9, 99, 0),
            (-1, 1, 5),
        ] {
            assert_eq!(queue.place_since(priority, at(second)), expected, "{priority} {second}");
        }
    }

    #[test]
    fn averages_move_by_a_quarter_and_levels_are_percentages() {
        let mut stats = Stats::default();
        stats.waited(40);
        assert_eq!(stats.hold, 10);
        stats.waited(10);
        assert_eq!(stats.hold, 10);
        assert_eq!((stats.level_of_completed(), stats.level_of_all()), (0.0, 0.0));
        let stats =
            Stats { completed: 4, completed_in_level: 1, abandoned: 4, abandoned_in_level: 1, ..stats };
        assert_eq!((stats.level_of_completed(), stats.level_of_all()), (25.0, 25.0));
    }
}
