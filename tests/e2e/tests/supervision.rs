//! A supervisor listens to two phones, whispers to one and barges in on both; a page reaches three. Who hears whom is told
//! by tones.

use e2e::{Phone, Server, Site, Speak, tone, wait};

/// What each phone says.
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
const CAROL: f64 = 1250.0;
const TONES: [f64; 3] = [ALICE, BOB, CAROL];

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob)
exten => spy,1,ChanSpy(PJSIP/alice,qdE)
 same => n,Set(DB(spy/on)=${SPY_CHANNEL})
exten => listen,1,ExtenSpy(bob@test,qx(3))
 same => n,Set(DB(spy/exten)=${SPY_CHANNEL})
exten => page,1,Page(PJSIP/bob&PJSIP/carol&Local/dave@test/n,qb(intercom^headers^1),10)
exten => talk,1,Page(PJSIP/bob&PJSIP/carol,dq,10)
exten => dave,1,Dial(PJSIP/dave,,b(intercom^headers^1))
[intercom]
exten => headers,1,Set(PJSIP_HEADER(add,Alert-Info)=<http://intercom>\\;info=alert-autoanswer)
 same => n,Return()
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .phone_with("carol", "allow=ulaw\n")
        .phone_with("dave", "allow=ulaw\n")
        .dialplan(DIALPLAN);
    Server::start(site)
}

fn phone(server: &Server, name: &str, hertz: f64) -> Phone {
    let mut phone = Phone::new(server.site.sip, name);
    phone.codecs = vec![if name == "bob" { 8 } else { 0 }];
    phone.media.speak(Speak::Tone(hertz));
    phone
}

/// The tones that a phone has heard in the last quarter of a second.
fn tones(phone: &Phone) -> Vec<f64> {
    tone::lately(&phone.media.heard().audio(), &TONES)
}

fn until_hears(phone: &Phone, expected: &[f64], when: &str) {
    let hears = wait::for_some(wait::SOON, || (tones(phone) == expected).then_some(()));
    assert!(hears.is_some(), "{when}: {} hears {:?}, not {expected:?}", phone.name, tones(phone));
}

/// Alice and bob talk.
fn talk(server: &Server) -> (Phone, Phone) {
    let (mut alice, mut bob) = (phone(server, "alice", ALICE), phone(server, "bob", BOB));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_hears(&alice, &[BOB], "before");
    until_hears(&bob, &[ALICE], "before");
    (alice, bob)
}

#[test]
fn a_supervisor_listens_whispers_and_barges_in_by_keys_and_ends_with_the_call() {
    let server = server("supervision");
    let (mut alice, mut bob) = talk(&server);
    let mut carol = phone(&server, "carol", CAROL);
    carol.must_call("spy");
    for (key, when, expected) in [
        ("", "listens", [vec![BOB], vec![ALICE], vec![ALICE, BOB]]),
        ("5", "whispers", [vec![BOB, CAROL], vec![ALICE], vec![ALICE, BOB]]),
        ("6", "barges in", [vec![BOB, CAROL], vec![ALICE, CAROL], vec![ALICE, BOB]]),
        ("4", "listens again", [vec![BOB], vec![ALICE], vec![ALICE, BOB]]),
    ] {
        carol.media.type_digits(key);
        for (phone, expected) in [&alice, &bob, &carol].into_iter().zip(&expected) {
            until_hears(phone, expected, when);
        }
    }
    alice.hang_up();
    bob.until_hung_up();
    carol.until_hung_up();
    assert!(server.database("spy", "on").starts_with("PJSIP/alice-"), "{}", server.database("spy", "on"));
    server.until_idle();
    for phone in [&alice, &bob] {
        assert_eq!(phone.media.heard().lost(), 0, "{}", phone.name);
    }
}

#[test]
fn who_listens_to_an_extension_hears_its_call_and_leaves_by_a_key() {
    let server = server("supervision-extension");
    let (mut alice, mut bob) = talk(&server);
    let mut carol = phone(&server, "carol", CAROL);
    carol.must_call("listen");
    until_hears(&carol, &[ALICE, BOB], "listens");
    until_hears(&alice, &[BOB], "and is not heard");
    carol.media.type_digits("3");
    carol.until_hung_up();
    assert!(server.database("spy", "exten").starts_with("PJSIP/alice-"));
    until_hears(&bob, &[ALICE], "the call goes on");
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_page_reaches_three_phones_one_way_with_headers_that_make_them_answer() {
    let server = server("page");
    let mut alice = phone(&server, "alice", ALICE);
    let mut others = [("bob", BOB), ("carol", CAROL), ("dave", CAROL)].map(|(name, hertz)| {
        let mut phone = phone(&server, name, hertz);
        phone.must_register();
        phone
    });
    alice.must_call("page");
    for phone in &mut others {
        let invite = phone.ring();
        assert_eq!(invite.must("Alert-Info"), "<http://intercom>;info=alert-autoanswer", "{}", phone.name);
        phone.take(&invite);
    }
    for phone in &others {
        until_hears(phone, &[ALICE], "a page");
    }
    assert!(tones(&alice).is_empty(), "the caller hears {:?}", tones(&alice));
    // One leaves, the others hear on; all hang up with the caller.
    let [bob, carol, dave] = &mut others;
    bob.hang_up();
    until_hears(carol, &[ALICE], "after bob has left");
    alice.hang_up();
    carol.until_hung_up();
    dave.until_hung_up();
    server.until_idle();
}

#[test]
fn an_intercom_both_ways_lets_all_talk() {
    let server = server("page-both-ways");
    let mut alice = phone(&server, "alice", ALICE);
    let mut others = [("bob", BOB), ("carol", CAROL)].map(|(name, hertz)| {
        let mut phone = phone(&server, name, hertz);
        phone.must_register();
        phone
    });
    alice.must_call("talk");
    for phone in &mut others {
        let invite = phone.ring();
        phone.take(&invite);
    }
    until_hears(&alice, &[BOB, CAROL], "all talk");
    until_hears(&others[0], &[ALICE, CAROL], "all talk");
    until_hears(&others[1], &[ALICE, BOB], "all talk");
    alice.hang_up();
    others.iter_mut().for_each(Phone::until_hung_up);
    server.until_idle();
}
