//! TLS inside flows: what a listener or a transport presents and believes, and the state of one connection.
//!
//! The protocol is rustls', fed with bytes and asked for bytes; the sockets stay the reactor's. A flow under TLS is
//! reported as accepted or connected when its handshake is over, so that its owner never sees a peer that has not proved
//! what it was asked to prove.

mod load;
#[cfg(test)]
pub(super) mod tests;
mod trust;
mod x509;

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConnection, Connection, Error, PeerIncompatible, ServerConnection};

pub use load::{KeyPassword, Tls, TlsError, TlsSettings, Versions, unknown_ciphers};

/// Names that a server can prove: host names and addresses.
pub fn is_provable(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

/// Why a connection could not be made secure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    /// What is wrong, in the words of the protocol.
    pub what: String,
    /// What the administrator can do.
    pub remedy: &'static str,
}

/// One connection's cryptography.
pub(super) struct Session {
    connection: Connection,
    /// What the owner has sent before there was a key to send it under.
    early: Vec<u8>,
    /// The beginning of what came, to say what an outdated peer speaks.
    hello: Vec<u8>,
    /// The peer, and whether we called it.
    pub(super) remote: SocketAddr,
    pub(super) outgoing: bool,
}

/// What has become of a session after bytes came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It goes on.
    Open,
    /// The peer has said goodbye.
    Over,
}

/// Bytes of a connection that are kept to name its version: the header of the record, that of the message, the version.
const HELLO_BYTES: usize = 11;

impl Session {
    /// Answers a client.
    pub(super) fn server(tls: &Tls, remote: SocketAddr) -> Result<Self, TlsFault> {
        let connection =
            ServerConnection::new(tls.server.clone()).map_err(|error| fault(&error, &[], false))?;
        Ok(Self::new(connection.into(), remote, false))
    }
    /// Asks a server that has to prove to be `name`.
    pub(super) fn client(tls: &Tls, name: &str, remote: SocketAddr) -> Result<Self, TlsFault> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsFault {
            what: format!("'{name}' is no name that a certificate could prove"),
            remedy: "write a host name or an address",
        })?;
        let connection =
            ClientConnection::new(tls.client.clone(), name).map_err(|error| fault(&error, &[], true))?;
        Ok(Self::new(connection.into(), remote, true))
    }
    fn new(mut connection: Connection, remote: SocketAddr, outgoing: bool) -> Self {
        // The reactor bounds what waits to be written; a second bound here would silently drop what is above it.
        connection.set_buffer_limit(None);
        Self { connection, early: Vec::new(), hello: Vec::new(), remote, outgoing }
    }
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }
    /// The name that a client has asked for (RFC 6066 §3); none when we are the client.
    pub(super) fn asked_for(&self) -> Option<&str> {
        match &self.connection {
            Connection::Server(server) => server.server_name(),
            Connection::Client(_) => None,
        }
    }
    /// Bytes of the owner that wait for the handshake.
    pub(super) fn waiting(&self) -> usize {
        self.early.len()
    }
    /// Takes what the owner sends.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.is_handshaking() {
            self.early.extend_from_slice(bytes);
        } else {
            // Without a limit the buffer takes everything.
            let _taken = self.connection.writer().write_all(bytes);
        }
    }
    /// Sends what waited for the handshake.
    pub(super) fn send_early(&mut self) {
        let early = std::mem::take(&mut self.early);
        let _taken = self.connection.writer().write_all(&early);
    }
    /// Says goodbye.
    pub(super) fn end(&mut self) {
        self.connection.send_close_notify();
    }
    /// Moves to `out` what the peer is to get.
    pub(super) fn take_output(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to memory cannot fail.
            if self.connection.write_tls(out).is_err() {
                return;
            }
        }
    }
    /// Takes what came and hands out what it says, in portions of `plain`. An error is final; `take_output` has the alert.
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        plain: &mut [u8],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Progress, TlsFault> {
        let room = HELLO_BYTES.saturating_sub(self.hello.len());
        self.hello.extend(bytes.iter().take(room));
        loop {
            // The library takes as much as it has room for, and makes room by working on it.
            let taken = if bytes.is_empty() { 0 } else { self.connection.read_tls(&mut bytes).unwrap_or(0) };
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => return Err(fault(&error, &self.hello, self.outgoing)),
            };
            let over = loop {
                match self.connection.reader().read(plain) {
                    Ok(0) => break true,
                    Ok(count) => sink(plain.get(..count).unwrap_or(&[])),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                    Err(_) => break true,
                }
            };
            if over || state.peer_has_closed() {
                return Ok(Progress::Over);
            }
            if taken == 0 {
                return Ok(Progress::Open);
            }
        }
    }
}

/// The version a peer's first message offers, when it is too old.
fn outdated(hello: &[u8]) -> Option<&'static str> {
    // Record: type 22, version, length. Message: type 1, length (3), version (RFC 5246 §6.2.1, §7.4.1.2).
    match hello {
        [0x16, 3, _, _, _, 1, _, _, _, 3, 0, ..] => Some("SSL 3"),
        [0x16, 3, _, _, _, 1, _, _, _, 3, 1, ..] => Some("TLS 1.0"),
        [0x16, 3, _, _, _, 1, _, _, _, 3, 2, ..] => Some("TLS 1.1"),
        // The greeting of SSL 2, in which old stacks asked for later versions too.
        [0x80..=0xbf, _, 1, 0 | 2 | 3, ..] => Some("SSL 2"),
        _ => None,
    }
}

fn fault(error: &Error, hello: &[u8], outgoing: bool) -> TlsFault {
    if let (false, Some(version)) = (outgoing, outdated(hello)) {
        return TlsFault {
            what: format!("the peer speaks {version} only, which is broken and not built in"),
            remedy: "update its firmware or switch TLS 1.2 on in its settings; else let it use protocol=tcp or udp \
                     inside a network of its own",
        };
    }
    let not_tls = !outgoing && !matches!(hello, [] | [0x16, ..]);
    let (what, remedy) = match error {
        _ if not_tls => (
            "what came is not TLS".to_owned(),
            "the peer has to be set to TLS, or to another port of this server",
        ),
        Error::PeerIncompatible(
            PeerIncompatible::NoCipherSuitesInCommon
            | PeerIncompatible::NoSignatureSchemesInCommon
            | PeerIncompatible::NoKxGroupsInCommon,
        ) => (
            error.to_string(),
            "both ends need an ECDHE suite with AES-GCM or ChaCha20: look at cipher= and at the peer's settings",
        ),
        Error::PeerIncompatible(_) => {
            (error.to_string(), "both ends need TLS 1.2 or 1.3: look at method= and at the peer's settings")
        }
        Error::NoCertificatesPresented => (
            "the client presented no certificate".to_owned(),
            "give it one that an authority of ca_list_file has signed, or set require_client_cert=no",
        ),
        Error::InvalidCertificate(why) => (certificate_fault(why), certificate_remedy(why, outgoing)),
        Error::AlertReceived(alert) => (
            format!("the peer refused: {}", alert_words(*alert)),
            match alert {
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateExpired
                | AlertDescription::UnsupportedCertificate => {
                    "the peer does not believe our certificate: it has to know the authority that signed cert_file, and \
                     cert_file has to hold the whole chain"
                }
                AlertDescription::CertificateRequired => {
                    "the peer wants a certificate of ours: name it in cert_file and priv_key_file"
                }
                _ => "its own log says why",
            },
        ),
        Error::General(_) => (
            "there is no certificate to present".to_owned(),
            "name one in cert_file and its key in priv_key_file",
        ),
        _ => (error.to_string(), "if it happens again, a packet capture of both ends says more"),
    };
    TlsFault { what, remedy }
}

fn alert_words(alert: AlertDescription) -> String {
    format!("{alert:?}")
}

fn certificate_fault(why: &rustls::CertificateError) -> String {
    use rustls::CertificateError as Why;
    let text = match why {
        Why::Expired | Why::ExpiredContext { .. } => "it has expired",
        Why::NotValidYet | Why::NotValidYetContext { .. } => "it is not valid yet",
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            "it is for another name (only subjectAltName counts, not the common name)"
        }
        Why::Revoked => "it is revoked",
        Why::UnknownIssuer => {
            "no authority of the list has signed it, or an intermediate certificate is missing"
        }
        Why::BadEncoding => "it cannot be read",
        Why::BadSignature => "its signature is wrong",
        Why::Other(reason) => return format!("the peer's certificate is refused: {}", reason.0),
        other => return format!("the peer's certificate is refused: {other}"),
    };
    format!("the peer's certificate is refused: {text}")
}

fn certificate_remedy(why: &rustls::CertificateError, outgoing: bool) -> &'static str {
    use rustls::CertificateError as Why;
    match why {
        Why::Expired | Why::ExpiredContext { .. } => {
            "the peer needs a new certificate; is the clock right here?"
        }
        Why::NotValidYet | Why::NotValidYetContext { .. } => "is the clock right on both ends?",
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            "write the name that the certificate has into the URI"
        }
        Why::UnknownIssuer if outgoing => {
            "add the authority to ca_list_file, or have the peer send its whole chain"
        }
        Why::UnknownIssuer => "add the authority that signed it to ca_list_file",
        _ => "the peer needs another certificate",
    }
}

impl Tls {
    /// Whether this is the same as before, to the last byte of its files.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.read, &other.read) || self.read == other.read
    }
}
