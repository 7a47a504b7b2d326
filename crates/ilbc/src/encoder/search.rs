//! The codebook search for one block: three stages, each on what the one before left (RFC 3951 section 3.6.4).

use std::ops::Range;

use super::scalar::{ENERGY_MIN, energy};
use crate::bits::Choice;
use crate::codebook::{AUGMENTED, FADE, GAIN_SCALE_MIN, MEMORY, augment, expanded, half_size};
use crate::filters::all_pole;
use crate::tables::{GAINS_3, GAINS_4, GAINS_5};
use crate::{Lpc, ORDER, STAGES, SUB_BLOCK};

/// Lags searched at each stage for the extra block, the first sub-block, and those behind it.
pub(crate) const SEARCH_EXTRA: [usize; STAGES] = [58; 3];
pub(crate) const SEARCH_FIRST: [usize; STAGES] = [108, 44, 44];
pub(crate) const SEARCH_LATER: [usize; STAGES] = [108; 3];

/// Lags searched in the expanded half of the codebook, around the best of the plain half.
pub(crate) const WINDOW: usize = 34;
/// Gains as large as this are not considered.
pub(crate) const GAIN_MAX: f32 = 1.3;
/// The measure before anything is found, and of vectors whose gain would be negative in the first stage.
pub(crate) const MEASURE_MIN: f32 = -10_000_000.0;
/// Added to an energy before it divides.
pub(crate) const ENERGY_BIAS: f32 = ENERGY_MIN;

/// What of the expanded half is searched: lags, and repeated vectors by their lag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub lags: Range<usize>,
    pub repeated: Range<usize>,
}

impl Window {
    /// Around the best index of the plain half, of which `range` lags were searched; a block of 40 samples has repeated
    /// vectors too.
    pub(crate) fn around(best: usize, range: usize, plain: usize, repeats: bool) -> Self {
        let first = best.saturating_sub(WINDOW / 2);
        let short = (WINDOW / 2).saturating_sub(best);
        let last = best + WINDOW / 2;
        let shifted = range.saturating_sub(WINDOW)..range;
        let none = SUB_BLOCK..SUB_BLOCK;
        match (repeats, best < plain) {
            // What the window lacks below the first lag is taken from the end of the repeated vectors.
            (true, _) if short > 0 => Self { lags: 0..last, repeated: SUB_BLOCK - short..SUB_BLOCK },
            (true, true) if last > range => Self { lags: shifted, repeated: none },
            (true, true) => Self { lags: first..last, repeated: none },
            (true, false) => {
                let repeated = AUGMENTED + first.saturating_sub(plain)..SUB_BLOCK;
                Self { lags: 0..WINDOW - repeated.len(), repeated }
            }
            (false, _) if short > 0 => Self { lags: 0..WINDOW, repeated: none },
            (false, _) if last > range => Self { lags: shifted, repeated: none },
            (false, _) => Self { lags: first..last, repeated: none },
        }
    }
}

/// The best vector of a stage so far.
struct Best {
    first_stage: bool,
    index: usize,
    measure: f32,
    gain: f32,
}

impl Best {
    fn offer(&mut self, index: usize, cross: f32, inverse: f32) {
        if self.first_stage && cross <= 0.0 {
            return;
        }
        let measure = cross * cross * inverse;
        let gain = cross * inverse;
        if measure > self.measure && gain.abs() < GAIN_MAX {
            (self.index, self.measure, self.gain) = (index, measure, gain);
        }
    }
}

/// One half of the codebook: the weighted memory or its expansion, with the inverse energies of the vectors of each lag.
struct Half {
    samples: [f32; MEMORY],
    length: usize,
    inverse: [f32; MEMORY - SUB_BLOCK + 1],
}

impl Half {
    /// Inverse energies of the first `range` lags: each energy from the one before (section 3.6.4.1).
    fn measure(&mut self, block: usize, range: usize) {
        let samples = &self.samples[..self.length];
        let mut sum = energy(&samples[self.length - block..]);
        self.inverse[0] = inverse(sum);
        for lag in 1..range {
            let (entering, leaving) = (samples[self.length - block - lag], samples[self.length - lag]);
            sum = sum + entering * entering - leaving * leaving;
            self.inverse[lag] = inverse(sum);
        }
    }

    fn search(&self, target: &[f32], lags: Range<usize>, first_index: usize, best: &mut Best) {
        for lag in lags {
            let vector = &self.samples[self.length - target.len() - lag..][..target.len()];
            let mut cross = 0.0;
            for (&target, &sample) in target.iter().zip(vector) {
                cross += target * sample;
            }
            best.offer(first_index + lag, cross, self.inverse[lag]);
        }
    }

    /// Searches the repeated vectors of lags in `lags`; the energy of their first part is summed from the first lag on.
    fn search_repeated(&self, target: &[f32], lags: Range<usize>, first_index: usize, best: &mut Best) {
        let samples = &self.samples[..self.length];
        let mut running = energy(&samples[self.length - lags.start + 1..][..lags.start - FADE]);
        for lag in lags {
            let first = samples[self.length - lag];
            running += first * first;
            let mut vector = [0.0; SUB_BLOCK];
            augment(samples, 2 * lag, &mut vector);
            let mut sum = running;
            for &sample in &vector[lag + 1 - FADE..] {
                sum += sample * sample;
            }
            let mut cross = 0.0;
            for (&target, &sample) in target.iter().zip(&vector) {
                cross += target * sample;
            }
            best.offer(first_index + lag, cross, inverse(sum));
        }
    }
}

pub(crate) fn inverse(energy: f32) -> f32 {
    if energy > 0.0 { 1.0 / (energy + ENERGY_BIAS) } else { 0.0 }
}

/// Chooses vectors and gains for a block of the residual, from `memory` and heard through the weighting filter.
///
/// `residual` has 40 samples with a memory of 147, or 22 or 23 with one of 85; `ranges` are the lags searched at each stage.
pub(crate) fn search(memory: &[f32], residual: &[f32], weighting: &Lpc, ranges: [usize; STAGES]) -> Choice {
    let (length, block) = (memory.len(), residual.len());
    let (plain, half) = (length - block + 1, half_size(length, block));
    let repeats = block == SUB_BLOCK;

    let mut weighted = [0.0; ORDER + MEMORY + SUB_BLOCK];
    let weighted = &mut weighted[..ORDER + length + block];
    weighted[ORDER..][..length].copy_from_slice(memory);
    weighted[ORDER + length..].copy_from_slice(residual);
    all_pole(weighted, weighting);
    let (past, target) = weighted[ORDER..].split_at_mut(length);

    let mut low = Half { samples: [0.0; MEMORY], length, inverse: [0.0; _] };
    let mut high = Half { samples: [0.0; MEMORY], length, inverse: [0.0; _] };
    low.samples[..length].copy_from_slice(past);
    (0..length).for_each(|at| high.samples[at] = expanded(past, at));
    low.measure(block, ranges[0]);
    high.measure(block, ranges[0]);

    let mut choice = Choice::default();
    let target_energy = energy(target);
    let mut found = [0.0; SUB_BLOCK];
    let mut gain_before = 1.0;
    let mut first_gain = 0.0;
    for (stage, range) in ranges.into_iter().enumerate() {
        let mut best = Best { first_stage: stage == 0, index: 0, measure: MEASURE_MIN, gain: 0.0 };
        low.search(target, 0..range, 0, &mut best);
        if repeats {
            low.search_repeated(target, AUGMENTED..SUB_BLOCK, half - SUB_BLOCK, &mut best);
        }
        let window = Window::around(best.index, range, plain, repeats);
        high.search(target, window.lags, half, &mut best);
        if !window.repeated.is_empty() {
            high.search_repeated(target, window.repeated, 2 * half - SUB_BLOCK, &mut best);
        }

        let (index, gain) = quantise_gain(stage, best.gain, gain_before);
        choice.index[stage] = best.index as u8;
        choice.gain[stage] = index;
        let (section, position) =
            if best.index < half { (&low, best.index) } else { (&high, best.index - half) };
        let section = &section.samples[..length];
        let mut repeated = [0.0; SUB_BLOCK];
        let vector = if position < plain {
            &section[length - block - position..][..block]
        } else {
            augment(section, 2 * (position - plain + AUGMENTED), &mut repeated);
            &repeated
        };
        for ((target, found), &sample) in target.iter_mut().zip(&mut found).zip(vector) {
            *found += gain * sample;
            *target -= gain * sample;
        }
        if stage == 0 {
            first_gain = gain;
        }
        gain_before = gain.abs();
    }
    choice.gain[0] = match_energy(choice.gain[0], first_gain, energy(&found[..block]), target_energy);
    choice
}

/// Index and value of the nearest gain, which is relative to that of the stage before (section 3.6.4.2).
pub(super) fn quantise_gain(stage: usize, gain: f32, before: f32) -> (u8, f32) {
    let scale = before.max(GAIN_SCALE_MIN);
    let (gain, table) = match stage {
        0 => (gain.clamp(0.0, GAIN_MAX), &GAINS_5[..]),
        1 => (gain, &GAINS_4[..]),
        _ => (gain, &GAINS_3[..]),
    };
    let (mut best, mut least) = (0, -MEASURE_MIN);
    for (index, level) in table.iter().enumerate() {
        let error = gain - scale * level;
        if error * error < least {
            (best, least) = (index, error * error);
        }
    }
    (best as u8, scale * table[best])
}

/// Raises the first gain so that what was found has the energy of what was wanted, at most twofold (section 3.7).
pub(super) fn match_energy(index: u8, gain: f32, found: f32, wanted: f32) -> u8 {
    let mut best = usize::from(index);
    for (candidate, level) in GAINS_5.iter().enumerate().skip(best) {
        if found * level * level < wanted * gain * gain && GAINS_5[best] < 2.0 * gain {
            best = candidate;
        }
    }
    best as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3951_3_6_4_1_the_window_has_34_vectors_around_the_best_lag() {
        for (name, best, range, repeats, lags, repeated) in [
            ("inside", 50, 108, true, 33..67, 40..40),
            ("at the end", 107, 108, true, 74..108, 40..40),
            ("shorter range", 40, 44, true, 10..44, 40..40),
            ("first lag", 0, 108, true, 0..17, 23..40),
            ("near the first lag", 16, 108, true, 0..33, 39..40),
            ("first repeated", 108, 108, true, 0..14, 20..40),
            ("last repeated", 127, 108, true, 0..16, 22..40),
            ("extra block, first lag", 0, 58, false, 0..34, 40..40),
            ("extra block, inside", 30, 58, false, 13..47, 40..40),
            ("extra block, at the end", 57, 58, false, 24..58, 40..40),
        ] {
            let plain = if repeats { 108 } else { 63 };
            let window = Window::around(best, range, plain, repeats);
            assert_eq!((window.lags, window.repeated), (lags, repeated), "{name}");
        }
    }
}
