//! `as-feature-event`: phones whose keys for call forward and do-not-disturb show what the database says, and set it.

use ::sip::OwnedMessage;
use call::PartyId;
use driver::sip::{KeptSubscription, SubscriptionChange};

use crate::lab::{Lab, body, change, header, line, site};
use crate::phone::Phone;

const ASK: &str = "Event: as-feature-event\r\nAccept: application/x-as-feature-event+xml\r\n";

fn disturb(on: bool) -> String {
    format!(
        "<?xml version=\"1.0\"?>\r\n<SetDoNotDisturb xmlns=\"http://www.ecma-international.org/standards/ecma-323/csta/ed3\">\
         <device/><doNotDisturbOn>{on}</doNotDisturbOn></SetDoNotDisturb>"
    )
}

fn forward(when: &str, active: bool, to: &str) -> String {
    format!(
        "<SetForwarding xmlns=\"http://www.ecma-international.org/standards/ecma-323/csta/ed3\"><device>alice</device>\
         <forwardingType>{when}</forwardingType><activateForward>{active}</activateForward><forwardDN>{to}</forwardDN>\
         <ringCount>3</ringCount></SetForwarding>"
    )
}

fn with_body(content_type: &str) -> String {
    format!("{ASK}Content-Type: {content_type}\r\n")
}

fn setting() -> String {
    with_body("application/x-as-feature-event+xml")
}

fn subscribe(lab: &mut Lab, phone: &mut Phone, headers: &str, body: &str) -> OwnedMessage {
    let accepted = phone.ask(lab, "SUBSCRIBE", "sip:anything@strowger", headers, body);
    if line(&accepted) == "200" {
        phone.learn(&accepted);
    }
    accepted
}

/// What a NOTIFY says, a word for each of its documents.
fn told_in(notify: &OwnedMessage) -> Vec<String> {
    let text = body(notify);
    let value = |part: &str, name: &str| {
        let rest = part.split(&format!("<{name}>")).nth(1)?;
        Some(rest.split("</").next().unwrap_or_default().to_owned())
    };
    let word = |part: &str| {
        if let Some(on) = value(part, "doNotDisturbOn") {
            return Some(format!("DND {on}"));
        }
        let when = value(part, "forwardingType")?;
        let rings = value(part, "ringCount").map(|rings| format!(" {rings}")).unwrap_or_default();
        Some(format!("{when} {} {}{rings}", value(part, "forwardStatus")?, value(part, "forwardTo")?))
    };
    text.split("<?xml").filter_map(word).collect()
}

/// The next NOTIFY, answered with 200.
#[track_caller]
fn notified(lab: &mut Lab, phone: &Phone) -> OwnedMessage {
    let notify = lab.sent();
    assert_eq!((line(&notify).as_str(), header(&notify, "Event").as_str()), ("NOTIFY", "as-feature-event"));
    phone.respond(lab, &notify, 200, "", "");
    notify
}

#[track_caller]
fn told(lab: &mut Lab, phone: &Phone) -> Vec<String> {
    told_in(&notified(lab, phone))
}

fn stored(lab: &Lab, family: &str, key: &str) -> Option<String> {
    lab.shard.core.borrow().services.db.get(family, key)
}

fn store(lab: &mut Lab, family: &str, key: &str, value: Option<&str>) {
    lab.with(|_, core| match value {
        Some(value) => assert!(core.services.db.put(family, key, value)),
        None => assert!(core.services.db.delete(family, key)),
    });
}

const ALL_OFF: [&str; 4] =
    ["DND false", "forwardImmediate false ", "forwardBusy false ", "forwardNoAns false "];

/// A phone that has been told how everything stands.
fn subscribed(lab: &mut Lab, user: &str, call: &str) -> Phone {
    let mut phone = Phone::new(user).call(call);
    // A nonce of another moment is another one.
    lab.pass(core::time::Duration::from_millis(1));
    assert_eq!(line(&subscribe(lab, &mut phone, ASK, "")), "200");
    told(lab, &phone);
    phone
}

#[test]
fn rfc6665_4_2_1_a_phone_is_told_how_all_its_keys_stand_then_what_becomes_another() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    store(&mut lab, "CFNA", "alice", Some("6002"));
    store(&mut lab, "CFNARINGS", "alice", Some("3"));
    let accepted = subscribe(&mut lab, &mut alice, ASK, "");
    assert_eq!((line(&accepted).as_str(), header(&accepted, "Expires").as_str()), ("200", "3600"));
    let notify = notified(&mut lab, &alice);
    assert!(header(&notify, "Content-Type").starts_with("multipart/mixed;boundary="));
    assert_eq!(told_in(&notify), [ALL_OFF[0], ALL_OFF[1], ALL_OFF[2], "forwardNoAns true 6002 3"]);
    assert!(body(&notify).contains("<device>alice</device>"));
    for (family, value, expected) in [
        ("DND", Some("YES"), "DND true"),
        ("DND", None, "DND false"),
        ("CFIM", Some("6&3"), "forwardImmediate true 6&amp;3"),
        ("CFBS", Some("6004"), "forwardBusy true 6004"),
        ("CFNA", None, "forwardNoAns false  3"),
        ("CFNARINGS", Some("5"), "forwardNoAns false  5"),
    ] {
        store(&mut lab, family, "alice", value);
        let notify = notified(&mut lab, &alice);
        assert_eq!(header(&notify, "Content-Type"), "application/x-as-feature-event+xml", "{family}");
        assert_eq!(told_in(&notify), [expected]);
    }
    store(&mut lab, "DND", "bob", Some("YES"));
    assert_eq!(lab.lines(), [""; 0], "what others set is nothing to it");
    // Without a body it asks for everything.
    alice.inside_proved(&mut lab, "SUBSCRIBE", ASK, "");
    assert_eq!(line(&lab.sent()), "200");
    assert_eq!(told(&mut lab, &alice).len(), 4);
    alice.inside_proved(&mut lab, "SUBSCRIBE", &format!("{ASK}Expires: 0\r\n"), "");
    assert_eq!(line(&lab.sent()), "200");
    let last = notified(&mut lab, &alice);
    assert_eq!(header(&last, "Subscription-State"), "terminated");
    assert_eq!(told_in(&last).len(), 4);
    store(&mut lab, "DND", "alice", Some("YES"));
    lab.rest();
}

#[test]
fn what_a_phone_sets_is_kept_for_the_dialplan_and_told_to_every_phone_of_its_endpoint() {
    let mut lab = Lab::new(site());
    let mut desk = subscribed(&mut lab, "alice", "desk");
    let home = subscribed(&mut lab, "alice", "home");
    let _bob = subscribed(&mut lab, "bob", "bob");
    for (name, set, kept, expected) in [
        ("DND", disturb(true), ("DND", Some("YES")), "DND true"),
        ("no DND", disturb(false), ("DND", None), "DND false"),
        (
            "all calls",
            forward("forwardImmediate", true, "tel:+1-301-555-1212"),
            ("CFIM", Some("+13015551212")),
            "forwardImmediate true +13015551212",
        ),
        (
            "another",
            forward("forwardImmediate", true, "6002"),
            ("CFIM", Some("6002")),
            "forwardImmediate true 6002",
        ),
        ("no more", forward("forwardImmediate", false, "6002"), ("CFIM", None), "forwardImmediate false "),
        ("busy", forward("forwardBusy", true, "6003"), ("CFBS", Some("6003")), "forwardBusy true 6003"),
        (
            "no answer",
            forward("forwardNoAns", true, "6004"),
            ("CFNA", Some("6004")),
            "forwardNoAns true 6004 3",
        ),
    ] {
        desk.inside_proved(&mut lab, "SUBSCRIBE", &setting(), &set);
        assert_eq!(line(&lab.sent()), "200", "{name}");
        assert_eq!(stored(&lab, kept.0, "alice").as_deref(), kept.1, "{name}");
        // The phone that set it hears first, once; then the other one.
        assert_eq!(told(&mut lab, &desk), [expected], "{name}");
        assert_eq!(told(&mut lab, &home), [expected], "{name}");
        assert_eq!(lab.lines(), [""; 0], "{name}");
    }
    assert_eq!(stored(&lab, "CFNARINGS", "alice").as_deref(), Some("3"));
    // The same again, and what cannot be dialled: the phone that asks is told how it stands, nobody else is.
    for set in [
        forward("forwardBusy", true, "6003"),
        forward("forwardBusy", true, ""),
        forward("forwardBusy", true, "Local/1@trunks"),
        forward("forwardBusy", true, &"1".repeat(65)),
    ] {
        desk.inside_proved(&mut lab, "SUBSCRIBE", &setting(), &set);
        assert_eq!(line(&lab.sent()), "200");
        assert_eq!(told(&mut lab, &desk), ["forwardBusy true 6003"], "{set}");
        assert_eq!(lab.lines(), [""; 0], "{set}");
    }
    // A SUBSCRIBE that begins may set something, too.
    let mut third = Phone::new("alice").call("third");
    lab.pass(core::time::Duration::from_millis(1));
    assert_eq!(line(&subscribe(&mut lab, &mut third, &setting(), &disturb(true))), "200");
    assert_eq!(stored(&lab, "DND", "alice").as_deref(), Some("YES"));
    assert_eq!(told(&mut lab, &third).len(), 4);
    assert_eq!(told(&mut lab, &desk), ["DND true"]);
    assert_eq!(told(&mut lab, &home), ["DND true"]);
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn the_number_is_that_of_callerid_and_no_other_can_be_set() {
    let mut config = site();
    change(&mut config, "alice", |alice| {
        alice.caller = PartyId { number: Some("6001".to_owned()), ..PartyId::default() };
    });
    let mut lab = Lab::new(config.clone());
    let mut alice = subscribed(&mut lab, "alice", "a");
    let set = disturb(true).replace("<device/>", "<device>bob</device>");
    alice.inside_proved(&mut lab, "SUBSCRIBE", &setting(), &set);
    assert_eq!(line(&lab.sent()), "200");
    let notify = notified(&mut lab, &alice);
    assert!(body(&notify).contains("<device>6001</device>"), "{}", body(&notify));
    for (number, expected) in [("6001", Some("YES")), ("alice", None), ("bob", None), ("anything", None)] {
        assert_eq!(stored(&lab, "DND", number).as_deref(), expected, "{number}");
    }
    let rows = lab.with(|sip, core| sip.subscription_rows(core));
    assert_eq!((rows[0].event, rows[0].resource.as_str()), ("as-feature-event", "6001"));
    // With another number the phone subscribes anew.
    change(&mut config, "alice", |alice| alice.caller.number = Some("6009".to_owned()));
    lab.with(|sip, core| sip.configure(config.clone(), core.now));
    let last = notified(&mut lab, &alice);
    assert_eq!(header(&last, "Subscription-State"), "terminated;reason=deactivated");
    assert_eq!(lab.with(|sip, core| sip.subscription_rows(core)).len(), 0);
}

#[test]
fn nothing_is_set_by_who_has_not_proved_who_it_is() {
    let mut lab = Lab::new(site());
    let mut stranger = Phone::new("alice").password(None);
    let refused = subscribe(&mut lab, &mut stranger, &setting(), &disturb(true));
    assert_eq!((line(&refused).as_str(), stored(&lab, "DND", "alice")), ("401", None));
    let mut alice = subscribed(&mut lab, "alice", "a");
    lab.pass(core::time::Duration::from_millis(1));
    alice.inside(&mut lab, "SUBSCRIBE", &setting(), &disturb(true));
    assert_eq!(lab.lines(), ["401"]);
    assert_eq!(stored(&lab, "DND", "alice"), None);
}

#[test]
fn a_body_that_is_none_is_refused_and_the_subscription_goes_on() {
    let long = format!("{}<!--{}-->", disturb(true), "x".repeat(4096));
    for (name, headers, set, status, also) in [
        (
            "RFC 3261 21.4.13",
            with_body("application/sdp"),
            disturb(true),
            "415",
            ("Accept", "application/x-as-feature-event+xml"),
        ),
        ("RFC 3261 21.4.11", setting(), long, "413", ("Accept", "")),
        ("no XML", setting(), "doNotDisturbOn=true".to_owned(), "400", ("Accept", "")),
        (
            "another document",
            setting(),
            "<SetWeather><device/></SetWeather>".to_owned(),
            "400",
            ("Accept", ""),
        ),
        ("no value", setting(), disturb(true).replace("true", "perhaps"), "400", ("Accept", "")),
        ("no kind of forwarding", setting(), forward("forwardNever", true, "1"), "400", ("Accept", "")),
    ] {
        let mut lab = Lab::new(site());
        let mut alice = subscribed(&mut lab, "alice", "a");
        let mut other = Phone::new("alice").call("b");
        lab.pass(core::time::Duration::from_millis(1));
        let refused = subscribe(&mut lab, &mut other, &headers, &set);
        assert_eq!((line(&refused).as_str(), header(&refused, also.0).as_str()), (status, also.1), "{name}");
        alice.inside_proved(&mut lab, "SUBSCRIBE", &headers, &set);
        let refused = lab.sent();
        assert_eq!((line(&refused).as_str(), header(&refused, also.0).as_str()), (status, also.1), "{name}");
        assert_eq!(stored(&lab, "DND", "alice"), None, "{name}");
        store(&mut lab, "DND", "alice", Some("YES"));
        assert_eq!(told(&mut lab, &alice), ["DND true"], "{name}");
    }
}

#[test]
fn rfc6665_4_4_3_a_fetch_tells_how_everything_stands_and_ends() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    subscribe(&mut lab, &mut alice, &format!("{ASK}Expires: 0\r\n"), "");
    let only = notified(&mut lab, &alice);
    assert_eq!(header(&only, "Subscription-State"), "terminated");
    assert_eq!(told_in(&only), ALL_OFF);
    lab.rest();
}

#[test]
fn changes_while_a_notify_is_out_are_told_together_as_they_are_then() {
    let mut lab = Lab::new(site());
    let alice = subscribed(&mut lab, "alice", "a");
    store(&mut lab, "DND", "alice", Some("YES"));
    let first = lab.sent();
    for (family, value) in [("CFIM", Some("1")), ("CFBS", Some("2")), ("CFIM", Some("3")), ("DND", None)] {
        store(&mut lab, family, "alice", value);
    }
    assert_eq!(lab.lines(), [""; 0]);
    alice.respond(&mut lab, &first, 200, "", "");
    assert_eq!(told_in(&first), ["DND true"]);
    assert_eq!(told(&mut lab, &alice), ["DND false", "forwardImmediate true 3", "forwardBusy true 2"]);
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn rfc6665_4_2_2_after_a_restart_everything_is_told_and_nothing_set_again() {
    let mut before = Lab::new(site());
    let mut alice = Phone::new("alice");
    subscribe(&mut before, &mut alice, &setting(), &disturb(true));
    assert_eq!(told(&mut before, &alice)[0], "DND true");
    let changes = before.with(|sip, core| sip.take_subscription_changes(core.now));
    let [SubscriptionChange::Kept(written)] = changes.as_slice() else { panic!("{changes:?}") };
    let written: KeptSubscription = (**written).clone();
    let mut after = Lab::new(site());
    after.now = before.now;
    after.with(|sip, _| sip.restore_subscription(written));
    after.settle();
    assert_eq!(told(&mut after, &alice), ALL_OFF, "what was set has been taken back meanwhile");
}
