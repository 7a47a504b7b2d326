//! Which formats are agreed on, and that nothing is transcoded for want of asking.

use base::{Event, FormatId as F};
use call::{Chan, Indication, Request};
use driver::sip::{CodecPrefs, Operation};

use crate::lab::{Lab, body, change, line, site};
use crate::phone::{Phone, sdp, sdp_with};

/// The formats of the `m=` line.
fn formats(description: &str) -> String {
    let line = description.lines().find(|line| line.starts_with("m=audio")).unwrap();
    line.split(' ').skip(3).collect::<Vec<_>>().join(" ")
}

/// A call from `alice` with both laws, on whose behalf `trunk` is called and answers with these formats.
fn pair(lab: &mut Lab, answered: &str) -> (Phone, base::ChannelId, base::ChannelId) {
    let mut alice = Phone::new("alice");
    let caller = alice.invite(lab, "100", &sdp("198.51.100.7", 4000, "0 8 101"));
    let wanted = lab.shard.core.borrow().get(caller).unwrap().formats;
    let request = Request { requestor: Some(caller), formats: wanted, ..Request::default() };
    let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
    let invite = lab.sent();
    assert_eq!(formats(&body(&invite)), "0 8 101", "the caller's order");
    Phone::new("trunk").respond(lab, &invite, 200, "", &sdp("198.51.100.7", 4000, answered));
    lab.lines();
    (alice, caller, callee)
}

#[test]
fn rfc3264_6_1_an_answer_that_has_not_left_begins_with_the_format_of_the_party_that_was_dialled() {
    let own = CodecPrefs { configured: true, ..CodecPrefs::new(Operation::Intersect) };
    for (name, answered, early, prefs, expected) in [
        ("a shared format", "8 101", false, None, "8 0 101"),
        ("the format in use", "0 8 101", false, None, "0 8 101"),
        ("early media has gone", "8 101", true, None, "0 8 101"),
        ("the endpoint's own order", "8 101", false, Some(own), "0 8 101"),
    ] {
        let mut config = site();
        if let Some(prefs) = prefs {
            change(&mut config, "alice", |alice| alice.codecs.outgoing_answer = prefs);
        }
        let mut lab = Lab::new(config);
        let (mut alice, caller, callee) = pair(&mut lab, answered);
        if early {
            lab.indicate(caller, Indication::Progress);
            assert_eq!(formats(&body(&lab.sent())), "0 8 101", "{name}");
        }
        Chan::new(lab.shard.clone(), caller).suit(callee);
        lab.answer(caller);
        let answer = lab.sent();
        assert_eq!(formats(&body(&answer)), expected, "{name}");
        let first = if expected.starts_with('8') { F::ALAW } else { F::ULAW };
        let stream = lab.shard.core.borrow().get(caller).map(|c| (c.format, c.stream.unwrap())).unwrap();
        assert_eq!(stream.0, first, "{name}");
        let plan = lab.streams.borrow().open[&stream.1].clone();
        assert_eq!((plan.format, plan.payload), (first, if first == F::ALAW { 8 } else { 0 }), "{name}");
        alice.ack(&mut lab, &answer, "");
        // What follows in the session keeps to it.
        alice.inside(&mut lab, "INVITE", "", "");
        assert_eq!(line(&lab.sent()), "200", "{name}");
    }
}

#[test]
fn codec_settings_shape_answers_and_offers() {
    let usual = CodecPrefs::new(Operation::Intersect);
    let configured = CodecPrefs { configured: true, ..usual };
    let first = CodecPrefs { first_only: true, ..usual };
    type Change = fn(&mut driver::sip::Codecs, CodecPrefs);
    let rows: [(&str, Change, CodecPrefs, &str); 6] = [
        ("as usual", |_, _| {}, usual, "8 0"),
        ("own order of the offer", |c, p| c.incoming_offer = p, configured, "0 8"),
        ("own order of the answer", |c, p| c.outgoing_answer = p, configured, "0 8"),
        ("one of the offer", |c, p| c.incoming_offer = p, first, "8"),
        ("one of the answer", |c, p| c.outgoing_answer = p, first, "8"),
        ("preferred_codec_only", |c, _| c.single_answer = true, usual, "8"),
    ];
    for (name, set, prefs, expected) in rows {
        let mut config = site();
        change(&mut config, "alice", |alice| set(&mut alice.codecs, prefs));
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "8 0"));
        lab.answer(id);
        assert_eq!(formats(&body(&lab.sent())), expected, "{name}");
    }
    // An offer on behalf of a caller who has one of the two, and one that would have to be transcoded.
    let prevent = CodecPrefs { transcode: false, ..usual };
    for (name, prefs, caller, expected) in [
        ("union", CodecPrefs::new(Operation::Union), &[F::GSM, F::ALAW][..], Some("8 0 101")),
        ("shared only", usual, &[F::GSM, F::ALAW], Some("8 101")),
        ("shared only, nothing shared", prevent, &[F::GSM], None),
    ] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| trunk.codecs.outgoing_offer = prefs);
        let mut lab = Lab::new(config);
        let request = Request { formats: caller.iter().copied().collect(), ..Request::default() };
        let called = lab.dial_with("trunk", request, |_, _| {});
        assert_eq!(called.is_ok(), expected.is_some(), "{name}");
        if let Some(expected) = expected {
            assert_eq!(formats(&body(&lab.sent())), expected, "{name}");
        }
    }
}

#[test]
fn rfc3261_14_2_an_offer_that_a_reinvite_asks_for_lists_all_formats_when_told_so() {
    for (all, expected) in [(false, "8 101"), (true, "0 8 101")] {
        let mut config = site();
        config.offers_all_when_asked = all;
        change(&mut config, "trunk", |trunk| {
            trunk.codecs.outgoing_offer = CodecPrefs::new(Operation::Intersect);
        });
        let mut lab = Lab::new(config);
        let request = Request { formats: [F::ALAW].into_iter().collect(), ..Request::default() };
        let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        assert_eq!(formats(&body(&invite)), "8 101");
        let mut trunk = Phone::new("trunk");
        trunk.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "8 101"));
        lab.lines();
        trunk.called(&invite);
        trunk.inside(&mut lab, "INVITE", "", "");
        let answer = lab.sent();
        assert_eq!((line(&answer).as_str(), formats(&body(&answer)).as_str()), ("200", expected), "{all}");
        // What was listed may be chosen.
        trunk.ack(&mut lab, &answer, &sdp("198.51.100.7", 4000, if all { "0 101" } else { "8 101" }));
        let chosen = if all { F::ULAW } else { F::ALAW };
        assert_eq!(lab.plan().format, chosen, "{all}");
        assert_eq!(lab.shard.core.borrow().get(callee).unwrap().format, chosen, "{all}");
    }
}

#[test]
fn rfc5761_5_1_1_rtcp_shares_the_port_where_both_want_that() {
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.rtcp_mux = ours);
        change(&mut config, "trunk", |trunk| trunk.rtcp_mux = ours);
        let attributes = if theirs { "a=rtcp-mux\r\n" } else { "" };
        let peer = sdp_with("198.51.100.7", 4000, "0", attributes);
        let port = if ours && theirs { 4000 } else { 4001 };
        // Answered by us.
        let mut lab = Lab::new(config.clone());
        let id = Phone::new("alice").invite(&mut lab, "100", &peer);
        lab.answer(id);
        assert_eq!(body(&lab.sent()).contains("a=rtcp-mux"), ours && theirs, "{ours} {theirs}");
        assert_eq!(lab.plan().remote_rtcp.map(|at| at.port()), Some(port), "{ours} {theirs}");
        // Offered by us.
        let mut lab = Lab::new(config);
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        assert_eq!(body(&invite).contains("a=rtcp-mux"), ours);
        Phone::new("trunk").respond(&mut lab, &invite, 200, "", &peer);
        assert_eq!(lab.plan().remote_rtcp.map(|at| at.port()), Some(port), "{ours} {theirs}");
    }
}

#[test]
fn rfc3264_8_an_offer_of_t38_alone_is_refused_and_the_audio_goes_on() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0"));
    lab.answer(id);
    let answer = lab.sent();
    alice.ack(&mut lab, &answer, "");
    let before = lab.plan();
    let fax = "v=0\r\no=- 1 2 IN IP4 198.51.100.7\r\ns=-\r\nc=IN IP4 198.51.100.7\r\nt=0 0\r\n\
               m=image 4100 udptl t38\r\na=T38FaxVersion:0\r\n";
    alice.inside(&mut lab, "INVITE", "", fax);
    assert_eq!(lab.lines(), ["488"]);
    assert_eq!(lab.plan(), before);
}

#[test]
fn what_is_sent_follows_what_the_peer_sends_unless_the_endpoint_wants_both_apart() {
    for (asymmetric, sent) in [(false, (F::ALAW, 8)), (true, (F::ULAW, 0))] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.asymmetric_codec = asymmetric);
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0 8"));
        lab.answer(id);
        let answer = lab.sent();
        alice.ack(&mut lab, &answer, "");
        let stream = lab.shard.core.borrow().get(id).unwrap().stream.unwrap();
        let comes = |lab: &mut Lab, format| {
            lab.with(|sip, core| sip.media_event(core, Event::Sends { stream, format }))
        };
        comes(&mut lab, F::ALAW);
        assert_eq!((lab.plan().format, lab.plan().payload), sent, "asymmetric {asymmetric}");
        assert_eq!(lab.shard.core.borrow().get(id).unwrap().format, sent.0, "asymmetric {asymmetric}");
        comes(&mut lab, F::GSM);
        assert_eq!(lab.plan().format, sent.0, "never agreed on");
        // A new agreement begins anew.
        alice.inside(&mut lab, "INVITE", "", &sdp("198.51.100.7", 4002, "0 8"));
        let answer = lab.sent();
        alice.ack(&mut lab, &answer, "");
        assert_eq!(lab.plan().format, F::ULAW);
        // Who changes on and on is not followed for ever.
        for _ in 0..10 {
            comes(&mut lab, F::ALAW);
            comes(&mut lab, F::ULAW);
        }
        comes(&mut lab, F::ALAW);
        assert_eq!(lab.plan().format, F::ULAW, "asymmetric {asymmetric}");
    }
}
