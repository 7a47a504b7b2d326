//! Many streams at once: what they do alike in lanes, what each does at its own places within the stream.
//!
//! Filters, pitch searches and smoothing take a sample of every stream at a time. The codebook is read at places and in
//! ways that each payload chooses, so that part takes many samples of one stream at a time. The sums are those of the
//! plain decoder in the same order.

mod codebook;
mod enhance;
mod recursive;
mod spectrum;

use lanes::{F32Lanes, I16Lanes, Kernel, LANES_MAX, Lanes, Level, Number, Vector};

use super::enhancer::HISTORY;
use super::{Decoder, Unusable};
use crate::bits::Frame;
use crate::lsf::dequantise;
use crate::start::STATE_RANGE;
use crate::tables::{SCALE_AMPLITUDES, STATE_LEVELS};
use crate::{Mode, ORDER, SAMPLES_MAX, STATE_MAX, SUB_BLOCKS_MAX, Shape};

/// A payload of one stream to decode.
#[derive(Debug)]
pub struct DecodeJob<'a, M: Mode> {
    /// The stream's decoder.
    pub state: &'a mut Decoder<M>,
    /// What came.
    pub payload: &'a [u8],
    /// Where the samples go.
    pub pcm: &'a mut M::Pcm,
    /// What [`Decoder::decode`] would have returned; `None` while the job is not done.
    pub outcome: Option<Result<(), Unusable>>,
}

impl<'a, M: Mode> DecodeJob<'a, M> {
    /// A job that is not done.
    pub fn new(state: &'a mut Decoder<M>, payload: &'a [u8], pcm: &'a mut M::Pcm) -> Self {
        Self { state, payload, pcm, outcome: None }
    }
}

/// Decodes the jobs that are not done, in groups: each gets what [`Decoder::decode`] gives, bit for bit.
///
/// Should it panic, every job is either done or untouched.
pub fn decode<M: Mode>(level: Level, jobs: &mut [DecodeJob<'_, M>]) {
    decode_all::<M, false>(level, jobs);
}

/// As [`decode`] with fused multiplications and sums in an order that suits the CPU: the samples differ in their last
/// bits from those of other levels.
pub fn decode_fast<M: Mode>(level: Level, jobs: &mut [DecodeJob<'_, M>]) {
    decode_all::<M, true>(level, jobs);
}

/// Fewer streams than this are decoded one by one: a group costs as much as this many.
const GROUP_MIN: usize = 3;

fn decode_all<M: Mode, const FAST: bool>(level: Level, jobs: &mut [DecodeJob<'_, M>]) {
    for enhances in [false, true] {
        let mut members = Members::new();
        for index in 0..jobs.len() {
            let job = &mut jobs[index];
            if job.state.enhances != enhances || job.outcome.is_some() {
                continue;
            }
            let Some(frame) = Frame::unpack(M::shape(), job.payload) else {
                job.state.conceal(job.pcm);
                job.outcome = Some(Err(Unusable));
                continue;
            };
            members.push(M::shape(), index, &frame);
            if members.count == level.lanes() {
                members.decode::<M, FAST>(level, jobs);
            }
        }
        members.decode::<M, FAST>(level, jobs);
    }
}

/// The streams of a group, and what is looked up in tables for each.
struct Members {
    /// Which job each is.
    jobs: [usize; LANES_MAX],
    count: usize,
    parameters: [Parameters; LANES_MAX],
}

/// A stream's frame, as lanes want it. Those of a lane without a stream are some.
#[derive(Clone, Copy)]
struct Parameters {
    frame: Frame,
    /// Frequencies of both sets as the indices name them. As many rows as lanes are transposed fastest.
    lsf: [[f32; LANES_MAX]; 2],
    /// Samples of the start state before its filter, the last one first.
    state: [f32; STATE_MAX],
}

impl Members {
    fn new() -> Self {
        let parameters =
            Parameters { frame: Frame::default(), lsf: [[0.0; LANES_MAX]; 2], state: [0.0; STATE_MAX] };
        Self { jobs: [0; LANES_MAX], count: 0, parameters: [parameters; LANES_MAX] }
    }

    /// Takes in a job. There is room: a full group is decoded at once.
    fn push(&mut self, shape: &Shape, job: usize, frame: &Frame) {
        self.jobs[self.count] = job;
        let parameters = &mut self.parameters[self.count];
        self.count += 1;
        parameters.frame = *frame;
        for (lsf, &index) in parameters.lsf.iter_mut().zip(&frame.lsf).take(shape.lsf_sets) {
            lsf[..ORDER].copy_from_slice(&dequantise(index));
        }
        let unit = SCALE_AMPLITUDES[usize::from(frame.scale) % SCALE_AMPLITUDES.len()] / STATE_RANGE;
        let values = STATE_LEVELS.map(|level| unit * level);
        for (sample, &level) in parameters.state[..shape.state].iter_mut().rev().zip(&frame.state) {
            *sample = values[usize::from(level) % values.len()];
        }
    }

    fn decode<M: Mode, const FAST: bool>(&mut self, level: Level, jobs: &mut [DecodeJob<'_, M>]) {
        let count = core::mem::take(&mut self.count);
        let members = &self.jobs[..count];
        if count < GROUP_MIN {
            for (&index, parameters) in members.iter().zip(&self.parameters) {
                let job = &mut jobs[index];
                job.state.decode_frame(&parameters.frame, job.pcm);
                job.outcome = Some(Ok(()));
            }
        } else {
            let parameters = &self.parameters;
            level.narrowed(count).run(Group::<M, FAST> { parameters, members, jobs });
        }
    }
}

/// Up to a group of streams that all enhance or all do not.
struct Group<'a, 'b, M: Mode, const FAST: bool> {
    parameters: &'a [Parameters; LANES_MAX],
    /// The job of each lane that has one.
    members: &'a [usize],
    jobs: &'a mut [DecodeJob<'b, M>],
}

/// A filter of every stream.
type LpcRows<L> = crate::lsf_rows::LpcRows<<L as Lanes>::F32>;
/// A filter of every stream for each sub-block.
type FilterRows<L> = [LpcRows<L>; SUB_BLOCKS_MAX];
/// A frame of samples of every stream.
type FrameRows<L> = [<L as Lanes>::F32; SAMPLES_MAX];

/// Zeros in front of a stream's residual: where its codebooks begin, and room for a vector before them.
const FRONT: usize = 160;
/// A stream's residual with zeros on both sides.
type Residual = [f32; FRONT + SAMPLES_MAX + LANES_MAX];

/// What is remembered in recursive filters, frequencies and filters, in the order of these ranges.
mod kept {
    use super::ORDER;
    use core::ops::Range;
    pub const OUTPUTS: Range<usize> = 0..ORDER;
    pub const HIGH_PASS: Range<usize> = ORDER..ORDER + 4;
    pub const LSF: Range<usize> = HIGH_PASS.end..HIGH_PASS.end + ORDER;
    pub const FILTERS: [Range<usize>; 2] =
        [LSF.end..LSF.end + ORDER + 1, LSF.end + ORDER + 1..LSF.end + 2 * (ORDER + 1)];
    /// All of them, in whole blocks of four.
    pub const COUNT: usize = FILTERS[1].end.next_multiple_of(4);
}

/// What is kept of every stream.
type KeptRows<L> = [<L as Lanes>::F32; kept::COUNT];

impl<M: Mode, const FAST: bool> Kernel for Group<'_, '_, M, FAST> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { parameters, members, jobs } = self;
        let shape = M::shape();
        let zero = L::F32::splat(0.0);

        let mut states = [[0.0; kept::COUNT]; LANES_MAX];
        for (state, &member) in states.iter_mut().zip(members) {
            jobs[member].state.write_kept(state);
        }
        let mut kept = [zero; kept::COUNT];
        gather::<L, _>(&states, |state| &state[..], &mut kept);

        let mut filters = [[zero; ORDER + 1]; SUB_BLOCKS_MAX];
        L::call(spectrum::Filters::<L> { shape, parameters, kept: &mut kept, filters: &mut filters });

        let mut residuals = [[0.0; FRONT + SAMPLES_MAX + LANES_MAX]; LANES_MAX];
        L::call(recursive::StartState::<L, FAST> {
            shape,
            parameters,
            filters: &filters,
            residuals: &mut residuals,
        });
        for (residual, parameters) in residuals.iter_mut().zip(parameters).take(members.len()) {
            L::call(codebook::Blocks::<FAST> { shape, frame: &parameters.frame, residual });
        }

        let mut rows = [zero; SAMPLES_MAX];
        if jobs[members[0]].state.enhances {
            let mut streams = enhance::Streams::EMPTY;
            for ((stream, &member), residual) in streams.0.iter_mut().zip(members).zip(&residuals) {
                stream.begin(shape, jobs[member].state, &residual[FRONT..][..shape.samples]);
            }
            L::call(enhance::Enhance::<L, FAST> { shape, streams: &mut streams, out: &mut rows });
            // The enhanced residual is late by one or two sub-blocks, and so are the filters.
            let mut late = [[zero; ORDER + 1]; SUB_BLOCKS_MAX];
            let delay = shape.delay();
            for (late, range) in late.iter_mut().zip(&kept::FILTERS[2 - delay..]) {
                late.copy_from_slice(&kept[range.clone()]);
            }
            late[delay..].copy_from_slice(&filters[..SUB_BLOCKS_MAX - delay]);
            L::call(recursive::Synthesis::<L, FAST> {
                shape,
                filters: &late,
                kept: &mut kept,
                rows: &mut rows,
            });
            keep_filters::<L>(shape, &filters, &mut kept);
            L::call(Commit::<L, M> { rows: &rows, kept: &kept, members, jobs });
            for (stream, &member) in streams.0.iter().zip(members) {
                stream.end(jobs[member].state);
                jobs[member].outcome = Some(Ok(()));
            }
        } else {
            gather::<L, _>(
                &residuals,
                |residual| &residual[FRONT..][..shape.samples],
                &mut rows[..shape.samples],
            );
            L::call(recursive::Synthesis::<L, FAST> {
                shape,
                filters: &filters,
                kept: &mut kept,
                rows: &mut rows,
            });
            keep_filters::<L>(shape, &filters, &mut kept);
            L::call(Commit::<L, M> { rows: &rows, kept: &kept, members, jobs });
            for (residual, &member) in residuals.iter().zip(members) {
                let newest = &mut jobs[member].state.enhancer.history[HISTORY - shape.samples..];
                newest.copy_from_slice(&residual[FRONT..][..shape.samples]);
                jobs[member].outcome = Some(Ok(()));
            }
        }
    }
}

/// Transposes a part of each stream into rows.
#[inline(always)]
fn gather<'a, L: Lanes, T>(streams: &'a [T], part: impl Fn(&'a T) -> &'a [f32], rows: &mut [L::F32]) {
    let mut parts: [&[f32]; LANES_MAX] = [&[]; LANES_MAX];
    for (slot, stream) in parts.iter_mut().zip(streams) {
        *slot = part(stream);
    }
    L::F32::gather(&parts[..L::N], rows);
}

/// Transposes rows into a part of each stream.
#[inline(always)]
fn scatter<'a, L: Lanes, T>(
    rows: &[L::F32],
    streams: &'a mut [T],
    part: impl Fn(&'a mut T) -> &'a mut [f32],
) {
    let mut parts = <[&mut [f32]; LANES_MAX]>::default();
    for (slot, stream) in parts.iter_mut().zip(streams) {
        *slot = part(stream);
    }
    L::F32::scatter(rows, &mut parts[..L::N]);
}

/// Keeps the filters of the last sub-blocks for the next frame.
#[inline(always)]
fn keep_filters<L: Lanes>(shape: &Shape, filters: &FilterRows<L>, kept: &mut KeptRows<L>) {
    for (range, filter) in kept::FILTERS.into_iter().zip(&filters[shape.sub_blocks - 2..]) {
        kept[range].copy_from_slice(filter);
    }
}

/// Gives samples and filter states to their streams. Only copies are made: what could panic has not.
struct Commit<'a, 'b, L: Lanes, M: Mode> {
    rows: &'a FrameRows<L>,
    kept: &'a KeptRows<L>,
    members: &'a [usize],
    jobs: &'a mut [DecodeJob<'b, M>],
}

impl<L: Lanes, M: Mode> Kernel for Commit<'_, '_, L, M> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let shape = M::shape();
        let count = 2 * L::N;
        let mut samples = [[0.0; 2 * LANES_MAX]; LANES_MAX];
        for at in (0..shape.samples).step_by(count) {
            // The last samples may overlap those before.
            let at = at.min(shape.samples - count);
            scatter::<L, _>(&self.rows[at..at + count], &mut samples, |samples| &mut samples[..count]);
            for (samples, &member) in samples.iter().zip(self.members) {
                round::<L>(samples, &mut self.jobs[member].pcm.as_mut()[at..]);
            }
        }
        let mut states = [[0.0; kept::COUNT]; LANES_MAX];
        scatter::<L, _>(self.kept, &mut states, |state| &mut state[..]);
        for (state, &member) in states.iter().zip(self.members) {
            let job = &mut self.jobs[member];
            job.state.read_kept(state);
            job.state.concealer.received();
        }
    }
}

impl<M: Mode> Decoder<M> {
    fn write_kept(&self, to: &mut [f32; kept::COUNT]) {
        to[kept::OUTPUTS].copy_from_slice(&self.synthesis.outputs);
        let [x1, x2] = self.synthesis.high_pass.input;
        let [y1, y2] = self.synthesis.high_pass.output;
        to[kept::HIGH_PASS].copy_from_slice(&[x1, x2, y1, y2]);
        to[kept::LSF].copy_from_slice(&self.lsf);
        for (range, filter) in kept::FILTERS.into_iter().zip(&self.filters) {
            to[range].copy_from_slice(filter);
        }
    }

    fn read_kept(&mut self, from: &[f32; kept::COUNT]) {
        self.synthesis.outputs.copy_from_slice(&from[kept::OUTPUTS]);
        let [input @ .., _, _] = &from[kept::HIGH_PASS] else { return };
        self.synthesis.high_pass.input.copy_from_slice(input);
        self.synthesis.high_pass.output.copy_from_slice(&from[kept::HIGH_PASS][2..]);
        self.lsf.copy_from_slice(&from[kept::LSF]);
        for (range, filter) in kept::FILTERS.into_iter().zip(&mut self.filters) {
            filter.copy_from_slice(&from[range]);
        }
        self.synthesis.keep_finite();
    }
}

/// A vector of samples as 16 bits, cut off toward zero, as `as i16` does.
#[inline(always)]
fn round<L: Lanes>(samples: &[f32; 2 * LANES_MAX], pcm: &mut [i16]) {
    let (low, high) = (L::F32::splat(-32768.0), L::F32::splat(32767.0));
    let first = L::F32::load(&samples[..]).clamp(low, high).truncate();
    let second = L::F32::load(&samples[L::N..]).clamp(low, high).truncate();
    L::I16::join([first, second]).store(pcm);
}

/// `sum + a * b`, in one rounding where the result need not be the reference's.
#[inline(always)]
fn add_product<L: Lanes, const FAST: bool>(sum: L::F32, a: L::F32, b: L::F32) -> L::F32 {
    if FAST { a.mul_add(b, sum) } else { sum + a * b }
}

/// `sum - a * b`, likewise.
#[inline(always)]
fn subtract_product<L: Lanes, const FAST: bool>(sum: L::F32, a: L::F32, b: L::F32) -> L::F32 {
    if FAST { (-a).mul_add(b, sum) } else { sum - a * b }
}
