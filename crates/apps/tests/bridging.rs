//! Applications that bring channels together, send them elsewhere or end them.

mod common;

use std::rc::Rc;

use base::ChannelId;
use call::Notice;
use call::features::{AppFeature, Features, PressedBy, RunsOn};
use common::{BYE, at, at_rest, in_order, lines, location, noted, phone, warnings, world};
use sim::{Act, World};

fn begin(world: &mut World, from: &str, exten: &str, acts: &[(u64, Act)]) -> ChannelId {
    let place = location("default", exten);
    let id = world.incoming(from, &format!("<{from}>"), place.clone(), acts);
    let shard = world.shard.clone();
    assert!(apps::pbx::start(&shard, id, place));
    id
}

fn office(plan: &str) -> World {
    let mut world = world(&format!("[default]\n{plan}\n"));
    world.watch();
    world.shard.core.borrow_mut().reach = apps::reach;
    world
}

#[test]
fn bridge_takes_a_channel_by_name_or_device_and_says_how_it_went() {
    let plan = "exten => 1,1,BridgeWait()\n same => n,NoOp(waited)\nexten => 2,1,Bridge(${WHOM},${OPTIONS})\n \
                same => n,NoOp(${BRIDGERESULT})\nexten => 3,1,Wait(100)";
    // Options, whom, the result, whether the other one goes on.
    for (options, whom, result, goes_on) in [
        ("", "SIM/6001", "SUCCESS", true),
        ("", "SIM/6001-00000000", "SUCCESS", true),
        ("x", "SIM/6001", "SUCCESS", false),
        ("S(5)", "SIM/6001", "SUCCESS", true),
        ("", "SIM/6009", "NONEXISTENT", false),
        ("", "SIM/6002", "LOOP", false),
        ("", "SIM/6003", "INCOMPATIBLE", false),
    ] {
        let mut world = office(plan);
        begin(&mut world, "6001", "1", &[(40_000, BYE)]);
        begin(&mut world, "6003", "3", &[(40_000, BYE)]);
        world.run_until(at(2000));
        {
            let core = &mut *world.shard.core.borrow_mut();
            for (name, value) in [("WHOM", whom), ("OPTIONS", options)] {
                core.globals.set(dialplan::Var::named(name), value, dialplan::Inherit::Never);
            }
        }
        let acts = if options == "S(5)" { vec![(30_000, BYE)] } else { vec![(10_000, BYE)] };
        begin(&mut world, "6002", "2", &acts);
        world.run_until(at(20_000));
        let name = format!("{options} {whom}");
        let talked = !lines(&world, "2000 #3 and #1 talk").is_empty();
        assert_eq!(talked, result == "SUCCESS", "{name}: {:?}", warnings(&world));
        assert_eq!(noted(&world).contains(&"waited".to_owned()), goes_on, "{name}: {:?}", noted(&world));
        // Who hangs up hears no result.
        let heard = options == "S(5)" || result != "SUCCESS";
        assert_eq!(noted(&world).contains(&result.to_owned()), heard, "{name}: {:?}", noted(&world));
        world.run();
        at_rest(&world, &name);
    }
}

#[test]
fn who_waits_hears_what_is_asked_for_until_its_time_is_up() {
    for (options, heard) in [
        ("", Some("music default")),
        (",,m(jazz)", Some("music jazz")),
        ("room,participant,e(r)", Some("tone ring")),
        (",,e(s)S(5)", None),
    ] {
        let mut world = office(&format!("exten => 1,1,BridgeWait({options})\n same => n,NoOp(on)"));
        let id = begin(&mut world, "6001", "1", &[(20_000, BYE)]);
        world.run_until(at(3000));
        assert_eq!(world.endless_sound(id).as_deref(), heard, "{options}");
        world.run();
        assert_eq!(noted(&world).len(), usize::from(options.contains('S')), "{options}");
        at_rest(&world, options);
    }
    let mut world = office("exten => 1,1,BridgeWait(room,announcer)\n same => n,NoOp(on)");
    begin(&mut world, "6001", "1", &[(20_000, BYE)]);
    world.run();
    assert_eq!(noted(&world), ["on"]);
    assert!(warnings(&world).join("\n").contains("no role 'announcer'"));
}

#[test]
fn a_third_joins_two_who_talk_and_two_are_left_when_one_goes() {
    let mut world =
        office("exten => 1,1,Dial(SIM/6002)\nexten => 2,1,BridgeAdd(SIM/6002)\n same => n,NoOp(alone)");
    world.watch();
    world.phone("6002", phone(&[(1000, Act::Answer), (40_000, BYE)]));
    begin(&mut world, "6001", "1", &[(30_000, BYE)]);
    world.run_until(at(5000));
    begin(&mut world, "6003", "2", &[(60_000, BYE)]);
    let members = |world: &World| {
        let core = world.shard.core.borrow();
        core.bridges().map(|(_, members)| members.len()).sum::<usize>()
    };
    for (moment, expected) in [(6000, 3), (31_000, 2), (41_000, 0)] {
        world.run_until(at(moment));
        assert_eq!(members(&world), expected, "{moment}");
    }
    world.run();
    assert_eq!(noted(&world), ["alone"]);
    at_rest(&world, "three");
    // It is the bridge of the two all the time, which nobody leaves when the third comes.
    let seen = world.notices.iter().filter_map(|notice| match notice {
        Notice::BridgeCreate { .. } => Some("made".to_owned()),
        Notice::BridgeEnter { bridge, .. } => Some(format!("+{} {}", bridge.count, bridge.technology)),
        Notice::BridgeLeave { bridge, .. } => Some(format!("-{}", bridge.count)),
        Notice::BridgeDestroy { .. } => Some("gone".to_owned()),
        Notice::ConferenceStart { .. } | Notice::ConferenceMember { .. } => Some("a conference".to_owned()),
        _ => None,
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        ["made", "+1 simple_bridge", "+2 simple_bridge", "+3 softmix", "-2", "-1", "-0", "gone"]
    );
    let mut world = office("exten => 2,1,BridgeAdd(SIM/6002)\n same => n,NoOp(nobody)");
    begin(&mut world, "6003", "2", &[(60_000, BYE)]);
    world.run();
    assert_eq!(noted(&world), ["nobody"]);
    for (name, plan, result) in [
        ("no such channel", "BridgeAdd(SIM/6009)", "NONEXISTENT"),
        ("itself", "BridgeAdd(${CHANNEL})", "LOOP"),
        ("it talks to nobody", "BridgeAdd(SIM/6001)", "FAILURE"),
    ] {
        let plan = format!(
            "exten => 1,1,Answer(0)\n same => n,Wait(100)\nexten => 2,1,{plan}\n same => n,NoOp(${{BRIDGERESULT}})"
        );
        let mut world = office(&plan);
        begin(&mut world, "6001", "1", &[(40_000, BYE)]);
        begin(&mut world, "6003", "2", &[(60_000, BYE)]);
        world.run();
        assert_eq!(noted(&world), [result], "{name}");
    }
}

#[test]
fn other_channels_are_sent_elsewhere_and_hung_up_by_name() {
    let plan = "exten => 1,1,Wait(100)\nexten => 5,1,NoOp(there)\nexten => 2,1,ChannelRedirect(SIM/6001,5,1)\n \
                same => n,NoOp(${CHANNELREDIRECT_STATUS})\nexten => 3,1,ChannelRedirect(SIM/6009,5,1)\n \
                same => n,NoOp(${CHANNELREDIRECT_STATUS})\nexten => 4,1,SoftHangup(SIM/6001)\nexten => 6,1,SoftHangup(SIM/6001,a)";
    for (exten, expected, left) in
        [("2", vec!["SUCCESS", "there"], 1), ("3", vec!["NOCHANNEL"], 2), ("4", vec![], 1), ("6", vec![], 0)]
    {
        let mut world = office(plan);
        for _ in 0..2 {
            begin(&mut world, "6001", "1", &[(40_000, BYE)]);
        }
        world.run_until(at(2000));
        begin(&mut world, "6002", exten, &[]);
        world.run_until(at(3000));
        assert_eq!(noted(&world), expected, "{exten}");
        assert_eq!(world.shard.core.borrow().channel_count(), left, "{exten}");
        world.run();
        at_rest(&world, exten);
    }
}

#[test]
fn features_of_the_application_map_transfer() {
    let feature = |code: &str, app: &str, args: &str| AppFeature {
        code: code.to_owned(),
        runs_on: RunsOn::Own,
        pressed_by: PressedBy::Both,
        app: app.to_owned(),
        args: args.to_owned(),
        music: String::new(),
    };
    for (keys, expected) in [("#1", Some("there SIM/6001-00000000")), ("#2", None), ("#3", None)] {
        let mut world = office(
            "exten => 1,1,Set(__DYNAMIC_FEATURES=blind#bad#ask)\n same => n,Dial(SIM/6002)\n\
             exten => 200,1,NoOp(there ${BLINDTRANSFER})\nexten => 300,1,NoOp()",
        );
        let mut features = Features::default();
        for (name, of) in [
            ("blind", feature("#1", "BlindTransfer", "200,default")),
            ("bad", feature("#2", "BlindTransfer", "999,default")),
            ("ask", feature("#3", "AttendedTransfer", "300,default")),
        ] {
            features.apps.insert(name.to_owned(), of);
        }
        world.settings(|settings| settings.features = Rc::new(features));
        world.phone("6002", phone(&[(1000, Act::Answer), (60_000, BYE)]));
        world.phones_at_extensions();
        world.phone("300@default", phone(&[(1000, Act::Answer), (50_000, BYE)]));
        let pressed = (5000..).step_by(200).zip(keys.chars().map(Act::Press));
        begin(&mut world, "6001", "1", &pressed.chain([(20_000, BYE)]).collect::<Vec<_>>());
        world.run();
        assert_eq!(noted(&world).first().map(String::as_str), expected, "{keys}: {:?}", warnings(&world));
        match keys {
            "#2" => in_order(&world, &["5200 #1 and #2 talk"]),
            "#3" => in_order(&world, &["6200 #1 and #3 talk", "21000 #2 and #3 talk"]),
            _ => {}
        }
        at_rest(&world, keys);
    }
}
