//! Calls that come in.

use core::time::Duration;

use base::Cause;
use call::{Indication, Transferring};

use crate::lab::{Lab, body, change, header, line, site};
use crate::phone::{Phone, sdp};

fn offer() -> String {
    sdp("198.51.100.7", 4000, "0 8 101")
}

#[test]
fn rfc3261_13_3_a_call_is_answered_talks_and_is_ended_by_either_side() {
    for peer_ends in [true, false] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &offer());
        assert_eq!(lab.tried, 1, "at once");
        lab.pass(Duration::from_millis(250));
        assert_eq!((lab.lines(), lab.tried), (vec![], 1), "and once");
        lab.indicate(id, Indication::Ringing);
        assert_eq!(lab.lines(), ["180"]);
        lab.answer(id);
        let answer = lab.sent();
        assert_eq!(line(&answer), "200");
        assert!(body(&answer).contains("m=audio 10002 RTP/AVP 0 8 101"), "{}", body(&answer));
        assert!(body(&answer).contains("c=IN IP4 192.0.2.1"));
        assert_eq!(header(&answer, "Contact"), "<sip:192.0.2.1:5060>");
        alice.ack(&mut lab, &answer, "");
        let plan = lab.plan();
        assert_eq!(plan.remote, "198.51.100.7:4000".parse().ok());
        if peer_ends {
            alice.inside(&mut lab, "BYE", "Reason: Q.850;cause=31\r\n", "");
            assert_eq!(lab.lines(), ["200"]);
            assert_eq!(lab.heard().pop().as_deref(), Some("Hangup 31"));
        } else {
            lab.finish(id, Cause::NORMAL_CLEARING);
            let bye = lab.sent();
            assert_eq!(line(&bye), "BYE");
            assert_eq!(header(&bye, "Reason"), "Q.850;cause=16");
            alice.respond(&mut lab, &bye, 200, "", "");
        }
        lab.rest();
    }
}

#[test]
fn a_hangup_before_the_answer_becomes_the_status_of_its_cause() {
    for (cause, status) in [
        (Cause::NONE, "603"),
        (Cause::NORMAL_CLEARING, "603"),
        (Cause::USER_BUSY, "486"),
        (Cause::NO_ANSWER, "480"),
        (Cause::UNALLOCATED, "404"),
        (Cause::CALL_REJECTED, "403"),
        (Cause::NORMAL_CIRCUIT_CONGESTION, "503"),
        (Cause::SWITCH_CONGESTION, "503"),
        (Cause::NUMBER_CHANGED, "410"),
        (Cause::INVALID_NUMBER_FORMAT, "484"),
        (Cause::BEARERCAPABILITY_NOTAVAIL, "488"),
        (Cause::INTERWORKING, "500"),
        (Cause(126), "603"),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &offer());
        lab.finish(id, cause);
        let refusal = lab.sent();
        assert_eq!(line(&refusal), status, "{cause:?}");
        let reason = header(&refusal, "Reason");
        assert_eq!(reason, format!("Q.850;cause={}", cause.0), "{cause:?}");
        lab.rest();
    }
}

#[test]
fn what_a_caller_is_told_before_the_answer_stands_in_the_refusal_too() {
    let party = || call::PartyId::parse("\"Bob\" <102>");
    for (name, connected, rings, withdrawn, status, allow, identity) in [
        ("refused at once", false, false, false, "603", false, ""),
        ("refused after ringing", false, true, false, "603", true, ""),
        ("refused by somebody who is known", true, false, false, "603", false, "\"Bob\" <sip:102@192.0.2.1>"),
        ("refused after ringing by him", true, true, false, "603", true, "\"Bob\" <sip:102@192.0.2.1>"),
        ("withdrawn at once", false, false, true, "487", false, ""),
        ("withdrawn after ringing", true, true, true, "487", true, "\"Bob\" <sip:102@192.0.2.1>"),
    ] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.send_pai = true);
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &offer());
        if connected {
            lab.shard.core.borrow_mut().get_mut(id).unwrap().connected = party();
        }
        if rings {
            lab.indicate(id, Indication::Ringing);
            let ringing = lab.sent();
            assert_eq!(header(&ringing, "Contact"), "<sip:192.0.2.1:5060>", "{name}");
            assert!(header(&ringing, "Allow").starts_with("OPTIONS, REGISTER, SUBSCRIBE"), "{name}");
            assert_eq!(header(&ringing, "P-Asserted-Identity"), identity, "{name}");
        }
        if withdrawn {
            let cancel = alice.same_branch("CANCEL", "sip:100@strowger", alice.cseq, "", "");
            lab.receive(alice.flow, cancel);
            assert_eq!(line(&lab.sent()), "200", "{name}");
        } else {
            lab.finish(id, Cause::NONE);
        }
        let refusal = lab.sent();
        assert_eq!(line(&refusal), status, "{name}");
        assert_eq!(header(&refusal, "Reason"), "Q.850;cause=0", "{name}");
        assert_eq!(header(&refusal, "Allow").is_empty(), !allow, "{name}");
        assert_eq!(header(&refusal, "P-Asserted-Identity"), identity, "{name}");
    }
}

#[test]
fn an_endpoint_may_want_no_reasons() {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.suppress_reason = true);
    let mut lab = Lab::new(config);
    let id = Phone::new("alice").invite(&mut lab, "100", &offer());
    lab.finish(id, Cause::USER_BUSY);
    assert_eq!(header(&lab.sent(), "Reason"), "");
}

#[test]
fn rfc3261_21_calls_that_cannot_be_are_refused_and_leave_nothing() {
    let media = "v=0\r\no=- 1 1 IN IP4 1.2.3.4\r\ns=-\r\nc=IN IP4 1.2.3.4\r\nt=0 0\r\n";
    let video = format!("{media}m=video 4000 RTP/AVP 31\r\n");
    let gsm = format!("{media}m=audio 4000 RTP/AVP 3\r\n");
    let broken = "v=0\r\nm=audio\r\n".to_owned();
    for (name, number, headers, offer, status, header_name, value) in [
        ("no such number", "nobody", "", offer(), "404", "Accept", ""),
        ("more digits could help", "10", "", offer(), "484", "Accept", ""),
        ("no audio", "100", "", video, "488", "Accept", ""),
        ("no common format", "100", "", gsm, "488", "Accept", ""),
        ("a description nobody can read", "100", "", broken, "400", "Accept", ""),
        (
            "text for a body",
            "100",
            "Content-Type: text/plain\r\n",
            "hello".into(),
            "415",
            "Accept",
            "application/sdp, multipart/mixed",
        ),
        (
            "a packed body",
            "100",
            "Content-Encoding: gzip\r\n",
            offer(),
            "415",
            "Accept",
            "application/sdp, multipart/mixed",
        ),
        (
            "RFC 3261 21.4.7: no description is read",
            "100",
            "Accept: text/html\r\n",
            offer(),
            "406",
            "Accept",
            "",
        ),
        (
            "RFC 4566 6: a dynamic number without a map",
            "100",
            "",
            offer().replace("RTP/AVP 0", "RTP/AVP 97 0"),
            "400",
            "Warning",
            "399 192.0.2.1 \"Missing SDP rtpmap for dynamic payload type (PJMEDIA_SDP_EMISSINGRTPMAP)\"",
        ),
        (
            "RFC 4566 5: no address",
            "100",
            "",
            offer().replace("c=IN", "x=IN"),
            "400",
            "Warning",
            "399 192.0.2.1 \"Missing SDP connection line (PJMEDIA_SDP_EMISSINGCONN)\"",
        ),
        (
            "an extension nobody has",
            "100",
            "Require: telepathy\r\n",
            offer(),
            "420",
            "Unsupported",
            "telepathy",
        ),
    ] {
        let mut lab = Lab::new(site());
        let answer = Phone::new("alice").ask(&mut lab, "INVITE", &format!("sip:{number}@s"), headers, &offer);
        assert_eq!(line(&answer), status, "{name}");
        assert_eq!(header(&answer, header_name), value, "{name}");
        lab.rest();
    }
    let mut config = site();
    change(&mut config, "alice", |alice| alice.allow_overlap = false);
    let mut lab = Lab::new(config);
    assert_eq!(line(&Phone::new("alice").ask(&mut lab, "INVITE", "sip:10@s", "", &offer())), "404");
}

#[test]
fn the_extension_is_the_user_of_the_request_uri() {
    for (uri, cut, exten) in [
        ("sip:100@s", false, "100"),
        ("sip:s", false, "s"),
        ("sip:+49%2030@s", false, "+49 30"),
        ("sip:100;phone-context=x@s", false, "100;phone-context=x"),
        ("sip:100;phone-context=x@s", true, "100"),
    ] {
        let mut config = site();
        config.ignore_user_options = cut;
        let mut lab = Lab::new(config);
        Phone::new("trunk").ask(&mut lab, "INVITE", uri, "", &offer());
        let id = lab.started.pop_front().expect(uri);
        let core = lab.shard.core.borrow();
        assert_eq!(core.get(id).unwrap().location.exten, exten, "{uri} {cut}");
    }
}

#[test]
fn rfc3261_9_2_cancel_ends_a_ringing_call_and_tells_why() {
    for (reason, heard) in [
        ("", "Hangup 127"),
        ("Reason: SIP;cause=200;text=\"Call completed elsewhere\"\r\n", "Hangup 26"),
        ("Reason: SIP;cause=480, Q.850;cause=19\r\n", "Hangup 19"),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &offer());
        lab.indicate(id, Indication::Ringing);
        lab.lines();
        let cancel = alice.same_branch("CANCEL", "sip:100@strowger", alice.cseq, reason, "");
        lab.receive(alice.flow, cancel);
        let mut lines = lab.lines();
        lines.sort();
        assert_eq!(lines, ["200", "487"], "{reason}");
        assert_eq!(lab.heard(), [heard], "{reason}");
        lab.rest();
    }
}

#[test]
fn rfc3261_9_2_a_cancel_that_crosses_the_answer_changes_nothing() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &offer());
    lab.answer(id);
    let answer = lab.sent();
    let cancel = alice.same_branch("CANCEL", "sip:100@strowger", alice.cseq, "", "");
    lab.receive(alice.flow, cancel);
    alice.ack(&mut lab, &answer, "");
    assert!(lab.heard().iter().all(|heard| !heard.starts_with("Hangup")));
    lab.lines();
    alice.inside(&mut lab, "BYE", "", "");
    assert_eq!(lab.lines(), ["200"]);
    lab.rest();
}

#[test]
fn a_hangup_before_the_ack_says_bye_when_it_has_come() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &offer());
    lab.answer(id);
    let answer = lab.sent();
    lab.finish(id, Cause::NORMAL_CLEARING);
    assert!(lab.lines().is_empty());
    assert_eq!(lab.streams.borrow().open.len(), 0);
    alice.ack(&mut lab, &answer, "");
    assert_eq!(lab.lines(), ["BYE"]);
    lab.rest();
}

#[test]
fn rfc3261_13_3_1_4_an_answer_that_is_never_acknowledged_ends_the_call() {
    let mut lab = Lab::new(site());
    let id = Phone::new("alice").invite(&mut lab, "100", &offer());
    lab.answer(id);
    lab.pass(Duration::from_secs(33));
    assert_eq!(lab.heard(), ["Hangup 102"]);
    lab.rest();
}

#[test]
fn early_media_is_told_once_and_ringing_does_not_take_it_back() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &offer());
    for indication in [
        Indication::Ringing,
        Indication::Ringing,
        Indication::Progress,
        Indication::Ringing,
        Indication::Progress,
    ] {
        lab.indicate(id, indication);
    }
    let ringing = lab.sent();
    let early = lab.sent();
    assert_eq!((line(&ringing), body(&ringing)), ("180".to_owned(), String::new()));
    assert_eq!(line(&early), "183");
    assert!(lab.next().is_none());
    lab.answer(id);
    assert_eq!(body(&lab.sent()), body(&early), "183 and 200 carry the same answer");
    let mut config = site();
    config.ringing_after_progress = true;
    let mut lab = Lab::new(config);
    let id = Phone::new("alice").invite(&mut lab, "100", &offer());
    lab.indicate(id, Indication::Progress);
    lab.indicate(id, Indication::Ringing);
    assert_eq!(lab.lines(), ["183", "180"]);
}

#[test]
fn inband_progress_rings_by_early_media() {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.inband_progress = true);
    let mut lab = Lab::new(config);
    let id = Phone::new("alice").invite(&mut lab, "100", &offer());
    lab.indicate(id, Indication::Ringing);
    lab.indicate(id, Indication::Ringing);
    assert_eq!(lab.lines(), ["183"]);
    assert_eq!(lab.streams.borrow_mut().commands.split_off(0), ["play"]);
    lab.answer(id);
    assert_eq!(lab.streams.borrow_mut().commands.split_off(0), ["stop"]);
}

#[test]
fn rfc3261_13_2_1_a_call_without_offer_gets_ours_in_the_200_and_lives_by_the_answer_in_the_ack() {
    for (name, answer_sdp, lives) in [
        ("an answer", sdp("198.51.100.7", 4000, "8 101"), true),
        ("no answer", String::new(), false),
        ("an answer that refuses", sdp("198.51.100.7", 0, "8"), false),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", "");
        lab.indicate(id, Indication::Progress);
        let early = lab.sent();
        assert_eq!((line(&early), body(&early)), ("183".to_owned(), String::new()), "{name}");
        lab.answer(id);
        let answer = lab.sent();
        assert!(body(&answer).contains("m=audio 10002 RTP/AVP 0 8 101"), "{name}");
        alice.ack(&mut lab, &answer, &answer_sdp);
        if lives {
            assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
            assert_eq!(lab.plan().format, base::FormatId::ALAW);
            alice.inside(&mut lab, "BYE", "", "");
        } else {
            assert_eq!(lab.heard().pop().as_deref(), Some("Hangup 127"), "{name}");
            let bye = lab.sent();
            assert_eq!(
                (line(&bye), header(&bye, "Reason")),
                ("BYE".to_owned(), "Q.850;cause=0".to_owned()),
                "{name}"
            );
        }
        lab.rest();
    }
}

#[test]
fn an_unanswered_caller_can_be_sent_elsewhere() {
    for (target, contact) in [
        ("trunk", Some("<sip:trunk@198.51.100.7:5062>")),
        ("PJSIP/trunk", Some("<sip:trunk@198.51.100.7:5062>")),
        ("PJSIP/sip:200@example.org", Some("<sip:200@example.org>")),
        ("sips:200@example.org", Some("<sips:200@example.org>")),
        ("200", None),
        ("bob", None),
        ("http://example.org", None),
    ] {
        let mut lab = Lab::new(site());
        let id = Phone::new("alice").invite(&mut lab, "100", &offer());
        let sent = lab.shard.with_tech(id, |tech, core| tech.transfer(core, id, target));
        let expected = if contact.is_some() { Transferring::Begun } else { Transferring::Failed };
        assert_eq!(sent, Some(expected), "{target}");
        lab.finish(id, Cause::NORMAL_CLEARING);
        let Some(contact) = contact else { continue };
        let moved = lab.sent();
        assert_eq!((line(&moved).as_str(), header(&moved, "Contact").as_str()), ("302", contact));
        assert_eq!(header(&moved, "Reason"), "Q.850;cause=0");
        lab.rest();
    }
}

#[test]
fn rfc3325_who_answers_is_told_to_those_who_may_know() {
    for (pai, rpid, names) in [(true, false, "P-Asserted-Identity"), (false, true, "Remote-Party-ID")] {
        let mut config = site();
        change(&mut config, "alice", |alice| (alice.send_pai, alice.send_rpid) = (pai, rpid));
        let mut lab = Lab::new(config);
        let id = Phone::new("alice").invite(&mut lab, "100", &offer());
        lab.indicate(id, Indication::ConnectedLine(call::PartyId::parse("\"Bob\" <6002>")));
        lab.answer(id);
        let identity = header(&lab.sent(), names);
        assert!(identity.starts_with("\"Bob\" <sip:6002@192.0.2.1>"), "{identity}");
    }
}

#[test]
fn the_caller_is_who_the_endpoint_says_before_what_is_asserted_before_from() {
    for (name, trusted, fixed, headers, expected) in [
        ("From", false, "", "", "\"Al\" <alice>"),
        (
            "an assertion that is not believed",
            false,
            "",
            "P-Asserted-Identity: <sip:999@x>\r\n",
            "\"Al\" <alice>",
        ),
        ("P-Asserted-Identity", true, "", "P-Asserted-Identity: \"Q\" <sip:999@x>\r\n", "\"Q\" <999>"),
        ("Remote-Party-ID", true, "", "Remote-Party-ID: \"R\" <sip:998@x>;privacy=off\r\n", "\"R\" <998>"),
        (
            "callerid=",
            true,
            "\"Desk\" <6001>",
            "P-Asserted-Identity: \"Q\" <sip:999@x>\r\n",
            "\"Desk\" <6001>",
        ),
    ] {
        let mut config = site();
        change(&mut config, "alice", |alice| {
            alice.trust_id_inbound = trusted;
            alice.caller = call::PartyId::parse(fixed);
            alice.auths.clear();
        });
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let text = alice
            .request("INVITE", "sip:100@s", headers, &offer())
            .replace("From: <sip", "From: \"Al\" <sip");
        lab.receive(alice.flow, text);
        let id = lab.started.pop_front().unwrap();
        let core = lab.shard.core.borrow();
        assert_eq!(core.get(id).unwrap().caller.all(), expected, "{name}");
    }
}

#[test]
fn a_panic_in_one_dialog_ends_that_call_and_no_other() {
    let mut lab = Lab::new(site());
    let mut one = Phone::new("trunk").call("one");
    let mut two = Phone::new("trunk").call("two");
    let first = one.invite(&mut lab, "100", &offer());
    let second = two.invite(&mut lab, "100", &offer());
    lab.answer(first);
    let answer = lab.sent();
    one.ack(&mut lab, &answer, "");
    lab.answer(second);
    let answer = lab.sent();
    two.ack(&mut lab, &answer, "");
    lab.lines();
    lab.streams.borrow_mut().explosive = Some(8);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    one.inside(&mut lab, "INVITE", "", &sdp("198.51.100.7", 4000, "8"));
    std::panic::set_hook(hook);
    assert_eq!(lab.heard().last().map(String::as_str), Some("Hangup 41"));
    assert!(lab.lines().contains(&"BYE".to_owned()));
    assert_eq!(lab.shard.core.borrow().channel_count(), 1);
    two.inside(&mut lab, "INFO", "Content-Type: application/dtmf-relay\r\n", "Signal=5\r\n");
    assert_eq!(lab.lines(), ["200"]);
    two.inside(&mut lab, "BYE", "", "");
    lab.rest();
}

#[test]
fn a_panic_over_an_invite_refuses_that_call_and_undoes_what_it_began() {
    let mut lab = Lab::new(site());
    lab.streams.borrow_mut().explosive = Some(8);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut phone = Phone::new("trunk");
    // The dialplan's look-up panics before anything was begun, the media door after everything was.
    phone.ask_quietly(&mut lab, "INVITE", "sip:panic@s", "", &offer());
    let text = phone.request("INVITE", "sip:100@s", "", &sdp("198.51.100.7", 4000, "8"));
    lab.receive(phone.flow, text);
    std::panic::set_hook(hook);
    assert_eq!(lab.lines(), ["500"]);
    assert!(lab.started.is_empty());
    assert_eq!(lab.shard.core.borrow().channel_count(), 0);
    let id = Phone::new("trunk").call("next").invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0"));
    lab.finish(id, Cause::USER_BUSY);
    lab.rest();
}
