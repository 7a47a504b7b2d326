//! Who is let in: a cap on calls, a cap on calls a second, and the load of the machine.
//!
//! Asked before any state exists for a call. A call that is up is never touched by it.

use core::time::Duration;

use base::Instant;

/// The administrator's limits; 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Calls at once (`maxcalls`).
    pub max_calls: u32,
    /// New calls a second.
    pub calls_per_second: u32,
    /// Load average of one minute, times 100 (`maxload`).
    pub max_load_centi: u32,
}

/// Why a call is refused and when to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which limit was reached, in the words of the configuration.
    pub limit: &'static str,
    /// Seconds for Retry-After, spread so that refused callers do not come back together.
    pub retry_after_secs: u32,
}

/// Longest burst over `calls_per_second` that is admitted: one second's worth.
const BURST: Duration = Duration::from_secs(1);

/// A gauge and a token bucket (as a virtual schedule, so that it needs no timer).
#[derive(Debug, Default)]
pub struct Admission {
    limits: Limits,
    load_centi: u32,
    /// When the bucket is full again.
    full_at: Instant,
    /// No new call at all: the process is about to stop.
    closed: bool,
    refused: u64,
}

impl Admission {
    /// Changes the limits; calls that are up stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }
    /// Refuses every new call, until opened again; for a graceful stop.
    pub fn set_closed(&mut self, closed: bool) {
        self.closed = closed;
    }
    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }
    /// The one-minute load average of the machine, times 100.
    pub fn set_load(&mut self, centi: u32) {
        self.load_centi = centi;
    }
    /// How many calls were refused since start.
    pub fn refused(&self) -> u64 {
        self.refused
    }
    /// Asks for one more call beside `up` existing ones. `spread` is any random number.
    pub fn admit(&mut self, up: usize, spread: u32, now: Instant) -> Result<(), Refused> {
        let Limits { max_calls, calls_per_second, max_load_centi } = self.limits;
        let limit = if self.closed {
            Some("shutdown")
        } else if max_calls != 0 && up >= max_calls as usize {
            Some("maxcalls")
        } else if max_load_centi != 0 && self.load_centi > max_load_centi {
            Some("maxload")
        } else if calls_per_second != 0 && self.full_at > now + BURST {
            Some("maxcps")
        } else {
            None
        };
        if let Some(limit) = limit {
            self.refused += 1;
            return Err(Refused { limit, retry_after_secs: 5 + spread % 26 });
        }
        if let Some(interval) = Duration::from_secs(1).checked_div(calls_per_second) {
            self.full_at = self.full_at.max(now) + interval;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(limits: Limits) -> Admission {
        Admission { limits, ..Admission::default() }
    }

    #[test]
    fn call_number_n_plus_one_is_refused_until_one_hangs_up() {
        let mut gate = admission(Limits { max_calls: 2, ..Limits::default() });
        assert!(gate.admit(1, 0, Instant::ZERO).is_ok());
        let refused = gate.admit(2, 7, Instant::ZERO).unwrap_err();
        assert_eq!(refused, Refused { limit: "maxcalls", retry_after_secs: 12 });
        assert!(gate.admit(1, 0, Instant::ZERO).is_ok());
        assert_eq!(gate.refused(), 1);
    }

    #[test]
    fn the_rate_admits_a_burst_of_one_second_and_then_the_steady_rate() {
        let mut gate = admission(Limits { calls_per_second: 10, ..Limits::default() });
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let burst = (0..100).filter(|_| gate.admit(0, 0, at(0)).is_ok()).count();
        assert_eq!(burst, 11);
        let later = (1..=1000).filter(|ms| gate.admit(0, 0, at(*ms)).is_ok()).count();
        assert_eq!(later, 10);
    }

    #[test]
    fn load_above_the_limit_refuses_and_spreads_the_return() {
        let mut gate = admission(Limits { max_load_centi: 400, ..Limits::default() });
        gate.set_load(450);
        for spread in [0, 25, 26, u32::MAX] {
            let seconds = gate.admit(0, spread, Instant::ZERO).unwrap_err().retry_after_secs;
            assert!((5..=30).contains(&seconds), "{seconds}");
        }
        gate.set_load(400);
        assert!(gate.admit(0, 0, Instant::ZERO).is_ok());
    }
}
