//! 256-bit registers: x86-64-v3. Masks are registers of all ones or all zeros a lane.

use core::arch::x86_64::*;
use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use super::{binary, operators, saturate_long, shifts, simd, transpose, unary, vector};
use crate::vector::Sealed;
use crate::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Mask, Number, Vector};

/// 8 lanes of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Avx2;

impl Sealed for Avx2 {}
impl Lanes for Avx2 {
    const N: usize = 8;
    type F32 = F32s;
    type I32 = I32s;
    type I16 = I16s;
    type F64 = F64s;
    type Mask32 = M8;
    type Mask16 = M16;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Out {
        simd!(super::enter_avx2(kernel))
    }
}

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
        impl BitAnd for $name {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, other: Self) -> Self {
                Self(simd!(_mm256_and_si256(self.0, other.0)))
            }
        }
        impl BitOr for $name {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, other: Self) -> Self {
                Self(simd!(_mm256_or_si256(self.0, other.0)))
            }
        }
        impl BitXor for $name {
            type Output = Self;
            #[inline(always)]
            fn bitxor(self, other: Self) -> Self {
                Self(simd!(_mm256_xor_si256(self.0, other.0)))
            }
        }
        impl Not for $name {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                Self(simd!(_mm256_xor_si256(self.0, _mm256_set1_epi8(-1))))
            }
        }
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

vector!(
    F32s,
    __m256,
    f32,
    8,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    transpose::gather_f32x8,
    transpose::scatter_f32x8
);
vector!(F64s, __m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd);
vector!(
    I32s,
    __m256i,
    i32,
    8,
    _mm256_set1_epi32,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    transpose::gather_i32,
    transpose::scatter_i32
);
vector!(
    I16s,
    __m256i,
    i16,
    16,
    _mm256_set1_epi16,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    transpose::gather16,
    transpose::scatter16
);

operators!(F32s: Add add _mm256_add_ps, Sub sub _mm256_sub_ps, Mul mul _mm256_mul_ps, Div div _mm256_div_ps);
operators!(F64s: Add add _mm256_add_pd, Sub sub _mm256_sub_pd, Mul mul _mm256_mul_pd, Div div _mm256_div_pd);
operators!(I32s: Add add _mm256_add_epi32, Sub sub _mm256_sub_epi32, Mul mul _mm256_mullo_epi32,
    BitAnd bitand _mm256_and_si256, BitOr bitor _mm256_or_si256, BitXor bitxor _mm256_xor_si256);
operators!(I16s: Add add _mm256_add_epi16, Sub sub _mm256_sub_epi16, Mul mul _mm256_mullo_epi16,
    BitAnd bitand _mm256_and_si256, BitOr bitor _mm256_or_si256, BitXor bitxor _mm256_xor_si256);

impl Neg for F32s {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(simd!(_mm256_xor_ps(self.0, _mm256_set1_ps(-0.0))))
    }
}
impl Number for F32s {
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
    binary!(min _mm256_min_ps, max _mm256_max_ps);
    #[inline(always)]
    fn abs(self) -> Self {
        Self(simd!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)))
    }
}
impl F32Lanes for F32s {
    type I32 = I32s;
    type F64 = F64s;
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(simd!(_mm256_fmadd_ps(self.0, factor.0, term.0)))
    }
    unary!(sqrt _mm256_sqrt_ps, floor _mm256_floor_ps);
    #[inline(always)]
    fn truncate(self) -> I32s {
        I32s(simd!(_mm256_cvttps_epi32(self.0)))
    }
    #[inline(always)]
    fn round(self) -> I32s {
        I32s(simd!(_mm256_cvtps_epi32(self.0)))
    }
    #[inline(always)]
    fn to_bits(self) -> I32s {
        I32s(simd!(_mm256_castps_si256(self.0)))
    }
    #[inline(always)]
    fn widen(self) -> [F64s; 2] {
        simd!([
            F64s(_mm256_cvtps_pd(_mm256_castps256_ps128(self.0))),
            F64s(_mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.0))),
        ])
    }
    #[inline(always)]
    fn narrow([low, high]: [F64s; 2]) -> Self {
        Self(simd!(_mm256_set_m128(_mm256_cvtpd_ps(high.0), _mm256_cvtpd_ps(low.0))))
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
        Self(simd!(_mm256_xor_pd(self.0, _mm256_set1_pd(-0.0))))
    }
}
impl F64Lanes for F64s {
    unary!(sqrt _mm256_sqrt_pd, floor _mm256_floor_pd);
    binary!(min _mm256_min_pd, max _mm256_max_pd);
    #[inline(always)]
    fn abs(self) -> Self {
        Self(simd!(_mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0)))
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
    binary!(min _mm256_min_epi32, max _mm256_max_epi32);
    unary!(abs _mm256_abs_epi32);
}
impl Integer for I32s {
    saturate_long!();
    binary!(and_not _mm256_andnot_si256, shl_each _mm256_sllv_epi32, shr_each _mm256_srav_epi32);
    shifts!(shl _mm256_sll_epi32, shr _mm256_sra_epi32, shr_logic _mm256_srl_epi32);
    #[inline(always)]
    fn from_mask(mask: M8) -> Self {
        Self(mask.0)
    }
}
impl I32Lanes for I32s {
    type F32 = F32s;
    #[inline(always)]
    fn to_f32(self) -> F32s {
        F32s(simd!(_mm256_cvtepi32_ps(self.0)))
    }
    #[inline(always)]
    fn bits_to_f32(self) -> F32s {
        F32s(simd!(_mm256_castsi256_ps(self.0)))
    }
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
    binary!(min _mm256_min_epi16, max _mm256_max_epi16);
    unary!(abs _mm256_abs_epi16);
}
impl Integer for I16s {
    binary!(sat_add _mm256_adds_epi16, sat_sub _mm256_subs_epi16, and_not _mm256_andnot_si256);
    shifts!(shl _mm256_sll_epi16, shr _mm256_sra_epi16, shr_logic _mm256_srl_epi16);
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
/// Zipped order is that of the unpack instructions, which work within 128 bits, and which the pack instructions undo.
impl I16Lanes for I16s {
    type I32 = I32s;
    type Mask32 = M8;
    binary!(mul_high _mm256_mulhi_epi16, mul_round _mm256_mulhrs_epi16);
    #[inline(always)]
    fn mul_add_pairs(self, other: Self) -> I32s {
        I32s(simd!(_mm256_madd_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn split(self) -> [I32s; 2] {
        simd!([
            I32s(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(self.0))),
            I32s(_mm256_cvtepi16_epi32(_mm256_extracti128_si256::<1>(self.0))),
        ])
    }
    #[inline(always)]
    fn join([low, high]: [I32s; 2]) -> Self {
        // The pack leaves the quarters in the order 0 2 1 3.
        Self(simd!(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low.0, high.0))))
    }
    #[inline(always)]
    fn zip(self, other: Self) -> [Self; 2] {
        simd!([Self(_mm256_unpacklo_epi16(self.0, other.0)), Self(_mm256_unpackhi_epi16(self.0, other.0)),])
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
        Self(simd!(_mm256_packs_epi32(low.0, high.0)))
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
