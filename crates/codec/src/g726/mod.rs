//! ITU-T G.726 at 32 kbit/s with uniform PCM on both sides (Annex A): 8 kHz samples, four bits each.
//!
//! Blocks carry the names of the Recommendation (§4.2): a reader with the text at hand finds each at its place.
//! Numbers are plain `i32` with the Recommendation's scale; only the sixteen-bit results that can wrap there are held
//! in range by their own blocks, so nothing here overflows. This is the plain form; `group` is the same for many
//! streams at once, on the same state: [`encode`] and [`decode`].

mod group;

pub use group::{DecodeJob, EncodeJob, decode, encode};

/// How two codes share a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// RFC 3551 §4.5.4 `G726-32`: the earlier code in the lower half.
    Rfc3551,
    /// ITU-T I.366.2 Annex E, `AAL2-G726-32` of RFC 3551: the earlier code in the upper half.
    Aal2,
}

impl Packing {
    /// Two codes, the earlier first, as one byte.
    fn pack(self, first: u8, second: u8) -> u8 {
        match self {
            Self::Rfc3551 => first | (second << 4),
            Self::Aal2 => (first << 4) | second,
        }
    }
    /// The two codes of a byte, the earlier first.
    fn unpack(self, byte: u8) -> [u8; 2] {
        match self {
            Self::Rfc3551 => [byte & 15, byte >> 4],
            Self::Aal2 => [byte >> 4, byte & 15],
        }
    }
}

/// What silence is coded as, from the initial state on: two codes of no difference, in either packing.
pub const SILENCE: u8 = 0xff;

/// QUAN: lowest normalised logarithm of each code's interval, from code 1 on (table 32 kbit/s).
const LEVELS: [i32; 7] = [-124, 80, 178, 246, 300, 349, 400];
/// RECONST: normalised logarithm of the quantised difference, by magnitude of the code.
const DQLN: [i32; 8] = [-2048, 4, 135, 213, 273, 323, 373, 425];
/// FUNCTW: multiplier of the scale factor, by magnitude of the code.
const WI: [i32; 8] = [-12, 18, 41, 64, 112, 198, 355, 1122];
/// FUNCTF: weight of the code for the speed of adaptation, by magnitude.
const FI: [i32; 8] = [0, 0, 0, 1, 1, 1, 3, 7];
/// TONE: a pole coefficient below this tells a narrow band signal.
const TONE: i32 = -11776;

/// A number in the internal floating point of FLOATA and FLOATB.
#[derive(Debug, Clone, Copy)]
struct Float {
    /// Bits of the magnitude, 0 to 15.
    exponent: i32,
    /// The six leading bits of the magnitude, 32 to 63.
    mantissa: i32,
    /// -1 for a negative number (minus zero included), else 0.
    sign: i32,
}

impl Float {
    const ZERO: Self = Self { exponent: 0, mantissa: 32, sign: 0 };

    /// FLOATA, FLOATB; `magnitude` has 15 bits.
    fn new(magnitude: i32, sign: i32) -> Self {
        let exponent = bits(magnitude);
        let mantissa = if magnitude == 0 { 32 } else { (magnitude << 6) >> exponent };
        Self { exponent, mantissa, sign }
    }

    /// FMULT: a predictor coefficient times this.
    fn times(self, coefficient: i32) -> i32 {
        let sign = coefficient >> 31;
        let an = ((coefficient >> 2) ^ sign) - sign;
        let an = Self::new(an, sign);
        let mantissa = (self.mantissa * an.mantissa + 48) >> 4;
        // Written with a right shift alone: the exponents add up to 28 at most.
        let magnitude = ((mantissa << 9) >> (28 - self.exponent - an.exponent)) & 0x7fff;
        let sign = self.sign ^ sign;
        (magnitude ^ sign) - sign
    }
}

/// How many bits a magnitude takes.
fn bits(magnitude: i32) -> i32 {
    32 - magnitude.leading_zeros() as i32
}

/// What encoder and decoder share: everything but the comparison with the input.
#[derive(Debug, Clone)]
struct Core {
    /// Zero section: coefficients, and quantised differences, latest first.
    b: [i32; 6],
    dq: [Float; 6],
    /// Pole section: coefficients, and reconstructed signals, latest first.
    a: [i32; 2],
    sr: [Float; 2],
    /// Signs (-1 or 0) of the partially reconstructed signal, latest first.
    pk: [i32; 2],
    /// Averages of F(I): short and long term.
    dms: i32,
    dml: i32,
    /// Speed control.
    ap: i32,
    /// Scale factor: fast and slow.
    yu: i32,
    yl: i32,
    /// Whether a narrow band signal was seen.
    td: i32,
}

/// What is known of a sample before its code: the estimates and the scale.
struct Estimate {
    /// Of the whole predictor.
    se: i32,
    /// Of the zero section.
    sez: i32,
    /// Scale factor.
    y: i32,
}

impl Core {
    const fn new() -> Self {
        Self {
            b: [0; 6],
            dq: [Float::ZERO; 6],
            a: [0; 2],
            sr: [Float::ZERO; 2],
            pk: [0; 2],
            dms: 0,
            dml: 0,
            ap: 0,
            yu: 544,
            yl: 34816,
            td: 0,
        }
    }

    /// FMULT, ACCUM, LIMA, MIX.
    fn estimate(&self) -> Estimate {
        let sezi: i32 = self.b.iter().zip(self.dq).map(|(&b, dq)| dq.times(b)).sum();
        let sei: i32 = self.a.iter().zip(self.sr).map(|(&a, sr)| sr.times(a)).sum::<i32>() + sezi;
        let al = (self.ap >> 2).min(64);
        let slow = self.yl >> 6;
        let difference = self.yu - slow;
        // `/`, not a shift: the Recommendation multiplies magnitudes.
        let y = slow + difference * al / 64;
        Estimate { se: i32::from(sei as i16) >> 1, sez: i32::from(sezi as i16) >> 1, y }
    }

    /// Adapts everything to a code; returns the reconstructed signal.
    fn adapt(&mut self, code: u8, Estimate { se, sez, y }: &Estimate) -> i32 {
        let sign = -i32::from(code >> 3 & 1);
        let size = usize::from(if sign == 0 { code } else { !code } & 7);
        // RECONST, ADDA, ANTILOG
        let dql = DQLN[size] + (y >> 2);
        let dqmag = if dql < 0 { 0 } else { (((dql & 127) + 128) << 7) >> (14 - (dql >> 7)) };
        let dq = (dqmag ^ sign) - sign;
        // TRANS
        let threshold =
            if self.yl >> 15 > 9 { 31 << 10 } else { (32 + (self.yl >> 10 & 31)) << (self.yl >> 15) };
        let transition = self.td != 0 && dqmag > (threshold + (threshold >> 1)) >> 1;
        // ADDB, ADDC
        let sr = dq + se;
        let pk0 = (dq + sez) >> 31;
        self.poles(pk0, dq + sez == 0, transition);
        self.zeros(dqmag, sign, transition);
        // TONE, TRIGB
        self.td = i32::from(!transition && self.a[1] < TONE);
        self.scale(size, *y, transition);

        let [q0, q1, q2, q3, q4, _] = self.dq;
        self.dq = [Float::new(dqmag, sign), q0, q1, q2, q3, q4];
        let sr_sign = sr >> 31;
        self.sr = [Float::new((sr ^ sr_sign) - sr_sign, sr_sign), self.sr[0]];
        self.pk = [pk0, self.pk[0]];
        sr
    }

    /// UPA2, LIMC, UPA1, LIMD, TRIGB.
    fn poles(&mut self, pk0: i32, still: bool, transition: bool) {
        let [a1, a2] = self.a;
        let (differs1, differs2) = (pk0 ^ self.pk[0], pk0 ^ self.pk[1]);
        let (mut up1, mut up2) = (0, 0);
        if !still {
            let fa = a1.clamp(-8191, 8191) << 2;
            let fa = if differs1 == 0 { -fa } else { fa };
            up2 = ((if differs2 == 0 { 16384 } else { -16384 }) + fa) >> 7;
            up1 = if differs1 == 0 { 192 } else { -192 };
        }
        let a2 = (a2 + up2 - (a2 >> 7)).clamp(-12288, 12288);
        let limit = 15360 - a2;
        let a1 = (a1 + up1 - (a1 >> 8)).clamp(-limit, limit);
        self.a = if transition { [0; 2] } else { [a1, a2] };
    }

    /// XOR, UPB, TRIGB.
    fn zeros(&mut self, dqmag: i32, sign: i32, transition: bool) {
        for (b, past) in self.b.iter_mut().zip(self.dq) {
            let step = if dqmag == 0 { 0 } else { 128 };
            let towards = if sign == past.sign { step } else { -step };
            *b = if transition { 0 } else { i32::from((*b + towards - (*b >> 8)) as i16) };
        }
    }

    /// FUNCTF, FILTA, FILTB, SUBTC, FILTC, TRIGA; FUNCTW, FILTD, LIMB, FILTE.
    fn scale(&mut self, size: usize, y: i32, transition: bool) {
        self.dms += ((FI[size] << 9) - self.dms) >> 5;
        self.dml += ((FI[size] << 11) - self.dml) >> 7;
        let unsteady = ((self.dms << 2) - self.dml).abs() >= self.dml >> 3;
        let target = if y < 1536 || unsteady || self.td != 0 { 1 << 9 } else { 0 };
        self.ap = if transition { 256 } else { self.ap + ((target - self.ap) >> 4) };
        self.yu = (y + (((WI[size] << 5) - y) >> 5)).clamp(544, 5120);
        self.yl += self.yu + (-self.yl >> 6);
    }
}

/// G.726-32 encoder of one stream.
#[derive(Debug, Clone)]
pub struct Encoder {
    core: Core,
    packing: Packing,
}

impl Encoder {
    /// An encoder in its initial state.
    pub const fn new(packing: Packing) -> Self {
        Self { core: Core::new(), packing }
    }

    /// Encodes pairs of samples as far as both slices reach; returns the bytes written.
    pub fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let pairs = linear.as_chunks::<2>().0;
        for (byte, &[first, second]) in coded.iter_mut().zip(pairs) {
            let first = self.encode_one(first);
            *byte = self.packing.pack(first, self.encode_one(second));
        }
        pairs.len().min(coded.len())
    }

    /// SUBTA, LOG, SUBTB, QUAN: the code of one sample.
    fn encode_one(&mut self, sample: i16) -> u8 {
        let estimate = self.core.estimate();
        let d = (i32::from(sample) >> 2) - estimate.se;
        let magnitude = d.abs();
        let exponent = (bits(magnitude) - 1).max(0);
        let dl = (exponent << 7) + ((magnitude << 7) >> exponent & 127);
        let dln = dl - (estimate.y >> 2);
        let size = LEVELS.iter().filter(|&&level| dln >= level).count() as u8;
        // The code of all zeroes is never sent: what is too small for a sign is a negative nothing.
        let code = if d < 0 || size == 0 { 15 - size } else { size };
        self.core.adapt(code, &estimate);
        code
    }
}

/// G.726-32 decoder of one stream.
#[derive(Debug, Clone)]
pub struct Decoder {
    core: Core,
    packing: Packing,
}

impl Decoder {
    /// A decoder in its initial state.
    pub const fn new(packing: Packing) -> Self {
        Self { core: Core::new(), packing }
    }

    /// Decodes bytes into pairs of samples as far as both slices reach; returns the samples written.
    pub fn decode(&mut self, coded: &[u8], linear: &mut [i16]) -> usize {
        let pairs = linear.as_chunks_mut::<2>().0;
        let count = pairs.len().min(coded.len());
        for (pair, &byte) in pairs.iter_mut().zip(coded) {
            *pair = self.packing.unpack(byte).map(|code| self.decode_one(code));
        }
        count * 2
    }

    /// The sample of one code, limited to 14 bits (Annex A, LIMO).
    fn decode_one(&mut self, code: u8) -> i16 {
        let estimate = self.core.estimate();
        let sr = self.core.adapt(code, &estimate);
        (sr.clamp(-8192, 8191) << 2) as i16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{golden, samples};

    #[test]
    fn g726_encoder_equals_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(pcm), Some(codes)) =
                (golden(&format!("{name}.pcm")), golden(&format!("{name}.g726-32.nibbles")))
            else {
                return;
            };
            for packing in [Packing::Rfc3551, Packing::Aal2] {
                let mut coded = vec![0; codes.len() / 2];
                Encoder::new(packing).encode(&samples(&pcm), &mut coded);
                let ours: Vec<u8> = coded.iter().flat_map(|&byte| packing.unpack(byte)).collect();
                let wrong = ours.iter().zip(&codes).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "{name} {packing:?}: first differing code of {}", codes.len());
            }
        }
    }

    #[test]
    fn g726_decoder_equals_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(codes), Some(pcm)) =
                (golden(&format!("{name}.g726-32.nibbles")), golden(&format!("{name}.g726-32.pcm")))
            else {
                return;
            };
            let expected = samples(&pcm);
            for packing in [Packing::Rfc3551, Packing::Aal2] {
                let coded: Vec<u8> =
                    codes.as_chunks().0.iter().map(|&[first, second]| packing.pack(first, second)).collect();
                let mut linear = vec![0; expected.len()];
                Decoder::new(packing).decode(&coded, &mut linear);
                // Where the sum leaves 14 bits, the reference wraps around; Annex A (and this decoder) limits.
                let limited = |ours: i16, theirs: i16| {
                    (ours == 32764 && theirs < -30_000) || (ours == i16::MIN && theirs > 30_000)
                };
                let wrong = linear.iter().zip(&expected).position(|(&a, &b)| a != b && !limited(a, b));
                assert_eq!(wrong, None, "{name} {packing:?}: first differing sample of {}", expected.len());
            }
        }
    }
}
