//! Video in rooms on invented time: one camera is seen by many, and hears of them as from one.

mod camera;
mod common;

use base::{
    Combined, Command, Estimates, Event, FormatId, MemberSettings, PictureRequest, Plan, RoomId,
    RoomSettings, RoomVideo, StreamId,
};
use camera::*;
use common::*;
use media::Input;
use rtp::rtcp;

const ROOM: RoomId = RoomId::new(3, 1);

fn settings(video: RoomVideo) -> RoomSettings {
    RoomSettings { video, ..RoomSettings::default() }
}
fn enter(plant: &mut Plant, stream: StreamId, room: RoomId, video: RoomVideo) {
    let member = MemberSettings { muted: true, deaf: true, ..MemberSettings::default() };
    plant.command(Command::Enter { stream, room, mixing: settings(video), member });
}
fn show(plant: &mut Plant, stream: StreamId, source: StreamId) {
    plant.command(Command::Show { stream, source: Some(source) });
}
/// Streams of one format in a room, whose peers are asked for pictures in this way.
fn screens(plant: &mut Plant, count: u32, picture: PictureRequest, video_of: RoomVideo) -> Vec<StreamId> {
    let open = |n| plant.open(Plan { picture, ..video(n, FormatId::H264, 97) });
    let ids: Vec<_> = (0..count).map(open).collect();
    ids.iter().for_each(|id| enter(plant, *id, ROOM, video_of));
    ids
}
/// What has been asked of a stream's peer: kind, format, and what follows the source that it came from.
fn asked(plant: &Plant, stream: StreamId) -> Vec<(u8, u8, Vec<u8>)> {
    let read = |compound: Vec<u8>| (compound[33], compound[32] & 31, compound[40..].to_vec());
    passed(plant, stream).into_iter().map(read).collect()
}
/// A viewer's peer says something of what it is sent.
fn say(plant: &mut Plant, viewer: u32, kind: u8, format: u8, entries: &[u8]) {
    let media = if format == 15 || (kind, format) == (206, 4) { 0 } else { 0x1000 + viewer };
    let compound = feedback(kind, format, 0xb0b0 + viewer, media, entries);
    plant.rtcp(StreamId::new(viewer, 1), control(viewer), compound);
    plant.run(1);
}

#[test]
fn one_camera_is_seen_by_all_others_each_under_its_own_numbers() {
    let mut plant = Plant::new();
    let ids = screens(&mut plant, 4, PictureRequest::Signalling, RoomVideo::default());
    for viewer in &ids[1..] {
        show(&mut plant, *viewer, ids[0]);
    }
    show(&mut plant, ids[0], ids[2]);
    let (mut first, mut third) = (Camera::new(ids[0], 97), Camera::new(ids[2], 97));
    for _ in 0..3 {
        first.show(&mut plant, 5);
        third.show(&mut plant, 2);
    }
    for (at, viewer) in ids.iter().enumerate() {
        let sent = plant.sent_by(*viewer);
        let (pictures, packets) = if at == 0 { (3, 2) } else { (3, 5) };
        assert_eq!(sent.len(), pictures * packets, "{viewer:?}");
        for (n, packet) in sent.iter().enumerate() {
            let header = packet.header();
            assert_eq!(packet.payload(), [(n / packets) as u8 + 1, (n % packets) as u8, 0xaa, 0xbb]);
            assert_eq!((header.ssrc, packet.to), (0x1000 + at as u32, peer(at as u32)));
            assert_eq!(header.sequence, 65_500_u16.wrapping_add(n as u16));
            assert_eq!(header.marker, n % packets + 1 == packets);
        }
    }
    // The next one takes over, and what the first one still sends is seen by nobody but him.
    for viewer in [ids[0], ids[1], ids[3]] {
        show(&mut plant, viewer, ids[2]);
    }
    show(&mut plant, ids[2], ids[0]);
    let before: Vec<_> = ids.iter().map(|id| plant.sent_by(*id).len()).collect();
    first.show(&mut plant, 7);
    third.show(&mut plant, 3);
    let more: Vec<_> =
        ids.iter().zip(&before).map(|(id, before)| plant.sent_by(*id).len() - before).collect();
    assert_eq!(more, [3, 3, 7, 3]);
    assert_eq!(
        plant.sent_by(ids[1]).last().unwrap().header().sequence,
        65_500_u16.wrapping_add(17),
        "no gap"
    );
    assert_eq!(plant.worker.load().discards.total(), 0);
}

#[test]
fn who_leaves_is_closed_or_is_elsewhere_neither_shows_nor_is_shown() {
    let seen = |end: fn(&mut Plant, StreamId)| {
        let mut plant = Plant::new();
        let ids = screens(&mut plant, 3, PictureRequest::Signalling, RoomVideo::default());
        show(&mut plant, ids[1], ids[0]);
        show(&mut plant, ids[2], ids[0]);
        show(&mut plant, ids[0], ids[1]);
        let mut cameras: Vec<_> = ids.iter().map(|id| Camera::new(*id, 97)).collect();
        cameras.iter_mut().for_each(|camera| camera.show(&mut plant, 1));
        end(&mut plant, ids[0]);
        plant.net.sent.retain(|sent| sent.rtcp);
        cameras.iter_mut().for_each(|camera| camera.show(&mut plant, 1));
        ids.iter().map(|id| plant.sent_by(*id).len()).collect::<Vec<_>>()
    };
    assert_eq!(seen(|_, _| {}), [1, 1, 1]);
    assert_eq!(seen(|plant, stream| plant.command(Command::Part { stream })), [0, 0, 0]);
    assert_eq!(seen(|plant, stream| plant.command(Command::Close { stream })), [0, 0, 0]);
    assert_eq!(seen(|plant, stream| plant.command(Command::Show { stream, source: None })), [0, 1, 1]);
    let other = |plant: &mut Plant, stream| enter(plant, stream, RoomId::new(4, 1), RoomVideo::default());
    assert_eq!(seen(other), [0, 0, 0]);
    let again = |plant: &mut Plant, stream| enter(plant, stream, ROOM, RoomVideo::default());
    assert_eq!(seen(again), [1, 1, 1], "who enters where it is goes on");
    let joins = |plant: &mut Plant, a| plant.command(Command::Join { a, b: StreamId::new(2, 1) });
    assert_eq!(seen(joins), [1, 0, 1], "two of them are bridged");
}

#[test]
fn only_streams_of_one_room_and_format_see_each_other() {
    let mut plant = Plant::new();
    let ids = screens(&mut plant, 2, PictureRequest::Signalling, RoomVideo::default());
    let foreign = plant.open(video(2, FormatId::VP8, 97));
    let outside = plant.open(video(3, FormatId::H264, 97));
    let voice = plant.open(plan(4, FormatId::ULAW, 0));
    enter(&mut plant, foreign, ROOM, RoomVideo::default());
    enter(&mut plant, voice, ROOM, RoomVideo::default());
    for viewer in [ids[1], foreign, outside, voice, ids[0]] {
        show(&mut plant, viewer, ids[0]);
    }
    Camera::new(ids[0], 97).show(&mut plant, 4);
    // What a voice is sent of its room is longer.
    let pictures =
        |plant: &Plant, id| plant.sent_by(id).iter().filter(|packet| packet.payload().len() == 4).count();
    let sent: Vec<_> =
        [ids[1], foreign, outside, voice, ids[0]].iter().map(|id| pictures(&plant, *id)).collect();
    assert_eq!(sent, [4, 0, 0, 0, 0]);
}

#[test]
fn a_room_that_moves_to_another_worker_goes_on_seeing() {
    let (mut plant, mut other) = (Plant::new(), Plant::new());
    let ids = screens(&mut plant, 3, PictureRequest::Signalling, RoomVideo::default());
    show(&mut plant, ids[1], ids[0]);
    show(&mut plant, ids[2], ids[0]);
    let mut camera = Camera::new(ids[0], 97);
    camera.show(&mut plant, 3);
    let now = plant.now();
    let moving: Vec<_> = ids
        .iter()
        .map(|id| plant.worker.release(*id, now, &mut plant.net, &mut plant.events).expect("it is there"))
        .collect();
    camera.show(&mut plant, 3);
    other.run(now.as_millis() - other.now().as_millis());
    for (id, moving) in ids.iter().zip(moving) {
        other.input(Input::Adopt(moving));
        enter(&mut other, *id, ROOM, RoomVideo::default());
    }
    camera.show(&mut other, 5);
    for viewer in &ids[1..] {
        assert_eq!((plant.sent_by(*viewer).len(), other.sent_by(*viewer).len()), (3, 5), "{viewer:?}");
    }
}

#[test]
fn rfc3711_pictures_are_sealed_for_each_viewer_with_its_own_key() {
    let mut plant = Plant::new();
    let sealed_plan = |n| Plan { keys: Some(keys(n)), ..video(n, FormatId::H264, 97) };
    let ids = [
        plant.open(sealed_plan(0)),
        plant.open(sealed_plan(1)),
        plant.open(video(2, FormatId::H264, 97)),
        plant.open(sealed_plan(3)),
    ];
    ids.iter().for_each(|id| enter(&mut plant, *id, ROOM, RoomVideo::default()));
    ids[1..].iter().for_each(|viewer| show(&mut plant, *viewer, ids[0]));
    let mut sender = far_end(&keys(0));
    let mut camera = Camera::new(ids[0], 97);
    for _ in 0..3 {
        for packet in camera.packets(4) {
            let packet = sealed(&mut sender, &packet);
            plant.datagram(ids[0], peer(0), packet);
        }
        plant.run(33);
    }
    for (n, viewer) in ids.iter().enumerate().skip(1) {
        let mut end = far_end(&keys(n as u32));
        let sent = plant.sent_by(*viewer);
        assert_eq!(sent.len(), 12, "{n}");
        for (at, packet) in sent.iter().enumerate() {
            let packet = if n == 2 { packet.clone() } else { opened(&mut end, packet) };
            assert_eq!(packet.payload(), [(at / 4) as u8 + 1, (at % 4) as u8, 0xaa, 0xbb], "{n}");
        }
    }
}

#[test]
fn rfc5104_4_3_1_a_camera_that_is_seen_anew_is_asked_for_a_whole_picture_once_in_a_while() {
    for (request, expected) in [
        (PictureRequest::Fir, Some((206, 4, true))),
        (PictureRequest::Pli, Some((206, 1, false))),
        (PictureRequest::Signalling, None),
    ] {
        let mut plant = Plant::new();
        let video = RoomVideo { pause_ms: 1000, ..RoomVideo::default() };
        let ids = screens(&mut plant, 4, request, video);
        let mut camera = Camera::new(ids[0], 97);
        let count = |plant: &mut Plant, told: &mut usize| {
            let wanted = Event::PictureWanted { stream: ids[0] };
            *told += plant.take_events().iter().filter(|event| **event == wanted).count();
            asked(plant, ids[0]).len() + *told
        };
        let mut told = 0;
        show(&mut plant, ids[1], ids[0]);
        assert_eq!(count(&mut plant, &mut told), 0, "nothing has come yet: it begins with a whole one");
        camera.show(&mut plant, 1);
        show(&mut plant, ids[2], ids[0]);
        plant.run(1);
        assert_eq!(count(&mut plant, &mut told), 1, "{request:?}");
        show(&mut plant, ids[3], ids[0]);
        (1..4).for_each(|viewer| say(&mut plant, viewer, 206, 1, &[]));
        let fir = |viewer: u8| [0, 0, 0x10, viewer, 77, 0, 0, 0];
        (1..4).for_each(|viewer| say(&mut plant, viewer.into(), 206, 4, &fir(viewer)));
        plant.run(900);
        assert_eq!(count(&mut plant, &mut told), 1, "not while it is making one");
        plant.run(200);
        assert_eq!(count(&mut plant, &mut told), 2, "but then, for those who came meanwhile: {request:?}");
        plant.run(5000);
        assert_eq!(count(&mut plant, &mut told), 2, "once");
        plant.command(Command::AskPicture { stream: ids[0] });
        plant.run(1);
        assert_eq!(count(&mut plant, &mut told), 3);
        let ssrc = camera.phone.ssrc.to_be_bytes();
        let asked = asked(&plant, ids[0]);
        for (n, (kind, format, rest)) in (1..).zip(&asked) {
            let (expected_kind, expected_format, has_entry) = expected.expect("RTCP");
            let entry = [&[0; 4][..], &ssrc, &[n, 0, 0, 0]].concat();
            assert_eq!((*kind, *format), (expected_kind, expected_format));
            assert_eq!(*rest, if has_entry { entry } else { ssrc.to_vec() }, "each is a new request");
        }
        assert_eq!(asked.len(), if expected.is_some() { 3 } else { 0 });
    }
}

#[test]
fn rfc4585_6_2_1_what_several_miss_is_asked_for_once_and_under_the_cameras_numbers() {
    let mut plant = Plant::new();
    let ids = screens(&mut plant, 4, PictureRequest::Pli, RoomVideo::default());
    ids[1..].iter().for_each(|viewer| show(&mut plant, *viewer, ids[0]));
    let mut camera = Camera::new(ids[0], 97);
    camera.show(&mut plant, 40);
    let first = camera.phone.sequence.wrapping_sub(40);
    let entry = |number: u16, mask: u16| {
        let ([n0, n1], [m0, m1]) = (number.to_be_bytes(), mask.to_be_bytes());
        [n0, n1, m0, m1]
    };
    let told = |plant: &Plant| {
        let nacks = asked(plant, ids[0]).into_iter().filter(|(kind, ..)| *kind == 205);
        nacks.map(|(_, _, rest)| rest[4..].to_vec()).collect::<Vec<_>>()
    };
    // Viewers count from 65,500 on.
    for viewer in 1..4 {
        say(&mut plant, viewer, 205, 1, &entry(65_503, 2));
    }
    assert_eq!(told(&plant), [entry(first.wrapping_add(3), 2).to_vec()], "one asks for all");
    say(&mut plant, 2, 205, 1, &[entry(65_503, 2), entry(65_510, 0)].concat());
    assert_eq!(told(&plant)[1..], [entry(first.wrapping_add(10), 0).to_vec()]);
    plant.run(100);
    say(&mut plant, 3, 205, 1, &entry(65_503, 2));
    assert_eq!(told(&plant).len(), 3, "what is still missing is asked for again");
    plant.run(100);
    for number in 0..40 {
        say(&mut plant, 1, 205, 1, &entry(65_500_u16.wrapping_add(number), 0));
    }
    assert_eq!(told(&plant).len(), 3 + 32, "nobody makes a camera send without end");
    say(&mut plant, 1, 205, 1, &entry(100, 0));
    assert_eq!(told(&plant).len(), 3 + 32, "nor anything that it did not send");
}

#[test]
fn estimates_of_those_who_see_a_camera_are_brought_to_one_and_told_at_the_interval() {
    use Combined::{Average, Highest, Lowest};
    for (combined, of_all, forced, expected) in [
        (Average, false, None, Some(300_000)),
        (Lowest, false, None, Some(200_000)),
        (Highest, false, None, Some(400_000)),
        (Average, true, None, Some(220_000)),
        (Lowest, true, None, Some(60_000)),
        (Highest, true, None, Some(400_000)),
        (Lowest, false, Some(128_000), Some(128_000)),
    ] {
        for interval_ms in [0, 1000] {
            let mut plant = Plant::new();
            let estimates = Estimates { interval_ms, combined, of_all, forced };
            let ids =
                screens(&mut plant, 3, PictureRequest::Pli, RoomVideo { estimates, ..RoomVideo::default() });
            show(&mut plant, ids[1], ids[0]);
            show(&mut plant, ids[2], ids[0]);
            show(&mut plant, ids[0], ids[2]);
            let mut cameras: Vec<_> = ids.iter().map(|id| Camera::new(*id, 97)).collect();
            cameras.iter_mut().for_each(|camera| camera.show(&mut plant, 1));
            let estimate = |plant: &mut Plant, viewer: u32, rate: u64| {
                let source = (0x1000 + viewer).to_be_bytes();
                say(plant, viewer, 206, 15, &[b"REMB", &rtcp::remb_of(rate)[..], &source].concat());
            };
            // The second one sees the first; so does the third, a little later; the first sees the third.
            estimate(&mut plant, 0, 60_000);
            estimate(&mut plant, 1, 200_000);
            plant.run(1000);
            estimate(&mut plant, 2, 400_000);
            estimate(&mut plant, 1, 200_000);
            let told: Vec<_> = asked(&plant, ids[0])
                .into_iter()
                .filter(|(_, format, _)| *format == 15)
                .map(|(_, _, rest)| rtcp::remb_rate(rest[8..12].try_into().unwrap()))
                .collect();
            let expected: Vec<u64> = if interval_ms == 0 { vec![] } else { expected.into_iter().collect() };
            assert_eq!(
                told.get(1..).unwrap_or_default(),
                expected,
                "{combined:?} {of_all} {forced:?} {interval_ms}"
            );
        }
    }
}
