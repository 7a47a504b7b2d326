//! `ConfBridge` in an invented world: who enters which room, what is heard, how a stay ends.

mod common;

use base::{ChannelId, MemberSettings, RoomSettings};
use call::Notice;
use call::conference::{BridgeProfile, MemberChange, Profiles, Seat, UserProfile, Which};
use common::*;
use sim::World;

const PLAN: &str = "[default]\nexten => 1,1,ConfBridge(room)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 2,1,ConfBridge(room,small,chief)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 3,1,ConfBridge(room,none)\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => 4,1,ConfBridge()\n same => n,NoOp(${CONFBRIDGE_RESULT})\n\
                    exten => h,1,NoOp(h ${CONFBRIDGE_RESULT})\n";

/// A world with the profiles `small` of at most two members, and `chief`, a muted administrator who is quiet.
fn conferences() -> World {
    let mut world = world(PLAN);
    world.watch();
    let small = BridgeProfile { mixing: RoomSettings::default(), members_max: 2 };
    let mixing = MemberSettings { muted: true, ..MemberSettings::default() };
    let seat = Seat { mixing, is_admin: true, tells_talking: true };
    let chief = UserProfile { seat, is_quiet: true, hears_that_it_is_alone: false };
    world.settings(|settings| {
        settings.conferences = Profiles {
            bridges: [("small".to_owned(), small)].into(),
            users: [("chief".to_owned(), chief)].into(),
        };
    });
    world
}

/// What watchers are told of conferences: `what name [count] [channel]`.
fn told(world: &World) -> Vec<String> {
    let line = |notice: &Notice| match notice {
        Notice::ConferenceStart { conference, .. } => Some(format!("start {conference}")),
        Notice::ConferenceEnd { conference, .. } => Some(format!("end {conference}")),
        Notice::ConferenceMember { conference, count, change, .. } => {
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
    call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 3000);
    call(&mut world, "2", &[(20_000, BYE)]);
    until(&mut world, 5000);
    assert_eq!(said(&world, "conf-full"), 1, "{:?}", world.transcript());
    assert_eq!(noted(&world), ["FAILED", "h FAILED"]);
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
