//! Bridges whose packets the back-end relays below the worker: when one goes there, what is counted, when it comes back.
//!
//! A bridge goes below when nobody here needs its packets: both sources are locked, both directions are a relay of one
//! format, and nothing plays, dials, listens or traces. It comes back before any command or digit touches one of its
//! streams, and when a packet comes by that the back-end did not know what to do with. Offsets of sequence number and
//! timestamp are those of the relay up here, so that the far end sees one unbroken stream in either case.
//!
//! Nothing here knows how packets are relayed: [`RelayPlan::carry`] says what is to be done with each.

use core::net::SocketAddr;
use core::time::Duration;

use base::{Instant, RxPayload, StreamId};
use rtp::{HEADER_BYTES, Header};

use crate::packet_io::PacketIo;
use crate::stream::{Feed, Stream};
use crate::worker::Desk;

/// How often counters are read of a bridge below, and a bridge is looked at that might go there.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Packets that were on their way up when a bridge went below do not bring it back.
const YOUNG: Duration = Duration::from_millis(100);
/// A bridge that a surprising packet brings back sooner than this waits twice as long as the last time.
const STEADY: Duration = Duration::from_secs(10);
/// Doublings of that wait: 64 s.
const STRIKES_MAX: u8 = 6;
/// A source is talking that was heard so lately.
const TALKING: Duration = Duration::from_secs(1);

/// One direction of a bridge, for whoever relays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayPlan {
    /// The only source whose packets are relayed.
    pub from: SocketAddr,
    /// Where they go.
    pub to: SocketAddr,
    /// Their payload type, as it comes and as it leaves.
    pub payload: (u8, u8),
    /// Their SSRC, as it comes and as it leaves.
    pub ssrc: (u32, u32),
    /// What is added to sequence numbers.
    pub sequence_offset: u16,
    /// What is added to timestamps.
    pub timestamp_offset: u32,
    /// Hertz of the timestamps, for the jitter.
    pub clock: u32,
    /// The newest sequence number received so far.
    pub highest: u16,
    /// The newest timestamp so far, as it came.
    pub timestamp: u32,
    /// As [`Relayed::jitter_x16`].
    pub jitter_x16: u32,
}

/// What was relayed in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Relayed {
    /// Packets.
    pub packets: u32,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// The newest sequence number, as it came.
    pub highest: u16,
    /// The timestamp of the newest, as it came, and when; `None` before the first.
    pub latest: Option<(u32, Instant)>,
    /// Interarrival jitter in timestamp units, sixteenfold (RFC 3550 A.8).
    pub jitter_x16: u32,
}

impl RelayPlan {
    /// Counters before the first packet.
    pub const fn begin(&self) -> Relayed {
        Relayed { packets: 0, bytes: 0, highest: self.highest, latest: None, jitter_x16: self.jitter_x16 }
    }
    /// What is done with a datagram that came from [`Self::from`]: true when it is to be sent as it is after the call, false,
    /// and unchanged, when it is the worker's.
    ///
    /// The worker's are all that are not plainly the next packet of this source: another version, an extension, padding, a
    /// list of sources, another payload type or SSRC, no payload, RTCP, a number that is not newer or far ahead, a timestamp
    /// half a second before the newest or seven and a half seconds after it: the source may have begun anew.
    pub fn carry(&self, so_far: &mut Relayed, packet: &mut [u8], at: Instant) -> bool {
        let Ok((header, payload)) = rtp::parse(packet) else { return false };
        let Header { payload_type, marker, sequence, timestamp, ssrc } = header;
        let ahead = sequence.wrapping_sub(so_far.highest);
        let is_plain = packet.first() == Some(&0x80) && !rtp::is_rtcp(packet) && !payload.is_empty();
        let before = so_far.latest.map_or(self.timestamp, |(timestamp, _)| timestamp);
        let step = timestamp.wrapping_sub(before).wrapping_add(self.clock / 2);
        let is_next = ahead > 0 && ahead < rtp::MAX_DROPOUT && step < self.clock * 8;
        if !is_plain || !is_next || payload_type != self.payload.0 || ssrc != self.ssrc.0 {
            return false;
        }
        so_far.packets = so_far.packets.wrapping_add(1);
        so_far.bytes += payload.len() as u64;
        so_far.highest = sequence;
        if let Some((before, came)) = so_far.latest {
            let passed = at - came;
            if passed < Duration::from_secs(1) {
                let units = (passed.as_nanos() as u64 * u64::from(self.clock) / 1_000_000_000) as u32;
                let stamped = timestamp.wrapping_sub(before);
                let difference = units.wrapping_sub(stamped).cast_signed().unsigned_abs();
                if difference < self.clock {
                    so_far.jitter_x16 = rtp::smooth(so_far.jitter_x16.into(), difference.into()) as u32;
                }
            }
        }
        so_far.latest = Some((timestamp, at));
        let header = Header {
            payload_type: self.payload.1,
            marker,
            sequence: sequence.wrapping_add(self.sequence_offset),
            timestamp: timestamp.wrapping_add(self.timestamp_offset),
            ssrc: self.ssrc.1,
        };
        if let Some(room) = packet.first_chunk_mut::<HEADER_BYTES>() {
            *room = rtp::write(&header);
        }
        true
    }
}

/// What a stream knows of its packets below.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Below {
    /// Its bridge is below, with this peer.
    peer: Option<StreamId>,
    /// When to look next: at the counters, or whether the bridge may go below.
    look_at: Instant,
    since: Instant,
    strikes: u8,
    /// Counted already.
    packets: u32,
    bytes: u64,
}

impl Below {
    pub(crate) fn new(now: Instant) -> Self {
        Self { peer: None, look_at: now + LOOK_EVERY, since: now, strikes: 0, packets: 0, bytes: 0 }
    }
    /// The bridge of this stream is below.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.peer.is_some()
    }
    /// When to look next.
    #[inline]
    pub(crate) const fn look_at(&self) -> Instant {
        self.look_at
    }
    fn wait(&mut self, now: Instant) {
        self.look_at = now + LOOK_EVERY * (1 << self.strikes.min(STRIKES_MAX));
    }
    fn strike(&mut self) {
        self.strikes = self.strikes.saturating_add(1).min(STRIKES_MAX);
    }
}

impl<L> Stream<L> {
    /// Nothing here needs its packets, or sends any.
    fn is_idle(&self) -> bool {
        let makes = self.play.is_some() || self.digits.is_busy() || self.mouth.is_some() || self.echo;
        let listens = self.ear.is_some() || self.taps.is_some() || self.events_in.is_busy();
        // What is sealed is opened and sealed up here.
        let elsewhere = self.is_sealed || self.leg.is_none() || self.room.is_some() || self.tie.is_some();
        // Pictures come in bursts of packets, and what peers say of them goes on from here.
        !(makes || listens || elsewhere || self.reroute || self.poisoned || self.is_video)
            && self.gives_audio
            && self.takes_audio
    }
    /// How what this stream hears reaches `to`, when that is a relay which needs nothing of us.
    fn relay_plan(&self, to: &Self, now: Instant) -> Option<RelayPlan> {
        let from = self.lock.locked().filter(|_| !self.lock.is_open())?;
        let source = self.reception.ssrc().map(|ssrc| (self.source_key(ssrc), ssrc));
        let (key, ssrc) = source.filter(|_| now - self.last_rtp < TALKING)?;
        let is_relay = to.feed == Feed::Relay(self.id) && to.recode.is_none();
        let alike = self.rx_format == to.plan.format && self.plan.ptime_ms == to.plan.ptime_ms;
        if !is_relay || !alike || !self.is_idle() || !to.is_idle() {
            return None;
        }
        // A session description that has moved since is believed before the lock.
        if self.plan.latch == base::Latch::Strict && self.plan.remote != Some(from) {
            return None;
        }
        let payload_in = self.plan.rx.iter().flatten().find_map(|entry| match entry {
            RxPayload::Audio(payload, format) if *format == self.rx_format => Some(*payload),
            RxPayload::Audio(..) | RxPayload::Event(..) => None,
        })?;
        let offsets = to.out.offsets(key)?;
        Some(RelayPlan {
            from,
            to: to.target?,
            payload: (payload_in, to.plan.payload),
            ssrc: (ssrc, to.out.ssrc()),
            sequence_offset: offsets.sequence,
            timestamp_offset: offsets.timestamp,
            clock: self.rx_format.rtp_clock(),
            highest: self.reception.extended_highest() as u16,
            timestamp: offsets.latest,
            jitter_x16: u32::try_from(self.reception.jitter_x16()).unwrap_or(u32::MAX),
        })
    }
    /// Tells numberings of sources apart: this stream's, of one SSRC.
    pub(crate) fn source_key(&self, ssrc: u32) -> u64 {
        u64::from(self.id.slot) << 32 | u64::from(ssrc)
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// The look that is due: reads what was relayed below, or sees whether the bridge may go there.
    pub(crate) fn look_below(&mut self, id: StreamId) {
        let now = self.at;
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(peer) = stream.below.peer else {
            stream.below.wait(now);
            return self.submerge(id);
        };
        self.catch_up(id);
        self.catch_up(peer);
        let Some(stream) = self.streams.get_mut(id) else { return };
        if !stream.below.is_on() {
            return;
        }
        let timeout = Duration::from_millis(u64::from(stream.plan.rtp_timeout_ms));
        let times_out = (!timeout.is_zero() && !stream.timed_out).then(|| stream.last_rtp + timeout);
        let look_at = [Some(now + LOOK_EVERY), stream.report.next_at(), times_out];
        stream.below.look_at = look_at.into_iter().flatten().min().unwrap_or(now);
        if now - stream.below.since >= STEADY {
            stream.below.strikes = 0;
        }
    }

    /// Brings the bridge of a stream below, if it may and the back-end can.
    fn submerge(&mut self, id: StreamId) {
        let now = self.at;
        if self.trace.as_ref().is_some_and(|trace| trace.watches_rtp()) {
            return;
        }
        let Some(stream) = self.streams.get(id) else { return };
        let Some(other) = stream.bridge.and_then(|peer| self.streams.get(peer)) else { return };
        let peer = other.id;
        let plans = (stream.relay_plan(other, now), other.relay_plan(stream, now));
        let (Some(there), Some(back)) = plans else { return };
        // Two streams of one slab at a time: the legs are lent.
        let (Some(mut leg), Some(mut peer_leg)) = (self.lend_leg(id), self.lend_leg(peer)) else { return };
        let mut done = self.io.relay(&mut leg, &mut peer_leg, &there);
        if done && !self.io.relay(&mut peer_leg, &mut leg, &back) {
            self.io.unrelay(&mut leg);
            done = false;
        }
        for (one, other, leg) in [(id, peer, leg), (peer, id, peer_leg)] {
            let Some(stream) = self.streams.get_mut(one) else { continue };
            stream.leg = Some(leg);
            let below = &mut stream.below;
            if done {
                let strikes = below.strikes;
                *below = Below { peer: Some(other), strikes, ..Below::new(now) };
            } else {
                below.strike();
                below.wait(now);
            }
            stream.wake_at = Instant::ZERO;
        }
        if done {
            self.load.relays += 1;
            self.load.relays_begun += 1;
        }
    }
    fn lend_leg(&mut self, id: StreamId) -> Option<P::Leg> {
        self.streams.get_mut(id)?.leg.take()
    }

    /// Counts what was relayed of this stream's packets since the last time.
    pub(crate) fn catch_up(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.below.is_on()) else { return };
        let Some(leg) = &mut stream.leg else { return };
        match self.io.relayed(leg) {
            Some(relayed) => self.account(id, relayed),
            None => self.surface(id),
        }
    }
    /// Both directions of the bridge that the stream is in.
    pub(crate) fn catch_up_both(&mut self, id: StreamId) {
        if let Some(peer) = self.streams.get(id).and_then(|stream| stream.below.peer) {
            self.catch_up(id);
            self.catch_up(peer);
        }
    }
    fn account(&mut self, id: StreamId, relayed: Relayed) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Relayed { packets, bytes, highest, latest, jitter_x16 } = relayed;
        let (news, more) =
            (packets.wrapping_sub(stream.below.packets), bytes - stream.below.bytes.min(bytes));
        let Some((timestamp, came)) = latest.filter(|_| news > 0) else { return };
        (stream.below.packets, stream.below.bytes) = (packets, bytes);
        let clock = stream.rx_format.rtp_clock();
        stream.reception.relayed(news, highest, jitter_x16.into(), (timestamp, came), clock);
        stream.last_rtp = stream.last_rtp.max(came);
        (stream.timed_out, stream.wake_at) = (false, Instant::ZERO);
        stream.received.packets += u64::from(news);
        stream.received.bytes += more;
        self.load.relayed += u64::from(news);
        let key = stream.reception.ssrc().map(|ssrc| stream.source_key(ssrc));
        let Some(peer) = stream.below.peer.and_then(|peer| self.streams.get_mut(peer)) else { return };
        if let Some(key) = key {
            peer.out.relayed_with_offsets(key, highest, timestamp, came);
        }
        peer.sent.packets += u64::from(news);
        peer.sent.bytes += more;
        peer.last_sent = peer.last_sent.max(came);
    }

    /// Brings the bridge of a stream back, if it is below; from here on its packets come to the worker.
    pub(crate) fn surface(&mut self, id: StreamId) {
        let now = self.at;
        let Some(peer) = self.streams.get(id).and_then(|stream| stream.below.peer) else { return };
        for one in [id, peer] {
            let Some(stream) = self.streams.get_mut(one) else { continue };
            let last = stream.leg.as_mut().and_then(|leg| self.io.unrelay(leg));
            if let Some(relayed) = last {
                self.account(one, relayed);
            }
        }
        for one in [id, peer] {
            let Some(stream) = self.streams.get_mut(one) else { continue };
            let strikes = stream.below.strikes;
            stream.below = Below { strikes, ..Below::new(now) };
            stream.below.wait(now);
            stream.wake_at = Instant::ZERO;
        }
        self.load.relays = self.load.relays.saturating_sub(1);
    }
    /// A command or a change of routes: the bridge comes back, and what happened to it before is forgotten.
    pub(crate) fn recall(&mut self, id: StreamId) {
        self.surface(id);
        let now = self.at;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.below.strikes = 0;
            stream.below.wait(now);
            stream.wake_at = Instant::ZERO;
        }
    }
    /// A packet of a stream whose bridge is below came up here: what the worker knows is brought up to date, and when the
    /// packet is no mere straggler the bridge comes back before it is looked at.
    pub(crate) fn met_below(&mut self, id: StreamId, kind: RxPayload, header: &Header) {
        self.catch_up(id);
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.below.is_on()) else { return };
        let same = stream.reception.ssrc() == Some(header.ssrc);
        let is_audio = matches!(kind, RxPayload::Audio(..));
        let is_old = same && !stream.reception.is_news(header.sequence);
        let age = self.at - stream.below.since;
        if is_audio && (is_old || same && age < YOUNG) {
            return;
        }
        // A digit or another source is no reason to wait longer; a form that cannot be relayed is.
        if is_audio && same && age < STEADY {
            let pair = [Some(id), stream.below.peer];
            for one in pair.into_iter().flatten() {
                if let Some(stream) = self.streams.get_mut(one) {
                    stream.below.strike();
                }
            }
        }
        self.surface(id);
    }
}
