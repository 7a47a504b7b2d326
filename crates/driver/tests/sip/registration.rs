//! REGISTER, and the questions asked of what is registered.

use core::time::Duration;
use std::rc::Rc;

use driver::sip::ContactState;

use crate::lab::{Lab, add, address, aor, change, change_aor, endpoint, header, line, site, tcp, udp};
use crate::phone::Phone;

fn contacts(lab: &Lab, aor: &str) -> Vec<String> {
    let core = lab.shard.core.borrow();
    lab.sip.borrow().contact_rows(Some(aor), &core).into_iter().map(|row| row.uri).collect()
}
fn state(lab: &Lab, aor: &str) -> ContactState {
    let core = lab.shard.core.borrow();
    lab.sip.borrow().contact_rows(Some(aor), &core).first().expect("a contact").state
}

#[test]
fn rfc3261_10_3_each_register_gets_its_answer() {
    for (name, headers, status, header_name, value) in [
        ("no expiry: the default", "", 200, "Contact", "<sip:alice@198.51.100.7:5062>;expires=3599"),
        (
            "an expiry of its own",
            "Expires: 600\r\n",
            200,
            "Contact",
            "<sip:alice@198.51.100.7:5062>;expires=599",
        ),
        (
            "too long: the maximum",
            "Expires: 90000\r\n",
            200,
            "Contact",
            "<sip:alice@198.51.100.7:5062>;expires=7199",
        ),
        (
            "too short: the minimum",
            "Expires: 30\r\n",
            200,
            "Contact",
            "<sip:alice@198.51.100.7:5062>;expires=59",
        ),
        ("the expiry that was granted", "Expires: 30\r\n", 200, "Expires", "60"),
        ("the expiry that was asked for", "Expires: 600\r\n", 200, "Expires", "600"),
        ("none asked for", "", 200, "Expires", ""),
        ("a star without Expires 0", "Contact: *\r\n", 400, "Contact", ""),
        ("a star with Expires 0", "Contact: *\r\nExpires: 0\r\n", 200, "Contact", ""),
        ("more contacts than may be", "Contact: <sip:a@h1>, <sip:b@h2>, <sip:c@h3>\r\n", 403, "Contact", ""),
    ] {
        let mut lab = Lab::new(site());
        let answer = Phone::new("alice").register(&mut lab, headers);
        assert_eq!(line(&answer), status.to_string(), "{name}");
        assert_eq!(header(&answer, header_name), value, "{name}");
    }
}

#[test]
fn a_phone_registers_no_aor_but_its_own() {
    let mut config = site();
    add(&mut config, driver::sip::Endpoint { aors: Vec::new(), ..endpoint("mute") }, aor("mute"));
    config.auths.insert("mute".into(), config.auths["alice"].clone());
    let mut lab = Lab::new(config);
    let mut alice = Phone::new("alice");
    let challenge = alice.request("REGISTER", "sip:strowger", "", "");
    lab.receive(alice.flow, challenge);
    let challenge = lab.sent();
    let credentials = alice.credentials(&challenge, "REGISTER", "sip:strowger");
    let theft = alice
        .request("REGISTER", "sip:strowger", &credentials, "")
        .replace("To: <sip:alice@", "To: <sip:bob@");
    lab.receive(alice.flow, theft);
    assert_eq!(line(&lab.sent()), "404");
    assert!(contacts(&lab, "bob").is_empty());
}

#[test]
fn a_contact_list_holds_for_what_phones_register() {
    let inside: driver::sip::Access = Rc::new(|ip| ip.to_string().starts_with("10."));
    for (contact, status) in [
        ("<sip:a@10.0.0.5>", "200"),
        ("<sip:a@203.0.113.5>", "403"),
        ("<sip:a@evil.example>", "403"),
        ("<sip:a@10.0.0.5;maddr=203.0.113.5>", "403"),
        ("<sip:a@10.0.0.5;maddr=10.0.0.6>", "200"),
        ("<sip:a@10.0.0.5;maddr=evil.example>", "403"),
        ("*", "200"),
    ] {
        let mut config = site();
        let list = inside.clone();
        change(&mut config, "alice", move |alice| alice.contact_access = Some(list));
        let mut lab = Lab::new(config);
        let headers = format!("Contact: {contact}\r\nExpires: {}\r\n", if contact == "*" { 0 } else { 600 });
        assert_eq!(line(&Phone::new("alice").register(&mut lab, &headers)), status, "{contact}");
    }
}

#[test]
fn rfc3327_5_3_the_path_is_told_and_taken() {
    let mut config = site();
    change_aor(&mut config, "alice", |aor| aor.support_path = true);
    let mut lab = Lab::new(config);
    let answer =
        Phone::new("alice").register(&mut lab, "Path: <sip:203.0.113.4:5070;lr>\r\nSupported: path\r\n");
    assert_eq!(header(&answer, "Path"), "<sip:203.0.113.4:5070;lr>");
    lab.dial("alice").unwrap();
    let (flow, invite) = lab.next().unwrap();
    assert_eq!(flow.remote, address("203.0.113.4:5070"));
    assert_eq!(header(&invite, "Route"), "<sip:203.0.113.4:5070;lr>");
    assert_eq!(invite.view().request_uri_bytes(), b"sip:alice@198.51.100.7:5062");
}

#[test]
fn registrations_lapse_and_watchers_hear_of_it() {
    let mut lab = Lab::new(site());
    lab.shard.core.borrow_mut().watched = true;
    Phone::new("alice").register(&mut lab, "Expires: 60\r\n");
    assert_eq!(contacts(&lab, "alice").len(), 1);
    lab.pass(Duration::from_secs(61));
    assert!(contacts(&lab, "alice").is_empty());
    let told: Vec<&str> = lab
        .shard
        .core
        .borrow()
        .notices
        .iter()
        .filter_map(|notice| match notice {
            call::Notice::ContactStatus { status, .. } => Some(*status),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["NonQualified", "Removed"]);
    lab.rest();
}

/// What the context has for an endpoint.
fn present(lab: &Lab) -> Vec<String> {
    let core = lab.shard.core.borrow();
    core.registered.of("reg").map(|(exten, holder)| format!("{exten} {}", holder.registrar)).collect()
}

#[test]
fn an_endpoint_has_an_extension_from_its_first_contact_to_its_last() {
    let mut config = site();
    config.reg_context = "reg".to_owned();
    change_aor(&mut config, "alice", |aor| aor.max_contacts = 2);
    config.aors.insert("desk".into(), Rc::new(aor("desk")));
    change(&mut config, "alice", |alice| alice.aors.push("desk".into()));
    let kept = config.clone();
    let mut lab = Lab::new(config);
    assert!(present(&lab).is_empty());
    let mut alice = Phone::new("alice");
    for (contact, expires, expected) in [
        ("<sip:a@h1>", 600, 1),
        ("<sip:a@h2>", 300, 1),
        ("<sip:a@h1>", 0, 1),
        ("<sip:a@h2>", 0, 0),
        ("<sip:a@h1>", 600, 1),
    ] {
        let headers = format!("Contact: {contact}\r\nExpires: {expires}\r\n");
        assert_eq!(line(&alice.register(&mut lab, &headers)), "200", "{contact} {expires}");
        assert_eq!(present(&lab).len(), expected, "{contact} {expires}");
        lab.pass(Duration::from_secs(1));
    }
    assert_eq!(present(&lab), ["alice PJSIP"]);
    // Or those that it says.
    let mut said = kept.clone();
    change(&mut said, "alice", |alice| alice.regexten = "201&202@hall".to_owned());
    lab.sip.borrow_mut().configure(said, lab.now);
    lab.pass(Duration::from_millis(20));
    assert_eq!(present(&lab), ["201 PJSIP"]);
    assert_eq!(
        lab.shard.core.borrow().registered.of("hall").map(|(exten, _)| exten.to_owned()).collect::<Vec<_>>(),
        ["202"]
    );
    // A reload says it anew, and so does one that names no context.
    for (context, expected) in [("", 0), ("reg", 1)] {
        let config = driver::sip::Config { reg_context: context.to_owned(), ..kept.clone() };
        lab.sip.borrow_mut().configure(config, lab.now);
        lab.pass(Duration::from_millis(20));
        assert_eq!(present(&lab).len(), expected, "{context}");
    }
    // A contact that was kept over a restart counts like one that has just come.
    let binding =
        lab.sip.borrow().bindings().next().map(|(_, binding)| binding.clone()).expect("it is bound");
    let mut again = Lab::new(kept);
    again.sip.borrow_mut().restore("alice", binding, again.now);
    again.pass(Duration::from_millis(20));
    assert_eq!(present(&again), ["alice PJSIP"]);
    lab.pass(Duration::from_secs(601));
    assert!(present(&lab).is_empty(), "it lapses with the contact");
}

#[test]
fn watchers_hear_of_refreshed_registrations_where_the_site_wants_it() {
    for (tells, expected) in [(true, 2), (false, 1)] {
        let mut config = site();
        config.tells_refreshes = tells;
        let mut lab = Lab::new(config);
        lab.shard.core.borrow_mut().watched = true;
        let mut alice = Phone::new("alice");
        for _ in 0..2 {
            assert_eq!(line(&alice.register(&mut lab, "Expires: 600\r\n")), "200");
            lab.pass(Duration::from_secs(60));
        }
        let core = lab.shard.core.borrow();
        let told = core.notices.iter().filter(|notice| matches!(notice, call::Notice::ContactStatus { .. }));
        assert_eq!(told.count(), expected, "{tells}");
    }
}

#[test]
fn a_phone_behind_a_connection_is_reached_over_it_until_it_closes() {
    let mut lab = Lab::new(site());
    let flow = tcp("203.0.113.9:41000", 7);
    let mut alice = Phone::at("alice", flow);
    // The contact names an address that nobody could connect to.
    let answer = alice.register(&mut lab, "Contact: <sip:alice@10.0.0.1:5060;transport=tcp>\r\n");
    assert_eq!(line(&answer), "200");
    lab.dial("alice").unwrap();
    let (way, invite) = lab.next().unwrap();
    assert_eq!((way, line(&invite)), (flow, "INVITE".to_owned()));
    lab.with(|sip, core| sip.transport_error(core, flow));
    assert!(contacts(&lab, "alice").is_empty());
    assert_eq!(lab.dial("alice").unwrap_err(), base::Cause::NO_ROUTE_DESTINATION);
    lab.rest();
}

#[test]
fn a_phone_behind_nat_is_reached_where_its_register_came_from_when_contacts_are_rewritten() {
    for (rewrite, expected) in [(true, "203.0.113.9:41000"), (false, "10.0.0.1:5060")] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.rewrite_contact = rewrite);
        let mut lab = Lab::new(config);
        let mut alice = Phone::at("alice", udp("203.0.113.9:41000"));
        alice.register(&mut lab, "Contact: <sip:alice@10.0.0.1:5060>\r\n");
        lab.dial("alice").unwrap();
        assert_eq!(lab.next().unwrap().0.remote, address(expected), "rewrite_contact={rewrite}");
    }
}

#[test]
fn an_unanswered_question_counts_after_qualify_timeout_and_any_answer_counts_as_one() {
    let mut config = site();
    change_aor(&mut config, "trunk", |aor| aor.qualify_frequency = 60);
    let mut lab = Lab::new(config);
    lab.pass(Duration::from_secs(1));
    let question = lab.sent();
    assert_eq!(line(&question), "OPTIONS");
    assert_eq!(state(&lab, "trunk"), ContactState::Unknown);
    lab.pass(Duration::from_millis(3001));
    assert_eq!(state(&lab, "trunk"), ContactState::Unavailable);
    assert_eq!(lab.dial("trunk").unwrap_err(), base::Cause::NO_ROUTE_DESTINATION);
    // The answer that comes too late is no answer.
    let trunk = Phone::new("trunk");
    trunk.respond(&mut lab, &question, 200, "", "");
    assert_eq!(state(&lab, "trunk"), ContactState::Unavailable);
    lab.lines();
    lab.pass(Duration::from_secs(57));
    let question = lab.sent();
    trunk.respond(&mut lab, &question, 404, "", "");
    assert_eq!(state(&lab, "trunk"), ContactState::Available);
}

#[test]
fn an_answer_that_is_no_2xx_counts_unless_the_aor_says_otherwise() {
    for (only, expected) in [(false, ContactState::Available), (true, ContactState::Unavailable)] {
        let mut config = site();
        change_aor(&mut config, "trunk", |aor| (aor.qualify_frequency, aor.qualify_2xx_only) = (60, only));
        let mut lab = Lab::new(config);
        lab.pass(Duration::from_secs(1));
        let question = lab.sent();
        Phone::new("trunk").respond(&mut lab, &question, 404, "", "");
        assert_eq!(state(&lab, "trunk"), expected, "qualify_2xx_only={only}");
    }
}

#[test]
fn a_challenged_question_is_proved_where_there_is_a_login_and_is_an_answer_where_there_is_none() {
    let challenge = "WWW-Authenticate: Digest realm=\"carrier\",nonce=\"n1\",algorithm=MD5,qop=\"auth\"\r\n";
    for (name, proves, login, proved, expected) in [
        ("proved whatever the AOR says", false, true, true, ContactState::Available),
        ("proved", true, true, true, ContactState::Available),
        ("without a login", true, false, false, ContactState::Available),
    ] {
        let mut config = site();
        change_aor(&mut config, "trunk", |aor| {
            (aor.qualify_frequency, aor.authenticate_qualify) = (60, proves)
        });
        if login {
            change(&mut config, "trunk", |trunk| trunk.outbound_auths = vec!["alice".into()]);
        }
        let mut lab = Lab::new(config);
        lab.pass(Duration::from_secs(1));
        let question = lab.sent();
        lab.lines();
        assert!(header(&question, "Authorization").is_empty(), "{name}");
        let trunk = Phone::new("trunk");
        trunk.respond(&mut lab, &question, 401, challenge, "");
        let again = lab.next();
        assert_eq!(again.is_some(), proved, "{name}");
        if let Some((_, again)) = again {
            assert_eq!(line(&again), "OPTIONS");
            assert!(header(&again, "Authorization").contains("realm=\"carrier\""), "{name}");
            assert_eq!(state(&lab, "trunk"), ContactState::Unknown, "{name}");
            trunk.respond(&mut lab, &again, 200, "", "");
        }
        assert_eq!(state(&lab, "trunk"), expected, "{name}");
        lab.pass(Duration::from_secs(10));
        assert_eq!(state(&lab, "trunk"), expected, "{name}: the first question is not missed");
    }
    // Challenged again, the login is wrong: nobody tries for ever, and that is an answer too.
    let mut config = site();
    change_aor(&mut config, "trunk", |aor| (aor.qualify_frequency, aor.authenticate_qualify) = (60, true));
    change(&mut config, "trunk", |trunk| trunk.outbound_auths = vec!["alice".into()]);
    let mut lab = Lab::new(config);
    lab.pass(Duration::from_secs(1));
    let trunk = Phone::new("trunk");
    for _ in 0..2 {
        let question = lab.sent();
        lab.lines();
        trunk.respond(&mut lab, &question, 401, challenge, "");
    }
    assert!(lab.lines().is_empty());
    assert_eq!(state(&lab, "trunk"), ContactState::Available);
}

#[test]
fn questions_go_through_the_proxy_of_their_aor_and_calls_do_not() {
    let mut config = site();
    change_aor(&mut config, "trunk", |aor| {
        aor.qualify_frequency = 60;
        aor.outbound_proxy = "sip:203.0.113.8".to_owned();
    });
    let mut lab = Lab::new(config);
    lab.pass(Duration::from_secs(1));
    let (flow, question) = lab.next().expect("a question");
    assert_eq!((flow.remote, line(&question)), (address("203.0.113.8:5060"), "OPTIONS".to_owned()));
    assert_eq!(header(&question, "Route"), "<sip:203.0.113.8;lr>");
    lab.lines();
    lab.dial("trunk").unwrap();
    assert_eq!(lab.next().unwrap().0.remote, address(crate::lab::PHONE));
}

#[test]
fn first_questions_are_spread_over_the_span_that_the_site_gives() {
    // Without a span the first half of a second is left to those who start together with us.
    for (span, quiet, within) in [(0, 499, 500), (30, 0, 30_000)] {
        let mut config = site();
        config.initial_qualify = Duration::from_secs(span);
        for at in 0..40 {
            let (name, uri) = (format!("t{at}"), format!("sip:t@203.0.113.{at}"));
            let asked = driver::sip::Aor { contacts: vec![uri], qualify_frequency: 600, ..aor(&name) };
            add(&mut config, endpoint(&name), asked);
        }
        let mut lab = Lab::new(config);
        let mut asked = std::collections::BTreeSet::new();
        let mut after = |lab: &mut Lab, millis: u64| {
            lab.pass(Duration::from_millis(millis));
            asked.extend(core::iter::from_fn(|| lab.next()).map(|(flow, _)| flow.remote));
            asked.len()
        };
        assert!(quiet == 0 || after(&mut lab, quiet) == 0, "{span}");
        let half = after(&mut lab, within / 2);
        assert!((5..35).contains(&half), "{span}: {half} of 40 in half the time");
        assert_eq!(after(&mut lab, within / 2 + 1), 40, "{span}");
    }
}

#[test]
fn a_contact_by_name_is_asked_as_soon_as_its_address_is_known() {
    let mut config = site();
    change_aor(&mut config, "trunk", |aor| {
        aor.contacts = vec!["sip:pbx.example:5070".to_owned()];
        aor.qualify_frequency = 60;
    });
    let mut lab = Lab::new(config);
    assert_eq!(lab.lookups(), ["A pbx.example"]);
    lab.pass(Duration::from_secs(2));
    lab.dial("trunk").unwrap();
    assert_eq!(state(&lab, "trunk"), ContactState::Unknown);
    assert!(lab.heard().is_empty(), "the call waits for the address");
    lab.resolved("pbx.example", &[]);
    assert_eq!(lab.heard(), ["Hangup 3"]);
    lab.pass(Duration::from_secs(60));
    assert_eq!(state(&lab, "trunk"), ContactState::Unavailable, "a name without an address");
    lab.lookups();
    // The first address has no bind that leads to it.
    let addresses = ["2001:db8::1".parse().unwrap(), "203.0.113.50".parse().unwrap()];
    lab.resolved("PBX.example", &addresses);
    let (flow, question) = lab.next().expect("the question");
    assert_eq!((flow.remote, line(&question)), (address("203.0.113.50:5070"), "OPTIONS".to_owned()));
    Phone::at("trunk", flow).respond(&mut lab, &question, 200, "", "");
    lab.dial("trunk").unwrap();
    assert_eq!(lab.next().unwrap().0.remote, address("203.0.113.50:5070"));
    // A minute later the name is looked up again, and serves meanwhile.
    lab.pass(Duration::from_secs(61));
    lab.dial("trunk").unwrap();
    assert_eq!(lab.lookups(), ["A pbx.example"]);
}

#[test]
fn a_reload_forgets_aors_that_are_gone_and_keeps_the_rest() {
    let mut lab = Lab::new(site());
    Phone::new("alice").register(&mut lab, "");
    Phone::at("bob", udp("198.51.100.8:5060")).register(&mut lab, "");
    let mut config = site();
    config.aors.remove("bob");
    let now = lab.now;
    lab.with(|sip, _| sip.configure(config, now));
    assert_eq!(contacts(&lab, "alice").len(), 1);
    let left = lab.with(|sip, _| sip.bindings().count());
    assert_eq!(left, 1);
}

#[test]
fn a_trace_shows_what_comes_and_what_leaves_of_the_peers_it_is_for() {
    use driver::sip::{Trace, Traced};
    let phone = address(crate::lab::PHONE).ip();
    for (trace, seen) in [
        (Trace::Off, false),
        (Trace::All, true),
        (Trace::Hosts(vec![Traced::Net(phone, 32)]), true),
        (Trace::Hosts(vec![Traced::Net([10, 0, 0, 1].into(), 32), Traced::Net(phone, 8)]), true),
        (Trace::Hosts(vec![Traced::Net([10, 0, 0, 1].into(), 32)]), false),
        (Trace::Hosts(vec![Traced::Name("unknown.example".into())]), false),
    ] {
        let mut config = site();
        config.trace = trace.clone();
        let mut lab = Lab::new(config);
        Phone::new("alice").password(None).register(&mut lab, "");
        let log = lab.world.log(call::Level::Verbose(0));
        let shows = |start: &str| log.iter().any(|line| line.starts_with(start));
        assert_eq!(shows("<--- Received SIP request ("), seen, "{trace:?}");
        assert_eq!(shows("REGISTER sip:strowger SIP/2.0"), seen, "{trace:?}");
        assert_eq!(shows("<--- Transmitting SIP response ("), seen, "{trace:?}");
        assert_eq!(shows("SIP/2.0 401 "), seen, "{trace:?}");
    }
}
