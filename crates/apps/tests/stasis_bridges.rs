//! Bridges of programs in an invented world: who hears whom, what all hear, what is written down, and what becomes of them.

mod common;
#[path = "common/programs.rs"]
mod programs;

use std::time::Duration;

use apps::stasis::{self, Joining, Playing, Recording};
use base::ChannelId;
use call::stasis::{BRIDGES_MAX, BridgeKind, IfExists, NewBridge, PlaybackSteer};
use call::{Exchange, Notice};
use common::*;
use programs::*;
use sim::{Act, World};

fn until(world: &mut World, ms: u64) {
    world.run_until(common::at(ms));
}

/// Channels in the hands of `app`, by their ids.
fn channels(world: &mut World, count: usize) -> (Vec<ChannelId>, Vec<String>) {
    let ids: Vec<ChannelId> = (0..count).map(|_| call(world, "4", &[(60_000, BYE)])).collect();
    until(world, 10);
    let uids = ids.iter().map(|id| uid(world, *id)).collect();
    (ids, uids)
}

fn said(world: &World, words: &str) -> usize {
    lines(world, words).len()
}

#[test]
fn channels_of_a_mixing_bridge_sit_in_one_room_and_come_and_go() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 3);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    add(&world, "b", &[&own[1], &own[2]]).unwrap();
    add(&world, "b", &[&own[2]]).unwrap();
    until(&mut world, 1000);
    stasis::remove_channels(&world.shard, "b", &[&own[1]]).unwrap();
    until(&mut world, 2000);
    let view = world.shard.core.borrow().stasis_bridge_view("b").unwrap();
    assert_eq!(
        view.channels.iter().map(|id| id.to_string()).collect::<Vec<_>>(),
        [own[0].clone(), own[2].clone()]
    );
    world.run();
    let own_lines: Vec<_> =
        told(&world).into_iter().filter(|line| line.contains("of") || line.contains("bridge")).collect();
    assert_eq!(
        own_lines,
        [
            "bridge b made",
            "#0 enters b of 1",
            "#1 enters b of 2",
            "#2 enters b of 3",
            "#1 leaves b of 2",
            "#0 leaves b of 1",
            "#2 leaves b of 0",
        ]
    );
    in_order(
        &world,
        &["10 #1 enters room 0", "10 #2 enters room 0", "10 #3 enters room 0", "1000 #2 talks no more"],
    );
    let conference = |notice: &Notice| {
        matches!(
            notice,
            Notice::ConferenceStart { .. } | Notice::ConferenceMember { .. } | Notice::ConferenceEnd { .. }
        )
    };
    assert!(!world.notices.iter().any(conference), "it is no conference to anybody");
    assert_eq!(world.shard.core.borrow().conferences.iter().count(), 0);
    let entered = |notice: &&Notice| matches!(notice, Notice::BridgeEnter { .. });
    assert_eq!(world.notices.iter().filter(entered).count(), 3, "managers hear of it as of any bridge");
    assert!(world.shard.core.borrow().stasis.bridge("b").is_some(), "it stays until it is taken away");
    stasis::destroy_bridge(&world.shard, "b").unwrap();
    assert_eq!(status(stasis::destroy_bridge(&world.shard, "b")), 404);
    at_rest(&world, "bridge");
}

#[test]
fn two_see_each_other_and_hear_each_others_digits_and_texts_unless_they_are_kept_back() {
    let mut world = programs();
    let (ids, own) = channels(&mut world, 2);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    let joining = Joining { absorbs_digits: true, is_muted: true, ..Joining::default() };
    stasis::add_channels(&world.shard, "b", &[&own[1]], joining).unwrap();
    until(&mut world, 100);
    let second = Duration::from_secs(1);
    world.act(ids[0], second, Act::Press('5'));
    world.act(ids[1], second, Act::Press('7'));
    world.act(ids[1], second, Act::Text("hello".into()));
    until(&mut world, 3000);
    assert_eq!(said(&world, "#2 is sent digit 5"), 1);
    assert_eq!(said(&world, "is sent digit 7"), 0);
    assert_eq!(said(&world, "SIM/6001-00000000 is sent text: hello"), 1);
    assert_eq!(said(&world, "#2 enters room 0 muted"), 1);
    assert_eq!(said(&world, "is shown"), 2, "{:?}", world.transcript());
    world.act(ids[0], second, Act::Hold);
    until(&mut world, 4500);
    assert_eq!(world.endless_sound(ids[1]).as_deref(), Some("music default"));
    assert_eq!(world.endless_sound(ids[0]), None);
    assert_eq!(said(&world, "SIM/6001-00000001 is held"), 1);
    world.act(ids[0], second, Act::Unhold);
    until(&mut world, 6000);
    assert_eq!(world.endless_sound(ids[1]), None);
    let mut quiet = programs();
    let (_, own) = channels(&mut quiet, 2);
    bridge(&quiet, "b", BridgeKind::Mixing);
    let joining = Joining { is_quiet: true, ..Joining::default() };
    stasis::add_channels(&quiet.shard, "b", &[&own[0], &own[1]], joining).unwrap();
    until(&mut quiet, 100);
    assert_eq!(said(&quiet, "is shown"), 0);
}

#[test]
fn channels_of_a_holding_bridge_hear_music_and_nobody_but_who_announces() {
    let mut world = programs();
    let (ids, own) = channels(&mut world, 3);
    bridge(&world, "h", BridgeKind::Holding);
    add(&world, "h", &[&own[0], &own[1]]).unwrap();
    until(&mut world, 1000);
    assert_eq!(world.endless_sound(ids[0]).as_deref(), Some("music default"));
    stasis::bridge_music(&world.shard, "h", Some("soft")).unwrap();
    until(&mut world, 2000);
    assert_eq!(world.endless_sound(ids[1]).as_deref(), Some("music soft"));
    let joining = Joining { announces: true, ..Joining::default() };
    stasis::add_channels(&world.shard, "h", &[&own[2]], joining).unwrap();
    until(&mut world, 3000);
    assert_eq!((world.endless_sound(ids[0]), world.endless_sound(ids[2])), (None, None));
    stasis::remove_channels(&world.shard, "h", &[&own[2]]).unwrap();
    until(&mut world, 4000);
    assert_eq!(world.endless_sound(ids[0]).as_deref(), Some("music soft"));
    stasis::bridge_play(&world.shard, "h", playing("p", &["sound:hello"])).unwrap();
    until(&mut world, 4500);
    assert_eq!(world.endless_sound(ids[0]), None, "it hears what is played");
    until(&mut world, 6000);
    assert_eq!(world.endless_sound(ids[0]).as_deref(), Some("music soft"));
    stasis::remove_channels(&world.shard, "h", &[&own[0], &own[1]]).unwrap();
    until(&mut world, 7000);
    assert_eq!(world.endless_sound(ids[0]), None);
    assert_eq!((said(&world, "room 0 muted"), said(&world, "#3 enters room 0 muted")), (2, 0));
}

#[test]
fn music_of_a_mixing_bridge_is_heard_by_all_who_are_there_and_who_come() {
    let mut world = programs();
    let (ids, own) = channels(&mut world, 2);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    stasis::bridge_music(&world.shard, "b", Some("")).unwrap();
    until(&mut world, 1000);
    add(&world, "b", &[&own[1]]).unwrap();
    until(&mut world, 2000);
    let pieces = said(&world, "room 0 hears");
    assert!(pieces > 5, "the room hears it, beside what is said in it: {pieces}");
    assert!(ids.iter().all(|id| world.endless_sound(*id).is_none()), "nobody hears music instead");
    stasis::bridge_music(&world.shard, "b", None).unwrap();
    until(&mut world, 2500);
    let pieces = said(&world, "room 0 hears");
    until(&mut world, 4000);
    assert_eq!(said(&world, "room 0 hears"), pieces, "it has ended");
}

#[test]
fn a_channel_moves_from_bridge_to_bridge_and_leaves_with_its_program() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 1);
    bridge(&world, "a", BridgeKind::Mixing);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "a", &[&own[0]]).unwrap();
    add(&world, "b", &[&own[0]]).unwrap();
    stasis::continue_in_dialplan(&world.shard, &own[0], &stasis::Continue::default()).unwrap();
    assert_eq!(status(add(&world, "a", &[&own[0]])), 409, "it was let go");
    world.run();
    assert_eq!(
        told(&world)[3..],
        ["#0 enters a of 1", "#0 leaves a of 0", "#0 enters b of 1", "#0 leaves b of 0", "end app #0"]
    );
}

#[test]
fn what_is_played_to_a_bridge_all_hear_and_it_is_steered() {
    let mut world = programs();
    world.clip("long", Duration::from_secs(10));
    let (_, own) = channels(&mut world, 2);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0], &own[1]]).unwrap();
    let shard = world.shard.clone();
    let wanted = Playing { skip_ms: Some(2000), ..playing("p", &["sound:long", "sound:gone", "digits:1"]) };
    world.missing("gone");
    stasis::bridge_play(&shard, "b", wanted).unwrap();
    stasis::bridge_play(&shard, "b", playing("q", &["sound:short"])).unwrap();
    until(&mut world, 20);
    assert_eq!(status(stasis::control_playback(&shard, "q", PlaybackSteer::Pause)), 409);
    until(&mut world, 1010);
    let pieces = said(&world, "room 0 hears");
    assert!((5..=7).contains(&pieces), "pieces of 200 ms, a little ahead: {pieces}");
    stasis::control_playback(&shard, "p", PlaybackSteer::Pause).unwrap();
    until(&mut world, 5000);
    assert_eq!(said(&world, "room 0 hears"), pieces, "it rests");
    stasis::control_playback(&shard, "p", PlaybackSteer::Unpause).unwrap();
    until(&mut world, 5001);
    stasis::control_playback(&shard, "p", PlaybackSteer::Reverse).unwrap();
    stasis::control_playback(&shard, "p", PlaybackSteer::Forward).unwrap();
    until(&mut world, 6000);
    assert!(said(&world, "room 0 hears") > pieces);
    stasis::control_playback(&shard, "p", PlaybackSteer::Restart).unwrap();
    until(&mut world, 15_500);
    assert_eq!(times(&world, "p goes on"), 0, "{:?}", told(&world));
    until(&mut world, 20_000);
    let plays: Vec<_> = told(&world).into_iter().filter(|line| line.starts_with(['p', 'q'])).collect();
    assert_eq!(
        plays,
        [
            "p plays sound:long (playing)",
            // Once more after its rest.
            "p plays sound:long (playing)",
            "p goes on with sound:long (continuing)",
            "p plays sound:gone (playing)",
            "p goes on with sound:gone (continuing)",
            "p plays digits:1 (playing)",
            "p played digits:1 (done)",
            "q plays sound:short (playing)",
            "q played sound:short (done)",
        ]
    );
    assert_eq!(world.shard.stories(), 2, "the story of the bridge is over");
    stasis::bridge_play(&shard, "b", playing("t", &["tone:ring"])).unwrap();
    until(&mut world, 25_000);
    stasis::stop_playback(&shard, "t").unwrap();
    until(&mut world, 25_001);
    assert_eq!(times(&world, "t played tone:ring (done)"), 1);
    stasis::bridge_play(&shard, "b", playing("u", &["sound:long"])).unwrap();
    stasis::bridge_play(&shard, "b", playing("v", &["sound:long"])).unwrap();
    stasis::stop_playback(&shard, "v").unwrap();
    until(&mut world, 26_000);
    stasis::destroy_bridge(&shard, "b").unwrap();
    world.run();
    assert_eq!((times(&world, "u played"), times(&world, "v played")), (1, 1));
    programs_at_rest(&world);
    at_rest(&world, "bridge");
}

#[test]
fn a_bridge_without_anybody_is_played_to_all_the_same() {
    let mut world = programs();
    bridge(&world, "b", BridgeKind::Mixing);
    stasis::bridge_play(&world.shard, "b", playing("p", &["sound:hello"])).unwrap();
    world.run();
    assert_eq!(told(&world)[1..], ["p plays sound:hello (playing)", "p played sound:hello (done)"]);
    assert!(world.now().as_millis() >= 1000);
    assert_eq!(said(&world, "hears"), 0);
}

#[test]
fn a_bridge_is_recorded_as_long_as_somebody_is_there() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 2);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    let shard = world.shard.clone();
    let limited = Recording { longest: Duration::from_secs(10), ..recording("r") };
    stasis::bridge_record(&shard, "b", limited).unwrap();
    assert_eq!(status(stasis::bridge_record(&shard, "b", recording("s"))), 409);
    until(&mut world, 1000);
    stasis::pause_recording(&shard, "r", true).unwrap();
    until(&mut world, 3000);
    stasis::pause_recording(&shard, "r", false).unwrap();
    stasis::remove_channels(&shard, "b", &[&own[0]]).unwrap();
    world.complete_recording("/spool/recording/r.wav");
    until(&mut world, 4000);
    add(&world, "b", &[&own[1]]).unwrap();
    world.run();
    in_order(
        &world,
        &[
            "10 records /spool/recording/r.wav",
            "10 room 0 is recorded",
            "4000 appends to /spool/recording/r.wav",
            "4000 room 0 is recorded",
            "12010 room 0 is recorded no more",
        ],
    );
    assert_eq!(
        told(&world).iter().filter(|line| line.starts_with("r ")).collect::<Vec<_>>(),
        ["r records (recording)", "r recorded (done) 10000 ms"]
    );
    programs_at_rest(&world);
}

#[test]
fn recordings_of_bridges_end_by_the_program_with_the_bridge_or_with_the_disk() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 1);
    let shard = world.shard.clone();
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    for (name, expected) in
        [("stopped", "done"), ("unwanted", "canceled"), ("broken", "failed"), ("over", "done")]
    {
        stasis::bridge_record(&shard, "b", recording(name)).unwrap();
        let now = world.now().as_millis();
        until(&mut world, now + 500);
        match name {
            "stopped" => stasis::stop_recording(&shard, name).unwrap(),
            "unwanted" => stasis::discard_recording(&shard, name).unwrap(),
            "broken" => world.fail_recording("/spool/recording/broken.wav", "no space left"),
            _ => stasis::destroy_bridge(&shard, "b").unwrap(),
        }
        until(&mut world, now + 2000);
        let last = told(&world).into_iter().rfind(|line| line.starts_with(name)).unwrap();
        assert!(last.contains(expected), "{name}: {last}");
    }
    assert_eq!(world.afterwards("/spool/recording/unwanted.wav"), Some((true, 0)));
    world.run();
    programs_at_rest(&world);
}

#[test]
fn what_bridges_cannot_is_refused() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 2);
    let stranger = world.incoming("7", "", location("default", "9"), &[]);
    let stranger = uid(&world, stranger);
    let shard = world.shard.clone();
    bridge(&world, "b", BridgeKind::Mixing);
    bridge(&world, "c", BridgeKind::Mixing);
    let new = |id: Option<&str>, kind| NewBridge { id: id.map(str::to_owned), kind, ..NewBridge::default() };
    assert_eq!(status(stasis::create_bridge(&shard, new(Some("b"), BridgeKind::Mixing))), 409);
    assert_eq!(status(stasis::create_bridge(&shard, new(Some(""), BridgeKind::Mixing))), 400);
    assert_eq!(status(stasis::create_bridge(&shard, new(Some(&"x".repeat(200)), BridgeKind::Mixing))), 400);
    let made = stasis::create_bridge(&shard, new(None, BridgeKind::Mixing)).unwrap();
    assert_eq!((made.len(), made.matches('-').count()), (36, 4), "{made}");
    assert_eq!(status(stasis::create_bridge(&shard, new(Some("b"), BridgeKind::Holding))), 409);
    assert_eq!(status(Joining::kind_of("mixing,floating")), 500);
    let holding = (BridgeKind::Holding, true, false, call::VideoChoice::Talker);
    assert_eq!(Joining::kind_of("holding,dtmf_events").unwrap(), holding);

    assert_eq!(status(add(&world, "none", &[&own[0]])), 404);
    assert_eq!(status(add(&world, "b", &[])), 400);
    assert_eq!(status(add(&world, "b", &["nobody"])), 400);
    assert_eq!(status(add(&world, "b", &[&own[0], &stranger])), 409);
    assert_eq!(shard.core.borrow().stasis.bridge("b").unwrap().members.len(), 0, "all or none");
    add(&world, "b", &[&own[0]]).unwrap();
    for (bridge, channel, expected) in [
        ("none", own[0].as_str(), 404),
        ("b", "nobody", 400),
        ("b", &stranger, 409),
        ("c", &own[0], 422),
        ("b", &own[1], 422),
    ] {
        assert_eq!(
            status(stasis::remove_channels(&shard, bridge, &[channel])),
            expected,
            "{bridge} {channel}"
        );
    }
    assert_eq!(status(stasis::record(&shard, &own[0], recording("r"))), 409, "it is in a bridge");
    stasis::record(&shard, &own[1], recording("r")).unwrap();
    assert_eq!(status(add(&world, "b", &[&own[1]])), 409, "it is being recorded");
    world.recorded("/spool/recording/there.wav");
    for (wanted, expected) in [
        (recording("../x"), 400),
        (recording("there"), 409),
        (recording("r"), 409),
        (Recording { if_exists: IfExists::Append, format: "exe".into(), ..recording("there") }, 422),
        (Recording { max_silence: Duration::from_secs(1), ..recording("x") }, 422),
        (Recording { terminate_on: "#".into(), ..recording("x") }, 422),
    ] {
        assert_eq!(status(stasis::bridge_record(&shard, "b", wanted)), expected);
    }
    assert_eq!(status(stasis::bridge_record(&shard, "none", recording("x"))), 404);
    assert_eq!(status(stasis::bridge_play(&shard, "none", playing("p", &["sound:a"]))), 404);
    assert_eq!(status(stasis::bridge_play(&shard, "b", playing("p", &[]))), 400);
    assert_eq!(status(stasis::bridge_music(&shard, "none", None)), 404);
    assert_eq!(status(stasis::bridge_music(&shard, "b", None)), 409, "none plays");
    assert_eq!(status(stasis::set_video_source(&shard, "b", &own[1])), 422, "it is not in it");
    assert_eq!(status(stasis::set_video_source(&shard, "b", &stranger)), 422);
    assert_eq!(status(stasis::set_video_source(&shard, "b", "nobody")), 400);
    stasis::set_video_source(&shard, "b", &own[0]).unwrap();
    assert_eq!(status(stasis::set_video_source(&shard, "none", &own[0])), 404);
    stasis::clear_video_source(&shard, "b").unwrap();
    let some = |_| stasis::create_bridge(&shard, new(None, BridgeKind::Mixing)).is_ok();
    assert_eq!((0..BRIDGES_MAX + 10).filter(|n| some(*n)).count(), BRIDGES_MAX - 3);
    let play =
        |_| stasis::bridge_play(&shard, "b", Playing { id: None, ..playing("", &["sound:a"]) }).is_ok();
    assert_eq!((0..1000).filter(|n| play(*n)).count(), call::stasis::WORKS_MAX);
}

#[test]
fn no_dialplan_enters_a_room_of_programs() {
    let mut world = programs();
    let (_, own) = channels(&mut world, 1);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    let stranger = world.incoming("7", "", location("default", "9"), &[]);
    let mut core = world.shard.core.borrow_mut();
    let profile = std::sync::Arc::new(call::conference::BridgeProfile::default());
    let room = core.stasis.bridge("b").unwrap().room();
    assert!(core.conference_enter(&room, stranger, call::conference::Guest::default(), &profile).is_err());
    let guest = call::conference::Guest { is_of_program: true, ..Default::default() };
    assert!(core.conference_enter("public", stranger, guest, &profile).is_err());
}

#[test]
fn who_takes_the_place_of_a_channel_is_the_programs_from_there_on() {
    let mut world = programs();
    let (ids, own) = channels(&mut world, 2);
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0], &own[1]]).unwrap();
    let newcomer = call(&mut world, "5", &[(40_000, BYE)]);
    let newcomer_uid = uid(&world, newcomer);
    world.shard.core.borrow_mut().request_exchange(Exchange {
        place: ids[0],
        newcomer,
        leaving: Vec::new(),
        is_fresh: false,
        mirrored: false,
        answers: false,
        notice: None,
        cause: base::Cause::NORMAL_CLEARING,
    });
    until(&mut world, 1000);
    let lines: Vec<_> = told(&world)
        .into_iter()
        .filter(|line| line.starts_with("start") || line.starts_with("end"))
        .collect();
    assert_eq!(lines[2..], ["start app() #2 instead of #0", "end app #0"]);
    assert!(world.shard.core.borrow().stasis_visitor(&newcomer_uid).is_ok());
    let view = world.shard.core.borrow().stasis_bridge_view("b").unwrap();
    assert!(view.channels.iter().any(|id| **id == *newcomer_uid));
    assert_eq!((world.joins(), said(&world, "#2 and #3 talk") + said(&world, "#3 and #2 talk")), (1, 1));
    world.run();
    assert_eq!(times(&world, "start"), times(&world, "end"));
    programs_at_rest(&world);
}

#[test]
fn the_record_of_who_called_tells_of_whom_it_talked_to() {
    let mut world = programs();
    world.phone("a", phone(&[(1000, Act::Ring), (3000, Act::Answer)]));
    let shard = world.shard.clone();
    let caller = call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 10);
    let caller = uid(&world, caller);
    stasis::answer(&shard, &caller).unwrap();
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&caller]).unwrap();
    let wanted = stasis::Create {
        endpoint: "SIM/a".into(),
        id: Some("leg".into()),
        originator: Some(caller.clone()),
        ..stasis::Create::default()
    };
    stasis::create(&shard, wanted, ("app", Vec::new()), dialplan::Rights::CALLS).unwrap();
    until(&mut world, 20);
    stasis::dial(&shard, "leg", Some(&caller), Duration::from_secs(10)).unwrap();
    until(&mut world, 5000);
    add(&world, "b", &["leg"]).unwrap();
    until(&mut world, 15_000);
    stasis::hangup(&shard, "leg", None, None).unwrap();
    world.run();
    let records: Vec<_> = world
        .cdrs
        .iter()
        .map(|cdr| format!("{} {} {} {}", cdr.channel, cdr.dst_channel, cdr.last_app, cdr.disposition.name()))
        .collect();
    // What the caller's dialplan does after the program is another record.
    assert_eq!(
        records,
        ["SIM/6001-00000000 SIM/a-00000001 Stasis ANSWERED", "SIM/6001-00000000  NoOp ANSWERED"]
    );
    at_rest(&world, "records");
}

#[test]
fn two_hear_each_other_directly_until_somebody_comes_or_all_are_to_hear_or_be_recorded() {
    let mut world = programs();
    let (ids, own) = channels(&mut world, 3);
    let shard = world.shard.clone();
    bridge(&world, "b", BridgeKind::Mixing);
    add(&world, "b", &[&own[0]]).unwrap();
    assert_eq!(world.joins(), 0);
    add(&world, "b", &[&own[1]]).unwrap();
    assert_eq!(world.joins(), 1);
    let talks_to = |world: &World, id| world.shard.core.borrow().talks_to(id);
    assert_eq!(talks_to(&world, ids[0]), Some(ids[1]), "drivers see two who talk");
    world.act(ids[0], Duration::from_millis(500), Act::PressRelayed('3'));
    until(&mut world, 1000);
    assert_eq!(said(&world, "is sent digit"), 0, "the media plane has passed it on");
    add(&world, "b", &[&own[2]]).unwrap();
    assert_eq!(
        (world.joins(), said(&world, "1000 #1 enters room 0"), said(&world, "1000 #2 enters room 0")),
        (0, 1, 1)
    );
    assert_eq!(talks_to(&world, ids[0]), None);
    until(&mut world, 2000);
    stasis::remove_channels(&shard, "b", &[&own[0]]).unwrap();
    assert_eq!(talks_to(&world, ids[1]), Some(ids[2]));
    assert_eq!((world.joins(), said(&world, "2000 #2 and #3 talk")), (1, 1), "{:?}", world.transcript());
    stasis::bridge_play(&shard, "b", playing("p", &["sound:hello"])).unwrap();
    until(&mut world, 2500);
    assert_eq!(world.joins(), 0);
    in_order(&world, &["2000 #2 enters room 0", "2000 #3 enters room 0", "2000 room 0 hears unnamed"]);
    until(&mut world, 4000);
    assert_eq!(world.joins(), 1, "it is over");
    stasis::bridge_record(&shard, "b", recording("r")).unwrap();
    until(&mut world, 5000);
    in_order(&world, &["4000 #3 enters room 0", "4000 room 0 is recorded"]);
    stasis::stop_recording(&shard, "r").unwrap();
    until(&mut world, 6000);
    assert_eq!(world.joins(), 1);
    stasis::continue_in_dialplan(&shard, &own[1], &stasis::Continue::default()).unwrap();
    until(&mut world, 7000);
    assert_eq!((world.joins(), said(&world, "6000 #3 enters room 0")), (0, 1), "{:?}", world.transcript());
    let muted = Joining { is_muted: true, ..Joining::default() };
    stasis::add_channels(&shard, "b", &[&own[0]], muted).unwrap();
    assert_eq!(world.joins(), 0, "one is muted, which the room does");
    world.run();
    at_rest(&world, "pair");
}
