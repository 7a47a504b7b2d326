//! Linear prediction by the covariance method, straight to reflection coefficients.

use super::ORDER;

/// A pivot smaller than this ends the solution.
const EPSILON: f32 = 1.0e-10;

/// The reflection coefficients of a signal of at least two times [`ORDER`] samples.
pub fn reflection_coefficients(signal: &[f32]) -> [f32; ORDER] {
    let (phi, psi) = covariance(signal);
    invert(&phi, &psi)
}

/// The covariance matrix (its lower half) and vector.
fn covariance(signal: &[f32]) -> ([[f32; ORDER]; ORDER], [f32; ORDER]) {
    let mut phi = [[0.0f32; ORDER]; ORDER];
    let mut psi = [0.0f32; ORDER];
    let end = signal.len();
    for (row, out) in phi.iter_mut().enumerate() {
        for at in ORDER..end {
            out[0] += signal[at - 1] * signal[at - 1 - row];
        }
    }
    for at in ORDER..end {
        psi[ORDER - 1] += signal[at] * signal[at - ORDER];
    }
    for row in 1..ORDER {
        for column in 1..=row {
            phi[row][column] = phi[row - 1][column - 1] - signal[end - 1 - row] * signal[end - 1 - column]
                + signal[ORDER - 1 - row] * signal[ORDER - 1 - column];
        }
    }
    for column in 0..ORDER - 1 {
        psi[column] = phi[column + 1][0] - signal[ORDER - 1] * signal[ORDER - 2 - column]
            + signal[end - 1] * signal[end - 2 - column];
    }
    (phi, psi)
}

/// Solves by Cholesky's decomposition; the steps in between are the reflection coefficients.
fn invert(phi: &[[f32; ORDER]; ORDER], psi: &[f32; ORDER]) -> [f32; ORDER] {
    let mut v = [[0.0f32; ORDER]; ORDER];
    let mut rc = [0.0f32; ORDER];
    for j in 0..ORDER {
        for i in j..ORDER {
            v[i][j] = phi[i][j];
        }
        for k in 0..j {
            let factor = v[j][k] * v[k][k];
            for row in &mut v[j..] {
                row[j] -= row[k] * factor;
            }
        }
        if v[j][j].abs() < EPSILON {
            break;
        }
        let mut c = psi[j];
        for k in 0..j {
            c -= rc[k] * v[j][k];
        }
        v[j][j] = 1.0 / v[j][j];
        rc[j] = (c * v[j][j]).clamp(-0.999, 0.999);
    }
    rc
}
