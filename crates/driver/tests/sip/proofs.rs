//! Who is obeyed without a password, by what method, and from where; and how much those get who have proved nothing.

use std::rc::Rc;

use ::sip::OwnedMessage;
use ::sip::stack::Flow;
use driver::sip::{Config, Endpoint, Identify, Match};

use crate::lab::{Lab, add, aor, change, endpoint, line, site, tcp, udp};
use crate::phone::{Phone, sdp};

const METHODS: [&str; 13] = [
    "REGISTER",
    "INVITE",
    "OPTIONS",
    "SUBSCRIBE",
    "PUBLISH",
    "MESSAGE",
    "NOTIFY",
    "REFER",
    "INFO",
    "UPDATE",
    "BYE",
    "PRACK",
    "FOO",
];
const URI: &str = "sip:100@strowger";
const ELSEWHERE: &str = "203.0.113.66:5060";

/// The site with guests.
fn with_guests() -> Config {
    let mut config = site();
    add(&mut config, Endpoint { auths: Vec::new(), ..endpoint("anonymous") }, aor("anonymous"));
    config
}
/// The site where the calls of one endpoint need no password.
fn with_open_calls() -> Config {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.insecure_invite = true);
    config
}
fn body_of(method: &str) -> String {
    if method == "INVITE" { sdp("198.51.100.7", 4000, "0") } else { String::new() }
}
fn uri_of(method: &str) -> &'static str {
    if method == "REGISTER" { "sip:strowger" } else { URI }
}
/// An answer without what is random or repeats the question.
fn masked(answer: &OwnedMessage) -> String {
    let text = String::from_utf8_lossy(&answer.bytes()).into_owned();
    let own = ["Via:", "From:", "To:", "Call-ID:", "CSeq:"];
    let lines = text.lines().filter(|line| !own.iter().any(|name| line.starts_with(name)));
    let mask = |line: &str| match line.split_once("nonce=\"").and_then(|(b, a)| Some((b, a.split_once('"')?)))
    {
        Some((before, (nonce, rest))) => format!("{before}nonce=[{}]{rest}", nonce.len()),
        None => line.to_owned(),
    };
    lines.map(mask).collect::<Vec<_>>().join("\n")
}

/// Sends one request of `user` in this state of credentials; what answers it first, masked, or that a call begins.
fn tried(config: Config, user: &str, flow: Flow, method: &str, state: &str) -> String {
    let mut lab = Lab::new(config);
    let password = if state == "wrong" { "guess" } else { crate::lab::SECRET };
    let mut phone = Phone::at(user, flow).password(Some(password));
    let (uri, body) = (uri_of(method), body_of(method));
    let mut text = phone.request(method, uri, "", &body);
    if state != "none" {
        // A challenge of a method that is never waived.
        let asked = phone.request("REFER", uri, "", "");
        lab.receive(flow, asked);
        let challenge = lab.sent();
        let of = if state == "of another request" { "sip:999@elsewhere" } else { uri };
        let credentials = phone.credentials(&challenge, method, of);
        text = phone.request(method, uri, &credentials, &body);
        if state == "replayed" {
            lab.receive(flow, text);
            lab.lines();
            lab.started.clear();
            text = phone.request(method, uri, &credentials, &body);
        }
    }
    lab.receive(flow, text);
    match lab.next() {
        Some((_, answer)) => masked(&answer).replace(",stale=true", ""),
        None if lab.started.is_empty() => "nothing".to_owned(),
        None => "a call".to_owned(),
    }
}

#[test]
fn rfc3261_22_every_method_asks_for_a_password_and_tells_nobody_who_exists() {
    let flows = [udp("198.51.100.7:5062"), tcp("198.51.100.7:5062", 7)];
    for (site_name, make) in
        [("no guests", site as fn() -> Config), ("guests", with_guests), ("insecure=invite", with_open_calls)]
    {
        for flow in flows {
            for method in METHODS {
                for state in ["none", "wrong", "of another request", "replayed"] {
                    let case = format!("{site_name}, {method}, {state}, {:?}", flow.protocol);
                    let known = tried(make(), "alice", flow, method, state);
                    let unknown = tried(make(), "nobody", flow, method, state);
                    let open = site_name == "insecure=invite" && method == "INVITE";
                    if open {
                        assert_eq!(known, "a call", "{case}");
                    } else {
                        assert!(known.starts_with("SIP/2.0 401"), "{case}: {known}");
                    }
                    if site_name == "guests" && method == "INVITE" {
                        assert_eq!(unknown, "a call", "{case}");
                    } else {
                        assert!(unknown.starts_with("SIP/2.0 401"), "{case}: {unknown}");
                        assert!(open || known == unknown, "{case}:\n{known}\n{unknown}");
                    }
                }
                let right = tried(make(), "alice", flow, method, "right");
                assert!(!right.starts_with("SIP/2.0 401"), "{site_name}, {method}: {right}");
            }
        }
    }
}

/// A call of a user that is up: the phone and what knows its dialog.
fn up(config: Config, user: &str) -> (Lab, Phone) {
    let mut lab = Lab::new(config);
    let mut phone = Phone::new(user);
    let channel = phone.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0"));
    lab.answer(channel);
    let ok = lab.sent();
    phone.ack(&mut lab, &ok, "");
    lab.lines();
    (lab, phone)
}

#[test]
fn rfc3261_12_2_2_who_knows_the_names_of_a_dialog_is_not_obeyed_from_elsewhere_for_it() {
    let identified = || {
        let mut config = site();
        let is_in: driver::sip::Access = Rc::new(|ip| ip.to_string() == "203.0.113.66");
        config.identifies.push(Identify {
            name: "more".into(),
            endpoint: "trunk".into(),
            matches: vec![Match::Source(is_in)],
            transport: String::new(),
        });
        config
    };
    let home = udp("198.51.100.7:5062");
    let moved = udp("198.51.100.7:61000");
    for (case, config, user, flow, password, obeyed) in [
        ("where it was", site(), "alice", home, false, None),
        ("another port of there", site(), "alice", moved, false, None),
        ("a new connection of there", site(), "alice", tcp("198.51.100.7:62000", 9), false, None),
        ("elsewhere", site(), "alice", udp(ELSEWHERE), false, Some("401")),
        ("elsewhere by a connection", site(), "alice", tcp(ELSEWHERE, 8), false, Some("401")),
        ("elsewhere with the password", site(), "alice", udp(ELSEWHERE), true, None),
        ("elsewhere without a password to ask for", site(), "trunk", udp(ELSEWHERE), false, Some("481")),
        ("a guest elsewhere", with_guests(), "stranger", udp(ELSEWHERE), false, Some("481")),
        ("another address of the same identify", identified(), "trunk", udp(ELSEWHERE), false, None),
    ] {
        for method in ["INVITE", "BYE", "INFO", "UPDATE", "REFER", "MESSAGE", "NOTIFY", "SUBSCRIBE", "FOO"] {
            let (mut lab, mut phone) = up(config.clone(), user);
            phone.flow = flow;
            let case = format!("{case}, {method}");
            let headers = match method {
                "REFER" => "Refer-To: <sip:200@strowger>\r\n",
                "NOTIFY" | "SUBSCRIBE" => "Event: refer\r\n",
                _ => "",
            };
            let target = phone.target.clone();
            phone.inside(&mut lab, method, headers, &body_of(method));
            let mut answer = lab.next().map(|(_, answer)| answer);
            if password {
                let challenge = answer.expect("a challenge");
                assert_eq!(line(&challenge), "401", "{case}");
                let credentials = phone.credentials(&challenge, method, &target);
                phone.inside(&mut lab, method, &format!("{headers}{credentials}"), &body_of(method));
                answer = lab.next().map(|(_, answer)| answer);
            }
            let status = answer.as_ref().map(line).unwrap_or_default();
            match obeyed {
                Some(refused) => assert_eq!(status, refused, "{case}"),
                None => assert!(
                    !["", "401", "481"].contains(&&*status) || method == "SUBSCRIBE" || method == "NOTIFY",
                    "{case}: {status}"
                ),
            }
            // The call is there for its own phone, unless somebody has ended it who may.
            lab.lines();
            phone.flow = home;
            phone.cseq += 20;
            phone.inside(&mut lab, "BYE", "", "");
            let ended = obeyed.is_none() && method == "BYE";
            let last = lab.lines().first().cloned();
            let expected = if ended { "481" } else { "200" };
            assert!(password || last.as_deref() == Some(expected), "{case}: then BYE gets {last:?}");
        }
    }
}

/// Octets that left for one address within a minute and a half, with IP and UDP around each message.
fn answered(lab: &mut Lab) -> usize {
    lab.pass(core::time::Duration::from_secs(90));
    let mut total = 0;
    while let Some((flow, message)) = lab.next() {
        assert_eq!(flow.remote.ip().to_string(), "203.0.113.66");
        total += message.bytes().len() + 28;
    }
    total
}

#[test]
fn nobody_is_sent_more_than_one_and_a_half_times_what_was_sent_in_his_name() {
    let mixed = || {
        let mut config = site();
        change(&mut config, "bob", |bob| bob.force_rport = false);
        config.default_algorithms = vec![::sip::digest::Algorithm::Sha256, ::sip::digest::Algorithm::Md5];
        config
    };
    let sites = [
        ("no guests", site as fn() -> Config),
        ("guests", with_guests),
        ("insecure=invite", with_open_calls),
        ("ports and algorithms differ", mixed),
    ];
    let faults = [
        ("as it is", "", ""),
        ("an extension that nobody knows", "", "Require: gizmo\r\n"),
        ("no hops left", "Max-Forwards: 70", "Max-Forwards: 0"),
        ("a scheme that nobody knows", "sip:100@strowger SIP", "gopher:100@strowger SIP"),
        ("another version", "SIP/2.0\r\nVia", "SIP/3.0\r\nVia"),
        ("no CSeq", "CSeq", "X-CSeq"),
        ("a made-up dialog", "\r\nCall-ID", ";tag=made-up\r\nCall-ID"),
        (
            "a made-up nonce",
            "",
            "Authorization: Digest username=\"alice\",realm=\"asterisk\",nonce=\"0\",uri=\"sip:strowger\",response=\"0\"\r\n",
        ),
        ("what replaces a call", "", "Replaces: a;to-tag=b;from-tag=c\r\n"),
    ];
    for (site_name, make) in sites {
        for (fault, from, to) in faults {
            for (user, method) in METHODS
                .iter()
                .chain(&["ACK", "CANCEL"])
                .flat_map(|method| ["alice", "nobody"].map(|user| (user, *method)))
            {
                for short in [true, false] {
                    let mut lab = Lab::new(make());
                    let mut phone = Phone::at(user, udp(ELSEWHERE));
                    let added = if from.is_empty() { to } else { "" };
                    let mut text = match short {
                        true => format!(
                            "{method} {} SIP/2.0\r\nVia: SIP/2.0/UDP {ELSEWHERE}\r\nMax-Forwards: 70\r\nf:<sip:{user}@a>;tag=1\r\nt:sip:a\r\nCall-ID:3\r\nCSeq:1 {method}\r\n{added}\r\n",
                            uri_of(method)
                        ),
                        false => phone.request(method, uri_of(method), added, &body_of(method)),
                    };
                    if !from.is_empty() {
                        text = text.replacen(from, to, 1);
                    }
                    lab.receive(phone.flow, &text);
                    let asked = text.len() + 28;
                    let got = answered(&mut lab);
                    let case = format!("{site_name}, {fault}, {method} of {user}, short: {short}");
                    assert!(got * 2 <= asked * 3, "{case}: {asked} octets were answered by {got}");
                    // A request of a phone is answered all the same.
                    let is_phone = !short && fault == "as it is" && !["ACK", "CANCEL"].contains(&method);
                    assert!(!is_phone || got > 0 || !lab.started.is_empty(), "{case}: no answer");
                }
            }
        }
    }
}
