//! Session descriptions through the program: whose format is chosen, and which port carries what (RFC 3264, RFC 5761).

use e2e::{Phone, Server, Site, Speak, wait};

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,20)
exten => echo,1,Answer()
 same => n,Echo()
";

/// Milliseconds of a tone that tell it from an accident.
const HEARD_MS: u32 = 300;

#[test]
fn rfc3264_6_1_a_caller_is_answered_in_the_format_of_who_was_dialled_so_that_nothing_is_transcoded() {
    let asked = "allow=ulaw,alaw\nincoming_call_offer_pref=remote\n";
    let site = Site::new("suits").phone_with("alice", asked).phone_with("bob", "allow=alaw\n");
    let server = Server::start(site.dialplan(DIALPLAN));
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    (alice.codecs, bob.codecs) = (vec![0, 8], vec![8]);
    bob.must_register();
    alice.media.speak(Speak::Tone(440.0));
    bob.media.speak(Speak::Tone(1000.0));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    let answer = alice.outcome();
    assert_eq!(answer.status(), Some(200));
    let formats = answer.sdp("m=audio ").unwrap();
    assert!(formats.ends_with("RTP/AVP 8 0 101"), "{formats}");
    wait::until_true("alice hears bob", || alice.media.heard().tone(1000.0) >= HEARD_MS);
    wait::until_true("bob hears alice", || bob.media.heard().tone(440.0) >= HEARD_MS);
    for phone in [&alice, &bob] {
        assert_eq!(phone.media.heard().payload_types(), [8], "{}", phone.name);
    }
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn what_is_sent_follows_a_phone_that_changes_its_format() {
    let site = Site::new("follows").phone_with("alice", "allow=ulaw,alaw\n");
    let server = Server::start(site.dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    // It says that it prefers one and sends the other.
    alice.offer = Some(alice.sdp("sendrecv").replace("RTP/AVP 0 101", "RTP/AVP 0 8 101").into_bytes());
    alice.codecs = vec![8];
    alice.media.speak(Speak::Tone(440.0));
    let answer = alice.must_call("echo");
    assert!(answer.sdp("m=audio ").unwrap().ends_with("RTP/AVP 0 8 101"), "{}", answer.text());
    wait::until_true("it comes back as it is sent", || alice.media.heard().payloads(8).len() > 10);
    alice.media.forget();
    wait::until_true("alice hears herself", || alice.media.heard().tone(440.0) >= HEARD_MS);
    alice.hang_up();
    server.until_idle();
}

/// Payload type that a sender report has, read as RTP (RFC 5761 §4).
const SENDER_REPORT: u8 = 200 & 0x7f;

#[test]
fn rfc5761_5_1_1_reports_come_from_and_to_the_port_of_the_audio_where_both_want_that() {
    let site = Site::new("mux").phone_with("alice", "rtcp_mux=yes\n").prompt("long", 440.0, 60.0);
    let site = site.dialplan("[test]\nexten => long,1,Answer()\n same => n,Playback(long)\n");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Nothing);
    alice.offer = Some((alice.sdp("sendrecv") + "a=rtcp-mux\r\n").into_bytes());
    let answer = alice.must_call("long");
    assert!(answer.text().contains("a=rtcp-mux"), "{}", answer.text());
    wait::until_true("a report comes to the port of the audio", || {
        alice.media.heard().payload_types().contains(&SENDER_REPORT)
    });
    assert_eq!(alice.media.heard().sources().len(), 1, "from the port of the audio");
    alice.hang_up();
    server.until_idle();
}
