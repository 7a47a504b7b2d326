//! The server side: challenges with sealed nonces, and checking what comes back.

use core::time::Duration;

use base::Instant;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::{Algorithm, Hex, Proof, Secret, fields};
use crate::header::lex::trim;
use crate::sdp::crypto as base64;
use crate::uri::{Scheme, Uri, parse_ip};
use crate::write::push_clean;

/// Octets of the time stamp in a nonce.
const STAMP: usize = 8;
/// Octets by which a nonce shows where it was sent, of HMAC-SHA-256.
const PLACE: usize = 7;
/// Octets of the seal in a nonce, of HMAC-SHA-256: 96 bits, as long as whoever wants to guess one has a minute.
const SEAL: usize = 12;
/// Octets of a nonce: three parts. As short as it is safe to be, so that a whole challenge fits into what may be sent to
/// strangers; and a multiple of three, so that its text is its only one.
const NONCE: usize = STAMP + PLACE + SEAL;
/// Letters of a nonce, in base64.
const NONCE_LETTERS: usize = NONCE / 3 * 4;
/// Letters of `opaque`.
const OPAQUE_LETTERS: usize = 8;

/// Authorization or Proxy-Authorization credentials; text stays as written, escapes included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// User name as hashed.
    pub username: &'a [u8],
    /// Realm.
    pub realm: &'a [u8],
    /// Nonce.
    pub nonce: &'a [u8],
    /// The `uri` that was hashed, which should name what the Request-URI names.
    pub uri: &'a [u8],
    response: &'a [u8],
    algorithm: Option<(Algorithm, bool)>,
    cnonce: &'a [u8],
    nc: &'a [u8],
    qop: Option<&'a [u8]>,
}

impl<'a> Credentials<'a> {
    /// Parses the value of one Authorization or Proxy-Authorization field; `None` unless it is a complete digest.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let mut found = Self { algorithm: Some((Algorithm::Md5, false)), ..Self::default() };
        for (name, value) in fields(value)? {
            match name {
                _ if name.eq_ignore_ascii_case(b"username") => found.username = value,
                _ if name.eq_ignore_ascii_case(b"realm") => found.realm = value,
                _ if name.eq_ignore_ascii_case(b"nonce") => found.nonce = value,
                _ if name.eq_ignore_ascii_case(b"uri") => found.uri = value,
                _ if name.eq_ignore_ascii_case(b"response") => found.response = value,
                _ if name.eq_ignore_ascii_case(b"algorithm") => found.algorithm = Algorithm::parse(value),
                _ if name.eq_ignore_ascii_case(b"cnonce") => found.cnonce = value,
                _ if name.eq_ignore_ascii_case(b"nc") => found.nc = value,
                _ if name.eq_ignore_ascii_case(b"qop") => found.qop = Some(value),
                _ => {}
            }
        }
        let complete = [found.username, found.nonce, found.uri, found.response].iter().all(|v| !v.is_empty());
        let qop_fits = match found.qop {
            Some(qop) => {
                qop.eq_ignore_ascii_case(b"auth") && !found.cnonce.is_empty() && found.nonce_count().is_some()
            }
            None => true,
        };
        (complete && qop_fits && found.algorithm.is_some()).then_some(found)
    }
    /// User name with its escapes undone, for the look-up.
    pub fn user(&self) -> std::borrow::Cow<'a, [u8]> {
        if !self.username.contains(&b'\\') {
            return self.username.into();
        }
        let quoted = [b"\"", self.username, b"\""].concat();
        crate::header::unquote(&quoted).into_owned().into()
    }
    /// Whether the `uri` that was hashed is that of the request, so that the proof is good for nothing else (RFC 7616
    /// §3.4.6). Parameters, passwords and letter case of the host are passed over, so is a port that one side leaves
    /// out and a scheme that is missing: phones and proxies differ in them. Of a registrar only the host counts, and of
    /// a client that hashes only the host (SIPp does), too.
    pub fn is_for(&self, request_uri: &[u8], method: &[u8]) -> bool {
        if self.uri == request_uri {
            return true;
        }
        let bare = trim(self.uri);
        let bare = bare.strip_prefix(b"<").and_then(|uri| uri.strip_suffix(b">")).unwrap_or(bare);
        let mended;
        let said = match Uri::parse(bare) {
            Some(uri) if uri.is_sip() || uri.scheme == Scheme::Tel => Some(uri),
            // `pbx:5060` reads as a scheme, too.
            Some(_) | None => {
                mended = as_uri(bare);
                Uri::parse(&mended)
            }
        };
        let (Some(said), Some(asked)) = (said, Uri::parse(request_uri)) else { return false };
        if !asked.is_sip() || !said.is_sip() {
            return said.matches(&asked);
        }
        let ports = said.port.zip(asked.port).is_none_or(|(said, asked)| said == asked);
        let hosts = same_host(said.host.as_bytes(), asked.host.as_bytes()) && ports;
        hosts
            && (method == b"REGISTER"
                || said.user_without_options().is_empty()
                || crate::uri::percent_decode(said.user_without_options())
                    == crate::uri::percent_decode(asked.user_without_options()))
    }
    /// The digest that answers the nonce, as it was written.
    pub const fn response(&self) -> &'a [u8] {
        self.response
    }
    /// Algorithm of the response.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm.map_or(Algorithm::Md5, |(algorithm, _)| algorithm)
    }
    /// `nc`, eight hex digits.
    pub fn nonce_count(&self) -> Option<u32> {
        let text = core::str::from_utf8(self.nc).ok().filter(|nc| nc.len() == 8)?;
        u32::from_str_radix(text, 16).ok()
    }
}

/// What became of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// User and secret fit, and the nonce is ours and young.
    Authenticated,
    /// The secret fits but the nonce is too old, used up, or from before a restart: challenge again with `stale=true`.
    Stale,
    /// Anything else; the answer is the same whether the user exists or not.
    Denied,
}

/// Makes challenges and checks answers, without any state of its own.
#[derive(Clone)]
pub struct Gate {
    key: [u8; 32],
    lifetime: Duration,
}

impl core::fmt::Debug for Gate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Gate").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

impl Gate {
    /// `key` is 32 random bytes that nobody else knows; a nonce is good for `lifetime`.
    pub fn new(key: [u8; 32], lifetime: Duration) -> Self {
        Self { key, lifetime }
    }

    fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        // A key of any length is accepted by HMAC; 32 bytes cannot fail.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return self.key };
        mac.update(purpose);
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    fn place(&self, stamp: &[u8], peer: &[u8]) -> [u8; PLACE] {
        self.mac(b"place", &[stamp, peer]).first_chunk().copied().unwrap_or_default()
    }

    fn seal(&self, head: &[u8], realm: &[u8]) -> [u8; SEAL] {
        self.mac(b"nonce", &[head, realm]).first_chunk().copied().unwrap_or_default()
    }

    /// Appends the value of a WWW-Authenticate or Proxy-Authenticate field to `out`. One field an algorithm, strongest first.
    /// Who answers with its nonce has received what was sent to `peer`; see [`Gate::was_sent_to`].
    pub fn challenge(
        &self,
        now: Instant,
        realm: &[u8],
        algorithm: Algorithm,
        stale: bool,
        peer: &[u8],
        out: &mut Vec<u8>,
    ) {
        let stamp: [u8; STAMP] = now.as_nanos().to_be_bytes();
        let head = [&stamp[..], &self.place(&stamp, peer)].concat();
        let mut nonce = Vec::with_capacity(NONCE_LETTERS);
        base64::encode(&[&head[..], &self.seal(&head, realm)].concat(), &mut nonce);
        out.extend_from_slice(b"Digest realm=\"");
        push_clean(out, realm);
        out.extend_from_slice(b"\",nonce=\"");
        out.extend_from_slice(&nonce);
        // Nothing is remembered by it, and clients return it; some expect one.
        out.extend_from_slice(b"\",opaque=\"");
        let tail = nonce.len().saturating_sub(OPAQUE_LETTERS);
        out.extend_from_slice(nonce.get(tail..).unwrap_or_default());
        out.extend_from_slice(b"\",algorithm=");
        out.extend_from_slice(algorithm.as_str().as_bytes());
        out.extend_from_slice(b",qop=\"auth\"");
        if stale {
            out.extend_from_slice(b",stale=true");
        }
    }

    /// When a nonce says that it was made; true of those alone that are known to be genuine.
    pub fn stamp(nonce: &[u8]) -> Option<Instant> {
        opened(nonce)?.first_chunk::<STAMP>().map(|stamp| Instant::from_nanos(u64::from_be_bytes(*stamp)))
    }

    /// Whether the nonce was made here for this realm, and if so when.
    fn made_at(&self, nonce: &[u8], realm: &[u8]) -> Option<Instant> {
        let octets = opened(nonce)?;
        let (head, seal) = octets.split_at_checked(STAMP + PLACE)?;
        let genuine: bool = self.seal(head, realm).ct_eq(seal).into();
        Self::stamp(nonce).filter(|_| genuine)
    }

    /// Whether a nonce was sent to this peer, however long ago: who answers with it is there, and has not just written
    /// another address on its datagrams.
    pub fn was_sent_to(&self, nonce: &[u8], peer: &[u8]) -> bool {
        let Some(octets) = opened(nonce) else { return false };
        let (stamp, rest) = octets.split_at(STAMP);
        self.place(stamp, peer).ct_eq(rest.get(..PLACE).unwrap_or_default()).into()
    }

    /// Whether `credentials` prove knowledge of `secret` for a request of this method. `None` for a user that does not
    /// exist takes the same steps with a secret nobody knows, so that neither time nor answer tells.
    pub fn verify(
        &self,
        credentials: &Credentials<'_>,
        method: &[u8],
        realm: &[u8],
        secret: Option<Secret<'_>>,
        now: Instant,
    ) -> Verdict {
        let Some((algorithm, session)) = credentials.algorithm else { return Verdict::Denied };
        let fake = Hex::of(&self.mac(b"nobody", &[credentials.username]));
        let fake_password = fake.as_bytes().get(..16).unwrap_or_default();
        // One HA1 is always computed, of the password or of what stands for it.
        let (password, stored) = match secret {
            Some(Secret::Password(password)) => (password, None),
            Some(stored @ Secret::Ha1(..)) => (fake_password, Some(stored)),
            None => (fake_password, None),
        };
        let computed = algorithm.ha1(credentials.username, realm, password);
        let stored_ha1 = stored.and_then(|secret| secret.ha1(algorithm, credentials.username, realm));
        let known = matches!(secret, Some(Secret::Password(_))) || stored_ha1.is_some();
        let ha1 = stored_ha1.unwrap_or(computed);
        let proof = Proof {
            algorithm,
            session,
            nonce: credentials.nonce,
            method,
            uri: credentials.uri,
            qop: credentials.qop.map(|_| (credentials.cnonce, credentials.nc)),
        };
        let expected = proof.response(&ha1);
        let given = lower_case(credentials.response);
        let made_at = self.made_at(credentials.nonce, realm);
        let right =
            expected.as_bytes().ct_eq(given.get(..credentials.response.len().min(64)).unwrap_or_default())
                & Choice::from(u8::from(credentials.response.len() <= 64))
                & credentials.realm.ct_eq(realm)
                & Choice::from(u8::from(known));
        let young = made_at.is_some_and(|made| now.since(made) <= self.lifetime && made <= now);
        let outcome = u8::conditional_select(&0, &(1 + u8::from(young)), right);
        match outcome {
            0 => Verdict::Denied,
            1 => Verdict::Stale,
            _ => Verdict::Authenticated,
        }
    }
}

/// What a nonce consists of, if it has the form of ours.
fn opened(nonce: &[u8]) -> Option<[u8; NONCE]> {
    let mut octets = [0; NONCE];
    let whole = nonce.len() == NONCE_LETTERS && base64::decode(nonce, &mut octets) == Some(NONCE);
    whole.then_some(octets)
}

/// The response digits in lower case; what is longer than any digest is refused by its length.
fn lower_case(response: &[u8]) -> [u8; 64] {
    let mut digits = [0; 64];
    for (to, from) in digits.iter_mut().zip(response) {
        *to = from.to_ascii_lowercase();
    }
    digits
}

/// A URI that lacks its scheme, or the brackets around its IPv6 address (SIPp leaves them out), with what it lacks.
fn as_uri(bare: &[u8]) -> Vec<u8> {
    let place = bare.strip_prefix(b"sip:").unwrap_or(bare);
    let colon = place.iter().rposition(|byte| *byte == b':').unwrap_or(place.len());
    let (host, port) = place.split_at(colon);
    match parse_ip(host) {
        Some(core::net::IpAddr::V6(_)) if !host.starts_with(b"[") => [b"sip:[", host, b"]", port].concat(),
        _ => [b"sip:", bare].concat(),
    }
}

/// Whether two hosts are the same: by address, else by name without case.
fn same_host(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (one.strip_suffix(b".").unwrap_or(one), other.strip_suffix(b".").unwrap_or(other));
    one.eq_ignore_ascii_case(other)
        || parse_ip(one)
            .zip(parse_ip(other))
            .is_some_and(|(one, other)| one.to_canonical() == other.to_canonical())
}

/// Nonces of one row of [`NonceCounts`]: enough that a young one is hardly ever forgotten.
const ROW: usize = 4;

/// Remembers which counts of which nonces were accepted, so that a recorded request is not accepted again. Without qop a
/// nonce has no count and is good once.
///
/// Fed only after [`Verdict::Authenticated`], so strangers cannot fill it. Its memory is bounded, and what it forgets is
/// refused: a row that is full forgets its oldest nonce, and from then on whatever was made before that one counts as used.
/// A phone with such a nonce is challenged once more; nobody gets in by it.
#[derive(Debug)]
pub struct NonceCounts {
    rows: Box<[Row]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    seen: [Option<Seen>; ROW],
    /// When the youngest was made of those that are forgotten.
    forgotten: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    nonce: u64,
    made: Instant,
    highest: u32,
    /// Bit `n` set: count `highest - n` was seen. Requests overtake each other over UDP.
    counts: u32,
}

impl NonceCounts {
    /// A table of `nonces` nonces, 28 bytes each; one row at least.
    pub fn new(nonces: usize) -> Self {
        Self { rows: vec![Row::default(); nonces.div_ceil(ROW).max(1)].into() }
    }
    /// Whether this count of this nonce is new; notes it.
    pub fn accept(&mut self, credentials: &Credentials<'_>) -> bool {
        let count = match credentials.qop {
            // Nothing comes after it.
            None => u32::MAX,
            Some(_) => match credentials.nonce_count() {
                Some(count) if count < u32::MAX => count,
                Some(_) | None => return false,
            },
        };
        let Some(made) = Gate::stamp(credentials.nonce) else { return false };
        // The seal is the tail of the nonce and uniformly distributed. Users behind one router may have the same nonce.
        let octets = opened(credentials.nonce);
        let Some(seal) = octets.as_ref().and_then(|octets| octets.last_chunk().copied()) else {
            return false;
        };
        let seal = u64::from_be_bytes(seal);
        let nonce = credentials
            .username
            .iter()
            .fold(seal, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
        let at = usize::try_from(nonce % self.rows.len() as u64).unwrap_or(0);
        self.rows.get_mut(at).is_some_and(|row| row.accept(nonce, made, count))
    }
}

/// Of the hash FNV-1a: users of one nonce are few, and those that meet are challenged once more.
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Row {
    fn accept(&mut self, nonce: u64, made: Instant, count: u32) -> bool {
        if let Some(seen) = self.seen.iter_mut().flatten().find(|seen| seen.nonce == nonce) {
            return seen.accept(count);
        }
        if self.forgotten.is_some_and(|forgotten| made <= forgotten) {
            return false;
        }
        let mut new = Some(Seen { nonce, made, highest: count, counts: 1 });
        // The oldest is in the place that the new one takes, or is the new one itself.
        for place in &mut self.seen {
            if place.is_none() {
                *place = new;
                return true;
            }
            if place.as_ref().map(|seen| seen.made) > new.as_ref().map(|seen| seen.made) {
                continue;
            }
            core::mem::swap(place, &mut new);
        }
        self.forgotten = self.forgotten.max(new.map(|oldest| oldest.made));
        true
    }
}

impl Seen {
    fn accept(&mut self, count: u32) -> bool {
        if self.highest == u32::MAX || count == u32::MAX {
            return false;
        }
        if count > self.highest {
            self.counts = self.counts.checked_shl(count - self.highest).unwrap_or(0) | 1;
            self.highest = count;
            return true;
        }
        let Some(bit) = 1_u32.checked_shl(self.highest - count) else { return false };
        let new = self.counts & bit == 0;
        self.counts |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Authenticator, Login};
    use crate::message::{Index, Message};

    const REALM: &[u8] = b"asterisk";

    fn gate() -> Gate {
        Gate::new([7; 32], Duration::from_secs(300))
    }
    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1000 + seconds)
    }

    /// What a phone with this password answers to the gate's challenge.
    fn answer(gate: &Gate, algorithm: Algorithm, password: &[u8], qop: bool) -> Vec<u8> {
        let mut challenge = Vec::new();
        gate.challenge(at(0), REALM, algorithm, false, b"192.0.2.1", &mut challenge);
        let mut challenge = String::from_utf8(challenge).unwrap();
        if !qop {
            challenge = challenge.replace(",qop=\"auth\"", "");
        }
        let response = format!("SIP/2.0 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\n\r\n");
        let mut index = Index::new();
        let response = Message::parse(response.as_bytes(), &mut index).unwrap();
        let mut phone = Authenticator::new();
        let login =
            Login { realm: None, username: b"alice", secret: Secret::Password(password), algorithms: &[] };
        assert_eq!(phone.challenged(&response, &[login]), crate::digest::Answer::Retry);
        let mut value = Vec::new();
        phone.credentials(b"REGISTER", b"sip:pbx", b"c0ffee", &[login], |_, text| value = text.to_vec());
        value
    }

    #[test]
    fn every_algorithm_and_the_form_without_qop_authenticate() {
        for algorithm in [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512_256] {
            for qop in [true, false] {
                let value = answer(&gate(), algorithm, b"secret", qop);
                let credentials = Credentials::parse(&value).unwrap();
                let check = |method: &[u8], secret, seconds| {
                    gate().verify(&credentials, method, REALM, secret, at(seconds))
                };
                let ha1 = Secret::Ha1(algorithm, algorithm.ha1(b"alice", REALM, b"secret"));
                let password = Some(Secret::Password(b"secret"));
                assert_eq!(check(b"REGISTER", password, 1), Verdict::Authenticated, "{algorithm:?}");
                assert_eq!(check(b"REGISTER", Some(ha1), 1), Verdict::Authenticated, "{algorithm:?}");
                assert_eq!(check(b"REGISTER", password, 301), Verdict::Stale);
                assert_eq!(check(b"INVITE", password, 1), Verdict::Denied);
                assert_eq!(check(b"REGISTER", Some(Secret::Password(b"Secret")), 1), Verdict::Denied);
                assert_eq!(check(b"REGISTER", None, 1), Verdict::Denied);
                assert_eq!(
                    check(b"REGISTER", None, 301),
                    Verdict::Denied,
                    "a stranger learns nothing of nonces"
                );
                let other = Gate::new([8; 32], Duration::from_secs(300));
                assert_eq!(
                    other.verify(&credentials, b"REGISTER", REALM, password, at(1)),
                    Verdict::Stale,
                    "after a restart with another key phones try again"
                );
                let wrong_kind = if algorithm == Algorithm::Md5 { Algorithm::Sha256 } else { Algorithm::Md5 };
                let wrong_kind = Secret::Ha1(wrong_kind, wrong_kind.ha1(b"alice", REALM, b"secret"));
                assert_eq!(check(b"REGISTER", Some(wrong_kind), 1), Verdict::Denied);
            }
        }
    }

    #[test]
    fn a_nonce_shows_to_whom_it_was_sent_and_cannot_be_made_for_another() {
        let value = answer(&gate(), Algorithm::Md5, b"secret", true);
        let nonce = Credentials::parse(&value).unwrap().nonce;
        assert!(gate().was_sent_to(nonce, b"192.0.2.1"));
        assert!(!gate().was_sent_to(nonce, b"192.0.2.2"));
        assert!(!Gate::new([8; 32], Duration::from_secs(300)).was_sent_to(nonce, b"192.0.2.1"));
        for at in 0..(STAMP + PLACE) / 3 * 4 {
            let mut other = nonce.to_vec();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert!(!gate().was_sent_to(&other, b"192.0.2.1"), "digit {at}");
        }
        for length in [0, 1, 11, NONCE_LETTERS - 1] {
            assert!(!gate().was_sent_to(&nonce[..length], b"192.0.2.1"), "{length} digits");
        }
    }

    #[test]
    fn a_nonce_from_the_future_or_for_another_realm_is_stale() {
        let value = answer(&gate(), Algorithm::Sha256, b"secret", true);
        let credentials = Credentials::parse(&value).unwrap();
        let password = Some(Secret::Password(b"secret"));
        assert_eq!(gate().verify(&credentials, b"REGISTER", REALM, password, Instant::ZERO), Verdict::Stale);
        assert_eq!(gate().verify(&credentials, b"REGISTER", b"other", password, at(1)), Verdict::Denied);
    }

    /// A nonce of this age and seal, in the form of ours.
    fn nonce(made: u64, seal: u64) -> String {
        let mut octets = [0; NONCE];
        octets[..STAMP].copy_from_slice(&made.to_be_bytes());
        octets[NONCE - 8..].copy_from_slice(&seal.to_be_bytes());
        let mut text = Vec::new();
        base64::encode(&octets, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_count_is_accepted_once_and_may_arrive_out_of_order() {
        let mut counts = NonceCounts::new(64);
        let mut accept = |nonce: &str, nc: u32| {
            let text = format!(
                "Digest username=\"a\",realm=\"r\",nonce=\"{nonce}\",uri=\"sip:x\",response=\"00\",cnonce=\"c\",qop=auth,nc={nc:08x}"
            );
            counts.accept(&Credentials::parse(text.as_bytes()).unwrap())
        };
        let (one, two) = (&*nonce(0x0123_4567, 1), &*nonce(0x0123_4567, 2));
        for (nonce, nc, new) in [
            (one, 1, true),
            (one, 1, false),
            (one, 3, true),
            (one, 2, true),
            (one, 2, false),
            (two, 1, true),
            (one, 100, true),
            (one, 3, false),
            (one, 90, true),
            (two, 1, false),
        ] {
            assert_eq!(accept(nonce, nc), new, "{nonce} {nc}");
        }
    }

    #[test]
    fn what_a_full_memory_forgets_is_refused_and_what_has_no_count_is_good_once() {
        let accept = |counts: &mut NonceCounts, made: u64, seal: u64, count: &str| {
            let nonce = nonce(made, seal);
            let text = format!(
                "Digest username=\"a\",realm=\"r\",nonce=\"{nonce}\",uri=\"sip:x\",response=\"00\"{count}"
            );
            counts.accept(&Credentials::parse(text.as_bytes()).unwrap())
        };
        let first = ",cnonce=\"c\",qop=auth,nc=00000001";
        for (case, count) in [("a count", first), ("none", "")] {
            // One row, so that all meet.
            let mut counts = NonceCounts::new(1);
            assert!(accept(&mut counts, 100, 1, count), "{case}");
            assert!(!accept(&mut counts, 100, 1, count), "{case}: at once");
            for other in 0..1000 {
                assert!(accept(&mut counts, 101 + other, 2 + other, first), "{case}: others get in, {other}");
                assert!(!accept(&mut counts, 100, 1, count), "{case}: after {other} others");
            }
            assert!(
                !accept(&mut counts, 99, 7777, count),
                "{case}: what was made before is told to come anew"
            );
        }
        let mut counts = NonceCounts::new(64);
        assert!(accept(&mut counts, 100, 1, ""));
        assert!(!accept(&mut counts, 100, 1, first), "used without a count, and then with one");
        assert!(accept(&mut counts, 100, 2, first));
        assert!(!accept(&mut counts, 100, 2, ""), "used with a count, and then without");
    }

    #[test]
    fn rfc7616_3_4_6_a_proof_is_good_for_the_uri_that_it_names() {
        for (case, method, said, asked, good) in [
            ("the same", "INVITE", "sip:701@pbx", "sip:701@pbx", true),
            ("another number", "INVITE", "sip:701@pbx", "sip:700@pbx", false),
            ("another host", "INVITE", "sip:701@pbx", "sip:701@other", false),
            ("another port", "INVITE", "sip:701@pbx:5060", "sip:701@pbx:5070", false),
            ("a port on one side", "INVITE", "sip:701@pbx", "sip:701@pbx:5060", true),
            ("parameters on one side", "INVITE", "sip:701@pbx", "sip:701@pbx;transport=tcp;user=phone", true),
            ("letters of the host", "INVITE", "sip:701@PBX", "sip:701@pbx", true),
            ("letters of the user", "INVITE", "sip:Bob@pbx", "sip:bob@pbx", false),
            ("escapes", "INVITE", "sip:%37%30%31@pbx", "sip:701@pbx", true),
            ("angle brackets", "INVITE", "<sip:701@pbx>", "sip:701@pbx", true),
            ("no scheme", "INVITE", "701@pbx", "sip:701@pbx", true),
            ("sips", "INVITE", "sips:701@pbx", "sip:701@pbx", true),
            ("only the host, as SIPp says", "INVITE", "sip:pbx:5060", "sip:701@pbx:5060", true),
            ("only another host", "INVITE", "sip:other", "sip:701@pbx", false),
            ("an address written otherwise", "INVITE", "sip:1@[2001:db8::1]", "sip:1@[2001:DB8:0::1]", true),
            ("a star", "INVITE", "*", "sip:701@pbx", false),
            ("nothing", "INVITE", "", "sip:701@pbx", false),
            ("a registrar", "REGISTER", "sip:pbx", "sip:pbx:5060;transport=udp", true),
            ("a registrar with a user", "REGISTER", "sip:alice@pbx", "sip:pbx", true),
            ("a registrar without a scheme", "REGISTER", "pbx:5060", "sip:pbx", true),
            ("an address without brackets, as SIPp says", "REGISTER", "sip:::1:5060", "sip:[::1]:5060", true),
            ("another address without brackets", "REGISTER", "sip:::2:5060", "sip:[::1]:5060", false),
            ("its port is another", "REGISTER", "sip:::1:5061", "sip:[::1]:5060", false),
            ("another registrar", "REGISTER", "sip:other", "sip:pbx", false),
            ("a number of the telephone", "INVITE", "tel:+4930", "tel:+4930", true),
            ("another number of the telephone", "INVITE", "tel:+4930", "tel:+4931", false),
        ] {
            let text =
                format!("Digest username=\"a\",realm=\"r\",nonce=\"n\",uri=\"{said}\",response=\"00\"");
            let found = Credentials::parse(text.as_bytes());
            let is_for = found.is_some_and(|found| found.is_for(asked.as_bytes(), method.as_bytes()));
            assert_eq!(is_for, good, "{case}");
        }
    }

    #[test]
    fn incomplete_or_foreign_credentials_are_none() {
        let full = "Digest username=\"a\",realm=\"r\",nonce=\"n\",uri=\"sip:x\",response=\"00\"";
        assert!(Credentials::parse(full.as_bytes()).is_some());
        for text in [
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned(),
            "Digest".to_owned(),
            String::new(),
            full.replace("nonce=\"n\",", ""),
            format!("{full},qop=auth-int,nc=00000001,cnonce=\"x\""),
            format!("{full},qop=auth,nc=1,cnonce=\"x\""),
            format!("{full},qop=auth,nc=00000001"),
            format!("{full},algorithm=SHA-1"),
        ] {
            assert!(Credentials::parse(text.as_bytes()).is_none(), "{text}");
        }
        let escaped = full.replace("\"a\"", "\"a\\\"b\"");
        assert_eq!(Credentials::parse(escaped.as_bytes()).unwrap().user().as_ref(), b"a\"b");
    }
}
