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
