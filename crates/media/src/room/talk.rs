//! Whether a member talks, how loud it is, and what its gate and gains make of that.

use base::{Gain, MemberSettings};

/// Gain of one, in 4096ths.
const UNITY: i32 = 1 << 12;
/// The automatic gain goes up to 8 (18 dB) and down to a quarter (12 dB), so that nobody's breath becomes a storm.
const GAIN_MAX: i32 = 8 * UNITY;
const GAIN_MIN: i32 = UNITY / 4;
/// It rises by half a dB in 10 ms at most, a seventeenth, which is not heard as pumping; and falls four times as fast.
const RISE: i32 = 17;
const FALL: i32 = 5;
/// How much of the past the measured loudness keeps, in frames: 160 ms of 20, about one syllable.
const SMOOTHING: u32 = 8;

/// What is known of one member's voice.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) talks: bool,
    silent_ms: u32,
    /// Mean absolute amplitude while talking, smoothed; in 16ths.
    loudness: u32,
    /// Peak of the amplitude that fades: who is loudest at present.
    pub(crate) presence: u32,
    /// Automatic gain, in 4096ths.
    gain: i32,
}

impl Default for Talk {
    fn default() -> Self {
        Self { talks: false, silent_ms: u32::MAX, loudness: 0, presence: 0, gain: UNITY }
    }
}

impl Talk {
    /// One frame of `ms` and mean absolute amplitude `level`; tells when talking begins or ends.
    pub(crate) fn frame(&mut self, level: u16, ms: u8, settings: &MemberSettings) -> Option<bool> {
        let before = self.talks;
        let level = u32::from(level);
        if level >= u32::from(settings.talking_threshold.max(1)) {
            self.talks = true;
            self.silent_ms = 0;
            let sixteenths = level * 16;
            self.loudness = match before {
                true => self.loudness - self.loudness / SMOOTHING + sixteenths / SMOOTHING,
                false if self.loudness == 0 => sixteenths,
                false => self.loudness,
            };
        } else {
            self.silent_ms = self.silent_ms.saturating_add(u32::from(ms));
            self.talks &= self.silent_ms < settings.silence_ms;
        }
        self.presence = level.max(self.presence - self.presence.div_ceil(SMOOTHING));
        (self.talks != before).then_some(self.talks)
    }
    /// A frame of a member that is not to be heard: it does not talk.
    pub(crate) fn mute(&mut self) -> Option<bool> {
        self.silent_ms = u32::MAX;
        self.presence -= self.presence.div_ceil(SMOOTHING);
        std::mem::take(&mut self.talks).then_some(false)
    }
    /// Makes a frame as loud as the settings say.
    pub(crate) fn shape(&mut self, pcm: &mut [i16], settings: &MemberSettings) {
        amplify(pcm, settings.talking);
        if settings.level == 0 {
            self.gain = UNITY;
            return;
        }
        let from = self.gain;
        // Between words the gain stays where it is: a pause must not bring the room's hum up.
        if self.silent_ms == 0 && self.loudness > 0 {
            let wanted = i64::from(settings.level) * 16 * i64::from(UNITY) / i64::from(self.loudness);
            let wanted = wanted.clamp(i64::from(GAIN_MIN), i64::from(GAIN_MAX)) as i32;
            self.gain = wanted.clamp(from - (from / FALL).max(1), from + (from / RISE).max(1));
        }
        if (from, self.gain) != (UNITY, UNITY) {
            slide(pcm, from, self.gain);
        }
    }
}

/// Multiplies by a constant, saturating.
pub(crate) fn amplify(pcm: &mut [i16], gain: Gain) {
    if gain == Gain::UNITY {
        return;
    }
    for sample in pcm {
        *sample = saturate((i32::from(*sample) * i32::from(gain.0)) >> 8);
    }
}

/// Multiplies by a gain that goes evenly from one to another, so that no step is heard.
fn slide(pcm: &mut [i16], from: i32, to: i32) {
    let length = pcm.len().max(1) as i32;
    for (sample, n) in pcm.iter_mut().zip(1..) {
        let gain = from + (to - from) * n / length;
        *sample = saturate((i32::from(*sample) * gain) >> 12);
    }
}

fn saturate(sample: i32) -> i16 {
    sample.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> MemberSettings {
        MemberSettings { silence_ms: 100, ..MemberSettings::default() }
    }

    #[test]
    fn talking_begins_with_the_first_loud_frame_and_ends_after_the_silence_that_was_asked_for() {
        let mut talk = Talk::default();
        let edges: Vec<_> = [10, 159, 160, 500, 3, 3, 400, 3, 3, 3, 3, 3, 3]
            .iter()
            .map(|&level| talk.frame(level, 20, &settings()))
            .collect();
        let mut expected = vec![None; 13];
        expected[2] = Some(true);
        expected[11] = Some(false); // the fifth silent frame since the last loud one
        assert_eq!(edges, expected);
    }

    /// A square wave of this amplitude, whose mean absolute amplitude is the same.
    fn square(amplitude: i16) -> Vec<i16> {
        (0..160).map(|n| if n % 20 < 10 { amplitude } else { -amplitude }).collect()
    }

    fn after(amplitude: i16, level: u16, frames: usize) -> Vec<i16> {
        let settings = MemberSettings { level, ..settings() };
        let mut talk = Talk::default();
        let mut pcm = Vec::new();
        for _ in 0..frames {
            pcm = square(amplitude);
            talk.frame(amplitude.unsigned_abs(), 20, &settings);
            talk.shape(&mut pcm, &settings);
        }
        pcm
    }

    #[test]
    fn automatic_gain_brings_voices_to_the_level_within_its_bounds_and_slowly() {
        for (name, amplitude, level, expected) in [
            ("a quiet one comes up", 1000, 4000, 4000..=4010),
            ("a loud one goes down", 12_000, 4000, 3980..=4010),
            ("never by more than 18 dB", 200, 8000, 1590..=1610),
            ("never down by more than 12 dB", 32_000, 1000, 7990..=8010),
            ("off", 1000, 0, 1000..=1000),
        ] {
            let pcm = after(amplitude, level, 200);
            assert!(expected.contains(&pcm[159].abs()), "{name}: {}", pcm[159]);
        }
        let one = after(1000, 4000, 1)[159];
        assert!((1000..1062).contains(&one.abs()), "half a dB in the first frame, not more: {one}");
    }

    #[test]
    fn a_pause_does_not_raise_the_gain() {
        let settings = MemberSettings { level: 8000, ..settings() };
        let mut talk = Talk::default();
        talk.frame(1000, 20, &settings);
        let gain = talk.gain;
        for _ in 0..100 {
            talk.frame(50, 20, &settings);
            talk.shape(&mut square(50), &settings);
        }
        assert_eq!(talk.gain, gain);
    }

    #[test]
    fn gains_saturate() {
        let mut pcm = [20_000, -20_000, 100];
        amplify(&mut pcm, Gain::of_step(2));
        assert_eq!(pcm, [i16::MAX, i16::MIN, 200]);
        amplify(&mut pcm, Gain::of_step(-4));
        assert_eq!(pcm, [8191, -8192, 50]);
    }
}
