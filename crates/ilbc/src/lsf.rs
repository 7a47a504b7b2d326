//! Line spectral frequencies: to and from prediction coefficients, quantised, checked, interpolated (RFC 3951 section 3.2).

use crate::tables::{LSF_CODEBOOK_0, LSF_CODEBOOK_1, LSF_CODEBOOK_2};
use crate::{Lpc, Lsf, ORDER, SUB_BLOCKS_MAX, Shape};

/// Bandwidth expansion of the synthesis filter.
pub(crate) const CHIRP_SYNTHESIS: f32 = 0.9025;
/// Bandwidth expansion of the perceptual weighting filter.
pub(crate) const CHIRP_WEIGHTING: f32 = 0.4222;

/// 2π and its inverse with the digits that the standard's code has.
pub(crate) const TWO_PI: f32 = 6.283_185_5;
pub(crate) const INVERSE_TWO_PI: f32 = 0.159_154_94;

const HALF: usize = ORDER / 2;

/// Steps of the search for roots, in units of the sample rate, each half the one before.
pub(crate) const ROOT_STEPS: [f32; 4] = [0.00635, 0.003175, 0.001_587_5, 0.000_793_75];

/// More than any value of a polynomial.
pub(crate) const HUGE: f32 = 1.0e37;

/// π/2 in two parts.
pub(crate) const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
/// Coefficients of the sine's series at y³, y⁵, …, y²¹: for |y| ≤ 1.7 the rest is below the rounding of an `f64`.
pub(crate) const SINE: [f64; 10] = [
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 355_687_428_096_000.0,
    -1.0 / 121_645_100_408_832_000.0,
    1.0 / 51_090_942_171_709_440_000.0,
];

/// Cosine of an angle between 0 and a little more than π, computed in `f64` and rounded: what the C library gives.
///
/// The series, not the library, so that vectors of angles give the same bits.
pub(crate) const fn cosine(angle: f32) -> f32 {
    // cos x = sin(π/2 - x).
    let y = (HALF_PI[0] - angle as f64) + HALF_PI[1];
    let z = y * y;
    let w = z * z;
    let even = SINE[0] + w * (SINE[2] + w * (SINE[4] + w * (SINE[6] + w * SINE[8])));
    let odd = SINE[1] + w * (SINE[3] + w * (SINE[5] + w * (SINE[7] + w * SINE[9])));
    (y + (y * z) * (even + z * odd)) as f32
}

/// The polynomials of section 3.2.3 whose roots interlace on the unit circle, without their roots at ±1.
pub(crate) fn root_polynomials(lpc: &Lpc) -> [[f32; HALF]; 2] {
    let (mut p, mut q) = ([0.0; HALF], [0.0; HALF]);
    let (mut last_p, mut last_q) = (1.0, 1.0);
    for i in 0..HALF {
        p[i] = -last_p + (lpc[i + 1] + lpc[ORDER - i]);
        q[i] = last_q - (lpc[ORDER - i] - lpc[i + 1]);
        (last_p, last_q) = (p[i], q[i]);
    }
    p[HALF - 1] /= 2.0;
    q[HALF - 1] /= 2.0;
    [p, q]
}

/// Value of such a polynomial where the cosine of the frequency is `cosine`.
#[inline(always)]
fn evaluate(polynomial: &[f32; HALF], cosine: f32) -> f32 {
    let twice = 2.0 * cosine;
    let first = twice + polynomial[0];
    let second = twice * first - 1.0 + polynomial[1];
    let third = twice * second - first + polynomial[2];
    let fourth = twice * third - second + polynomial[3];
    cosine * fourth - third + polynomial[4]
}

/// Line spectral frequencies of a prediction filter (section 3.2.3).
///
/// Walks up the unit circle and looks for changes of sign of the two polynomials in turn, each found one refined in three
/// halvings of the step.
pub(crate) fn from_lpc(lpc: &Lpc) -> Lsf {
    let polynomials = root_polynomials(lpc);
    let mut lsf = [0.0; ORDER];
    let mut before = [HUGE, HUGE];
    let mut omega = 0.0;
    for (n, frequency) in lsf.iter_mut().enumerate() {
        let (polynomial, before) = (&polynomials[n & 1], &mut before[n & 1]);
        let (mut step, mut coarse) = (0, omega);
        loop {
            let value = evaluate(polynomial, cosine(omega * TWO_PI));
            if value * *before > 0.0 && omega < 0.5 {
                *before = value;
                omega += ROOT_STEPS[step];
            } else if step < ROOT_STEPS.len() - 1 {
                if step == 0 {
                    coarse = omega;
                }
                step += 1;
                omega -= ROOT_STEPS[step];
            } else {
                let root = if value.abs() >= before.abs() { omega - ROOT_STEPS[step] } else { omega };
                *frequency = root * TWO_PI;
                *before = if *before >= 0.0 { -HUGE } else { HUGE };
                omega = coarse;
                break;
            }
        }
    }
    lsf
}

/// Prediction filter of line spectral frequencies (section 3.2.6).
pub(crate) fn to_lpc(lsf: &Lsf) -> Lpc {
    let mut frequency = lsf.map(|radians| radians * INVERSE_TWO_PI);
    // Frequencies out of range are replaced by evenly spaced ones.
    if frequency[0] <= 0.0 || frequency[ORDER - 1] >= 0.5 {
        if frequency[0] <= 0.0 {
            frequency[0] = 0.022;
        }
        if frequency[ORDER - 1] >= 0.5 {
            frequency[ORDER - 1] = 0.499;
        }
        let spacing = (frequency[ORDER - 1] - frequency[0]) / (ORDER - 1) as f32;
        for i in 1..ORDER {
            frequency[i] = frequency[i - 1] + spacing;
        }
    }
    let cosines = frequency.map(|frequency| cosine(TWO_PI * frequency));
    let mut lpc = [1.0; ORDER + 1];
    // Impulse response of both chains of second-order sections.
    let (mut even, mut odd) = (Sections::default(), Sections::default());
    even.push(&cosines, 0, 0.25);
    odd.push(&cosines, 1, 0.25);
    for (n, coefficient) in lpc[1..].iter_mut().enumerate() {
        let (a, b) = if n == 0 { (0.25, -0.25) } else { (0.0, 0.0) };
        *coefficient = 2.0 * (even.push(&cosines, 0, a) + odd.push(&cosines, 1, b));
    }
    lpc
}

/// Five second-order sections with zeros on the unit circle, one behind the other.
#[derive(Default)]
struct Sections {
    newest: [f32; HALF],
    older: [f32; HALF],
}

impl Sections {
    /// A value into the first section, and what comes out of the last; every second of `cosines` is used, from `first`.
    #[inline(always)]
    fn push(&mut self, cosines: &Lsf, first: usize, input: f32) -> f32 {
        let mut value = input;
        for i in 0..HALF {
            let next = value - 2.0 * cosines[2 * i + first] * self.newest[i] + self.older[i];
            self.older[i] = self.newest[i];
            self.newest[i] = value;
            value = next;
        }
        value
    }
}

/// Moves the roots of a filter inward (section 3.2.2).
pub(crate) fn expand_bandwidth(lpc: &Lpc, factor: f32) -> Lpc {
    let mut out = *lpc;
    let mut chirp = factor;
    for coefficient in &mut out[1..] {
        *coefficient *= chirp;
        chirp *= factor;
    }
    out
}

/// `weight` of `older` and the rest of `newer`.
pub(crate) fn interpolate(older: &Lsf, newer: &Lsf, weight: f32) -> Lsf {
    let rest = 1.0 - weight;
    std::array::from_fn(|i| weight * older[i] + rest * newer[i])
}

/// The filter of each sub-block, between the last frame's frequencies and this frame's one or two sets (section 3.2.6).
pub(crate) fn interpolate_filters(
    shape: &Shape,
    last: &Lsf,
    sets: &[Lsf; 2],
    filters: &mut [Lpc; SUB_BLOCKS_MAX],
) {
    for (n, (&weight, filter)) in shape.lsf_weights.iter().zip(filters).enumerate() {
        let (older, newer) = match (shape.lsf_sets, n) {
            (1, _) | (_, 0) => (last, &sets[0]),
            _ => (&sets[0], &sets[1]),
        };
        *filter = to_lpc(&interpolate(older, newer, weight));
    }
}

/// Frequencies that three indices stand for (section 3.2.4); an index has the bits its codebook needs.
pub(crate) fn dequantise(index: [u8; 3]) -> Lsf {
    let [a, b, c] = LSF_CODEBOOK_0[usize::from(index[0]) % LSF_CODEBOOK_0.len()];
    let [d, e, f] = LSF_CODEBOOK_1[usize::from(index[1]) % LSF_CODEBOOK_1.len()];
    let [g, h, i, j] = LSF_CODEBOOK_2[usize::from(index[2]) % LSF_CODEBOOK_2.len()];
    [a, b, c, d, e, f, g, h, i, j]
}

/// Indices of the nearest entries of the three codebooks (section 3.2.4).
pub(crate) fn quantise(lsf: &Lsf) -> [u8; 3] {
    let [a, b, c, d, e, f, g, h, i, j] = *lsf;
    [
        nearest(&LSF_CODEBOOK_0, [a, b, c]),
        nearest(&LSF_CODEBOOK_1, [d, e, f]),
        nearest(&LSF_CODEBOOK_2, [g, h, i, j]),
    ]
}

/// Index of the nearest entry, the first of several.
fn nearest<const D: usize>(codebook: &[[f32; D]], wanted: [f32; D]) -> u8 {
    let (mut best, mut best_distance) = (0, HUGE);
    for (index, entry) in codebook.iter().enumerate() {
        let mut distance = 0.0;
        for (wanted, entry) in wanted.iter().zip(entry) {
            let difference = wanted - entry;
            distance += difference * difference;
        }
        if distance < best_distance {
            (best, best_distance) = (index as u8, distance);
        }
    }
    best
}

/// Least distance of two frequencies (50 Hz), half of it, and the range of frequencies (section 3.2.5).
pub(crate) const SEPARATION: f32 = 0.039;
pub(crate) const HALF_SEPARATION: f32 = 0.0195;
pub(crate) const LSF_MIN: f32 = 0.01;
#[allow(clippy::approx_constant)] // 3.14 is what the standard says
pub(crate) const LSF_MAX: f32 = 3.14;

/// Passes over the frequencies that keep them apart.
pub(crate) const SEPARATION_PASSES: usize = 2;

/// Keeps dequantised frequencies apart and in range, so that the filter is stable (section 3.2.5).
pub(crate) fn stabilise(lsf: &mut Lsf) {
    for _ in 0..SEPARATION_PASSES {
        for k in 0..ORDER - 1 {
            let (low, high) = (lsf[k], lsf[k + 1]);
            if high - low < SEPARATION {
                if high < low {
                    lsf[k + 1] = low + HALF_SEPARATION;
                    lsf[k] = lsf[k + 1] - HALF_SEPARATION;
                } else {
                    lsf[k] = low - HALF_SEPARATION;
                    lsf[k + 1] = high + HALF_SEPARATION;
                }
            }
            lsf[k] = lsf[k].clamp(LSF_MIN, LSF_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_is_that_of_the_library_rounded() {
        let mut differ = 0;
        for n in 0..=0x40_4A_00_00_u32 / 1000 {
            let angle = f32::from_bits(n * 1000);
            differ += usize::from(cosine(angle) != f64::from(angle).cos() as f32);
        }
        assert_eq!(differ, 0);
    }

    #[test]
    fn rfc3951_3_2_frequencies_and_filter_belong_to_each_other() {
        // A filter of frequencies, and frequencies of that filter: apart by less than the last step of the search.
        let even: Lsf = std::array::from_fn(|i| 0.26 * (i + 1) as f32);
        for (name, lsf) in [("mean", crate::tables::LSF_MEAN), ("even", even)] {
            let found = from_lpc(&to_lpc(&lsf));
            for (found, lsf) in found.iter().zip(&lsf) {
                assert!((found - lsf).abs() < ROOT_STEPS[3] * TWO_PI, "{name}: {found} {lsf}");
            }
        }
    }

    #[test]
    fn rfc3951_3_2_4_every_entry_is_nearest_to_itself() {
        for index in 0..=127u8 {
            let index = [index % 64, index, 127 - index];
            assert_eq!(quantise(&dequantise(index)), index);
        }
    }

    #[test]
    fn rfc3951_3_2_5_frequencies_are_kept_apart_and_in_range() {
        let mut lsf = [-1.0, 0.3, 0.29, 0.6, 0.6, 1.0, 1.5, 2.0, 3.3, 3.0];
        stabilise(&mut lsf);
        assert!(lsf[..9].iter().all(|&frequency| (LSF_MIN..=LSF_MAX).contains(&frequency)), "{lsf:?}");
        assert!(lsf[1] < lsf[2] && lsf[3] < lsf[4], "{lsf:?}");
    }
}
