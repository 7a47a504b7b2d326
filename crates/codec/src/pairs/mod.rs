//! Codecs that make a byte of two samples, for many streams at once: what G.722 and G.726 share.
//!
//! A codec says what a stream remembers ([`Stream`]) and what it makes of the pairs of all lanes ([`Coders`]). Here stands
//! the rest: who shares a group, state into lanes and back, and packets in blocks.

mod rows;

use lanes::{Kernel, LANES_MAX, Lanes, Level, Vector};

use rows::{byte, gather_bytes, gather_samples, put_byte, scatter_bytes, scatter_samples};
pub use rows::{join, split};

/// Up to this many streams are coded faster one by one.
const ALONE: usize = 1;
/// Pairs of samples that a group works on at a time: bounds the stack, not the packet.
pub const BLOCK: usize = 160;
/// Longs that hold a byte for each pair of a block.
const WORDS: usize = BLOCK / 4;

/// One packet of one stream to encode.
#[derive(Debug)]
pub struct EncodeJob<'a, S> {
    /// The stream's encoder.
    pub state: &'a mut S,
    /// Samples at the codec's rate, an even number.
    pub pcm: &'a [i16],
    /// A byte for each two samples.
    pub out: &'a mut [u8],
    /// It has been coded: the state is that after the packet. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a, S> EncodeJob<'a, S> {
    /// A job that is not done.
    pub fn new(state: &'a mut S, pcm: &'a [i16], out: &'a mut [u8]) -> Self {
        Self { state, pcm, out, done: false }
    }
}

/// One packet of one stream to decode.
#[derive(Debug)]
pub struct DecodeJob<'a, S> {
    /// The stream's decoder.
    pub state: &'a mut S,
    /// The packet.
    pub payload: &'a [u8],
    /// Two samples for each byte.
    pub pcm: &'a mut [i16],
    /// It has been decoded: the state is that after the packet. When a group panics, what is not done is as it was.
    pub done: bool,
}

impl<'a, S> DecodeJob<'a, S> {
    /// A job that is not done.
    pub fn new(state: &'a mut S, payload: &'a [u8], pcm: &'a mut [i16]) -> Self {
        Self { state, payload, pcm, done: false }
    }
}

/// An encoder or decoder of one stream.
pub trait Stream<const MEMORY: usize> {
    /// As many of them as there are lanes.
    type Coders<L: Lanes>: Coders<L>;

    /// Its state, as numbers in a row.
    fn memory(&self) -> [i32; MEMORY];
    /// The inverse of [`memory`](Self::memory).
    fn recall(&mut self, memory: &[i32; MEMORY]);
}

/// A [`Stream`] that encodes.
pub trait Encodes<const MEMORY: usize>: Stream<MEMORY> {
    /// Encodes pairs of samples as far as both slices reach.
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize;
}

/// A [`Stream`] that decodes.
pub trait Decodes<const MEMORY: usize>: Stream<MEMORY> {
    /// Decodes bytes as far as both slices reach.
    fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> usize;
}

/// The encoders or decoders of all lanes.
///
/// All of it is for inlining into a [`Kernel`].
pub trait Coders<L: Lanes>: Sized {
    /// What is found by an index, apart from the rest, which the compiler can keep in registers.
    type Window;

    /// From rows of the streams' [memories](Stream::memory).
    fn load(rows: &[L::I32]) -> (Self, Self::Window);
    /// The inverse of [`load`](Self::load), between two blocks.
    fn save(&self, window: &Self::Window, rows: &mut [L::I32]);
    /// The byte of the pair with this number in its block.
    fn encode(&mut self, window: &mut Self::Window, number: usize, pair: [L::I32; 2]) -> L::I32;
    /// The pair of the byte with this number in its block; both fit 16 bits.
    fn decode(&mut self, window: &mut Self::Window, number: usize, byte: L::I32) -> [L::I32; 2];
    /// A block of so many pairs has ended.
    fn end_block(window: &mut Self::Window, count: usize);
}

/// One packet of one stream, in either direction.
pub trait Job<const MEMORY: usize> {
    /// Whose it is.
    type Stream: Stream<MEMORY>;

    /// Its state.
    fn stream(&mut self) -> &mut Self::Stream;
    /// Pairs of samples that both sides of the packet have room for.
    fn pairs(&self) -> usize;
    /// Codes it by itself.
    fn run_alone(&mut self);
    /// It has been coded.
    fn finish(&mut self);
    /// Codes `count` pairs from `start` on of each job in its lane.
    fn run_block<L: Lanes>(
        jobs: &mut [Self],
        start: usize,
        count: usize,
        coders: &mut CodersOf<Self, L, MEMORY>,
        window: &mut WindowOf<Self, L, MEMORY>,
    ) where
        Self: Sized;
}

type CodersOf<J, L, const MEMORY: usize> = <<J as Job<MEMORY>>::Stream as Stream<MEMORY>>::Coders<L>;
type WindowOf<J, L, const MEMORY: usize> = <CodersOf<J, L, MEMORY> as Coders<L>>::Window;

impl<S: Encodes<MEMORY>, const MEMORY: usize> Job<MEMORY> for EncodeJob<'_, S> {
    type Stream = S;

    #[inline(always)]
    fn stream(&mut self) -> &mut S {
        self.state
    }
    fn pairs(&self) -> usize {
        (self.pcm.len() / 2).min(self.out.len())
    }
    fn run_alone(&mut self) {
        self.state.encode(self.pcm, self.out);
    }
    #[inline(always)]
    fn finish(&mut self) {
        self.done = true;
    }
    #[inline(always)]
    fn run_block<L: Lanes>(
        jobs: &mut [Self],
        start: usize,
        count: usize,
        coders: &mut S::Coders<L>,
        window: &mut <S::Coders<L> as Coders<L>>::Window,
    ) {
        let mut samples = [L::I32::splat(0); BLOCK];
        let mut codes = [L::I32::splat(0); WORDS];
        gather_samples(&rows::slices(jobs, |job| rows::part(job.pcm, 2 * start, 2 * count)), &mut samples);
        let mut number = 0;
        while number < count {
            let byte = coders.encode(window, number, split(samples[number]));
            put_byte(&mut codes, number, byte);
            number += 1;
        }
        let mut out = rows::slices_mut(jobs, |job| rows::part_mut(job.out, start, count));
        scatter_bytes(&codes, &mut out);
    }
}

impl<S: Decodes<MEMORY>, const MEMORY: usize> Job<MEMORY> for DecodeJob<'_, S> {
    type Stream = S;

    #[inline(always)]
    fn stream(&mut self) -> &mut S {
        self.state
    }
    fn pairs(&self) -> usize {
        (self.pcm.len() / 2).min(self.payload.len())
    }
    fn run_alone(&mut self) {
        self.state.decode(self.payload, self.pcm);
    }
    #[inline(always)]
    fn finish(&mut self) {
        self.done = true;
    }
    #[inline(always)]
    fn run_block<L: Lanes>(
        jobs: &mut [Self],
        start: usize,
        count: usize,
        coders: &mut S::Coders<L>,
        window: &mut <S::Coders<L> as Coders<L>>::Window,
    ) {
        let mut codes = [L::I32::splat(0); WORDS];
        let mut samples = [L::I32::splat(0); BLOCK];
        gather_bytes(&rows::slices(jobs, |job| rows::part(job.payload, start, count)), &mut codes);
        let mut number = 0;
        while number < count {
            let pair = coders.decode(window, number, byte(&codes, number));
            samples[number] = join(pair);
            number += 1;
        }
        let mut pcm = rows::slices_mut(jobs, |job| rows::part_mut(job.pcm, 2 * start, 2 * count));
        scatter_samples(&samples, &mut pcm);
    }
}

/// Codes every job, each of another stream; neighbours of equal length share a group.
///
/// Should it panic, every job is either done or untouched.
pub fn run<J: Job<MEMORY>, const MEMORY: usize>(level: Level, jobs: &mut [J]) {
    for equal in jobs.chunk_by_mut(|a, b| a.pairs() == b.pairs()) {
        for group in equal.chunks_mut(level.lanes()) {
            if group.len() <= ALONE {
                for job in group {
                    job.run_alone();
                    job.finish();
                }
            } else {
                let pairs = group[0].pairs();
                level.narrowed(group.len()).run(Group { jobs: group, pairs });
            }
        }
    }
}

/// At most [`LANES_MAX`] jobs of so many pairs each.
struct Group<'g, J, const MEMORY: usize> {
    jobs: &'g mut [J],
    pairs: usize,
}

impl<J: Job<MEMORY>, const MEMORY: usize> Kernel for Group<'_, J, MEMORY> {
    type Out = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { jobs, pairs } = self;
        let mut memories = [[0; MEMORY]; LANES_MAX];
        for (memory, job) in memories.iter_mut().zip(&mut *jobs) {
            *memory = job.stream().memory();
        }
        let mut state = [L::I32::splat(0); MEMORY];
        L::I32::gather(&memories.each_ref().map(|memory| &memory[..]), &mut state);
        let (mut coders, mut window) = CodersOf::<J, L, MEMORY>::load(&state);

        let mut start = 0;
        while start < pairs {
            let count = (pairs - start).min(BLOCK);
            J::run_block::<L>(jobs, start, count, &mut coders, &mut window);
            CodersOf::<J, L, MEMORY>::end_block(&mut window, count);
            start += count;
        }

        coders.save(&window, &mut state);
        L::I32::scatter(&state, &mut memories.each_mut().map(|memory| &mut memory[..]));
        for (memory, job) in memories.iter().zip(jobs) {
            job.stream().recall(memory);
            job.finish();
        }
    }
}
