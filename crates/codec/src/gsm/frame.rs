//! The 76 parameters of a frame and their two packings: 33 bytes from the top bit (RFC 3551, `.gsm`), and Microsoft's
//! 65 bytes for two frames from the bottom bit (WAVE format 0x31, `.WAV`/`.wav49`).

use super::{FRAME_BYTES, SIGNATURE, WAV49_BYTES};

/// Parameters of one sub-frame of 5 ms (GSM 06.10 table 1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subframe {
    /// LTP lag Nc, 7 bits; 40 to 120 are valid.
    pub lag: u8,
    /// LTP gain bc, 2 bits.
    pub gain: u8,
    /// RPE grid position Mc, 2 bits.
    pub grid: u8,
    /// Block amplitude xmaxc, 6 bits.
    pub amplitude: u8,
    /// RPE pulses xMc, 3 bits each.
    pub pulses: [u8; 13],
}

/// Parameters of one frame of 20 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame {
    /// Coded log-area ratios LARc.
    pub lar: [u8; 8],
    /// The four sub-frames in time order.
    pub sub: [Subframe; 4],
}

/// Bits of each LARc.
const LAR_BITS: [u32; 8] = [6, 6, 5, 5, 4, 4, 3, 3];

impl Frame {
    /// Hands every parameter with its width in bits to `each`, in the order of transmission.
    fn visit(&mut self, mut each: impl FnMut(&mut u8, u32)) {
        for (lar, bits) in self.lar.iter_mut().zip(LAR_BITS) {
            each(lar, bits);
        }
        for sub in &mut self.sub {
            each(&mut sub.lag, 7);
            each(&mut sub.gain, 2);
            each(&mut sub.grid, 2);
            each(&mut sub.amplitude, 6);
            for pulse in &mut sub.pulses {
                each(pulse, 3);
            }
        }
    }

    /// Packs from the top bit, after the signature.
    pub fn pack(mut self, bytes: &mut [u8; FRAME_BYTES]) {
        let (mut word, mut held) = (u32::from(SIGNATURE), 4);
        let mut out = bytes.iter_mut();
        self.visit(|value, bits| {
            word = (word << bits) | u32::from(*value);
            held += bits;
            while held >= 8 {
                held -= 8;
                if let Some(byte) = out.next() {
                    *byte = (word >> held) as u8;
                }
            }
        });
    }

    /// Unpacks from the top bit; `None` without the signature.
    pub fn unpack(bytes: &[u8; FRAME_BYTES]) -> Option<Self> {
        if bytes[0] >> 4 != SIGNATURE {
            return None;
        }
        let (mut word, mut held) = (u32::from(bytes[0] & 0x0f), 4);
        let mut rest = bytes[1..].iter();
        let mut frame = Self::default();
        frame.visit(|value, bits| {
            while held < bits {
                word = (word << 8) | u32::from(rest.next().copied().unwrap_or_default());
                held += 8;
            }
            held -= bits;
            *value = ((word >> held) & ((1 << bits) - 1)) as u8;
        });
        Some(frame)
    }

    /// Packs two frames from the bottom bit, without a signature.
    pub fn pack_pair(pair: [Self; 2], bytes: &mut [u8; WAV49_BYTES]) {
        let (mut word, mut held) = (0u32, 0);
        let mut out = bytes.iter_mut();
        for mut frame in pair {
            frame.visit(|value, bits| {
                word |= u32::from(*value) << held;
                held += bits;
                while held >= 8 {
                    if let Some(byte) = out.next() {
                        *byte = word as u8;
                    }
                    word >>= 8;
                    held -= 8;
                }
            });
        }
    }

    /// Unpacks two frames from the bottom bit. Every bit pattern is a pair of frames.
    pub fn unpack_pair(bytes: &[u8; WAV49_BYTES]) -> [Self; 2] {
        let (mut word, mut held) = (0u32, 0);
        let mut rest = bytes.iter();
        let mut pair = [Self::default(); 2];
        for frame in &mut pair {
            frame.visit(|value, bits| {
                while held < bits {
                    word |= u32::from(rest.next().copied().unwrap_or_default()) << held;
                    held += 8;
                }
                *value = (word & ((1 << bits) - 1)) as u8;
                word >>= bits;
                held -= bits;
            });
        }
        pair
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    #[test]
    fn rfc3551_4_5_8_1_every_bit_has_one_place_in_either_packing() {
        let mut noise = Noise(610);
        for _ in 0..200 {
            let mut first = [0; FRAME_BYTES];
            let mut second = [0; FRAME_BYTES];
            for bytes in [&mut first, &mut second] {
                bytes.fill_with(|| noise.bits() as u8);
                bytes[0] = (bytes[0] & 0x0f) | (SIGNATURE << 4);
            }
            let pair = [Frame::unpack(&first).unwrap(), Frame::unpack(&second).unwrap()];
            let mut again = [0; FRAME_BYTES];
            pair[0].pack(&mut again);
            assert_eq!(again, first);
            let mut wav49 = [0; WAV49_BYTES];
            Frame::pack_pair(pair, &mut wav49);
            assert_eq!(Frame::unpack_pair(&wav49), pair);
        }
    }

    #[test]
    fn rfc3551_table_4_parameters_lie_where_the_table_says() {
        // LARc[0] = 0b101010 spans the low nibble of byte 0 and the top two bits of byte 1.
        let mut bytes = [0; FRAME_BYTES];
        (bytes[0], bytes[1]) = (0xda, 0x80);
        let frame = Frame::unpack(&bytes).unwrap();
        assert_eq!(frame.lar, [0b10_1010, 0, 0, 0, 0, 0, 0, 0]);
        // The last pulse is the bottom three bits of byte 32.
        bytes = [0; FRAME_BYTES];
        (bytes[0], bytes[32]) = (0xd0, 0x05);
        assert_eq!(Frame::unpack(&bytes).unwrap().sub[3].pulses[12], 5);
        assert_eq!(Frame::unpack(&[0x50; FRAME_BYTES]), None);
    }
}
