//! Numbers that the DNS knows: ENUMLOOKUP() asks a name server of the test's own (RFC 6116).

use e2e::{Phone, Server, Site, address};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Answers every question for `name` with one NAPTR record, and others with "no such name"; says what was asked.
fn name_server(name: &'static str, regexp: &'static str) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    let socket = UdpSocket::bind((address(), 0)).expect("a socket");
    let address = socket.local_addr().expect("an address");
    let (tell, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let question = &buffer[..length];
            let (mut labels, mut at) = (Vec::new(), 12);
            while question[at] != 0 {
                let end = at + 1 + usize::from(question[at]);
                labels.push(String::from_utf8_lossy(&question[at + 1..end]).into_owned());
                at = end;
            }
            let known = labels.join(".") == name;
            let mut reply = question[..2].to_vec();
            reply.extend([0x81, if known { 0x80 } else { 0x83 }, 0, 1, 0, u8::from(known), 0, 0, 0, 0]);
            reply.extend(&question[12..at + 5]);
            if known {
                // The name again, type NAPTR, class IN, a minute; order 10, preference 20.
                let mut data = vec![0, 10, 0, 20];
                for text in ["u", "E2U+sip", regexp] {
                    data.push(u8::try_from(text.len()).expect("a short text"));
                    data.extend(text.bytes());
                }
                data.push(0);
                reply.extend([0xc0, 12, 0, 35, 0, 1, 0, 0, 0, 60, 0]);
                reply.push(u8::try_from(data.len()).expect("a short record"));
                reply.extend(data);
            }
            // Before anybody can act on the answer.
            let _ = tell.send(labels.join("."));
            let _ = socket.send_to(&reply, from);
        }
    });
    (address, asked)
}

#[test]
fn rfc6116_a_number_is_dialled_where_the_dns_says_it_is() {
    let (dns, asked) = name_server("0.3.9.4.e164.arpa", r"!^\+49(.*)$!sip:bob\1@example.com!");
    let site = Site::new("enum").phone("alice").phone("bob30").dialplan(
        "[test]
exten => _+X.,1,Set(uri=${ENUMLOOKUP(${EXTEN})})
 same => n,Set(DB(enum/${EXTEN:1})=${ENUMLOOKUP(${EXTEN},sip,c)} ${uri} ${ENUMLOOKUP(${EXTEN},ALL)})
 same => n,GotoIf($[\"${uri}\" = \"\"]?nobody)
 same => n,Dial(PJSIP/${CUT(uri,@,1)},20)
 same => n,Hangup()
 same => n(nobody),Busy(1)
",
    );
    let servers = format!("[general]\nnameserver = {}@{}\n", dns.ip(), dns.port());
    let server = Server::start(site.add("resolver_unbound.conf", &servers));
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob30");
    bob.must_register();
    alice.begin("+4930");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    assert_eq!(server.database("enum", "4930"), "1 bob30@example.com sip:bob30@example.com");
    alice.hang_up();
    // The answer is kept: three calls of the function and a second call ask once.
    alice.begin("+4930");
    let invite = bob.ring();
    bob.refuse(&invite, 486, "Busy Here");
    assert_eq!(alice.outcome().status(), Some(486));
    assert_eq!(alice.call("+4931").status(), Some(486));
    assert_eq!(server.database("enum", "4931"), "0");
    let questions: Vec<String> = asked.try_iter().collect();
    assert_eq!(questions, ["0.3.9.4.e164.arpa", "1.3.9.4.e164.arpa"]);
    assert!(asked.recv_timeout(Duration::ZERO).is_err());
    server.until_idle();
}
