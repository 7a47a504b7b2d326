//! The encoder for one stream, as RFC 3951 section 3 tells it.

use super::search::{SEARCH_EXTRA, SEARCH_FIRST, SEARCH_LATER};
use super::{LOOK_BACK, SEEN, State, WINDOW, coding_order};
use crate::bits::{Choice, Frame};
use crate::codebook::{self, EXTRA_MEMORY, MEMORY};
use crate::filters::{all_pole, all_pole_step, all_zero};
use crate::lsf::{self, CHIRP_SYNTHESIS, CHIRP_WEIGHTING};
use crate::start::{self, STATE_RANGE};
use crate::tables::{
    HP_IN_POLES, HP_IN_ZEROS, LAG_WINDOW, LPC_ASYMMETRIC_WINDOW, LPC_WINDOW, SCALE_AMPLITUDES,
    SCALE_THRESHOLDS, STATE_LEVELS,
};
use crate::{Lpc, Lsf, ORDER, SAMPLES_MAX, STAGES, STATE_BLOCK, STATE_MAX, SUB_BLOCK, SUB_BLOCKS_MAX, Shape};

/// Signal energy below which a prediction filter makes no sense: the smallest step of an `f64` above 1.
pub(crate) const ENERGY_MIN: f32 = 2.220_446e-16;

/// Filters of each sub-block.
#[derive(Default)]
struct Filters {
    synthesis: [Lpc; SUB_BLOCKS_MAX],
    weighting: [Lpc; SUB_BLOCKS_MAX],
}

/// How a block's codebook vectors are searched: from the memory, the block, its weighting filter and the lags of each stage.
pub(super) type Search<'a> = &'a dyn Fn(&[f32], &[f32], &Lpc, [usize; STAGES]) -> Choice;

/// Codes a frame of the shape's length.
pub(super) fn encode(state: &mut State, shape: &Shape, pcm: &[i16], search: Search<'_>) -> Frame {
    let mut frame = Frame::default();
    let mut seen = [0.0; SEEN];
    let kept = SEEN - shape.samples;
    seen[..kept].copy_from_slice(&state.history[..kept]);
    for (sample, &pcm) in seen[kept..].iter_mut().zip(pcm) {
        *sample = f32::from(pcm);
    }
    state.high_pass.process(&mut seen[kept..], &HP_IN_ZEROS, &HP_IN_POLES);

    let mut filters = Filters::default();
    analyse(state, shape, &seen, &mut frame, &mut filters);
    let mut residual = [0.0; SAMPLES_MAX];
    for (n, (block, filter)) in residual.chunks_exact_mut(SUB_BLOCK).zip(&filters.synthesis).enumerate() {
        if n < shape.sub_blocks {
            let first = kept + n * SUB_BLOCK;
            all_zero(&seen[first - ORDER..first + SUB_BLOCK], filter, block);
        }
    }
    state.history[..kept].copy_from_slice(&seen[shape.samples..]);

    let residual = &residual[..shape.samples];
    let mut decoded = [0.0; SAMPLES_MAX];
    place_start(shape, residual, &mut frame);
    code_start(shape, residual, &filters, search, &mut frame, &mut decoded);
    code_blocks(shape, residual, &filters, search, &mut frame, &mut decoded);
    frame
}

/// Prediction analysis, quantisation of the frequencies, and the filters of each sub-block (section 3.2).
fn analyse(state: &mut State, shape: &Shape, seen: &[f32; SEEN], frame: &mut Frame, filters: &mut Filters) {
    let (mut sets, mut quantised) = ([Lsf::default(); 2], [Lsf::default(); 2]);
    for n in 0..shape.lsf_sets {
        let (signal, window) = match n + 1 == shape.lsf_sets {
            true => (&seen[LOOK_BACK..], &LPC_ASYMMETRIC_WINDOW),
            false => (&seen[..WINDOW], &LPC_WINDOW),
        };
        let windowed: [f32; WINDOW] = std::array::from_fn(|i| signal[i] * window[i]);
        let lpc = predict(&autocorrelate(&windowed));
        sets[n] = lsf::from_lpc(&lsf::expand_bandwidth(&lpc, CHIRP_SYNTHESIS));
        frame.lsf[n] = lsf::quantise(&sets[n]);
        quantised[n] = lsf::dequantise(frame.lsf[n]);
        lsf::stabilise(&mut quantised[n]);
    }
    lsf::interpolate_filters(shape, &state.lsf_quantised, &quantised, &mut filters.synthesis);
    lsf::interpolate_filters(shape, &state.lsf, &sets, &mut filters.weighting);
    for filter in &mut filters.weighting {
        *filter = lsf::expand_bandwidth(filter, CHIRP_WEIGHTING);
    }
    state.lsf = sets[shape.lsf_sets - 1];
    state.lsf_quantised = quantised[shape.lsf_sets - 1];
}

/// Autocorrelation of a windowed signal, under the lag window (section 3.2.1).
fn autocorrelate(signal: &[f32; WINDOW]) -> [f32; ORDER + 1] {
    std::array::from_fn(|lag| {
        let mut sum = 0.0;
        for (&early, &late) in signal.iter().zip(&signal[lag..]) {
            sum += early * late;
        }
        sum * LAG_WINDOW[lag]
    })
}

/// Levinson and Durbin's recursion (section 3.2.2).
fn predict(correlation: &[f32; ORDER + 1]) -> Lpc {
    let mut lpc = [0.0; ORDER + 1];
    lpc[0] = 1.0;
    if correlation[0] < ENERGY_MIN {
        return lpc;
    }
    let mut reflection = -correlation[1] / correlation[0];
    lpc[1] = reflection;
    let mut error = correlation[0] + correlation[1] * reflection;
    for m in 1..ORDER {
        let mut sum = correlation[m + 1];
        for i in 0..m {
            sum += lpc[i + 1] * correlation[m - i];
        }
        reflection = -sum / error;
        error += reflection * sum;
        for i in 0..m.div_ceil(2) {
            let (low, high) = (lpc[i + 1], lpc[m - i]);
            lpc[m - i] = high + reflection * low;
            lpc[i + 1] = low + reflection * high;
        }
        lpc[m + 1] = reflection;
    }
    lpc
}

/// Weights of the first and, reversed, the last five samples of two sub-blocks (section 3.5.1).
pub(crate) const EDGE: [f32; 5] = [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0, 4.0 / 6.0, 5.0 / 6.0];
/// Weights of the places of the start state in a 30 ms frame; a 20 ms frame has the inner three.
pub(crate) const PLACES: [f32; 5] = [0.8, 0.9, 1.0, 0.9, 0.8];

/// Finds the two sub-blocks with the most energy, and the stronger end of them (section 3.5.1).
fn place_start(shape: &Shape, residual: &[f32], frame: &mut Frame) {
    let (mut rising, mut falling) = ([0.0; SUB_BLOCKS_MAX], [0.0; SUB_BLOCKS_MAX]);
    for (n, block) in residual.chunks_exact(SUB_BLOCK).enumerate() {
        for (i, &sample) in block.iter().enumerate() {
            rising[n] += EDGE.get(i).map_or(sample, |edge| edge * sample) * sample;
            falling[n] += EDGE.get(SUB_BLOCK - 1 - i).map_or(sample, |edge| edge * sample) * sample;
        }
    }
    let places = if shape.sub_blocks == SUB_BLOCKS_MAX { &PLACES[..] } else { &PLACES[1..] };
    let (mut start, mut most) = (1, (rising[0] + falling[1]) * places[0]);
    for n in 2..shape.sub_blocks {
        let energy = (rising[n - 1] + falling[n]) * places[n - 1];
        if energy > most {
            (start, most) = (n, energy);
        }
    }
    let both = &residual[(start - 1) * SUB_BLOCK..][..STATE_BLOCK];
    frame.start = start as u8;
    frame.state_first = energy(&both[..shape.state]) > energy(&both[shape.extra..]);
}

/// The sum of the squares, in order.
pub(crate) fn energy(samples: &[f32]) -> f32 {
    let mut sum = 0.0;
    for &sample in samples {
        sum += sample * sample;
    }
    sum
}

/// Quantises the start state (section 3.5) and codes the rest of its two sub-blocks from it (section 3.6).
fn code_start(
    shape: &Shape,
    residual: &[f32],
    filters: &Filters,
    search: Search<'_>,
    frame: &mut Frame,
    decoded: &mut [f32; SAMPLES_MAX],
) {
    let start = usize::from(frame.start);
    let block = (start - 1) * SUB_BLOCK;
    let first = if frame.state_first { block } else { block + shape.extra };
    let (synthesis, weighting) = (&filters.synthesis[start - 1], &filters.weighting[start - 1..=start]);

    let mut passed = [0.0; ORDER + STATE_MAX];
    let passed = &mut passed[..ORDER + shape.state];
    start::all_pass(&residual[first..][..shape.state], synthesis, &mut passed[ORDER..]);
    let mut largest = passed[ORDER];
    for &sample in &passed[ORDER + 1..] {
        if sample * sample > largest * largest {
            largest = sample;
        }
    }
    frame.scale = quantise_scale(largest.abs());
    let scale = STATE_RANGE / SCALE_AMPLITUDES[usize::from(frame.scale)];
    passed[ORDER..].iter_mut().for_each(|sample| *sample *= scale);
    let seam = if frame.state_first { SUB_BLOCK } else { shape.state - SUB_BLOCK };
    quantise_state(passed, seam, weighting, &mut frame.state[..shape.state]);
    let state = &mut decoded[first..][..shape.state];
    start::construct(frame.scale, &frame.state[..shape.state], synthesis, state);

    // The extra block is predicted from the state, away from it: backwards when the state is last.
    let mut memory = [0.0; EXTRA_MEMORY];
    let mut extra = [0.0; SUB_BLOCK];
    let extra = &mut extra[..shape.extra];
    let known = &mut memory[EXTRA_MEMORY - shape.state..];
    known.copy_from_slice(state);
    if frame.state_first {
        extra.copy_from_slice(&residual[first + shape.state..][..shape.extra]);
    } else {
        known.reverse();
        extra.copy_from_slice(&residual[block..][..shape.extra]);
        extra.reverse();
    }
    frame.extra = search(&memory, extra, &weighting[usize::from(frame.state_first)], SEARCH_EXTRA);
    codebook::construct(&memory, &frame.extra, extra);
    if frame.state_first {
        decoded[first + shape.state..][..shape.extra].copy_from_slice(extra);
    } else {
        extra.reverse();
        decoded[block..][..shape.extra].copy_from_slice(extra);
    }
}

/// Index of the largest amplitude (section 3.5.2).
fn quantise_scale(largest: f32) -> u8 {
    SCALE_THRESHOLDS.partition_point(|&threshold| largest >= threshold) as u8
}

/// Quantises the scaled state sample by sample, the noise shaped by the weighting filter (section 3.5.3).
///
/// `state` has room for the filter's past before it. From `seam` on the second of the filters holds.
fn quantise_state(state: &mut [f32], seam: usize, weighting: &[Lpc], levels: &mut [u8]) {
    let seam = ORDER + seam;
    all_pole(&mut state[..seam], &weighting[0]);
    all_pole(&mut state[seam - ORDER..], &weighting[1]);
    let mut shaped = [0.0; ORDER + STATE_MAX];
    for (n, level) in (ORDER..).zip(levels) {
        let filter = &weighting[usize::from(n >= seam)];
        let past = &shaped[n - ORDER..n];
        let wanted = state[n] - all_pole_step(past, filter, 0.0);
        *level = nearest_level(wanted);
        shaped[n] = all_pole_step(past, filter, STATE_LEVELS[usize::from(*level)]);
    }
}

/// Index of the nearest level, the lower of two.
fn nearest_level(wanted: f32) -> u8 {
    STATE_LEVELS.windows(2).filter(|pair| wanted > (pair[1] + pair[0]) / 2.0).count() as u8
}

/// Codes the other sub-blocks, each from what is decoded beside it (section 3.6).
fn code_blocks(
    shape: &Shape,
    residual: &[f32],
    filters: &Filters,
    search: Search<'_>,
    frame: &mut Frame,
    decoded: &mut [f32; SAMPLES_MAX],
) {
    let start = usize::from(frame.start);
    for (n, (block, backwards)) in coding_order(shape, start).enumerate() {
        let first = block * SUB_BLOCK;
        let mut memory = [0.0; MEMORY];
        let mut wanted = [0.0; SUB_BLOCK];
        wanted.copy_from_slice(&residual[first..][..SUB_BLOCK]);
        // Forwards the start state's sub-blocks and what follows is known, backwards all behind the block.
        let known = if backwards {
            wanted.reverse();
            &decoded[first + SUB_BLOCK..shape.samples]
        } else {
            &decoded[(start - 1) * SUB_BLOCK..first]
        };
        let length = known.len().min(MEMORY);
        if backwards {
            let mirrored = memory.iter_mut().rev();
            mirrored.zip(known).for_each(|(to, &from)| *to = from);
        } else {
            memory[MEMORY - length..].copy_from_slice(&known[known.len() - length..]);
        }
        let ranges = if n == 0 { SEARCH_FIRST } else { SEARCH_LATER };
        let choice = search(&memory, &wanted, &filters.weighting[block], ranges);
        let out = &mut decoded[first..][..SUB_BLOCK];
        codebook::construct(&memory, &choice, out);
        if backwards {
            out.reverse();
        }
        frame.coded[n] = choice;
    }
}
