//! The innovation: what prediction leaves, as shapes from a codebook, each chosen through the filters it will pass.

use crate::SUBFRAME;

/// A shape codebook with one row a sample, so that a search runs along the entries.
pub struct Shapes<const WIDTH: usize, const COUNT: usize>(pub [[f32; COUNT]; WIDTH]);

/// A codebook in 1/32 as floats.
pub const fn rows<const WIDTH: usize, const COUNT: usize>(
    book: &[[i8; WIDTH]; COUNT],
) -> [[f32; WIDTH]; COUNT] {
    let mut rows = [[0.0; WIDTH]; COUNT];
    let mut i = 0;
    while i < COUNT {
        let mut j = 0;
        while j < WIDTH {
            rows[i][j] = 0.03125 * book[i][j] as f32;
            j += 1;
        }
        i += 1;
    }
    rows
}

impl<const WIDTH: usize, const COUNT: usize> Shapes<WIDTH, COUNT> {
    /// Of a codebook in 1/32.
    pub const fn new(book: &[[i8; WIDTH]; COUNT]) -> Self {
        let mut rows = [[0.0; COUNT]; WIDTH];
        let mut i = 0;
        while i < COUNT {
            let mut j = 0;
            while j < WIDTH {
                rows[j][i] = 0.03125 * book[i][j] as f32;
                j += 1;
            }
            i += 1;
        }
        Self(rows)
    }

    /// Quantises `target`: indices into the first elements of `index`, and the excitation before its gain.
    pub fn search(
        &self,
        mut target: [f32; SUBFRAME],
        response: &[f32; SUBFRAME],
        index: &mut [usize],
    ) -> [f32; SUBFRAME] {
        let mut filtered = [[0.0f32; COUNT]; WIDTH];
        let mut half_energy = [0.0f32; COUNT];
        for (j, row) in filtered.iter_mut().enumerate() {
            for k in 0..=j {
                for (sum, shape) in row.iter_mut().zip(&self.0[k]) {
                    *sum += shape * response[j - k];
                }
            }
            for (sum, x) in half_energy.iter_mut().zip(row) {
                *sum += *x * *x;
            }
        }
        for energy in &mut half_energy {
            *energy *= 0.5;
        }
        let mut excitation = [0.0f32; SUBFRAME];
        for (part, index) in index.iter_mut().take(SUBFRAME / WIDTH).enumerate() {
            let (wanted, rest) = target[part * WIDTH..].split_at_mut(WIDTH);
            let mut distance = half_energy;
            for (row, x) in filtered.iter().zip(wanted) {
                for (distance, filtered) in distance.iter_mut().zip(row) {
                    *distance -= *x * filtered;
                }
            }
            let (mut best, mut best_distance) = (0, distance[0]);
            for (i, distance) in distance.iter().enumerate() {
                if *distance < best_distance {
                    (best, best_distance) = (i, *distance);
                }
            }
            *index = best;
            for (m, shape) in self.0.iter().enumerate() {
                let gain = shape[best];
                excitation[part * WIDTH + m] = gain;
                for (x, response) in rest.iter_mut().zip(&response[WIDTH - m..]) {
                    *x -= gain * response;
                }
            }
        }
        excitation
    }
}
