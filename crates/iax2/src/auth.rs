//! Proving who one is (RFC 5456 §8.6.15): MD5 over challenge and password, or the password itself where it must be.
//!
//! RSA (§8.6.16) is arithmetic over keys of files that this crate does not have: signatures go out and come in as events.

use crate::frame::Auth;
use base::hash::Randomness;
use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Longest challenge that is answered, bytes: an element.
pub(crate) const CHALLENGE_BYTES_MAX: usize = 255;

/// A password, or several that semicolons part: any of them is right, and the first is used to prove who we are.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// As an administrator writes it. An empty one is right for nobody.
    pub fn new(text: &[u8]) -> Self {
        Self(Zeroizing::new(text.to_vec()))
    }
    /// Whether it says the same, for an administrator's own words; not for what a stranger sends.
    pub fn is_same(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
    fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b';').filter(|one| !one.is_empty())
    }
    fn first(&self) -> Option<&[u8]> {
        self.each().next()
    }
    /// The answer that proves it by MD5, in hexadecimal digits; `None` without a password.
    pub fn answer(&self, challenge: &[u8]) -> Option<[u8; 32]> {
        self.first().map(|password| hex(hash(challenge, password)))
    }
    /// The keys of calls that are enciphered with it, one a password (RFC 5456 §7.4).
    pub(crate) fn keys(&self, challenge: &[u8]) -> impl Iterator<Item = [u8; 16]> {
        self.each().map(move |one| hash(challenge, one))
    }
}

fn hash(challenge: &[u8], password: &[u8]) -> [u8; 16] {
    Md5::new().chain_update(challenge).chain_update(password).finalize().into()
}

fn hex(bytes: [u8; 16]) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 32];
    for ([high, low], byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        (*high, *low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
    }
    text
}

/// What proves who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    Md5([u8; 32]),
    Plain(Zeroizing<Vec<u8>>),
    /// A signature in base 64, which the driver has made.
    Rsa(Vec<u8>),
}

/// The best proof that the other side takes, or `None`. A password goes out in the clear only when `plaintext` says so.
pub(crate) fn prove(
    secret: &Secret,
    methods: Auth,
    challenge: Option<&[u8]>,
    plaintext: bool,
) -> Option<Proof> {
    let password = secret.first()?;
    match challenge {
        Some(challenge) if methods.has(Auth::MD5) => secret.answer(challenge).map(Proof::Md5),
        _ if methods.has(Auth::PLAINTEXT) && plaintext => {
            Some(Proof::Plain(Zeroizing::new(password.to_vec())))
        }
        _ => None,
    }
}

/// Whether an answer proves one of the passwords; looks at each of them, right or not, and at one when there is none, so
/// that unknown users take as long as known ones.
pub(crate) fn check(
    secret: &Secret,
    methods: Auth,
    challenge: &[u8],
    md5: Option<&[u8]>,
    plain: Option<&[u8]>,
) -> bool {
    let mut right = subtle::Choice::from(0);
    let nobody = [&b""[..]].into_iter().filter(|_| secret.first().is_none());
    for password in secret.each().chain(nobody) {
        let known = subtle::Choice::from(u8::from(!password.is_empty()));
        if let Some(answer) = md5.filter(|_| methods.has(Auth::MD5)) {
            right |= known & hex(hash(challenge, password)).ct_eq(&answer.to_ascii_lowercase());
        }
        if let Some(answer) = plain.filter(|_| methods.has(Auth::PLAINTEXT)) {
            // Of hashes, so that the time does not tell how much of it is right.
            right |= known & hash(challenge, password).ct_eq(&hash(challenge, answer));
        }
    }
    right.into()
}

/// Characters of a challenge: with it, the answer to a REGREQ that holds nothing but a name of one letter is not more than
/// one and a half times as large, IP and UDP around both counted.
const CHALLENGE_CHARACTERS: u32 = 15;

/// A challenge that nobody has seen: 75 bits in letters and digits.
pub(crate) fn challenge(random: &mut Randomness) -> Vec<u8> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = random.next_wide();
    (0..CHALLENGE_CHARACTERS).map(|at| ALPHABET[(bits >> (5 * at)) as usize % ALPHABET.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5456_8_6_15_the_answer_is_md5_over_challenge_and_password() {
        // md5sum of "123456789secret".
        let secret = Secret::new(b"secret");
        let Some(Proof::Md5(answer)) = prove(&secret, Auth::MD5, Some(b"123456789"), false) else {
            panic!("a proof")
        };
        assert_eq!(&answer, b"7ccde16e862dfe7681297713e9e9cadb");
        assert!(check(&secret, Auth::MD5, b"123456789", Some(&answer), None));
        assert!(check(&secret, Auth::MD5, b"123456789", Some(&answer.to_ascii_uppercase()), None));
    }

    #[test]
    fn an_answer_is_right_for_any_password_of_the_list_by_a_method_that_was_asked_for() {
        let secret = Secret::new(b"old;new");
        let answer = |password: &[u8]| hex(hash(b"1", password));
        for (name, methods, md5, plain, right) in [
            ("the first", Auth::MD5, Some(answer(b"old")), None, true),
            ("the second", Auth::MD5, Some(answer(b"new")), None, true),
            ("another", Auth::MD5, Some(answer(b"other")), None, false),
            ("none at all", Auth::MD5, None, None, false),
            ("a method that was not asked for", Auth::MD5, None, Some(&b"old"[..]), false),
            ("in the clear, asked for", Auth::PLAINTEXT, None, Some(b"new"), true),
            ("in the clear, wrong", Auth::PLAINTEXT, None, Some(b"ne"), false),
        ] {
            assert_eq!(check(&secret, methods, b"1", md5.as_ref().map(|a| &a[..]), plain), right, "{name}");
        }
        for empty in [&b""[..], b";"] {
            let nobody = Secret::new(empty);
            assert!(
                !check(&nobody, Auth::MD5, b"1", Some(&answer(b"")), None),
                "an empty password is nobody's"
            );
            assert_eq!(prove(&nobody, Auth::MD5, Some(b"1"), false), None);
        }
    }

    #[test]
    fn a_password_goes_out_in_the_clear_only_where_it_is_allowed() {
        let secret = Secret::new(b"secret");
        assert_eq!(prove(&secret, Auth::PLAINTEXT, Some(b"1"), false), None);
        let plain = prove(&secret, Auth::PLAINTEXT, None, true);
        assert_eq!(plain, Some(Proof::Plain(Zeroizing::new(b"secret".to_vec()))));
        assert!(matches!(
            prove(&secret, Auth::PLAINTEXT.with(Auth::MD5), Some(b"1"), true),
            Some(Proof::Md5(_))
        ));
    }
}
