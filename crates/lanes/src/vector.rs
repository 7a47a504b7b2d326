//! What kernels may do with vectors: the traits that every level implements.
//!
//! All levels give the same bits for the same lanes, with the exceptions named at [`F32Lanes::truncate`],
//! [`F32Lanes::mul_add`] and [`F32Lanes::reduce_add`].

use core::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub, SubAssign};

use crate::Kernel;

/// Keeps the traits to this crate's types.
pub trait Sealed {}

/// The vector types of one [`Level`](crate::Level).
pub trait Lanes: Sealed + Copy + 'static {
    /// Lanes of 32 bits; [`I16`](Self::I16) has twice as many, [`F64`](Self::F64) half.
    const N: usize;
    /// `N` floats.
    type F32: F32Lanes<Mask = Self::Mask32, I32 = Self::I32, F64 = Self::F64>;
    /// `N` long words.
    type I32: I32Lanes<Mask = Self::Mask32, F32 = Self::F32>;
    /// `2 N` words.
    type I16: I16Lanes<Mask = Self::Mask16, I32 = Self::I32, Mask32 = Self::Mask32>;
    /// `N / 2` doubles.
    type F64: F64Lanes;
    /// A condition for each lane of 32 bits.
    type Mask32: Mask;
    /// A condition for each lane of 16 bits.
    type Mask16: Mask;

    /// Runs another kernel on the same level, as a function of its own that is not inlined.
    fn call<K: Kernel>(kernel: K) -> K::Out;
}

/// One condition a lane.
pub trait Mask:
    Sealed
    + Copy
    + 'static
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    /// Lanes it speaks of.
    const LANES: usize;
    /// Lane `l` holds when bit `l` is set.
    fn from_bits(bits: u32) -> Self;
    /// Bit `l` is set when lane `l` holds.
    fn bits(self) -> u32;
    /// Whether one lane holds.
    fn any(self) -> bool;
    /// Whether all lanes hold.
    fn all(self) -> bool;
    /// The first `count` lanes.
    #[inline(always)]
    fn first(count: usize) -> Self {
        Self::from_bits(1u64.checked_shl(count as u32).map_or(u32::MAX, |bit| bit.wrapping_sub(1) as u32))
    }
}

/// Elements side by side; a *row* when each belongs to another stream.
pub trait Vector: Sealed + Copy + 'static {
    /// What a lane holds.
    type Element: Copy + Default + PartialEq + core::fmt::Debug + 'static;
    /// Elements in a vector.
    const LANES: usize;

    /// The same value in all lanes.
    fn splat(value: Self::Element) -> Self;
    /// The first elements of a slice. Panics when there are fewer than [`LANES`](Self::LANES).
    fn load(from: &[Self::Element]) -> Self;
    /// Writes the first elements of a slice. Panics when there are fewer than [`LANES`](Self::LANES).
    fn store(self, to: &mut [Self::Element]);
    /// Rows as their elements: lane `l` of row `r` is element `r * LANES + l`.
    fn flat(rows: &[Self]) -> &[Self::Element];
    /// As [`flat`](Self::flat), for writing.
    fn flat_mut(rows: &mut [Self]) -> &mut [Self::Element];

    /// The element of one lane.
    #[inline(always)]
    fn lane(self, lane: usize) -> Self::Element {
        Self::flat(&[self])[lane]
    }
    /// Replaces the element of one lane.
    #[inline(always)]
    fn set_lane(&mut self, lane: usize, value: Self::Element) {
        Self::flat_mut(core::slice::from_mut(self))[lane] = value;
    }

    /// Transposes streams into rows: lane `l` of row `r` is `streams[l][r]`, or zero where there is none.
    #[inline(always)]
    fn gather(streams: &[&[Self::Element]], rows: &mut [Self]) {
        rows.fill(Self::splat(Self::Element::default()));
        let flat = Self::flat_mut(rows);
        for (lane, stream) in streams.iter().take(Self::LANES).enumerate() {
            for (row, &element) in flat.chunks_exact_mut(Self::LANES).zip(*stream) {
                row[lane] = element;
            }
        }
    }
    /// Transposes rows into streams: `streams[l][r]` is lane `l` of row `r`. What is longer, on either side, is left out.
    #[inline(always)]
    fn scatter(rows: &[Self], streams: &mut [&mut [Self::Element]]) {
        let flat = Self::flat(rows);
        for (lane, stream) in streams.iter_mut().take(Self::LANES).enumerate() {
            for (row, element) in flat.chunks_exact(Self::LANES).zip(&mut **stream) {
                *element = row[lane];
            }
        }
    }
}

/// What floats and integers have in common. Integer `+`, `-`, `*` and negation wrap.
pub trait Number:
    Vector
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// What a comparison gives.
    type Mask: Mask;

    /// `yes` where the mask holds, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Lanes that are equal.
    fn eq(self, other: Self) -> Self::Mask;
    /// Lanes that are greater than the other's.
    fn gt(self, other: Self) -> Self::Mask;
    /// Lanes that are greater or equal.
    fn ge(self, other: Self) -> Self::Mask;
    /// Lanes that are smaller than the other's.
    #[inline(always)]
    fn lt(self, other: Self) -> Self::Mask {
        other.gt(self)
    }
    /// Lanes that are smaller or equal.
    #[inline(always)]
    fn le(self, other: Self) -> Self::Mask {
        other.ge(self)
    }
    /// `if self < other { self } else { other }`.
    fn min(self, other: Self) -> Self;
    /// `if self > other { self } else { other }`.
    fn max(self, other: Self) -> Self;
    /// The magnitude; that of the smallest integer is itself.
    fn abs(self) -> Self;
    /// No smaller than `low` and no greater than `high`.
    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        self.max(low).min(high)
    }
}

/// What both integer types can.
pub trait Integer:
    Number + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// Saturating sum.
    fn sat_add(self, other: Self) -> Self;
    /// Saturating difference.
    fn sat_sub(self, other: Self) -> Self;
    /// `!self & other`.
    fn and_not(self, other: Self) -> Self;
    /// All lanes to the left by the same count; one instruction. All bits out leaves zero.
    fn shl(self, count: u32) -> Self;
    /// All lanes to the right, filled with the sign.
    fn shr(self, count: u32) -> Self;
    /// All lanes to the right, filled with zeros.
    fn shr_logic(self, count: u32) -> Self;
    /// Each lane to the left by its own count. A count that is negative or beyond the width leaves zero.
    fn shl_each(self, counts: Self) -> Self;
    /// Each lane to the right by its own count, filled with the sign; so is a lane whose count is beyond the width.
    fn shr_each(self, counts: Self) -> Self;
    /// The magnitude, saturated: that of the smallest integer is the greatest.
    #[inline(always)]
    fn sat_abs(self) -> Self {
        self.max(Self::splat(Self::Element::default()).sat_sub(self))
    }
    /// All bits set where the mask holds, none elsewhere.
    fn from_mask(mask: Self::Mask) -> Self;
}

/// Floats. NaN compares as in Rust; `min` and `max` give the second operand when one is NaN.
pub trait F32Lanes: Number<Element = f32> + Div<Output = Self> {
    /// Long words in as many lanes.
    type I32;
    /// Doubles in half as many lanes.
    type F64;
    /// `self * factor + term`, rounded once where the level has an instruction for that, else twice. Never in a kernel that
    /// promises a reference's bits.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The greatest integer not above.
    fn floor(self) -> Self;
    /// Toward zero. Where the result does not fit 32 bits it is any value.
    fn truncate(self) -> Self::I32;
    /// To the nearest, ties to even. Where the result does not fit 32 bits it is any value.
    fn round(self) -> Self::I32;
    /// The bits of the floats.
    fn to_bits(self) -> Self::I32;
    /// The first half of the lanes as doubles, and the second.
    fn widen(self) -> [Self::F64; 2];
    /// The inverse of [`widen`](Self::widen), rounded to nearest.
    fn narrow(halves: [Self::F64; 2]) -> Self;
    /// The sum of all lanes, in the level's own order: not for exact kernels.
    #[inline(always)]
    fn reduce_add(self) -> f32 {
        let lanes = [self];
        let mut sums = [0.0; 4];
        for chunk in Self::flat(&lanes).chunks_exact(4) {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value;
            }
        }
        (sums[0] + sums[2]) + (sums[1] + sums[3])
    }
    /// `table[index]` lane by lane; 0 where the index is outside of the table.
    fn lookup(table: &[f32], index: Self::I32) -> Self;
}

/// Doubles, for the few places that need them. No masks: compare as floats.
pub trait F64Lanes:
    Vector<Element = f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The magnitude.
    fn abs(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The greatest integer not above.
    fn floor(self) -> Self;
    /// `if self < other { self } else { other }`.
    fn min(self, other: Self) -> Self;
    /// `if self > other { self } else { other }`.
    fn max(self, other: Self) -> Self;
}

/// Long words.
pub trait I32Lanes: Integer<Element = i32> {
    /// Floats in as many lanes.
    type F32;
    /// To the nearest float.
    fn to_f32(self) -> Self::F32;
    /// Floats with these bits.
    fn bits_to_f32(self) -> Self::F32;
    /// Zero bits above the highest that is set: 32 for 0, 0 for negative.
    fn leading_zeros(self) -> Self;
    /// The wrapping sum of all lanes.
    #[inline(always)]
    fn reduce_add(self) -> i32 {
        Self::flat(&[self]).iter().fold(0, |sum: i32, &value| sum.wrapping_add(value))
    }
    /// `table[index]` lane by lane; 0 where the index is outside of the table.
    #[inline(always)]
    fn lookup(table: &[i32], index: Self) -> Self {
        let mut found = [index];
        for slot in Self::flat_mut(&mut found) {
            *slot = table.get(*slot as usize).copied().unwrap_or(0);
        }
        found[0]
    }
}

/// Words, twice as many as there are long words.
///
/// Two ways lead to long words. [`split`](Self::split) and [`join`](Self::join) keep the lanes in order. The cheaper
/// [`zip`](Self::zip), [`mul_wide`](Self::mul_wide) and [`unzip`](Self::unzip) leave them in an order that is the level's
/// own: work lane by lane between them, with nothing that was loaded in order.
pub trait I16Lanes: Integer<Element = i16> {
    /// Long words in half as many lanes.
    type I32;
    /// A condition for each lane of those.
    type Mask32;
    /// The upper half of the product.
    fn mul_high(self, other: Self) -> Self;
    /// Product of two fractions, rounded: `(a * b + 0x4000) >> 15`, wrapping for the smallest times itself.
    fn mul_round(self, other: Self) -> Self;
    /// Sums of the products of neighbours: lane `l` is `a[2l] * b[2l] + a[2l + 1] * b[2l + 1]`.
    fn mul_add_pairs(self, other: Self) -> Self::I32;
    /// The first half of the lanes, and the second, with their sign.
    fn split(self) -> [Self::I32; 2];
    /// The inverse of [`split`](Self::split), saturating.
    fn join(halves: [Self::I32; 2]) -> Self;
    /// Each lane beside the other's: vectors of pairs for [`mul_add_pairs`](Self::mul_add_pairs), which makes one long
    /// word a lane of them, in zipped order.
    fn zip(self, other: Self) -> [Self; 2];
    /// The lanes in zipped order, with their sign.
    fn widen_zipped(self) -> [Self::I32; 2];
    /// Whole products, in zipped order.
    fn mul_wide(self, other: Self) -> [Self::I32; 2];
    /// Long words in zipped order → words in order, saturating.
    fn unzip(halves: [Self::I32; 2]) -> Self;
    /// Conditions in zipped order → conditions in order.
    fn unzip_mask(halves: [Self::Mask32; 2]) -> Self::Mask;
    /// `table[index]` lane by lane, without memory access for up to 64 entries; 0 where the index is outside.
    fn lookup(table: &[i16], index: Self) -> Self;
}
