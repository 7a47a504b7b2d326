//! The visit of a stream in its slot: timers, ear and taps, and the one frame that it sends.

use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;

use base::{DtmfMode, Event, FormatId, Listener, PlayEnd, StreamId};
use rtp::{Discard, EventEdge, HEADER_BYTES, Header, Stamp};
use srtp::{RTCP_TRAILER_MAX, RTP_TRAILER_MAX};

use crate::digits;
use crate::groups::{Step, Turn};
use crate::packet_io::PacketIo;
use crate::phase::Phase;
use crate::receive::Inbound;
use crate::report::COMPOUND_BYTES;
use crate::stream::{Feed, Stream};
use crate::taps::Change;
use crate::trace::Carried;
use crate::worker::{Desk, Scratch};

/// Visits ahead of the present one for whose streams memory is asked for.
const AHEAD: usize = 8;

/// Payload type of comfort noise (RFC 3551 §6).
const COMFORT_NOISE: u8 = 13;
/// Its lowest level: -127 dBov (RFC 3389 §3.1).
const QUIETEST: u8 = 127;

impl<P: PacketIo> Desk<'_, P> {
    /// Visits a row of streams from `seat` on, up to one that still has a turn. `visited` is the last one.
    pub(crate) fn visit_row(&mut self, ms: u64, seat: &mut usize, visited: &mut u32) {
        (*seat..*seat + AHEAD).for_each(|seat| self.fetch_seat(ms, seat));
        loop {
            self.fetch_seat(ms, *seat + AHEAD);
            if let Some(slot) = self.wheel.at(ms, *seat + AHEAD / 2) {
                self.streams.fetch_player(slot);
            }
            *seat += 1;
            self.visit(*visited);
            let Some(slot) = self.wheel.at(ms, *seat) else { return };
            if self.streams.at(slot).is_some_and(|stream| stream.ends_turns()) {
                return;
            }
            *visited = slot;
        }
    }
    fn fetch_seat(&self, ms: u64, seat: usize) {
        if let Some(slot) = self.wheel.at(ms, seat) {
            self.streams.fetch_visit(slot);
        }
    }

    /// One visit, due at `self.at`.
    fn visit(&mut self, slot: u32) {
        let Some(stream) = self.streams.at(slot) else { return };
        let id = stream.id;
        *self.current = Some(id);
        assert!(!stream.poisoned, "a fault injected into stream {id:?}");
        stream.visits_left = stream.visits_left.saturating_sub(1);
        if stream.visits_left > 0 {
            return;
        }
        stream.visits_left = stream.seat.visits;
        if stream.reroute {
            self.plan_routes(id);
        }
        if self.streams.get(id).is_some_and(|stream| stream.wake_at <= self.at) {
            self.timers(id);
        }
        if self.streams.get(id).is_some_and(|stream| matches!(stream.feed, Feed::Transcode(_))) {
            self.end_whisper(id);
        }
        let Some(stream) = self.streams.get(id) else { return };
        let (ms, dials, plays) = (stream.ptime_ms, stream.dials, stream.play.is_some());
        let source = match stream.feed {
            Feed::Transcode(source) => Some(source),
            Feed::Quiet | Feed::Relay(_) => None,
        };
        let busy = (dials && self.dial(id)) || (plays && self.perform(id));
        if let Some(source) = source {
            self.hear(id, source, ms, !busy);
        } else if !busy {
            self.murmur(id, ms);
        }
        // Taps without a bridge that pulls: the stream pulls its own ear.
        if self.streams.get(id).is_some_and(|s| s.ear.is_some() && !s.ear_is_pulled) {
            self.hear(id, id, ms, false);
        }
    }

    fn timers(&mut self, id: StreamId) {
        let now = self.at;
        if self.streams.get(id).is_some_and(|stream| stream.below.look_at() <= now) {
            self.look_below(id);
        }
        let Some(stream) = self.streams.get_mut(id) else { return };
        let timeout = Duration::from_millis(u64::from(stream.plan.rtp_timeout_ms));
        if !timeout.is_zero() && !stream.timed_out && now - stream.last_rtp >= timeout {
            stream.timed_out = true;
            self.events.push(Event::RtpTimeout { stream: id });
        }
        if stream.events_in.is_busy()
            && let Some(edge) = stream.events_in.tick(now)
        {
            self.digit_edge(id, edge, false);
        }
        if self.streams.get(id).is_some_and(|s| s.report.is_due(now)) {
            self.send_report(id, false);
        }
        self.keep_alive(id);
        if self.streams.get(id).and_then(|s| s.pictures.as_ref()?.due()).is_some_and(|due| due <= now) {
            self.ask_picture(id);
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.wake_at = stream.next_timer();
        }
    }

    /// Keeps the way through NATs open while nothing else is sent, on hold too (RFC 6263 §4.6): one packet of comfort
    /// noise that nobody hears.
    fn keep_alive(&mut self, id: StreamId) {
        let now = self.at;
        let Some(stream) = self.streams.get_mut(id) else { return };
        let every = Duration::from_millis(u64::from(stream.plan.keepalive_ms));
        if every.is_zero() || now - stream.last_sent < every || stream.leg.is_none() {
            return;
        }
        let Some(to) = stream.target else { return };
        self.recall(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let timestamp = stream.out.event_timestamp(now, stream.frame_units);
        let sequence = stream.out.event_sequence();
        let payload = HEADER_BYTES..HEADER_BYTES + 1;
        if let Some(level) = self.scratch.packets.bytes_mut(HEADER_BYTES..HEADER_BYTES + 1) {
            level.fill(QUIETEST);
        }
        self.transmit(id, to, payload, COMFORT_NOISE, Stamp { sequence, timestamp, marker: false });
    }

    /// Sends the RTCP report of a stream; `bye` when it ends.
    pub(crate) fn send_report(&mut self, id: StreamId, bye: bool) {
        let ntp = self.ntp(self.at);
        self.catch_up_both(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let mut buffer = [0; COMPOUND_BYTES + RTCP_TRAILER_MAX];
        let (length, said) =
            stream.write_report(self.at, ntp, bye, buffer.get_mut(..COMPOUND_BYTES).unwrap_or_default());
        if !bye {
            self.events.push(Event::Stats { stream: id, stats: stream.stats(), asked: false });
        }
        if let Some(to) = self.put_control(id, &mut buffer, length) {
            self.tell_report(id, said, true, to);
        }
    }
    /// Sends a compound of RTCP, sealed where the stream is; where it went. The buffer has room for the seal behind it.
    pub(crate) fn put_control(
        &mut self,
        id: StreamId,
        buffer: &mut [u8],
        length: usize,
    ) -> Option<SocketAddr> {
        let stream = self.streams.get_mut(id)?;
        let (to, shared) = stream.rtcp_target()?;
        let leg = stream.leg.as_mut()?;
        let length = match stream.is_sealed {
            true => stream.seal.as_mut().and_then(|seal| seal.seal_rtcp(buffer, length).ok()),
            false => Some(length),
        };
        let Some(length) = length else {
            self.load.discards.count(Discard::NotSealed);
            return None;
        };
        let packet = buffer.get(..length).unwrap_or_default();
        if !self.io.put_rtcp(id.slot, leg, to, shared, packet) {
            self.load.discards.count(Discard::SendFailed);
            return None;
        }
        self.load.sent += 1;
        self.note(true, to, Carried::Rtcp, length);
        Some(to)
    }

    /// `ms` of what `from` hears are due: at once to its taps and, when it `speaks`, out of `to`; or as a turn that waits
    /// for others with the same step.
    fn hear(&mut self, to: StreamId, from: StreamId, ms: u8, speaks: bool) {
        let encoded = self.streams.get(to).and_then(|stream| stream.mouth.as_ref()).filter(|_| speaks);
        let encoded = encoded.filter(|mouth| mouth.has_lanes()).map(|mouth| Step::Encode(mouth.format()));
        let Some(ear) = self.streams.get_mut(from).and_then(|stream| stream.ear.as_mut()) else { return };
        *self.current = Some(from); // its decoder and its sink, whoever pulls
        if !ear.has_lanes() {
            // Without lanes it is decoded at once.
            self.io.phase(Phase::Decode);
        }
        ear.gather(ear.format().rate().0 as usize * usize::from(ms) / 1000);
        let decoded = ear.has_lanes().then_some(Step::Decode(ear.format()));
        if let Some(step) = encoded.or(decoded) {
            let at = self.at;
            self.groups.push(Turn { to, from, at, step, speaks, plays: false, has_frame: false });
            if let Some(stream) = self.streams.get_mut(to) {
                stream.turns += 1;
            }
            self.io.phase(Phase::Jitter);
            return;
        }
        self.io.phase(Phase::Mix);
        if self.pass_on(to, from, ms, speaks) {
            self.utter(to);
        }
        self.io.phase(Phase::Jitter);
    }

    /// What `from` heard goes to its taps and, when it `speaks`, with what is whispered into the mouth of `to`; false when
    /// there is nothing to send.
    pub(crate) fn pass_on(&mut self, to: StreamId, from: StreamId, ms: u8, speaks: bool) -> bool {
        let whispers = self.streams.get(to).is_some_and(|stream| stream.whisper.is_some());
        let heard = self.take_heard(from, ms);
        if !speaks || heard.is_none() && !whispers {
            return false;
        }
        // Where nothing came the buffer has silence, which a whisper breaks.
        let rate =
            self.streams.get(from).and_then(|stream| stream.ear.as_ref()).map(|ear| ear.format().rate());
        let silence = || rate.map(|rate| rate.0 as usize * usize::from(ms) / 1000);
        let Some(count) = heard.or_else(silence) else { return false };
        *self.current = Some(to);
        let Some(Stream { mouth: Some(mouth), whisper, taps, .. }) = self.streams.get_mut(to) else {
            return false;
        };
        let Some(linear) = self.scratch.linear.get_mut(..count) else { return false };
        if let (Some(whisper), Some(rate)) = (whisper, rate) {
            whisper.add(linear, rate, taps.as_deref_mut());
        }
        mouth.listen(linear);
        true
    }
    /// After the last of a whisper the bridge goes on as it was before.
    fn end_whisper(&mut self, id: StreamId) {
        let whisper = self.streams.get_mut(id).and_then(|stream| stream.whisper.as_mut());
        if whisper.is_some_and(|whisper| whisper.end_clip()) {
            self.plan_routes(id);
        }
    }
    /// Sends what is murmured to a peer that hears nothing else, or silence.
    fn murmur(&mut self, id: StreamId, ms: u8) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.mouth.is_none() || stream.room.is_some() || !stream.is_made_sound_for() {
            return;
        }
        let Stream { mouth: Some(mouth), whisper, taps, feed: Feed::Quiet, .. } = stream else { return };
        *self.current = Some(id);
        let rate = stream.format.rate();
        let count = rate.0 as usize * usize::from(ms) / 1000;
        let Some(linear) = self.scratch.linear.get_mut(..count) else { return };
        linear.fill(0);
        if let Some(whisper) = whisper {
            whisper.add(linear, rate, taps.as_deref_mut());
        }
        mouth.listen(linear);
        self.utter(id);
        self.io.phase(Phase::Jitter);
    }

    /// Takes `ms` of what `id` has heard into the linear buffer, shows it to the taps, and makes it as loud as is wanted;
    /// `None` when there is nothing to pass on.
    pub(crate) fn take_heard(&mut self, id: StreamId, ms: u8) -> Option<usize> {
        let count = self.take_tapped(id, ms)?;
        if let Some(Stream { shaper: Some(shaper), ear: Some(ear), .. }) = self.streams.get_mut(id) {
            let linear = self.scratch.linear.get_mut(..count)?;
            shaper.shape(linear, ear.format().rate());
        }
        Some(count)
    }
    fn take_tapped(&mut self, id: StreamId, ms: u8) -> Option<usize> {
        let stream = self.streams.get_mut(id)?;
        *self.current = Some(id);
        let ear = stream.ear.as_mut()?;
        let rate = ear.format().rate();
        let count = rate.0 as usize * usize::from(ms) / 1000;
        let Scratch { linear, monitored, .. } = &mut *self.scratch;
        let linear = linear.get_mut(..count)?;
        ear.take(linear);
        let malformed = ear.take_malformed().into();
        if malformed > 0 {
            stream.totals.discarded_packets += malformed;
            self.load.discards.add(Discard::Malformed, malformed);
        }
        let starved = ear.is_starved();
        let Some(taps) = &mut stream.taps else { return (!starved).then_some(count) };
        let found = taps.frame(linear, rate);
        if let Some(monitors) = &mut taps.monitors {
            let connected = stream.bridge.is_some() || stream.room.is_some();
            monitors.frame(linear, !starved, connected, monitored);
            for listener in [Listener::Application, Listener::Watcher] {
                for (count, sent) in monitors.take_tones(listener).into_iter().zip([false, true]) {
                    for _ in 0..count {
                        self.events.push(Event::Tone { stream: id, listener, sent });
                    }
                }
            }
        }
        if let Some(ms) = found.silence_ms {
            self.events.push(Event::Silence { stream: id, ms });
        }
        for Change { listener, sounds, before_ms } in found.changes.into_iter().flatten() {
            self.events.push(Event::Sound { stream: id, listener, sounds, before_ms });
        }
        for edge in found.digits.into_iter().flatten() {
            self.digit_edge(id, edge, true);
        }
        (!starved).then_some(count)
    }

    /// Sends what the stream plays, or leaves a turn for it; true when the visit is that of its clip.
    fn perform(&mut self, id: StreamId) -> bool {
        *self.current = Some(id);
        let Some(stream) = self.streams.get_mut(id) else { return true };
        let payload = HEADER_BYTES..HEADER_BYTES + stream.packet_room();
        let (format, ms) = (stream.format, stream.ptime_ms);
        let Stream { play: Some(playing), whisper, taps, turns, .. } = stream else { return false };
        if playing.is_over() {
            self.end_if_over(id);
            return true;
        }
        if playing.listen(ms, whisper.as_deref_mut(), taps.as_deref_mut()) {
            if playing.mouth().is_some_and(|mouth| mouth.has_lanes()) {
                *turns += 1;
                let (at, step) = (self.at, Step::Encode(format));
                let turn = Turn { to: id, from: id, at, step, speaks: true, plays: true, has_frame: false };
                self.groups.push(turn);
            } else {
                self.utter_played(id);
            }
            return true;
        }
        if let Some(wire) = self.scratch.packets.bytes_mut(payload.clone()) {
            let bytes = playing.fill(format, wire);
            self.emit_local(id, payload.start, bytes);
        }
        self.end_if_over(id);
        true
    }

    /// Sends the packet that the encoder of what the stream plays has listened to.
    pub(crate) fn utter_played(&mut self, id: StreamId) {
        *self.current = Some(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let payload = HEADER_BYTES..HEADER_BYTES + stream.packet_room();
        let Some(wire) = self.scratch.packets.bytes_mut(payload.clone()) else { return };
        let Some(mouth) = stream.play.as_mut().and_then(|playing| playing.mouth()) else { return };
        self.io.phase(Phase::Encode);
        let bytes = mouth.speak(wire);
        self.load.encoded += 1;
        self.io.phase(Phase::Send);
        self.emit_local(id, payload.start, bytes);
        self.end_if_over(id);
        self.io.phase(Phase::Jitter);
    }

    /// Sends the packet that the stream's mouth has listened to.
    pub(crate) fn utter(&mut self, id: StreamId) {
        *self.current = Some(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let payload = HEADER_BYTES..HEADER_BYTES + stream.packet_room();
        let Some(wire) = self.scratch.packets.bytes_mut(payload.clone()) else { return };
        let Some(mouth) = &mut stream.mouth else { return };
        self.io.phase(Phase::Encode);
        let bytes = mouth.speak(wire);
        self.load.encoded += 1;
        self.io.phase(Phase::Send);
        self.emit_local(id, payload.start, bytes);
    }

    /// Whatever the digits want of this visit; true when the visit is theirs.
    fn dial(&mut self, id: StreamId) -> bool {
        loop {
            let Some(stream) = self.streams.get_mut(id) else { return true };
            if !stream.digits.is_busy() {
                return false;
            }
            let ms = stream.plan.ptime_ms;
            let (payload_type, clock) = match stream.plan.dtmf {
                DtmfMode::Rfc4733 { payload, clock } => (payload, clock),
                DtmfMode::Inband | DtmfMode::Signalling => (0, 8000),
            };
            let units = clock / 100 * u32::from(ms) / 10;
            let (mode, internal) = (stream.plan.dtmf, stream.leg.is_none());
            match stream.dial_with(|digits| digits.step(mode, internal, u32::from(ms), units)) {
                digits::Step::Free => return false,
                digits::Step::Hush => return true,
                digits::Step::AllSent => self.events.push(Event::DigitsSent { stream: id }),
                digits::Step::BeginEvent(digit) => {
                    let timestamp = stream.out.event_timestamp(self.at, stream.frame_units);
                    stream.dial_with(|digits| digits.event_began(digit, timestamp));
                }
                digits::Step::Event(packet) => {
                    let sequence = stream.out.event_sequence();
                    let stamp = Stamp { sequence, timestamp: packet.timestamp, marker: packet.marker };
                    let payload = HEADER_BYTES..HEADER_BYTES + packet.payload.len();
                    if let Some(wire) = self.scratch.packets.bytes_mut(payload.clone()) {
                        wire.copy_from_slice(&packet.payload);
                    }
                    self.emit(id, payload, payload_type, None, stamp, 0);
                    return true;
                }
                digits::Step::Tone => {
                    let samples = stream.plan.format.rate().0 as usize * usize::from(ms) / 1000;
                    let payload = HEADER_BYTES..HEADER_BYTES + stream.packet_room();
                    if let Some(wire) = self.scratch.packets.bytes_mut(payload.clone()) {
                        let bytes = stream.digits.tone(wire, samples);
                        self.emit_local(id, payload.start, bytes);
                    }
                    return true;
                }
                digits::Step::EdgeBegin(digit) => return self.edge_across(id, EventEdge::Begin(digit)),
                digits::Step::EdgeEnd(digit, ms) => return self.edge_across(id, EventEdge::End(digit, ms)),
            }
        }
    }

    fn edge_across(&mut self, id: StreamId, edge: EventEdge) -> bool {
        if let Some(partner) = self.streams.get(id).and_then(|s| s.tie) {
            self.digit_edge(partner, edge, false);
        }
        true
    }

    fn end_if_over(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.play.as_ref().is_some_and(|playing| playing.is_over())
            && let Some(playing) = stream.play.take()
            && let Some(play) = playing.play
        {
            let offset = playing.offset;
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Finished, offset });
        }
    }

    /// Sends a packet that was made here, when there is anything in it.
    pub(crate) fn emit_local(&mut self, id: StreamId, start: usize, bytes: usize) {
        let payload = start..start + bytes;
        if payload.is_empty() {
            return;
        }
        let Some(stream) = self.streams.get_mut(id) else { return };
        if !stream.gives_audio {
            return; // before a number is taken: the peer would see loss
        }
        let stamp = stream.out.local(self.at, stream.frame_units);
        let (format, payload_type) = (stream.format, stream.payload_type);
        self.emit(id, payload, payload_type, Some(format), stamp, 0);
    }

    /// Puts one packet out: on the wire, or across the tie of an internal stream. The header goes right before the
    /// payload; `format` is `None` for a telephone-event, which no tie carries.
    pub(crate) fn emit(
        &mut self,
        id: StreamId,
        payload: Range<usize>,
        payload_type: u8,
        format: Option<FormatId>,
        stamp: Stamp,
        ties: u8,
    ) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if !stream.sends || format.is_some() && !stream.gives_audio {
            return;
        }
        let Stamp { sequence, timestamp, marker } = stamp;
        if let (Some(taps), Some(format)) = (&mut stream.taps, format)
            && let Some(monitors) = &mut taps.monitors
        {
            monitors.sent(format, sequence, timestamp, self.scratch.packets.bytes(payload.clone()));
        }
        let target = stream.target;
        if stream.leg.is_none() {
            let (Some(partner), Some(format)) = (stream.tie, format) else { return };
            stream.sent.count(payload.len());
            let source = u64::from(id.slot) << 32 | u64::from(id.generation);
            self.crossed_tie(partner, Inbound { source, sequence, timestamp, marker, format, payload, ties });
            return;
        }
        if let Some(to) = target {
            self.transmit(id, to, payload, payload_type, stamp);
        }
    }

    /// Puts one packet on the wire, with its header right before the payload.
    pub(crate) fn transmit(
        &mut self,
        id: StreamId,
        to: SocketAddr,
        payload: Range<usize>,
        payload_type: u8,
        stamp: Stamp,
    ) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(leg) = &mut stream.leg else { return };
        let Stamp { sequence, timestamp, marker } = stamp;
        stream.last_sent = self.at;
        let Some(start) = payload.start.checked_sub(HEADER_BYTES) else { return };
        let header = Header { payload_type, marker, sequence, timestamp, ssrc: stream.out.ssrc() };
        let Some(packet) = self.scratch.packets.bytes_mut(start..payload.end) else { return };
        if let Some(room) = packet.first_chunk_mut() {
            *room = rtp::write(&header);
        }
        let mut end = payload.end;
        if let Some(seal) = &mut stream.seal {
            self.io.seals(true);
            let room = self.scratch.packets.bytes_mut(start..end + RTP_TRAILER_MAX).unwrap_or_default();
            let sealed = seal.seal_rtp(room, end - start);
            self.io.seals(false);
            let Ok(length) = sealed else { return self.load.discards.count(Discard::NotSealed) };
            end = start + length;
        } else if stream.is_sealed {
            return self.load.discards.count(Discard::NotSealed);
        }
        let packet = self.scratch.packets.bytes(start..end);
        if self.io.put(id.slot, leg, to, packet) {
            stream.sent.count(payload.len());
            self.load.sent += 1;
            self.note(true, to, Carried::Rtp { payload_type, sequence, timestamp }, payload.len());
        } else {
            self.load.discards.count(Discard::SendFailed);
        }
    }
}
