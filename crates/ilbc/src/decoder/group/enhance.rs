//! The enhancer of all streams: pitch search, refinement and smoothing, a sample of every stream at a time.

use lanes::{F32Lanes, I32Lanes, Kernel, LANES_MAX, Lanes, Mask, Number, Vector};

use super::{FrameRows, add_product, gather, scatter};
use crate::decoder::Decoder;
use crate::decoder::enhancer::{
    BLOCK, DECIMATED_LAGS, DECIMATED_PAST, DIFFERENCE_MAX, Enhancer, FLAT, HALF_TAPS, HISTORY, PLACES,
    QUARTERS, REACH, SEGMENTS, SLOP, TAPS, TRIALS, WEIGHTS, WINDOW,
};
use crate::tables::{ENHANCER_CENTRES, LOW_PASS, UPSAMPLING};
use crate::{Mode, SAMPLES_MAX, Shape};

/// Zeros before and behind a history.
const MARGIN: usize = 16;
/// Samples that a block is compared with, in all places near an estimate.
const SEARCHED: usize = BLOCK + TRIALS - 1;
/// Samples at half rate of the longest frame's pitch search.
const DECIMATED_MAX: usize = DECIMATED_PAST + SAMPLES_MAX / 2;
/// Rows of history that the pitch search looks at; the blocks to enhance are among them.
const ROWS_MAX: usize = 2 * DECIMATED_MAX + TAPS - 1;
/// Lags that are tried side by side.
const ABREAST: usize = 5;

/// The enhancers of a group.
pub(super) struct Streams(pub [Stream; LANES_MAX]);

/// A copy of one stream's enhancer.
pub(super) struct Stream {
    history: [f32; MARGIN + HISTORY + MARGIN],
    periods: [f32; PLACES],
    lag: usize,
    after_loss: bool,
}

impl Streams {
    pub const EMPTY: Self = Self(
        [const {
            Stream {
                history: [0.0; MARGIN + HISTORY + MARGIN],
                periods: [0.0; PLACES],
                lag: 0,
                after_loss: false,
            }
        }; LANES_MAX],
    );
}

impl Stream {
    /// Takes over a stream's history and appends a frame of residual.
    pub fn begin<M: Mode>(&mut self, shape: &Shape, from: &Decoder<M>, residual: &[f32]) {
        let (old, new) = self.history[MARGIN..MARGIN + HISTORY].split_at_mut(HISTORY - shape.samples);
        old.copy_from_slice(&from.enhancer.history[shape.samples..]);
        new.copy_from_slice(residual);
        self.periods = from.enhancer.periods;
        self.after_loss = from.concealer.is_lost();
    }

    /// Gives history, periods and lag back.
    pub fn end<M: Mode>(&self, to: &mut Decoder<M>) {
        to.enhancer.history.copy_from_slice(&self.history[MARGIN..MARGIN + HISTORY]);
        to.enhancer.periods = self.periods;
        to.lag = self.lag;
    }
}

/// Enhances a frame of all streams into `out`.
pub(super) struct Enhance<'a, L: Lanes, const FAST: bool> {
    pub shape: &'a Shape,
    pub streams: &'a mut Streams,
    pub out: &'a mut FrameRows<L>,
}

impl<L: Lanes, const FAST: bool> Kernel for Enhance<'_, L, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let Self { shape, streams, out } = self;
        let blocks = shape.blocks();
        let length = 2 * (DECIMATED_PAST + blocks * BLOCK / 2) + TAPS - 1;
        let zero = L::F32::splat(0.0);
        let mut rows = [zero; ROWS_MAX];
        gather_newest::<L>(streams, length, &mut rows);

        let mut periods = [zero; PLACES];
        gather::<L, _>(&streams.0, |stream| &stream.periods[..], &mut periods);
        periods.copy_within(blocks.., 0);
        L::call(Periods::<L, FAST> { shape, rows: &rows, periods: &mut periods });
        scatter::<L, _>(&periods, &mut streams.0, |stream| &mut stream.periods[..]);
        let mut mended = false;
        for stream in &mut streams.0 {
            stream.lag = stream.periods[PLACES - 1] as usize;
            if core::mem::take(&mut stream.after_loss) {
                stream.mend(shape);
                mended = true;
            }
        }
        if mended {
            gather_newest::<L>(streams, length, &mut rows);
            gather::<L, _>(&streams.0, |stream| &stream.periods[..], &mut periods);
        }
        for block in 0..blocks {
            let centre = shape.first_enhanced() + block * BLOCK;
            let start = centre + length - HISTORY;
            L::call(Smooth::<L, FAST> {
                streams,
                periods: &periods,
                centre,
                block: &rows[start..start + BLOCK],
                out: &mut out[block * BLOCK..(block + 1) * BLOCK],
            });
        }
    }
}

impl Stream {
    /// As the plain enhancer does after a loss.
    fn mend(&mut self, shape: &Shape) {
        let mut enhancer = Enhancer { history: [0.0; HISTORY], periods: self.periods };
        enhancer.history.copy_from_slice(&self.history[MARGIN..MARGIN + HISTORY]);
        let residual = enhancer.history;
        self.lag = 2 * enhancer.mend(shape, &residual[HISTORY - shape.samples..]);
        self.periods = enhancer.periods;
        self.history[MARGIN..MARGIN + HISTORY].copy_from_slice(&enhancer.history);
    }
}

/// The newest rows of the histories.
#[inline(always)]
fn gather_newest<L: Lanes>(streams: &Streams, length: usize, rows: &mut [L::F32; ROWS_MAX]) {
    let end = MARGIN + HISTORY;
    gather::<L, _>(&streams.0, |stream| &stream.history[end - length..end], &mut rows[..length]);
}

/// Estimates the pitch of the newest blocks.
struct Periods<'a, L: Lanes, const FAST: bool> {
    shape: &'a Shape,
    /// The newest part of the history.
    rows: &'a [L::F32; ROWS_MAX],
    periods: &'a mut [L::F32; PLACES],
}

impl<L: Lanes, const FAST: bool> Kernel for Periods<'_, L, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let zero = L::F32::splat(0.0);
        let blocks = self.shape.blocks();
        let count = DECIMATED_PAST + blocks * BLOCK / 2;
        let end = 2 * count + TAPS - 1;
        let mut decimated = [zero; DECIMATED_MAX];
        for (index, value) in decimated[..count].iter_mut().enumerate() {
            let newest = TAPS - 1 + HALF_TAPS + 2 * index;
            let mut sum = zero;
            for (tap, &factor) in LOW_PASS.iter().enumerate() {
                // Behind the newest sample are zeros.
                if newest - tap < end {
                    sum = add_product::<L, FAST>(sum, L::F32::splat(factor), self.rows[newest - tap]);
                }
            }
            *value = sum;
        }
        for block in 0..blocks {
            let start = DECIMATED_PAST + block * BLOCK / 2;
            let target = &decimated[start..start + BLOCK / 2];
            let (mut greatest, mut best) = (zero, L::F32::splat(DECIMATED_LAGS.start as f32));
            for first in DECIMATED_LAGS.step_by(ABREAST) {
                let (mut cross, mut energy) = ([zero; ABREAST], [zero; ABREAST]);
                // The sample that the last of these lags begins with; the others' follow it.
                let others = &decimated[start - first - (ABREAST - 1)..];
                for (at, &sample) in target.iter().enumerate() {
                    let others = &others[at..at + ABREAST];
                    for lag in 0..ABREAST {
                        let other = others[ABREAST - 1 - lag];
                        cross[lag] = add_product::<L, FAST>(cross[lag], sample, other);
                        energy[lag] = add_product::<L, FAST>(energy[lag], other, other);
                    }
                }
                for lag in 0..ABREAST {
                    let measure = cross[lag] * cross[lag] / energy[lag];
                    let better = cross[lag].gt(zero) & measure.gt(greatest);
                    greatest = L::F32::select(better, measure, greatest);
                    best = L::F32::select(better, L::F32::splat((first + lag) as f32), best);
                }
            }
            self.periods[PLACES - blocks + block] = L::F32::splat(2.0) * best;
        }
    }
}

/// Draws a block toward its neighbours one period away.
struct Smooth<'a, L: Lanes, const FAST: bool> {
    streams: &'a Streams,
    periods: &'a [L::F32; PLACES],
    /// Where in the history the block lies.
    centre: usize,
    block: &'a [L::F32],
    out: &'a mut [L::F32],
}

/// Where segments begin, in quarters of a sample of the history; one row a segment.
type Places = [[i32; LANES_MAX]; SEGMENTS];
/// A segment that would leave the history: zeros.
const NOWHERE: i32 = i32::MIN;

impl<L: Lanes, const FAST: bool> Kernel for Smooth<'_, L, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let zero = L::F32::splat(0.0);
        let centre = L::F32::splat(self.centre as f32);
        let half = L::F32::splat((BLOCK / 2) as f32);
        let mut found: Places = [[NOWHERE; LANES_MAX]; SEGMENTS];
        let mut trials = [zero; TRIALS];

        let mut centres = [zero; PLACES];
        for (row, &centre) in centres.iter_mut().zip(&ENHANCER_CENTRES) {
            *row = L::F32::splat(centre);
        }
        let middle = L::F32::splat(0.5 * (2 * self.centre + BLOCK - 1) as f32);
        let mut period = nearest::<L>(&centres, middle, self.periods);
        let mut start = centre;
        for found in found[..REACH].iter_mut().rev() {
            start -= period;
            period = nearest::<L>(&centres, start + half - period, self.periods);
            let inside = (start - L::F32::splat(2.0)).ge(zero);
            if inside.any() {
                start = L::call(Refine::<L, FAST> {
                    streams: self.streams,
                    block: self.block,
                    start,
                    inside,
                    trials: &mut trials,
                    found,
                });
            }
        }

        let mut places = centres;
        for (place, &period) in places.iter_mut().zip(self.periods) {
            *place -= period;
        }
        start = centre;
        for found in &mut found[REACH + 1..] {
            start += nearest::<L>(&places, start + half, self.periods);
            let inside =
                (start + L::F32::splat(BLOCK as f32) + L::F32::splat(2.0)).lt(L::F32::splat(HISTORY as f32));
            if inside.any() {
                start = L::call(Refine::<L, FAST> {
                    streams: self.streams,
                    block: self.block,
                    start,
                    inside,
                    trials: &mut trials,
                    found,
                });
            }
        }
        let mut means = [[0.0; BLOCK]; LANES_MAX];
        for (lane, (stream, mean)) in self.streams.0.iter().zip(&mut means).enumerate().take(L::N) {
            mean_of_segments::<L, FAST>(&stream.history, &found, lane, mean);
        }
        let mut around = [zero; BLOCK];
        gather::<L, _>(&means, |mean| &mean[..], &mut around);
        smooth::<L, FAST>(self.block, &around, self.out);
    }
}

/// The weighted segments of one stream, many samples at a time: each is cut where it was found, shifted by quarters of a
/// sample, and added to those before it.
#[inline(always)]
fn mean_of_segments<L: Lanes, const FAST: bool>(
    history: &[f32; MARGIN + HISTORY + MARGIN],
    found: &Places,
    lane: usize,
    mean: &mut [f32; BLOCK],
) {
    let zero = L::F32::splat(0.0);
    let mut sums = [zero; BLOCK / 8];
    for (places, &weight) in found.iter().zip(&WEIGHTS) {
        let place = places[lane];
        if place == NOWHERE {
            continue;
        }
        let whole = (place as usize).div_ceil(QUARTERS);
        let filter = &UPSAMPLING[(whole * QUARTERS - place as usize) % QUARTERS];
        let Some(window) = history[MARGIN + whole - HALF_TAPS..].first_chunk::<WINDOW>() else { continue };
        for (piece, total) in sums.iter_mut().enumerate().take(BLOCK / L::N) {
            let mut sum = zero;
            for (tap, &factor) in filter.iter().enumerate() {
                let samples = L::F32::load(&window[piece * L::N + tap..]);
                sum = add_product::<L, FAST>(sum, samples, L::F32::splat(factor));
            }
            *total = add_product::<L, FAST>(*total, sum, L::F32::splat(weight));
        }
    }
    for (piece, sum) in sums.iter().enumerate().take(BLOCK / L::N) {
        sum.store(&mut mean[piece * L::N..]);
    }
}

/// What belongs to the nearest value, the first of equals.
#[inline(always)]
fn nearest<L: Lanes>(values: &[L::F32; PLACES], to: L::F32, what: &[L::F32; PLACES]) -> L::F32 {
    let difference = values[0] - to;
    let (mut least, mut found) = (difference * difference, what[0]);
    for (&value, &what) in values[1..].iter().zip(&what[1..]) {
        let difference = value - to;
        let distance = difference * difference;
        let nearer = distance.lt(least);
        least = L::F32::select(nearer, distance, least);
        found = L::F32::select(nearer, what, found);
    }
    found
}

/// Finds the segments that resemble the block most; returns where they begin, also in `found`. Lanes that are not `inside`
/// keep their place.
struct Refine<'a, L: Lanes, const FAST: bool> {
    streams: &'a Streams,
    block: &'a [L::F32],
    start: L::F32,
    inside: L::Mask32,
    trials: &'a mut [L::F32; TRIALS],
    found: &'a mut [i32; LANES_MAX],
}

impl<L: Lanes, const FAST: bool> Kernel for Refine<'_, L, FAST> {
    type Out = L::F32;
    #[inline(always)]
    fn run<Same: Lanes>(self) -> L::F32 {
        let zero = L::F32::splat(0.0);
        let slop = L::F32::splat(SLOP as f32);
        // Starts are quarters, so that nothing is rounded here; those that are not inside could be anything.
        let start = L::F32::select(self.inside, self.start, slop + slop);
        let rounded = (start - L::F32::splat(0.5)).truncate().to_f32();
        let short = rounded.lt(slop);
        let first = (rounded - slop).max(zero);

        let mut window = [zero; SEARCHED];
        let mut cuts: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
        for ((cut, stream), &first) in cuts.iter_mut().zip(&self.streams.0).zip(L::F32::flat(&[first])) {
            let from = MARGIN + (first as usize).min(HISTORY - BLOCK);
            *cut = &stream.history[from..from + SEARCHED];
        }
        L::F32::gather(&cuts[..L::N], &mut window);

        let mut trials = [zero; TRIALS];
        let mut others = [window[0], window[1], window[2], window[3], zero];
        for (&sample, &newest) in self.block.iter().zip(&window[TRIALS - 1..]) {
            others[TRIALS - 1] = newest;
            for (trial, &other) in trials.iter_mut().zip(&others) {
                *trial = add_product::<L, FAST>(*trial, other, sample);
            }
            others = [others[1], others[2], others[3], others[4], newest];
        }
        // Where one place fewer is searched, the last is the one of the segment before.
        trials[TRIALS - 1] = L::F32::select(short, self.trials[TRIALS - 1], trials[TRIALS - 1]);
        for (old, &new) in self.trials.iter_mut().zip(&trials) {
            *old = L::F32::select(self.inside, new, *old);
        }
        let best = best_quarter::<L, FAST>(&trials, short);
        let quarters = best.to_f32() + first * L::F32::splat(QUARTERS as f32);
        let places = L::I32::select(self.inside, quarters.truncate(), L::I32::splat(NOWHERE));
        places.store(&mut self.found[..]);
        let found = first + best.to_f32() * L::F32::splat(1.0 / QUARTERS as f32) + L::F32::splat(1.0);
        L::F32::select(self.inside, found, self.start)
    }
}

/// The place of the greatest correlation, in quarters of a sample from the first.
#[inline(always)]
fn best_quarter<L: Lanes, const FAST: bool>(trials: &[L::F32; TRIALS], short: L::Mask32) -> L::I32 {
    let zero = L::F32::splat(0.0);
    // Over the right end hangs the filter from the last correlation that was searched for.
    let mut from_last = [zero; TRIALS];
    for back in 0..TRIALS - 1 {
        from_last[back] =
            L::F32::select(short, trials[TRIALS.saturating_sub(2 + back)], trials[TRIALS - 1 - back]);
    }
    let mut best = L::I32::splat(0);
    let mut greatest = zero;
    for row in 0..TRIALS {
        for (number, filter) in UPSAMPLING.iter().enumerate() {
            let filter = &filter[1..=TRIALS];
            let mut sum = zero;
            if row < 3 {
                for back in 0..=row + 2 {
                    sum = add_product::<L, FAST>(sum, trials[row + 2 - back], L::F32::splat(filter[back]));
                }
            } else {
                for (back, &factor) in filter[row - 2..].iter().enumerate() {
                    sum = add_product::<L, FAST>(sum, from_last[back], L::F32::splat(factor));
                }
            }
            if row == 0 && number == 0 {
                greatest = sum;
                continue;
            }
            let mut better = sum.gt(greatest);
            if row == TRIALS - 1 {
                better = better & !short;
            }
            greatest = L::F32::select(better, sum, greatest);
            best = L::I32::select(better, L::I32::splat((row * QUARTERS + number) as i32), best);
        }
    }
    best
}

/// As the plain enhancer's.
#[inline(always)]
fn smooth<L: Lanes, const FAST: bool>(block: &[L::F32], around: &[L::F32; BLOCK], out: &mut [L::F32]) {
    let (zero, one) = (L::F32::splat(0.0), L::F32::splat(1.0));
    let (mut own, mut cross, mut other) = (zero, zero, zero);
    for (at, &sample) in block.iter().enumerate() {
        let sum = around[at];
        own = add_product::<L, FAST>(own, sample, sample);
        other = add_product::<L, FAST>(other, sum, sum);
        cross = add_product::<L, FAST>(cross, sum, sample);
    }
    other = L::F32::select(other.lt(one), one, other);
    let scale = (own / other).sqrt();
    let mut difference = zero;
    for (at, out) in out.iter_mut().enumerate() {
        *out = scale * around[at];
        let error = block[at] - *out;
        difference = add_product::<L, FAST>(difference, error, error);
    }
    let limit = L::F32::splat(DIFFERENCE_MAX);
    let limited = difference.gt(limit * own);
    if limited.any() {
        own = L::F32::select(own.lt(one), one, own);
        let spread = (other * own - cross * cross) / (own * own);
        let apart = spread.gt(L::F32::splat(FLAT));
        let a = (L::F32::splat(DIFFERENCE_MAX - DIFFERENCE_MAX * DIFFERENCE_MAX / 4.0) / spread).sqrt();
        let b = L::F32::splat(-DIFFERENCE_MAX / 2.0) - a * cross / own + one;
        let (a, b) = (L::F32::select(apart, a, zero), L::F32::select(apart, b, one));
        for (at, out) in out.iter_mut().enumerate() {
            *out = L::F32::select(limited, a * around[at] + b * block[at], *out);
        }
    }
}
