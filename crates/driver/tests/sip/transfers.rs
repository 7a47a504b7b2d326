//! REFER, Replaces, and what transferers are told.

use core::time::Duration;

use std::cell::RefCell;
use std::rc::Rc;

use ::sip::OwnedMessage;
use base::{Cause, ChannelId};
use call::conference::Seat;
use call::{Advance, ChanEvent, Elsewhere, Notice};
use driver::local::LocalDriver;

use crate::lab::{Lab, add, aor, body, change, endpoint, header, line, site, udp};
use crate::phone::{Phone, sdp};

const OFFER: &str = "0 8 101";

/// An answered call from a phone, acknowledged.
#[track_caller]
fn incoming(lab: &mut Lab, phone: &mut Phone) -> ChannelId {
    let id = phone.invite(lab, "100", &sdp("198.51.100.7", 4000, OFFER));
    lab.answer(id);
    let answer = lab.sent();
    assert_eq!(line(&answer), "200");
    phone.ack(lab, &answer, "");
    phone.learn(&answer);
    id
}

/// An answered call to the trunk's contact, which is told apart by its Call-ID.
#[track_caller]
fn outgoing(lab: &mut Lab, resource: &str) -> (ChannelId, Phone) {
    let id = lab.dial(resource).unwrap();
    let invite = lab.sent();
    let mut phone = Phone::at("trunk", udp("198.51.100.7:5062"));
    phone.called(&invite);
    let sdp = sdp("198.51.100.7", 4100, OFFER);
    phone.respond(lab, &invite, 200, "Contact: <sip:trunk@198.51.100.7:5062>\r\n", &sdp);
    assert_eq!(lab.lines(), ["ACK"]);
    (id, phone)
}

fn laboratory() -> Lab {
    let mut lab = Lab::new(site());
    lab.storyless = true;
    lab.shard.core.borrow_mut().watched = true;
    lab
}

/// The next NOTIFY: what it says of the subscription, and its fragment; answered 200.
#[track_caller]
fn told(lab: &mut Lab, phone: &Phone) -> (String, String) {
    let notify = lab.sent();
    assert_eq!(line(&notify), "NOTIFY", "{}", body(&notify));
    assert_eq!(header(&notify, "Content-Type"), "message/sipfrag;version=2.0");
    phone.respond(lab, &notify, 200, "", "");
    (header(&notify, "Subscription-State"), body(&notify))
}

fn name(lab: &Lab, id: ChannelId) -> String {
    lab.shard.core.borrow().get(id).map(|channel| channel.name.to_string()).unwrap_or_default()
}

fn variable(lab: &Lab, id: ChannelId, variable: &str) -> String {
    let core = lab.shard.core.borrow();
    core.get(id).and_then(|c| c.vars.get_name(variable)).unwrap_or_default().to_owned()
}

#[test]
fn rfc3515_2_4_a_blind_transfer_is_told_step_by_step_and_the_transferer_ends_his_call() {
    for (advances, fragments, end) in [
        (
            vec![Advance::Ringing, Advance::Ringing, Advance::Connected],
            vec!["SIP/2.0 180 Ringing\r\n"],
            "SIP/2.0 200 OK\r\n",
        ),
        (vec![Advance::Failed(Cause::USER_BUSY)], vec![], "SIP/2.0 486 Busy Here\r\n"),
        (
            vec![Advance::Early, Advance::Failed(Cause::NONE)],
            vec!["SIP/2.0 183 Session Progress\r\n"],
            "SIP/2.0 503 Service Unavailable\r\n",
        ),
    ] {
        let mut lab = laboratory();
        let mut alice = Phone::new("alice");
        let a = incoming(&mut lab, &mut alice);
        let (b, _) = outgoing(&mut lab, "trunk");
        lab.talk(a, b);
        let by = name(&lab, a);
        alice.inside(
            &mut lab,
            "REFER",
            "Refer-To: <sip:200@strowger>\r\nReferred-By: <sip:alice@strowger>\r\n",
            "",
        );
        assert_eq!(line(&lab.sent()), "202");
        assert_eq!(
            told(&mut lab, &alice),
            ("active;expires=599".to_owned(), "SIP/2.0 100 Trying\r\n".to_owned())
        );
        assert_eq!(lab.lines(), [""; 0], "the call of the transferer stays until he knows");
        let goto = lab.shard.core.borrow().get(b).and_then(|channel| channel.goto.clone());
        let Some(Elsewhere::Dialplan(to)) = goto else { panic!("{goto:?}") };
        assert_eq!((to.context.as_str(), to.exten.as_str(), to.priority), ("phones", "200", 1));
        for (what, expected) in [
            ("BLINDTRANSFER", by.as_str()),
            ("TRANSFERERNAME", by.as_str()),
            ("SIPTRANSFER", "yes"),
            ("SIPREFERREDBYHDR", "<sip:alice@strowger>"),
        ] {
            assert_eq!(variable(&lab, b, what), expected, "{what}");
        }
        for advance in advances {
            lab.with(|_, core| core.advance(b, advance));
            if let Advance::Ringing | Advance::Early = advance
                && let Some((_, notify)) = lab.next()
            {
                assert!(fragments.contains(&body(&notify).as_str()), "{}", body(&notify));
                alice.respond(&mut lab, &notify, 200, "", "");
            }
        }
        assert_eq!(told(&mut lab, &alice), ("terminated;reason=noresource".to_owned(), end.to_owned()));
        assert_eq!(lab.lines(), [""; 0], "RFC 5589 6: his call is his to end");
        lab.pass(Duration::from_secs(59));
        assert_eq!(lab.lines(), [""; 0]);
        lab.pass(Duration::from_secs(1));
        let bye = lab.sent();
        assert_eq!(line(&bye), "BYE", "unless he forgets");
        alice.respond(&mut lab, &bye, 200, "", "");
        lab.finish(b, Cause::NORMAL_CLEARING);
        lab.lines();
        lab.rest();
    }
}

#[test]
fn rfc3515_a_phone_that_says_bye_first_or_never_answers_leaves_nothing_behind() {
    for says_bye in [true, false] {
        let mut lab = laboratory();
        let mut alice = Phone::new("alice");
        let a = incoming(&mut lab, &mut alice);
        let (b, _) = outgoing(&mut lab, "trunk");
        lab.talk(a, b);
        alice.inside(&mut lab, "REFER", "Refer-To: <sip:200@strowger>\r\n", "");
        assert_eq!(lab.lines(), ["202", "NOTIFY"]);
        if says_bye {
            alice.inside(&mut lab, "BYE", "", "");
            assert_eq!(lab.lines(), ["200"]);
        }
        lab.with(|_, core| core.advance(b, Advance::Connected));
        lab.pass(Duration::from_secs(60));
        assert_eq!(lab.lines().contains(&"BYE".to_owned()), !says_bye);
        lab.finish(b, Cause::NORMAL_CLEARING);
        lab.rest();
    }
}

#[test]
fn rfc4488_4_who_does_not_want_to_be_told_is_not() {
    let mut lab = laboratory();
    let mut alice = Phone::new("alice");
    let a = incoming(&mut lab, &mut alice);
    let (b, _) = outgoing(&mut lab, "trunk");
    lab.talk(a, b);
    alice.inside(
        &mut lab,
        "REFER",
        "Refer-To: <sip:200@strowger>\r\nRefer-Sub: false\r\nSupported: norefersub\r\n",
        "",
    );
    let accepted = lab.sent();
    assert_eq!((line(&accepted), header(&accepted, "Refer-Sub")), ("200".to_owned(), "false".to_owned()));
    assert_eq!(lab.lines(), [""; 0]);
    lab.pass(Duration::from_secs(60));
    assert_eq!(lab.lines().first().map(String::as_str), Some("BYE"));
}

#[test]
fn what_cannot_be_transferred_is_refused_and_the_call_goes_on() {
    let mut config = site();
    change(&mut config, "bob", |e| e.allow_transfer = false);
    for (name, user, bridged, headers, status) in [
        ("RFC 3515 2.4.2: no Refer-To", "alice", true, "", "400"),
        ("two of them", "alice", true, "Refer-To: <sip:1@h>\r\nRefer-To: <sip:2@h>\r\n", "400"),
        ("no URI", "alice", true, "Refer-To: nonsense\r\n", "400"),
        ("another scheme", "alice", true, "Refer-To: <http://h/>\r\n", "400"),
        ("nobody to send", "alice", false, "Refer-To: <sip:200@strowger>\r\n", "404"),
        ("allow_transfer=no", "bob", true, "Refer-To: <sip:200@strowger>\r\n", "603"),
        ("Replaces that is none", "alice", true, "Refer-To: <sip:200@h?Replaces=x>\r\n", "400"),
        (
            "a target whose parts no dial string may hold",
            "alice",
            true,
            "Refer-To: <sip:1%26PJSIP%2Ftrunk@h?Replaces=x%3Bto-tag%3D1%3Bfrom-tag%3D2>\r\n",
            "400",
        ),
    ] {
        let mut lab = Lab::new(config.clone());
        lab.storyless = true;
        let mut phone = Phone::new(user);
        let a = incoming(&mut lab, &mut phone);
        let (b, _) = outgoing(&mut lab, "trunk");
        if bridged {
            lab.talk(a, b);
        }
        phone.inside(&mut lab, "REFER", headers, "");
        assert_eq!(lab.lines(), [status], "{name}");
        assert!(lab.shard.core.borrow().get(b).is_some_and(|channel| channel.goto.is_none()), "{name}");
        assert_eq!(lab.shard.core.borrow().channel_count(), 2, "{name}");
    }
}

#[test]
fn rfc3515_2_4_4_a_transfer_to_nowhere_is_accepted_and_told_and_the_call_goes_on() {
    let mut lab = Lab::new(site());
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let a = incoming(&mut lab, &mut alice);
    let (b, _) = outgoing(&mut lab, "trunk");
    lab.talk(a, b);
    alice.inside(&mut lab, "REFER", "Refer-To: <sip:nobody@strowger>\r\nRefer-Sub: true\r\n", "");
    let accepted = lab.sent();
    assert_eq!(line(&accepted), "202");
    for (name, value) in [("Expires", "600"), ("Refer-Sub", "true")] {
        assert_eq!(header(&accepted, name), value);
    }
    let trying = lab.sent();
    for (name, value) in [
        ("Event", "refer"),
        ("Subscription-State", "active;expires=599"),
        ("Allow-Events", "message-summary, presence, dialog, refer"),
    ] {
        assert_eq!(header(&trying, name), value);
    }
    assert_eq!(body(&trying), "SIP/2.0 100 Trying\r\n");
    alice.respond(&mut lab, &trying, 200, "", "");
    let told = told(&mut lab, &alice);
    assert_eq!(told, ("terminated;reason=noresource".to_owned(), "SIP/2.0 404 Not Found\r\n".to_owned()));
    lab.pass(Duration::from_secs(70));
    assert_eq!(lab.shard.core.borrow().channel_count(), 2);
}

#[test]
fn an_unknown_replaces_goes_out_with_the_invite_that_the_dialplan_makes_of_it() {
    let mut lab = laboratory();
    let mut alice = Phone::new("alice");
    let a = incoming(&mut lab, &mut alice);
    let (b, _) = outgoing(&mut lab, "trunk");
    lab.talk(a, b);
    alice.inside(
        &mut lab,
        "REFER",
        "Refer-To: <sip:700@203.0.113.9:5080?Replaces=abc%40there%3Bto-tag%3D77%3Bfrom-tag%3D88>\r\n",
        "",
    );
    assert_eq!(lab.lines(), ["202", "NOTIFY"]);
    let goto = lab.shard.core.borrow().get(b).and_then(|channel| channel.goto.clone());
    let Some(Elsewhere::Dialplan(to)) = goto else { panic!("{goto:?}") };
    assert_eq!(to.exten, "external_replaces");
    assert_eq!(variable(&lab, b, "SIPREFERTOHDR"), "sip:700@203.0.113.9:5080");
    let replaces = variable(&lab, b, "SIPREPLACESHDR");
    assert_eq!(replaces, "abc@there;to-tag=77;from-tag=88");
    // What the dialplan dials then carries it.
    lab.dial_with("trunk/sip:700@203.0.113.9:5080", call::Request::default(), |shard, id| {
        if let Some(channel) = shard.core.borrow_mut().get_mut(id) {
            channel.vars.set(dialplan::Var::named("SIPREPLACESHDR"), &replaces, dialplan::Inherit::Never);
        }
    })
    .unwrap();
    let invite = lab.sent();
    assert_eq!((header(&invite, "Replaces"), header(&invite, "Require")), (replaces, "replaces".to_owned()));
}

/// RFC 5589 §6.1, as a focus: the seat is transferred, not somebody in it.
#[test]
fn rfc3515_who_is_in_a_conference_gives_his_seat_to_whoever_answers_at_the_target() {
    for (name, target, answers) in [
        ("somebody answers", "200", true),
        ("nobody does", "200", false),
        ("another server's call", "700@203.0.113.9?Replaces=abc%3Bto-tag%3D7%3Bfrom-tag%3D8", true),
        ("no such extension", "nobody", false),
    ] {
        let mut lab = laboratory();
        let local: Rc<RefCell<LocalDriver>> = Rc::default();
        let tech = lab.shard.add_tech(local.clone());
        local.borrow_mut().set_tech_index(tech);
        let mut alice = Phone::new("alice");
        let seat = incoming(&mut lab, &mut alice);
        let (other, _) = outgoing(&mut lab, "trunk");
        lab.with(|_, core| {
            for id in [seat, other] {
                core.conference_enter("board", id, Seat::default().into(), &Default::default()).unwrap();
            }
        });
        let target = if target.contains('@') { target.to_owned() } else { format!("{target}@strowger") };
        let by = self::name(&lab, seat);
        alice.inside(
            &mut lab,
            "REFER",
            &format!("Refer-To: <sip:{target}>\r\nReferred-By: <sip:a@h>\r\n"),
            "",
        );
        if target.starts_with("nobody") {
            assert_eq!(lab.lines(), ["202", "NOTIFY"], "{name}");
            continue;
        }
        assert_eq!(line(&lab.sent()), "202", "{name}");
        assert_eq!(told(&mut lab, &alice).1, "SIP/2.0 100 Trying\r\n", "{name}");
        let started = local.borrow_mut().take_started();
        let [(second, place)] = started.as_slice() else { panic!("{name}: {started:?}") };
        let exten = if target.contains("Replaces") { "external_replaces" } else { "200" };
        assert_eq!((place.context.as_str(), place.exten.as_str()), ("phones", exten), "{name}");
        assert!(self::name(&lab, seat).ends_with(";1"), "{name}: who sits there");
        let members = |lab: &Lab| lab.shard.core.borrow().conferences.get("board").map(|c| c.members.len());
        assert_eq!(members(&lab), Some(2), "{name}");
        let replaces = if target.contains("Replaces") { "abc;to-tag=7;from-tag=8" } else { "" };
        for (what, expected) in [
            ("BLINDTRANSFER", by.as_str()),
            ("SIPTRANSFER", "yes"),
            ("SIPREFERREDBYHDR", "<sip:a@h>"),
            ("SIPREPLACESHDR", replaces),
        ] {
            assert_eq!(variable(&lab, *second, what), expected, "{name}: {what}");
        }
        let second = *second;
        if answers {
            lab.with(|_, core| core.advance(second, Advance::Connected));
        } else {
            lab.shard.core.borrow_mut().request_hangup(second, Cause::USER_BUSY);
            lab.finish(second, Cause::USER_BUSY);
        }
        let (standing, fragment) = told(&mut lab, &alice);
        assert_eq!(standing, "terminated;reason=noresource", "{name}");
        assert_eq!(
            fragment,
            if answers { "SIP/2.0 200 OK\r\n" } else { "SIP/2.0 486 Busy Here\r\n" },
            "{name}"
        );
        assert_eq!(lab.lines(), [""; 0], "{name}");
        let ended = lab.shard.core.borrow().get(seat).is_some_and(|channel| channel.hangup.is_some());
        assert_eq!(ended, !answers, "{name}: the seat is empty when nobody answered");
    }
}

/// The transferer's two calls in every combination of who had called whom, and who talks to whom afterwards.
#[test]
fn rfc5589_7_an_attended_transfer_connects_the_others_whoever_called_whom() {
    for (first_in, second_in) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut config = site();
        add(&mut config, endpoint("carol"), aor("carol"));
        let mut lab = Lab::new(config);
        lab.storyless = true;
        lab.shard.core.borrow_mut().watched = true;
        // The transferer is the trunk's phone, whichever side it is on; the others are dialled or call.
        let leg = |lab: &mut Lab, is_caller: bool, call: &str| {
            if is_caller {
                let mut phone = Phone::new("trunk").call(call);
                (incoming(lab, &mut phone), phone)
            } else {
                outgoing(lab, "trunk")
            }
        };
        let (x1, mut first) = leg(&mut lab, first_in, "first");
        let (y, _) = leg(&mut lab, !first_in, "transferee");
        let (x2, second) = leg(&mut lab, second_in, "second");
        let (z, _) = leg(&mut lab, !second_in, "target");
        if first_in {
            lab.talk(x1, y)
        } else {
            lab.talk(y, x1)
        }
        if second_in {
            lab.talk(x2, z)
        } else {
            lab.talk(z, x2)
        }
        let (was_y, was_x2, was_z) = (name(&lab, y), name(&lab, x2), name(&lab, z));
        lab.shard.core.borrow_mut().notices.clear();
        let were = [x1, x2].map(|id| lab.shard.core.borrow().bridge_around(id));
        assert!(were.iter().all(Option::is_some) && were[0] != were[1]);
        // In its own words: its own tag is the from-tag of who reads it.
        let replaces = format!(
            "{}%3Bto-tag%3D{}%3Bfrom-tag%3D{}",
            second.call_id.replace('@', "%40"),
            second.remote_tag,
            second.tag
        );
        first.inside(&mut lab, "REFER", &format!("Refer-To: <sip:200@strowger?Replaces={replaces}>\r\n"), "");
        assert_eq!(line(&lab.sent()), "202");
        let rest: Vec<OwnedMessage> = std::iter::from_fn(|| lab.next().map(|(_, message)| message)).collect();
        let lines: Vec<String> = rest.iter().map(line).collect();
        assert_eq!(lines, ["NOTIFY", "BYE"], "told at once, and the second call ends");
        assert_eq!(body(&rest[0]), "SIP/2.0 100 Trying\r\n");
        first.respond(&mut lab, &rest[0], 200, "", "");
        let (standing, fragment) = told(&mut lab, &first);
        assert_eq!(standing, "terminated;reason=noresource");
        assert_eq!(fragment, "SIP/2.0 200 OK\r\n");
        assert_eq!(lab.lines(), [""; 0], "the first is his to end");
        let core = lab.shard.core.borrow();
        assert_eq!(core.channel_count(), 2, "{first_in} {second_in}");
        let mut talking: Vec<String> = core
            .bridges()
            .flat_map(|(_, members)| members.iter().filter_map(|id| core.get(*id)))
            .map(|channel| channel.name.to_string())
            .collect();
        talking.sort();
        let mut expected = vec![was_y.clone(), was_z.clone()];
        expected.sort();
        assert_eq!(talking, expected, "{first_in} {second_in}");
        assert_eq!(core.by_name(&was_x2), None);
        let event = core.notices.iter().find_map(|notice| match notice {
            Notice::AttendedTransfer { second, transferee, target, .. } => {
                let name = |of: &call::Snapshot| of.name.to_string();
                Some((second.as_deref().map(name), name(transferee.as_deref()?), target.as_deref().map(name)))
            }
            _ => None,
        });
        assert_eq!(event, Some((Some(was_x2), was_y, Some(was_z))));
        let of = core.notices.iter().find_map(|notice| match notice {
            Notice::AttendedTransfer { bridges, stays, .. } => Some((bridges.clone(), stays.clone())),
            _ => None,
        });
        let stays = core.bridges().find(|(_, members)| !members.is_empty());
        let stays = stays.and_then(|(id, _)| core.bridge_snapshot(id)).map(|bridge| bridge.uid);
        assert_eq!(of, Some((were, stays)), "the bridges that were, and the one in which they talk");
    }
}

/// What was accepted is not undone by what the transferer says in the same breath.
#[test]
fn rfc5589_7_a_transferer_may_hang_up_both_calls_before_anybody_has_moved() {
    for (name, byes) in [("the second first", [1, 0]), ("the first first", [0, 1])] {
        let mut config = site();
        add(&mut config, endpoint("carol"), aor("carol"));
        let mut lab = Lab::new(config);
        lab.storyless = true;
        let mut first = Phone::new("trunk").call("first");
        let x1 = incoming(&mut lab, &mut first);
        let (y, _) = outgoing(&mut lab, "trunk");
        let mut second = Phone::new("trunk").call("second");
        let x2 = incoming(&mut lab, &mut second);
        let (z, _) = outgoing(&mut lab, "trunk");
        lab.talk(x1, y);
        lab.talk(x2, z);
        let (was_y, was_z) = (self::name(&lab, y), self::name(&lab, z));
        let replaces =
            format!("{}%3Bto-tag%3D{}%3Bfrom-tag%3D{}", second.call_id, second.remote_tag, second.tag);
        let target = format!("Refer-To: <sip:200@strowger?Replaces={replaces}>\r\n");
        let uri = "sip:strowger";
        let mut burst = vec![first.request("REFER", uri, &target, "")];
        for which in byes {
            let phone = if which == 0 { &mut first } else { &mut second };
            burst.push(phone.request("BYE", uri, "", ""));
        }
        lab.with(|sip, core| {
            burst.iter().for_each(|text| sip.receive(core, first.flow, text.as_bytes()));
        });
        let core = lab.shard.core.borrow();
        let mut talking: Vec<String> = core
            .bridges()
            .flat_map(|(_, members)| members.iter().filter_map(|id| core.get(*id)))
            .map(|channel| channel.name.to_string())
            .collect();
        talking.sort();
        let mut expected = vec![was_y, was_z];
        expected.sort();
        assert_eq!(talking, expected, "{name}");
        assert_eq!(core.channel_count(), 2, "{name}");
    }
}

/// Neither call of the transferer is with one party that could take a place: a pair of channels sits in both.
#[test]
fn rfc5589_7_an_attended_transfer_between_conferences_couples_them() {
    for (name, rooms, status) in [
        ("two conferences", [Some("one"), Some("two")], "202"),
        ("a conference and an application", [Some("one"), None], "202"),
        ("an application and a conference", [None, Some("two")], "202"),
        ("the same conference twice", [Some("one"), Some("one")], "404"),
        ("two applications", [None, None], "404"),
    ] {
        let mut lab = laboratory();
        let local: Rc<RefCell<LocalDriver>> = Rc::default();
        let tech = lab.shard.add_tech(local.clone());
        local.borrow_mut().set_tech_index(tech);
        let (mut first, mut second) = (Phone::new("trunk").call("one"), Phone::new("trunk").call("two"));
        let places = [incoming(&mut lab, &mut first), incoming(&mut lab, &mut second)];
        let others = [outgoing(&mut lab, "trunk").0, outgoing(&mut lab, "trunk").0];
        for (room, (place, other)) in rooms.into_iter().zip(places.into_iter().zip(others)) {
            for id in [place, other] {
                let Some(room) = room else { break };
                lab.with(|_, core| {
                    core.conference_enter(room, id, Seat::default().into(), &Default::default())
                })
                .unwrap();
            }
        }
        let by = places.map(|id| self::name(&lab, id));
        lab.shard.core.borrow_mut().notices.clear();
        let replaces = format!("two%3Bto-tag%3D{}%3Bfrom-tag%3D{}", second.remote_tag, second.tag);
        first.inside(&mut lab, "REFER", &format!("Refer-To: <sip:x@strowger?Replaces={replaces}>\r\n"), "");
        assert_eq!(line(&lab.sent()), status, "{name}");
        if status != "202" {
            assert_eq!(lab.lines(), [""; 0], "{name}: both calls go on");
            continue;
        }
        let rest: Vec<OwnedMessage> = std::iter::from_fn(|| lab.next().map(|(_, message)| message)).collect();
        assert_eq!(rest.iter().map(line).collect::<Vec<_>>(), ["NOTIFY", "BYE"], "{name}");
        assert_eq!(body(&rest[0]), "SIP/2.0 100 Trying\r\n", "{name}");
        first.respond(&mut lab, &rest[0], 200, "", "");
        assert_eq!(told(&mut lab, &first).1, "SIP/2.0 200 OK\r\n", "{name}");
        assert_eq!(lab.lines(), [""; 0], "{name}");
        for (place, room) in places.into_iter().zip(rooms) {
            let is_half = self::name(&lab, place).starts_with("Local/_attended@transfer-");
            assert!(is_half, "{name}: {}", self::name(&lab, place));
            let core = lab.shard.core.borrow();
            let sits = core.conferences.of(place).map(|room| (room.name.as_str(), room.members.len()));
            assert_eq!(sits, room.map(|room| (room, 2)), "{name}");
            assert_eq!(core.get(place).map(|half| half.state), Some(call::ChanState::Up), "{name}");
        }
        let asked_first = if rooms[0].is_some() { 0 } else { 1 };
        let event = lab.shard.core.borrow().notices.iter().find_map(|notice| match notice {
            Notice::AttendedTransfer { transferer, second, transferee, target: None, link, .. } => {
                let name = |of: &call::Snapshot| of.name.to_string();
                Some((name(transferer), second.as_deref().map(name), transferee.is_some(), link.is_some()))
            }
            _ => None,
        });
        let linked = rooms.iter().all(Option::is_some);
        let expected = (by[asked_first].clone(), Some(by[1 - asked_first].clone()), !linked, linked);
        assert_eq!(event, Some(expected), "{name}");
        // The last one goes: nobody is left whom the pair could let hear anything.
        assert!(!lab.with(|_, core| local.borrow_mut().optimize(core)), "{name}");
        let gone = others[if rooms[0].is_some() { 0 } else { 1 }];
        lab.with(|_, core| core.conference_leave(gone));
        assert!(lab.with(|_, core| local.borrow_mut().optimize(core)), "{name}");
        let half = places[if rooms[0].is_some() { 0 } else { 1 }];
        assert!(lab.shard.core.borrow().get(half).is_some_and(|half| half.hangup.is_some()), "{name}");
    }
}

#[test]
fn rfc3891_3_an_invite_replaces_a_call_as_its_state_allows() {
    for (name, ours, answered, early, status) in [
        ("an answered call is replaced", false, true, false, "200"),
        ("but not by who asks for an early one", false, true, true, "486"),
        ("one that we answered is no different", true, true, false, "200"),
        ("an early one that the other side began is not", false, false, true, "481"),
        ("an early one that we began is", true, false, true, "200"),
    ] {
        let mut lab = laboratory();
        let mut alice = Phone::new("alice");
        let (place, phone) = match (ours, answered) {
            (false, true) => (incoming(&mut lab, &mut alice), alice),
            (false, false) => {
                let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, OFFER));
                lab.indicate(id, call::Indication::Ringing);
                let ringing = lab.sent();
                alice.learn(&ringing);
                (id, alice)
            }
            (true, true) => outgoing(&mut lab, "trunk"),
            (true, false) => {
                let id = lab.dial("trunk").unwrap();
                let invite = lab.sent();
                let mut phone = Phone::at("trunk", udp("198.51.100.7:5062"));
                phone.called(&invite);
                phone.respond(&mut lab, &invite, 180, "Contact: <sip:trunk@198.51.100.7:5062>\r\n", "");
                (id, phone)
            }
        };
        let (other, _) = outgoing(&mut lab, "trunk");
        if answered {
            lab.talk(place, other);
        }
        let early = if early { ";early-only" } else { "" };
        let replaces = format!(
            "Replaces: {};to-tag={};from-tag={}{early}\r\n",
            phone.call_id, phone.remote_tag, phone.tag
        );
        let mut newcomer = Phone::new("trunk").call("newcomer");
        let text =
            newcomer.request("INVITE", "sip:100@strowger", &replaces, &sdp("198.51.100.7", 4400, OFFER));
        lab.receive(newcomer.flow, text);
        let got = lab.lines();
        assert_eq!(got.first().map(String::as_str), Some(status), "{name}: {got:?}");
        if status != "200" {
            assert_eq!(got.len(), 1, "{name}");
            continue;
        }
        assert_eq!(got, ["200", if answered { "BYE" } else { "CANCEL" }], "{name}");
        let core = lab.shard.core.borrow();
        let here = core.get(place).unwrap();
        assert!(here.name.starts_with("PJSIP/trunk-"), "{name}: {}", here.name);
        assert_eq!(here.state, call::ChanState::Up, "{name}");
        assert_eq!(here.bridge.is_some(), answered, "{name}");
    }
}

#[test]
fn rfc5589_6_a_transferer_who_offers_again_is_answered_and_then_sent_bye() {
    let mut lab = laboratory();
    let mut alice = Phone::new("alice");
    let a = incoming(&mut lab, &mut alice);
    let (b, _) = outgoing(&mut lab, "trunk");
    lab.talk(a, b);
    alice.inside(&mut lab, "REFER", "Refer-To: <sip:200@strowger>\r\n", "");
    assert_eq!(lab.lines(), ["202", "NOTIFY"]);
    assert!(lab.shard.core.borrow().get(a).is_none(), "its channel is gone");
    alice.inside(&mut lab, "INVITE", "", &sdp("198.51.100.7", 4000, OFFER));
    let ok = lab.sent();
    assert_eq!((line(&ok), body(&ok).contains("m=audio ")), ("200".to_owned(), true));
    assert!(lab.lines().is_empty(), "not before it is acknowledged");
    alice.ack(&mut lab, &ok, "");
    assert_eq!(lab.lines(), ["BYE"]);
}

#[test]
fn what_a_refer_carries_is_read_where_the_other_party_goes_on() {
    for (name, headers, variable_name, wanted, reason, feature) in [
        (
            "what is asked for",
            "X-Case: 7\r\nX-Other: 8\r\n",
            "~HASH~TRANSFER_DATA~X-Case~",
            ("X-C", "7"),
            "",
            "",
        ),
        ("everything", "X-Case: 7\r\n", "~HASH~TRANSFER_DATA~X-Case~", ("*", "7"), "", ""),
        ("something else", "X-Case: 7\r\n", "~HASH~TRANSFER_DATA~X-Case~", ("Y", ""), "", ""),
        ("nothing", "X-Case: 7\r\n", "~HASH~TRANSFER_DATA~X-Case~", ("", ""), "", ""),
        ("to voicemail", "Diversion: <sip:30@h>;reason=send_to_vm\r\n", "x", ("", ""), "send_to_vm", ""),
        ("quoted", "Diversion: <sip:30@h>;reason=\"SEND_TO_VM\"\r\n", "x", ("", ""), "send_to_vm", ""),
        ("for another reason", "Diversion: <sip:30@h>;reason=user-busy\r\n", "x", ("", ""), "", ""),
        (
            "to voicemail by a key",
            "X-Digium-Call-Feature: feature_send_to_vm\r\n",
            "x",
            ("", ""),
            "",
            "feature_send_to_vm",
        ),
    ] {
        for transferer in ["alice", "trunk"] {
            let mut lab = Lab::new(site());
            lab.storyless = true;
            let mut alice = Phone::new("alice");
            let a = incoming(&mut lab, &mut alice);
            let (b, mut trunk) = outgoing(&mut lab, "trunk");
            lab.talk(a, b);
            let (phone, other) = if transferer == "alice" { (&mut alice, b) } else { (&mut trunk, a) };
            lab.with(|_, core| core.set_variable(other, "GET_TRANSFERRER_DATA", wanted.0));
            phone.inside(&mut lab, "REFER", &format!("Refer-To: <sip:200@strowger>\r\n{headers}"), "");
            assert_eq!(lab.lines()[0], "202", "{name}");
            assert_eq!(variable(&lab, other, variable_name), wanted.1, "{name} by {transferer}");
            let found = lab.shard.core.borrow().get(other).map(|c| c.redirecting.reason.clone());
            assert_eq!(found.as_deref(), Some(reason), "{name} by {transferer}");
            let read = lab.read(other, "PJSIP_HEADER", "read,X-Digium-Call-Feature");
            assert_eq!(read.as_deref(), Some(feature), "{name} by {transferer}");
        }
    }
}

#[test]
fn rfc3891_3_a_replaces_that_matches_nothing_or_is_none_is_refused() {
    for (replaces, status) in [
        ("Replaces: nobody;to-tag=1;from-tag=2\r\n", "481"),
        ("Replaces: nobody;to-tag=1\r\n", "400"),
        ("Replaces: a;to-tag=1;from-tag=2\r\nReplaces: b;to-tag=1;from-tag=2\r\n", "400"),
        ("Require: replaces\r\nReplaces: nobody;to-tag=1;from-tag=2\r\n", "481"),
    ] {
        let mut lab = Lab::new(site());
        let mut trunk = Phone::new("trunk");
        let answer =
            trunk.ask(&mut lab, "INVITE", "sip:100@strowger", replaces, &sdp("198.51.100.7", 4000, OFFER));
        assert_eq!(line(&answer), status, "{replaces}");
        lab.rest();
    }
}

#[test]
fn rfc3515_2_4_4_an_answered_call_is_sent_elsewhere_by_refer_and_its_story_hears_how_it_went() {
    for (answer, more, fragment, expected) in [
        (202, "", Some("SIP/2.0 200 OK"), Some(200)),
        (202, "", Some("SIP/2.0 486 Busy Here"), Some(486)),
        (202, "", Some("SIP/2.0 100 Trying"), None),
        (202, "", None, None),
        (202, "Refer-Sub: false\r\n", None, Some(200)),
        (405, "", None, Some(405)),
    ] {
        let mut lab = Lab::new(site());
        let mut trunk = Phone::new("trunk");
        let id = incoming(&mut lab, &mut trunk);
        let sent = lab.with(|sip, core| call::Tech::transfer(sip, core, id, "PJSIP/trunk"));
        assert_eq!(sent, call::Transferring::Begun);
        let refer = lab.sent();
        assert_eq!(line(&refer), "REFER");
        for (name, value) in [
            ("Refer-To", "sip:trunk@198.51.100.7:5062"),
            ("Referred-By", "<sip:100@strowger>"),
            ("Event", "refer"),
            ("Expires", "600"),
            ("Accept", "message/sipfrag;version=2.0"),
            ("Allow-Events", "message-summary, presence, dialog, refer"),
        ] {
            assert_eq!(header(&refer, name), value, "{name}");
        }
        trunk.respond(&mut lab, &refer, answer, more, "");
        if let Some(fragment) = fragment {
            let headers = "Event: refer\r\nSubscription-State: active\r\nContent-Type: message/sipfrag\r\n";
            trunk.inside(&mut lab, "NOTIFY", headers, fragment);
            assert_eq!(lab.lines(), ["200"]);
        }
        let heard = lab.heard();
        let transferred = expected.map(|status| format!("{:?}", ChanEvent::Transferred(status)));
        assert_eq!(
            heard.last().filter(|line| line.starts_with("Transferred")),
            transferred.as_ref(),
            "{heard:?}"
        );
    }
}

#[test]
fn what_a_phone_asks_for_is_told_to_programs_where_they_carry_out_transfers() {
    let mut lab = laboratory();
    let mut alice = Phone::new("alice");
    let a = incoming(&mut lab, &mut alice);
    for (value, taken) in [("perhaps", false), ("core", true), ("ari-only", true)] {
        let written =
            lab.shard.with_tech(a, |tech, core| tech.write(core, a, "PJSIP_TRANSFER_HANDLING", "", value));
        assert_eq!(written, Some(taken), "{value}");
    }
    let say = |lab: &mut Lab, state: &str| {
        let said = lab.shard.with_tech(a, |tech, core| tech.transfer_progress(core, a, state));
        lab.settle();
        said
    };
    assert_eq!(say(&mut lab, "channel_answered"), Some(false), "nothing was asked for");
    let events = |lab: &Lab| -> Vec<(Option<&'static str>, String, Option<String>, usize)> {
        let notices = std::mem::take(&mut lab.shard.core.borrow_mut().notices);
        let transfer = |notice| match notice {
            Notice::Stasis(of) => match *of {
                call::stasis::StasisNotice::Transfer(of) => {
                    Some((of.state, of.destination, of.protocol_id, of.params.len()))
                }
                _ => None,
            },
            _ => None,
        };
        notices.into_iter().filter_map(transfer).collect()
    };
    events(&lab);
    let to = "Refer-To: <sip:200@strowger?Replaces=call%3Bto-tag%3Dt%3Bfrom-tag%3Df>\r\n";
    alice.inside(&mut lab, "REFER", to, "");
    assert_eq!(line(&lab.sent()), "202");
    assert_eq!(told(&mut lab, &alice).1, "SIP/2.0 100 Trying\r\n");
    assert_eq!(events(&lab), [(None, "200".to_owned(), Some("call".to_owned()), 2)]);
    alice.inside(&mut lab, "REFER", to, "");
    assert_eq!(lab.lines(), ["491"], "one at a time");
    for (state, status) in [("channel_progress", "100"), ("channel_declined", "603")] {
        assert_eq!(say(&mut lab, state), Some(true), "{state}");
        let fragment = told(&mut lab, &alice).1;
        assert!(fragment.starts_with(&format!("SIP/2.0 {status} ")), "{fragment}");
        assert_eq!(events(&lab), [(Some(state), "200".to_owned(), Some("call".to_owned()), 2)]);
    }
    assert_eq!(say(&mut lab, "channel_answered"), Some(false), "it is over");
    // The call has gone on all the time.
    assert!(lab.shard.core.borrow().get(a).is_some_and(|channel| channel.hangup.is_none()));
}
