//! What distinguishes the narrowband sub-modes: a frame is four subframes of pitch and innovation under one filter.

use crate::codebooks::{
    INNOVATION_5_64, INNOVATION_5_256, INNOVATION_8_128, INNOVATION_10_16, INNOVATION_10_32,
    INNOVATION_20_32, PITCH_GAINS_5_BIT, PITCH_GAINS_7_BIT,
};

/// How the pitch predictor of a frame is sent.
#[derive(Clone, Copy, Debug)]
pub enum Pitch {
    /// One lag and one gain for the frame.
    Forced,
    /// One lag for the frame, three-tap gains for each subframe.
    FrameLag,
    /// Lag and three-tap gains for each subframe.
    Subframe,
}

/// How the innovation is sent.
#[derive(Clone, Copy, Debug)]
pub enum Innovation {
    /// Not at all: the decoder makes noise.
    Noise,
    /// Shapes of some samples from a codebook of so many bits; in rows of `width`.
    Shapes {
        /// Samples a shape has.
        width: usize,
        /// Bits of its index.
        bits: usize,
        /// The codebook, flat.
        book: &'static [i8],
    },
}

/// One narrowband sub-mode.
#[derive(Clone, Copy, Debug)]
pub struct Submode {
    /// Bits of a frame, with the five that name the sub-mode.
    pub bits: usize,
    /// 30 bits of line spectral pairs, not 18.
    pub fine_lsp: bool,
    /// Pitch predictor.
    pub pitch: Pitch,
    /// Three-tap gains.
    pub gains: &'static [[i8; 4]],
    /// Bits of a three-tap gain.
    pub gain_bits: usize,
    /// Bits of the innovation gain of a subframe.
    pub innovation_gain_bits: usize,
    /// Innovation codebook.
    pub innovation: Innovation,
    /// The innovation is sent twice, the second finer.
    pub double: bool,
    /// Strength of the enhancer's comb filter; none when the enhancer leaves the frame alone.
    pub comb: Option<f32>,
}

const fn shapes<const WIDTH: usize, const COUNT: usize>(book: &'static [[i8; WIDTH]; COUNT]) -> Innovation {
    Innovation::Shapes { width: WIDTH, bits: COUNT.trailing_zeros() as usize, book: book.as_flattened() }
}

/// Sub-mode 3, of quality 3.
pub const LOW: Submode = Submode {
    bits: 160,
    fine_lsp: false,
    pitch: Pitch::Subframe,
    gains: &PITCH_GAINS_5_BIT,
    gain_bits: 5,
    innovation_gain_bits: 1,
    innovation: shapes(&INNOVATION_10_32),
    double: false,
    comb: Some(0.55),
};

/// Sub-mode 5, of quality 8.
pub const HIGH: Submode = Submode {
    bits: 300,
    fine_lsp: true,
    pitch: Pitch::Subframe,
    gains: &PITCH_GAINS_7_BIT,
    gain_bits: 7,
    innovation_gain_bits: 3,
    innovation: shapes(&INNOVATION_5_64),
    double: false,
    comb: Some(0.25),
};

/// Sub-modes 1 to 8.
const SUBMODES: [Submode; 8] = [
    Submode {
        bits: 43,
        pitch: Pitch::Forced,
        innovation_gain_bits: 0,
        innovation: Innovation::Noise,
        comb: None,
        ..LOW
    },
    Submode {
        bits: 119,
        pitch: Pitch::FrameLag,
        innovation_gain_bits: 0,
        innovation: shapes(&INNOVATION_10_16),
        comb: Some(0.6),
        ..LOW
    },
    LOW,
    Submode { bits: 220, innovation: shapes(&INNOVATION_8_128), comb: Some(0.45), ..LOW },
    HIGH,
    Submode { bits: 364, innovation: shapes(&INNOVATION_5_256), comb: Some(0.15), ..HIGH },
    Submode { bits: 492, double: true, comb: Some(0.05), ..HIGH },
    Submode {
        bits: 79,
        pitch: Pitch::Forced,
        innovation_gain_bits: 0,
        innovation: shapes(&INNOVATION_20_32),
        comb: Some(0.5),
        ..LOW
    },
];

/// A sub-mode by its number, 1 to 8.
pub fn submode(number: usize) -> Option<&'static Submode> {
    SUBMODES.get(number.checked_sub(1)?)
}

/// Innovation gain of a subframe over that of the frame, one bit.
pub const INNOVATION_GAIN_1: [f32; 2] = [0.70469, 1.05127];
/// Where the one-bit gains part.
pub const INNOVATION_GAIN_1_BOUND: [f32; 1] = [0.87798];
/// The same, three bits.
pub const INNOVATION_GAIN_3: [f32; 8] =
    [0.061130, 0.163546, 0.310413, 0.428220, 0.555887, 0.719055, 0.938694, 1.326874];
/// Where the three-bit gains part.
pub const INNOVATION_GAIN_3_BOUND: [f32; 7] =
    [0.112338, 0.236980, 0.369316, 0.492054, 0.637471, 0.828874, 1.132784];
