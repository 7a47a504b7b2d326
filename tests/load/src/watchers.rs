//! Phones that watch one extension each: SUBSCRIBE, challenge, SUBSCRIBE with the proof, and NOTIFYs that are answered.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::message::{authorization, header, ok, status};

/// Watchers of one socket: what they hear at once fits its buffer.
const PER_SOCKET: u64 = 40;
/// Subscriptions that are begun and not yet granted.
const AT_ONCE: u64 = 64;
/// Longest sleep of the thread that answers.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Watchers at work; they stop when this goes.
#[derive(Debug)]
pub struct Watchers {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    watchers: u64,
    /// Who they are and where they ask.
    server: SocketAddr,
    exten: String,
    secret: String,
    begun: AtomicU64,
    granted: AtomicU64,
    told: AtomicU64,
    repeated: AtomicU64,
    stop: AtomicBool,
    /// When the last NOTIFY came.
    last: Mutex<Option<Instant>>,
}

impl Watchers {
    /// Has `phone0` and so on watch an extension by dialog-info, and comes back when all are told its state.
    pub fn start(server: SocketAddr, ip: IpAddr, watchers: u64, exten: &str, secret: &str) -> Self {
        let sockets: Vec<UdpSocket> = (0..watchers.div_ceil(PER_SOCKET))
            .map(|_| {
                let socket = UdpSocket::bind((ip, 0)).expect("a port for SIP");
                socket.connect(server).expect("a way to the program");
                socket.set_nonblocking(true).expect("an option");
                socket
            })
            .collect();
        let state = Arc::new(State {
            watchers,
            server,
            exten: exten.to_owned(),
            secret: secret.to_owned(),
            begun: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            told: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            last: Mutex::new(None),
        });
        let thread = Some(std::thread::spawn({
            let state = state.clone();
            move || state.run(&sockets)
        }));
        let watching = Self { state, thread };
        watching.until(watchers, Instant::now());
        assert_eq!(watching.state.granted.load(Relaxed), watchers, "all are granted");
        watching
    }

    /// NOTIFYs that came since the start, each counted once.
    pub fn told(&self) -> u64 {
        self.state.told.load(Relaxed)
    }

    /// NOTIFYs that came again, because an answer was lost or late.
    pub fn repeated(&self) -> u64 {
        self.state.repeated.load(Relaxed)
    }

    /// Waits until so many NOTIFYs have come since the start; how long after `since` the last one was there.
    pub fn until(&self, told: u64, since: Instant) -> Duration {
        let begun = Instant::now();
        while self.told() < told {
            assert!(begun.elapsed() < PATIENCE, "{} of {told} were told", self.told());
            std::thread::sleep(Duration::from_millis(1));
        }
        let last = *self.state.last.lock().expect("nobody panics with it");
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(since))
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.state.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking(), "the thread that answers has panicked");
        }
    }
}

impl State {
    fn run(&self, sockets: &[UdpSocket]) {
        let mut buffer = vec![0; 65_536];
        let mut heard = HashMap::new();
        while !self.stop.load(Relaxed) {
            while self.begun.load(Relaxed) < self.watchers.min(self.granted.load(Relaxed) + AT_ONCE) {
                let phone = self.begun.fetch_add(1, Relaxed);
                if let Some(socket) = socket_of(sockets, phone) {
                    let _ = socket.send(self.subscribe(socket, phone, 1, "").as_bytes());
                }
            }
            let mut polled: Vec<PollFd<'_>> =
                sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            let _ready = poll(&mut polled, Some(&WAIT));
            let ready = sockets.iter().zip(&polled).filter(|(_, one)| one.revents().contains(PollFlags::IN));
            for (socket, _) in ready {
                while let Ok(length) = socket.recv(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..length]);
                    if let Some(reply) = self.reaction(&text, socket, &mut heard) {
                        let _ = socket.send(reply.as_bytes());
                    }
                }
            }
        }
    }

    /// `heard` is the number of the last NOTIFY of each watcher.
    fn reaction(&self, text: &str, socket: &UdpSocket, heard: &mut HashMap<u64, u64>) -> Option<String> {
        match status(text) {
            None if text.starts_with("NOTIFY ") => {
                let number = header(text, "CSeq")?.split(' ').next()?.parse().ok()?;
                if heard.insert(phone_of(text)?, number).is_some_and(|before| before >= number) {
                    self.repeated.fetch_add(1, Relaxed);
                } else {
                    *self.last.lock().expect("nobody panics with it") = Some(Instant::now());
                    self.told.fetch_add(1, Relaxed);
                }
                Some(ok(text))
            }
            Some(200) => {
                self.granted.fetch_add(1, Relaxed);
                None
            }
            Some(401) => {
                let phone = phone_of(text)?;
                let challenge = header(text, "WWW-Authenticate")?;
                let uri = format!("sip:{}@{}", self.exten, self.server);
                let user = format!("phone{phone}");
                let proof = authorization(challenge, &user, &self.secret, "SUBSCRIBE", &uri);
                Some(self.subscribe(socket, phone, 2, &proof))
            }
            _ => None,
        }
    }

    fn subscribe(&self, socket: &UdpSocket, phone: u64, sequence: u64, proof: &str) -> String {
        let Self { server, exten, .. } = self;
        let local = socket.local_addr().expect("an address");
        format!(
            "SUBSCRIBE sip:{exten}@{server} SIP/2.0\r\nVia: SIP/2.0/UDP {local};rport;branch=z9hG4bK-{phone}-{sequence}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:phone{phone}@{server}>;tag=f{phone}\r\nTo: <sip:{exten}@{server}>\r\n\
             Call-ID: watch-{phone}-{local}\r\nCSeq: {sequence} SUBSCRIBE\r\nContact: <sip:phone{phone}@{local}>\r\n\
             Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: 3600\r\n{proof}Content-Length: 0\r\n\r\n"
        )
    }
}

/// Which watcher a message is of.
fn phone_of(text: &str) -> Option<u64> {
    header(text, "Call-ID")?.split('-').nth(1)?.parse().ok()
}

fn socket_of(sockets: &[UdpSocket], phone: u64) -> Option<&UdpSocket> {
    sockets.get(usize::try_from(phone / PER_SOCKET).ok()?)
}
