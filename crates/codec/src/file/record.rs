//! The way from linear samples to a file that players and Asterisk read.

use base::{FormatId, SampleRate};

use super::{Container, pack_wav49, row, wav};
use crate::coder::{Encoder, fill_silence};
use crate::gsm;

/// One file being recorded. The caller writes `header(0)`, what `write` and `finish` append, and at the end puts
/// `header(data bytes)` over the first one (same length).
#[derive(Debug)]
pub struct Recording {
    format: FormatId,
    container: Container,
    encoder: Encoder,
    /// 1, or 2: linear samples of both sides in turn.
    channels: u16,
    /// Samples short of a granule, or of a `.WAV` file's pair of frames.
    carry: Vec<i16>,
}

impl Recording {
    /// A recording for this extension (with or without the dot); `None` for an unknown one and for a
    /// format that only passes through.
    pub fn new(extension: &str) -> Option<Self> {
        let row =
            row(extension.strip_prefix('.').unwrap_or(extension)).filter(|row| row.format.is_coded())?;
        let encoder = Encoder::new(row.format);
        Some(Self { format: row.format, container: row.container, encoder, channels: 1, carry: Vec::new() })
    }
    /// The same for two channels, whose samples come in turn; `None` for formats that are not linear.
    pub fn stereo(extension: &str) -> Option<Self> {
        Self::new(extension)
            .filter(|recording| recording.format.is_linear())
            .map(|recording| Self { channels: 2, ..recording })
    }
    /// The rate of the samples that [`Self::write`] takes.
    pub fn rate(&self) -> SampleRate {
        self.format.rate()
    }
    /// Linear at that rate: what the media plane is asked to record in.
    pub fn linear(&self) -> FormatId {
        self.format.linear()
    }
    /// The file's header for so many bytes of data; empty for a raw file.
    pub fn header(&self, data_bytes: u32) -> Vec<u8> {
        match (self.container, self.format) {
            (Container::Raw, _) => Vec::new(),
            (Container::Wav, FormatId::GSM) => wav::gsm_header(data_bytes),
            (Container::Wav, format) => wav::pcm_header(format.rate().0, self.channels, data_bytes),
        }
    }
    /// Bytes of the file that `samples` take, in whole frames: what may be cut off its end.
    pub fn bytes_of(&self, samples: usize) -> usize {
        let (unit, granule) = (self.unit(), self.format.granule());
        let bytes = if self.is_wav49() { gsm::WAV49_BYTES } else { unit / granule.samples * granule.bytes };
        samples / unit * bytes * usize::from(self.channels)
    }
    /// Appends the coded form of `linear` to `out`; a rest smaller than a frame waits.
    pub fn write(&mut self, linear: &[i16], out: &mut Vec<u8>) {
        self.carry.extend_from_slice(linear);
        let unit = self.unit();
        let whole = self.carry.len() / unit * unit;
        let granule = self.format.granule();
        let mut coded = vec![0; whole / granule.samples * granule.bytes];
        let count = self.encoder.encode(self.carry.get(..whole).unwrap_or_default(), &mut coded);
        coded.truncate(count);
        self.carry.drain(..whole);
        if self.is_wav49() {
            pack_wav49(coded.as_chunks().0, out);
        } else {
            out.extend_from_slice(&coded);
        }
    }
    /// Appends what waits, filled up with silence.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.carry.is_empty() {
            return;
        }
        let silence = vec![0; self.unit() - self.carry.len()];
        self.write(&silence, out);
    }
    /// Appends `samples` of silence without encoding work where the codec allows it: a gap in the recording.
    pub fn write_silence(&mut self, samples: usize, out: &mut Vec<u8>) {
        if self.carry.is_empty() && samples.is_multiple_of(self.unit()) && !self.is_wav49() {
            let granule = self.format.granule();
            let start = out.len();
            out.resize(start + samples / granule.samples * granule.bytes, 0);
            fill_silence(self.format, out.get_mut(start..).unwrap_or_default());
        } else {
            self.write(&vec![0; samples], out);
        }
    }

    fn is_wav49(&self) -> bool {
        self.container == Container::Wav && self.format == FormatId::GSM
    }
    /// Samples that are written together.
    fn unit(&self) -> usize {
        if self.is_wav49() { 2 * gsm::FRAME_SAMPLES } else { self.format.granule().samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{EXTENSIONS, SoundFile};
    use crate::testing::sine;

    #[test]
    fn odd_pieces_give_the_same_file_as_one_piece() {
        for row in EXTENSIONS.iter().filter(|row| row.format.is_coded()) {
            let pcm = sine(300.0, row.format.rate().0, 5000.0, 1000);
            let whole = {
                let (mut recording, mut out) = (Recording::new(row.extension).unwrap(), Vec::new());
                recording.write(&pcm, &mut out);
                recording.finish(&mut out);
                out
            };
            let (mut recording, mut out) = (Recording::new(row.extension).unwrap(), Vec::new());
            for piece in pcm.chunks(77) {
                recording.write(piece, &mut out);
            }
            recording.finish(&mut out);
            assert_eq!(out, whole, "{}", row.extension);
        }
    }

    #[test]
    fn the_patched_header_has_the_length_of_the_first_one_and_the_file_parses() {
        for row in EXTENSIONS.iter().filter(|row| row.format.is_coded()) {
            let mut recording = Recording::new(row.extension).unwrap();
            let mut file = recording.header(0);
            let head = file.len();
            recording.write(&[0; 500], &mut file);
            recording.write_silence(640, &mut file);
            recording.finish(&mut file);
            let header = recording.header((file.len() - head) as u32);
            assert_eq!(header.len(), head, "{}", row.extension);
            file[..head].copy_from_slice(&header);
            let sound = SoundFile::parse(row.extension, &file).unwrap();
            assert!(sound.data.len() >= row.format.bytes_in(20), "{}", row.extension);
        }
        assert!(Recording::new("mp3").is_none());
        assert!(Recording::new("g729").is_none(), "nobody can code it here");
    }
}
