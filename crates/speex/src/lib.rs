//! Speex narrowband, bit for bit that of libspeex 1.2.1 built for floating point.
//!
//! [`Encoder`] makes constant-rate frames of quality 3 and 8 at complexity 2; [`Decoder`] reads every narrowband sub-mode
//! and leaves out wideband layers and in-band messages (RFC 5574 carries such frames back to back in a packet). Both are
//! the plain scalar form and the home of a stream's state. [`encode`] and [`decode`] do the same for many streams at once,
//! a SIMD lane each, with the same bits. Nothing here knows a packet, a clock or, in what it makes, another stream.
//!
//! The order of every floating-point operation is part of the format's definition here: sums run in the order of the
//! reference's SSE code, nothing is contracted or reassociated, and double precision stands where C promotes to it.
//! Tables and arithmetic follow libspeex; its notice is in `NOTICE`.
//!
//! ```
//! use speex::{BYTES_MAX, Decoder, Encoder, FRAME, Quality};
//!
//! let (mut encoder, mut decoder) = (Encoder::new(Quality::Q8), Decoder::new());
//! let mut payload = [0; BYTES_MAX];
//! let length = encoder.encode(&[0; FRAME], &mut payload);
//! let mut pcm = [0; FRAME];
//! decoder.decode(&payload[..length], &mut pcm)?;
//! # Ok::<(), speex::Fault>(())
//! ```
#![forbid(unsafe_code)]

mod bits;
mod codebooks;
mod decoder;
mod encoder;
mod enhance;
mod filter;
mod innovation;
mod lane;
mod lsp;
mod math;
mod mode;
mod pitch;

pub use bits::BitReader;
pub use decoder::{Decoder, Fault};
pub use encoder::{Encoder, Quality};
pub use lane::{DecodeJob, EncodeJob, decode, encode};

/// Samples of a frame: 20 ms at 8 kHz.
pub const FRAME: usize = 160;
/// Bytes of the longest frame that [`Encoder`] makes.
pub const BYTES_MAX: usize = 38;

/// Order of linear prediction.
const ORDER: usize = 10;
/// Samples of a subframe; also those the encoder looks ahead.
const SUBFRAME: usize = 40;
/// Subframes of a frame.
const SUBFRAMES: usize = 4;
/// Shortest and longest pitch lags in samples.
const LAG_MIN: usize = 17;
const LAG_MAX: usize = 144;
/// Samples of past an encoder needs: the longest lag and a tap on either side.
const PAST: usize = LAG_MAX + 2;
