//! Session timers (RFC 4028): who refreshes a session, when, and when it counts as dead.
//!
//! A [`SessionTimer`] belongs to one call. It writes the headers of our requests and answers, reads those of the peer, and
//! says by its deadline when a refresh is due or the session has lapsed. How a refresh is sent is the driver's to know.

use crate::header::{HeaderName, SessionExpires, delta_seconds};
use crate::message::Message;
use base::Instant;
use core::time::Duration;

/// Smallest interval that anybody may ask for (§4).
pub const MIN_SE: u32 = 90;
/// How long before its end a session that nobody refreshed is given up, at most (§10).
const MARGIN: Duration = Duration::from_secs(32);
/// Intervals that peers may impose, seconds: more than a day is as good as none.
const INTERVAL_MAX: u32 = 86_400;
/// How often one request is sent again with the interval that the peer wants.
const TOO_SMALL_MAX: u8 = 3;

/// What the site wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// No timers.
    #[default]
    No,
    /// When the peer can.
    Yes,
    /// Peers that cannot are refused.
    Required,
    /// Even when the peer cannot: we refresh.
    Always,
}

/// The site's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Whether at all.
    pub policy: Policy,
    /// Shortest interval that we accept, seconds.
    pub min_se: u32,
    /// Interval that we ask for, seconds.
    pub expires: u32,
}

/// Why a request cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 422: the interval is too small; Min-SE says what would do.
    TooSmall(u32),
    /// 421: the peer has to support timers.
    Needed,
    /// 420: the peer wants timers and we have none.
    Unwanted,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The session is to be refreshed by us.
    Refresh,
    /// Nobody refreshed it: it is over (§10).
    Lapsed,
}

/// One session as it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Running {
    interval: u32,
    ours: bool,
    refresh_at: Option<Instant>,
    lapse_at: Instant,
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct SessionTimer {
    terms: Terms,
    /// What the next request asks for.
    wanted: u32,
    /// Largest Min-SE heard.
    least: u32,
    too_small: u8,
    running: Option<Running>,
    /// The peer said `timer` in Supported.
    peer_can: bool,
}

/// A header that the timer writes.
pub type Written = (&'static str, String);

impl SessionTimer {
    /// Not running.
    pub fn new(terms: Terms) -> Self {
        let min_se = terms.min_se.max(MIN_SE);
        let terms = Terms { min_se, expires: terms.expires.max(min_se), ..terms };
        Self { wanted: terms.expires, least: min_se, terms, too_small: 0, running: None, peer_can: false }
    }
    /// Whether we use timers at all.
    pub fn is_on(&self) -> bool {
        self.terms.policy != Policy::No
    }
    /// Seconds of the interval, while one runs.
    pub fn interval(&self) -> Option<u32> {
        self.running.map(|running| running.interval)
    }
    /// Whether we refresh.
    pub fn is_ours(&self) -> bool {
        self.running.is_some_and(|running| running.ours)
    }
    /// Whether the peer supports timers.
    pub fn peer_can(&self) -> bool {
        self.peer_can
    }
    /// When [`due`](Self::due) next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let running = self.running?;
        Some(running.refresh_at.map_or(running.lapse_at, |at| at.min(running.lapse_at)))
    }
    /// What is due. A refresh is said once; the session lapses unless an answer to it comes.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let running = self.running.as_mut()?;
        if running.lapse_at <= now {
            self.running = None;
            return Some(Due::Lapsed);
        }
        running.refresh_at.take_if(|at| *at <= now).map(|_| Due::Refresh)
    }

    /// A refresh that could not leave is due again at this moment.
    pub fn postpone(&mut self, at: Instant) {
        if let Some(running) = self.running.as_mut().filter(|running| running.ours) {
            running.refresh_at = Some(at);
        }
    }
    /// Headers of an INVITE, re-INVITE or UPDATE of ours (§7.1, §7.4). Supported is the caller's to write.
    pub fn ask(&self) -> Vec<Written> {
        if !self.is_on() {
            return Vec::new();
        }
        let refresher = match self.running {
            Some(Running { ours: true, .. }) => ";refresher=uac",
            Some(Running { ours: false, .. }) => ";refresher=uas",
            None => "",
        };
        let seconds = self.running.map_or(self.wanted, |running| running.interval.max(self.least));
        let mut headers =
            vec![("Session-Expires", format!("{seconds}{refresher}")), ("Min-SE", self.least.to_string())];
        if self.terms.policy == Policy::Required && self.running.is_none() {
            headers.push(("Require", "timer".to_owned()));
        }
        headers
    }
    /// A 422 to a request of ours: the headers to send it again with, unless that has no hope (§7.3).
    pub fn too_small(&mut self, response: &Message<'_>) -> Option<Vec<Written>> {
        let least = response.header(HeaderName::MinSe).and_then(min_se)?;
        self.too_small += 1;
        let hopeful = self.is_on() && least > self.least.min(self.wanted) && least <= INTERVAL_MAX;
        if !hopeful || self.too_small > TOO_SMALL_MAX {
            return None;
        }
        self.least = self.least.max(least);
        self.wanted = self.wanted.max(least);
        Some(self.ask().into_iter().filter(|(name, _)| *name != "Require").collect())
    }
    /// A 2xx to a request of ours (§7.2): who refreshes from here on, and when.
    pub fn accepted(&mut self, response: &Message<'_>, now: Instant) {
        if !self.is_on() {
            return;
        }
        self.too_small = 0;
        let said = response.header(HeaderName::SessionExpires).and_then(SessionExpires::parse);
        match said {
            Some(said) => {
                self.peer_can = true;
                // A response has to name the refresher; without one it is us who asked.
                self.run(said.seconds.max(self.least.min(MIN_SE)), said.uac_refreshes.unwrap_or(true), now);
            }
            None if self.terms.policy == Policy::Always => self.run(self.wanted, true, now),
            None => self.running = None,
        }
    }
    /// Whether an INVITE, re-INVITE or UPDATE of the peer can be taken (§9).
    pub fn judge(&self, request: &Message<'_>) -> Result<(), Refusal> {
        let can =
            request.lists(HeaderName::Supported, b"timer") || request.lists(HeaderName::Require, b"timer");
        if !self.is_on() {
            let required = request.lists(HeaderName::Require, b"timer");
            return if required { Err(Refusal::Unwanted) } else { Ok(()) };
        }
        if self.terms.policy == Policy::Required && !can {
            return Err(Refusal::Needed);
        }
        let said = request.header(HeaderName::SessionExpires).and_then(SessionExpires::parse);
        // Whoever does not know the extension cannot do anything with 422; a proxy asked in its name.
        match said {
            Some(said) if can && said.seconds < self.terms.min_se => {
                Err(Refusal::TooSmall(self.terms.min_se))
            }
            _ => Ok(()),
        }
    }
    /// Headers of our 2xx to a request of the peer (§9), and the timer runs anew.
    pub fn answer(&mut self, request: &Message<'_>, now: Instant) -> Vec<Written> {
        if !self.is_on() {
            return Vec::new();
        }
        let can =
            request.lists(HeaderName::Supported, b"timer") || request.lists(HeaderName::Require, b"timer");
        self.peer_can = can;
        let said = request.header(HeaderName::SessionExpires).and_then(SessionExpires::parse);
        let least = request.header(HeaderName::MinSe).and_then(min_se).unwrap_or(MIN_SE);
        self.least = self.least.max(least.min(INTERVAL_MAX));
        if said.is_none() && !can && self.terms.policy != Policy::Always {
            self.running = None;
            return Vec::new();
        }
        // It may be shortened, never below what either side takes; without one it is ours to choose.
        let asked = said.map_or(u32::MAX, |said| said.seconds);
        let seconds = asked.min(self.terms.expires).max(self.least);
        let peer = can && said.and_then(|said| said.uac_refreshes).unwrap_or(true);
        self.run(seconds, !peer, now);
        let who = if peer { "uac" } else { "uas" };
        let mut headers = vec![("Session-Expires", format!("{seconds};refresher={who}"))];
        if peer {
            headers.push(("Require", "timer".to_owned()));
        }
        headers
    }
    /// The session is over.
    pub fn stop(&mut self) {
        self.running = None;
    }

    fn run(&mut self, seconds: u32, ours: bool, now: Instant) {
        let seconds = seconds.min(INTERVAL_MAX);
        let interval = Duration::from_secs(seconds.into());
        self.running = Some(Running {
            interval: seconds,
            ours,
            refresh_at: ours.then(|| now + interval / 2),
            lapse_at: now + interval.saturating_sub(MARGIN.min(interval / 3)),
        });
    }
}

/// The seconds of Min-SE, which may have parameters.
fn min_se(value: &[u8]) -> Option<u32> {
    delta_seconds(value.split(|byte| *byte == b';').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Index;

    const TERMS: Terms = Terms { policy: Policy::Yes, min_se: 90, expires: 1800 };

    fn with<R>(head: &str, headers: &str, read: impl FnOnce(&Message<'_>) -> R) -> R {
        let text = format!("{head}\r\n{headers}Content-Length: 0\r\n\r\n");
        let mut index = Index::new();
        read(&Message::parse(text.as_bytes(), &mut index).unwrap())
    }
    fn request<R>(headers: &str, read: impl FnOnce(&Message<'_>) -> R) -> R {
        with("INVITE sip:a@b SIP/2.0", headers, read)
    }
    fn response<R>(headers: &str, read: impl FnOnce(&Message<'_>) -> R) -> R {
        with("SIP/2.0 200 OK", headers, read)
    }
    fn lines(headers: &[Written]) -> Vec<String> {
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }
    fn due(timer: &SessionTimer) -> Option<u64> {
        timer.deadline().map(|at| at.since(Instant::ZERO).as_secs())
    }

    #[test]
    fn rfc4028_7_2_the_answer_says_who_refreshes() {
        for (name, policy, answer, ours, at) in [
            ("we do", Policy::Yes, "Session-Expires: 1800;refresher=uac\r\n", true, Some(900)),
            ("the peer does", Policy::Yes, "Session-Expires: 1800;refresher=uas\r\n", false, Some(1768)),
            ("a short session", Policy::Yes, "x: 90;refresher=uas\r\n", false, Some(60)),
            ("nobody is named", Policy::Yes, "Session-Expires: 600\r\n", true, Some(300)),
            ("the peer has no timers", Policy::Yes, "", false, None),
            ("the peer has none, and we insist", Policy::Always, "", true, Some(900)),
            ("less than anybody may", Policy::Yes, "Session-Expires: 1;refresher=uac\r\n", true, Some(45)),
            ("we have none", Policy::No, "Session-Expires: 1800;refresher=uac\r\n", false, None),
        ] {
            let mut timer = SessionTimer::new(Terms { policy, ..TERMS });
            response(answer, |response| timer.accepted(response, Instant::ZERO));
            assert_eq!((timer.is_ours(), due(&timer)), (ours, at), "{name}");
        }
    }

    #[test]
    fn rfc4028_9_what_we_answer() {
        for (name, policy, asked, answer, ours) in [
            (
                "the caller refreshes when it can",
                Policy::Yes,
                "Supported: timer\r\nSession-Expires: 600\r\n",
                vec!["Session-Expires: 600;refresher=uac", "Require: timer"],
                false,
            ),
            (
                "the caller chooses us",
                Policy::Yes,
                "Supported: 100rel, timer\r\nSession-Expires: 600;refresher=uas\r\n",
                vec!["Session-Expires: 600;refresher=uas"],
                true,
            ),
            (
                "a proxy asked, the caller cannot",
                Policy::Yes,
                "Session-Expires: 600\r\n",
                vec!["Session-Expires: 600;refresher=uas"],
                true,
            ),
            (
                "longer than we want",
                Policy::Yes,
                "Supported: timer\r\nSession-Expires: 7200\r\n",
                vec!["Session-Expires: 1800;refresher=uac", "Require: timer"],
                false,
            ),
            (
                "longer than we want, as the caller wants it",
                Policy::Yes,
                "Supported: timer\r\nSession-Expires: 7200\r\nMin-SE: 3600;x=1\r\n",
                vec!["Session-Expires: 3600;refresher=uac", "Require: timer"],
                false,
            ),
            (
                "the caller can and says nothing",
                Policy::Yes,
                "Supported: timer\r\n",
                vec!["Session-Expires: 1800;refresher=uac", "Require: timer"],
                false,
            ),
            ("the caller cannot", Policy::Yes, "", vec![], false),
            (
                "the caller cannot, and we insist",
                Policy::Always,
                "",
                vec!["Session-Expires: 1800;refresher=uas"],
                true,
            ),
            ("we have none", Policy::No, "Supported: timer\r\nSession-Expires: 600\r\n", vec![], false),
        ] {
            let mut timer = SessionTimer::new(Terms { policy, ..TERMS });
            let written = request(asked, |request| {
                assert_eq!(timer.judge(request), Ok(()), "{name}");
                timer.answer(request, Instant::ZERO)
            });
            assert_eq!(lines(&written), answer, "{name}");
            assert_eq!(timer.is_ours(), ours, "{name}");
            assert_eq!(timer.deadline().is_some(), !answer.is_empty(), "{name}");
        }
    }

    #[test]
    fn rfc4028_9_what_we_refuse() {
        for (name, policy, min_se, asked, expected) in [
            (
                "too small",
                Policy::Yes,
                300,
                "Supported: timer\r\nSession-Expires: 120\r\n",
                Err(Refusal::TooSmall(300)),
            ),
            ("too small, of one that cannot know", Policy::Yes, 300, "Session-Expires: 120\r\n", Ok(())),
            ("required, and missing", Policy::Required, 90, "", Err(Refusal::Needed)),
            ("required, and there", Policy::Required, 90, "Supported: timer\r\n", Ok(())),
            ("wanted by the peer, not by us", Policy::No, 90, "Require: timer\r\n", Err(Refusal::Unwanted)),
            ("possible, not by us", Policy::No, 90, "Supported: timer\r\n", Ok(())),
        ] {
            let timer = SessionTimer::new(Terms { policy, min_se, ..TERMS });
            assert_eq!(request(asked, |request| timer.judge(request)), expected, "{name}");
        }
    }

    #[test]
    fn rfc4028_7_3_a_longer_interval_is_asked_for_three_times_at_most() {
        let mut timer = SessionTimer::new(Terms { expires: 100, ..TERMS });
        let mut last = Vec::new();
        for least in [300, 600, 900] {
            last = response(&format!("Min-SE: {least}\r\n"), |response| timer.too_small(response)).unwrap();
            assert_eq!(lines(&last), [format!("Session-Expires: {least}"), format!("Min-SE: {least}")]);
        }
        assert_eq!(response("Min-SE: 1200\r\n", |response| timer.too_small(response)), None);
        assert_eq!(last.len(), 2);
        for hopeless in ["", "Min-SE: 90\r\n", "Min-SE: 4000000000\r\n", "Min-SE: x\r\n"] {
            let mut timer = SessionTimer::new(TERMS);
            assert_eq!(response(hopeless, |response| timer.too_small(response)), None, "{hopeless}");
        }
    }

    #[test]
    fn rfc4028_10_a_session_that_nobody_refreshes_lapses() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut timer = SessionTimer::new(TERMS);
        response("Session-Expires: 1800;refresher=uac\r\n", |response| timer.accepted(response, at(0)));
        assert_eq!(timer.due(at(899)), None);
        assert_eq!(timer.due(at(900)), Some(Due::Refresh));
        assert_eq!(lines(&timer.ask()), ["Session-Expires: 1800;refresher=uac", "Min-SE: 90"]);
        assert_eq!(timer.due(at(901)), None, "it is said once");
        assert_eq!(due(&timer), Some(1768));
        // Refreshed: it runs anew.
        let mut refreshed = timer.clone();
        response("Session-Expires: 1800;refresher=uac\r\n", |response| refreshed.accepted(response, at(901)));
        assert_eq!(due(&refreshed), Some(1801));
        assert_eq!(timer.due(at(1768)), Some(Due::Lapsed));
        assert_eq!(timer.deadline(), None);
    }

    #[test]
    fn rfc4028_7_4_a_refresh_keeps_who_refreshes() {
        let mut timer = SessionTimer::new(TERMS);
        request("Supported: timer\r\nSession-Expires: 600;refresher=uac\r\n", |request| {
            timer.answer(request, Instant::ZERO)
        });
        assert_eq!(lines(&timer.ask()), ["Session-Expires: 600;refresher=uas", "Min-SE: 90"]);
    }
}
