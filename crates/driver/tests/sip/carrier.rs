//! What carriers ask of a call: acknowledged ringing, session timers, redirection, overlap, hops, logins per realm.

use core::time::Duration;
use std::rc::Rc;

use ::sip::session::{Policy, Terms};
use base::Cause;
use call::{Indication, PartyId, Redirecting, Request};
use driver::sip::{Auth, Config, Endpoint, Proof, Redirect, Rel100};

use crate::lab::{Lab, SECRET, address, body, change, header, line, site};
use crate::phone::{Phone, sdp};

fn offer() -> String {
    sdp("198.51.100.7", 4000, "0 101")
}
fn trunk(change_it: impl FnOnce(&mut Endpoint)) -> Config {
    let mut config = site();
    change(&mut config, "trunk", change_it);
    config
}
fn timers(policy: Policy) -> impl FnOnce(&mut Endpoint) {
    move |trunk| trunk.timers = Terms { policy, min_se: 90, expires: 1800 }
}

#[test]
fn rfc3262_3_ringing_is_acknowledged_as_the_endpoint_and_its_peer_have_it() {
    let (required, supported) = ("Require: 100rel\r\n", "Supported: 100rel\r\n");
    for (rel100, headers, refused, reliable) in [
        (Rel100::No, "", None, false),
        (Rel100::No, supported, None, false),
        (Rel100::No, required, Some(("420", "Unsupported", "100rel")), false),
        (Rel100::Yes, "", None, false),
        (Rel100::Yes, supported, None, false),
        (Rel100::Yes, required, None, true),
        (Rel100::PeerSupported, "", None, false),
        (Rel100::PeerSupported, supported, None, true),
        (Rel100::Required, supported, None, true),
        (Rel100::Required, "", Some(("421", "Require", "100rel")), false),
    ] {
        let name = format!("{rel100:?} {headers}");
        let mut lab = Lab::new(trunk(|trunk| trunk.rel100 = rel100));
        let mut phone = Phone::new("trunk").password(None);
        let answer = phone.ask(&mut lab, "INVITE", "sip:100@strowger", headers, &offer());
        if let Some((status, field, value)) = refused {
            assert_eq!((line(&answer).as_str(), header(&answer, field).as_str()), (status, value), "{name}");
            continue;
        }
        let id = lab.started.pop_front().expect(&name);
        lab.indicate(id, Indication::Ringing);
        let ringing = lab.sent();
        assert_eq!(line(&ringing), "180");
        assert_eq!(header(&ringing, "Require") == "100rel", reliable, "{name}");
        if reliable {
            phone.learn(&ringing);
            lab.answer(id);
            assert!(
                lab.lines().contains(&"200".to_owned()),
                "{name}: ringing without a description holds nothing back"
            );
        }
    }
}

#[test]
fn rfc3262_3_early_media_is_acknowledged_before_the_call_is_answered() {
    let mut lab = Lab::new(trunk(|trunk| trunk.rel100 = Rel100::PeerSupported));
    let mut phone = Phone::new("trunk").password(None);
    phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", "Supported: 100rel\r\n", &offer());
    let id = lab.started.pop_front().unwrap();
    let number = phone.cseq;
    lab.indicate(id, Indication::Progress);
    let early = lab.sent();
    assert!(body(&early).contains("m=audio"));
    lab.answer(id);
    assert!(lab.lines().is_empty(), "the 200 waits");
    phone.learn(&early);
    let rack = format!("RAck: {} {number} INVITE\r\n", header(&early, "RSeq"));
    phone.inside(&mut lab, "PRACK", &rack, "");
    let lines = lab.lines();
    assert_eq!(lines, ["200", "200"], "to the PRACK and to the INVITE");
    lab.finish(id, Cause::NORMAL_CLEARING);
}

#[test]
fn rfc3262_4_the_peers_reliable_ringing_is_acknowledged_and_offered_in_every_call() {
    for (rel100, supported, require) in
        [(Rel100::No, "", ""), (Rel100::Yes, "100rel, ", ""), (Rel100::Required, "100rel, ", "100rel")]
    {
        let mut lab = Lab::new(trunk(|trunk| trunk.rel100 = rel100));
        let mut phone = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        let supported = format!("{supported}replaces, norefersub, histinfo");
        assert_eq!(header(&invite, "Allow").contains("PRACK"), rel100 != Rel100::No);
        assert_eq!((header(&invite, "Supported"), header(&invite, "Require").as_str()), (supported, require));
        phone.called(&invite);
        phone.respond(&mut lab, &invite, 183, "Require: 100rel\r\nRSeq: 5\r\n", &offer());
        assert_eq!(lab.heard(), ["Progress"]);
        let prack = lab.sent();
        assert_eq!(line(&prack), "PRACK");
        assert_eq!(header(&prack, "RAck"), format!("5 {}", header(&invite, "CSeq")));
        phone.respond(&mut lab, &prack, 200, "", "");
        // RFC 3311 §5.2: the peer may change its mind before it answers.
        phone.inside(&mut lab, "UPDATE", "", &sdp("198.51.100.7", 4010, "0 101"));
        let updated = lab.sent();
        assert_eq!(line(&updated), "200");
        assert_eq!(lab.plan().remote, "198.51.100.7:4010".parse().ok());
        phone.respond(&mut lab, &invite, 200, "", "");
        assert_eq!(lab.lines(), ["ACK"]);
        assert_eq!(lab.heard(), ["Answered"]);
    }
}

#[test]
fn rfc4028_7_a_session_that_we_refresh_is_refreshed_by_what_the_peer_takes() {
    for (allow, method) in
        [("Allow: INVITE, ACK, BYE, UPDATE\r\n", "UPDATE"), ("Allow: INVITE, ACK, BYE\r\n", "INVITE")]
    {
        let mut lab = Lab::new(trunk(timers(Policy::Yes)));
        let mut phone = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        assert_eq!(header(&invite, "Session-Expires"), "1800");
        assert_eq!(header(&invite, "Supported"), "timer, replaces, norefersub, histinfo");
        phone.called(&invite);
        let headers = format!("{allow}Session-Expires: 200;refresher=uac\r\nRequire: timer\r\n");
        phone.respond(&mut lab, &invite, 200, &headers, &offer());
        lab.lines();
        for _ in 0..3 {
            lab.pass(Duration::from_secs(100));
            let refresh = lab.sent();
            assert_eq!(line(&refresh), method);
            assert_eq!(header(&refresh, "Session-Expires"), "200;refresher=uac");
            let description = if method == "INVITE" { offer() } else { String::new() };
            phone.respond(&mut lab, &refresh, 200, "Session-Expires: 200;refresher=uac\r\n", &description);
            lab.lines();
        }
        // Nobody is there any more.
        lab.pass(Duration::from_secs(200));
        assert!(lab.lines().contains(&"BYE".to_owned()), "{method}");
        assert!(lab.heard().iter().any(|heard| heard == "Hangup 102"), "{method}");
        lab.rest();
    }
}

#[test]
fn rfc4028_10_a_session_that_the_peer_does_not_refresh_is_ended() {
    let mut lab = Lab::new(trunk(timers(Policy::Yes)));
    let mut phone = Phone::new("trunk").password(None);
    let asked = "Supported: timer\r\nSession-Expires: 180\r\n";
    phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", asked, &offer());
    let id = lab.started.pop_front().unwrap();
    lab.answer(id);
    let answer = lab.sent();
    assert_eq!(header(&answer, "Session-Expires"), "180;refresher=uac");
    assert_eq!(header(&answer, "Require"), "timer");
    phone.ack(&mut lab, &answer, "");
    lab.pass(Duration::from_secs(100));
    phone.inside(&mut lab, "UPDATE", "Supported: timer\r\nSession-Expires: 180;refresher=uac\r\n", "");
    let refreshed = lab.sent();
    assert_eq!(header(&refreshed, "Session-Expires"), "180;refresher=uac");
    lab.pass(Duration::from_secs(140));
    assert!(lab.lines().is_empty(), "it was refreshed");
    lab.pass(Duration::from_secs(10));
    let bye = lab.sent();
    assert_eq!(line(&bye), "BYE");
    assert!(header(&bye, "Reason").contains("cause=102"));
    lab.rest();
}

#[test]
fn rfc4028_8_and_9_intervals_that_are_too_small_are_refused_and_repeated() {
    let mut config = trunk(timers(Policy::Yes));
    change(&mut config, "trunk", |trunk| trunk.timers.min_se = 300);
    let mut lab = Lab::new(config);
    let mut phone = Phone::new("trunk").password(None);
    let asked = "Supported: timer\r\nSession-Expires: 120\r\n";
    let refused = phone.ask(&mut lab, "INVITE", "sip:100@strowger", asked, &offer());
    assert_eq!((line(&refused).as_str(), header(&refused, "Min-SE").as_str()), ("422", "300"));
    // Ours is repeated with what the peer wants.
    let mut lab = Lab::new(trunk(timers(Policy::Yes)));
    let phone = Phone::new("trunk");
    lab.dial("trunk").unwrap();
    let invite = lab.sent();
    phone.respond(&mut lab, &invite, 422, "Min-SE: 3600\r\n", "");
    assert_eq!(line(&lab.sent()), "ACK");
    let again = lab.sent();
    assert_eq!((line(&again).as_str(), header(&again, "Session-Expires").as_str()), ("INVITE", "3600"));
    assert_eq!(header(&again, "Min-SE"), "3600");
    phone.respond(&mut lab, &again, 422, "Min-SE: 90\r\n", "");
    assert_eq!(lab.heard().len(), 1, "a peer that contradicts itself is given up");
    lab.rest();
}

#[test]
fn rfc3261_8_1_3_4_a_call_that_is_sent_elsewhere_goes_where_the_endpoint_lets_it() {
    let elsewhere = "Contact: <sip:200@198.51.100.9:5070>\r\n";
    for (redirect, heard, follows) in [
        (Redirect::User, Some("Forwarded(\"Local/200@phones\")"), false),
        (Redirect::UriCore, Some("Forwarded(\"PJSIP/trunk/sip:200@198.51.100.9:5070\")"), false),
        (Redirect::UriPjsip, None, true),
    ] {
        let mut lab = Lab::new(trunk(|trunk| trunk.redirect = redirect));
        let phone = Phone::new("trunk");
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        phone.respond(&mut lab, &invite, 302, elsewhere, "");
        assert_eq!(line(&lab.sent()), "ACK");
        assert_eq!(lab.heard().first().map(String::as_str), heard, "{redirect:?}");
        let Some((flow, mut second)) = lab.next() else {
            assert!(!follows, "{redirect:?}");
            continue;
        };
        assert!(follows, "{redirect:?}");
        assert_eq!(flow.remote, address("198.51.100.9:5070"));
        assert_eq!(second.view().request_uri_bytes(), b"sip:200@198.51.100.9:5070");
        assert_ne!(header(&second, "Call-ID"), header(&invite, "Call-ID"));
        // In a circle it ends.
        for _ in 0..10 {
            let there = Phone::at("elsewhere", flow);
            there.respond(&mut lab, &second, 302, elsewhere, "");
            lab.sent();
            match lab.next() {
                Some((_, next)) => second = next,
                None => break,
            }
        }
        assert!(lab.heard().iter().any(|heard| heard.starts_with("Hangup")), "a circle ends");
        lab.rest();
    }
}

#[test]
fn a_login_is_shown_where_the_configuration_sends_the_call_and_elsewhere_for_its_own_realm_only() {
    let auth = |realm: &str| Auth {
        username: "me".to_owned(),
        realm: realm.to_owned(),
        proof: Proof::Password(SECRET.to_owned()),
        algorithms: Vec::new(),
        answers: Vec::new(),
    };
    for (name, target, realm, shown) in [
        ("our contact, any realm", "trunk", "", true),
        ("our contact, its realm", "trunk", "carrier", true),
        ("our contact, another realm", "trunk", "other", false),
        ("another host, any realm", "trunk/sip:1@203.0.113.66", "", false),
        ("another host, its realm", "trunk/sip:1@203.0.113.66", "carrier", true),
        ("our host's name at another", "trunk/sip:1@198.51.100.7;maddr=203.0.113.66", "", false),
    ] {
        let mut config = trunk(|trunk| {
            (trunk.outbound_auths, trunk.guards_logins) = (vec!["me".into()], true);
        });
        config.auths.insert("me".into(), Rc::new(auth(realm)));
        let mut lab = Lab::new(config);
        lab.dial(target).unwrap();
        let (flow, invite) = lab.next().unwrap();
        let peer = Phone::at("carrier", flow);
        let challenge = "Proxy-Authenticate: Digest realm=\"carrier\", nonce=\"n\"\r\n";
        peer.respond(&mut lab, &invite, 407, challenge, "");
        let lines: Vec<bool> = std::iter::from_fn(|| lab.next())
            .map(|(_, message)| !header(&message, "Proxy-Authorization").is_empty())
            .collect();
        assert_eq!(lines.contains(&true), shown, "{name}");
        lab.pass(Duration::from_secs(60));
    }
}

#[test]
fn a_number_that_is_too_short_is_looked_for_in_the_overlap_context() {
    for (overlap, context, number, status) in [
        (true, "", "10", "484"),
        (false, "", "10", "404"),
        (true, "elsewhere", "10", "484"),
        (true, "", "nobody", "404"),
    ] {
        let mut lab = Lab::new(trunk(|trunk| {
            trunk.allow_overlap = overlap;
            trunk.overlap_context = context.to_owned();
        }));
        let mut phone = Phone::new("trunk").password(None);
        let answer = phone.ask(&mut lab, "INVITE", &format!("sip:{number}@strowger"), "", &offer());
        assert_eq!(line(&answer), status, "{overlap} {context} {number}");
    }
}

/// Whom a 3xx names is called in order of `q` until one answers or speaks for all.
#[test]
fn rfc3261_8_1_3_4_those_whom_a_redirection_names_are_called_one_after_the_other() {
    let (a, b) = ("<sip:1@198.51.100.9:5070>", "<sip:1@198.51.100.10:5070>");
    for (name, contacts, answers, called) in [
        ("the first answers", format!("Contact: {a};q=0.9, {b};q=0.8\r\n"), &[200][..], "9"),
        ("the second, in one header", format!("Contact: {a};q=0.9, {b};q=0.8\r\n"), &[503, 200], "9 10"),
        (
            "the second, in two headers",
            format!("Contact: {a};q=0.9\r\nContact: {b};q=0.8\r\n"),
            &[404, 200],
            "9 10",
        ),
        ("liked alike", format!("Contact: {a}, {b}\r\n"), &[486, 200], "9 10"),
        ("by q, not by place", format!("Contact: {b};q=0.2, {a};q=0.9\r\n"), &[486, 200], "9 10"),
        ("no q is 1", format!("Contact: {b};q=0.9, {a}\r\n"), &[486, 200], "9 10"),
        ("one who speaks for all", format!("Contact: {a};q=0.9, {b};q=0.8\r\n"), &[603], "9"),
        ("sips without TLS", format!("Contact: <sips:1@198.51.100.9>;q=0.9, {b};q=0.8\r\n"), &[200], "10"),
        ("a telephone", format!("Contact: <tel:+49>, {b};q=0.8\r\n"), &[200], "10"),
        ("a mailbox", format!("Contact: <mailto:a@b>, {b};q=0.8\r\n"), &[200], "10"),
        ("a service", format!("Contact: <urn:service:sos>, {b};q=0.8\r\n"), &[200], "10"),
        ("what cannot be read", format!("Contact: {b}, <sip:broken\r\n"), &[200], "10"),
        ("nobody usable", "Contact: <mailto:a@b>\r\n".to_owned(), &[], ""),
        ("all refuse", format!("Contact: {a}, {b}\r\n"), &[486, 486], "9 10"),
    ] {
        let mut lab = Lab::new(trunk(|trunk| trunk.redirect = Redirect::UriPjsip));
        let id = lab.dial("trunk").unwrap();
        let invite = lab.sent();
        Phone::new("trunk").respond(&mut lab, &invite, 300, &contacts, "");
        assert_eq!(line(&lab.sent()), "ACK", "{name}");
        let mut seen = Vec::new();
        while let Some((flow, next)) = lab.next() {
            if line(&next) != "INVITE" {
                continue;
            }
            let remote = flow.remote.ip().to_string();
            seen.push(remote.rsplit('.').next().unwrap().to_owned());
            let status = answers.get(seen.len() - 1).copied().unwrap_or(486);
            let body =
                if status == 200 { crate::phone::sdp("198.51.100.9", 4000, "0") } else { String::new() };
            Phone::at("elsewhere", flow).respond(&mut lab, &next, status, "", &body);
        }
        assert_eq!(seen.join(" "), called, "{name}");
        let heard = lab.heard();
        let ended = heard.iter().any(|heard| heard.starts_with("Hangup"));
        assert_eq!(ended, !answers.contains(&200), "{name}: {heard:?}");
        lab.finish(id, base::Cause::NORMAL_CLEARING);
        lab.lines();
    }
}

#[test]
fn rfc7332_4_a_circle_of_servers_ends() {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("trunk").password(None);
    let text = phone.request("INVITE", "sip:100@strowger", "", &offer());
    lab.receive(phone.flow, text.replace("Max-Forwards: 70", "Max-Forwards: 0"));
    assert_eq!(line(&lab.sent()), "483");
    for (came, leaves) in [("70", "69"), ("5", "4"), ("255", "70"), ("1", "0")] {
        let mut phone = Phone::new("trunk").password(None).call(&format!("hops-{came}"));
        let text = phone.request("INVITE", "sip:100@strowger", "", &offer());
        lab.receive(phone.flow, text.replace("Max-Forwards: 70", &format!("Max-Forwards: {came}")));
        let caller = lab.started.pop_front().unwrap();
        let request = Request { requestor: Some(caller), ..Request::default() };
        lab.dial_with("trunk", request, |_, _| {}).unwrap();
        let invite = lab.sent();
        assert_eq!(header(&invite, "Max-Forwards"), leaves);
        lab.lines();
    }
}

#[test]
fn rfc3323_4_2_and_rfc7044_words_of_privacy_hide_the_caller_and_who_sent_the_call_on() {
    let pai = "P-Asserted-Identity: \"Q\" <sip:999@x>\r\n";
    let history = "History-Info: <sip:200@a>;index=1, <sip:300@a>;index=1.1\r\n";
    for (name, headers, caller, forwarder) in [
        ("nothing", String::new(), false, false),
        ("none", "Privacy: none\r\n".to_owned(), false, false),
        ("id", "Privacy: id\r\n".to_owned(), true, false),
        ("several", "Privacy: header ;ID; critical\r\n".to_owned(), true, false),
        ("user", "Privacy: user;header\r\n".to_owned(), true, false),
        ("headers alone", "Privacy: header;session\r\n".to_owned(), false, false),
        ("a word that only begins alike", "Privacy: identity\r\n".to_owned(), false, false),
        ("history", "Privacy: history\r\n".to_owned(), false, true),
        (
            "one entry of the history",
            history.replace("@a>;index=1,", "@a?Privacy=history>;index=1,"),
            false,
            true,
        ),
    ] {
        let mut lab = Lab::new(trunk(|trunk| trunk.trust_id_inbound = true));
        let mut phone = Phone::new("trunk").password(None);
        let history = if headers.contains("History") { "" } else { history };
        let headers = format!("{pai}{history}{headers}");
        phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", &headers, &offer());
        let id = lab.started.pop_front().unwrap();
        let core = lab.shard.core.borrow();
        let channel = core.get(id).unwrap();
        assert_eq!(channel.caller.number_presentation.is_hidden(), caller, "{name}");
        assert_eq!(channel.redirecting.from.number_presentation.is_hidden(), forwarder, "{name}");
        assert_eq!((channel.caller.number(), channel.redirecting.from.number()), ("999", "200"), "{name}");
    }
}

#[test]
fn rfc5806_and_rfc7044_who_sent_the_call_on_is_read_and_told() {
    // Read.
    for (name, headers, from, orig, reason, count) in [
        ("one", "Diversion: \"Bob\" <sip:200@a>;reason=user-busy;counter=2\r\n", "200", "200", "cfb", 2),
        (
            "the latest first",
            "Diversion: <sip:300@a>;reason=no-answer\r\nDiversion: <sip:200@a>;reason=unconditional\r\n",
            "300",
            "200",
            "cfnr",
            2,
        ),
        ("an unknown reason", "Diversion: <tel:+49301>;reason=\"x\"\r\n", "+49301", "+49301", "unknown", 1),
        (
            "history",
            "History-Info: <sip:200@a>;index=1, <sip:300@a;cause=486>;index=1.1\r\n",
            "200",
            "200",
            "cfb",
            1,
        ),
        (
            "history whose reason is in the entry that was left",
            "History-Info: <sip:200@a?Reason=SIP%3Bcause%3D302%3Btext%3D%22Moved%22>;index=1, <sip:300@a>;index=1.1\r\n",
            "200",
            "200",
            "cfu",
            1,
        ),
        (
            "history with a reason that is none",
            "History-Info: <sip:200@a?Reason=%3B&Reason=SIP>;index=1, <sip:300@a>;index=1.1\r\n",
            "200",
            "200",
            "unknown",
            1,
        ),
        ("nonsense", "Diversion: \"\r\n", "", "", "", 0),
    ] {
        let mut lab = Lab::new(site());
        let mut phone = Phone::new("trunk").password(None);
        phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", headers, &offer());
        let id = lab.started.pop_front().unwrap();
        let core = lab.shard.core.borrow();
        let said = &core.get(id).unwrap().redirecting;
        let got = (said.from.number(), said.orig.number(), said.reason.as_str(), said.count);
        assert_eq!(got, (from, orig, reason, count), "{name}");
    }
    // Told.
    let mut lab = Lab::new(trunk(|trunk| (trunk.send_diversion, trunk.send_history) = (true, true)));
    lab.dial_with("123@trunk", Request::default(), |shard, id| {
        let party = PartyId {
            number: Some("200\r\nEvil: 1".to_owned()),
            name: Some("B\"ob".to_owned()),
            ..PartyId::default()
        };
        let sent_on =
            Redirecting { from: party, reason: "cfb".to_owned(), count: 1, ..Redirecting::default() };
        shard.core.borrow_mut().get_mut(id).unwrap().redirecting = sent_on;
    })
    .unwrap();
    let invite = lab.sent();
    let diversion = header(&invite, "Diversion");
    assert!(diversion.starts_with("\"B\\\"ob\" <sip:200"), "{diversion}");
    assert!(diversion.ends_with("@192.0.2.1>;reason=user-busy"), "{diversion}");
    let history: Vec<String> = invite
        .view()
        .values(::sip::HeaderName::HistoryInfo)
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect();
    assert_eq!(history.last().unwrap(), "<sip:123@198.51.100.7;cause=486>;index=1.1");
    assert!(!invite.view().has(::sip::HeaderName::from_bytes(b"Evil")));
}

#[test]
fn a_party_that_changes_during_the_call_is_told_by_what_the_endpoint_and_its_peer_take() {
    for (name, by_update, allow, send, method) in [
        ("by UPDATE, though by re-INVITE would do", false, "Allow: INVITE, UPDATE\r\n", true, Some("UPDATE")),
        ("by re-INVITE", false, "Allow: INVITE\r\n", true, Some("INVITE")),
        ("by UPDATE", true, "Allow: INVITE, UPDATE\r\n", true, Some("UPDATE")),
        ("by UPDATE to one that has none", true, "Allow: INVITE\r\n", true, Some("INVITE")),
        ("not at all", true, "Allow: INVITE, UPDATE\r\n", false, None),
    ] {
        let mut lab = Lab::new(trunk(|trunk| {
            trunk.send_pai = true;
            trunk.send_connected_line = send;
            trunk.connected_by_update = by_update;
        }));
        let phone = Phone::new("trunk");
        let id = lab.dial("trunk").unwrap();
        let invite = lab.sent();
        phone.respond(&mut lab, &invite, 200, allow, &offer());
        lab.lines();
        let party =
            PartyId { number: Some("300".to_owned()), name: Some("Carol".to_owned()), ..PartyId::default() };
        lab.indicate(id, Indication::ConnectedLine(party.clone()));
        let told = lab.next().map(|(_, message)| message);
        assert_eq!(told.as_ref().map(line).as_deref(), method, "{name}");
        let Some(told) = told else { continue };
        assert_eq!(header(&told, "P-Asserted-Identity"), "\"Carol\" <sip:300@192.0.2.1>", "{name}");
        phone.respond(&mut lab, &told, 200, "", if method == Some("INVITE") { "x" } else { "" });
        lab.lines();
        lab.indicate(id, Indication::ConnectedLine(party));
        assert!(lab.lines().is_empty(), "{name}: it knows already");
    }
}

#[test]
fn the_dialplan_reads_both_messages_and_chooses_what_is_offered() {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("trunk").password(None);
    let headers = "X-One: 1\r\nX-Two: 2\r\nx-one: 3\r\n";
    phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", headers, &offer());
    let id = lab.started.pop_front().unwrap();
    assert_eq!(lab.read(id, "PJSIP_HEADERS", "x-").as_deref(), Some("X-One,X-Two,x-one"));
    assert_eq!(lab.read(id, "PJSIP_RESPONSE_HEADERS", ""), None, "it placed no call");
    assert_eq!(lab.read(id, "PJSIP_RESPONSE_HEADER", "read,X-One"), None);
    // A call of ours.
    let mut lab = Lab::new(site());
    let phone = Phone::new("trunk");
    let id = lab
        .dial_with("trunk", Request::default(), |shard, id| {
            let write = |args: &str, value: &str| {
                shard
                    .with_tech(id, |tech, core| tech.write(core, id, "PJSIP_MEDIA_OFFER", args, value))
                    .unwrap()
            };
            assert!(write("audio", "!all,g722"), "whether the endpoint allows it or not");
            assert!(!write("video", "alaw") && !write("audio", "!all"));
            assert!(write("audio", "!all,alaw"));
        })
        .unwrap();
    assert_eq!(lab.read(id, "PJSIP_MEDIA_OFFER", "audio").as_deref(), Some("alaw"));
    let invite = lab.sent();
    assert!(body(&invite).contains("RTP/AVP 8 101"), "{}", body(&invite));
    phone.respond(&mut lab, &invite, 200, "X-Route: gold\r\n", &sdp("198.51.100.7", 4000, "8 101"));
    lab.lines();
    assert_eq!(lab.read(id, "PJSIP_RESPONSE_HEADER", "read,X-Route").as_deref(), Some("gold"));
    assert_eq!(lab.read(id, "PJSIP_RESPONSE_HEADERS", "X-").as_deref(), Some("X-Route"));
    let refresh = |lab: &mut Lab| {
        lab.with(|sip, core| call::Tech::write(sip, core, id, "PJSIP_SEND_SESSION_REFRESH", "", "invite"))
    };
    assert!(refresh(&mut lab));
    assert_eq!(line(&lab.sent()), "INVITE");
    assert!(!refresh(&mut lab), "one at a time");
}

#[test]
fn the_dialplan_says_how_digits_travel_and_who_plays_music_of_one_call() {
    for (function, before, value, after, offers) in [
        ("PJSIP_DTMF_MODE", "rfc4733", "inband", "inband", false),
        ("PJSIP_DTMF_MODE", "rfc4733", "info", "info", false),
        ("PJSIP_DTMF_MODE", "rfc4733", "auto", "auto", true),
        ("PJSIP_DTMF_MODE", "rfc4733", "auto_info", "auto_info", true),
        ("PJSIP_DTMF_MODE", "rfc4733", "none", "rfc4733", true),
        ("PJSIP_DTMF_MODE", "rfc4733", "loud", "rfc4733", true),
        ("PJSIP_MOH_PASSTHROUGH", "no", "yes", "yes", true),
        ("PJSIP_MOH_PASSTHROUGH", "no", "perhaps", "no", true),
    ] {
        let mut lab = Lab::new(site());
        let set = |shard: &call::Shard, id| {
            assert_eq!(
                shard.with_tech(id, |tech, core| tech.read(core, id, function, "")).flatten().as_deref(),
                Some(before)
            );
            let taken = shard.with_tech(id, |tech, core| tech.write(core, id, function, "", value)).unwrap();
            assert_eq!(taken, after == value, "{function}={value}");
        };
        let id = lab.dial_with("trunk", Request::default(), set).unwrap();
        assert_eq!(lab.read(id, function, "").as_deref(), Some(after), "{function}={value}");
        let invite = lab.sent();
        assert_eq!(body(&invite).contains("telephone-event"), offers, "{function}={value}");
        // The endpoint stays as it is configured.
        let other = lab.dial_with("trunk", Request::default(), |_, _| {}).unwrap();
        assert_eq!(lab.read(other, function, "").as_deref(), Some(before), "{function}={value}");
    }
}
