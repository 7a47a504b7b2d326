//! Dialogic (OKI, VOX) ADPCM at 32 kbit/s: 12-bit samples at 8 kHz, four bits each, the earlier in the upper half.
//!
//! The step sizes and their adaptation are those of the Dialogic specification, which the IMA took over. The
//! specification leaves the rounding of a step's fractions open; here halves are rounded up when a sample is rebuilt
//! and the range is symmetric, as in the `adpcm` format of Asterisk, so that a file made there decodes to the same
//! samples here. The predictor lives in the stream: there is no header.

/// Two of the smallest positive steps.
pub const SILENCE: u8 = 0x08;

/// Step sizes, each a tenth larger than the one before.
const STEPS: [i32; 49] = [
    16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157,
    173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060,
    1166, 1282, 1411, 1552,
];
/// How far the step index moves, by magnitude of the code.
const MOVES: [i32; 8] = [-1, -1, -1, -1, 2, 4, 6, 8];
/// Largest magnitude of the predictor.
const LIMIT: i32 = 2047;

/// What encoder and decoder share.
#[derive(Debug, Clone, Default)]
struct Predictor {
    /// The last sample, 12 bits.
    signal: i32,
    /// Index of the step.
    index: i32,
}

impl Predictor {
    fn step(&self) -> i32 {
        STEPS[self.index as usize]
    }

    /// Moves on by a code of four bits; returns the sample.
    fn follow(&mut self, code: u8) -> i16 {
        let step = self.step();
        let fraction = |bit: u8, part: i32| if code & bit != 0 { part } else { 0 };
        let size = (step >> 3) + fraction(4, step) + fraction(2, (step + 1) >> 1) + fraction(1, step >> 2);
        let signal = if code & 8 != 0 { self.signal - size } else { self.signal + size };
        self.signal = signal.clamp(-LIMIT, LIMIT);
        self.index = (self.index + MOVES[usize::from(code & 7)]).clamp(0, STEPS.len() as i32 - 1);
        (self.signal << 4) as i16
    }
}

/// ADPCM encoder of one stream.
#[derive(Debug, Clone, Default)]
pub struct Encoder(Predictor);

impl Encoder {
    /// Encodes pairs of samples as far as both slices reach; returns the bytes written.
    pub fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let pairs = linear.as_chunks::<2>().0;
        for (byte, &[first, second]) in coded.iter_mut().zip(pairs) {
            *byte = (self.encode_one(first) << 4) | self.encode_one(second);
        }
        pairs.len().min(coded.len())
    }

    fn encode_one(&mut self, sample: i16) -> u8 {
        let step = self.0.step();
        let difference = (i32::from(sample) >> 4) - self.0.signal;
        let (mut code, mut rest) = if difference < 0 { (8, -difference) } else { (0, difference) };
        for (bit, part) in [(4, step), (2, step >> 1), (1, step >> 2)] {
            if rest >= part {
                code |= bit;
                rest -= part;
            }
        }
        self.0.follow(code);
        code
    }
}

/// Samples after a gap in which the predictor leaks: 125 ms, eight times what it takes to lose two thirds of an offset.
const LEAKING: u32 = 1000;
/// A leak of so small a part each sample takes away what is below 10 Hz.
const LEAK: i32 = 128;

/// ADPCM decoder of one stream.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    predictor: Predictor,
    /// Samples in which it still leaks, and what has not leaked yet for being less than one.
    leaking: u32,
    rest: i32,
}

impl Decoder {
    /// Decodes bytes into pairs of samples as far as both slices reach; returns the samples written.
    pub fn decode(&mut self, coded: &[u8], linear: &mut [i16]) -> usize {
        let pairs = linear.as_chunks_mut::<2>().0;
        let count = pairs.len().min(coded.len());
        for (pair, &byte) in pairs.iter_mut().zip(coded) {
            *pair = [byte >> 4, byte & 15].map(|code| {
                if self.leaking > 0 {
                    self.leak();
                }
                self.predictor.follow(code)
            });
        }
        count * 2
    }

    fn leak(&mut self) {
        self.leaking -= 1;
        self.rest += self.predictor.signal;
        self.predictor.signal -= self.rest / LEAK;
        self.rest %= LEAK;
    }

    /// Moves on as if these samples had come, which fill a gap.
    ///
    /// By what they are not those that were lost the predictor is off, and nothing in the code brings it back: it leaks for
    /// a while.
    pub fn follow(&mut self, linear: impl Iterator<Item = i16>) {
        let mut encoder = Encoder(self.predictor.clone());
        for sample in linear {
            encoder.encode_one(sample);
        }
        (self.predictor, self.leaking) = (encoder.0, LEAKING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{golden, samples};

    #[test]
    fn adpcm_encoder_and_decoder_equal_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let file = |suffix: &str| golden(&format!("{name}.{suffix}"));
            let (Some(pcm), Some(codes), Some(decoded)) =
                (file("pcm"), file("adpcm.nibbles"), file("adpcm.pcm"))
            else {
                return;
            };
            let expected: Vec<u8> = codes.as_chunks().0.iter().map(|&[high, low]| high << 4 | low).collect();
            let mut coded = vec![0; expected.len()];
            Encoder::default().encode(&samples(&pcm), &mut coded);
            let wrong = coded.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{name}: first differing byte of {}", expected.len());

            let expected = samples(&decoded);
            let mut linear = vec![0; expected.len()];
            Decoder::default().decode(&coded, &mut linear);
            let wrong = linear.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{name}: first differing sample of {}", expected.len());
        }
    }

    #[test]
    fn steps_stay_within_the_table_and_samples_within_twelve_bits() {
        for code in 0..=255u8 {
            let mut decoder = Decoder::default();
            let mut linear = [0; 400];
            decoder.decode(&[code; 200], &mut linear);
            assert!(linear.iter().all(|s| s.abs() <= 32752 && s % 16 == 0), "{code:#04x}");
        }
    }
}
