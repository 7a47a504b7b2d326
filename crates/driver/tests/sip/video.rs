//! Video that is passed through: who is offered it, what is answered, and what becomes of it in the call (RFC 3264).

use ::sip::OwnedMessage;
use std::sync::Arc;

use base::{
    ChannelId, Direction, Event, FormatId as F, FormatSet, PictureRequest, Plan, RxPayload, StreamId,
};
use call::conference::{BridgeProfile, Guest, VideoMode};
use call::{Chan, Indication, Request};
use driver::sip::{Config, DirectMedia, FaxSettings, Glare, VideoSettings};

use crate::lab::{Lab, body, change, line, site};
use crate::phone::{Phone, sdp};

const HOST: &str = "198.51.100.7";
/// A camera that speaks two formats.
const CAMERA: &str = "m=video 5000 RTP/AVP 97 98\r\na=rtpmap:97 H264/90000\r\na=fmtp:97 profile-level-id=42801F\r\n\
    a=rtpmap:98 VP8/90000\r\na=rtcp-fb:* nack pli\r\na=rtcp-fb:98 ccm fir\r\n";

fn audio(port: u16) -> String {
    sdp(HOST, port, "0 101")
}
fn with(port: u16, video: &str) -> String {
    format!("{}{video}", audio(port))
}
fn video(formats: &[F]) -> VideoSettings {
    VideoSettings {
        formats: formats.iter().copied().collect::<FormatSet>(),
        streams: 1,
        ..VideoSettings::default()
    }
}
fn site_with(alice: VideoSettings, trunk: VideoSettings) -> Config {
    let mut config = site();
    change(&mut config, "alice", |endpoint| endpoint.video = alice);
    change(&mut config, "trunk", |endpoint| endpoint.video = trunk);
    config
}
fn both(formats: &[F]) -> Config {
    site_with(video(formats), video(formats))
}
/// What a message says of video, line by line.
/// `CHANNEL(videonativeformat)`, as formats.
fn native(lab: &Lab, id: ChannelId) -> Vec<F> {
    lab.shard.core.borrow().get(id).map(|channel| channel.video_formats.iter().collect()).unwrap_or_default()
}
fn videos(message: &OwnedMessage) -> String {
    let text = body(message);
    let text = text.find("m=video").map_or("", |at| &text[at..]);
    text.replace("\r\n", "|")
}

/// A call from `alice`, and one on its behalf to `trunk`.
struct Pair {
    lab: Lab,
    alice: Phone,
    trunk: Phone,
    caller: ChannelId,
    callee: ChannelId,
    /// The INVITE to the trunk.
    invite: OwnedMessage,
}

impl Pair {
    fn new(config: Config, offer: &str) -> Self {
        let mut lab = Lab::new(config);
        lab.storyless = true;
        let mut alice = Phone::new("alice");
        let caller = alice.invite(&mut lab, "100", offer);
        let request = Request { requestor: Some(caller), ..Request::default() };
        let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        let mut trunk = Phone::new("trunk");
        trunk.called(&invite);
        Self { lab, alice, trunk, caller, callee, invite }
    }
    /// The trunk answers, and so the caller is; what it hears.
    fn answer(&mut self, answer: &str) -> OwnedMessage {
        self.trunk.respond(&mut self.lab, &self.invite, 200, "", answer);
        assert_eq!(self.lab.lines(), ["ACK"]);
        self.suit();
        self.lab.answer(self.caller);
        let ok = self.lab.sent();
        self.alice.ack(&mut self.lab, &ok, "");
        self.lab.talk(self.caller, self.callee);
        ok
    }
    fn suit(&self) {
        Chan::new(self.lab.shard.clone(), self.caller).suit(self.callee);
    }
    fn streams(&self, id: ChannelId) -> Vec<Option<StreamId>> {
        self.lab.shard.core.borrow().get(id).unwrap().passed.clone()
    }
    /// The plan of a channel's first stream of video.
    fn plan(&self, id: ChannelId) -> Plan {
        let stream = self.streams(id)[0].unwrap();
        self.lab.streams.borrow().open[&stream].clone()
    }
    fn is_open(&self, id: ChannelId) -> bool {
        !self.streams(id).is_empty()
    }
}

#[test]
fn a_callee_is_offered_what_the_caller_has_and_the_caller_answered_what_the_callee_takes() {
    let mut pair = Pair::new(
        site_with(video(&[F::H264, F::VP8]), video(&[F::VP8, F::H264, F::AV1])),
        &with(4000, CAMERA),
    );
    assert_eq!(
        videos(&pair.invite),
        "m=video 10008 RTP/AVP 99 108|a=rtpmap:99 H264/90000|a=fmtp:99 profile-level-id=42801F|a=rtpmap:108 VP8/90000|\
         a=rtcp-fb:99 nack pli|a=rtcp-fb:108 nack pli|a=sendrecv|",
        "the caller's order and words, and the feedback of its first format"
    );
    let ok = pair.answer(&with(
        4100,
        "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 profile-level-id=42e01f\r\na=rtcp-fb:99 nack pli\r\n",
    ));
    assert_eq!(
        videos(&ok),
        "m=video 10004 RTP/AVP 97|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42e01f|a=rtcp-fb:97 nack pli|a=sendrecv|"
    );
    for (id, remote, payload) in [(pair.caller, 5000, 97), (pair.callee, 5100, 99)] {
        let plan = pair.plan(id);
        assert_eq!(plan.remote, format!("{HOST}:{remote}").parse().ok());
        assert_eq!(plan.remote_rtcp, format!("{HOST}:{}", remote + 1).parse().ok());
        assert_eq!((plan.format, plan.payload, plan.direction), (F::H264, payload, Direction::SendRecv));
        assert_eq!(plan.rx[..2], [Some(RxPayload::Audio(payload, F::H264)), None]);
        assert_eq!((plan.rtp_timeout_ms, plan.keepalive_ms), (0, 0), "silence says nothing");
        assert_eq!(native(&pair.lab, id), [F::H264]);
    }
    let (a, b) = (pair.streams(pair.caller)[0].unwrap(), pair.streams(pair.callee)[0].unwrap());
    assert!(pair.lab.streams.borrow().joined.contains(&(a, Some(b))), "they are bridged as the sound is");
    assert_eq!(pair.lab.streams.borrow().open.len(), 4);
    pair.alice.inside(&mut pair.lab, "BYE", "", "");
    pair.lab.lines();
    assert!(pair.lab.streams.borrow().open.len() <= 2, "the video goes with the call");
}

#[test]
fn rfc3264_6_video_that_not_both_have_is_declined_with_port_0_and_the_call_goes_on() {
    let h264 = "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n";
    let declined = "m=video 0 RTP/AVP 97 98|";
    let none = VideoSettings { streams: 0, ..video(&[F::H264]) };
    for (name, config, offer, offered, answer, expected) in [
        ("the callee declines it", both(&[F::H264]), CAMERA, true, "m=video 0 RTP/AVP 99\r\n", declined),
        ("the callee leaves it out", both(&[F::H264]), CAMERA, true, "", declined),
        (
            "the callee's endpoint has no format",
            site_with(video(&[F::H264]), video(&[])),
            CAMERA,
            false,
            "",
            declined,
        ),
        ("another one", site_with(video(&[F::H264]), video(&[F::VP8])), CAMERA, false, "", declined),
        (
            "max_video_streams=0 of the callee",
            site_with(video(&[F::H264]), none),
            CAMERA,
            false,
            "",
            declined,
        ),
        (
            "max_video_streams=0 of the caller",
            site_with(none, video(&[F::H264])),
            CAMERA,
            false,
            "",
            declined,
        ),
        (
            "no format of the caller",
            site_with(video(&[F::AV1]), video(&[F::H264])),
            CAMERA,
            false,
            "",
            declined,
        ),
        ("the caller has none", both(&[F::H264]), "", false, "", ""),
        ("taken", both(&[F::H264]), CAMERA, true, h264, "m=video 10004 RTP/AVP 97|"),
    ] {
        let mut pair = Pair::new(config, &with(4000, offer));
        assert_eq!(!videos(&pair.invite).is_empty(), offered, "{name}");
        let ok = pair.answer(&with(4100, answer));
        assert!(
            videos(&ok).starts_with(expected) && videos(&ok).is_empty() == expected.is_empty(),
            "{name}: {}",
            videos(&ok)
        );
        let is_on = answer == h264;
        assert_eq!((pair.is_open(pair.caller), pair.is_open(pair.callee)), (is_on, is_on), "{name}");
        assert_eq!(
            pair.lab.streams.borrow().open.len(),
            if is_on { 4 } else { 2 },
            "{name}: no port is kept"
        );
    }
}

#[test]
fn who_is_answered_before_anybody_is_called_has_all_common_formats_and_others_are_offered_those() {
    let mut lab = Lab::new(both(&[F::VP8, F::H264]));
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let caller = alice.invite(&mut lab, "100", &with(4000, CAMERA));
    lab.answer(caller);
    let ok = lab.sent();
    assert!(
        videos(&ok).starts_with(
            "m=video 10004 RTP/AVP 97 98|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42801F|"
        ),
        "{}",
        videos(&ok)
    );
    alice.ack(&mut lab, &ok, "");
    let request = Request { requestor: Some(caller), ..Request::default() };
    lab.dial_with("trunk", request, |_, _| {}).unwrap();
    let offered = videos(&lab.sent());
    assert!(
        offered.starts_with(
            "m=video 10008 RTP/AVP 99 108|a=rtpmap:99 H264/90000|a=fmtp:99 profile-level-id=42801F|"
        ),
        "{offered}"
    );
}

#[test]
fn early_media_settles_the_callers_video_and_the_answer_repeats_it() {
    let mut pair = Pair::new(both(&[F::H264, F::VP8]), &with(4000, CAMERA));
    let vp8 = with(4100, "m=video 5100 RTP/AVP 108\r\na=rtpmap:108 VP8/90000\r\n");
    pair.trunk.respond(&mut pair.lab, &pair.invite, 183, "", &vp8);
    pair.suit();
    pair.lab.indicate(pair.caller, Indication::Progress);
    let progress = pair.lab.sent();
    assert_eq!(line(&progress), "183");
    assert!(
        videos(&progress).starts_with("m=video 10004 RTP/AVP 98|a=rtpmap:98 VP8/90000|"),
        "{}",
        videos(&progress)
    );
    let ok = pair.answer(&vp8);
    assert_eq!(body(&ok), body(&progress));
    assert_eq!((pair.plan(pair.caller).format, pair.plan(pair.callee).format), (F::VP8, F::VP8));
}

#[test]
fn a_late_offer_whose_answer_has_no_video_leaves_none_open_on_either_side() {
    let mut pair = Pair::new(both(&[F::H264]), "");
    assert_eq!(videos(&pair.invite), "");
    pair.trunk.respond(&mut pair.lab, &pair.invite, 200, "", &audio(4100));
    pair.lab.lines();
    pair.suit();
    pair.lab.answer(pair.caller);
    let ok = pair.lab.sent();
    assert!(body(&ok).contains("m=audio 10002 ") && videos(&ok).contains("H264"), "{}", body(&ok));
    pair.alice.ack(&mut pair.lab, &ok, &audio(4000));
    assert!(!pair.is_open(pair.caller) && !pair.is_open(pair.callee));
}

#[test]
fn rfc3264_8_video_is_held_ended_and_brought_back_inside_the_call() {
    let mut pair = Pair::new(both(&[F::H264]), &with(4000, CAMERA));
    pair.answer(&with(4100, "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"));
    let off = CAMERA.replace("5000", "0");
    for (name, offer, answered, direction, remote) in [
        ("held", format!("{CAMERA}a=sendonly\r\n"), "a=recvonly|", Direction::RecvOnly, Some(5000)),
        ("resumed", CAMERA.to_owned(), "a=sendrecv|", Direction::SendRecv, Some(5000)),
        ("elsewhere", CAMERA.replace("5000", "5020"), "a=sendrecv|", Direction::SendRecv, Some(5020)),
        ("ended", off, "", Direction::Inactive, None),
        ("brought back", CAMERA.to_owned(), "a=sendrecv|", Direction::SendRecv, Some(5000)),
        (
            "as it was: under another number",
            CAMERA.replace("97", "120"),
            "a=sendrecv|",
            Direction::SendRecv,
            Some(5000),
        ),
    ] {
        pair.alice.inside(&mut pair.lab, "INVITE", "", &with(4000, &offer));
        let ok = pair.lab.sent();
        let text = videos(&ok);
        let start = if remote.is_some() { "m=video 10004 RTP/AVP " } else { "m=video 0 RTP/AVP " };
        assert!(line(&ok) == "200" && text.starts_with(start) && text.ends_with(answered), "{name}: {text}");
        pair.alice.ack(&mut pair.lab, &ok, "");
        let plan = pair.plan(pair.caller);
        let at = remote.map(|port| format!("{HOST}:{port}").parse().unwrap());
        assert_eq!((plan.direction, plan.remote), (direction, at), "{name}");
        assert_eq!(
            (plan.ssrc, plan.first_sequence),
            (pair.plan(pair.caller).ssrc, plan.first_sequence),
            "{name}"
        );
        pair.lab.lines();
    }
    // A session that is refreshed without an offer says what stands (RFC 3261 §14.2).
    pair.alice.inside(&mut pair.lab, "INVITE", "", "");
    let offer = videos(&pair.lab.sent());
    assert!(offer.starts_with("m=video 10004 RTP/AVP 120|a=rtpmap:120 H264/90000|"), "{offer}");
}

#[test]
fn rfc5168_7_who_asks_for_a_picture_by_info_has_it_asked_of_the_other_side() {
    let xml = |what: &str| {
        format!(
            "<media_control><vc_primitive><to_encoder><{what}/></to_encoder></vc_primitive></media_control>"
        )
    };
    let h264 = "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n";
    for (name, answer, what, passed) in [
        ("asked", h264, "picture_fast_update", true),
        ("something else", h264, "picture_freeze", false),
        ("no video", "", "picture_fast_update", false),
    ] {
        let mut pair = Pair::new(both(&[F::H264]), &with(4000, CAMERA));
        pair.answer(&with(4100, answer));
        pair.alice.inside(
            &mut pair.lab,
            "INFO",
            "Content-Type: application/media_control+xml\r\n",
            &xml(what),
        );
        let sent: Vec<_> = std::iter::from_fn(|| pair.lab.next()).map(|(_, message)| message).collect();
        let lines: Vec<_> = sent.iter().map(line).collect();
        assert!(lines.contains(&"200".to_owned()), "{name}: {lines:?}");
        let info = sent.iter().find(|message| line(message) == "INFO");
        assert_eq!(info.is_some(), passed, "{name}");
        assert!(info.is_none_or(|info| body(info).contains("<picture_fast_update/>")), "{name}");
    }
}

/// Two with cameras, of whom each says of feedback what it is given, in a conference that follows the talker.
fn conference(feedback: [&str; 2]) -> (Lab, [Phone; 2], [ChannelId; 2]) {
    let mut lab = Lab::new(both(&[F::H264]));
    lab.storyless = true;
    let come = |lab: &mut Lab, mut phone: Phone, feedback: &str| {
        let camera = format!("m=video 5000 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n{feedback}");
        let id = phone.invite(lab, "100", &with(4000, &camera));
        lab.answer(id);
        let ok = lab.sent();
        phone.ack(lab, &ok, "");
        let profile = BridgeProfile { video: VideoMode::FollowTalker, ..BridgeProfile::default() };
        let core = &mut *lab.shard.core.borrow_mut();
        core.conference_enter("room", id, Guest::default(), &Arc::new(profile)).unwrap();
        (phone, id)
    };
    let (one, first) = come(&mut lab, Phone::new("alice"), feedback[0]);
    let (other, second) = come(&mut lab, Phone::new("trunk").call("in"), feedback[1]);
    (lab, [one, other], [first, second])
}

#[test]
fn rfc4585_4_2_a_camera_is_asked_for_whole_pictures_as_its_phone_understands_it() {
    for (feedback, expected) in [
        ("", PictureRequest::Signalling),
        ("a=rtcp-fb:* nack\r\n", PictureRequest::Signalling),
        ("a=rtcp-fb:* nack pli\r\n", PictureRequest::Pli),
        ("a=rtcp-fb:97 nack pli\r\na=rtcp-fb:97 ccm fir\r\n", PictureRequest::Fir),
    ] {
        let (lab, _, [id, _]) = conference([feedback, ""]);
        let stream = lab.shard.core.borrow().get(id).unwrap().passed[0].unwrap();
        assert_eq!(lab.streams.borrow().open[&stream].picture, expected, "{feedback}");
    }
}

#[test]
fn rfc5168_7_in_a_conference_whoever_is_seen_is_asked_for_the_picture() {
    let (mut lab, mut phones, ids) = conference(["", ""]);
    let streams = ids.map(|id| lab.shard.core.borrow().get(id).unwrap().passed[0].unwrap());
    let xml = "<media_control><vc_primitive><to_encoder><picture_fast_update/></to_encoder></vc_primitive>\
               </media_control>";
    phones[1].inside(&mut lab, "INFO", "Content-Type: application/media_control+xml\r\n", xml);
    assert_eq!(lab.lines(), ["200"]);
    assert_eq!(lab.streams.borrow().pictures, [streams[0]], "the one that the asker sees");
    // And the worker says when it is wanted of a phone that does not understand feedback.
    for (stream, expected) in [(streams[0], 1), (StreamId::new(99, 0), 0)] {
        lab.with(|sip, core| sip.media_event(core, Event::PictureWanted { stream }));
        let sent: Vec<_> = std::iter::from_fn(|| lab.next()).map(|(_, message)| message).collect();
        let asked = sent.iter().filter(|message| body(message).contains("<picture_fast_update/>"));
        assert_eq!(asked.filter(|message| line(message) == "INFO").count(), expected);
    }
}

/// All that has left, as lines, and the INVITE among it.
fn left(lab: &mut Lab) -> (Vec<String>, Option<OwnedMessage>) {
    let sent: Vec<_> = std::iter::from_fn(|| lab.next()).map(|(_, message)| message).collect();
    let lines = sent.iter().map(line).collect();
    (lines, sent.into_iter().find(|message| line(message) == "INVITE"))
}

#[test]
fn rfc3264_8_1_video_that_one_side_adds_is_offered_to_the_other() {
    let h264 = "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 profile-level-id=42e01f\r\n";
    for calls in [true, false] {
        let mut pair = Pair::new(both(&[F::H264, F::VP8]), &audio(4000));
        pair.answer(&audio(4100));
        let (id, other) = match calls {
            true => (pair.caller, pair.callee),
            false => (pair.callee, pair.caller),
        };
        let (adds, asked) = match calls {
            true => (&mut pair.alice, &mut pair.trunk),
            false => (&mut pair.trunk, &mut pair.alice),
        };
        adds.inside(&mut pair.lab, "INVITE", "", &with(4000, CAMERA));
        let ok = pair.lab.next().unwrap().1;
        assert_eq!(line(&ok), "200");
        assert!(
            videos(&ok).starts_with(
                "m=video 10006 RTP/AVP 97 98|a=rtpmap:97 H264/90000|a=fmtp:97 profile-level-id=42801F|"
            ),
            "{}",
            videos(&ok)
        );
        adds.ack(&mut pair.lab, &ok, "");
        let invite = left(&mut pair.lab).1.expect("the other side is asked");
        assert!(
            videos(&invite).starts_with(
                "m=video 10008 RTP/AVP 99 108|a=rtpmap:99 H264/90000|a=fmtp:99 profile-level-id=42801F|"
            ),
            "{}",
            videos(&invite)
        );
        asked.respond(&mut pair.lab, &invite, 200, "", &with(4100, h264));
        assert_eq!(left(&mut pair.lab).0, ["ACK"]);
        for (id, remote, payload) in [(id, 5000, 97), (other, 5100, 99)] {
            let plan = pair.plan(id);
            assert_eq!((plan.format, plan.payload, plan.direction), (F::H264, payload, Direction::SendRecv));
            assert_eq!(plan.remote, format!("{HOST}:{remote}").parse().ok());
        }
        let (a, b) = (pair.streams(id)[0].unwrap(), pair.streams(other)[0].unwrap());
        let joined = pair.lab.streams.borrow().joined.clone();
        assert!(joined.contains(&(a, Some(b))) || joined.contains(&(b, Some(a))), "{joined:?}");
        pair.alice.inside(&mut pair.lab, "BYE", "", "");
        pair.lab.lines();
        assert!(pair.lab.streams.borrow().open.len() <= 2, "the video goes with the call");
    }
}

#[test]
fn a_side_that_will_have_no_video_is_asked_once_and_one_that_may_not_never() {
    let off = "m=video 0 RTP/AVP 99\r\n";
    for (name, trunk, answer) in [
        ("it declines the stream", video(&[F::H264]), Some((200, with(4100, off)))),
        ("it leaves it out", video(&[F::H264]), Some((200, audio(4100)))),
        ("it refuses the offer", video(&[F::H264]), Some((488, String::new()))),
        ("its endpoint has no format", video(&[]), None),
        ("another one", video(&[F::AV1]), None),
        ("max_video_streams=0", VideoSettings { streams: 0, ..video(&[F::H264]) }, None),
    ] {
        let mut pair = Pair::new(site_with(video(&[F::H264]), trunk), &audio(4000));
        pair.answer(&audio(4100));
        for round in 0..2 {
            pair.alice.inside(&mut pair.lab, "INVITE", "", &with(4000, CAMERA));
            let ok = pair.lab.next().unwrap().1;
            pair.alice.ack(&mut pair.lab, &ok, "");
            let (_, invite) = left(&mut pair.lab);
            assert_eq!(invite.is_some(), answer.is_some() && round == 0, "{name}, offer {round}");
            let port = if answer.is_some() { 10_006 } else { 0 };
            assert!(videos(&ok).starts_with(&format!("m=video {port} ")), "{name}: {}", videos(&ok));
            if let Some((invite, (status, text))) = invite.zip(answer.as_ref()) {
                pair.trunk.respond(&mut pair.lab, &invite, *status, "", text);
                assert_eq!(left(&mut pair.lab).0, ["ACK"], "{name}");
            }
            assert!(!pair.is_open(pair.callee), "{name}: no port is kept");
            assert_eq!(pair.is_open(pair.caller), answer.is_some(), "{name}");
        }
        let open = pair.lab.streams.borrow().open.len();
        assert_eq!(open, if answer.is_some() { 3 } else { 2 }, "{name}");
    }
}

#[test]
fn who_is_alone_with_an_application_may_add_video_and_whoever_joins_later_is_asked() {
    let mut lab = Lab::new(both(&[F::H264]));
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let caller = alice.invite(&mut lab, "100", &audio(4000));
    lab.answer(caller);
    let ok = lab.sent();
    alice.ack(&mut lab, &ok, "");
    let callee = lab.dial_with("trunk", Request::default(), |_, _| {}).unwrap();
    let invite = lab.sent();
    assert_eq!(videos(&invite), "");
    let mut trunk = Phone::new("trunk");
    trunk.called(&invite);
    trunk.respond(&mut lab, &invite, 200, "", &audio(4100));
    lab.lines();
    alice.inside(&mut lab, "INVITE", "", &with(4000, CAMERA));
    let ok = lab.sent();
    assert!(videos(&ok).starts_with("m=video 10006 RTP/AVP 97|a=rtpmap:97 H264/"), "{}", videos(&ok));
    alice.ack(&mut lab, &ok, "");
    assert_eq!(lab.lines(), [""; 0]);
    lab.talk(caller, callee);
    let invite = lab.sent();
    assert!(
        line(&invite) == "INVITE" && videos(&invite).starts_with("m=video 10008 "),
        "{}",
        videos(&invite)
    );
}

#[test]
fn rfc3264_8_what_one_side_does_with_its_video_is_offered_to_the_other_as_seen_from_there() {
    let h264 = "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n";
    let mut pair = Pair::new(both(&[F::H264]), &with(4000, CAMERA));
    pair.answer(&with(4100, h264));
    for (name, port, way, answered, offered, taken) in [
        ("receives only", 5000, "recvonly", "sendonly", "recvonly", "sendonly"),
        ("the same again", 5000, "recvonly", "sendonly", "", ""),
        ("sends only", 5000, "sendonly", "recvonly", "sendonly", "recvonly"),
        ("neither", 5000, "inactive", "inactive", "inactive", "inactive"),
        ("both", 5000, "sendrecv", "sendrecv", "sendrecv", "sendrecv"),
        ("ended", 0, "sendrecv", "0", "0", "0"),
        ("brought back", 5000, "sendrecv", "sendrecv", "sendrecv", "sendrecv"),
    ] {
        let video = format!("{}a={way}\r\n", CAMERA.replace("5000", &port.to_string()));
        pair.alice.inside(&mut pair.lab, "INVITE", "", &with(4000, &video));
        let ok = pair.lab.sent();
        let says = |message: &OwnedMessage, way: &str| match way {
            "0" => videos(message).starts_with("m=video 0 "),
            way => {
                videos(message).contains(&format!("a={way}|")) && !videos(message).starts_with("m=video 0 ")
            }
        };
        assert!(line(&ok) == "200" && says(&ok, answered), "{name}: {}", videos(&ok));
        pair.alice.ack(&mut pair.lab, &ok, "");
        let invite = pair.lab.next().map(|(_, message)| message);
        assert_eq!(invite.is_some(), !offered.is_empty(), "{name}");
        let Some(invite) = invite else { continue };
        assert!(line(&invite) == "INVITE" && says(&invite, offered), "{name}: {}", videos(&invite));
        assert!(body(&invite).contains("a=sendrecv\r\nm=video"), "{name}: the sound goes on as it was");
        let video = if taken == "0" { h264.replace("5100", "0") } else { format!("{h264}a={taken}\r\n") };
        pair.trunk.respond(&mut pair.lab, &invite, 200, "", &with(4100, &video));
        assert_eq!(pair.lab.lines(), ["ACK"], "{name}: that is all");
    }
}

#[test]
fn rfc3264_6_a_call_may_have_video_alone() {
    for (name, audio, formats, status) in [
        ("no audio", "", &[F::H264][..], "200"),
        ("no audio in common", "m=audio 4000 RTP/AVP 3\r\n", &[F::H264], "200"),
        ("nothing in common", "m=audio 4000 RTP/AVP 3\r\n", &[F::AV1], "488"),
    ] {
        let mut lab = Lab::new(both(formats));
        lab.storyless = true;
        let offer =
            format!("v=0\r\no=- 1 1 IN IP4 {HOST}\r\ns=-\r\nc=IN IP4 {HOST}\r\nt=0 0\r\n{audio}{CAMERA}");
        let mut alice = Phone::new("alice");
        if status == "488" {
            let answer = alice.ask(&mut lab, "INVITE", "sip:100@strowger", "", &offer);
            assert_eq!(line(&answer), status, "{name}");
            continue;
        }
        let caller = alice.invite(&mut lab, "100", &offer);
        lab.answer(caller);
        let ok = lab.sent();
        let text = body(&ok).replace("\r\n", "|");
        let declined = audio.replace("4000", "0").replace("\r\n", "|");
        assert!(text.contains(&format!("t=0 0|{declined}m=video 10004 RTP/AVP 97|")), "{name}: {text}");
        alice.ack(&mut lab, &ok, "");
    }
}

#[test]
fn video_that_a_side_has_ended_is_not_offered_to_it_again() {
    let h264 = "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n";
    let mut pair = Pair::new(both(&[F::H264]), &with(4000, CAMERA));
    pair.answer(&with(4100, h264));
    pair.alice.inside(&mut pair.lab, "INVITE", "", &with(4000, &CAMERA.replace("5000", "0")));
    let ok = pair.lab.sent();
    pair.alice.ack(&mut pair.lab, &ok, "");
    let invite = pair.lab.sent();
    assert!(
        line(&invite) == "INVITE" && videos(&invite).starts_with("m=video 0 RTP/AVP 99"),
        "{}",
        videos(&invite)
    );
    pair.trunk.respond(&mut pair.lab, &invite, 200, "", &with(4100, &h264.replace("5100", "0")));
    assert_eq!(pair.lab.lines(), ["ACK"]);
    pair.alice.inside(&mut pair.lab, "INVITE", "", "");
    let offer = pair.lab.sent();
    assert!(videos(&offer).starts_with("m=video 0 "), "{}", videos(&offer));
}

#[test]
fn further_streams_are_declined_and_two_go_side_by_side_where_both_may_have_two() {
    let slides = "m=video 5002 RTP/AVP 98\r\na=rtpmap:98 VP8/90000\r\n";
    let offer = with(4000, &format!("{CAMERA}{slides}"));
    let two = VideoSettings { streams: 2, ..video(&[F::H264, F::VP8]) };
    let count = |message: &OwnedMessage| {
        let ports = videos(message);
        let open = |line: &&str| line.starts_with("m=video") && !line.starts_with("m=video 0");
        ports.split('|').filter(open).count()
    };
    for (trunk, offered) in [(two, 2), (video(&[F::H264, F::VP8]), 1)] {
        let mut pair = Pair::new(site_with(two, trunk), &offer);
        assert_eq!(count(&pair.invite), offered);
        let answer = videos(&pair.invite).replace('|', "\r\n").replace("m=video 1", "m=video 2");
        let ok = pair.answer(&with(4100, &answer));
        assert_eq!(count(&ok), offered, "{}", videos(&ok));
        assert_eq!(pair.streams(pair.caller).len(), offered);
        let joined = pair.streams(pair.caller).into_iter().zip(pair.streams(pair.callee)).collect::<Vec<_>>();
        let streams = pair.lab.streams.borrow();
        assert!(joined.iter().all(|(a, b)| streams.joined.contains(&(a.unwrap(), *b))), "{joined:?}");
    }
}

#[test]
fn media_with_video_stays_here_and_fax_ends_the_video() {
    let mut config = both(&[F::H264]);
    let on = DirectMedia { by_update: false, glare: Glare::None, not_behind_nat: false };
    for name in ["alice", "trunk"] {
        change(&mut config, name, |endpoint| {
            (endpoint.direct, endpoint.fax) = (Some(on), Some(FaxSettings::default()));
        });
    }
    let mut pair = Pair::new(config, &with(4000, CAMERA));
    pair.answer(&with(4100, "m=video 5100 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"));
    assert_eq!(pair.lab.lines(), [""; 0], "nobody is told another address");
    let fax = format!("{}m=image 4000 udptl t38\r\n", audio(0));
    pair.alice.inside(&mut pair.lab, "INVITE", "", &fax);
    let invite = pair.lab.sent();
    assert!(
        body(&invite).contains("m=image ") && videos(&invite) == "m=video 0 RTP/AVP 99|",
        "{}",
        body(&invite)
    );
    pair.trunk.respond(&mut pair.lab, &invite, 200, "", &format!("{}m=image 4100 udptl t38\r\n", ""));
    pair.lab.lines();
}

#[test]
fn rfc3261_13_2_1_a_caller_without_an_offer_is_offered_video_and_the_ack_says_what_it_takes() {
    let none = VideoSettings { streams: 0, ..video(&[F::H264]) };
    let h264 = "m=video 5000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n";
    let declined = "m=video 0 RTP/AVP 99\r\n";
    // What its endpoint and the other one allow, what it is offered, what it answers, and whether there is video then.
    type Row<'a> = (&'a str, VideoSettings, Option<VideoSettings>, &'a [&'a str], &'a str, bool);
    let rows: [Row<'_>; 7] = [
        ("an application", video(&[F::H264, F::VP8]), None, &["H264", "VP8"], h264, true),
        ("an application, and it declines", video(&[F::H264]), None, &["H264"], declined, false),
        ("an application, and it says nothing of it", video(&[F::H264]), None, &["H264"], "", false),
        ("an endpoint without video", none, None, &[], "", false),
        ("both may", video(&[F::VP8, F::H264]), Some(video(&[F::H264])), &["H264"], h264, true),
        ("the other may not", video(&[F::H264]), Some(none), &[], "", false),
        ("they share no format", video(&[F::H264]), Some(video(&[F::VP8])), &[], "", false),
    ];
    for (name, alice, other, offered, answer, has_video) in rows {
        let mut lab = Lab::new(site_with(alice, other.unwrap_or(none)));
        lab.storyless = true;
        let mut phone = Phone::new("alice");
        let caller = phone.invite(&mut lab, "100", "");
        if other.is_some() {
            let request = Request { requestor: Some(caller), ..Request::default() };
            let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
            let invite = lab.sent();
            assert_eq!(videos(&invite), "", "{name}: of the caller nothing is known yet");
            let mut trunk = Phone::new("trunk");
            trunk.called(&invite);
            trunk.respond(&mut lab, &invite, 200, "", &audio(4100));
            assert_eq!(lab.lines(), ["ACK"]);
            Chan::new(lab.shard.clone(), caller).suit(callee);
        }
        lab.answer(caller);
        let ok = lab.sent();
        let shown = videos(&ok);
        let formats: Vec<&str> = shown
            .split('|')
            .filter_map(|line| line.strip_prefix("a=rtpmap:")?.split_once(' ')?.1.split('/').next())
            .collect();
        assert_eq!(formats, offered, "{name}: {shown}");
        // The payload type of H264 is the one that the offer says.
        let payload =
            shown.split("a=rtpmap:").find_map(|part| part.split_once(" H264")).map_or("99", |(of, _)| of);
        phone.ack(&mut lab, &ok, &with(4000, &answer.replace("99", payload)));
        let open = lab.shard.core.borrow().get(caller).unwrap().passed.clone();
        assert_eq!(!open.is_empty(), has_video, "{name}");
        if has_video {
            let plan = lab.streams.borrow().open[&open[0].unwrap()].clone();
            assert_eq!((plan.remote, plan.format), (format!("{HOST}:5000").parse().ok(), F::H264), "{name}");
        }
        phone.inside(&mut lab, "BYE", "", "");
        lab.lines();
    }
}

#[test]
fn rfc3264_8_1_the_other_party_is_asked_for_the_video_that_a_late_offer_has_brought() {
    let mut lab = Lab::new(both(&[F::H264]));
    lab.storyless = true;
    let mut phone = Phone::new("alice");
    let caller = phone.invite(&mut lab, "100", "");
    let request = Request { requestor: Some(caller), ..Request::default() };
    let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
    let invite = lab.sent();
    let mut trunk = Phone::new("trunk");
    trunk.called(&invite);
    trunk.respond(&mut lab, &invite, 200, "", &audio(4100));
    lab.lines();
    Chan::new(lab.shard.clone(), caller).suit(callee);
    lab.answer(caller);
    let ok = lab.sent();
    let payload: String =
        videos(&ok).split("a=rtpmap:").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let taken = format!("m=video 5000 RTP/AVP {payload}\r\na=rtpmap:{payload} H264/90000\r\n");
    phone.ack(&mut lab, &ok, &with(4000, &taken));
    lab.talk(caller, callee);
    let again = lab.sent();
    assert_eq!(line(&again), "INVITE");
    assert!(videos(&again).contains("H264/90000"), "{}", body(&again));
    trunk.respond(&mut lab, &again, 200, "", &with(4100, &taken.replace("5000", "5100")));
    assert_eq!(lab.lines(), ["ACK"]);
    for (id, remote) in [(caller, 5000), (callee, 5100)] {
        let stream = lab.shard.core.borrow().get(id).unwrap().passed[0].unwrap();
        let plan = lab.streams.borrow().open[&stream].clone();
        assert_eq!((plan.remote, plan.format), (format!("{HOST}:{remote}").parse().ok(), F::H264));
    }
}

#[test]
fn further_audio_goes_from_party_to_party_where_both_endpoints_may_have_it() {
    let second = "m=audio 4002 RTP/AVP 0 8\r\na=sendrecv\r\n";
    let count = |message: &OwnedMessage| {
        let open = |line: &&str| line.starts_with("m=audio") && !line.starts_with("m=audio 0");
        body(message).lines().filter(open).count()
    };
    for (alice, trunk, offered, answered) in
        [(2, 2, 2, 2), (5, 2, 2, 2), (2, 1, 1, 1), (1, 2, 1, 1), (0, 0, 1, 1)]
    {
        let mut config = site();
        change(&mut config, "alice", |endpoint| endpoint.audio_streams = alice);
        change(&mut config, "trunk", |endpoint| endpoint.audio_streams = trunk);
        let mut pair = Pair::new(config, &with(4000, second));
        let name = format!("{alice} and {trunk}");
        assert_eq!(count(&pair.invite), offered, "{name}: {}", body(&pair.invite));
        let answer = with(4100, if offered == 2 { "m=audio 4102 RTP/AVP 8\r\n" } else { "" });
        let ok = pair.answer(&answer);
        assert_eq!(count(&ok), answered, "{name}: {}", body(&ok));
        let [a, b] =
            [pair.caller, pair.callee].map(|id| pair.streams(id).get(base::VIDEO_SLOTS).copied().flatten());
        assert_eq!((a.is_some(), b.is_some()), (answered == 2, answered == 2), "{name}");
        let (Some(a), Some(b)) = (a, b) else { continue };
        let streams = pair.lab.streams.borrow();
        assert!(streams.joined.contains(&(a, Some(b))), "{name}: they are bridged as the sound is");
        for (stream, remote) in [(a, 4002), (b, 4102)] {
            let plan = &streams.open[&stream];
            assert_eq!(plan.remote, format!("{HOST}:{remote}").parse().ok(), "{name}");
            assert_eq!((plan.format, plan.payload), (F::ALAW, 8), "{name}: what the callee took");
        }
        assert!(
            pair.lab.shard.core.borrow().get(pair.caller).unwrap().pictures().iter().all(Option::is_none)
        );
        drop(streams);
        pair.alice.inside(&mut pair.lab, "BYE", "", "");
        pair.lab.lines();
        assert!(pair.lab.streams.borrow().open.len() <= 2, "{name}: it goes with the call");
    }
}
