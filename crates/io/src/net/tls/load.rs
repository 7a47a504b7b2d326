//! Certificates, keys and lists from files, and what a transport offers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CipherSuite, ClientConfig, DistinguishedName, ServerConfig, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use webpki::{CertRevocationList, EndEntityCert, OwnedCertRevocationList, anchor_from_trusted_cert};

use super::trust::{Authorities, Trust};

/// Authorities of this machine, for `verify_server` without a list (Debian's `ca-certificates`).
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
const LOCKED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const LOCKED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// Longest file that is read: ten times the list of a whole distribution.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most files of a folder of authorities.
const FOLDER_FILES_MAX: usize = 4096;
/// Subjects of authorities that servers tell clients, bytes: a list that fills its own record helps nobody.
const HINT_BYTES_MAX: usize = 4096;
/// Sessions that can be resumed with servers.
const RESUMABLE_SERVERS: usize = 256;

/// Which versions are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    All,
    /// 1.2 only.
    Tls12,
    /// 1.3 only.
    Tls13,
}

/// The password of a private key. Printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct KeyPassword(pub String);

impl core::fmt::Debug for KeyPassword {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("KeyPassword(…)")
    }
}

/// What a configuration says of TLS; paths are absolute, empty ones stand for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsSettings {
    /// Certificates, the own one first, in PEM.
    pub cert_file: PathBuf,
    /// The key; empty: it is in `cert_file`.
    pub key_file: PathBuf,
    /// What the key is under, when its file says that it is under something.
    pub key_password: KeyPassword,
    /// Authorities and revocation lists, in PEM.
    pub ca_list_file: PathBuf,
    /// A folder of such files.
    pub ca_list_path: PathBuf,
    /// Versions.
    pub versions: Versions,
    /// Suites by OpenSSL's or the RFC's name, preferred first; empty: all.
    pub ciphers: Vec<String>,
    /// Clients' certificates are believed only when an authority signed them.
    pub verify_client: bool,
    /// Clients have to present a certificate.
    pub require_client_cert: bool,
    /// Servers have to prove their name.
    pub verify_server: bool,
    /// By a wildcard too.
    pub allow_wildcard_certs: bool,
}

/// Files that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError {
    /// The option whose file it is, as `pjsip.conf` calls it.
    pub option: &'static str,
    /// What is wrong with which file.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

/// What a listener presents, and whom a transport believes. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Tls {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    /// The certificates that clients are shown one of.
    own: Arc<Own>,
    /// What it was made of; one for each certificate that it may show.
    pub(super) read: Arc<[Arc<Read>]>,
}

/// Settings and the bytes of their files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Read {
    settings: TlsSettings,
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<Vec<u8>>,
}

/// OpenSSL's names of the suites that are built in (`openssl ciphers`), and the RFCs' numbers; preferred first. The one that
/// everybody has to know (RFC 8446 §9.1) costs least: processors hash by SHA-256 four times as fast as by SHA-384.
const SUITES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

fn suite(name: &str) -> Option<CipherSuite> {
    let known = SUITES.iter().find(|(openssl, id)| {
        let rfc = format!("{id:?}").replace("TLS13_", "TLS_");
        name.eq_ignore_ascii_case(openssl) || name.eq_ignore_ascii_case(&rfc)
    });
    known.map(|(_, id)| *id)
}

/// The names that stand for no suite which is built in.
pub fn unknown_ciphers(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| suite(name).is_none()).collect()
}

/// The suites of the list. TLS 1.3's are its own matter, as in OpenSSL: a list that names none of them leaves all of them.
fn suites(names: &[String]) -> Vec<SupportedCipherSuite> {
    let built_in =
        |id: CipherSuite| aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| suite.suite() == id).copied();
    let all: Vec<_> = SUITES.iter().filter_map(|(_, id)| built_in(*id)).collect();
    let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let mut chosen: Vec<_> = names.iter().filter_map(|name| built_in(suite(name)?)).collect();
    let (some_13, some_12) = (chosen.iter().any(is_13), chosen.iter().any(|suite| !is_13(suite)));
    if !some_13 {
        chosen.splice(0..0, all.iter().filter(|suite| is_13(suite)).copied());
    }
    if !some_12 {
        chosen.extend(all.iter().filter(|suite| !is_13(suite)));
    }
    chosen
}

/// The certificates of those that share a listener, in their order; of one transport one, or none.
#[derive(Debug)]
struct Own(Vec<Option<Arc<CertifiedKey>>>);

impl Own {
    /// Whose certificate is for the name that a client asks for (RFC 6066 §3); the first when nobody's is.
    fn chosen(&self, name: Option<&str>) -> usize {
        let [_, _, ..] = &*self.0 else { return 0 };
        let Some(name) = name.and_then(|name| ServerName::try_from(name).ok()) else { return 0 };
        let is_for = |own: &Option<Arc<CertifiedKey>>| {
            let first = own.as_ref().and_then(|own| own.cert.first());
            let read = first.and_then(|first| EndEntityCert::try_from(first).ok());
            read.is_some_and(|read| read.verify_is_valid_for_subject_name(&name).is_ok())
        };
        self.0.iter().position(is_for).unwrap_or(0)
    }
}

impl ResolvesServerCert for Own {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.get(self.chosen(hello.server_name())).cloned().flatten()
    }
}
impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.first().cloned().flatten()
    }
    fn has_certs(&self) -> bool {
        self.0.first().is_some_and(Option::is_some)
    }
}

impl Tls {
    /// Reads the files and makes of them what connections need. Never asks the network.
    pub fn load(settings: &TlsSettings) -> Result<Self, TlsError> {
        let read = Arc::new(Read::files(settings)?);
        let provider = Arc::new(CryptoProvider {
            cipher_suites: suites(&settings.ciphers),
            ..aws_lc_rs::default_provider()
        });
        let versions: &[&SupportedProtocolVersion] = match settings.versions {
            Versions::All => &[&rustls::version::TLS13, &rustls::version::TLS12],
            Versions::Tls12 => &[&rustls::version::TLS12],
            Versions::Tls13 => &[&rustls::version::TLS13],
        };
        let own = Arc::new(Own(vec![own_certificate(settings, &read, &provider)?]));
        let authorities = Arc::new(authorities(&read.authorities)?);
        let trust = |verifies, requires, hints| {
            Arc::new(Trust {
                authorities: authorities.clone(),
                algorithms: provider.signature_verification_algorithms,
                verifies,
                requires,
                wildcards: settings.allow_wildcard_certs,
                hints,
            })
        };
        let made_of_parts_that_fit = |error: rustls::Error| TlsError {
            option: "cipher",
            what: format!("the suites and versions do not go together: {error}"),
            remedy: "remove cipher= or method=",
        };
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(made_of_parts_that_fit)?;
        let server = if settings.verify_client || settings.require_client_cert {
            let hints = if settings.verify_client { hints(&authorities) } else { Vec::new() };
            let trust = trust(settings.verify_client, settings.require_client_cert, hints);
            server.with_client_cert_verifier(trust)
        } else {
            server.with_no_client_auth()
        };
        let mut server = server.with_cert_resolver(own.clone());
        // What the configuration prefers, and not the peer.
        server.ignore_client_order = true;
        // A ticket holds the session; the server remembers nothing of it.
        server.ticketer = aws_lc_rs::Ticketer::new().map_err(made_of_parts_that_fit)?;
        server.send_tls13_tickets = 1;
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(made_of_parts_that_fit)?
            .dangerous()
            .with_custom_certificate_verifier(trust(settings.verify_server, false, Vec::new()))
            .with_client_cert_resolver(own.clone());
        client.resumption = Resumption::in_memory_sessions(RESUMABLE_SERVERS);
        Ok(Self { server: Arc::new(server), client: Arc::new(client), own, read: Arc::new([read]) })
    }
    /// The first of `all`, that shows clients the certificate of whichever of them is for the name they ask for
    /// (RFC 6066 §3). Versions, suites and whom it believes are the first's. `None` without any.
    pub fn by_name(all: &[Self]) -> Option<Self> {
        let (first, others) = all.split_first()?;
        if others.is_empty() {
            return Some(first.clone());
        }
        let own = Arc::new(Own(all.iter().flat_map(|tls| tls.own.0.first().cloned()).collect()));
        let mut server = ServerConfig::clone(&first.server);
        server.cert_resolver = own.clone();
        Some(Self {
            server: Arc::new(server),
            client: first.client.clone(),
            own,
            read: all.iter().flat_map(|tls| tls.read.iter().cloned()).collect(),
        })
    }
    /// Which of those that [`Tls::by_name`] was made of a client meets that asks for `name`.
    pub fn chosen(&self, name: Option<&str>) -> usize {
        self.own.chosen(name)
    }
    /// Whether there is a certificate that clients can be shown.
    pub fn has_certificate(&self) -> bool {
        self.read.first().is_some_and(|read| !read.certificate.is_empty())
    }
}

impl Read {
    fn files(settings: &TlsSettings) -> Result<Self, TlsError> {
        let optional = |path: &Path, option| if is_none(path) { Ok(Vec::new()) } else { read(path, option) };
        let certificate = optional(&settings.cert_file, "cert_file")?;
        let key = optional(&settings.key_file, "priv_key_file")?;
        let mut authorities = Vec::new();
        if !is_none(&settings.ca_list_file) {
            authorities.push(read(&settings.ca_list_file, "ca_list_file")?);
        }
        if !is_none(&settings.ca_list_path) {
            authorities.extend(folder(&settings.ca_list_path)?);
        }
        if authorities.is_empty() && settings.verify_server && !settings.verify_client {
            // Without the package there is nobody to believe, and the log says so of each connection.
            authorities.extend(std::fs::read(SYSTEM_AUTHORITIES));
        }
        Ok(Self { settings: settings.clone(), certificate, key, authorities })
    }
}

fn is_none(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

fn read(path: &Path, option: &'static str) -> Result<Vec<u8>, TlsError> {
    let fail = |what: String, remedy| TlsError { option, what, remedy };
    let found = std::fs::metadata(path)
        .and_then(|meta| if meta.len() > FILE_BYTES_MAX { Ok(Vec::new()) } else { std::fs::read(path) });
    match found {
        Ok(bytes) if bytes.is_empty() => Err(fail(
            format!("{} is empty, or larger than 4 MiB", path.display()),
            "it has to hold certificates or keys in PEM",
        )),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(fail(
            format!("{} cannot be read: {error}", path.display()),
            "the file must exist and be readable by the user Strowger runs as",
        )),
    }
}

/// The files of a folder in the order of their names; others than PEM stay out.
fn folder(path: &Path) -> Result<Vec<Vec<u8>>, TlsError> {
    let fail = |error: std::io::Error| TlsError {
        option: "ca_list_path",
        what: format!("{} cannot be read: {error}", path.display()),
        remedy: "the folder must exist and be readable by the user Strowger runs as",
    };
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)?.take(FOLDER_FILES_MAX) {
        names.push(entry.map_err(fail)?.path());
    }
    names.sort();
    let files = names.iter().filter(|name| name.is_file()).filter_map(|name| read(name, "ca_list_path").ok());
    Ok(files.collect())
}

fn own_certificate(
    settings: &TlsSettings,
    read: &Read,
    provider: &CryptoProvider,
) -> Result<Option<Arc<CertifiedKey>>, TlsError> {
    if read.certificate.is_empty() {
        return Ok(None);
    }
    let (cert, key) = (settings.cert_file.display().to_string(), settings.key_file.display().to_string());
    let fail = |option, what: String, remedy| TlsError { option, what, remedy };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&read.certificate).filter_map(Result::ok).collect();
    if chain.is_empty() {
        return Err(fail(
            "cert_file",
            format!("{cert} holds no certificate in PEM"),
            "convert it: openssl x509 -inform der -in FILE -out FILE.pem",
        ));
    }
    let (text, file) =
        if is_none(&settings.key_file) { (&read.certificate, &cert) } else { (&read.key, &key) };
    let key = match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => key,
        Err(_) => unlocked(text, file, &settings.key_password)?,
    };
    let key = provider.key_provider.load_private_key(key).map_err(|error| {
        fail(
            "priv_key_file",
            format!("the key in {file} cannot be used: {error}"),
            "make an ECDSA key (P-256) or an RSA key of 2048 to 4096 bits",
        )
    })?;
    let own = CertifiedKey::new(chain, key);
    // A certificate that cannot be compared is still the site's own; peers judge it.
    if let Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) = own.keys_match() {
        return Err(fail(
            "priv_key_file",
            format!("the key in {file} is not that of the certificate in {cert}"),
            "certificate and key have to be made together; the own certificate is the first in its file",
        ));
    }
    Ok(Some(Arc::new(own)))
}

/// A key that is under a password (PKCS #8, RFC 5958 §3, with PBES2 of RFC 8018 §6.2).
fn unlocked(text: &[u8], file: &str, password: &KeyPassword) -> Result<PrivateKeyDer<'static>, TlsError> {
    let fail = |option, what: &str, remedy| TlsError { option, what: format!("{file} holds {what}"), remedy };
    let text = String::from_utf8_lossy(text);
    let Some(begin) = text.find(LOCKED_BEGIN) else {
        return Err(match text.contains("Proc-Type: 4,ENCRYPTED") {
            true => fail(
                "priv_key_file",
                "its key under a password in OpenSSL's old form",
                "write it anew in the form of PKCS #8: openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out FILE.key",
            ),
            false => fail(
                "priv_key_file",
                "no private key in PEM",
                "name the file of the private key in priv_key_file",
            ),
        });
    };
    if password.0.is_empty() {
        let remedy = "write it as password, or a copy of the key without one, readable by Strowger's user only: \
                      openssl pkey -in FILE -out FILE.key";
        return Err(fail("priv_key_file", "its key only under a password", remedy));
    }
    let rest = text.get(begin..).unwrap_or_default();
    let end = rest.find(LOCKED_END).map_or(rest.len(), |at| at + LOCKED_END.len());
    let block = rest.get(..end).unwrap_or_default();
    let broken = |_| {
        let remedy = "write it anew: openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out FILE.key";
        fail("priv_key_file", "a key under a password that cannot be read", remedy)
    };
    let (_, sealed) = SecretDocument::from_pem(block).map_err(|_| broken(()))?;
    let sealed = EncryptedPrivateKeyInfoRef::try_from(sealed.as_bytes()).map_err(|_| broken(()))?;
    let opened = sealed.decrypt(&password.0).map_err(|_| {
        let remedy =
            "try it: openssl pkey -in FILE -noout; if that takes it, write the key anew with -v2 aes-256-cbc";
        fail("password", "its key under another password", remedy)
    })?;
    Ok(PrivateKeyDer::Pkcs8(opened.as_bytes().to_vec().into()))
}

fn authorities(files: &[Vec<u8>]) -> Result<Authorities, TlsError> {
    let mut found =
        Authorities { anchors: Vec::new(), lists: Vec::new(), listed: std::collections::BTreeSet::new() };
    for file in files {
        for certificate in CertificateDer::pem_slice_iter(file).filter_map(Result::ok) {
            // What webpki cannot read it cannot believe either.
            if let Ok(anchor) = anchor_from_trusted_cert(&certificate) {
                found.anchors.push(anchor.to_owned());
            }
            found.listed.insert(certificate.to_vec());
        }
        for list in CertificateRevocationListDer::pem_slice_iter(file).filter_map(Result::ok) {
            // A list that cannot be used must not pass for one that revokes nobody.
            let list = OwnedCertRevocationList::from_der(&list).map_err(|flaw| TlsError {
                option: "ca_list_file",
                what: format!("a revocation list (X509 CRL) cannot be used: {flaw}"),
                remedy: "fetch it anew from its authority",
            })?;
            found.lists.push(CertRevocationList::Owned(list));
        }
    }
    Ok(found)
}

fn hints(authorities: &Authorities) -> Vec<DistinguishedName> {
    let names: Vec<DistinguishedName> = authorities
        .anchors
        .iter()
        .map(|anchor| DistinguishedName::in_sequence(anchor.subject.as_ref()))
        .collect();
    let bytes: usize = names.iter().map(|name| name.as_ref().len()).sum();
    if bytes > HINT_BYTES_MAX { Vec::new() } else { names }
}
