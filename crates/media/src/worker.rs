//! The worker: commands in, ticks, events out, and the net under every stream's own code.

use core::net::SocketAddr;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::Arc;

use base::{Clip, Command, DtmfMode, Event, Fault, Instant, Latch, Plan, PlayEnd, RoomId, StreamId};
use codec::Coders;
use rtp::Discard;

use crate::ear::FRAME_SAMPLES_MAX;
use crate::fax::FaxLine;
use crate::groups::{Groups, Lanes};
use crate::load::Load;
use crate::monitor::{self, Monitors};
use crate::packet_io::{Batch, PacketIo};
use crate::phase::Phase;
use crate::play::Playing;
use crate::report::Said;
use crate::room::Rooms;
use crate::shaper::Shaper;
use crate::stream::{Moving, Slab, Stream, tidy};
use crate::taps::Taps;
use crate::trace::{Carried, Noted, Trace, Traced, Tracing};
use crate::wheel::{SLOTS, Wheel};

/// Streams of all workers together: twice the ports that UDP has, because internal streams have none.
pub const STREAMS_MAX: u32 = 1 << 17;
/// A worker that fell behind by more than the whole wheel gives the missed slots up.
const BEHIND_MAX: u64 = SLOTS as u64;
/// Lateness that counts: more than the longest tick a shell may choose.
const LATE_MS: u64 = STILL_MS;
/// Nanoseconds of a millisecond.
const NANOS_PER_MS: u64 = 1_000_000;

/// What a worker has to be told at birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Wall time at [`Instant::ZERO`], as NTP's 32.32 fixed point since 1900; sender reports carry it.
    pub ntp_at_zero: u64,
    /// How streams are coded side by side.
    pub lanes: Lanes,
}

/// What a worker is told: the contract's [`Command`]s, and births, which only this crate and its back-ends know.
pub enum Input<L> {
    /// A stream with a leg of its own.
    Open {
        /// Its id.
        stream: StreamId,
        /// Its ports.
        leg: L,
        /// What is known of its peer so far.
        plan: Box<Plan>,
    },
    /// A stream without a socket; see [`Command::Tie`].
    OpenInternal {
        /// Its id.
        stream: StreamId,
        /// Its format and frame length; remote and latch mean nothing.
        plan: Box<Plan>,
    },
    /// A command of the contract.
    Command(Command),
    /// A stream that another worker gave away.
    Adopt(Moving<L>),
    /// How streams are coded from here on. Those that are coded by what is gone are planned anew.
    Coders(Arc<Coders>),
    /// Traces packets, or stops to.
    Trace(Tracing),
    /// Makes the stream's next visit panic: fault injection for tests.
    Poison(StreamId),
    /// Makes the next group in which the stream is coded panic: fault injection for tests.
    PoisonGroup(StreamId),
    /// Makes the next round of the stream in its room panic: fault injection for tests.
    PoisonMember(StreamId),
    /// Makes the next mix of the room panic: fault injection for tests.
    PoisonRoom(RoomId),
}

/// Rooms that every step shares, so that no step allocates.
pub(crate) struct Scratch {
    pub(crate) packets: Batch,
    pub(crate) linear: Box<[i16]>,
    pub(crate) monitored: monitor::Room,
}

/// One media worker; `L` is the leg of its packet back-end.
pub struct Worker<L> {
    config: Config,
    coders: Arc<Coders>,
    pub(crate) streams: Slab<L>,
    wheel: Wheel,
    scratch: Scratch,
    pub(crate) load: Load,
    pub(crate) groups: Groups,
    pub(crate) rooms: Rooms,
    /// The millisecond that was run last.
    last_ms: Option<u64>,
    /// The stream whose code is running, to blame when it panics.
    current: Option<StreamId>,
    trace: Option<Box<Trace>>,
}

/// What one step may touch.
pub(crate) struct Desk<'a, P: PacketIo> {
    pub(crate) coders: &'a Coders,
    pub(crate) streams: &'a mut Slab<P::Leg>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) load: &'a mut Load,
    pub(crate) groups: &'a mut Groups,
    pub(crate) rooms: &'a mut Rooms,
    pub(crate) io: &'a mut P,
    pub(crate) events: &'a mut Vec<Event>,
    pub(crate) current: &'a mut Option<StreamId>,
    pub(crate) trace: &'a mut Option<Box<Trace>>,
    pub(crate) wheel: &'a Wheel,
    pub(crate) at: Instant,
    pub(crate) ntp_at_zero: u64,
}

impl<P: PacketIo> Desk<'_, P> {
    /// Notes a packet for whoever watches.
    pub(crate) fn note(&mut self, sent: bool, peer: SocketAddr, carried: Carried, length: usize) {
        if let Some(trace) = self.trace {
            trace.note(Traced { sent, peer, carried, length });
        }
    }
    /// Tells what a report of RTCP said, if anybody wants to know.
    pub(crate) fn tell_report(&mut self, id: StreamId, said: Said, sent: bool, peer: SocketAddr) {
        if self.trace.as_ref().is_some_and(|trace| trace.tells_reports())
            && let Some(stream) = self.streams.get(id)
        {
            let report = stream.told(said, sent, peer);
            self.events.push(Event::Rtcp { stream: id, report });
        }
    }
    /// Wall time as NTP's 32.32 fixed point.
    pub(crate) fn ntp(&self, now: Instant) -> u64 {
        let since = (u128::from(now.as_nanos()) << 32) / 1_000_000_000;
        self.ntp_at_zero.wrapping_add(since as u64)
    }
}

impl<L> Worker<L> {
    /// A worker without streams.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            coders: Arc::default(),
            streams: Slab::new(),
            wheel: Wheel::new(),
            scratch: Scratch {
                packets: Batch::new(),
                linear: vec![0; FRAME_SAMPLES_MAX].into(),
                monitored: monitor::Room::new(),
            },
            load: Load::default(),
            groups: Groups::new(config.lanes),
            rooms: Rooms::new(config.lanes.level),
            last_ms: None,
            current: None,
            trace: None,
        }
    }
    /// Counters so far.
    pub const fn load(&self) -> &Load {
        &self.load
    }
    /// When [`Self::tick`] next wants to be called at the latest; `None` while there is no stream.
    ///
    /// `step_ms` is the tick that the shell has chosen by [`tick_step`].
    pub fn deadline(&self, step_ms: u64) -> Option<Instant> {
        let step = step_ms.max(1);
        let last = self.last_ms.filter(|_| self.load.streams > 0)?;
        let next = Instant::from_nanos((last / step + 1) * step * NANOS_PER_MS);
        Some(self.groups.deadline().map_or(next, |turn| turn.min(next)))
    }
    /// Applies one input. Not the packet path: may allocate.
    pub fn input<P>(&mut self, input: Input<L>, now: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        // A command meets streams as if nobody waited for company.
        self.run_turns(now, true, io, events);
        match input {
            Input::Open { stream, leg, plan } => self.open(stream, Some(leg), plan, now, io, events),
            Input::OpenInternal { stream, plan } => self.open(stream, None, plan, now, io, events),
            Input::Coders(coders) => self.take_coders(coders, now, io, events),
            Input::Trace(tracing) => self.start_trace(tracing, now, io, events),
            Input::Adopt(moving) => self.adopt(moving, io, events, now),
            Input::Poison(id) => {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.poisoned = true;
                }
            }
            Input::PoisonGroup(id) => {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.ear.iter_mut().for_each(|ear| ear.poison());
                    stream.mouth.iter_mut().for_each(|mouth| mouth.poison());
                    stream.play.iter_mut().filter_map(|play| play.mouth()).for_each(|mouth| mouth.poison());
                    if let Some(room) = stream.room {
                        self.rooms.poison_mouth(room, id);
                    }
                }
            }
            Input::PoisonMember(id) => {
                if let Some(room) = self.streams.get(id).and_then(|stream| stream.room) {
                    self.rooms.poison(room, Some(id));
                }
            }
            Input::PoisonRoom(room) => self.rooms.poison(room, None),
            Input::Command(Command::Close { stream }) => self.close(stream, None, now, io, events),
            Input::Command(Command::Plan { stream, plan }) => {
                self.guarded(now, io, events, |desk| desk.replan(stream, plan));
                self.reseat(stream);
            }
            Input::Command(command) => self.guarded(now, io, events, |desk| desk.command(command)),
        }
    }
    /// One tick: drains what was received, then visits every slot up to `now`.
    pub fn tick<P>(&mut self, now: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        self.load.ticks += 1;
        io.phase(Phase::Receive);
        self.receive(now, io, events);
        io.phase(Phase::Jitter);
        let now_ms = now.as_millis();
        let last = self.last_ms.unwrap_or(now_ms.saturating_sub(1));
        let first = (last + 1).max((now_ms + 1).saturating_sub(BEHIND_MAX));
        self.load.late_ticks += first - (last + 1).min(first);
        for ms in first..=now_ms {
            if now_ms - ms > LATE_MS {
                self.load.late_ticks += 1;
            }
            let at = Instant::from_nanos(ms * NANOS_PER_MS);
            self.visit_all(ms, at, io, events);
            self.run_rooms(ms, at, io, events);
        }
        self.last_ms = Some(now_ms.max(last));
        self.run_turns(now, false, io, events);
        io.phase(Phase::Send);
        io.tx_batch();
        io.phase(Phase::Control);
    }
    /// Everything that has arrived, batch by batch.
    fn receive<P>(&mut self, now: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        loop {
            self.scratch.packets.clear();
            let more = io.rx_batch(&mut self.scratch.packets);
            self.load.received += self.scratch.packets.len() as u64;
            let mut next = 0;
            while next < self.scratch.packets.len() {
                // A panic costs its own packet; the others of the batch go on behind it.
                self.guarded(now, io, events, |desk| desk.judge_batch(&mut next));
            }
            if !more {
                return;
            }
        }
    }
    /// Visits the streams that sit at a millisecond.
    fn visit_all<P>(&mut self, ms: u64, at: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        let mut seat = 0;
        while let Some(slot) = self.wheel.at(ms, seat) {
            if self.streams.at(slot).is_some_and(|stream| stream.ends_turns()) {
                self.run_turns(at, true, io, events);
                io.phase(Phase::Jitter);
            }
            let mut visited = slot;
            self.guarded(at, io, events, |desk| desk.visit_row(ms, &mut seat, &mut visited));
            // A stream that a panic ended has left, and another one sits in its place.
            if self.wheel.at(ms, seat - 1) != Some(visited) {
                seat -= 1;
            }
        }
    }
    /// Gives a stream away, to be [adopted](Input::Adopt) by another worker. Its bridge and tie stay named, so all that
    /// are connected move together.
    pub fn release<P>(
        &mut self,
        id: StreamId,
        now: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
    ) -> Option<Moving<L>>
    where
        P: PacketIo<Leg = L>,
    {
        self.run_turns(now, true, io, events);
        // A room does not move with one of its members.
        self.guarded(now, io, events, |desk| {
            desk.recall(id);
            if desk.leave_room(id) {
                desk.plan_routes(id);
            }
        });
        let mut stream = self.streams.take(id)?;
        self.wheel.rise(id.slot, stream.seat);
        self.load.streams -= 1;
        if let Some(leg) = &mut stream.leg {
            io.detach(leg);
        }
        Some(Moving(stream))
    }
    /// Packets noted since the last call, when there are any to show.
    pub fn take_trace(&mut self) -> Option<Noted> {
        self.trace.as_mut()?.take()
    }
    /// Every open stream, in the order of slots.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.streams.ids()
    }

    fn desk<'a, P>(&'a mut self, at: Instant, io: &'a mut P, events: &'a mut Vec<Event>) -> Desk<'a, P>
    where
        P: PacketIo<Leg = L>,
    {
        Desk {
            coders: &self.coders,
            streams: &mut self.streams,
            scratch: &mut self.scratch,
            load: &mut self.load,
            groups: &mut self.groups,
            rooms: &mut self.rooms,
            io,
            events,
            current: &mut self.current,
            trace: &mut self.trace,
            wheel: &self.wheel,
            at,
            ntp_at_zero: self.config.ntp_at_zero,
        }
    }
    /// Runs one step; a panic ends the stream whose code it was, and nothing else.
    pub(crate) fn guarded<P>(
        &mut self,
        at: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
        step: impl FnOnce(&mut Desk<P>),
    ) where
        P: PacketIo<Leg = L>,
    {
        self.current = None;
        let caught = catch_unwind(AssertUnwindSafe(|| step(&mut self.desk(at, io, events))));
        if caught.is_err() {
            self.load.panics += 1;
            if let Some(guilty) = self.current.take() {
                self.close(guilty, Some(Fault::Panicked), at, io, events);
            }
        }
    }
    fn open<P>(
        &mut self,
        id: StreamId,
        leg: Option<L>,
        plan: Box<Plan>,
        now: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
    ) where
        P: PacketIo<Leg = L>,
    {
        let taken = self.streams.at(id.slot).is_some();
        let mut leg = leg;
        let full = taken || id.slot >= STREAMS_MAX;
        if full || !leg.as_mut().is_none_or(|leg| io.attach(id.slot, leg)) {
            let fault = Some(if full { Fault::Full } else { Fault::Socket });
            events.push(Event::Closed { stream: id, stats: Default::default(), fault });
            return;
        }
        self.last_ms.get_or_insert(now.as_millis());
        if self.load.streams == 0 {
            // Nobody was there to be late for.
            self.last_ms = Some(now.as_millis());
        }
        let mut plan = plan;
        tidy(&mut plan);
        let seat = self.wheel.sit(id.slot, plan.ptime_ms);
        self.streams.insert(Box::new(Stream::new(id, leg, plan, seat, &self.coders, now)));
        self.load.streams += 1;
        self.groups.reserve(self.load.streams as usize);
        self.guarded(now, io, events, |desk| desk.planned(id));
    }
    fn take_coders<P>(&mut self, coders: Arc<Coders>, now: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        self.rooms.set_coders(&coders);
        self.coders = coders;
        let ids: Vec<_> = self.streams.ids().collect();
        for id in ids {
            self.guarded(now, io, events, |desk| desk.recode(id));
        }
    }
    fn start_trace<P>(&mut self, tracing: Tracing, now: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        let before = self.trace.take().map(|trace| trace.tracing()).unwrap_or_default();
        self.trace = Trace::new(tracing);
        if (before.rtp, before.rtcp) == (tracing.rtp, tracing.rtcp) {
            return;
        }
        // What passes below is not seen here.
        let ids: Vec<_> = self.streams.ids().collect();
        for id in ids {
            self.guarded(now, io, events, |desk| desk.recall(id));
        }
    }
    fn adopt<P>(&mut self, moving: Moving<L>, io: &mut P, events: &mut Vec<Event>, now: Instant)
    where
        P: PacketIo<Leg = L>,
    {
        let Moving(mut stream) = moving;
        let id = stream.id;
        let attached = stream.leg.as_mut().is_none_or(|leg| io.attach(id.slot, leg));
        if self.load.streams == 0 {
            self.last_ms = Some(now.as_millis());
        }
        stream.seat = self.wheel.sit(id.slot, stream.plan.ptime_ms);
        self.streams.insert(stream);
        self.load.streams += 1;
        self.groups.reserve(self.load.streams as usize);
        if attached {
            self.guarded(now, io, events, |desk| desk.plan_routes(id));
        } else {
            self.close(id, Some(Fault::Socket), now, io, events);
        }
    }
    pub(crate) fn close<P>(
        &mut self,
        id: StreamId,
        fault: Option<Fault>,
        now: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
    ) where
        P: PacketIo<Leg = L>,
    {
        if self.streams.get(id).is_none() {
            return;
        }
        // Good manners may fail: the stream is taken out whatever happens in them.
        let mut desk = self.desk(now, io, events);
        let _ = catch_unwind(AssertUnwindSafe(|| desk.leave(id, fault)));
        let Some(stream) = self.streams.take(id) else { return };
        self.wheel.rise(id.slot, stream.seat);
        self.load.streams -= 1;
        events.push(Event::Closed { stream: id, stats: stream.stats(), fault });
    }
    /// A plan with another frame length needs another seat.
    fn reseat(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let frame = u16::from(stream.seat.period) * u16::from(stream.seat.visits);
        if frame != u16::from(stream.plan.ptime_ms) {
            self.wheel.rise(id.slot, stream.seat);
            stream.seat = self.wheel.sit(id.slot, stream.plan.ptime_ms);
            stream.visits_left = stream.seat.visits;
        }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    fn command(&mut self, command: Command) {
        let coders = self.coders;
        match command {
            // Both are the worker's own: they change the wheel.
            Command::Plan { .. } | Command::Close { .. } => {}
            Command::Tie { a, b } => self.tie(a, b),
            Command::Join { a, b } => self.join(a, b),
            Command::Part { stream } => self.part(stream),
            Command::Enter { stream, room, mixing, member } => {
                self.enter(stream);
                self.enter_room(stream, room, mixing, member);
            }
            Command::Show { stream, source } => self.show(stream, source),
            Command::AskPicture { stream } => self.ask_picture(stream),
            Command::Adjust { stream, member } => self.adjust_member(stream, member),
            Command::Announce { room, clip } => self.announce(room, clip),
            Command::RecordRoom { room, format, sink } => self.record_room(room, Some((format, sink))),
            Command::StopRecordRoom { room } => self.record_room(room, None),
            Command::Echo { stream, on } => {
                if let Some(found) = self.enter(stream) {
                    found.echo = on;
                    self.plan_routes(stream);
                }
            }
            Command::Mute { stream, heard, sent } => {
                if let Some(found) = self.enter(stream) {
                    found.muted = (heard, sent);
                    found.settle();
                }
            }
            Command::Play { stream, play, clip, offset } => {
                self.stop_play(stream);
                let Some(found) = self.enter(stream) else { return };
                match Playing::clip(play, clip, offset, &found.plan, coders) {
                    Some(playing) => {
                        found.play = Some(Box::new(playing));
                        found.settle_play(coders);
                    }
                    None => {
                        self.events.push(Event::Played { stream, play, end: PlayEnd::Failed, offset });
                    }
                }
            }
            Command::Music { stream, clip, epoch } => {
                self.stop_play(stream);
                let now = self.at;
                let Some(found) = self.enter(stream) else { return };
                found.play = Playing::music(clip, epoch, now, &found.plan, coders).map(Box::new);
                found.settle_play(coders);
            }
            Command::Live { stream, format, source } => {
                self.stop_play(stream);
                let Some(found) = self.enter(stream) else { return };
                found.play = Playing::live(format, source, &found.plan, coders).map(Box::new);
            }
            Command::Whisper { stream, clip } => self.whisper(stream, clip),
            Command::Murmur { stream, murmur, format, source } => {
                if let Some(found) = self.enter(stream).filter(|_| format.is_linear()) {
                    found.whisper.get_or_insert_default().begin(murmur, format, source);
                    self.plan_routes(stream);
                }
            }
            Command::StopMurmur { stream, murmur } => {
                if let Some(Stream { whisper: Some(whisper), .. }) = self.enter(stream) {
                    whisper.end(murmur);
                    self.plan_routes(stream);
                }
            }
            Command::StopPlay { stream } => self.stop_play(stream),
            Command::SendDigit { stream, digit, duration_ms } => {
                if let Some(found) = self.enter(stream)
                    && !found.dial_with(|digits| digits.queue(digit, u32::from(duration_ms), true))
                {
                    self.load.discards.count(Discard::Overflow);
                }
            }
            Command::KeepDigits { stream, on } => {
                if let Some(found) = self.enter(stream) {
                    found.keeps_digits.0 = on;
                }
            }
            Command::DetectInband { stream, on } => {
                let wanted = |plan: &Plan| on || plan.dtmf == DtmfMode::Inband;
                self.with_taps(stream, |taps, plan| taps.detect_inband(wanted(plan)));
            }
            Command::DetectTrunkDigits { stream, digits } => {
                self.with_taps(stream, |taps, _| taps.detect_trunk_digits(digits));
            }
            Command::Record { stream, format, sink } => {
                self.with_taps(stream, |taps, _| taps.record(format, sink));
            }
            Command::Monitor { stream, monitor, format, settings, sinks } => {
                let begin = |taps: &mut Taps, _: &Plan| {
                    let monitors = taps.monitors.get_or_insert_with(|| Box::new(Monitors::new()));
                    monitors.begin(monitor, format, settings, *sinks);
                };
                self.with_taps(stream, begin);
            }
            Command::AdjustMonitor { stream, monitor, settings } => self.with_taps(stream, |taps, _| {
                taps.monitors.iter_mut().for_each(|monitors| monitors.adjust(monitor, settings));
            }),
            Command::StopMonitor { stream, monitor } => self.with_taps(stream, |taps, _| {
                taps.monitors.iter_mut().for_each(|monitors| monitors.end(monitor));
            }),
            Command::StopRecord { stream } => self.with_taps(stream, |taps, _| taps.stop_record()),
            Command::WatchSilence { stream, ms, threshold } => {
                self.with_taps(stream, |taps, _| taps.watch_silence(ms, threshold));
            }
            Command::HoldBack { stream, limits } => {
                if let Some(found) = self.enter(stream) {
                    found.held_back = limits;
                    found.ear = None;
                    self.plan_routes(stream);
                }
            }
            Command::Shape { stream, heard, sent } => {
                if let Some(found) = self.enter(stream) {
                    let before = found.shaper.take().map(|shaper| *shaper);
                    found.shaper = Shaper::renewed(before, heard).map(Box::new);
                    found.whisper.get_or_insert_default().shape(sent);
                    self.plan_routes(stream);
                }
            }
            Command::FillSilence { stream, on } => {
                if let Some(found) = self.enter(stream) {
                    found.fills_silence = on;
                    self.plan_routes(stream);
                }
            }
            Command::WatchSound { stream, listener, watch } => {
                self.with_taps(stream, |taps, _| taps.watch_sound(listener, watch));
            }
            Command::WatchTone { stream, listener, watch } => self.with_taps(stream, |taps, _| {
                if watch.is_some() || taps.monitors.is_some() {
                    taps.monitors
                        .get_or_insert_with(|| Box::new(Monitors::new()))
                        .watch_tone(listener, watch);
                }
            }),
            Command::Fax { stream, fax } => {
                if let Some(found) = self.enter(stream) {
                    found.fax = fax.map(|fax| Box::new(FaxLine::new(fax)));
                    found.is_fax = found.fax.is_some();
                }
            }
            Command::Stats { stream } => {
                self.catch_up_both(stream);
                if let Some(found) = self.streams.get(stream) {
                    self.events.push(Event::Stats { stream, stats: found.stats(), asked: true });
                }
            }
        }
    }
    /// The stream, which is to blame from here on.
    ///
    /// What is about to happen to it happens up here: its bridge comes back.
    fn enter(&mut self, id: StreamId) -> Option<&mut Stream<P::Leg>> {
        self.recall(id);
        let stream = self.streams.get_mut(id)?;
        *self.current = Some(id);
        Some(stream)
    }
    fn with_taps(&mut self, id: StreamId, change: impl FnOnce(&mut Taps, &Plan)) {
        let Some(stream) = self.enter(id) else { return };
        let taps = stream.taps.get_or_insert_default();
        change(taps, &stream.plan);
        self.plan_routes(id);
    }
    /// In a bridge the clip goes beside the talk; where nothing is heard it is played.
    fn whisper(&mut self, id: StreamId, clip: Arc<Clip>) {
        let coders = self.coders;
        let Some(stream) = self.enter(id).filter(|stream| stream.play.is_none()) else { return };
        if stream.bridge.is_none() {
            stream.play = Playing::aside(clip, &stream.plan, coders).map(Box::new);
            stream.settle_play(coders);
            return;
        }
        stream.whisper.get_or_insert_default().set_clip(clip);
        self.plan_routes(id);
    }
    fn tie(&mut self, a: StreamId, b: StreamId) {
        let internal = |id| self.streams.get(id).is_some_and(|s| s.leg.is_none() && s.tie.is_none());
        if a == b || !internal(a) || !internal(b) {
            return;
        }
        for (one, other) in [(a, b), (b, a)] {
            if let Some(stream) = self.streams.get_mut(one) {
                stream.tie = Some(other);
            }
        }
    }
    fn stop_play(&mut self, id: StreamId) {
        let Some(stream) = self.enter(id) else { return };
        if let Some(playing) = stream.play.take()
            && let Some(play) = playing.play
        {
            let offset = playing.offset;
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Stopped, offset });
        }
    }
    /// A new plan replaces the old one whole; sequence and timestamp run on while the SSRC stays.
    fn replan(&mut self, id: StreamId, mut plan: Box<Plan>) {
        let now = self.at;
        let Some(stream) = self.enter(id) else { return };
        tidy(&mut plan);
        if plan.ssrc == stream.plan.ssrc {
            stream.out.set_clock(plan.format.rtp_clock());
        } else {
            let (sequence, timestamp) = (plan.first_sequence, plan.first_timestamp);
            stream.out = rtp::Outgoing::new(plan.ssrc, sequence, timestamp, plan.format.rtp_clock());
        }
        stream.lock.replan(plan.latch, plan.relearn, plan.remote != stream.plan.remote);
        stream.plan = plan;
        stream.take_keys();
        stream.settle();
        stream.report.replan(&stream.plan, now);
        let plan = &stream.plan;
        let still =
            |entry: &base::RxPayload| matches!(entry, base::RxPayload::Audio(_, f) if *f == stream.rx_format);
        if !plan.rx.iter().flatten().any(still) {
            stream.rx_format = plan.format;
        }
        // The jitter buffer's bounds may have changed; an ear of the old ones is of no use.
        stream.ear = None;
        (stream.last_rtp, stream.timed_out) = (now, false);
        stream.changes_told = 0;
        self.recode(id);
        self.planned(id);
    }
    /// The plan or the coders changed: digits and clips are coded by what holds now. A clip that cannot be sent any more
    /// ends here.
    fn recode(&mut self, id: StreamId) {
        let coders = self.coders;
        let Some(stream) = self.enter(id) else { return };
        let Stream { plan, digits, play, .. } = stream;
        digits.replan(plan, coders);
        let ended = play.take_if(|playing| !playing.retarget(plan, coders));
        if let Some(Playing { play: Some(play), offset, .. }) = ended.as_deref() {
            let (play, offset) = (*play, *offset);
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Failed, offset });
        }
        self.plan_routes(id);
    }
    /// What follows from a plan: who is let in, tones that are listened for, routes.
    fn planned(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        *self.current = Some(id);
        let source = match stream.plan.latch {
            Latch::Strict => stream.plan.remote,
            Latch::Learn(_) => stream.lock.locked().filter(|_| !stream.lock.is_open()),
            Latch::Off => None,
        };
        if let Some(leg) = &mut stream.leg {
            self.io.lock(leg, source);
        }
        if stream.plan.dtmf == DtmfMode::Inband {
            stream.taps.get_or_insert_default().detect_inband(true);
        }
        self.plan_routes(id);
    }
    /// The last words of a stream: what it was doing ends, its peers are freed, BYE.
    fn leave(&mut self, id: StreamId, fault: Option<Fault>) {
        self.recall(id);
        self.stop_play(id);
        self.part(id);
        if let Some(partner) = self.streams.get_mut(id).and_then(|s| s.tie.take())
            && let Some(stream) = self.streams.get_mut(partner)
        {
            stream.tie = None;
        }
        // What panicked is not asked to speak again, and who never spoke does not take leave (RFC 3550 §6.3.7).
        if fault.is_none() && self.streams.get(id).is_some_and(|s| s.report.is_on() && s.has_spoken()) {
            self.send_report(id, true);
        }
    }
}

/// Packets a second below which a tick is stretched: there wake-ups cost more than they give (measured at 10,000 a
/// second: 12.9 us a packet when each wakes the worker, 6.7 in ticks of 5 ms; at 25,000, 500 calls in Playback, ticks of
/// 5 ms cost a seventh less than those of 1 ms).
const STRETCH_BELOW: u64 = 40_000;

/// Tick while streams are open and not a packet moves: calls that ring, wait or are held. One frame of nearly all peers,
/// so that the first packet of a prompt or a peer is at most that late; with it the shell goes back to short ticks.
const STILL_MS: u64 = 20;

/// How long a shell's tick is to be at this load.
pub const fn tick_step(packets_per_second: u64) -> Duration {
    Duration::from_millis(match packets_per_second {
        0 => STILL_MS,
        1..STRETCH_BELOW => 5,
        _ => 1,
    })
}
