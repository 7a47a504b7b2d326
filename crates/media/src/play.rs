//! Playing: a cursor into a shared clip, and an encoder of its own where a stream cannot send what is shared; or live
//! sound through such an encoder.

use std::sync::Arc;

use base::{AudioSource, Clip, FormatId, Instant, Packets, Plan, PlayId, SampleRate};
use codec::{Coders, Decoder};

use crate::ear::{FRAME_SAMPLES_MAX, Fifo};
use crate::mouth::{Mouth, to_network_order};
use crate::taps::Taps;
use crate::whisper::Whisper;

/// What is being played.
#[derive(Debug)]
pub(crate) struct Playing {
    /// `None` for music and live sound.
    pub(crate) play: Option<PlayId>,
    /// Of live sound it has the format and nothing else.
    clip: Arc<Clip>,
    pub(crate) offset: usize,
    /// Where the cursor goes at the end.
    loop_from: Option<usize>,
    /// Bytes that are played: whole granules.
    end: usize,
    /// Somebody murmurs beside it: nothing that is shared can be sent.
    voiced: bool,
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
    source: Source,
    fifo: Fifo,
    /// `None` while a group encodes with it.
    mouth: Option<Box<Mouth>>,
}

/// Where the samples of an encoder come from.
enum Source {
    Clip(Decoder),
    Live(Box<dyn AudioSource>),
}

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Clip(_) => "Clip",
            Self::Live(_) => "Live",
        })
    }
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
    /// Music at the place where everyone is who began at `epoch`; `None` when the stream cannot send it. It never ends: a
    /// clip that does not say where it goes round does so at its beginning.
    pub(crate) fn music(
        clip: Arc<Clip>,
        epoch: Instant,
        now: Instant,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let again = clip.loop_from.or(Some(0));
        let mut playing = Self::new(None, clip, 0, again, plan, coders)?;
        let ptime_ms = plan.ptime_ms;
        let granule = playing.clip.format.granule().bytes;
        let frame = playing.clip.format.bytes_in(u16::from(ptime_ms)).max(granule) as u64;
        let frames = (now - epoch).as_millis() as u64 / u64::from(ptime_ms.max(1));
        let played = frames.wrapping_mul(frame);
        let (from, end) = (playing.loop_from.unwrap_or(0) as u64, playing.end as u64);
        // Once through all of it, and then round and round over what is repeated.
        let offset = match played.checked_sub(end) {
            None => played,
            Some(beyond) => from + beyond.checked_rem(end - from).unwrap_or(0),
        } as usize;
        playing.offset = offset - offset % granule;
        Some(playing)
    }
    /// A clip once, of whose end nobody hears; `None` when the stream cannot send it.
    pub(crate) fn aside(clip: Arc<Clip>, plan: &Plan, coders: &Coders) -> Option<Self> {
        Self::new(None, clip, 0, None, plan, coders)
    }
    /// Live sound in this linear format; `None` when the stream cannot send it.
    pub(crate) fn live(
        format: FormatId,
        source: Box<dyn AudioSource>,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        if !format.is_linear() || !coders.coded().contains(plan.format) {
            return None;
        }
        let mouth = Some(Box::new(Mouth::new(format.rate(), plan.format, plan.wishes, coders)));
        let voice = Voice { source: Source::Live(source), fifo: Fifo::new(0), mouth };
        let clip = Clip { format, data: Arc::from([]), loop_from: None, packets: None };
        Some(Self {
            play: None,
            clip: Arc::new(clip),
            offset: 0,
            loop_from: Some(0),
            end: 0,
            voiced: true,
            way: Way::Voice(Box::new(voice)),
        })
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
            voiced: false,
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
        let is_shared = !self.voiced || !coders.coded().contains(from) || !coders.coded().contains(format);
        if is_shared && from == format {
            self.way = Way::Copied;
        } else if is_shared && self.clip.packets.as_ref().is_some_and(suits) {
            self.way = Way::Packets;
        } else if self.mouth().is_none_or(|mouth| !mouth.fits(from.rate(), format, wishes)) {
            let mouth = Some(Box::new(Mouth::new(from.rate(), format, wishes, coders)));
            if let Way::Voice(voice) = &mut self.way {
                voice.mouth = mouth;
                return true;
            }
            let room = from.rate().0 as usize * 80 / 1000;
            let source = Source::Clip(coders.decoder(from));
            self.way = Way::Voice(Box::new(Voice { source, fifo: Fifo::new(room), mouth }));
        }
        true
    }
    /// The rate at which something is said beside it, when it has an encoder.
    pub(crate) fn rate(&self) -> SampleRate {
        self.clip.format.rate()
    }
    /// What its peer hears is made for it alone from here on, or no longer.
    pub(crate) fn set_voiced(&mut self, voiced: bool, plan: &Plan, coders: &Coders) {
        let is_live = matches!(&self.way, Way::Voice(voice) if matches!(voice.source, Source::Live(_)));
        if self.voiced != voiced && !is_live {
            self.voiced = voiced;
            self.retarget(plan, coders);
        }
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
    /// Lets the stream's own encoder listen to the next `ms`, and to what is murmured beside it; false when it has none.
    pub(crate) fn listen(&mut self, ms: u8, whisper: Option<&mut Whisper>, taps: Option<&mut Taps>) -> bool {
        let rate = self.clip.format.rate();
        let samples = (rate.0 as usize * usize::from(ms) / 1000).min(FRAME_SAMPLES_MAX);
        let mut linear = [0; FRAME_SAMPLES_MAX];
        let linear = linear.get_mut(..samples).unwrap_or_default();
        if !self.sound(linear) {
            return false;
        }
        if let Some(whisper) = whisper.filter(|whisper| whisper.lasts()) {
            whisper.add(linear, rate, taps);
        }
        let Some(mouth) = self.mouth() else { return false };
        mouth.listen(linear);
        true
    }
    /// The next samples; false when there is no encoder for them. Behind the end there is silence.
    fn sound(&mut self, linear: &mut [i16]) -> bool {
        if let Way::Voice(voice) = &mut self.way
            && let Source::Live(source) = &mut voice.source
        {
            source.read(linear);
            return true;
        }
        let granule = self.clip.format.granule();
        let samples = linear.len();
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
            let Voice { source: Source::Clip(decoder), fifo, .. } = &mut **voice else { return false };
            fifo.push_with(count, |room| decoder.decode(piece, room));
        }
        let Way::Voice(voice) = &mut self.way else { return false };
        voice.fifo.take(linear);
        true
    }
}
