//! What a process does that has nothing to do.

use std::time::Duration;

use e2e::{Server, Site};
use loadbench::{Figure, Meter, short};

fn main() {
    let (settle, length) = if short() { (1, 1) } else { (3, 20) };
    let server = Server::start(Site::new("idle").phone("alice"));
    let meter = Meter::new(server.pid());
    // What the start has left to do, such as the first writes of its threads, is not idleness.
    std::thread::sleep(Duration::from_secs(settle));
    let before = meter.read();
    std::thread::sleep(Duration::from_secs(length));
    let after = meter.read();
    let wakes = after.wakes_since(&before) as f64 * 10.0 / after.seconds_since(&before);
    let cpu = after.cpu_since(&before) / after.seconds_since(&before) * 100.0;
    Figure {
        name: "idle_processor",
        value: cpu,
        unit: "percent of a core",
        target: 0.1,
        baseline: 0.1,
        baseline_name: "target",
    }
    .publish();
    Figure {
        name: "idle_wakes",
        value: wakes,
        unit: "wake-ups in 10 s",
        target: 10.0,
        baseline: 10.0,
        baseline_name: "target",
    }
    .publish();
}
