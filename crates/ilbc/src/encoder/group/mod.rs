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
mod search;
mod state;
mod timeline;

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Mask, Number, Vector};

use timeline::{Spot, Timelines};

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
    lines: Timelines<W>,
}

impl<const W: usize> Streams<W> {
    /// Silence.
    pub(super) fn new() -> Self {
        Self {
            seen: [[0.0; SEEN]; W],
            high_pass: [[0.0; W]; 4],
            lsf: crate::tables::LSF_MEAN.map(|mean| [mean; W]),
            lsf_quantised: crate::tables::LSF_MEAN.map(|mean| [mean; W]),
            lines: Timelines::new(),
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
        code_residual::<L, W, FAST>(shape, &residual[..shape.samples], &mut streams.lines, &filters, frames);
    }
}

/// Quantises the start state, then codes block after block from what is decoded.
#[inline(always)]
fn code_residual<L: Lanes, const W: usize, const FAST: bool>(
    shape: &Shape,
    residual: &[L::F32],
    lines: &mut Timelines<W>,
    filters: &[[LpcRows<L::F32>; SUB_BLOCKS_MAX]; 2],
    frames: &mut [Frame; W],
) {
    lines.take::<L>(residual);
    let start = state::place::<L, FAST>(shape, residual);
    let synthesis = state::filter_at::<L>(shape, &filters[0], start - L::I32::splat(1));
    let weighting = [
        state::filter_at::<L>(shape, &filters[1], start - L::I32::splat(1)),
        state::filter_at::<L>(shape, &filters[1], start),
    ];
    // The two sub-blocks of each stream's start state.
    let mut both = [L::F32::splat(0.0); STATE_BLOCK];
    let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
    for lane in 0..W {
        let start = start.lane(lane) as usize;
        frames[lane].start = start as u8;
        let first = Spot { first: (start - 1) * SUB_BLOCK, backwards: false };
        slices[lane] = lines.wanted(lane, first, STATE_BLOCK);
    }
    L::F32::gather(&slices[..L::N], &mut both);
    let mut state = [L::F32::splat(0.0); STATE_MAX];
    let first = state::code::<L, W, FAST>(shape, &both, &synthesis, &weighting, frames, &mut state);
    let mut streams = [[0.0; STATE_MAX]; W];
    scatter::<L, W, _>(&state[..shape.state], &mut streams, 0);
    let mut spots = [Spot::default(); W];
    for lane in 0..W {
        let frame = &mut frames[lane];
        let block = (usize::from(frame.start) - 1) * SUB_BLOCK;
        frame.state_first = first.bits() >> lane & 1 == 1;
        let (at, extra) = match frame.state_first {
            true => (block, block + shape.state),
            false => (block + shape.extra, block),
        };
        lines.keep(shape, lane, Spot::new(shape, at, shape.state, true), &streams[lane][..shape.state]);
        spots[lane] = Spot::new(shape, extra, shape.extra, !frame.state_first);
    }

    let mut book = search::Book::<L, W>::new();
    for n in 0..=shape.coded {
        let mut filter = weighting[0];
        if n == 0 {
            for k in 1..=ORDER {
                filter[k] = L::F32::select(first, weighting[1][k], filter[k]);
            }
        } else {
            let mut blocks = L::I32::splat(0);
            for lane in 0..W {
                let (block, backwards) = nth_block(shape, usize::from(frames[lane].start), n - 1);
                spots[lane] = Spot::new(shape, block * SUB_BLOCK, SUB_BLOCK, backwards);
                blocks.set_lane(lane, block as i32);
            }
            filter = state::filter_at::<L>(shape, &filters[1], blocks);
        }
        book.search::<FAST>(shape, n, lines, &spots, &filter, frames);
        for lane in 0..W {
            book.decode(shape, n, lane, &frames[lane], spots[lane], lines);
        }
    }
}

/// The `n`-th coded sub-block, and whether it is coded backwards in time: first those behind the start state, then those
/// before it.
fn nth_block(shape: &Shape, start: usize, n: usize) -> (usize, bool) {
    let behind = shape.sub_blocks - 1 - start;
    if n < behind { (start + 1 + n, false) } else { (start - 2 - (n - behind), true) }
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

/// What the all-pole filter makes of an input after the outputs `past`, the newest last.
///
/// The plain filter subtracts the newest output first, so that each sample waits for the whole sum of the one before; the
/// fast one adds it last.
#[inline(always)]
fn all_pole_step<L: Lanes, const FAST: bool>(
    past: &[L::F32; ORDER],
    lpc: &LpcRows<L::F32>,
    input: L::F32,
) -> L::F32 {
    if FAST {
        let (mut even, mut odd) = (input, -(lpc[ORDER - 1] * past[1]));
        even = sub_product::<L, true>(even, lpc[ORDER], past[0]);
        for k in (2..ORDER - 1).rev() {
            if k % 2 == 0 {
                even = sub_product::<L, true>(even, lpc[k], past[ORDER - k]);
            } else {
                odd = sub_product::<L, true>(odd, lpc[k], past[ORDER - k]);
            }
        }
        return sub_product::<L, true>(even + odd, lpc[1], past[ORDER - 1]);
    }
    let mut sum = input;
    for k in 1..=ORDER {
        sum = sub_product::<L, false>(sum, lpc[k], past[ORDER - k]);
    }
    sum
}

const _: () = assert!(WINDOW == SAMPLES_MAX);
