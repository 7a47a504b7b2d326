//! The only places where real time enters: one monotonic clock for deadlines, one wall clock for stamps.
#![forbid(unsafe_code)]

use base::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::sys;

/// The process's clocks. Every thread that reads the same kernel gets comparable instants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Clock {
    /// Monotonic time; never steps back, does not follow the administrator's corrections.
    pub fn now(self) -> Instant {
        Instant::from_nanos(sys::clock_nanos(libc::CLOCK_MONOTONIC))
    }
    /// Time since 1970-01-01 UTC, for stamps only: it may step in either direction.
    pub fn wall(self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
    }
    /// Processor time that this whole process has used, for load measurement.
    pub fn process_cpu(self) -> Duration {
        Duration::from_nanos(sys::clock_nanos(libc::CLOCK_PROCESS_CPUTIME_ID))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_never_steps_back_and_wall_time_is_after_this_was_written() {
        let first = Clock.now();
        assert!(Clock.now() >= first);
        assert!(Clock.wall() > Duration::from_secs(1_700_000_000));
    }
}
