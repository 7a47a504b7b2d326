//! The innovation over lanes: see [`crate::innovation`].

use lanes::{Kernel, Lanes, Number, Vector};

use super::pitch::Rows;
use super::{Float, Long, lane_indices, pick};
use crate::SUBFRAME;

/// Parts of a subframe at most.
pub const PARTS_MAX: usize = 8;

/// Room for a search.
pub struct Searched<L: Lanes, const WIDTH: usize, const COUNT: usize> {
    /// Every shape as it sounds through the filters.
    filtered: [[Float<L>; WIDTH]; COUNT],
    half_energy: [Float<L>; COUNT],
    /// Index of every part.
    pub index: [Long<L>; PARTS_MAX],
    /// The excitation before its gain.
    pub excitation: Rows<L>,
}

impl<L: Lanes, const WIDTH: usize, const COUNT: usize> Searched<L, WIDTH, COUNT> {
    #[inline(always)]
    pub fn new() -> Self {
        let zero = L::F32::splat(0.0);
        Self {
            filtered: [[zero; WIDTH]; COUNT],
            half_energy: [zero; COUNT],
            index: [L::I32::splat(0); PARTS_MAX],
            excitation: [zero; SUBFRAME],
        }
    }
}

/// Quantises targets, which it uses up.
pub struct Innovate<'a, M: Lanes, const WIDTH: usize, const COUNT: usize> {
    pub shapes: &'static [[f32; WIDTH]; COUNT],
    pub target: &'a mut Rows<M>,
    pub response: &'a Rows<M>,
    pub searched: &'a mut Searched<M, WIDTH, COUNT>,
}

impl<M: Lanes, const WIDTH: usize, const COUNT: usize> Kernel for Innovate<'_, M, WIDTH, COUNT> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Searched { filtered, half_energy, index, excitation } = self.searched;
        filter_shapes::<M, WIDTH, COUNT>(self.shapes, self.response, filtered, half_energy);
        let mut rest = &mut self.target[..];
        for part in 0..SUBFRAME / WIDTH {
            let Some((wanted, behind)) = rest.split_first_chunk_mut::<WIDTH>() else { return };
            index[part] = nearest::<M, WIDTH, COUNT>(filtered, half_energy, wanted);
            let gains = pick::<M, WIDTH, COUNT>(self.shapes, &lane_indices::<M>(index[part]));
            excitation[part * WIDTH..][..WIDTH].copy_from_slice(&gains);
            for (x, response) in behind.iter_mut().zip(self.response[1..].windows(WIDTH)) {
                let mut sum = *x;
                for m in 0..WIDTH {
                    sum -= gains[m] * response[WIDTH - 1 - m];
                }
                *x = sum;
            }
            rest = behind;
        }
    }
}

/// The code once for each sample that a shape may have, with its number as a constant: a triangle of sums whose loops
/// the compiler would not unroll stays in registers.
macro_rules! for_each_sample {
    ($k:ident $code:block) => {
        for_each_sample!($k $code 0 1 2 3 4 5 6 7 8 9)
    };
    ($k:ident $code:block $($number:literal)*) => {
        $({
            const $k: usize = $number;
            $code
        })*
    };
}

#[inline(always)]
fn filter_shapes<L: Lanes, const WIDTH: usize, const COUNT: usize>(
    shapes: &[[f32; WIDTH]; COUNT],
    response: &Rows<L>,
    filtered: &mut [[L::F32; WIDTH]; COUNT],
    half_energy: &mut [L::F32; COUNT],
) {
    let mut first = [L::F32::splat(0.0); WIDTH];
    first.copy_from_slice(&response[..WIDTH]);
    for ((filtered, half_energy), shape) in filtered.iter_mut().zip(half_energy).zip(shapes) {
        let mut sums = [L::F32::splat(0.0); WIDTH];
        for_each_sample!(K {
            if K < WIDTH {
                let sample = L::F32::splat(shape[K]);
                for j in K..WIDTH {
                    let part = sample * first[j - K];
                    sums[j] = if K == 0 { part } else { sums[j] + part };
                }
            }
        });
        let mut energy = L::F32::splat(0.0);
        for sum in &sums {
            energy += *sum * *sum;
        }
        *filtered = sums;
        *half_energy = energy * L::F32::splat(0.5);
    }
}

#[inline(always)]
fn nearest<L: Lanes, const WIDTH: usize, const COUNT: usize>(
    filtered: &[[L::F32; WIDTH]; COUNT],
    half_energy: &[L::F32; COUNT],
    wanted: &[L::F32; WIDTH],
) -> L::I32 {
    // The best of either half of the codebook: two chains of comparisons instead of one.
    let far = (L::F32::splat(f32::INFINITY), L::I32::splat(0));
    let mut best = [far; 2];
    for i in 0..COUNT / 2 {
        for (half, (best_distance, index)) in best.iter_mut().enumerate() {
            let entry = half * (COUNT / 2) + i;
            let mut distance = half_energy[entry];
            for j in 0..WIDTH {
                distance -= wanted[j] * filtered[entry][j];
            }
            let closer = best_distance.gt(distance);
            *best_distance = L::F32::select(closer, distance, *best_distance);
            *index = L::I32::select(closer, L::I32::splat(entry as i32), *index);
        }
    }
    L::I32::select(best[0].0.gt(best[1].0), best[1].1, best[0].1)
}
