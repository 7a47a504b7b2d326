//! Final responses that the dialplan chooses, and texts of all kinds in calls.

use base::Cause;
use call::Tech as _;

use crate::lab::{Lab, header, line, site};
use crate::phone::{Phone, sdp};

fn offer() -> String {
    sdp("198.51.100.7", 4000, "0 101")
}

#[test]
fn rfc3261_21_a_call_that_waits_is_refused_with_the_response_of_choice() {
    for (name, text, status, phrase) in [
        ("a number", "437", 437, "Unsupported Certificate"),
        ("a name", "USE_IDENTITY_HEADER", 428, "Use Identity Header"),
        ("a name in full", "PJSIP_SC_BUSY_HERE", 486, "Busy Here"),
        ("nothing known", "999", 603, "Decline"),
    ] {
        let mut lab = Lab::new(site());
        lab.storyless = true;
        let mut trunk = Phone::new("trunk");
        let text_of = trunk.request("INVITE", "sip:600@strowger", "", &offer());
        lab.receive(trunk.flow, text_of);
        let id = lab.started.pop_front().expect("a channel");
        lab.lines();
        assert!(lab.with(|sip, core| sip.write(core, id, "PJSIPHangup", "", text)), "{name}");
        assert_eq!(lab.read(id, "PJSIPHangup", ""), Some(status.to_string()), "{name}");
        assert_eq!(lab.shard.core.borrow().get(id).unwrap().tech_cause, Some(status), "{name}");
        lab.finish(id, Cause::from_sip(status));
        let refused = lab.sent();
        let view = refused.view();
        assert_eq!(view.status().map(::sip::Status::code), Some(status), "{name}");
        assert_eq!(String::from_utf8_lossy(view.reason_phrase()), phrase, "{name}");
    }
    // A call that is up is not refused any more.
    let mut lab = Lab::new(site());
    lab.storyless = true;
    let mut trunk = Phone::new("trunk");
    let text = trunk.request("INVITE", "sip:600@strowger", "", &offer());
    lab.receive(trunk.flow, text);
    let id = lab.started.pop_front().expect("a channel");
    lab.answer(id);
    lab.lines();
    assert!(!lab.with(|sip, core| sip.write(core, id, "PJSIPHangup", "", "437")));
}

#[test]
fn rfc3428_7_text_and_documents_of_all_kinds_pass_in_a_call_and_nothing_else_does() {
    for (kind, text, status, told) in [
        ("text/plain", "good\u{7} day", "202", Some(("text/plain", "good day"))),
        ("text/html;charset=utf-8", "<b>x</b>", "202", Some(("text/html", "<b>x</b>"))),
        ("application/json", "{}", "202", Some(("application/json", "{}"))),
        ("image/png", "x", "415", None),
        ("text/plain", "", "415", None),
    ] {
        let mut lab = Lab::new(site());
        let mut trunk = Phone::new("trunk");
        let invite = trunk.request("INVITE", "sip:600@strowger", "", &offer());
        lab.receive(trunk.flow, invite);
        let id = lab.started.pop_front().expect("a channel");
        lab.answer(id);
        let answers = std::iter::from_fn(|| lab.next()).map(|(_, message)| message);
        let answered = answers.filter(|message| line(message) == "200").last().expect("200");
        trunk.ack(&mut lab, &answered, "");
        lab.heard();
        trunk.inside(&mut lab, "MESSAGE", &format!("Content-Type: {kind}\r\n"), text);
        assert_eq!(line(&lab.sent()), status, "{kind}");
        let heard = lab.heard().join("\n");
        let expected = told.map(|(kind, body)| format!("{body:?}, kind: {kind:?}"));
        match &expected {
            Some(expected) => assert!(heard.contains(expected), "{kind}: {heard}"),
            None => assert!(!heard.contains("Text"), "{kind}: {heard}"),
        }
        // And so it goes on.
        if let Some((kind, body)) = told {
            let text = call::Text { kind: kind.to_owned(), body: body.to_owned() };
            assert!(lab.with(|sip, core| sip.pass_text(core, id, &text)), "{kind}");
            let passed = lab.sent();
            assert_eq!(
                (line(&passed), header(&passed, "Content-Type")),
                ("MESSAGE".to_owned(), kind.to_owned())
            );
        }
    }
}
