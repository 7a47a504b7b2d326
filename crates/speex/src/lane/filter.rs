//! The filters of [`crate::filter`] over lanes, in the same order of operations.

use lanes::{Lanes, Vector};

use crate::ORDER;
use crate::filter::HighPass;

/// A row a coefficient.
pub type Lpc<L> = [<L as Lanes>::F32; ORDER];
/// A row a sum that a filter carries from sample to sample.
pub type Memory<L> = [<L as Lanes>::F32; ORDER];

/// Memory of a filter that starts.
#[inline(always)]
pub fn rest<L: Lanes>() -> Memory<L> {
    [L::F32::splat(0.0); ORDER]
}

/// y = N(z) / D(z) x.
#[inline(always)]
pub fn pole_zero<L: Lanes>(signal: &mut [L::F32], num: &Lpc<L>, den: &Lpc<L>, memory: &mut Memory<L>) {
    let mut mem = *memory;
    for sample in signal {
        let x = *sample;
        let y = x + mem[0];
        for j in 0..ORDER - 1 {
            mem[j] = (mem[j + 1] + x * num[j]) - y * den[j];
        }
        mem[ORDER - 1] = x * num[ORDER - 1] - y * den[ORDER - 1];
        *sample = y;
    }
    *memory = mem;
}

/// y = 1 / D(z) x.
#[inline(always)]
pub fn all_pole<L: Lanes>(signal: &mut [L::F32], den: &Lpc<L>, memory: &mut Memory<L>) {
    let mut mem = *memory;
    for sample in signal {
        let y = *sample + mem[0];
        for j in 0..ORDER - 1 {
            mem[j] = mem[j + 1] - y * den[j];
        }
        mem[ORDER - 1] = -(y * den[ORDER - 1]);
        *sample = y;
    }
    *memory = mem;
}

/// y = N(z) x, sample by sample into `out`.
#[inline(always)]
pub fn all_zero<L: Lanes>(signal: &[L::F32], num: &Lpc<L>, memory: &mut Memory<L>, out: &mut impl Sink<L>) {
    let mut mem = *memory;
    for (index, x) in signal.iter().enumerate() {
        let x = *x;
        out.put(index, x + mem[0]);
        for j in 0..ORDER - 1 {
            mem[j] = mem[j + 1] + x * num[j];
        }
        mem[ORDER - 1] = x * num[ORDER - 1];
    }
    *memory = mem;
}

/// Takes the samples of a signal in turn.
pub trait Sink<L: Lanes> {
    fn put(&mut self, index: usize, x: L::F32);
}

impl<L: Lanes, const LENGTH: usize> Sink<L> for [L::F32; LENGTH] {
    #[inline(always)]
    fn put(&mut self, index: usize, x: L::F32) {
        self[index] = x;
    }
}

/// The sum of squares.
pub struct Energy<L: Lanes>(pub L::F32);

impl<L: Lanes> Sink<L> for Energy<L> {
    #[inline(always)]
    fn put(&mut self, _: usize, x: L::F32) {
        self.0 += x * x;
    }
}

/// Widens the bandwidth of every pole: a_k becomes gamma^k a_k.
#[inline(always)]
pub fn widen<L: Lanes>(gamma: f32, lpc: &Lpc<L>) -> Lpc<L> {
    let mut widened = *lpc;
    let mut factor = gamma;
    for a in &mut widened {
        *a = L::F32::splat(factor) * *a;
        factor *= gamma;
    }
    widened
}

/// A second-order high-pass filter.
#[inline(always)]
pub fn high_pass<L: Lanes>(filter: &HighPass, signal: &mut [L::F32], memory: &mut [L::F32; 2]) {
    let [n0, n1, n2] = filter.num;
    let num = [L::F32::splat(n0), L::F32::splat(n1), L::F32::splat(n2)];
    let [d1, d2] = filter.den;
    let den = [L::F32::splat(-d1), L::F32::splat(-d2)];
    let mut mem = *memory;
    for sample in signal {
        let x = *sample;
        let y = num[0] * x + mem[0];
        mem[0] = (mem[1] + num[1] * x) + den[0] * y;
        mem[1] = num[2] * x + den[1] * y;
        *sample = y;
    }
    *memory = mem;
}
