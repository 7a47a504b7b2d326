//! Peers under TLS: certificates and connections made by OpenSSL's own program.

use crate::digest;
use crate::message::Message;
use crate::place::Place;
use crate::site::SECRET;
use crate::wait::SOON;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

/// An authority of a test, in a folder of its own.
#[derive(Debug)]
pub struct Authority {
    place: Place,
    count: std::cell::Cell<u32>,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PEM of the certificate.
    pub certificate: PathBuf,
    /// PEM of the key.
    pub key: PathBuf,
}

fn openssl(words: &[&str]) {
    let output = Command::new("openssl").args(words).stdin(Stdio::null()).output().expect("openssl starts");
    assert!(output.status.success(), "openssl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Authority {
    /// Makes its key and certificate.
    pub fn new(name: &str) -> Self {
        let place = Place::new(&format!("authority-{name}"));
        place.write(".keep", "");
        let (key, certificate) = (place.join("ca.key"), place.join("ca.pem"));
        let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
        openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", &key]);
        openssl(&[
            "req",
            "-x509",
            "-new",
            "-key",
            &key,
            "-days",
            "3650",
            "-subj",
            &format!("/CN=Authority {name}"),
            "-addext",
            "keyUsage=keyCertSign,cRLSign",
            "-out",
            &certificate,
        ]);
        Self { place, count: std::cell::Cell::new(0) }
    }
    /// PEM of its own certificate.
    pub fn list(&self) -> PathBuf {
        self.place.join("ca.pem")
    }
    /// Signs an ECDSA key for some names (`DNS:a.example,IP:192.0.2.1`).
    pub fn sign(&self, names: &str) -> Identity {
        self.sign_key(names, &["ecparam", "-name", "prime256v1", "-genkey", "-noout"])
    }
    /// Signs an RSA key of so many bits.
    pub fn sign_rsa(&self, names: &str, bits: u32) -> Identity {
        let bits = format!("rsa_keygen_bits:{bits}");
        self.sign_key(names, &["genpkey", "-algorithm", "RSA", "-pkeyopt", &bits])
    }
    fn sign_key(&self, names: &str, generate: &[&str]) -> Identity {
        let number = self.count.get() + 1;
        self.count.set(number);
        let path = |end: &str| self.place.join(format!("{number}.{end}")).display().to_string();
        let (key, request, certificate, extensions) = (path("key"), path("csr"), path("pem"), path("cnf"));
        openssl(&[generate, &["-out", &key]].concat());
        openssl(&["req", "-new", "-key", &key, "-subj", "/CN=peer", "-out", &request]);
        self.place.write(
            &format!("{number}.cnf"),
            format!("subjectAltName={names}\nkeyUsage=digitalSignature\nbasicConstraints=CA:false\n"),
        );
        let (own, own_key) =
            (self.list().display().to_string(), self.place.join("ca.key").display().to_string());
        openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &own,
            "-CAkey",
            &own_key,
            "-set_serial",
            &number.to_string(),
            "-days",
            "3650",
            "-extfile",
            &extensions,
            "-out",
            &certificate,
        ]);
        Identity { certificate: certificate.into(), key: key.into() }
    }
}

/// One end of a connection under TLS: `openssl s_client`, or `openssl s_server` that waits for one.
#[derive(Debug)]
pub struct Secure {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    said: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// What it says of the connection.
    log: Vec<u8>,
    server: SocketAddr,
}

fn pour(mut from: impl std::io::Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if to.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    lines
}

impl Secure {
    /// Connects. `words` are more of `s_client`'s options.
    pub fn connect(server: SocketAddr, words: &[&str]) -> Self {
        let to = server.to_string();
        Self::start(server, &[&["s_client", "-quiet", "-connect", &to], words].concat())
    }
    /// Waits for a connection at an address.
    pub fn listen(at: SocketAddr, own: &Identity) -> Self {
        let (certificate, key) = (own.certificate.display().to_string(), own.key.display().to_string());
        Self::start(
            at,
            &["s_server", "-quiet", "-accept", &at.to_string(), "-cert", &certificate, "-key", &key],
        )
    }
    fn start(server: SocketAddr, words: &[&str]) -> Self {
        let mut child = Command::new("openssl")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl starts");
        let input = child.stdin.take();
        let output = pour(child.stdout.take().expect("its output"));
        let said = pour(child.stderr.take().expect("its errors"));
        Self { child, input, output, said, seen: Vec::new(), log: Vec::new(), server }
    }
    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A peer that has hung up is seen by what does not come.
        if let Some(input) = &mut self.input {
            let _gone = input.write_all(bytes.as_ref()).and_then(|()| input.flush());
        }
    }
    /// What has come, until it holds `words`; they and all before them are taken.
    pub fn until(&mut self, words: &str) -> String {
        let end = Instant::now() + SOON;
        loop {
            if let Some(at) = find(&self.seen, words.as_bytes()) {
                let taken: Vec<u8> = self.seen.drain(..at + words.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(error) => {
                    let complaint = self.complaint();
                    panic!(
                        "'{words}' does not come ({error}); seen: {}; {complaint}",
                        String::from_utf8_lossy(&self.seen)
                    );
                }
            }
        }
    }
    /// Whether the connection ends without another byte.
    pub fn is_refused(&mut self) -> bool {
        matches!(self.output.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected))
    }
    /// What openssl says of the connection so far.
    pub fn complaint(&mut self) -> String {
        self.log.extend(self.said.try_iter().flatten());
        String::from_utf8_lossy(&self.log).into_owned()
    }
    /// The next SIP message without a body.
    pub fn message(&mut self) -> Message {
        Message::parse(self.until("\r\n\r\n").trim_start().as_bytes())
    }
    /// Asks something outside a call; the final response.
    pub fn ask(&mut self, method: &str, name: &str, more: &str) -> Message {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let (at, count) = (self.server, COUNT.fetch_add(1, Ordering::Relaxed));
        let unique = format!("{}-{}-{count}", std::process::id(), at.port());
        self.send(format!(
            "{method} sip:{at} SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:9;rport;branch=z9hG4bK{unique}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{name}@{at}>;tag=1\r\nTo: <sip:{name}@{at}>\r\nCall-ID: {unique}\r\n\
             CSeq: {count} {method}\r\nContact: <sip:{name}@127.0.0.1:9;transport=tls>\r\n{more}Content-Length: 0\r\n\r\n"
        ));
        self.message()
    }
    /// Registers with the password of all phones.
    pub fn must_register(&mut self, name: &str) {
        let refused = self.ask("REGISTER", name, "");
        let challenge = refused.challenge().unwrap_or_else(|| panic!("no challenge: {}", refused.text()));
        let uri = format!("sip:{}", self.server);
        let value = digest::answer(challenge, name, SECRET, "REGISTER", &uri);
        let response = self.ask("REGISTER", name, &format!("Authorization: {value}\r\n"));
        assert_eq!(response.status(), Some(200), "{}", response.text());
    }
    /// Whether a server resumes the session that an earlier connection has left in this file. `words` as for
    /// [`Secure::connect`].
    pub fn resumes(server: SocketAddr, session: &str, words: &[&str]) -> bool {
        let to = server.to_string();
        let own = ["s_client", "-connect", &to, "-sess_in", session];
        let mut peer = Self::start(server, &[&own[..], words].concat());
        peer.until(", Cipher is").contains("Reused, TLS")
    }
    /// The serial number of the certificate that a server presents.
    pub fn serial(server: SocketAddr) -> String {
        let mut peer = Self::start(server, &["s_client", "-connect", &server.to_string()]);
        let chain = peer.until("-----END CERTIFICATE-----");
        let begin = chain.find("-----BEGIN").unwrap_or_default();
        let mut reader = Command::new("openssl")
            .args(["x509", "-noout", "-serial"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("openssl starts");
        let mut input = reader.stdin.take().expect("its input");
        input.write_all(&chain.as_bytes()[begin..]).expect("it reads");
        drop(input);
        let mut line = String::new();
        BufReader::new(reader.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let _ended = reader.wait();
        line.trim().trim_start_matches("serial=").to_owned()
    }
}

fn find(bytes: &[u8], words: &[u8]) -> Option<usize> {
    bytes.windows(words.len()).position(|window| window == words)
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}
