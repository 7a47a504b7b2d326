//! The recursive filters: start state, synthesis, high-pass.

use lanes::{Kernel, LANES_MAX, Lanes, Mask, Number, Vector};

use super::{
    FRONT, FilterRows, FrameRows, LpcRows, Parameters, Residual, add_product, gather, kept, subtract_product,
};
use crate::tables::{HP_OUT_POLES, HP_OUT_ZEROS};
use crate::{ORDER, STATE_MAX, SUB_BLOCK, Shape};

/// One sample of the all-pole filter, newest output first; puts it before the others.
#[inline(always)]
fn all_pole<L: Lanes, const FAST: bool>(
    input: L::F32,
    lpc: &LpcRows<L>,
    past: &mut [L::F32; ORDER],
) -> L::F32 {
    let mut sum = input;
    if FAST {
        // The newest output last: only one product waits for it.
        for back in (0..ORDER).rev() {
            sum = subtract_product::<L, FAST>(sum, lpc[back + 1], past[back]);
        }
    } else {
        for back in 0..ORDER {
            sum -= lpc[back + 1] * past[back];
        }
    }
    for back in (1..ORDER).rev() {
        past[back] = past[back - 1];
    }
    past[0] = sum;
    sum
}

/// One sample of the filter whose zeros are the coefficients in reverse; `input` ends with the newest.
#[inline(always)]
fn all_zero<L: Lanes, const FAST: bool>(input: &[L::F32], lpc: &LpcRows<L>) -> L::F32 {
    let mut sum = L::F32::splat(0.0);
    for (&sample, &coefficient) in input.iter().zip(lpc).rev() {
        sum = add_product::<L, FAST>(sum, coefficient, sample);
    }
    sum
}

/// The start states, each written to its place in the stream's residual.
pub(super) struct StartState<'a, L: Lanes, const FAST: bool> {
    pub shape: &'a Shape,
    pub parameters: &'a [Parameters; LANES_MAX],
    pub filters: &'a FilterRows<L>,
    pub residuals: &'a mut [Residual; LANES_MAX],
}

impl<L: Lanes, const FAST: bool> Kernel for StartState<'_, L, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let zero = L::F32::splat(0.0);
        let length = self.shape.state;
        // The past and the future of the input are zeros.
        let mut input = [zero; STATE_MAX.next_multiple_of(4) + 2 * ORDER];
        gather::<L, _>(
            self.parameters,
            |parameters| &parameters.state[..length],
            &mut input[ORDER..ORDER + length],
        );

        let mut lpc = self.filters[0];
        for block in 1..self.shape.sub_blocks - 1 {
            let mut lanes = 0;
            for (lane, parameters) in self.parameters.iter().enumerate().take(L::N) {
                lanes |= u32::from(usize::from(parameters.frame.start) == block + 1) << lane;
            }
            let here = L::Mask32::from_bits(lanes);
            for (coefficient, &other) in lpc.iter_mut().zip(&self.filters[block]) {
                *coefficient = L::F32::select(here, other, *coefficient);
            }
        }
        let mut state = [zero; STATE_MAX];
        let mut past = [zero; ORDER];
        for at in 0..length {
            let input = &input[at..at + ORDER + 1];
            state[length - 1 - at] = all_pole::<L, FAST>(all_zero::<L, FAST>(input, &lpc), &lpc, &mut past);
        }
        // What rings on is added to the beginning.
        for at in 0..length {
            let sum = if at < ORDER {
                all_zero::<L, FAST>(&input[length + at..length + at + ORDER + 1], &lpc)
            } else {
                zero
            };
            state[length - 1 - at] += all_pole::<L, FAST>(sum, &lpc, &mut past);
        }
        let mut places = <[&mut [f32]; LANES_MAX]>::default();
        for ((place, residual), parameters) in places.iter_mut().zip(self.residuals).zip(self.parameters) {
            let start = FRONT + self.shape.state_place(&parameters.frame);
            *place = &mut residual[start..start + length];
        }
        L::F32::scatter(&state[..length], &mut places[..L::N]);
    }
}

/// Residual to speech in place, each sub-block with its filter, then the high-pass filter.
pub(super) struct Synthesis<'a, L: Lanes, const FAST: bool> {
    pub shape: &'a Shape,
    pub filters: &'a FilterRows<L>,
    pub kept: &'a mut [L::F32; kept::COUNT],
    pub rows: &'a mut FrameRows<L>,
}

impl<L: Lanes, const FAST: bool> Kernel for Synthesis<'_, L, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let mut past = [L::F32::splat(0.0); ORDER];
        for (past, &output) in past.iter_mut().rev().zip(&self.kept[kept::OUTPUTS]) {
            *past = output;
        }
        let start = kept::HIGH_PASS.start;
        let [mut x1, mut x2, mut y1, mut y2] =
            [self.kept[start], self.kept[start + 1], self.kept[start + 2], self.kept[start + 3]];
        let [z0, z1, z2] = HP_OUT_ZEROS;
        let zeros = [L::F32::splat(z0), L::F32::splat(z1), L::F32::splat(z2)];
        let poles = [L::F32::splat(HP_OUT_POLES[1]), L::F32::splat(HP_OUT_POLES[2])];
        for block in 0..self.shape.sub_blocks {
            let lpc = self.filters[block];
            for row in &mut self.rows[block * SUB_BLOCK..(block + 1) * SUB_BLOCK] {
                let input = all_pole::<L, FAST>(*row, &lpc, &mut past);
                let mut sum = zeros[0] * input;
                sum = add_product::<L, FAST>(sum, zeros[1], x1);
                sum = add_product::<L, FAST>(sum, zeros[2], x2);
                if FAST {
                    sum = subtract_product::<L, FAST>(sum, poles[1], y2);
                    sum = subtract_product::<L, FAST>(sum, poles[0], y1);
                } else {
                    sum -= poles[0] * y1;
                    sum -= poles[1] * y2;
                }
                (x2, x1, y2, y1) = (x1, input, y1, sum);
                *row = sum;
            }
        }
        for (&past, output) in past.iter().rev().zip(&mut self.kept[kept::OUTPUTS]) {
            *output = past;
        }
        self.kept[kept::HIGH_PASS].copy_from_slice(&[x1, x2, y1, y2]);
    }
}
