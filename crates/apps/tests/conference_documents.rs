//! What members of a conference are told in their calls: documents of `enable_events`, in an invented world.

mod common;

use std::sync::Arc;

use base::{ChannelId, Event};
use call::conference::{
    BRIDGE_ROWS, BridgeProfile, DOCUMENT_TYPE, Profiles, RecordPlan, USER_ROWS, UserProfile, Which, row,
};
use common::*;
use sim::World;

/// A conference that tells its members by the profile `told`, and users by what they want to know.
fn world_of_readers() -> World {
    let plan = "[default]\nexten => _t.,1,ConfBridge(room,told,${EXTEN:1})\n\
                exten => _q.,1,ConfBridge(quiet,,${EXTEN:1})\n";
    let mut world = world(plan);
    world.watch();
    let user = |options: &[&str]| {
        let mut user = UserProfile::default();
        for name in options {
            let (name, value) = name.split_once('=').unwrap();
            assert!(row(USER_ROWS, name).unwrap().set(&mut user, value), "{name}");
        }
        Arc::new(user)
    };
    let mut told = BridgeProfile::default();
    assert!(row(BRIDGE_ROWS, "enable_events").unwrap().set(&mut told, "yes"));
    let users = [
        ("plain", user(&[])),
        ("reader", user(&["send_events=yes", "talk_detection_events=yes"])),
        ("chief", user(&["send_events=yes", "echo_events=no", "admin=yes"])),
        ("deaf", user(&["send_events=yes", "text_messaging=no"])),
    ];
    world.settings(|settings| {
        settings.conferences = Arc::new(Profiles {
            bridges: [("told".to_owned(), Arc::new(told))].into(),
            users: users.into_iter().map(|(name, profile)| (name.to_owned(), profile)).collect(),
            ..Profiles::default()
        });
    });
    world
}

/// Documents since `seen` lines of the transcript: who got which.
fn documents(world: &World, seen: &mut usize) -> Vec<String> {
    let lines = world.transcript();
    let sent = format!(" is sent {DOCUMENT_TYPE}: {{\"type\":\"Confbridge");
    let found = lines[*seen..].iter().filter_map(|line| {
        let (who, what) = line.split_once(&sent)?;
        let who = who.chars().last()?;
        Some(format!("{who} {}", what.split('"').next()?))
    });
    let found = found.collect();
    *seen = lines.len();
    found
}

fn change(world: &mut World, what: impl FnOnce(&mut call::Core)) {
    what(&mut world.shard.core.borrow_mut());
    let now = world.now();
    world.run_until(now);
}

fn talks(world: &mut World, id: ChannelId, talks: bool) {
    change(world, |core| {
        let stream = core.get(id).and_then(|channel| channel.stream).unwrap();
        core.media_event(Event::Talking { stream, talks });
    });
}

#[test]
fn members_who_want_to_know_are_told_what_happens_and_of_themselves_unless_they_do_not_want_that() {
    let mut world = world_of_readers();
    let mut seen = 0;
    let reader = call(&mut world, "treader", &[(60_000, BYE)]);
    world.run_until(at(1900));
    assert_eq!(documents(&world, &mut seen), ["0 Join", "0 Welcome"]);
    let chief = call(&mut world, "tchief", &[(9000, BYE)]);
    world.run_until(at(2000));
    assert_eq!(documents(&world, &mut seen), ["0 Join", "1 Welcome"], "not of its own coming");
    for (who, until_ms) in [("tplain", 3000), ("tdeaf", 3500)] {
        call(&mut world, who, &[(4000, BYE)]);
        world.run_until(at(until_ms));
        assert_eq!(documents(&world, &mut seen), ["0 Join", "1 Join"], "{who}");
    }
    talks(&mut world, reader, true);
    talks(&mut world, chief, true);
    assert_eq!(documents(&world, &mut seen), ["0 Talking", "1 Talking"], "only of who is told of");
    change(&mut world, |core| core.conference_mute("room", Which::One(chief), true).unwrap());
    change(&mut world, |core| core.conference_mute("room", Which::One(chief), false).unwrap());
    assert_eq!(documents(&world, &mut seen), ["0 Mute", "0 Unmute"]);
    let plan = RecordPlan { path: "tape".to_owned(), extension: "wav".to_owned(), ..RecordPlan::default() };
    change(&mut world, |core| drop(core.conference_record("room", plan).unwrap()));
    change(&mut world, |core| drop(core.conference_record_stop("room").unwrap()));
    let both = ["0 Record", "1 Record", "0 StopRecord", "1 StopRecord"];
    assert_eq!(documents(&world, &mut seen), both);
    world.run_until(at(8000));
    assert_eq!(documents(&world, &mut seen), ["0 Leave", "1 Leave", "0 Leave", "1 Leave"]);
    world.run_until(at(12_000));
    assert_eq!(documents(&world, &mut seen), ["0 Leave"], "the chief");
    world.run();
    assert!(documents(&world, &mut seen).is_empty(), "who hangs up is told no more");
}

#[test]
fn a_conference_whose_profile_does_not_say_so_tells_nobody() {
    let mut world = world_of_readers();
    for _ in 0..2 {
        call(&mut world, "qreader", &[(3000, BYE)]);
    }
    world.run();
    assert!(documents(&world, &mut 0).is_empty());
}

#[test]
fn rfc8259_a_document_says_who_is_there_and_hides_who_hides() {
    let mut world = world_of_readers();
    call(&mut world, "tchief", &[(60_000, BYE)]);
    world.run_until(at(1000));
    let id = call(&mut world, "treader", &[(60_000, BYE)]);
    change(&mut world, |core| {
        let caller = &mut core.get_mut(id).unwrap().caller;
        caller.name = Some("Bob \"B\"".to_owned());
        caller.number_presentation = call::Presentation::Prohib;
    });
    world.run_until(at(2000));
    talks(&mut world, id, false);
    let document = |kind: &str| {
        let wanted = format!("{{\"type\":\"{kind}\"");
        let lines = world.transcript();
        let line = lines.iter().rfind(|line| line.contains(&wanted)).unwrap();
        line[line.find('{').unwrap()..].to_owned()
    };
    let bridge = "\"bridge\":{\"id\":\"00000000-0000-4000-8000-000000000000\",\"name\":\"room\",\"video_mode\":\"none\"}";
    let person = |nth: u32, caller: &str, second: u32, rest: &str| {
        format!(
            "{{\"id\":\"1795262400.{nth}\",\"name\":\"SIM/6001-{nth:08x}\",\"state\":\"Up\",\"caller\":{{{caller}}},\
             \"creationtime\":\"2026-11-21T12:00:0{second}.000+0000\",\"language\":\"en\",{rest}}}"
        )
    };
    let alice = person(0, "\"name\":\"Alice\",\"number\":\"6001\"", 0, "\"admin\":true,\"muted\":false");
    let bob = |rest: &str| {
        let bob = person(1, "\"name\":\"Bob \\\"B\\\"\",\"number\":\"\"", 1, rest);
        // The conference has an announcer, who is older.
        bob.replace("1795262400.1", "1795262401.2")
    };
    let own = bob("\"admin\":false,\"muted\":false");
    assert_eq!(
        document("ConfbridgeWelcome"),
        format!(
            "{{\"type\":\"ConfbridgeWelcome\",\"timestamp\":\"2026-11-21T12:00:01.020+0000\",{bridge},\
             \"channels\":[{alice},{own}]}}"
        )
    );
    let told = bob("\"admin\":false,\"talking_status\":\"off\"");
    assert_eq!(
        document("ConfbridgeTalking"),
        format!(
            "{{\"type\":\"ConfbridgeTalking\",\"timestamp\":\"2026-11-21T12:00:02.000+0000\",{bridge},\
             \"channels\":[{told}]}}"
        )
    );
}
