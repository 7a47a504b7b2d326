//! Flows that registrars keep (RFC 5626): the program shows that its own are in use, and registers anew when one is lost.

use e2e::{Message, Server, Site};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Longest wait for what has to come.
const SOON: Duration = Duration::from_secs(60);
/// In every message of STUN (RFC 5389 §6).
const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

/// A site that registers with this registrar and names its flow.
fn site(name: &str, registrar: SocketAddr, transport: &str) -> Site {
    Site::new(name).add(
        "pjsip.conf",
        &format!(
            "[line]\ntype=registration\nserver_uri=sip:{registrar}{transport}\nclient_uri=sip:account@carrier.example\n\
             support_outbound=yes\n"
        ),
    )
}
fn registrar() -> SocketAddr {
    (e2e::address(), 5060).into()
}

/// Grants a registration as a registrar does that keeps flows and wants to hear of them every 5 seconds.
fn granted(register: &[u8]) -> Vec<u8> {
    let register = Message::parse(register);
    assert_eq!(register.method(), "REGISTER", "{}", register.text());
    assert!(register.must("Supported").contains("outbound"), "{}", register.text());
    assert!(register.must("Contact").contains(";reg-id=1;+sip.instance="), "{}", register.text());
    let (to, contact) = (register.must("To"), register.must("Contact"));
    let mut text = format!(
        "SIP/2.0 200 OK\r\nTo: {to};tag=r\r\nContact: {contact};expires=600\r\nRequire: outbound\r\nFlow-Timer: 5\r\n"
    );
    for name in ["Via", "From", "Call-ID", "CSeq"] {
        text += &format!("{name}: {}\r\n", register.must(name));
    }
    (text + "Content-Length: 0\r\n\r\n").into_bytes()
}

/// The answer to a binding request: it came from this port (RFC 5389 §15.2).
fn seen_at(request: &[u8], ip: IpAddr, port: u16) -> Vec<u8> {
    let IpAddr::V4(ip) = ip else { panic!("tests are at addresses of IPv4") };
    assert!(request.len() == 20 && request[..2] == [0, 1] && request[4..8] == COOKIE, "{request:x?}");
    let masked = |bytes: &[u8]| bytes.iter().zip(COOKIE).map(|(byte, mask)| byte ^ mask).collect::<Vec<u8>>();
    let (port, ip) = (masked(&port.to_be_bytes()), masked(&ip.octets()));
    [&[1, 1, 0, 12][..], &request[4..], &[0, 0x20, 0, 8, 0, 1], &port, &ip].concat()
}

/// The next datagram that is none of those before: what is sent again, because an answer was slow, is no news.
fn news(socket: &UdpSocket, known: &mut Vec<Vec<u8>>) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 4096];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("the program asks, or registers");
        let bytes = buffer[..length].to_vec();
        if !known.contains(&bytes) {
            known.push(bytes.clone());
            return (bytes, from);
        }
    }
}

#[test]
fn rfc5626_4_4_2_a_flow_of_datagrams_that_is_seen_elsewhere_is_registered_anew() {
    let at = registrar();
    let socket = UdpSocket::bind(at).expect("a port for the registrar");
    socket.set_read_timeout(Some(SOON)).expect("a time-out");
    let server = Server::start(site("flow-udp", at, ""));
    let mut known = Vec::new();
    let (register, from) = news(&socket, &mut known);
    socket.send_to(&granted(&register), from).expect("an answer");
    for port in [4000, 4000, 4001] {
        let (asked, from) = news(&socket, &mut known);
        socket.send_to(&seen_at(&asked, server.site.sip.ip(), port), from).expect("an answer");
    }
    let (register, _) = news(&socket, &mut known);
    granted(&register);
    server.until_logged(&["the flow of registration 'line' is lost"]);
}

/// Reads until there is this much more, or the other side has closed.
fn take(connection: &mut TcpStream, is_whole: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_whole(&all) {
        match connection.read(&mut buffer).expect("something comes in time") {
            0 => break,
            length => all.extend_from_slice(&buffer[..length]),
        }
    }
    all
}

#[test]
fn rfc5626_4_4_1_a_connection_is_pinged_as_its_registrar_wants_and_left_when_that_is_silent() {
    let at = registrar();
    let listener = TcpListener::bind(at).expect("a port for the registrar");
    let _server = Server::start(site("flow-tcp", at, "\\;transport=tcp"));
    let registered = || {
        let (mut connection, _) = listener.accept().expect("the program connects");
        connection.set_read_timeout(Some(SOON)).expect("a time-out");
        let register = take(&mut connection, |bytes| bytes.ends_with(b"\r\n\r\n"));
        connection.write_all(&granted(&register)).expect("an answer");
        connection
    };
    let mut connection = registered();
    for _ in 0..2 {
        assert_eq!(take(&mut connection, |bytes| bytes.len() >= 4), b"\r\n\r\n", "a ping");
        connection.write_all(b"\r\n").expect("an answer");
    }
    assert_eq!(take(&mut connection, |bytes| bytes.len() >= 4), b"\r\n\r\n", "one that is not answered");
    let rest = take(&mut connection, |bytes| bytes.len() >= 64);
    assert!(rest.len() < 64 && rest.iter().all(|byte| b"\r\n".contains(byte)), "it is closed: {rest:x?}");
    registered();
}
