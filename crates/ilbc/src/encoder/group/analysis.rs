//! Prediction analysis of a group (RFC 3951 sections 3.1 and 3.2).

use lanes::{Integer, LANES_MAX, Lanes, Mask, Number, Vector};

use super::super::scalar::ENERGY_MIN;
use super::super::{LOOK_BACK, SEEN, WINDOW};
use super::{LpcRows, LsfRows, TAPS, add_product, expand_bandwidth};
use crate::bits::Frame;
use crate::lsf::{self, CHIRP_SYNTHESIS, HUGE, ROOT_STEPS, TWO_PI, cosine};
use crate::lsf_rows::{cosines, stabilise, to_lpc};
use crate::tables::{
    HP_IN_POLES, HP_IN_ZEROS, LAG_WINDOW, LPC_ASYMMETRIC_WINDOW, LPC_WINDOW, LSF_CODEBOOK_0, LSF_CODEBOOK_1,
    LSF_CODEBOOK_2,
};
use crate::{ORDER, SUB_BLOCKS_MAX, Shape};

const HALF: usize = ORDER / 2;

/// High-pass filter in place; `memory` is the last two inputs and the last two outputs.
#[inline(always)]
pub(super) fn high_pass<L: Lanes, const FAST: bool>(rows: &mut [L::F32], memory: &mut [L::F32; 4]) {
    let [zero0, zero1, zero2] = HP_IN_ZEROS;
    let [_, pole1, pole2] = HP_IN_POLES;
    let (zero0, zero1, zero2) = (L::F32::splat(zero0), L::F32::splat(zero1), L::F32::splat(zero2));
    let (pole1, pole2) = (L::F32::splat(pole1), L::F32::splat(pole2));
    let [mut x1, mut x2, mut y1, mut y2] = *memory;
    for n in 0..rows.len() {
        let x = rows[n];
        let zeros = zero0 * x + zero1 * x1 + zero2 * x2;
        let y = zeros - pole1 * y1 - pole2 * y2;
        (x1, x2, y1, y2) = (x, x1, y, y1);
        rows[n] = y;
    }
    *memory = [x1, x2, y1, y2];
}

/// Finds and quantises the frequencies, and makes the filters of each sub-block: synthesis from the quantised ones, and what
/// weighting comes from.
///
/// `last` holds the last frame's quantised frequencies and its own, and then this frame's.
#[inline(always)]
pub(super) fn analyse<L: Lanes, const W: usize, const FAST: bool>(
    shape: &Shape,
    seen: &[L::F32; SEEN],
    last: &mut [LsfRows<L::F32>; 2],
    filters: &mut [[LpcRows<L::F32>; SUB_BLOCKS_MAX]; 2],
    frames: &mut [Frame; W],
) {
    // Quantised, and as found.
    let mut sets = [[[L::F32::splat(0.0); ORDER]; 2]; 2];
    for n in 0..shape.lsf_sets {
        let (signal, window) = match n + 1 == shape.lsf_sets {
            true => (&seen[LOOK_BACK..], &LPC_ASYMMETRIC_WINDOW),
            false => (&seen[..WINDOW], &LPC_WINDOW),
        };
        let lpc = predict::<L, FAST>(&autocorrelate::<L, FAST>(signal, window));
        let found = from_lpc::<L>(&expand_bandwidth::<L>(&lpc, CHIRP_SYNTHESIS));
        let index = quantise::<L, FAST>(&found);
        let mut quantised = [L::F32::splat(0.0); ORDER];
        for lane in 0..L::N {
            for (split, index) in index.iter().enumerate() {
                frames[lane].lsf[n][split] = L::I32::flat(std::slice::from_ref(index))[lane] as u8;
            }
            let flat = L::F32::flat_mut(&mut quantised);
            for (row, value) in lsf::dequantise(frames[lane].lsf[n]).into_iter().enumerate() {
                flat[row * L::N + lane] = value;
            }
        }
        stabilise::<L>(&mut quantised);
        sets[0][n] = quantised;
        sets[1][n] = found;
    }
    for kind in 0..2 {
        let sets = &sets[kind];
        for n in 0..shape.sub_blocks {
            let weight = shape.lsf_weights[n];
            if n > 0 && weight == 0.0 && shape.lsf_weights[n - 1] == 0.0 {
                filters[kind][n] = filters[kind][n - 1];
                continue;
            }
            let (older, newer) = match (shape.lsf_sets, n) {
                (1, _) | (_, 0) => (&last[kind], &sets[0]),
                _ => (&sets[0], &sets[1]),
            };
            let (share, rest) = (L::F32::splat(weight), L::F32::splat(1.0 - weight));
            let mut between = [L::F32::splat(0.0); ORDER];
            for i in 0..ORDER {
                between[i] = share * older[i] + rest * newer[i];
            }
            filters[kind][n] = to_lpc::<L>(&between);
        }
        last[kind] = sets[shape.lsf_sets - 1];
    }
}

/// Rows that are windowed at once, few enough to stay in the first cache.
const WINDOWED: usize = 40;

#[inline(always)]
fn autocorrelate<L: Lanes, const FAST: bool>(signal: &[L::F32], window: &[f32; WINDOW]) -> LpcRows<L::F32> {
    // Zeros before the signal change no sum.
    let mut windowed = [L::F32::splat(0.0); ORDER + WINDOWED];
    let mut sums = [L::F32::splat(0.0); TAPS];
    let signal = &signal[..WINDOW];
    for first in (0..WINDOW).step_by(WINDOWED) {
        for n in 0..ORDER {
            windowed[n] = windowed[WINDOWED + n];
        }
        for n in 0..WINDOWED {
            windowed[ORDER + n] = signal[first + n] * L::F32::splat(window[first + n]);
        }
        for n in 0..WINDOWED {
            let Some(rows) = windowed[n..].first_chunk::<TAPS>() else { break };
            for lag in 0..TAPS {
                sums[lag] = add_product::<L, FAST>(sums[lag], rows[ORDER - lag], rows[ORDER]);
            }
        }
    }
    for lag in 0..TAPS {
        sums[lag] = sums[lag] * L::F32::splat(LAG_WINDOW[lag]);
    }
    sums
}

#[inline(always)]
fn predict<L: Lanes, const FAST: bool>(correlation: &LpcRows<L::F32>) -> LpcRows<L::F32> {
    let mut lpc = [L::F32::splat(0.0); ORDER + 1];
    let mut reflection = -correlation[1] / correlation[0];
    lpc[1] = reflection;
    let mut error = correlation[0] + correlation[1] * reflection;
    for m in 1..ORDER {
        let mut sum = correlation[m + 1];
        for i in 0..m {
            sum = add_product::<L, FAST>(sum, lpc[i + 1], correlation[m - i]);
        }
        reflection = -sum / error;
        error += reflection * sum;
        for i in 0..m.div_ceil(2) {
            let (low, high) = (lpc[i + 1], lpc[m - i]);
            lpc[m - i] = high + reflection * low;
            lpc[i + 1] = low + reflection * high;
        }
        lpc[m + 1] = reflection;
    }
    let silent = correlation[0].lt(L::F32::splat(ENERGY_MIN));
    for k in 1..TAPS {
        lpc[k] = L::F32::select(silent, L::F32::splat(0.0), lpc[k]);
    }
    lpc[0] = L::F32::splat(1.0);
    lpc
}

/// The frequencies, in units of the sample rate, at which the search for roots looks first: up to the first beyond 0.5.
const GRID: usize = 80;
const GRID_OMEGA: [f32; GRID] = {
    let mut grid = [0.0; GRID];
    let mut n = 1;
    while n < GRID {
        grid[n] = grid[n - 1] + ROOT_STEPS[0];
        n += 1;
    }
    assert!(grid[GRID - 2] < 0.5 && grid[GRID - 1] >= 0.5);
    grid
};
const GRID_COSINE: [f32; GRID] = {
    let mut cosines = [0.0; GRID];
    let mut n = 0;
    while n < GRID {
        cosines[n] = cosine(GRID_OMEGA[n] * TWO_PI);
        n += 1;
    }
    cosines
};

#[inline(always)]
fn evaluate<L: Lanes>(polynomial: &[L::F32; HALF], cosine: L::F32) -> L::F32 {
    let twice = cosine + cosine;
    let first = twice + polynomial[0];
    let second = twice * first - L::F32::splat(1.0) + polynomial[1];
    let third = twice * second - first + polynomial[2];
    let fourth = twice * third - second + polynomial[3];
    cosine * fourth - third + polynomial[4]
}

/// Line spectral frequencies of a filter: the walk of [`lsf::from_lpc`].
///
/// Both polynomials are evaluated on the whole coarse grid first, where all streams have the same angles; each stream then
/// finds its changes of sign in bit sets, and the streams refine their `n`-th root together.
#[inline(always)]
fn from_lpc<L: Lanes>(lpc: &LpcRows<L::F32>) -> LsfRows<L::F32> {
    let zero = L::F32::splat(0.0);
    let mut polynomials = [[zero; HALF]; 2];
    let mut last = [L::F32::splat(1.0); 2];
    for i in 0..HALF {
        last[0] = -last[0] + (lpc[i + 1] + lpc[ORDER - i]);
        last[1] -= lpc[ORDER - i] - lpc[i + 1];
        polynomials[0][i] = last[0];
        polynomials[1][i] = last[1];
    }
    for polynomial in &mut polynomials {
        polynomial[HALF - 1] = polynomial[HALF - 1] * L::F32::splat(0.5);
    }

    let mut values = [[zero; GRID]; 2];
    // For each polynomial, stream by stream: where it is positive and where negative, a bit a point of the grid.
    let mut signs = [[[0u128; LANES_MAX]; 2]; 2];
    for p in 0..2 {
        let mut words = [[L::I32::splat(0); GRID.div_ceil(32)]; 2];
        for n in 0..GRID {
            let value = evaluate::<L>(&polynomials[p], L::F32::splat(GRID_COSINE[n]));
            values[p][n] = value;
            // The walk ends at the last point at the latest: as if the sign changed there.
            if n + 1 < GRID {
                let bit = L::I32::splat((1u32 << (n % 32)).cast_signed());
                words[0][n / 32] = words[0][n / 32] | (L::I32::from_mask(value.gt(zero)) & bit);
                words[1][n / 32] = words[1][n / 32] | (L::I32::from_mask(value.lt(zero)) & bit);
            }
        }
        for (signs, words) in signs[p].iter_mut().zip(&words) {
            for (w, word) in words.iter().enumerate() {
                let flat = L::I32::flat(std::slice::from_ref(word));
                for (signs, &word) in signs.iter_mut().zip(flat) {
                    *signs |= u128::from(word.cast_unsigned()) << (32 * w);
                }
            }
        }
    }

    // Of each root: the angle behind which it is looked for, and the value there or one of its sign.
    let (mut omegas, mut befores) = ([zero; ORDER], [L::F32::splat(HUGE); ORDER]);
    let mut grid = [0usize; LANES_MAX];
    for k in 0..ORDER {
        let p = k & 1;
        if k >= 2 {
            // The value keeps its sign until the root, and there changes it.
            befores[k] = L::F32::select(befores[k - 2].ge(zero), L::F32::splat(-HUGE), L::F32::splat(HUGE));
        }
        for lane in 0..L::N {
            let before = &mut L::F32::flat_mut(&mut befores[k..k + 1])[lane];
            let same = signs[p][usize::from(*before < 0.0)][lane];
            let steps = (!same >> grid[lane]).trailing_zeros() as usize;
            grid[lane] += steps;
            if steps > 0 {
                *before = L::F32::flat(&values[p])[(grid[lane] - 1) * L::N + lane];
            }
            L::F32::flat_mut(&mut omegas[k..k + 1])[lane] = GRID_OMEGA[grid[lane]] - ROOT_STEPS[1];
        }
    }
    let mut roots = [zero; ORDER];
    for k in (0..ORDER).step_by(2) {
        let found = refine::<L>(&polynomials, [omegas[k], omegas[k + 1]], [befores[k], befores[k + 1]]);
        for p in 0..2 {
            roots[k + p] = found[p] * L::F32::splat(TWO_PI);
        }
    }
    roots
}

/// Finds a root of each polynomial, behind `omega`, in steps that are halved where the sign changes.
#[inline(always)]
fn refine<L: Lanes>(
    polynomials: &[[L::F32; HALF]; 2],
    mut omega: [L::F32; 2],
    mut before: [L::F32; 2],
) -> [L::F32; 2] {
    let mut step = [L::F32::splat(ROOT_STEPS[1]); 2];
    let mut found = [L::F32::splat(0.0); 2];
    let mut searching = [L::Mask32::first(L::N); 2];
    while (searching[0] | searching[1]).any() {
        for p in 0..2 {
            let value = evaluate::<L>(&polynomials[p], cosines::<L>(omega[p] * L::F32::splat(TWO_PI)));
            let changed = (value * before[p]).le(L::F32::splat(0.0)) | omega[p].ge(L::F32::splat(0.5));
            let last = step[p].eq(L::F32::splat(ROOT_STEPS[ROOT_STEPS.len() - 1]));
            let ended = searching[p] & changed & last;
            let nearest = L::F32::select(value.abs().ge(before[p].abs()), omega[p] - step[p], omega[p]);
            found[p] = L::F32::select(ended, nearest, found[p]);
            searching[p] = searching[p] & !ended;
            let (finer, on) = (searching[p] & changed, searching[p] & !changed);
            step[p] = L::F32::select(finer, step[p] * L::F32::splat(0.5), step[p]);
            before[p] = L::F32::select(on, value, before[p]);
            let onwards = L::F32::select(on, omega[p] + step[p], omega[p]);
            omega[p] = L::F32::select(finer, omega[p] - step[p], onwards);
        }
    }
    found
}

/// Indices of the nearest entries of the three codebooks.
#[inline(always)]
fn quantise<L: Lanes, const FAST: bool>(lsf: &LsfRows<L::F32>) -> [L::I32; 3] {
    let [a, b, c, d, e, f, g, h, i, j] = *lsf;
    [
        nearest::<L, 3, FAST>(&LSF_CODEBOOK_0, [a, b, c]),
        nearest::<L, 3, FAST>(&LSF_CODEBOOK_1, [d, e, f]),
        nearest::<L, 4, FAST>(&LSF_CODEBOOK_2, [g, h, i, j]),
    ]
}

#[inline(always)]
fn nearest<L: Lanes, const D: usize, const FAST: bool>(codebook: &[[f32; D]], wanted: [L::F32; D]) -> L::I32 {
    let (mut best, mut least) = (L::I32::splat(0), L::F32::splat(HUGE));
    for index in 0..codebook.len() {
        let entry = &codebook[index];
        let mut distance = L::F32::splat(0.0);
        for d in 0..D {
            let difference = wanted[d] - L::F32::splat(entry[d]);
            distance = add_product::<L, FAST>(distance, difference, difference);
        }
        let nearer = distance.lt(least);
        best = L::I32::select(nearer, L::I32::splat(index as i32), best);
        least = L::F32::select(nearer, distance, least);
    }
    best
}

const _: () = assert!(WINDOW.is_multiple_of(WINDOWED) && WINDOWED >= ORDER);
