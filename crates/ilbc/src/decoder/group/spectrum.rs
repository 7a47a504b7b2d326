//! Synthesis filters of all streams from their line spectral frequencies.

use lanes::{F32Lanes, F64Lanes, Kernel, LANES_MAX, Lanes, Number, Vector};

use super::{FilterRows, LpcRows, gather, kept};
use crate::bits::Frame;
use crate::lsf::{
    HALF_PI, HALF_SEPARATION, INVERSE_TWO_PI, LSF_MAX, LSF_MIN, SEPARATION, SEPARATION_PASSES, SINE, TWO_PI,
    dequantise,
};
use crate::{ORDER, Shape};

/// Frequencies of every stream.
type LsfRows<L> = [<L as Lanes>::F32; ORDER];

/// Fills `filters`, and replaces the frequencies in `kept` by the frame's.
pub(super) struct Filters<'a, L: Lanes> {
    pub shape: &'a Shape,
    pub frames: &'a [Frame; LANES_MAX],
    pub kept: &'a mut [L::F32; kept::COUNT],
    pub filters: &'a mut FilterRows<L>,
}

impl<L: Lanes> Kernel for Filters<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let sets = self.shape.lsf_sets;
        let first = frequencies::<L>(self.frames, 0);
        let last = if sets == 2 { frequencies::<L>(self.frames, 1) } else { first };
        let mut old = first;
        old.copy_from_slice(&self.kept[kept::LSF]);
        for (index, &weight) in self.shape.lsf_weights.iter().enumerate() {
            let (older, newer) = if sets == 1 || index == 0 { (&old, &first) } else { (&first, &last) };
            if index > 0 && weight == self.shape.lsf_weights[index - 1] {
                self.filters[index] = self.filters[index - 1];
                continue;
            }
            let mut between = old;
            for k in 0..ORDER {
                between[k] = L::F32::splat(weight) * older[k] + L::F32::splat(1.0 - weight) * newer[k];
            }
            self.filters[index] = to_lpc::<L>(&between);
        }
        self.kept[kept::LSF].copy_from_slice(&last);
    }
}

/// The stable frequencies of one set of indices.
#[inline(always)]
fn frequencies<L: Lanes>(frames: &[Frame; LANES_MAX], set: usize) -> LsfRows<L> {
    // As many rows as lanes are transposed fastest.
    let mut values = [[0.0; LANES_MAX]; LANES_MAX];
    for (values, frame) in values.iter_mut().zip(frames).take(L::N) {
        values[..ORDER].copy_from_slice(&dequantise(frame.lsf[set]));
    }
    let mut rows = [L::F32::splat(0.0); LANES_MAX];
    gather::<L, _>(&values, |values| &values[..], &mut rows);
    let mut lsf = [L::F32::splat(0.0); ORDER];
    lsf.copy_from_slice(&rows[..ORDER]);
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
    lsf
}

/// As [`crate::lsf::to_lpc`].
#[inline(always)]
fn to_lpc<L: Lanes>(lsf: &LsfRows<L>) -> LpcRows<L> {
    let (zero, half) = (L::F32::splat(0.0), L::F32::splat(0.5));
    let mut frequency = *lsf;
    for frequency in &mut frequency {
        *frequency = *frequency * L::F32::splat(INVERSE_TWO_PI);
    }
    let (too_low, too_high) = (frequency[0].le(zero), frequency[ORDER - 1].ge(half));
    let bad = too_low | too_high;
    if lanes::Mask::any(bad) {
        frequency[0] = L::F32::select(too_low, L::F32::splat(0.022), frequency[0]);
        frequency[ORDER - 1] = L::F32::select(too_high, L::F32::splat(0.499), frequency[ORDER - 1]);
        let spacing = (frequency[ORDER - 1] - frequency[0]) / L::F32::splat((ORDER - 1) as f32);
        for k in 1..ORDER {
            frequency[k] = L::F32::select(bad, frequency[k - 1] + spacing, frequency[k]);
        }
    }
    let mut twice_cosine = frequency;
    for value in &mut twice_cosine {
        *value = L::F32::splat(2.0) * cosine::<L>(L::F32::splat(TWO_PI) * *value);
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

/// As [`crate::lsf::cosine`].
#[inline(always)]
fn cosine<L: Lanes>(angle: L::F32) -> L::F32 {
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
