//! Video on invented time: pictures go on as they are, and what a peer says of them goes back to who sent them.

mod camera;
mod common;

use base::{Command, Direction, FormatId, Latch, Plan, RxPayload};
use camera::*;
use common::*;
use rtp::{Discard, rtcp};

#[test]
fn pictures_go_on_as_they_are_under_our_numbers_and_the_peers_payload_type() {
    let mut plant = Plant::new();
    let a = plant.open(video(0, FormatId::H264, 97));
    let b = plant.open(video(1, FormatId::H264, 120));
    plant.command(Command::Join { a, b });
    let mut camera = Camera::new(a, 97);
    let first = camera.header();
    for count in [5, 1, 12, 3] {
        camera.show(&mut plant, count);
    }
    let sent = plant.sent_by(b);
    assert_eq!(sent.len(), 21);
    let (base, mut at) = (sent[0].header(), 0);
    for (picture, count) in [5, 1, 12, 3].into_iter().enumerate() {
        for part in 0..count {
            let packet = &sent[at];
            let header = packet.header();
            assert_eq!(packet.payload(), [picture as u8 + 1, part, 0xaa, 0xbb]);
            assert_eq!(header.sequence, 65_500_u16.wrapping_add(at as u16), "no gap");
            assert_eq!(
                header.timestamp.wrapping_sub(base.timestamp),
                3000 * picture as u32,
                "the same steps"
            );
            assert_eq!(header.marker, part + 1 == count, "only where a picture ends, the first one too");
            assert_eq!((header.ssrc, header.payload_type, packet.to), (0x1001, 120, peer(1)));
            at += 1;
        }
    }
    assert_ne!(first.ssrc, base.ssrc);
    assert!(plant.sent_by(a).is_empty());
    assert_eq!(plant.worker.load().discards.total(), 0);
}

#[test]
fn numbers_go_on_when_another_camera_takes_over_and_what_is_late_is_left_out() {
    let mut plant = Plant::new();
    let ids: Vec<_> = (0..3).map(|n| plant.open(video(n, FormatId::VP8, 96))).collect();
    let (a, b, c) = (ids[0], ids[1], ids[2]);
    plant.command(Command::Join { a, b });
    let (mut bob, mut carol) = (Camera::new(b, 96), Camera::new(c, 96));
    bob.show(&mut plant, 4);
    let late = bob.packets(1).remove(0);
    bob.show(&mut plant, 4);
    plant.command(Command::Join { a, b: c });
    carol.show(&mut plant, 3);
    plant.datagram(b, peer(1), late);
    carol.show(&mut plant, 3);
    let headers: Vec<_> = plant.sent_by(a).iter().map(Sent::header).collect();
    let numbers: Vec<_> = headers.iter().map(|header| header.sequence.wrapping_sub(65_500)).collect();
    // One packet of Bob's was lost on its way here, and stays lost.
    assert_eq!(numbers, [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert!(headers.windows(2).all(|pair| pair[1].timestamp.wrapping_sub(pair[0].timestamp) < 90_000));
    let marks: Vec<_> = headers.iter().map(|header| header.marker).collect();
    let ends = [3, 7, 10, 13];
    assert!(marks.iter().enumerate().all(|(at, marked)| *marked == ends.contains(&at)), "{marks:?}");
}

#[test]
fn rfc4585_6_feedback_reaches_the_camera_about_its_own_packets() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(video(0, FormatId::H264, 97)), plant.open(video(1, FormatId::H264, 97)));
    plant.command(Command::Join { a, b });
    let mut camera = Camera::new(a, 97);
    let first = camera.phone.sequence;
    camera.show(&mut plant, 10);
    // Bob lost the third packet of ours, and the fifth.
    let [p0, p1] = 65_502_u16.to_be_bytes();
    let ours = 0x1001_u32;
    let bob = 0xb0b;
    let entry = [&ours.to_be_bytes()[..], &[9, 0, 0, 0]].concat();
    let estimate = [&b"REMB\x01\x0b\x52\x34"[..], &ours.to_be_bytes()].concat();
    for (kind, format, media, entries) in [
        (206, 1, ours, &[][..]),
        (205, 1, ours, &[p0, p1, 0, 2]),
        (206, 4, 0, &entry),
        (206, 15, 0, &estimate),
        // None of these is about pictures of ours that a camera can be asked for.
        (206, 1, 0x9999, &[]),
        (205, 15, ours, &[0; 8]),
    ] {
        plant.rtcp(b, control(1), feedback(kind, format, bob, media, entries));
        plant.run(1);
    }
    let camera_ssrc = camera.phone.ssrc.to_be_bytes();
    let [n0, n1] = first.wrapping_add(2).to_be_bytes();
    let passed = passed(&plant, a);
    // RR without a block, SDES with a CNAME, then the feedback, all from our source towards the camera (§3.1).
    for compound in &passed {
        assert_eq!(compound[..8], [0x80, 201, 0, 1, 0, 0, 0x10, 0], "the smallest report there is");
        assert_eq!(compound[9], 202);
        assert_eq!(rtcp::Compound::parse(compound).unwrap().count(), 3);
        assert_eq!(compound[36..40], [0, 0, 0x10, 0]);
    }
    let told: Vec<_> =
        passed.iter().map(|compound| (compound[33], compound[32] & 31, compound[40..].to_vec())).collect();
    assert_eq!(
        told,
        [
            (206, 1, camera_ssrc.to_vec()),
            (205, 1, [&camera_ssrc[..], &[n0, n1, 0, 2]].concat()),
            (206, 4, [&[0; 4][..], &camera_ssrc, &[9, 0, 0, 0]].concat()),
            (206, 15, [&[0; 4][..], b"REMB\x01\x0b\x52\x34", &camera_ssrc].concat()),
        ]
    );
    assert!(controls(&plant, a).iter().all(|sent| sent.to == control(0)));
    assert!(controls(&plant, b).is_empty(), "nothing goes back");
}

#[test]
fn feedback_goes_nowhere_without_a_camera_that_is_relayed_and_is_not_taken_from_strangers() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(video(0, FormatId::VP8, 96)), plant.open(video(1, FormatId::VP8, 96)));
    let lost = feedback(206, 1, 0xb0b, 0x1001, &[]);
    let tell = |plant: &mut Plant, from| {
        let before = passed(plant, a).len();
        plant.rtcp(b, from, lost.clone());
        plant.run(1);
        passed(plant, a).len() - before
    };
    assert_eq!(tell(&mut plant, control(1)), 0, "no bridge");
    plant.command(Command::Join { a, b });
    assert_eq!(tell(&mut plant, control(1)), 0, "no picture yet");
    Camera::new(a, 96).show(&mut plant, 2);
    assert_eq!(tell(&mut plant, control(7)), 0, "a stranger");
    assert_eq!(plant.worker.load().discards.of(Discard::WrongSource), 1);
    assert_eq!(tell(&mut plant, control(1)), 1);
    plant.command(Command::Part { stream: a });
    assert_eq!(tell(&mut plant, control(1)), 0, "after the bridge");
}

#[test]
fn rfc3550_6_4_both_sides_get_reports_of_ours_and_none_of_the_other_sides() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(video(0, FormatId::H265, 96)), plant.open(video(1, FormatId::H265, 97)));
    plant.command(Command::Join { a, b });
    let mut camera = Camera::new(a, 96);
    let mut report = [0; 128];
    let mut writer = rtcp::Writer::new(&mut report);
    let info = base::SenderInfo { ntp: 1 << 40, timestamp: 5, packets: 6, bytes: 7 };
    writer.report(camera.phone.ssrc, Some(info), None);
    let length = writer.len();
    plant.rtcp(a, control(0), report[..length].to_vec());
    for _ in 0..400 {
        camera.show(&mut plant, 3);
    }
    let read = |sent: &Sent| match rtcp::Compound::parse(&sent.bytes).unwrap().next() {
        Some(rtcp::Packet::Report { ssrc, sender, mut blocks }) => (ssrc, sender, blocks.next()),
        other => panic!("{other:?}"),
    };
    let (to_camera, to_viewer) = (controls(&plant, a), controls(&plant, b));
    assert!(to_camera.len() >= 2 && to_viewer.len() >= 2, "{} {}", to_camera.len(), to_viewer.len());
    for sent in &to_camera {
        let (ssrc, sender, block) = read(sent);
        assert_eq!((ssrc, sender), (0x1000, None), "we send the camera nothing");
        assert!(block.is_some_and(|block| block.ssrc == camera.phone.ssrc && block.lost == 0));
    }
    let last = to_viewer.last().map(read);
    let Some((0x1001, Some(told), None)) = last else { panic!("{last:?}") };
    assert!(told.packets > 300 && told.ntp != info.ntp, "{told:?}");
}

#[test]
fn echo_shows_a_camera_its_own_pictures_and_takes_its_feedback() {
    let mut plant = Plant::new();
    let a = plant.open(video(0, FormatId::VP9, 98));
    plant.command(Command::Echo { stream: a, on: true });
    let mut camera = Camera::new(a, 98);
    camera.show(&mut plant, 6);
    assert_eq!(plant.sent_by(a).len(), 6);
    plant.rtcp(a, control(0), feedback(206, 1, camera.phone.ssrc, 0x1000, &[]));
    plant.run(1);
    assert_eq!(passed(&plant, a).len(), 1);
    plant.command(Command::Echo { stream: a, on: false });
    camera.show(&mut plant, 6);
    assert_eq!(plant.sent_by(a).len(), 6);
}

#[test]
fn what_the_other_side_has_not_agreed_to_does_not_reach_it() {
    let mut plant = Plant::new();
    let mut two = video(0, FormatId::H264, 97);
    two.rx[1] = Some(RxPayload::Audio(98, FormatId::VP8));
    let (a, b) = (plant.open(two), plant.open(video(1, FormatId::H264, 97)));
    plant.command(Command::Join { a, b });
    for (payload, direction, expected) in [
        (97, Direction::SendRecv, 3),
        (98, Direction::SendRecv, 0),
        (99, Direction::SendRecv, 0),
        (97, Direction::RecvOnly, 0),
        (97, Direction::Inactive, 0),
        (97, Direction::SendOnly, 3),
    ] {
        plant.command(Command::Plan {
            stream: b,
            plan: Box::new(Plan { direction, ..video(1, FormatId::H264, 97) }),
        });
        // The format that it had before is seen first.
        let mut camera = Camera::new(a, payload);
        camera.show(&mut plant, 3);
        let before = plant.sent_by(b).len();
        camera.show(&mut plant, 3);
        assert_eq!(plant.sent_by(b).len() - before, expected, "{payload} {direction:?}");
    }
}

#[test]
fn a_stream_of_video_learns_where_its_packets_come_from_as_audio_does() {
    let mut plant = Plant::new();
    let hidden = Plan { latch: Latch::Learn(peer(5).ip()), relearn: true, ..video(0, FormatId::H264, 97) };
    let (a, b) = (plant.open(hidden), plant.open(video(1, FormatId::H264, 97)));
    plant.command(Command::Join { a, b });
    let mut camera = Camera::new(a, 97);
    camera.phone.from = peer(5);
    camera.show(&mut plant, 8);
    assert!(plant.sent_by(b).len() >= 4, "learnt after four packets");
    Camera::new(b, 97).show(&mut plant, 1);
    assert_eq!(plant.sent_by(a)[0].to, peer(5), "and sent to there");
    plant.rtcp(b, control(1), feedback(206, 1, 0xb0b, 0x1001, &[]));
    plant.run(1);
    assert_eq!(controls(&plant, a)[0].to, control(5));
}

#[test]
fn sealed_video_meets_plain_video_and_feedback_is_sealed_too() {
    let mut plant = Plant::new();
    let keys = keys(0);
    let sealed_plan = Plan { keys: Some(keys.clone()), ..video(0, FormatId::VP8, 96) };
    let (a, b) = (plant.open(sealed_plan), plant.open(video(1, FormatId::VP8, 96)));
    plant.command(Command::Join { a, b });
    let mut far = far_end(&keys);
    let mut camera = Camera::new(a, 96);
    for packet in camera.packets(4) {
        plant.datagram(a, peer(0), sealed(&mut far, &packet));
    }
    plant.run(1);
    let sent = plant.sent_by(b);
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[3].payload(), [1, 3, 0xaa, 0xbb]);
    plant.rtcp(b, control(1), feedback(206, 1, 0xb0b, 0x1001, &[]));
    plant.run(1);
    let told = opened(&mut far, &controls(&plant, a)[0]);
    assert_eq!(told.bytes[33], 206);
    assert_eq!(told.bytes[40..44], camera.phone.ssrc.to_be_bytes());
    // Plain feedback for a sealed stream is nobody's.
    plant.rtcp(a, control(0), feedback(206, 1, 0xa11, 0x1000, &[]));
    plant.run(1);
    assert!(controls(&plant, b).is_empty());
}

#[test]
fn video_is_never_relayed_below_the_worker() {
    let mut plant = Plant::new();
    plant.net.relays = true;
    let (a, b) = (plant.open(video(0, FormatId::H264, 97)), plant.open(video(1, FormatId::H264, 97)));
    plant.command(Command::Join { a, b });
    let (mut alice, mut bob) = (Camera::new(a, 97), Camera::new(b, 97));
    for _ in 0..30 {
        alice.show(&mut plant, 2);
        bob.show(&mut plant, 2);
    }
    assert!(plant.net.below.is_empty() && plant.net.carried == 0);
    assert_eq!((plant.sent_by(a).len(), plant.sent_by(b).len()), (60, 60));
}
