//! GSM 06.10 in lanes against its plain twin, bit for bit: any streams together, in any order and number, on any level,
//! changed from tick to tick.

mod common;

use codec::gsm::{
    DecodeJob, Decoder, EncodeJob, Encoder, FRAME_BYTES, FRAME_SAMPLES, decode, encode, has_signature,
};
use common::{KINDS, sound, speech};
use kit::Random;
use lanes::Level;

/// More than two groups of the widest lanes.
const STREAMS: usize = 70;

type Pcm = [i16; FRAME_SAMPLES];
type Frame = [u8; FRAME_BYTES];

/// A frame of one of the kinds of sound that a stream may bring.
fn frame(random: &mut Random, speech: &[i16], kind: usize) -> Pcm {
    let mut frame = [0; FRAME_SAMPLES];
    sound(random, speech, kind, &mut frame);
    frame
}

/// A frame as it may arrive: what an encoder made, any bits, or no GSM at all.
fn arrival(random: &mut Random, coded: &Frame) -> Frame {
    let mut frame = *coded;
    match random.below(8) {
        0 => frame.fill_with(|| random.bits() as u8), // mostly without signature: lost
        1 => {
            frame.fill_with(|| random.bits() as u8);
            frame[0] = 0xd0 | (frame[0] & 15);
        }
        _ => {}
    }
    frame
}

#[test]
fn any_group_on_any_level_equals_the_plain_twin_in_every_bit() {
    let speech = speech();
    let levels: Vec<Level> = Level::all_available().collect();
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut encoders: Vec<(Encoder, Encoder)> = vec![Default::default(); STREAMS];
        let mut decoders: Vec<(Decoder, Decoder)> = vec![Default::default(); STREAMS];
        let kinds: Vec<usize> = (0..STREAMS).map(|_| random.below(KINDS)).collect();
        for tick in 0..30 {
            // Streams pause, restart, and meet others in other lanes of another level.
            let level = levels[random.below(levels.len())];
            let mut ready: Vec<usize> = (0..STREAMS).collect();
            random.shuffle(&mut ready);
            ready.truncate(1 + random.below(STREAMS));
            if random.below(4) == 0 {
                encoders[ready[0]] = Default::default();
                decoders[ready[0]] = Default::default();
            }
            let pcm: Vec<Pcm> = (0..STREAMS).map(|s| frame(&mut random, &speech, kinds[s])).collect();
            let mut coded = vec![[0xaa; FRAME_BYTES]; STREAMS];
            let mut decoded = vec![[-1; FRAME_SAMPLES]; STREAMS];

            let mut jobs: Vec<EncodeJob<'_>> = encoders
                .iter_mut()
                .zip(&pcm)
                .zip(&mut coded)
                .map(|(((state, _), pcm), out)| EncodeJob::new(state, pcm, out))
                .enumerate()
                .filter(|(stream, _)| ready.contains(stream))
                .map(|(_, job)| job)
                .collect();
            random.shuffle(&mut jobs);
            encode(level, &mut jobs);

            let arrived: Vec<Frame> = coded.iter().map(|coded| arrival(&mut random, coded)).collect();
            let mut jobs: Vec<DecodeJob<'_>> = decoders
                .iter_mut()
                .zip(&arrived)
                .zip(&mut decoded)
                .map(|(((state, _), payload), pcm)| DecodeJob::new(state, payload, pcm))
                .enumerate()
                .filter(|(stream, _)| ready.contains(stream))
                .map(|(_, job)| job)
                .collect();
            random.shuffle(&mut jobs);
            decode(level, &mut jobs);

            for stream in 0..STREAMS {
                let case = format!("seed {seed}, tick {tick}, {level}, stream {stream}");
                if !ready.contains(&stream) {
                    assert_eq!((coded[stream], decoded[stream]), ([0xaa; FRAME_BYTES], [-1; FRAME_SAMPLES]));
                    continue;
                }
                let (mut frame, mut linear) = ([0; FRAME_BYTES], [0; FRAME_SAMPLES]);
                encoders[stream].1.encode(&pcm[stream], &mut frame);
                assert_eq!(coded[stream], frame, "encoder: {case}, sound {}", kinds[stream]);
                let good = decoders[stream].1.decode(&arrived[stream], &mut linear);
                assert_eq!(good, has_signature(&arrived[stream]));
                assert_eq!(decoded[stream], linear, "decoder: {case}");
            }
        }
    }
}

#[test]
fn a_group_of_every_size_equals_the_plain_twin() {
    let speech = speech();
    for level in Level::all_available() {
        for count in 1..=2 * level.lanes() + 1 {
            let mut random = Random(count as u64);
            let mut states: Vec<(Encoder, Decoder)> = vec![Default::default(); count];
            let mut twins = states.clone();
            for _ in 0..4 {
                let pcm: Vec<Pcm> = (0..count).map(|s| frame(&mut random, &speech, s % KINDS)).collect();
                let mut coded = vec![[0; FRAME_BYTES]; count];
                let mut linear = vec![[0; FRAME_SAMPLES]; count];
                let jobs = states.iter_mut().zip(&pcm).zip(&mut coded);
                let mut jobs: Vec<_> =
                    jobs.map(|((state, pcm), out)| EncodeJob::new(&mut state.0, pcm, out)).collect();
                encode(level, &mut jobs);
                let jobs = states.iter_mut().zip(&coded).zip(&mut linear);
                let mut jobs: Vec<_> =
                    jobs.map(|((state, payload), pcm)| DecodeJob::new(&mut state.1, payload, pcm)).collect();
                decode(level, &mut jobs);
                for (stream, twin) in twins.iter_mut().enumerate() {
                    let (mut frame, mut plain) = ([0; FRAME_BYTES], [0; FRAME_SAMPLES]);
                    twin.0.encode(&pcm[stream], &mut frame);
                    twin.1.decode(&frame, &mut plain);
                    assert_eq!(
                        (coded[stream], linear[stream]),
                        (frame, plain),
                        "{level}, {stream} of {count}"
                    );
                }
            }
        }
    }
}
