//! Bodies of several parts (RFC 5621): descriptions, digits, texts and charges beside what others read.

use call::Notice;
use call::charge::{Advice, Fee};

use crate::lab::{Lab, header, line, site};
use crate::phone::{Phone, sdp};

const MIXED: &str = "Content-Type: multipart/mixed;boundary=\"edge\"\r\nMIME-Version: 1.0\r\n";
const ISUP: &str = "Content-Type: application/isup;version=itu-t92+\r\nContent-Disposition: signal;handling=";
const COST: &str = "Content-Type: application/vnd.etsi.aoc+xml\r\nContent-Disposition: render;handling=required\r\n\r\n\
    <aoc><aoc-e><recorded-charges><free-charge/></recorded-charges></aoc-e></aoc>";

fn mixed(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--edge\r\n{part}\r\n")).collect();
    format!("{parts}--edge--\r\n")
}

fn described(port: u16) -> String {
    format!("Content-Type: application/sdp\r\n\r\n{}", sdp("198.51.100.7", port, "0 101"))
}

fn isup(handling: &str) -> String {
    format!("{ISUP}{handling}\r\n\r\n\u{1}\u{10}")
}

#[test]
fn rfc5621_a_call_whose_description_stands_among_other_parts_is_taken() {
    let (optional, required) = (isup("optional"), isup("required"));
    let (offer, kind) = (described(4000), MIXED.replace("mixed", "alternative"));
    let silent = "Content-Type: application/pidf+xml\r\n\r\n<presence/>";
    for (name, headers, text, status) in [
        ("before what may be passed over", MIXED, mixed(&[&offer, &optional]), ""),
        ("after it", MIXED, mixed(&[&optional, silent, &offer]), ""),
        ("beside charges", MIXED, mixed(&[COST, &offer]), ""),
        ("a choice", &kind, mixed(&[&required, &offer]), ""),
        ("beside what has to be read", MIXED, mixed(&[&offer, &required]), "415"),
        ("none, and something to read", MIXED, mixed(&[silent]), "415"),
        ("parts that nobody can tell apart", MIXED, offer.clone(), "400"),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        let answer = alice.ask(&mut lab, "INVITE", "sip:100@strowger", headers, &text);
        let taken = lab.started.pop_front();
        assert_eq!(taken.is_some(), status.is_empty(), "{name}");
        let Some(id) = taken else {
            assert_eq!(line(&answer), status, "{name}");
            let accept = if status == "415" { "application/sdp, multipart/mixed" } else { "" };
            assert_eq!(header(&answer, "Accept"), accept, "{name}");
            lab.rest();
            continue;
        };
        assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok(), "{name}");
        lab.answer(id);
        let ok = lab.sent();
        assert_eq!(
            (line(&ok), header(&ok, "Content-Type")),
            ("200".into(), "application/sdp".into()),
            "{name}"
        );
        alice.ack(&mut lab, &ok, "");
        // And so is an offer inside the call.
        alice.inside(&mut lab, "INVITE", headers, &text.replace("4000", "4002"));
        assert_eq!(line(&lab.sent()), "200", "{name}");
        assert_eq!(lab.plan().remote, "198.51.100.7:4002".parse().ok(), "{name}");
    }
}

#[test]
fn rfc3261_8_2_3_a_call_with_nothing_but_what_may_be_passed_over_is_one_without_an_offer() {
    for (headers, text) in [
        ("Content-Type: text/plain\r\nContent-Disposition: render;handling=optional\r\n", "hello".to_owned()),
        (MIXED, mixed(&[&isup("optional")])),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        alice.ask(&mut lab, "INVITE", "sip:100@strowger", headers, &text);
        let id = lab.started.pop_front().unwrap();
        lab.answer(id);
        let ok = lab.sent();
        assert_eq!((line(&ok), ok.view().sdp().is_some()), ("200".to_owned(), true));
        // The answer in the ACK may be one of several parts, too.
        alice.learn(&ok);
        let ack =
            alice.numbered("ACK", &alice.target.clone(), alice.cseq, MIXED, &mixed(&[&described(4000)]));
        lab.receive(alice.flow, ack);
        assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
        assert_eq!(lab.lines(), [""; 0]);
    }
}

#[test]
fn rfc5621_an_answer_and_charges_may_come_in_one_body() {
    let mut lab = Lab::new(site());
    lab.world.watch();
    let mut trunk = Phone::new("trunk");
    let callee = lab.dial("trunk").unwrap();
    let callee = lab.shard.core.borrow().get(callee).unwrap().name.to_string();
    let invite = lab.sent();
    trunk.called(&invite);
    trunk.respond(&mut lab, &invite, 200, MIXED, &mixed(&[&described(4000), &isup("optional"), COST]));
    assert_eq!(lab.lines(), ["ACK"]);
    assert_eq!(lab.plan().remote, "198.51.100.7:4000".parse().ok());
    let told = |lab: &Lab| {
        let notices = std::mem::take(&mut lab.shard.core.borrow_mut().notices);
        notices
            .into_iter()
            .filter_map(|notice| match notice {
                Notice::Charge { channel, advice } => Some((channel.name.to_string(), *advice)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let end = Advice::End { fee: Fee::Free, billing: None, association: None };
    assert_eq!(told(&lab), [(callee.clone(), end.clone())]);
    for (name, parts, status, count) in [
        ("charges", vec![COST], "200", 1),
        ("beside what may be passed over", vec![&*isup("optional"), COST], "200", 1),
        ("beside what has to be read", vec![&*isup("required"), COST], "415", 0),
        (
            "a document nobody can read",
            vec!["Content-Type: application/vnd.etsi.aoc+xml\r\n\r\n<aoc>"],
            "400",
            0,
        ),
        ("no parts", vec![], "400", 0),
        ("a digit", vec!["Content-Type: application/dtmf-relay\r\n\r\nSignal=5\r\n"], "200", 0),
    ] {
        trunk.inside(&mut lab, "INFO", MIXED, &mixed(&parts));
        assert_eq!((lab.lines(), told(&lab).len()), (vec![status.to_owned()], count), "{name}");
    }
    trunk.inside(&mut lab, "BYE", MIXED, &mixed(&[&isup("required"), COST]));
    assert_eq!((lab.lines(), told(&lab)), (vec!["200".to_owned()], vec![(callee, end)]));
}

#[test]
fn rfc5621_the_text_of_a_message_may_be_one_of_several_parts() {
    let (html, plain) = ("Content-Type: text/html\r\n\r\n<p>hi", "Content-Type: text/plain\r\n\r\nhi\r\nyou");
    let choice = MIXED.replace("mixed", "alternative");
    for (name, headers, parts, status) in [
        ("the plain of two forms", choice.as_str(), vec![plain, html], "202"),
        ("beside others", MIXED, vec![html, plain], "202"),
        ("none that is plain", choice.as_str(), vec![html], "415"),
        ("beside what has to be read", MIXED, vec![plain, &*isup("required")], "415"),
    ] {
        let mut lab = Lab::new(site());
        lab.storyless = true;
        let answer =
            Phone::new("alice").ask(&mut lab, "MESSAGE", "sip:600@strowger", headers, &mixed(&parts));
        assert_eq!(line(&answer), status, "{name}");
        let Some(id) = lab.started.pop_front() else { continue };
        let core = lab.shard.core.borrow();
        assert_eq!(core.get(id).unwrap().message.as_ref().unwrap().body, "hi\r\nyou", "{name}");
    }
}
