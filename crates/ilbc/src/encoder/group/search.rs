//! The codebook search of a group (RFC 3951 section 3.6).

use lanes::{LANES_MAX, Lanes, Number, Vector};

use super::super::search::{GAIN_MAX, MEASURE_MIN, SEARCH_EXTRA, SEARCH_FIRST, SEARCH_LATER, WINDOW, Window};
use super::correlate::{LAGS, correlate};
use super::line::repeat;
use super::repeated::{Repeated, TOGETHER};
use super::{LpcRows, add_product, all_pole_step, energy, gather, inverse, scatter, sub_product};
use crate::bits::{Choice, Frame};
use crate::codebook::{AUGMENTED, EXTRA_MEMORY, GAIN_SCALE_MIN, MEMORY, half_size};
use crate::tables::{EXPANSION_FILTER, GAINS_3, GAINS_4, GAINS_5};
use crate::{ORDER, STAGES, SUB_BLOCK, Shape};

/// Which of a frame's blocks is searched for, in the order they are coded, and how far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    /// 0 for the extra block, `n` for the `n`-th sub-block.
    number: usize,
    /// Samples of the memory that the codebook is made of.
    pub memory: usize,
    /// Samples of the block.
    pub block: usize,
    /// Lags searched at each stage.
    ranges: [usize; STAGES],
}

impl Task {
    #[inline(always)]
    pub(super) fn new(shape: &Shape, number: usize) -> Self {
        let (memory, block, ranges) = match number {
            0 => (EXTRA_MEMORY, shape.extra, SEARCH_EXTRA),
            1 => (MEMORY, SUB_BLOCK, SEARCH_FIRST),
            _ => (MEMORY, SUB_BLOCK, SEARCH_LATER),
        };
        Self { number, memory, block, ranges }
    }

    /// Vectors of each half of the codebook that are cut at a lag.
    #[inline(always)]
    pub(super) fn plain(&self) -> usize {
        self.memory - self.block + 1
    }

    /// Vectors of each half.
    #[inline(always)]
    fn half(&self) -> usize {
        half_size(self.memory, self.block)
    }

    /// Whether there are vectors of lags shorter than the block.
    #[inline(always)]
    fn repeats(&self) -> bool {
        self.number > 0
    }

    /// Whether a vector is of the expanded half, and its position in the half.
    #[inline(always)]
    pub(super) fn place(&self, index: u8) -> (bool, usize) {
        let (index, half) = (usize::from(index), self.half());
        if index < half { (false, index) } else { (true, index - half) }
    }

    /// What a frame says of this block.
    #[inline(always)]
    pub(super) fn choice<'a>(&self, frame: &'a Frame) -> &'a Choice {
        if self.number == 0 { &frame.extra } else { &frame.coded[self.number - 1] }
    }

    #[inline(always)]
    fn choice_mut<'a>(&self, frame: &'a mut Frame) -> &'a mut Choice {
        if self.number == 0 { &mut frame.extra } else { &mut frame.coded[self.number - 1] }
    }
}

/// Lags of the window, up to whole blocks of the correlation.
const WINDOW_LAGS: usize = WINDOW.next_multiple_of(LAGS);
/// Lags of a half of the codebook.
const RANGE_MAX: usize = MEMORY - SUB_BLOCK + 1;
/// Rows by which the expansion filter looks ahead.
const AHEAD: usize = 4;
/// Before a stream's weighted memory: room for lags beyond the last that are correlated and not looked at.
const FRONT: usize = 16;
/// Behind it: room for whole blocks.
const BACK: usize = SUB_BLOCK - AUGMENTED;
/// A stream's weighted memory, or that expanded; a shorter memory lies at its end.
type Padded = [f32; FRONT + MEMORY + BACK];
/// The first sample behind the memory.
const END: usize = FRONT + MEMORY;

/// What the search of a block works on, kept from block to block.
///
/// Every memory lies at the end of its room, and no block's is shorter than that of the block before: what is in front of it
/// has never been written, and is the silence that a codebook begins with.
pub(super) struct Book<L: Lanes, const W: usize> {
    /// The past of the weighting filter, which is silence, then memory and target through the filter.
    weighted: [L::F32; ORDER + MEMORY + SUB_BLOCK],
    /// The weighted memory through the expansion filter, [`AHEAD`] rows late.
    expanded: [L::F32; AHEAD + MEMORY],
    /// The weighted memory and its expansion of each stream.
    halves: [[Padded; W]; 2],
    low_inverse: [L::F32; RANGE_MAX],
    high_inverse: [L::F32; RANGE_MAX],
    high_inverses: [[f32; RANGE_MAX + WINDOW_LAGS]; W],
    low_repeated: Repeated<L>,
    high_repeated: Repeated<L>,
    /// What the stages found together.
    found: [L::F32; SUB_BLOCK],
    window: [L::F32; SUB_BLOCK + WINDOW_LAGS - 1],
    window_inverse: [L::F32; WINDOW_LAGS],
    inverses: [[f32; WINDOW_LAGS]; W],
    vector: [L::F32; SUB_BLOCK],
    repeated: [[f32; 2 * SUB_BLOCK]; W],
}

impl<L: Lanes, const W: usize> Book<L, W> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let zero = L::F32::splat(0.0);
        Self {
            weighted: [zero; ORDER + MEMORY + SUB_BLOCK],
            expanded: [zero; AHEAD + MEMORY],
            halves: [[[0.0; FRONT + MEMORY + BACK]; W]; 2],
            low_inverse: [zero; RANGE_MAX],
            high_inverse: [zero; RANGE_MAX],
            high_inverses: [[0.0; RANGE_MAX + WINDOW_LAGS]; W],
            low_repeated: Repeated::new(),
            high_repeated: Repeated::new(),
            found: [zero; SUB_BLOCK],
            window: [zero; SUB_BLOCK + WINDOW_LAGS - 1],
            window_inverse: [zero; WINDOW_LAGS],
            inverses: [[0.0; WINDOW_LAGS]; W],
            vector: [zero; SUB_BLOCK],
            repeated: [[0.0; 2 * SUB_BLOCK]; W],
        }
    }

    /// Chooses vectors and gains for the block `wanted`, from the decoded rows `memory`.
    #[inline(always)]
    pub(super) fn search<const FAST: bool>(
        &mut self,
        task: &Task,
        memory: &[L::F32],
        wanted: &[L::F32],
        filter: &LpcRows<L::F32>,
        frames: &mut [Frame; W],
    ) {
        let zero = L::F32::splat(0.0);
        self.prepare::<FAST>(task, memory, wanted, filter);
        let target_energy = energy::<L, FAST>(&self.weighted[ORDER + MEMORY..][..task.block]);
        self.found[..task.block].fill(zero);
        let mut before = L::F32::splat(1.0);
        let mut first = (L::I32::splat(0), zero);
        for stage in 0..STAGES {
            let mut best = Best::<L>::new(stage == 0);
            self.search_low::<FAST>(task, stage, memory.len(), &mut best);
            self.search_high::<FAST>(task, stage, &mut best);
            let (index, gain) = quantise_gain::<L>(stage, best.gain, before);
            for lane in 0..W {
                let choice = task.choice_mut(&mut frames[lane]);
                choice.index[stage] = best.index.lane(lane) as u8;
                choice.gain[stage] = index.lane(lane) as u8;
            }
            self.take_away::<FAST>(task, best.index, gain);
            if stage == 0 {
                first = (index, gain);
            }
            before = gain.abs();
        }
        let found_energy = energy::<L, FAST>(&self.found[..task.block]);
        let index = match_energy::<L>(first.0, first.1, found_energy, target_energy);
        for lane in 0..W {
            task.choice_mut(&mut frames[lane]).gain[0] = index.lane(lane) as u8;
        }
    }

    /// Makes the codebook, and the target of what is wanted.
    #[inline(always)]
    fn prepare<const FAST: bool>(
        &mut self,
        task: &Task,
        memory: &[L::F32],
        wanted: &[L::F32],
        filter: &LpcRows<L::F32>,
    ) {
        weight::<L, FAST>(memory, wanted, filter, &mut self.weighted, &mut self.expanded);
        let low = &self.weighted[ORDER..][..MEMORY];
        let high = &self.expanded[AHEAD..];
        let known = memory.len();
        let [lows, highs] = &mut self.halves;
        scatter::<L, W, _>(&low[MEMORY - known..], lows, END - known);
        // The expansion begins before what it is of.
        let spread = (known + AHEAD).min(task.memory);
        scatter::<L, W, _>(&high[MEMORY - spread..], highs, END - spread);

        let range = task.ranges[0];
        let (low_inverse, high_inverse) = (&mut self.low_inverse[..range], &mut self.high_inverse[..range]);
        inverse_energies::<L, FAST>(low, high, task.block, low_inverse, high_inverse);
        scatter::<L, W, _>(high_inverse, &mut self.high_inverses, 0);
        if task.repeats() {
            self.low_repeated.fade(low);
            self.high_repeated.fade(high);
            self.low_repeated.measure_all::<FAST>(low);
        }
    }

    /// Searches the half that is not expanded, of whose rows `known` are not silence.
    #[inline(always)]
    fn search_low<const FAST: bool>(&self, task: &Task, stage: usize, known: usize, best: &mut Best<L>) {
        let (past, target) = self.weighted.split_at(ORDER + MEMORY);
        let target = &target[..task.block];
        let range = task.ranges[stage];
        for lag in (0..range).step_by(LAGS) {
            // Silence, with which vectors of great lags begin, adds nothing.
            let silent = (lag + task.block).saturating_sub(known).min(task.block);
            let rows = &past[past.len() - task.block + 1 - lag - LAGS + silent..];
            let cross = correlate::<L, FAST>(&target[silent..], rows);
            for k in 0..LAGS {
                if lag + k < range {
                    best.offer(L::I32::splat((lag + k) as i32), cross[k], self.low_inverse[lag + k]);
                }
            }
        }
        if task.repeats() {
            for lag in (AUGMENTED..SUB_BLOCK).step_by(TOGETHER) {
                let cross = self.low_repeated.correlate::<FAST>(past, target, lag);
                for k in 0..TOGETHER {
                    let index = L::I32::splat((task.half() - SUB_BLOCK + lag + k) as i32);
                    best.offer(index, cross[k], self.low_repeated.inverse[lag - AUGMENTED + k]);
                }
            }
        }
    }

    /// Searches the expanded half around the best of the other, which lies elsewhere in each stream.
    #[inline(always)]
    fn search_high<const FAST: bool>(&mut self, task: &Task, stage: usize, best: &mut Best<L>) {
        let (block, half) = (task.block, task.half());
        let highs = &self.halves[1];
        let mut windows: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
        let mut first = L::I32::splat(0);
        let mut firsts = L::I32::splat(SUB_BLOCK as i32);
        let mut first_repeated = SUB_BLOCK;
        for lane in 0..W {
            let index = best.index.lane(lane) as usize;
            let around = Window::around(index, task.ranges[stage], task.plain(), task.repeats());
            let (low, count) = (around.lags.start, around.lags.len());
            windows[lane] = &highs[lane][END + 1 - block - low - WINDOW_LAGS..][..block + WINDOW_LAGS - 1];
            let inverses = &mut self.inverses[lane];
            inverses.copy_from_slice(&self.high_inverses[lane][low..][..WINDOW_LAGS]);
            if count < WINDOW {
                // No number is better than another.
                inverses[count..].fill(f32::NAN);
            }
            first.set_lane(lane, low as i32);
            firsts.set_lane(lane, around.repeated.start as i32);
            first_repeated = first_repeated.min(around.repeated.start);
        }
        let rows = &mut self.window[..block + WINDOW_LAGS - 1];
        L::F32::gather(&windows[..L::N], rows);
        gather::<L, W, _>(&self.inverses, &mut self.window_inverse);
        let target = &self.weighted[ORDER + MEMORY..][..block];
        let first = first + L::I32::splat(half as i32);
        for lag in (0..WINDOW_LAGS).step_by(LAGS) {
            let cross = correlate::<L, FAST>(target, &rows[WINDOW_LAGS - lag - LAGS..]);
            for k in 0..LAGS {
                if lag + k < WINDOW {
                    let index = first + L::I32::splat((lag + k) as i32);
                    best.offer(index, cross[k], self.window_inverse[lag + k]);
                }
            }
        }
        if first_repeated == SUB_BLOCK {
            return;
        }
        let first_repeated = first_repeated - first_repeated % TOGETHER;
        let inverses = self.high_repeated.measure::<FAST>(&self.expanded, firsts, first_repeated);
        for lag in (first_repeated..SUB_BLOCK).step_by(TOGETHER) {
            let cross = self.high_repeated.correlate::<FAST>(&self.expanded, target, lag);
            for k in 0..TOGETHER {
                let index = L::I32::splat((2 * half - SUB_BLOCK + lag + k) as i32);
                best.offer(index, cross[k], inverses[lag - AUGMENTED + k]);
            }
        }
    }

    /// Takes the chosen vectors away from the target.
    #[inline(always)]
    fn take_away<const FAST: bool>(&mut self, task: &Task, index: L::I32, gain: L::F32) {
        let block = task.block;
        let [lows, highs] = &self.halves;
        let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
        for (lane, (slice, repeated)) in slices.iter_mut().zip(&mut self.repeated).enumerate() {
            let (expanded, position) = task.place(index.lane(lane) as u8);
            let section = if expanded { &highs[lane] } else { &lows[lane] };
            *slice = if position < task.plain() {
                &section[END - block - position..][..block]
            } else {
                let lag = position - task.plain() + AUGMENTED;
                repeat(&section[END - 2 * lag..], lag, repeated);
                &repeated[..block]
            };
        }
        let vector = &mut self.vector[..block];
        L::F32::gather(&slices[..L::N], vector);
        let target = &mut self.weighted[ORDER + MEMORY..][..block];
        for n in 0..block {
            self.found[n] = add_product::<L, FAST>(self.found[n], gain, vector[n]);
            target[n] = sub_product::<L, FAST>(target[n], gain, vector[n]);
        }
    }
}

/// Memory and target through the weighting filter, and the weighted memory through the expansion filter.
#[inline(always)]
fn weight<L: Lanes, const FAST: bool>(
    memory: &[L::F32],
    wanted: &[L::F32],
    filter: &LpcRows<L::F32>,
    weighted: &mut [L::F32; ORDER + MEMORY + SUB_BLOCK],
    expanded: &mut [L::F32; AHEAD + MEMORY],
) {
    let mut newest = L::F32::splat(0.0);
    for (n, &sample) in (MEMORY - memory.len()..).zip(memory) {
        let Some(older) = weighted[n..].first_chunk() else { return };
        newest = all_pole_step::<L, FAST>(older, newest, filter, sample);
        weighted[ORDER + n] = newest;
        // This fills the time that the filter above waits.
        let mut sum = L::F32::splat(0.0);
        for tap in 0..EXPANSION_FILTER.len() {
            let row = if tap < 7 { weighted[ORDER - 7 + n + tap] } else { newest };
            sum = add_product::<L, FAST>(sum, row, L::F32::splat(EXPANSION_FILTER[tap]));
        }
        expanded[n] = sum;
    }
    // Zeros beyond the end add nothing.
    for at in MEMORY..MEMORY + AHEAD {
        let mut sum = L::F32::splat(0.0);
        for tap in 0..EXPANSION_FILTER.len() {
            if at + tap < MEMORY + 7 {
                let row = weighted[ORDER - 7 + at + tap];
                sum = add_product::<L, FAST>(sum, row, L::F32::splat(EXPANSION_FILTER[tap]));
            }
        }
        expanded[at] = sum;
    }
    for (n, &sample) in (MEMORY..).zip(wanted) {
        let Some(older) = weighted[n..].first_chunk() else { return };
        newest = all_pole_step::<L, FAST>(older, newest, filter, sample);
        weighted[ORDER + n] = newest;
    }
}

/// Inverse energies of the vectors of each lag, in both halves of the codebook.
#[inline(always)]
fn inverse_energies<L: Lanes, const FAST: bool>(
    low: &[L::F32],
    high: &[L::F32],
    block: usize,
    low_inverse: &mut [L::F32],
    high_inverse: &mut [L::F32],
) {
    let m = low.len();
    let mut low_sum = energy::<L, FAST>(&low[m - block..]);
    let mut high_sum = energy::<L, FAST>(&high[m - block..]);
    let range = low_inverse.len().min(high_inverse.len());
    for lag in 0..range {
        if lag > 0 {
            let (enters, leaves) = (m - block - lag, m - lag);
            low_sum = low_sum + low[enters] * low[enters] - low[leaves] * low[leaves];
            high_sum = high_sum + high[enters] * high[enters] - high[leaves] * high[leaves];
        }
        low_inverse[lag] = inverse::<L>(low_sum);
        high_inverse[lag] = inverse::<L>(high_sum);
    }
}

/// Each stream's best vector of a stage so far.
struct Best<L: Lanes> {
    first_stage: bool,
    index: L::I32,
    measure: L::F32,
    gain: L::F32,
}

impl<L: Lanes> Best<L> {
    #[inline(always)]
    fn new(first_stage: bool) -> Self {
        Self {
            first_stage,
            index: L::I32::splat(0),
            measure: L::F32::splat(MEASURE_MIN),
            gain: L::F32::splat(0.0),
        }
    }

    #[inline(always)]
    fn offer(&mut self, index: L::I32, cross: L::F32, inverse: L::F32) {
        let gain = cross * inverse;
        let mut valid = gain.abs().lt(L::F32::splat(GAIN_MAX));
        if self.first_stage {
            valid = valid & cross.gt(L::F32::splat(0.0));
        }
        // Only a maximum, which is quick, waits for the offer before.
        let measure = L::F32::select(valid, cross * cross * inverse, L::F32::splat(MEASURE_MIN));
        let better = measure.gt(self.measure);
        self.measure = measure.max(self.measure);
        self.index = L::I32::select(better, index, self.index);
        self.gain = L::F32::select(better, gain, self.gain);
    }
}

/// Index and value of the nearest gain, relative to that of the stage before.
#[inline(always)]
fn quantise_gain<L: Lanes>(stage: usize, gain: L::F32, before: L::F32) -> (L::I32, L::F32) {
    // The smallest scale only where the gain before is below it: `max` keeps the first of equals.
    let scale = before.max(L::F32::splat(GAIN_SCALE_MIN));
    let (gain, table) = match stage {
        0 => (gain.clamp(L::F32::splat(0.0), L::F32::splat(GAIN_MAX)), &GAINS_5[..]),
        1 => (gain, &GAINS_4[..]),
        _ => (gain, &GAINS_3[..]),
    };
    let (mut best, mut least) = (L::I32::splat(0), L::F32::splat(-MEASURE_MIN));
    let mut value = scale * L::F32::splat(table[0]);
    for index in 0..table.len() {
        let level = scale * L::F32::splat(table[index]);
        let error = gain - level;
        let error = error * error;
        let nearer = error.lt(least);
        best = L::I32::select(nearer, L::I32::splat(index as i32), best);
        least = L::F32::select(nearer, error, least);
        value = L::F32::select(nearer, level, value);
    }
    (best, value)
}

/// Raises the first gain so that what was found has the energy of what was wanted, at most twofold.
#[inline(always)]
fn match_energy<L: Lanes>(index: L::I32, gain: L::F32, found: L::F32, wanted: L::F32) -> L::I32 {
    let mut best = index;
    // The level of the best so far: that of the first is the gain itself, whose scale is 1.
    let mut level_now = gain;
    let wanted = wanted * gain * gain;
    let twice = gain + gain;
    for candidate in 0..GAINS_5.len() {
        let level = L::F32::splat(GAINS_5[candidate]);
        let candidate = L::I32::splat(candidate as i32);
        let raised = candidate.ge(index) & (found * level * level).lt(wanted) & level_now.lt(twice);
        best = L::I32::select(raised, candidate, best);
        level_now = L::F32::select(raised, level, level_now);
    }
    best
}
