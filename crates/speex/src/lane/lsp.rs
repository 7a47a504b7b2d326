//! Linear prediction over lanes: [`crate::lsp`] with every stream's branches taken at once.

use std::f64::consts::{FRAC_PI_2, PI};

use lanes::{Integer, Kernel, Lanes, Mask, Number, Vector};

use super::filter::Lpc;
use super::wide::Wide;
use super::{Float, Long, lane_indices, pick};
use crate::codebooks::{LAG_WINDOW, LPC_WINDOW, LSP_HIGH_1, LSP_HIGH_2, LSP_LOW_1, LSP_LOW_2, LSP_WHOLE};
use crate::lsp::{BISECTIONS, LAST_MAX, MARGIN, NOISE_FLOOR, SEARCH_STEP, linear};
use crate::math::{ASIN_P, ASIN_Q, COS};
use crate::{FRAME, ORDER, SUBFRAME};

/// A row a pair.
pub type Lsp<L> = [<L as Lanes>::F32; ORDER];

/// A codebook as floats.
type Book<const DIM: usize> = [[f32; DIM]; 64];

const fn floats<const DIM: usize>(book: &[[i8; DIM]; 64]) -> Book<DIM> {
    let mut out = [[0.0; DIM]; 64];
    let mut i = 0;
    while i < 64 {
        let mut j = 0;
        while j < DIM {
            out[i][j] = book[i][j] as f32;
            j += 1;
        }
        i += 1;
    }
    out
}

static WHOLE: Book<10> = floats(&LSP_WHOLE);
static LOW_1: Book<5> = floats(&LSP_LOW_1);
static LOW_2: Book<5> = floats(&LSP_LOW_2);
static HIGH_1: Book<5> = floats(&LSP_HIGH_1);
static HIGH_2: Book<5> = floats(&LSP_HIGH_2);

/// Line spectral pairs of a frame: analysis, or those of the frame before in lanes where not all can be found.
pub struct Analyse<'a, M: Lanes> {
    /// 40 samples before the frame, then the frame.
    pub signal: &'a [M::F32; SUBFRAME + FRAME],
    /// Those of the frame before.
    pub before: &'a Lsp<M>,
}

impl<M: Lanes> Kernel for Analyse<'_, M> {
    type Out = Lsp<M>;
    #[inline(always)]
    fn run<L: Lanes>(self) -> Lsp<M> {
        let lpc = levinson_durbin::<M>(&autocorrelation::<M>(self.signal));
        from_lpc::<M>(&lpc, self.before)
    }
}

#[inline(always)]
fn autocorrelation<L: Lanes>(signal: &[L::F32; SUBFRAME + FRAME]) -> [L::F32; ORDER + 1] {
    let mut windowed = [L::F32::splat(0.0); ORDER + SUBFRAME + FRAME];
    for i in 0..SUBFRAME + FRAME {
        windowed[ORDER + i] = signal[i] * L::F32::splat(LPC_WINDOW[i]);
    }
    let mut sums = [L::F32::splat(0.0); ORDER + 1];
    for window in windowed.windows(ORDER + 1) {
        let newest = window[ORDER];
        for lag in 0..=ORDER {
            sums[lag] += newest * window[ORDER - lag];
        }
    }
    sums[0] += L::F32::splat(10.0);
    sums[0] = sums[0] + sums[0] * L::F32::splat(NOISE_FLOOR);
    for lag in 0..=ORDER {
        sums[lag] = sums[lag] * L::F32::splat(LAG_WINDOW[lag]);
    }
    sums[0] += L::F32::splat(1.0);
    sums
}

#[inline(always)]
fn levinson_durbin<L: Lanes>(correlation: &[L::F32; ORDER + 1]) -> Lpc<L> {
    let mut lpc = [L::F32::splat(0.0); ORDER];
    let mut error = correlation[0];
    let bias = Wide::<L>::splat(0.003) * Wide::of(correlation[0]);
    for i in 0..ORDER {
        let mut sum = -correlation[i + 1];
        for j in 0..i {
            sum -= lpc[j] * correlation[i - j];
        }
        let reflection = (Wide::<L>::of(sum) / (Wide::of(error) + bias)).narrow();
        lpc[i] = reflection;
        for j in 0..i.div_ceil(2) {
            let (low, high) = (lpc[j], lpc[i - 1 - j]);
            lpc[j] = low + reflection * high;
            lpc[i - 1 - j] = high + reflection * low;
        }
        error -= reflection * (error * reflection);
    }
    lpc
}

/// A Chebyshev series whose first coefficient is 2, at `x`.
struct Series<L: Lanes> {
    middle: [L::F32; 4],
    last: Wide<L>,
}

impl<L: Lanes> Series<L> {
    #[inline(always)]
    fn at(&self, x: L::F32) -> L::F32 {
        let doubled = x + x;
        let (mut b0, mut b1) = (doubled * L::F32::splat(2.0) + self.middle[0], L::F32::splat(2.0));
        for coefficient in 1..4 {
            let next = (doubled * b0 - b1) + self.middle[coefficient];
            (b0, b1) = (next, b0);
        }
        // -b1 + x b0 in double precision, where the product is exact.
        ((Wide::of(x) * Wide::of(b0) - Wide::of(b1)) + self.last).narrow()
    }
}

#[inline(always)]
fn from_lpc<L: Lanes>(lpc: &Lpc<L>, before: &Lsp<L>) -> Lsp<L> {
    let one = L::F32::splat(1.0);
    let (mut sum, mut difference) = ([one; 6], [one; 6]);
    for i in 0..5 {
        sum[i + 1] = (lpc[i] + lpc[ORDER - 1 - i]) - sum[i];
        difference[i + 1] = (lpc[i] - lpc[ORDER - 1 - i]) + difference[i];
    }
    let series = |c: &[L::F32; 6]| Series::<L> {
        middle: [c[1] + c[1], c[2] + c[2], c[3] + c[3], c[4] + c[4]],
        last: Wide::of(c[5]),
    };
    let series = [series(&sum), series(&difference)];
    let zero = L::F32::splat(0.0);
    let (mut left, mut right) = (one, zero);
    let mut alive = L::Mask32::from_bits(u32::MAX);
    let mut cosines = [zero; ORDER];
    for root in 0..ORDER {
        let series = &series[root % 2];
        let mut left_value = series.at(left);
        let mut searching = alive;
        // Each step goes at least 0.01 down, and a lane below -1 stops.
        while searching.any() {
            let inside = right.ge(L::F32::splat(-1.0));
            alive = alive & (inside | !searching);
            searching = searching & inside;
            let wide = Wide::<L>::of(left);
            let curve = Wide::splat(1.0) - Wide::splat(0.9) * wide * wide;
            let step = (Wide::<L>::splat(SEARCH_STEP.into()) * curve).narrow();
            // Below 0.2 in double precision is below the float next above it.
            let near = L::F32::splat(0.2).gt(left_value.abs());
            let step = L::F32::select(near, step * L::F32::splat(0.5), step);
            right = L::F32::select(searching, left - step, right);
            let value = series.at(right);
            searching = searching & !zero.gt(value * left_value);
            left = L::F32::select(searching, right, left);
            left_value = L::F32::select(searching, value, left_value);
        }
        let mut middle = left;
        for _ in 0..BISECTIONS {
            middle = L::F32::splat(0.5) * (left + right);
            let value = series.at(middle);
            let crossed = zero.gt(value * left_value);
            right = L::F32::select(crossed, middle, right);
            left_value = L::F32::select(crossed, left_value, value);
            left = L::F32::select(crossed, left, middle);
        }
        cosines[root] = middle;
        left = middle;
    }
    let mut lsp = *before;
    for root in 0..ORDER {
        lsp[root] = L::F32::select(alive, acos::<L>(cosines[root]), before[root]);
    }
    lsp
}

/// [`crate::math::acos`], rounded.
#[inline(always)]
fn acos<L: Lanes>(cosine: L::F32) -> L::F32 {
    let constant = Wide::<L>::splat;
    let x = Wide::<L>::of(cosine);
    let magnitude = Wide::<L>::of(cosine.abs());
    // The square below one half, (1 - |x|) / 2 above: the smaller of the two, and the root of it is |x| again below.
    let z = (x * x).min((constant(1.0) - magnitude) * constant(0.5));
    let s = z.sqrt();
    let (mut p, mut q) = (constant(ASIN_P[5]), constant(ASIN_Q[3]));
    for coefficient in ASIN_P[..5].iter().rev() {
        p = constant(*coefficient) + z * p;
    }
    for coefficient in ASIN_Q[..3].iter().rev() {
        q = constant(*coefficient) + z * q;
    }
    let (p, q) = (z * p, constant(1.0) + z * q);
    let asin = s + s * (p / q);
    let positive = cosine.gt(L::F32::splat(0.0));
    let inner = L::F32::splat(0.5).gt(cosine.abs());
    let near = (constant(FRAC_PI_2) - asin).narrow();
    let beyond = (constant(FRAC_PI_2) + asin).narrow();
    let low = (constant(2.0) * asin).narrow();
    let high = (constant(PI) - constant(2.0) * asin).narrow();
    L::F32::select(inner, L::F32::select(positive, near, beyond), L::F32::select(positive, low, high))
}

/// A(z) of line spectral pairs.
pub struct ToLpc<'a, M: Lanes> {
    /// The pairs.
    pub lsp: &'a Lsp<M>,
}

impl<M: Lanes> Kernel for ToLpc<'_, M> {
    type Out = Lpc<M>;
    #[inline(always)]
    fn run<L: Lanes>(self) -> Lpc<M> {
        to_lpc::<M>(self.lsp)
    }
}

#[inline(always)]
fn to_lpc<L: Lanes>(lsp: &Lsp<L>) -> Lpc<L> {
    let mut doubled = *lsp;
    for angle in &mut doubled {
        let mirrored = angle.ge(L::F32::splat(std::f32::consts::FRAC_PI_2));
        let x = L::F32::select(mirrored, (Wide::<L>::splat(PI) - Wide::of(*angle)).narrow(), *angle);
        let x = x * x;
        let [c0, c1, c2, c3] = COS;
        let y = L::F32::splat(c2) + L::F32::splat(c3) * x;
        let y = L::F32::splat(c0) + x * (L::F32::splat(c1) + x * y);
        *angle = L::F32::splat(2.0) * L::F32::select(mirrored, -y, y);
    }
    // The two polynomials as products of sections 1 - 2 cos(w) z^-1 + z^-2. Each product is formed from the highest power
    // down, in place; its outermost coefficients are ones.
    let one = L::F32::splat(1.0);
    let mut polynomials = [[one; ORDER + 1]; 2];
    for (half, p) in polynomials.iter_mut().enumerate() {
        p[1] = -doubled[half];
        for section in 1..5 {
            let c = doubled[2 * section + half];
            let top = 2 * section + 1;
            p[top] = p[top - 2] - c;
            for n in (2..top).rev() {
                p[n] = (p[n] - c * p[n - 1]) + p[n - 2];
            }
            p[1] -= c;
        }
    }
    let [p, q] = polynomials;
    let mut lpc = [one; ORDER];
    for j in 1..=ORDER {
        lpc[j - 1] = ((p[j] + p[j - 1]) + (q[j] - q[j - 1])) * L::F32::splat(0.5);
    }
    lpc
}

/// The pairs `part` (0 to 1) of the way from `old` to `new`, kept apart.
#[inline(always)]
pub fn interpolate<L: Lanes>(old: &Lsp<L>, new: &Lsp<L>, part: f32) -> Lsp<L> {
    let (rest, part) = (L::F32::splat(1.0 - part), L::F32::splat(part));
    let margin = L::F32::splat(MARGIN);
    let mut lsp = *old;
    for i in 0..ORDER {
        lsp[i] = rest * old[i] + part * new[i];
    }
    lsp[0] = L::F32::select(margin.gt(lsp[0]), margin, lsp[0]);
    let last = lsp[ORDER - 1];
    lsp[ORDER - 1] =
        L::F32::select(last.gt(L::F32::splat(LAST_MAX_BELOW)), L::F32::splat(LAST_MAX as f32), last);
    for i in 1..ORDER - 1 {
        let least = lsp[i - 1] + margin;
        lsp[i] = L::F32::select(least.gt(lsp[i]), least, lsp[i]);
        let most = lsp[i + 1] - margin;
        let between = L::F32::splat(0.5) * ((lsp[i] + lsp[i + 1]) - margin);
        lsp[i] = L::F32::select(lsp[i].gt(most), between, lsp[i]);
    }
    lsp
}

/// The greatest float that is not above [`LAST_MAX`].
const LAST_MAX_BELOW: f32 =
    if LAST_MAX as f32 as f64 > LAST_MAX { (LAST_MAX as f32).next_down() } else { LAST_MAX as f32 };

#[inline(always)]
fn weights<L: Lanes>(lsp: &Lsp<L>) -> Lsp<L> {
    let mut weights = *lsp;
    for i in 0..ORDER {
        let below = if i == 0 { lsp[0] } else { lsp[i] - lsp[i - 1] };
        let above = if i == ORDER - 1 {
            (Wide::<L>::splat(PI) - Wide::of(lsp[i])).narrow()
        } else {
            lsp[i + 1] - lsp[i]
        };
        let nearest = above.min(below);
        weights[i] = (Wide::<L>::splat(10.0) / (Wide::splat(0.04) + Wide::of(nearest))).narrow();
    }
    weights
}

/// Takes the nearest entries of `book` out of `x` and returns their indices.
#[inline(always)]
fn nearest<L: Lanes, const DIM: usize>(
    x: &mut [Float<L>; DIM],
    weight: Option<&[Float<L>; DIM]>,
    book: &'static Book<DIM>,
) -> Long<L> {
    let far = (L::F32::splat(1e15), L::I32::splat(0));
    // The best of either half of the codebook: two chains of comparisons instead of one.
    let mut best = [far; 2];
    for i in 0..32 {
        for (half, (distance, index)) in best.iter_mut().enumerate() {
            let number = 32 * half + i;
            let mut sum = L::F32::splat(0.0);
            for j in 0..DIM {
                let error = x[j] - L::F32::splat(book[number][j]);
                sum += match weight {
                    Some(weight) => weight[j] * (error * error),
                    None => error * error,
                };
            }
            let closer = distance.gt(sum);
            *distance = L::F32::select(closer, sum, *distance);
            *index = L::I32::select(closer, L::I32::splat(number as i32), *index);
        }
    }
    let index = L::I32::select(best[0].0.gt(best[1].0), best[1].1, best[0].1);
    let entries = pick::<L, DIM, 64>(book, &lane_indices::<L>(index));
    for j in 0..DIM {
        x[j] -= entries[j];
    }
    index
}

/// Quantises with 18 bits, or 30 when `fine`: the indices in the order they are sent, of which three or five count, and
/// the pairs the decoder will see.
pub struct Quantise<'a, M: Lanes> {
    /// The pairs.
    pub lsp: &'a Lsp<M>,
    /// Five stages, not three.
    pub fine: bool,
}

impl<M: Lanes> Kernel for Quantise<'_, M> {
    type Out = ([M::I32; 5], Lsp<M>);
    #[inline(always)]
    fn run<L: Lanes>(self) -> Self::Out {
        quantise::<M>(self.lsp, self.fine)
    }
}

#[inline(always)]
fn quantise<L: Lanes>(lsp: &Lsp<L>, fine: bool) -> ([L::I32; 5], Lsp<L>) {
    let weight = weights::<L>(lsp);
    let mut rest = *lsp;
    for i in 0..ORDER {
        rest[i] = L::F32::splat(256.0) * (lsp[i] - L::F32::splat(linear(i)));
    }
    let mut index = [L::I32::splat(0); 5];
    index[0] = nearest::<L, 10>(&mut rest, None, &WHOLE);
    let half = |x: &Lsp<L>, from: usize| [x[from], x[from + 1], x[from + 2], x[from + 3], x[from + 4]];
    let (low_weight, high_weight) = (half(&weight, 0), half(&weight, 5));
    for x in &mut rest {
        *x = *x + *x;
    }
    let (mut low, mut high) = (half(&rest, 0), half(&rest, 5));
    index[1] = nearest::<L, 5>(&mut low, Some(&low_weight), &LOW_1);
    let scale = if fine {
        for x in &mut low {
            *x = *x + *x;
        }
        index[2] = nearest::<L, 5>(&mut low, Some(&low_weight), &LOW_2);
        index[3] = nearest::<L, 5>(&mut high, Some(&high_weight), &HIGH_1);
        for x in &mut high {
            *x = *x + *x;
        }
        index[4] = nearest::<L, 5>(&mut high, Some(&high_weight), &HIGH_2);
        0.000_976_56
    } else {
        index[2] = nearest::<L, 5>(&mut high, Some(&high_weight), &HIGH_1);
        0.001_953_1
    };
    let mut quantised = *lsp;
    for i in 0..ORDER {
        let error = if i < 5 { low[i] } else { high[i - 5] };
        quantised[i] = lsp[i] - (Wide::<L>::of(error) * Wide::splat(scale)).narrow();
    }
    (index, quantised)
}

/// Root mean square of `length` samples whose squares have this sum, with the reference's floor of 0.1 under the mean.
#[inline(always)]
pub fn rms<L: Lanes>(energy: L::F32, length: usize) -> L::F32 {
    let mean = energy / L::F32::splat(length as f32);
    (Wide::<L>::splat(0.1) + Wide::of(mean)).sqrt().narrow()
}

/// How many of the rising `steps` are reached, or passed when `beyond`.
#[inline(always)]
pub fn count<L: Lanes>(x: L::F32, steps: &[f32], beyond: bool) -> L::I32 {
    let mut count = L::I32::splat(0);
    for step in steps {
        let step = L::F32::splat(*step);
        count -= L::I32::from_mask(if beyond { x.gt(step) } else { x.ge(step) });
    }
    count
}
