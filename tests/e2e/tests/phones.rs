//! baresip as a phone in both directions; what is heard is told by its content.

use e2e::{Baresip, Phone, Server, Site, Speak, installed, wait};

const MUSIC: f64 = 600.0;
const PROMPT: f64 = 1000.0;
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;

fn server(name: &str) -> Option<Server> {
    if !installed(&["baresip"]) {
        return None;
    }
    let all = "allow=ulaw,alaw,g722,gsm\n";
    let site = Site::new(name)
        .phone_with("alice", all)
        .phone_with("bob", all)
        .phone("carol")
        .prompt("tone", PROMPT, 20.0)
        .music(MUSIC, 5.0)
        .dialplan(
            "[test]\n\
             exten => 600,1,Answer()\n same => n,Echo()\n\
             exten => 601,1,Answer()\n same => n,Playback(tone)\n same => n,Hangup()\n\
             exten => 610,1,Answer()\n same => n,Read(TYPED,,4,,1,10)\n same => n,Set(DB(typed/610)=${TYPED})\n \
             same => n,Hangup()\n\
             exten => _[a-z].,1,Dial(PJSIP/${EXTEN},20)\n",
        );
    Some(Server::start(site))
}

fn uri(server: &Server, number: &str) -> String {
    format!("sip:{number}@{}", server.site.sip)
}

#[test]
fn a_phone_hears_itself_in_every_codec() {
    let Some(server) = server("echo") else { return };
    for codec in ["pcmu", "pcma", "g722", "gsm"] {
        let mut alice = Baresip::start(server.site.sip, "alice", codec, ALICE);
        alice.dial(&uri(&server, "600"));
        alice.until_heard(ALICE);
        alice.hang_up();
        server.until_idle();
    }
}

#[test]
fn a_phone_hears_a_prompt() {
    let Some(server) = server("prompt") else { return };
    let mut alice = Baresip::start(server.site.sip, "alice", "pcmu", ALICE);
    alice.dial(&uri(&server, "601"));
    alice.until_heard(PROMPT);
    assert_eq!(alice.heard(ALICE), 0);
}

#[test]
fn two_phones_hear_each_other() {
    let Some(server) = server("two") else { return };
    let mut alice = Baresip::start(server.site.sip, "alice", "pcmu", ALICE);
    let bob = Baresip::start(server.site.sip, "bob", "pcmu", BOB);
    alice.dial(&uri(&server, "bob"));
    alice.until_heard(BOB);
    bob.until_heard(ALICE);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn two_phones_without_a_common_codec_hear_each_other() {
    for (codec, other) in [("pcmu", "g722"), ("gsm", "pcma")] {
        let Some(server) = server(codec) else { return };
        let mut alice = Baresip::start(server.site.sip, "alice", codec, ALICE);
        let bob = Baresip::start(server.site.sip, "bob", other, BOB);
        alice.dial(&uri(&server, "bob"));
        alice.until_heard(BOB);
        bob.until_heard(ALICE);
        alice.hang_up();
        server.until_idle();
    }
}

#[test]
fn a_phone_is_called_and_hears_the_caller() {
    let Some(server) = server("called") else { return };
    let bob = Baresip::start(server.site.sip, "bob", "pcma", BOB);
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.media.speak(Speak::Tone(ALICE));
    carol.must_call("bob");
    bob.until_heard(ALICE);
    wait::until_true("carol hears bob", || carol.media.heard().tone(BOB) >= 500);
    carol.hang_up();
    server.until_idle();
}

#[test]
fn digits_typed_at_a_phone_are_read() {
    let Some(server) = server("digits") else { return };
    let mut alice = Baresip::start(server.site.sip, "alice", "pcmu", ALICE);
    alice.dial(&uri(&server, "610"));
    alice.said("established");
    alice.type_digits("1234");
    assert_eq!(server.database("typed", "610"), "1234");
}

#[test]
fn a_phone_on_hold_makes_the_other_hear_music() {
    let Some(server) = server("hold") else { return };
    let mut bob = Baresip::start(server.site.sip, "bob", "pcmu", BOB);
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.must_call("bob");
    wait::until_true("carol hears bob", || carol.media.heard().tone(BOB) >= 500);
    bob.hold();
    carol.media.forget();
    wait::until_true("carol hears music", || carol.media.heard().tone(MUSIC) >= 500);
    bob.resume();
    carol.media.forget();
    wait::until_true("carol hears bob again", || carol.media.heard().tone(BOB) >= 500);
    carol.hang_up();
}
