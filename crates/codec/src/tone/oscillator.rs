//! Sines without a table and without a library call a sample: rotating a point around the circle.

use base::{Digit, SampleRate};

use super::{DTMF_LEVELS_DBM0, Tone, peak_of_dbm0};

/// Depth of amplitude modulation in `f1*f2`.
const MODULATION: f64 = 0.9;

/// A point on the unit circle that turns by the same angle each sample.
#[derive(Debug, Clone, Copy)]
struct Oscillator {
    cos: f64,
    sin: f64,
    step_cos: f64,
    step_sin: f64,
}

impl Oscillator {
    fn new(hertz: f64, rate: SampleRate) -> Self {
        let (step_sin, step_cos) = (core::f64::consts::TAU * hertz / f64::from(rate.0.max(1))).sin_cos();
        Self { cos: 1.0, sin: 0.0, step_cos, step_sin }
    }
    /// The sine here, then a step on. Rounding drifts by less than 1e-9 in an hour of samples.
    fn next(&mut self) -> f64 {
        let value = self.sin;
        (self.cos, self.sin) = (
            self.cos * self.step_cos - self.sin * self.step_sin,
            self.sin * self.step_cos + self.cos * self.step_sin,
        );
        value
    }
}

/// Samples of one tone for as long as they are asked for. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct ToneGenerator {
    first: Oscillator,
    second: Oscillator,
    first_peak: f64,
    second_peak: f64,
    modulated: bool,
}

impl ToneGenerator {
    /// A call progress tone, each frequency with this peak, starting at phase zero.
    ///
    /// Frequencies from half the rate on would fold back and are silent instead.
    pub fn new(tone: Tone, peak: f64, rate: SampleRate) -> Self {
        let (first, second, modulated) = match tone {
            Tone::Silence => (0.0, 0.0, false),
            Tone::Sum(first, second) => (first, second, false),
            Tone::Modulated(first, second) => (first, second, true),
        };
        let audible = |hertz: f64| hertz > 0.0 && hertz * 2.0 < f64::from(rate.0);
        Self {
            first: Oscillator::new(first, rate),
            second: Oscillator::new(second, rate),
            first_peak: if audible(first) { peak } else { 0.0 },
            second_peak: if audible(second) { peak } else { 0.0 },
            modulated,
        }
    }
    /// A DTMF digit at the levels of [`DTMF_LEVELS_DBM0`]; `None` for the flash.
    pub fn dtmf(digit: Digit, rate: SampleRate) -> Option<Self> {
        let (row, column) = digit.tones()?;
        Some(Self {
            first_peak: peak_of_dbm0(DTMF_LEVELS_DBM0.0),
            second_peak: peak_of_dbm0(DTMF_LEVELS_DBM0.1),
            ..Self::new(Tone::Sum(row.into(), column.into()), 0.0, rate)
        })
    }
    /// Fills `samples` with what comes next.
    pub fn fill(&mut self, samples: &mut [i16]) {
        for sample in samples {
            let (first, second) = (self.first.next(), self.second.next());
            let value = if self.modulated {
                self.first_peak * first * (1.0 + MODULATION * second) / (1.0 + MODULATION)
            } else {
                self.first_peak * first + self.second_peak * second
            };
            *sample = value.round() as i16; // `as` saturates
        }
    }
}
