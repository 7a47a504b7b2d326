//! What the dialplan asks of SIP, and headers that calls made on a channel's behalf carry.

use call::Request;

use crate::lab::{Lab, change, change_aor, header, site};
use crate::phone::{Phone, sdp};

fn answer() -> String {
    sdp("198.51.100.7", 4000, "0 101")
}

#[test]
fn inheritable_headers_go_out_with_every_call_made_on_a_channels_behalf() {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("trunk").call("in");
    let text = phone.request("INVITE", "sip:100@s", "", &answer());
    lab.receive(phone.flow, text);
    let caller = lab.started.pop_front().unwrap();
    lab.lines();
    const F: &str = "PJSIP_INHERITABLE_HEADER";
    let mut write =
        |args: &str, value: &str| lab.with(|sip, core| call::Tech::write(sip, core, caller, F, args, value));
    assert!(write("add,X-Tenant", "acme"));
    assert!(write("add,X-Tenant", "second"));
    assert!(write("add,X-Gone", "1"));
    assert!(write("add,X-Split", "a\r\nInjected: yes"));
    assert!(write("update,X-Tenant", "acme:1"));
    assert!(write("remove,X-Gone", ""));
    for refused in ["add,Via", "update,X-None", "steal,X", "add,"] {
        assert!(!write(refused, "1"), "{refused}");
    }
    assert!(!write("add,X-Long", &"x".repeat(17_000)));
    for (args, value) in [
        ("read,X-Tenant", Some("acme:1")),
        ("read,x-ten*,2", Some("second")),
        ("read,X-Gone", Some("")),
        ("add,X-Tenant", None),
    ] {
        assert_eq!(lab.read(caller, F, args).as_deref(), value, "{args}");
    }
    let behalf = Request { requestor: Some(caller), ..Request::default() };
    lab.dial_with("trunk", behalf.clone(), |_, _| {}).unwrap();
    lab.dial_with("trunk", behalf, |shard, id| {
        // What is inherited can be taken away on one leg.
        let removed =
            shard.with_tech(id, |tech, core| tech.write(core, id, "PJSIP_HEADER", "remove,X-Tenant", ""));
        assert_eq!(removed, Some(true));
    })
    .unwrap();
    lab.dial("trunk").unwrap();
    for (name, tenant, split) in [
        ("on its behalf", "acme:1", "aInjected: yes"),
        ("taken away", "", "aInjected: yes"),
        ("other", "", ""),
    ] {
        let invite = lab.sent();
        assert_eq!(header(&invite, "X-Tenant"), tenant, "{name}");
        assert_eq!(header(&invite, "X-Split"), split, "{name}");
        assert_eq!(header(&invite, "X-Gone") + &header(&invite, "Injected"), "", "{name}");
    }
}

#[test]
fn parameters_are_read_from_their_headers_and_added_to_our_from() {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("trunk").call("in");
    let diversion = "Diversion: <sip:5@h;user=phone>;reason=no-answer\r\n";
    let text = phone.request("INVITE", "sip:100@s", diversion, &answer());
    lab.receive(phone.flow, text);
    let caller = lab.started.pop_front().unwrap();
    lab.lines();
    const F: &str = "PJSIP_HEADER_PARAM";
    for (args, value) in [
        ("Diversion,header,reason", Some("no-answer")),
        ("Diversion,uri,user", Some("phone")),
        ("Diversion,uri,reason", Some("")),
        ("X-None,header,a", Some("")),
        ("Diversion,body,a", None),
    ] {
        assert_eq!(lab.read(caller, F, args).as_deref(), value, "{args}");
    }
    let leg = lab
        .dial_with("trunk", Request::default(), |shard, id| {
            let write = |args: &str, value: &str| {
                shard.with_tech(id, |tech, core| tech.write(core, id, F, args, value)).unwrap()
            };
            assert!(write("From,uri,isup-oli", "1"));
            assert!(write("From,uri,isup-oli", "70"));
            assert!(write("From,header,x-key", "abc"));
            for (args, value) in [
                ("From,header,tag", "1"),
                ("To,uri,a", "1"),
                ("From,uri,a", "1>;b"),
                ("From,header,a", "1\r\nX: y"),
            ] {
                assert!(!write(args, value), "{args}");
            }
        })
        .unwrap();
    let from = header(&lab.sent(), "From");
    assert!(from.contains(";isup-oli=70>;x-key=abc;tag="), "{from}");
    assert_eq!(lab.read(leg, F, "From,uri,isup-oli").as_deref(), Some("70"));
}

#[test]
fn settings_and_contacts_are_told_by_name() {
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.from_user = "pbx".to_owned());
    change_aor(&mut config, "trunk", |aor| aor.max_contacts = 7);
    let mut lab = Lab::new(config);
    let id = lab.dial("trunk").unwrap();
    for (function, args, value) in [
        ("PJSIP_ENDPOINT", "trunk,context", Some("phones")),
        ("PJSIP_ENDPOINT", "trunk, from_user", Some("pbx")),
        ("PJSIP_ENDPOINT", "alice,auth", Some("alice")),
        ("PJSIP_ENDPOINT", "alice,allow", Some("(ulaw|alaw)")),
        ("PJSIP_ENDPOINT", "alice,identify_by", Some("username,ip")),
        ("PJSIP_ENDPOINT", "alice,direct_media", Some("false")),
        ("PJSIP_ENDPOINT", "alice,pickup_group", Some("")),
        ("PJSIP_ENDPOINT", "alice,mailboxes", Some("")),
        ("PJSIP_ENDPOINT", "alice,webrtc", Some("no")),
        ("PJSIP_ENDPOINT", "alice,send_connected_line", Some("yes")),
        ("PJSIP_ENDPOINT", "carol,context", None),
        ("PJSIP_ENDPOINT", "trunk,colour", None),
        ("PJSIP_AOR", "trunk,max_contacts", Some("7")),
        ("PJSIP_AOR", "trunk,authenticate_qualify", Some("false")),
        ("PJSIP_AOR", "trunk,voicemail_extension", Some("")),
        ("PJSIP_AOR", "alice,contact", Some("")),
        ("PJSIP_AOR", "carol,contact", None),
        ("PJSIP_PARSE_URI", "sip:a@h:5070,port", Some("5070")),
        ("PJSIP_CONTACT", "trunk/sip:trunk@198.51.100.7:5062,status", Some("NonQualified")),
        ("PJSIP_CONTACT", "trunk/sip:trunk@198.51.100.7:5062,qualify_frequency", Some("0")),
        ("PJSIP_CONTACT", "trunk;@0,status", None),
        ("SIPPEER", "trunk", Some("198.51.100.7")),
        ("SIPPEER", "trunk,port", Some("5062")),
        ("SIPPEER", "trunk,status", Some("Unmonitored")),
        ("SIPPEER", "trunk,context", Some("phones")),
        ("SIPPEER", "trunk,dynamic", Some("yes")),
        ("SIPPEER", "alice,status", Some("UNREACHABLE")),
        ("SIPPEER", "alice,ip", Some("")),
        ("SIPPEER", "alice,codecs", Some("(ulaw|alaw)")),
        ("SIPPEER", "alice,codec[1]", Some("alaw")),
        ("SIPPEER", "trunk,curcalls", Some("1")),
        ("SIPPEER", "carol,ip", None),
        ("SIPPEER", "trunk,colour", None),
        ("SIPCHANINFO", "peername", Some("trunk")),
        ("SIPCHANINFO", "peerip", Some("198.51.100.7")),
        ("SIPCHANINFO", "t38passthrough", Some("0")),
        ("SIPCHANINFO", "colour", None),
        ("CHECKSIPDOMAIN", "elsewhere.example", Some("")),
    ] {
        assert_eq!(lab.read(id, function, args).as_deref(), value, "{function} {args}");
    }
    let contact = lab.read(id, "PJSIP_AOR", "trunk,contact").unwrap();
    for (field, value) in [
        ("uri", "sip:trunk@198.51.100.7:5062"),
        ("endpoint", ""),
        ("rtt", "N/A"),
        ("expiration_time", "0"),
        ("qualify_timeout", "3.000000"),
        ("authenticate_qualify", "no"),
        ("prune_on_boot", "no"),
        ("reg_server", ""),
    ] {
        let read = lab.read(id, "PJSIP_CONTACT", &format!("{contact},{field}"));
        assert_eq!(read.as_deref(), Some(value), "{field}");
    }
}

#[test]
fn a_device_is_in_use_as_long_as_one_of_its_legs_is_there() {
    use call::{DeviceState, Tech};
    let mut lab = Lab::new(site());
    let state = |lab: &Lab, name: &str| lab.sip.borrow().device_state(&lab.shard.core.borrow(), name);
    let legs: Vec<_> = (0..3).map(|_| lab.dial("trunk").unwrap()).collect();
    // The configuration is made anew: its endpoint is another object of the same name.
    lab.with(|sip, core| sip.configure(site(), core.now));
    for (left, id) in legs.into_iter().enumerate().map(|(ended, id)| (3 - ended, id)) {
        lab.shard.core.borrow_mut().answered(id);
        assert_eq!(state(&lab, "trunk"), DeviceState::InUse, "{left} legs are left");
        let listed = lab.with(|sip, core| sip.endpoint_rows(Some("trunk"), core)[0].channels.len());
        assert_eq!(listed, left);
        lab.finish(id, base::Cause::NORMAL_CLEARING);
    }
    assert_eq!(state(&lab, "trunk"), DeviceState::NotInUse);
    lab.lines();
    lab.rest();
}
