//! Sequence numbers and timestamps of what we send, continuous whatever feeds them.
//!
//! One SSRC goes to the peer for the whole call, while its audio comes from prompts, music, digits and one bridged
//! party after another. The peer sees one sequence without a jump; loss that happened before us stays visible as gaps.

use core::time::Duration;

use base::Instant;

/// Frames whose schedule slipped by up to this many periods are still one spurt; later ones start a new one.
const SPURT_PERIODS: u32 = 3;

/// A relayed source's timestamps may be off the time by so much: a network that held packets up, a pause that they do not
/// show. What is further off began anew.
const OFF_TIME_MAX: Duration = Duration::from_secs(2);
/// A newer packet's timestamp may lie so far before the newest one: pictures are sent in another order than they are shown.
const BACK_MAX: Duration = Duration::from_millis(500);

/// The numbers of one packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Marker bit: the first packet after a pause or a change of source.
    pub marker: bool,
}

/// What is added to a source's numbers, and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// Added to its sequence numbers.
    pub sequence: u16,
    /// Added to its timestamps.
    pub timestamp: u32,
    /// The timestamp sent last, as the source would have it.
    pub latest: u32,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    source: u64,
    sequence_in: u16,
    timestamp_in: u32,
    sequence_out: u16,
    timestamp_out: u32,
    /// Packets since the mapping began, by the newest one; older packets are mapped while they stay at or after 0.
    newest: i32,
}

/// Numbering of one outgoing stream.
#[derive(Debug, Clone)]
pub struct Outgoing {
    ssrc: u32,
    clock: u32,
    next_sequence: u16,
    /// Timestamp of the latest packet, and when it was due.
    latest: Option<(u32, Instant)>,
    first_timestamp: u32,
    mapping: Option<Mapping>,
    local_spurt: bool,
}

impl Outgoing {
    /// Starts at random numbers that the signalling plane drew.
    pub const fn new(ssrc: u32, first_sequence: u16, first_timestamp: u32, clock: u32) -> Self {
        Self {
            ssrc,
            clock,
            next_sequence: first_sequence,
            latest: None,
            first_timestamp,
            mapping: None,
            local_spurt: false,
        }
    }
    /// Our SSRC.
    pub const fn ssrc(&self) -> u32 {
        self.ssrc
    }
    /// A new format may have another clock; numbers go on.
    pub fn set_clock(&mut self, clock: u32) {
        self.clock = clock;
    }
    /// The timestamp that audio due at `now` carries; what a sender report pairs with wall time.
    pub fn timestamp_at(&self, now: Instant) -> u32 {
        match self.latest {
            Some((timestamp, at)) => timestamp.wrapping_add(self.units(now - at)),
            None => self.first_timestamp,
        }
    }
    /// Numbers for a frame of `units` clock units that is made here and due at `now`.
    pub fn local(&mut self, now: Instant, units: u32) -> Stamp {
        let (timestamp, marker) = match self.latest {
            Some((latest, at)) if self.local_spurt && self.units(now - at) <= units * SPURT_PERIODS => {
                (latest.wrapping_add(units), false)
            }
            Some(_) => (self.after_pause(now, units), true),
            None => (self.first_timestamp, true),
        };
        self.mapping = None;
        self.local_spurt = true;
        self.latest = Some((timestamp, now));
        Stamp { sequence: self.take_sequence(), timestamp, marker }
    }
    /// Starts a telephone-event at `now`: its packets all carry this timestamp (RFC 4733 §2.2).
    pub fn event_timestamp(&mut self, now: Instant, units: u32) -> u32 {
        let timestamp = self.after_pause(now, units);
        self.mapping = None;
        self.local_spurt = false;
        self.latest = Some((timestamp, now));
        timestamp
    }
    /// A sequence number for a packet with a timestamp of its own (a telephone-event).
    pub fn event_sequence(&mut self) -> u16 {
        self.mapping = None;
        self.local_spurt = false;
        self.take_sequence()
    }
    /// Numbers for a packet that came from `source` with numbers of its own; `units` is a frame of it.
    ///
    /// `None` when the packet is older than the source's turn, so that no number is used twice.
    pub fn relay(
        &mut self,
        source: u64,
        sequence: u16,
        timestamp: u32,
        marker: bool,
        now: Instant,
        units: u32,
    ) -> Option<Stamp> {
        if let Some(mapping) = &mut self.mapping
            && mapping.source == source
        {
            let step = i32::from(sequence.wrapping_sub(mapping.sequence_at_newest()).cast_signed());
            let position = mapping.newest.checked_add(step)?;
            if position < 0 {
                return None;
            }
            let sequence_out = mapping.sequence_out.wrapping_add(position as u16);
            let mut timestamp_out =
                mapping.timestamp_out.wrapping_add(timestamp.wrapping_sub(mapping.timestamp_in));
            let is_news = position > mapping.newest;
            let mut marker = marker;
            if let Some((latest, at)) = self.latest
                && begins_anew(timestamp_out, latest, at, now, self.clock)
            {
                if !is_news {
                    return None; // overtaken by a packet of another time
                }
                let passed = units_in(now - at, self.clock).max(units);
                (timestamp_out, marker) = (latest.wrapping_add(passed), true);
                (mapping.timestamp_in, mapping.timestamp_out) = (timestamp, timestamp_out);
            }
            if is_news {
                mapping.newest = position;
                self.next_sequence = sequence_out.wrapping_add(1);
                self.latest = Some((timestamp_out, now));
            }
            return Some(Stamp { sequence: sequence_out, timestamp: timestamp_out, marker });
        }
        let timestamp_out = self.after_pause(now, units);
        let sequence_out = self.take_sequence();
        self.mapping = Some(Mapping {
            source,
            sequence_in: sequence,
            timestamp_in: timestamp,
            sequence_out,
            timestamp_out,
            newest: 0,
        });
        self.local_spurt = false;
        self.latest = Some((timestamp_out, now));
        Some(Stamp { sequence: sequence_out, timestamp: timestamp_out, marker: true })
    }

    /// What [`Self::relay`] adds to sequence number and timestamp of the packets of `source` at present, for somebody else who
    /// relays them; `None` when the next one would begin a new mapping.
    pub fn offsets(&self, source: u64) -> Option<Offsets> {
        let mapping = self.mapping.as_ref().filter(|mapping| mapping.source == source)?;
        let timestamp = mapping.timestamp_out.wrapping_sub(mapping.timestamp_in);
        Some(Offsets {
            sequence: mapping.sequence_out.wrapping_sub(mapping.sequence_in),
            timestamp,
            latest: self.latest?.0.wrapping_sub(timestamp),
        })
    }
    /// Somebody else has relayed packets of `source` with the [`Self::offsets`] that it got, and this was the newest, at `at`.
    /// Nothing is judged: it has left.
    pub fn relayed_with_offsets(&mut self, source: u64, sequence: u16, timestamp: u32, at: Instant) {
        let Some(mapping) = self.mapping.as_mut().filter(|mapping| mapping.source == source) else { return };
        let step = i32::from(sequence.wrapping_sub(mapping.sequence_at_newest()).cast_signed());
        let Some(position) = mapping.newest.checked_add(step).filter(|_| step > 0) else { return };
        mapping.newest = position;
        self.next_sequence = mapping.sequence_out.wrapping_add(position as u16).wrapping_add(1);
        let since = timestamp.wrapping_sub(mapping.timestamp_in);
        self.latest = Some((mapping.timestamp_out.wrapping_add(since), at));
    }

    /// The number under which the packet came from `source` that left under this one; `None` when it did not.
    pub fn origin(&self, source: u64, sequence: u16) -> Option<u16> {
        let mapping = self.mapping.as_ref().filter(|mapping| mapping.source == source)?;
        let newest = mapping.sequence_out.wrapping_add(mapping.newest as u16);
        let position = mapping.newest.checked_sub(i32::from(newest.wrapping_sub(sequence).cast_signed()))?;
        let is_its = (0..=mapping.newest).contains(&position);
        is_its.then(|| mapping.sequence_in.wrapping_add(position as u16))
    }

    fn take_sequence(&mut self) -> u16 {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        sequence
    }
    /// Time went on while nobody sent: the timestamp follows it, by one frame at least.
    fn after_pause(&self, now: Instant, units: u32) -> u32 {
        match self.latest {
            Some((latest, at)) => latest.wrapping_add(self.units(now - at).max(units)),
            None => self.first_timestamp,
        }
    }
    fn units(&self, time: Duration) -> u32 {
        units_in(time, self.clock)
    }
}

fn units_in(time: Duration, clock: u32) -> u32 {
    // Whole seconds apart: division of 128 bits is slow.
    let part = u64::from(time.subsec_nanos()) * u64::from(clock) / 1_000_000_000;
    (time.as_secs().wrapping_mul(u64::from(clock)).wrapping_add(part)) as u32
}

/// Whether a timestamp cannot belong to the same run as `latest`, which was sent at `at`.
fn begins_anew(timestamp: u32, latest: u32, at: Instant, now: Instant, clock: u32) -> bool {
    let step = timestamp.wrapping_sub(latest).cast_signed();
    let off = timestamp.wrapping_sub(latest.wrapping_add(units_in(now - at, clock))).cast_signed();
    step < 0 && step.unsigned_abs() > units_in(BACK_MAX, clock)
        || off.unsigned_abs() > units_in(OFF_TIME_MAX, clock)
}

impl Mapping {
    fn sequence_at_newest(&self) -> u16 {
        self.sequence_in.wrapping_add(self.newest as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    fn stamp(sequence: u16, timestamp: u32, marker: bool) -> Stamp {
        Stamp { sequence, timestamp, marker }
    }

    #[test]
    fn rfc3550_5_1_numbers_are_continuous_across_prompt_relay_digit_and_another_source() {
        let mut out = Outgoing::new(1, 65_534, 1000, 8000);
        assert_eq!(out.local(ms(0), 160), stamp(65_534, 1000, true));
        assert_eq!(out.local(ms(20), 160), stamp(65_535, 1160, false));
        // A bridged party takes over; its own numbers are far away.
        assert_eq!(out.relay(7, 500, 90_000, false, ms(40), 160), Some(stamp(0, 1320, true)));
        assert_eq!(out.relay(7, 501, 90_160, false, ms(61), 160), Some(stamp(1, 1480, false)));
        // One lost before us stays a gap; one that was only late fills it.
        assert_eq!(out.relay(7, 503, 90_480, false, ms(100), 160), Some(stamp(3, 1800, false)));
        assert_eq!(out.relay(7, 502, 90_320, false, ms(101), 160), Some(stamp(2, 1640, false)));
        // Older than its turn: refused, because those numbers belong to the prompt.
        assert_eq!(out.relay(7, 499, 89_840, false, ms(102), 160), None);
        let event = out.event_timestamp(ms(120), 160);
        assert_eq!(event, 1960);
        assert_eq!(out.event_sequence(), 4);
        assert_eq!(out.event_sequence(), 5);
        // After a pause of 5 s the timestamp shows it.
        assert_eq!(out.relay(8, 9, 9, true, ms(5120), 160), Some(stamp(6, 1960 + 40_000, true)));
    }

    #[test]
    fn rfc3550_5_1_a_source_that_begins_its_timestamps_anew_goes_on_for_the_peer() {
        // The third packet: its number and timestamp after two regular ones, when it comes, and what leaves; then what leaves
        // of the next one, 20 ms later.
        type Case = (&'static str, (u16, u32, u64), Option<(u16, u32, bool)>, Option<(u16, u32, bool)>);
        let cases: [Case; 9] = [
            ("regular", (2, 320, 40), Some((2, 320, false)), Some((3, 480, false))),
            (
                "a pause that the timestamp shows",
                (2, 80_000, 9980),
                Some((2, 80_000, false)),
                Some((3, 80_160, false)),
            ),
            ("back by much", (2, 0x9000_0000, 40), Some((2, 320, true)), Some((3, 480, false))),
            ("back by 5 s", (2, 0u32.wrapping_sub(40_000), 40), Some((2, 320, true)), Some((3, 480, false))),
            ("forward by more than half", (2, 0x9000_0320, 40), Some((2, 320, true)), Some((3, 480, false))),
            ("forward by 100 s", (2, 800_000, 40), Some((2, 320, true)), Some((3, 480, false))),
            (
                "a pause that it does not show",
                (2, 320, 9980),
                Some((2, 79_840, true)),
                Some((3, 80_000, false)),
            ),
            (
                "back by a picture, as B pictures are",
                (2, 0u32.wrapping_sub(640), 40),
                Some((2, 0u32.wrapping_sub(640), false)),
                None,
            ),
            (
                "lost ones before it stay a gap",
                (9, 0x9000_0000, 180),
                Some((9, 1440, true)),
                Some((10, 1600, false)),
            ),
        ];
        let plain = |stamp: Option<Stamp>| stamp.map(|s| (s.sequence, s.timestamp, s.marker));
        for (name, (sequence, timestamp, at), third, fourth) in cases {
            let mut out = Outgoing::new(1, 0, 0, 8000);
            out.relay(7, 0, 0, true, ms(0), 160);
            out.relay(7, 1, 160, false, ms(20), 160);
            assert_eq!(plain(out.relay(7, sequence, timestamp, false, ms(at), 160)), third, "{name}");
            let next = out.relay(7, sequence + 1, timestamp.wrapping_add(160), false, ms(at + 20), 160);
            if fourth.is_some() {
                assert_eq!(plain(next), fourth, "{name}");
            }
            if third.is_some_and(|(.., anew)| anew) && !name.starts_with("a pause") {
                let late = out.relay(7, 1, 160, false, ms(at + 25), 160);
                assert_eq!(late, None, "{name}: a late one of the time before");
            }
        }
    }

    #[test]
    fn numbers_go_on_after_what_somebody_else_relayed_however_fast_it_came() {
        let mut out = Outgoing::new(1, 65_000, 7, 8000);
        out.relay(7, 10, 90_000, true, ms(0), 160);
        let offsets = out.offsets(7).unwrap();
        assert_eq!(
            offsets,
            Offsets { sequence: 64_990, timestamp: 0u32.wrapping_sub(89_993), latest: 90_000 }
        );
        assert_eq!(out.offsets(8), None);
        // A minute of sound within 40 ms.
        out.relayed_with_offsets(7, 3010, 90_000 + 3000 * 160, ms(40));
        out.relayed_with_offsets(8, 9000, 1, ms(40));
        out.relayed_with_offsets(7, 3009, 90_000 + 2999 * 160, ms(41));
        let next = out.relay(7, 3011, 90_000 + 3001 * 160, false, ms(60), 160);
        assert_eq!(next, Some(stamp(3011_u16.wrapping_add(64_990), 7 + 3001 * 160, false)));
    }

    #[test]
    fn what_left_is_traced_back_to_the_numbers_that_it_came_under() {
        let mut out = Outgoing::new(1, 65_534, 0, 90_000);
        out.relay(7, 500, 0, false, ms(0), 1800);
        out.relay(7, 504, 0, false, ms(1), 1800);
        for (source, sequence, expected) in [
            (7, 65_533, None),
            (7, 65_534, Some(500)),
            (7, 0, Some(502)),
            (7, 2, Some(504)),
            (7, 3, None),
            (7, 40_000, None),
            (8, 0, None),
        ] {
            assert_eq!(out.origin(source, sequence), expected, "{source} {sequence}");
        }
        out.relay(8, 9, 0, false, ms(2), 1800);
        assert_eq!((out.origin(7, 2), out.origin(8, 3)), (None, Some(9)), "only of the present source");
        // Numbers go round many times in a call.
        (10..80_000_u32).for_each(|sequence| {
            out.relay(8, sequence as u16, 0, false, ms(3), 1800);
        });
        assert_eq!(out.origin(8, (3 + 79_990_u32) as u16), Some(79_999_u32 as u16));
    }

    #[test]
    fn a_late_tick_keeps_one_spurt_and_a_long_pause_starts_another() {
        let mut out = Outgoing::new(1, 0, 0, 8000);
        out.local(ms(0), 160);
        assert_eq!(out.local(ms(45), 160), stamp(1, 160, false));
        assert_eq!(out.local(ms(1045), 160), stamp(2, 160 + 8000, true));
    }
}
