//! The way from linear samples to a file that players and Asterisk read.

use base::{FormatId, SampleRate};

use super::{Container, ogg, pack_wav49, row, wav};
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
    /// Where the sound goes instead of the encoder, into pages.
    ogg: Option<Box<ogg::Writer>>,
    /// Samples short of a granule, or of a `.WAV` file's pair of frames.
    carry: Vec<i16>,
}

/// How a file is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// So many bytes are cut off its end.
    Bytes(u64),
    /// It ends with the page from `start` to `end`, counted in bytes from what [`Recording::open`] wrote, which
    /// [`Ending::page`] makes the last one.
    Page {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// Packets that are left of it.
        packets: usize,
        /// The position that its sound reaches.
        granule: u64,
    },
}

impl Ending {
    /// Makes a page the last one, when that is how the file is shortened: it may be shorter then.
    pub fn page(&self, page: &mut Vec<u8>) {
        if let Self::Page { packets, granule, .. } = self {
            ogg::keep(page, *packets);
            ogg::end_with(page, *granule);
        }
    }
}

impl Recording {
    /// A recording for this extension (with or without the dot); `None` for an unknown one and for a
    /// format that only passes through.
    pub fn new(extension: &str) -> Option<Self> {
        let row =
            row(extension.strip_prefix('.').unwrap_or(extension)).filter(|row| row.format.is_coded())?;
        let ogg = match row.container {
            Container::Ogg => Some(Box::new(ogg::Writer::new()?)),
            Container::Raw | Container::Wav => None,
        };
        // Pages have an encoder of their own.
        let format = if ogg.is_some() { FormatId::SLIN16 } else { row.format };
        let encoder = Encoder::new(format);
        Some(Self { format, container: row.container, encoder, channels: 1, ogg, carry: Vec::new() })
    }
    /// The same for two channels, whose samples come in turn; `None` for formats that are not linear.
    pub fn stereo(extension: &str) -> Option<Self> {
        Self::new(extension)
            .filter(|recording| recording.format.is_linear() && recording.ogg.is_none())
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
    /// Appends what has to stand before the sound of this recording in a file that has so many bytes of sound already.
    pub fn open(&mut self, there: u64, out: &mut Vec<u8>) {
        if let Some(ogg) = &mut self.ogg {
            ogg.open(there, out);
        }
    }
    /// The file's header for so many bytes of data; empty for a raw file.
    pub fn header(&self, data_bytes: u32) -> Vec<u8> {
        match (self.container, self.format) {
            (Container::Raw | Container::Ogg, _) => Vec::new(),
            (Container::Wav, FormatId::GSM) => wav::gsm_header(data_bytes),
            (Container::Wav, format) => wav::pcm_header(format.rate().0, self.channels, data_bytes),
        }
    }
    /// How a file is shortened whose last `samples` are not wanted, in whole frames where it has such.
    pub fn without(&self, samples: usize) -> Option<Ending> {
        if let Some(ogg) = &self.ogg {
            let (start, end, packets, granule) = ogg.without(samples as u64)?;
            return Some(Ending::Page { start, end, packets, granule });
        }
        let (unit, granule) = (self.unit(), self.format.granule());
        let bytes = if self.is_wav49() { gsm::WAV49_BYTES } else { unit / granule.samples * granule.bytes };
        Some(Ending::Bytes((samples / unit * bytes * usize::from(self.channels)) as u64))
    }
    /// Samples that belong together: 1, or 2 for both sides in turn.
    pub fn channels(&self) -> usize {
        self.channels.into()
    }
    /// Appends the coded form of `linear` to `out`; a rest smaller than a frame waits.
    pub fn write(&mut self, linear: &[i16], out: &mut Vec<u8>) {
        let unit = self.unit();
        let mut linear = linear;
        if !self.carry.is_empty() {
            let (now, later) = linear.split_at((unit - self.carry.len()).min(linear.len()));
            self.carry.extend_from_slice(now);
            linear = later;
            if self.carry.len() < unit {
                return;
            }
            let first = core::mem::take(&mut self.carry);
            self.encode(&first, out);
            self.carry = first;
            self.carry.clear();
        }
        let (whole, rest) = linear.split_at(linear.len() / unit * unit);
        self.encode(whole, out);
        self.carry.extend_from_slice(rest);
    }
    /// Appends the coded form of whole units.
    fn encode(&mut self, linear: &[i16], out: &mut Vec<u8>) {
        if let Some(ogg) = &mut self.ogg {
            return ogg.write(linear);
        }
        let granule = self.format.granule();
        let start = out.len();
        out.resize(start + linear.len() / granule.samples * granule.bytes, 0);
        let count = self.encoder.encode(linear, out.get_mut(start..).unwrap_or_default());
        out.truncate(start + count);
        if self.is_wav49() {
            let frames = out.split_off(start);
            pack_wav49(frames.as_chunks().0, out);
        }
    }
    /// Appends what was coded and has not been appended yet, as far as the format can do that before the end.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(ogg) = &mut self.ogg {
            ogg.flush(out);
        }
    }
    /// Appends what waits, filled up with silence.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let extra = if self.carry.is_empty() { 0 } else { self.unit() - self.carry.len() };
        self.write(&vec![0; extra], out);
        if let Some(ogg) = &mut self.ogg {
            ogg.finish(extra, out);
        }
    }
    /// Appends `samples` of silence without encoding work where the codec allows it: a gap in the recording.
    pub fn write_silence(&mut self, samples: usize, out: &mut Vec<u8>) {
        let whole = self.carry.is_empty() && samples.is_multiple_of(self.unit());
        if whole && !self.is_wav49() && self.ogg.is_none() {
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
        match self.container {
            Container::Ogg => ogg::PACKET_SAMPLES,
            _ if self.is_wav49() => 2 * gsm::FRAME_SAMPLES,
            _ => self.format.granule().samples,
        }
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
            recording.open(0, &mut file);
            recording.write(&[0; 500], &mut file);
            recording.write_silence(640, &mut file);
            recording.finish(&mut file);
            let header = recording.header((file.len() - head) as u32);
            assert_eq!(header.len(), head, "{}", row.extension);
            file[..head].copy_from_slice(&header);
            let sound = SoundFile::parse(row.extension, &file).unwrap();
            assert!(sound.data.len() >= sound.format.bytes_in(20), "{}", row.extension);
        }
        assert!(Recording::new("mp3").is_none());
        assert!(Recording::new("g729").is_none(), "nobody can code it here");
    }
}
