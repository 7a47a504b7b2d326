//! Speex in lanes: microseconds of one core for a second of audio of one stream, against libspeex in the same run, by
//! level and by how many streams are ready at once.
//!
//! Streams are coded in tick order, a frame of each in turn, so that states come from the cache as they do in a worker.

use lanes::Level;
use oracle::{Figure, Oracle, quickest};
use speex::{BYTES_MAX, DecodeJob, Decoder, EncodeJob, Encoder, FRAME, Quality, decode, encode};

const ROUNDS: u32 = 25;
const TICKS: usize = 50;
/// Ticks of 20 ms a second.
const TICKS_A_SECOND: f64 = 50.0;
/// Streams of the headline figures: whole groups of any level.
const STREAMS: usize = 32;
const OCCUPANCIES: [usize; 11] = [1, 2, 3, 4, 6, 8, 9, 12, 16, 24, 640];

type Ticks<T> = Vec<Vec<T>>;

/// Speech of each stream, from another place each, by tick.
fn material(streams: usize) -> Ticks<[i16; FRAME]> {
    let speech = oracle::speech();
    let frames = speech.as_chunks::<FRAME>().0;
    (0..TICKS).map(|tick| (0..streams).map(|s| frames[(s * 67 + tick) % frames.len()]).collect()).collect()
}

fn per_second(took: std::time::Duration, frames: usize) -> f64 {
    took.as_secs_f64() * 1e6 * TICKS_A_SECOND / frames as f64
}

/// Microseconds a second of audio of one stream, and the frames of the last round. Streams are past their first frame.
fn encoding(
    level: Option<Level>,
    quality: Quality,
    pcm: &Ticks<[i16; FRAME]>,
    rounds: u32,
) -> (f64, Ticks<[u8; BYTES_MAX]>) {
    let streams = pcm[0].len();
    let mut coded = vec![vec![[0; BYTES_MAX]; streams]; TICKS];
    let mut started = vec![Encoder::new(quality); streams];
    for (state, pcm) in started.iter_mut().zip(&pcm[TICKS - 1]) {
        state.encode(pcm, &mut [0; BYTES_MAX]);
    }
    let mut states = started.clone();
    let took = quickest(rounds, || {
        states.clone_from(&started);
        for (pcm, coded) in pcm.iter().zip(&mut coded) {
            let jobs = states.iter_mut().zip(pcm).zip(coded);
            let mut jobs: Vec<_> = jobs.map(|((state, pcm), out)| EncodeJob::new(state, pcm, out)).collect();
            match level {
                Some(level) => encode(level, &mut jobs),
                None => {
                    for job in &mut jobs {
                        job.state.encode(job.pcm, job.out);
                    }
                }
            }
        }
    });
    (per_second(took, TICKS * streams), coded)
}

/// Microseconds a second of audio of one stream.
fn decoding(
    level: Option<Level>,
    enhance: bool,
    bytes: usize,
    coded: &Ticks<[u8; BYTES_MAX]>,
    rounds: u32,
) -> f64 {
    let streams = coded[0].len();
    let mut linear = vec![[0; FRAME]; streams];
    let mut fresh = Decoder::new();
    fresh.set_enhancer(enhance);
    let mut states = vec![fresh.clone(); streams];
    let took = quickest(rounds, || {
        states.fill(fresh.clone());
        for coded in coded {
            let jobs = states.iter_mut().zip(coded).zip(&mut linear);
            let mut jobs: Vec<_> =
                jobs.map(|((state, payload), pcm)| DecodeJob::new(state, &payload[..bytes], pcm)).collect();
            match level {
                Some(level) => decode(level, &mut jobs),
                None => {
                    for job in &mut jobs {
                        job.outcome = Some(job.state.decode(job.payload, job.pcm));
                    }
                }
            }
        }
    });
    per_second(took, TICKS * streams)
}

/// libspeex's time for one stream after another, and what it made.
fn reference(mode: &str, input: &[u8], frames: usize) -> Option<(Vec<u8>, f64)> {
    let (output, took) = Oracle::build(&oracle::SPEEX)?.time(mode, input, 7);
    Some((output, per_second(took, frames)))
}

fn main() {
    let pcm = material(STREAMS);
    let speech = oracle::bytes(&oracle::speech());
    let frames = speech.len() / 2 / FRAME;
    for (quality, name) in [(Quality::Q3, "q3"), (Quality::Q8, "q8")] {
        let reference = reference(&format!("encode-{name}"), &speech, frames);
        let baseline = reference.as_ref().map(|(_, us)| (*us, "libspeex 1.2.1"));
        let mut coded = Vec::new();
        for level in Level::all_available().map(Some).chain([None]) {
            let (value, frames) = encoding(level, quality, &pcm, ROUNDS);
            coded = frames;
            let level = level.map_or("scalar", Level::name);
            let name = format!("codec speex {name} encode {level}");
            Figure { name: &name, value, unit: "us/s", baseline }.publish();
        }
        for (enhance, suffix) in [(false, ""), (true, "-enhanced")] {
            let baseline = reference.as_ref().and_then(|(coded, _)| {
                let (_, us) = self::reference(&format!("decode-{name}{suffix}"), coded, frames)?;
                Some((us, "libspeex 1.2.1"))
            });
            for level in Level::all_available().map(Some).chain([None]) {
                let value = decoding(level, enhance, quality.bytes(), &coded, ROUNDS);
                let level = level.map_or("scalar", Level::name);
                let name = format!("codec speex {name} decode{suffix} {level}");
                Figure { name: &name, value, unit: "us/s", baseline }.publish();
            }
        }
    }
    println!("streams ready    level      encode q3    q8 us/s");
    for level in Level::all_available() {
        for streams in OCCUPANCIES {
            let pcm = material(streams);
            let [low, high] =
                [Quality::Q3, Quality::Q8].map(|q| encoding(Some(level), q, &pcm, ROUNDS / 5).0);
            println!("{streams:>13}    {:<9} {low:>12.1} {high:>10.1}", level.name());
        }
    }
}
