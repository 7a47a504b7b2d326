//! The codebook search of a group (RFC 3951 section 3.6), and what each stream decodes from it.

use lanes::{LANES_MAX, Lanes, Number, Vector};

use super::super::search::{
    ENERGY_BIAS, GAIN_MAX, MEASURE_MIN, SEARCH_EXTRA, SEARCH_FIRST, SEARCH_LATER, WINDOW, Window,
};
use super::correlate::{LAGS, correlate};
use super::timeline::{Spot, Timelines};
use super::{LpcRows, add_product, all_pole_step, energy, gather, scatter, sub_product};
use crate::bits::{Choice, Frame};
use crate::codebook::{AUGMENTED, EXTRA_MEMORY, FADE, GAIN_SCALE_MIN, MEMORY, dequantise_gain, half_size};
use crate::tables::{EXPANSION_FILTER, GAINS_3, GAINS_4, GAINS_5};
use crate::{ORDER, STAGES, SUB_BLOCK, Shape};

/// Before a stream's weighted memory: room for lags beyond the last that are correlated and not looked at.
const FRONT: usize = 16;
/// Behind it: room for whole blocks.
const BACK: usize = SUB_BLOCK - AUGMENTED;
/// A stream's weighted memory, or that expanded; a shorter memory lies at its end.
type Padded = [f32; FRONT + MEMORY + BACK];
/// The first sample behind the memory.
const END: usize = FRONT + MEMORY;

/// Lags of the window, up to whole blocks of the correlation.
const WINDOW_LAGS: usize = WINDOW.next_multiple_of(LAGS);
/// Lags of a half of the codebook.
const RANGE_MAX: usize = MEMORY - SUB_BLOCK + 1;
/// Samples over which a repeated vector fades and differs from its first part.
const FADED: usize = FADE - 1;

/// What the search of a block works on, kept from block to block for its room.
pub(super) struct Book<L: Lanes, const W: usize> {
    memory: [L::F32; MEMORY],
    target: [L::F32; SUB_BLOCK],
    /// Memory and target through the weighting filter, behind its past, which is silence.
    weighted: [L::F32; ORDER + MEMORY + SUB_BLOCK],
    /// The weighted memory through the expansion filter.
    expanded: [L::F32; MEMORY],
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
            memory: [zero; MEMORY],
            target: [zero; SUB_BLOCK],
            weighted: [zero; ORDER + MEMORY + SUB_BLOCK],
            expanded: [zero; MEMORY],
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

    /// Chooses vectors and gains for block `number`: the extra block, then the sub-blocks.
    #[inline(always)]
    pub(super) fn search<const FAST: bool>(
        &mut self,
        shape: &Shape,
        number: usize,
        lines: &Timelines<W>,
        spots: &[Spot; W],
        filter: &LpcRows<L::F32>,
        frames: &mut [Frame; W],
    ) {
        let zero = L::F32::splat(0.0);
        let (m, block, ranges) = match number {
            0 => (EXTRA_MEMORY, shape.extra, SEARCH_EXTRA),
            1 => (MEMORY, SUB_BLOCK, SEARCH_FIRST),
            _ => (MEMORY, SUB_BLOCK, SEARCH_LATER),
        };
        let repeats = number > 0;
        let (plain, half) = (m - block + 1, half_size(m, block));

        let mut memories: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
        let mut targets: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
        for lane in 0..W {
            memories[lane] = lines.memory(lane, spots[lane], m);
            targets[lane] = lines.wanted(lane, spots[lane], block);
        }
        L::F32::gather(&memories[..L::N], &mut self.memory[..m]);
        L::F32::gather(&targets[..L::N], &mut self.target[..block]);
        weight::<L, FAST>(
            &self.memory[..m],
            &self.target[..block],
            filter,
            &mut self.weighted,
            &mut self.expanded,
        );
        let (past, target) = self.weighted[ORDER..].split_at_mut(m);
        let target = &mut target[..block];
        let expanded = &self.expanded[..m];
        let [lows, highs] = &mut self.halves;
        scatter::<L, W, _>(past, lows, END - m);
        scatter::<L, W, _>(expanded, highs, END - m);
        let (low_inverse, high_inverse) =
            (&mut self.low_inverse[..ranges[0]], &mut self.high_inverse[..ranges[0]]);
        inverse_energies::<L, FAST>(past, expanded, block, low_inverse, high_inverse);
        scatter::<L, W, _>(high_inverse, &mut self.high_inverses, 0);
        let (low_repeated, high_repeated) = (&mut self.low_repeated, &mut self.high_repeated);
        if repeats {
            low_repeated.fade(past);
            high_repeated.fade(expanded);
            low_repeated.measure_all::<FAST>(past);
        }

        let target_energy = energy::<L, FAST>(target);
        let found = &mut self.found[..block];
        found.fill(zero);
        let mut before = L::F32::splat(1.0);
        let mut first_gain = zero;
        let mut first_index = L::I32::splat(0);
        for stage in 0..STAGES {
            let range = ranges[stage];
            let mut best = Best::<L>::new(stage == 0);
            for lag in (0..range).step_by(LAGS) {
                let rows = &past[m - block + 1 - lag - LAGS..m - 1 - lag + 1];
                let cross = correlate::<L, FAST>(target, rows);
                for k in 0..LAGS {
                    if lag + k < range {
                        best.offer(L::I32::splat((lag + k) as i32), cross[k], low_inverse[lag + k]);
                    }
                }
            }
            if repeats {
                for lag in AUGMENTED..SUB_BLOCK {
                    let cross = low_repeated.correlate::<FAST>(past, target, lag);
                    let index = L::I32::splat((half - SUB_BLOCK + lag) as i32);
                    best.offer(index, cross, low_repeated.inverse[lag - AUGMENTED]);
                }
            }

            // The window lies elsewhere in each stream.
            let mut windows: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
            let mut first = L::I32::splat(0);
            let mut firsts = L::I32::splat(SUB_BLOCK as i32);
            let mut first_repeated = SUB_BLOCK;
            for lane in 0..W {
                let around = Window::around(best.index.lane(lane) as usize, range, plain, repeats);
                let (low, count) = (around.lags.start, around.lags.len());
                windows[lane] =
                    &highs[lane][END + 1 - block - low - WINDOW_LAGS..][..block + WINDOW_LAGS - 1];
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
            let first = first + L::I32::splat(half as i32);
            for lag in (0..WINDOW_LAGS).step_by(LAGS) {
                let cross =
                    correlate::<L, FAST>(target, &rows[WINDOW_LAGS - lag - LAGS..][..block + LAGS - 1]);
                for k in 0..LAGS {
                    if lag + k < WINDOW {
                        best.offer(
                            first + L::I32::splat((lag + k) as i32),
                            cross[k],
                            self.window_inverse[lag + k],
                        );
                    }
                }
            }
            if first_repeated < SUB_BLOCK {
                // Streams whose window has none of these lags see no number for the energy, and take none.
                let mut running = zero;
                for lag in (FADE..SUB_BLOCK).rev() {
                    let row = expanded[m - lag];
                    let inside = firsts.gt(L::I32::splat(lag as i32));
                    running = L::F32::select(inside, add_product::<L, FAST>(running, row, row), running);
                }
                for lag in first_repeated..SUB_BLOCK {
                    let cross = high_repeated.correlate::<FAST>(expanded, target, lag);
                    let inside = firsts.le(L::I32::splat(lag as i32));
                    let row = expanded[m - lag];
                    running = L::F32::select(inside, add_product::<L, FAST>(running, row, row), running);
                    let inverse = inverse::<L>(high_repeated.rest::<FAST>(expanded, lag, running));
                    let inverse = L::F32::select(inside, inverse, L::F32::splat(f32::NAN));
                    best.offer(L::I32::splat((2 * half - SUB_BLOCK + lag) as i32), cross, inverse);
                }
            }

            let (gain_index, gain) = quantise_gain::<L>(stage, best.gain, before);
            let mut slices: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
            for (lane, (slice, repeated)) in slices.iter_mut().zip(&mut self.repeated).enumerate() {
                let index = best.index.lane(lane) as usize;
                let choice = chosen(&mut frames[lane], number);
                choice.index[stage] = index as u8;
                choice.gain[stage] = gain_index.lane(lane) as u8;
                let (section, position) =
                    if index < half { (&lows[lane], index) } else { (&highs[lane], index - half) };
                *slice = if position < plain {
                    &section[END - block - position..][..block]
                } else {
                    let lag = position - plain + AUGMENTED;
                    repeat(&section[END - 2 * lag..], lag, repeated);
                    &repeated[..block]
                };
            }
            let vector = &mut self.vector[..block];
            L::F32::gather(&slices[..L::N], vector);
            for n in 0..block {
                found[n] = add_product::<L, FAST>(found[n], gain, vector[n]);
                target[n] = sub_product::<L, FAST>(target[n], gain, vector[n]);
            }
            if stage == 0 {
                (first_gain, first_index) = (gain, gain_index);
            }
            before = gain.abs();
        }
        let index = match_energy::<L>(first_index, first_gain, energy::<L, FAST>(found), target_energy);
        for lane in 0..W {
            let choice =
                if number == 0 { &mut frames[lane].extra } else { &mut frames[lane].coded[number - 1] };
            choice.gain[0] = L::I32::flat(std::slice::from_ref(&index))[lane] as u8;
        }
    }

    /// Decodes what one stream chose for block `number`, as the receiver will.
    #[inline(always)]
    pub(super) fn decode(
        &self,
        shape: &Shape,
        number: usize,
        lane: usize,
        frame: &Frame,
        spot: Spot,
        lines: &mut Timelines<W>,
    ) {
        let (m, block, choice) = match number {
            0 => (EXTRA_MEMORY, shape.extra, &frame.extra),
            _ => (MEMORY, SUB_BLOCK, &frame.coded[number - 1]),
        };
        let (plain, half) = (m - block + 1, half_size(m, block));
        // Room for whole vectors.
        const ROOM: usize = 2 * SUB_BLOCK + LANES_MAX;
        let mut sum = [0.0; SUB_BLOCK + LANES_MAX];
        let mut gain = 1.0;
        for stage in 0..STAGES {
            gain = dequantise_gain(stage, choice.gain[stage], gain);
            let index = usize::from(choice.index[stage]);
            let (filtered, position) = if index < half { (false, index) } else { (true, index - half) };
            let (mut section, mut repeated) = ([0.0; ROOM], [0.0; ROOM]);
            // The vector's samples, or those that are repeated.
            let lag = (position + AUGMENTED).checked_sub(plain).filter(|&lag| lag >= AUGMENTED);
            let (before, span) = match lag {
                Some(lag) => (2 * lag, 2 * SUB_BLOCK),
                None => (block + position, SUB_BLOCK),
            };
            let mut samples = lines.around(lane, spot, before);
            if filtered {
                let mut source = lines.around(lane, spot, before + 3);
                // The memory begins with silence, whatever was decoded before it.
                let beyond = (before + 3).saturating_sub(m);
                let mut edge = [0.0; ROOM];
                if beyond > 0 {
                    edge[beyond..].copy_from_slice(&source[beyond..ROOM]);
                    source = &edge;
                }
                for at in (0..span).step_by(L::N) {
                    let mut sum = L::F32::splat(0.0);
                    for tap in 0..EXPANSION_FILTER.len() {
                        sum += L::F32::load(&source[at + tap..]) * L::F32::splat(EXPANSION_FILTER[tap]);
                    }
                    sum.store(&mut section[at..]);
                }
                samples = &section;
            }
            if let (Some(lag), Some(repeated)) = (lag, repeated.first_chunk_mut()) {
                repeat(samples, lag, repeated);
            }
            let vector = if lag.is_some() { &repeated } else { samples };
            for at in (0..SUB_BLOCK).step_by(L::N) {
                let scaled = L::F32::splat(gain) * L::F32::load(&vector[at..]);
                (L::F32::load(&sum[at..]) + scaled).store(&mut sum[at..]);
            }
        }
        lines.keep(shape, lane, spot, &sum[..block]);
    }
}

/// What a frame says of block `number`: the extra block, or a sub-block.
#[inline(always)]
fn chosen(frame: &mut Frame, number: usize) -> &mut Choice {
    if number == 0 { &mut frame.extra } else { &mut frame.coded[number - 1] }
}

/// The last `lag` of the first `2 * lag` samples twice, with a cross-fade; behind [`SUB_BLOCK`] samples it is unspecified.
///
/// Equals [`crate::codebook::augment`]; copies of a fixed length need no call.
#[inline(always)]
fn repeat(samples: &[f32], lag: usize, out: &mut [f32; 2 * SUB_BLOCK]) {
    let (early, late) = (&samples[..lag], &samples[lag..][..SUB_BLOCK]);
    out[..SUB_BLOCK].copy_from_slice(late);
    out[lag..][..SUB_BLOCK].copy_from_slice(late);
    let mut share = 0.0;
    for j in lag - FADE..lag {
        out[j] = (1.0 - share) * late[j] + share * early[j];
        share += 0.2;
    }
}

/// Memory and target through the weighting filter, and the weighted memory through the expansion filter.
///
/// `weighted` begins with the filter's past, which is silence.
#[inline(always)]
fn weight<L: Lanes, const FAST: bool>(
    memory: &[L::F32],
    target: &[L::F32],
    filter: &LpcRows<L::F32>,
    weighted: &mut [L::F32; ORDER + MEMORY + SUB_BLOCK],
    expanded: &mut [L::F32; MEMORY],
) {
    let m = memory.len();
    for n in 0..m + target.len() {
        let input = if n < m { memory[n] } else { target[n - m] };
        let (past, now) = weighted.split_at_mut(ORDER + n);
        let (Some(past), [now, ..]) = (past.last_chunk(), now) else { return };
        *now = all_pole_step::<L, FAST>(past, filter, input);
        // The expansion filter needs four samples more; it fills the time that the filter above waits.
        if (7..m).contains(&n) {
            let mut sum = L::F32::splat(0.0);
            for tap in 0..EXPANSION_FILTER.len() {
                let coefficient = EXPANSION_FILTER[tap];
                let row = if tap < 7 { past[ORDER - 7 + tap] } else { *now };
                sum = add_product::<L, FAST>(sum, row, L::F32::splat(coefficient));
            }
            expanded[n - 4] = sum;
        }
    }
    // At both ends there are zeros beyond the memory, which add nothing.
    for at in (0..3).chain(m - 4..m) {
        let mut sum = L::F32::splat(0.0);
        for (tap, &coefficient) in EXPANSION_FILTER.iter().enumerate() {
            if (3..m + 3).contains(&(at + tap)) {
                let row = weighted[ORDER + at + tap - 3];
                sum = add_product::<L, FAST>(sum, row, L::F32::splat(coefficient));
            }
        }
        expanded[at] = sum;
    }
}

#[inline(always)]
fn inverse<L: Lanes>(energy: L::F32) -> L::F32 {
    let inverse = L::F32::splat(1.0) / (energy + L::F32::splat(ENERGY_BIAS));
    L::F32::select(energy.gt(L::F32::splat(0.0)), inverse, L::F32::splat(0.0))
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

/// The vectors of lags shorter than the block: the lag's samples twice, with a cross-fade.
struct Repeated<L: Lanes> {
    /// The samples of each lag that are faded.
    faded: [[L::F32; FADED]; AUGMENTED],
    inverse: [L::F32; AUGMENTED],
}

impl<L: Lanes> Repeated<L> {
    #[inline(always)]
    fn new() -> Self {
        let zero = L::F32::splat(0.0);
        Self { faded: [[zero; FADED]; AUGMENTED], inverse: [zero; AUGMENTED] }
    }

    #[inline(always)]
    fn fade(&mut self, rows: &[L::F32]) {
        let end = rows.len();
        let mut share = 0.2f32;
        for n in 0..FADED {
            let late = L::F32::splat(1.0 - share) * rows[end - FADED + n];
            for k in 0..AUGMENTED {
                let early = rows[end - AUGMENTED - k - FADED + n];
                self.faded[k][n] = late + L::F32::splat(share) * early;
            }
            share += 0.2;
        }
    }

    /// Adds the energy of what follows the first part of a vector.
    #[inline(always)]
    fn rest<const FAST: bool>(&self, rows: &[L::F32], lag: usize, mut sum: L::F32) -> L::F32 {
        let faded = &self.faded[lag - AUGMENTED];
        for n in 0..FADED {
            sum = add_product::<L, FAST>(sum, faded[n], faded[n]);
        }
        let again = &rows[rows.len() - lag..][..SUB_BLOCK - lag];
        for n in 0..again.len() {
            sum = add_product::<L, FAST>(sum, again[n], again[n]);
        }
        sum
    }

    /// Inverse energies of all lags.
    #[inline(always)]
    fn measure_all<const FAST: bool>(&mut self, rows: &[L::F32]) {
        let end = rows.len();
        let mut running = energy::<L, FAST>(&rows[end - AUGMENTED + 1..][..AUGMENTED - FADE]);
        for lag in AUGMENTED..SUB_BLOCK {
            let row = rows[end - lag];
            running = add_product::<L, FAST>(running, row, row);
            self.inverse[lag - AUGMENTED] = inverse::<L>(self.rest::<FAST>(rows, lag, running));
        }
    }

    #[inline(always)]
    fn correlate<const FAST: bool>(&self, rows: &[L::F32], target: &[L::F32], lag: usize) -> L::F32 {
        let first = &rows[rows.len() - lag..];
        let faded = &self.faded[lag - AUGMENTED];
        let target = &target[..SUB_BLOCK];
        let mut sum = L::F32::splat(0.0);
        for n in 0..lag - FADED {
            sum = add_product::<L, FAST>(sum, target[n], first[n]);
        }
        for n in 0..FADED {
            sum = add_product::<L, FAST>(sum, target[lag - FADED + n], faded[n]);
        }
        for n in 0..SUB_BLOCK - lag {
            sum = add_product::<L, FAST>(sum, target[lag + n], first[n]);
        }
        sum
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
        let measure = cross * cross * inverse;
        let gain = cross * inverse;
        let mut better = measure.gt(self.measure) & gain.abs().lt(L::F32::splat(GAIN_MAX));
        if self.first_stage {
            better = better & cross.gt(L::F32::splat(0.0));
        }
        self.index = L::I32::select(better, index, self.index);
        self.measure = L::F32::select(better, measure, self.measure);
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

const _: () = assert!(FRONT >= WINDOW_LAGS - WINDOW);
