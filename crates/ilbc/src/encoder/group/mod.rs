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

use lanes::{F32Lanes, I16Lanes, I32Lanes, Kernel, LANES_MAX, LANES16_MAX, Lanes, Mask, Number, Vector};

use super::search::ENERGY_BIAS;
use super::{SEEN, WINDOW, Work};
use crate::bits::Frame;
use crate::filters::HighPass;
use crate::lsf::CHIRP_WEIGHTING;
use crate::lsf_rows::{LpcRows, LsfRows};
use crate::{ORDER, SAMPLES_MAX, STATE_BLOCK, STATE_MAX, SUB_BLOCK, SUB_BLOCKS_MAX, Shape};

/// Coefficients of a prediction filter, the first of which is 1.
const TAPS: usize = ORDER + 1;

/// Encodes a frame of each of the group's streams, of which there are one to `W`, the first of them first.
pub(super) struct EncodeGroup<'a, 'w, const W: usize, const FAST: bool> {
    pub shape: &'static Shape,
    pub works: &'a mut [Option<Work<'w>>; W],
}

impl<const W: usize, const FAST: bool> Kernel for EncodeGroup<'_, '_, W, FAST> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        // Compiled for the levels that have as many lanes, and for no other.
        if L::N != W {
            return;
        }
        let Self { shape, works } = self;
        let kept = SEEN - shape.samples;
        let mut seen = [L::F32::splat(0.0); SEEN];
        gather_history::<L, W>(works, &mut seen[..kept]);
        gather_samples::<L, W>(works, &mut seen[kept..]);
        let mut memory = Memory::<L>::gather(works);
        analysis::high_pass::<L, FAST>(&mut seen[kept..], &mut memory.high_pass);

        let mut frames = [Frame::default(); W];
        // Of each sub-block, the synthesis filter and the weighting filter.
        let mut filters = [[[L::F32::splat(0.0); TAPS]; SUB_BLOCKS_MAX]; 2];
        analysis::analyse::<L, W, FAST>(shape, &seen, &mut memory.lsf, &mut filters, &mut frames);
        let mut residual = [L::F32::splat(0.0); SAMPLES_MAX];
        for n in 0..shape.sub_blocks {
            let first = kept + n * SUB_BLOCK;
            let block = &mut residual[n * SUB_BLOCK..][..SUB_BLOCK];
            all_zero::<L, FAST>(&seen[first - ORDER..first + SUB_BLOCK], &filters[0][n], block);
        }
        for n in 0..shape.sub_blocks {
            filters[1][n] = expand_bandwidth::<L>(&filters[1][n], CHIRP_WEIGHTING);
        }
        code_residual::<L, W, FAST>(shape, &residual[..shape.samples], &filters, &mut frames);

        // Nothing is written to a stream before nothing can go wrong any more.
        for lane in 0..W {
            if let Some(work) = &mut works[lane] {
                frames[lane].pack(shape, work.out);
            }
        }
        scatter_history::<L, W>(&seen[shape.samples..], works);
        memory.scatter(works);
    }
}

/// What is kept of the streams besides their last samples, in rows.
struct Memory<L: Lanes> {
    /// The last two inputs and the last two outputs.
    high_pass: [L::F32; 4],
    /// What the last frequencies were quantised to, and they themselves.
    lsf: [LsfRows<L::F32>; 2],
}

impl<L: Lanes> Memory<L> {
    #[inline(always)]
    fn gather<const W: usize>(works: &[Option<Work<'_>>; W]) -> Self {
        let zero = L::F32::splat(0.0);
        let mut memory = Self { high_pass: [zero; 4], lsf: [[zero; ORDER]; 2] };
        let (mut high_pass, mut lsf) = ([[0.0; 4]; W], [[[0.0; ORDER]; W]; 2]);
        for lane in 0..W {
            let Some(Work { state, .. }) = &works[lane] else { continue };
            let HighPass { input: [x1, x2], output: [y1, y2] } = state.high_pass;
            high_pass[lane] = [x1, x2, y1, y2];
            (lsf[0][lane], lsf[1][lane]) = (state.lsf_quantised, state.lsf);
        }
        gather::<L, W, _>(&high_pass, &mut memory.high_pass);
        gather::<L, W, _>(&lsf[0], &mut memory.lsf[0]);
        gather::<L, W, _>(&lsf[1], &mut memory.lsf[1]);
        memory
    }

    #[inline(always)]
    fn scatter<const W: usize>(&self, works: &mut [Option<Work<'_>>; W]) {
        let (mut high_pass, mut lsf) = ([[0.0; 4]; W], [[[0.0; ORDER]; W]; 2]);
        scatter::<L, W, _>(&self.high_pass, &mut high_pass, 0);
        scatter::<L, W, _>(&self.lsf[0], &mut lsf[0], 0);
        scatter::<L, W, _>(&self.lsf[1], &mut lsf[1], 0);
        for lane in 0..W {
            let Some(Work { state, done, .. }) = &mut works[lane] else { continue };
            let [x1, x2, y1, y2] = high_pass[lane];
            state.high_pass = HighPass { input: [x1, x2], output: [y1, y2] };
            (state.lsf_quantised, state.lsf) = (lsf[0][lane], lsf[1][lane]);
            **done = true;
        }
    }
}

/// The kept samples into rows; what no stream has is as in the first, which costs least.
#[inline(always)]
fn gather_history<L: Lanes, const W: usize>(works: &[Option<Work<'_>>; W], rows: &mut [L::F32]) {
    let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
    for lane in 0..W {
        if let Some(work) = works[lane].as_ref().or(works[0].as_ref()) {
            slices[lane] = &work.state.history[..rows.len()];
        }
    }
    L::F32::gather(&slices[..W], rows);
}

/// The new samples into rows.
#[inline(always)]
fn gather_samples<L: Lanes, const W: usize>(works: &[Option<Work<'_>>; W], rows: &mut [L::F32]) {
    // Vectors of words hold twice as many streams; the second half is not looked at.
    let mut words = [L::I16::splat(0); SUB_BLOCK];
    let mut slices: [&[i16]; LANES16_MAX] = [&[]; LANES16_MAX];
    for first in (0..rows.len()).step_by(SUB_BLOCK) {
        for lane in 0..2 * W {
            if let Some(work) = works[lane % W].as_ref().or(works[0].as_ref()) {
                slices[lane] = &work.pcm[first..][..SUB_BLOCK];
            }
        }
        L::I16::gather(&slices[..2 * W], &mut words);
        for n in 0..SUB_BLOCK {
            rows[first + n] = words[n].split()[0].to_f32();
        }
    }
}

/// Rows into the kept samples.
#[inline(always)]
fn scatter_history<L: Lanes, const W: usize>(rows: &[L::F32], works: &mut [Option<Work<'_>>; W]) {
    let mut slices: [&mut [f32]; LANES_MAX] = Default::default();
    for (slice, work) in slices.iter_mut().zip(works) {
        if let Some(work) = work {
            *slice = &mut work.state.history[..rows.len()];
        }
    }
    L::F32::scatter(rows, &mut slices[..W]);
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
    for k in 1..TAPS {
        filter[k] = L::F32::select(first, weighting[1][k], filter[k]);
    }
    let mut line = line::Line::<L, W>::new();
    line.begin(&state[..shape.state], !first);
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
    for k in 1..TAPS {
        out[k] = L::F32::splat(chirp) * out[k];
        chirp *= factor;
    }
    out
}

/// Rows that [`all_zero`] makes at once, so that their sums need not wait for each other.
const ABREAST: usize = 4;

/// All-zero filter; the first [`ORDER`] rows of `signal` are the past, and `out` is whole steps of [`ABREAST`] rows.
#[inline(always)]
fn all_zero<L: Lanes, const FAST: bool>(signal: &[L::F32], lpc: &LpcRows<L::F32>, out: &mut [L::F32]) {
    for n in (0..out.len()).step_by(ABREAST) {
        let Some(window) = signal[n..].first_chunk::<{ ORDER + ABREAST }>() else { return };
        let Some(out) = out[n..].first_chunk_mut::<ABREAST>() else { return };
        for i in 0..ABREAST {
            out[i] = lpc[0] * window[ORDER + i];
        }
        for k in 1..TAPS {
            for i in 0..ABREAST {
                out[i] = add_product::<L, FAST>(out[i], lpc[k], window[ORDER + i - k]);
            }
        }
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
    for k in 2..TAPS {
        sum = sub_product::<L, false>(sum, lpc[k], older[ORDER - k]);
    }
    sum
}

const _: () = assert!(WINDOW == SAMPLES_MAX && SUB_BLOCK.is_multiple_of(ABREAST));
