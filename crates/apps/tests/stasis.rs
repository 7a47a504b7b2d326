//! `Stasis` in an invented world: how a program gets a channel, what it does with it, and how it lets it go.

mod common;
#[path = "common/programs.rs"]
mod programs;

use std::time::Duration;

use apps::originate::Then;
use apps::stasis::{self, Continue, Create, Direction, Playing, Recording, Start};
use base::Cause;
use call::stasis::{Digits, IfExists, PlaybackSteer, StasisError, Topic};
use call::{Level, Notice, PartyId};
use common::*;
use programs::*;
use sim::{Act, World};

fn until(world: &mut World, ms: u64) {
    world.run_until(common::at(ms));
}

/// What programs have whose site does not live dangerously.
const RIGHTS: dialplan::Rights = dialplan::Rights::CALLS;

#[test]
fn a_program_that_is_there_gets_the_call_and_lets_it_go_on() {
    let mut world = programs();
    let id = call(&mut world, "1", &[]);
    until(&mut world, 10);
    assert_eq!(told(&world), ["start app(one,two) #0"]);
    let own = uid(&world, id);
    assert_eq!(world.shard.core.borrow().stasis.channels_of("app").count(), 1);
    stasis::continue_in_dialplan(&world.shard, &own, &Continue::default()).unwrap();
    assert_eq!(status(stasis::answer(&world.shard, &own)), 409, "it was let go");
    world.run();
    assert_eq!(told(&world), ["start app(one,two) #0", "end app #0"]);
    assert_eq!(noted(&world), ["SUCCESS", "h SUCCESS"]);
    at_rest(&world, "continue");
    programs_at_rest(&world);
}

#[test]
fn one_that_is_not_there_gets_nothing() {
    for exten in ["2", "3"] {
        let world = {
            let mut world = programs();
            call(&mut world, exten, &[]);
            world.run();
            world
        };
        assert_eq!(told(&world), [""; 0]);
        assert_eq!(noted(&world), ["FAILED", "h FAILED"]);
        assert_eq!(warnings(&world).len(), 1, "{:?}", warnings(&world));
    }
}

#[test]
fn the_channel_stays_when_the_client_goes_and_it_finds_it_when_it_comes_back() {
    let mut world = programs();
    let id = call(&mut world, "4", &[]);
    until(&mut world, 10);
    let own = uid(&world, id);
    world.shard.core.borrow_mut().stasis.unregister("app");
    until(&mut world, 60_000);
    assert_eq!(times(&world, "end"), 0);
    assert!(world.shard.core.borrow().stasis.app("app").is_some_and(|app| !app.is_active));
    call(&mut world, "4", &[]);
    until(&mut world, 60_010);
    assert_eq!(noted(&world)[0], "FAILED", "nobody serves new calls meanwhile");
    register(&world, "app");
    stasis::hangup(&world.shard, &own, Some("busy"), None).unwrap();
    world.run();
    assert_eq!(times(&world, "end app"), 1);
    assert!(lines(&world, "ends with 17").len() == 1, "{:?}", world.transcript());
    world.shard.core.borrow_mut().stasis.unregister("app");
    assert!(world.shard.core.borrow().stasis.app("app").is_none(), "without channels it is forgotten");
}

#[test]
fn who_hangs_up_panics_or_is_sent_elsewhere_leaves_once() {
    let act = |name: &str, acts: &[(u64, Act)]| {
        let mut world = programs();
        world.explosive("bomb");
        let id = call(&mut world, "4", acts);
        until(&mut world, 10);
        let own = uid(&world, id);
        if name == "panic" {
            stasis::play(&world.shard, &own, playing("p", &["sound:bomb"])).unwrap();
        }
        world.run();
        assert_eq!((times(&world, "start"), times(&world, "end")), (1, 1), "{name}: {:?}", told(&world));
        at_rest(&world, name);
        programs_at_rest(&world);
        world
    };
    act("panic", &[]);
    let world = act("hang-up", &[(500, BYE)]);
    assert_eq!(noted(&world), ["h SUCCESS"]);
    let world = act("redirect", &[(500, Act::Redirect(location("elsewhere", "s")))]);
    assert_eq!(noted(&world)[0], "elsewhere");
}

#[test]
fn a_place_in_the_dialplan_may_be_named_by_its_parts() {
    let to = |context: Option<&str>, extension: Option<&str>, priority, label: Option<&str>| Continue {
        context: context.map(str::to_owned),
        extension: extension.map(str::to_owned),
        priority,
        label: label.map(str::to_owned),
    };
    for (name, to, expected) in [
        ("extension", to(None, Some("5"), None, None), "five"),
        ("label", to(None, Some("5"), None, Some("there")), "there"),
        ("priority", to(None, Some("5"), Some(2), None), "there"),
        ("context", to(Some("elsewhere"), Some("s"), None, None), "elsewhere"),
    ] {
        let mut world = programs();
        let id = call(&mut world, "4", &[]);
        until(&mut world, 10);
        let own = uid(&world, id);
        let nowhere =
            Continue { extension: Some("5".into()), label: Some("nowhere".into()), ..Continue::default() };
        assert_eq!(status(stasis::continue_in_dialplan(&world.shard, &own, &nowhere)), 404);
        stasis::continue_in_dialplan(&world.shard, &own, &to).unwrap();
        world.run();
        assert_eq!(noted(&world)[0], expected, "{name}");
        assert_eq!(times(&world, "end"), 1, "{name}");
    }
}

#[test]
fn a_channel_moves_to_a_program_that_is_there_and_stays_otherwise() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(5000, BYE)]);
    until(&mut world, 10);
    let own = uid(&world, id);
    stasis::move_to(&world.shard, &own, "nobody", Vec::new()).unwrap();
    until(&mut world, 20);
    stasis::move_to(&world.shard, &own, "other", vec!["x".into()]).unwrap();
    until(&mut world, 30);
    assert_eq!(world.shard.core.borrow().stasis.channels_of("other").count(), 1);
    world.run();
    let expected =
        ["start app() #0", "app keeps #0 from nobody", "end app #0", "start other(x) #0", "end other #0"];
    assert_eq!(told(&world), expected);
}

#[test]
fn verbs_reach_the_channel() {
    let mut world = programs();
    let id = call(&mut world, "1", &[(60_000, BYE)]);
    until(&mut world, 10);
    let own = uid(&world, id);
    let shard = world.shard.clone();
    stasis::ring(&shard, &own, true).unwrap();
    stasis::ring(&shard, &own, false).unwrap();
    stasis::answer(&shard, &own).unwrap();
    stasis::answer(&shard, &own).unwrap();
    stasis::mute(&shard, &own, Direction::In, true).unwrap();
    stasis::mute(&shard, &own, Direction::Both, false).unwrap();
    stasis::hold(&shard, &own, true).unwrap();
    stasis::hold(&shard, &own, false).unwrap();
    stasis::silence(&shard, &own, true).unwrap();
    stasis::silence(&shard, &own, false).unwrap();
    stasis::redirect(&shard, &own, "SIM/6002").unwrap();
    stasis::music(&shard, &own, Some("soft")).unwrap();
    until(&mut world, 1000);
    assert_eq!(world.endless_sound(id).as_deref(), Some("music soft"));
    stasis::music(&shard, &own, None).unwrap();
    until(&mut world, 2000);
    assert_eq!(world.endless_sound(id), None);
    let digits = Digits {
        digits: "1w2".into(),
        before: Duration::from_millis(100),
        between: Duration::from_millis(300),
        duration_ms: 100,
        after: Duration::ZERO,
    };
    stasis::send_digits(&shard, &own, digits).unwrap();
    until(&mut world, 5000);
    let name = "SIM/6001-00000000";
    in_order(
        &world,
        &[
            &format!("10 {name} is told it rings"),
            &format!("10 {name} is answered"),
            "10 #1 muted heard=true sent=false",
            "10 #1 muted heard=false sent=false",
            &format!("10 {name} is held"),
            &format!("10 {name} is held no more"),
            "10 #1 hears silence when there is nothing to hear",
            "10 #1 hears nothing when there is nothing to hear",
            &format!("10 {name} is transferred to 6002"),
            "10 #1 hears music soft",
            "2100 #1 is sent digit 1",
            "3000 #1 is sent digit 2",
        ],
    );
    world.run();
    programs_at_rest(&world);
}

#[test]
fn sounds_are_played_one_after_the_other_and_those_who_watch_hear_of_each() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let own = uid(&world, id);
    stasis::play(&world.shard, &own, playing("p1", &["sound:hello", "digits:12", "characters:a"])).unwrap();
    let german = Playing { language: "de".into(), ..playing("p2", &["number:21"]) };
    stasis::play(&world.shard, &own, german).unwrap();
    let later = Playing { offset_ms: 400, ..playing("p3", &["recording:some/take"]) };
    stasis::play(&world.shard, &own, later).unwrap();
    stasis::play(&world.shard, &own, playing("p4", &["nothing", "sound:gone"])).unwrap();
    stasis::play(&world.shard, &own, playing("p5", &["tone:ring;tonezone=de"])).unwrap();
    // An id may be given twice; it means the older one as long as that is there.
    stasis::play(&world.shard, &own, playing("p5", &["sound:x"])).unwrap();
    world.missing("gone");
    until(&mut world, 20_000);
    assert_eq!(world.endless_sound(id).as_deref(), Some("tone ring"));
    stasis::stop_playback(&world.shard, "p5").unwrap();
    until(&mut world, 20_010);
    assert_eq!(
        told(&world)[1..],
        [
            "p1 plays sound:hello (playing)",
            "p1 goes on with sound:hello (continuing)",
            "p1 plays digits:12 (playing)",
            "p1 goes on with digits:12 (continuing)",
            "p1 plays characters:a (playing)",
            "p1 played characters:a (done)",
            "p2 plays number:21 (playing)",
            "p2 played number:21 (done)",
            "p3 plays recording:some/take (playing)",
            "p3 played recording:some/take (done)",
            "p4 plays nothing (playing)",
            "p4 played sound:gone (failed)",
            "p5 plays tone:ring;tonezone=de (playing)",
            "p5 played tone:ring;tonezone=de (done)",
            "p5 plays sound:x (playing)",
        ]
    );
    in_order(
        &world,
        &["10 #1 hears hello", "1010 #1 hears digits/1", "2010 #1 hears digits/2", "3010 #1 hears letters/a"],
    );
    assert_eq!(lines(&world, "(de)").len(), 2, "{:?}", world.transcript());
    assert_eq!(lines(&world, "early audio").len(), 1, "it is not answered");
    assert_eq!(lines(&world, "/spool/recording/some/take from 400 ms").len(), 1);
    world.run();
    programs_at_rest(&world);
}

#[test]
fn a_sound_is_steered_and_stopped_in_every_state() {
    let mut world = programs();
    world.clip("long", Duration::from_secs(20));
    let id = call(&mut world, "4", &[(100_000, BYE)]);
    until(&mut world, 10);
    let own = uid(&world, id);
    let shard = world.shard.clone();
    stasis::play(&shard, &own, Playing { skip_ms: Some(2000), ..playing("p", &["sound:long"]) }).unwrap();
    stasis::play(&shard, &own, playing("q", &["sound:next"])).unwrap();
    until(&mut world, 20);
    let steer = |what| stasis::control_playback(&shard, "p", what);
    assert_eq!(status(stasis::control_playback(&shard, "q", PlaybackSteer::Pause)), 409, "it waits");
    assert_eq!(status(stasis::control_playback(&shard, "x", PlaybackSteer::Pause)), 404);
    for (ms, step) in
        [(5010, PlaybackSteer::Reverse), (6010, PlaybackSteer::Forward), (7010, PlaybackSteer::Pause)]
    {
        until(&mut world, ms);
        steer(step).unwrap();
    }
    until(&mut world, 9010);
    assert_eq!(status(steer(PlaybackSteer::Forward)), 409, "it rests");
    steer(PlaybackSteer::Pause).unwrap();
    steer(PlaybackSteer::Unpause).unwrap();
    until(&mut world, 10_010);
    steer(PlaybackSteer::Unpause).unwrap();
    steer(PlaybackSteer::Restart).unwrap();
    until(&mut world, 11_010);
    stasis::stop_playback(&shard, "q").unwrap();
    assert_eq!(status(stasis::stop_playback(&shard, "q")), 404);
    stasis::stop_playback(&shard, "p").unwrap();
    until(&mut world, 20_000);
    in_order(
        &world,
        &[
            "10 #1 hears long",
            "5010 #1 hears long from 3000 ms",
            "6010 #1 hears long from 6000 ms",
            "9010 #1 hears long from 7000 ms",
            "10010 #1 hears long",
        ],
    );
    assert_eq!(lines(&world, "next").len(), 0);
    assert_eq!(times(&world, "p played"), 1, "{:?}", told(&world));
    assert_eq!(times(&world, "q played sound:next (done)"), 1);
    assert_eq!(world.shard.core.borrow().stasis.playbacks().count(), 0);
    world.run();
}

#[test]
fn music_rests_while_something_is_played() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(10_000, BYE)]);
    until(&mut world, 10);
    let own = uid(&world, id);
    stasis::music(&world.shard, &own, Some("")).unwrap();
    until(&mut world, 1000);
    stasis::play(&world.shard, &own, playing("p", &["sound:hello"])).unwrap();
    world.run();
    in_order(&world, &["10 #1 hears music default", "1000 #1 hears hello", "2000 #1 hears music default"]);
}

#[test]
fn a_recording_ends_by_a_digit_silence_its_length_or_the_program() {
    let limited = |change: fn(&mut Recording)| {
        let mut wanted = Recording { beep: true, ..recording("take") };
        change(&mut wanted);
        wanted
    };
    let quiet = Act::Silence(2000);
    for (name, wanted, acts, expected) in [
        (
            "digit",
            limited(|r| r.terminate_on = "#".into()),
            vec![(4000, Act::Press('1')), (5010, Act::Press('#'))],
            "take recorded (done) 4000 ms",
        ),
        (
            "silence",
            limited(|r| r.max_silence = Duration::from_secs(2)),
            vec![(6010, quiet)],
            "take recorded (done) 3000 ms",
        ),
        ("length", limited(|r| r.longest = Duration::from_secs(7)), vec![], "take recorded (done) 7000 ms"),
        ("hang-up", limited(|_| {}), vec![(9010, BYE)], "take recorded (done) 8000 ms"),
    ] {
        let mut world = programs();
        let id = call(&mut world, "4", &[]);
        for (after, act) in acts {
            world.act(id, Duration::from_millis(after), act);
        }
        until(&mut world, 10);
        let own = uid(&world, id);
        stasis::record(&world.shard, &own, wanted).unwrap();
        until(&mut world, 15_000);
        assert!(told(&world).contains(&"take records (recording)".to_owned()), "{name}");
        assert!(told(&world).contains(&expected.to_owned()), "{name}: {:?}", told(&world));
        in_order(
            &world,
            &["10 #1 hears beep", "1010 records /spool/recording/take.wav", "1010 #1 is recorded"],
        );
        assert!(!world.afterwards("/spool/recording/take.wav").unwrap().0, "{name}");
        world.hang_up(id);
        world.run();
        programs_at_rest(&world);
    }
}

#[test]
fn a_recording_rests_is_muted_discarded_and_kept() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    stasis::record(&shard, &own, recording("a")).unwrap();
    stasis::record(&shard, &own, recording("b")).unwrap();
    assert_eq!(status(stasis::record(&shard, &own, recording("b"))), 409);
    until(&mut world, 1010);
    stasis::pause_recording(&shard, "a", true).unwrap();
    until(&mut world, 3010);
    stasis::pause_recording(&shard, "a", false).unwrap();
    stasis::mute_recording(&shard, "a", true).unwrap();
    stasis::mute_recording(&shard, "a", false).unwrap();
    until(&mut world, 4010);
    stasis::stop_recording(&shard, "a").unwrap();
    assert_eq!(status(stasis::stop_recording(&shard, "a")), 404);
    until(&mut world, 6010);
    stasis::discard_recording(&shard, "b").unwrap();
    until(&mut world, 6020);
    assert!(told(&world).contains(&"a recorded (done) 2000 ms".to_owned()), "{:?}", told(&world));
    assert!(told(&world).contains(&"b recorded (canceled) 2000 ms".to_owned()), "{:?}", told(&world));
    assert_eq!(world.afterwards("/spool/recording/b.wav"), Some((true, 0)));
    for what in [stasis::stop_recording, stasis::discard_recording] {
        assert_eq!(status(what(&shard, "none")), 404);
    }
    assert_eq!(status(stasis::pause_recording(&shard, "none", true)), 404);
    assert_eq!(status(stasis::mute_recording(&shard, "none", true)), 404);
}

#[test]
fn names_lead_nowhere_else_and_files_are_kept() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    for name in ["../x", "/etc/x", "a/../../x", "", ".hidden", "a//b", "a\\b", "a\nb", "a/.."] {
        assert_eq!(status(stasis::record(&shard, &own, recording(name))), 400, "{name:?}");
        assert_eq!(status(stasis::stored_recording(&shard, name)), 400, "{name:?}");
        assert_eq!(status(stasis::delete_stored(&shard, name)), 400, "{name:?}");
    }
    for (wanted, expected) in [
        (Recording { format: "exe".into(), ..recording("x") }, 422),
        (Recording { format: "w/v".into(), ..recording("x") }, 422),
        (Recording { terminate_on: "5".into(), ..recording("x") }, 400),
        (recording("there"), 409),
        (Recording { if_exists: IfExists::Overwrite, ..recording("there") }, 200),
    ] {
        world.recorded("/spool/recording/there.wav");
        assert_eq!(status(stasis::record(&shard, &own, wanted)), expected);
    }
    world.recorded("/spool/recording/sub/kept.gsm");
    let names: Vec<_> = stasis::stored_recordings(&shard).into_iter().map(|stored| stored.name).collect();
    assert_eq!(names, ["sub/kept", "there"]);
    assert_eq!(status(stasis::copy_stored(&shard, "sub/kept", "../out")), 400);
    assert_eq!(stasis::copy_stored(&shard, "sub/kept", "copy").unwrap().format, "gsm");
    assert_eq!(status(stasis::copy_stored(&shard, "sub/kept", "copy")), 409);
    stasis::delete_stored(&shard, "sub/kept").unwrap();
    assert_eq!(status(stasis::delete_stored(&shard, "sub/kept")), 404);
    assert_eq!(stasis::stored(&shard, "copy").unwrap(), ("/spool/recording/copy".into(), "gsm".into()));
}

/// What is asked of a channel, and the status that comes of it.
type Verb<'a> = Box<dyn Fn(&str) -> u16 + 'a>;

#[test]
fn every_verb_refuses_what_is_not_there_and_what_is_not_a_programs() {
    let mut world = programs();
    let free = world.incoming("7", "", location("default", "9"), &[]);
    let stranger = uid(&world, free);
    let shard = world.shard.clone();
    let digits = || Digits {
        digits: "1".into(),
        before: Duration::ZERO,
        between: Duration::ZERO,
        duration_ms: 100,
        after: Duration::ZERO,
    };
    let verbs: Vec<(&str, Verb<'_>)> = vec![
        ("answer", Box::new(|id| status(stasis::answer(&shard, id)))),
        ("continue", Box::new(|id| status(stasis::continue_in_dialplan(&shard, id, &Continue::default())))),
        ("move", Box::new(|id| status(stasis::move_to(&shard, id, "other", Vec::new())))),
        ("redirect", Box::new(|id| status(stasis::redirect(&shard, id, "SIM/1")))),
        ("ring", Box::new(|id| status(stasis::ring(&shard, id, true)))),
        ("dtmf", Box::new(|id| status(stasis::send_digits(&shard, id, digits())))),
        ("mute", Box::new(|id| status(stasis::mute(&shard, id, Direction::Both, true)))),
        ("hold", Box::new(|id| status(stasis::hold(&shard, id, true)))),
        ("moh", Box::new(|id| status(stasis::music(&shard, id, Some(""))))),
        ("silence", Box::new(|id| status(stasis::silence(&shard, id, true)))),
        ("play", Box::new(|id| status(stasis::play(&shard, id, playing("p", &["sound:a"]))))),
        ("record", Box::new(|id| status(stasis::record(&shard, id, recording("r"))))),
        ("variable", Box::new(|id| status(stasis::channel_variable(&shard, id, "A", RIGHTS)))),
        ("set", Box::new(|id| status(stasis::set_channel_variable(&shard, id, ("A", "1"), None, RIGHTS)))),
        ("dial", Box::new(|id| status(stasis::dial(&shard, id, None, Duration::ZERO)))),
    ];
    for (name, verb) in &verbs {
        assert_eq!(verb("nobody"), 404, "{name}");
        assert_eq!(verb("SIM/7-00000000"), 404, "{name}: a name is no id");
        assert_eq!(verb(&stranger), 409, "{name}");
    }
    drop(verbs);
    assert_eq!(status(stasis::hangup(&shard, "nobody", None, None)), 404);
    assert_eq!(status(stasis::hangup(&shard, &stranger, Some("bored"), None)), 400);
    assert_eq!(status(stasis::hangup(&shard, &stranger, None, Some("200"))), 400);
    assert_eq!(status(stasis::rtp_statistics(&shard, "nobody")), 404);
    assert!(world.shard.core.borrow().stasis.is_at_rest());
    stasis::hangup(&shard, &stranger, None, Some("21")).unwrap();
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    assert_eq!(status(stasis::redirect(&shard, &own, "SIM")), 422);
    assert_eq!(status(stasis::redirect(&shard, &own, "PJSIP/1")), 422);
    assert_eq!(status(stasis::play(&shard, &own, playing("p", &[]))), 400);
    assert_eq!(status(stasis::play(&shard, &own, playing("p", &["sound:x"; 65]))), 400);
    assert_eq!(status(stasis::move_to(&shard, &own, "", Vec::new())), 400);
    assert_eq!(status(stasis::dial(&shard, &own, None, Duration::ZERO)), 409, "it called in");
    assert_eq!(Direction::parse("up"), None);
    assert_eq!(PlaybackSteer::parse("jump"), None);
    let digits = |digits: &str| Digits {
        digits: digits.into(),
        before: Duration::ZERO,
        between: Duration::ZERO,
        duration_ms: 0,
        after: Duration::ZERO,
    };
    for (text, expected) in [("", 400), (&*"1".repeat(300), 400), ("x", 200), ("12a?", 200)] {
        assert_eq!(status(stasis::send_digits(&shard, &own, digits(text))), expected, "{text}");
    }
}

#[test]
fn variables_are_read_and_set_and_functions_as_far_as_the_rights_reach() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    stasis::set_channel_variable(&shard, &own, ("COLOUR", "red ${SHELL(id)}"), None, RIGHTS).unwrap();
    assert_eq!(stasis::channel_variable(&shard, &own, "COLOUR", RIGHTS).unwrap(), "red ${SHELL(id)}");
    stasis::set_channel_variable(&shard, &own, ("CALLERID(name)", "Ada"), None, RIGHTS).unwrap();
    assert_eq!(stasis::channel_variable(&shard, &own, "CALLERID(name)", RIGHTS).unwrap(), "Ada");
    for name in ["SHELL(id)", "FILE(/etc/passwd)", " SHELL (id)", "SYSTEM(x)", "DB(a/b)"] {
        assert_eq!(status(stasis::channel_variable(&shard, &own, name, RIGHTS)), 500, "{name}");
        // What may not be written is logged and left.
        stasis::set_channel_variable(&shard, &own, (name, "x"), None, RIGHTS).unwrap();
    }
    assert_eq!(world.shard.core.borrow_mut().services.db.get("a", "b"), None);
    assert_eq!(status(stasis::channel_variable(&shard, &own, "NO_SUCH(x)", RIGHTS)), 500);
    assert_eq!(status(stasis::channel_variable(&shard, &own, "NONE", RIGHTS)), 404);
    assert_eq!(status(stasis::channel_variable(&shard, &own, "", RIGHTS)), 400);
    let set = |notice: &&Notice| matches!(notice, Notice::VarSet { variable, .. } if variable == "COLOUR");
    until(&mut world, 20);
    assert_eq!(world.notices.iter().filter(set).count(), 1);
}

fn create(endpoint: &str, id: &str) -> Create {
    Create { endpoint: endpoint.into(), id: Some(id.into()), ..Create::default() }
}

#[test]
fn a_call_is_placed_and_goes_to_a_program_or_to_an_extension_when_it_is_answered() {
    let start = |then| Start {
        create: create("SIM/a", "mine"),
        then,
        caller: PartyId::parse("\"Ada\" <1>"),
        timeout: Some(Duration::from_secs(10)),
    };
    let to_app = Then::Stasis { app: "app".into(), args: vec!["${SHELL(id)}".into(), "b,c".into()] };
    let mut world = programs();
    world.phone("a", talks());
    let id = stasis::originate(&world.shard, start(to_app.clone()), RIGHTS).unwrap();
    assert_eq!(uid(&world, id), "mine");
    assert_eq!(status(stasis::originate(&world.shard, start(to_app), RIGHTS)), 409);
    until(&mut world, 2000);
    assert_eq!(told(&world), [""; 0], "it rings");
    world.run();
    assert_eq!(told(&world), ["start app(${SHELL(id)},b,c) #0", "end app #0"]);
    assert_eq!(ends(&world), ["ANSWER"]);
    at_rest(&world, "app");

    let mut world = programs();
    world.phone("a", talks());
    stasis::originate(&world.shard, start(Then::Exten(location("default", "5"))), RIGHTS).unwrap();
    world.run();
    assert_eq!(noted(&world)[..2], ["five", "there"]);

    let mut world = programs();
    world.phone("a", phone(&[(1000, Act::Ring)]));
    stasis::originate(&world.shard, start(Then::Exten(location("default", "5"))), RIGHTS).unwrap();
    world.run();
    assert!(ends(&world).is_empty(), "watchers hear of no end of what has rung for too long");
    at_rest(&world, "nobody answers");
}

#[test]
fn calls_that_cannot_be_placed_are_refused() {
    let mut world = programs();
    world.phone("a", answers());
    world.phone("busy", refusing(Cause::USER_BUSY));
    let shard = world.shard.clone();
    let place = |create: Create| {
        let then = Then::Stasis { app: "app".into(), args: Vec::new() };
        stasis::originate(&shard, Start { create, then, caller: PartyId::default(), timeout: None }, RIGHTS)
            .map(|_| ())
    };
    let with = |change: fn(&mut Create)| {
        let mut create = create("SIM/a", "x");
        change(&mut create);
        create
    };
    for (name, create, expected) in [
        ("no technology", with(|c| c.endpoint = "a".into()), 400),
        ("no resource", with(|c| c.endpoint = "SIM/".into()), 400),
        ("a line break", with(|c| c.endpoint = "SIM/a\r\nb".into()), 400),
        ("an unknown phone", with(|c| c.endpoint = "SIM/z".into()), 500),
        ("an unknown technology", with(|c| c.endpoint = "FOO/z".into()), 500),
        ("one that refuses", with(|c| c.endpoint = "SIM/busy".into()), 500),
        ("a long id", with(|c| c.id = Some("x".repeat(129))), 400),
        ("one id for both", with(|c| c.other_id = Some("x".into())), 400),
        ("nobody's behalf", with(|c| c.originator = Some("nobody".into())), 400),
        ("a shell", with(|c| c.variables = vec![("SHELL(id)".into(), "x".into())]), 422),
    ] {
        assert_eq!(status(place(create)), expected, "{name}");
    }
    let app = Then::App { name: "System".into(), data: "id".into() };
    let start = Start { create: create("SIM/a", "x"), then: app, caller: PartyId::default(), timeout: None };
    assert_eq!(status(stasis::originate(&shard, start, RIGHTS)), 400);
    assert_eq!(world.shard.core.borrow().channel_count(), 0);
}

#[test]
fn a_channel_is_made_first_and_called_later() {
    for (name, acts, timeout, end, dial) in [
        ("answered", vec![(1000, Act::Ring), (3000, Act::Answer), (9000, BYE)], 10, 9020, "ANSWER"),
        ("too late", vec![(1000, Act::Ring), (30_000, Act::Answer)], 5, 5020, "NOANSWER"),
        ("busy", vec![(1000, Act::Hangup(Cause::USER_BUSY))], 5, 1020, "BUSY"),
    ] {
        let mut world = programs();
        world.phone("a", phone(&acts));
        let shard = world.shard.clone();
        let caller = call(&mut world, "4", &[(60_000, BYE)]);
        until(&mut world, 10);
        let caller = uid(&world, caller);
        let mut wanted = create("SIM/a", "leg");
        wanted.originator = Some(caller.clone());
        stasis::create(&shard, wanted, ("app", vec!["x".into()]), RIGHTS).unwrap();
        until(&mut world, 20);
        assert_eq!(told(&world)[1..], ["start app(x) #1"], "{name}: it is the program's from the first");
        stasis::dial(&shard, "leg", Some(&caller), Duration::from_secs(timeout)).unwrap();
        until(&mut world, 30);
        assert_eq!(lines(&world, "is called").len(), 1);
        until(&mut world, 50_000);
        assert_eq!(told(&world)[2..], ["end app #1"], "{name}");
        assert_eq!(ends(&world), [dial], "{name}");
        assert_eq!(lines(&world, "SIM/a-00000001 ends").len(), 1);
        assert!(
            lines(&world, "SIM/a-00000001 ends")[0].starts_with(&format!("{end} ")),
            "{name}: {:?}",
            world.transcript()
        );
        world.run();
        at_rest(&world, name);
    }
}

#[test]
fn programs_hear_of_what_they_have_and_of_what_they_asked_for() {
    let mut world = programs();
    let heard = |world: &mut World, app: &str| {
        let notices = core::mem::take(&mut world.notices);
        let mut core = world.shard.core.borrow_mut();
        let to = |notice: &Notice| core.stasis.route(notice).iter().any(|name| &**name == app);
        let mut to = to;
        notices
            .iter()
            .filter(|notice| to(notice))
            .map(|notice| {
                let text = format!("{notice:?}");
                text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
            })
            .collect::<Vec<_>>()
    };
    let id = call(&mut world, "4", &[(100, Act::Press('5')), (60_000, BYE)]);
    until(&mut world, 1000);
    let own = uid(&world, id);
    assert_eq!(
        heard(&mut world, "app"),
        ["Stasis", "Dtmf", "Dtmf"],
        "nothing from before it was the program's"
    );
    {
        let mut core = world.shard.core.borrow_mut();
        assert_eq!(status(core.stasis_subscribe("nobody", &[])), 404);
        assert_eq!(status(core.stasis_subscribe("other", &[Topic::Channel("nobody".into())])), 422);
        core.stasis_subscribe("other", &[Topic::Channel(own.clone())]).unwrap();
        core.stasis.set_filter("other", None, Some(vec!["ChannelDtmfReceived".into()])).unwrap();
        assert!(!core.stasis.app("other").unwrap().hears("ChannelDtmfReceived"));
        assert!(core.stasis.app("other").unwrap().hears("ChannelHangupRequest"));
    }
    world.act(id, Duration::from_millis(1), Act::Press('1'));
    until(&mut world, 2000);
    assert_eq!(heard(&mut world, "other"), ["Dtmf", "Dtmf"]);
    {
        let mut core = world.shard.core.borrow_mut();
        core.stasis_unsubscribe("other", &[Topic::Channel(own.clone())]).unwrap();
        assert_eq!(status(core.stasis_unsubscribe("other", &[Topic::Channel(own.clone())])), 409);
    }
    world.act(id, Duration::from_millis(1), Act::Press('1'));
    until(&mut world, 3000);
    assert_eq!(heard(&mut world, "other"), [""; 0]);
    {
        let mut core = world.shard.core.borrow_mut();
        core.stasis_subscribe("other", &[Topic::parse("endpoint:SIM/6001").unwrap()]).unwrap();
        assert_eq!(status(Topic::parse("mailbox:1")), 400);
        assert_eq!(status(Topic::parse("channel")), 400);
    }
    world.run();
    let last = heard(&mut world, "other");
    assert!(last.contains(&"HangupRequest".to_owned()) && last.contains(&"Hangup".to_owned()), "{last:?}");
    let core = world.shard.core.borrow();
    assert_eq!(core.stasis.app("app").unwrap().listens_to().count(), 0);
}

#[test]
fn everything_is_bounded() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    let play = || stasis::play(&shard, &own, Playing { media: vec!["sound:a".into()], ..Playing::default() });
    let taken = (0..2 * call::stasis::WORKS_MAX).filter(|_| play().is_ok()).count();
    assert_eq!(taken, call::stasis::WORKS_MAX);
    assert_eq!(world.shard.core.borrow().stasis.playbacks().count(), taken, "what is refused is not kept");
    until(&mut world, 20);
    assert!(play().is_err(), "those that wait count");
    let music = |_| stasis::music(&shard, &own, Some("")).is_ok();
    assert_eq!((0..1000).filter(|n| music(*n)).count(), call::stasis::ORDERS_MAX);
    until(&mut world, 1500);
    assert!(play().is_ok(), "the first is over");
    let mut core = world.shard.core.borrow_mut();
    let apps = (0..2000).filter(|n| core.stasis.register(&format!("a{n}"), false).is_ok()).count();
    assert_eq!(apps, call::stasis::APPS_MAX - 2);
    assert!(matches!(core.stasis.register("", false), Err(StasisError::BadRequest(_))));
    assert!(matches!(core.stasis.register(&"x".repeat(200), false), Err(StasisError::BadRequest(_))));
    let topics: Vec<_> = (0..20_000).map(|n| Topic::DeviceState(format!("d{n}"))).collect();
    assert_eq!(status(core.stasis_subscribe("app", &topics)), 500);
    assert_eq!(status(core.stasis.set_filter("app", Some(vec![String::new(); 200]), None)), 400);
    drop(core);
    world.run();
    programs_at_rest(&world);
    assert!(world.log(Level::Error).is_empty());
}

#[test]
fn what_was_just_recorded_is_played_when_its_file_is_whole() {
    let mut world = programs();
    let id = call(&mut world, "4", &[(60_000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    let short = Recording { longest: Duration::from_secs(1), ..recording("take") };
    stasis::record(&shard, &own, short).unwrap();
    stasis::play(&shard, &own, playing("p", &["recording:take"])).unwrap();
    until(&mut world, 1200);
    assert_eq!((times(&world, "take recorded"), times(&world, "p plays")), (1, 0));
    world.complete_recording("/spool/recording/take.wav");
    until(&mut world, 1300);
    assert_eq!(times(&world, "p plays"), 1);
    // A disk that never comes to an end is not waited for.
    stasis::record(&shard, &own, Recording { longest: Duration::from_secs(1), ..recording("slow") }).unwrap();
    stasis::play(&shard, &own, playing("q", &["recording:slow"])).unwrap();
    until(&mut world, 10_000);
    assert_eq!(times(&world, "q played recording:slow (done)"), 1, "{:?}", told(&world));
}

#[test]
fn a_program_listens_to_a_channel_and_speaks_to_it_by_one_of_its_own() {
    let mut world = programs();
    world.phones_at_extensions();
    let id = call(&mut world, "6", &[(9000, BYE)]);
    until(&mut world, 10);
    let (own, shard) = (uid(&world, id), world.shard.clone());
    let wanted = || stasis::Snoop {
        spy: Some(Direction::Both),
        whisper: Some(Direction::Out),
        app: "app".into(),
        args: vec!["x".into()],
        id: Some("ear".into()),
    };
    let with = |change: fn(&mut stasis::Snoop)| {
        let mut wanted = wanted();
        change(&mut wanted);
        wanted
    };
    for (name, channel, wanted, expected) in [
        ("nobody", "nobody", wanted(), 404),
        ("no program", &own, with(|s| s.app = "gone".into()), 404),
        ("an unnamed program", &own, with(|s| s.app.clear()), 400),
        ("nothing", &own, with(|s| (s.spy, s.whisper) = (None, None)), 400),
        ("a long id", &own, with(|s| s.id = Some("x".repeat(200))), 400),
        ("in", &own, with(|s| (s.id, s.whisper) = (Some("taken".into()), Some(Direction::In))), 200),
        ("a taken id", &own, with(|s| s.id = Some("taken".into())), 409),
    ] {
        assert_eq!(status(stasis::snoop(&shard, channel, wanted)), expected, "{name}");
    }
    stasis::hangup(&shard, "taken", None, None).unwrap();
    until(&mut world, 1000);
    stasis::snoop(&shard, &own, wanted()).unwrap();
    until(&mut world, 2000);
    assert_eq!(told(&world).last().unwrap(), "start app(x) #3");
    stasis::record(&shard, "ear", recording("heard")).unwrap();
    until(&mut world, 3000);
    assert_eq!(lines(&world, "1000 #1 is monitored by").len(), 1, "{:?}", world.transcript());
    assert_eq!(lines(&world, "1000 #5 hears live sound").len(), 1);
    assert_eq!(lines(&world, "1000 #1 is murmured to by").len(), 1);
    assert_eq!(lines(&world, "2000 #4 is recorded").len(), 1);
    until(&mut world, 10_000);
    assert_eq!(lines(&world, "Snoop/1-00000004 ends").len(), 1, "it ends with whom it listens to");
    // The other half would have ended with it.
    stasis::hangup(&shard, "ear", None, None).unwrap();
    world.run();
    assert_eq!(times(&world, "end app #3"), 1);
    programs_at_rest(&world);
    at_rest(&world, "snoop");
}
