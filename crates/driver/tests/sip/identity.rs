//! Callers for whom carriers sign (RFC 8224, RFC 8588): calls of ours say who vouches for them, and calls that come in are
//! believed as the profile of their endpoint has it.

use core::cell::Cell;
use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use ::sip::OwnedMessage;
use base::Cause;
use call::{PartyId, Presentation, Request, WallClock};
use driver::sip::Config;
use stir::{
    Authority, Behavior, Certificate, Claims, FailureAction, Fetching, Level, Profile, Settings, Sign,
    Signer, Verification,
};

use crate::lab::{Lab, change, header, line, site};
use crate::phone::{Phone, sdp};

/// A certificate of the service provider 123A, valid from November 2026 until 2098.
const PEM: &[u8] = b"\
-----BEGIN CERTIFICATE-----
MIIBaTCCAQ+gAwIBAgIUDlmNs07siqAjVoRH1f0TjmaS2H0wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLU0hBS0VOIDEyM0EwIBcNMjYxMTI4MTIyODQ1WhgPMjA5ODAy
MDMxMjI4NDVaMBYxFDASBgNVBAMMC1NIQUtFTiAxMjNBMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEOaLAM5hnOlEG9tHOXApr9AHIIk3Ir0l0gXzATHUg2ucuVBbc
Hbi6PeJlY9IMOGzbY/zBrLGW1o8mOgeJXaW3DqM5MDcwFgYIKwYBBQUHARoECjAI
oAYWBDEyM0EwHQYDVR0OBBYEFDo5OG9ShK3PgJQElvowHFdv9xQtMAoGCCqGSM49
BAMCA0gAMEUCIQCZtgq/TGSKBB5KUO27gEWTusb8zxz0YDmojpdMA7EJewIgckob
RldLZvYV47F1xHGOWZnBkqIhLQSPA6ZgyNR33io=
-----END CERTIFICATE-----
";
/// A second of the spring of 2027.
const NOW: u64 = 1_805_000_000;
const URL: &str = "https://certs.example.com/shaken.pem";
const CALLER: &str = "18005551000";

/// Signs by repeating what it signs.
struct Key;

impl Sign for Key {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        message.last_chunk::<64>().copied()
    }
}

/// Believes signatures of [`Key`].
struct Trust;

impl Authority for Trust {
    fn trusts(&self, _: &Certificate, _: u64) -> bool {
        true
    }
    fn verifies(&self, _: &[u8], message: &[u8], signature: &[u8]) -> bool {
        message.ends_with(signature)
    }
}

struct Clock(Rc<Cell<u64>>);

impl WallClock for Clock {
    fn now_micros(&self) -> i64 {
        i64::try_from(self.0.get() * 1_000_000).unwrap()
    }
}

fn signer(level: Level) -> Signer {
    Signer { key: Rc::new(Key), url: URL.to_owned(), level, send_mky: false }
}

/// The site with a profile for its trunk: one number of ours, and others when `unknown` says how sure we are of them.
fn with(behavior: Behavior, unknown: Option<Level>, change_rules: impl FnOnce(&mut Verification)) -> Config {
    let mut rules = Verification {
        authority: Rc::new(Trust),
        fetching: Fetching {
            within: Duration::from_secs(2),
            allows: Arc::new(|_| true),
            folder: "/nowhere".into(),
            keep: Duration::from_secs(60),
        },
        max_iat_age: 15,
        max_date_age: 15,
        ignores_date: false,
        any_port_and_scheme: false,
        any_path: false,
        failure_action: FailureAction::Continue,
        stir_reasons: false,
    };
    change_rules(&mut rules);
    let numbers = BTreeMap::from([(CALLER.to_owned(), signer(Level::A))]);
    let profile = Profile {
        behavior,
        numbers: Rc::new(numbers),
        unknown: unknown.map(signer),
        verification: behavior.verifies().then(|| Rc::new(rules)),
    };
    let profiles = BTreeMap::from([("carrier".to_owned(), Rc::new(profile))]);
    let mut config = site();
    config.stir = Rc::new(Settings { profiles, certificates_max: 10, ..Settings::default() });
    change(&mut config, "trunk", |trunk| {
        (trunk.stir_profile, trunk.trust_id_inbound) = ("carrier".to_owned(), true);
    });
    config
}

fn lab(config: Config) -> (Lab, Rc<Cell<u64>>) {
    let lab = Lab::new(config);
    let clock = Rc::new(Cell::new(NOW));
    lab.shard.core.borrow_mut().services.wall = Box::new(Clock(clock.clone()));
    (lab, clock)
}

fn party(number: &str, presentation: Presentation) -> PartyId {
    PartyId { number: Some(number.to_owned()), number_presentation: presentation, ..PartyId::default() }
}

/// The INVITE of a call of ours by this caller.
fn called(lab: &mut Lab, number: &str, caller: PartyId, before: &[(&str, &str, &str)]) -> OwnedMessage {
    let request = Request { caller: Some(caller), ..Request::default() };
    let id = lab
        .dial_with(&format!("{number}@trunk"), request, |shard, id| {
            for (function, args, value) in before {
                let written = shard.with_tech(id, |tech, core| tech.write(core, id, function, args, value));
                assert_eq!(written, Some(true), "{function}({args})={value}");
            }
        })
        .unwrap();
    let invite = lab.sent();
    lab.finish(id, Cause::NORMAL_CLEARING);
    lab.pass(Duration::from_secs(64));
    lab.lines();
    invite
}

#[test]
fn rfc8224_4_1_calls_are_signed_for_callers_that_we_vouch_for() {
    let shown = Presentation::Allowed;
    let hidden = Presentation::ProhibNotScreened;
    let suppress = ("STIR_SHAKEN_ATTESTATION", "suppress", "yes");
    let own = ("PJSIP_HEADER", "add,Identity", "own");
    let date = ("PJSIP_HEADER", "add,Date", "Sat, 13 Nov 2010 23:29:00 GMT");
    for (name, behavior, unknown, number, caller, before, signed) in [
        (
            "a number of ours",
            Behavior::Attest,
            None,
            "+12155551213",
            party("+1 800 555 1000", shown),
            &[][..],
            Some("A"),
        ),
        ("on", Behavior::On, None, "12155551213", party(CALLER, shown), &[], Some("A")),
        ("off", Behavior::Off, None, "12155551213", party(CALLER, shown), &[], None),
        ("verify", Behavior::Verify, None, "12155551213", party(CALLER, shown), &[], None),
        ("another number", Behavior::Attest, None, "12155551213", party("18005551001", shown), &[], None),
        (
            "of which we are unsure",
            Behavior::Attest,
            Some(Level::C),
            "12155551213",
            party("18005551001", shown),
            &[],
            Some("C"),
        ),
        (
            "ours is as sure as before",
            Behavior::Attest,
            Some(Level::C),
            "12155551213",
            party(CALLER, shown),
            &[],
            Some("A"),
        ),
        ("a hidden number", Behavior::Attest, None, "12155551213", party(CALLER, hidden), &[], None),
        ("no number", Behavior::Attest, Some(Level::C), "12155551213", party("alice", shown), &[], None),
        ("nobody is called", Behavior::Attest, None, "alice", party(CALLER, shown), &[], None),
        ("suppressed", Behavior::Attest, None, "12155551213", party(CALLER, shown), &[suppress], None),
        (
            "with a Date of the dialplan",
            Behavior::Attest,
            None,
            "12155551213",
            party(CALLER, shown),
            &[date],
            Some("A"),
        ),
    ] {
        let (mut lab, _) = lab(with(behavior, unknown, |_| {}));
        let invite = called(&mut lab, number, caller.clone(), before);
        let (identity, date) = (header(&invite, "Identity"), header(&invite, "Date"));
        let Some(level) = signed else {
            assert_eq!((identity.as_str(), date.as_str()), ("", ""), "{name}");
            continue;
        };
        let expected = if before.is_empty() { stir::date_header(NOW) } else { before[0].2.to_owned() };
        assert_eq!(date, expected, "{name}");
        let (token, parameters) = identity.split_once(';').unwrap();
        assert_eq!(parameters, format!("info=<{URL}>;alg=ES256;ppt=shaken"), "{name}");
        let token = stir::Token::read(token).unwrap();
        let text = |claim: &str| token.claim(claim).unwrap().to_string();
        let origid = text("origid");
        assert_eq!((origid.len(), &origid[15..16]), (38, "4"), "{name}: a random UUID, {origid}");
        let orig = stir::digits(caller.number());
        assert_eq!(
            [text("attest"), text("dest"), text("iat"), text("orig")],
            [
                format!("\"{level}\""),
                "{\"tn\":[\"12155551213\"]}".to_owned(),
                NOW.to_string(),
                format!("{{\"tn\":\"{orig}\"}}")
            ],
            "{name}"
        );
        lab.rest();
    }
    let (mut lab, _) = lab(with(Behavior::Attest, None, |_| {}));
    let invite = called(&mut lab, "12155551213", party(CALLER, shown), &[own]);
    assert_eq!((header(&invite, "Identity").as_str(), header(&invite, "Date").as_str()), ("own", ""));
}

/// The headers of a call that was signed for at that second.
fn signed(caller: &str, at: u64) -> String {
    let claims = Claims { attest: Level::B, dest: "100", iat: at, mky: &[], orig: caller, origid: "x" };
    let identity = stir::identity_header(&claims.sign(URL, &Key).unwrap(), URL);
    format!("Date: {}\r\nIdentity: {identity}\r\n", stir::date_header(at))
}

/// A call of this caller comes in; the phone that made it.
fn comes(lab: &mut Lab, call: &str, caller: &str, headers: &str) -> Phone {
    let mut phone = Phone::new("trunk").call(call);
    let headers = format!("P-Asserted-Identity: <sip:{caller}@carrier.example>\r\n{headers}");
    let text = phone.request("INVITE", "sip:100@strowger", &headers, &sdp("198.51.100.7", 4000, "0"));
    lab.receive(phone.flow, text);
    phone
}

/// The certificates that are wanted now.
fn wanted(lab: &mut Lab) -> Vec<String> {
    lab.with(|sip, _| sip.take_certificate_wants()).into_iter().map(|want| want.url).collect()
}

fn came(lab: &mut Lab, certificate: Result<&[u8], &str>) {
    let came = certificate.map(|bytes| (bytes.to_vec(), Duration::from_secs(60))).map_err(str::to_owned);
    lab.with(|sip, core| sip.certificate_came(core, URL, came));
}

fn known(lab: &Lab, id: base::ChannelId) -> [String; 4] {
    ["count", "0,identity", "0,attestation", "0,verify_result"]
        .map(|args| lab.read(id, "STIR_SHAKEN", args).unwrap_or_default())
}

#[test]
fn rfc8224_6_2_a_call_begins_when_it_is_known_who_calls_and_certificates_are_kept() {
    let (mut lab, clock) = lab(with(Behavior::On, None, |_| {}));
    comes(&mut lab, "first", "+18005551000", &signed(CALLER, NOW));
    assert_eq!((lab.tried, lab.started.len()), (1, 0), "it is told to wait");
    comes(&mut lab, "second", CALLER, &signed(CALLER, NOW));
    assert_eq!(wanted(&mut lab), [URL], "asked for once");
    came(&mut lab, Ok(PEM));
    assert_eq!(lab.started.len(), 2);
    let id = lab.started.pop_front().unwrap();
    assert_eq!(known(&lab, id), ["1", CALLER, "B", "success"]);
    lab.started.clear();
    comes(&mut lab, "third", CALLER, &signed(CALLER, NOW));
    assert_eq!((wanted(&mut lab).len(), lab.started.len()), (0, 1), "the certificate is known");
    lab.pass(Duration::from_secs(60));
    clock.set(NOW + 60);
    comes(&mut lab, "fourth", CALLER, &signed(CALLER, NOW + 60));
    assert_eq!(wanted(&mut lab), [URL], "it was kept for a minute");
    came(&mut lab, Err("no answer"));
    let id = lab.started.pop_back().unwrap();
    assert_eq!(known(&lab, id), ["1", CALLER, "", "cert_retrieval_failure"]);
    comes(&mut lab, "fifth", CALLER, &signed(CALLER, NOW + 60));
    assert_eq!(wanted(&mut lab), [URL], "what has failed is asked for again");
    came(&mut lab, Ok(b"nonsense"));
    let id = lab.started.pop_back().unwrap();
    assert_eq!(known(&lab, id)[3], "cert_contents_invalid");
}

#[test]
fn rfc8224_6_2_a_caller_who_gives_up_while_a_certificate_is_awaited_is_gone() {
    for (name, action, came_of_it) in [
        ("it goes on", FailureAction::Continue, Ok(PEM)),
        ("it would be refused", FailureAction::RejectRequest, Err("no answer")),
    ] {
        let (mut lab, _) = lab(with(Behavior::Verify, None, |rules| rules.failure_action = action));
        let phone = comes(&mut lab, "first", CALLER, &signed(CALLER, NOW));
        let cancel = phone.same_branch("CANCEL", "sip:100@strowger", phone.cseq, "", "");
        lab.receive(phone.flow, cancel);
        let mut answers = lab.lines();
        answers.sort();
        assert_eq!(answers, ["200", "487"], "{name}");
        assert_eq!(wanted(&mut lab), [URL], "{name}");
        came(&mut lab, came_of_it);
        assert_eq!(lab.shard.core.borrow().channel_count(), 0, "{name}");
        lab.rest();
    }
}

#[test]
fn rfc8224_6_2_2_what_becomes_of_a_caller_who_is_not_proved_is_for_the_profile_to_say() {
    let (continues, rejects, returns) =
        (FailureAction::Continue, FailureAction::RejectRequest, FailureAction::ContinueReturnReason);
    let good = signed(CALLER, NOW);
    let old = signed(CALLER, NOW - 16);
    let forged = good.replacen(";info", "A;info", 1);
    let use_identity = "cause=428; text=\"Use Identity Header\"";
    for (name, action, stir_reasons, caller, headers, verdict, refused, reason) in [
        ("proved", rejects, false, CALLER, good.as_str(), "success", None, String::new()),
        ("none, and on", continues, false, CALLER, "", "missing_identity_hdr", None, String::new()),
        ("none", rejects, false, CALLER, "", "", Some("428 Use Identity Header"), String::new()),
        ("old", rejects, false, CALLER, &old, "", Some("403 Stale Date"), String::new()),
        (
            "anonymous",
            rejects,
            false,
            "anonymous",
            &good,
            "",
            Some("433 Anonymity Disallowed"),
            String::new(),
        ),
        (
            "another",
            rejects,
            false,
            "18005551001",
            &good,
            "",
            Some("438 Invalid Identity Header"),
            String::new(),
        ),
        ("forged", rejects, false, CALLER, &forged, "", Some("438 Invalid Identity Header"), String::new()),
        (
            "none, and told",
            returns,
            false,
            CALLER,
            "",
            "missing_identity_hdr",
            None,
            format!("SIP; {use_identity}"),
        ),
        (
            "none, and told by STIR",
            returns,
            true,
            CALLER,
            "",
            "missing_identity_hdr",
            None,
            format!("STIR; {use_identity}"),
        ),
        ("proved, and nothing to tell", returns, false, CALLER, &good, "success", None, String::new()),
    ] {
        let (mut lab, _) = lab(with(Behavior::Verify, None, |rules| {
            (rules.failure_action, rules.stir_reasons) = (action, stir_reasons);
        }));
        comes(&mut lab, "first", caller, headers);
        if !wanted(&mut lab).is_empty() {
            came(&mut lab, Ok(PEM));
        }
        if let Some(refused) = refused {
            let answer = lab.sent();
            let text = String::from_utf8_lossy(&answer.bytes()).into_owned();
            assert_eq!(text.lines().next(), Some(&*format!("SIP/2.0 {refused}")), "{name}");
            assert_eq!((lab.started.len(), lab.shard.core.borrow().channel_count()), (0, 0), "{name}");
            lab.rest();
            continue;
        }
        let id = lab.started.pop_front().expect(name);
        assert_eq!(known(&lab, id)[3], verdict, "{name}");
        lab.indicate(id, call::Indication::Ringing);
        let ringing = lab.sent();
        assert_eq!((line(&ringing).as_str(), header(&ringing, "Reason")), ("180", reason), "{name}");
        lab.answer(id);
        let ok = lab.sent();
        assert_eq!((line(&ok).as_str(), header(&ok, "Reason").as_str()), ("200", ""), "{name}: once");
    }
}

#[test]
fn a_call_is_verified_only_where_its_endpoint_has_a_profile_that_says_so() {
    for (name, behavior, profile) in [
        ("no profile", Behavior::On, ""),
        ("one that is not there", Behavior::On, "other"),
        ("one that signs", Behavior::Attest, "carrier"),
        ("one that is off", Behavior::Off, "carrier"),
    ] {
        let mut config = with(behavior, None, |rules| rules.failure_action = FailureAction::RejectRequest);
        change(&mut config, "trunk", |trunk| trunk.stir_profile = profile.to_owned());
        let (mut lab, _) = lab(config);
        comes(&mut lab, "first", CALLER, "");
        let id = lab.started.pop_front().expect(name);
        assert_eq!(known(&lab, id)[0], "0", "{name}");
    }
}

#[test]
fn certificates_of_ours_are_looked_at_when_the_site_asks_for_it() {
    for (name, certificate, is_signed) in [
        ("it can be used", Ok(PEM), true),
        ("there is none", Err("no answer"), false),
        ("it is none", Ok(&b"x"[..]), false),
    ] {
        let mut config = with(Behavior::On, None, |_| {});
        let mut settings = (*config.stir).clone();
        let rules = settings.profiles["carrier"].verification.clone().unwrap();
        settings.checks.push((CALLER.to_owned(), URL.to_owned(), rules));
        config.stir = Rc::new(settings);
        let (mut lab, _) = lab(config);
        assert_eq!(wanted(&mut lab), [URL], "{name}");
        came(&mut lab, certificate);
        let invite = called(&mut lab, "12155551213", party(CALLER, Presentation::Allowed), &[]);
        assert_eq!(!header(&invite, "Identity").is_empty(), is_signed, "{name}");
    }
}
