//! Media from phone to phone: their packets go past the program, come back while one holds the other, and go again
//! (RFC 3264 §8).

use e2e::{Message, Phone, Server, Site, Speak, wait};
use std::net::{IpAddr, SocketAddr};

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,20)
exten => record,1,MixMonitor(direct.wav)
 same => n,Dial(PJSIP/bob,20)
";

/// Milliseconds of a tone that tell it from an accident.
const HEARD_MS: u32 = 300;
/// What the two say, and what holds them company, in hertz.
const ALICE: f64 = 440.0;
const BOB: f64 = 1000.0;
const MUSIC: f64 = 700.0;

/// Where a description wants audio.
fn wanted(message: &Message) -> SocketAddr {
    let audio = message.sdp("m=audio ").unwrap_or_else(|| panic!("no audio in\n{}", message.text()));
    let port: u16 = audio.split(' ').next().and_then(|port| port.parse().ok()).expect("a port");
    let ip: IpAddr = message.sdp("c=IN IP4 ").and_then(|ip| ip.parse().ok()).expect("an address");
    (ip, port).into()
}

fn pair(server: &Server, number: &str) -> (Phone, Phone) {
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin(number);
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    (alice, bob)
}

/// Each is told where the other is, and takes it.
fn let_go(alice: &mut Phone, bob: &mut Phone) {
    let (hers, his) = (alice.media.local(), bob.media.local());
    for (phone, other) in [(alice, his), (bob, hers)] {
        let asked = phone.expect("INVITE");
        assert_eq!(wanted(&asked), other, "{}", asked.text());
        phone.take(&asked);
    }
}

/// Each hears the other, and only from `from`.
fn talk(alice: &Phone, bob: &Phone, direct: bool) {
    wait::until_true("only packets of the right way come", || {
        alice.media.forget();
        bob.media.forget();
        wait::until_true("alice hears bob", || alice.media.heard().tone(BOB) >= HEARD_MS);
        wait::until_true("bob hears alice", || bob.media.heard().tone(ALICE) >= HEARD_MS);
        let (hers, his) = (alice.media.heard().sources(), bob.media.heard().sources());
        match direct {
            true => hers == [bob.media.local()] && his == [alice.media.local()],
            false => !hers.contains(&bob.media.local()) && !his.contains(&alice.media.local()),
        }
    });
}

#[test]
fn rfc3264_8_packets_of_two_phones_go_past_the_program_until_it_has_to_hear_them() {
    let site = Site::new("direct")
        .phone_with("alice", "direct_media=yes\n")
        .phone_with("bob", "direct_media=yes\n")
        .music(MUSIC, 5.0)
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    let (mut alice, mut bob) = pair(&server, "bob");
    let_go(&mut alice, &mut bob);
    talk(&alice, &bob, true);
    // She holds him: he hears music, which is made here.
    let offer = alice.sdp("sendonly");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| alice.reinvite_with(&offer));
        let asked = bob.expect("INVITE");
        bob.take(&asked);
        assert_eq!(wanted(&asked).ip(), server.site.sip.ip());
        // She sends nothing while she holds, and stays where she was.
        let answer = asking.join().expect("alice has an answer");
        assert_eq!(wanted(&answer).ip(), bob.media.local().ip());
    });
    wait::until_true("bob hears music", || bob.media.heard().tone(MUSIC) >= HEARD_MS);
    // And takes him back: he is let go again.
    let answer = alice.reinvite("sendrecv");
    assert_eq!(answer.status(), Some(200));
    let asked = bob.expect("INVITE");
    assert_eq!(wanted(&asked), alice.media.local(), "{}", asked.text());
    bob.take(&asked);
    talk(&alice, &bob, true);
    // Who is left is called back before it is hung up.
    alice.hang_up();
    let asked = bob.expect("INVITE");
    assert_eq!(wanted(&asked).ip(), server.site.sip.ip());
    bob.take(&asked);
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn packets_of_a_call_that_is_recorded_stay_here() {
    let site = Site::new("indirect")
        .phone_with("alice", "direct_media=yes\n")
        .phone_with("bob", "direct_media=yes\n")
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    let (mut alice, mut bob) = pair(&server, "record");
    talk(&alice, &bob, false);
    alice.hang_up();
    bob.until_hung_up();
    for phone in [&mut alice, &mut bob] {
        assert!(!phone.comes("INVITE", std::time::Duration::ZERO), "{} was moved", phone.name);
    }
    server.until_idle();
}
