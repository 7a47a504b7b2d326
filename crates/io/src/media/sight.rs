//! What a worker says of its time: phases, and how late its ticks were. Shared without a lock: it writes, anyone reads.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::Instant;
use media::Phase;

use super::stopwatch::PHASES;

/// Upper ends of the buckets of lateness, microseconds; one more takes what is above.
pub const LATENESS_US: [u64; 10] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 50_000];
const BUCKETS: usize = LATENESS_US.len() + 1;

/// How late ticks were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Ticks in each bucket of [`LATENESS_US`], and above.
    pub ticks: [u64; BUCKETS],
    /// All of it together, nanoseconds.
    pub sum_nanos: u64,
    /// The latest tick, nanoseconds.
    pub most_nanos: u64,
}

impl Lateness {
    /// Takes one tick.
    pub(crate) fn add(&mut self, late: Duration) {
        let nanos = late.as_nanos() as u64;
        let bucket = LATENESS_US.partition_point(|end| end * 1000 < nanos);
        if let Some(ticks) = self.ticks.get_mut(bucket) {
            *ticks += 1;
        }
        self.sum_nanos += nanos;
        self.most_nanos = self.most_nanos.max(nanos);
    }
    /// Ticks that were counted.
    pub fn count(&self) -> u64 {
        self.ticks.iter().sum()
    }
    /// The end of the bucket, in microseconds, below which this share of ticks lies; `None` without ticks, and for what
    /// lies above all buckets.
    pub fn quantile_us(&self, permille: u64) -> Option<u64> {
        let rank = (self.count() * permille).div_ceil(1000);
        let mut seen = 0;
        let found = self.ticks.iter().zip(LATENESS_US).find_map(|(ticks, end)| {
            seen += ticks;
            (seen >= rank).then_some(end)
        });
        found.filter(|_| rank > 0)
    }
}

/// Where one worker's time went since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSight {
    /// Nanoseconds in each phase, in the order of [`Phase::ALL`].
    pub phases: [u64; PHASES],
    /// Nanoseconds asleep.
    pub idle: u64,
    /// Thousandths of the last second in each phase; the rest was sleep.
    pub recent: [u64; PHASES],
    /// How late ticks were.
    pub lateness: Lateness,
}

impl WorkerSight {
    /// Phases by name, and `idle` at their end.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Phase::ALL.into_iter().map(Phase::name).zip(self.phases).chain([("idle", self.idle)])
    }
    /// Thousandths of the last second by name of the phase, and `idle` at their end.
    pub fn recent_parts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let idle = 1000_u64.saturating_sub(self.recent.iter().sum());
        Phase::ALL.into_iter().map(Phase::name).zip(self.recent).chain([("idle", idle)])
    }
    /// Nanoseconds awake.
    pub fn busy(&self) -> u64 {
        self.phases.iter().sum()
    }
}

/// Values of the cell: when the worker began, phases, the last second's, buckets, sum, most.
const VALUES: usize = 1 + 2 * PHASES + BUCKETS + 2;

/// The cell that a worker writes.
#[derive(Debug)]
pub(crate) struct SightCell([AtomicU64; VALUES]);

impl Default for SightCell {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; VALUES])
    }
}

impl SightCell {
    pub(crate) fn store(
        &self,
        began: Instant,
        phases: &[Duration; PHASES],
        recent: [u64; PHASES],
        lateness: &Lateness,
    ) {
        let phases = phases.iter().map(|time| time.as_nanos() as u64);
        let values = [began.as_nanos()]
            .into_iter()
            .chain(phases)
            .chain(recent)
            .chain(lateness.ticks)
            .chain([lateness.sum_nanos, lateness.most_nanos]);
        for (cell, value) in self.0.iter().zip(values) {
            cell.store(value, Relaxed);
        }
    }
    /// What there is to see at `now`; the time since the last store counts as idle until it is told otherwise.
    pub(crate) fn read(&self, now: Instant) -> WorkerSight {
        let mut values = self.0.iter().map(|cell| cell.load(Relaxed));
        let mut next = || values.next().unwrap_or(0);
        let began = next();
        let phases: [u64; PHASES] = core::array::from_fn(|_| next());
        let recent = core::array::from_fn(|_| next());
        let ticks = core::array::from_fn(|_| next());
        let lateness = Lateness { ticks, sum_nanos: next(), most_nanos: next() };
        let lived = if began == 0 { 0 } else { now.as_nanos().saturating_sub(began) };
        WorkerSight { phases, idle: lived.saturating_sub(phases.iter().sum()), recent, lateness }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_falls_into_the_bucket_whose_end_it_does_not_pass() {
        let mut lateness = Lateness::default();
        for micros in [0, 50, 51, 900, 1000, 49_000, 50_001, 1_000_000] {
            lateness.add(Duration::from_micros(micros));
        }
        assert_eq!(lateness.ticks, [2, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2]);
        assert_eq!((lateness.count(), lateness.most_nanos), (8, 1_000_000_000));
        assert_eq!(lateness.sum_nanos, 1_101_002_000);
    }

    #[test]
    fn quantiles_are_ends_of_buckets_and_unknown_above_the_last() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_us(500), None);
        (0..98).for_each(|_| lateness.add(Duration::from_micros(40)));
        lateness.add(Duration::from_micros(3000));
        lateness.add(Duration::from_secs(1));
        for (permille, end) in
            [(500, Some(50)), (980, Some(50)), (981, Some(5000)), (990, Some(5000)), (999, None)]
        {
            assert_eq!(lateness.quantile_us(permille), end, "{permille}");
        }
    }

    #[test]
    fn what_a_worker_stores_is_what_is_read_and_the_rest_of_its_life_is_idle() {
        let cell = SightCell::default();
        assert_eq!(cell.read(Instant::from_nanos(5)), WorkerSight::default(), "not begun");
        let mut phases = [Duration::ZERO; PHASES];
        phases[Phase::Send as usize] = Duration::from_nanos(30);
        let mut lateness = Lateness::default();
        lateness.add(Duration::from_micros(70));
        let recent = core::array::from_fn(|n| n as u64);
        cell.store(Instant::from_nanos(100), &phases, recent, &lateness);
        let sight = cell.read(Instant::from_nanos(200));
        assert_eq!((sight.busy(), sight.idle, sight.lateness), (30, 70, lateness));
        assert_eq!(sight.parts().last(), Some(("idle", 70)));
        assert_eq!(sight.recent_parts().last(), Some(("idle", 1000 - (0..PHASES as u64).sum::<u64>())));
        assert_eq!(sight.parts().find(|(_, time)| *time == 30), Some(("send", 30)));
    }
}
