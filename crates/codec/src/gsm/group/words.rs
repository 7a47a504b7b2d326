//! Operations of GSM 06.10 §5.1 that are more than one instruction.

use lanes::{F32Lanes, I16Lanes, I32Lanes, Integer, Lanes, Number, Vector};

/// Product of two fractions, truncated; not for the smallest times itself.
#[inline(always)]
pub fn mult<V: I16Lanes>(a: V, b: V) -> V {
    a.mul_high(b).shl(1) | (a * b).shr_logic(15)
}

/// The 15-bit quotient, for 0 ≤ numerator ≤ denominator; 0 for 0 by 0, any value elsewhere.
#[inline(always)]
pub fn div<L: Lanes>(numerator: L::I16, denominator: L::I16) -> L::I16 {
    let ([n0, n1], [d0, d1]) = (numerator.widen_zipped(), denominator.widen_zipped());
    let quotient = L::I16::unzip([div_long::<L>(n0, d0), div_long::<L>(n1, d1)]);
    L::I16::select(numerator.gt(L::I16::splat(0)), quotient, L::I16::splat(0))
}

/// Exact: both are floats without loss, and the float quotient is wrong only by being rounded up to an integer.
#[inline(always)]
fn div_long<L: Lanes>(numerator: L::I32, denominator: L::I32) -> L::I32 {
    let dividend = numerator.shl(15);
    let quotient = (dividend.to_f32() / denominator.to_f32()).truncate();
    quotient + L::I32::from_mask((quotient * denominator).gt(dividend))
}

/// How many of `thresholds` the value reaches, each being twice the one before: `first << 0`, `first << 1`, …
#[inline(always)]
pub fn octaves<V: I16Lanes>(value: V, first: i16, count: u32) -> V {
    let mut reached = V::splat(0);
    for octave in 0..count {
        reached -= V::from_mask(value.ge(V::splat(first << octave)));
    }
    reached
}

/// The greatest magnitude of rows, saturated.
#[inline(always)]
pub fn peak<V: I16Lanes>(rows: &[V]) -> V {
    let mut peak = V::splat(0);
    for row in rows {
        peak = peak.max(row.sat_abs());
    }
    peak
}
