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
}

/// A sample of the start state: one bit in class 2, two in class 3.
const STATE_SPLIT: Split = [0, 1, 2];

#[rustfmt::skip]
pub(crate) static LAYOUT_20: Layout = Layout {
    head: &[[6, 0, 0], [7, 0, 0], [7, 0, 0], [2, 0, 0], [1, 0, 0], [6, 0, 0]],
    tail: &[
        // Extra block: indices, gains.
        [6, 0, 1], [0, 0, 7], [0, 0, 7],
        [2, 0, 3], [1, 1, 2], [0, 0, 3],
        // Sub-blocks: indices of each, then gains of each.
        [7, 0, 1], [0, 0, 7], [0, 0, 7],
        [0, 0, 8], [0, 0, 8], [0, 0, 8],
        [1, 2, 2], [1, 1, 2], [0, 0, 3],
        [1, 1, 3], [0, 2, 2], [0, 0, 3],
    ],
};

#[rustfmt::skip]
pub(crate) static LAYOUT_30: Layout = Layout {
    head: &[
        [6, 0, 0], [7, 0, 0], [7, 0, 0],
        [6, 0, 0], [7, 0, 0], [7, 0, 0],
        [3, 0, 0], [1, 0, 0], [6, 0, 0],
    ],
    tail: &[
        [4, 2, 1], [0, 0, 7], [0, 0, 7],
        [1, 1, 3], [1, 1, 2], [0, 0, 3],
        [6, 1, 1], [0, 0, 7], [0, 0, 7],
        [0, 7, 1], [0, 0, 8], [0, 0, 8],
        [0, 7, 1], [0, 0, 8], [0, 0, 8],
        [0, 7, 1], [0, 0, 8], [0, 0, 8],
        [1, 2, 2], [1, 2, 1], [0, 0, 3],
        [0, 2, 3], [0, 2, 2], [0, 0, 3],
        [0, 1, 4], [0, 1, 3], [0, 0, 3],
        [0, 1, 4], [0, 1, 3], [0, 0, 3],
    ],
};

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
        let (mut head, mut tail) = ([0; HEAD_MAX], [0; TAIL_MAX]);
        let mut state = [0; STATE_MAX];
        let mut bits = Reader { payload, held: 0, count: 0 };
        for (class, state_bits) in STATE_SPLIT.into_iter().enumerate() {
            bits.get_class(&mut head, shape.layout.head, class);
            let (eights, rest) = state[..shape.state].as_chunks_mut::<8>();
            match state_bits {
                1 => {
                    eights.iter_mut().for_each(|eight| *eight = spread_high(bits.get(8)));
                    rest.iter_mut().for_each(|level| *level = (bits.get(1) as u8) << 2);
                }
                2 => {
                    for eight in eights {
                        let low = spread_pairs(bits.get(16));
                        *eight = (u64::from_ne_bytes(*eight) | u64::from_ne_bytes(low)).to_ne_bytes();
                    }
                    rest.iter_mut().for_each(|level| *level |= bits.get(2) as u8);
                }
                _ => {}
            }
            bits.get_class(&mut tail, shape.layout.tail, class);
        }
        let frame = Self::from_parts(shape, &head, state, &tail);
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
            let below: u8 = split[class + 1..].iter().sum();
            let width = split[class];
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

struct Reader<'a> {
    /// What is not held yet.
    payload: &'a [u8],
    /// The lowest `count` bits are the next ones.
    held: u64,
    count: u32,
}

impl Reader<'_> {
    /// The next `width` (at most 16) bits; zeros behind the end.
    fn get(&mut self, width: u32) -> u64 {
        if self.count < width {
            let word = match self.payload.split_first_chunk::<4>() {
                Some((word, rest)) => {
                    self.payload = rest;
                    u32::from_be_bytes(*word)
                }
                None => {
                    let mut word = [0; 4];
                    word.iter_mut().zip(self.payload).for_each(|(to, &from)| *to = from);
                    self.payload = &[];
                    u32::from_be_bytes(word)
                }
            };
            self.held = self.held << 32 | u64::from(word);
            self.count += 32;
        }
        self.count -= width;
        self.held >> self.count & ((1 << width) - 1)
    }

    fn get_class(&mut self, values: &mut [u8], splits: &[Split], class: usize) {
        for (value, split) in values.iter_mut().zip(splits) {
            let width = split[class];
            *value = (u16::from(*value) << width) as u8 | self.get(u32::from(width)) as u8;
        }
    }
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
