//! Single tones and the signals of the network in the audio: how often one of them has come.
//!
//! Each block of 10 ms is fitted with the sines that are looked for (least squares). What the fit leaves over is everything
//! else; a block is the tone when that is as many decibels below the tone as was asked for. So a steady tone within some 8 Hz
//! is found whatever its level and phase, and speech, music and digits are not: they are never that pure for long.

use base::{ToneWatch, Tones};

/// Samples of a block: 10 ms at 8 kHz.
const BLOCK: usize = 80;
const BLOCK_MS: u32 = 10;
/// Blocks without the tone that it survives: a packet that was lost.
const BRIDGED_BLOCKS: u32 = 2;
/// Weakest mean power of a block, of samples squared: some -46 dBm0.
const POWER_MIN: f32 = 80.0 * 80.0;
/// How far the frequencies of a signal may differ in power (12 dB).
const TWIST_MAX: f32 = 15.8;
/// How long a signal of the network lasts before it counts.
const SIGNAL_MS: u32 = 200;
/// How long each of the three special information tones lasts at least; a third of a second is usual (ITU-T E.180).
const INFORMATION_MS: u32 = 180;
/// From the end of one of the three to where the next has to have lasted [`INFORMATION_MS`].
const INFORMATION_GAP_MS: u32 = 400;
/// The three tones in their order, each with the variants in use.
const INFORMATION: [[f32; 3]; 3] =
    [[913.8, 950.0, 985.2], [1370.6, 1400.0, 1428.5], [1776.7, 1800.0, 1776.7]];

/// Dial tone, busy and ringback of the North American plan, hertz.
const DIAL: [f32; 2] = [350.0, 440.0];
const BUSY: [f32; 2] = [480.0, 620.0];
const RINGBACK: [f32; 2] = [440.0, 480.0];

/// One or two sines over a block, and how to fit them.
#[derive(Debug, Clone)]
struct Fit {
    /// Cosine and sine of each frequency.
    basis: Vec<[f32; BLOCK]>,
    /// The inverse of their products with each other.
    inverse: [[f32; 4]; 4],
}

impl Fit {
    fn new(hertz: &[f32]) -> Self {
        let mut basis = Vec::new();
        for hertz in hertz.iter().take(2) {
            let angle = |n: usize| n as f64 * core::f64::consts::TAU * f64::from(*hertz) / 8000.0;
            basis.push(core::array::from_fn(|n| angle(n).cos() as f32));
            basis.push(core::array::from_fn(|n| angle(n).sin() as f32));
        }
        let mut products = [[0.0; 4]; 4];
        for (row, one) in products.iter_mut().zip(&basis) {
            for (cell, other) in row.iter_mut().zip(&basis) {
                *cell = one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            }
        }
        Self { inverse: inverse(products, basis.len()), basis }
    }
    /// The power that the sines hold together, and of the weaker and the stronger one alone.
    fn power(&self, block: &[f32; BLOCK]) -> (f32, f32, f32) {
        let mut seen = [0.0; 4];
        for (seen, basis) in seen.iter_mut().zip(&self.basis) {
            *seen = block.iter().zip(basis).map(|(a, b)| a * b).sum();
        }
        let mut found = [0.0; 4];
        for (found, row) in found.iter_mut().zip(&self.inverse) {
            *found = row.iter().zip(&seen).map(|(a, b)| a * b).sum();
        }
        let together: f32 = found.iter().zip(&seen).map(|(a, b)| a * b).sum();
        let [a, b, c, d] = found;
        let (first, second) = (a * a + b * b, c * c + d * d);
        let second = if self.basis.len() > 2 { second } else { first };
        (together, first.min(second), first.max(second))
    }
}

/// The inverse of the upper left corner of a matrix, by elimination; zero elsewhere, and where there is none.
fn inverse(mut of: [[f64; 4]; 4], size: usize) -> [[f32; 4]; 4] {
    let mut result = [[0.0; 4]; 4];
    for (n, row) in result.iter_mut().enumerate().take(size) {
        row[n] = 1.0;
    }
    for pivot in 0..size {
        let by = of[pivot][pivot];
        if by.abs() < 1e-9 {
            return [[0.0; 4]; 4];
        }
        for column in 0..4 {
            of[pivot][column] /= by;
            result[pivot][column] /= by;
        }
        let (own, own_result) = (of[pivot], result[pivot]);
        for row in (0..size).filter(|row| *row != pivot) {
            let times = of[row][pivot];
            for column in 0..4 {
                of[row][column] -= times * own[column];
                result[row][column] -= times * own_result[column];
            }
        }
    }
    result.map(|row| row.map(|value| value as f32))
}

/// How long something has lasted, and whether that has been counted.
#[derive(Debug, Clone, Default)]
struct Run {
    blocks: u32,
    missed: u32,
    counted: bool,
}

impl Run {
    /// True once, when it has lasted as long as is wanted.
    fn step(&mut self, is_there: bool, wanted_ms: u32) -> bool {
        if !is_there {
            self.missed += 1;
            if self.missed > BRIDGED_BLOCKS {
                *self = Self::default();
            } else if self.blocks > 0 {
                self.blocks += 1;
            }
            return false;
        }
        (self.blocks, self.missed) = (self.blocks.saturating_add(1), 0);
        let lasted = self.blocks.saturating_mul(BLOCK_MS) >= wanted_ms;
        lasted && !std::mem::replace(&mut self.counted, true)
    }
}

#[derive(Debug, Clone)]
struct Wanted {
    fit: Fit,
    lasts_ms: u32,
    run: Run,
}

/// The three special information tones, one after the other.
#[derive(Debug, Clone)]
struct Information {
    steps: [Vec<Wanted>; 3],
    heard: usize,
    since_ms: u32,
}

impl Information {
    fn new() -> Self {
        let wanted = |hertz: &f32| Wanted::new(&[*hertz], INFORMATION_MS);
        Self { steps: INFORMATION.map(|step| step.iter().map(wanted).collect()), heard: 0, since_ms: 0 }
    }
    fn step(&mut self, block: &[f32; BLOCK], energy: f32, ratio: f32) -> bool {
        self.since_ms = self.since_ms.saturating_add(BLOCK_MS);
        if self.heard > 0 && self.since_ms > INFORMATION_GAP_MS + INFORMATION_MS {
            self.heard = 0;
        }
        let Some(step) = self.steps.get_mut(self.heard) else { return false };
        let mut came = false;
        for wanted in step.iter_mut() {
            came |= wanted.step(block, energy, ratio);
        }
        if !came {
            return false;
        }
        step.iter_mut().for_each(|wanted| wanted.run = Run::default());
        (self.heard, self.since_ms) = (self.heard + 1, 0);
        let whole = self.heard == self.steps.len();
        if whole {
            self.heard = 0;
        }
        whole
    }
}

impl Wanted {
    fn new(hertz: &[f32], lasts_ms: u32) -> Self {
        Self { fit: Fit::new(hertz), lasts_ms, run: Run::default() }
    }
    fn step(&mut self, block: &[f32; BLOCK], energy: f32, ratio: f32) -> bool {
        let loud = energy >= POWER_MIN * BLOCK as f32;
        let is_there = loud && {
            let (together, weaker, stronger) = self.fit.power(block);
            together >= ratio * (energy - together).max(0.0) && stronger <= TWIST_MAX * weaker
        };
        self.run.step(is_there, self.lasts_ms)
    }
}

/// Listens to linear samples at 8 kHz. Allocates nothing once it is made.
#[derive(Debug, Clone)]
pub struct ToneDetector {
    wanted: Vec<Wanted>,
    information: Option<Information>,
    /// How many times as much power the tone has as all else.
    ratio: f32,
    block: [f32; BLOCK],
    filled: usize,
}

impl ToneDetector {
    /// Looks for what a watch names.
    pub fn new(watch: &ToneWatch) -> Self {
        let mut wanted = Vec::new();
        if let Some(hertz) = watch.hertz {
            wanted.push(Wanted::new(&[f32::from(hertz)], watch.duration_ms));
        }
        for (signal, hertz) in [(Tones::DIAL, DIAL), (Tones::BUSY, BUSY), (Tones::RINGBACK, RINGBACK)] {
            if watch.signals.has(signal) {
                wanted.push(Wanted::new(&hertz, SIGNAL_MS));
            }
        }
        Self {
            wanted,
            information: watch.signals.has(Tones::INFORMATION).then(Information::new),
            ratio: 10f32.powf(f32::from(watch.decibels) / 10.0),
            block: [0.0; BLOCK],
            filled: 0,
        }
    }
    /// Takes samples in pieces of any length; says how often something has come that is looked for.
    pub fn process(&mut self, linear: &[i16]) -> u32 {
        let mut came = 0;
        for sample in linear {
            if let Some(slot) = self.block.get_mut(self.filled) {
                *slot = f32::from(*sample);
            }
            self.filled += 1;
            if self.filled >= BLOCK {
                self.filled = 0;
                came += self.judge();
            }
        }
        came
    }
    fn judge(&mut self) -> u32 {
        let Self { wanted, information, ratio, block, .. } = self;
        let energy: f32 = block.iter().map(|sample| sample * sample).sum();
        let mut came = 0;
        for wanted in wanted {
            came += u32::from(wanted.step(block, energy, *ratio));
        }
        if let Some(information) = information {
            came += u32::from(information.step(block, energy, *ratio));
        }
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tone::{Tone, ToneGenerator, peak_of_dbm0, render};
    use base::SampleRate;

    const RATE: SampleRate = SampleRate(8000);

    fn watch(hertz: u16, duration_ms: u32) -> ToneWatch {
        let hertz = (hertz > 0).then_some(hertz);
        ToneWatch { hertz, duration_ms, ..ToneWatch::default() }
    }
    fn signals(signals: Tones) -> ToneWatch {
        ToneWatch { signals, ..watch(0, 0) }
    }
    fn script(text: &str, ms: usize) -> Vec<i16> {
        let tone = render(&text.parse().unwrap(), RATE);
        let again = tone.loop_from.map(|from| tone.samples[from..].to_vec()).unwrap_or(vec![0]);
        tone.samples.iter().copied().chain(again.into_iter().cycle()).take(ms * 8).collect()
    }
    fn sine(hertz: f64, dbm0: f64, ms: usize) -> Vec<i16> {
        let mut samples = vec![0; ms * 8];
        ToneGenerator::new(Tone::Sum(hertz, 0.0), peak_of_dbm0(dbm0), RATE).fill(&mut samples);
        samples
    }
    fn count(watch: &ToneWatch, samples: &[i16]) -> u32 {
        let mut detector = ToneDetector::new(watch);
        samples.chunks(160).map(|frame| detector.process(frame)).sum()
    }

    #[test]
    fn a_tone_counts_once_when_it_has_lasted_and_again_when_it_has_come_again() {
        let long = watch(2600, 500);
        for (name, text, ms, expected) in [
            ("long enough", "!2600/520,!0/100", 620, 1),
            ("too short", "!2600/450,!0/300", 750, 0),
            ("for ever counts once", "2600", 5000, 1),
            ("twice", "2600/600,0/200", 1600, 2),
            ("a lost packet does not end it", "!2600/300,!0/20,!2600/300,!0/100", 720, 1),
            ("two halves are no whole", "!2600/300,!0/60,!2600/300,!0/100", 760, 0),
            ("another one", "2700", 2000, 0),
            ("beside another one", "2600+1000", 2000, 0),
        ] {
            assert_eq!(count(&long, &script(text, ms)), expected, "{name}");
        }
    }

    #[test]
    fn frequency_level_and_phase_may_differ_a_little() {
        for hertz in [300u16, 425, 1004, 1100, 2100, 2600, 3400] {
            for off in [-6.0, -3.0, 0.0, 3.0, 6.0] {
                for dbm0 in [-40.0, -20.0, 0.0] {
                    let samples = sine(f64::from(hertz) + off, dbm0, 600);
                    for skipped in [0, 3, 7] {
                        let came = count(&watch(hertz, 500), &samples[skipped..]);
                        assert_eq!(came, 1, "{hertz} Hz {off:+} at {dbm0} dBm0");
                    }
                }
            }
            for off in [-25.0, 25.0] {
                let samples = sine(f64::from(hertz) + off, -10.0, 2000);
                assert_eq!(count(&watch(hertz, 100), &samples), 0, "{hertz} Hz {off:+}");
            }
            assert_eq!(count(&watch(hertz, 100), &sine(hertz.into(), -60.0, 1000)), 0, "too weak");
        }
    }

    #[test]
    fn decibels_say_how_much_else_there_may_be() {
        // A tone in noise that is 12 dB below it.
        let mut numbers = kit_noise(8 * 1000);
        let tone = sine(1400.0, -10.0, 1000);
        let power = |samples: &[i16]| samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>();
        let scale = (power(&tone) / power(&numbers)).sqrt() / 10f64.powf(12.0 / 20.0);
        for (noise, tone) in numbers.iter_mut().zip(&tone) {
            *noise = (f64::from(*noise) * scale) as i16 + tone;
        }
        for (decibels, expected) in [(6, 1), (16, 0)] {
            let watch = ToneWatch { decibels, ..watch(1400, 500) };
            assert_eq!(count(&watch, &numbers), expected, "{decibels} dB");
        }
    }
    fn kit_noise(samples: usize) -> Vec<i16> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        (0..samples)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 48) as i16 / 8
            })
            .collect()
    }

    #[test]
    fn e180_signals_of_the_network_are_told_apart() {
        let all = [Tones::DIAL, Tones::BUSY, Tones::RINGBACK, Tones::INFORMATION];
        for (name, text, expected) in [
            ("dial tone", "350+440", [1, 0, 0, 0]),
            ("busy", "480+620/500,0/500", [0, 3, 0, 0]),
            ("ringback", "440+480/2000,0/4000", [0, 0, 1, 0]),
            ("information", "!950/330,!1400/330,!1800/330,0", [0, 0, 0, 1]),
            ("information, other variants", "!913/274,!1428/380,!1777/380,0", [0, 0, 0, 1]),
            ("information out of order", "!1400/330,!950/330,!1800/330,0", [0, 0, 0, 0]),
            ("only two of three", "!950/330,!1400/330,0", [0, 0, 0, 0]),
            ("one frequency alone", "440", [0, 0, 0, 0]),
            ("silence", "0", [0, 0, 0, 0]),
        ] {
            let samples = script(text, 3000);
            let came = all.map(|signal| count(&signals(signal), &samples));
            assert_eq!(came, expected, "{name}");
        }
    }

    #[test]
    fn noise_and_digits_are_no_tone() {
        let noise = kit_noise(8 * 5000);
        let mut digits = Vec::new();
        for symbol in "1234567890*#".chars() {
            digits.extend(crate::tone::dtmf(base::Digit::from_char(symbol).unwrap(), 120, RATE));
            digits.extend(vec![0; 800]);
        }
        let every = Tones::DIAL | Tones::BUSY | Tones::RINGBACK | Tones::INFORMATION;
        for hertz in (300..3400).step_by(50) {
            let watch = ToneWatch { signals: every, ..watch(hertz, 60) };
            assert_eq!(count(&watch, &noise), 0, "noise, {hertz} Hz");
            assert_eq!(count(&watch, &digits), 0, "digits, {hertz} Hz");
        }
    }
}
