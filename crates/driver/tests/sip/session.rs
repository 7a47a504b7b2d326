//! What happens during a call: hold, changed media, digits, text, silence.

use core::time::Duration;

use base::{Direction, Event, Latch};
use driver::sip::OneTouch;

use crate::lab::{Lab, PHONE, body, change, header, line, site, udp};
use crate::phone::{Phone, sdp, sdp_with};

/// A call from `alice` that was answered.
fn up(lab: &mut Lab) -> (Phone, base::ChannelId) {
    let mut alice = Phone::new("alice");
    let id = alice.invite(lab, "100", &sdp("198.51.100.7", 4000, "0 101"));
    lab.answer(id);
    let answer = lab.sent();
    alice.ack(lab, &answer, "");
    lab.lines();
    lab.heard();
    (alice, id)
}

#[test]
fn rfc3264_8_4_hold_and_resume_reach_the_story_and_the_stream() {
    let mut lab = Lab::new(site());
    let (mut alice, _) = up(&mut lab);
    for (name, address, attributes, heard, direction) in [
        ("held by sendonly", "198.51.100.7", "a=sendonly\r\n", vec!["Hold"], Direction::RecvOnly),
        ("still held, inactive", "198.51.100.7", "a=inactive\r\n", vec![], Direction::Inactive),
        ("resumed", "198.51.100.7", "a=sendrecv\r\n", vec!["Unhold"], Direction::SendRecv),
        ("held the old way", "0.0.0.0", "", vec!["Hold"], Direction::RecvOnly),
        ("resumed elsewhere", "198.51.100.8", "", vec!["Unhold"], Direction::SendRecv),
    ] {
        alice.inside(&mut lab, "INVITE", "", &sdp_with(address, 4000, "0 101", attributes));
        let answer = lab.sent();
        assert_eq!(line(&answer), "200", "{name}");
        alice.ack(&mut lab, &answer, "");
        assert_eq!(lab.heard(), heard, "{name}");
        assert_eq!(lab.plan().direction, direction, "{name}");
        let expected = (address != "0.0.0.0").then(|| format!("{address}:4000").parse().unwrap());
        assert_eq!(lab.plan().remote, expected, "{name}");
    }
    alice.inside(&mut lab, "BYE", "", "");
    lab.rest();
}

#[test]
fn rfc3261_14_a_reinvite_without_offer_gets_ours_and_its_ack_decides() {
    let mut config = site();
    config.offers_all_when_asked = true;
    let mut lab = Lab::new(config);
    let (mut alice, id) = up(&mut lab);
    alice.inside(&mut lab, "INVITE", "", "");
    let answer = lab.sent();
    // Our offer holds nobody.
    assert_eq!(lab.heard(), ["Unhold"]);
    assert!(body(&answer).contains("m=audio 10002 RTP/AVP"), "{}", body(&answer));
    alice.ack(&mut lab, &answer, &sdp_with("198.51.100.7", 4004, "8", "a=sendonly\r\n"));
    assert_eq!(lab.heard(), ["Hold"]);
    assert_eq!(
        (lab.plan().remote, lab.plan().format),
        ("198.51.100.7:4004".parse().ok(), base::FormatId::ALAW)
    );
    assert_eq!(lab.shard.core.borrow().get(id).unwrap().format, base::FormatId::ALAW);
    // An ACK that brings nothing leaves the session as it was.
    alice.inside(&mut lab, "INVITE", "", "");
    let answer = lab.sent();
    assert_eq!(lab.heard(), ["Unhold"]);
    alice.ack(&mut lab, &answer, "");
    assert_eq!(lab.plan().remote, "198.51.100.7:4004".parse().ok());
    assert!(lab.heard().is_empty());
}

#[test]
fn an_offer_that_cannot_be_leaves_the_session_as_it_was() {
    for (name, headers, offer, status) in [
        ("no common format", "", sdp("198.51.100.7", 4000, "3"), "488"),
        ("unreadable", "", "v=0\r\nm=audio\r\n".to_owned(), "400"),
        ("not a description", "Content-Type: text/plain\r\n", "hello".to_owned(), "415"),
    ] {
        for method in ["INVITE", "UPDATE"] {
            let mut lab = Lab::new(site());
            let (mut alice, _) = up(&mut lab);
            let before = lab.plan();
            alice.inside(&mut lab, method, headers, &offer);
            assert_eq!(lab.lines(), [status], "{method}: {name}");
            assert_eq!(lab.plan(), before, "{method}: {name}");
            assert!(lab.heard().is_empty(), "{method}: {name}");
        }
    }
}

#[test]
fn rfc3311_update_changes_the_session_and_may_come_without_one() {
    let mut lab = Lab::new(site());
    let (mut alice, _) = up(&mut lab);
    alice.inside(&mut lab, "UPDATE", "", "");
    let answer = lab.sent();
    assert_eq!((line(&answer), body(&answer)), ("200".to_owned(), String::new()));
    alice.inside(&mut lab, "UPDATE", "", &sdp("198.51.100.7", 4010, "0"));
    assert_eq!(line(&lab.sent()), "200");
    assert_eq!(lab.plan().remote, "198.51.100.7:4010".parse().ok());
}

#[test]
fn requests_in_a_call_are_served_or_refused_by_name() {
    let relay = "Content-Type: application/dtmf-relay\r\n";
    for (name, method, headers, text, status, heard) in [
        ("a digit", "INFO", relay, "Signal=5\r\nDuration=160\r\n", "200", 1),
        ("a digit alone", "INFO", "Content-Type: application/dtmf\r\n", "7", "200", 1),
        ("no digit", "INFO", relay, "Signal=x\r\n", "400", 0),
        ("nothing", "INFO", "", "", "200", 0),
        ("a picture", "INFO", "Content-Type: image/png\r\n", "x", "415", 0),
        ("text", "MESSAGE", "Content-Type: text/plain\r\n", "hi", "202", 1),
        ("a question", "OPTIONS", "", "", "200", 0),
        ("text of another kind", "MESSAGE", "Content-Type: text/html\r\n", "<p>hi", "202", 1),
        ("what is no text", "MESSAGE", "Content-Type: image/png\r\n", "x", "415", 0),
        ("RFC 6086 4.2.2: a package", "INFO", "Info-Package: x\r\n", "", "469", 0),
        (
            "RFC 5168: a picture is asked for",
            "INFO",
            "Content-Type: application/media_control+xml\r\n",
            "<x/>",
            "200",
            0,
        ),
        ("a transfer to nobody", "REFER", "Refer-To: <sip:900@x>\r\n", "", "404", 0),
        ("what belongs outside", "PUBLISH", "Event: presence\r\n", "", "405", 0),
        ("an unknown method", "FOO", "", "", "501", 0),
    ] {
        let mut lab = Lab::new(site());
        let (mut alice, _) = up(&mut lab);
        alice.inside(&mut lab, method, headers, text);
        assert_eq!(lab.lines(), [status], "{name}");
        assert_eq!(lab.heard().len(), heard, "{name}");
        // Another tag is another dialog, and nobody's.
        alice.remote_tag = "nonsense".to_owned();
        alice.inside(&mut lab, method, headers, text);
        assert_eq!(lab.lines(), ["481"], "{name}");
    }
}

#[test]
fn digits_leave_by_info_when_the_endpoint_wants_it() {
    use driver::sip::Dtmf;
    for (wish, formats, by_info) in [
        (Dtmf::Info, "0", true),
        (Dtmf::AutoInfo, "0", true),
        (Dtmf::AutoInfo, "0 101", false),
        (Dtmf::Rfc4733, "0 101", false),
        (Dtmf::Inband, "0 101", false),
    ] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.dtmf = wish);
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, formats));
        lab.answer(id);
        let answer = lab.sent();
        alice.ack(&mut lab, &answer, "");
        let digit = base::Digit::from_char('#').unwrap();
        let sent = lab.shard.with_tech(id, |tech, core| tech.send_digit(core, id, digit, 120));
        assert_eq!(sent, Some(by_info), "{wish:?} {formats}");
        lab.pass(Duration::ZERO);
        let info = lab.next().map(|(_, info)| body(&info));
        assert_eq!(info.as_deref(), by_info.then_some("Signal=#\r\nDuration=120\r\n"), "{wish:?} {formats}");
        let offers_events = body(&answer).contains("telephone-event");
        assert_eq!(
            offers_events,
            formats.contains("101") && !matches!(wish, Dtmf::Info | Dtmf::Inband),
            "{wish:?}"
        );
    }
}

#[test]
fn a_call_without_media_ends_after_rtp_timeout() {
    let mut config = site();
    change(&mut config, "alice", |alice| (alice.rtp_timeout, alice.rtp_timeout_hold) = (30, 300));
    let mut lab = Lab::new(config);
    let (mut alice, id) = up(&mut lab);
    assert_eq!(lab.plan().rtp_timeout_ms, 30_000);
    alice.inside(&mut lab, "INVITE", "", &sdp_with("198.51.100.7", 4000, "0", "a=sendonly\r\n"));
    let answer = lab.sent();
    alice.ack(&mut lab, &answer, "");
    assert_eq!(lab.plan().rtp_timeout_ms, 300_000);
    let stream = lab.shard.core.borrow().get(id).unwrap().stream.unwrap();
    lab.with(|sip, core| sip.media_event(core, Event::RtpTimeout { stream }));
    assert_eq!(lab.heard().last().map(String::as_str), Some("Hangup 44"));
    assert_eq!(lab.lines(), ["BYE"]);
    assert!(
        lab.world
            .log(call::Level::Notice)
            .iter()
            .any(|line| line.contains("lack of audio RTP activity in 300"))
    );
    lab.rest();
}

#[test]
fn media_is_learned_from_the_signalling_host_only_when_the_endpoint_is_behind_nat() {
    for (symmetric, strict, latch) in [
        (true, true, Latch::Learn("198.51.100.7".parse().unwrap())),
        (true, false, Latch::Learn("198.51.100.7".parse().unwrap())),
        (false, true, Latch::Strict),
        (false, false, Latch::Off),
    ] {
        let mut config = site();
        config.strict_rtp = strict;
        change(&mut config, "alice", |alice| alice.rtp_symmetric = symmetric);
        let mut lab = Lab::new(config);
        up(&mut lab);
        assert_eq!(lab.plan().latch, latch, "rtp_symmetric={symmetric} strictrtp={strict}");
    }
}

#[test]
fn rfc8866_5_7_a_name_in_the_connection_line_is_looked_up() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let offer = sdp("198.51.100.7", 4000, "0").replace("c=IN IP4 198.51.100.7", "c=IN IP4 media.example");
    let id = alice.invite(&mut lab, "100", &offer);
    lab.answer(id);
    assert_eq!(lab.plan().remote, None);
    assert_eq!(lab.lookups(), ["A media.example"]);
    lab.resolved("media.example", &["203.0.113.20".parse().unwrap()]);
    assert_eq!(lab.plan().remote, "203.0.113.20:4000".parse().ok());
    assert_eq!(lab.plan().remote_rtcp, "203.0.113.20:4001".parse().ok());
}

#[test]
fn requests_in_the_call_go_to_the_source_when_contacts_are_rewritten() {
    for (rewrite, expected) in [(true, "203.0.113.9:41000"), (false, "198.51.100.7:5062")] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| trunk.rewrite_contact = rewrite);
        let mut lab = Lab::new(config);
        let mut phone = Phone::new("trunk");
        let text = phone.request("INVITE", "sip:100@s", "", &sdp("198.51.100.7", 4000, "0"));
        let flow = crate::lab::udp("203.0.113.9:41000");
        lab.receive(flow, text);
        let id = lab.started.pop_front().unwrap();
        lab.answer(id);
        let answer = lab.sent();
        phone.learn(&answer);
        let ack = phone.numbered("ACK", &phone.target.clone(), 1, "", "");
        lab.receive(flow, ack);
        lab.finish(id, base::Cause::NORMAL_CLEARING);
        let (way, bye) = lab.next().unwrap();
        assert_eq!((line(&bye), way.remote), ("BYE".to_owned(), crate::lab::address(expected)), "{rewrite}");
    }
}

#[test]
fn rfc3261_14_1_offers_that_cross_are_refused_and_ours_is_made_again() {
    // Who owns the Call-ID waits 2.1 to 4 s, the other one up to 2 s.
    for (we_called, least, most) in [(false, 0, 2_000), (true, 2_100, 4_000)] {
        let mut lab = Lab::new(site());
        let mut phone = Phone::new("trunk");
        let id = if we_called {
            let id = lab.dial("trunk").unwrap();
            let invite = lab.sent();
            phone.called(&invite);
            phone.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "0 101"));
            id
        } else {
            let (alice, id) = up(&mut lab);
            phone = alice;
            id
        };
        lab.lines();
        let ask = |lab: &mut Lab| {
            lab.with(|sip, core| call::Tech::write(sip, core, id, "PJSIP_SEND_SESSION_REFRESH", "", "invite"))
        };
        assert!(ask(&mut lab));
        let ours = lab.sent();
        let theirs = sdp_with("198.51.100.7", 4000, "0 101", "a=sendonly\r\n");
        phone.inside(&mut lab, "INVITE", "", &theirs);
        let refusal = lab.sent();
        assert_eq!(line(&refusal), "491", "ours is out");
        let number = header(&refusal, "CSeq").split(' ').next().unwrap().parse().unwrap();
        let ack = phone.same_branch("ACK", "sip:100@192.0.2.1", number, "", "");
        lab.receive(udp(PHONE), ack);
        assert!(lab.heard().iter().all(|heard| heard != "Hold"));
        phone.respond(&mut lab, &ours, 491, "", "");
        assert_eq!(lab.lines(), ["ACK"]);
        let before = lab.now;
        let again = loop {
            lab.pass(Duration::from_millis(10));
            assert!(lab.now.since(before) <= Duration::from_millis(most + 10), "it is made again");
            if let Some((_, again)) = lab.next() {
                break again;
            }
        };
        assert_eq!(line(&again), "INVITE");
        assert_eq!(body(&again), body(&ours), "what it offered");
        assert!(lab.now.since(before) >= Duration::from_millis(least), "not before");
        phone.respond(&mut lab, &again, 200, "", &sdp("198.51.100.7", 4000, "0 101"));
        assert_eq!(lab.lines(), ["ACK"]);
        // The way is free for theirs.
        phone.inside(&mut lab, "INVITE", "", &theirs);
        assert_eq!(line(&lab.sent()), "200");
    }
}

#[test]
fn the_record_key_of_a_phone_presses_the_code_of_its_feature() {
    let with = |by_key: bool, on: &str| OneTouch {
        by_key,
        on_feature: on.to_owned(),
        off_feature: "own".to_owned(),
    };
    for (name, recording, talks, header, status, digits) in [
        ("it begins", with(true, "automixmon"), true, "Record: on", "200", 2),
        ("it ends", with(true, "automixmon"), true, "Record: OFF", "200", 3),
        ("a feature without code", with(true, "automon"), true, "Record: on", "403", 0),
        ("a feature that is none", with(true, "nonsense"), true, "Record: on", "403", 0),
        ("another word", with(true, "automixmon"), true, "Record: perhaps", "200", 0),
        ("it may not", with(false, "automixmon"), true, "Record: on", "403", 0),
        ("nobody hears it", with(true, "automixmon"), false, "Record: on", "200", 2),
    ] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.recording = recording);
        let mut lab = Lab::new(config);
        {
            let mut features = call::features::Features::default();
            features.map.mix_monitor = "*1".to_owned();
            let own = call::features::AppFeature {
                code: "##7".to_owned(),
                runs_on: call::features::RunsOn::Own,
                pressed_by: call::features::PressedBy::Both,
                app: "NoOp".to_owned(),
                args: String::new(),
                music: String::new(),
            };
            features.apps.insert("own".to_owned(), own);
            let mut core = lab.shard.core.borrow_mut();
            std::rc::Rc::make_mut(&mut core.settings).features = features.into();
        }
        lab.storyless = true;
        let (mut alice, id) = up(&mut lab);
        if talks {
            let other = lab.dial("trunk").unwrap();
            let invite = lab.sent();
            // Without telephone-events: of digits between two that hear each other directly nobody is told.
            let mut trunk = Phone::at("trunk", udp("198.51.100.7:5062"));
            trunk.called(&invite);
            trunk.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4100, "0"));
            lab.lines();
            lab.talk(id, other);
        }
        lab.shard.core.borrow_mut().watched = true;
        alice.inside(&mut lab, "INFO", &format!("{header}\r\n"), "");
        assert_eq!(lab.lines(), [status], "{name}");
        let core = lab.shard.core.borrow();
        let told = lab.world.notices.iter().chain(&core.notices);
        let ended = told.filter(|notice| {
            matches!(notice, call::Notice::Dtmf { duration_ms: Some(_), received: true, .. })
        });
        assert_eq!(ended.count(), digits, "{name}");
    }
}
