//! `MeetMe` and its kin in an invented world: rooms and PINs, what letters do, what dialplans change.

mod common;

use std::sync::Arc;

use base::ChannelId;
use call::conference::Pins;
use common::*;
use sim::{Act, World};

const PLAN: &str = "[default]\nexten => _0.,1,MeetMe(${EXTEN:1})\n same => n,NoOp(after)\n\
                    exten => ask,1,MeetMe(,p)\n same => n,NoOp(after ${MEETMESECS})\n\
                    exten => d,1,MeetMe(700,d)\n\
                    exten => dq,1,MeetMe(700,dqX)\n\
                    exten => D,1,MeetMe(800,D)\n\
                    exten => e,1,MeetMe(,E)\n same => n,NoOp(after)\n\
                    exten => C,1,MeetMe(700,dC)\n same => n,NoOp(after)\n\
                    exten => S,1,MeetMe(700,dS(5))\n same => n,NoOp(after ${MEETMESECS})\n\
                    exten => w,1,MeetMe(700,dw(6))\n same => n,NoOp(after)\n\
                    exten => k,1,MeetMe(700,dk)\n\
                    exten => l,1,MeetMe(700,dls)\n\
                    exten => r,1,Set(MEETME_RECORDINGFILE=meeting)\n same => n,MeetMe(700,drG(intro)bz)\n\
                    exten => _a.,1,MeetMeAdmin(700,${EXTEN:1:1},${EXTEN:2})\n same => n,NoOp(${MEETMEADMINSTATUS})\n\
                    exten => _c.,1,MeetMeChannelAdmin(SIM/6001-00000000,${EXTEN:1})\n\
                    exten => n,1,MeetMeCount(700,HOW)\n same => n,NoOp(${HOW} ${MEETME_INFO(parties,700)} \
                    ${MEETME_INFO(lock,700)} ${MEETME_INFO(dynamic,700)} ${MEETME_INFO(dynamic,100)} ${MEETME_INFO(activity,700)})\n\
                    exten => 5,1,NoOp(dialled out)\n";

fn meetings() -> World {
    let mut world = world(PLAN);
    world.watch();
    world.settings(|settings| {
        let pins = |user: &str, admin: &str| Pins { user: user.to_owned(), admin: admin.to_owned() };
        let rooms = [("100", pins("12", "34")), ("200", pins("", ""))];
        settings.meeting_rooms = Arc::new(rooms.map(|(number, pins)| (number.to_owned(), pins)).into());
    });
    world
}

fn until(world: &mut World, ms: u64) {
    world.run_until(at(ms));
}

fn press(world: &mut World, id: ChannelId, digits: &str) {
    for (n, digit) in (0..).zip(digits.chars()) {
        world.act(id, std::time::Duration::from_millis(200 * n), Act::Press(digit));
    }
}

/// Name of the conference that a channel is in, and whether it is an administrator there.
fn place(world: &World, id: ChannelId) -> Option<(String, bool)> {
    let core = world.shard.core.borrow();
    let conference = core.conferences.of(id)?;
    Some((conference.name.clone(), core.conferences.member(id)?.seat.is_admin))
}

fn said(world: &World, words: &str) -> usize {
    lines(world, words).len()
}

#[test]
fn rooms_of_the_file_ask_for_their_pins_and_know_administrators_by_them() {
    for (exten, typed, expected) in [
        ("0100", "12#", Some(("100", false))),
        ("0100", "9#34#", Some(("100", true))),
        ("0100", "1#2#3#", None),
        ("0200", "", Some(("200", false))),
        ("0300", "", None),
        ("ask", "100#12#", Some(("100", false))),
        ("e", "", Some(("200", false))),
        ("d", "", Some(("700", false))),
    ] {
        let mut world = meetings();
        let id = call(&mut world, exten, &[(30_000, BYE)]);
        until(&mut world, 1500);
        press(&mut world, id, typed);
        until(&mut world, 12_000);
        let expected = expected.map(|(name, is_admin)| (name.to_owned(), is_admin));
        assert_eq!(place(&world, id), expected, "{exten} {typed}: {:?}", world.transcript());
        world.run();
        at_rest(&world, exten);
    }
}

#[test]
fn rooms_that_are_rows_have_pins_times_and_room_for_so_many() {
    let mut probe = meetings();
    let wall = probe.shard.core.borrow().services.wall.now_micros() / 1_000_000;
    until(&mut probe, 1);
    let time = |seconds: i64| {
        let civil = dialplan::zone::Civil::at(wall + seconds, 0);
        let dialplan::zone::Civil { year, month, day, hour, minute, second, .. } = civil;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    };
    let booked = || {
        let mut world = meetings();
        world.settings(|settings| {
            settings.bookings = call::conference::Bookings {
                has_rows: true,
                schedule: true,
                early: std::time::Duration::from_secs(60),
                early_alert: std::time::Duration::from_secs(600),
                end_alert: std::time::Duration::from_secs(20),
                extend_by: std::time::Duration::from_secs(30),
                counts: true,
            };
        });
        let row = |id: u32, number: &str, from: i64, to: i64, rest: &str| {
            format!("{id}|{number}|{}|{}|{rest}", time(from), time(to))
        };
        let rows = [
            row(1, "500", -600, 40, "12|34||q|"),
            row(2, "501", 30, 600, "|||q|"),
            row(3, "502", 300, 600, "|||q|"),
            row(4, "503", 7200, 9000, "|||q|"),
            row(5, "504", -600, -10, "|||q|"),
            row(6, "505", -600, 600, "|||q|1"),
        ];
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let columns =
            ["bookid", "confno", "starttime", "endtime", "pin", "adminpin", "adminopts", "opts", "maxusers"];
        world.table("meetme", &columns, &rows);
        world
    };
    for (exten, typed, expected, heard) in [
        ("0500", "12#", Some(("500", false)), ""),
        ("0500", "34#", Some(("500", true)), ""),
        ("0501", "", Some(("501", false)), ""),
        ("0502", "", None, "conf-has-not-started"),
        ("0503", "", None, "conf-invalid"),
        ("0504", "", None, "conf-invalid"),
        ("0506", "", None, "conf-invalid"),
    ] {
        let mut world = booked();
        let id = call(&mut world, exten, &[(30_000, BYE)]);
        until(&mut world, 1500);
        press(&mut world, id, typed);
        until(&mut world, 8_000);
        let expected = expected.map(|(name, is_admin)| (name.to_owned(), is_admin));
        assert_eq!(place(&world, id), expected, "{exten} {typed}: {:?}", world.transcript());
        assert!(heard.is_empty() || said(&world, heard) > 0, "{exten}: {:?}", world.transcript());
        world.run();
        at_rest(&world, exten);
    }
    // It ends when its time is over, which is told before; one more than may be there is not let in.
    let mut world = booked();
    let first = call(&mut world, "0500", &[(90_000, BYE)]);
    let only = call(&mut world, "0505", &[(90_000, BYE)]);
    until(&mut world, 1500);
    press(&mut world, first, "12#");
    until(&mut world, 10_000);
    let second = call(&mut world, "0505", &[(90_000, BYE)]);
    until(&mut world, 19_000);
    assert_eq!((place(&world, only).is_some(), place(&world, second)), (true, None));
    assert_eq!((said(&world, "conf-full"), said(&world, "conf-will-end-in")), (1, 0));
    until(&mut world, 30_000);
    assert_eq!(said(&world, "conf-will-end-in"), 1);
    assert!(place(&world, first).is_some());
    until(&mut world, 41_000);
    assert_eq!(place(&world, first), None, "{:?}", world.transcript());
    let counts: Vec<String> = world
        .wanted_links()
        .into_iter()
        .filter_map(|want| match want {
            call::LinkWant::Rows(want) => match want.ask {
                base::RowsAsk::Change { keys, sets, .. } => Some(format!("{}={}", keys[0].1, sets[0].1)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(counts, ["6=1", "1=1", "1=0"], "who is there is written into the rows");
    world.run();
}

#[test]
fn the_first_may_choose_a_pin_that_the_others_are_asked_for() {
    let mut world = meetings();
    let first = call(&mut world, "D", &[(60_000, BYE)]);
    until(&mut world, 1500);
    press(&mut world, first, "77#");
    until(&mut world, 5000);
    assert_eq!(place(&world, first), Some(("800".to_owned(), false)));
    let second = call(&mut world, "D", &[(60_000, BYE)]);
    until(&mut world, 6500);
    press(&mut world, second, "1#77#");
    until(&mut world, 14_000);
    assert_eq!(place(&world, second), Some(("800".to_owned(), false)));
    assert_eq!(said(&world, "conf-invalidpin"), 1);
    world.run();
}

#[test]
fn letters_end_a_stay_as_they_say_and_the_dialplan_goes_on_or_not() {
    // Who comes, what happens at four seconds, what the dialplan notes in the end.
    for (exten, act, expected) in [
        ("S", "", vec!["after 5"]),
        ("w", "", vec!["after"]),
        ("C", "aK", vec!["OK", "after"]),
        ("d", "aK", vec!["OK"]),
    ] {
        let mut world = meetings();
        call(&mut world, exten, &[(30_000, BYE)]);
        until(&mut world, 4000);
        if !act.is_empty() {
            call(&mut world, act, &[]);
        }
        world.run();
        assert_eq!(noted(&world), expected, "{exten}");
    }
}

#[test]
fn keys_leave_lead_out_and_lead_to_the_menu_of_who_only_listens() {
    let mut world = meetings();
    let asker = call(&mut world, "ask", &[(60_000, BYE)]);
    until(&mut world, 1500);
    press(&mut world, asker, "200#");
    until(&mut world, 6000);
    press(&mut world, asker, "#");
    until(&mut world, 6500);
    assert!(noted(&world)[0].starts_with("after "), "{:?}", noted(&world));
    let out = call(&mut world, "dq", &[(60_000, BYE)]);
    let listener = call(&mut world, "l", &[(60_000, BYE)]);
    until(&mut world, 9000);
    press(&mut world, out, "5");
    until(&mut world, 10_000);
    assert!(noted(&world).contains(&"dialled out".to_owned()), "{:?}", noted(&world));
    press(&mut world, listener, "*");
    until(&mut world, 11_200);
    press(&mut world, listener, "4");
    until(&mut world, 14_000);
    assert_eq!(
        (said(&world, "conf-usermenu"), said(&world, "hears at 128/256")),
        (1, 1),
        "{:?}",
        world.transcript()
    );
    world.run();
}

#[test]
fn who_is_left_alone_by_one_with_k_leaves_too() {
    let mut world = meetings();
    let left = call(&mut world, "d", &[(60_000, BYE)]);
    call(&mut world, "k", &[(5000, BYE)]);
    until(&mut world, 4000);
    assert!(place(&world, left).is_some());
    until(&mut world, 8000);
    assert_eq!(place(&world, left), None);
    world.run();
}

#[test]
fn a_conference_is_recorded_where_variables_say_and_what_has_no_effect_is_logged() {
    let mut world = meetings();
    call(&mut world, "r", &[(9000, BYE)]);
    call(&mut world, "r", &[(9000, BYE)]);
    until(&mut world, 6000);
    assert_eq!(said(&world, "records /monitor/meeting.wav"), 1, "{:?}", world.transcript());
    assert_eq!(said(&world, "room 0 hears intro"), 2);
    let logged = warnings(&world);
    for words in ["option b", "option z"] {
        assert!(logged.iter().any(|line| line.contains(words)), "{words}: {logged:?}");
    }
    world.run();
}

#[test]
fn dialplans_change_conferences_by_letters() {
    let mut world = meetings();
    let first = call(&mut world, "d", &[(60_000, BYE)]);
    let second = call(&mut world, "d", &[(60_000, BYE)]);
    until(&mut world, 3000);
    let muted = |world: &World, id| {
        let core = world.shard.core.borrow();
        let conference = core.conferences.of(id).unwrap();
        conference.silences(core.conferences.member(id).unwrap())
    };
    let mut at = 3000;
    let mut act = |world: &mut World, exten: &str| {
        call(world, exten, &[]);
        at += 100;
        until(world, at);
        noted(world).pop().unwrap()
    };
    for (exten, status, expected) in [
        ("aM1", "OK", [true, false]),
        ("am1", "OK", [false, false]),
        ("aN", "OK", [true, true]),
        ("an", "OK", [false, false]),
        ("aM9", "NOTFOUND", [false, false]),
        ("aQ", "NOPARSE", [false, false]),
        ("at1", "OK", [false, false]),
        ("aV", "OK", [false, false]),
        ("aR", "OK", [false, false]),
        ("aL", "OK", [false, false]),
    ] {
        assert_eq!(act(&mut world, exten), status, "{exten}");
        assert_eq!([muted(&world, first), muted(&world, second)], expected, "{exten}");
    }
    assert_eq!(
        (said(&world, "talks at 128/256"), said(&world, "hears at 512/256")),
        (2, 2),
        "{:?}",
        world.transcript()
    );
    assert_eq!(act(&mut world, "n"), "2 2 1 1 0 3");
    call(&mut world, "cM", &[]);
    until(&mut world, 4500);
    assert!(muted(&world, first));
    call(&mut world, "ae", &[]);
    until(&mut world, 6000);
    assert_eq!((place(&world, first).is_some(), place(&world, second)), (true, None), "the last who came");
    world.run();
}

#[test]
fn check_says_which_letters_have_no_effect() {
    let plan = "[default]\nexten => 1,1,MeetMe(700,dMvbz)\n same => n,MeetMe(700,cM)\n";
    let (program, _) = sim::parse_dialplan(plan, &apps::table::tables());
    let concerns = apps::check(&program, &Default::default());
    let said: Vec<_> = concerns.iter().map(|concern| concern.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "MeetMe: no effect has option b: no AGI script runs beside a conference",
            "MeetMe: no effect has option z: there is none"
        ]
    );
}
