//! STIR/SHAKEN between two servers: one signs for its callers, the other believes it or not (RFC 8224, 8225, 8226, 8588).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use e2e::{Message, Phone, Server, Site, address};
use rcgen::{BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair};

/// A web server that has certificates, and counts who asks.
struct Web {
    at: SocketAddr,
    pages: Arc<Mutex<BTreeMap<String, String>>>,
    asked: Arc<AtomicUsize>,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind((address(), 0)).unwrap();
        let web = Self { at: listener.local_addr().unwrap(), pages: Arc::default(), asked: Arc::default() };
        let (pages, asked) = (web.pages.clone(), web.asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (mut head, mut byte) = (Vec::new(), [0; 1]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                    head.push(byte[0]);
                }
                asked.fetch_add(1, Ordering::SeqCst);
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let page = pages.lock().unwrap().get(&path).cloned();
                let (status, body) = page.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                // Who asks may have gone.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        web
    }
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }
    fn put(&self, path: &str, page: &str) {
        self.pages.lock().unwrap().insert(path.to_owned(), page.to_owned());
    }
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An authority, a carrier's certificate of it and one that nobody vouches for.
struct Certificates {
    authority: String,
    leaf: String,
    rogue: String,
    key: String,
    rogue_key: String,
}

impl Certificates {
    fn make() -> Self {
        let [ca_key, key, rogue_key] = [(); 3].map(|()| KeyPair::generate().unwrap());
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "authority of carriers");
        let mut leaf = CertificateParams::new(Vec::new()).unwrap();
        leaf.distinguished_name.push(DnType::CommonName, "SHAKEN 123A");
        // TNAuthList with the service provider 123A.
        let spc = vec![0x30, 0x08, 0xa0, 0x06, 0x16, 0x04, b'1', b'2', b'3', b'A'];
        leaf.custom_extensions.push(CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 26], spc));
        Self {
            authority: ca.self_signed(&ca_key).unwrap().pem(),
            rogue: leaf.self_signed(&rogue_key).unwrap().pem(),
            leaf: leaf.signed_by(&key, &Issuer::from_params(&ca, &ca_key)).unwrap().pem(),
            key: key.serialize_pem(),
            rogue_key: rogue_key.serialize_pem(),
        }
    }
}

/// An endpoint at a fixed contact that needs no password, recognised by its address.
fn trunk(name: &str, contact: SocketAddr, profile: &str) -> String {
    format!(
        "[{name}]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors={name}\n\
         stir_shaken_profile={profile}\n[{name}]\ntype=aor\ncontact=sip:{name}@{contact}\n\
         [{name}]\ntype=identify\nendpoint={name}\nmatch={}\n",
        contact.ip()
    )
}

/// The server that signs: `1000` and its like call from the number 1800555…; where they go is a contact.
fn signing_site(site: Site, web: &Web, certificates: &Certificates, contact: SocketAddr) -> Site {
    let site = site.phone("alice").add("pjsip.conf", &trunk("carrier", contact, "out")).dialplan(
        "[test]\nexten => _1XXX,1,Set(CALLERID(num)=+1 800 555 ${EXTEN})\n\
             same => n,Dial(PJSIP/12155551213@carrier,20)\n\
             exten => quiet,1,Set(CALLERID(num)=18005551000)\n\
             same => n,Dial(PJSIP/12155551213@carrier,20,b(quiet^s^1))\n\
             [quiet]\nexten => s,1,Set(STIR_SHAKEN_ATTESTATION(suppress)=yes)\n same => n,Return()\n",
    );
    let key = site.place.write("key.pem", &certificates.key);
    let rogue = site.place.write("rogue.pem", &certificates.rogue_key);
    let text = format!(
        "[attestation]\nprivate_key_file={}\npublic_cert_url={}\nattest_level=B\n\
         [18005551000]\ntype=tn\nattest_level=A\n\
         [18005551001]\ntype=tn\npublic_cert_url={}\n\
         [18005551002]\ntype=tn\npublic_cert_url={}\nprivate_key_file={}\n\
         [out]\ntype=profile\nendpoint_behavior=attest\n",
        key.display(),
        web.url("/leaf.pem"),
        web.url("/nothing.pem"),
        web.url("/rogue.pem"),
        rogue.display(),
    );
    site.add("stir_shaken.conf", &text)
}

/// The server that believes or not: an endpoint for each address, with the profile that it names.
fn verifying(name: &str, authority: &str, callers: &[(&str, IpAddr)]) -> Server {
    let mut site = Site::new(name).dialplan(
        "[test]\nexten => _X.,1,Set(DB(t/told)=${STIR_SHAKEN(count)} ${STIR_SHAKEN(0,verify_result)} \
         ${STIR_SHAKEN(0,attestation)} ${STIR_SHAKEN(0,identity)})\n same => n,Ringing()\n same => n,Answer()\n\
         same => n,Wait(20)\n",
    );
    let authority = site.place.write("authority.pem", authority);
    for (profile, ip) in callers {
        site = site.add("pjsip.conf", &trunk(profile, SocketAddr::new(*ip, 5060), profile));
    }
    let text = format!(
        "[verification]\nca_file={}\nrelax_x5u_port_scheme_restrictions=yes\nx5u_permit=127.0.0.0/8\n\
         [in]\ntype=profile\nendpoint_behavior=verify\n\
         [reject]\ntype=profile\nendpoint_behavior=on\nfailure_action=reject_request\n\
         [reason]\ntype=profile\nendpoint_behavior=verify\nfailure_action=continue_return_reason\n\
         [shut]\ntype=profile\nendpoint_behavior=verify\nfailure_action=reject_request\nx5u_deny=127.0.0.0/8\n",
        authority.display()
    );
    Server::start(site.add("stir_shaken.conf", &text))
}

#[test]
fn rfc8588_a_call_that_one_server_signs_is_verified_by_the_next_and_its_certificate_is_kept() {
    let (web, certificates) = (Web::start(), Certificates::make());
    web.put("/leaf.pem", &certificates.leaf);
    let ip = address();
    let two = verifying("stir-two", &certificates.authority, &[("in", ip)]);
    let site = Site::at("stir-one", SocketAddr::new(ip, 5060));
    let one = Server::start(signing_site(site, &web, &certificates, two.site.sip));
    let mut alice = Phone::new(one.site.sip, "alice");
    for _ in 0..2 {
        alice.must_call("1000");
        assert_eq!(two.database("t", "told"), "1 success A 18005551000");
        alice.hang_up();
        one.until_idle();
        two.until_idle();
        two.cli("database del t told");
    }
    assert_eq!(web.asked(), 1, "the certificate is kept");
    let kept = std::fs::read_dir(two.site.place.join("data/keys/stir_shaken/cache")).unwrap().count();
    assert_eq!(kept, 1, "on the disk, too");
    let file = two.site.place.write("leaf.pem", &certificates.leaf);
    let rogue = two.site.place.write("rogue.pem", &certificates.rogue);
    let verify =
        |file: &std::path::Path| two.cli(&format!("stir_shaken verify certificate_file {}", file.display()));
    assert!(verify(&file).contains("valid, of CN=SHAKEN 123A"), "{}", verify(&file));
    let refused = two.run(&format!("stir_shaken verify certificate_file {}", rogue.display()));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("cert_not_trusted"), "{refused:?}");
    let shown = one.cli("stir_shaken show eprofile out");
    assert!(shown.contains("endpoint_behavior") && shown.contains("/leaf.pem"), "{shown}");
    let shown = one.cli("stir_shaken show tns");
    assert!(shown.contains("18005551002") && shown.contains("3 objects found"), "{shown}");
}

/// What the server that signs has sent for a caller: Date and Identity.
fn obtained(alice: &mut Phone, carrier: &mut Phone, number: &str) -> (String, String) {
    alice.begin(number);
    let invite = carrier.ring();
    let said = (invite.header("Date").unwrap_or_default(), invite.header("Identity").unwrap_or_default());
    let said = (said.0.to_owned(), said.1.to_owned());
    carrier.refuse(&invite, 486, "Busy Here");
    alice.outcome();
    said
}

/// Status line and Reason of the first response that is none of 100, and of the last one.
fn heard(first: &Message, last: &Message) -> (String, Option<String>, String) {
    let line = |message: &Message| message.text().lines().next().unwrap_or_default().to_owned();
    (line(first), first.header("Reason").map(str::to_owned), line(last))
}

#[test]
fn rfc8224_6_2_2_callers_who_are_not_proved_are_refused_or_told_as_the_profile_says() {
    let (web, certificates) = (Web::start(), Certificates::make());
    web.put("/leaf.pem", &certificates.leaf);
    web.put("/rogue.pem", &certificates.rogue);
    let site = Site::new("stir-signs");
    let mut carrier = Phone::new(site.sip, "carrier");
    let one = Server::start(signing_site(site, &web, &certificates, carrier.local()));
    let mut alice = Phone::new(one.site.sip, "alice");
    let callers = ["in", "reject", "reason", "shut"].map(|profile| (profile, address()));
    let mut two = verifying("stir-judges", &certificates.authority, &callers);
    assert_eq!(obtained(&mut alice, &mut carrier, "quiet"), (String::new(), String::new()), "suppressed");
    let ok = "SIP/2.0 200 OK";
    let ringing = "SIP/2.0 180 Ringing";
    let use_identity = "SIP; cause=428; text=\"Use Identity Header\"";
    for (name, profile, number, change, first, reason, told) in [
        ("proved", "reject", "1000", "", ringing, None, "1 success A 18005551000"),
        ("none, and on", "in", "1000", "none", ringing, None, "1 missing_identity_hdr  18005551000"),
        (
            "none, and told",
            "reason",
            "1000",
            "none",
            ringing,
            Some(use_identity),
            "1 missing_identity_hdr  18005551000",
        ),
        ("none", "reject", "1000", "none", "SIP/2.0 428 Use Identity Header", None, ""),
        ("an old Date", "reject", "1000", "old", "SIP/2.0 403 Stale Date", None, ""),
        ("no certificate", "reject", "1001", "", "SIP/2.0 436 Bad Identity Info", None, ""),
        ("an address that is not asked", "shut", "1002", "", "SIP/2.0 436 Bad Identity Info", None, ""),
        ("nobody vouches", "reject", "1002", "", "SIP/2.0 437 Unsupported Credential", None, ""),
        ("forged", "reject", "1000", "forged", "SIP/2.0 438 Invalid Identity Header", None, ""),
        ("another caller", "reject", "1000", "caller", "SIP/2.0 438 Invalid Identity Header", None, ""),
    ] {
        let (date, identity) = obtained(&mut alice, &mut carrier, number);
        assert!(identity.ends_with(">;alg=ES256;ppt=shaken"), "{name}: {identity}");
        let headers = match change {
            "none" => String::new(),
            "old" => format!("Date: Sat, 13 Nov 2010 23:29:00 GMT\r\nIdentity: {identity}\r\n"),
            // The signature is that of another token.
            "forged" => {
                let (token, rest) = identity.split_once(';').unwrap();
                let (signed, _) = token.rsplit_once('.').unwrap();
                let (_, other) = obtained(&mut alice, &mut carrier, number);
                let (_, signature) = other.split_once(';').unwrap().0.rsplit_once('.').unwrap();
                format!("Date: {date}\r\nIdentity: {signed}.{signature};{rest}\r\n")
            }
            _ => format!("Date: {date}\r\nIdentity: {identity}\r\n"),
        };
        let ip = callers.iter().find(|(of, _)| *of == profile).unwrap().1;
        let caller = if change == "caller" { "18005550000".to_owned() } else { format!("1800555{number}") };
        let mut phone = Phone::at(ip, two.site.sip, &caller);
        let asked = web.asked();
        phone.begin_with("100", &headers);
        let began = phone.progress();
        let last = if began.status() < Some(200) { phone.outcome() } else { began.clone() };
        let expected_last = if told.is_empty() { first } else { ok };
        assert_eq!(
            heard(&began, &last),
            (first.to_owned(), reason.map(str::to_owned), expected_last.to_owned()),
            "{name}"
        );
        if told.is_empty() {
            assert_eq!(two.channels(), 0, "{name}");
        } else {
            assert_eq!(last.header("Reason"), None, "{name}: told once");
            assert_eq!(two.database("t", "told"), told, "{name}");
            phone.hang_up();
            two.cli("database del t told");
        }
        if profile == "shut" {
            assert_eq!(web.asked(), asked, "{name}: nobody was asked");
        }
        two.until_idle();
    }
    two.assert_healthy();
}
