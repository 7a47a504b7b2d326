//! What a sealed stream is agreed to be: a suite and two keys. How packets are sealed is for the room `srtp`.

use zeroize::Zeroize;

/// How packets are encrypted and authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SrtpSuite {
    /// AES-128 in counter mode, tag of 80 bits (RFC 3711, RFC 4568 §6.2.1).
    AesCm128Sha1Tag80,
    /// The same with a tag of 32 bits on RTP; RTCP keeps 80 (RFC 4568 §6.2.2).
    AesCm128Sha1Tag32,
    /// AES-192 in counter mode, tag of 80 bits (RFC 6188).
    AesCm192Sha1Tag80,
    /// The same with a tag of 32 bits on RTP.
    AesCm192Sha1Tag32,
    /// AES-256 in counter mode, tag of 80 bits (RFC 6188).
    AesCm256Sha1Tag80,
    /// The same with a tag of 32 bits on RTP.
    AesCm256Sha1Tag32,
    /// AES-128 in Galois/counter mode, tag of 128 bits (RFC 7714).
    AesGcm128,
    /// AES-256 in Galois/counter mode, tag of 128 bits (RFC 7714).
    AesGcm256,
}

impl SrtpSuite {
    /// All of them; the one that everybody has comes first, then by strength.
    pub const ALL: [Self; 8] = [
        Self::AesCm128Sha1Tag80,
        Self::AesCm128Sha1Tag32,
        Self::AesCm192Sha1Tag80,
        Self::AesCm192Sha1Tag32,
        Self::AesCm256Sha1Tag80,
        Self::AesCm256Sha1Tag32,
        Self::AesGcm128,
        Self::AesGcm256,
    ];

    /// The registered name (IANA, SRTP Crypto Suite Registrations).
    pub const fn name(self) -> &'static str {
        match self {
            Self::AesCm128Sha1Tag80 => "AES_CM_128_HMAC_SHA1_80",
            Self::AesCm128Sha1Tag32 => "AES_CM_128_HMAC_SHA1_32",
            Self::AesCm192Sha1Tag80 => "AES_192_CM_HMAC_SHA1_80",
            Self::AesCm192Sha1Tag32 => "AES_192_CM_HMAC_SHA1_32",
            Self::AesCm256Sha1Tag80 => "AES_256_CM_HMAC_SHA1_80",
            Self::AesCm256Sha1Tag32 => "AES_256_CM_HMAC_SHA1_32",
            Self::AesGcm128 => "AEAD_AES_128_GCM",
            Self::AesGcm256 => "AEAD_AES_256_GCM",
        }
    }
    /// The suite of that name, in any case of letters.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name().as_bytes().eq_ignore_ascii_case(name))
    }
    /// Bytes of the master key, and of session keys.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::AesCm128Sha1Tag80 | Self::AesCm128Sha1Tag32 | Self::AesGcm128 => 16,
            Self::AesCm192Sha1Tag80 | Self::AesCm192Sha1Tag32 => 24,
            Self::AesCm256Sha1Tag80 | Self::AesCm256Sha1Tag32 | Self::AesGcm256 => 32,
        }
    }
    /// Bytes of the master salt, and of session salts.
    pub const fn salt_bytes(self) -> usize {
        match self {
            Self::AesGcm128 | Self::AesGcm256 => 12,
            Self::AesCm128Sha1Tag80
            | Self::AesCm128Sha1Tag32
            | Self::AesCm192Sha1Tag80
            | Self::AesCm192Sha1Tag32
            | Self::AesCm256Sha1Tag80
            | Self::AesCm256Sha1Tag32 => 14,
        }
    }
    /// Bytes of key and salt together, as descriptions carry them.
    pub const fn secret_bytes(self) -> usize {
        self.key_bytes() + self.salt_bytes()
    }
    /// Bytes that sealing adds to an RTP packet.
    pub const fn tag_bytes(self) -> usize {
        match self {
            Self::AesCm128Sha1Tag32 | Self::AesCm192Sha1Tag32 | Self::AesCm256Sha1Tag32 => 4,
            Self::AesCm128Sha1Tag80 | Self::AesCm192Sha1Tag80 | Self::AesCm256Sha1Tag80 => 10,
            Self::AesGcm128 | Self::AesGcm256 => 16,
        }
    }
}

/// Bytes of the longest master key with its salt.
pub const SRTP_SECRET_BYTES_MAX: usize = 32 + 14;

/// A master key with its salt. It is never shown, and wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SrtpSecret {
    bytes: [u8; SRTP_SECRET_BYTES_MAX],
    length: u8,
}

impl SrtpSecret {
    /// Key and salt, one after the other; `None` when they have another length than the suite asks for.
    pub fn new(suite: SrtpSuite, secret: &[u8]) -> Option<Self> {
        let mut bytes = [0; SRTP_SECRET_BYTES_MAX];
        let length = u8::try_from(suite.secret_bytes()).ok()?;
        if secret.len() != suite.secret_bytes() {
            return None;
        }
        bytes.get_mut(..secret.len())?.copy_from_slice(secret);
        Some(Self { bytes, length })
    }
    /// Key and salt, one after the other.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Drop for SrtpSecret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl core::fmt::Debug for SrtpSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SrtpSecret(hidden)")
    }
}

/// What seals the packets of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtpKeys {
    /// The suite of both directions.
    pub suite: SrtpSuite,
    /// Ours.
    pub send: SrtpSecret,
    /// The peer's.
    pub receive: SrtpSecret,
    /// Whether a packet that came before is refused when it comes again (RFC 3711 §3.3.2).
    pub replay_protection: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc4568_6_2_suites_have_their_registered_names_and_lengths() {
        for (name, key, salt, tag) in [
            ("AES_CM_128_HMAC_SHA1_80", 16, 14, 10),
            ("AES_CM_128_HMAC_SHA1_32", 16, 14, 4),
            ("AES_192_CM_HMAC_SHA1_80", 24, 14, 10),
            ("AES_192_CM_HMAC_SHA1_32", 24, 14, 4),
            ("AES_256_CM_HMAC_SHA1_80", 32, 14, 10),
            ("AES_256_CM_HMAC_SHA1_32", 32, 14, 4),
            ("AEAD_AES_128_GCM", 16, 12, 16),
            ("AEAD_AES_256_GCM", 32, 12, 16),
        ] {
            let suite = SrtpSuite::named(name.to_ascii_lowercase().as_bytes()).unwrap();
            assert_eq!((suite.name(), suite.key_bytes()), (name, key));
            assert_eq!((suite.salt_bytes(), suite.tag_bytes()), (salt, tag), "{name}");
            assert!(suite.secret_bytes() <= SRTP_SECRET_BYTES_MAX, "{name}");
        }
        assert_eq!(SrtpSuite::named(b"F8_128_HMAC_SHA1_80"), None);
    }

    #[test]
    fn a_secret_has_the_length_of_its_suite_and_is_never_shown() {
        let suite = SrtpSuite::AesCm128Sha1Tag80;
        let secret = SrtpSecret::new(suite, &[0x41; 30]).unwrap();
        assert_eq!(secret.bytes(), [0x41; 30]);
        assert_eq!(format!("{secret:?}"), "SrtpSecret(hidden)");
        for length in [0, 29, 31, 46, 60] {
            assert_eq!(SrtpSecret::new(suite, &vec![0; length]), None, "{length}");
        }
    }
}
