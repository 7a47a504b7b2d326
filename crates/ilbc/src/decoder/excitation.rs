//! The residual of a frame from its parameters: the start state, then the blocks around it from what is already there
//! (RFC 3951 §4.3, §4.4). The order of every float operation is the reference's.

use crate::bits::Frame;
use crate::codebook::{EXTRA_MEMORY, MEMORY, construct};
use crate::{Lpc, SAMPLES_MAX, STATE_BLOCK, SUB_BLOCK, Shape, start};

/// The residual of a whole frame. `filters` has one filter a sub-block.
pub(crate) fn residual(shape: &Shape, frame: &Frame, filters: &[Lpc], out: &mut [f32; SAMPLES_MAX]) {
    let first = shape.first_known(frame);
    let state = shape.state_place(frame);
    let (levels, filter) = (&frame.state[..shape.state], &filters[first / SUB_BLOCK]);
    start::construct(frame.scale, levels, filter, &mut out[state..state + shape.state]);

    let mut memory = [0.0; MEMORY];
    let extra_memory = MEMORY - EXTRA_MEMORY;
    if frame.state_first {
        memory[MEMORY - shape.state..].copy_from_slice(&out[state..state + shape.state]);
        let extra = &mut out[state + shape.state..first + STATE_BLOCK];
        construct(&memory[extra_memory..], &frame.extra, extra);
    } else {
        copy_reversed(&out[state..state + shape.state], &mut memory);
        construct(&memory[extra_memory..], &frame.extra, &mut out[first..state]);
        out[first..state].reverse();
    }

    let (back, forth) = (first / SUB_BLOCK, shape.coded - first / SUB_BLOCK);
    let (forwards, backwards) = frame.coded.split_at(forth);
    let known = first + STATE_BLOCK;
    memory = [0.0; MEMORY];
    memory[MEMORY - STATE_BLOCK..].copy_from_slice(&out[first..known]);
    for (choice, block) in forwards.iter().zip(out[known..].chunks_exact_mut(SUB_BLOCK)) {
        construct(&memory, choice, block);
        append(&mut memory, block);
    }
    memory = [0.0; MEMORY];
    copy_reversed(&out[first..shape.samples], &mut memory);
    for (choice, block) in backwards[..back].iter().zip(out[..first].rchunks_exact_mut(SUB_BLOCK)) {
        construct(&memory, choice, block);
        append(&mut memory, block);
        block.reverse();
    }
}

/// Moves a block to the end of the memory.
fn append(memory: &mut [f32; MEMORY], block: &[f32]) {
    memory.copy_within(block.len().., 0);
    memory[MEMORY - block.len()..].copy_from_slice(block);
}

/// Fills the end of the memory with samples in reverse order, as many as it holds.
fn copy_reversed(samples: &[f32], memory: &mut [f32; MEMORY]) {
    memory.iter_mut().rev().zip(samples).for_each(|(to, &from)| *to = from);
}

impl Shape {
    /// Where in the frame the two sub-blocks of the start state begin.
    pub(super) fn first_known(&self, frame: &Frame) -> usize {
        (usize::from(frame.start) - 1) * SUB_BLOCK
    }

    /// Where in the frame the start state begins.
    pub(super) fn state_place(&self, frame: &Frame) -> usize {
        self.first_known(frame) + if frame.state_first { 0 } else { self.extra }
    }
}
