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

/// A document of several parts: the one about the list, and the others with their Content-ID and type.
struct Parts {
    index: String,
    parts: Vec<(String, String, String)>,
}

impl Parts {
    #[track_caller]
    fn read(kind: &str, text: &str) -> Self {
        let boundary =
            kind.strip_prefix("multipart/related;type=\"application/rlmi+xml\";boundary=").expect(kind);
        assert!(boundary.bytes().all(|byte| byte.is_ascii_lowercase()), "{kind}");
        let whole = text.strip_suffix(&format!("--{boundary}--\r\n")).expect(text);
        let part = |part: &str| {
            let (head, body) = part.split_once("\r\n\r\n").unwrap();
            let body = body.strip_suffix("\r\n").unwrap();
            let names: Vec<&str> = head.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
            assert_eq!(names, ["Content-ID", "Content-Type", "Content-Length"], "{head}");
            let value = |at: usize| head.lines().nth(at).unwrap().split_once(": ").unwrap().1.to_owned();
            assert_eq!(value(2), body.len().to_string());
            (value(0), value(1), body.to_owned())
        };
        let mut parts: Vec<_> = whole.split(&format!("--{boundary}\r\n")).skip(1).map(part).collect();
        let (_, kind, index) = parts.remove(0);
        assert_eq!(kind, "application/rlmi+xml");
        Self { index, parts }
    }
    /// What of each resource is told, as `600 active`.
    fn resources(&self) -> Vec<String> {
        let resources = self.index.split("<resource uri=\"sip:").skip(1);
        let between = |text: &str, from: &str, to: &str| {
            text.split_once(from).map(|(_, rest)| rest.split(to).next().unwrap().to_owned())
        };
        let text = |resource: &str| {
            let (user, rest) = resource.split_once('@').unwrap();
            assert!(rest.starts_with("192.0.2.1:5060\">"), "{resource}");
            assert_eq!(between(resource, "<name>", "</name>").as_deref(), Some(user));
            if let Some(cid) = between(resource, "cid=\"", "\"") {
                assert!(self.parts.iter().any(|(own, ..)| *own == format!("<{cid}>")), "{cid} has no part");
            }
            format!("{user} {}", between(resource, "state=\"", "\"").unwrap())
        };
        resources.map(text).collect()
    }
    fn is_full(&self) -> bool {
        self.index.contains("fullState=\"true\"")
    }
    fn version(&self) -> &str {
        self.index.split("version=\"").nth(2).unwrap().split('"').next().unwrap()
    }
    /// The list in the list that is this part.
    #[track_caller]
    fn inner(&self, at: usize) -> Self {
        let (_, kind, text) = &self.parts[at];
        Self::read(kind, text)
    }
}

/// A NOTIFY about a list, answered 200.
struct Told {
    standing: String,
    parts: Parts,
}

#[track_caller]
fn told(lab: &mut Lab, phone: &Phone) -> Told {
    let notify = lab.sent();
    assert_eq!(line(&notify), "NOTIFY");
    assert_eq!(header(&notify, "Require"), "eventlist");
    let parts = Parts::read(&header(&notify, "Content-Type"), &body(&notify));
    phone.respond(lab, &notify, 200, "", "");
    Told { standing: header(&notify, "Subscription-State"), parts }
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
        let Told { standing, parts: first } = told(&mut lab, &alice);
        assert_eq!(standing, "active;expires=600");
        assert_eq!(first.resources(), ["600 active", "601 active", "inner active"], "{name}");
        assert_eq!((first.is_full(), first.version(), first.parts.len()), (true, "0", 3));
        assert!(first.parts[0].2.contains("<basic>open</basic>"), "{}", first.parts[0].2);
        let inner = first.inner(2);
        assert_eq!((inner.resources(), inner.version()), (vec!["602 active".to_owned()], "0"), "{name}");
        tell(&mut lab, "601", Some(DeviceState::InUse));
        let second = told(&mut lab, &alice).parts;
        assert_eq!((second.is_full(), second.version()), (full_state, "1"), "{name}");
        assert_eq!(second.resources().len(), if full_state { 3 } else { 1 }, "{name}");
        assert!(second.resources().contains(&"601 active".to_owned()), "{name}: {}", second.index);
        // What changes in the inner list is told of both, and each counts by itself.
        tell(&mut lab, "602", Some(DeviceState::Ringing));
        let third = told(&mut lab, &alice).parts;
        let inner = third.inner(third.parts.len() - 1);
        let versions = if full_state { ("2", "2") } else { ("2", "1") };
        assert_eq!((third.version(), inner.version()), versions, "{name}");
        assert_eq!(
            (inner.is_full(), inner.resources()),
            (full_state, vec!["602 active".to_owned()]),
            "{name}"
        );
        // A refresh tells all again.
        alice.inside_proved(&mut lab, "SUBSCRIBE", EVENT, "");
        assert_eq!(line(&lab.sent()), "200");
        let again = told(&mut lab, &alice).parts;
        assert_eq!((again.is_full(), again.resources().len()), (true, 3), "{name}");
        // One that is not there any more ends, the list goes on.
        tell(&mut lab, "600", None);
        let gone = told(&mut lab, &alice).parts;
        assert!(gone.resources().contains(&"600 terminated".to_owned()), "{name}: {}", gone.index);
        // At the end everything is told once more, and that it ends.
        alice.inside_proved(&mut lab, "SUBSCRIBE", &EVENT.replace("600", "0"), "");
        assert_eq!(line(&lab.sent()), "200");
        let Told { standing, parts: last } = told(&mut lab, &alice);
        assert_eq!(standing, "terminated");
        assert_eq!(last.resources(), ["600 terminated", "601 terminated", "inner terminated"], "{name}");
        assert_eq!(last.inner(1).resources(), ["602 terminated"], "{name}");
        assert!(last.is_full() && last.parts[0].2.contains("<note>On the phone</note>"), "{name}");
        lab.rest();
    }
}

#[test]
fn rfc4662_5_a_document_about_a_list_is_spelt_as_the_field_spells_it() {
    let mut lab = laboratory(|lamps| lamps.items = vec!["inner".to_owned(), "600".to_owned()]);
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, "lamps", EVENT);
    for exten in ["600", "602"] {
        tell(&mut lab, exten, Some(DeviceState::NotInUse));
    }
    let first = told(&mut lab, &alice).parts;
    let mut text = first.index.clone();
    // What is drawn by lot.
    for (at, mark) in ["id=\"", "id=\"", "cid=\"", "cid=\""].iter().enumerate() {
        let from = text.match_indices(mark).nth(if at < 2 { at * 2 } else { at - 2 }).unwrap().0 + mark.len();
        let to = from + text[from..].find('"').unwrap();
        let drawn = if at < 2 { "X" } else { "X@192.0.2.1" };
        assert_eq!(text[from..to].split('@').nth(1), drawn.split('@').nth(1));
        text.replace_range(from..to, drawn);
    }
    assert_eq!(
        text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <list xmlns=\"urn:ietf:params:xml:ns:rlmi\" uri=\"sip:lamps@192.0.2.1:5060\" version=\"0\" fullState=\"true\">\n \
         <name>lamps</name>\n \
         <resource uri=\"sip:inner@192.0.2.1:5060\">\n  <name>inner</name>\n  \
         <instance id=\"X\" state=\"active\" cid=\"X@192.0.2.1\" />\n </resource>\n \
         <resource uri=\"sip:600@192.0.2.1:5060\">\n  <name>600</name>\n  \
         <instance id=\"X\" state=\"active\" cid=\"X@192.0.2.1\" />\n </resource>\n</list>\n"
    );
    assert!(first.parts[1].2.contains("entity=\"sip:600@192.0.2.1:5060\""), "{}", first.parts[1].2);
}

#[test]
fn every_name_stands_once_in_a_tree_of_lists_and_what_means_nothing_is_left_out() {
    for (name, lists, expected) in [
        ("twice in one list", &[("lamps", &["600", "601", "600"][..])][..], "600 601"),
        ("a loop", &[("lamps", &["600", "inner"]), ("inner", &["lamps", "601"])], "600 (601)"),
        ("first below, then above", &[("lamps", &["inner", "600"]), ("inner", &["600", "601"])], "(600 601)"),
        ("first above, then below", &[("lamps", &["600", "inner"]), ("inner", &["600", "601"])], "600 (601)"),
        ("nothing left of the inner one", &[("lamps", &["600", "inner"]), ("inner", &["600", "500"])], "600"),
        ("no hint", &[("lamps", &["500", "600"])], "600"),
        (
            "a list goes before a hint of its name",
            &[("lamps", &["600", "601"]), ("601", &["602"])],
            "600 (602)",
        ),
        (
            "three deep",
            &[("lamps", &["inner", "600"]), ("inner", &["deep", "601"]), ("deep", &["602"])],
            "((602) 601) 600",
        ),
    ] {
        let mut config = site();
        for (name, items) in lists {
            config.lists.insert((*name).into(), Rc::new(list("presence", items)));
        }
        let mut lab = Lab::new(config);
        let mut alice = Phone::new("alice");
        subscribe(&mut lab, &mut alice, "lamps", EVENT);
        for exten in ["600", "601", "602"] {
            tell(&mut lab, exten, Some(DeviceState::NotInUse));
        }
        fn tree(parts: &Parts) -> String {
            let names = parts.resources().into_iter().enumerate().map(|(at, resource)| {
                match parts.parts[at].1.starts_with("multipart/") {
                    true => format!("({})", tree(&parts.inner(at))),
                    false => resource.split(' ').next().unwrap().to_owned(),
                }
            });
            names.collect::<Vec<_>>().join(" ")
        }
        assert_eq!(tree(&told(&mut lab, &alice).parts), expected, "{name}");
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
    });
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, "lamps", EVENT);
    for exten in ["600", "601", "602"] {
        tell(&mut lab, exten, Some(DeviceState::NotInUse));
    }
    told(&mut lab, &alice);
    tell(&mut lab, "600", Some(DeviceState::Ringing));
    lab.pass(Duration::from_millis(400));
    tell(&mut lab, "600", Some(DeviceState::InUse));
    tell(&mut lab, "602", Some(DeviceState::InUse));
    assert_eq!(lab.lines(), [""; 0]);
    lab.pass(Duration::from_millis(100));
    let second = told(&mut lab, &alice).parts;
    assert_eq!(second.resources(), ["600 active", "inner active"]);
    assert!(
        second.parts[0].2.contains("On the phone") && second.inner(1).parts[0].2.contains("On the phone")
    );
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn rfc3842_mailboxes_of_several_aors_are_one_list() {
    let mut lab = laboratory(|_| {});
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, "voice", "Event: message-summary\r\nSupported: eventlist\r\n");
    let first = told(&mut lab, &alice).parts;
    assert_eq!(first.resources(), ["box active"]);
    lab.with(|_, core| core.set_mailbox("100@default", Some(Mailbox { new: 2, old: 1 })));
    let second = told(&mut lab, &alice).parts;
    assert!(second.parts[0].2.contains("Voice-Message: 2/1"), "{}", second.parts[0].2);
}
