//! Memory: of a process with nothing to do, and of each call that is up.

use e2e::{SECRET, Server, Site, address};
use loadbench::{ASTERISK, Callers, Figure, Meter, Plan, QUIET_LOG, short};

/// Calls that are held.
const CALLS: u64 = 2000;

fn main() {
    let ip = address();
    let calls = if short() { CALLS / 10 } else { CALLS };
    let mut site = Site::new("memory")
        .dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(3600)\n")
        .trunk("load", (ip, 5060).into());
    site.rewrite("logger.conf", QUIET_LOG);
    let server = Server::start(site);
    let meter = Meter::new(server.pid());
    let idle = meter.resident();
    Figure {
        name: "resident_idle",
        value: idle / 1e6,
        unit: "MB",
        target: 20.0,
        baseline: 28.0,
        baseline_name: ASTERISK,
    }
    .publish();

    let callers = Callers::start(Plan {
        server: server.site.sip,
        ip,
        user: "load".into(),
        secret: SECRET.into(),
        exten: "100".into(),
        rate: 250,
        limit: calls,
        audio: 40_000,
    });
    e2e::wait::until_true("all calls are answered", || callers.answered() >= calls);
    assert_eq!((callers.refused(), callers.ended()), (0, 0), "all calls stay up");
    assert_eq!(server.channels() as u64, calls);
    Figure {
        name: "resident_per_call",
        value: (meter.resident() - idle) / calls as f64 / 1e3,
        unit: "kB",
        target: 20.0,
        baseline: 153.0,
        baseline_name: ASTERISK,
    }
    .publish();
}
