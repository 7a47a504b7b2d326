//! G.722 and G.726 in lanes: microseconds of one core for a second of audio of one stream, against spandsp in the same
//! run, by level and by how many streams are ready at once; LPC-10 and ADPCM in plain form beside them.
//!
//! Streams are coded in tick order, a packet of each in turn, so that states come from the cache as they do in a worker.

use codec::{adpcm, g722, g726, lpc10};
use lanes::Level;
use oracle::{Figure, Oracle, quickest};

const ROUNDS: u32 = 12;
const TICKS: usize = 60;
/// Streams of the headline figures: whole groups of any level.
const STREAMS: usize = 64;
const OCCUPANCIES: [usize; 9] = [1, 2, 3, 4, 8, 12, 16, 17, 640];
const SPANDSP: &str = "spandsp 0.0.6";

/// Microseconds a second of audio of one stream.
fn per_second(took: std::time::Duration, packets: usize, packets_a_second: f64) -> f64 {
    took.as_secs_f64() * 1e6 * packets_a_second / packets as f64
}

/// Speech of each stream, from another place each, by tick. At 16 kHz each sample comes twice: costs do not depend on it.
fn material(streams: usize, samples: usize) -> Vec<Vec<Vec<i16>>> {
    let speech = oracle::speech();
    let repeat = samples / 160;
    let packet = |at: usize| speech[at..at + 160].iter().flat_map(|&s| vec![s; repeat]).collect();
    let last = speech.len() - 160;
    (0..TICKS).map(|tick| (0..streams).map(|s| packet((s * 9973 + tick * 160) % last)).collect()).collect()
}

/// The library's time for the same work, one stream after another.
fn reference(mode: &str, input: &[u8], packet: usize) -> Option<f64> {
    let (_, took) = Oracle::build(&oracle::SPANDSP)?.time(mode, input, ROUNDS);
    Some(per_second(took, input.len() / packet, 50.0))
}

macro_rules! bench {
    ($codec:ident, $name:literal, $samples:literal, $bytes:literal, $encoder:expr, $decoder:expr) => {{
        let encoding = |level: Level, pcm: &[Vec<Vec<i16>>], rounds: u32| {
            let streams = pcm[0].len();
            let mut coded = vec![vec![[0u8; $bytes]; streams]; TICKS];
            let mut states = vec![$encoder; streams];
            let took = quickest(rounds, || {
                states.fill($encoder);
                for (pcm, coded) in pcm.iter().zip(&mut coded) {
                    let jobs = states.iter_mut().zip(pcm).zip(coded);
                    let mut jobs: Vec<_> =
                        jobs.map(|((state, pcm), out)| $codec::EncodeJob { state, pcm, out }).collect();
                    $codec::encode(level, &mut jobs);
                }
            });
            (per_second(took, TICKS * streams, 50.0), coded)
        };
        let decoding = |level: Level, coded: &[Vec<[u8; $bytes]>], rounds: u32| {
            let streams = coded[0].len();
            let mut linear = vec![[0i16; $samples]; streams];
            let mut states = vec![$decoder; streams];
            let took = quickest(rounds, || {
                states.fill($decoder);
                for coded in coded {
                    let jobs = states.iter_mut().zip(coded).zip(&mut linear);
                    let mut jobs: Vec<_> = jobs
                        .map(|((state, payload), pcm)| $codec::DecodeJob { state, payload, pcm })
                        .collect();
                    $codec::decode(level, &mut jobs);
                }
            });
            per_second(took, TICKS * streams, 50.0)
        };
        let pcm = material(STREAMS, $samples);
        let one_stream: Vec<i16> = pcm.iter().flat_map(|tick| tick[0].clone()).collect();
        let baseline =
            reference(concat!($name, "-encode"), &oracle::bytes(&one_stream).repeat(8), 2 * $samples);
        let mut packets = Vec::new();
        for level in Level::all_available() {
            let (value, coded) = encoding(level, &pcm, ROUNDS);
            packets = coded;
            let name = format!("codec {} encode {level}", $name);
            Figure { name: &name, value, unit: "us/s", baseline: baseline.map(|us| (us, SPANDSP)) }.publish();
        }
        let one_stream: Vec<u8> = packets.iter().flat_map(|tick| tick[0]).collect();
        let baseline = reference(concat!($name, "-decode"), &one_stream.repeat(8), $bytes);
        for level in Level::all_available() {
            let value = decoding(level, &packets, ROUNDS);
            let name = format!("codec {} decode {level}", $name);
            Figure { name: &name, value, unit: "us/s", baseline: baseline.map(|us| (us, SPANDSP)) }.publish();
        }
        println!("{}: streams ready    level      encode us/s  decode us/s", $name);
        for level in Level::all_available() {
            for streams in OCCUPANCIES {
                let (encode, coded) = encoding(level, &material(streams, $samples), ROUNDS / 3);
                let decode = decoding(level, &coded, ROUNDS / 3);
                println!("{streams:>19}    {:<9} {encode:>12.1} {decode:>12.1}", level.name());
            }
        }
    }};
}

fn plain() {
    let speech = oracle::speech();
    let frames = speech.as_chunks::<{ lpc10::FRAME_SAMPLES }>().0;
    let mut coded = vec![[0; lpc10::FRAME_BYTES]; frames.len()];
    let took = quickest(ROUNDS / 4, || {
        let mut encoder = lpc10::Encoder::default();
        for (frame, out) in frames.iter().zip(&mut coded) {
            encoder.encode(frame, out);
        }
    });
    let baseline = |mode: &str, input: &[u8]| -> Option<(f64, &str)> {
        let (_, took) = Oracle::build(&oracle::SPANDSP)?.time(mode, input, ROUNDS / 4);
        Some((per_second(took, frames.len(), 8000.0 / 180.0), SPANDSP))
    };
    let value = per_second(took, frames.len(), 8000.0 / 180.0);
    let other = baseline("lpc10-encode", &oracle::bytes(&speech));
    Figure { name: "codec lpc10 encode", value, unit: "us/s", baseline: other }.publish();
    let mut linear = [0; lpc10::FRAME_SAMPLES];
    let took = quickest(ROUNDS / 4, || {
        let mut decoder = lpc10::Decoder::default();
        for frame in &coded {
            decoder.decode(frame, &mut linear);
        }
    });
    let value = per_second(took, frames.len(), 8000.0 / 180.0);
    let other = baseline("lpc10-decode", coded.as_flattened());
    Figure { name: "codec lpc10 decode", value, unit: "us/s", baseline: other }.publish();

    let seconds = speech.len() as f64 / 8000.0;
    let mut coded = vec![0; speech.len() / 2];
    let took = quickest(ROUNDS, || {
        adpcm::Encoder::default().encode(&speech, &mut coded);
    });
    let value = took.as_secs_f64() * 1e6 / seconds;
    Figure { name: "codec adpcm encode", value, unit: "us/s", baseline: None }.publish();
    let mut linear = vec![0; speech.len()];
    let took = quickest(ROUNDS, || {
        adpcm::Decoder::default().decode(&coded, &mut linear);
    });
    let value = took.as_secs_f64() * 1e6 / seconds;
    Figure { name: "codec adpcm decode", value, unit: "us/s", baseline: None }.publish();
}

fn main() {
    bench!(g722, "g722", 320, 160, g722::Encoder::default(), g722::Decoder::default());
    let packing = g726::Packing::Rfc3551;
    bench!(g726, "g726", 160, 80, g726::Encoder::new(packing), g726::Decoder::new(packing));
    plain();
}
