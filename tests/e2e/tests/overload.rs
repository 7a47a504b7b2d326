//! More than fits is refused before it costs anything; what is up is not touched.

use e2e::{Phone, Server, Site, Speak, address, wait};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => 101,1,Answer()
 same => n,Hangup()
";

#[test]
fn the_call_over_maxcalls_gets_503_with_retry_after_until_one_hangs_up() {
    const CALLS: usize = 3;
    let site = Site::new("maxcalls")
        .add("asterisk.conf", &format!("maxcalls = {CALLS}\n"))
        .phone("alice")
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    let mut up: Vec<Phone> = (0..CALLS).map(|_| Phone::new(server.site.sip, "alice")).collect();
    for phone in &mut up {
        phone.media.speak(Speak::Tone(440.0));
        phone.must_call("echo");
    }
    let mut late = Phone::new(server.site.sip, "alice");
    for _ in 0..20 {
        let refused = late.call("echo");
        assert_eq!(refused.status(), Some(503), "{}", refused.text());
        let seconds: u32 = refused.must("Retry-After").parse().expect("a number of seconds");
        assert!((1..=60).contains(&seconds), "{seconds} s");
    }
    for phone in &up {
        wait::until_true("the echo goes on", || phone.media.heard().tone(440.0) >= 500);
        assert_eq!(phone.media.heard().lost(), 0);
    }
    up[0].hang_up();
    wait::until_true("there is room for one", || late.call("echo").status() == Some(200));
    late.hang_up();
    up[1..].iter_mut().for_each(Phone::hang_up);
    server.until_idle();
}

#[test]
fn at_three_times_what_fits_calls_that_are_up_lose_no_packet_and_all_others_get_503() {
    const FIT: u64 = 20;
    let limits = format!("maxcalls = {FIT}\n");
    let site = Site::new("threefold").add("asterisk.conf", &limits).phone("alice").dialplan(DIALPLAN);
    let server = Server::start(site);
    let calls = (3 * FIT).to_string();
    let offered = std::process::Command::new(e2e::program())
        .args([
            "load",
            &server.site.sip.to_string(),
            "--to",
            "echo",
            "--user",
            "alice",
            "--secret",
            e2e::SECRET,
        ])
        .args(["--calls", &calls, "--rate", "60", "--seconds", "12", "--hear", "own", "--check-every", "1"])
        .args(["--io", "epoll", "--max-loss", "0", "--json", "-q"])
        .output()
        .expect("the generator runs");
    let words = String::from_utf8_lossy(&offered.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&offered.stdout).unwrap_or_else(|_| panic!("{words}"));
    let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_u64);
    assert_eq!(number("/calls/begun"), Some(3 * FIT), "{report}");
    assert_eq!(number("/calls/answered"), Some(FIT), "{report}");
    assert_eq!(report["calls"]["refused"], serde_json::json!({ "503": 2 * FIT }), "{report}");
    assert!(number("/packets/received").is_some_and(|count| count > FIT * 50), "{report}");
    for nothing in ["/packets/lost", "/sides/silent", "/audio/wrong", "/calls/ended"] {
        assert_eq!(number(nothing), Some(0), "{nothing}: {report}");
    }
    server.until_idle();
}

#[test]
fn above_maxload_new_calls_get_503_with_retry_after() {
    // A machine that runs tests has more to do than this.
    let site =
        Site::new("maxload").add("asterisk.conf", "maxload = 0.001\n").phone("alice").dialplan(DIALPLAN);
    let server = Server::start(site);
    let refused = Phone::new(server.site.sip, "alice").call("echo");
    assert_eq!(refused.status(), Some(503), "{}", refused.text());
    assert!(refused.header("Retry-After").is_some(), "{}", refused.text());
}

#[test]
fn calls_faster_than_maxcps_get_503_after_a_seconds_worth() {
    let site = Site::new("maxcps").add("asterisk.conf", "maxcps = 2\n").phone("alice").dialplan(DIALPLAN);
    let server = Server::start(site);
    let started = Instant::now();
    let mut phones: Vec<Phone> = (0..12).map(|_| Phone::new(server.site.sip, "alice")).collect();
    let statuses: Vec<_> = phones.iter_mut().map(|phone| phone.call("echo").status()).collect();
    let answered = statuses.iter().filter(|status| **status == Some(200)).count();
    // Two a second, and the burst of the first second; on a slow machine the calls are spread over more of them.
    let most = 3 + 2 * (started.elapsed().as_secs() as usize + 1);
    assert!((2..=most).contains(&answered), "{statuses:?}");
    assert!(answered == 12 || statuses.contains(&Some(503)), "{statuses:?}");
}

#[test]
fn a_flood_of_strangers_costs_neither_memory_nor_descriptors_nor_a_call_that_is_up() {
    const FLOOD: usize = 20_000;
    const GROWTH_MAX: u64 = 32 << 20;
    let mut server = Server::start(Site::new("flood").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    let (memory, descriptors) = (server.resident(), server.descriptors());

    let stranger = UdpSocket::bind((address(), 0)).expect("a port");
    stranger.set_nonblocking(true).expect("a mode");
    let (from, to) = (stranger.local_addr().expect("its address"), server.site.sip);
    let sdp = alice.sdp("sendrecv");
    let mut answers = 0;
    let mut buffer = [0; 4096];
    for number in 0..FLOOD {
        let user = if number % 2 == 0 { "alice".to_owned() } else { format!("user{number}") };
        let invite = format!(
            "INVITE sip:echo@{to} SIP/2.0\r\nVia: SIP/2.0/UDP {from};rport;branch=z9hG4bKflood{number}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{user}@{to}>;tag=f{number}\r\nTo: <sip:echo@{to}>\r\n\
             Call-ID: flood{number}@{from}\r\nCSeq: 1 INVITE\r\nContact: <sip:{user}@{from}>\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        );
        // A full buffer drops the datagram, as the net would.
        let _sent = stranger.send_to(invite.as_bytes(), to);
        while stranger.recv(&mut buffer).is_ok() {
            answers += 1;
        }
    }
    assert!(answers > 0, "nobody is answered");
    server.assert_healthy();
    assert_eq!(server.channels(), 1, "strangers hold channels");
    // The port for RTCP of the call that is up is opened when the first report is near.
    wait::until_true("strangers hold no descriptors", || server.descriptors() <= descriptors + 1);
    let growth = server.resident().saturating_sub(memory);
    assert!(growth < GROWTH_MAX, "grown by {growth} bytes");
    alice.media.forget();
    wait::until_true("the echo goes on", || alice.media.heard().tone(440.0) >= 500);
    alice.hang_up();

    // A good call is served.
    let mut other = Phone::new(server.site.sip, "alice");
    other.must_call("echo");
    other.hang_up();
    server.until_idle();
}

#[test]
fn many_calls_after_one_another_leave_nothing_behind() {
    const GROWTH_MAX: u64 = 2 << 20;
    let server = Server::start(Site::new("leak").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut calls = |count: usize| {
        for _ in 0..count {
            alice.must_call("101");
            alice.until_hung_up();
        }
        server.until_idle();
    };
    calls(200);
    let (descriptors, memory) = (server.descriptors(), server.resident());
    calls(300);
    wait::until_true("all ports are given back", || server.descriptors() <= descriptors);
    let growth = server.resident().saturating_sub(memory);
    assert!(growth < GROWTH_MAX, "300 calls leave {growth} bytes behind");
}

#[test]
fn slow_tcp_clients_do_not_keep_others_out() {
    let server = Server::start(Site::new("slow").phone("alice").dialplan(DIALPLAN));
    let idle: Vec<_> = (0..200)
        .filter_map(|_| std::net::TcpStream::connect(server.site.sip).ok())
        .map(|mut stream| {
            use std::io::Write as _;
            // Half a message: the rest never comes. Whether it is taken is the server's business.
            let _taken = stream.write_all(b"INVITE sip:echo@example.com SIP/2.0\r\nVia: ");
            stream
        })
        .collect();
    assert!(!idle.is_empty());
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    drop(idle);
}

#[test]
fn a_manager_client_that_does_not_read_delays_nobody() {
    use std::io::Write as _;
    const SECRET: &str = "a-long-manager-secret";
    const GROWTH_MAX: u64 = 32 << 20;
    let site = Site::new("deaf").phone("alice").dialplan(DIALPLAN);
    let ip = site.sip.ip();
    let server = Server::start(site.add(
        "manager.conf",
        &format!(
            "[general]\nenabled=yes\nport=5038\nbindaddr={ip}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n"
        ),
    ));
    let memory = server.resident();
    let mut deaf = std::net::TcpStream::connect((ip, 5038)).expect("a connection");
    deaf.set_write_timeout(Some(Duration::from_millis(100))).expect("a time-out");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\n\r\n");
    deaf.write_all(login.as_bytes()).expect("the connection stands");
    // Each asks for some kilobytes. The server may stop reading or hang up; it may not keep them all.
    for _ in 0..5_000 {
        if deaf.write_all(b"Action: Command\r\nCommand: core show applications\r\n\r\n").is_err() {
            break;
        }
    }
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("echo");
    alice.hang_up();
    let growth = server.resident().saturating_sub(memory);
    assert!(growth < GROWTH_MAX, "grown by {growth} bytes");
}
