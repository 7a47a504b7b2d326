//! Digits as pulses of one frequency, as trunks dial with 2600 Hz (SF signalling): so many pulses as the digit says, ten for 0.
//!
//! Ten pulses come in a second, two thirds of each the tone. A Goertzel filter over blocks of 5 ms says whether the tone, and
//! it alone, is there.

use base::Digit;

use crate::dtmf::{DtmfEdge, LEVEL_MIN_DBM0, goertzel};
use crate::tone::PEAK_0_DBM0;

/// Samples of a block, 5 ms at 8 kHz.
const BLOCK: usize = 40;
const BLOCK_MS: u32 = 5;
/// A pulse and the gap behind it have at least so many blocks: the shortest are 25 ms, and their edges fall within blocks.
const BLOCKS_MIN: u32 = 3;
/// A longer tone, 150 ms, is no pulse: a line that is taken or given up.
const PULSE_MAX: u32 = 30;
/// So many blocks without a pulse, 150 ms, end a digit: the gap between two pulses has at most 60 ms.
const GAP_MAX: u32 = 30;
/// Most pulses of a digit.
const PULSES_MAX: u32 = 10;
/// Smallest part of the block's energy that the tone holds.
const ENERGY_MIN: f32 = 0.7;

/// Counts the pulses of one stream of linear samples at 8 kHz. Allocates nothing.
#[derive(Debug, Clone)]
pub struct PulseDetector {
    hertz: f32,
    block: [f32; BLOCK],
    filled: usize,
    /// Blocks in a row that are like the last one, and whether that holds the tone.
    run: u32,
    sounds: bool,
    /// Pulses of the digit that is dialled, and how many blocks it has lasted.
    pulses: u32,
    blocks: u32,
}

impl PulseDetector {
    /// A detector of pulses of so many hertz.
    pub fn new(hertz: u16) -> Self {
        Self {
            hertz: f32::from(hertz),
            block: [0.0; BLOCK],
            filled: 0,
            run: 0,
            sounds: false,
            pulses: 0,
            blocks: 0,
        }
    }

    /// Takes samples in pieces of any length and reports both edges of each digit when it is over.
    pub fn process(&mut self, linear: &[i16], mut report: impl FnMut(DtmfEdge)) {
        for &sample in linear {
            if let Some(slot) = self.block.get_mut(self.filled) {
                *slot = f32::from(sample);
            }
            self.filled += 1;
            if self.filled >= BLOCK {
                self.filled = 0;
                let sounds = self.holds_tone();
                self.step(sounds, &mut report);
            }
        }
    }

    fn holds_tone(&self) -> bool {
        let energy: f32 = self.block.iter().map(|x| x * x).sum();
        let peak = (PEAK_0_DBM0 * 10f64.powf(LEVEL_MIN_DBM0 / 20.0)) as f32;
        energy >= peak * peak * BLOCK as f32 / 2.0
            && goertzel(&self.block, self.hertz) >= ENERGY_MIN * energy * BLOCK as f32 / 2.0
    }

    fn step(&mut self, sounds: bool, report: &mut impl FnMut(DtmfEdge)) {
        self.blocks = self.blocks.saturating_add(u32::from(self.pulses > 0));
        if sounds == self.sounds {
            self.run = self.run.saturating_add(1);
        } else {
            // What was too short for a pulse was none; what was too long ends a digit without being one.
            if self.sounds {
                match self.run {
                    0..BLOCKS_MIN => {}
                    BLOCKS_MIN..=PULSE_MAX => self.pulses = self.pulses.saturating_add(1),
                    _ => (self.pulses, self.blocks) = (0, 0),
                }
            }
            (self.sounds, self.run) = (sounds, 1);
        }
        if !self.sounds && self.run == GAP_MAX && self.pulses > 0 {
            let digit = match self.pulses {
                PULSES_MAX => Some('0'),
                count => char::from_digit(count, PULSES_MAX),
            };
            if let Some(digit) = digit.and_then(Digit::from_char) {
                report(DtmfEdge::Begin(digit));
                report(DtmfEdge::End(digit, self.blocks.saturating_sub(GAP_MAX) * BLOCK_MS));
            }
            (self.pulses, self.blocks) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, sine};
    use crate::tone::peak_of_dbm0;

    fn heard(hertz: u16, linear: &[i16]) -> String {
        let (mut detector, mut heard) = (PulseDetector::new(hertz), String::new());
        for piece in linear.chunks(160) {
            detector.process(piece, |edge| {
                if let DtmfEdge::Begin(digit) = edge {
                    heard.push(digit.to_char());
                }
            });
        }
        heard
    }

    fn dialled(hertz: f64, digits: &str, on: usize, off: usize, between: usize) -> Vec<i16> {
        let mut linear = Vec::new();
        for digit in digits.chars().filter_map(|digit| digit.to_digit(10)) {
            for _ in 0..if digit == 0 { 10 } else { digit } {
                linear.extend(sine(hertz, 8000, peak_of_dbm0(-10.0), on * 8));
                linear.extend(vec![0; off * 8]);
            }
            linear.extend(vec![0; between * 8]);
        }
        linear
    }

    #[test]
    fn digits_are_as_many_pulses_as_they_say() {
        for (hertz, on, off, between) in
            [(2600, 67, 33, 600), (2600, 50, 50, 300), (2600, 30, 25, 200), (2400, 67, 33, 600)]
        {
            let linear = dialled(f64::from(hertz), "1234567890", on, off, between);
            assert_eq!(heard(hertz, &linear), "1234567890", "{hertz} Hz, {on} ms on and {off} ms off");
        }
    }

    #[test]
    fn other_sounds_are_no_pulses() {
        let mut noise = Noise(7);
        let hiss: Vec<i16> = (0..80_000).map(|_| (noise.unit() * 8000.0) as i16).collect();
        let mut taken = sine(2600.0, 8000, peak_of_dbm0(-10.0), 4000);
        taken.extend(vec![0; 4000]);
        for (case, linear) in [
            ("noise", hiss),
            ("another frequency", dialled(1500.0, "5", 67, 33, 600)),
            ("a line that is taken", taken),
            ("clicks", dialled(2600.0, "5", 5, 40, 600)),
            ("eleven pulses", dialled(2600.0, "92", 67, 33, 0).into_iter().chain(vec![0; 4000]).collect()),
        ] {
            assert_eq!(heard(2600, &linear), "", "{case}");
        }
    }
}
