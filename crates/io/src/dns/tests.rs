use std::net::UdpSocket;
use std::time::Duration;

use base::dns::Kind;

use super::message::tests::{message, naptr};
use super::*;

type Reply = fn(&[u8]) -> Vec<u8>;

/// How long an answer is waited for: far more than any of these needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that answers its first question with `replies`, one after the other.
fn server(replies: Vec<Reply>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        for reply in replies {
            socket.send_to(&reply(&buffer[..length]), from).unwrap();
        }
    });
    address
}
fn one_record(question: &[u8]) -> Vec<u8> {
    message(question, 0, &[(vec![0xc0, 12], 35, naptr(1, "!^.*$!sip:a@example.com!"))])
}
fn guessed(question: &[u8]) -> Vec<u8> {
    let mut reply = one_record(question);
    reply[0] ^= 0xff;
    reply
}
/// As somebody would answer who did not see the question: its letters all in lower case.
fn unseen(question: &[u8]) -> Vec<u8> {
    let mut reply = one_record(question);
    reply[12..].make_ascii_lowercase();
    reply
}

fn client(servers: Vec<SocketAddr>) -> Client {
    let settings = Settings { servers, resolv_conf: String::new(), hosts: "/etc/hosts".to_owned() };
    // Every second letter is turned, whatever the number.
    Client::start(settings, || 0xaaaa_aaaa_aaaa_aaaa).unwrap()
}
fn answer(client: &mut Client, question: &Question) -> Answer {
    client.ask(question);
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some((of, answer)) = client.take_in().pop() {
            assert_eq!(of, *question);
            return answer;
        }
        assert!(std::time::Instant::now() < deadline, "no answer");
        std::thread::yield_now();
    }
}

#[test]
fn rfc5452_9_1_guessed_answers_do_not_count_and_the_next_server_is_asked() {
    let refusing = server(vec![|question| message(question, 2, &[])]);
    let good = server(vec![guessed, unseen, one_record]);
    let question = Question::new(Kind::Naptr, "1.2.e164.arpa");
    let found = answer(&mut client(vec![refusing, good]), &question);
    assert_eq!(found.keep, Duration::from_secs(300));
    let Some(base::dns::Records::Naptr(records)) = found.records else { panic!("{found:?}") };
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].regexp, "!^.*$!sip:a@example.com!");
}

#[test]
fn without_a_server_there_is_no_answer_and_what_needs_none_is_answered() {
    let mut client = client(Vec::new());
    let mut records = |kind, name: &str| answer(&mut client, &Question::new(kind, name)).records;
    assert_eq!(records(Kind::Srv, "_sip._udp.example.com"), None);
    for (kind, name) in [
        (Kind::Naptr, "localhost"),
        (Kind::Srv, "_sip._udp.localhost"),
        (Kind::Srv, "_sip._udp.intranet"),
        (Kind::Addresses, "a b.example"),
        (Kind::Addresses, "a..example"),
    ] {
        assert_eq!(records(kind, name), Some(base::dns::Records::none(kind)), "{kind:?} {name}");
    }
    let local = records(Kind::Addresses, "localhost").expect("the hosts file or the system");
    assert!(local.addresses().iter().all(|ip| ip.is_loopback()) && !local.is_empty(), "{local:?}");
}

/// Answers questions by datagram with "too long", and over TCP with one address.
fn long_winded() -> SocketAddr {
    use std::io::{Read as _, Write as _};
    let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stream.local_addr().unwrap();
    let socket = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&message(&buffer[..length], 0x200, &[]), from).unwrap();
        }
    });
    std::thread::spawn(move || {
        for mut talk in stream.incoming().flatten() {
            let mut length = [0; 2];
            talk.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            talk.read_exact(&mut question).unwrap();
            let is_a = question[question.len() - 14] == 1;
            let records = [(vec![0xc0, 12], 1, vec![192, 0, 2, 7])];
            let reply = message(&question, 0, if is_a { &records } else { &[] });
            talk.write_all(&u16::try_from(reply.len()).unwrap().to_be_bytes()).unwrap();
            talk.write_all(&reply).unwrap();
        }
    });
    address
}

#[test]
fn rfc7766_5_an_answer_too_long_for_a_datagram_is_fetched_over_tcp() {
    let found = answer(&mut client(vec![long_winded()]), &Question::new(Kind::Addresses, "Pbx.Example.Com."));
    let addresses: Vec<std::net::IpAddr> = vec!["192.0.2.7".parse().unwrap()];
    assert_eq!(found.records.as_ref().map(|found| found.addresses()), Some(&*addresses));
    assert_eq!(found.keep, Duration::from_secs(300));
}
