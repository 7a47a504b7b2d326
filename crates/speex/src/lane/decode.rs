//! One frame of up to 16 decoders.

use lanes::{F32Lanes, Kernel, LANES_MAX, Lanes, Level, Number, Vector};

use super::enhance::comb;
use super::filter::{Lpc, all_pole, high_pass};
use super::lsp::{ToLpc, interpolate};
use super::pitch::periods;
use super::{Float, lone, nothing, pick, ten};
use crate::bits::BitReader;
use crate::decoder::{BEHIND, EXCITATION_MAX, Fault, HISTORY, Voice, next_frame};
use crate::encoder::{HIGH, LOW, Rate};
use crate::enhance::strengths;
use crate::filter::HIGH_PASS_OUTPUT;
use crate::lsp::{Lsp, unquantise};
use crate::math::GAIN;
use crate::mode::Submode;
use crate::{Decoder, FRAME, LAG_MIN, ORDER, SUBFRAME, SUBFRAMES};

/// One payload of one stream.
#[derive(Debug)]
pub struct DecodeJob<'a> {
    /// The stream.
    pub state: &'a mut Decoder,
    /// What came; its first frame is decoded.
    pub payload: &'a [u8],
    /// 20 ms of sound, concealed where there is no frame that can be read.
    pub pcm: &'a mut [i16; FRAME],
    /// What [`Decoder::decode`] would have returned; `None` while the job is not done.
    pub outcome: Option<Result<(), Fault>>,
}

impl<'a> DecodeJob<'a> {
    /// A job that is not done.
    pub fn new(state: &'a mut Decoder, payload: &'a [u8], pcm: &'a mut [i16; FRAME]) -> Self {
        Self { state, payload, pcm, outcome: None }
    }
}

/// Kinds of frames that are decoded in lanes: two sub-modes, with the enhancer or without.
const KINDS: usize = 4;

/// Decodes a frame of every job: each as [`Decoder::decode`] would, bit for bit.
///
/// Any number of jobs in any order. Frames of other sub-modes than those of quality 3 and 8, frames after a loss,
/// payloads that cannot be read and lone streams take the scalar way.
pub fn decode(level: Level, jobs: &mut [DecodeJob<'_>]) {
    let mut members = [[0; LANES_MAX]; KINDS];
    let mut counts = [0; KINDS];
    for number in 0..jobs.len() {
        let Some(kind) = kind(&jobs[number]) else {
            alone(&mut jobs[number]);
            continue;
        };
        members[kind][counts[kind]] = number;
        counts[kind] += 1;
        if counts[kind] == level.lanes() {
            group(level, kind, jobs, &members[kind][..counts[kind]]);
            counts[kind] = 0;
        }
    }
    for kind in 0..KINDS {
        group(level, kind, jobs, &members[kind][..counts[kind]]);
    }
}

fn kind(job: &DecodeJob<'_>) -> Option<usize> {
    let enhance = usize::from(job.state.enhance);
    match next_frame(&mut BitReader::new(job.payload)) {
        _ if job.state.lost > 0 => None,
        Ok(Some((3, _))) => Some(enhance),
        Ok(Some((5, _))) => Some(2 + enhance),
        _ => None,
    }
}

fn alone(job: &mut DecodeJob<'_>) {
    job.outcome = Some(job.state.decode(job.payload, job.pcm));
}

fn group(level: Level, kind: usize, jobs: &mut [DecodeJob<'_>], members: &[usize]) {
    if members.len() <= lone(level) {
        for &member in members {
            alone(&mut jobs[member]);
        }
        return;
    }
    let level = level.narrowed(members.len());
    let enhance = kind % 2 == 1;
    if kind < 2 {
        level.run(Group { rate: &LOW, enhance, jobs, members });
    } else {
        level.run(Group { rate: &HIGH, enhance, jobs, members });
    }
}

/// Jobs of one kind that fit the lanes.
struct Group<'a, 'j, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    enhance: bool,
    jobs: &'a mut [DecodeJob<'j>],
    members: &'a [usize],
}

/// A number of each lane.
type PerLane<T> = [T; LANES_MAX];

/// What the payloads say, by subframe and lane.
struct Fields {
    gain: PerLane<f32>,
    lag: [PerLane<i32>; SUBFRAMES],
    taps: [[PerLane<f32>; 3]; SUBFRAMES],
    innovation_gain: [PerLane<f32>; SUBFRAMES],
    shape: [[PerLane<usize>; 8]; SUBFRAMES],
    voice: PerLane<Voice>,
    lsp: PerLane<Lsp>,
}

/// Excitation of every lane: history, the frame, and zeros that the enhancer may look at.
pub type Excitations = [[f32; HISTORY + FRAME + BEHIND]; LANES_MAX];

/// What [`Decoder`] holds, a row an element, and the frame in progress.
struct State<L: Lanes> {
    excitations: Excitations,
    /// From a subframe before the frame: as much as is synthesised.
    signal: [Float<L>; FRAME],
    before: Lpc<L>,
    lsp: Lpc<L>,
    synthesis: Lpc<L>,
    memory: Lpc<L>,
    high_pass: [Float<L>; 2],
}

/// Short fields of a stream one after the other: pairs before and of the frame, filter, its memory, the high-pass
/// filter's.
const SMALL: usize = 44;

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Group<'_, '_, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let fields = self.fields(L::N);
        let zero = L::F32::splat(0.0);
        let mut state = State::<L> {
            excitations: [[0.0; HISTORY + FRAME + BEHIND]; LANES_MAX],
            signal: [zero; FRAME],
            before: [zero; ORDER],
            lsp: [zero; ORDER],
            synthesis: [zero; ORDER],
            memory: [zero; ORDER],
            high_pass: [zero; 2],
        };
        self.collect(&fields, &mut state);
        for sub in 0..SUBFRAMES {
            L::call(Subframe { rate: self.rate, fields: &fields, state: &mut state, sub });
        }
        if let (true, Some(strength)) = (self.enhance, self.rate.comb) {
            let mut lag = [L::I32::splat(LAG_MIN as i32)];
            for (slot, voice) in L::I32::flat_mut(&mut lag).iter_mut().zip(&fields.voice) {
                *slot = voice.lag as i32;
            }
            comb::<L>(&state.excitations, &mut state.signal, lag[0], strengths(strength));
        }
        L::call(Synthesise { state: &mut state });
        self.give_back(&fields, &state);
    }
}

impl<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Group<'_, '_, GAINS, WIDTH, SHAPES> {
    /// The job a lane computes; lanes that are left over repeat the last one, unseen.
    #[inline(always)]
    fn job(&self, lane: usize) -> &DecodeJob<'_> {
        &self.jobs[self.members[lane.min(self.members.len() - 1)]]
    }

    fn fields(&self, lanes: usize) -> Fields {
        let mut fields = Fields {
            gain: [0.0; LANES_MAX],
            lag: [[LAG_MIN as i32; LANES_MAX]; SUBFRAMES],
            taps: [[[0.0; LANES_MAX]; 3]; SUBFRAMES],
            innovation_gain: [[0.0; LANES_MAX]; SUBFRAMES],
            shape: [[[0; LANES_MAX]; 8]; SUBFRAMES],
            voice: [Voice::new(); LANES_MAX],
            lsp: [[0.0; ORDER]; LANES_MAX],
        };
        for lane in 0..lanes {
            let mut bits = BitReader::new(self.job(lane).payload);
            // `kind` found a frame here.
            if let Ok(Some((_, mode))) = next_frame(&mut bits) {
                self.read(lane, mode, &mut bits, &mut fields);
            }
        }
        fields
    }

    fn read(&self, lane: usize, mode: &Submode, bits: &mut BitReader<'_>, fields: &mut Fields) {
        let rate = self.rate;
        fields.lsp[lane] = unquantise(bits, mode.fine_lsp);
        let gain = GAIN[bits.take(5)];
        fields.gain[lane] = gain;
        for sub in 0..SUBFRAMES {
            let lag = LAG_MIN + bits.take(7);
            let entry = bits.take(GAINS.trailing_zeros() as usize);
            let taps = rate.gain_terms.taps.each_ref().map(|tap| tap[entry % GAINS]);
            fields.voice[lane].hear(lag, taps);
            fields.lag[sub][lane] = lag as i32;
            for (row, tap) in fields.taps[sub].iter_mut().zip(taps) {
                row[lane] = tap;
            }
            let code = bits.take(rate.innovation_gains.len().trailing_zeros() as usize);
            let share = rate.innovation_gains.get(code).copied().unwrap_or(0.0);
            fields.innovation_gain[sub][lane] = share * gain;
            for row in fields.shape[sub].iter_mut().take(SUBFRAME / WIDTH) {
                row[lane] = bits.take(SHAPES.trailing_zeros() as usize);
            }
        }
    }

    #[inline(always)]
    fn collect<L: Lanes>(&self, fields: &Fields, state: &mut State<L>) {
        let mut small = [[0.0; SMALL]; LANES_MAX];
        for lane in 0..L::N {
            let stream = &*self.job(lane).state;
            let small = &mut small[lane];
            small[..10].copy_from_slice(if stream.first { &fields.lsp[lane] } else { &stream.lsp });
            small[10..20].copy_from_slice(&fields.lsp[lane]);
            small[20..30].copy_from_slice(&stream.synthesis);
            small[30..40].copy_from_slice(&stream.memory);
            small[40..42].copy_from_slice(&stream.high_pass);
            state.excitations[lane][..HISTORY].copy_from_slice(&stream.excitation);
        }
        let mut streams = [&[][..]; LANES_MAX];
        for (stream, small) in streams.iter_mut().zip(&small) {
            *stream = &small[..];
        }
        let mut rows = [L::F32::splat(0.0); SMALL];
        L::F32::gather(&streams[..L::N], &mut rows);
        state.before = ten(&rows, 0);
        state.lsp = ten(&rows, 10);
        state.synthesis = ten(&rows, 20);
        state.memory = ten(&rows, 30);
        state.high_pass = [rows[40], rows[41]];
        for (stream, excitation) in streams.iter_mut().zip(&state.excitations) {
            *stream = &excitation[HISTORY - SUBFRAME..HISTORY];
        }
        L::F32::gather(&streams[..L::N], &mut state.signal[..SUBFRAME]);
    }

    #[inline(always)]
    fn give_back<L: Lanes>(self, fields: &Fields, state: &State<L>) {
        let mut rows = [state.high_pass[0]; SMALL];
        rows[20..30].copy_from_slice(&state.synthesis);
        rows[30..40].copy_from_slice(&state.memory);
        rows[40..42].copy_from_slice(&state.high_pass);
        let mut small = [[0.0; SMALL]; LANES_MAX];
        let mut streams = [const { nothing() }; LANES_MAX];
        for (stream, small) in streams.iter_mut().zip(&mut small) {
            *stream = &mut small[..];
        }
        L::F32::scatter(&rows, &mut streams);
        let mut pcm = [[0.0f32; FRAME]; LANES_MAX];
        for (stream, pcm) in streams.iter_mut().zip(&mut pcm) {
            *stream = &mut pcm[..];
        }
        L::F32::scatter(&state.signal, &mut streams);
        for (lane, member) in self.members.iter().enumerate() {
            let DecodeJob { state: stream, pcm: out, outcome, .. } = &mut self.jobs[*member];
            let small = &small[lane];
            stream.silent = false;
            stream.after(&fields.voice[lane], &fields.lsp[lane]);
            stream.synthesis = ten(small, 20);
            stream.memory = ten(small, 30);
            stream.high_pass = [small[40], small[41]];
            stream.excitation.copy_from_slice(&state.excitations[lane][FRAME..FRAME + HISTORY]);
            for (sample, x) in out.iter_mut().zip(&pcm[lane]) {
                *sample = *x as i16;
            }
            *outcome = Some(Ok(()));
        }
    }
}

/// Excitation of a quarter.
struct Subframe<'a, M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    rate: &'static Rate<GAINS, WIDTH, SHAPES>,
    fields: &'a Fields,
    state: &'a mut State<M>,
    sub: usize,
}

impl<M: Lanes, const GAINS: usize, const WIDTH: usize, const SHAPES: usize> Kernel
    for Subframe<'_, M, GAINS, WIDTH, SHAPES>
{
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Subframe { rate, fields, state, sub } = self;
        let now = HISTORY + sub * SUBFRAME;
        let past = periods::<M, { HISTORY + FRAME + BEHIND }>(
            &state.excitations,
            now,
            M::I32::load(&fields.lag[sub]),
        );
        let [g0, g1, g2] = &fields.taps[sub];
        let (g0, g1, g2) = (M::F32::load(g0), M::F32::load(g1), M::F32::load(g2));
        let gain = M::F32::load(&fields.innovation_gain[sub]);
        let (low, high) = (M::F32::splat(-EXCITATION_MAX), M::F32::splat(EXCITATION_MAX));
        let mut rows = [M::F32::splat(0.0); SUBFRAME];
        for (part, shape) in fields.shape[sub].iter().enumerate().take(SUBFRAME / WIDTH) {
            let shape = pick::<M, WIDTH, SHAPES>(&rate.shape_rows, shape);
            for (i, shape) in shape.iter().enumerate() {
                let j = part * WIDTH + i;
                let predicted = (g2 * past[j] + g1 * past[j + 1]) + g0 * past[j + 2];
                let number = predicted.eq(predicted);
                let limited = M::F32::select(number, predicted.max(low).min(high), M::F32::splat(0.0));
                rows[j] = limited + gain * *shape;
            }
        }
        let mut pieces = [const { nothing() }; LANES_MAX];
        for (piece, excitation) in pieces.iter_mut().zip(&mut state.excitations) {
            *piece = &mut excitation[now..now + SUBFRAME];
        }
        M::F32::scatter(&rows, &mut pieces);
        if let Some(signal) = state.signal.get_mut((sub + 1) * SUBFRAME..(sub + 2) * SUBFRAME) {
            signal.copy_from_slice(&rows);
        }
    }
}

/// Excitation to samples, which are rounded but still floats.
struct Synthesise<'a, M: Lanes> {
    state: &'a mut State<M>,
}

impl<M: Lanes> Kernel for Synthesise<'_, M> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let State { signal, before, lsp, synthesis, memory, high_pass: hp, .. } = self.state;
        for sub in 0..SUBFRAMES {
            let part = (sub + 1) as f32 / SUBFRAMES as f32;
            all_pole::<M>(&mut signal[sub * SUBFRAME..][..SUBFRAME], synthesis, memory);
            *synthesis = M::call(ToLpc::<M> { lsp: &interpolate::<M>(before, lsp, part) });
        }
        high_pass::<M>(&HIGH_PASS_OUTPUT, signal, hp);
        // Halves up; adding a half before flooring would round in single precision.
        for x in signal {
            let floor = x.floor();
            let up = (*x - floor).ge(M::F32::splat(0.5));
            let rounded = M::F32::select(up, floor + M::F32::splat(1.0), floor);
            let limited = rounded.max(M::F32::splat(-32768.0)).min(M::F32::splat(32767.0));
            *x = M::F32::select(x.eq(*x), limited, M::F32::splat(0.0));
        }
    }
}
