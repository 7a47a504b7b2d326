//! 512-bit registers and mask registers: x86-64-v4.

use core::arch::x86_64::*;
use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use super::{binary, operators, saturate_long, shifts, simd, transpose, unary, vector};
use crate::vector::Sealed;
use crate::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Mask, Number, Vector};

/// 16 lanes of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Avx512;

impl Sealed for Avx512 {}
impl Lanes for Avx512 {
    const N: usize = 16;
    type F32 = F32s;
    type I32 = I32s;
    type I16 = I16s;
    type F64 = F64s;
    type Mask32 = M16;
    type Mask16 = M32;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Out {
        simd!(super::enter_avx512(kernel))
    }
}

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
        impl BitAnd for $name {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }
        impl BitOr for $name {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
        impl BitXor for $name {
            type Output = Self;
            #[inline(always)]
            fn bitxor(self, other: Self) -> Self {
                Self(self.0 ^ other.0)
            }
        }
        impl Not for $name {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                Self(!self.0)
            }
        }
    };
}

mask!(M16, __mmask16);
mask!(M32, __mmask32);

vector!(
    F32s,
    __m512,
    f32,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    transpose::gather_f32x16,
    transpose::scatter_f32x16
);
vector!(F64s, __m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd);
vector!(
    I32s,
    __m512i,
    i32,
    16,
    _mm512_set1_epi32,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    transpose::gather_i32,
    transpose::scatter_i32
);
vector!(
    I16s,
    __m512i,
    i16,
    32,
    _mm512_set1_epi16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    transpose::gather16,
    transpose::scatter16
);

operators!(F32s: Add add _mm512_add_ps, Sub sub _mm512_sub_ps, Mul mul _mm512_mul_ps, Div div _mm512_div_ps);
operators!(F64s: Add add _mm512_add_pd, Sub sub _mm512_sub_pd, Mul mul _mm512_mul_pd, Div div _mm512_div_pd);
operators!(I32s: Add add _mm512_add_epi32, Sub sub _mm512_sub_epi32, Mul mul _mm512_mullo_epi32,
    BitAnd bitand _mm512_and_si512, BitOr bitor _mm512_or_si512, BitXor bitxor _mm512_xor_si512);
operators!(I16s: Add add _mm512_add_epi16, Sub sub _mm512_sub_epi16, Mul mul _mm512_mullo_epi16,
    BitAnd bitand _mm512_and_si512, BitOr bitor _mm512_or_si512, BitXor bitxor _mm512_xor_si512);

impl Neg for F32s {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(simd!(_mm512_xor_ps(self.0, _mm512_set1_ps(-0.0))))
    }
}
impl Number for F32s {
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
    binary!(min _mm512_min_ps, max _mm512_max_ps);
    unary!(abs _mm512_abs_ps);
}
impl F32Lanes for F32s {
    type I32 = I32s;
    type F64 = F64s;
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(simd!(_mm512_fmadd_ps(self.0, factor.0, term.0)))
    }
    unary!(sqrt _mm512_sqrt_ps);
    #[inline(always)]
    fn floor(self) -> Self {
        Self(simd!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)))
    }
    #[inline(always)]
    fn truncate(self) -> I32s {
        I32s(simd!(_mm512_cvttps_epi32(self.0)))
    }
    #[inline(always)]
    fn round(self) -> I32s {
        I32s(simd!(_mm512_cvtps_epi32(self.0)))
    }
    #[inline(always)]
    fn to_bits(self) -> I32s {
        I32s(simd!(_mm512_castps_si512(self.0)))
    }
    #[inline(always)]
    fn widen(self) -> [F64s; 2] {
        simd!([
            F64s(_mm512_cvtps_pd(_mm512_castps512_ps256(self.0))),
            F64s(_mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self.0))),
        ])
    }
    #[inline(always)]
    fn narrow([low, high]: [F64s; 2]) -> Self {
        Self(simd!(_mm512_insertf32x8::<1>(
            _mm512_castps256_ps512(_mm512_cvtpd_ps(low.0)),
            _mm512_cvtpd_ps(high.0)
        )))
    }
    #[inline(always)]
    fn lookup(table: &[f32], index: I32s) -> Self {
        let mut found = [Self::splat(0.0)];
        for (slot, &index) in Self::flat_mut(&mut found).iter_mut().zip(I32s::flat(&[index])) {
            *slot = table.get(index as usize).copied().unwrap_or(0.0);
        }
        found[0]
    }
}

impl Neg for F64s {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(simd!(_mm512_xor_pd(self.0, _mm512_set1_pd(-0.0))))
    }
}
impl F64Lanes for F64s {
    unary!(abs _mm512_abs_pd, sqrt _mm512_sqrt_pd);
    binary!(min _mm512_min_pd, max _mm512_max_pd);
    #[inline(always)]
    fn floor(self) -> Self {
        Self(simd!(_mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)))
    }
}

macro_rules! integer_operators {
    ($name:ident) => {
        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self::splat(0) - self
            }
        }
        impl Not for $name {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                self ^ Self::splat(-1)
            }
        }
    };
}
integer_operators!(I32s);
integer_operators!(I16s);

impl Number for I32s {
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
    binary!(min _mm512_min_epi32, max _mm512_max_epi32);
    unary!(abs _mm512_abs_epi32);
}
impl Integer for I32s {
    saturate_long!();
    binary!(and_not _mm512_andnot_si512, shl_each _mm512_sllv_epi32, shr_each _mm512_srav_epi32);
    shifts!(shl _mm512_sll_epi32, shr _mm512_sra_epi32, shr_logic _mm512_srl_epi32);
    #[inline(always)]
    fn from_mask(mask: M16) -> Self {
        Self(simd!(_mm512_movm_epi32(mask.0)))
    }
}
impl I32Lanes for I32s {
    type F32 = F32s;
    #[inline(always)]
    fn to_f32(self) -> F32s {
        F32s(simd!(_mm512_cvtepi32_ps(self.0)))
    }
    #[inline(always)]
    fn bits_to_f32(self) -> F32s {
        F32s(simd!(_mm512_castsi512_ps(self.0)))
    }
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
    binary!(min _mm512_min_epi16, max _mm512_max_epi16);
    unary!(abs _mm512_abs_epi16);
}
impl Integer for I16s {
    binary!(sat_add _mm512_adds_epi16, sat_sub _mm512_subs_epi16, and_not _mm512_andnot_si512,
        shl_each _mm512_sllv_epi16, shr_each _mm512_srav_epi16);
    shifts!(shl _mm512_sll_epi16, shr _mm512_sra_epi16, shr_logic _mm512_srl_epi16);
    #[inline(always)]
    fn from_mask(mask: M32) -> Self {
        Self(simd!(_mm512_movm_epi16(mask.0)))
    }
}
/// Zipped order is that of the unpack instructions, which work within 128 bits, and which the pack instructions undo.
impl I16Lanes for I16s {
    type I32 = I32s;
    type Mask32 = M16;
    binary!(mul_high _mm512_mulhi_epi16, mul_round _mm512_mulhrs_epi16);
    #[inline(always)]
    fn mul_add_pairs(self, other: Self) -> I32s {
        I32s(simd!(_mm512_madd_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn split(self) -> [I32s; 2] {
        simd!([
            I32s(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(self.0))),
            I32s(_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64::<1>(self.0))),
        ])
    }
    #[inline(always)]
    fn join([low, high]: [I32s; 2]) -> Self {
        Self(simd!(_mm512_inserti64x4::<1>(
            _mm512_castsi256_si512(_mm512_cvtsepi32_epi16(low.0)),
            _mm512_cvtsepi32_epi16(high.0)
        )))
    }
    #[inline(always)]
    fn zip(self, other: Self) -> [Self; 2] {
        simd!([Self(_mm512_unpacklo_epi16(self.0, other.0)), Self(_mm512_unpackhi_epi16(self.0, other.0)),])
    }
    #[inline(always)]
    fn widen_zipped(self) -> [I32s; 2] {
        let [low, high] = self.zip(self);
        [I32s(low.0).shr(16), I32s(high.0).shr(16)]
    }
    #[inline(always)]
    fn mul_wide(self, other: Self) -> [I32s; 2] {
        let [low, high] = (self * other).zip(self.mul_high(other));
        [I32s(low.0), I32s(high.0)]
    }
    #[inline(always)]
    fn unzip([low, high]: [I32s; 2]) -> Self {
        Self(simd!(_mm512_packs_epi32(low.0, high.0)))
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
