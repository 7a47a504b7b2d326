//! Linear prediction: from a signal to coded log-area ratios, and from those to filters (§4.2.4 to §4.2.9).

use lanes::{I16Lanes, I32Lanes, Integer, Lanes, Number, Vector};

use super::super::FRAME_SAMPLES;
use super::super::analysis::QUANTISE;
use super::super::reflection::DEQUANTISE;
use super::words::{div, mult, octaves, peak};

/// Reflection coefficients, a row each.
pub type Coefficients<L> = [<L as Lanes>::I16; 8];

/// LPC analysis of a frame (§4.2.4 to §4.2.7); scales the signal down and up again, which drops low bits.
#[inline(always)]
pub fn linear_prediction<L: Lanes>(signal: &mut [L::I16; FRAME_SAMPLES]) -> Coefficients<L> {
    let correlation = autocorrelation::<L>(signal);
    let mut codes = schur::<L>(&correlation);
    for (code, (slope, offset, smallest, largest)) in codes.iter_mut().zip(QUANTISE) {
        let ratio = mult(L::I16::splat(slope), to_log_area_ratio::<L>(*code));
        let value = ratio.sat_add(L::I16::splat(offset)).sat_add(L::I16::splat(256)).shr(9);
        *code = value.clamp(L::I16::splat(smallest), L::I16::splat(largest)) - L::I16::splat(smallest);
    }
    codes
}

/// §4.2.4, in zipped order.
#[inline(always)]
fn autocorrelation<L: Lanes>(signal: &mut [L::I16; FRAME_SAMPLES]) -> [[L::I32; 2]; 9] {
    const LAGS: usize = 9;
    let zero = L::I16::splat(0);
    // Bits by which the peak exceeds 11.
    let scale = octaves(peak(signal), 2048, 4);
    let loud = scale.gt(zero);
    let down = L::I16::lookup(&[0, 16384, 8192, 4096, 2048], scale);
    let up = L::I16::lookup(&[1, 2, 4, 8, 16], scale);
    // Products of two samples at a time: neighbours i, i + 1 with neighbours i + lag, i + lag + 1; zeros behind the last.
    let mut pairs = [[zero; FRAME_SAMPLES + LAGS + 1]; 2];
    let mut last = zero;
    for (i, sample) in signal.iter_mut().enumerate() {
        let scaled = L::I16::select(loud, down.mul_round(*sample), *sample);
        *sample = scaled * up;
        // Pair 0 is made of nothing and the first.
        [pairs[0][i], pairs[1][i]] = last.zip(scaled);
        last = scaled;
    }
    [pairs[0][FRAME_SAMPLES], pairs[1][FRAME_SAMPLES]] = last.zip(zero);
    let mut correlation = [[L::I32::splat(0); 2]; LAGS];
    for half in 0..2 {
        let mut sums = [L::I32::splat(0); LAGS];
        for i in (0..FRAME_SAMPLES).step_by(2) {
            let window = &pairs[half][i + 1..][..LAGS];
            for (sum, later) in sums.iter_mut().zip(window) {
                *sum += window[0].mul_add_pairs(*later);
            }
        }
        for (slot, sum) in correlation.iter_mut().zip(sums) {
            slot[half] = sum.shl(1);
        }
    }
    correlation
}

/// §4.2.5: reflection coefficients by the Schur recursion.
#[inline(always)]
fn schur<L: Lanes>(correlation: &[[L::I32; 2]; 9]) -> Coefficients<L> {
    let zero = L::I16::splat(0);
    // Normalisation: zero has 32 leading zeros and stays zero.
    let [low, high] = correlation[0];
    let shift = [low.leading_zeros() - L::I32::splat(1), high.leading_zeros() - L::I32::splat(1)];
    let mut p = [zero; 9];
    for (slot, sum) in p.iter_mut().zip(correlation) {
        *slot = L::I16::unzip([sum[0].shl_each(shift[0]).shr(16), sum[1].shl_each(shift[1]).shr(16)]);
    }
    let mut k = p;
    let mut r = [zero; 8];
    // Lanes that have not come to their end: where the rest stays zero.
    let mut going = p[0].gt(zero);
    for (n, slot) in r.iter_mut().enumerate() {
        let magnitude = p[1].sat_abs();
        going = going & p[0].ge(magnitude);
        let quotient = div::<L>(magnitude, p[0]);
        let signed = L::I16::select(p[1].gt(zero), -quotient, quotient);
        let r = L::I16::select(going, signed, zero);
        *slot = r;
        p[0] = p[0].sat_add(p[1].mul_round(r));
        for m in 1..8 - n {
            let next = p[m + 1];
            p[m] = next.sat_add(k[m].mul_round(r));
            k[m] = k[m].sat_add(next.mul_round(r));
        }
    }
    r
}

/// §4.2.6.
#[inline(always)]
fn to_log_area_ratio<L: Lanes>(r: L::I16) -> L::I16 {
    let magnitude = r.sat_abs();
    let middle = magnitude - L::I16::splat(11059);
    let upper = (magnitude - L::I16::splat(26112)).shl(2);
    let value = L::I16::select(L::I16::splat(22118).gt(magnitude), magnitude.shr(1), middle);
    let value = L::I16::select(magnitude.ge(L::I16::splat(31130)), upper, value);
    negate_where(r, value)
}

/// §4.2.8: decodes the coded log-area ratios.
#[inline(always)]
pub fn dequantise<L: Lanes>(codes: &Coefficients<L>) -> Coefficients<L> {
    let mut lar = *codes;
    for (slot, (offset, smallest, inverse)) in lar.iter_mut().zip(DEQUANTISE) {
        let value = (*slot + L::I16::splat(smallest)).shl(10).sat_sub(L::I16::splat(offset));
        let value = L::I16::splat(inverse).mul_round(value);
        *slot = value.sat_add(value);
    }
    lar
}

/// §4.2.9: the filters of the four stretches of a frame, interpolated with the frame before.
#[inline(always)]
pub fn interpolate<L: Lanes>(previous: &[L::I16], current: &Coefficients<L>) -> [Coefficients<L>; 4] {
    let mut filters = [*current; 4];
    for (i, (old, new)) in previous.iter().zip(current).enumerate() {
        let quarters = old.shr(2).sat_add(new.shr(2));
        filters[0][i] = quarters.sat_add(old.shr(1));
        filters[1][i] = old.shr(1).sat_add(new.shr(1));
        filters[2][i] = quarters.sat_add(new.shr(1));
    }
    for lar in filters.as_flattened_mut() {
        *lar = to_reflection::<L>(*lar);
    }
    filters
}

/// §4.2.9.2.
#[inline(always)]
fn to_reflection<L: Lanes>(lar: L::I16) -> L::I16 {
    let magnitude = lar.sat_abs();
    let upper = magnitude.shr(2).sat_add(L::I16::splat(26112));
    let middle = magnitude + L::I16::splat(11059);
    let value = L::I16::select(L::I16::splat(11059).gt(magnitude), magnitude.shl(1), middle);
    let value = L::I16::select(magnitude.ge(L::I16::splat(20070)), upper, value);
    negate_where(lar, value)
}

/// `-value` where the sign is negative.
#[inline(always)]
fn negate_where<V: I16Lanes>(sign: V, value: V) -> V {
    let all = sign.shr(15);
    (value ^ all) - all
}
