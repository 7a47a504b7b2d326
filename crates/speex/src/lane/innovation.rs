//! The innovation over lanes: see [`crate::innovation`].

use lanes::{Kernel, Lanes, Number, Vector};

use super::pitch::Rows;
use super::{Long, lane_indices, pick};
use crate::SUBFRAME;

/// Parts of a subframe at most.
pub const PARTS_MAX: usize = 8;

/// Quantises targets: indices of the parts, and the excitation before its gain.
pub struct Innovate<'a, M: Lanes, const WIDTH: usize, const COUNT: usize> {
    pub shapes: &'static [[f32; WIDTH]; COUNT],
    pub target: &'a Rows<M>,
    pub response: &'a Rows<M>,
}

impl<M: Lanes, const WIDTH: usize, const COUNT: usize> Kernel for Innovate<'_, M, WIDTH, COUNT> {
    type Out = ([Long<M>; PARTS_MAX], Rows<M>);
    #[inline(always)]
    fn run<L: Lanes>(self) -> Self::Out {
        let zero = M::F32::splat(0.0);
        let mut filtered = [[zero; WIDTH]; COUNT];
        let mut half_energy = [zero; COUNT];
        let mut response = [zero; WIDTH];
        response.copy_from_slice(&self.response[..WIDTH]);
        for entry in 0..COUNT {
            let mut energy = zero;
            for j in 0..WIDTH {
                let mut sum = M::F32::splat(self.shapes[entry][0]) * response[j];
                for k in 1..=j {
                    sum += M::F32::splat(self.shapes[entry][k]) * response[j - k];
                }
                filtered[entry][j] = sum;
                energy += sum * sum;
            }
            half_energy[entry] = energy * M::F32::splat(0.5);
        }
        let mut target = *self.target;
        let mut index = [M::I32::splat(0); PARTS_MAX];
        let mut excitation = [zero; SUBFRAME];
        for part in 0..SUBFRAME / WIDTH {
            let mut wanted = [zero; WIDTH];
            wanted.copy_from_slice(&target[part * WIDTH..][..WIDTH]);
            index[part] = nearest::<M, WIDTH, COUNT>(&filtered, &half_energy, &wanted);
            let gains = pick::<M, WIDTH, COUNT>(self.shapes, &lane_indices::<M>(index[part]));
            excitation[part * WIDTH..][..WIDTH].copy_from_slice(&gains);
            let rest = &mut target[(part + 1) * WIDTH..];
            for (n, x) in rest.iter_mut().enumerate() {
                let mut sum = *x;
                for (gain, response) in gains.iter().zip(self.response[n + 1..][..WIDTH].iter().rev()) {
                    sum -= *gain * *response;
                }
                *x = sum;
            }
        }
        (index, excitation)
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
