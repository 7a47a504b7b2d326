//! The decoder: GSM 06.10 §4.3, and what it does without a frame (GSM 06.11).

use super::math::mult_r;
use super::reflection::{Coefficients, STRETCHES, dequantise, interpolate};
use super::{
    FRAME_BYTES, FRAME_SAMPLES, Frame, LTP_PAST, MEMORY, QLB, SILENCE, SUBFRAME, Subframe, has_signature,
    pulses,
};

/// By how much the coded block amplitude falls with each further lost frame (GSM 06.11 §5): 63 is gone after 16.
const MUTING_STEP: u8 = 4;

/// GSM 06.10 decoder of one stream.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// The last lag in its valid range.
    lag: u8,
    /// LARs of the frame before, decoded.
    lar: [i16; 8],
    /// Memory of the short-term synthesis filter.
    v: [i16; 9],
    /// De-emphasis memory.
    msr: i16,
    /// The last 120 samples of the reconstructed short-term residual, oldest first.
    pub(super) past: [i16; LTP_PAST],
    /// The last frame, for concealment.
    last: [u8; FRAME_BYTES],
    /// Frames concealed since the last good one.
    lost: u8,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { lag: 40, lar: [0; 8], v: [0; 9], msr: 0, past: [0; LTP_PAST], last: SILENCE, lost: 0 }
    }
}

impl Decoder {
    /// A decoder in its initial state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a frame; `false` when it had no signature and was concealed.
    pub fn decode(&mut self, frame: &[u8; FRAME_BYTES], linear: &mut [i16; FRAME_SAMPLES]) -> bool {
        (self.last, self.lost) = self.frame_for(frame);
        self.synthesise(&Frame::unpack(&self.last).unwrap_or_default(), linear);
        self.lost == 0
    }

    /// Fills in for a frame that never came: repeats the last one, then mutes it (GSM 06.11 §5).
    pub fn conceal(&mut self, linear: &mut [i16; FRAME_SAMPLES]) {
        self.decode(&[0; FRAME_BYTES], linear);
    }

    /// The frame to decode when this one arrives, and how many have been lost then: itself, or without a signature the last
    /// one, muted.
    pub(super) fn frame_for(&self, arrived: &[u8; FRAME_BYTES]) -> ([u8; FRAME_BYTES], u8) {
        if has_signature(arrived) {
            return (*arrived, 0);
        }
        let mut last = self.last;
        if self.lost > 0 {
            let mut frame = Frame::unpack(&last).unwrap_or_default();
            for sub in &mut frame.sub {
                sub.amplitude = sub.amplitude.saturating_sub(MUTING_STEP);
            }
            frame.pack(&mut last);
            if frame.sub.iter().all(|sub| sub.amplitude == 0) {
                last = SILENCE;
            }
        }
        (last, self.lost.saturating_add(1))
    }

    /// The state besides the past, as lanes keep it.
    pub(super) fn store(&self, memory: &mut [i16; MEMORY]) {
        let (head, rest) = memory.split_at_mut(2);
        head.copy_from_slice(&[self.lag.into(), self.msr]);
        for (slot, &word) in rest.iter_mut().zip(self.lar.iter().chain(&self.v)) {
            *slot = word;
        }
    }

    /// Takes back what [`Self::store`] gave, after a frame that [`Self::frame_for`] chose.
    pub(super) fn recall(&mut self, memory: &[i16; MEMORY], frame: [u8; FRAME_BYTES], lost: u8) {
        let [lag, msr, rest @ ..] = memory;
        (self.lag, self.msr) = (*lag as u8, *msr);
        for (slot, &word) in self.lar.iter_mut().chain(&mut self.v).zip(rest) {
            *slot = word;
        }
        (self.last, self.lost) = (frame, lost);
    }

    /// Decodes parameters.
    pub fn synthesise(&mut self, frame: &Frame, linear: &mut [i16; FRAME_SAMPLES]) {
        for (sub, out) in frame.sub.iter().zip(linear.as_chunks_mut().0) {
            self.long_term(sub, out);
        }
        let lar = dequantise(&frame.lar);
        let filters = interpolate(&self.lar, &lar);
        self.lar = lar;
        for (filter, stretch) in filters.iter().zip(STRETCHES) {
            self.short_term_filter(filter, &mut linear[stretch]);
        }
        // De-emphasis, upscaling, truncation to 13 bits (§4.3.5 to §4.3.7).
        for sample in linear {
            self.msr = sample.saturating_add(mult_r(self.msr, 28180));
            *sample = self.msr.saturating_add(self.msr) & !7;
        }
    }

    /// Long-term synthesis of one sub-frame (§4.3.2).
    fn long_term(&mut self, sub: &Subframe, out: &mut [i16; SUBFRAME]) {
        if (40..=LTP_PAST as u8).contains(&sub.lag) {
            self.lag = sub.lag;
        }
        let gain = QLB[usize::from(sub.gain & 3)];
        let excitation = pulses::decode(sub);
        let source = self.past.iter().skip(LTP_PAST - usize::from(self.lag));
        for ((slot, e), &past) in out.iter_mut().zip(excitation).zip(source) {
            *slot = e.saturating_add(mult_r(gain, past));
        }
        self.past.copy_within(SUBFRAME.., 0);
        self.past[LTP_PAST - SUBFRAME..].copy_from_slice(out);
    }

    /// Short-term synthesis filter (§4.3.4), in place.
    fn short_term_filter(&mut self, filter: &Coefficients, signal: &mut [i16]) {
        for sample in signal {
            let mut sri = *sample;
            for (i, &rrp) in filter.iter().enumerate().rev() {
                sri = sri.saturating_sub(mult_r(rrp, self.v[i]));
                self.v[i + 1] = self.v[i].saturating_add(mult_r(rrp, sri));
            }
            self.v[0] = sri;
            *sample = sri;
        }
    }
}
