//! What a worker does stream by stream: microseconds of one core for a second of sound of one stream.
//!
//! `cargo bench -p codec --bench frames`: real speech, CPU time of this thread, the best of several rounds, so that a busy
//! machine disturbs little. Codecs with lanes have benches of their own (`lanes`, and those of `ilbc`), and
//! whole ways from format to format that of `media`.

use std::hint::black_box;

use base::{FormatId, SampleRate};
use codec::{Decoder, DtmfDetector, Encoder, Resampler, Transcoder, adpcm, lpc10};
use oracle::{Figure, Oracle, quickest};

const ROUNDS: u32 = 12;
/// Samples of 20 ms at 8 kHz.
const PACKET: usize = 160;

/// Publishes what one pass over all of the speech took.
fn measure(name: &str, seconds: f64, pass: impl FnMut()) {
    compare(name, seconds, None, pass);
}

/// As [`measure`], against a mode of spandsp with its input, in turns.
fn compare(name: &str, seconds: f64, other: Option<(&str, &[u8])>, mut pass: impl FnMut()) {
    let spandsp = other.and_then(|other| Some((Oracle::build(&oracle::SPANDSP)?, other)));
    let (mut value, mut baseline) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        value = value.min(quickest(1, &mut pass).as_secs_f64() * 1e6 / seconds);
        if let Some((spandsp, (mode, input))) = &spandsp {
            baseline = baseline.min(spandsp.time(mode, input, 1).1.as_secs_f64() * 1e6 / seconds);
        }
    }
    let baseline = spandsp.map(|_| (baseline, "spandsp 0.0.6"));
    Figure { name: &format!("codec {name}"), value, unit: "us/s", baseline }.publish();
}

fn main() {
    codec::prepare_resamplers();
    let speech = oracle::speech();
    let seconds = speech.len() as f64 / 8000.0;
    let mut coded = vec![0; speech.len()];
    let mut linear = vec![0; PACKET];
    let mut encoder = Encoder::new(FormatId::ULAW);
    measure("ulaw encode", seconds, || {
        for (pcm, out) in speech.chunks_exact(PACKET).zip(coded.chunks_exact_mut(PACKET)) {
            encoder.encode(pcm, out);
        }
    });
    let mut decoder = Decoder::new(FormatId::ULAW);
    measure("ulaw decode", seconds, || {
        for packet in coded.chunks_exact(PACKET) {
            decoder.decode(black_box(packet), &mut linear);
        }
    });
    let mut transcoder = Transcoder::new(FormatId::ULAW, FormatId::ALAW);
    let mut out = vec![0; PACKET];
    measure("ulaw to alaw", seconds, || {
        for packet in coded.chunks_exact(PACKET) {
            transcoder.transcode(black_box(packet), &mut out);
        }
    });
    adpcm_and_lpc10(&speech, seconds);
    // At another rate the same samples are another length of time.
    for (from, to) in
        [(8000, 16000), (16000, 8000), (8000, 48000), (48000, 8000), (8000, 44100), (44100, 48000)]
    {
        let Some(mut resampler) = Resampler::new(SampleRate(from), SampleRate(to)) else { continue };
        let samples = from as usize / 50;
        let mut out = vec![0; resampler.output_max(samples)];
        measure(&format!("resample {from} to {to}"), speech.len() as f64 / f64::from(from), || {
            for pcm in speech.chunks_exact(samples) {
                resampler.process(black_box(pcm), &mut out);
            }
        });
    }
    let mut detector = DtmfDetector::new();
    measure("dtmf detect", seconds, || {
        for pcm in speech.chunks_exact(PACKET) {
            detector.process(pcm, |edge| {
                black_box(edge);
            });
        }
    });
}

fn adpcm_and_lpc10(speech: &[i16], seconds: f64) {
    let mut coded = vec![0; speech.len() / 2];
    let mut linear = vec![0; speech.len()];
    measure("adpcm encode", seconds, || {
        adpcm::Encoder::default().encode(speech, &mut coded);
    });
    measure("adpcm decode", seconds, || {
        adpcm::Decoder::default().decode(&coded, &mut linear);
    });
    let frames = speech.as_chunks::<{ lpc10::FRAME_SAMPLES }>().0;
    let mut coded = vec![[0; lpc10::FRAME_BYTES]; frames.len()];
    compare("lpc10 encode", seconds, Some(("lpc10-encode", &oracle::bytes(speech))), || {
        let mut encoder = lpc10::Encoder::default();
        for (frame, out) in frames.iter().zip(&mut coded) {
            encoder.encode(frame, out);
        }
    });
    let mut linear = [0; lpc10::FRAME_SAMPLES];
    compare("lpc10 decode", seconds, Some(("lpc10-decode", coded.as_flattened())), || {
        let mut decoder = lpc10::Decoder::default();
        for frame in &coded {
            decoder.decode(frame, &mut linear);
        }
    });
}
