//! Microseconds of one core a second of audio for each way to decode iLBC.
//!
//! `cargo bench -p ilbc --bench decode`: real speech, CPU time of this thread, the best of several rounds that take the
//! ways in turn, so that a busy machine disturbs little. The baseline is what the floating-point code of RFC 3951 was
//! measured to need (`-O3 -march=native`), scaled by the speed of libgsm's encoder on this machine in this run where that
//! library is installed. With `STROWGER_BENCH_DIR` set the comparison is written there as JSON.

use std::hint::black_box;
use std::mem::MaybeUninit;

use ilbc::{DecodeJob, Decoder, Encoder, Mode, Mode20, Mode30, decode, decode_fast};
use lanes::Level;

const ROUNDS: usize = 5;
/// Streams that take turns: several groups, so that states leave the first cache as they do in service.
const STREAMS: usize = 64;
/// Seconds of audio of each stream.
const SECONDS: f64 = 1.2;
/// What libgsm's encoder needs on the machine on which the reference was measured.
const GSM_ENCODE: f64 = 527.0;

/// CPU time of this thread.
fn cpu_nanos() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to a timespec of ours, and all zeroes is a valid one should the call fail.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A frame size, and what the reference needs for it without and with enhancer.
trait Size: Mode<Pcm: Copy, Payload: Copy> {
    const NAME: &str;
    const SILENCE: Self::Pcm;
    const EMPTY: Self::Payload;
    const REFERENCE: [f64; 2];
}

impl Size for Mode20 {
    const NAME: &str = "20";
    const SILENCE: [i16; 160] = [0; 160];
    const EMPTY: [u8; 38] = [0; 38];
    const REFERENCE: [f64; 2] = [840.0, 651.0];
}

impl Size for Mode30 {
    const NAME: &str = "30";
    const SILENCE: [i16; 240] = [0; 240];
    const EMPTY: [u8; 50] = [0; 50];
    const REFERENCE: [f64; 2] = [503.0, 639.0];
}

/// How a frame of all streams is decoded.
#[derive(Clone, Copy)]
enum Way {
    Twin,
    Group(Level),
    Fast(Level),
    /// Jobs of so many streams at a time.
    Few(Level, usize),
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Twin => "plain".into(),
            Self::Group(level) => level.to_string(),
            Self::Fast(level) => format!("{level} fast"),
            Self::Few(level, count) => format!("{level} {count} of {}", level.lanes()),
        }
    }
}

/// Payloads of real speech.
fn payloads<M: Size>() -> Vec<M::Payload> {
    let mut encoder = Encoder::<M>::new();
    let length = M::SILENCE.as_ref().len();
    let speech = oracle::speech();
    let frames = speech.chunks_exact(length);
    frames
        .map(|frame| {
            let (mut pcm, mut payload) = (M::SILENCE, M::EMPTY);
            pcm.as_mut().copy_from_slice(frame);
            encoder.encode(&pcm, &mut payload);
            payload
        })
        .collect()
}

/// Microseconds a second of audio of one stream.
fn round<M: Size>(way: Way, enhance: bool, payloads: &[M::Payload]) -> f64 {
    let mut states = vec![Decoder::<M>::new(enhance); STREAMS];
    let mut heard = vec![M::SILENCE; STREAMS];
    let frames = (SECONDS * 8000.0) as usize / M::SILENCE.as_ref().len();
    let mut spent = 0;
    for frame in 0..frames {
        let payload = |stream: usize| payloads[(frame + 17 * stream) % payloads.len()].as_ref();
        if let Way::Twin = way {
            let start = cpu_nanos();
            for (stream, (state, pcm)) in states.iter_mut().zip(&mut heard).enumerate() {
                let _ = state.decode(payload(stream), pcm);
            }
            spent += cpu_nanos() - start;
        } else {
            let mut jobs: Vec<_> = states
                .iter_mut()
                .zip(&mut heard)
                .enumerate()
                .map(|(stream, (state, pcm))| DecodeJob::new(state, payload(stream), pcm))
                .collect();
            let start = cpu_nanos();
            match way {
                Way::Twin => {}
                Way::Group(level) => decode(level, &mut jobs),
                Way::Fast(level) => decode_fast(level, &mut jobs),
                Way::Few(level, count) => jobs.chunks_mut(count).for_each(|jobs| decode(level, jobs)),
            }
            spent += cpu_nanos() - start;
        }
        black_box(&heard);
    }
    spent as f64 / 1000.0 / (frames * M::SILENCE.as_ref().len() * STREAMS) as f64 * 8000.0
}

fn publish(name: &str, value: f64, baseline: f64) {
    let Ok(folder) = std::env::var("STROWGER_BENCH_DIR") else { return };
    let text = format!(
        "{{\"name\": \"{name}\", \"value\": {value:.1}, \"unit\": \"us/s\", \"baseline\": {baseline:.1}, \
         \"baseline_name\": \"RFC 3951 in C\", \"ratio\": {:.3}}}\n",
        value / baseline
    );
    let path = std::path::Path::new(&folder).join(format!("{}.json", name.replace(' ', "_")));
    if let Err(error) = std::fs::write(&path, text) {
        eprintln!("{}: {error}", path.display());
    }
}

fn measure<M: Size>(speed: f64) {
    let payloads = payloads::<M>();
    let mut ways = vec![Way::Twin];
    for level in Level::all_available() {
        ways.extend([Way::Group(level), Way::Fast(level)]);
    }
    // Where a group begins to be quicker than its streams one after the other.
    let level = Level::best();
    ways.extend([1, 3, level.lanes() / 2].map(|count| Way::Few(level, count)));
    for (enhance, reference) in [false, true].into_iter().zip(M::REFERENCE) {
        let baseline = reference * speed;
        let mut best = vec![f64::MAX; ways.len()];
        for _ in 0..ROUNDS {
            for (best, &way) in best.iter_mut().zip(&ways) {
                *best = best.min(round::<M>(way, enhance, &payloads));
            }
        }
        for (&way, &value) in ways.iter().zip(&best) {
            let enhanced = if enhance { " enhanced" } else { "" };
            let name = format!("ilbc decode {} ms{enhanced} {}", M::NAME, way.name());
            println!(
                "{name:<46} {value:>7.1} us/s {:>6.1} x plain {:>6.1} x RFC 3951 in C ({baseline:.0})",
                best[0] / value,
                baseline / value
            );
            publish(&name, value, baseline);
        }
    }
}

fn main() {
    let mut speed = 1.0;
    if let Some(gsm) = oracle::Oracle::build(&oracle::GSM) {
        let speech = oracle::speech();
        let (_, time) = gsm.time("encode", &oracle::bytes(&speech), 5);
        speed = time.as_secs_f64() * 1e6 / (speech.len() as f64 / 8000.0) / GSM_ENCODE;
    }
    println!("this machine needs {speed:.2} of the time of the one on which the reference was measured");
    measure::<Mode20>(speed);
    measure::<Mode30>(speed);
}
