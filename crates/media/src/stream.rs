//! What one stream owns, and the slab that holds them.

use core::net::SocketAddr;

use base::{
    Direction, FormatId, Instant, Latch, MAX_RX_PAYLOADS, Plan, RoomId, RxPayload, StreamId, StreamStats,
};
use codec::Coders;
use rtp::{EventReceiver, Outgoing, Reception, SourceLock};

use crate::digits::Digits;
use crate::ear::Ear;
use crate::mouth::Mouth;
use crate::play::Playing;
use crate::relay::Below;
use crate::report::Report;
use crate::taps::Taps;
use crate::wheel::Seat;

/// Where the audio comes from that a stream sends when it neither plays nor dials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feed {
    /// Nowhere: it sends nothing.
    Quiet,
    /// Packets of this stream, rewritten in place as they arrive.
    Relay(StreamId),
    /// What this stream's ear decodes, encoded anew at each visit.
    Transcode(StreamId),
}

pub(crate) struct Stream<L> {
    pub(crate) id: StreamId,
    /// `None` for an internal stream.
    pub(crate) leg: Option<L>,
    pub(crate) plan: Box<Plan>,
    pub(crate) seat: Seat,
    pub(crate) visits_left: u8,
    pub(crate) below: Below,
    pub(crate) lock: SourceLock,
    pub(crate) out: Outgoing,
    pub(crate) reception: Reception,
    pub(crate) events_in: EventReceiver,
    pub(crate) digits: Digits,
    pub(crate) play: Option<Box<Playing>>,
    pub(crate) bridge: Option<StreamId>,
    /// The room it is in, instead of a bridge.
    pub(crate) room: Option<RoomId>,
    pub(crate) tie: Option<StreamId>,
    pub(crate) echo: bool,
    pub(crate) feed: Feed,
    /// Format that arrives at present; another negotiated one makes the routes be planned anew.
    pub(crate) rx_format: FormatId,
    pub(crate) reroute: bool,
    /// Another stream (or the echo) takes frames from the ear at its own visits.
    pub(crate) ear_is_pulled: bool,
    pub(crate) ear: Option<Box<Ear>>,
    pub(crate) taps: Option<Box<Taps>>,
    pub(crate) mouth: Option<Box<Mouth>>,
    /// A turn of its last visit waits for company.
    pub(crate) has_turn: bool,
    /// Byte by byte what a relay turns into another format by.
    pub(crate) recode: Option<&'static [u8; 256]>,
    pub(crate) report: Report,
    /// The counters that only count; the rest is filled in by [`Self::stats`].
    pub(crate) totals: StreamStats,
    /// When a packet of ours left last, or the stream began.
    pub(crate) last_sent: Instant,
    /// Latest accepted packet, or when waiting for one began.
    pub(crate) last_rtp: Instant,
    pub(crate) timed_out: bool,
    /// Set by the test hook: the next visit panics.
    pub(crate) poisoned: bool,
}

impl<L> Stream<L> {
    pub(crate) fn new(
        id: StreamId,
        leg: Option<L>,
        mut plan: Box<Plan>,
        seat: Seat,
        coders: &Coders,
        now: Instant,
    ) -> Self {
        tidy(&mut plan);
        Self {
            id,
            leg,
            seat,
            visits_left: 1,
            below: Below::new(now),
            lock: SourceLock::new(plan.latch),
            out: Outgoing::new(plan.ssrc, plan.first_sequence, plan.first_timestamp, plan.format.rtp_clock()),
            reception: Reception::default(),
            events_in: EventReceiver::default(),
            digits: Digits::new(&plan, coders),
            play: None,
            bridge: None,
            room: None,
            tie: None,
            echo: false,
            feed: Feed::Quiet,
            rx_format: plan.format,
            reroute: false,
            ear_is_pulled: false,
            ear: None,
            taps: None,
            mouth: None,
            has_turn: false,
            recode: None,
            report: Report::new(&plan, now),
            totals: StreamStats::default(),
            last_sent: now,
            last_rtp: now,
            timed_out: false,
            poisoned: false,
            plan,
        }
    }
    /// What a payload type stands for.
    pub(crate) fn payload(&self, payload_type: u8) -> Option<RxPayload> {
        self.plan.rx.iter().take(MAX_RX_PAYLOADS).flatten().copied().find(|entry| match entry {
            RxPayload::Audio(payload, _) | RxPayload::Event(payload, _) => *payload == payload_type,
        })
    }
    /// Where RTP goes: never to an address that neither SDP named nor the latch locked.
    pub(crate) fn target(&self) -> Option<SocketAddr> {
        match self.plan.latch {
            Latch::Strict => self.plan.remote,
            Latch::Learn(_) | Latch::Off => self.lock.locked().or(self.plan.remote),
        }
    }
    pub(crate) fn sends(&self) -> bool {
        matches!(self.plan.direction, Direction::SendRecv | Direction::SendOnly)
    }
    pub(crate) fn receives(&self) -> bool {
        matches!(self.plan.direction, Direction::SendRecv | Direction::RecvOnly)
    }
    /// RTP clock units of one frame that we send.
    pub(crate) fn frame_units(&self) -> u32 {
        self.plan.format.rtp_clock() / 100 * u32::from(self.plan.ptime_ms) / 10
    }
    /// Room for one coded packet that we send; what a format of constant rate fills exactly.
    pub(crate) fn packet_room(&self) -> usize {
        self.plan.format.packet_room(u16::from(self.plan.ptime_ms))
    }
    pub(crate) fn stats(&self) -> StreamStats {
        let micros = |time: core::time::Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        StreamStats {
            lost_packets: self.reception.lost(),
            buffer_ms: self.ear.as_ref().map_or(0, |ear| ear.delay_ms()),
            jitter_us: micros(self.reception.jitter_time()),
            round_trip_us: micros(self.report.round_trip),
            peer_lost_packets: self.report.peer_lost,
            peer_jitter_us: self.report.peer_jitter_us(self.plan.format.rtp_clock()),
            ssrc: self.out.ssrc(),
            peer_ssrc: self.reception.ssrc().unwrap_or(0),
            ..self.totals
        }
    }
}

/// Longest packet that is sent, milliseconds.
const PTIME_MAX_MS: u8 = 60;

/// Brings what a plan may say into what the packet path relies on: frames of 10 to 60 ms in whole codec frames.
pub(crate) fn tidy(plan: &mut Plan) {
    let step = plan.format.packet_step_ms();
    let wanted = (plan.ptime_ms / 10 * 10).next_multiple_of(step);
    plan.ptime_ms = wanted.clamp(step, PTIME_MAX_MS / step * step);
}

/// A stream on its way from one worker to another.
pub struct Moving<L>(pub(crate) Box<Stream<L>>);

impl<L> Moving<L> {
    /// Its id.
    pub fn stream(&self) -> StreamId {
        self.0.id
    }
}

impl<L> core::fmt::Debug for Moving<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Moving({:?})", self.0.id)
    }
}

/// The streams of one worker by slot; slots are numbered over all workers, so there may be holes.
pub(crate) struct Slab<L>(Vec<Option<Box<Stream<L>>>>);

impl<L> Slab<L> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }
    pub(crate) fn at(&mut self, slot: u32) -> Option<&mut Stream<L>> {
        self.0.get_mut(slot as usize)?.as_deref_mut()
    }
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream<L>> {
        self.0.get(id.slot as usize)?.as_deref().filter(|s| s.id == id)
    }
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream<L>> {
        self.0.get_mut(id.slot as usize)?.as_deref_mut().filter(|s| s.id == id)
    }
    pub(crate) fn insert(&mut self, stream: Box<Stream<L>>) {
        let slot = stream.id.slot as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.0.get_mut(slot) {
            *place = Some(stream);
        }
    }
    pub(crate) fn take(&mut self, id: StreamId) -> Option<Box<Stream<L>>> {
        let place = self.0.get_mut(id.slot as usize)?;
        if place.as_ref().is_some_and(|s| s.id == id) { place.take() } else { None }
    }
    pub(crate) fn ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.0.iter().flatten().map(|s| s.id)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_idle_stream_is_small() {
        // 20 kB of resident memory a call is the goal for the whole process; a leg's socket handle is a few words.
        let bytes = size_of::<super::Stream<[u64; 6]>>() + size_of::<base::Plan>();
        assert!(bytes <= 1280, "{bytes} bytes");
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use base::DtmfMode;

    /// A plain µ-law plan for machines that need one.
    pub(crate) fn plan(dtmf: DtmfMode) -> Plan {
        let mut rx = [None; MAX_RX_PAYLOADS];
        rx[0] = Some(RxPayload::Audio(0, FormatId::ULAW));
        Plan {
            remote: None,
            remote_rtcp: None,
            latch: Latch::Strict,
            relearn: false,
            format: FormatId::ULAW,
            payload: 0,
            ptime_ms: 20,
            wishes: base::Wishes::default(),
            rx,
            dtmf,
            direction: Direction::SendRecv,
            ssrc: 1,
            first_sequence: 1,
            first_timestamp: 1,
            jitter_max_ms: 0,
            rtcp_interval_ms: 0,
            rtp_timeout_ms: 0,
            keepalive_ms: 0,
            marking: base::Marking::default(),
        }
    }
}
