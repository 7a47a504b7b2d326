//! The filters of the reference, in its order of operations: transposed direct form, multiplication before addition.
//!
//! Signals are filtered in place. `A(z)` is 1 + a1 z^-1 + ..; only a1 .. a10 are held.

use crate::ORDER;

/// Coefficients of A(z).
pub type Lpc = [f32; ORDER];
/// The ten sums a filter carries from sample to sample.
pub type Memory = [f32; ORDER];

/// y = N(z) / D(z) x.
#[inline]
pub fn pole_zero(signal: &mut [f32], num: &Lpc, den: &Lpc, memory: &mut Memory) {
    let mut mem = *memory;
    for sample in signal {
        let x = *sample;
        let y = x + mem[0];
        for j in 0..ORDER - 1 {
            mem[j] = (mem[j + 1] + x * num[j]) - y * den[j];
        }
        mem[ORDER - 1] = (0.0 + x * num[ORDER - 1]) - y * den[ORDER - 1];
        *sample = y;
    }
    *memory = mem;
}

/// y = 1 / D(z) x.
#[inline]
pub fn all_pole(signal: &mut [f32], den: &Lpc, memory: &mut Memory) {
    let mut mem = *memory;
    for sample in signal {
        let y = *sample + mem[0];
        for j in 0..ORDER - 1 {
            mem[j] = mem[j + 1] - y * den[j];
        }
        mem[ORDER - 1] = 0.0 - y * den[ORDER - 1];
        *sample = y;
    }
    *memory = mem;
}

/// y = N(z) x.
#[inline]
pub fn all_zero(signal: &mut [f32], num: &Lpc, memory: &mut Memory) {
    let mut mem = *memory;
    for sample in signal {
        let x = *sample;
        *sample = x + mem[0];
        for j in 0..ORDER - 1 {
            mem[j] = mem[j + 1] + x * num[j];
        }
        mem[ORDER - 1] = 0.0 + x * num[ORDER - 1];
    }
    *memory = mem;
}

/// Widens the bandwidth of every pole: a_k becomes gamma^k a_k.
#[inline]
pub fn widen(gamma: f32, lpc: &Lpc) -> Lpc {
    let mut factor = gamma;
    lpc.map(|a| {
        let widened = factor * a;
        factor *= gamma;
        widened
    })
}

/// A second-order high-pass filter: zeros and poles.
pub struct HighPass {
    /// z^0, z^-1, z^-2.
    pub num: [f32; 3],
    /// z^-1, z^-2.
    pub den: [f32; 2],
}

/// In front of the encoder.
pub const HIGH_PASS_INPUT: HighPass =
    HighPass { num: [0.95654, -1.91309, 0.95654], den: [-1.91120, 0.91498] };
/// Behind the decoder.
pub const HIGH_PASS_OUTPUT: HighPass =
    HighPass { num: [0.96446, -1.92879, 0.96446], den: [-1.92683, 0.93071] };

impl HighPass {
    /// Filters in place.
    #[inline]
    pub fn run(&self, signal: &mut [f32], memory: &mut [f32; 2]) {
        let ([n0, n1, n2], [d1, d2]) = (self.num, self.den);
        for sample in signal {
            let x = *sample;
            let y = n0 * x + memory[0];
            memory[0] = (memory[1] + n1 * x) + (-d1 * y);
            memory[1] = n2 * x + (-d2 * y);
            *sample = y;
        }
    }
}
