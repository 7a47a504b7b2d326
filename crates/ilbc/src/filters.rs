//! The filters, each sum in the order of RFC 3951's code: from the newest sample to the oldest.
//!
//! A signal with history is a slice whose first [`ORDER`] samples are the past.

use crate::{Lpc, ORDER};

/// All-pole filter in place: `buffer[ORDER..]` is filtered, `buffer[..ORDER]` is what came out before.
pub(crate) fn all_pole(buffer: &mut [f32], lpc: &Lpc) {
    for n in ORDER..buffer.len() {
        buffer[n] = all_pole_step(&buffer[n - ORDER..n], lpc, buffer[n]);
    }
}

/// One sample of the all-pole filter; `past` holds the last [`ORDER`] outputs, the newest last.
#[inline(always)]
pub(crate) fn all_pole_step(past: &[f32], lpc: &Lpc, input: f32) -> f32 {
    let mut sum = input;
    for (&coefficient, &old) in lpc[1..].iter().zip(past.iter().rev()) {
        sum -= coefficient * old;
    }
    sum
}

/// All-zero filter: `signal[ORDER..]` through `lpc` into `out`, `signal[..ORDER]` is the past (section 3.3).
pub(crate) fn all_zero(signal: &[f32], lpc: &Lpc, out: &mut [f32]) {
    for (window, out) in signal.windows(ORDER + 1).zip(out) {
        let mut sum = 0.0;
        for (&coefficient, &sample) in lpc.iter().zip(window.iter().rev()) {
            sum += coefficient * sample;
        }
        *out = sum;
    }
}

/// State of a second-order high-pass filter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HighPass {
    /// The last two inputs, newest first.
    pub input: [f32; 2],
    /// The last two outputs, newest first.
    pub output: [f32; 2],
}

impl HighPass {
    /// Filters in place (sections 3.1 and 4.8).
    pub fn process(&mut self, signal: &mut [f32], zeros: &[f32; 3], poles: &[f32; 3]) {
        for sample in signal {
            let input = *sample;
            let zero_section = zeros[0] * input + zeros[1] * self.input[0] + zeros[2] * self.input[1];
            let output = zero_section - poles[1] * self.output[0] - poles[2] * self.output[1];
            self.input = [input, self.input[0]];
            self.output = [output, self.output[0]];
            *sample = output;
        }
    }
}
