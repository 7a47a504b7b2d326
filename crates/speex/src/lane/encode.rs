//! One frame of up to 16 encoders.

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Level, Number, Vector};

use super::bits::LaneBits;
use super::filter::{Energy, Lpc, all_pole, all_zero, high_pass, pole_zero, widen};
use super::innovation::{Innovate, Searched};
use super::lsp::{Analyse, Quantise, ToLpc, count, interpolate, rms};
use super::pitch::{OpenLoop, Pasts, Rows, Trial, TryLag, Weighting};
use super::{Float, Long, lone, nothing, slices, ten};
use crate::encoder::{GAMMA, HIGH, LOW, Rate, VERY_SMALL};
use crate::filter::HIGH_PASS_INPUT;
use crate::math::{GAIN, GAIN_STEP};
use crate::pitch::GainTerms;
use crate::{BYTES_MAX, Encoder, FRAME, LAG_MAX, LAG_MIN, ORDER, PAST, Quality, SUBFRAME, SUBFRAMES};

/// One frame of one stream.
pub struct EncodeJob<'a> {
    /// The stream.
    pub state: &'a mut Encoder,
    /// 20 ms of sound.
    pub pcm: &'a [i16; FRAME],
    /// The frame, in its first [`Quality::bytes`] bytes; the rest stays untouched.
    pub out: &'a mut [u8; BYTES_MAX],
    /// It has been coded: the state is that after the frame. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a> EncodeJob<'a> {
    /// A job that is not done.
    pub fn new(state: &'a mut Encoder, pcm: &'a [i16; FRAME], out: &'a mut [u8; BYTES_MAX]) -> Self {
        Self { state, pcm, out, done: false }
    }
}

/// Codes a frame of every job: each as [`Encoder::encode`] would, bit for bit.
///
/// Any number of jobs in any order; qualities may be mixed, but groups are fuller when they are not. A stream's first
/// frame and lone streams take the scalar way. Should it panic, every job is either done or untouched.
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
    job.done = true;
}

fn group(level: Level, jobs: &mut [EncodeJob<'_>], members: &[usize]) {
    if members.len() <= lone(level) {
        for &member in members {
            alone(&mut jobs[member]);
        }
        return;
    }
    let level = level.narrowed(members.len());
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
    /// 40 samples before the frame, then the frame.
    signal: [Float<L>; SUBFRAME + FRAME],
    weighted: [Float<L>; LAG_MAX + FRAME],
    pasts: Pasts,
    small: Small<L>,
}

/// Its short fields one after the other: two sets of line spectral pairs, four filters' memories, the high-pass filter's,
/// the product of gains, and one over.
const SMALL: usize = 64;

struct Small<L: Lanes> {
    lsp: Lpc<L>,
    quantised_lsp: Lpc<L>,
    synthesis: Lpc<L>,
    weighting: Lpc<L>,
    open_residual: Lpc<L>,
    residual: Lpc<L>,
    high_pass: [Float<L>; 2],
    gain_product: Float<L>,
}

impl<L: Lanes> Small<L> {
    #[inline(always)]
    fn from_streams(streams: &[[f32; SMALL]; LANES_MAX]) -> Self {
        let mut rows = [L::F32::splat(0.0); SMALL];
        L::F32::gather(&slices(streams)[..L::N], &mut rows);
        let rows = &rows;
        Self {
            lsp: ten(rows, 0),
            quantised_lsp: ten(rows, 10),
            synthesis: ten(rows, 20),
            weighting: ten(rows, 30),
            open_residual: ten(rows, 40),
            residual: ten(rows, 50),
            high_pass: [rows[60], rows[61]],
            gain_product: rows[62],
        }
    }

    #[inline(always)]
    fn to_rows(&self) -> [L::F32; SMALL] {
        let mut rows = [self.gain_product; SMALL];
        rows[..10].copy_from_slice(&self.lsp);
        rows[10..20].copy_from_slice(&self.quantised_lsp);
        rows[20..30].copy_from_slice(&self.synthesis);
        rows[30..40].copy_from_slice(&self.weighting);
        rows[40..50].copy_from_slice(&self.open_residual);
        rows[50..60].copy_from_slice(&self.residual);
        rows[60..62].copy_from_slice(&self.high_pass);
        rows
    }
}

/// What the lanes of a group read.
struct Streams<'a> {
    pcm: [&'a [i16; FRAME]; LANES_MAX],
    input: [&'a [f32]; LANES_MAX],
    weighted: [&'a [f32]; LANES_MAX],
    excitation: [&'a [f32; PAST]; LANES_MAX],
    small: [[f32; SMALL]; LANES_MAX],
}

/// Short fields of one stream.
fn pack(state: &Encoder) -> [f32; SMALL] {
    let mut small = [state.gain_product; SMALL];
    small[..10].copy_from_slice(&state.lsp);
    small[10..20].copy_from_slice(&state.quantised_lsp);
    small[20..30].copy_from_slice(&state.synthesis);
    small[30..40].copy_from_slice(&state.weighting);
    small[40..50].copy_from_slice(&state.open_residual);
    small[50..60].copy_from_slice(&state.residual);
    small[60..62].copy_from_slice(&state.high_pass);
    small
}

fn unpack(small: &[f32; SMALL], state: &mut Encoder) {
    state.lsp = ten(small, 0);
    state.quantised_lsp = ten(small, 10);
    state.synthesis = ten(small, 20);
    state.weighting = ten(small, 30);
    state.open_residual = ten(small, 40);
    state.residual = ten(small, 50);
    state.high_pass = [small[60], small[61]];
    state.gain_product = small[62];
}

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Group<'_, '_, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let streams = self.streams(L::N);
        let zero = L::F32::splat(0.0);
        let mut state = State::<L> {
            signal: [zero; SUBFRAME + FRAME],
            weighted: [zero; LAG_MAX + FRAME],
            pasts: [[0.0; PAST + FRAME]; LANES_MAX],
            small: Small::from_streams(&streams.small),
        };
        Self::collect(&streams, &mut state);
        let bits = L::call(Frame { rate: self.rate, state: &mut state });
        self.give_back(&state, bits);
    }
}

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Group<'_, '_, GAINS, WIDTH, SHAPES> {
    /// The job a lane computes; lanes that are left over repeat the last one, unseen.
    #[inline(always)]
    fn job(&self, lane: usize) -> &EncodeJob<'_> {
        &self.jobs[self.members[lane.min(self.members.len() - 1)]]
    }

    /// What the lanes read. A function of its own, so that slices are not collected by vector instructions.
    #[inline(never)]
    fn streams(&self, lanes: usize) -> Streams<'_> {
        let job = self.job(0);
        let mut streams = Streams {
            pcm: [job.pcm; LANES_MAX],
            input: [&job.state.input; LANES_MAX],
            weighted: [&job.state.weighted; LANES_MAX],
            excitation: [&job.state.excitation; LANES_MAX],
            small: [[0.0; SMALL]; LANES_MAX],
        };
        for lane in 0..lanes {
            let job = self.job(lane);
            streams.pcm[lane] = job.pcm;
            streams.input[lane] = &job.state.input;
            streams.weighted[lane] = &job.state.weighted;
            streams.excitation[lane] = &job.state.excitation;
            streams.small[lane] = pack(job.state);
        }
        streams
    }

    #[inline(always)]
    fn collect<L: Lanes>(streams: &Streams<'_>, state: &mut State<L>) {
        let mut sound = [[0.0f32; FRAME]; LANES_MAX];
        for (sound, pcm) in sound.iter_mut().zip(&streams.pcm).take(L::N) {
            for (x, sample) in sound.iter_mut().zip(*pcm) {
                *x = f32::from(*sample);
            }
        }
        for (past, excitation) in state.pasts.iter_mut().zip(&streams.excitation) {
            past[..PAST].copy_from_slice(&excitation[..]);
        }
        let (before, frame) = state.signal.split_at_mut(SUBFRAME);
        L::F32::gather(&streams.input[..L::N], before);
        L::F32::gather(&slices(&sound)[..L::N], frame);
        L::F32::gather(&streams.weighted[..L::N], &mut state.weighted[..LAG_MAX]);
    }

    #[inline(always)]
    fn give_back<L: Lanes>(self, state: &State<L>, bits: LaneBits<L>) {
        let frames = bits.finish();
        let mut small = [[0.0; SMALL]; LANES_MAX];
        L::F32::scatter(&state.small.to_rows(), &mut small.each_mut().map(|lane| &mut lane[..]));
        let mut inputs = [const { nothing() }; LANES_MAX];
        let mut weighted = [const { nothing() }; LANES_MAX];
        let mut lane = 0;
        // Members are in rising order.
        let offset = self.members[0];
        for (number, job) in self.jobs[offset..].iter_mut().enumerate() {
            match self.members.get(lane) {
                Some(member) if *member == offset + number => {}
                Some(_) => continue,
                None => break,
            }
            let bytes = job.state.quality.bytes();
            job.out[..bytes].copy_from_slice(&frames[lane][..bytes]);
            unpack(&small[lane], job.state);
            job.done = true;
            let Encoder { excitation, input, weighted: past, .. } = &mut *job.state;
            excitation.copy_from_slice(&state.pasts[lane][FRAME..]);
            inputs[lane] = &mut input[..];
            weighted[lane] = &mut past[..];
            lane += 1;
        }
        L::F32::scatter(&state.signal[FRAME..], &mut inputs[..lane]);
        L::F32::scatter(&state.weighted[FRAME..], &mut weighted[..lane]);
    }
}

/// Room that the subframes use in turn.
struct Room<L: Lanes, const WIDTH: usize, const SHAPES: usize> {
    trials: [Trial<L>; 2],
    searched: Searched<L, WIDTH, SHAPES>,
}

/// The frame itself.
struct Frame<'a, M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    state: &'a mut State<M>,
}

impl<M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Frame<'_, M, GAINS, WIDTH, SHAPES>
{
    type Out = LaneBits<M>;
    #[inline(always)]
    fn run<L: Lanes>(self) -> LaneBits<M> {
        let Frame { rate, state } = self;
        let State { signal, small, .. } = state;
        high_pass::<M>(&HIGH_PASS_INPUT, &mut signal[SUBFRAME..], &mut small.high_pass);
        let lsp = M::call(Analyse::<M> { signal, before: &small.lsp });

        let middle = M::call(ToLpc::<M> { lsp: &interpolate::<M>(&small.lsp, &lsp, 0.625) });
        let mut energy = Energy::<M>(M::F32::splat(0.0));
        all_zero::<M>(&signal[..FRAME], &middle, &mut small.open_residual, &mut energy);
        let gain = rms::<M>(energy.0, FRAME);

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
        let mut room =
            Room::<M, WIDTH, SHAPES> { trials: [Trial::new(), Trial::new()], searched: Searched::new() };
        for sub in 0..SUBFRAMES {
            let part = (sub + 1) as f32 / SUBFRAMES as f32;
            let small = &state.small;
            let open = M::call(ToLpc::<M> { lsp: &interpolate::<M>(&small.lsp, &lsp, part) });
            let synthesis =
                M::call(ToLpc::<M> { lsp: &interpolate::<M>(&small.quantised_lsp, &quantised, part) });
            M::call(Subframe {
                rate,
                state,
                room: &mut room,
                sub,
                open: &open,
                synthesis: &synthesis,
                gain,
                bits: &mut bits,
            });
        }
        state.small.lsp = lsp;
        state.small.quantised_lsp = quantised;
        bits
    }
}

/// A quarter of it.
struct Subframe<'a, M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    state: &'a mut State<M>,
    room: &'a mut Room<M, WIDTH, SHAPES>,
    sub: usize,
    open: &'a Lpc<M>,
    synthesis: &'a Lpc<M>,
    gain: M::F32,
    bits: &'a mut LaneBits<M>,
}

impl<M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Subframe<'_, M, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Subframe { rate, state, room, sub, open, synthesis, gain, bits } = self;
        let from = sub * SUBFRAME;
        let num = widen::<M>(GAMMA[0], open);
        let den = widen::<M>(GAMMA[1], open);
        let response = impulse_response::<M>(synthesis, &num, &den);
        let input = &state.signal[from..from + SUBFRAME];

        let mut ringing = [M::F32::splat(VERY_SMALL); SUBFRAME];
        all_pole::<M>(&mut ringing, synthesis, &mut { state.small.synthesis });
        pole_zero::<M>(&mut ringing, &num, &den, &mut { state.small.weighting });

        let now = LAG_MAX + from..LAG_MAX + from + SUBFRAME;
        let weighted = &mut state.weighted[now.clone()];
        weighted.copy_from_slice(input);
        pole_zero::<M>(weighted, &num, &den, &mut { state.small.weighting });
        // What is not ringing is to be coded.
        let mut target = ringing;
        for (target, weighted) in target.iter_mut().zip(weighted) {
            *target = *weighted - *target;
        }
        let mut residual = [M::F32::splat(0.0); SUBFRAME];
        all_zero::<M>(input, synthesis, &mut state.small.residual, &mut residual);

        let weighting = Weighting { synthesis, num: &num, den: &den, response: &response };
        let (lag, entry) =
            predict::<M, GAINS>(&rate.gain_terms, state, sub, &weighting, &mut target, &mut room.trials);
        let predicted = &mut room.trials[0].excitation;
        bits.put(lag - M::I32::splat(LAG_MIN as i32), 7);
        bits.put(entry, GAINS.trailing_zeros());

        let mut energy = M::F32::splat(0.0);
        for j in 0..SUBFRAME {
            let x = residual[j] - predicted[j];
            energy += x * x;
        }
        let fine = rms::<M>(energy, SUBFRAME) / gain;
        let code = count::<M>(fine, rate.innovation_bounds, true);
        bits.put(code, rate.innovation_gains.len().trailing_zeros());
        let gain = M::F32::lookup(rate.innovation_gains, code) * gain;
        let scale = M::F32::splat(1.0) / gain;
        for x in &mut target {
            *x = scale * *x;
        }
        let (shapes, searched) = (&rate.shape_rows, &mut room.searched);
        M::call(Innovate::<M, WIDTH, SHAPES> { shapes, target: &mut target, response: &response, searched });
        for index in searched.index.iter().take(SUBFRAME / WIDTH) {
            bits.put(*index, SHAPES.trailing_zeros());
        }
        for (excitation, innovation) in predicted.iter_mut().zip(&searched.excitation) {
            *excitation += gain * *innovation;
        }
        let mut pieces = [const { nothing() }; LANES_MAX];
        for (piece, past) in pieces.iter_mut().zip(&mut state.pasts) {
            *piece = &mut past[PAST + from..PAST + from + SUBFRAME];
        }
        M::F32::scatter(predicted, &mut pieces);
        let heard = &mut state.weighted[now];
        heard.copy_from_slice(predicted);
        all_pole::<M>(heard, synthesis, &mut state.small.synthesis);
        pole_zero::<M>(heard, &num, &den, &mut state.small.weighting);
    }
}

/// Predicts the subframe from the past and takes the prediction out of `target`. Returns lags and gain indices; the
/// predicted excitation is left in the first of `trials`.
#[inline(always)]
fn predict<L: Lanes, const GAINS: usize>(
    gains: &GainTerms<GAINS>,
    state: &mut State<L>,
    sub: usize,
    weighting: &Weighting<'_, L>,
    target: &mut Rows<L>,
    trials: &mut [Trial<L>; 2],
) -> (Long<L>, Long<L>) {
    let zero = L::F32::splat(0.0);
    let Some(signal) = state.weighted[sub * SUBFRAME..].first_chunk() else {
        return (L::I32::splat(LAG_MIN as i32), L::I32::splat(0));
    };
    let lags = L::call(OpenLoop::<L> { signal });
    let [first, second] = trials;
    for (lag, trial) in [(lags[0], &mut *first), (lags[1], &mut *second)] {
        L::call(TryLag::<L, GAINS> {
            lag,
            pasts: &state.pasts,
            now: PAST + sub * SUBFRAME,
            target,
            weighting,
            gains,
            gain_product: state.small.gain_product,
            trial,
        });
    }
    let better = first.error.gt(second.error) | zero.gt(first.error);
    for ((target, first), second) in target.iter_mut().zip(&first.target).zip(&second.target) {
        *target = L::F32::select(better, *second, *first);
    }
    for (first, second) in first.excitation.iter_mut().zip(&second.excitation) {
        *first = L::F32::select(better, *second, *first);
    }
    let entry = L::I32::select(better, second.entry, first.entry);
    let product = L::F32::splat(1024.0).max(state.small.gain_product);
    state.small.gain_product = (L::F32::splat(0.03125) * product) * L::F32::lookup(&gains.sum, entry);
    (L::I32::select(better, lags[1], lags[0]), entry)
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
