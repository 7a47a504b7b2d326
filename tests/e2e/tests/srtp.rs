//! SRTP with keys in the description, against baresip; what is heard is told by its content.

use e2e::{Baresip, Phone, Server, Site, Speak, installed, wait};

const MUSIC: f64 = 600.0;
const PROMPT: f64 = 1000.0;
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;

/// A site where `alice` and `bob` must have SRTP, `dora` may, and `carol` has none.
fn server(name: &str) -> Option<Server> {
    if !installed(&["baresip"]) {
        return None;
    }
    let sealed = "allow=ulaw,alaw\nmedia_encryption=sdes\n";
    let site = Site::new(name)
        .phone_with("alice", sealed)
        .phone_with("bob", sealed)
        .phone_with("dora", &format!("{sealed}media_encryption_optimistic=yes\n"))
        .phone("carol")
        .prompt("tone", PROMPT, 20.0)
        .music(MUSIC, 5.0)
        .dialplan(
            "[test]\n\
             exten => 600,1,Answer()\n same => n,Set(DB(secure/600)=${CHANNEL(rtp,secure,audio)})\n same => n,Echo()\n\
             exten => 601,1,Answer()\n same => n,Playback(tone)\n same => n,Hangup()\n\
             exten => 610,1,Answer()\n same => n,Read(TYPED,,4,,1,10)\n same => n,Set(DB(typed/610)=${TYPED})\n \
             same => n,Hangup()\n\
             exten => 620,1,Answer()\n same => n,ConfBridge(room)\n\
             exten => secure-bob,1,Set(CHANNEL(secure_bridge_media)=1)\n same => n,Dial(PJSIP/bob,20)\n\
             exten => secure-carol,1,Set(CHANNEL(secure_bridge_media)=1)\n same => n,Dial(PJSIP/carol,20)\n \
             same => n,Set(DB(secure/carol)=${DIALSTATUS})\n same => n,Hangup()\n\
             exten => _[a-z].,1,Dial(PJSIP/${EXTEN},20)\n",
        );
    Some(Server::start(site))
}

fn uri(server: &Server, number: &str) -> String {
    format!("sip:{number}@{}", server.site.sip)
}

#[test]
fn a_phone_hears_itself_and_a_prompt_in_each_of_its_ways_to_ask_for_srtp() {
    let Some(server) = server("srtp-echo") else { return };
    for (name, how) in
        [("alice", "srtp-mandf"), ("bob", "srtp-mand"), ("dora", "srtp"), ("dora", "srtp-mandf")]
    {
        let mut phone = Baresip::sealed(server.site.sip, name, "pcmu", ALICE, how);
        phone.dial(&uri(&server, "600"));
        phone.until_heard(ALICE);
        assert_eq!(server.database("secure", "600"), "1", "{name} {how}");
        phone.hang_up();
        server.until_idle();
        phone.dial(&uri(&server, "601"));
        phone.until_heard(PROMPT);
        phone.hang_up();
        server.until_idle();
    }
}

#[test]
fn two_phones_with_srtp_hear_each_other_and_typed_digits_arrive() {
    let Some(server) = server("srtp-two") else { return };
    let mut alice = Baresip::sealed(server.site.sip, "alice", "pcmu", ALICE, "srtp-mandf");
    // Another law: what is relayed is recoded, and what is transcoded is sealed.
    let bob = Baresip::sealed(server.site.sip, "bob", "pcma", BOB, "srtp-mand");
    for number in ["bob", "secure-bob"] {
        bob.forget();
        alice.dial(&uri(&server, number));
        alice.until_heard(BOB);
        bob.until_heard(ALICE);
        alice.hang_up();
        server.until_idle();
    }
    alice.dial(&uri(&server, "610"));
    alice.said("established");
    alice.type_digits("1234");
    assert_eq!(server.database("typed", "610"), "1234");
}

#[test]
fn a_phone_with_srtp_and_one_without_hear_each_other_over_hold_and_resume() {
    let Some(server) = server("srtp-plain") else { return };
    let mut bob = Baresip::sealed(server.site.sip, "bob", "pcmu", BOB, "srtp-mand");
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.media.speak(Speak::Tone(ALICE));
    carol.must_call("bob");
    bob.until_heard(ALICE);
    wait::until_true("carol hears bob", || carol.media.heard().tone(BOB) >= 500);
    bob.hold();
    carol.media.forget();
    wait::until_true("carol hears music", || carol.media.heard().tone(MUSIC) >= 500);
    bob.resume();
    carol.media.forget();
    wait::until_true("carol hears bob again", || carol.media.heard().tone(BOB) >= 500);
    carol.hang_up();
    server.until_idle();
}

#[test]
fn members_of_a_conference_with_and_without_srtp_hear_each_other() {
    let Some(server) = server("srtp-room") else { return };
    let mut alice = Baresip::sealed(server.site.sip, "alice", "pcmu", ALICE, "srtp-mandf");
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.media.speak(Speak::Tone(BOB));
    alice.dial(&uri(&server, "620"));
    alice.said("established");
    carol.must_call("620");
    alice.until_heard(BOB);
    wait::until_true("carol hears alice", || carol.media.heard().tone(ALICE) >= 500);
    carol.hang_up();
}

#[test]
fn plain_rtp_is_refused_where_srtp_must_be_and_taken_where_it_may_be() {
    let Some(server) = server("srtp-must") else { return };
    for (name, expected) in [("alice", Some(488)), ("dora", Some(200)), ("carol", Some(200))] {
        let mut phone = Phone::new(server.site.sip, name);
        assert_eq!(phone.call("600").status(), expected, "{name}");
        if expected == Some(200) {
            assert_eq!(server.database("secure", "600"), "0", "{name}");
            phone.hang_up();
        }
    }
    // A caller that asks for a secure bridge reaches nobody without one.
    let mut dora = Phone::new(server.site.sip, "dora");
    Phone::new(server.site.sip, "carol").must_register();
    dora.call("secure-carol");
    assert_eq!(server.database("secure", "carol"), "CHANUNAVAIL");
    server.until_idle();
}

#[test]
fn no_log_shows_a_key() {
    let Some(server) = server("srtp-log") else { return };
    server.cli("pjsip set logger on");
    let mut alice = Baresip::sealed(server.site.sip, "alice", "pcmu", ALICE, "srtp-mandf");
    alice.dial(&uri(&server, "600"));
    alice.until_heard(ALICE);
    alice.hang_up();
    server.until_idle();
    let keys = |log: &str| log.lines().filter(|line| line.contains("inline:")).count();
    wait::until_true("an offer and an answer are logged", || keys(&server.log()) >= 2);
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("inline:")).collect();
    for line in lines {
        let key = line.split("inline:").nth(1).unwrap_or_default();
        assert!(key.starts_with("****************"), "{line}");
    }
}
