//! Streams coded as a media worker codes them, for whoever has a clock: what a step costs on this machine.
//!
//! Every stream has a state of its own and is coded once a tick, groups one after the other, so that states come from the
//! cache as they do in service. Knows no clock: a [`Trial`] is set up, then run as often as somebody wants to time it.

use base::FormatId;
use lanes::Level;
use smallvec::SmallVec;

use crate::group::{
    DecodeTask, DecodeTasks, EncodeTask, EncodeTasks, decode_frame, decode_group, encode_frame, encode_group,
    group_size,
};
use crate::{Decoder, Encoder, GROUP_MAX, Resampler};

/// What is done with every frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It is decoded.
    Decode(FormatId),
    /// It is encoded.
    Encode(FormatId),
    /// It is decoded and encoded anew; both formats have one sampling rate.
    Transcode(FormatId, FormatId),
}

impl Work {
    const fn from(self) -> Option<FormatId> {
        match self {
            Self::Decode(format) | Self::Transcode(format, _) => Some(format),
            Self::Encode(_) => None,
        }
    }
    const fn to(self) -> Option<FormatId> {
        match self {
            Self::Encode(format) | Self::Transcode(_, format) => Some(format),
            Self::Decode(_) => None,
        }
    }
}

/// Samples and bytes of what is coded at a time: the frame that lanes work on, or a usual packet.
#[derive(Debug, Clone, Copy)]
struct Frame {
    samples: usize,
    room: usize,
}

impl Frame {
    fn of(format: FormatId) -> Self {
        let usual = u16::from(format.usual_ms());
        let samples = match encode_frame(format).or(decode_frame(format)) {
            Some(frame) => frame.samples,
            None => format.rate().0 as usize * usize::from(usual) / 1000,
        };
        Self { samples, room: format.packet_room(usual).max(Self::BYTES_MIN) }
    }
    /// Room for a Speex frame of any quality.
    const BYTES_MIN: usize = 64;
}

/// Speech as a format has it: what is measured with.
#[derive(Debug, Clone)]
pub struct Material {
    format: FormatId,
    frame: Frame,
    linear: Vec<i16>,
    /// Coded frames, one after the other, and where each begins.
    coded: Vec<u8>,
    starts: Vec<usize>,
}

impl Material {
    /// Speech of 8 kHz at the format's rate, and coded. Shorter speech than a frame is filled up with silence.
    pub fn new(format: FormatId, speech: &[i16]) -> Self {
        Self::coded_by(Encoder::new(format), speech)
    }
    /// As [`Self::new`], coded by this encoder.
    pub fn coded_by(mut encoder: Encoder, speech: &[i16]) -> Self {
        let format = encoder.format();
        let mut linear = speech.to_vec();
        if let Some(mut resampler) = Resampler::new(base::SampleRate(8000), format.rate()) {
            let mut room = vec![0; resampler.output_max(speech.len())];
            let count = resampler.process(speech, &mut room);
            room.truncate(count);
            linear = room;
        }
        let frame = Frame::of(format);
        linear.resize((linear.len() / frame.samples).max(1) * frame.samples, 0);
        let (mut coded, mut starts) = (Vec::new(), vec![0]);
        let mut room = vec![0; frame.room];
        for pcm in linear.chunks_exact(frame.samples) {
            let bytes = encoder.encode(pcm, &mut room);
            coded.extend_from_slice(room.get(..bytes).unwrap_or_default());
            starts.push(coded.len());
        }
        Self { format, frame, linear, coded, starts }
    }
    fn frames(&self) -> usize {
        self.starts.len() - 1
    }
    /// Seconds of it.
    pub fn seconds(&self) -> f64 {
        self.linear.len() as f64 / f64::from(self.format.rate().0)
    }
    /// All samples.
    pub fn linear(&self) -> &[i16] {
        &self.linear
    }
    /// All coded frames, one after the other.
    pub fn coded(&self) -> &[u8] {
        &self.coded
    }
    fn payload(&self, at: usize) -> &[u8] {
        let at = at % self.frames();
        let range = self.starts.get(at).zip(self.starts.get(at + 1));
        range.and_then(|(start, end)| self.coded.get(*start..*end)).unwrap_or_default()
    }
    fn pcm(&self, at: usize) -> &[i16] {
        let start = at % self.frames() * self.frame.samples;
        self.linear.get(start..start + self.frame.samples).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Stream {
    decoder: Decoder,
    encoder: Encoder,
    /// Where in the speech it is, frames.
    at: usize,
    /// Decoded samples of a tick.
    linear: Vec<i16>,
    coded: Vec<u8>,
    /// What the last frame made.
    made: usize,
}

/// Streams, each at another place of the speech, on which work is done tick by tick.
#[derive(Debug)]
pub struct Trial<'m> {
    work: Work,
    material: &'m Material,
    streams: Vec<Stream>,
    /// Frames that a stream decodes and encodes in a tick, and samples of a tick.
    decodes: usize,
    encodes: usize,
    samples: usize,
}

/// Frames between the places of two streams: no divisor of any usual number of frames.
const STRIDE: usize = 67;

impl<'m> Trial<'m> {
    /// So many streams in their initial state.
    ///
    /// The material is of the format that the work begins with. `None` when it is not, or when the work would need
    /// another sampling rate.
    pub fn new(work: Work, streams: usize, material: &'m Material) -> Option<Self> {
        let begin = work.from().or(work.to())?;
        let end = work.to().unwrap_or(begin);
        if begin != material.format || begin.rate() != end.rate() {
            return None;
        }
        let (source, target) = (Frame::of(begin), Frame::of(end));
        let samples = least_common_multiple(source.samples, target.samples);
        let stream = |number: usize| Stream {
            decoder: Decoder::new(begin),
            encoder: Encoder::new(end),
            at: number * STRIDE,
            linear: vec![0; samples],
            coded: vec![0; target.room],
            made: 0,
        };
        Some(Self {
            work,
            material,
            streams: (0..streams).map(stream).collect(),
            decodes: samples / source.samples,
            encodes: samples / target.samples,
            samples,
        })
    }
    /// The same streams with other encoders, made by `encoder`: of the format that the work ends with, in another mode.
    #[must_use]
    pub fn with_encoders(mut self, encoder: impl Fn() -> Encoder) -> Self {
        for stream in &mut self.streams {
            stream.encoder = encoder();
        }
        self
    }
    /// Seconds of sound that a tick of so many streams is.
    pub fn seconds(&self, streams: usize) -> f64 {
        (streams.min(self.streams.len()) * self.samples) as f64 / f64::from(self.material.format.rate().0)
    }
    /// What all streams coded last: bytes, or samples where nothing is encoded. Tells whether two ways agree.
    pub fn digest(&self) -> u64 {
        // FNV-1a, 64 bits.
        let byte = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.streams.iter().fold(0xcbf2_9ce4_8422_2325, |hash, stream| match self.work.to() {
            Some(_) => stream.coded.iter().take(stream.made).fold(hash, |hash, &code| byte(hash, code)),
            None => stream.linear.iter().flat_map(|sample| sample.to_le_bytes()).fold(hash, byte),
        })
    }
    /// Lets so many ticks pass for the first so many streams: side by side at `level`; with `None` each by itself in plain
    /// form. Which way is taken changes nothing in what comes out.
    pub fn run(&mut self, level: Option<Level>, streams: usize, ticks: usize) {
        let count = streams.min(self.streams.len());
        for _ in 0..ticks {
            if let Some(format) = self.work.from() {
                (0..self.decodes).for_each(|frame| self.decode(format, frame, level, count));
            }
            if let Some(format) = self.work.to() {
                (0..self.encodes).for_each(|frame| self.encode(format, frame, level, count));
            }
            let step = if self.work.from().is_some() { self.decodes } else { self.encodes };
            for stream in self.streams.iter_mut().take(count) {
                stream.at += step;
            }
        }
    }
    fn decode(&mut self, format: FormatId, frame: usize, level: Option<Level>, count: usize) {
        let samples = self.material.frame.samples;
        let at = frame * samples..(frame + 1) * samples;
        let streams = self.streams.get_mut(..count).unwrap_or_default();
        let Some(level) = level else {
            for stream in streams {
                let payload = self.material.payload(stream.at + frame);
                let room = stream.linear.get_mut(at.clone()).unwrap_or_default();
                stream.made = stream.decoder.decode(payload, room);
            }
            return;
        };
        let size = group_size(format, level).clamp(1, GROUP_MAX);
        for group in streams.chunks_mut(size) {
            let mut tasks: DecodeTasks<'_> = SmallVec::new();
            for stream in group {
                stream.made = 0;
                tasks.push(DecodeTask {
                    decoder: &mut stream.decoder,
                    coded: self.material.payload(stream.at + frame),
                    linear: stream.linear.get_mut(at.clone()).unwrap_or_default(),
                    samples: &mut stream.made,
                });
            }
            decode_group(level, &mut tasks);
        }
    }
    fn encode(&mut self, format: FormatId, frame: usize, level: Option<Level>, count: usize) {
        let samples = self.samples / self.encodes;
        let at = frame * samples..(frame + 1) * samples;
        let is_fed = self.work.from().is_some();
        let size = level.map_or(1, |level| group_size(format, level).clamp(1, GROUP_MAX));
        for group in self.streams.get_mut(..count).unwrap_or_default().chunks_mut(size) {
            let mut tasks: EncodeTasks<'_> = SmallVec::new();
            for stream in group {
                stream.made = 0;
                let linear = match is_fed {
                    true => stream.linear.get(at.clone()).unwrap_or_default(),
                    false => self.material.pcm(stream.at + frame),
                };
                let coded = stream.coded.as_mut_slice();
                match level {
                    Some(_) => tasks.push(EncodeTask {
                        encoder: &mut stream.encoder,
                        linear,
                        coded,
                        bytes: &mut stream.made,
                    }),
                    None => stream.made = stream.encoder.encode(linear, coded),
                }
            }
            if let Some(level) = level {
                encode_group(level, &mut tasks);
            }
        }
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut high, mut low) = (a.max(b), a.min(b));
    while low > 0 {
        (high, low) = (low, high % low);
    }
    a / high.max(1) * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sine;

    #[test]
    fn every_way_of_running_makes_the_same_of_the_same_streams() {
        let speech = sine(310.0, 8000, 9000.0, 8000);
        for from in FormatId::coded() {
            let material = Material::new(from, &speech);
            for work in [Work::Decode(from), Work::Encode(from), Work::Transcode(from, FormatId::ILBC30)] {
                let of = |level| {
                    Trial::new(work, 17, &material).map(|mut trial| (trial.run(level, 17, 4), trial.digest()))
                };
                let same_rate = from.rate() == FormatId::ILBC30.rate();
                assert_eq!(of(None).is_some(), same_rate || !matches!(work, Work::Transcode(..)), "{work:?}");
                for level in Level::all_available() {
                    // Libraries in C keep no promise about the state of two encoders of theirs.
                    let exact = from.coding() != base::Coding::Bound;
                    assert!(!exact || of(Some(level)) == of(None), "{work:?} {level}");
                }
            }
        }
    }

    #[test]
    fn a_second_of_sound_is_counted_over_all_streams() {
        let material = Material::new(FormatId::GSM, &sine(310.0, 8000, 9000.0, 8000));
        assert!((material.seconds() - 1.0).abs() < 1e-9);
        let work = Work::Transcode(FormatId::GSM, FormatId::ILBC30);
        let trial = Trial::new(work, 10, &material).unwrap();
        // Three frames of GSM are two of iLBC.
        assert!((trial.seconds(10) - 0.6).abs() < 1e-9);
        assert_eq!(trial.seconds(11), trial.seconds(10), "there are ten");
    }
}
