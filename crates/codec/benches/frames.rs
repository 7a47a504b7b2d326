//! Nanoseconds a 20 ms frame, and from that microseconds of one core a second of audio, for each step a worker makes.
//!
//! `cargo bench -p codec`: time of this thread on its core, best of several rounds, so that a busy machine disturbs little. Where Debian has a C library
//! for the same work, its published figure is the baseline, and with `STROWGER_BENCH_DIR` set the comparison is written
//! there as JSON.

use std::hint::black_box;
use std::mem::MaybeUninit;

use base::{FormatId, SampleRate};
use codec::{Decoder, DtmfDetector, Encoder, Resampler, Transcoder};

const ROUNDS: usize = 25;
const FRAMES: usize = 500;

/// Microseconds of CPU a second of audio of the C libraries on the machine kind this project measures on.
const BASELINES: &[(&str, f64, &str)] = &[
    ("encode ulaw", 3.3, "table in C"),
    ("decode ulaw", 2.3, "table in C"),
    ("encode gsm", 527.0, "libgsm 1.0.22"),
    ("decode gsm", 191.0, "libgsm 1.0.22"),
    ("encode g722", 634.0, "spandsp 0.0.6"),
    ("decode g722", 399.0, "spandsp 0.0.6"),
];

fn publish(name: &str, value: f64) {
    let Some(&(_, baseline, baseline_name)) = BASELINES.iter().find(|row| row.0 == name) else { return };
    let Ok(folder) = std::env::var("STROWGER_BENCH_DIR") else { return };
    let text = format!(
        "{{\"name\": \"codec {name}\", \"value\": {value:.1}, \"unit\": \"us/s\", \"baseline\": {baseline:.1}, \
         \"baseline_name\": \"{baseline_name}\", \"ratio\": {:.3}}}\n",
        value / baseline
    );
    let path = std::path::Path::new(&folder).join(format!("codec_{}.json", name.replace(' ', "_")));
    if let Err(error) = std::fs::write(&path, text) {
        eprintln!("{}: {error}", path.display());
    }
}

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

fn measure(name: &str, mut frame: impl FnMut(usize)) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = cpu_nanos();
        for index in 0..FRAMES {
            frame(index);
        }
        best = best.min((cpu_nanos() - start) as f64 / FRAMES as f64);
    }
    println!("{name:<28} {best:>10.0} ns/frame {:>8.1} us/s", best * 50.0 / 1000.0);
    publish(name, best * 50.0 / 1000.0);
}

/// Ten seconds of something like speech: a gliding buzz with pauses.
fn speech(rate: u32) -> Vec<i16> {
    let mut phase = 0.0f64;
    (0..rate * 10)
        .map(|n| {
            let t = f64::from(n) / f64::from(rate);
            phase = (phase + (110.0 + 40.0 * (t * 3.0).sin()) / f64::from(rate)).fract();
            let syllable = (t * 12.0).sin().max(0.0);
            let pulse = (1..12)
                .map(|k| (phase * f64::from(k) * std::f64::consts::TAU).sin() / f64::from(k))
                .sum::<f64>();
            (pulse * syllable * 6000.0) as i16
        })
        .collect()
}

fn main() {
    codec::prepare_resamplers();
    for format in [FormatId::ULAW, FormatId::ALAW, FormatId::GSM, FormatId::G722, FormatId::SLIN] {
        let pcm = speech(format.rate().0);
        let samples = format.rate().0 as usize / 50;
        let bytes = format.bytes_in(20);
        let mut encoder = Encoder::new(format);
        let mut coded = vec![0; bytes * FRAMES];
        measure(&format!("encode {format}"), |index| {
            encoder.encode(&pcm[index * samples..][..samples], &mut coded[index * bytes..][..bytes]);
        });
        let mut decoder = Decoder::new(format);
        let mut linear = vec![0; samples];
        measure(&format!("decode {format}"), |index| {
            decoder.decode(black_box(&coded[index * bytes..][..bytes]), &mut linear);
        });
    }
    for (from, to) in
        [(8000, 16000), (16000, 8000), (8000, 48000), (48000, 8000), (8000, 44100), (44100, 48000)]
    {
        let pcm = speech(from);
        let samples = from as usize / 50;
        let Some(mut resampler) = Resampler::new(SampleRate(from), SampleRate(to)) else { continue };
        let mut out = vec![0; resampler.output_max(samples)];
        measure(&format!("resample {from} -> {to}"), |index| {
            resampler.process(&pcm[index * samples..][..samples], &mut out);
        });
    }
    for (from, to) in
        [(FormatId::ULAW, FormatId::ALAW), (FormatId::ULAW, FormatId::GSM), (FormatId::G722, FormatId::ULAW)]
    {
        let pcm = speech(from.rate().0);
        let mut coded = vec![0; from.bytes_in(20) * FRAMES];
        Encoder::new(from).encode(&pcm, &mut coded);
        let mut transcoder = Transcoder::new(from, to);
        let mut out = vec![0; transcoder.output_max(from.bytes_in(20))];
        measure(&format!("transcode {from} -> {to}"), |index| {
            transcoder.transcode(&coded[index * from.bytes_in(20)..][..from.bytes_in(20)], &mut out);
        });
    }
    let pcm = speech(8000);
    let mut detector = DtmfDetector::new();
    measure("detect dtmf", |index| {
        detector.process(&pcm[index * 160..][..160], |edge| {
            black_box(edge);
        });
    });
}
