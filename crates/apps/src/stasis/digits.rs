//! Digits that a program sends on a channel, with pauses.

use core::time::Duration;
use std::collections::VecDeque;

use base::{Digit, Instant};
use call::Chan;
use call::stasis::Digits;

/// Half a second and a second, as programs write them.
const PAUSES: [(char, Duration); 2] = [('w', Duration::from_millis(500)), ('W', Duration::from_secs(1))];

/// Digits on their way.
pub(super) struct Sending {
    left: VecDeque<char>,
    digits: Digits,
    at: Instant,
}

impl Sending {
    pub(super) fn new(digits: Digits, now: Instant) -> Self {
        Self { left: digits.digits.chars().collect(), at: now + digits.before, digits }
    }
    /// When the next is due, or all is over.
    pub(super) fn at(&self) -> Instant {
        self.at
    }
    /// Sends what is due; false when all is sent and the last pause is over.
    pub(super) fn due(&mut self, chan: &Chan) -> bool {
        let now = chan.now();
        if self.at > now {
            return true;
        }
        let Some(symbol) = self.left.pop_front() else { return false };
        let pause = PAUSES.iter().find(|(known, _)| *known == symbol).map(|(_, pause)| *pause);
        self.at = match (pause, Digit::from_char(symbol)) {
            (Some(pause), _) => now + pause,
            (None, Some(digit)) => {
                chan.send_digit(digit, self.digits.duration_ms);
                let rest = if self.left.is_empty() { self.digits.after } else { self.digits.between };
                now + Duration::from_millis(u64::from(self.digits.duration_ms)) + rest
            }
            (None, None) => now,
        };
        true
    }
}
