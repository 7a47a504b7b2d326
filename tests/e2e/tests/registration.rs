//! Phones register, and nobody learns who else does (RFC 3261 §10, RFC 7616).

use e2e::{Phone, Server, Sipp, Site, installed, wait};

fn site(name: &str) -> Site {
    Site::new(name)
        .phone("alice")
        .phone("bob")
        .dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(30)\nexten => bob,1,Dial(PJSIP/bob,10)\n")
}

#[test]
fn sipp_registers_with_a_password_refreshes_and_leaves() {
    if !installed(&["sipp"]) {
        return;
    }
    let server = Server::start(site("register"));
    let sip = server.site.sip;
    Sipp::new("register.xml", sip).run();
    Sipp::new("register.xml", sip).over_tcp().run();
    let contacts = server.cli("pjsip show contacts");
    assert!(!contacts.contains("sip:alice@"), "{contacts}");
}

#[test]
fn sipp_registers_on_ipv6() {
    if !installed(&["sipp"]) {
        return;
    }
    let site = Site::on_ipv6("ipv6")
        .phone("alice")
        .dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(30)\n");
    let server = Server::start(site);
    Sipp::new("register.xml", server.site.sip).run();
    Sipp::new("call.xml", server.site.sip).with("TALK", "200").run();
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_refused() {
    if !installed(&["sipp"]) {
        return;
    }
    let server = Server::start(site("refused"));
    Sipp::new("register_refused.xml", server.site.sip).secret("wrong").run();
    Sipp::new("register_refused.xml", server.site.sip).user("nobody").run();
}

/// A response with what differs from one to the next taken out.
fn masked(response: &e2e::Message, name: &str) -> String {
    let own = |value: &str| value.replace(name, "NAME");
    let cut = |value: &str, key: &str, end: &[char]| match value.split_once(key) {
        Some((before, rest)) => {
            let after = rest.find(end).map_or("", |at| &rest[at..]);
            format!("{before}{key}*{after}")
        }
        None => value.to_owned(),
    };
    let mut text = response.start.clone();
    for (key, value) in &response.headers {
        let mut value = own(value);
        for (word, end) in [
            ("branch=", &[';'][..]),
            ("tag=", &[';']),
            ("nonce=\"", &['"']),
            ("opaque=\"", &['"']),
            ("rport=", &[';']),
        ] {
            value = cut(&value, word, end);
        }
        if key == "Via" || key == "Call-ID" || key == "Date" {
            value = format!("{} bytes", value.len());
        }
        text.push_str(&format!("\n{key}: {value}"));
    }
    text + &response.body
}

#[test]
fn a_wrong_password_an_unknown_user_and_a_denied_address_get_the_same_answer_byte_for_byte() {
    let site = site("same").phone_with("carol", "deny=0.0.0.0/0.0.0.0\n");
    let server = Server::start(site);
    // All from one address, so that nothing differs but who they say they are.
    let ip = e2e::address();
    let mut answers = Vec::new();
    for method in ["REGISTER", "INVITE"] {
        for (name, secret) in [("alice", "wrong"), ("nobod", "wrong"), ("carol", e2e::SECRET)] {
            let mut phone = Phone::at(ip, server.site.sip, name);
            phone.secret = secret.to_owned();
            let last = if method == "REGISTER" { phone.register(60) } else { phone.call("100") };
            answers.push((method, name, masked(&last, name)));
        }
    }
    for methods in answers.chunks(3) {
        let [(method, _, first), rest @ ..] = methods else { panic!("three answers") };
        assert!(first.starts_with("SIP/2.0 401 "), "{first}");
        for (_, name, answer) in rest {
            assert_eq!(answer, first, "{method} as {name} differs");
        }
    }
}

#[test]
fn the_first_answer_does_not_tell_who_exists() {
    let server = Server::start(site("first"));
    let ip = e2e::address();
    for method in ["REGISTER", "INVITE", "SUBSCRIBE", "MESSAGE"] {
        let ask = |name: &str| {
            let answer = Phone::at(ip, server.site.sip, name).ask(method, name);
            masked(&answer, name)
        };
        assert_eq!(ask("alice"), ask("nobod"), "{method}");
    }
}

#[test]
fn several_contacts_of_one_aor_are_kept_and_listed() {
    let server = Server::start(site("several"));
    let mut phones: Vec<Phone> = (0..3).map(|_| Phone::new(server.site.sip, "alice")).collect();
    phones.iter_mut().for_each(Phone::must_register);
    let contacts = server.cli("pjsip show contacts");
    for phone in &phones {
        assert!(contacts.contains(&phone.local().to_string()), "{} is missing in {contacts}", phone.local());
    }
}

#[test]
fn registrations_survive_kill_9() {
    let mut server = Server::start(site("kill9"));
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    // Registrations are journaled before the reply and synced within a second; a killed process loses neither.
    server.kill_and_restart();
    let contacts = server.cli("pjsip show contacts");
    assert!(contacts.contains(&bob.local().to_string()), "{contacts}");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn a_registration_that_is_not_refreshed_expires() {
    let server = Server::start(site("expire"));
    let mut bob = Phone::new(server.site.sip, "bob");
    assert_eq!(bob.register(5).status(), Some(200));
    let here = bob.local().to_string();
    assert!(server.cli("pjsip show contacts").contains(&here));
    wait::until_true("it has expired", || !server.cli("pjsip show contacts").contains(&here));
}
