//! The enhancer (RFC 3951 §4.7, §4.8): each block of the residual is drawn toward its neighbours one pitch period away.
//!
//! The order of every float operation is the reference's. It works on the last [`HISTORY`] samples of the residual and
//! delays the signal by half a block (20 ms frames) or a whole one (30 ms).

use crate::tables::{ENHANCER_CENTRES, LOW_PASS, UPSAMPLING};
use crate::{SUB_BLOCK, Shape};

/// Samples that are enhanced at once.
pub(crate) const BLOCK: usize = 80;

/// Samples of the residual that the enhancer sees: eight blocks.
pub(crate) const HISTORY: usize = PLACES * BLOCK;
/// Places in the history that have a pitch period: the middle of each block.
pub(crate) const PLACES: usize = 8;
/// Segments on each side of a block that it is compared with.
pub(crate) const REACH: usize = 3;
/// All segments, the block itself in the middle.
pub(crate) const SEGMENTS: usize = 2 * REACH + 1;
/// A segment's place is searched this far on both sides of the estimate.
pub(crate) const SLOP: usize = 2;
/// Places of whole samples in that search.
pub(crate) const TRIALS: usize = 2 * SLOP + 1;
/// Places between two samples.
pub(crate) const QUARTERS: usize = 4;
/// Taps of the filters that shift by part of a sample.
pub(crate) const TAPS: usize = 7;
/// Samples before and after the one that a tap filter is centred on.
pub(crate) const HALF_TAPS: usize = 3;
/// A segment with what its filter needs around it.
pub(crate) const WINDOW: usize = BLOCK + 2 * HALF_TAPS;
/// Samples at half rate before the first block that is searched for its pitch.
pub(crate) const DECIMATED_PAST: usize = 60;
/// Lags of the pitch search at half rate.
pub(crate) const DECIMATED_LAGS: core::ops::Range<usize> = 10..60;
/// How much energy a smoothed block may differ by, as part of its own.
pub(crate) const DIFFERENCE_MAX: f32 = 0.05;
/// Blocks that differ less than this from cycle to cycle are left alone.
pub(crate) const FLAT: f32 = 0.0001;
/// What each segment counts for in the mean: a raised cosine without its middle.
pub(crate) const WEIGHTS: [f32; SEGMENTS] =
    [0.146_446_61, 0.5, 0.853_553_4, 0.0, 0.853_553_3, 0.5, 0.146_446_5];

/// What the enhancer remembers between frames.
#[derive(Debug, Clone)]
pub(crate) struct Enhancer {
    /// The residual, the newest frame last.
    pub history: [f32; HISTORY],
    /// Pitch periods in samples at [`ENHANCER_CENTRES`].
    pub periods: [f32; PLACES],
}

impl Enhancer {
    pub fn new() -> Self {
        Self { history: [0.0; HISTORY], periods: [40.0; PLACES] }
    }

    /// Takes in a frame of residual and gives out an enhanced one, later by half a block or a block.
    ///
    /// `after_loss`: the frame before was concealed, so that the part of it which is not yet heard is mended with what
    /// this frame shows. Returns the pitch lag that concealment of a next frame begins with.
    pub fn enhance(&mut self, shape: &Shape, residual: &[f32], after_loss: bool, out: &mut [f32]) -> usize {
        let length = shape.samples;
        self.history.copy_within(length.., 0);
        self.history[HISTORY - length..].copy_from_slice(residual);
        let mut lag = 2 * self.estimate_periods(shape);
        if after_loss {
            lag = 2 * self.mend(shape, residual);
        }
        let first = shape.first_enhanced();
        for (index, block) in out[..shape.blocks() * BLOCK].chunks_exact_mut(BLOCK).enumerate() {
            let segments = self.pitch_synchronous(first + index * BLOCK);
            smooth(&segments, block);
        }
        lag
    }

    /// Finds the pitch of the newest blocks; returns the last, at half rate.
    fn estimate_periods(&mut self, shape: &Shape) -> usize {
        let blocks = shape.blocks();
        self.periods.copy_within(blocks.., 0);
        let mut decimated = [0.0; DECIMATED_PAST + 3 * BLOCK / 2];
        let decimated = &mut decimated[..DECIMATED_PAST + blocks * BLOCK / 2];
        decimate(&self.history[HISTORY - 2 * decimated.len() - (TAPS - 1)..], decimated);
        let mut lag = 0;
        for block in 0..blocks {
            let start = DECIMATED_PAST + block * BLOCK / 2;
            lag = best_lag(DECIMATED_LAGS, |lag| {
                correlation(&decimated[start..start + BLOCK / 2], &decimated[start - lag..])
            });
            self.periods[PLACES - blocks + block] = lag as f32 * 2.0;
        }
        lag
    }

    /// Blends the concealed samples that are not yet heard with a continuation backwards from the new frame.
    /// Returns the lag that suits this frame's beginning.
    pub fn mend(&mut self, shape: &Shape, residual: &[f32]) -> usize {
        let length = shape.lookahead();
        let place = PLACES - shape.blocks();
        let near = self.periods[place] as usize;
        let lag = best_lag(near - 1..near + 2, |lag| correlation(&residual[..length], &residual[lag..]));
        self.periods[place - 1] = lag as f32;

        let (past, _) = self.history.split_at_mut(HISTORY - shape.samples);
        let end = past.len();
        let mut backward = [0.0; BLOCK];
        let backward = &mut backward[..length];
        let known = lag.min(length);
        backward[length - known..].copy_from_slice(&residual[lag - known..lag]);
        backward[..length - known].copy_from_slice(&past[end - (length - known)..]);

        let before = root_mean_square(past[end - length..].iter().rev());
        let after = root_mean_square(backward.iter());
        if after > 2.0 * before && after > 0.0 {
            /// The limit on energy fades out over this many samples.
            const FADE: usize = 10;
            let scale = 2.0 * before / after;
            for (index, sample) in backward.iter_mut().enumerate() {
                *sample *= match (index + FADE).checked_sub(length) {
                    Some(step) => step as f32 * (1.0 - scale) / FADE as f32 + scale,
                    None => scale,
                };
            }
        }
        for index in 0..length {
            let share = (index + 1) as f32 / (length + 1) as f32;
            let sample = &mut past[end - 1 - index];
            *sample *= share;
            *sample += (1.0 - share) * backward[length - 1 - index];
        }
        lag
    }

    /// The block at `centre` and the segments that are whole pitch periods away from it, zeros where the history ends.
    fn pitch_synchronous(&self, centre: usize) -> [[f32; BLOCK]; SEGMENTS] {
        let mut segments = [[0.0; BLOCK]; SEGMENTS];
        let block = &self.history[centre..centre + BLOCK];
        segments[REACH].copy_from_slice(block);
        let half = (BLOCK / 2) as f32;
        let middle = nearest(&ENHANCER_CENTRES, 0.5 * (2 * centre + BLOCK - 1) as f32);
        let mut trials = [0.0; TRIALS];

        let (mut start, mut place) = (centre as f32, middle);
        for segment in segments[..REACH].iter_mut().rev() {
            let period = self.periods[place];
            start -= period;
            place = nearest(&ENHANCER_CENTRES, start + half - period);
            if start - 2.0 >= 0.0 {
                start = self.refine(block, start, &mut trials, segment);
            }
        }

        let mut places = ENHANCER_CENTRES;
        for (place, period) in places.iter_mut().zip(&self.periods) {
            *place -= period;
        }
        start = centre as f32;
        for segment in &mut segments[REACH + 1..] {
            start += self.periods[nearest(&places, start + half)];
            if start + BLOCK as f32 + 2.0 < HISTORY as f32 {
                start = self.refine(block, start, &mut trials, segment);
            }
        }
        segments
    }

    /// Finds where near `start` the history resembles the block most, to a quarter of a sample, and takes the segment
    /// there. Returns that place.
    ///
    /// At the very beginning of the history one place fewer is searched; the reference then reads, uninitialised, the
    /// last correlation of the segment before, and so does this through `trials`.
    fn refine(
        &self,
        block: &[f32],
        start: f32,
        trials: &mut [f32; TRIALS],
        segment: &mut [f32; BLOCK],
    ) -> f32 {
        let rounded = (f64::from(start) - 0.5) as usize;
        let first = rounded.saturating_sub(SLOP);
        let last = (rounded + SLOP).min(HISTORY - BLOCK - 1);
        let count = last + 1 - first;
        for (index, trial) in trials[..count].iter_mut().enumerate() {
            *trial = dot(&self.history[first + index..], block);
        }
        let upsampled = upsample(trials, count);
        let mut best = 0;
        for (index, &value) in upsampled[..count * QUARTERS].iter().enumerate() {
            if value > upsampled[best] {
                best = index;
            }
        }
        let whole = best.div_ceil(QUARTERS);
        let mut window = [0.0; WINDOW];
        let (from, to) = (first + whole, first + whole + WINDOW);
        for (sample, at) in window.iter_mut().zip(from..to) {
            // The window begins `HALF_TAPS` before `from`.
            *sample = at.checked_sub(HALF_TAPS).and_then(|at| self.history.get(at)).copied().unwrap_or(0.0);
        }
        let filter = &UPSAMPLING[whole * QUARTERS - best];
        for (index, sample) in segment.iter_mut().enumerate() {
            *sample = dot(&window[index..], filter);
        }
        first as f32 + best as f32 / QUARTERS as f32 + 1.0
    }
}

impl Shape {
    /// New blocks of enhanced signal a frame.
    pub(crate) fn blocks(&self) -> usize {
        self.samples / BLOCK
    }
    /// Samples of a frame that are heard with the next one only.
    pub(crate) fn lookahead(&self) -> usize {
        self.delay() * SUB_BLOCK
    }
    /// Where in the history the first block of a frame lies.
    pub(crate) fn first_enhanced(&self) -> usize {
        HISTORY - self.samples - self.lookahead()
    }
}

/// Low-pass filters and takes every second sample. `samples` begins six before the first that is filtered, and is taken
/// to go on with zeros.
fn decimate(samples: &[f32], out: &mut [f32]) {
    for (index, out) in out.iter_mut().enumerate() {
        let newest = TAPS - 1 + HALF_TAPS + 2 * index;
        *out = 0.0;
        for (tap, factor) in LOW_PASS.iter().enumerate() {
            *out += factor * samples.get(newest - tap).copied().unwrap_or(0.0);
        }
    }
}

/// The lag with the greatest measure, the smallest of equals.
pub(crate) fn best_lag(lags: core::ops::Range<usize>, measure: impl Fn(usize) -> f32) -> usize {
    let mut best = lags.start;
    let mut greatest = measure(best);
    for lag in lags.start + 1..lags.end {
        let value = measure(lag);
        if value > greatest {
            (greatest, best) = (value, lag);
        }
    }
    best
}

/// Energy that `target` has in common with as many samples of `other`; 0 when they oppose each other.
pub(crate) fn correlation(target: &[f32], other: &[f32]) -> f32 {
    let (mut cross, mut energy) = (0.0, 0.0);
    for (a, b) in target.iter().zip(other) {
        cross += a * b;
        energy += b * b;
    }
    if cross > 0.0 { cross * cross / energy } else { 0.0 }
}

/// Sum of products, first to last, over the shorter of both.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// Level of samples, summed in the order in which they come.
fn root_mean_square<'a>(samples: impl ExactSizeIterator<Item = &'a f32>) -> f32 {
    let count = samples.len() as f32;
    (samples.fold(0.0, |sum, x| sum + x * x) / count).sqrt()
}

/// The index of the value that is nearest, the first of equals.
fn nearest(values: &[f32; PLACES], to: f32) -> usize {
    let mut best = 0;
    let mut least = f32::MAX;
    for (index, value) in values.iter().enumerate() {
        let distance = (value - to) * (value - to);
        if distance < least {
            (least, best) = (distance, index);
        }
    }
    best
}

/// Correlations at quarter samples from those at whole ones. The filter is cut to five taps, as there are only so many.
fn upsample(trials: &[f32; TRIALS], count: usize) -> [f32; TRIALS * QUARTERS] {
    let mut out = [0.0; TRIALS * QUARTERS];
    for (row, out) in out.chunks_exact_mut(QUARTERS).enumerate() {
        for (filter, out) in UPSAMPLING.iter().zip(out) {
            let filter = &filter[1..1 + TRIALS];
            // Rows 0, 1, 2: the filter hangs over the left end; later ones: over the right.
            let (newest, skipped) = if row < 3 { (row + 2, 0) } else { (count - 1, row - 2) };
            for (back, factor) in filter[skipped..].iter().enumerate().take(newest + 1) {
                *out += trials[newest - back] * factor;
            }
        }
    }
    out
}

/// Draws the middle segment toward the mean of the others, no further than [`DIFFERENCE_MAX`] allows.
fn smooth(segments: &[[f32; BLOCK]; SEGMENTS], out: &mut [f32]) {
    let mut around = [0.0; BLOCK];
    for (around, sample) in around.iter_mut().zip(&segments[0]) {
        *around = sample * WEIGHTS[0];
    }
    for index in (1..SEGMENTS).filter(|&index| index != REACH) {
        for (around, sample) in around.iter_mut().zip(&segments[index]) {
            *around += sample * WEIGHTS[index];
        }
    }
    let block = &segments[REACH];
    let (mut own, mut cross, mut other) = (0.0, 0.0, 0.0);
    for (a, b) in block.iter().zip(&around) {
        own += a * a;
        other += b * b;
        cross += b * a;
    }
    if other < 1.0 {
        other = 1.0;
    }
    let scale = (own / other).sqrt();
    let mut difference = 0.0;
    for ((out, around), sample) in out.iter_mut().zip(&around).zip(block) {
        *out = scale * around;
        let error = sample - *out;
        difference += error * error;
    }
    if difference > DIFFERENCE_MAX * own {
        if own < 1.0 {
            own = 1.0;
        }
        let spread = (other * own - cross * cross) / (own * own);
        let (a, b) = if spread > FLAT {
            let a = ((DIFFERENCE_MAX - DIFFERENCE_MAX * DIFFERENCE_MAX / 4.0) / spread).sqrt();
            (a, -DIFFERENCE_MAX / 2.0 - a * cross / own + 1.0)
        } else {
            (0.0, 1.0)
        };
        for ((out, around), sample) in out.iter_mut().zip(&around).zip(block) {
            *out = a * around + b * sample;
        }
    }
}
