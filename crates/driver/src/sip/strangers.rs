//! Addresses that requests of nobody come from: who sends too many in too short a time is reported.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;

use base::Instant;

/// Addresses that are counted at once, about 32 bytes each. While so many are, others are not: whoever writes false
/// addresses can fill the table, and cannot make it grow.
const ADDRESSES_MAX: usize = 4096;

/// When somebody is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From this request on within the period (`unidentified_request_count`).
    pub count: u32,
    /// The span that they are counted in, from the first one on (`unidentified_request_period`).
    pub period: Duration,
    /// Those who have ceased are forgotten so often (`unidentified_request_prune_interval`).
    pub prune: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { count: 5, period: Duration::from_secs(5), prune: Duration::from_secs(30) }
    }
}

struct Stranger {
    since: Instant,
    count: u32,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Strangers {
    known: HashMap<IpAddr, Stranger>,
    prune_at: Option<Instant>,
}

impl Strangers {
    /// Counts a request from somebody who is no endpoint; how many there were within the period, when those are too many.
    /// One of an endpoint without its password takes the same steps and does not count, so that the time tells nothing.
    pub(super) fn comes(
        &mut self,
        from: IpAddr,
        is_endpoint: bool,
        patience: Patience,
        now: Instant,
    ) -> Option<u32> {
        if self.prune_at.is_none_or(|at| at <= now) {
            self.known.retain(|_, stranger| now < stranger.since + patience.period);
            self.prune_at = Some(now + patience.prune);
        }
        let from = from.to_canonical();
        if self.known.len() >= ADDRESSES_MAX && !self.known.contains_key(&from) {
            return None;
        }
        let stranger = self.known.entry(from).or_insert(Stranger { since: now, count: 0 });
        if stranger.since + patience.period <= now {
            *stranger = Stranger { since: now, count: 0 };
        }
        stranger.count = stranger.count.saturating_add(u32::from(!is_endpoint));
        Some(stranger.count).filter(|count| !is_endpoint && *count >= patience.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn who_comes_too_often_within_the_period_is_reported_and_others_are_not() {
        let patience = Patience { count: 3, ..Patience::default() };
        let (one, same, other) = ("192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1");
        let mut strangers = Strangers::default();
        for (secs, from, reported) in [
            (0, one, None),
            (1, other, None),
            (2, one, None),
            (4, same, Some(3)),
            (4, one, Some(4)),
            (4, other, None),
            (5, one, None),
            (6, other, None),
            (9, one, None),
            (9, one, Some(3)),
        ] {
            assert_eq!(
                strangers.comes(from.parse().unwrap(), false, patience, at(secs)),
                reported,
                "{secs} {from}"
            );
        }
        let all = Patience { count: 0, ..patience };
        assert_eq!(strangers.comes(other.parse().unwrap(), false, all, at(100)), Some(1));
    }

    #[test]
    fn false_addresses_fill_the_table_until_those_who_ceased_are_forgotten() {
        let patience = Patience { count: 1, ..Patience::default() };
        let mut strangers = Strangers::default();
        for number in 0..10_000_u32 {
            let counted = strangers.comes(IpAddr::from(number.to_be_bytes()), false, patience, at(0));
            assert_eq!(counted.is_some(), (number as usize) < ADDRESSES_MAX, "{number}");
        }
        let late = "198.51.100.1".parse().unwrap();
        assert_eq!(strangers.comes(late, false, patience, at(29)), None);
        assert_eq!(strangers.comes(late, false, patience, at(30)), Some(1));
        assert_eq!(strangers.known.len(), 1);
    }
}
