//! Codecs in lanes: microseconds of one core for a second of sound of one stream, against Debian's library for the same
//! codec in the same run, by level and by how many streams are ready at once.
//!
//! `cargo bench -p codec --bench lanes`: real speech, all streams once a tick, CPU time of this thread. The library and
//! every number of streams take rounds in turn and the best of each counts, so that a busy machine disturbs little and
//! disturbs all alike. iLBC has benches of its own, in its crate.

use std::time::Duration;

use base::FormatId;
use codec::{Encoder, Level, Material, SpeexQuality, Trial, Work};
use oracle::{Figure, Library, Oracle, quickest};

const ROUNDS: usize = 10;
/// Streams at once. The first is the one of the headline figures: whole groups of any level.
const STREAMS: [usize; 13] = [64, 640, 32, 24, 17, 16, 12, 8, 6, 4, 3, 2, 1];
/// Seconds of sound that a round codes at least, all streams together, and ticks that it has at least.
const SECONDS: f64 = 8.0;
const TICKS: usize = 3;

/// A codec, and the library that has it too.
struct Codec {
    name: &'static str,
    encoder: fn() -> Encoder,
    library: &'static Library,
    other: &'static str,
    modes: [&'static str; 2],
}

const CODECS: [Codec; 5] = [
    Codec {
        name: "gsm",
        encoder: || Encoder::new(FormatId::GSM),
        library: &oracle::GSM,
        other: "libgsm 1.0.22",
        modes: ["encode", "decode"],
    },
    Codec {
        name: "g722",
        encoder: || Encoder::new(FormatId::G722),
        library: &oracle::SPANDSP,
        other: "spandsp 0.0.6",
        modes: ["g722-encode", "g722-decode"],
    },
    Codec {
        name: "g726",
        encoder: || Encoder::new(FormatId::G726),
        library: &oracle::SPANDSP,
        other: "spandsp 0.0.6",
        modes: ["g726-encode", "g726-decode"],
    },
    Codec {
        name: "speex q3",
        encoder: || Encoder::speex(SpeexQuality::Q3),
        library: &oracle::SPEEX,
        other: "libspeex 1.2.1",
        modes: ["encode-q3", "decode-q3-enhanced"],
    },
    Codec {
        name: "speex q8",
        encoder: || Encoder::speex(SpeexQuality::Q8),
        library: &oracle::SPEEX,
        other: "libspeex 1.2.1",
        modes: ["encode-q8", "decode-q8-enhanced"],
    },
];

/// One way to run a step: lanes of a level, or the plain form.
struct Way {
    level: Option<Level>,
    points: Vec<(usize, f64)>,
}

fn per_second(took: Duration, seconds: f64) -> f64 {
    took.as_secs_f64() * 1e6 / seconds
}

/// Encoding or decoding of one codec, every way.
fn measure(codec: &Codec, step: &str, mode: &str, work: Work, material: &Material, input: &[u8]) {
    let oracle = Oracle::build(codec.library);
    let most = STREAMS.into_iter().max().unwrap_or(1);
    let trial = Trial::new(work, most, material).expect("work of the material's format");
    let mut trial = trial.with_encoders(codec.encoder);
    let lanes = |level: Level| Way {
        level: Some(level),
        points: STREAMS.map(|streams| (streams, f64::MAX)).to_vec(),
    };
    let mut ways: Vec<Way> = Level::all_available().map(lanes).collect();
    ways.push(Way { level: None, points: vec![(64, f64::MAX)] });
    let mut library = f64::MAX;
    for _ in 0..ROUNDS {
        if let Some(oracle) = &oracle {
            let (_, took) = oracle.time(mode, input, 1);
            library = library.min(per_second(took, material.seconds()));
        }
        for Way { level, points } in &mut ways {
            for (streams, best) in points {
                let second = trial.seconds(*streams);
                let ticks = ((SECONDS / second) as usize).max(TICKS);
                trial.run(*level, *streams, 1);
                let took = quickest(1, || trial.run(*level, *streams, ticks));
                *best = best.min(per_second(took, second * ticks as f64));
            }
        }
    }
    let baseline = oracle.is_some().then_some((library, codec.other));
    for Way { level, points } in &ways {
        let [(_, value), ..] = points[..] else { continue };
        let way = level.map_or("plain", Level::name);
        let name = format!("codec {} {step} {way}", codec.name);
        Figure { name: &name, value, unit: "us/s", baseline }.publish_with(points);
    }
}

fn main() {
    let speech = oracle::speech();
    // A third of it is enough, and costs the same.
    let speech = &speech[..speech.len() / 3];
    for codec in &CODECS {
        let encoder = (codec.encoder)();
        let format = encoder.format();
        let material = Material::coded_by(encoder, speech);
        let linear = oracle::bytes(material.linear());
        let [encode, decode] = codec.modes;
        measure(codec, "encode", encode, Work::Encode(format), &material, &linear);
        measure(codec, "decode", decode, Work::Decode(format), &material, material.coded());
    }
}
