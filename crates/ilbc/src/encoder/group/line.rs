//! What is decoded of a group's streams: what their next blocks are coded from.
//!
//! A block is coded from what is decoded beside it, forwards or backwards in time. Seen in that direction it always follows
//! what is decoded, whose number of samples is the same in all streams: only what they are differs.

use lanes::{LANES_MAX, Lanes, Mask, Number, Vector};

use super::{gather, scatter};
use crate::bits::Choice;
use crate::codebook::{AUGMENTED, FADE, MEMORY, dequantise_gain};
use crate::tables::EXPANSION_FILTER;
use crate::{SAMPLES_MAX, STAGES, SUB_BLOCK};

use super::search::Task;

/// Zeros before a stream's memory: the reach of the expansion filter, three samples.
const BEFORE: usize = LANES_MAX;
/// Zeros behind it: room for whole vectors and for the expansion filter.
const BEHIND: usize = 2 * LANES_MAX;
/// The first sample behind the memory.
const END: usize = BEFORE + MEMORY;
/// A stream's memory; a shorter one lies at its end.
type Memory = [f32; END + BEHIND];
/// A block in whole vectors.
type Room = [f32; SUB_BLOCK.next_multiple_of(LANES_MAX)];

/// What is decoded of each stream, in the direction in which its next block is coded: the newest sample last.
pub(super) struct Line<L: Lanes, const W: usize> {
    /// All but the last block, which nothing is coded from.
    rows: [L::F32; SAMPLES_MAX - SUB_BLOCK],
    /// Rows that are decoded.
    count: usize,
    /// The streams that are coded against the order of time.
    backwards: L::Mask32,
    memories: [Memory; W],
    blocks: [Room; W],
}

impl<L: Lanes, const W: usize> Line<L, W> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            rows: [L::F32::splat(0.0); SAMPLES_MAX - SUB_BLOCK],
            count: 0,
            backwards: L::Mask32::first(0),
            memories: [[0.0; END + BEHIND]; W],
            blocks: [[0.0; SUB_BLOCK.next_multiple_of(LANES_MAX)]; W],
        }
    }

    /// Begins with the start states, which are decoded against the order of time.
    #[inline(always)]
    pub(super) fn begin(&mut self, state: &[L::F32], backwards: L::Mask32) {
        self.rows[..state.len()].copy_from_slice(state);
        self.count = state.len();
        self.backwards = L::Mask32::first(W);
        self.turn(backwards);
    }

    /// Turns round the streams that go on in the other direction.
    #[inline(always)]
    pub(super) fn turn(&mut self, backwards: L::Mask32) {
        let turned = self.backwards ^ backwards;
        self.backwards = backwards;
        if turned.any() {
            let rows = &mut self.rows[..self.count];
            for n in 0..rows.len() / 2 {
                let (early, late) = (rows[n], rows[rows.len() - 1 - n]);
                rows[n] = L::F32::select(turned, late, early);
                rows[rows.len() - 1 - n] = L::F32::select(turned, early, late);
            }
        }
    }

    /// The newest samples, `longest` at most. What is older counts as silence.
    #[inline(always)]
    pub(super) fn memory(&self, longest: usize) -> &[L::F32] {
        &self.rows[self.count.saturating_sub(longest)..self.count]
    }

    /// Decodes the block that the streams have coded, as their receivers will.
    #[inline(always)]
    pub(super) fn decode<'a>(&mut self, task: &Task, choice: impl Fn(usize) -> &'a Choice) {
        let memory = &self.rows[self.count.saturating_sub(task.memory)..self.count];
        scatter::<L, W, _>(memory, &mut self.memories, END - memory.len());
        for lane in 0..W {
            construct::<L>(&self.memories[lane], task, choice(lane), &mut self.blocks[lane]);
        }
        gather::<L, W, _>(&self.blocks, &mut self.rows[self.count..][..task.block]);
        self.count += task.block;
    }
}

/// The block that a choice stands for, as [`crate::codebook::construct`] makes it; behind it `out` is unspecified.
#[inline(always)]
fn construct<L: Lanes>(memory: &Memory, task: &Task, choice: &Choice, out: &mut Room) {
    let mut gain = 1.0;
    for stage in 0..STAGES {
        gain = dequantise_gain(stage, choice.gain[stage], gain);
        let (filtered, position) = task.place(choice.index[stage]);
        if position < task.plain() {
            let first = END - task.block - position;
            for at in (0..SUB_BLOCK).step_by(L::N) {
                let vector = match filtered {
                    true => expanded::<L>(memory, first + at),
                    false => L::F32::load(&memory[first + at..]),
                };
                add_scaled::<L>(vector, gain, stage, &mut out[at..]);
            }
        } else {
            let lag = position - task.plain() + AUGMENTED;
            let mut samples = [0.0; 2 * SUB_BLOCK + LANES_MAX];
            for at in (0..2 * lag).step_by(L::N) {
                let vector = match filtered {
                    true => expanded::<L>(memory, END - 2 * lag + at),
                    false => L::F32::load(&memory[END - 2 * lag + at..]),
                };
                vector.store(&mut samples[at..]);
            }
            let mut vector = [0.0; 2 * SUB_BLOCK];
            repeat(&samples, lag, &mut vector);
            for at in (0..SUB_BLOCK).step_by(L::N) {
                add_scaled::<L>(L::F32::load(&vector[at..]), gain, stage, &mut out[at..]);
            }
        }
    }
}

/// The memory through the expansion filter, from sample `at` on.
#[inline(always)]
fn expanded<L: Lanes>(memory: &Memory, at: usize) -> L::F32 {
    let source = &memory[at - 3..][..L::N + EXPANSION_FILTER.len() - 1];
    let mut sum = L::F32::splat(0.0);
    for tap in 0..EXPANSION_FILTER.len() {
        sum += L::F32::load(&source[tap..]) * L::F32::splat(EXPANSION_FILTER[tap]);
    }
    sum
}

/// Adds a stage's part to those before it.
#[inline(always)]
fn add_scaled<L: Lanes>(vector: L::F32, gain: f32, stage: usize, out: &mut [f32]) {
    let scaled = L::F32::splat(gain) * vector;
    let sum = if stage == 0 { scaled } else { L::F32::load(out) + scaled };
    sum.store(out);
}

/// The last `lag` of the first `2 * lag` samples twice, with a cross-fade; behind [`SUB_BLOCK`] samples it is unspecified.
///
/// Equals [`crate::codebook::augment`]; copies of a fixed length need no call.
#[inline(always)]
pub(super) fn repeat(samples: &[f32], lag: usize, out: &mut [f32; 2 * SUB_BLOCK]) {
    let (early, late) = (&samples[..lag], &samples[lag..][..SUB_BLOCK]);
    out[..SUB_BLOCK].copy_from_slice(late);
    out[lag..][..SUB_BLOCK].copy_from_slice(late);
    let mut share = 0.0;
    for j in lag - FADE..lag {
        out[j] = (1.0 - share) * late[j] + share * early[j];
        share += 0.2;
    }
}
