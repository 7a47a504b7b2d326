//! The long-term predictor: open-loop candidates, then three taps chosen by analysis and synthesis.

use crate::filter::{Lpc, all_pole, pole_zero};
use crate::math::inner_product;
use crate::{LAG_MIN, ORDER, PAST, SUBFRAME};

/// Product of gains beyond which the search refrains from gains that would let a lost packet ring on.
pub const RINGING: f32 = 262_144.0;
/// Largest sum of gains when it does.
pub const CALM_GAIN: i8 = 31;
/// What the energies of the predicted signal count for, with the reference's default tuning for packet loss.
pub const ENERGY_WEIGHT: f64 = 0.5 * (1.0 + 0.02 * 2.0);

/// A gain codebook in the form the search wants: for each of the nine terms, its factor in every entry.
pub struct GainTerms<const COUNT: usize> {
    /// 64 g0, 64 g1, 64 g2, g0 g1, g2 g1, g2 g0, g0 g0, g1 g1, g2 g2 with g in 1/64; the last six are subtracted.
    pub terms: [[f32; COUNT]; 9],
    /// The entry's gains may ring on.
    pub rings: [bool; COUNT],
    /// Gains of the latest tap, the middle one, the earliest.
    pub taps: [[f32; COUNT]; 3],
    /// The sum of gains that the search is limited by.
    pub sum: [f32; COUNT],
}

impl<const COUNT: usize> GainTerms<COUNT> {
    /// Of a codebook.
    pub const fn new(book: &[[i8; 4]; COUNT]) -> Self {
        let (mut terms, mut rings) = ([[0.0; COUNT]; 9], [false; COUNT]);
        let (mut taps, mut sum) = ([[0.0; COUNT]; 3], [0.0; COUNT]);
        let mut i = 0;
        while i < COUNT {
            let g = [book[i][0] as i32 + 32, book[i][1] as i32 + 32, book[i][2] as i32 + 32];
            let products = [
                64 * g[0],
                64 * g[1],
                64 * g[2],
                g[0] * g[1],
                g[2] * g[1],
                g[2] * g[0],
                g[0] * g[0],
                g[1] * g[1],
                g[2] * g[2],
            ];
            let mut term = 0;
            while term < 9 {
                terms[term][i] = products[term] as f32;
                term += 1;
            }
            let mut tap = 0;
            while tap < 3 {
                taps[tap][i] = 0.015625 * book[i][tap] as f32 + 0.5;
                tap += 1;
            }
            rings[i] = book[i][3] > CALM_GAIN;
            sum[i] = book[i][3] as f32;
            i += 1;
        }
        Self { terms, rings, taps, sum }
    }

    /// The entry with the largest gain in prediction, given the correlations.
    fn search(&self, correlations: &[f32; 9], calm: bool) -> usize {
        let mut sums = [0.0f32; COUNT];
        let (gained, lost) = self.terms.split_at(3);
        for (factors, correlation) in gained.iter().zip(correlations) {
            for (sum, factor) in sums.iter_mut().zip(factors) {
                *sum += factor * correlation;
            }
        }
        for (factors, correlation) in lost.iter().zip(&correlations[3..]) {
            for (sum, factor) in sums.iter_mut().zip(factors) {
                *sum -= factor * correlation;
            }
        }
        let (mut best, mut best_sum) = (0, -1e15f32);
        for (i, (sum, rings)) in sums.iter().zip(&self.rings).enumerate() {
            if *sum > best_sum && !(calm && *rings) {
                (best, best_sum) = (i, *sum);
            }
        }
        best
    }
}

/// The two lags of highest normalised correlation, best first. `signal` ends with the subframe; `lags.end()` samples of
/// past are needed.
fn open_loop(signal: &[f32], first: usize, last: usize) -> [usize; 2] {
    let now = signal.len() - SUBFRAME;
    let current = &signal[now..];
    let mut energy = {
        let delayed = &signal[now - first..][..SUBFRAME];
        inner_product(delayed, delayed)
    };
    let (mut lag, mut score, mut norm) = ([first; 2], [-1.0f32; 2], [0.0f32; 2]);
    for candidate in first..=last {
        let correlation = inner_product(current, &signal[now - candidate..][..SUBFRAME]);
        let (square, raised) = (correlation * correlation, 1.0 + energy);
        if square * norm[1] > score[1] * raised {
            let place = usize::from(square * norm[0] <= score[0] * raised);
            if place == 0 {
                (lag[1], score[1], norm[1]) = (lag[0], score[0], norm[0]);
            }
            (lag[place], score[place], norm[place]) = (candidate, square, energy + 1.0);
        }
        if candidate < last {
            let (enters, leaves) = (signal[now - candidate - 1], signal[now - candidate + SUBFRAME - 1]);
            energy = (energy + enters * enters) - leaves * leaves;
            if energy < 0.0 {
                energy = 0.0;
            }
        }
    }
    lag
}

/// The filters a subframe is measured through.
pub struct Weighting<'a> {
    /// Quantised A(z).
    pub synthesis: &'a Lpc,
    /// Numerator of the perceptual filter.
    pub num: &'a Lpc,
    /// Its denominator.
    pub den: &'a Lpc,
    /// Response of all three to an impulse.
    pub response: &'a [f32; SUBFRAME],
}

/// What one lag achieves.
struct Trial {
    error: f32,
    entry: usize,
    excitation: [f32; SUBFRAME],
    target: [f32; SUBFRAME],
}

/// Sample `j` of the past excitation repeated with the period `lag`, shifted by `shift`; zero where two periods end.
#[inline]
fn periodic(past: &[f32; PAST], lag: usize, period: usize, j: usize) -> f32 {
    if j < period {
        past[PAST + j - period]
    } else if j < period + lag {
        past[PAST + j - period - lag]
    } else {
        0.0
    }
}

fn try_lag<const COUNT: usize>(
    lag: usize,
    past: &[f32; PAST],
    target: &[f32; SUBFRAME],
    weighting: &Weighting<'_>,
    gains: (&GainTerms<COUNT>, &[[i8; 4]; COUNT]),
    calm: bool,
) -> Trial {
    // The past one sample earlier, at the lag, and one later: each filtered is the one before shifted and corrected.
    let taps: [[f32; SUBFRAME]; 3] =
        std::array::from_fn(|tap| std::array::from_fn(|j| periodic(past, lag, lag + 1 - tap, j)));
    let mut x = [[0.0f32; SUBFRAME]; 3];
    x[2] = taps[2];
    all_pole(&mut x[2], weighting.synthesis, &mut [0.0; ORDER]);
    pole_zero(&mut x[2], weighting.num, weighting.den, &mut [0.0; ORDER]);
    for tap in [1, 0] {
        let newest = past[PAST - lag - 1 + tap];
        x[tap][0] = weighting.response[0] * newest;
        for j in 0..SUBFRAME - 1 {
            x[tap][j + 1] = x[tap + 1][j] + weighting.response[j + 1] * newest;
        }
    }
    let weigh = |energy: f32| (f64::from(energy) * ENERGY_WEIGHT) as f32;
    let correlations = [
        inner_product(&x[2], target),
        inner_product(&x[1], target),
        inner_product(&x[0], target),
        inner_product(&x[2], &x[1]),
        inner_product(&x[1], &x[0]),
        inner_product(&x[2], &x[0]),
        weigh(inner_product(&x[2], &x[2])),
        weigh(inner_product(&x[1], &x[1])),
        weigh(inner_product(&x[0], &x[0])),
    ];
    let entry = gains.0.search(&correlations, calm);
    let gain = tap_gains(&gains.1[entry]);
    let excitation =
        std::array::from_fn(|j| gain[2] * taps[0][j] + gain[1] * taps[1][j] + gain[0] * taps[2][j]);
    let target =
        std::array::from_fn(|j| target[j] - (gain[0] * x[2][j] + gain[1] * x[1][j] + gain[2] * x[0][j]));
    Trial { error: inner_product(&target, &target), entry, excitation, target }
}

/// The gains of a codebook entry, latest tap first.
#[inline]
pub fn tap_gains(entry: &[i8; 4]) -> [f32; 3] {
    [entry[0], entry[1], entry[2]].map(|code| 0.015625 * f32::from(code) + 0.5)
}

/// What the search found.
pub struct Found {
    /// Index of the lag, from 17.
    pub lag: usize,
    /// Index of the gains.
    pub entry: usize,
    /// The predicted excitation.
    pub excitation: [f32; SUBFRAME],
}

/// Predicts a subframe from the past and takes the prediction out of `target`.
///
/// `weighted` is the weighted signal up to the end of the subframe. `bound` is the largest lag allowed; below 17 there is
/// nothing to predict from.
pub fn search<const COUNT: usize>(
    weighted: &[f32],
    past: &[f32; PAST],
    target: &mut [f32; SUBFRAME],
    weighting: &Weighting<'_>,
    gains: (&GainTerms<COUNT>, &[[i8; 4]; COUNT]),
    bound: usize,
    gain_product: &mut f32,
) -> Found {
    if bound < LAG_MIN {
        return Found { lag: 0, entry: 0, excitation: [0.0; SUBFRAME] };
    }
    let calm = *gain_product > RINGING;
    let lags = open_loop(weighted, LAG_MIN, bound);
    let [first, second] = lags.map(|lag| try_lag(lag, past, target, weighting, gains, calm));
    // A negative best error, which only infinities could cause, is always replaced.
    let (lag, best) =
        if second.error < first.error || first.error < 0.0 { (lags[1], second) } else { (lags[0], first) };
    *target = best.target;
    let product = if 1024.0 > *gain_product { 1024.0 } else { *gain_product };
    *gain_product = 0.03125 * product * f32::from(gains.1[best.entry][3]);
    Found { lag: lag - LAG_MIN, entry: best.entry, excitation: best.excitation }
}
