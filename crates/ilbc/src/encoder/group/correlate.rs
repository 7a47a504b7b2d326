//! The kernel that most of the time is spent in: a block of signal against the codebook's vectors of several lags.

use lanes::{Lanes, Vector};

use super::add_product;

/// Lags correlated at once: their sums, a sample and a product stay in the 16 registers of AVX2.
pub(super) const LAGS: usize = 12;

/// Sums of `target` times the vectors of [`LAGS`] lags; `rows` begins with the vector of the greatest lag, and has
/// `LAGS - 1` rows more than `target`.
#[inline(always)]
pub(super) fn correlate<L: Lanes, const FAST: bool>(target: &[L::F32], rows: &[L::F32]) -> [L::F32; LAGS] {
    let mut sums = [L::F32::splat(0.0); LAGS];
    let rows = &rows[..target.len() + LAGS - 1];
    for n in 0..target.len() {
        let Some(window) = rows[n..].first_chunk::<LAGS>() else { break };
        for lag in 0..LAGS {
            sums[lag] = add_product::<L, FAST>(sums[lag], target[n], window[LAGS - 1 - lag]);
        }
    }
    sums
}
