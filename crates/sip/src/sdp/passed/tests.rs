use super::*;
use crate::sdp::{Encryption, Negotiated, Negotiator, SdpError};
use base::{FormatId as F, SrtpSuite};

fn remote(body: &str) -> Vec<u8> {
    format!("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n{body}").into_bytes()
}
fn plain(formats: &[F]) -> Vec<PassedFormat> {
    formats.iter().copied().map(PassedFormat::plain).collect()
}
fn said(format: F, fmtp: &str) -> PassedFormat {
    PassedFormat { format, fmtp: Some(fmtp.as_bytes().into()) }
}
/// Our side: one stream of these formats on port 20000.
fn ours(formats: &[PassedFormat]) -> LocalPassed<'_> {
    LocalPassed { formats, port: 20_000, feedback: VideoFeedback::ALL, direction: Direction::SendRecv }
}
fn local<'a>(video: &'a [LocalPassed<'a>]) -> Local<'a> {
    Local {
        passed: video,
        telephone_event: false,
        ..Local::new([F::ULAW].into_iter().collect(), [198, 51, 100, 1].into(), 10_000)
    }
}
/// What a description says from the first stream on that is no audio.
fn videos(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap().replace("\r\n", "|");
    let audio = text.find("m=audio").unwrap();
    let next = text[audio..].find("|m=").map_or(text.len(), |at| audio + at + 1);
    text[next..].to_owned()
}
fn answered(offer: &str, local: &Local<'_>) -> (Negotiated, String) {
    let mut out = Vec::new();
    let agreed = Negotiator::new(8).answer(&remote(offer), local, &mut out).unwrap();
    (agreed, videos(&out))
}

const AUDIO: &str = "m=audio 4000 RTP/AVP 0\r\n";
const CAMERA: &str = "m=video 5000 RTP/AVP 97 98 31\r\na=rtpmap:97 H264/90000\r\na=fmtp:97 profile-level-id=42801F;packetization-mode=1\r\n\
    a=rtpmap:98 VP8/90000\r\na=rtcp-fb:97 nack pli\r\na=rtcp-fb:* ccm fir\r\na=rtcp-fb:98 nack\r\n";

#[test]
fn rfc3264_6_a_video_stream_is_answered_with_all_common_formats_or_declined_with_port_0() {
    let line = |text: &str| text.to_owned();
    let declined = "m=video 0 RTP/AVP 97 98 31|";
    for (name, offer, formats, expected) in [
        (
            "what the offer says of its format is said back",
            CAMERA.to_owned(),
            plain(&[F::H264, F::VP8]),
            line(
                "m=video 20000 RTP/AVP 97 98|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42801F;packetization-mode=1|\
                  a=rtpmap:98 VP8/90000|a=rtcp-fb:97 nack pli|a=rtcp-fb:97 ccm fir|a=sendrecv|",
            ),
        ),
        (
            "our order, and feedback of that format",
            CAMERA.to_owned(),
            plain(&[F::VP8, F::H264]),
            line(
                "m=video 20000 RTP/AVP 98 97|a=rtpmap:98 VP8/90000|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42801F;packetization-mode=1|a=rtcp-fb:98 nack|a=rtcp-fb:98 ccm fir|a=sendrecv|",
            ),
        ),
        (
            "what the other party says comes before that",
            CAMERA.to_owned(),
            vec![said(F::H264, "profile-level-id=42e01f")],
            line(
                "m=video 20000 RTP/AVP 97|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42e01f|\
                  a=rtcp-fb:97 nack pli|a=rtcp-fb:97 ccm fir|a=sendrecv|",
            ),
        ),
        (
            "a static number without a map",
            CAMERA.to_owned(),
            plain(&[F::H261]),
            line("m=video 20000 RTP/AVP 31|a=rtpmap:31 H261/90000|a=rtcp-fb:31 ccm fir|a=sendrecv|"),
        ),
        ("no common format", CAMERA.to_owned(), plain(&[F::AV1]), line(declined)),
        ("none wanted", CAMERA.to_owned(), Vec::new(), line(declined)),
        ("declined by the offer", CAMERA.replace("5000", "0"), plain(&[F::H264]), line(declined)),
        (
            "DTLS",
            CAMERA.replace("RTP/AVP", "UDP/TLS/RTP/SAVPF"),
            plain(&[F::H264]),
            line("m=video 0 UDP/TLS/RTP/SAVPF 97 98 31|"),
        ),
        (
            "another clock",
            CAMERA.replace("H264/90000", "H264/8000").replace("VP8/90000", "VP8"),
            plain(&[F::H264, F::VP8]),
            line(declined),
        ),
        (
            "in its profile, one way",
            format!("{}a=sendonly\r\n", CAMERA.replace("RTP/AVP", "RTP/AVPF")),
            plain(&[F::VP8]),
            line(
                "m=video 20000 RTP/AVPF 98|a=rtpmap:98 VP8/90000|a=rtcp-fb:98 nack|a=rtcp-fb:98 ccm fir|a=recvonly|",
            ),
        ),
    ] {
        let video = [ours(&formats)];
        let (agreed, text) = answered(&format!("{AUDIO}{offer}"), &local(&video));
        assert_eq!(text, expected, "{name}");
        assert_eq!(agreed.passed.len(), usize::from(!offer.contains("TLS")), "{name}");
        let is_there = agreed.passed.iter().flatten().next().is_some();
        assert_eq!(is_there, !expected.starts_with("m=video 0"), "{name}");
    }
}

#[test]
fn what_is_agreed_of_video_is_what_the_media_plane_needs() {
    let formats = plain(&[F::VP8, F::H264]);
    let video = [ours(&formats)];
    let wanted = Local { rtcp_mux: true, prefer_remote: true, ..local(&video) };
    let camera = format!("{AUDIO}{CAMERA}c=IN IP4 192.0.2.9\r\na=rtcp:5008\r\n");
    let (agreed, _) = answered(&camera, &wanted);
    let [Some(agreed)] = &agreed.passed[..] else { panic!("{agreed:?}") };
    assert_eq!(agreed.remote, "192.0.2.9:5000".parse().ok());
    assert_eq!(agreed.remote_rtcp, "192.0.2.9:5008".parse().ok());
    assert_eq!(
        (&agreed.payloads[..], &agreed.receive[..]),
        (&[97, 98][..], &[(97, F::H264), (98, F::VP8)][..])
    );
    let both =
        vec![said(F::H264, "profile-level-id=42801F;packetization-mode=1"), PassedFormat::plain(F::VP8)];
    assert_eq!(agreed.formats, both, "the offer's order and words, for the other party");
    let feedback = VideoFeedback { pli: true, fir: true, ..VideoFeedback::default() };
    assert_eq!((agreed.feedback, agreed.direction, agreed.held), (feedback, Direction::SendRecv, false));
    let shared = format!("{camera}a=rtcp-mux\r\n");
    let (agreed, text) = answered(&shared, &wanted);
    assert!(text.ends_with("a=rtcp-mux|a=sendrecv|"), "{text}");
    let agreed = agreed.passed[0].clone().unwrap();
    assert!(agreed.rtcp_mux && agreed.remote_rtcp == agreed.remote);
}

#[test]
fn rfc3264_8_4_video_is_held_by_either_form() {
    let formats = plain(&[F::VP8]);
    let video = [ours(&formats)];
    for (lines, ours, direction, held) in [
        ("", Direction::SendRecv, Direction::SendRecv, false),
        ("a=sendonly\r\n", Direction::SendRecv, Direction::RecvOnly, true),
        ("a=inactive\r\n", Direction::SendRecv, Direction::Inactive, true),
        ("a=recvonly\r\n", Direction::SendRecv, Direction::SendOnly, false),
        ("c=IN IP4 0.0.0.0\r\n", Direction::SendRecv, Direction::RecvOnly, true),
        ("", Direction::SendOnly, Direction::SendOnly, false),
    ] {
        let wanted = Local { direction: ours, ..local(&video) };
        let (agreed, _) = answered(&format!("{AUDIO}{CAMERA}{lines}"), &wanted);
        let agreed = agreed.passed[0].clone().unwrap();
        assert_eq!((agreed.direction, agreed.held), (direction, held), "{lines}");
    }
}

#[test]
fn rfc3264_5_an_offer_says_of_each_format_what_the_caller_said_and_its_answer_is_read() {
    let formats = [
        said(F::H264, "profile-level-id=42801F;packetization-mode=1"),
        said(F::H265, "profile-id=1"),
        PassedFormat::plain(F::H263),
    ];
    let feedback = VideoFeedback { pli: true, remb: true, ..VideoFeedback::default() };
    let video = [LocalPassed { feedback, ..ours(&formats) }];
    let local = local(&video);
    let offered = "m=video 20000 RTP/AVP 99 96 34|a=rtpmap:99 H264/90000|a=fmtp:99 profile-level-id=42801F;packetization-mode=1|\
        a=rtpmap:96 H265/90000|a=fmtp:96 profile-id=1|a=rtpmap:34 H263/90000|\
        a=rtcp-fb:99 nack pli|a=rtcp-fb:99 goog-remb|a=rtcp-fb:96 nack pli|a=rtcp-fb:96 goog-remb|\
        a=rtcp-fb:34 nack pli|a=rtcp-fb:34 goog-remb|a=sendrecv|";
    type Outcome = Option<(F, Option<&'static str>, u8, Vec<u8>)>;
    let rows: [(&str, &str, Outcome); 8] = [
        (
            "taken",
            "m=video 5000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 profile-level-id=42e01f\r\n",
            Some((F::H264, Some("profile-level-id=42e01f"), 99, vec![99])),
        ),
        ("without a map", "m=video 5000 RTP/AVP 96\r\n", Some((F::H265, None, 96, vec![96]))),
        (
            "under a number of its own",
            "m=video 5000 RTP/AVP 120\r\na=rtpmap:120 h264/90000\r\n",
            Some((F::H264, None, 120, vec![99, 120])),
        ),
        (
            "a number that means another format here",
            "m=video 5000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n",
            Some((F::H264, None, 96, vec![99])),
        ),
        ("declined", "m=video 0 RTP/AVP 99\r\n", None),
        ("left out", "", None),
        ("not offered", "m=video 5000 RTP/AVP 100\r\na=rtpmap:100 VP8/90000\r\n", None),
        ("audio in its place", "m=audio 5000 RTP/AVP 0\r\n", None),
    ];
    for (name, answer, expected) in rows {
        let mut negotiator = Negotiator::new(8);
        let mut out = Vec::new();
        negotiator.offer(&local, &mut out);
        assert_eq!(videos(&out), offered);
        let agreed = negotiator.accept_answer(&remote(&format!("{AUDIO}{answer}")), &local).unwrap();
        let found = agreed.passed[0].as_ref().map(|video| {
            let first = video.primary().unwrap();
            let fmtp = first.fmtp.as_deref().map(|fmtp| core::str::from_utf8(fmtp).unwrap());
            (first.format, fmtp, video.payloads[0], video.receive.iter().map(|(number, _)| *number).collect())
        });
        assert_eq!(found, expected, "{name}");
        assert!(!agreed.held, "{name}: the audio is agreed on whatever becomes of the video");
    }
}

#[test]
fn rfc3264_8_a_stream_keeps_its_place_its_numbers_and_may_end_and_come_back() {
    let formats = [said(F::VP8, "max-fs=3600")];
    let (none, some) = ([ours(&[])], [ours(&formats)]);
    let mut negotiator = Negotiator::new(8);
    let mut offer = |video: &[LocalPassed<'_>]| {
        let mut out = Vec::new();
        negotiator.offer(&local(video), &mut out);
        videos(&out)
    };
    let full = "m=video 20000 RTP/AVP 108|a=rtpmap:108 VP8/90000|a=fmtp:108 max-fs=3600|a=rtcp-fb:108 nack|\
        a=rtcp-fb:108 nack pli|a=rtcp-fb:108 ccm fir|a=rtcp-fb:108 goog-remb|a=sendrecv|";
    assert_eq!(offer(&none), "", "who wants none says nothing");
    assert_eq!(offer(&some), full, "it comes behind what is there (§8.1)");
    assert_eq!(offer(&none), "m=video 0 RTP/AVP 108|", "it ends in its place (§8.2)");
    assert_eq!(offer(&some), full);
    // Who has declined a stream may offer it later.
    let mut negotiator = Negotiator::new(8);
    let mut out = Vec::new();
    let theirs = "m=application 9 UDP/BFCP *\r\nm=video 5000 RTP/AVP 108\r\na=rtpmap:108 H264/90000\r\n";
    negotiator.answer(&remote(&format!("{AUDIO}{theirs}")), &local(&none), &mut out).unwrap();
    assert_eq!(videos(&out), "m=application 0 UDP/BFCP *|m=video 0 RTP/AVP 108|");
    out.clear();
    negotiator.offer(&local(&some), &mut out);
    assert!(
        videos(&out).starts_with("m=application 0 UDP/BFCP *|m=video 20000 RTP/AVP 108|"),
        "{}",
        videos(&out)
    );
    // A number that meant one format in this stream never means another.
    let other = [PassedFormat::plain(F::H264), said(F::VP8, "max-fs=3600")];
    let video = [ours(&other)];
    out.clear();
    negotiator.offer(&local(&video), &mut out);
    assert!(videos(&out).contains("m=video 20000 RTP/AVP 99 108|"), "{}", videos(&out));
}

#[test]
fn several_streams_are_told_apart_by_their_order_and_further_ones_declined() {
    let formats = plain(&[F::H264, F::VP8]);
    let two = [ours(&formats), LocalPassed { port: 20_002, ..ours(&formats) }];
    let slides = "m=video 5002 RTP/AVP 98\r\na=rtpmap:98 VP8/90000\r\n";
    let offer = format!("{AUDIO}{}{slides}{slides}", CAMERA.replace("5000", "0"));
    let (agreed, text) = answered(&offer, &local(&two));
    assert_eq!(
        text,
        "m=video 0 RTP/AVP 97 98 31|m=video 20002 RTP/AVP 98|a=rtpmap:98 VP8/90000|a=sendrecv|m=video 0 RTP/AVP 98|"
    );
    let [None, Some(second)] = &agreed.passed[..] else { panic!("{:?}", agreed.passed) };
    assert_eq!(second.remote, "192.0.2.1:5002".parse().ok());
}

#[test]
fn rfc4568_7_1_video_is_sealed_as_the_audio_is_or_declined_alone() {
    fn random(bytes: &mut [u8]) {
        bytes.fill(7);
    }
    let formats = plain(&[F::VP8]);
    let video = [ours(&formats)];
    let suites = [SrtpSuite::AesCm128Sha1Tag80];
    let encryption =
        Encryption { suites: &suites, optimistic: false, force_avp: false, to_edge: false, random };
    let sealed = Local { encryption: Some(encryption), ..local(&video) };
    let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:MTIzNDU2Nzg5QUJDREUwMTIzNDU2Nzg5QUJjZGVm\r\n";
    let audio = format!("m=audio 4000 RTP/SAVP 0\r\n{key}");
    let camera = "m=video 5000 RTP/SAVP 98\r\na=rtpmap:98 VP8/90000\r\n";
    let (agreed, text) = answered(&format!("{audio}{camera}{key}"), &sealed);
    assert!(text.contains("m=video 20000 RTP/SAVP 98|a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:"), "{text}");
    assert!(agreed.passed[0].as_ref().is_some_and(|video| video.keys.is_some()));
    for (name, camera) in
        [("no key", camera.to_owned()), ("a bad key", format!("{camera}{}", key.replace("MTIz", "M")))]
    {
        let (agreed, text) = answered(&format!("{audio}{camera}"), &sealed);
        assert_eq!((text.as_str(), agreed.passed), ("m=video 0 RTP/SAVP 98|", vec![None]), "{name}");
    }
    let mut negotiator = Negotiator::new(8);
    let mut out = Vec::new();
    negotiator.offer(&sealed, &mut out);
    let text = videos(&out);
    assert!(text.starts_with("m=video 20000 RTP/SAVP 108|a=crypto:1 AES_CM_128"), "{text}");
    let answer = |more: &str| remote(&format!("{audio}{}{more}", camera.replace("98", "108")));
    let agreed = negotiator.accept_answer(&answer(key), &sealed).unwrap();
    assert!(agreed.passed[0].as_ref().is_some_and(|video| video.keys.is_some()));
    assert_eq!(
        negotiator.accept_answer(&answer(""), &sealed).unwrap().passed,
        [None],
        "no answer to our keys"
    );
}

#[test]
fn audio_decides_whether_there_is_a_session() {
    let formats = plain(&[F::VP8]);
    let video = [ours(&formats)];
    let mut negotiator = Negotiator::new(8);
    let mut out = Vec::new();
    let alone = negotiator.answer(&remote(CAMERA), &local(&video), &mut out);
    assert_eq!(alone, Err(SdpError::NotAcceptable));
    for (name, audio, declined) in [
        ("no audio", "", ""),
        ("none in common", "m=audio 4000 RTP/AVP 9\r\n", "m=audio 0 RTP/AVP 9|"),
        (
            "declined already, with its address",
            "m=audio 0 RTP/AVP 9\r\nc=IN IP4 192.0.2.9\r\n",
            "m=audio 0 RTP/AVP 9|c=IN IP4 192.0.2.9|",
        ),
    ] {
        let alone = Local { without_audio: true, ..local(&video) };
        let offer = format!("{audio}{CAMERA}");
        assert!(video_offered(&remote(&offer), formats.iter().map(|own| own.format).collect()), "{name}");
        let mut out = Vec::new();
        let agreed = Negotiator::new(8).answer(&remote(&offer), &alone, &mut out).unwrap();
        assert!(agreed.send.is_empty() && agreed.passed[0].is_some(), "{name}");
        let text = String::from_utf8(out).unwrap().replace("\r\n", "|");
        assert!(text.contains(&format!("t=0 0|{declined}m=video 20000 RTP/AVP 98|")), "{name}: {text}");
    }
    negotiator.answer(&remote(&format!("{AUDIO}{CAMERA}")), &local(&video), &mut out).unwrap();
    out.clear();
    let over = format!("{AUDIO}{CAMERA}").replace("4000", "0").replace("5000", "0");
    let agreed = negotiator.answer(&remote(&over), &local(&video), &mut out).unwrap();
    assert!(agreed.passed.is_empty());
    assert_eq!(videos(&out), "m=video 0 RTP/AVP 97 98 31|");
}

#[test]
fn what_a_peer_says_of_a_format_adds_no_lines() {
    let formats = [said(F::VP8, "a=b\r\nm=audio 1 RTP/AVP 0")];
    let video = [ours(&formats)];
    let mut out = Vec::new();
    Negotiator::new(8).offer(&local(&video), &mut out);
    assert_eq!(Session::parse(&out).unwrap().streams.len(), 2);
}

#[test]
fn rfc3264_6_further_audio_is_answered_beside_the_one_that_is_served_or_declined_in_its_place() {
    let second = "m=audio 4002 RTP/AVP 9 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=sendonly\r\n";
    let opus = "m=audio 4004 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n";
    let formats = plain(&[F::OPUS, F::ULAW]);
    let none = ours(&[]);
    let mut sides = [none; base::VIDEO_SLOTS + base::AUDIO_SLOTS];
    for (beside, port) in [(0, 20_000), (1, 20_002)] {
        sides[base::VIDEO_SLOTS + beside] = LocalPassed { port, ..ours(&formats) };
    }
    for (name, offer, expected, slots) in [
        (
            "one more",
            format!("{AUDIO}{second}"),
            "m=audio 20000 RTP/AVP 0|a=rtpmap:0 PCMU/8000|a=ptime:20|a=maxptime:140|a=recvonly|",
            &[0][..],
        ),
        (
            "two more, and video between them, which nobody wants",
            format!("{AUDIO}{second}{CAMERA}{opus}"),
            "m=audio 20000 RTP/AVP 0|a=rtpmap:0 PCMU/8000|a=ptime:20|a=maxptime:140|a=recvonly|m=video 0 RTP/AVP 97 98 31|\
             m=audio 20002 RTP/AVP 96|a=rtpmap:96 opus/48000/2|a=fmtp:96 useinbandfec=1|a=ptime:20|a=maxptime:60|a=sendrecv|",
            &[0, 1],
        ),
        ("declined", format!("{AUDIO}{}", second.replace("9 0 101", "8")), "m=audio 0 RTP/AVP 8|", &[]),
        ("ended", format!("{AUDIO}{}", second.replace("4002", "0")), "m=audio 0 RTP/AVP 9 0 101|", &[]),
        (
            "more than there is room for",
            format!("{AUDIO}{opus}{opus}{opus}"),
            "m=audio 20000 RTP/AVP 96|a=rtpmap:96 opus/48000/2|a=fmtp:96 useinbandfec=1|a=ptime:20|a=maxptime:60|a=sendrecv|\
             m=audio 20002 RTP/AVP 96|a=rtpmap:96 opus/48000/2|a=fmtp:96 useinbandfec=1|a=ptime:20|a=maxptime:60|a=sendrecv|m=audio 0 RTP/AVP 96|",
            &[0, 1],
        ),
    ] {
        let (agreed, text) = answered(&offer, &local(&sides));
        assert_eq!(text, expected, "{name}");
        let found: Vec<usize> = agreed
            .passed
            .iter()
            .enumerate()
            .filter(|(_, passed)| passed.is_some())
            .map(|(slot, _)| slot - base::VIDEO_SLOTS)
            .collect();
        assert_eq!(found, slots, "{name}");
    }
    let mut offered = [false; base::VIDEO_SLOTS + base::AUDIO_SLOTS];
    (offered[0], offered[base::VIDEO_SLOTS]) = (true, true);
    assert_eq!(passed_offered(&remote(&format!("{AUDIO}{CAMERA}{opus}"))), offered);
}

#[test]
fn rfc3264_8_further_audio_is_offered_behind_the_video_and_its_answer_is_read_in_its_place() {
    let (pictures, sounds) = (plain(&[F::H264]), plain(&[F::G722, F::ULAW]));
    let none = ours(&[]);
    let mut sides = [none; base::VIDEO_SLOTS + base::AUDIO_SLOTS];
    sides[0] = LocalPassed { feedback: VideoFeedback::default(), ..ours(&pictures) };
    sides[base::VIDEO_SLOTS] = LocalPassed { port: 20_002, ..ours(&sounds) };
    let local = local(&sides);
    let (mut negotiator, mut out) = (Negotiator::new(8), Vec::new());
    negotiator.offer(&local, &mut out);
    assert_eq!(
        videos(&out),
        "m=video 20000 RTP/AVP 99|a=rtpmap:99 H264/90000|a=sendrecv|\
         m=audio 20002 RTP/AVP 9 0|a=rtpmap:9 G722/8000|a=rtpmap:0 PCMU/8000|a=ptime:20|a=maxptime:140|a=sendrecv|"
    );
    for (name, answer, video, audio) in [
        (
            "both",
            "m=video 5000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\nm=audio 4002 RTP/AVP 0\r\n",
            Some(5000),
            Some((F::ULAW, 4002)),
        ),
        ("audio only", "m=video 0 RTP/AVP 99\r\nm=audio 4002 RTP/AVP 9 0\r\n", None, Some((F::G722, 4002))),
        ("a peer that drops what it declines", "m=audio 4002 RTP/AVP 9\r\n", None, Some((F::G722, 4002))),
        ("neither", "m=video 0 RTP/AVP 99\r\nm=audio 0 RTP/AVP 9\r\n", None, None),
    ] {
        let agreed = negotiator.clone().accept_answer(&remote(&format!("{AUDIO}{answer}")), &local).unwrap();
        let port = |slot: usize| Some(agreed.passed[slot].as_ref()?.remote.unwrap().port());
        assert_eq!(agreed.remote.map(|remote| remote.port()), Some(4000), "{name}: the first one is served");
        assert_eq!(port(0), video, "{name}");
        let found = agreed.passed[base::VIDEO_SLOTS].as_ref();
        let found = found.map(|found| (found.primary().unwrap().format, found.remote.unwrap().port()));
        assert_eq!(found, audio, "{name}");
    }
}
