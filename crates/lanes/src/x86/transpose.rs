//! Block transposes between streams and rows, in instructions that every x86-64 has.

use core::arch::x86_64::*;

/// Makes `gather` and `scatter` of one element type, in square blocks of 16 bytes a side.
macro_rules! transposes {
    ($gather:ident, $scatter:ident, $element:ty, $side:expr, $transpose:ident) => {
        /// Lane `l` of row `r` becomes `streams[l][r]`, or zero where there is none; `lanes` elements are a row.
        #[inline(always)]
        pub fn $gather(streams: &[&[$element]], flat: &mut [$element], lanes: usize) {
            for lane in (0..lanes).step_by($side) {
                for (number, rows) in flat.chunks_mut(lanes * $side).enumerate() {
                    let mut block = [[0 as $element; $side]; $side];
                    for (column, stream) in block.iter_mut().zip(streams.get(lane..).unwrap_or_default()) {
                        let rest = stream.get(number * $side..).unwrap_or_default();
                        match rest.first_chunk::<$side>() {
                            Some(chunk) => *column = *chunk,
                            None => column[..rest.len()].copy_from_slice(rest),
                        }
                    }
                    let block = $transpose(block);
                    for (row, elements) in rows.chunks_exact_mut(lanes).zip(&block) {
                        row[lane..lane + $side].copy_from_slice(elements);
                    }
                }
            }
        }

        /// `streams[l][r]` becomes lane `l` of row `r`; what is longer on either side is left out.
        #[inline(always)]
        pub fn $scatter(flat: &[$element], streams: &mut [&mut [$element]], lanes: usize) {
            for (number, group) in streams.chunks_mut($side).take(lanes / $side).enumerate() {
                let lane = number * $side;
                for (number, rows) in flat.chunks(lanes * $side).enumerate() {
                    let mut block = [[0 as $element; $side]; $side];
                    let count = rows.len() / lanes;
                    for (elements, row) in block.iter_mut().zip(rows.chunks_exact(lanes)) {
                        elements.copy_from_slice(&row[lane..lane + $side]);
                    }
                    let block = $transpose(block);
                    for (column, stream) in block.iter().zip(group.iter_mut()) {
                        let rest = stream.get_mut(number * $side..).unwrap_or_default();
                        match rest.first_chunk_mut::<$side>() {
                            Some(chunk) if count == $side => *chunk = *column,
                            _ => rest.iter_mut().zip(&column[..count]).for_each(|(slot, &e)| *slot = e),
                        }
                    }
                }
            }
        }
    };
}

transposes!(gather16, scatter16, i16, 8, transpose16);
transposes!(gather_i32, scatter_i32, i32, 4, transpose32);
transposes!(gather_f32, scatter_f32, f32, 4, transpose_f32);

#[inline(always)]
fn transpose_f32(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    transpose32(rows.map(|row| row.map(|e| e.to_bits().cast_signed())))
        .map(|row| row.map(|e| f32::from_bits(e.cast_unsigned())))
}

#[inline(always)]
fn transpose32(rows: [[i32; 4]; 4]) -> [[i32; 4]; 4] {
    // SAFETY: arrays and registers of the same 64 bytes, any bits valid in both.
    let [a, b, c, d]: [__m128i; 4] = unsafe { core::mem::transmute(rows) };
    // SAFETY: SSE2 is part of x86-64.
    let columns = unsafe {
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ef, gh) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ef, gh),
            _mm_unpackhi_epi64(ef, gh),
        ]
    };
    // SAFETY: as the first.
    unsafe { core::mem::transmute(columns) }
}

#[inline(always)]
fn transpose16(rows: [[i16; 8]; 8]) -> [[i16; 8]; 8] {
    // SAFETY: arrays and registers of the same 128 bytes, any bits valid in both.
    let r: [__m128i; 8] = unsafe { core::mem::transmute(rows) };
    // SAFETY: SSE2 is part of x86-64.
    let columns = unsafe {
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
    };
    // SAFETY: as the first.
    unsafe { core::mem::transmute(columns) }
}
