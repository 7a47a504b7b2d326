//! PUBLISH (RFC 3903): states that other servers publish here, and states of ours that others are told.

use core::time::Duration;
use std::rc::Rc;

use ::sip::OwnedMessage;
use call::{DeviceState, Mailbox, Watched};
use driver::sip::{Config, Exchange, Filter, InboundPublication, OutboundPublish};

use crate::lab::{Lab, PHONE, body, header, line, site};
use crate::phone::Phone;

const RESOURCE: &str = "sip:branch@strowger";
const STATES: &str = "application/x-strowger-state";

fn begins_with(text: &str) -> Filter {
    let start = text.to_owned();
    Filter { text: format!("^{text}"), test: Rc::new(move |name| name.starts_with(&start)) }
}

/// A site where `alice`, which is a server, may publish to `branch`.
fn open() -> Config {
    let mut config = site();
    let publication =
        InboundPublication { endpoint: "alice".into(), devices: "branch".into(), mailboxes: "branch".into() };
    config.publications.insert("branch".into(), Rc::new(publication));
    let exchange = Exchange {
        devices: Some(Filter::default()),
        mailboxes: Some(Filter::default()),
        ..Exchange::default()
    };
    config.exchanges.insert("branch".into(), Rc::new(exchange));
    config
}

/// A site that publishes this package to a server at the phone's address.
fn telling(event: &str, change: impl FnOnce(&mut OutboundPublish)) -> Config {
    let mut config = open();
    let mut publish = OutboundPublish {
        name: "out".into(),
        event: event.to_owned(),
        server_uri: format!("sip:office@{PHONE}"),
        expiration: 600,
        rejections_max: 2,
        ..OutboundPublish::default()
    };
    change(&mut publish);
    config.publishes.push(Rc::new(publish));
    config
}

fn headers(event: &str, tag: &str, expires: u32) -> String {
    let matching = if tag.is_empty() { String::new() } else { format!("SIP-If-Match: {tag}\r\n") };
    format!("Event: {event}\r\n{matching}Expires: {expires}\r\nContent-Type: {STATES}\r\n")
}

/// Publishes states of devices; the tag of the 200.
#[track_caller]
fn publish(lab: &mut Lab, server: &mut Phone, tag: &str, expires: u32, states: &str) -> String {
    let asked = headers("asterisk-devicestate", tag, expires);
    // A nonce proves one request; that of the next second is another.
    lab.pass(Duration::from_secs(1));
    let answer = server.ask(lab, "PUBLISH", RESOURCE, &asked, states);
    assert_eq!(line(&answer), "200", "{states}");
    assert_eq!(header(&answer, "Expires"), expires.to_string());
    header(&answer, "SIP-ETag")
}

/// What a device does, of which nothing is known here.
fn device(lab: &Lab, name: &str) -> DeviceState {
    lab.shard.core.borrow().with_elsewhere(name, DeviceState::Invalid)
}

/// The PUBLISH that has just left, and nothing else.
#[track_caller]
fn published(lab: &mut Lab) -> OwnedMessage {
    let request = lab.sent();
    assert_eq!(line(&request), "PUBLISH");
    assert_eq!(lab.lines(), [""; 0]);
    request
}

fn accept(lab: &mut Lab, request: &OwnedMessage, tag: &str, expires: u32) {
    let said = format!("SIP-ETag: {tag}\r\nExpires: {expires}\r\n");
    Phone::new("office").respond(lab, request, 200, &said, "");
}

#[test]
fn rfc3903_6_what_a_server_publishes_counts_until_it_lapses() {
    let mut lab = Lab::new(open());
    let mut branch = Phone::new("alice");
    let first = publish(&mut lab, &mut branch, "", 600, "device INUSE PJSIP/7001\r\n");
    assert_eq!(device(&lab, "pjsip/7001"), DeviceState::InUse);
    lab.pass(Duration::from_secs(500));
    let second = publish(&mut lab, &mut branch, &first, 600, "device RINGING PJSIP/7002\r\n");
    assert_ne!(first, second, "6 step 6");
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::InUse, "what was said before still counts");
    assert_eq!(device(&lab, "PJSIP/7002"), DeviceState::Ringing);
    lab.pass(Duration::from_secs(599));
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::InUse);
    lab.pass(Duration::from_secs(1));
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::Invalid);
    assert_eq!(device(&lab, "PJSIP/7002"), DeviceState::Invalid);
    let late = headers("asterisk-devicestate", &second, 600);
    assert_eq!(line(&branch.ask(&mut lab, "PUBLISH", RESOURCE, &late, "")), "412");
    lab.rest();
}

#[test]
fn rfc3903_6_a_server_takes_back_what_it_published_or_begins_anew() {
    let mut lab = Lab::new(open());
    let mut branch = Phone::new("alice");
    let tag = publish(&mut lab, &mut branch, "", 600, "device INUSE PJSIP/7001\r\n");
    publish(&mut lab, &mut branch, &tag, 0, "");
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::Invalid);
    publish(&mut lab, &mut branch, "", 600, "device INUSE PJSIP/7001\r\n");
    // It was restarted: what it said before is over.
    publish(&mut lab, &mut branch, "", 600, "device INUSE PJSIP/7002\r\n");
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::Invalid);
    assert_eq!(device(&lab, "PJSIP/7002"), DeviceState::InUse);
    // The configuration no longer has it.
    lab.with(|sip, core| sip.configure(site(), core.now));
    assert_eq!(device(&lab, "PJSIP/7002"), DeviceState::Invalid);
    lab.rest();
}

#[test]
fn rfc3903_6_strangers_publish_nothing_and_learn_nothing() {
    for (name, phone) in [
        ("no password", Phone::new("alice").password(None)),
        ("a wrong one", Phone::new("alice").password(Some("guess"))),
        ("nobody known", Phone::new("mallory").password(None)),
    ] {
        let mut lab = Lab::new(open());
        let mut phone = phone;
        let asked = headers("asterisk-devicestate", "", 600);
        for uri in [RESOURCE, "sip:nothing@strowger"] {
            let answer = phone.ask(&mut lab, "PUBLISH", uri, &asked, "device INUSE PJSIP/7001\r\n");
            assert_eq!(line(&answer), "401", "{name}: {uri}");
        }
        assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::Invalid, "{name}");
        lab.rest();
    }
}

#[test]
fn rfc3903_6_each_refusal_says_what_would_do() {
    let ours = "device INUSE PJSIP/7001\r\n";
    let devices = |tag: &str, expires| headers("asterisk-devicestate", tag, expires);
    let json = devices("", 600).replace(STATES, "application/json");
    for (name, user, uri, headers, body, status, told) in [
        ("no such resource", "alice", "sip:x@strowger", devices("", 600), ours, "404", None),
        ("another's", "bob", RESOURCE, devices("", 600), ours, "403", None),
        (
            "a package that nobody publishes here",
            "alice",
            RESOURCE,
            headers("presence", "", 600),
            ours,
            "489",
            Some(("Allow-Events", "asterisk-devicestate, asterisk-mwi")),
        ),
        ("too brief", "alice", RESOURCE, devices("", 59), ours, "423", Some(("Min-Expires", "60"))),
        ("another body", "alice", RESOURCE, json, "{}", "415", Some(("Accept", STATES))),
        ("a body with a fault", "alice", RESOURCE, devices("", 600), "device ASLEEP x\r\n", "400", None),
        ("nothing to publish", "alice", RESOURCE, devices("", 600), "", "400", None),
        ("a tag that is not there", "alice", RESOURCE, devices("abc", 600), ours, "412", None),
    ] {
        let mut lab = Lab::new(open());
        let answer = Phone::new(user).ask(&mut lab, "PUBLISH", uri, &headers, body);
        assert_eq!(line(&answer), status, "{name}");
        if let Some((header_name, value)) = told {
            assert_eq!(header(&answer, header_name), value, "{name}");
        }
        assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::Invalid, "{name}");
        lab.rest();
    }
}

#[test]
fn only_what_the_filters_let_pass_is_believed() {
    let mut config = open();
    let exchange = Exchange { devices: Some(begins_with("PJSIP/")), mailboxes: None, ..Exchange::default() };
    config.exchanges.insert("branch".into(), Rc::new(exchange));
    let mut lab = Lab::new(config);
    let mut branch = Phone::new("alice");
    publish(&mut lab, &mut branch, "", 600, "device INUSE PJSIP/7001\r\ndevice INUSE Custom:lamp\r\n");
    assert_eq!(device(&lab, "PJSIP/7001"), DeviceState::InUse);
    assert_eq!(device(&lab, "Custom:lamp"), DeviceState::Invalid);
    let asked = headers("asterisk-mwi", "", 600);
    lab.pass(Duration::from_secs(1));
    let answer = branch.ask(&mut lab, "PUBLISH", RESOURCE, &asked, "mailbox 2/5 7001@default\r\n");
    assert_eq!(line(&answer), "200");
    assert_eq!(lab.shard.core.borrow().mailbox("7001"), None, "mailbox_state=no");
    lab.rest();
}

#[test]
fn rfc3903_4_1_mailboxes_are_told_and_what_comes_back_is_not_told_again() {
    let mailbox = |new| Some(Mailbox { new, old: 0 });
    let mut lab = Lab::new(telling("asterisk-mwi", |_| {}));
    let first = published(&mut lab);
    assert_eq!(String::from_utf8_lossy(first.view().request_uri_bytes()), format!("sip:office@{PHONE}"));
    assert_eq!((header(&first, "Event"), header(&first, "Expires")), ("asterisk-mwi".into(), "600".into()));
    assert_eq!((header(&first, "SIP-If-Match"), header(&first, "Contact")), (String::new(), String::new()));
    assert_eq!(body(&first), "\r\n", "there is nothing to tell");
    accept(&mut lab, &first, "a", 600);
    lab.with(|_, core| core.set_mailbox("6001", mailbox(1)));
    let second = published(&mut lab);
    assert_eq!(header(&second, "SIP-If-Match"), "a");
    assert_eq!(
        (header(&second, "Content-Type"), body(&second)),
        (STATES.into(), "mailbox 1/0 6001@default\r\n".into())
    );
    // What changes meanwhile goes with the next.
    lab.with(|_, core| core.set_mailbox("6001", mailbox(2)));
    lab.with(|_, core| core.set_mailbox("6002", mailbox(3)));
    assert_eq!(lab.lines(), [""; 0], "one PUBLISH is out at a time");
    accept(&mut lab, &second, "b", 600);
    let third = published(&mut lab);
    assert_eq!(body(&third), "mailbox 2/0 6001@default\r\nmailbox 3/0 6002@default\r\n");
    accept(&mut lab, &third, "c", 600);
    // The other server says something of a mailbox.
    let asked = headers("asterisk-mwi", "", 600);
    let told = "mailbox 9/0 6001@default\r\n";
    assert_eq!(line(&Phone::new("alice").ask(&mut lab, "PUBLISH", RESOURCE, &asked, told)), "200");
    assert_eq!(lab.shard.core.borrow().mailbox("6001"), mailbox(9));
    assert_eq!(lab.lines(), [""; 0], "it is not told on");
    lab.with(|_, core| core.set_mailbox("6001", mailbox(2)));
    accept_next(&mut lab, "mailbox 2/0 6001@default\r\n");
    lab.with(|_, core| core.set_mailbox("6001", mailbox(9)));
    accept_next(&mut lab, "mailbox 9/0 6001@default\r\n");
}

/// The PUBLISH that has just left says this.
#[track_caller]
fn accept_next(lab: &mut Lab, said: &str) {
    let request = published(lab);
    assert_eq!(body(&request), said);
    accept(lab, &request, "next", 600);
}

#[test]
fn rfc3903_4_3_a_server_that_has_forgotten_is_told_everything_again() {
    let mut lab = Lab::new(telling("asterisk-mwi", |_| {}));
    lab.with(|_, core| core.set_mailbox("6001", Some(Mailbox { new: 1, old: 0 })));
    let first = published(&mut lab);
    accept(&mut lab, &first, "a", 600);
    accept_next(&mut lab, "mailbox 1/0 6001@default\r\n");
    // A refresh says nothing that is known.
    lab.pass(Duration::from_secs(560));
    let refresh = published(&mut lab);
    assert_eq!((header(&refresh, "SIP-If-Match"), body(&refresh)), ("next".into(), String::new()));
    Phone::new("office").respond(&mut lab, &refresh, 412, "", "");
    let anew = published(&mut lab);
    assert_eq!(
        (header(&anew, "SIP-If-Match"), body(&anew)),
        (String::new(), "mailbox 1/0 6001@default\r\n".into())
    );
    accept(&mut lab, &anew, "b", 600);
    // Its end is told, too.
    lab.with(|sip, core| sip.configure(site(), core.now));
    let end = published(&mut lab);
    assert_eq!((header(&end, "SIP-If-Match"), header(&end, "Expires")), ("b".into(), "0".into()));
    Phone::new("office").respond(&mut lab, &end, 200, "Expires: 0\r\n", "");
    lab.pass(Duration::from_secs(3600));
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn states_of_devices_are_told_in_datagrams_and_all_of_them_when_asked() {
    let mut lab = Lab::new(telling("asterisk-devicestate", |publish| {
        publish.devices = begins_with("PJSIP/");
        publish.asks = true;
    }));
    let first = published(&mut lab);
    assert!(body(&first).starts_with("refresh\r\ndevice UNAVAILABLE PJSIP/alice\r\n"), "{}", body(&first));
    accept(&mut lab, &first, "a", 600);
    lab.with(|_, core| {
        core.outward.devices.push(("Custom:lamp".to_owned(), DeviceState::InUse));
        for number in 0..40 {
            core.outward.devices.push((format!("PJSIP/60{number:02}"), DeviceState::InUse));
        }
    });
    let mut told = 0;
    for round in 0.. {
        let Some((_, request)) = lab.next() else { break };
        let said = body(&request);
        assert!(said.len() <= 800 && !said.contains("Custom"), "{said}");
        told += said.lines().count();
        accept(&mut lab, &request, &format!("b{round}"), 600);
    }
    assert_eq!(told, 40);
    // The other server has been restarted, and asks.
    let mut branch = Phone::new("alice");
    publish(&mut lab, &mut branch, "", 600, "refresh\r\n");
    let mut told = 0;
    for round in 0.. {
        let Some((_, request)) = lab.next() else { break };
        told += body(&request).lines().count();
        accept(&mut lab, &request, &format!("c{round}"), 600);
    }
    assert_eq!(told, 43, "forty devices and three endpoints");
}

#[test]
fn rfc4235_an_extension_is_published_under_its_own_user_as_watchers_would_read_it() {
    let mut lab = Lab::new(telling("dialog", |publish| {
        publish.multi_user = true;
        publish.from_uri = "sip:192.0.2.1".to_owned();
        publish.body = "application/dialog-info+xml".to_owned();
        publish.contexts = begins_with("phones");
        publish.extens = begins_with("6");
    }));
    assert!(lab.shard.core.borrow().outward.wants_extensions && lab.shard.core.borrow().outward.wants_all);
    let mut tell = |context: &str, exten: &str, state: Option<DeviceState>| {
        let extension = Watched { context: context.to_owned(), exten: exten.to_owned() };
        lab.with(|_, core| core.outward.extensions.push((extension, state)));
        lab.next().map(|(_, request)| {
            accept(&mut lab, &request, "a", 600);
            request
        })
    };
    assert!(tell("other", "600", Some(DeviceState::InUse)).is_none(), "@context");
    assert!(tell("phones", "700", Some(DeviceState::InUse)).is_none(), "@exten");
    let first = tell("phones", "600", Some(DeviceState::InUse)).unwrap();
    assert_eq!(String::from_utf8_lossy(first.view().request_uri_bytes()), format!("sip:600@{PHONE}"));
    assert!(header(&first, "From").starts_with("<sip:600@192.0.2.1>"), "{}", header(&first, "From"));
    assert_eq!(header(&first, "To"), "<sip:600@198.51.100.7>");
    assert_eq!(header(&first, "Content-Type"), "application/dialog-info+xml");
    assert!(body(&first).contains("version=\"0\"") && body(&first).contains("<state>confirmed</state>"));
    let second = tell("phones", "600", Some(DeviceState::NotInUse)).unwrap();
    assert_eq!(header(&second, "SIP-If-Match"), "a");
    assert!(body(&second).contains("version=\"1\"") && body(&second).contains("<state>terminated</state>"));
    let other = tell("phones", "601", Some(DeviceState::NotInUse)).unwrap();
    assert_eq!(header(&other, "SIP-If-Match"), "", "a publication of its own");
    assert!(tell("phones", "601", Some(DeviceState::NotInUse)).is_none(), "nothing has changed");
    let end = tell("phones", "601", None).unwrap();
    assert_eq!((header(&end, "Expires"), body(&end)), ("0".to_owned(), String::new()), "the hint is gone");
    assert!(tell("phones", "601", None).is_none());
}

#[test]
fn challenges_are_answered_and_a_publication_that_cannot_prove_itself_is_given_up() {
    const CHALLENGE: &str = "WWW-Authenticate: Digest realm=\"asterisk\", nonce=\"n1\", qop=\"auth\"\r\n";
    let mut lab = Lab::new(telling("asterisk-mwi", |publish| publish.outbound_auths = vec!["alice".into()]));
    let office = Phone::new("office");
    let first = published(&mut lab);
    office.respond(&mut lab, &first, 401, CHALLENGE, "");
    let proved = published(&mut lab);
    assert!(header(&proved, "Authorization").contains("username=\"alice\""));
    assert_eq!(body(&proved), "\r\n");
    accept(&mut lab, &proved, "a", 600);
    // Without a password: as often as the site says, ten minutes apart.
    let config = telling("asterisk-mwi", |_| {});
    let mut lab = Lab::new(config);
    for round in 0..2 {
        let request = published(&mut lab);
        office.respond(&mut lab, &request, 401, CHALLENGE, "");
        assert_eq!(lab.lines(), [""; 0], "{round}");
        lab.pass(Duration::from_secs(600));
    }
    lab.pass(Duration::from_secs(86_400));
    assert_eq!(lab.lines(), [""; 0], "max_auth_attempts");
}

#[test]
fn rfc3261_17_2_2_a_publish_that_comes_again_is_answered_as_before() {
    let mut lab = Lab::new(open());
    let mut branch = Phone::new("alice");
    let asked = headers("asterisk-devicestate", "", 600);
    let text = branch.request("PUBLISH", RESOURCE, &asked, "device INUSE PJSIP/7001\r\n");
    lab.receive(branch.flow, text);
    let challenge = lab.sent();
    let credentials = branch.credentials(&challenge, "PUBLISH", RESOURCE);
    let text =
        branch.request("PUBLISH", RESOURCE, &format!("{asked}{credentials}"), "device INUSE PJSIP/7001\r\n");
    lab.receive(branch.flow, text.clone());
    let first = lab.sent();
    lab.receive(branch.flow, text);
    let again = lab.sent();
    assert_eq!((line(&first), line(&again)), ("200".to_owned(), "200".to_owned()));
    assert_eq!(header(&first, "SIP-ETag"), header(&again, "SIP-ETag"));
}
