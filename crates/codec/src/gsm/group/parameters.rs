//! The 76 parameters of a frame as rows, and their packing: 33 bytes as 17 big-endian words.

use lanes::{Integer, Lanes, Vector};

use super::super::{FRAME_BYTES, SIGNATURE};

/// Parameters of a frame: 8 LARs, then 17 of each sub-frame.
pub const PARAMETERS: usize = 8 + 4 * SUB_PARAMETERS;
const SUB_PARAMETERS: usize = 17;
/// Where they are in a sub-frame's; from [`PULSES`] on there are 13 pulses.
pub const LAG: usize = 0;
pub const GAIN: usize = 1;
pub const GRID: usize = 2;
pub const AMPLITUDE: usize = 3;
pub const PULSES: usize = 4;

/// 16-bit words that hold a frame's bytes, and some behind them: whole blocks of a transpose.
pub const WORDS: usize = FRAME_BYTES.div_ceil(16) * 8;

/// Width in bits, and the first bit behind the signature's, of each parameter (table 1.1).
const FIELDS: [(usize, usize); PARAMETERS] = {
    let mut fields = [(0, 0); PARAMETERS];
    let (mut index, mut offset) = (0, 4);
    while index < PARAMETERS {
        let width = if index < 8 {
            [6, 6, 5, 5, 4, 4, 3, 3][index]
        } else {
            [7, 2, 2, 6, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3][(index - 8) % SUB_PARAMETERS]
        };
        fields[index] = (width, offset);
        offset += width;
        index += 1;
    }
    assert!(offset == FRAME_BYTES * 8);
    fields
};

/// The parameters of one sub-frame.
#[inline(always)]
pub fn sub<V>(parameters: &mut [V; PARAMETERS], number: usize) -> &mut [V; SUB_PARAMETERS] {
    &mut parameters[8..].as_chunks_mut().0[number]
}

/// Parameters → words, with the signature.
#[inline(always)]
pub fn pack<L: Lanes>(parameters: &[L::I16; PARAMETERS]) -> [L::I16; WORDS] {
    let mut words = [L::I16::splat(0); WORDS];
    words[0] = L::I16::splat(((SIGNATURE as u16) << 12).cast_signed());
    for (&value, (width, offset)) in parameters.iter().zip(FIELDS) {
        let (word, end) = (offset / 16, offset % 16 + width);
        if end <= 16 {
            words[word] = words[word] | value.shl((16 - end) as u32);
        } else {
            words[word] = words[word] | value.shr_logic((end - 16) as u32);
            words[word + 1] = value.shl((32 - end) as u32);
        }
    }
    words
}

/// Words → parameters.
#[inline(always)]
pub fn unpack<L: Lanes>(words: &[L::I16; WORDS]) -> [L::I16; PARAMETERS] {
    let mut parameters = [L::I16::splat(0); PARAMETERS];
    for (value, (width, offset)) in parameters.iter_mut().zip(FIELDS) {
        let (word, end) = (offset / 16, offset % 16 + width);
        let bits = if end <= 16 {
            words[word].shr_logic((16 - end) as u32)
        } else {
            words[word].shl((end - 16) as u32) | words[word + 1].shr_logic((32 - end) as u32)
        };
        *value = bits & L::I16::splat((1 << width) - 1);
    }
    parameters
}

/// One stream's bytes as words.
#[inline(always)]
pub fn from_bytes(bytes: &[u8; FRAME_BYTES], words: &mut [i16; WORDS]) {
    let (pairs, rest) = bytes.as_chunks();
    for (word, pair) in words.iter_mut().zip(pairs) {
        *word = i16::from_be_bytes(*pair);
    }
    words[pairs.len()] = i16::from_be_bytes([rest[0], 0]);
}

/// One stream's words as bytes.
#[inline(always)]
pub fn to_bytes(words: &[i16; WORDS], bytes: &mut [u8; FRAME_BYTES]) {
    let (pairs, rest) = bytes.as_chunks_mut();
    rest[0] = words[pairs.len()].to_be_bytes()[0];
    for (pair, word) in pairs.iter_mut().zip(words) {
        *pair = word.to_be_bytes();
    }
}
