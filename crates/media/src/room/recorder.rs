//! Where a room is written down: what everyone hears who does not talk.

use base::AudioSink;

/// A sink, and the bus whose sum it takes.
pub(crate) struct Recorder {
    pub(crate) bus: usize,
    pub(crate) sink: Box<dyn AudioSink>,
}

impl core::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recorder").field("bus", &self.bus).finish_non_exhaustive()
    }
}
