//! Security agreements with carriers that protect media (RFC 3329, `mediasec`).

use core::time::Duration;
use std::rc::Rc;

use ::sip::OwnedMessage;
use base::Cause;
use driver::sip::Config;

use crate::lab::{Lab, change, header, line, site};
use crate::phone::{Phone, sdp};
use crate::trunks::{CHALLENGE, accept, begun, registration, status, with};

const OURS: &str = "sdes-srtp;mediasec";
const LIST: &str =
    "Security-Server: msrp-tls;mediasec\r\nSecurity-Server: sdes-srtp;mediasec, dtls-srtp;mediasec\r\n";
const VERIFY: &str = "msrp-tls;mediasec\nsdes-srtp;mediasec\ndtls-srtp;mediasec";

/// `Security-Client` and `Security-Verify` of a request, a mechanism a line as registrars want them, which must require what they
/// are for whenever there is one.
fn agreed(request: &OwnedMessage) -> (String, String) {
    let lines = |name: &str| {
        let view = request.view();
        let lines = view.fields().filter(|(own, _)| own.as_bytes().eq_ignore_ascii_case(name.as_bytes()));
        lines.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>().join("\n")
    };
    let said = (lines("Security-Client"), lines("Security-Verify"));
    let is_there = said != (String::new(), String::new());
    let required = |name: &'static [u8]| {
        let values = request.view();
        values.values(::sip::HeaderName::from_bytes(name)).filter(|tag| *tag == b"mediasec").count()
    };
    let times = usize::from(is_there);
    assert_eq!((required(b"Require"), required(b"Proxy-Require")), (times, times), "{request:?}");
    said
}
fn said(client: &str, verify: &str) -> (String, String) {
    (client.to_owned(), verify.to_owned())
}
fn secured() -> Config {
    let mut config = with(|of| of.security = vec![OURS.to_owned()]);
    change(&mut config, "trunk", |trunk| trunk.security = vec![OURS.to_owned()]);
    config
}

#[test]
fn rfc3329_2_3_1_a_registration_says_back_what_the_registrar_can_do_and_calls_go_on_with_it() {
    let (mut lab, first, registrar) = begun(secured());
    assert_eq!(agreed(&first), said(OURS, ""));
    registrar.respond(&mut lab, &first, 401, &format!("{CHALLENGE}{LIST}"), "");
    let second = lab.sent();
    assert_eq!(agreed(&second), said(OURS, VERIFY));
    assert!(header(&second, "Authorization").contains("username=\"4930\""));
    accept(&mut lab, &registrar, &second, "");
    assert_eq!(status(&lab).0, "Registered");
    // A call that goes out, and everything in it.
    let trunk = Phone::new("trunk");
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    assert_eq!(agreed(&invite), said("", VERIFY));
    trunk.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "0"));
    let ack = lab.sent();
    assert_eq!((line(&ack).as_str(), agreed(&ack)), ("ACK", said("", "")));
    lab.finish(id, Cause::NORMAL_CLEARING);
    assert_eq!(agreed(&lab.sent()), said("", VERIFY), "BYE");
    // One that comes in.
    let mut caller = Phone::new("trunk").call("in");
    let id = caller.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0"));
    lab.answer(id);
    let ok = lab.sent();
    assert_eq!(agreed(&ok), said("", ""), "answers say nothing of it");
    caller.ack(&mut lab, &ok, "");
    lab.finish(id, Cause::NORMAL_CLEARING);
    let bye = lab.sent();
    assert_eq!((line(&bye).as_str(), agreed(&bye)), ("BYE", said("", VERIFY)));
    // The refresh says it again; a registrar that can do something else asks for another agreement.
    lab.lines();
    let third = (0..600).find_map(|_| {
        lab.pass(Duration::from_secs(1));
        lab.next().map(|(_, message)| message).filter(|message| line(message) == "REGISTER")
    });
    let third = third.expect("a refresh");
    assert_eq!(agreed(&third), said(OURS, VERIFY));
    registrar.respond(&mut lab, &third, 494, "Security-Server: sdes-srtp;mediasec\r\n", "");
    let fourth = lab.sent();
    assert_eq!(agreed(&fourth), said(OURS, OURS));
    assert!(header(&fourth, "Authorization").contains("nc=0000000"), "with its proof");
}

#[test]
fn rfc3329_2_3_1_a_registrar_that_is_not_content_is_given_up() {
    let list = |of: &str| format!("Security-Server: {of}\r\n");
    for (name, answers, expected) in [
        ("nothing that we know", vec![list("tls;q=0.1")], "Stopped"),
        ("no list", vec![String::new()], "Stopped"),
        ("the same list again", vec![list(OURS), list(OURS)], "Stopped"),
        (
            "another list each time",
            vec![list(OURS), list("sdes-srtp;a"), list("sdes-srtp;b"), list("sdes-srtp;c")],
            "Stopped",
        ),
    ] {
        let (mut lab, mut register, registrar) = begun(secured());
        for (at, answer) in answers.iter().enumerate() {
            registrar.respond(&mut lab, &register, 494, answer, "");
            match at + 1 < answers.len() {
                true => register = lab.sent(),
                false => assert!(lab.next().is_none(), "{name}"),
            }
        }
        assert_eq!(status(&lab).0, expected, "{name}");
        // Whoever is asked to try again begins without what was said before.
        assert!(lab.with(|sip, core| sip.register_now(core, "provider")));
        assert_eq!(agreed(&lab.sent()), said(OURS, ""), "{name}");
    }
}

#[test]
fn rfc3329_2_3_1_a_call_without_a_registration_makes_its_own_agreement() {
    let mut config = site();
    config.auths.insert("out".into(), config.auths["alice"].clone());
    change(&mut config, "trunk", |trunk| {
        trunk.security = vec![OURS.to_owned()];
        trunk.outbound_auths = vec!["out".into()];
    });
    let mut lab = Lab::new(config);
    let trunk = Phone::new("trunk");
    let id = lab.dial("trunk").unwrap();
    let first = lab.sent();
    assert_eq!(agreed(&first), said(OURS, ""));
    trunk.respond(&mut lab, &first, 494, LIST, "");
    assert_eq!(line(&lab.sent()), "ACK");
    let second = lab.sent();
    assert_eq!(agreed(&second).1, VERIFY);
    // A challenge after it, and one with another list.
    let shorter = "Security-Server: sdes-srtp\r\n";
    trunk.respond(&mut lab, &second, 407, &format!("Proxy-{}{shorter}", &CHALLENGE["WWW-".len()..]), "");
    assert_eq!(line(&lab.sent()), "ACK");
    let third = lab.sent();
    assert_eq!(agreed(&third).1, "sdes-srtp");
    assert!(header(&third, "Proxy-Authorization").contains("username=\"alice\""));
    trunk.respond(&mut lab, &third, 200, "", &sdp("198.51.100.7", 4000, "0"));
    lab.lines();
    lab.finish(id, Cause::NORMAL_CLEARING);
    assert_eq!(agreed(&lab.sent()), said("", "sdes-srtp"), "BYE");
    // Who does not negotiate is refused as by any other status.
    for mechanisms in [vec![], vec!["dtls-srtp;mediasec".to_owned()]] {
        let mut config = site();
        change(&mut config, "trunk", |trunk| trunk.security = mechanisms);
        let mut lab = Lab::new(config);
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        trunk.respond(&mut lab, &invite, 494, shorter, "");
        assert_eq!(lab.lines(), ["ACK"]);
        assert_eq!(lab.heard().len(), 1, "it is hung up");
        lab.rest();
    }
}

#[test]
fn without_negotiation_nothing_is_said() {
    let config = Config { registrations: vec![Rc::new(registration())], ..with(|_| {}) };
    let (mut lab, first, registrar) = begun(config);
    assert_eq!(agreed(&first), said("", ""));
    registrar.respond(&mut lab, &first, 401, &format!("{CHALLENGE}{LIST}"), "");
    let second = lab.sent();
    assert_eq!(agreed(&second), said("", ""));
    accept(&mut lab, &registrar, &second, LIST);
    lab.dial("trunk").unwrap();
    assert_eq!(agreed(&lab.sent()), said("", ""));
}
