//! Speaking: linear samples at any rate into coded frames as they go on the wire.

use base::{FormatId, Granule, SampleRate, Wishes};
use codec::{Coders, EncodeTask, Encoder, Resampler};

use crate::ear::Fifo;

/// Room for a packet of the longest kind, milliseconds, besides one frame that began before it.
const PACKET_MS: usize = 60;

/// Resampler and encoder of one stream.
///
/// A packet is spoken in three steps, so that streams can be encoded side by side: [`Self::listen`] takes the samples,
/// [`Self::task`] lends one frame of them to a group, [`Self::speak`] gives the packet. Formats without lanes, and what
/// is left besides whole frames, are encoded by `speak`.
#[derive(Debug)]
pub(crate) struct Mouth {
    from: SampleRate,
    wishes: Wishes,
    encoder: Encoder,
    resampler: Option<Resampler>,
    /// The frame that lanes work on, when the format has them.
    lane: Option<Granule>,
    linear: Fifo,
    coded: Box<[u8]>,
    written: usize,
    /// Bytes of the frame that was lent; 0 while it is not encoded.
    lent: usize,
}

impl Mouth {
    pub(crate) fn new(from: SampleRate, to: FormatId, wishes: Wishes, coders: &Coders) -> Self {
        let encoder = coders.encoder(to, &wishes);
        let lane = encoder.lane();
        let frame = lane.unwrap_or(to.granule());
        let packet = to.rate().0 as usize * PACKET_MS / 1000;
        let frames = packet.div_ceil(frame.samples) + 1;
        Self {
            from,
            wishes,
            encoder,
            resampler: Resampler::new(from, to.rate()),
            lane,
            linear: Fifo::new(frames * frame.samples),
            coded: vec![0; if lane.is_some() { frames * frame.bytes } else { 0 }].into(),
            written: 0,
            lent: 0,
        }
    }
    /// Whether it still serves for sound at this rate and a peer with this format and these wishes.
    pub(crate) fn fits(&self, from: SampleRate, to: FormatId, wishes: Wishes) -> bool {
        self.from == from && self.encoder.format() == to && self.wishes == wishes && !self.encoder.is_orphan()
    }
    /// Whether its encoder is of no use any more.
    pub(crate) fn is_orphan(&self) -> bool {
        self.encoder.is_orphan()
    }
    /// Goes on where a mouth of the same format stands.
    pub(crate) fn take_over(&mut self, from: &Self) {
        self.encoder.take_over(&from.encoder);
        if let Some(resampler) = &mut self.resampler {
            resampler.reset();
        }
        self.linear.skip(usize::MAX);
        let samples = from.linear.filled();
        self.linear.push_with(samples.len(), |room| {
            room.iter_mut().zip(samples).map(|(to, from)| *to = *from).count()
        });
        (self.written, self.lent) = (0, 0);
    }
    pub(crate) fn format(&self) -> FormatId {
        self.encoder.format()
    }
    /// Whether frames of this mouth are encoded in lanes.
    pub(crate) const fn has_lanes(&self) -> bool {
        self.lane.is_some()
    }
    /// Takes samples at the rate they come in.
    pub(crate) fn listen(&mut self, linear: &[i16]) {
        match &mut self.resampler {
            None => self.linear.push_with(linear.len(), |room| {
                room.iter_mut().zip(linear).map(|(to, from)| *to = *from).count()
            }),
            Some(resampler) => {
                let most = resampler.output_max(linear.len());
                self.linear.push_with(most, |room| resampler.process(linear, room));
            }
        }
    }
    /// Whether there is a frame that a group can encode.
    pub(crate) fn is_ready(&self) -> bool {
        self.lane.is_some_and(|frame| {
            self.linear.len() >= frame.samples && self.written + frame.bytes <= self.coded.len()
        })
    }
    /// Whether the frame that was lent has been encoded.
    pub(crate) const fn is_done(&self) -> bool {
        self.lent > 0
    }
    /// Lends the first frame; [`Self::is_ready`] said that there is one.
    pub(crate) fn task(&mut self) -> EncodeTask<'_> {
        self.lent = 0;
        let frame = self.lane.unwrap_or(self.encoder.format().granule());
        EncodeTask {
            encoder: &mut self.encoder,
            linear: self.linear.filled().get(..frame.samples).unwrap_or_default(),
            coded: self.coded.get_mut(self.written..self.written + frame.bytes).unwrap_or_default(),
            bytes: &mut self.lent,
        }
    }
    /// Takes note of the frame that was lent, if it has been encoded.
    pub(crate) fn encoded(&mut self) {
        if self.lent == 0 {
            return;
        }
        let frame = self.lane.unwrap_or(self.encoder.format().granule());
        self.linear.skip(frame.samples);
        self.written += core::mem::take(&mut self.lent);
    }
    /// The test hook: the next group with this mouth in it panics.
    pub(crate) fn poison(&mut self) {
        self.encoder.poison();
    }
    /// Codes what is left into `wire` and returns the bytes of the packet.
    ///
    /// In a format of constant rate `wire` has the room of exactly one packet, and a rest of it becomes silence. What an
    /// external codec has not answered yet is missing; nothing at all is no packet.
    pub(crate) fn speak(&mut self, wire: &mut [u8]) -> usize {
        let format = self.encoder.format();
        let ready = self.written.min(wire.len());
        if let (Some(to), Some(from)) = (wire.get_mut(..ready), self.coded.get(..ready)) {
            to.copy_from_slice(from);
        }
        self.written = 0;
        let rest = wire.get_mut(ready..).unwrap_or_default();
        let granule = format.granule();
        let whole = self.linear.len() / granule.samples * granule.samples;
        let linear = self.linear.filled().get(..whole).unwrap_or_default();
        let bytes = self.encoder.encode_apart(linear, rest);
        if !self.encoder.fills_packets() {
            self.linear.skip(whole);
            return self.encoder.join(wire, ready + bytes);
        }
        self.linear.skip(bytes / granule.bytes.max(1) * granule.samples);
        if let Some(rest) = rest.get_mut(bytes..)
            && !rest.is_empty()
        {
            codec::fill_silence(format, rest);
        }
        // Less than a granule may wait for the next packet; more would be delay that never ends.
        let late = self.linear.len() / granule.samples * granule.samples;
        self.linear.skip(late);
        to_network_order(format, wire);
        wire.len()
    }
}

/// L16 is big-endian on the wire (RFC 3551 §4.5.11); the other formats are bytes.
pub(crate) fn to_network_order(format: FormatId, coded: &mut [u8]) {
    if format.is_linear() {
        codec::swap_bytes(coded);
    }
}
