//! Sums of linear frames, and how loud one is. Frames of one bridge share a rate and a length.
//!
//! The functions here are the plain ones, a sample after the other; [`wide`] has the same in SIMD lanes, with the same
//! results, for rooms with many members.

pub mod wide;

/// Mean absolute amplitude below which a 20 ms frame counts as silence; what `dsp.conf` calls `silencethreshold`.
pub const SILENCE_THRESHOLD: u16 = 256;

/// Adds a frame to the sum of all. 65,536 full-scale frames fit before an `i32` could wrap.
pub fn accumulate(sum: &mut [i32], frame: &[i16]) {
    for (total, &sample) in sum.iter_mut().zip(frame) {
        *total += i32::from(sample);
    }
}

/// The sum of all, limited to 16 bits: for listeners who do not speak.
pub fn limit(sum: &[i32], out: &mut [i16]) {
    for (slot, &total) in out.iter_mut().zip(sum) {
        *slot = clamp(total);
    }
}

/// The sum of all without one's own frame, limited to 16 bits: what each speaker hears.
pub fn limit_minus_self(sum: &[i32], own: &[i16], out: &mut [i16]) {
    for ((slot, &total), &sample) in out.iter_mut().zip(sum).zip(own) {
        *slot = clamp(total - i32::from(sample));
    }
}

/// Adds a frame to another in place, saturating: a whisper or a beep over a stream.
pub fn add(out: &mut [i16], frame: &[i16]) {
    for (slot, &sample) in out.iter_mut().zip(frame) {
        *slot = slot.saturating_add(sample);
    }
}

/// Mean absolute amplitude, 0 to 32768; compared with [`SILENCE_THRESHOLD`]. 0 for an empty frame.
pub fn mean_abs(frame: &[i16]) -> u16 {
    let sum: u64 = frame.iter().map(|s| u64::from(s.unsigned_abs())).sum();
    sum.checked_div(frame.len() as u64).unwrap_or(0) as u16
}

fn clamp(total: i32) -> i16 {
    total.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_speakers_hear_the_two_others_and_sums_saturate() {
        let frames = [[100i16, 30_000, -30_000], [20, 30_000, -30_000], [3, 1, 1]];
        let mut sum = [0; 3];
        for frame in &frames {
            accumulate(&mut sum, frame);
        }
        let mut out = [0; 3];
        limit(&sum, &mut out);
        assert_eq!(out, [123, i16::MAX, i16::MIN]);
        limit_minus_self(&sum, &frames[0], &mut out);
        assert_eq!(out, [23, 30_001, -29_999]);
        add(&mut out, &frames[1]);
        assert_eq!(out, [43, i16::MAX, i16::MIN]);
    }

    #[test]
    fn loudness_is_the_mean_absolute_amplitude() {
        for (name, frame, expected) in [
            ("nothing", &[][..], 0),
            ("hum below the threshold", &[255, -255, 255, -256], 255),
            ("full scale", &[i16::MIN; 160], 32768),
        ] {
            assert_eq!(mean_abs(frame), expected, "{name}");
        }
    }
}
