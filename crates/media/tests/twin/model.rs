//! The twin of a worker: what every line is to send, hear and tell, said the plain way. No wheel that turns, no groups, no
//! batches, no packet buffer: whoever is due hears, decodes, encodes and sends at once, alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{
    Clip, Digit, Direction, DtmfMode, Event, Fault, FormatId, Instant, Latch, MemberSettings, Plan, PlayEnd,
    PlayId, Random, RoomId, RoomSettings, RxPayload, SampleRate, SrtpKeys, StreamId, StreamStats,
};
use codec::Coders;
use rtp::rtcp::Feedback;
use rtp::{
    Arrived, EventEdge, EventPlace, EventReceiver, Header, Outgoing, Reception, SourceLock, Stamp, Verdict,
    rtcp,
};

use srtp::{RTCP_TRAILER_MAX, RTP_TRAILER_MAX, Session};

use crate::dialler::{Dialler, Turn, Way};
use crate::hall::{Hall, Ways};
use crate::parts::{Ear, Keep, Mouth, Player, Silence, Tap, Taps, samples};
use crate::script::has_memory;
use crate::timetable::{Seat, Timetable};

/// A worker that fell behind by more gives the rest up.
const BEHIND_MS_MAX: u64 = 120;
/// Longest chain of ties.
const TIES_MAX: u8 = 8;

/// Something that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub at_ms: u64,
    pub to: SocketAddr,
    pub rtcp: bool,
    /// RTCP from the port of RTP.
    pub shared: bool,
    pub bytes: Vec<u8>,
    /// Whether the payload is said to the bit; of an encoder that a room shares only the length is.
    pub is_exact: bool,
}

/// Where a line gets its sound from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    Quiet,
    Relay(StreamId),
    Transcode(StreamId),
}

struct Line {
    id: StreamId,
    internal: bool,
    plan: Plan,
    /// What its packets are opened and sealed with, when it has keys.
    seal: Option<Session>,
    seat: Seat,
    visits_left: u8,
    lock: SourceLock,
    out: Outgoing,
    reception: Reception,
    events_in: EventReceiver,
    dialler: Dialler,
    player: Option<Player>,
    bridge: Option<StreamId>,
    room: Option<RoomId>,
    tie: Option<StreamId>,
    echo: bool,
    muted: (bool, bool),
    /// Its digits stay here, and whether the one that it presses does.
    withholds: bool,
    withheld: bool,
    feed: Feed,
    recode: Option<&'static [u8; 256]>,
    /// Format that arrives; after a change nothing is heard until the next visit.
    arriving: FormatId,
    unsettled: bool,
    changes: u8,
    ear: Option<Ear>,
    ear_is_pulled: bool,
    mouth: Option<Mouth>,
    taps: Option<Taps>,
    report: Report,
    totals: StreamStats,
    last_sent: Instant,
    last_rtp: Instant,
    timed_out: bool,
    poisoned: bool,
}

/// RTCP of a line.
struct Report {
    next_at: Option<Instant>,
    sent_before: u64,
    reported: bool,
    last_sr: Option<(u32, Instant)>,
    round_trip: Duration,
    peer_lost: u32,
    peer_jitter: u32,
}

/// Sound on its way into a line.
struct Heard {
    source: u64,
    sequence: u16,
    timestamp: u32,
    marker: bool,
    format: FormatId,
    payload: Vec<u8>,
    ties: u8,
}

/// A visit whose codec has lanes: what it tells and sends comes at the end of the tick, when the worker runs groups.
struct Later {
    to: StreamId,
    at: Instant,
    what: What,
}

enum What {
    Hears { from: StreamId, heard: Taken, speaks: bool },
    Plays(Vec<u8>),
}

/// A frame that was due.
struct Taken {
    linear: Vec<i16>,
    rate: SampleRate,
    starved: bool,
}

/// The lines of one worker.
pub struct Twin {
    coders: Coders,
    lines: BTreeMap<u32, Line>,
    halls: BTreeMap<u32, Hall>,
    timetable: Timetable,
    hall_timetable: Timetable,
    last_ms: Option<u64>,
    /// The moment of the tick or command, and that for which something is done.
    now_ms: u64,
    at: Instant,
    ntp_at_zero: u64,
    later: Vec<Later>,
    pub sent: BTreeMap<StreamId, Vec<Sent>>,
    pub events: Vec<Event>,
}

pub struct Moved(Line);

pub fn instant(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// What packets are opened and sealed with from here on: a direction whose key stays goes on with its counters.
pub fn rekeyed(seal: Option<Session>, keys: Option<&SrtpKeys>) -> Option<Session> {
    let keys = keys?;
    let mut seal = seal;
    match seal.as_mut().and_then(|seal| seal.rekey(keys)) {
        Some(()) => seal,
        None => Session::new(keys),
    }
}

/// Brings a plan into what lines can do: packets of 10 to 60 ms in whole frames.
fn tidy(plan: &mut Plan) {
    let step = plan.format.packet_step_ms();
    let wanted = (plan.ptime_ms / 10 * 10).next_multiple_of(step);
    plan.ptime_ms = wanted.clamp(step, 60 / step * step);
}

impl Line {
    fn sends(&self) -> bool {
        matches!(self.plan.direction, Direction::SendRecv | Direction::SendOnly)
    }
    fn receives(&self) -> bool {
        matches!(self.plan.direction, Direction::SendRecv | Direction::RecvOnly)
    }
    fn gives_audio(&self) -> bool {
        self.sends() && !self.muted.1
    }
    fn takes_audio(&self) -> bool {
        self.receives() && !self.muted.0
    }
    fn target(&self) -> Option<SocketAddr> {
        let named = self.plan.remote;
        if self.plan.latch == Latch::Strict { named } else { self.lock.locked().or(named) }
    }
    /// Clock units of one packet.
    fn units(&self) -> u32 {
        self.plan.format.rtp_clock() / 100 * u32::from(self.plan.ptime_ms) / 10
    }
    fn payload(&self, number: u8) -> Option<RxPayload> {
        self.plan.rx.iter().flatten().copied().find(|entry| match entry {
            RxPayload::Audio(payload, _) | RxPayload::Event(payload, _) => *payload == number,
        })
    }
    fn has_spoken(&self) -> bool {
        self.totals.sent_packets > 0 || self.report.reported
    }
    fn stats(&self) -> StreamStats {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let jitter = u64::from(self.report.peer_jitter) * 1_000_000;
        StreamStats {
            lost_packets: self.reception.lost(),
            buffer_ms: self.ear.as_ref().map_or(0, Ear::delay_ms),
            jitter_us: micros(self.reception.jitter_time()),
            round_trip_us: micros(self.report.round_trip),
            peer_lost_packets: self.report.peer_lost,
            peer_jitter_us: (jitter / u64::from(self.plan.format.rtp_clock())).min(u32::MAX.into()) as u32,
            ssrc: self.out.ssrc(),
            peer_ssrc: self.reception.ssrc().unwrap_or(0),
            ..self.totals
        }
    }
}

impl Report {
    fn replan(&mut self, plan: &Plan, now: Instant) {
        if plan.rtcp_interval_ms == 0 || plan.remote_rtcp.is_none() {
            self.next_at = None;
        } else if self.next_at.is_none() {
            self.next_at = Some(now + Duration::from_millis(plan.rtcp_interval_ms.into()));
        }
    }
}

/// What the shell tells.
impl Twin {
    pub fn new(ntp_at_zero: u64) -> Self {
        Self {
            coders: Coders::default(),
            lines: BTreeMap::new(),
            halls: BTreeMap::new(),
            timetable: Timetable::new(),
            hall_timetable: Timetable::new(),
            last_ms: None,
            now_ms: 0,
            at: Instant::ZERO,
            ntp_at_zero,
            later: Vec::new(),
            sent: BTreeMap::new(),
            events: Vec::new(),
        }
    }
    /// Everything until the next call happens at this moment.
    pub fn set_now(&mut self, ms: u64) {
        self.now_ms = ms;
        self.at = instant(ms);
    }
    fn line(&mut self, id: StreamId) -> Option<&mut Line> {
        self.lines.get_mut(&id.slot).filter(|line| line.id == id)
    }
    fn has(&self, id: StreamId) -> bool {
        self.lines.get(&id.slot).is_some_and(|line| line.id == id)
    }
    fn peek(&self, id: StreamId) -> Option<&Line> {
        self.lines.get(&id.slot).filter(|line| line.id == id)
    }
    pub fn is_taken(&self, slot: u32) -> bool {
        self.lines.contains_key(&slot)
    }
    pub fn open(&mut self, id: StreamId, internal: bool, mut plan: Plan) {
        if self.lines.contains_key(&id.slot) {
            let fault = Some(Fault::Full);
            self.events.push(Event::Closed { stream: id, stats: StreamStats::default(), fault });
            return;
        }
        tidy(&mut plan);
        let now = self.at;
        if self.lines.is_empty() {
            self.last_ms = Some(self.now_ms);
        }
        let seat = self.timetable.sit(id.slot, plan.ptime_ms);
        let mut report = Report {
            next_at: None,
            sent_before: 0,
            reported: false,
            last_sr: None,
            round_trip: Duration::ZERO,
            peer_lost: 0,
            peer_jitter: 0,
        };
        report.replan(&plan, now);
        let clock = plan.format.rtp_clock();
        let line = Line {
            id,
            internal,
            seat,
            visits_left: 1,
            lock: SourceLock::new(plan.latch),
            out: Outgoing::new(plan.ssrc, plan.first_sequence, plan.first_timestamp, clock),
            reception: Reception::default(),
            events_in: EventReceiver::default(),
            dialler: Dialler::new(&plan, &self.coders),
            player: None,
            bridge: None,
            room: None,
            tie: None,
            echo: false,
            muted: (false, false),
            withholds: false,
            withheld: false,
            feed: Feed::Quiet,
            recode: None,
            arriving: plan.format,
            unsettled: false,
            changes: 0,
            ear: None,
            ear_is_pulled: false,
            mouth: None,
            taps: None,
            report,
            totals: StreamStats::default(),
            last_sent: now,
            last_rtp: now,
            timed_out: false,
            poisoned: false,
            seal: plan.keys.as_deref().and_then(Session::new),
            plan,
        };
        self.lines.insert(id.slot, line);
        self.planned(id);
    }
    fn planned(&mut self, id: StreamId) {
        if let Some(line) = self.line(id)
            && line.plan.dtmf == DtmfMode::Inband
        {
            line.taps.get_or_insert_default().detect(true);
        }
        self.settle(id);
    }
    pub fn plan(&mut self, id: StreamId, mut plan: Plan) {
        let now = self.at;
        tidy(&mut plan);
        let Some(line) = self.lines.get_mut(&id.slot).filter(|line| line.id == id) else { return };
        let clock = plan.format.rtp_clock();
        if plan.ssrc == line.plan.ssrc {
            line.out.set_clock(clock);
        } else {
            line.out = Outgoing::new(plan.ssrc, plan.first_sequence, plan.first_timestamp, clock);
        }
        line.lock.replan(plan.latch, plan.relearn, plan.remote != line.plan.remote);
        line.seal = rekeyed(line.seal.take(), plan.keys.as_deref());
        line.plan = plan;
        let Line { plan, report, dialler, player, arriving, .. } = line;
        report.replan(plan, now);
        dialler.replan(plan, &self.coders);
        if !plan.rx.iter().flatten().any(|entry| matches!(entry, RxPayload::Audio(_, f) if f == arriving)) {
            *arriving = plan.format;
        }
        let ended = player.take_if(|player| !player.retarget(plan, &self.coders));
        line.ear = None;
        (line.last_rtp, line.timed_out) = (now, false);
        line.changes = 0;
        if let Some(Player { play: Some(play), offset, .. }) = ended {
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Failed, offset });
        }
        // Routes first by what taps there are, then with those that the plan asks for.
        self.settle(id);
        self.planned(id);
        let Some(line) = self.line(id) else { return };
        let (seat, length) = (line.seat, line.plan.ptime_ms);
        if u16::from(seat.every_ms) * u16::from(seat.visits) != u16::from(length) {
            self.timetable.rise(id.slot, seat);
            let seat = self.timetable.sit(id.slot, length);
            if let Some(line) = self.line(id) {
                (line.seat, line.visits_left) = (seat, seat.visits);
            }
        }
    }
    pub fn close(&mut self, id: StreamId, fault: Option<Fault>) {
        if !self.has(id) {
            return;
        }
        self.stop_play(id);
        self.part(id);
        if let Some(partner) = self.line(id).and_then(|line| line.tie.take())
            && let Some(line) = self.line(partner)
        {
            line.tie = None;
        }
        let bye = self.peek(id).is_some_and(|line| line.report.next_at.is_some() && line.has_spoken());
        if fault.is_none() && bye {
            self.send_report(id, true);
        }
        let Some(line) = self.lines.remove(&id.slot) else { return };
        self.timetable.rise(id.slot, line.seat);
        self.events.push(Event::Closed { stream: id, stats: line.stats(), fault });
    }
    pub fn tie(&mut self, a: StreamId, b: StreamId) {
        let free = |id| self.peek(id).is_some_and(|line| line.internal && line.tie.is_none());
        if a != b && free(a) && free(b) {
            self.line(a).expect("it is there").tie = Some(b);
            self.line(b).expect("it is there").tie = Some(a);
        }
    }
    pub fn join(&mut self, a: StreamId, b: StreamId) {
        if a == b || !self.has(a) || !self.has(b) {
            return;
        }
        for (one, other) in [(a, b), (b, a)] {
            if self.peek(one).is_some_and(|line| line.room.is_some() || line.bridge != Some(other)) {
                self.part(one);
            }
        }
        for (one, other) in [(a, b), (b, a)] {
            if let Some(line) = self.line(one) {
                line.bridge = Some(other);
            }
        }
        self.settle(a);
    }
    pub fn part(&mut self, id: StreamId) {
        if self.leave_room(id) {
            return self.settle(id);
        }
        let Some(peer) = self.line(id).and_then(|line| line.bridge.take()) else { return };
        if let Some(line) = self.line(peer)
            && line.bridge == Some(id)
        {
            line.bridge = None;
        }
        for id in [id, peer] {
            if let Some(line) = self.line(id) {
                line.dialler.let_go_held();
            }
            self.settle(id);
        }
    }
    pub fn echo(&mut self, id: StreamId, on: bool) {
        if let Some(line) = self.line(id) {
            line.echo = on;
            self.settle(id);
        }
    }
    pub fn mute(&mut self, id: StreamId, heard: bool, sent: bool) {
        if let Some(line) = self.line(id) {
            line.muted = (heard, sent);
        }
    }
    pub fn keep_digits(&mut self, id: StreamId, on: bool) {
        if let Some(line) = self.line(id) {
            line.withholds = on;
        }
    }
    pub fn play(&mut self, id: StreamId, play: PlayId, clip: Arc<Clip>, offset: usize) {
        self.stop_play(id);
        let Some(line) = self.lines.get_mut(&id.slot).filter(|line| line.id == id) else { return };
        line.player = Player::clip(play, clip, offset, &line.plan, &self.coders);
        if line.player.is_none() {
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Failed, offset });
        }
    }
    pub fn music(&mut self, id: StreamId, clip: Arc<Clip>, epoch: Instant) {
        self.stop_play(id);
        let now = self.at;
        let Some(line) = self.lines.get_mut(&id.slot).filter(|line| line.id == id) else { return };
        line.player = Player::music(clip, epoch, now, &line.plan, &self.coders);
    }
    pub fn stop_play(&mut self, id: StreamId) {
        if let Some(Player { play: Some(play), offset, .. }) =
            self.line(id).and_then(|line| line.player.take())
        {
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Stopped, offset });
        }
    }
    pub fn send_digit(&mut self, id: StreamId, digit: Digit, ms: u16) {
        if let Some(line) = self.line(id) {
            line.dialler.queue(digit, ms.into(), true);
        }
    }
    pub fn tap(&mut self, id: StreamId, change: impl FnOnce(&mut Taps, &Plan)) {
        let Some(line) = self.line(id) else { return };
        change(line.taps.get_or_insert_default(), &line.plan);
        self.settle(id);
    }
    pub fn detect(&mut self, id: StreamId, on: bool) {
        self.tap(id, |taps, plan| taps.detect(on || plan.dtmf == DtmfMode::Inband));
    }
    pub fn record(&mut self, id: StreamId, format: FormatId, to: Option<Keep>) {
        self.tap(id, |taps, _| taps.record = to.map(|to| Tap::new(to, format.rate())));
    }
    pub fn watch_silence(&mut self, id: StreamId, ms: u32, threshold: u16) {
        let watch = Silence { wanted_ms: ms, threshold, lasted_ms: 0, judged: Vec::new() };
        self.tap(id, |taps, _| taps.silence = (ms > 0).then_some(watch));
    }
    pub fn stats(&mut self, id: StreamId) {
        if let Some(line) = self.peek(id) {
            let stats = line.stats();
            self.events.push(Event::Stats { stream: id, stats, asked: true });
        }
    }
    pub fn poison(&mut self, id: StreamId) {
        if let Some(line) = self.line(id) {
            line.poisoned = true;
        }
    }
    pub fn enter(&mut self, id: StreamId, room: RoomId, mixing: RoomSettings, settings: MemberSettings) {
        // As for anybody else who is in no room.
        let Some(line) = self.peek(id) else { return };
        match line.room == Some(room) {
            true => self.adjust(id, settings),
            false => self.part(id),
        }
        let interval_ms = match mixing.interval_ms {
            0..15 => 10,
            15..30 => 20,
            30..60 => 40,
            60.. => 80,
        };
        let mixing = RoomSettings { interval_ms, ..mixing };
        match self.halls.get_mut(&room.slot) {
            Some(hall) if hall.settings.interval_ms != interval_ms => {
                self.hall_timetable.rise(room.slot, hall.seat);
                hall.seat = self.hall_timetable.sit(room.slot, interval_ms);
                hall.visits_left = hall.seat.visits;
            }
            Some(_) => {}
            None => {
                let seat = self.hall_timetable.sit(room.slot, interval_ms);
                self.halls.insert(room.slot, Hall::new(mixing, seat));
            }
        }
        if let Some(hall) = self.halls.get_mut(&room.slot) {
            hall.settings = mixing;
            hall.enter(id, settings);
        }
        if let Some(line) = self.line(id) {
            line.room = Some(room);
        }
        self.settle(id);
    }
    pub fn adjust(&mut self, id: StreamId, settings: MemberSettings) {
        let Some(room) = self.peek(id).and_then(|line| line.room) else { return };
        if let Some(member) = self.halls.get_mut(&room.slot).and_then(|hall| hall.member(id)) {
            member.settings = settings;
        }
        self.settle(id);
    }
    fn leave_room(&mut self, id: StreamId) -> bool {
        let Some(room) = self.line(id).and_then(|line| line.room.take()) else { return false };
        if let Some(hall) = self.halls.get_mut(&room.slot) {
            hall.leave(id);
            if hall.members.is_empty() {
                let seat = hall.seat;
                self.hall_timetable.rise(room.slot, seat);
                self.halls.remove(&room.slot);
            }
        }
        true
    }
    /// Gives a line away.
    pub fn release(&mut self, id: StreamId) -> Option<Moved> {
        if self.leave_room(id) {
            self.settle(id);
        }
        self.peek(id)?;
        let line = self.lines.remove(&id.slot)?;
        self.timetable.rise(id.slot, line.seat);
        Some(Moved(line))
    }
    pub fn adopt(&mut self, Moved(mut line): Moved) {
        if self.lines.is_empty() {
            self.last_ms = Some(self.now_ms);
        }
        let id = line.id;
        line.seat = self.timetable.sit(id.slot, line.plan.ptime_ms);
        self.lines.insert(id.slot, line);
        self.settle(id);
    }
}

/// Who hears whom.
impl Twin {
    /// Something about a line changed: it and the other party are connected anew.
    fn settle(&mut self, id: StreamId) {
        let Some(line) = self.line(id) else { return };
        line.unsettled = false;
        let ways = Ways {
            heard: line.arriving,
            format: line.plan.format,
            ptime_ms: line.plan.ptime_ms,
            wishes: line.plan.wishes,
        };
        let (room, bridge) = (line.room, line.bridge);
        if let Some(hall) = room.and_then(|room| self.halls.get_mut(&room.slot)) {
            hall.place(id, ways);
        }
        let both = [Some(id), bridge];
        for id in both.into_iter().flatten() {
            self.settle_feed(id);
        }
        for id in both.into_iter().flatten() {
            self.settle_ear(id);
        }
    }
    fn settle_feed(&mut self, id: StreamId) {
        let Some(line) = self.peek(id) else { return };
        let source = if line.echo { Some(id) } else { line.bridge };
        let is_away = source.is_some_and(|id| self.peek(id).is_none());
        let source = source
            .and_then(|id| self.peek(id))
            .filter(|source| source.id == id || (!source.echo && source.bridge == Some(id)));
        let (to, wishes) = (line.plan.format, line.plan.wishes);
        let feed = source.map_or(Feed::Quiet, |source| {
            let from = source.arriving;
            let same_length = source.plan.ptime_ms == line.plan.ptime_ms;
            let any_length = source.internal || line.internal || !from.is_coded();
            let is_same = from == to || codec::direct(from, to).is_some();
            if is_same && (same_length || any_length) {
                Feed::Relay(source.id)
            } else if from.is_coded() && to.is_coded() {
                Feed::Transcode(source.id)
            } else {
                Feed::Quiet
            }
        });
        let recode = source.and_then(|source| codec::direct(source.arriving, to));
        let from = source.map(|source| source.arriving.rate());
        let mouth = match (feed, from) {
            (Feed::Transcode(_), Some(from)) => match &line.mouth {
                Some(mouth) if mouth.fits(from, to, wishes) => None,
                _ => Some(Some(Mouth::new(from, to, wishes, &self.coders))),
            },
            // Its other party is on its way here.
            _ if is_away => None,
            _ => Some(None),
        };
        let Some(line) = self.line(id) else { return };
        (line.feed, line.recode) = (feed, recode);
        if let Some(mouth) = mouth {
            line.mouth = mouth;
        }
    }
    fn settle_ear(&mut self, id: StreamId) {
        let Some(line) = self.peek(id) else { return };
        let pulled = [Some(id), line.bridge]
            .into_iter()
            .flatten()
            .filter_map(|taker| self.peek(taker))
            .any(|taker| taker.feed == Feed::Transcode(id));
        let waits = line.ear.is_some() && line.bridge.is_some_and(|other| self.peek(other).is_none());
        let room = line.room;
        let member = room.and_then(|room| self.halls.get_mut(&room.slot)).and_then(|hall| hall.member(id));
        let mixed = member.is_some_and(|member| !member.settings.muted && member.ways.is_some());
        let Some(line) = self.lines.get_mut(&id.slot) else { return };
        line.taps.take_if(|taps| taps.is_empty());
        line.ear_is_pulled = pulled || room.is_some();
        let format = line.arriving;
        if !format.is_coded() || (!pulled && !mixed && !waits && line.taps.is_none()) {
            line.ear = None;
        } else if line.ear.as_ref().is_none_or(|ear| ear.format != format) {
            line.ear = Some(Ear::new(format, line.plan.jitter_max_ms, &self.coders));
        }
        if let Some(taps) = &mut line.taps {
            taps.prepare(format.rate());
        }
    }
}

/// What arrives.
impl Twin {
    pub fn arrived(&mut self, slot: u32, is_rtcp: bool, from: SocketAddr, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(&slot).filter(|line| !line.internal) else { return };
        let (id, is_rtcp) = (line.id, is_rtcp || rtp::is_rtcp(bytes));
        let mut bytes = bytes.to_vec();
        let opened = match &mut line.seal {
            None => Some(bytes.len()),
            Some(seal) if is_rtcp => seal.open_rtcp(&mut bytes).ok(),
            Some(seal) => seal.open_rtp(&mut bytes).ok(),
        };
        bytes.truncate(opened.unwrap_or(0));
        let taken = match (opened, is_rtcp) {
            (None, _) => None,
            (Some(_), true) => self.rtcp_arrived(id, from, &bytes),
            (Some(_), false) => self.rtp_arrived(id, from, &bytes),
        };
        if taken.is_none()
            && let Some(line) = self.lines.get_mut(&slot)
        {
            line.totals.discarded_packets += 1;
        }
    }
    fn rtcp_arrived(&mut self, id: StreamId, from: SocketAddr, bytes: &[u8]) -> Option<()> {
        let (now, ntp) = (self.at, self.ntp());
        let line = self.line(id)?;
        let known = match line.lock.locked() {
            Some(locked) => locked.ip() == from.ip(),
            None => {
                [line.plan.remote_rtcp, line.plan.remote].into_iter().flatten().any(|at| at.ip() == from.ip())
            }
        };
        if !known {
            return None;
        }
        let ours = line.out.ssrc();
        for packet in rtcp::Compound::parse(bytes).ok()? {
            let rtcp::Packet::Report { sender, blocks, .. } = packet else { continue };
            if let Some(info) = sender {
                line.report.last_sr = Some(((info.ntp >> 16) as u32, now));
            }
            for block in blocks.filter(|block| block.ssrc == ours) {
                line.report.peer_lost = block.lost.max(0).cast_unsigned();
                line.report.peer_jitter = block.jitter;
                if let Some(time) = rtcp::round_trip(&block, ntp) {
                    line.report.round_trip = time;
                }
            }
        }
        self.pass_feedback(id, bytes);
        Some(())
    }
    /// What is said of pictures goes on to the line that they are relayed from.
    fn pass_feedback(&mut self, id: StreamId, bytes: &[u8]) -> Option<()> {
        let line = self.peek(id).filter(|line| line.plan.format.is_video())?;
        let Feed::Relay(from) = line.feed else { return None };
        let origin = self.peek(from)?;
        let (ours, theirs) = (line.out.ssrc(), origin.reception.ssrc()?);
        let sender = origin.out.ssrc();
        let source = u64::from(from.slot) << 32 | u64::from(theirs);
        let mut told = Vec::new();
        for packet in rtcp::Compound::parse(bytes).ok()? {
            let rtcp::Packet::Feedback(feedback) = packet else { continue };
            let (kind, format, media, entries) = match feedback {
                Feedback::Pli(about) if about == ours => (206, 1, theirs, Vec::new()),
                Feedback::Nack(about, entries) if about == ours => {
                    let entries = entries.chunks_exact(4).filter_map(|entry| {
                        let number = line.out.origin(source, u16::from_be_bytes([entry[0], entry[1]]))?;
                        Some([&number.to_be_bytes()[..], &entry[2..]].concat())
                    });
                    (205, 1, theirs, entries.collect::<Vec<_>>().concat())
                }
                Feedback::Fir(entries) => {
                    let entry = entries.chunks_exact(8).find(|entry| entry[..4] == ours.to_be_bytes());
                    let entry = entry.map(|entry| [&theirs.to_be_bytes()[..], &[entry[4], 0, 0, 0]].concat());
                    (206, 4, 0, entry.unwrap_or_default())
                }
                Feedback::Remb(rate, sources) => {
                    let is_meant = sources.chunks_exact(4).any(|source| source == ours.to_be_bytes());
                    let entry = [&b"REMB\x01"[..], &rate[1..], &theirs.to_be_bytes()].concat();
                    (206, 15, 0, if is_meant { entry } else { Vec::new() })
                }
                Feedback::Pli(_) | Feedback::Nack(..) => continue,
            };
            if entries.is_empty() && (kind, format) != (206, 1) {
                continue;
            }
            let words = 2 + entries.len() as u8 / 4;
            told.push(
                [&[0x80 | format, kind, 0, words][..], &sender.to_be_bytes(), &media.to_be_bytes(), &entries]
                    .concat(),
            );
        }
        if told.is_empty() {
            return None;
        }
        let mut buffer = [0; 32];
        let mut writer = rtcp::Writer::new(&mut buffer);
        writer.report(sender, None, None);
        writer.cname(sender, &cname(sender));
        let head = writer.len();
        self.send_control(from, [&buffer[..head], &told.concat()].concat())?;
        self.line(from)?.report.reported = true;
        Some(())
    }
    fn rtp_arrived(&mut self, id: StreamId, from: SocketAddr, bytes: &[u8]) -> Option<()> {
        let now = self.at;
        let line = self.line(id)?;
        let (header, payload) = rtp::parse(bytes).ok()?;
        let payload = bytes.get(payload)?;
        let kind = line.payload(header.payload_type)?;
        if payload.is_empty() {
            return None;
        }
        match line.lock.judge(from, line.plan.remote, header.ssrc, header.sequence) {
            Verdict::Refuse => return None,
            Verdict::Learning => return Some(()),
            Verdict::Locked(remote) => self.events.push(Event::Latched { stream: id, remote }),
            Verdict::Accept => {}
        }
        let line = self.line(id)?;
        let clock = match kind {
            RxPayload::Audio(_, format) => format.rtp_clock(),
            RxPayload::Event(..) => 0,
        };
        (line.last_rtp, line.timed_out) = (now, false);
        let mut ended = None;
        match line.reception.packet(&header, clock, now) {
            Arrived::Suspect => return None,
            Arrived::Restarted => {
                ended = line.events_in.restart();
                if let Some(ear) = &mut line.ear {
                    ear.restart();
                }
            }
            Arrived::InOrder | Arrived::OutOfOrder => {}
        }
        line.totals.received_packets += 1;
        line.totals.received_bytes += payload.len() as u64;
        let (receives, takes_audio) = (line.receives(), line.takes_audio());
        if let Some(edge) = ended {
            self.digit(id, edge, false);
        }
        if !receives {
            return None;
        }
        match kind {
            RxPayload::Event(_, clock) => {
                let line = self.line(id)?;
                let Header { sequence, timestamp, marker, .. } = header;
                let at = EventPlace { sequence: line.reception.extended(sequence), timestamp, marker };
                let edges = line.events_in.packet(payload, at, clock, now).ok()?;
                for edge in edges.into_iter().flatten() {
                    self.digit(id, edge, false);
                }
            }
            RxPayload::Audio(..) if !takes_audio => return None,
            RxPayload::Audio(_, format) => {
                let Header { sequence, timestamp, marker, ssrc, .. } = header;
                let source = u64::from(id.slot) << 32 | u64::from(ssrc);
                let payload = payload.to_vec();
                self.heard(id, Heard { source, sequence, timestamp, marker, format, payload, ties: 0 });
            }
        }
        Some(())
    }
    fn heard(&mut self, id: StreamId, heard: Heard) {
        let Some(line) = self.line(id) else { return };
        if heard.format != line.arriving {
            line.arriving = heard.format;
            line.unsettled = true;
            line.changes = line.changes.saturating_add(1);
            if line.changes <= 16 {
                self.events.push(Event::Sends { stream: id, format: heard.format });
            }
        }
        let Some(line) = self.line(id) else { return };
        if line.unsettled {
            return;
        }
        if let Some(ear) = &mut line.ear {
            let whole = ear.can_read(&heard.payload);
            let in_time = ear.push(heard.sequence, heard.timestamp, &heard.payload);
            line.totals.discarded_packets += u64::from(!whole);
            line.totals.late_packets += u32::from(whole && !in_time);
        }
        let to = if line.echo { Some(id) } else { line.bridge };
        if let Some(to) = to {
            self.relay(to, id, heard);
        }
    }
    fn relay(&mut self, to: StreamId, from: StreamId, heard: Heard) {
        let now = self.at;
        let Some(line) = self.line(to) else { return };
        if line.feed != Feed::Relay(from)
            || line.player.is_some()
            || line.dialler.mutes()
            || !line.gives_audio()
        {
            return;
        }
        let units = line.units();
        let Heard { source, sequence, timestamp, marker, mut payload, ties, .. } = heard;
        let Some(mut stamp) = line.out.relay(source, sequence, timestamp, marker, now, units) else { return };
        if line.plan.format.is_video() {
            stamp.marker = marker;
        }
        if let Some(table) = line.recode {
            payload.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]);
        }
        let (number, format) = (line.plan.payload, line.plan.format);
        self.emit(to, number, Some(format), stamp, payload, ties, true);
    }
    /// A digit of a line goes to the other party, and is told.
    fn digit(&mut self, id: StreamId, edge: EventEdge, in_sound: bool) {
        let Some(line) = self.line(id) else { return };
        if matches!(edge, EventEdge::Begin(_)) {
            line.withheld = line.withholds;
        }
        let (withheld, bridge) = (line.withheld, line.bridge);
        let mut relayed = false;
        if let Some(peer) = bridge.and_then(|peer| self.line(peer)) {
            let heard_anyway = in_sound && !peer.internal && peer.plan.dtmf == DtmfMode::Inband;
            let can_be = peer.internal || peer.plan.dtmf != DtmfMode::Signalling;
            relayed = heard_anyway || (can_be && !withheld);
            match edge {
                _ if !relayed || heard_anyway => {}
                EventEdge::Begin(digit) => peer.dialler.press(digit),
                EventEdge::End(digit, ms) => peer.dialler.let_go(digit, ms),
            }
        }
        self.events.push(match edge {
            EventEdge::Begin(digit) => Event::DigitBegin { stream: id, digit, relayed },
            EventEdge::End(digit, duration_ms) => Event::DigitEnd { stream: id, digit, duration_ms, relayed },
        });
    }
}

/// Time.
impl Twin {
    /// A tick after what arrived: everyone who is due until now has a visit.
    pub fn tick(&mut self) {
        let now = self.now_ms;
        let last = self.last_ms.unwrap_or(now - 1);
        for ms in (last + 1).max((now + 1).saturating_sub(BEHIND_MS_MAX))..=now {
            self.at = instant(ms);
            let mut index = 0;
            while let Some(slot) = self.timetable.due(ms).get(index).copied() {
                let waits = self
                    .lines
                    .get(&slot)
                    .is_some_and(|line| line.unsettled || self.later.iter().any(|later| later.to == line.id));
                if waits {
                    self.finish();
                    self.at = instant(ms);
                }
                self.visit(slot);
                // Where a line ended, another one sits.
                if self.timetable.due(ms).get(index) == Some(&slot) {
                    index += 1;
                }
            }
            for slot in self.hall_timetable.due(ms).to_vec() {
                self.visit_hall(slot, ms);
            }
        }
        self.finish();
        self.at = instant(now);
        self.last_ms = Some(now.max(last));
    }
    /// What visits have left for later.
    fn finish(&mut self) {
        let mut packets = Vec::new();
        for Later { to, at, what } in std::mem::take(&mut self.later) {
            self.at = at;
            match what {
                What::Plays(packet) => packets.push((to, at, packet, true)),
                What::Hears { from, heard, speaks } => {
                    if self.peek(from).is_none_or(|line| line.ear.is_none()) {
                        continue;
                    }
                    let heard = self.tell(from, heard);
                    let packet = heard.filter(|_| speaks).and_then(|heard| self.say(to, &heard));
                    packets.extend(packet.map(|packet| (to, at, packet, false)));
                }
            }
        }
        for (to, at, packet, plays) in packets {
            self.at = at;
            self.emit_local(to, packet, true);
            if plays {
                self.end_play(to);
            }
        }
    }
    fn visit(&mut self, slot: u32) {
        let Some(line) = self.lines.get_mut(&slot) else { return };
        let id = line.id;
        if line.poisoned {
            // The worker closes it at the moment of the visit.
            return self.close(id, Some(Fault::Panicked));
        }
        line.visits_left = line.visits_left.saturating_sub(1);
        if line.visits_left > 0 {
            return;
        }
        line.visits_left = line.seat.visits;
        if line.unsettled {
            self.settle(id);
        }
        self.timers(id);
        let Some(line) = self.line(id) else { return };
        let (feed, ms) = (line.feed, line.plan.ptime_ms);
        let busy = self.dial(id) || self.perform(id);
        if let Feed::Transcode(source) = feed {
            self.hear(id, source, ms, !busy);
        }
        if self.peek(id).is_some_and(|line| line.ear.is_some() && !line.ear_is_pulled) {
            self.hear(id, id, ms, false);
        }
    }
    /// What `from` has heard is due: to whoever listens and, when it `speaks`, out of `to`.
    fn hear(&mut self, to: StreamId, from: StreamId, ms: u8, speaks: bool) {
        let mouth = self.peek(to).and_then(|line| line.mouth.as_ref()).filter(|_| speaks);
        let encodes = mouth.is_some_and(Mouth::has_lanes);
        let Some(ear) = self.peek(from).and_then(|line| line.ear.as_ref()) else { return };
        let decodes = codec::decode_frame(ear.format).is_some();
        let Some(heard) = self.take(from, ms) else { return };
        if encodes || decodes {
            let at = self.at;
            self.later.push(Later { to, at, what: What::Hears { from, heard, speaks } });
        } else if let Some(heard) = self.tell(from, heard)
            && speaks
            && let Some(packet) = self.say(to, &heard)
        {
            self.emit_local(to, packet, true);
        }
    }
    fn take(&mut self, id: StreamId, ms: u8) -> Option<Taken> {
        let ear = self.line(id)?.ear.as_mut()?;
        let rate = ear.format.rate();
        Some(Taken { linear: ear.hear(samples(rate, ms)), rate, starved: ear.is_starved() })
    }
    /// Whoever listens to a line hears a frame; `None` when there is nothing to pass on.
    fn tell(&mut self, id: StreamId, Taken { linear, rate, starved }: Taken) -> Option<Vec<i16>> {
        let line = self.line(id)?;
        line.totals.discarded_packets += u64::from(line.ear.as_mut()?.take_malformed());
        if let Some(taps) = &mut line.taps {
            let (silent, edges) = taps.frame(&linear, rate);
            self.events.extend(silent.map(|ms| Event::Silence { stream: id, ms }));
            for edge in edges {
                self.digit(id, edge, true);
            }
        }
        (!starved).then_some(linear)
    }
    fn say(&mut self, id: StreamId, heard: &[i16]) -> Option<Vec<u8>> {
        let line = self.line(id)?;
        let ms = line.plan.ptime_ms;
        Some(line.mouth.as_mut()?.say(heard, ms))
    }
    fn visit_hall(&mut self, slot: u32, ms: u64) {
        let Some(hall) = self.halls.get_mut(&slot) else { return };
        hall.visits_left -= 1;
        if hall.visits_left > 0 {
            return;
        }
        hall.visits_left = hall.seat.visits;
        let (round_ms, rounds) = hall.rounds();
        let ids: Vec<_> = hall.members.iter().map(|member| member.id).collect();
        for round in (0..rounds).rev() {
            self.at = instant(ms.saturating_sub(u64::from(round) * 20));
            for id in &ids {
                let format = self.peek(*id).and_then(|line| line.ear.as_ref()).map(|ear| ear.format);
                let heard = self.take(*id, round_ms).and_then(|taken| self.tell(*id, taken)).zip(format);
                let Some(hall) = self.halls.get_mut(&slot) else { return };
                if let Some(talks) = hall.heard(*id, heard) {
                    self.events.push(Event::Talking { stream: *id, talks });
                }
            }
            let Some(hall) = self.halls.get_mut(&slot) else { return };
            hall.mix();
            for id in &ids {
                while let Some((linear, ways)) = self.halls.get_mut(&slot).and_then(|hall| hall.packet(*id)) {
                    let Some(line) = self.line(*id) else { break };
                    // An encoder with a memory is shared by those who listen; what it sends is not said to the bit.
                    let is_exact = !has_memory(ways.format);
                    let busy = line.player.is_some() || line.dialler.mutes();
                    let mut mouth = Mouth::new(ways.format.rate(), ways.format, ways.wishes, &self.coders);
                    let packet = mouth.say(&linear, ways.ptime_ms);
                    if !busy {
                        self.emit_local(*id, packet, is_exact);
                    }
                }
            }
        }
        self.at = instant(ms);
    }
    fn timers(&mut self, id: StreamId) {
        let now = self.at;
        let Some(line) = self.line(id) else { return };
        let timeout = Duration::from_millis(line.plan.rtp_timeout_ms.into());
        if !timeout.is_zero() && !line.timed_out && now - line.last_rtp >= timeout {
            line.timed_out = true;
            self.events.push(Event::RtpTimeout { stream: id });
        }
        if let Some(edge) = self.line(id).and_then(|line| line.events_in.tick(now)) {
            self.digit(id, edge, false);
        }
        if self.peek(id).and_then(|line| line.report.next_at).is_some_and(|at| at <= now) {
            self.send_report(id, false);
        }
        let Some(line) = self.line(id) else { return };
        let every = Duration::from_millis(line.plan.keepalive_ms.into());
        let due = !every.is_zero() && now - line.last_sent >= every && !line.internal;
        if due && let Some(to) = line.target() {
            let units = line.units();
            let timestamp = line.out.event_timestamp(now, units);
            let sequence = line.out.event_sequence();
            // Comfort noise that nobody hears.
            self.transmit(id, to, 13, Stamp { sequence, timestamp, marker: false }, &[127], true);
        }
    }
    fn dial(&mut self, id: StreamId) -> bool {
        loop {
            let now = self.at;
            let Some(line) = self.line(id) else { return true };
            if !line.dialler.is_busy() {
                return false;
            }
            let ms = line.plan.ptime_ms;
            let (way, number, clock) = match line.plan.dtmf {
                DtmfMode::Rfc4733 { payload, clock } => (Way::Event, payload, clock),
                DtmfMode::Inband => (Way::Tone, 0, 8000),
                DtmfMode::Signalling => (Way::Nothing, 0, 8000),
            };
            let way = if line.internal { Way::Edge } else { way };
            match line.dialler.turn(way, ms.into(), clock / 100 * u32::from(ms) / 10) {
                Turn::Free => return false,
                Turn::Hush => return true,
                Turn::AllSent => self.events.push(Event::DigitsSent { stream: id }),
                Turn::Begins(digit) => {
                    let units = line.units();
                    let timestamp = line.out.event_timestamp(now, units);
                    line.dialler.began(digit, timestamp);
                }
                Turn::Event(packet) => {
                    let sequence = line.out.event_sequence();
                    let stamp = Stamp { sequence, timestamp: packet.timestamp, marker: packet.marker };
                    self.emit(id, number, None, stamp, packet.payload.to_vec(), 0, true);
                    return true;
                }
                Turn::Tone(digit) => {
                    let packet = line.dialler.tone(digit, ms);
                    self.emit_local(id, packet, true);
                    return true;
                }
                Turn::EdgeBegin(digit) => return self.digit_across(id, EventEdge::Begin(digit)),
                Turn::EdgeEnd(digit, ms) => return self.digit_across(id, EventEdge::End(digit, ms)),
            }
        }
    }
    fn digit_across(&mut self, id: StreamId, edge: EventEdge) -> bool {
        if let Some(partner) = self.peek(id).and_then(|line| line.tie) {
            self.digit(partner, edge, false);
        }
        true
    }
    fn perform(&mut self, id: StreamId) -> bool {
        let Some(line) = self.line(id) else { return true };
        let (format, ms) = (line.plan.format, line.plan.ptime_ms);
        let Some(player) = &mut line.player else { return false };
        if !player.is_over() {
            let packet = player.packet(format, ms);
            if player.has_lanes() {
                let at = self.at;
                self.later.push(Later { to: id, at, what: What::Plays(packet) });
                return true;
            }
            self.emit_local(id, packet, true);
        }
        self.end_play(id);
        true
    }
    fn end_play(&mut self, id: StreamId) {
        let over = self.line(id).and_then(|line| line.player.take_if(|player| player.is_over()));
        if let Some(Player { play: Some(play), offset, .. }) = over {
            self.events.push(Event::Played { stream: id, play, end: PlayEnd::Finished, offset });
        }
    }
}

/// What leaves.
impl Twin {
    fn ntp(&self) -> u64 {
        let since = (u128::from(self.at.as_nanos()) << 32) / 1_000_000_000;
        self.ntp_at_zero.wrapping_add(since as u64)
    }
    fn emit_local(&mut self, id: StreamId, packet: Vec<u8>, is_exact: bool) {
        let now = self.at;
        let Some(line) = self.line(id) else { return };
        if packet.is_empty() || !line.gives_audio() {
            return;
        }
        let units = line.units();
        let stamp = line.out.local(now, units);
        let (number, format) = (line.plan.payload, line.plan.format);
        self.emit(id, number, Some(format), stamp, packet, 0, is_exact);
    }
    #[expect(clippy::too_many_arguments, reason = "a packet in pieces")]
    fn emit(
        &mut self,
        id: StreamId,
        number: u8,
        format: Option<FormatId>,
        stamp: Stamp,
        payload: Vec<u8>,
        ties: u8,
        is_exact: bool,
    ) {
        let now = self.at;
        let Some(line) = self.line(id) else { return };
        if !line.sends() || format.is_some() && !line.gives_audio() {
            return;
        }
        if !line.internal {
            if let Some(to) = line.target() {
                self.transmit(id, to, number, stamp, &payload, is_exact);
            }
            return;
        }
        let (Some(partner), Some(format)) = (line.tie, format) else { return };
        line.totals.sent_packets += 1;
        line.totals.sent_bytes += payload.len() as u64;
        let source = u64::from(id.slot) << 32 | u64::from(id.generation);
        let Stamp { sequence, timestamp, marker } = stamp;
        if ties >= TIES_MAX {
            return;
        }
        let Some(line) = self.line(partner) else { return };
        line.last_rtp = now;
        line.totals.received_packets += 1;
        line.totals.received_bytes += payload.len() as u64;
        if line.takes_audio() {
            let ties = ties + 1;
            self.heard(partner, Heard { source, sequence, timestamp, marker, format, payload, ties });
        }
    }
    fn transmit(
        &mut self,
        id: StreamId,
        to: SocketAddr,
        payload_type: u8,
        stamp: Stamp,
        payload: &[u8],
        is_exact: bool,
    ) {
        let (now, at_ms) = (self.at, self.now_ms);
        let Some(line) = self.line(id) else { return };
        line.last_sent = now;
        let Stamp { sequence, timestamp, marker } = stamp;
        let header = Header { payload_type, marker, sequence, timestamp, ssrc: line.out.ssrc() };
        let mut bytes = [&rtp::write(&header)[..], payload].concat();
        if let Some(seal) = &mut line.seal {
            let length = bytes.len();
            bytes.resize(length + RTP_TRAILER_MAX, 0);
            // What was relayed under this number before is not sealed again: its key stream would be the same.
            let Ok(sealed) = seal.seal_rtp(&mut bytes, length) else { return };
            bytes.truncate(sealed);
        }
        line.totals.sent_packets += 1;
        line.totals.sent_bytes += payload.len() as u64;
        let sent = Sent { at_ms, to, rtcp: false, shared: false, bytes, is_exact };
        self.sent.entry(id).or_default().push(sent);
    }
    fn send_report(&mut self, id: StreamId, bye: bool) {
        let (now, ntp) = (self.at, self.ntp());
        let Some(line) = self.line(id) else { return };
        let ssrc = line.out.ssrc();
        let sender = (line.totals.sent_packets > line.report.sent_before).then(|| rtcp::SenderInfo {
            ntp,
            timestamp: line.out.timestamp_at(now),
            packets: line.totals.sent_packets as u32,
            bytes: line.totals.sent_bytes as u32,
        });
        let block = line.reception.ssrc().map(|ssrc| {
            let since = line
                .report
                .last_sr
                .map(|(middle, at)| (middle, ((now - at).as_nanos() * 65_536 / 1_000_000_000) as u32));
            let (last_report, delay) = since.unwrap_or_default();
            rtcp::Block {
                ssrc,
                fraction_lost: line.reception.fraction_lost(),
                lost: line.reception.lost() as i32,
                highest: line.reception.extended_highest(),
                jitter: line.reception.jitter(),
                last_report,
                delay,
            }
        });
        let mut buffer = [0; 128];
        let mut writer = rtcp::Writer::new(&mut buffer);
        writer.report(ssrc, sender, block);
        writer.cname(ssrc, &cname(ssrc));
        if bye {
            writer.bye(ssrc);
        }
        let length = writer.len();
        let report = &mut line.report;
        (report.sent_before, report.reported) = (line.totals.sent_packets, true);
        let interval = Duration::from_millis(line.plan.rtcp_interval_ms.into());
        report.next_at = report.next_at.filter(|_| !bye).map(|_| now + interval);
        if !bye {
            let stats = line.stats();
            self.events.push(Event::Stats { stream: id, stats, asked: false });
        }
        self.send_control(id, buffer[..length].to_vec());
    }
    /// Sends RTCP, sealed where the line is.
    fn send_control(&mut self, id: StreamId, mut bytes: Vec<u8>) -> Option<()> {
        let at_ms = self.now_ms;
        let line = self.line(id)?;
        let (named, remote) = (line.plan.remote_rtcp?, line.plan.remote);
        let shared = Some(named) == remote;
        let (to, shared) = match line.lock.locked() {
            Some(locked) if shared => (locked, true),
            // Behind a NAT the report follows RTP, one port above it.
            Some(locked) if locked.ip() != named.ip() => {
                (SocketAddr::new(locked.ip(), locked.port() + 1), false)
            }
            _ => (named, shared),
        };
        if line.internal {
            return None;
        }
        if let Some(seal) = &mut line.seal {
            let length = bytes.len();
            bytes.resize(length + RTCP_TRAILER_MAX, 0);
            let sealed = seal.seal_rtcp(&mut bytes, length).expect("RTCP of ours");
            bytes.truncate(sealed);
        }
        let sent = Sent { at_ms, to, rtcp: true, shared, bytes, is_exact: true };
        self.sent.entry(id).or_default().push(sent);
        Some(())
    }
}

fn cname(ssrc: u32) -> [u8; 12] {
    let mut letters = Random::new(u64::from(ssrc) ^ 0x5354_5257_4743_4e4d);
    core::array::from_fn(|_| b'a' + (letters.word() % 26) as u8)
}
