//! Peers against the project's own IAX2 machine on a real socket.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use base::{Cause, Instant};
use iax2::frame::Auth;
use iax2::machine::{Challenge, Encrypt, Lease};
use iax2::{Event, Machine, Out, Secret, Settings};
use io::clock::Clock;
use loadtest::{RegistrationPlan, RegistrationReport, Registrations};

const SECRET: &str = "a password of the test";

/// Where peers came from and who they were, as a registrar with this password saw it until it was told to stop.
fn registrar(socket: &UdpSocket, stop: &AtomicBool) -> BTreeSet<(IpAddr, String)> {
    let mut machine = Machine::new(Clock.now(), 7, Settings::default());
    let (mut out, mut seen, mut buffer) = (Out::default(), BTreeSet::new(), [0; 2048]);
    let lease = Lease { refresh: 60, messages: None, datetime: None, calling: b"", name: b"" };
    while !stop.load(Relaxed) {
        let now: Instant = Clock.now();
        machine.on_timer(now, &mut out);
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            machine.on_datagram(now, from, &buffer[..length], &mut out);
        }
        for event in std::mem::take(&mut out.events) {
            match event {
                Event::Register { leg, request, .. } => {
                    let user = String::from_utf8_lossy(request.fields().username.unwrap()).into_owned();
                    assert!(request.validated, "{user} brings a token");
                    let (methods, encrypt, secret) = (Auth::MD5, Encrypt::No, Secret::new(SECRET.as_bytes()));
                    let ask =
                        Challenge { username: user.as_bytes(), methods, secret, encrypt, keys_stay: false };
                    machine.challenge(now, leg, &ask, &mut out).unwrap();
                    seen.insert((request.from.ip(), user));
                }
                Event::Proven(leg) => machine.register(now, leg, &lease, &mut out).unwrap(),
                Event::Unproven(leg) => {
                    machine.reject(now, leg, Cause::FACILITY_NOT_SUBSCRIBED, b"", &mut out).unwrap();
                }
                _ => {}
            }
        }
        for (to, bytes) in out.datagrams() {
            socket.send_to(bytes, to).unwrap();
        }
        out.clear();
    }
    seen
}

/// Has four peers register from two addresses until `enough`; what was counted, and what the registrar saw.
fn run(
    secret: &str,
    enough: impl Fn(&RegistrationReport) -> bool,
) -> (RegistrationReport, BTreeSet<(IpAddr, String)>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (server, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let seen = std::thread::spawn(move || registrar(&socket, &stopped));
    let peers = Registrations::start(RegistrationPlan {
        server,
        sources: vec![Ipv4Addr::new(127, 0, 0, 5).into(), Ipv4Addr::new(127, 0, 0, 6).into()],
        ports: 2,
        peers: 4,
        name: "peer".into(),
        secret: secret.into(),
        refresh: 60,
        rate: 200.0,
    })
    .unwrap();
    let report = loop {
        let report = peers.report();
        if enough(&report) {
            break report;
        }
        std::thread::yield_now();
    };
    drop(peers);
    stop.store(true, Relaxed);
    (report, seen.join().unwrap())
}

#[test]
fn rfc5456_6_1_peers_register_from_their_addresses_with_token_and_proof() {
    let (report, seen) = run(SECRET, |report| report.registered >= 20);
    assert_eq!((report.refused, report.lost), (0, 0));
    assert_eq!(report.time.count(), report.registered);
    let address = |octet| IpAddr::from([127, 0, 0, octet]);
    let peer = |number: u8| (address(5 + number % 2), format!("peer{number}"));
    assert_eq!(seen, (0..4).map(peer).collect(), "each peer has an address of its own");
}

#[test]
fn rfc5456_6_1_a_wrong_password_is_counted_as_refused() {
    let (report, _) = run("another one", |report| report.refused >= 20);
    assert_eq!((report.registered, report.lost), (0, 0));
}
