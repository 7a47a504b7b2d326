//! What runs sample by sample: offset compensation, emphasis, and the short-term lattice (§4.2.1 to §4.2.3, §4.2.10,
//! §4.3.4 to §4.3.7).

use lanes::{I16Lanes, Integer, Lanes, Vector};

use super::spectrum::Coefficients;

/// Downscaling, offset compensation, pre-emphasis. State: last input, high and low word of the high-pass filter's memory
/// (split at bit 15), and pre-emphasis.
///
/// The memory never leaves 31 bits, for its input is a difference of words of 15 bits against their own mean; so the
/// long word can be computed as a high and a low one, without the standard's saturation.
#[inline(always)]
pub fn preprocess<L: Lanes>(state: [&mut L::I16; 4], signal: &mut [L::I16]) {
    let [z1, high, low, mp] = state;
    let fifteen_bits = L::I16::splat(0x7fff);
    for sample in signal {
        let scaled = sample.shr(3).shl(2);
        let difference = scaled - *z1;
        *z1 = scaled;
        // memory * 32735 = (high << 15) - high * 33 + round(low * 32735 / 2^15)
        let lost_high = high.mul_high(L::I16::splat(66));
        let lost_low = (*high * L::I16::splat(33)) & fifteen_bits;
        let sum_low = low.mul_round(L::I16::splat(32735)) - lost_low;
        *high = *high + difference - lost_high + sum_low.shr(15);
        *low = sum_low & fifteen_bits;
        let emphasis = mp.mul_round(L::I16::splat(-28180));
        *mp = *high + low.shr_logic(14);
        *sample = mp.sat_add(emphasis);
    }
}

/// Short-term analysis, in place.
#[inline(always)]
pub fn analyse<L: Lanes>(filter: &Coefficients<L>, u: &mut [L::I16], signal: &mut [L::I16]) {
    let mut memory = [L::I16::splat(0); 8];
    memory.copy_from_slice(&u[..8]);
    for sample in signal {
        let (mut di, mut saved) = (*sample, *sample);
        for (u, rp) in memory.iter_mut().zip(filter) {
            let ui = *u;
            *u = saved;
            saved = ui.sat_add(rp.mul_round(di));
            di = di.sat_add(rp.mul_round(ui));
        }
        *sample = di;
    }
    u[..8].copy_from_slice(&memory);
}

/// Short-term synthesis, in place.
#[inline(always)]
pub fn synthesise<L: Lanes>(filter: &Coefficients<L>, v: &mut [L::I16], signal: &mut [L::I16]) {
    let mut memory = [L::I16::splat(0); 9];
    memory.copy_from_slice(&v[..9]);
    for sample in signal {
        let mut sri = *sample;
        for i in (0..8).rev() {
            sri = sri.sat_sub(filter[i].mul_round(memory[i]));
            memory[i + 1] = memory[i].sat_add(filter[i].mul_round(sri));
        }
        memory[0] = sri;
        *sample = sri;
    }
    v[..9].copy_from_slice(&memory);
}

/// De-emphasis, upscaling, truncation to 13 bits.
#[inline(always)]
pub fn postprocess<L: Lanes>(msr: &mut L::I16, signal: &mut [L::I16]) {
    for sample in signal {
        *msr = sample.sat_add(msr.mul_round(L::I16::splat(28180)));
        *sample = msr.sat_add(*msr) & L::I16::splat(!7);
    }
}
