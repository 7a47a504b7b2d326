//! A stream in a lane is the stream alone, bit for bit: whatever its neighbours are, wherever it sits, on every level.

use lanes::{LANES_MAX, Level};
use speex::{BYTES_MAX, EncodeJob, Encoder, FRAME, Quality, encode};

const SPEECH: &[u8] = include_bytes!("../../codec/tests/data/speech.sln");

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

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
            Sound::Noise => (random.next() % 2001) as i16 - 1000,
            Sound::FullScaleNoise => {
                if random.next().is_multiple_of(2) {
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
                (encoder.clone(), encoder, SOUNDS[number % SOUNDS.len()], random.next())
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
                .map(|(((state, ..), pcm), out)| EncodeJob { state, pcm, out })
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
                        jobs.map(|((state, pcm), out)| EncodeJob { state, pcm, out }).collect();
                    encode(level, &mut jobs);
                    assert_eq!(out, expected, "{level}, {quality:?}, {count} streams, frame {number}");
                }
            }
        }
    }
}

#[test]
fn no_jobs_are_no_work() {
    encode(Level::best(), &mut []);
}
