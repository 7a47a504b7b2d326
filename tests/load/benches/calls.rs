//! Processor time of a call: INVITE, 200, ACK, BYE through Answer and Hangup, with call records, without and with digest.
//!
//! SIPp calls where it is installed, callers of our own elsewhere, or when `STROWGER_BENCH_OWN` is set.

use e2e::{SECRET, Server, Sipp, Site, address, installed};
use loadbench::{ASTERISK, Callers, Figure, Meter, Plan, QUIET_LOG, median, run_windows};

fn main() {
    for (name, rate, digest, target, baseline) in [
        ("call_500_per_second", 500, false, 0.13, 1.34),
        ("call_500_per_second_digest", 500, true, 0.18, 1.77),
        ("call_100_per_second", 100, false, 0.30, 2.1),
        ("call_100_per_second_digest", 100, true, 0.40, 1.8),
    ] {
        if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let value = calls(rate, digest);
        Figure { name, value, unit: "ms of one core per call", target, baseline, baseline_name: ASTERISK }
            .publish();
    }
}

/// Milliseconds of one core for each call.
fn calls(rate: u32, digest: bool) -> f64 {
    let ip = address();
    let mut site = Site::new("calls").dialplan("[test]\nexten => 100,1,Answer()\n same => n,Hangup()\n");
    site = if digest { site.phone("load") } else { site.trunk("load", (ip, 5060).into()) };
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let meter = Meter::new(server.pid());
    let own = std::env::var_os("STROWGER_BENCH_OWN").is_some() || !installed(&["sipp"]);
    let windows = if own {
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
        let scenario = if digest { "call_is_ended.xml" } else { "trunk_call_is_ended.xml" };
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
