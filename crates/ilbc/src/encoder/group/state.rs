//! The start state of a group (RFC 3951 section 3.5).

use lanes::{Integer, LANES_MAX, Lanes, Mask, Number, Vector};

use super::super::scalar::{EDGE, PLACES};
use super::{LpcRows, TAPS, add_product, all_pole_step, energy};
use crate::bits::Frame;
use crate::start::STATE_RANGE;
use crate::tables::{SCALE_AMPLITUDES, SCALE_THRESHOLDS, STATE_LEVELS};
use crate::{ORDER, STATE_BLOCK, STATE_MAX, SUB_BLOCK, SUB_BLOCKS_MAX, Shape};

/// The later of the two sub-blocks with the most energy, of every stream.
#[inline(always)]
pub(super) fn place<L: Lanes, const FAST: bool>(shape: &Shape, residual: &[L::F32]) -> L::I32 {
    let zero = L::F32::splat(0.0);
    let (mut rising, mut falling) = ([zero; SUB_BLOCKS_MAX], [zero; SUB_BLOCKS_MAX]);
    for n in 0..shape.sub_blocks {
        let block = &residual[n * SUB_BLOCK..][..SUB_BLOCK];
        let (mut up, mut down) = (zero, zero);
        for i in 0..SUB_BLOCK {
            let row = block[i];
            let (from_start, to_end) = (i, SUB_BLOCK - 1 - i);
            let edge_up = if from_start < EDGE.len() { L::F32::splat(EDGE[from_start]) * row } else { row };
            let edge_down = if to_end < EDGE.len() { L::F32::splat(EDGE[to_end]) * row } else { row };
            up = add_product::<L, FAST>(up, edge_up, row);
            down = add_product::<L, FAST>(down, edge_down, row);
        }
        (rising[n], falling[n]) = (up, down);
    }
    let places = if shape.sub_blocks == SUB_BLOCKS_MAX { &PLACES[..] } else { &PLACES[1..] };
    let mut start = L::I32::splat(1);
    let mut most = (rising[0] + falling[1]) * L::F32::splat(places[0]);
    for n in 2..shape.sub_blocks {
        let energy = (rising[n - 1] + falling[n]) * L::F32::splat(places[n - 1]);
        let more = energy.gt(most);
        start = L::I32::select(more, L::I32::splat(n as i32), start);
        most = L::F32::select(more, energy, most);
    }
    start
}

/// Each stream's own choice of the filters.
#[inline(always)]
pub(super) fn filter_at<L: Lanes>(
    shape: &Shape,
    filters: &[LpcRows<L::F32>; SUB_BLOCKS_MAX],
    index: L::I32,
) -> LpcRows<L::F32> {
    let mut own = filters[0];
    for n in 1..shape.sub_blocks {
        let filter = &filters[n];
        let chosen = index.eq(L::I32::splat(n as i32));
        for k in 1..TAPS {
            own[k] = L::F32::select(chosen, filter[k], own[k]);
        }
    }
    own
}

/// The all-pass filter as a circular convolution: `rows[..length]` becomes what comes out.
#[inline(always)]
fn all_pass<L: Lanes, const FAST: bool>(
    rows: &mut [L::F32; STATE_MAX],
    length: usize,
    lpc: &LpcRows<L::F32>,
) {
    let zero = L::F32::splat(0.0);
    let mut input = [zero; 2 * ORDER + STATE_MAX];
    input[ORDER..][..length].copy_from_slice(&rows[..length]);
    let mut rung = [zero; ORDER + 2 * STATE_MAX];
    let rung = &mut rung[..ORDER + 2 * length];
    let mut newest = zero;
    for n in 0..2 * length {
        let mut sum = zero;
        if n < length + ORDER {
            let past = &input[n..][..ORDER + 1];
            for k in 0..TAPS {
                sum = add_product::<L, FAST>(sum, lpc[ORDER - k], past[ORDER - k]);
            }
        }
        let Some(older) = rung[n..].first_chunk() else { return };
        newest = all_pole_step::<L, FAST>(older, newest, lpc, sum);
        rung[ORDER + n] = newest;
    }
    let (first, second) = rung[ORDER..].split_at(length);
    for n in 0..length {
        rows[n] = first[n] + second[n];
    }
}

/// Quantises the start states; `decoded` becomes what they decode to, backwards in time.
///
/// `both` is the two sub-blocks of each start state, `weighting` their filters. Gives the streams whose state is first.
#[inline(always)]
pub(super) fn code<L: Lanes, const W: usize, const FAST: bool>(
    shape: &Shape,
    both: &[L::F32; STATE_BLOCK],
    synthesis: &LpcRows<L::F32>,
    weighting: &[LpcRows<L::F32>; 2],
    frames: &mut [Frame; W],
    decoded: &mut [L::F32; STATE_MAX],
) -> L::Mask32 {
    let (state, extra) = (shape.state, shape.extra);
    let zero = L::F32::splat(0.0);
    let first = energy::<L, FAST>(&both[..state]).gt(energy::<L, FAST>(&both[extra..]));
    let mut passed = [zero; STATE_MAX];
    for k in 0..state {
        passed[k] = L::F32::select(first, both[k], both[k + extra]);
    }
    all_pass::<L, FAST>(&mut passed, state, synthesis);

    let (mut largest, mut most) = (passed[0], passed[0] * passed[0]);
    for &row in &passed[1..state] {
        let square = row * row;
        let more = square.gt(most);
        largest = L::F32::select(more, row, largest);
        most = L::F32::select(more, square, most);
    }
    let largest = largest.abs();
    let (mut index, mut amplitude) = (L::I32::splat(0), L::F32::splat(SCALE_AMPLITUDES[0]));
    for n in 0..SCALE_THRESHOLDS.len() {
        let above = largest.ge(L::F32::splat(SCALE_THRESHOLDS[n]));
        index -= L::I32::from_mask(above);
        amplitude = L::F32::select(above, L::F32::splat(SCALE_AMPLITUDES[n + 1]), amplitude);
    }
    let scale = L::F32::splat(STATE_RANGE) / amplitude;

    // The second filter holds from the seam on, which lies at two places.
    let early = state - SUB_BLOCK;
    let mut filter = weighting[0];
    let mut heard = [zero; ORDER + STATE_MAX];
    let mut shaped = [zero; ORDER + STATE_MAX];
    let (mut newest, mut newest_shaped) = (zero, zero);
    let mut levels = [L::I32::splat(0); STATE_MAX];
    for n in 0..state {
        if n == early {
            for k in 0..TAPS {
                filter[k] = L::F32::select(first, weighting[0][k], weighting[1][k]);
            }
        }
        if n == SUB_BLOCK {
            filter = weighting[1];
        }
        let (Some(older), Some(older_shaped)) = (heard[n..].first_chunk(), shaped[n..].first_chunk()) else {
            break;
        };
        newest = all_pole_step::<L, FAST>(older, newest, &filter, passed[n] * scale);
        let wanted = newest - all_pole_step::<L, FAST>(older_shaped, newest_shaped, &filter, zero);
        let (level, value) = nearest_level::<L>(wanted);
        levels[n] = level;
        newest_shaped = all_pole_step::<L, FAST>(older_shaped, newest_shaped, &filter, value);
        (heard[ORDER + n], shaped[ORDER + n]) = (newest, newest_shaped);
        // Decoded backwards in time.
        passed[n] = value;
    }
    let mut streams = [[0; STATE_MAX]; W];
    let mut slices: [&mut [i32]; LANES_MAX] = Default::default();
    for (slice, stream) in slices.iter_mut().zip(&mut streams) {
        *slice = &mut stream[..state];
    }
    L::I32::scatter(&levels[..state], &mut slices[..W]);
    for lane in 0..W {
        frames[lane].scale = index.lane(lane) as u8;
        for n in 0..STATE_MAX {
            frames[lane].state[n] = streams[lane][n] as u8;
        }
    }

    let unit = amplitude / L::F32::splat(STATE_RANGE);
    for n in 0..state {
        decoded[n] = unit * passed[state - 1 - n];
    }
    all_pass::<L, FAST>(decoded, state, synthesis);
    first
}

/// Index and value of the nearest level, the lower of two: a tree of three decisions.
#[inline(always)]
fn nearest_level<L: Lanes>(wanted: L::F32) -> (L::I32, L::F32) {
    let mut above = [L::Mask32::first(0); 7];
    for n in 0..7 {
        above[n] = wanted.gt(L::F32::splat((STATE_LEVELS[n + 1] + STATE_LEVELS[n]) / 2.0));
    }
    let mut index = L::I32::splat(0);
    for n in 0..7 {
        index -= L::I32::from_mask(above[n]);
    }
    let mut level = [L::F32::splat(0.0); 8];
    for n in 0..8 {
        level[n] = L::F32::splat(STATE_LEVELS[n]);
    }
    let low = L::F32::select(
        above[1],
        L::F32::select(above[2], level[3], level[2]),
        L::F32::select(above[0], level[1], level[0]),
    );
    let high = L::F32::select(
        above[5],
        L::F32::select(above[6], level[7], level[6]),
        L::F32::select(above[4], level[5], level[4]),
    );
    (index, L::F32::select(above[3], high, low))
}
