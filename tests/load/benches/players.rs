//! 500 callers in Playback, G.711, through the whole program.

use std::time::Duration;

use e2e::{SECRET, Server, Site, address};
use loadbench::{ASTERISK, Awake, Callers, Figure, Listener, Meter, Plan, QUIET_LOG, median, short};

/// Callers that listen.
const CALLS: u64 = 500;
/// Packets of one caller a second.
const PACKETS: f64 = 50.0;

fn main() {
    let _awake = Awake::keep();
    let ip = address();
    let calls = if short() { CALLS / 10 } else { CALLS };
    let (windows, length) =
        if short() { (1, Duration::from_millis(500)) } else { (5, Duration::from_secs(4)) };
    let mut site = Site::new("players")
        .prompt("long", 440.0, 120.0)
        .dialplan(
            "[test]\nexten => 100,1,Answer()\n same => n(again),Playback(long)\n same => n,Goto(again)\n",
        )
        .trunk("load", (ip, 5060).into());
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let listener = Listener::start(ip);
    let callers = Callers::start(Plan {
        server: server.site.sip,
        ip,
        user: "load".into(),
        secret: SECRET.into(),
        exten: "100".into(),
        rate: 100,
        limit: calls,
        audio: listener.port(),
    });
    e2e::wait::until_true("all calls are answered", || callers.answered() >= calls);
    let meter = Meter::new(server.pid());
    std::thread::sleep(length);
    let mut before = (meter.read(), listener.heard());
    let mut shares = Vec::new();
    for _ in 0..windows {
        std::thread::sleep(length);
        let after = (meter.read(), listener.heard());
        let seconds = after.0.seconds_since(&before.0);
        let share = (after.1 - before.1) as f64 / (calls as f64 * PACKETS * seconds);
        let cpu = after.0.cpu_since(&before.0) / seconds / calls as f64 * 100.0;
        println!("  {cpu:.4} % of a core a call, {:.1} % of the packets heard", share * 100.0);
        shares.push(cpu);
        before = after;
    }
    assert_eq!(callers.refused(), 0, "no call was refused");
    Figure {
        name: "playback_500_whole",
        value: median(shares),
        unit: "percent of a core per call",
        target: 0.04,
        baseline: 0.19,
        baseline_name: ASTERISK,
    }
    .publish();
}
