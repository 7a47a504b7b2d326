//! Resource lists (RFC 4662): one subscription to many things.

use core::time::Duration;
use std::rc::Rc;

use ::sip::OwnedMessage;
use call::{DeviceState, Mailbox, Watched};
use driver::sip::ResourceList;

use crate::lab::{Lab, aor, body, endpoint, header, line, site};
use crate::phone::Phone;

const EVENT: &str = "Event: presence\r\nSupported: eventlist\r\nExpires: 600\r\n";

fn list(event: &str, items: &[&str]) -> ResourceList {
    let items = items.iter().map(|item| (*item).to_owned()).collect();
    ResourceList { event: event.to_owned(), items, ..ResourceList::default() }
}

fn laboratory(change: impl FnOnce(&mut ResourceList)) -> Lab {
    let mut config = site();
    let mut lamps = list("presence", &["600", "601", "inner", "nobody", "600"]);
    change(&mut lamps);
    config.lists.insert("lamps".into(), Rc::new(lamps));
    config.lists.insert("inner".into(), Rc::new(list("presence", &["602", "lamps"])));
    config.lists.insert("voice".into(), Rc::new(list("message-summary", &["box", "nobody"])));
    let mailboxes = vec!["100@default".to_owned()];
    let held = driver::sip::Aor { mailboxes, voicemail: "*97@pbx".to_owned(), ..aor("box") };
    crate::lab::add(&mut config, endpoint("box"), held);
    Lab::new(config)
}

fn tell(lab: &mut Lab, exten: &str, state: Option<DeviceState>) {
    let extension = Rc::new(Watched { context: "phones".to_owned(), exten: exten.to_owned() });
    lab.with(|_, core| core.board.tell(&extension, state));
}

#[track_caller]
fn subscribe(lab: &mut Lab, phone: &mut Phone, name: &str, headers: &str) -> OwnedMessage {
    let answer = phone.ask(lab, "SUBSCRIBE", &format!("sip:{name}@strowger"), headers, "");
    assert_eq!(line(&answer), "200");
    assert_eq!(header(&answer, "Require"), "eventlist");
    phone.learn(&answer);
    answer
}

/// A NOTIFY about a list, answered 200: the document about the list, and the parts by their Content-ID.
struct Told {
    standing: String,
    index: String,
    parts: Vec<(String, String)>,
}

#[track_caller]
fn told(lab: &mut Lab, phone: &Phone) -> Told {
    let notify = lab.sent();
    assert_eq!(line(&notify), "NOTIFY");
    assert_eq!(header(&notify, "Require"), "eventlist");
    let kind = header(&notify, "Content-Type");
    let parameter = |name: &str| {
        let (_, rest) = kind.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert!(kind.starts_with("multipart/related;") && parameter("type") == "application/rlmi+xml", "{kind}");
    let (boundary, text) = (parameter("boundary"), body(&notify));
    assert!(text.ends_with(&format!("--{boundary}--\r\n")), "{text}");
    let mut parts: Vec<(String, String)> = text
        .split(&format!("--{boundary}\r\n"))
        .skip(1)
        .map(|part| {
            let (head, rest) = part.split_once("\r\n\r\n").unwrap();
            let cid = head.lines().find_map(|line| line.strip_prefix("Content-ID: ")).unwrap();
            (cid.to_owned(), rest.to_owned())
        })
        .collect();
    let (root, index) = parts.remove(0);
    assert_eq!(root, parameter("start"));
    phone.respond(lab, &notify, 200, "", "");
    Told { standing: header(&notify, "Subscription-State"), index, parts }
}

impl Told {
    /// What of each resource is told, as `600 active`.
    fn resources(&self) -> Vec<String> {
        let resources = self.index.split("<resource uri=\"sip:").skip(1);
        let text = |resource: &str| {
            let user = resource.split('@').next().unwrap();
            let state = resource.split("state=\"").nth(1).unwrap().split('"').next().unwrap();
            if let Some(cid) = resource.split("cid=\"").nth(1) {
                let cid = format!("<{}>", cid.split('"').next().unwrap());
                assert!(self.parts.iter().any(|(own, _)| *own == cid), "{cid} has no part");
            }
            format!("{user} {state}")
        };
        resources.map(text).collect()
    }
    fn is_full(&self) -> bool {
        self.index.contains("fullState=\"true\"")
    }
    fn version(&self) -> &str {
        self.index.split("version=\"").nth(2).unwrap().split('"').next().unwrap()
    }
}

#[test]
fn rfc4662_4_3_a_list_is_told_whole_at_first_and_then_what_has_changed() {
    for (name, full_state) in [("changes only", false), ("full_state=yes", true)] {
        let mut lab = laboratory(|lamps| lamps.full_state = full_state);
        let mut alice = Phone::new("alice");
        subscribe(&mut lab, &mut alice, "lamps", EVENT);
        for exten in ["600", "601"] {
            tell(&mut lab, exten, Some(DeviceState::NotInUse));
        }
        assert_eq!(lab.lines(), [""; 0], "{name}: the state of one is not known");
        tell(&mut lab, "602", Some(DeviceState::NotInUse));
        let first = told(&mut lab, &alice);
        assert_eq!(first.standing, "active;expires=600");
        assert_eq!(
            first.resources(),
            ["600 active", "601 active", "602 active"],
            "{name}: those of the inner list too"
        );
        assert_eq!((first.is_full(), first.version(), first.parts.len()), (true, "0", 3));
        assert!(first.parts[0].1.contains("<basic>open</basic>"), "{}", first.parts[0].1);
        tell(&mut lab, "601", Some(DeviceState::InUse));
        let second = told(&mut lab, &alice);
        assert_eq!((second.is_full(), second.version()), (full_state, "1"), "{name}");
        assert_eq!(second.resources().len(), if full_state { 3 } else { 1 }, "{name}");
        assert!(second.index.contains("sip:601@strowger"), "{name}: {}", second.index);
        // A refresh tells all again.
        alice.inside_proved(&mut lab, "SUBSCRIBE", EVENT, "");
        assert_eq!(line(&lab.sent()), "200");
        let third = told(&mut lab, &alice);
        assert_eq!((third.is_full(), third.resources().len()), (true, 3), "{name}");
        // One that is not there any more ends, the list goes on.
        tell(&mut lab, "600", None);
        let gone = told(&mut lab, &alice);
        assert!(gone.resources().contains(&"600 terminated".to_owned()), "{name}: {}", gone.index);
        alice.inside_proved(&mut lab, "SUBSCRIBE", &EVENT.replace("600", "0"), "");
        assert_eq!(line(&lab.sent()), "200");
        assert_eq!(told(&mut lab, &alice).standing, "terminated;reason=timeout");
        lab.rest();
    }
}

#[test]
fn rfc4662_4_1_a_list_is_nothing_to_who_does_not_know_lists() {
    for (name, resource, headers, status) in [
        ("no eventlist", "lamps", "Event: presence\r\n", "404"),
        ("another package", "lamps", "Event: dialog\r\nSupported: eventlist\r\n", "489"),
        ("nothing of it is there", "empty", "Event: presence\r\nSupported: eventlist\r\n", "500"),
        ("required", "lamps", "Event: presence\r\nRequire: eventlist\r\n", "200"),
    ] {
        let mut config = site();
        config.lists.insert("lamps".into(), Rc::new(list("presence", &["600"])));
        config.lists.insert("empty".into(), Rc::new(list("presence", &["nobody"])));
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        let answer = alice.ask(&mut lab, "SUBSCRIBE", &format!("sip:{resource}@strowger"), headers, "");
        assert_eq!(line(&answer), status, "{name}");
    }
}

#[test]
fn notification_batch_interval_gathers_changes_into_one_document() {
    let mut lab = laboratory(|lamps| {
        lamps.batch = Duration::from_millis(500);
        lamps.display_names = true;
    });
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, "lamps", EVENT);
    for exten in ["600", "601", "602"] {
        tell(&mut lab, exten, Some(DeviceState::NotInUse));
    }
    let first = told(&mut lab, &alice);
    assert!(first.index.contains("<name>601</name>"), "{}", first.index);
    tell(&mut lab, "600", Some(DeviceState::Ringing));
    lab.pass(Duration::from_millis(400));
    tell(&mut lab, "600", Some(DeviceState::InUse));
    tell(&mut lab, "602", Some(DeviceState::InUse));
    assert_eq!(lab.lines(), [""; 0]);
    lab.pass(Duration::from_millis(100));
    let second = told(&mut lab, &alice);
    assert_eq!(second.resources(), ["600 active", "602 active"]);
    assert!(second.parts.iter().all(|(_, part)| part.contains("On the phone")));
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn rfc3842_mailboxes_of_several_aors_are_one_list() {
    let mut lab = laboratory(|_| {});
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, "voice", "Event: message-summary\r\nSupported: eventlist\r\n");
    let first = told(&mut lab, &alice);
    assert_eq!(first.resources(), ["box active"]);
    lab.with(|_, core| core.set_mailbox("100@default", Some(Mailbox { new: 2, old: 1 })));
    let second = told(&mut lab, &alice);
    assert!(second.parts[0].1.contains("Voice-Message: 2/1"), "{}", second.parts[0].1);
}
