//! Call parking: who waits where, who hears the number, who fetches whom, and what becomes of those whom nobody fetches.

mod common;

use std::rc::Rc;
use std::time::Duration;

use base::ChannelId;
use call::features::Features;
use call::parking::{LotSettings, Sides};
use call::{DeviceState, Notice};
use common::{BYE, at, at_rest, in_order, lines, location, noted, phone, warnings, world};
use sim::{Act, World};

fn lot() -> LotSettings {
    LotSettings { extension: "700".to_owned(), hints: true, ..LotSettings::default() }
}

/// A world with these lots and their extensions.
fn parking(dialplan: &str, lots: &[LotSettings], dynamic: bool) -> World {
    let mut text = format!("[default]\ninclude => parkedcalls\n{dialplan}\n");
    for line in apps::parking::lines(lots) {
        let of = line.addition();
        let app = if of.priority == "hint" { of.app.to_owned() } else { format!("{}({})", of.app, of.data) };
        text.push_str(&format!("[{}]\nexten => {},{},{app}\n", of.context, of.exten, of.priority));
    }
    let mut world = world(&text);
    world.watch();
    let mut features = Features::default();
    features.map.park = "*7".to_owned();
    world.settings(|settings| settings.features = Rc::new(features));
    {
        let core = &mut *world.shard.core.borrow_mut();
        (core.reach, core.parks) = (apps::reach, apps::parking::parks);
        core.parking.configure(lots.to_vec(), dynamic);
    }
    world
}

fn begin(world: &mut World, from: &str, exten: &str, acts: &[(u64, Act)]) -> ChannelId {
    let at = location("default", exten);
    let id = world.incoming(from, &format!("<{from}>"), at.clone(), acts);
    let shard = world.shard.clone();
    assert!(apps::pbx::start(&shard, id, at));
    id
}

fn presses(from: u64, keys: &str) -> Vec<(u64, Act)> {
    (from..).step_by(200).zip(keys.chars().map(Act::Press)).collect()
}

/// What watchers were told of parked calls: what, who, where, and by whom.
fn told(world: &World) -> Vec<String> {
    let of = |notice: &Notice| match notice {
        Notice::Parking(of) => Some(format!(
            "{:?} {} {}:{} by {}{}",
            of.change,
            of.parkee.name,
            of.lot,
            of.space,
            of.parker_dial,
            of.retriever.as_ref().map(|who| format!(" for {}", who.name)).unwrap_or_default()
        )),
        _ => None,
    };
    world.notices.iter().filter_map(of).collect()
}

/// 6001 calls 6002, who answers after three seconds.
fn talking(world: &mut World, caller: &[(u64, Act)], callee: &[(u64, Act)]) {
    world.phone("6002", phone(&[&[(3000, Act::Answer)], callee].concat()));
    begin(world, "6001", "1", caller);
}

#[test]
fn a_key_parks_the_other_one_and_who_parks_hears_where() {
    let mut world = parking(
        "exten => 1,1,Dial(SIM/6002,,K)\nexten => h,1,NoOp(h ${CHANNEL} ${PARKEDAT})",
        &[lot()],
        false,
    );
    talking(&mut world, &presses(8000, "*7"), &[(60_000, BYE)]);
    world.run_until(at(20_000));
    let core = world.shard.core.borrow();
    let places: Vec<u32> = core.parking.lots().flat_map(|lot| lot.spaces.keys().copied()).collect();
    assert_eq!((places, core.channel_count()), (vec![701], 1));
    drop(core);
    assert_eq!(apps::hints::device_state(&world.shard, "park:701@parkedcalls"), DeviceState::InUse);
    assert_eq!(apps::hints::device_state(&world.shard, "PARK:702@parkedcalls"), DeviceState::NotInUse);
    assert_eq!(apps::hints::device_state(&world.shard, "park:800@parkedcalls"), DeviceState::Invalid);
    in_order(
        &world,
        &[
            "8200 #1 hears digits/7",
            "8200 #2 hears music default",
            "9200 #1 hears digits/0",
            "10200 #1 hears digits/1",
            "11200 SIM/6001-00000000 ends with 16",
        ],
    );
    assert_eq!(noted(&world), ["h SIM/6001-00000000 701"]);
    // The two never hear each other again on the way.
    assert_eq!(
        lines(&world, "talk").iter().filter(|line| !line.starts_with("3000")).count(),
        1,
        "{:?}",
        lines(&world, "talk")
    );

    begin(&mut world, "6003", "701", &[(20_000, BYE)]);
    world.run();
    in_order(&world, &["20000 SIM/6003-00000002 is answered", "20000 #3 and #2 talk"]);
    assert_eq!(
        told(&world),
        [
            "Parked SIM/6002-00000001 default:701 by SIM/6001",
            "Fetched SIM/6002-00000001 default:701 by SIM/6001 for SIM/6003-00000002"
        ]
    );
    at_rest(&world, "key");
}

#[test]
fn a_blind_transfer_to_an_extension_that_parks_tells_the_transferer_where() {
    for (name, plan, keys) in [
        ("the lot's own", "exten => 1,1,Dial(SIM/6002,,T)", "#700"),
        (
            "one of the dialplan",
            "exten => 1,1,Dial(SIM/6002,,T)\nexten => _5X,1,Park(${IF($[${EXTEN}=55]?default:none)})",
            "#55",
        ),
    ] {
        let mut world = parking(plan, &[lot()], false);
        talking(&mut world, &presses(8000, keys), &[(30_000, BYE)]);
        world.run();
        let heard = lines(&world, "#1 hears digits/");
        assert_eq!(heard.len(), 3, "{name}: {heard:?} {:?}", warnings(&world));
        assert_eq!(
            told(&world),
            [
                "Parked SIM/6002-00000001 default:701 by SIM/6001",
                "GaveUp SIM/6002-00000001 default:701 by SIM/6001"
            ],
            "{name}"
        );
        assert!(world.notices.iter().any(|notice| matches!(notice, Notice::BlindTransfer { .. })), "{name}");
        at_rest(&world, name);
    }
}

#[test]
fn who_parks_itself_hears_the_number_unless_it_is_told_not_to() {
    for (options, heard, music) in [
        ("", 3, "music default"),
        (",s", 0, "music default"),
        (",sr", 0, "tone ring"),
        (",R", 3, "music default"),
    ] {
        let mut world = parking(&format!("exten => 1,1,Park(default{options})"), &[lot()], false);
        let id = begin(&mut world, "6001", "1", &[(20_000, BYE)]);
        world.run_until(at(10_000));
        assert_eq!(world.endless_sound(id).as_deref(), Some(music), "{options}");
        world.run();
        assert_eq!(lines(&world, "#1 hears digits/").len(), heard, "{options}");
        assert_eq!(told(&world).len(), 2, "{options}");
        at_rest(&world, options);
    }
}

#[test]
fn a_call_that_nobody_fetches_goes_back_to_who_parked_it() {
    let settings = LotSettings {
        time: Some(Duration::from_secs(10)),
        dial_time: Duration::from_secs(20),
        transfers: Sides::Both,
        hangup: Sides::Callee,
        ..lot()
    };
    let plan = "exten => 1,1,Dial(SIM/6002,,T)\n[park-dial]\nexten => h,1,NoOp(${PARKER} ${PARKER_FLAT} ${PARKINGSLOT} \
                ${PARKING_SPACE} ${PARKEDLOT} ${PARKEDCALL} ${COMEBACKDIALTIME} ${COMEBACKDIALOPTIONS} ${DIALSTATUS})";
    for (name, answers, status) in [("answered", true, "ANSWER"), ("not answered", false, "NOANSWER")] {
        let mut world = parking(plan, std::slice::from_ref(&settings), false);
        let acts = if answers { vec![(2000, Act::Answer), (9000, BYE)] } else { vec![] };
        world.phone("6001", phone(&acts));
        talking(&mut world, &presses(8000, "#700"), &[(90_000, BYE)]);
        world.run();
        assert_eq!(
            noted(&world),
            [format!("SIM/6001 SIM_6001 701 701 default 701@parkedcalls 20 Tth {status}")],
            "{name}"
        );
        in_order(&world, &["18600 SIM/6001-00000002 is called"]);
        let expected =
            ["Parked", "TimedOut"].map(|what| format!("{what} SIM/6002-00000001 default:701 by SIM/6001"));
        assert_eq!(told(&world), expected, "{name}");
        if answers {
            in_order(&world, &["20600 #2 and #3 talk"]);
        }
        at_rest(&world, name);
    }
}

#[test]
fn a_lot_may_send_those_whom_nobody_fetches_elsewhere() {
    let lot = |context: &str| LotSettings {
        time: Some(Duration::from_secs(10)),
        to_origin: false,
        come_back_context: context.to_owned(),
        ..lot()
    };
    let plan = "exten => 1,1,Park(default,s)\nexten => 2,1,Park(default,sc(other,5,2)t(3))\nexten => s,1,NoOp(default)\n\
                [named]\nexten => SIM_6001,1,NoOp(named ${PARKER})\nexten => s,1,NoOp(no)\n[plain]\nexten => s,1,NoOp(plain)\n\
                [other]\nexten => 5,1,NoOp(no)\n same => n,NoOp(other)\n[empty]\nexten => x,1,NoOp(no)";
    for (context, exten, expected, after) in [
        ("named", "1", "named SIM/6001", 10_000),
        ("plain", "1", "plain", 10_000),
        ("empty", "1", "default", 10_000),
        ("named", "2", "other", 3000),
    ] {
        let mut world = parking(plan, &[lot(context)], false);
        begin(&mut world, "6001", exten, &[(60_000, BYE)]);
        world.run();
        assert_eq!(noted(&world), [expected], "{context}");
        in_order(&world, &[&format!("{after} SIM/6001-00000000 ends with 0")]);
    }
}

#[test]
fn who_dials_a_space_where_nobody_is_hears_that() {
    for exten in ["701", "2", "3"] {
        let plan = "exten => 2,1,ParkedCall()\nexten => 3,1,ParkedCall(nolot,x)\n same => n,NoOp(no)";
        let mut world = parking(plan, &[lot()], false);
        begin(&mut world, "6001", exten, &[(60_000, BYE)]);
        world.run();
        in_order(&world, &["0 #1 hears pbx-invalidpark", "1000 SIM/6001-00000000 ends with 0"]);
        assert!(noted(&world).is_empty());
    }
}

#[test]
fn the_courtesy_tone_is_heard_by_those_whom_the_lot_names() {
    for (sides, caller, parked) in
        [(Sides::Nobody, 0, 0), (Sides::Caller, 1, 0), (Sides::Callee, 0, 1), (Sides::Both, 1, 1)]
    {
        let settings = LotSettings { courtesy_tone: "beep".to_owned(), played_to: sides, ..lot() };
        let mut world =
            parking("exten => 1,1,Park(default,s)\nexten => 2,1,ParkedCall(default)", &[settings], false);
        begin(&mut world, "6001", "1", &[(40_000, BYE)]);
        world.run_until(at(5000));
        begin(&mut world, "6002", "2", &[(20_000, BYE)]);
        world.run();
        let count = |stream: &str| lines(&world, &format!("{stream} hears beep")).len();
        assert_eq!((count("#2"), count("#1")), (caller, parked), "{sides:?}");
        assert_eq!(lines(&world, "talk").len(), 2, "{sides:?}: {:?}", lines(&world, "talk"));
        at_rest(&world, "tone");
    }
}

#[test]
fn rights_after_fetching_are_those_of_the_lot() {
    let settings = LotSettings { reparking: Sides::Caller, ..lot() };
    let mut world = parking("exten => 1,1,Park(default,s)", &[settings], false);
    begin(&mut world, "6001", "1", &[(40_000, BYE)]);
    world.run_until(at(5000));
    begin(&mut world, "6002", "701", &[presses(2000, "*7"), vec![(20_000, BYE)]].concat());
    world.run();
    assert_eq!(told(&world)[2], "Parked SIM/6001-00000000 default:701 by SIM/6002");
    at_rest(&world, "rights");
}

#[test]
fn spaces_are_asked_for_and_where_none_is_free_the_dialplan_goes_on() {
    let plan = "exten => 1,1,Park(default,s)\n same => n,NoOp(full)\nexten => 2,1,Set(PARKINGEXTEN=705)\n \
                same => n,Park(default,s)\n same => n,NoOp(taken)\nexten => 3,1,Park(nowhere)\n same => n,NoOp(none)";
    let one = LotSettings { last: 701, ..lot() };
    for (name, settings, calls, expected) in [
        ("full", one, ["1", "1"], "full"),
        ("taken", lot(), ["2", "2"], "taken"),
        ("no lot", lot(), ["1", "3"], "none"),
    ] {
        let mut world = parking(plan, &[settings], false);
        for (from, exten) in ["6001", "6002"].into_iter().zip(calls) {
            begin(&mut world, from, exten, &[(30_000, BYE)]);
        }
        world.run();
        assert_eq!(noted(&world), [expected], "{name}");
        let failed = lines(&world, "hears pbx-parkingfailed").len();
        assert_eq!(failed, usize::from(name == "no lot"), "{name}");
    }
}

#[test]
fn the_lot_is_named_by_the_application_a_variable_or_the_channel() {
    let plan = "exten => 1,1,Set(PARKINGLOT=b)\n same => n,Set(CHANNEL(parkinglot)=c)\n same => n,Park(a,s)\n\
                exten => 2,1,Set(PARKINGLOT=b)\n same => n,Set(CHANNEL(parkinglot)=c)\n same => n,Park(,s)\n\
                exten => 3,1,Set(CHANNEL(parkinglot)=c)\n same => n,NoOp(${CHANNEL(parkinglot)})\n same => n,Park(,s)\n\
                exten => 4,1,Park(,s)";
    let of = |name: &str, first| LotSettings {
        name: name.to_owned(),
        first,
        last: first + 5,
        ..LotSettings::default()
    };
    for (exten, expected) in [("1", "a:10"), ("2", "b:20"), ("3", "c:30"), ("4", "default:701")] {
        let lots = [of("a", 10), of("b", 20), of("c", 30), lot()];
        let mut world = parking(plan, &lots, false);
        begin(&mut world, "6001", exten, &[(30_000, BYE)]);
        world.run();
        assert!(told(&world)[0].contains(&format!(" {expected} ")), "{exten}: {:?}", told(&world));
    }
}

#[test]
fn a_dialplan_makes_lots_when_it_may() {
    let plan = "exten => 1,1,Set(PARKINGDYNAMIC=default)\n same => n,Set(PARKINGDYNCONTEXT=shop)\n \
                same => n,Set(PARKINGDYNEXTEN=900)\n same => n,Set(PARKINGDYNPOS=901-905)\n same => n,Park(shop,s)\n \
                same => n,NoOp(refused)\nexten => 2,1,Goto(shop,901,1)\nexten => 3,1,Set(PARKINGDYNPOS=1-x)\n \
                same => n,Park(bad,s)\n same => n,NoOp(refused)";
    let mut world = parking(plan, &[lot()], true);
    begin(&mut world, "6001", "1", &[(30_000, BYE)]);
    world.run_until(at(2000));
    begin(&mut world, "6002", "2", &[(10_000, BYE)]);
    begin(&mut world, "6003", "3", &[(10_000, BYE)]);
    world.run();
    assert_eq!(
        told(&world),
        [
            "Parked SIM/6001-00000000 shop:901 by SIM/6001",
            "Fetched SIM/6001-00000000 shop:901 by SIM/6001 for SIM/6002-00000001"
        ]
    );
    assert_eq!(noted(&world), ["refused"]);
    assert!(warnings(&world).join("\n").contains("PARKINGDYNPOS=1-x is no range"), "{:?}", warnings(&world));

    let mut world = parking(plan, &[lot()], false);
    begin(&mut world, "6001", "1", &[(30_000, BYE)]);
    world.run();
    assert_eq!(noted(&world), ["refused"]);
}

#[test]
fn somebody_else_hears_where_a_call_is_parked() {
    let plan = "exten => 1,1,ParkAndAnnounce(default,t(20),beep:PARKED:hello,SIM/6009)\nexten => 2,1,ParkAndAnnounce(PARKED,SIM/6009)\n\
                exten => 3,1,ParkAndAnnounce(PARKED,SIM/nobody)";
    for (exten, heard) in [
        ("1", vec!["beep", "digits/7", "digits/0", "digits/1", "hello"]),
        ("2", vec!["digits/7", "digits/0", "digits/1"]),
        ("3", vec![]),
    ] {
        let mut world = parking(plan, &[lot()], false);
        world.phone("6009", phone(&[(2000, Act::Answer)]));
        let id = begin(&mut world, "6001", exten, &[(15_000, BYE)]);
        world.run_until(at(1000));
        assert_eq!(world.endless_sound(id).as_deref(), Some("music default"), "{exten}");
        world.run();
        let said: Vec<String> = lines(&world, "#2 hears")
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(said, heard, "{exten}");
        at_rest(&world, exten);
    }
}

#[test]
fn a_parked_call_that_is_sent_elsewhere_leaves_its_space() {
    let plan = "exten => 1,1,Park(default,s)\nexten => 9,1,NoOp(there)";
    let mut world = parking(plan, &[lot()], false);
    let sent = Act::Redirect(location("default", "9"));
    begin(&mut world, "6001", "1", &[(5000, sent), (30_000, BYE)]);
    world.run();
    assert_eq!(noted(&world), ["there"]);
    assert_eq!(told(&world)[1], "GaveUp SIM/6001-00000000 default:701 by SIM/6001");
}

#[test]
fn who_takes_the_place_of_a_parked_channel_hears_music_and_is_parked() {
    let mut world = parking("exten => 1,1,Park(default,s)\nexten => 2,1,Wait(100)", &[lot()], false);
    let place = begin(&mut world, "6001", "1", &[(30_000, BYE)]);
    let newcomer = begin(&mut world, "6002", "2", &[(20_000, BYE)]);
    world.run_until(at(5000));
    world.shard.core.borrow_mut().request_exchange(call::Exchange {
        place,
        newcomer,
        leaving: Vec::new(),
        is_fresh: false,
        mirrored: false,
        answers: false,
        notice: None,
        cause: base::Cause::NORMAL_CLEARING,
    });
    world.run_until(at(6000));
    assert_eq!(world.endless_sound(place).as_deref(), Some("music default"));
    let name = world.shard.core.borrow().get(place).map(|channel| channel.name.to_string());
    assert_eq!(name.as_deref(), Some("SIM/6002-00000001"));
    assert_eq!(told(&world)[1], "Swapped SIM/6002-00000001 default:701 by SIM/6001");
    world.run();
    at_rest(&world, "swap");
}

#[test]
fn a_thousand_calls_come_and_go_and_every_space_is_free_at_the_end() {
    let settings = LotSettings { last: 720, time: Some(Duration::from_secs(7)), find_next: true, ..lot() };
    let plan = "exten => 1,1,Park(default,s)\n same => n,Hangup()\nexten => 2,1,ParkedCall()";
    let mut world = parking(plan, &[settings], false);
    let mut random = base::Random::new(7);
    for call in 0..1000_u64 {
        world.run_until(at(call * 300));
        let exten = if random.bits().is_multiple_of(3) { "2" } else { "1" };
        let stays = 200 + random.bits() % 9000;
        begin(&mut world, "6001", exten, &[(stays, BYE)]);
    }
    world.phone("6001", phone(&[(500, Act::Answer), (1500, BYE)]));
    world.run();
    at_rest(&world, "storm");
    let core = world.shard.core.borrow();
    assert!(core.parking.lots().all(|lot| lot.spaces.is_empty()));
    drop(core);
    let count = |what: &str| told(&world).iter().filter(|line| line.starts_with(what)).count();
    let counts = ["Fetched", "TimedOut", "GaveUp"].map(count);
    assert!(counts.iter().all(|count| *count > 30), "{counts:?}");
    assert_eq!(count("Parked"), count("Fetched") + count("TimedOut") + count("GaveUp"));
}
