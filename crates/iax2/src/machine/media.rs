//! Media of a call: full frames where they must be, mini frames else, timestamps that run on (RFC 5456 §6.10, §8.1.2).

use super::call::Call;
use super::orders::Refused;
use super::out::{Event, Out};
use super::state::Core;
use super::{Leg, Machine};
use crate::frame::{Discard, Element, Fields, Full, Kind, Media, Mini, Video, millis, write_element};
use base::{FormatId, Instant, Place};
use core::time::Duration;
use lanes::prefetch;

/// By so much the timestamps of voice may differ from the clock before they follow it, ms: a sender that keeps the pace
/// of its codec gives the listener no jitter of its own.
const DRIFT_MS: u32 = 240;
/// Whenever this bit of the timestamp changes a full frame is sent (RFC 5456 §6.10).
const FULL_EVERY: u32 = 0x8000;
/// Between two requests for a full frame that has not come.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Frames that may be missing in a row; more are a pause of who sends.
const MISSING_MAX: i32 = 10;

/// How one side receives the voice of a call (RFC 5456 §8.6.37 to §8.6.42).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Jitter, ms.
    pub jitter_ms: u32,
    /// Frames that never came, per cent.
    pub loss_percent: u32,
    /// Frames that never came.
    pub lost: u32,
    /// Frames received.
    pub received: u32,
    /// Longest wait in the jitter buffer, ms.
    pub delay_ms: u32,
    /// Frames that came too late to be heard.
    pub dropped: u32,
    /// Frames out of order.
    pub out_of_order: u32,
}

impl Report {
    /// What the other side says in PONG; `None` when it says nothing.
    pub(super) fn told(fields: &Fields<'_>) -> Option<Self> {
        let loss = fields.rr_loss.unwrap_or(0);
        Some(Self {
            received: fields.rr_packets?,
            jitter_ms: fields.rr_jitter.unwrap_or(0),
            loss_percent: loss >> 24,
            lost: loss & LOST_MAX,
            delay_ms: fields.rr_delay.unwrap_or(0).into(),
            dropped: fields.rr_dropped.unwrap_or(0),
            out_of_order: fields.rr_ooo.unwrap_or(0),
        })
    }
    fn elements(&self) -> Vec<u8> {
        let mut data = Vec::new();
        for element in [
            Element::RrJitter(self.jitter_ms),
            Element::RrLoss(self.loss_percent.min(100) << 24 | self.lost.min(LOST_MAX)),
            Element::RrPackets(self.received),
            Element::RrDelay(u16::try_from(self.delay_ms).unwrap_or(u16::MAX)),
            Element::RrDropped(self.dropped),
            Element::RrOutOfOrder(self.out_of_order),
        ] {
            write_element(&element, &mut data);
        }
        data
    }
}

/// Most frames that the element of losses can say.
const LOST_MAX: u32 = 0x00ff_ffff;

/// One direction's latest.
#[derive(Debug, Clone, Copy)]
struct Latest<F> {
    format: Option<F>,
    timestamp: u32,
}

impl<F> Default for Latest<F> {
    fn default() -> Self {
        Self { format: None, timestamp: 0 }
    }
}

/// A piece of a picture, to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// Its format.
    pub format: Media,
    /// It is of the same picture as the piece before.
    pub goes_on: bool,
    /// The picture ends with it.
    pub mark: bool,
    /// Coded bytes.
    pub payload: &'a [u8],
}

/// Where media of a call is. What voice needs comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct State {
    voice_out: Latest<FormatId>,
    /// The timestamp that comes next at the codec's pace.
    next: Option<u32>,
    /// The trunk that voice leaves by, as it was found last.
    trunk: Option<Place>,
    voice_in: Latest<FormatId>,
    /// When something was last heard.
    pub(super) heard: Option<Instant>,
    frames: u32,
    late: u32,
    lost: u32,
    /// When the next frame begins, on the sender's clock.
    follows: Option<u32>,
    /// Jitter, 1/16 ms (RFC 3550 §6.4.1, which PONG speaks of too).
    jitter: u32,
    transit: Option<u32>,
    /// The other side is another one than before, with a clock of its own that no full frame has told yet.
    anew: bool,
    asked: Option<Instant>,
    video_out: Latest<Media>,
    video_in: Latest<Media>,
    /// What becomes of it afterwards, as the driver has said: longest wait, ms, and frames that were too late.
    played: (u32, u32),
    /// What the other side says.
    pub(super) remote: Report,
}

impl State {
    /// Up to the last that a frame of voice touches.
    pub(super) const VOICE_BYTES: usize = core::mem::offset_of!(Self, asked);

    /// How we receive.
    pub(super) fn heard_so_far(&self) -> Report {
        let all = u64::from(self.frames) + u64::from(self.lost);
        Report {
            jitter_ms: self.jitter / 16,
            loss_percent: (u64::from(self.lost) * 100).checked_div(all).unwrap_or(0) as u32,
            lost: self.lost,
            received: self.frames,
            delay_ms: self.played.0,
            dropped: self.played.1,
            out_of_order: self.late,
        }
    }
    /// The elements of PONG (RFC 5456 §6.7.3).
    pub(super) fn report(&self) -> Vec<u8> {
        self.heard_so_far().elements()
    }
    /// Counts a frame of voice, and those that are missing before it.
    fn follow(&mut self, timestamp: u32, format: FormatId, bytes: usize, now: Instant) {
        self.heard = Some(now);
        self.frames = self.frames.wrapping_add(1);
        let length = i32::from(millis(format, bytes));
        let off = self.follows.map_or(0, |follows| timestamp.wrapping_sub(follows) as i32);
        // Frames away from where it should be, the nearer one; whoever has a poor clock loses nothing.
        let frames = off.saturating_add(length / 2).div_euclid(length);
        if (-MISSING_MAX..0).contains(&frames) {
            // It was counted as lost.
            self.lost = self.lost.saturating_sub(1);
            return;
        }
        if let 0..=MISSING_MAX = frames {
            self.lost = self.lost.wrapping_add(frames as u32);
        }
        self.follows = Some(timestamp.wrapping_add(length as u32));
    }
    /// Counts a voice frame and what it says of the way.
    fn count(&mut self, timestamp: u32, clock: u32) {
        let transit = clock.wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let change = (transit.wrapping_sub(before) as i32).unsigned_abs().min(10_000);
            self.jitter = (self.jitter + change).saturating_sub((self.jitter + 8) / 16);
        }
        if !self.anew && (timestamp.wrapping_sub(self.voice_in.timestamp) as i32) < 0 {
            self.late = self.late.wrapping_add(1);
        } else {
            self.voice_in.timestamp = timestamp;
        }
    }
    /// After a transfer both directions begin with full frames, and the clock heard is another one.
    pub(super) fn restart(&mut self) {
        (self.voice_out, self.video_out, self.next) = (Latest::default(), Latest::default(), None);
        (self.follows, self.transit, self.anew) = (None, None, true);
    }
}

/// The timestamp nearest to `latest` that ends in these `bits` bits.
fn unwrap_stamp(latest: u32, low: u32, bits: u32) -> u32 {
    let span = 1u32 << bits;
    let ahead = low.wrapping_sub(latest) & (span - 1);
    // The nearer half is ahead, the other one behind.
    if ahead < span / 2 { latest.wrapping_add(ahead) } else { latest.wrapping_add(ahead).wrapping_sub(span) }
}

/// Voice in a mini frame.
pub(super) fn voice(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    mini: &Mini<'_>,
    now: Instant,
    out: &mut Out,
) {
    let clock = leg.link.clock(now);
    let Some(call) = leg.call() else { return core.discard(Discard::Unexpected) };
    let Some(format) = call.media.voice_in.format.filter(|_| call.is_accepted()) else {
        // RFC 5456 §6.9.3: the full frame before it is missing.
        let soon = call.media.asked.is_some_and(|asked| now - asked < ASK_EVERY);
        if call.is_accepted() && !soon {
            call.media.asked = Some(now);
            leg.link.vnak(now, &mut core.random, out);
        }
        return core.discard(Discard::OutOfOrder);
    };
    let timestamp = unwrap_stamp(call.media.voice_in.timestamp, u32::from(mini.timestamp), 16);
    call.media.follow(timestamp, format, mini.data.len(), now);
    call.media.count(timestamp, clock);
    let payload = out.keep(mini.data);
    out.event(Event::Voice { leg: place, format, timestamp, payload });
}

/// Voice in a trunk that tells no timestamps: it counts from when it comes.
pub(super) fn unstamped(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    data: &[u8],
    now: Instant,
    out: &mut Out,
) {
    let timestamp = leg.link.clock(now);
    let known = leg.call().and_then(|call| {
        call.media.heard = Some(now);
        call.media.voice_in.format
    });
    match known {
        Some(format) => {
            let payload = out.keep(data);
            out.event(Event::Voice { leg: place, format, timestamp, payload });
        }
        None => core.discard(Discard::OutOfOrder),
    }
}

/// Voice in a full frame, which says the format of those that follow.
pub(super) fn full_voice(
    call: &mut Call,
    core: &mut Core,
    place: Place,
    format: Media,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) {
    let Some(format) = format.format() else { return core.discard(Discard::Unexpected) };
    if core::mem::take(&mut call.media.anew) || call.media.voice_in.format.is_none() {
        call.media.voice_in.timestamp = frame.timestamp;
        // What was measured since in short timestamps was measured against the clock before.
        (call.media.follows, call.media.transit) = (None, None);
    }
    call.media.voice_in.format = Some(format);
    // A full frame may have been repeated, so it says nothing of the way.
    call.media.follow(frame.timestamp, format, frame.data.len(), now);
    if (frame.timestamp.wrapping_sub(call.media.voice_in.timestamp) as i32) > 0 {
        call.media.voice_in.timestamp = frame.timestamp;
    }
    let payload = out.keep(frame.data);
    out.event(Event::Voice { leg: place, format, timestamp: frame.timestamp, payload });
}

/// Video in a mini frame.
pub(super) fn video(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    video: &Video<'_>,
    now: Instant,
    out: &mut Out,
) {
    if leg.link.keys.is_some() {
        return core.discard(Discard::Undeciphered);
    }
    let Some(call) = leg.call().filter(|call| call.is_accepted()) else {
        return core.discard(Discard::Unexpected);
    };
    let Some(format) = call.media.video_in.format else { return core.discard(Discard::OutOfOrder) };
    let timestamp = unwrap_stamp(call.media.video_in.timestamp, u32::from(video.timestamp), 15);
    call.media.video_in.timestamp = timestamp;
    call.media.heard = Some(now);
    let payload = out.keep(video.data);
    out.event(Event::Video { leg: place, format, timestamp, mark: video.mark, payload });
}

/// Video in a full frame.
pub(super) fn full_video(
    call: &mut Call,
    place: Place,
    format: Media,
    mark: bool,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) {
    call.media.video_in = Latest { format: Some(format), timestamp: frame.timestamp };
    call.media.heard = Some(now);
    let payload = out.keep(frame.data);
    out.event(Event::Video { leg: place, format, timestamp: frame.timestamp, mark, payload });
}

impl Machine {
    /// Asks for the memory of a leg whose voice comes next; [`Machine::fetch_voice`] follows, a few legs later. Nothing is
    /// looked at, and nothing changes.
    pub fn fetch_leg(&self, leg: Place) {
        if let Some(memory) = self.legs.memory(leg) {
            prefetch(memory, 0..2);
        }
    }
    /// Asks for the memory of its voice.
    pub fn fetch_voice(&self, leg: Place) {
        if let Some(Leg { role: super::Role::Call(call), .. }) = self.legs.get(leg) {
            call.fetch();
        }
    }
    /// What becomes of voice after it was received: the longest wait before it is heard, ms, and frames that came too late
    /// for it. The other side learns it with its next question.
    pub fn set_played(&mut self, leg: Place, delay_ms: u32, dropped: u32) {
        if let Some(call) = self.legs.get_mut(leg).and_then(Leg::call) {
            call.media.played = (delay_ms, dropped);
        }
    }
    /// Sends `millis` of voice. It is sent and forgotten; only the full frame that says the format is repeated until
    /// acknowledged.
    ///
    /// # Errors
    /// When there is no such call, it is not accepted, wants no media, or the format has no bit in the protocol.
    pub fn voice(
        &mut self,
        now: Instant,
        leg: Place,
        format: FormatId,
        millis: u16,
        payload: &[u8],
        out: &mut Out,
    ) -> Result<(), Refused> {
        let bit = Media::of(format).ok_or(Refused::NoFormat)?;
        let Leg { link, role: super::Role::Call(call), closing: false, .. } =
            self.legs.get_mut(leg).ok_or(Refused::NoLeg)?
        else {
            return Err(Refused::NoLeg);
        };
        if !call.is_accepted() || call.quelched {
            return Err(Refused::WrongState);
        }
        let clock = link.clock(now);
        let timestamp = call.media.next.filter(|next| next.abs_diff(clock) <= DRIFT_MS).unwrap_or(clock);
        call.media.next = Some(timestamp.wrapping_add(u32::from(millis)));
        let before =
            core::mem::replace(&mut call.media.voice_out, Latest { format: Some(format), timestamp });
        let known = before.format == Some(format) && before.timestamp / FULL_EVERY == timestamp / FULL_EVERY;
        if !known && link.full_at(now, timestamp, Kind::Voice(bit), payload, &mut self.core.random, out) {
            let deadline = link.deadline();
            if let Some(leg_entry) = self.legs.get_mut(leg) {
                self.core.deadlines.schedule(super::Timer::Leg(leg), &mut leg_entry.scheduled, deadline);
            }
            return Ok(());
        }
        if !known && before.format != Some(format) {
            // Nobody could know what it is.
            call.media.voice_out = before;
            return Err(Refused::WindowFull);
        }
        match call.transfer.as_ref().and_then(|transfer| transfer.media_to()) {
            Some(to) => link.mini(to, timestamp, payload, &mut self.core.random, out),
            None if call.trunk && link.keys.is_none() => {
                let mini = Mini { source: link.ours, timestamp: timestamp as u16, data: payload };
                self.core.trunk(now, link.remote, &mini, &mut call.media.trunk, out);
            }
            None => link.mini(link.remote, timestamp, payload, &mut self.core.random, out),
        }
        Ok(())
    }

    /// Sends a piece of video. It is sent and forgotten, but for the full frame that says the format.
    ///
    /// # Errors
    /// As [`Machine::voice`].
    pub fn video(
        &mut self,
        now: Instant,
        leg: Place,
        piece: &Piece<'_>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let Piece { format, goes_on, mark, payload } = *piece;
        self.with(leg, now, out, |leg, core, out| {
            let keep = super::Fate::Keep;
            let Leg { link, role: super::Role::Call(call), .. } = leg else {
                return (Err(Refused::NoLeg), keep);
            };
            if !call.is_accepted() || call.quelched {
                return (Err(Refused::WrongState), keep);
            }
            let before = call.media.video_out;
            // What belongs together has one time, however long it takes to leave.
            let goes_on = goes_on && before.format == Some(format);
            let timestamp = if goes_on { before.timestamp } else { link.clock(now) };
            let turned = before.timestamp / FULL_EVERY != timestamp / FULL_EVERY;
            if before.format != Some(format) || turned || link.keys.is_some() {
                let kind = Kind::Video(format, mark);
                if !link.full_at(now, timestamp, kind, payload, &mut core.random, out) {
                    return (Err(Refused::WindowFull), keep);
                }
            } else {
                link.video(timestamp, mark, payload, out);
            }
            call.media.video_out = Latest { format: Some(format), timestamp };
            (Ok(()), keep)
        })
        .unwrap_or(Err(Refused::NoLeg))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5456_8_1_2_a_short_timestamp_means_the_nearest_long_one() {
        for (name, latest, low, bits, expected) in [
            ("the next", 0x0001_0000, 0x0014, 16, 0x0001_0014),
            ("across the wrap", 0x0001_fff0, 0x0004, 16, 0x0002_0004),
            ("a late one", 0x0002_0004, 0xfff0, 16, 0x0001_fff0),
            ("the same", 0x0002_0004, 0x0004, 16, 0x0002_0004),
            ("video, across its wrap", 0x0000_fff0, 0x0004, 15, 0x0001_0004),
            ("the end of the clock", 0xffff_fff0, 0x0004, 16, 0x0000_0004),
        ] {
            assert_eq!(unwrap_stamp(latest, low, bits), expected, "{name}");
        }
    }
}
