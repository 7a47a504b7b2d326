//! Video in rooms: one stream is shown to many, and what these say of its pictures comes to its sender as from one.
//!
//! Who is shown to whom is decided elsewhere ([`base::Command::Show`]). Here packets go to every viewer, each under its own
//! numbers. A sender is asked for whole pictures, and for packets that are missing, as often as it can bear and not as often
//! as there are viewers; estimates of the rate are brought to one.

use core::ops::Range;
use core::time::Duration;

use base::{Combined, Event, Instant, PictureRequest, RoomVideo, StreamId};
use rtp::rtcp::{self, Feedback, Passage};
use srtp::RTCP_TRAILER_MAX;

use crate::packet_io::PacketIo;
use crate::receive::Inbound;
use crate::report::FEEDBACK_BYTES;
use crate::stream::Stream;
use crate::worker::Desk;

/// The shortest pause between two requests for a whole picture, whatever the room says.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// So long a packet that one viewer misses is not asked for again by another: several miss what was lost before it came here.
const MISSED_FOR: Duration = Duration::from_millis(100);
/// Entries of missing packets that a sender is told of in this time.
const MISSED_MAX: usize = 32;
/// Estimates that are older than this say nothing any more.
const ESTIMATE_HOLDS: Duration = Duration::from_secs(10);
/// Payload of the longest packet that is shown to a viewer under a seal.
const PAYLOAD_MAX: usize = 2048;

/// What there is to know of a stream of video in a room.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    /// Whose pictures it sends.
    shown: Option<StreamId>,
    /// Who sends those that it receives.
    viewers: Vec<StreamId>,
    /// When its peer was asked for a whole picture, and when it is asked again.
    asked_at: Option<Instant>,
    due: Option<Instant>,
    /// Number of that request (RFC 5104 §4.3.1.1).
    requests: u8,
    /// Packets that its peer was asked for lately.
    missed: [u16; MISSED_MAX],
    missed_count: usize,
    missed_since: Instant,
    /// What its peer says that it can be sent, bits a second.
    estimate: Option<(u64, Instant)>,
    /// When its peer was told what it may send.
    told_at: Option<Instant>,
}

impl Pictures {
    /// Whose pictures the stream sends.
    pub(crate) const fn shown(&self) -> Option<StreamId> {
        self.shown
    }
    /// When its peer is to be asked for a whole picture.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }
    /// Takes note that a packet is asked for; false when it was just before, or too many were.
    fn misses(&mut self, number: u16, now: Instant) -> bool {
        if now - self.missed_since >= MISSED_FOR {
            (self.missed_since, self.missed_count) = (now, 0);
        }
        let known = self.missed.get(..self.missed_count).unwrap_or_default();
        if known.contains(&number) {
            return false;
        }
        let Some(place) = self.missed.get_mut(self.missed_count) else { return false };
        *place = number;
        self.missed_count += 1;
        true
    }
}

impl<L> Stream<L> {
    /// Whether a stream sends the pictures that this one receives.
    pub(crate) fn is_seen_by(&self, viewer: StreamId) -> bool {
        self.pictures.as_ref().is_some_and(|pictures| pictures.viewers.contains(&viewer))
    }
}

/// What viewers want of a sender.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    picture: bool,
    estimate: bool,
}

impl<P: PacketIo> Desk<'_, P> {
    /// Shows a stream of video the pictures of another one of its room, or nobody's.
    pub(crate) fn show(&mut self, id: StreamId, source: Option<StreamId>) {
        self.hide(id);
        let room = |of: StreamId| self.streams.get(of).filter(|stream| stream.is_video).and_then(|s| s.room);
        let source = source.filter(|source| *source != id && room(id).is_some() && room(id) == room(*source));
        if let (Some(source), Some(stream)) = (source, self.streams.get_mut(id)) {
            stream.pictures.get_or_insert_default().shown = Some(source);
            if let Some(seen) = self.streams.get_mut(source) {
                seen.pictures.get_or_insert_default().viewers.push(id);
            }
            self.ask_picture(source);
        }
        self.plan_routes(id);
    }
    /// A stream shows nothing any more, and is shown to nobody.
    pub(crate) fn part_pictures(&mut self, id: StreamId) {
        self.hide(id);
        let pictures = self.streams.get_mut(id).and_then(|stream| stream.pictures.take());
        for viewer in pictures.into_iter().flat_map(|pictures| pictures.viewers) {
            let pictures = self.streams.get_mut(viewer).and_then(|stream| stream.pictures.as_mut());
            if let Some(shown) = pictures.map(|pictures| &mut pictures.shown) {
                *shown = None;
                self.plan_feed(viewer);
            }
        }
    }
    fn hide(&mut self, id: StreamId) {
        let Some(pictures) = self.streams.get_mut(id).and_then(|s| s.pictures.as_mut()) else { return };
        pictures.estimate = None;
        let source = pictures.shown.take().and_then(|source| self.streams.get_mut(source));
        if let Some(pictures) = source.and_then(|source| source.pictures.as_mut()) {
            pictures.viewers.retain(|viewer| *viewer != id);
        }
    }
    /// The routes of those who see a stream follow its own.
    pub(crate) fn plan_viewers(&mut self, id: StreamId) {
        let mut at = 0;
        while let Some(viewer) = self.viewer(id, at) {
            at += 1;
            self.plan_feed(viewer);
        }
    }

    /// A packet of a stream goes to all who see it.
    pub(crate) fn show_viewers(&mut self, id: StreamId, inbound: &Inbound) {
        let payload = inbound.payload.clone();
        // A seal is put on in place: what it is put on is kept for those who come after.
        let (mut plain, mut is_kept) = ([0; PAYLOAD_MAX], false);
        let mut at = 0;
        while let Some(viewer) = self.viewer(id, at) {
            at += 1;
            if !self.streams.get(viewer).is_some_and(|viewer| viewer.is_sealed) {
                self.forward(viewer, id, inbound.clone());
                continue;
            }
            let Some(kept) = plain.get_mut(..payload.len()) else { continue };
            if !is_kept {
                kept.copy_from_slice(self.scratch.packets.bytes(payload.clone()));
                is_kept = true;
            }
            self.forward(viewer, id, inbound.clone());
            if let Some(room) = self.scratch.packets.bytes_mut(payload.clone()) {
                room.copy_from_slice(kept);
            }
        }
    }
    /// One of those who see a stream.
    fn viewer(&self, id: StreamId, at: usize) -> Option<StreamId> {
        self.streams.get(id)?.pictures.as_ref()?.viewers.get(at).copied()
    }

    /// Asks the peer of a stream for a whole picture, now or when the pause after the last time is over.
    pub(crate) fn ask_picture(&mut self, id: StreamId) {
        let now = self.at;
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.is_video) else { return };
        let video = stream.room.and_then(|room| self.rooms.video(room)).unwrap_or_default();
        let pause = Duration::from_millis(video.pause_ms.into()).max(PAUSE_MIN);
        let pictures = stream.pictures.get_or_insert_default();
        let next = pictures.asked_at.map(|asked| asked + pause).filter(|next| *next > now);
        pictures.due = next;
        if next.is_some() {
            stream.wake_at = Instant::ZERO;
            return;
        }
        // Nothing has come yet: what comes begins with a whole picture.
        let Some(origin) = stream.reception.ssrc() else { return };
        pictures.asked_at = Some(now);
        pictures.requests = pictures.requests.wrapping_add(1);
        let ours = stream.out.ssrc();
        let entry = {
            let [o0, o1, o2, o3] = origin.to_be_bytes();
            [o0, o1, o2, o3, pictures.requests, 0, 0, 0]
        };
        let request = match stream.plan.picture {
            PictureRequest::Signalling => return self.events.push(Event::PictureWanted { stream: id }),
            PictureRequest::Pli => Feedback::Pli(origin),
            PictureRequest::Fir => Feedback::Fir(&entry),
        };
        self.tell_sender(id, Passage { about: origin, origin, sender: ours }, &request);
    }
    /// Sends feedback of ours to the peer of a stream.
    fn tell_sender(&mut self, id: StreamId, passage: Passage, feedback: &Feedback<'_>) {
        let mut buffer = [0; FEEDBACK_BYTES + RTCP_TRAILER_MAX];
        let room = buffer.get_mut(..FEEDBACK_BYTES).unwrap_or_default();
        let length = crate::report::feedback_compound(passage, room, |writer| {
            writer.feedback(feedback, passage, Some);
        });
        if length > 0
            && self.put_control(id, &mut buffer, length).is_some()
            && let Some(stream) = self.streams.get_mut(id)
        {
            stream.report.reported = true;
        }
    }

    /// What a viewer's peer says of the pictures of `source`.
    pub(crate) fn judge_feedback(&mut self, id: StreamId, source: StreamId, packet: Range<usize>) {
        let (now, mut wanted) = (self.at, Wanted::default());
        let Some(viewer) = self.streams.get(id) else { return };
        let about = viewer.out.ssrc();
        let Some(origin) = self.streams.get(source) else { return };
        let Some(ssrc) = origin.reception.ssrc() else { return };
        let (key, ours) = (origin.source_key(ssrc), origin.out.ssrc());
        // Room for what is missing, which is told under the sender's numbers.
        let (mut entries, mut count) = ([[0; 4]; MISSED_MAX], 0);
        let mut estimate = None;
        let Ok(compound) = rtcp::Compound::parse(self.scratch.packets.bytes(packet)) else { return };
        for part in compound {
            let rtcp::Packet::Feedback(feedback) = part else { continue };
            match feedback {
                Feedback::Pli(media) => wanted.picture |= media == about,
                Feedback::Fir(list) => {
                    let mut of = list.as_chunks::<8>().0.iter().take(rtcp::SOURCES_MAX);
                    wanted.picture |=
                        of.any(|[m0, m1, m2, m3, ..]| about.to_be_bytes() == [*m0, *m1, *m2, *m3]);
                }
                Feedback::Nack(media, list) if media == about => {
                    for [p0, p1, b0, b1] in list.as_chunks::<4>().0.iter().take(rtcp::NACKS_MAX) {
                        let Some(viewer) = self.streams.get(id) else { break };
                        let Some(number) = viewer.out.origin(key, u16::from_be_bytes([*p0, *p1])) else {
                            continue;
                        };
                        let pictures =
                            self.streams.get_mut(source).and_then(|source| source.pictures.as_mut());
                        if pictures.is_some_and(|pictures| pictures.misses(number, now))
                            && let Some(entry) = entries.get_mut(count)
                        {
                            let [n0, n1] = number.to_be_bytes();
                            (*entry, count) = ([n0, n1, *b0, *b1], count + 1);
                        }
                    }
                }
                Feedback::Nack(..) => {}
                Feedback::Remb(rate, _) => estimate = Some(rtcp::remb_rate(rate)),
            }
        }
        if let Some(pictures) = self.streams.get_mut(id).and_then(|stream| stream.pictures.as_mut())
            && let Some(rate) = estimate
        {
            (pictures.estimate, wanted.estimate) = (Some((rate, now)), true);
        }
        let passage = Passage { about: ssrc, origin: ssrc, sender: ours };
        if let Some(entries) = entries.get(..count).filter(|entries| !entries.is_empty()) {
            self.tell_sender(source, passage, &Feedback::Nack(ssrc, entries.as_flattened()));
        }
        if wanted.picture {
            self.ask_picture(source);
        }
        if wanted.estimate {
            self.tell_estimate(source, passage);
        }
    }
    /// Tells a sender what rate gets through, when it is time to.
    fn tell_estimate(&mut self, source: StreamId, passage: Passage) {
        let now = self.at;
        let Some(room) = self.streams.get(source).and_then(|stream| stream.room) else { return };
        let Some(RoomVideo { estimates, .. }) = self.rooms.video(room) else { return };
        let interval = Duration::from_millis(estimates.interval_ms.into());
        let Some(pictures) = self.streams.get(source).and_then(|stream| stream.pictures.as_ref()) else {
            return;
        };
        if interval.is_zero() || pictures.told_at.is_some_and(|told| now - told < interval) {
            return;
        }
        let viewers = if estimates.of_all { self.rooms.screens(room) } else { pictures.viewers.as_slice() };
        let said = viewers.iter().filter_map(|viewer| self.streams.get(*viewer)?.pictures.as_ref()?.estimate);
        let said = said.filter(|(_, at)| now - *at < ESTIMATE_HOLDS).map(|(rate, _)| rate);
        let rate = match (estimates.forced, estimates.combined) {
            (Some(rate), _) => Some(u64::from(rate)),
            (None, Combined::Lowest) => said.min(),
            (None, Combined::Highest) => said.max(),
            (None, Combined::Average) => {
                let (sum, count) =
                    said.fold((0_u128, 0_u128), |(sum, n), rate| (sum + u128::from(rate), n + 1));
                sum.checked_div(count).and_then(|mean| u64::try_from(mean).ok())
            }
        };
        let Some(rate) = rate else { return };
        if let Some(pictures) = self.streams.get_mut(source).and_then(|stream| stream.pictures.as_mut()) {
            pictures.told_at = Some(now);
        }
        let about = passage.about.to_be_bytes();
        self.tell_sender(source, passage, &Feedback::Remb(rtcp::remb_of(rate), &about));
    }
}
