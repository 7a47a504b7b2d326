//! Linear prediction: autocorrelation to coefficients to line spectral pairs, their quantisation, and back.

use std::f64::consts::PI;

use crate::bits::BitReader;
use crate::codebooks::{LAG_WINDOW, LPC_WINDOW, LSP_HIGH_1, LSP_HIGH_2, LSP_LOW_1, LSP_LOW_2, LSP_WHOLE};
use crate::filter::Lpc;
use crate::math::{acos, cos};
use crate::{FRAME, ORDER, SUBFRAME};

/// Line spectral pairs in radians, rising.
pub type Lsp = [f32; ORDER];

/// Least distance between neighbouring pairs after interpolation, radians.
pub const MARGIN: f32 = 0.002;
/// Largest last pair: pi minus the margin in double precision, and what a larger one becomes.
pub const LAST_MAX: f64 = PI - MARGIN as f64;
/// Widest step of the root search on the cosine axis.
pub const SEARCH_STEP: f32 = 0.2;
/// Bisections of an interval that holds a root.
pub const BISECTIONS: usize = 11;
/// White noise in the autocorrelation, a part of its first value.
pub const NOISE_FLOOR: f32 = 0.0002;

/// The pairs a coder starts from: evenly spread.
pub fn initial() -> Lsp {
    std::array::from_fn(|i| std::f32::consts::PI * (i + 1) as f32 / (ORDER + 1) as f32)
}

/// Prediction coefficients of the 40 samples before the frame and the frame itself.
pub fn analyse(before: &[f32; SUBFRAME], frame: &[f32; FRAME]) -> Lpc {
    // Zeros in front take the place of the terms that the shorter sums of longer lags leave out.
    let mut windowed = [0.0f32; ORDER + SUBFRAME + FRAME];
    let signal = before.iter().chain(frame);
    for ((out, x), w) in windowed[ORDER..].iter_mut().zip(signal).zip(&LPC_WINDOW) {
        *out = x * w;
    }
    let mut correlation = [0.0f32; ORDER + 1];
    for window in windowed.windows(ORDER + 1) {
        let newest = window[ORDER];
        for (lag, sum) in correlation.iter_mut().enumerate() {
            *sum += newest * window[ORDER - lag];
        }
    }
    correlation[0] += 10.0;
    correlation[0] += correlation[0] * NOISE_FLOOR;
    for (value, window) in correlation.iter_mut().zip(&LAG_WINDOW) {
        *value *= window;
    }
    correlation[0] += 1.0;
    levinson_durbin(&correlation)
}

fn levinson_durbin(correlation: &[f32; ORDER + 1]) -> Lpc {
    let mut lpc = [0.0f32; ORDER];
    let mut error = correlation[0];
    let bias = 0.003 * f64::from(correlation[0]);
    for i in 0..ORDER {
        let mut sum = -correlation[i + 1];
        for j in 0..i {
            sum -= lpc[j] * correlation[i - j];
        }
        let reflection = (f64::from(sum) / (f64::from(error) + bias)) as f32;
        lpc[i] = reflection;
        for j in 0..i.div_ceil(2) {
            let (low, high) = (lpc[j], lpc[i - 1 - j]);
            lpc[j] = low + reflection * high;
            lpc[i - 1 - j] = high + reflection * low;
        }
        error -= reflection * (error * reflection);
    }
    lpc
}

/// A Chebyshev series at `x`, the cosine of a frequency.
#[inline]
fn chebyshev(coefficients: &[f32; 6], x: f32) -> f32 {
    let (mut b0, mut b1) = (0.0f32, 0.0f32);
    let x = x * 2.0;
    for &coefficient in &coefficients[..5] {
        (b0, b1) = (x * b0 - b1 + coefficient, b0);
    }
    (f64::from(-b1) + 0.5 * f64::from(x) * f64::from(b0) + f64::from(coefficients[5])) as f32
}

/// The sum and difference polynomials of A(z) as Chebyshev series.
fn polynomials(lpc: &Lpc) -> [[f32; 6]; 2] {
    let (mut sum, mut difference) = ([1.0f32; 6], [1.0f32; 6]);
    for i in 0..5 {
        sum[i + 1] = (lpc[i] + lpc[ORDER - 1 - i]) - sum[i];
        difference[i + 1] = (lpc[i] - lpc[ORDER - 1 - i]) + difference[i];
    }
    for i in 0..5 {
        sum[i] *= 2.0;
        difference[i] *= 2.0;
    }
    [sum, difference]
}

/// The line spectral pairs of A(z); `None` when not all ten are found, which an unstable filter or a coarse step causes.
pub fn from_lpc(lpc: &Lpc) -> Option<Lsp> {
    let polynomials = polynomials(lpc);
    let mut lsp = [0.0f32; ORDER];
    let (mut left, mut right) = (1.0f32, 0.0f32);
    for (root, frequency) in lsp.iter_mut().enumerate() {
        let series = &polynomials[root % 2];
        let mut left_value = chebyshev(series, left);
        loop {
            // One step beyond -1 is taken and no more, also when the root before lay there.
            if right < -1.0 {
                return None;
            }
            let mut step = (f64::from(SEARCH_STEP) * (1.0 - 0.9 * f64::from(left) * f64::from(left))) as f32;
            if f64::from(left_value.abs()) < 0.2 {
                step *= 0.5;
            }
            right = left - step;
            let right_value = chebyshev(series, right);
            if right_value * left_value < 0.0 {
                break;
            }
            (left, left_value) = (right, right_value);
        }
        let mut middle = left;
        for _ in 0..BISECTIONS {
            middle = 0.5 * (left + right);
            let value = chebyshev(series, middle);
            if value * left_value < 0.0 {
                right = middle;
            } else {
                (left, left_value) = (middle, value);
            }
        }
        *frequency = acos(f64::from(middle)) as f32;
        left = middle;
    }
    Some(lsp)
}

/// A(z) of line spectral pairs.
pub fn to_lpc(lsp: &Lsp) -> Lpc {
    let mut lpc = [0.0f32; ORDER];
    let cosine = lsp.map(|angle| 2.0 * cos(angle));
    // Ten second-order sections, alternately of the two polynomials, each with two samples of memory.
    let mut memory = [[0.0f32; 2]; ORDER];
    let mut last = [0.0f32; 2];
    for j in 0..=ORDER {
        let mut input = [if j == 0 { 1.0f32 } else { 0.0 }; 2];
        for (section, (memory, cosine)) in memory.iter_mut().zip(&cosine).enumerate() {
            let input = &mut input[section % 2];
            let output = *input - cosine * memory[0] + memory[1];
            *memory = [*input, memory[0]];
            *input = output;
        }
        if j > 0 {
            lpc[j - 1] = ((input[0] + last[0]) + (input[1] - last[1])) * 0.5;
        }
        last = input;
    }
    lpc
}

/// The pairs `part` (0 to 1) of the way from `old` to `new`, kept apart.
pub fn interpolate(old: &Lsp, new: &Lsp, part: f32) -> Lsp {
    let mut lsp: Lsp = std::array::from_fn(|i| (1.0 - part) * old[i] + part * new[i]);
    if lsp[0] < MARGIN {
        lsp[0] = MARGIN;
    }
    if f64::from(lsp[ORDER - 1]) > LAST_MAX {
        lsp[ORDER - 1] = LAST_MAX as f32;
    }
    for i in 1..ORDER - 1 {
        if lsp[i] < lsp[i - 1] + MARGIN {
            lsp[i] = lsp[i - 1] + MARGIN;
        }
        if lsp[i] > lsp[i + 1] - MARGIN {
            lsp[i] = 0.5 * (lsp[i] + lsp[i + 1] - MARGIN);
        }
    }
    lsp
}

/// Where the first pair that quantisation measures from lies, and every next one: 1/4 radian apart.
pub fn linear(i: usize) -> f32 {
    0.25 * i as f32 + 0.25
}

/// Weights of the errors of each pair: pairs near a neighbour count more.
fn weights(lsp: &Lsp) -> Lsp {
    std::array::from_fn(|i| {
        let below = if i == 0 { lsp[0] } else { lsp[i] - lsp[i - 1] };
        let above = if i == ORDER - 1 { (PI - f64::from(lsp[i])) as f32 } else { lsp[i + 1] - lsp[i] };
        let nearest = if above < below { above } else { below };
        (10.0 / (0.04 + f64::from(nearest))) as f32
    })
}

/// Takes the nearest of `book` out of `x` and returns its index.
fn nearest<const DIM: usize>(x: &mut [f32; DIM], weight: &[f32; DIM], book: &[[i8; DIM]; 64]) -> usize {
    let (mut best, mut best_distance) = (0, 1e15f32);
    for (index, entry) in book.iter().enumerate() {
        let mut distance = 0.0f32;
        for j in 0..DIM {
            let error = x[j] - f32::from(entry[j]);
            distance += weight[j] * (error * error);
        }
        if distance < best_distance {
            (best, best_distance) = (index, distance);
        }
    }
    for (x, entry) in x.iter_mut().zip(&book[best]) {
        *x -= f32::from(*entry);
    }
    best
}

/// Quantises with 18 or 30 bits: indices of 6 bits in the order they are sent, and the pairs the decoder will see.
pub fn quantise<const STAGES: usize>(lsp: &Lsp) -> ([usize; STAGES], Lsp) {
    let weight = weights(lsp);
    let mut rest: Lsp = std::array::from_fn(|i| 256.0 * (lsp[i] - linear(i)));
    let mut index = [0; STAGES];
    index[0] = nearest(&mut rest, &[1.0; ORDER], &LSP_WHOLE);
    let half = |from: usize| std::array::from_fn::<f32, 5, _>(|i| weight[from + i]);
    let (low_weight, high_weight) = (half(0), half(5));
    let mut low: [f32; 5] = std::array::from_fn(|i| rest[i] * 2.0);
    let mut high: [f32; 5] = std::array::from_fn(|i| rest[5 + i] * 2.0);
    index[1] = nearest(&mut low, &low_weight, &LSP_LOW_1);
    let scale = if STAGES == 5 {
        low = low.map(|x| x * 2.0);
        index[2] = nearest(&mut low, &low_weight, &LSP_LOW_2);
        index[3] = nearest(&mut high, &high_weight, &LSP_HIGH_1);
        high = high.map(|x| x * 2.0);
        index[4] = nearest(&mut high, &high_weight, &LSP_HIGH_2);
        0.000_976_56
    } else {
        index[2] = nearest(&mut high, &high_weight, &LSP_HIGH_1);
        0.001_953_1
    };
    let quantised = std::array::from_fn(|i| {
        let error = if i < 5 { low[i] } else { high[i - 5] };
        lsp[i] - (f64::from(error) * scale) as f32
    });
    (index, quantised)
}

/// Reads the pairs of a frame: 18 bits, or 30 when `fine`.
pub fn unquantise(bits: &mut BitReader<'_>, fine: bool) -> Lsp {
    let mut lsp: Lsp = std::array::from_fn(linear);
    let add = |lsp: &mut [f32], entry: &[i8], unit: f64| {
        for (x, value) in lsp.iter_mut().zip(entry) {
            *x = (f64::from(*x) + unit * f64::from(*value)) as f32;
        }
    };
    const UNITS: [f64; 3] = [0.003_906_2, 0.001_953_1, 0.000_976_56];
    add(&mut lsp, &LSP_WHOLE[bits.take(6)], UNITS[0]);
    add(&mut lsp[..5], &LSP_LOW_1[bits.take(6)], UNITS[1]);
    if fine {
        add(&mut lsp[..5], &LSP_LOW_2[bits.take(6)], UNITS[2]);
    }
    add(&mut lsp[5..], &LSP_HIGH_1[bits.take(6)], UNITS[1]);
    if fine {
        add(&mut lsp[5..], &LSP_HIGH_2[bits.take(6)], UNITS[2]);
    }
    lsp
}
