//! The packet path allocates nothing, waits for nobody and wakes nobody: a counting allocator and a filter of system calls
//! watch a worker with every kind of stream.
//!
//! A lock that somebody else holds is waited for by a system call, and so is another thread woken. That there are no locks at
//! all, held or not, `clippy.toml` of these crates sees to: their types are not to be named there.

mod common;

use std::net::SocketAddr;

use base::{
    AudioSink, Command, DtmfMode, Event, FormatId, Instant, MemberSettings, MonitorSettings, MonitorSinks,
    PlayId, RoomId, RoomSettings, SrtpKeys, SrtpSuite, StreamId, ToneWatch, Tones, line,
};
use common::{Phone, clip, far_end, keys_of, plan};
use kit::{Counting, allocations, bytes_kept, system_calls};
use media::{Batch, Config, Input, PacketIo, Worker};
use rtp::Discard;
use srtp::Session;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A network that keeps nothing: it hands out what was prepared and counts what is sent.
struct Wire {
    incoming: Vec<(u32, SocketAddr, Vec<u8>)>,
    next: usize,
    due: usize,
    sent: u64,
}

impl PacketIo for Wire {
    type Leg = u16;
    fn attach(&mut self, _: u32, _: &mut u16) -> bool {
        true
    }
    fn detach(&mut self, _: &mut u16) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while let Some((slot, from, bytes)) = self.incoming.get(self.next).filter(|_| self.next < self.due) {
            if !batch.copy(*slot, false, *from, bytes) {
                return true;
            }
            self.next += 1;
        }
        false
    }
    fn put(&mut self, _: u32, _: &mut u16, _: SocketAddr, _: &[u8]) -> bool {
        self.sent += 1;
        true
    }
    fn put_rtcp(&mut self, _: u32, _: &mut u16, _: SocketAddr, _: bool, _: &[u8]) -> bool {
        self.sent += 1;
        true
    }
    fn lock(&mut self, _: &mut u16, _: Option<SocketAddr>) {}
}

/// Does the work and asserts that the kernel is not entered: no lock is waited for, no thread woken, no memory asked for.
fn without_system_calls(mut work: impl FnMut() + Send) {
    match system_calls(&mut work) {
        Some((calls, latest)) => assert_eq!(calls, 0, "system calls, the last one number {latest}"),
        None => {
            println!("skipped: no filters of system calls here");
            work();
        }
    }
}

/// Every third line has SRTP, of one suite after the other.
fn sealed(slot: u32) -> Option<Box<SrtpKeys>> {
    let suite = SrtpSuite::ALL[slot as usize / 3 % SrtpSuite::ALL.len()];
    slot.is_multiple_of(3).then(|| keys_of(suite, slot))
}
/// The phone's next packet, sealed where its line is.
fn said(phone: &mut Phone, far: &mut Option<Session>, audio: &[u8]) -> Vec<u8> {
    let packet = phone.packet(audio);
    far.as_mut().map_or(packet.clone(), |far| common::sealed(far, &packet))
}

struct Nowhere;
impl AudioSink for Nowhere {
    fn write(&mut self, samples: &[i16]) -> usize {
        samples.len()
    }
}

#[test]
fn ten_seconds_of_playing_relaying_transcoding_recording_and_digits_allocate_nothing() {
    let formats = [
        (FormatId::ULAW, 0),
        (FormatId::ULAW, 0),
        (FormatId::ALAW, 8),
        (FormatId::GSM, 3),
        (FormatId::G722, 9),
    ];
    let mut worker = Worker::new(Config::default());
    let mut wire = Wire { incoming: Vec::new(), next: 0, due: 0, sent: 0 };
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let mut now_ms = 1000_u64;
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let ids: Vec<_> = (0..20).map(|slot| StreamId::new(slot, 1)).collect();
    let mut phones = Vec::new();
    for &stream in &ids {
        let (format, payload) = formats[stream.slot as usize % formats.len()];
        let mut plan = plan(stream.slot, format, payload);
        (plan.remote_rtcp, plan.rtcp_interval_ms, plan.rtp_timeout_ms) = (plan.remote, 500, 300);
        if stream.slot >= 15 {
            plan.dtmf = DtmfMode::Inband;
        }
        plan.keys = sealed(stream.slot);
        let far = plan.keys.as_deref().map(far_end);
        let open = Input::Open { stream, leg: 0, plan: Box::new(plan) };
        worker.input(open, at(now_ms), &mut wire, &mut events);
        phones.push((Phone::new(stream, payload), format, far));
    }
    let prompt = clip(FormatId::SLIN, vec![1; 320_000]);
    let (x, y) = (StreamId::new(20, 1), StreamId::new(21, 1));
    for stream in [x, y] {
        let open = Input::OpenInternal { stream, plan: Box::new(plan(stream.slot, FormatId::ULAW, 0)) };
        worker.input(open, at(now_ms), &mut wire, &mut events);
    }
    let record = |stream| Command::Record { stream, format: FormatId::SLIN, sink: Box::new(Nowhere) };
    // Both sides of a relay, of a transcoded call and of a prompt, at a rate that is none of theirs.
    let monitor = |stream| {
        let sink = || Some(Box::new(Nowhere) as Box<dyn AudioSink>);
        let sinks = Box::new(MonitorSinks { heard: sink(), said: sink(), mixed: sink() });
        let settings = MonitorSettings::default();
        Command::Monitor { stream, monitor: 1, format: FormatId::SLIN16, settings, sinks }
    };
    let signals = Tones::DIAL | Tones::BUSY | Tones::RINGBACK | Tones::INFORMATION;
    let tones = ToneWatch { hertz: Some(1000), signals, ..ToneWatch::default() };
    let mut commands = vec![
        Command::Join { a: ids[0], b: ids[1] },
        Command::Join { a: ids[2], b: ids[3] },
        Command::Join { a: ids[4], b: ids[5] },
        Command::Join { a: ids[18], b: ids[16] },
        record(ids[0]),
        record(ids[4]),
        Command::WatchSilence { stream: ids[6], ms: 200, threshold: 256 },
        Command::WatchTone { stream: ids[2], listener: base::Listener::Application, watch: Some(tones) },
        Command::Echo { stream: ids[7], on: true },
        Command::Play { stream: ids[8], play: PlayId(1), clip: prompt.clone(), offset: 0 },
        Command::Play { stream: ids[9], play: PlayId(1), clip: prompt.clone(), offset: 0 },
        Command::Music { stream: ids[10], clip: prompt, epoch: Instant::ZERO },
        Command::Tie { a: x, b: y },
        monitor(ids[2]),
        monitor(ids[4]),
        monitor(ids[8]),
        Command::Join { a: ids[11], b: x },
        Command::Join { a: ids[12], b: y },
    ];
    // Somebody listens to the relay and speaks to it; another speaks beside a prompt and to one who hears nothing else.
    let overheard = |from: StreamId, number, format: FormatId| {
        let (to, source) = line(format.rate());
        let sinks = Box::new(MonitorSinks { mixed: Some(Box::new(to)), ..MonitorSinks::default() });
        let settings = MonitorSettings::default();
        (Command::Monitor { stream: from, monitor: number, format, settings, sinks }, Box::new(source))
    };
    let (heard, source) = overheard(ids[0], 2, FormatId::SLIN16);
    commands.extend([heard, Command::Live { stream: ids[14], format: FormatId::SLIN16, source }]);
    for (number, to) in [(3, ids[0]), (4, ids[2]), (5, ids[8]), (6, ids[9]), (7, ids[17])] {
        let (said, source) = overheard(ids[14], number, FormatId::SLIN16);
        let format = FormatId::SLIN16;
        commands.extend([said, Command::Murmur { stream: to, murmur: number, format, source }]);
    }
    for (stream, symbol) in [(ids[0], '1'), (ids[15], '2'), (ids[13], '3')] {
        let digit = base::Digit::from_char(symbol).unwrap();
        commands.push(Command::SendDigit { stream, digit, duration_ms: 200 });
    }
    for command in commands {
        worker.input(Input::Command(command), at(now_ms), &mut wire, &mut events);
    }
    for n in 0..500 {
        for (phone, format, far) in &mut phones {
            // A digit now and then; silence for a second in between, so that timeouts and starvation happen too.
            if (200..250).contains(&n) {
                continue;
            }
            let audio = vec![0x55; format.bytes_in(20)];
            wire.incoming.push((phone.stream.slot, phone.from, said(phone, far, &audio)));
        }
    }
    let mut allocated = 0;
    let mut in_tick = 0;
    without_system_calls(|| {
        for n in 0..500 {
            wire.due += if (200..250).contains(&n) { 0 } else { 20 };
            for _ in 0..20 {
                now_ms += 1;
                allocated += allocations(|| worker.tick(at(now_ms), &mut wire, &mut events));
                in_tick += 1;
            }
            events.clear();
        }
    });
    assert!(wire.sent > 5000 && wire.next == 9000, "{} sent, {} received", wire.sent, wire.next);
    assert_eq!(allocated, 0, "allocations in {in_tick} ticks, {} packets sent", wire.sent);
    let discards = worker.load().discards;
    assert_eq!(discards.of(Discard::NotAuthentic) + discards.of(Discard::NotSealed), 0);
}

/// Six members of five formats, three rates and two packet lengths, who talk in turns, so that everyone passes from the
/// encoder that all share to one of its own and back.
#[test]
fn ten_seconds_of_a_room_allocate_nothing() {
    let formats = [
        (FormatId::ULAW, 0),
        (FormatId::GSM, 3),
        (FormatId::G722, 9),
        (FormatId::SLIN48, 97),
        (FormatId::ILBC, 98),
        (FormatId::ULAW, 0),
    ];
    let mut worker = Worker::new(Config::default());
    let mut wire = Wire { incoming: Vec::new(), next: 0, due: 0, sent: 0 };
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let mut now_ms = 1000_u64;
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut phones = Vec::new();
    for (slot, (format, payload)) in formats.into_iter().enumerate() {
        let stream = StreamId::new(slot as u32, 1);
        let mut plan = plan(stream.slot, format, payload);
        plan.ptime_ms = if slot == 5 { 40 } else { 20 };
        plan.keys = sealed(stream.slot);
        let far = plan.keys.as_deref().map(far_end);
        let open = Input::Open { stream, leg: 0, plan: Box::new(plan) };
        worker.input(open, at(now_ms), &mut wire, &mut events);
        let (room, mixing) = (RoomId::new(0, 1), RoomSettings { speakers_max: 2, ..RoomSettings::default() });
        let member = MemberSettings { drop_silence: slot % 2 == 0, level: 3000, ..MemberSettings::default() };
        let enter = Command::Enter { stream, room, mixing, member };
        worker.input(Input::Command(enter), at(now_ms), &mut wire, &mut events);
        let mut phone = Phone::new(stream, payload);
        phone.units = format.rtp_clock() / 50;
        phones.push((phone, far, common::tone(format, 500.0, 20), common::tone(format, 0.0, 20)));
    }
    // The room is written down besides, at a rate that nobody has.
    let (room, format) = (RoomId::new(0, 1), FormatId::SLIN24);
    let record = Command::RecordRoom { room, format, sink: Box::new(Nowhere) };
    worker.input(Input::Command(record), at(now_ms), &mut wire, &mut events);
    for n in 0..500 {
        for (at, (phone, far, speech, silence)) in phones.iter_mut().enumerate() {
            let talks = n / 60 % 6 == at || n / 80 % 6 == at;
            let packet = said(phone, far, if talks { speech } else { silence });
            wire.incoming.push((phone.stream.slot, phone.from, packet));
        }
    }
    let mut allocated = 0;
    without_system_calls(|| {
        for _ in 0..500 {
            wire.due += 6;
            for _ in 0..20 {
                now_ms += 1;
                allocated += allocations(|| worker.tick(at(now_ms), &mut wire, &mut events));
            }
            events.clear();
        }
    });
    assert!(wire.sent > 2700 && wire.next == 3000, "{} sent, {} received", wire.sent, wire.next);
    assert_eq!((allocated, worker.load().panics), (0, 0), "{} packets sent", wire.sent);
}

/// A worker in which phones of one format talk with phones of another, pair by pair, in both directions.
struct Exchange {
    worker: Worker<u16>,
    wire: Wire,
    events: Vec<Event>,
    now_ms: u64,
    talkers: Vec<Talker>,
}

/// A phone with what it says, and when its next packet is due.
struct Talker {
    phone: Phone,
    ms: u64,
    packets: Vec<Vec<u8>>,
}

impl Exchange {
    fn new(talkers: usize) -> Self {
        let wire = Wire { incoming: Vec::new(), next: 0, due: 0, sent: 0 };
        Self {
            worker: Worker::new(Config::default()),
            wire,
            events: Vec::with_capacity(1024),
            now_ms: 1000,
            talkers: Vec::with_capacity(talkers),
        }
    }
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ms * 1_000_000)
    }
    fn input(&mut self, input: Input<u16>) {
        let now = self.now();
        self.worker.input(input, now, &mut self.wire, &mut self.events);
    }
    fn open(&mut self, format: FormatId) -> StreamId {
        let stream = StreamId::new(self.talkers.len() as u32, 1);
        let ms = format.usual_ms();
        let plan = base::Plan { ptime_ms: ms, ..plan(stream.slot, format, 97) };
        self.input(Input::Open { stream, leg: 0, plan: Box::new(plan) });
        let mut phone = Phone::new(stream, 97);
        phone.units = format.rtp_clock() / 1000 * u32::from(ms);
        self.talkers.push(Talker { phone, ms: ms.into(), packets: Vec::new() });
        stream
    }
    /// A pair that talks with each other.
    fn call(&mut self, from: FormatId, to: FormatId) {
        let (a, b) = (self.open(from), self.open(to));
        self.input(Input::Command(Command::Join { a, b }));
    }
    /// Runs for `ms`, in which the phones say their packets; what ticks allocate.
    fn run(&mut self, ms: u64, mut say: impl FnMut(&mut Talker, u64) -> Option<Vec<u8>>) -> u64 {
        let mut allocated = 0;
        for _ in 0..ms {
            self.now_ms += 1;
            self.wire.incoming.clear();
            self.wire.next = 0;
            for talker in &mut self.talkers {
                // Not all at once.
                let turn = self.now_ms + 7 * u64::from(talker.phone.stream.slot);
                if turn.is_multiple_of(talker.ms)
                    && let Some(packet) = say(talker, turn / talker.ms)
                {
                    self.wire.incoming.push((talker.phone.stream.slot, talker.phone.from, packet));
                }
            }
            self.wire.due = self.wire.incoming.len();
            let now = self.now();
            let Self { worker, wire, events, .. } = self;
            allocated += allocations(|| worker.tick(now, wire, events));
            events.clear();
        }
        allocated
    }
}

/// Packets of a tone in any format.
fn tone_packets(format: FormatId, count: usize) -> Vec<Vec<u8>> {
    let ms = usize::from(format.usual_ms());
    let size = format.rate().0 as usize * ms / 1000;
    let mut encoder = codec::Encoder::new(format);
    let packet = |number: usize| {
        let sample = |n: usize| ((n as f64 * 2500.0 / format.rate().0 as f64).sin() * 8000.0) as i16;
        let linear: Vec<i16> = (number * size..(number + 1) * size).map(sample).collect();
        let mut packet = vec![0; format.packet_room(ms as u16)];
        let bytes = encoder.encode(&linear, &mut packet);
        packet.truncate(bytes);
        packet
    };
    (0..count).map(packet).collect()
}

#[test]
fn every_format_is_decoded_encoded_and_concealed_in_groups_and_alone_without_allocating() {
    let is_there = |format: &FormatId| !codec::missing_libraries().any(|(missing, _)| missing == *format);
    for format in FormatId::coded().filter(is_there) {
        let other = if format == FormatId::GSM { FormatId::ULAW } else { FormatId::GSM };
        for calls in [1, 20] {
            let mut exchange = Exchange::new(2 * calls);
            (0..calls).for_each(|_| exchange.call(format, other));
            let packets = [tone_packets(format, 50), tone_packets(other, 50)];
            for (number, talker) in exchange.talkers.iter_mut().enumerate() {
                talker.packets.clone_from(&packets[number % 2]);
            }
            let allocated = exchange.run(2500, |talker, turn| {
                let audio = &talker.packets[turn as usize % talker.packets.len()];
                let whole = talker.phone.packet(audio);
                match turn {
                    // A second of nothing, and then a packet lost, cut short or doubled now and then.
                    60..110 => None,
                    _ if turn.is_multiple_of(7) => None,
                    _ if turn.is_multiple_of(11) => Some(whole[..12 + audio.len() / 2 + 1].to_vec()),
                    _ if turn.is_multiple_of(13) => Some([&whole[..], audio].concat()),
                    _ => Some(whole),
                }
            });
            let load = exchange.worker.load();
            assert_eq!((allocated, load.panics), (0, 0), "{format}, {calls} calls");
            assert!(exchange.wire.sent > 50 * calls as u64, "{format}: {} sent", exchange.wire.sent);
            if codec::encode_frame(format).is_some() && calls > 1 {
                assert!(load.grouped > 2 * load.groups, "{format}: {load:?}");
            }
        }
    }
}

/// The most that one transcoded direction of a call may own, bytes: jitter buffer, decoder, samples between, encoder,
/// packet. The stream that it belongs to is there without it.
const DIRECTION_BYTES_MAX: i64 = 12_000;

#[test]
fn a_thousand_calls_keep_less_than_12_kb_for_each_transcoded_direction() {
    const CALLS: usize = 1000;
    for (from, to) in [
        (FormatId::GSM, FormatId::ILBC),
        (FormatId::GSM, FormatId::ILBC30),
        (FormatId::GSM, FormatId::SPEEX),
        (FormatId::SPEEX, FormatId::ILBC30),
        (FormatId::G722, FormatId::ULAW),
        (FormatId::G726, FormatId::ALAW),
    ] {
        let mut exchange = Exchange::new(2 * CALLS);
        let streams = bytes_kept(|| {
            for _ in 0..CALLS {
                exchange.open(from);
                exchange.open(to);
            }
        });
        let packets = [tone_packets(from, 20), tone_packets(to, 20)];
        for (number, talker) in exchange.talkers.iter_mut().enumerate() {
            talker.packets.clone_from(&packets[number % 2]);
        }
        let joined = bytes_kept(|| {
            for call in 0..CALLS as u32 {
                let (a, b) = (StreamId::new(2 * call, 1), StreamId::new(2 * call + 1, 1));
                exchange.input(Input::Command(Command::Join { a, b }));
            }
        });
        let before = exchange.wire.sent;
        let working = bytes_kept(|| {
            let allocated = exchange.run(200, |talker, turn| {
                let audio = &talker.packets[turn as usize % talker.packets.len()];
                Some(talker.phone.packet(audio))
            });
            assert_eq!(allocated, 0, "{from} {to}");
            // What the test itself holds goes.
            exchange.wire.incoming = Vec::new();
        });
        assert!(exchange.wire.sent - before > 8 * CALLS as u64, "{from} {to}: they talk");
        let directions = 2 * CALLS as i64;
        let (direction, stream) = ((joined + working) / directions, streams / directions);
        println!("{from} and {to}: {direction} bytes a direction, besides {stream} of its stream");
        assert!(direction <= DIRECTION_BYTES_MAX, "{from} and {to}: {direction} bytes a direction");
        assert!(direction > 2000, "{from} and {to}: {direction} bytes a direction cannot be all");
    }
}
