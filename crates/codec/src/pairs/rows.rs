//! Samples and bytes of many streams into 32-bit lanes and out of them, two samples or four bytes a lane.

use lanes::{I32Lanes, LANES_MAX};

use super::{BLOCK, WORDS};

/// Pairs of samples → rows, the earlier sample of a pair in the lower half.
#[inline(always)]
pub fn gather_samples<V: I32Lanes>(streams: &[&[i16]], rows: &mut [V]) {
    let mut words = [[0i32; BLOCK]; LANES_MAX];
    for (words, stream) in words.iter_mut().zip(streams) {
        for (word, &[first, second]) in words.iter_mut().zip(stream.as_chunks::<2>().0) {
            *word = i32::from(first as u16) | i32::from(second) << 16;
        }
    }
    V::gather(&words.each_ref().map(|words| &words[..]), rows);
}

/// The inverse of [`gather_samples`].
#[inline(always)]
pub fn scatter_samples<V: I32Lanes>(rows: &[V], streams: &mut [&mut [i16]]) {
    let mut words = [[0i32; BLOCK]; LANES_MAX];
    V::scatter(rows, &mut words.each_mut().map(|words| &mut words[..]));
    for (words, stream) in words.iter().zip(streams) {
        for (word, pair) in words.iter().zip(stream.as_chunks_mut::<2>().0) {
            *pair = [*word as i16, (*word >> 16) as i16];
        }
    }
}

/// Bytes → rows, four a long, the earliest lowest.
#[inline(always)]
pub fn gather_bytes<V: I32Lanes>(streams: &[&[u8]], rows: &mut [V]) {
    let mut words = [[0i32; WORDS]; LANES_MAX];
    for (words, stream) in words.iter_mut().zip(streams) {
        for (word, bytes) in words.iter_mut().zip(stream.chunks(4)) {
            let mut four = [0; 4];
            for (slot, byte) in four.iter_mut().zip(bytes) {
                *slot = *byte;
            }
            *word = i32::from_le_bytes(four);
        }
    }
    V::gather(&words.each_ref().map(|words| &words[..]), rows);
}

/// The inverse of [`gather_bytes`].
#[inline(always)]
pub fn scatter_bytes<V: I32Lanes>(rows: &[V], streams: &mut [&mut [u8]]) {
    let mut words = [[0i32; WORDS]; LANES_MAX];
    V::scatter(rows, &mut words.each_mut().map(|words| &mut words[..]));
    for (words, stream) in words.iter().zip(streams) {
        for (word, bytes) in words.iter().zip(stream.chunks_mut(4)) {
            for (slot, byte) in bytes.iter_mut().zip(word.to_le_bytes()) {
                *slot = byte;
            }
        }
    }
}

/// The two samples of a row of pairs.
#[inline(always)]
pub fn split<V: I32Lanes>(pair: V) -> [V; 2] {
    [pair.shl(16).shr(16), pair.shr(16)]
}

/// A row of pairs of two samples that fit 16 bits.
#[inline(always)]
pub fn join<V: I32Lanes>([first, second]: [V; 2]) -> V {
    (first & V::splat(0xffff)) | second.shl(16)
}

/// Byte `index` of rows of longs.
#[inline(always)]
pub fn byte<V: I32Lanes>(rows: &[V], index: usize) -> V {
    rows[index / 4].shr_logic(8 * (index as u32 % 4)) & V::splat(0xff)
}

/// Puts a byte where there is none yet.
#[inline(always)]
pub fn put_byte<V: I32Lanes>(rows: &mut [V], index: usize, byte: V) {
    rows[index / 4] = rows[index / 4] | byte.shl(8 * (index as u32 % 4));
}

/// A slice of each job, none for lanes without one.
#[inline(always)]
pub fn slices<'a, J, T>(jobs: &'a [J], slice: impl Fn(&'a J) -> &'a [T]) -> [&'a [T]; LANES_MAX] {
    let mut all: [&[T]; LANES_MAX] = [&[]; LANES_MAX];
    for (slot, job) in all.iter_mut().zip(jobs) {
        *slot = slice(job);
    }
    all
}

/// As [`slices`], for writing.
#[inline(always)]
pub fn slices_mut<'a, J, T>(
    jobs: &'a mut [J],
    slice: impl Fn(&'a mut J) -> &'a mut [T],
) -> [&'a mut [T]; LANES_MAX] {
    let mut all: [&mut [T]; LANES_MAX] = Default::default();
    for (slot, job) in all.iter_mut().zip(jobs) {
        *slot = slice(job);
    }
    all
}

/// The part of a slice that belongs to a block; empty beyond its end.
#[inline(always)]
pub fn part<T>(slice: &[T], start: usize, length: usize) -> &[T] {
    let start = start.min(slice.len());
    &slice[start..(start + length).min(slice.len())]
}

/// As [`part`], for writing.
#[inline(always)]
pub fn part_mut<T>(slice: &mut [T], start: usize, length: usize) -> &mut [T] {
    let start = start.min(slice.len());
    let end = (start + length).min(slice.len());
    &mut slice[start..end]
}
