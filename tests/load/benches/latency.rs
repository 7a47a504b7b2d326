//! What the program adds to the time until a caller is answered, through a bridge: INVITE in, INVITE out, 180 and 200 back.
//!
//! The callee answers at once, in the same process as the caller, so that what lies between the caller's INVITE and its 200
//! is the program's and the loopback interface's. Each call is ended as soon as it is answered. Beside each rate stands the
//! processor time of a call. `STROWGER_BENCH_ONLY` names a row.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::{Authority, Identity, Server, Site, address, installed};
use loadbench::{Awake, Figure, Meter, QUIET_LOG, publish_points, short};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

/// Calls a second.
const RATES: [u64; 4] = [1, 50, 200, 400];
/// At the median, and of 99 in a hundred, in milliseconds.
const MEDIAN_MS: f64 = 2.0;
const P99_MS: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
    Tls,
}

impl Transport {
    /// As a Via names it.
    const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
        }
    }
    /// What a SIP URI says of it.
    const fn parameter(self) -> &'static str {
        match self {
            Self::Udp => "",
            Self::Tcp => ";transport=tcp",
            Self::Tls => ";transport=tls",
        }
    }
}

/// Name that the program and the callee prove.
const NAME: &str = "pbx.example.com";

fn main() {
    let _awake = Awake::keep();
    for (transport, name) in [(Transport::Udp, "udp"), (Transport::Tcp, "tcp"), (Transport::Tls, "tls")] {
        if transport == Transport::Tls && !installed(&["openssl"]) {
            continue;
        }
        let (mut medians, mut tails, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        for rate in RATES {
            let row = format!("answered_{name}_{rate}");
            if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != row) {
                continue;
            }
            let (times, cost) = measure(transport, rate);
            let (median, tail) = (quantile(&times, 0.5), quantile(&times, 0.99));
            println!(
                "  {name}, {rate:>3} calls a second: answered within {median:.2} ms at the median, {tail:.2} ms at p99, \
                 {:.2} ms at most; {cost:.3} ms of one core a call",
                quantile(&times, 1.0)
            );
            let across = rate as f64;
            medians.push((across, median));
            tails.push((across, tail));
            costs.push((across, cost));
        }
        let worst = |points: &[(f64, f64)]| points.iter().map(|(_, y)| *y).fold(f64::NAN, f64::max);
        if medians.len() < RATES.len() {
            continue;
        }
        for (what, points, target) in [("median", &medians, MEDIAN_MS), ("p99", &tails, P99_MS)] {
            Figure {
                name: &format!("answered_{name}_{what}"),
                value: worst(points),
                unit: "ms until a caller is answered through a bridge, the worst of 1, 50, 200 and 400 a second",
                target,
                baseline: 7.0,
                baseline_name: "Asterisk 23.4.1 with 200 calls up, median",
            }
            .publish();
            publish_points(&format!("answered_{name}_{what}_by_rate"), "ms", points);
        }
        publish_points(&format!("answered_{name}_cpu_by_rate"), "ms of one core a call", &costs);
    }
}

fn quantile(times: &[f64], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let at = (times.len().saturating_sub(1) as f64 * part).round() as usize;
    times.get(at).copied().unwrap_or(f64::NAN)
}

/// Milliseconds until each call was answered, and milliseconds of one core for each.
fn measure(transport: Transport, rate: u64) -> (Vec<f64>, f64) {
    let (caller, callee) = (address(), address());
    let keys = (transport == Transport::Tls).then(Keys::new);
    let (callees, at) = Callees::listen(transport, callee, keys.as_ref());
    let parameter = transport.parameter().replace(';', "\\;");
    let mut site = Site::new("latency")
        .dialplan("[test]\nexten => 100,1,Dial(PJSIP/callee)\n")
        .trunk("caller", (caller, 5060).into())
        .add(
            "pjsip.conf",
            &format!(
                "[callee]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors=callee\n\
                 [callee]\ntype=aor\ncontact=sip:callee@{at}{parameter}\n"
            ),
        );
    site.rewrite("logger.conf", QUIET_LOG);
    let port = if transport == Transport::Tls { 5061 } else { site.sip.port() };
    let at = SocketAddr::new(site.sip.ip(), port);
    if let Some(keys) = &keys {
        let (certificate, key) = (keys.own.certificate.display(), keys.own.key.display());
        site.append(
            "pjsip.conf",
            &format!("[tls]\ntype=transport\nprotocol=tls\nbind={at}\ncert_file={certificate}\npriv_key_file={key}\n"),
        );
    }
    let server = Server::start(site);
    let meter = Meter::new(server.pid());
    let stop = Arc::new(AtomicBool::new(false));
    callees.serve(&stop);
    let mut wire = Wire::connect(transport, caller, at, keys.as_ref());
    let mut answers = wire.second_handle();
    let (asked, times) = (Arc::new(Mutex::new(HashMap::new())), Arc::new(Mutex::new(Vec::new())));
    let reader = std::thread::spawn({
        let (asked, times, stop) = (asked.clone(), times.clone(), stop.clone());
        move || {
            while !stop.load(Relaxed) {
                for text in answers.receive() {
                    if let Some(reply) = react(&text, at, &asked, &times) {
                        answers.send(&reply);
                    }
                }
            }
        }
    });
    // The first second is the program's to find its pace.
    let seconds = if short() { 1 } else { 8.max(20 / rate) };
    let (warm, all) = (rate.max(2), rate.max(2) + rate * seconds);
    let begin = Instant::now();
    let mut before = meter.read();
    for number in 0..all {
        let due = begin + Duration::from_nanos(number * 1_000_000_000 / rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if number == warm {
            times.lock().unwrap().clear();
            before = meter.read();
        }
        let text = wire.invite(number, at);
        asked.lock().unwrap().insert(call_id(&text).to_owned(), Instant::now());
        wire.send(&text);
    }
    std::thread::sleep(Duration::from_millis(300));
    let after = meter.read();
    stop.store(true, Relaxed);
    reader.join().expect("the caller's thread");
    let times = times.lock().unwrap().clone();
    let calls = (all - warm) as f64;
    assert!(times.len() as f64 > calls * 0.99, "{} of {calls} calls were answered", times.len());
    (times, after.cpu_since(&before) * 1000.0 / calls)
}

/// What the caller says to a message: ACK and BYE to a 200.
fn react(
    text: &str,
    server: SocketAddr,
    asked: &Mutex<HashMap<String, Instant>>,
    times: &Mutex<Vec<f64>>,
) -> Option<String> {
    if !text.starts_with("SIP/2.0 ") {
        return Some(reply(text, "200 OK", ""));
    }
    if !text.starts_with("SIP/2.0 200") || !header(text, "CSeq").ends_with("INVITE") {
        return None;
    }
    if let Some(at) = asked.lock().unwrap().remove(call_id(text)) {
        times.lock().unwrap().push(at.elapsed().as_secs_f64() * 1000.0);
    }
    let (call, to, from) = (call_id(text), header(text, "To"), header(text, "From"));
    let via = header(text, "Via").split(";branch").next().unwrap_or_default().to_owned();
    let request = |method: &str, sequence: u32| {
        format!(
            "{method} sip:100@{server} SIP/2.0\r\nVia: {via};branch=z9hG4bK-{call}-{method};rport\r\nMax-Forwards: 70\r\n\
             From: {from}\r\nTo: {to}\r\nCall-ID: {call}\r\nCSeq: {sequence} {method}\r\nContent-Length: 0\r\n\r\n"
        )
    };
    Some(request("ACK", 1) + "\0" + &request("BYE", 2))
}

fn header<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_default()
}

fn call_id(text: &str) -> &str {
    header(text, "Call-ID")
}

/// A response with what it takes over.
fn reply(request: &str, status: &str, rest: &str) -> String {
    let mut text = format!("SIP/2.0 {status}\r\n");
    for line in request.split("\r\n") {
        let name = line.split(':').next().unwrap_or_default();
        if ["Via", "From", "Call-ID", "CSeq"].contains(&name) {
            text += &format!("{line}\r\n");
        } else if name == "To" {
            let tag = if line.contains(";tag=") { "" } else { ";tag=callee" };
            text += &format!("{line}{tag}\r\n");
        }
    }
    if rest.is_empty() { text + "Content-Length: 0\r\n\r\n" } else { text + rest }
}

fn description(ip: IpAddr) -> String {
    format!(
        "v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
    )
}

/// Certificates of a run, all of one authority.
struct Keys {
    authority: Authority,
    own: Identity,
}

impl Keys {
    fn new() -> Self {
        let authority = Authority::new("latency");
        let own = authority.sign(&format!("DNS:{NAME}"));
        Self { authority, own }
    }
    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(self.authority.list()).expect("the authority's certificate");
        roots.add(root).expect("an authority");
        ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
    fn server(&self) -> ServerConfig {
        let chain = CertificateDer::pem_file_iter(&self.own.certificate).expect("a certificate");
        let chain = chain.map(|one| one.expect("a certificate")).collect();
        let key = PrivateKeyDer::from_pem_file(&self.own.key).expect("a key");
        ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate of this key")
    }
}

/// A session that two threads share: one waits for what comes, the other sends.
#[derive(Clone)]
struct Sealed(Arc<Mutex<Connection>>);

impl Sealed {
    fn shake(session: impl Into<Connection>, socket: &mut TcpStream) -> Self {
        let mut session = session.into();
        while session.is_handshaking() {
            session.complete_io(socket).expect("a handshake");
        }
        Self(Arc::new(Mutex::new(session)))
    }
    fn send(&self, text: &str, socket: &mut TcpStream) {
        let mut session = self.0.lock().unwrap();
        session.writer().write_all(text.as_bytes()).expect("room");
        while session.wants_write() {
            session.write_tls(socket).expect("the connection stands");
        }
    }
    fn receive(&self, mut sealed: &[u8], plain: &mut Vec<u8>) {
        let mut session = self.0.lock().unwrap();
        while !sealed.is_empty() {
            session.read_tls(&mut sealed).expect("room");
            session.process_new_packets().expect("what the program seals can be read");
            // It ends in "nothing more yet".
            let _ = session.reader().read_to_end(plain);
        }
    }
}

/// A way to send and receive messages.
enum Wire {
    Udp(UdpSocket),
    /// A connection, what has come of a message that is not whole, and what seals it.
    Stream(TcpStream, Vec<u8>, Option<Sealed>),
}

impl Wire {
    fn connect(transport: Transport, ip: IpAddr, server: SocketAddr, keys: Option<&Keys>) -> Self {
        if transport == Transport::Udp {
            let socket = UdpSocket::bind((ip, 0)).expect("a port");
            socket.connect(server).expect("a way to the program");
            return Self::udp(socket);
        }
        let mut socket = bound_stream(ip, server);
        let sealed = keys.map(|keys| {
            let name = ServerName::try_from(NAME).expect("a name");
            let session = ClientConnection::new(keys.client().into(), name).expect("a session");
            Sealed::shake(session, &mut socket)
        });
        Self::stream(socket, sealed)
    }
    fn udp(socket: UdpSocket) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        Self::Udp(socket)
    }
    fn stream(stream: TcpStream, sealed: Option<Sealed>) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        stream.set_nodelay(true).expect("an option");
        Self::Stream(stream, Vec::new(), sealed)
    }
    fn second_handle(&self) -> Self {
        match self {
            Self::Udp(socket) => Self::Udp(socket.try_clone().expect("a second handle")),
            Self::Stream(stream, _, sealed) => {
                Self::Stream(stream.try_clone().expect("a second handle"), Vec::new(), sealed.clone())
            }
        }
    }
    fn local(&self) -> SocketAddr {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Stream(stream, ..) => stream.local_addr(),
        }
        .expect("an address")
    }
    const fn transport(&self) -> Transport {
        match self {
            Self::Udp(_) => Transport::Udp,
            Self::Stream(_, _, None) => Transport::Tcp,
            Self::Stream(_, _, Some(_)) => Transport::Tls,
        }
    }
    /// Sends messages that stand apart by a zero.
    fn send(&mut self, texts: &str) {
        for text in texts.split('\0') {
            match self {
                Self::Udp(socket) => {
                    // What does not fit is a call without an answer.
                    let _ = socket.send(text.as_bytes());
                }
                Self::Stream(stream, _, None) => {
                    stream.write_all(text.as_bytes()).expect("the connection stands");
                }
                Self::Stream(stream, _, Some(sealed)) => sealed.send(text, stream),
            }
        }
    }
    fn receive(&mut self) -> Vec<String> {
        let mut buffer = [0; 65_536];
        match self {
            Self::Udp(socket) => {
                let length = socket.recv(&mut buffer).unwrap_or(0);
                (length > 0)
                    .then(|| String::from_utf8_lossy(&buffer[..length]).into_owned())
                    .into_iter()
                    .collect()
            }
            Self::Stream(stream, kept, sealed) => {
                let length = stream.read(&mut buffer).unwrap_or(0);
                match sealed {
                    Some(sealed) => sealed.receive(&buffer[..length], kept),
                    None => kept.extend_from_slice(&buffer[..length]),
                }
                let mut texts = Vec::new();
                while let Some(end) = kept.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
                    let head = String::from_utf8_lossy(&kept[..end]).into_owned();
                    let whole = end + header(&head, "Content-Length").parse::<usize>().unwrap_or(0);
                    if kept.len() < whole {
                        break;
                    }
                    texts.push(String::from_utf8_lossy(&kept[..whole]).into_owned());
                    kept.drain(..whole);
                }
                texts
            }
        }
    }
    fn invite(&self, number: u64, server: SocketAddr) -> String {
        let (local, body) = (self.local(), description(self.local().ip()));
        let (name, parameter) = (self.transport().name(), self.transport().parameter());
        format!(
            "INVITE sip:100@{server} SIP/2.0\r\nVia: SIP/2.0/{name} {local};rport;branch=z9hG4bK-{number}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:caller@{server}>;tag=f{number}\r\nTo: <sip:100@{server}>\r\n\
             Call-ID: latency-{number}-{local}\r\nCSeq: 1 INVITE\r\nContact: <sip:caller@{local}{parameter}>\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}

fn bound_stream(ip: IpAddr, server: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let family = if server.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let stream = socket(family, SocketType::STREAM, None).expect("a socket");
    bind(&stream, &SocketAddr::new(ip, 0)).expect("an address");
    connect(&stream, &server).expect("a way to the program");
    stream.into()
}

/// Who is called, and answers at once.
enum Callees {
    Udp(UdpSocket),
    Stream(TcpListener, Option<Arc<ServerConfig>>),
}

impl Callees {
    fn listen(transport: Transport, ip: IpAddr, keys: Option<&Keys>) -> (Self, SocketAddr) {
        if transport == Transport::Udp {
            let socket = UdpSocket::bind((ip, 0)).expect("a port");
            let at = socket.local_addr().expect("an address");
            return (Self::Udp(socket), at);
        }
        let listener = TcpListener::bind((ip, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        (Self::Stream(listener, keys.map(|keys| keys.server().into())), at)
    }
    fn serve(self, stop: &Arc<AtomicBool>) {
        let stop = stop.clone();
        std::thread::spawn(move || match self {
            Self::Udp(socket) => {
                let mut buffer = [0; 65_536];
                socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
                let ip = socket.local_addr().expect("an address");
                while !stop.load(Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    for answer in answers(&text, ip, "").split('\0').filter(|answer| !answer.is_empty()) {
                        let _ = socket.send_to(answer.as_bytes(), from);
                    }
                }
            }
            Self::Stream(listener, sealing) => {
                while let Ok((mut stream, _)) = listener.accept() {
                    let (stop, sealing) = (stop.clone(), sealing.clone());
                    std::thread::spawn(move || {
                        let here = stream.local_addr().expect("an address");
                        let sealed = sealing.map(|config| {
                            let session = ServerConnection::new(config).expect("a session");
                            Sealed::shake(session, &mut stream)
                        });
                        let mut wire = Wire::stream(stream, sealed);
                        let parameter = wire.transport().parameter();
                        while !stop.load(Relaxed) {
                            for text in wire.receive() {
                                let answers = answers(&text, here, parameter);
                                if !answers.is_empty() {
                                    wire.send(&answers);
                                }
                            }
                        }
                    });
                }
            }
        });
    }
}

/// What the callee says to a message.
fn answers(text: &str, here: SocketAddr, parameter: &str) -> String {
    if text.starts_with("INVITE ") {
        let body = description(here.ip());
        let contact = format!("Contact: <sip:callee@{here}{parameter}>\r\n");
        let ok =
            format!("{contact}Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let ringing = format!("{contact}Content-Length: 0\r\n\r\n");
        return reply(text, "180 Ringing", &ringing) + "\0" + &reply(text, "200 OK", &ok);
    }
    if text.starts_with("ACK ") || text.starts_with("SIP/2.0 ") {
        return String::new();
    }
    reply(text, "200 OK", "")
}
