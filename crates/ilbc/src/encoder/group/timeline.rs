//! A group's residuals stream by stream, in the order of time and against it.
//!
//! A block is coded from what is decoded beside it, forwards or backwards in time; seen in its direction, what it is coded
//! from always lies before it, and behind it nothing is decoded yet.

use lanes::{LANES_MAX, Lanes, Vector};

use crate::codebook::MEMORY;
use crate::{SAMPLES_MAX, SUB_BLOCK, Shape};

/// Zeros before a frame: a whole memory, and the reach of the expansion filter.
const BEFORE: usize = (MEMORY + 3).next_multiple_of(LANES_MAX);
/// Zeros behind it: room for whole vectors and for the expansion filter.
const BEHIND: usize = 2 * LANES_MAX;

/// Where a block of one stream lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spot {
    /// Against the order of time.
    pub backwards: bool,
    /// Its first sample, in its direction.
    pub first: usize,
}

impl Spot {
    /// A block in its direction; `first` is its first sample in the order of time.
    pub(super) fn new(shape: &Shape, first: usize, length: usize, backwards: bool) -> Self {
        Self { backwards, first: if backwards { shape.samples - first - length } else { first } }
    }
}

/// Forwards, and backwards.
type Both<T> = [T; 2];

/// What is wanted of each stream, and what is decoded.
pub(in super::super) struct Timelines<const W: usize> {
    wanted: [Both<[f32; SAMPLES_MAX]>; W],
    decoded: [Both<[f32; BEFORE + SAMPLES_MAX + BEHIND]>; W],
}

impl<const W: usize> Timelines<W> {
    /// Nothing is wanted, nothing decoded yet.
    pub(super) fn new() -> Self {
        Self { wanted: [[[0.0; SAMPLES_MAX]; 2]; W], decoded: [[[0.0; BEFORE + SAMPLES_MAX + BEHIND]; 2]; W] }
    }

    /// Takes the residual of a frame.
    #[inline(always)]
    pub(super) fn take<L: Lanes>(&mut self, residual: &[L::F32]) {
        let mut slices: [&mut [f32]; LANES_MAX] = Default::default();
        for (slice, stream) in slices.iter_mut().zip(&mut self.wanted) {
            *slice = &mut stream[0];
        }
        L::F32::scatter(residual, &mut slices[..L::N]);
        for lane in 0..W {
            let [forwards, backwards] = &mut self.wanted[lane];
            for n in 0..residual.len() {
                backwards[n] = forwards[residual.len() - 1 - n];
            }
        }
    }

    /// `length` samples of the residual from a spot on.
    #[inline(always)]
    pub(super) fn wanted(&self, lane: usize, spot: Spot, length: usize) -> &[f32] {
        &self.wanted[lane][usize::from(spot.backwards)][spot.first..][..length]
    }

    /// `length` decoded samples before a spot.
    #[inline(always)]
    pub(super) fn memory(&self, lane: usize, spot: Spot, length: usize) -> &[f32] {
        &self.decoded[lane][usize::from(spot.backwards)][BEFORE + spot.first - length..][..length]
    }

    /// Decoded samples from `before` before a spot on, and what follows.
    #[inline(always)]
    pub(super) fn around(&self, lane: usize, spot: Spot, before: usize) -> &[f32] {
        &self.decoded[lane][usize::from(spot.backwards)][BEFORE + spot.first - before..]
    }

    /// Keeps a decoded block.
    #[inline(always)]
    pub(super) fn keep(&mut self, shape: &Shape, lane: usize, spot: Spot, block: &[f32]) {
        let [forwards, backwards] = &mut self.decoded[lane];
        let (own, other) = if spot.backwards { (backwards, forwards) } else { (forwards, backwards) };
        let mirrored = shape.samples - spot.first - block.len();
        match <&[f32; SUB_BLOCK]>::try_from(block) {
            Ok(block) => {
                own[BEFORE + spot.first..][..SUB_BLOCK].copy_from_slice(block);
                copy_reversed(&mut other[BEFORE + mirrored..][..SUB_BLOCK], block);
            }
            Err(_) => {
                own[BEFORE + spot.first..][..block.len()].copy_from_slice(block);
                copy_reversed(&mut other[BEFORE + mirrored..][..block.len()], block);
            }
        }
    }
}

#[inline(always)]
fn copy_reversed(to: &mut [f32], from: &[f32]) {
    let length = to.len();
    let from = &from[..length];
    for n in 0..length {
        to[n] = from[length - 1 - n];
    }
}
