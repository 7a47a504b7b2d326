//! Call parking as phones see it: parked by a key and by a transfer, the number that is heard, the lamp of the space, the
//! call that is fetched and the one that comes back; told by who hears what.

use e2e::{Message, Phone, Server, Site, Speak, wait};

const DIALPLAN: &str = "
[test]
include => parkedcalls
exten => alice,1,Dial(PJSIP/alice,20)
exten => bob,1,Dial(PJSIP/bob,20,kK)
[watched]
include => parkedcalls
";

/// A lot that keeps calls for ten minutes, one that does for two seconds, and the key of parkcall.
const LOTS: &str = "[default]\nparkext=700\nparkpos=701-709\nparkinghints=yes\nparkingtime=600\n\
                    [short]\nparkext=800\nparkpos=801-809\nparkext_exclusive=yes\nparkingtime=2\n";
const KEYS: &str = "[featuremap]\nparkcall => *7\n";

/// Hertz of what each says, of the music, and of the digits 7, 8, 0 and 1.
const ALICE: f64 = 440.0;
const BOB: f64 = 620.0;
const CAROL: f64 = 880.0;
const MUSIC: f64 = 1100.0;
const DIGITS: [(&str, f64); 4] = [("7", 1700.0), ("8", 1860.0), ("0", 2020.0), ("1", 2180.0)];
/// Milliseconds of a tone that nobody takes for noise.
const ENOUGH: u32 = 250;

struct Office {
    server: Server,
    alice: Phone,
    bob: Phone,
    carol: Phone,
}

fn office(name: &str) -> Office {
    let phones = ["alice", "bob", "carol"].into_iter().fold(Site::new(name), Site::phone);
    let site = DIGITS
        .iter()
        .fold(phones, |site, (digit, hertz)| site.prompt(&format!("digits/{digit}"), *hertz, 0.6));
    let site =
        site.music(MUSIC, 30.0).dialplan(DIALPLAN).add("res_parking.conf", LOTS).add("features.conf", KEYS);
    let server = Server::start(site);
    let sip = server.site.sip;
    let phone = |name: &str, hertz| {
        let mut phone = Phone::new(sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone.must_register();
        phone
    };
    let (alice, bob, carol) = (phone("alice", ALICE), phone("bob", BOB), phone("carol", CAROL));
    Office { server, alice, bob, carol }
}

fn connect(caller: &mut Phone, callee: &mut Phone, number: &str) {
    caller.begin(number);
    let invite = callee.ring();
    callee.take(&invite);
    assert_eq!(caller.outcome().status(), Some(200));
    talk(caller, callee, [ALICE, BOB]);
}

fn hears(what: &str, phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true(what, || phone.media.heard().tone(hertz) >= ENOUGH);
}

fn talk(a: &Phone, b: &Phone, [of_a, of_b]: [f64; 2]) {
    hears("one hears the other", a, of_b);
    hears("the other hears the one", b, of_a);
}

/// Everybody who parks hears these digits, and then is hung up.
fn hears_digits(phone: &mut Phone, digits: &str) {
    for digit in digits.chars() {
        let (_, hertz) =
            DIGITS.iter().find(|(name, _)| name.starts_with(digit)).expect("a digit with a tone");
        wait::until_true("it hears the digit", || phone.media.heard().tone(*hertz) >= ENOUGH);
    }
}

/// The state of a lamp that the next NOTIFY tells.
fn lamp(phone: &mut Phone) -> String {
    let notify: Message = phone.expect("NOTIFY");
    phone.respond(&notify, 200, "OK", false);
    let text = notify.text();
    let state = text.split("<state>").nth(1).and_then(|rest| rest.split('<').next());
    state.unwrap_or_else(|| panic!("no state in\n{text}")).to_owned()
}

#[test]
fn a_key_parks_a_call_its_lamp_goes_on_and_another_phone_fetches_it() {
    let Office { server, mut alice, mut bob, mut carol } = office("park-key");
    let mut watcher = Phone::new(server.site.sip, "carol");
    let subscribed = watcher.ask_with(
        "SUBSCRIBE",
        "701",
        "Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: 600\r\n",
    );
    assert_eq!(subscribed.status(), Some(200), "{}", subscribed.text());
    assert_eq!(lamp(&mut watcher), "terminated");

    connect(&mut alice, &mut bob, "bob");
    bob.media.forget();
    bob.media.type_digits("*7");
    hears_digits(&mut bob, "701");
    bob.until_hung_up();
    hears("who is parked hears music", &alice, MUSIC);
    assert_eq!(lamp(&mut watcher), "confirmed");
    let shown = server.json("parking show default");
    let call = &shown["lots"][0]["calls"][0];
    assert_eq!((call["space"].as_u64(), call["parker"].as_str()), (Some(701), Some("PJSIP/bob")), "{shown}");

    carol.begin("701");
    assert_eq!(carol.outcome().status(), Some(200));
    talk(&alice, &carol, [ALICE, CAROL]);
    assert_eq!(lamp(&mut watcher), "terminated");
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
    let fetched = wait::until("a record is written", || {
        server.records().into_iter().find(|record| record.iter().any(|field| field == "ParkedCall"))
    });
    // The record of whoever fetches a call is its own; who was parked talks on in another one.
    assert!(fetched.iter().any(|field| field.starts_with("PJSIP/carol-")), "{fetched:?}");
}

#[test]
fn a_refer_to_the_lot_parks_a_call_and_the_phone_that_sent_it_hears_where() {
    let Office { server, mut alice, mut bob, .. } = office("park-refer");
    connect(&mut alice, &mut bob, "bob");
    bob.media.forget();
    let answer = bob.inside_with("REFER", "Refer-To: <sip:700@strowger>\r\n");
    assert_eq!(answer.status(), Some(202), "{}", answer.text());
    for said in ["SIP/2.0 100 Trying", "SIP/2.0 200 OK"] {
        let notify = bob.expect("NOTIFY");
        bob.respond(&notify, 200, "OK", false);
        assert!(notify.text().trim_end().ends_with(said), "{}", notify.text());
    }
    hears_digits(&mut bob, "701");
    bob.until_hung_up();
    hears("who is parked hears music", &alice, MUSIC);
    // The same phone fetches it.
    bob.begin("701");
    assert_eq!(bob.outcome().status(), Some(200));
    talk(&alice, &bob, [ALICE, BOB]);
    bob.hang_up();
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn a_call_that_nobody_fetches_comes_back_to_the_phone_that_parked_it() {
    let Office { server, mut alice, mut bob, .. } = office("park-back");
    connect(&mut alice, &mut bob, "bob");
    let answer = bob.inside_with("REFER", "Refer-To: <sip:800@strowger>\r\n");
    assert_eq!(answer.status(), Some(202), "{}", answer.text());
    let notify = bob.expect("NOTIFY");
    bob.respond(&notify, 200, "OK", false);
    // Who knows where hangs up at once.
    bob.hang_up();
    let invite = bob.ring();
    assert!(invite.must("From").contains("alice"), "{}", invite.text());
    bob.take(&invite);
    talk(&alice, &bob, [ALICE, BOB]);
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn who_asks_where_a_call_would_be_parked_transfers_it_there() {
    let Office { server, mut alice, mut bob, mut carol } = office("park-attended");
    connect(&mut alice, &mut bob, "bob");
    let mut second = Phone::new(server.site.sip, "bob");
    second.begin("700");
    assert_eq!(second.outcome().status(), Some(200));
    hears_digits(&mut second, "701");
    let refer = format!("Refer-To: <sip:700@strowger?Replaces={}>\r\n", second.replaces());
    let answer = bob.inside_with("REFER", &refer);
    assert_eq!(answer.status(), Some(202), "{}", answer.text());
    let notify = bob.expect("NOTIFY");
    bob.respond(&notify, 200, "OK", false);
    bob.until_hung_up();
    second.until_hung_up();
    hears("who is parked hears music", &alice, MUSIC);
    carol.begin("701");
    assert_eq!(carol.outcome().status(), Some(200));
    talk(&alice, &carol, [ALICE, CAROL]);
    carol.hang_up();
    alice.until_hung_up();
    server.until_idle();
}

const PICKUP: &str = "
[test]
exten => alice,1,Dial(PJSIP/alice,20)
exten => bob,1,Dial(PJSIP/bob,20)
exten => bob,hint,PJSIP/bob
exten => _**.,1,Pickup(${EXTEN:2})
 same => n,Hangup(21)
";

/// Three phones; carol's group is that of `group`, bob rings in group 3 and in `sales`.
fn groups(name: &str, carol: &str) -> Office {
    let site = Site::new(name).phone("alice").phone_with("bob", "call_group=3\nnamed_call_group=sales\n");
    let server = Server::start(site.phone_with("carol", carol).dialplan(PICKUP));
    let sip = server.site.sip;
    let phone = |name: &str, hertz| {
        let mut phone = Phone::new(sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone.must_register();
        phone
    };
    let (alice, bob, carol) = (phone("alice", ALICE), phone("bob", BOB), phone("carol", CAROL));
    Office { server, alice, bob, carol }
}

#[test]
fn a_phone_of_the_group_takes_a_call_that_rings_at_another_by_code_and_by_number() {
    for (name, group, dialled) in [
        ("pickup-code", "pickup_group=1,3\n", "*8"),
        ("pickup-named", "named_pickup_group=support,sales\n", "*8"),
        ("pickup-number", "", "**bob"),
    ] {
        let Office { server, mut alice, mut bob, mut carol } = groups(name, group);
        alice.begin("bob");
        let invite = bob.ring();
        carol.begin(dialled);
        assert_eq!(carol.outcome().status(), Some(200), "{name}");
        let cancel = bob.expect("CANCEL");
        // Whoever dials the code for it is nobody who has answered elsewhere.
        let reason = if dialled == "*8" { "Q.850;cause=16" } else { "SIP;cause=200" };
        assert!(cancel.text().contains(reason), "{}", cancel.text());
        bob.respond(&cancel, 200, "OK", false);
        bob.refuse(&invite, 487, "Request Terminated");
        assert_eq!(alice.outcome().status(), Some(200), "{name}");
        talk(&alice, &carol, [ALICE, CAROL]);
        alice.hang_up();
        carol.until_hung_up();
        server.until_idle();
        // One record of the attempt, one of the conversation with whoever took it.
        let of_alice = wait::until("a record is written", || {
            server.records().into_iter().find(|record| {
                let has = |of: &dyn Fn(&str) -> bool| record.iter().any(|field| of(field));
                has(&|field| field == "Dial") && has(&|field| field.starts_with("PJSIP/carol-"))
            })
        });
        assert!(of_alice.iter().any(|field| field.starts_with("PJSIP/alice-")), "{of_alice:?}");
    }
}

#[test]
fn a_phone_of_no_group_and_one_that_finds_nothing_are_refused() {
    for (name, group, dialled, status) in [
        ("pickup-none", "", "*8", 403),
        ("pickup-other", "pickup_group=4\n", "*8", 403),
        ("pickup-nothing", "pickup_group=3\n", "**alice", 403),
    ] {
        let Office { server, mut alice, mut bob, mut carol } = groups(name, group);
        alice.begin("bob");
        let invite = bob.ring();
        carol.begin(dialled);
        assert_eq!(carol.outcome().status(), Some(status), "{name}");
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200), "{name}");
        talk(&alice, &bob, [ALICE, BOB]);
        alice.hang_up();
        bob.until_hung_up();
        server.until_idle();
    }
}

/// The value of an attribute in the last NOTIFY.
fn attribute(text: &str, name: &str) -> String {
    let rest = text.split(&format!("{name}=\"")).nth(1).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn rfc3891_a_phone_takes_the_call_whose_lamp_it_watches_by_what_its_notify_says() {
    let Office { server, mut alice, mut bob, mut carol } = groups("pickup-lamp", "pickup_group=3\n");
    let lamp = "Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: 600\r\n";
    assert_eq!(carol.ask_with("SUBSCRIBE", "bob", lamp).status(), Some(200));
    alice.begin("bob");
    let invite = bob.ring();
    let text = loop {
        let notify = carol.expect("NOTIFY");
        carol.respond(&notify, 200, "OK", false);
        if notify.text().contains("<state>early</state>") {
            break notify.text();
        }
    };
    let of = |name: &str| attribute(&text, name);
    let replaces = format!(
        "Replaces: {};to-tag={};from-tag={};early-only\r\nRequire: replaces\r\n",
        of("call-id"),
        of("local-tag"),
        of("remote-tag")
    );
    carol.begin_with("bob", &replaces);
    assert_eq!(carol.outcome().status(), Some(200));
    let cancel = bob.expect("CANCEL");
    bob.respond(&cancel, 200, "OK", false);
    bob.refuse(&invite, 487, "Request Terminated");
    assert_eq!(alice.outcome().status(), Some(200));
    talk(&alice, &carol, [ALICE, CAROL]);
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
}
