//! Any certificate, list of revoked ones and TNAuthList. Oracles: what is read comes from the bytes and is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stir::{CERTIFICATE_BYTES_MAX, Certificate, Revoked, TnAuthList};

fuzz_target!(|bytes: &[u8]| {
    if let Some(certificate) = Certificate::read(bytes) {
        assert!(bytes.len() <= CERTIFICATE_BYTES_MAX && certificate.leaf.len() <= bytes.len());
        assert!(certificate.others.len() < 8 && certificate.key.is_none_or(|key| key.len() == 65));
    }
    let mut revoked = Revoked::default();
    if revoked.add(bytes).is_some() {
        assert!(revoked.len() <= bytes.len());
    }
    if let Some(list) = TnAuthList::read(bytes) {
        assert!(!list.0.is_empty() && list.0.len() <= bytes.len());
    }
});
