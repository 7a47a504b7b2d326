//! How loud one side of a stream is made: by a constant, and by an automatic gain after it.

use base::{Loudness, MemberSettings, SampleRate};

use crate::room::Talk;

/// Mean absolute amplitude from which on the automatic gain takes sound for talking.
const TALKING: u16 = 160;

/// What makes one side louder or quieter.
pub(crate) struct Shaper {
    settings: MemberSettings,
    talk: Talk,
}

impl Shaper {
    /// Goes on as `before` did with what is wanted from here on; `None` when nothing is.
    pub(crate) fn renewed(before: Option<Self>, wanted: Loudness) -> Option<Self> {
        let talk = before.map(|before| before.talk).unwrap_or_default();
        let Loudness { gain: talking, level } = wanted;
        let settings =
            MemberSettings { talking, level, talking_threshold: TALKING, ..MemberSettings::default() };
        (wanted != Loudness::PLAIN).then_some(Self { settings, talk })
    }
    /// Makes one frame as loud as is wanted.
    pub(crate) fn shape(&mut self, frame: &mut [i16], rate: SampleRate) {
        let Self { settings, talk } = self;
        if settings.level > 0 {
            let sum: u64 = frame.iter().map(|sample| u64::from(sample.unsigned_abs())).sum();
            let mean = sum / frame.len().max(1) as u64 * u64::from(settings.talking.0) / 256;
            let ms = frame.len() * 1000 / (rate.0 as usize).max(1);
            let (mean, ms) = (u16::try_from(mean).unwrap_or(u16::MAX), u8::try_from(ms).unwrap_or(u8::MAX));
            talk.frame(mean, ms, settings);
        }
        talk.shape(frame, settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Gain;

    fn mean(frame: &[i16]) -> u64 {
        frame.iter().map(|sample| u64::from(sample.unsigned_abs())).sum::<u64>() / frame.len() as u64
    }

    #[test]
    fn a_constant_multiplies_at_once_and_an_automatic_gain_comes_to_its_level_and_stays_there() {
        let narrow = SampleRate(8000);
        let tone = |level: i16| (0..160).map(|n| if n % 2 == 0 { level } else { -level }).collect::<Vec<_>>();
        for (name, wanted, first, last) in [
            ("three times", Loudness { gain: Gain::of_step(3), level: 0 }, 3000, 3000),
            ("half", Loudness { gain: Gain::of_step(-2), level: 0 }, 500, 500),
            ("saturates", Loudness { gain: Gain::of_step(100), level: 0 }, 32_767, 32_767),
            ("to 4000", Loudness { gain: Gain::UNITY, level: 4000 }, 1029, 4000),
            ("to 500", Loudness { gain: Gain::UNITY, level: 500 }, 900, 500),
            ("to 4000 of what is doubled", Loudness { gain: Gain::of_step(2), level: 4000 }, 2058, 4000),
            ("no more than eight times", Loudness { gain: Gain::UNITY, level: 20_000 }, 1029, 8000),
        ] {
            let mut shaper = Shaper::renewed(None, wanted).expect(name);
            let mut means = Vec::new();
            for _ in 0..100 {
                let mut frame = tone(1000);
                shaper.shape(&mut frame, narrow);
                means.push(mean(&frame));
            }
            assert!(means[0].abs_diff(first) <= 60, "{name}: {means:?}");
            assert!(means[99].abs_diff(last) <= last / 50 + 1, "{name}: {means:?}");
        }
        assert!(Shaper::renewed(None, Loudness::PLAIN).is_none());
    }

    #[test]
    fn a_pause_brings_no_hum_up() {
        let mut shaper = Shaper::renewed(None, Loudness { gain: Gain::UNITY, level: 4000 }).unwrap();
        for _ in 0..200 {
            let mut hum = vec![100_i16; 160];
            shaper.shape(&mut hum, SampleRate(8000));
            assert_eq!(mean(&hum), 100);
        }
    }
}
