//! Speaking: linear samples at any rate into coded frames as they go on the wire.

use base::{FormatId, SampleRate};
use codec::{Encoder, Resampler};

use crate::ear::FRAME_SAMPLES_MAX;

/// Resampler and encoder of one stream.
#[derive(Debug)]
pub(crate) struct Mouth {
    from: SampleRate,
    encoder: Encoder,
    resampler: Option<Resampler>,
}

impl Mouth {
    pub(crate) fn new(from: SampleRate, to: FormatId) -> Self {
        Self { from, encoder: Encoder::new(to), resampler: Resampler::new(from, to.rate()) }
    }
    pub(crate) fn fits(&self, from: SampleRate, to: FormatId) -> bool {
        self.from == from && self.encoder.format() == to
    }
    /// Codes `linear` into `wire`, which has the room of exactly one frame; a rest of it becomes silence.
    pub(crate) fn speak(&mut self, linear: &[i16], wire: &mut [u8]) {
        let format = self.encoder.format();
        let written = match &mut self.resampler {
            None => self.encoder.encode(linear, wire),
            Some(resampler) => {
                let mut wide = [0; FRAME_SAMPLES_MAX + 8];
                let count = resampler.process(linear, &mut wide);
                self.encoder.encode(wide.get(..count).unwrap_or_default(), wire)
            }
        };
        if let Some(rest) = wire.get_mut(written..)
            && !rest.is_empty()
        {
            codec::fill_silence(format, rest);
        }
        to_network_order(format, wire);
    }
}

/// L16 is big-endian on the wire (RFC 3551 §4.5.11); the other formats are bytes.
pub(crate) fn to_network_order(format: FormatId, coded: &mut [u8]) {
    if format.is_linear() {
        codec::swap_bytes(coded);
    }
}
