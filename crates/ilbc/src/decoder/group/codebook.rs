//! The blocks around one stream's start state, several samples at a time.

use lanes::{Kernel, LANES_MAX, Lanes, Vector};

use super::{FRONT, Residual, add_product};
use crate::bits::{Choice, Frame};
use crate::codebook::{AUGMENTED, EXTRA_MEMORY, FADE, MEMORY, dequantise_gain, vector};
use crate::tables::EXPANSION_FILTER;
use crate::{SAMPLES_MAX, STAGES, STATE_BLOCK, SUB_BLOCK, Shape};

/// Samples before a sample that its filtered version is made of; as many and one more follow it.
const TAPS_BEFORE: usize = 3;
/// Vectors of a block with the narrowest lanes.
const PIECES: usize = SUB_BLOCK / 8;

/// What a repeated block takes of the lag that is twice as long, from well before the cross-fade to well behind.
const FAR: [f32; 2 * SUB_BLOCK + FADE] = {
    let mut shares = [0.0; 2 * SUB_BLOCK + FADE];
    let (mut at, mut share) = (SUB_BLOCK, 0.0);
    while at < shares.len() {
        shares[at] = if at < SUB_BLOCK + FADE { share } else { 1.0 };
        share += 0.2;
        at += 1;
    }
    shares
};
/// What it takes of the lag itself.
const NEAR: [f32; 2 * SUB_BLOCK + FADE] = {
    let mut shares = FAR;
    let mut at = 0;
    while at < shares.len() {
        shares[at] = 1.0 - FAR[at];
        at += 1;
    }
    shares
};

/// Completes a residual that holds its start state and zeros.
pub(super) struct Blocks<'a, const FAST: bool> {
    pub shape: &'a Shape,
    pub frame: &'a Frame,
    pub residual: &'a mut Residual,
}

impl<const FAST: bool> Kernel for Blocks<'_, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { shape, frame, residual } = self;
        let first = shape.first_known(frame);
        let state = FRONT + shape.state_place(frame);
        // Codebooks are made of what lies before a block, and zeros before that. So blocks before the start state are made
        // in reversed time, behind a copy of what follows them.
        if frame.state_first {
            construct::<L, FAST>(residual, state + shape.state, EXTRA_MEMORY, shape.extra, &frame.extra);
        } else {
            let mut reversed = [0.0; FRONT + STATE_BLOCK + LANES_MAX];
            let (from, to) = (FRONT + first, FRONT + shape.state);
            copy_reversed(&residual[state..state + shape.state], &mut reversed[FRONT..to]);
            construct::<L, FAST>(&mut reversed, to, EXTRA_MEMORY, shape.extra, &frame.extra);
            copy_reversed(&reversed[to..to + shape.extra], &mut residual[from..state]);
        }
        let back = first / SUB_BLOCK;
        let (forwards, backwards) = frame.coded[..shape.coded].split_at(shape.coded - back);
        let mut at = FRONT + first + STATE_BLOCK;
        for choice in forwards {
            construct::<L, FAST>(residual, at, MEMORY, SUB_BLOCK, choice);
            at += SUB_BLOCK;
        }
        if back > 0 {
            let mut reversed = [0.0; FRONT + SAMPLES_MAX + LANES_MAX];
            let known = shape.samples - first;
            at = FRONT + known;
            copy_reversed(&residual[FRONT + first..FRONT + shape.samples], &mut reversed[FRONT..at]);
            for choice in backwards {
                construct::<L, FAST>(&mut reversed, at, MEMORY, SUB_BLOCK, choice);
                at += SUB_BLOCK;
            }
            copy_reversed(&reversed[FRONT + known..at], &mut residual[FRONT..FRONT + first]);
        }
    }
}

#[inline(always)]
fn copy_reversed(from: &[f32], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().rev().zip(from) {
        *to = from;
    }
}

/// Makes the `length` samples from `end` of a codebook that is the `memory` samples before it. Behind `end` are zeros.
#[inline(always)]
fn construct<L: Lanes, const FAST: bool>(
    buffer: &mut [f32],
    end: usize,
    memory: usize,
    length: usize,
    choice: &Choice,
) {
    let pieces = length.div_ceil(L::N);
    let mut sums = [L::F32::splat(0.0); PIECES];
    let mut gain = 1.0;
    for stage in 0..STAGES {
        gain = dequantise_gain(stage, choice.gain[stage], gain);
        let cut = Cut::new(memory, length, choice.index[stage]);
        let mut scalar = [0.0; SUB_BLOCK];
        if cut.leaves_memory(memory) {
            vector(&buffer[end - memory..end], choice.index[stage], &mut scalar[..length]);
        }
        for (piece, sum) in sums[..pieces].iter_mut().enumerate() {
            // The last piece overlaps the one before.
            let at = (piece * L::N).min(length - L::N);
            let value = if cut.leaves_memory(memory) {
                L::F32::load(&scalar[at..])
            } else {
                cut.piece::<L, FAST>(buffer, end, at)
            };
            *sum = if stage == 0 {
                L::F32::splat(gain) * value
            } else {
                add_product::<L, FAST>(*sum, L::F32::splat(gain), value)
            };
        }
    }
    for (piece, sum) in sums[..pieces].iter().enumerate() {
        sum.store(&mut buffer[end + (piece * L::N).min(length - L::N)..end + length]);
    }
}

/// Where in the memory a codebook vector lies, and what is made of it.
#[derive(Clone, Copy)]
struct Cut {
    /// How far before the end it begins.
    lag: usize,
    /// For repeated ones, about twice that; else 0.
    twice: usize,
    filtered: bool,
}

impl Cut {
    #[inline(always)]
    fn new(memory: usize, length: usize, index: u8) -> Self {
        let plain = memory - length + 1;
        let half = if length == SUB_BLOCK { plain + AUGMENTED } else { plain };
        let index = usize::from(index);
        let (filtered, position) = if index < half { (false, index) } else { (true, index - half) };
        if position < plain {
            Self { lag: position + length, twice: 0, filtered }
        } else {
            let twice = 2 * (position - plain) + length;
            Self { lag: twice / 2, twice, filtered }
        }
    }

    /// Whether the filter reaches samples before the memory, which are to be taken as zeros.
    #[inline(always)]
    fn leaves_memory(&self, memory: usize) -> bool {
        self.filtered && self.lag + TAPS_BEFORE > memory
    }

    /// A vector of its samples from `at`.
    #[inline(always)]
    fn piece<L: Lanes, const FAST: bool>(&self, buffer: &[f32], end: usize, at: usize) -> L::F32 {
        let near = self.section::<L, FAST>(buffer, end - self.lag + at);
        if self.twice == 0 {
            return near;
        }
        let far = self.section::<L, FAST>(buffer, end - self.twice + at);
        let share = SUB_BLOCK + FADE - self.lag + at;
        L::F32::load(&NEAR[share..]) * near + L::F32::load(&FAR[share..]) * far
    }

    #[inline(always)]
    fn section<L: Lanes, const FAST: bool>(&self, buffer: &[f32], start: usize) -> L::F32 {
        if !self.filtered {
            return L::F32::load(&buffer[start..]);
        }
        let mut sum = L::F32::splat(0.0);
        for (tap, &factor) in EXPANSION_FILTER.iter().enumerate() {
            sum = add_product::<L, FAST>(
                sum,
                L::F32::load(&buffer[start + tap - TAPS_BEFORE..]),
                L::F32::splat(factor),
            );
        }
        sum
    }
}
