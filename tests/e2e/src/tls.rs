//! A client of TLS inside the test, for those who connect a thousand times: [`Secure`](crate::Secure) is a process of
//! openssl each.

use crate::secure::Authority;
use crate::wait::SOON;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use std::io::{ErrorKind, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

/// A connection under TLS.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects as often as it is asked; each connection goes on with the session of the one before.
#[derive(Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// A client that wants servers to prove by this authority that they are `name`.
    pub fn new(authority: &Authority, name: &'static str) -> Self {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(authority.list()).expect("the authority's certificate");
        roots.add(root).expect("an authority");
        let config =
            ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        Self { config: config.into(), name: ServerName::try_from(name).expect("a name") }
    }
    /// Connects and shakes hands.
    pub fn connect(&self, server: SocketAddr) -> TlsStream {
        let mut socket = TcpStream::connect(server).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(SOON)).expect("a time-out");
        let mut session = ClientConnection::new(self.config.clone(), self.name.clone()).expect("a session");
        while session.is_handshaking() {
            session.complete_io(&mut socket).expect("a handshake");
        }
        StreamOwned::new(session, socket)
    }
    /// Whether a connection to this server goes on with the session of one before.
    pub fn resumes(&self, server: SocketAddr) -> bool {
        self.connect(server).conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }
    /// Sends these bytes on a connection of their own, ends our half, and waits until the server has ended its half.
    pub fn pass(&self, server: SocketAddr, bytes: &[u8]) {
        let mut stream = self.connect(server);
        // The server may hang up in the middle of it.
        let _said = stream.write_all(bytes).and_then(|()| {
            stream.conn.send_close_notify();
            stream.flush()?;
            stream.sock.shutdown(Shutdown::Write)
        });
        until_closed(&mut stream);
    }
}

/// The same without TLS.
pub fn pass(server: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(server).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a time-out");
    let _said = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    until_closed(&mut stream);
}

/// Throws away what comes until the other side has hung up, in whatever manner.
fn until_closed(stream: &mut impl Read) {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("who has ended their half of a connection is kept for {SOON:?}");
            }
            Ok(0) | Err(_) => return,
        }
    }
}
