//! Lanes as plain arrays: what runs where there is nothing better, and what the others are compared with.

use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use crate::vector::Sealed;
use crate::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Mask, Number, Vector};

/// 8 lanes of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

const N: usize = 8;

impl Sealed for Portable {}
impl Lanes for Portable {
    const N: usize = N;
    type F32 = F32s;
    type I32 = I32s;
    type I16 = I16s;
    type F64 = F64s;
    type Mask32 = Conditions<N>;
    type Mask16 = Conditions<{ 2 * N }>;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Out {
        enter(kernel)
    }
}

/// The entry for kernels that run on arrays.
#[inline(never)]
pub fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Portable>()
}

/// One condition a lane.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<const LANES: usize>([bool; LANES]);

impl<const LANES: usize> Conditions<LANES> {
    #[inline(always)]
    fn each(self, other: Self, operation: impl Fn(bool, bool) -> bool) -> Self {
        let mut out = self;
        for (slot, &b) in out.0.iter_mut().zip(&other.0) {
            *slot = operation(*slot, b);
        }
        out
    }
}
impl<const LANES: usize> Sealed for Conditions<LANES> {}
impl<const LANES: usize> Mask for Conditions<LANES> {
    const LANES: usize = LANES;
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        Self(core::array::from_fn(|lane| bits >> lane & 1 != 0))
    }
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0.iter().rev().fold(0, |bits, &holds| bits << 1 | u32::from(holds))
    }
    #[inline(always)]
    fn any(self) -> bool {
        self.0.iter().fold(false, |any, &holds| any | holds)
    }
    #[inline(always)]
    fn all(self) -> bool {
        self.0.iter().fold(true, |all, &holds| all & holds)
    }
}
impl<const LANES: usize> BitAnd for Conditions<LANES> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        self.each(other, |a, b| a & b)
    }
}
impl<const LANES: usize> BitOr for Conditions<LANES> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        self.each(other, |a, b| a | b)
    }
}
impl<const LANES: usize> BitXor for Conditions<LANES> {
    type Output = Self;
    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        self.each(other, |a, b| a ^ b)
    }
}
impl<const LANES: usize> Not for Conditions<LANES> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        self.each(self, |a, _| !a)
    }
}

/// An array type, its operators, and what [`Vector`] wants.
macro_rules! array {
    ($name:ident, $element:ty, $lanes:expr, $($trait:ident $method:ident $operation:expr),*) => {
        /// An array with a vector's operations.
        #[derive(Debug, Clone, Copy)]
        #[repr(C, align(32))]
        pub struct $name([$element; $lanes]);

        impl $name {
            #[inline(always)]
            fn map(mut self, operation: impl Fn($element) -> $element) -> Self {
                for slot in &mut self.0 {
                    *slot = operation(*slot);
                }
                self
            }
            #[inline(always)]
            fn with(mut self, other: Self, operation: impl Fn($element, $element) -> $element) -> Self {
                for (slot, &b) in self.0.iter_mut().zip(&other.0) {
                    *slot = operation(*slot, b);
                }
                self
            }
        }
        impl Sealed for $name {}
        impl Vector for $name {
            type Element = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(value: $element) -> Self {
                Self([value; $lanes])
            }
            #[inline(always)]
            fn load(from: &[$element]) -> Self {
                let mut out = Self([<$element>::default(); $lanes]);
                out.0.copy_from_slice(&from[..$lanes]);
                out
            }
            #[inline(always)]
            fn store(self, to: &mut [$element]) {
                to[..$lanes].copy_from_slice(&self.0);
            }
            #[inline(always)]
            fn flat(rows: &[Self]) -> &[$element] {
                // SAFETY: a row is `$lanes` elements in a row without padding (its size is a multiple of its alignment).
                unsafe { core::slice::from_raw_parts(rows.as_ptr().cast(), rows.len() * $lanes) }
            }
            #[inline(always)]
            fn flat_mut(rows: &mut [Self]) -> &mut [$element] {
                // SAFETY: as above, and any bits are a valid element.
                unsafe { core::slice::from_raw_parts_mut(rows.as_mut_ptr().cast(), rows.len() * $lanes) }
            }
        }
        const _: () = assert!(size_of::<$name>() == $lanes * size_of::<$element>());
        $(impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.with(other, $operation)
            }
        })*
    };
}

array!(F32s, f32, N, Add add |a, b| a + b, Sub sub |a, b| a - b, Mul mul |a, b| a * b, Div div |a, b| a / b);
array!(F64s, f64, N / 2, Add add |a, b| a + b, Sub sub |a, b| a - b, Mul mul |a, b| a * b, Div div |a, b| a / b);
array!(I32s, i32, N, Add add i32::wrapping_add, Sub sub i32::wrapping_sub, Mul mul i32::wrapping_mul,
    BitAnd bitand |a, b| a & b, BitOr bitor |a, b| a | b, BitXor bitxor |a, b| a ^ b);
array!(I16s, i16, 2 * N, Add add i16::wrapping_add, Sub sub i16::wrapping_sub, Mul mul i16::wrapping_mul,
    BitAnd bitand |a, b| a & b, BitOr bitor |a, b| a | b, BitXor bitxor |a, b| a ^ b);

macro_rules! number {
    ($name:ident, $element:ty, $lanes:expr, $negate:expr, $magnitude:expr) => {
        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.map($negate)
            }
        }
        impl AddAssign for $name {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl SubAssign for $name {
            #[inline(always)]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl $name {
            #[inline(always)]
            fn compare(
                self,
                other: Self,
                relation: impl Fn(&$element, &$element) -> bool,
            ) -> Conditions<{ $lanes }> {
                let mut out = Conditions([false; $lanes]);
                for ((slot, a), b) in out.0.iter_mut().zip(&self.0).zip(&other.0) {
                    *slot = relation(a, b);
                }
                out
            }
        }
        impl Number for $name {
            type Mask = Conditions<{ $lanes }>;
            #[inline(always)]
            fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
                let mut out = no;
                for ((slot, &y), &holds) in out.0.iter_mut().zip(&yes.0).zip(&mask.0) {
                    *slot = if holds { y } else { *slot };
                }
                out
            }
            #[inline(always)]
            fn eq(self, other: Self) -> Self::Mask {
                self.compare(other, |a, b| a == b)
            }
            #[inline(always)]
            fn gt(self, other: Self) -> Self::Mask {
                self.compare(other, |a, b| a > b)
            }
            #[inline(always)]
            fn ge(self, other: Self) -> Self::Mask {
                self.compare(other, |a, b| a >= b)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                self.with(other, |a, b| if a < b { a } else { b })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.with(other, |a, b| if a > b { a } else { b })
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.map($magnitude)
            }
        }
    };
}

number!(F32s, f32, N, |a| -a, f32::abs);
number!(I32s, i32, N, i32::wrapping_neg, i32::wrapping_abs);
number!(I16s, i16, 2 * N, i16::wrapping_neg, i16::wrapping_abs);

macro_rules! integer {
    ($name:ident, $element:ty, $unsigned:ty) => {
        impl Not for $name {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                self.map(|a| !a)
            }
        }
        impl Integer for $name {
            #[inline(always)]
            fn sat_add(self, other: Self) -> Self {
                self.with(other, <$element>::saturating_add)
            }
            #[inline(always)]
            fn sat_sub(self, other: Self) -> Self {
                self.with(other, <$element>::saturating_sub)
            }
            #[inline(always)]
            fn and_not(self, other: Self) -> Self {
                self.with(other, |a, b| !a & b)
            }
            #[inline(always)]
            fn shl(self, count: u32) -> Self {
                if count < <$element>::BITS { self.map(|a| a << count) } else { Self::splat(0) }
            }
            #[inline(always)]
            fn shr(self, count: u32) -> Self {
                let count = count.min(<$element>::BITS - 1);
                self.map(|a| a >> count)
            }
            #[inline(always)]
            fn shr_logic(self, count: u32) -> Self {
                if count < <$element>::BITS {
                    self.map(|a| (a as $unsigned >> count) as $element)
                } else {
                    Self::splat(0)
                }
            }
            #[inline(always)]
            fn shl_each(self, counts: Self) -> Self {
                self.with(counts, |a, n| {
                    // A negative count is a great one.
                    let n = n as $unsigned;
                    if n < <$element>::BITS as $unsigned { a << n } else { 0 }
                })
            }
            #[inline(always)]
            fn shr_each(self, counts: Self) -> Self {
                self.with(counts, |a, n| a >> (n as $unsigned).min(<$element>::BITS as $unsigned - 1))
            }
            #[inline(always)]
            fn from_mask(mask: Self::Mask) -> Self {
                Self(mask.0.map(|holds| -<$element>::from(holds)))
            }
        }
    };
}

integer!(I32s, i32, u32);
integer!(I16s, i16, u16);

impl F32Lanes for F32s {
    type I32 = I32s;
    type F64 = F64s;
    #[inline(always)]
    fn mul_add(mut self, factor: Self, term: Self) -> Self {
        for ((a, &b), &c) in self.0.iter_mut().zip(&factor.0).zip(&term.0) {
            *a = *a * b + c; // fused in software would cost more than the whole kernel
        }
        self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(f32::sqrt)
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.map(f32::floor)
    }
    #[inline(always)]
    fn truncate(self) -> I32s {
        I32s(self.0.map(|a| a as i32))
    }
    #[inline(always)]
    fn round(self) -> I32s {
        I32s(self.0.map(|a| a.round_ties_even() as i32))
    }
    #[inline(always)]
    fn to_bits(self) -> I32s {
        I32s(self.0.map(|a| a.to_bits() as i32))
    }
    #[inline(always)]
    fn widen(self) -> [F64s; 2] {
        let half = |at: usize| F64s(core::array::from_fn(|lane| f64::from(self.0[at + lane])));
        [half(0), half(N / 2)]
    }
    #[inline(always)]
    fn narrow(halves: [F64s; 2]) -> Self {
        Self(core::array::from_fn(|lane| halves[lane / (N / 2)].0[lane % (N / 2)] as f32))
    }
    #[inline(always)]
    fn lookup(table: &[f32], index: I32s) -> Self {
        Self(index.0.map(|index| table.get(index as usize).copied().unwrap_or(0.0)))
    }
}

impl Neg for F64s {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|a| -a)
    }
}
impl F64Lanes for F64s {
    #[inline(always)]
    fn abs(self) -> Self {
        self.map(f64::abs)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(f64::sqrt)
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.map(f64::floor)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.with(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.with(other, |a, b| if a > b { a } else { b })
    }
}

impl I32Lanes for I32s {
    type F32 = F32s;
    #[inline(always)]
    fn to_f32(self) -> F32s {
        F32s(self.0.map(|a| a as f32))
    }
    #[inline(always)]
    fn bits_to_f32(self) -> F32s {
        F32s(self.0.map(|a| f32::from_bits(a as u32)))
    }
    #[inline(always)]
    fn leading_zeros(self) -> Self {
        self.map(|a| a.leading_zeros() as i32)
    }
}

impl I16s {
    /// Two arrays of long words from one of words and another.
    #[inline(always)]
    fn long(self, other: Self, operation: impl Fn(i32, i32) -> i32) -> [I32s; 2] {
        let half = |at: usize| {
            I32s(core::array::from_fn(|lane| {
                operation(i32::from(self.0[at + lane]), i32::from(other.0[at + lane]))
            }))
        };
        [half(0), half(N)]
    }
}

/// Zipped order is plain order here.
impl I16Lanes for I16s {
    type I32 = I32s;
    type Mask32 = Conditions<N>;
    #[inline(always)]
    fn mul_high(self, other: Self) -> Self {
        self.with(other, |a, b| ((i32::from(a) * i32::from(b)) >> 16) as i16)
    }
    #[inline(always)]
    fn mul_round(self, other: Self) -> Self {
        self.with(other, |a, b| ((i32::from(a) * i32::from(b) + 0x4000) >> 15) as i16)
    }
    #[inline(always)]
    fn mul_add_pairs(self, other: Self) -> I32s {
        let product = |lane: usize| i32::from(self.0[lane]) * i32::from(other.0[lane]);
        I32s(core::array::from_fn(|lane| product(2 * lane).wrapping_add(product(2 * lane + 1))))
    }
    #[inline(always)]
    fn split(self) -> [I32s; 2] {
        self.long(self, |a, _| a)
    }
    #[inline(always)]
    fn join(halves: [I32s; 2]) -> Self {
        let narrow = |a: i32| a.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16;
        Self(core::array::from_fn(|lane| narrow(halves[lane / N].0[lane % N])))
    }
    #[inline(always)]
    fn zip(self, other: Self) -> [Self; 2] {
        let half = |at: usize| {
            Self(core::array::from_fn(|lane| {
                if lane % 2 == 0 { self.0[at + lane / 2] } else { other.0[at + lane / 2] }
            }))
        };
        [half(0), half(N)]
    }
    #[inline(always)]
    fn widen_zipped(self) -> [I32s; 2] {
        self.split()
    }
    #[inline(always)]
    fn mul_wide(self, other: Self) -> [I32s; 2] {
        self.long(other, |a, b| a * b)
    }
    #[inline(always)]
    fn unzip(halves: [I32s; 2]) -> Self {
        Self::join(halves)
    }
    #[inline(always)]
    fn unzip_mask(halves: [Conditions<N>; 2]) -> Conditions<{ 2 * N }> {
        Conditions(core::array::from_fn(|lane| halves[lane / N].0[lane % N]))
    }
    #[inline(always)]
    fn lookup(table: &[i16], index: Self) -> Self {
        index.map(|index| table.get(index as usize).copied().unwrap_or(0))
    }
}
