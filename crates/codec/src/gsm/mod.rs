//! GSM 06.10 full rate (ETSI EN 300 961): 160 samples at 8 kHz ⇄ 260 bits, bit-exact by definition.
//!
//! Functions carry the section of the standard they implement. `frame` knows bits, `analysis` and `synthesis` know
//! the filters, `pulses` the excitation, `math` the words; these are the plain form. `group` is the same for many streams
//! at once, on the same state: [`encode`] and [`decode`].

mod analysis;
mod frame;
mod group;
mod math;
mod pulses;
mod reflection;
mod synthesis;

pub use analysis::Encoder;
pub use frame::{Frame, Subframe};
pub use group::{DecodeJob, EncodeJob, decode, encode};
pub use synthesis::Decoder;

/// Samples of one frame: 20 ms at 8 kHz.
pub const FRAME_SAMPLES: usize = 160;
/// Bytes of one frame as RTP and `.gsm` files carry it: 4 bits of signature, 260 bits of parameters.
pub const FRAME_BYTES: usize = 33;
/// Bytes of two frames as `.WAV` files carry them (WAVE format 0x31).
pub const WAV49_BYTES: usize = 65;
/// The upper four bits of a frame's first byte (RFC 3551 §4.5.8.1).
pub const SIGNATURE: u8 = 0xd;
/// A frame that decodes to silence from the initial state on: flat filter, no excitation.
pub const SILENCE: [u8; FRAME_BYTES] = [
    0xd8, 0x20, 0xa2, 0xe1, 0x5a, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92,
    0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24,
];

/// Samples of one sub-frame: 5 ms.
const SUBFRAME: usize = 40;
/// Samples of the past that the long-term predictor reaches back to.
const LTP_PAST: usize = 120;
/// Words of state besides that past, as lanes hold it, with some to spare: whole blocks of a transpose.
const MEMORY: usize = 24;
/// Coded LTP gain → gain (table 4.3b, QLB).
const QLB: [i16; 4] = [3277, 11469, 21299, 32767];

/// Whether a frame bears its signature; one without is concealed.
pub fn has_signature(frame: &[u8; FRAME_BYTES]) -> bool {
    frame[0] >> 4 == SIGNATURE
}

/// Two frames from a `.gsm` file's packing to a `.WAV` file's. A frame without its signature becomes silence.
pub fn to_wav49(frames: [&[u8; FRAME_BYTES]; 2], bytes: &mut [u8; WAV49_BYTES]) {
    let pair =
        frames.map(|frame| Frame::unpack(frame).or_else(|| Frame::unpack(&SILENCE)).unwrap_or_default());
    Frame::pack_pair(pair, bytes);
}

/// Two frames from a `.WAV` file's packing to a `.gsm` file's.
pub fn from_wav49(bytes: &[u8; WAV49_BYTES], frames: &mut [[u8; FRAME_BYTES]; 2]) {
    for (frame, out) in Frame::unpack_pair(bytes).into_iter().zip(frames) {
        frame.pack(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, golden, rms, samples, sine};

    fn encode(pcm: &[i16]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let mut coded = vec![0; pcm.len() / FRAME_SAMPLES * FRAME_BYTES];
        for (frame, out) in pcm.as_chunks().0.iter().zip(coded.as_chunks_mut().0) {
            encoder.encode(frame, out);
        }
        coded
    }

    fn decode(coded: &[u8]) -> Vec<i16> {
        let mut decoder = Decoder::default();
        let mut pcm = vec![0; coded.len() / FRAME_BYTES * FRAME_SAMPLES];
        for (frame, out) in coded.as_chunks().0.iter().zip(pcm.as_chunks_mut().0) {
            assert!(decoder.decode(frame, out));
        }
        pcm
    }

    #[test]
    fn gsm0610_encoder_equals_the_reference_in_every_frame_of_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(pcm), Some(expected)) =
                (golden(&format!("{name}.pcm")), golden(&format!("{name}.gsm")))
            else {
                return;
            };
            let coded = encode(&samples(&pcm));
            assert_eq!(coded.len(), expected.len(), "{name}");
            let frames = coded.chunks(FRAME_BYTES).zip(expected.chunks(FRAME_BYTES));
            let wrong: Vec<usize> = frames.enumerate().filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect();
            assert_eq!(wrong, [], "{name}: differing frames of {}", expected.len() / FRAME_BYTES);
        }
    }

    #[test]
    fn gsm0610_decoder_equals_the_reference_in_every_sample_of_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(coded), Some(expected)) =
                (golden(&format!("{name}.gsm")), golden(&format!("{name}.gsm.pcm")))
            else {
                return;
            };
            let pcm = decode(&coded);
            let wrong = pcm.iter().zip(samples(&expected)).position(|(&a, b)| a != b);
            assert_eq!(wrong, None, "{name}: first differing sample");
        }
    }

    #[test]
    fn gsm0610_a_tone_keeps_its_level_and_silence_stays_silent() {
        let pcm = sine(440.0, 8000, 8000.0, 8000);
        let back = decode(&encode(&pcm));
        let ratio = rms(&back[4000..]) / rms(&pcm[4000..]);
        assert!((0.8..1.2).contains(&ratio), "{ratio}");
        assert!(decode(&encode(&[0; 1600])).iter().all(|s| s.abs() <= 16));
        assert!(decode(&SILENCE.repeat(50)).iter().all(|s| s.abs() <= 16));
    }

    #[test]
    fn any_parameters_and_full_scale_input_stay_in_bounds() {
        let mut noise = Noise(6);
        let mut decoder = Decoder::default();
        let mut pcm = [0; FRAME_SAMPLES];
        for _ in 0..2000 {
            let mut frame = [0; FRAME_BYTES];
            frame.fill_with(|| noise.bits() as u8);
            frame[0] = (frame[0] & 0x0f) | (SIGNATURE << 4);
            assert!(decoder.decode(&frame, &mut pcm));
        }
        let wild: Vec<i16> = (0..16_000)
            .map(|n| match n / 1600 % 4 {
                0 => noise.bits() as i16,
                1 => i16::MIN,
                2 if n % 2 == 0 => i16::MAX,
                _ => i16::MIN,
            })
            .collect();
        assert_eq!(encode(&wild).len(), 100 * FRAME_BYTES);
    }

    #[test]
    fn wav49_and_gsm_packing_convert_both_ways() {
        let coded = encode(&sine(700.0, 8000, 9000.0, 320));
        let (first, second) = (coded[..33].try_into().unwrap(), coded[33..].try_into().unwrap());
        let (mut wav49, mut frames) = ([0; WAV49_BYTES], [[0; FRAME_BYTES]; 2]);
        to_wav49([&first, &second], &mut wav49);
        from_wav49(&wav49, &mut frames);
        assert_eq!(frames, [first, second]);
    }

    #[test]
    fn gsm0611_a_lost_frame_repeats_and_long_loss_fades_to_silence() {
        let coded = encode(&sine(440.0, 8000, 8000.0, 1600));
        let mut decoder = Decoder::default();
        let mut pcm = [0; FRAME_SAMPLES];
        for frame in coded.as_chunks().0 {
            decoder.decode(frame, &mut pcm);
        }
        let before = rms(&pcm);
        let mut levels = Vec::new();
        for _ in 0..20 {
            decoder.conceal(&mut pcm);
            levels.push(rms(&pcm));
        }
        assert!(levels[0] > before / 2.0, "first lost frame: {:.0} after {before:.0}", levels[0]);
        assert!(levels[5] < before / 2.0, "sixth lost frame: {:.0}", levels[5]);
        assert!(levels[17] < 32.0, "after 340 ms: {:.0}", levels[17]);
        assert!(!decoder.decode(&[0; FRAME_BYTES], &mut pcm), "no signature");
    }
}
