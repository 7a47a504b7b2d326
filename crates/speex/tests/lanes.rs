//! A stream in a lane is the stream alone, bit for bit: whatever its neighbours are, wherever it sits, on every level.

use kit::Random;
use lanes::{LANES_MAX, Level};
use speex::{BYTES_MAX, DecodeJob, Decoder, EncodeJob, Encoder, FRAME, Fault, Quality, decode, encode};

const SPEECH: &[u8] = include_bytes!("../../codec/tests/data/speech.sln");

/// Sounds that are hard in different ways; each goes on for ever.
#[derive(Clone, Copy, Debug)]
enum Sound {
    Speech,
    Silence,
    /// One step of the least amplitude now and then: filters decay towards denormal numbers.
    Whisper,
    Noise,
    FullScaleNoise,
    FullScaleSquare,
    /// A pure tone: the filter comes near to instability.
    Tone,
    Sweep,
    Constant,
    /// Silence that starts and ends abruptly.
    Bursts,
}

const SOUNDS: [Sound; 10] = [
    Sound::Speech,
    Sound::Silence,
    Sound::Whisper,
    Sound::Noise,
    Sound::FullScaleNoise,
    Sound::FullScaleSquare,
    Sound::Tone,
    Sound::Sweep,
    Sound::Constant,
    Sound::Bursts,
];

fn frame(sound: Sound, number: usize, seed: u64) -> [i16; FRAME] {
    let mut random = Random(seed ^ number as u64);
    std::array::from_fn(|i| {
        let n = number * FRAME + i;
        let speech = |n: usize| {
            let at = 2 * ((n + seed as usize % 4000) % (SPEECH.len() / 2));
            i16::from_le_bytes([SPEECH[at], SPEECH[at + 1]])
        };
        match sound {
            Sound::Speech => speech(n),
            Sound::Silence => 0,
            Sound::Whisper => i16::from(n.is_multiple_of(997)),
            Sound::Noise => (random.bits() % 2001) as i16 - 1000,
            Sound::FullScaleNoise => {
                if random.bits().is_multiple_of(2) {
                    i16::MAX
                } else {
                    i16::MIN
                }
            }
            Sound::FullScaleSquare => {
                if (n / 37).is_multiple_of(2) {
                    i16::MAX
                } else {
                    i16::MIN
                }
            }
            Sound::Tone => (32000.0 * (n as f64 * 0.35).sin()) as i16,
            Sound::Sweep => (20000.0 * (n as f64 * n as f64 * 1e-5).sin()) as i16,
            Sound::Constant => i16::MIN,
            Sound::Bursts => {
                if (n / 400).is_multiple_of(2) {
                    speech(n)
                } else {
                    0
                }
            }
        }
    })
}

/// Streams that come, go, start anew and change places; each with a twin that is coded alone.
#[test]
fn encoders_in_lanes_equal_the_scalar_form_through_joins_leaves_and_resets() {
    for level in Level::all_available() {
        let seed = 0x5eed + level.lanes() as u64;
        let mut random = Random(seed);
        let mut streams: Vec<(Encoder, Encoder, Sound, u64)> = (0..2 * LANES_MAX + 5)
            .map(|number| {
                let quality = if number % 3 == 0 { Quality::Q8 } else { Quality::Q3 };
                let encoder = Encoder::new(quality);
                (encoder.clone(), encoder, SOUNDS[number % SOUNDS.len()], random.bits())
            })
            .collect();
        for number in 0..60 {
            // Some of the streams, in any order: every occupancy and every neighbourhood comes up.
            for at in (1..streams.len()).rev() {
                streams.swap(at, random.below(at + 1));
            }
            let count = 1 + random.below(streams.len());
            if number % 10 == 9 {
                let (lane, twin, ..) = &mut streams[0];
                *lane = Encoder::new(lane.quality());
                *twin = lane.clone();
            }
            let chosen = &mut streams[..count];
            let pcm: Vec<_> = chosen.iter().map(|(.., sound, seed)| frame(*sound, number, *seed)).collect();
            let mut out = vec![[0x55; BYTES_MAX]; count];
            let mut jobs: Vec<_> = chosen
                .iter_mut()
                .zip(&pcm)
                .zip(&mut out)
                .map(|(((state, ..), pcm), out)| EncodeJob::new(state, pcm, out))
                .collect();
            encode(level, &mut jobs);
            for (((_, twin, sound, _), pcm), out) in chosen.iter_mut().zip(&pcm).zip(&out) {
                let mut expected = [0x55; BYTES_MAX];
                twin.encode(pcm, &mut expected);
                assert_eq!(
                    out, &expected,
                    "{level}, seed {seed:#x}, frame {number}, {count} jobs, {sound:?}"
                );
            }
        }
    }
}

#[test]
fn every_occupancy_of_a_group_gives_the_same_frames() {
    for level in Level::all_available() {
        for quality in [Quality::Q3, Quality::Q8] {
            for count in 1..=level.lanes() + 1 {
                let mut streams = vec![Encoder::new(quality); count];
                for number in 0..6 {
                    let pcm: Vec<_> =
                        (0..count).map(|n| frame(Sound::Speech, number, 977 * n as u64)).collect();
                    let mut expected = vec![[0; BYTES_MAX]; count];
                    for ((stream, pcm), out) in streams.iter().zip(&pcm).zip(&mut expected) {
                        stream.clone().encode(pcm, out);
                    }
                    let mut out = vec![[0; BYTES_MAX]; count];
                    let jobs = streams.iter_mut().zip(&pcm).zip(&mut out);
                    let mut jobs: Vec<_> =
                        jobs.map(|((state, pcm), out)| EncodeJob::new(state, pcm, out)).collect();
                    encode(level, &mut jobs);
                    assert_eq!(out, expected, "{level}, {quality:?}, {count} streams, frame {number}");
                }
            }
        }
    }
}

/// Decoders that come, go, lose frames, get garbage and change places; each with a twin that decodes alone.
#[test]
fn decoders_in_lanes_equal_the_scalar_form_through_losses_garbage_and_resets() {
    for level in Level::all_available() {
        let seed = 0xdec0de + level.lanes() as u64;
        let mut random = Random(seed);
        let mut streams: Vec<(Decoder, Decoder, Encoder, Sound, u64)> = (0..3 * LANES_MAX + 5)
            .map(|number| {
                let mut decoder = Decoder::new();
                decoder.set_enhancer(number % 2 == 0);
                let quality = if number % 3 == 0 { Quality::Q8 } else { Quality::Q3 };
                (
                    decoder.clone(),
                    decoder,
                    Encoder::new(quality),
                    SOUNDS[number % SOUNDS.len()],
                    random.bits(),
                )
            })
            .collect();
        let mut outcomes = [0; 2];
        for number in 0..60 {
            for at in (1..streams.len()).rev() {
                streams.swap(at, random.below(at + 1));
            }
            let count = 1 + random.below(streams.len());
            if number % 10 == 9 {
                let (lane, twin, ..) = &mut streams[0];
                *lane = Decoder::new();
                *twin = lane.clone();
            }
            let chosen = &mut streams[..count];
            let mut pcm = vec![[0x55; FRAME]; count];
            let payloads: Vec<Vec<u8>> = chosen
                .iter_mut()
                .zip(&mut pcm)
                .map(|((lane, twin, encoder, sound, seed), pcm)| {
                    let mut coded = [0; BYTES_MAX];
                    let bytes = encoder.encode(&frame(*sound, number, *seed), &mut coded);
                    match random.below(20) {
                        0 => {
                            lane.conceal(pcm);
                            twin.conceal(pcm);
                            Vec::new()
                        }
                        1 => coded[..random.below(bytes)].to_vec(),
                        2 => (0..bytes).map(|_| random.bits() as u8).collect(),
                        // The sub-mode as it was, the rest noise: what a hostile sender would try.
                        3 => {
                            coded[1..bytes].fill_with(|| random.bits() as u8);
                            coded[..bytes].to_vec()
                        }
                        _ => coded[..bytes].to_vec(),
                    }
                })
                .collect();
            let jobs = chosen.iter_mut().zip(&payloads).zip(&mut pcm);
            let mut jobs: Vec<_> =
                jobs.map(|(((state, ..), payload), pcm)| DecodeJob::new(state, payload, pcm)).collect();
            decode(level, &mut jobs);
            let results: Vec<_> = jobs.iter().map(|job| job.outcome).collect();
            for (((chosen, payload), pcm), result) in chosen.iter_mut().zip(&payloads).zip(&pcm).zip(results)
            {
                let (_, twin, _, sound, _) = chosen;
                let mut expected = [0; FRAME];
                let outcome = twin.decode(payload, &mut expected);
                outcomes[usize::from(outcome.is_err())] += 1;
                let context = format!("{level}, seed {seed:#x}, frame {number}, {count} jobs, {sound:?}");
                assert_eq!(result, Some(outcome), "{context}");
                assert_eq!(pcm, &expected, "{context}");
            }
        }
        assert!(outcomes[0] > 500 && outcomes[1] > 50, "both ways were taken: {outcomes:?}");
    }
}

#[test]
fn payloads_of_noise_never_panic_and_the_stream_recovers() {
    let mut random = Random(7);
    let (mut decoder, mut encoder) = (Decoder::new(), Encoder::new(Quality::Q8));
    let mut pcm = [0; FRAME];
    for _ in 0..20_000 {
        let payload: Vec<u8> = (0..random.below(70)).map(|_| random.bits() as u8).collect();
        let _: Result<(), Fault> = decoder.decode(&payload, &mut pcm);
    }
    let mut coded = [0; BYTES_MAX];
    for number in 0..100 {
        encoder.encode(&frame(Sound::Speech, number, 0), &mut coded);
        assert_eq!(decoder.decode(&coded, &mut pcm), Ok(()));
    }
    assert!(pcm.iter().any(|x| *x != pcm[0]), "what was heard has not silenced what comes");
}

#[test]
fn no_jobs_are_no_work() {
    encode(Level::best(), &mut []);
    decode(Level::best(), &mut []);
}
