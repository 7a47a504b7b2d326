//! Who gets in, and what those are told who do not.

use std::rc::Rc;

use ::sip::digest::Algorithm;
use call::Limits;
use call::{DeviceState, Tech as _};
use driver::sip::{Auth, Endpoint, Identify, IdentifyBy, Match, Proof};

use crate::lab::{Lab, PHONE, SECRET, add, address, aor, change, endpoint, header, line, site, udp};
use crate::phone::{Phone, sdp};

/// An answer with everything masked that is random or repeats the question.
fn masked(answer: &::sip::OwnedMessage) -> String {
    let text = String::from_utf8_lossy(&answer.bytes()).into_owned();
    let keep = |line: &&str| !["Via:", "From:", "To:", "Call-ID:"].iter().any(|name| line.starts_with(name));
    let mask = |line: &str| match line.split_once("nonce=\"") {
        Some((before, after)) => {
            let (nonce, rest) = after.split_once('"').unwrap();
            format!("{before}nonce=[{}]{rest}", nonce.len())
        }
        None => line.to_owned(),
    };
    text.lines().filter(keep).map(mask).collect::<Vec<_>>().join("\n")
}

#[test]
fn strangers_wrong_passwords_and_forbidden_addresses_get_the_same_answer() {
    let deny: driver::sip::Access = Rc::new(|_| false);
    for method in
        ["REGISTER", "INVITE", "OPTIONS", "SUBSCRIBE", "MESSAGE", "PUBLISH", "NOTIFY", "REFER", "FOO"]
    {
        let mut answers = Vec::new();
        for case in ["unknown", "wrong password", "endpoint list", "list of all", "without credentials"] {
            let mut config = site();
            match case {
                "endpoint list" => change(&mut config, "alice", |alice| alice.access = Some(deny.clone())),
                "list of all" => config.access = Some(deny.clone()),
                _ => {}
            }
            let mut lab = Lab::new(config);
            let user = if case == "unknown" { "carol" } else { "alice" };
            let password = match case {
                "wrong password" => "guess",
                _ => crate::lab::SECRET,
            };
            let mut phone = Phone::new(user).password(Some(password));
            let body = if method == "INVITE" { sdp("198.51.100.7", 4000, "0") } else { String::new() };
            // Who has proved nothing gets no answer that is much longer than what it sent.
            let agent = format!("User-Agent: {}\r\n", "a".repeat(300));
            let first = phone.request(method, "sip:100@strowger", &agent, &body);
            lab.receive(phone.flow, first);
            let challenge = lab.sent();
            if case != "without credentials" {
                let credentials = phone.credentials(&challenge, method, "sip:100@strowger") + &agent;
                let second = phone.request(method, "sip:100@strowger", &credentials, &body);
                lab.receive(phone.flow, second);
                assert_eq!(
                    masked(&lab.sent()),
                    masked(&challenge).replace("CSeq: 1", "CSeq: 2"),
                    "{method}, {case}"
                );
            }
            answers.push(masked(&challenge));
            let load = lab.sip.borrow().load();
            assert_eq!((load.servers, load.dialogs), (0, 0), "{method}, {case}: nothing is stored");
            assert_eq!((lab.streams.borrow().opened, lab.started.len()), (0, 0), "{method}, {case}");
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{method}: {answers:#?}");
    }
}

#[test]
fn each_attempt_to_get_in_is_a_line_of_the_security_log_and_an_event() {
    for (case, user, password, events) in [
        ("the password", "alice", crate::lab::SECRET, &["ChallengeSent alice", "SuccessfulAuth alice"][..]),
        ("a wrong password", "alice", "guess", &["ChallengeSent alice", "ChallengeResponseFailed alice"]),
        (
            "a name that nobody has",
            "carol",
            "guess",
            &[
                "InvalidAccountID carol",
                "ChallengeSent <unknown>",
                "InvalidAccountID carol",
                "ChallengeResponseFailed <unknown>",
            ],
        ),
    ] {
        let mut lab = Lab::new(site());
        lab.world.watch();
        let mut phone = Phone::new(user).password(Some(password));
        let first = phone.request("OPTIONS", "sip:strowger", "", "");
        lab.receive(phone.flow, first);
        let challenge = lab.sent();
        let credentials = phone.credentials(&challenge, "OPTIONS", "sip:strowger");
        let second = phone.request("OPTIONS", "sip:strowger", &credentials, "");
        lab.receive(phone.flow, second);
        lab.sent();
        let notices = std::mem::take(&mut lab.shard.core.borrow_mut().notices);
        let told: Vec<call::Attempt> = notices
            .into_iter()
            .filter_map(|notice| match notice {
                call::Notice::Security(attempt) => Some(*attempt),
                _ => None,
            })
            .collect();
        let short: Vec<String> = told.iter().map(|a| format!("{} {}", a.event, a.account)).collect();
        assert_eq!(short, events, "{case}");
        let log = lab.world.log(call::Level::Security);
        // Of nobody the log has as many lines as of a user.
        assert_eq!(log.len(), 2, "{case}: {log:?}");
        let logged = if user == "carol" { 1..3 } else { 0..2 };
        for (line, attempt) in log.iter().zip(&told[logged]) {
            assert!(line.starts_with(&format!("SecurityEvent=\"{}\",EventTV=\"", attempt.event)), "{line}");
            assert!(
                line.contains("Service=\"PJSIP\"") && line.contains("LocalAddress=\"IPV4/UDP/"),
                "{line}"
            );
            assert!(
                line.contains(&format!("RemoteAddress=\"IPV4/UDP/{}\"", PHONE.replace(':', "/"))),
                "{line}"
            );
            assert!(!line.contains(password), "{line}");
            // Nobody is told a nonce before somebody has answered it, and never what the answer should have been.
            let nonce = line.split_once("Challenge=\"").map(|(_, rest)| !rest.starts_with('"'));
            let (expected, answered) = match attempt.event {
                "ChallengeSent" => (Some(false), false),
                "ChallengeResponseFailed" => (Some(true), true),
                _ => (None, false),
            };
            assert_eq!(nonce, expected, "{line}");
            assert_eq!(
                line.contains("Response=\"") && line.ends_with("ExpectedResponse=\"\""),
                answered,
                "{line}"
            );
        }
        let notices = lab.world.log(call::Level::Notice).len();
        assert_eq!(notices, usize::from(case != "the password"), "{case}: what fail2ban matches");
    }
}

#[test]
fn requests_of_no_endpoint_are_told_one_by_one_and_noticed_when_they_are_many() {
    let mut lab = Lab::new(site());
    lab.world.watch();
    let ask = |lab: &mut Lab, user: &str, times: usize| -> Vec<String> {
        for _ in 0..times {
            let mut phone = Phone::new(user).password(None);
            phone.call_id = format!("scan-{:?}", lab.now);
            assert_eq!(line(&phone.register(lab, "")), "401");
            lab.now += core::time::Duration::from_millis(900);
        }
        let notices = std::mem::take(&mut lab.shard.core.borrow_mut().notices);
        let event = |notice| match notice {
            call::Notice::Security(attempt) => Some(format!("{} {}", attempt.event, attempt.account)),
            _ => None,
        };
        notices.into_iter().filter_map(event).collect()
    };
    let of = |name| [format!("InvalidAccountID {name}"), "ChallengeSent <unknown>".to_owned()];
    assert_eq!(ask(&mut lab, "carol", 4), [of("carol"), of("carol"), of("carol"), of("carol")].concat());
    assert!(lab.world.log(call::Level::Notice).is_empty());
    assert_eq!(ask(&mut lab, "dave", 2), [of("dave"), of("dave")].concat());
    let log = lab.world.log(call::Level::Notice);
    assert_eq!(log.len(), 1, "once a period is enough for people: {log:?}");
    assert!(log[0].starts_with("Request 'REGISTER' from '<sip:dave@strowger>' failed for '"), "{log:?}");
    assert!(log[0].ends_with(") - No matching endpoint found"), "{log:?}");
    // The next period begins with nothing.
    assert_eq!(ask(&mut lab, "carol", 1), of("carol"));
    // Those of an endpoint do not count.
    lab.now += core::time::Duration::from_secs(5);
    assert_eq!(ask(&mut lab, "alice", 3), ["ChallengeSent alice"; 3]);
    // Ten of an address are told in a minute, whoever they are of.
    assert_eq!(ask(&mut lab, "alice", 5), [""; 0]);
    lab.now += call::security::PERIOD;
    assert_eq!(ask(&mut lab, "alice", 5), ["ChallengeSent alice"; 5]);
}

#[test]
fn the_challenge_of_strangers_is_that_of_an_auth_without_wishes() {
    let mut config = site();
    config.default_realm = "example.org".to_owned();
    config.default_algorithms = vec![::sip::digest::Algorithm::Sha256, ::sip::digest::Algorithm::Md5];
    // All have the same, or a stranger would be challenged like one of them, by its name.
    for name in ["alice", "bob"] {
        let mut auth = (*config.auths[name]).clone();
        auth.algorithms = config.default_algorithms.clone();
        config.auths.insert(name.into(), Rc::new(auth));
    }
    let mut lab = Lab::new(config);
    let mut seen = Vec::new();
    // As long as those of phones: the answer to somebody who has proved nothing has at most one and a half times as much.
    let padding = format!("User-Agent: {}\r\n", "phone ".repeat(30));
    for user in ["alice", "carol"] {
        let answer = Phone::new(user).password(None).register(&mut lab, &padding);
        assert_eq!(answer.view().headers(::sip::HeaderName::WwwAuthenticate).count(), 2, "{user}");
        assert!(header(&answer, "WWW-Authenticate").contains("realm=\"example.org\""), "{user}");
        seen.push(masked(&answer));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn endpoints_are_told_by_address_user_header_and_credentials_in_the_configured_order() {
    for (name, order, identify, user, expected) in [
        ("by address", vec![IdentifyBy::Ip], Some("source"), "whoever", Some("gateway")),
        ("by the user of From", vec![IdentifyBy::Username], None, "gateway", Some("gateway")),
        (
            "address before user",
            vec![IdentifyBy::Ip, IdentifyBy::Username],
            Some("source"),
            "trunk",
            Some("gateway"),
        ),
        (
            "user before address",
            vec![IdentifyBy::Username, IdentifyBy::Ip],
            Some("source"),
            "trunk",
            Some("trunk"),
        ),
        ("by a header", vec![IdentifyBy::Header], Some("header"), "whoever", Some("gateway")),
        ("by the Request-URI", vec![IdentifyBy::RequestUri], Some("uri"), "whoever", Some("gateway")),
        ("by our own address", vec![IdentifyBy::Transport], Some("own"), "whoever", Some("gateway")),
        ("by an address that is not ours", vec![IdentifyBy::Transport], Some("source"), "whoever", None),
        ("by its transport too", vec![IdentifyBy::Ip], Some("source/udp"), "whoever", Some("gateway")),
        ("by another transport", vec![IdentifyBy::Ip], Some("source/tcp"), "whoever", None),
        ("nobody", vec![IdentifyBy::Ip, IdentifyBy::Username], Some("other"), "whoever", None),
        ("an endpoint that does not want it", vec![IdentifyBy::AuthUsername], None, "gateway", None),
    ] {
        let mut config = site();
        config.order = order;
        // It says nothing of rules that name it.
        let ways = vec![IdentifyBy::Username];
        let gateway = Endpoint { auths: Vec::new(), identify_by: ways, ..endpoint("gateway") };
        add(&mut config, gateway, aor("gateway"));
        let (phone_ip, own_ip) = (address(PHONE).ip(), crate::lab::OWN.parse::<core::net::IpAddr>().unwrap());
        let (identify, transport) = match identify.and_then(|rule| rule.split_once('/')) {
            Some((rule, transport)) => (Some(rule), transport),
            None => (identify, ""),
        };
        let rule = match identify {
            Some("own") => Some(Match::Source(Rc::new(move |ip| ip == own_ip))),
            Some("source") => Some(Match::Source(Rc::new(move |ip| ip == phone_ip))),
            Some("header") => Some(Match::Header("X-Key".to_owned(), Rc::new(|value| value == "42"))),
            Some("uri") => Some(Match::RequestUri(Rc::new(|uri| uri.starts_with("sip:100@")))),
            Some(_) => Some(Match::Source(Rc::new(|_| false))),
            None => None,
        };
        config.identifies.extend(rule.map(|rule| Identify {
            name: "rule".into(),
            endpoint: "gateway".into(),
            matches: vec![rule],
            transport: transport.to_owned(),
        }));
        let mut lab = Lab::new(config);
        let mut phone = Phone::new(user).password(None);
        let body = sdp("198.51.100.7", 4000, "0");
        phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", "X-Key: 42\r\n", &body);
        let found = lab.started.pop_front().and_then(|id| {
            let core = lab.shard.core.borrow();
            core.get(id).map(|c| c.name.split(['/', '-']).nth(1).unwrap_or_default().to_owned())
        });
        assert_eq!(found.as_deref(), expected, "{name}");
    }
}

/// Phones of the lab say `user@strowger`.
#[test]
fn who_has_a_domain_in_his_name_is_found_by_it_before_who_has_none() {
    let all = ["x", "x@strowger", "x@example.org"];
    for (name, names, alias, multi_domain, expected) in [
        ("its own domain goes first", &all[..], true, true, Some("x@strowger")),
        ("then what its domain is an alias of", &["x", "x@example.org"], true, true, Some("x@example.org")),
        ("then the user alone", &["x", "x@example.org"], false, true, Some("x")),
        ("in another domain it is nobody", &["x@example.org"], false, true, None),
        ("names without domain are found in any", &["x"], true, true, Some("x")),
        ("disable_multi_domain", &all, true, false, Some("x")),
    ] {
        let mut config = site();
        config.multi_domain = multi_domain;
        if alias {
            config.domain_aliases.insert("strowger".to_owned(), "example.org".to_owned());
        }
        for name in names {
            let phone = Endpoint { auths: Vec::new(), ..endpoint(name) };
            add(&mut config, phone, aor(name));
        }
        let mut lab = Lab::new(config);
        let mut phone = Phone::new("x").password(None);
        let status = line(&phone.register(&mut lab, "Contact: <sip:x@198.51.100.7>\r\n"));
        assert_eq!(status, if expected.is_some() { "200" } else { "401" }, "{name}");
        let bound = lab.with(|sip, _| sip.bindings().map(|(aor, _)| aor.to_owned()).collect::<Vec<_>>());
        assert_eq!(bound, expected.as_slice(), "{name}: its AOR");
        let body = sdp("198.51.100.7", 4000, "0");
        phone.ask_quietly(&mut lab, "INVITE", "sip:100@strowger", "", &body);
        let found = lab.started.pop_front().and_then(|id| {
            let core = lab.shard.core.borrow();
            core.get(id).map(|c| c.name.split(['/', '-']).nth(1).unwrap_or_default().to_owned())
        });
        assert_eq!(found.as_deref(), expected, "{name}: its endpoint");
        if let Some(expected) = expected {
            lab.lines();
            assert!(lab.dial(expected).is_ok(), "{name}: it can be called");
            let state = lab.sip.borrow().device_state(&lab.shard.core.borrow(), expected);
            assert_ne!(state, DeviceState::Invalid, "{name}: its device has a state");
            assert!(
                String::from_utf8_lossy(lab.sent().view().request_uri_bytes()).contains("x@198.51.100.7")
            );
        }
    }
}

#[test]
fn options_are_challenged_unless_the_endpoint_is_open() {
    for (open, status) in [(false, "401"), (true, "200")] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.unauthenticated_options = open);
        let mut lab = Lab::new(config);
        let answer = Phone::new("alice").password(None).ask(&mut lab, "OPTIONS", "sip:100@strowger", "", "");
        assert_eq!(line(&answer), status);
    }
}

#[test]
fn rfc3261_8_2_what_nobody_serves_is_refused_by_name() {
    for (method, status) in [
        ("OPTIONS", "200"),
        ("SUBSCRIBE", "489"),
        ("PUBLISH", "489"),
        ("NOTIFY", "501"),
        ("REFER", "501"),
        ("INFO", "501"),
        ("UPDATE", "501"),
        ("BYE", "481"),
        ("FOO", "501"),
    ] {
        let mut lab = Lab::new(site());
        let answer =
            Phone::new("trunk").password(None).ask(&mut lab, method, "sip:100@strowger", "Event: x\r\n", "");
        assert_eq!(line(&answer), status, "{method}");
        if method == "SUBSCRIBE" {
            assert!(header(&answer, "Allow-Events").contains("dialog"), "{method}");
        }
    }
}

#[test]
fn a_full_house_says_when_to_come_back_and_lets_the_next_in_when_one_leaves() {
    let mut lab = Lab::new(site());
    lab.shard.core.borrow_mut().admission.set_limits(Limits { max_calls: 1, ..Limits::default() });
    let body = sdp("198.51.100.7", 4000, "0");
    let first = Phone::new("trunk").call("one").invite(&mut lab, "100", &body);
    let answer = Phone::new("trunk").call("two").ask(&mut lab, "INVITE", "sip:100@strowger", "", &body);
    assert_eq!(line(&answer), "503");
    let seconds: u32 = header(&answer, "Retry-After").parse().unwrap();
    assert!((5..=30).contains(&seconds), "{seconds}");
    assert_eq!(lab.streams.borrow().opened, 1);
    lab.finish(first, base::Cause::USER_BUSY);
    lab.lines();
    Phone::new("trunk").call("three").invite(&mut lab, "100", &body);
}

#[test]
fn without_a_media_port_a_call_is_refused_and_nothing_is_left() {
    let mut lab = Lab::new(site());
    lab.streams.borrow_mut().full = true;
    let body = sdp("198.51.100.7", 4000, "0");
    let answer = Phone::new("trunk").ask(&mut lab, "INVITE", "sip:100@strowger", "", &body);
    assert_eq!((line(&answer).as_str(), header(&answer, "Retry-After").as_str()), ("488", ""));
    assert_eq!(lab.dial("trunk").unwrap_err(), base::Cause::SWITCH_CONGESTION);
    lab.rest();
}

#[test]
fn rfc3581_4_answers_take_the_way_the_endpoint_needs() {
    for (name, force, rport, expected) in [
        ("forced", true, "", "203.0.113.9:41000"),
        ("asked for", false, ";rport", "203.0.113.9:41000"),
        ("neither: the address it came from, the port of Via", false, "", "203.0.113.9:5062"),
    ] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| trunk.force_rport = force);
        let mut lab = Lab::new(config);
        let mut phone = Phone::new("trunk");
        let text = phone
            .request("OPTIONS", "sip:100@strowger", "", "")
            .replace(";branch", &format!("{rport};branch"));
        lab.receive(udp("203.0.113.9:41000"), text);
        assert_eq!(lab.next().unwrap().0.remote, address(expected), "{name}");
    }
}

#[test]
fn the_port_of_a_challenge_does_not_tell_whether_an_endpoint_has_that_name() {
    for (name, alice, trunk, expected) in [
        ("all forced", true, true, vec!["203.0.113.9:41000"]),
        ("none forced", false, false, vec!["203.0.113.9:5062"]),
        // One for each time that it is asked, so that nobody is sent more than he sends; a phone repeats itself after T1.
        ("some forced", false, true, vec!["203.0.113.9:41000", "203.0.113.9:5062"]),
    ] {
        for user in ["alice", "nobody"] {
            let mut config = site();
            let names: Vec<_> = config.endpoints.keys().cloned().collect();
            names.iter().for_each(|name| change(&mut config, name, |endpoint| endpoint.force_rport = trunk));
            change(&mut config, "alice", |endpoint| endpoint.force_rport = alice);
            let mut lab = Lab::new(config);
            let text = Phone::new(user).request("REGISTER", "sip:strowger", "", "");
            let mut answers = Vec::new();
            for turn in 0..2 {
                lab.receive(udp("203.0.113.9:41000"), text.clone());
                let (flow, answer) = lab.next().unwrap();
                assert_eq!(line(&answer), "401", "{name}, {user}");
                answers.push(flow.remote.to_string());
                assert!(lab.next().is_none(), "{name}, {user}: one answer to one request, {turn}");
                lab.now += core::time::Duration::from_millis(500);
            }
            answers.sort();
            answers.dedup();
            assert_eq!(answers, expected, "{name}, {user}");
        }
    }
}

#[test]
fn each_stored_hash_of_an_auth_admits_by_its_own_algorithm() {
    for offered in [vec![Algorithm::Sha256, Algorithm::Md5], vec![Algorithm::Md5], vec![Algorithm::Sha256]] {
        let mut config = site();
        let realm = config.default_realm.clone();
        let stored = [Algorithm::Md5, Algorithm::Sha256];
        let hash = |of: Algorithm| (of, of.ha1(b"alice", realm.as_bytes(), SECRET.as_bytes()));
        let auth = Auth {
            username: "alice".to_owned(),
            realm: String::new(),
            proof: Proof::Hashes(stored.map(hash).to_vec()),
            algorithms: offered.clone(),
            answers: Vec::new(),
        };
        config.auths.insert("alice".into(), Rc::new(auth));
        let mut lab = Lab::new(config);
        assert_eq!(line(&Phone::new("alice").register(&mut lab, "")), "200", "{offered:?}");
        let wrong = Phone::new("alice").password(Some("wrong")).register(&mut lab, "");
        assert_eq!(line(&wrong), "401", "{offered:?}");
    }
}

#[test]
fn passwords_are_counted_only_where_the_challenge_was_sent_and_over_connections() {
    use ::sip::stack::{ConnectionId, Protocol};
    let rules = call::BanRules {
        per_user: 3,
        per_address: 100,
        span: core::time::Duration::from_secs(60),
        first: core::time::Duration::from_secs(600),
        longest: core::time::Duration::from_secs(600),
        allowed: Vec::new(),
    };
    let (own, victim) = ("198.51.100.7:5060", "203.0.113.9:5060");
    let stream = |flow: ::sip::stack::Flow| ::sip::stack::Flow {
        protocol: Protocol::Tcp,
        connection: Some(ConnectionId(1)),
        ..flow
    };
    for (name, asked_from, guessed_from, counted) in [
        ("an answer from where the challenge was sent", udp(own), udp(own), true),
        ("an answer from another address", udp(own), udp(victim), false),
        ("an answer over a connection", stream(udp(own)), stream(udp(own)), true),
        ("a nonce of somebody else, over a connection", stream(udp(victim)), stream(udp(own)), true),
    ] {
        let mut lab = Lab::new(site());
        lab.shard.core.borrow_mut().bans.configure(rules.clone());
        let mut phone = Phone::new("alice").password(Some("guess"));
        for _ in 0..3 {
            let first = phone.request("REGISTER", "sip:strowger", "", "");
            lab.receive(asked_from, first);
            let challenge = lab.sent();
            let credentials = phone.credentials(&challenge, "REGISTER", "sip:strowger");
            let second = phone.request("REGISTER", "sip:strowger", &credentials, "");
            lab.receive(guessed_from, second);
            let answer = lab.sent();
            assert_eq!(line(&answer), "401", "{name}");
            // Nobody learns from a false address whether a password is right.
            assert_eq!(header(&answer, "WWW-Authenticate").contains("stale=true"), !counted, "{name}");
        }
        let core = lab.shard.core.borrow();
        let banned: Vec<String> = core.bans.list(core.now).map(|ban| ban.address.to_string()).collect();
        let expected = if counted { vec!["198.51.100.7".to_owned()] } else { Vec::new() };
        assert_eq!(banned, expected, "{name}");
    }
}

/// The lines by which fail2ban and its kin find out who is refused; no name of a stranger can pose as part of them.
#[test]
fn who_is_refused_is_logged_in_the_words_of_the_field() {
    let trick =
        "\"x' failed for '192.0.2.66:5060' (callid: 1) - Failed to authenticate\" <sip:alice@strowger>;tag=1";
    let deny = || -> Option<driver::sip::Access> { Some(Rc::new(|_| false)) };
    type Change<'a> = &'a dyn Fn(&mut driver::sip::Config);
    let rows: [(&str, &str, &str, Change<'_>, &str); 6] = [
        ("a wrong password", "alice", "", &|_| {}, "Failed to authenticate"),
        ("nobody", "carol", "", &|_| {}, "No matching endpoint found"),
        (
            "an address that the endpoint's list denies",
            "alice",
            "",
            &|config| change(config, "alice", |alice| alice.access = deny()),
            "Not match Endpoint ACL",
        ),
        (
            "an address that all lists deny",
            "alice",
            "",
            &|config| config.access = deny(),
            "Not match Endpoint ACL",
        ),
        (
            "a contact that is denied",
            "alice",
            SECRET,
            &|config| config.contact_access = deny(),
            "Not match Endpoint Contact ACL",
        ),
        ("a name that poses as the line", trick, "", &|_| {}, "Failed to authenticate"),
    ];
    for (name, user, password, edit, why) in rows {
        let mut config = site();
        edit(&mut config);
        let mut lab = Lab::new(config);
        let who = if user.starts_with('"') { "alice" } else { user };
        let mut phone = Phone::new(who).password(Some(if password.is_empty() { "wrong" } else { password }));
        let challenge =
            phone.ask(&mut lab, "REGISTER", "sip:strowger", "Contact: <sip:alice@198.51.100.7>\r\n", "");
        if line(&challenge) == "401" {
            let proof = phone.credentials(&challenge, "REGISTER", "sip:strowger");
            let text = phone.request("REGISTER", "sip:strowger", &proof, "");
            let text = match user.starts_with('"') {
                true => {
                    let from = text.lines().find(|line| line.starts_with("From:")).unwrap().to_owned();
                    text.replace(&from, &format!("From: {trick}"))
                }
                false => text,
            };
            lab.receive(phone.flow, text);
        }
        let log = lab.world.log(call::Level::Notice);
        let last = log.last().cloned().unwrap_or_default();
        assert!(last.ends_with(&format!(" - {why}")), "{name}: {log:?}");
        let (before, after) = last.split_once(" failed for '").unwrap();
        assert!(before.starts_with("Request 'REGISTER' from '"), "{name}: {last}");
        assert!(after.starts_with(&format!("{PHONE}' (callid: ")), "{name}: {last}");
        assert_eq!(last.matches('\'').count(), 6, "{name}: {last}");
    }
}

#[test]
fn a_message_that_cannot_be_read_leaves_a_line_that_says_why_and_many_leave_few() {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("alice").password(None);
    for (header, why) in [
        ("Contact: <sip:alice@h\r\n", "INVITE cannot be read: Contact is no address: Contact: <sip:alice@h"),
        ("Contact: <tel:+49>\r\n", "scheme of Contact is not served"),
        ("CSeq: 7 INVITE\r\n", "CSeq stands twice"),
    ] {
        let text = phone.request("INVITE", "sip:100@strowger", header, "");
        lab.receive(phone.flow, text);
        let log = lab.world.log(call::Level::Warning);
        assert!(
            log.last().is_some_and(|line| line.contains(why) && line.starts_with("UDP ")),
            "{why}: {log:?}"
        );
    }
    for _ in 0..100 {
        lab.receive(phone.flow, "hello, this is no SIP\r\n\r\n");
    }
    assert!(lab.world.log(call::Level::Warning).len() <= 8);
    lab.lines();
}
