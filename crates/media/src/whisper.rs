//! What a peer hears beside what it hears anyway: a short clip, the beeps of a recording; and live sound, somebody who
//! speaks to it alone.

use std::sync::Arc;

use base::{AudioSource, Clip, FormatId, Loudness, SampleRate};
use codec::{Resampler, mix};

use crate::ear::FRAME_SAMPLES_MAX;
use crate::shaper::Shaper;
use crate::taps::Taps;

/// Room for what a resampler may give beyond a whole frame.
const SPARE: usize = 8;
/// Most who speak to one peer at once; more are not heard. Supervisors of one agent are two or three.
const MURMURS_MAX: usize = 16;

/// All that is added to what a stream's encoder listens to, and how loud that is made.
#[derive(Default)]
pub(crate) struct Whisper {
    clip: Option<Beep>,
    murmurs: Vec<Murmur>,
    shaper: Option<Shaper>,
}

/// One clip on its way.
struct Beep {
    clip: Arc<Clip>,
    /// Byte that is next.
    offset: usize,
    way: Converter,
}

/// Somebody who speaks.
struct Murmur {
    number: u32,
    source: Box<dyn AudioSource>,
    way: Converter,
}

/// From the rate at which something is said to that of what the encoder listens to.
struct Converter {
    from: SampleRate,
    to: SampleRate,
    resampler: Option<Resampler>,
}

impl Whisper {
    /// Whispers a clip, instead of another one; nothing when it is not linear.
    pub(crate) fn set_clip(&mut self, clip: Arc<Clip>) {
        let way = Converter::new(clip.format);
        self.clip = clip.format.is_linear().then_some(Beep { clip, offset: 0, way });
    }
    /// Lets somebody speak; one with the same number ends.
    pub(crate) fn begin(&mut self, number: u32, format: FormatId, source: Box<dyn AudioSource>) {
        self.end(number);
        if self.murmurs.len() < MURMURS_MAX {
            self.murmurs.push(Murmur { number, source, way: Converter::new(format) });
        }
    }
    pub(crate) fn end(&mut self, number: u32) {
        self.murmurs.retain(|murmur| murmur.number != number);
    }
    /// Whether somebody speaks.
    pub(crate) fn murmurs(&self) -> bool {
        !self.murmurs.is_empty()
    }
    /// Makes all that it hears as loud as is wanted from here on.
    pub(crate) fn shape(&mut self, wanted: Loudness) {
        self.shaper = Shaper::renewed(self.shaper.take(), wanted);
    }
    /// Whether whatever it hears, prompts too, is made for it alone: somebody speaks, or it is made louder.
    pub(crate) fn lasts(&self) -> bool {
        self.murmurs() || self.shaper.is_some()
    }
    /// Whether nothing is left to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.clip.is_none() && !self.lasts()
    }
    /// Forgets a clip that nobody can hear.
    pub(crate) fn drop_clip(&mut self) {
        self.clip = None;
    }
    /// Builds the converters to another rate; never per packet.
    pub(crate) fn prepare(&mut self, rate: SampleRate) {
        self.clip.iter_mut().for_each(|beep| beep.way.prepare(rate));
        self.murmurs.iter_mut().for_each(|murmur| murmur.way.prepare(rate));
    }
    /// Forgets a clip that is over; whether it did.
    pub(crate) fn end_clip(&mut self) -> bool {
        self.clip.take_if(|beep| beep.offset >= beep.clip.data.len()).is_some()
    }
    /// Adds what is next to one frame, which those who listen to the stream hear without it when somebody murmurs. A rate
    /// that was not prepared, because what the stream sends has just changed, is prepared now.
    pub(crate) fn add(&mut self, frame: &mut [i16], rate: SampleRate, taps: Option<&mut Taps>) {
        if let Some(monitors) = taps.and_then(|taps| taps.monitors.as_mut()) {
            monitors.dry(frame, rate);
        }
        let mut linear = [0; FRAME_SAMPLES_MAX];
        if let Some(Beep { clip, offset, way }) = &mut self.clip {
            way.prepare(rate);
            let rest = clip.data.get(*offset..).unwrap_or_default().as_chunks::<2>().0;
            let samples = linear.iter_mut().zip(rest).take(way.wanted(frame.len()));
            let count = samples.map(|(sample, pair)| *sample = i16::from_le_bytes(*pair)).count();
            // A last odd byte is no sample.
            *offset = if count < rest.len() { *offset + 2 * count } else { clip.data.len() };
            way.add(frame, linear.get(..count).unwrap_or_default());
        }
        for Murmur { source, way, .. } in &mut self.murmurs {
            way.prepare(rate);
            let wanted = way.wanted(frame.len()).min(linear.len());
            let room = linear.get_mut(..wanted).unwrap_or_default();
            let count = source.read(room).min(wanted);
            way.add(frame, linear.get(..count).unwrap_or_default());
        }
        if let Some(shaper) = &mut self.shaper {
            shaper.shape(frame, rate);
        }
    }
}

impl Converter {
    fn new(format: FormatId) -> Self {
        Self { from: format.rate(), to: format.rate(), resampler: None }
    }
    fn prepare(&mut self, rate: SampleRate) {
        if self.to != rate {
            self.to = rate;
            self.resampler = Resampler::new(self.from, rate);
        }
    }
    /// Samples that become so many.
    fn wanted(&self, samples: usize) -> usize {
        samples * self.from.0 as usize / self.to.0.max(1) as usize
    }
    fn add(&mut self, frame: &mut [i16], said: &[i16]) {
        match &mut self.resampler {
            None => mix::add(frame, said),
            Some(resampler) => {
                let mut converted = [0; FRAME_SAMPLES_MAX + SPARE];
                let count = resampler.process(said, &mut converted).min(frame.len());
                mix::add(frame, converted.get(..count).unwrap_or_default());
            }
        }
    }
}

impl core::fmt::Debug for Whisper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Whisper({}, {} murmurs)", self.clip.is_some(), self.murmurs.len())
    }
}
