//! How long a caller will wait: an estimate that is measured against what happened.
//!
//! While callers wait, members take them one after the other; the time between two of these moments, times the place in
//! the line, is how long a caller waits as far as the queue goes on as it does. Whatever that misses (priorities, members who
//! come and go, callers who give up) shows in how long those waited who were told, and corrects what the next are told.

use core::time::Duration;

use base::Instant;

/// Least share of the latest gap in the mean of gaps: a change of staff shows after some dozens of calls, and one long call
/// does not.
const GAP_SHARE: f64 = 0.02;
/// Share of the latest caller in the correction: slower than the gaps, or the two would chase each other.
const ERROR_SHARE: f64 = 0.01;
/// Bounds of the correction: an estimate that is off by more has nothing to do with this queue any more.
const CORRECTION: core::ops::RangeInclusive<f64> = 0.2..=5.0;
/// A caller whose estimate was shorter tells nothing about its error.
const SHORTEST: Duration = Duration::from_secs(1);

/// See the module's page.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Pace {
    /// Mean seconds between two callers who were taken while others waited.
    gap: Option<f64>,
    gaps: u32,
    /// When one was taken last, if somebody has waited since then.
    last: Option<Instant>,
    /// What estimates are multiplied with, less one.
    correction: f64,
}

impl Pace {
    /// A caller was taken; `waits`: others are left in the line. `expected` is what [`Self::plain`] said when it entered.
    pub(crate) fn taken(&mut self, waited: Duration, expected: Option<Duration>, waits: bool, now: Instant) {
        if let Some(last) = self.last {
            let gap = now.since(last).as_secs_f64();
            self.gaps = self.gaps.saturating_add(1);
            let share = f64::from(self.gaps).recip().max(GAP_SHARE);
            self.gap = Some(self.gap.map_or(gap, |mean| mean + share * (gap - mean)));
        }
        self.last = waits.then_some(now);
        if let Some(expected) = expected.filter(|expected| *expected >= SHORTEST) {
            let ratio = waited.as_secs_f64() / expected.as_secs_f64();
            let corrected = 1.0 + self.correction;
            let corrected = corrected + ERROR_SHARE * (ratio - corrected);
            self.correction = corrected.clamp(*CORRECTION.start(), *CORRECTION.end()) - 1.0;
        }
    }
    /// Nobody waits any more: what comes next tells nothing about how fast members are.
    pub(crate) fn idle(&mut self) {
        self.last = None;
    }
    /// The wait at a place, from 1 on, without the correction; `None` while nothing is known.
    pub(crate) fn plain(&self, place: usize) -> Option<Duration> {
        #[allow(clippy::cast_precision_loss, reason = "places are few")]
        let seconds = self.gap? * place as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
    /// The wait at a place, from 1 on; `None` while nothing is known.
    pub(crate) fn estimate(&self, place: usize) -> Option<Duration> {
        let plain = self.plain(place)?.as_secs_f64();
        Duration::try_from_secs_f64(plain * (1.0 + self.correction)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_is_said_before_something_is_known() {
        let mut pace = Pace::default();
        assert_eq!(pace.estimate(1), None);
        // One after the other, and nobody waits between: the second says nothing about members.
        pace.taken(secs(0), None, false, at(0));
        pace.taken(secs(0), None, false, at(500));
        assert_eq!(pace.estimate(1), None);
        pace.taken(secs(0), None, true, at(600));
        pace.taken(secs(30), None, true, at(630));
        assert_eq!(pace.estimate(3), Some(secs(90)));
        pace.idle();
        pace.taken(secs(0), None, true, at(9000));
        assert_eq!(pace.estimate(1), Some(secs(30)), "the pause is no gap");
    }

    #[test]
    fn an_estimate_that_is_wrong_becomes_right() {
        // Everybody waits twice as long as the gaps say: half of those ahead have priority.
        let mut pace = Pace::default();
        for caller in 0..2000 {
            let expected = pace.plain(2);
            pace.taken(secs(80), expected, true, at(20 * caller));
        }
        let told = pace.estimate(2).unwrap().as_secs_f64();
        assert!((79.0..81.0).contains(&told), "{told}");
    }
}
