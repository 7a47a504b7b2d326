//! Certificates that their authorities have taken back, as lists on disk say (RFC 5280 §5).
//!
//! The administrator vouches for those files. Lists of carriers are indirect: one authority lists what others have issued
//! (ATIS-1000080), so that an entry may name another issuer than the list has.

use std::collections::HashSet;

use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::Certificate;
use crate::tlv::{all, only};

/// Most entries that are kept: several times what all carriers of a country have revoked.
pub const REVOKED_MAX: usize = 200_000;
/// The extension of an entry that names its issuer (RFC 5280 §5.3.3).
const CERTIFICATE_ISSUER: &str = "2.5.29.29";

/// Certificates that are not trusted any more, by issuer and number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked(HashSet<(Vec<u8>, Vec<u8>)>);

impl Revoked {
    /// Takes the lists of a file in, in PEM or DER; how many lists there were. `None` when one is malformed or there is more
    /// than is kept.
    pub fn add(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.first() == Some(&0x30) {
            return self.add_list(bytes).map(|()| 1);
        }
        let mut count = 0;
        for pem in Pem::iter_from_buffer(bytes) {
            let pem = pem.ok()?;
            if pem.label == "X509 CRL" {
                self.add_list(&pem.contents)?;
                count += 1;
            }
        }
        Some(count)
    }
    fn add_list(&mut self, der: &[u8]) -> Option<()> {
        let (_, list) = CertificateRevocationList::from_der(der).ok()?;
        // RFC 5280 §5.3.3: an issuer holds until another is named.
        let mut issuer = list.tbs_cert_list.issuer.as_raw().to_vec();
        for entry in list.iter_revoked_certificates() {
            let named = entry.extensions().iter();
            let named = named.filter(|extension| extension.oid.to_id_string() == CERTIFICATE_ISSUER);
            if let Some(name) = named.filter_map(|extension| directory_name(extension.value)).next() {
                issuer = name;
            }
            if self.0.len() >= REVOKED_MAX {
                return None;
            }
            self.0.insert((issuer.clone(), entry.raw_serial().to_vec()));
        }
        Some(())
    }
    /// Whether the certificate is listed.
    pub fn has(&self, certificate: &Certificate) -> bool {
        !self.0.is_empty() && self.0.contains(&(certificate.issuer.clone(), certificate.serial.clone()))
    }
    /// How many are listed.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The name of a directory among GeneralNames, in DER.
fn directory_name(value: &[u8]) -> Option<Vec<u8>> {
    let names = all(only(value, 0x30)?, 8)?;
    names.into_iter().find(|(tag, _)| *tag == 0xa4).map(|(_, name)| name.to_vec())
}
