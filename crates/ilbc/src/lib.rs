//! iLBC, the internet Low Bit Rate Codec (RFC 3951), in frames of 20 and of 30 ms.
//!
//! Equal bit for bit to the floating-point code of the RFC when that is compiled without contraction to fused
//! multiplications: sums are made in its order. This crate knows samples and payload bytes, and neither packets nor time.

#![forbid(unsafe_code)]

mod bits;
mod codebook;
mod decoder;
mod encoder;
mod filters;
mod lsf;
mod lsf_rows;
mod shape;
mod start;
mod tables;

pub use decoder::{DecodeJob, Decoder, Unusable, decode, decode_fast};
pub use encoder::{EncodeJob, Encoder, encode, encode_fast};
pub(crate) use shape::Shape;

/// Samples of a sub-block, the unit of the codebook search and of the filters' interpolation.
pub(crate) const SUB_BLOCK: usize = 40;
/// Sub-blocks of the longest frame.
pub(crate) const SUB_BLOCKS_MAX: usize = 6;
/// Samples of the longest frame.
pub(crate) const SAMPLES_MAX: usize = SUB_BLOCKS_MAX * SUB_BLOCK;
/// Sub-blocks of the longest frame that are coded by codebook alone.
pub(crate) const CODED_MAX: usize = 4;
/// Order of the linear prediction.
pub(crate) const ORDER: usize = 10;
/// Samples of the two sub-blocks in which the start state lies.
pub(crate) const STATE_BLOCK: usize = 80;
/// Samples of the longest start state.
pub(crate) const STATE_MAX: usize = 58;
/// Stages of the codebook search.
pub(crate) const STAGES: usize = 3;

/// Coefficients of a prediction filter; the first is 1.
pub(crate) type Lpc = [f32; ORDER + 1];
/// Line spectral frequencies in radians, ascending.
pub(crate) type Lsf = [f32; ORDER];

/// A frame size: [`Mode20`] or [`Mode30`], called `mode` in SDP (RFC 3952 section 4).
pub trait Mode: shape::Shaped + Clone + Copy + Default + std::fmt::Debug + 'static {
    /// A frame of samples, 8 kHz.
    type Pcm: AsRef<[i16]> + AsMut<[i16]>;
    /// A frame's payload.
    type Payload: AsRef<[u8]> + AsMut<[u8]>;
}

/// Frames of 20 ms: 160 samples in 38 bytes, 15.2 kbit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode20;

/// Frames of 30 ms: 240 samples in 50 bytes, 13.33 kbit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode30;

impl Mode for Mode20 {
    type Pcm = [i16; 160];
    type Payload = [u8; 38];
}

impl Mode for Mode30 {
    type Pcm = [i16; 240];
    type Payload = [u8; 50];
}
