//! Processor time of a registration with digest over TLS: on a connection that is open, after a handshake that resumes a
//! session, after a whole one. The server's key is ECDSA with P-256.

use e2e::{Authority, SECRET, Server, Site, installed};
use loadbench::{Awake, Figure, Handshake, Meter, QUIET_LOG, SecureRegistrars, median, run_windows};
use std::net::SocketAddr;

/// Phones that take turns.
const PHONES: u64 = 100;
/// What the figures are compared with: nobody has published any for TLS.
const GOAL: &str = "the goal of this project";
/// Name that the server proves.
const NAME: &str = "pbx.example.com";

fn main() {
    let _awake = Awake::keep();
    if !installed(&["openssl"]) {
        return;
    }
    for (name, rate, handshake, target) in [
        ("register_tls_open", 500, Handshake::None, 0.07),
        ("register_tls_open_busy", 1_500, Handshake::None, 0.07),
        ("register_tls_resumed", 150, Handshake::Resumed, 0.3),
        ("register_tls_full", 150, Handshake::Full, 0.6),
    ] {
        if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let authority = Authority::new("bench");
        let own = authority.sign(&format!("DNS:{NAME}"));
        let mut site = Site::new("registrations-tls");
        let at = SocketAddr::new(site.sip.ip(), 5061);
        for phone in 0..PHONES {
            let many = format!("phone{phone}");
            site = site.phone(&many);
        }
        site.append(
            "pjsip.conf",
            &format!(
                "[tls]\ntype=transport\nprotocol=tls\nbind={at}\ncert_file={}\npriv_key_file={}\n",
                own.certificate.display(),
                own.key.display()
            ),
        );
        site.rewrite("logger.conf", QUIET_LOG);
        let server = Server::start(site);
        let list = authority.list();
        let phones = SecureRegistrars::start(at, (NAME, &list), PHONES, SECRET, (rate, handshake));
        let windows = run_windows(&Meter::new(server.pid()), || phones.registered());
        for window in &windows {
            println!("  {:.4} ms a registration at {:.1} a second", window.each, window.rate);
        }
        let value = median(windows.iter().map(|window| window.each));
        let unit = "ms of one core per registration";
        Figure { name, value, unit, target, baseline: target, baseline_name: GOAL }.publish();
    }
}
