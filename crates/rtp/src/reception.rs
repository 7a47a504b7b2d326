//! What a receiver counts about one source: extended sequence, loss, jitter (RFC 3550 A.1, A.3, A.8).

use core::time::Duration;

use base::Instant;

use crate::Header;

/// A jump forward of at least this many packets is a restart until confirmed (RFC 3550 A.1).
pub const MAX_DROPOUT: u16 = 3000;
/// A jump back of up to this many packets is reordering (RFC 3550 A.1).
const MAX_MISORDER: u16 = 100;

/// What one packet was to the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// The next one, or a gap before it.
    InOrder,
    /// Older than the newest: late, reordered or a duplicate.
    OutOfOrder,
    /// First of a source, or a source that restarted; what was buffered of the old one is void.
    Restarted,
    /// A jump that the next packet has to confirm; not to be heard.
    Suspect,
}

/// Counters about the source that a stream hears.
#[derive(Debug, Default, Clone)]
pub struct Reception {
    ssrc: u32,
    started: bool,
    base_sequence: u16,
    max_sequence: u16,
    cycles: u32,
    /// The sequence number that would confirm a jump.
    bad_sequence: Option<u16>,
    received: u32,
    expected_prior: u32,
    received_prior: u32,
    /// Loss of sources that this stream heard earlier; the totals of a call span SSRC changes.
    lost_before: u32,
    transit: Option<u32>,
    jitter_x16: u64,
    clock: u32,
}

impl Reception {
    /// The source that is heard; `None` before the first packet.
    pub const fn ssrc(&self) -> Option<u32> {
        if self.started { Some(self.ssrc) } else { None }
    }
    /// Counts one accepted packet, stamped by a clock of `clock` hertz.
    pub fn packet(&mut self, header: &Header, clock: u32, now: Instant) -> Arrived {
        if !self.started || header.ssrc != self.ssrc {
            self.restart(header);
            self.time(header.timestamp, clock, now);
            return Arrived::Restarted;
        }
        let ahead = header.sequence.wrapping_sub(self.max_sequence);
        let arrived = if ahead == 0 {
            Arrived::OutOfOrder
        } else if ahead < MAX_DROPOUT {
            if header.sequence < self.max_sequence {
                self.cycles = self.cycles.wrapping_add(1 << 16);
            }
            self.max_sequence = header.sequence;
            Arrived::InOrder
        } else if ahead <= u16::MAX - MAX_MISORDER {
            if self.bad_sequence != Some(header.sequence) {
                self.bad_sequence = Some(header.sequence.wrapping_add(1));
                return Arrived::Suspect;
            }
            self.restart(header);
            self.time(header.timestamp, clock, now);
            return Arrived::Restarted;
        } else {
            Arrived::OutOfOrder
        };
        self.bad_sequence = None;
        self.received = self.received.wrapping_add(1);
        self.time(header.timestamp, clock, now);
        arrived
    }
    /// Whether a packet of this number would be newer than all that were counted, or a jump; older ones are reordered, or
    /// duplicates.
    pub const fn is_news(&self, sequence: u16) -> bool {
        let ahead = sequence.wrapping_sub(self.max_sequence);
        ahead != 0 && ahead <= u16::MAX - MAX_MISORDER
    }
    /// Counts packets of this source that somebody else judged as [`Self::packet`] does: so many, up to `highest`, with the
    /// jitter of [`Self::jitter_x16`] as they left it. `latest` is the timestamp of the last one and when it came.
    pub fn relayed(
        &mut self,
        packets: u32,
        highest: u16,
        jitter_x16: u64,
        latest: (u32, Instant),
        clock: u32,
    ) {
        let ahead = highest.wrapping_sub(self.max_sequence);
        // What was received here meanwhile may be newer.
        if ahead > 0 && ahead.cast_signed() > 0 {
            if highest < self.max_sequence {
                self.cycles = self.cycles.wrapping_add(1 << 16);
            }
            self.max_sequence = highest;
        }
        self.received = self.received.wrapping_add(packets);
        self.bad_sequence = None;
        self.transit = None;
        self.time(latest.0, clock, latest.1);
        self.jitter_x16 = jitter_x16;
    }
    /// Sixteen times the interarrival jitter, as it is kept (RFC 3550 A.8).
    pub const fn jitter_x16(&self) -> u64 {
        self.jitter_x16
    }
    /// Extended highest sequence number received (RFC 3550 §6.4.1).
    pub const fn extended_highest(&self) -> u32 {
        self.cycles.wrapping_add(self.max_sequence as u32)
    }
    /// The extended number of a packet that was just counted: which of two packets was sent first, over 2^31 of them.
    pub const fn extended(&self, sequence: u16) -> u32 {
        let behind = self.max_sequence.wrapping_sub(sequence);
        self.extended_highest().wrapping_sub(behind as u32)
    }
    /// Packets expected less packets received, over all sources heard; duplicates can make one source's loss
    /// negative, which counts as none.
    pub fn lost(&self) -> u32 {
        self.lost_before.saturating_add(self.lost_of_source())
    }
    /// Interarrival jitter in timestamp units (RFC 3550 A.8).
    pub const fn jitter(&self) -> u32 {
        (self.jitter_x16 >> 4) as u32
    }
    /// Interarrival jitter as time.
    pub fn jitter_time(&self) -> Duration {
        let micros = u64::from(self.jitter()) * 1_000_000;
        Duration::from_micros(micros.checked_div(u64::from(self.clock)).unwrap_or(0))
    }
    /// Share of packets lost since this was asked last, in 1/256 (RFC 3550 A.3); starts the next interval.
    pub fn fraction_lost(&mut self) -> u8 {
        let expected = self.expected();
        let expected_interval = expected.wrapping_sub(self.expected_prior);
        let received_interval = self.received.wrapping_sub(self.received_prior);
        self.expected_prior = expected;
        self.received_prior = self.received;
        let lost = i64::from(expected_interval) - i64::from(received_interval);
        if expected_interval == 0 || lost <= 0 {
            return 0;
        }
        u8::try_from((lost << 8) / i64::from(expected_interval)).unwrap_or(u8::MAX)
    }

    fn expected(&self) -> u32 {
        if !self.started {
            return 0;
        }
        self.extended_highest().wrapping_sub(u32::from(self.base_sequence)).wrapping_add(1)
    }
    fn lost_of_source(&self) -> u32 {
        self.expected().saturating_sub(self.received)
    }
    fn restart(&mut self, header: &Header) {
        let lost_before = self.lost();
        *self = Self {
            ssrc: header.ssrc,
            started: true,
            base_sequence: header.sequence,
            max_sequence: header.sequence,
            received: 1,
            lost_before,
            jitter_x16: self.jitter_x16,
            ..Self::default()
        };
    }
    fn time(&mut self, timestamp: u32, clock: u32, now: Instant) {
        if clock != self.clock {
            self.transit = None;
            self.clock = clock;
        }
        // Whole seconds apart: division of 128 bits is slow.
        let (seconds, nanos) = (now.as_nanos() / 1_000_000_000, now.as_nanos() % 1_000_000_000);
        let part = nanos * u64::from(clock) / 1_000_000_000;
        let arrival = seconds.wrapping_mul(u64::from(clock)).wrapping_add(part) as u32;
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            // Both are 32-bit clocks: the difference is taken modulo 2^32.
            let difference = u64::from(transit.wrapping_sub(before).cast_signed().unsigned_abs());
            // A pause that the timestamp does not show is not jitter: more than a second is left out.
            if difference < u64::from(clock) {
                self.jitter_x16 = smooth(self.jitter_x16, difference);
            }
        }
    }
}

/// One step of the jitter's estimate, kept sixteenfold, by how much one transit time differs from the one before
/// (RFC 3550 A.8).
pub const fn smooth(jitter_x16: u64, difference: u64) -> u64 {
    (jitter_x16 + difference).saturating_sub((jitter_x16 + 8) >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u16, timestamp: u32) -> Header {
        Header { sequence, timestamp, ssrc: 7, ..Header::default() }
    }
    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn rfc3550_a_1_sequence_wraps_reorders_and_restarts_only_when_confirmed() {
        let mut source = Reception::default();
        let steps = [
            (65_534, Arrived::Restarted),
            (65_535, Arrived::InOrder),
            (1, Arrived::InOrder),
            (0, Arrived::OutOfOrder),
            (1, Arrived::OutOfOrder),
            (20_000, Arrived::Suspect),
            (2, Arrived::InOrder),
            (30_000, Arrived::Suspect),
            (30_001, Arrived::Restarted),
        ];
        for (sequence, expected) in steps {
            assert_eq!(source.packet(&packet(sequence, 0), 8000, ms(0)), expected, "{sequence}");
        }
        let mut wrapped = Reception::default();
        for sequence in [65_535, 0, 1] {
            wrapped.packet(&packet(sequence, 0), 8000, ms(0));
        }
        assert_eq!(wrapped.extended_highest(), 65_537);
    }

    #[test]
    fn rfc3550_a_3_loss_is_expected_less_received_and_the_fraction_is_per_interval() {
        let mut source = Reception::default();
        for sequence in (0..10).filter(|n| n % 5 != 4).chain([10]) {
            source.packet(&packet(sequence, 0), 8000, ms(0));
        }
        assert_eq!(source.lost(), 2);
        assert_eq!(source.fraction_lost(), (2 * 256 / 11) as u8);
        assert_eq!(source.fraction_lost(), 0, "nothing arrived since");
        // Another source: its loss adds up.
        source.packet(&Header { ssrc: 8, sequence: 100, ..Header::default() }, 8000, ms(0));
        source.packet(&Header { ssrc: 8, sequence: 102, ..Header::default() }, 8000, ms(0));
        assert_eq!(source.lost(), 3);
    }

    #[test]
    fn rfc3550_a_8_jitter_follows_the_variation_of_transit_time() {
        let mut even = Reception::default();
        let mut uneven = Reception::default();
        for n in 0..500_u16 {
            let (at, stamp) = (u64::from(n) * 20, u32::from(n) * 160);
            even.packet(&packet(n, stamp), 8000, ms(at));
            uneven.packet(&packet(n, stamp), 8000, ms(at + u64::from(n % 2) * 10));
        }
        assert_eq!(even.jitter(), 0);
        // Every step differs by 10 ms = 80 units, so J converges to 80.
        assert!((70..=80).contains(&uneven.jitter()), "{}", uneven.jitter());
        assert!((8..=10).contains(&uneven.jitter_time().as_millis()));
    }
}
