//! Phones that register over TLS, on connections that stay or on new ones, and a manager client that logs in over it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::message::{authorization, header, status};
use crate::pace::Pacer;

/// Phones at work at once on connections that stay, each waiting for its answers.
const OPEN: usize = 80;
/// Phones at work at once on new connections: fewer than the program lets one address have before it has registered.
const COMING: usize = 20;
/// How long the program may take for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What precedes a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Nothing: the connection is open.
    None,
    /// A new connection that goes on with a session of an old one.
    Resumed,
    /// A new connection that knows nothing.
    Full,
}

/// Phones at work; they stop when this goes.
#[derive(Debug)]
pub struct SecureRegistrars {
    registered: Arc<AtomicU64>,
    _crews: Vec<Pacer>,
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

#[derive(Debug, Clone)]
struct Client {
    server: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    secret: String,
}

impl SecureRegistrars {
    /// Lets `phones` phones, named `phone0` and so on, register in turn, together `rate` times a second, with a server
    /// that proves to be `name` by the authority in the file.
    pub fn start(
        server: SocketAddr,
        (name, authority): (&'static str, &Path),
        phones: u64,
        secret: &str,
        (rate, handshake): (u32, Handshake),
    ) -> Self {
        let client = Client::new(server, (name, authority), secret, handshake);
        let registered = Arc::new(AtomicU64::new(0));
        let crews = if handshake == Handshake::None { OPEN } else { COMING };
        let pacers = (0..crews as u64).map(|crew| {
            let (client, counter) = (client.clone(), registered.clone());
            let mut open = (handshake == Handshake::None).then(|| {
                let mut stream = client.connect();
                client.register(&mut stream, crew % phones, 0);
                stream
            });
            Pacer::start_shared(rate, (crew, crews), move |number| {
                match &mut open {
                    Some(stream) => client.register(stream, crew % phones, number + 1),
                    None => client.register(&mut client.connect(), number % phones, number + 1),
                }
                counter.fetch_add(1, Relaxed);
            })
        });
        Self { _crews: pacers.collect(), registered }
    }
    /// Registrations that have been granted; one that is refused ends the bench.
    pub fn registered(&self) -> u64 {
        self.registered.load(Relaxed)
    }
}

/// A manager client that comes over TLS, with a whole handshake each time.
#[derive(Debug)]
pub struct SecureManager {
    client: Client,
    user: String,
}

impl SecureManager {
    /// A client of a server that proves to be `name` by the authority in the file.
    pub fn new(server: SocketAddr, name: (&'static str, &Path), (user, secret): (&str, &str)) -> Self {
        Self { client: Client::new(server, name, secret, Handshake::Full), user: user.to_owned() }
    }
    /// Connects, logs in and leaves; how long it took until it was let in.
    pub fn log_in(&self) -> Duration {
        let begin = Instant::now();
        let mut stream = self.client.connect();
        let login = format!(
            "Action: Login\r\nUsername: {}\r\nSecret: {}\r\nEvents: off\r\n\r\n",
            self.user, self.client.secret
        );
        stream.write_all(login.as_bytes()).and_then(|()| stream.flush()).expect("the connection stands");
        let mut said = String::new();
        let mut buffer = [0; 4096];
        while !said.contains("Response: Success") {
            let length = stream.read(&mut buffer).expect("an answer");
            assert!(length > 0 && !said.contains("Response: Error"), "not let in: {said}");
            said.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        begin.elapsed()
    }
}

impl Client {
    fn new(
        server: SocketAddr,
        (name, authority): (&'static str, &Path),
        secret: &str,
        handshake: Handshake,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(authority).expect("the authority's certificate");
        roots.add(root).expect("an authority");
        let mut config =
            ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        if handshake == Handshake::Full {
            config.resumption = Resumption::disabled();
        }
        let name = ServerName::try_from(name).expect("a name");
        Self { server, name, config: Arc::new(config), secret: secret.to_owned() }
    }
    fn connect(&self) -> Stream {
        let stream = TcpStream::connect(self.server).expect("the program takes connections");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let connection = ClientConnection::new(self.config.clone(), self.name.clone()).expect("a session");
        StreamOwned::new(connection, stream)
    }
    fn register(&self, stream: &mut Stream, phone: u64, number: u64) {
        let sequence = 1 + 2 * number;
        let challenge = self.ask(stream, phone, sequence, "");
        assert_eq!(status(&challenge), Some(401), "{challenge}");
        let challenge = header(&challenge, "WWW-Authenticate").expect("a challenge");
        let uri = format!("sip:{}", self.server);
        let proof = authorization(challenge, &format!("phone{phone}"), &self.secret, "REGISTER", &uri);
        let granted = self.ask(stream, phone, sequence + 1, &proof);
        assert_eq!(status(&granted), Some(200), "{granted}");
    }
    fn ask(&self, stream: &mut Stream, phone: u64, sequence: u64, proof: &str) -> String {
        let server = self.server;
        let request = format!(
            "REGISTER sip:{server} SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.2:5061;rport;branch=z9hG4bK-{phone}-{sequence}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:phone{phone}@{server}>;tag=f{phone}\r\nTo: <sip:phone{phone}@{server}>\r\n\
             Call-ID: load-{phone}\r\nCSeq: {sequence} REGISTER\r\nContact: <sip:phone{phone}@127.0.0.2:5061;transport=tls>\r\n\
             Expires: 3600\r\nAllow: INVITE, ACK, CANCEL, OPTIONS, BYE, REFER, NOTIFY, INFO\r\n\
             User-Agent: loadbench\r\n{proof}Content-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).expect("the connection stands");
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !answer.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut buffer).expect("an answer");
            assert!(length > 0, "the program has closed the connection");
            answer.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8(answer).expect("text")
    }
}
