//! Line spectral frequencies of many streams, a row each: as [`crate::lsf`] for one, with the same bits.

use lanes::{F32Lanes, F64Lanes, Lanes, Mask, Number, Vector};

use crate::ORDER;
use crate::lsf::{
    HALF_PI, HALF_SEPARATION, INVERSE_TWO_PI, LSF_MAX, LSF_MIN, SEPARATION, SEPARATION_PASSES, SINE, TWO_PI,
};

/// Coefficients of a filter of every stream.
pub(crate) type LpcRows<F> = [F; ORDER + 1];
/// Frequencies of every stream.
pub(crate) type LsfRows<F> = [F; ORDER];

/// Keeps dequantised frequencies apart and in range: [`crate::lsf::stabilise`].
#[inline(always)]
pub(crate) fn stabilise<L: Lanes>(lsf: &mut LsfRows<L::F32>) {
    let half = L::F32::splat(HALF_SEPARATION);
    for _ in 0..SEPARATION_PASSES {
        for k in 0..ORDER - 1 {
            let (low, high) = (lsf[k], lsf[k + 1]);
            let crossed = high.lt(low);
            let close = (high - low).lt(L::F32::splat(SEPARATION));
            let above = L::F32::select(crossed, low, high) + half;
            let below = L::F32::select(crossed, above, low) - half;
            lsf[k + 1] = L::F32::select(close, above, high);
            lsf[k] = L::F32::select(close, below, low).clamp(L::F32::splat(LSF_MIN), L::F32::splat(LSF_MAX));
        }
    }
}

/// Prediction filters of line spectral frequencies: [`crate::lsf::to_lpc`].
#[inline(always)]
pub(crate) fn to_lpc<L: Lanes>(lsf: &LsfRows<L::F32>) -> LpcRows<L::F32> {
    let (zero, half) = (L::F32::splat(0.0), L::F32::splat(0.5));
    let mut frequency = *lsf;
    for frequency in &mut frequency {
        *frequency = *frequency * L::F32::splat(INVERSE_TWO_PI);
    }
    let (too_low, too_high) = (frequency[0].le(zero), frequency[ORDER - 1].ge(half));
    let bad = too_low | too_high;
    if bad.any() {
        frequency[0] = L::F32::select(too_low, L::F32::splat(0.022), frequency[0]);
        frequency[ORDER - 1] = L::F32::select(too_high, L::F32::splat(0.499), frequency[ORDER - 1]);
        let spacing = (frequency[ORDER - 1] - frequency[0]) / L::F32::splat((ORDER - 1) as f32);
        for k in 1..ORDER {
            frequency[k] = L::F32::select(bad, frequency[k - 1] + spacing, frequency[k]);
        }
    }
    let mut twice_cosine = frequency;
    for value in &mut twice_cosine {
        *value = L::F32::splat(2.0) * cosines::<L>(L::F32::splat(TWO_PI) * *value);
    }
    const HALF: usize = ORDER / 2;
    let mut lpc = [L::F32::splat(1.0); ORDER + 1];
    let (mut newest, mut older) = ([zero; ORDER], [zero; ORDER]);
    for (n, coefficient) in lpc.iter_mut().enumerate() {
        let (mut even, mut odd) = match n {
            0 => (L::F32::splat(0.25), L::F32::splat(0.25)),
            1 => (L::F32::splat(0.25), L::F32::splat(-0.25)),
            _ => (zero, zero),
        };
        // The response of section `i` ends with sample `2 i + 3`; what comes later is zero.
        for i in n.saturating_sub(2) / 2..HALF {
            let (e, o) = (2 * i, 2 * i + 1);
            let next_even = even - twice_cosine[e] * newest[e] + older[e];
            let next_odd = odd - twice_cosine[o] * newest[o] + older[o];
            (older[e], older[o]) = (newest[e], newest[o]);
            (newest[e], newest[o]) = (even, odd);
            (even, odd) = (next_even, next_odd);
        }
        if n > 0 {
            *coefficient = L::F32::splat(2.0) * (even + odd);
        }
    }
    lpc
}

/// [`crate::lsf::cosine`] of each lane.
#[inline(always)]
pub(crate) fn cosines<L: Lanes>(angle: L::F32) -> L::F32 {
    let mut halves = angle.widen();
    for half in &mut halves {
        *half = sine(splat(*half, HALF_PI[0]) - *half + splat(*half, HALF_PI[1]));
    }
    L::F32::narrow(halves)
}

/// A vector of the same kind as the first.
#[inline(always)]
fn splat<V: F64Lanes>(_: V, value: f64) -> V {
    V::splat(value)
}

#[inline(always)]
fn sine<V: F64Lanes>(y: V) -> V {
    let z = y * y;
    let w = z * z;
    let even = series(w, [SINE[0], SINE[2], SINE[4], SINE[6], SINE[8]]);
    let odd = series(w, [SINE[1], SINE[3], SINE[5], SINE[7], SINE[9]]);
    y + (y * z) * (even + z * odd)
}

#[inline(always)]
fn series<V: F64Lanes>(w: V, [a, b, c, d, e]: [f64; 5]) -> V {
    V::splat(a) + w * (V::splat(b) + w * (V::splat(c) + w * (V::splat(d) + w * V::splat(e))))
}
