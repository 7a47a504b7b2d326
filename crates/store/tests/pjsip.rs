//! `pjsip.conf`: what objects come out, and what is said about the rest.

use base::{Coded, FormatId};
use conf::{Findings, Level, Memory, Options, load};
use std::time::Duration;
use store::config::acl::NamedAcls;
use store::config::pjsip::{
    AuthType, DigestAlgorithm, DtmfChoice, IdentifyBy, Pjsip, Protocol, Rel100, SourceMatch,
};

fn read(text: &str) -> (Pjsip, Findings) {
    let source = Memory::new().with("pjsip.conf", text);
    let mut findings = Findings::new();
    let file = load(&source, "pjsip.conf", Options::default(), &mut findings).unwrap();
    let mut pjsip = Pjsip::read(&file, &mut findings);
    pjsip.resolve_formats(Coded::default(), &mut findings);
    (pjsip, findings)
}

const SITE: &str = "
[global]
type=global
user_agent=
max_forwards=50
endpoint_identifier_order=auth_username,ip

[sys]
type=system
timer_t1=100
timer_b=6400

[udp]
type=transport
protocol=udp
bind=0.0.0.0
local_net=192.168.0.0/16
local_net=10.0.0.0/255.0.0.0
external_media_address=203.0.113.5
tos=cs3

[tcp6]
type = transport
protocol = tcp
bind = [::1]:5070

[phone](!)
type=endpoint
context=internal
disallow=all
allow=alaw,ulaw:30,g729,silk8
rtp_symmetric=yes
force_rport=yes
rewrite_contact=yes
dtmf_mode=rfc4733
direct_media=no
set_var=A=1

[login](!)
type=auth
auth_type=userpass

[6001](phone)
auth=6001
aors=6001
callerid=\"Alice\" <6001>
set_var=B=x=y
100rel=no

[6001](login)
username=6001
password=correct-horse-battery

[6001]
type=aor
max_contacts=2
remove_existing=yes
qualify_frequency=30
qualify_timeout=1.5
contact=sip:a@192.0.2.1
contact=sip:b@192.0.2.2,sip:c@192.0.2.3

[trunk](phone)
aors=trunk
identify_by=ip
allow=!all,g722

[trunk]
type=aor
contact=sip:192.0.2.50

[trunk]
type=identify
endpoint=trunk
match=192.0.2.0/24,sip.example.com
match=2001:db8::1
";

#[test]
fn a_site_with_templates_becomes_objects() {
    let (pjsip, findings) = read(SITE);
    assert!(!findings.has_errors(), "{findings}");
    assert_eq!(pjsip.global.user_agent, "");
    assert_eq!(pjsip.global.max_forwards, 50);
    assert_eq!(pjsip.global.endpoint_identifier_order, ["auth_username", "ip"]);
    assert_eq!(pjsip.system.timer_t1, Duration::from_millis(100));

    let udp = &pjsip.transports["udp"];
    assert_eq!(udp.address().unwrap().to_string(), "0.0.0.0:5060");
    assert_eq!(udp.local_net.len(), 2, "lines add up");
    assert_eq!(udp.tos, 0x60);
    let tcp = &pjsip.transports["tcp6"];
    assert_eq!((tcp.protocol, tcp.address().unwrap().to_string()), (Protocol::Tcp, "[::1]:5070".into()));

    let alice = &pjsip.endpoints["6001"];
    assert_eq!(
        alice.allow.formats.iter().collect::<Vec<_>>(),
        [FormatId::ALAW, FormatId::ULAW, FormatId::G729]
    );
    assert_eq!(alice.allow.packet_ms(FormatId::ULAW), Some(30));
    assert_eq!(alice.allow.missing, ["silk8"]);
    assert_eq!(alice.set_var, [("A".into(), "1".into()), ("B".into(), "x=y".into())]);
    assert_eq!((alice.dtmf_mode, alice.rel100), (DtmfChoice::Rfc4733, Rel100::No));
    assert!(alice.rtp_symmetric && alice.rewrite_contact && !alice.direct_media);
    assert_eq!(alice.origin.place_of("callerid").to_string(), "pjsip.conf:46");
    assert_eq!(alice.identify_by, [IdentifyBy::Username, IdentifyBy::Ip], "the default");

    let aor = &pjsip.aors["6001"];
    assert_eq!((aor.max_contacts, aor.remove_existing), (2, true));
    assert_eq!(aor.contact, ["sip:a@192.0.2.1", "sip:b@192.0.2.2", "sip:c@192.0.2.3"]);
    assert_eq!(aor.qualify_timeout, Duration::from_millis(1500));
    assert_eq!(aor.default_expiration, Duration::from_secs(3600), "the default");

    let auth = &pjsip.auths["6001"];
    assert_eq!((auth.auth_type, auth.password.expose()), (AuthType::UserPass, "correct-horse-battery"));
    assert!(!format!("{pjsip:?}").contains("correct-horse"), "a secret is never printed");

    let trunk = &pjsip.endpoints["trunk"];
    assert_eq!(
        trunk.allow.formats.iter().collect::<Vec<_>>(),
        [FormatId::G722],
        "!all empties the template's list"
    );
    assert_eq!(pjsip.identifies[0].match_source.len(), 3);
    assert_eq!(pjsip.identifies[0].match_source[1], SourceMatch::Host("sip.example.com".into()));
}

#[test]
fn a_missing_codec_is_told() {
    let (_, findings) = read(SITE);
    let told = |text: &str| findings.iter().filter(|finding| finding.message.contains(text)).count();
    assert_eq!(told("'trunk' has no auth"), 0, "found by its address only: {findings}");
    assert!(told("silk8 is not built in") >= 1, "{findings}");
    assert!(told("g729 can only be passed through") >= 1, "{findings}");
}

/// An endpoint that is fine, for rows that add one line to it.
const FINE: &str = "[t]\ntype=transport\nbind=0.0.0.0\n[a]\ntype=aor\nmax_contacts=1\n[a]\ntype=auth\nusername=a\npassword=long-enough-secret\n[a]\ntype=endpoint\naors=a\nauth=a\nallow=ulaw\n";

#[test]
fn the_fine_endpoint_of_the_rows_draws_no_remark() {
    let (pjsip, findings) = read(FINE);
    assert!(findings.is_empty(), "{findings}");
    assert_eq!(pjsip.endpoints.len(), 1);
}

#[test]
fn what_asterisk_rejects_skips_the_object_and_names_line_and_remedy() {
    for (name, line, message, remedy) in [
        ("an unknown option", "alow=alaw", "no option `alow`", "did you mean `allow`?"),
        ("a bad number", "device_state_busy_at=many", "not a whole number", "correct the number"),
        ("a word that is none of the choices", "dtmf_mode=sometimes", "dtmf_mode=sometimes", "rfc4733"),
        ("a format nobody knows", "allow=ulow", "format `ulow`, which does not exist", "core show codecs"),
        (
            "a network that is none",
            "permit=10.0.0.0/99",
            "`10.0.0.0/99`, which is no network",
            "192.0.2.0/24",
        ),
        ("a variable without value", "set_var=A", "no second `=`", "set_var=NAME=value"),
        ("media encrypted by DTLS", "media_encryption=dtls", "not built in", "media_encryption=sdes"),
    ] {
        let (pjsip, findings) = read(&format!("{FINE}{line}\n"));
        assert!(pjsip.endpoints.is_empty(), "{name}");
        assert_eq!(pjsip.aors.len(), 1, "{name}: the others stay");
        let error = findings.iter().find(|f| f.level == Level::Error).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(error.place.to_string(), "pjsip.conf:16", "{name}");
        assert!(error.message.contains(message), "{name}: {}", error.message);
        assert!(error.message.contains("skipped"), "{name}: {}", error.message);
        assert!(error.remedy.contains(remedy), "{name}: {}", error.remedy);
    }
}

#[test]
fn what_is_not_supported_yet_keeps_the_object_and_says_what_happens() {
    for (name, line, expected) in [
        ("an option", "webrtc=yes", Some("known to Asterisk and not supported yet: browsers cannot call")),
        ("an option at its default", "webrtc=no", None),
        ("a default in other words", "webrtc=off", None),
        ("a default that is a word", "rtp_engine=asterisk", None),
        ("an option without meaning", "rtp_engine=other", Some("has no meaning here")),
        ("a note of the administrator", "@owner=me", None),
        (
            "a boolean that is neither",
            "rtp_symmetric=maybe",
            Some("neither true nor false; the default holds"),
        ),
        (
            "optimistic encryption",
            "media_encryption=dtls\nmedia_encryption_optimistic=yes",
            Some("plain RTP is used"),
        ),
    ] {
        let (pjsip, findings) = read(&format!("{FINE}{line}\n"));
        assert_eq!(pjsip.endpoints.len(), 1, "{name}: {findings}");
        assert_eq!(findings.len(), usize::from(expected.is_some()), "{name}: {findings}");
        if let (Some(expected), Some(finding)) = (expected, findings.iter().next()) {
            assert!(finding.message.contains(expected), "{name}: {}", finding.message);
            assert_eq!(finding.place.to_string(), "pjsip.conf:16", "{name}");
        }
    }
}

#[test]
fn what_is_left_out_of_pjsip_conf_is_named_by_its_option_or_type() {
    let dtls = "DTLS is not built in";
    for (line, expected) in [
        ("webrtc=yes", "browsers cannot call; ICE and DTLS are not built in"),
        ("dtls_auto_generate_cert=yes", dtls),
        ("dtls_ca_file=/etc/ca.pem", dtls),
        ("dtls_ca_path=/etc/ca", dtls),
        ("dtls_cert_file=/etc/own.pem", dtls),
        ("dtls_cipher=ALL", dtls),
        ("dtls_private_key=/etc/own.key", dtls),
        ("dtls_rekey=300", dtls),
        ("dtls_verify=fingerprint", dtls),
        ("ice_support=yes", "ICE is not built in"),
        ("geoloc_incoming_call_profile=<prefer_config>", "locations are not read"),
        ("geoloc_outgoing_call_profile=<prefer_config>", "locations are not sent"),
    ] {
        let option = line.split('=').next().unwrap();
        let (pjsip, findings) = read(&format!("{FINE}{line}\n"));
        assert_eq!(pjsip.endpoints.len(), 1, "{line}: {findings}");
        let [finding] = findings.iter().collect::<Vec<_>>()[..] else { panic!("{line}: {findings}") };
        assert_eq!(finding.level, Level::Warning, "{line}");
        assert!(finding.message.starts_with(option), "{line}: {}", finding.message);
        assert!(finding.message.contains(expected), "{line}: {}", finding.message);
        assert_eq!(finding.place.to_string(), "pjsip.conf:16", "{line}");
    }
    // Which end begins and how keys are proved is the same as nothing said, as long as there is no DTLS.
    for line in ["dtls_setup=actpass", "dtls_fingerprint=SHA-256"] {
        assert_eq!(read(&format!("{FINE}{line}\n")).1.len(), 0, "{line}");
    }
    let (_, findings) = read(&format!("{FINE}[snom]\ntype=phoneprov\n"));
    let said = findings.to_string();
    assert!(said.contains("phoneprov") && said.contains("phones are not provisioned"), "{said}");
}

#[test]
fn registrations_are_read_and_say_what_they_miss() {
    let head = "[p]\ntype=registration\nclient_uri=sip:me@example.com\n";
    let (pjsip, findings) = read(&format!("{head}server_uri=sip:example.com\nretry_interval=0\n"));
    let registration = &pjsip.registrations["p"];
    assert_eq!((registration.contact_user.as_str(), registration.expiration.as_secs()), ("s", 3600));
    assert!(registration.retry_interval.is_zero() && registration.auth_rejection_permanent);
    assert!(!findings.to_string().contains("registration"), "{findings}");
    for (name, more, kept, message) in [
        ("no registrar", "", false, "no SIP URI in server_uri"),
        ("a URI that would add a header", "server_uri=sip:a b\n", false, "no SIP URI in server_uri"),
        ("an auth that is not there", "server_uri=sip:h\noutbound_auth=x\n", true, "names the auth 'x'"),
        ("a line without endpoint", "server_uri=sip:h\nline=yes\n", true, "line=yes and no endpoint"),
        ("an endpoint that is not there", "server_uri=sip:h\nendpoint=x\n", true, "names the endpoint 'x'"),
        ("a transport that is not there", "server_uri=sip:h\ntransport=x\n", true, "names the transport 'x'"),
    ] {
        let (pjsip, findings) = read(&format!("{head}{more}"));
        assert_eq!(pjsip.registrations.contains_key("p"), kept, "{name}");
        assert!(findings.to_string().contains(message), "{name}: {findings}");
    }
}

#[test]
fn publications_are_read_and_say_what_they_miss() {
    let head = "[p]\ntype=outbound-publish\nserver_uri=sip:esc.example.com\n";
    let hints = "event=dialog\n@body=application/dialog-info+xml\n";
    let (pjsip, findings) = read(&format!("{head}{hints}multi_user=yes\n@context=^phones\n"));
    let publish = &pjsip.publishes["p"];
    assert_eq!((publish.expiration.as_secs(), publish.max_auth_attempts), (3600, 5));
    assert_eq!((publish.context.as_str(), publish.exten.as_str()), ("^phones", ""));
    assert!(!findings.to_string().contains("publish"), "{findings}");
    for (name, more, kept, message) in [
        ("no event", "", false, "no event that can be published"),
        ("an event of no use", "event=message-summary\n", false, "no event that can be published"),
        ("no body", "event=presence\n", false, "no @body that fits"),
        (
            "a body of another event",
            "event=presence\n@body=application/dialog-info+xml\n",
            false,
            "no @body that fits",
        ),
        ("no URI", "event=asterisk-mwi\nserver_uri=esc\n", false, "no SIP URI in server_uri"),
        (
            "a URI that would add a header",
            "event=asterisk-mwi\nfrom_uri=sip:a b\n",
            false,
            "no SIP URI in from_uri",
        ),
        ("no URI in To", "event=asterisk-mwi\nto_uri=x\n", false, "no SIP URI in to_uri"),
        ("all as one user", hints, true, "write multi_user=yes"),
        ("an auth that is not there", "event=asterisk-mwi\noutbound_auth=x\n", true, "names outbound_auth=x"),
        ("a transport that is not there", "event=asterisk-mwi\ntransport=x\n", true, "names transport=x"),
    ] {
        let (pjsip, findings) = read(&format!("{head}{more}"));
        assert_eq!(pjsip.publishes.contains_key("p"), kept, "{name}");
        assert!(findings.to_string().contains(message), "{name}: {findings}");
    }
    for (name, text, message) in [
        ("an endpoint", "type=inbound-publication\nendpoint=x", "names endpoint=x"),
        ("an exchange", "type=inbound-publication\nevent_asterisk-mwi=x", "names event_asterisk-mwi=x"),
        ("a publish", "type=asterisk-publication\ndevicestate_publish=x", "names devicestate_publish=x"),
        ("what it is good for", "type=asterisk-publication", "with other Strowger servers only"),
    ] {
        let (_, findings) = read(&format!("[q]\n{text}\n"));
        assert!(findings.to_string().contains(message), "{name}: {findings}");
    }
}

#[test]
fn sections_that_make_no_object_are_named() {
    for (name, text, level, message) in [
        ("no type", "[x]\nallow=ulaw", Level::Error, "[x] has no type"),
        ("a type nobody knows", "[x]\ntype=endpont", Level::Error, "type=endpont"),
        (
            "an alias without domain",
            "[x.example]\ntype=domain_alias",
            Level::Warning,
            "domain_alias 'x.example' has no domain",
        ),
        (
            "an alias that changes nothing",
            "[x.example]\ntype=domain_alias\ndomain=example",
            Level::Note,
            "no endpoint or aor is named user@example",
        ),
        ("a type for later", "[x]\ntype=phoneprov", Level::Warning, "phones are not provisioned"),
        (
            "a type that is not needed",
            "[x]\ntype=subscription_persistence",
            Level::Note,
            "subscriptions outlive a restart",
        ),
        (
            "a contact of nobody",
            "[x]\ntype=contact\nuri=sip:x@h",
            Level::Error,
            "the aor 'x', which does not exist",
        ),
        ("a contact that is nowhere", "[a]\ntype=contact\nuri=x@h", Level::Error, "has no SIP URI"),
        (
            "an agreement on nothing",
            "[x]\ntype=endpoint\nauth=a\naors=a\nallow=ulaw\nsecurity_negotiation=mediasec",
            Level::Warning,
            "names no mechanism",
        ),
        (
            "a mechanism that a comment cut off",
            "[x]\ntype=registration\nserver_uri=sip:h\nclient_uri=sip:a@h\nsecurity_negotiation=mediasec\n\
             security_mechanisms=sdes-srtp;mediasec",
            Level::Warning,
            "'sdes-srtp' of 'x' does not say that it protects media",
        ),
        (
            "a second of a type and name",
            "[a]\ntype=aor\nmax_contacts=1",
            Level::Error,
            "another [a] of this type",
        ),
        ("an aor nobody can use", "[x]\ntype=aor", Level::Warning, "nobody can register"),
        (
            "tokens of Google",
            "[x]\ntype=auth\nauth_type=google_oauth\noauth_clientid=a\noauth_secret=b\nrefresh_token=c",
            Level::Error,
            "google_oauth, which is not built in",
        ),
        ("an auth without user", "[x]\ntype=auth\npassword=p", Level::Error, "has no username"),
        ("an identify of nothing", "[x]\ntype=identify\nendpoint=a", Level::Error, "matches nothing"),
        (
            "an identify of nobody",
            "[x]\ntype=identify\nendpoint=b\nmatch=192.0.2.1",
            Level::Warning,
            "'b', which does not exist",
        ),
        (
            "an address with a typing error",
            "[x]\ntype=identify\nendpoint=a\nmatch=192.0.2.999",
            Level::Error,
            "`192.0.2.999`",
        ),
        (
            "a transport for later",
            "[x]\ntype=transport\nprotocol=flow\nbind=0.0.0.0",
            Level::Error,
            "protocol=flow, which is not built in",
        ),
        ("a transport without bind", "[x]\ntype=transport", Level::Error, "has no bind"),
        (
            "an endpoint without aor object",
            "[x]\ntype=endpoint\nauth=a\nallow=ulaw\naors=y",
            Level::Warning,
            "aor 'y'",
        ),
        (
            "an endpoint without auth object",
            "[x]\ntype=endpoint\nauth=y\nallow=ulaw\naors=a",
            Level::Error,
            "auth 'y'",
        ),
        (
            "an endpoint without format",
            "[x]\ntype=endpoint\nauth=a\naors=a",
            Level::Error,
            "allows no format",
        ),
        (
            "only formats for later",
            "[x]\ntype=endpoint\nauth=a\naors=a\nallow=silk8",
            Level::Error,
            "allows only silk8",
        ),
        (
            "only formats that pass through",
            "[x]\ntype=endpoint\nauth=a\naors=a\nallow=g729",
            Level::Warning,
            "allows only formats that are passed through",
        ),
        (
            "a transport that is missing",
            "[x]\ntype=endpoint\nauth=a\naors=a\nallow=ulaw\ntransport=y",
            Level::Warning,
            "transport 'y'",
        ),
        ("a short password", "[x]\ntype=auth\nusername=u\npassword=1234", Level::Warning, "shorter than 12"),
        (
            "the user as password",
            "[x]\ntype=auth\nusername=a-long-user-name\npassword=a-long-user-name",
            Level::Warning,
            "equals its user name",
        ),
        (
            "a bad hash",
            "[x]\ntype=auth\nusername=u\nauth_type=md5\nmd5_cred=abc",
            Level::Error,
            "32 hexadecimal",
        ),
    ] {
        let (_, findings) = read(&format!("{FINE}{text}\n"));
        let found = findings.iter().find(|f| f.message.contains(message));
        let found = found.unwrap_or_else(|| panic!("{name}: {findings}"));
        assert_eq!(found.level, level, "{name}");
        assert!(found.place.line > 15, "{name}: {}", found.place);
        assert!(level != Level::Error || !found.remedy.is_empty(), "{name}: what to do?");
        assert!(!findings.to_string().contains("1234"), "{name}: a secret is never told");
    }
}

#[test]
fn contacts_with_sections_of_their_own_join_those_of_their_aor() {
    let contact =
        |name: &str, uri: &str| format!("[{name}]\ntype=contact\nuri={uri}\nqualify_frequency=60\n");
    let text = format!(
        "{}{FINE}[b]\ntype=aor\ncontact=sip:b@h1\n{}{}{}",
        contact("b", "sip:b@h2"),
        contact("b\\;@desk", "sip:b@h3"),
        contact("b\\;@again", "sip:b@h1"),
        contact("b\\;@away", "sips:b@h4"),
    );
    let (pjsip, findings) = read(&text);
    assert!(!findings.has_errors(), "{findings}");
    assert_eq!(pjsip.aors["b"].contact, ["sip:b@h1", "sip:b@h2", "sip:b@h3", "sips:b@h4"]);
}

#[test]
fn stored_digests_take_the_place_of_a_password() {
    let hash = "0123456789abcdef".repeat(4);
    let (pjsip, findings) = read(&format!(
        "{FINE}[x]\ntype=auth\nusername=u\nauth_type=digest\npassword_digest=SHA-256:{hash}\n"
    ));
    assert!(findings.is_empty(), "{findings}");
    let digest = &pjsip.auths["x"].password_digest[0];
    assert_eq!((digest.algorithm, digest.hash.expose()), (DigestAlgorithm::Sha256, &*hash));
    let (_, findings) = read(&format!("{FINE}[x]\ntype=auth\nusername=u\npassword_digest=SHA-256:beef\n"));
    assert!(findings.has_errors());
    assert!(!findings.to_string().contains("beef"), "a secret is never told");
}

#[test]
fn named_lists_close_an_endpoint_and_a_missing_one_closes_it_to_all() {
    let text = format!(
        "{FINE}acl=office\ndeny=10.9.0.0/16\n[b]\ntype=endpoint\naors=a\nauth=a\nallow=ulaw\nacl=ofice\n"
    );
    let (mut pjsip, mut findings) = read(&text);
    let lists = Memory::new().with("acl.conf", "[office]\ndeny=0.0.0.0/0\npermit=10.0.0.0/8\n");
    let lists = load(&lists, "acl.conf", Options::default(), &mut findings).unwrap();
    let lists = NamedAcls::read(&lists, &mut findings);
    assert!(findings.is_empty(), "{findings}");
    pjsip.resolve_acls(&lists, &mut findings);
    let may = |endpoint: &str, ip: &str| pjsip.endpoints[endpoint].access.allows(ip.parse().unwrap());
    assert!(may("a", "10.1.2.3"));
    assert!(!may("a", "10.9.2.3"), "own rules hold too");
    assert!(!may("a", "192.0.2.1"));
    assert!(!may("b", "10.1.2.3") && !may("b", "2001:db8::1"), "a missing list lets nobody in");
    assert_eq!(findings.iter().next().map(|f| f.place.to_string()), Some("pjsip.conf:23".into()));
}

#[test]
fn a_format_with_an_external_codec_is_one_of_all_and_draws_no_remark() {
    let source = Memory::new().with(
        "pjsip.conf",
        format!(
            "{FINE}allow=g729,g723\n[b]\ntype=endpoint\naors=a\nauth=a\nallow=all\n[c](b)\nallow=!g729\n"
        ),
    );
    let mut findings = Findings::new();
    let file = load(&source, "pjsip.conf", Options::default(), &mut findings).unwrap();
    let mut pjsip = Pjsip::read(&file, &mut findings);
    pjsip.resolve_formats(Coded::default().with(FormatId::G729), &mut findings);
    let told = |text: &str| findings.iter().filter(|finding| finding.message.contains(text)).count();
    assert_eq!((told("g729 can only"), told("g723 can only")), (0, 1), "{findings}");
    let has = |name: &str| pjsip.endpoints[name].allow.formats.contains(FormatId::G729);
    assert_eq!((has("a"), has("b"), has("c")), (true, true, false));
}

#[test]
fn allow_and_disallow_apply_in_the_order_of_the_lines() {
    let others: Vec<_> = FormatId::coded().skip(2).map(|format| format!(",!{format}")).collect();
    let all_but = format!("allow=all{}", others.concat());
    for (lines, expected) in [
        ("allow=alaw", "[ulaw, alaw]"),
        ("disallow=all\nallow=alaw", "[alaw]"),
        ("allow=!all,gsm,ulaw", "[gsm, ulaw]"),
        (all_but.as_str(), "[ulaw, alaw]"),
        ("disallow=ulaw\nallow=g722,ulaw", "[g722, ulaw]"),
        ("allow=alaw\ndisallow=ulaw", "[alaw]"),
        ("disallow=!ulaw,all\nallow=pcma", "[alaw]"),
    ] {
        let (pjsip, findings) = read(&format!("{FINE}{lines}\n"));
        assert_eq!(format!("{:?}", pjsip.endpoints["a"].allow.formats), expected, "{lines}: {findings}");
    }
}
