//! A short clip that a peer hears beside what it hears anyway: the beeps of a recording.

use std::sync::Arc;

use base::{Clip, SampleRate};
use codec::{Resampler, mix};

use crate::ear::FRAME_SAMPLES_MAX;

/// Room for what a resampler may give beyond a whole frame.
const SPARE: usize = 8;

/// One clip on its way into what a stream's encoder listens to.
#[derive(Debug)]
pub(crate) struct Whisper {
    clip: Arc<Clip>,
    /// Byte that is next.
    offset: usize,
    /// To the rate of what the encoder listens to.
    to: SampleRate,
    resampler: Option<Resampler>,
}

impl Whisper {
    /// `None` for a clip that is not linear.
    pub(crate) fn new(clip: Arc<Clip>) -> Option<Self> {
        let to = clip.format.rate();
        clip.format.is_linear().then_some(Self { clip, offset: 0, to, resampler: None })
    }
    /// Builds the converter to another rate; never per packet.
    pub(crate) fn prepare(&mut self, rate: SampleRate) {
        if self.to != rate {
            self.to = rate;
            self.resampler = Resampler::new(self.clip.format.rate(), rate);
        }
    }
    pub(crate) fn is_over(&self) -> bool {
        self.offset >= self.clip.data.len()
    }
    /// Adds what is next to one frame at the rate that was prepared.
    pub(crate) fn add(&mut self, frame: &mut [i16]) {
        let rates = (self.clip.format.rate().0 as usize, self.to.0.max(1) as usize);
        let wanted = frame.len() * rates.0 / rates.1;
        let rest = self.clip.data.get(self.offset..).unwrap_or_default().as_chunks::<2>().0;
        let mut linear = [0; FRAME_SAMPLES_MAX];
        let samples = linear.iter_mut().zip(rest).take(wanted);
        let count = samples.map(|(sample, pair)| *sample = i16::from_le_bytes(*pair)).count();
        // A last odd byte is no sample.
        self.offset = if count < rest.len() { self.offset + 2 * count } else { self.clip.data.len() };
        let said = linear.get(..count).unwrap_or_default();
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
