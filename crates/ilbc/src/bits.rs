//! The bit stream: parameters in three classes of sensitivity, most sensitive first (RFC 3951 section 3.8).

use crate::{CODED_MAX, STAGES, STATE_MAX, Shape};

/// Bits of a parameter in class 1, 2 and 3; its most significant bits are in the lowest class.
type Split = [u8; 3];

/// Parameters before the samples of the start state: six of the LSF, the block class, the position, the scale.
const HEAD_MAX: usize = 9;
/// Parameters after the samples: indices and gains of the extra block, indices and gains of the coded sub-blocks.
const TAIL_MAX: usize = 2 * STAGES * (1 + CODED_MAX);

/// Where the bits of each parameter go; parameters in the order of the table in section 3.8.
#[derive(Debug)]
pub(crate) struct Layout {
    head: &'static [Split],
    tail: &'static [Split],
    /// The same as places in the payload, and where the samples' first and last bits begin.
    pieces: &'static [Piece],
    state: [usize; 2],
}

/// Bits of a parameter that are together, as they are found in the two bytes that hold them.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Which parameter: those of the head, then those of the tail from [`HEAD_MAX`].
    parameter: u8,
    byte: u8,
    /// Bits behind them in the two bytes.
    behind: u8,
    width: u8,
}

/// A sample of the start state: one bit in class 2, two in class 3.
const STATE_SPLIT: Split = [0, 1, 2];

const HEAD_20: &[Split] = &[[6, 0, 0], [7, 0, 0], [7, 0, 0], [2, 0, 0], [1, 0, 0], [6, 0, 0]];
const TAIL_20: &[Split] = &[
    // Extra block: indices, gains.
    [6, 0, 1],
    [0, 0, 7],
    [0, 0, 7],
    [2, 0, 3],
    [1, 1, 2],
    [0, 0, 3],
    // Sub-blocks: indices of each, then gains of each.
    [7, 0, 1],
    [0, 0, 7],
    [0, 0, 7],
    [0, 0, 8],
    [0, 0, 8],
    [0, 0, 8],
    [1, 2, 2],
    [1, 1, 2],
    [0, 0, 3],
    [1, 1, 3],
    [0, 2, 2],
    [0, 0, 3],
];
const HEAD_30: &[Split] =
    &[[6, 0, 0], [7, 0, 0], [7, 0, 0], [6, 0, 0], [7, 0, 0], [7, 0, 0], [3, 0, 0], [1, 0, 0], [6, 0, 0]];
const TAIL_30: &[Split] = &[
    [4, 2, 1],
    [0, 0, 7],
    [0, 0, 7],
    [1, 1, 3],
    [1, 1, 2],
    [0, 0, 3],
    [6, 1, 1],
    [0, 0, 7],
    [0, 0, 7],
    [0, 7, 1],
    [0, 0, 8],
    [0, 0, 8],
    [0, 7, 1],
    [0, 0, 8],
    [0, 0, 8],
    [0, 7, 1],
    [0, 0, 8],
    [0, 0, 8],
    [1, 2, 2],
    [1, 2, 1],
    [0, 0, 3],
    [0, 2, 3],
    [0, 2, 2],
    [0, 0, 3],
    [0, 1, 4],
    [0, 1, 3],
    [0, 0, 3],
    [0, 1, 4],
    [0, 1, 3],
    [0, 0, 3],
];

pub(crate) static LAYOUT_20: Layout = {
    const PLACES: ([Piece; piece_count(HEAD_20, TAIL_20)], [usize; 2]) = places(HEAD_20, TAIL_20, 57);
    Layout { head: HEAD_20, tail: TAIL_20, pieces: &PLACES.0, state: PLACES.1 }
};

pub(crate) static LAYOUT_30: Layout = {
    const PLACES: ([Piece; piece_count(HEAD_30, TAIL_30)], [usize; 2]) = places(HEAD_30, TAIL_30, 58);
    Layout { head: HEAD_30, tail: TAIL_30, pieces: &PLACES.0, state: PLACES.1 }
};

/// How many pieces the parameters are in.
const fn piece_count(head: &[Split], tail: &[Split]) -> usize {
    let (mut count, mut index) = (0, 0);
    while index < head.len() + tail.len() {
        let split = if index < head.len() { head[index] } else { tail[index - head.len()] };
        count += (split[0] > 0) as usize + (split[1] > 0) as usize + (split[2] > 0) as usize;
        index += 1;
    }
    count
}

/// Where the pieces and the samples of the start state are.
const fn places<const N: usize>(head: &[Split], tail: &[Split], samples: usize) -> ([Piece; N], [usize; 2]) {
    let mut pieces = [Piece { parameter: 0, byte: 0, behind: 0, width: 0 }; N];
    let mut state = [0; 2];
    let (mut class, mut count, mut bit) = (0, 0, 0);
    while class < 3 {
        let mut index = 0;
        while index < head.len() + tail.len() {
            if index == head.len() && STATE_SPLIT[class] > 0 {
                state[STATE_SPLIT[class] as usize - 1] = bit;
                bit += samples * STATE_SPLIT[class] as usize;
            }
            let (split, parameter) = if index < head.len() {
                (head[index], index)
            } else {
                (tail[index - head.len()], HEAD_MAX + index - head.len())
            };
            let width = split[class];
            if width > 0 {
                let behind = 16 - bit % 8 - width as usize;
                pieces[count] =
                    Piece { parameter: parameter as u8, byte: (bit / 8) as u8, behind: behind as u8, width };
                count += 1;
                bit += width as usize;
            }
            index += 1;
        }
        class += 1;
    }
    (pieces, state)
}

/// What the codebook search chose for a block, one value a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Codebook indices.
    pub index: [u8; STAGES],
    /// Indices of the gains: 5, 4 and 3 bits.
    pub gain: [u8; STAGES],
}

/// The parameters of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Indices of the three splits of each set of line spectral frequencies.
    pub lsf: [[u8; 3]; 2],
    /// The later of the two sub-blocks that hold the start state: 1 to the last.
    pub start: u8,
    /// Whether the start state is at the beginning of its two sub-blocks.
    pub state_first: bool,
    /// Index of the start state's largest amplitude, 6 bits.
    pub scale: u8,
    /// Quantised samples of the start state, 3 bits each.
    pub state: [u8; STATE_MAX],
    /// The samples of the two sub-blocks outside the start state.
    pub extra: Choice,
    /// The other sub-blocks in coding order: those after the start state forwards, then those before it backwards.
    pub coded: [Choice; CODED_MAX],
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            lsf: [[0; 3]; 2],
            start: 1,
            state_first: false,
            scale: 0,
            state: [0; STATE_MAX],
            extra: Choice::default(),
            coded: [Choice::default(); CODED_MAX],
        }
    }
}

impl Frame {
    /// Writes the frame into `payload`, which has the shape's length.
    pub fn pack(&self, shape: &Shape, payload: &mut [u8]) {
        let (head, tail) = (self.head(shape), self.tail(shape));
        let mut bits = Writer { payload, at: 0, held: 0, count: 0 };
        for (class, state_bits) in STATE_SPLIT.into_iter().enumerate() {
            bits.put_class(&head, shape.layout.head, class);
            let (eights, rest) = self.state[..shape.state].as_chunks::<8>();
            match state_bits {
                1 => {
                    eights.iter().for_each(|&eight| bits.put(high_bits(eight), 8));
                    rest.iter().for_each(|&level| bits.put(u64::from(level >> 2), 1));
                }
                2 => {
                    eights.iter().for_each(|&eight| bits.put(low_pairs(eight), 16));
                    rest.iter().for_each(|&level| bits.put(u64::from(level & 3), 2));
                }
                _ => {}
            }
            bits.put_class(&tail, shape.layout.tail, class);
        }
        // The last bit is zero: a payload that ends in one stands for a lost frame (section 3.8).
        bits.put(0, 1);
        bits.finish();
    }

    /// Reads a payload of the shape's length.
    ///
    /// `None` when it stands for a lost frame: its last bit is set, its length is another, or it names sub-blocks that do not
    /// exist. Every other payload is a frame.
    pub fn unpack(shape: &Shape, payload: &[u8]) -> Option<Self> {
        if payload.len() != shape.bytes || payload.last()? & 1 == 1 {
            return None;
        }
        // Zeros follow it, so that every piece can be read with the byte behind it.
        let mut bytes = [0; PADDED];
        bytes[..payload.len()].copy_from_slice(payload);
        let mut values = [0u8; HEAD_MAX + TAIL_MAX];
        for piece in shape.layout.pieces {
            let at = usize::from(piece.byte);
            let two = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let value = &mut values[usize::from(piece.parameter)];
            *value =
                (u16::from(*value) << piece.width | two >> piece.behind & ((1 << piece.width) - 1)) as u8;
        }
        let [first, last] = shape.layout.state;
        let mut state = [0; STATE_MAX.next_multiple_of(8)];
        for (number, eight) in state.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = spread_high(window(&bytes, first + 8 * number) >> 8 & 0xFF);
            let low = spread_pairs(window(&bytes, last + 16 * number) & 0xFFFF);
            *eight = (u64::from_ne_bytes(high) | u64::from_ne_bytes(low)).to_ne_bytes();
        }
        let mut samples = [0; STATE_MAX];
        samples[..shape.state].copy_from_slice(&state[..shape.state]);
        let (head, tail) = values.split_first_chunk()?;
        let frame = Self::from_parts(shape, head, samples, tail.first_chunk()?);
        (frame.start >= 1 && usize::from(frame.start) < shape.sub_blocks).then_some(frame)
    }

    fn head(&self, shape: &Shape) -> [u8; HEAD_MAX] {
        let ([[a, b, c], [d, e, f]], first) = (self.lsf, u8::from(self.state_first));
        match shape.lsf_sets {
            1 => [a, b, c, self.start, first, self.scale, 0, 0, 0],
            _ => [a, b, c, d, e, f, self.start, first, self.scale],
        }
    }

    fn tail(&self, shape: &Shape) -> [u8; TAIL_MAX] {
        let mut tail = [0; TAIL_MAX];
        let (rows, _) = tail.as_chunks_mut::<STAGES>();
        let [index, gain, rows @ ..] = rows else { return tail };
        (*index, *gain) = (self.extra.index, self.extra.gain);
        let (indices, gains) = rows.split_at_mut(shape.coded);
        for ((index, gain), choice) in indices.iter_mut().zip(gains).zip(&self.coded) {
            (*index, *gain) = (choice.index, choice.gain);
        }
        if let Some([_, second, third]) = indices.first_mut() {
            (*second, *third) = (shorten(*second), shorten(*third));
        }
        tail
    }

    fn from_parts(
        shape: &Shape,
        head: &[u8; HEAD_MAX],
        state: [u8; STATE_MAX],
        tail: &[u8; TAIL_MAX],
    ) -> Self {
        let (lsf, start, first, scale) = match (shape.lsf_sets, *head) {
            (1, [a, b, c, start, first, scale, ..]) => ([[a, b, c], [0; 3]], start, first, scale),
            (_, [a, b, c, d, e, f, start, first, scale]) => ([[a, b, c], [d, e, f]], start, first, scale),
        };
        let mut frame = Self { lsf, start, state_first: first == 1, scale, state, ..Self::default() };
        let (rows, _) = tail.as_chunks::<STAGES>();
        if let [index, gain, rows @ ..] = rows {
            frame.extra = Choice { index: *index, gain: *gain };
            let (indices, gains) = rows.split_at(shape.coded);
            for ((index, gain), choice) in indices.iter().zip(gains).zip(&mut frame.coded) {
                *choice = Choice { index: *index, gain: *gain };
            }
        }
        let [_, second, third] = &mut frame.coded[0].index;
        (*second, *third) = (lengthen(*second), lengthen(*third));
        frame
    }
}

/// The later stages of the first sub-block search a quarter of the codebook and send 7 bits: the parts of the
/// codebook that they search are moved together.
fn shorten(index: u8) -> u8 {
    match index {
        108..172 => index - 64,
        236.. => index - 128,
        _ => index,
    }
}

/// Undoes [`shorten`].
fn lengthen(index: u8) -> u8 {
    match index {
        44..108 => index + 64,
        108..128 => index + 128,
        _ => index,
    }
}

/// Lowest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The third bits of eight levels as a byte, first level in the highest bit.
fn high_bits(levels: [u8; 8]) -> u64 {
    // Each bit meets the factor's power of two that carries it to its place; no two products meet.
    ((u64::from_be_bytes(levels) >> 2) & ONES).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The lower two bits of eight levels as 16 bits, first level in the highest.
fn low_pairs(levels: [u8; 8]) -> u64 {
    let pairs = u64::from_be_bytes(levels) & (3 * ONES);
    let fours = (pairs | pairs >> 6) & 0x000F_000F_000F_000F;
    let eights = (fours | fours >> 12) & 0x0000_00FF_0000_00FF;
    (eights | eights >> 24) & 0xFFFF
}

/// Undoes [`high_bits`]: levels of 0 or 4.
fn spread_high(bits: u64) -> [u8; 8] {
    let one_a_byte = bits.wrapping_mul(ONES) & 0x8040_2010_0804_0201;
    (((one_a_byte + 0x7F * ONES) >> 7 & ONES) << 2).to_be_bytes()
}

/// Undoes [`low_pairs`]: levels of 0 to 3.
fn spread_pairs(bits: u64) -> [u8; 8] {
    let eights = (bits | bits << 24) & 0x0000_00FF_0000_00FF;
    let fours = (eights | eights << 12) & 0x000F_000F_000F_000F;
    ((fours | fours << 6) & (3 * ONES)).to_be_bytes()
}

struct Writer<'a> {
    payload: &'a mut [u8],
    /// Bytes written.
    at: usize,
    /// The lowest `count` bits are still to be written; above them lie bits that were.
    held: u64,
    count: u32,
}

impl Writer<'_> {
    fn put(&mut self, value: u64, width: u32) {
        self.held = self.held << width | value;
        self.count += width;
        if self.count >= 32 {
            self.count -= 32;
            let word = (self.held >> self.count) as u32;
            if let Some(bytes) = self.payload.get_mut(self.at..self.at + 4) {
                bytes.copy_from_slice(&word.to_be_bytes());
            }
            self.at += 4;
        }
    }

    fn put_class(&mut self, values: &[u8], splits: &[Split], class: usize) {
        for (&value, split) in values.iter().zip(splits) {
            let width = split[class];
            if width == 0 {
                continue;
            }
            let below: u8 = split[class + 1..].iter().sum();
            self.put(u64::from(value) >> below & ((1 << width) - 1), u32::from(width));
        }
    }

    /// Writes what is held; the frame's bits are whole bytes.
    fn finish(self) {
        let word = (self.held << (32 - self.count)) as u32;
        for (byte, value) in self.payload.iter_mut().skip(self.at).zip(word.to_be_bytes()) {
            *byte = value;
        }
    }
}

/// Room for the longest payload and zeros behind it.
const PADDED: usize = 56;

/// 16 bits from any place.
fn window(bytes: &[u8; PADDED], bit: usize) -> u64 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[bit / 8..][..4]);
    u64::from(u32::from_be_bytes(four) >> (16 - bit % 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{SHAPE_20, SHAPE_30};

    #[test]
    fn rfc3951_3_8_classes_have_the_bits_that_the_table_sums_up() {
        for (shape, sums) in [(&SHAPE_20, [48, 64, 191]), (&SHAPE_30, [64, 96, 239])] {
            let layout = shape.layout;
            let mut found = [0, shape.state, 2 * shape.state];
            for split in layout.head.iter().chain(layout.tail) {
                (0..3).for_each(|class| found[class] += usize::from(split[class]));
            }
            assert_eq!(found, sums);
            assert_eq!(found.iter().sum::<usize>() + 1, 8 * shape.bytes);
        }
    }

    #[test]
    fn every_payload_survives_unpacking_and_packing_unless_it_stands_for_a_lost_frame() {
        let mut seed = 0x1BC1_2345_6789_ABCD_u64;
        for shape in [&SHAPE_20, &SHAPE_30] {
            let mut frames = 0;
            for _ in 0..2000 {
                let mut payload = vec![0; shape.bytes];
                for byte in &mut payload {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    *byte = (seed >> 56) as u8;
                }
                let lost = payload[shape.bytes - 1] & 1 == 1;
                let Some(frame) = Frame::unpack(shape, &payload) else {
                    let start = Frame::unpack_start(shape, &payload);
                    assert!(lost || start == 0 || start >= shape.sub_blocks, "{payload:02x?}");
                    continue;
                };
                assert!(!lost);
                frames += 1;
                let mut packed = vec![0xFF; shape.bytes];
                frame.pack(shape, &mut packed);
                assert_eq!(packed, payload, "{frame:?}");
            }
            assert!(frames > 500, "{frames}");
        }
    }

    #[test]
    fn a_payload_of_another_length_stands_for_a_lost_frame() {
        for length in 0..60 {
            let payload = vec![0x24; length];
            assert_eq!(Frame::unpack(&SHAPE_20, &payload).is_some(), length == 38, "{length}");
        }
    }

    impl Frame {
        /// The block class alone: behind 20 or 40 bits.
        fn unpack_start(shape: &Shape, payload: &[u8]) -> usize {
            match shape.lsf_sets {
                1 => usize::from(payload[2] >> 2 & 3),
                _ => usize::from(payload[5] >> 5),
            }
        }
    }
}
