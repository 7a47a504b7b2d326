//! When which entry next wants to be called: one timer wheel for any number of machines.
//!
//! A deadline that moves is not searched for. Each entry remembers the earliest moment it is scheduled for; an earlier
//! one is added beside it, a later one is found when the old moment comes and is added then. So most moves cost nothing,
//! the others the same however many entries there are, and the wheel holds few stale moments (each leaves at its own
//! time). What it costs beside a heap is measured by `cargo bench -p base`.

use crate::Instant;
use crate::wheel::Wheel;

/// Moments and the entries that wait for them, earliest first; equal moments in order of the entries.
#[derive(Debug)]
pub struct Deadlines<K: Ord + Copy>(Wheel<K>);

/// The earliest moment that the wheel holds for one entry; lives inside the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled(Instant);

impl Default for Scheduled {
    fn default() -> Self {
        Self(Instant::FAR)
    }
}

impl<K: Ord + Copy> Default for Deadlines<K> {
    fn default() -> Self {
        Self(Wheel::default())
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    /// Makes sure that `key` comes up no later than `deadline`.
    pub fn schedule(&mut self, key: K, scheduled: &mut Scheduled, deadline: Option<Instant>) {
        if let Some(at) = deadline.filter(|at| *at < scheduled.0) {
            scheduled.0 = at;
            self.0.add(at, key);
        }
    }

    /// The earliest moment; may be one that its entry has left behind, which costs a call for nothing.
    pub fn earliest(&self) -> Option<Instant> {
        self.0.earliest()
    }

    /// The next moment that has come and its entry. The caller looks whether the entry still wants it and, having
    /// [`fired`](Scheduled::fired) it, schedules the entry again.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, K)> {
        self.0.take_due(now)
    }
}

impl Scheduled {
    /// Notes that the moment `at` has left the wheel.
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
        assert_eq!(deadlines.earliest(), Some(ms(100)));
        deadlines.schedule(7, &mut scheduled, Some(ms(50)));
        assert_eq!(deadlines.earliest(), Some(ms(50)));
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
