//! The encoder: its state, which lives with the stream, and the ways to run it.

mod scalar;
mod search;

use std::marker::PhantomData;

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

    /// Codes a frame, one sum after the other: the plain twin that every faster way is compared with.
    pub fn encode_plain(&mut self, pcm: &M::Pcm, out: &mut M::Payload) {
        let shape = M::shape();
        scalar::encode(&mut self.state, shape, pcm.as_ref()).pack(shape, out.as_mut());
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
                encoder.encode_plain(pcm, &mut out);
                assert_eq!(out, *expected, "{clip} 20 ms frame {n}");
            }
            let expected = golden(&format!("{clip}.float.ilbc30")).unwrap();
            let mut encoder = Encoder::<Mode30>::new();
            for (n, (pcm, expected)) in speech.as_chunks().0.iter().zip(expected.as_chunks().0).enumerate() {
                let mut out = [0; 50];
                encoder.encode_plain(pcm, &mut out);
                assert_eq!(out, *expected, "{clip} 30 ms frame {n}");
            }
        }
    }
}
