//! The perceptual enhancer over lanes: see [`crate::enhance`].

use lanes::{Integer, Kernel, LANES_MAX, Lanes, Number, Vector};

use super::decode::Excitations;
use super::lsp::rms;
use super::wide::Wide;
use super::{Float, lane_indices, pick};
use crate::decoder::HISTORY;
use crate::enhance::{SHIFT, SHORT_PERIOD, SPAN};
use crate::{FRAME, SUBFRAME};

/// Shifts either way that a period is compared at.
const AROUND: usize = 3;
/// Samples a period is chosen from: the shifts, and the filter that shifts by parts of a sample, reach to both sides.
const WINDOW: usize = SPAN + 4 * AROUND;
/// Samples a period is made of by that filter.
const TAPPED: usize = SPAN + 2 * AROUND;
/// Whole and fractional shifts.
static FRACTIONS: [[f32; 7]; 4] = [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], SHIFT[0], SHIFT[1], SHIFT[2]];

type Span<L> = [Float<L>; SPAN];

/// Filters a frame in two halves; `signal` is the frame a subframe late.
#[inline(always)]
pub fn comb<L: Lanes>(
    excitations: &Excitations,
    signal: &mut [L::F32; FRAME],
    lag: L::I32,
    strengths: (f32, f32),
) {
    for (half, span) in signal.as_chunks_mut::<SPAN>().0.iter_mut().enumerate() {
        let at = HISTORY - SUBFRAME + half * SPAN;
        L::call(CombHalf::<L> { excitations, at, lag, strengths, span });
    }
}

/// Two subframes.
struct CombHalf<'a, M: Lanes> {
    excitations: &'a Excitations,
    at: usize,
    lag: M::I32,
    strengths: (f32, f32),
    span: &'a mut Span<M>,
}

impl<M: Lanes> Kernel for CombHalf<'_, M> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let CombHalf { excitations, at, lag, strengths: (near, far), span } = self;
        let at = M::I32::splat(at as i32);
        let short = M::I32::splat(SHORT_PERIOD as i32).ge(lag);
        let zero = M::F32::splat(0.0);
        let mut others = [[zero; SPAN]; 2];
        let [before, other] = &mut others;
        M::call(Period::<M> { excitations, from: at - lag, now: span, period: before });
        let from = M::I32::select(short, at + lag, at - lag.shl(1));
        M::call(Period::<M> { excitations, from, now: span, period: other });

        let level_now = level::<M>(span, 1.0);
        let (near, far) = (M::F32::splat(near), M::F32::splat(far));
        let mut gains = [zero; 2];
        for (number, other) in others.iter().enumerate() {
            let level_other = level::<M>(other, 1000.0);
            let correlation = inner_product::<M>(other, span).max(zero);
            let same = correlation.gt(level_other * level_now);
            let similar = (correlation / level_now) / level_other;
            let similar = M::F32::select(same, M::F32::splat(1.0), similar);
            let rest = (M::F32::splat(1.0) - (far * similar) * similar).max(near);
            let share = Wide::<M>::of((near / rest) * (level_now / level_other));
            let share_short = (Wide::splat(0.6) * share).narrow();
            let share_long = (Wide::splat([0.7, 0.3][number]) * share).narrow();
            gains[number] = M::F32::select(short, share_short, share_long);
        }
        let (mut new, mut old) = (zero, zero);
        let [before, other] = &mut others;
        for j in 0..SPAN {
            let x = span[j];
            let y = x + (gains[0] * before[j] + gains[1] * other[j]);
            new += y * y;
            old += x * x;
            before[j] = y;
        }
        let one = M::F32::splat(1.0);
        let (new, old) = (rms::<M>(new, SPAN).max(one), rms::<M>(old, SPAN).max(one));
        let scale = old.min(new) / new;
        for (x, y) in span.iter_mut().zip(before) {
            *x = scale * *y;
        }
    }
}

#[inline(always)]
fn inner_product<L: Lanes>(a: &Span<L>, b: &Span<L>) -> L::F32 {
    let mut parts = [L::F32::splat(0.0); 4];
    for j in (0..SPAN).step_by(4) {
        for part in 0..4 {
            parts[part] += a[j + part] * b[j + part];
        }
    }
    (parts[0] + parts[2]) + (parts[1] + parts[3])
}

#[inline(always)]
fn level<L: Lanes>(x: &Span<L>, floor: f32) -> L::F32 {
    Wide::<L>::of(L::F32::splat(floor) + inner_product::<L>(x, x)).sqrt().narrow()
}

/// The period that starts around `from`, at the shift in quarters of a sample that resembles `now` most.
struct Period<'a, M: Lanes> {
    excitations: &'a Excitations,
    from: M::I32,
    now: &'a Span<M>,
    period: &'a mut Span<M>,
}

impl<M: Lanes> Kernel for Period<'_, M> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let starts = lane_indices::<M>(self.from);
        let mut pieces = [[0.0f32; WINDOW]; LANES_MAX];
        for ((piece, excitation), start) in pieces.iter_mut().zip(self.excitations).zip(starts).take(M::N) {
            piece.copy_from_slice(&excitation[start - 2 * AROUND..][..WINDOW]);
        }
        let mut streams = [&[][..]; LANES_MAX];
        for (stream, piece) in streams.iter_mut().zip(&pieces) {
            *stream = &piece[..];
        }
        let mut window = [M::F32::splat(0.0); WINDOW];
        M::F32::gather(&streams[..M::N], &mut window);
        let (fraction, shift) = self.best(&window);

        let (fraction, shift) = (lane_indices::<M>(fraction), lane_indices::<M>(shift));
        for ((stream, piece), shift) in streams.iter_mut().zip(&pieces).zip(shift) {
            *stream = &piece[shift..][..TAPPED];
        }
        let tapped = &mut window[..TAPPED];
        M::F32::gather(&streams[..M::N], tapped);
        let rows = pick::<M, 7, 4>(&FRACTIONS, &fraction);
        for (x, window) in self.period.iter_mut().zip(tapped.windows(7)) {
            let mut sum = window[0] * rows[0];
            for k in 1..7 {
                sum += window[k] * rows[k];
            }
            *x = sum;
        }
    }
}

impl<M: Lanes> Period<'_, M> {
    /// The fraction and the whole shift of greatest correlation.
    #[inline(always)]
    fn best(&self, window: &[M::F32; WINDOW]) -> (M::I32, M::I32) {
        let mut correlation = [[M::F32::splat(0.0); 7]; 4];
        for first in [0, 2, 4] {
            // Pairs share what they load; the last has one of its own.
            let pair = self.correlate(window, first);
            correlation[0][first] = pair[0];
            correlation[0][first + 1] = pair[1];
        }
        correlation[0][6] = self.correlate(window, 5)[1];
        for (i, shift) in SHIFT.iter().enumerate() {
            for j in 0..7usize {
                for k in 3usize.saturating_sub(j)..7.min(10 - j) {
                    let part = M::F32::splat(shift[k]) * correlation[0][j + k - 3];
                    correlation[i + 1][j] += part;
                }
            }
        }
        let mut best = correlation[0][0];
        let (mut fraction, mut shift) = (M::I32::splat(0), M::I32::splat(0));
        for (i, row) in correlation.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let better = value.gt(best);
                best = M::F32::select(better, *value, best);
                fraction = M::I32::select(better, M::I32::splat(i as i32), fraction);
                shift = M::I32::select(better, M::I32::splat(j as i32), shift);
            }
        }
        (fraction, shift)
    }

    /// With the window at a shift and at the next.
    #[inline(always)]
    fn correlate(&self, window: &[M::F32; WINDOW], shift: usize) -> [M::F32; 2] {
        let mut parts = [[M::F32::splat(0.0); 4]; 2];
        let window = &window[AROUND + shift..][..SPAN + 1];
        for j in (0..SPAN).step_by(4) {
            for part in 0..4 {
                let x = self.now[j + part];
                parts[0][part] += x * window[j + part];
                parts[1][part] += x * window[j + part + 1];
            }
        }
        let [a, b] = parts;
        [(a[0] + a[2]) + (a[1] + a[3]), (b[0] + b[2]) + (b[1] + b[3])]
    }
}
