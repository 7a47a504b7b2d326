//! The start state: the part of the residual from which the codebook grows (RFC 3951 sections 3.5 and 4.2).

use crate::filters::{all_pole, all_zero};
use crate::tables::{SCALE_AMPLITUDES, STATE_LEVELS};
use crate::{Lpc, ORDER, STATE_MAX};

/// Largest magnitude of the quantiser: what the largest amplitude is scaled to.
pub(crate) const STATE_RANGE: f32 = 4.5;

/// A start state through an all-pass filter, what rings on after its end added to its beginning: a circular convolution.
///
/// `out` is as long as `state`, at most [`STATE_MAX`].
pub(crate) fn all_pass(state: &[f32], lpc: &Lpc, out: &mut [f32]) {
    let mut zeros = *lpc;
    zeros.reverse();
    let mut input = [0.0; ORDER + 2 * STATE_MAX];
    let mut rung = [0.0; ORDER + 2 * STATE_MAX];
    let (input, rung) = (&mut input[..ORDER + 2 * state.len()], &mut rung[..ORDER + 2 * state.len()]);
    input[ORDER..][..state.len()].copy_from_slice(state);
    all_zero(input, &zeros, &mut rung[ORDER..]);
    all_pole(rung, lpc);
    let (first, second) = rung[ORDER..].split_at(state.len());
    for ((out, first), second) in out.iter_mut().zip(first).zip(second) {
        *out = first + second;
    }
}

/// The samples of a start state from its quantised levels (section 4.2): filtered backwards in time.
pub(crate) fn construct(scale: u8, levels: &[u8], lpc: &Lpc, out: &mut [f32]) {
    let unit = SCALE_AMPLITUDES[usize::from(scale) % SCALE_AMPLITUDES.len()] / STATE_RANGE;
    let mut reversed = [0.0; STATE_MAX];
    let reversed = &mut reversed[..levels.len()];
    for (sample, &level) in reversed.iter_mut().rev().zip(levels) {
        *sample = unit * STATE_LEVELS[usize::from(level & 7)];
    }
    all_pass(reversed, lpc, out);
    out.reverse();
}
