//! G.722 and G.726 in lanes against their plain twins, bit for bit: any streams together, in any order and number, with
//! packets of any length, on any level, changed from tick to tick.

mod common;

use codec::{g722, g726};
use common::{KINDS, sound, speech};
use kit::{Random, on_small_stack};
use lanes::Level;

/// More than two groups of the widest lanes.
const STREAMS: usize = 37;
/// Longest packet, in pairs of samples: more than a group works on at a time.
const PAIRS: usize = 330;

/// The longest packet of one of the kinds of sound that a stream may bring.
fn packet(random: &mut Random, speech: &[i16], kind: usize) -> Vec<i16> {
    let mut packet = vec![0; 2 * PAIRS];
    sound(random, speech, kind, &mut packet);
    packet
}

/// The tests of a codec, by the names that both have.
macro_rules! lanes_equal_the_plain_twin {
    ($test:ident, $codec:ident, $encoder:expr, $decoder:expr) => {
        #[test]
        fn $test() {
            let speech = speech();
            let levels: Vec<Level> = Level::all_available().collect();
            for seed in 0..30 {
                let mut random = Random(seed);
                let mut encoders: Vec<_> = (0..STREAMS).map(|s| ($encoder(s), $encoder(s))).collect();
                let mut decoders: Vec<_> = (0..STREAMS).map(|s| ($decoder(s), $decoder(s))).collect();
                let kinds: Vec<usize> = (0..STREAMS).map(|_| random.below(KINDS)).collect();
                for tick in 0..12 {
                    let level = levels[random.below(levels.len())];
                    let ready: Vec<bool> = (0..STREAMS).map(|_| random.below(5) > 0).collect();
                    // Most packets are equally long; some are not, or empty.
                    let lengths: Vec<usize> = (0..STREAMS)
                        .map(|_| if random.below(4) == 0 { random.below(PAIRS + 1) } else { 80 })
                        .collect();
                    let reset = random.below(STREAMS);
                    encoders[reset] = ($encoder(reset), $encoder(reset));
                    decoders[reset] = ($decoder(reset), $decoder(reset));
                    let pcm: Vec<_> = (0..STREAMS).map(|s| packet(&mut random, &speech, kinds[s])).collect();
                    let mut coded = vec![vec![0xaa; PAIRS]; STREAMS];
                    let mut linear = vec![vec![-1; 2 * PAIRS]; STREAMS];

                    let mut jobs: Vec<_> = encoders
                        .iter_mut()
                        .zip(&pcm)
                        .zip(&mut coded)
                        .enumerate()
                        .filter(|(stream, _)| ready[*stream])
                        .map(|(stream, (((state, _), pcm), out))| {
                            $codec::EncodeJob::new(
                                state,
                                &pcm[..2 * lengths[stream]],
                                &mut out[..lengths[stream]],
                            )
                        })
                        .collect();
                    random.shuffle(&mut jobs);
                    $codec::encode(level, &mut jobs);
                    assert!(jobs.iter().all(|job| job.done));

                    // Some packets are bytes that nobody coded.
                    let mut arrived = coded.clone();
                    for packet in &mut arrived {
                        if random.below(5) == 0 {
                            packet.fill_with(|| random.bits() as u8);
                        }
                    }
                    let mut jobs: Vec<_> = decoders
                        .iter_mut()
                        .zip(&arrived)
                        .zip(&mut linear)
                        .enumerate()
                        .filter(|(stream, _)| ready[*stream])
                        .map(|(stream, (((state, _), payload), pcm))| {
                            $codec::DecodeJob::new(
                                state,
                                &payload[..lengths[stream]],
                                &mut pcm[..2 * lengths[stream]],
                            )
                        })
                        .collect();
                    random.shuffle(&mut jobs);
                    $codec::decode(level, &mut jobs);
                    assert!(jobs.iter().all(|job| job.done));

                    for stream in (0..STREAMS).filter(|&stream| ready[stream]) {
                        let case = format!("seed {seed}, tick {tick}, {level}, stream {stream}");
                        let length = lengths[stream];
                        let (mut bytes, mut samples) = (vec![0xaa; PAIRS], vec![-1; 2 * PAIRS]);
                        encoders[stream].1.encode(&pcm[stream][..2 * length], &mut bytes[..length]);
                        assert_eq!(coded[stream], bytes, "encoder: {case}, sound {}", kinds[stream]);
                        decoders[stream].1.decode(&arrived[stream][..length], &mut samples);
                        assert_eq!(linear[stream], samples, "decoder: {case}");
                    }
                }
            }
        }
    };
}

lanes_equal_the_plain_twin!(
    g722_lanes_equal_the_plain_twin_in_every_bit,
    g722,
    |_| g722::Encoder::default(),
    |_| g722::Decoder::default()
);
/// Streams of both packings share groups.
const fn packing(stream: usize) -> g726::Packing {
    if stream.is_multiple_of(3) { g726::Packing::Aal2 } else { g726::Packing::Rfc3551 }
}
lanes_equal_the_plain_twin!(
    g726_lanes_equal_the_plain_twin_in_every_bit,
    g726,
    |stream| g726::Encoder::new(packing(stream)),
    |stream| g726::Decoder::new(packing(stream))
);

#[test]
fn a_full_group_of_either_codec_fits_a_small_stack() {
    on_small_stack(|| {
        for level in Level::all_available() {
            let count = level.lanes();
            let (pcm, payload) = (vec![1000; 640], vec![0x5a; 320]);
            let (mut bytes, mut samples) = (vec![vec![0; 320]; count], vec![vec![0; 640]; count]);

            let mut states = vec![g722::Encoder::default(); count];
            let jobs = states.iter_mut().zip(&mut bytes);
            let mut jobs: Vec<_> = jobs.map(|(state, out)| g722::EncodeJob::new(state, &pcm, out)).collect();
            g722::encode(level, &mut jobs);
            let mut states = vec![g722::Decoder::default(); count];
            let jobs = states.iter_mut().zip(&mut samples);
            let mut jobs: Vec<_> =
                jobs.map(|(state, pcm)| g722::DecodeJob::new(state, &payload, pcm)).collect();
            g722::decode(level, &mut jobs);

            let mut states = vec![g726::Encoder::new(packing(0)); count];
            let jobs = states.iter_mut().zip(&mut bytes);
            let mut jobs: Vec<_> = jobs.map(|(state, out)| g726::EncodeJob::new(state, &pcm, out)).collect();
            g726::encode(level, &mut jobs);
            let mut states = vec![g726::Decoder::new(packing(0)); count];
            let jobs = states.iter_mut().zip(&mut samples);
            let mut jobs: Vec<_> =
                jobs.map(|(state, pcm)| g726::DecodeJob::new(state, &payload, pcm)).collect();
            g726::decode(level, &mut jobs);
        }
    });
}
