//! The vectors of lags shorter than a sub-block: the lag's samples twice, with a cross-fade (RFC 3951 section 3.6.3.3).

use lanes::{Lanes, Number, Vector};

use super::{add_product, inverse};
use crate::SUB_BLOCK;
use crate::codebook::{AUGMENTED, FADE};

/// Samples over which such a vector fades and differs from its first part.
const FADED: usize = FADE - 1;
/// Lags correlated at once, whose sums need not wait for each other.
pub(super) const TOGETHER: usize = 4;

/// Those of one half of the codebook.
pub(super) struct Repeated<L: Lanes> {
    /// The samples of each lag that are faded.
    faded: [[L::F32; FADED]; AUGMENTED],
    pub inverse: [L::F32; AUGMENTED],
}

impl<L: Lanes> Repeated<L> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let zero = L::F32::splat(0.0);
        Self { faded: [[zero; FADED]; AUGMENTED], inverse: [zero; AUGMENTED] }
    }

    #[inline(always)]
    pub(super) fn fade(&mut self, rows: &[L::F32]) {
        let end = rows.len();
        let mut share = 0.2f32;
        for n in 0..FADED {
            let late = L::F32::splat(1.0 - share) * rows[end - FADED + n];
            for k in 0..AUGMENTED {
                let early = rows[end - AUGMENTED - k - FADED + n];
                self.faded[k][n] = late + L::F32::splat(share) * early;
            }
            share += 0.2;
        }
    }

    /// Inverse energies of all lags.
    #[inline(always)]
    pub(super) fn measure_all<const FAST: bool>(&mut self, rows: &[L::F32]) {
        self.inverse = self.measure::<FAST>(rows, L::I32::splat(AUGMENTED as i32), AUGMENTED);
    }

    /// Inverse energies of the lags from `lag` on, a multiple of [`TOGETHER`], and no numbers for those below the first of
    /// each stream; where a stream begins decides in which order its sums are made.
    #[inline(always)]
    pub(super) fn measure<const FAST: bool>(
        &self,
        rows: &[L::F32],
        firsts: L::I32,
        lag: usize,
    ) -> [L::F32; AUGMENTED] {
        let (zero, end) = (L::F32::splat(0.0), rows.len());
        let mut running = zero;
        for lag in (FADE..SUB_BLOCK).rev() {
            let before = firsts.gt(L::I32::splat(lag as i32));
            let row = L::F32::select(before, rows[end - lag], zero);
            running = add_product::<L, FAST>(running, row, row);
        }
        let mut inverses = [zero; AUGMENTED];
        for lag in (lag..SUB_BLOCK).step_by(TOGETHER) {
            let mut inside = [firsts.le(firsts); TOGETHER];
            let mut sums = [zero; TOGETHER];
            for k in 0..TOGETHER {
                inside[k] = firsts.le(L::I32::splat((lag + k) as i32));
                let row = L::F32::select(inside[k], rows[end - lag - k], zero);
                running = add_product::<L, FAST>(running, row, row);
                sums[k] = running;
            }
            self.add_rest::<FAST>(rows, lag, &mut sums);
            for k in 0..TOGETHER {
                inverses[lag - AUGMENTED + k] =
                    L::F32::select(inside[k], inverse::<L>(sums[k]), L::F32::splat(f32::NAN));
            }
        }
        inverses
    }

    /// Adds the energies of what follows the first parts of the vectors from `lag` on.
    #[inline(always)]
    fn add_rest<const FAST: bool>(&self, rows: &[L::F32], lag: usize, sums: &mut [L::F32; TOGETHER]) {
        for n in 0..FADED {
            for k in 0..TOGETHER {
                let row = self.faded[lag - AUGMENTED + k][n];
                sums[k] = add_product::<L, FAST>(sums[k], row, row);
            }
        }
        let again = &rows[rows.len() - lag - TOGETHER + 1..];
        let common = SUB_BLOCK - lag - TOGETHER + 1;
        for n in 0..common {
            for k in 0..TOGETHER {
                let row = again[TOGETHER - 1 - k + n];
                sums[k] = add_product::<L, FAST>(sums[k], row, row);
            }
        }
        for k in 0..TOGETHER {
            for n in 0..TOGETHER - 1 - k {
                let row = again[TOGETHER - 1 - k + common + n];
                sums[k] = add_product::<L, FAST>(sums[k], row, row);
            }
        }
    }

    /// Sums of `target` times the vectors of [`TOGETHER`] lags, from `lag` on.
    #[inline(always)]
    pub(super) fn correlate<const FAST: bool>(
        &self,
        rows: &[L::F32],
        target: &[L::F32],
        lag: usize,
    ) -> [L::F32; TOGETHER] {
        let target = &target[..SUB_BLOCK];
        // What all vectors cut; where each in turn fades and begins again; what all repeat.
        let cut = &rows[rows.len() - lag - TOGETHER + 1..];
        let again = &rows[rows.len() - 2 * (lag + TOGETHER - 1)..];
        let (fade, repeat) = (lag - FADED, lag + TOGETHER - 1);
        let mut sums = [L::F32::splat(0.0); TOGETHER];
        for n in 0..fade {
            for k in 0..TOGETHER {
                sums[k] = add_product::<L, FAST>(sums[k], target[n], cut[TOGETHER - 1 - k + n]);
            }
        }
        for m in 0..FADED + TOGETHER - 1 {
            let n = fade + m;
            for k in 0..TOGETHER {
                let row = if m < k {
                    cut[TOGETHER - 1 - k + n]
                } else if m < k + FADED {
                    self.faded[lag - AUGMENTED + k][m - k]
                } else {
                    again[2 * (TOGETHER - 1 - k) + n]
                };
                sums[k] = add_product::<L, FAST>(sums[k], target[n], row);
            }
        }
        for n in repeat..SUB_BLOCK {
            for k in 0..TOGETHER {
                sums[k] = add_product::<L, FAST>(sums[k], target[n], again[2 * (TOGETHER - 1 - k) + n]);
            }
        }
        sums
    }
}

const _: () = assert!(AUGMENTED.is_multiple_of(TOGETHER));
