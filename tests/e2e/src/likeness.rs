//! Whether what was heard is what was said: speech recognised by its content after codecs, losses and unknown delays.
//!
//! A [`Clip`] that is said over and over is looked for in pieces of what was heard. A coarse search compares how the
//! energy of some bands goes up and down, which every codec keeps, vocoders too; a fine one compares the waveforms
//! themselves, which all but vocoders keep. Silence, noise, other speech, and speech whose frames are mixed up have
//! neither.

use core::f64::consts::TAU;

/// Samples a second of everything here.
pub const RATE: usize = 8000;
/// Samples between two looks at the bands, 10 ms, and in one look.
const HOP: usize = RATE / 100;
const LOOK: usize = 2 * HOP;
/// Samples of a piece that is looked for: 1.5 s hold some words.
const PIECE: usize = RATE * 3 / 2;
/// Samples whose waveform is compared at once: a slip of a jitter buffer spoils one of them.
const BLOCK: usize = RATE / 4;
/// Samples by which a block may be early or late beside the coarse search.
const SLIP: usize = RATE * 15 / 1000;
/// Edges of the bands, hertz.
const BANDS: [f64; 7] = [200.0, 450.0, 750.0, 1150.0, 1700.0, 2400.0, 3400.0];
/// Distance of the frequencies that are measured in a band, hertz.
const STEP: f64 = 100.0;
/// Amplitudes below this are silence: noise of codecs in pauses.
const FAINT: f64 = 60.0;
/// How far two pieces of a clip may be from their distance in what was heard: slips of jitter buffers.
const DRIFT: usize = RATE * 12 / 100;

type Profile = Vec<[f64; BANDS.len() - 1]>;

/// Speech that is said over and over.
#[derive(Debug)]
pub struct Clip {
    samples: Vec<i16>,
    profile: Profile,
}

/// Where in a clip a piece fits best, and how well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Samples into the clip.
    pub at: usize,
    /// Likeness of the ups and downs in the bands, at most 1.
    pub profile: f64,
    /// Likeness of the waveforms, at most 1.
    pub waveform: f64,
    /// How many times as loud as what was said.
    pub level: f64,
}

/// What a fit must have to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Least {
    /// Of [`Fit::profile`].
    pub profile: f64,
    /// Of [`Fit::waveform`].
    pub waveform: f64,
}

/// For codecs that keep the waveform. Other speech has up to 0.6 and 0.5, the same one 0.9 and 0.7 and more.
pub const WAVEFORM: Least = Least { profile: 0.8, waveform: 0.6 };
/// For vocoders, which keep only what is heard of it.
pub const VOCODER: Least = Least { profile: 0.75, waveform: 0.0 };

/// How much of what was heard is the clip.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// The best fit of each piece.
    pub fits: Vec<Fit>,
    /// Pieces that fit well enough, and follow one that did as they do in the clip.
    pub good: usize,
}

impl Clip {
    /// A clip at 8 kHz.
    ///
    /// # Panics
    /// When it is shorter than two pieces.
    pub fn new(samples: &[i16]) -> Self {
        assert!(samples.len() >= 2 * PIECE, "a clip of {} samples is too short", samples.len());
        // Around its end it goes on with its beginning.
        let samples = samples[..samples.len() / HOP * HOP].to_vec();
        let around: Vec<i16> = samples.iter().chain(&samples[..LOOK]).copied().collect();
        let mut profile = profile(&around);
        profile.truncate(samples.len() / HOP);
        Self { samples, profile }
    }

    /// The samples.
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Looks for the clip in what was heard, piece by piece.
    pub fn find(&self, heard: &[i16], least: Least) -> Recognised {
        let fits: Vec<Fit> = heard.chunks_exact(PIECE).map(|piece| self.fit(piece)).collect();
        let fits_well = |fit: &Fit| {
            fit.profile >= least.profile && fit.waveform >= least.waveform && (0.3..3.0).contains(&fit.level)
        };
        let length = self.samples.len();
        let follows = |before: &Fit, fit: &Fit| {
            let off = (before.at + PIECE + length - fit.at) % length;
            off.min(length - off) <= DRIFT
        };
        let pairs = fits.windows(2).filter(|pair| {
            let [before, fit] = pair else { return false };
            fits_well(before) && fits_well(fit) && follows(before, fit)
        });
        let good = pairs.count();
        Recognised { fits, good }
    }

    fn fit(&self, piece: &[i16]) -> Fit {
        let heard = profile(piece);
        let best = (0..self.profile.len())
            .map(|shift| (shift, self.alike(&heard, shift)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let (shift, profile) = best.unwrap_or_default();
        let (at, waveform) = self.waveform(piece, shift * HOP);
        let said: Vec<i16> = (0..PIECE).map(|index| self.sample(at + index)).collect();
        Fit { at, profile, waveform, level: rms(piece) / rms(&said).max(1.0) }
    }

    /// Correlation of band energies, each less its mean, with the clip from a shift on.
    fn alike(&self, heard: &Profile, shift: usize) -> f64 {
        let count = heard.len() as f64;
        let (mut product, mut of_heard, mut of_said) = (0.0, 0.0, 0.0);
        for band in 0..BANDS.len() - 1 {
            let said = |index: usize| self.profile[(shift + index) % self.profile.len()][band];
            let mean_heard = heard.iter().map(|look| look[band]).sum::<f64>() / count;
            let mean_said = (0..heard.len()).map(said).sum::<f64>() / count;
            for (index, look) in heard.iter().enumerate() {
                let (x, y) = (look[band] - mean_heard, said(index) - mean_said);
                (product, of_heard, of_said) = (product + x * y, of_heard + x * x, of_said + y * y);
            }
        }
        product / (of_heard * of_said).sqrt().max(1e-9)
    }

    /// Place and mean correlation of the blocks, the loud ones counting more; each may be a little early or late.
    fn waveform(&self, piece: &[i16], near: usize) -> (usize, f64) {
        let length = self.samples.len();
        let (mut total, mut weights, mut loudest) = (0.0, 0.0, (0.0, near));
        for (number, block) in piece.chunks_exact(BLOCK).enumerate() {
            let from = near + length + number * BLOCK - SLIP;
            let said: Vec<f64> = (0..BLOCK + 2 * SLIP).map(|n| f64::from(self.sample(from + n))).collect();
            let block: Vec<f64> = block.iter().map(|&sample| f64::from(sample)).collect();
            let energy: f64 = block.iter().map(|x| x * x).sum();
            let correlation = |slip: usize| {
                let said = &said[slip..slip + BLOCK];
                let product: f64 = block.iter().zip(said).map(|(x, y)| x * y).sum();
                product / (energy * said.iter().map(|y| y * y).sum::<f64>()).sqrt().max(1.0)
            };
            let best =
                (0..=2 * SLIP).map(|slip| (slip, correlation(slip))).max_by(|a, b| a.1.total_cmp(&b.1));
            let (slip, likeness) = best.unwrap_or_default();
            let weight = energy.sqrt();
            (total, weights) = (total + weight * likeness, weights + weight);
            if weight > loudest.0 {
                loudest = (weight, near + length + slip - SLIP);
            }
        }
        (loudest.1 % length, total / f64::max(weights, 1.0))
    }

    fn sample(&self, index: usize) -> i16 {
        self.samples[index % self.samples.len()]
    }
}

/// Energies of the bands every 10 ms, as logarithms.
fn profile(samples: &[i16]) -> Profile {
    let looks = samples.len().saturating_sub(LOOK - HOP) / HOP;
    let window: Vec<f64> =
        (0..LOOK).map(|n| 0.5 - 0.5 * (TAU * (n as f64 + 0.5) / LOOK as f64).cos()).collect();
    let look = |number: usize| {
        let part: Vec<f64> = samples[number * HOP..number * HOP + LOOK]
            .iter()
            .zip(&window)
            .map(|(&sample, window)| f64::from(sample) * window)
            .collect();
        core::array::from_fn(|band| {
            let mut energy = 0.0;
            let mut hertz = BANDS[band] + STEP / 2.0;
            while hertz < BANDS[band + 1] {
                energy += power(&part, hertz);
                hertz += STEP;
            }
            (energy / LOOK as f64 + FAINT * FAINT).ln()
        })
    };
    (0..looks).map(look).collect()
}

/// Power at a frequency (Goertzel).
fn power(samples: &[f64], hertz: f64) -> f64 {
    let turn = 2.0 * (TAU * hertz / RATE as f64).cos();
    let (mut before, mut last) = (0.0, 0.0);
    for &sample in samples {
        (before, last) = (last, sample + turn * last - before);
    }
    before * before + last * last - turn * before * last
}

fn rms(samples: &[i16]) -> f64 {
    let energy: f64 = samples.iter().map(|&sample| f64::from(sample).powi(2)).sum();
    (energy / samples.len().max(1) as f64).sqrt()
}

/// Twice or more as many samples a second, or as few: by a windowed sinc, good to about a tenth of the edge.
pub fn resample(samples: &[i16], from: usize, to: usize) -> Vec<i16> {
    /// Zero crossings of the sinc on each side.
    const CROSSINGS: f64 = 8.0;
    if from == to {
        return samples.to_vec();
    }
    let edge = 0.92 * from.min(to) as f64 / from as f64;
    let reach = CROSSINGS / edge;
    let pi = core::f64::consts::PI;
    let weight = |x: f64| {
        let angle = pi * x * edge;
        let sinc = if angle.abs() < 1e-9 { 1.0 } else { angle.sin() / angle };
        if x.abs() < reach { edge * sinc * (0.5 + 0.5 * (pi * x / reach).cos()) } else { 0.0 }
    };
    // What is made lies at few places between two samples: a filter for each.
    let phases = to / greatest_common_divisor(from, to);
    let taps = 2 * reach.ceil() as usize + 1;
    let filters: Vec<Vec<f64>> = (0..phases)
        .map(|phase| {
            let between = (phase * from % to) as f64 / to as f64;
            (0..taps).map(|tap| weight(tap as f64 - reach.ceil() - between)).collect()
        })
        .collect();
    let front = reach.ceil() as usize;
    let padded: Vec<f64> =
        vec![0; front].iter().chain(samples).chain(&vec![0; taps]).map(|&s| f64::from(s)).collect();
    (0..samples.len() * to / from)
        .map(|n| {
            let part = &padded[n * from / to..];
            let sum: f64 = filters[n % phases].iter().zip(part).map(|(weight, sample)| weight * sample).sum();
            sum as i16 // `as` saturates
        })
        .collect()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle::{GSM, Oracle, SPANDSP, SPEEX};

    fn clips() -> (Clip, Clip) {
        let speech = oracle::speech();
        (Clip::new(&speech[8000..56_000]), Clip::new(&speech[100_000..140_000]))
    }

    /// What is heard of a clip that is said twice, from some moment on.
    fn heard(clip: &Clip) -> Vec<i16> {
        let twice = [clip.samples(), clip.samples()].concat();
        let count = (twice.len() - 12_345) / PIECE;
        twice[12_345..12_345 + 5.min(count) * PIECE].to_vec()
    }

    #[test]
    fn a_clip_is_recognised_after_every_kind_of_codec() {
        let (clip, other) = clips();
        for (library, code, decode, least) in [
            (&GSM, "encode", "decode", WAVEFORM),
            (&SPEEX, "encode-q3", "decode-q3", WAVEFORM),
            (&SPEEX, "encode-q8", "decode-q8", WAVEFORM),
            (&SPANDSP, "g726-encode", "g726-decode", WAVEFORM),
            (&SPANDSP, "lpc10-encode", "lpc10-decode", VOCODER),
        ] {
            let Some(oracle) = Oracle::build(library) else { continue };
            let coded = oracle.run(code, &oracle::bytes(&heard(&clip)));
            let heard = oracle::samples(&oracle.run(decode, &coded));
            let found = clip.find(&heard, least);
            assert!(found.good + 2 >= found.fits.len(), "{code}: {found:.2?}");
            let wrong = other.find(&heard, least);
            assert_eq!(wrong.good, 0, "{code}: {wrong:.2?}");
        }
    }

    #[test]
    fn what_is_not_the_clip_is_not_recognised() {
        let (clip, other) = clips();
        let right = heard(&clip);
        let mut seed = 1_u32;
        let mut noise = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 19) as i16 - 4096
        };
        let shuffled: Vec<i16> = right.chunks(160).rev().flatten().copied().collect();
        let repeated: Vec<i16> = right[..PIECE].iter().cycle().take(5 * PIECE).copied().collect();
        for (name, heard, least) in [
            ("silence", vec![0; 5 * PIECE], VOCODER),
            ("noise", (0..5 * PIECE).map(|_| noise()).collect(), VOCODER),
            ("the other clip", heard(&other), VOCODER),
            ("frames in another order", shuffled, VOCODER),
            ("one piece over and over", repeated, VOCODER),
            ("bytes in another order", right.iter().map(|sample| sample.swap_bytes()).collect(), VOCODER),
            ("a tenth as loud", right.iter().map(|sample| sample / 10).collect(), VOCODER),
        ] {
            let found = clip.find(&heard, least);
            assert_eq!(found.good, 0, "{name}: {found:.2?}");
        }
        let found = clip.find(&right, WAVEFORM);
        assert!(found.good + 1 == found.fits.len(), "the clip itself: {found:.2?}");
    }

    #[test]
    fn a_clip_survives_a_slip_and_a_loss() {
        let (clip, _) = clips();
        let mut slipped = heard(&clip);
        slipped.drain(9000..9080);
        slipped[20_000..20_160].fill(0);
        let found = clip.find(&slipped, WAVEFORM);
        assert!(found.good + 1 >= found.fits.len(), "{found:.2?}");
    }

    #[test]
    fn a_tone_keeps_its_frequency_and_level_at_another_rate() {
        for (from, to) in [(8000, 16_000), (8000, 48_000), (48_000, 8000), (16_000, 8000)] {
            let tone = crate::tone::sine(from as u32, 440.0, 1.0);
            let other = resample(&tone, from, to);
            let middle = &other[to / 10..to * 9 / 10];
            assert!(crate::tone::share(middle, to as u32, 440.0) > 0.99, "{from} to {to}");
            assert!((rms(middle) / rms(&tone) - 1.0).abs() < 0.02, "{from} to {to}");
        }
    }
}
