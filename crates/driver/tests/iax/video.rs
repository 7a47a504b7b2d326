//! Video between two sites: which call has it, and what becomes of its pieces.

use core::time::Duration;
use std::rc::Rc;

use ::iax2::machine::Encrypt;
use base::{ChannelId, FormatId, FormatSet, StreamId};
use driver::iax::{Common, Config, Host};

use super::lab::{Lab, SECRET, address, config, peer};

fn set(formats: &[FormatId]) -> FormatSet {
    formats.iter().copied().collect()
}

/// A site whose users and peers may have these formats of video.
fn with_video(site: usize, video: &[FormatId], encrypt: Encrypt) -> Config {
    let (own, other) = if site == 0 { ("one", "two") } else { ("two", "one") };
    let mut config = config(site, own, other);
    let common = |common: &Common| Common { video: set(video), encrypt, ..common.clone() };
    for user in config.users.values_mut() {
        let user = Rc::make_mut(user);
        user.common = common(&user.common);
    }
    let far = peer("far", Host::Fixed(address(1 - site)), own, SECRET);
    let far = driver::iax::Peer { common: common(&far.common), ..far };
    config.peers.insert("far".into(), Rc::new(far));
    config
}

/// The stream of a channel's video and its format.
fn video(lab: &Lab, site: usize, channel: ChannelId) -> Option<(StreamId, FormatId)> {
    let core = lab.sites[site].shard.core.borrow();
    let entry = core.get(channel).unwrap();
    let stream = entry.passed.first().copied().flatten()?;
    assert_eq!(entry.video_formats.iter().count(), 1);
    Some((stream, entry.video_formats.iter().next()?))
}

#[test]
fn rfc5456_8_7_a_call_has_video_in_the_first_format_that_both_sites_allow() {
    use FormatId as F;
    let (plain, sealed) = (Encrypt::No, Encrypt::Wanted);
    for (name, caller, callee, encrypt, expected) in [
        ("one format", &[F::H264][..], &[F::H264][..], plain, [Some(F::H264); 2]),
        ("the order of each", &[F::VP8, F::H264], &[F::H263, F::H264], plain, [Some(F::H264); 2]),
        // Who is called may have all that it was offered: the field does not say what it takes.
        ("none in common", &[F::VP8], &[F::H264], plain, [Some(F::VP8), None]),
        ("one without", &[], &[F::H264], plain, [None; 2]),
        ("without a bit", &[F::AV1], &[F::AV1], plain, [None; 2]),
        ("enciphered, which video is not", &[F::H264], &[F::H264], sealed, [None; 2]),
    ] {
        let mut lab = Lab::new([with_video(0, caller, encrypt), with_video(1, callee, encrypt)]);
        let (calling, called) = lab.talk();
        let found = [(0, calling), (1, called)].map(|(site, id)| video(&lab, site, id).map(|of| of.1));
        assert_eq!(found, expected, "{name}");
        lab.sites[0].shard.finish(calling, base::Cause::NORMAL_CLEARING);
        lab.pass(Duration::from_secs(1));
        lab.assert_idle();
    }
}

#[test]
fn rfc5456_8_1_2_pictures_come_as_they_were_sent_piece_by_piece() {
    let sites = [0, 1].map(|site| with_video(site, &[FormatId::H264], Encrypt::No));
    let mut lab = Lab::new(sites);
    let (calling, called) = lab.talk();
    let (from, _) = video(&lab, 0, calling).unwrap();
    let (to, _) = video(&lab, 1, called).unwrap();
    let plan = lab.sites[0].streams.borrow().open[&from].clone();
    assert_eq!((plan.format, plan.remote), (FormatId::H264, Some(base::PIPE)));
    lab.sites[1].streams.borrow_mut().fed.clear();
    // Pieces of three pictures, of which the last comes after the short clock has turned.
    let pieces: &[(u32, bool, &[u8], u64)] =
        &[(90, false, b"a", 5), (90, true, b"b", 28), (3090, true, b"c", 40_000), (9, true, b"d", 50)];
    for (stamp, mark, payload, pause) in pieces {
        let mut packet = vec![0x80, plan.payload | if *mark { 0x80 } else { 0 }, 0, 1];
        packet.extend_from_slice(&stamp.to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        packet.extend_from_slice(payload);
        let now = lab.now;
        lab.sites[0].iax.borrow_mut().media(now, &[(from, &packet)]);
        lab.pass(Duration::from_millis(*pause));
    }
    let fed: Vec<_> = lab.sites[1].streams.borrow().fed.clone();
    let header = |packet: &[u8]| {
        let sequence = u16::from_be_bytes([packet[2], packet[3]]);
        let stamp = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        (sequence, stamp, packet[1] & 0x80 != 0)
    };
    assert!(fed.iter().all(|(stream, _)| *stream == to), "{fed:?}");
    let payloads: Vec<&[u8]> = fed.iter().map(|(_, packet)| &packet[12..]).collect();
    assert_eq!(payloads, [b"a", b"b", b"c", b"d"]);
    let headers: Vec<_> = fed.iter().map(|(_, packet)| header(packet)).collect();
    let times: Vec<u32> = headers.iter().map(|(_, stamp, _)| stamp.wrapping_sub(headers[0].1) / 90).collect();
    assert_eq!(times, [0, 0, 33, 40_033], "milliseconds after the first");
    assert_eq!(headers.iter().map(|of| of.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(headers.iter().map(|of| of.2).collect::<Vec<_>>(), [false, true, true, true]);
}

#[test]
fn video_of_a_call_without_it_or_in_another_format_ends_here() {
    let mut lab = Lab::new([
        with_video(0, &[FormatId::VP8], Encrypt::No),
        with_video(1, &[FormatId::H264], Encrypt::No),
    ]);
    let (calling, _) = lab.talk();
    let (from, _) = video(&lab, 0, calling).expect("the callee has not said that it has none");
    lab.sites[1].streams.borrow_mut().fed.clear();
    let payload_type = lab.sites[0].streams.borrow().open[&from].payload;
    let packet = [&[0x80, payload_type, 0, 1][..], &[0; 8], b"a"].concat();
    let now = lab.now;
    lab.sites[0].iax.borrow_mut().media(now, &[(from, &packet)]);
    lab.pass(Duration::from_secs(1));
    assert!(lab.sites[1].streams.borrow().fed.is_empty());
}
