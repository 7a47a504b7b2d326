//! What one stream owns, and the slab that holds them.

use core::mem::offset_of;
use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;

use base::{
    Direction, FormatId, HoldBack, Instant, Latch, MAX_RX_PAYLOADS, Plan, RoomId, RxPayload, StreamId,
    StreamStats,
};
use codec::Coders;
use lanes::{LINE_BYTES, prefetch};
use rtp::{EventReceiver, Outgoing, Reception, SourceLock};
use srtp::Session;

use crate::digits::Digits;
use crate::ear::Ear;
use crate::fax::FaxLine;
use crate::mouth::Mouth;
use crate::play::Playing;
use crate::relay::Below;
use crate::report::Report;
use crate::shaper::Shaper;
use crate::show::Pictures;
use crate::taps::Taps;
use crate::wheel::Seat;
use crate::whisper::Whisper;

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

/// Packets and bytes of payload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Traffic {
    pub(crate) fn count(&mut self, payload: usize) {
        self.packets += 1;
        self.bytes += payload as u64;
    }
}

/// The order of fields is that of use: a thousand streams are not in the nearest caches when their next packet comes, and
/// each line of 64 bytes that it touches is waited for. What a plan says is set out once, by [`Stream::settle`].
#[repr(C, align(64))]
pub(crate) struct Stream<L> {
    // Every visit looks here, and nowhere else when there is nothing to do.
    pub(crate) id: StreamId,
    /// No timer ends before.
    pub(crate) wake_at: Instant,
    pub(crate) play: Option<Box<Playing>>,
    pub(crate) ear: Option<Box<Ear>>,
    pub(crate) taps: Option<Box<Taps>>,
    pub(crate) feed: Feed,
    pub(crate) seat: Seat,
    pub(crate) visits_left: u8,
    pub(crate) ptime_ms: u8,
    /// Turns of its visits that wait for company.
    pub(crate) turns: u8,
    pub(crate) reroute: bool,
    /// Another stream (or the echo) takes frames from the ear at its own visits.
    pub(crate) ear_is_pulled: bool,
    pub(crate) echo: bool,
    /// There are digits to send; kept by [`Self::dial_with`].
    pub(crate) dials: bool,
    /// Set by the test hook: the next visit panics.
    pub(crate) poisoned: bool,

    // A packet that arrives.
    /// The source whose packets the lock lets in without a change of its own.
    pub(crate) trusted: Option<SocketAddr>,
    pub(crate) bridge: Option<StreamId>,
    /// What the latest packet carried, and the clock of its timestamps: the next one's payload type says the same.
    kind: Option<RxPayload>,
    pub(crate) kind_clock: u32,
    /// Format that arrives at present; another negotiated one makes the routes be planned anew.
    pub(crate) rx_format: FormatId,
    pub(crate) receives: bool,
    /// The audio of its packets is taken, too.
    pub(crate) takes_audio: bool,
    /// Digits from here on are not passed on to the bridge, and whether this holds for the one that has begun.
    pub(crate) keeps_digits: (bool, bool),
    /// Its packets are SRTP.
    pub(crate) is_sealed: bool,
    /// Its packets are UDPTL.
    pub(crate) is_fax: bool,
    pub(crate) timed_out: bool,
    /// Latest accepted packet, or when waiting for one began.
    pub(crate) last_rtp: Instant,
    pub(crate) received: Traffic,
    pub(crate) reception: Reception,
    pub(crate) below: Below,
    /// Who sees it and whom it shows; only of video, in rooms.
    pub(crate) pictures: Option<Box<Pictures>>,

    // A packet that leaves.
    /// Where RTP goes: never to an address that neither SDP named nor the latch locked.
    pub(crate) target: Option<SocketAddr>,
    /// RTP clock units of one frame that we send.
    pub(crate) frame_units: u32,
    pub(crate) format: FormatId,
    pub(crate) payload_type: u8,
    pub(crate) sends: bool,
    /// What it sends may be audio.
    pub(crate) gives_audio: bool,
    /// It carries video, which only goes on from stream to stream.
    pub(crate) is_video: bool,
    /// What they are sealed with; a sealed stream that has none sends and accepts nothing.
    pub(crate) seal: Option<Box<Session>>,
    /// Byte by byte what a relay turns into another format by.
    pub(crate) recode: Option<&'static [u8; 256]>,
    pub(crate) out: Outgoing,
    /// When a packet of ours left last, or the stream began.
    pub(crate) last_sent: Instant,
    pub(crate) sent: Traffic,
    /// `None` for an internal stream.
    pub(crate) leg: Option<L>,

    // All that a call is besides.
    pub(crate) plan: Box<Plan>,
    /// For how long its ear holds packets back, when not as the plan says.
    pub(crate) held_back: Option<HoldBack>,
    pub(crate) lock: SourceLock,
    pub(crate) events_in: EventReceiver,
    pub(crate) digits: Digits,
    /// Audio is let through neither from its peer, nor to it.
    pub(crate) muted: (bool, bool),
    /// The room it is in, instead of a bridge.
    pub(crate) room: Option<RoomId>,
    pub(crate) tie: Option<StreamId>,
    pub(crate) mouth: Option<Box<Mouth>>,
    /// What its peer hears besides.
    pub(crate) whisper: Option<Box<Whisper>>,
    /// Its peer is sent silence when there is nothing else.
    pub(crate) fills_silence: bool,
    /// What makes its peer louder for all who hear it.
    pub(crate) shaper: Option<Box<Shaper>>,
    pub(crate) fax: Option<Box<FaxLine>>,
    pub(crate) report: Report,
    /// Changes of the format that arrives since the plan, up to a bound.
    pub(crate) changes_told: u8,
    /// The counters that only count; the rest is filled in by [`Self::stats`].
    pub(crate) totals: StreamStats,
}

impl<L> Stream<L> {
    /// Lines of the cache that a packet which arrives touches, and those behind the first of one that leaves.
    const IN: Range<usize> = 0..offset_of!(Self, target).div_ceil(LINE_BYTES);
    const OUT: Range<usize> =
        offset_of!(Self, target) / LINE_BYTES..offset_of!(Self, leg) / LINE_BYTES + LEG_LINES;

    pub(crate) fn new(
        id: StreamId,
        leg: Option<L>,
        mut plan: Box<Plan>,
        seat: Seat,
        coders: &Coders,
        now: Instant,
    ) -> Self {
        tidy(&mut plan);
        let mut stream = Self {
            id,
            wake_at: Instant::ZERO,
            play: None,
            ear: None,
            taps: None,
            held_back: None,
            feed: Feed::Quiet,
            seat,
            visits_left: 1,
            ptime_ms: plan.ptime_ms,
            turns: 0,
            reroute: false,
            ear_is_pulled: false,
            echo: false,
            dials: false,
            poisoned: false,
            trusted: None,
            bridge: None,
            kind: None,
            kind_clock: 0,
            rx_format: plan.format,
            receives: false,
            takes_audio: false,
            keeps_digits: (false, false),
            is_sealed: false,
            is_fax: false,
            timed_out: false,
            last_rtp: now,
            received: Traffic::default(),
            reception: Reception::default(),
            below: Below::new(now),
            pictures: None,
            target: None,
            frame_units: 0,
            format: plan.format,
            payload_type: plan.payload,
            sends: false,
            gives_audio: false,
            is_video: false,
            seal: None,
            recode: None,
            out: Outgoing::new(plan.ssrc, plan.first_sequence, plan.first_timestamp, plan.format.rtp_clock()),
            last_sent: now,
            sent: Traffic::default(),
            leg,
            lock: SourceLock::new(plan.latch),
            events_in: EventReceiver::default(),
            digits: Digits::new(&plan, coders),
            muted: (false, false),
            room: None,
            tie: None,
            mouth: None,
            whisper: None,
            fills_silence: false,
            shaper: None,
            fax: None,
            report: Report::new(&plan, now),
            totals: StreamStats::default(),
            changes_told: 0,
            plan,
        };
        stream.take_keys();
        stream.settle();
        stream
    }
    /// Sets out what plan and lock mean for packets; to be called when either has changed.
    pub(crate) fn settle(&mut self) {
        let (plan, locked) = (&self.plan, self.lock.locked());
        (self.target, self.trusted) = match plan.latch {
            Latch::Strict => (plan.remote, locked.filter(|_| locked == plan.remote)),
            Latch::Learn(_) => (locked.or(plan.remote), locked.filter(|_| !self.lock.is_open())),
            Latch::Off => (locked.or(plan.remote), locked),
        };
        self.receives = matches!(plan.direction, Direction::SendRecv | Direction::RecvOnly);
        self.sends = matches!(plan.direction, Direction::SendRecv | Direction::SendOnly);
        self.takes_audio = self.receives && !self.muted.0;
        self.gives_audio = self.sends && !self.muted.1;
        (self.format, self.payload_type, self.ptime_ms) = (plan.format, plan.payload, plan.ptime_ms);
        self.frame_units = plan.format.rtp_clock() / 100 * u32::from(plan.ptime_ms) / 10;
        self.is_video = plan.format.is_video();
        (self.kind, self.wake_at) = (None, Instant::ZERO);
    }
    /// Whether all turns are run before its visit: a worker that fell behind comes again before the last one was, and new
    /// routes are for what is heard from there on.
    pub(crate) const fn ends_turns(&self) -> bool {
        self.turns > 0 || self.reroute
    }
    /// What a payload type stands for.
    pub(crate) fn payload(&mut self, payload_type: u8) -> Option<RxPayload> {
        let is_it = |entry: &RxPayload| match entry {
            RxPayload::Audio(payload, _) | RxPayload::Event(payload, _) => *payload == payload_type,
        };
        if !self.kind.as_ref().is_some_and(is_it) {
            self.kind = self.plan.rx.iter().take(MAX_RX_PAYLOADS).flatten().copied().find(is_it);
            self.kind_clock = match self.kind? {
                RxPayload::Audio(_, format) => format.rtp_clock(),
                // All packets of an event carry one timestamp: they say nothing about jitter.
                RxPayload::Event(..) => 0,
            };
        }
        self.kind
    }
    /// Who gets a packet of this kind with nothing else being done about it: the partner of a relay, or itself in echo.
    #[inline]
    pub(crate) fn passes(&self, kind: RxPayload) -> Option<StreamId> {
        let is_known = matches!(kind, RxPayload::Audio(_, format) if format == self.rx_format);
        let is_plain = is_known && !self.reroute && self.ear.is_none();
        (if self.echo { Some(self.id) } else { self.bridge }).filter(|_| is_plain)
    }
    /// Whether what its peer hears is made for it alone.
    pub(crate) fn hears_apart(&self) -> bool {
        self.whisper.as_ref().is_some_and(|whisper| whisper.lasts())
    }
    /// Whether its peer is sent something though nobody talks to it and nothing plays.
    pub(crate) fn is_made_sound_for(&self) -> bool {
        let murmurs = self.whisper.as_ref().is_some_and(|whisper| whisper.murmurs());
        murmurs || self.fills_silence && self.leg.is_some() && !self.is_fax
    }
    /// What it plays goes through an encoder of its own while its peer hears something made for it alone.
    pub(crate) fn settle_play(&mut self, coders: &Coders) {
        let voiced = self.hears_apart();
        if let Some(playing) = &mut self.play {
            playing.set_voiced(voiced, &self.plan, coders);
        }
    }
    /// Has the digits do something.
    pub(crate) fn dial_with<T>(&mut self, change: impl FnOnce(&mut Digits) -> T) -> T {
        let done = change(&mut self.digits);
        self.dials = self.digits.is_busy();
        done
    }
    /// The next time that a timer can end, by what is known: packets put most of them off.
    pub(crate) fn next_timer(&self) -> Instant {
        if self.events_in.is_busy() {
            return Instant::ZERO;
        }
        if self.below.is_on() {
            // Packets that put timers off are not seen before.
            return self.below.look_at();
        }
        let after = |from: Instant, ms: u32| (ms > 0).then(|| from + Duration::from_millis(ms.into()));
        let silence = after(self.last_rtp, self.plan.rtp_timeout_ms).filter(|_| !self.timed_out);
        let keepalive = after(self.last_sent, self.plan.keepalive_ms);
        let keepalive = keepalive.filter(|_| self.leg.is_some() && self.target.is_some());
        let picture = self.pictures.as_ref().and_then(|pictures| pictures.due());
        let timers = [silence, keepalive, self.report.next_at(), picture];
        timers.into_iter().flatten().fold(self.below.look_at(), Instant::min)
    }
    /// Room for one coded packet that we send; what a format of constant rate fills exactly.
    pub(crate) fn packet_room(&self) -> usize {
        self.format.packet_room(u16::from(self.ptime_ms))
    }
    pub(crate) fn stats(&self) -> StreamStats {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        StreamStats {
            sent_packets: self.sent.packets,
            sent_bytes: self.sent.bytes,
            received_packets: self.received.packets,
            received_bytes: self.received.bytes,
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

/// Lines of a leg that a packet which leaves touches.
const LEG_LINES: usize = 3;

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
    /// Asks for what a visit looks at.
    pub(crate) fn fetch_visit(&self, slot: u32) {
        if let Some(Some(stream)) = self.0.get(slot as usize) {
            prefetch(&**stream, 0..1);
        }
    }
    /// Asks for what a packet touches that arrives for a stream.
    pub(crate) fn fetch_receiver(&self, slot: u32) {
        if let Some(Some(stream)) = self.0.get(slot as usize) {
            prefetch(&**stream, Stream::<L>::IN);
        }
    }
    /// Asks for what a stream hears with, which a packet for it goes to when no other stream takes it as it is.
    pub(crate) fn fetch_ear(&self, slot: u32) {
        if let Some(Some(stream)) = self.0.get(slot as usize)
            && let Some(ear) = &stream.ear
        {
            prefetch(&**ear, 0..size_of::<Ear>().div_ceil(LINE_BYTES));
        }
    }
    /// Asks for what a packet of its own touches that leaves by a stream.
    pub(crate) fn fetch_leaving(&self, slot: u32) {
        if let Some(Some(stream)) = self.0.get(slot as usize) {
            prefetch(&**stream, Stream::<L>::OUT);
        }
    }
    /// Asks for what a packet touches that leaves by the bridge of a stream, or by itself when it plays.
    pub(crate) fn fetch_sender(&self, slot: u32) {
        let Some(Some(stream)) = self.0.get(slot as usize) else { return };
        if let Some(Some(peer)) = stream.bridge.and_then(|peer| self.0.get(peer.slot as usize)) {
            prefetch(&**peer, 0..1);
            prefetch(&**peer, Stream::<L>::OUT);
        }
    }
    /// Asks for what a visit touches of a stream that plays.
    pub(crate) fn fetch_player(&self, slot: u32) {
        if let Some(Some(stream)) = self.0.get(slot as usize)
            && let Some(playing) = &stream.play
        {
            prefetch(&**playing, 0..1);
            prefetch(&**stream, Stream::<L>::OUT);
        }
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
        // 20 kB of resident memory a call is the goal for the whole process; a leg's socket handle is a few words. The place of
        // telephone-events by sequence number took 32 bytes more.
        let bytes = size_of::<super::Stream<[u64; 6]>>() + size_of::<base::Plan>();
        assert!(bytes <= 1568, "{bytes} bytes");
    }

    #[test]
    fn a_packet_touches_few_lines_of_a_stream() {
        type Stream = super::Stream<[u64; 24]>;
        const {
            assert!(core::mem::offset_of!(Stream, trusted) <= 64, "a visit needs one");
            assert!(Stream::IN.end <= 5, "of who receives");
            assert!(Stream::OUT.end - Stream::OUT.start <= 6, "of who sends, with its leg");
        }
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
            keys: None,
            picture: base::PictureRequest::default(),
        }
    }
}
