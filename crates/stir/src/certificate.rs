//! Certificates of carriers (RFC 8226), as far as a verdict needs them.

use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::tnauth::TnAuthList;

/// Most of what is taken for a certificate with its chain, bytes: a chain of P-256 has two or three thousand.
pub const CERTIFICATE_BYTES_MAX: usize = 16 * 1024;
/// Most certificates of one answer, the leaf and those above it.
const CHAIN_MAX: usize = 8;

/// The extension TNAuthList (RFC 8226 §9).
pub const SPC_OID: &str = "1.3.6.1.5.5.7.1.26";
/// The kind of its key: `id-ecPublicKey`.
const EC_KEY: &str = "1.2.840.10045.2.1";
/// The curve of ES256.
const P256: &str = "1.2.840.10045.3.1.7";
/// A point in uncompressed form.
const POINT_BYTES: usize = 65;

/// A certificate and those that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The leaf, in DER.
    pub leaf: Vec<u8>,
    /// What else came, in DER.
    pub others: Vec<Vec<u8>>,
    /// Its key, an uncompressed point of P-256; `None`: it is another kind of key.
    pub key: Option<Vec<u8>>,
    /// The first second since 1970 of its time.
    pub not_before: u64,
    /// The last one.
    pub not_after: u64,
    /// Who has issued it, in DER.
    pub issuer: Vec<u8>,
    /// Its number there.
    pub serial: Vec<u8>,
    /// Whom it is for, for people.
    pub subject: String,
    /// What it may sign for; `Some(None)`: the extension is malformed.
    pub tn_auth: Option<Option<TnAuthList>>,
}

impl Certificate {
    /// Reads a certificate in PEM or DER; in PEM the leaf comes first and those above it follow. `None` when it is none, or
    /// longer than [`CERTIFICATE_BYTES_MAX`].
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > CERTIFICATE_BYTES_MAX {
            return None;
        }
        // DER begins with a sequence of a long length.
        if bytes.starts_with(&[0x30, 0x82]) {
            return Self::of(bytes.to_vec(), Vec::new());
        }
        let blocks = Pem::iter_from_buffer(bytes).take_while(Result::is_ok).filter_map(Result::ok);
        let mut found = blocks.filter(|pem| pem.label == "CERTIFICATE").map(|pem| pem.contents);
        let leaf = found.next()?;
        Self::of(leaf, found.take(CHAIN_MAX - 1).collect())
    }
    /// The same of a leaf and those above it, each in DER.
    pub fn of(leaf: Vec<u8>, others: Vec<Vec<u8>>) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(&leaf).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        let validity = parsed.validity();
        let (not_before, not_after) =
            (seconds(validity.not_before.timestamp()), seconds(validity.not_after.timestamp()));
        let tn_auth = parsed
            .extensions()
            .iter()
            .find(|extension| extension.oid.to_id_string() == SPC_OID)
            .map(|extension| TnAuthList::read(extension.value));
        let subject: String =
            parsed.subject().to_string().chars().filter(|c| !c.is_control()).take(256).collect();
        let (key, issuer, serial) =
            (point(&parsed), parsed.issuer().as_raw().to_vec(), parsed.raw_serial().to_vec());
        Some(Self { key, not_before, not_after, issuer, serial, subject, tn_auth, leaf, others })
    }
    /// Whether it is a second of its time.
    pub fn is_valid_at(&self, at: u64) -> bool {
        (self.not_before..=self.not_after).contains(&at)
    }
}

fn point(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    let info = certificate.public_key();
    let curve = info.algorithm.parameters.as_ref()?.as_oid().ok()?;
    let is_es256 = info.algorithm.algorithm.to_id_string() == EC_KEY && curve.to_id_string() == P256;
    let point: &[u8] = &info.subject_public_key.data;
    (is_es256 && point.len() == POINT_BYTES && point.first() == Some(&4)).then(|| point.to_vec())
}
