//! From format to format, end to end: microseconds of one core for a second of sound of one stream, by how many streams
//! there are.
//!
//! `cargo bench -p media`: streams of real speech, all of them once a tick, so that states come from the cache as they do
//! in service. First the codecs as a worker calls them (`codec::Trial`), then workers whole: packets in, jitter buffer,
//! groups, packets out, on invented time and without sockets. CPU time of this thread, the best of several rounds that
//! take all numbers of streams in turn, so that a busy machine disturbs little.
//!
//! Compared with the same work one stream after the other, timed in the same run: Debian's libgsm and libspeex, and for
//! iLBC, whose reference is in no package, our own plain form of it while that is as quick as the reference was measured
//! to be (`gcc -O3 -march=native`, scaled by libgsm's encoder to this machine), else what the reference was measured at.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use base::{Command, FormatId, Instant, StreamId};
use codec::{Encoder, Level, Material, SpeexQuality, Trial, Work};
use media::{Arrival, Batch, Config, Input, Lanes, PacketIo, Worker, tick_step};
use oracle::{Figure, Library, Oracle, quickest};

use common::{peer, plan};

const ROUNDS: usize = 7;
/// Streams at once; the first is the one of the headline figures, the second shows what the caches make of many.
const STREAMS: [usize; 14] = [640, 2000, 320, 96, 33, 32, 17, 16, 12, 8, 4, 3, 2, 1];
/// Seconds of sound of all streams together that a round codes at least, and ticks that it has at least.
const SECONDS: f64 = 12.0;
const TICKS: usize = 4;
/// Seconds of sound of a round of the plain form.
const TWIN_SECONDS: f64 = 6.0;
/// What libgsm's encoder needs on the machine on which the reference of iLBC was measured, and what that needs there.
const GSM_ENCODE: f64 = 527.0;
const ILBC_ENCODE: [(FormatId, f64); 2] = [(FormatId::ILBC, 2157.0), (FormatId::ILBC30, 2465.0)];
/// The plain form counts as the reference while it is no slower than this many times.
const TWIN_MAX: f64 = 1.1;
/// Seconds of calls in a worker, once they are under way.
const CALL_MS: u64 = 1000;
const WARM_MS: u64 = 400;

/// A codec, and who codes it one stream after the other.
#[derive(Clone, Copy)]
struct Codec {
    name: &'static str,
    format: FormatId,
    quality: Option<SpeexQuality>,
    library: Option<(&'static Library, &'static str, [&'static str; 2])>,
}

const GSM: Codec = Codec {
    name: "gsm",
    format: FormatId::GSM,
    quality: None,
    library: Some((&oracle::GSM, "libgsm", ["encode", "decode"])),
};
const OTHERS: [Codec; 4] = [
    Codec { name: "ilbc", format: FormatId::ILBC, quality: None, library: None },
    Codec { name: "ilbc30", format: FormatId::ILBC30, quality: None, library: None },
    Codec {
        name: "speex q3",
        format: FormatId::SPEEX,
        quality: Some(SpeexQuality::Q3),
        library: Some((&oracle::SPEEX, "libspeex", ["encode-q3", "decode-q3-enhanced"])),
    },
    Codec {
        name: "speex q8",
        format: FormatId::SPEEX,
        quality: Some(SpeexQuality::Q8),
        library: Some((&oracle::SPEEX, "libspeex", ["encode-q8", "decode-q8-enhanced"])),
    },
];

fn per_second(took: Duration, seconds: f64) -> f64 {
    took.as_secs_f64() * 1e6 / seconds
}

/// What one stream after the other costs: the library, or our own plain form.
struct Plain<'m> {
    codec: Codec,
    oracle: Option<Oracle>,
    twins: [Trial<'m>; 2],
    input: [Vec<u8>; 2],
    encode: f64,
    decode: f64,
}

impl<'m> Plain<'m> {
    fn new(codec: Codec, material: &'m Material, speech: &[i16]) -> Self {
        let twins = [Work::Encode(codec.format), Work::Decode(codec.format)]
            .map(|work| Trial::new(work, 1, material).expect("work of the material's format"));
        let oracle = codec.library.and_then(|(library, ..)| Oracle::build(library));
        let linear = oracle::bytes(speech);
        let coded = match (&oracle, codec.library) {
            (Some(oracle), Some((.., [encode, _]))) => oracle.run(encode, &linear),
            _ => Vec::new(),
        };
        Self { codec, oracle, twins, input: [linear, coded], encode: f64::MAX, decode: f64::MAX }
    }
    fn round(&mut self, speech_seconds: f64) {
        let mut cost = [0.0; 2];
        for ((cost, trial), (mode, input)) in cost.iter_mut().zip(&mut self.twins).zip((0..).zip(&self.input))
        {
            *cost = match (&self.oracle, self.codec.library) {
                (Some(oracle), Some((.., modes))) => {
                    let (_, took): (_, Duration) = oracle.time(modes[mode], input, 1);
                    per_second(took, speech_seconds)
                }
                _ => {
                    let seconds = trial.seconds(1);
                    let ticks = (TWIN_SECONDS / seconds) as usize;
                    per_second(quickest(1, || trial.run(None, 1, ticks)), seconds * ticks as f64)
                }
            };
        }
        let [encode, decode] = cost;
        (self.encode, self.decode) = (self.encode.min(encode), self.decode.min(decode));
    }
    fn name(&self) -> String {
        match (&self.oracle, self.codec.library) {
            (Some(_), Some((_, name, _))) => name.into(),
            _ => format!("plain {}", self.codec.name),
        }
    }
    /// Our own form of iLBC stands for the reference while it is as quick as that; `speed` is what this machine needs of
    /// the time of the one on which the reference was measured.
    fn judged(mut self, speed: f64) -> Self {
        if let Some((_, published)) = ILBC_ENCODE.iter().find(|row| row.0 == self.codec.format) {
            let (name, share) = (self.codec.name, self.encode / (published * speed));
            println!(
                "{name}: the plain encoder needs {share:.2} of the reference ({:.0} us/s)",
                published * speed
            );
            if share > TWIN_MAX {
                println!(
                    "{name}: that is too slow to be compared with; the reference counts as it was published"
                );
                self.encode = published * speed;
            }
        }
        self
    }
}

/// One way between two codecs, and what it costs at each level with each number of streams.
struct Way<'m> {
    name: String,
    trial: Trial<'m>,
    best: Vec<(Level, Vec<(usize, f64)>)>,
}

impl<'m> Way<'m> {
    fn new(from: Codec, to: Codec, material: &'m Material) -> Self {
        let most = STREAMS.into_iter().max().unwrap_or(1);
        let work = Work::Transcode(from.format, to.format);
        let mut trial = Trial::new(work, most, material).expect("work of the material's format");
        if let Some(quality) = to.quality {
            trial = trial.with_encoders(|| Encoder::speex(quality));
        }
        let levels = Level::all_available().filter(|level| !level.is_portable());
        let points = STREAMS.map(|streams| (streams, f64::MAX)).to_vec();
        Self {
            name: format!("transcode {} {}", from.name, to.name),
            trial,
            best: levels.map(|level| (level, points.clone())).collect(),
        }
    }
    fn round(&mut self) {
        for (level, points) in &mut self.best {
            for (streams, best) in points {
                let second = self.trial.seconds(*streams);
                let ticks = ((SECONDS / second) as usize).max(TICKS);
                self.trial.run(Some(*level), *streams, 1);
                let took = quickest(1, || self.trial.run(Some(*level), *streams, ticks));
                *best = best.min(per_second(took, second * ticks as f64));
            }
        }
    }
    fn publish(&self, cost: f64, others: &str) {
        for (level, points) in &self.best {
            let [(_, value), (most, crowded), ..] = points[..] else { return };
            let name = format!("{} {level}", self.name);
            let baseline = Some((cost, others));
            Figure { name: &name, value, unit: "us/s", baseline }.publish_with(points);
            let name = format!("{name} {most} streams");
            let baseline = Some((value, "with 640 streams"));
            Figure { name: &name, value: crowded, unit: "us/s", baseline }.publish();
        }
    }
}

/// A network in which every leg hears the same speech, a frame each time its turn comes.
struct Net {
    now_ms: u64,
    looked_ms: u64,
    /// Payload type, milliseconds and payloads of the legs with an even and with an odd number.
    feeds: [(u8, u64, Vec<Vec<u8>>); 2],
    legs: u32,
    next: u32,
    sent: u64,
}

impl Net {
    /// The packet that is due for the leg between the last look and this one.
    fn due(&self, slot: u32) -> Option<(u64, &[u8], u8)> {
        let (payload_type, ms, payloads) = &self.feeds[slot as usize % 2];
        let phase = u64::from(slot) * 7;
        let number = (self.now_ms + phase) / ms;
        let is_new = number != (self.looked_ms + phase) / ms;
        let payload = &payloads[(number as usize + slot as usize * 67) % payloads.len()];
        is_new.then_some((number, payload, *payload_type))
    }
}

impl PacketIo for Net {
    type Leg = ();
    fn attach(&mut self, _: u32, (): &mut ()) -> bool {
        true
    }
    fn detach(&mut self, (): &mut ()) {}
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        while self.next < self.legs {
            let Some(room) = batch.room() else { return true };
            let slot = self.next;
            self.next += 1;
            let Some((number, payload, payload_type)) = self.due(slot) else { continue };
            let timestamp = (number * self.feeds[slot as usize % 2].1 * 8) as u32;
            let ssrc = 0x5000 + slot;
            let header =
                rtp::Header { payload_type, marker: false, sequence: number as u16, timestamp, ssrc };
            let header = rtp::write(&header);
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

/// So many calls between GSM and the other format, both ways, in one worker: microseconds a second of one call.
fn calls(count: u32, format: FormatId, speech: &[i16], level: Level) -> f64 {
    let feed = |format: FormatId| {
        let ms = u64::from(format.usual_ms());
        let mut encoder = Encoder::new(format);
        let frames = speech.chunks_exact(ms as usize * 8);
        let payloads = frames.map(|pcm| {
            let mut room = vec![0; format.packet_room(ms as u16)];
            let bytes = encoder.encode(pcm, &mut room);
            room.truncate(bytes);
            room
        });
        (format.usual_payload().expect("a payload type"), ms, payloads.collect())
    };
    let feeds = [feed(FormatId::GSM), feed(format)];
    let mut net = Net { now_ms: 1000, looked_ms: 1000, feeds, legs: 2 * count, next: 0, sent: 0 };
    let lanes = Lanes { level, ..Lanes::default() };
    let mut worker: Worker<()> = Worker::new(Config { lanes, ..Config::default() });
    let mut events = Vec::new();
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    for call in 0..count {
        let [a, b] = [2 * call, 2 * call + 1].map(|slot| StreamId::new(slot, 1));
        for (stream, format) in [(a, FormatId::GSM), (b, format)] {
            let plan = Box::new(plan(stream.slot, format));
            worker.input(Input::Open { stream, leg: (), plan }, at(net.now_ms), &mut net, &mut events);
        }
        worker.input(Input::Command(Command::Join { a, b }), at(net.now_ms), &mut net, &mut events);
    }
    let packets_a_second = 4 * 50 * u64::from(count);
    let step = tick_step(packets_a_second).as_millis() as u64;
    let mut run = |ms: u64| {
        let before = net.sent;
        for _ in 0..ms / step {
            net.now_ms += step;
            worker.tick(at(net.now_ms), &mut net, &mut events);
            events.clear();
        }
        net.sent - before
    };
    run(WARM_MS);
    let mut sent = 0;
    let took = quickest(3, || sent = run(CALL_MS));
    let wanted = u64::from(count) * (50 + 1000 / u64::from(format.usual_ms()));
    assert!(
        sent * 100 > wanted * 97,
        "{sent} packets of {wanted} were sent: this worker does not do its work"
    );
    per_second(took, f64::from(count) * CALL_MS as f64 / 1000.0)
}

fn main() {
    let speech = oracle::speech();
    let speech = &speech[..speech.len() / 2];
    let seconds = speech.len() as f64 / 8000.0;
    let material = [GSM].into_iter().chain(OTHERS).map(|codec| Material::new(codec.format, speech));
    let [gsm_material, materials @ ..] = &material.collect::<Vec<_>>()[..] else { return };
    let mut gsm = Plain::new(GSM, gsm_material, speech);
    let mut others: Vec<Plain<'_>> =
        OTHERS.iter().zip(materials).map(|(codec, material)| Plain::new(*codec, material, speech)).collect();
    let mut ways: Vec<(Way<'_>, Option<Way<'_>>)> = OTHERS
        .iter()
        .zip(materials)
        .map(|(codec, material)| {
            // The way back from Speex is measured at one quality, the one that is sent by default.
            let back = codec.quality != Some(SpeexQuality::Q8);
            (Way::new(GSM, *codec, gsm_material), back.then(|| Way::new(*codec, GSM, material)))
        })
        .collect();
    // `cargo bench -p media -- workers` is for profiles of them.
    let rounds = if std::env::args().any(|word| word == "workers") { 0 } else { ROUNDS };
    for _ in 0..rounds {
        gsm.round(seconds);
        others.iter_mut().for_each(|other| other.round(seconds));
        for (there, back) in &mut ways {
            there.round();
            back.iter_mut().for_each(Way::round);
        }
    }
    println!("{}: encode {:.0}, decode {:.0} us/s", gsm.name(), gsm.encode, gsm.decode);
    let speed = if gsm.oracle.is_some() { gsm.encode / GSM_ENCODE } else { 1.0 };
    let others: Vec<Plain<'_>> = others.into_iter().map(|other| other.judged(speed)).collect();
    for ((there, back), other) in ways.into_iter().zip(&others) {
        let names = format!("{} and {}", gsm.name(), other.name());
        there.publish(gsm.decode + other.encode, &names);
        if let Some(back) = back {
            back.publish(other.decode + gsm.encode, &names);
        }
    }
    // Workers code Speex at quality 3.
    for other in others.iter().take(3) {
        let both = gsm.decode + other.encode + other.decode + gsm.encode;
        let names = format!("codecs alone: {} and {}", gsm.name(), other.name());
        for count in [640, 2000] {
            let value = calls(count, other.codec.format, speech, Level::best());
            let name = format!("worker calls gsm {} {count}", other.codec.format);
            Figure { name: &name, value, unit: "us/s per call", baseline: Some((both, names.as_str())) }
                .publish();
        }
    }
}
