//! Telephone-events of RFC 4733: one machine that sends digits, one that hears them.

use core::time::Duration;

use base::{Digit, Instant};

use crate::Discard;

/// The final packet is sent this often (RFC 4733 §2.5.1.4).
const END_PACKETS: u8 = 3;
/// Volume in -dBm0 that we state; the field's usual value.
const VOLUME: u8 = 10;
/// An event without a packet for so long has ended: three packets of 60 ms (RFC 4733 §2.5.2.2).
const SILENT_END: Duration = Duration::from_millis(180);
/// Longest duration that one segment states (RFC 4733 §2.5.1.3).
const SEGMENT_UNITS: u32 = 0xffff;

/// The four bytes of an event (RFC 4733 §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPayload {
    /// Event code; 0 to 16 are digits and the flash.
    pub event: u8,
    /// The event has ended.
    pub end: bool,
    /// -dBm0, 0 to 63.
    pub volume: u8,
    /// Clock units since the segment's timestamp.
    pub duration: u16,
}

impl EventPayload {
    /// Reads the first event of a payload; what follows is ignored.
    pub fn parse(payload: &[u8]) -> Result<Self, Discard> {
        let [event, flags, d0, d1] = *payload.first_chunk::<4>().ok_or(Discard::BadEvent)?;
        Ok(Self {
            event,
            end: flags & 0x80 != 0,
            volume: flags & 0x3f,
            duration: u16::from_be_bytes([d0, d1]),
        })
    }
    /// The four bytes.
    pub fn write(self) -> [u8; 4] {
        let [d0, d1] = self.duration.to_be_bytes();
        [self.event, self.volume & 0x3f | if self.end { 0x80 } else { 0 }, d0, d1]
    }
}

/// One packet that [`EventSender::next_packet`] wants sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPacket {
    /// Payload.
    pub payload: [u8; 4],
    /// Timestamp of the segment.
    pub timestamp: u32,
    /// Marker bit: the event's first packet.
    pub marker: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Idle,
    Going { first: bool },
    Ending { left: u8 },
}

/// Sends one event after another: a packet each period, the duration growing, the last one three times.
#[derive(Debug)]
pub struct EventSender {
    state: Sending,
    event: u8,
    timestamp: u32,
    duration: u32,
    /// Units that the event is to last in all, and those of finished segments.
    wanted: u32,
    before: u32,
}

impl Default for EventSender {
    fn default() -> Self {
        Self { state: Sending::Idle, event: 0, timestamp: 0, duration: 0, wanted: 0, before: 0 }
    }
}

impl EventSender {
    /// Starts an event at `timestamp` for `units` clock units; `u32::MAX` until [`Self::finish`].
    pub fn begin(&mut self, digit: Digit, timestamp: u32, units: u32) {
        *self = Self {
            state: Sending::Going { first: true },
            event: digit.event(),
            timestamp,
            duration: 0,
            wanted: units,
            before: 0,
        };
    }
    /// Ends an open event at the next packet, but not before it has lasted `units` in all.
    pub fn finish(&mut self, units: u32) {
        self.wanted = units;
    }
    /// Whether an event is being sent.
    pub fn is_busy(&self) -> bool {
        self.state != Sending::Idle
    }
    /// The packet due one period (`units`) after the last; `None` when idle.
    pub fn next_packet(&mut self, units: u32) -> Option<EventPacket> {
        match self.state {
            Sending::Idle => None,
            Sending::Going { first } => {
                self.duration = self.duration.saturating_add(units);
                if self.duration > SEGMENT_UNITS {
                    self.timestamp = self.timestamp.wrapping_add(SEGMENT_UNITS);
                    self.before = self.before.saturating_add(SEGMENT_UNITS);
                    self.duration -= SEGMENT_UNITS;
                }
                let over = self.before.saturating_add(self.duration) >= self.wanted;
                self.state = if over {
                    Sending::Ending { left: END_PACKETS - 1 }
                } else {
                    Sending::Going { first: false }
                };
                Some(self.packet(over, first))
            }
            Sending::Ending { left } => {
                self.state = match left - 1 {
                    0 => Sending::Idle,
                    left => Sending::Ending { left },
                };
                Some(self.packet(true, false))
            }
        }
    }

    fn packet(&self, end: bool, marker: bool) -> EventPacket {
        let duration = u16::try_from(self.duration).unwrap_or(u16::MAX);
        let payload = EventPayload { event: self.event, end, volume: VOLUME, duration };
        EventPacket { payload: payload.write(), timestamp: self.timestamp, marker }
    }
}

/// A digit began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventEdge {
    /// It began.
    Begin(Digit),
    /// It ended after so many milliseconds.
    End(Digit, u32),
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    digit: Digit,
    /// Timestamp of the segment being heard.
    timestamp: u32,
    duration: u16,
    /// Units of finished segments.
    before: u32,
    clock: u32,
    last_packet: Instant,
}

impl Heard {
    fn end(&self) -> EventEdge {
        let units = u64::from(self.before) + u64::from(self.duration);
        let ms = (units * 1000).checked_div(u64::from(self.clock)).unwrap_or(0);
        EventEdge::End(self.digit, u32::try_from(ms).unwrap_or(u32::MAX))
    }
}

/// Hears events: one begin and one end each, whatever is lost, late or repeated.
#[derive(Debug, Default)]
pub struct EventReceiver {
    current: Option<Heard>,
    /// Timestamp of the newest event that has ended.
    ended: Option<u32>,
}

impl EventReceiver {
    /// Takes the payload of one accepted packet; up to two edges (an end that was lost, and a begin).
    pub fn packet(
        &mut self,
        payload: &[u8],
        timestamp: u32,
        clock: u32,
        now: Instant,
    ) -> Result<[Option<EventEdge>; 2], Discard> {
        let payload = EventPayload::parse(payload)?;
        let digit = Digit::from_event(payload.event).ok_or(Discard::BadEvent)?;
        if self.ended.is_some_and(|ended| !is_after(timestamp, ended)) {
            return Ok([None, None]); // a repeated end, or a packet of it that came late
        }
        let mut edges = [None, None];
        match &mut self.current {
            Some(heard) if heard.timestamp == timestamp => {
                heard.duration = heard.duration.max(payload.duration);
                heard.last_packet = now;
            }
            Some(heard) if !is_after(timestamp, heard.timestamp) => return Ok([None, None]),
            Some(heard)
                if heard.digit == digit && timestamp == heard.timestamp.wrapping_add(SEGMENT_UNITS) =>
            {
                heard.before = heard.before.saturating_add(SEGMENT_UNITS);
                (heard.timestamp, heard.duration, heard.last_packet) = (timestamp, payload.duration, now);
            }
            current => {
                edges = [current.map(|heard| heard.end()), Some(EventEdge::Begin(digit))];
                let duration = payload.duration;
                *current = Some(Heard { digit, timestamp, duration, before: 0, clock, last_packet: now });
            }
        }
        if payload.end
            && let Some(heard) = self.current.take()
        {
            self.ended = Some(heard.timestamp);
            let [first, second] = edges;
            return Ok(match (first, second) {
                // Three edges in one packet (lost end, begin, end) cannot be: the lost end is implied by the begin.
                (Some(lost), Some(begin)) => {
                    self.current = Some(Heard { last_packet: Instant::ZERO, ..heard });
                    self.ended = None;
                    [Some(lost), Some(begin)]
                }
                (None, Some(begin)) => [Some(begin), Some(heard.end())],
                (_, None) => [Some(heard.end()), None],
            });
        }
        Ok(edges)
    }
    /// Ends an event whose packets stopped coming; to be called at each tick of the stream.
    pub fn tick(&mut self, now: Instant) -> Option<EventEdge> {
        let heard = self.current.filter(|heard| now - heard.last_packet >= SILENT_END)?;
        self.current = None;
        self.ended = Some(heard.timestamp);
        Some(heard.end())
    }
    /// The source changed: timestamps of the old one mean nothing. Ends what is open.
    pub fn restart(&mut self) -> Option<EventEdge> {
        self.ended = None;
        self.current.take().map(|heard| heard.end())
    }
    /// Whether an event is being heard.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }
}

/// Whether `a` lies after `b` on a clock of 32 bits.
fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).wrapping_sub(1) < u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::EventEdge::{Begin, End};
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    fn five() -> Digit {
        Digit::from_char('5').unwrap()
    }

    #[test]
    fn rfc4733_2_5_1_4_a_digit_grows_each_period_and_ends_three_times() {
        let mut sender = EventSender::default();
        sender.begin(five(), 8000, 800);
        let sent: Vec<_> = core::iter::from_fn(|| sender.next_packet(160)).collect();
        let told: Vec<_> = sent
            .iter()
            .map(|packet| {
                let event = EventPayload::parse(&packet.payload).unwrap();
                assert_eq!((event.event, packet.timestamp), (5, 8000));
                (event.duration, event.end, packet.marker)
            })
            .collect();
        let expected = [
            (160, false, true),
            (320, false, false),
            (480, false, false),
            (640, false, false),
            (800, true, false),
            (800, true, false),
            (800, true, false),
        ];
        assert_eq!(told, expected);
        assert!(!sender.is_busy());
    }

    #[test]
    fn rfc4733_2_5_1_3_a_long_event_goes_on_in_segments_and_is_heard_as_one() {
        let mut sender = EventSender::default();
        let mut receiver = EventReceiver::default();
        sender.begin(five(), 100, 20 * 8000);
        let mut edges = Vec::new();
        let mut segments = std::collections::BTreeSet::new();
        let mut now = 0;
        while let Some(packet) = sender.next_packet(160) {
            now += 20;
            segments.insert(packet.timestamp);
            let got = receiver.packet(&packet.payload, packet.timestamp, 8000, ms(now)).unwrap();
            edges.extend(got.into_iter().flatten());
        }
        assert_eq!(segments.into_iter().collect::<Vec<_>>(), [100, 65_635, 131_170]);
        assert_eq!(edges, [Begin(five()), End(five(), 20_000)]);
    }

    #[test]
    fn rfc4733_2_5_2_one_begin_and_one_end_whatever_is_lost_late_or_repeated() {
        let packet = |event: u8, end: bool, duration: u16, timestamp: u32| {
            (EventPayload { event, end, volume: 10, duration }.write(), timestamp)
        };
        let one = Digit::from_char('1').unwrap();
        let two = Digit::from_char('2').unwrap();
        let cases = [
            (
                "plain",
                vec![packet(1, false, 160, 0), packet(1, false, 320, 0), packet(1, true, 480, 0)],
                vec![Begin(one), End(one, 60)],
            ),
            (
                "ends repeated",
                vec![
                    packet(1, false, 160, 0),
                    packet(1, true, 320, 0),
                    packet(1, true, 320, 0),
                    packet(1, true, 320, 0),
                ],
                vec![Begin(one), End(one, 40)],
            ),
            ("only an end arrived", vec![packet(1, true, 800, 0)], vec![Begin(one), End(one, 100)]),
            (
                "reordered after the end",
                vec![packet(1, false, 160, 0), packet(1, true, 480, 0), packet(1, false, 320, 0)],
                vec![Begin(one), End(one, 60)],
            ),
            (
                "all ends lost, next digit",
                vec![packet(1, false, 320, 0), packet(2, false, 160, 4000), packet(2, true, 320, 4000)],
                vec![Begin(one), End(one, 40), Begin(two), End(two, 40)],
            ),
            (
                "same digit twice",
                vec![packet(1, true, 320, 0), packet(1, true, 320, 4000)],
                vec![Begin(one), End(one, 40), Begin(one), End(one, 40)],
            ),
            (
                "late packet of the digit before",
                vec![packet(1, true, 320, 0), packet(2, false, 160, 4000), packet(1, false, 160, 0)],
                vec![Begin(one), End(one, 40), Begin(two), End(two, 20)],
            ),
            (
                "end lost and the next digit's first packet is its end",
                vec![packet(1, false, 320, 0), packet(2, true, 320, 4000)],
                vec![Begin(one), End(one, 40), Begin(two), End(two, 40)],
            ),
        ];
        for (name, packets, expected) in cases {
            for wrap in [0, u32::MAX - 2000] {
                let mut receiver = EventReceiver::default();
                let mut edges = Vec::new();
                let mut at = 1;
                for (payload, timestamp) in &packets {
                    at += 20;
                    let got = receiver.packet(payload, timestamp.wrapping_add(wrap), 8000, ms(at)).unwrap();
                    edges.extend(got.into_iter().flatten());
                }
                edges.extend(receiver.tick(ms(at + 20)));
                edges.extend(receiver.tick(ms(at + 400)));
                assert_eq!(edges, expected, "{name}, wrap {wrap}");
                assert!(!receiver.is_busy());
            }
        }
    }

    #[test]
    fn rfc4733_2_3_short_payloads_and_foreign_events_are_counted_words() {
        let mut receiver = EventReceiver::default();
        for payload in [&[][..], &[1, 2, 3], &[17, 0, 0, 1], &[255, 0x80, 0, 1]] {
            assert_eq!(receiver.packet(payload, 0, 8000, ms(0)), Err(Discard::BadEvent));
        }
    }
}
