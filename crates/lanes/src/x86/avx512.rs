//! 512-bit registers and mask registers: x86-64-v4.

use core::arch::x86_64::*;
// By the names that the shared text has for them.
use core::arch::x86_64::{
    _mm512_abs_epi16 as abs_epi16, _mm512_abs_epi32 as abs_epi32, _mm512_add_epi16 as add_epi16,
    _mm512_add_epi32 as add_epi32, _mm512_add_pd as add_pd, _mm512_add_ps as add_ps,
    _mm512_adds_epi16 as adds_epi16, _mm512_and_si512 as and, _mm512_andnot_si512 as andnot,
    _mm512_castps_si512 as castps_si, _mm512_castps256_ps512 as as_low_ps, _mm512_castps512_ps256 as low_ps,
    _mm512_castsi512_ps as castsi_ps, _mm512_castsi512_si256 as low_si,
    _mm512_cvtepi16_epi32 as cvtepi16_epi32, _mm512_cvtepi32_ps as cvtepi32_ps, _mm512_cvtpd_ps as cvtpd_ps,
    _mm512_cvtps_epi32 as cvtps_epi32, _mm512_cvtps_pd as cvtps_pd, _mm512_cvttps_epi32 as cvttps_epi32,
    _mm512_div_pd as div_pd, _mm512_div_ps as div_ps, _mm512_extractf32x8_ps as extract_ps,
    _mm512_extracti64x4_epi64 as extract_si, _mm512_fmadd_ps as fmadd_ps, _mm512_insertf32x8 as insert_ps,
    _mm512_loadu_pd as loadu_pd, _mm512_loadu_ps as loadu_ps, _mm512_loadu_si512 as loadu,
    _mm512_madd_epi16 as madd_epi16, _mm512_max_epi16 as max_epi16, _mm512_max_epi32 as max_epi32,
    _mm512_max_pd as max_pd, _mm512_max_ps as max_ps, _mm512_min_epi16 as min_epi16,
    _mm512_min_epi32 as min_epi32, _mm512_min_pd as min_pd, _mm512_min_ps as min_ps, _mm512_mul_pd as mul_pd,
    _mm512_mul_ps as mul_ps, _mm512_mulhi_epi16 as mulhi_epi16, _mm512_mulhrs_epi16 as mulhrs_epi16,
    _mm512_mullo_epi16 as mullo_epi16, _mm512_mullo_epi32 as mullo_epi32, _mm512_or_si512 as or,
    _mm512_packs_epi32 as packs_epi32, _mm512_set1_epi16 as set1_epi16, _mm512_set1_epi32 as set1_epi32,
    _mm512_set1_pd as set1_pd, _mm512_set1_ps as set1_ps, _mm512_sll_epi16 as sll_epi16,
    _mm512_sll_epi32 as sll_epi32, _mm512_sllv_epi32 as sllv_epi32, _mm512_sqrt_pd as sqrt_pd,
    _mm512_sqrt_ps as sqrt_ps, _mm512_sra_epi16 as sra_epi16, _mm512_sra_epi32 as sra_epi32,
    _mm512_srav_epi32 as srav_epi32, _mm512_srl_epi16 as srl_epi16, _mm512_srl_epi32 as srl_epi32,
    _mm512_storeu_pd as storeu_pd, _mm512_storeu_ps as storeu_ps, _mm512_storeu_si512 as storeu,
    _mm512_sub_epi16 as sub_epi16, _mm512_sub_epi32 as sub_epi32, _mm512_sub_pd as sub_pd,
    _mm512_sub_ps as sub_ps, _mm512_subs_epi16 as subs_epi16, _mm512_unpackhi_epi16 as unpackhi_epi16,
    _mm512_unpacklo_epi16 as unpacklo_epi16, _mm512_xor_pd as xor_pd, _mm512_xor_ps as xor_ps,
    _mm512_xor_si512 as xor,
};
use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use crate::vector::Sealed;
use crate::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Mask, Number, Vector};

level!(
    Avx512,
    lanes: 16,
    entry: enter_avx512,
    masks: [M16, M32],
    registers: [__m512, __m512d, __m512i],
    transpose: [gather_f32x16, scatter_f32x16],
);

macro_rules! mask {
    ($name:ident, $register:ty) => {
        /// A mask register.
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $name($register);
        impl Sealed for $name {}
        impl Mask for $name {
            const LANES: usize = <$register>::BITS as usize;
            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                Self(bits as $register)
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                self.0.into()
            }
            #[inline(always)]
            fn any(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.0 == <$register>::MAX
            }
        }
        two_sided!($name: BitAnd bitand |a, b| Self(a.0 & b.0), BitOr bitor |a, b| Self(a.0 | b.0),
            BitXor bitxor |a, b| Self(a.0 ^ b.0));
        one_sided!($name: Not not |a| Self(!a.0));
    };
}

mask!(M16, __mmask16);
mask!(M32, __mmask32);

impl Number for F32s {
    shared!(Number for F32s);
    type Mask = M16;
    #[inline(always)]
    fn select(mask: M16, yes: Self, no: Self) -> Self {
        Self(simd!(_mm512_mask_blend_ps(mask.0, no.0, yes.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, other.0)))
    }
    unary!(abs _mm512_abs_ps);
}
impl F32Lanes for F32s {
    shared!(F32Lanes for F32s);
    #[inline(always)]
    fn floor(self) -> Self {
        Self(simd!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)))
    }
}
impl F64Lanes for F64s {
    shared!(F64Lanes for F64s);
    unary!(abs _mm512_abs_pd);
    #[inline(always)]
    fn floor(self) -> Self {
        Self(simd!(_mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)))
    }
}

impl Number for I32s {
    shared!(Number for I32s);
    type Mask = M16;
    #[inline(always)]
    fn select(mask: M16, yes: Self, no: Self) -> Self {
        Self(simd!(_mm512_mask_blend_epi32(mask.0, no.0, yes.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmpeq_epi32_mask(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmpgt_epi32_mask(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M16 {
        M16(simd!(_mm512_cmpge_epi32_mask(self.0, other.0)))
    }
}
impl Integer for I32s {
    shared!(Integer for I32s);
    #[inline(always)]
    fn from_mask(mask: M16) -> Self {
        Self(simd!(_mm512_movm_epi32(mask.0)))
    }
}
impl I32Lanes for I32s {
    shared!(I32Lanes for I32s);
    unary!(leading_zeros _mm512_lzcnt_epi32);
    #[inline(always)]
    fn lookup(table: &[i32], index: Self) -> Self {
        let mut found = Self::splat(0);
        for (number, chunk) in table.chunks(16).enumerate() {
            let mut entries = [0; 16];
            entries[..chunk.len()].copy_from_slice(chunk);
            let entries = Self::load(&entries);
            let at = index - Self::splat((number * 16) as i32);
            let inside = simd!(_mm512_cmplt_epu32_mask(at.0, _mm512_set1_epi32(16)));
            found = Self(simd!(_mm512_mask_permutexvar_epi32(found.0, inside, at.0, entries.0)));
        }
        found
    }
}

impl Number for I16s {
    shared!(Number for I16s);
    type Mask = M32;
    #[inline(always)]
    fn select(mask: M32, yes: Self, no: Self) -> Self {
        Self(simd!(_mm512_mask_blend_epi16(mask.0, no.0, yes.0)))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> M32 {
        M32(simd!(_mm512_cmpeq_epi16_mask(self.0, other.0)))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> M32 {
        M32(simd!(_mm512_cmpgt_epi16_mask(self.0, other.0)))
    }
    #[inline(always)]
    fn ge(self, other: Self) -> M32 {
        M32(simd!(_mm512_cmpge_epi16_mask(self.0, other.0)))
    }
}
impl Integer for I16s {
    shared!(Integer for I16s);
    binary!(shl_each _mm512_sllv_epi16, shr_each _mm512_srav_epi16);
    #[inline(always)]
    fn from_mask(mask: M32) -> Self {
        Self(simd!(_mm512_movm_epi16(mask.0)))
    }
}
impl I16Lanes for I16s {
    shared!(I16Lanes for I16s);
    type Mask32 = M16;
    #[inline(always)]
    fn join([low, high]: [I32s; 2]) -> Self {
        Self(simd!(_mm512_inserti64x4::<1>(
            _mm512_castsi256_si512(_mm512_cvtsepi32_epi16(low.0)),
            _mm512_cvtsepi32_epi16(high.0)
        )))
    }
    #[inline(always)]
    fn unzip_mask([low, high]: [M16; 2]) -> M32 {
        let words = Self::unzip([I32s::from_mask(low), I32s::from_mask(high)]);
        M32(simd!(_mm512_movepi16_mask(words.0)))
    }
    #[inline(always)]
    fn lookup(table: &[i16], index: Self) -> Self {
        let mut found = Self::splat(0);
        for (number, chunk) in table.chunks(32).enumerate() {
            let mut entries = [0; 32];
            entries[..chunk.len()].copy_from_slice(chunk);
            let at = index - Self::splat((number * 32) as i16);
            let inside = Self::splat(32).gt(at) & at.ge(Self::splat(0));
            let entries = Self::load(&entries);
            found = Self(simd!(_mm512_mask_permutexvar_epi16(found.0, inside.0, at.0, entries.0)));
        }
        found
    }
}
