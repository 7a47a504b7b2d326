//! Fewer, fuller turns under load.
//!
//! A turn of the loop has a price that does not depend on what it finds: a sleep, a wake-up, the kernel's wait, and above
//! all caches that have gone cold (measured at 100 calls a second: four fifths of the time of a turn that finds one
//! message). So once datagrams come fast the reactor naps between two turns, as a network card moderates its interrupts,
//! and takes in together what came meanwhile. A frame of audio is far below anything that a SIP timer (T1 is 500 ms) or a
//! caller notices; a quiet reactor answers at once.

use std::time::Duration;

use base::Instant;

/// How long arrivals are counted before the nap is chosen anew.
const WINDOW: Duration = Duration::from_millis(100);
/// Below this rate every arrival is looked at when it comes: some 40 calls a second.
const QUIET_PER_SECOND: u64 = 120;
/// Arrivals that a turn is to find, on average: enough to share its cost, few enough for the socket's buffer by far.
const WANTED: u64 = 32;
/// Longest nap: a frame of audio.
const NAP_MAX: Duration = Duration::from_millis(20);
/// A nap shorter than this costs more than it saves: at such a rate turns fill by themselves.
const NAP_MIN: Duration = Duration::from_millis(1);

/// Counts arrivals and says how long to nap.
#[derive(Debug, Default)]
pub(super) struct Moderation {
    since: Instant,
    arrivals: u64,
    nap: Duration,
}

impl Moderation {
    /// Notes what a turn found.
    pub(super) fn arrived(&mut self, count: u64) {
        self.arrivals += count;
    }
    /// How long to nap before the next look.
    pub(super) fn nap(&mut self, now: Instant) -> Duration {
        let elapsed = now.since(self.since);
        if elapsed >= WINDOW {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            let rate = self.arrivals.saturating_mul(1000) / millis;
            self.nap = nap_at(rate);
            (self.since, self.arrivals) = (now, 0);
        }
        self.nap
    }
}

/// Takes a nap.
pub(super) fn sleep(nap: Duration) {
    std::thread::sleep(nap);
}

fn nap_at(rate: u64) -> Duration {
    if rate < QUIET_PER_SECOND {
        return Duration::ZERO;
    }
    let nap = Duration::from_nanos(WANTED * 1_000_000_000 / rate).min(NAP_MAX);
    if nap < NAP_MIN { Duration::ZERO } else { nap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_fit_the_rate() {
        for (rate, micros) in [
            (0, 0),
            (119, 0),
            (120, 20_000),
            (1_600, 20_000),
            (3_200, 10_000),
            (32_000, 1_000),
            (33_000, 0),
            (u64::MAX, 0),
        ] {
            assert_eq!(nap_at(rate).as_micros(), micros, "{rate} a second");
        }
    }

    #[test]
    fn a_burst_is_followed_by_naps_until_it_is_over() {
        let mut moderation = Moderation::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        moderation.arrived(320);
        assert_eq!(moderation.nap(at(50)), Duration::ZERO, "not known yet");
        assert_eq!(moderation.nap(at(100)), Duration::from_millis(10));
        moderation.arrived(5);
        assert_eq!(moderation.nap(at(199)), Duration::from_millis(10));
        assert_eq!(moderation.nap(at(200)), Duration::ZERO);
    }
}
