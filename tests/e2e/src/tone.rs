//! Tones made and recognised, G.711 and WAV: enough to tell by its content what was heard.

use std::path::Path;

/// A sine at a quarter of full scale.
pub fn sine(rate: u32, hertz: f64, seconds: f64) -> Vec<i16> {
    let step = core::f64::consts::TAU * hertz / f64::from(rate);
    let count = (f64::from(rate) * seconds) as u32;
    (0..count).map(|at| ((step * f64::from(at)).sin() * 8000.0) as i16).collect()
}

/// Share of the energy that lies at one frequency: 1 for a pure tone, near 0 without it.
pub fn share(samples: &[i16], rate: u32, hertz: f64) -> f64 {
    let energy: f64 = samples.iter().map(|&sample| f64::from(sample).powi(2)).sum();
    if energy == 0.0 {
        return 0.0;
    }
    let turn = 2.0 * (core::f64::consts::TAU * hertz / f64::from(rate)).cos();
    let (mut before, mut last) = (0.0, 0.0);
    for &sample in samples {
        let next = f64::from(sample) + turn * last - before;
        (before, last) = (last, next);
    }
    let power = before * before + last * last - turn * before * last;
    2.0 * power / (energy * samples.len() as f64)
}

/// Which of these tones sound in the last quarter of a second at 8 kHz, though others do too: those whose peaks are above a
/// fortieth of full scale.
pub fn lately(samples: &[i16], tones: &[f64]) -> Vec<f64> {
    let last = &samples[samples.len().saturating_sub(2000)..];
    let energy: f64 = last.iter().map(|&sample| f64::from(sample).powi(2)).sum();
    let peak = |hertz: f64| (2.0 * share(last, 8000, hertz) * energy / last.len() as f64).sqrt();
    tones.iter().copied().filter(|hertz| peak(*hertz) > 800.0).collect()
}

/// Milliseconds of audio in which a tone is by far the loudest thing, in windows of 20 ms.
pub fn heard(samples: &[i16], rate: u32, hertz: f64) -> u32 {
    let window = (rate / 50) as usize;
    let count =
        samples.chunks_exact(window).filter(|part| loud(part) && share(part, rate, hertz) > 0.7).count();
    u32::try_from(count).unwrap_or(u32::MAX) * 20
}

/// Milliseconds of audio that is not silence, in windows of 20 ms.
pub fn sounding(samples: &[i16], rate: u32) -> u32 {
    let count = samples.chunks_exact((rate / 50) as usize).filter(|part| loud(part)).count();
    u32::try_from(count).unwrap_or(u32::MAX) * 20
}

/// Louder than about -44 dB of full scale.
fn loud(part: &[i16]) -> bool {
    let energy: f64 = part.iter().map(|&sample| f64::from(sample).powi(2)).sum();
    energy / part.len() as f64 > 200.0 * 200.0
}

/// 16 bits as a WAV file, the same on every channel.
pub fn wav(rate: u32, channels: u16, samples: &[i16]) -> Vec<u8> {
    let frame = 2 * usize::from(channels);
    let length = u32::try_from(samples.len() * frame).expect("a short file");
    let mut file = Vec::with_capacity(44 + samples.len() * frame);
    file.extend(b"RIFF");
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * 2 * u32::from(channels)).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    for sample in samples {
        file.extend(sample.to_le_bytes().repeat(channels.into()));
    }
    file
}

/// Rate and samples of a WAV file of 16 bits, of its first channel; one that is still being written ends where it ends.
pub fn read_wav(path: &Path) -> Option<(u32, Vec<i16>)> {
    let file = std::fs::read(path).ok()?;
    let channels = usize::from(u16::from_le_bytes(file.get(22..24)?.try_into().ok()?));
    let rate = u32::from_le_bytes(file.get(24..28)?.try_into().ok()?);
    let data = file.windows(4).position(|word| word == b"data")? + 8;
    let samples = file.get(data..)?.as_chunks::<2>().0;
    let first = samples.iter().step_by(channels.max(1));
    Some((rate, first.map(|&sample| i16::from_le_bytes(sample)).collect()))
}

/// One sample to G.711 µ-law.
pub fn to_ulaw(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let level = i32::from(sample).abs().min(32_635) + 132;
    let segment = (level >> 7).ilog2().min(7);
    let step = (level >> (segment + 3)) & 0x0f;
    !(sign | ((segment as u8) << 4) | step as u8)
}

/// One sample from G.711 µ-law.
pub fn from_ulaw(code: u8) -> i16 {
    let code = !code;
    let level = ((i32::from(code & 0x0f) << 3) + 132) << ((code >> 4) & 7);
    let level = i16::try_from(level - 132).unwrap_or(i16::MAX);
    if code & 0x80 == 0 { level } else { -level }
}

/// One sample to G.711 A-law.
pub fn to_alaw(sample: i16) -> u8 {
    let sign = if sample < 0 { 0 } else { 0x80 };
    let level = i32::from(sample).abs().min(32_767);
    let code = if level < 256 {
        level >> 4
    } else {
        let segment = level.ilog2() as i32 - 7;
        (segment << 4) | ((level >> (segment + 3)) & 0x0f)
    };
    (sign | code as u8) ^ 0x55
}

/// One sample from G.711 A-law.
pub fn from_alaw(code: u8) -> i16 {
    let code = code ^ 0x55;
    let (segment, step) = ((code >> 4) & 7, i32::from(code & 0x0f));
    let level = match segment {
        0 => (step << 4) + 8,
        _ => ((step << 4) + 264) << (segment - 1),
    };
    let level = i16::try_from(level).unwrap_or(i16::MAX);
    if code & 0x80 == 0 { -level } else { level }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_recognised_and_nothing_else_is() {
        let tone = sine(8000, 440.0, 1.0);
        let silence = vec![0; 8000];
        for (name, samples, hertz, expected) in [
            ("the tone itself", &tone, 440.0, 1000),
            ("another frequency", &tone, 700.0, 0),
            ("silence", &silence, 440.0, 0),
        ] {
            assert_eq!(heard(samples, 8000, hertz), expected, "{name}");
        }
        assert_eq!((sounding(&tone, 8000), sounding(&silence, 8000)), (1000, 0));
    }

    #[test]
    fn a_tone_survives_both_laws_and_a_wav_file() {
        let tone = sine(8000, 1000.0, 0.1);
        let ulaw: Vec<i16> = tone.iter().map(|&sample| from_ulaw(to_ulaw(sample))).collect();
        let alaw: Vec<i16> = tone.iter().map(|&sample| from_alaw(to_alaw(sample))).collect();
        for (law, coded) in [("ulaw", ulaw), ("alaw", alaw)] {
            for (&before, after) in tone.iter().zip(coded) {
                let error = (i32::from(before) - i32::from(after)).abs();
                assert!(error <= 16 + i32::from(before).abs() / 16, "{law}: {before} became {after}");
            }
        }
        let path = std::env::temp_dir().join(format!("strowger-tone-{}.wav", std::process::id()));
        for channels in [1, 2] {
            std::fs::write(&path, wav(8000, channels, &tone)).unwrap();
            assert_eq!(read_wav(&path), Some((8000, tone.clone())));
        }
        std::fs::remove_file(path).unwrap();
    }
}
