//! Callers are verified step after step, and the first step that fails is the verdict (RFC 8224 §6.2, RFC 8588 §5).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, CustomExtension, DnType, KeyPair};
use stir::{
    Authority, Begun, Call, Certificate, Claims, FailureAction, Fetching, Level, Outcome, Revoked, Sign,
    TnEntry, Verdict, Verification, begin, date_header, identity_header,
};

const NOW: u64 = 1_764_331_200;
const URL: &str = "https://certs.example.com/shaken.pem";
const OID: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 26];
/// One entry: the service provider 123A.
const SPC: &[u8] = &[0x30, 0x08, 0xa0, 0x06, 0x16, 0x04, b'1', b'2', b'3', b'A'];

struct Key(EcdsaKeyPair);

impl Sign for Key {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        self.0.sign(&SystemRandom::new(), message).ok()?.as_ref().try_into().ok()
    }
}

fn key(pair: &KeyPair) -> Key {
    Key(EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &pair.serialize_der()).unwrap())
}

/// Trusts everybody or nobody, and says when it was asked for.
struct Trust(bool, Rc<Cell<u64>>);

impl Authority for Trust {
    fn trusts(&self, _: &Certificate, at: u64) -> bool {
        self.1.set(at);
        self.0
    }
    fn verifies(&self, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature).is_ok()
    }
}

fn rules() -> Verification {
    Verification {
        authority: Rc::new(Trust(true, Rc::default())),
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
    }
}

/// A certificate that is valid for so many seconds around now.
fn certificate(pair: &KeyPair, extension: Option<&[u8]>, (before, after): (i64, i64)) -> Certificate {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "SHAKEN 123A");
    let now = rcgen::date_time_ymd(2025, 11, 28);
    let noon = now + Duration::from_secs(43_200);
    let at = |seconds: i64| match u64::try_from(seconds) {
        Ok(seconds) => noon + Duration::from_secs(seconds),
        Err(_) => noon - Duration::from_secs(seconds.unsigned_abs()),
    };
    (params.not_before, params.not_after) = (at(before), at(after));
    params
        .custom_extensions
        .extend(extension.map(|value| CustomExtension::from_oid_content(OID, value.to_vec())));
    Certificate::read(params.self_signed(pair).unwrap().pem().as_bytes()).unwrap()
}

fn claims() -> Claims<'static> {
    Claims {
        attest: Level::A,
        dest: "12155551213",
        iat: NOW,
        mky: &[],
        orig: "12155551212",
        origid: "123e4567-e89b-12d3-a456-426655440000",
    }
}

/// A token of this header and these claims, whatever they are.
fn token(key: &Key, header: &str, claims: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).unwrap());
    format!("{signed}.{signature}")
}

fn outcome(call: &Call<'_>, rules: &Verification, certificate: Result<&Certificate, Verdict>) -> Outcome {
    match begin(call, rules, NOW) {
        Begun::Failed(outcome) => outcome,
        Begun::Needs(pending) => {
            assert_eq!(pending.url, URL);
            pending.finish(certificate, rules)
        }
    }
}

#[test]
fn rfc8224_6_2_a_caller_who_was_signed_for_is_verified() {
    let pair = KeyPair::generate().unwrap();
    let identity = identity_header(&claims().sign(URL, &key(&pair)).unwrap(), URL);
    let certificate = certificate(&pair, Some(SPC), (-60, 60));
    assert_eq!(certificate.tn_auth.clone().unwrap().unwrap().0, [TnEntry::Spc("123A".to_owned())]);
    assert_eq!(certificate.subject, "CN=SHAKEN 123A");
    let date = date_header(NOW);
    let call = Call { caller: "+12155551212", identities: &[&identity], date: Some(&date) };
    let expected =
        Outcome { caller: "12155551212".to_owned(), attestation: Some(Level::A), verdict: Verdict::Success };
    assert_eq!(outcome(&call, &rules(), Ok(&certificate)), expected);
    // A token of a diversion stands before it.
    let div = token(&key(&pair), r#"{"alg":"ES256","ppt":"div","typ":"passport"}"#, "{}");
    let div = identity_header(&div, URL);
    let call = Call { identities: &[&div, &identity], ..call };
    assert_eq!(outcome(&call, &rules(), Ok(&certificate)), expected);
}

#[test]
fn rfc8224_6_2_the_first_step_of_the_request_that_fails_is_the_verdict() {
    let pair = KeyPair::generate().unwrap();
    let key = key(&pair);
    let header = format!(r#"{{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"{URL}"}}"#);
    let whole = identity_header(&token(&key, &header, &format!(r#"{{"iat":{NOW}}}"#)), URL);
    let of = |header: &str, claims: &str| identity_header(&token(&key, header, claims), URL);
    let at = |iat: u64| of(&header, &format!(r#"{{"iat":{iat}}}"#));
    let x5u = |url: &str| of(&header.replace(URL, url), &format!(r#"{{"iat":{NOW}}}"#));
    let date = date_header(NOW);
    let ok = Some(date.as_str());
    let caller = "12155551212";
    let dates = [NOW + 1, NOW - 15, NOW - 16].map(date_header);
    for (name, caller, identity, date, expected) in [
        ("nobody", "", Some(whole.clone()), ok, Verdict::NoCallerId),
        ("no number", "anonymous", Some(whole.clone()), ok, Verdict::NoCallerId),
        ("no Identity", caller, None, None, Verdict::MissingIdentity),
        (
            "no parameter",
            caller,
            Some(whole.split(';').next().unwrap().to_owned()),
            ok,
            Verdict::InvalidHeader,
        ),
        ("no token", caller, Some(";info=<https://h/>".to_owned()), ok, Verdict::MissingJwt),
        ("nonsense", caller, Some("a.b.c;info=<https://h/>".to_owned()), ok, Verdict::InvalidHeader),
        ("compact form", caller, Some("..c2ln;info=<https://h/>".to_owned()), ok, Verdict::InvalidHeader),
        ("another kind", caller, Some(of(&header.replace("shaken", "rph"), "{}")), None, Verdict::BadPpt),
        ("no kind", caller, Some(of("{}", "{}")), None, Verdict::BadPpt),
        ("no Date", caller, Some(whole.clone()), None, Verdict::MissingDate),
        ("a bad Date", caller, Some(whole.clone()), Some("today"), Verdict::BadDate),
        (
            "a Date without a zone",
            caller,
            Some(whole.clone()),
            Some("Sat, 13 Nov 2010 23:29:00"),
            Verdict::BadDate,
        ),
        ("a Date of the future", caller, Some(whole.clone()), Some(&dates[0]), Verdict::DateRange),
        ("an old Date", caller, Some(whole.clone()), Some(&dates[2]), Verdict::DateRange),
        ("no x5u", caller, Some(of(&header.replace("x5u", "x5c"), "{}")), ok, Verdict::BadX5u),
        ("x5u over HTTP", caller, Some(x5u("http://h/c.pem")), ok, Verdict::BadX5u),
        ("x5u at another port", caller, Some(x5u("https://h:99/c.pem")), ok, Verdict::BadX5u),
        ("x5u of a file", caller, Some(x5u("file:///etc/passwd")), ok, Verdict::BadX5u),
        ("x5u with a query", caller, Some(x5u("https://h/c.pem?a")), ok, Verdict::BadX5u),
        ("no iat", caller, Some(of(&header, "{}")), ok, Verdict::MissingIat),
        ("iat is text", caller, Some(of(&header, r#"{"iat":"1"}"#)), ok, Verdict::InvalidGrant),
        ("an old iat", caller, Some(at(NOW - 16)), ok, Verdict::IatRange),
        ("an iat of the future", caller, Some(at(NOW + 16)), ok, Verdict::IatRange),
        ("no certificate", caller, Some(at(NOW - 15)), Some(&dates[1]), Verdict::Retrieval),
    ] {
        let identities: Vec<&str> = identity.as_deref().into_iter().collect();
        let call = Call { caller, identities: &identities, date };
        let outcome = outcome(&call, &rules(), Err(Verdict::Retrieval));
        assert_eq!((outcome.verdict, outcome.attestation), (expected, None), "{name}");
    }
    // Relaxed, one after the other.
    let url = "http://u@h:99/c.pem?a#b";
    let identity = x5u(url);
    for (any_port_and_scheme, any_path, ignores_date, expected) in [
        (true, true, true, None),
        (false, true, true, Some(Verdict::BadX5u)),
        (true, false, true, Some(Verdict::BadX5u)),
        (true, true, false, Some(Verdict::MissingDate)),
    ] {
        let rules = Verification { any_port_and_scheme, any_path, ignores_date, ..rules() };
        let failed = match begin(&Call { caller, identities: &[&identity], date: None }, &rules, NOW) {
            Begun::Failed(outcome) => Some(outcome.verdict),
            Begun::Needs(pending) => {
                assert_eq!(pending.url, url);
                None
            }
        };
        assert_eq!(failed, expected, "{any_port_and_scheme} {any_path} {ignores_date}");
    }
}

#[test]
fn rfc8226_9_the_first_step_of_the_certificate_that_fails_is_the_verdict() {
    let pair = KeyPair::generate().unwrap();
    let other = KeyPair::generate().unwrap();
    let p384 = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let identity = identity_header(&claims().sign(URL, &key(&pair)).unwrap(), URL);
    let date = date_header(NOW);
    let call = Call { caller: "12155551212", identities: &[&identity], date: Some(&date) };
    let one = &[0x30, 0x07, 0xa2, 0x05, 0x16, 0x03, b'1', b'0', b'0'][..];
    for (name, trusted, pair, extension, valid, expected) in [
        ("nobody vouches", false, &pair, None, (-60, -30), Verdict::CertNotTrusted),
        ("it has expired", true, &pair, None, (-60, -30), Verdict::CertDate),
        ("it is not valid yet", true, &pair, None, (30, 60), Verdict::CertDate),
        ("no TNAuthList", true, &pair, None, (-60, 60), Verdict::CertNoTnAuth),
        ("a number alone", true, &pair, Some(one), (-60, 60), Verdict::CertNoSpc),
        ("a malformed list", true, &pair, Some(&[0x30, 9][..]), (-60, 60), Verdict::CertNoSpc),
        ("another kind of key", true, &p384, Some(SPC), (-60, 60), Verdict::NoRawKey),
        ("another key", true, &other, Some(SPC), (-60, 60), Verdict::Signature),
        ("all is right", true, &pair, Some(SPC), (-60, 60), Verdict::Success),
    ] {
        let asked = Rc::new(Cell::new(0));
        let rules = Verification { authority: Rc::new(Trust(trusted, asked.clone())), ..rules() };
        let certificate = certificate(pair, extension, valid);
        assert_eq!(outcome(&call, &rules, Ok(&certificate)).verdict, expected, "{name}");
        // Whether it is trusted is asked for a second of its own time.
        assert!(certificate.is_valid_at(asked.get()), "{name}");
    }
}

#[test]
fn rfc8588_5_the_first_claim_that_fails_is_the_verdict_and_what_a_right_signature_attests_is_told() {
    let pair = KeyPair::generate().unwrap();
    let key = key(&pair);
    let certificate = certificate(&pair, Some(SPC), (-60, 60));
    let header = format!(r#"{{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"{URL}"}}"#);
    let whole = format!(
        r#"{{"attest":"B","dest":{{"tn":["1"]}},"iat":{NOW},"orig":{{"tn":"12155551212"}},"origid":"x"}}"#
    );
    let date = date_header(NOW);
    let b = Some(Level::B);
    for (name, header_change, claims_change, expected, attests) in [
        ("all is right", ("", ""), ("", ""), Verdict::Success, b),
        ("another algorithm", ("ES256", "none"), ("", ""), Verdict::BadAlg, None),
        ("no algorithm", ("\"alg\"", "\"al\""), ("", ""), Verdict::BadAlg, None),
        ("another type", (":\"passport\"", ":\"JWT\""), ("", ""), Verdict::BadTyp, None),
        ("no attestation", ("", ""), ("attest", "attes"), Verdict::BadAttest, None),
        ("attestation D", ("", ""), ("\"B\"", "\"D\""), Verdict::BadAttest, None),
        ("attestation in small", ("", ""), ("\"B\"", "\"b\""), Verdict::BadAttest, None),
        ("no dest", ("", ""), ("dest", "des"), Verdict::MissingDestTn, b),
        ("dest is text", ("", ""), (r#"{"tn":["1"]}"#, "\"1\""), Verdict::InvalidGrant, b),
        ("dest is a URI", ("", ""), ("tn\":[", "uri\":["), Verdict::MissingDestTn, b),
        ("dest is empty", ("", ""), ("[\"1\"]", "[]"), Verdict::MissingDestTn, b),
        ("dest is no list", ("", ""), ("[\"1\"]", "\"1\""), Verdict::InvalidGrant, b),
        ("dest has numbers of JSON", ("", ""), ("[\"1\"]", "[1]"), Verdict::InvalidGrant, b),
        ("no orig", ("", ""), ("\"orig\"", "\"or\""), Verdict::MissingOrigTn, b),
        ("orig without a number", ("", ""), ("{\"tn\":\"12", "{\"uri\":\"12"), Verdict::MissingOrigTn, b),
        ("orig is a number of JSON", ("", ""), ("\"12155551212\"", "12155551212"), Verdict::InvalidGrant, b),
        ("another caller", ("", ""), ("12155551212", "12155551214"), Verdict::OrigMismatch, b),
        ("orig with a plus", ("", ""), ("12155551212", "+1 215 555 1212"), Verdict::Success, b),
        ("no origid", ("", ""), ("\"origid\"", "\"origi\""), Verdict::MissingOrigId, b),
        ("an empty origid", ("", ""), ("\"x\"", "\"\""), Verdict::MissingOrigId, b),
        ("origid is a number", ("", ""), ("\"x\"", "1"), Verdict::InvalidGrant, b),
    ] {
        let (header, claims) = (
            header.replace(header_change.0, header_change.1),
            whole.replace(claims_change.0, claims_change.1),
        );
        let identity = identity_header(&token(&key, &header, &claims), URL);
        let call = Call { caller: "12155551212", identities: &[&identity], date: Some(&date) };
        let outcome = outcome(&call, &rules(), Ok(&certificate));
        assert_eq!((outcome.verdict, outcome.attestation), (expected, attests), "{name}");
    }
}

#[test]
fn rfc5280_5_what_was_revoked_is_listed_by_issuer_and_number() {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca.key_usages = vec![rcgen::KeyUsagePurpose::CrlSign, rcgen::KeyUsagePurpose::KeyCertSign];
    ca.distinguished_name.push(DnType::CommonName, "carriers");
    let issuer = rcgen::Issuer::from_params(&ca, &ca_key);
    let of = |serial: u64| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.serial_number = Some(serial.into());
        let made = params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        Certificate::read(made.der()).unwrap()
    };
    let revoked = rcgen::RevokedCertParams {
        serial_number: 7.into(),
        revocation_time: rcgen::date_time_ymd(2025, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2025, 1, 1),
        next_update: rcgen::date_time_ymd(2035, 1, 1),
        crl_number: 1.into(),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&issuer).unwrap();
    for bytes in [list.pem().unwrap().into_bytes(), list.der().to_vec()] {
        let mut known = Revoked::default();
        assert_eq!(known.add(&bytes), Some(1));
        assert!(known.has(&of(7)) && !known.has(&of(8)));
    }
    let mut known = Revoked::default();
    assert_eq!((known.add(b"nothing"), known.add(&[0x30, 3, 1])), (Some(0), None));
}

#[test]
fn what_is_no_certificate_is_not_read() {
    let pair = KeyPair::generate().unwrap();
    let der = CertificateParams::new(Vec::new()).unwrap().self_signed(&pair).unwrap();
    let pem = der.pem();
    for (name, bytes, expected) in [
        ("PEM", pem.clone().into_bytes(), true),
        ("DER", der.der().to_vec(), true),
        ("a key before it", format!("{}{pem}", pair.serialize_pem()).into_bytes(), true),
        ("cut short", pem.as_bytes()[..200].to_vec(), false),
        ("cut short in DER", der.der()[..100].to_vec(), false),
        ("a key alone", pair.serialize_pem().into_bytes(), false),
        ("a page", b"<html>".to_vec(), false),
        ("nothing", Vec::new(), false),
        ("too long", [pem.as_bytes(), &[b'\n'; stir::CERTIFICATE_BYTES_MAX]].concat(), false),
    ] {
        assert_eq!(Certificate::read(&bytes).is_some(), expected, "{name}");
    }
    let chain = Certificate::read(pem.repeat(3).as_bytes()).unwrap();
    assert_eq!((chain.others.len(), chain.key.as_deref()), (2, Some(pair.public_key_raw())));
}
