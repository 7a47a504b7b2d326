//! Two ends in memory: who believes whom.

mod weak;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CustomExtension, DnType,
    ExtendedKeyUsagePurpose as Purpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose as Usage, NameConstraints, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};

use super::*;

/// The name that servers have to prove.
const NAME: &str = "pbx.example.com";

type Signer = Issuer<'static, KeyPair>;

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("strowger-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// What a peer presents, and what the other end's list holds.
struct Case {
    chain: String,
    key: String,
    list: String,
}

/// An authority: its certificate as PEM, and what signs with it.
struct Authority {
    pem: String,
    signer: Signer,
}

fn ca_params(name: &str, usages: &[Usage]) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = usages.to_vec();
    params
}

const SIGNS: [Usage; 2] = [Usage::KeyCertSign, Usage::CrlSign];

fn root(name: &str) -> Authority {
    let (params, key) = (ca_params(name, &SIGNS), KeyPair::generate().unwrap());
    Authority { pem: params.self_signed(&key).unwrap().pem(), signer: Issuer::new(params, key) }
}

fn below(issuer: &Authority, change: impl FnOnce(&mut CertificateParams)) -> Authority {
    let (mut params, key) = (ca_params("Intermediate", &SIGNS), KeyPair::generate().unwrap());
    params.serial_number = Some(SerialNumber::from(77_u64));
    change(&mut params);
    Authority { pem: params.signed_by(&key, &issuer.signer).unwrap().pem(), signer: Issuer::new(params, key) }
}

/// A peer's certificate and key.
fn leaf(issuer: &Authority, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(4711_u64));
    params.key_usages = vec![Usage::DigitalSignature];
    params.extended_key_usages = vec![Purpose::ServerAuth, Purpose::ClientAuth];
    change(&mut params);
    (params.signed_by(&key, &issuer.signer).unwrap().pem(), key.serialize_pem())
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// One that the root signed itself.
fn direct(change: impl FnOnce(&mut CertificateParams)) -> Case {
    let root = root("Root");
    let (chain, key) = leaf(&root, change);
    Case { chain, key, list: root.pem }
}

/// One behind an intermediate authority.
fn through(authority: impl FnOnce(&mut CertificateParams)) -> Case {
    let root = root("Root");
    let middle = below(&root, authority);
    let (chain, key) = leaf(&middle, |_| {});
    Case { chain: chain + &middle.pem, key, list: root.pem }
}

/// One whose root has published a list with this serial number on it.
fn with_list(serial: u64, signer: impl FnOnce(&Authority) -> Signer) -> Case {
    let root = root("Root");
    let (chain, key) = leaf(&root, |_| {});
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(2124, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let own = signer(&root);
    let list = list.signed_by(&own).unwrap().pem().unwrap();
    Case { chain, key, list: root.pem + &list }
}

/// The root's own name and key as a second signer.
fn itself(root: &Authority) -> Signer {
    let key = KeyPair::from_pem(&root.signer.key().serialize_pem()).unwrap();
    Issuer::new(ca_params("Root", &SIGNS), key)
}

/// Somebody who says to be the root.
fn impostor(_: &Authority) -> Signer {
    Issuer::new(ca_params("Root", &SIGNS), KeyPair::generate().unwrap())
}

fn constrained(subtrees: &[&str], excluded: bool) -> Case {
    let trees: Vec<GeneralSubtree> =
        subtrees.iter().map(|tree| GeneralSubtree::DnsName((*tree).to_owned())).collect();
    through(|params| {
        let (permitted_subtrees, excluded_subtrees) =
            if excluded { (Vec::new(), trees) } else { (trees, Vec::new()) };
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees });
    })
}

fn old(chain: &str, list: &str) -> Case {
    Case { chain: chain.to_owned(), key: weak::KEY.to_owned(), list: list.to_owned() }
}

/// The PEM with one bit of its certificate's signature turned.
fn forged() -> Case {
    let case = direct(|_| {});
    // The signature is the last 70 bytes; fifty symbols of base64 before the end lie within it.
    let end = case.chain.find("-----END").unwrap();
    let body: Vec<(usize, char)> =
        case.chain[..end].char_indices().filter(|(_, symbol)| *symbol != '\n' && *symbol != '=').collect();
    let (at, symbol) = body[body.len() - 50];
    let mut chain = case.chain.clone();
    chain.replace_range(at..=at, if symbol == 'A' { "B" } else { "A" });
    Case { chain, ..case }
}

fn two_below_a_path_of_none() -> Case {
    let root = root("Root");
    let first = below(&root, |params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    let second = below(&first, |params| params.distinguished_name.push(DnType::CommonName, "Second"));
    let (chain, key) = leaf(&second, |_| {});
    Case { chain: chain + &second.pem + &first.pem, key, list: root.pem }
}

fn by_one_who_is_no_authority() -> Case {
    let root = root("Root");
    let middle = below(&root, |params| params.is_ca = IsCa::ExplicitNoCa);
    let (chain, key) = leaf(&middle, |_| {});
    Case { chain: chain + &middle.pem, key, list: root.pem }
}

fn without_its_intermediate() -> Case {
    let root = root("Root");
    let (chain, key) = leaf(&below(&root, |_| {}), |_| {});
    Case { chain, key, list: root.pem }
}

fn self_signed() -> Case {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    Case { chain, key: key.serialize_pem(), list: root("Root").pem }
}

/// One that a site lists by itself, as small sites do with a phone's or a carrier's.
fn pinned(change: impl FnOnce(&mut CertificateParams)) -> Case {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    change(&mut params);
    let chain = params.self_signed(&key).unwrap().pem();
    Case { list: chain.clone(), chain, key: key.serialize_pem() }
}

fn names(names: &[&str]) -> Case {
    let names: Vec<SanType> = names.iter().map(|name| dns(name)).collect();
    direct(|params| params.subject_alt_names = names)
}

fn uris(uris: &[&str], host: &str) -> Case {
    let mut names: Vec<SanType> = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
    names.push(dns(host));
    direct(|params| params.subject_alt_names = names)
}

/// What two ends say of each other: the fault of the server, of the client.
fn shake(server: &Tls, client: &Tls, name: &str) -> (Option<String>, Option<String>) {
    let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let mut ends = [Session::client(client, name, nobody).unwrap(), Session::server(server, nobody).unwrap()];
    let mut faults = [None, None];
    let mut plain = [0; 1024];
    // A handshake has at most eight flights.
    for turn in 0..16 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let mut wire = Vec::new();
        ends[from].take_output(&mut wire);
        if !wire.is_empty() && faults[to].is_none() {
            faults[to] = ends[to].receive(&wire, &mut plain, &mut |_| {}).err().map(|fault| fault.what);
        }
    }
    let [client, server] = faults;
    if server.is_none() && client.is_none() {
        assert!(ends.iter().all(|end| !end.is_handshaking()), "no fault, and no end");
    }
    (server, client)
}

/// Loads one end.
fn end(folder: &Folder, own: Option<(&str, &str)>, list: &str, settings: TlsSettings) -> Tls {
    let mut settings = settings;
    if let Some((chain, key)) = own {
        settings.cert_file = folder.write("chain.pem", chain);
        settings.key_file = folder.write("key.pem", key);
    }
    if !list.is_empty() {
        settings.ca_list_file = folder.write("list.pem", list);
    }
    Tls::load(&settings).unwrap()
}

/// What a client that verifies says of a server with this certificate, by both versions.
fn outbound(folder: &Folder, case: &Case, name: &str, wildcards: bool) -> Option<String> {
    let server = end(folder, Some((&case.chain, &case.key)), "", TlsSettings::default());
    let of = |versions| {
        let settings = TlsSettings {
            verify_server: true,
            allow_wildcard_certs: wildcards,
            versions,
            ..TlsSettings::default()
        };
        let (told, fault) = shake(&server, &end(folder, None, &case.list, settings), name);
        assert_eq!(fault.is_some(), told.is_some(), "the server hears of it: {fault:?} {told:?}");
        fault
    };
    let (old, new) = (of(Versions::Tls12), of(Versions::Tls13));
    assert_eq!(old, new, "TLS 1.2 and 1.3 agree");
    new
}

/// What a server that verifies says of a client with this certificate.
fn inbound(folder: &Folder, case: &Case) -> Option<String> {
    let own = direct(|_| {});
    let client = end(folder, Some((&case.chain, &case.key)), "", TlsSettings::default());
    let settings = TlsSettings { verify_client: true, require_client_cert: true, ..TlsSettings::default() };
    let server = end(folder, Some((&own.chain, &own.key)), &case.list, settings);
    shake(&server, &client, NAME).0
}

/// A server whose certificate is for `NAME`, and a client that knows who signed it.
pub(in crate::net) fn ends(verify_server: bool) -> (Tls, Tls) {
    static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let made = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (folder, case) = (Folder::new(&format!("ends-{made}")), direct(|_| {}));
    let server = end(&folder, Some((&case.chain, &case.key)), "", TlsSettings::default());
    let settings = TlsSettings { verify_server, ..TlsSettings::default() };
    (server, end(&folder, None, &case.list, settings))
}

/// Which side a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Both,
    Servers,
    Clients,
}

/// Name, whom it concerns, how it is made, what is said of it; empty: it is believed.
type Row = (&'static str, To, fn() -> Case, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("signed by the root", To::Both, || direct(|_| {}), ""),
    ("signed by an intermediate that is sent", To::Both, || through(|_| {}), ""),
    ("without key usages", To::Both, || direct(|p| { p.key_usages.clear(); p.extended_key_usages.clear(); }), ""),
    ("one of several names", To::Servers, || names(&["a.example.com", "PBX.example.com"]), ""),
    ("its SIP domain", To::Servers, || uris(&["sip:pbx.example.com"], "other.example.com"), ""),
    ("listed by itself", To::Both, || pinned(|_| {}), ""),
    ("listed by itself as an authority", To::Both, || pinned(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), ""),
    ("a list that revokes others", To::Both, || with_list(1, itself), ""),
    ("within the constraints", To::Servers, || constrained(&["example.com"], false), ""),
    ("the weak rows' own chain, with SHA-256", To::Both, || old(weak::BY_SHA256, weak::GOOD_CA), ""),

    ("expired", To::Both, || direct(|p| p.not_after = date_time_ymd(2020, 1, 1)), "it has expired"),
    ("expired intermediate", To::Both, || through(|p| p.not_after = date_time_ymd(2020, 1, 1)), "it has expired"),
    ("listed by itself, expired", To::Both, || pinned(|p| p.not_after = date_time_ymd(2020, 1, 1)), "it has expired"),
    ("not yet valid", To::Both, || direct(|p| p.not_before = date_time_ymd(2090, 1, 1)), "it is not valid yet"),
    ("listed by itself, not yet valid", To::Both, || pinned(|p| p.not_before = date_time_ymd(2090, 1, 1)), "it is not valid yet"),
    ("ends before it begins", To::Both, || direct(|p| { p.not_before = date_time_ymd(2022, 1, 1); p.not_after = date_time_ymd(2021, 1, 1); }), "it has expired"),
    ("self-signed", To::Both, self_signed, "no authority of the list"),
    ("signed by an unknown authority", To::Both, || Case { list: root("Another").pem, ..direct(|_| {}) }, "no authority of the list"),
    ("signed by another of the same name", To::Both, || Case { list: root("Root").pem, ..direct(|_| {}) }, "its signature is wrong"),
    ("signed by nobody's list", To::Both, || Case { list: String::new(), ..direct(|_| {}) }, "no authority of the list"),
    ("without its intermediate", To::Both, without_its_intermediate, "no authority of the list"),
    ("signed by one who is no authority", To::Both, by_one_who_is_no_authority, "EndEntityUsedAsCa"),
    ("signed by one who may not sign certificates", To::Both, || through(|p| p.key_usages = vec![Usage::DigitalSignature]), "keyCertSign"),
    ("an authority's own", To::Both, || direct(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), "CaUsedAsEndEntity"),
    ("longer than the path may be", To::Both, two_below_a_path_of_none, "PathLenConstraintViolated"),
    ("forged", To::Both, forged, "its signature is wrong"),

    ("another name", To::Servers, || names(&["evil.example.net"]), "another name"),
    ("a name of which ours is the end", To::Servers, || names(&["apbx.example.com"]), "another name"),
    ("a name of which ours is the beginning", To::Servers, || names(&["pbx.example.com.evil.example"]), "another name"),
    ("the name in CN only", To::Servers, || direct(|p| { p.subject_alt_names.clear(); p.distinguished_name.push(DnType::CommonName, NAME); }), "another name"),
    ("a NUL after the name", To::Servers, || names(&["pbx.example.com\0.evil.example"]), "another name"),
    ("a NUL before the name", To::Servers, || names(&["evil.example\0.pbx.example.com"]), "another name"),
    ("the name as a mail address", To::Servers, || direct(|p| p.subject_alt_names = vec![SanType::Rfc822Name(NAME.try_into().unwrap())]), "another name"),
    ("another SIP domain beside the name", To::Servers, || uris(&["sip:other.example.com"], NAME), "another name"),
    ("an empty name", To::Servers, || names(&[""]), "another name"),
    ("no name at all", To::Servers, || direct(|p| p.subject_alt_names.clear()), "another name"),
    ("outside the constraints", To::Servers, || constrained(&["other.example"], false), "NameConstraintViolation"),
    ("excluded by the constraints", To::Servers, || constrained(&["example.com"], true), "NameConstraintViolation"),
    ("a client's outside the constraints", To::Clients, || constrained(&["other.example"], false), "NameConstraintViolation"),

    ("key usage without signatures", To::Both, || direct(|p| p.key_usages = vec![Usage::KeyEncipherment]), "digitalSignature"),
    ("key usage of an authority", To::Both, || direct(|p| p.key_usages = vec![Usage::KeyCertSign]), "digitalSignature"),
    ("for clients only", To::Servers, || direct(|p| p.extended_key_usages = vec![Purpose::ClientAuth]), "RequiredEkuNotFound"),
    ("for servers only", To::Clients, || direct(|p| p.extended_key_usages = vec![Purpose::ServerAuth]), "RequiredEkuNotFound"),
    ("for signing programs", To::Both, || direct(|p| p.extended_key_usages = vec![Purpose::CodeSigning]), "RequiredEkuNotFound"),
    ("a critical extension nobody knows", To::Both, || direct(|p| { let mut e = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]); e.set_criticality(true); p.custom_extensions = vec![e]; }), "UnsupportedCriticalExtension"),

    ("revoked", To::Both, || with_list(4711, itself), "it is revoked"),
    ("a revocation list signed by somebody else", To::Both, || with_list(1, impostor), "InvalidCrlSignatureForPublicKey"),
    ("signed with SHA-1", To::Both, || old(weak::BY_SHA1, weak::GOOD_CA), "UnsupportedSignatureAlgorithm"),
    ("signed with MD5", To::Both, || old(weak::BY_MD5, weak::GOOD_CA), "UnsupportedSignatureAlgorithm"),
    ("signed with a key of 1,024 bits", To::Both, || old(weak::BY_WEAK_CA, weak::WEAK_CA), "its signature is wrong"),
];

#[test]
fn every_bad_certificate_is_refused_in_both_directions_and_every_good_one_believed() {
    let folder = Folder::new("rows");
    for (name, to, make, expected) in ROWS {
        let case = make();
        let mut said = Vec::new();
        if *to != To::Clients {
            said.push(("outbound", outbound(&folder, &case, NAME, false)));
        }
        if *to != To::Servers {
            said.push(("inbound", inbound(&folder, &case)));
        }
        for (direction, said) in said {
            match said {
                None => assert_eq!(*expected, "", "{name}, {direction}: believed"),
                Some(said) => {
                    assert!(!expected.is_empty() && said.contains(expected), "{name}, {direction}: {said}");
                }
            }
        }
    }
}

#[test]
fn rfc6125_6_4_3_a_wildcard_stands_for_one_whole_label_and_only_where_the_site_allows_it() {
    let folder = Folder::new("wildcards");
    for (pattern, believed) in [
        ("*.example.com", true),
        ("*.com", false),
        ("*", false),
        ("*.*.com", false),
        ("p*.example.com", false),
        ("pbx.*.com", false),
        ("*.pbx.example.com", false),
        ("*pbx.example.com", false),
        ("*.example.com.evil.example", false),
    ] {
        let case = names(&[pattern]);
        let said = outbound(&folder, &case, NAME, true);
        assert_eq!(said.is_none(), believed, "{pattern}: {said:?}");
        let refused = outbound(&folder, &case, NAME, false).unwrap();
        assert_eq!(refused.contains("allow_wildcard_certs"), believed, "{pattern}: {refused}");
    }
}

#[test]
fn rfc6066_3_a_client_is_shown_the_certificate_of_the_name_it_asks_for() {
    let folder = Folder::new("by-name");
    let authority = root("Root");
    let of = |names: &[&str]| {
        let (chain, key) =
            leaf(&authority, |p| p.subject_alt_names = names.iter().map(|name| dns(name)).collect());
        end(&folder, Some((&chain, &key)), "", TlsSettings::default())
    };
    let all = [
        of(&["one.example", "also.example"]),
        of(&["two.example"]),
        of(&["*.wild.example"]),
        of(&["two.example"]),
    ];
    let server = Tls::by_name(&all).unwrap();
    let settings =
        |verify_server| TlsSettings { verify_server, allow_wildcard_certs: true, ..TlsSettings::default() };
    for (asked, place, believed) in [
        ("one.example", 0, true),
        ("also.example", 0, true),
        ("two.example", 1, true),
        ("TWO.example", 1, true),
        ("a.wild.example", 2, true),
        ("a.b.wild.example", 0, false),
        ("nobody.example", 0, false),
        // An address is no name that is asked for.
        ("192.0.2.7", 0, false),
    ] {
        assert_eq!(server.chosen(Some(asked)), place, "{asked}");
        for versions in [Versions::Tls12, Versions::Tls13] {
            let settings = TlsSettings { versions, ..settings(true) };
            let (_, fault) = shake(&server, &end(&folder, None, &authority.pem, settings), asked);
            assert_eq!(fault.is_none(), believed, "{asked}: {fault:?}");
        }
    }
    assert_eq!(server.chosen(None), 0);
    assert!(Tls::by_name(&[]).is_none());
    // Alone, one is shown whatever is asked for; and what is compared at a reload is all of them.
    let alone = Tls::by_name(&all[1..2]).unwrap();
    assert!(alone.same(&all[1]) && alone.chosen(Some("one.example")) == 0);
    let same = Tls::by_name(&all).unwrap();
    assert!(server.same(&same) && !server.same(&all[0]) && !server.same(&Tls::by_name(&all[..2]).unwrap()));
}

#[test]
fn an_address_is_proved_by_an_address_and_not_by_a_name_that_looks_like_one() {
    let folder = Folder::new("addresses");
    let address = || direct(|p| p.subject_alt_names = vec![SanType::IpAddress("192.0.2.7".parse().unwrap())]);
    assert_eq!(outbound(&folder, &address(), "192.0.2.7", false), None);
    for (case, name) in [
        (address(), "192.0.2.8"),
        (names(&["192.0.2.7"]), "192.0.2.7"),
        (uris(&["sip:192.0.2.7"], NAME), "192.0.2.7"),
    ] {
        assert!(
            outbound(&folder, &case, name, false).is_some_and(|said| said.contains("another name")),
            "{name}"
        );
    }
}

#[test]
fn without_verification_any_certificate_will_do_and_a_client_that_has_to_have_one_needs_one() {
    let folder = Folder::new("lenient");
    let case = self_signed();
    let server = |settings| end(&folder, Some((&case.chain, &case.key)), &case.list, settings);
    let bare = end(&folder, None, "", TlsSettings::default());
    assert_eq!(shake(&server(TlsSettings::default()), &bare, "any.example"), (None, None));
    let requires = TlsSettings { require_client_cert: true, ..TlsSettings::default() };
    let (said, _) = shake(&server(requires.clone()), &bare, NAME);
    assert_eq!(said.as_deref(), Some("the client presented no certificate"));
    let own = end(&folder, Some((&case.chain, &case.key)), "", TlsSettings::default());
    assert_eq!(shake(&server(requires), &own, NAME), (None, None), "any certificate");
    // Verified when there is one, and not asked for.
    let verifies = TlsSettings { verify_client: true, ..TlsSettings::default() };
    assert_eq!(shake(&server(verifies.clone()), &bare, NAME), (None, None));
    assert!(shake(&server(verifies), &own, NAME).0.is_some(), "one that nobody signed");
    let (nothing, _) = shake(&bare, &bare, NAME);
    assert_eq!(nothing.as_deref(), Some("there is no certificate to present"));
}

#[test]
fn rfc8018_6_2_a_key_under_a_password_is_opened_with_it_and_with_no_other() {
    let folder = Folder::new("locked");
    let case = direct(|_| {});
    let chain = folder.write("own.pem", &case.chain);
    let plain = folder.write("own.key", &case.key);
    for form in [
        &["-v2", "aes-256-cbc"][..],
        &["-scrypt"],
        &["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"],
        &["-v2", "des3"],
    ] {
        let key_file = folder.0.join("locked.key");
        let made = std::process::Command::new("openssl")
            .args(["pkcs8", "-topk8", "-passout", "pass:open sesame", "-in"])
            .args([&plain, std::path::Path::new("-out"), &key_file])
            .args(form)
            .output();
        if !made.as_ref().is_ok_and(|made| made.status.success()) {
            println!("skipped: openssl writes no key with {form:?}: {made:?}");
            continue;
        }
        let settings = |password: &str| TlsSettings {
            cert_file: chain.clone(),
            key_file: key_file.clone(),
            key_password: KeyPassword(password.to_owned()),
            ..TlsSettings::default()
        };
        assert!(Tls::load(&settings("open sesame")).unwrap().has_certificate(), "{form:?}");
        for (password, option, said) in
            [("", "priv_key_file", "only under a password"), ("sesame", "password", "under another password")]
        {
            let error = Tls::load(&settings(password)).unwrap_err();
            assert_eq!(error.option, option, "{form:?}: {error:?}");
            assert!(error.what.contains(said) && !error.what.contains("sesame"), "{form:?}: {error:?}");
        }
        assert!(!format!("{:?}", settings("open sesame")).contains("sesame"));
    }
    // In one file with the certificate, and cut short.
    let sealed = std::fs::read_to_string(folder.0.join("locked.key")).unwrap_or_default();
    let both = folder.write("both.pem", &(case.chain.clone() + &sealed));
    let settings = TlsSettings {
        cert_file: both,
        key_password: KeyPassword("open sesame".to_owned()),
        ..TlsSettings::default()
    };
    assert!(sealed.is_empty() || Tls::load(&settings).unwrap().has_certificate());
    let cut = folder.write("cut.pem", &(case.chain + sealed.get(..60).unwrap_or_default()));
    assert!(Tls::load(&TlsSettings { cert_file: cut, ..settings }).is_err());
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_to_do() {
    let folder = Folder::new("files");
    let (case, other) = (direct(|_| {}), direct(|_| {}));
    let good = folder.write("good.pem", &case.chain);
    let key = folder.write("good.key", &case.key);
    let both = folder.write("both.pem", &(case.chain.clone() + &case.key));
    let text = folder.write("text.pem", "not a certificate\n");
    let wrong = folder.write("wrong.key", &other.key);
    let locked = folder.write(
        "locked.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let old = folder.write(
        "old.key",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAA==\n-----END EC PRIVATE KEY-----\n",
    );
    let bad_list = folder.write("bad.crl", "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n");
    let nowhere = folder.0.join("nowhere.pem");
    for (cert_file, key_file, ca_list_file, option, said) in [
        (&both, None, None, "", ""),
        (&good, Some(&key), Some(&good), "", ""),
        (&nowhere, None, None, "cert_file", "cannot be read"),
        (&text, None, None, "cert_file", "holds no certificate in PEM"),
        (&good, None, None, "priv_key_file", "no private key in PEM"),
        (&good, Some(&nowhere), None, "priv_key_file", "cannot be read"),
        (&good, Some(&wrong), None, "priv_key_file", "is not that of the certificate"),
        (&good, Some(&locked), None, "priv_key_file", "only under a password"),
        (&good, Some(&old), None, "priv_key_file", "in OpenSSL's old form"),
        (&good, Some(&key), Some(&nowhere), "ca_list_file", "cannot be read"),
        (&good, Some(&key), Some(&bad_list), "ca_list_file", "revocation list"),
    ] {
        let settings = TlsSettings {
            cert_file: cert_file.clone(),
            key_file: key_file.cloned().unwrap_or_default(),
            ca_list_file: ca_list_file.cloned().unwrap_or_default(),
            ..TlsSettings::default()
        };
        match Tls::load(&settings) {
            Ok(tls) => assert!(option.is_empty() && tls.has_certificate(), "{said}"),
            Err(error) => {
                assert_eq!(error.option, option, "{error:?}");
                assert!(!said.is_empty() && error.what.contains(said), "{error:?}");
                assert!(!error.remedy.is_empty());
            }
        }
    }
}

#[test]
fn a_change_of_a_file_is_noticed_and_nothing_else_is() {
    let folder = Folder::new("changes");
    let (first, second) = (direct(|_| {}), direct(|_| {}));
    let settings = TlsSettings {
        cert_file: folder.write("own.pem", &(first.chain.clone() + &first.key)),
        ca_list_path: folder.0.join("list"),
        ..TlsSettings::default()
    };
    std::fs::create_dir_all(&settings.ca_list_path).unwrap();
    let before = Tls::load(&settings).unwrap();
    assert!(before.same(&Tls::load(&settings).unwrap()));
    folder.write("list/root.pem", &first.list);
    let listed = Tls::load(&settings).unwrap();
    assert!(!before.same(&listed));
    folder.write("own.pem", &(second.chain + &second.key));
    assert!(!listed.same(&Tls::load(&settings).unwrap()));
}

#[test]
fn suites_are_chosen_by_openssls_names_or_the_rfcs_and_unknown_ones_are_told() {
    let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let names =
        listed(&["ECDHE-RSA-AES128-GCM-SHA256", "AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]);
    assert_eq!(unknown_ciphers(&names), ["AES256-SHA"]);
    let folder = Folder::new("suites");
    let case = direct(|_| {});
    let end = |ciphers: &[&str], versions| {
        let settings = TlsSettings { ciphers: listed(ciphers), versions, ..TlsSettings::default() };
        end(&folder, Some((&case.chain, &case.key)), "", settings)
    };
    let chacha = end(&["ECDHE-ECDSA-CHACHA20-POLY1305"], Versions::Tls12);
    let aes = end(&["ECDHE-ECDSA-AES128-GCM-SHA256"], Versions::Tls12);
    let all = end(&[], Versions::All);
    assert_eq!(shake(&chacha, &all, NAME), (None, None));
    let (said, _) = shake(&chacha, &aes, NAME);
    assert!(said.is_some_and(|said| said.contains("NoCipherSuitesInCommon")));
    let (said, _) = shake(&end(&[], Versions::Tls13), &aes, NAME);
    assert!(said.is_some(), "no version in common");
    assert_eq!(shake(&end(&["TLS_AES_128_GCM_SHA256"], Versions::Tls13), &all, NAME), (None, None));
}

#[test]
fn peers_that_speak_something_older_or_something_else_are_called_by_its_name() {
    let folder = Folder::new("outdated");
    let case = direct(|_| {});
    let server = end(&folder, Some((&case.chain, &case.key)), "", TlsSettings::default());
    /// A ClientHello of this version: a suite of RSA key exchange, no compression, no extension.
    fn hello(record: u8, version: u8) -> Vec<u8> {
        let mut body = vec![3, version];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0, 0x2f, 1, 0]);
        let mut message = vec![1, 0, 0, body.len() as u8];
        message.extend(body);
        let mut out = vec![0x16, 3, record, 0, message.len() as u8];
        out.extend(message);
        out
    }
    for (bytes, said, remedy) in [
        (hello(0, 0), "SSL 3 only", "update its firmware"),
        (hello(1, 1), "TLS 1.0 only", "update its firmware"),
        (hello(1, 2), "TLS 1.1 only", "update its firmware"),
        (vec![0x80, 0x2e, 1, 3, 1, 0, 5, 0, 0, 0, 16, 1, 0], "SSL 2 only", "update its firmware"),
        (b"REGISTER sip:pbx.example.com SIP/2.0\r\n".to_vec(), "not TLS", "another port"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "not TLS", "another port"),
    ] {
        let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let mut session = Session::server(&server, nobody).unwrap();
        let fault = session.receive(&bytes, &mut [0; 64], &mut |_| {}).unwrap_err();
        assert!(fault.what.contains(said), "{said}: {fault:?}");
        assert!(fault.remedy.contains(remedy), "{said}: {fault:?}");
    }
}

#[test]
fn rfc6066_3_a_client_names_the_server_that_has_to_prove_it_and_never_an_address() {
    let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    for verify_server in [true, false] {
        let (_, client) = ends(verify_server);
        for (name, expected) in [
            (NAME, Some(NAME)),
            ("sip.example.net", Some("sip.example.net")),
            ("192.0.2.1", None),
            ("2001:db8::1", None),
        ] {
            let (mut session, mut wire) = (Session::client(&client, name, nobody).unwrap(), Vec::new());
            session.take_output(&mut wire);
            let mut acceptor = rustls::server::Acceptor::default();
            acceptor.read_tls(&mut &wire[..]).unwrap();
            let hello = acceptor.accept().unwrap().expect("one whole hello");
            assert_eq!(hello.client_hello().server_name(), expected, "{name}, verified: {verify_server}");
        }
    }
}

#[test]
fn rfc6066_3_a_transport_shows_its_one_certificate_whatever_name_is_asked_for() {
    let (server, client) = ends(false);
    for name in [NAME, "other.example.net", "192.0.2.1"] {
        assert_eq!(shake(&server, &client, name), (None, None), "{name}");
    }
    let (server, client) = ends(true);
    assert_eq!(shake(&server, &client, NAME), (None, None));
}
