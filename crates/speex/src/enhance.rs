//! The perceptual enhancer: a comb filter at the pitch of the frame.

use crate::decoder::{Excitation, HISTORY};
use crate::math::{inner_product, rms};
use crate::{FRAME, SUBFRAME};

/// Samples filtered at a time: two subframes.
pub const SPAN: usize = 2 * SUBFRAME;
/// Period up to which the comb looks one period ahead; beyond it looks two back.
pub const SHORT_PERIOD: usize = 40;
/// Shifts by a half and a quarter of a sample either way.
pub const SHIFT: [[f32; 7]; 3] = [
    [-0.011915, 0.046995, -0.152373, 0.614108, 0.614108, -0.152373, 0.046995],
    [-0.0324855, 0.0859768, -0.2042986, 0.9640297, 0.208_642, -0.0302054, -0.0063646],
    [-0.0063646, -0.0302054, 0.208_642, 0.9640297, -0.2042986, 0.0859768, -0.0324855],
];

/// Filters a frame in two halves; `signal` is the frame a subframe late.
pub fn comb(excitation: &Excitation, signal: &mut [f32; FRAME], lag: usize, strength: f32) {
    for (half, out) in signal.as_chunks_mut::<SPAN>().0.iter_mut().enumerate() {
        *out = comb_half(excitation, HISTORY - SUBFRAME + half * SPAN, lag, strength);
    }
}

fn comb_half(excitation: &Excitation, at: usize, lag: usize, strength: f32) -> [f32; SPAN] {
    let short = lag <= SHORT_PERIOD;
    let now = &excitation[at..at + SPAN];
    let before = period(excitation, at, at - lag);
    let other = period(excitation, at, if short { at + lag } else { at - 2 * lag });
    let level = |x: &[f32], floor: f32| f64::from(floor + inner_product(x, x)).sqrt() as f32;
    let level_now = level(now, 1.0);
    let (near, far) = strengths(strength);
    let gain = |other: &[f32; SPAN], share: f64| {
        let level_other = level(other, 1000.0);
        let correlation = inner_product(other, now);
        let correlation = if correlation < 0.0 { 0.0 } else { correlation };
        let similar =
            if correlation > level_other * level_now { 1.0 } else { (correlation / level_now) / level_other };
        let rest = 1.0 - far * similar * similar;
        let rest = if rest < near { near } else { rest };
        (share * f64::from((near / rest) * (level_now / level_other))) as f32
    };
    let shares = if short { [0.6, 0.6] } else { [0.7, 0.3] };
    let gains = [gain(&before, shares[0]), gain(&other, shares[1])];
    let out: [f32; SPAN] = std::array::from_fn(|i| now[i] + (gains[0] * before[i] + gains[1] * other[i]));
    let (new, old) = (rms(&out).max(1.0), rms(now).max(1.0));
    let scale = old.min(new) / new;
    out.map(|x| scale * x)
}

/// Least share of a neighbouring period, and by how much similarity raises it.
pub fn strengths(strength: f32) -> (f32, f32) {
    let near = (0.4 * f64::from(strength) + 0.07) as f32;
    (near, (0.5 + 1.72 * (f64::from(near) - 0.07)) as f32)
}

/// The period that starts around `from`, at the shift in quarters of a sample that resembles the one at `at` most.
fn period(excitation: &Excitation, at: usize, from: usize) -> [f32; SPAN] {
    let now = &excitation[at..at + SPAN];
    let mut correlation = [[0.0f32; 7]; 4];
    correlation[0] = std::array::from_fn(|i| inner_product(now, &excitation[from + i - 3..][..SPAN]));
    for (i, shift) in SHIFT.iter().enumerate() {
        for j in 0..7usize {
            for k in 3usize.saturating_sub(j)..7.min(10 - j) {
                correlation[i + 1][j] += shift[k] * correlation[0][j + k - 3];
            }
        }
    }
    let (mut best, mut best_at) = (correlation[0][0], (0, 0));
    for (i, row) in correlation.iter().enumerate() {
        for (j, value) in row.iter().enumerate() {
            if *value > best {
                (best, best_at) = (*value, (i, j));
            }
        }
    }
    let start = from + best_at.1 - 3;
    std::array::from_fn(|i| match best_at.0 {
        0 => excitation[start + i],
        shifted => (0..7).fold(0.0f32, |sum, k| sum + excitation[start + i + k - 3] * SHIFT[shifted - 1][k]),
    })
}
