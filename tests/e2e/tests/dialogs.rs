//! What phones and nets do to a dialog, and what is right then (RFC 3261 §§8, 12-15, 17; RFC 3264; RFC 6026).

use e2e::{Phone, Server, Site, Speak, wait};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => ring,1,Ringing()
 same => n,Wait(30)
exten => bob,1,Dial(PJSIP/bob,20)
 same => n,Set(DB(dial/bob)=${DIALSTATUS})
 same => n,Hangup()
exten => carol,1,Answer()
 same => n,Echo()
";

fn server(name: &str) -> Server {
    Server::start(Site::new(name).phone("alice").phone("bob").dialplan(DIALPLAN))
}

fn phones(server: &Server) -> (Phone, Phone) {
    let (alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    (alice, bob)
}

/// Connects the two.
fn connect(alice: &mut Phone, bob: &mut Phone) {
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
}

#[test]
fn rfc3261_17_2_doubled_requests_are_one_call() {
    let server = server("double");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.doubled();
    alice.must_call("echo");
    assert_eq!(server.channels(), 1);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn rfc3261_12_2_2_a_request_with_a_foreign_tag_belongs_to_no_call() {
    let server = server("tag");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("echo");
    let mut thief = Phone::new(server.site.sip, "alice");
    let refused = thief.ask("BYE", "echo");
    assert!(matches!(refused.status(), Some(401 | 481)), "{}", refused.text());
    alice.lose_tag();
    assert_eq!(alice.inside("BYE", "").status(), Some(481));
    assert_eq!(server.channels(), 1);
}

#[test]
fn rfc3264_an_offer_may_come_late() {
    let server = server("late");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.offer = Some(Vec::new());
    let answered = alice.must_call("echo");
    assert!(answered.sdp("m=audio ").is_some(), "no offer in:\n{}", answered.text());
    wait::until_true("alice hears herself", || alice.media.heard().tone(440.0) >= 500);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn rfc3264_no_common_format_is_488() {
    let server = server("format");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.codecs = vec![8];
    assert_eq!(alice.call("echo").status(), Some(488));
    server.until_idle();
}

#[test]
fn rfc3261_8_2_requests_that_ask_too_much_are_refused_as_such() {
    let server = server("ask");
    let mut alice = Phone::new(server.site.sip, "alice");
    for (method, more, expected) in [
        ("INVITE", "Require: nothing-that-exists\r\n", 420),
        // Who only asks hears what there is, as the field's server answers it.
        ("OPTIONS", "Require: nothing-that-exists\r\n", 200),
        ("FROBNICATE", "", 501),
        ("SUBSCRIBE", "Event: nothing-that-exists\r\nExpires: 60\r\n", 489),
    ] {
        let answer = alice.ask_with(method, "echo", more);
        assert_eq!(answer.status(), Some(expected), "{method} {more}:\n{}", answer.text());
        if expected == 420 {
            assert_eq!(answer.header("Unsupported"), Some("nothing-that-exists"), "{}", answer.text());
        }
    }
    let answer = alice.ask_with("OPTIONS", "echo", "");
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    for method in ["INVITE", "ACK", "CANCEL", "BYE", "OPTIONS"] {
        assert!(answer.must("Allow").contains(method), "{}", answer.text());
    }
}

#[test]
fn rfc3261_13_3_1_4_an_answer_without_ack_is_sent_again() {
    let server = server("noack");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    bob.seen.clear();
    bob.begin("echo");
    bob.deaf();
    wait::until_true("the answer comes three times", || {
        bob.next(Duration::from_millis(100));
        bob.seen.iter().filter(|status| **status == 200).count() >= 3
    });
}

#[test]
fn rfc3261_9_an_answer_that_crosses_our_cancel_is_acked_and_ended() {
    let server = server("cross");
    let (mut alice, mut bob) = phones(&server);
    alice.begin("bob");
    let invite = bob.ring();
    while alice.progress().status() != Some(180) {}
    assert_eq!(alice.cancel().status(), Some(200));
    assert_eq!(alice.outcome().status(), Some(487));
    bob.expect("CANCEL");
    // The CANCEL has come, and the answer leaves all the same.
    bob.take(&invite);
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_caller_that_hangs_up_while_it_rings_ends_the_ringing() {
    let server = server("giveup");
    let (mut alice, mut bob) = phones(&server);
    alice.begin("bob");
    let invite = bob.ring();
    while alice.progress().status() != Some(180) {}
    alice.cancel();
    assert_eq!(alice.outcome().status(), Some(487));
    let cancel = bob.expect("CANCEL");
    bob.respond(&cancel, 200, "OK", false);
    bob.refuse(&invite, 487, "Request Terminated");
    server.until_idle();
}

#[test]
fn rfc3261_14_2_offers_that_cross_are_491() {
    let server = server("glare");
    let (mut alice, mut bob) = phones(&server);
    connect(&mut alice, &mut bob);
    // Two re-INVITEs of one side cannot be open at once either: the second is refused while the first waits for ACK.
    let first = alice.offer_again("sendonly");
    let second = alice.offer_again("sendrecv");
    assert_eq!(first.status(), Some(200), "{}", first.text());
    assert!(matches!(second.status(), Some(491 | 500)), "{}", second.text());
}

#[test]
fn media_follows_a_reinvite_to_another_address() {
    let server = server("moved");
    let (mut alice, mut bob) = phones(&server);
    connect(&mut alice, &mut bob);
    bob.media.speak(Speak::Tone(750.0));
    wait::until_true("alice hears bob", || alice.media.heard().tone(750.0) >= 300);
    alice.move_media();
    alice.media.speak(Speak::Tone(440.0));
    assert_eq!(alice.reinvite("sendrecv").status(), Some(200));
    wait::until_true("alice hears bob at the new address", || alice.media.heard().tone(750.0) >= 300);
    bob.media.forget();
    wait::until_true("bob hears alice from the new address", || bob.media.heard().tone(440.0) >= 300);
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_redirected_call_is_followed_or_told_and_leaves_nothing() {
    let server = server("redirect");
    let (mut alice, mut bob) = phones(&server);
    alice.begin("bob");
    let invite = bob.ring();
    bob.redirect(&invite, &format!("<sip:carol@{}>", server.site.sip));
    let outcome = alice.outcome();
    if outcome.status() == Some(200) {
        alice.hang_up();
    }
    server.until_idle();
}

#[test]
fn rfc3261_18_3_messages_on_a_stream_come_in_pieces_and_in_heaps() {
    let server = server("stream");
    let mut stream = TcpStream::connect(server.site.sip).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let at = stream.local_addr().expect("its address");
    let options = |number: usize| {
        format!(
            "OPTIONS sip:{to} SIP/2.0\r\nVia: SIP/2.0/TCP {at};branch=z9hG4bKstream{number}\r\nMax-Forwards: 70\r\n\
             From: <sip:alice@{to}>;tag=1\r\nTo: <sip:{to}>\r\nCall-ID: stream{number}\r\nCSeq: 1 OPTIONS\r\n\
             Content-Length: 4\r\n\r\nbody",
            to = server.site.sip
        )
    };
    // Keep-alives before, a byte at a time, then ten at once.
    stream.write_all(b"\r\n\r\n").expect("it stands");
    for byte in options(0).bytes() {
        stream.write_all(&[byte]).expect("it stands");
    }
    let heap: String = (1..=10).map(options).collect();
    stream.write_all(heap.as_bytes()).expect("it stands");
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
    let mut heard = String::new();
    wait::until_true("all are answered", || {
        let mut buffer = [0; 8192];
        let length = stream.read(&mut buffer).unwrap_or(0);
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        (0..=10).all(|number| heard.contains(&format!("Call-ID: stream{number}\r\n")))
    });
    assert_eq!(heard.matches("SIP/2.0 ").count(), 11, "{heard}");
}

#[test]
fn a_process_killed_in_a_call_starts_again_and_takes_calls() {
    let mut server = server("again");
    let (mut alice, mut bob) = phones(&server);
    connect(&mut alice, &mut bob);
    server.cli("database put fruit apple red");
    // The page is in the file before the transaction holds: SQLite rolls back what a journal still lies beside.
    let on_disk = || {
        let place = &server.site.place;
        place.read("db/astdb.sqlite3").contains("/fruit/apple")
            && !place.join("db/astdb.sqlite3-journal").exists()
    };
    wait::until_true("the value is on the disk", on_disk);
    server.kill_and_restart();
    assert_eq!(server.channels(), 0);
    assert_eq!(server.database("fruit", "apple"), "red");
    // What belongs to calls of the former life is refused, and so ends at the phones.
    assert_eq!(alice.inside("BYE", "").status(), Some(481));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("echo");
    alice.hang_up();
}
