//! Monotonic time that tests can invent.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point on the process's monotonic clock, in nanoseconds since an arbitrary zero.
///
/// Only the outermost loop reads a real clock; everything else is handed an `Instant`.
/// Arithmetic saturates: a deadline computed from hostile input never wraps or panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// Where invented time starts.
    pub const ZERO: Self = Self(0);
    /// Later than any deadline that can be reached.
    pub const FAR: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole milliseconds since zero.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// How long `self` lies after `earlier`; zero when it does not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::ZERO - Instant::FAR, Duration::ZERO);
        assert_eq!(Instant::FAR + Duration::MAX, Instant::FAR);
        assert_eq!((Instant::ZERO + Duration::from_millis(1500)).as_millis(), 1500);
    }
}
