//! `sip.conf` and `pjsip_wizard.conf`: which objects of `pjsip.conf` they stand for, and what is said about the rest.

mod common;

use std::fs;
use std::net::IpAddr;
use std::sync::Arc;

use base::FormatId;
use common::Scratch;
use conf::{Findings, Level};
use store::config::modules::Capability;
use store::config::pjsip::{DtmfChoice, Endpoint, IdentifyBy, Pjsip, Protocol, SessionTimers};
use store::{Snapshot, Where};

/// The snapshot of a folder with these files, and what was said.
fn load(name: &str, files: &[(&str, &str)]) -> (Arc<Snapshot>, Findings) {
    let folder = Scratch::new(name);
    for (file, text) in files {
        fs::write(folder.0.join(file), text).unwrap();
    }
    Snapshot::load(&Where::Dir(folder.0.clone())).unwrap()
}

fn import(name: &str, sip: &str) -> (Pjsip, Findings) {
    let (snapshot, findings) = load(name, &[("sip.conf", sip)]);
    (snapshot.pjsip.clone(), findings)
}

fn formats(endpoint: &Endpoint) -> Vec<FormatId> {
    endpoint.allow.formats.iter().collect()
}

fn says(findings: &Findings, level: Level, line: u32, words: &str) -> bool {
    findings.iter().any(|f| f.level == level && f.place.line == line && f.message.contains(words))
}

const OFFICE: &str = "\
[general]
context=public
allowguest=no
udpbindaddr=0.0.0.0:5070
tcpenable=yes
tlsenable=yes
tlsbindaddr=0.0.0.0
tlscertfile=/etc/asterisk/keys/pbx.pem
externaddr=203.0.113.5:5999
localnet=192.168.0.0/255.255.0.0
localnet=10.0.0.0/8
tos_sip=cs3
tos_audio=ef
realm=example.com
useragent=Office
defaultexpiry=300
disallow=all
allow=alaw
allow=ulaw
dtmfmode=rfc2833
qualify=yes
register => 1234:secret@sip.provider.example:5061/600~180
register => tls://u2:p2:auth2@other.example

[phone](!)
type=friend
host=dynamic
context=internal
nat=force_rport,comedia
directmedia=no
qualify=700

[6001](phone)
secret=correct horse battery
callerid=\"Anna\" <6001>
mailbox=6001@default
setvar=A=1
setvar=B=2
allow=gsm
call-limit=2

[6002](phone)
type=peer
md5secret=0123456789abcdef0123456789abcdef
insecure=invite
transport=tcp,udp

[trunk]
type=peer
host=198.51.100.7
port=5080
defaultuser=office
remotesecret=towards the provider
fromuser=office
fromdomain=provider.example
insecure=port,invite
sendrpid=pai
trustrpid=yes
session-timers=originate
t38pt_udptl=yes,redundancy,maxdatagram=400
callbackextension=600
outboundproxy=edge.provider.example
dtmfmode=shortinfo

[caller]
type=user
secret=somebody who only calls
context=from-caller
";

#[test]
fn peers_become_endpoints_with_aors_auths_and_identifies() {
    let (pjsip, findings) = import("peers", OFFICE);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        pjsip.endpoints.keys().cloned().collect::<Vec<_>>(),
        names(&["6001", "6002", "caller", "trunk"])
    );
    assert_eq!(pjsip.aors.keys().cloned().collect::<Vec<_>>(), names(&["6001", "6002", "trunk"]));

    let phone = &pjsip.endpoints["6001"];
    assert_eq!((&*phone.context, &*phone.callerid), ("internal", "\"Anna\" <6001>"));
    assert_eq!(formats(phone), [FormatId::ALAW, FormatId::ULAW, FormatId::GSM]);
    assert_eq!(phone.set_var.len(), 2);
    assert_eq!((&phone.auth, &phone.outbound_auth), (&names(&["6001"]), &names(&["6001-out"])));
    assert_eq!(phone.identify_by, [IdentifyBy::Username]);
    assert!(phone.force_rport && phone.rewrite_contact && phone.rtp_symmetric && !phone.direct_media);
    assert_eq!(phone.dtmf_mode, DtmfChoice::Rfc4733);
    assert_eq!(pjsip.auths["6001"].password.expose(), "correct horse battery");
    let aor = &pjsip.aors["6001"];
    assert_eq!((aor.max_contacts, aor.remove_existing), (1, true));
    assert_eq!((aor.default_expiration.as_secs(), aor.maximum_expiration.as_secs()), (300, 3600));
    assert_eq!((aor.qualify_frequency.as_secs(), aor.qualify_timeout.as_millis()), (60, 700));
    assert_eq!(phone.call_limit, 2);
    assert!(!says(&findings, Level::Note, 40, "call-limit=2"), "{findings:?}");

    let open = &pjsip.endpoints["6002"];
    assert!(open.insecure_invite && open.auth == names(&["6002"]), "insecure=invite is for calls alone");
    assert_eq!((&*open.transport, &open.outbound_auth), ("sip-tcp", &names(&["6002-out"])));

    let trunk = &pjsip.endpoints["trunk"];
    assert_eq!(trunk.identify_by, [IdentifyBy::Ip]);
    assert!(trunk.auth.is_empty() && trunk.send_pai && trunk.trust_id_inbound);
    assert_eq!((&*trunk.from_user, &*trunk.from_domain), ("office", "provider.example"));
    assert_eq!(trunk.timers, SessionTimers::Always);
    assert_eq!(trunk.dtmf_mode, DtmfChoice::Info);
    assert_eq!(&*trunk.outbound_proxy, "sip:edge.provider.example;lr");
    assert_eq!(pjsip.auths["trunk-out"].username, "office");
    assert_eq!(pjsip.aors["trunk"].contact, names(&["sip:office@198.51.100.7:5080"]));
    let identify = pjsip.identifies.iter().find(|identify| identify.endpoint == "trunk").unwrap();
    assert_eq!(identify.match_source.len(), 1);

    let back = &pjsip.registrations["trunk"];
    assert_eq!(
        (&*back.server_uri, &*back.client_uri),
        ("sip:198.51.100.7:5080", "sip:office@198.51.100.7:5080")
    );
    assert_eq!((&*back.contact_user, &back.outbound_auth), ("600", &names(&["trunk-out"])));

    let caller = &pjsip.endpoints["caller"];
    assert!(caller.aors.is_empty() && caller.outbound_auth.is_empty());
    assert_eq!((&*caller.context, &caller.auth), ("from-caller", &names(&["caller"])));
}

#[test]
fn the_general_section_becomes_transports_and_the_stack() {
    let (pjsip, _) = import("general", OFFICE);
    let transport = |name: &str| {
        let transport = &pjsip.transports[name];
        (transport.protocol, transport.address().unwrap().to_string())
    };
    assert_eq!(transport("sip-udp"), (Protocol::Udp, "0.0.0.0:5070".to_owned()));
    assert_eq!(transport("sip-tcp"), (Protocol::Tcp, "0.0.0.0:5060".to_owned()));
    let udp = &pjsip.transports["sip-udp"];
    assert_eq!((&*udp.external_signaling_address, udp.external_signaling_port), ("203.0.113.5", 5999));
    assert_eq!((&*udp.external_media_address, udp.tos), ("203.0.113.5", 0x60));
    let local: IpAddr = "10.1.2.3".parse().unwrap();
    assert!(udp.local_net.iter().any(|net| net.contains(local)));
    assert_eq!(pjsip.endpoints["6001"].tos_audio, 0xb8);
    assert_eq!((&*pjsip.global.default_realm, &*pjsip.global.user_agent), ("example.com", "Office"));
    assert!(!pjsip.endpoints.contains_key("anonymous"), "allowguest=no");
}

#[test]
fn register_lines_become_registrations_that_never_give_up() {
    let (pjsip, _) = import("register", OFFICE);
    for (name, server, client, user, expiration, transport) in [
        (
            "1234@sip.provider.example:5061",
            "sip:sip.provider.example:5061",
            "sip:1234@sip.provider.example:5061",
            ("600", "1234"),
            180,
            "sip-udp",
        ),
        (
            "u2@other.example",
            "sip:other.example;transport=tls",
            "sip:u2@other.example;transport=tls",
            ("s", "auth2"),
            300,
            "sip-tls",
        ),
    ] {
        let registration = &pjsip.registrations[name];
        assert_eq!((&*registration.server_uri, &*registration.client_uri), (server, client));
        assert_eq!((&*registration.contact_user, &*pjsip.auths[name].username), user);
        assert_eq!((registration.expiration.as_secs(), &*registration.transport), (expiration, transport));
        assert_eq!(registration.max_retries, u32::MAX);
    }
}

#[test]
fn without_allowguest_strangers_may_call_as_chan_sip_has_it_and_it_is_said() {
    for (name, general, guests) in [
        ("unsaid", "context=in", true),
        ("said", "context=in\nallowguest=yes", true),
        ("refused", "context=in\nallowguest=no", false),
    ] {
        let (pjsip, findings) = import(&format!("guest-{name}"), &format!("[general]\n{general}\n"));
        let anonymous = pjsip.endpoints.get("anonymous");
        assert_eq!(anonymous.map(|endpoint| &*endpoint.context), guests.then_some("in"), "{name}");
        let warned = findings.iter().any(|f| f.level == Level::Warning && f.message.contains("strangers"));
        assert_eq!(warned, guests, "{name}: {findings:?}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_reported_where_sip_conf_has_it() {
    let (pjsip, findings) = import(
        "values",
        "[general]\nallowguest=no\n[6001]\ntype=friend\nhost=dynamic\nsecret=correct horse battery\nrtptimeout=soon\nalow=ulaw\n",
    );
    assert!(pjsip.endpoints.contains_key("6001"), "chan_sip goes on without the line");
    let at = |line, words: &str| findings.iter().any(|f| f.place.line == line && f.message.contains(words));
    assert!(at(7, "rtptimeout=soon is not a whole number"), "{findings:?}");
    assert!(at(8, "alow"), "{findings:?}");
    assert!(findings.iter().filter(|f| f.place.line == 7).all(|f| f.place.file.ends_with("sip.conf")));
}

#[test]
fn objects_of_pjsip_conf_go_first() {
    let pjsip = "[main]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:5060\n\
                 [6001]\ntype=endpoint\ncontext=new\naors=6001\nallow=ulaw\n[6001]\ntype=aor\nmax_contacts=3\n";
    let sip = "[general]\nallowguest=no\ncontext=old\n[6001]\ntype=friend\nhost=dynamic\n[6002]\ntype=friend\nhost=dynamic\n";
    let (snapshot, findings) = load("first", &[("pjsip.conf", pjsip), ("sip.conf", sip)]);
    let pjsip = &snapshot.pjsip;
    assert_eq!(pjsip.endpoints["6001"].context, "new");
    assert_eq!(pjsip.aors["6001"].max_contacts, 3);
    assert_eq!(pjsip.endpoints["6002"].context, "old");
    assert_eq!(pjsip.transports.keys().collect::<Vec<_>>(), ["main"], "the port is taken");
    assert!(findings.iter().any(|f| f.message.contains("goes first")), "{findings:?}");
}

#[test]
fn modules_say_which_of_the_two_is_served() {
    let pjsip =
        "[main]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:5060\n[7001]\ntype=endpoint\nallow=ulaw\n";
    let sip = "[general]\nallowguest=no\n[6001]\ntype=friend\nhost=dynamic\n";
    for (name, modules, expected) in [
        ("both", "[modules]\nautoload=yes\n", &["6001", "7001"][..]),
        ("no-chan-sip", "[modules]\nautoload=yes\nnoload => chan_sip.so\n", &["7001"]),
        ("no-chan-pjsip", "[modules]\nautoload=yes\nnoload => chan_pjsip.so\n", &["6001"]),
        ("named", "[modules]\nautoload=no\nload => chan_sip.so\n", &["6001"]),
    ] {
        let files = [("pjsip.conf", pjsip), ("sip.conf", sip), ("modules.conf", modules)];
        let (snapshot, _) = load(&format!("modules-{name}"), &files);
        assert_eq!(snapshot.pjsip.endpoints.keys().collect::<Vec<_>>(), expected, "{name}");
        assert!(snapshot.modules.has(Capability::Technology("SIP")), "{name}");
    }
}

const WIZARDS: &str = "\
[trunk-defaults](!)
type=wizard
transport=udp
endpoint/allow=!all,ulaw
endpoint/context=from-provider
sends_registrations=yes
sends_auth=yes

[provider](trunk-defaults)
remote_hosts=sip1.example.net:5070,sip2.example.net
outbound_auth/username=office
outbound_auth/password=correct horse battery
registration/expiration=600
aor/qualify_frequency=30

[phone](!)
type=wizard
accepts_auth=yes
accepts_registrations=yes
endpoint/allow=!all,g722,ulaw
endpoint/context=internal

[6001](phone)
inbound_auth/password=another horse battery
has_phoneprov=yes
endpiont/context=typo
";

#[test]
fn wizards_become_what_they_stand_for() {
    let transport = "[udp]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:5060\n";
    let (snapshot, findings) = load("wizard", &[("pjsip.conf", transport), ("pjsip_wizard.conf", WIZARDS)]);
    let pjsip = &snapshot.pjsip;
    let provider = &pjsip.endpoints["provider"];
    assert_eq!((&*provider.context, &*provider.transport), ("from-provider", "udp"));
    assert_eq!(
        (&provider.aors, &provider.outbound_auth),
        (&vec!["provider".to_owned()], &vec!["provider-oauth".to_owned()])
    );
    let aor = &pjsip.aors["provider"];
    assert_eq!(aor.contact, ["sip:sip1.example.net:5070", "sip:sip2.example.net"]);
    assert_eq!(aor.qualify_frequency.as_secs(), 30);
    let identify = pjsip.identifies.iter().find(|identify| identify.endpoint == "provider").unwrap();
    assert_eq!(identify.match_source.len(), 2);
    assert_eq!(pjsip.auths["provider-oauth"].username, "office");

    let phone = &pjsip.endpoints["6001"];
    assert_eq!(phone.auth, ["6001-iauth"]);
    assert_eq!(formats(phone), [FormatId::G722, FormatId::ULAW]);
    assert_eq!(pjsip.auths["6001-iauth"].username, "6001");
    assert_eq!((pjsip.aors["6001"].max_contacts, pjsip.aors["6001"].contact.len()), (1, 0));
    assert!(
        findings.iter().any(|f| f.place.line == 25 && f.message.contains("has_phoneprov")),
        "{findings:?}"
    );
    assert!(findings.iter().any(|f| f.place.line == 26 && f.message.contains("endpiont")), "{findings:?}");
}

#[test]
fn a_wizard_with_a_hint_has_an_extension_behind_those_of_the_dialplan() {
    let transport = "[udp]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:5060\n";
    let own = "[phones]\nexten => 6001,1,Dial(PJSIP/6001)\n";
    let load = |name: &str, lines: &str| {
        let text = format!("[6001]\ntype=wizard\nendpoint/allow=ulaw\nhas_hint=yes\n{lines}");
        let files =
            [("pjsip.conf", transport), ("pjsip_wizard.conf", text.as_str()), ("extensions.conf", own)];
        let (snapshot, findings) = load(name, &files);
        let line = |section: &conf::Section| {
            let values = section.variables.iter().map(|variable| variable.value.to_string());
            format!("{}: {}", section.name, values.collect::<Vec<_>>().join("; "))
        };
        let told: Vec<String> = findings.iter().map(|finding| finding.message.clone()).collect();
        (snapshot.extensions.sections.iter().map(line).collect::<Vec<_>>(), told)
    };
    let dialplan = "phones: 6001,1,Dial(PJSIP/6001)";
    for (number, (lines, expected)) in [
        ("hint_exten=6001\nhint_context=phones\n", "phones: 6001,hint,PJSIP/6001"),
        ("hint_exten=6001\n", "default: 6001,hint,PJSIP/6001"),
        (
            "hint_exten=1\nhint_context=c\nhint_application=Gosub(phone,${EXTEN},1(${HINT}))\n",
            "c: 1,hint,PJSIP/6001; 1,1,Gosub(phone,${EXTEN},1(${HINT}))",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (sections, told) = load(&format!("wizard-hint-{number}"), lines);
        assert_eq!(sections, [dialplan, expected], "{lines}");
        assert!(!told.iter().any(|message| message.contains("hint")), "{told:?}");
    }
    let (sections, told) = load("wizard-hint-none", "hint_context=phones\n");
    assert_eq!(sections, [dialplan]);
    assert!(told.contains(&"wizard '6001' has a hint and no extension for it".to_owned()), "{told:?}");
}

/// A wizard with these lines, on a transport.
fn wizard(name: &str, lines: &str) -> (Pjsip, Findings) {
    let transport = "[udp]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:5060\n";
    let text = format!("[w]\ntype=wizard\nendpoint/allow=!all,ulaw\n{lines}\n");
    let (snapshot, findings) = load(name, &[("pjsip.conf", transport), ("pjsip_wizard.conf", &text)]);
    (snapshot.pjsip.clone(), findings)
}

#[test]
fn each_line_of_a_wizard_does_what_it_stands_for() {
    type Probe = fn(&Pjsip) -> String;
    let registrations = |pjsip: &Pjsip| {
        let of = pjsip.registrations.iter();
        of.map(|(name, of)| format!("{name} {} {}", of.server_uri, of.client_uri))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let registers = "sends_registrations=yes\nsends_auth=yes\noutbound_auth/username=u\noutbound_auth/password=correct horse battery\nremote_hosts=h:5070";
    for (number, (lines, probe, expected)) in [
        (registers, registrations as Probe, "w-reg-0 sip:h:5070 sip:u@h:5070"),
        (
            &format!("{registers}\nserver_uri_pattern=sips:${{REMOTE_HOST}}\nclient_uri_pattern=sip:${{USERNAME}}@x"),
            registrations,
            "w-reg-0 sips:h:5070 sip:u@x",
        ),
        (
            &format!("{registers}\nsends_line_with_registrations=yes\nregistration/expiration=60"),
            |pjsip| {
                let of = &pjsip.registrations["w-reg-0"];
                format!("{} {} {}", of.line, of.endpoint, of.expiration.as_secs())
            },
            "true w 60",
        ),
        (
            "remote_hosts=a,[2001:db8::1]:5070\ncontact_pattern=sip:me@${REMOTE_HOST}",
            |pjsip| pjsip.aors["w"].contact.join(" "),
            "sip:me@a sip:me@[2001:db8::1]:5070",
        ),
        (
            "remote_hosts=192.0.2.1\nidentify/srv_lookups=no",
            |pjsip| pjsip.identifies.iter().map(|of| format!("{} {}", of.endpoint, of.srv_lookups)).collect(),
            "w false",
        ),
        (
            "accepts_registrations=yes\naor/max_contacts=3\nremote_hosts=192.0.2.1",
            |pjsip| {
                let aor = &pjsip.aors["w"];
                format!("{} {} {}", aor.max_contacts, aor.contact.len(), pjsip.identifies.len())
            },
            "3 0 0",
        ),
        (
            "accepts_auth=yes\ninbound_auth/username=x\ninbound_auth/password=correct horse battery",
            |pjsip| format!("{} {}", pjsip.endpoints["w"].auth.join("+"), pjsip.auths["w-iauth"].username),
            "w-iauth x",
        ),
        (
            "transport=udp\noutbound_proxy=sip:p\nremote_hosts=h",
            |pjsip| {
                let (of, aor) = (&pjsip.endpoints["w"], &pjsip.aors["w"]);
                format!("{} {} {}", of.transport, of.outbound_proxy, aor.outbound_proxy)
            },
            "udp sip:p sip:p",
        ),
        ("endpoint/aors=other", |pjsip| pjsip.endpoints["w"].aors.join(" "), "other"),
        ("sends_registrations=yes\nsends_auth=yes", registrations, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let (pjsip, findings) = wizard(&format!("wizard-{number}"), lines);
        assert_eq!(probe(&pjsip), expected, "{lines}: {findings:?}");
    }
    let (_, findings) = wizard("wizard-none", "sends_registrations=yes\nsends_auth=yes");
    assert!(findings.iter().any(|f| f.message.contains("no remote_hosts")), "{findings:?}");
}

#[test]
fn each_line_of_a_peer_goes_where_the_manual_says() {
    type Probe = fn(&Endpoint) -> String;
    for (number, (general, peer, probe, before, after)) in [
        ("", "promiscredir=yes", (|e| format!("{:?}", e.redirect_method)) as Probe, "User", "UriCore"),
        ("promiscredir=yes", "", |e| format!("{:?}", e.redirect_method), "User", "UriCore"),
        ("promiscredir=yes", "promiscredir=no", |e| format!("{:?}", e.redirect_method), "User", "User"),
        ("mwi_from=voicemail", "", |e| e.mwi_from_user.clone(), "", "voicemail"),
        ("subminexpiry=120", "", |e| e.sub_min_expiry.as_secs().to_string(), "0", "120"),
        ("", "allowoverlap=dtmf", |e| e.allow_overlap.to_string(), "true", "false"),
        ("", "progressinband=never", |e| format!("{:?}", e.inband_progress), "No", "No"),
        ("", "encryption=yes", |e| format!("{:?}", e.media_encryption), "None", "Sdes"),
    ]
    .into_iter()
    .enumerate()
    {
        let of = |name: &str, general: &str, peer: &str| {
            let peer = format!("[p]\ntype=friend\nhost=dynamic\nsecret=correct horse battery\n{peer}\n");
            let (pjsip, findings) = import(name, &format!("[general]\nallowguest=no\n{general}\n{peer}"));
            let told = findings.iter().any(|f| f.message.contains("has no option"));
            assert!(!told, "{findings:?}");
            probe(&pjsip.endpoints["p"])
        };
        assert_eq!(of(&format!("line-{number}-before"), "", ""), before, "{general}{peer}");
        assert_eq!(of(&format!("line-{number}"), general, peer), after, "{general}{peer}");
    }
}

#[test]
fn what_of_sip_conf_has_no_equal_is_told_with_what_happens_instead() {
    for (number, (line, words)) in [
        ("domainsasrealm=yes", "the realm is that of realm="),
        ("submaxexpiry=3600", "a day at most"),
        ("register_retry_403=yes", "whatever it was answered"),
        ("qualifygap=100", "spread over their interval"),
        ("qualifypeers=1", "spread over their interval"),
        ("rfc2833compensate=yes", "by their timestamps"),
        ("cos_text=3", "text are declined"),
        ("tos_text=af41", "text are declined"),
        ("relaxdtmf=yes", "Q.24"),
        ("discard_remote_hold_retrieval=yes", "hold and of its end"),
        ("cc_callback_macro=x", "call completion is not built in"),
        ("regextenonqualify=yes", "whether it answers or not"),
        ("checkmwi=10", "is told at once"),
    ]
    .into_iter()
    .enumerate()
    {
        let (_, findings) = import(&format!("moot-{number}"), &format!("[general]\nallowguest=no\n{line}\n"));
        assert!(says(&findings, Level::Note, 3, words), "{line}: {findings:?}");
    }
}

#[test]
fn a_register_line_may_name_a_peer_and_takes_the_proxy_on_the_way() {
    let (pjsip, findings) = import(
        "register",
        "[general]\nallowguest=no\noutboundproxy=edge.example.com\n\
         register => 2345:a long password@sip_proxy/1234\nregister => 5:a long password@198.51.100.9\n\
         register => 6:a long password@anyone\n\
         [sip_proxy]\ntype=peer\nhost=sip.provider.example\nport=5070\nfromdomain=provider.example\n\
         outboundproxy=tcp://own.example.com\n\
         [anyone]\ntype=friend\nhost=dynamic\n",
    );
    let said = |name: &str| {
        let made = &pjsip.registrations[name];
        [&*made.server_uri, &*made.client_uri, &*made.contact_user, &*made.outbound_proxy].map(str::to_owned)
    };
    assert_eq!(
        said("2345@sip_proxy"),
        [
            "sip:sip.provider.example:5070",
            "sip:2345@provider.example",
            "1234",
            "sip:own.example.com;lr;transport=tcp"
        ],
        "{findings:?}"
    );
    let edge = "sip:edge.example.com;lr";
    assert_eq!(said("5@198.51.100.9"), ["sip:198.51.100.9", "sip:5@198.51.100.9", "s", edge]);
    assert_eq!(said("6@anyone"), ["sip:anyone", "sip:6@anyone", "s", edge], "it has no address");
}
