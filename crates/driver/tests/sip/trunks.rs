//! Registrations of ours with other servers.

use core::time::Duration;
use std::rc::Rc;

use ::sip::OwnedMessage;
use ::sip::registration::Rules;
use driver::sip::{Auth, Config, Proof, Registration};

use crate::lab::{Lab, SECRET, address, change, header, line, site, tcp};
use crate::phone::{Phone, sdp};

/// Where the registrar is.
const REGISTRAR: &str = "198.51.100.7:5062";

pub fn registration() -> Registration {
    Registration {
        name: "provider".into(),
        server_uri: format!("sip:{REGISTRAR}"),
        client_uri: "sip:4930@example.com".to_owned(),
        transport: String::new(),
        outbound_proxy: String::new(),
        outbound_auths: vec!["provider".into()],
        contact_user: "4930".to_owned(),
        contact_params: String::new(),
        rules: Rules {
            expiration: 3600,
            retry: Some(Duration::from_secs(60)),
            forbidden_retry: None,
            fatal_retry: None,
            max_retries: 10,
            rejection_is_permanent: true,
        },
        initial_spread: Duration::ZERO,
        line: true,
        endpoint: "trunk".into(),
        path: false,
        outbound: false,
        user_agent: String::new(),
        security: Vec::new(),
    }
}

pub fn with(change: impl FnOnce(&mut Registration)) -> Config {
    let mut config = site();
    let auth = Auth {
        username: "4930".to_owned(),
        realm: String::new(),
        proof: Proof::Password(SECRET.to_owned()),
        algorithms: vec![::sip::digest::Algorithm::Md5],
        answers: Vec::new(),
    };
    config.auths.insert("provider".into(), Rc::new(auth));
    let mut registration = registration();
    change(&mut registration);
    config.registrations = vec![Rc::new(registration)];
    config
}

/// A laboratory whose first REGISTER has left.
pub fn begun(config: Config) -> (Lab, OwnedMessage, Phone) {
    let mut lab = Lab::new(config);
    lab.pass(Duration::from_millis(1));
    let register = lab.sent();
    assert_eq!(line(&register), "REGISTER");
    (lab, register, Phone::new("registrar"))
}

pub fn status(lab: &Lab) -> (&'static str, Option<u64>) {
    let rows = lab.sip.borrow().registration_rows(lab.now);
    (rows[0].status.name(), rows[0].expires)
}

pub const CHALLENGE: &str = "WWW-Authenticate: Digest realm=\"example.com\", nonce=\"n1\", qop=\"auth\"\r\n";

pub fn accept(lab: &mut Lab, registrar: &Phone, register: &OwnedMessage, more: &str) {
    let contact = format!(
        "Contact: <sip:other@192.0.2.77>;expires=7, {};expires=600\r\n{more}",
        header(register, "Contact")
    );
    registrar.respond(lab, register, 200, &contact, "");
}

#[test]
fn rfc3261_10_2_an_account_is_registered_with_its_password_and_refreshed_in_one_series() {
    let (mut lab, first, registrar) = begun(with(|_| {}));
    assert_eq!(first.view().request_uri_bytes(), format!("sip:{REGISTRAR}").as_bytes());
    assert!(header(&first, "From").starts_with("<sip:4930@example.com>;tag="));
    assert_eq!(header(&first, "To"), "<sip:4930@example.com>");
    assert_eq!(header(&first, "Expires"), "3600");
    assert!(
        header(&first, "Contact").starts_with("<sip:4930@192.0.2.1:5060;line="),
        "{}",
        header(&first, "Contact")
    );
    assert_eq!(status(&lab), ("Unregistered", None));
    registrar.respond(&mut lab, &first, 401, CHALLENGE, "");
    let second = lab.sent();
    assert!(header(&second, "Authorization").contains("username=\"4930\",realm=\"example.com\""));
    accept(&mut lab, &registrar, &second, "");
    assert_eq!(status(&lab), ("Registered", Some(600)), "the registrar's own life of our contact counts");
    let third = (0..600).find_map(|_| {
        lab.pass(Duration::from_secs(1));
        lab.next()
    });
    let third = third.expect("a refresh before the binding lapses").1;
    assert_eq!(header(&third, "Call-ID"), header(&first, "Call-ID"));
    assert_eq!(header(&third, "Contact"), header(&first, "Contact"));
    let number = |message| header(message, "CSeq").split(' ').next().unwrap().parse::<u32>().unwrap();
    assert_eq!((number(&second), number(&third)), (number(&first) + 1, number(&first) + 2));
    assert!(header(&third, "Authorization").contains("nc=00000002"), "it is proved before it is asked for");
    accept(&mut lab, &registrar, &third, "");
    assert_eq!(status(&lab), ("Registered", Some(600)));
}

/// Registrars list bindings as they like to write them; ours is found by what they leave of it.
#[test]
fn rfc3261_10_2_4_our_binding_is_found_however_the_registrar_writes_it() {
    let other = "<sip:other@192.0.2.77>;expires=7";
    for (name, line, contact, more, expected) in [
        ("as we wrote it", true, "<URI>;expires=40", "", 40),
        ("after another one", true, "<sip:other@192.0.2.77>;expires=7, <URI>;expires=40", "", 40),
        ("with further parameters", false, "<URI;x=1;ob>;expires=40;q=0.5", "", 40),
        ("with escapes", false, "<sip:%34930@192.0.2.1:5060>;expires=40", "", 40),
        ("without brackets", false, "sip:4930@192.0.2.1:5060;expires=40", "", 40),
        ("as a NAT has made it, alone", false, "<sip:4930@203.0.113.9:61022>;expires=40", "", 40),
        (
            "as a NAT has made it, among others",
            false,
            "OTHER, <sip:4930@203.0.113.9:61022>;expires=40",
            "",
            40,
        ),
        ("without a port", false, "OTHER, <sip:4930@203.0.113.9>;expires=40", "", 40),
        ("by its token only", true, "OTHER, <sip:x@203.0.113.9;TOKEN>;expires=40", "", 40),
        ("under another name, alone", false, "<sip:x@203.0.113.9:61022>;expires=40", "", 40),
        (
            "the exact one before one of the same user",
            false,
            "<sip:4930@h>;expires=9, <URI>;expires=40",
            "",
            40,
        ),
        (
            "the shortest of those that are alike",
            false,
            "<sip:4930@a>;expires=90, <sip:4930@b>;expires=40",
            "",
            40,
        ),
        ("its own life before the general one", false, "<URI>;expires=40", "Expires: 90\r\n", 40),
        ("without a life of its own", false, "OTHER, <URI>", "Expires: 40\r\n", 40),
        ("not listed", false, "OTHER, <sip:x@203.0.113.9>;expires=5", "Expires: 40\r\n", 40),
        ("nothing listed", false, "", "Expires: 40\r\n", 40),
        ("one that cannot be read beside it", false, "<sip:broken, <URI>;expires=40", "Expires: 40\r\n", 40),
    ] {
        let (mut lab, first, registrar) = begun(with(|of| of.line = line));
        let own = header(&first, "Contact");
        let uri = own.trim_start_matches('<').split('>').next().unwrap().to_owned();
        let token = uri.split_once(';').map(|(_, token)| token.to_owned()).unwrap_or_default();
        let contact = contact.replace("URI", &uri).replace("OTHER", other).replace("TOKEN", &token);
        let contact = if contact.is_empty() { contact } else { format!("Contact: {contact}\r\n") };
        registrar.respond(&mut lab, &first, 200, &format!("{contact}{more}"), "");
        assert_eq!(status(&lab), ("Registered", Some(expected)), "{name}");
    }
}

#[test]
fn failures_follow_the_rules_of_the_site() {
    let lenient = |of: &mut Registration| {
        of.rules.forbidden_retry = Some(Duration::from_secs(300));
        of.rules.rejection_is_permanent = false;
    };
    type Row =
        (&'static str, Box<dyn Fn(&mut Registration)>, Vec<(u16, &'static str)>, &'static str, Option<u64>);
    let rows: Vec<Row> = vec![
        (
            "overload",
            Box::new(|_| {}),
            vec![(503, "Retry-After: 90 (soon);duration=5\r\n")],
            "Rejected",
            Some(90),
        ),
        ("unknown account", Box::new(|_| {}), vec![(404, "")], "Stopped", None),
        ("forbidden", Box::new(|_| {}), vec![(403, "")], "Stopped", None),
        ("forbidden, tried again", Box::new(lenient), vec![(403, "")], "Rejected", Some(300)),
        (
            "a wrong password is shown once",
            Box::new(|_| {}),
            vec![(401, CHALLENGE), (401, CHALLENGE)],
            "Stopped",
            None,
        ),
        (
            "a wrong password, tried again",
            Box::new(lenient),
            vec![(401, CHALLENGE), (401, CHALLENGE)],
            "Rejected",
            Some(60),
        ),
        (
            "no password for that realm",
            Box::new(|of| of.outbound_auths.clear()),
            vec![(401, CHALLENGE)],
            "Stopped",
            None,
        ),
        ("a redirection", Box::new(|_| {}), vec![(302, "Contact: <sip:evil.example>\r\n")], "Stopped", None),
    ];
    for (name, change, answers, expected, wait) in rows {
        let (mut lab, mut register, registrar) = begun(with(change));
        for (place, (status, headers)) in answers.iter().enumerate() {
            if place > 0 {
                register = lab.sent();
            }
            registrar.respond(&mut lab, &register, *status, headers, "");
        }
        assert_eq!(status(&lab).0, expected, "{name}");
        assert!(lab.lines().is_empty(), "{name}: nothing more leaves at once");
        let Some(wait) = wait else {
            lab.pass(Duration::from_secs(100_000));
            assert!(lab.lines().is_empty(), "{name}: it is given up");
            continue;
        };
        lab.pass(Duration::from_secs(wait - 1));
        assert!(lab.lines().is_empty(), "{name}: it waits");
        lab.pass(Duration::from_secs(1));
        assert_eq!(lab.lines(), ["REGISTER"], "{name}");
    }
}

#[test]
fn rfc3261_10_2_8_a_longer_life_is_asked_for_at_once() {
    let (mut lab, first, registrar) = begun(with(|of| of.rules.expiration = 60));
    registrar.respond(&mut lab, &first, 423, "Min-Expires: 300\r\n", "");
    let second = lab.sent();
    assert_eq!(header(&second, "Expires"), "300");
    registrar.respond(&mut lab, &second, 200, "Expires: 300\r\nContact: <sip:nobody@192.0.2.9>\r\n", "");
    assert_eq!(status(&lab), ("Registered", Some(300)));
}

#[test]
fn first_registrations_are_spread_over_the_span_of_their_section() {
    let mut config = with(|_| {});
    config.registrations = (0..4)
        .map(|place| {
            let initial_spread = Duration::from_secs(if place < 2 { 0 } else { 100 });
            Rc::new(Registration { name: format!("r{place}").into(), initial_spread, ..registration() })
        })
        .collect();
    let mut lab = Lab::new(config);
    let mut sent_at = Vec::new();
    for millis in (0..5000).step_by(10) {
        lab.pass(Duration::from_millis(10));
        // Those that were sent already are sent again; they are no other registrations.
        while let Some((_, register)) = lab.next() {
            let call_id = header(&register, "Call-ID");
            if !sent_at.iter().any(|(_, known)| *known == call_id) {
                sent_at.push((millis, call_id));
            }
        }
    }
    assert_eq!(sent_at.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 0, 1990, 2990]);
}

#[test]
fn a_silent_registrar_is_tried_again_and_found_by_a_name_that_comes_late() {
    let (mut lab, ..) = begun(with(|_| {}));
    lab.pass(Duration::from_secs(32));
    lab.lines();
    assert_eq!(status(&lab).0, "Rejected");
    lab.pass(Duration::from_secs(60));
    assert_eq!(lab.lines().first().map(String::as_str), Some("REGISTER"));
    // A name.
    let mut lab = Lab::new(with(|of| of.server_uri = "sip:registrar.example".to_owned()));
    lab.pass(Duration::from_secs(5));
    assert!(lab.lines().is_empty(), "its address is awaited");
    let asked = lab.lookups();
    assert!(asked.contains(&"A registrar.example".to_owned()), "{asked:?}");
    assert!(asked.contains(&"SRV _sip._udp.registrar.example".to_owned()), "{asked:?}");
    lab.resolved("registrar.example", &["198.51.100.9".parse().unwrap()]);
    lab.pass(Duration::from_secs(1));
    let (flow, register) = lab.next().unwrap();
    assert_eq!((flow.remote, line(&register).as_str()), (address("198.51.100.9:5060"), "REGISTER"));
}

#[test]
fn a_call_that_carries_the_line_belongs_to_its_endpoint() {
    let (mut lab, register, registrar) = begun(with(|_| {}));
    accept(&mut lab, &registrar, &register, "");
    let contact = header(&register, "Contact");
    let own = contact.trim_matches(['<', '>']).to_owned();
    let offer = sdp("203.0.113.5", 4000, "0 101");
    // From anywhere: providers call from other addresses than they register at.
    for (name, uri, taken) in [
        ("with the line", own.clone(), true),
        ("with another line", own.replace("line=", "line=0"), false),
        ("without", "sip:4930@192.0.2.1:5060".to_owned(), false),
    ] {
        let mut caller = Phone::at("0301234", crate::lab::udp("203.0.113.5:5060"))
            .password(None)
            .call(&name.replace(' ', "-"));
        let answer = caller.ask(&mut lab, "INVITE", &uri, "", &offer);
        assert_eq!(lab.started.pop_front().is_some(), taken, "{name}: {}", line(&answer));
        if !taken {
            assert_eq!(line(&answer), "401", "{name}");
        }
    }
    // Its access list holds all the same.
    let mut config = with(|_| {});
    change(&mut config, "trunk", |trunk| trunk.access = Some(Rc::new(|_| false)));
    let (mut lab, register, _) = begun(config);
    let uri = header(&register, "Contact").trim_matches(['<', '>']).to_owned();
    let mut caller = Phone::at("0301234", crate::lab::udp("203.0.113.5:5060")).password(None);
    assert_eq!(line(&caller.ask(&mut lab, "INVITE", &uri, "", &offer)), "401");
}

#[test]
fn rfc3608_6_1_calls_take_the_way_that_the_registrar_asks_for() {
    let mut config = with(|_| {});
    crate::lab::change_aor(&mut config, "trunk", |aor| aor.contacts = vec![format!("sip:{REGISTRAR}")]);
    let (mut lab, register, registrar) = begun(config);
    accept(&mut lab, &registrar, &register, "Service-Route: <sip:203.0.113.9;lr>, <sip:core.example;lr>\r\n");
    lab.dial("0301234@trunk").unwrap();
    let (flow, invite) = lab.next().unwrap();
    assert_eq!(flow.remote, address("203.0.113.9:5060"));
    let routes: Vec<_> =
        invite.view().headers(::sip::HeaderName::Route).map(String::from_utf8_lossy).collect();
    assert_eq!(routes, ["<sip:203.0.113.9;lr>", "<sip:core.example;lr>"]);
}

#[test]
fn what_a_registration_says_of_itself_is_the_sites_to_choose() {
    let (_, register, _) = begun(with(|of| {
        of.path = true;
        of.outbound = true;
        of.user_agent = "Desk 7\r\nEvil: yes".to_owned();
        of.contact_params = "q=0.5".to_owned();
        of.line = false;
    }));
    assert_eq!(header(&register, "Supported"), "path, outbound");
    assert!(header(&register, "User-Agent").starts_with("Desk 7"));
    assert_eq!(register.view().headers(::sip::HeaderName::UserAgent).count(), 1);
    assert!(!register.view().has(::sip::HeaderName::from_bytes(b"Evil")), "a value stays one value");
    let contact = header(&register, "Contact");
    assert!(
        contact.starts_with("<sip:4930@192.0.2.1:5060>;reg-id=1;+sip.instance=\"<urn:uuid:"),
        "{contact}"
    );
    assert!(contact.ends_with(";q=0.5"), "{contact}");
}

#[test]
fn rfc3261_10_2_2_a_registration_is_taken_back_by_hand_and_when_its_section_goes() {
    let (mut lab, register, registrar) = begun(with(|_| {}));
    accept(&mut lab, &registrar, &register, "");
    assert!(lab.with(|sip, core| sip.unregister_now(core, "provider")));
    let goodbye = lab.sent();
    assert_eq!(header(&goodbye, "Expires"), "0");
    registrar.respond(&mut lab, &goodbye, 200, "", "");
    assert_eq!(status(&lab), ("Unregistered", None));
    lab.pass(Duration::from_secs(100_000));
    assert!(lab.lines().is_empty(), "it stays so");
    assert!(lab.with(|sip, core| sip.register_now(core, "*all")));
    let register = lab.sent();
    assert_eq!(header(&register, "Expires"), "3600");
    accept(&mut lab, &registrar, &register, "");
    assert!(!lab.with(|sip, core| sip.register_now(core, "nobody")));
    // The section goes.
    let mut config = with(|_| {});
    config.registrations.clear();
    lab.with(|sip, core| sip.configure(config, core.now));
    let goodbye = lab.sent();
    assert_eq!((line(&goodbye).as_str(), header(&goodbye, "Expires").as_str()), ("REGISTER", "0"));
    registrar.respond(&mut lab, &goodbye, 401, CHALLENGE, "");
    let again = lab.sent();
    assert!(header(&again, "Authorization").contains("response="), "it is proved too");
    registrar.respond(&mut lab, &again, 200, "", "");
    lab.rest();
}

#[test]
fn rfc3261_10_2_2_a_process_that_ends_takes_back_what_is_bound_and_nothing_else() {
    let (mut lab, register, registrar) = begun(with(|_| {}));
    lab.with(|sip, core| sip.take_back_registrations(core));
    assert_eq!(lab.lines(), [""; 0], "nothing is bound yet");
    accept(&mut lab, &registrar, &register, "");
    assert!(!lab.with(|sip, _| sip.awaits_registrars()));
    lab.with(|sip, core| sip.take_back_registrations(core));
    let goodbye = lab.sent();
    assert_eq!((line(&goodbye).as_str(), header(&goodbye, "Expires").as_str()), ("REGISTER", "0"));
    assert_eq!(header(&goodbye, "Contact"), header(&register, "Contact"));
    assert!(lab.with(|sip, _| sip.awaits_registrars()));
    registrar.respond(&mut lab, &goodbye, 401, CHALLENGE, "");
    let again = lab.sent();
    registrar.respond(&mut lab, &again, 200, "", "");
    assert!(!lab.with(|sip, _| sip.awaits_registrars()));
    lab.with(|sip, core| sip.take_back_registrations(core));
    lab.rest();
}

#[test]
fn a_reload_leaves_what_did_not_change_and_tries_again_what_had_given_up() {
    let (mut lab, register, registrar) = begun(with(|_| {}));
    accept(&mut lab, &registrar, &register, "");
    lab.with(|sip, core| sip.configure(with(|_| {}), core.now));
    lab.pass(Duration::from_secs(2));
    assert!(lab.lines().is_empty());
    lab.with(|sip, core| sip.configure(with(|of| of.rules.expiration = 120), core.now));
    lab.pass(Duration::from_millis(1));
    let changed = lab.sent();
    assert_eq!(header(&changed, "Expires"), "120");
    assert_eq!(header(&changed, "Contact"), header(&register, "Contact"), "the same binding");
    registrar.respond(&mut lab, &changed, 404, "", "");
    assert_eq!(status(&lab).0, "Stopped");
    lab.with(|sip, core| sip.configure(with(|of| of.rules.expiration = 120), core.now));
    lab.pass(Duration::from_millis(1));
    assert_eq!(lab.lines(), ["REGISTER"]);
}

#[test]
fn a_closed_connection_is_registered_over_anew() {
    let (mut lab, register, _) = begun(with(|of| of.transport = "tcp".to_owned()));
    let registrar = Phone::at("registrar", tcp(REGISTRAR, 9));
    accept(&mut lab, &registrar, &register, "");
    assert_eq!(status(&lab).0, "Registered");
    lab.with(|sip, core| sip.transport_error(core, tcp(REGISTRAR, 9)));
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.lines(), ["REGISTER"]);
}

/// By which `with` makes registrations that speak of flows.
fn by_flow(transport: &str) -> Config {
    with(|of| (of.outbound, of.transport) = (true, transport.to_owned()))
}

#[test]
fn rfc5626_4_4_2_a_flow_of_datagrams_is_asked_for_by_stun_and_registered_anew_when_it_is_lost() {
    let (mut lab, register, registrar) = begun(by_flow(""));
    accept(&mut lab, &registrar, &register, "Require: outbound\r\n");
    lab.pass(Duration::from_secs(23));
    assert!(lab.asked.is_empty(), "not before four fifths of 29 s");
    for source in ["192.0.2.1:5060", "192.0.2.1:5060", "203.0.113.4:6000"] {
        lab.pass(Duration::from_secs(6));
        let asked = std::mem::take(&mut lab.asked);
        let (flow, request) = asked.first().expect("it is asked");
        assert!(asked.iter().all(|(_, again)| again == request), "one question");
        assert_eq!(flow.remote, address(REGISTRAR));
        let answer = ::sip::stun::answer(request, address(source)).unwrap();
        let before = status(&lab);
        lab.with(|sip, core| sip.stun_answered(core, *flow, &answer));
        assert_eq!(status(&lab).0, before.0);
        lab.pass(Duration::from_millis(1));
        let is_other = source.starts_with("203");
        assert_eq!(lab.lines().len(), usize::from(is_other), "seen at {source}");
        if !is_other {
            lab.pass(Duration::from_secs(23));
            assert!(lab.asked.is_empty());
        }
    }
    // Silence: seven questions, and the flow is gone.
    let (mut lab, register, registrar) = begun(by_flow(""));
    accept(&mut lab, &registrar, &register, "Require: outbound\r\nFlow-Timer: 60\r\n");
    lab.pass(Duration::from_secs(60));
    assert!(!lab.asked.is_empty() && lab.lines().is_empty());
    lab.pass(Duration::from_secs(40));
    let left = lab.lines();
    assert!(lab.asked.len() == 7 && !left.is_empty(), "{} questions, {left:?}", lab.asked.len());
    assert!(left.iter().all(|line| line == "REGISTER"), "{left:?}");
}

#[test]
fn rfc5626_4_4_1_a_connection_is_to_be_pinged_as_the_registrar_says() {
    let flow = tcp(REGISTRAR, 9);
    for (name, config, says, range) in [
        ("its own timer", by_flow("tcp"), "Require: outbound\r\nFlow-Timer: 60\r\n", Some(48..=60)),
        ("the timer alone", by_flow("tcp"), "Flow-Timer: 60\r\n", Some(48..=60)),
        ("none", by_flow("tcp"), "Require: outbound\r\n", Some(96..=120)),
        ("one that would be a flood", by_flow("tcp"), "Flow-Timer: 0\r\n", Some(5..=5)),
        ("it knows no flows", by_flow("tcp"), "", None),
        ("we do not speak of any", with(|of| of.transport = "tcp".to_owned()), "Flow-Timer: 60\r\n", None),
    ] {
        let (mut lab, register, _) = begun(config);
        let registrar = Phone::at("registrar", flow);
        accept(&mut lab, &registrar, &register, says);
        assert_eq!(status(&lab).0, "Registered", "{name}");
        let quiet = lab.sip.borrow().quiet(flow).map(|quiet| quiet.as_secs());
        assert!(
            quiet.is_some() == range.is_some()
                && quiet.is_none_or(|quiet| range.clone().unwrap().contains(&quiet)),
            "{name}: {quiet:?}"
        );
        assert_eq!(lab.sip.borrow().quiet(tcp("198.51.100.9:5060", 9)), None, "{name}: somebody else");
        lab.pass(Duration::from_secs(300));
        assert!(lab.asked.is_empty(), "{name}: pings are no STUN");
    }
}

#[test]
fn rfc5626_11_6_a_server_that_knows_no_flows_is_registered_with_without_them() {
    let (mut lab, register, registrar) = begun(by_flow(""));
    assert!(header(&register, "Contact").contains("reg-id=1"));
    registrar.respond(&mut lab, &register, 439, "", "");
    let again = lab.sent();
    assert!(!again.view().has(::sip::HeaderName::Supported), "{}", header(&again, "Supported"));
    assert!(!header(&again, "Contact").contains("reg-id"), "{}", header(&again, "Contact"));
    assert_eq!(header(&again, "Call-ID"), header(&register, "Call-ID"));
    accept(&mut lab, &registrar, &again, "");
    assert_eq!(status(&lab).0, "Registered");
    let refresh = std::iter::repeat_with(|| {
        lab.pass(Duration::from_secs(1));
        lab.next()
    });
    let (_, refresh) = refresh.take(600).flatten().next().expect("a refresh");
    assert!(!header(&refresh, "Contact").contains("reg-id"), "it keeps to that");
    registrar.respond(&mut lab, &refresh, 439, "", "");
    assert_eq!(status(&lab).0, "Stopped", "once");
}

#[test]
fn a_challenge_without_end_is_given_up() {
    let (mut lab, mut register, registrar) = begun(with(|_| {}));
    for round in 0..10 {
        let stale = CHALLENGE.replace("qop", "stale=true, qop");
        registrar.respond(&mut lab, &register, 401, &stale, "");
        match lab.next() {
            Some((_, again)) => register = again,
            None => {
                assert_eq!(round, 3, "so often is it answered");
                assert_eq!(status(&lab).0, "Stopped");
                return;
            }
        }
    }
    panic!("the challenges are answered for ever");
}
