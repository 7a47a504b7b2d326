//! A worker's counters, shared without a lock: it writes, anyone reads.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use base::Instant;
use media::Load;
use rtp::Discard;

use super::sight::{SightCell, WorkerSight};

/// Fixed counters before the discards.
const FIXED: usize = 18;
/// What there is to count.
const COUNTS: usize = FIXED + Discard::ALL.len();
/// Times that counts are read which were written twice meanwhile; a worker writes them ten times a second.
const READS_MAX: usize = 1000;

/// What one worker says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerLoad {
    /// Streams open.
    pub streams: u64,
    /// Ticks run.
    pub ticks: u64,
    /// Slots run late or skipped.
    pub late_ticks: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Streams ended by their own panic.
    pub panics: u64,
    /// Share of the last second that the worker was awake, in thousandths.
    pub busy_permille: u64,
    /// Events that had to wait because the ring to the shard was full.
    pub events_delayed: u64,
    /// Milliseconds of the tick at present: 1 under load, else 5.
    pub tick_ms: u64,
    /// Processor time used, nanoseconds.
    pub cpu_nanos: u64,
    /// Groups of streams coded side by side.
    pub groups: u64,
    /// Frames coded in them.
    pub grouped: u64,
    /// Frames for which they had lanes.
    pub group_room: u64,
    /// Packets that waited in a batch and that no socket took.
    pub unsent: u64,
    /// Datagrams received by AF_XDP.
    pub by_xdp: u64,
    /// Packets that the XDP program relayed, which the worker neither received nor sent.
    pub relayed: u64,
    /// Bridges that it relays at present.
    pub relays: u64,
    /// Times that it took one over.
    pub relays_begun: u64,
    /// Packets thrown away, by reason, in the order of [`Discard::ALL`].
    pub discards: [u64; Discard::ALL.len()],
}

impl WorkerLoad {
    /// Why packets were thrown away, by the words of [`Discard::word`]: what happened at all.
    pub fn discarded(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let words = Discard::ALL.iter().map(|why| why.word());
        words.zip(self.discards).filter(|(_, count)| *count > 0)
    }
}

/// The cell that a worker writes.
#[derive(Debug)]
pub(crate) struct LoadCell {
    /// One copy is read while the other one is written: a worker that loses its processor meanwhile holds nobody up.
    copies: [[AtomicU64; COUNTS]; 2],
    /// How often they were written; the last bit says which copy is whole.
    written: AtomicU64,
    pub(crate) sight: SightCell,
}

impl Default for LoadCell {
    fn default() -> Self {
        Self {
            copies: [const { [const { AtomicU64::new(0) }; COUNTS] }; 2],
            written: AtomicU64::new(0),
            sight: SightCell::default(),
        }
    }
}

/// What the thread adds to the worker's own counters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadLoad {
    pub(crate) busy_permille: u64,
    pub(crate) events_delayed: u64,
    pub(crate) tick_ms: u64,
    pub(crate) cpu_nanos: u64,
    pub(crate) unsent: u64,
    pub(crate) by_xdp: u64,
}

impl LoadCell {
    pub(crate) fn store(&self, load: &Load, thread: ThreadLoad) {
        let fixed = [
            u64::from(load.streams),
            load.ticks,
            load.late_ticks,
            load.received,
            load.sent,
            load.panics,
            thread.busy_permille,
            thread.events_delayed,
            thread.tick_ms,
            thread.cpu_nanos,
            load.groups,
            load.grouped,
            load.group_room,
            thread.unsent,
            thread.by_xdp,
            load.relayed,
            u64::from(load.relays),
            load.relays_begun,
        ];
        let values = fixed.into_iter().chain(load.discards.iter().map(|(_, count)| count));
        let written = self.written.load(Relaxed).wrapping_add(1);
        // Whoever sees a part of what follows sees that the other copy is the whole one.
        fence(Release);
        for (cell, value) in self.copy(written).iter().zip(values) {
            cell.store(value, Relaxed);
        }
        self.written.store(written, Release);
    }
    fn copy(&self, written: u64) -> &[AtomicU64; COUNTS] {
        let [even, odd] = &self.copies;
        if written.is_multiple_of(2) { even } else { odd }
    }
    /// Counts of one moment.
    fn read(&self) -> WorkerLoad {
        let mut written = self.written.load(Acquire);
        for _ in 0..READS_MAX {
            let load = self.read_copy(written);
            fence(Acquire);
            let now = self.written.load(Relaxed);
            if now == written {
                return load;
            }
            fence(Acquire);
            written = now;
        }
        self.read_copy(written)
    }
    fn read_copy(&self, written: u64) -> WorkerLoad {
        let mut values = self.copy(written).iter().map(|cell| cell.load(Relaxed));
        let mut next = || values.next().unwrap_or(0);
        WorkerLoad {
            streams: next(),
            ticks: next(),
            late_ticks: next(),
            received: next(),
            sent: next(),
            panics: next(),
            busy_permille: next(),
            events_delayed: next(),
            tick_ms: next(),
            cpu_nanos: next(),
            groups: next(),
            grouped: next(),
            group_room: next(),
            unsent: next(),
            by_xdp: next(),
            relayed: next(),
            relays: next(),
            relays_begun: next(),
            discards: core::array::from_fn(|_| next()),
        }
    }
}

/// The counters of every worker; clone it for whoever shows them.
#[derive(Debug, Clone)]
pub struct MediaLoads(pub(crate) Arc<[Arc<LoadCell>]>);

impl MediaLoads {
    /// One row a worker, at most a tenth of a second old while it has streams.
    pub fn workers(&self) -> impl Iterator<Item = WorkerLoad> + '_ {
        self.0.iter().map(|cell| cell.read())
    }
    /// Where each worker's time went, in the same order.
    pub fn sights(&self, now: Instant) -> impl Iterator<Item = WorkerSight> + '_ {
        self.0.iter().map(move |cell| cell.sight.read(now))
    }
    /// Sum over all workers; the busy share is the busiest worker's.
    pub fn total(&self) -> WorkerLoad {
        self.workers().fold(WorkerLoad::default(), |sum, one| WorkerLoad {
            streams: sum.streams + one.streams,
            ticks: sum.ticks + one.ticks,
            late_ticks: sum.late_ticks + one.late_ticks,
            received: sum.received + one.received,
            sent: sum.sent + one.sent,
            panics: sum.panics + one.panics,
            busy_permille: sum.busy_permille.max(one.busy_permille),
            events_delayed: sum.events_delayed + one.events_delayed,
            tick_ms: sum.tick_ms.max(one.tick_ms),
            cpu_nanos: sum.cpu_nanos + one.cpu_nanos,
            groups: sum.groups + one.groups,
            grouped: sum.grouped + one.grouped,
            group_room: sum.group_room + one.group_room,
            unsent: sum.unsent + one.unsent,
            by_xdp: sum.by_xdp + one.by_xdp,
            relayed: sum.relayed + one.relayed,
            relays: sum.relays + one.relays,
            relays_begun: sum.relays_begun + one.relays_begun,
            discards: core::array::from_fn(|n| {
                sum.discards.get(n).copied().unwrap_or(0) + one.discards.get(n).copied().unwrap_or(0)
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_stores_is_what_is_read() {
        let cell = Arc::new(LoadCell::default());
        let mut load = Load { streams: 3, ticks: 9, sent: 7, ..Load::default() };
        load.discards.count(Discard::WrongSource);
        cell.store(&load, ThreadLoad { busy_permille: 12, tick_ms: 5, ..ThreadLoad::default() });
        let loads = MediaLoads([cell.clone(), cell].into());
        let one = loads.workers().next().unwrap();
        assert_eq!((one.streams, one.ticks, one.sent, one.busy_permille, one.tick_ms), (3, 9, 7, 12, 5));
        let total = loads.total();
        assert_eq!((total.streams, total.busy_permille), (6, 12));
        assert_eq!(total.discards[Discard::WrongSource as usize], 2);
    }

    #[test]
    fn what_is_read_while_a_worker_stores_is_of_one_moment() {
        const STORED: u64 = 500;
        let cell = Arc::new(LoadCell::default());
        let writer = cell.clone();
        let thread = std::thread::spawn(move || {
            for n in 1..=STORED {
                let load = Load { ticks: n, received: n, relays_begun: n, ..Load::default() };
                writer.store(&load, ThreadLoad { by_xdp: n, ..ThreadLoad::default() });
                std::thread::yield_now();
            }
        });
        let mut last = 0;
        while last < STORED {
            let load = cell.read();
            assert_eq!([load.received, load.by_xdp, load.relays_begun], [load.ticks; 3]);
            assert!(load.ticks >= last, "{} after {last}", load.ticks);
            last = load.ticks;
        }
        thread.join().unwrap();
    }
}
