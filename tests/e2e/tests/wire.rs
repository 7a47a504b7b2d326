//! What leaves Strowger, as an independent decoder sees it.

use e2e::{Capture, Phone, Server, Site, Speak, installed, wait};

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => send,1,Answer()
 same => n,SendDTMF(15#)
 same => n,Wait(30)
exten => early,1,Progress()
 same => n,Playback(tone,noanswer)
 same => n,Hangup(17)
exten => bob,1,Dial(PJSIP/bob,10)
";

/// Everything that Strowger says in a day: registrations, refusals, early media, digits, hold, reports, goodbyes.
#[test]
fn tshark_finds_nothing_malformed_in_what_we_send() {
    if !installed(&["tshark", "tcpdump"]) {
        return;
    }
    let site = Site::new("wire").phone("alice").phone("bob").prompt("tone", 1000.0, 0.5).dialplan(DIALPLAN);
    let server = Server::start(site.add("pjsip.conf", "[bob](+type=aor)\nqualify_frequency=1\n"));
    let Some(mut capture) = Capture::start(server.site.sip.ip()) else { return };

    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    alice.must_register();
    bob.must_register();
    alice.ask("OPTIONS", "alice");
    alice.ask("NOTIFY", "alice");
    assert_eq!(alice.call("nowhere").status(), Some(404));
    assert_eq!(alice.call("early").status(), Some(486));
    alice.must_call("send");
    wait::until_true("all digits are heard", || alice.media.heard().digits().len() >= 3);
    alice.hang_up();
    alice.media.speak(Speak::Tone(440.0));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.media.type_digits("7");
    wait::until_true("the digit is heard", || bob.media.heard().digits() == "7");
    alice.reinvite("sendonly");
    alice.reinvite("sendrecv");
    // The first report comes 5 s after the first packet at the latest (RFC 3550 §6.2).
    alice.media.forget();
    let talked = || (alice.media.heard().packets() > 350).then_some(());
    bob.media.speak(Speak::Tone(750.0));
    assert!(wait::for_some(wait::SOON, talked).is_some(), "audio stops");
    bob.hang_up();
    alice.until_hung_up();
    server.until_idle();

    let ours = format!("ip.src == {}", server.site.sip.ip());
    let bad = capture.fields(
        &format!("{ours} && (_ws.malformed || _ws.expert.severity >= \"Warning\")"),
        &["frame.number", "_ws.col.Protocol", "_ws.col.Info", "_ws.expert.message"],
    );
    assert!(bad.is_empty(), "{bad:#?}");
    for (what, filter, least) in [
        ("SIP", "sip", 30),
        ("descriptions", "sdp", 6),
        ("audio", "rtp && !rtpevent", 500),
        ("digits", "rtpevent", 12),
        ("reports", "rtcp.pt == 200 || rtcp.pt == 201", 1),
        ("names", "rtcp.pt == 202", 1),
        ("goodbyes", "rtcp.pt == 203", 1),
    ] {
        let seen = capture.fields(&format!("{ours} && ({filter})"), &["frame.number"]).len();
        assert!(seen >= least, "{what}: {seen} packets, at least {least} expected");
    }
}
