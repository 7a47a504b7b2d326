//! What happens in one run, all of it from a seed: lines that open, change and close, what is done with them, and what the
//! network brings, after it has lost, doubled, delayed and spoiled some.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base::{
    Digit, Direction, DtmfMode, FormatId, Gain, Latch, MAX_RX_PAYLOADS, Marking, MemberSettings, Plan,
    PlayId, RoomId, RoomSettings, RxPayload, SrtpKeys, SrtpSecret, SrtpSuite, StreamId, Wishes,
};
use kit::Random;
use rtp::{EventPayload, Header, rtcp};
use srtp::{RTCP_TRAILER_MAX, Session};

use crate::model::rekeyed;

/// Workers of a run.
pub const WORKERS: usize = 2;
/// Lines open at once, at most.
const LINES_MAX: usize = 12;
/// Payload type of telephone-events.
const EVENT: u8 = 101;

/// Something that happens.
#[derive(Debug, Clone)]
pub enum Act {
    Open {
        worker: usize,
        line: StreamId,
        internal: bool,
        plan: Plan,
    },
    Plan {
        line: StreamId,
        plan: Plan,
    },
    Close {
        line: StreamId,
    },
    Tie {
        a: StreamId,
        b: StreamId,
    },
    Join {
        a: StreamId,
        b: StreamId,
    },
    Part {
        line: StreamId,
    },
    Echo {
        line: StreamId,
        on: bool,
    },
    Mute {
        line: StreamId,
        heard: bool,
        sent: bool,
    },
    Play {
        line: StreamId,
        play: PlayId,
        clip: usize,
        offset: usize,
    },
    Music {
        line: StreamId,
        clip: usize,
        epoch_ms: u64,
    },
    StopPlay {
        line: StreamId,
    },
    SendDigit {
        line: StreamId,
        digit: Digit,
        ms: u16,
    },
    KeepDigits {
        line: StreamId,
        on: bool,
    },
    Detect {
        line: StreamId,
        on: bool,
    },
    Record {
        line: StreamId,
        format: FormatId,
    },
    StopRecord {
        line: StreamId,
    },
    WatchSilence {
        line: StreamId,
        ms: u32,
    },
    Enter {
        line: StreamId,
        room: RoomId,
        mixing: RoomSettings,
        member: MemberSettings,
    },
    Adjust {
        line: StreamId,
        member: MemberSettings,
    },
    Stats {
        line: StreamId,
    },
    Poison {
        line: StreamId,
    },
    /// To another worker, one after the other.
    Move {
        lines: Vec<StreamId>,
        to: usize,
    },
    Packet {
        slot: u32,
        rtcp: bool,
        from: SocketAddr,
        bytes: Vec<u8>,
    },
}

impl Act {
    pub fn is_packet(&self) -> bool {
        matches!(self, Self::Packet { .. })
    }
    /// The same for lines with other slots.
    pub fn apart(mut self, slots: u32) -> Self {
        match &mut self {
            Self::Packet { slot, .. } => *slot += slots,
            Self::Tie { a, b } | Self::Join { a, b } => {
                a.slot += slots;
                b.slot += slots;
            }
            Self::Move { lines, .. } => lines.iter_mut().for_each(|line| line.slot += slots),
            Self::Open { line, .. }
            | Self::Plan { line, .. }
            | Self::Close { line }
            | Self::Part { line }
            | Self::Echo { line, .. }
            | Self::Mute { line, .. }
            | Self::Play { line, .. }
            | Self::Music { line, .. }
            | Self::StopPlay { line }
            | Self::SendDigit { line, .. }
            | Self::Detect { line, .. }
            | Self::Record { line, .. }
            | Self::StopRecord { line }
            | Self::WatchSilence { line, .. }
            | Self::Enter { line, .. }
            | Self::Adjust { line, .. }
            | Self::Stats { line }
            | Self::KeepDigits { line, .. }
            | Self::Poison { line } => line.slot += slots,
        }
        self
    }
}

#[derive(Debug, Clone)]
pub struct Timed {
    pub at_ms: u64,
    pub act: Act,
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Script {
    pub seed: u64,
    /// How long a frame may wait for company.
    pub wait_ms: u8,
    /// How many datagrams a worker gets at a time.
    pub batch: usize,
    /// When the workers are called.
    pub ticks: Vec<u64>,
    pub acts: Vec<Timed>,
}

/// When a run begins, so that no time is before the first.
const BEGIN_MS: u64 = 1000;

/// What phones talk. Not Codec 2, whose library fills phases from numbers that all decoders of a process share.
fn formats() -> Vec<FormatId> {
    let missing: Vec<_> = codec::missing_libraries().map(|(format, _)| format).collect();
    [
        FormatId::ULAW,
        FormatId::ULAW,
        FormatId::ALAW,
        FormatId::ALAW,
        FormatId::GSM,
        FormatId::ILBC,
        FormatId::ILBC30,
        FormatId::G722,
        FormatId::G726,
        FormatId::G726AAL2,
        FormatId::ADPCM,
        FormatId::SPEEX,
        FormatId::LPC10,
        FormatId::SLIN,
        FormatId::SLIN16,
        FormatId::SLIN48,
        FormatId::SPEEX16,
        FormatId::OPUS,
        FormatId::G729,
        FormatId::VP8,
    ]
    .into_iter()
    .filter(|format| !missing.contains(format))
    .collect()
}

fn payload_type(format: FormatId) -> u8 {
    match format {
        FormatId::ULAW => 0,
        FormatId::GSM => 3,
        FormatId::ALAW => 8,
        FormatId::G722 => 9,
        other => 102 + other.index() as u8 % 26,
    }
}

/// Speech-like sound of one format in packets of one length.
#[derive(Default)]
pub struct Voices(BTreeMap<(FormatId, u8), Vec<Vec<u8>>>);

impl Voices {
    fn of(&mut self, format: FormatId, ms: u8) -> &[Vec<u8>] {
        self.0.entry((format, ms)).or_insert_with(|| {
            if !format.is_coded() {
                let mut random = Random(7);
                return (0..40).map(|_| random.bytes(format.bytes_in(ms.into()))).collect();
            }
            let count = format.rate().0 as usize * usize::from(ms) / 1000;
            let mut encoder = codec::Encoder::new(format);
            let packets = 1500 / usize::from(ms);
            (0..packets)
                .map(|packet| {
                    let mut coded = vec![0; format.packet_room(ms.into())];
                    let bytes = encoder.encode(&sound(format, packet * count, count), &mut coded);
                    coded.truncate(bytes);
                    if format.is_linear() {
                        codec::swap_bytes(&mut coded);
                    }
                    coded
                })
                .collect()
        })
    }
}

/// Words of two tones with pauses between them.
pub fn sound(format: FormatId, from: usize, count: usize) -> Vec<i16> {
    let rate = f64::from(format.rate().0);
    (from..from + count)
        .map(|n| {
            let at = n as f64 / rate;
            let loud = if at % 0.7 < 0.45 { 6000.0 } else { 0.0 };
            let sine = |hertz: f64| (at * hertz * std::f64::consts::TAU).sin();
            (loud * (sine(310.0) + 0.6 * sine(470.0 + 40.0 * (at * 3.0).floor()))) as i16
        })
        .collect()
}

/// A party with a phone, as far as it is known who sends what.
struct Phone {
    line: StreamId,
    internal: bool,
    plan: Plan,
    /// Format and packet length that it sends.
    format: FormatId,
    ms: u8,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    from: SocketAddr,
    next_at: u64,
    turn: usize,
    /// Until when it says nothing.
    silent_until: u64,
    key: Option<Key>,
    /// What it seals with, when its line has keys.
    session: Option<Session>,
    network: Network,
    has_entered: bool,
}

/// A key that is held.
struct Key {
    event: u8,
    timestamp: u32,
    duration: u16,
    left: usize,
    ends_left: usize,
}

/// What happens to packets on the way, in thousandths and milliseconds.
#[derive(Clone, Copy)]
struct Network {
    lost: usize,
    doubled: usize,
    spoiled: usize,
    jitter_ms: usize,
    /// Of those that are held up for long.
    late: usize,
}

struct Writer {
    random: Random,
    voices: Voices,
    acts: Vec<Timed>,
    phones: Vec<Phone>,
    /// Slots in use, with their generation.
    generations: BTreeMap<u32, u32>,
    wait_ms: u8,
    /// What phones of this run talk: anything, or little, so that many talk the same.
    formats: Vec<FormatId>,
    /// Of so many lines one is SRTP; 0: none is.
    sealed: usize,
    plays: u32,
    now: u64,
}

/// The run of a seed.
pub fn script(seed: u64, voices: Voices) -> (Script, Voices) {
    let mut random = Random(seed);
    let wait_ms = if random.below(2) == 0 { 0 } else { 1 + random.below(9) as u8 };
    let end = BEGIN_MS + 1000 + random.below(3500) as u64;
    let ticks = ticks(&mut random, end);
    let batch = 1 + random.below(64);
    let formats = match random.below(4) {
        3 => vec![FormatId::VP8],
        0 => vec![FormatId::ULAW, FormatId::ULAW, FormatId::ALAW],
        1 => vec![FormatId::ULAW, FormatId::GSM, FormatId::ILBC, FormatId::G722],
        _ => formats(),
    };
    let sealed = [0, 1, 2, 4][random.below(4)];
    let mut writer = Writer {
        random,
        voices,
        acts: Vec::new(),
        phones: Vec::new(),
        generations: BTreeMap::new(),
        wait_ms,
        formats,
        sealed,
        plays: 0,
        now: BEGIN_MS,
    };
    let lines = 2 + writer.random.below(LINES_MAX - 3);
    // From a command every 20 ms to one in half a second.
    let pace = writer.of(&[20, 60, 150, 500]);
    for now in BEGIN_MS..end {
        writer.now = now;
        if writer.phones.len() < lines && writer.random.below(8) == 0 {
            writer.open();
        }
        if writer.random.below(pace) == 0 {
            writer.act();
        }
        for at in 0..writer.phones.len() {
            writer.talk(at);
        }
    }
    let Writer { mut acts, voices, .. } = writer;
    acts.sort_by_key(|timed| timed.at_ms);
    (Script { seed, wait_ms, batch, ticks, acts }, voices)
}

/// Every millisecond, at a longer step, or as it comes.
fn ticks(random: &mut Random, end: u64) -> Vec<u64> {
    let kind = random.below(4);
    let fixed = [2, 5, 10, 20][random.below(4)];
    let mut ticks = Vec::new();
    let mut at = BEGIN_MS;
    while at < end {
        at += match kind {
            0 => 1,
            1 => fixed,
            2 => 1 + random.below(20) as u64,
            // Mostly in time, and now and then not for long.
            _ => {
                if random.below(150) == 0 {
                    30 + random.below(200) as u64
                } else {
                    1
                }
            }
        };
        ticks.push(at);
    }
    ticks
}

impl Writer {
    fn push(&mut self, at_ms: u64, act: Act) {
        self.acts.push(Timed { at_ms, act });
    }
    fn act_now(&mut self, act: Act) {
        self.push(self.now, act);
    }
    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }
    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.random.below(items.len())]
    }
    fn address(&self, slot: u32) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1 + slot as u8], 4000))
    }
    fn length_of(&mut self, format: FormatId) -> u8 {
        let step = format.packet_step_ms();
        match format {
            // Their packets are 20, 40 or 60 ms.
            FormatId::OPUS | FormatId::SPEEX | FormatId::SPEEX16 => self.of(&[20, 20, 40, 60]),
            _ => {
                let lengths: Vec<u8> =
                    [10, 20, 30, 40, 45, 50, 60].into_iter().filter(|ms| ms % step == 0).collect();
                let usual = format.usual_ms();
                if self.one_in(2) { usual } else { self.of(&lengths) }
            }
        }
    }
    fn plan_for(&mut self, slot: u32, internal: bool) -> Plan {
        let format = self.formats[self.random.below(self.formats.len())];
        let other = self.formats[self.random.below(self.formats.len())];
        let mut rx = [None; MAX_RX_PAYLOADS];
        let mut heard = vec![format];
        if self.one_in(3) && payload_type(other) != payload_type(format) {
            heard.push(other);
        }
        // What is sent need not be what is heard.
        if self.one_in(6) {
            heard.reverse();
        }
        let entries = heard.iter().map(|format| RxPayload::Audio(payload_type(*format), *format));
        for (entry, value) in rx.iter_mut().zip(entries.chain([RxPayload::Event(EVENT, 8000)])) {
            *entry = Some(value);
        }
        let remote = self.address(slot);
        let dtmf = match self.random.below(8) {
            0 if self.wait_ms == 0 => DtmfMode::Inband,
            1 => DtmfMode::Signalling,
            _ => DtmfMode::Rfc4733 { payload: EVENT, clock: 8000 },
        };
        let direction = self.of(&[Direction::SendRecv; 6]);
        let direction = match self.random.below(12) {
            0 => Direction::SendOnly,
            1 => Direction::RecvOnly,
            2 => Direction::Inactive,
            _ => direction,
        };
        let reports = self.wait_ms == 0 && !internal && self.one_in(3);
        let mux = self.one_in(2);
        let ptime_ms = self.length_of(format);
        Plan {
            remote: Some(remote),
            remote_rtcp: Some(if mux { remote } else { SocketAddr::new(remote.ip(), remote.port() + 1) }),
            latch: match self.random.below(6) {
                // What waits goes where packets come from when it leaves.
                _ if self.wait_ms > 0 => Latch::Strict,
                0 => Latch::Learn(remote.ip()),
                1 => Latch::Off,
                _ => Latch::Strict,
            },
            relearn: self.one_in(3),
            format,
            payload: payload_type(format),
            ptime_ms,
            wishes: Wishes::default(),
            rx,
            dtmf,
            direction,
            ssrc: self.random.bits() as u32,
            first_sequence: self.random.bits() as u16,
            first_timestamp: self.random.bits() as u32,
            jitter_max_ms: self.of(&[0, 40, 200]),
            rtcp_interval_ms: if reports { 150 + self.random.below(400) as u16 } else { 0 },
            rtp_timeout_ms: if self.one_in(3) { 100 + self.random.below(300) as u32 } else { 0 },
            keepalive_ms: if self.one_in(3) { 100 + self.random.below(300) as u32 } else { 0 },
            marking: Marking::default(),
            keys: self.keys(internal),
            picture: base::PictureRequest::default(),
        }
    }
    fn keys(&mut self, internal: bool) -> Option<Box<SrtpKeys>> {
        if internal || self.sealed == 0 || !self.one_in(self.sealed) {
            return None;
        }
        let suite = self.of(&SUITES);
        let mut secret =
            || SrtpSecret::new(suite, &self.random.bytes(suite.secret_bytes())).expect("its length");
        let (send, receive) = (secret(), secret());
        Some(Box::new(SrtpKeys { suite, send, receive, replay_protection: self.one_in(2) }))
    }
    fn free_slot(&mut self) -> StreamId {
        let slot = (0..).find(|slot| self.phones.iter().all(|phone| phone.line.slot != *slot)).unwrap_or(0);
        let generation = self.generations.entry(slot).or_insert(0);
        *generation += 1;
        StreamId::new(slot, *generation)
    }
    fn open(&mut self) {
        let worker = if self.one_in(5) { 1 } else { 0 };
        // Two that are tied come together.
        let halves = if self.wait_ms == 0 && self.one_in(6) { 2 } else { 1 };
        let mut opened = Vec::new();
        for _ in 0..halves {
            let internal = halves == 2;
            let line = self.free_slot();
            let plan = self.plan_for(line.slot, internal);
            self.act_now(Act::Open { worker, line, internal, plan: plan.clone() });
            let phone = self.phone(line, internal, plan);
            self.phones.push(phone);
            opened.push(line);
        }
        if let [a, b] = opened[..] {
            self.act_now(Act::Tie { a, b });
        }
        // Most begin to talk to somebody.
        for line in opened {
            let other = self.any_line();
            if self.one_in(4) || (self.wait_ms > 0 && self.wait_ms.is_multiple_of(3)) {
                continue;
            }
            self.act_now(Act::Join { a: line, b: other });
        }
    }
    fn phone(&mut self, line: StreamId, internal: bool, plan: Plan) -> Phone {
        let network = Network {
            lost: self.of(&[0, 0, 20, 100, 300]),
            doubled: self.of(&[0, 0, 30]),
            spoiled: self.of(&[0, 0, 0, 30]),
            jitter_ms: self.of(&[1, 1, 5, 30, 90]),
            late: self.of(&[0, 0, 10]),
        };
        let first = Self::first_heard(&plan);
        let ms = self.length_of(first);
        Phone {
            line,
            internal,
            format: first,
            ms,
            sequence: self.random.bits() as u16,
            timestamp: self.random.bits() as u32,
            ssrc: self.random.bits() as u32,
            from: self.address(line.slot),
            next_at: self.now + self.random.below(40) as u64,
            turn: self.random.below(100),
            silent_until: self.now,
            key: None,
            session: plan.keys.as_deref().and_then(|keys| Session::new(&far(keys))),
            network,
            has_entered: false,
            plan,
        }
    }
    fn first_heard(plan: &Plan) -> FormatId {
        match plan.rx[0] {
            Some(RxPayload::Audio(_, format)) => format,
            _ => plan.format,
        }
    }
    fn any_line(&mut self) -> StreamId {
        let at = self.random.below(self.phones.len());
        self.phones[at].line
    }
    fn member(&mut self) -> MemberSettings {
        MemberSettings {
            muted: self.one_in(6),
            deaf: self.one_in(8),
            talking: if self.one_in(6) { Gain(self.random.below(1200) as u16) } else { Gain::UNITY },
            listening: if self.one_in(6) { Gain(self.random.below(1200) as u16) } else { Gain::UNITY },
            drop_silence: self.one_in(3),
            silence_ms: self.of(&[100, 500, 2500]),
            ..MemberSettings::default()
        }
    }
    fn act(&mut self) {
        if self.phones.is_empty() {
            return;
        }
        let line = self.any_line();
        let other = self.any_line();
        let kind = self.random.below(34);
        // A prompt ends when its last packet has left, which may have to wait; until then nothing else is sent. When just that
        // is, its twin cannot know: one that plays is not connected, and one that is connected does not play.
        let (plays, connects) = ((16..19).contains(&kind), matches!(kind, 0..8 | 15 | 27..30));
        if self.wait_ms > 0 && if self.wait_ms.is_multiple_of(3) { connects } else { plays } {
            return;
        }
        let act = match kind {
            0..8 => Act::Join { a: line, b: other },
            8..10 => Act::Part { line },
            10..14 => return self.replan(line),
            14 => {
                self.phones.retain(|phone| phone.line != line);
                Act::Close { line }
            }
            // Nobody is in a room and in echo: both would hear by one ear.
            15 if self.one_in(2) => Act::Mute { line, heard: self.one_in(3), sent: self.one_in(3) },
            15 => {
                let entered = self.phones.iter().any(|phone| phone.line == line && phone.has_entered);
                Act::Echo { line, on: !entered && self.one_in(2) }
            }
            16..18 => {
                self.plays += 1;
                let (clip, offset) = (self.random.below(CLIPS.len()), self.random.below(3000));
                Act::Play { line, play: PlayId(self.plays), clip, offset }
            }
            18 => {
                let epoch_ms = self.random.below(self.now as usize) as u64;
                Act::Music { line, clip: self.random.below(CLIPS.len()), epoch_ms }
            }
            19 => Act::StopPlay { line },
            20 if self.one_in(3) => Act::KeepDigits { line, on: self.one_in(2) },
            20..23 => {
                let digit = Digit::from_event(self.random.below(17) as u8).unwrap_or(Digit::FLASH);
                Act::SendDigit { line, digit, ms: self.random.below(300) as u16 }
            }
            23 if self.wait_ms == 0 => Act::Detect { line, on: self.one_in(2) },
            24 => Act::Record { line, format: self.of(&[FormatId::SLIN, FormatId::SLIN16]) },
            25 => Act::StopRecord { line },
            26 => Act::WatchSilence { line, ms: self.of(&[0, 60, 200]) },
            27..30 => {
                let interval_ms = self.of(&[10, 20, 20, 20, 40, 80]);
                let mixing = RoomSettings { interval_ms, ..RoomSettings::default() };
                let room = RoomId::new(self.random.below(2) as u32, 1);
                let member = self.member();
                let Some(phone) = self.phones.iter_mut().find(|phone| phone.line == line) else { return };
                if !may_enter(phone.plan.format, phone.internal) {
                    return;
                }
                phone.has_entered = true;
                self.act_now(Act::Echo { line, on: false });
                Act::Enter { line, room, mixing, member }
            }
            30 => Act::Adjust { line, member: self.member() },
            31 => Act::Stats { line },
            32 if self.wait_ms == 0 => Act::Poison { line },
            // Who is connected moves together; here, who moves is connected to nobody.
            _ => {
                if self.phones.iter().any(|phone| phone.internal && [line, other].contains(&phone.line)) {
                    return;
                }
                self.act_now(Act::Part { line });
                self.act_now(Act::Part { line: other });
                Act::Move { lines: vec![line, other], to: self.random.below(WORKERS) }
            }
        };
        self.act_now(act);
    }
    /// A new offer: hold and back, another format, another address, or everything.
    fn replan(&mut self, line: StreamId) {
        let Some(at) = self.phones.iter().position(|phone| phone.line == line) else { return };
        let old = self.phones[at].plan.clone();
        let mut plan = old.clone();
        match self.random.below(4) {
            0 => {
                plan.direction = match old.direction {
                    Direction::SendRecv => Direction::SendOnly,
                    _ => Direction::SendRecv,
                };
            }
            1 => {
                plan = Plan { ssrc: old.ssrc, ..self.plan_for(line.slot, self.phones[at].internal) };
            }
            2 => {
                let remote = SocketAddr::from(([192, 0, 2, 100 + line.slot as u8], 5000));
                (plan.remote, plan.relearn) = (Some(remote), true);
                self.phones[at].from = remote;
            }
            _ => plan = self.plan_for(line.slot, self.phones[at].internal),
        }
        let Phone { has_entered, internal, .. } = self.phones[at];
        if has_entered && !may_enter(plan.format, internal) {
            return;
        }
        // Another agreement may leave one direction its key, or both.
        if let (Some(old), Some(new)) = (&old.keys, &mut plan.keys) {
            match self.random.below(4) {
                0 => *new = old.clone(),
                1 if old.suite == new.suite => new.send = old.send.clone(),
                2 if old.suite == new.suite => new.receive = old.receive.clone(),
                _ => {}
            }
        }
        self.act_now(Act::Plan { line, plan: plan.clone() });
        let session = &mut self.phones[at].session;
        *session = rekeyed(session.take(), plan.keys.as_deref().map(far).as_ref());
        let format = Self::first_heard(&plan);
        let ms = self.length_of(format);
        let phone = &mut self.phones[at];
        phone.plan = plan;
        (phone.format, phone.ms) = (format, ms);
        if let Some(remote) = phone.plan.remote {
            phone.from = remote;
        }
    }
    /// One millisecond of a phone.
    fn talk(&mut self, at: usize) {
        let now = self.now;
        if self.phones[at].internal {
            return;
        }
        if self.one_in(900) {
            self.change_habits(at);
        }
        // Whoever sees pictures says more about them.
        let is_video = self.phones[at].plan.format.is_video();
        if self.one_in(if is_video { 30 } else { 400 }) {
            let bytes = self.noise(at);
            let stranger = SocketAddr::from(([198, 51, 100, 7], 9000));
            let from = if self.one_in(2) { stranger } else { self.phones[at].from };
            let rtcp = self.one_in(2);
            self.arrive(at, rtcp, from, bytes);
        }
        let phone = &mut self.phones[at];
        if now < phone.next_at {
            return;
        }
        phone.next_at = now + u64::from(phone.ms);
        let units = phone.format.rtp_clock() / 1000 * u32::from(phone.ms);
        if let Some(packets) = key_packets(phone, units) {
            phone.timestamp = phone.timestamp.wrapping_add(units);
            for bytes in packets {
                let from = self.phones[at].from;
                self.arrive(at, false, from, bytes);
            }
            return;
        }
        let speaks = now >= phone.silent_until;
        let (payload_type, from) = (payload_type(phone.format), phone.from);
        let Phone { sequence, timestamp, ssrc, turn, .. } = *phone;
        phone.timestamp = timestamp.wrapping_add(units);
        if !speaks {
            return;
        }
        phone.sequence = sequence.wrapping_add(1);
        phone.turn += 1;
        let voice = self.voices.of(phone.format, phone.ms);
        let header = Header { payload_type, marker: turn % 50 == 0, sequence, timestamp, ssrc };
        let bytes = [&rtp::write(&header)[..], &voice[turn % voice.len()]].concat();
        self.arrive(at, false, from, bytes);
    }
    fn change_habits(&mut self, at: usize) {
        let now = self.now;
        let kind = self.random.below(6);
        let pause = 50 + self.random.below(600) as u64;
        let bits = self.random.bits();
        let event = self.random.below(18) as u8;
        let packets = 1 + self.random.below(12);
        let heard: Vec<_> = self.phones[at]
            .plan
            .rx
            .iter()
            .filter_map(|entry| match entry {
                Some(RxPayload::Audio(_, format)) => Some(*format),
                _ => None,
            })
            .collect();
        let format = self.of(&heard);
        let ms = self.length_of(format);
        let phone = &mut self.phones[at];
        match kind {
            0 => phone.silent_until = now + pause,
            // Another source at the same address.
            1 => (phone.ssrc, phone.sequence) = (bits as u32, (bits >> 32) as u16),
            // A restart of the same, and a clock that jumps.
            2 => phone.sequence = (bits >> 32) as u16,
            3 => phone.timestamp = bits as u32,
            4 => (phone.format, phone.ms) = (format, ms),
            _ => {
                let timestamp = phone.timestamp;
                phone.key = Some(Key { event, timestamp, duration: 0, left: packets, ends_left: 3 });
            }
        }
    }
    /// What no phone sends: noise, and reports, true and spoiled.
    fn noise(&mut self, at: usize) -> Vec<u8> {
        let (ours, theirs) = (self.phones[at].plan.ssrc, self.phones[at].ssrc);
        if self.one_in(3) {
            let length = self.random.below(60);
            let mut bytes = self.random.bytes(length);
            if let [first, ..] = &mut bytes[..] {
                *first = 0x80;
            }
            return bytes;
        }
        let bits = self.random.bits();
        let sender = rtcp::SenderInfo { ntp: bits, timestamp: bits as u32, packets: 5, bytes: 800 };
        let block = rtcp::Block {
            ssrc: ours,
            fraction_lost: bits as u8,
            lost: (bits >> 20) as i32 >> 8,
            highest: 7,
            jitter: (bits >> 50) as u32,
            last_report: 0,
            delay: 0,
        };
        let mut buffer = [0; 128];
        let mut writer = rtcp::Writer::new(&mut buffer);
        writer.report(theirs, Some(sender), Some(block));
        writer.cname(theirs, b"phone");
        let length = writer.len();
        let mut bytes = buffer[..length].to_vec();
        if self.one_in(2) {
            bytes.extend(self.complaint(ours, theirs));
        }
        if self.one_in(3) {
            self.spoil(&mut bytes);
        }
        bytes
    }
    /// Feedback about pictures, nearly always about ours (RFC 4585 §6, RFC 5104 §4.3.1).
    fn complaint(&mut self, ours: u32, theirs: u32) -> Vec<u8> {
        let about = if self.one_in(8) { theirs } else { ours };
        let bits = self.random.bits();
        let first =
            self.phones.iter().find(|phone| phone.plan.ssrc == ours).map(|phone| phone.plan.first_sequence);
        let sequence = first.unwrap_or_default().wrapping_add(bits as u16 % 200);
        let [s0, s1] = sequence.to_be_bytes();
        let source = about.to_be_bytes();
        let (kind, format, media, entries) = match self.random.below(5) {
            0 => (206, 1, about, Vec::new()),
            1 => (205, 1, about, vec![s0, s1, bits as u8, 1, 0, 0, 0, 0]),
            2 => (206, 4, 0, [&source[..], &[bits as u8, 0, 0, 0]].concat()),
            3 => (206, 15, 0, [&b"REMB\x01\x0b\x52\x34"[..], &source].concat()),
            _ => (205, 15, about, vec![0; 8]),
        };
        let words = 2 + entries.len() as u8 / 4;
        [&[0x80 | format, kind, 0, words][..], &theirs.to_be_bytes(), &media.to_be_bytes(), &entries].concat()
    }
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        match self.random.below(3) {
            0 => bytes.truncate(self.random.below(bytes.len() + 1)),
            1 => {
                let more = 1 + self.random.below(20);
                bytes.extend(self.random.bytes(more));
            }
            _ if !bytes.is_empty() => {
                let at = self.random.below(bytes.len());
                bytes[at] ^= 1 << self.random.below(8);
            }
            _ => {}
        }
    }
    /// A packet goes through the network.
    fn arrive(&mut self, at: usize, rtcp: bool, from: SocketAddr, mut bytes: Vec<u8>) {
        let Phone { network, line, .. } = self.phones[at];
        let slot = line.slot;
        // Somebody without the key says something now and then.
        let is_forged = self.one_in(30);
        if let Some(session) = self.phones[at].session.as_mut().filter(|_| !is_forged) {
            let length = bytes.len();
            let is_report = rtcp || rtp::is_rtcp(&bytes);
            bytes.resize(length + RTCP_TRAILER_MAX, 0);
            let sealed = match is_report {
                true => session.seal_rtcp(&mut bytes, length),
                false => session.seal_rtp(&mut bytes, length),
            };
            bytes.truncate(sealed.unwrap_or(length));
        }
        if self.random.below(1000) < network.lost {
            return;
        }
        if self.random.below(1000) < network.spoiled {
            self.spoil(&mut bytes);
        }
        let copies = if self.random.below(1000) < network.doubled { 2 } else { 1 };
        for _ in 0..copies {
            let mut delay = self.random.below(network.jitter_ms);
            if self.random.below(1000) < network.late {
                delay += 60 + self.random.below(400);
            }
            self.push(self.now + delay as u64, Act::Packet { slot, rtcp, from, bytes: bytes.clone() });
        }
    }
}

/// Suites of lines that are SRTP.
const SUITES: [SrtpSuite; 4] = [
    SrtpSuite::AesCm128Sha1Tag80,
    SrtpSuite::AesCm128Sha1Tag32,
    SrtpSuite::AesCm256Sha1Tag80,
    SrtpSuite::AesGcm128,
];

/// The keys of a line as its phone has them.
fn far(keys: &SrtpKeys) -> SrtpKeys {
    SrtpKeys { send: keys.receive.clone(), receive: keys.send.clone(), ..keys.clone() }
}

/// Whether a line that sends this format is put into rooms. Those share encoders, and what one with a memory makes that is
/// shared is not said to the bit: its length is, and it goes no further.
fn may_enter(format: FormatId, internal: bool) -> bool {
    if internal { !has_memory(format) } else { format.is_constant() }
}

/// Whether what an encoder of this format makes depends on more than its samples.
pub fn has_memory(format: FormatId) -> bool {
    !matches!(format, FormatId::ULAW | FormatId::ALAW) && !format.is_linear()
}

/// Packets of the key that is held, for one interval.
fn key_packets(phone: &mut Phone, units: u32) -> Option<Vec<Vec<u8>>> {
    let key = phone.key.as_mut()?;
    let is_first = key.duration == 0;
    let mut packets = Vec::new();
    let is_end = key.left == 0;
    let count = if is_end { std::mem::take(&mut key.ends_left) } else { 1 };
    if !is_end {
        // The event's clock is 8000, whatever the phone talks.
        key.duration = key.duration.saturating_add((u32::from(phone.ms) * 8).max(units.min(8)) as u16);
        key.left -= 1;
    }
    for _ in 0..count {
        let payload = EventPayload { event: key.event, end: is_end, volume: 10, duration: key.duration };
        let header = Header {
            payload_type: EVENT,
            marker: is_first,
            sequence: phone.sequence,
            timestamp: key.timestamp,
            ssrc: phone.ssrc,
        };
        phone.sequence = phone.sequence.wrapping_add(1);
        packets.push([&rtp::write(&header)[..], &payload.write()].concat());
    }
    if is_end {
        phone.key = None;
    }
    Some(packets)
}

/// Format, milliseconds, and the one from which it is heard again at its end, when it is.
pub const CLIPS: [(FormatId, usize, Option<u16>); 6] = [
    (FormatId::ULAW, 300, None),
    (FormatId::SLIN, 500, Some(360)),
    (FormatId::GSM, 400, None),
    (FormatId::SLIN16, 250, Some(0)),
    (FormatId::G722, 200, None),
    (FormatId::ALAW, 130, Some(50)),
];
