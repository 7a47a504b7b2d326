//! Playing: a cursor into a shared clip.

use std::sync::Arc;

use base::{Clip, FormatId, Instant, Plan, PlayId};
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
    /// Only when the clip is not in the stream's format.
    voice: Option<Box<Voice>>,
}

#[derive(Debug)]
struct Voice {
    decoder: Decoder,
    fifo: Fifo,
    mouth: Mouth,
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
            voice: None,
        };
        playing.retarget(plan, coders).then_some(playing)
    }
    /// The stream sends by another plan from here on; false when the clip cannot be turned into its format.
    pub(crate) fn retarget(&mut self, plan: &Plan, coders: &Coders) -> bool {
        let (from, format, wishes) = (self.clip.format, plan.format, plan.wishes);
        if !coders.coded().leads(from, format) {
            return false;
        }
        if from == format {
            self.voice = None;
        } else if self.voice.as_ref().is_none_or(|voice| !voice.mouth.fits(from.rate(), format, wishes)) {
            let room = from.rate().0 as usize * 80 / 1000;
            self.voice = Some(Box::new(Voice {
                decoder: coders.decoder(from),
                fifo: Fifo::new(room),
                mouth: Mouth::new(from.rate(), format, wishes, coders),
            }));
        }
        true
    }
    /// Whether the last byte has been taken.
    pub(crate) const fn is_over(&self) -> bool {
        self.offset >= self.end && self.loop_from.is_none()
    }
    /// Fills `wire`, one packet of `format` and `ms`, and returns its bytes; the end is padded with silence.
    pub(crate) fn fill(&mut self, format: FormatId, ms: u8, wire: &mut [u8]) -> usize {
        let Self { clip, offset, loop_from, end, voice, .. } = self;
        let clip_bytes = clip.data.get(..*end).unwrap_or_default();
        let mut next = |most: usize| -> &[u8] {
            if *offset >= *end {
                let Some(from) = *loop_from else { return &[] };
                *offset = from;
            }
            let stop = (*offset + most).min(*end);
            let piece = clip_bytes.get(*offset..stop).unwrap_or_default();
            *offset = stop;
            piece
        };
        let Some(voice) = voice else {
            let mut filled = 0;
            while let Some(room) = wire.get_mut(filled..).filter(|room| !room.is_empty()) {
                let piece = next(room.len());
                if piece.is_empty() {
                    codec::fill_silence(format, room);
                    break;
                }
                room.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
                filled += piece.len();
            }
            to_network_order(format, wire);
            return wire.len();
        };
        let source = clip.format;
        let granule = source.granule();
        let samples = (source.rate().0 as usize * usize::from(ms) / 1000).min(FRAME_SAMPLES_MAX);
        while voice.fifo.len() < samples {
            let granules = (samples - voice.fifo.len()).div_ceil(granule.samples);
            let piece = next(granules * granule.bytes);
            let count = piece.len() / granule.bytes * granule.samples;
            if count == 0 {
                break;
            }
            voice.fifo.push_with(count, |room| voice.decoder.decode(piece, room));
        }
        let mut linear = [0; FRAME_SAMPLES_MAX];
        let linear = linear.get_mut(..samples).unwrap_or_default();
        voice.fifo.take(linear);
        voice.mouth.listen(linear);
        voice.mouth.speak(wire)
    }
}
