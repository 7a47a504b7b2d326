//! `strowger codec`: turns a sound file into another format, without a server.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use base::FormatId;
use codec::{Recording, SoundFile, extension_format};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{CodecJob, CodecVerb};

/// Reads, turns and writes. The output appears whole or not at all.
pub fn run(job: &CodecJob) -> anyhow::Result<u8> {
    let bytes = std::fs::read(&job.input).with_context(|| format!("cannot read {}", job.input.display()))?;
    let sound = read(job, &bytes)?;
    let to = target(job, sound.format)?;
    match job.verb {
        CodecVerb::Encode => ensure!(
            sound.format.is_linear(),
            "{} holds {}, not linear samples; `codec transcode` takes any format",
            job.input.display(),
            sound.format.name()
        ),
        CodecVerb::Decode => ensure!(
            to.is_linear(),
            "{} would hold {}, not linear samples; name a .wav or .sln file, or use `codec transcode`",
            job.output.display(),
            to.name()
        ),
        CodecVerb::Transcode => {}
    }
    let bar = bar(sound.data.len());
    let out = write(job, &sound, to, &bar);
    bar.finish();
    let beside = job.output.with_extension("part");
    std::fs::write(&beside, &out)
        .and_then(|()| std::fs::rename(&beside, &job.output))
        .with_context(|| format!("cannot write {}", job.output.display()))?;
    println!("{}: {} to {}, {} bytes", job.output.display(), sound.format.name(), to.name(), out.len());
    Ok(0)
}

/// The sound that goes in: as `--from` says, or the file's name and header.
fn read<'a>(job: &CodecJob, bytes: &'a [u8]) -> anyhow::Result<SoundFile<'a>> {
    let sound = match &job.from {
        Some(name) => SoundFile { format: coded(name)?, data: bytes.into() },
        None => SoundFile::parse(extension(&job.input), bytes)
            .with_context(|| format!("{}: name the format with --from", job.input.display()))?,
    };
    coded(sound.format.name())?;
    Ok(sound)
}

/// The format that comes out.
fn target(job: &CodecJob, from: FormatId) -> anyhow::Result<FormatId> {
    let by_name = extension_format(extension(&job.output));
    match (&job.to, by_name) {
        (Some(name), by_name) => {
            let to = coded(name)?;
            let wave = is_wave(&job.output);
            ensure!(
                !wave || by_name == Some(to),
                "a .{} file holds {}, not {}",
                extension(&job.output),
                by_name.map_or("nothing", FormatId::name),
                to.name()
            );
            Ok(to)
        }
        (None, Some(to)) => coded(to.name()),
        // A decoder's natural end, when the name says nothing.
        (None, None) if job.verb == CodecVerb::Decode => Ok(from.linear()),
        (None, None) => bail!("{}: name the format with --to", job.output.display()),
    }
}

/// A format by name that can be coded here.
fn coded(name: &str) -> anyhow::Result<FormatId> {
    let known = || {
        FormatId::coded()
            .filter(|format| format.is_constant())
            .map(FormatId::name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let Some(format) = FormatId::from_name(name) else {
        bail!("there is no format '{name}'; these can be coded: {}", known());
    };
    ensure!(format.is_coded(), "{name} can only be passed through; these can be coded: {}", known());
    ensure!(
        format.is_constant(),
        "packets of {name} have no fixed size: a file without a container cannot hold them"
    );
    Ok(format)
}

/// The bytes of the output.
fn write(job: &CodecJob, sound: &SoundFile<'_>, to: FormatId, bar: &ProgressBar) -> Vec<u8> {
    let mut done = |bytes: usize| bar.set_position(bytes as u64);
    if let Some(mut recording) = Recording::new(extension(&job.output)).filter(|_| is_wave(&job.output)) {
        let clip = sound.to_clip_watched(recording.linear(), &mut done);
        let samples: Vec<i16> =
            clip.data.as_chunks::<2>().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
        let mut data = Vec::new();
        recording.write(&samples, &mut data);
        recording.finish(&mut data);
        let mut out = recording.header(u32::try_from(data.len()).unwrap_or(u32::MAX));
        out.append(&mut data);
        return out;
    }
    sound.to_clip_watched(to, &mut done).data.to_vec()
}

/// Whether the output has a header.
fn is_wave(path: &Path) -> bool {
    Recording::new(extension(path)).is_some_and(|recording| !recording.header(0).is_empty())
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// On a terminal; hidden elsewhere.
fn bar(bytes: usize) -> ProgressBar {
    let bar = ProgressBar::new(bytes as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left") {
        bar.set_style(style);
    }
    bar
}
