//! A call that rings is taken from a lamp: with the dialog that its NOTIFY names (RFC 4235 §4.1.1, RFC 3891).

use std::rc::Rc;

use ::sip::OwnedMessage;
use call::pickup::PickupGroups;
use call::{DeviceState, Notice, Watched};
use driver::sip::Config;

use crate::lab::{Lab, body, change, line, site, udp};
use crate::phone::{Phone, sdp};

const OFFER: &str = "0 101";

fn groups(call: &str, pickup: &str) -> Rc<PickupGroups> {
    let mut groups = PickupGroups::default();
    groups.call.set_numbers(call).unwrap();
    groups.pickup.set_numbers(pickup).unwrap();
    Rc::new(groups)
}

/// Calls of `trunk` ring in group 1, which Alice may take calls of.
fn laboratory(change_it: impl FnOnce(&mut Config)) -> Lab {
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.pickup = groups("1", ""));
    change(&mut config, "alice", |alice| alice.pickup = groups("", "1,2"));
    change_it(&mut config);
    let lab = Lab::new(config);
    lab.shard.core.borrow_mut().watched = true;
    lab
}

/// Extension 600 stands for these devices and is in this state.
fn tell(lab: &mut Lab, devices: &str, state: DeviceState) {
    let lamp = Rc::new(Watched { context: "phones".to_owned(), exten: "600".to_owned() });
    lab.with(|_, core| {
        core.board.stands_for(&lamp, devices);
        core.board.tell(&lamp, Some(state));
    });
}

fn watch(lab: &mut Lab, phone: &mut Phone, event: &str) {
    let accepted = phone.ask(lab, "SUBSCRIBE", "sip:600@strowger", &format!("Event: {event}\r\n"), "");
    assert_eq!(line(&accepted), "200");
    phone.learn(&accepted);
}

/// Rings the trunk's phone.
fn ring(lab: &mut Lab) -> (base::ChannelId, Phone) {
    let id = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    let mut phone = Phone::at("trunk", udp("198.51.100.7:5062"));
    phone.called(&invite);
    phone.respond(lab, &invite, 180, "Contact: <sip:trunk@198.51.100.7:5062>\r\n", "");
    (id, phone)
}

/// A value in quotation marks behind `name=`.
fn attribute(text: &str, name: &str) -> String {
    let rest = text.split(&format!("{name}=\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split('"').next().unwrap().to_owned()
}

/// What the phone makes of a NOTIFY: where it sends the INVITE, and Replaces.
fn read(notify: &OwnedMessage, swapped: bool) -> (String, String) {
    let text = body(notify);
    let remote = text.split("<remote>").nth(1).unwrap_or_else(|| panic!("{text}"));
    let (to, from) = if swapped { ("remote-tag", "local-tag") } else { ("local-tag", "remote-tag") };
    let replaces = format!(
        "Replaces: {};to-tag={};from-tag={};early-only\r\n",
        attribute(&text, "call-id"),
        attribute(&text, to),
        attribute(&text, from)
    );
    (attribute(remote, "uri"), replaces)
}

/// The phone takes what rings: the statuses that leave.
fn take(lab: &mut Lab, (user, call): (&str, &str), (uri, replaces): &(String, String)) -> Vec<String> {
    let mut phone = Phone::new(user).call(call);
    // A nonce of another moment is another one.
    lab.pass(core::time::Duration::from_millis(1));
    let answer = phone.ask(lab, "INVITE", uri, replaces, &sdp("198.51.100.9", 4400, OFFER));
    std::iter::once(line(&answer)).chain(lab.lines()).collect()
}

#[test]
fn rfc4235_4_1_1_a_phone_takes_the_call_that_its_lamp_shows() {
    for (devices, swapped) in [("PJSIP/trunk", false), ("SIP/nobody & SIP/trunk", true)] {
        let mut lab = laboratory(|_| {});
        let mut alice = Phone::new("alice");
        watch(&mut lab, &mut alice, "dialog");
        let (place, phone) = ring(&mut lab);
        tell(&mut lab, devices, DeviceState::Ringing);
        let notify = lab.sent();
        alice.respond(&mut lab, &notify, 200, "", "");
        let read = read(&notify, swapped);
        assert_eq!(read.0, "sip:600@strowger");
        assert_eq!(take(&mut lab, ("alice", "first"), &read), ["200", "CANCEL"], "{devices}");
        let core = lab.shard.core.borrow();
        let here = core.get(place).unwrap();
        assert!(here.name.starts_with("PJSIP/alice-"), "{}", here.name);
        assert_eq!(here.state, call::ChanState::Up);
        let told: Vec<&Notice> = lab.world.notices.iter().chain(&core.notices).collect();
        assert!(told.iter().any(|notice| matches!(notice, Notice::Pickup { .. })), "{told:?}");
        drop(phone);
    }
}

#[test]
fn rfc3891_3_a_lamp_gives_nobody_a_call_that_is_not_his_to_take() {
    type Change = fn(&mut Config);
    let same: Change = |_| {};
    let rows: [(&str, Change, &str, &str, &str, &str); 7] = [
        (
            "who is in none of its groups",
            |c| change(c, "alice", |a| a.pickup = groups("", "2")),
            "dialog",
            "PJSIP/trunk",
            "alice",
            "403",
        ),
        (
            "who has no groups at all",
            |c| change(c, "alice", |a| a.pickup = groups("", "")),
            "dialog",
            "PJSIP/trunk",
            "alice",
            "403",
        ),
        ("who does not watch", same, "dialog", "PJSIP/trunk", "trunk", "481"),
        ("who watches presence", same, "presence", "PJSIP/trunk", "alice", "481"),
        ("another device rings", same, "dialog", "PJSIP/alice", "alice", "481"),
        ("a device that begins alike", same, "dialog", "PJSIP/tru", "alice", "481"),
        ("no device", same, "dialog", "", "alice", "481"),
    ];
    for (name, change_it, event, devices, by, expected) in rows {
        let mut lab = laboratory(change_it);
        let mut alice = Phone::new("alice");
        watch(&mut lab, &mut alice, event);
        let (place, _) = ring(&mut lab);
        tell(&mut lab, devices, DeviceState::Ringing);
        let notify = lab.sent();
        alice.respond(&mut lab, &notify, 200, "", "");
        let guessed = (
            "sip:600@strowger".to_owned(),
            "Replaces: pickup-e600;to-tag=rings;from-tag=calls\r\n".to_owned(),
        );
        assert_eq!(take(&mut lab, (by, "guess"), &guessed), [expected], "{name}");
        let core = lab.shard.core.borrow();
        assert!(core.get(place).unwrap().name.starts_with("PJSIP/trunk-"), "{name}");
    }
}

#[test]
fn rfc3891_3_of_two_who_take_one_call_the_second_is_told_that_it_is_gone() {
    let mut lab = laboratory(|_| {});
    let mut alice = Phone::new("alice");
    watch(&mut lab, &mut alice, "dialog");
    let (_, _) = ring(&mut lab);
    tell(&mut lab, "PJSIP/trunk", DeviceState::Ringing);
    let notify = lab.sent();
    alice.respond(&mut lab, &notify, 200, "", "");
    let read = read(&notify, false);
    assert_eq!(take(&mut lab, ("alice", "first"), &read), ["200", "CANCEL"]);
    assert_eq!(take(&mut lab, ("alice", "second"), &read), ["481"]);
}
