//! From residual to samples: the synthesis filter and the high-pass filter behind it (RFC 3951 §4.7, §4.8).

use crate::filters::{HighPass, all_pole};
use crate::tables::{HP_OUT_POLES, HP_OUT_ZEROS};
use crate::{Lpc, ORDER, SAMPLES_MAX, SUB_BLOCK};

/// What both filters remember.
#[derive(Debug, Clone, Default)]
pub(crate) struct Synthesis {
    /// The last outputs of the synthesis filter, the newest last.
    pub outputs: [f32; ORDER],
    pub high_pass: HighPass,
}

impl Synthesis {
    /// Filters a frame of residual, a sub-block with each of `filters`, into 16-bit samples.
    pub fn run<'a>(&mut self, residual: &[f32], filters: impl Iterator<Item = &'a Lpc>, pcm: &mut [i16]) {
        let mut speech = [0.0; ORDER + SAMPLES_MAX];
        speech[..ORDER].copy_from_slice(&self.outputs);
        let end = ORDER + residual.len();
        speech[ORDER..end].copy_from_slice(residual);
        for (block, filter) in filters.enumerate() {
            all_pole(&mut speech[block * SUB_BLOCK..][..ORDER + SUB_BLOCK], filter);
        }
        self.outputs.copy_from_slice(&speech[end - ORDER..end]);
        self.high_pass.process(&mut speech[ORDER..end], &HP_OUT_ZEROS, &HP_OUT_POLES);
        for (sample, &value) in pcm.iter_mut().zip(&speech[ORDER..end]) {
            // Cut off toward zero as the reference's cast does, which does not limit what is too loud.
            *sample = value as i16;
        }
        self.keep_finite();
    }

    /// What is not a number must not stay in a recursive filter. No payload is known to lead there.
    pub fn keep_finite(&mut self) {
        if !(self.high_pass.output[0] + self.outputs[ORDER - 1]).is_finite() {
            *self = Self::default();
        }
    }
}
