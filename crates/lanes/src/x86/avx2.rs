//! 256-bit registers: x86-64-v3. Masks are registers of all ones or all zeros a lane.

use core::arch::x86_64::*;
// By the names that the shared text has for them.
use core::arch::x86_64::{
    _mm256_abs_epi16 as abs_epi16, _mm256_abs_epi32 as abs_epi32, _mm256_add_epi16 as add_epi16,
    _mm256_add_epi32 as add_epi32, _mm256_add_pd as add_pd, _mm256_add_ps as add_ps,
    _mm256_adds_epi16 as adds_epi16, _mm256_and_si256 as and, _mm256_andnot_si256 as andnot,
    _mm256_castps_si256 as castps_si, _mm256_castps128_ps256 as as_low_ps, _mm256_castps256_ps128 as low_ps,
    _mm256_castsi256_ps as castsi_ps, _mm256_castsi256_si128 as low_si,
    _mm256_cvtepi16_epi32 as cvtepi16_epi32, _mm256_cvtepi32_ps as cvtepi32_ps, _mm256_cvtpd_ps as cvtpd_ps,
    _mm256_cvtps_epi32 as cvtps_epi32, _mm256_cvtps_pd as cvtps_pd, _mm256_cvttps_epi32 as cvttps_epi32,
    _mm256_div_pd as div_pd, _mm256_div_ps as div_ps, _mm256_extractf128_ps as extract_ps,
    _mm256_extracti128_si256 as extract_si, _mm256_fmadd_ps as fmadd_ps, _mm256_insertf128_ps as insert_ps,
    _mm256_loadu_pd as loadu_pd, _mm256_loadu_ps as loadu_ps, _mm256_loadu_si256 as loadu,
    _mm256_madd_epi16 as madd_epi16, _mm256_max_epi16 as max_epi16, _mm256_max_epi32 as max_epi32,
    _mm256_max_pd as max_pd, _mm256_max_ps as max_ps, _mm256_min_epi16 as min_epi16,
    _mm256_min_epi32 as min_epi32, _mm256_min_pd as min_pd, _mm256_min_ps as min_ps, _mm256_mul_pd as mul_pd,
    _mm256_mul_ps as mul_ps, _mm256_mulhi_epi16 as mulhi_epi16, _mm256_mulhrs_epi16 as mulhrs_epi16,
    _mm256_mullo_epi16 as mullo_epi16, _mm256_mullo_epi32 as mullo_epi32, _mm256_or_si256 as or,
    _mm256_packs_epi32 as packs_epi32, _mm256_set1_epi16 as set1_epi16, _mm256_set1_epi32 as set1_epi32,
    _mm256_set1_pd as set1_pd, _mm256_set1_ps as set1_ps, _mm256_sll_epi16 as sll_epi16,
    _mm256_sll_epi32 as sll_epi32, _mm256_sllv_epi32 as sllv_epi32, _mm256_sqrt_pd as sqrt_pd,
    _mm256_sqrt_ps as sqrt_ps, _mm256_sra_epi16 as sra_epi16, _mm256_sra_epi32 as sra_epi32,
    _mm256_srav_epi32 as srav_epi32, _mm256_srl_epi16 as srl_epi16, _mm256_srl_epi32 as srl_epi32,
    _mm256_storeu_pd as storeu_pd, _mm256_storeu_ps as storeu_ps, _mm256_storeu_si256 as storeu,
    _mm256_sub_epi16 as sub_epi16, _mm256_sub_epi32 as sub_epi32, _mm256_sub_pd as sub_pd,
    _mm256_sub_ps as sub_ps, _mm256_subs_epi16 as subs_epi16, _mm256_unpackhi_epi16 as unpackhi_epi16,
    _mm256_unpacklo_epi16 as unpacklo_epi16, _mm256_xor_pd as xor_pd, _mm256_xor_ps as xor_ps,
    _mm256_xor_si256 as xor,
};
use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use crate::vector::Sealed;
use crate::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Mask, Number, Vector};

level!(
    Avx2,
    lanes: 8,
    entry: enter_avx2,
    masks: [M8, M16],
    registers: [__m256, __m256d, __m256i],
    transpose: [gather_f32x8, scatter_f32x8],
);

macro_rules! mask {
    ($name:ident, $lanes:expr, $vector:ident) => {
        /// A register of conditions.
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(__m256i);
        impl Sealed for $name {}
        impl Mask for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                let bits = $vector::splat(bits as _);
                let each = $vector::load(&core::array::from_fn::<_, $lanes, _>(|lane| 1 << lane));
                (bits & each).eq(each)
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                self.collect()
            }
            #[inline(always)]
            fn any(self) -> bool {
                simd!(_mm256_movemask_epi8(self.0)) != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                simd!(_mm256_movemask_epi8(self.0)) == -1
            }
        }
        two_sided!($name: BitAnd bitand |a, b| Self(simd!(and(a.0, b.0))),
            BitOr bitor |a, b| Self(simd!(or(a.0, b.0))), BitXor bitxor |a, b| Self(simd!(xor(a.0, b.0))));
        one_sided!($name: Not not |a| Self(simd!(xor(a.0, _mm256_set1_epi8(-1)))));
    };
}

mask!(M8, 8, I32s);
mask!(M16, 16, I16s);

impl M8 {
    #[inline(always)]
    fn from_floats(mask: __m256) -> Self {
        Self(simd!(_mm256_castps_si256(mask)))
    }
    #[inline(always)]
    fn collect(self) -> u32 {
        simd!(_mm256_movemask_ps(_mm256_castsi256_ps(self.0))).cast_unsigned()
    }
}
impl M16 {
    #[inline(always)]
    fn collect(self) -> u32 {
        // One byte a lane, eight in each 128 bits.
        let bytes = simd!(_mm256_movemask_epi8(_mm256_packs_epi16(self.0, self.0))).cast_unsigned();
        (bytes & 0xff) | ((bytes >> 8) & 0xff00)
    }
}

impl Number for F32s {
    shared!(Number for F32s);
    type Mask = M8;
    #[inline(always)]
    fn select(mask: M8, yes: Self, no: Self) -> Self {
        Self(simd!(_mm256_blendv_ps(no.0, yes.0, _mm256_castsi256_ps(mask.0))))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M8 {
        M8::from_floats(simd!(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M8 {
        M8::from_floats(simd!(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M8 {
        M8::from_floats(simd!(_mm256_cmp_ps::<_CMP_GE_OQ>(self.0, other.0)))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(simd!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)))
    }
}
impl F32Lanes for F32s {
    shared!(F32Lanes for F32s);
    unary!(floor _mm256_floor_ps);
}
impl F64Lanes for F64s {
    shared!(F64Lanes for F64s);
    unary!(floor _mm256_floor_pd);
    #[inline(always)]
    fn abs(self) -> Self {
        Self(simd!(_mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0)))
    }
}

impl Number for I32s {
    shared!(Number for I32s);
    type Mask = M8;
    #[inline(always)]
    fn select(mask: M8, yes: Self, no: Self) -> Self {
        Self(simd!(_mm256_blendv_epi8(no.0, yes.0, mask.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M8 {
        M8(simd!(_mm256_cmpeq_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M8 {
        M8(simd!(_mm256_cmpgt_epi32(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M8 {
        !other.gt(self)
    }
}
impl Integer for I32s {
    shared!(Integer for I32s);
    #[inline(always)]
    fn from_mask(mask: M8) -> Self {
        Self(mask.0)
    }
}
impl I32Lanes for I32s {
    shared!(I32Lanes for I32s);
    /// Eight entries at a time are the lanes of one permutation.
    #[inline(always)]
    fn lookup(table: &[i32], index: Self) -> Self {
        let mut found = Self::splat(0);
        let number = index.shr(3);
        for (chunk_number, chunk) in table.chunks(8).enumerate() {
            let mut entries = [0; 8];
            entries[..chunk.len()].copy_from_slice(chunk);
            let entries = Self::load(&entries);
            let chosen = Self(simd!(_mm256_permutevar8x32_epi32(entries.0, index.0)));
            found = Self::select(number.eq(Self::splat(chunk_number as i32)), chosen, found);
        }
        found
    }
    /// By the exponent of the float, whose rounding cannot carry once the bit below the highest is cleared.
    #[inline(always)]
    fn leading_zeros(self) -> Self {
        let unambiguous = self.shr_logic(1).and_not(self);
        let exponent = unambiguous.to_f32().to_bits().shr_logic(23);
        let zeros = (Self::splat(158) - exponent).min(Self::splat(32)); // exponent 127 + 31 is bit 31
        self.shr(31).and_not(zeros)
    }
}

impl Number for I16s {
    shared!(Number for I16s);
    type Mask = M16;
    #[inline(always)]
    fn select(mask: M16, yes: Self, no: Self) -> Self {
        Self(simd!(_mm256_blendv_epi8(no.0, yes.0, mask.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M16 {
        M16(simd!(_mm256_cmpeq_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M16 {
        M16(simd!(_mm256_cmpgt_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M16 {
        !other.gt(self)
    }
}
impl Integer for I16s {
    shared!(Integer for I16s);
    /// Even and odd lanes apart, as halves of long words.
    #[inline(always)]
    fn shl_each(self, counts: Self) -> Self {
        simd!({
            let low_half = _mm256_set1_epi32(0xffff);
            let even = _mm256_sllv_epi32(self.0, _mm256_and_si256(counts.0, low_half));
            let odd =
                _mm256_sllv_epi32(_mm256_andnot_si256(low_half, self.0), _mm256_srli_epi32::<16>(counts.0));
            Self(_mm256_blend_epi16::<0xaa>(even, odd))
        })
    }
    #[inline(always)]
    fn shr_each(self, counts: Self) -> Self {
        simd!({
            let low_half = _mm256_set1_epi32(0xffff);
            let even =
                _mm256_srav_epi32(_mm256_slli_epi32::<16>(self.0), _mm256_and_si256(counts.0, low_half));
            let odd = _mm256_srav_epi32(self.0, _mm256_srli_epi32::<16>(counts.0));
            Self(_mm256_blend_epi16::<0xaa>(_mm256_srli_epi32::<16>(even), odd))
        })
    }
    #[inline(always)]
    fn from_mask(mask: M16) -> Self {
        Self(mask.0)
    }
}
impl I16Lanes for I16s {
    shared!(I16Lanes for I16s);
    type Mask32 = M8;
    #[inline(always)]
    fn join([low, high]: [I32s; 2]) -> Self {
        // The pack leaves the quarters in the order 0 2 1 3.
        Self(simd!(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low.0, high.0))))
    }
    #[inline(always)]
    fn unzip_mask([low, high]: [M8; 2]) -> M16 {
        M16(Self::unzip([I32s(low.0), I32s(high.0)]).0)
    }
    /// Eight entries at a time are the bytes of one shuffle.
    #[inline(always)]
    fn lookup(table: &[i16], index: Self) -> Self {
        let mut found = Self::splat(0);
        // Bytes 2i and 2i + 1 of entry i.
        let bytes = (index & Self::splat(7)) * Self::splat(0x0202) + Self::splat(0x0100);
        let number = index.shr(3);
        for (chunk_number, chunk) in table.chunks(8).enumerate() {
            let mut entries = [0i16; 16];
            entries[..chunk.len()].copy_from_slice(chunk);
            entries.copy_within(..8, 8);
            let entries = Self::load(&entries);
            let chosen = Self(simd!(_mm256_shuffle_epi8(entries.0, bytes.0)));
            found = Self::select(number.eq(Self::splat(chunk_number as i16)), chosen, found);
        }
        found
    }
}
