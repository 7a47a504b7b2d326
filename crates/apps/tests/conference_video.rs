//! Whose video is seen in a conference, in an invented world: who talks, who is marked, who was chosen.

mod common;

use std::sync::Arc;

use base::{ChannelId, Event, StreamId};
use call::Notice;
use call::conference::{BRIDGE_ROWS, BridgeProfile, Menu, NotThere, Profiles, USER_ROWS, UserProfile, row};
use common::*;
use sim::{Act, World};

const PLAN: &str = "[default]\nexten => _m.,1,ConfBridge(room,${EXTEN:1},plain,keys)\n\
                    exten => _l.,1,ConfBridge(room,${EXTEN:1},leader)\n\
                    exten => _w.,1,ConfBridge(room,${EXTEN:1},waiter)\n\
                    [elsewhere]\nexten => s,1,Wait(5)\n";
/// The camera of the channel whose stream of sound is this one.
const fn camera(sound: StreamId) -> StreamId {
    StreamId::new(100 + sound.slot, 1)
}

fn profile(options: &[(&str, &str)]) -> BridgeProfile {
    let mut profile = BridgeProfile::default();
    for (name, value) in options {
        assert!(row(BRIDGE_ROWS, name).unwrap().set(&mut profile, value), "{name}={value}");
    }
    profile
}

fn conferences() -> World {
    let mut world = world(PLAN);
    world.watch();
    let user = |options: &[(&str, &str)]| {
        let mut profile = UserProfile { is_quiet: true, ..UserProfile::default() };
        options
            .iter()
            .for_each(|(name, value)| assert!(row(USER_ROWS, name).unwrap().set(&mut profile, value)));
        Arc::new(profile)
    };
    let mut menu = Menu::default();
    for (digits, actions) in [
        ("1", "set_as_single_video_src"),
        ("2", "release_as_single_video_src"),
        ("3", "dialplan_exec(elsewhere,s,1)"),
    ] {
        menu.set(digits, actions).unwrap();
    }
    let modes = ["none", "follow_talker", "last_marked", "first_marked"];
    world.settings(|settings| {
        settings.conferences = Arc::new(Profiles {
            bridges: modes.map(|mode| (mode.to_owned(), Arc::new(profile(&[("video_mode", mode)])))).into(),
            users: [
                ("plain".to_owned(), user(&[])),
                ("leader".to_owned(), user(&[("marked", "yes")])),
                ("waiter".to_owned(), user(&[("wait_marked", "yes")])),
            ]
            .into(),
            menus: [("keys".to_owned(), Arc::new(menu))].into(),
        });
    });
    world
}

fn core<T>(world: &World, what: impl FnOnce(&mut call::Core) -> T) -> T {
    what(&mut world.shard.core.borrow_mut())
}
fn sound(world: &World, id: ChannelId) -> StreamId {
    core(world, |core| core.get(id).and_then(|channel| channel.stream)).expect("it has sound")
}
/// A call to this extension that has a camera, or has none.
fn come(world: &mut World, exten: &str, sees: bool, acts: &[(u64, Act)]) -> ChannelId {
    let id = call(world, exten, acts);
    let now = world.now();
    world.run_until(now + std::time::Duration::from_millis(100));
    if sees {
        turn_on(world, id);
    }
    id
}
fn turn_on(world: &World, id: ChannelId) {
    let camera = camera(sound(world, id));
    core(world, |core| core.set_passed(id, vec![Some(camera)]));
}
fn talks(world: &World, id: ChannelId) {
    let stream = sound(world, id);
    core(world, |core| core.media_event(Event::Speaker { stream }));
}
fn wait(world: &mut World, ms: u64) {
    let now = world.now();
    world.run_until(now + std::time::Duration::from_millis(ms));
}
/// Who sees whom at present, by the order in which they are asked for; `.` is nobody.
fn sees(world: &World, of: &[ChannelId]) -> String {
    let cameras: Vec<_> = of.iter().map(|id| camera(sound(world, *id)).slot.to_string()).collect();
    let mut shown = vec!['.'; of.len()];
    for line in world.transcript() {
        let words: Vec<_> = line.split_whitespace().rev().take(4).collect();
        let [whom, "shown", "is", who] = words[..] else { continue };
        let at = |name: &str| cameras.iter().position(|camera| name == format!("#{camera}"));
        let Some(viewer) = at(who) else { continue };
        shown[viewer] = at(whom).map_or('.', |at| (b'a' + at as u8) as char);
    }
    shown.into_iter().collect()
}

#[test]
fn the_talker_is_seen_by_all_others_and_sees_whom_they_saw_before() {
    let mut world = conferences();
    let ids: Vec<_> = (0..4).map(|n| come(&mut world, "mfollow_talker", n != 3, &[])).collect();
    assert_eq!(sees(&world, &ids), "baa.", "the first with a camera, until somebody talks");
    talks(&world, ids[2]);
    assert_eq!(sees(&world, &ids), "cca.");
    talks(&world, ids[1]);
    assert_eq!(sees(&world, &ids), "bcb.");
    talks(&world, ids[3]);
    assert_eq!(sees(&world, &ids), "bcb.", "who has no camera is heard only");
    talks(&world, ids[1]);
    assert_eq!(sees(&world, &ids), "bcb.");
    turn_on(&world, ids[3]);
    assert_eq!(sees(&world, &ids), "bcbb", "a camera that is switched on");
    core(&world, |core| core.set_passed(ids[1], Vec::new()));
    assert_eq!(sees(&world, &ids)[..1], *"c", "and the one that is seen is switched off");
    wait(&mut world, 1);
    let updates = world.notices.iter().filter_map(|notice| match notice {
        Notice::ConferenceVideo { bridge, previous, .. } => {
            Some((bridge.video_source.is_some(), previous.is_some(), bridge.count, bridge.video_mode))
        }
        _ => None,
    });
    assert_eq!(
        updates.collect::<Vec<_>>(),
        [
            (true, false, 2, "talker"),
            (true, true, 5, "talker"),
            (true, true, 5, "talker"),
            (true, true, 5, "talker")
        ],
        "watchers are told whenever another one is seen"
    );
}

#[test]
fn who_leaves_waits_or_is_elsewhere_is_not_seen() {
    let mut world = conferences();
    let ids: Vec<_> = (0..3).map(|_| come(&mut world, "mfollow_talker", true, &[])).collect();
    talks(&world, ids[1]);
    assert_eq!(sees(&world, &ids), "bab");
    world.act(ids[1], std::time::Duration::ZERO, Act::Press('3'));
    wait(&mut world, 3000);
    assert_eq!(sees(&world, &ids), "c.a", "elsewhere for a while");
    wait(&mut world, 5000);
    assert_eq!(sees(&world, &ids), "bab", "and back: who talked last is seen");
    world.hang_up(ids[1]);
    wait(&mut world, 100);
    assert_eq!(sees(&world, &[ids[0], ids[2]]), "ba");
    let waiter = come(&mut world, "wfollow_talker", true, &[]);
    talks(&world, waiter);
    assert_eq!(sees(&world, &[ids[0], ids[2], waiter]), "ba.", "who waits neither sees nor is seen");
    let leader = come(&mut world, "lfollow_talker", true, &[]);
    let now = [ids[0], ids[2], waiter, leader];
    assert_eq!(sees(&world, &now), "ccac", "who waited is taken in, and had talked last");
    world.hang_up(leader);
    wait(&mut world, 100);
    assert_eq!(sees(&world, &now[..3]), "ba.", "and waits again");
    for id in &now[..3] {
        world.hang_up(*id);
    }
    world.run();
    assert_eq!(core(&world, |core| core.conferences.iter().count()), 0);
}

#[test]
fn the_marked_member_who_came_last_or_first_is_seen() {
    // Plain, first and second marked: while all are there; after a word of the plain one; without who was seen.
    for (mode, together, talked, left) in [
        ("last_marked", "ccb", "cca", "b."),
        ("first_marked", "bab", "bab", "b."),
        ("none", "...", "...", ".."),
    ] {
        let mut world = conferences();
        let exten = |kind: &str| format!("{kind}{mode}");
        let plain = come(&mut world, &exten("m"), true, &[]);
        let other = come(&mut world, &exten("m"), true, &[]);
        assert_eq!(sees(&world, &[plain, other]), "..", "{mode}: nobody is marked");
        let first = come(&mut world, &exten("l"), true, &[]);
        let second = come(&mut world, &exten("l"), true, &[]);
        let ids = [plain, first, second];
        assert_eq!(sees(&world, &ids), together, "{mode}");
        talks(&world, plain);
        assert_eq!(sees(&world, &ids), talked, "{mode}: talking decides whom the one sees who is seen");
        let (goes, stays) = if mode == "first_marked" { (first, second) } else { (second, first) };
        world.hang_up(goes);
        wait(&mut world, 100);
        let seen = sees(&world, &[plain, stays]);
        assert_eq!(&seen[..1], &left[..1], "{mode}: the other marked one: {seen}");
        world.hang_up(stays);
        wait(&mut world, 100);
        assert_eq!(sees(&world, &[plain, other]), "..", "{mode}: and then nobody");
    }
}

#[test]
fn who_is_chosen_stays_until_it_lets_go_or_leaves() {
    for (mode, after) in [("follow_talker", "caa"), ("none", "...")] {
        let mut world = conferences();
        let ids: Vec<_> = (0..3).map(|_| come(&mut world, &format!("m{mode}"), true, &[])).collect();
        world.act(ids[1], std::time::Duration::ZERO, Act::Press('1'));
        wait(&mut world, 3000);
        assert_eq!(sees(&world, &ids), "bab", "{mode}: a key");
        talks(&world, ids[2]);
        assert_eq!(sees(&world, &ids)[..1], *"b", "{mode}: whoever talks");
        world.act(ids[0], std::time::Duration::ZERO, Act::Press('2'));
        wait(&mut world, 3000);
        assert_eq!(sees(&world, &ids)[..1], *"b", "{mode}: nobody else lets go for it");
        core(&world, |core| core.conference_choose_video("room", ids[0])).unwrap();
        assert_eq!(sees(&world, &ids)[1..], *"aa", "{mode}: another one is chosen");
        assert!(core(&world, |core| core.conference_release_video("room", ids[0])));
        talks(&world, ids[2]);
        talks(&world, ids[0]);
        assert_eq!(sees(&world, &ids), after, "{mode}: as the profile says");
        core(&world, |core| core.conference_choose_video("room", ids[1])).unwrap();
        world.hang_up(ids[1]);
        wait(&mut world, 100);
        let left = if mode == "none" { ".." } else { "ba" };
        assert_eq!(sees(&world, &[ids[0], ids[2]]), left, "{mode}: who was chosen has left");
    }
}

#[test]
fn only_a_member_can_be_chosen_with_a_camera_or_without() {
    let mut world = conferences();
    let blind = come(&mut world, "mnone", false, &[(500, Act::Press('1'))]);
    let stranger = call(&mut world, "nobody", &[]);
    for (name, id, expected) in [
        ("room", blind, Ok(())),
        ("room", stranger, Err(NotThere::Member)),
        ("other", blind, Err(NotThere::Conference)),
    ] {
        assert_eq!(core(&world, |core| core.conference_choose_video(name, id)), expected);
    }
}

#[test]
fn a_whole_picture_is_asked_of_whom_the_asker_sees() {
    let mut world = conferences();
    let ids: Vec<_> = (0..2).map(|_| come(&mut world, "mfollow_talker", true, &[])).collect();
    let asked = |world: &World| {
        let of = |id: &ChannelId| {
            let line = format!("#{} is asked for a picture", camera(sound(world, *id)).slot);
            world.transcript().iter().filter(|said| said.contains(&line)).count()
        };
        ids.iter().map(of).collect::<Vec<_>>()
    };
    core(&world, |core| core.conference_ask_pictures(ids[0]));
    assert_eq!(asked(&world), [0, 1]);
    core(&world, |core| core.conference_ask_pictures(ids[1]));
    assert_eq!(asked(&world), [1, 1]);
    let first = camera(sound(&world, ids[0]));
    assert_eq!(core(&world, |core| core.conference_camera(first)), Some(ids[0]));
    world.hang_up(ids[0]);
    wait(&mut world, 100);
    assert_eq!(core(&world, |core| core.conference_camera(first)), None);
}
