//! 5,000 phones watch one extension: how long it takes, when it changes, until the last one is told.
//!
//! The phones are endpoints of their own, each with a subscription to dialog-info that it proved itself for. A manager
//! client sets the device, and the clock runs from its word to the last NOTIFY that has come in, which another thread
//! answers meanwhile on the same two processors. The baseline is a tenth of the watchers, times ten: a ratio near 1 says
//! that each costs the same, however many there are. `STROWGER_BENCH_SHORT` takes a hundredth of both.

use std::time::{Duration, Instant};

use e2e::{SECRET, Server, Site, address};
use loadbench::{Awake, Figure, Manager, Meter, QUIET_LOG, Watchers, median, short};

const WATCHERS: u64 = 5000;
/// How many of all watchers the baseline has.
const PART: u64 = 10;
/// Changes that are told.
const CHANGES: u64 = 20;
/// Between two changes, so that what is left of one does not slow the next.
const PAUSE: Duration = Duration::from_secs(1);

/// What a site has shown.
struct Shown {
    /// Milliseconds until the last was told: the median of all changes, and the longest.
    median_ms: f64,
    longest_ms: f64,
    /// Microseconds of one core for each watcher that is told.
    each_us: f64,
}

fn measure(watchers: u64) -> Shown {
    let mut site = Site::new("watchers-bench")
        .dialplan("[test]\nexten => lamp,hint,Custom:lamp\nexten => lamp,1,Hangup()\n");
    for phone in 0..watchers {
        site = site.phone(&format!("phone{phone}"));
    }
    let ip = site.sip.ip();
    let mut site = site.add("manager.conf", &Manager::file(ip));
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let phones = Watchers::start(server.site.sip, address(), watchers, "lamp", SECRET);
    let mut manager = Manager::login(ip);
    let meter = Meter::new(server.pid());
    let before = meter.read();
    let mut times: Vec<f64> = (0..CHANGES)
        .map(|change| {
            std::thread::sleep(PAUSE);
            let (told, state) = (phones.told(), if change % 2 == 0 { "INUSE" } else { "NOT_INUSE" });
            let action =
                format!("Action: Setvar\r\nVariable: DEVICE_STATE(Custom:lamp)\r\nValue: {state}\r\n\r\n");
            let begun = Instant::now();
            manager.ask(&action, "Variable Set");
            phones.until(told + watchers, begun).as_secs_f64() * 1e3
        })
        .collect();
    let after = meter.read();
    times.sort_by(f64::total_cmp);
    let each_us = after.cpu_since(&before) * 1e6 / (CHANGES * watchers) as f64;
    let longest_ms = times.last().copied().unwrap_or_default();
    let median_ms = median(times);
    println!(
        "  {watchers} watchers: told within {median_ms:.1} ms (median), {longest_ms:.1} ms at most, {each_us:.2} us each, {} came twice",
        phones.repeated()
    );
    Shown { median_ms, longest_ms, each_us }
}

fn main() {
    if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != "watchers") {
        return;
    }
    let _awake = Awake::keep();
    let share = if short() { 100 } else { 1 };
    let all = measure(WATCHERS / share);
    let part = measure(WATCHERS / share / PART);
    let (baseline_name, linear) = ("a tenth of the watchers, times ten", PART as f64);
    for (name, unit, value, target, baseline) in [
        (
            "watchers_told",
            "ms until 5,000 watchers are told, median",
            all.median_ms,
            200.0,
            part.median_ms * linear,
        ),
        ("watchers_told_longest", "ms until 5,000 watchers are told, longest", all.longest_ms, 200.0, {
            part.longest_ms * linear
        }),
    ] {
        Figure { name, value, unit, target, baseline, baseline_name }.publish();
    }
    let (name, unit) = ("watcher_cpu", "us of one core for each watcher that is told");
    let (value, baseline) = (all.each_us, part.each_us);
    Figure { name, value, unit, target: 40.0, baseline, baseline_name: "a tenth of the watchers" }.publish();
}
