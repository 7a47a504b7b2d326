//! Many streams side by side: one SIMD vector holds the same variable of 8 to 32 of them.
//!
//! A codec writes its arithmetic once, as a [`Kernel`] generic over [`Lanes`]; [`Level::run`] compiles and enters it for
//! AVX-512, AVX2 or plain arrays, whichever the CPU has. This room knows vectors and the instructions behind them, and
//! no codec; [`prefetch`] is for whoever goes through more streams than the caches hold. It is the only one of the pure crates with `unsafe` in it.
//!
//! ```
//! use lanes::{F32Lanes, Kernel, Lanes, Level, Vector};
//!
//! /// Scales the samples of up to `L::N` streams, each by its own gain.
//! struct Scale<'a> {
//!     streams: [&'a mut [f32]; 8],
//!     gains: [f32; 16],
//! }
//! impl Kernel for Scale<'_> {
//!     type Out = ();
//!     #[inline(always)]
//!     fn run<L: Lanes>(mut self) {
//!         let gain = L::F32::load(&self.gains);
//!         let mut rows = [L::F32::splat(0.0); 4]; // row = one sample of every stream
//!         L::F32::gather(&self.streams.each_ref().map(|s| &**s), &mut rows);
//!         for row in &mut rows {
//!             *row = *row * gain;
//!         }
//!         L::F32::scatter(&rows, &mut self.streams);
//!     }
//! }
//! let mut pcm = [[1.0; 4]; 8];
//! let gains = core::array::from_fn(|lane| lane as f32);
//! Level::best().run(Scale { streams: pcm.each_mut().map(|s| &mut s[..]), gains });
//! assert_eq!(pcm[3], [3.0; 4]);
//! ```
//!
//! Rules for a kernel:
//!
//! - Every function with vectors in it is `#[inline(always)]`, all the way up to [`Kernel::run`]: only what is inlined
//!   there is compiled for the level. A part that is large or used twice becomes a kernel of its own, entered by
//!   [`Lanes::call`].
//! - Loops, not closures, around vector operations, and no `array.map(L::F32::splat)`: what the compiler does not inline is
//!   compiled without the level's instructions. `cargo xtask vectorised` finds such parts.
//! - Exact kernels never use [`F32Lanes::mul_add`]; `*` and `+` are never contracted.

mod level;
mod portable;
mod prefetch;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use level::{Kernel, Level, UnknownLevel};
pub use prefetch::{LINE_BYTES, prefetch};
pub use vector::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Lanes, Mask, Number, Vector};

/// The most streams that 32-bit lanes hold on any level: [`Lanes::N`] of AVX-512.
pub const LANES_MAX: usize = 16;
/// The most streams that 16-bit lanes hold on any level.
pub const LANES16_MAX: usize = 2 * LANES_MAX;
