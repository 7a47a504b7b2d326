//! What SRTP adds to a bridged call: the worker's CPU time with it on both legs, on one, and on none, in the same run.
//!
//! `cargo bench -p media --bench sealed`: packets of 20 ms of G.711 both ways, in memory, sealed beforehand by the phones.
//! Microseconds of a core for each second of a call, of which 100 are 0.01 % of a core; what is compared with is the bridge
//! without SRTP. A million forged packets besides: what one costs, and that all of them change nothing.

mod common;
#[path = "../tests/common/mod.rs"]
mod plant;

use std::net::SocketAddr;

use base::{Command, Event, FormatId, Instant, SrtpKeys, SrtpSecret, SrtpSuite, StreamId};
use media::{Arrival, Batch, Config, Input, PacketIo, Worker};
use oracle::{Figure, quickest};
use srtp::{RTP_TRAILER_MAX, Session};

use common::{peer, plan};

/// Legs, two a call: more than fit the nearest caches with their keys.
const LEGS: u32 = 400;
/// Bytes of a packet without its tag.
const PACKET: usize = 172;
const WARM_MS: u64 = 200;
const SECOND_MS: u64 = 1000;
const ROUNDS: u32 = 5;
const FORGED: u32 = 1_000_000;
/// Packets of each leg in all.
const PACKETS: u64 = (WARM_MS + ROUNDS as u64 * SECOND_MS) / 20 + 1;

type Buffer = [u8; PACKET + RTP_TRAILER_MAX];

/// A network in which every leg says a packet each 20 ms that was made before.
struct Net {
    now_ms: u64,
    next: u32,
    said: Vec<Vec<Buffer>>,
    lengths: Vec<usize>,
    sent: u64,
}

impl PacketIo for Net {
    type Leg = u16;
    fn attach(&mut self, _: u32, _: &mut u16) -> bool {
        true
    }
    fn detach(&mut self, _: &mut u16) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while self.next < LEGS {
            let Some(room) = batch.room() else { return true };
            let (slot, at) = (self.next, (self.now_ms / 20) as usize);
            self.next += 20;
            let (Some(said), Some(length)) =
                (self.said[slot as usize].get(at), self.lengths.get(slot as usize))
            else {
                return false;
            };
            room[..*length].copy_from_slice(&said[..*length]);
            batch.push(Arrival { slot, rtcp: false, from: peer(slot), length: *length });
        }
        self.next = ((self.now_ms + 1) % 20) as u32;
        false
    }
    fn put(&mut self, _: u32, _: &mut u16, _: SocketAddr, packet: &[u8]) -> bool {
        self.sent += u64::from(packet.len() >= PACKET);
        true
    }
    fn put_rtcp(&mut self, _: u32, _: &mut u16, _: SocketAddr, _: bool, _: &[u8]) -> bool {
        true
    }
    fn lock(&mut self, _: &mut u16, _: Option<SocketAddr>) {}
}

fn keys(suite: SrtpSuite, leg: u32) -> SrtpKeys {
    let secret = |byte| SrtpSecret::new(suite, &vec![byte; suite.secret_bytes()]).expect("its length");
    let (send, receive) = (secret(leg as u8), secret(leg as u8 ^ 0x80));
    SrtpKeys { suite, send, receive, replay_protection: true }
}

/// What the phone of a leg says.
fn said(slot: u32, keys: Option<&SrtpKeys>) -> (Vec<Buffer>, usize) {
    let mut phone = keys.map(|keys| {
        let (send, receive) = (keys.receive.clone(), keys.send.clone());
        Session::new(&SrtpKeys { send, receive, ..keys.clone() }).expect("keys of the suite")
    });
    let mut length = PACKET;
    let one = |at: u64| {
        let mut packet = [0x55; PACKET + RTP_TRAILER_MAX];
        let (sequence, timestamp) = (at as u16, at as u32 * 160);
        let header = rtp::Header { payload_type: 0, marker: false, sequence, timestamp, ssrc: slot };
        packet[..12].copy_from_slice(&rtp::write(&header));
        if let Some(phone) = &mut phone {
            length = phone.seal_rtp(&mut packet, PACKET).expect("a packet");
        }
        packet
    };
    let packets = (0..PACKETS).map(one).collect();
    (packets, length)
}

/// Microseconds of a core that a second of a call takes when its legs have these suites.
fn cost(suites: [Option<SrtpSuite>; 2]) -> f64 {
    let mut worker = Worker::new(Config::default());
    let mut net = Net { now_ms: 0, next: 0, said: Vec::new(), lengths: Vec::new(), sent: 0 };
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let at = |ms: u64| Instant::from_nanos((ms + 1000) * 1_000_000);
    for slot in 0..LEGS {
        let keys = suites[slot as usize % 2].map(|suite| keys(suite, slot));
        let (packets, length) = said(slot, keys.as_ref());
        net.said.push(packets);
        net.lengths.push(length);
        let mut plan = plan(slot, FormatId::ULAW);
        plan.keys = keys.map(Box::new);
        let stream = StreamId::new(slot, 1);
        worker.input(Input::Open { stream, leg: 0, plan: Box::new(plan) }, at(0), &mut net, &mut events);
        if slot % 2 == 1 {
            let join = Command::Join { a: StreamId::new(slot - 1, 1), b: stream };
            worker.input(Input::Command(join), at(0), &mut net, &mut events);
        }
    }
    let mut run = |net: &mut Net, ms: u64| {
        for _ in 0..ms {
            net.now_ms += 1;
            worker.tick(at(net.now_ms), net, &mut events);
            events.clear();
        }
    };
    run(&mut net, WARM_MS);
    let before = net.sent;
    let best = quickest(ROUNDS, || run(&mut net, SECOND_MS));
    let sent = (net.sent - before) / u64::from(ROUNDS);
    assert!(sent > u64::from(LEGS) * 49, "{sent} packets of {LEGS} legs");
    best.as_secs_f64() * 1e6 / f64::from(LEGS / 2)
}

fn main() {
    let (cm, gcm) = (SrtpSuite::AesCm128Sha1Tag80, SrtpSuite::AesGcm256);
    let plain = cost([None, None]);
    for (name, suites) in [
        ("media srtp bridge one leg", [Some(cm), None]),
        ("media srtp bridge both legs", [Some(cm), Some(cm)]),
        ("media srtp bridge both legs gcm", [Some(gcm), Some(gcm)]),
    ] {
        let value = cost(suites);
        let baseline = Some((plain, "the same without SRTP"));
        Figure { name, value, unit: "us/s a call", baseline }.publish();
    }
    let value = quickest(1, || plant::forgery::withstand(FORGED)).as_secs_f64() * 1e6 / f64::from(FORGED);
    Figure { name: "media srtp forged packet", value, unit: "us", baseline: None }.publish();
}
