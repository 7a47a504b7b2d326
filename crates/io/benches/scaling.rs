//! What workers carry together: calls by the number of processors, one pinned worker on each.
//!
//! `cargo bench -p io --bench scaling`. Workers run on invented time over a network in memory, as fast as they can; so many
//! seconds of calls in a second are so many calls that they carry. There is no kernel in it and no signalling: this shows
//! what workers do to each other through caches, memory and the clock of the processor. They share nothing else.
//!
//! A processor of a machine that others share is fast in one second and slow in the next. So each round has every worker
//! alone first, one after the other, and then two, three and all of them together, until the last has done its work; what
//! they carry is compared with what the same ones have carried alone in that round, and the median round counts. Beside it
//! stands the same by the processor time of the threads.
#![allow(clippy::disallowed_types, reason = "rounds begin together; no packet passes a barrier")]

#[path = "../../media/benches/common/mod.rs"]
mod phones;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant as Wall};

use base::{Command, FormatId, Instant, StreamId};
use codec::Encoder;
use io::media::{allowed_processors, take_priority, thread_cpu};
use media::{Arrival, Batch, Config, Input, PacketIo, Worker, tick_step};
use oracle::Figure;

use phones::{peer, plan};

/// Rounds of each number of workers.
const ROUNDS: usize = 41;
/// Before the first one: jitter buffers settle, caches fill.
const WARM_MS: u64 = 400;
/// What is asked of so many workers, as a share of so many times one.
const EFFICIENCY: f64 = 0.9;
/// What is asked of two, as a multiple of one.
const TWO: f64 = 1.9;
/// Milliseconds in which every leg hears one packet.
const FRAME_MS: u64 = 20;

/// What each worker carries.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    formats: [FormatId; 2],
    calls: u32,
    /// Milliseconds of them in a round: long enough for both cores' clocks to be told apart from a wake-up, short enough that some
    /// rounds are undisturbed.
    ms: u64,
}

const KINDS: [Kind; 2] = [
    Kind { name: "scaling gsm ilbc", formats: [FormatId::GSM, FormatId::ILBC], calls: 640, ms: 120 },
    Kind { name: "scaling relay", formats: [FormatId::ULAW, FormatId::ULAW], calls: 1000, ms: 3000 },
];

/// A network in which every leg hears the same speech, a packet each time its millisecond comes.
struct Net {
    /// The millisecond that is heard, and the one that the tick runs up to.
    heard_ms: u64,
    now_ms: u64,
    /// Payload type and payloads of the legs with an even and with an odd number.
    feeds: [(u8, Vec<Vec<u8>>); 2],
    /// Legs by the millisecond of the frame in which they hear.
    legs: [Vec<u32>; FRAME_MS as usize],
    next: usize,
    sent: u64,
}

impl PacketIo for Net {
    type Leg = ();
    fn attach(&mut self, slot: u32, (): &mut ()) -> bool {
        self.legs[slot as usize % self.legs.len()].push(slot);
        true
    }
    fn detach(&mut self, (): &mut ()) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while self.heard_ms <= self.now_ms {
            let Some(room) = batch.room() else { return true };
            let Some(&slot) = self.legs[(self.heard_ms % FRAME_MS) as usize].get(self.next) else {
                (self.heard_ms, self.next) = (self.heard_ms + 1, 0);
                continue;
            };
            self.next += 1;
            let number = self.heard_ms / FRAME_MS;
            let (payload_type, payloads) = &self.feeds[slot as usize % 2];
            let payload = &payloads[(number as usize + slot as usize * 67) % payloads.len()];
            let header = rtp::Header {
                payload_type: *payload_type,
                marker: false,
                sequence: number as u16,
                timestamp: (number * FRAME_MS * 8) as u32,
                ssrc: 0x5000 + slot,
            };
            let header = rtp::write(&header);
            let length = header.len() + payload.len();
            room[..header.len()].copy_from_slice(&header);
            room[header.len()..length].copy_from_slice(payload);
            batch.push(Arrival { slot, rtcp: false, from: peer(slot), length });
        }
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

/// Speech as packets of this format.
fn feed(format: FormatId, speech: &[i16]) -> (u8, Vec<Vec<u8>>) {
    let mut encoder = Encoder::new(format);
    let payloads = speech.chunks_exact(FRAME_MS as usize * 8).map(|pcm| {
        let mut room = vec![0; format.packet_room(FRAME_MS as u16)];
        let bytes = encoder.encode(pcm, &mut room);
        room.truncate(bytes);
        room
    });
    (format.usual_payload().expect("a payload type"), payloads.collect())
}

/// A worker with its calls up.
struct Plant {
    worker: Worker<()>,
    net: Net,
    events: Vec<base::Event>,
    step_ms: u64,
    kind: Kind,
}

impl Plant {
    fn new(kind: Kind) -> Self {
        let speech = oracle::speech();
        let speech = &speech[..speech.len() / 2];
        let feeds = kind.formats.map(|format| feed(format, speech));
        let mut net = Net { heard_ms: 1000, now_ms: 1000, feeds, legs: Default::default(), next: 0, sent: 0 };
        let mut worker: Worker<()> = Worker::new(Config::default());
        let (mut events, now) = (Vec::new(), Instant::from_nanos(1_000_000_000));
        for call in 0..kind.calls {
            let [a, b] = [2 * call, 2 * call + 1].map(|slot| StreamId::new(slot, 1));
            for (stream, format) in [a, b].into_iter().zip(kind.formats) {
                let plan = Box::new(plan(stream.slot, format));
                worker.input(Input::Open { stream, leg: (), plan }, now, &mut net, &mut events);
            }
            worker.input(Input::Command(Command::Join { a, b }), now, &mut net, &mut events);
        }
        let packets_a_second = 4 * 50 * u64::from(kind.calls);
        let step_ms = tick_step(packets_a_second).as_millis() as u64;
        let mut plant = Self { worker, net, events, step_ms, kind };
        plant.run(WARM_MS);
        plant
    }
    fn run(&mut self, ms: u64) {
        for _ in 0..ms / self.step_ms {
            self.net.now_ms += self.step_ms;
            let now = Instant::from_nanos(self.net.now_ms * 1_000_000);
            self.worker.tick(now, &mut self.net, &mut self.events);
            self.events.clear();
        }
    }
    /// One round of work; its processor time.
    fn round(&mut self) -> Duration {
        let (ms, before, sent) = (self.kind.ms, thread_cpu(), self.net.sent);
        self.run(ms);
        let cpu = thread_cpu() - before;
        let (sent, wanted) = (self.net.sent - sent, u64::from(self.kind.calls) * 2 * ms / FRAME_MS);
        assert!(
            sent * 100 > wanted * 97,
            "{sent} packets of {wanted} were sent: this worker does not do its work"
        );
        cpu
    }
}

/// A thread that is pinned to a processor and has a plant.
struct Thread {
    orders: SyncSender<Arc<Barrier>>,
    done: Receiver<(Wall, Wall, Duration)>,
}

impl Thread {
    fn start(kind: Kind, processor: usize) -> Self {
        let (orders, begin) = sync_channel::<Arc<Barrier>>(1);
        let (tell, done) = sync_channel(1);
        std::thread::spawn(move || {
            // As the workers of the program have it; what is refused shows in the figures of a busy machine.
            take_priority(Some(processor), true).iter().for_each(|refused| println!("{refused}"));
            // Made here, so that its memory is near the processor.
            let mut plant = Plant::new(kind);
            while let Ok(barrier) = begin.recv() {
                barrier.wait();
                let begun = Wall::now();
                let cpu = plant.round();
                tell.send((begun, Wall::now(), cpu)).expect("somebody who asked");
            }
        });
        Self { orders, done }
    }
}

/// Calls that these threads carry together: by the wall clock, and by their processor time.
fn together(kind: Kind, threads: &[&Thread]) -> (f64, f64) {
    let barrier = Arc::new(Barrier::new(threads.len()));
    for thread in threads {
        thread.orders.send(barrier.clone()).expect("a thread that waits for orders");
    }
    let told: Vec<_> = threads.iter().map(|thread| thread.done.recv().expect("its round")).collect();
    let begun = told.iter().map(|one| one.0).min().expect("a worker");
    let ended = told.iter().map(|one| one.1).max().expect("a worker");
    let call_seconds = f64::from(kind.calls) * kind.ms as f64 / 1e3;
    let wall = call_seconds * threads.len() as f64 / (ended - begun).as_secs_f64();
    (wall, told.iter().map(|one| call_seconds / one.2.as_secs_f64()).sum())
}

fn measure(kind: Kind, processors: &[usize]) {
    let threads: Vec<Thread> = processors.iter().map(|&processor| Thread::start(kind, processor)).collect();
    // What so many workers carried, as a multiple of one of them in the same round; and what one carried at best.
    let mut times = vec![Vec::new(); threads.len()];
    let mut one = 0.0_f64;
    for number in 0..ROUNDS {
        let alone: Vec<_> = threads.iter().map(|thread| together(kind, &[thread])).collect();
        one = alone.iter().map(|alone| alone.0).fold(one, f64::max);
        for (count, times) in (1..).zip(&mut times) {
            // Who works goes round.
            let who = || (0..threads.len()).cycle().skip(number).take(count);
            let working: Vec<_> = who().filter_map(|index| threads.get(index)).collect();
            let (mut wall, mut cpu) =
                if count == 1 { alone[number % alone.len()] } else { together(kind, &working) };
            wall /= who().map(|index| alone[index].0).sum::<f64>() / count as f64;
            cpu /= who().map(|index| alone[index].1).sum::<f64>() / count as f64;
            times.push((wall, cpu));
        }
    }
    let mut points = Vec::new();
    for (count, times) in (1_usize..).zip(&times) {
        let wall = median(times.iter().map(|times| times.0));
        let cpu = median(times.iter().map(|times| times.1));
        let efficiency = wall / count as f64;
        let met = efficiency >= EFFICIENCY && (count != 2 || wall >= TWO);
        println!(
            "{}: {count} workers carry {wall:.2} times one, efficiency {efficiency:.3} {}; by processor time {cpu:.2}",
            kind.name,
            if met { "met" } else { "NOT met" },
        );
        points.push((count, one * wall));
    }
    let Some(&(_, value)) = points.last() else { return };
    Figure { name: kind.name, value, unit: "calls", baseline: Some((one, "one worker")) }
        .publish_with(&points);
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let processors = allowed_processors();
    for kind in KINDS {
        measure(kind, &processors);
    }
}
