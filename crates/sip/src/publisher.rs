//! The client side of PUBLISH: what the next request says, and what an answer to it means (RFC 3903 §4).
//!
//! One [`Publisher`] keeps one publication of ours alive at one compositor. It writes no message and knows no state and no
//! password: it says which tag to match, how long the state is to last and whether the state itself goes along, and is
//! told what became of the request. One request is out at a time (§4.1); what changes meanwhile goes with the next.

use base::Instant;
use core::time::Duration;

/// Part of a publication's life that is kept in reserve for the refresh: the request may be lost or challenged.
const MARGIN: Duration = Duration::from_secs(40);
/// Shortest life that is reckoned with, so that a compositor that grants nothing is not asked without end.
const LIFE_MIN: Duration = Duration::from_secs(4);
/// Wait after a failure that may pass: a compositor that restarts is back in seconds.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// It doubles with each further failure up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Wait after any other: whoever runs the compositor may have set it right by then.
const LONG_PAUSE: Duration = Duration::from_secs(600);
/// Longest wait that a compositor may impose by Retry-After.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// Longest life that we ask for when a compositor finds ours too brief.
const EXPIRES_MAX: u32 = 86_400;
/// Longest entity tag that is kept, bytes; those of compositors are some dozens.
pub const TAG_BYTES_MAX: usize = 256;

/// What a PUBLISH says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// SIP-If-Match; `None` begins a publication.
    pub tag: Option<String>,
    /// Expires; 0 takes the state back.
    pub seconds: u32,
    /// The state goes along.
    pub with_state: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A PUBLISH leaves.
    Send(Request),
    /// Nothing of ours is published any more, as was wanted.
    Gone,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx with its SIP-ETag and Expires.
    Accepted(Option<String>, Option<u32>),
    /// 412: the compositor does not know the publication (any more).
    Unmatched,
    /// 423 with its Min-Expires.
    TooBrief(u32),
    /// Any other final response; with Retry-After, seconds.
    Refused(u16, Option<u32>),
    /// A challenge that cannot be met.
    Rejected,
    /// No final response, or no way to send the request.
    Unanswered,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing is published.
    Idle,
    /// The compositor has our state.
    Published,
    /// It has refused it, or does not answer; it is tried again.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// A request is out: how long it asks for, 0 to take the state back, and whether it matches a tag.
    Asking {
        seconds: u32,
        matched: bool,
    },
    Published {
        refresh_at: Instant,
    },
    Waiting {
        until: Instant,
    },
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Publisher {
    expires: u32,
    state: State,
    status: Status,
    tag: Option<String>,
    /// When the compositor forgets what the tag names.
    until: Instant,
    /// The state has changed since a request told it.
    is_stale: bool,
    /// It is to be taken back.
    is_ending: bool,
    /// The life was prolonged once already because it was too brief.
    prolonged: bool,
    /// Failures that may pass, one after the other.
    failures: u32,
    /// The compositor wants to hear nothing before.
    held_until: Instant,
}

impl Publisher {
    /// One that publishes for `expires` seconds at a time.
    pub const fn new(expires: u32) -> Self {
        Self {
            expires,
            state: State::Idle,
            status: Status::Idle,
            tag: None,
            until: Instant::ZERO,
            is_stale: false,
            is_ending: false,
            prolonged: false,
            failures: 0,
            held_until: Instant::ZERO,
        }
    }
    /// How it stands.
    pub const fn status(&self) -> Status {
        self.status
    }
    /// When [`due`](Self::due) next wants to be called.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Published { refresh_at: at } | State::Waiting { until: at } => Some(at),
            State::Idle | State::Asking { .. } => None,
        }
    }
    /// There is new state to publish.
    pub fn update(&mut self, now: Instant, out: &mut Vec<Output>) {
        (self.is_stale, self.is_ending) = (true, false);
        match self.state {
            State::Idle | State::Published { .. } => self.send(now, out),
            // What has failed holds no news back, unless the compositor has said until when.
            State::Waiting { .. } if self.held_until <= now => self.send(now, out),
            // It goes with the request after this one, or when the wait is over.
            State::Asking { .. } | State::Waiting { .. } => {}
        }
    }
    /// The state is to be taken back.
    pub fn remove(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.is_ending = true;
        match self.state {
            State::Asking { .. } => {}
            State::Idle | State::Published { .. } | State::Waiting { .. } => self.send(now, out),
        }
    }
    /// The wait that a failure began ends at `at`: what stood in the way is gone by then.
    pub fn hasten(&mut self, at: Instant) {
        if let State::Waiting { until } = self.state {
            self.state = State::Waiting { until: until.min(at) };
        }
    }
    /// Time has passed.
    pub fn due(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.send(now, out);
        }
    }
    /// A final outcome of the request that is out.
    pub fn outcome(&mut self, outcome: Outcome, now: Instant, out: &mut Vec<Output>) {
        let State::Asking { seconds, matched } = self.state else { return };
        if seconds == 0 {
            return self.taken_back(now, out);
        }
        match outcome {
            Outcome::Accepted(tag, granted) => {
                let life = Duration::from_secs(granted.unwrap_or(seconds).min(seconds).into()).max(LIFE_MIN);
                self.tag = tag.filter(|tag| !tag.is_empty() && tag.len() <= TAG_BYTES_MAX);
                self.until = now + life;
                self.status = Status::Published;
                self.prolonged = false;
                self.failures = 0;
                let refresh_at = now + life.saturating_sub(MARGIN).max(life / 2);
                self.state = State::Published { refresh_at };
                if self.is_stale || self.is_ending {
                    self.send(now, out);
                }
            }
            // §4.3: it is published anew, with the whole state. A first publication matches nothing, so that this
            // answer to one is a refusal like others.
            Outcome::Unmatched if matched => {
                self.tag = None;
                self.is_stale = true;
                self.send(now, out);
            }
            Outcome::TooBrief(least) if !self.prolonged && least > seconds && least <= EXPIRES_MAX => {
                self.expires = least;
                self.prolonged = true;
                self.is_stale = true;
                self.send(now, out);
            }
            Outcome::Refused(status, after) if is_temporary(status) => {
                let after = Duration::from_secs(after.unwrap_or(0).into()).min(RETRY_AFTER_MAX);
                self.held_until = now + after;
                let pause = self.pause();
                self.wait(pause.max(after), now, out);
            }
            Outcome::Unanswered => {
                let pause = self.pause();
                self.wait(pause, now, out);
            }
            Outcome::Unmatched | Outcome::TooBrief(_) | Outcome::Refused(..) | Outcome::Rejected => {
                self.wait(LONG_PAUSE, now, out);
            }
        }
    }

    /// The next request leaves.
    fn send(&mut self, now: Instant, out: &mut Vec<Output>) {
        let tag = self.tag.clone().filter(|_| self.until > now);
        if self.is_ending && tag.is_none() {
            return self.gone(out);
        }
        let seconds = if self.is_ending { 0 } else { self.expires };
        // What lapsed, or was never there, can only be published whole.
        let with_state = seconds > 0 && (self.is_stale || tag.is_none());
        if with_state {
            self.is_stale = false;
        }
        self.state = State::Asking { seconds, matched: tag.is_some() };
        out.push(Output::Send(Request { tag, seconds, with_state }));
    }
    /// The request that takes the state back has an outcome, whatever it is: what the compositor still has lapses.
    fn taken_back(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.tag = None;
        // Somebody wants it published after all.
        if !self.is_ending {
            return self.send(now, out);
        }
        self.gone(out);
    }
    fn gone(&mut self, out: &mut Vec<Output>) {
        (self.state, self.status, self.tag) = (State::Idle, Status::Idle, None);
        (self.is_stale, self.is_ending) = (false, false);
        out.push(Output::Gone);
    }
    /// The wait after one more failure that may pass.
    fn pause(&mut self) -> Duration {
        let doubled = PAUSE_MIN * (1 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        doubled.min(PAUSE_MAX)
    }
    /// Nothing leaves for a while, unless there is news already; then the whole state does, since nobody knows what the
    /// compositor has.
    fn wait(&mut self, pause: Duration, now: Instant, out: &mut Vec<Output>) {
        self.status = Status::Refused;
        let has_news = std::mem::replace(&mut self.is_stale, true) && self.held_until <= now;
        if self.is_ending || has_news {
            return self.send(now, out);
        }
        self.state = State::Waiting { until: now + pause };
    }
}

/// Whether the same request may do better after a while (RFC 3261 §21.4 to §21.6).
const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 480 | 486 | 491 | 500 | 502 | 503 | 504 | 600)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to a publisher.
    #[derive(Debug, Clone)]
    enum Act {
        Update,
        Remove,
        Due,
        Comes(Outcome),
    }
    use Act::{Comes, Due, Remove, Update};
    use Outcome::{Refused, Rejected, TooBrief, Unanswered, Unmatched};

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    fn ok(tag: &str, seconds: u32) -> Act {
        Comes(Outcome::Accepted(Some(tag.to_owned()), Some(seconds)))
    }
    /// A request as a word: its tag, how long, whether the state goes along.
    fn word(output: &Output) -> String {
        match output {
            Output::Gone => "gone".to_owned(),
            Output::Send(Request { tag, seconds, with_state }) => {
                let tag = tag.as_deref().unwrap_or("new");
                format!("{tag} {seconds}{}", if *with_state { " state" } else { "" })
            }
        }
    }
    /// Plays acts, each with its second, on a publisher of 600 seconds; what each brought out, and when it wants to be
    /// called then.
    fn play(acts: &[(u64, Act)]) -> Vec<(String, Option<u64>)> {
        let mut publisher = Publisher::new(600);
        let mut out = Vec::new();
        let mut told = Vec::new();
        for (second, act) in acts {
            let now = at(*second);
            match act {
                Update => publisher.update(now, &mut out),
                Remove => publisher.remove(now, &mut out),
                Due => publisher.due(now, &mut out),
                Comes(outcome) => publisher.outcome(outcome.clone(), now, &mut out),
            }
            let words: Vec<String> = out.drain(..).map(|output| word(&output)).collect();
            told.push((words.join(", "), publisher.deadline().map(|at| at.since(Instant::ZERO).as_secs())));
        }
        told
    }

    #[test]
    fn rfc3903_4_each_request_says_what_the_compositor_has_to_know() {
        type Row = (&'static str, Vec<(u64, Act)>, Vec<(&'static str, Option<u64>)>);
        let rows: Vec<Row> = vec![
            (
                "4.1: state is refreshed before it lapses, without the state",
                vec![(0, Update), (0, ok("a", 600)), (560, Due), (560, ok("b", 600)), (1120, Due)],
                vec![
                    ("new 600 state", None),
                    ("", Some(560)),
                    ("a 600", None),
                    ("", Some(1120)),
                    ("b 600", None),
                ],
            ),
            (
                "the compositor may shorten its life, never lengthen it",
                vec![(0, Update), (0, ok("a", 60)), (30, Due), (30, ok("b", 7200))],
                vec![("new 600 state", None), ("", Some(30)), ("a 600", None), ("", Some(590))],
            ),
            (
                "4.4: a change modifies",
                vec![(0, Update), (0, ok("a", 600)), (5, Update), (5, ok("b", 600))],
                vec![("new 600 state", None), ("", Some(560)), ("a 600 state", None), ("", Some(565))],
            ),
            (
                "4.1: one request is out at a time; changes meanwhile are one",
                vec![(0, Update), (1, Update), (2, Update), (3, ok("a", 600)), (4, ok("b", 600))],
                vec![("new 600 state", None), ("", None), ("", None), ("a 600 state", None), ("", Some(564))],
            ),
            (
                "4.5: it is taken back",
                vec![(0, Update), (0, ok("a", 600)), (9, Remove), (9, ok("b", 0)), (600, Due)],
                vec![("new 600 state", None), ("", Some(560)), ("a 0", None), ("gone", None), ("", None)],
            ),
            ("what was never published is gone at once", vec![(0, Remove)], vec![("gone", None)]),
            (
                "taken back while a request is out: after it",
                vec![(0, Update), (1, Remove), (2, ok("a", 600)), (3, Comes(Unanswered))],
                vec![("new 600 state", None), ("", None), ("a 0", None), ("gone", None)],
            ),
            (
                "wanted again while it is taken back",
                vec![(0, Update), (0, ok("a", 600)), (1, Remove), (2, Update), (3, ok("b", 0))],
                vec![
                    ("new 600 state", None),
                    ("", Some(560)),
                    ("a 0", None),
                    ("", None),
                    ("new 600 state", None),
                ],
            ),
            (
                "4.3: a compositor that has forgotten gets the whole state",
                vec![
                    (0, Update),
                    (0, ok("a", 600)),
                    (560, Due),
                    (560, Comes(Unmatched)),
                    (561, ok("b", 600)),
                ],
                vec![
                    ("new 600 state", None),
                    ("", Some(560)),
                    ("a 600", None),
                    ("new 600 state", None),
                    ("", Some(1121)),
                ],
            ),
            (
                "412 to what matched nothing is a refusal",
                vec![(0, Update), (0, Comes(Unmatched)), (600, Due)],
                vec![("new 600 state", None), ("", Some(600)), ("new 600 state", None)],
            ),
            (
                "423: a longer life is asked for at once, and kept",
                vec![(0, Update), (0, Comes(TooBrief(1800))), (0, ok("a", 1800)), (1760, Due)],
                vec![("new 600 state", None), ("new 1800 state", None), ("", Some(1760)), ("a 1800", None)],
            ),
            (
                "423 without end is a refusal",
                vec![(0, Update), (0, Comes(TooBrief(1800))), (0, Comes(TooBrief(3600)))],
                vec![("new 600 state", None), ("new 1800 state", None), ("", Some(600))],
            ),
            (
                "423 that asks for less is a refusal",
                vec![(0, Update), (0, Comes(TooBrief(600)))],
                vec![("new 600 state", None), ("", Some(600))],
            ),
            (
                "silence: the state as it is then, and the tag as long as it may be known",
                vec![(0, Update), (0, ok("a", 600)), (500, Update), (532, Comes(Unanswered)), (534, Due)],
                vec![
                    ("new 600 state", None),
                    ("", Some(560)),
                    ("a 600 state", None),
                    ("", Some(534)),
                    ("a 600 state", None),
                ],
            ),
            (
                "silence for longer than that",
                vec![(0, Update), (0, ok("a", 600)), (560, Due), (619, Comes(Unanswered)), (621, Due)],
                vec![
                    ("new 600 state", None),
                    ("", Some(560)),
                    ("a 600", None),
                    ("", Some(621)),
                    ("new 600 state", None),
                ],
            ),
            (
                "each further silence is waited for twice as long, and an answer begins anew",
                vec![
                    (0, Update),
                    (32, Comes(Unanswered)),
                    (34, Due),
                    (66, Comes(Refused(503, None))),
                    (70, Due),
                    (70, ok("a", 600)),
                    (630, Due),
                    (662, Comes(Unanswered)),
                ],
                vec![
                    ("new 600 state", None),
                    ("", Some(34)),
                    ("new 600 state", None),
                    ("", Some(70)),
                    ("new 600 state", None),
                    ("", Some(630)),
                    ("a 600", None),
                    ("", Some(664)),
                ],
            ),
            (
                "news leaves at once after a failure",
                vec![(0, Update), (32, Comes(Unanswered)), (33, Update), (33, ok("a", 600))],
                vec![("new 600 state", None), ("", Some(34)), ("new 600 state", None), ("", Some(593))],
            ),
            (
                "news of the time while it failed as well",
                vec![(0, Update), (5, Update), (32, Comes(Refused(489, None))), (33, ok("a", 600))],
                vec![("new 600 state", None), ("", None), ("new 600 state", None), ("", Some(593))],
            ),
            (
                "an overload passes when the compositor says",
                vec![(0, Update), (0, Comes(Refused(503, Some(200)))), (100, Update), (200, Due)],
                vec![("new 600 state", None), ("", Some(200)), ("", Some(200)), ("new 600 state", None)],
            ),
            (
                "a refusal for good is tried again when somebody may have mended it",
                vec![(0, Update), (0, Comes(Refused(489, None))), (600, Due), (600, Comes(Rejected))],
                vec![("new 600 state", None), ("", Some(600)), ("new 600 state", None), ("", Some(1200))],
            ),
            (
                "a 2xx without a tag: nothing can be matched, all is published anew",
                vec![(0, Update), (0, Comes(Outcome::Accepted(None, Some(600)))), (560, Due)],
                vec![("new 600 state", None), ("", Some(560)), ("new 600 state", None)],
            ),
            (
                "a compositor that grants nothing is not asked without end",
                vec![(0, Update), (0, ok("a", 0)), (2, Due)],
                vec![("new 600 state", None), ("", Some(2)), ("a 600", None)],
            ),
            (
                "an answer that nobody waits for changes nothing",
                vec![(0, ok("a", 600)), (0, Update), (0, ok("a", 600)), (1, Comes(Unmatched))],
                vec![("", None), ("new 600 state", None), ("", Some(560)), ("", Some(560))],
            ),
        ];
        for (name, acts, expected) in rows {
            let told = play(&acts);
            let told: Vec<(&str, Option<u64>)> = told.iter().map(|(word, at)| (word.as_str(), *at)).collect();
            assert_eq!(told, expected, "{name}");
        }
    }

    #[test]
    fn a_wait_may_be_shortened_and_never_drawn_out() {
        let (mut publisher, mut out) = (Publisher::new(600), Vec::new());
        publisher.hasten(at(1));
        assert_eq!(publisher.deadline(), None, "there is nothing to wait for");
        publisher.update(at(0), &mut out);
        publisher.outcome(Unanswered, at(0), &mut out);
        for (wish, deadline) in [(90, 2), (1, 1), (30, 1)] {
            publisher.hasten(at(wish));
            assert_eq!(publisher.deadline(), Some(at(deadline)), "{wish}");
        }
        out.clear();
        publisher.due(at(1), &mut out);
        assert_eq!(out.iter().map(word).collect::<Vec<_>>(), ["new 600 state"]);
    }

    #[test]
    fn how_it_stands_is_told() {
        let (mut publisher, mut out) = (Publisher::new(600), Vec::new());
        assert_eq!(publisher.status(), Status::Idle);
        publisher.update(at(0), &mut out);
        publisher.outcome(Outcome::Accepted(Some("a".into()), None), at(0), &mut out);
        assert_eq!(publisher.status(), Status::Published);
        publisher.due(at(560), &mut out);
        assert_eq!(publisher.status(), Status::Published, "while it is refreshed");
        publisher.outcome(Refused(403, None), at(560), &mut out);
        assert_eq!(publisher.status(), Status::Refused);
        publisher.remove(at(561), &mut out);
        publisher.outcome(Unanswered, at(600), &mut out);
        assert_eq!(publisher.status(), Status::Idle);
    }
}
