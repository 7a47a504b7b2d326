//! The adaptive codebook: vectors cut from what was decoded, plain, filtered, and repeated (RFC 3951 sections 3.6.3 and 4.4).
//!
//! A codebook of a memory of `m` samples for blocks of `n` has `m - n + 1` vectors cut at each lag; for blocks of 40 samples
//! another 20 of lags shorter than the block, repeated with a cross-fade; then the same of the filtered memory.

use crate::bits::Choice;
use crate::tables::{EXPANSION_FILTER, GAINS_3, GAINS_4, GAINS_5};
use crate::{STAGES, SUB_BLOCK};

/// Samples of memory for a sub-block.
pub(crate) const MEMORY: usize = 147;
/// Samples of memory for the extra block beside the start state.
pub(crate) const EXTRA_MEMORY: usize = 85;
/// Vectors of lags shorter than a sub-block.
pub(crate) const AUGMENTED: usize = SUB_BLOCK / 2;

/// Samples over which a repetition fades into the next.
pub(crate) const FADE: usize = 5;

/// Vectors of the unfiltered half of the codebook.
pub(crate) const fn half_size(memory: usize, block: usize) -> usize {
    memory - block + 1 + if block == SUB_BLOCK { AUGMENTED } else { 0 }
}

/// The memory through the expansion filter (section 3.6.3.2), with zeros around it; sample `at` of the result.
#[inline(always)]
pub(crate) fn expanded(memory: &[f32], at: usize) -> f32 {
    let mut sum = 0.0;
    // Three samples before, five from here on.
    match at.checked_sub(3).and_then(|first| memory[first..].first_chunk::<8>()) {
        Some(around) => {
            for (&sample, &coefficient) in around.iter().zip(&EXPANSION_FILTER) {
                sum += sample * coefficient;
            }
        }
        None => {
            for (tap, &coefficient) in EXPANSION_FILTER.iter().enumerate() {
                let sample = (at + tap).checked_sub(3).and_then(|n| memory.get(n)).unwrap_or(&0.0);
                sum += sample * coefficient;
            }
        }
    }
    sum
}

/// The last `lag` samples of `section`, then the same again, as far as `out` goes (section 3.6.3.3).
///
/// `twice` is the doubled lag: in an impossible index of a payload it is odd. The five samples before the seam fade.
pub(crate) fn augment(section: &[f32], twice: usize, out: &mut [f32]) {
    let lag = twice / 2;
    let (late, early) = (&section[section.len() - lag..], &section[section.len() - twice..]);
    let (first, again) = out.split_at_mut(lag);
    first.copy_from_slice(late);
    again.copy_from_slice(&early[lag..][..again.len()]);
    let mut share = 0.0;
    for j in lag - FADE..lag {
        first[j] = (1.0 - share) * late[j] + share * early[j];
        share += 0.2;
    }
}

/// The codebook's vector `index` for a block as long as `out` (section 4.4).
///
/// Every index of 8 bits is defined for a memory of 147 and blocks of 40 samples, every index of 7 bits for 85 and 22 or 23.
pub(crate) fn vector(memory: &[f32], index: u8, out: &mut [f32]) {
    let half = half_size(memory.len(), out.len());
    let plain = memory.len() - out.len() + 1;
    let (filtered, position) = match usize::from(index) {
        index if index < half => (false, index),
        index => (true, index - half),
    };
    if position < plain {
        let first = memory.len() - out.len() - position;
        if filtered {
            (first..).zip(out).for_each(|(at, out)| *out = expanded(memory, at));
        } else {
            out.copy_from_slice(&memory[first..][..out.len()]);
        }
        return;
    }
    let twice = (2 * (position - plain) + out.len()).min(memory.len());
    if filtered {
        // Twice the longest short lag; what lies further back is not looked at.
        let mut section = [0.0; 2 * SUB_BLOCK];
        let section = &mut section[..twice];
        (memory.len() - twice..).zip(&mut *section).for_each(|(at, out)| *out = expanded(memory, at));
        augment(section, twice, out);
    } else {
        augment(memory, twice, out);
    }
}

/// The smallest scale of a gain.
pub(crate) const GAIN_SCALE_MIN: f32 = 0.1;

/// Gain that an index stands for, relative to the gain of the stage before (section 3.6.4.2).
pub(crate) fn dequantise_gain(stage: usize, index: u8, before: f32) -> f32 {
    let index = usize::from(index);
    let level = match stage {
        0 => GAINS_5[index % GAINS_5.len()],
        1 => GAINS_4[index % GAINS_4.len()],
        _ => GAINS_3[index % GAINS_3.len()],
    };
    level * before.abs().max(GAIN_SCALE_MIN)
}

/// The block that a choice stands for (section 4.4).
pub(crate) fn construct(memory: &[f32], choice: &Choice, out: &mut [f32]) {
    let mut vectors = [0.0; SUB_BLOCK];
    let vectors = &mut vectors[..out.len()];
    let mut gain = 1.0;
    for stage in 0..STAGES {
        gain = dequantise_gain(stage, choice.gain[stage], gain);
        vector(memory, choice.index[stage], vectors);
        for (out, &sample) in out.iter_mut().zip(&*vectors) {
            let scaled = gain * sample;
            *out = if stage == 0 { scaled } else { *out + scaled };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3951_3_6_3_every_index_of_a_payload_has_a_vector() {
        let memory: Vec<f32> = (0..MEMORY).map(|n| (n as f32).sin()).collect();
        for (memory, block, last) in [
            (&memory[..], SUB_BLOCK, 255),
            (&memory[..EXTRA_MEMORY], 22, 127),
            (&memory[..EXTRA_MEMORY], 23, 127),
        ] {
            for index in 0..=last {
                let mut out = vec![9.0; block];
                vector(memory, index, &mut out);
                assert!(out.iter().all(|sample| sample.abs() < 3.0), "{block} {index}: {out:?}");
            }
        }
    }

    #[test]
    fn rfc3951_3_6_3_3_a_short_lag_repeats_its_samples() {
        let memory: Vec<f32> = (0..MEMORY).map(|n| (n % 20) as f32).collect();
        let mut out = [0.0; SUB_BLOCK];
        vector(&memory, 108, &mut out);
        assert_eq!(out, std::array::from_fn(|n| ((MEMORY + n) % 20) as f32));
    }
}
