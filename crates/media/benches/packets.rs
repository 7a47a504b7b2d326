//! What the worker itself does for a packet: judged, counted, renumbered and put out, on invented time and without sockets.
//!
//! `cargo bench -p media --bench packets`: calls that are bridged in one law of G.711 or in both, and calls in Playback whose
//! callers talk on, and such calls recorded; a packet each 20 ms on every leg, visits and timers included. CPU time of this thread a packet that
//! leaves, the best of several rounds, by the number of legs: beyond some hundreds a stream is not in the nearest caches
//! any more when its next packet comes.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use base::{
    AudioSink, Clip, Command, Event, FormatId, Instant, MonitorSettings, MonitorSinks, PlayId, StreamId,
};
use media::{Arrival, Batch, Config, Input, PacketIo, Worker};
use oracle::{Figure, quickest};

use common::{peer, plan};

const ROUNDS: u32 = 5;
const WARM_MS: u64 = 200;
const SECOND_MS: u64 = 1000;
const LEGS: [u32; 3] = [100, 1000, 10_000];
/// Bytes of a packet: 20 ms of G.711.
const PACKET: usize = 172;
/// Where packets go that are put out: as many as the rings of an interface hold.
const RING: usize = 2048;

/// A network in which every leg says a packet each 20 ms, and what is put out is written to a ring of memory.
struct Net {
    now_ms: u64,
    legs: u32,
    next: u32,
    incoming: [u8; PACKET],
    ring: Vec<[u8; 256]>,
    sent: usize,
}

/// As large as the ports of a leg in a real back-end.
type Leg = [u64; 24];

impl PacketIo for Net {
    type Leg = Leg;
    fn attach(&mut self, _: u32, _: &mut Leg) -> bool {
        true
    }
    fn detach(&mut self, _: &mut Leg) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        // Legs of one millisecond lie far apart, as the sources of packets do.
        while self.next < self.legs {
            let Some(room) = batch.room() else { return true };
            let slot = self.next;
            self.next += 20;
            let header = rtp::Header {
                payload_type: self.incoming[1],
                marker: false,
                sequence: (self.now_ms / 20) as u16,
                timestamp: (self.now_ms / 20 * 160) as u32,
                ssrc: slot,
            };
            room[..PACKET].copy_from_slice(&self.incoming);
            room[..12].copy_from_slice(&rtp::write(&header));
            batch.push(Arrival { slot, rtcp: false, from: peer(slot), length: PACKET });
        }
        self.next = ((self.now_ms + 1) * 7 % 20) as u32;
        false
    }
    fn put(&mut self, _: u32, leg: &mut Leg, to: SocketAddr, packet: &[u8]) -> bool {
        let room = &mut self.ring[self.sent % RING];
        room[..PACKET].copy_from_slice(packet);
        room[PACKET..PACKET + 2].copy_from_slice(&to.port().to_be_bytes());
        leg[0] += leg[8] + leg[16];
        self.sent += 1;
        true
    }
    fn put_rtcp(&mut self, _: u32, _: &mut Leg, _: SocketAddr, _: bool, _: &[u8]) -> bool {
        true
    }
    fn lock(&mut self, _: &mut Leg, _: Option<SocketAddr>) {}
}

/// What the legs do.
#[derive(Clone, Copy)]
enum Calls {
    /// Two legs each, in these formats.
    Bridged(FormatId, FormatId),
    /// One leg each, that hears a prompt.
    Playing,
    /// The same, and both sides are recorded, mixed.
    Recorded,
}

/// Four seconds of one recording, as its file's thread would read them.
struct Tape {
    ring: Vec<i16>,
    at: usize,
}

impl AudioSink for Tape {
    fn write(&mut self, samples: &[i16]) -> usize {
        let rest = self.ring.len() - self.at;
        let (now, later) = samples.split_at(samples.len().min(rest));
        self.ring[self.at..self.at + now.len()].copy_from_slice(now);
        self.ring[..later.len()].copy_from_slice(later);
        self.at = (self.at + samples.len()) % self.ring.len();
        samples.len()
    }
}

/// Nanoseconds a packet that is put out.
fn cost(calls: Calls, legs: u32) -> f64 {
    let mut worker = Worker::new(Config::default());
    let mut net =
        Net { now_ms: 1000, legs, next: 0, incoming: [0x55; PACKET], ring: vec![[0; 256]; RING], sent: 0 };
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let formats = match calls {
        Calls::Bridged(a, b) => [a, b],
        Calls::Playing | Calls::Recorded => [FormatId::ULAW; 2],
    };
    let data: Vec<u8> = (0..160_000_u32).map(|n| (n * 7 + n / 160) as u8).collect();
    let clip =
        Arc::new(Clip { format: FormatId::ULAW, data: data.into(), loop_from: Some(0), packets: None });
    for slot in 0..legs {
        let mut plan = plan(slot, formats[slot as usize % 2]);
        // Both laws come under the payload type that was agreed for the leg's own.
        for entry in plan.rx.iter_mut().flatten() {
            *entry = base::RxPayload::Audio(0, formats[slot as usize % 2]);
        }
        let stream = StreamId::new(slot, 1);
        worker.input(
            Input::Open { stream, leg: [1; 24], plan: Box::new(plan) },
            at(1000),
            &mut net,
            &mut events,
        );
        let command = match calls {
            // Partners are born one after the other.
            Calls::Bridged(..) if slot % 2 == 1 => Command::Join { a: StreamId::new(slot - 1, 1), b: stream },
            Calls::Bridged(..) => continue,
            Calls::Playing | Calls::Recorded => {
                Command::Play { stream, play: PlayId(slot), clip: clip.clone(), offset: 0 }
            }
        };
        worker.input(Input::Command(command), at(1000), &mut net, &mut events);
        if let Calls::Recorded = calls {
            let mixed: Box<dyn AudioSink> =
                Box::new(Tape { ring: vec![0; 32_000], at: slot as usize * 160 % 32_000 });
            let sinks = Box::new(MonitorSinks { mixed: Some(mixed), ..MonitorSinks::default() });
            let settings = MonitorSettings::default();
            let monitor = Command::Monitor { stream, monitor: 1, format: FormatId::SLIN, settings, sinks };
            worker.input(Input::Command(monitor), at(1000), &mut net, &mut events);
        }
    }
    let mut run = |net: &mut Net, ms: u64| {
        for _ in 0..ms {
            net.now_ms += 1;
            worker.tick(at(net.now_ms), net, &mut events);
            events.clear();
        }
    };
    net.incoming[1] = 0;
    run(&mut net, WARM_MS);
    let before = net.sent;
    let best = quickest(ROUNDS, || run(&mut net, SECOND_MS));
    let sent = (net.sent - before) as f64 / f64::from(ROUNDS);
    assert!(sent > f64::from(legs) * 49.0, "{sent} packets of {legs} legs");
    best.as_nanos() as f64 / sent
}

fn main() {
    let (ulaw, alaw) = (FormatId::ULAW, FormatId::ALAW);
    for (name, calls) in [
        ("media worker relay", Calls::Bridged(ulaw, ulaw)),
        ("media worker relay alaw ulaw", Calls::Bridged(alaw, ulaw)),
        ("media worker playback", Calls::Playing),
        ("media worker recording", Calls::Recorded),
    ] {
        let points: Vec<(usize, f64)> = LEGS.iter().map(|&legs| (legs as usize, cost(calls, legs))).collect();
        let value = points.last().map_or(0.0, |point| point.1);
        Figure { name, value, unit: "ns a packet", baseline: None }.publish_with(&points);
    }
}
