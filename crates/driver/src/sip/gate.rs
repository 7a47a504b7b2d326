//! The password check. Unknown and wrong look alike: the same challenge, the same work.

use core::net::IpAddr;
use core::time::Duration;
use std::rc::Rc;

use ::sip::digest::{Algorithm, Credentials, Gate, NonceCounts, Verdict};
use ::sip::stack::Flow;
use ::sip::{HeaderName, Message};
use base::Instant;
use call::Bans;

use super::config::{Auth, Config, Endpoint};

/// How long a nonce is good for; a phone is challenged anew (`stale=true`) after that without asking its user.
const NONCE_LIFETIME: Duration = Duration::from_secs(60);
/// Nonces whose counts are remembered against replay, 16 bytes each.
const NONCES_REMEMBERED: usize = 16 * 1024;
/// Credentials of one request that are looked at.
const CREDENTIALS_MAX: usize = 4;

/// What became of a request at the gate.
pub(crate) enum Admitted {
    /// It may pass; the user name that was proved, when one was asked for.
    Yes(Option<String>),
    /// It gets this challenge.
    Challenge {
        /// Values of WWW-Authenticate.
        values: Vec<String>,
        /// Whose password was wrong, when whoever gave it is proved to be where the request came from.
        guess: Option<String>,
    },
}

/// Longest user name that is kept account of, bytes.
const USER_BYTES_MAX: usize = 256;

/// Keys and memory of the gate.
pub(crate) struct Gatekeeper {
    gate: Gate,
    counts: NonceCounts,
}

impl Gatekeeper {
    /// `key` is secret randomness.
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { gate: Gate::new(key, NONCE_LIFETIME), counts: NonceCounts::new(NONCES_REMEMBERED) }
    }

    /// Checks a request of `endpoint`; `None` is somebody unknown, who is treated like a known one without the password.
    pub(crate) fn check(
        &mut self,
        config: &Config,
        endpoint: Option<&Endpoint>,
        message: &Message<'_>,
        source: Flow,
        bans: &Bans,
        now: Instant,
    ) -> Admitted {
        let auths: Vec<Rc<Auth>> = endpoint
            .into_iter()
            .flat_map(|e| &e.auths)
            .filter_map(|name| config.auths.get(name).cloned())
            .collect();
        if endpoint.is_some_and(|endpoint| endpoint.auths.is_empty()) {
            return Admitted::Yes(None);
        }
        let ip = source.remote.ip().to_canonical();
        let peer = octets(ip);
        let (mut stale, mut guess) = (false, None);
        for value in message.headers(HeaderName::Authorization).take(CREDENTIALS_MAX) {
            let Some(credentials) = Credentials::parse(value) else { continue };
            // A datagram whose nonce was not sent to where it says it comes from proves nothing, neither a password nor an
            // address: it gets a nonce of its own. Otherwise whoever writes false addresses could guess without end, or
            // have others banned.
            if !source.protocol.is_reliable() && !self.gate.was_sent_to(credentials.nonce, &peer) {
                stale = true;
                continue;
            }
            let user = credentials.user();
            let user = String::from_utf8_lossy(user.get(..USER_BYTES_MAX).unwrap_or(&user)).into_owned();
            if bans.is_user_banned(ip, &user, now) {
                guess = Some(user);
                continue;
            }
            match self.verify(config, &auths, &credentials, message, now) {
                Verdict::Authenticated if self.counts.accept(&credentials) => {
                    return Admitted::Yes(Some(user));
                }
                Verdict::Authenticated | Verdict::Stale => stale = true,
                Verdict::Denied => guess = Some(user),
            }
        }
        Admitted::Challenge { values: self.challenge(config, &auths, stale, &peer, now), guess }
    }

    fn verify(
        &self,
        config: &Config,
        auths: &[Rc<Auth>],
        credentials: &Credentials<'_>,
        message: &Message<'_>,
        now: Instant,
    ) -> Verdict {
        let user = credentials.user();
        let method = message.method();
        let fitting = auths.iter().find(|auth| {
            auth.username.as_bytes() == &*user && auth.algorithms.contains(&credentials.algorithm())
        });
        let realm = fitting.map_or(&*config.default_realm, |auth| realm_of(config, auth));
        let secret = fitting.and_then(|auth| auth.secret(credentials.algorithm()));
        self.gate.verify(credentials, method.as_bytes(), realm.as_bytes(), secret, now)
    }

    fn challenge(
        &self,
        config: &Config,
        auths: &[Rc<Auth>],
        stale: bool,
        peer: &[u8],
        now: Instant,
    ) -> Vec<String> {
        let first = auths.first();
        let realm = first.map_or(&*config.default_realm, |auth| realm_of(config, auth));
        let algorithms = first.map_or(&config.default_algorithms, |auth| &auth.algorithms);
        let algorithms = if algorithms.is_empty() { &[Algorithm::Md5][..] } else { algorithms };
        algorithms
            .iter()
            .map(|algorithm| {
                let mut value = Vec::with_capacity(160);
                self.gate.challenge(now, realm.as_bytes(), *algorithm, stale, peer, &mut value);
                String::from_utf8(value).unwrap_or_default()
            })
            .collect()
    }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn realm_of<'a>(config: &'a Config, auth: &'a Auth) -> &'a str {
    if auth.realm.is_empty() { &config.default_realm } else { &auth.realm }
}
