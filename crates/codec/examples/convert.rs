//! Converts sound files: `convert IN OUT [PEAK]`. Extensions say the formats; PEAK (0 to 1) evens out the level.
//!
//! With a PEAK, silence at both ends is cut down to 50 ms as well: what a prompt out of a synthesiser needs.

use std::process::ExitCode;

use base::FormatId;
use codec::{Recording, Resampler, SoundFile};

/// What counts as silence at the ends of a prompt, part of full scale.
const QUIET: f64 = 0.004;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(input), Some(output)) = (arguments.first(), arguments.get(1)) else {
        eprintln!("usage: convert IN OUT [PEAK]");
        return ExitCode::FAILURE;
    };
    let peak = arguments.get(2).and_then(|text| text.parse().ok());
    match convert(input, output, peak) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{input}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn convert(input: &str, output: &str, peak: Option<f64>) -> Result<(), String> {
    let extension = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let bytes = std::fs::read(input).map_err(|error| error.to_string())?;
    let sound = SoundFile::parse(&extension(input), &bytes)
        .map_err(|error| format!("{error}: {}", error.remedy()))?;
    let clip = sound.to_clip(sound.format.linear());
    let mut samples: Vec<i16> =
        clip.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    if let Some(peak) = peak {
        trim(&mut samples, sound.format);
        let highest = samples.iter().map(|s| s.unsigned_abs()).max().unwrap_or(1).max(1);
        let gain = peak * 32767.0 / f64::from(highest);
        samples.iter_mut().for_each(|s| *s = (f64::from(*s) * gain) as i16);
    }
    let mut recording = Recording::new(&extension(output)).ok_or("unknown extension of the output")?;
    if let Some(mut resampler) = Resampler::new(sound.format.rate(), recording.rate()) {
        let mut resampled = vec![0; resampler.output_max(samples.len())];
        let count = resampler.process(&samples, &mut resampled);
        resampled.truncate(count);
        samples = resampled;
    }
    let mut data = Vec::new();
    recording.write(&samples, &mut data);
    recording.finish(&mut data);
    let mut file = recording.header(u32::try_from(data.len()).map_err(|error| error.to_string())?);
    file.append(&mut data);
    std::fs::write(output, file).map_err(|error| format!("{output}: {error}"))
}

fn trim(samples: &mut Vec<i16>, format: FormatId) {
    let quiet = (QUIET * 32767.0) as u16;
    let loud = |s: &i16| s.unsigned_abs() > quiet;
    let margin = format.rate().0 as usize / 20;
    let (Some(first), Some(last)) = (samples.iter().position(loud), samples.iter().rposition(loud)) else {
        return;
    };
    samples.truncate((last + margin).min(samples.len()));
    samples.drain(..first.saturating_sub(margin));
}
