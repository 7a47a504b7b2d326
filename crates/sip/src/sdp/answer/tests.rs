use super::*;
use base::FormatId as F;

fn local(formats: &[F]) -> Local<'static> {
    Local::new(formats.iter().copied().collect(), [198, 51, 100, 1].into(), 10_000)
}

fn remote(body: &str) -> Vec<u8> {
    format!("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n{body}").into_bytes()
}

/// The answer to an offer of these stream lines, its session lines left out.
fn answered(offer: &str, local: &Local<'_>) -> Result<(Negotiated, String), SdpError> {
    let mut out = Vec::new();
    let agreed = Negotiator::new(8).answer(&remote(offer), local, &mut out)?;
    let text = String::from_utf8(out).unwrap();
    let streams = text.find("m=").unwrap();
    Ok((agreed, text[streams..].replace("\r\n", "|")))
}

const PHONE: &str = "m=audio 4000 RTP/AVP 9 8 0 118 101\r\na=rtpmap:118 L16/16000\r\n\
    a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:30\r\n";

#[test]
fn an_answer_has_the_common_formats_in_our_order_under_the_offers_numbers() {
    let (agreed, text) = answered(PHONE, &local(&[F::ULAW, F::SLIN16, F::GSM, F::ALAW])).unwrap();
    assert_eq!(
        text,
        "m=audio 10000 RTP/AVP 0 118 8 101|a=rtpmap:0 PCMU/8000|a=rtpmap:118 L16/16000|a=rtpmap:8 PCMA/8000|\
         a=rtpmap:101 telephone-event/8000|a=fmtp:101 0-16|a=ptime:20|a=maxptime:70|a=sendrecv|"
    );
    assert_eq!(agreed.remote, "192.0.2.1:4000".parse().ok());
    assert_eq!(agreed.remote_rtcp, "192.0.2.1:4001".parse().ok());
    assert_eq!(agreed.primary(), Some(SendFormat { format: F::ULAW, payload: 0 }));
    assert_eq!(
        agreed.receive[..5],
        [
            Some(RxPayload::Audio(0, F::ULAW)),
            Some(RxPayload::Audio(118, F::SLIN16)),
            Some(RxPayload::Audio(8, F::ALAW)),
            Some(RxPayload::Event(101, 8000)),
            None,
        ]
    );
    assert_eq!(
        (agreed.dtmf, agreed.ptime_ms, agreed.direction),
        (Some((101, 8000)), 20, Direction::SendRecv)
    );
    assert!(!agreed.held);
}

#[test]
fn preference_ptime_and_events_follow_configuration() {
    let base = local(&[F::ULAW, F::ALAW]);
    let (agreed, text) =
        answered(PHONE, &Local { prefer_remote: true, single_format: true, ..base }).unwrap();
    assert!(text.starts_with("m=audio 10000 RTP/AVP 8 101|"), "{text}");
    assert_eq!(agreed.formats().iter().collect::<Vec<_>>(), [F::ALAW]);
    let (agreed, text) =
        answered(PHONE, &Local { use_remote_ptime: true, telephone_event: false, ..base }).unwrap();
    assert_eq!((agreed.ptime_ms, agreed.dtmf), (30, None));
    assert!(!text.contains("telephone-event"), "{text}");
}

#[test]
fn packet_length_stays_in_what_the_format_and_the_peer_can_do() {
    for (formats, lines, ours, expected) in [
        ("3", "a=ptime:30\r\n", 20, 20),
        ("3", "a=ptime:10\r\n", 20, 20),
        ("0", "a=ptime:10\r\n", 20, 10),
        ("0", "a=ptime:200\r\n", 20, 60),
        ("0", "a=ptime:0\r\n", 20, 10),
        ("0", "a=maxptime:20\r\n", 40, 20),
        ("0", "a=ptime:30 ms\r\n", 20, 30),
        ("0", "a=ptime:x\r\n", 20, 20),
        ("0", "", 25, 20),
    ] {
        let offer = format!("m=audio 4000 RTP/AVP {formats}\r\n{lines}");
        let local = Local { use_remote_ptime: true, ptime_ms: ours, ..local(&[F::ULAW, F::GSM]) };
        assert_eq!(answered(&offer, &local).unwrap().0.ptime_ms, expected, "{formats} {lines}");
    }
}

#[test]
fn a_format_may_have_a_packet_length_of_its_own() {
    let packets = &[(F::ULAW, 30), (F::GSM, 40)];
    for (formats, lines, theirs, expected) in [
        ("0", "", false, 30),
        ("3", "", false, 40),
        ("8", "", false, 20),
        ("0", "a=ptime:20\r\n", false, 30),
        ("0", "a=ptime:20\r\n", true, 20),
        ("0", "a=maxptime:20\r\n", false, 20),
    ] {
        let offer = format!("m=audio 4000 RTP/AVP {formats}\r\n{lines}");
        let local = Local { use_remote_ptime: theirs, packets, ..local(&[F::ULAW, F::GSM, F::ALAW]) };
        let (agreed, text) = answered(&offer, &local).unwrap();
        assert_eq!(agreed.ptime_ms, expected, "{formats} {lines}");
        let own = packets.iter().find(|(format, _)| agreed.formats().first() == Some(*format));
        let says = format!("|a=ptime:{}|", own.map_or(20, |(_, ms)| *ms));
        assert!(text.contains(&says), "{formats} {lines}: {text}");
    }
}

#[test]
fn rfc3952_5_ilbc_frames_last_30_ms_when_either_side_wants_that() {
    for (ours, fmtp, expected, mode, ptime) in [
        (F::ILBC, "a=fmtp:99 mode=20\r\n", F::ILBC, "mode=20", 20),
        (F::ILBC, "a=fmtp:99 mode=30\r\n", F::ILBC30, "mode=30", 30),
        (F::ILBC, "", F::ILBC30, "mode=30", 30),
        (F::ILBC30, "a=fmtp:99 mode=20\r\n", F::ILBC30, "mode=30", 30),
    ] {
        let lines = format!("m=audio 4000 RTP/AVP 99\r\na=rtpmap:99 iLBC/8000\r\n{fmtp}");
        let (agreed, text) = answered(&lines, &local(&[ours])).unwrap();
        assert_eq!(agreed.primary(), Some(SendFormat { format: expected, payload: 99 }), "{ours} {fmtp}");
        assert_eq!(agreed.receive[0], Some(RxPayload::Audio(99, expected)), "{ours} {fmtp}");
        assert_eq!(agreed.ptime_ms, ptime, "{ours} {fmtp}");
        assert!(text.contains(&format!("a=fmtp:99 {mode}|")), "{text}");
        // The same as an answer to our offer, which gives the payload type of the field's habit.
        let mut negotiator = Negotiator::new(8);
        let mut out = Vec::new();
        negotiator.offer(&local(&[ours]), &mut out);
        let offer = String::from_utf8(out).unwrap();
        assert!(offer.contains("a=rtpmap:97 iLBC/8000\r\na=fmtp:97 mode="), "{offer}");
        let agreed = negotiator.accept_answer(&remote(&lines), &local(&[ours])).unwrap();
        assert_eq!(agreed.primary(), Some(SendFormat { format: expected, payload: 99 }), "{ours} {fmtp}");
        assert_eq!(agreed.receive[0], Some(RxPayload::Audio(97, expected)), "{ours} {fmtp}");
    }
    let refused = "m=audio 4000 RTP/AVP 99\r\na=rtpmap:99 iLBC/8000\r\na=fmtp:99 mode=25\r\n";
    assert_eq!(answered(refused, &local(&[F::ILBC])), Err(SdpError::NotAcceptable));
}

#[test]
fn formats_that_only_pass_through_are_offered_and_answered_like_others() {
    let lines = "m=audio 4000 RTP/AVP 18 4 98 0\r\na=rtpmap:98 G7221/16000\r\na=fmtp:98 bitrate=32000\r\n";
    let (agreed, text) = answered(lines, &local(&[F::SIREN7, F::G729, F::G723])).unwrap();
    assert_eq!(agreed.formats().iter().collect::<Vec<_>>(), [F::SIREN7, F::G729, F::G723]);
    assert!(text.contains("a=rtpmap:18 G729/8000|a=fmtp:18 annexb=no|"), "{text}");
    let all: base::FormatSet = F::ALL.iter().copied().collect();
    let mut out = Vec::new();
    let everything = Local::new(all, [198, 51, 100, 1].into(), 10_000);
    Negotiator::new(8).offer(&everything, &mut out);
    let offer = String::from_utf8(out).unwrap();
    let numbers = offer.lines().find(|line| line.starts_with("m=")).unwrap().split(' ').count() - 3;
    assert!(numbers <= base::MAX_RX_PAYLOADS, "no more than can be received: {offer}");
}

#[test]
fn hold_in_both_forms_and_its_end() {
    use Direction::*;
    for (line, ours, expected, held) in [
        ("a=sendrecv", SendRecv, SendRecv, false),
        ("a=sendonly", SendRecv, RecvOnly, true),
        ("a=recvonly", SendRecv, SendOnly, false),
        ("a=inactive", SendRecv, Inactive, true),
        ("a=sendrecv", SendOnly, SendOnly, false),
        ("a=sendonly", SendOnly, Inactive, true),
        ("c=IN IP4 0.0.0.0", SendRecv, RecvOnly, true),
        ("c=IN IP6 ::", SendRecv, RecvOnly, true),
    ] {
        let offer = format!("m=audio 4000 RTP/AVP 0\r\n{line}\r\n");
        let (agreed, text) = answered(&offer, &Local { direction: ours, ..local(&[F::ULAW]) }).unwrap();
        assert_eq!((agreed.direction, agreed.held), (expected, held), "{line}");
        let name = match expected {
            SendRecv => "a=sendrecv",
            SendOnly => "a=sendonly",
            RecvOnly => "a=recvonly",
            Inactive => "a=inactive",
        };
        assert!(text.contains(name), "{line}: {text}");
        assert_eq!(agreed.remote.is_none(), line.starts_with("c="), "{line}");
    }
}

#[test]
fn further_streams_are_declined_in_their_places() {
    let offer = "m=video 5000 RTP/AVP 31 34\r\na=rtpmap:31 H261/90000\r\nm=audio 0 RTP/AVP 0\r\n\
        m=audio 4000 RTP/SAVP 0\r\nm=audio 4002 RTP/AVP 0\r\nm=image 6000 udptl t38\r\nm=audio 4004 RTP/AVP 0\r\n";
    let (agreed, text) = answered(offer, &local(&[F::ULAW])).unwrap();
    assert_eq!(
        text,
        "m=video 0 RTP/AVP 31 34|m=audio 0 RTP/AVP 0|m=audio 0 RTP/SAVP 0|m=audio 10000 RTP/AVP 0|\
         a=rtpmap:0 PCMU/8000|a=ptime:20|a=maxptime:140|a=sendrecv|m=image 0 udptl t38|m=audio 0 RTP/AVP 0|"
    );
    assert_eq!(agreed.remote.map(|r| r.port()), Some(4002));
}

#[test]
fn what_has_no_common_ground_is_488_and_what_is_unreadable_400() {
    for (offer, status) in [
        ("m=audio 4000 RTP/AVP 18\r\n", 488),
        ("m=audio 4000 RTP/AVP 0\r\na=rtpmap:0 G729/8000\r\n", 488),
        ("m=audio 4000 RTP/AVP 96\r\n", 488),
        ("m=audio 4000 RTP/AVP 10\r\na=rtpmap:10 L16/44100/2\r\n", 488),
        ("m=audio 4000 RTP/SAVP 0\r\n", 488),
        ("m=audio 0 RTP/AVP 0\r\n", 488),
        ("m=video 4000 RTP/AVP 0\r\n", 488),
        ("m=audio 4000 RTP/AVP 101\r\na=rtpmap:101 telephone-event/8000\r\n", 488),
        ("", 488),
        ("m=audio x RTP/AVP 0\r\n", 400),
    ] {
        let error = answered(offer, &local(&[F::ULAW, F::SLIN44])).map(|_| ()).unwrap_err();
        assert_eq!(error.status().code(), status, "{offer}");
    }
}

#[test]
fn rtcp_goes_where_the_peer_says() {
    for (line, mux, rtcp) in [
        ("a=rtcp:4010", false, "192.0.2.1:4010"),
        ("a=rtcp:4010 IN IP4 192.0.2.9", false, "192.0.2.9:4010"),
        ("a=rtcp:x", false, "192.0.2.1:4001"),
        ("a=rtcp-mux", true, "192.0.2.1:4000"),
        ("a=rtcp-mux", false, "192.0.2.1:4001"),
    ] {
        let offer = format!("m=audio 4000 RTP/AVP 0\r\n{line}\r\n");
        let (agreed, text) = answered(&offer, &Local { rtcp_mux: mux, ..local(&[F::ULAW]) }).unwrap();
        assert_eq!(agreed.remote_rtcp, rtcp.parse().ok(), "{line}");
        assert_eq!((agreed.rtcp_mux, text.contains("a=rtcp-mux")), (mux, mux), "{line}");
    }
}

#[test]
fn an_offer_gives_numbers_and_takes_an_answer_with_other_ones() {
    let ours = local(&[F::SLIN16, F::ULAW, F::SLIN48]);
    let mut negotiator = Negotiator::new(8);
    let mut out = Vec::new();
    negotiator.offer(&ours, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with(
        "v=0\r\no=- 4 4 IN IP4 198.51.100.1\r\ns=Strowger\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\n"
    ));
    assert!(text.contains("m=audio 10000 RTP/AVP 118 0 96 97 101 98\r\n"), "{text}");
    let answer = remote(
        "m=audio 4000 RTP/AVP 0 111 100\r\na=rtpmap:111 L16/16000\r\na=rtpmap:100 telephone-event/8000\r\n",
    );
    let agreed = negotiator.accept_answer(&answer, &ours).unwrap();
    assert_eq!(
        agreed.send,
        [SendFormat { format: F::ULAW, payload: 0 }, SendFormat { format: F::SLIN16, payload: 111 },]
    );
    assert_eq!(agreed.dtmf, Some((100, 8000)));
    let receive: Vec<_> = agreed.receive.iter().flatten().copied().collect();
    assert_eq!(
        receive,
        [
            RxPayload::Audio(0, F::ULAW),
            RxPayload::Audio(118, F::SLIN16),
            RxPayload::Audio(111, F::SLIN16),
            RxPayload::Event(101, 8000),
            RxPayload::Event(100, 8000),
        ]
    );
    assert_eq!(
        negotiator.accept_answer(&answer, &ours).as_ref(),
        Ok(&agreed),
        "183 and 200 carry the same answer"
    );
}

#[test]
fn answers_that_end_the_negotiation_say_why() {
    let ours = local(&[F::ULAW]);
    for (answer, error) in [
        ("m=audio 0 RTP/AVP 0\r\n", SdpError::Refused),
        ("m=audio 4000 RTP/AVP 8\r\n", SdpError::NotAcceptable),
        ("m=video 4000 RTP/AVP 31\r\n", SdpError::Malformed),
    ] {
        let mut negotiator = Negotiator::new(8);
        assert_eq!(negotiator.accept_answer(&remote(answer), &ours), Err(SdpError::NoOffer));
        negotiator.offer(&ours, &mut Vec::new());
        assert_eq!(negotiator.accept_answer(&remote(answer), &ours), Err(error), "{answer}");
    }
}

#[test]
fn the_version_grows_with_changes_only_and_places_stay() {
    let ours = local(&[F::ULAW, F::SLIN16]);
    let mut negotiator = Negotiator::new(20);
    let version = |out: &[u8]| Session::parse(out).unwrap().origin.unwrap().version;
    let offer = remote("m=video 5000 RTP/AVP 31\r\nm=audio 4000 RTP/AVP 0 118\r\na=rtpmap:118 L16/16000\r\n");
    let mut out = Vec::new();
    negotiator.answer(&offer, &ours, &mut out).unwrap();
    assert_eq!(version(&out), Some(2), "after the offer's");
    out.clear();
    negotiator.answer(&offer, &ours, &mut out).unwrap();
    assert_eq!(version(&out), Some(2), "the same again is the same version");
    out.clear();
    negotiator.offer(&Local { direction: Direction::SendOnly, ..ours }, &mut out);
    assert_eq!(version(&out), Some(3));
    let text = String::from_utf8(out.clone()).unwrap();
    let streams: Vec<_> = text.lines().filter(|line| line.starts_with("m=")).collect();
    assert_eq!(
        streams,
        ["m=video 0 RTP/AVP 31", "m=audio 10000 RTP/AVP 0 118 101 96"],
        "numbers keep their meaning"
    );
}

#[test]
fn rfc3264_5_a_session_that_the_peer_begins_keeps_the_id_of_its_offer() {
    let ours = local(&[F::ULAW]);
    let origin = |out: &[u8]| {
        let session = Session::parse(out).unwrap();
        let origin = session.origin.unwrap();
        (String::from_utf8(origin.id.to_vec()).unwrap(), origin.version.unwrap())
    };
    let own = ("10".to_owned(), 10);
    for (name, line, expected) in [
        ("id and version", "o=alice 1000 7 IN IP4 192.0.2.1", ("1000".to_owned(), 8)),
        ("no number", "o=- abc 7 IN IP4 192.0.2.1", own.clone()),
        ("no version", "o=- 1000 x IN IP4 192.0.2.1", own.clone()),
        ("not below 2^63", "o=- 9223372036854775808 7 IN IP4 192.0.2.1", own.clone()),
        ("the last version of all", "o=- 1 18446744073709551615 IN IP4 192.0.2.1", own.clone()),
        ("none", "i=none", own),
    ] {
        let offer =
            format!("v=0\r\n{line}\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n");
        let (mut negotiator, mut out) = (Negotiator::new(20), Vec::new());
        negotiator.answer(offer.as_bytes(), &ours, &mut out).unwrap();
        assert_eq!(origin(&out), expected, "{name}");
        out.clear();
        negotiator.offer(&Local { direction: Direction::SendOnly, ..ours }, &mut out);
        assert_eq!(origin(&out), (expected.0, expected.1 + 1), "{name}: an offer of ours later");
    }
}

#[test]
fn the_longest_packet_is_what_all_formats_of_the_stream_allow() {
    for (name, formats, expected) in [
        ("G.711", &[F::ULAW, F::ALAW][..], 140),
        ("G.722", &[F::G722, F::GSM], 140),
        ("linear", &[F::SLIN16, F::ULAW], 70),
        ("Opus", &[F::OPUS, F::ULAW], 60),
        ("GSM alone", &[F::GSM], 300),
        ("LPC-10", &[F::ULAW, F::LPC10], 45),
    ] {
        let (mut negotiator, mut out) = (Negotiator::new(20), Vec::new());
        negotiator.offer(&local(formats), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(&format!("a=maxptime:{expected}\r\n")), "{name}: {text}");
    }
}

#[test]
fn a_later_offer_may_end_the_stream_and_bring_it_back() {
    let ours = local(&[F::ULAW]);
    let mut negotiator = Negotiator::new(20);
    let mut out = Vec::new();
    negotiator.answer(&remote("m=audio 4000 RTP/AVP 0\r\n"), &ours, &mut out).unwrap();
    out.clear();
    let ended = negotiator.answer(&remote("m=audio 0 RTP/AVP 0\r\n"), &ours, &mut out).unwrap();
    assert_eq!((ended.remote, ended.direction), (None, Direction::Inactive));
    assert!(String::from_utf8_lossy(&out).contains("m=audio 0 RTP/AVP 0\r\n"));
    let back = negotiator.answer(&remote("m=audio 4000 RTP/AVP 0\r\n"), &ours, &mut out).unwrap();
    assert_eq!(back.direction, Direction::SendRecv);
}

#[test]
fn rfc3264_8_an_offer_of_another_kind_of_stream_instead_of_audio_is_refused() {
    let ours = local(&[F::ULAW]);
    for (name, offer, refused) in [
        ("T.38 in the place of audio", "m=image 4100 udptl t38\r\n", true),
        ("T.38 beside ended audio", "m=audio 0 RTP/AVP 0\r\nm=image 4100 udptl t38\r\n", true),
        ("video beside ended audio", "m=audio 0 RTP/AVP 0\r\nm=video 4100 RTP/AVP 99\r\n", true),
        ("T.38 beside audio", "m=audio 4000 RTP/AVP 0\r\nm=image 4100 udptl t38\r\n", false),
        ("all ended", "m=audio 0 RTP/AVP 0\r\nm=image 0 udptl t38\r\n", false),
    ] {
        let mut negotiator = Negotiator::new(20);
        negotiator.answer(&remote("m=audio 4000 RTP/AVP 0\r\n"), &ours, &mut Vec::new()).unwrap();
        let mut out = Vec::new();
        let answer = negotiator.answer(&remote(offer), &ours, &mut out);
        assert_eq!(answer.as_ref().err(), refused.then_some(&SdpError::NotAcceptable), "{name}");
        assert_eq!(out.is_empty(), refused, "{name}");
        if !refused {
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.matches("m=").count(), 2, "{name}");
            assert!(text.contains("m=image 0 udptl t38"), "{name}");
        }
    }
}

#[test]
fn rfc8843_7_3_streams_that_are_offered_in_a_bundle_are_answered_without_it() {
    let offer = "a=group:BUNDLE 0 1 2\r\nm=audio 4000 RTP/AVP 0\r\na=mid:0\r\na=rtcp-mux\r\n\
        m=video 4000 RTP/AVP 99\r\na=mid:1\r\na=rtcp-mux\r\n\
        m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\na=bundle-only\r\n";
    let (agreed, text) = answered(offer, &local(&[F::ULAW])).unwrap();
    assert_eq!(
        text,
        "m=audio 10000 RTP/AVP 0|a=rtpmap:0 PCMU/8000|a=ptime:20|a=maxptime:140|a=sendrecv|m=video 0 RTP/AVP 99|\
         m=application 0 UDP/DTLS/SCTP webrtc-datachannel|"
    );
    assert_eq!(agreed.remote, "192.0.2.1:4000".parse().ok());
}

#[test]
fn what_is_sent_by_an_answer_has_its_order_or_ours() {
    for (own_order, first) in [(false, F::ULAW), (true, F::ALAW)] {
        let ours = Local { own_order, ..local(&[F::ALAW, F::ULAW]) };
        let mut negotiator = Negotiator::new(8);
        negotiator.offer(&ours, &mut Vec::new());
        let agreed = negotiator.accept_answer(&remote("m=audio 4000 RTP/AVP 0 8\r\n"), &ours).unwrap();
        assert_eq!(agreed.primary().map(|primary| primary.format), Some(first));
        assert_eq!(agreed.send.len(), 2);
    }
}

#[test]
fn a_refused_offer_leaves_the_session_as_it_was() {
    let ours = local(&[F::ULAW]);
    let mut negotiator = Negotiator::new(20);
    let mut out = Vec::new();
    let first = negotiator.answer(&remote("m=audio 4000 RTP/AVP 0\r\n"), &ours, &mut out).unwrap();
    let refused = negotiator.answer(&remote("m=audio 4000 RTP/AVP 18\r\n"), &ours, &mut Vec::new());
    assert_eq!(refused, Err(SdpError::NotAcceptable));
    assert_eq!(negotiator.current(), Some(&first));
}

#[test]
fn ipv6_and_names_are_kept_as_what_they_are() {
    let offer = "m=audio 4000 RTP/AVP 0\r\nc=IN IP6 2001:db8::7\r\n";
    let here = Local { address: "2001:db8::1".parse().unwrap(), ..local(&[F::ULAW]) };
    let mut out = Vec::new();
    let agreed = Negotiator::new(2).answer(&remote(offer), &here, &mut out).unwrap();
    assert_eq!(agreed.remote, "[2001:db8::7]:4000".parse().ok());
    assert!(String::from_utf8_lossy(&out).contains("c=IN IP6 2001:db8::1\r\n"));
    let (agreed, _) =
        answered("m=audio 4000 RTP/AVP 0\r\nc=IN IP4 media.example.com\r\n", &local(&[F::ULAW])).unwrap();
    assert_eq!((agreed.remote, agreed.remote_name), (None, Some(("media.example.com".into(), 4000))));
}

#[test]
fn fmtp_of_the_chosen_format_is_handed_on() {
    let offer = "m=audio 4000 RTP/AVP 8 0\r\na=fmtp:8 x=1\r\na=fmtp:0  annexb=no; y \r\n";
    assert_eq!(answered(offer, &local(&[F::ULAW])).unwrap().0.fmtp.as_deref(), Some(&b"annexb=no; y"[..]));
}

#[test]
fn names_from_configuration_cannot_add_lines_or_words() {
    let evil = "a b\r\nm=audio 1 RTP/AVP 0";
    let mut out = Vec::new();
    let ours = Local { owner: evil, session_name: evil, ..local(&[F::ULAW]) };
    Negotiator::new(8).offer(&ours, &mut out);
    let session = Session::parse(&out).unwrap();
    assert_eq!(session.streams.len(), 1);
    assert_eq!(session.origin.map(|origin| origin.version), Some(Some(4)));
}

#[test]
fn rfc3264_8_3_3_fax_takes_the_place_of_audio_and_gives_it_back() {
    let ours = local(&[F::ULAW]);
    let mut negotiator = Negotiator::new(8);
    let say = |negotiator: &mut Negotiator, what: &dyn Fn(&mut Negotiator, &mut Vec<u8>)| {
        let mut out = Vec::new();
        what(negotiator, &mut out);
        let text = String::from_utf8(out).unwrap();
        let version: u64 = text.lines().nth(1).unwrap().split(' ').nth(2).unwrap().parse().unwrap();
        let lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("m=")).map(str::to_owned).collect();
        (version, lines.join("|"))
    };
    let first = say(&mut negotiator, &|negotiator, out| negotiator.offer(&ours, out));
    negotiator.accept_answer(&remote("m=audio 4000 RTP/AVP 0\r\n"), &ours).unwrap();
    let offer = remote("m=audio 0 RTP/AVP 0\r\nm=image 4100 udptl t38\r\na=T38MaxBitRate:14400\r\n");
    let stream = FaxStream::of(&offer).unwrap();
    let offered = say(&mut negotiator, &|negotiator, out| negotiator.offer_fax(&stream.terms, &ours, out));
    assert_eq!(offered, (first.0 + 1, "m=image 10000 udptl t38".to_owned()));
    let answered = say(&mut negotiator, &|negotiator, out| {
        negotiator.answer_fax(&offer, &stream, &stream.terms, &ours, out);
    });
    assert_eq!(answered, (first.0 + 2, "m=audio 0 RTP/AVP 0|m=image 10000 udptl t38".to_owned()));
    // The stream has come to the second place, and stays there.
    let back = say(&mut negotiator, &|negotiator, out| negotiator.offer(&ours, out));
    assert_eq!(back, (first.0 + 3, "m=audio 0 RTP/AVP 0|m=audio 10000 RTP/AVP 0 101".to_owned()));
    let answer = remote("m=audio 0 RTP/AVP 0\r\nm=audio 4000 RTP/AVP 0\r\n");
    let agreed = negotiator.accept_answer(&answer, &ours).unwrap();
    assert_eq!(agreed.remote, "192.0.2.1:4000".parse().ok());
}

#[test]
fn rfc4585_4_profiles_with_feedback_are_offered_taken_and_asked_for_as_configured() {
    let offer = |profile: &str| format!("m=audio 4000 {profile} 0\r\n");
    for (name, feedback, offered, answers) in [
        ("without", None, "RTP/AVP", ["RTP/AVP", "RTP/AVPF"].map(Some)),
        ("taken", Some(Feedback::Offered), "RTP/AVPF", ["RTP/AVP", "RTP/AVPF"].map(Some)),
        ("asked for", Some(Feedback::Required), "RTP/AVPF", [None, Some("RTP/AVPF")]),
    ] {
        let local = Local { feedback, ..local(&[F::ULAW]) };
        let mut out = Vec::new();
        Negotiator::new(8).offer(&local, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(&format!("m=audio 10000 {offered} 0")), "{name}: {text}");
        for (profile, expected) in ["RTP/AVP", "RTP/AVPF"].into_iter().zip(answers) {
            let answered = answered(&offer(profile), &local);
            match expected {
                Some(profile) => {
                    let text = answered.unwrap().1;
                    assert!(text.starts_with(&format!("m=audio 10000 {profile} 0|")), "{name}: {text}");
                }
                None => assert_eq!(answered.unwrap_err(), SdpError::NotAcceptable, "{name} {profile}"),
            }
        }
    }
}

#[test]
fn rfc3264_8_media_may_be_elsewhere_and_the_session_stays_ours() {
    let rtp = "203.0.113.5:7000".parse().unwrap();
    for (rtcp, said) in [
        (Some("203.0.113.5:7001"), None),
        (Some("203.0.113.5:9000"), Some("a=rtcp:9000 IN IP4 203.0.113.5\r\n")),
        (None, None),
    ] {
        let mut negotiator = Negotiator::new(8);
        let elsewhere = Some(Elsewhere { rtp, rtcp: rtcp.and_then(|at| at.parse().ok()) });
        let mut texts = [Vec::new(), Vec::new(), Vec::new()];
        let ours = local(&[F::ULAW]);
        negotiator.offer(&ours, &mut texts[0]);
        negotiator.offer(&Local { elsewhere, ..ours }, &mut texts[1]);
        negotiator.offer(&ours, &mut texts[2]);
        let [first, moved, back] = texts.map(|text| String::from_utf8(text).unwrap());
        assert!(
            moved.contains("c=IN IP4 203.0.113.5\r\n") && moved.contains("m=audio 7000 RTP/AVP 0"),
            "{moved}"
        );
        assert_eq!(
            moved.lines().find(|line| line.starts_with("a=rtcp:")),
            said.map(str::trim_end),
            "{moved}"
        );
        let origins = [&first, &moved, &back].map(|text| text.lines().nth(1).unwrap().to_owned());
        assert_eq!(
            origins,
            ["o=- 4 4 IN IP4 198.51.100.1", "o=- 4 5 IN IP4 198.51.100.1", "o=- 4 6 IN IP4 198.51.100.1"]
        );
    }
}
