//! The client side: remembers challenges and answers them, strongest algorithm first, several realms at once.

use super::{Algorithm, Proof, Secret, fields};
use crate::header::HeaderName;
use crate::message::Message;
use crate::write::push_clean;

/// Challenges one request is answered for: one a realm on the way; more are left unanswered.
pub const MAX_CHALLENGES: usize = 8;

/// A user name and secret for a realm.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Realm this is for; `None` answers any.
    pub realm: Option<&'a [u8]>,
    /// User name.
    pub username: &'a [u8],
    /// Password or HA1.
    pub secret: Secret<'a>,
    /// Algorithms that may be answered; empty is all.
    pub algorithms: &'a [Algorithm],
}

impl Login<'_> {
    fn serves(&self, realm: &[u8], algorithm: Algorithm) -> bool {
        self.realm.is_none_or(|own| own == realm)
            && (self.algorithms.is_empty() || self.algorithms.contains(&algorithm))
            && match self.secret {
                Secret::Password(_) => true,
                Secret::Ha1(own, _) => own == algorithm,
            }
    }
}

/// What to do after a 401 or 407.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Send the request again with [`Authenticator::credentials`].
    Retry,
    /// No login fits, or those that fit were refused.
    GiveUp,
}

#[derive(Debug)]
struct Saved {
    proxy: bool,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    algorithm: Algorithm,
    session: bool,
    qop: bool,
    /// Times this nonce was used.
    count: u32,
}

/// The challenges one peer has made and how often each nonce was used; kept as long as a dialog or registration.
#[derive(Debug, Default)]
pub struct Authenticator {
    saved: Vec<Saved>,
}

/// A challenge as it came.
struct Challenge<'a> {
    realm: &'a [u8],
    nonce: &'a [u8],
    opaque: Option<&'a [u8]>,
    algorithm: Algorithm,
    session: bool,
    qop: bool,
    stale: bool,
}

impl<'a> Challenge<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let (mut realm, mut nonce, mut opaque, mut stale) = (None, None, None, false);
        let (mut algorithm, mut qop) = (Some((Algorithm::Md5, false)), None);
        for (name, value) in fields(value)? {
            match name {
                _ if name.eq_ignore_ascii_case(b"realm") => realm = Some(value),
                _ if name.eq_ignore_ascii_case(b"nonce") => nonce = Some(value),
                _ if name.eq_ignore_ascii_case(b"opaque") => opaque = Some(value),
                _ if name.eq_ignore_ascii_case(b"algorithm") => algorithm = Algorithm::parse(value),
                _ if name.eq_ignore_ascii_case(b"stale") => stale = value.eq_ignore_ascii_case(b"true"),
                _ if name.eq_ignore_ascii_case(b"qop") => qop = Some(value),
                _ => {}
            }
        }
        let (algorithm, session) = algorithm?;
        let offers_auth =
            |qop: &[u8]| qop.split(|&b| b == b',').any(|q| q.trim_ascii().eq_ignore_ascii_case(b"auth"));
        if qop.is_some_and(|qop| !offers_auth(qop)) || (session && qop.is_none()) {
            return None;
        }
        Some(Self { realm: realm?, nonce: nonce?, opaque, algorithm, session, qop: qop.is_some(), stale })
    }
}

impl Authenticator {
    /// Knows no challenge yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Whether there is a challenge to answer, so that a request can carry credentials from the start.
    pub fn is_armed(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Takes the challenges of a 401 or 407. A challenge for a realm that was answered already means that the login is
    /// wrong, unless it says `stale` (RFC 7616 §3.3); so a wrong password is tried once. A peer may say
    /// `stale` for ever: the caller bounds how often it retries.
    pub fn challenged(&mut self, response: &Message<'_>, logins: &[Login<'_>]) -> Answer {
        let mut answer = Answer::GiveUp;
        for (proxy, name) in [(false, HeaderName::WwwAuthenticate), (true, HeaderName::ProxyAuthenticate)] {
            let mut fresh: Vec<Challenge<'_>> = Vec::new();
            for challenge in response.headers(name).take(4 * MAX_CHALLENGES).filter_map(Challenge::parse) {
                if !logins.iter().any(|login| login.serves(challenge.realm, challenge.algorithm)) {
                    continue;
                }
                match fresh.iter_mut().find(|known| known.realm == challenge.realm) {
                    Some(known) if known.algorithm >= challenge.algorithm => {}
                    Some(known) => *known = challenge,
                    None => fresh.push(challenge),
                }
            }
            for challenge in fresh {
                if self.keep(proxy, &challenge) {
                    answer = Answer::Retry;
                }
            }
        }
        answer
    }

    /// Whether the challenge can be answered with hope.
    fn keep(&mut self, proxy: bool, challenge: &Challenge<'_>) -> bool {
        let room = self.saved.len() < MAX_CHALLENGES;
        let known = self.saved.iter_mut().find(|s| s.proxy == proxy && s.realm == challenge.realm);
        let fresh = Saved {
            proxy,
            realm: challenge.realm.to_vec(),
            nonce: challenge.nonce.to_vec(),
            opaque: challenge.opaque.map(<[u8]>::to_vec),
            algorithm: challenge.algorithm,
            session: challenge.session,
            qop: challenge.qop,
            count: 0,
        };
        match known {
            Some(saved) => {
                // A nonce that served before may simply have run out without the server saying so.
                let hope = challenge.stale || saved.count != 1;
                *saved = fresh;
                hope
            }
            None if room => {
                self.saved.push(fresh);
                true
            }
            None => false,
        }
    }

    /// Hands the credentials for a request of this method and Request-URI to `write`, one field a challenge.
    /// `cnonce` is fresh randomness in printable form.
    pub fn credentials(
        &mut self,
        method: &[u8],
        uri: &[u8],
        cnonce: &[u8],
        logins: &[Login<'_>],
        mut write: impl FnMut(HeaderName<'static>, &[u8]),
    ) {
        let mut value = Vec::with_capacity(512);
        for saved in &mut self.saved {
            let Some(login) = logins.iter().find(|l| l.serves(&saved.realm, saved.algorithm)) else {
                continue;
            };
            let username = escaped(login.username);
            let Some(ha1) = login.secret.ha1(saved.algorithm, &username, &saved.realm) else { continue };
            saved.count = saved.count.saturating_add(1);
            let nc = format!("{:08x}", saved.count).into_bytes();
            let proof = Proof {
                algorithm: saved.algorithm,
                session: saved.session,
                nonce: &saved.nonce,
                method,
                uri,
                qop: saved.qop.then_some((cnonce, &nc)),
            };
            let response = proof.response(&ha1);
            value.clear();
            value.extend_from_slice(b"Digest ");
            let mut field = |name: &str, quoted: bool, text: &[u8]| {
                if !value.ends_with(b" ") {
                    value.push(b',');
                }
                value.extend_from_slice(name.as_bytes());
                value.extend_from_slice(if quoted { b"=\"" } else { b"=" });
                push_clean(&mut value, text);
                if quoted {
                    value.push(b'"');
                }
            };
            field("username", true, &username);
            field("realm", true, &saved.realm);
            field("nonce", true, &saved.nonce);
            field("uri", true, uri);
            field("response", true, response.as_bytes());
            let session = if saved.session { "-sess" } else { "" };
            field("algorithm", false, format!("{}{session}", saved.algorithm.as_str()).as_bytes());
            if saved.qop {
                field("cnonce", true, cnonce);
                field("qop", false, b"auth");
                field("nc", false, &nc);
            }
            if let Some(opaque) = &saved.opaque {
                field("opaque", true, opaque);
            }
            let name = if saved.proxy { HeaderName::ProxyAuthorization } else { HeaderName::Authorization };
            write(name, &value);
        }
    }
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Index;

    const LOGIN: Login<'static> =
        Login { realm: None, username: b"bob", secret: Secret::Password(b"zanzibar"), algorithms: &[] };

    fn challenged(auth: &mut Authenticator, headers: &str, logins: &[Login<'_>]) -> Answer {
        let text = format!("SIP/2.0 401 Unauthorized\r\n{headers}\r\n");
        let mut index = Index::new();
        auth.challenged(&Message::parse(text.as_bytes(), &mut index).unwrap(), logins)
    }
    fn sent(auth: &mut Authenticator, logins: &[Login<'_>]) -> Vec<String> {
        let mut all = Vec::new();
        auth.credentials(b"INVITE", b"sip:x@y", b"0a4f113b", logins, |name, value| {
            all.push(format!("{name}: {}", value.escape_ascii()).replace("\\\"", "\""));
        });
        all
    }

    #[test]
    fn the_strongest_challenge_of_each_realm_is_answered_and_counted() {
        let mut auth = Authenticator::new();
        let headers = "WWW-Authenticate: Digest realm=\"a\", nonce=\"1\", qop=\"auth-int, auth\"\r\n\
            WWW-Authenticate: Digest realm=\"a\", nonce=\"2\", qop=\"auth\", algorithm=SHA-256, opaque=\"o\"\r\n\
            WWW-Authenticate: Digest realm=\"a\", nonce=\"3\", algorithm=SHA-1\r\n\
            Proxy-Authenticate: Digest realm=\"p\",nonce=\"4\"\r\n\
            Proxy-Authenticate: Digest realm=\"q\",nonce=\"5\",qop=\"auth-int\"\r\n";
        assert_eq!(challenged(&mut auth, headers, &[LOGIN]), Answer::Retry);
        for count in 1..3 {
            let sent = sent(&mut auth, &[LOGIN]);
            assert_eq!(sent.len(), 2, "{sent:?}");
            assert!(sent[0].starts_with(
                "Authorization: Digest username=\"bob\",realm=\"a\",nonce=\"2\",uri=\"sip:x@y\""
            ));
            assert!(sent[0].contains(&format!(
                "algorithm=SHA-256,cnonce=\"0a4f113b\",qop=auth,nc=0000000{count},opaque=\"o\""
            )));
            assert!(sent[1].starts_with("Proxy-Authorization: ") && !sent[1].contains("qop"), "{sent:?}");
        }
    }

    #[test]
    fn a_wrong_password_is_tried_once_and_a_stale_nonce_again() {
        let mut auth = Authenticator::new();
        let challenge = |nonce: u32, more: &str| {
            format!("WWW-Authenticate: Digest realm=\"a\",nonce=\"{nonce}\"{more}\r\n")
        };
        assert_eq!(challenged(&mut auth, &challenge(1, ""), &[LOGIN]), Answer::Retry);
        sent(&mut auth, &[LOGIN]);
        assert_eq!(challenged(&mut auth, &challenge(2, ",stale=TRUE"), &[LOGIN]), Answer::Retry);
        sent(&mut auth, &[LOGIN]);
        assert_eq!(challenged(&mut auth, &challenge(3, ""), &[LOGIN]), Answer::GiveUp);
    }

    #[test]
    fn a_login_for_another_realm_or_algorithm_is_not_shown() {
        let elsewhere = Login { realm: Some(b"trunk"), ..LOGIN };
        let headers = "WWW-Authenticate: Digest realm=\"a\",nonce=\"1\"\r\n";
        let mut auth = Authenticator::new();
        assert_eq!(challenged(&mut auth, headers, &[elsewhere]), Answer::GiveUp);
        assert_eq!(sent(&mut auth, &[elsewhere]), Vec::<String>::new());
        let sha = Secret::Ha1(Algorithm::Sha256, Algorithm::Sha256.ha1(b"bob", b"a", b"x"));
        assert_eq!(challenged(&mut auth, headers, &[Login { secret: sha, ..LOGIN }]), Answer::GiveUp);
        let strong = Login { algorithms: &[Algorithm::Sha256], ..LOGIN };
        assert_eq!(challenged(&mut auth, headers, &[strong]), Answer::GiveUp, "MD5 is not to be answered");
    }

    #[test]
    fn a_hostile_realm_cannot_add_a_header() {
        let mut auth = Authenticator::new();
        let headers = "WWW-Authenticate: Digest realm=\"a\r\n b\", nonce=\"1\r\n 2\"\r\n";
        assert_eq!(challenged(&mut auth, headers, &[LOGIN]), Answer::Retry);
        assert!(!sent(&mut auth, &[LOGIN]).concat().contains("\\r"));
    }
}
