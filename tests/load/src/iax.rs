//! IAX2 registrations at a rate, and what they cost.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use loadtest::{RegistrationPlan, RegistrationReport, Registrations};

use crate::short;

/// Peers that take turns.
pub const IAX_PEERS: u32 = 15_000;

/// What one window gave.
pub struct IaxWindow {
    /// Percent of one core.
    pub percent: f64,
    /// What the peers counted.
    pub report: RegistrationReport,
}

impl IaxWindow {
    /// Microseconds of one core for a registration.
    pub fn each(&self) -> f64 {
        self.percent / 100.0 * self.report.length.as_secs_f64() * 1e6 / self.report.registered.max(1) as f64
    }
    /// Milliseconds from REGREQ to REGACK, 99 of 100.
    pub fn p99_ms(&self) -> f64 {
        self.report.time.permille(990).as_secs_f64() * 1e3
    }
    /// Prints it.
    pub fn tell(&self, who: &str, rate: f64) {
        let report = &self.report;
        println!(
            "  {who} at {rate} a second: {:.2} % of one core, {:.1} us each; {} registered, {} refused, {} lost, {} frames \
             again, {} not begun; half in {:.2} ms, 99 % in {:.2} ms, the last in {:.2} ms; generator late {:.2} ms (99 %)",
            self.percent,
            self.each(),
            report.registered,
            report.refused,
            report.lost,
            report.repeated,
            report.skipped,
            report.time.permille(500).as_secs_f64() * 1e3,
            self.p99_ms(),
            report.time.worst().as_secs_f64() * 1e3,
            report.lateness.permille(990).as_secs_f64() * 1e3
        );
    }
    /// All that was begun came to its end.
    pub fn is_whole(&self) -> bool {
        let RegistrationReport { refused, lost, skipped, .. } = self.report;
        refused + lost + skipped == 0
    }
}

/// Counts processor time, as seconds so far.
pub type Cpu<'a> = &'a dyn Fn() -> f64;

/// Peers at work, `peer0` and so on; `addresses` of 127.0.0.0/8 with a port each.
pub fn iax_peers(server: SocketAddr, addresses: u16, rate: f64) -> Registrations {
    // An address is nobody's else: those of servers have another second octet.
    let source = |number: u16| Ipv4Addr::new(127, 9, 1 + (number / 200) as u8, 1 + (number % 200) as u8);
    let plan = RegistrationPlan {
        server,
        sources: (0..addresses).map(|number| IpAddr::V4(source(number))).collect(),
        ports: 1,
        peers: IAX_PEERS,
        name: "peer".into(),
        secret: e2e::SECRET.into(),
        refresh: 60,
        rate,
    };
    Registrations::start(plan).expect("the generator starts")
}

/// Lets the peers go on for a while, and then counts.
pub fn iax_window(peers: &Registrations, cpu: Cpu<'_>, seconds: f64) -> IaxWindow {
    let length = Duration::from_secs_f64(if short() { seconds.min(1.0) } else { seconds });
    std::thread::sleep(length.min(Duration::from_secs(1)));
    peers.begin_window();
    let before = cpu();
    std::thread::sleep(length);
    let spent = cpu() - before;
    let report = peers.report();
    IaxWindow { percent: spent * 100.0 / report.length.as_secs_f64(), report }
}
