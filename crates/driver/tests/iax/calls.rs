//! Calls between two sites (RFC 5456 §6.2).

use core::time::Duration;
use std::rc::Rc;

use base::{Cause, Digit, FormatId};
use call::{ChanEvent, Indication, PartyId, Presentation, Tech as _, Text};
use driver::iax::Host;
use iax2::machine::Lines;

use crate::lab::{Lab, config};

fn lab() -> Lab {
    Lab::new([config(0, "one", "two"), config(1, "two", "one")])
}

#[test]
fn rfc5456_6_2_a_call_rings_is_answered_carries_voice_both_ways_and_ends_with_its_cause() {
    for lost in [0, 100, 250] {
        let mut lab = lab();
        lab.lost = lost;
        let calling = lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(20));
        let (called, place) = lab.sites[1].started.pop_front().expect("a call");
        assert_eq!(place, "100@in", "{lost}");
        {
            let core = lab.sites[1].shard.core.borrow();
            let entry = core.get(called).unwrap();
            assert_eq!((entry.caller.number(), entry.caller.name()), ("6001", "Alice"));
            assert_eq!(entry.dialed.as_deref(), Some("100"));
            assert!(entry.name.starts_with("IAX2/one-"), "{}", entry.name);
        }
        lab.sites[1].shard.indicate(called, &Indication::Ringing);
        lab.pass(Duration::from_secs(20));
        assert_eq!(lab.sites[0].last(), "Ringing", "{lost}");
        lab.sites[1].shard.answer(called);
        lab.pass(Duration::from_secs(20));
        assert_eq!(lab.sites[0].last(), "Answered", "{lost}");

        for from in 0..2 {
            let stream = *lab.sites[from].streams.borrow().open.keys().next().unwrap();
            let payload_type = lab.sites[from].streams.borrow().open[&stream].payload;
            let mut packet = vec![0x80, payload_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            packet.extend_from_slice(&[0x40 + from as u8; 160]);
            for _ in 0..50 {
                lab.sites[from].iax.borrow_mut().media(lab.now, &[(stream, &packet)]);
                lab.pass(Duration::from_millis(20));
            }
            lab.pass(Duration::from_secs(1));
            let fed = std::mem::take(&mut lab.sites[1 - from].streams.borrow_mut().fed);
            let right = fed.iter().filter(|(_, packet)| packet[12..] == [0x40 + from as u8; 160]).count();
            assert_eq!(right, fed.len(), "{lost}: voice of the other side only");
            assert!(lost > 0 || fed.len() == 50, "{lost}: {} frames", fed.len());
            assert!(fed.len() > 20, "{lost}: {} frames", fed.len());
        }
        lab.sites[0].shard.finish(calling, Cause::NORMAL_CLEARING);
        lab.pass(Duration::from_secs(60));
        assert_eq!(lab.sites[1].last(), "Hangup 16", "{lost}");
        lab.lost = 0;
        lab.assert_idle();
    }
}

#[test]
fn rfc5456_8_6_33_a_call_that_is_refused_ends_with_the_cause_of_the_other_side() {
    for (name, cause) in
        [("busy", Cause::USER_BUSY), ("no answer", Cause::NO_ANSWER), ("rejected", Cause::CALL_REJECTED)]
    {
        let mut lab = lab();
        lab.dial(0, "far/100").unwrap();
        let (called, _) = lab.sites[1].started.pop_front().expect("a call");
        lab.sites[1].shard.finish(called, cause);
        lab.pass(Duration::from_secs(1));
        assert_eq!(lab.sites[0].last(), format!("Hangup {}", cause.0), "{name}");
        lab.assert_idle();
    }
}

#[test]
fn rfc5456_6_2_a_number_or_context_that_is_not_there_or_not_the_users_is_refused() {
    for (number, cause) in [("nobody", 3), ("100@other", 3), ("100@elsewhere", 3)] {
        let mut lab = lab();
        lab.dial(0, &format!("far/{number}")).unwrap();
        lab.pass(Duration::from_secs(1));
        assert_eq!(lab.sites[0].last(), format!("Hangup {cause}"), "{number}");
        assert!(lab.sites[1].started.is_empty(), "{number}");
        lab.assert_idle();
    }
}

#[test]
fn who_does_not_know_the_password_and_who_is_nobody_hear_the_same() {
    let outcome = |peer: &str| {
        let mut lab = lab();
        lab.dial(0, &format!("{peer}/100")).unwrap();
        lab.pass(Duration::from_secs(1));
        assert!(lab.sites[1].started.is_empty(), "{peer}");
        let heard = lab.sites[0].heard.borrow().clone();
        lab.assert_idle();
        heard
    };
    let wrong = outcome("wrong");
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong, outcome("unknown"));
}

#[test]
fn rfc5456_8_2_digits_text_and_hold_reach_the_other_side() {
    let mut lab = lab();
    let (calling, called) = lab.talk();
    let said = |lab: &mut Lab, act: &dyn Fn(&mut driver::iax::IaxDriver, &mut call::Core)| {
        {
            let site = &lab.sites[0];
            let mut core = site.shard.core.borrow_mut();
            core.now = lab.now;
            act(&mut site.iax.borrow_mut(), &mut core);
        }
        lab.pass(Duration::from_secs(1));
        lab.sites[1].last()
    };
    let digit = Digit::from_char('5').unwrap();
    let heard = said(&mut lab, &|iax, core| assert!(iax.send_digit(core, calling, digit, 100)));
    assert!(heard.starts_with("Digit {") && heard.contains("relayed: false"), "{heard}");
    let text = format!("{:?}", ChanEvent::Text(Text::plain("hello")));
    let heard = said(&mut lab, &|iax, core| assert!(iax.send_text(core, calling, "hello")));
    assert_eq!(heard, text);
    // Music is played here, unless the other side is to be told.
    let heard = said(&mut lab, &|iax, core| iax.indicate(core, calling, &Indication::Hold));
    assert_eq!(heard, text);
    let heard = said(&mut lab, &|iax, core| {
        core.get_mut(calling).unwrap().passes_hold = true;
        iax.indicate(core, calling, &Indication::Hold);
    });
    assert_eq!(heard, "Hold");
    let heard = said(&mut lab, &|iax, core| iax.indicate(core, calling, &Indication::Unhold));
    assert_eq!(heard, "Unhold");
    lab.sites[1].shard.finish(called, Cause::NORMAL_CLEARING);
    lab.pass(Duration::from_secs(1));
    lab.assert_idle();
}

/// What a leg heard of whom it talks to.
fn party_heard(lab: &Lab, site: usize) -> Option<String> {
    let heard = lab.sites[site].heard.borrow();
    heard.iter().rev().find(|said| said.starts_with("ConnectedLine")).cloned()
}

#[test]
fn a_call_that_goes_on_with_somebody_else_says_so_where_connectedline_says_send_and_receive() {
    const NO: Lines = Lines { send: false, take: false };
    const SEND: Lines = Lines { send: true, take: false };
    const RECEIVE: Lines = Lines { send: false, take: true };
    const YES: Lines = Lines { send: true, take: true };
    for (ours, theirs, there, back) in [
        (YES, YES, true, true),
        (SEND, RECEIVE, true, false),
        (RECEIVE, SEND, false, true),
        (NO, YES, false, false),
        (YES, NO, false, false),
    ] {
        let (mut calling, mut called) = (config(0, "one", "two"), config(1, "two", "one"));
        let mut far = crate::lab::peer("far", Host::Fixed(crate::lab::address(1)), "one", crate::lab::SECRET);
        far.common.lines = ours;
        calling.peers.insert(far.name.clone(), Rc::new(far));
        let mut user = crate::lab::user("one");
        (user.common.lines, user.common.caller.tag) = (theirs, "site".to_owned());
        called.users.insert(user.name.clone(), Rc::new(user));
        let mut lab = Lab::new([calling, called]);
        let (calling, called) = lab.talk();
        for (from, channel, goes, other) in [(0, calling, there, called), (1, called, back, calling)] {
            let name = format!("{ours:?} {theirs:?} from {from}");
            let party = PartyId {
                number: Some("(555) 20-0".to_owned()),
                name: Some("Bob".to_owned()),
                number_presentation: Presentation::parse("prohib").unwrap(),
                ..PartyId::default()
            };
            let sent = lab.wire.len();
            for _ in 0..2 {
                // Who knows it already is not told once more.
                lab.sites[from].shard.indicate(channel, &Indication::ConnectedLine(party.clone()));
                lab.pass(Duration::from_millis(100));
            }
            assert_eq!(lab.wire.len() - sent, if goes { 2 } else { 0 }, "{name}: one frame, acknowledged");
            assert_eq!(party_heard(&lab, 1 - from).is_some(), goes, "{name}");
            if goes {
                let core = lab.sites[1 - from].shard.core.borrow();
                let caller = &core.get(other).unwrap().caller;
                assert_eq!((caller.number(), caller.name()), ("555200", "Bob"), "{name}");
                assert!(caller.number_presentation.is_hidden(), "{name}");
                assert_eq!(caller.tag, if from == 0 { "site" } else { "" }, "{name}");
            }
        }
        lab.sites[0].shard.finish(calling, Cause::NORMAL_CLEARING);
        lab.pass(Duration::from_secs(1));
        lab.assert_idle();
    }
}

#[test]
fn whom_the_caller_talks_to_since_new_is_told_as_soon_as_the_call_is_accepted() {
    let lines = Lines { send: true, take: true };
    let (mut calling, mut called) = (config(0, "one", "two"), config(1, "two", "one"));
    let mut far = crate::lab::peer("far", Host::Fixed(crate::lab::address(1)), "one", crate::lab::SECRET);
    far.common.lines = lines;
    calling.peers.insert(far.name.clone(), Rc::new(far));
    let mut user = crate::lab::user("one");
    user.common.lines = lines;
    called.users.insert(user.name.clone(), Rc::new(user));
    let mut lab = Lab::new([calling, called]);
    lab.lost = 1000;
    let calling = lab.dial(0, "far/100").unwrap();
    let party = PartyId { number: Some("6002".to_owned()), ..PartyId::default() };
    lab.sites[0].shard.indicate(calling, &Indication::ConnectedLine(party));
    lab.lost = 0;
    lab.pass(Duration::from_secs(20));
    let (channel, _) = lab.sites[1].started.pop_front().expect("a call");
    assert_eq!(lab.sites[1].shard.core.borrow().get(channel).unwrap().caller.number(), "6002");
}

#[test]
fn a_site_that_falls_silent_ends_the_call_and_leaves_nothing() {
    let mut lab = lab();
    let (calling, _) = lab.talk();
    lab.lost = 1000;
    lab.sites[0].shard.finish(calling, Cause::NORMAL_CLEARING);
    // It asks whether we are there, repeats that for 50 s at most, and gives up.
    lab.pass(Duration::from_secs(300));
    assert!(lab.sites[1].last().starts_with("Hangup "), "{}", lab.sites[1].last());
    lab.lost = 0;
    lab.assert_idle();
}

#[test]
fn a_stream_hears_the_formats_of_its_leg_and_sends_the_one_that_was_agreed() {
    let mut lab = lab();
    let (calling, called) = lab.talk();
    for (site, channel) in [(0, calling), (1, called)] {
        let streams = lab.sites[site].streams.borrow();
        let plan = streams.open.values().next().unwrap();
        assert_eq!((plan.format, plan.remote), (FormatId::ULAW, Some(base::PIPE)));
        assert_eq!(lab.sites[site].shard.core.borrow().get(channel).unwrap().format, FormatId::ULAW);
    }
    let rows = lab.sites[0].iax.borrow().show_channels(&lab.sites[0].shard.core.borrow());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].username.as_str(), rows[0].format), ("far", Some(FormatId::ULAW)));
    // NEW and AUTHREP were sent and LAGRQ every ten seconds, of which the field's columns tell the first and the latest.
    assert_eq!(rows[0].messages[0], "Tx:NEW");
    assert!(rows[0].messages[1].starts_with("Tx:") || rows[0].messages[1].starts_with("Rx:"), "{rows:?}");
    assert!(rows[0].sequence.0 >= 3 && rows[0].sequence.1 >= 3, "{rows:?}");
    assert_eq!(rows[0].lag_ms, 20, "twice the way");
    let there = lab.sites[1].iax.borrow().show_channels(&lab.sites[1].shard.core.borrow());
    assert_eq!(
        (there[0].messages[0].as_str(), there[0].sequence),
        ("Rx:NEW", (rows[0].sequence.1, rows[0].sequence.0))
    );
    // Each side has a number for the call, of which the other's address is told.
    let hosts = lab.sites[1].iax.borrow().show_hosts(None, 10);
    assert_eq!(hosts.len(), 1);
    assert_eq!((hosts[0].address, hosts[0].used), (crate::lab::address(0).ip(), 1));
    assert_eq!(lab.sites[1].iax.borrow().show_hosts(Some([192, 0, 2, 77].into()), 10), []);
    lab.sites[0].shard.finish(calling, Cause::NORMAL_CLEARING);
    lab.pass(Duration::from_secs(1));
    lab.assert_idle();
}

#[test]
fn a_call_has_the_flags_the_number_and_the_music_that_are_written_of_its_user() {
    type Change = fn(&mut driver::iax::Config, &mut driver::iax::User);
    for (name, change, number, flags, suggested) in [
        ("as it is", (|_, _| {}) as Change, "5556001", call::AmaFlags::Documentation, ""),
        (
            "shrinkcallerid=no",
            |config, _| config.shrink_caller_id = false,
            "(555) 60-01",
            call::AmaFlags::Documentation,
            "",
        ),
        (
            "amaflags=billing",
            |_, user| user.ama_flags = Some(call::AmaFlags::Billing),
            "5556001",
            call::AmaFlags::Billing,
            "",
        ),
        (
            "mohsuggest=jazz",
            |_, user| user.common.music_suggested = "jazz".to_owned(),
            "5556001",
            call::AmaFlags::Documentation,
            "jazz",
        ),
    ] {
        let mut called = config(1, "two", "one");
        let mut user = crate::lab::user("one");
        change(&mut called, &mut user);
        called.users.insert(user.name.clone(), Rc::new(user));
        let mut lab = Lab::new([config(0, "one", "two"), called]);
        lab.number = "(555) 60-01".to_owned();
        lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(1));
        let (id, _) = lab.sites[1].started.pop_front().expect("a call");
        let core = lab.sites[1].shard.core.borrow();
        let entry = core.get(id).unwrap();
        let got = (entry.caller.number(), entry.cdr.ama_flags, entry.music_suggested.as_str());
        assert_eq!(got, (number, flags, suggested), "{name}");
    }
}

#[test]
fn a_call_to_who_is_not_there_ends_in_the_time_of_autokill() {
    let mut calling = config(0, "one", "two");
    calling.autokill = Some(Duration::from_secs(2));
    let mut lab = Lab::new([calling, config(1, "two", "one")]);
    lab.lost = 1000;
    lab.dial(0, "far/100").unwrap();
    lab.pass(Duration::from_millis(1700));
    assert!(lab.sites[0].heard.borrow().is_empty());
    lab.pass(Duration::from_millis(200));
    assert_eq!(lab.sites[0].last(), "Hangup 27");
    lab.lost = 0;
    lab.assert_idle();
}

#[test]
fn voice_of_a_peer_with_a_forced_jitter_buffer_is_held_back() {
    let mut called = config(1, "two", "one");
    let mut user = crate::lab::user("one");
    (user.common.evens_out, user.common.jitter) = (true, Some(Duration::from_millis(300)));
    called.users.insert(user.name.clone(), Rc::new(user));
    let mut lab = Lab::new([config(0, "one", "two"), called]);
    lab.talk();
    let limits = base::HoldBack { least_ms: 20, most_ms: 300 };
    assert_eq!(lab.sites[1].streams.borrow().held_back, [Some(limits)]);
    assert_eq!(lab.sites[0].streams.borrow().held_back, []);
}
