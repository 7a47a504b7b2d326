//! Channel events: which are kept of which call, in which order, and what they say.

mod common;

use std::rc::Rc;

use apps::records::{Pattern, cel_fields, event_field};
use call::{Cel, CelKind, CelSettings};
use common::{BYE, answers, at, call, phone, world};
use queue::{Config, NewMember, QueueConfig, Settings};
use sim::{Act, World};

/// All events, of these applications.
fn all(apps: &[&str]) -> Option<Rc<CelSettings>> {
    let apps = apps.iter().map(|app| (*app).to_owned());
    Some(Rc::new(CelSettings::new(CelKind::ALL.iter().copied(), apps)))
}

/// A world whose 6002 answers after three seconds and talks on.
fn site(dialplan: &str, apps: &[&str]) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.settings(|settings| settings.cel = all(apps));
    world.shard.core.borrow_mut().reach = apps::reach;
    world.phone("6002", answers());
    world
}

/// `KIND phone`, and for applications their name.
fn told(events: &[Cel]) -> Vec<String> {
    let line = |event: &Cel| {
        let phone = event.channel.split(['/', '-']).nth(1).unwrap_or_default();
        match event.kind {
            CelKind::AppStart | CelKind::AppEnd => format!("{} {phone} {}", event.kind.name(), event.app),
            _ => format!("{} {phone}", event.kind.name()),
        }
    };
    events.iter().map(line).collect()
}

fn of(world: &World, kind: CelKind) -> &Cel {
    let found: Vec<&Cel> = world.cels.iter().filter(|event| event.kind == kind).collect();
    let [event] = found.as_slice() else {
        panic!("{} {}: {:?}", found.len(), kind.name(), told(&world.cels))
    };
    event
}

#[test]
fn a_call_begins_is_answered_bridged_and_ends_each_once() {
    let mut world =
        site("exten => 1,1,Set(CHANNEL(userfield)=mine)\n same => n,Dial(SIM/6002,20)", &["dial"]);
    call(&mut world, "1", &[(8000, BYE)]);
    world.run();
    assert_eq!(
        told(&world.cels),
        [
            "CHAN_START 6001",
            "APP_START 6001 Dial",
            "CHAN_START 6002",
            "ANSWER 6002",
            "ANSWER 6001",
            "BRIDGE_ENTER 6002",
            "BRIDGE_ENTER 6001",
            "BRIDGE_EXIT 6001",
            "BRIDGE_EXIT 6002",
            "APP_END 6001 Dial",
            "HANGUP 6001",
            "CHAN_END 6001",
            "HANGUP 6002",
            "CHAN_END 6002",
            "LINKEDID_END 6002",
        ]
    );
    let began = &world.cels[1];
    for (field, expected) in [
        ("eventtype", "APP_START"),
        ("cid_name", "Alice"),
        ("cid_num", "6001"),
        ("exten", "1"),
        ("context", "default"),
        ("channame", "SIM/6001-00000000"),
        ("appname", "Dial"),
        ("appdata", "SIM/6002,20"),
        ("amaflags", "3"),
        ("userfield", "mine"),
        ("extra", ""),
    ] {
        assert_eq!(event_field(began, field), expected, "{field}");
    }
    let entered = &world.cels[6];
    assert_eq!(entered.peer, "SIM/6002-00000001");
    assert!(entered.extra_json().starts_with("{\"bridge_id\":\""), "{}", entered.extra_json());
    assert!(entered.extra_json().ends_with("\"bridge_technology\":\"simple_bridge\"}"));
    let hung_up = &world.cels[10];
    assert_eq!(
        hung_up.extra_json(),
        "{\"hangupcause\":16,\"hangupsource\":\"SIM/6001-00000000\",\"dialstatus\":\"ANSWER\"}"
    );
    let first = &world.cels[0].uniqueid;
    assert!(world.cels.iter().all(|event| &event.linkedid == first), "one call has one LINKEDID");
    assert!(world.cels.windows(2).all(|pair| pair[0].time <= pair[1].time));
}

#[test]
fn nothing_is_kept_that_nobody_wants() {
    for (name, wanted, count) in [
        ("off", None, 0),
        ("only answers", Some(CelSettings::new([CelKind::Answer], [])), 2),
        ("applications that are not named", Some(CelSettings::new([CelKind::AppStart], ["park".into()])), 0),
        ("one kind of an application", Some(CelSettings::new([CelKind::AppEnd], ["dial".into()])), 1),
    ] {
        let mut world = site("exten => 1,1,Dial(SIM/6002)", &[]);
        world.settings(|settings| settings.cel = wanted.map(Rc::new));
        call(&mut world, "1", &[(8000, BYE)]);
        world.run();
        assert_eq!(world.cels.len(), count, "{name}: {:?}", told(&world.cels));
    }
}

#[test]
fn the_dialplan_writes_events_of_its_own() {
    let plan = "exten => 1,1,CELGenUserEvent(Entered IVR,menu \"main\", level 2)\n \
                same => n,CELGenUserEvent(Plain)\n same => n,CELGenUserEvent()";
    let mut world = site(plan, &[]);
    call(&mut world, "1", &[]);
    world.run();
    let own: Vec<&Cel> = world.cels.iter().filter(|event| event.kind == CelKind::UserDefined).collect();
    let shown: Vec<_> = own.iter().map(|event| (event.user_defined.as_str(), event.extra_json())).collect();
    assert_eq!(
        shown,
        [("Entered IVR", "{\"extra\":\"menu \\\"main\\\", level 2\"}".to_owned()), ("Plain", String::new())]
    );
    for (named, expected) in [(true, "Entered IVR"), (false, "USER_DEFINED")] {
        assert_eq!(cel_fields(own[0], "now", named)[0], ("EventName", expected.to_owned()));
    }
}

#[test]
fn who_sends_the_other_elsewhere_is_told_with_where() {
    let mut world = site("exten => 1,1,Dial(SIM/6002,,T)\nexten => 200,1,Wait(1)", &[]);
    let keys = [(8000, '#'), (8200, '2'), (8400, '0'), (8600, '0')].map(|(at, key)| (at, Act::Press(key)));
    call(&mut world, "1", &[keys.to_vec(), vec![(30_000, BYE)]].concat());
    world.run();
    let event = of(&world, CelKind::BlindTransfer);
    assert!(event.channel.starts_with("SIM/6001"), "{}", event.channel);
    let extra = event.extra_json();
    let start = "{\"extension\":\"200\",\"context\":\"default\",\"bridge_id\":\"";
    let end = "\"transferee_channel_name\":\"SIM/6002-00000001\",\"transferee_channel_uniqueid\":\"";
    assert!(extra.starts_with(start) && extra.contains(end), "{extra}");
    let digits: Vec<String> = world
        .cels
        .iter()
        .filter(|event| event.kind == CelKind::Dtmf)
        .map(|event| event.extra_json())
        .collect();
    assert_eq!(digits.len(), 4);
    assert_eq!(digits[1], "{\"digit\":\"2\",\"duration_ms\":100}");
}

#[test]
fn a_leg_that_is_sent_on_and_sounds_are_told_of() {
    let mut world =
        site("exten => 1,1,Answer(0)\n same => n,Playback(hello)\n same => n,Dial(SIM/6003)", &[]);
    world.phone("6003", phone(&[(500, Act::Forward("SIM/6002".to_owned()))]));
    call(&mut world, "1", &[(12_000, BYE)]);
    world.run();
    assert_eq!(of(&world, CelKind::Forward).extra_json(), "{\"forward\":\"SIM/6002\"}");
    assert!(of(&world, CelKind::Forward).channel.starts_with("SIM/6001"));
    let begun = of(&world, CelKind::StreamBegin).extra_json();
    assert!(begun.starts_with("{\"sound\":\"hello\",\"format\":\""), "{begun}");
    assert_eq!(of(&world, CelKind::StreamEnd).extra_json(), "");
}

#[test]
fn music_is_a_stream_with_its_class() {
    let mut world = site("exten => 1,1,Answer(0)\n same => n,MusicOnHold(default,2)", &[]);
    call(&mut world, "1", &[(12_000, BYE)]);
    world.run();
    assert_eq!(of(&world, CelKind::StreamBegin).extra_json(), "{\"class\":\"default\"}");
    assert_eq!(of(&world, CelKind::StreamEnd).extra_json(), "");
}

#[test]
fn who_ended_a_call_is_named_where_it_ends() {
    for (name, dialplan, acts, source) in [
        ("the caller", "exten => 1,1,Dial(SIM/6002)", vec![(8000, BYE)], "SIM/6001-00000000"),
        ("the dialplan, by Hangup()", "exten => 1,1,Hangup()", vec![], "dialplan/builtin"),
    ] {
        let mut world = site(dialplan, &[]);
        call(&mut world, "1", &acts);
        world.run();
        let end = world
            .cels
            .iter()
            .find(|event| event.kind == CelKind::Hangup && &*event.channel == "SIM/6001-00000000");
        let extra = end.expect("the end of the caller").extra_json();
        assert!(extra.contains(&format!("\"hangupsource\":\"{source}\"")), "{name}: {extra}");
    }
}

#[test]
fn two_calls_that_are_bridged_are_one_call_from_there_on() {
    let mut world = site("exten => 1,1,Answer(0)\n same => n,Wait(30)", &[]);
    let first = call(&mut world, "1", &[(20_000, BYE)]);
    let second = call(&mut world, "1", &[]);
    world.run_until(at(5000));
    assert_eq!(apps::transfer::bridge(&world.shard, second, first), Ok(()));
    world.run();
    let ends: Vec<&Cel> = world.cels.iter().filter(|event| event.kind == CelKind::LinkedidEnd).collect();
    let [merged, last] = ends.as_slice() else { panic!("{:?}", told(&world.cels)) };
    assert_ne!(merged.linkedid, last.linkedid, "the younger call's ends when it becomes part of the older");
    assert_eq!(last.linkedid, world.cels[0].linkedid);
    let after = world.cels.iter().skip_while(|event| event.kind != CelKind::LinkedidEnd).skip(1);
    assert!(after.clone().count() > 3 && after.into_iter().all(|event| event.linkedid == last.linkedid));
}

#[test]
fn a_call_through_a_queue_has_every_part_of_it() {
    let member = NewMember { interface: "SIM/6002".into(), ..NewMember::default() };
    let sales = QueueConfig {
        name: "sales".into(),
        settings: Settings::default(),
        members: vec![member],
        is_row: false,
    };
    let mut world = site("exten => 1,1,Answer(0)\n same => n,Queue(sales)", &["queue"]);
    let config = Config { queues: vec![sales], ..Config::default() };
    world.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(&config, now, out));
    call(&mut world, "1", &[(20_000, BYE)]);
    world.run();
    let told = told(&world.cels);
    let wanted = [
        "CHAN_START 6001",
        "ANSWER 6001",
        "APP_START 6001 Queue",
        "CHAN_START 6002",
        "ANSWER 6002",
        "BRIDGE_ENTER 6001",
        "BRIDGE_EXIT 6002",
        "HANGUP 6002",
        "APP_END 6001 Queue",
        "HANGUP 6001",
        "LINKEDID_END 6001",
    ];
    let mut rest = told.iter();
    for line in wanted {
        assert!(rest.any(|told| told == line), "{line} is not there, or not in its place: {told:#?}");
    }
}

#[test]
fn a_pattern_reads_the_event() {
    let mut world = site("[globals]\nSITE=north\n[default]\nexten => 1,1,Dial(SIM/6002,20)", &["dial"]);
    call(&mut world, "1", &[(8000, BYE)]);
    world.run();
    let (began, entered) = (world.cels[1].clone(), world.cels[6].clone());
    let core = &mut world.shard.core.borrow_mut();
    for (event, text, expected) in [
        (&began, "${eventtype} ${eventenum} ${eventtime}", "APP_START 5 then"),
        (&began, "${CSV_QUOTE(${CALLERID(name)})},${CALLERID(num)}", "\"Alice\",6001"),
        (&began, "${CHANNEL(channame)} ${CHANNEL(exten)}@${CHANNEL(context)}", "SIM/6001-00000000 1@default"),
        (&began, "${CHANNEL(appname)}(${CHANNEL(appdata)})", "Dial(SIM/6002,20)"),
        (&began, "${CHANNEL(amaflags)}${CHANNEL(accountcode)}${userdeftype}", "3"),
        (&began, "${EXTEN} ${CONTEXT} ${CHANNEL} ${TOUPPER(x)}", "1 default SIM/6001-00000000 X"),
        (&entered, "${BRIDGEPEER}", "SIM/6002-00000001"),
        (
            &entered,
            "${CSV_QUOTE(${eventextra})}",
            "\"{\"\"bridge_id\"\":\"\"00000000-0000-4000-8000-000000000000\"\",\"\"bridge_technology\"\":\
             \"\"simple_bridge\"\"}\"",
        ),
    ] {
        assert_eq!(Pattern::new(text).fill_event(core, (event, "then"), "cel_custom"), expected, "{text}");
    }
}

#[test]
fn who_is_parked_fetched_and_picked_up_is_told() {
    let plan = "exten => 1,1,Park(default,s)\nexten => 2,1,ParkedCall(default)\nexten => 3,1,Dial(SIM/6004)\n\
                exten => 4,1,Pickup(3)\nexten => 5,1,Park(default,s)";
    let mut world = site(plan, &[]);
    world.phone("6004", phone(&[(500, Act::Ring)]));
    let lot = call::parking::LotSettings {
        time: Some(std::time::Duration::from_secs(10)),
        ..call::parking::LotSettings::default()
    };
    world.shard.core.borrow_mut().parking.configure([lot], false);
    call(&mut world, "1", &[(20_000, BYE)]);
    world.run_until(at(3000));
    call(&mut world, "2", &[(6000, BYE)]);
    world.run_until(at(12_000));
    call(&mut world, "5", &[(4000, BYE)]);
    world.run();
    let of = |kind: CelKind| -> Vec<String> {
        world.cels.iter().filter(|event| event.kind == kind).map(Cel::extra_json).collect()
    };
    assert_eq!(of(CelKind::ParkStart).len(), 2);
    assert!(of(CelKind::ParkStart)[0].ends_with("\"parking_lot\":\"default\"}"));
    assert_eq!(
        of(CelKind::ParkEnd),
        [
            "{\"reason\":\"ParkedCallUnparked\",\"retriever\":\"SIM/6001-00000001\"}",
            "{\"reason\":\"ParkedCallGiveUp\"}"
        ]
    );
    let before = world.cels.len();
    let now = world.now().as_millis();
    call(&mut world, "3", &[(20_000, BYE)]);
    world.run_until(at(now + 2000));
    call(&mut world, "4", &[(8000, BYE)]);
    world.run();
    let picked = world.cels[before..].iter().find(|event| event.kind == CelKind::Pickup);
    let picked = picked.expect("the pickup");
    assert!(picked.channel.starts_with("SIM/6004-"), "{}", picked.channel);
    assert!(picked.extra_json().starts_with("{\"pickup_channel\":\"SIM/6001-"), "{}", picked.extra_json());
}
