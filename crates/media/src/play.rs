//! Playing: a cursor into a shared clip, and an encoder of its own where a stream cannot send what is shared.

use std::sync::Arc;

use base::{Clip, FormatId, Instant, Packets, Plan, PlayId};
use codec::{Coders, Decoder};

use crate::ear::{FRAME_SAMPLES_MAX, Fifo};
use crate::mouth::{Mouth, to_network_order};

/// What is being played.
#[derive(Debug)]
pub(crate) struct Playing {
    /// `None` for music.
    pub(crate) play: Option<PlayId>,
    clip: Arc<Clip>,
    pub(crate) offset: usize,
    /// Where the cursor goes at the end.
    loop_from: Option<usize>,
    /// Bytes that are played: whole granules.
    end: usize,
    way: Way,
}

/// How a clip gets into a stream's packets.
#[derive(Debug)]
enum Way {
    /// Its bytes are those of the stream's format.
    Copied,
    /// Its [`base::Packets`] are such as the stream sends.
    Packets,
    /// The stream has an encoder of its own.
    Voice(Box<Voice>),
}

#[derive(Debug)]
struct Voice {
    decoder: Decoder,
    fifo: Fifo,
    /// `None` while a group encodes with it.
    mouth: Option<Box<Mouth>>,
}

impl Playing {
    /// A clip from `offset`; `None` when the stream cannot send it.
    pub(crate) fn clip(
        play: PlayId,
        clip: Arc<Clip>,
        offset: usize,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let loop_from = clip.loop_from;
        Self::new(Some(play), clip, offset, loop_from, plan, coders)
    }
    /// Music at the place where everyone is who began at `epoch`; `None` when the stream cannot send it.
    pub(crate) fn music(
        clip: Arc<Clip>,
        epoch: Instant,
        now: Instant,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let mut playing = Self::new(None, clip, 0, Some(0), plan, coders)?;
        let ptime_ms = plan.ptime_ms;
        let granule = playing.clip.format.granule().bytes;
        let frame = playing.clip.format.bytes_in(u16::from(ptime_ms)).max(granule) as u64;
        let frames = (now - epoch).as_millis() as u64 / u64::from(ptime_ms.max(1));
        let offset = frames.wrapping_mul(frame).checked_rem(playing.end as u64).unwrap_or(0) as usize;
        playing.offset = offset - offset % granule;
        Some(playing)
    }
    /// A clip once, of whose end nobody hears; `None` when the stream cannot send it.
    pub(crate) fn aside(clip: Arc<Clip>, plan: &Plan, coders: &Coders) -> Option<Self> {
        Self::new(None, clip, 0, None, plan, coders)
    }
    fn new(
        play: Option<PlayId>,
        clip: Arc<Clip>,
        offset: usize,
        loop_from: Option<usize>,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let granule = clip.format.granule().bytes;
        let end = clip.data.len() - clip.data.len() % granule;
        let offset = offset.min(end);
        let mut playing = Self {
            play,
            clip,
            offset: offset - offset % granule,
            loop_from: loop_from.filter(|&from| from < end),
            end,
            way: Way::Copied,
        };
        playing.retarget(plan, coders).then_some(playing)
    }
    /// The stream sends by another plan from here on; false when the clip cannot be turned into its format.
    pub(crate) fn retarget(&mut self, plan: &Plan, coders: &Coders) -> bool {
        let (from, format, wishes) = (self.clip.format, plan.format, plan.wishes);
        if !coders.coded().leads(from, format) {
            return false;
        }
        let suits = |packets: &Packets| packets.suits(format, plan.ptime_ms, &wishes);
        if from == format {
            self.way = Way::Copied;
        } else if self.clip.packets.as_ref().is_some_and(suits) {
            self.way = Way::Packets;
        } else if self.mouth().is_none_or(|mouth| !mouth.fits(from.rate(), format, wishes)) {
            let room = from.rate().0 as usize * 80 / 1000;
            self.way = Way::Voice(Box::new(Voice {
                decoder: coders.decoder(from),
                fifo: Fifo::new(room),
                mouth: Some(Box::new(Mouth::new(from.rate(), format, wishes, coders))),
            }));
        }
        true
    }
    /// Whether the last byte has been taken.
    pub(crate) const fn is_over(&self) -> bool {
        self.offset >= self.end && self.loop_from.is_none()
    }
    /// The encoder that this stream has for the clip; none when it sends what is shared, or a group has it.
    pub(crate) fn mouth(&mut self) -> Option<&mut Mouth> {
        self.mouth_seat().and_then(|seat| seat.as_deref_mut())
    }
    /// Where that encoder belongs.
    pub(crate) fn mouth_seat(&mut self) -> Option<&mut Option<Box<Mouth>>> {
        match &mut self.way {
            Way::Voice(voice) => Some(&mut voice.mouth),
            Way::Copied | Way::Packets => None,
        }
    }
    /// Moves the cursor on over at most `most` bytes, from the end to where the clip goes round; which they are.
    fn next(&mut self, most: usize) -> core::ops::Range<usize> {
        if self.offset >= self.end {
            let Some(from) = self.loop_from else { return self.end..self.end };
            self.offset = from;
        }
        let start = self.offset;
        self.offset = (start + most).min(self.end);
        start..self.offset
    }
    /// Fills `wire`, one packet of `format`, from what is shared and returns its bytes; the end is padded with silence.
    pub(crate) fn fill(&mut self, format: FormatId, wire: &mut [u8]) -> usize {
        if let Way::Packets = self.way {
            return self.fill_packet(wire);
        }
        let mut filled = 0;
        while filled < wire.len() {
            let piece = self.next(wire.len() - filled);
            let piece = self.clip.data.get(piece).unwrap_or_default();
            let Some(room) = wire.get_mut(filled..) else { break };
            if piece.is_empty() {
                codec::fill_silence(format, room);
                break;
            }
            room.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
            filled += piece.len();
        }
        to_network_order(format, wire);
        wire.len()
    }
    /// The packet at the cursor: nothing where silence is not sent.
    fn fill_packet(&mut self, wire: &mut [u8]) -> usize {
        let frame = self.clip.format.bytes_in(Packets::MS.into());
        let at = self.next(frame).start / frame.max(1);
        let packet = self.clip.packets.as_ref().and_then(|packets| packets.get(at)).unwrap_or_default();
        wire.iter_mut().zip(packet).map(|(to, from)| *to = *from).count()
    }
    /// Lets the stream's own encoder listen to the next `ms`; false when it has none.
    pub(crate) fn listen(&mut self, ms: u8) -> bool {
        let source = self.clip.format;
        let granule = source.granule();
        let samples = (source.rate().0 as usize * usize::from(ms) / 1000).min(FRAME_SAMPLES_MAX);
        loop {
            let Way::Voice(voice) = &self.way else { return false };
            let Some(missing) = samples.checked_sub(voice.fifo.len()).filter(|missing| *missing > 0) else {
                break;
            };
            let piece = self.next(missing.div_ceil(granule.samples) * granule.bytes);
            let count = piece.len() / granule.bytes * granule.samples;
            let Self { way: Way::Voice(voice), clip, .. } = self else { return false };
            if count == 0 {
                break;
            }
            let piece = clip.data.get(piece).unwrap_or_default();
            voice.fifo.push_with(count, |room| voice.decoder.decode(piece, room));
        }
        let Way::Voice(voice) = &mut self.way else { return false };
        let mut linear = [0; FRAME_SAMPLES_MAX];
        let linear = linear.get_mut(..samples).unwrap_or_default();
        voice.fifo.take(linear);
        let Some(mouth) = &mut voice.mouth else { return false };
        mouth.listen(linear);
        true
    }
}
