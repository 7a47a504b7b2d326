//! The codebook search for one stream alone, with the lags side by side in the lanes.
//!
//! Each lane makes the sums of its own lag in their order, so the choice is that of the plain search, bit for bit, unless
//! `FAST` fuses them. Vectors that begin one sample later have a lag smaller by one: lags fall as lanes rise.

// Loops, not iterators, around vectors: what is not inlined into the kernel is not compiled for its level.
#![allow(clippy::needless_range_loop)]

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Mask, Number, Vector};

use super::scalar::energy;
use super::search::{ENERGY_BIAS, GAIN_MAX, MEASURE_MIN, Window, match_energy, quantise_gain};
use crate::bits::Choice;
use crate::codebook::{AUGMENTED, FADE, MEMORY, augment, half_size};
use crate::filters::all_pole;
use crate::tables::EXPANSION_FILTER;
use crate::{Lpc, ORDER, STAGES, SUB_BLOCK};

/// Silence before and behind a section: whole vectors are loaded at any of its samples.
const PAD: usize = 2 * LANES_MAX;
/// Where a section's samples end; a shorter memory begins later.
const END: usize = PAD + MEMORY;
type Section = [f32; PAD + MEMORY + PAD];
/// Vectors of lags summed at once.
const VECTORS: usize = 4;
/// Vectors that hold the repeated lags on the narrowest level.
const REPEATED_VECTORS: usize = AUGMENTED.div_ceil(8);

/// Chooses vectors and gains for a block: [`super::search::search`] with vectors.
pub(super) struct LoneSearch<'a, const FAST: bool> {
    pub memory: &'a [f32],
    pub residual: &'a [f32],
    pub weighting: &'a Lpc,
    pub ranges: [usize; STAGES],
}

impl<const FAST: bool> Kernel for LoneSearch<'_, FAST> {
    type Out = Choice;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Choice {
        let Self { memory, residual, weighting, ranges } = self;
        let (length, block) = (memory.len(), residual.len());
        let (plain, half) = (length - block + 1, half_size(length, block));
        let repeats = block == SUB_BLOCK;

        let mut weighted = [0.0; ORDER + MEMORY + SUB_BLOCK];
        let weighted = &mut weighted[..ORDER + length + block];
        weighted[ORDER..][..length].copy_from_slice(memory);
        weighted[ORDER + length..].copy_from_slice(residual);
        if FAST {
            // The filter's past is silence.
            all_pole_transposed(weighted, weighting);
        } else {
            all_pole(weighted, weighting);
        }
        let mut target = [0.0; SUB_BLOCK];
        target[..block].copy_from_slice(&weighted[ORDER + length..]);

        let mut low = Half::<L>::new();
        let mut high = Half::<L>::new();
        low.samples[END - length..END].copy_from_slice(&weighted[ORDER..][..length]);
        expand::<L, FAST>(&low.samples, length, &mut high.samples);
        low.measure(length, block, ranges[0]);
        high.measure(length, block, ranges[0]);
        if repeats {
            low.repeat();
            low.measure_repeated::<FAST>(AUGMENTED);
        }

        let mut choice = Choice::default();
        let target_energy = energy(&target[..block]);
        let mut found = [0.0; SUB_BLOCK];
        let (mut gain_before, mut first_gain) = (1.0, 0.0);
        for stage in 0..STAGES {
            let mut best = Found { measure: MEASURE_MIN, index: 0, gain: 0.0 };
            let first = stage == 0;
            let target_now = &target[..block];
            low.search::<FAST>(target_now, 0, ranges[stage], 0, first, &mut best);
            if repeats {
                low.search_repeated::<FAST>(target_now, half - SUB_BLOCK, first, &mut best);
            }
            let window = Window::around(best.index, ranges[stage], plain, repeats);
            high.search::<FAST>(target_now, window.lags.start, window.lags.end, half, first, &mut best);
            if !window.repeated.is_empty() {
                if !high.has_repeated {
                    high.repeat();
                }
                high.measure_repeated::<FAST>(window.repeated.start);
                high.search_repeated::<FAST>(target_now, 2 * half - SUB_BLOCK, first, &mut best);
            }

            let (index, gain) = quantise_gain(stage, best.gain, gain_before);
            choice.index[stage] = best.index as u8;
            choice.gain[stage] = index;
            let (section, position) = if best.index < half {
                (&low.samples, best.index)
            } else {
                (&high.samples, best.index - half)
            };
            let mut repeated = [0.0; SUB_BLOCK];
            let vector = if position < plain {
                &section[END - block - position..][..block]
            } else {
                augment(&section[..END], 2 * (position - plain + AUGMENTED), &mut repeated);
                &repeated
            };
            for n in 0..block {
                found[n] += gain * vector[n];
                target[n] -= gain * vector[n];
            }
            if first {
                first_gain = gain;
            }
            gain_before = gain.abs();
        }
        choice.gain[0] = match_energy(choice.gain[0], first_gain, energy(&found[..block]), target_energy);
        choice
    }
}

/// The all-pole filter in transposed form: each output goes at once into what is known of the next ones, so that a sample waits
/// for one product of the sample before it and not for the whole sum.
#[inline(always)]
fn all_pole_transposed(buffer: &mut [f32], lpc: &Lpc) {
    let mut known = [0.0; ORDER + 1];
    for n in ORDER..buffer.len() {
        let output = buffer[n] + known[0];
        for k in 0..ORDER {
            known[k] = known[k + 1] - lpc[k + 1] * output;
        }
        buffer[n] = output;
    }
}

#[inline(always)]
fn add_product<L: Lanes, const FAST: bool>(sum: L::F32, a: L::F32, b: L::F32) -> L::F32 {
    if FAST { a.mul_add(b, sum) } else { sum + a * b }
}

/// A section through the expansion filter.
#[inline(always)]
fn expand<L: Lanes, const FAST: bool>(section: &Section, length: usize, out: &mut Section) {
    for at in (END - length..END).step_by(L::N) {
        let mut sum = L::F32::splat(0.0);
        for tap in 0..EXPANSION_FILTER.len() {
            let samples = L::F32::load(&section[at + tap - 3..]);
            sum = add_product::<L, FAST>(sum, samples, L::F32::splat(EXPANSION_FILTER[tap]));
        }
        sum.store(&mut out[at..]);
    }
    // Whole vectors were written.
    out[END..].fill(0.0);
}

/// The best vector of a stage so far.
struct Found {
    measure: f32,
    index: usize,
    gain: f32,
}

/// The best in each lane.
struct Best<L: Lanes> {
    measure: L::F32,
    index: L::I32,
    gain: L::F32,
}

impl<L: Lanes> Best<L> {
    #[inline(always)]
    fn new() -> Self {
        Self { measure: L::F32::splat(MEASURE_MIN), index: L::I32::splat(0), gain: L::F32::splat(0.0) }
    }

    /// Of equal ones the later stays: lags are offered from the greatest down.
    #[inline(always)]
    fn offer(&mut self, index: L::I32, cross: L::F32, inverse: L::F32, allowed: L::Mask32) {
        let measure = cross * cross * inverse;
        let gain = cross * inverse;
        let better = measure.ge(self.measure) & gain.abs().lt(L::F32::splat(GAIN_MAX)) & allowed;
        self.measure = L::F32::select(better, measure, self.measure);
        self.index = L::I32::select(better, index, self.index);
        self.gain = L::F32::select(better, gain, self.gain);
    }

    /// The best of the lanes, the first index of equal ones, if it is better than what was found before.
    #[inline(always)]
    fn settle(&self, found: &mut Found) {
        let before = found.measure;
        let (mut measures, mut indices, mut gains) = ([0.0; LANES_MAX], [0; LANES_MAX], [0.0; LANES_MAX]);
        self.measure.store(&mut measures);
        self.index.store(&mut indices);
        self.gain.store(&mut gains);
        for lane in 0..L::N {
            let index = indices[lane] as usize;
            let equal = measures[lane] == found.measure && measures[lane] > before && index < found.index;
            if measures[lane] > found.measure || equal {
                *found = Found { measure: measures[lane], index, gain: gains[lane] };
            }
        }
    }
}

/// One half of the codebook.
struct Half<L: Lanes> {
    samples: Section,
    /// Inverse energies of vectors by their first sample; no number where there is none to search.
    inverse: Section,
    /// The repeated vectors: row `n` of vector `v` is sample `n` of lags `AUGMENTED + v * N` and up.
    repeated: [[L::F32; SUB_BLOCK]; REPEATED_VECTORS],
    repeated_inverse: [L::F32; REPEATED_VECTORS],
    has_repeated: bool,
}

impl<L: Lanes> Half<L> {
    #[inline(always)]
    fn new() -> Self {
        Self {
            samples: [0.0; PAD + MEMORY + PAD],
            inverse: [f32::NAN; PAD + MEMORY + PAD],
            repeated: [[L::F32::splat(0.0); SUB_BLOCK]; REPEATED_VECTORS],
            repeated_inverse: [L::F32::splat(f32::NAN); REPEATED_VECTORS],
            has_repeated: false,
        }
    }

    /// Energies of the first `range` lags one from the other, then their inverses side by side.
    #[inline(always)]
    fn measure(&mut self, length: usize, block: usize, range: usize) {
        let samples = &self.samples[END - length..END];
        let mut sum = energy(&samples[length - block..]);
        self.inverse[END - block] = sum;
        for lag in 1..range {
            let (entering, leaving) = (samples[length - block - lag], samples[length - lag]);
            sum = sum + entering * entering - leaving * leaving;
            self.inverse[END - block - lag] = sum;
        }
        let (zero, one) = (L::F32::splat(0.0), L::F32::splat(1.0));
        for at in (END - block + 1 - range..=END - block).step_by(L::N) {
            let energy = L::F32::load(&self.inverse[at..]);
            let inverse = one / (energy + L::F32::splat(ENERGY_BIAS));
            // What is no number stays none.
            let inverse = L::F32::select(energy.le(zero), zero, inverse);
            inverse.store(&mut self.inverse[at..]);
        }
    }

    #[inline(always)]
    fn search<const FAST: bool>(
        &self,
        target: &[f32],
        lags_start: usize,
        lags_end: usize,
        first_index: usize,
        first_stage: bool,
        found: &mut Found,
    ) {
        let last = END - target.len() - lags_start;
        let mut at = END + 1 - target.len() - lags_end;
        let mut best = Best::<L>::new();
        while at <= last {
            let vectors = (last - at) / L::N + 1;
            match vectors {
                1 => self.block::<1, FAST>(target, at, last, first_index, first_stage, &mut best),
                2 => self.block::<2, FAST>(target, at, last, first_index, first_stage, &mut best),
                3 => self.block::<3, FAST>(target, at, last, first_index, first_stage, &mut best),
                _ => self.block::<VECTORS, FAST>(target, at, last, first_index, first_stage, &mut best),
            }
            at += VECTORS.min(vectors) * L::N;
        }
        best.settle(found);
    }

    /// The lags of `V` vectors, from the one that begins at `at` on; those behind `last` are not looked at.
    #[inline(always)]
    fn block<const V: usize, const FAST: bool>(
        &self,
        target: &[f32],
        at: usize,
        last: usize,
        first_index: usize,
        first_stage: bool,
        best: &mut Best<L>,
    ) {
        let mut sums = [L::F32::splat(0.0); V];
        let samples = &self.samples[at..][..target.len() - 1 + V * L::N];
        for n in 0..target.len() {
            let sample = L::F32::splat(target[n]);
            for v in 0..V {
                sums[v] = add_product::<L, FAST>(sums[v], sample, L::F32::load(&samples[n + v * L::N..]));
            }
        }
        let mut steps = [0; LANES_MAX];
        for (lane, step) in steps.iter_mut().enumerate() {
            *step = lane as i32;
        }
        let steps = L::I32::load(&steps);
        for v in 0..V {
            let begins = L::I32::splat((at + v * L::N) as i32) + steps;
            let index = L::I32::splat((first_index + END - target.len()) as i32) - begins;
            let mut allowed = begins.le(L::I32::splat(last as i32));
            if first_stage {
                allowed = allowed & sums[v].gt(L::F32::splat(0.0));
            }
            best.offer(index, sums[v], L::F32::load(&self.inverse[at + v * L::N..]), allowed);
        }
    }

    /// Makes the repeated vectors.
    #[inline(always)]
    fn repeat(&mut self) {
        let mut vectors = [[0.0; SUB_BLOCK]; AUGMENTED];
        for lag in 0..AUGMENTED {
            augment(&self.samples[..END], 2 * (lag + AUGMENTED), &mut vectors[lag]);
        }
        for v in 0..AUGMENTED.div_ceil(L::N) {
            let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
            let count = L::N.min(AUGMENTED - v * L::N);
            for lane in 0..count {
                slices[lane] = &vectors[v * L::N + lane];
            }
            // Silence in the lanes that are over.
            const SILENCE: [f32; SUB_BLOCK] = [0.0; SUB_BLOCK];
            for lane in count..L::N {
                slices[lane] = &SILENCE;
            }
            L::F32::gather(&slices[..L::N], &mut self.repeated[v]);
        }
        self.has_repeated = true;
    }

    /// Inverse energies of the repeated vectors of lags from `first` on; the first part's is summed from that lag on.
    #[inline(always)]
    fn measure_repeated<const FAST: bool>(&mut self, first: usize) {
        let samples = &self.samples[..END];
        let mut energies = [f32::NAN; REPEATED_VECTORS * LANES_MAX];
        let mut running = energy(&samples[END - first + 1..][..first - FADE]);
        for lag in first..SUB_BLOCK {
            running += samples[END - lag] * samples[END - lag];
            energies[lag - AUGMENTED] = running;
        }
        let mut lags = [0; REPEATED_VECTORS * LANES_MAX];
        for (n, lag) in lags.iter_mut().enumerate() {
            *lag = (AUGMENTED + n) as i32;
        }
        let zero = L::F32::splat(0.0);
        for v in 0..AUGMENTED.div_ceil(L::N) {
            let mut sum = L::F32::load(&energies[v * L::N..]);
            let lags = L::I32::load(&lags[v * L::N..]);
            for n in AUGMENTED + 1 - FADE..SUB_BLOCK {
                let row = self.repeated[v][n];
                let inside = lags.lt(L::I32::splat((n + FADE) as i32));
                sum = L::F32::select(inside, add_product::<L, FAST>(sum, row, row), sum);
            }
            let inverse = L::F32::splat(1.0) / (sum + L::F32::splat(ENERGY_BIAS));
            self.repeated_inverse[v] = L::F32::select(sum.le(zero), zero, inverse);
        }
    }

    #[inline(always)]
    fn search_repeated<const FAST: bool>(
        &self,
        target: &[f32],
        first_index: usize,
        first_stage: bool,
        found: &mut Found,
    ) {
        let mut best = Best::<L>::new();
        let mut sums = [L::F32::splat(0.0); REPEATED_VECTORS];
        for n in 0..target.len() {
            let sample = L::F32::splat(target[n]);
            for v in 0..AUGMENTED.div_ceil(L::N) {
                sums[v] = add_product::<L, FAST>(sums[v], sample, self.repeated[v][n]);
            }
        }
        let mut lags = [0; REPEATED_VECTORS * LANES_MAX];
        for (n, lag) in lags.iter_mut().enumerate() {
            *lag = (first_index + AUGMENTED + n) as i32;
        }
        // From the greatest lags down, as `offer` wants it.
        for v in (0..AUGMENTED.div_ceil(L::N)).rev() {
            let mut allowed = L::Mask32::first(L::N);
            if first_stage {
                allowed = sums[v].gt(L::F32::splat(0.0));
            }
            best.offer(L::I32::load(&lags[v * L::N..]), sums[v], self.repeated_inverse[v], allowed);
        }
        best.settle(found);
    }
}
