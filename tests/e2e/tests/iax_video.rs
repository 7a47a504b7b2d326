//! Video of phones of two sites, over IAX2 between them (RFC 5456 §8.1.2, §8.7).

use e2e::camera::{Camera, Shown};
use e2e::{Phone, Server, Site};
use std::net::IpAddr;

const DIALPLAN: &str = "
[test]
exten => _far-.,1,Dial(IAX2/far/${EXTEN:4},20)
[incoming]
exten => bob,1,Dial(PJSIP/bob,20)
exten => echo,1,Answer()
 same => n,Echo()
";
const H264: &str = "H264/90000";

/// Both sites, up: `alice` at one, `bob` at the other, and between them these formats.
fn sites(name: &str, allow: &str) -> (Server, Server) {
    let site = |name: String, phone| Site::new(&name).phone_with(phone, "allow=ulaw,h264\n");
    let (first, second) = (site(format!("{name}-first"), "alice"), site(format!("{name}-second"), "bob"));
    let (one, two) = (first.sip.ip(), second.sip.ip());
    let conf = |own: &str, ip: IpAddr, other: &str, far: IpAddr| {
        format!(
            "[general]\nbindaddr = {ip}\ndisallow = all\nallow = {allow}\n\
             [far]\ntype = peer\nhost = {far}\nusername = {own}\nsecret = between the two of us\n\
             [{other}]\ntype = user\nsecret = between the two of us\ncontext = incoming\n"
        )
    };
    let first = first.add("iax.conf", &conf("first", one, "second", two)).dialplan(DIALPLAN);
    let second = second.add("iax.conf", &conf("second", two, "first", one)).dialplan(DIALPLAN);
    (Server::start(first), Server::start(second))
}

fn phone(server: &Server, name: &str, payload_type: u8) -> (Phone, Camera) {
    let mut phone = Phone::new(server.site.sip, name);
    let camera = Camera::open(phone.media.local().ip(), payload_type);
    phone.also = camera.sdp(H264, &format!("a=fmtp:{payload_type} packetization-mode=1\r\n"));
    (phone, camera)
}

/// Packets follow each other, those of a picture have one time and the last of them the mark.
fn assert_whole(seen: &[Shown], payload_type: u8) {
    for pair in seen.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert_eq!(after.sequence, before.sequence.wrapping_add(1), "no gap");
        let same = after.payload[0] == before.payload[0];
        assert!(!same || after.timestamp == before.timestamp, "one picture, one time");
    }
    seen.iter().for_each(|packet| packet.assert_whole(payload_type));
}

#[test]
fn rfc5456_8_1_2_phones_of_two_sites_see_each_other() {
    let (first, second) = sites("iax-video", "ulaw,h264");
    let (mut alice, mut hers) = phone(&first, "alice", 97);
    let (mut bob, mut his) = phone(&second, "bob", 99);
    bob.must_register();
    alice.begin("far-bob");
    let invite = bob.ring();
    let to_bob = invite.video().unwrap_or_else(|| panic!("no video in\n{}", invite.text()));
    bob.take(&invite);
    let ok = alice.outcome();
    let to_alice = ok.video().unwrap_or_else(|| panic!("no video in\n{}", ok.text()));
    assert_whole(&hers.until_seen(to_alice, Some(&his)), 99);
    assert_whole(&his.until_seen(to_bob, Some(&hers)), 97);
    alice.hang_up();
    bob.until_hung_up();
    first.until_idle();
    second.until_idle();
}

#[test]
fn echo_at_another_site_shows_a_caller_what_its_camera_sees() {
    let (first, second) = sites("iax-mirror", "ulaw,h264");
    let (mut alice, mut camera) = phone(&first, "alice", 97);
    let ok = alice.must_call("far-echo");
    let to = ok.video().unwrap_or_else(|| panic!("no video in\n{}", ok.text()));
    assert_whole(&camera.until_seen(to, None), 97);
    alice.hang_up();
    second.until_idle();
}

#[test]
fn a_call_over_sound_only_declines_the_video_and_goes_on() {
    let (first, second) = sites("iax-sound", "ulaw");
    let (mut alice, _camera) = phone(&first, "alice", 97);
    let ok = alice.must_call("far-echo");
    assert_eq!(ok.video(), None, "{}", ok.text());
    alice.hang_up();
    second.until_idle();
}
