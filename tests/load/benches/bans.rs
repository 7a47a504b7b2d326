//! Processor time of a packet from an address that has guessed too many passwords, beside that of one which is refused.
//!
//! Both are the same REGISTER without a password, at the same rate, in turns within one run: from one address it is challenged
//! with a 401, which is the cheapest refusal there is, from the other nothing is read any more. The kernel's own work to
//! receive a datagram is in both.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use e2e::{Server, Site, address, wait};
use loadbench::{Awake, Figure, Meter, QUIET_LOG, Registrars, median, short};

/// Packets a second: the program remembers each refusal for half a minute, and has room for all of them.
const RATE: u32 = 1000;
/// Packets that leave together: the timer of a thread is no finer.
const BATCH: u32 = 5;
/// What one may cost beside a refused one, percent.
const PERCENT_MAX: f64 = 50.0;

fn main() {
    let _awake = Awake::keep();
    let mut site =
        Site::new("bans").phone("phone0").add("asterisk.conf", "[bans]\nmaxretry_address=6\nloopback=yes\n");
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let (stranger, guesser) = (address(), address());
    ban(&server, guesser);
    let (meter, rounds) = (Meter::new(server.pid()), if short() { 1 } else { 5 });
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (costs, place) in costs.iter_mut().zip([stranger, guesser]) {
            let (each, answers) = flood(&meter, place, server.site.sip);
            // The first one warms up.
            if round > 0 {
                let who = if place == guesser { "the banned" } else { "others" };
                println!("  {:.2} us a packet from {who}, {answers} of 100 answered", each * 1e6);
                costs.push(each);
            }
        }
    }
    let [refused, banned] = costs.map(median);
    Figure {
        name: "packet_of_a_banned_address",
        value: banned * 1e6,
        unit: "us of one core per packet that is dropped",
        target: refused * 1e6 * PERCENT_MAX / 100.0,
        baseline: refused * 1e6,
        baseline_name: "a packet that is refused",
    }
    .publish();
}

/// Guesses passwords until the address is banned.
fn ban(server: &Server, place: IpAddr) {
    let _guesses = Registrars::start(server.site.sip, place, 1, "no such word", 20);
    wait::until_true("the guesser is banned as a whole", || {
        let listed = server.json("core show bans");
        let bans = listed["bans"].as_array().expect("a list");
        bans.iter().any(|ban| {
            ban["address"] == place.to_string().as_str()
                && ban["user"].as_str().unwrap_or_default().is_empty()
        })
    });
}

/// Seconds of a core that one packet of many cost, and how many of a hundred were answered.
fn flood(meter: &Meter, place: IpAddr, server: SocketAddr) -> (f64, u32) {
    let socket = UdpSocket::bind((place, 0)).expect("a port for SIP");
    socket.connect(server).expect("a way to the program");
    socket.set_nonblocking(true).expect("a socket that does not wait");
    let local = socket.local_addr().expect("an address");
    let count = if short() { RATE / 5 } else { 4 * RATE };
    let (begun, before, mut buffer, mut answers) = (Instant::now(), meter.read(), [0; 2048], 0);
    for number in 0..count {
        let text = format!(
            "REGISTER sip:{server} SIP/2.0\r\nVia: SIP/2.0/UDP {local};rport;branch=z9hG4bK-{number}\r\nMax-Forwards: 70\r\n\
             From: <sip:phone0@{server}>;tag=f{number}\r\nTo: <sip:phone0@{server}>\r\nCall-ID: flood-{number}-{local}\r\n\
             CSeq: 1 REGISTER\r\nContact: <sip:phone0@{local}>\r\nExpires: 3600\r\nContent-Length: 0\r\n\r\n"
        );
        // What does not fit is lost, as on any wire; so are answers that nobody reads.
        let _sent = socket.send(text.as_bytes());
        if number % BATCH == BATCH - 1 {
            while socket.recv(&mut buffer).is_ok() {
                answers += 1;
            }
            let due = begun + Duration::from_secs(1) * (number + 1) / RATE;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    (meter.read().cpu_since(&before) / f64::from(count), answers * 100 / count)
}
