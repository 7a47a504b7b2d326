//! Small peers of the cases: whoever says one thing in SIP, a manager, a browser, a source of packets.

use e2e::{Message, Phone, Server, Site, digest, wait};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const MANAGER: u16 = 5038;
const HTTP: u16 = 8088;
/// Time between packets of audio.
const PACKET: Duration = Duration::from_millis(20);
/// Samples of one.
const SAMPLES: u32 = 160;
/// Payload type of events in what phones of the tests offer.
const EVENTS: u8 = 101;

/// A name that no other has.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("case{:07}x{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Password of a manager or a user of ARI.
pub fn secret(user: &str) -> String {
    format!("{user}-secret-of-the-cases")
}

/// The site with managers of several classes, ARI, and pages.
pub fn managed(site: Site) -> Site {
    let ip = site.sip.ip();
    let mut managers = format!("[general]\nenabled=yes\nwebenabled=yes\nport={MANAGER}\nbindaddr={ip}\n");
    for (user, read, write) in [
        ("admin", "all", "all"),
        ("reporting", "reporting", "reporting"),
        ("call", "call,reporting,user,dialplan", "call,originate,reporting"),
        ("command", "reporting", "command"),
    ] {
        managers += &format!("[{user}]\nsecret={}\nread={read}\nwrite={write}\n", secret(user));
    }
    let ari = format!(
        "[general]\nenabled=yes\n[panel]\ntype=user\npassword={}\n[look]\ntype=user\nread_only=yes\npassword={}\n",
        secret("panel"),
        secret("look")
    );
    site.add("manager.conf", &managers)
        .add("ari.conf", &ari)
        .add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={HTTP}\n"))
}

/// A connection of a manager.
pub struct Manager {
    stream: BufReader<TcpStream>,
    asked: u32,
}

impl Manager {
    /// Logs in, which must succeed.
    pub fn login(server: &Server, user: &str) -> Self {
        let stream = TcpStream::connect((server.site.sip.ip(), MANAGER)).expect("the port is open");
        stream.set_read_timeout(Some(wait::SOON)).expect("a time-out");
        let mut manager = Self { stream: BufReader::new(stream), asked: 0 };
        let said = manager.act("Login", &[("Username", user), ("Secret", &secret(user))]);
        assert!(said.contains("Response: Success"), "{user}: {said}");
        manager
    }

    /// One action and its response; events in between are passed over.
    pub fn act(&mut self, action: &str, fields: &[(&str, &str)]) -> String {
        self.ask(action, fields);
        let id = format!("ActionID: {}\r\n", self.asked);
        loop {
            let said = self.block();
            if said.contains("Response: ") && said.contains(&id) {
                return said;
            }
        }
    }

    /// Many actions at once, and their responses in order.
    pub fn act_all(&mut self, actions: &[(&str, Vec<(&str, &str)>)]) -> Vec<String> {
        let first = self.asked + 1;
        for (action, fields) in actions {
            self.ask(action, fields);
        }
        let mut said = vec![String::new(); actions.len()];
        let mut left = actions.len();
        while left > 0 {
            let block = self.block();
            let id = block.lines().find_map(|line| line.strip_prefix("ActionID: ")?.parse::<u32>().ok());
            let at = id.and_then(|id| id.checked_sub(first)).map(|at| at as usize);
            if let Some(said) = at.and_then(|at| said.get_mut(at)) {
                left -= usize::from(said.is_empty());
                // Events that answer an action follow its response.
                said.push_str(&block);
            }
        }
        said
    }

    /// One action, whose response nobody reads.
    pub fn ask(&mut self, action: &str, fields: &[(&str, &str)]) {
        self.asked += 1;
        let mut text = format!("Action: {action}\r\nActionID: {}\r\n", self.asked);
        for (name, value) in fields {
            text += &format!("{name}: {value}\r\n");
        }
        write!(self.stream.get_mut(), "{text}\r\n").expect("the manager listens");
    }

    fn block(&mut self) -> String {
        let mut text = String::new();
        loop {
            let before = text.len();
            let read = self.stream.read_line(&mut text).expect("the manager speaks");
            assert!(read > 0, "the manager has hung up: {text}");
            if &text[before..] == "\r\n" {
                return text;
            }
        }
    }
}

/// One request for a page: status, head and body.
pub fn page(server: &Server, line: &str, headers: &str) -> (u16, String, String) {
    let at = SocketAddr::new(server.site.sip.ip(), HTTP);
    let mut stream = TcpStream::connect(at).expect("the port is open");
    stream.set_read_timeout(Some(wait::SOON)).expect("a time-out");
    write!(stream, "{line} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{headers}\r\n")
        .expect("it listens");
    let mut said = Vec::new();
    let _hung_up = stream.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said).into_owned();
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, head.to_owned(), body.to_owned())
}

/// Text as it stands in a URI.
pub fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A request as a [`Stranger`] makes it.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub method: &'static str,
    pub uri: String,
    /// What From has, without a tag when it has one.
    pub from: String,
    /// What To has; the URI without it.
    pub to: Option<String>,
    pub call_id: Option<String>,
    pub branch: Option<String>,
    pub sequence: u32,
    pub more: String,
    pub body: String,
}

/// A socket that says SIP as it is told.
pub struct Stranger {
    socket: UdpSocket,
    pub local: SocketAddr,
    server: SocketAddr,
}

impl Stranger {
    pub fn at(ip: IpAddr, server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port for SIP");
        let local = socket.local_addr().expect("its address");
        Self { socket, local, server }
    }

    /// Sends text as it is.
    pub fn say(&self, text: &str) {
        self.socket.send_to(text.as_bytes(), self.server).expect("the datagram leaves");
    }

    /// What comes within a time.
    pub fn hear(&self, limit: Duration) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        self.socket.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).expect("a time-out");
        self.socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec())
    }

    /// A request; its final response, acknowledged when it is one that refuses an INVITE.
    pub fn ask(&self, ask: &Ask) -> Message {
        let branch = ask.branch.clone().unwrap_or_else(|| format!("z9hG4bK{}", unique()));
        let call_id = ask.call_id.clone().unwrap_or_else(unique);
        let from = match ask.from.contains(";tag=") {
            true => ask.from.clone(),
            false => format!("{};tag={}", ask.from, unique()),
        };
        let to = ask.to.clone().unwrap_or_else(|| format!("<{}>", ask.uri));
        let text = |method: &str, to: &str, more: &str, body: &str| {
            let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
            format!(
                "{method} {} SIP/2.0\r\nVia: SIP/2.0/UDP {};rport;branch={branch}\r\nMax-Forwards: 70\r\n\
                 From: {from}\r\nTo: {to}\r\nCall-ID: {call_id}\r\nCSeq: {} {method}\r\n\
                 Contact: <sip:x@{}>\r\n{more}{kind}Content-Length: {}\r\n\r\n{body}",
                ask.uri,
                self.local,
                ask.sequence.max(1),
                self.local,
                body.len()
            )
        };
        self.say(&text(ask.method, &to, &ask.more, &ask.body));
        let end = Instant::now() + wait::SOON;
        while let Some(bytes) = self.hear(end.saturating_duration_since(Instant::now())) {
            let answer = Message::parse(&bytes);
            if answer.status() >= Some(200) && answer.header("Call-ID") == Some(&call_id) {
                if ask.method == "INVITE" && answer.status() >= Some(300) {
                    self.say(&text("ACK", answer.must("To"), "", ""));
                }
                return answer;
            }
        }
        panic!("no answer to {ask:?}");
    }

    /// The challenge that a request gets.
    pub fn challenge(&self, ask: &Ask) -> String {
        let answer = self.ask(ask);
        assert_eq!(answer.status(), Some(401), "{}", answer.text());
        answer.must("WWW-Authenticate").to_owned()
    }

    /// A request with the answer to a challenge; its final response.
    pub fn prove(&self, ask: &Ask, challenge: &str, user: &str, password: &str) -> Message {
        let proof = digest::answer(challenge, user, password, ask.method, &ask.uri);
        let more = format!("{}Authorization: {proof}\r\n", ask.more);
        self.ask(&Ask { more, sequence: ask.sequence.max(1) + 1, ..ask.clone() })
    }
}

/// Packets of a phone whose sequence numbers and timestamps a test chooses.
pub struct Source {
    socket: UdpSocket,
    remote: SocketAddr,
    next: Instant,
    said: u32,
    pub sequence: u16,
    pub timestamp: u32,
    /// Timestamps of packets of audio that came.
    pub came: usize,
}

impl Source {
    /// Calls, with the packets of this instead of the phone's own; the call must be answered.
    pub fn call(phone: &mut Phone, number: &str) -> Self {
        phone.media.speak(e2e::Speak::Nothing);
        let socket = UdpSocket::bind((phone.local().ip(), 0)).expect("a port for audio");
        let port = socket.local_addr().expect("its address").port();
        let own = format!("m=audio {} ", phone.media.local().port());
        let offer = phone.sdp("sendrecv").replace(&own, &format!("m=audio {port} "));
        phone.offer = Some(offer.into_bytes());
        phone.begin(number);
        let remote = SocketAddr::new(phone.local().ip(), 0);
        Self { socket, remote, next: Instant::now(), said: 0, sequence: 0, timestamp: 0, came: 0 }
    }

    /// Sends where the answer says.
    pub fn follow(&mut self, answer: &Message) {
        assert_eq!(answer.status(), Some(200), "{}", answer.text());
        let port = answer.sdp("m=audio ").and_then(|media| media.split(' ').next()?.parse().ok());
        let ip = answer.sdp("c=IN IP4 ").and_then(|ip| ip.parse().ok());
        self.remote = SocketAddr::new(ip.expect("an address"), port.expect("a port"));
        self.next = Instant::now();
    }

    fn send(&mut self, payload_type: u8, timestamp: u32, payload: &[u8]) {
        let mut packet = vec![0x80, payload_type];
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend(0x0ca5_e0ca_u32.to_be_bytes());
        packet.extend(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send_to(&packet, self.remote).expect("the datagram leaves");
    }

    /// The time of one packet, in which others come.
    pub fn tick(&mut self) {
        self.next += PACKET;
        let mut buffer = [0; 2048];
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.socket.set_read_timeout(Some(left)).expect("a time-out");
            if let Ok(length) = self.socket.recv(&mut buffer) {
                self.came += usize::from(length == 172);
            }
        }
    }

    /// So many packets of a tone of 400 Hz.
    pub fn play(&mut self, packets: usize) {
        for _ in 0..packets {
            let samples = self.said..self.said + SAMPLES;
            let step = core::f64::consts::TAU * 400.0 / 8000.0;
            let payload: Vec<u8> = samples
                .map(|at| e2e::tone::to_ulaw(((step * f64::from(at)).sin() * 8000.0) as i16))
                .collect();
            self.said = (self.said + SAMPLES) % 8000;
            self.send(0, self.timestamp, &payload);
            self.timestamp = self.timestamp.wrapping_add(SAMPLES);
            self.tick();
        }
    }

    /// One packet of an event, whose timestamp is so far from that of the audio.
    pub fn event(&mut self, offset: u32, code: u8, flags: u8, duration: u16) {
        let [high, low] = duration.to_be_bytes();
        self.send(EVENTS, self.timestamp.wrapping_add(offset), &[code, flags, high, low]);
    }

    /// A whole digit as most phones send it: six packets that grow, and the end twice more.
    pub fn digit(&mut self, digit: char) {
        let code = "0123456789*#".find(digit).expect("a digit") as u8;
        for number in 1..=8_u16 {
            let end = if number >= 6 { 0x80 } else { 0 };
            self.event(0, code, end | 10, number.min(6) * 160);
            self.tick();
        }
        self.timestamp = self.timestamp.wrapping_add(8 * SAMPLES);
    }
}

/// Milliseconds of a tone that nobody takes for noise.
pub const ENOUGH: u32 = 300;

/// The phone hears this tone from here on.
pub fn hears(who: &str, phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true(&format!("{who} hears {hertz} Hz"), || phone.media.heard().tone(hertz) >= ENOUGH);
}

/// A call of one phone to another, up.
pub fn connect(caller: &mut Phone, callee: &mut Phone, number: &str) {
    caller.begin(number);
    let invite = callee.ring();
    callee.take(&invite);
    assert_eq!(caller.outcome().status(), Some(200), "{number}");
}
