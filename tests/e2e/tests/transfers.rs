//! Transfers as phones ask for them (RFC 3515, 3891, 5589), told by who hears whom.

use e2e::{Message, Phone, Server, Site, Speak, wait};

const DIALPLAN: &str = "
[test]
exten => alice,1,Dial(PJSIP/alice,20)
exten => bob,1,Dial(PJSIP/bob,20)
exten => carol,1,Set(DB(transfer/by)=${TRANSFERERNAME})
 same => n,Dial(PJSIP/carol,20)
exten => one,1,ConfBridge(one)
exten => two,1,ConfBridge(two)
exten => 200,1,Dial(PJSIP/bob,20,tT)
exten => 300,1,Dial(PJSIP/carol,20)
exten => busy,1,Busy(2)
exten => away,1,Answer()
 same => n,Transfer(carol)
 same => n,Set(DB(transfer/status)=${TRANSFERSTATUS} ${TRANSFERSTATUSPROTOCOL})
 same => n,Hangup()
";

/// Hertz of what each says.
const ALICE: f64 = 440.0;
const BOB: f64 = 620.0;
const CAROL: f64 = 880.0;
/// Milliseconds of a tone that nobody takes for noise.
const ENOUGH: u32 = 300;

struct Three {
    server: Server,
    alice: Phone,
    bob: Phone,
    carol: Phone,
}

fn three(name: &str) -> Three {
    three_at(Site::new(name))
}

fn three_at(site: Site) -> Three {
    let server = Server::start(site.phone("alice").phone("bob").phone("carol").dialplan(DIALPLAN));
    let sip = server.site.sip;
    let phone = |name: &str, hertz| {
        let phone = Phone::new(sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone
    };
    let (alice, mut bob, mut carol) = (phone("alice", ALICE), phone("bob", BOB), phone("carol", CAROL));
    bob.must_register();
    carol.must_register();
    Three { server, alice, bob, carol }
}

fn connect(caller: &mut Phone, callee: &mut Phone, number: &str) {
    caller.begin(number);
    let invite = callee.ring();
    callee.take(&invite);
    assert_eq!(caller.outcome().status(), Some(200));
}

/// Both hear the other from here on.
fn talk(a: (&Phone, f64), b: (&Phone, f64)) {
    for (hears, hertz) in [(a.0, b.1), (b.0, a.1)] {
        hears.media.forget();
        wait::until_true("each hears the other", || hears.media.heard().tone(hertz) >= ENOUGH);
    }
}

/// Takes a NOTIFY and tells what it says: state of the subscription and fragment.
fn told(phone: &mut Phone) -> (String, String) {
    let notify = phone.expect("NOTIFY");
    phone.respond(&notify, 200, "OK", false);
    let fragment = notify.text().rsplit("\r\n\r\n").next().unwrap_or_default().trim().to_owned();
    (notify.must("Subscription-State").to_owned(), fragment)
}

/// The last NOTIFY of a transfer; those before it are taken.
fn told_at_last(phone: &mut Phone) -> (Vec<String>, String) {
    let mut steps = Vec::new();
    loop {
        let (state, fragment) = told(phone);
        if state.starts_with("terminated") {
            return (steps, fragment);
        }
        steps.push(fragment);
    }
}

fn accepted(answer: &Message) {
    assert_eq!(answer.status(), Some(202), "{}", answer.text());
}

#[test]
fn rfc5589_6_1_a_called_phone_sends_its_caller_on_and_hears_how_it_goes() {
    let Three { server, mut alice, mut bob, mut carol } = three("blind-callee");
    connect(&mut alice, &mut bob, "bob");
    talk((&alice, ALICE), (&bob, BOB));
    accepted(
        &bob.inside_with("REFER", "Refer-To: <sip:carol@strowger>\r\nReferred-By: <sip:bob@strowger>\r\n"),
    );
    let invite = carol.ring();
    carol.take(&invite);
    let (steps, end) = told_at_last(&mut bob);
    assert_eq!(
        (steps.first().map(String::as_str), end.as_str()),
        (Some("SIP/2.0 100 Trying"), "SIP/2.0 200 OK")
    );
    bob.until_hung_up();
    talk((&alice, ALICE), (&carol, CAROL));
    assert!(server.database("transfer", "by").starts_with("PJSIP/bob-"));
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
}

#[test]
fn rfc5589_6_1_a_caller_sends_whom_he_called_on() {
    let Three { server, mut alice, mut bob, mut carol } = three("blind-caller");
    connect(&mut alice, &mut bob, "bob");
    accepted(&alice.inside_with("REFER", "Refer-To: <sip:carol@strowger>\r\n"));
    let invite = carol.ring();
    carol.take(&invite);
    assert_eq!(told_at_last(&mut alice).1, "SIP/2.0 200 OK");
    alice.until_hung_up();
    talk((&bob, BOB), (&carol, CAROL));
    carol.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_transfer_that_finds_nobody_says_so() {
    let Three { server, mut alice, mut bob, .. } = three("blind-fails");
    connect(&mut alice, &mut bob, "bob");
    accepted(&bob.inside_with("REFER", "Refer-To: <sip:nobody@strowger>\r\n"));
    assert_eq!(told_at_last(&mut bob).1, "SIP/2.0 404 Not Found");
    assert_eq!(bob.inside_with("REFER", "").status(), Some(400));
    talk((&alice, ALICE), (&bob, BOB));
    accepted(&bob.inside_with("REFER", "Refer-To: <sip:busy@strowger>\r\n"));
    assert_eq!(told_at_last(&mut bob).1, "SIP/2.0 486 Busy Here");
    bob.until_hung_up();
    alice.until_hung_up();
    server.until_idle();
}

/// Whoever had called whom, in both calls of the transferer.
#[test]
fn rfc5589_7_an_attended_transfer_lets_the_other_two_talk() {
    for (name, bob_was_called) in [("attended-callee", true), ("attended-caller", false)] {
        let Three { server, mut alice, mut bob, mut carol } = three(name);
        if bob_was_called {
            connect(&mut alice, &mut bob, "bob");
        } else {
            alice.must_register();
            connect(&mut bob, &mut carol, "carol");
        }
        // The second call of the same phone, which is always its own.
        let mut second = Phone::new(server.site.sip, "bob");
        second.media.speak(Speak::Tone(BOB));
        let target = if bob_was_called {
            connect(&mut second, &mut carol, "carol");
            &mut carol
        } else {
            let alice = &mut alice;
            second.begin("alice");
            let invite = alice.ring();
            alice.take(&invite);
            assert_eq!(second.outcome().status(), Some(200));
            alice
        };
        talk((&second, BOB), (target, if bob_was_called { CAROL } else { ALICE }));
        let refer = format!("Refer-To: <sip:x@strowger?Replaces={}>\r\n", second.replaces());
        accepted(&bob.inside_with("REFER", &refer));
        assert_eq!(told_at_last(&mut bob).1, "SIP/2.0 200 OK");
        bob.until_hung_up();
        second.until_hung_up();
        talk((&alice, ALICE), (&carol, CAROL));
        wait::until_true("two channels are left", || server.channels() == 2);
        alice.hang_up();
        carol.until_hung_up();
        server.until_idle();
    }
}

#[test]
fn rfc5589_7_an_attended_transfer_between_conferences_lets_all_hear_each_other() {
    let Three { server, mut alice, mut bob, mut carol } = three("attended-conferences");
    let mut second = Phone::new(server.site.sip, "bob");
    second.media.speak(Speak::Tone(BOB));
    for (phone, room) in [(&mut alice, "one"), (&mut bob, "one"), (&mut second, "two"), (&mut carol, "two")] {
        phone.begin(room);
        assert_eq!(phone.outcome().status(), Some(200));
    }
    talk((&alice, ALICE), (&bob, BOB));
    talk((&second, BOB), (&carol, CAROL));
    let refer = format!("Refer-To: <sip:x@strowger?Replaces={}>\r\n", second.replaces());
    accepted(&bob.inside_with("REFER", &refer));
    assert_eq!(told_at_last(&mut bob).1, "SIP/2.0 200 OK");
    bob.until_hung_up();
    second.until_hung_up();
    talk((&alice, ALICE), (&carol, CAROL));
    wait::until_true("two phones and a pair are left", || server.channels() == 4);
    alice.hang_up();
    wait::until_true("nobody hears what the pair would bring", || server.channels() == 1);
    carol.hang_up();
    server.until_idle();
}

#[test]
fn an_attended_transfer_while_the_target_rings_lets_the_other_hear_it_ring_and_then_talk() {
    let Three { server, mut alice, mut bob, mut carol } = three("attended-early");
    connect(&mut alice, &mut bob, "bob");
    let mut second = Phone::new(server.site.sip, "bob");
    second.begin("carol");
    let invite = carol.ring();
    let ringing = loop {
        let response = second.progress();
        if response.status() == Some(180) {
            break response;
        }
    };
    let replaces = second.replaces_early(ringing.must("To"));
    let refer = format!("Refer-To: <sip:carol@strowger?Replaces={replaces}>\r\n");
    accepted(&bob.inside_with("REFER", &refer));
    assert_eq!(told_at_last(&mut bob).1, "SIP/2.0 200 OK");
    // As phones do: who has sent a call on ends his own part (RFC 5589 §6).
    bob.hang_up();
    assert!(second.outcome().status().is_some_and(|status| status >= 300), "its INVITE is refused");
    alice.media.forget();
    wait::until_true("alice hears it ring", || alice.media.heard().sounding() >= ENOUGH);
    carol.take(&invite);
    talk((&alice, ALICE), (&carol, CAROL));
    carol.hang_up();
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn rfc3891_3_an_invite_with_replaces_takes_a_call_over() {
    let Three { server, mut alice, mut bob, mut carol } = three("replaces");
    connect(&mut alice, &mut bob, "bob");
    // Carol learned from Bob's phone which call to take.
    let replaces = format!(
        "Replaces: {}\r\n",
        bob.replaces().replace("%3B", ";").replace("%3D", "=").replace("%40", "@")
    );
    carol.begin_with("taken", &replaces);
    assert_eq!(carol.outcome().status(), Some(200));
    bob.until_hung_up();
    talk((&alice, ALICE), (&carol, CAROL));
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
}

#[test]
fn rfc3515_2_4_transfer_sends_an_answered_caller_elsewhere_and_knows_how_it_went() {
    for (name, status, told) in [("refer-out", 200, "SUCCESS 0"), ("refer-busy", 486, "FAILURE 486")] {
        let Three { server, mut alice, .. } = three(name);
        alice.must_call("away");
        let refer = alice.expect("REFER");
        assert!(refer.must("Refer-To").starts_with("sip:carol@"), "{}", refer.text());
        alice.respond(&refer, 202, "Accepted", false);
        let fragment = format!("SIP/2.0 {status} x");
        let answer =
            alice.tell("Event: refer\r\nSubscription-State: terminated\r\n", "message/sipfrag", &fragment);
        assert_eq!(answer.status(), Some(200));
        alice.until_hung_up();
        assert_eq!(server.database("transfer", "status"), told);
        server.until_idle();
    }
}

/// Codes that the field's samples have; bob may be transferred to 300.
fn with_keys(name: &str) -> Three {
    let keys = "[general]\ntransferdigittimeout=1\n[featuremap]\nblindxfer => ##\natxfer => *2\n";
    let mut three = three_at(Site::new(name).add("features.conf", keys));
    connect(&mut three.alice, &mut three.bob, "200");
    talk((&three.alice, ALICE), (&three.bob, BOB));
    three
}

#[test]
fn keys_of_the_caller_send_the_called_party_on_and_nobody_hears_them() {
    let Three { server, mut alice, mut bob, mut carol } = with_keys("keys-blind");
    alice.media.type_digits("##300");
    let invite = carol.ring();
    carol.take(&invite);
    alice.until_hung_up();
    talk((&bob, BOB), (&carol, CAROL));
    assert_eq!((bob.media.heard().digits(), carol.media.heard().digits()), (String::new(), String::new()));
    bob.hang_up();
    carol.until_hung_up();
    server.until_idle();
}

#[test]
fn keys_of_the_called_party_ask_a_third_and_connect_the_two_others_by_hanging_up() {
    let Three { server, mut alice, mut bob, mut carol } = with_keys("keys-attended");
    bob.media.type_digits("*2300");
    let invite = carol.ring();
    carol.take(&invite);
    talk((&bob, BOB), (&carol, CAROL));
    alice.media.forget();
    bob.hang_up();
    talk((&alice, ALICE), (&carol, CAROL));
    assert_eq!(alice.media.heard().digits(), "");
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
}

#[test]
fn digits_that_are_no_code_reach_the_other_party() {
    let Three { server, mut alice, mut bob, .. } = with_keys("keys-none");
    alice.media.type_digits("5#7");
    wait::until("the digits come", || Some(bob.media.heard().digits()).filter(|digits| digits == "5#7"));
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn who_hangs_up_while_the_third_party_rings_is_called_back_when_that_one_refuses() {
    let Three { server, mut alice, mut bob, mut carol } = with_keys("keys-back");
    bob.media.type_digits("*2300");
    let invite = carol.ring();
    bob.hang_up();
    carol.refuse(&invite, 486, "Busy Here");
    let invite = bob.ring();
    assert!(invite.must("From").contains("alice"), "{}", invite.text());
    bob.take(&invite);
    talk((&alice, ALICE), (&bob, BOB));
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_key_lets_all_three_of_an_attended_transfer_talk() {
    let Three { server, mut alice, mut bob, mut carol } = with_keys("keys-three");
    bob.media.type_digits("*2300");
    let invite = carol.ring();
    carol.take(&invite);
    talk((&bob, BOB), (&carol, CAROL));
    bob.media.type_digits("*3");
    // One of them is silent, so that a tone is heard alone.
    bob.media.speak(Speak::Silence);
    talk((&alice, ALICE), (&carol, CAROL));
    carol.media.speak(Speak::Silence);
    bob.media.speak(Speak::Tone(BOB));
    talk((&alice, ALICE), (&bob, BOB));
    alice.media.speak(Speak::Silence);
    carol.media.speak(Speak::Tone(CAROL));
    talk((&bob, BOB), (&carol, CAROL));
    alice.media.speak(Speak::Tone(ALICE));
    bob.hang_up();
    talk((&alice, ALICE), (&carol, CAROL));
    carol.hang_up();
    alice.until_hung_up();
    server.until_idle();
}
