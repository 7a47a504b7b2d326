//! The encoder for as many streams as there are lanes, in lockstep.
//!
//! Every frame of a size takes the same steps whatever its content, so the streams of a group never part: where a stream's
//! own choice decides which samples are next (the place of the start state, a codebook vector), they are copied from the
//! stream's contiguous samples into rows. A *row* is one sample of every stream.
//!
//! With `FAST` sums are fused and reordered; without it each lane makes the sums of the plain encoder in its order.

// Loops, not iterators, around vectors: what is not inlined into the kernel is not compiled for its level.
#![allow(clippy::needless_range_loop)]

mod analysis;
mod correlate;
mod line;
mod repeated;
mod search;
mod state;

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Mask, Number, Vector};

use super::search::ENERGY_BIAS;
use super::{SEEN, WINDOW};
use crate::bits::Frame;
use crate::lsf::CHIRP_WEIGHTING;
use crate::lsf_rows::{LpcRows, LsfRows};
use crate::{ORDER, SAMPLES_MAX, STATE_BLOCK, STATE_MAX, SUB_BLOCK, SUB_BLOCKS_MAX, Shape};

/// The states and samples of a group's streams, as it takes them and leaves them.
pub(super) struct Streams<const W: usize> {
    /// The kept samples, and behind them the new ones; afterwards the first are those to keep.
    pub seen: [[f32; SEEN]; W],
    /// Rows: last two inputs and last two outputs of the high-pass filter.
    pub high_pass: [[f32; W]; 4],
    /// Rows of the last frequencies, and of what they were quantised to.
    pub lsf: [[f32; W]; ORDER],
    pub lsf_quantised: [[f32; W]; ORDER],
}

impl<const W: usize> Streams<W> {
    /// Silence.
    pub(super) fn new() -> Self {
        Self {
            seen: [[0.0; SEEN]; W],
            high_pass: [[0.0; W]; 4],
            lsf: crate::tables::LSF_MEAN.map(|mean| [mean; W]),
            lsf_quantised: crate::tables::LSF_MEAN.map(|mean| [mean; W]),
        }
    }
}

/// Encodes a frame of each of the group's streams.
pub(super) struct EncodeGroup<'a, const W: usize, const FAST: bool> {
    pub shape: &'static Shape,
    pub streams: &'a mut Streams<W>,
    pub frames: &'a mut [Frame; W],
}

impl<const W: usize, const FAST: bool> Kernel for EncodeGroup<'_, W, FAST> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        // Compiled for the levels that have as many lanes, and for no other.
        if L::N != W {
            return;
        }
        let Self { shape, streams, frames } = self;
        let kept = SEEN - shape.samples;
        let mut seen = [L::F32::splat(0.0); SEEN];
        gather::<L, W, _>(&streams.seen, &mut seen);
        let mut high_pass = load_rows::<L, W, 4>(&streams.high_pass);
        analysis::high_pass::<L, FAST>(&mut seen[kept..], &mut high_pass);
        store_rows::<L, W, 4>(&high_pass, &mut streams.high_pass);

        let mut last =
            [load_rows::<L, W, ORDER>(&streams.lsf_quantised), load_rows::<L, W, ORDER>(&streams.lsf)];
        // Of each sub-block, the synthesis filter and the weighting filter.
        let mut filters = [[[L::F32::splat(0.0); ORDER + 1]; SUB_BLOCKS_MAX]; 2];
        analysis::analyse::<L, W, FAST>(shape, &seen, &mut last, &mut filters, frames);
        store_rows::<L, W, ORDER>(&last[0], &mut streams.lsf_quantised);
        store_rows::<L, W, ORDER>(&last[1], &mut streams.lsf);

        let mut residual = [L::F32::splat(0.0); SAMPLES_MAX];
        for n in 0..shape.sub_blocks {
            let first = kept + n * SUB_BLOCK;
            let block = &mut residual[n * SUB_BLOCK..][..SUB_BLOCK];
            all_zero::<L, FAST>(&seen[first - ORDER..first + SUB_BLOCK], &filters[0][n], block);
        }
        scatter::<L, W, _>(&seen[shape.samples..], &mut streams.seen, 0);
        for n in 0..shape.sub_blocks {
            filters[1][n] = expand_bandwidth::<L>(&filters[1][n], CHIRP_WEIGHTING);
        }
        code_residual::<L, W, FAST>(shape, &residual[..shape.samples], &filters, frames);
    }
}

/// Quantises the start state, then codes block after block from what is decoded.
#[inline(always)]
fn code_residual<L: Lanes, const W: usize, const FAST: bool>(
    shape: &Shape,
    residual: &[L::F32],
    filters: &[[LpcRows<L::F32>; SUB_BLOCKS_MAX]; 2],
    frames: &mut [Frame; W],
) {
    let start = state::place::<L, FAST>(shape, residual);
    let (early, late) = (start - L::I32::splat(1), start);
    let synthesis = state::filter_at::<L>(shape, &filters[0], early);
    let weighting =
        [state::filter_at::<L>(shape, &filters[1], early), state::filter_at::<L>(shape, &filters[1], late)];
    // The two sub-blocks of each stream's start state.
    let mut both = [L::F32::splat(0.0); STATE_BLOCK];
    own_rows::<L>(residual, early, L::Mask32::first(0), &mut both);
    let mut state = [L::F32::splat(0.0); STATE_MAX];
    let first = state::code::<L, W, FAST>(shape, &both, &synthesis, &weighting, frames, &mut state);
    for lane in 0..W {
        frames[lane].start = start.lane(lane) as u8;
        frames[lane].state_first = first.bits() >> lane & 1 == 1;
    }

    // The extra block follows the state in time, or precedes it.
    let mut wanted = [L::F32::splat(0.0); SUB_BLOCK];
    for n in 0..shape.extra {
        wanted[n] = L::F32::select(first, both[shape.state + n], both[shape.extra - 1 - n]);
    }
    let mut filter = weighting[0];
    for k in 1..=ORDER {
        filter[k] = L::F32::select(first, weighting[1][k], filter[k]);
    }
    let mut line = line::Line::<L, W>::new(&state[..shape.state]);
    line.turn(!first);
    let mut book = search::Book::<L, W>::new();
    for n in 0..=shape.coded {
        let task = search::Task::new(shape, n);
        if n > 0 {
            let (block, backwards) = nth_blocks::<L>(shape, start, n - 1);
            line.turn(backwards);
            own_rows::<L>(residual, block, backwards, &mut wanted);
            filter = state::filter_at::<L>(shape, &filters[1], block);
        }
        book.search::<FAST>(&task, line.memory(task.memory), &wanted[..task.block], &filter, frames);
        if n < shape.coded {
            line.decode(&task, |lane| task.choice(&frames[lane]));
        }
    }
}

/// The `n`-th coded sub-block, and whether it is coded backwards in time: first those behind the start state, then those
/// before it.
fn nth_block(shape: &Shape, start: usize, n: usize) -> (usize, bool) {
    let behind = shape.sub_blocks - 1 - start;
    if n < behind { (start + 1 + n, false) } else { (start - 2 - (n - behind), true) }
}

/// As [`nth_block`], for each stream.
#[inline(always)]
fn nth_blocks<L: Lanes>(shape: &Shape, starts: L::I32, n: usize) -> (L::I32, L::Mask32) {
    let (mut blocks, mut all_backwards) = (L::I32::splat(0), L::Mask32::first(0));
    for start in 1..shape.sub_blocks {
        let own = starts.eq(L::I32::splat(start as i32));
        let (block, backwards) = nth_block(shape, start, n);
        blocks = L::I32::select(own, L::I32::splat(block as i32), blocks);
        if backwards {
            all_backwards = all_backwards | own;
        }
    }
    (blocks, all_backwards)
}

/// As many rows as `own` holds from each stream's own sub-block on, in its direction.
#[inline(always)]
fn own_rows<L: Lanes>(rows: &[L::F32], blocks: L::I32, backwards: L::Mask32, own: &mut [L::F32]) {
    let length = own.len();
    for (n, rows) in rows.windows(length).step_by(SUB_BLOCK).enumerate() {
        let here = blocks.eq(L::I32::splat(n as i32));
        let (with_time, against_time) = (here & !backwards, here & backwards);
        if with_time.any() {
            for i in 0..length {
                own[i] = L::F32::select(with_time, rows[i], own[i]);
            }
        }
        if against_time.any() {
            for i in 0..length {
                own[i] = L::F32::select(against_time, rows[length - 1 - i], own[i]);
            }
        }
    }
}

#[inline(always)]
fn load_rows<L: Lanes, const W: usize, const R: usize>(from: &[[f32; W]; R]) -> [L::F32; R] {
    let mut rows = [L::F32::splat(0.0); R];
    for r in 0..R {
        rows[r] = L::F32::load(&from[r]);
    }
    rows
}

#[inline(always)]
fn store_rows<L: Lanes, const W: usize, const R: usize>(rows: &[L::F32; R], to: &mut [[f32; W]; R]) {
    for r in 0..R {
        rows[r].store(&mut to[r]);
    }
}

/// Streams into rows, as many as there are.
#[inline(always)]
fn gather<L: Lanes, const W: usize, const S: usize>(streams: &[[f32; S]; W], rows: &mut [L::F32]) {
    let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
    for lane in 0..W {
        slices[lane] = &streams[lane][..rows.len()];
    }
    L::F32::gather(&slices[..L::N], rows);
}

/// Rows into streams, from element `at` of each on.
#[inline(always)]
fn scatter<L: Lanes, const W: usize, const S: usize>(
    rows: &[L::F32],
    streams: &mut [[f32; S]; W],
    at: usize,
) {
    let mut slices: [&mut [f32]; LANES_MAX] = Default::default();
    for (slice, stream) in slices.iter_mut().zip(streams) {
        *slice = &mut stream[at..][..rows.len()];
    }
    L::F32::scatter(rows, &mut slices[..L::N]);
}

/// `sum + a * b`, fused when fast.
#[inline(always)]
fn add_product<L: Lanes, const FAST: bool>(sum: L::F32, a: L::F32, b: L::F32) -> L::F32 {
    if FAST { a.mul_add(b, sum) } else { sum + a * b }
}

/// `sum - a * b`, fused when fast.
#[inline(always)]
fn sub_product<L: Lanes, const FAST: bool>(sum: L::F32, a: L::F32, b: L::F32) -> L::F32 {
    if FAST { (-a).mul_add(b, sum) } else { sum - a * b }
}

/// The sum of the squares, in order.
#[inline(always)]
fn energy<L: Lanes, const FAST: bool>(rows: &[L::F32]) -> L::F32 {
    let mut sum = L::F32::splat(0.0);
    for n in 0..rows.len() {
        sum = add_product::<L, FAST>(sum, rows[n], rows[n]);
    }
    sum
}

/// What a measure is multiplied by instead of divided by the energy; 0 for none.
#[inline(always)]
fn inverse<L: Lanes>(energy: L::F32) -> L::F32 {
    let inverse = L::F32::splat(1.0) / (energy + L::F32::splat(ENERGY_BIAS));
    L::F32::select(energy.gt(L::F32::splat(0.0)), inverse, L::F32::splat(0.0))
}

/// Moves the roots of a filter inward.
#[inline(always)]
fn expand_bandwidth<L: Lanes>(lpc: &LpcRows<L::F32>, factor: f32) -> LpcRows<L::F32> {
    let mut out = *lpc;
    let mut chirp = factor;
    for k in 1..=ORDER {
        out[k] = L::F32::splat(chirp) * out[k];
        chirp *= factor;
    }
    out
}

/// All-zero filter; the first [`ORDER`] rows of `signal` are the past.
#[inline(always)]
fn all_zero<L: Lanes, const FAST: bool>(signal: &[L::F32], lpc: &LpcRows<L::F32>, out: &mut [L::F32]) {
    for n in 0..out.len() {
        let Some(window) = signal[n..].first_chunk::<{ ORDER + 1 }>() else { return };
        let mut sum = lpc[0] * window[ORDER];
        for k in 1..=ORDER {
            sum = add_product::<L, FAST>(sum, lpc[k], window[ORDER - k]);
        }
        out[n] = sum;
    }
}

/// What the all-pole filter makes of an input after the outputs `older` and then `newest`.
///
/// The plain filter subtracts the newest output first, so that each sample waits for the whole sum of the one before; the
/// fast one subtracts it last. Because of that wait the newest is handed over in a register, not through memory.
#[inline(always)]
fn all_pole_step<L: Lanes, const FAST: bool>(
    older: &[L::F32; ORDER - 1],
    newest: L::F32,
    lpc: &LpcRows<L::F32>,
    input: L::F32,
) -> L::F32 {
    if FAST {
        let (mut even, mut odd) = (input, -(lpc[ORDER - 1] * older[1]));
        even = sub_product::<L, true>(even, lpc[ORDER], older[0]);
        for k in (2..ORDER - 1).rev() {
            if k % 2 == 0 {
                even = sub_product::<L, true>(even, lpc[k], older[ORDER - k]);
            } else {
                odd = sub_product::<L, true>(odd, lpc[k], older[ORDER - k]);
            }
        }
        return sub_product::<L, true>(even + odd, lpc[1], newest);
    }
    let mut sum = sub_product::<L, false>(input, lpc[1], newest);
    for k in 2..=ORDER {
        sum = sub_product::<L, false>(sum, lpc[k], older[ORDER - k]);
    }
    sum
}

const _: () = assert!(WINDOW == SAMPLES_MAX);
