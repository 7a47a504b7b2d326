//! Offers and answers with keys (RFC 4568).

use std::cell::Cell;

use super::*;
use crate::sdp::Encryption;
use base::{FormatId as F, SrtpSuite as S};

thread_local! {
    static NEXT: Cell<u8> = const { Cell::new(0) };
}
/// Keys that differ from each other.
fn random(bytes: &mut [u8]) {
    let seed = NEXT.get();
    NEXT.set(seed.wrapping_add(1));
    (0..).zip(bytes).for_each(|(at, byte): (u8, _)| *byte = at.wrapping_mul(3).wrapping_add(seed));
}

const USUAL: &[S] = &[S::AesCm128Sha1Tag80, S::AesGcm256];
const MANDATORY: Encryption =
    Encryption { suites: USUAL, optimistic: false, force_avp: false, to_edge: false, random };
const OPTIMISTIC: Encryption = Encryption { optimistic: true, ..MANDATORY };

fn local(encryption: Option<Encryption<'static>>) -> Local<'static> {
    let formats = [F::ULAW].into_iter().collect();
    Local { encryption, ..Local::new(formats, [198, 51, 100, 1].into(), 10_000) }
}
fn remote(body: &str) -> Vec<u8> {
    format!("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n{body}").into_bytes()
}
/// A key of one letter in all its places.
fn key(suite: S, letter: char) -> String {
    let letters = suite.secret_bytes().div_ceil(3) * 4;
    let fill = [0, 2, 1][suite.secret_bytes() % 3];
    format!("inline:{}A{}", letter.to_string().repeat(letters - fill - 1), "=".repeat(fill))
}
fn crypto(tag: u32, suite: S, letter: char) -> String {
    format!("a=crypto:{tag} {} {}\r\n", suite.name(), key(suite, letter))
}
fn stream(profile: &str, lines: &str) -> String {
    format!("m=audio 4000 {profile} 0\r\n{lines}")
}
fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}
/// What the answer's streams say, the keys left out, and what was agreed.
fn answered(offer: &str, encryption: Option<Encryption<'static>>) -> Result<(String, Option<S>), SdpError> {
    let mut out = Vec::new();
    let agreed = Negotiator::new(8).answer(&remote(offer), &local(encryption), &mut out)?;
    crate::sdp::hide_keys(&mut out);
    let out = text(out);
    let lines: Vec<_> = out
        .lines()
        .filter(|line| line.starts_with("m=") || line.contains("crypto") || line.contains("3ge2ae"))
        .collect();
    let lines = lines.join("|").replace('*', "");
    Ok((lines, agreed.keys.map(|keys| keys.suite)))
}

#[test]
fn rfc4568_7_1_2_an_answer_takes_one_line_of_the_offer_under_its_tag_or_says_why_not() {
    let cm = S::AesCm128Sha1Tag80;
    let short = S::AesCm128Sha1Tag32;
    let (savp, avp) = ("RTP/SAVP", "RTP/AVP");
    let taken = |profile: &str, tag: u32, suite: S| {
        let line = format!("m=audio 10000 {profile} 0|a=crypto:{tag} {} inline:", suite.name());
        Ok((line, Some(suite)))
    };
    let plain = |line: &str| Ok((line.to_owned(), None));
    let prefers_short = Encryption { suites: &[S::AesCm128Sha1Tag32], ..MANDATORY };
    for (name, offer, encryption, expected) in [
        ("the usual", stream(savp, &crypto(1, cm, 'A')), Some(MANDATORY), taken(savp, 1, cm)),
        ("another tag", stream(savp, &crypto(77, cm, 'A')), Some(MANDATORY), taken(savp, 77, cm)),
        (
            "the first that is built in",
            stream(savp, &(crypto(1, S::AesCm256Sha1Tag80, 'A') + &crypto(2, cm, 'B'))),
            Some(MANDATORY),
            taken(savp, 1, S::AesCm256Sha1Tag80),
        ),
        (
            "a long tag before a short one",
            stream(savp, &(crypto(1, short, 'A') + &crypto(2, cm, 'B'))),
            Some(MANDATORY),
            taken(savp, 2, cm),
        ),
        (
            "a short tag where they are wanted",
            stream(savp, &(crypto(1, short, 'A') + &crypto(2, cm, 'B'))),
            Some(prefers_short),
            taken(savp, 1, short),
        ),
        ("only a short tag", stream(savp, &crypto(1, short, 'A')), Some(MANDATORY), taken(savp, 1, short)),
        (
            "an unknown suite before a known one",
            stream(
                savp,
                &format!("a=crypto:1 F8_128_HMAC_SHA1_80 {}\r\n{}", key(cm, 'A'), crypto(2, cm, 'B')),
            ),
            Some(MANDATORY),
            taken(savp, 2, cm),
        ),
        (
            "keys beside the plain profile",
            stream(avp, &crypto(1, cm, 'A')),
            Some(MANDATORY),
            taken(avp, 1, cm),
        ),
        ("the same, optimistic", stream(avp, &crypto(1, cm, 'A')), Some(OPTIMISTIC), taken(avp, 1, cm)),
        (
            "with feedback",
            stream("RTP/SAVPF", &crypto(1, cm, 'A')),
            Some(OPTIMISTIC),
            taken("RTP/SAVPF", 1, cm),
        ),
        ("plain, optimistic", stream(avp, ""), Some(OPTIMISTIC), plain("m=audio 10000 RTP/AVP 0")),
        (
            "keys that cannot be used, optimistic",
            stream(avp, &format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 {}|1:4\r\n", key(cm, 'A'))),
            Some(OPTIMISTIC),
            plain("m=audio 10000 RTP/AVP 0"),
        ),
        (
            "the secure one of two streams",
            stream(avp, "") + &stream(savp, &crypto(1, cm, 'A')),
            Some(OPTIMISTIC),
            Ok((
                "m=audio 0 RTP/AVP 0|m=audio 10000 RTP/SAVP 0|a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:"
                    .into(),
                Some(cm),
            )),
        ),
        (
            "the plain one of two streams",
            stream(savp, &crypto(1, cm, 'A')) + &stream(avp, ""),
            None,
            plain("m=audio 0 RTP/SAVP 0|m=audio 10000 RTP/AVP 0"),
        ),
        (
            "keys that nobody asked for",
            stream(avp, &crypto(1, cm, 'A')),
            None,
            plain("m=audio 10000 RTP/AVP 0"),
        ),
        ("plain where it must be SRTP", stream(avp, ""), Some(MANDATORY), Err(SdpError::Plain)),
        ("SRTP where it is off", stream(savp, &crypto(1, cm, 'A')), None, Err(SdpError::Encrypted)),
        (
            "the secure profile without keys",
            stream(savp, "a=fingerprint:sha-256 00\r\n"),
            Some(OPTIMISTIC),
            Err(SdpError::Crypto(CryptoFlaw::Missing)),
        ),
        (
            "an identifier of keys",
            stream(savp, &format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 {}|2^20|1:4\r\n", key(cm, 'A'))),
            Some(OPTIMISTIC),
            Err(SdpError::Crypto(CryptoFlaw::Mki)),
        ),
        (
            "no encryption of reports",
            stream(savp, &format!("{} UNENCRYPTED_SRTCP\r\n", crypto(1, cm, 'A').trim_end())),
            Some(MANDATORY),
            Err(SdpError::Crypto(CryptoFlaw::Unprotected)),
        ),
    ] {
        assert_eq!(answered(&offer, encryption), expected, "{name}");
    }
}

#[test]
fn rfc4568_7_1_1_an_offer_says_the_profile_and_lists_suites_and_the_answer_picks_by_tag() {
    let lines = |encryption| {
        let mut out = Vec::new();
        Negotiator::new(8).offer(&local(encryption), &mut out);
        crate::sdp::hide_keys(&mut out);
        let out = text(out).replace('*', "");
        let lines: Vec<_> = out
            .lines()
            .filter(|line| line.starts_with("m=") || line.contains("crypto") || line.contains("3ge2ae"))
            .collect();
        lines.join("|")
    };
    let keys = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:|a=crypto:2 AEAD_AES_256_GCM inline:";
    let forced = Encryption { force_avp: true, ..MANDATORY };
    let to_edge = Encryption { to_edge: true, ..MANDATORY };
    for (encryption, expected) in [
        (None, "m=audio 10000 RTP/AVP 0 101".to_owned()),
        (Some(MANDATORY), format!("m=audio 10000 RTP/SAVP 0 101|{keys}")),
        (Some(OPTIMISTIC), format!("m=audio 10000 RTP/AVP 0 101|{keys}")),
        (Some(forced), format!("m=audio 10000 RTP/AVP 0 101|{keys}")),
        (Some(to_edge), format!("m=audio 10000 RTP/SAVP 0 101|a=3ge2ae:requested|{keys}")),
    ] {
        assert_eq!(lines(encryption), expected, "{encryption:?}");
    }
    let (cm, gcm) = (S::AesCm128Sha1Tag80, S::AesGcm256);
    for (name, encryption, answer, expected) in [
        ("the first", MANDATORY, stream("RTP/SAVP", &crypto(1, cm, 'A')), Ok(Some(cm))),
        ("the second", MANDATORY, stream("RTP/SAVP", &crypto(2, gcm, 'A')), Ok(Some(gcm))),
        (
            "a tag of another suite",
            MANDATORY,
            stream("RTP/SAVP", &crypto(2, cm, 'A')),
            Err(SdpError::Crypto(CryptoFlaw::NotOffered)),
        ),
        (
            "a tag that was not offered",
            OPTIMISTIC,
            stream("RTP/AVP", &crypto(3, cm, 'A')),
            Err(SdpError::Crypto(CryptoFlaw::NotOffered)),
        ),
        ("no key", MANDATORY, stream("RTP/SAVP", ""), Err(SdpError::Plain)),
        ("no key, and the plain profile", MANDATORY, stream("RTP/AVP", ""), Err(SdpError::Plain)),
        ("no key, optimistic", OPTIMISTIC, stream("RTP/AVP", ""), Ok(None)),
        ("no key in the secure profile", OPTIMISTIC, stream("RTP/SAVP", ""), Err(SdpError::Plain)),
    ] {
        let mut negotiator = Negotiator::new(8);
        let mut out = Vec::new();
        negotiator.offer(&local(Some(encryption)), &mut out);
        let agreed = negotiator.accept_answer(&remote(&answer), &local(Some(encryption)));
        assert_eq!(agreed.map(|agreed| agreed.keys.map(|keys| keys.suite)), expected, "{name}");
    }
}

/// Two of us agree: what one sends with, the other receives with.
#[test]
fn both_ends_have_the_same_keys_and_keep_them_over_hold_and_resume() {
    let (mut alice, mut bob) = (Negotiator::new(8), Negotiator::new(16));
    let ours = local(Some(MANDATORY));
    let mut round = |held: bool| {
        let direction = if held { Direction::SendOnly } else { Direction::SendRecv };
        let (mut offer, mut answer) = (Vec::new(), Vec::new());
        alice.offer(&Local { direction, ..ours }, &mut offer);
        let agreed_b = bob.answer(&offer, &ours, &mut answer).unwrap();
        let agreed_a = alice.accept_answer(&answer, &ours).unwrap();
        let (a, b) = (agreed_a.keys.unwrap(), agreed_b.keys.unwrap());
        assert_eq!((&a.send, &a.receive, a.suite), (&b.receive, &b.send, b.suite));
        assert!(a.send != a.receive);
        a
    };
    let first = round(false);
    assert_eq!(round(true), first);
    assert_eq!(round(false), first);
    // The other side offers: the suite in use stands first, with the key that it had.
    let (mut offer, mut answer) = (Vec::new(), Vec::new());
    bob.offer(&ours, &mut offer);
    let agreed = alice.answer(&offer, &ours, &mut answer).unwrap();
    assert_eq!(agreed.keys.as_deref(), Some(&*first));
    // A new key of the peer replaces its old one, and ours stays.
    let rekeyed = remote(&stream("RTP/SAVP", &crypto(5, first.suite, 'B')));
    let agreed = alice.answer(&rekeyed, &ours, &mut Vec::new()).unwrap().keys.unwrap();
    assert!(agreed.send == first.send && agreed.receive != first.receive);
    // An offer that is refused changes nothing.
    let before = alice.current().cloned();
    let plain = remote(&stream("RTP/AVP", ""));
    assert_eq!(alice.answer(&plain, &ours, &mut Vec::new()), Err(SdpError::Plain));
    assert_eq!(alice.current().cloned(), before);
}

#[test]
fn what_was_agreed_on_as_plain_is_offered_as_plain_again() {
    let ours = local(Some(OPTIMISTIC));
    let mut negotiator = Negotiator::new(8);
    negotiator.answer(&remote(&stream("RTP/AVP", "")), &ours, &mut Vec::new()).unwrap();
    let mut out = Vec::new();
    negotiator.offer(&ours, &mut out);
    assert!(!text(out).contains("crypto"));
}

#[test]
fn no_debug_form_of_a_session_shows_a_key() {
    let mut negotiator = Negotiator::new(8);
    let ours = local(Some(MANDATORY));
    let offer = remote(&stream("RTP/SAVP", &crypto(1, S::AesCm128Sha1Tag80, 'Q')));
    let agreed = negotiator.answer(&offer, &ours, &mut Vec::new()).unwrap();
    assert!(format!("{agreed:?}").contains("hidden"));
    let shown = format!("{negotiator:?}");
    assert!(!shown.contains("inline") && !shown.contains("105, 110, 108, 105, 110, 101"), "{shown}");
}
