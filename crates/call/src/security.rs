//! Who tried to get in: a line of the security log and a notice for each attempt.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::HashMap;

use base::{Instant, source_of};
use dialplan::{Wall, strftime};

use crate::{Core, Level, Notice};

/// Characters of a name from outside that are shown.
const SHOWN_CHARS_MAX: usize = 64;

/// Somebody who tried to get in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempt {
    /// `SuccessfulAuth`, `ChallengeSent`, `ChallengeResponseFailed`, `InvalidPassword`, `InvalidAccountID`, `FailedACL`,
    /// `RequestNotAllowed`, `RequestBadFormat`, `AddressBanned`, `AddressUnbanned`.
    pub event: &'static str,
    /// `AMI`, `PJSIP`, `IAX2`, `HTTP`, `CLI`.
    pub service: &'static str,
    /// Who it says it is.
    pub account: String,
    /// Number of the session, or the Call-ID.
    pub session: String,
    /// Where it came in, as [`address`] writes it; empty: the service does not say.
    pub local: String,
    /// Where it came from.
    pub remote: String,
    /// What was asked of it: the nonce; of `FailedACL` what refused it; empty without one.
    pub challenge: String,
    /// What was answered to `challenge`, of `ChallengeResponseFailed`.
    pub response: String,
    /// What was wanted, of `RequestNotAllowed` and `RequestBadFormat`: `Action: Ping`.
    pub request: String,
    /// When its session began to be somebody's, microseconds since the epoch; 0 of one that is nobody's. None where there
    /// are no sessions.
    pub since: Option<i64>,
    /// The same as it is told.
    pub since_time: String,
    /// When: ISO 8601 with milliseconds; filled in when it is told.
    pub time: String,
}

impl Attempt {
    /// Whether nothing is wrong with it.
    pub fn is_good(&self) -> bool {
        matches!(self.event, "SuccessfulAuth" | "ChallengeSent" | "AddressUnbanned")
    }
    /// Whether it has a field although nothing stands there.
    fn always_has(&self, field: &str) -> bool {
        match self.event {
            _ if matches!(field, "AccountID" | "SessionID") => true,
            "ChallengeSent" => field == "Challenge",
            "ChallengeResponseFailed" => matches!(field, "Challenge" | "Response" | "ExpectedResponse"),
            _ => false,
        }
    }
    /// Its fields in the order and with the names of the field's events, those that are there.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let severity = if self.is_good() { "Informational" } else { "Error" };
        // Of managers it is told that they have used none, whatever they did.
        let password = match (self.event, self.service) {
            ("SuccessfulAuth", "AMI") => "0",
            ("SuccessfulAuth", _) => "1",
            _ => "",
        };
        let version = if (self.event, self.service) == ("InvalidPassword", "AMI") { "2" } else { "1" };
        let account = ("AccountID", self.account.as_str());
        // Who said what nobody understands is told last.
        let (first, last) = match self.event {
            "RequestBadFormat" => (None, Some(account).filter(|(_, account)| !account.is_empty())),
            _ => (Some(account), None),
        };
        [
            Some(("EventTV", self.time.as_str())),
            Some(("Severity", severity)),
            Some(("Service", self.service)),
            Some(("EventVersion", version)),
            first,
            Some(("SessionID", &self.session)),
            Some(("LocalAddress", &self.local)),
            Some(("RemoteAddress", &self.remote)),
            Some((if self.event == "FailedACL" { "ACLName" } else { "Challenge" }, &self.challenge)),
            Some(("Response", &self.response)),
            // Nobody is told what would have been right.
            Some(("ExpectedResponse", "")),
            Some(("UsingPassword", password)),
            Some(("RequestType", &self.request)),
            Some(("SessionTV", &self.since_time)),
            last,
        ]
        .into_iter()
        .flatten()
        .filter(|(name, value)| !value.is_empty() || self.always_has(name))
    }
}

/// An address as security events write it: `IPV4/UDP/192.0.2.1/5060`.
pub fn address(transport: &str, peer: SocketAddr) -> String {
    let (ip, port) = (peer.ip().to_canonical(), peer.port());
    let family = if ip.is_ipv4() { "IPV4" } else { "IPV6" };
    format!("{family}/{transport}/{ip}/{port}")
}

/// Text from outside for a log line: no control characters, not too long, and no quotation marks.
pub fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\'').take(SHOWN_CHARS_MAX).collect()
}

/// The module that serves it, as the field's logs name it.
fn module_of(service: &str) -> &'static str {
    match service {
        "AMI" => "manager",
        "HTTP" => "http",
        "IAX2" => "chan_iax2",
        _ => "res_pjsip",
    }
}

/// What strangers do is told one by one up to here, of one address in [`PERIOD`]: as many as [`crate::Bans`] needs to ban
/// a user, and more than fail2ban needs.
pub const TOLD_OF_ADDRESS: u32 = 10;
/// The same of all addresses together: at some 700 bytes each, 200 kB of log in a period.
pub const TOLD_MAX: u32 = 300;
/// The span in which it is counted, from the first on. What was not told is summed up when it is over.
pub const PERIOD: Duration = Duration::from_secs(60);

/// What shows that somebody who has no right password is at the address that a request says to come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing: a datagram without an answer to a challenge of ours. Phones send such ones, too, before they are
    /// challenged, and anybody can write any address on them.
    Claimed,
    /// A connection, or the answer to a challenge or token that was sent there.
    Shown,
}

/// Counts what strangers do, so that the log says of each what it was, and of many how many they were. Those who have shown
/// where they are have a bound of their own: no flood of forged addresses and no crowd of phones that are challenged as a
/// matter of course can hide who guesses passwords.
#[derive(Debug, Default)]
pub struct Strangers {
    claimed: Tally,
    shown: Tally,
}

/// It holds an address for each that was told, so that it cannot grow beyond [`TOLD_MAX`].
#[derive(Debug, Default)]
struct Tally {
    /// Of each address: how many were told, and how many were not.
    told: HashMap<IpAddr, (u32, u64)>,
    all: u32,
    untold: u64,
    until: Option<Instant>,
}

impl Tally {
    /// Whether this one is told. One request, one login, one call is one, however many lines it makes.
    fn is_told(&mut self, from: IpAddr, now: Instant) -> bool {
        self.until.get_or_insert(now + PERIOD);
        let from = source_of(from);
        let room = self.all < TOLD_MAX;
        let entry = match self.told.get_mut(&from) {
            None if room => Some(self.told.entry(from).or_default()),
            known => known,
        };
        if let Some((told, untold)) = entry {
            if room && *told < TOLD_OF_ADDRESS {
                *told += 1;
                self.all += 1;
                return true;
            }
            *untold += 1;
        }
        self.untold += 1;
        false
    }
    /// What was not told, when the period is over.
    fn sum_up(&mut self, now: Instant) -> Option<String> {
        self.until.filter(|until| *until <= now)?;
        let Self { told, untold, .. } = std::mem::take(self);
        let most = told.iter().max_by_key(|(_, (_, untold))| *untold).filter(|(_, (_, untold))| *untold > 0);
        let most =
            most.map(|(from, (_, untold))| format!(", {untold} of them from '{from}'")).unwrap_or_default();
        let secs = PERIOD.as_secs();
        (untold > 0).then(|| {
            format!("{untold} further requests without a right password within {secs} s were not logged one by one{most}")
        })
    }
}

impl Strangers {
    /// When the next period is over.
    pub fn deadline(&self) -> Option<Instant> {
        [self.claimed.until, self.shown.until].into_iter().flatten().min()
    }
}

impl Core {
    /// Whether the log and watchers are told of something that a stranger does: some of each address and period are, and
    /// some of all; the rest is counted.
    pub fn tells_of(&mut self, from: IpAddr, presence: Presence) -> bool {
        self.sum_up_strangers();
        let tally = match presence {
            Presence::Claimed => &mut self.strangers.claimed,
            Presence::Shown => &mut self.strangers.shown,
        };
        tally.is_told(from, self.now)
    }
    /// Tells how much strangers have done that was not told, when it is time to.
    pub fn sum_up_strangers(&mut self) {
        if let Some(line) = self.strangers.claimed.sum_up(self.now) {
            self.log(Level::Security, "security", &line);
        }
        if let Some(line) = self.strangers.shown.sum_up(self.now) {
            self.log(Level::Security, "security", &line);
            self.log(Level::Notice, "security", &line);
        }
    }
    /// The time of this moment as security events have it: ISO 8601 with milliseconds, where the machine stands.
    pub(crate) fn event_time(&self) -> String {
        self.time_text(self.services.wall.now_micros())
    }
    fn time_text(&self, micros: i64) -> String {
        let wall = Wall {
            seconds: micros.div_euclid(1_000_000),
            micros: u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0),
        };
        let offset = self.services.wall.offset(wall.seconds, "");
        let mut time = String::new();
        strftime::format(wall, &offset, "%Y-%m-%dT%H:%M:%S.%3q%z", &mut time);
        time
    }
    /// Tells the security log and watchers; nothing is made when neither is there.
    pub fn tell_attempt(&mut self, attempt: impl FnOnce(&Self) -> Attempt) {
        self.tell_attempt_logged(self.services.log.enabled(Level::Security), attempt);
    }
    /// Tells watchers alone, where the log has another line of the same request: that of nobody takes no more lines, and no
    /// more time to write them, than that of a user.
    pub fn tell_attempt_aside(&mut self, attempt: impl FnOnce(&Self) -> Attempt) {
        self.tell_attempt_logged(false, attempt);
    }
    fn tell_attempt_logged(&mut self, logged: bool, attempt: impl FnOnce(&Self) -> Attempt) {
        if !logged && !self.watched {
            return;
        }
        let mut attempt = attempt(self);
        attempt.time = self.event_time();
        attempt.since_time = attempt.since.map(|micros| self.time_text(micros)).unwrap_or_default();
        let Attempt { account, session, challenge, response, request, .. } = &mut attempt;
        for text in [account, session, challenge, response, request] {
            *text = shown(text);
        }
        if logged {
            let mut line = format!("SecurityEvent=\"{}\"", attempt.event);
            for (name, value) in attempt.fields() {
                line.push_str(&format!(",{name}=\"{value}\""));
            }
            self.log(Level::Security, module_of(attempt.service), &line);
        }
        self.notice(|_| Some(Notice::Security(Box::new(attempt))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_an_address_and_some_of_all_are_told_and_the_rest_is_summed_up() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let ip = |number: u32| IpAddr::from((0xcb00_7100 + number).to_be_bytes());
        for (case, addresses, each, told, summary) in [
            ("few of one", 1, TOLD_OF_ADDRESS, 10, None),
            (
                "many of one",
                1,
                1000,
                10,
                Some(
                    "990 further requests without a right password within 60 s were not \
                logged one by one, 990 of them from '203.0.113.0'",
                ),
            ),
            (
                "one of each of many",
                1000,
                1,
                300,
                Some(
                    "700 further requests without a right password within 60 s \
                were not logged one by one",
                ),
            ),
        ] {
            let mut tally = Tally::default();
            let mut count = 0;
            for number in (0..addresses).flat_map(|number| (0..each).map(move |_| number)) {
                count += u32::from(tally.is_told(ip(number), at(1)));
            }
            assert_eq!(count, told, "{case}");
            assert!(tally.told.len() <= TOLD_MAX as usize, "{case}: {}", tally.told.len());
            assert_eq!(tally.sum_up(at(60)), None, "{case}: not before the period is over");
            assert_eq!(tally.sum_up(at(61)).as_deref(), summary, "{case}");
            assert_eq!(tally.until, None, "{case}");
            assert!(tally.is_told(ip(0), at(62)), "{case}: the next period begins anew");
        }
        let mut tally = Tally::default();
        let told = (0..100)
            .filter(|n: &u128| tally.is_told(IpAddr::from((0x2001_0db8 << 96 | *n).to_be_bytes()), at(0)));
        assert_eq!(told.count(), 10, "a /64 of IPv6 is one address");
    }
}
