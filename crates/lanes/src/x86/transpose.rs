//! Block transposes between streams and rows, in instructions that every x86-64 has.

use core::arch::x86_64::*;

/// Makes `gather` and `scatter` of one element type, in square blocks of 16 bytes a side.
///
/// What all streams of a set of lanes have is transposed in registers, the last block over part of the one before where
/// the length is no whole number of blocks. What only some of them have, and what is shorter than a block, goes element by
/// element, out of line.
macro_rules! transposes {
    ($gather:ident, $scatter:ident, $element:ty, $side:expr, $transpose:ident, [$($number:literal)*]) => {
        /// Lane `l` of row `r` becomes `streams[l][r]`, or zero where there is none; `lanes` elements are a row.
        #[inline(always)]
        pub fn $gather(streams: &[&[$element]], flat: &mut [$element], lanes: usize) {
            let rows = flat.len() / lanes;
            for lane in (0..lanes).step_by($side) {
                let streams = streams.get(lane..).unwrap_or_default();
                let streams = streams.get(..$side).unwrap_or(streams);
                let mut common = if streams.is_empty() { 0 } else { rows };
                for stream in streams {
                    common = common.min(stream.len());
                }
                let load = |number: usize, at: usize| {
                    if let Some(stream) = streams.get(number) {
                        debug_assert!(at + $side <= stream.len());
                        // SAFETY: `at + $side` is at most `common`, which no stream is shorter than.
                        unsafe { _mm_loadu_si128(stream.as_ptr().add(at).cast()) }
                    } else {
                        // SAFETY: SSE2 is part of x86-64.
                        unsafe { _mm_setzero_si128() }
                    }
                };
                let mut done = 0;
                while done < common && common >= $side {
                    let at = done.min(common - $side);
                    let columns = $transpose([$(load($number, at)),*]);
                    $({
                        let place = (at + $number) * lanes + lane;
                        debug_assert!(place + $side <= flat.len());
                        // SAFETY: row `at + $number` is one of `rows`, and `$side` lanes from `lane` on are in it.
                        unsafe { _mm_storeu_si128(flat.as_mut_ptr().add(place).cast(), columns[$number]) };
                    })*
                    done = at + $side;
                }
                if done < rows {
                    gather_rest(streams, flat, lanes, lane..lane + $side, done);
                }
            }
        }

        /// `streams[l][r]` becomes lane `l` of row `r`; what is longer on either side is left out.
        #[inline(always)]
        pub fn $scatter(flat: &[$element], streams: &mut [&mut [$element]], lanes: usize) {
            let rows = flat.len() / lanes;
            for (number, streams) in streams.chunks_mut($side).take(lanes / $side).enumerate() {
                let lane = number * $side;
                let (mut common, mut longest) = (rows, 0);
                for stream in &*streams {
                    common = common.min(stream.len());
                    longest = longest.max(stream.len());
                }
                let mut done = 0;
                while done < common && common >= $side {
                    let at = done.min(common - $side);
                    let load = |number: usize| {
                        let place = (at + number) * lanes + lane;
                        debug_assert!(place + $side <= flat.len());
                        // SAFETY: row `at + number` is one of `rows`, and `$side` lanes from `lane` on are in it.
                        unsafe { _mm_loadu_si128(flat.as_ptr().add(place).cast()) }
                    };
                    let columns = $transpose([$(load($number)),*]);
                    $(if let Some(stream) = streams.get_mut($number) {
                        debug_assert!(at + $side <= stream.len());
                        // SAFETY: `at + $side` is at most `common`, which no stream is shorter than.
                        unsafe { _mm_storeu_si128(stream.as_mut_ptr().add(at).cast(), columns[$number]) };
                    })*
                    done = at + $side;
                }
                if done < rows.min(longest) {
                    scatter_rest(flat, streams, lanes, lane, done);
                }
            }
        }
    };
}

/// Rows from `first` on, element by element, in these lanes.
#[cold]
#[inline(never)]
fn gather_rest<T: Copy + Default>(
    streams: &[&[T]],
    flat: &mut [T],
    lanes: usize,
    which: core::ops::Range<usize>,
    first: usize,
) {
    for (number, row) in flat.chunks_exact_mut(lanes).enumerate().skip(first) {
        for (slot, lane) in row[which.clone()].iter_mut().zip(0..) {
            let element = streams.get(lane).and_then(|stream: &&[T]| stream.get(number));
            *slot = element.copied().unwrap_or_default();
        }
    }
}

/// Rows from `first` on, element by element, from `lane` on.
#[cold]
#[inline(never)]
fn scatter_rest<T: Copy>(flat: &[T], streams: &mut [&mut [T]], lanes: usize, lane: usize, first: usize) {
    for (number, row) in flat.chunks_exact(lanes).enumerate().skip(first) {
        for (stream, &element) in streams.iter_mut().zip(&row[lane..]) {
            if let Some(slot) = stream.get_mut(number) {
                *slot = element;
            }
        }
    }
}

transposes!(gather16, scatter16, i16, 8, transpose16, [0 1 2 3 4 5 6 7]);
transposes!(gather_i32, scatter_i32, i32, 4, transpose32, [0 1 2 3]);
transposes!(gather_f32, scatter_f32, f32, 4, transpose32, [0 1 2 3]);

#[inline(always)]
fn transpose32([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ef, gh) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ef, gh),
            _mm_unpackhi_epi64(ef, gh),
        ]
    }
}

#[inline(always)]
fn transpose16(r: [__m128i; 8]) -> [__m128i; 8] {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let (a0, a1) = (_mm_unpacklo_epi16(r[0], r[1]), _mm_unpackhi_epi16(r[0], r[1]));
        let (a2, a3) = (_mm_unpacklo_epi16(r[2], r[3]), _mm_unpackhi_epi16(r[2], r[3]));
        let (a4, a5) = (_mm_unpacklo_epi16(r[4], r[5]), _mm_unpackhi_epi16(r[4], r[5]));
        let (a6, a7) = (_mm_unpacklo_epi16(r[6], r[7]), _mm_unpackhi_epi16(r[6], r[7]));
        let (b0, b1) = (_mm_unpacklo_epi32(a0, a2), _mm_unpackhi_epi32(a0, a2));
        let (b2, b3) = (_mm_unpacklo_epi32(a1, a3), _mm_unpackhi_epi32(a1, a3));
        let (b4, b5) = (_mm_unpacklo_epi32(a4, a6), _mm_unpackhi_epi32(a4, a6));
        let (b6, b7) = (_mm_unpacklo_epi32(a5, a7), _mm_unpackhi_epi32(a5, a7));
        [
            _mm_unpacklo_epi64(b0, b4),
            _mm_unpackhi_epi64(b0, b4),
            _mm_unpacklo_epi64(b1, b5),
            _mm_unpackhi_epi64(b1, b5),
            _mm_unpacklo_epi64(b2, b6),
            _mm_unpackhi_epi64(b2, b6),
            _mm_unpacklo_epi64(b3, b7),
            _mm_unpackhi_epi64(b3, b7),
        ]
    }
}

/// Makes `gather` and `scatter` of floats in square blocks of a whole register a side, for streams that are all as long as
/// there are rows; others go the way of the smaller blocks.
///
/// The last block overlaps the one before it where the rows are not whole blocks.
macro_rules! square_transposes {
    ($gather:ident, $scatter:ident, $lanes:expr, $transpose:ident, $load:ident, $store:ident, [$($number:literal)*]) => {
        /// As [`gather_f32`].
        #[inline(always)]
        pub fn $gather(streams: &[&[f32]], flat: &mut [f32], lanes: usize) {
            let rows = flat.len() / $lanes;
            let Some(whole) = streams.first_chunk::<$lanes>() else { return gather_f32(streams, flat, lanes) };
            if rows < $lanes $(|| whole[$number].len() < rows)* {
                return gather_f32(streams, flat, lanes);
            }
            let mut at = 0;
            loop {
                // SAFETY: the level has these instructions; each stream has `rows` elements, and there are as many rows
                // of `$lanes` elements, of which `at..at + $lanes` are some, as `at` is at most `rows - $lanes`.
                unsafe {
                    let columns = $transpose([$($load(whole[$number].as_ptr().add(at))),*]);
                    let to = flat.as_mut_ptr().add(at * $lanes);
                    $($store(to.add($number * $lanes), columns[$number]);)*
                }
                if at + $lanes == rows {
                    return;
                }
                at = (at + $lanes).min(rows - $lanes);
            }
        }

        /// As [`scatter_f32`].
        #[inline(always)]
        pub fn $scatter(flat: &[f32], streams: &mut [&mut [f32]], lanes: usize) {
            let rows = flat.len() / $lanes;
            let all = streams.len() >= $lanes && rows >= $lanes;
            if !all $(|| streams[$number].len() < rows)* {
                return scatter_f32(flat, streams, lanes);
            }
            let mut at = 0;
            loop {
                // SAFETY: as above.
                unsafe {
                    let from = flat.as_ptr().add(at * $lanes);
                    let columns = $transpose([$($load(from.add($number * $lanes))),*]);
                    $($store(streams[$number].as_mut_ptr().add(at), columns[$number]);)*
                }
                if at + $lanes == rows {
                    return;
                }
                at = (at + $lanes).min(rows - $lanes);
            }
        }
    };
}

square_transposes!(gather_f32x8, scatter_f32x8, 8, transpose8, _mm256_loadu_ps, _mm256_storeu_ps, [0 1 2 3 4 5 6 7]);
square_transposes!(gather_f32x16, scatter_f32x16, 16, transpose_square16, _mm512_loadu_ps, _mm512_storeu_ps,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);

/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn transpose8(r: [__m256; 8]) -> [__m256; 8] {
    // SAFETY: the caller's promise.
    unsafe {
        // Within 128 bits four rows become four columns, of which the upper halves are four further on.
        let mut quarters = r;
        let mut row = 0;
        while row < 8 {
            let (a, b, c, d) = (r[row], r[row + 1], r[row + 2], r[row + 3]);
            let ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
            let cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
            let ef = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
            let gh = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
            quarters[row] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
            quarters[row + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
            quarters[row + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ef, gh));
            quarters[row + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ef, gh));
            row += 4;
        }
        let mut out = r;
        let mut c = 0;
        while c < 4 {
            out[c] = _mm256_permute2f128_ps::<0x20>(quarters[c], quarters[4 + c]);
            out[4 + c] = _mm256_permute2f128_ps::<0x31>(quarters[c], quarters[4 + c]);
            c += 1;
        }
        out
    }
}

/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn transpose_square16(r: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut quarters = r;
        let mut row = 0;
        while row < 16 {
            let (a, b, c, d) = (r[row], r[row + 1], r[row + 2], r[row + 3]);
            let ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
            let cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
            let ef = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
            let gh = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
            quarters[row] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
            quarters[row + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
            quarters[row + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ef, gh));
            quarters[row + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ef, gh));
            row += 4;
        }
        let mut out = r;
        let mut c = 0;
        while c < 4 {
            let (a, b) = (quarters[c], quarters[4 + c]);
            let (d, e) = (quarters[8 + c], quarters[12 + c]);
            let (even, odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
            let (even2, odd2) = (_mm512_shuffle_f32x4::<0x88>(d, e), _mm512_shuffle_f32x4::<0xDD>(d, e));
            out[c] = _mm512_shuffle_f32x4::<0x88>(even, even2);
            out[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd, odd2);
            out[8 + c] = _mm512_shuffle_f32x4::<0xDD>(even, even2);
            out[12 + c] = _mm512_shuffle_f32x4::<0xDD>(odd, odd2);
            c += 1;
        }
        out
    }
}
