//! What callers hear, told by its content (RFC 3550, RFC 4733, RFC 3264).

use e2e::{Phone, Server, Site, Speak, wait};
use std::time::Duration;

/// The prompt, the music, and what each phone says.
const PROMPT: f64 = 1000.0;
const MUSIC: f64 = 600.0;
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
/// Milliseconds of a tone that count as heard.
const ENOUGH: u32 = 500;
/// Silence that no machine makes by itself, however busy it is.
const STALL: Duration = Duration::from_secs(5);

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => prompt,1,Answer()
 same => n,Playback(tone)
 same => n,Hangup()
exten => early,1,Progress()
 same => n,Playback(tone,noanswer)
 same => n,Hangup(17)
exten => music,1,Answer()
 same => n,MusicOnHold()
exten => bob,1,Dial(PJSIP/bob,10)
exten => ringing,1,Dial(PJSIP/bob,10,m)
exten => read,1,Answer()
 same => n,Read(TYPED,,4,,1,10)
 same => n,Set(DB(typed/read)=${TYPED})
 same => n,Hangup()
exten => milliwatt,1,Answer()
 same => n,Milliwatt()
exten => send,1,Answer()
 same => n,Wait(0.5)
 same => n,SendDTMF(159#)
 same => n,Wait(30)
exten => quality,1,Answer()
 same => n,Echo()
exten => h,1,Set(DB(quality/${UNIQUEID})=${RTPAUDIOQOS})
 same => n,Set(DB(quality/last)=${CHANNEL(rtcp,rxcount)} ${CHANNEL(rtcp,txcount)} ${CHANNEL(rtcp,rxploss)})
 same => n,Set(DB(quality/peer)=${RTPAUDIOQOSBRIDGED})
exten => record,1,Answer()
 same => n,Record(taken.wav,0,2)
 same => n,Playback(taken)
 same => n,Hangup()
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=ulaw,alaw\n")
        .prompt("tone", PROMPT, 2.0)
        .music(MUSIC, 5.0)
        .dialplan(DIALPLAN);
    Server::start(site)
}

fn alice(server: &Server) -> Phone {
    Phone::new(server.site.sip, "alice")
}

/// Waits until a phone has heard enough of a tone.
fn until_heard(phone: &Phone, hertz: f64) {
    let heard = wait::for_some(wait::SOON, || (phone.media.heard().tone(hertz) >= ENOUGH).then_some(()));
    let all = phone.media.heard();
    assert!(
        heard.is_some(),
        "{} does not hear {hertz} Hz: {} packets, {} ms of sound, {} ms of the tone",
        phone.name,
        all.packets(),
        all.sounding(),
        all.tone(hertz)
    );
}

#[test]
fn echo_returns_what_was_said() {
    let server = server("echo");
    let mut alice = alice(&server);
    alice.media.speak(Speak::Tone(ALICE));
    alice.must_call("echo");
    until_heard(&alice, ALICE);
    alice.hang_up();
    assert_eq!(alice.media.heard().lost(), 0);
}

#[test]
fn a_prompt_is_heard_whole_and_without_a_gap() {
    let server = server("prompt");
    let mut alice = alice(&server);
    alice.must_call("prompt");
    alice.until_hung_up();
    wait::until_true("its last packets", || alice.media.heard().tone(PROMPT) >= 1900);
    let heard = alice.media.heard();
    assert!(heard.tone(PROMPT) <= 2060, "{} ms of 2000", heard.tone(PROMPT));
    assert_eq!(heard.lost(), 0);
    assert!(heard.longest_gap() < STALL, "{:?}", heard.longest_gap());
}

#[test]
fn a_prompt_is_heard_before_the_call_is_answered() {
    let server = server("early");
    let mut alice = alice(&server);
    alice.begin("early");
    assert_eq!(alice.progress().status(), Some(183));
    assert_eq!(alice.outcome().status(), Some(486));
    wait::until_true("its last packets", || alice.media.heard().tone(PROMPT) >= 1900);
}

#[test]
fn a_milliwatt_is_1004_hertz() {
    let server = server("milliwatt");
    let mut alice = alice(&server);
    alice.must_call("milliwatt");
    until_heard(&alice, 1004.0);
    alice.hang_up();
}

#[test]
fn music_is_heard_and_is_not_silence() {
    let server = server("music");
    let mut alice = alice(&server);
    alice.must_call("music");
    until_heard(&alice, MUSIC);
    alice.hang_up();
}

#[test]
fn two_phones_hear_each_other_through_dial() {
    let server = server("dial");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_heard(&alice, BOB);
    until_heard(&bob, ALICE);
    bob.hang_up();
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn phones_without_a_common_format_are_transcoded() {
    let server = server("law");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.codecs = vec![8];
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_heard(&alice, BOB);
    until_heard(&bob, ALICE);
    assert_eq!(alice.media.heard().payload_types(), [0]);
    assert_eq!(bob.media.heard().payload_types(), [8]);
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn the_held_party_hears_music_and_then_the_other_again() {
    let server = server("hold");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_heard(&alice, BOB);
    let answer = bob.reinvite("sendonly");
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    assert_eq!(answer.sdp("a=recvonly"), Some(""), "{}", answer.text());
    bob.media.speak(Speak::Nothing);
    alice.media.forget();
    until_heard(&alice, MUSIC);
    let answer = bob.reinvite("sendrecv");
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    bob.media.speak(Speak::Tone(BOB));
    alice.media.forget();
    until_heard(&alice, BOB);
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn music_instead_of_ringing_is_heard_while_the_phone_rings() {
    let server = server("ringmusic");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.begin("ringing");
    let invite = bob.ring();
    let progress = alice.progress();
    assert!(matches!(progress.status(), Some(180 | 183)), "{}", progress.text());
    until_heard(&alice, MUSIC);
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn rfc4733_digits_are_read() {
    let server = server("read");
    let mut alice = alice(&server);
    alice.must_call("read");
    alice.media.type_digits("40#");
    assert_eq!(server.database("typed", "read"), "40");
    alice.until_hung_up();
}

#[test]
fn rfc4733_digits_are_sent() {
    let server = server("send");
    let mut alice = alice(&server);
    alice.must_call("send");
    wait::until_true("all digits are heard", || alice.media.heard().digits().len() >= 4);
    assert_eq!(alice.media.heard().digits(), "159#");
    alice.hang_up();
}

#[test]
fn rfc4733_digits_cross_a_bridge() {
    let server = server("cross");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.media.type_digits("27*");
    wait::until_true("all digits are heard", || bob.media.heard().digits().len() >= 3);
    assert_eq!(bob.media.heard().digits(), "27*");
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn what_is_recorded_is_heard_again() {
    let server = server("record");
    let mut alice = alice(&server);
    alice.media.speak(Speak::Tone(ALICE));
    alice.must_call("record");
    alice.until_hung_up();
    // All but what a busy machine may have kept the phone from saying in time.
    wait::until_true("half of two seconds", || alice.media.heard().tone(ALICE) >= 1000);
}

#[test]
fn audio_from_a_stranger_is_neither_heard_nor_answered() {
    let server = server("stranger");
    let mut alice = alice(&server);
    alice.media.speak(Speak::Tone(ALICE));
    let answer = alice.must_call("echo");
    until_heard(&alice, ALICE);
    // Another address speaks to the same port with the format of the call.
    let stranger = Phone::new(server.site.sip, "stranger");
    let port: u16 = answer.sdp("m=audio ").and_then(|media| media.split(' ').next()?.parse().ok()).unwrap();
    stranger.media.speak(Speak::Tone(BOB));
    stranger.media.send_to((server.site.sip.ip(), port).into());
    alice.media.forget();
    until_heard(&alice, ALICE);
    let heard = alice.media.heard();
    assert_eq!((heard.tone(BOB), stranger.media.heard().packets()), (0, 0));
    assert_eq!(heard.sources().len(), 1);
    alice.hang_up();
}

#[test]
fn packets_show_in_the_log_while_they_are_traced() {
    let server = server("trace");
    let mut alice = alice(&server);
    assert_eq!(server.cli("rtp set debug on"), "RTP Packet Debugging Enabled\n");
    alice.must_call("echo");
    alice.media.speak(Speak::Tone(ALICE));
    until_heard(&alice, ALICE);
    let lines = |what: &str| server.log().lines().filter(|line| line.contains(what)).count();
    for what in ["Got  RTP packet from    ", "Sent RTP packet to      "] {
        wait::until_true("packets show", || lines(what) >= 10);
    }
    let log = server.log();
    let line = log.lines().find(|line| line.contains("Got  RTP packet")).expect("a line");
    assert!(line.contains("(type 00, seq ") && line.ends_with("len 000160)"), "{line}");
    assert_eq!(server.cli("rtp set debug off"), "RTP Packet Debugging Disabled\n");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn what_was_heard_is_counted_for_the_dialplan() {
    let server = server("quality");
    let mut alice = alice(&server);
    alice.must_call("quality");
    alice.media.speak(Speak::Tone(ALICE));
    until_heard(&alice, ALICE);
    alice.hang_up();
    server.until_idle();
    let numbers: Vec<u64> =
        server.database("quality", "last").split(' ').map(|word| word.parse().expect("a number")).collect();
    let [received, sent, lost] = numbers[..] else { panic!("{numbers:?}") };
    assert!(received >= 25 && sent >= 25 && lost == 0, "{numbers:?}");
    assert_eq!(server.database_now("quality", "peer").as_deref().unwrap_or_default(), "");
}

#[test]
fn what_the_other_side_heard_is_counted_too() {
    let server = server("quality-bridge");
    let (mut alice, mut bob) = (alice(&server), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    until_heard(&alice, BOB);
    until_heard(&bob, ALICE);
    let shown = server.cli("pjsip show channelstats");
    assert!(shown.contains("Receive") && shown.contains("alice-") && shown.contains("bob-"), "{shown}");
    // Who hangs up first leaves the other one with what it has heard.
    bob.hang_up();
    alice.until_hung_up();
    server.until_idle();
    let peer = server.database("quality", "peer");
    let received: u64 = peer
        .split(';')
        .find_map(|part| part.strip_prefix("rxcount="))
        .and_then(|count| count.parse().ok())
        .unwrap_or_default();
    assert!(received >= 25, "{peer}");
}
