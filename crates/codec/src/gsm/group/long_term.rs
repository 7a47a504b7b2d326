//! Long-term prediction: the lag at which the past looks most like a sub-frame, and its gain (§4.2.11, §4.2.12, §4.3.2).

use lanes::{I16Lanes, I32Lanes, Integer, LANES16_MAX, Lanes, Number, Vector};

use super::super::analysis::DLB;
use super::super::{FRAME_SAMPLES, LTP_PAST, SUBFRAME};
use super::words::{mult, octaves, peak};

/// Shortest and longest lag.
const LAG_MIN: usize = SUBFRAME;
const LAG_MAX: usize = LTP_PAST;
/// Lags correlated at once: as many sums as fit the registers, and a divisor of all 81.
const BLOCK: usize = 9;
const _: () = assert!((LAG_MAX - LAG_MIN + 1).is_multiple_of(BLOCK));

/// The samples of a sub-frame.
type Rows<L> = [<L as Lanes>::I16; SUBFRAME];

/// The short-term residual of each stream by itself: the past, then what the frame adds.
pub struct History([[i16; LTP_PAST + FRAME_SAMPLES]; LANES16_MAX]);

impl History {
    /// Nobody's.
    #[inline(always)]
    pub fn new() -> Self {
        Self([[0; LTP_PAST + FRAME_SAMPLES]; LANES16_MAX])
    }
    /// Takes a stream's past.
    #[inline(always)]
    pub fn begin(&mut self, lane: usize, past: &[i16; LTP_PAST]) {
        self.0[lane][..LTP_PAST].copy_from_slice(past);
    }
    /// Gives it back, a frame later.
    #[inline(always)]
    pub fn end(&self, lane: usize, past: &mut [i16; LTP_PAST]) {
        past.copy_from_slice(&self.0[lane][FRAME_SAMPLES..]);
    }
    /// The 40 samples that lie `lag` before sample `now` of the frame, in each lane its own. Lags are 40 to 120.
    #[inline(always)]
    pub fn window<L: Lanes>(&self, now: usize, lag: L::I16) -> Rows<L> {
        let mut streams: [&[i16]; LANES16_MAX] = [&[]; LANES16_MAX];
        for ((slot, own), &lag) in streams.iter_mut().zip(&self.0).zip(L::I16::flat(&[lag])) {
            let start = LTP_PAST + now - usize::from(lag.cast_unsigned()).clamp(LAG_MIN, LAG_MAX);
            *slot = &own[start..start + SUBFRAME];
        }
        let mut window = [L::I16::splat(0); SUBFRAME];
        L::I16::gather(&streams, &mut window);
        window
    }
    /// Adds a sub-frame that begins at sample `now` of the frame.
    #[inline(always)]
    pub fn add<L: Lanes>(&mut self, now: usize, fresh: &Rows<L>) {
        let mut streams: [&mut [i16]; LANES16_MAX] = Default::default();
        for (slot, own) in streams.iter_mut().zip(&mut self.0) {
            *slot = &mut own[LTP_PAST + now..][..SUBFRAME];
        }
        L::I16::scatter(fresh, &mut streams);
    }
}

/// Neighbours of the residual side by side, for products of two samples at a time; element `i` of a half is made of samples
/// `i` and `i + 1`.
pub type Pairs<L> = [[<L as Lanes>::I16; LTP_PAST + FRAME_SAMPLES - 1]; 2];

/// The pairs within the past.
#[inline(always)]
pub fn pairs<L: Lanes>(past: &[L::I16; LTP_PAST]) -> Pairs<L> {
    let mut pairs = [[L::I16::splat(0); LTP_PAST + FRAME_SAMPLES - 1]; 2];
    for i in 0..LTP_PAST - 1 {
        [pairs[0][i], pairs[1][i]] = past[i].zip(past[i + 1]);
    }
    pairs
}

/// Adds the pairs of a sub-frame that begins at sample `now` of the frame, after sample `last`; returns its last sample.
#[inline(always)]
pub fn add_pairs<L: Lanes>(pairs: &mut Pairs<L>, now: usize, mut last: L::I16, fresh: &Rows<L>) -> L::I16 {
    for (i, &sample) in fresh.iter().enumerate() {
        let place = LTP_PAST - 1 + now + i;
        [pairs[0][place], pairs[1][place]] = last.zip(sample);
        last = sample;
    }
    last
}

/// What the search found.
pub struct Lag<L: Lanes> {
    /// 40 to 120.
    pub lag: L::I16,
    /// The correlation there, in zipped order; 0 when no lag has a positive one.
    cross: [L::I32; 2],
    /// Bits by which the sub-frame was scaled down.
    scale: L::I16,
}

/// The lag with the greatest correlation, the shortest of equals, for a sub-frame that begins at sample `now`.
#[inline(always)]
pub fn search<L: Lanes>(pairs: &Pairs<L>, now: usize, residual: &Rows<L>) -> Lag<L> {
    let scale = octaves(peak(residual), 512, 6);
    let mut fresh = [[L::I16::splat(0); SUBFRAME / 2]; 2];
    for (i, [first, second]) in residual.as_chunks().0.iter().enumerate() {
        [fresh[0][i], fresh[1][i]] = first.shr_each(scale).zip(second.shr_each(scale));
    }
    let (lag0, cross0) = best_lag::<L>(&fresh[0], &pairs[0][now..now + LTP_PAST - 1]);
    let (lag1, cross1) = best_lag::<L>(&fresh[1], &pairs[1][now..now + LTP_PAST - 1]);
    Lag { lag: L::I16::unzip([lag0, lag1]), cross: [cross0, cross1], scale }
}

/// `past` are the [`LTP_PAST`] samples before the sub-frame, in pairs.
#[inline(always)]
fn best_lag<L: Lanes>(fresh: &[L::I16; SUBFRAME / 2], past: &[L::I16]) -> (L::I32, L::I32) {
    let zero = L::I32::splat(0);
    let (mut lag, mut best) = (L::I32::splat(LAG_MIN as i32), zero);
    for first in (LAG_MIN..=LAG_MAX).step_by(BLOCK) {
        let mut sums = [zero; BLOCK];
        // The past of the block's longest lag comes first.
        let past = &past[LAG_MAX + 1 - first - BLOCK..];
        for (i, fresh) in fresh.iter().enumerate() {
            let window = &past[2 * i..2 * i + BLOCK];
            for (sum, past) in sums.iter_mut().rev().zip(window) {
                *sum += fresh.mul_add_pairs(*past);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            lag = L::I32::select(sum.gt(best), L::I32::splat((first + i) as i32), lag);
            best = best.max(sum);
        }
    }
    (lag, best)
}

/// The coded gain for the past at this lag: 0 to 3.
#[inline(always)]
pub fn gain<L: Lanes>(found: &Lag<L>, window: &Rows<L>) -> L::I16 {
    let mut power = [L::I32::splat(0); 2];
    for [first, second] in window.as_chunks().0 {
        let zipped = first.shr(3).zip(second.shr(3));
        power[0] += zipped[0].mul_add_pairs(zipped[0]);
        power[1] += zipped[1].mul_add_pairs(zipped[1]);
    }
    let power = [power[0].shl(1), power[1].shl(1)];
    let unscale = (L::I16::splat(6) - found.scale).widen_zipped();
    let [cross0, cross1] = found.cross;
    let (cross0, r0, s0) = fractions::<L>(cross0, unscale[0], power[0]);
    let (cross1, r1, s1) = fractions::<L>(cross1, unscale[1], power[1]);
    let (r, s) = (L::I16::unzip([r0, r1]), L::I16::unzip([s0, s1]));
    let mut gain = L::I16::splat(0);
    for level in DLB {
        gain -= L::I16::from_mask(r.gt(mult(s, L::I16::splat(level))));
    }
    let whole = L::I16::unzip_mask([cross0.ge(power[0]), cross1.ge(power[1])]);
    let zero = L::I32::splat(0);
    let some = L::I16::unzip_mask([cross0.gt(zero), cross1.gt(zero)]);
    L::I16::from_mask(some) & L::I16::select(whole, L::I16::splat(3), gain)
}

/// The correlation without its scale, and with the power as fractions of the same exponent.
#[inline(always)]
fn fractions<L: Lanes>(cross: L::I32, unscale: L::I32, power: L::I32) -> (L::I32, L::I32, L::I32) {
    let cross = cross.shl(1).shr_each(unscale);
    let shift = power.leading_zeros() - L::I32::splat(1);
    (cross, cross.shl_each(shift).shr(16), power.shl_each(shift).shr(16))
}

/// A coded lag, or the last valid one in its place (§4.3.2).
#[inline(always)]
pub fn valid_lag<L: Lanes>(coded: L::I16, last: L::I16) -> L::I16 {
    let (shortest, longest) = (L::I16::splat(LAG_MIN as i16), L::I16::splat(LAG_MAX as i16));
    L::I16::select(coded.ge(shortest) & longest.ge(coded), coded, last)
}
