//! Who tried to get in: a line of the security log and a notice for each attempt.

use core::net::SocketAddr;

use dialplan::{Wall, strftime};

use crate::{Core, Level, Notice};

/// Characters of a name from outside that are shown.
const SHOWN_CHARS_MAX: usize = 64;

/// Somebody who tried to get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// `SuccessfulAuth`, `ChallengeSent`, `ChallengeResponseFailed`, `InvalidPassword`, `InvalidAccountID`, `FailedACL`,
    /// `AddressBanned`, `AddressUnbanned`.
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
    /// What was asked of it: the nonce; empty without one.
    pub challenge: String,
    /// When: ISO 8601 with milliseconds; filled in when it is told.
    pub time: String,
}

impl Attempt {
    /// Whether nothing is wrong with it.
    pub fn is_good(&self) -> bool {
        matches!(self.event, "SuccessfulAuth" | "ChallengeSent" | "AddressUnbanned")
    }
    /// Its fields in the order and with the names of the field's events, those that are there.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let severity = if self.is_good() { "Informational" } else { "Error" };
        let password = if self.event == "SuccessfulAuth" { "1" } else { "" };
        [
            ("EventTV", self.time.as_str()),
            ("Severity", severity),
            ("Service", self.service),
            ("EventVersion", "1"),
            ("AccountID", &self.account),
            ("SessionID", &self.session),
            ("LocalAddress", &self.local),
            ("RemoteAddress", &self.remote),
            ("Challenge", &self.challenge),
            ("UsingPassword", password),
        ]
        .into_iter()
        .filter(|(name, value)| !value.is_empty() || matches!(*name, "AccountID" | "SessionID"))
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

impl Core {
    /// The time of this moment as security events have it: ISO 8601 with milliseconds, where the machine stands.
    pub(crate) fn event_time(&self) -> String {
        let micros = self.services.wall.now_micros();
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
        let logged = self.services.log.enabled(Level::Security);
        if !logged && !self.watched {
            return;
        }
        let mut attempt = attempt(self);
        attempt.time = self.event_time();
        for text in [&mut attempt.account, &mut attempt.session, &mut attempt.challenge] {
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
