//! Calls by IAX2: set up while strangers flood the port from forged addresses, and a thousand of them on a trunk.
//!
//! *Attack*: NEW from random addresses of 127.128.0.0/9, a third each without a token, asking for one and with one that is
//! made up; nobody reads what is answered. Meanwhile a known user calls 20 times a second from one address. *Trunk*: two
//! programs on this machine; at the one a thousand channels play music into calls of `trunk=yes`, at the other a thousand
//! calls play music back. `STROWGER_BENCH_ONLY` names a row, `STROWGER_BENCH_SHORT` shortens everything.

use std::time::{Duration, Instant};

use e2e::{SECRET, Server, Site, wait};
use loadbench::{Awake, Figure, Meter, QUIET_LOG, short};
use loadtest::{CallReport, CallerPlan, Flood, IaxCallers};

/// NEW a second from strangers.
const FLOOD: f64 = 100_000.0;
/// Calls a second of who is known.
const RATE: f64 = 20.0;
const GOAL: &str = "the goal of this project";
/// Calls on the trunk.
const CALLS: usize = 1000;

fn told(what: &str, report: &CallReport) -> f64 {
    let ms = |share| report.time.permille(share).as_secs_f64() * 1e3;
    println!(
        "  {what}: {} calls begun, {} answered, {} failed; half in {:.2} ms, 99 % in {:.2} ms, the last in {:.2} ms",
        report.begun,
        report.answered,
        report.failed,
        ms(500),
        ms(990),
        report.time.worst().as_secs_f64() * 1e3
    );
    ms(990)
}

fn attack() {
    let mut site = Site::new("iax-attack").dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(30)\n");
    let ip = site.sip.ip();
    let conf = format!(
        "[general]\nbindaddr={ip}\ndisallow=all\nallow=ulaw\n[caller]\ntype=user\nsecret={SECRET}\ncontext=test\n"
    );
    site.append("iax.conf", &conf);
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let length = Duration::from_secs(if short() { 2 } else { 15 });
    let callers = IaxCallers::start(CallerPlan {
        server: (ip, 4569).into(),
        local: e2e::address(),
        user: "caller".into(),
        secret: SECRET.into(),
        number: "100".into(),
        rate: RATE,
    })
    .expect("the callers start");
    std::thread::sleep(length / 3);
    told("in peace", &callers.report());
    let meter = Meter::new(server.pid());
    let flood = Flood::start((ip, 4569).into(), FLOOD).expect("the flood starts");
    std::thread::sleep(Duration::from_millis(500));
    let _before = callers.report();
    let (read, sent, begun) = (meter.read(), flood.sent(), Instant::now());
    std::thread::sleep(length);
    let (after, came) = (meter.read(), flood.sent() - sent);
    let report = callers.report();
    let usage = server.json("iax2 show callnumber usage");
    let rate = came as f64 / begun.elapsed().as_secs_f64();
    let p99 = told(&format!("under {rate:.0} NEW a second"), &report);
    println!(
        "  {:.1} % of one core; numbers: {usage}",
        after.cpu_since(&read) * 100.0 / after.seconds_since(&read)
    );
    let (unit, target) = ("ms from NEW to ANSWER, 99 %", 100.0);
    let name = "iax attack, good calls";
    Figure { name, value: p99, unit, target, baseline: target, baseline_name: GOAL }.publish();
    let lost = (report.failed + report.begun.saturating_sub(report.answered + report.failed + 3)) as f64;
    let (name, unit) = ("iax attack, good calls lost", "calls that were not answered");
    Figure { name, value: lost, unit, target: 0.0, baseline: 0.0, baseline_name: "at most" }.publish();
    let taken = usage["without_token"].as_f64().unwrap_or(f64::NAN);
    let (name, unit) = ("iax attack, numbers", "numbers taken without a token");
    Figure { name, value: taken, unit, target: 0.0, baseline: 0.0, baseline_name: "at most" }.publish();
}

/// A site of the two; the other is `far`.
fn end(name: &str, other: std::net::IpAddr, dialplan: &str, site: Site) -> Server {
    let ip = site.sip.ip();
    let mut site = site.music(440.0, 30.0).dialplan(dialplan);
    let conf = format!(
        "[general]\nbindaddr={ip}\ndisallow=all\nallow=ulaw\nmaxcallnumbers=16000\nmaxauthreq=0\n\
         [far]\ntype=friend\nhost={other}\nusername=far\nsecret={SECRET}\ncontext=test\ntrunk=yes\ntransfer=no\n"
    );
    site.append("iax.conf", &conf);
    site.rewrite("logger.conf", QUIET_LOG);
    println!("  {name} at {ip}");
    Server::start(site)
}

fn trunk() {
    let (first, second) = (Site::new("iax-trunk-one"), Site::new("iax-trunk-two"));
    let (one, two) = (first.sip.ip(), second.sip.ip());
    let first = end("one", two, "[test]\nexten => 100,1,MusicOnHold()\n", first);
    let second = end("two", one, "[test]\nexten => 100,1,Answer()\n same => n,MusicOnHold()\n", second);
    let calls = if short() { CALLS / 20 } else { CALLS };
    for _ in 0..calls {
        first.cli("channel originate IAX2/far/100 extension 100@test");
    }
    wait::until_true("all calls are up", || second.channels() >= calls && first.channels() >= calls);
    std::thread::sleep(Duration::from_secs(2));
    for (name, server) in [("calling", &first), ("called", &second)] {
        let meter = Meter::new(server.pid());
        let before = meter.read();
        std::thread::sleep(Duration::from_secs(if short() { 1 } else { 8 }));
        let after = meter.read();
        let percent = after.cpu_since(&before) * 100.0 / after.seconds_since(&before) / calls as f64;
        let name = format!("iax trunk, {name}");
        let unit = "% of one core a call";
        Figure { name: &name, value: percent, unit, target: 0.01, baseline: 0.01, baseline_name: GOAL }
            .publish();
    }
    println!("  {}", first.cli("iax2 show stats"));
}

fn main() {
    let _awake = Awake::keep();
    let only = std::env::var("STROWGER_BENCH_ONLY").ok();
    let wanted = |row: &str| only.as_ref().is_none_or(|only| only == row);
    if wanted("iax_attack") {
        attack();
    }
    if wanted("iax_trunk") {
        trunk();
    }
}
