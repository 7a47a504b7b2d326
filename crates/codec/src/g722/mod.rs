//! ITU-T G.722 at 64 kbit/s: two ADPCM bands behind a quadrature mirror filter, 16 kHz samples, one byte a pair.
//!
//! Blocks carry the names of the Recommendation (§3 to §6): a reader with the text at hand finds each at its place.
//! This is the plain form; `group` is the same for many streams at once, on the same state: [`encode`] and [`decode`].

mod group;

pub use group::{DecodeJob, EncodeJob, decode, encode};

/// A code that decodes to silence in the initial state: the quantisers' smallest positive steps.
pub const SILENCE: u8 = 0xfa;

/// QMF coefficients, the first half of a symmetric filter of 24 taps (§3.1 table 11).
const QMF: [i32; 12] = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11];
/// Decision levels of the 6-bit quantiser (table 14, q6).
const Q6: [i32; 30] = [
    0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121,
    1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
];
/// Output of the inverse 6-bit quantiser by code (table 17).
const QM6: [i32; 64] = [
    -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360,
    -8576, -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688,
    -1360, -1040, -728, 24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856,
    7192, 6576, 6000, 5456, 4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136,
    -432, -136,
];
/// Output of the inverse 4-bit quantiser by the four upper bits of the code (table 15).
const QM4: [i32; 16] =
    [0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0];
/// Output of the inverse 2-bit quantiser of the higher band (table 20).
const QM2: [i32; 4] = [-7408, -1616, 7408, 1616];
/// Logarithmic quantiser adaptation of the lower band by the four upper bits of the code (tables 16 and 17, WL of RL42).
const WL: [i32; 16] = [-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60];
/// The same for the higher band by its code (WH of RH2).
const WH: [i32; 4] = [798, -214, 798, -214];
/// Antilogarithm: 2048 × 2^(i/32) (table 18).
const ILB: [i32; 32] = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896,
    2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
];
/// Samples by which what the filters give is behind what they got.
const DELAY: usize = 22;
/// Decision level of the higher band's quantiser.
const Q2: i32 = 564;

fn saturate(value: i32) -> i32 {
    value.clamp(-32768, 32767)
}

/// Predictor and quantiser scale of one band (§3.6.3, blocks 3 and 4).
#[derive(Debug, Clone)]
struct Band {
    /// Logarithmic scale factor.
    nb: i32,
    /// Quantiser step.
    det: i32,
    /// Output of the whole predictor.
    s: i32,
    /// Output of its zero section.
    sz: i32,
    /// Reconstructed signal, latest first.
    r: [i32; 2],
    /// Partially reconstructed signal, latest first.
    p: [i32; 2],
    /// Pole coefficients.
    a: [i32; 2],
    /// Zero coefficients.
    b: [i32; 6],
    /// Quantised differences, latest first.
    d: [i32; 6],
}

impl Band {
    const fn new(det: i32) -> Self {
        Self { nb: 0, det, s: 0, sz: 0, r: [0; 2], p: [0; 2], a: [0; 2], b: [0; 6], d: [0; 6] }
    }

    /// LOGSCL and SCALEL, or LOGSCH and SCALEH.
    fn scale(&mut self, step: i32, limit: i32, shift: i32) {
        self.nb = (((self.nb * 127) >> 7) + step).clamp(0, limit);
        let mantissa = ILB[((self.nb >> 6) & 31) as usize];
        let shift = shift - (self.nb >> 11);
        self.det = (if shift < 0 { mantissa << -shift } else { mantissa >> shift }) << 2;
    }

    /// Adapts the predictor to the quantised difference and predicts the next sample (block 4).
    fn predict(&mut self, d: i32) {
        let r = saturate(self.s + d); // RECONS
        let p = saturate(self.sz + d); // PARREC

        // UPPOL2
        let [a1, a2] = self.a;
        let four_a1 = saturate(a1 << 2);
        let towards = if (p ^ self.p[0]) >= 0 { saturate(-four_a1) } else { four_a1 };
        let leak = if (p ^ self.p[1]) >= 0 { 128 } else { -128 };
        let a2 = ((towards >> 7) + leak + ((a2 * 32512) >> 15)).clamp(-12288, 12288);
        // UPPOL1
        let towards = if (p ^ self.p[0]) >= 0 { 192 } else { -192 };
        let limit = saturate(15360 - a2);
        let a1 = saturate(towards + ((a1 * 32640) >> 15)).clamp(-limit, limit);
        // UPZERO
        let step = if d == 0 { 0 } else { 128 };
        for (b, past) in self.b.iter_mut().zip(self.d) {
            let towards = if (d ^ past) >= 0 { step } else { -step };
            *b = saturate(towards + ((*b * 32640) >> 15));
        }
        // DELAYA
        let [d0, d1, d2, d3, d4, _] = self.d;
        self.d = [d, d0, d1, d2, d3, d4];
        self.r = [r, self.r[0]];
        self.p = [p, self.p[0]];
        self.a = [a1, a2];
        // FILTEP
        let pole = |a: i32, r: i32| (a * saturate(r + r)) >> 15;
        let sp = saturate(pole(a1, self.r[0]) + pole(a2, self.r[1]));
        // FILTEZ
        let zero: i32 = self.b.iter().zip(self.d).map(|(b, d)| (b * saturate(d + d)) >> 15).sum();
        self.sz = saturate(zero);
        // PREDIC
        self.s = saturate(sp + self.sz);
    }

    /// The lower band's part that encoder and decoder share: adaptation by the upper four bits of its code.
    fn adapt_low(&mut self, code: usize) {
        let d = (self.det * QM4[code & 15]) >> 15;
        self.scale(WL[code & 15], 18432, 8);
        self.predict(d);
    }

    /// The higher band's part that encoder and decoder share; returns the quantised difference.
    fn adapt_high(&mut self, code: usize) -> i32 {
        let d = (self.det * QM2[code & 3]) >> 15;
        self.scale(WH[code & 3], 22528, 10);
        self.predict(d);
        d
    }
}

/// G.722 encoder of one stream.
#[derive(Debug, Clone)]
pub struct Encoder {
    low: Band,
    high: Band,
    /// The last 24 input samples, oldest first.
    x: [i32; 24],
}

impl Default for Encoder {
    fn default() -> Self {
        Self { low: Band::new(32), high: Band::new(8), x: [0; 24] }
    }
}

impl Encoder {
    /// Encodes pairs of samples as far as both slices reach; returns the bytes written.
    pub fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let pairs = linear.as_chunks::<2>().0;
        for (byte, &[first, second]) in coded.iter_mut().zip(pairs) {
            *byte = self.encode_pair(i32::from(first), i32::from(second));
        }
        pairs.len().min(coded.len())
    }

    fn encode_pair(&mut self, first: i32, second: i32) -> u8 {
        self.x.copy_within(2.., 0);
        (self.x[22], self.x[23]) = (first, second);
        let (mut odd, mut even) = (0, 0);
        for (i, [x0, x1]) in self.x.as_chunks::<2>().0.iter().enumerate() {
            odd += x0 * QMF[i];
            even += x1 * QMF[11 - i];
        }
        let low = self.encode_low((even + odd) >> 14);
        let high = self.encode_high((even - odd) >> 14);
        (high << 6) | low
    }

    /// SUBTRA, QUANTL: the 6-bit code of the lower band.
    fn encode_low(&mut self, x: i32) -> u8 {
        let error = saturate(x - self.low.s);
        let magnitude = error ^ (error >> 31);
        // The levels rise, so the number of levels passed is the interval.
        let level = Q6[1..].iter().take_while(|&&q| magnitude >= (q * self.low.det) >> 12).count() as u8 + 1;
        let code = match (error < 0, level) {
            (true, 1) => 63,
            (true, 2) => 62,
            (true, level) => 34 - level,
            (false, level) => 62 - level,
        };
        self.low.adapt_low(usize::from(code >> 2));
        code
    }

    /// SUBTRA, QUANTH: the 2-bit code of the higher band.
    fn encode_high(&mut self, x: i32) -> u8 {
        let error = saturate(x - self.high.s);
        let magnitude = error ^ (error >> 31);
        let outer = magnitude >= (Q2 * self.high.det) >> 12;
        let code = match (error < 0, outer) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        self.high.adapt_high(usize::from(code));
        code
    }
}

/// G.722 decoder of one stream.
#[derive(Debug, Clone)]
pub struct Decoder {
    low: Band,
    high: Band,
    /// Sums and differences of the bands, oldest first.
    x: [i32; 24],
}

impl Default for Decoder {
    fn default() -> Self {
        Self { low: Band::new(32), high: Band::new(8), x: [0; 24] }
    }
}

impl Decoder {
    /// Decodes bytes into pairs of samples as far as both slices reach; returns the samples written.
    pub fn decode(&mut self, coded: &[u8], linear: &mut [i16]) -> usize {
        let pairs = linear.as_chunks_mut::<2>().0;
        let count = pairs.len().min(coded.len());
        for (pair, &code) in pairs.iter_mut().zip(coded) {
            *pair = self.decode_pair(code);
        }
        count * 2
    }

    fn decode_pair(&mut self, code: u8) -> [i16; 2] {
        let low_code = usize::from(code & 0x3f);
        // INVQBL, RECONS, LIMIT
        let low = (self.low.s + ((self.low.det * QM6[low_code]) >> 15)).clamp(-16384, 16383);
        self.low.adapt_low(low_code >> 2);
        let predicted = self.high.s;
        let high = (predicted + self.high.adapt_high(usize::from(code >> 6))).clamp(-16384, 16383);

        self.x.copy_within(2.., 0);
        (self.x[22], self.x[23]) = (low + high, low - high);
        let (mut first, mut second) = (0, 0);
        for (i, [sum, difference]) in self.x.as_chunks::<2>().0.iter().enumerate() {
            second += sum * QMF[i];
            first += difference * QMF[11 - i];
        }
        [saturate(first >> 11) as i16, saturate(second >> 11) as i16]
    }

    /// Moves on as if `count` samples had come, which fill a gap: so steps and predictors fit what comes after it.
    ///
    /// `linear` gives those samples by number, and some after them: what went into the far end's filter by then.
    pub fn follow(&mut self, count: usize, linear: impl Fn(usize) -> i16) {
        let coded = |index: usize| i32::from(linear(index));
        let x = core::array::from_fn(|index| coded((index + DELAY).saturating_sub(24)));
        let mut encoder = Encoder { low: self.low.clone(), high: self.high.clone(), x };
        for pair in 0..count / 2 {
            let next = 2 * pair + DELAY;
            let code = encoder.encode_pair(coded(next), coded(next + 1));
            self.decode_pair(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{golden, samples};

    #[test]
    fn g722_encoder_equals_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(pcm), Some(expected)) =
                (golden(&format!("{name}.16k.pcm")), golden(&format!("{name}.g722")))
            else {
                return;
            };
            let mut coded = vec![0; expected.len()];
            Encoder::default().encode(&samples(&pcm), &mut coded);
            let wrong = coded.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{name}: first differing byte of {}", expected.len());
        }
    }

    #[test]
    fn g722_decoder_equals_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(coded), Some(pcm)) =
                (golden(&format!("{name}.g722")), golden(&format!("{name}.g722.16k.pcm")))
            else {
                return;
            };
            let expected = samples(&pcm);
            let mut linear = vec![0; expected.len()];
            Decoder::default().decode(&coded, &mut linear);
            // Where the filter overflows, the reference wraps around; the Recommendation (and this decoder) limits.
            let limited = |ours: i16, theirs: i16| {
                (ours == i16::MAX && theirs < -32_000) || (ours == i16::MIN && theirs > 32_000)
            };
            let wrong = linear.iter().zip(&expected).position(|(&a, &b)| a != b && !limited(a, b));
            assert_eq!(wrong, None, "{name}: first differing sample of {}", expected.len());
        }
    }
}
