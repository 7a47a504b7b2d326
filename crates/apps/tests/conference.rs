//! `ConfBridge` in an invented world: who enters which room, what is heard, what keys do, how a stay ends.

mod common;

use std::sync::Arc;

use base::ChannelId;
use call::Notice;
use call::conference::{
    BRIDGE_ROWS, BridgeProfile, Leaving, MemberChange, Menu, Profiles, SOUND_ROWS, USER_ROWS, UserProfile,
    Which, row,
};
use common::*;
use sim::{Act, World};

const PLAN: &str = "[default]\nexten => 1,1,ConfBridge(room)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 2,1,ConfBridge(room,small,chief)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 3,1,ConfBridge(room,none)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 4,1,ConfBridge()\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 5,1,ConfBridge(room,small)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => _u.,1,ConfBridge(room,,${EXTEN:1})\n same => n,NoOp(${EXTEN} ${CONFBRIDGE_RESULT})\n\
                    exten => _k.,1,ConfBridge(room,,${EXTEN:1},keys)\n same => n,NoOp(${EXTEN} ${CONFBRIDGE_RESULT})\n\
                    exten => rec,1,ConfBridge(room,taped)\n\
                    exten => kick,1,ConfKick(room)\n same => n,NoOp(${CONFKICKSTATUS})\n\
                    exten => h,1,NoOp(h ${CONFBRIDGE_RESULT})\n\
                    [elsewhere]\nexten => s,1,Playback(away)\n";

fn user(options: &[(&str, &str)]) -> Arc<UserProfile> {
    let mut profile = UserProfile::default();
    for (name, value) in options {
        assert!(row(USER_ROWS, name).unwrap().set(&mut profile, value), "{name}={value}");
    }
    Arc::new(profile)
}

fn bridge(options: &[(&str, &str)]) -> Arc<BridgeProfile> {
    let mut profile = BridgeProfile::default();
    for (name, value) in options {
        let row = row(BRIDGE_ROWS, name).or_else(|| row(SOUND_ROWS, name));
        assert!(row.unwrap().set(&mut profile, value), "{name}={value}");
    }
    Arc::new(profile)
}

fn menu(keys: &[(&str, &str)]) -> Arc<Menu> {
    let mut menu = Menu::default();
    keys.iter().for_each(|(digits, actions)| menu.set(digits, actions).unwrap());
    Arc::new(menu)
}

/// A world with the profiles that the tests name: `small` of at most two members, `chief`, a muted administrator who is
/// quiet, and others by what they are for.
fn conferences() -> World {
    let mut world = world(PLAN);
    world.watch();
    let users = [
        (
            "chief",
            user(&[
                ("startmuted", "yes"),
                ("admin", "yes"),
                ("talk_detection_events", "yes"),
                ("quiet", "yes"),
                ("announce_only_user", "no"),
            ]),
        ),
        ("plain", user(&[])),
        ("admin", user(&[("admin", "yes")])),
        ("pinned", user(&[("pin", "1234")])),
        ("leader", user(&[("marked", "yes")])),
        ("waiter", user(&[("wait_marked", "yes"), ("music_on_hold_when_empty", "yes")])),
        ("ender", user(&[("wait_marked", "yes"), ("end_marked", "yes")])),
        ("lonely", user(&[("music_on_hold_when_empty", "yes"), ("music_on_hold_class", "soft")])),
        ("counter", user(&[("announce_user_count", "yes"), ("announcement", "rules")])),
        ("crier", user(&[("announce_user_count_all", "1")])),
        ("louder", user(&[("announce_user_count_all", "2")])),
        ("named", user(&[("announce_join_leave", "yes")])),
        ("short", user(&[("timeout", "5")])),
        ("through", user(&[("dtmf_passthrough", "yes")])),
        ("deaf", user(&[("text_messaging", "no")])),
        ("still", user(&[("hear_own_join_sound", "no")])),
    ];
    let keys = [
        ("1", "toggle_mute"),
        ("2", "playback(one&two)"),
        ("3", "leave_conference"),
        ("4", "decrease_listening_volume"),
        ("5", "increase_talking_volume"),
        ("6", "reset_listening_volume,participant_count"),
        ("7", "dialplan_exec(elsewhere,s,1)"),
        ("8", "admin_kick_last"),
        ("9", "admin_toggle_conference_lock"),
        ("0", "admin_toggle_mute_participants"),
        ("*", "playback_and_continue(menu)"),
        ("*1", "leave_conference"),
    ];
    world.settings(|settings| {
        settings.conferences = Arc::new(Profiles {
            bridges: [
                ("small".to_owned(), bridge(&[("max_members", "2"), ("sound_locked", "no-room")])),
                (
                    "taped".to_owned(),
                    bridge(&[
                        ("record_conference", "yes"),
                        ("regcontext", "busy-rooms"),
                        ("record_command", "mv ^{MIXMONITOR_FILENAME} /kept/^{CONFBRIDGE_NAME}"),
                    ]),
                ),
            ]
            .into(),
            users: users.into_iter().map(|(name, profile)| (name.to_owned(), profile)).collect(),
            menus: [("keys".to_owned(), menu(&keys))].into(),
        });
    });
    world
}

/// What watchers are told of conferences: `what name [count] [channel]`.
fn told(world: &World) -> Vec<String> {
    let line = |notice: &Notice| match notice {
        Notice::ConferenceStart { conference, .. } => Some(format!("start {conference}")),
        Notice::ConferenceEnd { conference, .. } => Some(format!("end {conference}")),
        Notice::ConferenceMember { conference, bridge, change, .. } => {
            // Who announces there is no member.
            let count = bridge.count - 1;
            let what = match change {
                MemberChange::Entered => "enters",
                MemberChange::Left => "leaves",
                MemberChange::Muted => "is muted in",
                MemberChange::Unmuted => "is unmuted in",
                MemberChange::Talking(true) => "talks in",
                MemberChange::Talking(false) => "is silent in",
            };
            Some(format!("{what} {conference} of {count}"))
        }
        _ => None,
    };
    world.notices.iter().filter_map(line).collect()
}

fn said(world: &World, words: &str) -> usize {
    world.transcript().iter().filter(|line| line.contains(words)).count()
}

fn until(world: &mut World, ms: u64) {
    world.run_until(at(ms));
}

fn change(world: &World, what: impl FnOnce(&mut call::Core)) {
    what(&mut world.shard.core.borrow_mut());
}

fn member(world: &World, id: ChannelId) -> Option<bool> {
    world.shard.core.borrow().conferences.member(id).map(|member| member.seat.mixing.muted)
}

#[test]
fn two_meet_hear_each_other_come_and_go_and_the_conference_ends_with_the_last() {
    let mut world = conferences();
    call(&mut world, "1", &[(9000, BYE)]);
    call(&mut world, "1", &[(6000, BYE)]);
    world.run();
    assert_eq!(
        told(&world),
        [
            "start room",
            "enters room of 1",
            "enters room of 2",
            "leaves room of 2",
            "leaves room of 1",
            "end room"
        ]
    );
    assert_eq!(said(&world, "enters room 0"), 2, "{:?}", world.transcript());
    assert_eq!(said(&world, "room 0 hears confbridge-join"), 2);
    assert_eq!(said(&world, "room 0 hears confbridge-leave"), 1, "nobody is left to hear the second");
    assert_eq!(said(&world, "conf-onlyperson"), 1);
    assert_eq!(noted(&world), ["h HANGUP", "h HANGUP"]);
    assert_eq!(world.shard.core.borrow().conferences.iter().count(), 0);
}

#[test]
fn who_announces_and_who_records_are_in_the_bridge_and_no_call_becomes_part_of_another() {
    for (exten, guests) in [("1", "CBAnn"), ("rec", "CBAnn CBRec")] {
        let mut world = conferences();
        call(&mut world, exten, &[(9000, BYE)]);
        call(&mut world, exten, &[(6000, BYE)]);
        world.run();
        let own = guests.split(' ').count();
        let mut counts = Vec::new();
        for notice in &world.notices {
            match notice {
                Notice::ConferenceStart { bridge, .. } => counts.push(("start", bridge.count)),
                Notice::BridgeEnter { bridge, channel, .. } => {
                    assert_eq!(channel.linkedid, channel.uniqueid, "{exten}");
                    counts.push(("enters", bridge.count));
                }
                Notice::BridgeLeave { bridge, .. } => counts.push(("leaves", bridge.count)),
                Notice::ConferenceEnd { bridge, .. } => counts.push(("end", bridge.count)),
                _ => {}
            }
        }
        let expected = [("start", 0), ("enters", 1), ("enters", 2), ("leaves", 1), ("leaves", 0), ("end", 0)];
        assert_eq!(counts, expected.map(|(what, members)| (what, members + own)), "{exten}");
        let peers: Vec<&str> = world
            .notices
            .iter()
            .filter_map(|notice| match notice {
                Notice::VarSet { variable, value, .. } if variable == "BRIDGEPEER" => Some(value.as_str()),
                _ => None,
            })
            .collect();
        let named: Vec<String> = peers
            .first()
            .into_iter()
            .flat_map(|all| all.split(','))
            .map(|name| name.split('/').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(named.join(" "), guests, "{exten}: {peers:?}");
    }
}

#[test]
fn who_is_sent_out_goes_on_in_the_dialplan() {
    let mut world = conferences();
    let first = call(&mut world, "1", &[(20_000, BYE)]);
    let second = call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 3000);
    change(&world, |core| core.conference_kick("room", Which::One(second)).unwrap());
    until(&mut world, 3001);
    assert_eq!((member(&world, first), member(&world, second)), (Some(false), None));
    world.run();
    assert_eq!(said(&world, "conf-kicked"), 1);
    assert_eq!(noted(&world)[0], "KICKED");
}

#[test]
fn profiles_bound_members_mute_them_and_keep_quiet() {
    let mut world = conferences();
    let chief = call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 2000);
    assert_eq!(member(&world, chief), Some(true));
    assert_eq!((said(&world, "confbridge-join"), said(&world, "conf-onlyperson")), (0, 0), "it is quiet");
    call(&mut world, "5", &[(20_000, BYE)]);
    until(&mut world, 3000);
    call(&mut world, "5", &[(20_000, BYE)]);
    until(&mut world, 5000);
    assert_eq!(said(&world, "no-room"), 1, "{:?}", world.transcript());
    assert_eq!(noted(&world), ["h FAILED"]);
    let other = call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 7000);
    assert_eq!(member(&world, other), Some(true), "administrators always may");
    change(&world, |core| core.conference_mute("room", Which::All, false).unwrap());
    assert_eq!(member(&world, chief), Some(false));
    assert_eq!(said(&world, "is heard"), 2);
    world.run();
}

#[test]
fn a_locked_conference_lets_administrators_in_only() {
    let mut world = conferences();
    call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 2000);
    change(&world, |core| core.conference_lock("room", true).unwrap());
    let stranger = call(&mut world, "1", &[(20_000, BYE)]);
    let chief = call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 4000);
    assert_eq!((member(&world, stranger), member(&world, chief)), (None, Some(true)));
    assert_eq!(said(&world, "conf-locked"), 1);
    world.run();
}

#[test]
fn what_cannot_be_entered_says_so_and_the_dialplan_goes_on() {
    for (exten, words) in [("3", "no bridge profile 'none'"), ("4", "requires an argument")] {
        let mut world = conferences();
        call(&mut world, exten, &[(5000, BYE)]);
        world.run();
        assert_eq!(noted(&world)[0], "FAILED", "{exten}");
        assert!(warnings(&world).iter().any(|line| line.contains(words)), "{:?}", warnings(&world));
        assert_eq!(told(&world), [""; 0]);
    }
}

#[test]
fn a_member_whose_story_falls_or_is_sent_elsewhere_leaves() {
    let mut world = conferences();
    let first = call(&mut world, "1", &[(20_000, BYE)]);
    let second = call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 2000);
    assert!(world.shard.inject_panic(first));
    change(&world, |core| core.request_goto(second, location("default", "4")));
    until(&mut world, 2500);
    assert_eq!((member(&world, first), member(&world, second)), (None, None));
    assert_eq!(told(&world).last().unwrap(), "end room");
}

/// What the channels of this number have heard for themselves, in order.
fn heard(world: &World, number: u32) -> Vec<String> {
    let start = format!("#{number} hears ");
    let own = |line: &String| Some(line.split_once(' ')?.1.strip_prefix(&start)?.to_owned());
    world.transcript().iter().filter_map(own).collect()
}

fn muted(world: &World, id: ChannelId) -> bool {
    let core = world.shard.core.borrow();
    let conference = core.conferences.of(id).unwrap();
    conference.silences(core.conferences.member(id).unwrap())
}

fn press(world: &mut World, id: ChannelId, digits: &str) {
    for (n, digit) in (0..).zip(digits.chars()) {
        world.act(id, std::time::Duration::from_millis(200 * n), Act::Press(digit));
    }
}

#[test]
fn a_pin_may_be_typed_three_times_and_then_the_call_ends() {
    for (typed, enters) in [("1234#", true), ("99#1234#", true), ("1#2#3#1234#", false)] {
        let mut world = conferences();
        let id = call(&mut world, "upinned", &[(60_000, BYE)]);
        until(&mut world, 1500);
        press(&mut world, id, typed);
        until(&mut world, 15_000);
        assert_eq!(member(&world, id).is_some(), enters, "{typed}: {:?}", world.transcript());
        world.run();
        let last = noted(&world).pop().unwrap();
        assert_eq!(last, if enters { "h HANGUP" } else { "h FAILED" }, "{typed}");
        assert_eq!(noted(&world).len(), 1, "the dialplan does not go on with a wrong PIN");
    }
}

#[test]
fn who_waits_for_a_marked_user_hears_music_and_nobody_else_until_one_comes() {
    let mut world = conferences();
    let waiter = call(&mut world, "uwaiter", &[(60_000, BYE)]);
    until(&mut world, 3000);
    assert_eq!(world.endless_sound(waiter).as_deref(), Some("music default"));
    assert_eq!(said(&world, "enters room 0 muted deaf"), 1);
    let leader = call(&mut world, "uleader", &[(20_000, BYE)]);
    until(&mut world, 8000);
    assert_eq!(world.endless_sound(waiter), None);
    assert_eq!(heard(&world, 1), ["conf-waitforleader", "music default"]);
    assert_eq!(said(&world, "#1 is heard"), 1);
    assert_eq!(said(&world, "room 0 hears confbridge-conf-begin"), 1);
    assert_eq!(heard(&world, 2), ["conf-onlyperson"; 0], "it is not alone");
    // The leader leaves: who waits, waits again.
    until(&mut world, 28_000);
    assert_eq!(member(&world, leader), None);
    assert_eq!(said(&world, "#1 is muted and deaf"), 1);
    assert_eq!(world.endless_sound(waiter).as_deref(), Some("music default"));
    assert_eq!(said(&world, "conf-leaderhasleft"), 2, "who waits hears it alone, the room besides");
    world.run();
}

#[test]
fn who_ends_with_the_marked_users_leaves_with_the_last_of_them_and_says_so() {
    let mut world = conferences();
    let ender = call(&mut world, "uender", &[(60_000, BYE)]);
    call(&mut world, "uleader", &[(5000, BYE)]);
    call(&mut world, "uleader", &[(10_000, BYE)]);
    call(&mut world, "uplain", &[(60_000, BYE)]);
    until(&mut world, 8000);
    assert!(member(&world, ender).is_some(), "one is left");
    until(&mut world, 12_000);
    assert_eq!(member(&world, ender), None);
    assert!(noted(&world).contains(&"uender ENDMARKED".to_owned()), "{:?}", noted(&world));
    world.run();
}

#[test]
fn who_is_alone_hears_music_until_another_comes_and_when_it_has_gone() {
    let mut world = conferences();
    let lonely = call(&mut world, "ulonely", &[(60_000, BYE)]);
    until(&mut world, 3000);
    assert_eq!(world.endless_sound(lonely).as_deref(), Some("music soft"));
    call(&mut world, "uplain", &[(5000, BYE)]);
    until(&mut world, 5000);
    assert_eq!(world.endless_sound(lonely), None);
    until(&mut world, 12_000);
    assert_eq!(world.endless_sound(lonely).as_deref(), Some("music soft"));
    world.run();
    at_rest(&world, "music");
}

#[test]
fn counts_and_announcements_are_for_who_comes_or_for_all() {
    let mut world = conferences();
    for exten in ["uplain", "ucounter", "ucounter", "ulouder", "ucrier"] {
        call(&mut world, exten, &[(60_000, BYE)]);
        let now = world.now().as_millis();
        until(&mut world, now + 8000);
    }
    assert_eq!(heard(&world, 2), ["rules", "conf-onlyone"]);
    assert_eq!(heard(&world, 3), ["rules", "conf-thereare", "digits/2", "conf-otherinparty"]);
    let all = lines(&world, "room 0 hears digits/");
    assert_eq!(all.len(), 2, "from three members on, and always: {all:?}");
    assert!(all[0].ends_with("digits/3") && all[1].ends_with("digits/4"), "{all:?}");
    world.run();
}

#[test]
fn a_name_is_recorded_heard_by_all_at_both_ends_and_gone_after_that() {
    let mut world = conferences();
    call(&mut world, "uplain", &[(60_000, BYE)]);
    until(&mut world, 2000);
    let named = call(&mut world, "unamed", &[(20_000, BYE)]);
    until(&mut world, 6000);
    world.act(named, std::time::Duration::ZERO, Act::Press('#'));
    until(&mut world, 15_000);
    let file = lines(&world, " records ").pop().unwrap();
    let file = file.split(" records ").nth(1).unwrap().trim_end_matches(".wav16").to_owned();
    let room = |what: &str| format!("room 0 hears {what}");
    for (words, times) in [(room(&file), 1), (room("conf-hasjoin"), 1), (room("conf-hasleft"), 0)] {
        assert_eq!(said(&world, &words), times, "{words}: {:?}", world.transcript());
    }
    until(&mut world, 25_000);
    for (words, times) in [(room(&file), 2), (room("conf-hasleft"), 1), (format!("removes {file}"), 1)] {
        assert_eq!(said(&world, &words), times, "{words}: {:?}", world.transcript());
    }
    world.run();
}

#[test]
fn a_time_limit_ends_a_stay_and_digits_that_are_no_keys_reach_the_others_where_they_may() {
    let mut world = conferences();
    call(&mut world, "uplain", &[(60_000, BYE)]);
    let through = call(&mut world, "kthrough", &[(60_000, BYE)]);
    let short = call(&mut world, "ushort", &[(60_000, BYE)]);
    until(&mut world, 3000);
    press(&mut world, through, "A1");
    press(&mut world, short, "5");
    until(&mut world, 4500);
    assert_eq!(said(&world, "is sent digit A"), 2, "{:?}", world.transcript());
    assert_eq!((said(&world, "is sent digit 1"), said(&world, "is sent digit 5")), (0, 0));
    until(&mut world, 9000);
    assert_eq!(member(&world, short), None);
    assert!(noted(&world).contains(&"ushort TIMEOUT".to_owned()));
    world.run();
}

#[test]
fn keys_mute_play_adjust_count_and_leave() {
    let mut world = conferences();
    call(&mut world, "uplain", &[(90_000, BYE)]);
    let id = call(&mut world, "kplain", &[(90_000, BYE)]);
    until(&mut world, 3000);
    let mut at = 3000;
    let mut after = |world: &mut World, digits: &str| {
        press(world, id, digits);
        at += 4000;
        until(world, at);
    };
    after(&mut world, "1");
    assert!(muted(&world, id));
    after(&mut world, "1");
    assert!(!muted(&world, id));
    after(&mut world, "2");
    after(&mut world, "4");
    assert_eq!(said(&world, "hears at 128/256"), 1, "{:?}", world.transcript());
    after(&mut world, "5");
    assert_eq!(said(&world, "talks at 512/256, hears at 128/256"), 1);
    after(&mut world, "6");
    after(&mut world, "8");
    assert_eq!(
        heard(&world, 2),
        ["conf-muted", "conf-unmuted", "one", "two", "conf-onlyone", "conf-errormenu"]
    );
    // The prompt of `*` is ended by a digit that goes on what was pressed.
    world.clip("menu", std::time::Duration::from_secs(20));
    after(&mut world, "*");
    assert_eq!(heard(&world, 2).last().unwrap(), "menu");
    after(&mut world, "1");
    assert_eq!(member(&world, id), None);
    assert!(noted(&world).contains(&"kplain DTMF".to_owned()), "{:?}", noted(&world));
    world.run();
}

#[test]
fn keys_of_administrators_lock_mute_all_and_send_the_last_out() {
    let mut world = conferences();
    let admin = call(&mut world, "kadmin", &[(90_000, BYE)]);
    until(&mut world, 3000);
    let first = call(&mut world, "uplain", &[(90_000, BYE)]);
    until(&mut world, 5000);
    let last = call(&mut world, "uplain", &[(90_000, BYE)]);
    until(&mut world, 7000);
    press(&mut world, admin, "0");
    until(&mut world, 9000);
    assert!(muted(&world, first) && muted(&world, last) && !muted(&world, admin));
    assert_eq!(said(&world, "room 0 hears conf-now-muted"), 1);
    let late = call(&mut world, "uplain", &[(90_000, BYE)]);
    until(&mut world, 11_000);
    assert!(muted(&world, late), "who comes later is muted, too");
    press(&mut world, admin, "8");
    until(&mut world, 13_000);
    assert_eq!(member(&world, late), None);
    press(&mut world, admin, "0");
    until(&mut world, 15_000);
    assert!(!muted(&world, first));
    press(&mut world, admin, "9");
    until(&mut world, 18_000);
    assert_eq!(said(&world, "conf-lockednow"), 1);
    let stranger = call(&mut world, "uplain", &[(90_000, BYE)]);
    until(&mut world, 20_000);
    assert_eq!(member(&world, stranger), None);
    world.run();
}

#[test]
fn a_key_leads_into_the_dialplan_and_back() {
    let mut world = conferences();
    call(&mut world, "uplain", &[(60_000, BYE)]);
    let id = call(&mut world, "kplain", &[(60_000, BYE)]);
    until(&mut world, 3000);
    press(&mut world, id, "7");
    until(&mut world, 3500);
    assert_eq!(
        (heard(&world, 2).last().unwrap().as_str(), said(&world, "#2 is muted and deaf")),
        ("away", 1)
    );
    until(&mut world, 6000);
    assert_eq!(said(&world, "#2 is heard"), 1, "{:?}", world.transcript());
    assert_eq!(warnings(&world), [""; 0]);
    world.run();
}

#[test]
fn a_conference_is_recorded_from_its_first_member_to_its_last_and_a_command_follows() {
    let mut world = conferences();
    call(&mut world, "rec", &[(5000, BYE)]);
    call(&mut world, "rec", &[(9000, BYE)]);
    until(&mut world, 3000);
    let file = "/monitor/confbridge-room-1795262400";
    assert_eq!(said(&world, &format!("records {file}.wav")), 1, "{:?}", world.transcript());
    assert_eq!(said(&world, "room 0 is recorded"), 1);
    let has_extension = |world: &World| world.shard.core.borrow().registered.near("busy-rooms", "room").whole;
    assert!(has_extension(&world));
    let shard = world.shard.clone();
    let stopped = apps::conference::stop_recording(&shard, "room").unwrap();
    assert_eq!(stopped, format!("{file}.wav"));
    assert!(apps::conference::stop_recording(&shard, "room").is_err());
    apps::conference::start_recording(&shard, "room", "").unwrap();
    assert_eq!(said(&world, &format!("appends to {file}.wav")), 1);
    assert!(apps::conference::start_recording(&shard, "room", "").is_err());
    assert!(apps::conference::start_recording(&shard, "gone", "").is_err());
    world.complete_recording(&format!("{file}.wav"));
    world.run();
    assert!(!has_extension(&world), "it goes with the conference");
    world.shard.core.borrow_mut().monitor_look();
    let wanted = format!("{:?}", world.wanted_links());
    assert!(wanted.contains(&format!("{file}.wav")) && wanted.contains("/kept/"), "{wanted}");
}

#[test]
fn a_dialplan_makes_profiles_of_its_own_and_forgets_them() {
    let plan = "[default]\nexten => 1,1,Set(CONFBRIDGE(user,template)=leader)\n\
                same => n,Set(CONFBRIDGE(user,startmuted)=yes)\n\
                same => n,Set(CONFBRIDGE(bridge,sound_join)=ding)\n\
                same => n,Set(CONFBRIDGE(menu,1)=toggle_mute,no_op)\n\
                same => n,NoOp(${CONFBRIDGE(user,marked)} ${CONFBRIDGE(user,startmuted)} ${CONFBRIDGE(user,pin)}\
                ${CONFBRIDGE(bridge,max_members)} ${CONFBRIDGE(menu,1)})\n\
                same => n,Set(CONFBRIDGE(user,startmuted)=perhaps)\n\
                same => n,Set(CONFBRIDGE(user,colour)=red)\n\
                same => n,Set(CONFBRIDGE(bridge,record_command)=rm ${CALLERID(name)})\n\
                same => n,ConfBridge(own)\n\
                exten => 2,1,Set(CONFBRIDGE(user,pin)=1)\n same => n,Set(CONFBRIDGE(clear)=)\n\
                same => n,ConfBridge(own)\n\
                exten => info,1,NoOp(${CONFBRIDGE_INFO(parties,own)} ${CONFBRIDGE_INFO(marked,own)} \
                ${CONFBRIDGE_INFO(admins,own)} ${CONFBRIDGE_CHANNELS(marked,own)} ${CONFBRIDGE_CHANNELS(parties,own)})\n";
    let mut world = world(plan);
    world.watch();
    world.settings(|settings| {
        let users = [("leader".to_owned(), user(&[("marked", "yes")]))].into();
        settings.conferences = Arc::new(Profiles { users, ..Profiles::default() });
    });
    let leader = call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 3000);
    assert_eq!(noted(&world), ["yes yes 0 toggle_mute,no_op"]);
    assert_eq!(member(&world, leader), Some(true));
    assert_eq!(said(&world, "room 0 hears ding"), 1);
    assert_eq!(warnings(&world).len(), 3, "{:?}", warnings(&world));
    press(&mut world, leader, "1");
    until(&mut world, 5000);
    assert_eq!(member(&world, leader), Some(false), "its own menu");
    let other = call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 6000);
    assert!(member(&world, other).is_some(), "no PIN is asked for");
    call(&mut world, "info", &[]);
    until(&mut world, 6100);
    assert_eq!(noted(&world).last().unwrap(), "2 1 0 SIM/6001-00000000 SIM/6001-00000000,SIM/6001-00000001");
    world.run();
}

#[test]
fn all_are_sent_out_by_the_dialplan_and_managers_know_why_they_leave() {
    let mut world = conferences();
    let first = call(&mut world, "uplain", &[(60_000, BYE)]);
    until(&mut world, 2000);
    call(&mut world, "kick", &[]);
    until(&mut world, 2000);
    let leaves = world.shard.core.borrow().conferences.member(first).map(|member| member.leaves);
    assert!(matches!(leaves, None | Some(Some(Leaving::Kicked))));
    until(&mut world, 5000);
    assert_eq!(noted(&world)[0], "SUCCESS");
    assert!(noted(&world).contains(&"uplain KICKED".to_owned()));
    let mut empty = conferences();
    call(&mut empty, "kick", &[]);
    empty.run();
    assert_eq!(noted(&empty)[0], "FAILURE");
}

#[test]
fn who_does_not_hear_its_own_coming_is_announced_before_it_is_there() {
    let mut world = conferences();
    call(&mut world, "uplain", &[(20_000, BYE)]);
    until(&mut world, 2000);
    call(&mut world, "ustill", &[(20_000, BYE)]);
    until(&mut world, 4000);
    let transcript = world.transcript();
    let place = |words: &str| transcript.iter().rposition(|line| line.contains(words)).unwrap();
    assert!(place("room 0 hears confbridge-join") < place("#2 enters room 0"), "{transcript:?}");
    world.run();
}

#[test]
fn texts_reach_the_others_who_take_them() {
    let mut world = conferences();
    let teller = call(&mut world, "uplain", &[(20_000, BYE)]);
    call(&mut world, "uplain", &[(20_000, BYE)]);
    let refuses = call(&mut world, "udeaf", &[(20_000, BYE)]);
    until(&mut world, 3000);
    world.act(teller, std::time::Duration::ZERO, Act::Text("hello".to_owned()));
    world.act(refuses, std::time::Duration::ZERO, Act::Text("no".to_owned()));
    until(&mut world, 4000);
    let texts = lines(&world, "is sent text");
    assert_eq!(texts.len(), 1, "{:?}", world.transcript());
    assert!(texts[0].ends_with("hello"), "{texts:?}");
    world.run();
}
