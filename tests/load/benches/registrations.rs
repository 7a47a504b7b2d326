//! Processor time of a registration with digest: REGISTER, 401, REGISTER with the proof, 200.

use e2e::{SECRET, Server, Site, address};
use loadbench::{ASTERISK, Awake, Figure, Meter, QUIET_LOG, Registrars, median, run_windows};

/// Phones that take turns.
const PHONES: u64 = 1000;

fn main() {
    let _awake = Awake::keep();
    for (name, rate, target, baseline) in
        [("register_1500_per_second", 1500, 0.05, 0.43), ("register_250_per_second", 250, 0.10, 0.9)]
    {
        if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let mut site = Site::new("registrations");
        for phone in 0..PHONES {
            site = site.phone(&format!("phone{phone}"));
        }
        site.rewrite("logger.conf", QUIET_LOG);
        let server = Server::start(site);
        let phones = Registrars::start(server.site.sip, address(), PHONES, SECRET, rate);
        let windows = run_windows(&Meter::new(server.pid()), || phones.registered());
        assert_eq!(phones.refused(), 0, "registrations were refused");
        for window in &windows {
            println!("  {:.4} ms a registration at {:.1} a second", window.each, window.rate);
        }
        let value = median(windows.iter().map(|window| window.each));
        let unit = "ms of one core per registration";
        Figure { name, value, unit, target, baseline, baseline_name: ASTERISK }.publish();
    }
}
