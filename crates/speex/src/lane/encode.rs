//! One frame of up to 16 encoders.

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Level, Number, Vector};

use super::bits::LaneBits;
use super::filter::{Lpc, all_pole, all_zero, high_pass, pole_zero, widen};
use super::innovation::Innovate;
use super::lsp::{Analyse, Quantise, ToLpc, count, interpolate, rms};
use super::pitch::{OpenLoop, Pasts, Rows, TryLag, Weighting};
use super::{Float, Long};
use crate::encoder::{GAMMA, HIGH, LOW, Rate, VERY_SMALL};
use crate::filter::HIGH_PASS_INPUT;
use crate::math::{GAIN, GAIN_STEP};
use crate::{BYTES_MAX, Encoder, FRAME, LAG_MIN, ORDER, PAST, Quality, SUBFRAME, SUBFRAMES};

/// Streams up to which the scalar form is faster than a group that is mostly empty.
const LONE: usize = 1;

/// One frame of one stream.
pub struct EncodeJob<'a> {
    /// The stream.
    pub state: &'a mut Encoder,
    /// 20 ms of sound.
    pub pcm: &'a [i16; FRAME],
    /// The frame, in its first [`Quality::bytes`] bytes; the rest stays untouched.
    pub out: &'a mut [u8; BYTES_MAX],
}

/// Codes a frame of every job: each as [`Encoder::encode`] would, bit for bit.
///
/// Any number of jobs in any order; qualities may be mixed, but groups are fuller when they are not. A stream's first
/// frame and lone streams take the scalar way.
pub fn encode(level: Level, jobs: &mut [EncodeJob<'_>]) {
    for quality in [Quality::Q3, Quality::Q8] {
        let mut members = [0; LANES_MAX];
        let mut count = 0;
        for job in 0..jobs.len() {
            let state = &jobs[job].state;
            if state.quality != quality {
                continue;
            }
            if state.first {
                alone(&mut jobs[job]);
                continue;
            }
            members[count] = job;
            count += 1;
            if count == level.lanes() {
                group(level, jobs, &members[..count]);
                count = 0;
            }
        }
        group(level, jobs, &members[..count]);
    }
}

fn alone(job: &mut EncodeJob<'_>) {
    job.state.encode(job.pcm, job.out);
}

fn group(level: Level, jobs: &mut [EncodeJob<'_>], members: &[usize]) {
    if members.len() <= LONE {
        for &member in members {
            alone(&mut jobs[member]);
        }
        return;
    }
    match jobs[members[0]].state.quality {
        Quality::Q3 => level.run(Group { rate: &LOW, jobs, members }),
        Quality::Q8 => level.run(Group { rate: &HIGH, jobs, members }),
    }
}

/// Jobs of one quality that fit the lanes.
struct Group<'a, 'j, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    jobs: &'a mut [EncodeJob<'j>],
    members: &'a [usize],
}

/// What [`Encoder`] holds, a row an element.
struct State<L: Lanes> {
    gain_product: Float<L>,
    weighted: [Float<L>; PAST + FRAME],
    pasts: Pasts,
    lsp: Lpc<L>,
    quantised_lsp: Lpc<L>,
    synthesis: Lpc<L>,
    weighting: Lpc<L>,
    open_residual: Lpc<L>,
    residual: Lpc<L>,
    high_pass: [Float<L>; 2],
}

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Group<'_, '_, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut signal = [L::F32::splat(0.0); SUBFRAME + FRAME];
        let mut state = self.collect::<L>(&mut signal);
        let bits = L::call(Frame { rate: self.rate, state: &mut state, signal: &mut signal });
        self.give_back(&state, &signal, bits);
    }
}

/// The elements of rows, by lane.
#[inline(always)]
fn by_lane<L: Lanes, const ROWS: usize>(rows: &[L::F32]) -> [[f32; ROWS]; LANES_MAX] {
    let mut lanes = [[0.0; ROWS]; LANES_MAX];
    L::F32::scatter(rows, &mut lanes.each_mut().map(|lane| &mut lane[..]));
    lanes
}

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Group<'_, '_, GAINS, WIDTH, SHAPES> {
    /// The job a lane computes; lanes that are left over repeat the last one, unseen.
    #[inline(always)]
    fn job(&self, lane: usize) -> &EncodeJob<'_> {
        &self.jobs[self.members[lane.min(self.members.len() - 1)]]
    }

    #[inline(always)]
    fn rows<L: Lanes, const ROWS: usize>(
        &self,
        field: impl Fn(&Encoder) -> &[f32; ROWS],
        rows: &mut [L::F32],
    ) {
        let mut streams = [&[][..]; LANES_MAX];
        for (lane, stream) in streams.iter_mut().enumerate().take(L::N) {
            *stream = &field(self.job(lane).state)[..];
        }
        L::F32::gather(&streams[..L::N], rows);
    }

    #[inline(always)]
    fn collect<L: Lanes>(&self, signal: &mut [L::F32; SUBFRAME + FRAME]) -> State<L> {
        let zero = L::F32::splat(0.0);
        let mut state = State::<L> {
            gain_product: zero,
            weighted: [zero; PAST + FRAME],
            pasts: [[0.0; PAST + FRAME]; LANES_MAX],
            lsp: [zero; ORDER],
            quantised_lsp: [zero; ORDER],
            synthesis: [zero; ORDER],
            weighting: [zero; ORDER],
            open_residual: [zero; ORDER],
            residual: [zero; ORDER],
            high_pass: [zero; 2],
        };
        self.rows::<L, SUBFRAME>(|s| &s.input, &mut signal[..SUBFRAME]);
        let mut pcm = [[0.0f32; FRAME]; LANES_MAX];
        for (lane, pcm) in pcm.iter_mut().enumerate().take(L::N) {
            let job = self.job(lane);
            for (x, sample) in pcm.iter_mut().zip(job.pcm) {
                *x = f32::from(*sample);
            }
            state.gain_product.set_lane(lane, job.state.gain_product);
            state.pasts[lane][..PAST].copy_from_slice(&job.state.excitation);
        }
        L::F32::gather(&pcm.each_ref().map(|lane| &lane[..])[..L::N], &mut signal[SUBFRAME..]);
        self.rows::<L, PAST>(|s| &s.weighted, &mut state.weighted[..PAST]);
        self.rows::<L, ORDER>(|s| &s.lsp, &mut state.lsp);
        self.rows::<L, ORDER>(|s| &s.quantised_lsp, &mut state.quantised_lsp);
        self.rows::<L, ORDER>(|s| &s.synthesis, &mut state.synthesis);
        self.rows::<L, ORDER>(|s| &s.weighting, &mut state.weighting);
        self.rows::<L, ORDER>(|s| &s.open_residual, &mut state.open_residual);
        self.rows::<L, ORDER>(|s| &s.residual, &mut state.residual);
        self.rows::<L, 2>(|s| &s.high_pass, &mut state.high_pass);
        state
    }

    #[inline(always)]
    fn give_back<L: Lanes>(self, state: &State<L>, signal: &[L::F32; SUBFRAME + FRAME], bits: LaneBits<L>) {
        let input = by_lane::<L, SUBFRAME>(&signal[FRAME..]);
        let weighted = by_lane::<L, PAST>(&state.weighted[FRAME..]);
        let lsp = by_lane::<L, ORDER>(&state.lsp);
        let quantised_lsp = by_lane::<L, ORDER>(&state.quantised_lsp);
        let synthesis = by_lane::<L, ORDER>(&state.synthesis);
        let weighting = by_lane::<L, ORDER>(&state.weighting);
        let open_residual = by_lane::<L, ORDER>(&state.open_residual);
        let residual = by_lane::<L, ORDER>(&state.residual);
        let high_pass = by_lane::<L, 2>(&state.high_pass);
        let frames = bits.finish();
        for (lane, member) in self.members.iter().enumerate() {
            let EncodeJob { state: stream, out, .. } = &mut self.jobs[*member];
            let bytes = stream.quality.bytes();
            out[..bytes].copy_from_slice(&frames[lane][..bytes]);
            stream.gain_product = state.gain_product.lane(lane);
            stream.excitation.copy_from_slice(&state.pasts[lane][FRAME..]);
            stream.input = input[lane];
            stream.weighted = weighted[lane];
            stream.lsp = lsp[lane];
            stream.quantised_lsp = quantised_lsp[lane];
            stream.synthesis = synthesis[lane];
            stream.weighting = weighting[lane];
            stream.open_residual = open_residual[lane];
            stream.residual = residual[lane];
            stream.high_pass = high_pass[lane];
        }
    }
}

/// The frame itself.
struct Frame<'a, M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    state: &'a mut State<M>,
    signal: &'a mut [M::F32; SUBFRAME + FRAME],
}

impl<M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Frame<'_, M, GAINS, WIDTH, SHAPES>
{
    type Out = LaneBits<M>;
    #[inline(always)]
    fn run<L: Lanes>(self) -> LaneBits<M> {
        let Frame { rate, state, signal } = self;
        high_pass::<M>(&HIGH_PASS_INPUT, &mut signal[SUBFRAME..], &mut state.high_pass);
        let lsp = M::call(Analyse::<M> { signal, before: &state.lsp });

        let middle = M::call(ToLpc::<M> { lsp: &interpolate::<M>(&state.lsp, &lsp, 0.625) });
        let mut residual = [M::F32::splat(0.0); FRAME];
        residual.copy_from_slice(&signal[..FRAME]);
        all_zero::<M>(&mut residual, &middle, &mut state.open_residual);
        let gain = rms::<M>(&residual);

        let mut bits = LaneBits::<M>::new();
        bits.put(M::I32::splat(rate.submode as i32), 5);
        let fine = GAINS == 128;
        let (index, quantised) = M::call(Quantise::<M> { lsp: &lsp, fine });
        for index in index.iter().take(if fine { 5 } else { 3 }) {
            bits.put(*index, 6);
        }
        let code = count::<M>(gain, &GAIN_STEP, false);
        bits.put(code, 5);
        let gain = M::F32::lookup(&GAIN, code);
        for sub in 0..SUBFRAMES {
            let part = (sub + 1) as f32 / SUBFRAMES as f32;
            let open = M::call(ToLpc::<M> { lsp: &interpolate::<M>(&state.lsp, &lsp, part) });
            let synthesis =
                M::call(ToLpc::<M> { lsp: &interpolate::<M>(&state.quantised_lsp, &quantised, part) });
            M::call(Subframe { rate, state, signal, sub, open, synthesis, gain, bits: &mut bits });
        }
        state.lsp = lsp;
        state.quantised_lsp = quantised;
        bits
    }
}

/// A quarter of it.
struct Subframe<'a, M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    state: &'a mut State<M>,
    signal: &'a [M::F32; SUBFRAME + FRAME],
    sub: usize,
    open: Lpc<M>,
    synthesis: Lpc<M>,
    gain: M::F32,
    bits: &'a mut LaneBits<M>,
}

impl<M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Subframe<'_, M, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Subframe { rate, state, signal, sub, open, synthesis, gain, bits } = self;
        let now = PAST + sub * SUBFRAME;
        let num = widen::<M>(GAMMA[0], &open);
        let den = widen::<M>(GAMMA[1], &open);
        let response = impulse_response::<M>(&synthesis, &num, &den);

        let mut ringing = [M::F32::splat(VERY_SMALL); SUBFRAME];
        all_pole::<M>(&mut ringing, &synthesis, &mut { state.synthesis });
        pole_zero::<M>(&mut ringing, &num, &den, &mut { state.weighting });

        let mut input = ringing;
        input.copy_from_slice(&signal[sub * SUBFRAME..][..SUBFRAME]);
        let mut target = input;
        pole_zero::<M>(&mut target, &num, &den, &mut { state.weighting });
        state.weighted[now..now + SUBFRAME].copy_from_slice(&target);
        for j in 0..SUBFRAME {
            target[j] -= ringing[j];
        }
        let mut residual = input;
        all_zero::<M>(&mut residual, &synthesis, &mut state.residual);

        let weighting = Weighting { synthesis: &synthesis, num: &num, den: &den, response: &response };
        let (lag, entry, predicted) =
            predict::<M, GAINS, WIDTH, SHAPES>(rate, state, sub, &weighting, &mut target);
        bits.put(lag - M::I32::splat(LAG_MIN as i32), 7);
        bits.put(entry, GAINS.trailing_zeros());

        for j in 0..SUBFRAME {
            residual[j] -= predicted[j];
        }
        let code = count::<M>(rms::<M>(&residual) / gain, rate.innovation_bounds, true);
        bits.put(code, rate.innovation_gains.len().trailing_zeros());
        let gain = M::F32::lookup(rate.innovation_gains, code) * gain;
        let scale = M::F32::splat(1.0) / gain;
        for x in &mut target {
            *x = scale * *x;
        }
        let shapes = &rate.shape_rows;
        let (index, innovation) =
            M::call(Innovate::<M, WIDTH, SHAPES> { shapes, target: &target, response: &response });
        for index in index.iter().take(SUBFRAME / WIDTH) {
            bits.put(*index, SHAPES.trailing_zeros());
        }
        let mut heard = predicted;
        for j in 0..SUBFRAME {
            heard[j] = predicted[j] + gain * innovation[j];
        }
        let pieces = by_lane::<M, SUBFRAME>(&heard);
        for (past, piece) in state.pasts.iter_mut().zip(&pieces) {
            past[now..now + SUBFRAME].copy_from_slice(piece);
        }
        all_pole::<M>(&mut heard, &synthesis, &mut state.synthesis);
        pole_zero::<M>(&mut heard, &num, &den, &mut state.weighting);
        state.weighted[now..now + SUBFRAME].copy_from_slice(&heard);
    }
}

/// Predicts the subframe from the past and takes the prediction out of `target`: lags, gain indices, excitation.
#[inline(always)]
fn predict<L: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize>(
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    state: &mut State<L>,
    sub: usize,
    weighting: &Weighting<'_, L>,
    target: &mut Rows<L>,
) -> (Long<L>, Long<L>, Rows<L>) {
    let mut signal = [L::F32::splat(0.0); PAST + SUBFRAME];
    signal.copy_from_slice(&state.weighted[sub * SUBFRAME..][..PAST + SUBFRAME]);
    let lags = L::call(OpenLoop::<L> { signal: &signal });
    let now = PAST + sub * SUBFRAME;
    let (pasts, gains, gain_product) = (&state.pasts, &rate.gain_terms, state.gain_product);
    let trial = |lag| TryLag::<L, GAINS> { lag, pasts, now, target, weighting, gains, gain_product };
    let [first, second] = lags.map(trial);
    let (mut first, second) = (L::call(first), L::call(second));
    let zero = L::F32::splat(0.0);
    let better = first.error.gt(second.error) | zero.gt(first.error);
    for ((target, first), second) in target.iter_mut().zip(&first.target).zip(&second.target) {
        *target = L::F32::select(better, *second, *first);
    }
    for (first, second) in first.excitation.iter_mut().zip(&second.excitation) {
        *first = L::F32::select(better, *second, *first);
    }
    let entry = L::I32::select(better, second.entry, first.entry);
    let product = L::F32::splat(1024.0).max(state.gain_product);
    state.gain_product = (L::F32::splat(0.03125) * product) * L::F32::lookup(&rate.gain_terms.sum, entry);
    (L::I32::select(better, lags[1], lags[0]), entry, first.excitation)
}

/// Response of N(z/g1) / (D(z/g2) A(z)) to an impulse.
#[inline(always)]
fn impulse_response<L: Lanes>(synthesis: &Lpc<L>, num: &Lpc<L>, den: &Lpc<L>) -> Rows<L> {
    let zero = L::F32::splat(0.0);
    let mut response = [L::F32::splat(VERY_SMALL); SUBFRAME];
    response[0] = L::F32::splat(1.0);
    response[1..=ORDER].copy_from_slice(num);
    let (mut weighting, mut filter) = ([zero; ORDER], [zero; ORDER]);
    for sample in &mut response {
        let x = *sample + weighting[0];
        let y = x + filter[0];
        *sample = y;
        for j in 0..ORDER - 1 {
            weighting[j] = weighting[j + 1] - den[j] * x;
            filter[j] = filter[j + 1] - synthesis[j] * y;
        }
        weighting[ORDER - 1] = -(den[ORDER - 1] * x);
        filter[ORDER - 1] = -(synthesis[ORDER - 1] * y);
    }
    response
}
