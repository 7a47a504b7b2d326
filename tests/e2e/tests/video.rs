//! Video through the program: pictures of one phone reach the other as they are, and its complaints come back (RFC 3264,
//! RFC 4585).

use e2e::camera::{Camera, Shown};
use e2e::{Message, Phone, Server, Site, Speak, wait};
use std::net::SocketAddr;

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,20)
exten => echo,1,Answer()
 same => n,Echo()
";
const H264: &str = "H264/90000";

/// Where a description wants video; `None` when it declines it.
fn wanted(message: &Message) -> Option<SocketAddr> {
    assert!(message.sdp("m=video ").is_some(), "no video in\n{}", message.text());
    message.video()
}
fn control(rtp: SocketAddr) -> SocketAddr {
    (rtp.ip(), rtp.port() + 1).into()
}
fn site(bob: &str) -> Site {
    Site::new("video")
        .phone_with("alice", "allow=ulaw,h264\n")
        .phone_with("bob", &format!("allow={bob}\n"))
        .dialplan(DIALPLAN)
}
/// A phone with a camera whose packets have this payload type.
fn phone(server: &Server, name: &str, payload_type: u8, words: &str) -> (Phone, Camera) {
    let mut phone = Phone::new(server.site.sip, name);
    let camera = Camera::open(phone.media.local().ip(), payload_type);
    phone.also =
        camera.sdp(H264, &format!("a=fmtp:{payload_type} {words}\r\na=rtcp-fb:{payload_type} nack pli\r\n"));
    (phone, camera)
}
/// Packets follow each other, and each is what was sent.
fn assert_whole(seen: &[Shown], payload_type: u8) {
    for pair in seen.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert_eq!(after.sequence, before.sequence.wrapping_add(1), "no gap");
        assert_eq!(after.ssrc, before.ssrc);
        let same = after.payload[0] == before.payload[0];
        assert_eq!(after.timestamp == before.timestamp, same, "one picture, one time");
    }
    seen.iter().for_each(|packet| packet.assert_whole(payload_type));
}

#[test]
fn pictures_go_both_ways_as_they_are_and_losses_are_told_to_the_camera() {
    let server = Server::start(site("ulaw,h264"));
    let (mut alice, mut hers) = phone(&server, "alice", 97, "profile-level-id=42801F;packetization-mode=1");
    let (mut bob, mut his) = phone(&server, "bob", 99, "profile-level-id=42e01f;packetization-mode=1");
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    assert!(invite.text().contains("profile-level-id=42801F;packetization-mode=1\r\n"), "{}", invite.text());
    bob.take(&invite);
    let ok = alice.outcome();
    assert!(
        ok.text().contains("a=fmtp:97 profile-level-id=42e01f;packetization-mode=1\r\n"),
        "{}",
        ok.text()
    );
    let (to_alice, to_bob) = (wanted(&ok).expect("video"), wanted(&invite).expect("video"));
    let bob_saw = hers.until_seen(to_alice, Some(&his));
    let alice_saw = his.until_seen(to_bob, Some(&hers));
    assert_whole(&bob_saw, 99);
    assert_whole(&alice_saw, 97);
    assert!(bob_saw[0].ssrc != hers.ssrc() && alice_saw[0].ssrc != his.ssrc(), "sources are ours");
    wait::until_true("alice hears that bob lost a picture of hers", || {
        his.lose(control(to_bob), bob_saw[0].ssrc);
        hers.lost().contains(&hers.ssrc())
    });
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn video_that_the_other_side_may_not_have_is_declined_and_the_call_goes_on() {
    let server = Server::start(site("ulaw"));
    let (mut alice, _camera) = phone(&server, "alice", 97, "packetization-mode=1");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    assert_eq!(invite.sdp("m=video "), None, "{}", invite.text());
    bob.take(&invite);
    let ok = alice.outcome();
    assert_eq!((ok.status(), wanted(&ok)), (Some(200), None), "{}", ok.text());
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn echo_shows_a_caller_what_its_camera_sees() {
    let server = Server::start(site("ulaw"));
    let (mut alice, mut camera) = phone(&server, "alice", 97, "packetization-mode=1");
    let ok = alice.must_call("echo");
    let to = wanted(&ok).expect("video");
    let mut seen = Vec::new();
    wait::until_true("she sees herself", || {
        camera.show(to, 8);
        seen.extend(camera.seen());
        seen.iter().filter(|packet| packet.marked).count() >= 3
    });
    assert_whole(&seen, 97);
    alice.hang_up();
}

#[test]
fn rfc3264_8_1_a_camera_that_is_switched_on_during_the_call_is_seen() {
    let server = Server::start(site("ulaw,h264"));
    let (mut alice, mut hers) = phone(&server, "alice", 97, "packetization-mode=1");
    let (mut bob, mut his) = phone(&server, "bob", 99, "packetization-mode=1");
    let [hers_said, his_said] = [&mut alice, &mut bob].map(|phone| std::mem::take(&mut phone.also));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    assert_eq!(invite.sdp("m=video "), None, "{}", invite.text());
    bob.take(&invite);
    assert_eq!(alice.outcome().sdp("m=video "), None);
    (alice.also, bob.also) = (hers_said, his_said);
    let ok = alice.reinvite("sendrecv");
    let to_alice = wanted(&ok).expect("video");
    let invite = bob.expect("INVITE");
    let to_bob = wanted(&invite).expect("video");
    bob.take(&invite);
    assert_whole(&hers.until_seen(to_alice, Some(&his)), 99);
    assert_whole(&his.until_seen(to_bob, Some(&hers)), 97);
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn in_a_conference_all_see_who_talks_who_sees_whom_they_saw_and_a_change_asks_for_a_whole_picture() {
    let site = ["alice", "bob", "carol"]
        .iter()
        .fold(Site::new("video-room"), |site, name| site.phone_with(name, "allow=ulaw,h264\n"));
    let site = site.dialplan("\n[test]\nexten => meet,1,ConfBridge(meet,seen,quiet)\n").add(
        "confbridge.conf",
        "[seen]\ntype=bridge\nvideo_mode=follow_talker\nvideo_update_discard=200\n\
         [quiet]\ntype=user\nquiet=yes\nmusic_on_hold_when_empty=no\n",
    );
    let server = Server::start(site);
    let mut guests: Vec<_> = [("alice", 97), ("bob", 98), ("carol", 99)]
        .into_iter()
        .map(|(name, payload_type)| {
            let (mut phone, camera) = phone(&server, name, payload_type, "packetization-mode=1");
            let to = wanted(&phone.must_call("meet")).expect("video");
            // Who comes in with the first packet of its sound: nobody may overtake the one before.
            let members = || server.run("confbridge list meet").stdout;
            let channel = format!("PJSIP/{name}-");
            wait::until_true("they come in one after the other", || {
                String::from_utf8_lossy(&members()).contains(&channel)
            });
            (phone, camera, to)
        })
        .collect();
    // Whoever's turn it is talks, and all cameras run, each with pictures of so many packets that it is known by them.
    for (talker, seen) in [(2, [2, 2, 0]), (1, [1, 2, 1]), (2, [2, 2, 1])] {
        for (n, (phone, ..)) in guests.iter().enumerate() {
            phone.media.speak(if n == talker { Speak::Tone(440.0) } else { Speak::Silence });
        }
        let talks = guests[talker].1.ssrc();
        let mut is_asked = false;
        wait::until_true("each sees whom it is to see", || {
            for (packets, (_, camera, to)) in (2..).zip(&mut guests) {
                camera.show(*to, packets);
            }
            is_asked |= guests[talker].1.lost().contains(&talks);
            let whom = |camera: &Camera| Some(camera.seen().last()?.payload.get(2)? - 2);
            let now: Vec<_> = guests.iter().map(|(_, camera, _)| whom(camera)).collect();
            is_asked && now == seen.map(Some)
        });
    }
    for (phone, ..) in &mut guests {
        phone.hang_up();
    }
}
