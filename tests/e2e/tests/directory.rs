//! Directory: a caller spells a name on the keys of a phone and is connected.

use e2e::{Phone, Server, Site, Speak, wait};

const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
/// What the prompt sounds like that tells how to choose.
const CHOOSE: f64 = 1250.0;

const DIALPLAN: &str = "
[test]
exten => 411,1,Directory(default,test)
exten => 6001,1,Dial(PJSIP/bob)
exten => h,1,Set(DB(directory/result)=${DIRECTORY_RESULT})
";

#[test]
fn a_colleague_is_found_by_keys_and_called() {
    let mut site = Site::new("directory")
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=ulaw\n")
        .add(
            "voicemail.conf",
            "[general]\nformat=wav\n[default]\n6001 => 1,Bob Smith\n6002 => 1,Carol Jones\n",
        )
        .prompt("dir-instr", CHOOSE, 1.0)
        .dialplan(DIALPLAN);
    for word in ["dir-welcome", "dir-pls-enter", "dir-last", "dir-usingkeypad"] {
        site = site.prompt(word, ALICE, 0.1);
    }
    let server = Server::start(site);
    let phone = |name: &str, hertz| {
        let phone = Phone::new(server.site.sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone
    };
    let (mut alice, mut bob) = (phone("alice", ALICE), phone("bob", BOB));
    bob.must_register();
    alice.must_call("411");
    alice.media.type_digits("764");
    wait::until_true("the name was spelled", || alice.media.heard().tone(CHOOSE) > 200);
    alice.media.type_digits("1");
    let invite = bob.ring();
    bob.take(&invite);
    wait::until_true("bob is heard", || alice.media.heard().tone(BOB) > 300);
    alice.hang_up();
    bob.until_hung_up();
    assert_eq!(server.database("directory", "result"), "SELECTED");
    server.until_idle();
}
