//! What it costs that a worker measures where its time goes.
//!
//! `cargo bench -p io --bench stopwatch`: the same 1,000 relayed legs in memory, a packet each 20 ms, with the back-end under
//! the stopwatch and without, turn about; the quickest round of each counts. In memory a packet costs a tenth of what it costs
//! with its system calls, so the share that is asked of the stopwatch is of the cheapest way that packets really take.

#[path = "../../media/benches/common/mod.rs"]
mod phones;

use std::net::SocketAddr;
use std::time::Duration;

use base::{Command, Event, FormatId, Instant, StreamId};
use io::media::{Batch, Timed, thread_cpu};
use media::{Arrival, Config, Input, PacketIo, Worker};
use oracle::Figure;

use phones::{peer, plan};

const LEGS: u32 = 1000;
const ROUNDS: usize = 21;
const ROUND_MS: u64 = 500;
const PACKET: usize = 172;
/// What a relayed packet costs in all where it costs least: AF_XDP in a prototype without any of this, nanoseconds.
const CHEAPEST_NANOS: f64 = 1300.0;
/// The most that the stopwatch may add to that, percent.
const SHARE_MAX: f64 = 2.0;

struct Net {
    now_ms: u64,
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
        while self.next < LEGS {
            let Some(room) = batch.room() else { return true };
            let number = self.now_ms / 20;
            let header = rtp::Header {
                payload_type: 0,
                marker: false,
                sequence: number as u16,
                timestamp: (number * 160) as u32,
                ssrc: self.next,
            };
            room[..12].copy_from_slice(&rtp::write(&header));
            batch.push(Arrival { slot: self.next, rtcp: false, from: peer(self.next), length: PACKET });
            self.next += 20;
        }
        self.next = ((self.now_ms + 1) % 20) as u32;
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

/// A worker with its calls up, on some back-end.
struct Plant<P> {
    worker: Worker<()>,
    io: P,
    now_ms: u64,
    events: Vec<Event>,
}

impl<P: PacketIo<Leg = ()>> Plant<P> {
    fn new(mut io: P) -> Self {
        let (mut worker, mut events) = (Worker::new(Config::default()), Vec::with_capacity(4096));
        let now = Instant::from_nanos(1_000_000_000);
        for slot in 0..LEGS {
            let stream = StreamId::new(slot, 1);
            let plan = Box::new(plan(slot, FormatId::ULAW));
            worker.input(Input::Open { stream, leg: (), plan }, now, &mut io, &mut events);
            if slot % 2 == 1 {
                let join = Command::Join { a: StreamId::new(slot - 1, 1), b: stream };
                worker.input(Input::Command(join), now, &mut io, &mut events);
            }
        }
        Self { worker, io, now_ms: 1000, events }
    }
    /// One round; its processor time. `turn` runs a tick on the back-end.
    fn round(
        &mut self,
        turn: impl Fn(&mut P, &mut dyn FnMut(&mut P)),
        tell: impl Fn(&mut P, u64),
    ) -> Duration {
        let before = thread_cpu();
        for _ in 0..ROUND_MS {
            self.now_ms += 1;
            tell(&mut self.io, self.now_ms);
            let now = Instant::from_nanos(self.now_ms * 1_000_000);
            let (worker, events) = (&mut self.worker, &mut self.events);
            turn(&mut self.io, &mut |io| worker.tick(now, io, events));
            self.events.clear();
        }
        thread_cpu() - before
    }
}

fn main() {
    let net = || Net { now_ms: 1000, next: 0, sent: 0 };
    let mut plain = Plant::new(net());
    let mut timed = Plant::new(Timed::new(net()));
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        without = without.min(plain.round(|io, work| work(io), |io, ms| io.now_ms = ms));
        let turn = |io: &mut Timed<Net>, work: &mut dyn FnMut(&mut Timed<Net>)| io.turn(1, work);
        with = with.min(timed.round(turn, |io, ms| io.inner_mut().now_ms = ms));
    }
    let sent = plain.io.sent / ROUNDS as u64;
    assert!(sent > u64::from(LEGS) * ROUND_MS / 21, "{sent} packets a round");
    assert_eq!(plain.io.sent, timed.io.inner().sent);
    let nanos = |time: Duration| time.as_nanos() as f64 / sent as f64;
    let share = (nanos(with) - nanos(without)) / CHEAPEST_NANOS * 100.0;
    let baseline = Some((nanos(without), "the same without the stopwatch"));
    Figure { name: "media stopwatch", value: nanos(with), unit: "ns a packet", baseline }.publish();
    println!("{share:.2} % of the {CHEAPEST_NANOS} ns of a packet on the cheapest back-end");
    assert!(share < SHARE_MAX, "{share:.2} %");
}
