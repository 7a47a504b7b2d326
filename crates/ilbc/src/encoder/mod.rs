//! The encoder: its state, which lives with the stream, and the ways to run it.

mod group;
mod lone;
mod scalar;
mod search;

use std::marker::PhantomData;

use lanes::{LANES_MAX, Level};

use crate::bits::Frame;
use crate::filters::HighPass;
use crate::tables::LSF_MEAN;
use crate::{Lsf, Mode, SAMPLES_MAX, Shape};

/// Samples of the longest LPC analysis window.
pub(crate) const WINDOW: usize = 240;
/// Samples by which the last analysis window lies behind the first.
pub(crate) const LOOK_BACK: usize = 60;
/// Samples that the analysis sees: those of both windows. A new frame comes at their end.
pub(crate) const SEEN: usize = WINDOW + LOOK_BACK;
/// Samples kept from one frame to the next, at most: what is seen less the shortest frame.
pub(crate) const HISTORY_MAX: usize = SEEN - 160;

/// Encoder of one stream; `M` is its frame size.
///
/// 700 bytes, plain data: it may move between threads, be cloned, and be encoded alone or in any group.
#[derive(Debug, Clone)]
pub struct Encoder<M> {
    state: State,
    mode: PhantomData<M>,
}

/// What a stream's encoder remembers.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub high_pass: HighPass,
    /// The last samples, high-passed: [`SEEN`] less a frame.
    pub history: [f32; HISTORY_MAX],
    /// The last frame's newest frequencies, and what they were quantised to.
    pub lsf: Lsf,
    pub lsf_quantised: Lsf,
}

impl<M: Mode> Default for Encoder<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Mode> Encoder<M> {
    /// At the beginning of a stream.
    pub fn new() -> Self {
        let state = State {
            high_pass: HighPass::default(),
            history: [0.0; HISTORY_MAX],
            lsf: LSF_MEAN,
            lsf_quantised: LSF_MEAN,
        };
        Self { state, mode: PhantomData }
    }

    /// Codes a frame, one sum after the other: the plain twin with which every faster way is compared.
    ///
    /// [`encode`] is quicker even for one stream.
    pub fn encode(&mut self, pcm: &M::Pcm, out: &mut M::Payload) {
        let shape = M::shape();
        scalar::encode(&mut self.state, shape, pcm.as_ref(), &search::search).pack(shape, out.as_mut());
    }
}

/// A job of any frame size.
struct Work<'a> {
    state: &'a mut State,
    pcm: &'a [i16],
    out: &'a mut [u8],
    done: &'a mut bool,
}

impl<'a> Work<'a> {
    /// As many jobs as there are, at most `W`.
    fn group<M: Mode, const W: usize>(jobs: &'a mut [EncodeJob<'_, M>]) -> [Option<Self>; W] {
        let mut jobs = jobs.iter_mut();
        std::array::from_fn(|_| {
            jobs.next().map(|job| Self {
                state: &mut job.state.state,
                pcm: job.pcm.as_ref(),
                out: job.out.as_mut(),
                done: &mut job.done,
            })
        })
    }
}

/// A frame of one stream to encode.
#[derive(Debug)]
pub struct EncodeJob<'a, M: Mode> {
    /// The stream's encoder.
    pub state: &'a mut Encoder<M>,
    /// The frame.
    pub pcm: &'a M::Pcm,
    /// Where its payload goes.
    pub out: &'a mut M::Payload,
    /// It has been coded: the state is that after the frame. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a, M: Mode> EncodeJob<'a, M> {
    /// A job that is not done.
    pub fn new(state: &'a mut Encoder<M>, pcm: &'a M::Pcm, out: &'a mut M::Payload) -> Self {
        Self { state, pcm, out, done: false }
    }
}

/// Encodes a frame of each of any number of streams, as many at once as the level has lanes: the payloads of the reference.
///
/// What comes out for a stream depends on nothing but the stream. Allocates nothing; needs some 200 kB of stack. Should it
/// panic, every job is either done or untouched.
pub fn encode<M: Mode>(level: Level, jobs: &mut [EncodeJob<'_, M>]) {
    encode_groups(level, false, jobs);
}

/// As [`encode`], with sums fused and reordered: a few payloads in a hundred differ from the reference's, and sound the same.
///
/// A few streams are summed in another way than a group, so which payloads differ depends on how many jobs there are.
pub fn encode_fast<M: Mode>(level: Level, jobs: &mut [EncodeJob<'_, M>]) {
    encode_groups(level, true, jobs);
}

/// Lanes of the levels that have fewer than [`LANES_MAX`].
const NARROW: usize = 8;

fn encode_groups<M: Mode>(level: Level, fast: bool, jobs: &mut [EncodeJob<'_, M>]) {
    let shape = M::shape();
    for group in jobs.chunks_mut(level.lanes()) {
        let level = level.narrowed(group.len());
        if group.len() <= alone_max(level, fast) {
            group.iter_mut().for_each(|job| encode_alone(level, fast, job));
        } else if level.lanes() == LANES_MAX {
            run_wide(level, fast, shape, &mut Work::group(group));
        } else {
            run_narrow(level, fast, shape, &mut Work::group(group));
        }
    }
}

/// Streams up to which one after the other, each with its lags side by side, is quicker than a group.
fn alone_max(level: Level, fast: bool) -> usize {
    match (level.is_portable(), fast) {
        (false, _) => 1,
        (true, false) => 4,
        (true, true) => 7,
    }
}

fn encode_alone<M: Mode>(level: Level, fast: bool, job: &mut EncodeJob<'_, M>) {
    let shape = M::shape();
    // A copy, so that a panic leaves the stream as it was.
    let mut state = job.state.state.clone();
    let frame = run_alone(level, fast, shape, &mut state, job.pcm.as_ref());
    job.state.state = state;
    frame.pack(shape, job.out.as_mut());
    job.done = true;
}

// Not generic, so that the kernels are compiled once, here.

fn run_alone(level: Level, fast: bool, shape: &Shape, state: &mut State, pcm: &[i16]) -> Frame {
    if fast {
        scalar::encode(state, shape, pcm, &|memory, residual, weighting, ranges| {
            level.run(lone::LoneSearch::<true> { memory, residual, weighting, ranges })
        })
    } else {
        scalar::encode(state, shape, pcm, &|memory, residual, weighting, ranges| {
            level.run(lone::LoneSearch::<false> { memory, residual, weighting, ranges })
        })
    }
}

fn run_wide(level: Level, fast: bool, shape: &'static Shape, works: &mut [Option<Work<'_>>; LANES_MAX]) {
    if fast {
        level.run(group::EncodeGroup::<LANES_MAX, true> { shape, works });
    } else {
        level.run(group::EncodeGroup::<LANES_MAX, false> { shape, works });
    }
}

fn run_narrow(level: Level, fast: bool, shape: &'static Shape, works: &mut [Option<Work<'_>>; NARROW]) {
    if fast {
        level.run(group::EncodeGroup::<NARROW, true> { shape, works });
    } else {
        level.run(group::EncodeGroup::<NARROW, false> { shape, works });
    }
}

/// Sub-blocks in the order they are coded: from the start state forwards to the end, then backwards to the beginning.
///
/// `start` is the later of the start state's two sub-blocks.
fn coding_order(shape: &Shape, start: usize) -> impl Iterator<Item = (usize, bool)> {
    let forwards = (start + 1..shape.sub_blocks).map(|block| (block, false));
    forwards.chain((0..start - 1).rev().map(|block| (block, true)))
}

const _: () = assert!(SAMPLES_MAX == WINDOW);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode20, Mode30};

    pub(crate) fn golden(name: &str) -> Option<Vec<u8>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors/golden");
        std::fs::read(format!("{folder}/{name}")).ok()
    }

    pub(crate) fn pcm(bytes: &[u8]) -> Vec<i16> {
        bytes.as_chunks().0.iter().map(|&sample| i16::from_le_bytes(sample)).collect()
    }

    #[test]
    fn the_plain_encoder_gives_the_payloads_of_the_reference() {
        for clip in ["es_en-gb", "libilbc_sample"] {
            let Some(speech) = golden(&format!("{clip}.pcm")) else {
                println!("skipped: no golden files beside the project");
                return;
            };
            let speech = pcm(&speech);
            let expected = golden(&format!("{clip}.float.ilbc20")).unwrap();
            let mut encoder = Encoder::<Mode20>::new();
            for (n, (pcm, expected)) in speech.as_chunks().0.iter().zip(expected.as_chunks().0).enumerate() {
                let mut out = [0; 38];
                encoder.encode(pcm, &mut out);
                assert_eq!(out, *expected, "{clip} 20 ms frame {n}");
            }
            let expected = golden(&format!("{clip}.float.ilbc30")).unwrap();
            let mut encoder = Encoder::<Mode30>::new();
            for (n, (pcm, expected)) in speech.as_chunks().0.iter().zip(expected.as_chunks().0).enumerate() {
                let mut out = [0; 50];
                encoder.encode(pcm, &mut out);
                assert_eq!(out, *expected, "{clip} 30 ms frame {n}");
            }
        }
    }
}
