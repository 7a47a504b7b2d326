//! G.726, ADPCM and LPC-10 against small vectors that travel with the source, coded and decoded by spandsp 0.0.6 as
//! Debian 12 packages it, and against bytes that nobody coded.

use codec::{adpcm, g726, lpc10};
use kit::Random;
use oracle::samples;

const SPEECH: &[u8] = include_bytes!("data/speech.sln");

#[test]
fn g726_equals_spandsp_in_both_packings() {
    let coded = include_bytes!("data/speech.g726");
    let expected = samples(include_bytes!("data/speech.g726.sln"));
    let swapped: Vec<u8> = coded.iter().map(|byte| byte.rotate_left(4)).collect();
    for (packing, coded) in [(g726::Packing::Rfc3551, &coded[..]), (g726::Packing::Aal2, &swapped)] {
        let mut ours = vec![0; coded.len()];
        assert_eq!(g726::Encoder::new(packing).encode(&samples(SPEECH), &mut ours), coded.len());
        assert_eq!(
            ours.iter().zip(coded).position(|(a, b)| a != b),
            None,
            "{packing:?}: first differing byte"
        );
        let mut linear = vec![0; expected.len()];
        g726::Decoder::new(packing).decode(coded, &mut linear);
        // Annex A limits what the reference lets wrap around.
        let wrapped = |ours: i16, theirs: i16| ours.unsigned_abs() > 32_700 && (ours ^ theirs) < 0;
        let wrong = linear.iter().zip(&expected).position(|(&a, &b)| a != b && !wrapped(a, b));
        assert_eq!(wrong, None, "{packing:?}: first differing sample");
    }
}

#[test]
fn lpc10_frames_equal_spandsp() {
    let expected = include_bytes!("data/speech.lpc10").as_chunks::<{ lpc10::FRAME_BYTES }>().0;
    let mut encoder = lpc10::Encoder::default();
    let pcm = samples(SPEECH);
    for (index, (frame, expected)) in pcm.as_chunks().0.iter().zip(expected).enumerate() {
        let mut coded = [0; lpc10::FRAME_BYTES];
        encoder.encode(frame, &mut coded);
        assert_eq!(&coded, expected, "frame {index}");
    }
}

#[test]
fn lpc10_samples_equal_spandsp_to_the_last_bit_but_one() {
    let frames = include_bytes!("data/speech.lpc10").as_chunks().0;
    let expected = samples(include_bytes!("data/speech.lpc10.sln"));
    let mut decoder = lpc10::Decoder::default();
    for (index, (frame, expected)) in frames.iter().zip(expected.as_chunks::<180>().0).enumerate() {
        let mut linear = [0; lpc10::FRAME_SAMPLES];
        decoder.decode(frame, &mut linear);
        for (at, (ours, theirs)) in linear.iter().zip(expected).enumerate() {
            assert!(ours.abs_diff(*theirs) <= 1, "frame {index}, sample {at}: {ours}, not {theirs}");
        }
    }
}

#[test]
fn a_lost_lpc10_frame_is_repeated_twice_then_muted() {
    let frames = include_bytes!("data/speech.lpc10").as_chunks().0;
    let mut decoder = lpc10::Decoder::default();
    let mut linear = [0; lpc10::FRAME_SAMPLES];
    for frame in &frames[..12] {
        decoder.decode(frame, &mut linear);
    }
    let mut repeating = decoder.clone();
    let level = |linear: &[i16]| linear.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>().sqrt();
    let mut levels = Vec::new();
    for _ in 0..6 {
        decoder.conceal(&mut linear);
        levels.push(level(&linear));
    }
    repeating.decode(&frames[11], &mut linear);
    assert_eq!(level(&linear), levels[0], "the first lost frame is the last one again");
    assert!(levels[1] > levels[5] * 20.0, "{levels:?}");
}

#[test]
fn any_bytes_are_frames_and_the_sound_stays_finite() {
    for seed in 0..20 {
        let bytes = Random(seed).bytes(7 * 2000);
        let mut lpc = lpc10::Decoder::default();
        for (index, frame) in bytes.as_chunks().0.iter().enumerate() {
            let mut linear = [0; lpc10::FRAME_SAMPLES];
            lpc.decode(frame, &mut linear);
            if index % 9 == 0 {
                lpc.conceal(&mut linear);
            }
        }
        // After all that, silence is silent.
        let mut linear = [0; lpc10::FRAME_SAMPLES];
        for _ in 0..40 {
            lpc.decode(&lpc10::SILENCE, &mut linear);
        }
        assert!(linear.iter().all(|s| s.unsigned_abs() < 100), "seed {seed}: {linear:?}");
        let mut linear = vec![0; bytes.len() * 2];
        assert_eq!(g726::Decoder::new(g726::Packing::Rfc3551).decode(&bytes, &mut linear), linear.len());
        assert_eq!(adpcm::Decoder::default().decode(&bytes, &mut linear), linear.len());
    }
}

#[test]
fn full_scale_noise_and_silence_are_encoded_by_all() {
    let loud: Vec<i16> =
        Random(3).bytes(18_000).iter().map(|&byte| if byte & 1 == 0 { i16::MIN } else { i16::MAX }).collect();
    for pcm in [loud, vec![0; 18_000], vec![i16::MIN; 18_000]] {
        let mut lpc = lpc10::Encoder::default();
        for frame in pcm.as_chunks().0 {
            lpc.encode(frame, &mut [0; lpc10::FRAME_BYTES]);
        }
        let mut coded = vec![0; pcm.len() / 2];
        assert_eq!(g726::Encoder::new(g726::Packing::Aal2).encode(&pcm, &mut coded), coded.len());
        assert_eq!(adpcm::Encoder::default().encode(&pcm, &mut coded), coded.len());
    }
}
