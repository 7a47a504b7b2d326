//! GSM 06.10 against Debian's libgsm, frame for frame: every lane of every level, with other streams in the other lanes.

use codec::gsm::{DecodeJob, Decoder, EncodeJob, Encoder, FRAME_BYTES, FRAME_SAMPLES, decode, encode};
use kit::Random;
use lanes::Level;
use oracle::{GSM, Oracle, bytes, samples, speech};

/// Frames of each stream.
const TICKS: usize = 100;

type Pcm = [i16; FRAME_SAMPLES];
type Frame = [u8; FRAME_BYTES];

/// What streams sound like: speech at four levels, and everything that is not speech.
fn sounds() -> Vec<(String, Vec<Pcm>)> {
    let speech = speech();
    let mut random = Random(6);
    let mut all: Vec<(String, Vec<i16>)> = Vec::new();
    let length = TICKS * FRAME_SAMPLES;
    for place in 0..24 {
        let gain = [1, 2, 8, 64][place % 4];
        let clip = &speech[place * 10_007..][..length];
        all.push((format!("speech {place}"), clip.iter().map(|s| s / gain).collect()));
    }
    let clipped = |s: &i16| s.saturating_mul(9);
    all.push(("clipped speech".into(), speech[..length].iter().map(clipped).collect()));
    let mut make = |name: &str, mut sample: Box<dyn FnMut(usize, u64) -> i16>| {
        all.push((name.into(), (0..length).map(|n| sample(n, random.bits())).collect()));
    };
    make("silence", Box::new(|_, _| 0));
    make("the least that is not silence", Box::new(|n, _| if n % 80 == 0 { 8 } else { 0 }));
    make("offset", Box::new(|_, _| 12_000));
    make("lowest sample", Box::new(|_, _| i16::MIN));
    make("full-scale square", Box::new(|n, _| if n / 13 % 2 == 0 { i16::MAX } else { i16::MIN }));
    make("full scale at half the rate", Box::new(|n, _| if n % 2 == 0 { i16::MAX } else { i16::MIN }));
    make("full-scale noise", Box::new(|_, bits| bits as i16));
    make("sign noise", Box::new(|_, bits| if bits & 1 == 0 { i16::MIN } else { i16::MAX }));
    make("faint noise", Box::new(|_, bits| (bits as i16) >> 11));
    make("bursts", Box::new(|n, bits| if n / 777 % 3 == 0 { bits as i16 } else { 0 }));
    make("sine", Box::new(|n, _| ((n as f64 * 0.345).sin() * 32_767.0) as i16));
    all.into_iter().map(|(name, pcm)| (name, pcm.as_chunks().0.to_vec())).collect()
}

/// Runs all streams through `step` in groups that are mixed anew each tick, so that each meets every lane.
fn mixed<J>(random: &mut Random, level: Level, mut jobs: Vec<J>, step: impl Fn(Level, &mut [J])) {
    random.shuffle(&mut jobs);
    // Groups of every size up to full ones.
    let mut rest = &mut jobs[..];
    while !rest.is_empty() {
        let size = (1 + random.below(2 * level.lanes())).min(rest.len());
        let (group, others) = rest.split_at_mut(size);
        step(level, group);
        rest = others;
    }
}

#[test]
fn gsm0610_encoders_in_any_lane_equal_libgsm_in_every_frame() {
    let Some(library) = Oracle::build(&GSM) else { return };
    let sounds = sounds();
    let expected: Vec<Vec<Frame>> = sounds
        .iter()
        .map(|(_, pcm)| library.run("encode", &bytes(pcm.as_flattened())).as_chunks().0.to_vec())
        .collect();
    for level in Level::all_available() {
        let mut random = Random(level.lanes() as u64);
        let mut states = vec![Encoder::new(); sounds.len()];
        for tick in 0..TICKS {
            let mut coded = vec![[0; FRAME_BYTES]; sounds.len()];
            let jobs = states.iter_mut().zip(&sounds).zip(&mut coded);
            let jobs = jobs.map(|((state, (_, pcm)), out)| EncodeJob::new(state, &pcm[tick], out)).collect();
            mixed(&mut random, level, jobs, encode);
            for ((coded, expected), (name, _)) in coded.iter().zip(&expected).zip(&sounds) {
                assert_eq!(coded, &expected[tick], "{level}, {name}, frame {tick}");
            }
        }
    }
}

#[test]
fn gsm0610_decoders_in_any_lane_equal_libgsm_in_every_sample() {
    let Some(library) = Oracle::build(&GSM) else { return };
    let mut streams: Vec<(String, Vec<Frame>)> = sounds()
        .into_iter()
        .map(|(name, pcm)| (name, library.run("encode", &bytes(pcm.as_flattened())).as_chunks().0.to_vec()))
        .collect();
    let mut random = Random(10);
    for number in 0..8 {
        let mut frames = vec![[0; FRAME_BYTES]; TICKS];
        for frame in &mut frames {
            frame.fill_with(|| random.bits() as u8);
            frame[0] = 0xd0 | (frame[0] & 15);
        }
        streams.push((format!("any bits {number}"), frames));
    }
    let expected: Vec<Vec<Pcm>> = streams
        .iter()
        .map(|(_, frames)| samples(&library.run("decode", frames.as_flattened())).as_chunks().0.to_vec())
        .collect();
    for level in Level::all_available() {
        let mut random = Random(level.lanes() as u64);
        let mut states = vec![Decoder::new(); streams.len()];
        for tick in 0..TICKS {
            let mut linear = vec![[0; FRAME_SAMPLES]; streams.len()];
            let jobs = states.iter_mut().zip(&streams).zip(&mut linear);
            let jobs =
                jobs.map(|((state, (_, frames)), pcm)| DecodeJob::new(state, &frames[tick], pcm)).collect();
            mixed(&mut random, level, jobs, decode);
            for ((linear, expected), (name, _)) in linear.iter().zip(&expected).zip(&streams) {
                assert_eq!(linear, &expected[tick], "{level}, {name}, frame {tick}");
            }
        }
    }
}

#[test]
fn a_stream_that_starts_again_equals_libgsm_from_its_beginning() {
    let Some(library) = Oracle::build(&GSM) else { return };
    let speech = speech();
    let frames = &speech.as_chunks::<FRAME_SAMPLES>().0[100..140];
    let expected = library.run("encode", &bytes(frames.as_flattened()));
    for level in Level::all_available() {
        let mut states = vec![Encoder::new(); 2 * level.lanes()];
        for round in 0..2 {
            // One stream of the group begins anew, its neighbours go on.
            states[3] = Encoder::new();
            for (tick, pcm) in frames.iter().enumerate() {
                let mut coded = vec![[0; FRAME_BYTES]; states.len()];
                let jobs = states.iter_mut().zip(&mut coded);
                let mut jobs: Vec<_> = jobs.map(|(state, out)| EncodeJob::new(state, pcm, out)).collect();
                encode(level, &mut jobs);
                assert_eq!(
                    coded[3],
                    expected[tick * FRAME_BYTES..][..FRAME_BYTES],
                    "{level}, {round}, {tick}"
                );
            }
        }
    }
}
