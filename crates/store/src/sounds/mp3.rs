//! MP3: files of music, brought to what the rest of the program plays.

use nanomp3::{Channels, SliceReader};

/// Samples of the longest piece: as long as any other sound may be, at 48 kHz.
const SAMPLES_MAX: usize = 52 * 60 * 48_000;
/// What is decoded at once.
const CHUNK: usize = 16 * 1024;

/// The extension of its files.
pub(super) const EXTENSION: &str = "mp3";

/// A file as mono WAVE of 16 bits; `Err` says why not.
pub(super) fn to_wave(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader = SliceReader::<i16>::new(bytes);
    let channels = match reader.channels() {
        Some(Channels::Mono) => 1,
        Some(Channels::Stereo) => 2,
        None => return Err("there is no sound of MPEG in it".to_owned()),
    };
    let mut samples: Vec<i16> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    // What follows a fault in the middle is lost, as in other players.
    while let Ok(count @ 1..) = reader.read(&mut chunk) {
        let heard = chunk.get(..count).unwrap_or_default();
        // The mean of both sides: neither is lost, and none is too loud.
        samples.extend(heard.chunks_exact(channels).map(|frame| {
            let sum: i32 = frame.iter().map(|sample| i32::from(*sample)).sum();
            i16::try_from(sum / frame.len().max(1) as i32).unwrap_or_default()
        }));
        if samples.len() > SAMPLES_MAX {
            return Err("it is longer than 52 minutes: cut it into pieces".to_owned());
        }
    }
    if samples.is_empty() {
        return Err("there is no sound of MPEG in it".to_owned());
    }
    super::speech::wave(reader.sample_rate(), &samples)
        .and_then(super::speech::suited)
        .ok_or_else(|| format!("its rate of {} Hz is none that is played", reader.sample_rate()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FormatId;

    #[test]
    fn a_tone_of_880_hz_is_heard_at_its_pitch_and_level_from_both_sides_and_at_any_rate() {
        for (name, file) in [
            ("stereo at 44.1 kHz", &include_bytes!("../../tests/sounds/tone-stereo.mp3")[..]),
            ("mono at 22.05 kHz", include_bytes!("../../tests/sounds/tone-22050.mp3")),
        ] {
            let wave = to_wave(file).unwrap();
            let clip = codec::SoundFile::parse("wav", &wave).unwrap().to_clip(FormatId::SLIN);
            let samples: Vec<i16> =
                clip.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
            assert!((15_000..17_500).contains(&samples.len()), "{name}: {}", samples.len());
            let second = &samples[4000..12_000];
            let crossings = second.windows(2).filter(|pair| (pair[0] < 0) != (pair[1] < 0)).count();
            assert!((1750..=1770).contains(&crossings), "{name}: {crossings}");
            let loudest = second.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
            assert!((7000..9000).contains(&loudest), "{name}: {loudest}");
        }
    }

    #[test]
    fn what_is_no_mp3_is_said_and_nothing_makes_it_panic() {
        assert!(to_wave(b"").is_err() && to_wave(&[0; 5000]).is_err());
        let file = include_bytes!("../../tests/sounds/tone-22050.mp3");
        let mut random = base::Random::new(7);
        for _ in 0..30 {
            let mut broken = file.to_vec();
            for _ in 0..50 {
                let at = (random.word() as usize) % broken.len();
                broken[at] = random.word() as u8;
            }
            broken.truncate((random.word() as usize) % broken.len());
            let _ = to_wave(&broken);
        }
    }
}
