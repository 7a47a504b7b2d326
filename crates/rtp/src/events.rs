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
/// Shortest duration after which a sender may go on in another segment: half the longest. A press that is shorter is whole,
/// and what begins where it ended is the next one.
const SEGMENT_LEAST: u16 = 0x7fff;
/// Longest event that is believed: a minute, longer than anybody holds a key. What its sender says after that is left out
/// until it ends.
pub const EVENT_MAX: Duration = Duration::from_secs(60);

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

/// Where a packet of an event stands among those of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// Its number, extended ([`crate::Reception::extended`]): which of two packets was sent first.
    pub sequence: u32,
    /// Its timestamp: where the sender says that the event, or a segment of it, began.
    pub timestamp: u32,
    /// Its marker bit: the first packet of an event.
    pub marker: bool,
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
    /// Number of its newest packet.
    sequence: u32,
    first_packet: Instant,
    last_packet: Instant,
}

impl Heard {
    fn begin(digit: Digit, at: EventPlace, duration: u16, clock: u32, now: Instant) -> Self {
        let EventPlace { sequence, timestamp, .. } = at;
        Self { digit, timestamp, duration, before: 0, clock, sequence, first_packet: now, last_packet: now }
    }
    fn end(&self) -> EventEdge {
        let units = u64::from(self.before) + u64::from(self.duration);
        let ms = (units * 1000).checked_div(u64::from(self.clock)).unwrap_or(0);
        EventEdge::End(self.digit, u32::try_from(ms).unwrap_or(u32::MAX))
    }
    /// Whether a newer packet of the same digit belongs to this event, which has not ended.
    ///
    /// It does under the same timestamp, in the segment that follows (RFC 4733 §2.5.1.3), and where a sender lets the
    /// timestamp run while the duration grows. The first packet of an event says that it is one.
    fn goes_on(&self, at: EventPlace, payload: EventPayload) -> bool {
        if at.timestamp == self.timestamp {
            return !(at.marker && payload.duration < self.duration);
        }
        let span = at.timestamp.wrapping_sub(self.timestamp);
        let runs = span <= u32::from(self.duration.max(payload.duration)) && payload.duration > self.duration;
        let drifted_end = payload.end && span < u32::from(self.duration);
        !at.marker && (runs || drifted_end || self.is_next_segment(at))
    }
    fn is_next_segment(&self, at: EventPlace) -> bool {
        let step = at.timestamp.wrapping_sub(self.timestamp);
        !at.marker
            && (step == SEGMENT_UNITS || self.duration > SEGMENT_LEAST && step == u32::from(self.duration))
    }
    fn take(&mut self, at: EventPlace, payload: EventPayload, now: Instant) {
        if at.timestamp != self.timestamp && self.is_next_segment(at) {
            self.before = self.before.saturating_add(at.timestamp.wrapping_sub(self.timestamp));
            (self.timestamp, self.duration) = (at.timestamp, payload.duration);
        } else {
            self.duration = self.duration.max(payload.duration);
        }
        (self.sequence, self.last_packet) = (at.sequence, now);
    }
}

/// The newest event that has ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    digit: Digit,
    /// Number of its newest packet.
    sequence: u32,
    /// Timestamp of its last segment.
    timestamp: u32,
    duration: u16,
    /// Units after the timestamp within which an end is this one's, repeated; `None` when its packets stopped coming, or it
    /// lasted too long, and its end is still to come.
    span: Option<u32>,
}

impl Ended {
    /// Whether a newer packet of the same digit is this event's: its end once more (RFC 4733 §2.5.1.4), or what comes of it
    /// after packets stopped for a while. Whoever presses the key again begins with a marker, or a shorter duration.
    fn repeats(&mut self, at: EventPlace, payload: EventPayload) -> bool {
        let step = at.timestamp.wrapping_sub(self.timestamp);
        let stated = u32::from(payload.duration);
        if self.span.is_none() && step == SEGMENT_UNITS && !at.marker {
            *self =
                Self { timestamp: at.timestamp, duration: payload.duration, sequence: at.sequence, ..*self };
            return true;
        }
        let is_within = match self.span {
            _ if step == 0 => true,
            Some(span) => step < span,
            None => step < stated && payload.duration > self.duration,
        };
        let is_anew = !payload.end && (at.marker || payload.duration < self.duration);
        if !is_within || is_anew {
            return false;
        }
        // A sender whose timestamp runs states each repetition later, and longer.
        let reaches = step.saturating_add(stated).min(SEGMENT_UNITS);
        self.span = self.span.map(|span| span.max(reaches)).or(payload.end.then_some(reaches));
        self.duration = self.duration.max(payload.duration);
        self.sequence = at.sequence;
        true
    }
}

/// Hears events: one begin and one end each, whatever is lost, late or repeated.
///
/// Sequence numbers say which of two packets was sent first. Timestamps only say which packets are one event: a sender may
/// begin them anew within a call, let them stand or run on (RFC 3550 §5.1 promises no more than random beginnings).
#[derive(Debug, Default)]
pub struct EventReceiver {
    current: Option<Heard>,
    ended: Option<Ended>,
}

impl EventReceiver {
    /// Takes the payload of one accepted packet; up to two edges (an end that was lost, and a begin).
    pub fn packet(
        &mut self,
        payload: &[u8],
        at: EventPlace,
        clock: u32,
        now: Instant,
    ) -> Result<[Option<EventEdge>; 2], Discard> {
        let payload = EventPayload::parse(payload)?;
        let digit = Digit::from_event(payload.event).ok_or(Discard::BadEvent)?;
        let newest = self.current.map(|heard| heard.sequence).or(self.ended.map(|ended| ended.sequence));
        if newest.is_some_and(|newest| !is_after(at.sequence, newest)) {
            return Ok([None, None]); // a duplicate, or a packet that others have overtaken
        }
        if let Some(ended) =
            self.ended.as_mut().filter(|ended| self.current.is_none() && ended.digit == digit)
            && ended.repeats(at, payload)
        {
            return Ok([None, None]);
        }
        let mut edges = [None, None];
        match &mut self.current {
            Some(heard) if heard.digit == digit && heard.goes_on(at, payload) => heard.take(at, payload, now),
            current => {
                edges = [current.map(|heard| heard.end()), Some(EventEdge::Begin(digit))];
                *current = Some(Heard::begin(digit, at, payload.duration, clock, now));
            }
        }
        if payload.end
            && let Some(heard) = self.current.take()
        {
            self.over(&heard, Some(heard.duration.into()));
            let [first, second] = edges;
            return Ok(match (first, second) {
                // Three edges in one packet (lost end, begin, end) cannot be: the lost end is implied by the begin.
                (Some(lost), Some(begin)) => {
                    self.current = Some(Heard { last_packet: Instant::ZERO, ..heard });
                    [Some(lost), Some(begin)]
                }
                (None, Some(begin)) => [Some(begin), Some(heard.end())],
                (_, None) => [Some(heard.end()), None],
            });
        }
        Ok(edges)
    }
    /// Ends an event whose packets stopped coming, and one that lasts longer than [`EVENT_MAX`]; to be called at each tick of
    /// the stream.
    pub fn tick(&mut self, now: Instant) -> Option<EventEdge> {
        let is_over =
            |heard: &Heard| now - heard.last_packet >= SILENT_END || now - heard.first_packet >= EVENT_MAX;
        let heard = self.current.filter(is_over)?;
        self.current = None;
        // Its sender may go on all the same, and end it later: that is still this press.
        self.over(&heard, None);
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
    fn over(&mut self, heard: &Heard, span: Option<u32>) {
        let Heard { digit, sequence, timestamp, duration, .. } = *heard;
        self.ended = Some(Ended { digit, sequence, timestamp, duration, span });
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
            let at = EventPlace { sequence: now as u32, timestamp: packet.timestamp, marker: packet.marker };
            let got = receiver.packet(&packet.payload, at, 8000, ms(now)).unwrap();
            edges.extend(got.into_iter().flatten());
        }
        assert_eq!(segments.into_iter().collect::<Vec<_>>(), [100, 65_635, 131_170]);
        assert_eq!(edges, [Begin(five()), End(five(), 20_000)]);
    }

    /// A packet: its number, the event, its duration, its timestamp, and what besides: `e` ends it, `m` has the marker, a
    /// number is milliseconds of silence before it.
    type Row = (u32, u8, u16, u32, &'static str);

    fn hear(receiver: &mut EventReceiver, rows: &[Row], (numbers, stamps): (u32, u32)) -> Vec<EventEdge> {
        let mut edges = Vec::new();
        let mut at = 1;
        for &(number, event, duration, timestamp, flags) in rows {
            at += 20;
            for _ in 0..flags.trim_matches(['e', 'm']).parse::<u64>().unwrap_or(0) / 20 {
                at += 20;
                edges.extend(receiver.tick(ms(at)));
            }
            let payload = EventPayload { event, end: flags.contains('e'), volume: 10, duration }.write();
            let place = EventPlace {
                sequence: numbers.wrapping_add(number),
                timestamp: stamps.wrapping_add(timestamp),
                marker: flags.contains('m'),
            };
            edges.extend(receiver.packet(&payload, place, 8000, ms(at)).unwrap().into_iter().flatten());
        }
        edges.extend(receiver.tick(ms(at + 20)));
        edges.extend(receiver.tick(ms(at + 400)));
        edges
    }

    #[test]
    fn rfc4733_2_5_2_one_begin_and_one_end_whatever_is_lost_late_or_repeated() {
        let [one, two] = ['1', '2'].map(|symbol| Digit::from_char(symbol).unwrap());
        let once = |ms| vec![Begin(one), End(one, ms)];
        let twice = |first, second| vec![Begin(one), End(one, first), Begin(one), End(one, second)];
        let both = |first, second| vec![Begin(one), End(one, first), Begin(two), End(two, second)];
        const HALF: u32 = 1 << 31;
        let cases: [(&str, &[Row], Vec<EventEdge>); 31] = [
            ("plain", &[(0, 1, 160, 0, "m"), (1, 1, 320, 0, ""), (2, 1, 480, 0, "e")], once(60)),
            (
                "ends repeated",
                &[(0, 1, 160, 0, "m"), (1, 1, 320, 0, "e"), (2, 1, 320, 0, "e"), (3, 1, 320, 0, "e")],
                once(40),
            ),
            ("only an end arrived", &[(0, 1, 800, 0, "e")], once(100)),
            (
                "reordered after the end",
                &[(0, 1, 160, 0, "m"), (2, 1, 480, 0, "e"), (1, 1, 320, 0, "")],
                once(60),
            ),
            (
                "all ends lost, next digit",
                &[(0, 1, 320, 0, ""), (5, 2, 160, 4000, ""), (6, 2, 320, 4000, "e")],
                both(40, 40),
            ),
            ("same digit twice", &[(0, 1, 320, 0, "e"), (5, 1, 320, 4000, "e")], twice(40, 40)),
            (
                "late packet of the digit before",
                &[(1, 1, 320, 0, "e"), (5, 2, 160, 4000, "m"), (0, 1, 160, 0, "")],
                both(40, 20),
            ),
            (
                "end lost and the next digit's first packet is its end",
                &[(0, 1, 320, 0, ""), (5, 2, 320, 4000, "e")],
                both(40, 40),
            ),
            // The sender's timestamps begin anew.
            (
                "back by much between two digits",
                &[(0, 1, 320, HALF - 9, "e"), (50, 2, 160, 1000, "m"), (51, 2, 320, 1000, "e")],
                both(40, 40),
            ),
            ("back by little", &[(0, 1, 320, 9000, "e"), (50, 2, 320, 8000, "e")], both(40, 40)),
            ("back, the same digit", &[(0, 1, 320, 9000, "e"), (50, 1, 320, 1000, "e")], twice(40, 40)),
            ("forward by more than half", &[(0, 1, 320, 0, "e"), (50, 2, 320, HALF + 9, "e")], both(40, 40)),
            (
                "back within a press: the digit that was open ends, and the other is heard",
                &[(0, 1, 320, 9000, ""), (1, 2, 160, 100, "m"), (2, 2, 320, 100, "e")],
                both(40, 40),
            ),
            (
                "many digits back, one after another",
                &[(0, 1, 320, 9000, "e"), (9, 2, 320, 5000, "e"), (8, 1, 320, 9000, "e")],
                both(40, 40),
            ),
            ("it stands still, another digit", &[(0, 1, 320, 7, "e"), (9, 2, 320, 7, "e")], both(40, 40)),
            (
                "it stands still, the same digit with a marker",
                &[(0, 1, 320, 7, "e"), (9, 1, 160, 7, "m"), (10, 1, 320, 7, "e")],
                twice(40, 40),
            ),
            (
                "it stands still, the same digit without a marker",
                &[(0, 1, 320, 7, "e"), (9, 1, 160, 7, ""), (10, 1, 320, 7, "e"), (11, 1, 320, 7, "e")],
                twice(40, 40),
            ),
            (
                "it stands still, and the end was lost",
                &[(0, 1, 320, 7, "m"), (9, 1, 160, 7, "m"), (10, 1, 480, 7, "e")],
                twice(40, 60),
            ),
            // The sender's timestamps run on within one press.
            (
                "three ends, each later and longer",
                &[(0, 1, 800, 0, "m"), (1, 1, 960, 0, "e"), (2, 1, 1120, 160, "e"), (3, 1, 1280, 320, "e")],
                once(120),
            ),
            (
                "three ends, each later and as long",
                &[(0, 1, 800, 0, "m"), (1, 1, 800, 160, "e"), (2, 1, 800, 320, "e"), (3, 1, 800, 480, "e")],
                once(100),
            ),
            (
                "ends that reach beyond the first one",
                &[(0, 1, 480, 0, "e"), (1, 1, 640, 240, "e"), (2, 1, 800, 720, "e")],
                once(60),
            ),
            (
                "all packets run",
                &[(0, 1, 160, 0, "m"), (1, 1, 320, 160, ""), (2, 1, 480, 320, ""), (3, 1, 640, 480, "e")],
                once(80),
            ),
            (
                "an end within the span that comes before the last one is a duplicate",
                &[(0, 1, 800, 0, "m"), (3, 1, 1280, 320, "e"), (2, 1, 1120, 160, "e")],
                once(160),
            ),
            (
                "the next press begins where the last one ended",
                &[(0, 1, 320, 0, "e"), (3, 1, 160, 320, "m"), (4, 1, 320, 320, "e")],
                twice(40, 40),
            ),
            ("another digit within the span", &[(0, 1, 800, 0, "e"), (1, 2, 320, 160, "e")], both(100, 40)),
            // Packets stop for a while.
            (
                "then the end comes",
                &[
                    (0, 1, 160, 0, "m"),
                    (1, 1, 320, 0, ""),
                    (2, 1, 13_568, 0, "1200e"),
                    (3, 1, 13_568, 0, "e"),
                ],
                once(40),
            ),
            (
                "then the event goes on",
                &[(0, 1, 320, 0, "m"), (1, 1, 9000, 0, "1000"), (2, 1, 9160, 0, ""), (3, 1, 9320, 0, "e")],
                once(40),
            ),
            (
                "then the end comes, whose timestamp has run",
                &[(0, 1, 320, 0, "m"), (1, 1, 9320, 160, "1000e"), (2, 1, 9480, 320, "e")],
                once(40),
            ),
            (
                "then the key is pressed again",
                &[(0, 1, 320, 0, "m"), (1, 1, 160, 8000, "1000m"), (2, 1, 320, 8000, "e")],
                twice(40, 40),
            ),
            // RFC 4733 §2.5.1.3.
            (
                "a segment of another length goes on",
                &[(0, 1, 40_000, 0, "m"), (1, 1, 160, 40_000, ""), (2, 1, 8000, 40_000, "e")],
                once(6000),
            ),
            (
                "a segment goes on after packets stopped",
                &[(0, 1, 65_535, 0, "m"), (1, 1, 160, 65_535, "400"), (2, 1, 320, 65_535, "e")],
                once(8191),
            ),
        ];
        for (name, rows, expected) in cases {
            for begins in [(0, 0), (u32::MAX - 1, u32::MAX - 400), (u32::MAX / 2, u32::MAX / 2)] {
                let mut receiver = EventReceiver::default();
                let edges = hear(&mut receiver, rows, begins);
                assert_eq!(edges, expected, "{name}, from {begins:?}");
                assert!(!receiver.is_busy());
            }
        }
    }

    #[test]
    fn a_digit_that_never_ends_ends_after_a_minute_and_is_not_begun_again() {
        let mut sender = EventSender::default();
        let mut receiver = EventReceiver::default();
        sender.begin(five(), 100, u32::MAX);
        let mut edges = Vec::new();
        for number in 1..=5000 {
            let now = ms(u64::from(number) * 20);
            let packet = sender.next_packet(160).unwrap();
            let at = EventPlace { sequence: number, timestamp: packet.timestamp, marker: packet.marker };
            let got = receiver.packet(&packet.payload, at, 8000, now).unwrap();
            edges.extend(got.into_iter().flatten().chain(receiver.tick(now)));
        }
        assert_eq!(edges, [Begin(five()), End(five(), 60_020)]);
    }

    #[test]
    fn rfc4733_2_3_short_payloads_and_foreign_events_are_counted_words() {
        let mut receiver = EventReceiver::default();
        for payload in [&[][..], &[1, 2, 3], &[17, 0, 0, 1], &[255, 0x80, 0, 1]] {
            let at = EventPlace { sequence: 0, timestamp: 0, marker: false };
            assert_eq!(receiver.packet(payload, at, 8000, ms(0)), Err(Discard::BadEvent));
        }
    }
}
