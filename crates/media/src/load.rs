//! What a worker counts about itself, for metrics and the console.

use rtp::DiscardCounts;

/// A worker's counters since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Streams open at present.
    pub streams: u32,
    /// Ticks run.
    pub ticks: u64,
    /// Milliseconds of the wheel that were run late by more than the stretched tick, or skipped.
    pub late_ticks: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Packets that the back-end relayed below the worker, which neither received nor sent them.
    pub relayed: u64,
    /// Bridges that are below at present.
    pub relays: u32,
    /// Times that one went there.
    pub relays_begun: u64,
    /// Streams ended by a panic of their own.
    pub panics: u64,
    /// Packets encoded for one stream alone: in a bridge, or of what it plays where nothing shared suits it.
    pub encoded: u64,
    /// Groups of streams coded side by side.
    pub groups: u64,
    /// Frames coded in them.
    pub grouped: u64,
    /// Frames for which they had lanes.
    pub group_room: u64,
    /// What was thrown away.
    pub discards: DiscardCounts,
}
