//! The two frame sizes.

use crate::{Mode20, Mode30, bits, tables};

/// What differs between the two frame sizes.
#[derive(Debug)]
pub struct Shape {
    /// Samples of a frame.
    pub(crate) samples: usize,
    /// Bytes of a payload.
    pub(crate) bytes: usize,
    /// Sub-blocks of a frame.
    pub(crate) sub_blocks: usize,
    /// Sub-blocks coded by codebook alone: all but the two of the start state.
    pub(crate) coded: usize,
    /// Sets of line spectral frequencies sent.
    pub(crate) lsf_sets: usize,
    /// Samples of the start state.
    pub(crate) state: usize,
    /// Samples of the start state's sub-blocks that are coded by codebook: `STATE_BLOCK - state`.
    pub(crate) extra: usize,
    /// Weight of the older frequencies for each sub-block.
    pub(crate) lsf_weights: &'static [f32],
    /// Where each parameter's bits go.
    pub(crate) layout: &'static bits::Layout,
}

pub(crate) static SHAPE_20: Shape = Shape {
    samples: 160,
    bytes: 38,
    sub_blocks: 4,
    coded: 2,
    lsf_sets: 1,
    state: 57,
    extra: 23,
    lsf_weights: &tables::LSF_WEIGHTS_20,
    layout: &bits::LAYOUT_20,
};

pub(crate) static SHAPE_30: Shape = Shape {
    samples: 240,
    bytes: 50,
    sub_blocks: 6,
    coded: 4,
    lsf_sets: 2,
    state: 58,
    extra: 22,
    lsf_weights: &tables::LSF_WEIGHTS_30,
    layout: &bits::LAYOUT_30,
};

/// Ties a mode to its shape; nobody outside can name it.
pub trait Shaped {
    #[doc(hidden)]
    fn shape() -> &'static Shape;
}

impl Shaped for Mode20 {
    fn shape() -> &'static Shape {
        &SHAPE_20
    }
}

impl Shaped for Mode30 {
    fn shape() -> &'static Shape {
        &SHAPE_30
    }
}
