//! What the encoder measures, over a span of four frames: the newest is the last, the one that leaves is the first.

use super::onset::Onsets;
use super::pitch::{self, Tracker};
use super::place::{self, Bounds, Placing, Window};
use super::predict;
use super::voicing::{Heard, Voicing};
use super::{FRAME_SAMPLES, LAG_MAX, LAGS, ORDER, Parameters};

/// Positions of the analysis span count from 1 to four frames; a signal over it.
pub type Span = [f32; 4 * FRAME_SAMPLES + 1];
/// Where the newest frame begins.
pub const FRAME_START: usize = 3 * FRAME_SAMPLES + 1;
/// Where the part searched for the pitch begins: longest period and longest window before the newest frame.
const PITCH_START: usize = FRAME_START - LAG_MAX - place::WINDOW_MAX;
/// Factor of the pre-emphasis.
const EMPHASIS: f32 = 0.9375;
/// Half of a symmetric low-pass filter at 800 Hz.
const LOW_PASS: [f32; 16] = [
    -0.009_720_199,
    -0.010_517_999,
    -0.008_347_965,
    0.000_586_077_4,
    0.013_089_209,
    0.021_705_223,
    0.018_416_125,
    0.000_339_723,
    -0.026_079_709,
    -0.045_556_37,
    -0.040_306_855,
    0.000_502_983_5,
    0.072_926_29,
    0.157_200_89,
    0.224_728_87,
    0.250_535_96,
];

/// What is known of one of the three frames under analysis.
#[derive(Debug, Clone, Default)]
struct Frame {
    voicing_window: Window,
    analysis_window: Window,
    bounds: Bounds,
    rms: f32,
    rc: [f32; ORDER],
}

/// State of the analysis of one stream.
#[derive(Debug, Clone)]
pub struct Analysis {
    input: Span,
    emphasised: Span,
    low: Span,
    /// `low` through its inverse filter.
    inverse: Span,
    /// Offset taken from the input, 12-bit samples.
    bias: f32,
    /// The last sample before the newest frame.
    last: f32,
    onsets: Onsets,
    /// The oldest first.
    frames: [Frame; 3],
    voicing: Voicing,
    tracker: Tracker,
}

impl Default for Analysis {
    fn default() -> Self {
        let zero: Span = [0.0; 4 * FRAME_SAMPLES + 1];
        let mut frames: [Frame; 3] = Default::default();
        frames[2].voicing_window = place::DEFAULT;
        frames[2].analysis_window = place::DEFAULT;
        Self {
            input: zero,
            emphasised: zero,
            low: zero,
            inverse: zero,
            bias: 0.0,
            last: 0.0,
            onsets: Onsets::default(),
            frames,
            voicing: Voicing::default(),
            tracker: Tracker::default(),
        }
    }
}

impl Analysis {
    /// Takes the newest frame; returns what is known of the one two frames before.
    pub fn analyse(&mut self, speech: &[f32; FRAME_SAMPLES]) -> Parameters {
        self.advance();
        self.take(speech);
        self.onsets.detect(&self.emphasised);
        let (voicing_window, bounds) =
            place::voicing_window(self.onsets.list(), self.frames[1].voicing_window);
        (self.frames[2].voicing_window, self.frames[2].bounds) = (voicing_window, bounds);

        self.low_pass();
        let inverse_rc = self.inverse_filter();
        let searched = &self.inverse[PITCH_START..FRAME_START];
        let differences = pitch::search(searched);
        let heard = Heard {
            window: voicing_window,
            input: &self.input,
            low: &self.low,
            lag: differences.lag,
            deepest: differences.amdf[differences.lowest],
            highest: differences.amdf[differences.highest],
            inverse_rc,
            bounds: [self.frames[0].bounds, self.frames[1].bounds, bounds],
        };
        self.voicing.decide(&heard);

        let (pitch, lag_index) = self.tracker.follow(&differences, self.voicing.newest()[1]);
        let (window, energy_window) = place::analysis_windows(&Placing {
            lag: LAGS[lag_index],
            voiced: self.voicing.recent(),
            voicing_window,
            bounds,
            previous: self.frames[1].analysis_window,
        });
        self.measure(window, energy_window);

        let Frame { rms, rc, .. } = self.frames[0];
        Parameters { voiced: self.voicing.oldest(), pitch, rms, rc }
    }

    /// Moves everything back by a frame.
    fn advance(&mut self) {
        for span in [&mut self.input, &mut self.emphasised, &mut self.low, &mut self.inverse] {
            span.copy_within(FRAME_SAMPLES + 1.., 1);
        }
        self.onsets.shift();
        self.frames.rotate_left(1);
        self.frames[2] = Frame::default();
        let frame = &mut self.frames[1];
        frame.voicing_window = frame.voicing_window.shifted();
        frame.analysis_window = frame.analysis_window.shifted();
    }

    /// Takes the offset from the newest frame and pre-emphasises it.
    fn take(&mut self, speech: &[f32; FRAME_SAMPLES]) {
        let mut sum = 0.0;
        for (index, &sample) in speech.iter().enumerate() {
            let sample = sample * 4096.0 - self.bias;
            sum += sample;
            self.input[FRAME_START + index] = sample;
            self.emphasised[FRAME_START + index] = sample - EMPHASIS * self.last;
            self.last = sample;
        }
        if sum > FRAME_SAMPLES as f32 {
            self.bias += 1.0;
        }
        if sum < -(FRAME_SAMPLES as f32) {
            self.bias -= 1.0;
        }
    }

    fn low_pass(&mut self) {
        for position in FRAME_START..FRAME_START + FRAME_SAMPLES {
            let x = |back: usize| self.input[position - back];
            let mut sum = LOW_PASS[0] * (x(0) + x(30));
            for (index, factor) in LOW_PASS.iter().enumerate().take(15).skip(1) {
                sum += factor * (x(index) + x(30 - index));
            }
            self.low[position] = sum + LOW_PASS[15] * x(15);
        }
    }

    /// Flattens the low-passed spectrum with a filter of the second order; returns its reflection coefficients.
    ///
    /// Works a frame behind: on the part that is searched for the pitch.
    fn inverse_filter(&mut self) -> [f32; 2] {
        let end = FRAME_START - 1;
        let start = FRAME_START - FRAME_SAMPLES;
        let mut r = [0.0f32; 3];
        for (index, sum) in r.iter_mut().enumerate() {
            let back = 4 * index;
            for position in (start + 3 + back..=end).step_by(2) {
                *sum += self.low[position] * self.low[position - back];
            }
        }
        let (mut rc, mut pc) = ([0.0; 2], [0.0; 2]);
        if r[0] > 1.0e-10 {
            rc[0] = r[1] / r[0];
            rc[1] = (r[2] - rc[0] * r[1]) / (r[0] - rc[0] * r[1]);
            pc = [rc[0] - rc[0] * rc[1], rc[1]];
        }
        for position in start..=end {
            self.inverse[position] =
                self.low[position] - pc[0] * self.low[position - 4] - pc[1] * self.low[position - 8];
        }
        rc
    }

    /// Energy and coefficients of the newest of the three frames.
    fn measure(&mut self, window: Window, energy_window: Window) {
        let mut buffer = [0.0; place::WINDOW_MAX];
        let signal = &self.emphasised[window.first..=window.last];
        let free = &mut buffer[..signal.len()];
        let mut bias = 0.0;
        for sample in signal {
            bias += sample;
        }
        bias /= signal.len() as f32;
        for (slot, sample) in free.iter_mut().zip(signal) {
            *slot = sample - bias;
        }
        let mut energy = 0.0;
        for sample in &free[energy_window.first - window.first..=energy_window.last - window.first] {
            energy += sample * sample;
        }
        let rc = predict::reflection_coefficients(free);
        // A filter on the edge of stability: the one before is kept.
        let rc = if rc.iter().any(|c| c.abs() > 0.99) { self.frames[1].rc } else { rc };
        let frame = &mut self.frames[2];
        frame.analysis_window = window;
        frame.rms = (energy / energy_window.len() as f32).sqrt();
        frame.rc = rc;
    }
}
