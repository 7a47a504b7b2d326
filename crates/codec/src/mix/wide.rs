//! Mixing in SIMD lanes: the samples of one frame side by side.

use lanes::{I16Lanes, Kernel, Lanes, Level, Number, Vector};

/// Samples that are added up before the sum leaves the lanes: 20 ms at 48 kHz and more, 128 in each of 8 lanes, of which
/// 32 bits hold 65,535 of full scale.
const SUMMED_MAX: usize = 1024;

/// As [`accumulate`](super::accumulate).
pub fn accumulate(level: Level, sum: &mut [i32], frame: &[i16]) {
    level.run(Accumulate { sum, frame });
}

/// As [`limit`](super::limit).
pub fn limit(level: Level, sum: &[i32], out: &mut [i16]) {
    level.run(Limit { sum, out });
}

/// As [`limit_minus_self`](super::limit_minus_self).
pub fn limit_minus_self(level: Level, sum: &[i32], own: &[i16], out: &mut [i16]) {
    level.run(LimitMinusSelf { sum, own, out });
}

/// Sum of the magnitudes of a frame: 0 only for silence itself. Divided by its length it is [`mean_abs`](super::mean_abs).
pub fn magnitude(level: Level, frame: &[i16]) -> u64 {
    frame.chunks(SUMMED_MAX).map(|frame| level.run(Magnitude { frame })).sum()
}

struct Accumulate<'a> {
    sum: &'a mut [i32],
    frame: &'a [i16],
}

impl Kernel for Accumulate<'_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let count = self.sum.len().min(self.frame.len());
        let whole = count / L::I16::LANES * L::I16::LANES;
        let (sum, sum_rest) = self.sum[..count].split_at_mut(whole);
        let (frame, frame_rest) = self.frame[..count].split_at(whole);
        for (to, from) in sum.chunks_exact_mut(L::I16::LANES).zip(frame.chunks_exact(L::I16::LANES)) {
            let [low, high] = L::I16::load(from).split();
            let (first, second) = to.split_at_mut(L::N);
            (L::I32::load(first) + low).store(first);
            (L::I32::load(second) + high).store(second);
        }
        super::accumulate(sum_rest, frame_rest);
    }
}

struct Limit<'a> {
    sum: &'a [i32],
    out: &'a mut [i16],
}

impl Kernel for Limit<'_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let count = self.sum.len().min(self.out.len());
        let whole = count / L::I16::LANES * L::I16::LANES;
        let (sum, sum_rest) = self.sum[..count].split_at(whole);
        let (out, out_rest) = self.out[..count].split_at_mut(whole);
        for (to, from) in out.chunks_exact_mut(L::I16::LANES).zip(sum.chunks_exact(L::I16::LANES)) {
            let (first, second) = from.split_at(L::N);
            L::I16::join([L::I32::load(first), L::I32::load(second)]).store(to);
        }
        super::limit(sum_rest, out_rest);
    }
}

struct LimitMinusSelf<'a> {
    sum: &'a [i32],
    own: &'a [i16],
    out: &'a mut [i16],
}

impl Kernel for LimitMinusSelf<'_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let count = self.sum.len().min(self.out.len()).min(self.own.len());
        let whole = count / L::I16::LANES * L::I16::LANES;
        let (sum, sum_rest) = self.sum[..count].split_at(whole);
        let (own, own_rest) = self.own[..count].split_at(whole);
        let (out, out_rest) = self.out[..count].split_at_mut(whole);
        let inputs = sum.chunks_exact(L::I16::LANES).zip(own.chunks_exact(L::I16::LANES));
        for (to, (from, own)) in out.chunks_exact_mut(L::I16::LANES).zip(inputs) {
            let (first, second) = from.split_at(L::N);
            let [low, high] = L::I16::load(own).split();
            L::I16::join([L::I32::load(first) - low, L::I32::load(second) - high]).store(to);
        }
        super::limit_minus_self(sum_rest, own_rest, out_rest);
    }
}

struct Magnitude<'a> {
    frame: &'a [i16],
}

impl Kernel for Magnitude<'_> {
    type Out = u64;
    #[inline(always)]
    fn run<L: Lanes>(self) -> u64 {
        let mut sum = L::I32::splat(0);
        let chunks = self.frame.chunks_exact(L::I16::LANES);
        let rest: u64 = chunks.remainder().iter().map(|sample| u64::from(sample.unsigned_abs())).sum();
        for chunk in chunks {
            let [low, high] = L::I16::load(chunk).split();
            sum += low.abs() + high.abs();
        }
        let sums = [sum];
        let lanes = L::I32::flat(&sums);
        let mut total = rest;
        for &lane in lanes {
            total += lane as u64;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of every length up to two groups of the widest lanes, and full scale among them.
    #[test]
    fn every_level_gives_the_samples_of_the_plain_form() {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32
        };
        for level in Level::all_available() {
            for count in (0..=97).chain([160, 441, 480, 960, 1024, 1030, 2880]) {
                let frame: Vec<i16> = (0..count)
                    .map(|_| match random() % 8 {
                        0 => i16::MIN,
                        1 => i16::MAX,
                        _ => random() as i16,
                    })
                    .collect();
                let start: Vec<i32> = (0..count).map(|_| random() as i32 % 200_000).collect();
                let (mut sum, mut plain) = (start.clone(), start);
                accumulate(level, &mut sum, &frame);
                crate::mix::accumulate(&mut plain, &frame);
                assert_eq!(sum, plain, "{level}, {count}");
                let (mut out, mut expected) = (vec![0; count], vec![0; count]);
                limit(level, &sum, &mut out);
                crate::mix::limit(&plain, &mut expected);
                assert_eq!(out, expected, "{level}, {count}");
                limit_minus_self(level, &sum, &frame, &mut out);
                crate::mix::limit_minus_self(&plain, &frame, &mut expected);
                assert_eq!(out, expected, "{level}, {count}");
                let magnitude = magnitude(level, &frame);
                let plain: u64 = frame.iter().map(|sample| u64::from(sample.unsigned_abs())).sum();
                assert_eq!(magnitude, plain, "{level}, {count}");
            }
        }
    }

    #[test]
    fn the_loudest_frame_does_not_overflow_the_lanes() {
        for level in Level::all_available() {
            assert_eq!(magnitude(level, &[i16::MIN; 5000]), 5000 * 32_768, "{level}");
        }
    }
}
