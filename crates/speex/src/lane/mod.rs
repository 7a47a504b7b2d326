//! The encoder and the decoder for many streams at once: a lane a stream.
//!
//! State stays with the streams in scalar form. A group run copies it into rows, computes, and writes it back when
//! everything is done: a panic within leaves every stream of the group as it was.

mod bits;
mod decode;
mod encode;
mod enhance;
mod filter;
mod innovation;
mod lsp;
mod pitch;
mod wide;

use lanes::{LANES_MAX, Lanes, Level, Vector};

pub use decode::{DecodeJob, decode};
pub use encode::{EncodeJob, encode};

use crate::ORDER;

type Float<L> = <L as Lanes>::F32;
type Long<L> = <L as Lanes>::I32;

/// Streams up to which the scalar form is faster than a group that is mostly empty.
fn lone(level: Level) -> usize {
    if level == Level::portable() { 6 } else { 1 }
}

/// A stream that takes nothing.
const fn nothing<'a>() -> &'a mut [f32] {
    &mut []
}

/// Pieces as slices; a function of its own, so that they are not collected by vector instructions.
#[inline(never)]
fn slices<const LENGTH: usize>(pieces: &[[f32; LENGTH]; LANES_MAX]) -> [&[f32]; LANES_MAX] {
    let mut slices = [&pieces[0][..]; LANES_MAX];
    for (slice, piece) in slices.iter_mut().zip(pieces) {
        *slice = piece;
    }
    slices
}

/// Ten of many short fields.
#[inline(always)]
fn ten<T: Copy, const ALL: usize>(all: &[T; ALL], from: usize) -> [T; ORDER] {
    let mut out = [all[from]; ORDER];
    out.copy_from_slice(&all[from..from + ORDER]);
    out
}

/// Values of each lane.
#[inline(always)]
fn lane_indices<L: Lanes>(index: L::I32) -> [usize; LANES_MAX] {
    let mut out = [0; LANES_MAX];
    for (slot, value) in out.iter_mut().zip(L::I32::flat(&[index])) {
        *slot = *value as usize;
    }
    out
}

/// Rows of the entries of a table that each lane chose.
#[inline(always)]
fn pick<L: Lanes, const DIM: usize, const COUNT: usize>(
    table: &'static [[f32; DIM]; COUNT],
    index: &[usize; LANES_MAX],
) -> [Float<L>; DIM] {
    const { assert!(COUNT.is_power_of_two()) };
    let mut entries = [&table[0][..]; LANES_MAX];
    for lane in 0..L::N {
        entries[lane] = &table[index[lane] % COUNT];
    }
    let mut rows = [L::F32::splat(0.0); DIM];
    L::F32::gather(&entries[..L::N], &mut rows);
    rows
}
