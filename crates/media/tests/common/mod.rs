//! An invented network and an invented clock around one worker.
#![allow(dead_code)] // each test binary uses its part

pub mod forgery;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::{
    Clip, Command, Direction, DtmfMode, Event, FormatId, Instant, Latch, MAX_RX_PAYLOADS, Plan, RxPayload,
    SrtpKeys, SrtpSecret, SrtpSuite, StreamId,
};
use media::{Batch, Config, Input, PacketIo, Phase, RelayPlan, Relayed, Worker};
use rtp::Header;

/// Payload type of telephone-events in these tests.
pub const EVENT: u8 = 101;

/// One packet that a stream sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub port: u16,
    pub to: SocketAddr,
    pub rtcp: bool,
    pub at_ms: u64,
    pub bytes: Vec<u8>,
}

impl Sent {
    pub fn header(&self) -> Header {
        rtp::parse(&self.bytes).unwrap().0
    }
    pub fn payload(&self) -> &[u8] {
        &self.bytes[rtp::parse(&self.bytes).unwrap().1]
    }
}

/// A network where every stream has a port and packets arrive when the test says so.
#[derive(Default)]
pub struct Net {
    pub now_ms: u64,
    slots: BTreeMap<u16, u32>,
    inbox: VecDeque<(u16, bool, SocketAddr, Vec<u8>)>,
    pub sent: Vec<Sent>,
    /// What the worker asked the sockets to let in.
    pub locked: BTreeMap<u16, Option<SocketAddr>>,
    pub detached: Vec<u16>,
    /// Legs that were dropped.
    pub closed: Rc<RefCell<Vec<u16>>>,
    /// Phases that the worker has been in, and the one it is in.
    pub phases: [bool; Phase::ALL.len()],
    pub phase: Option<Phase>,
    /// Bridges may be relayed below the worker.
    pub relays: bool,
    /// Plans of what is, by the port that it comes to, with the port that it leaves by.
    pub below: BTreeMap<u16, (RelayPlan, Relayed, u16)>,
    /// Packets that were.
    pub carried: u64,
}

#[derive(Debug)]
pub struct Leg(pub u16, Rc<RefCell<Vec<u16>>>);

impl Drop for Leg {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

impl PacketIo for Net {
    type Leg = Leg;
    fn attach(&mut self, slot: u32, leg: &mut Leg) -> bool {
        self.slots.insert(leg.0, slot);
        true
    }
    fn detach(&mut self, leg: &mut Leg) {
        self.slots.remove(&leg.0);
        self.detached.push(leg.0);
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while let Some((port, rtcp, from, bytes)) = self.inbox.front_mut() {
            let at = Instant::from_nanos(self.now_ms * 1_000_000);
            if let Some((plan, relayed, out)) = self.below.get_mut(port)
                && !*rtcp
                && plan.from == *from
                && plan.carry(relayed, bytes, at)
            {
                let (to, bytes) = (plan.to, std::mem::take(bytes));
                self.sent.push(Sent { port: *out, to, rtcp: false, at_ms: self.now_ms, bytes });
                self.carried += 1;
                self.inbox.pop_front();
                continue;
            }
            let slot = self.slots.get(port);
            if slot.is_some_and(|slot| !batch.copy(*slot, *rtcp, *from, bytes)) {
                return true;
            }
            self.inbox.pop_front();
        }
        false
    }
    fn put(&mut self, _: u32, leg: &mut Leg, to: SocketAddr, packet: &[u8]) -> bool {
        let bytes = packet.to_vec();
        self.sent.push(Sent { port: leg.0, to, rtcp: false, at_ms: self.now_ms, bytes });
        true
    }
    fn put_rtcp(&mut self, _: u32, leg: &mut Leg, to: SocketAddr, _: bool, packet: &[u8]) -> bool {
        let bytes = packet.to_vec();
        self.sent.push(Sent { port: leg.0, to, rtcp: true, at_ms: self.now_ms, bytes });
        true
    }
    fn relay(&mut self, from: &mut Leg, to: &mut Leg, plan: &RelayPlan) -> bool {
        if self.relays {
            let before = self.below.insert(from.0, (*plan, plan.begin(), to.0));
            assert!(before.is_none(), "a plan ends before another one begins");
        }
        self.relays
    }
    fn relayed(&mut self, leg: &mut Leg) -> Option<Relayed> {
        self.below.get(&leg.0).map(|(_, relayed, _)| *relayed)
    }
    fn unrelay(&mut self, leg: &mut Leg) -> Option<Relayed> {
        self.below.remove(&leg.0).map(|(_, relayed, _)| relayed)
    }
    fn phase(&mut self, phase: Phase) {
        self.phases[phase as usize] = true;
        self.phase = Some(phase);
    }
    fn seals(&mut self, _: bool) {
        self.phases[Phase::Seal as usize] = true;
    }
    fn lock(&mut self, leg: &mut Leg, source: Option<SocketAddr>) {
        self.locked.insert(leg.0, source);
    }
}

/// One worker on invented time.
pub struct Plant {
    pub worker: Worker<Leg>,
    pub net: Net,
    pub events: Vec<Event>,
    next_slot: u32,
}

impl Plant {
    pub fn new() -> Self {
        let net = Net { now_ms: 1000, ..Net::default() };
        Self { worker: Worker::new(Config::default()), net, events: Vec::new(), next_slot: 0 }
    }
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.net.now_ms * 1_000_000)
    }
    pub fn input(&mut self, input: Input<Leg>) {
        let now = self.now();
        self.worker.input(input, now, &mut self.net, &mut self.events);
    }
    pub fn command(&mut self, command: Command) {
        self.input(Input::Command(command));
    }
    fn next_id(&mut self) -> StreamId {
        let stream = StreamId::new(self.next_slot, 1);
        self.next_slot += 1;
        stream
    }
    /// Opens a stream; its port is 2 × slot + 10,000.
    pub fn open(&mut self, plan: Plan) -> StreamId {
        let stream = self.next_id();
        self.input(Input::Open {
            stream,
            leg: Leg(port(stream), self.net.closed.clone()),
            plan: Box::new(plan),
        });
        stream
    }
    pub fn open_internal(&mut self, plan: Plan) -> StreamId {
        let stream = self.next_id();
        self.input(Input::OpenInternal { stream, plan: Box::new(plan) });
        stream
    }
    /// Lets `ms` milliseconds pass in ticks of one.
    pub fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.net.now_ms += 1;
            let now = self.now();
            self.worker.tick(now, &mut self.net, &mut self.events);
        }
    }
    /// A datagram on the stream's RTP port, seen at the next tick.
    pub fn datagram(&mut self, stream: StreamId, from: SocketAddr, bytes: Vec<u8>) {
        self.net.inbox.push_back((port(stream), false, from, bytes));
    }
    pub fn rtcp(&mut self, stream: StreamId, from: SocketAddr, bytes: Vec<u8>) {
        self.net.inbox.push_back((port(stream), true, from, bytes));
    }
    /// RTP that the stream sent, in order.
    pub fn sent_by(&self, stream: StreamId) -> Vec<Sent> {
        self.net.sent.iter().filter(|sent| !sent.rtcp && sent.port == port(stream)).cloned().collect()
    }
    /// The packet with this number that the stream sent, counted from 0.
    pub fn sent_by_from(&self, stream: StreamId, number: usize) -> Option<&Sent> {
        self.net.sent.iter().filter(|sent| !sent.rtcp && sent.port == port(stream)).nth(number)
    }
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

pub fn port(stream: StreamId) -> u16 {
    10_000 + 2 * stream.slot as u16
}

/// The phone at the other end of stream number `slot`.
pub fn phone(stream: StreamId) -> SocketAddr {
    peer(stream.slot)
}
pub fn peer(number: u32) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + (number % 200) as u8], 4000 + (number / 200) as u16 * 2))
}

/// A plan for peer `number` that sends and receives `format` under `payload`, with RFC 4733.
pub fn plan(number: u32, format: FormatId, payload: u8) -> Plan {
    let mut rx = [None; MAX_RX_PAYLOADS];
    rx[0] = Some(RxPayload::Audio(payload, format));
    rx[1] = Some(RxPayload::Event(EVENT, 8000));
    Plan {
        remote: Some(peer(number)),
        remote_rtcp: None,
        latch: Latch::Strict,
        relearn: false,
        format,
        payload,
        ptime_ms: 20,
        wishes: base::Wishes::default(),
        rx,
        dtmf: DtmfMode::Rfc4733 { payload: EVENT, clock: 8000 },
        direction: Direction::SendRecv,
        ssrc: 0x1000 + number,
        first_sequence: 65_500,
        first_timestamp: u32::MAX - 1000,
        jitter_max_ms: 200,
        rtcp_interval_ms: 0,
        rtp_timeout_ms: 0,
        keepalive_ms: 0,
        marking: base::Marking::default(),
        keys: None,
        picture: base::PictureRequest::default(),
    }
}

/// What stream `number` is sealed with, from its side.
pub fn keys(number: u32) -> Box<SrtpKeys> {
    keys_of(SrtpSuite::AesCm128Sha1Tag80, number)
}
/// The same with another suite.
pub fn keys_of(suite: SrtpSuite, number: u32) -> Box<SrtpKeys> {
    let secret = |byte: u32| {
        let bytes: Vec<u8> = (0..suite.secret_bytes()).map(|at| (at as u32 * 7 + byte) as u8).collect();
        SrtpSecret::new(suite, &bytes).unwrap()
    };
    let (send, receive) = (secret(2 * number), secret(2 * number + 1));
    Box::new(SrtpKeys { suite, send, receive, replay_protection: true })
}
/// The other end of a sealed stream.
pub fn far_end(keys: &SrtpKeys) -> srtp::Session {
    let (send, receive) = (keys.receive.clone(), keys.send.clone());
    srtp::Session::new(&SrtpKeys { send, receive, ..keys.clone() }).unwrap()
}
pub fn sealed(session: &mut srtp::Session, packet: &[u8]) -> Vec<u8> {
    let mut bytes = [packet, &[0; srtp::RTP_TRAILER_MAX]].concat();
    let length = session.seal_rtp(&mut bytes, packet.len()).unwrap();
    bytes.truncate(length);
    bytes
}
pub fn opened(session: &mut srtp::Session, packet: &Sent) -> Sent {
    let mut bytes = packet.bytes.clone();
    let length = if packet.rtcp { session.open_rtcp(&mut bytes) } else { session.open_rtp(&mut bytes) };
    bytes.truncate(length.unwrap());
    Sent { bytes, ..packet.clone() }
}

/// A phone that talks: numbers its packets.
pub struct Phone {
    pub stream: StreamId,
    pub from: SocketAddr,
    pub payload: u8,
    pub units: u32,
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
}

impl Phone {
    pub fn new(stream: StreamId, payload: u8) -> Self {
        let seed = stream.slot;
        Self {
            stream,
            from: phone(stream),
            payload,
            units: 160,
            sequence: 65_000_u16.wrapping_add(seed as u16),
            timestamp: 77_000 * (seed + 1),
            ssrc: 0xabc0 + seed,
        }
    }
    pub fn say(&mut self, plant: &mut Plant, audio: &[u8]) {
        let bytes = self.packet(audio);
        plant.datagram(self.stream, self.from, bytes);
    }
    pub fn packet(&mut self, audio: &[u8]) -> Vec<u8> {
        let header = Header {
            payload_type: self.payload,
            marker: false,
            sequence: self.sequence,
            timestamp: self.timestamp,
            ssrc: self.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(self.units);
        [&rtp::write(&header)[..], audio].concat()
    }
    /// One packet of an event that began at the phone's present timestamp.
    pub fn event(&mut self, plant: &mut Plant, event: u8, end: bool, duration: u16) {
        let header = Header {
            payload_type: EVENT,
            marker: false,
            sequence: self.sequence,
            timestamp: self.timestamp,
            ssrc: self.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let payload = rtp::EventPayload { event, end, volume: 10, duration }.write();
        plant.datagram(self.stream, self.from, [&rtp::write(&header)[..], &payload].concat());
    }
}

/// Every packet follows the one before: sequence by one, timestamp by `units` or, after a marker, by at least that.
pub fn assert_continuous(sent: &[Sent], units: u32) {
    for pair in sent.windows(2) {
        let (before, after) = (pair[0].header(), pair[1].header());
        assert_eq!(after.ssrc, before.ssrc);
        assert_eq!(after.sequence, before.sequence.wrapping_add(1), "{before:?} {after:?}");
        let step = after.timestamp.wrapping_sub(before.timestamp);
        if after.marker {
            assert!(step >= units && step < 1 << 24, "{before:?} {after:?}");
        } else {
            assert_eq!(step, units, "{before:?} {after:?}");
        }
    }
}

pub fn clip(format: FormatId, data: Vec<u8>) -> Arc<Clip> {
    Arc::new(Clip { format, data: data.into(), loop_from: None, packets: None })
}

/// A sine of `hertz` in `format`, `ms` long, as a phone would send it (network order).
pub fn tone(format: FormatId, hertz: f64, ms: usize) -> Vec<u8> {
    let rate = format.rate().0 as usize;
    let linear: Vec<i16> = (0..rate * ms / 1000)
        .map(|n| ((n as f64 * hertz * std::f64::consts::TAU / rate as f64).sin() * 8000.0) as i16)
        .collect();
    let mut coded = vec![0; format.bytes_in(ms as u16)];
    codec::Encoder::new(format).encode(&linear, &mut coded);
    if format.is_linear() {
        codec::swap_bytes(&mut coded);
    }
    coded
}

/// The share of the energy of `linear` that lies at `hertz`, 0 to 1.
pub fn purity(linear: &[i16], rate: u32, hertz: f64) -> f64 {
    let (mut re, mut im, mut energy) = (0.0, 0.0, 0.0);
    for (n, &sample) in linear.iter().enumerate() {
        let phase = n as f64 * hertz * std::f64::consts::TAU / f64::from(rate);
        re += f64::from(sample) * phase.cos();
        im += f64::from(sample) * phase.sin();
        energy += f64::from(sample) * f64::from(sample);
    }
    if energy == 0.0 { 0.0 } else { 2.0 * (re * re + im * im) / (energy * linear.len() as f64) }
}

/// What a phone of `format` hears of these packets.
pub fn decode(format: FormatId, sent: &[Sent]) -> Vec<i16> {
    let mut decoder = codec::Decoder::new(format);
    let mut heard = Vec::new();
    for packet in sent {
        let mut coded = packet.payload().to_vec();
        if format.is_linear() {
            codec::swap_bytes(&mut coded);
        }
        let mut linear = vec![0; 6000];
        let count = decoder.decode(&coded, &mut linear);
        heard.extend_from_slice(&linear[..count]);
    }
    heard
}

/// Panics that a test injects are not printed; all others are.
pub fn quiet_faults() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|text| text.contains("injected")) {
                print(info);
            }
        }));
    });
}
