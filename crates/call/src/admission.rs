//! Who is let in: a cap on calls, a cap on calls a second, the load of the machine and that of its media workers.
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
    /// Share of its time that the least busy media worker may be at work, in thousandths (`maxbusy`).
    pub max_busy_permille: u32,
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

/// So few calls are never refused because workers are busy: it is not they who keep a worker at work, and what does passes.
pub const CALLS_ALWAYS: usize = 50;
/// From this share on, in thousandths, what workers do tells how many calls they can carry; below, set-up and the machine's
/// own noise say more than calls do.
const BUSY_TELLS: u32 = 300;

/// A gauge and a token bucket (as a virtual schedule, so that it needs no timer).
#[derive(Debug, Default)]
pub struct Admission {
    limits: Limits,
    load_centi: u32,
    /// How many calls the workers can carry, by what they did lately; and how many calls there were then.
    carried_max: Option<usize>,
    calls_before: usize,
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
    /// The share of the last second in which the least busy media worker was at work, in thousandths, with so many calls now.
    ///
    /// What a call costs follows from it, and so how many fit under the limit: a wave of calls is stopped where the workers
    /// are full, not a second after.
    pub fn set_busy(&mut self, permille: u32, calls: usize) {
        // In the second that was measured there were as many as halfway between its ends.
        let meanwhile = self.calls_before.midpoint(calls);
        self.calls_before = calls;
        let most = self.limits.max_busy_permille as usize;
        let tells = most != 0 && permille >= BUSY_TELLS;
        self.carried_max = tells.then(|| (meanwhile * most / permille as usize).max(CALLS_ALWAYS));
    }
    /// How many calls were refused since start.
    pub fn refused(&self) -> u64 {
        self.refused
    }
    /// Asks for one more call beside `up` existing ones. `spread` is any random number.
    pub fn admit(&mut self, up: usize, spread: u32, now: Instant) -> Result<(), Refused> {
        let Limits { max_calls, calls_per_second, max_load_centi, .. } = self.limits;
        let limit = if self.closed {
            Some("shutdown")
        } else if max_calls != 0 && up >= max_calls as usize {
            Some("maxcalls")
        } else if max_load_centi != 0 && self.load_centi > max_load_centi {
            Some("maxload")
        } else if self.carried_max.is_some_and(|most| up >= most) {
            Some("maxbusy")
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
    fn a_wave_of_calls_ends_where_the_workers_are_full() {
        let limits = Limits { max_busy_permille: 950, ..Limits::default() };
        for (name, per_call, wave, capacity) in
            [("slow", 1000, 40, 950), ("fast", 1000, 700, 950), ("dear calls", 100, 200, 9500)]
        {
            let mut gate = admission(limits);
            let (mut up, mut most) = (0_usize, 0);
            for _second in 0..400 {
                let before = up;
                for _ in 0..wave {
                    up += usize::from(gate.admit(up, 0, Instant::ZERO).is_ok());
                }
                most = most.max(up);
                let busy = before.midpoint(up) * per_call / 1000;
                gate.set_busy(busy.min(1000) as u32, up);
            }
            assert!(most <= capacity + capacity / 20, "{name}: {most}");
            assert!(up + 1 >= capacity, "{name}: {up}");
            assert_eq!(gate.admit(up, 0, Instant::ZERO).unwrap_err().limit, "maxbusy", "{name}");
            assert!(
                gate.admit(up / 2, 0, Instant::ZERO).is_ok(),
                "{name}: there is room when half have gone"
            );
        }
    }

    #[test]
    fn busy_workers_refuse_neither_the_first_calls_nor_without_a_limit() {
        let mut gate = admission(Limits { max_busy_permille: 950, ..Limits::default() });
        gate.set_busy(1000, 3);
        assert!(gate.admit(CALLS_ALWAYS - 1, 0, Instant::ZERO).is_ok());
        assert!(gate.admit(CALLS_ALWAYS, 0, Instant::ZERO).is_err());
        gate.set_busy(100, 60);
        assert!(gate.admit(1000, 0, Instant::ZERO).is_ok(), "it has passed");
        let mut open = admission(Limits::default());
        open.set_busy(1000, 500);
        assert!(open.admit(10_000, 0, Instant::ZERO).is_ok());
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
