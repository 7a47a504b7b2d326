//! GSM 06.10 in lanes: microseconds of one core for a second of audio of one stream, against libgsm in the same run, by level
//! and by how many streams are ready at once.
//!
//! Streams are coded in tick order, a frame of each in turn, so that states come from the cache as they do in a worker.

use codec::gsm::{DecodeJob, Decoder, EncodeJob, Encoder, FRAME_BYTES, FRAME_SAMPLES, decode, encode};
use lanes::Level;
use oracle::{Figure, Oracle, quickest};

const ROUNDS: u32 = 15;
const TICKS: usize = 100;
/// Ticks of 20 ms a second.
const TICKS_A_SECOND: f64 = 50.0;
/// Streams of the headline figures: whole groups of any level.
const STREAMS: usize = 64;
const OCCUPANCIES: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 640];

/// Speech of each stream, from another place each, by tick.
fn material(streams: usize) -> Vec<Vec<[i16; FRAME_SAMPLES]>> {
    let speech = oracle::speech();
    let frames = speech.as_chunks::<FRAME_SAMPLES>().0;
    (0..TICKS).map(|tick| (0..streams).map(|s| frames[(s * 67 + tick) % frames.len()]).collect()).collect()
}

/// Microseconds a second of audio of one stream, and the frames made in the last round.
fn encoding(
    level: Level,
    pcm: &[Vec<[i16; FRAME_SAMPLES]>],
    rounds: u32,
) -> (f64, Vec<Vec<[u8; FRAME_BYTES]>>) {
    let streams = pcm[0].len();
    let mut coded = vec![vec![[0; FRAME_BYTES]; streams]; TICKS];
    let mut states = vec![Encoder::new(); streams];
    let took = quickest(rounds, || {
        states.fill(Encoder::new());
        for (pcm, coded) in pcm.iter().zip(&mut coded) {
            let jobs = states.iter_mut().zip(pcm).zip(coded);
            let mut jobs: Vec<_> = jobs.map(|((state, pcm), out)| EncodeJob::new(state, pcm, out)).collect();
            encode(level, &mut jobs);
        }
    });
    (took.as_secs_f64() * 1e6 * TICKS_A_SECOND / (TICKS * streams) as f64, coded)
}

/// As [`encoding`].
fn decoding(level: Level, coded: &[Vec<[u8; FRAME_BYTES]>], rounds: u32) -> f64 {
    let streams = coded[0].len();
    let mut linear = vec![[0; FRAME_SAMPLES]; streams];
    let mut states = vec![Decoder::new(); streams];
    let took = quickest(rounds, || {
        states.fill(Decoder::new());
        for coded in coded {
            let jobs = states.iter_mut().zip(coded).zip(&mut linear);
            let mut jobs: Vec<_> =
                jobs.map(|((state, payload), pcm)| DecodeJob::new(state, payload, pcm)).collect();
            decode(level, &mut jobs);
        }
    });
    took.as_secs_f64() * 1e6 * TICKS_A_SECOND / (TICKS * streams) as f64
}

/// libgsm's time for the same work in one stream after another.
fn reference(mode: &str, input: &[u8]) -> Option<f64> {
    let library = Oracle::build(&oracle::GSM)?;
    let (_, took) = library.time(mode, input, ROUNDS);
    let frame = if mode == "encode" { 2 * FRAME_SAMPLES } else { FRAME_BYTES };
    Some(took.as_secs_f64() * 1e6 * TICKS_A_SECOND / (input.len() / frame) as f64)
}

fn main() {
    let pcm = material(STREAMS);
    let speech = oracle::bytes(&oracle::speech());
    let baseline = reference("encode", &speech);
    let mut frames = Vec::new();
    for level in Level::all_available() {
        let (value, coded) = encoding(level, &pcm, ROUNDS);
        frames = coded;
        let name = format!("codec gsm encode {level}");
        Figure { name: &name, value, unit: "us/s", baseline: baseline.map(|us| (us, "libgsm 1.0.22")) }
            .publish();
    }
    let one_stream: Vec<u8> = frames.iter().flat_map(|tick| tick[0]).collect();
    let baseline = reference("decode", &one_stream);
    for level in Level::all_available() {
        let value = decoding(level, &frames, ROUNDS);
        let name = format!("codec gsm decode {level}");
        Figure { name: &name, value, unit: "us/s", baseline: baseline.map(|us| (us, "libgsm 1.0.22")) }
            .publish();
    }
    println!("streams ready    level      encode us/s  decode us/s");
    for level in Level::all_available() {
        for streams in OCCUPANCIES {
            let (encode, coded) = encoding(level, &material(streams), ROUNDS / 3);
            let decode = decoding(level, &coded, ROUNDS / 3);
            println!("{streams:>13}    {:<9} {encode:>12.1} {decode:>12.1}", level.name());
        }
    }
}
