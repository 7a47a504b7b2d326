//! The four transaction machines of RFC 3261 §17 with the corrections of RFC 6026, one file each.
//!
//! A machine knows its state and its timers. It does not know messages, addresses, branches or its neighbours: it says
//! *that* the request leaves again, the layer knows which bytes. Time comes in as [`Instant`]; the only trace of a
//! timer outside is `deadline()`.

pub(crate) mod invite_client;
pub(crate) mod invite_server;
pub(crate) mod non_invite_client;
pub(crate) mod non_invite_server;

pub use invite_client::InviteClient;
pub use invite_server::InviteServer;
pub use non_invite_client::NonInviteClient;
pub use non_invite_server::NonInviteServer;

use crate::message::Status;
use base::Instant;
use core::time::Duration;

/// The base values from which all timers of RFC 3261 table 4 are made.
///
/// A site changes them with `timer_t1` and `timer_b` in the `system` section of pjsip.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// Estimate of the round trip: first retransmission interval.
    pub t1: Duration,
    /// Longest interval between retransmissions of anything but an INVITE.
    pub t2: Duration,
    /// How long a message can stay in the network.
    pub t4: Duration,
    /// 64*T1: when an unanswered transaction gives up and how long an answered one absorbs (B, D, F, H, J, L, M).
    pub timeout: Duration,
    /// After which silence of the user an INVITE is answered 100 (RFC 3261 §17.2.1: 200 ms).
    pub trying: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self::new(Duration::from_millis(500), None)
    }
}

impl Timers {
    /// Timers for a round trip of `t1`; `timeout` stands for 64*T1 unless the site says otherwise (`timer_b`).
    pub fn new(t1: Duration, timeout: Option<Duration>) -> Self {
        Self {
            t1,
            t2: Duration::from_secs(4),
            t4: Duration::from_secs(5),
            timeout: timeout.unwrap_or(t1 * 64),
            trying: Duration::from_millis(200),
        }
    }

    /// The same timers, none so short that a machine would spin: intervals of at least 10 ms, and no shorter wait than T1.
    pub(crate) fn bounded(self) -> Self {
        let t1 = self.t1.max(INTERVAL_MIN);
        Self { t1, t2: self.t2.max(t1), t4: self.t4.max(t1), timeout: self.timeout.max(t1), ..self }
    }
}

/// Shortest interval between retransmissions: below it a site's typing error would flood its own network.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// [`Timers`] as one kind of transport applies them: over TCP nothing is sent twice and nothing is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Base values.
    pub timers: Timers,
    /// Whether the transport retransmits by itself (TCP, TLS, WebSocket).
    pub reliable: bool,
}

impl Pace {
    /// First retransmission (A, E, G), if the transport needs any.
    fn first(self) -> Option<Duration> {
        (!self.reliable).then_some(self.timers.t1)
    }
    /// The interval after `interval` for everything but an INVITE: doubled, at most T2.
    fn next(self, interval: Duration) -> Duration {
        (interval * 2).min(self.timers.t2)
    }
    /// How long duplicates of the peer's message are awaited: `wait`, or nothing on a reliable transport (D, I, J, K).
    fn linger(self, wait: Duration) -> Duration {
        if self.reliable { Duration::ZERO } else { wait }
    }
}

/// The earlier of two moments that may not exist.
fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether the moment exists and has come.
fn due(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| at <= now)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) const UDP: Pace = Pace {
        timers: Timers {
            t1: Duration::from_millis(500),
            t2: Duration::from_secs(4),
            t4: Duration::from_secs(5),
            timeout: Duration::from_secs(32),
            trying: Duration::from_millis(200),
        },
        reliable: false,
    };
    pub(crate) const TCP: Pace = Pace { reliable: true, ..UDP };

    pub(crate) fn status(code: u16) -> Status {
        Status::new(code).unwrap()
    }

    pub(crate) fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
}
