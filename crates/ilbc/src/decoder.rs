//! The decoder of one stream, plainly (RFC 3951 §4).

mod conceal;
mod enhancer;
mod excitation;
mod group;
mod synthesis;

use std::marker::PhantomData;

use crate::bits::Frame;
use crate::tables::LSF_MEAN;
use crate::{Lpc, Lsf, Mode, SAMPLES_MAX, SUB_BLOCKS_MAX, Shape, lsf};
use conceal::Concealer;
use enhancer::{Enhancer, HISTORY};
use synthesis::Synthesis;

pub use group::{DecodeJob, decode, decode_fast};

/// Decodes one stream of frames.
///
/// The arithmetic is that of the reference's floating-point code without contraction, bit for bit on every frame that is
/// received and, where the reference does not read memory that is not its own, on every concealed one.
#[derive(Debug, Clone)]
pub struct Decoder<M: Mode> {
    enhancer: Enhancer,
    synthesis: Synthesis,
    concealer: Concealer,
    lsf: Lsf,
    /// Filters of the last two sub-blocks.
    filters: [Lpc; 2],
    /// Pitch lag to conceal a next frame with, as the enhancer found it.
    lag: usize,
    enhances: bool,
    mode: PhantomData<M>,
}

/// A payload was no frame: its length is another's, its last bit marks it as empty, or it names sub-blocks that do not
/// exist. Its frame was concealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unusable;

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the payload is no iLBC frame of this mode")
    }
}

impl std::error::Error for Unusable {}

/// A filter that changes nothing.
const IDENTITY: Lpc = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

impl<M: Mode> Decoder<M> {
    /// A decoder at the beginning of a stream. With `enhance` the output is smoother, and later by 5 ms (20 ms frames) or
    /// 10 ms; it costs about as much again.
    pub fn new(enhance: bool) -> Self {
        Self {
            enhancer: Enhancer::new(),
            synthesis: Synthesis::default(),
            concealer: Concealer::new(),
            lsf: LSF_MEAN,
            filters: [IDENTITY; 2],
            lag: 20,
            enhances: enhance,
            mode: PhantomData,
        }
    }

    /// Decodes a payload into a frame of samples.
    ///
    /// # Errors
    /// [`Unusable`] is a fault to count; the frame was then filled by concealment.
    pub fn decode(&mut self, payload: &[u8], pcm: &mut M::Pcm) -> Result<(), Unusable> {
        let shape = M::shape();
        let Some(frame) = Frame::unpack(shape, payload) else {
            self.conceal(pcm);
            return Err(Unusable);
        };
        self.decode_frame(&frame, pcm);
        Ok(())
    }

    fn decode_frame(&mut self, frame: &Frame, pcm: &mut M::Pcm) {
        let shape = M::shape();
        let mut sets = frame.lsf.map(lsf::dequantise);
        sets.iter_mut().for_each(lsf::stabilise);
        let mut filters = [IDENTITY; SUB_BLOCKS_MAX];
        lsf::interpolate_filters(shape, &self.lsf, &sets, &mut filters);
        self.lsf = sets[shape.lsf_sets - 1];
        let mut residual = [0.0; SAMPLES_MAX];
        excitation::residual(shape, frame, &filters, &mut residual);
        let after_loss = self.concealer.is_lost();
        self.concealer.received();
        self.finish(shape, &residual, &filters, after_loss, pcm.as_mut());
    }

    /// Fills a frame that was lost.
    pub fn conceal(&mut self, pcm: &mut M::Pcm) {
        let shape = M::shape();
        let before = &self.enhancer.history[HISTORY - shape.samples..];
        let mut residual = [0.0; SAMPLES_MAX];
        let after_loss = self.concealer.is_lost();
        let lag = if self.enhances { self.lag } else { shape.lag(before) };
        self.concealer.conceal(before, lag, &mut residual[..shape.samples]);
        let filters = [self.filters[1]; SUB_BLOCKS_MAX];
        self.finish(shape, &residual, &filters, after_loss, pcm.as_mut());
    }

    /// What good and concealed frames have in common.
    fn finish(
        &mut self,
        shape: &Shape,
        residual: &[f32; SAMPLES_MAX],
        filters: &[Lpc; SUB_BLOCKS_MAX],
        after_loss: bool,
        pcm: &mut [i16],
    ) {
        let residual = &residual[..shape.samples];
        let filters = &filters[..shape.sub_blocks];
        if self.enhances {
            let mut enhanced = [0.0; SAMPLES_MAX];
            self.lag = self.enhancer.enhance(shape, residual, after_loss, &mut enhanced);
            // The enhanced residual is late by one or two sub-blocks, and so are the filters.
            let filters = self.filters[2 - shape.delay()..].iter().chain(filters).take(shape.sub_blocks);
            self.synthesis.run(&enhanced[..shape.samples], filters, pcm);
        } else {
            self.enhancer.history[HISTORY - shape.samples..].copy_from_slice(residual);
            self.synthesis.run(residual, filters.iter(), pcm);
        }
        self.filters.copy_from_slice(&filters[shape.sub_blocks - 2..]);
    }
}

impl Shape {
    /// Sub-blocks by which the enhancer is late.
    pub(crate) fn delay(&self) -> usize {
        self.sub_blocks / 2 - 1
    }

    /// The pitch lag at the end of a frame of residual, for a decoder without enhancer.
    ///
    /// The reference searches with the last 80 samples of 240, which it has in 30 ms frames only; 20 ms frames search with
    /// their last 40, which leaves room for the same lags.
    fn lag(&self, frame: &[f32]) -> usize {
        let start = self.samples - if self.samples < SAMPLES_MAX { 40 } else { 80 };
        enhancer::best_lag(20..120, |lag| enhancer::correlation(&frame[start..], &frame[start - lag..]))
    }
}
