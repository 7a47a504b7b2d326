//! Digest authentication (RFC 7616, RFC 8760, and RFC 2617's form without qop), both sides.
//!
//! The server side keeps nothing before somebody is authenticated: a nonce carries its own time stamp and a keyed seal.
//! Time and randomness come in with the calls.

mod client;
mod server;

pub use client::{Answer, Authenticator, Login, MAX_CHALLENGES};
pub use server::{Credentials, Gate, NonceCounts, Verdict};

use md5::Md5;
use sha2::{Sha256, Sha512_256};

/// A hash algorithm of digest authentication, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Algorithm {
    /// MD5, what a challenge without `algorithm` means.
    #[default]
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512/256.
    Sha512_256,
}

impl Algorithm {
    /// The token on the wire and in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
            Self::Sha512_256 => "SHA-512-256",
        }
    }
    /// The algorithm a token names, any case, and whether it is the `-sess` form.
    pub fn parse(token: &[u8]) -> Option<(Self, bool)> {
        let (name, session) = match token.len().checked_sub(5).and_then(|at| token.split_at_checked(at)) {
            Some((name, suffix)) if suffix.eq_ignore_ascii_case(b"-sess") => (name, true),
            _ => (token, false),
        };
        [Self::Md5, Self::Sha256, Self::Sha512_256]
            .into_iter()
            .find(|algorithm| algorithm.as_str().as_bytes().eq_ignore_ascii_case(name))
            .map(|algorithm| (algorithm, session))
    }
    /// The hash of the parts joined with colons, in lower-case hex.
    pub fn hash(self, parts: &[&[u8]]) -> Hex {
        match self {
            Self::Md5 => Hex::of(&joined::<Md5>(parts)),
            Self::Sha256 => Hex::of(&joined::<Sha256>(parts)),
            Self::Sha512_256 => Hex::of(&joined::<Sha512_256>(parts)),
        }
    }
    /// HA1: the hash of user, realm and password, which can be stored instead of the password.
    pub fn ha1(self, username: &[u8], realm: &[u8], password: &[u8]) -> Hex {
        self.hash(&[username, realm, password])
    }
}

fn joined<H: sha2::digest::Digest>(parts: &[&[u8]]) -> sha2::digest::Output<H> {
    let mut hash = H::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            hash.update(b":");
        }
        hash.update(part);
    }
    hash.finalize()
}

/// Hex digits of a hash, without an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex {
    digits: [u8; 64],
    len: u8,
}

impl Hex {
    fn of(hash: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(hash) {
            if let [high, low] = pair {
                *high = DIGITS[usize::from(byte >> 4)];
                *low = DIGITS[usize::from(byte & 15)];
            }
        }
        Self { digits, len: (hash.len().min(32) * 2) as u8 }
    }
    /// The digits `text` is, when it is 32 or 64 of them; upper case becomes lower.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if !matches!(text.len(), 32 | 64) || !text.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut digits = [0; 64];
        for (to, from) in digits.iter_mut().zip(text) {
            *to = from.to_ascii_lowercase();
        }
        Some(Self { digits, len: text.len() as u8 })
    }
    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        self.digits.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl core::fmt::Debug for Hex {
    /// Hashes of passwords do not belong in logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hex(..)")
    }
}

/// What proves an identity.
#[derive(Clone, Copy)]
pub enum Secret<'a> {
    /// The password itself; serves every algorithm.
    Password(&'a [u8]),
    /// A stored HA1; serves its own algorithm and realm only.
    Ha1(Algorithm, Hex),
}

impl core::fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Password(..)",
            Self::Ha1(..) => "Ha1(..)",
        })
    }
}

impl Secret<'_> {
    fn ha1(&self, algorithm: Algorithm, username: &[u8], realm: &[u8]) -> Option<Hex> {
        match self {
            Self::Password(password) => Some(algorithm.ha1(username, realm, password)),
            Self::Ha1(own, ha1) => (*own == algorithm).then_some(*ha1),
        }
    }
}

/// What the response digest is made of besides HA1.
struct Proof<'a> {
    algorithm: Algorithm,
    session: bool,
    nonce: &'a [u8],
    method: &'a [u8],
    uri: &'a [u8],
    /// `cnonce` and the eight digits of `nc`, with qop=auth; `None` is RFC 2617's form without qop.
    qop: Option<(&'a [u8], &'a [u8])>,
}

impl Proof<'_> {
    fn response(&self, ha1: &Hex) -> Hex {
        let algorithm = self.algorithm;
        let session_ha1;
        let ha1 = match self.qop {
            Some((cnonce, _)) if self.session => {
                session_ha1 = algorithm.hash(&[ha1.as_bytes(), self.nonce, cnonce]);
                &session_ha1
            }
            _ => ha1,
        };
        let ha2 = algorithm.hash(&[self.method, self.uri]);
        match self.qop {
            Some((cnonce, nc)) => {
                algorithm.hash(&[ha1.as_bytes(), self.nonce, nc, cnonce, b"auth", ha2.as_bytes()])
            }
            None => algorithm.hash(&[ha1.as_bytes(), self.nonce, ha2.as_bytes()]),
        }
    }
}

/// Most `name=value` pairs of a challenge or of credentials that are read.
const MAX_FIELDS: usize = 24;

/// The pairs after the scheme, values without their quotes (escapes stay, as the hash wants them); `None` for another scheme.
fn fields(value: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    use crate::header::lex::{is_lws, split_once, trim, trim_start};
    let value = trim_start(value);
    let end = value.iter().position(|&b| is_lws(b))?;
    let (scheme, rest) = value.split_at_checked(end)?;
    if !scheme.eq_ignore_ascii_case(b"Digest") {
        return None;
    }
    Some(crate::header::CommaList::new(rest).take(MAX_FIELDS).filter_map(|pair| {
        let (name, value) = split_once(pair, b'=');
        let value = trim(value?);
        let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
        Some((trim(name), value))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_equal_those_of_the_rfcs() {
        let cases: [(&str, Algorithm, [&str; 7], &str); 4] = [
            (
                "RFC 2617 3.5",
                Algorithm::Md5,
                [
                    "Mufasa",
                    "testrealm@host.com",
                    "Circle Of Life",
                    "dcd98b7102dd2f0e8b11d0f600bfb0c093",
                    "/dir/index.html",
                    "0a4f113b",
                    "00000001",
                ],
                "6629fae49393a05397450978507c4ef1",
            ),
            (
                "RFC 7616 3.9.1, MD5",
                Algorithm::Md5,
                [
                    "Mufasa",
                    "http-auth@example.org",
                    "Circle of Life",
                    "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
                    "/dir/index.html",
                    "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
                    "00000001",
                ],
                "8ca523f5e9506fed4657c9700eebdbec",
            ),
            (
                "RFC 7616 3.9.1, SHA-256",
                Algorithm::Sha256,
                [
                    "Mufasa",
                    "http-auth@example.org",
                    "Circle of Life",
                    "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
                    "/dir/index.html",
                    "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
                    "00000001",
                ],
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
            (
                "RFC 7616 3.9.2 as corrected by erratum 4897, SHA-512/256",
                Algorithm::Sha512_256,
                [
                    "J\u{e4}s\u{f8}n Doe",
                    "api@example.org",
                    "Secret, or not?",
                    "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
                    "/doe.json",
                    "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
                    "00000001",
                ],
                "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5",
            ),
        ];
        for (name, algorithm, [user, realm, password, nonce, uri, cnonce, nc], expected) in cases {
            let proof = Proof {
                algorithm,
                session: false,
                nonce: nonce.as_bytes(),
                method: b"GET",
                uri: uri.as_bytes(),
                qop: Some((cnonce.as_bytes(), nc.as_bytes())),
            };
            let ha1 = algorithm.ha1(user.as_bytes(), realm.as_bytes(), password.as_bytes());
            assert_eq!(proof.response(&ha1).as_bytes(), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn algorithms_are_known_by_token_and_strength() {
        assert_eq!(Algorithm::parse(b"sha-512-256"), Some((Algorithm::Sha512_256, false)));
        assert_eq!(Algorithm::parse(b"MD5-sess"), Some((Algorithm::Md5, true)));
        assert_eq!(Algorithm::parse(b"SHA-1"), None);
        assert!(Algorithm::Sha512_256 > Algorithm::Sha256 && Algorithm::Sha256 > Algorithm::Md5);
    }
}
