//! The password check. Unknown and wrong look alike: the same challenge, the same work.

use core::net::IpAddr;
use core::time::Duration;
use std::rc::Rc;

use ::sip::digest::{Algorithm, Credentials, Gate, NonceCounts, Verdict};
use ::sip::stack::Flow;
use ::sip::{HeaderName, Message};
use base::Instant;
use base::hash::Key;
use call::Bans;

use super::config::{Auth, Config, Endpoint};

/// How long a nonce is good for; a phone is challenged anew (`stale=true`) after that without asking its user.
const NONCE_LIFETIME: Duration = Duration::from_secs(60);
/// Nonces whose counts are remembered against replay, 28 bytes each: a thousand proofs a second before any is forgotten
/// in its lifetime, which costs a phone that comes again with it one more challenge.
const NONCES_REMEMBERED: usize = 64 * 1024;
/// Challenges of different realms or algorithms that strangers may get: more than a site has.
const FORMS_MAX: usize = 64;
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
        /// The `uri` of a proof that is right and for another request.
        astray: Option<String>,
    },
}

/// Longest user name that is kept account of, bytes.
const USER_BYTES_MAX: usize = 256;

/// Keys and memory of the gate.
pub(crate) struct Gatekeeper {
    gate: Gate,
    counts: NonceCounts,
    /// Auths of endpoints, one of each realm and set of algorithms: a name that nobody has is challenged like one of them,
    /// always the same.
    forms: Vec<Rc<Auth>>,
    names_key: Key,
}

impl Gatekeeper {
    /// `key` is secret randomness.
    pub(crate) fn new(key: [u8; 32]) -> Self {
        let names_key =
            Key::new(key.iter().fold(0x6e616d65, |seed: u128, byte| seed.rotate_left(8) ^ u128::from(*byte)));
        let counts = NonceCounts::new(NONCES_REMEMBERED);
        Self { gate: Gate::new(key, NONCE_LIFETIME), counts, forms: Vec::new(), names_key }
    }
    /// Takes the realms and algorithms by which endpoints are challenged.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.forms.clear();
        let first = |endpoint: &Rc<Endpoint>| config.auths.get(endpoint.auths.first()?);
        config.endpoints.values().filter_map(first).for_each(|auth| self.learn(auth));
    }
    /// The same of one that a database has.
    pub(crate) fn learn(&mut self, auth: &Rc<Auth>) {
        let same = |form: &Rc<Auth>| (&form.realm, &form.algorithms) == (&auth.realm, &auth.algorithms);
        if self.forms.len() < FORMS_MAX && !self.forms.iter().any(same) {
            self.forms.push(auth.clone());
        }
    }
    /// By what whoever is named in From is challenged when it is nobody.
    fn form_of(&self, message: &Message<'_>) -> Option<&Rc<Auth>> {
        let count = self.forms.len();
        if count < 2 {
            return self.forms.first();
        }
        let from = message.from();
        let user = from.as_ref().map(|from| from.uri.user_decoded()).unwrap_or_default();
        let at = self.names_key.digest(&[&user]) % count as u128;
        self.forms.get(usize::try_from(at).unwrap_or(0))
    }
    /// Whether this request came with a nonce that was sent to its source, so that it is there.
    pub(crate) fn is_there(&self, message: &Message<'_>, source: Flow) -> bool {
        let peer = octets(source.remote.ip().to_canonical());
        let given = message.headers(HeaderName::Authorization).take(CREDENTIALS_MAX);
        let mut given = given.filter_map(Credentials::parse);
        given.any(|credentials| self.gate.was_sent_to(credentials.nonce, &peer))
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
        let form = self.form_of(message).cloned();
        let auths = || endpoint.into_iter().flat_map(|e| &e.auths).filter_map(|name| config.auths.get(name));
        if endpoint.is_some_and(|endpoint| endpoint.auths.is_empty()) {
            return Admitted::Yes(None);
        }
        let ip = source.remote.ip().to_canonical();
        let peer = octets(ip);
        let (mut stale, mut guess, mut astray) = (false, None, None);
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
            let is_meant = credentials.is_for(message.request_uri_bytes(), message.method().as_bytes());
            match self.verify(config, auths(), &credentials, message, now) {
                // No guess: whoever made it knows the password. But it is for another request.
                Verdict::Authenticated | Verdict::Stale if !is_meant => {
                    astray = Some(String::from_utf8_lossy(credentials.uri).into_owned());
                }
                Verdict::Authenticated if self.counts.accept(&credentials) => {
                    return Admitted::Yes(Some(user));
                }
                Verdict::Authenticated | Verdict::Stale => stale = true,
                Verdict::Denied => guess = Some(user),
            }
        }
        let first = match endpoint {
            Some(_) => auths().next(),
            None => form.as_ref(),
        };
        let values = self.challenge(config, first, stale, &peer, now);
        Admitted::Challenge { values, guess, astray }
    }

    fn verify<'c>(
        &self,
        config: &Config,
        mut auths: impl Iterator<Item = &'c Rc<Auth>>,
        credentials: &Credentials<'_>,
        message: &Message<'_>,
        now: Instant,
    ) -> Verdict {
        let user = credentials.user();
        let method = message.method();
        let fitting = auths.find(|auth| {
            auth.username.as_bytes() == &*user && auth.algorithms.contains(&credentials.algorithm())
        });
        let realm = fitting.map_or(&*config.default_realm, |auth| realm_of(config, auth));
        let secret = fitting.and_then(|auth| auth.secret(credentials.algorithm()));
        self.gate.verify(credentials, method.as_bytes(), realm.as_bytes(), secret, now)
    }

    fn challenge(
        &self,
        config: &Config,
        first: Option<&Rc<Auth>>,
        stale: bool,
        peer: &[u8],
        now: Instant,
    ) -> Vec<String> {
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
