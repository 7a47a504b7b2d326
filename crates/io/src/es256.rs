//! ES256 (RFC 7518 §3.4): signing, checking, and whose certificates are believed.
#![forbid(unsafe_code)]

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, anchor_from_trusted_cert};

/// Certificates that one file may have: twice what a system trusts.
pub const CERTIFICATES_MAX: usize = 512;
/// Whom the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A private key of P-256.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl SigningKey {
    /// Reads a key in PEM: PKCS #8 or SEC 1, without a password.
    pub fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| "there is no private key in it")?;
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der())
            .map_err(|_| "its key is none of P-256")?;
        Ok(Self { pair, random: SystemRandom::new() })
    }
    /// Signs.
    pub fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        self.pair.sign(&self.random, message).ok()?.as_ref().try_into().ok()
    }
}

/// Whether this key, a point, made the signature.
pub fn verifies(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature).is_ok()
}

/// Certificates in PEM, in DER.
pub fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).take(CERTIFICATES_MAX).collect();
    let found = found.map_err(|_| "it is no PEM")?;
    if found.is_empty() {
        return Err("there is no certificate in it");
    }
    Ok(found.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Whose certificates are believed.
#[derive(Default)]
pub struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
    own: Vec<Vec<u8>>,
    untrusted: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Believes whom these certificates belong to.
    pub fn trust(&mut self, pem: &[u8]) -> Result<(), &'static str> {
        for certificate in certificates(pem)? {
            let der = CertificateDer::from(certificate.as_slice());
            let anchor =
                anchor_from_trusted_cert(&der).map_err(|_| "it has a certificate that cannot be read")?;
            self.anchors.push(anchor.to_owned());
            self.own.push(certificate);
        }
        Ok(())
    }
    /// Believes whom the system trusts.
    pub fn trust_system(&mut self) -> Result<(), &'static str> {
        let file =
            std::fs::read(SYSTEM_AUTHORITIES).map_err(|_| "the system has no certificates of authorities")?;
        let found = CertificateDer::pem_slice_iter(&file).filter_map(Result::ok).take(CERTIFICATES_MAX);
        for certificate in found {
            self.anchors.extend(anchor_from_trusted_cert(&certificate).map(|anchor| anchor.to_owned()));
        }
        Ok(())
    }
    /// Knows these, which prove nothing by themselves.
    pub fn know(&mut self, pem: &[u8]) -> Result<(), &'static str> {
        self.untrusted.extend(certificates(pem)?.into_iter().map(CertificateDer::from));
        Ok(())
    }
    /// Whether nobody is believed.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }
    /// Whether an authority vouches for the certificate at that second since 1970, over others that came with it.
    pub fn vouch(&self, leaf: &[u8], others: &[Vec<u8>], at: u64) -> bool {
        if self.own.iter().any(|own| own == leaf) {
            return true;
        }
        let leaf = CertificateDer::from(leaf);
        let Ok(leaf) = EndEntityCert::try_from(&leaf) else { return false };
        let others = others.iter().map(|other| CertificateDer::from(other.as_slice()));
        let others: Vec<CertificateDer<'_>> = others.chain(self.untrusted.iter().cloned()).collect();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
        leaf.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &self.anchors, &others, at, AnyUse, None, None)
            .is_ok()
    }
}

/// What a certificate of a carrier is for is said by another extension (RFC 8226 §9).
struct AnyUse;

impl ExtendedKeyUsageValidator for AnyUse {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    use super::*;

    #[test]
    fn rfc7518_3_4_what_is_signed_is_verified_and_nothing_else() {
        let pair = KeyPair::generate().unwrap();
        let key = SigningKey::from_pem(pair.serialize_pem().as_bytes()).unwrap();
        let signature = key.sign(b"text").unwrap();
        let point = pair.public_key_raw();
        assert!(verifies(point, b"text", &signature));
        let mut wrong = signature;
        wrong[40] ^= 1;
        assert!(!verifies(point, b"text", &wrong) && !verifies(point, b"test", &signature));
        assert!(!verifies(&point[1..], b"text", &signature) && !verifies(point, b"text", &signature[..63]));
        for (name, pem, expected) in [
            ("nothing", String::new(), "there is no private key in it"),
            (
                "another curve",
                KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem(),
                "its key is none of P-256",
            ),
        ] {
            assert_eq!(SigningKey::from_pem(pem.as_bytes()).err(), Some(expected), "{name}");
        }
    }

    #[test]
    fn rfc5280_6_a_chain_leads_to_whom_we_believe() {
        let is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pair = || KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = is_ca;
        let (root_key, middle_key, leaf_key) = (pair(), pair(), pair());
        let root = ca.self_signed(&root_key).unwrap();
        let root_issuer = Issuer::from_params(&ca, &root_key);
        let mut middle_params = CertificateParams::new(vec!["middle".to_owned()]).unwrap();
        middle_params.is_ca = is_ca;
        middle_params.distinguished_name.push(rcgen::DnType::CommonName, "middle");
        let middle = middle_params.signed_by(&middle_key, &root_issuer).unwrap();
        let leaf = CertificateParams::new(Vec::new()).unwrap();
        let leaf = leaf.signed_by(&leaf_key, &Issuer::from_params(&middle_params, &middle_key)).unwrap();
        let now = 1_800_000_000;
        let (leaf, between) = (leaf.der().to_vec(), vec![middle.der().to_vec()]);
        let mut authorities = Authorities::default();
        assert!(!authorities.vouch(&leaf, &between, now), "nobody is believed");
        authorities.trust(root.pem().as_bytes()).unwrap();
        assert!(authorities.vouch(&leaf, &between, now));
        assert!(!authorities.vouch(&leaf, &[], now), "a link is missing");
        assert!(!authorities.vouch(&leaf, &between, 10), "before its time");
        authorities.know(middle.pem().as_bytes()).unwrap();
        assert!(authorities.vouch(&leaf, &[], now), "the link is known here");
        assert!(authorities.vouch(root.der(), &[], now), "it is believed itself");
        assert!(!authorities.vouch(b"x", &[], now));
    }
}
