//! AVX-512 and AVX2: the types, the way in, and what both share.
//!
//! Soundness: the types below are private to this crate, so other code meets them only as the `L` of a
//! [`Kernel`](crate::Kernel), which only [`Level::run`](crate::Level::run) supplies, for instructions that were found in
//! this CPU. Therefore each of their operations may use those instructions.

mod avx2;
mod avx512;
mod transpose;

pub use avx2::Avx2;
pub use avx512::Avx512;

use crate::Kernel;

/// Intrinsics of the level that a module is for.
macro_rules! simd {
    ($($code:tt)*) => {{
        // SAFETY: whoever has a type of this module runs on a CPU with its instructions (see the head of `x86`);
        // pointers come from slices or arrays that are long enough.
        unsafe { $($code)* }
    }};
}

/// What [`Vector`](crate::Vector) wants of a SIMD register: its load and store, and transposes for its element.
macro_rules! vector {
    ($name:ident, $register:ty, $element:ty, $lanes:expr, $splat:ident, $load:ident, $store:ident
     $(, $gather:path, $scatter:path)?) => {
        /// One register.
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $name($register);
        const _: () = assert!(size_of::<$name>() == $lanes * size_of::<$element>());

        impl Sealed for $name {}
        impl Vector for $name {
            type Element = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(value: $element) -> Self {
                Self(simd!($splat(value)))
            }
            #[inline(always)]
            fn load(from: &[$element]) -> Self {
                let from = &from[..$lanes];
                Self(simd!($load(from.as_ptr().cast())))
            }
            #[inline(always)]
            fn store(self, to: &mut [$element]) {
                let to = &mut to[..$lanes];
                simd!($store(to.as_mut_ptr().cast(), self.0))
            }
            #[inline(always)]
            fn flat(rows: &[Self]) -> &[$element] {
                // SAFETY: a register is `$lanes` elements without padding, as the assertion above says.
                unsafe { core::slice::from_raw_parts(rows.as_ptr().cast(), rows.len() * $lanes) }
            }
            #[inline(always)]
            fn flat_mut(rows: &mut [Self]) -> &mut [$element] {
                // SAFETY: as above, and any bits are a valid element and a valid register.
                unsafe { core::slice::from_raw_parts_mut(rows.as_mut_ptr().cast(), rows.len() * $lanes) }
            }
            $(
            #[inline(always)]
            fn gather(streams: &[&[$element]], rows: &mut [Self]) {
                $gather(streams, Self::flat_mut(rows), $lanes);
            }
            #[inline(always)]
            fn scatter(rows: &[Self], streams: &mut [&mut [$element]]) {
                $scatter(Self::flat(rows), streams, $lanes);
            }
            )?
        }
    };
}

/// Operators and methods that are one intrinsic of two registers.
macro_rules! operators {
    ($name:ident: $($trait:ident $method:ident $intrinsic:ident),* $(,)?) => {
        $(impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(simd!($intrinsic(self.0, other.0)))
            }
        })*
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
    };
}

/// Methods of a trait that are one intrinsic of two registers.
macro_rules! binary {
    ($($method:ident $intrinsic:ident),* $(,)?) => {
        $(#[inline(always)]
        fn $method(self, other: Self) -> Self {
            Self(simd!($intrinsic(self.0, other.0)))
        })*
    };
}

/// Methods of a trait that are one intrinsic of one register.
macro_rules! unary {
    ($($method:ident $intrinsic:ident),* $(,)?) => {
        $(#[inline(always)]
        fn $method(self) -> Self {
            Self(simd!($intrinsic(self.0)))
        })*
    };
}

/// Shifts of all lanes by one count, which becomes an immediate operand where it is a constant.
macro_rules! shifts {
    ($($method:ident $intrinsic:ident),* $(,)?) => {
        $(#[inline(always)]
        fn $method(self, count: u32) -> Self {
            Self(simd!($intrinsic(self.0, _mm_cvtsi32_si128(count.cast_signed()))))
        })*
    };
}

/// Saturating sum of long words, for which there is no instruction.
macro_rules! saturate_long {
    () => {
        #[inline(always)]
        fn sat_add(self, other: Self) -> Self {
            let sum = self + other;
            let overflown = (self ^ sum) & (other ^ sum);
            let limit = self.shr(31) ^ Self::splat(i32::MAX);
            Self::select(Self::splat(0).gt(overflown), limit, sum)
        }
        #[inline(always)]
        fn sat_sub(self, other: Self) -> Self {
            let difference = self - other;
            let overflown = (self ^ other) & (self ^ difference);
            let limit = self.shr(31) ^ Self::splat(i32::MAX);
            Self::select(Self::splat(0).gt(overflown), limit, difference)
        }
    };
}

use {binary, operators, saturate_long, shifts, simd, unary, vector};

/// Whether this CPU, and the system on it, have what [`enter_avx512`] is compiled for.
pub fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && has_avx2()
}

/// Whether this CPU, and the system on it, have what [`enter_avx2`] is compiled for.
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Runs a kernel with everything of x86-64-v4.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub fn enter_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Avx512>()
}

/// Runs a kernel with everything of x86-64-v3.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub fn enter_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Avx2>()
}
