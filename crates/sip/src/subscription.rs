//! The notifier's side of one subscription (RFC 6665 §4.2): how long it lasts, and which NOTIFY leaves when.
//!
//! One NOTIFY is out at a time. Whatever changes meanwhile is told by one more NOTIFY with the state as it is then, so
//! that a watcher behind a slow link costs no queue. It knows no body, no dialog and no address.

use base::Instant;
use core::time::Duration;

/// Why a subscription ends (RFC 6665 §4.1.3), as the watcher reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The watcher should subscribe anew at once: this machine moved or forgets.
    Deactivated,
    /// The watcher may try again later.
    Probation,
    /// It is not allowed any more.
    Rejected,
    /// It was not refreshed in time, or was given up by its watcher.
    Timeout,
    /// What it watched is gone.
    NoResource,
}

impl Reason {
    /// The word in `Subscription-State`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deactivated => "deactivated",
            Self::Probation => "probation",
            Self::Rejected => "rejected",
            Self::Timeout => "timeout",
            Self::NoResource => "noresource",
        }
    }
}

/// What a NOTIFY says of its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It goes on for so many seconds.
    Active(u32),
    /// This is the last NOTIFY.
    Terminated(Reason),
}

impl core::fmt::Display for Standing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Active(seconds) => write!(f, "active;expires={seconds}"),
            // Who has given it up, or let it lapse, knows why; the field's server says nothing there.
            Self::Terminated(Reason::Timeout) => f.write_str("terminated"),
            Self::Terminated(reason) => write!(f, "terminated;reason={}", reason.word()),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The watcher's SUBSCRIBE was answered 200: the subscription lasts so many seconds from here, 0 ends it.
    Subscribed(u32),
    /// What is watched has changed.
    Changed,
    /// The subscription is to end.
    End(Reason),
    /// A final response to our NOTIFY.
    Answered(u16),
    /// Our NOTIFY got no final response, or could not leave.
    Unanswered,
    /// Time has passed.
    Timeout,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A NOTIFY with the state as it is leaves.
    Notify(Standing),
    /// The subscription is gone; nothing follows.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It lasts until then.
    Active { until: Instant },
    /// It ends; the NOTIFY that says so has still to leave.
    Ending { reason: Reason },
    /// The last NOTIFY is out.
    Terminating,
    /// Nothing is left.
    Gone,
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Notifier {
    state: State,
    /// A NOTIFY has no final response yet.
    is_telling: bool,
    /// Something has happened that no NOTIFY told.
    is_stale: bool,
}

impl Notifier {
    /// A subscription that has just been accepted for so many seconds; 0 only asks for the state once (§4.4.3). Its first
    /// NOTIFY leaves at once (§4.2.1.3).
    pub fn start(seconds: u32, now: Instant, out: &mut Vec<Output>) -> Self {
        let mut new =
            Self { state: State::Active { until: Instant::FAR }, is_telling: false, is_stale: false };
        new.handle(Input::Subscribed(seconds), now, out);
        new
    }
    /// When [`handle`](Self::handle) next wants to be called with [`Input::Timeout`].
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Active { until } => Some(until),
            State::Ending { .. } | State::Terminating | State::Gone => None,
        }
    }
    /// Seconds it still lasts.
    pub fn seconds_left(&self, now: Instant) -> u32 {
        match self.state {
            // Whole seconds, and a part of one counts as one, so that 3600 asked for is 3600 told.
            State::Active { until } => {
                u32::try_from((until - now).as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
            }
            State::Ending { .. } | State::Terminating | State::Gone => 0,
        }
    }
    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Instant, out: &mut Vec<Output>) {
        match (self.state, input) {
            (State::Active { .. }, Input::Subscribed(0)) => self.end(Reason::Timeout, now, out),
            (State::Active { .. }, Input::Subscribed(seconds)) => {
                self.state = State::Active { until: now + Duration::from_secs(u64::from(seconds)) };
                self.tell(now, out);
            }
            (State::Active { .. }, Input::Changed) => self.tell(now, out),
            (State::Active { .. }, Input::End(reason)) => self.end(reason, now, out),
            (State::Active { until }, Input::Timeout) if until <= now => self.end(Reason::Timeout, now, out),
            (State::Active { .. } | State::Ending { .. }, Input::Answered(status)) if status >= 200 => {
                self.is_telling = false;
                if ends(status) {
                    return self.forget(out);
                }
                if self.is_stale {
                    self.tell(now, out);
                }
            }
            // Nobody is there any more (§4.2.2).
            (State::Active { .. } | State::Ending { .. } | State::Terminating, Input::Unanswered) => {
                self.forget(out);
            }
            (State::Terminating, Input::Answered(status)) if status >= 200 => self.forget(out),
            // Provisional responses, a deadline that moved, and what comes after the end change nothing.
            (State::Active { .. } | State::Ending { .. } | State::Terminating | State::Gone, _) => {}
        }
    }
    fn end(&mut self, reason: Reason, now: Instant, out: &mut Vec<Output>) {
        self.state = State::Ending { reason };
        self.tell(now, out);
    }
    /// A NOTIFY leaves, or follows the one that is out.
    fn tell(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.is_telling {
            self.is_stale = true;
            return;
        }
        let standing = match self.state {
            State::Active { .. } => Standing::Active(self.seconds_left(now)),
            State::Ending { reason } => {
                self.state = State::Terminating;
                Standing::Terminated(reason)
            }
            State::Terminating | State::Gone => return,
        };
        (self.is_telling, self.is_stale) = (true, false);
        out.push(Output::Notify(standing));
    }
    fn forget(&mut self, out: &mut Vec<Output>) {
        self.state = State::Gone;
        out.push(Output::Gone);
    }
}

/// Whether this answer to a NOTIFY says that there is no such subscription or that no further NOTIFY is wanted (RFC 6665
/// §4.2.2, by the table of RFC 5057 §5.1). Others refuse that one NOTIFY.
fn ends(status: u16) -> bool {
    matches!(status, 404 | 405 | 408 | 410 | 416 | 480..=485 | 489 | 501 | 604)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{Active, Terminated};

    fn s(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Plays a history of (second, input) after a SUBSCRIBE for 600 seconds at 0; what came out, with its second.
    fn play(seconds: u32, history: &[(u64, Input)]) -> Vec<(u64, Output)> {
        let mut told = Vec::new();
        let mut out = Vec::new();
        let mut machine = Notifier::start(seconds, s(0), &mut out);
        told.extend(out.drain(..).map(|output| (0, output)));
        for (at, input) in history {
            while let Some(due) = machine.deadline().filter(|due| *due < s(*at)) {
                machine.handle(Input::Timeout, due, &mut out);
                let second = (due - s(0)).as_secs();
                told.extend(out.drain(..).map(|output| (second, output)));
            }
            machine.handle(*input, s(*at), &mut out);
            told.extend(out.drain(..).map(|output| (*at, output)));
        }
        told
    }

    #[test]
    fn rfc6665_4_2_a_watcher_hears_the_state_at_once_and_each_change_after_it() {
        use Input::*;
        let first = (0, Output::Notify(Active(600)));
        let end = |at, reason| (at, Output::Notify(Terminated(reason)));
        for (name, history, expected) in [
            (
                "4.2.1.3: a change is told when the NOTIFY before it is answered",
                vec![(1, Changed), (2, Answered(200))],
                vec![first, (2, Output::Notify(Active(598)))],
            ),
            (
                "many changes meanwhile are one NOTIFY",
                vec![(1, Changed), (1, Changed), (1, Changed), (2, Answered(200)), (3, Answered(200))],
                vec![first, (2, Output::Notify(Active(598)))],
            ),
            (
                "4.2.1.2: a refresh moves the end and is answered with the state",
                vec![(1, Answered(200)), (500, Subscribed(600)), (501, Answered(200)), (1099, Changed)],
                vec![first, (500, Output::Notify(Active(600))), (1099, Output::Notify(Active(1)))],
            ),
            (
                "4.2.2: without a refresh it ends by itself",
                vec![(1, Answered(200)), (601, Answered(200))],
                vec![first, end(600, Reason::Timeout), (601, Output::Gone)],
            ),
            (
                "4.1.2.3: expiry 0 ends it",
                vec![(1, Answered(200)), (9, Subscribed(0)), (10, Answered(200))],
                vec![first, end(9, Reason::Timeout), (10, Output::Gone)],
            ),
            (
                "the end waits for the NOTIFY that is out, and nothing follows it",
                vec![
                    (1, Changed),
                    (2, End(Reason::NoResource)),
                    (3, Answered(200)),
                    (4, Changed),
                    (5, Answered(200)),
                ],
                vec![first, end(3, Reason::NoResource), (5, Output::Gone)],
            ),
            (
                "4.2.2: 481 ends it at once",
                vec![(1, Changed), (2, Answered(481))],
                vec![first, (2, Output::Gone)],
            ),
            (
                "4.2.2: so does silence",
                vec![(32, Unanswered), (33, Changed)],
                vec![first, (32, Output::Gone)],
            ),
            (
                "RFC 5057 5.1: 500 refuses one NOTIFY only",
                vec![(1, Changed), (2, Answered(500))],
                vec![first, (2, Output::Notify(Active(598)))],
            ),
            ("a provisional response changes nothing", vec![(1, Changed), (2, Answered(100))], vec![first]),
            (
                "glare: a refresh that crosses the last NOTIFY comes too late",
                vec![(1, Answered(200)), (600, Timeout), (600, Subscribed(600)), (601, Answered(481))],
                vec![first, end(600, Reason::Timeout), (601, Output::Gone)],
            ),
        ] {
            assert_eq!(play(600, &history), expected, "{name}");
        }
    }

    #[test]
    fn rfc6665_4_4_3_a_fetch_is_one_notify_that_is_the_last() {
        let told = play(0, &[(1, Input::Changed), (2, Input::Answered(200))]);
        assert_eq!(told, [(0, Output::Notify(Terminated(Reason::Timeout))), (2, Output::Gone)]);
    }
}
