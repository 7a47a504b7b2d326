//! Regular pulse excitation (§4.2.13 to §4.2.17): 40 residual samples ⇄ 13 pulses on one of four grids.

use lanes::{I16Lanes, Integer, Lanes, Number, Vector};

use super::super::SUBFRAME;
use super::super::pulses::{FAC, H, NRFAC, PULSES as COUNT, exponent_and_mantissa};
use super::parameters::{AMPLITUDE, GRID, PULSES};
use super::words::{mult, octaves, peak};

/// Zeros before and behind a residual that is filtered, for the taps that reach out of it: as many on either side.
pub const MARGIN: usize = 10;

/// Of each coded amplitude: 6 less its exponent, as a number and as a power of two, and its mantissa's tables.
struct Amplitudes {
    shift: [i16; 64],
    rounding: [i16; 64],
    normalise: [i16; 64],
    scale: [i16; 64],
    inverse: [i16; 64],
}

const AMPLITUDES: Amplitudes = {
    let mut all = Amplitudes {
        shift: [0; 64],
        rounding: [0; 64],
        normalise: [0; 64],
        scale: [0; 64],
        inverse: [0; 64],
    };
    let mut code = 0;
    while code < 64 {
        let (exponent, mantissa) = exponent_and_mantissa(code as u8);
        let shift = 6 - exponent;
        all.shift[code] = shift as i16;
        all.rounding[code] = if shift > 0 { 1 << (shift - 1) } else { 0 };
        all.normalise[code] = 1 << shift;
        all.scale[code] = FAC[mantissa];
        all.inverse[code] = NRFAC[mantissa];
        code += 1;
    }
    all
};

/// Chooses grid, amplitude and pulses for a residual with zeros around it (§4.2.13 to §4.2.15).
#[inline(always)]
pub fn encode<L: Lanes>(residual: &[L::I16; SUBFRAME + MARGIN], sub: &mut [L::I16; 17]) {
    let weighted = weight::<L>(residual);
    let grid = select_grid::<L>(&weighted);
    let mut chosen = [L::I16::splat(0); COUNT];
    for (i, pulse) in chosen.iter_mut().enumerate() {
        *pulse = weighted[3 * i];
    }
    for number in 1..4 {
        let on_grid = grid.eq(L::I16::splat(number as i16));
        for (i, pulse) in chosen.iter_mut().enumerate() {
            *pulse = L::I16::select(on_grid, weighted[3 * i + number], *pulse);
        }
    }
    let amplitude = quantise_peak::<L>(peak(&chosen));
    let normalise = L::I16::lookup(&AMPLITUDES.normalise, amplitude);
    let inverse = L::I16::lookup(&AMPLITUDES.inverse, amplitude);
    for (code, x) in sub[PULSES..].iter_mut().zip(chosen) {
        let scaled = mult(x * normalise, inverse);
        *code = (scaled.shr(12) + L::I16::splat(4)) & L::I16::splat(7);
    }
    (sub[GRID], sub[AMPLITUDE]) = (grid, amplitude);
}

/// The excitation that coded pulses stand for (§4.2.16, §4.2.17).
#[inline(always)]
pub fn decode<L: Lanes>(sub: &[L::I16; 17]) -> [L::I16; SUBFRAME] {
    let zero = L::I16::splat(0);
    let shift = L::I16::lookup(&AMPLITUDES.shift, sub[AMPLITUDE]);
    let rounding = L::I16::lookup(&AMPLITUDES.rounding, sub[AMPLITUDE]);
    let scale = L::I16::lookup(&AMPLITUDES.scale, sub[AMPLITUDE]);
    let mut values = [zero; COUNT];
    for (value, code) in values.iter_mut().zip(&sub[PULSES..]) {
        let odd = (code.shl(1) - L::I16::splat(7)).shl(12);
        *value = scale.mul_round(odd).sat_add(rounding).shr_each(shift);
    }
    // Grids 0 and 3 share their places, a pulse apart.
    let mut excitation = [zero; SUBFRAME];
    for number in 0..4 {
        let on_grid = L::I16::from_mask(sub[GRID].eq(L::I16::splat(number as i16)));
        for (i, &value) in values.iter().enumerate() {
            excitation[3 * i + number] = excitation[3 * i + number] | (value & on_grid);
        }
    }
    excitation
}

/// §4.2.13: the block filter; two taps at a time, and none for those that are zero.
#[inline(always)]
fn weight<L: Lanes>(residual: &[L::I16; SUBFRAME + MARGIN]) -> [L::I16; SUBFRAME] {
    /// The taps after which there is one more that is not zero, and the last.
    const TAPS: [usize; 5] = [0, 3, 5, 7, 9];
    const { assert!(H[2] == 0 && H[8] == 0 && H.len() == MARGIN + 1) };
    let zero = L::I16::splat(0);
    let mut pairs = [[zero; SUBFRAME + MARGIN - 1]; 2];
    for i in 0..SUBFRAME + MARGIN - 1 {
        [pairs[0][i], pairs[1][i]] = residual[i].zip(residual[i + 1]);
    }
    let mut factors = [zero; TAPS.len()];
    for (factor, tap) in factors.iter_mut().zip(TAPS) {
        *factor = L::I16::splat(H[tap] as i16).zip(L::I16::splat(H[tap + 1] as i16))[0];
    }
    let mut weighted = [zero; SUBFRAME];
    for (i, out) in weighted.iter_mut().enumerate() {
        let mut sums = [L::I32::splat(4096); 2];
        for (&tap, &factor) in TAPS.iter().zip(&factors) {
            sums[0] += pairs[0][i + tap].mul_add_pairs(factor);
            sums[1] += pairs[1][i + tap].mul_add_pairs(factor);
        }
        *out = L::I16::unzip([sums[0].shr(13), sums[1].shr(13)]);
    }
    weighted
}

/// §4.2.14: the grid with most energy; the first of equals.
#[inline(always)]
fn select_grid<L: Lanes>(weighted: &[L::I16; SUBFRAME]) -> L::I16 {
    let zero = L::I16::splat(0);
    let mut quarter = [zero; SUBFRAME + 3];
    for (slot, x) in quarter.iter_mut().zip(weighted) {
        *slot = x.shr(2);
    }
    let mut grid = [L::I32::splat(0); 2];
    let mut best = [L::I32::splat(0); 2];
    for number in 0..4 {
        let mut energy = [L::I32::splat(0); 2];
        for i in (0..COUNT).step_by(2) {
            let second = if i + 1 < COUNT { quarter[number + 3 * i + 3] } else { zero };
            let zipped = quarter[number + 3 * i].zip(second);
            energy[0] += zipped[0].mul_add_pairs(zipped[0]);
            energy[1] += zipped[1].mul_add_pairs(zipped[1]);
        }
        for half in 0..2 {
            let better = energy[half].gt(best[half]);
            grid[half] = L::I32::select(better, L::I32::splat(number as i32), grid[half]);
            best[half] = best[half].max(energy[half]);
        }
    }
    L::I16::unzip(grid)
}

/// §4.2.15: the block amplitude as a 6-bit floating-point code.
#[inline(always)]
fn quantise_peak<L: Lanes>(peak: L::I16) -> L::I16 {
    let exponent = octaves(peak, 512, 6);
    let mantissa = peak.shr_each(exponent + L::I16::splat(5));
    (mantissa + exponent.shl(3)).clamp(L::I16::splat(0), L::I16::splat(63))
}
