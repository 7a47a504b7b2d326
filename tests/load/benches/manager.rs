//! Processor time of the manager protocol: an event delivered, a Ping, an Originate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::{Server, Site};
use loadbench::{ASTERISK, Awake, Figure, Meter, QUIET_LOG, median, run_windows};

const SECRET: &str = "a-long-manager-secret";
/// Programs that listen to all events: wallboards and call recorders of one site.
const LISTENERS: usize = 10;
/// Calls in the dialplan that cause the events, a second: about ten events each.
const EVENTFUL_CALLS: u64 = 100;
/// Clients that ask, one question at a time each.
const ASKING: usize = 8;
/// Calls that are placed a second.
const PLACED: u64 = 100;

fn server() -> Server {
    let site = Site::new("manager-bench").dialplan(
        "[test]\nexten => 200,1,NoOp(one)\n same => n,Set(a=1)\n same => n,Set(b=2)\n same => n,Hangup()\n",
    );
    let ip = site.sip.ip();
    let mut site = site.add(
        "manager.conf",
        &format!(
            "[general]\nenabled=yes\nport=5038\nbindaddr={ip}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n"
        ),
    );
    site.rewrite("logger.conf", QUIET_LOG);
    Server::start(site)
}

/// A connection of a user that is logged in.
fn login(server: &Server, events: &str) -> TcpStream {
    let mut stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\nEvents: {events}\r\n\r\n");
    stream.write_all(login.as_bytes()).expect("the connection stands");
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    // Who listens is told at once that all is up.
    let last = if events == "off" { "Authentication accepted" } else { "Fully Booted" };
    while !String::from_utf8_lossy(&heard).contains(last) {
        let length = stream.read(&mut buffer).expect("an answer");
        assert!(length > 0, "the login is refused");
        heard.extend_from_slice(&buffer[..length]);
    }
    stream
}

/// Threads that go on until they are dropped.
struct Clients {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    fn new() -> Self {
        Self { stop: Arc::default(), done: Arc::default(), threads: Vec::new() }
    }
    fn start(&mut self, mut step: impl FnMut(&AtomicU64) + Send + 'static) {
        let (stop, done) = (self.stop.clone(), self.done.clone());
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                step(&done);
            }
        }));
    }
    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Counts empty lines: each ends one message.
fn messages(bytes: &[u8], tail: &mut [u8; 3]) -> u64 {
    let mut last = *tail;
    let mut count = 0;
    for &byte in bytes {
        count += u64::from(last == *b"\r\n\r" && byte == b'\n');
        last = [last[1], last[2], byte];
    }
    *tail = last;
    count
}

/// A client that reads and counts messages.
fn reader(mut stream: TcpStream) -> impl FnMut(&AtomicU64) + Send + 'static {
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
    let mut buffer = vec![0; 1 << 16];
    let mut tail = [0; 3];
    move |done| {
        if let Ok(length) = stream.read(&mut buffer) {
            done.fetch_add(messages(&buffer[..length], &mut tail), Ordering::Relaxed);
        }
    }
}

/// A client that sends text so often a second, and reads what is answered.
fn sender(mut stream: TcpStream, text: String, rate: u64) -> impl FnMut(&AtomicU64) + Send + 'static {
    let mut answers = stream.try_clone().expect("a second handle");
    std::thread::spawn(move || while answers.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {});
    let begin = Instant::now();
    let mut number = 0;
    move |done| {
        let due = begin + Duration::from_nanos(number * 1_000_000_000 / rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        stream.write_all(text.as_bytes()).expect("the connection stands");
        number += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

fn publish(name: &str, unit: &str, micros: f64, (target, baseline): (f64, f64)) {
    Figure { name, value: micros, unit, target, baseline, baseline_name: ASTERISK }.publish();
}

fn place() -> String {
    "Action: Originate\r\nChannel: Local/200@test\r\nApplication: NoOp\r\nAsync: true\r\n\r\n".to_owned()
}

fn main() {
    let _awake = Awake::keep();
    let wanted = |name: &str| std::env::var("STROWGER_BENCH_ONLY").map_or(true, |only| only == name);
    let server = server();
    let meter = Meter::new(server.pid());
    let mut quiet = None;
    if wanted("manager_originate") || wanted("manager_event_delivered") {
        let mut placing = Clients::new();
        placing.start(sender(login(&server, "off"), place(), PLACED));
        let windows = run_windows(&meter, || placing.done());
        let each = median(windows.iter().map(|window| window.each));
        publish(
            "manager_originate",
            "ms of one core per Originate of a Local call and its end",
            each,
            (0.3, 4.4),
        );
        quiet = Some(each * 1000.0);
    }
    if let Some(quiet) = quiet.filter(|_| wanted("manager_event_delivered")) {
        let mut heard = Clients::new();
        for _ in 0..LISTENERS {
            heard.start(reader(login(&server, "on")));
        }
        let mut placing = Clients::new();
        placing.start(sender(login(&server, "off"), place(), EVENTFUL_CALLS));
        let windows = run_windows(&meter, || heard.done());
        // What the calls cost without anybody who listens is not the events' cost.
        let own =
            |window: &loadbench::Window| window.each * 1000.0 - quiet * EVENTFUL_CALLS as f64 / window.rate;
        for window in &windows {
            println!("  {:.2} us an event at {:.0} a second", own(window), window.rate);
        }
        let each = median(windows.iter().map(own));
        let unit = "us of one core per event delivered to one of ten listeners";
        publish("manager_event_delivered", unit, each, (3.0, 13.8));
    }
    if wanted("manager_ping") {
        let mut asking = Clients::new();
        for _ in 0..ASKING {
            let mut stream = login(&server, "off");
            asking.start(move |done| {
                stream.write_all(b"Action: Ping\r\n\r\n").expect("the connection stands");
                let (mut buffer, mut tail, mut seen) = ([0; 4096], [0; 3], 0);
                while seen == 0 {
                    let length = stream.read(&mut buffer).expect("an answer");
                    seen = messages(&buffer[..length], &mut tail);
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let windows = run_windows(&meter, || asking.done());
        let each = median(windows.iter().map(|window| window.each * 1000.0));
        publish(
            "manager_ping",
            "us of one core per Ping, one at a time from each of eight clients",
            each,
            (8.0, 40.0),
        );
    }
}
