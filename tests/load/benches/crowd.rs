//! How long a manager client waits for its login over TLS, and a page for its WebSocket, while 5,000 connections to all
//! ports say nothing, or a byte now and then.

use e2e::{Authority, Server, Site, WebSocket, installed};
use loadbench::{Awake, Crowd, Figure, QUIET_LOG, SecureManager, short};
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
    site.append("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\n{files}"));
    site.append(
        "pjsip.conf",
        &format!("[tls]\ntype=transport\nprotocol=tls\nbind={ip}:5061\ncert_file={certificate}\npriv_key_file={key}\n\
                  [ws]\ntype=transport\nprotocol=ws\n"),
    );
    site.rewrite("logger.conf", QUIET_LOG);
    let _server = Server::start(site);
    let at = |port| SocketAddr::new(ip, port);
    let list = authority.list();
    let client = SecureManager::new(at(5039), ("pbx.example.com", &list), ("good", "Gruen-7-Fenster"));
    let count = if short() { 5 } else { 200 };
    let waits = |wait: &dyn Fn() -> f64| {
        let mut waits: Vec<f64> = (0..count).map(|_| wait()).collect();
        waits.sort_by(f64::total_cmp);
        (waits[waits.len() / 2], waits[waits.len() * 99 / 100])
    };
    let logins = || waits(&|| client.log_in().as_secs_f64() * 1000.0);
    let pages = || {
        waits(&|| {
            let begun = Instant::now();
            let _open = WebSocket::connect(at(8088));
            begun.elapsed().as_secs_f64() * 1000.0
        })
    };
    let (alone, open_alone) = (logins(), pages());
    let ports = [5060, 5061, 5038, 5039, 8088, 8089];
    let _crowd = Crowd::start(ports.into_iter().map(at).collect(), CROWD);
    let (crowded, open_crowded) = (logins(), pages());
    for (name, (median, late)) in [
        ("a login alone", alone),
        ("a login in the crowd", crowded),
        ("a WebSocket alone", open_alone),
        ("a WebSocket in the crowd", open_crowded),
    ] {
        println!("  {name}: median {median:.1} ms, 99th percentile {late:.1} ms");
    }
    Figure {
        name: "login_in_a_crowd",
        value: crowded.1 - alone.0,
        unit: "ms that a login over TLS takes longer than the median of those without a crowd, 99th percentile",
        target: 100.0,
        baseline: alone.1 - alone.0,
        baseline_name: "without the crowd, same run",
    }
    .publish();
    Figure {
        name: "websocket_in_a_crowd",
        value: open_crowded.1 - open_alone.0,
        unit: "ms that a WebSocket takes longer than the median of those without a crowd, 99th percentile",
        target: 100.0,
        baseline: open_alone.1 - open_alone.0,
        baseline_name: "without the crowd, same run",
    }
    .publish();
}
