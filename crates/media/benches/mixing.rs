//! What a member of a conference costs: a worker whole, packets in and packets out, on invented time and without sockets.
//!
//! `cargo bench -p media --bench mixing`: a hundred members in one room who all send µ-law, of whom some talk and the others
//! send a line's hum or silence. Compared with a plain mixer that decodes, adds up and encodes for every listener anew, a
//! sample after the other, timed in the same run on the same packets; it has no RTP and no jitter buffer. CPU time of this
//! thread, the best of several rounds.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use base::{Command, Event, FormatId, Instant, MemberSettings, RoomId, RoomSettings, StreamId};
use codec::{Decoder, Encoder};
use media::{Arrival, Batch, Config, Input, PacketIo, Worker};
use oracle::{Figure, quickest};

use common::{peer, plan};

const MEMBERS: u32 = 100;
const ROUNDS: usize = 5;
const WARM_MS: u64 = 2000;
const SECOND_MS: u64 = 1000;
/// How often the worker ticks at 10,000 packets a second.
const TICK_MS: u64 = 5;
/// Frames of each kind of sound, 20 ms each.
const FRAMES: usize = 100;

/// What members send.
#[derive(Clone, Copy)]
enum Sound {
    Speech,
    Hum,
    Silence,
}

/// Members that talk, and what the others send.
const LOADS: [(&str, u32, Sound); 3] = [
    ("3 talk, 97 hum", 3, Sound::Hum),
    ("3 talk, 97 silent", 3, Sound::Silence),
    ("all talk", 100, Sound::Hum),
];

fn frames(format: FormatId, sound: Sound, seed: u32) -> Vec<Vec<u8>> {
    let rate = format.rate().0 as usize;
    let mut encoder = Encoder::new(format);
    let mut noise = u64::from(seed) + 1;
    let mut sample = |n: usize| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let noise = f64::from((noise >> 40) as u32 as i32 % 200 - 100);
        let hertz = 150.0 + 7.0 * f64::from(seed);
        let tone = (n as f64 * hertz * std::f64::consts::TAU / rate as f64).sin();
        match sound {
            Sound::Speech => tone * 6000.0 + noise * 4.0,
            Sound::Hum => noise / 4.0,
            Sound::Silence => 0.0,
        }
    };
    let count = rate / 50;
    (0..FRAMES)
        .map(|frame| {
            let linear: Vec<i16> = (0..count).map(|n| sample(frame * count + n) as i16).collect();
            let mut coded = vec![0; format.packet_room(20)];
            let bytes = encoder.encode(&linear, &mut coded);
            coded.truncate(bytes);
            coded
        })
        .collect()
}

/// A network in which every member says its frames, one each 20 ms.
struct Net {
    now_ms: u64,
    looked_ms: u64,
    payload: u8,
    units: u64,
    sounds: Vec<Vec<Vec<u8>>>,
    next: u32,
    sent: u64,
}

impl PacketIo for Net {
    type Leg = ();
    fn attach(&mut self, _: u32, (): &mut ()) -> bool {
        true
    }
    fn detach(&mut self, (): &mut ()) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while (self.next as usize) < self.sounds.len() {
            let Some(room) = batch.room() else { return true };
            let slot = self.next;
            self.next += 1;
            let phase = u64::from(slot) * 7;
            let number = (self.now_ms + phase) / 20;
            if number == (self.looked_ms + phase) / 20 {
                continue;
            }
            let header = rtp::Header {
                payload_type: self.payload,
                marker: false,
                sequence: number as u16,
                timestamp: (number * self.units) as u32,
                ssrc: 0x5000 + slot,
            };
            let header = rtp::write(&header);
            let payload = &self.sounds[slot as usize][number as usize % FRAMES];
            let length = header.len() + payload.len();
            room[..header.len()].copy_from_slice(&header);
            room[header.len()..length].copy_from_slice(payload);
            batch.push(Arrival { slot, rtcp: false, from: peer(slot), length });
        }
        self.next = 0;
        self.looked_ms = self.now_ms;
        false
    }
    fn put(&mut self, _: u32, (): &mut (), _: SocketAddr, packet: &[u8]) -> bool {
        std::hint::black_box(packet);
        self.sent += 1;
        true
    }
    fn put_rtcp(&mut self, _: u32, (): &mut (), _: SocketAddr, _: bool, _: &[u8]) -> bool {
        true
    }
    fn lock(&mut self, (): &mut (), _: Option<SocketAddr>) {}
}

/// A room of a hundred in a worker of its own.
struct Room {
    worker: Worker<()>,
    net: Net,
    events: Vec<Event>,
}

impl Room {
    fn new(format: FormatId, sounds: Vec<Vec<Vec<u8>>>) -> Self {
        let payload = format.usual_payload().unwrap_or(97);
        let units = u64::from(format.rtp_clock() / 50);
        let net = Net { now_ms: 1000, looked_ms: 1000, payload, units, sounds, next: 0, sent: 0 };
        let mut room = Self { worker: Worker::new(Config::default()), net, events: Vec::new() };
        for slot in 0..MEMBERS {
            let stream = StreamId::new(slot, 1);
            room.input(Input::Open { stream, leg: (), plan: Box::new(plan(slot, format)) });
            room.input(Input::Command(Command::Enter {
                stream,
                room: RoomId::new(0, 1),
                mixing: RoomSettings::default(),
                member: MemberSettings::default(),
            }));
        }
        room.run(WARM_MS);
        room
    }
    fn input(&mut self, input: Input<()>) {
        let now = Instant::from_nanos(self.net.now_ms * 1_000_000);
        self.worker.input(input, now, &mut self.net, &mut self.events);
    }
    fn run(&mut self, ms: u64) -> u64 {
        let before = self.net.sent;
        for _ in 0..ms / TICK_MS {
            self.net.now_ms += TICK_MS;
            let now = Instant::from_nanos(self.net.now_ms * 1_000_000);
            self.worker.tick(now, &mut self.net, &mut self.events);
            self.events.clear();
        }
        self.net.sent - before
    }
}

/// The plain mixer: each listener's mix is made of all others, a sample after the other.
struct Plain {
    decoders: Vec<Decoder>,
    encoders: Vec<Encoder>,
    linear: Vec<Vec<i16>>,
    at: usize,
}

impl Plain {
    fn new(format: FormatId) -> Self {
        let count = format.rate().0 as usize / 50;
        Self {
            decoders: (0..MEMBERS).map(|_| Decoder::new(format)).collect(),
            encoders: (0..MEMBERS).map(|_| Encoder::new(format)).collect(),
            linear: vec![vec![0; count]; MEMBERS as usize],
            at: 0,
        }
    }
    /// 20 ms of all members.
    fn frame(&mut self, sounds: &[Vec<Vec<u8>>]) {
        let frame = self.at % FRAMES;
        self.at += 1;
        for ((decoder, linear), sound) in self.decoders.iter_mut().zip(&mut self.linear).zip(sounds) {
            decoder.decode(&sound[frame], linear);
        }
        let mut coded = [0; 2000];
        let mut mix = vec![0i16; self.linear[0].len()];
        for (own, encoder) in self.encoders.iter_mut().enumerate() {
            for (at, out) in mix.iter_mut().enumerate() {
                let mut sum = 0i32;
                for (n, linear) in self.linear.iter().enumerate() {
                    if n != own {
                        sum += i32::from(linear[at]);
                    }
                }
                *out = sum.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16;
            }
            std::hint::black_box(encoder.encode(&mix, &mut coded));
        }
    }
}

fn main() {
    for format in [FormatId::ULAW, FormatId::G722, FormatId::GSM] {
        for (name, talk, rest) in LOADS {
            let sound = |slot| if slot < talk { Sound::Speech } else { rest };
            let sounds: Vec<_> = (0..MEMBERS).map(|slot| frames(format, sound(slot), slot)).collect();
            let mut plain = Plain::new(format);
            let mut room = Room::new(format, sounds.clone());
            let (mut best, mut naive) = (Duration::MAX, Duration::MAX);
            for _ in 0..ROUNDS {
                let mut sent = 0;
                best = best.min(quickest(1, || sent = room.run(SECOND_MS)));
                assert_eq!(sent, 50 * u64::from(MEMBERS), "every member is sent every packet");
                naive = naive.min(quickest(1, || (0..50).for_each(|_| plain.frame(&sounds))));
            }
            // 1 us a second is 0.0001 % of a core.
            let share = |took: Duration| took.as_secs_f64() * 1e6 / f64::from(MEMBERS);
            let name = format!("conference {format} 100 members, {name}");
            let baseline = Some((share(naive), "each mix made of all others, plain, without RTP"));
            Figure { name: &name, value: share(best), unit: "us/s per member", baseline }.publish();
        }
    }
}
