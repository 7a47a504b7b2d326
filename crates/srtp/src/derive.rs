//! Session keys from a master key (RFC 3711 §4.3), with a key derivation rate of zero: once.

use base::{SrtpSecret, SrtpSuite};
use zeroize::Zeroizing;

use crate::cipher::{Cipher, Counter};
use crate::mac::{KEY_BYTES, Mac};

/// Bytes of the longest session key.
const LONGEST: usize = 32;
/// Bytes of a salt in counter mode; shorter ones are filled up with zeros on the right (RFC 7714 §11).
pub(crate) const SALT_BYTES: usize = 14;

/// What a direction's packets of one kind are sealed with.
pub(crate) struct SessionKeys {
    pub(crate) cipher: Cipher,
    pub(crate) mac: Mac,
    pub(crate) salt: Zeroizing<[u8; SALT_BYTES]>,
}

/// Which packets a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Rtp,
    Rtcp,
}

impl SessionKeys {
    /// `None` when the secret does not fit the suite.
    pub(crate) fn derive(suite: SrtpSuite, secret: &SrtpSecret, kind: Kind) -> Option<Self> {
        let (key, salt) = secret.bytes().split_at_checked(suite.key_bytes())?;
        let master = Counter::new(key)?;
        let mut padded = Zeroizing::new([0; SALT_BYTES]);
        padded.get_mut(..salt.len())?.copy_from_slice(salt);
        let first = match kind {
            Kind::Rtp => 0,
            Kind::Rtcp => 3,
        };
        let mut cipher = Zeroizing::new([0; LONGEST]);
        let cipher = cipher.get_mut(..suite.key_bytes())?;
        stream(&master, &padded, first, cipher);
        let mut mac = Zeroizing::new([0; KEY_BYTES]);
        stream(&master, &padded, first + 1, mac.as_mut());
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        stream(&master, &padded, first + 2, salt.get_mut(..suite.salt_bytes())?);
        Some(Self { cipher: Cipher::new(suite, cipher)?, mac: Mac::new(&mac), salt })
    }
}

/// The key stream for a label: the salt with the label added seven bytes from its end is where it begins.
fn stream(master: &Counter, salt: &[u8; SALT_BYTES], label: u8, out: &mut [u8]) {
    let mut iv = [0; 16];
    for (byte, salt) in iv.iter_mut().zip(salt) {
        *byte = *salt;
    }
    iv[7] ^= label;
    out.fill(0);
    master.apply(iv, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|letter| letter.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn rfc3711_b_3_and_rfc6188_7_session_keys_are_those_of_the_documents() {
        for (name, key, salt, expected) in [
            (
                "AES-128",
                "e1f97a0d3e018be0d64fa32c06de4139",
                "0ec675ad498afeebb6960b3aabe6",
                [
                    "c61e7a93744f39ee10734afe3ff7a087",
                    "cebe321f6ff7716b6fd4ab49af256a156d38baa4",
                    "30cbbc08863d8c85d49db34a9ae1",
                ],
            ),
            (
                "AES-192",
                "73edc66c4fa15776fb57f9505c171365 50ffda71f3e8e5f1",
                "c8522f3acd4ce86d5add78edbb11",
                [
                    "31874736a8f1143870c26e4857d8a5b2c4a354407faadabb",
                    "355b10973cd95b9eacf4061c7e1a7151e7cfbfcb",
                    "2372b82d639b6d8503a47adc0a6c",
                ],
            ),
            (
                "AES-256",
                "f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6",
                "3b04803de51ee7c96423ab5b78d2",
                [
                    "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4",
                    "fd9c32d39ed5fbb5a9dc96b30818454d1313dc05",
                    "fa31791685ca444a9e07c6c64e93",
                ],
            ),
        ] {
            let master = Counter::new(&hex(key)).unwrap();
            let salt: [u8; SALT_BYTES] = hex(salt).try_into().unwrap();
            for (label, expected) in (0..).zip(expected) {
                let expected = hex(expected);
                let mut out = vec![0xff; expected.len()];
                stream(&master, &salt, label, &mut out);
                assert_eq!(out, expected, "{name}, label {label}");
            }
        }
    }
}
