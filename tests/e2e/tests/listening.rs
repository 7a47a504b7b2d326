//! Callers who are listened to: AMD, WaitForNoise, BackgroundDetect, TALK_DETECT().

use e2e::{Phone, Server, Site, Speak, wait};

const DIALPLAN: &str = "
[test]
exten => noise,1,Answer()
 same => n,Set(DB(heard/begun)=yes)
 same => n,WaitForNoise(200,1,60)
 same => n,Set(DB(heard/noise)=${WAITSTATUS})
exten => amd,1,Answer()
 same => n,Set(JITTERBUFFER(adaptive)=default)
 same => n,AMD(60000,1500,30000,60000,100,50,1000)
 same => n,Set(DB(heard/amd)=${AMDSTATUS} ${CUT(AMDCAUSE,-,1)})
exten => silent,1,Answer()
 same => n,AMD(1000)
 same => n,Set(DB(heard/silent)=${AMDSTATUS} ${CUT(AMDCAUSE,-,1)})
exten => prompt,1,Answer()
 same => n,Set(DB(heard/begun)=yes)
 same => n,BackgroundDetect(tone,200)
 same => n,Set(DB(heard/prompt)=whole)
exten => talk,1,Set(DB(heard/prompt)=interrupted)
";

fn server(name: &str) -> Server {
    let site = Site::new(name).phone_with("alice", "allow=ulaw\n").prompt("tone", 1000.0, 50.0);
    Server::start(site.dialplan(DIALPLAN))
}

#[test]
fn noise_is_heard_when_it_comes() {
    let server = server("listen-noise");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Silence);
    alice.must_call("noise");
    wait::until_true("it listens", || server.database("heard", "begun") == "yes");
    alice.media.speak(Speak::Tone(440.0));
    alice.until_hung_up();
    assert_eq!(server.database("heard", "noise"), "NOISE");
    server.until_idle();
}

#[test]
fn who_talks_without_end_or_says_nothing_is_a_machine() {
    let server = server("listen-amd");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("amd");
    alice.until_hung_up();
    assert_eq!(server.database("heard", "amd"), "MACHINE LONGGREETING");
    alice.media.speak(Speak::Silence);
    alice.must_call("silent");
    alice.until_hung_up();
    assert_eq!(server.database("heard", "silent"), "MACHINE INITIALSILENCE");
    server.until_idle();
}

#[test]
fn a_prompt_stops_when_somebody_has_talked() {
    let server = server("listen-prompt");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Silence);
    alice.must_call("prompt");
    wait::until_true("it plays", || alice.media.heard().tone(1000.0) >= 500);
    alice.media.speak(Speak::Tone(440.0));
    let before = alice.media.sent();
    wait::until_true("it has talked for a second", || alice.media.sent() >= before + 50);
    alice.media.speak(Speak::Silence);
    alice.until_hung_up();
    assert_eq!(server.database("heard", "prompt"), "interrupted");
    server.until_idle();
}

#[test]
fn a_fax_that_calls_is_known_by_its_tone_and_goes_to_its_extension() {
    let site = Site::new("listen-fax")
        .phone_with("alice", "allow=ulaw\nfax_detect=yes\n")
        .phone_with("bob", "allow=ulaw\n")
        .dialplan(
            "\n[test]\nexten => bob,1,Dial(PJSIP/bob,30)\n\
             exten => fax,1,Set(DB(heard/fax)=${FAXEXTEN} ${CHANNEL(state)})\n same => n,Wait(30)\n",
        );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    alice.outcome();
    alice.media.speak(Speak::Tone(440.0));
    wait::until_true("they talk, a voice is no fax", || bob.media.heard().tone(440.0) > 500);
    alice.media.speak(Speak::Tone(1100.0));
    bob.until_hung_up();
    assert_eq!(server.database("heard", "fax"), "bob Up");
    alice.hang_up();
    server.until_idle();
}
