//! Sound files as bytes: what an extension means, how a file becomes a [`Clip`], how a recording becomes a file.
//!
//! Pure: whoever has the disk reads and writes the bytes. File names are Asterisk's.

mod ogg;
mod record;
mod wav;

use std::borrow::Cow;

use base::{Clip, FormatId, Packets, VARIABLE_BYTES_MAX, Wishes};

use crate::Coders;
use crate::coder::fill_silence;
use crate::gsm;
use crate::transcode::Transcoder;

pub use ogg::{PAGE_BYTES_MAX, completed, is_complete};
pub use record::{Ending, Recording};

/// Why a file cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SoundError {
    /// No format goes by this extension.
    #[error("no sound format has the extension '{0}'")]
    UnknownExtension(String),
    /// The RIFF/WAVE header is missing or cut short.
    #[error("not a RIFF/WAVE file, or cut short before its data")]
    NotWave,
    /// A WAVE encoding that is not read.
    #[error("WAVE encoding {tag:#06x} with {bits} bits a sample is not supported")]
    Encoding {
        /// `wFormatTag`.
        tag: u16,
        /// `wBitsPerSample`.
        bits: u16,
    },
    /// No channel, or more than eight.
    #[error("{0} channels are not supported")]
    Channels(u16),
    /// The pages of Ogg are missing, or what is in them is not Opus of one or two channels.
    #[error("not an Ogg file, or not Opus in it")]
    NotOgg,
    /// The library is missing.
    #[error("Opus cannot be decoded on this machine")]
    NoOpus,
    /// More sound than is kept in memory.
    #[error("the sound is longer than 52 minutes, 17 where it was recorded at 48 kHz")]
    Long,
    /// A sample rate outside of [`crate::RATES`].
    #[error("a sample rate of {0} Hz is not supported")]
    Rate(u32),
}

impl SoundError {
    /// What the administrator can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::UnknownExtension(_) => "use wav, WAV, wav16, ulaw, alaw, gsm, g722, sln or opus",
            Self::NotWave => "write the file again, or give raw samples the extension sln",
            Self::Encoding { .. } => "convert it to 16 bit PCM: sox IN -b 16 -e signed -c 1 -r 8000 OUT.wav",
            Self::NotOgg => "write it again: opusenc IN.wav OUT.opus",
            Self::NoOpus => "convert it: opusdec --rate 16000 IN.opus OUT.wav",
            Self::Long => "cut it into pieces",
            Self::Channels(_) => "mix it down: sox IN -c 1 OUT.wav",
            Self::Rate(_) => "convert it: sox IN -r 8000 OUT.wav (or 12, 16, 24, 32, 44.1, 48 kHz)",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Raw,
    Wav,
    Ogg,
}

/// One row an extension. The first row of a format is the name that is written.
struct Row {
    extension: &'static str,
    format: FormatId,
    container: Container,
}

macro_rules! rows {
    ($($extension:literal $format:ident $container:ident;)*) => {
        &[$(Row { extension: $extension, format: FormatId::$format, container: Container::$container },)*]
    };
}

/// For a WAVE file the format is the one that is recorded and searched for; what is in it, the file says.
const EXTENSIONS: &[Row] = rows! {
    "ulaw" ULAW Raw;
    "ul" ULAW Raw;
    "mu" ULAW Raw;
    "ulw" ULAW Raw;
    "pcm" ULAW Raw;
    "alaw" ALAW Raw;
    "al" ALAW Raw;
    "alw" ALAW Raw;
    "gsm" GSM Raw;
    "WAV" GSM Wav;
    "wav49" GSM Wav;
    "g722" G722 Raw;
    "sln" SLIN Raw;
    "slin" SLIN Raw;
    "raw" SLIN Raw;
    "wav" SLIN Wav;
    "sln12" SLIN12 Raw;
    "sln16" SLIN16 Raw;
    "wav16" SLIN16 Wav;
    "sln24" SLIN24 Raw;
    "sln32" SLIN32 Raw;
    "sln44" SLIN44 Raw;
    "sln48" SLIN48 Raw;
    "opus" OPUS Ogg;
    "ogg" OPUS Ogg;
    "g729" G729 Raw;
    "siren7" SIREN7 Raw;
    "siren14" SIREN14 Raw;
};

fn row(extension: &str) -> Option<&'static Row> {
    // Case tells WAV from wav; for every other name it does not matter.
    EXTENSIONS
        .iter()
        .find(|row| row.extension == extension)
        .or_else(|| EXTENSIONS.iter().find(|row| row.extension.eq_ignore_ascii_case(extension)))
}

/// Every extension that is read, in table order.
pub fn extensions() -> impl Iterator<Item = &'static str> {
    EXTENSIONS.iter().map(|row| row.extension)
}

/// The format that files of this extension usually hold; a WAVE file may say otherwise in its header.
pub fn extension_format(extension: &str) -> Option<FormatId> {
    row(extension).map(|row| row.format)
}

/// The extensions to try for a stream of this format, cheapest first: its own format, then its own rate without
/// decoding work, then higher rates, and only then lower ones, which would lose sound.
pub fn search_order(target: FormatId) -> Vec<&'static str> {
    // What cannot be decoded, or not encoded for this stream, serves only streams of its own format.
    let serves = |row: &&Row| row.format == target || (row.format.is_coded() && target.is_coded());
    let mut rows: Vec<&Row> = EXTENSIONS.iter().filter(serves).collect();
    rows.sort_by_key(|row| {
        let (rate, wanted) = (row.format.rate().0, target.rate().0);
        // Decoding in microseconds a second of audio, as measured on the scalar codecs; only the order matters.
        let decode = match row.format.codec() {
            base::Codec::Slin => 0,
            base::Codec::Ulaw | base::Codec::Alaw => 3,
            base::Codec::Gsm => 200,
            _ => 400,
        };
        (row.format != target, rate < wanted, rate != wanted, decode, rate.abs_diff(wanted))
    });
    rows.into_iter().map(|row| row.extension).collect()
}

/// The sound in a file: coded bytes in one of the formats, borrowed from the file where nothing had to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoundFile<'a> {
    /// What `data` is.
    pub format: FormatId,
    /// Coded audio; linear samples in little-endian order.
    pub data: Cow<'a, [u8]>,
}

impl<'a> SoundFile<'a> {
    /// Reads a file's bytes as its extension (with or without the dot) says.
    ///
    /// A WAVE file whose header was never completed (a recording cut short) plays to its end. Stereo is mixed down.
    pub fn parse(extension: &str, bytes: &'a [u8]) -> Result<Self, SoundError> {
        let extension = extension.strip_prefix('.').unwrap_or(extension);
        let row = row(extension).ok_or_else(|| SoundError::UnknownExtension(extension.to_owned()))?;
        match row.container {
            Container::Raw => Ok(Self { format: row.format, data: Cow::Borrowed(bytes) }),
            Container::Wav => wav::parse(bytes),
            Container::Ogg => {
                let (format, samples) = ogg::parse(bytes)?;
                let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
                Ok(Self { format, data: Cow::Owned(data) })
            }
        }
    }

    /// The sound as an immutable clip for streams of `format`, coded once ([`FormatId::clip`]). In the file's own format the bytes are untouched.
    ///
    /// Both formats can be coded, or they are the same: a file that only passes through has no samples.
    ///
    /// The last 20 ms (30 and 45 in formats of such frames) are filled up with silence; a cut last granule (a GSM frame without its end) is dropped.
    pub fn to_clip(&self, format: FormatId) -> Clip {
        self.to_clip_watched(format, &mut |_| {})
    }

    /// [`Self::to_clip`] that tells after each second of sound how many bytes of `data` are done.
    pub fn to_clip_watched(&self, format: FormatId, done: &mut dyn FnMut(usize)) -> Clip {
        let format = format.clip();
        let granule = self.format.granule().bytes;
        let whole = self.data.get(..self.data.len() / granule * granule).unwrap_or_default();
        let mut data = Vec::new();
        if format == self.format {
            data.reserve_exact(whole.len() + frame_bytes(format));
            data.extend_from_slice(whole);
        } else {
            // Silence after the end pushes the last samples out of the resampler and the codec's frame.
            let mut tail = vec![0; frame_bytes(self.format)];
            fill_silence(self.format, &mut tail);
            let mut transcoder = Transcoder::new(self.format, format);
            data.reserve_exact(transcoder.output_max(whole.len() + tail.len()));
            let mut taken = 0;
            for piece in whole.chunks(self.format.bytes_in(1000)).chain([tail.as_slice()]) {
                let start = data.len();
                data.resize(start + transcoder.output_max(piece.len()), 0);
                let count = transcoder.transcode(piece, data.get_mut(start..).unwrap_or_default());
                data.truncate(start + count);
                taken += piece.len();
                done(taken.min(whole.len()));
            }
            let exact = coded_length(whole.len(), self.format, format);
            data.truncate(exact);
        }
        pad(&mut data, format);
        Clip { format, data: data.into(), loop_from: None, packets: None }
    }
}

/// How much of a loop's end is played into codec and resampler before its beginning, milliseconds: half a second in
/// whole frames of every format.
const LOOP_LEAD_MS: u16 = 540;

impl SoundFile<'_> {
    /// The sound as a clip for streams of `format` that repeats for ever without a seam: music on hold.
    ///
    /// Codec and resampler are led in with the end of the file, as if it had been playing before. Cut to whole 20 ms.
    pub fn to_loop(&self, format: FormatId) -> Clip {
        let format = format.clip();
        let frame = frame_bytes(self.format);
        let whole = self.data.get(..self.data.len() / frame * frame).unwrap_or_default();
        if format == self.format || whole.is_empty() {
            let clip = SoundFile { format: self.format, data: Cow::Borrowed(whole) }.to_clip(format);
            return Clip { loop_from: Some(0), ..clip };
        }
        let lead = self.format.bytes_in(LOOP_LEAD_MS).min(whole.len());
        let mut round = whole.get(whole.len() - lead..).unwrap_or_default().to_vec();
        round.extend_from_slice(whole);
        let clip = SoundFile { format: self.format, data: Cow::Owned(round) }.to_clip(format);
        let lead = format.bytes_in((lead / frame) as u16 * u16::from(self.format.usual_ms()));
        let data = clip.data.get(lead..).unwrap_or_default().into();
        Clip { format, data, loop_from: Some(0), packets: None }
    }
}

/// Bytes in `to` that last as long as `bytes` in `from`, rounded up to a whole granule.
fn coded_length(bytes: usize, from: FormatId, to: FormatId) -> usize {
    let (source, target) = (from.granule(), to.granule());
    let samples = (bytes / source.bytes * source.samples) as u64;
    let samples = (samples * u64::from(to.rate().0)).div_ceil(u64::from(from.rate().0)) as usize;
    samples.div_ceil(target.samples) * target.bytes
}

/// Bytes of a usual packet.
fn frame_bytes(format: FormatId) -> usize {
    format.bytes_in(u16::from(format.usual_ms()))
}

/// Fills the last frame with the codec's silence.
fn pad(data: &mut Vec<u8>, format: FormatId) {
    let end = data.len();
    data.resize(end.next_multiple_of(frame_bytes(format)), 0);
    fill_silence(format, data.get_mut(end..).unwrap_or_default());
}

/// A clip of linear samples at `format`'s rate.
pub fn clip_of_samples(linear: &[i16], format: FormatId) -> Clip {
    let bytes: Vec<u8> = linear.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    SoundFile { format: format.linear(), data: Cow::Owned(bytes) }.to_clip(format)
}

/// A linear clip coded once as packets of a format of variable rate, for peers without wishes of their own; `None` for other
/// formats, and for those that nobody codes here.
///
/// The encoder of a clip that goes round is led in with its end.
pub fn packets_of(clip: &Clip, format: FormatId, coders: &Coders) -> Option<Packets> {
    let shared = !format.is_constant() && format.is_coded() && coders.coded().contains(format);
    if !shared || clip.format != format.linear() {
        return None;
    }
    let wishes = Wishes { fec: format.codec() == base::Codec::Opus, ..Wishes::default() };
    let mut encoder = coders.encoder(format, &wishes);
    let frame = clip.format.bytes_in(Packets::MS.into()).max(1);
    let mut room = [0; VARIABLE_BYTES_MAX];
    let mut encode = |bytes: &[u8]| {
        let linear: Vec<i16> = bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        let count = encoder.encode(&linear, &mut room);
        room.get(..count).unwrap_or_default().to_vec()
    };
    if clip.loop_from == Some(0) {
        let lead = clip.format.bytes_in(LOOP_LEAD_MS).min(clip.data.len() / frame * frame);
        for bytes in clip.data.get(clip.data.len() - lead..).unwrap_or_default().chunks_exact(frame) {
            encode(bytes);
        }
    }
    let mut packets = Packets::new(format, wishes);
    let whole = clip.data.chunks_exact(frame).all(|bytes| packets.push(&encode(bytes)));
    whole.then_some(packets)
}

/// Packs GSM frames as a `.WAV` file holds them; an odd last frame gets a silent partner.
fn pack_wav49(frames: &[[u8; gsm::FRAME_BYTES]], out: &mut Vec<u8>) {
    for pair in frames.chunks(2) {
        let (Some(first), second) = (pair.first(), pair.get(1).unwrap_or(&gsm::SILENCE)) else { continue };
        let mut bytes = [0; gsm::WAV49_BYTES];
        gsm::to_wav49([first, second], &mut bytes);
        out.extend_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::Decoder;
    use crate::testing::{Noise, golden, rms, samples, sine};

    #[test]
    fn every_extension_plays_in_every_format_at_its_length_and_level() {
        for row in EXTENSIONS.iter().filter(|row| row.format.is_coded()) {
            let mut recording = Recording::new(row.extension).unwrap();
            let rate = recording.rate().0;
            let pcm = sine(500.0, rate, 9000.0, rate as usize / 2);
            let mut file = recording.header(0);
            recording.open(0, &mut file);
            recording.write(&pcm, &mut file);
            recording.finish(&mut file);
            let sound = SoundFile::parse(row.extension, &file).unwrap();
            let read = if row.container == Container::Ogg { FormatId::SLIN16 } else { row.format };
            assert_eq!(sound.format, read, "{}", row.extension);
            for target in FormatId::coded().filter(|format| format.is_constant()) {
                let clip = sound.to_clip(target);
                // 500 ms; the pair of frames of a .WAV file rounds up to 520.
                let length = if row.extension == "WAV" || row.extension == "wav49" { 520 } else { 500 };
                let length = u16::next_multiple_of(length, u16::from(target.usual_ms()));
                assert_eq!(clip.data.len(), target.bytes_in(length), "{} as {target}", row.extension);
                let mut linear = vec![0; target.rate().0 as usize];
                let count = Decoder::new(target).decode(&clip.data, &mut linear);
                let level = rms(&linear[count / 4..count / 4 * 3]) / rms(&pcm);
                // A vocoder keeps no level of a sine.
                let kept =
                    [FormatId::LPC10, FormatId::CODEC2].contains(&target) || (0.85..1.15).contains(&level);
                assert!(kept, "{} as {target}: {level:.3}", row.extension);
            }
        }
    }

    #[test]
    fn a_file_in_the_streams_own_format_is_not_touched() {
        let bytes: Vec<u8> = (0..=255).cycle().take(480).collect();
        let sound = SoundFile::parse(".ulaw", &bytes).unwrap();
        assert!(matches!(sound.data, Cow::Borrowed(_)));
        assert_eq!(&*sound.to_clip(FormatId::ULAW).data, &bytes[..]);
    }

    #[test]
    fn a_partial_last_frame_is_filled_with_silence() {
        for (extension, length, format, expected, last) in [
            ("ulaw", 200, FormatId::ULAW, 320, 0xff),
            ("alaw", 1, FormatId::ALAW, 160, 0xd5),
            ("sln", 3, FormatId::SLIN, 320, 0),
            ("gsm", 40, FormatId::GSM, 33, 0),
            ("ulaw", 0, FormatId::GSM, 0, 0),
        ] {
            let clip = SoundFile::parse(extension, &vec![0; length]).unwrap().to_clip(format);
            assert_eq!(clip.data.len(), expected, "{extension}");
            if expected > 0 {
                assert_eq!(clip.data.last(), Some(&last), "{extension}");
            }
        }
    }

    #[test]
    fn a_loop_has_no_seam_in_any_format() {
        // 400 whole periods in a second: played round and round it is one endless sine.
        let clip = clip_of_samples(&sine(400.0, 16_000, 9000.0, 16_000), FormatId::SLIN16);
        let sound = SoundFile { format: FormatId::SLIN16, data: clip.data.to_vec().into() };
        for target in FormatId::coded().filter(|format| format.granule().samples <= 2) {
            let clip = sound.to_loop(target);
            assert_eq!((clip.data.len(), clip.loop_from), (target.bytes_in(1000), Some(0)), "{target}");
            let mut linear = vec![0; target.rate().0 as usize * 2];
            Decoder::new(target).decode(&clip.data.repeat(2), &mut linear);
            let seam = linear.len() / 2;
            let around = linear[seam - seam / 50..seam + seam / 50].windows(2);
            let step = around.map(|pair| i32::from(pair[0]).abs_diff(i32::from(pair[1]))).max().unwrap();
            let steepest = 9000.0 * core::f64::consts::TAU * 400.0 / f64::from(target.rate().0);
            assert!(
                f64::from(step) < steepest * 1.3,
                "{target}: a step of {step} where {steepest:.0} is due"
            );
        }
        assert_eq!(sound.to_loop(FormatId::GSM).data.len(), FormatId::GSM.bytes_in(1000));
        let empty = SoundFile { format: FormatId::ULAW, data: Cow::Borrowed(&[]) };
        assert!(empty.to_loop(FormatId::GSM).data.is_empty());
    }

    #[test]
    fn the_search_begins_with_the_native_format_and_prefers_rates_that_lose_nothing() {
        for (target, first, later, latest) in [
            (FormatId::ULAW, "ulaw", "wav", "gsm"),
            (FormatId::GSM, "gsm", "sln", "ulaw"),
            (FormatId::ULAW, "ulaw", "gsm", "g722"),
            (FormatId::G722, "g722", "sln16", "ulaw"),
            (FormatId::SLIN16, "sln16", "g722", "wav"),
        ] {
            let order = search_order(target);
            let place = |name: &str| order.iter().position(|&e| e == name).unwrap();
            assert_eq!(place(first), 0, "{target}");
            assert!(place(later) < place(latest), "{target}: {order:?}");
            assert_eq!(order.len(), EXTENSIONS.iter().filter(|row| row.format.is_coded()).count());
        }
        assert_eq!(search_order(FormatId::G729), ["g729"], "nothing else can be made into it");
    }

    #[test]
    fn golden_files_become_the_golden_samples() {
        let (Some(coded), Some(pcm)) = (golden("es_en-gb.gsm"), golden("es_en-gb.gsm.pcm")) else { return };
        let clip = SoundFile::parse("gsm", &coded).unwrap().to_clip(FormatId::SLIN);
        assert_eq!(samples(&clip.data), samples(&pcm));
    }

    #[test]
    fn random_bytes_are_an_error_or_a_sound_and_never_a_panic() {
        let mut noise = Noise(42);
        let mut template = Recording::new("wav").unwrap().header(64);
        template.resize(120, 1);
        for turn in 0..20_000 {
            let mut bytes = template.clone();
            for _ in 0..=turn % 4 {
                let at = noise.bits() as usize % bytes.len();
                bytes[at] = noise.bits() as u8;
            }
            bytes.truncate(noise.bits() as usize % 140);
            if let Ok(sound) = SoundFile::parse("wav", &bytes) {
                sound.to_clip(FormatId::ULAW);
            }
        }
    }
}
