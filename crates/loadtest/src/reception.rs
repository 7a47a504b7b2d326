//! What one side of a call hears, packet by packet: what is missing, what came twice, and when it came.

use std::time::Duration;

use base::Instant;
use rtp::Header;

use crate::histogram::Histogram;

/// Packets back from the newest that are remembered, to tell what came twice from what came late.
const REMEMBERED: u32 = 64;
/// A jump ahead of so many packets is a new stream, not a loss (RFC 3550 A.1).
const JUMP: u16 = 3000;
/// A distance from the grid of so much is no lateness but a stream that has begun anew.
const REBASE: Duration = Duration::from_millis(500);

/// Counted over a window, for one stream or for many together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Packets that came, doubles among them.
    pub received: u64,
    /// Numbers that were skipped and have not come since.
    pub lost: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that came after a later one.
    pub reordered: u64,
    /// How much later than the grid of its stream each packet came; the grid is that of the promptest packet.
    pub lateness: Histogram,
    /// How far the distance to the packet before was from what it should be.
    pub deviation: Histogram,
}

impl Arrivals {
    /// Adds what another window has counted.
    pub fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.lateness.merge(&other.lateness);
        self.deviation.merge(&other.deviation);
    }
}

/// One stream that arrives.
#[derive(Debug, Clone, Default)]
pub struct Reception {
    ssrc: Option<u32>,
    newest: u16,
    stamp: u32,
    at: Instant,
    /// Bit n: the packet n before the newest has come.
    came: u64,
    /// Lost since the call began, what came late taken back.
    lost: u64,
    received: u64,
    /// Arrival time less media time of the promptest packet, nanoseconds.
    base: Option<i128>,
    /// Media time of the newest packet since the stream began, in its clock's units.
    media: i64,
    transit: Option<i128>,
    /// 16 times the interarrival jitter of RFC 3550 A.8, nanoseconds.
    jitter_x16: i128,
}

impl Reception {
    /// Takes one packet in. `clock` is that of the timestamps, hertz.
    pub fn packet(&mut self, header: &Header, clock: u32, now: Instant, counted: &mut Arrivals) {
        self.received += 1;
        counted.received += 1;
        let ahead = header.sequence.wrapping_sub(self.newest);
        if self.ssrc != Some(header.ssrc) || (JUMP..u16::MAX - JUMP).contains(&ahead) {
            self.begin(header, now);
            return;
        }
        if ahead == 0 || ahead > u16::MAX / 2 {
            self.old(u32::from(ahead.wrapping_neg()), counted);
            return;
        }
        let missing = u64::from(ahead - 1);
        self.lost += missing;
        counted.lost += missing;
        self.came = self.came.checked_shl(u32::from(ahead)).unwrap_or(0) | 1;
        self.newest = header.sequence;
        let step = i64::from(header.timestamp.wrapping_sub(self.stamp).cast_signed());
        self.media += step;
        self.stamp = header.timestamp;
        let gap = now - self.at;
        self.at = now;
        let spacing = units(step, clock);
        if ahead == 1 && !header.marker && spacing > 0 {
            let should = Duration::from_nanos(u64::try_from(spacing).unwrap_or(0));
            counted.deviation.add(gap.abs_diff(should));
        }
        self.place(header.marker, clock, now, counted);
    }

    /// Where the newest packet lies against the grid.
    fn place(&mut self, begins: bool, clock: u32, now: Instant, counted: &mut Arrivals) {
        let transit = i128::from(now.as_nanos()) - units(self.media, clock);
        if let Some(before) = self.transit.replace(transit) {
            let moved = (transit - before).abs();
            if moved < REBASE.as_nanos().cast_signed() {
                self.jitter_x16 += moved - ((self.jitter_x16 + 8) >> 4);
            }
        }
        let base = self.base.get_or_insert(transit);
        let late = transit - *base;
        // A spurt of talk may begin a grid of its own.
        if late < 0 || begins || late > REBASE.as_nanos().cast_signed() {
            *base = transit;
        }
        let late = u64::try_from(late.max(0)).unwrap_or(u64::MAX);
        if !begins && u128::from(late) <= REBASE.as_nanos() {
            counted.lateness.add(Duration::from_nanos(late));
        }
    }

    /// A packet that is not newer than the newest.
    fn old(&mut self, back: u32, counted: &mut Arrivals) {
        let bit = 1_u64.checked_shl(back).unwrap_or(0);
        if back < REMEMBERED && self.came & bit == 0 {
            self.came |= bit;
            self.lost = self.lost.saturating_sub(1);
            counted.lost = counted.lost.saturating_sub(1);
            counted.reordered += 1;
        } else {
            counted.duplicates += 1;
        }
    }

    fn begin(&mut self, header: &Header, now: Instant) {
        self.ssrc = Some(header.ssrc);
        (self.newest, self.stamp, self.at, self.came) = (header.sequence, header.timestamp, now, 1);
        let transit = i128::from(now.as_nanos());
        (self.base, self.media, self.transit) = (Some(transit), 0, Some(transit));
    }

    /// Packets that came since the call began.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Packets that never came.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Interarrival jitter (RFC 3550 A.8).
    pub fn jitter(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.jitter_x16 >> 4).unwrap_or(0))
    }

    /// When the newest packet came.
    pub const fn heard_at(&self) -> Instant {
        self.at
    }
}

/// Nanoseconds of so many units of a clock.
fn units(count: i64, clock: u32) -> i128 {
    i128::from(count) * 1_000_000_000 / i128::from(clock.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs packets (number, milliseconds) through a fresh reception.
    fn hear(packets: &[(u16, u64)]) -> (Reception, Arrivals) {
        let (mut reception, mut counted) = (Reception::default(), Arrivals::default());
        for &(sequence, at) in packets {
            let header = Header {
                payload_type: 0,
                marker: false,
                sequence,
                timestamp: u32::from(sequence).wrapping_mul(160),
                ssrc: 7,
            };
            reception.packet(&header, 8000, Instant::from_nanos(at * 1_000_000), &mut counted);
        }
        (reception, counted)
    }

    #[test]
    fn what_is_missing_doubled_or_late_is_told_apart() {
        for (name, packets, lost, duplicates, reordered) in [
            ("in order", vec![(1, 0), (2, 20), (3, 40)], 0, 0, 0),
            ("one lost", vec![(1, 0), (3, 40)], 1, 0, 0),
            ("lost, then late", vec![(1, 0), (3, 40), (2, 41)], 0, 0, 1),
            ("twice", vec![(1, 0), (2, 20), (2, 21)], 0, 1, 0),
            ("late and twice", vec![(1, 0), (3, 40), (2, 41), (2, 42)], 0, 1, 1),
            ("over the end of the numbers", vec![(65_534, 0), (65_535, 20), (0, 40), (2, 80)], 1, 0, 0),
            ("a new stream of the same source", vec![(1, 0), (2, 20), (30_000, 40), (30_001, 60)], 0, 0, 0),
        ] {
            let (reception, counted) = hear(&packets);
            let told = (counted.lost, counted.duplicates, counted.reordered);
            assert_eq!(told, (lost, duplicates, reordered), "{name}");
            assert_eq!((reception.received(), reception.lost()), (packets.len() as u64, lost), "{name}");
        }
    }

    #[test]
    fn lateness_is_measured_from_the_grid_and_deviation_from_the_packet_before() {
        let (_, counted) = hear(&[(1, 0), (2, 20), (3, 47), (4, 60), (5, 80)]);
        assert_eq!(counted.lateness.worst(), Duration::from_millis(7));
        assert_eq!(counted.lateness.count(), 4);
        assert_eq!(counted.deviation.worst(), Duration::from_millis(7));
        // A prompter packet shows that the first ones were late.
        let (_, counted) = hear(&[(1, 5), (2, 20), (3, 45)]);
        assert_eq!(counted.lateness.worst(), Duration::from_millis(5));
    }

    #[test]
    fn rfc3550_a_8_jitter_moves_by_a_sixteenth_of_each_change() {
        let (reception, _) = hear(&[(1, 0), (2, 36)]);
        assert_eq!(reception.jitter(), Duration::from_millis(1));
    }
}
