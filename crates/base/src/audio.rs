//! Units of sound and of the worker's clock.

use core::time::Duration;

/// Hertz of the samples. The RTP clock is another number (G.722: 16 kHz samples, 8 kHz clock).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleRate(pub u32);

/// A count of samples; never bytes, never milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Samples(pub u32);

impl Samples {
    /// How many samples `period` holds at `rate`, rounded down; saturates.
    pub fn in_period(rate: SampleRate, period: Duration) -> Self {
        let count = u128::from(rate.0) * period.as_nanos() / 1_000_000_000;
        Self(u32::try_from(count).unwrap_or(u32::MAX))
    }
    /// How long these samples last at `rate`; zero when the rate is zero.
    pub fn duration(self, rate: SampleRate) -> Duration {
        let nanos = (u64::from(self.0) * 1_000_000_000).checked_div(u64::from(rate.0));
        Duration::from_nanos(nanos.unwrap_or(0))
    }
}

/// One step of a worker's wheel: a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_periods_convert_both_ways() {
        for (rate, ms, count) in [(8_000, 20, 160), (16_000, 20, 320), (48_000, 10, 480), (44_100, 10, 441)] {
            let samples = Samples::in_period(SampleRate(rate), Duration::from_millis(ms));
            assert_eq!(samples, Samples(count), "{rate} Hz");
            assert_eq!(samples.duration(SampleRate(rate)), Duration::from_millis(ms), "{rate} Hz");
        }
        assert_eq!(Samples(5).duration(SampleRate(0)), Duration::ZERO);
    }
}
