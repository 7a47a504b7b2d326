//! FollowMe with phones: numbers in turn, a key that takes the call, one that declines it, and nobody.

use e2e::{Phone, Server, Site, Speak, wait};

const CALLER: f64 = 440.0;
const BOB: f64 = 750.0;
const MUSIC: f64 = 350.0;
/// What the prompts sound like.
const KEYS: f64 = 1250.0;
const SORRY: f64 = 1000.0;
const ENOUGH: u32 = 200;

const PROFILES: &str = "
[general]
featuredigittimeout=1500
[ann]
context=numbers
number => 1,4
number => 2&3,10
";

const DIALPLAN: &str = "
[test]
exten => 300,1,FollowMe(ann,nd)
 same => n,Set(DB(followme/went)=on ${DIALEDTIME})
 same => n,Hangup()
[numbers]
exten => 1,1,Dial(PJSIP/desk)
exten => 2,1,Dial(PJSIP/bob)
exten => 3,1,Dial(PJSIP/carol)
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone("alice")
        .phone("desk")
        .phone("bob")
        .phone("carol")
        .dialplan(DIALPLAN)
        .add("followme.conf", PROFILES)
        .music(MUSIC, 4.0)
        .prompt("followme/no-recording", KEYS, 0.3)
        .prompt("followme/options", KEYS, 0.7)
        .prompt("followme/sorry", SORRY, 1.0);
    Server::start(site)
}

fn phone(server: &Server, name: &str, hertz: f64) -> Phone {
    let mut phone = Phone::new(server.site.sip, name);
    phone.media.speak(Speak::Tone(hertz));
    if name != "alice" {
        phone.must_register();
    }
    phone
}

fn hears(phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true("it is heard", || phone.media.heard().tone(hertz) >= ENOUGH);
}

#[test]
fn the_desk_is_called_first_then_the_others_and_who_presses_1_talks() {
    let server = server("followme");
    let mut alice = phone(&server, "alice", CALLER);
    let (mut desk, mut bob, mut carol) =
        (phone(&server, "desk", 620.0), phone(&server, "bob", BOB), phone(&server, "carol", 880.0));
    alice.must_call("300");
    let invite = desk.ring();
    hears(&alice, MUSIC);
    desk.take(&invite);
    hears(&desk, KEYS);
    desk.media.type_digits("2");
    desk.until_hung_up();

    // The other two ring together; both answer, and hear the question, not the caller.
    let (to_bob, to_carol) = (bob.ring(), carol.ring());
    bob.take(&to_bob);
    carol.take(&to_carol);
    hears(&carol, KEYS);
    hears(&alice, MUSIC);
    assert!(bob.media.heard().tone(CALLER) < ENOUGH, "nobody hears the caller before");
    bob.media.type_digits("1");
    carol.until_hung_up();
    hears(&bob, CALLER);
    hears(&alice, BOB);
    bob.hang_up();
    alice.until_hung_up();
    assert!(server.database("followme", "went").starts_with("on "), "{}", server.log());
    server.until_idle();
}

#[test]
fn who_does_not_answer_or_presses_no_key_lets_the_search_go_on_until_nobody_is_left() {
    let server = server("followme-nobody");
    let mut alice = phone(&server, "alice", CALLER);
    let (mut desk, mut bob) = (phone(&server, "desk", 620.0), phone(&server, "bob", BOB));
    alice.must_call("300");
    let _rings = desk.ring();
    let to_bob = bob.ring();
    bob.take(&to_bob);
    // An answering machine: it presses nothing.
    bob.until_hung_up();
    wait::until_true("she is told", || alice.media.heard().tone(SORRY) >= ENOUGH);
    alice.until_hung_up();
    assert_eq!(server.database("followme", "went"), "on");
    server.until_idle();
}
