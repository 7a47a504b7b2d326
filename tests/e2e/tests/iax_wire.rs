//! What Strowger says by IAX2, as an independent decoder sees it (RFC 5456 §8). Enciphered calls show it nothing.

use e2e::{Capture, Phone, Server, Site, Speak, installed, wait};
use std::net::IpAddr;

const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
/// Milliseconds of a tone that count as heard.
const ENOUGH: u32 = 500;

const DIALPLAN: &str = "
[test]
exten => _far-.,1,Set(IAXVAR(colour)=blue)
 same => n,Dial(IAX2/far/${EXTEN:4},20)
 same => n,Hangup(${HANGUPCAUSE})
exten => _group-.,1,Dial(IAX2/trunk/${EXTEN:6},20)
 same => n,Hangup(${HANGUPCAUSE})
exten => _bad-.,1,Dial(IAX2/wrong/${EXTEN:4},20)
 same => n,Hangup(${HANGUPCAUSE})
[incoming]
exten => bob,1,Dial(PJSIP/bob,20)
exten => busy,1,Busy()
exten => talk,1,Answer()
 same => n,SendText(Good evening)
 same => n,SendDTMF(15#)
 same => n,Wait(2)
 same => n,Hangup()
exten => progress,1,Progress()
 same => n,Wait(1)
 same => n,Congestion(2)
";

/// The configuration of a site that the other one knows as `own`, and knows that as `other`.
fn conf(own: &str, ip: IpAddr, other: &str, far: IpAddr) -> String {
    let secret = "between the two of us";
    let peer = |name: &str, more: &str| {
        format!(
            "[{name}]\ntype=peer\nhost={far}\nusername={own}\nsecret={secret}\nmohinterpret=passthrough\n{more}\n"
        )
    };
    format!(
        "[general]\nbindaddr={ip}\ndisallow=all\nallow=ulaw\n\
         register => {own}:{secret}@{far}\nregister => {own}:something else entirely@{far}\n\
         {}{}[wrong]\ntype=peer\nhost={far}\nusername={own}\nsecret=something else entirely\n\
         [{other}]\ntype=friend\nhost=dynamic\nsecret={secret}\ncontext=incoming\ntrunk=yes\n\
         mohinterpret=passthrough\nmailbox=100\n",
        peer("far", "qualify=yes\ntransfer=no"),
        peer("trunk", "trunk=yes\ntransfer=no"),
    )
}

/// A call from a phone of one site to a phone of the other, with digits, hold and sound both ways.
fn talk(alice: &mut Phone, bob: &mut Phone, number: &str) {
    alice.begin(number);
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200), "{number}");
    let heard = (bob.media.heard().tone(ALICE), alice.media.heard().tone(BOB));
    wait::until_true(&format!("{number}: both are heard"), || {
        bob.media.heard().tone(ALICE) >= heard.0 + ENOUGH && alice.media.heard().tone(BOB) >= heard.1 + ENOUGH
    });
    alice.media.type_digits("7");
    wait::until_true("the digit is heard", || bob.media.heard().digits().ends_with('7'));
    alice.reinvite("sendonly");
    alice.reinvite("sendrecv");
    bob.hang_up();
    alice.until_hung_up();
}

#[test]
fn tshark_finds_nothing_malformed_in_what_two_sites_say_to_each_other() {
    if !installed(&["tshark", "tcpdump"]) {
        return;
    }
    let first = Site::new("iax-wire-first").phone("alice");
    let second = Site::new("iax-wire-second").phone("bob");
    let (one, two) = (first.sip.ip(), second.sip.ip());
    let first = first.add("iax.conf", &conf("first", one, "second", two)).dialplan(DIALPLAN);
    let second = second.add("iax.conf", &conf("second", two, "first", one)).dialplan(DIALPLAN);
    let second = Server::start(second);
    let Some(mut capture) = Capture::start(two) else { return };
    let first = Server::start(first);
    second.until_logged(&["Registered IAX2 'first' at "]);
    second.until_logged(&["rejected by"]);
    let mut alice = Phone::new(first.site.sip, "alice");
    let mut bob = Phone::new(second.site.sip, "bob");
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    for number in ["far-bob", "group-bob"] {
        talk(&mut alice, &mut bob, number);
    }
    for (number, status) in [("far-busy", 486), ("far-nowhere", 404), ("far-progress", 503)] {
        assert_eq!(alice.call(number).status(), Some(status), "{number}");
    }
    assert_ne!(alice.call("bad-bob").status(), Some(200));
    alice.must_call("far-talk");
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();

    let bad = capture.fields(
        "iax2 && (_ws.malformed || _ws.expert.severity >= \"Warning\")",
        &["frame.number", "ip.src", "_ws.col.Info", "_ws.expert.message"],
    );
    assert!(bad.is_empty(), "{bad:#?}");
    let undecoded = capture.fields("udp.port == 4569 && !iax2", &["frame.number", "udp.payload"]);
    assert!(undecoded.is_empty(), "{undecoded:#?}");
    let seen = |filter: &str| filter.to_owned();
    for (what, filter) in [
        ("NEW", seen("iax2.iax.subclass == 1")),
        ("PONG", seen("iax2.iax.subclass == 3")),
        ("ACK", seen("iax2.iax.subclass == 4")),
        ("HANGUP", seen("iax2.iax.subclass == 5")),
        ("REJECT", seen("iax2.iax.subclass == 6")),
        ("ACCEPT", seen("iax2.iax.subclass == 7")),
        ("AUTHREQ", seen("iax2.iax.subclass == 8")),
        ("AUTHREP", seen("iax2.iax.subclass == 9")),
        ("REGREQ", seen("iax2.iax.subclass == 13")),
        ("REGAUTH", seen("iax2.iax.subclass == 14")),
        ("REGACK", seen("iax2.iax.subclass == 15")),
        ("REGREJ", seen("iax2.iax.subclass == 16")),
        ("POKE", seen("iax2.iax.subclass == 30")),
        ("CALLTOKEN", seen("iax2.iax.subclass == 40")),
        ("ANSWER", seen("iax2.type == 4 && iax2.control.subclass == 4")),
        ("RINGING", seen("iax2.type == 4 && iax2.control.subclass == 3")),
        ("PROGRESS", seen("iax2.type == 4 && iax2.control.subclass == 14")),
        ("HOLD", seen("iax2.type == 4 && iax2.control.subclass == 16")),
        ("UNHOLD", seen("iax2.type == 4 && iax2.control.subclass == 17")),
        ("digits", seen("iax2.type == 1")),
        ("voice", seen("iax2.type == 2")),
        ("text", seen("iax2.type == 7")),
        ("mini frames", seen("iax2.packet_type == 0")),
        ("trunks", seen("iax2.packet_type == 3")),
        ("a username", seen("iax2.iax.username == \"first\"")),
        ("a number", seen("iax2.iax.called_number == \"bob\"")),
        ("a proof", seen("iax2.iax.auth.md5")),
        ("a cause", seen("iax2.iax.causecode == 17")),
        ("an apparent address", seen("iax2.iax.app_addr.sinaddr")),
        ("a refresh", seen("iax2.iax.refresh == 60")),
        ("preferences", seen("iax2.iax.codecprefs")),
    ] {
        let found = capture.fields(&filter, &["frame.number"]).len();
        assert!(found > 0, "{what}: not seen");
    }
}
