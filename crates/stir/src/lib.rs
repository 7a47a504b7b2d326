//! STIR/SHAKEN: who calls, signed by their carrier (RFC 8224, 8225, 8226, 8588).
//!
//! Pure: what a call says comes in with the wall time, and a verdict, a header or the wish for a certificate goes out. The
//! arithmetic of keys is done by whoever implements [`Sign`] and [`Authority`]; certificates are fetched by whoever asks
//! [`cache::Cache`] for one. It knows no SIP message, no channel and no configuration file.
#![forbid(unsafe_code)]

mod address;
pub mod cache;
mod certificate;
mod date;
mod number;
mod passport;
mod revoked;
mod settings;
mod tlv;
mod tnauth;
mod verdict;
mod verify;
mod x5u;

pub use address::is_public;
pub use certificate::{CERTIFICATE_BYTES_MAX, Certificate, SPC_OID};
pub use date::{date_header, read_date};
pub use number::{digits, number_of_user};
pub use passport::{Claims, Fingerprint, IDENTITY_BYTES_MAX, Token, fingerprints, identity_header};
pub use revoked::{REVOKED_MAX, Revoked};
pub use settings::{Behavior, FailureAction, Fetching, Level, Profile, Settings, Signer, Verification};
pub use tnauth::{TnAuthList, TnEntry};
pub use verdict::{Refusal, Verdict};
pub use verify::{Begun, Call, IDENTITIES_MAX, Outcome, Pending, begin, is_usable};
pub use x5u::{X5U_BYTES_MAX, is_acceptable};

/// A private key that signs.
pub trait Sign {
    /// The signature of ES256 (RFC 7518 §3.4): two numbers of 32 octets; `None` when the key cannot.
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]>;
}

/// Whom certificates have to come from, and the arithmetic of their signatures.
pub trait Authority {
    /// Whether a trusted authority vouches for the certificate at that second since 1970, and nobody has revoked it.
    fn trusts(&self, certificate: &Certificate, at: u64) -> bool;
    /// Whether the key, a point of P-256 as a certificate has it, made this signature of ES256.
    fn verifies(&self, key: &[u8], message: &[u8], signature: &[u8]) -> bool;
}
