//! The receive phase: every packet is judged, counted, and passed on at once where a relay allows it.

use core::net::SocketAddr;
use core::ops::Range;

use base::{DtmfMode, Event, FormatId, Instant, Latch, RxPayload, StreamId};
use rtp::{Arrived, Discard, EventEdge, EventPlace, Header, Verdict};
use srtp::RTCP_TRAILER_MAX;

use crate::packet_io::{Arrival, PacketIo};
use crate::report::FEEDBACK_BYTES;
use crate::sealed::Kind;
use crate::stream::{Feed, Slab};
use crate::trace::Carried;
use crate::worker::Desk;

/// Longest chain of ties that one packet passes; Local channels that lead into each other end here.
const TIES_MAX: u8 = 8;

/// Changes of format that are told of within one plan: a peer that changes with each packet is not worth a message each.
pub(crate) const CHANGES_TOLD_MAX: u8 = 16;

/// Datagrams ahead of the one that is judged for whose streams memory is asked for: enough that it has come, and not so
/// much that it has gone again.
const AHEAD: usize = 16;

/// Audio that a stream receives, from its socket or from its tied partner. The payload lies in the packet buffer.
#[derive(Debug, Clone)]
pub(crate) struct Inbound {
    /// Tells one source's numbering from another's.
    pub(crate) source: u64,
    pub(crate) sequence: u16,
    pub(crate) timestamp: u32,
    pub(crate) marker: bool,
    pub(crate) format: FormatId,
    pub(crate) payload: Range<usize>,
    pub(crate) ties: u8,
}

/// Turns each byte into another, eight at a time: a store for each byte would be what it waits for.
fn recode(table: &[u8; 256], bytes: &mut [u8]) {
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    for eight in eights {
        *eight = eight.map(|byte| table[usize::from(byte)]);
    }
    for byte in rest {
        *byte = table[usize::from(*byte)];
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// The datagrams of a batch from `next` on. While some are judged, the memory that the following ones need is on its
    /// way.
    pub(crate) fn judge_batch(&mut self, next: &mut usize) {
        if *next == 0 {
            self.fetch(0, Slab::fetch_receiver);
        }
        while let Some((arrival, packet)) = self.scratch.packets.get(*next) {
            if next.is_multiple_of(AHEAD) {
                self.fetch(*next + AHEAD, Slab::fetch_receiver);
                self.fetch(*next, Slab::fetch_sender);
                self.fetch(*next, Slab::fetch_ear);
            }
            *next += 1;
            if let Err(why) = self.arrived(arrival, packet) {
                self.load.discards.count(why);
                if let Some(stream) = self.streams.at(arrival.slot) {
                    stream.totals.discarded_packets += 1;
                }
            }
        }
    }
    /// Asks for memory of the streams of some datagrams.
    fn fetch(&self, from: usize, fetch: impl Fn(&Slab<P::Leg>, u32)) {
        for index in from..from + AHEAD {
            let Some((arrival, _)) = self.scratch.packets.get(index) else { return };
            fetch(self.streams, arrival.slot);
        }
    }

    fn rtcp_arrived(&mut self, id: StreamId, from: SocketAddr, packet: Range<usize>) -> Result<(), Discard> {
        let ntp = self.ntp(self.at);
        let is_sealed = self.streams.get(id).is_some_and(|stream| stream.is_sealed);
        let packet = match is_sealed {
            true => self.open_sealed(id, packet, Kind::Rtcp)?,
            false => packet,
        };
        let stream = self.streams.get_mut(id).ok_or(Discard::UnknownStream)?;
        if !stream.accepts_rtcp(from) {
            return Err(Discard::WrongSource);
        }
        let length = packet.len();
        let is_video = stream.is_video;
        let said = stream.read_report(self.scratch.packets.bytes(packet.clone()), self.at, ntp)?;
        self.note(false, from, Carried::Rtcp, length);
        if let Some(said) = said {
            self.tell_report(id, said, false, from);
        }
        if is_video {
            match self.streams.get(id).and_then(|stream| stream.pictures.as_ref()?.shown()) {
                Some(source) => self.judge_feedback(id, source, packet),
                None => self.pass_feedback(id, packet),
            }
        }
        Ok(())
    }
    /// What a peer says of the pictures that it gets goes on to who sends them.
    fn pass_feedback(&mut self, id: StreamId, packet: Range<usize>) {
        let Some(stream) = self.streams.get(id) else { return };
        let Feed::Relay(source) = stream.feed else { return };
        let Some(origin) = self.streams.get(source) else { return };
        let mut buffer = [0; FEEDBACK_BYTES + RTCP_TRAILER_MAX];
        let room = buffer.get_mut(..FEEDBACK_BYTES).unwrap_or_default();
        let length = origin.write_feedback(self.scratch.packets.bytes(packet), stream, room);
        if length > 0
            && self.put_control(source, &mut buffer, length).is_some()
            && let Some(origin) = self.streams.get_mut(source)
        {
            origin.report.reported = true;
        }
    }

    /// Judges one datagram, counts it, and passes on what it carries.
    fn arrived(
        &mut self,
        Arrival { slot, rtcp, from, .. }: Arrival,
        packet: Range<usize>,
    ) -> Result<(), Discard> {
        let stream = self.streams.at(slot).ok_or(Discard::UnknownStream)?;
        let id = stream.id;
        *self.current = Some(id);
        let bytes = self.scratch.packets.bytes(packet.clone());
        if stream.is_fax && !rtcp {
            return self.fax_arrived(id, from, packet);
        }
        if rtcp || rtp::is_rtcp(bytes) {
            return self.rtcp_arrived(id, from, packet);
        }
        let mut packet = packet;
        let stream = if stream.is_sealed {
            // Before anything is believed of it.
            packet = self.open_sealed(id, packet, Kind::Rtp)?;
            self.streams.get_mut(id).ok_or(Discard::UnknownStream)?
        } else {
            stream
        };
        let bytes = self.scratch.packets.bytes(packet.clone());
        let (header, payload) = rtp::parse(bytes)?;
        let payload = packet.start + payload.start..packet.start + payload.end;
        let kind = stream.payload(header.payload_type).ok_or(Discard::UnknownPayload)?;
        if payload.is_empty() {
            return Err(Discard::NoPayload);
        }
        let mut has_moved = false;
        if stream.trusted != Some(from) {
            match stream.lock.judge(from, stream.plan.remote, header.ssrc, header.sequence) {
                Verdict::Refuse => return Err(Discard::WrongSource),
                Verdict::Learning => return Ok(()),
                Verdict::Locked(remote) => {
                    stream.settle();
                    self.events.push(Event::Latched { stream: id, remote });
                    has_moved = true;
                    if let Some(leg) = &mut stream.leg
                        && stream.plan.latch != Latch::Off
                    {
                        self.io.lock(leg, Some(remote));
                    }
                }
                Verdict::Accept => {}
            }
        }
        let stream = if stream.below.is_on() {
            if has_moved {
                self.recall(id);
            } else {
                self.met_below(id, kind, &header);
            }
            self.streams.get_mut(id).ok_or(Discard::UnknownStream)?
        } else {
            stream
        };
        stream.last_rtp = self.at;
        if stream.timed_out {
            // The timer runs again.
            (stream.timed_out, stream.wake_at) = (false, Instant::ZERO);
        }
        let mut ended = None;
        match stream.reception.packet(&header, stream.kind_clock, self.at) {
            Arrived::Suspect => return Err(Discard::BadSequence),
            Arrived::Restarted => {
                ended = stream.events_in.restart();
                if let Some(ear) = &mut stream.ear {
                    ear.restart();
                }
            }
            Arrived::InOrder | Arrived::OutOfOrder => {}
        }
        stream.received.count(payload.len());
        let (receives, takes_audio, partner) = (stream.receives, stream.takes_audio, stream.passes(kind));
        let Header { payload_type, sequence, timestamp, .. } = header;
        self.note(false, from, Carried::Rtp { payload_type, sequence, timestamp }, payload.len());
        // A digit that the restart cut off ends, whatever becomes of this packet.
        if let Some(edge) = ended {
            self.digit_edge(id, edge, false);
        }
        if !receives {
            return Err(Discard::Muted);
        }
        let format = match kind {
            RxPayload::Event(_, clock) => return self.event_arrived(id, clock, &header, payload),
            RxPayload::Audio(..) if !takes_audio => return Err(Discard::Muted),
            RxPayload::Audio(_, format) => format,
        };
        let source = u64::from(id.slot) << 32 | u64::from(header.ssrc);
        let inbound =
            Inbound { source, sequence, timestamp, marker: header.marker, format, payload, ties: 0 };
        match partner {
            Some(partner) => self.forward(partner, id, inbound),
            None => self.heard(id, inbound),
        }
        Ok(())
    }

    /// A packet of a telephone-event.
    fn event_arrived(
        &mut self,
        id: StreamId,
        clock: u32,
        header: &Header,
        payload: Range<usize>,
    ) -> Result<(), Discard> {
        let bytes = self.scratch.packets.bytes(payload);
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        // An event that is heard is looked after at each visit.
        stream.wake_at = Instant::ZERO;
        let at = EventPlace {
            sequence: stream.reception.extended(header.sequence),
            timestamp: header.timestamp,
            marker: header.marker,
        };
        let edges = stream.events_in.packet(bytes, at, clock, self.at)?;
        for edge in edges.into_iter().flatten() {
            self.digit_edge(id, edge, false);
        }
        Ok(())
    }

    /// Audio for a stream: into its ear when it has one, and on to whoever is fed by relay.
    pub(crate) fn heard(&mut self, id: StreamId, inbound: Inbound) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if inbound.format != stream.rx_format {
            // Another negotiated format: the next visit plans for it; this packet has no way.
            stream.rx_format = inbound.format;
            stream.reroute = true;
            if stream.changes_told < CHANGES_TOLD_MAX {
                stream.changes_told += 1;
                self.events.push(Event::Sends { stream: id, format: inbound.format });
            }
            self.load.discards.count(Discard::WrongFormat);
            return;
        }
        if stream.reroute {
            self.load.discards.count(Discard::WrongFormat);
            return;
        }
        if let Some(ear) = &mut stream.ear {
            let payload = self.scratch.packets.bytes(inbound.payload.clone());
            let is_whole = ear.can_read(payload);
            let is_heard = ear.push(inbound.sequence, inbound.timestamp, payload);
            if !is_whole {
                stream.totals.discarded_packets += 1;
                self.load.discards.count(Discard::Malformed);
            } else if !is_heard {
                self.load.discards.count(Discard::Late);
                stream.totals.late_packets = stream.totals.late_packets.saturating_add(1);
            }
        }
        let to = if stream.echo { Some(id) } else { stream.bridge };
        match to {
            Some(to) => self.forward(to, id, inbound),
            None if stream.pictures.is_some() => self.show_viewers(id, &inbound),
            None => {}
        }
    }

    /// Sends a packet that `from` received on `to`, rewritten in place.
    pub(crate) fn forward(&mut self, to: StreamId, from: StreamId, inbound: Inbound) {
        let Some(stream) = self.streams.get_mut(to) else { return };
        let is_busy = stream.play.is_some() || stream.dials && stream.digits.mutes_relay();
        if stream.feed != Feed::Relay(from) || is_busy || !stream.gives_audio {
            return;
        }
        *self.current = Some(to);
        let Inbound { source, sequence, timestamp, marker, .. } = inbound;
        let stamp = stream.out.relay(source, sequence, timestamp, marker, self.at, stream.frame_units);
        let Some(mut stamp) = stamp else {
            self.load.discards.count(Discard::Late);
            return;
        };
        if stream.is_video {
            // It marks where a picture ends, whoever was seen before (RFC 6184 §5.1).
            stamp.marker = marker;
        }
        let (format, payload_type) = (stream.format, stream.payload_type);
        if let Some(table) = stream.recode
            && let Some(payload) = self.scratch.packets.bytes_mut(inbound.payload.clone())
        {
            recode(table, payload);
        }
        match stream.target.filter(|_| stream.taps.is_none() && stream.leg.is_some()) {
            Some(target) => self.transmit(to, target, inbound.payload, payload_type, stamp),
            None => self.emit(to, inbound.payload, payload_type, Some(format), stamp, inbound.ties),
        }
    }

    /// A packet that a tied partner sent.
    pub(crate) fn crossed_tie(&mut self, id: StreamId, mut inbound: Inbound) {
        if inbound.ties >= TIES_MAX {
            self.load.discards.count(Discard::Overflow);
            return;
        }
        inbound.ties += 1;
        let Some(stream) = self.streams.get_mut(id) else { return };
        *self.current = Some(id);
        stream.last_rtp = self.at;
        stream.received.count(inbound.payload.len());
        if stream.takes_audio {
            self.heard(id, inbound);
        }
    }

    /// A digit began or ended on `id`; `audible` when its tones are in the audio that the bridge carries.
    pub(crate) fn digit_edge(&mut self, id: StreamId, edge: EventEdge, audible: bool) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if let EventEdge::Begin(_) = edge {
            stream.keeps_digits.1 = stream.keeps_digits.0;
        }
        let kept = stream.keeps_digits.1;
        let peer = stream.bridge.and_then(|peer| self.streams.get_mut(peer));
        let mut relayed = false;
        if let Some(peer) = peer {
            let by_audio = audible && peer.leg.is_some() && peer.plan.dtmf == DtmfMode::Inband;
            let carried = peer.leg.is_none() || peer.plan.dtmf != DtmfMode::Signalling;
            relayed = by_audio || carried && !kept;
            if relayed && !by_audio {
                match edge {
                    EventEdge::Begin(digit) => peer.dial_with(|digits| digits.hold(digit)),
                    EventEdge::End(digit, ms) => peer.dial_with(|digits| digits.release(digit, ms)),
                }
            }
        }
        self.events.push(match edge {
            EventEdge::Begin(digit) => Event::DigitBegin { stream: id, digit, relayed },
            EventEdge::End(digit, duration_ms) => Event::DigitEnd { stream: id, digit, duration_ms, relayed },
        });
    }
}
