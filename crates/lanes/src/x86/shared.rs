//! What AVX-512 and AVX2 say in the same words: macros that each module fills with its own registers and instructions.
//!
//! The text below calls intrinsics by what follows the width in their names, `add_ps` for `_mm512_add_ps`: each module
//! imports its own by these names. What an instruction set says in its own way stands in its module.

/// Intrinsics of the level that a module is for.
macro_rules! simd {
    ($($code:tt)*) => {{
        // SAFETY: whoever has a type of this module runs on a CPU with its instructions (see the head of `x86`);
        // pointers come from slices or arrays that are long enough.
        unsafe { $($code)* }
    }};
}

/// What [`Vector`](crate::Vector) wants of a SIMD register: its load and store, and transposes for its element.
macro_rules! register {
    ($name:ident, $register:ty, $element:ty, $lanes:expr, $splat:ident, $load:ident, $store:ident
     $(, $gather:ident, $scatter:ident)?) => {
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
                super::transpose::$gather(streams, Self::flat_mut(rows), $lanes);
            }
            #[inline(always)]
            fn scatter(rows: &[Self], streams: &mut [&mut [$element]]) {
                super::transpose::$scatter(Self::flat(rows), streams, $lanes);
            }
            )?
        }
    };
}

/// Operators of two: an expression of both.
macro_rules! two_sided {
    ($name:ident: $($trait:ident $method:ident |$a:ident, $b:ident| $result:expr),* $(,)?) => {
        $(impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $result
            }
        })*
    };
}

/// Operators of one: an expression of it.
macro_rules! one_sided {
    ($name:ident: $($trait:ident $method:ident |$a:ident| $result:expr),* $(,)?) => {
        $(impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self) -> Self {
                let $a = self;
                $result
            }
        })*
    };
}

/// Operators that are one intrinsic of two registers, and their assigning forms where kernels want these.
macro_rules! operators {
    ($name:ident: $($trait:ident $method:ident $intrinsic:ident),* $(,)?) => {
        two_sided!($name: $($trait $method |a, b| Self(simd!($intrinsic(a.0, b.0)))),*);
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

/// The level of a module: its lanes and the kernels' way in, its registers, and their operators.
///
/// `lanes` is the number of 32-bit lanes; `masks` are the module's types of conditions for 32 and 16 bits.
macro_rules! level {
    (
        $name:ident,
        lanes: $lanes:literal,
        entry: $entry:ident,
        masks: [$mask32:ident, $mask16:ident],
        registers: [$floats:ident, $doubles:ident, $integers:ident],
        transpose: [$gather:ident, $scatter:ident] $(,)?
    ) => {
        #[doc = concat!(stringify!($lanes), " lanes of 32 bits.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Sealed for $name {}
        impl Lanes for $name {
            const N: usize = $lanes;
            type F32 = F32s;
            type I32 = I32s;
            type I16 = I16s;
            type F64 = F64s;
            type Mask32 = $mask32;
            type Mask16 = $mask16;

            #[inline(always)]
            fn call<K: Kernel>(kernel: K) -> K::Out {
                simd!(super::$entry(kernel))
            }
        }

        register!(F32s, $floats, f32, $lanes, set1_ps, loadu_ps, storeu_ps, $gather, $scatter);
        register!(F64s, $doubles, f64, $lanes / 2, set1_pd, loadu_pd, storeu_pd);
        register!(I32s, $integers, i32, $lanes, set1_epi32, loadu, storeu, gather_i32, scatter_i32);
        register!(I16s, $integers, i16, 2 * $lanes, set1_epi16, loadu, storeu, gather16, scatter16);

        operators!(F32s: Add add add_ps, Sub sub sub_ps, Mul mul mul_ps, Div div div_ps);
        operators!(F64s: Add add add_pd, Sub sub sub_pd, Mul mul mul_pd, Div div div_pd);
        operators!(I32s: Add add add_epi32, Sub sub sub_epi32, Mul mul mullo_epi32,
            BitAnd bitand and, BitOr bitor or, BitXor bitxor xor);
        operators!(I16s: Add add add_epi16, Sub sub sub_epi16, Mul mul mullo_epi16,
            BitAnd bitand and, BitOr bitor or, BitXor bitxor xor);
        one_sided!(F32s: Neg neg |a| Self(simd!(xor_ps(a.0, set1_ps(-0.0)))));
        one_sided!(F64s: Neg neg |a| Self(simd!(xor_pd(a.0, set1_pd(-0.0)))));
        one_sided!(I32s: Neg neg |a| Self::splat(0) - a, Not not |a| a ^ Self::splat(-1));
        one_sided!(I16s: Neg neg |a| Self::splat(0) - a, Not not |a| a ^ Self::splat(-1));
    };
}

/// The methods of one implementation that are in the same words on both levels.
macro_rules! shared {
    (Number for F32s) => {
        binary!(min min_ps, max max_ps);
    };
    (F32Lanes for F32s) => {
        type I32 = I32s;
        type F64 = F64s;
        #[inline(always)]
        fn mul_add(self, factor: Self, term: Self) -> Self {
            Self(simd!(fmadd_ps(self.0, factor.0, term.0)))
        }
        unary!(sqrt sqrt_ps);
        #[inline(always)]
        fn truncate(self) -> I32s {
            I32s(simd!(cvttps_epi32(self.0)))
        }
        #[inline(always)]
        fn round(self) -> I32s {
            I32s(simd!(cvtps_epi32(self.0)))
        }
        #[inline(always)]
        fn to_bits(self) -> I32s {
            I32s(simd!(castps_si(self.0)))
        }
        #[inline(always)]
        fn widen(self) -> [F64s; 2] {
            simd!([F64s(cvtps_pd(low_ps(self.0))), F64s(cvtps_pd(extract_ps::<1>(self.0)))])
        }
        #[inline(always)]
        fn narrow([low, high]: [F64s; 2]) -> Self {
            Self(simd!(insert_ps::<1>(as_low_ps(cvtpd_ps(low.0)), cvtpd_ps(high.0))))
        }
        #[inline(always)]
        fn lookup(table: &[f32], index: I32s) -> Self {
            let mut found = [Self::splat(0.0)];
            for (slot, &index) in Self::flat_mut(&mut found).iter_mut().zip(I32s::flat(&[index])) {
                *slot = table.get(index as usize).copied().unwrap_or(0.0);
            }
            found[0]
        }
    };
    (F64Lanes for F64s) => {
        unary!(sqrt sqrt_pd);
        binary!(min min_pd, max max_pd);
    };
    (Number for I32s) => {
        binary!(min min_epi32, max max_epi32);
        unary!(abs abs_epi32);
    };
    (Integer for I32s) => {
        /// There is no instruction for it.
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
        binary!(and_not andnot, shl_each sllv_epi32, shr_each srav_epi32);
        shifts!(shl sll_epi32, shr sra_epi32, shr_logic srl_epi32);
    };
    (I32Lanes for I32s) => {
        type F32 = F32s;
        #[inline(always)]
        fn to_f32(self) -> F32s {
            F32s(simd!(cvtepi32_ps(self.0)))
        }
        #[inline(always)]
        fn bits_to_f32(self) -> F32s {
            F32s(simd!(castsi_ps(self.0)))
        }
    };
    (Number for I16s) => {
        binary!(min min_epi16, max max_epi16);
        unary!(abs abs_epi16);
    };
    (Integer for I16s) => {
        binary!(sat_add adds_epi16, sat_sub subs_epi16, and_not andnot);
        shifts!(shl sll_epi16, shr sra_epi16, shr_logic srl_epi16);
    };
    // Zipped order is that of the unpack instructions, which work within 128 bits, and which the pack instructions undo.
    (I16Lanes for I16s) => {
        type I32 = I32s;
        binary!(mul_high mulhi_epi16, mul_round mulhrs_epi16);
        #[inline(always)]
        fn mul_add_pairs(self, other: Self) -> I32s {
            I32s(simd!(madd_epi16(self.0, other.0)))
        }
        #[inline(always)]
        fn split(self) -> [I32s; 2] {
            simd!([I32s(cvtepi16_epi32(low_si(self.0))), I32s(cvtepi16_epi32(extract_si::<1>(self.0)))])
        }
        #[inline(always)]
        fn zip(self, other: Self) -> [Self; 2] {
            simd!([Self(unpacklo_epi16(self.0, other.0)), Self(unpackhi_epi16(self.0, other.0))])
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
            Self(simd!(packs_epi32(low.0, high.0)))
        }
    };
}
