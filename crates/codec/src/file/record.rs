//! The way from linear samples to a file that players and Asterisk read.

use base::{FormatId, SampleRate};

use super::{Container, ogg, pack_wav49, row, wav};
use crate::EncodeTask;
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
    /// Samples short of a granule, or of a `.WAV` file's pair of frames; and those that wait for a group, behind so many that
    /// it has coded.
    carry: Vec<i16>,
    grouped: usize,
    /// The frame that was lent, and its bytes; 0 while it is not coded.
    frame: Vec<u8>,
    lent: usize,
    /// The first of a `.WAV` file's pair of frames.
    half: Option<[u8; gsm::FRAME_BYTES]>,
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
        let container = row.container;
        let (carry, frame) = (Vec::new(), Vec::new());
        Some(Self {
            format,
            container,
            encoder,
            channels: 1,
            ogg,
            carry,
            grouped: 0,
            frame,
            lent: 0,
            half: None,
        })
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
        self.forget_grouped();
        if !self.carry.is_empty() {
            let (now, later) = linear.split_at(self.missing().min(linear.len()));
            self.carry.extend_from_slice(now);
            linear = later;
            if self.missing() > 0 {
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
    /// Whether its frames can be coded beside those of other recordings: then [`Self::listen`] may take samples instead of
    /// [`Self::write`], and whoever has several of a format codes what [`Self::task`] lends.
    pub fn has_lanes(&self) -> bool {
        self.ogg.is_none() && !self.format.is_linear() && self.encoder.lane().is_some()
    }
    /// What it is coded in.
    pub fn format(&self) -> FormatId {
        self.format
    }
    /// Takes samples that wait for a group.
    pub fn listen(&mut self, linear: &[i16]) {
        self.forget_grouped();
        self.carry.extend_from_slice(linear);
    }
    /// Lends the next frame; none while no whole one waits.
    pub fn task(&mut self) -> Option<EncodeTask<'_>> {
        let frame = self.encoder.lane()?;
        let waiting = self.carry.get(self.grouped..)?;
        // No half of a pair is left behind.
        let wanted = if self.half.is_some() { frame.samples } else { frame.samples.max(self.unit()) };
        if waiting.len() < wanted {
            return None;
        }
        self.lent = 0;
        self.frame.resize(frame.bytes, 0);
        let linear = waiting.get(..frame.samples)?;
        Some(EncodeTask { encoder: &mut self.encoder, linear, coded: &mut self.frame, bytes: &mut self.lent })
    }
    /// Appends the frame that was lent; false when it has not been coded.
    pub fn take_task(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(frame) = self.encoder.lane().filter(|_| self.lent > 0) else { return false };
        self.grouped += frame.samples;
        let bytes = self.frame.get(..core::mem::take(&mut self.lent)).unwrap_or_default();
        match bytes.try_into() {
            Ok(second) if self.is_wav49() => match self.half.take() {
                Some(first) => pack_wav49(&[first, second], out),
                None => self.half = Some(second),
            },
            _ => out.extend_from_slice(bytes),
        }
        true
    }
    fn forget_grouped(&mut self) {
        let grouped = core::mem::take(&mut self.grouped).min(self.carry.len());
        self.carry.drain(..grouped);
    }
    /// Samples that the last unit of what waits is short of.
    fn missing(&self) -> usize {
        self.carry.len().next_multiple_of(self.unit()) - self.carry.len()
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
        self.forget_grouped();
        let extra = self.missing();
        self.write(&vec![0; extra], out);
        if let Some(ogg) = &mut self.ogg {
            ogg.finish(extra, out);
        }
    }
    /// Appends `samples` of silence without encoding work where the codec allows it: a gap in the recording.
    pub fn write_silence(&mut self, samples: usize, out: &mut Vec<u8>) {
        self.forget_grouped();
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
    fn frames_that_groups_code_give_the_same_file() {
        for name in ["gsm", "WAV", "g722"] {
            let mut together: Vec<_> = (0..5)
                .map(|n| {
                    let recording = Recording::new(name).unwrap();
                    let pcm = sine(200.0 + 100.0 * f64::from(n), recording.rate().0, 5000.0, 1000);
                    (recording, pcm, Vec::new())
                })
                .collect();
            assert!(together.iter().all(|(recording, ..)| recording.has_lanes()), "{name}");
            // Pieces that are no whole frames, and one that never is.
            for piece in 0..8 {
                for (recording, pcm, _) in &mut together {
                    let length = pcm.len() / 8;
                    recording.listen(&pcm[piece * length..(piece + 1) * length]);
                }
                loop {
                    let mut tasks: crate::EncodeTasks<'_> =
                        together.iter_mut().filter_map(|(recording, ..)| recording.task()).collect();
                    if tasks.is_empty() {
                        break;
                    }
                    crate::encode_group(crate::Level::best(), &mut tasks);
                    drop(tasks);
                    for (recording, _, out) in &mut together {
                        assert!(recording.take_task(out), "{name}");
                    }
                }
            }
            for (mut recording, pcm, mut out) in together {
                let (mut alone, mut whole) = (Recording::new(name).unwrap(), Vec::new());
                alone.write(&pcm[..pcm.len() / 8 * 8], &mut whole);
                alone.finish(&mut whole);
                recording.finish(&mut out);
                assert_eq!(out, whole, "{name}");
            }
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
