//! Where the spectrum changes suddenly: the boundaries that windows must not straddle.

use super::FRAME_SAMPLES;
use super::analysis::{FRAME_START, Span};

/// Onsets remembered at most.
const ONSETS: usize = 10;
/// Samples between the change and its detection.
const LAG: usize = 9;
/// Width of the two averages that are compared.
const WIDTH: usize = 16;
/// Difference of the averages (sums of [`WIDTH`]) that tells an onset.
const LEVEL: f32 = 1.7;
/// Samples without a difference after which the next onset may begin.
const HYSTERESIS: usize = 10;

/// Detector and list of onsets, as positions in the analysis span.
#[derive(Debug, Clone)]
pub struct Onsets {
    numerator: f32,
    denominator: f32,
    /// First-order prediction coefficient of the moment.
    fpc: f32,
    ring: [f32; WIDTH],
    sum: f32,
    cursor: usize,
    /// The last position with a difference, while an onset lasts.
    active: Option<usize>,
    positions: [usize; ONSETS],
    count: usize,
}

impl Default for Onsets {
    fn default() -> Self {
        Self {
            numerator: 0.0,
            denominator: 1.0,
            fpc: 0.0,
            ring: [0.0; WIDTH],
            sum: 0.0,
            cursor: 0,
            active: None,
            positions: [0; ONSETS],
            count: 0,
        }
    }
}

impl Onsets {
    /// Onsets so far, in order.
    pub fn list(&self) -> &[usize] {
        self.positions.get(..self.count).unwrap_or_default()
    }

    /// Moves the list back by a frame; what leaves the span is forgotten.
    pub fn shift(&mut self) {
        let mut kept = 0;
        for index in 0..self.count {
            if self.positions[index] > FRAME_SAMPLES {
                self.positions[kept] = self.positions[index] - FRAME_SAMPLES;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Looks for onsets in the newest frame of the pre-emphasised signal.
    pub fn detect(&mut self, emphasised: &Span) {
        self.active = self.active.map(|last| last.saturating_sub(FRAME_SAMPLES));
        for position in FRAME_START..FRAME_START + FRAME_SAMPLES {
            let (now, before) = (emphasised[position], emphasised[position - 1]);
            self.numerator = (now * before + 63.0 * self.numerator) / 64.0;
            self.denominator = (before * before + 63.0 * self.denominator) / 64.0;
            if self.denominator != 0.0 {
                self.fpc = if self.numerator.abs() > self.denominator {
                    if self.numerator >= 0.0 { 1.0 } else { -1.0 }
                } else {
                    self.numerator / self.denominator
                };
            }
            // The ring holds the coefficients of the last half and the sums of the half before.
            let opposite = (self.cursor + WIDTH / 2) % WIDTH;
            let older = self.ring[self.cursor];
            self.sum = self.sum - self.ring[opposite] + self.fpc;
            self.ring[opposite] = self.sum;
            self.ring[self.cursor] = self.fpc;
            self.cursor = (self.cursor + 1) % WIDTH;
            if (self.sum - older).abs() > LEVEL {
                if self.active.is_none()
                    && let Some(slot) = self.positions.get_mut(self.count)
                {
                    *slot = position - LAG;
                    self.count += 1;
                }
                self.active = Some(position);
            } else if self.active.is_some_and(|last| position - last >= HYSTERESIS) {
                self.active = None;
            }
        }
    }
}
