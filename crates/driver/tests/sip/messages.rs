//! MESSAGE outside of calls, in and out.

use call::{Sending, Tech as _, TextMessage};

use crate::lab::{Lab, body, change, header, line, site};
use crate::phone::Phone;

const TEXT: &str = "Content-Type: text/plain\r\n";

#[test]
fn rfc3428_7_a_message_runs_the_dialplan_with_what_it_says() {
    let mut config = site();
    change(&mut config, "alice", |e| {
        e.message_context = "texts".to_owned();
        e.caller.name = Some("Al".to_owned());
    });
    let mut lab = Lab::new(config);
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let headers = format!("{TEXT}X-Room: 12\r\n");
    let answer = alice.ask(&mut lab, "MESSAGE", "sip:600@strowger", &headers, "good\u{7} day");
    assert_eq!(line(&answer), "202");
    let id = lab.started.pop_front().expect("a channel");
    {
        let core = lab.shard.core.borrow();
        let channel = core.get(id).unwrap();
        assert_eq!(&*channel.name, "Message/ast_msg_queue");
        assert_eq!((channel.location.context.as_str(), channel.location.exten.as_str()), ("texts", "600"));
        assert_eq!((channel.caller.number(), channel.caller.name()), ("", ""));
        assert!(channel.stream.is_none() && channel.cdr.disabled);
        let message = channel.message.as_ref().unwrap();
        assert_eq!(message.body, "good day");
        assert_eq!(message.to, "pjsip:600@strowger");
        assert_eq!(message.from, "<sip:alice@strowger>");
        assert_eq!((message.get("x-room"), message.get("PJSIP_RECVADDR")), ("12", "198.51.100.7:5062"));
        assert_eq!((message.get("PJSIP_TRANSPORT"), message.get("PJSIP_ENDPOINT")), ("udp", "Al"));
        assert_eq!((message.get("CSeq"), message.get("Content-Type")), ("2 MESSAGE", "text/plain"));
        assert_eq!(message.get("Authorization"), "", "secrets stay here");
    }
    // Another one meanwhile has a channel of its own.
    let mut trunk = Phone::new("trunk");
    let text = trunk.request("MESSAGE", "sip:600@strowger", TEXT, "hi");
    lab.receive(trunk.flow, text);
    assert_eq!(lab.lines(), ["202"]);
    let other = lab.started.pop_front().expect("a channel");
    let name = lab.shard.core.borrow().get(other).unwrap().name.clone();
    assert!(name.starts_with("Message/ast_msg_queue-"), "{name}");
    lab.finish(other, base::Cause::NORMAL_CLEARING);
    lab.finish(id, base::Cause::NORMAL_CLEARING);
    lab.rest();
}

#[test]
fn rfc3428_addresses_of_a_message_are_told_without_port_and_parameters() {
    for (from, to, told) in [
        (
            "\"Ali ce\" <sip:alice@127.0.0.1:5070;x=1>",
            "<sip:600@127.0.0.1:5060>",
            ("\"Ali ce\" <sip:alice@127.0.0.1>", "pjsip:600@127.0.0.1"),
        ),
        ("<sip:alice@strowger>", "sip:600@strowger;y", ("<sip:alice@strowger>", "pjsip:600@strowger")),
        ("Al\tice <sips:alice@h>", "<sip:h:5061>", ("\"Al ice\" <sips:alice@h>", "pjsip:h")),
    ] {
        let mut config = site();
        change(&mut config, "alice", |e| e.auths.clear());
        let mut lab = Lab::new(config);
        lab.storyless = true;
        let mut alice = Phone::new("alice");
        let text = alice.request("MESSAGE", "sip:600@strowger", TEXT, "hi");
        let text: String = text
            .split_inclusive("\r\n")
            .map(|line| match line.split(':').next() {
                Some("From") => format!("From: {from};tag=1\r\n"),
                Some("To") => format!("To: {to}\r\n"),
                _ => line.to_owned(),
            })
            .collect();
        lab.receive(alice.flow, text);
        assert_eq!(lab.lines(), ["202"], "{from}");
        let id = lab.started.pop_front().expect("a channel");
        let core = lab.shard.core.borrow();
        let message = core.get(id).unwrap().message.as_ref().unwrap();
        assert_eq!((message.from.as_str(), message.to.as_str()), told, "{from}");
    }
}

#[test]
fn rfc3428_a_message_that_is_not_taken_is_refused_by_name() {
    let long = "x".repeat(driver::sip::TEXT_BYTES_MAX + 1);
    for (name, uri, headers, text, status) in [
        ("no type", "sip:600@strowger", "Content-Type: \r\n", "hi", "415"),
        ("another type", "sip:600@strowger", "Content-Type: text/html\r\n", "hi", "415"),
        ("too long", "sip:600@strowger", TEXT, long.as_str(), "413"),
        ("no extension", "sip:nobody@strowger", TEXT, "hi", "404"),
        ("no text is text", "sip:600@strowger", TEXT, "", "202"),
    ] {
        let mut lab = Lab::new(site());
        let answer = Phone::new("alice").ask(&mut lab, "MESSAGE", uri, headers, text);
        assert_eq!(line(&answer), status, "{name}");
        assert_eq!(lab.started.len(), usize::from(status == "202"), "{name}");
    }
}

#[test]
fn rfc3428_8_a_message_that_came_twice_runs_once() {
    let mut lab = Lab::new(site());
    lab.storyless = true;
    let mut trunk = Phone::new("trunk");
    let text = trunk.request("MESSAGE", "sip:600@strowger", TEXT, "once");
    lab.receive(trunk.flow, text.clone());
    lab.receive(trunk.flow, text);
    assert_eq!(lab.lines(), ["202", "202"]);
    assert_eq!(lab.started.len(), 1);
}

#[test]
fn rfc3261_8_1_3_4_a_message_that_is_sent_elsewhere_goes_there_unless_it_has_been_there() {
    let to = |n: usize| format!("Contact: <sip:200@198.51.100.9:{}>\r\n", 5070 + n);
    let login = "WWW-Authenticate: Digest realm=\"x\", nonce=\"y\", algorithm=MD5\r\n";
    for (follows, name, places, expected) in [
        (false, "not asked for", [0, 1, 2, 3, 4, 5, 6], 0),
        (true, "on and on", [0, 1, 2, 3, 4, 5, 6], 5),
        (true, "in a circle", [0, 1, 0, 1, 0, 1, 0], 2),
        (true, "to where it is", [0, 0, 0, 0, 0, 0, 0], 1),
    ] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| {
            (trunk.follows_messages, trunk.outbound_auths) = (follows, vec!["alice".into()]);
        });
        let mut lab = Lab::new(config);
        let mut message = TextMessage { body: "hi".to_owned(), ..TextMessage::default() };
        message.set("X-Room", "12", true);
        assert_eq!(lab.with(|sip, core| sip.message(core, "pjsip:trunk", &message)), Sending::Sent);
        let first = lab.sent();
        let (mut last, mut phone, mut followed) = (first.clone(), Phone::new("trunk"), 0);
        for place in places {
            phone.respond(&mut lab, &last, 302, &to(place), "");
            let Some((flow, next)) = lab.next() else { break };
            assert_eq!(flow.remote, format!("198.51.100.9:{}", 5070 + place).parse().unwrap(), "{name}");
            assert_eq!((header(&next, "X-Room").as_str(), body(&next).as_str()), ("12", "hi"), "{name}");
            assert_eq!(header(&next, "To"), header(&first, "To"), "{name}");
            (last, phone, followed) = (next, Phone::at("elsewhere", flow), followed + 1);
        }
        assert_eq!(followed, expected, "{name}");
        // A stranger who asks for a login gets none.
        if name == "on and on" {
            let mut lab = Lab::new((**lab.sip.borrow().config()).clone());
            assert_eq!(lab.with(|sip, core| sip.message(core, "pjsip:trunk", &message)), Sending::Sent);
            let first = lab.sent();
            Phone::new("trunk").respond(&mut lab, &first, 302, &to(0), "");
            let (flow, next) = lab.next().unwrap();
            Phone::at("elsewhere", flow).respond(&mut lab, &next, 401, login, "");
            assert_eq!(lab.lines(), [""; 0]);
        }
    }
}

#[test]
fn messages_leave_to_endpoints_numbers_and_uris_and_to_nobody_else() {
    let mut config = site();
    config.default_outbound = "trunk".to_owned();
    change(&mut config, "trunk", |e| e.outbound_auths = vec!["alice".into()]);
    for (destination, from, uri, told) in [
        ("pjsip:trunk", "<sip:600@pbx>", "sip:trunk@198.51.100.7:5062", "<sip:600@pbx>"),
        ("pjsip:77@trunk", "pjsip:600", "sip:77@198.51.100.7:5062", "<sip:600@192.0.2.1>"),
        ("pjsip:PJSIP/77@trunk", "sip:me@here:5099", "sip:77@198.51.100.7:5062", "<sip:me@here>"),
        ("pjsip:trunk@127.0.0.1:9999", "me", "sip:trunk@198.51.100.7:5062", "<sip:me@192.0.2.1>"),
        ("pjsip:trunk/trunk", "sip:me", "sip:trunk@198.51.100.7:5062", "<sip:me@192.0.2.1>"),
        ("pjsip:y@203.0.113.5:5071", "me", "sip:y@203.0.113.5:5071", "<sip:me@192.0.2.1>"),
        ("pjsip:203.0.113.5:5062", "me", "sip:203.0.113.5:5062", "<sip:me@192.0.2.1>"),
        ("pjsip:\"N\" <sip:y@203.0.113.5>", "me", "sip:y@203.0.113.5", "<sip:me@192.0.2.1>"),
        (
            "pjsip:trunk/sip:9@203.0.113.5",
            "\"A B\" <sip:600@pbx>",
            "sip:9@203.0.113.5",
            "\"A B\" <sip:600@pbx>",
        ),
        ("pjsip:sip:9@203.0.113.5", "", "sip:9@203.0.113.5", "<sip:asterisk@192.0.2.1>"),
        ("sip:9@203.0.113.5", "x\r\nEvil: 1", "sip:9@203.0.113.5", "<sip:xEvil%3A%201@192.0.2.1>"),
        ("pjsip:nobody", "", "", ""),
        ("pjsip:", "", "", ""),
    ] {
        let mut lab = Lab::new(config.clone());
        let mut message =
            TextMessage { from: from.to_owned(), body: "hi".to_owned(), ..TextMessage::default() };
        message.set("X-Room", "12", true);
        message.set("X-Own", "13", false);
        message.set("Via", "nobody may say this", true);
        let sent = lab.with(|sip, core| sip.message(core, destination, &message));
        if uri.is_empty() {
            assert_eq!(sent, Sending::InvalidUri, "{destination}");
            continue;
        }
        assert_eq!(sent, Sending::Sent, "{destination}");
        let out = lab.sent();
        let view = out.view();
        assert_eq!(String::from_utf8_lossy(view.request_uri_bytes()), uri, "{destination}");
        assert_eq!(header(&out, "From").split(";tag").next(), Some(told), "{destination}");
        assert_eq!((header(&out, "X-Room"), header(&out, "X-Own")), ("12".to_owned(), String::new()));
        assert_eq!(view.vias().count(), 1);
        assert_eq!((body(&out), header(&out, "Contact")), ("hi".to_owned(), String::new()));
        // A challenge is answered once.
        let challenge = "WWW-Authenticate: Digest realm=\"x\", nonce=\"y\", algorithm=MD5\r\n";
        let phone = Phone::new("trunk");
        phone.respond(&mut lab, &out, 401, challenge, "");
        let again = lab.sent();
        assert!(header(&again, "Authorization").contains("username=\"alice\""), "{destination}");
        phone.respond(&mut lab, &again, 401, challenge, "");
        assert_eq!(lab.lines(), [""; 0]);
    }
}
