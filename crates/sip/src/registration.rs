//! The client side of REGISTER: when the next one leaves, and what an answer to it means (RFC 3261 §10.2).
//!
//! One [`Registration`] keeps one binding of ours alive at one registrar. It writes no message and knows no password: it
//! says how long the binding is to last, and is told what became of the request. Which failures are for good and how long
//! to wait after the others is the site's to say ([`Rules`]).

use base::Instant;
use core::time::Duration;

/// Part of a binding's life that is kept in reserve for the refresh: the request may be lost or challenged.
const MARGIN: Duration = Duration::from_secs(40);
/// Longest wait that a registrar may impose by Retry-After: a day, after which a new attempt cannot be called pressing.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// Longest interval that we ask for when a registrar finds ours too brief (RFC 3261 §10.3 lets it ask for less than an
/// hour only); a day is more than any registrar wants.
const EXPIRES_MAX: u32 = 86_400;
/// Shortest life of a binding: a registrar that grants less is asked this often and no more.
const LIFE_MIN: Duration = Duration::from_secs(5);

/// What the site has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Seconds that a binding is to last.
    pub expiration: u32,
    /// Wait after a failure that may pass; `None` makes it final.
    pub retry: Option<Duration>,
    /// Wait after 403; `None` makes it final.
    pub forbidden_retry: Option<Duration>,
    /// Wait after another failure for good; `None` makes it final.
    pub fatal_retry: Option<Duration>,
    /// Attempts after the first failure until there are no more.
    pub max_retries: u32,
    /// A challenge that cannot be met is a failure for good.
    pub rejection_is_permanent: bool,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing is bound: never tried, under way for the first time, or taken back.
    Unregistered,
    /// The binding holds.
    Registered,
    /// The last attempt failed; another one follows.
    Rejected,
    /// The last attempt failed and none follows by itself.
    Stopped,
}

impl Status {
    /// The word that watchers know: whatever has failed is rejected.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rejected | Self::Stopped => "Rejected",
            Self::Registered | Self::Unregistered => self.name(),
        }
    }
    /// The field's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unregistered => "Unregistered",
            Self::Registered => "Registered",
            Self::Rejected => "Rejected",
            Self::Stopped => "Stopped",
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx: seconds that the binding lasts, when the registrar says.
    Accepted(Option<u32>),
    /// 423: seconds that the registrar wants at least.
    TooBrief(u32),
    /// A failure that the same request without an extension may not meet: it leaves at once.
    Again,
    /// 401 or 407 that no login of ours answers.
    Rejected,
    /// Another failure: its status, and seconds of Retry-After.
    Refused(u16, Option<u32>),
    /// No answer, or no way to the registrar.
    Unanswered,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A REGISTER that asks for so many seconds leaves; 0 takes the binding back.
    Send(u32),
    /// The status is another one, or the binding was refreshed.
    Status(Status),
}

/// What is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing.
    Idle,
    /// The answer to a request that binds.
    Binding,
    /// The answer to a request that takes the binding back; another registration follows it if so wished.
    Unbinding { again: bool },
    /// The time to refresh.
    Bound { refresh_at: Instant },
    /// The time to try again.
    Waiting { until: Instant },
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Registration {
    rules: Rules,
    state: State,
    status: Status,
    /// Seconds to ask for: what the site wants, or what the registrar insists on.
    expires: u32,
    /// When the binding lapses.
    until: Option<Instant>,
    retries: u32,
}

impl Registration {
    /// Nothing is bound, nothing is sent before [`start`](Self::start).
    pub fn new(rules: Rules) -> Self {
        Self {
            expires: rules.expiration.max(1),
            rules,
            state: State::Idle,
            status: Status::Unregistered,
            until: None,
            retries: 0,
        }
    }
    /// How it stands.
    pub const fn status(&self) -> Status {
        self.status
    }
    /// When the binding lapses, if there is one.
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }
    /// When [`due`](Self::due) next wants to be called.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Bound { refresh_at: at } | State::Waiting { until: at } => Some(at),
            State::Idle | State::Binding | State::Unbinding { .. } => None,
        }
    }

    /// Binds, or refreshes, whatever failed before. A request on its way is waited for.
    pub fn start(&mut self, out: &mut Vec<Output>) {
        match self.state {
            State::Idle | State::Bound { .. } | State::Waiting { .. } => {
                self.retries = 0;
                self.send(out);
            }
            State::Unbinding { .. } => self.state = State::Unbinding { again: true },
            State::Binding => {}
        }
    }
    /// Binds for the first time at a moment of the caller's choice, so that a restart does not send everything at once.
    pub fn start_at(&mut self, at: Instant) {
        self.state = State::Waiting { until: at };
    }
    /// Takes the binding back and tries no more.
    pub fn stop(&mut self, out: &mut Vec<Output>) {
        self.state = State::Unbinding { again: false };
        out.push(Output::Send(0));
    }
    /// Refreshes, or tries again, if it is time.
    pub fn due(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.send(out);
        }
    }
    /// What became of the last request. `spread` in 0..=99 moves the refresh by as many tenths of a percent of the
    /// binding's life towards the present, so that many registrations do not fall together.
    pub fn outcome(&mut self, outcome: Outcome, spread: u32, now: Instant, out: &mut Vec<Output>) {
        match (self.state, outcome) {
            (State::Unbinding { again }, _) => {
                (self.state, self.until) = (State::Idle, None);
                self.tell(Status::Unregistered, out);
                if again {
                    self.start(out);
                }
            }
            (State::Binding, Outcome::Accepted(granted)) => self.bound(granted, spread, now, out),
            // §10.2.8. A registrar that asks for what it was just given is wrong, and would be asked for ever.
            (State::Binding, Outcome::TooBrief(least)) if least > self.expires && least <= EXPIRES_MAX => {
                self.expires = least;
                self.send(out);
            }
            (State::Binding, Outcome::Again) => self.send(out),
            (State::Binding, Outcome::TooBrief(_)) => self.failed(self.rules.fatal_retry, now, out),
            (State::Binding, Outcome::Rejected) => {
                let wait = match self.rules.rejection_is_permanent {
                    true => self.rules.fatal_retry,
                    false => self.rules.retry,
                };
                self.failed(wait, now, out);
            }
            (State::Binding, Outcome::Refused(status, after)) => {
                let rules = &self.rules;
                let wait = match status {
                    403 => rules.forbidden_retry.or(rules.fatal_retry),
                    _ if is_temporary(status) => {
                        let asked =
                            after.map(|seconds| Duration::from_secs(seconds.into()).min(RETRY_AFTER_MAX));
                        rules.retry.map(|retry| asked.map_or(retry, |asked| asked.max(retry)))
                    }
                    _ => rules.fatal_retry,
                };
                self.failed(wait, now, out);
            }
            (State::Binding, Outcome::Unanswered) => self.failed(self.rules.retry, now, out),
            // An answer that nobody waits for changes nothing.
            (State::Idle | State::Bound { .. } | State::Waiting { .. }, _) => {}
        }
    }

    fn send(&mut self, out: &mut Vec<Output>) {
        self.state = State::Binding;
        out.push(Output::Send(self.expires));
    }
    fn tell(&mut self, status: Status, out: &mut Vec<Output>) {
        self.status = status;
        out.push(Output::Status(status));
    }
    fn bound(&mut self, granted: Option<u32>, spread: u32, now: Instant, out: &mut Vec<Output>) {
        // A registrar may shorten the binding, never lengthen it (§10.3 step 8).
        let life =
            Duration::from_secs(granted.unwrap_or(self.expires).min(self.expires).into()).max(LIFE_MIN);
        let earlier = life * spread.min(99) / 1000;
        let refresh = life.saturating_sub(MARGIN).max(life / 2).saturating_sub(earlier);
        self.retries = 0;
        self.until = Some(now + life);
        self.state = State::Bound { refresh_at: now + refresh };
        self.tell(Status::Registered, out);
    }
    /// A failure after which there is a wait, or nothing.
    fn failed(&mut self, wait: Option<Duration>, now: Instant, out: &mut Vec<Output>) {
        self.until = self.until.filter(|until| *until > now);
        match wait.filter(|_| self.retries < self.rules.max_retries) {
            Some(wait) => {
                self.retries += 1;
                self.state = State::Waiting { until: now + wait };
                self.tell(Status::Rejected, out);
            }
            None => {
                self.state = State::Idle;
                self.tell(Status::Stopped, out);
            }
        }
    }
}

/// Whether the same request may do better after a while (RFC 3261 §21.4 to §21.6).
const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 480 | 486 | 491 | 500 | 502 | 503 | 504 | 600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::*;
    use Output::Send;

    const RULES: Rules = Rules {
        expiration: 3600,
        retry: Some(Duration::from_secs(60)),
        forbidden_retry: None,
        fatal_retry: None,
        max_retries: 10,
        rejection_is_permanent: true,
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    fn told(status: Status) -> Output {
        Output::Status(status)
    }
    /// A registration whose first request is out.
    fn begun(rules: Rules) -> Registration {
        let (mut registration, mut out) = (Registration::new(rules), Vec::new());
        registration.start(&mut out);
        assert_eq!(out, [Send(rules.expiration)]);
        registration
    }
    fn after(registration: &mut Registration, outcome: Outcome, now: Instant) -> Vec<Output> {
        let mut out = Vec::new();
        registration.outcome(outcome, 0, now, &mut out);
        out
    }

    #[test]
    fn rfc3261_10_2_4_a_binding_is_refreshed_before_it_lapses() {
        let at = Instant::ZERO;
        for (granted, refresh) in [
            (Some(3600), 3560),
            (None, 3560),
            (Some(60), 30),
            (Some(100), 60),
            (Some(7200), 3560), // longer than asked for: what was asked for counts
            (Some(0), 2),
        ] {
            let mut registration = begun(RULES);
            assert_eq!(after(&mut registration, Accepted(granted), at), [told(Status::Registered)]);
            let due = registration.deadline().unwrap();
            assert_eq!(due.since(at).as_secs(), refresh, "{granted:?}");
            let mut out = Vec::new();
            registration.due(due, &mut out);
            assert_eq!(out, [Send(3600)], "{granted:?}");
            assert_eq!(registration.status(), Status::Registered, "while it is refreshed");
        }
    }

    #[test]
    fn registrations_that_began_together_are_refreshed_apart() {
        let mut registration = begun(RULES);
        registration.outcome(Accepted(Some(1000)), 99, Instant::ZERO, &mut Vec::new());
        assert_eq!(registration.deadline(), Some(Instant::ZERO + seconds(960 - 99)));
    }

    #[test]
    fn rfc3261_10_2_8_a_longer_interval_is_asked_for_at_once_and_kept() {
        let mut registration = begun(Rules { expiration: 60, ..RULES });
        assert_eq!(after(&mut registration, TooBrief(1800), Instant::ZERO), [Send(1800)]);
        assert_eq!(after(&mut registration, Accepted(None), Instant::ZERO), [told(Status::Registered)]);
        let mut out = Vec::new();
        registration.due(Instant::ZERO + seconds(1800), &mut out);
        assert_eq!(out, [Send(1800)]);
        for wrong in [0, 1800, 1_000_000] {
            let mut registration = registration.clone();
            assert_eq!(
                after(&mut registration, TooBrief(wrong), Instant::ZERO),
                [told(Status::Stopped)],
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_a_failure_leads_to_is_the_sites_to_say() {
        let lenient = Rules {
            forbidden_retry: Some(seconds(300)),
            fatal_retry: Some(seconds(900)),
            rejection_is_permanent: false,
            ..RULES
        };
        let fatal_only = Rules { fatal_retry: Some(seconds(900)), ..RULES };
        let no_retry = Rules { retry: None, ..RULES };
        for (name, rules, outcome, wait) in [
            ("silence passes", RULES, Unanswered, Some(60)),
            ("silence, and no retry", no_retry, Unanswered, None),
            ("an overload passes", RULES, Refused(503, None), Some(60)),
            ("the registrar's own wait", RULES, Refused(503, Some(200)), Some(200)),
            ("a wait that is too short", RULES, Refused(503, Some(1)), Some(60)),
            ("a wait without end", RULES, Refused(503, Some(u32::MAX)), Some(86_400)),
            ("a time-out passes", RULES, Refused(408, None), Some(60)),
            ("an unknown user stays unknown", RULES, Refused(404, None), None),
            ("unless the site hopes", lenient, Refused(404, None), Some(900)),
            ("a wait does not make it pass", RULES, Refused(404, Some(5)), None),
            ("forbidden is for good", RULES, Refused(403, None), None),
            ("forbidden has its own wait", lenient, Refused(403, None), Some(300)),
            ("forbidden without its own wait", fatal_only, Refused(403, None), Some(900)),
            ("a wrong password is for good", RULES, Rejected, None),
            ("a wrong password counts as fatal", fatal_only, Rejected, Some(900)),
            ("a wrong password may pass", lenient, Rejected, Some(60)),
            ("a redirection is not followed", RULES, Refused(302, None), None),
            ("nobody anywhere, for now", RULES, Refused(600, None), Some(60)),
            ("declined", RULES, Refused(603, None), None),
        ] {
            let mut registration = begun(rules);
            let status = if wait.is_some() { Status::Rejected } else { Status::Stopped };
            assert_eq!(after(&mut registration, outcome, Instant::ZERO), [told(status)], "{name}");
            assert_eq!(registration.deadline().map(|at| at.since(Instant::ZERO).as_secs()), wait, "{name}");
        }
    }

    #[test]
    fn attempts_end_after_max_retries_and_begin_again_by_hand() {
        let mut registration = begun(Rules { max_retries: 2, ..RULES });
        let mut now = Instant::ZERO;
        for status in [Status::Rejected, Status::Rejected, Status::Stopped] {
            assert_eq!(after(&mut registration, Unanswered, now), [told(status)]);
            let Some(at) = registration.deadline() else { break };
            now = at;
            registration.due(now, &mut Vec::new());
        }
        assert_eq!(registration.deadline(), None);
        let mut out = Vec::new();
        registration.start(&mut out);
        assert_eq!(out, [Send(3600)]);
        assert_eq!(
            after(&mut registration, Unanswered, now),
            [told(Status::Rejected)],
            "the count begins anew"
        );
    }

    #[test]
    fn a_success_forgives_earlier_failures() {
        let mut registration = begun(Rules { max_retries: 1, ..RULES });
        let mut out = Vec::new();
        for _ in 0..3 {
            after(&mut registration, Unanswered, Instant::ZERO);
            registration.due(Instant::ZERO + seconds(60), &mut out);
            assert_eq!(after(&mut registration, Accepted(None), Instant::ZERO), [told(Status::Registered)]);
            registration.due(Instant::ZERO + seconds(3600), &mut out);
        }
    }

    #[test]
    fn rfc3261_10_2_2_a_binding_is_taken_back() {
        let mut registration = begun(RULES);
        after(&mut registration, Accepted(None), Instant::ZERO);
        let mut out = Vec::new();
        registration.stop(&mut out);
        assert_eq!(out, [Send(0)]);
        assert_eq!(after(&mut registration, Accepted(Some(0)), Instant::ZERO), [told(Status::Unregistered)]);
        assert_eq!((registration.deadline(), registration.until()), (None, None));
        // A wish that comes while it is taken back is carried out after that, one request at a time.
        registration.stop(&mut Vec::new());
        let mut out = Vec::new();
        registration.start(&mut out);
        assert_eq!(out, []);
        assert_eq!(
            after(&mut registration, Unanswered, Instant::ZERO),
            [told(Status::Unregistered), Send(3600)]
        );
    }

    #[test]
    fn answers_that_nobody_waits_for_change_nothing() {
        let mut registration = begun(RULES);
        after(&mut registration, Accepted(None), Instant::ZERO);
        for late in [Accepted(Some(60)), Refused(403, None), Unanswered] {
            assert_eq!(after(&mut registration, late, Instant::ZERO), []);
            assert_eq!(registration.status(), Status::Registered);
        }
    }
}
