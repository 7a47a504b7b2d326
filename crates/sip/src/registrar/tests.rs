//! REGISTER by REGISTER, on invented time.

use super::*;
use crate::message::OwnedMessage;
use crate::stack::{PeerName, Protocol, TransportId};
use Cause::{Added, Expired, Refreshed, Removed};

fn source() -> Flow {
    Flow {
        transport: TransportId(0),
        protocol: Protocol::Udp,
        connection: None,
        name: PeerName::NONE,
        remote: "192.0.2.7:41234".parse().unwrap(),
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn register(call_id: &str, cseq: u32, headers: &str) -> OwnedMessage {
    let text = format!(
        "REGISTER sip:pbx SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK{cseq}\r\nFrom: <sip:a@pbx>;tag=1\r\n\
         To: <sip:a@pbx>\r\nCall-ID: {call_id}\r\nCSeq: {cseq} REGISTER\r\nUser-Agent: phone\r\n{headers}\r\n"
    );
    OwnedMessage::parse(text.into_bytes()).unwrap()
}

struct Site {
    registrar: Registrar,
    rules: Rules,
    changes: Vec<Change>,
}

impl Site {
    fn new(rules: Rules) -> Self {
        Self { registrar: Registrar::new(7), rules, changes: Vec::new() }
    }
    fn say(&mut self, seconds: u64, call_id: &str, cseq: u32, headers: &str) -> Result<(), Refusal> {
        let message = register(call_id, cseq, headers);
        let unavailable = |binding: &Binding| binding.uri.starts_with(b"sip:dead");
        let request = (&message.view(), source());
        self.registrar.register("a", &self.rules, request, &unavailable, at(seconds), &mut self.changes)
    }
    fn uris(&self) -> Vec<&str> {
        self.registrar.bindings("a").iter().map(|b| std::str::from_utf8(&b.uri).unwrap()).collect()
    }
    fn causes(&mut self) -> Vec<Cause> {
        self.changes.drain(..).map(|change| change.cause).collect()
    }
}

#[test]
fn rfc3261_10_3_bindings_are_added_refreshed_removed_and_expire() {
    let mut site = Site::new(Rules { max_contacts: 5, ..Rules::default() });
    site.say(0, "x", 1, "Contact: <sip:a@h1>;expires=100\r\nContact: <sip:a@h2>\r\nExpires: 200\r\n")
        .unwrap();
    assert_eq!(site.causes(), [Added, Added]);
    site.say(10, "x", 2, "Contact: <sip:a@H1>;expires=100\r\n").unwrap();
    assert_eq!(site.causes().len(), 2, "the spelling changed: the old spelling goes, the new one comes");
    assert_eq!(site.uris(), ["sip:a@h2", "sip:a@H1"]);
    site.say(20, "x", 3, "Contact: <sip:a@H1>;expires=100\r\n").unwrap();
    assert_eq!(site.causes(), [Refreshed]);
    site.say(30, "x", 4, "Contact: <sip:a@h2>;expires=0\r\n").unwrap();
    assert_eq!(site.causes(), [Removed]);
    let mut changes = Vec::new();
    site.registrar.due(at(119), &mut changes);
    assert!(changes.is_empty());
    while let Some(deadline) = site.registrar.deadline() {
        site.registrar.due(deadline, &mut changes);
        assert!(deadline <= at(200), "stale deadlines leave at their own time");
    }
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].cause, changes[0].binding.expires_at), (Expired, at(120)));
    assert!(site.registrar.is_empty());
}

#[test]
fn rfc3261_10_3_what_is_refused_changes_nothing() {
    let two = Rules { max_contacts: 2, ..Rules::default() };
    for (name, rules, headers, expected) in [
        ("star with another", two, "Contact: *\r\nContact: <sip:a@n>\r\nExpires: 0\r\n", Refusal::Malformed),
        ("star without Expires", two, "Contact: *\r\n", Refusal::Malformed),
        ("star with a lifetime", two, "Contact: *\r\nExpires: 60\r\n", Refusal::Malformed),
        ("unreadable contact", two, "Contact: <sip:a@n\r\n", Refusal::Malformed),
        ("a telephone's contact", two, "Contact: <tel:+4930>\r\n", Refusal::Malformed),
        ("a name's contact", two, "Contact: <urn:service:sos>\r\n", Refusal::Malformed),
        ("a mailbox's contact", two, "Contact: <mailto:a@n>\r\n", Refusal::Malformed),
        ("too many", two, "Contact: <sip:a@n>,<sip:a@m>\r\n", Refusal::TooMany),
        ("none allowed", Rules { max_contacts: 0, ..two }, "Contact: <sip:a@n>\r\n", Refusal::TooMany),
    ] {
        let mut site = Site::new(two);
        site.say(0, "x", 1, "Contact: <sip:a@old>\r\n").unwrap();
        let before = site.registrar.bindings("a").to_vec();
        (site.rules, site.changes) = (rules, Vec::new());
        assert_eq!(site.say(1, "x", 2, headers), Err(expected), "{name}");
        assert_eq!(site.registrar.bindings("a"), before, "{name}");
        assert!(site.changes.is_empty(), "{name}");
    }
}

#[test]
fn rfc3261_10_3_step_7_an_older_request_of_the_same_call_id_fails() {
    for (name, call_id, cseq, headers, expected) in [
        ("the same number says the same again", "x", 5, "Contact: <sip:a@old>\r\n", Ok(())),
        ("older number", "x", 4, "Contact: <sip:a@old>;expires=0\r\n", Err(Refusal::OutOfOrder)),
        ("older star", "x", 4, "Contact: *\r\nExpires: 0\r\n", Err(Refusal::OutOfOrder)),
        ("newer number", "x", 6, "Contact: <sip:a@old>\r\n", Ok(())),
        ("restarted phone", "y", 1, "Contact: <sip:a@old>\r\n", Ok(())),
        ("newer star", "x", 6, "Contact: *\r\nExpires: 0\r\n", Ok(())),
        ("question", "x", 1, "", Ok(())),
    ] {
        let mut site = Site::new(Rules { max_contacts: 3, ..Rules::default() });
        site.say(0, "x", 5, "Contact: <sip:a@old>\r\n").unwrap();
        assert_eq!(site.say(1, call_id, cseq, headers), expected, "{name}");
    }
}

#[test]
fn lifetimes_are_bounded_by_the_rules() {
    for (name, headers, granted) in [
        ("none asked", "Contact: <sip:a@h>\r\n", 3600),
        ("by header", "Contact: <sip:a@h>\r\nExpires: 120\r\n", 120),
        ("by parameter", "Contact: <sip:a@h>;expires=90\r\nExpires: 120\r\n", 90),
        ("too long", "Contact: <sip:a@h>;expires=99999\r\n", 7200),
        ("too brief (step 7)", "Contact: <sip:a@h>;expires=59\r\n", 60),
        ("too brief by header", "Contact: <sip:a@h>\r\nExpires: 1\r\n", 60),
        ("overflowing (RFC 3261 §10.3)", "Contact: <sip:a@h>;expires=99999999999999999999\r\n", 7200),
    ] {
        let mut site = Site::new(Rules::default());
        site.say(1, "x", 1, headers).unwrap();
        let binding = &site.registrar.bindings("a")[0];
        assert_eq!(binding.expires_at, at(1 + granted), "{name}");
        assert_eq!(
            binding.contact(at(1)),
            format!("<sip:a@h>;expires={}", granted - 1).into_bytes(),
            "{name}"
        );
    }
}

#[test]
fn a_contact_beyond_the_maximum_makes_room_as_the_rules_say() {
    let rules = Rules { max_contacts: 2, ..Rules::default() };
    let (existing, unavailable) =
        (Rules { remove_existing: true, ..rules }, Rules { remove_unavailable: true, ..rules });
    let both = Rules { remove_existing: true, ..unavailable };
    for (name, rules, first, expected) in [
        ("refused", rules, "sip:b@h", None),
        ("the one that would expire first goes", existing, "sip:b@h", Some(["sip:b@h", "sip:new@h"])),
        ("nobody is unavailable", unavailable, "sip:b@h", None),
        ("the unavailable one goes", unavailable, "sip:dead@h", Some(["sip:soon@h", "sip:new@h"])),
        ("the unavailable one goes first", both, "sip:dead@h", Some(["sip:soon@h", "sip:new@h"])),
    ] {
        let mut site = Site::new(rules);
        site.say(0, "x", 1, &format!("Contact: <{first}>;expires=600\r\n")).unwrap();
        site.say(0, "y", 1, "Contact: <sip:soon@h>;expires=60\r\n").unwrap();
        let said = site.say(1, "z", 1, "Contact: <sip:new@h>;expires=600\r\n");
        match expected {
            Some(expected) => assert_eq!(site.uris(), expected, "{name}"),
            None => assert_eq!(said, Err(Refusal::TooMany), "{name}"),
        }
    }
}

#[test]
fn rfc5626_a_phone_that_comes_back_on_another_connection_keeps_one_binding() {
    let mut site = Site::new(Rules { max_contacts: 5, ..Rules::default() });
    let contact = |port: u16| {
        format!("Contact: <sip:a@h:{port};transport=tcp>;reg-id=1;+sip.instance=\"<urn:uuid:1>\"\r\n")
    };
    site.say(0, "x", 1, &contact(1000)).unwrap();
    site.say(1, "y", 1, &contact(2000)).unwrap();
    assert_eq!(site.uris(), ["sip:a@h:2000;transport=tcp"]);
    assert_eq!(site.causes(), [Added, Refreshed]);
    assert_eq!(site.registrar.bindings("a")[0].instance.as_deref(), Some(&b"<urn:uuid:1>"[..]));
}

#[test]
fn rfc5626_6_a_flow_is_known_by_instance_and_reg_id_and_several_of_them_by_one_contact() {
    let contact = |params: &str| format!("Contact: <sip:a@h>{params}\r\nSupported: path, Outbound\r\n");
    let flow = |id: u32| contact(&format!(";reg-id={id};+sip.instance=\"<urn:uuid:1>\""));
    let rows: [(&str, [String; 2], &[&str]); 7] = [
        ("two flows", [flow(1), flow(2)], &["1", "2"]),
        ("one flow twice", [flow(1), flow(1)], &["1"]),
        ("another phone", [flow(1), contact(";reg-id=1;+sip.instance=\"<urn:uuid:2>\"")], &["1", "1"]),
        ("a flow of no instance is none", [contact(";reg-id=1"), contact(";reg-id=2")], &["-"]),
        ("nor is the flow 0", [flow(0), flow(0)], &["-"]),
        ("nor is one beyond the largest", [flow(2_147_483_648), flow(0)], &["-"]),
        ("a phone that gives flows up", [flow(1), contact("")], &["-"]),
    ];
    for (name, requests, expected) in rows {
        let mut site = Site::new(Rules { max_contacts: 5, ..Rules::default() });
        for (at, headers) in requests.iter().enumerate() {
            site.say(at as u64, &format!("call-{at}"), 1, headers).unwrap();
        }
        let bindings = site.registrar.bindings("a");
        let ids: Vec<String> =
            bindings.iter().map(|b| b.reg_id.map_or_else(|| "-".into(), |id| id.to_string())).collect();
        assert_eq!(ids, expected, "{name}");
        assert!(bindings.iter().all(|b| b.outbound == b.reg_id.is_some()), "{name}");
    }
    // Who names a flow and does not say what it is for means nothing by it.
    let mut site = Site::new(Rules::default());
    site.say(0, "x", 1, &flow(1).replace("Outbound", "timer")).unwrap();
    assert!(!site.registrar.bindings("a")[0].outbound);
    // One flow goes, and its twin stays; the journal keeps them apart too.
    let mut site = Site::new(Rules { max_contacts: 5, ..Rules::default() });
    site.say(0, "x", 1, &flow(1)).unwrap();
    site.say(0, "y", 1, &flow(2)).unwrap();
    let kept = site.registrar.bindings("a").to_vec();
    assert_eq!(
        String::from_utf8(kept[1].contact(at(0))).unwrap(),
        "<sip:a@h>;reg-id=2;+sip.instance=\"<urn:uuid:1>\";expires=3599"
    );
    let mut changes = Vec::new();
    assert!(site.registrar.remove_those("a", &|binding| binding.reg_id == Some(1), at(1), &mut changes));
    assert_eq!((changes.len(), site.registrar.bindings("a")), (1, &kept[1..]));
    let mut other = Registrar::new(2);
    kept.iter().chain(&kept).for_each(|binding| other.restore("a", binding.clone(), at(1)));
    assert_eq!(other.bindings("a"), kept);
    // What could end the quotation is not said again.
    let mut odd = kept[1].clone();
    odd.instance = Some(b"<urn:x>\"\r\nInjected: 1".to_vec());
    assert_eq!(odd.contact(at(0)), b"<sip:a@h>;expires=3599");
}

#[test]
fn path_source_and_q_are_kept_and_survive_the_store() {
    let mut site = Site::new(Rules { support_path: true, ..Rules::default() });
    site.say(0, "x", 1, "Contact: <sip:a@10.0.0.1>;q=0.25\r\nPath: <sip:p1;lr>, <sip:p2;lr>\r\n").unwrap();
    let binding = site.registrar.bindings("a")[0].clone();
    assert_eq!(binding.path, [b"<sip:p1;lr>".to_vec(), b"<sip:p2;lr>".to_vec()]);
    assert_eq!((binding.source, binding.q, binding.user_agent.as_slice()), (source(), 250, &b"phone"[..]));
    assert_eq!(binding.contact(at(0)), b"<sip:a@10.0.0.1>;expires=3599");
    let mut other = Registrar::new(8);
    other.restore("a", binding.clone(), at(1));
    other.restore("b", binding.clone(), at(3600));
    assert_eq!((other.bindings("a"), other.len()), (&[binding][..], 1), "what has lapsed is not restored");
}

#[test]
fn fifty_thousand_addresses_come_and_go() {
    let mut registrar = Registrar::new(1);
    let (rules, mut changes) = (Rules::default(), Vec::new());
    let message = register("x", 1, "Contact: <sip:a@h>;expires=60\r\n");
    for n in 0..50_000 {
        let request = (&message.view(), source());
        registrar.register(&n.to_string(), &rules, request, &|_| false, at(0), &mut changes).unwrap();
    }
    assert_eq!((registrar.len(), changes.len()), (50_000, 50_000));
    registrar.due(at(60), &mut changes);
    assert_eq!((registrar.len(), changes.len(), registrar.deadline()), (0, 100_000, None));
}

#[test]
fn a_rewritten_contact_is_where_it_came_from_and_is_known_again_by_what_it_said() {
    let from = |contact: &str| format!("Contact: <{contact}>\r\n");
    for (name, contact, stored, told) in [
        (
            "behind a router",
            "sip:a@10.1.1.9:5099;transport=UDP;x=1",
            "sip:a@192.0.2.7:41234;x=1;x-ast-orig-host=10.1.1.9:5099",
            "<sip:a@192.0.2.7:41234;x=1>;expires=3599",
        ),
        (
            "by a name",
            "sip:a@phone.example",
            "sip:a@192.0.2.7:41234;x-ast-orig-host=phone.example",
            "<sip:a@192.0.2.7:41234>;expires=3599",
        ),
        ("another port", "sip:a@192.0.2.7", "sip:a@192.0.2.7:41234", "<sip:a@192.0.2.7:41234>;expires=3599"),
        (
            "it is there",
            "sip:a@192.0.2.7:41234",
            "sip:a@192.0.2.7:41234",
            "<sip:a@192.0.2.7:41234>;expires=3599",
        ),
    ] {
        let mut site = Site::new(Rules { max_contacts: 5, rewrites: true, ..Rules::default() });
        site.say(0, "x", 1, &from(contact)).unwrap();
        assert_eq!(site.uris(), [stored], "{name}");
        let binding = site.registrar.bindings("a")[0].contact(at(0));
        assert_eq!(String::from_utf8_lossy(&binding), told, "{name}");
        site.say(1, "x", 2, &from(contact)).unwrap();
        assert_eq!(site.uris(), [stored], "{name}: once");
        site.say(2, "x", 3, &format!("Contact: <{contact}>;expires=0\r\n")).unwrap();
        assert!(site.uris().is_empty(), "{name}: taken away");
        assert_eq!(site.causes(), [Added, Refreshed, Removed], "{name}");
    }
}
