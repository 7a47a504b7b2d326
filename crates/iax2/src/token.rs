//! Call tokens: a stranger gets a number only after it has shown that it receives at the address that it sends from.
//!
//! NEW, REGREQ and REGREL bring an empty element to ask for a token and the token to begin. A token is two octets of time
//! and 104 bits of a keyed hash over address, port, time and message, as 20 letters: nothing is kept for who asks, and
//! the answer (34 octets) is at most 20 octets longer than the shortest question, or 1.48 times with IP and UDP around both.

use crate::frame::Command;
use base::Instant;
use base::hash::{Key, Randomness};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use subtle::{Choice, ConstantTimeEq as _};

/// How long a token is good: a question, a lost answer, and both again.
pub const TOKEN_LIFE: Duration = Duration::from_secs(10);
/// How long a secret makes new tokens; the one before it is kept for as long to check old ones.
const SECRET_LIFE: Duration = Duration::from_secs(60);
/// Letters of a token.
pub const TOKEN_BYTES: usize = 20;
/// Octets that they stand for: time and hash.
const RAW: usize = 15;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Makes tokens and checks them.
#[derive(Debug)]
pub struct Tokens {
    secrets: [Key; 2],
    since: Instant,
}

impl Tokens {
    /// With two secrets that nobody knows.
    pub fn new(now: Instant, random: &mut Randomness) -> Self {
        Self { secrets: [(); 2].map(|()| Key::new(random.next_wide())), since: now }
    }
    /// Changes the secret when it is old.
    fn turn(&mut self, now: Instant, random: &mut Randomness) {
        if now - self.since >= SECRET_LIFE {
            // After a long silence both are old.
            let before = if now - self.since >= SECRET_LIFE * 2 {
                Key::new(random.next_wide())
            } else {
                self.secrets[0]
            };
            self.secrets = [Key::new(random.next_wide()), before];
            self.since = now;
        }
    }
    /// A token for who receives at `from` and asks for it with `command`.
    pub fn issue(
        &mut self,
        now: Instant,
        from: SocketAddr,
        command: Command,
        random: &mut Randomness,
    ) -> [u8; TOKEN_BYTES] {
        self.turn(now, random);
        encode(&seal(self.secrets[0], seconds(now), from, command))
    }
    /// Whether `token` was made for this sender and message, not long ago. Takes equally long whatever is wrong with a
    /// token of the right length.
    pub fn check(
        &mut self,
        now: Instant,
        from: SocketAddr,
        command: Command,
        token: &[u8],
        random: &mut Randomness,
    ) -> bool {
        self.turn(now, random);
        let Some(raw) = decode(token) else { return false };
        let [t0, t1, ..] = raw;
        let made = u16::from_be_bytes([t0, t1]);
        let fresh = u64::from(seconds(now).wrapping_sub(made)) <= TOKEN_LIFE.as_secs();
        let ours = self
            .secrets
            .iter()
            .map(|secret| seal(*secret, made, from, command).ct_eq(&raw))
            .fold(Choice::from(0), |any, one| any | one);
        fresh & bool::from(ours)
    }
}

fn seconds(now: Instant) -> u16 {
    (now.as_millis() / 1000) as u16
}

/// Octets of an address and a port.
pub(crate) const ADDRESS_BYTES: usize = 18;

/// The address as octets, one spelling for each.
pub(crate) fn address_bytes(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    for (slot, byte) in bytes.iter_mut().zip(ip.octets().into_iter().chain(address.port().to_be_bytes())) {
        *slot = byte;
    }
    bytes
}

fn seal(secret: Key, made: u16, from: SocketAddr, command: Command) -> [u8; RAW] {
    let [t0, t1] = made.to_be_bytes();
    let hash = secret.digest(&[&[t0, t1, command.0], &address_bytes(from)]);
    let mut raw = [0; RAW];
    for (slot, byte) in raw.iter_mut().zip([t0, t1].into_iter().chain(hash.to_le_bytes())) {
        *slot = byte;
    }
    raw
}

fn encode(raw: &[u8; RAW]) -> [u8; TOKEN_BYTES] {
    let mut text = [b'A'; TOKEN_BYTES];
    let (groups, _) = raw.as_chunks::<3>();
    for (letters, [a, b, c]) in text.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
        let bits = u32::from_be_bytes([0, *a, *b, *c]);
        for (at, letter) in (0..).zip(letters) {
            *letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
        }
    }
    text
}

fn decode(text: &[u8]) -> Option<[u8; RAW]> {
    let text: &[u8; TOKEN_BYTES] = text.try_into().ok()?;
    let mut raw = [0; RAW];
    for (group, letters) in raw.as_chunks_mut::<3>().0.iter_mut().zip(text.as_chunks::<4>().0) {
        let mut bits = 0u32;
        for letter in letters {
            let value = LETTERS.iter().position(|known| known == letter)?;
            bits = bits << 6 | value as u32;
        }
        let [_, a, b, c] = bits.to_be_bytes();
        *group = [a, b, c];
    }
    Some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_good_for_its_sender_its_message_and_its_time() {
        let mut random = Randomness::new(Key::new(1));
        let mut tokens = Tokens::new(at(0), &mut random);
        let home = address("192.0.2.1:4569");
        // Just before a secret is changed, so that the one before it has to help.
        let token = tokens.issue(at(59), home, Command::NEW, &mut random);
        assert!(token.iter().all(u8::is_ascii_graphic));
        for (name, seconds, from, command, good) in [
            ("at once", 59, "192.0.2.1:4569", Command::NEW, true),
            ("10 s later, under the secret before", 69, "192.0.2.1:4569", Command::NEW, true),
            ("the same address, mapped", 69, "[::ffff:192.0.2.1]:4569", Command::NEW, true),
            ("another port", 69, "192.0.2.1:4570", Command::NEW, false),
            ("another address", 69, "192.0.2.2:4569", Command::NEW, false),
            ("another message", 69, "192.0.2.1:4569", Command::REGREQ, false),
            ("too late", 70, "192.0.2.1:4569", Command::NEW, false),
            ("before it was made", 58, "192.0.2.1:4569", Command::NEW, false),
        ] {
            assert_eq!(
                tokens.check(at(seconds), address(from), command, &token, &mut random),
                good,
                "{name}"
            );
        }
        // 65,536 s later the time reads the same; the secret does not.
        assert!(!tokens.check(at(59 + 65_536), home, Command::NEW, &token, &mut random));
    }

    #[test]
    fn no_changed_letter_and_no_other_length_passes() {
        let mut random = Randomness::new(Key::new(2));
        let mut tokens = Tokens::new(at(0), &mut random);
        let home = address("[2001:db8::1]:4569");
        let token = tokens.issue(at(5), home, Command::REGREQ, &mut random);
        assert!(tokens.check(at(5), home, Command::REGREQ, &token, &mut random));
        for place in 0..TOKEN_BYTES {
            let mut other = token;
            other[place] = if token[place] == b'A' { b'B' } else { b'A' };
            assert!(!tokens.check(at(5), home, Command::REGREQ, &other, &mut random), "letter {place}");
        }
        for wrong in [&b""[..], &token[1..], b"????????????????????"] {
            assert!(!tokens.check(at(5), home, Command::REGREQ, wrong, &mut random));
        }
    }
}
