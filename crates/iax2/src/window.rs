//! Full frames of one call that the other side has not acknowledged (RFC 5456 §7): a ring from the oldest on.
//!
//! The place in the ring is the frame's number, so a cumulative acknowledgement pops as many frames as it confirms, and
//! asking for a repetition finds them without a search. There is one deadline: the oldest frame's, because the other side
//! takes frames only in order.

use base::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// Most frames on their way; numbers have eight bits and half of them must tell old from new. The field has as many.
pub const WINDOW: usize = 64;
/// How often a frame is repeated before the other side counts as gone (RFC 5456 §7).
pub const RETRIES: u8 = 4;
/// The shortest and the longest wait before a frame is repeated (RFC 5456 §7.2.1 for the longest).
pub const WAIT_MIN: Duration = Duration::from_millis(100);
/// See [`WAIT_MIN`].
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// Each wait is so many times the one before.
const BACKOFF: u32 = 10;
/// A round trip that nobody has measured yet, as the field assumes it.
pub const ROUND_TRIP_FIRST: Duration = Duration::from_secs(1);
/// How soon the other side may ask for the same frames again: two asks closer than this are answered once.
const ASK_PAUSE: Duration = Duration::from_millis(20);

/// The wait before the first repetition: twice the round trip (RFC 5456 §7.2.1).
pub fn first_wait(round_trip: Duration) -> Duration {
    (round_trip * 2).clamp(WAIT_MIN, WAIT_MAX)
}

/// A frame on its way, in the clear.
#[derive(Debug)]
pub struct Pending {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// Which of the call's keys it is enciphered under; a key change does not touch frames before it.
    pub key: u32,
    sent: Instant,
    wait: Duration,
    tries: u8,
}

impl Pending {
    fn sent(&mut self, now: Instant) -> &mut Self {
        self.sent = now;
        self
    }
    fn tried(&mut self, now: Instant) -> &mut Self {
        self.tries = self.tries.saturating_add(1);
        self.wait = (self.wait * BACKOFF).min(WAIT_MAX);
        self.sent(now)
    }
}

/// What the deadline brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// Frames are to be repeated: [`Window::overdue`].
    Repeat,
    /// The other side is gone.
    Dead,
}

/// The frames on their way.
#[derive(Debug, Default)]
pub struct Window {
    frames: VecDeque<Pending>,
    /// The number of the oldest frame, or of the next one when there is none.
    head: u8,
    asked: Option<Instant>,
}

impl Window {
    /// The number of the next frame.
    pub fn next(&self) -> u8 {
        self.head.wrapping_add(self.frames.len() as u8)
    }
    /// Frames on their way.
    pub fn len(&self) -> usize {
        self.frames.len()
    }
    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
    /// Whether no more frames may be sent before some are acknowledged.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= WINDOW
    }
    /// Whether the frame that ends the call may be sent: one more than there may be of others.
    pub fn has_room_for_last(&self) -> bool {
        self.frames.len() <= WINDOW
    }
    /// Keeps a frame that was sent under [`Window::next`].
    pub fn push(&mut self, bytes: Vec<u8>, key: u32, now: Instant, wait: Duration) {
        debug_assert!(self.has_room_for_last());
        self.frames.push_back(Pending { bytes, key, sent: now, wait, tries: 0 });
    }
    /// Forgets the frames before `iseq`; how many. None, when it acknowledges what was never sent.
    pub fn acknowledge(&mut self, iseq: u8) -> usize {
        let count = usize::from(iseq.wrapping_sub(self.head));
        if count > self.frames.len() {
            return 0;
        }
        self.frames.drain(..count);
        self.head = iseq;
        count
    }
    /// When [`Window::due`] next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.frames.front().map(|oldest| oldest.sent + oldest.wait)
    }
    /// What is due.
    pub fn due(&self, now: Instant) -> Due {
        match self.frames.front() {
            Some(oldest) if now >= oldest.sent + oldest.wait => {
                if oldest.tries >= RETRIES {
                    Due::Dead
                } else {
                    Due::Repeat
                }
            }
            _ => Due::Nothing,
        }
    }
    /// The frames whose wait is over, oldest first; they count as sent again, and wait longer.
    pub fn overdue(&mut self, now: Instant) -> impl Iterator<Item = &mut Pending> {
        self.frames
            .iter_mut()
            .filter(move |frame| now >= frame.sent + frame.wait)
            .map(move |frame| frame.tried(now))
    }
    /// The frames from `iseq` on, because the other side misses them (RFC 5456 §6.9.3). None when it misses what was
    /// never sent, or asked a moment ago. Being asked is no try: the other side is there.
    pub fn asked(&mut self, iseq: u8, now: Instant) -> impl Iterator<Item = &mut Pending> {
        let count = usize::from(iseq.wrapping_sub(self.head));
        let soon = self.asked.is_some_and(|asked| now - asked < ASK_PAUSE);
        let skip = if count >= self.frames.len() || soon { self.frames.len() } else { count };
        if skip < self.frames.len() {
            self.asked = Some(now);
        }
        self.frames.iter_mut().skip(skip).map(move |frame| frame.sent(now))
    }
    /// Forgets everything; the next frame has number 0.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    fn sent(count: u8, head: u8) -> Window {
        let mut window = Window { head, ..Window::default() };
        for number in 0..count {
            window.push(vec![number], 0, ms(0), first_wait(ROUND_TRIP_FIRST));
        }
        window
    }

    #[test]
    fn rfc5456_7_an_acknowledgement_confirms_everything_before_it_also_across_the_wrap() {
        for (name, head, count, iseq, forgotten, left) in [
            ("nothing new", 0, 3, 0, 0, 3),
            ("one", 0, 3, 1, 1, 2),
            ("all", 0, 3, 3, 3, 0),
            ("what was never sent", 0, 3, 4, 0, 3),
            ("an old one", 10, 3, 9, 0, 3),
            ("across the wrap", 254, 4, 1, 3, 1),
        ] {
            let mut window = sent(count, head);
            let next = window.next();
            assert_eq!((window.acknowledge(iseq), window.len()), (forgotten, left), "{name}");
            assert_eq!(window.next(), next, "{name}");
        }
    }

    #[test]
    fn rfc5456_7_2_1_a_frame_is_repeated_four_times_and_then_the_other_side_is_gone() {
        let mut window = sent(1, 0);
        let mut times = Vec::new();
        loop {
            let at = window.deadline().unwrap();
            assert_eq!(window.due(at), if times.len() == 4 { Due::Dead } else { Due::Repeat });
            if window.due(at) == Due::Dead {
                assert_eq!(at, ms(42_000));
                break;
            }
            times.push(at.as_millis());
            assert_eq!(window.overdue(at).count(), 1);
        }
        assert_eq!(times, [2000, 12_000, 22_000, 32_000]);
    }

    #[test]
    fn the_wait_is_twice_the_round_trip_within_its_bounds() {
        for (round_trip, wait) in [(1, 100), (60, 120), (1000, 2000), (60_000, 10_000)] {
            assert_eq!(first_wait(Duration::from_millis(round_trip)), Duration::from_millis(wait));
        }
    }

    #[test]
    fn rfc5456_6_9_3_who_misses_frames_gets_them_from_there_on_and_once_for_many_asks() {
        let mut window = sent(5, 250);
        let numbers = |frames: Vec<&mut Pending>| frames.iter().map(|f| f.bytes[0]).collect::<Vec<_>>();
        assert_eq!(numbers(window.asked(253, ms(50)).collect()), [3, 4]);
        assert_eq!(window.asked(252, ms(60)).count(), 0, "10 ms later");
        assert_eq!(numbers(window.asked(252, ms(70)).collect()), [2, 3, 4]);
        assert_eq!(window.asked(255, ms(700)).count(), 0, "what was never sent");
        assert_eq!(window.asked(249, ms(700)).count(), 0, "what was acknowledged");
    }

    #[test]
    fn frames_sent_later_wait_for_their_own_time() {
        let mut window = sent(1, 0);
        window.push(vec![1], 0, ms(1500), Duration::from_secs(2));
        assert_eq!(window.overdue(ms(2000)).count(), 1);
        assert_eq!(window.acknowledge(1), 1);
        assert_eq!(window.deadline(), Some(ms(3500)));
    }
}
