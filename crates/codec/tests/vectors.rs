//! The codecs against small vectors that travel with the source: half a second of our own synthetic speech, then noise
//! and full-scale steps, coded and decoded by libgsm 1.0.22 (GSM 06.10) and spandsp 0.0.6 (G.722) as Debian 12
//! packages them.

use base::FormatId;
use codec::{Decoder, Encoder};
use oracle::samples;

const SPEECH: &[u8] = include_bytes!("data/speech.sln");
const SPEECH16: &[u8] = include_bytes!("data/speech.sln16");

#[test]
fn encoders_equal_the_references() {
    for (format, input, expected) in [
        (FormatId::GSM, SPEECH, &include_bytes!("data/speech.gsm")[..]),
        (FormatId::G722, SPEECH16, include_bytes!("data/speech.g722")),
    ] {
        let mut coded = vec![0; expected.len()];
        let count = Encoder::new(format).encode(&samples(input), &mut coded);
        assert_eq!(count, expected.len(), "{format}");
        assert_eq!(
            coded.iter().zip(expected).position(|(a, b)| a != b),
            None,
            "{format}: first differing byte"
        );
    }
}

#[test]
fn decoders_equal_the_references() {
    for (format, coded, expected) in [
        (FormatId::GSM, &include_bytes!("data/speech.gsm")[..], &include_bytes!("data/speech.gsm.sln")[..]),
        (FormatId::G722, include_bytes!("data/speech.g722"), include_bytes!("data/speech.g722.sln16")),
    ] {
        let expected = samples(expected);
        let mut linear = vec![0; expected.len()];
        let count = Decoder::new(format).decode(coded, &mut linear);
        assert_eq!(count, expected.len(), "{format}");
        assert_eq!(
            linear.iter().zip(&expected).position(|(a, b)| a != b),
            None,
            "{format}: first differing sample"
        );
    }
}

#[test]
fn the_wav49_packing_equals_the_reference() {
    let mut recording = codec::Recording::new("WAV").unwrap();
    let mut file = Vec::new();
    recording.write(&samples(SPEECH), &mut file);
    assert!(file == include_bytes!("data/speech.wav49"));
}
