//! Processor time of a call: INVITE, 200, ACK, BYE through Answer and Hangup, with call records, without and with digest,
//! and with digest, asserted identities both ways and a session timer.
//!
//! SIPp calls where it is installed, callers of our own elsewhere, or when `STROWGER_BENCH_OWN` is set.

use e2e::{SECRET, Server, Sipp, Site, address, installed};
use loadbench::{ASTERISK, Awake, Callers, Figure, Meter, Plan, QUIET_LOG, median, run_windows};

fn main() {
    let _awake = Awake::keep();
    for (name, rate, kind, target, baseline) in [
        ("call_500_per_second", 500, Kind::Bare, 0.13, 1.34),
        ("call_500_per_second_digest", 500, Kind::Digest, 0.18, 1.77),
        // What the other one takes for digest alone.
        ("call_500_per_second_identity", 500, Kind::Identity, 0.2, 1.77),
        ("call_100_per_second", 100, Kind::Bare, 0.30, 2.1),
        ("call_100_per_second_digest", 100, Kind::Digest, 0.40, 1.8),
    ] {
        if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        if kind == Kind::Identity && own_callers() {
            println!("skipped: {name}: only SIPp sends identities and timers");
            continue;
        }
        let value = calls(rate, kind);
        Figure { name, value, unit: "ms of one core per call", target, baseline, baseline_name: ASTERISK }
            .publish();
    }
}

/// What a call asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bare,
    Digest,
    /// Digest, P-Asserted-Identity both ways, a session timer.
    Identity,
}

fn own_callers() -> bool {
    std::env::var_os("STROWGER_BENCH_OWN").is_some() || !installed(&["sipp"])
}

/// Milliseconds of one core for each call.
fn calls(rate: u32, kind: Kind) -> f64 {
    let ip = address();
    let mut site = Site::new("calls").dialplan(match kind {
        Kind::Bare | Kind::Digest => "[test]\nexten => 100,1,Answer()\n same => n,Hangup()\n",
        Kind::Identity => {
            "[test]\nexten => 100,1,Set(CONNECTEDLINE(all,i)=\"Hall\" <100>)\n same => n,Answer()\n same => n,Hangup()\n"
        }
    });
    site = match kind {
        Kind::Bare => site.trunk("load", (ip, 5060).into()),
        Kind::Digest => site.phone("load"),
        Kind::Identity => site.phone_with("load", "send_pai=yes\ntrust_id_inbound=yes\n"),
    };
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let meter = Meter::new(server.pid());
    let windows = if own_callers() {
        let plan = Plan {
            server: server.site.sip,
            ip,
            user: "load".into(),
            secret: SECRET.into(),
            exten: "100".into(),
            rate,
            limit: u64::MAX,
            audio: 40_000,
        };
        let callers = Callers::start(plan);
        let windows = run_windows(&meter, || callers.ended());
        assert_eq!(callers.refused(), 0, "calls were refused: {}", server.site.place.read("log/messages"));
        windows
    } else {
        let scenario = match kind {
            Kind::Bare => "trunk_call_is_ended.xml",
            Kind::Digest => "call_is_ended.xml",
            Kind::Identity => "call_with_identity.xml",
        };
        let calls =
            Sipp::new(scenario, server.site.sip).at(ip, 5060).user("load").rate(rate).calls(u32::MAX / 2);
        let _calls = calls.start();
        run_windows(&meter, || processed(&server))
    };
    for window in &windows {
        println!("  {:.4} ms a call at {:.1} calls a second", window.each, window.rate);
    }
    assert!(!server.records().is_empty(), "call records were kept");
    median(windows.iter().map(|window| window.each))
}

/// Calls that the program has had so far.
fn processed(server: &Server) -> u64 {
    let count = server.cli("core show channels count");
    let line = count.lines().find_map(|line| line.strip_suffix(" calls processed"));
    line.and_then(|number| number.trim().parse().ok()).expect("a count of calls")
}
