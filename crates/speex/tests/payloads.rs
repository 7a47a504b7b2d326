//! What a decoder makes of payloads that are more, less or other than one frame (RFC 5574 section 3, and the Speex
//! manual on wideband layers and in-band messages).

use speex::{BYTES_MAX, BitReader, Decoder, Encoder, FRAME, Fault, Quality};

/// Bits one by one, padded with a terminator.
struct Bits(Vec<u8>);

impl Bits {
    fn put(mut self, value: u64, count: u32) -> Self {
        self.0.extend((0..count).rev().map(|bit| (value >> bit & 1) as u8));
        self
    }
    fn frame(self, bytes: &[u8], bits: usize) -> Self {
        let mut all = bytes.iter().fold(self, |bits, byte| bits.put(u64::from(*byte), 8));
        all.0.truncate(all.0.len() - (bytes.len() * 8 - bits));
        all
    }
    fn bytes(mut self) -> Vec<u8> {
        if !self.0.len().is_multiple_of(8) {
            self = self.put(0, 1);
            while !self.0.len().is_multiple_of(8) {
                self = self.put(1, 1);
            }
        }
        self.0.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
    }
}

fn frames(quality: Quality, count: usize) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(quality);
    (0..count)
        .map(|number| {
            let pcm = std::array::from_fn(|i| {
                let t = (number * FRAME + i) as f32;
                (9000.0 * (t * 0.09).sin() * (t * 0.0031).cos()) as i16
            });
            let mut out = [0; BYTES_MAX];
            let length = encoder.encode(&pcm, &mut out);
            out[..length].to_vec()
        })
        .collect()
}

#[test]
fn frames_of_a_packet_follow_each_other_without_padding() {
    let coded = frames(Quality::Q8, 3);
    let packet = coded.iter().fold(Bits(Vec::new()), |bits, frame| bits.frame(frame, 300)).bytes();
    assert_eq!(packet.len(), 113);
    let (mut packed, mut single) = (Decoder::new(), Decoder::new());
    let mut reader = BitReader::new(&packet);
    for frame in &coded {
        let (mut a, mut b) = ([0; FRAME], [1; FRAME]);
        assert_eq!(packed.decode_next(&mut reader, &mut a), Ok(()));
        assert_eq!(single.decode(frame, &mut b), Ok(()));
        assert_eq!(a, b);
    }
    let mut untouched = [77; FRAME];
    assert_eq!(packed.decode_next(&mut reader, &mut untouched), Err(Fault::NoFrame), "the terminator");
    assert_eq!(untouched, [77; FRAME]);
}

#[test]
fn wideband_layers_and_in_band_messages_before_a_frame_are_left_out() {
    let frame = &frames(Quality::Q3, 1)[0];
    let mut expected = [0; FRAME];
    Decoder::new().decode(frame, &mut expected).unwrap();
    let none = || Bits(Vec::new());
    for (name, before) in [
        ("wideband layer of 36 bits", none().put(0b1_001, 4).put(!0, 32)),
        ("wideband layer without content", none().put(0b1_000, 4)),
        ("two layers", none().put(0b1_011, 4).put(0, 64).put(0, 64).put(0, 60).put(0b1_001, 4).put(5, 32)),
        ("message of one bit", none().put(0b0_1110, 5).put(1, 4).put(1, 1)),
        ("message of 64 bits", none().put(0b0_1110, 5).put(15, 4).put(!0, 64)),
        ("application's message of two bytes", none().put(0b0_1101, 5).put(2, 4).put(0, 5).put(0xffff, 16)),
        ("message after layer", none().put(0b1_001, 4).put(0, 32).put(0b0_1110, 5).put(8, 4).put(0, 8)),
    ] {
        let mut pcm = [0; FRAME];
        let payload = before.frame(frame, 160).bytes();
        assert_eq!(Decoder::new().decode(&payload, &mut pcm), Ok(()), "{name}");
        assert_eq!(pcm, expected, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_named_and_concealed() {
    let good = frames(Quality::Q3, 2);
    for (name, payload, fault) in [
        ("nothing", vec![], Fault::NoFrame),
        ("terminator", vec![0b0111_1111], Fault::NoFrame),
        ("sub-mode 9", vec![0b0100_1000; 20], Fault::BadMode),
        ("sub-mode 12", vec![0b0110_0000; 20], Fault::BadMode),
        ("wideband sub-mode 7", vec![0b1111_0000; 20], Fault::BadMode),
        ("three wideband layers", vec![0b1000_1000; 20], Fault::BadMode),
        ("a frame short of a byte", good[1][..19].to_vec(), Fault::Truncated),
        ("a message that is cut off", vec![0b0111_0111, 0b1000_0000], Fault::NoFrame),
        ("a wideband layer that is cut off", vec![0b1100_0000; 10], Fault::NoFrame),
    ] {
        let mut decoder = Decoder::new();
        let (mut pcm, mut expected) = ([0; FRAME], [0; FRAME]);
        decoder.decode(&good[0], &mut pcm).unwrap();
        let mut concealing = decoder.clone();
        assert_eq!(decoder.decode(&payload, &mut pcm), Err(fault), "{name}");
        concealing.conceal(&mut expected);
        assert_eq!(pcm, expected, "{name}: concealed");
        assert_eq!(decoder.decode(&good[1], &mut pcm), Ok(()), "{name}: and on it goes");
    }
}

#[test]
fn silence_follows_from_submode_0_and_from_comfort_noise_that_is_no_longer_sent() {
    let good = frames(Quality::Q8, 8);
    let mut decoder = Decoder::new();
    let mut pcm = [0; FRAME];
    for frame in &good {
        decoder.decode(frame, &mut pcm).unwrap();
    }
    let level = |pcm: &[i16; FRAME]| pcm.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let before = level(&pcm);
    // Five zero bits: sub-mode 0 of a frame that has no more than its number.
    for _ in 0..100 {
        assert_eq!(decoder.decode(&[0b0000_0111], &mut pcm), Ok(()));
    }
    assert!(level(&pcm) < before, "noise of the last frame's colour does not grow");
}
