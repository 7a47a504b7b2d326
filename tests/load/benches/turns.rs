//! How long one line of a manager keeps a phone waiting: a phone asks OPTIONS all the time while a manager sends the dearest
//! lines there are, one kind after the other.
//!
//! The worst answer of a round belongs to the scheduler as often as to us, so each kind of line has many rounds, and the
//! median of their worst answers counts; the figure is that of the dearest kind, its baseline that of a manager who is quiet.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use e2e::{Server, Site, address};
use loadbench::{Awake, Figure, QUIET_LOG, median, short};

const SECRET: &str = "a-long-manager-secret";
/// Longest that a line may keep a phone waiting.
const MOST_MS: f64 = 5.0;
/// Extensions of the dialplan that is shown, and phones that are listed.
const EXTENSIONS: usize = 3000;
const PHONES: usize = 300;
/// How long a round goes on after the line was sent.
const ROUND: Duration = Duration::from_millis(250);

fn main() {
    let _awake = Awake::keep();
    let ip = address();
    let mut dialplan = String::from("[test]\n");
    for extension in 0..EXTENSIONS {
        dialplan += &format!("exten => {},1,NoOp(${{REGEX(\"^a.*b$\" ${{EXTEN}})}})\n", 100_000 + extension);
    }
    let mut site = Site::new("turns").dialplan(&dialplan);
    for phone in 0..PHONES {
        site = site.phone(&format!("phone{phone}"));
    }
    let manager = site.sip.ip();
    site = site.add(
        "manager.conf",
        &format!("[general]\nenabled=yes\nport=5038\nbindaddr={manager}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n"),
    );
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let phone = UdpSocket::bind((ip, 0)).expect("a socket");
    phone.connect(server.site.sip).expect("the server's address");
    phone.set_read_timeout(Some(Duration::from_secs(2))).expect("a time-out");
    let mut admin = login((manager, 5038).into());
    let rounds = if short() { 2 } else { 15 };
    let mut quiet = f64::NAN;
    let mut dearest = (0.0, "");
    for (name, line) in lines() {
        let worst = median((0..rounds).map(|_| round(&phone, server.site.sip, &mut admin, &line)));
        println!("  {worst:.3} ms at worst beside {name}");
        if line.is_empty() {
            quiet = worst;
        } else if worst > dearest.0 {
            dearest = (worst, name);
        }
    }
    println!("  the dearest: {}", dearest.1);
    Figure {
        name: "manager_line_beside_a_phone",
        value: dearest.0,
        unit: "ms at worst until OPTIONS is answered beside a manager's dearest line",
        target: MOST_MS,
        baseline: quiet,
        baseline_name: "a manager who is quiet",
    }
    .publish();
}

/// Lines that take long, each with a name.
fn lines() -> Vec<(&'static str, String)> {
    let evaluate = |text: &str| format!("Action: Getvar\r\nVariable: {text}\r\n\r\n");
    let command = |text: &str| format!("Action: Command\r\nCommand: {text}\r\n\r\n");
    let a = "a".repeat(2000);
    vec![
        ("nothing", String::new()),
        ("a pattern that backtracks", evaluate(&format!("REGEX(\"^(a+)+$\" {a}b)"))),
        ("a pattern of many repeats", evaluate(&format!("REGEX(\"(a?){{200}}a{{200}}\" {a})"))),
        ("an expression in an expression", evaluate(&format!("EVAL($[\"{a}\" =~ \"(a|aa)+b\"])"))),
        ("the whole dialplan", command("dialplan show")),
        ("one context like a pattern", command("dialplan show test")),
        ("all endpoints", command("pjsip show endpoints")),
        ("all actions of help", command("core show help")),
        ("all functions", command("core show functions")),
        ("the endpoints as events", "Action: PJSIPShowEndpoints\r\n\r\n".into()),
        ("the dialplan as events", "Action: ShowDialPlan\r\n\r\n".into()),
        ("a file of the configuration", "Action: GetConfig\r\nFilename: extensions.conf\r\n\r\n".into()),
        ("its JSON", "Action: GetConfigJSON\r\nFilename: extensions.conf\r\n\r\n".into()),
        (
            "a hundred filters",
            "Action: Filter\r\nOperation: Add\r\nFilter: Event: (a|b)*c$\r\n\r\n".repeat(100),
        ),
        ("two hundred lines at once", "Action: CoreShowChannels\r\n\r\n".repeat(200)),
    ]
}

/// The slowest answer to OPTIONS while a line is worked on, in milliseconds.
fn round(phone: &UdpSocket, server: SocketAddr, admin: &mut TcpStream, line: &str) -> f64 {
    admin.write_all(line.as_bytes()).expect("the connection stands");
    let begin = Instant::now();
    let mut worst = Duration::ZERO;
    let mut number = 0_u32;
    let mut buffer = [0; 1 << 16];
    while begin.elapsed() < ROUND {
        number += 1;
        worst = worst.max(ask(phone, server, number));
        // What the manager is told is read, or it would be given up as one who does not.
        let _ = admin.read(&mut buffer);
    }
    worst.as_secs_f64() * 1000.0
}

fn ask(phone: &UdpSocket, server: SocketAddr, number: u32) -> Duration {
    let here = phone.local_addr().expect("an address");
    let text = format!(
        "OPTIONS sip:{server} SIP/2.0\r\nVia: SIP/2.0/UDP {here};branch=z9hG4bK{0}-{number};rport\r\nMax-Forwards: 70\r\n\
         From: <sip:phone0@{server}>;tag=a{number}\r\nTo: <sip:{server}>\r\nCall-ID: {0}-{number}\r\n\
         CSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n",
        std::process::id(),
    );
    let begin = Instant::now();
    phone.send(text.as_bytes()).expect("the socket takes it");
    let mut buffer = [0; 4096];
    let branch = format!("-{number};");
    loop {
        let length = phone.recv(&mut buffer).expect("an answer within two seconds");
        if String::from_utf8_lossy(&buffer[..length]).contains(&branch) {
            return begin.elapsed();
        }
    }
}

/// A manager of all rights, whose reads wait a millisecond.
fn login(at: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\nEvents: off\r\n\r\n");
    stream.write_all(login.as_bytes()).expect("the connection stands");
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains("Authentication accepted") {
        let length = stream.read(&mut buffer).expect("an answer");
        assert!(length > 0, "the login is refused");
        heard.extend_from_slice(&buffer[..length]);
    }
    stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out");
    stream
}
