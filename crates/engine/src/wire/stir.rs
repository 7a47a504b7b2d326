//! `stir_shaken.conf` in the words of the SIP driver: keys and certificates are read, and what a profile inherits is filled in.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use conf::{Findings, Place};
use io::es256::{self, Authorities, SigningKey};
use stir::{
    Authority, Behavior, Certificate, FailureAction, Fetching, Level, Profile, Revoked, Settings, Sign,
    Signer, Verification,
};
use store::Snapshot;
use store::config::Origin;
use store::config::stir::{
    AttestLevel, EndpointBehavior, ProfileOf, StirFailure, StirProfile, StirVerification, TelephoneNumber,
};

/// Longest file of keys or certificates, bytes: what a system trusts has a quarter of it.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Files of one folder that are read.
const FILES_MAX: usize = 512;
/// Where certificates are kept below `astdatadir`, unless the file says otherwise.
const CACHE_FOLDER: &str = "keys/stir_shaken/cache";

struct Key(SigningKey);

impl Sign for Key {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        self.0.sign(message)
    }
}

struct Trust {
    authorities: Authorities,
    revoked: Revoked,
}

impl Authority for Trust {
    fn trusts(&self, certificate: &Certificate, at: u64) -> bool {
        let Self { authorities, revoked } = self;
        if revoked.is_empty() {
            return authorities.vouch(&certificate.leaf, &certificate.others, at);
        }
        let is_good = |other: &&Vec<u8>| {
            let read = Certificate::of((*other).clone(), Vec::new());
            read.is_some_and(|read| !revoked.has(&read))
        };
        let others: Vec<Vec<u8>> = certificate.others.iter().filter(is_good).cloned().collect();
        !revoked.has(certificate) && authorities.vouch(&certificate.leaf, &others, at)
    }
    fn verifies(&self, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        es256::verifies(key, message, signature)
    }
}

/// What stir_shaken.conf comes to. Files that cannot be used are said, each once.
pub(crate) fn stir_settings(snapshot: &Snapshot, findings: &mut Findings) -> Settings {
    let stir = &snapshot.stir;
    let is_on =
        ["res_stir_shaken", "res_pjsip_stir_shaken"].iter().all(|name| snapshot.modules.has_module(name));
    if !is_on {
        return Settings::default();
    }
    let folder = snapshot.asterisk.directories.astdatadir.join(CACHE_FOLDER);
    let mut loading = Loading { keys: BTreeMap::new(), trusts: BTreeMap::new(), folder, findings };
    let attestation = &stir.attestation;
    if !attestation.private_key_file.is_empty() && !attestation.global_disable {
        loading.key(&attestation.private_key_file, attestation.origin.place_of("private_key_file"));
    }
    let mut settings = Settings {
        certificates_max: usize::try_from(stir.verification.max_cache_size).unwrap_or(usize::MAX),
        ..Settings::default()
    };
    let is_written = stir.verification.origin.place.line > 0;
    if is_written && !stir.verification.global_disable {
        settings.verification = Some(Rc::new(loading.verification(&Rules::of(&stir.verification))));
    }
    for (name, of) in &stir.profiles {
        let profile = loading.profile(snapshot, name, of);
        if profile.behavior.attests() {
            let rules = profile.verification.clone().or(settings.verification.clone());
            let checked = of.numbers.iter().filter(|(_, number)| number.check_tn_cert_public_url);
            let checked = checked.filter(|(number, _)| profile.numbers.contains_key(*number));
            let checks = checked.filter_map(|(number, of)| {
                Some((number.clone(), of.public_cert_url.clone(), rules.clone()?))
            });
            settings.checks.extend(checks);
        }
        settings.profiles.insert(name.clone(), Rc::new(profile));
    }
    for (name, endpoint) in &snapshot.pjsip.endpoints {
        let wanted = &endpoint.stir_shaken_profile;
        if !wanted.is_empty() && !stir.profiles.contains_key(wanted) {
            let message = format!(
                "endpoint '{name}' names the profile '{wanted}', which stir_shaken.conf does not have; its calls are \
                 neither signed nor verified"
            );
            let remedy = format!("add a section [{wanted}] with type=profile to stir_shaken.conf");
            findings.warning(endpoint.origin.place_of("stir_shaken_profile"), message, remedy);
        }
    }
    settings
}

/// What profiles and `[verification]` have in common.
struct Rules<'a> {
    origin: &'a Origin,
    load_system_certs: bool,
    ca: [&'a str; 2],
    crl: [&'a str; 2],
    untrusted: [&'a str; 2],
    cache: &'a str,
    of: Verification,
}

macro_rules! rules_of {
    ($name:ident) => {
        impl<'a> From<&'a $name> for Rules<'a> {
            fn from(from: &'a $name) -> Self {
                let access = from.x5u_access.clone();
                Self {
                    origin: &from.origin,
                    load_system_certs: from.load_system_certs,
                    ca: [&from.ca_file, &from.ca_path],
                    crl: [&from.crl_file, &from.crl_path],
                    untrusted: [&from.untrusted_cert_file, &from.untrusted_cert_path],
                    cache: &from.cert_cache_dir,
                    of: Verification {
                        authority: Rc::new(Trust {
                            authorities: Authorities::default(),
                            revoked: Revoked::default(),
                        }),
                        fetching: Fetching {
                            within: from.curl_timeout,
                            allows: Arc::new(move |ip| match &access {
                                Some(access) => access.allows(ip),
                                None => stir::is_public(ip),
                            }),
                            folder: PathBuf::new(),
                            keep: from.max_cache_entry_age,
                        },
                        max_iat_age: from.max_iat_age.as_secs(),
                        max_date_age: from.max_date_header_age.as_secs(),
                        ignores_date: from.ignore_sip_date_header,
                        any_port_and_scheme: from.relax_x5u_port_scheme_restrictions,
                        any_path: from.relax_x5u_path_restrictions,
                        failure_action: match from.failure_action {
                            StirFailure::Continue => FailureAction::Continue,
                            StirFailure::RejectRequest => FailureAction::RejectRequest,
                            StirFailure::ContinueReturnReason => FailureAction::ContinueReturnReason,
                        },
                        stir_reasons: from.use_rfc9410_responses,
                    },
                }
            }
        }
    };
}
rules_of!(StirVerification);
rules_of!(StirProfile);

impl<'a> Rules<'a> {
    fn of(from: impl Into<Self>) -> Self {
        from.into()
    }
}

/// What was read, so that no file is read and complained of twice.
struct Loading<'a> {
    keys: BTreeMap<String, Option<Rc<dyn Sign>>>,
    trusts: BTreeMap<String, Rc<dyn Authority>>,
    folder: PathBuf,
    findings: &'a mut Findings,
}

impl Loading<'_> {
    fn profile(&mut self, snapshot: &Snapshot, name: &str, of: &ProfileOf) -> Profile {
        let from = &of.effective;
        let stir = &snapshot.stir;
        let behavior = match from.endpoint_behavior {
            EndpointBehavior::Off => Behavior::Off,
            EndpointBehavior::Attest => Behavior::Attest,
            EndpointBehavior::Verify => Behavior::Verify,
            EndpointBehavior::On => Behavior::On,
        };
        let attests = behavior.attests() && !stir.attestation.global_disable;
        let verifies = behavior.verifies() && !stir.verification.global_disable;
        let numbers = of.numbers.iter().filter(|_| attests).filter_map(|(number, of)| {
            let signer = self.signer(&format!("number '{number}' of profile '{name}'"), of)?;
            Some((number.clone(), signer))
        });
        let numbers: BTreeMap<String, Signer> = numbers.collect();
        let others = attests && from.unknown_tn_attest_level != AttestLevel::NotSet;
        let unknown = others.then(|| {
            let mut all = TelephoneNumber::default();
            all.origin.clone_from(&from.origin);
            all.private_key_file.clone_from(&from.private_key_file);
            all.public_cert_url.clone_from(&from.public_cert_url);
            (all.attest_level, all.send_mky) = (from.unknown_tn_attest_level, from.send_mky);
            self.signer(&format!("other numbers of profile '{name}'"), &all)
        });
        Profile {
            behavior,
            numbers: Rc::new(numbers),
            unknown: unknown.flatten(),
            verification: verifies.then(|| Rc::new(self.verification(&Rules::of(from)))),
        }
    }
    /// Who signs for a number, unless something is missing.
    fn signer(&mut self, whose: &str, of: &TelephoneNumber) -> Option<Signer> {
        let level = match of.attest_level {
            AttestLevel::A => Some(Level::A),
            AttestLevel::B => Some(Level::B),
            AttestLevel::C => Some(Level::C),
            AttestLevel::NotSet => None,
        };
        let url = &of.public_cert_url;
        let missing = [
            ("private_key_file", of.private_key_file.is_empty()),
            ("public_cert_url", url.is_empty()),
            ("attest_level", level.is_none()),
        ];
        if let Some((option, _)) = missing.iter().find(|(_, missing)| *missing) {
            let message = format!("calls of {whose} are not signed: there is no {option}=");
            let remedy = "write it there, in the profile or in [attestation]";
            self.findings.error(&of.origin.place, message, remedy);
            return None;
        }
        if !stir::is_acceptable(url, true, true) {
            let message =
                format!("calls of {whose} are not signed: '{url}' is no URL with http:// or https://");
            let remedy = "write public_cert_url=https://host/path";
            self.findings.error(of.origin.place_of("public_cert_url"), message, remedy);
            return None;
        }
        let key = self.key(&of.private_key_file, of.origin.place_of("private_key_file"))?;
        Some(Signer { key, url: url.clone(), level: level?, send_mky: of.send_mky })
    }
    fn key(&mut self, path: &str, place: &Place) -> Option<Rc<dyn Sign>> {
        if let Some(known) = self.keys.get(path) {
            return known.clone();
        }
        let read = read(Path::new(path)).and_then(|pem| SigningKey::from_pem(&pem).map_err(str::to_owned));
        let key = match read {
            Ok(key) => Some(Rc::new(Key(key)) as Rc<dyn Sign>),
            Err(why) => {
                let message = format!("nothing is signed with private_key_file={path}: {why}");
                self.findings.error(
                    place,
                    message,
                    "name a file with an EC key of P-256 in PEM, without a password",
                );
                None
            }
        };
        self.keys.insert(path.to_owned(), key.clone());
        key
    }
    fn verification(&mut self, rules: &Rules<'_>) -> Verification {
        let cache = if rules.cache.is_empty() { self.folder.clone() } else { PathBuf::from(rules.cache) };
        let fetching = Fetching { folder: cache, ..rules.of.fetching.clone() };
        Verification { authority: self.authority(rules), fetching, ..rules.of.clone() }
    }
    fn authority(&mut self, rules: &Rules<'_>) -> Rc<dyn Authority> {
        let Rules { origin, load_system_certs, ca, crl, untrusted, .. } = rules;
        let key = format!("{load_system_certs} {}", [*ca, *crl, *untrusted].as_flattened().join("\n"));
        if let Some(known) = self.trusts.get(&key) {
            return known.clone();
        }
        let (mut authorities, mut revoked) = (Authorities::default(), Revoked::default());
        if *load_system_certs && let Err(why) = authorities.trust_system() {
            let remedy = "install the package ca-certificates, or name a ca_file";
            self.findings.error(origin.place_of("load_system_certs"), why, remedy);
        }
        self.each(origin, ["ca_file", "ca_path"], *ca, &mut |pem| authorities.trust(pem));
        self.each(origin, ["untrusted_cert_file", "untrusted_cert_path"], *untrusted, &mut |pem| {
            authorities.know(pem)
        });
        self.each(origin, ["crl_file", "crl_path"], *crl, &mut |bytes| match revoked.add(bytes) {
            Some(1..) => Ok(()),
            Some(0) => Err("there is no list of revoked certificates in it"),
            None => Err("its list of revoked certificates cannot be read"),
        });
        if authorities.is_empty() && ca.iter().all(|path| path.is_empty()) {
            let message = "no authority is believed, so that no caller is ever verified";
            self.findings.warning(
                &origin.place,
                message,
                "name a ca_file or ca_path, or write load_system_certs=yes",
            );
        }
        let trust: Rc<dyn Authority> = Rc::new(Trust { authorities, revoked });
        self.trusts.insert(key, trust.clone());
        trust
    }
    /// Takes a file in, and all of a folder.
    fn each(
        &mut self,
        origin: &Origin,
        [file_option, folder_option]: [&str; 2],
        [file, folder]: [&str; 2],
        take: &mut dyn FnMut(&[u8]) -> Result<(), &'static str>,
    ) {
        let mut one = |path: &Path| read(path).and_then(|bytes| take(&bytes).map_err(str::to_owned));
        if !file.is_empty()
            && let Err(why) = one(Path::new(file))
        {
            let message = format!("{file_option}={file}: {why}");
            self.findings.error(origin.place_of(file_option), message, "name a readable file in PEM");
        }
        if folder.is_empty() {
            return;
        }
        let place = origin.place_of(folder_option);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(why) => {
                let message = format!("{folder_option}={folder}: {why}");
                return self.findings.error(place, message, "name a readable folder");
            }
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.is_file());
        files.sort();
        for path in files.iter().take(FILES_MAX) {
            // Folders of certificates have other files beside them.
            if let Err(why) = one(path) {
                let message = format!("{folder_option}: {} is left out: {why}", path.display());
                self.findings.note(place, message, "");
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = fs::File::open(path).map_err(|why| why.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err("it is too long".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::testing::Site;

    /// A key and a certificate of it, made once by OpenSSL.
    const KEY: &str = include_str!("stir/key.pem");
    const CERTIFICATE: &str = include_str!("stir/certificate.pem");
    const TRUNK: &str = "[trunk]\ntype=endpoint\nallow=ulaw\nstir_shaken_profile=p\n";
    const ATTESTATION: &str =
        "[attestation]\nprivate_key_file=KEY\npublic_cert_url=https://h/c.pem\nattest_level=B\n";

    /// What a text comes to, with the paths of the files for their names.
    fn settings(text: &str) -> (Settings, Vec<String>) {
        let site = Site::new(TRUNK);
        let [key, certificate] = [("key.pem", KEY), ("certificate.pem", CERTIFICATE)].map(|(name, text)| {
            site.write(name, text);
            site.path(name)
        });
        site.write("stir_shaken.conf", &text.replace("KEY", &key).replace("CERT", &certificate));
        let mut findings = Findings::new();
        let settings = stir_settings(&site.snapshot(), &mut findings);
        (settings, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn a_profile_signs_by_what_the_number_the_profile_and_the_file_say() {
        let numbers = "[18005551000]\ntype=tn\nattest_level=A\n[18005551001]\ntype=tn\nsend_mky=yes\n";
        let text = |profile: &str| format!("{ATTESTATION}{numbers}[p]\ntype=profile\n{profile}");
        let (settings, said) = settings(&text("endpoint_behavior=attest\nunknown_tn_attest_level=C\n"));
        assert!(said.is_empty(), "{said:?}");
        let profile = &settings.profiles["p"];
        let of = |number: &str| profile.signer(number).map(|signer| (signer.level, signer.send_mky));
        assert_eq!(of("+1 800 555 1000"), Some((Level::A, false)));
        assert_eq!(of("18005551001"), Some((Level::B, true)));
        assert_eq!((of("18005551002"), of("alice")), (Some((Level::C, false)), None));
        assert!(profile.verification.is_none());
        let signer = profile.signer("18005551000").unwrap();
        let signature = signer.key.sign(b"text").unwrap();
        let point = Certificate::read(CERTIFICATE.as_bytes()).unwrap().key.unwrap();
        assert!(es256::verifies(&point, b"text", &signature));
        for (name, profile) in [("off", ""), ("verifies", "endpoint_behavior=verify\nca_file=CERT\n")] {
            let (settings, said) = self::settings(&text(profile));
            assert!(
                said.is_empty() && settings.profiles["p"].signer("18005551000").is_none(),
                "{name}: {said:?}"
            );
        }
    }

    #[test]
    fn a_profile_verifies_by_its_own_rules_and_those_of_the_file() {
        let text = "[verification]\nca_file=CERT\nmax_iat_age=30\nx5u_permit=10.0.0.0/8\n\
                    [p]\ntype=profile\nendpoint_behavior=verify\nmax_iat_age=20\ncurl_timeout=5\n\
                    [q]\ntype=profile\nendpoint_behavior=on\nfailure_action=continue_return_reason\nx5u_acl=office\n";
        let (settings, said) = settings(text);
        assert!(said.is_empty(), "{said:?}");
        let of = |name: &str| settings.profiles[name].verification.clone().unwrap();
        let [p, q] = ["p", "q"].map(of);
        assert_eq!((p.max_iat_age, q.max_iat_age, p.fetching.within), (20, 30, Duration::from_secs(5)));
        assert_eq!(q.failure_action, FailureAction::ContinueReturnReason);
        let allows = |rules: &Verification, ip: &str| (rules.fetching.allows)(ip.parse().unwrap());
        // acl.conf lets 10.0.0.0/8 alone in.
        assert!(allows(&q, "10.1.2.3") && !allows(&q, "8.8.8.8"));
        assert!(allows(&p, "10.1.2.3") && allows(&p, "8.8.8.8"));
        let base = settings.verification.clone().unwrap();
        let certificate = Certificate::read(CERTIFICATE.as_bytes()).unwrap();
        assert_eq!(stir::is_usable(&certificate, &base, certificate.not_before + 10), Ok(()));
        assert_eq!(settings.certificates_max, 1000);
        let (bare, _) = self::settings("[p]\ntype=profile\nendpoint_behavior=verify\n");
        let bare = bare.profiles["p"].verification.clone().unwrap();
        assert!(allows(&bare, "8.8.8.8") && !allows(&bare, "10.1.2.3") && !allows(&bare, "127.0.0.1"));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let profile = "[p]\ntype=profile\nendpoint_behavior=on\nca_file=CERT\n";
        let number = "[18005551000]\ntype=tn\n";
        let with = |from: &str, to: &str| ATTESTATION.replace(from, to) + number + profile;
        for (name, text, expected) in [
            ("all is right", with("", ""), None),
            ("no key", with("private_key_file=KEY\n", ""), Some("there is no private_key_file=")),
            ("no URL", with("public_cert_url=https://h/c.pem\n", ""), Some("there is no public_cert_url=")),
            ("no level", with("attest_level=B\n", ""), Some("there is no attest_level=")),
            ("a URL of a file", with("https://h", "file:///h"), Some("is no URL with http:// or https://")),
            (
                "a key that is not there",
                with("KEY", "/nowhere"),
                Some("private_key_file=/nowhere: No such file"),
            ),
            ("a certificate for a key", with("KEY", "CERT"), Some("there is no private key in it")),
            ("no authority", profile.replace("ca_file=CERT", ""), Some("no authority is believed")),
            (
                "a file that is not there",
                profile.replace("CERT", "/nowhere"),
                Some("ca_file=/nowhere: No such file"),
            ),
            (
                "a key for a certificate",
                profile.replace("CERT", "KEY"),
                Some("there is no certificate in it"),
            ),
            (
                "a folder that is not there",
                format!("{profile}crl_path=/nowhere\n"),
                Some("crl_path=/nowhere"),
            ),
            ("no lists", format!("{profile}crl_file=CERT\n"), Some("no list of revoked certificates")),
            (
                "another profile",
                profile.replace("[p]", "[other]"),
                Some("which stir_shaken.conf does not have"),
            ),
            (
                "nothing is signed",
                with("[attestation]\n", "[attestation]\nglobal_disable=yes\n").replace("KEY", "/x"),
                None,
            ),
        ] {
            let (_, said) = settings(&text);
            match expected {
                Some(expected) => {
                    assert!(said.len() == 1 && said[0].contains(expected), "{name}: {said:?}");
                }
                None => assert!(said.is_empty(), "{name}: {said:?}"),
            }
        }
    }
}
