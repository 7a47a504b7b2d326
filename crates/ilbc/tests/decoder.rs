//! The plain decoder against the reference of RFC 3951, and against payloads that are none.

mod common;

use common::{Random, TestMode, seed, shared, sum};
use ilbc::{Decoder, Mode20, Mode30, Unusable};

/// One column of a file of sums: with or without enhancer and losses.
fn follows_sums<M: TestMode>(enhance: bool, with_losses: bool, column: usize) {
    let mut decoder = Decoder::<M>::new(enhance);
    let mut pcm = M::SILENCE;
    let lines = M::SUMS.lines().filter(|line| !line.starts_with('#'));
    let mut frames = 0;
    for (payload, line) in M::PROMPT.chunks_exact(M::BYTES).zip(lines) {
        let words: Vec<&str> = line.split(' ').collect();
        if with_losses && words[0] == "x" {
            decoder.conceal(&mut pcm);
        } else {
            // Some payloads are damaged so that they must be concealed; the reference does the same.
            let _ = decoder.decode(payload, &mut pcm);
        }
        let expected = u32::from_str_radix(words[column], 16).unwrap();
        assert_eq!(
            sum(pcm.as_ref()),
            expected,
            "{} ms frame {frames}, enhance {enhance}, losses {with_losses}",
            M::NAME
        );
        frames += 1;
    }
    assert!(frames >= 90, "{frames}");
}

#[test]
fn rfc3951_4_frames_and_concealment_equal_the_reference() {
    follows_sums::<Mode30>(false, false, 1);
    follows_sums::<Mode30>(false, true, 2);
    follows_sums::<Mode30>(true, false, 3);
    follows_sums::<Mode30>(true, true, 4);
    follows_sums::<Mode20>(false, false, 1);
    // Concealment of 20 ms frames without enhancer is not defined by the reference.
    follows_sums::<Mode20>(true, false, 2);
    follows_sums::<Mode20>(true, true, 3);
}

fn equals_files<M: TestMode>(enhance: bool, kind: &str) {
    for clip in ["libilbc_sample", "es_en-gb"] {
        let name = format!("{clip}.float.ilbc{}", M::NAME);
        let (Some(payloads), Some(expected)) = (shared(&name), shared(&format!("{name}.{kind}.pcm"))) else {
            println!("skipped: no golden files beside the project");
            return;
        };
        let mut decoder = Decoder::<M>::new(enhance);
        let mut pcm = M::SILENCE;
        let frames = payloads.chunks_exact(M::BYTES).zip(expected.chunks_exact(2 * pcm.as_ref().len()));
        for (number, (payload, expected)) in frames.enumerate() {
            assert_eq!(decoder.decode(payload, &mut pcm), Ok(()));
            let bytes: Vec<u8> = pcm.as_ref().iter().flat_map(|sample| sample.to_le_bytes()).collect();
            assert_eq!(bytes, expected, "{name} frame {number}");
        }
    }
}

#[test]
fn golden_files_are_met_sample_by_sample() {
    equals_files::<Mode20>(true, "enh");
    equals_files::<Mode30>(false, "noenh");
}

#[test]
fn a_payload_that_is_no_frame_is_concealed_and_counted() {
    fn check<M: TestMode>() {
        let frame = &M::PROMPT[20 * M::BYTES..21 * M::BYTES];
        let mut marked = frame.to_vec();
        marked[M::BYTES - 1] |= 1;
        let mut longer = frame.to_vec();
        longer.push(0);
        let nowhere = vec![0; M::BYTES];
        for (name, payload) in [
            ("empty", &[][..]),
            ("short", &frame[..M::BYTES - 1]),
            ("long", &longer),
            ("marked as empty", &marked),
            ("start state in sub-block 0", &nowhere),
        ] {
            for enhance in [false, true] {
                let mut decoder = Decoder::<M>::new(enhance);
                let (mut pcm, mut concealed) = (M::SILENCE, M::SILENCE);
                for payload in M::PROMPT.chunks_exact(M::BYTES).take(20) {
                    assert_eq!(decoder.decode(payload, &mut pcm), Ok(()));
                }
                let mut twin = decoder.clone();
                assert_eq!(decoder.decode(payload, &mut pcm), Err(Unusable), "{name}");
                twin.conceal(&mut concealed);
                assert_eq!(pcm.as_ref(), concealed.as_ref(), "{} ms {name} enhance {enhance}", M::NAME);
                assert!(pcm.as_ref().iter().any(|&sample| sample != 0), "{name}: speech goes on");
            }
        }
    }
    check::<Mode20>();
    check::<Mode30>();
}

#[test]
fn a_loss_before_the_first_frame_is_silence() {
    let mut pcm = [1; 240];
    Decoder::<Mode30>::new(true).conceal(&mut pcm);
    assert_eq!(pcm, [0; 240]);
    let mut pcm = [1; 160];
    Decoder::<Mode20>::new(false).conceal(&mut pcm);
    assert_eq!(pcm, [0; 160]);
}

/// RFC 3951 4.5: what is concealed fades from 40 ms on.
#[test]
fn a_long_loss_fades() {
    fn check<M: TestMode>(enhance: bool) {
        let mut decoder = Decoder::<M>::new(enhance);
        let mut pcm = M::SILENCE;
        let loud = M::PROMPT.chunks_exact(M::BYTES).take(25);
        for payload in loud {
            assert_eq!(decoder.decode(payload, &mut pcm), Ok(()));
        }
        let energy = |pcm: &M::Pcm| pcm.as_ref().iter().map(|&s| f64::from(s) * f64::from(s)).sum::<f64>();
        decoder.conceal(&mut pcm);
        let first = energy(&pcm);
        (0..50).for_each(|_| decoder.conceal(&mut pcm));
        assert!(energy(&pcm) < first / 50.0, "{} ms, enhance {enhance}: {first} {}", M::NAME, energy(&pcm));
    }
    for enhance in [false, true] {
        check::<Mode20>(enhance);
        check::<Mode30>(enhance);
    }
}

/// Whatever comes, samples come out, and the decoder finds back to speech.
#[test]
fn garbage_neither_panics_nor_stays() {
    fn check<M: TestMode>(random: &mut Random, enhance: bool) {
        let (mut decoder, mut clean) = (Decoder::<M>::new(enhance), Decoder::<M>::new(enhance));
        let (mut pcm, mut expected) = (M::SILENCE, M::SILENCE);
        let mut payload = vec![0; M::BYTES];
        for _ in 0..2000 {
            random.fill(&mut payload);
            payload[M::BYTES - 1] &= if random.below(8) == 0 { 0xff } else { 0xfe };
            let length = if random.below(50) == 0 { random.below(M::BYTES) } else { M::BYTES };
            let _ = decoder.decode(&payload[..length], &mut pcm);
            if random.below(10) == 0 {
                decoder.conceal(&mut pcm);
            }
        }
        let (mut difference, mut level) = (0.0, 0.0);
        for (number, payload) in M::PROMPT.chunks_exact(M::BYTES).take(40).enumerate() {
            assert_eq!(decoder.decode(payload, &mut pcm), Ok(()));
            assert_eq!(clean.decode(payload, &mut expected), Ok(()));
            for (&a, &b) in pcm.as_ref().iter().zip(expected.as_ref()).filter(|_| number >= 20) {
                difference += (f64::from(a) - f64::from(b)).powi(2);
                level += f64::from(b).powi(2);
            }
        }
        assert!(difference < level / 1000.0, "{} ms, enhance {enhance}: {difference} of {level}", M::NAME);
    }
    let mut random = Random(seed("garbage"));
    for enhance in [false, true] {
        check::<Mode20>(&mut random, enhance);
        check::<Mode30>(&mut random, enhance);
    }
}
