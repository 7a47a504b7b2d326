//! States that one server publishes to another, and to an event state compositor (RFC 3903).

use e2e::{Message, Phone, SECRET, Server, Site};

/// What stands between a word and its end in a document.
fn state(document: &Message) -> String {
    let text = document.text();
    let state = text.split("<state>").nth(1).and_then(|rest| rest.split('<').next());
    state.unwrap_or_else(|| panic!("no state in\n{text}")).to_owned()
}

/// The lamp that is watched comes to this, whatever was told on the way.
fn until_lamp(phone: &mut Phone, wanted: &str) {
    loop {
        let notify = phone.expect("NOTIFY");
        phone.respond(&notify, 200, "OK", false);
        if state(&notify) == wanted {
            return;
        }
    }
}

#[test]
fn a_lamp_at_the_branch_shows_a_phone_of_the_office() {
    let branch =
        Site::new("branch").phone("carol").phone("office").dialplan("[test]\nexten => bob,hint,PJSIP/bob\n");
    let at = branch.sip;
    let branch = branch.add(
        "pjsip.conf",
        "[office]\ntype=inbound-publication\nendpoint=office\nevent_asterisk-devicestate=office\n\
         [office]\ntype=asterisk-publication\ndevice_state=yes\ndevice_state_filter=^PJSIP/\n",
    );
    let branch = Server::start(branch);
    let office = Site::new("office")
        .phone("alice")
        .phone("bob")
        .dialplan("[test]\nexten => bob,1,Dial(PJSIP/bob,20)\n");
    let publish = format!(
        "[branch]\ntype=outbound-publish\nserver_uri=sip:office@{at}\nevent=asterisk-devicestate\noutbound_auth=branch\n\
         [branch]\ntype=auth\nauth_type=userpass\nusername=office\npassword={SECRET}\n"
    );
    let office = Server::start(office.add("pjsip.conf", &publish));
    office.until_logged(&["outbound-publish 'branch'", "has what is published"]);
    let mut carol = Phone::new(at, "carol");
    let lamp = "Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: 600\r\n";
    assert_eq!(carol.ask_with("SUBSCRIBE", "bob", lamp).status(), Some(200));
    until_lamp(&mut carol, "terminated");
    let (mut alice, mut bob) = (Phone::new(office.site.sip, "alice"), Phone::new(office.site.sip, "bob"));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    until_lamp(&mut carol, "early");
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_lamp(&mut carol, "confirmed");
    alice.hang_up();
    bob.until_hung_up();
    until_lamp(&mut carol, "terminated");
    office.until_idle();
    branch.until_idle();
}

#[test]
fn a_compositor_is_told_of_an_extension_from_ringing_to_its_end() {
    let site = Site::new("compositor").phone("alice").phone("bob").dialplan(
        "[test]\nexten => bob,hint,PJSIP/bob\nexten => bob,1,Dial(PJSIP/bob,20)\n[other]\nexten => x,hint,Custom:x\n",
    );
    let mut compositor = Phone::new(site.sip, "compositor");
    let at = compositor.local();
    let publish = format!(
        "[esc]\ntype=outbound-publish\nserver_uri=sip:{at}\nfrom_uri=sip:pbx.example\nevent=dialog\nmulti_user=yes\n\
         @body=application/dialog-info+xml\n@context=^test$\n"
    );
    let server = Server::start(site.add("pjsip.conf", &publish));
    let first = compositor.expect("PUBLISH");
    assert!(first.start.starts_with(&format!("PUBLISH sip:bob@{at} ")), "{}", first.start);
    assert_eq!(
        (first.header("Event"), first.header("SIP-If-Match")),
        (Some("dialog"), None),
        "{}",
        first.text()
    );
    assert_eq!(state(&first), "terminated");
    compositor.grant(&first, "SIP-ETag: tag0\r\nExpires: 600\r\n");
    let mut tags = 0;
    let mut until = |wanted: &str| {
        loop {
            let request = compositor.expect("PUBLISH");
            assert_eq!(request.must("SIP-If-Match"), format!("tag{tags}"), "{}", request.text());
            tags += 1;
            compositor.grant(&request, &format!("SIP-ETag: tag{tags}\r\nExpires: 600\r\n"));
            if state(&request) == wanted {
                return;
            }
        }
    };
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    until("early");
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until("confirmed");
    alice.hang_up();
    bob.until_hung_up();
    until("terminated");
    server.until_idle();
}
