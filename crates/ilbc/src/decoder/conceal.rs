//! Concealment of lost frames (RFC 3951 §4.5): the last residual is repeated at its pitch, mixed with noise made of
//! itself, and the last filter is kept.
//!
//! The order of every float operation is the reference's, and so is its use of one gain for all losses longer than
//! 40 ms: the others that its text names are never reached.

use super::enhancer::BLOCK;

/// What concealment needs to know of the frames before.
#[derive(Debug, Clone)]
pub(crate) struct Concealer {
    /// State of the noise generator, 31 bits.
    seed: u32,
    /// Frames lost in a row.
    lost: u32,
    /// Pitch lag of a loss that goes on.
    lag: usize,
    /// How periodic the residual was before that loss, 0 to 1; not a number when it was silent.
    periodicity: f32,
}

/// The noise generator begins with this.
const SEED: u32 = 777;
/// Lags on each side of the estimate that are tried.
const LAG_SLOP: usize = 3;
/// Samples at the end of a frame that are compared with those a lag before.
const COMPARED: usize = 60;
/// Losses longer than this fade.
const FULL_SAMPLES: u32 = 320;
/// Lags shorter than this are doubled, so that one cycle is not heard again and again.
const SHORT_LAG: usize = 80;
/// Below this mean energy only noise is used.
const QUIET: f32 = 900.0;
/// The reference's `pitchfact` ramps between these levels of the root of periodicity.
const NOISE_ONLY: f32 = 0.4;
const PITCH_ONLY: f32 = 0.7;

impl Concealer {
    pub fn new() -> Self {
        Self { seed: SEED, lost: 0, lag: 120, periodicity: 0.0 }
    }

    /// A frame came.
    pub fn received(&mut self) {
        self.lost = 0;
    }

    /// Whether the last frame was lost.
    pub fn is_lost(&self) -> bool {
        self.lost > 0
    }

    /// Makes up a frame of residual from the one before, which must be as long. `estimate` is the pitch lag to search
    /// around when this is the first frame lost.
    pub fn conceal(&mut self, before: &[f32], estimate: usize, residual: &mut [f32]) {
        let length = before.len();
        if self.lost == 0 {
            (self.lag, self.periodicity) = best_match(before, estimate);
        }
        self.lost = self.lost.saturating_add(1).min(u32::from(u8::MAX));
        let gain = if self.lost * length as u32 > FULL_SAMPLES { 0.9 } else { 1.0 };
        let root = self.periodicity.sqrt();
        let pitch = if root > PITCH_ONLY {
            1.0
        } else if root > NOISE_ONLY {
            (root - NOISE_ONLY) / (PITCH_ONLY - NOISE_ONLY)
        } else {
            0.0
        };
        let lag = if self.lag < SHORT_LAG { 2 * self.lag } else { self.lag };

        let mut noise = [0.0; 3 * BLOCK];
        let noise = &mut noise[..length];
        let mut energy = 0.0;
        for index in 0..length {
            noise[index] = earlier(before, noise, index, self.noise_lag());
            let repeated = earlier(before, residual, index, lag);
            let mixed = pitch * repeated + (1.0 - pitch) * noise[index];
            residual[index] = match index / BLOCK {
                0 => gain * mixed,
                1 => 0.95 * gain * mixed,
                _ => 0.9 * gain * mixed,
            };
            energy += residual[index] * residual[index];
        }
        if energy / (length as f32) < QUIET {
            residual.copy_from_slice(noise);
        }
    }

    /// The next lag of the noise: 50 to 119 samples.
    fn noise_lag(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(69069).wrapping_add(1) & 0x7fff_ffff;
        50 + (self.seed % 70) as usize
    }
}

/// The sample `lag` before `index` of a frame that is being made, or of the frame before it.
fn earlier(before: &[f32], made: &[f32], index: usize, lag: usize) -> f32 {
    match index.checked_sub(lag) {
        Some(at) => made[at],
        None => before[before.len() + index - lag],
    }
}

/// The lag near `estimate` at which the end of the frame resembles itself most, and how well it does.
fn best_match(frame: &[f32], estimate: usize) -> (usize, f32) {
    // After a mended loss the estimate is twice the lag. Where that points before the frame the reference reads what
    // is not its own; the lag itself is meant.
    let centre = if estimate - LAG_SLOP > frame.len() { estimate / 2 } else { estimate };
    let first = centre - LAG_SLOP;
    let (mut best, (mut greatest, mut periodicity)) = (first, likeness(frame, first));
    for lag in first + 1..=centre + LAG_SLOP {
        let (measure, per) = likeness(frame, lag);
        if measure > greatest {
            (best, greatest, periodicity) = (lag, measure, per);
        }
    }
    (best, periodicity)
}

/// Energy that the end of a frame has in common with what is `lag` before it, and their correlation coefficient.
fn likeness(frame: &[f32], lag: usize) -> (f32, f32) {
    let compared = COMPARED.min(frame.len().saturating_sub(lag));
    let target = &frame[frame.len() - compared..];
    let other = frame.len().checked_sub(compared + lag).map_or(&[][..], |start| &frame[start..]);
    let (mut cross, mut other_energy, mut energy) = (0.0f32, 0.0f32, 0.0f32);
    for (a, b) in target.iter().zip(other) {
        cross += a * b;
        other_energy += b * b;
        energy += a * a;
    }
    if other_energy > 0.0 {
        (cross * cross / other_energy, cross.abs() / (other_energy.sqrt() * energy.sqrt()))
    } else {
        (0.0, 0.0)
    }
}
