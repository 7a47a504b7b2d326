//! Against libspeex 1.2.1 as Debian 12 packages it: small vectors that travel with the source, and the longer ones of
//! `../shared` where they are.

use std::path::PathBuf;

use oracle::samples;
use speex::{BYTES_MAX, Decoder, Encoder, FRAME, Quality};

const SPEECH: &[u8] = include_bytes!("../../codec/tests/data/speech.sln");

fn encode(quality: Quality, pcm: &[i16]) -> Vec<u8> {
    let mut encoder = Encoder::new(quality);
    let mut coded = Vec::new();
    for frame in pcm.as_chunks::<FRAME>().0 {
        let mut out = [0; BYTES_MAX];
        let count = encoder.encode(frame, &mut out);
        assert_eq!(count, quality.bytes());
        coded.extend_from_slice(&out[..count]);
    }
    coded
}

/// Decodes frames of `bytes` bytes; those for which `lost` holds are concealed.
fn decode(coded: &[u8], bytes: usize, enhance: bool, lost: impl Fn(u32) -> bool) -> Vec<i16> {
    let mut decoder = Decoder::new();
    decoder.set_enhancer(enhance);
    let mut pcm = Vec::new();
    for (number, payload) in coded.chunks_exact(bytes).enumerate() {
        let mut frame = [0; FRAME];
        if lost(number as u32) {
            decoder.conceal(&mut frame);
        } else {
            assert_eq!(decoder.decode(payload, &mut frame), Ok(()), "frame {number}");
        }
        pcm.extend_from_slice(&frame);
    }
    pcm
}

#[test]
fn encoders_equal_libspeex() {
    for (quality, expected) in [
        (Quality::Q3, &include_bytes!("data/speech.q3.spx")[..]),
        (Quality::Q8, include_bytes!("data/speech.q8.spx")),
    ] {
        let coded = encode(quality, &samples(SPEECH));
        assert_eq!(coded.len(), expected.len());
        let first = coded.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(first.map(|byte| byte / quality.bytes()), None, "{quality:?}: first differing frame");
    }
}

/// FNV-1a of the samples as bytes.
fn fingerprint(pcm: &[i16]) -> u64 {
    pcm.iter()
        .flat_map(|sample| sample.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn every_submode_decodes_as_libspeex_does_with_losses_between() {
    // A fifth of the frames, scattered; runs of up to two.
    let lost = |number: u32| (number.wrapping_mul(2_654_435_761) >> 24).is_multiple_of(5);
    for (name, bytes, coded, plain, enhanced) in [
        ("q0", 6, &include_bytes!("data/speech.q0.spx")[..], 0x0566_4ff9_54b7_4473, 0x0566_4ff9_54b7_4473),
        ("q1", 10, include_bytes!("data/speech.q1.spx"), 0x6ef5_4c09_24a0_409c, 0x8a74_9340_0f31_d180),
        ("q2", 15, include_bytes!("data/speech.q2.spx"), 0x5c76_fe4b_6bd9_6a86, 0x3d1e_262b_edcf_8ee4),
        ("q3", 20, include_bytes!("data/speech.q3.spx"), 0xff26_4636_1106_3c3b, 0xdd2d_c467_e55d_be76),
        ("q5", 28, include_bytes!("data/speech.q5.spx"), 0xadd1_5f29_e4d5_1440, 0xee59_58a3_9e25_e280),
        ("q8", 38, include_bytes!("data/speech.q8.spx"), 0x245c_cfb9_10a4_be65, 0x6d27_2c05_84cf_f647),
        ("q9", 46, include_bytes!("data/speech.q9.spx"), 0x080d_9fbf_695f_6c15, 0x1417_7a74_0601_f55e),
        ("q10", 62, include_bytes!("data/speech.q10.spx"), 0xf9c1_3927_7b63_4553, 0x5d1b_d407_e883_852c),
    ] {
        for (enhance, expected) in [(false, plain), (true, enhanced)] {
            let pcm = decode(coded, bytes, enhance, lost);
            assert_eq!(fingerprint(&pcm), expected, "{name}, enhancer {enhance}");
        }
    }
}

#[test]
fn the_shared_golden_files_are_met_in_every_frame() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/golden");
    let read = |name: String| std::fs::read(folder.join(name)).ok();
    for clip in ["es_en-gb", "libilbc_sample"] {
        for (quality, name) in [(Quality::Q3, "q3c2"), (Quality::Q8, "q8c2")] {
            let files = [".pcm", &format!(".{name}.spx-raw"), &format!(".{name}.spx.enh0.pcm")]
                .map(|extension| read(format!("{clip}{extension}")));
            let [Some(pcm), Some(coded), Some(decoded)] = files else {
                println!("skipped: {clip} {name} is not in {}", folder.display());
                continue;
            };
            let ours = encode(quality, &samples(&pcm));
            let differing = ours.chunks(quality.bytes()).zip(coded.chunks(quality.bytes()));
            assert_eq!(differing.filter(|(a, b)| a != b).count(), 0, "{clip} {name}: frames coded otherwise");
            let (ours, decoded) = (decode(&coded, quality.bytes(), false, |_| false), samples(&decoded));
            let differing = ours.chunks(FRAME).zip(decoded.chunks(FRAME));
            assert_eq!(
                differing.filter(|(a, b)| a != b).count(),
                0,
                "{clip} {name}: frames decoded otherwise"
            );
        }
    }
}
