//! Sample rate conversion: one polyphase filter per pair of rates, built once, shared by every stream.
//!
//! A Kaiser-windowed sinc, flat to 0.425 of the lower rate (3.4 kHz for telephony) and down by more than 60 dB from
//! half of it. A stream keeps only its history of past input samples. Knows nothing of codecs.

use std::sync::OnceLock;

use base::SampleRate;

/// The rates that can be converted into each other, hertz: those of the linear formats.
pub const RATES: [u32; 7] = [8_000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000];

/// Where the passband ends, as a part of the lower rate: 3.4 kHz at 8 kHz (ITU-T G.712).
const PASSBAND: f64 = 0.425;
/// Where the stopband begins: nothing above half the lower rate may fold back.
const STOPBAND: f64 = 0.5;
/// Stopband attenuation asked of the window, dB: 60 is promised, the rest is margin.
const ATTENUATION_DB: f64 = 70.0;
/// Accumulators of the dot product; taps are padded to a multiple so that it vectorises.
const LANES: usize = 8;
/// Longest branch of a filter, samples: 48 → 8 kHz needs the most.
const TAPS_MAX: usize = 368;
/// Input samples worked on at a time, so that the work buffer is on the stack.
const CHUNK: usize = 480;

/// The coefficients for one pair of rates, `up`/`down` in lowest terms.
struct Filter {
    up: usize,
    down: usize,
    taps: usize,
    /// `up` branches of `taps` coefficients, each in the order of rising time.
    coefficients: Vec<f32>,
}

static FILTERS: [[OnceLock<Filter>; RATES.len()]; RATES.len()] =
    [const { [const { OnceLock::new() }; RATES.len()] }; RATES.len()];

/// Converts one stream of samples from a rate to another. Allocates once, in `new`.
pub struct Resampler {
    filter: &'static Filter,
    /// The last `taps - 1` input samples.
    history: Box<[i16]>,
    /// Time of the next output sample after the next input sample: whole input samples, and `up`ths of one.
    start: usize,
    phase: usize,
}

impl Resampler {
    /// A converter for two of [`RATES`]; `None` for any other rate, and when the rates are equal.
    ///
    /// The first use of a pair builds its filter (up to some milliseconds for 44.1 kHz); [`prepare`] does it ahead.
    pub fn new(from: SampleRate, to: SampleRate) -> Option<Self> {
        let filter = filter(from.0, to.0)?;
        Some(Self { filter, history: vec![0; filter.taps - 1].into(), start: 0, phase: 0 })
    }
    /// Room that `input` samples may need on the way out.
    pub fn output_max(&self, input: usize) -> usize {
        (input * self.filter.up).div_ceil(self.filter.down) + 1
    }
    /// Converts all of `input`; returns how many samples were written.
    ///
    /// `output` should have [`Self::output_max`] samples; what does not fit is lost. 20 ms in give exactly 20 ms out.
    pub fn process(&mut self, input: &[i16], output: &mut [i16]) -> usize {
        let mut written = 0;
        for chunk in input.chunks(CHUNK) {
            let rest = output.get_mut(written..).unwrap_or_default();
            written += self.process_chunk(chunk, rest).min(rest.len());
        }
        written
    }
    /// Forgets the past.
    pub fn reset(&mut self) {
        self.history.fill(0);
        (self.start, self.phase) = (0, 0);
    }

    fn process_chunk(&mut self, chunk: &[i16], output: &mut [i16]) -> usize {
        let Filter { up, down, taps, ref coefficients } = *self.filter;
        let past = self.history.len();
        let mut work = [0f32; TAPS_MAX + CHUNK];
        for (slot, &sample) in work.iter_mut().zip(self.history.iter().chain(chunk)) {
            *slot = f32::from(sample);
        }
        let (step, step_phase) = (down / up, down % up);
        let (mut start, mut phase) = (self.start, self.phase);
        let mut count = 0;
        while start < chunk.len() {
            if let (Some(window), Some(branch), Some(slot)) = (
                work.get(start..start + taps),
                coefficients.get(phase * taps..(phase + 1) * taps),
                output.get_mut(count),
            ) {
                let sum = dot(window, branch);
                *slot = (sum + 0.5f32.copysign(sum)) as i16; // `as` truncates and saturates
            }
            count += 1;
            start += step;
            phase += step_phase;
            if phase >= up {
                phase -= up;
                start += 1;
            }
        }
        (self.start, self.phase) = (start - chunk.len(), phase);
        if chunk.len() >= past {
            self.history.copy_from_slice(&chunk[chunk.len() - past..]);
        } else {
            self.history.copy_within(chunk.len().., 0);
            self.history[past - chunk.len()..].copy_from_slice(chunk);
        }
        count
    }
}

impl core::fmt::Debug for Resampler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Resampler({}/{}, {} taps)", self.filter.up, self.filter.down, self.filter.taps)
    }
}

/// Builds every filter ahead, so that no stream waits for one. Takes some tens of milliseconds.
pub fn prepare() {
    for from in RATES {
        for to in RATES {
            filter(from, to);
        }
    }
}

fn dot(samples: &[f32], coefficients: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    for (x, c) in samples.as_chunks::<LANES>().0.iter().zip(coefficients.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * c[lane];
        }
    }
    sums.iter().sum()
}

fn filter(from: u32, to: u32) -> Option<&'static Filter> {
    let index = |rate| RATES.iter().position(|&r| r == rate);
    if from == to {
        return None;
    }
    let cell = FILTERS.get(index(from)?)?.get(index(to)?)?;
    Some(cell.get_or_init(|| design(from, to)))
}

fn design(from: u32, to: u32) -> Filter {
    let divisor = gcd(from, to);
    let (up, down) = ((to / divisor) as usize, (from / divisor) as usize);
    let (low, high) = (f64::from(from.min(to)), f64::from(from) * up as f64);
    let transition = core::f64::consts::TAU * (STOPBAND - PASSBAND) * low / high;
    let cutoff = (STOPBAND + PASSBAND) / 2.0 * low / high; // cycles a sample of the high rate
    let length = (ATTENUATION_DB - 7.95) / (2.285 * transition); // Kaiser's estimate
    let taps = ((length / up as f64).ceil() as usize).next_multiple_of(LANES).min(TAPS_MAX);
    let (total, beta) = (taps * up, 0.1102 * (ATTENUATION_DB - 8.7));
    let centre = (total - 1) as f64 / 2.0;
    let prototype = |n: usize| {
        let t = n as f64 - centre;
        let x = core::f64::consts::TAU * cutoff * t;
        let sinc = if x == 0.0 { 1.0 } else { x.sin() / x };
        let edge = t / (centre + 0.5);
        sinc * bessel_i0(beta * (1.0 - edge * edge).max(0.0).sqrt())
    };
    let mut coefficients = vec![0f32; total];
    for (phase, branch) in coefficients.chunks_exact_mut(taps).enumerate() {
        let sum: f64 = (0..taps).map(|j| prototype(phase + up * j)).sum();
        for (i, slot) in branch.iter_mut().enumerate() {
            // Each branch has the gain 1 at DC, so a constant stays constant.
            *slot = (prototype(phase + up * (taps - 1 - i)) / sum) as f32;
        }
    }
    Filter { up, down, taps, coefficients }
}

/// The modified Bessel function of the first kind, order 0, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..40 {
        term *= (x / 2.0 / f64::from(k)).powi(2);
        sum += term;
    }
    sum
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{rms, sine};

    fn convert(input: &[i16], from: u32, to: u32, step: usize) -> Vec<i16> {
        let mut resampler = Resampler::new(SampleRate(from), SampleRate(to)).unwrap();
        let mut output = Vec::new();
        for chunk in input.chunks(step) {
            let mut room = vec![0; resampler.output_max(chunk.len())];
            let count = resampler.process(chunk, &mut room);
            output.extend_from_slice(&room[..count]);
        }
        output
    }

    fn gain_db(hertz: f64, from: u32, to: u32) -> f64 {
        let input = sine(hertz, from, 10_000.0, from as usize / 2);
        let output = convert(&input, from, to, from as usize / 50);
        20.0 * (rms(&output[output.len() / 2..]).max(1e-3) / rms(&input)).log10()
    }

    fn pairs() -> impl Iterator<Item = (u32, u32)> {
        RATES.into_iter().flat_map(|a| RATES.into_iter().map(move |b| (a, b))).filter(|(a, b)| a != b)
    }

    #[test]
    fn passband_is_flat_within_a_tenth_of_a_db_to_3400_hz_for_every_pair() {
        for (from, to) in pairs() {
            for hertz in [50.0, 300.0, 1004.0, 2000.0, 3000.0, 3400.0] {
                let gain = gain_db(hertz, from, to);
                assert!(gain.abs() < 0.1, "{from} -> {to} at {hertz} Hz: {gain:.3} dB");
            }
        }
    }

    #[test]
    fn what_would_fold_back_is_60_db_down() {
        for (from, to) in pairs().filter(|(from, to)| from > to) {
            for part in [0.51, 0.55, 0.6, 0.75, 0.97] {
                let hertz = part * f64::from(to);
                if hertz < f64::from(from) / 2.0 {
                    let gain = gain_db(hertz, from, to);
                    assert!(gain < -60.0, "{from} -> {to} at {hertz} Hz: {gain:.1} dB");
                }
            }
        }
    }

    #[test]
    fn images_of_an_upsampled_tone_are_60_db_down() {
        // What is left after the tone itself is fitted and taken out is image and rounding noise.
        for (from, to) in pairs().filter(|(from, to)| from < to) {
            let hertz = 0.4 * f64::from(from);
            let output = convert(&sine(hertz, from, 16_000.0, from as usize), from, to, 160);
            let tail = &output[output.len() - to as usize / 2..];
            let step = core::f64::consts::TAU * hertz / f64::from(to);
            let (mut c, mut s) = (0.0, 0.0);
            for (n, &x) in tail.iter().enumerate() {
                c += f64::from(x) * (step * n as f64).cos() * 2.0 / tail.len() as f64;
                s += f64::from(x) * (step * n as f64).sin() * 2.0 / tail.len() as f64;
            }
            let rest: f64 = tail
                .iter()
                .enumerate()
                .map(|(n, &x)| {
                    let (sin, cos) = (step * n as f64).sin_cos();
                    (f64::from(x) - c * cos - s * sin).powi(2)
                })
                .sum();
            let ratio = 10.0 * (rest / tail.len() as f64 / ((c * c + s * s) / 2.0)).log10();
            assert!(ratio < -60.0, "{from} -> {to}: {ratio:.1} dB");
        }
    }

    #[test]
    fn twenty_ms_in_give_twenty_ms_out_whatever_the_pair() {
        for (from, to) in pairs() {
            let mut resampler = Resampler::new(SampleRate(from), SampleRate(to)).unwrap();
            let frame = vec![1000i16; from as usize / 50];
            let mut room = vec![0; resampler.output_max(frame.len())];
            for turn in 0..5 {
                assert_eq!(resampler.process(&frame, &mut room), to as usize / 50, "{from} -> {to} {turn}");
            }
        }
    }

    #[test]
    fn chunking_does_not_change_a_sample() {
        let input = sine(777.0, 8000, 9000.0, 4000);
        for (from, to) in [(8000, 16000), (16000, 8000), (48000, 8000), (8000, 44100), (44100, 12000)] {
            let whole = convert(&input, from, to, input.len());
            for step in [1, 7, 80, 479, 481] {
                assert_eq!(convert(&input, from, to, step), whole, "{from} -> {to} by {step}");
            }
        }
    }

    #[test]
    fn full_scale_saturates_and_an_unknown_rate_is_refused() {
        let square: Vec<i16> = (0..1600).map(|n| if n / 8 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        let output = convert(&square, 8000, 16000, 160);
        assert!(output.contains(&i16::MAX) && output.contains(&i16::MIN));
        assert!(Resampler::new(SampleRate(11_025), SampleRate(8000)).is_none());
        assert!(Resampler::new(SampleRate(8000), SampleRate(8000)).is_none());
    }
}
