//! What a room is told: short linear clips that everyone hears beside those who talk.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Clip;

use crate::room::bus::Buses;

/// Clips that wait; a room that is entered faster than they can be played has heard enough.
const WAITING_MAX: usize = 8;

/// The clips of one room, played one after the other.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    clips: VecDeque<Arc<Clip>>,
    /// Byte of the first clip that is next.
    offset: usize,
    /// Where the clips are heard; all have one rate.
    bus: Option<usize>,
}

impl Announcer {
    pub(crate) const fn bus(&self) -> Option<usize> {
        self.bus
    }
    pub(crate) const fn bus_mut(&mut self) -> Option<&mut usize> {
        self.bus.as_mut()
    }
    /// Takes a clip that is linear and has the rate of those that wait.
    pub(crate) fn queue(&mut self, clip: Arc<Clip>, buses: &mut Buses) {
        let rate = clip.format.rate();
        let fits = self.clips.front().is_none_or(|first| first.format == clip.format);
        if !clip.format.is_linear() || !fits || self.clips.len() >= WAITING_MAX {
            return;
        }
        if self.clips.is_empty() {
            self.clips.reserve(WAITING_MAX);
            self.bus = Some(buses.of(rate));
        }
        self.clips.push_back(clip);
    }
    /// Fills a round of the bus; false when there is nothing to hear.
    pub(crate) fn fill(&mut self, mut out: &mut [i16]) -> bool {
        if self.clips.is_empty() {
            return false;
        }
        while let Some(clip) = self.clips.front() {
            let rest = clip.data.get(self.offset..).unwrap_or_default().as_chunks::<2>().0;
            let count = rest.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            for (sample, pair) in now.iter_mut().zip(rest) {
                *sample = i16::from_le_bytes(*pair);
            }
            out = later;
            self.offset += 2 * count;
            if count < rest.len() {
                break;
            }
            self.offset = 0;
            // The last owner of a clip frees it; the library keeps another one for seconds at least.
            self.clips.pop_front();
        }
        out.fill(0);
        true
    }
}
