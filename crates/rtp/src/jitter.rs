//! A jitter buffer of coded audio, addressed by timestamp, in fixed memory.
//!
//! A timestamp *is* a place in a ring of coded bytes: reordering costs nothing, a duplicate overwrites itself, loss is a
//! hole. Where sequence numbers say that a timestamp cannot be right, the packet lies where the one before it ended. In a format of constant rate the peer's packet length does not matter either. In one of variable rate
//! ([`Grid::is_variable`]) a payload stays whole: it begins with its length in the place of its first unit and goes on
//! through the places of the units that it covers besides.
//!
//! Delay adapts by slack, the time by which a packet comes before it is played. A late packet moves playout back by
//! what it missed; when a whole window of packets came much too early, playout skips a little forward.

use core::ops::Range;

/// How a format divides into the smallest pieces that can be cut apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Coded bytes of one unit.
    pub unit_bytes: u16,
    /// Timestamp steps of one unit.
    pub unit_stamps: u16,
    /// Microseconds of one unit.
    pub unit_us: u32,
    /// Payloads stay whole; `unit_bytes` is then the most that a unit may have, [`LENGTH_BYTES`] included.
    pub is_variable: bool,
}

/// What a payload of variable length has before it: its length.
pub const LENGTH_BYTES: usize = 2;
/// Longest payload of variable rate, milliseconds; the last place has room behind it for one.
const PACKET_MS_MAX: u32 = 120;

/// Delay bounds in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterLimits {
    /// Slack that playout aims at.
    pub min_ms: u16,
    /// Longest delay; what would wait longer is skipped.
    pub max_ms: u16,
}

/// What happened in one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JitterCounts {
    /// Packets that came after their time; playout moved back for them where the bounds allow.
    pub late: u32,
    /// Packets that were there already.
    pub duplicate: u32,
    /// Packets that came behind a newer one, in time.
    pub reordered: u32,
    /// Units that were due and missing.
    pub missing_units: u32,
    /// Units skipped because the delay had grown too long.
    pub skipped_units: u32,
    /// Times that the buffer began anew.
    pub resyncs: u32,
}

/// A run of equal fate within one pulled frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Pulled<'a> {
    /// These coded bytes.
    Audio(&'a [u8]),
    /// So many units are missing.
    Missing(usize),
}

/// Room beyond the longest delay, milliseconds: a packet of 60 ms and as much again.
const ROOM_MS: u32 = 120;
/// Packets after which a too comfortable slack is given back: four seconds of 20 ms.
const WINDOW_PACKETS: u32 = 200;
/// Slack above the aim that is tolerated, milliseconds.
const COMFORT_MS: u32 = 20;
/// What one step of shrinking skips, milliseconds.
const SHRINK_MS: u32 = 10;

/// The buffer.
#[derive(Debug)]
pub struct Jitter {
    grid: Grid,
    limits: JitterLimits,
    ring: Box<[u8]>,
    present: Box<[u64]>,
    /// Units that the payload before them covers; only of a format of variable rate.
    covered: Box<[u64]>,
    units: u32,
    /// Timestamp and unit of the first packet; `None` before it.
    origin: Option<Origin>,
    newest: Option<Newest>,
    counts: JitterCounts,
}

/// The packet with the newest number.
#[derive(Debug, Clone, Copy)]
struct Newest {
    sequence: u16,
    timestamp: u32,
    /// Timestamp steps that it lasts.
    lasts: u32,
    /// What is added to the sender's timestamps, so that they never go back.
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
struct Origin {
    timestamp: u32,
    /// Next unit to be played, counted from `timestamp` (may begin negative: that is the delay).
    playout: i64,
    /// One past the newest unit that arrived.
    newest: i64,
    /// Unit of the newest packet, for unwrapping timestamps.
    reference: i64,
    window_packets: u32,
    window_slack: i64,
}

impl Jitter {
    /// Allocates for the longest delay; the only allocation.
    pub fn new(grid: Grid, limits: JitterLimits) -> Self {
        let ms = u32::from(limits.max_ms.max(limits.min_ms)) + ROOM_MS;
        let units = (u64::from(ms) * 1000).div_ceil(u64::from(grid.unit_us.max(1)));
        let units = u32::try_from(units).unwrap_or(u32::MAX).clamp(1, 1 << 16);
        let words = units.div_ceil(64) as usize;
        let behind = if grid.is_variable { (PACKET_MS_MAX * 1000).div_ceil(grid.unit_us.max(1)) } else { 0 };
        Self {
            grid,
            limits,
            ring: vec![0; (units + behind) as usize * usize::from(grid.unit_bytes)].into(),
            present: vec![0; words].into(),
            covered: vec![0; if grid.is_variable { words } else { 0 }].into(),
            units,
            origin: None,
            newest: None,
            counts: JitterCounts::default(),
        }
    }
    /// Counters.
    pub const fn counts(&self) -> JitterCounts {
        self.counts
    }
    /// How the format divides.
    pub const fn grid(&self) -> Grid {
        self.grid
    }
    /// Milliseconds between the newest audio and the next to be played.
    pub fn delay_ms(&self) -> u32 {
        let units = self.origin.map_or(0, |o| (o.newest - o.playout).max(0));
        (units * i64::from(self.grid.unit_us) / 1000) as u32
    }
    /// Forgets everything; the next packet begins anew (another source or a restart).
    pub fn reset(&mut self) {
        self.present.fill(0);
        (self.origin, self.newest) = (None, None);
    }
    /// Puts in one packet's payload; whole units only. Returns whether it will be heard.
    pub fn push(&mut self, sequence: u16, timestamp: u32, payload: &[u8]) -> bool {
        self.push_units(
            sequence,
            timestamp,
            payload.len() / usize::from(self.grid.unit_bytes.max(1)),
            payload,
        )
    }
    /// Puts in one packet's payload that lasts `units`; of a format of variable rate the decoder's side knows how many.
    pub fn push_units(&mut self, sequence: u16, timestamp: u32, units: usize, payload: &[u8]) -> bool {
        let count = units.min(self.units as usize) as i64;
        let most = usize::from(self.grid.unit_bytes) * count as usize;
        let lasts_us = count as u32 * self.grid.unit_us;
        let fits = payload.len() + LENGTH_BYTES <= most && lasts_us <= PACKET_MS_MAX * 1000;
        if count == 0 || (self.grid.is_variable && !fits) {
            return false;
        }
        let Some(timestamp) = self.place(sequence, timestamp, count as u32) else {
            self.counts.late = self.counts.late.saturating_add(1);
            return false;
        };
        let Some(origin) = self.origin else {
            self.begin(timestamp);
            return self.store_within_max(0, count, payload);
        };
        let unit = origin.unit_of(timestamp, self.grid);
        let slack = unit - origin.playout;
        let window = i64::from(self.units);
        if slack < -self.units_in(u32::from(self.limits.max_ms) + ROOM_MS) || slack + count > window {
            // The sender's clock jumped, or it paused without letting the timestamp run.
            self.present.fill(0);
            self.counts.resyncs = self.counts.resyncs.saturating_add(1);
            self.begin(timestamp);
            return self.store_within_max(0, count, payload);
        }
        if slack < 0 {
            self.counts.late = self.counts.late.saturating_add(1);
            self.fell_late(slack);
            if self.origin.is_some_and(|o| unit + count <= o.playout) {
                return false;
            }
        }
        if unit + count <= origin.newest {
            if self.is_present(unit) {
                self.counts.duplicate = self.counts.duplicate.saturating_add(1);
                return false;
            }
            self.counts.reordered = self.counts.reordered.saturating_add(1);
        }
        let heard = self.store_within_max(unit, count, payload);
        self.give_slack_back(unit);
        heard
    }
    /// Takes `units` from the playout point, as runs of audio and holes; the frame's time has come.
    pub fn pull(&mut self, units: usize, mut run: impl FnMut(Pulled)) {
        let Some(mut origin) = self.origin else {
            run(Pulled::Missing(units));
            return;
        };
        let end = origin.playout + units as i64;
        while origin.playout < end {
            let start = origin.playout;
            let here = start >= 0 && self.is_present(start);
            if here && self.grid.is_variable {
                origin.playout = self.pull_whole(start, &mut run);
                continue;
            }
            let stop = start + self.alike(start, here, end - start);
            if here {
                self.mark_all(start, stop - start, false);
                let bytes = usize::from(self.grid.unit_bytes);
                let from = self.slot(start) * bytes;
                let length = (stop - start) as usize * bytes;
                run(Pulled::Audio(self.ring.get(from..from + length).unwrap_or(&[])));
            } else {
                // Not yet begun is delay, not loss.
                if stop > 0 && start < origin.newest {
                    self.counts.missing_units =
                        self.counts.missing_units.saturating_add((stop - start) as u32);
                }
                run(Pulled::Missing((stop - start) as usize));
            }
            origin.playout = stop;
        }
        self.origin = Some(origin);
    }

    /// Takes `units` from the playout point as one run of audio, when all of them are there; what it gives is good for
    /// [`Self::coded`] until the next packet is put in. Only of a format of constant rate.
    pub fn pull_run(&mut self, units: usize) -> Option<Range<usize>> {
        let origin = self.origin.filter(|origin| !self.grid.is_variable && origin.playout >= 0)?;
        let (start, count) = (origin.playout, units as i64);
        if self.alike(start, true, count) < count {
            return None;
        }
        self.mark_all(start, count, false);
        self.origin = Some(Origin { playout: start + count, ..origin });
        let bytes = usize::from(self.grid.unit_bytes);
        let from = self.slot(start) * bytes;
        Some(from..from + units * bytes)
    }
    /// Coded bytes of a run that [`Self::pull_run`] gave.
    pub fn coded(&self, run: Range<usize>) -> &[u8] {
        self.ring.get(run).unwrap_or_default()
    }

    /// The hole at the playout point, when there is one of at most `most` units and a payload right behind it: its units and
    /// that payload, which stays. Only of a format of variable rate, whose payloads may hold a copy of what is missing.
    pub fn hole(&self, most: usize) -> Option<(usize, &[u8])> {
        let Origin { playout, .. } = self.origin.filter(|o| self.grid.is_variable && o.playout >= 0)?;
        let units =
            (0..=most).find(|&units| self.is_present(playout + units as i64)).filter(|&units| units > 0)?;
        let unit = playout + units as i64;
        let length = usize::from(self.length_at(unit).filter(|_| !self.is_covered(unit))?);
        let from = self.slot(unit) * usize::from(self.grid.unit_bytes) + LENGTH_BYTES;
        Some((units, self.ring.get(from..from + length)?))
    }

    /// Gives the payload that begins at this unit, with all units that it covers; returns the unit after them. A payload
    /// whose beginning was missed is missing whole.
    fn pull_whole(&mut self, unit: i64, run: &mut impl FnMut(Pulled)) -> i64 {
        self.mark(unit, false);
        let mut after = unit + 1;
        let Some(length) = self.length_at(unit).filter(|_| !self.is_covered(unit)) else {
            self.counts.missing_units = self.counts.missing_units.saturating_add(1);
            run(Pulled::Missing(1));
            return after;
        };
        while self.is_present(after) && self.is_covered(after) {
            self.mark(after, false);
            after += 1;
        }
        let from = self.slot(unit) * usize::from(self.grid.unit_bytes) + LENGTH_BYTES;
        run(Pulled::Audio(self.ring.get(from..from + usize::from(length)).unwrap_or(&[])));
        after
    }
    fn length_at(&self, unit: i64) -> Option<u16> {
        let place = self.ring.get(self.slot(unit) * usize::from(self.grid.unit_bytes)..)?;
        place.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    }
    /// Where a packet that lasts `units` lies in time; `None` when it was overtaken by one on another clock.
    ///
    /// Sequence numbers say which packet was sent first. A newer one whose timestamp is not later tells that the sender has
    /// begun its timestamps anew, or lets them stand: it goes on where the newest one ended.
    fn place(&mut self, sequence: u16, timestamp: u32, units: u32) -> Option<u32> {
        let per = u32::from(self.grid.unit_stamps.max(1));
        let lasts = units * per;
        let window = self.units * per;
        let newest = self.newest.get_or_insert(Newest { sequence, timestamp, lasts, shift: 0 });
        let ahead = sequence.wrapping_sub(newest.sequence).cast_signed();
        let step = timestamp.wrapping_sub(newest.timestamp).cast_signed();
        if ahead > 0 {
            if step <= 0 {
                let lost = u32::from(ahead.unsigned_abs() - 1).wrapping_mul(newest.lasts);
                let after = newest.timestamp.wrapping_add(newest.shift).wrapping_add(newest.lasts);
                newest.shift = after.wrapping_add(lost).wrapping_sub(timestamp);
            }
            *newest = Newest { sequence, timestamp, lasts, ..*newest };
        } else if ahead < 0 && (step >= 0 || step.unsigned_abs() > window) {
            return None;
        }
        Some(timestamp.wrapping_add(newest.shift))
    }
    fn begin(&mut self, timestamp: u32) {
        let delay = self.units_in(u32::from(self.limits.min_ms));
        self.origin = Some(Origin {
            timestamp,
            playout: -delay,
            newest: 0,
            reference: 0,
            window_packets: 0,
            window_slack: i64::MAX,
        });
    }
    fn units_in(&self, ms: u32) -> i64 {
        i64::from(ms) * 1000 / i64::from(self.grid.unit_us.max(1))
    }
    /// Moves playout back so that a packet as late as this one would just have been in time.
    fn fell_late(&mut self, slack: i64) {
        let max = self.units_in(u32::from(self.limits.max_ms));
        if let Some(origin) = &mut self.origin {
            let room = (max - (origin.newest - origin.playout)).max(0);
            // Units behind the old playout point were handed out already; they are not there any more.
            origin.playout -= (-slack).min(room);
            origin.window_packets = 0;
            origin.window_slack = i64::MAX;
        }
    }
    fn store_within_max(&mut self, unit: i64, count: i64, payload: &[u8]) -> bool {
        let heard = self.store(unit, count, payload);
        self.keep_below_max();
        heard
    }
    fn keep_below_max(&mut self) {
        let max = self.units_in(u32::from(self.limits.max_ms.max(self.limits.min_ms)) + ROOM_MS / 2);
        let aim = self.units_in(u32::from(self.limits.min_ms) + COMFORT_MS);
        let Some(origin) = self.origin else { return };
        if origin.newest - origin.playout > max {
            self.skip_to(origin.newest - aim.max(1));
        }
    }
    fn give_slack_back(&mut self, unit: i64) {
        let aim = self.units_in(u32::from(self.limits.min_ms));
        let comfort = self.units_in(COMFORT_MS);
        let step = self.units_in(SHRINK_MS).max(1);
        let Some(origin) = &mut self.origin else { return };
        origin.window_slack = origin.window_slack.min(unit - origin.playout);
        origin.window_packets += 1;
        if origin.window_packets < WINDOW_PACKETS {
            return;
        }
        let spare = origin.window_slack - aim;
        origin.window_packets = 0;
        origin.window_slack = i64::MAX;
        if spare > comfort {
            let to = origin.playout + step;
            self.skip_to(to);
        }
    }
    fn skip_to(&mut self, unit: i64) {
        let Some(origin) = &mut self.origin else { return };
        let from = origin.playout.max(0);
        let skipped = (unit - origin.playout).max(0);
        origin.playout = origin.playout.max(unit);
        self.counts.skipped_units =
            self.counts.skipped_units.saturating_add(u32::try_from(skipped).unwrap_or(u32::MAX));
        for gone in from..unit.min(from + i64::from(self.units)) {
            self.mark(gone, false);
        }
    }
    fn store(&mut self, unit: i64, count: i64, payload: &[u8]) -> bool {
        let Some(origin) = &mut self.origin else { return false };
        origin.newest = origin.newest.max((unit + count).min(origin.playout + i64::from(self.units)));
        origin.reference = unit;
        // What comes before the first packet is never played; left there, it would be heard a ring later.
        let (playout, end) = (origin.playout.max(0), origin.playout + i64::from(self.units));
        let bytes = usize::from(self.grid.unit_bytes);
        let mut heard = false;
        if self.grid.is_variable {
            for index in 0..count {
                let at = unit + index;
                if at < playout || at >= end {
                    continue;
                }
                let slot = self.slot(at);
                if let Some(word) = self.covered.get_mut(slot / 64) {
                    let bit = 1 << (slot % 64);
                    *word = if index == 0 { *word & !bit } else { *word | bit };
                }
                if index == 0
                    && let Some((length, room)) =
                        self.ring.get_mut(slot * bytes..).and_then(|room| room.split_first_chunk_mut())
                {
                    *length = (payload.len() as u16).to_le_bytes();
                    room.iter_mut().zip(payload).for_each(|(to, from)| *to = *from);
                    heard = true;
                }
                self.mark(at, true);
            }
            return heard;
        }
        // What is neither played already nor too far ahead, in two pieces where the ring ends between.
        let first = unit.max(playout);
        let last = (unit + (payload.len() / bytes.max(1)) as i64).min(end);
        let mut at = first;
        while at < last {
            let slot = self.slot(at);
            let run = (last - at).min(i64::from(self.units) - slot as i64);
            let (from, length) = ((at - unit) as usize * bytes, run as usize * bytes);
            if let Some(room) = self.ring.get_mut(slot * bytes..slot * bytes + length)
                && let Some(coded) = payload.get(from..from + length)
            {
                room.copy_from_slice(coded);
                self.mark_all(at, run, true);
                heard = true;
            }
            at += run;
        }
        heard
    }
    fn slot(&self, unit: i64) -> usize {
        unit.rem_euclid(i64::from(self.units)) as usize
    }
    fn is_present(&self, unit: i64) -> bool {
        let slot = self.slot(unit);
        self.present.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }
    fn is_covered(&self, unit: i64) -> bool {
        let slot = self.slot(unit);
        self.covered.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }
    fn mark(&mut self, unit: i64, present: bool) {
        self.mark_all(unit, 1, present);
    }
    /// Marks units that lie one after the other in the ring.
    fn mark_all(&mut self, unit: i64, count: i64, present: bool) {
        let (mut slot, mut left) = (self.slot(unit), count.max(0) as usize);
        while left > 0 {
            let bits = left.min(64 - slot % 64);
            let mask = u64::MAX >> (64 - bits) << (slot % 64);
            if let Some(word) = self.present.get_mut(slot / 64) {
                *word = if present { *word | mask } else { *word & !mask };
            }
            (slot, left) = (slot + bits, left - bits);
        }
    }
    /// Units from `unit` on, of `most`, that are present, or that are missing, and lie one after the other in the ring.
    fn alike(&self, unit: i64, present: bool, most: i64) -> i64 {
        let slot = self.slot(unit);
        let most = most.min(i64::from(self.units) - slot as i64);
        if unit < 0 {
            // The ring begins anew at unit 0.
            return most;
        }
        let mut at = slot;
        let end = slot + most as usize;
        while at < end {
            let word = self.present.get(at / 64).map_or(0, |word| *word >> (at % 64));
            let same = if present { word.trailing_ones() } else { word.trailing_zeros() } as usize;
            let bits = 64 - at % 64;
            if same < bits {
                return ((at + same).min(end) - slot) as i64;
            }
            at += bits;
        }
        most
    }
}

impl Origin {
    /// The unit at which `timestamp` lies, unwrapped around the latest packet.
    fn unit_of(&self, timestamp: u32, grid: Grid) -> i64 {
        let per = i64::from(grid.unit_stamps.max(1));
        let reference = self.timestamp.wrapping_add((self.reference * per) as u32);
        let step = i64::from(timestamp.wrapping_sub(reference).cast_signed());
        self.reference + step.div_euclid(per)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One unit a millisecond, coded in one byte: easy to read.
    const GRID: Grid = Grid { unit_bytes: 1, unit_stamps: 8, unit_us: 1000, is_variable: false };

    fn buffer(min_ms: u16, max_ms: u16) -> Jitter {
        Jitter::new(GRID, JitterLimits { min_ms, max_ms })
    }
    /// Packet number `n` of 20 ms, filled with its number.
    fn push(jitter: &mut Jitter, n: u32) -> bool {
        jitter.push(n as u16, (n * 160).wrapping_add(u32::MAX - 500), &[n as u8; 20])
    }
    /// 20 ms as text: packet numbers and lengths, `-` for what is missing.
    fn pull(jitter: &mut Jitter) -> String {
        // Runs are cut where the ring wraps, which is no difference to the listener: compare unit by unit.
        let mut units = Vec::new();
        jitter.pull(20, |run| match run {
            Pulled::Audio(coded) => units.extend(coded.iter().map(u8::to_string)),
            Pulled::Missing(count) => units.extend(vec!["-".to_string(); count]),
        });
        let text: Vec<_> = units.chunk_by(|a, b| a == b).map(|c| format!("{}x{}", c[0], c.len())).collect();
        text.join(" ")
    }

    #[test]
    fn a_hole_is_told_with_the_payload_behind_it_which_stays() {
        let grid = Grid { unit_bytes: 8, unit_stamps: 480, unit_us: 10_000, is_variable: true };
        let mut jitter = Jitter::new(grid, JitterLimits { min_ms: 0, max_ms: 200 });
        assert!(jitter.push_units(0, 0, 2, &[1; 3]));
        assert!(jitter.push_units(2, 4 * 480, 2, &[3; 5]));
        assert_eq!(jitter.hole(6), None, "there is something to play");
        jitter.pull(2, |_| {});
        assert_eq!(jitter.hole(6), Some((2, &[3; 5][..])));
        assert_eq!(jitter.hole(1), None, "longer than was asked for");
        let mut pulled = Vec::new();
        jitter.pull(2, |run| pulled.push(matches!(run, Pulled::Missing(_))));
        assert!(pulled.iter().all(|missing| *missing));
        assert_eq!(jitter.hole(6), None);
        jitter.pull(2, |run| assert_eq!(run, Pulled::Audio(&[3; 5])));
        assert_eq!(jitter.hole(6), None, "nothing behind it");
    }

    #[test]
    fn in_order_packets_play_after_the_least_delay_and_without_a_hole() {
        let mut jitter = buffer(20, 200);
        push(&mut jitter, 0);
        assert_eq!(pull(&mut jitter), "-x20");
        for n in 1..500 {
            push(&mut jitter, n);
            let played: usize = pull(&mut jitter)
                .split(' ')
                .map(|r| r.split_once('x').unwrap().1.parse::<usize>().unwrap())
                .sum();
            assert_eq!(played, 20, "{n}");
        }
        assert_eq!(jitter.counts(), JitterCounts::default());
        assert_eq!(jitter.delay_ms(), 20);
    }

    #[test]
    fn reordered_packets_play_in_order_and_duplicates_once() {
        let mut jitter = buffer(60, 200);
        for n in [0, 2, 1, 1, 3] {
            push(&mut jitter, n);
        }
        let played: Vec<_> = (0..8).map(|_| pull(&mut jitter)).collect();
        assert_eq!(played, ["-x20", "-x20", "-x20", "0x20", "1x20", "2x20", "3x20", "-x20"]);
        assert_eq!((jitter.counts().reordered, jitter.counts().duplicate), (1, 1));
    }

    #[test]
    fn a_lost_packet_is_a_hole_of_its_own_length() {
        let mut jitter = buffer(20, 200);
        for n in [0, 2] {
            push(&mut jitter, n);
        }
        let played: Vec<_> = (0..4).map(|_| pull(&mut jitter)).collect();
        assert_eq!(played, ["-x20", "0x20", "-x20", "2x20"]);
        assert_eq!(jitter.counts().missing_units, 20);
    }

    #[test]
    fn a_late_packet_makes_the_delay_grow_up_to_the_bound_and_is_heard() {
        let mut jitter = buffer(20, 100);
        push(&mut jitter, 0);
        pull(&mut jitter);
        pull(&mut jitter);
        pull(&mut jitter);
        // 20 ms too late: playout waits for it, and the ones after are in time.
        push(&mut jitter, 1);
        assert_eq!(pull(&mut jitter), "1x20");
        for n in 2..50 {
            push(&mut jitter, n);
            assert_eq!(pull(&mut jitter), format!("{n}x20"));
        }
        assert_eq!(jitter.counts().late, 1);
    }

    #[test]
    fn a_delay_that_proved_needless_shrinks_again() {
        let mut jitter = buffer(20, 200);
        for n in 0..5 {
            push(&mut jitter, n); // a burst after a hold-up: 100 ms in the buffer
        }
        let before = jitter.delay_ms();
        for n in 5..1500 {
            push(&mut jitter, n);
            pull(&mut jitter);
        }
        assert!(before >= 100 && jitter.delay_ms() <= 70, "{before} to {}", jitter.delay_ms());
        assert!(jitter.counts().skipped_units >= 30);
    }

    #[test]
    fn a_burst_never_builds_more_than_the_longest_delay() {
        let mut jitter = buffer(20, 100);
        for n in 0..200 {
            push(&mut jitter, n);
            assert!(jitter.delay_ms() <= 160, "{}", jitter.delay_ms());
        }
    }

    #[test]
    fn rfc3550_5_1_sequence_numbers_say_what_comes_next_when_timestamps_begin_anew() {
        // Packets after ten regular ones: how far their number is ahead of the tenth, their timestamp from there on, what is
        // heard then, and how often the buffer begins anew.
        type Case = (&'static str, &'static [(u16, u32)], &'static [&'static str], u32);
        const BACK: u32 = 0u32.wrapping_sub(1_000_000);
        const HALF: u32 = 0x8000_0000;
        const BACK_60_MS: u32 = 0u32.wrapping_sub(480);
        const BACK_250_MS: u32 = 0u32.wrapping_sub(2000);
        let cases: [Case; 10] = [
            ("goes on", &[(1, 160)], &["9x20", "10x20"], 0),
            ("forward: what came before is played", &[(1, 1_000_000)], &["-x20", "10x20"], 1),
            ("forward by more than half", &[(1, HALF + 9)], &["9x20", "10x20"], 0),
            ("back by much", &[(1, BACK), (2, BACK + 160)], &["9x20", "10x20", "11x20"], 0),
            ("back by little", &[(1, BACK_60_MS)], &["9x20", "10x20"], 0),
            ("back by more than is held back", &[(1, BACK_250_MS)], &["9x20", "10x20"], 0),
            ("stands still", &[(1, 0), (2, 0), (3, 0)], &["9x20", "10x20", "11x20", "12x20"], 0),
            ("back, and one is lost", &[(2, BACK)], &["9x20", "-x20", "10x20"], 0),
            ("back, and one comes late", &[(2, BACK), (1, BACK - 160)], &["9x20", "11x20", "10x20"], 0),
            ("back, and one of the time before comes late", &[(2, BACK), (1, 160)], &["9x20", "-x20"], 0),
        ];
        for (name, packets, heard, resyncs) in cases {
            for numbers in [0, u16::MAX - 10, u16::MAX / 2 - 10] {
                let mut jitter = buffer(20, 200);
                for n in 0..10 {
                    let stamp = (u32::from(n) * 160).wrapping_add(u32::MAX - 500);
                    jitter.push(numbers.wrapping_add(n), stamp, &[n as u8; 20]);
                    pull(&mut jitter);
                }
                for (fill, (ahead, step)) in (10u8..).zip(packets) {
                    let stamp = step.wrapping_add(9 * 160).wrapping_add(u32::MAX - 500);
                    jitter.push(numbers.wrapping_add(9 + ahead), stamp, &[fill; 20]);
                }
                let played: Vec<_> = heard.iter().map(|_| pull(&mut jitter)).collect();
                assert_eq!(played, heard, "{name}, from {numbers}");
                assert_eq!(jitter.counts().resyncs, resyncs, "{name}");
            }
        }
    }

    #[test]
    fn a_peer_may_send_other_packet_lengths_than_we_play() {
        let mut jitter = buffer(0, 200);
        for n in 0..4_u32 {
            jitter.push(n as u16, n * 240, &[n as u8; 30]);
        }
        let played: Vec<_> = (0..6).map(|_| pull(&mut jitter)).collect();
        assert_eq!(played, ["0x20", "0x10 1x10", "1x20", "2x20", "2x10 3x10", "3x20"]);
    }

    #[test]
    fn hostile_timestamps_and_lengths_neither_panic_nor_grow_memory() {
        let mut jitter = buffer(20, 100);
        let mut seed = base::Random::new(3);
        let payload = [0; 1500];
        for _ in 0..40_000 {
            let timestamp = match seed.word() % 4 {
                0 => seed.word(),
                1 => seed.word() % 4000,
                2 => (seed.word() % 4000).wrapping_neg(),
                _ => 0x7fff_ff00 + seed.word() % 512,
            };
            let sequence = (seed.word() % 40) as u16;
            jitter.push(sequence, timestamp, &payload[..(seed.word() % 1500) as usize]);
            if seed.word().is_multiple_of(3) {
                let mut units = 0;
                jitter.pull(20, |run| match run {
                    Pulled::Audio(coded) => units += coded.len(),
                    Pulled::Missing(count) => units += count,
                });
                assert_eq!(units, 20);
            }
            assert!(jitter.delay_ms() <= 220);
        }
    }

    /// Frames of 20 ms of any length up to 4 bytes.
    const VARIABLE: Grid = Grid { unit_bytes: 6, unit_stamps: 160, unit_us: 20_000, is_variable: true };

    #[test]
    fn a_frame_at_once_is_the_same_as_its_units_one_by_one() {
        for units in [1, 3, 17, 60] {
            let mut seed = base::Random::new(units as u64);
            let (mut whole, mut single) = (buffer(20, 100), buffer(20, 100));
            for n in 0..3000_u32 {
                let place = (n * 20).wrapping_add(seed.word() % 50).wrapping_sub(seed.word() % 50);
                let is_odd = seed.word().is_multiple_of(7);
                let length = if is_odd { seed.word() as usize % 60 } else { 20 };
                let payload: Vec<u8> = (0..length).map(|unit| (place as usize + unit) as u8).collect();
                let heard =
                    [&mut whole, &mut single].map(|jitter| jitter.push(0, place.wrapping_mul(8), &payload));
                assert_eq!(heard[0], heard[1]);
                let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
                let note = |told: &mut Vec<Option<u8>>, run: Pulled| match run {
                    Pulled::Audio(coded) => {
                        assert!(coded.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{coded:?}");
                        told.extend(coded.iter().copied().map(Some));
                    }
                    Pulled::Missing(count) => told.extend(vec![None; count]),
                };
                match whole.pull_run(units) {
                    Some(run) => note(&mut at_once, Pulled::Audio(whole.coded(run))),
                    None => whole.pull(units, |run| note(&mut at_once, run)),
                }
                (0..units).for_each(|_| single.pull(1, |run| note(&mut one_by_one, run)));
                assert_eq!(at_once, one_by_one);
                assert_eq!(at_once.len(), units);
                // A run that reaches beyond the newest packet is counted whole.
                let counts = |jitter: &Jitter| JitterCounts { missing_units: 0, ..jitter.counts() };
                assert_eq!(counts(&whole), counts(&single));
            }
        }
    }

    #[test]
    fn payloads_of_variable_length_come_out_whole_in_order_and_holes_stay_holes() {
        let mut jitter = Jitter::new(VARIABLE, JitterLimits { min_ms: 0, max_ms: 200 });
        // (number of the frame, frames in it, payload)
        for (at, units, payload) in [
            (0u32, 1, &b"a"[..]),
            (2, 2, b"ccccdddd"),
            (1, 1, b"bbb"),
            (5, 1, b"f"),
            (6, 1, b"too long a one"),
        ] {
            jitter.push_units(at as u16, at * 160, units, payload);
        }
        let mut told = Vec::new();
        for _ in 0..7 {
            jitter.pull(1, |run| match run {
                Pulled::Audio(coded) => told.push(String::from_utf8_lossy(coded).into_owned()),
                Pulled::Missing(units) => told.push(format!("-{units}")),
            });
        }
        assert_eq!(told, ["a", "bbb", "ccccdddd", "-1", "f", "-1", "-1"]);
        // A payload whose first frame came too late to be played is not played from its middle.
        let mut jitter = Jitter::new(VARIABLE, JitterLimits { min_ms: 0, max_ms: 0 });
        jitter.push_units(0, 0, 1, b"a");
        jitter.pull(2, |_| {});
        assert!(!jitter.push_units(1, 160, 2, b"bbcc") || jitter.counts().late > 0);
        jitter.push_units(3, 480, 1, b"d");
        let mut heard = Vec::new();
        (0..4).for_each(|_| {
            jitter.pull(1, |run| {
                if let Pulled::Audio(coded) = run {
                    heard.push(coded.to_vec());
                }
            });
        });
        assert!(heard.contains(&b"d".to_vec()), "{heard:?}");
    }
}
