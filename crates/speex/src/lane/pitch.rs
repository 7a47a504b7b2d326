//! The long-term predictor over lanes: see [`crate::pitch`]. Lags differ between lanes, so that the past excitation of
//! each is kept in a piece and only the periods that the lags point at are brought into rows.

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Number, Vector};

use super::filter::{Lpc, all_pole, pole_zero, rest};
use super::wide::Wide;
use super::{Float, lane_indices};
use crate::pitch::{ENERGY_WEIGHT, GainTerms, RINGING};
use crate::{FRAME, LAG_MAX, LAG_MIN, PAST, SUBFRAME};

/// A subframe.
pub type Rows<L> = [Float<L>; SUBFRAME];
/// Excitation of every lane from the oldest needed to the end of the frame.
pub type Pasts = [[f32; PAST + FRAME]; LANES_MAX];
/// Samples an open-loop search looks at.
pub const WINDOW: usize = LAG_MAX + SUBFRAME;
/// Samples of one period with the neighbours that the outer taps reach.
const REACH: usize = SUBFRAME + 2;

/// The sums that four-wide SSE would have made, one for each of its elements.
type Parts<L> = [Float<L>; 4];

#[inline(always)]
fn total<L: Lanes>(parts: Parts<L>) -> L::F32 {
    (parts[0] + parts[2]) + (parts[1] + parts[3])
}

#[inline(always)]
fn inner_product<L: Lanes>(a: &[L::F32], b: &[L::F32]) -> L::F32 {
    let mut parts = [L::F32::splat(0.0); 4];
    for j in (0..SUBFRAME).step_by(4) {
        for part in 0..4 {
            parts[part] += a[j + part] * b[j + part];
        }
    }
    total::<L>(parts)
}

/// The two lags of highest normalised correlation of every lane, best first.
pub struct OpenLoop<'a, M: Lanes> {
    /// The weighted signal: 144 samples of past, then the subframe.
    pub signal: &'a [M::F32; WINDOW],
}

impl<M: Lanes> Kernel for OpenLoop<'_, M> {
    type Out = [M::I32; 2];
    #[inline(always)]
    fn run<L: Lanes>(self) -> [M::I32; 2] {
        // Accumulators fill most registers: 16 of 32, or 8 of 16.
        if M::N == 16 { open_loop::<M, 4>(self.signal) } else { open_loop::<M, 2>(self.signal) }
    }
}

/// Best two of the lags seen.
struct Candidates<L: Lanes> {
    lag: [L::I32; 2],
    score: [L::F32; 2],
    norm: [L::F32; 2],
}

impl<L: Lanes> Candidates<L> {
    #[inline(always)]
    fn consider(&mut self, lag: usize, correlation: L::F32, energy: L::F32) {
        let lag = L::I32::splat(lag as i32);
        let square = correlation * correlation;
        let norm = L::F32::splat(1.0) + energy;
        let second = (square * self.norm[1]).gt(self.score[1] * norm);
        let first = second & (square * self.norm[0]).gt(self.score[0] * norm);
        let place = |mask, new, old| L::F32::select(mask, new, old);
        self.lag[1] = L::I32::select(first, self.lag[0], L::I32::select(second, lag, self.lag[1]));
        self.score[1] = place(first, self.score[0], place(second, square, self.score[1]));
        self.norm[1] = place(first, self.norm[0], place(second, norm, self.norm[1]));
        self.lag[0] = L::I32::select(first, lag, self.lag[0]);
        self.score[0] = place(first, square, self.score[0]);
        self.norm[0] = place(first, norm, self.norm[0]);
    }
}

#[inline(always)]
fn open_loop<L: Lanes, const BLOCK: usize>(signal: &[L::F32; WINDOW]) -> [L::I32; 2] {
    let zero = L::F32::splat(0.0);
    let (past, current) = signal.split_at(LAG_MAX);
    let delayed = &signal[LAG_MAX - LAG_MIN..][..SUBFRAME];
    let mut energy = inner_product::<L>(delayed, delayed);
    let mut best = Candidates::<L> {
        lag: [L::I32::splat(LAG_MIN as i32); 2],
        score: [L::F32::splat(-1.0); 2],
        norm: [zero; 2],
    };
    for first in (LAG_MIN..=LAG_MAX).step_by(BLOCK) {
        let mut parts = [[zero; 4]; BLOCK];
        let delayed = &signal[LAG_MAX + 1 - first - BLOCK..][..SUBFRAME + BLOCK - 1];
        for j in (0..SUBFRAME).step_by(4) {
            for part in 0..4 {
                let x = current[j + part];
                for lag in 0..BLOCK {
                    parts[lag][part] += x * delayed[j + part + BLOCK - 1 - lag];
                }
            }
        }
        for lag in 0..BLOCK {
            best.consider(first + lag, total::<L>(parts[lag]), energy);
            // The longest lag has no next.
            let Some(next) = LAG_MAX.checked_sub(first + lag + 1) else { break };
            let enters = past[next];
            let leaves = signal[LAG_MAX + SUBFRAME - 1 - first - lag];
            energy = ((energy + enters * enters) - leaves * leaves).max(zero);
        }
    }
    best.lag
}

/// The filters a subframe is measured through.
pub struct Weighting<'a, L: Lanes> {
    /// Quantised A(z).
    pub synthesis: &'a Lpc<L>,
    /// Numerator of the perceptual filter.
    pub num: &'a Lpc<L>,
    /// Its denominator.
    pub den: &'a Lpc<L>,
    /// Response of all three to an impulse.
    pub response: &'a Rows<L>,
}

/// What one lag of each lane achieves.
pub struct Trial<L: Lanes> {
    pub error: L::F32,
    pub entry: L::I32,
    pub excitation: Rows<L>,
    pub target: Rows<L>,
}

impl<L: Lanes> Trial<L> {
    #[inline(always)]
    pub fn new() -> Self {
        let rows = [L::F32::splat(0.0); SUBFRAME];
        Self { error: rows[0], entry: L::I32::splat(0), excitation: rows, target: rows }
    }
}

/// One lag of each lane.
pub struct TryLag<'a, M: Lanes, const COUNT: usize> {
    pub lag: M::I32,
    pub pasts: &'a Pasts,
    /// Where the subframe begins in `pasts`.
    pub now: usize,
    pub target: &'a Rows<M>,
    pub weighting: &'a Weighting<'a, M>,
    pub gains: &'a GainTerms<COUNT>,
    pub gain_product: M::F32,
    /// Where the result goes.
    pub trial: &'a mut Trial<M>,
}

impl<M: Lanes, const COUNT: usize> Kernel for TryLag<'_, M, COUNT> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let past = periods::<M, { PAST + FRAME }>(self.pasts, self.now, self.lag);
        let x = self.filtered(&past);
        let correlations = self.correlations(&x);
        let calm = self.gain_product.gt(M::F32::splat(RINGING));
        let entry = search::<M, COUNT>(self.gains, &correlations, calm);
        let taps = &self.gains.taps;
        let gain = [
            M::F32::lookup(&taps[0], entry),
            M::F32::lookup(&taps[1], entry),
            M::F32::lookup(&taps[2], entry),
        ];
        let trial = self.trial;
        for j in 0..SUBFRAME {
            trial.excitation[j] = (gain[2] * past[j] + gain[1] * past[j + 1]) + gain[0] * past[j + 2];
            trial.target[j] = self.target[j] - ((gain[0] * x[2][j] + gain[1] * x[1][j]) + gain[2] * x[0][j]);
        }
        trial.error = inner_product::<M>(&trial.target, &trial.target);
        trial.entry = entry;
    }
}

impl<M: Lanes, const COUNT: usize> TryLag<'_, M, COUNT> {
    /// The past at the three taps through the filters: the latest filtered, the others shifted from it.
    #[inline(always)]
    fn filtered(&self, past: &[M::F32; REACH]) -> [Rows<M>; 3] {
        let response = self.weighting.response;
        let mut x = [[M::F32::splat(0.0); SUBFRAME]; 3];
        x[2].copy_from_slice(&past[2..]);
        all_pole::<M>(&mut x[2], self.weighting.synthesis, &mut rest::<M>());
        pole_zero::<M>(&mut x[2], self.weighting.num, self.weighting.den, &mut rest::<M>());
        x[1][0] = response[0] * past[1];
        x[0][0] = response[0] * past[0];
        for j in 0..SUBFRAME - 1 {
            x[1][j + 1] = x[2][j] + response[j + 1] * past[1];
            x[0][j + 1] = x[1][j] + response[j + 1] * past[0];
        }
        x
    }

    /// The nine sums that the gain of every codebook entry is made of.
    #[inline(always)]
    fn correlations(&self, [x0, x1, x2]: &[Rows<M>; 3]) -> [M::F32; 9] {
        let mut sums = [[M::F32::splat(0.0); 9]; 4];
        // Part by part: nine sums stay in registers, four times nine would not.
        for (part, sums) in sums.iter_mut().enumerate() {
            let mut parts = *sums;
            for j in (part..SUBFRAME).step_by(4) {
                let (a, b, c, t) = (x2[j], x1[j], x0[j], self.target[j]);
                parts[0] += a * t;
                parts[1] += b * t;
                parts[2] += c * t;
                parts[3] += a * b;
                parts[4] += b * c;
                parts[5] += a * c;
                parts[6] += a * a;
                parts[7] += b * b;
                parts[8] += c * c;
            }
            *sums = parts;
        }
        let mut correlations = sums[0];
        for (term, correlation) in correlations.iter_mut().enumerate() {
            let sum = total::<M>([sums[0][term], sums[1][term], sums[2][term], sums[3][term]]);
            *correlation =
                if term < 6 { sum } else { (Wide::<M>::of(sum) * Wide::splat(ENERGY_WEIGHT)).narrow() };
        }
        correlations
    }
}

/// One period of the past of each lane, repeated where it is shorter than a subframe: sample `k` lies `lag + 1 - k` back.
#[inline(always)]
pub fn periods<L: Lanes, const LENGTH: usize>(
    pasts: &[[f32; LENGTH]; LANES_MAX],
    now: usize,
    lag: L::I32,
) -> [Float<L>; REACH] {
    let lags = lane_indices::<L>(lag);
    let mut pieces = [[0.0f32; REACH]; LANES_MAX];
    for ((piece, past), lag) in pieces.iter_mut().zip(pasts).zip(lags).take(L::N) {
        let start = now - lag - 1;
        if lag + 1 >= REACH {
            piece.copy_from_slice(&past[start..start + REACH]);
        } else {
            // After one period and the sample before it the period repeats once; what a second repetition would be is zero.
            let repeated = lag.min(REACH - lag - 1);
            piece[..=lag].copy_from_slice(&past[start..now]);
            piece[lag + 1..][..repeated].copy_from_slice(&past[now - lag..][..repeated]);
        }
    }
    let mut rows = [L::F32::splat(0.0); REACH];
    L::F32::gather(&pieces.each_ref().map(|piece| &piece[..])[..L::N], &mut rows);
    rows
}

/// The entries with the largest gain in prediction.
#[inline(always)]
fn search<L: Lanes, const COUNT: usize>(
    gains: &GainTerms<COUNT>,
    correlations: &[L::F32; 9],
    calm: L::Mask32,
) -> L::I32 {
    let none = (L::F32::splat(-1e15), L::I32::splat(0));
    let mut best = [none; 2];
    for i in 0..COUNT / 2 {
        for (half, (best_sum, index)) in best.iter_mut().enumerate() {
            let entry = half * (COUNT / 2) + i;
            let mut sum = L::F32::splat(gains.terms[0][entry]) * correlations[0];
            let (gained, lost) = gains.terms.split_at(3);
            for (factors, correlation) in gained[1..].iter().zip(&correlations[1..]) {
                sum += L::F32::splat(factors[entry]) * *correlation;
            }
            for (factors, correlation) in lost.iter().zip(&correlations[3..]) {
                sum -= L::F32::splat(factors[entry]) * *correlation;
            }
            let mut better = sum.gt(*best_sum);
            if gains.rings[entry] {
                better = better & !calm;
            }
            *best_sum = L::F32::select(better, sum, *best_sum);
            *index = L::I32::select(better, L::I32::splat(entry as i32), *index);
        }
    }
    L::I32::select(best[1].0.gt(best[0].0), best[1].1, best[0].1)
}
