//! Calls that go out.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;

use ::sip::stack::{Protocol, TransportId};
use base::Cause;
use base::dns::{Answer, Kind, Question};
use call::{PartyId, Request};
use driver::sip::{Auth, Bind, Proof};

use crate::lab::{Lab, PHONE, SECRET, address, body, change, change_aor, header, line, site};
use crate::phone::{Phone, sdp};

fn answer() -> String {
    sdp("198.51.100.7", 4000, "0 101")
}

#[test]
fn rfc3261_13_2_a_call_rings_is_answered_and_ended_by_either_side() {
    for peer_ends in [true, false] {
        let mut lab = Lab::new(site());
        let mut trunk = Phone::new("trunk");
        let id = lab.dial("4930123@trunk").unwrap();
        let (flow, invite) = lab.next().unwrap();
        assert_eq!(flow.remote, address(PHONE));
        assert_eq!(invite.view().request_uri_bytes(), b"sip:4930123@198.51.100.7:5062");
        assert_eq!(header(&invite, "To"), "<sip:4930123@198.51.100.7>");
        assert!(
            header(&invite, "From").starts_with("\"Anonymous\" <sip:anonymous@anonymous.invalid>"),
            "{}",
            header(&invite, "From")
        );
        assert!(
            header(&invite, "Via").starts_with("SIP/2.0/UDP 192.0.2.1:5060;"),
            "{}",
            header(&invite, "Via")
        );
        assert_eq!(header(&invite, "Contact"), "<sip:asterisk@192.0.2.1:5060>");
        trunk.called(&invite);
        trunk.respond(&mut lab, &invite, 100, "", "");
        trunk.respond(&mut lab, &invite, 180, "", "");
        trunk.respond(&mut lab, &invite, 200, "", &answer());
        assert_eq!(lab.heard(), ["Ringing", "Answered"]);
        assert_eq!(lab.lines(), ["ACK"]);
        assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
        trunk.respond(&mut lab, &invite, 200, "", &answer());
        assert_eq!(lab.lines(), ["ACK"], "a repeated 200 is acknowledged again");
        if peer_ends {
            trunk.inside(&mut lab, "BYE", "", "");
            assert_eq!(lab.lines(), ["200"]);
            // Nobody says why, and nobody talks to it.
            assert_eq!(lab.heard(), ["Hangup 0"]);
        } else {
            lab.finish(id, Cause::NORMAL_CLEARING);
            let bye = lab.sent();
            assert_eq!(line(&bye), "BYE");
            trunk.respond(&mut lab, &bye, 200, "", "");
        }
        lab.rest();
    }
}

#[test]
fn rfc3398_7_2_4_a_refusal_becomes_its_cause() {
    for (status, headers, cause) in [
        (486, "", 17),
        (600, "", 17),
        (603, "", 21),
        (403, "", 21),
        (404, "", 1),
        (480, "", 19),
        (483, "", 19),
        (408, "", 18),
        (503, "", 34),
        (488, "", 58),
        (484, "", 28),
        (500, "", 38),
        (486, "Reason: Q.850;cause=34\r\n", 34),
        (503, "Reason: SIP;cause=486\r\n", 34),
    ] {
        let mut lab = Lab::new(site());
        let trunk = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        trunk.respond(&mut lab, &invite, status, headers, "");
        assert_eq!(lab.heard(), [format!("Hangup {cause}")], "{status} {headers}");
        assert_eq!(lab.lines(), ["ACK"], "{status}");
        lab.rest();
    }
}

#[test]
fn rfc3261_17_1_1_2_a_call_that_nobody_hears_ends() {
    let mut lab = Lab::new(site());
    lab.dial("trunk").unwrap();
    lab.pass(Duration::from_secs(33));
    assert_eq!(lab.heard(), ["Hangup 18"]);
    lab.rest();
}

#[test]
fn a_hangup_does_what_the_stage_of_the_call_asks_for() {
    // Never called: nothing is sent, the stream does not exist yet.
    let mut lab = Lab::new(site());
    let request = Request { resource: "trunk".to_owned(), ..Request::default() };
    let id = lab.shard.request("PJSIP", &request).unwrap();
    lab.finish(id, Cause::NORMAL_CLEARING);
    assert!(lab.lines().is_empty());
    lab.rest();
    // Calling without a response: CANCEL waits for one (RFC 3261 §9.1).
    let trunk = Phone::new("trunk");
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    lab.finish(id, Cause::NORMAL_CLEARING);
    assert!(lab.lines().is_empty());
    trunk.respond(&mut lab, &invite, 180, "", "");
    let cancel = lab.sent();
    assert_eq!((line(&cancel).as_str(), header(&cancel, "Reason").as_str()), ("CANCEL", "Q.850;cause=16"));
    trunk.respond(&mut lab, &cancel, 200, "", "");
    trunk.respond(&mut lab, &invite, 487, "", "");
    assert_eq!(lab.lines(), ["ACK"]);
    lab.rest();
    // The 200 crosses the CANCEL: it is acknowledged and ended (§15).
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    trunk.respond(&mut lab, &invite, 180, "", "");
    lab.finish(id, Cause::ANSWERED_ELSEWHERE);
    let cancel = lab.sent();
    assert_eq!(header(&cancel, "Reason"), "SIP;cause=200;text=\"Call completed elsewhere\"");
    trunk.respond(&mut lab, &invite, 200, "", &answer());
    assert_eq!(lab.lines(), ["ACK", "BYE"]);
    lab.rest();
}

#[test]
fn early_media_flows_by_183_and_what_it_means_without_a_description_is_the_endpoints_choice() {
    for (name, ignore, sdp, heard, flows) in [
        ("with a description", false, answer(), vec!["Progress"], true),
        ("without", false, String::new(), vec!["Progress"], false),
        ("without, and not wanted", true, String::new(), vec![], false),
        ("with one, though", true, answer(), vec!["Progress"], true),
    ] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| trunk.ignore_183_without_sdp = ignore);
        let mut lab = Lab::new(config);
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        Phone::new("trunk").respond(&mut lab, &invite, 183, "", &sdp);
        assert_eq!(lab.heard(), heard, "{name}");
        assert_eq!(lab.plan().remote.is_some(), flows, "{name}");
    }
}

#[test]
fn rfc3261_13_2_2_4_the_fork_that_answers_is_the_one_that_is_heard() {
    let mut lab = Lab::new(site());
    let (mut left, mut right) = (Phone::new("trunk"), Phone::new("trunk"));
    (left.tag, right.tag) = ("left".to_owned(), "right".to_owned());
    lab.dial("trunk").unwrap();
    let invite = lab.sent();
    left.respond(&mut lab, &invite, 183, "", &sdp("198.51.100.7", 4000, "0"));
    assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
    right.respond(&mut lab, &invite, 183, "", &sdp("198.51.100.7", 5000, "8"));
    assert_eq!(lab.plan().remote, "198.51.100.7:5000".parse().ok());
    left.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "0"));
    assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
    assert_eq!(lab.plan().format, base::FormatId::ULAW);
    lab.lines();
    // The other fork answers too: it is acknowledged and ended.
    right.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 5000, "8"));
    let lines = lab.lines();
    assert_eq!(lines, ["ACK", "BYE"]);
    assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
}

#[test]
fn rfc3261_13_2_1_of_several_answers_the_one_counts_that_the_endpoint_wants() {
    let (left, right) = ("left", "right");
    for (name, follow, every, responses, expected) in [
        ("the first of a branch", true, false, [(183, left, 4000), (183, left, 5000)], 4000),
        ("the last of a branch", true, true, [(183, left, 4000), (183, left, 5000)], 5000),
        ("that of the last branch", true, false, [(183, left, 4000), (183, right, 5000)], 5000),
        ("that of the first branch", false, true, [(183, left, 4000), (183, right, 5000)], 4000),
        ("that of the branch that answers", false, false, [(183, left, 4000), (200, right, 5000)], 5000),
        ("the first of the branch that answers", true, false, [(183, left, 4000), (200, left, 5000)], 4000),
        ("the last of the branch that answers", true, true, [(183, left, 4000), (200, left, 5000)], 5000),
    ] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| (trunk.follow_fork, trunk.take_every_answer) = (follow, every));
        let mut lab = Lab::new(config);
        let mut trunk = Phone::new("trunk");
        let id = lab.dial("trunk").unwrap();
        let invite = lab.sent();
        for (status, tag, port) in responses {
            tag.clone_into(&mut trunk.tag);
            trunk.respond(&mut lab, &invite, status, "", &sdp("198.51.100.7", port, "0"));
        }
        assert_eq!(lab.plan().remote, format!("198.51.100.7:{expected}").parse().ok(), "{name}");
        lab.finish(id, Cause::NORMAL_CLEARING);
        let last = lab.lines().pop();
        let ended = if responses[1].0 == 200 { "BYE" } else { "CANCEL" };
        assert_eq!(last.as_deref(), Some(ended), "{name}: the call lives until then");
    }
}

#[test]
fn contact_and_from_say_what_the_site_wants_of_them() {
    type Change = fn(&mut driver::sip::Config);
    let rows: [(&str, Change, &str, &str); 5] = [
        (
            "a number that is withheld",
            |c| c.callerid_contact = true,
            "Contact",
            "<sip:anonymous@192.0.2.1:5060>",
        ),
        ("the site's user", |_| {}, "Contact", "<sip:asterisk@192.0.2.1:5060>"),
        ("the caller's number", |c| c.callerid_contact = true, "Contact", "<sip:6001@192.0.2.1:5060>"),
        ("the transport's address", |_| {}, "From", "<sip:6001@192.0.2.1>"),
        ("its domain", |c| c.binds[0].domain = "pbx.example".into(), "From", "<sip:6001@pbx.example>"),
    ];
    for (name, edit, names, expected) in rows {
        let mut config = site();
        edit(&mut config);
        let mut lab = Lab::new(config);
        let mut caller = PartyId::parse("\"Jo\" <6001>");
        if name.ends_with("withheld") {
            caller.number_presentation = call::Presentation::ProhibNotScreened;
        }
        let hidden = caller.number_presentation.is_hidden();
        let caller = if hidden { caller } else { PartyId::parse("6001") };
        let request = Request { caller: Some(caller), ..Request::default() };
        lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        let text = String::from_utf8_lossy(invite.view().as_bytes()).into_owned();
        assert!(!hidden || !text.contains("6001") && !text.contains("Jo"), "nothing tells it: {text}");
        let found = header(&invite, names);
        assert_eq!(found.split(";tag=").next().unwrap(), expected, "{name}");
    }
}

/// Who calls on behalf of a channel (an attended transfer, one who is called back, a program) is named like anybody.
#[test]
fn a_call_names_who_calls_unless_whoever_asked_for_it_tells_that_later() {
    for (name, on_behalf, is_told_later, expected) in [
        ("of its own accord", false, false, "\"Al\" <sip:6001@"),
        ("on behalf of a channel", true, false, "\"Al\" <sip:6001@"),
        ("told later, which nobody does here", true, true, "\"Anonymous\" <sip:anonymous@"),
    ] {
        let mut lab = Lab::new(site());
        lab.storyless = true;
        let mut alice = Phone::new("alice");
        let requestor = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0"));
        lab.lines();
        let requestor = Some(requestor).filter(|_| on_behalf);
        let caller = Some(PartyId::parse("\"Al\" <6001>"));
        let request = Request { requestor, caller, is_told_later, ..Request::default() };
        lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        let from = header(&invite, "From");
        assert!(from.starts_with(expected), "{name}: {from}");
    }
}

#[test]
fn an_answer_without_a_session_ends_the_call() {
    for (name, early, last, lives) in [
        ("no description at all", "", "", false),
        ("a refused stream", "", "refused", false),
        ("the description of the 183 holds", "good", "", true),
        ("another one in the 200 is ignored", "good", "other", true),
    ] {
        let text = |which: &str| match which {
            "good" => answer(),
            "other" => sdp("198.51.100.9", 4444, "8"),
            "refused" => sdp("198.51.100.7", 0, "0"),
            _ => String::new(),
        };
        let mut lab = Lab::new(site());
        let trunk = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        if !early.is_empty() {
            trunk.respond(&mut lab, &invite, 183, "", &text(early));
        }
        trunk.respond(&mut lab, &invite, 200, "", &text(last));
        let lines = lab.lines();
        if lives {
            assert_eq!(lines, ["ACK"], "{name}");
            assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok(), "{name}");
        } else {
            assert_eq!(lines, ["ACK", "BYE"], "{name}");
            assert_eq!(lab.heard(), ["Answered", "Hangup 58"], "{name}: it has answered");
            lab.rest();
        }
    }
}

#[test]
fn rfc4566_5_a_call_of_whose_early_session_nothing_can_be_understood_is_withdrawn() {
    for (name, from, to, is_withdrawn) in [
        ("as it should be", "", "", false),
        ("no map of a dynamic number", "RTP/AVP 0", "RTP/AVP 97 0", true),
        ("no address", "c=IN IP4 198.51.100.7\r\n", "", true),
        ("no owner", "o=", "x=", true),
    ] {
        let mut lab = Lab::new(site());
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        let early = if from.is_empty() { answer() } else { answer().replace(from, to) };
        Phone::new("trunk").respond(&mut lab, &invite, 183, "", &early);
        let expected: &[&str] = if is_withdrawn { &["CANCEL"] } else { &[] };
        assert_eq!(lab.lines(), expected, "{name}");
        assert_eq!(lab.heard().last().is_some_and(|last| last == "Hangup 58"), is_withdrawn, "{name}");
    }
}

#[test]
fn rfc3261_22_2_every_request_of_a_session_proves_itself_with_the_endpoints_login() {
    let challenge = "WWW-Authenticate: Digest realm=\"p\",nonce=\"n\",algorithm=MD5,qop=\"auth\"\r\n";
    for (name, guards, proves) in [("anybody", false, true), ("guarded", true, false)] {
        let mut config = site();
        config.auths.insert("out".into(), config.auths["alice"].clone());
        change(&mut config, "trunk", |trunk| {
            (trunk.outbound_auths, trunk.guards_logins) = (vec!["out".into()], guards);
        });
        // Whatever host was dialled.
        let mut lab = Lab::new(config);
        lab.dial("trunk/sip:0301234@203.0.113.40").unwrap();
        let invite = lab.sent();
        let host = Phone::at("trunk", crate::lab::udp("203.0.113.40:5060"));
        host.respond(&mut lab, &invite, 401, challenge, "");
        let expected: &[&str] = if proves { &["ACK", "INVITE"] } else { &["ACK"] };
        assert_eq!(lab.lines(), expected, "{name}");
        // Whoever has begun the call.
        let mut caller = Phone::new("trunk").call("in");
        let id = caller.invite(&mut lab, "100", &answer());
        lab.answer(id);
        let ok = lab.sent();
        caller.ack(&mut lab, &ok, "");
        lab.with(|sip, core| call::Tech::write(sip, core, id, "PJSIP_SEND_SESSION_REFRESH", "", "invite"));
        let again = lab.sent();
        assert_eq!(line(&again), "INVITE");
        caller.respond(&mut lab, &again, 401, challenge, "");
        assert_eq!(line(&lab.sent()), "ACK", "{name}");
        if proves {
            let again = lab.sent();
            assert!(
                header(&again, "Authorization").contains("uri=\"sip:trunk@198.51.100.7:5062\""),
                "{name}"
            );
            // Refused again: the session goes on as it was.
            caller.respond(&mut lab, &again, 401, challenge, "");
            assert_eq!(lab.lines(), ["ACK"]);
        }
        lab.finish(id, Cause::NORMAL_CLEARING);
        let bye = lab.sent();
        caller.respond(&mut lab, &bye, 401, challenge, "");
        let expected: &[&str] = if proves { &["BYE"] } else { &[] };
        assert_eq!(lab.lines(), expected, "{name}");
    }
}

#[test]
fn rfc3261_22_2_a_challenge_is_answered_once_with_the_endpoints_own_login() {
    for (name, realm, offered, answered) in [
        ("any realm", "", "provider", true),
        ("the right realm", "provider", "provider", true),
        ("somebody else's realm", "provider", "thief", false),
    ] {
        let mut config = site();
        let auth = Auth {
            username: "account".to_owned(),
            realm: realm.to_owned(),
            proof: Proof::Password(SECRET.to_owned()),
            algorithms: Vec::new(),
            answers: Vec::new(),
        };
        config.auths.insert("out".into(), std::rc::Rc::new(auth));
        change(&mut config, "trunk", |trunk| trunk.outbound_auths = vec!["out".into()]);
        let mut lab = Lab::new(config);
        let trunk = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        let challenge = format!(
            "WWW-Authenticate: Digest realm=\"{offered}\",nonce=\"n1\",algorithm=MD5,qop=\"auth\"\r\n"
        );
        trunk.respond(&mut lab, &invite, 401, &challenge, "");
        assert_eq!(line(&lab.sent()), "ACK", "{name}");
        if answered {
            let again = lab.sent();
            assert!(header(&again, "Authorization").contains("username=\"account\""), "{name}");
            // Refused again: the login is wrong, and nobody tries for ever.
            trunk.respond(&mut lab, &again, 401, &challenge, "");
            assert_eq!(lab.lines(), ["ACK"], "{name}");
        }
        assert_eq!(lab.heard(), ["Hangup 21"], "{name}");
        lab.rest();
    }
}

#[test]
fn rfc3261_22_2_a_challenged_bye_is_sent_once_more_and_a_guarded_login_only_to_whom_we_called() {
    let mut config = site();
    config.auths.insert("out".into(), config.auths["alice"].clone());
    change(&mut config, "trunk", |trunk| {
        (trunk.outbound_auths, trunk.guards_logins) = (vec!["out".into()], true);
    });
    let mut lab = Lab::new(config);
    let challenge = "WWW-Authenticate: Digest realm=\"p\",nonce=\"n\",algorithm=MD5,qop=\"auth\"\r\n";
    let trunk = Phone::new("trunk");
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    trunk.respond(&mut lab, &invite, 401, challenge, "");
    assert_eq!(line(&lab.sent()), "ACK");
    let invite = lab.sent();
    trunk.respond(&mut lab, &invite, 200, "", &answer());
    lab.lines();
    lab.finish(id, Cause::NORMAL_CLEARING);
    let bye = lab.sent();
    trunk.respond(&mut lab, &bye, 401, challenge, "");
    let again = lab.sent();
    assert_eq!(line(&again), "BYE");
    assert!(header(&again, "Authorization").contains("uri=\"sip:trunk@198.51.100.7:5062\""));
    trunk.respond(&mut lab, &again, 401, challenge, "");
    assert!(lab.lines().is_empty());
    // A caller who challenges our BYE wants our login; it does not get it.
    let mut caller = Phone::new("trunk").call("in");
    let id = caller.invite(&mut lab, "100", &answer());
    lab.answer(id);
    let ok = lab.sent();
    caller.ack(&mut lab, &ok, "");
    lab.finish(id, Cause::NORMAL_CLEARING);
    let bye = lab.sent();
    caller.respond(&mut lab, &bye, 401, challenge, "");
    assert!(lab.lines().is_empty());
    lab.rest();
}

#[test]
fn a_peer_that_calls_every_nonce_stale_is_given_up() {
    let mut config = site();
    config.auths.insert("out".into(), config.auths["alice"].clone());
    change(&mut config, "trunk", |trunk| trunk.outbound_auths = vec!["out".into()]);
    let mut lab = Lab::new(config);
    let trunk = Phone::new("trunk");
    lab.dial("trunk").unwrap();
    let mut tries = 0;
    while let Some((_, message)) = lab.next() {
        if line(&message) == "INVITE" {
            tries += 1;
            let challenge =
                format!("Proxy-Authenticate: Digest realm=\"p\",nonce=\"n{tries}\",stale=true\r\n");
            trunk.respond(&mut lab, &message, 407, &challenge, "");
        }
        assert!(tries < 10);
    }
    assert_eq!((tries, lab.heard()), (4, vec!["Hangup 21".to_owned()]));
    lab.rest();
}

#[test]
fn a_redirection_is_told_to_whoever_dialled() {
    for (contact, heard) in [
        ("<sip:200@198.51.100.7>", vec!["Forwarded(\"Local/200@phones\")", "Hangup 23"]),
        (
            "<sip:1@x>;q=0.2, <sip:200@x>;q=0.70, <sip:3@x>;q=0.7",
            vec!["Forwarded(\"Local/200@phones\")", "Hangup 23"],
        ),
        ("<sip:1@x>;q=0.9, <sip:200@x>", vec!["Forwarded(\"Local/200@phones\")", "Hangup 23"]),
        ("<sip:200&PJSIP%2f900@198.51.100.7>", vec!["Hangup 23"]),
        ("<sip:198.51.100.7>", vec!["Hangup 23"]),
    ] {
        let mut lab = Lab::new(site());
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        Phone::new("trunk").respond(&mut lab, &invite, 302, &format!("Contact: {contact}\r\n"), "");
        assert_eq!(lab.heard(), heard, "{contact}");
        lab.rest();
    }
}

#[test]
fn dial_strings_name_endpoints_numbers_and_addresses() {
    for (resource, outcome) in [
        ("trunk", Ok("sip:trunk@198.51.100.7:5062")),
        ("123@trunk", Ok("sip:123@198.51.100.7:5062")),
        ("trunk/123", Ok("sip:123@198.51.100.7:5062")),
        ("trunk/sip:bob@203.0.113.3:5080", Ok("sip:bob@203.0.113.3:5080")),
        ("1 2@trunk", Ok("sip:1%202@198.51.100.7:5062")),
        ("sip:x@203.0.113.3", Err(Cause::NO_ROUTE_DESTINATION)),
        ("carol", Err(Cause::NO_ROUTE_DESTINATION)),
        ("alice", Err(Cause::NO_ROUTE_DESTINATION)),
        ("trunk/sip:bob@[2001:db8::1]", Err(Cause::NO_ROUTE_DESTINATION)),
        ("trunk/tel:123", Ok("sip:tel%3A123@198.51.100.7:5062")),
        ("trunk/sip:a@b\r\nX: y", Err(Cause::NO_ROUTE_DESTINATION)),
    ] {
        let mut lab = Lab::new(site());
        let dialled = lab.dial(resource).map(|_| {
            let invite = lab.sent();
            String::from_utf8_lossy(invite.view().request_uri_bytes()).into_owned()
        });
        assert_eq!(dialled, outcome.map(str::to_owned), "{resource}");
    }
    let mut config = site();
    config.default_outbound = "trunk".to_owned();
    let mut lab = Lab::new(config);
    lab.dial("sip:x@203.0.113.3").unwrap();
    assert_eq!(lab.next().unwrap().0.remote, address("203.0.113.3:5060"));
}

#[test]
fn from_contact_route_and_identity_are_what_the_endpoint_says() {
    let caller = |text: &str| PartyId::parse(text);
    let hidden =
        PartyId { number_presentation: call::Presentation::ProhibPassedScreen, ..caller("\"Al\" <6001>") };
    type Change = fn(&mut driver::sip::Endpoint);
    let rows: Vec<(&str, Change, PartyId, &str, &str)> = vec![
        ("the caller", |_| {}, caller("\"Al\" <6001>"), "From", "\"Al\" <sip:6001@192.0.2.1>"),
        ("from_user", |e| e.from_user = "acc".into(), caller("6001"), "From", "<sip:acc@192.0.2.1>"),
        ("from_domain", |e| e.from_domain = "x.org".into(), caller("6001"), "From", "<sip:6001@x.org>"),
        ("hidden", |_| {}, hidden.clone(), "From", "\"Anonymous\" <sip:anonymous@anonymous.invalid>"),
        ("user=phone", |e| e.user_eq_phone = true, caller("6001"), "From", "<sip:6001@192.0.2.1;user=phone>"),
        ("contact_user", |e| e.contact_user = "me".into(), caller(""), "Contact", "<sip:me@192.0.2.1:5060>"),
        ("send_pai", |e| e.send_pai = true, caller("6001"), "P-Asserted-Identity", "<sip:6001@192.0.2.1>"),
        ("hidden from those not trusted", |e| e.send_pai = true, hidden.clone(), "P-Asserted-Identity", ""),
        (
            "told those who are",
            |e| (e.send_pai, e.trust_id_outbound) = (true, true),
            hidden,
            "P-Asserted-Identity",
            "\"Al\" <sip:6001@192.0.2.1>",
        ),
        (
            "send_rpid",
            |e| e.send_rpid = true,
            caller("6001"),
            "Remote-Party-ID",
            "<sip:6001@192.0.2.1>;party=calling;privacy=off;screen=no",
        ),
        (
            "a proxy",
            |e| e.outbound_proxy = "sip:203.0.113.8".into(),
            caller(""),
            "Route",
            "<sip:203.0.113.8;lr>",
        ),
    ];
    for (name, edit, party, names, expected) in rows {
        let mut config = site();
        change(&mut config, "trunk", edit);
        let mut lab = Lab::new(config);
        let request = Request { caller: Some(party), ..Request::default() };
        lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        let found = header(&invite, names);
        assert_eq!(found.split(";tag=").next().unwrap(), expected, "{name}");
    }
}

#[test]
fn a_proxy_gets_the_request_and_the_contact_stays_its_target() {
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.outbound_proxy = "sip:203.0.113.8:5090;lr".to_owned());
    let mut lab = Lab::new(config);
    lab.dial("trunk").unwrap();
    let (flow, invite) = lab.next().unwrap();
    assert_eq!(flow.remote, address("203.0.113.8:5090"));
    assert_eq!(invite.view().request_uri_bytes(), b"sip:trunk@198.51.100.7:5062");
}

#[test]
fn addresses_that_the_world_sees_stand_in_for_our_own_outside_the_local_nets() {
    for (peer, media, signalling) in [
        ("198.51.100.7", "203.0.113.99", "pbx.example.org:5060"),
        ("10.1.1.1", "192.0.2.1", "192.0.2.1:5060"),
    ] {
        let mut config = site();
        for bind in &mut config.binds {
            bind.external_media = "203.0.113.99".parse().ok();
            bind.external_signaling = Some("pbx.example.org:5060".to_owned());
            bind.local_nets = vec![("10.0.0.0".parse().unwrap(), 8)];
        }
        change_aor(&mut config, "trunk", |aor| aor.contacts = vec![format!("sip:t@{peer}")]);
        let mut lab = Lab::new(config);
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        assert!(body(&invite).contains(&format!("c=IN IP4 {media}\r\n")), "{peer}");
        assert_eq!(header(&invite, "Contact"), format!("<sip:asterisk@{signalling}>"), "{peer}");
        assert!(header(&invite, "Via").contains(signalling), "{peer}");
    }
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.media_address = "203.0.113.77".parse().ok());
    let mut lab = Lab::new(config);
    lab.dial("trunk").unwrap();
    assert!(body(&lab.sent()).contains("c=IN IP4 203.0.113.77\r\n"));
}

#[test]
fn headers_of_the_dialplan_are_added_changed_read_and_taken_away() {
    let mut lab = Lab::new(site());
    let write = |shard: &call::Shard, id, args: &str, value: &str| {
        shard.with_tech(id, |tech, core| tech.write(core, id, "PJSIP_HEADER", args, value)).unwrap()
    };
    lab.dial_with("trunk", Request::default(), |shard, id| {
        assert!(write(shard, id, "add,X-One", "1"));
        assert!(write(shard, id, "add,X-Two", "2"));
        assert!(write(shard, id, "update,X-One", "uno"));
        assert!(write(shard, id, "add,Y-Three", "3"));
        assert!(write(shard, id, "add,Evil", "a\r\nInjected: yes"));
        assert!(write(shard, id, "remove,X-T*", ""));
        // Of several of one name, a number says which is changed or read; what is read to be removed says how many.
        for value in ["1", "2", "3"] {
            assert!(write(shard, id, "add,X-Many", value));
            assert!(write(shard, id, "add,Z-Gone", value));
        }
        assert!(write(shard, id, "update,X-Many,2", "two"));
        assert!(!write(shard, id, "update,X-Many,4", "four"));
        let read =
            |args: &str| shard.with_tech(id, |tech, core| tech.read(core, id, "PJSIP_HEADER", args)).unwrap();
        for (args, value) in [
            ("read,X-Many", Some("1")),
            ("read,x-many,2", Some("two")),
            ("read,X-Man*,3", Some("3")),
            ("read,X-Many,4", Some("")),
            ("read,None", Some("")),
            ("remove,Z-Gone", Some("3")),
            ("remove,Z-Gone", Some("0")),
            ("steal,X-Many", None),
        ] {
            assert_eq!(read(args).as_deref(), value, "{args}");
        }
        for reserved in ["add,Via", "add,Contact", "add,X Y", "add,", "steal,X"] {
            assert!(!write(shard, id, reserved, "1"), "{reserved}");
        }
    })
    .unwrap();
    let invite = lab.sent();
    for (name, value) in [("X-One", "uno"), ("X-Two", ""), ("Y-Three", "3"), ("Injected", ""), ("Z-Gone", "")]
    {
        assert_eq!(header(&invite, name), value, "{name}");
    }
    // An incoming call: what it came with is read, what is added goes into our answers.
    let mut phone = Phone::new("trunk").call("in");
    let text = phone.request("INVITE", "sip:100@s", "X-Key: a\r\nX-Key: b\r\nX-Other: c\r\n", &answer());
    lab.receive(phone.flow, text);
    let id = lab.started.pop_front().unwrap();
    for (args, value) in [("read,X-Key", "a"), ("read,X-Key,2", "b"), ("read,x-*,3", "c"), ("read,None", "")]
    {
        assert_eq!(lab.read(id, "PJSIP_HEADER", args).as_deref(), Some(value), "{args}");
    }
    assert!(write(&lab.shard, id, "add,X-Answer", "42"));
    lab.answer(id);
    assert_eq!(header(&lab.sent(), "X-Answer"), "42");
}

#[test]
fn device_states_follow_the_calls() {
    use call::{DeviceState, Tech};
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.busy_at = 2);
    let mut lab = Lab::new(config);
    let state = |lab: &Lab, name: &str| lab.sip.borrow().device_state(&lab.shard.core.borrow(), name);
    assert_eq!(state(&lab, "trunk"), DeviceState::NotInUse);
    assert_eq!(state(&lab, "alice"), DeviceState::Unavailable);
    assert_eq!(state(&lab, "carol"), DeviceState::Invalid);
    let trunk = Phone::new("trunk");
    lab.dial("trunk").unwrap();
    let invite = lab.sent();
    assert_eq!(state(&lab, "trunk"), DeviceState::NotInUse, "called, and not ringing yet");
    trunk.respond(&mut lab, &invite, 180, "", "");
    assert_eq!(state(&lab, "123@trunk"), DeviceState::Ringing);
    trunk.respond(&mut lab, &invite, 200, "", &answer());
    assert_eq!(state(&lab, "trunk/123"), DeviceState::InUse);
    lab.lines();
    lab.dial("trunk").unwrap();
    let second = lab.sent();
    assert_eq!(state(&lab, "trunk"), DeviceState::InUse, "who is called and does not ring does not count");
    trunk.respond(&mut lab, &second, 180, "", "");
    assert_eq!(state(&lab, "trunk"), DeviceState::Busy, "device_state_busy_at");
}

/// Who is held is on hold, not who holds; and no longer than both talk.
#[test]
fn a_device_is_on_hold_while_the_other_side_holds_it() {
    use call::{DeviceState, Tech};
    let (mut lab, [mut one, _], [a, b]) =
        crate::phone::talking(site(), &sdp("198.51.100.7", 4000, "0"), &sdp("198.51.100.8", 4000, "0"));
    let state = |lab: &Lab, id| {
        let name = lab.shard.core.borrow().get(id).unwrap().name.to_string();
        let device = name.strip_prefix("PJSIP/").unwrap().rsplit_once('-').unwrap().0.to_owned();
        lab.sip.borrow().device_state(&lab.shard.core.borrow(), &device)
    };
    assert_eq!((state(&lab, a), state(&lab, b)), (DeviceState::InUse, DeviceState::InUse));
    for (direction, held) in [("sendonly", DeviceState::OnHold), ("sendrecv", DeviceState::InUse)] {
        let sdp = crate::phone::sdp_with("198.51.100.7", 4000, "0", &format!("a={direction}\r\n"));
        one.inside_proved(&mut lab, "INVITE", "", &sdp);
        let ok =
            std::iter::from_fn(|| lab.next()).map(|(_, sent)| sent).find(|sent| line(sent) == "200").unwrap();
        one.ack(&mut lab, &ok, "");
        assert_eq!((state(&lab, a), state(&lab, b)), (DeviceState::InUse, held), "{direction}");
        lab.lines();
    }
}

#[test]
fn an_endpoint_has_as_many_calls_as_its_limit_says_in_and_out_and_phones_of_one_call_count_once() {
    use call::{DeviceState, Request, Tech};
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.call_limit = 2);
    let mut lab = Lab::new(config);
    lab.storyless = true;
    let state = |lab: &Lab| lab.sip.borrow().device_state(&lab.shard.core.borrow(), "trunk");
    let mut alice = Phone::new("alice");
    let caller = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0 101"));
    // Two of its phones ring for one caller.
    let of_alice = || Request { requestor: Some(caller), ..Request::default() };
    let first = lab.dial_with("trunk", of_alice(), |_, _| {}).unwrap();
    lab.dial_with("trunk", of_alice(), |_, _| {}).unwrap();
    assert_eq!(state(&lab), DeviceState::Busy, "both ring");
    lab.lines();
    let second = lab.dial_with("trunk", Request::default(), |_, _| {}).unwrap();
    assert_eq!(lab.dial_with("trunk", Request::default(), |_, _| {}), Err(Cause::USER_BUSY));
    lab.dial_with("trunk", of_alice(), |_, _| {}).expect("it is a phone of the first call");
    lab.lines();
    let mut trunk = Phone::new("trunk").call("in");
    let refused = trunk.ask(&mut lab, "INVITE", "sip:100@strowger", "", &sdp("198.51.100.7", 4002, "0"));
    assert_eq!(line(&refused), "480");
    let logged = lab.world.log(call::Level::Notice);
    assert_eq!(logged.iter().filter(|line| line.contains("call_limit=2")).count(), 2, "{logged:?}");
    // One ends, and another one may come.
    lab.shard.finish(second, Cause::NORMAL_CLEARING);
    lab.lines();
    Phone::new("trunk").call("again").invite(&mut lab, "100", &sdp("198.51.100.7", 4004, "0"));
    assert!(lab.shard.core.borrow().get(first).is_some());
}

#[test]
fn rfc3261_22_2_a_challenged_request_in_a_call_is_sent_once_more_and_a_guarded_login_only_to_whom_we_called()
{
    let mut config = site();
    config.auths.insert("out".into(), config.auths["alice"].clone());
    change(&mut config, "trunk", |trunk| {
        (trunk.outbound_auths, trunk.guards_logins) = (vec!["out".into()], true);
    });
    let mut lab = Lab::new(config);
    let challenge = "Proxy-Authenticate: Digest realm=\"p\",nonce=\"n\",algorithm=MD5,qop=\"auth\"\r\n";
    let say = |lab: &mut Lab, id| {
        let said = lab.shard.with_tech(id, |tech, core| tech.send_text(core, id, "hello"));
        assert_eq!(said, Some(true));
        lab.with(|_, _| ());
        lab.sent()
    };
    let trunk = Phone::new("trunk");
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    trunk.respond(&mut lab, &invite, 200, "", &answer());
    lab.lines();
    let message = say(&mut lab, id);
    assert_eq!(line(&message), "MESSAGE");
    trunk.respond(&mut lab, &message, 407, challenge, "");
    let again = lab.sent();
    assert_eq!((line(&again), body(&again)), ("MESSAGE".to_owned(), "hello".to_owned()));
    let proof = header(&again, "Proxy-Authorization");
    assert!(proof.contains("uri=\"sip:trunk@198.51.100.7:5062\""), "{proof}");
    trunk.respond(&mut lab, &again, 407, challenge, "");
    assert!(lab.lines().is_empty(), "nobody tries for ever");
    // A caller who challenges our request wants our login; it does not get it.
    let mut caller = Phone::new("trunk").call("in");
    let id = caller.invite(&mut lab, "100", &answer());
    lab.answer(id);
    let ok = lab.sent();
    caller.ack(&mut lab, &ok, "");
    let message = say(&mut lab, id);
    caller.respond(&mut lab, &message, 407, challenge, "");
    assert!(lab.lines().is_empty());
}

#[test]
fn a_call_to_a_name_that_nobody_resolved_yet_waits_for_its_address() {
    let found = vec!["203.0.113.20".parse().unwrap()];
    for (name, addresses, expected) in [
        ("it has one", Some(found), "Called"),
        ("it has none", Some(Vec::new()), "Hangup 3"),
        ("nobody answers", None, "Hangup 3"),
    ] {
        let mut lab = Lab::new(site());
        let id = lab.dial("trunk/sip:bob@new.example:5070").unwrap();
        assert_eq!(lab.lookups(), ["A new.example"], "{name}");
        assert!(lab.lines().is_empty() && lab.heard().is_empty(), "{name}");
        match addresses {
            Some(addresses) => lab.resolved("NEW.example", &addresses),
            None => lab.pass(Duration::from_secs(15)),
        }
        if expected == "Called" {
            let (flow, invite) = lab.next().unwrap();
            assert_eq!(flow.remote, address("203.0.113.20:5070"), "{name}");
            assert_eq!(line(&invite), "INVITE", "{name}");
            assert!(!body(&invite).contains("0.0.0.0"), "{}", body(&invite));
            lab.finish(id, Cause::NORMAL_CLEARING);
        } else {
            assert_eq!(lab.heard(), [expected], "{name}");
            assert!(lab.lines().is_empty(), "{name}");
            lab.rest();
        }
    }
    // A caller that gives up while the name is looked up is not called back.
    let mut lab = Lab::new(site());
    let id = lab.dial("trunk/sip:bob@new.example").unwrap();
    lab.finish(id, Cause::NORMAL_CLEARING);
    lab.resolved("new.example", &["203.0.113.20".parse().unwrap()]);
    assert!(lab.lines().is_empty());
}

#[test]
fn rfc5922_4_a_way_by_tls_says_whom_it_has_to_lead_to() {
    let mut config = site();
    let like = config.binds.first().unwrap().clone();
    let local = "0.0.0.0:5061".parse().unwrap();
    config.binds.push(Bind {
        name: "tls".to_owned(),
        id: TransportId(2),
        protocol: Protocol::Tls,
        local,
        ..like
    });
    let mut lab = Lab::new(config);
    let found = "203.0.113.20".parse().unwrap();
    for (uri, remote, protocol, name) in [
        ("sip:bob@new.example;transport=tls", "203.0.113.20:5061", Protocol::Tls, Some("new.example")),
        ("sip:bob@NEW.example:5070;transport=TLS", "203.0.113.20:5070", Protocol::Tls, Some("new.example")),
        ("sips:bob@new.example", "203.0.113.20:5061", Protocol::Tls, Some("new.example")),
        ("sips:bob@203.0.113.20", "203.0.113.20:5061", Protocol::Tls, Some("203.0.113.20")),
        ("sip:bob@new.example:5060", "203.0.113.20:5060", Protocol::Udp, None),
        ("sip:bob@new.example:5060;transport=tcp", "203.0.113.20:5060", Protocol::Tcp, None),
    ] {
        let id = lab.dial(&format!("trunk/{uri}")).unwrap();
        lab.resolved("new.example", &[found]);
        let (flow, invite) = lab.next().unwrap();
        assert_eq!((flow.remote, flow.protocol), (address(remote), protocol), "{uri}");
        assert!(header(&invite, "Via").starts_with(&format!("SIP/2.0/{} ", protocol.name())), "{uri}");
        let asked = lab.with(|sip, _| sip.peer_name(flow).map(str::to_owned));
        assert_eq!(asked.as_deref(), name, "{uri}");
        lab.finish(id, Cause::NORMAL_CLEARING);
        lab.pass(Duration::from_secs(40));
        lab.lines();
    }
}

#[test]
fn rfc3263_4_2_services_say_which_server_and_port_and_the_next_is_called_when_it_fails() {
    let mut lab = Lab::new(site());
    lab.serves("_sip._udp.new.example", &[(20, 0, 5082, "b.new.example"), (10, 0, 5081, "a.new.example")]);
    let id = lab.dial("trunk/sip:bob@new.example").unwrap();
    let asked = lab.lookups();
    for name in ["NAPTR new.example", "SRV _sip._tcp.new.example", "A new.example"] {
        assert!(asked.contains(&name.to_owned()), "{name}: {asked:?}");
    }
    assert!(lab.lines().is_empty(), "whether there is another way on is not known");
    let none = Answer { records: None, keep: Duration::from_secs(600) };
    lab.with(|sip, core| sip.resolved(core, &Question::new(Kind::Naptr, "new.example"), none));
    assert_eq!(lab.lookups(), ["A a.new.example", "A b.new.example"]);
    lab.resolved("a.new.example", &["203.0.113.21".parse().unwrap()]);
    assert!(lab.lines().is_empty(), "where the others are is not known");
    lab.resolved("b.new.example", &["203.0.113.22".parse().unwrap()]);
    let (first, invite) = lab.next().expect("the INVITE");
    assert_eq!((first.remote, line(&invite).as_str()), (address("203.0.113.21:5081"), "INVITE"));
    lab.with(|sip, core| sip.transport_error(core, first));
    let (second, again) = lab.next().expect("the INVITE to the other");
    assert_eq!((second.remote, line(&again).as_str()), (address("203.0.113.22:5082"), "INVITE"));
    for name in ["Call-ID", "CSeq", "From"] {
        assert_eq!(header(&invite, name), header(&again, name), "RFC 3263 §4.3: the same request");
    }
    assert_ne!(header(&invite, "Via"), header(&again, "Via"));
    let answer = sdp("203.0.113.22", 4000, "0 101");
    Phone::at("trunk", second).respond(
        &mut lab,
        &again,
        200,
        "Contact: <sip:bob@203.0.113.22:5082>\r\n",
        &answer,
    );
    let (flow, ack) = lab.next().expect("the ACK");
    assert_eq!((flow.remote, line(&ack).as_str()), (second.remote, "ACK"));
    lab.finish(id, Cause::NORMAL_CLEARING);
    lab.lines();
    // Who has failed comes last for a while, and first again after it.
    for (wait, port) in [(1, 5082), (120, 5081)] {
        lab.pass(Duration::from_secs(wait));
        lab.lines();
        lab.serves(
            "_sip._udp.new.example",
            &[(20, 0, 5082, "b.new.example"), (10, 0, 5081, "a.new.example")],
        );
        let id = lab.dial("trunk/sip:bob@new.example").unwrap();
        assert_eq!(lab.next().expect("an INVITE").0.remote.port(), port, "after {wait} s");
        lab.finish(id, Cause::NORMAL_CLEARING);
    }
}

/// A contact has not failed while it has a server that was not asked.
#[test]
fn rfc3263_4_3_a_question_goes_to_the_next_server_before_the_contact_counts_as_gone() {
    use driver::sip::ContactState;
    for (name, answers, expected, sent) in [
        ("the first answers", &[200][..], ContactState::Available, 1),
        ("the first is silent", &[0, 200], ContactState::Available, 2),
        ("the first is overloaded", &[503, 200], ContactState::Available, 2),
        ("two are silent", &[0, 0, 200], ContactState::Available, 3),
        ("all are silent", &[0, 0, 0], ContactState::Unavailable, 3),
    ] {
        let mut config = site();
        change_aor(&mut config, "trunk", |aor| {
            aor.contacts = vec!["sip:new.example".to_owned()];
            aor.qualify_frequency = 60;
        });
        let mut lab = Lab::new(config);
        let servers =
            [(10, 0, 5081, "a.new.example"), (20, 0, 5082, "b.new.example"), (30, 0, 5083, "c.new.example")];
        lab.pass(Duration::from_secs(2));
        let none = Answer { records: None, keep: Duration::from_secs(600) };
        lab.with(|sip, core| sip.resolved(core, &Question::new(Kind::Naptr, "new.example"), none));
        lab.serves("_sip._udp.new.example", &servers);
        for (number, (.., host)) in servers.iter().enumerate() {
            lab.resolved(host, &[std::net::IpAddr::from([203, 0, 113, 21 + number as u8])]);
        }
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..200 {
            while let Some((flow, options)) = lab.next() {
                let at = usize::from(flow.remote.port() - 5081);
                let is_new = asked.insert(flow.remote.port());
                let status = answers.get(at).copied().unwrap_or(0);
                if is_new && status > 0 {
                    Phone::at("trunk", flow).respond(&mut lab, &options, status, "", "");
                }
            }
            lab.pass(Duration::from_millis(100));
        }
        let rows = lab.with(|sip, core| sip.contact_rows(None, core));
        let state = rows.iter().find(|row| row.uri == "sip:new.example").map(|row| row.state);
        assert_eq!(asked.len(), sent, "{name}: {asked:?}");
        assert_eq!(state, Some(expected), "{name}");
    }
}

#[test]
fn a_contact_without_a_transport_is_asked_by_that_of_its_endpoint() {
    for (transport, protocol, port) in
        [("", Protocol::Udp, 5060), ("tls", Protocol::Tls, 5061), ("tcp", Protocol::Tcp, 5060)]
    {
        let mut config = site();
        let like = config.binds.first().unwrap().clone();
        for (id, name, protocol) in [(2, "tls", Protocol::Tls), (3, "tcp", Protocol::Tcp)] {
            let local = SocketAddr::new(like.local.ip(), 5060 + id);
            config.binds.push(Bind {
                name: name.to_owned(),
                id: TransportId(id),
                protocol,
                local,
                ..like.clone()
            });
        }
        change(&mut config, "trunk", |trunk| transport.clone_into(&mut trunk.transport));
        let aor = Rc::make_mut(config.aors.get_mut("trunk").unwrap());
        aor.contacts = vec!["sip:203.0.113.50".to_owned()];
        aor.qualify_frequency = 60;
        let mut lab = Lab::new(config);
        lab.pass(Duration::from_secs(2));
        let (flow, question) = lab.next().expect("the question");
        assert_eq!(line(&question), "OPTIONS", "{transport}");
        assert_eq!((flow.protocol, flow.remote.port()), (protocol, port), "{transport}");
        lab.dial("trunk").unwrap();
        let calls = std::iter::from_fn(|| lab.next()).find(|(_, message)| line(message) == "INVITE");
        assert_eq!(calls.expect("the call").0.protocol, protocol, "{transport}");
    }
}

#[test]
fn rfc3261_7_3_3_short_names_and_a_via_without_rport_leave_in_requests_and_answers_alike() {
    let raw = |message: &::sip::OwnedMessage| String::from_utf8_lossy(message.view().as_bytes()).into_owned();
    for (compact, no_rport) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut config = site();
        config.form = ::sip::Form { compact, no_rport };
        let mut lab = Lab::new(config);
        let mut trunk = Phone::new("trunk");
        let id = lab.dial("trunk").unwrap();
        let invite = lab.sent();
        let told = raw(&invite);
        assert_eq!(told.contains("\r\ni: ") && told.contains("\r\nl: "), compact, "{told}");
        assert_eq!(told.contains("\r\nCall-ID: "), !compact, "{told}");
        assert_eq!(header(&invite, "Via").contains(";rport"), !no_rport, "{told}");
        trunk.called(&invite);
        trunk.respond(&mut lab, &invite, 200, "", &answer());
        assert_eq!(raw(&lab.sent()).contains("\r\nf: "), compact, "the ACK");
        // A challenge leaves without a transaction, an answer by one.
        let stranger = Phone::new("carol").password(None).register(&mut lab, "");
        assert_eq!((line(&stranger).as_str(), raw(&stranger).contains("\r\nt: ")), ("401", compact));
        trunk.inside(&mut lab, "OPTIONS", "", "");
        let ok = lab.sent();
        assert_eq!((line(&ok).as_str(), raw(&ok).contains("\r\nl: 0\r\n")), ("200", compact));
        lab.finish(id, Cause::NORMAL_CLEARING);
        let bye = lab.sent();
        assert_eq!(line(&bye), "BYE");
        assert_eq!(raw(&bye).contains("\r\nv: "), compact);
        trunk.respond(&mut lab, &bye, 200, "", "");
        lab.rest();
    }
}
