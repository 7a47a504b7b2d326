//! `stir_shaken.conf`: which calls are signed, by which keys, and whose signatures are believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use conf::{File, Findings, Section, Variable};

use super::acl::{Access, Acl, NamedAcls};
use super::kind::{Int, Names, Rules, Seconds, Text, YesNo, choice};
use super::{Object as _, Row, options, read_object, word_of};

/// Longest that a signature, a Date or a certificate is good for, seconds: a day.
const AGE_MAX: u32 = 86_400;
/// Longest that a certificate may take to come, seconds: a caller hears nothing meanwhile.
const FETCH_MAX: u32 = 30;
/// Most certificates that are kept: each has some thousand bytes.
const CACHE_MAX: u32 = 100_000;

choice! {
    /// `attest_level=`: how sure we are of the caller (RFC 8588 §4).
    AttestLevel {
        NotSet | "not_set" | "" "None: nothing is signed.";
        A | "A" "The caller is a customer and may use the number.";
        B | "B" "The caller is a customer.";
        C | "C" "The call came in from elsewhere.";
    }
}
choice! {
    /// `failure_action=`: what becomes of a call whose caller is not proved.
    StirFailure {
        Continue | "continue" "It goes on.";
        RejectRequest | "reject_request" "It is refused.";
        ContinueReturnReason | "continue_return_reason" "It goes on, and the response says why.";
    }
}
choice! {
    /// `endpoint_behavior=`.
    EndpointBehavior {
        Off | "off" "Nothing.";
        Attest | "attest" "Calls to it are signed.";
        Verify | "verify" "Calls of it are verified.";
        On | "on" "Both.";
    }
}

options! {
    /// `[attestation]`: how calls that go out are signed, unless a profile or a number says otherwise.
    Attestation, "stir_shaken.conf", "attestation", IsIgnored;
    global_disable: YesNo = "no", "Sign nothing.";
    private_key_file: Text = "", "Private key in PEM, of the curve P-256.";
    public_cert_url: Text = "", "Where its certificate lies: http:// or https://.";
    attest_level: AttestLevel = "not_set", "How sure we are of callers.";
    unknown_tn_attest_level: AttestLevel = "not_set", "The same of callers who have no section; not_set: their calls are not signed.";
    check_tn_cert_public_url: YesNo = "no", "Fetch the certificates of all numbers when the file is read, and sign nothing for one that cannot be used.";
    send_mky: YesNo = "no", "Sign the fingerprints of DTLS, where the description has some.";
    @recognised {}
}
options! {
    /// `type=tn`: a number of ours; what is not written comes from the profile, then from `[attestation]`.
    TelephoneNumber, "stir_shaken.conf", "tn", IsIgnored;
    private_key_file: Text = "", "Private key in PEM, of the curve P-256.";
    public_cert_url: Text = "", "Where its certificate lies: http:// or https://.";
    attest_level: AttestLevel = "not_set", "How sure we are of this caller.";
    check_tn_cert_public_url: YesNo = "no", "Fetch the certificate when the file is read, and sign nothing when it cannot be used.";
    send_mky: YesNo = "no", "Sign the fingerprints of DTLS, where the description has some.";
    @recognised {}
}

/// A table of those options that a profile shares with `[verification]`.
macro_rules! verifying {
    ($(#[$meta:meta])* $name:ident, $section:literal; $($first:tt)*) => {
        options! {
            $(#[$meta])*
            $name, "stir_shaken.conf", $section, IsIgnored;
            $($first)*
            load_system_certs: YesNo = "no", "Believe the authorities that the system trusts.";
            ca_file: Text = "", "File with certificates of authorities that are believed.";
            ca_path: Text = "", "Folder of such files.";
            crl_file: Text = "", "File with lists of certificates that were revoked.";
            crl_path: Text = "", "Folder of such files.";
            untrusted_cert_file: Text = "", "File with certificates between those of carriers and those of authorities.";
            untrusted_cert_path: Text = "", "Folder of such files.";
            cert_cache_dir: Text = "", "Folder of certificates that were fetched; empty: keys/stir_shaken/cache below astdatadir.";
            curl_timeout: Seconds<1, FETCH_MAX> = "2", "Seconds that a certificate may take to come.";
            max_cache_entry_age: Seconds<0, AGE_MAX> = "60", "Seconds that it is kept at most.";
            max_cache_size: Int<1, CACHE_MAX> = "1000", "Certificates that are kept; what the section verification says holds.";
            max_iat_age: Seconds<0, AGE_MAX> = "15", "Seconds that a signature is good for.";
            max_date_header_age: Seconds<0, AGE_MAX> = "15", "Seconds that a Date is.";
            failure_action: StirFailure = "continue", "What becomes of a call whose caller is not proved.";
            use_rfc9410_responses: YesNo = "no", "Reasons are of the protocol STIR instead of SIP.";
            ignore_sip_date_header: YesNo = "no", "A missing or bad Date is no failure.";
            relax_x5u_port_scheme_restrictions: YesNo = "no", "Certificates may lie at any port, and at http://.";
            relax_x5u_path_restrictions: YesNo = "no", "Their URLs may have a user, a query and a fragment.";
            x5u_acl: Names = "", "Lists of acl.conf that say from which addresses certificates may be fetched.";
            x5u_permit also "x5u_deny": Rules = "", "Such addresses; without any list all of the internet, and none of a private network.";
            @recognised {}
            resolved {
                /// Own rules with the named lists; `None`: there are none, until [`StirShaken::resolve_acls`] ran.
                x5u_access: Option<Access>;
            }
        }
    };
}

verifying! {
    /// `[verification]`: how calls that come in are verified, unless a profile says otherwise.
    StirVerification, "verification";
    global_disable: YesNo = "no", "Verify nothing.";
}
verifying! {
    /// `type=profile`: what `stir_shaken_profile=` of endpoints names. What is not written comes from `[attestation]` and
    /// `[verification]`.
    StirProfile, "stir profile";
    endpoint_behavior: EndpointBehavior = "off", "What happens in calls of its endpoints.";
    private_key_file: Text = "", "Private key in PEM, of the curve P-256.";
    public_cert_url: Text = "", "Where its certificate lies: http:// or https://.";
    attest_level: AttestLevel = "not_set", "How sure we are of callers.";
    unknown_tn_attest_level: AttestLevel = "not_set", "The same of callers who have no section; not_set: their calls are not signed.";
    check_tn_cert_public_url: YesNo = "no", "Fetch the certificates of all numbers when the file is read, and sign nothing for one that cannot be used.";
    send_mky: YesNo = "no", "Sign the fingerprints of DTLS, where the description has some.";
}

/// A profile, and what it comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOf {
    /// As it is written.
    pub written: StirProfile,
    /// With what it inherits.
    pub effective: StirProfile,
    /// The numbers, by digits, with what they inherit from it.
    pub numbers: BTreeMap<String, TelephoneNumber>,
}

/// The file as a whole. Without it nothing is signed or verified.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StirShaken {
    /// `[attestation]`.
    pub attestation: Attestation,
    /// `[verification]`.
    pub verification: StirVerification,
    /// Numbers, by digits, as they are written.
    pub numbers: BTreeMap<String, TelephoneNumber>,
    /// The same with what they inherit from `[attestation]`.
    pub effective_numbers: BTreeMap<String, TelephoneNumber>,
    /// Profiles by name.
    pub profiles: BTreeMap<String, ProfileOf>,
}

impl StirShaken {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut read = Self::default();
        let (mut numbers, mut profiles) = (Vec::new(), Vec::new());
        let [mut attestation, mut verification] = [None::<&Section>, None];
        for section in file.objects() {
            let name = section.name.to_ascii_lowercase();
            let kind = section.value("type").unwrap_or(&name).to_ascii_lowercase();
            match kind.as_str() {
                "attestation" => attestation = Some(once(attestation, section, findings)),
                "verification" => verification = Some(once(verification, section, findings)),
                "tn" => numbers.push(section),
                "profile" => profiles.push(section),
                _ => {
                    let message = format!("[{}] has no type of this file; it is ignored", section.name);
                    let remedy = "write type=tn or type=profile, or name it attestation or verification";
                    findings.warning(&section.place, message, remedy);
                }
            }
        }
        if let Some(object) = attestation.and_then(|section| object(section, findings)) {
            read.attestation = object;
        }
        if let Some(object) = verification.and_then(|section| object(section, findings)) {
            read.verification = object;
        }
        numbers.retain(|section| is_number(section, findings));
        let mut silent = Findings::new();
        for section in &numbers {
            let number = section.name.to_string();
            read.numbers.extend(object(section, findings).map(|object| (number.clone(), object)));
            let whole = inherit(section, &[attestation], &TelephoneNumber::names());
            read.effective_numbers.extend(object(&whole, &mut silent).map(|object| (number, object)));
        }
        for section in profiles {
            let Some(written) = object::<StirProfile>(section, findings) else { continue };
            let whole = inherit(section, &[attestation, verification], &StirProfile::names());
            let Some(effective) = object(&whole, &mut silent) else { continue };
            let of = |number: &&Section| {
                let whole = inherit(number, &[Some(&whole)], &TelephoneNumber::names());
                Some((number.name.to_string(), object(&whole, &mut Findings::new())?))
            };
            let numbers = numbers.iter().filter_map(of).collect();
            read.profiles.insert(section.name.to_string(), ProfileOf { written, effective, numbers });
        }
        read
    }
    /// Takes the lists of acl.conf in.
    pub fn resolve_acls(&mut self, named: &NamedAcls, findings: &mut Findings) {
        macro_rules! resolve {
            ($of:expr, $findings:expr) => {
                if !$of.x5u_permit.is_empty() || !$of.x5u_acl.is_empty() {
                    let place = $of.origin.place_of("x5u_acl").clone();
                    $of.x5u_access = Some(named.access(&$of.x5u_permit, &$of.x5u_acl, &place, $findings));
                }
            };
        }
        resolve!(self.verification, findings);
        for profile in self.profiles.values_mut() {
            resolve!(profile.written, findings);
            resolve!(profile.effective, &mut Findings::new());
        }
    }
    /// Rows of the manual.
    pub fn rows() -> Vec<Row> {
        [Attestation::rows(), TelephoneNumber::rows(), StirVerification::rows(), StirProfile::rows()].concat()
    }
}

/// Names of options and what they are, as the console shows them.
pub type Shown = Vec<(&'static str, String)>;

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

macro_rules! attesting_shown {
    ($of:expr) => {
        [
            ("private_key_file", $of.private_key_file.clone()),
            ("public_cert_url", $of.public_cert_url.clone()),
            ("attest_level", word_of($of.attest_level).to_owned()),
            ("check_tn_cert_public_url", yes($of.check_tn_cert_public_url)),
            ("send_mky", yes($of.send_mky)),
        ]
    };
}
macro_rules! verifying_shown {
    ($of:expr) => {
        [
            ("load_system_certs", yes($of.load_system_certs)),
            ("ca_file", $of.ca_file.clone()),
            ("ca_path", $of.ca_path.clone()),
            ("crl_file", $of.crl_file.clone()),
            ("crl_path", $of.crl_path.clone()),
            ("untrusted_cert_file", $of.untrusted_cert_file.clone()),
            ("untrusted_cert_path", $of.untrusted_cert_path.clone()),
            ("cert_cache_dir", $of.cert_cache_dir.clone()),
            ("curl_timeout", $of.curl_timeout.as_secs().to_string()),
            ("max_cache_entry_age", $of.max_cache_entry_age.as_secs().to_string()),
            ("max_cache_size", $of.max_cache_size.to_string()),
            ("max_iat_age", $of.max_iat_age.as_secs().to_string()),
            ("max_date_header_age", $of.max_date_header_age.as_secs().to_string()),
            ("failure_action", word_of($of.failure_action).to_owned()),
            ("use_rfc9410_responses", yes($of.use_rfc9410_responses)),
            ("ignore_sip_date_header", yes($of.ignore_sip_date_header)),
            ("relax_x5u_port_scheme_restrictions", yes($of.relax_x5u_port_scheme_restrictions)),
            ("relax_x5u_path_restrictions", yes($of.relax_x5u_path_restrictions)),
            ("x5u_acl", $of.x5u_acl.join(",")),
            ("x5u_permit", rules(&$of.x5u_permit, true)),
            ("x5u_deny", rules(&$of.x5u_permit, false)),
        ]
    };
}

fn rules(acl: &Acl, permit: bool) -> String {
    let of = acl.rules().iter().filter(|(permits, _)| *permits == permit);
    of.map(|(_, net)| net.to_string()).collect::<Vec<_>>().join(",")
}

impl Attestation {
    /// Its options.
    pub fn shown(&self) -> Shown {
        let first = [("global_disable", yes(self.global_disable))];
        let last = [("unknown_tn_attest_level", word_of(self.unknown_tn_attest_level).to_owned())];
        first.into_iter().chain(attesting_shown!(self)).chain(last).collect()
    }
}
impl TelephoneNumber {
    /// Its options.
    pub fn shown(&self) -> Shown {
        attesting_shown!(self).into()
    }
}
impl StirVerification {
    /// Its options.
    pub fn shown(&self) -> Shown {
        let first = [("global_disable", yes(self.global_disable))];
        first.into_iter().chain(verifying_shown!(self)).collect()
    }
}
impl StirProfile {
    /// Its options.
    pub fn shown(&self) -> Shown {
        let first = [("endpoint_behavior", word_of(self.endpoint_behavior).to_owned())];
        let more = [("unknown_tn_attest_level", word_of(self.unknown_tn_attest_level).to_owned())];
        let attesting = first.into_iter().chain(attesting_shown!(self)).chain(more);
        attesting.chain(verifying_shown!(self)).collect()
    }
}

fn object<T: super::Object>(section: &Section, findings: &mut Findings) -> Option<T> {
    read_object(section, findings, &mut |_, variable, _| variable.is("type"))
}

/// Of two sections of a kind that there is once, the first holds.
fn once<'a>(known: Option<&'a Section>, section: &'a Section, findings: &mut Findings) -> &'a Section {
    let Some(known) = known else { return section };
    let message = format!("there is another section of this kind above; [{}] is ignored", section.name);
    findings.warning(&section.place, message, "write all of it in one section");
    known
}

fn is_number(section: &Section, findings: &mut Findings) -> bool {
    let name = &section.name;
    let is_number =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit() || b"*#".contains(&byte));
    if !is_number {
        let message = format!("[{name}] is no number; it is ignored");
        findings.warning(&section.place, message, "write digits only, such as [18005551000]");
    }
    is_number
}

/// A section with the lines of others before its own, as far as they are options of its kind. Rules of addresses do not add
/// up: who writes some has no others.
fn inherit(section: &Section, from: &[Option<&Section>], known: &[&'static str]) -> Section {
    const RULES: [&str; 3] = ["x5u_acl", "x5u_permit", "x5u_deny"];
    let is_rule = |line: &Variable| RULES.iter().any(|name| line.is(name));
    let has_rules = section.variables.iter().any(is_rule);
    let above = from.iter().flatten().flat_map(|section| &section.variables);
    let above = above.filter(|line| known.iter().any(|name| line.is(name)) && !(has_rules && is_rule(line)));
    let variables: Vec<Variable> = above.chain(&section.variables).cloned().collect();
    Section { name: Arc::clone(&section.name), variables, ..section.clone() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read_text(text: &str) -> (StirShaken, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("stir_shaken.conf", text);
        let file = conf::load(&source, "stir_shaken.conf", conf::Options::default(), &mut findings).unwrap();
        let read = StirShaken::read(&file, &mut findings);
        (read, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn numbers_inherit_from_the_profile_and_profiles_from_the_whole_file() {
        let (stir, said) = read_text(
            "[attestation]\nprivate_key_file=/k\npublic_cert_url=https://h/c\nattest_level=B\nunknown_tn_attest_level=c\n\
             [18005551000]\ntype=tn\nattest_level=A\n[18005551001]\ntype=tn\npublic_cert_url=https://h/other\n\
             [verification]\nca_file=/ca\nmax_iat_age=30\nfailure_action=reject_request\nx5u_deny=0.0.0.0/0\n\
             [trunk]\ntype=profile\nendpoint_behavior=on\nattest_level=C\nmax_iat_age=20\nx5u_permit=10.0.0.0/8\n\
             [quiet]\ntype=profile\n",
        );
        assert!(said.is_empty(), "{said:?}");
        let [first, second] = ["18005551000", "18005551001"].map(|number| &stir.effective_numbers[number]);
        assert_eq!((&*first.private_key_file, first.attest_level), ("/k", AttestLevel::A));
        assert_eq!((&*second.public_cert_url, second.attest_level), ("https://h/other", AttestLevel::B));
        assert_eq!(stir.numbers["18005551001"].attest_level, AttestLevel::NotSet);
        let trunk = &stir.profiles["trunk"];
        assert_eq!(trunk.effective.endpoint_behavior, EndpointBehavior::On);
        assert_eq!(trunk.effective.failure_action, StirFailure::RejectRequest);
        assert_eq!(trunk.written.failure_action, StirFailure::Continue);
        assert_eq!(trunk.effective.max_iat_age, Duration::from_secs(20));
        assert_eq!(trunk.effective.x5u_permit.rules().len(), 1, "rules of a profile stand alone");
        assert_eq!(trunk.effective.unknown_tn_attest_level, AttestLevel::C);
        assert_eq!(trunk.numbers["18005551000"].attest_level, AttestLevel::A);
        assert_eq!(trunk.numbers["18005551001"].attest_level, AttestLevel::C);
        let quiet = &stir.profiles["quiet"].effective;
        assert_eq!((quiet.endpoint_behavior, quiet.x5u_permit.rules().len()), (EndpointBehavior::Off, 1));
    }

    #[test]
    fn without_a_line_the_defaults_are_those_of_the_field() {
        let (stir, _) = read_text("[p]\ntype=profile\n");
        let of = &stir.profiles["p"].effective;
        let seconds = Duration::from_secs;
        assert_eq!((of.curl_timeout, of.max_cache_entry_age), (seconds(2), seconds(60)));
        assert_eq!(
            (of.max_cache_size, of.max_iat_age, of.max_date_header_age),
            (1000, seconds(15), seconds(15))
        );
        assert_eq!((of.failure_action, of.endpoint_behavior), (StirFailure::Continue, EndpointBehavior::Off));
        assert!(
            !of.load_system_certs && !of.use_rfc9410_responses && !of.ignore_sip_date_header && !of.send_mky
        );
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (text, expected) in [
            ("[a]\nx=1\n", "has no type of this file"),
            ("[+1800]\ntype=tn\n", "is no number"),
            ("[attestation]\nattest_level=D\n", "attest_level=D"),
            ("[attestation]\nca_file=/x\n", "no option `ca_file`"),
            ("[verification]\nx5u_deny=nowhere\n", "no network"),
            ("[p]\ntype=profile\nglobal_disable=yes\n", "no option `global_disable`"),
            ("[attestation]\n[more]\ntype=attestation\n", "another section of this kind"),
        ] {
            let (_, said) = read_text(text);
            assert!(said.iter().any(|line| line.contains(expected)), "{text}: {said:?}");
        }
    }
}
