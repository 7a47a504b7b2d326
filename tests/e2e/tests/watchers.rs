//! Lamps, message waiting and text messages, by phones that say what a test says.

use e2e::{Message, Phone, Server, Site};

const DIALPLAN: &str = "
[test]
exten => bob,hint,PJSIP/bob
exten => bob,1,Dial(PJSIP/bob,20)
exten => _7XX,hint,Custom:lamp${EXTEN}
exten => on,1,Set(DEVICE_STATE(Custom:lamp${CALLERID(name)})=INUSE)
exten => text,1,Set(DB(text/body)=${MESSAGE(body)})
 same => n,Set(DB(text/from)=${MESSAGE(from)})
 same => n,Set(MESSAGE(body)=${MESSAGE(body)}!)
 same => n,MessageSend(pjsip:bob,<sip:desk@strowger>)
 same => n,Set(DB(text/status)=${MESSAGE_SEND_STATUS})
";

fn server(name: &str) -> Server {
    Server::start(Site::new(name).phone("alice").phone("bob").phone("carol").dialplan(DIALPLAN))
}

/// Takes the next NOTIFY.
fn told(phone: &mut Phone) -> Message {
    let notify = phone.expect("NOTIFY");
    phone.respond(&notify, 200, "OK", false);
    notify
}

/// The dialog state that the next NOTIFY tells.
fn lamp(phone: &mut Phone) -> String {
    let text = told(phone).text();
    let state = text.split("<state>").nth(1).and_then(|rest| rest.split('<').next());
    state.unwrap_or_else(|| panic!("no state in\n{text}")).to_owned()
}

/// The state comes to this, whatever was told on the way.
fn until(phone: &mut Phone, wanted: &str) {
    while lamp(phone) != wanted {}
}

const LAMP: &str = "Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: 600\r\n";

#[test]
fn rfc4235_a_lamp_follows_a_call_from_ringing_to_its_end() {
    let server = server("lamp");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    let mut carol = Phone::new(server.site.sip, "carol");
    bob.must_register();
    let accepted = carol.ask_with("SUBSCRIBE", "bob", LAMP);
    assert_eq!(
        (accepted.status(), accepted.header("Expires")),
        (Some(200), Some("600")),
        "{}",
        accepted.text()
    );
    assert_eq!(lamp(&mut carol), "terminated");
    let shown = server.json("pjsip show subscriptions inbound");
    assert_eq!(shown["subscriptions"][0]["resource"], "bob", "{shown}");
    let hints = server.cli("core show hints");
    let watched =
        |exten: &str| hints.lines().any(|line| line.starts_with(exten) && line.ends_with("Watchers  1"));
    assert!(watched("bob@test") && !watched("_7XX@test"), "{hints}");
    alice.begin("bob");
    let invite = bob.ring();
    until(&mut carol, "early");
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until(&mut carol, "confirmed");
    alice.hang_up();
    bob.until_hung_up();
    until(&mut carol, "terminated");
    server.until_idle();
}

#[test]
fn a_pattern_has_a_lamp_for_each_number_that_somebody_watches() {
    let server = server("pattern");
    let mut carol = Phone::new(server.site.sip, "carol");
    assert_eq!(carol.ask_with("SUBSCRIBE", "800", LAMP).status(), Some(404));
    assert_eq!(carol.ask_with("SUBSCRIBE", "712", LAMP).status(), Some(200));
    assert_eq!(lamp(&mut carol), "terminated");
    let hints = server.cli("core show hints");
    assert!(
        hints.lines().any(|line| line.starts_with("_7XX@test") && line.ends_with("Watchers  1")),
        "{hints}"
    );
    server.run("devstate change Custom:lamp711 INUSE");
    server.run("devstate change Custom:lamp712 INUSE");
    assert_eq!(lamp(&mut carol), "confirmed");
}

#[test]
fn rfc3428_a_message_runs_the_dialplan_which_sends_another() {
    let server = server("message");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    let answer = alice.say("text", "text/plain", "good morning");
    assert_eq!(answer.status(), Some(202), "{}", answer.text());
    let message = bob.expect("MESSAGE");
    bob.respond(&message, 200, "OK", false);
    assert!(message.text().ends_with("\r\n\r\ngood morning!"), "{}", message.text());
    assert!(message.must("From").starts_with("<sip:desk@"), "{}", message.text());
    assert_eq!(server.database("text", "body"), "good morning");
    assert!(server.database("text", "from").starts_with("<sip:alice@"));
    assert_eq!(server.database("text", "status"), "SUCCESS");
    assert_eq!(alice.say("text", "text/html", "<p>").status(), Some(415));
    assert_eq!(alice.say("nobody", "text/plain", "hm").status(), Some(404));
    server.until_idle();
}

#[test]
fn rfc6665_4_2_2_a_lamp_over_udp_goes_on_in_its_dialog_after_a_kill() {
    let mut server = server("lamp-restart");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    let mut carol = Phone::new(server.site.sip, "carol");
    bob.must_register();
    assert_eq!(carol.ask_with("SUBSCRIBE", "bob", LAMP).status(), Some(200));
    let first = told(&mut carol);
    let number = |notify: &Message| -> u64 {
        notify.must("CSeq").split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let version = |notify: &Message| -> u64 {
        let text = notify.text();
        // The first version is that of XML.
        let rest = text.split(" version=\"").nth(2).and_then(|rest| rest.split('"').next());
        rest.and_then(|version| version.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    // What is acknowledged is on the disk within a second (the journal is synced), and a kill takes nothing of it.
    server.kill_and_restart();
    let again = told(&mut carol);
    for name in ["Call-ID", "To", "From", "Event"] {
        assert_eq!(again.must(name), first.must(name), "{}", again.text());
    }
    assert!(number(&again) > number(&first), "{} follows {}", again.text(), first.text());
    assert!(version(&again) > version(&first), "{}", again.text());
    alice.begin("bob");
    let invite = bob.ring();
    until(&mut carol, "early");
    bob.refuse(&invite, 486, "Busy Here");
    assert_ne!(alice.outcome().status(), Some(200));
    until(&mut carol, "terminated");
    let shown = server.json("pjsip show subscriptions inbound");
    assert_eq!(shown["subscriptions"].as_array().map(Vec::len), Some(1), "{shown}");
    server.until_idle();
}

/// What the next NOTIFY of a phone's keys says: an element of each document.
fn keys(phone: &mut Phone) -> Vec<String> {
    let notify = told(phone);
    assert_eq!(notify.must("Event"), "as-feature-event");
    let text = notify.text();
    let value = |part: &str, name: &str| {
        let rest = part.split(&format!("<{name}>")).nth(1)?;
        Some(rest.split("</").next().unwrap_or_default().to_owned())
    };
    let word = |part: &str| match value(part, "doNotDisturbOn") {
        Some(on) => Some(format!("DND {on}")),
        None => Some(format!("{} {}", value(part, "forwardingType")?, value(part, "forwardTo")?)),
    };
    text.split("<?xml").filter_map(word).collect()
}

#[test]
fn a_key_a_code_and_a_manager_set_the_same_do_not_disturb_and_all_phones_show_it() {
    const KIND: &str = "application/x-as-feature-event+xml";
    const NAMESPACE: &str = "http://www.ecma-international.org/standards/ecma-323/csta/ed3";
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md"))
        .expect("the page");
    let recipe = page.split("<!-- recipe: keys -->\n```\n").nth(1).and_then(|rest| rest.split("```").next());
    let dialplan =
        recipe.expect("the recipe").replace("[phones]", "[test]").replace("Goto(phones", "Goto(test");
    let site = ["6001", "6002", "6003"].into_iter().fold(Site::new("keys"), Site::phone).dialplan(&dialplan);
    let server = Server::start(site);
    let phone = |name: &str| Phone::new(server.site.sip, name);
    let (mut desk, mut home, mut boss, mut caller) =
        (phone("6001"), phone("6001"), phone("6002"), phone("6003"));
    desk.must_register();
    boss.must_register();
    let ask = format!("Event: as-feature-event\r\nAccept: {KIND}\r\nExpires: 600\r\n");
    let off = ["DND false", "forwardImmediate ", "forwardBusy ", "forwardNoAns "];
    for phone in [&mut desk, &mut home] {
        phone.subscribe("6001", &ask);
        assert_eq!(keys(phone), off);
    }
    boss.subscribe("*766001", LAMP);
    assert_eq!(lamp(&mut boss), "terminated");
    // The key.
    let set = |on: bool| {
        format!(
            "<SetDoNotDisturb xmlns=\"{NAMESPACE}\"><device/><doNotDisturbOn>{on}</doNotDisturbOn></SetDoNotDisturb>"
        )
    };
    assert_eq!(desk.set(&ask, KIND, &set(true)).status(), Some(200));
    assert_eq!(
        (keys(&mut desk), keys(&mut home)),
        (vec!["DND true".to_owned()], vec!["DND true".to_owned()])
    );
    assert_eq!(lamp(&mut boss), "confirmed");
    assert_eq!(server.database("DND", "6001"), "YES");
    assert_eq!(caller.call("6001").status(), Some(486));
    // A code, dialled by the other phone.
    home.call("*79");
    assert_eq!(
        (keys(&mut desk), keys(&mut home)),
        (vec!["DND false".to_owned()], vec!["DND false".to_owned()])
    );
    assert_eq!(lamp(&mut boss), "terminated");
    // A manager client, or the console.
    server.run("database put CFIM 6001 6002");
    for phone in [&mut desk, &mut home] {
        assert_eq!(keys(phone), ["forwardImmediate 6002"]);
    }
    caller.begin("6001");
    let invite = boss.ring();
    boss.take(&invite);
    assert_eq!(caller.outcome().status(), Some(200));
    caller.hang_up();
    boss.until_hung_up();
    // The key again, with a number that cannot be dialled: it shows how things stand.
    let forward = |to: &str| {
        format!(
            "<SetForwarding xmlns=\"{NAMESPACE}\"><device/><forwardingType>forwardImmediate</forwardingType>\
             <activateForward>true</activateForward><forwardDN>{to}</forwardDN></SetForwarding>"
        )
    };
    assert_eq!(desk.set(&ask, KIND, &forward("Local/1@trunks")).status(), Some(200));
    assert_eq!(keys(&mut desk), ["forwardImmediate 6002"]);
    assert_eq!(desk.set(&ask, KIND, "<SetForwarding/>").status(), Some(400));
    server.until_idle();
}
