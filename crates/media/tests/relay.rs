//! Bridges below the worker, on invented time: what a phone hears is what it would hear without, packet by packet.

mod common;

use base::{
    Command, Direction, Event, FormatId, MonitorSettings, MonitorSinks, PlayId, StreamId, StreamStats,
};
use common::*;
use kit::Random;
use media::{Input, Tracing, Watch};

/// Frames of one history: 40 s.
const FRAMES: usize = 2_000;
const SEEDS: u64 = 12;

struct History {
    plant: Plant,
    random: Random,
    phones: [Phone; 2],
    /// Packets that were overtaken, to be sent a frame later.
    late: [Option<Vec<u8>>; 2],
    plays: u32,
}

impl History {
    fn new(seed: u64, relays: bool) -> Self {
        let mut plant = Plant::new();
        plant.net.relays = relays;
        let streams = [0, 1].map(|n| plant.open(plan(n, FormatId::ULAW, 0)));
        let phones = streams.map(|stream| Phone::new(stream, 0));
        plant.command(Command::Join { a: streams[0], b: streams[1] });
        Self { plant, random: Random(seed), phones, late: [None, None], plays: 0 }
    }
    fn chance(&mut self, of: usize) -> bool {
        self.random.below(of) == 0
    }
    /// One frame of 20 ms: what each phone sends, at a time of its own, and perhaps a command.
    fn frame(&mut self) {
        for n in 0..2 {
            self.plant.run(1);
            self.say(n);
            self.plant.run(7);
        }
        if self.chance(120) {
            self.command();
        }
        self.plant.run(4);
    }
    fn say(&mut self, n: usize) {
        if let Some(late) = self.late[n].take() {
            let from = self.phones[n].from;
            self.plant.datagram(self.phones[n].stream, from, late);
            self.plant.run(1);
        }
        let audio = [self.random.bits() as u8; 160];
        let (dice, size) = (self.random.below(400), self.random.below(3_500) as u16);
        let Self { plant, phones, late, .. } = self;
        let phone = &mut phones[n];
        match dice {
            // Lost, overtaken, twice, a gap, another source, comfort noise, a stranger, padding, a digit.
            0..10 => drop(phone.packet(&audio)),
            10..16 => late[n] = Some(phone.packet(&audio)),
            16..22 => {
                let packet = phone.packet(&audio);
                plant.datagram(phone.stream, phone.from, packet.clone());
                plant.run(1);
                plant.datagram(phone.stream, phone.from, packet);
            }
            22 => phone.sequence = phone.sequence.wrapping_add(size),
            23 => {
                phone.ssrc ^= u32::from(size);
                phone.sequence = size;
                phone.say(plant, &audio);
            }
            24..26 => {
                let mut packet = phone.packet(&audio);
                packet[1] = 13;
                plant.datagram(phone.stream, phone.from, packet);
            }
            26..28 => plant.datagram(phone.stream, peer(77), phone.packet(&audio)),
            28 => {
                let mut packet = phone.packet(&audio);
                packet[0] |= 0x20;
                packet.extend([0, 0, 3]);
                plant.datagram(phone.stream, phone.from, packet);
            }
            29 => {
                for duration in 1..5 {
                    phone.event(plant, 7, duration > 2, duration * 160);
                    plant.run(1);
                }
            }
            _ => phone.say(plant, &audio),
        }
    }
    fn command(&mut self) {
        let n = self.random.below(2);
        let [a, b] = [n, 1 - n].map(|n| self.phones[n].stream);
        let held = |direction| Command::Plan {
            stream: a,
            plan: Box::new(base::Plan { direction, ..plan(a.slot, FormatId::ULAW, 0) }),
        };
        let sinks = Box::new(MonitorSinks { mixed: None, heard: None, said: None });
        self.plays += 1;
        let wait = 1 + self.random.below(200) as u64;
        let (format, settings) = (FormatId::SLIN, MonitorSettings::default());
        let (begin, end) = match self.random.below(8) {
            0 => (
                Command::Play {
                    stream: a,
                    play: PlayId(self.plays),
                    clip: clip(FormatId::ULAW, vec![0x55; 1600]),
                    offset: 0,
                },
                Command::StopPlay { stream: a },
            ),
            1 => (Command::Part { stream: a }, Command::Join { a, b }),
            2 => (held(Direction::Inactive), held(Direction::SendRecv)),
            3 => (
                Command::Monitor { stream: a, monitor: 1, format, settings, sinks },
                Command::StopMonitor { stream: a, monitor: 1 },
            ),
            4 => (
                Command::DetectInband { stream: a, on: true },
                Command::DetectInband { stream: a, on: false },
            ),
            5 => {
                let digit = base::Digit::from_char('3').unwrap();
                (Command::SendDigit { stream: a, digit, duration_ms: 100 }, Command::Stats { stream: b })
            }
            6 => (Command::Stats { stream: a }, Command::Join { a: b, b: a }),
            _ => {
                self.plant.input(Input::Trace(Tracing { rtp: Watch::All, ..Tracing::default() }));
                (Command::Stats { stream: a }, Command::Stats { stream: b })
            }
        };
        self.plant.command(begin);
        self.plant.run(wait);
        self.plant.command(end);
        self.plant.input(Input::Trace(Tracing::default()));
    }
    fn stats(&mut self, stream: StreamId) -> StreamStats {
        self.plant.command(Command::Stats { stream });
        match self.plant.events.last() {
            Some(Event::Stats { stats, .. }) => *stats,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rfc3550_5_1_what_is_sent_over_random_histories_is_the_same_with_bridges_below_and_without() {
    for seed in 0..SEEDS {
        let (mut with, mut without) = (History::new(seed, true), History::new(seed, false));
        for _ in 0..FRAMES {
            with.frame();
            without.frame();
        }
        for n in 0..2 {
            let stream = with.phones[n].stream;
            let (sent, expected) = (with.plant.sent_by(stream), without.plant.sent_by(stream));
            for (number, (sent, expected)) in sent.iter().zip(&expected).enumerate() {
                let name = format!(
                    "seed {seed}, stream {n}, packet {number}: {:?}, not {:?}",
                    sent.header(),
                    expected.header()
                );
                assert_eq!((sent.at_ms, sent.to), (expected.at_ms, expected.to), "{name}");
                assert!(sent.bytes == expected.bytes, "{name}");
            }
            assert_eq!(sent.len(), expected.len(), "seed {seed}");
            let (stats, expected) = (with.stats(stream), without.stats(stream));
            // Jitter is measured anew after each move.
            let stats = StreamStats { jitter_us: expected.jitter_us, ..stats };
            assert_eq!(stats, expected, "seed {seed}");
        }
        let load = with.plant.worker.load();
        assert!(load.relays_begun >= 3, "seed {seed}: {} times below", load.relays_begun);
        assert!(with.plant.net.carried * 4 > load.received, "seed {seed}: {}", with.plant.net.carried);
        assert_eq!((load.panics, without.plant.net.carried), (0, 0));
    }
}

#[test]
fn a_bridge_that_is_closed_or_given_away_leaves_nothing_below() {
    for give in [false, true] {
        let mut history = History::new(1, true);
        let [a, b] = [0, 1].map(|n| history.phones[n].stream);
        let mut frames = 0;
        while history.plant.net.below.len() < 2 {
            for phone in &mut history.phones {
                phone.say(&mut history.plant, &[1; 160]);
            }
            history.plant.run(20);
            frames += 1;
            assert!(frames < 200, "it goes below within seconds");
        }
        assert_eq!(history.plant.worker.load().relays, 1);
        if give {
            let now = history.plant.now();
            let Plant { worker, net, events, .. } = &mut history.plant;
            assert!(worker.release(a, now, net, events).is_some());
        } else {
            history.plant.command(Command::Close { stream: b });
        }
        assert!(history.plant.net.below.is_empty());
        assert_eq!(history.plant.worker.load().relays, 0);
    }
}

#[test]
fn silence_on_a_bridge_below_is_timed_out_when_it_is_due() {
    let mut plant = Plant::new();
    plant.net.relays = true;
    let timed = |number| base::Plan { rtp_timeout_ms: 1500, ..plan(number, FormatId::ULAW, 0) };
    let streams = [0, 1].map(|n| plant.open(timed(n)));
    let mut phones = streams.map(|stream| Phone::new(stream, 0));
    plant.command(Command::Join { a: streams[0], b: streams[1] });
    let mut last = 0;
    for frame in 0..500 {
        for (n, phone) in phones.iter_mut().enumerate() {
            // The first falls silent after five seconds.
            if n == 1 || frame < 250 {
                phone.say(&mut plant, &[2; 160]);
                last = if n == 0 { plant.net.now_ms } else { last };
            }
        }
        plant.run(20);
        let timed_out = plant.take_events().into_iter().find_map(|event| match event {
            Event::RtpTimeout { stream } => Some(stream),
            _ => None,
        });
        if let Some(stream) = timed_out {
            let waited = plant.net.now_ms - last;
            assert_eq!(stream, streams[0]);
            assert!((1500..1560).contains(&waited), "{waited} ms");
            assert_eq!(plant.worker.load().relays, 1, "it stays below");
            return;
        }
    }
    panic!("no timeout");
}
