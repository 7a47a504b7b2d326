//! Regular pulse excitation (GSM 06.10 §4.2.13 to §4.2.17): 40 residual samples ⇄ 13 pulses on one of four grids.

use super::math::{asl, asr, mult, mult_r};
use super::{SUBFRAME, Subframe};

/// Pulses of a grid.
pub const PULSES: usize = 13;
/// Impulse response of the weighting filter (table 4.4).
pub const H: [i32; 11] = [-134, -374, 0, 2054, 5741, 8192, 5741, 2054, 0, -374, -134];
/// Normalised inverse mantissa (table 4.5).
pub const NRFAC: [i16; 8] = [29128, 26215, 23832, 21846, 20165, 18725, 17476, 16384];
/// Normalised direct mantissa (table 4.6).
pub const FAC: [i16; 8] = [18431, 20479, 22527, 24575, 26623, 28671, 30719, 32767];

/// Chooses grid, amplitude and pulses for a residual (§4.2.13 to §4.2.15); lag and gain of `sub` stay.
pub fn encode(residual: &[i16; SUBFRAME], sub: &mut Subframe) {
    let weighted = weight(residual);
    let grid = select_grid(&weighted);
    let mut chosen = [0; PULSES];
    for (pulse, &x) in chosen.iter_mut().zip(weighted.iter().skip(grid).step_by(3)) {
        *pulse = x;
    }
    let peak = chosen.iter().fold(0, |peak: i16, x| peak.max(x.saturating_abs()));
    let amplitude = quantise_peak(peak);
    let (exponent, mantissa) = exponent_and_mantissa(amplitude);
    for (code, x) in sub.pulses.iter_mut().zip(chosen) {
        let scaled = mult(asl(x, 6 - exponent), NRFAC[mantissa]);
        // 0 to 7 whenever the amplitude fits the pulses; the mask keeps three bits come what may.
        *code = ((scaled >> 12) + 4) as u8 & 7;
    }
    (sub.grid, sub.amplitude) = (grid as u8, amplitude);
}

/// The excitation that coded pulses stand for (§4.2.16, §4.2.17).
pub fn decode(sub: &Subframe) -> [i16; SUBFRAME] {
    let (exponent, mantissa) = exponent_and_mantissa(sub.amplitude & 63);
    let shift = 6 - exponent;
    let rounding = asl(1, shift - 1);
    let mut excitation = [0; SUBFRAME];
    let grid = excitation.iter_mut().skip(usize::from(sub.grid & 3)).step_by(3);
    for (slot, &code) in grid.zip(&sub.pulses) {
        let value = (i16::from(code & 7) * 2 - 7) << 12;
        *slot = asr(mult_r(FAC[mantissa], value).saturating_add(rounding), shift);
    }
    excitation
}

/// §4.2.13: the block filter, ends padded with zeros.
fn weight(residual: &[i16; SUBFRAME]) -> [i16; SUBFRAME] {
    let mut padded = [0i32; SUBFRAME + 10];
    for (slot, &e) in padded[5..].iter_mut().zip(residual) {
        *slot = i32::from(e);
    }
    let mut weighted = [0; SUBFRAME];
    for (out, window) in weighted.iter_mut().zip(padded.windows(H.len())) {
        let sum: i32 = window.iter().zip(H).map(|(e, h)| e * h).sum();
        *out = ((sum + 4096) >> 13).clamp(-32768, 32767) as i16;
    }
    weighted
}

/// §4.2.14: the grid with most energy; the first of equals.
fn select_grid(weighted: &[i16; SUBFRAME]) -> usize {
    let energy = |grid: usize| -> i32 {
        weighted.iter().skip(grid).step_by(3).take(PULSES).map(|&x| i32::from(x >> 2).pow(2)).sum()
    };
    (1..4)
        .fold((0, energy(0)), |best, grid| if energy(grid) > best.1 { (grid, energy(grid)) } else { best })
        .0
}

/// §4.2.15: the block amplitude as a 6-bit floating-point code.
fn quantise_peak(peak: i16) -> u8 {
    // One exponent step for each bit of the peak above the lowest nine, six at most.
    let exponent = (16 - (peak >> 9).leading_zeros() as i16).clamp(0, 6);
    (peak >> (exponent + 5)).saturating_add(exponent << 3).clamp(0, 63) as u8
}

/// §4.2.15: exponent (-4 to 6) and mantissa (0 to 7) of a coded block amplitude.
pub const fn exponent_and_mantissa(amplitude: u8) -> (i32, usize) {
    let amplitude = amplitude as i32;
    let mut exponent = if amplitude > 15 { (amplitude >> 3) - 1 } else { 0 };
    let mut mantissa = amplitude - (exponent << 3);
    if mantissa == 0 {
        return (-4, 7);
    }
    while mantissa <= 7 {
        mantissa = (mantissa << 1) | 1;
        exponent -= 1;
    }
    (exponent, (mantissa - 8) as usize & 7)
}
