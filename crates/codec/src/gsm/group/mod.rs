//! GSM 06.10 of many streams at once, one in each 16-bit lane; the same bits as [`Encoder`] and [`Decoder`] alone.
//!
//! A group is whoever is ready: its state is transposed into lanes, the frame computed, and state and output written back
//! at the end. The kernel has no branch that depends on a lane; conditions are masks. `parameters` knows bits,
//! `spectrum` the linear prediction, `filters` the short-term filters, `long_term` the pitch, `pulses` the excitation.

mod filters;
mod long_term;
mod parameters;
mod pulses;
mod spectrum;
mod words;

use lanes::{I16Lanes, Integer, Kernel, LANES16_MAX, Lanes, Level, Vector};

use super::reflection::STRETCHES;
use super::{Decoder, Encoder, FRAME_BYTES, FRAME_SAMPLES, LTP_PAST, MEMORY, QLB, SUBFRAME};
use long_term::History;
use parameters::{PARAMETERS, WORDS, sub};

/// Up to so many streams are encoded, and decoded, faster one by one: a group costs the same however many lanes are used.
const fn alone(level: Level) -> (usize, usize) {
    if level.is_portable() { (6, 3) } else { (1, 1) }
}

/// One frame of one stream to encode.
#[derive(Debug)]
pub struct EncodeJob<'a> {
    /// The stream's encoder.
    pub state: &'a mut Encoder,
    /// 20 ms at 8 kHz.
    pub pcm: &'a [i16; FRAME_SAMPLES],
    /// The frame with its signature.
    pub out: &'a mut [u8; FRAME_BYTES],
    /// It has been coded: the state is that after the frame. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a> EncodeJob<'a> {
    /// A job that is not done.
    pub fn new(
        state: &'a mut Encoder,
        pcm: &'a [i16; FRAME_SAMPLES],
        out: &'a mut [u8; FRAME_BYTES],
    ) -> Self {
        Self { state, pcm, out, done: false }
    }
}

/// One frame of one stream to decode.
#[derive(Debug)]
pub struct DecodeJob<'a> {
    /// The stream's decoder.
    pub state: &'a mut Decoder,
    /// The frame; concealed when it has no signature ([`super::has_signature`]).
    pub payload: &'a [u8; FRAME_BYTES],
    /// 20 ms at 8 kHz.
    pub pcm: &'a mut [i16; FRAME_SAMPLES],
    /// It has been decoded: the state is that after the frame. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a> DecodeJob<'a> {
    /// A job that is not done.
    pub fn new(
        state: &'a mut Decoder,
        payload: &'a [u8; FRAME_BYTES],
        pcm: &'a mut [i16; FRAME_SAMPLES],
    ) -> Self {
        Self { state, payload, pcm, done: false }
    }
}

/// Encodes a frame of each job, as [`Encoder::encode`] would. Any number of jobs, each of another stream.
///
/// Should it panic, every job is either done or untouched.
pub fn encode(level: Level, jobs: &mut [EncodeJob<'_>]) {
    for group in jobs.chunks_mut(2 * level.lanes()) {
        if group.len() <= alone(level).0 {
            for job in group {
                job.state.encode(job.pcm, job.out);
                job.done = true;
            }
        } else {
            level.narrowed(group.len().div_ceil(2)).run(EncodeGroup(group));
        }
    }
}

/// Decodes a frame of each job, as [`Decoder::decode`] would. Any number of jobs, each of another stream.
///
/// Should it panic, every job is either done or untouched.
pub fn decode(level: Level, jobs: &mut [DecodeJob<'_>]) {
    for group in jobs.chunks_mut(2 * level.lanes()) {
        if group.len() <= alone(level).1 {
            for job in group {
                job.state.decode(job.payload, job.pcm);
                job.done = true;
            }
        } else {
            level.narrowed(group.len().div_ceil(2)).run(DecodeGroup(group));
        }
    }
}

/// At most [`LANES16_MAX`] jobs.
struct EncodeGroup<'g, 'j>(&'g mut [EncodeJob<'j>]);

impl Kernel for EncodeGroup<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let jobs = self.0;
        let zero = L::I16::splat(0);
        let mut memory = [[0; MEMORY]; LANES16_MAX];
        let mut history = History::new();
        for (lane, job) in jobs.iter().enumerate() {
            job.state.store(&mut memory[lane]);
            history.begin(lane, &job.state.past);
        }
        let mut state = [zero; MEMORY];
        let mut signal = [zero; FRAME_SAMPLES];
        let mut past = [zero; LTP_PAST];
        L::I16::gather(&slices(&memory, |memory| memory), &mut state);
        L::I16::gather(&slices(jobs, |job| job.pcm), &mut signal);
        L::I16::gather(&slices(jobs, |job| &job.state.past), &mut past);

        let mut parameters = [zero; PARAMETERS];
        {
            let [z1, z2_high, z2_low, mp, rest @ ..] = &mut state;
            let (lar, u) = rest.split_at_mut(8);
            filters::preprocess::<L>([z1, z2_high, z2_low, mp], &mut signal);
            let codes = spectrum::linear_prediction::<L>(&mut signal);
            parameters[..8].copy_from_slice(&codes);
            let current = spectrum::dequantise::<L>(&codes);
            let filters = spectrum::interpolate::<L>(lar, &current);
            for (filter, stretch) in filters.iter().zip(STRETCHES) {
                filters::analyse::<L>(filter, u, &mut signal[stretch]);
            }
            lar[..8].copy_from_slice(&current);
        }
        let mut pairs = long_term::pairs::<L>(&past);
        let mut last = past[LTP_PAST - 1];
        for (number, residual) in signal.as_chunks::<SUBFRAME>().0.iter().enumerate() {
            let now = number * SUBFRAME;
            let found = long_term::search::<L>(&pairs, now, residual);
            let mut window = history.window::<L>(now, found.lag);
            let gain = long_term::gain::<L>(&found, &window);
            let factor = L::I16::lookup(&QLB, gain);
            let mut error = [zero; SUBFRAME + pulses::MARGIN];
            for (i, past) in window.iter_mut().enumerate() {
                *past = factor.mul_round(*past);
                error[pulses::MARGIN / 2 + i] = residual[i].sat_sub(*past);
            }
            let sub = sub(&mut parameters, number);
            (sub[parameters::LAG], sub[parameters::GAIN]) = (found.lag, gain);
            pulses::encode::<L>(&error, sub);
            let mut fresh = pulses::decode::<L>(sub);
            for (slot, prediction) in fresh.iter_mut().zip(&window) {
                *slot = slot.sat_add(*prediction);
            }
            history.add::<L>(now, &fresh);
            last = long_term::add_pairs::<L>(&mut pairs, now, last, &fresh);
        }

        let mut words = [[0; WORDS]; LANES16_MAX];
        L::I16::scatter(&parameters::pack::<L>(&parameters), &mut slices_mut(&mut words, |words| words));
        L::I16::scatter(&state, &mut slices_mut(&mut memory, |memory| memory));
        for (lane, job) in jobs.iter_mut().enumerate() {
            job.state.recall(&memory[lane]);
            history.end(lane, &mut job.state.past);
            parameters::to_bytes(&words[lane], job.out);
            job.done = true;
        }
    }
}

/// At most [`LANES16_MAX`] jobs.
struct DecodeGroup<'g, 'j>(&'g mut [DecodeJob<'j>]);

impl Kernel for DecodeGroup<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let jobs = self.0;
        let zero = L::I16::splat(0);
        let mut memory = [[0; MEMORY]; LANES16_MAX];
        let mut words = [[0; WORDS]; LANES16_MAX];
        let mut history = History::new();
        for (lane, job) in jobs.iter().enumerate() {
            job.state.store(&mut memory[lane]);
            history.begin(lane, &job.state.past);
            parameters::from_bytes(&job.state.frame_for(job.payload).0, &mut words[lane]);
        }
        let mut state = [zero; MEMORY];
        let mut coded = [zero; WORDS];
        L::I16::gather(&slices(&memory, |memory| memory), &mut state);
        L::I16::gather(&slices(&words, |words| words), &mut coded);

        let mut parameters = parameters::unpack::<L>(&coded);
        let [lag, msr, rest @ ..] = &mut state;
        let (lar, v) = rest.split_at_mut(8);
        let mut signal = [zero; FRAME_SAMPLES];
        for (number, out) in signal.as_chunks_mut::<SUBFRAME>().0.iter_mut().enumerate() {
            let now = number * SUBFRAME;
            let sub = sub(&mut parameters, number);
            *lag = long_term::valid_lag::<L>(sub[parameters::LAG], *lag);
            let factor = L::I16::lookup(&QLB, sub[parameters::GAIN]);
            let excitation = pulses::decode::<L>(sub);
            let window = history.window::<L>(now, *lag);
            for (i, slot) in out.iter_mut().enumerate() {
                *slot = excitation[i].sat_add(factor.mul_round(window[i]));
            }
            history.add::<L>(now, out);
        }
        let mut codes = [zero; 8];
        codes.copy_from_slice(&parameters[..8]);
        let current = spectrum::dequantise::<L>(&codes);
        let filters = spectrum::interpolate::<L>(lar, &current);
        for (filter, stretch) in filters.iter().zip(STRETCHES) {
            filters::synthesise::<L>(filter, v, &mut signal[stretch]);
        }
        lar[..8].copy_from_slice(&current);
        filters::postprocess::<L>(msr, &mut signal);

        L::I16::scatter(&state, &mut slices_mut(&mut memory, |memory| memory));
        L::I16::scatter(&signal, &mut slices_mut(jobs, |job| job.pcm));
        for (lane, job) in jobs.iter_mut().enumerate() {
            let (frame, lost) = job.state.frame_for(job.payload);
            job.state.recall(&memory[lane], frame, lost);
            history.end(lane, &mut job.state.past);
            job.done = true;
        }
    }
}

/// A slice of each item, none for lanes without one.
#[inline(always)]
fn slices<'a, T, const LENGTH: usize>(
    items: &'a [T],
    slice: impl Fn(&'a T) -> &'a [i16; LENGTH],
) -> [&'a [i16]; LANES16_MAX] {
    let mut all: [&[i16]; LANES16_MAX] = [&[]; LANES16_MAX];
    for (slot, item) in all.iter_mut().zip(items) {
        *slot = slice(item);
    }
    all
}

/// As [`slices`], for writing.
#[inline(always)]
fn slices_mut<'a, T, const LENGTH: usize>(
    items: &'a mut [T],
    slice: impl Fn(&'a mut T) -> &'a mut [i16; LENGTH],
) -> [&'a mut [i16]; LANES16_MAX] {
    let mut all: [&mut [i16]; LANES16_MAX] = Default::default();
    for (slot, item) in all.iter_mut().zip(items) {
        *slot = slice(item);
    }
    all
}
