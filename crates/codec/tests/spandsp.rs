//! G.722, G.726 and LPC-10 against spandsp, over half a minute of speech and over sounds that nobody makes.

use codec::{g722, g726, lpc10};
use oracle::Oracle;

/// Speech, then full-scale steps, a tone, and noise that grows.
fn material() -> Vec<i16> {
    let mut pcm = oracle::speech();
    pcm.extend((0..16_000).map(|n| if n / 40 % 2 == 0 { i16::MAX } else { i16::MIN }));
    pcm.extend((0..16_000).map(|n| (20_000.0 * f64::sin(f64::from(n) * 0.7)) as i16));
    let mut state = 1u32;
    pcm.extend((0..32_000).map(|n| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) as i16) >> (15 - n / 2000).max(0)
    }));
    // Whole packets of 20 ms at 16 kHz and whole frames of LPC-10.
    pcm.truncate(pcm.len() / 2880 * 2880);
    pcm
}

/// Where samples differ first, but for those that wrapped around there and are limited here.
fn difference(ours: &[i16], theirs: &[i16], tolerance: u16) -> Option<(usize, i16, i16)> {
    let wrapped = |a: i16, b: i16| a.unsigned_abs() > 32_700 && (a ^ b) < 0;
    let differ = |a: i16, b: i16| a.abs_diff(b) > tolerance && !wrapped(a, b);
    let at = ours.iter().zip(theirs).position(|(&a, &b)| differ(a, b))?;
    Some((at, ours[at], theirs[at]))
}

#[test]
fn g722_equals_spandsp_both_ways() {
    let Some(spandsp) = Oracle::build(&oracle::SPANDSP) else { return };
    let pcm = material();
    let expected = spandsp.run("g722-encode", &oracle::bytes(&pcm));
    let mut coded = vec![0; pcm.len() / 2];
    g722::Encoder::default().encode(&pcm, &mut coded);
    assert_eq!(coded.len(), expected.len());
    assert_eq!(coded.iter().zip(&expected).position(|(a, b)| a != b), None, "first differing byte");
    let expected = oracle::samples(&spandsp.run("g722-decode", &coded));
    let mut linear = vec![0; expected.len()];
    g722::Decoder::default().decode(&coded, &mut linear);
    assert_eq!(difference(&linear, &expected, 0), None);
}

#[test]
fn g726_equals_spandsp_both_ways_in_both_packings() {
    let Some(spandsp) = Oracle::build(&oracle::SPANDSP) else { return };
    let pcm = material();
    for (packing, name) in [(g726::Packing::Rfc3551, "g726"), (g726::Packing::Aal2, "g726aal2")] {
        let expected = spandsp.run(&format!("{name}-encode"), &oracle::bytes(&pcm));
        let mut coded = vec![0; pcm.len() / 2];
        g726::Encoder::new(packing).encode(&pcm, &mut coded);
        assert_eq!(coded.len(), expected.len(), "{name}");
        let wrong = coded.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{name}: first differing byte");
        let expected = oracle::samples(&spandsp.run(&format!("{name}-decode"), &coded));
        let mut linear = vec![0; expected.len()];
        g726::Decoder::new(packing).decode(&coded, &mut linear);
        assert_eq!(difference(&linear, &expected, 0), None, "{name}");
    }
}

#[test]
fn lpc10_frames_equal_spandsp_but_for_a_few_where_rounding_decides() {
    let Some(spandsp) = Oracle::build(&oracle::SPANDSP) else { return };
    let pcm = oracle::speech();
    let expected = spandsp.run("lpc10-encode", &oracle::bytes(&pcm));
    let expected = expected.as_chunks::<{ lpc10::FRAME_BYTES }>().0;
    let mut encoder = lpc10::Encoder::default();
    let frames = pcm.as_chunks().0.iter().map(|frame| {
        let mut coded = [0; lpc10::FRAME_BYTES];
        encoder.encode(frame, &mut coded);
        coded
    });
    let differing = frames.zip(expected).filter(|(ours, theirs)| ours != *theirs).count();
    assert!(differing * 100 <= expected.len(), "{differing} of {} frames differ", expected.len());
}

#[test]
fn lpc10_samples_equal_spandsp_to_the_last_bit_but_one() {
    let Some(spandsp) = Oracle::build(&oracle::SPANDSP) else { return };
    let mut coded = spandsp.run("lpc10-encode", &oracle::bytes(&oracle::speech()));
    let decode = |coded: &[u8]| -> Vec<i16> {
        let mut decoder = lpc10::Decoder::default();
        let frames = coded.as_chunks().0.iter();
        frames
            .flat_map(|frame| {
                let mut linear = [0; lpc10::FRAME_SAMPLES];
                decoder.decode(frame, &mut linear);
                linear
            })
            .collect()
    };
    let expected = oracle::samples(&spandsp.run("lpc10-decode", &coded));
    assert_eq!(difference(&decode(&coded), &expected, 2), None);
    // A bad line: what is mended there is mended here, from one frame to the next.
    for (index, byte) in coded.iter_mut().enumerate() {
        if index * index % 11 == 4 {
            *byte ^= 1 << (index % 8);
        }
    }
    let expected = oracle::samples(&spandsp.run("lpc10-decode", &coded));
    let ours = decode(&coded);
    let error: f64 = ours.iter().zip(&expected).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    let power: f64 = expected.iter().map(|&s| f64::from(s).powi(2)).sum();
    assert!(error < power * 1e-3, "error {error:e} of {power:e}");
}
