//! Three times as many calls as fit: how fast those that do not are told so, and what those that are up lose.
//!
//! Once with a limit that an operator has set (`maxcalls`), and once with the one that is always there (`maxbusy`), which
//! finds out itself how many calls the media worker can carry; it is set lower than it is by default, so that the callers,
//! on the same machine, are not short of time themselves. What is lost is counted by the callers while three times as many
//! calls come in. Under such a load both the program and the callers' SIP nap up to 20 ms between two looks: of the time to a
//! refusal that is measured, half is the callers' own.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use e2e::{Server, Site};
use loadbench::{Figure, QUIET_LOG, short};
use loadtest::{Hear, Load, Plan, Report};

/// Calls a second that are offered.
const RATE: f64 = 400.0;
/// What refusals are to take at most, milliseconds, 99 of 100.
const REFUSED_IN_MS: f64 = 50.0;

struct Row {
    name: &'static str,
    limit: &'static str,
    offered: u64,
}

fn main() {
    let rows = [
        Row { name: "overload_maxcalls", limit: "maxcalls = 400\n", offered: 1200 },
        Row { name: "overload_maxbusy", limit: "maxbusy = 30\n", offered: 6000 },
    ];
    for row in rows {
        if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != row.name) {
            continue;
        }
        let report = run(&row);
        let (fit, refused) = (report.answered, report.refused.values().sum::<u64>());
        let others: Vec<_> = report.refused.keys().filter(|status| **status != 503).collect();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "  {} calls offered at {RATE} a second: {fit} up, half of them in {:.1} ms; {refused} refused, half of them in \
             {:.1} ms; of {} packets {} were lost; other answers than 503: {others:?}; generator late {:.2} ms (99 %)",
            report.begun,
            ms(report.answer_time.permille(500)),
            ms(report.refusal_time.permille(500)),
            report.arrivals.received,
            report.arrivals.lost,
            ms(report.own.lateness.permille(990))
        );
        if refused == 0 {
            println!("{}: nobody was refused: this machine carries more than was offered", row.name);
            continue;
        }
        let value = ms(report.refusal_time.permille(990));
        Figure {
            name: row.name,
            value,
            unit: "ms from INVITE to 503, 99 %",
            target: REFUSED_IN_MS,
            baseline: REFUSED_IN_MS,
            baseline_name: "at most",
        }
        .publish();
        Figure {
            name: &format!("{}_lost", row.name),
            value: report.arrivals.lost as f64 * 1e6 / (report.arrivals.received.max(1)) as f64,
            unit: "packets of a million lost by calls that are up",
            target: 0.0,
            baseline: 0.0,
            baseline_name: "at most",
        }
        .publish();
    }
}

fn run(row: &Row) -> Report {
    let site = Site::new(row.name)
        .add("asterisk.conf", row.limit)
        .add("rtp.conf", "[general]\nrtpstart=10000\nrtpend=30000\nmedia_workers=1\n")
        .dialplan("[test]\nexten => echo,1,Answer()\n same => n,Echo()\n");
    let callers = e2e::address();
    let mut site = site.trunk("load", (callers, 5099).into());
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let offered = if short() { row.offered.min(2000) } else { row.offered };
    let plan = Plan {
        number: Some("echo".into()),
        calls: offered,
        rate: RATE,
        hear: Hear::Anything,
        real_time: true,
        ..Plan::new(server.site.sip, callers)
    };
    let load = Load::start(plan).unwrap_or_else(|error| panic!("{error}; {}", error.remedy()));
    let begun = Instant::now();
    let patience = Duration::from_secs_f64(30.0 + 2.0 * offered as f64 / RATE);
    // All have an answer, or three times as many as fit have been refused.
    loop {
        let (up, refused) = (load.progress().up.load(Relaxed), load.progress().refused.load(Relaxed));
        if up + refused >= offered || (up > 0 && refused >= 2 * up) || begun.elapsed() > patience {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    load.report()
}
