//! How long a manager client waits for its login over TLS while 5,000 connections to all ports say nothing, or a byte now
//! and then.

use e2e::{Authority, Secure, Server, Site, installed};
use loadbench::{Awake, Crowd, Figure, QUIET_LOG, short};
use std::net::SocketAddr;
use std::time::Instant;

/// Connections of the crowd.
const CROWD: usize = 5000;

fn main() {
    let _awake = Awake::keep();
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("crowd");
    let own = authority.sign("DNS:pbx.example.com");
    let mut site = Site::new("crowd").phone("alice");
    let ip = site.sip.ip();
    let (certificate, key) = (own.certificate.display(), own.key.display());
    let files = format!("tlsenable=yes\ntlscertfile={certificate}\ntlsprivatekey={key}\n");
    let manager = format!(
        "[general]\nenabled=yes\nbindaddr={ip}\n{files}[good]\nsecret=Gruen-7-Fenster\nread=all\nwrite=all\n"
    );
    site.append("manager.conf", &manager);
    site.append(
        "pjsip.conf",
        &format!("[tls]\ntype=transport\nprotocol=tls\nbind={ip}:5061\ncert_file={certificate}\npriv_key_file={key}\n"),
    );
    site.rewrite("logger.conf", QUIET_LOG);
    let _server = Server::start(site);
    let at = |port| SocketAddr::new(ip, port);
    let _crowd = Crowd::start(vec![at(5060), at(5061), at(5038), at(5039)], CROWD);
    let count = if short() { 5 } else { 200 };
    let mut waits: Vec<f64> = (0..count)
        .map(|_| {
            let begin = Instant::now();
            let mut client = Secure::connect(at(5039), &[]);
            client.send("Action: Login\r\nUsername: good\r\nSecret: Gruen-7-Fenster\r\n\r\n");
            client.until("Response: Success");
            begin.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    let value = waits[waits.len() * 99 / 100];
    println!(
        "  median {:.1} ms, 99th percentile {value:.1} ms, with the start of the client's process",
        waits[waits.len() / 2]
    );
    let unit = "ms that a login waits, 99th percentile";
    Figure {
        name: "login_in_a_crowd",
        value,
        unit,
        target: 100.0,
        baseline: 100.0,
        baseline_name: "the goal of this project",
    }
    .publish();
}
