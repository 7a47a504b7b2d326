//! Synthesis filters of all streams from their line spectral frequencies.

use lanes::{Kernel, LANES_MAX, Lanes, Vector};

use super::{FilterRows, Parameters, gather, kept};
use crate::lsf_rows::{LsfRows, stabilise, to_lpc};
use crate::{ORDER, Shape};

/// Fills `filters`, and replaces the frequencies in `kept` by the frame's.
pub(super) struct Filters<'a, L: Lanes> {
    pub shape: &'a Shape,
    pub parameters: &'a [Parameters; LANES_MAX],
    pub kept: &'a mut [L::F32; kept::COUNT],
    pub filters: &'a mut FilterRows<L>,
}

impl<L: Lanes> Kernel for Filters<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run<Same: Lanes>(self) {
        let sets = self.shape.lsf_sets;
        let first = frequencies::<L>(self.parameters, 0);
        let last = if sets == 2 { frequencies::<L>(self.parameters, 1) } else { first };
        let mut old = first;
        old.copy_from_slice(&self.kept[kept::LSF]);
        for (index, &weight) in self.shape.lsf_weights.iter().enumerate() {
            let (older, newer) = if sets == 1 || index == 0 { (&old, &first) } else { (&first, &last) };
            if index > 0 && weight == self.shape.lsf_weights[index - 1] {
                self.filters[index] = self.filters[index - 1];
                continue;
            }
            let mut between = old;
            for k in 0..ORDER {
                between[k] = L::F32::splat(weight) * older[k] + L::F32::splat(1.0 - weight) * newer[k];
            }
            self.filters[index] = to_lpc::<L>(&between);
        }
        self.kept[kept::LSF].copy_from_slice(&last);
    }
}

/// The stable frequencies of one set of indices.
#[inline(always)]
fn frequencies<L: Lanes>(parameters: &[Parameters; LANES_MAX], set: usize) -> LsfRows<L::F32> {
    let mut rows = [L::F32::splat(0.0); LANES_MAX];
    gather::<L, _>(parameters, |parameters| &parameters.lsf[set], &mut rows);
    let mut lsf = [L::F32::splat(0.0); ORDER];
    lsf.copy_from_slice(&rows[..ORDER]);
    stabilise::<L>(&mut lsf);
    lsf
}
