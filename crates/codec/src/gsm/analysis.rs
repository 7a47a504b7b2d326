//! The encoder: GSM 06.10 §4.2.

use super::math::{asr, div, mult, mult_r, norm};
use super::reflection::{Coefficients, STRETCHES, dequantise, interpolate};
use super::{FRAME_BYTES, FRAME_SAMPLES, Frame, LTP_PAST, MEMORY, QLB, SUBFRAME, Subframe, pulses};

/// One row a log-area ratio: slope A, offset B, smallest and largest code (tables 4.1).
pub const QUANTISE: [(i16, i16, i16, i16); 8] = [
    (20480, 0, -32, 31),
    (20480, 0, -32, 31),
    (20480, 2048, -16, 15),
    (20480, -2560, -16, 15),
    (13964, 94, -8, 7),
    (15360, -1792, -8, 7),
    (8534, -341, -4, 3),
    (9036, -1144, -4, 3),
];
/// Decision levels of the LTP gain (table 4.3a, DLB).
pub const DLB: [i16; 3] = [6554, 16384, 26214];

/// GSM 06.10 encoder of one stream.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// Offset compensation: last input, and the high-pass filter's memory.
    z1: i16,
    l_z2: i32,
    /// Pre-emphasis memory.
    mp: i16,
    /// LARs of the frame before, decoded.
    lar: [i16; 8],
    /// Memory of the short-term analysis filter.
    u: [i16; 8],
    /// The last 120 samples of the reconstructed short-term residual, oldest first.
    pub(super) past: [i16; LTP_PAST],
}

impl Default for Encoder {
    fn default() -> Self {
        Self { z1: 0, l_z2: 0, mp: 0, lar: [0; 8], u: [0; 8], past: [0; LTP_PAST] }
    }
}

impl Encoder {
    /// An encoder in its initial state.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state besides the past, as lanes keep it.
    pub(super) fn store(&self, memory: &mut [i16; MEMORY]) {
        let (head, rest) = memory.split_at_mut(4);
        head.copy_from_slice(&[self.z1, (self.l_z2 >> 15) as i16, (self.l_z2 & 0x7fff) as i16, self.mp]);
        for (slot, &word) in rest.iter_mut().zip(self.lar.iter().chain(&self.u)) {
            *slot = word;
        }
    }

    /// Takes back what [`Self::store`] gave, after a frame.
    pub(super) fn recall(&mut self, memory: &[i16; MEMORY]) {
        let [z1, high, low, mp, rest @ ..] = memory;
        (self.z1, self.mp) = (*z1, *mp);
        self.l_z2 = (i32::from(*high) << 15) | i32::from(*low);
        for (slot, &word) in self.lar.iter_mut().chain(&mut self.u).zip(rest) {
            *slot = word;
        }
    }

    /// Encodes 20 ms into a frame with its signature.
    pub fn encode(&mut self, linear: &[i16; FRAME_SAMPLES], frame: &mut [u8; FRAME_BYTES]) {
        self.analyse(linear).pack(frame);
    }

    /// Encodes 20 ms into parameters.
    pub fn analyse(&mut self, linear: &[i16; FRAME_SAMPLES]) -> Frame {
        let mut signal = self.preprocess(linear);
        let mut frame = Frame { lar: linear_prediction(&mut signal), ..Frame::default() };
        let lar = dequantise(&frame.lar);
        let filters = interpolate(&self.lar, &lar);
        self.lar = lar;
        for (filter, stretch) in filters.iter().zip(STRETCHES) {
            self.short_term_filter(filter, &mut signal[stretch]);
        }
        for (sub, residual) in frame.sub.iter_mut().zip(signal.as_chunks().0) {
            self.long_term(residual, sub);
        }
        frame
    }

    /// Downscaling, offset compensation, pre-emphasis (§4.2.1 to §4.2.3).
    fn preprocess(&mut self, linear: &[i16; FRAME_SAMPLES]) -> [i16; FRAME_SAMPLES] {
        let mut signal = [0; FRAME_SAMPLES];
        for (out, &sample) in signal.iter_mut().zip(linear) {
            let scaled = (sample >> 3) << 2;
            let s1 = scaled.wrapping_sub(self.z1); // both within ±16384
            self.z1 = scaled;
            let (high, low) = ((self.l_z2 >> 15) as i16, (self.l_z2 & 0x7fff) as i16);
            let l_s2 = (i32::from(s1) << 15) + i32::from(mult_r(low, 32735));
            self.l_z2 = (i32::from(high) * 32735).saturating_add(l_s2);
            let rounded = self.l_z2.saturating_add(16384);
            let emphasis = mult_r(self.mp, -28180);
            self.mp = (rounded >> 15) as i16;
            *out = self.mp.saturating_add(emphasis);
        }
        signal
    }

    /// Short-term analysis filter (§4.2.10), in place.
    fn short_term_filter(&mut self, filter: &Coefficients, signal: &mut [i16]) {
        for sample in signal {
            let (mut di, mut sav) = (*sample, *sample);
            for (u, &rp) in self.u.iter_mut().zip(filter) {
                let ui = core::mem::replace(u, sav);
                sav = ui.saturating_add(mult_r(rp, di));
                di = di.saturating_add(mult_r(rp, ui));
            }
            *sample = di;
        }
    }

    /// Long-term prediction and excitation of one sub-frame (§4.2.11 to §4.2.18).
    fn long_term(&mut self, residual: &[i16; SUBFRAME], sub: &mut Subframe) {
        let (lag, gain) = self.long_term_parameters(residual);
        (sub.lag, sub.gain) = (lag as u8, gain as u8);
        let mut prediction = [0; SUBFRAME];
        let mut error = [0; SUBFRAME];
        let source = self.past.iter().skip(LTP_PAST - lag);
        for (((p, e), &d), &past) in prediction.iter_mut().zip(&mut error).zip(residual).zip(source) {
            *p = mult_r(QLB[gain & 3], past);
            *e = d.saturating_sub(*p);
        }
        pulses::encode(&error, sub);
        let excitation = pulses::decode(sub);
        self.past.copy_within(SUBFRAME.., 0);
        let fresh = self.past.iter_mut().skip(LTP_PAST - SUBFRAME);
        for ((slot, e), p) in fresh.zip(excitation).zip(prediction) {
            *slot = e.saturating_add(p);
        }
    }

    /// Lag (40 to 120) and coded gain of the best match in the past (§4.2.11).
    fn long_term_parameters(&self, residual: &[i16; SUBFRAME]) -> (usize, usize) {
        let peak = residual.iter().fold(0, |peak: i16, d| peak.max(d.saturating_abs()));
        let headroom = if peak == 0 { 0 } else { norm(i32::from(peak) << 16) as i32 };
        let scale = if peak == 0 || headroom > 6 { 0 } else { 6 - headroom };
        let scaled = residual.map(|d| asr(d, scale));

        let (mut lag, mut best) = (40, 0);
        for candidate in 40..=LTP_PAST {
            let start = LTP_PAST - candidate;
            let sum: i32 = self.past[start..start + SUBFRAME]
                .iter()
                .zip(scaled)
                .map(|(&p, d)| i32::from(p) * i32::from(d))
                .sum();
            if sum > best {
                (lag, best) = (candidate, sum);
            }
        }
        let cross = (best << 1) >> (6 - scale);
        let start = LTP_PAST - lag;
        let power: i32 = self.past[start..start + SUBFRAME].iter().map(|&p| i32::from(p >> 3).pow(2)).sum();
        let power = power << 1;
        if cross <= 0 {
            return (lag, 0);
        }
        if cross >= power {
            return (lag, 3);
        }
        let shift = norm(power);
        let (r, s) = (((cross << shift) >> 16) as i16, ((power << shift) >> 16) as i16);
        (lag, DLB.iter().take_while(|&&level| r > mult(s, level)).count())
    }
}

/// LPC analysis of a frame (§4.2.4 to §4.2.7); scales the signal down and up again, which drops low bits.
fn linear_prediction(signal: &mut [i16; FRAME_SAMPLES]) -> [u8; 8] {
    let correlation = autocorrelation(signal);
    let reflection = schur(&correlation);
    let mut codes = [0; 8];
    for ((code, r), (slope, offset, smallest, largest)) in codes.iter_mut().zip(reflection).zip(QUANTISE) {
        let value = mult(slope, to_log_area_ratio(r)).saturating_add(offset).saturating_add(256) >> 9;
        *code = (value.clamp(smallest, largest) - smallest) as u8;
    }
    codes
}

/// §4.2.4.
fn autocorrelation(signal: &mut [i16; FRAME_SAMPLES]) -> [i32; 9] {
    let peak = signal.iter().fold(0, |peak: i16, s| peak.max(s.saturating_abs()));
    let scale = if peak == 0 { 0 } else { 4 - norm(i32::from(peak) << 16) as i32 };
    if scale > 0 {
        let factor = 16384 >> (scale - 1);
        signal.iter_mut().for_each(|s| *s = mult_r(*s, factor));
    }
    let mut correlation = [0; 9];
    for (k, out) in correlation.iter_mut().enumerate() {
        let sum: i32 =
            signal.iter().skip(k).zip(signal.iter()).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
        *out = sum << 1;
    }
    if scale > 0 {
        signal.iter_mut().for_each(|s| *s <<= scale);
    }
    correlation
}

/// §4.2.5: reflection coefficients by the Schur recursion.
fn schur(correlation: &[i32; 9]) -> Coefficients {
    let mut r = [0; 8];
    if correlation[0] == 0 {
        return r;
    }
    let shift = norm(correlation[0]);
    let mut p = correlation.map(|c| ((c << shift) >> 16) as i16);
    let mut k = p;
    for n in 0..8 {
        let magnitude = p[1].saturating_abs();
        if p[0] < magnitude {
            return r; // the rest stays zero
        }
        let quotient = div(magnitude, p[0]);
        r[n] = if p[1] > 0 { -quotient } else { quotient };
        p[0] = p[0].saturating_add(mult_r(p[1], r[n]));
        for m in 1..8 - n {
            let next = p[m + 1];
            p[m] = next.saturating_add(mult_r(k[m], r[n]));
            k[m] = k[m].saturating_add(mult_r(next, r[n]));
        }
    }
    r
}

/// §4.2.6.
fn to_log_area_ratio(r: i16) -> i16 {
    let magnitude = r.saturating_abs();
    let value = match magnitude {
        ..22118 => magnitude >> 1,
        22118..31130 => magnitude - 11059,
        _ => (magnitude - 26112) << 2,
    };
    if r < 0 { -value } else { value }
}
