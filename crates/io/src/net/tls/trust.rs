//! Whom we believe: chains of certificates against the site's list of authorities.
//!
//! The chain, its dates, constraints, extended usages and revocation are webpki's work (RFC 5280). This adds what it
//! leaves to its caller: key usage, names as SIP has them (RFC 5922), and certificates that a site trusts by themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use webpki::{
    CertRevocationList, EndEntityCert, Error as Flaw, KeyUsage, RevocationCheckDepth,
    RevocationOptionsBuilder, UnknownStatusPolicy,
};

use super::x509;

/// Authorities, revocation lists, and certificates trusted by themselves.
#[derive(Debug)]
pub(super) struct Authorities {
    pub(super) anchors: Vec<TrustAnchor<'static>>,
    pub(super) lists: Vec<CertRevocationList<'static>>,
    /// The site's list, certificate by certificate: one that is presented and stands in it needs no issuer.
    pub(super) listed: BTreeSet<Vec<u8>>,
}

/// What a certificate is to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Server,
    Client,
}

/// Verifies peers as one transport is told to.
#[derive(Debug)]
pub(super) struct Trust {
    pub(super) authorities: Arc<Authorities>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    /// `verify_server` or `verify_client`; without, any certificate will do whose key the peer has.
    pub(super) verifies: bool,
    /// `require_client_cert`.
    pub(super) requires: bool,
    /// `allow_wildcard_certs`.
    pub(super) wildcards: bool,
    /// What servers tell clients of the authorities they know; empty: nothing.
    pub(super) hints: Vec<DistinguishedName>,
}

/// A reason of ours that webpki has no word for.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("the certificate's key usage does not allow signatures (digitalSignature)")]
    NotForSignatures,
    #[error("an authority in the chain may not sign certificates (keyCertSign)")]
    NotForCertificates,
    #[error("the certificate fits only by a wildcard, which allow_wildcard_certs=no refuses")]
    Wildcard,
    #[error("{0}")]
    Chain(Flaw),
}

impl Reason {
    fn error(self) -> Error {
        CertificateError::Other(OtherError(Arc::new(self))).into()
    }
}

impl Trust {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        side: Side,
        now: UnixTime,
    ) -> Result<(), Error> {
        match x509::key_usage(end_entity) {
            Ok(Some(usage)) if usage & x509::DIGITAL_SIGNATURE == 0 => {
                return Err(Reason::NotForSignatures.error());
            }
            Ok(_) => {}
            Err(()) => return Err(CertificateError::BadEncoding.into()),
        }
        if self.authorities.listed.contains(end_entity.as_ref()) {
            return in_time(end_entity, now);
        }
        let certificate = EndEntityCert::try_from(end_entity).map_err(of_flaw)?;
        let lists: Vec<&CertRevocationList<'_>> = self.authorities.lists.iter().collect();
        // Who gives lists means them; certificates of issuers that they do not speak of are taken as they are.
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            options
                .with_depth(RevocationCheckDepth::Chain)
                .with_status_policy(UnknownStatusPolicy::Allow)
                .build()
        });
        let usage = match side {
            Side::Server => KeyUsage::server_auth(),
            Side::Client => KeyUsage::client_auth(),
        };
        let path = certificate
            .verify_for_usage(
                self.algorithms.all,
                &self.authorities.anchors,
                intermediates,
                now,
                usage,
                revocation,
                None,
            )
            .map_err(of_flaw)?;
        let mut issuers = path.intermediate_certificates();
        let forbidden = |usage: Result<Option<u8>, ()>| {
            usage.map_or(true, |u| u.is_some_and(|u| u & x509::KEY_CERT_SIGN == 0))
        };
        if issuers.any(|issuer| forbidden(x509::key_usage(&issuer.der()))) {
            return Err(Reason::NotForCertificates.error());
        }
        Ok(())
    }

    /// RFC 5922 §7.2: identities are the SIP URIs of the certificate, and its DNS names when it has none; the subject's
    /// common name is no identity.
    fn is_named(&self, certificate: &EndEntityCert<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        let ServerName::DnsName(host) = name else {
            return certificate.verify_is_valid_for_subject_name(name).map_err(of_flaw);
        };
        let host = host.as_ref();
        let sip: Vec<&str> = certificate.valid_uri_names().filter_map(sip_domain).collect();
        if !sip.is_empty() {
            let ours = sip.iter().any(|domain| domain.eq_ignore_ascii_case(host));
            return if ours { Ok(()) } else { Err(CertificateError::NotValidForName.into()) };
        }
        certificate.verify_is_valid_for_subject_name(name).map_err(of_flaw)?;
        let exactly = || certificate.valid_dns_names().any(|known| known.eq_ignore_ascii_case(host));
        if self.wildcards || exactly() { Ok(()) } else { Err(Reason::Wildcard.error()) }
    }
}

/// The domain of `sip:domain`; URIs with a user name a person, who may not speak for the domain.
fn sip_domain(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let domain = rest.split([';', '?']).next().unwrap_or(rest);
    let is_sip = scheme.eq_ignore_ascii_case("sip") || scheme.eq_ignore_ascii_case("sips");
    (is_sip && !domain.is_empty() && !domain.contains('@')).then_some(domain)
}

fn in_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let Some((from, until)) = x509::validity(certificate) else {
        return Err(CertificateError::BadEncoding.into());
    };
    match now.as_secs() {
        now if now < from => Err(CertificateError::NotValidYet.into()),
        now if now > until => Err(CertificateError::Expired.into()),
        _ => Ok(()),
    }
}

/// As the alert that RFC 8446 §6.2 has for it.
fn of_flaw(flaw: Flaw) -> Error {
    match flaw {
        Flaw::CertExpired { .. } | Flaw::InvalidCertValidity => CertificateError::Expired,
        Flaw::CertNotValidYet { .. } => CertificateError::NotValidYet,
        Flaw::CertNotValidForName(_) => CertificateError::NotValidForName,
        Flaw::CertRevoked => CertificateError::Revoked,
        Flaw::UnknownIssuer => CertificateError::UnknownIssuer,
        Flaw::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Flaw::BadDer | Flaw::BadDerTime | Flaw::TrailingData(_) => CertificateError::BadEncoding,
        other => CertificateError::Other(OtherError(Arc::new(Reason::Chain(other)))),
    }
    .into()
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verifies {
            self.verify(end_entity, intermediates, Side::Server, now)?;
            self.is_named(&EndEntityCert::try_from(end_entity).map_err(of_flaw)?, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Trust {
    fn client_auth_mandatory(&self) -> bool {
        self.requires
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.verifies {
            self.verify(end_entity, intermediates, Side::Client, now)?;
        }
        Ok(ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
