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
use super::{Decoder, Encoder, FRAME_BYTES, FRAME_SAMPLES, LTP_PAST, QLB, SUBFRAME};
use parameters::{PARAMETERS, WORDS, sub};

/// Up to this many streams are encoded faster one by one.
const ENCODE_ALONE: usize = 1;
/// As above, for decoding.
const DECODE_ALONE: usize = 1;

/// One frame of one stream to encode.
#[derive(Debug)]
pub struct EncodeJob<'a> {
    /// The stream's encoder.
    pub state: &'a mut Encoder,
    /// 20 ms at 8 kHz.
    pub pcm: &'a [i16; FRAME_SAMPLES],
    /// The frame with its signature.
    pub out: &'a mut [u8; FRAME_BYTES],
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
}

/// Encodes a frame of each job, as [`Encoder::encode`] would. Any number of jobs, each of another stream.
///
/// Should it panic, no stream of the group that failed has changed.
pub fn encode(level: Level, jobs: &mut [EncodeJob<'_>]) {
    for group in jobs.chunks_mut(2 * level.lanes()) {
        if group.len() <= ENCODE_ALONE {
            group.iter_mut().for_each(|job| job.state.encode(job.pcm, job.out));
        } else {
            level.run(EncodeGroup(group));
        }
    }
}

/// Decodes a frame of each job, as [`Decoder::decode`] would. Any number of jobs, each of another stream.
///
/// Should it panic, no stream of the group that failed has changed.
pub fn decode(level: Level, jobs: &mut [DecodeJob<'_>]) {
    for group in jobs.chunks_mut(2 * level.lanes()) {
        if group.len() <= DECODE_ALONE {
            for job in group {
                job.state.decode(job.payload, job.pcm);
            }
        } else {
            level.run(DecodeGroup(group));
        }
    }
}

/// Samples of the short-term residual that a frame sees: the past, and its own.
const HISTORY: usize = LTP_PAST + FRAME_SAMPLES;

/// At most [`LANES16_MAX`] jobs.
struct EncodeGroup<'g, 'j>(&'g mut [EncodeJob<'j>]);

impl Kernel for EncodeGroup<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let jobs = self.0;
        let zero = L::I16::splat(0);
        let mut memory = [[0; Encoder::MEMORY]; LANES16_MAX];
        for (memory, job) in memory.iter_mut().zip(&*jobs) {
            *memory = job.state.memory();
        }
        let mut state = [zero; Encoder::MEMORY];
        let mut signal = [zero; FRAME_SAMPLES];
        let mut history = [zero; HISTORY];
        L::I16::gather(&memory.each_ref().map(|m| &m[..]), &mut state);
        L::I16::gather(&slices(jobs, |job| &job.pcm[..]), &mut signal);
        L::I16::gather(&slices(jobs, |job| &job.state.past[..]), &mut history[..LTP_PAST]);

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
            lar.copy_from_slice(&current);
        }
        for (number, residual) in signal.as_chunks::<SUBFRAME>().0.iter().enumerate() {
            let now = LTP_PAST + number * SUBFRAME;
            let (lag, window) = long_term::search::<L>(&history, now, residual);
            let gain = long_term::gain::<L>(&lag, &window);
            let factor = L::I16::lookup(&QLB, gain);
            let mut error = [zero; SUBFRAME];
            let mut prediction = window;
            for ((p, e), &d) in prediction.iter_mut().zip(&mut error).zip(residual) {
                *p = factor.mul_round(*p);
                *e = d.sat_sub(*p);
            }
            let sub = sub(&mut parameters, number);
            (sub[parameters::LAG], sub[parameters::GAIN]) = (lag.lag, gain);
            pulses::encode::<L>(&error, sub);
            let excitation = pulses::decode::<L>(sub);
            for ((slot, e), p) in history[now..].iter_mut().zip(excitation).zip(prediction) {
                *slot = e.sat_add(p);
            }
        }

        let mut words = [[0i16; WORDS]; LANES16_MAX];
        L::I16::scatter(&parameters::pack::<L>(&parameters), &mut words.each_mut().map(|w| &mut w[..]));
        L::I16::scatter(&state, &mut memory.each_mut().map(|m| &mut m[..]));
        L::I16::scatter(&history[FRAME_SAMPLES..], &mut slices_mut(jobs, |job| &mut job.state.past[..]));
        for ((job, memory), words) in jobs.iter_mut().zip(&memory).zip(&words) {
            job.state.recall(memory);
            parameters::to_bytes(words, job.out);
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
        let mut memory = [[0; Decoder::MEMORY]; LANES16_MAX];
        let mut words = [[0i16; WORDS]; LANES16_MAX];
        for ((memory, words), job) in memory.iter_mut().zip(&mut words).zip(&*jobs) {
            *memory = job.state.memory();
            *words = parameters::from_bytes(&job.state.frame_for(job.payload).0);
        }
        let mut state = [zero; Decoder::MEMORY];
        let mut coded = [zero; WORDS];
        let mut history = [zero; HISTORY];
        L::I16::gather(&memory.each_ref().map(|m| &m[..]), &mut state);
        L::I16::gather(&words.each_ref().map(|w| &w[..]), &mut coded);
        L::I16::gather(&slices(jobs, |job| &job.state.past[..]), &mut history[..LTP_PAST]);

        let mut parameters = parameters::unpack::<L>(&coded);
        let [lag, msr, rest @ ..] = &mut state;
        let (lar, v) = rest.split_at_mut(8);
        for number in 0..4 {
            let now = LTP_PAST + number * SUBFRAME;
            let sub = sub(&mut parameters, number);
            *lag = long_term::valid_lag::<L>(sub[parameters::LAG], *lag);
            let factor = L::I16::lookup(&QLB, sub[parameters::GAIN]);
            let excitation = pulses::decode::<L>(sub);
            let window = long_term::window::<L>(&history, now, *lag);
            for ((slot, e), past) in history[now..].iter_mut().zip(excitation).zip(window) {
                *slot = e.sat_add(factor.mul_round(past));
            }
        }
        let mut signal = [zero; FRAME_SAMPLES];
        signal.copy_from_slice(&history[LTP_PAST..]);
        let mut codes = [zero; 8];
        codes.copy_from_slice(&parameters[..8]);
        let current = spectrum::dequantise::<L>(&codes);
        let filters = spectrum::interpolate::<L>(lar, &current);
        for (filter, stretch) in filters.iter().zip(STRETCHES) {
            filters::synthesise::<L>(filter, v, &mut signal[stretch]);
        }
        lar.copy_from_slice(&current);
        filters::postprocess::<L>(msr, &mut signal);

        L::I16::scatter(&state, &mut memory.each_mut().map(|m| &mut m[..]));
        L::I16::scatter(&signal, &mut slices_mut(jobs, |job| &mut job.pcm[..]));
        L::I16::scatter(&history[FRAME_SAMPLES..], &mut slices_mut(jobs, |job| &mut job.state.past[..]));
        for (job, memory) in jobs.iter_mut().zip(&memory) {
            let (frame, lost) = job.state.frame_for(job.payload);
            job.state.recall(memory, frame, lost);
        }
    }
}

/// A slice of each job, none for lanes without one.
#[inline(always)]
fn slices<'a, J>(jobs: &'a [J], slice: impl Fn(&'a J) -> &'a [i16]) -> [&'a [i16]; LANES16_MAX] {
    let mut all: [&[i16]; LANES16_MAX] = [&[]; LANES16_MAX];
    for (slot, job) in all.iter_mut().zip(jobs) {
        *slot = slice(job);
    }
    all
}

/// As [`slices`], for writing.
#[inline(always)]
fn slices_mut<'a, J>(
    jobs: &'a mut [J],
    slice: impl Fn(&'a mut J) -> &'a mut [i16],
) -> [&'a mut [i16]; LANES16_MAX] {
    let mut all: [&mut [i16]; LANES16_MAX] = Default::default();
    for (slot, job) in all.iter_mut().zip(jobs) {
        *slot = slice(job);
    }
    all
}
