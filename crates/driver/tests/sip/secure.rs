//! Calls with SRTP: keys from description to stream, over hold and new keys; refusals; nothing of a key in any log.

use ::sip::sdp::Encryption;
use base::SrtpSuite;
use driver::sip::Config;

use crate::lab::{Lab, body, change, line, site};
use crate::phone::{Phone, sdp, sdp_with};

/// Keys of one byte each; what is unpredictable is for the engine to say.
fn random(bytes: &mut [u8]) {
    bytes.fill(0x5a);
}
const MANDATORY: Encryption = Encryption {
    suites: &[SrtpSuite::AesCm128Sha1Tag80],
    optimistic: false,
    force_avp: false,
    to_edge: false,
    random,
};

fn secure(name: &str, encryption: Encryption<'static>) -> Config {
    let mut config = site();
    config.srtp_replay_protection = true;
    change(&mut config, name, |endpoint| endpoint.encryption = Some(encryption));
    config
}
/// A description with the secure profile and one key.
fn sealed(attributes: &str, letter: char) -> String {
    let key = letter.to_string().repeat(40);
    let attributes = format!("a=crypto:4 AES_CM_128_HMAC_SHA1_80 inline:{key}|2^31\r\n{attributes}");
    sdp_with("198.51.100.7", 4000, "0 101", &attributes).replace("RTP/AVP", "RTP/SAVP")
}
#[test]
fn rfc4568_keys_of_offer_and_answer_reach_the_stream_and_stay_over_hold() {
    let mut lab = Lab::new(secure("alice", MANDATORY));
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &sealed("", 'Q'));
    lab.answer(id);
    let answer = lab.sent();
    let said = body(&answer);
    assert!(said.contains("RTP/SAVP 0 101\r\n"), "{said}");
    let ours = "Wlpa".repeat(10);
    assert!(said.contains(&format!("a=crypto:4 AES_CM_128_HMAC_SHA1_80 inline:{ours}\r\n")), "{said}");
    alice.ack(&mut lab, &answer, "");
    let first = lab.plan().keys.unwrap();
    assert_eq!((first.suite, first.replay_protection), (SrtpSuite::AesCm128Sha1Tag80, true));
    assert_eq!(first.send.bytes(), [0x5a; 30]);
    assert_eq!(first.receive.bytes()[..3], [0x41, 0x04, 0x10]);
    assert_eq!(lab.read(id, "CHANNEL", "rtp,secure,audio").as_deref(), Some("1"));
    let mut again = |lab: &mut Lab, offer: &str, status: &str| {
        alice.inside(lab, "INVITE", "", offer);
        let answer = lab.sent();
        assert_eq!(line(&answer), status, "{offer}");
        alice.ack(lab, &answer, "");
        lab.plan().keys.unwrap()
    };
    for attributes in ["a=sendonly\r\n", "a=sendrecv\r\n"] {
        assert_eq!(again(&mut lab, &sealed(attributes, 'Q'), "200"), first, "{attributes}");
    }
    let rekeyed = again(&mut lab, &sealed("", 'R'), "200");
    assert!(rekeyed.send == first.send && rekeyed.receive != first.receive);
    // Nobody talks a call out of its encryption.
    assert_eq!(again(&mut lab, &sdp("198.51.100.7", 4000, "0"), "488"), rekeyed);
    lab.heard();
    alice.inside(&mut lab, "BYE", "", "");
    lab.rest();
}

#[test]
fn what_is_agreed_is_what_the_endpoint_says_or_488() {
    let optimistic = Encryption { optimistic: true, ..MANDATORY };
    let plain = || sdp("198.51.100.7", 4000, "0");
    let both = sealed("", 'Q').replace("RTP/SAVP", "RTP/AVP");
    for (name, config, offer, expected) in [
        ("plain to SRTP", secure("alice", MANDATORY), plain(), None),
        ("SRTP to plain", site(), sealed("", 'Q'), None),
        ("plain to either", secure("alice", optimistic), plain(), Some(false)),
        ("SRTP to either", secure("alice", optimistic), sealed("", 'Q'), Some(true)),
        ("keys beside the plain profile to either", secure("alice", optimistic), both.clone(), Some(true)),
        ("the same to SRTP", secure("alice", MANDATORY), both.clone(), Some(true)),
        ("the same to plain", site(), both, Some(false)),
    ] {
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let Some(is_sealed) = expected else {
            let answer = alice.ask(&mut lab, "INVITE", "sip:100@strowger", "", &offer);
            assert_eq!(line(&answer), "488", "{name}");
            assert!(lab.streams.borrow().open.is_empty(), "{name}");
            continue;
        };
        let id = alice.invite(&mut lab, "100", &offer);
        assert_eq!(lab.plan().keys.is_some(), is_sealed, "{name}");
        let secure = lab.read(id, "CHANNEL", "rtp,secure").unwrap();
        assert_eq!(secure, u8::from(is_sealed).to_string(), "{name}");
    }
}

#[test]
fn our_offer_has_keys_and_an_answer_without_them_ends_the_call() {
    for (answer, taken) in [
        (sealed("", 'Q').replace("crypto:4", "crypto:1"), true),
        (sealed("", 'Q'), false),
        (sdp("198.51.100.7", 4000, "0"), false),
    ] {
        let mut lab = Lab::new(secure("trunk", MANDATORY));
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        assert!(body(&invite).contains("RTP/SAVP"), "{}", body(&invite));
        assert!(body(&invite).contains("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:Wlpa"));
        let mut trunk = Phone::new("trunk");
        trunk.called(&invite);
        trunk.respond(&mut lab, &invite, 200, "", &answer);
        let lines = lab.lines();
        assert_eq!(lines.contains(&"BYE".to_owned()), !taken, "{answer}: {lines:?}");
        if taken {
            assert!(lab.plan().keys.is_some(), "{answer}");
        }
    }
}

#[test]
fn a_caller_that_asks_for_a_secure_bridge_reaches_only_who_has_one() {
    for (variable, config, reached) in [
        ("CHANNEL(secure_bridge_media)", site(), false),
        ("CHANNEL(secure_bridge_media)", secure("trunk", MANDATORY), true),
        (
            "CHANNEL(secure_bridge_media)",
            secure("trunk", Encryption { optimistic: true, ..MANDATORY }),
            false,
        ),
        ("CHANNEL(secure_bridge_signaling)", secure("trunk", MANDATORY), false),
    ] {
        let mut lab = Lab::new(config);
        let asked = lab.dial_with("trunk", call::Request::default(), |shard, id| {
            let mut core = shard.core.borrow_mut();
            let vars = &mut core.get_mut(id).unwrap().vars;
            vars.set(dialplan::Var::named(variable), "1", dialplan::Inherit::Always);
        });
        assert_eq!(asked.is_ok(), reached, "{variable}");
        assert_eq!(lab.lines().contains(&"INVITE".to_owned()), reached, "{variable}");
    }
}
