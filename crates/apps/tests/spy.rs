//! `ChanSpy` and `ExtenSpy` in an invented world: whom a spy listens to, who hears it, what its keys do.

mod common;

use base::ChannelId;
use call::Notice;
use common::*;
use sim::{Act, World};

/// Alice (stream 1) calls bob (stream 2), who answers after one second; the spy is stream 3.
fn spied(options: &str, acts: &[(u64, Act)]) -> World {
    listened(&format!("ChanSpy(SIM/6001,{options})"), "", acts)
}

/// A world in which alice talks to bob from the second second to the twentieth, and somebody calls this step at the third.
fn listened(step: &str, more: &str, acts: &[(u64, Act)]) -> World {
    let plan = format!(
        "[default]\nexten => 1,1,{more}Dial(SIM/bob)\nexten => 2,1,{step}\n same => n,NoOp(goes on ${{SPY_CHANNEL}})\n\
         exten => 7,1,NoOp(seven)\n[out]\nexten => 8,1,NoOp(eight)\n"
    );
    let mut world = world(&plan.replace(")Dial", ")\n same => n,Dial"));
    world.watch();
    world.phone("bob", phone(&[(1000, Act::Answer)]));
    call(&mut world, "1", &[(20_000, BYE)]);
    world.run_until(at(3000));
    spy(&mut world, acts);
    world.run();
    at_rest(&world, step);
    world
}

fn spy(world: &mut World, acts: &[(u64, Act)]) -> ChannelId {
    let place = location("default", "2");
    let id = world.incoming("chief", "\"Chief\" <9>", place.clone(), acts);
    assert!(apps::pbx::start(&world.shard.clone(), id, place));
    id
}

/// Who was told to have begun and ceased to spy on whom.
fn told(world: &World) -> Vec<String> {
    let line = |notice: &Notice| match notice {
        Notice::SpyStart { spyer, spyee } => Some(format!("{} on {}", spyer.name, spyee.name)),
        Notice::SpyStop { spyer, spyee } => {
            let on = spyee.as_ref().map_or("nobody", |spyee| &spyee.name);
            Some(format!("{} no more on {on}", spyer.name))
        }
        _ => None,
    };
    world.notices.iter().filter_map(line).collect()
}

fn said(world: &World, words: &str) -> usize {
    world.transcript().iter().filter(|line| line.contains(words)).count()
}

const ALICE: &str = "SIM/6001-00000000";
const BOB: &str = "SIM/bob-00000001";

#[test]
fn each_option_says_who_is_heard_and_who_hears() {
    for (name, options, expected) in [
        (
            "both sides",
            "q",
            vec![("#1 is monitored by 4: mixed", 1), ("#3 hears live sound", 1), ("murmured", 0)],
        ),
        ("o hears one", "qo", vec![("#1 is monitored by 4: mixed without what it hears", 1)]),
        (
            "w whispers to the channel",
            "qw",
            vec![
                ("#1 is monitored by 4", 2),
                ("#3 is monitored by 4: heard", 1),
                ("#1 is murmured to by 1", 2),
                ("#2 is murmured", 0),
            ],
        ),
        (
            "B barges in on both",
            "qB",
            vec![
                ("#1 is murmured to by 1", 2),
                ("#2 is murmured to by 2", 2),
                ("#3 is monitored by 4: heard", 1),
                ("#3 is monitored by 8: heard", 1),
            ],
        ),
        ("W hears nothing", "qW", vec![("#1 is monitored", 0), ("live", 0), ("#1 is murmured to by 1", 2)]),
        ("v is louder", "qv(3)", vec![("mixed heard louder or quieter said louder or quieter", 1)]),
        (
            "a beep and the number",
            "",
            vec![("#3 hears beep", 2), ("#3 hears spy-", 0), ("#3 hears digits/6", 1)],
        ),
        ("s changes nothing there", "s", vec![("#3 hears digits/6", 1)]),
        ("r records it", "qr(chief)", vec![("records /monitor/chief.1795262403.raw", 1), ("by 4: said", 1)]),
        ("D and l change nothing", "qDl", vec![("#1 is monitored by 4: mixed", 1)]),
    ] {
        let world = spied(options, &[(8000, BYE)]);
        for (words, count) in expected {
            assert_eq!(said(&world, words), count, "{name}: {words}: {:#?}", world.transcript());
        }
        assert_eq!(
            told(&world),
            [format!("SIM/chief-00000002 on {ALICE}"), format!("SIM/chief-00000002 no more on {ALICE}")],
            "{name}"
        );
        assert_eq!(warnings(&world), [""; 0], "{name}");
    }
}

#[test]
fn keys_change_volume_mode_and_channel() {
    let press = |keys: &str| -> Vec<(u64, Act)> {
        let keys = keys.chars().enumerate();
        let mut acts: Vec<_> = keys.map(|(n, key)| (2000 + 500 * n as u64, Act::Press(key))).collect();
        acts.push((9000, BYE));
        acts
    };
    for (name, options, keys, expected) in [
        ("# is louder", "q", "##", vec![("monitor 4 hears true says true at 512/256", 1)]),
        (
            "and after the loudest quieter",
            "qv(4)",
            "#",
            vec![("monitor 4 hears true says true at 64/256", 1)],
        ),
        (
            "* is the next",
            "q",
            "*",
            vec![("#1 is monitored by 4: mixed", 1), ("#1 is monitored by 8: mixed", 1)],
        ),
        ("which c changes", "qc(9)", "*9", vec![("#1 is monitored by 8: mixed", 1)]),
        ("d 5 whispers", "qd", "5", vec![("#1 is murmured to by 1", 2), ("#2 is murmured", 0)]),
        (
            "d 6 barges, 4 listens",
            "qd",
            "64",
            vec![("#1 is murmured to by 1 no more", 1), ("#2 is murmured to by 2 no more", 1)],
        ),
        ("without d they choose a channel", "q", "56", vec![("murmured", 0)]),
    ] {
        let world = spied(options, &press(keys));
        for (words, count) in expected {
            assert_eq!(said(&world, words), count, "{name}: {words}: {:#?}", world.transcript());
        }
    }
    // A number and # go to the channel of that name.
    let world = listened("ChanSpy(SIM,q)", "", &press("6001#"));
    assert_eq!(told(&world).len(), 4, "{:?}", told(&world));
    for (name, options, keys, expected) in [
        ("x ends it", "qx(3)", "3", "goes on SIM/6001-00000000"),
        ("X goes to an extension", "qX", "7", "seven"),
    ] {
        let world = spied(options, &press(keys));
        assert_eq!(noted(&world), [expected], "{name}");
    }
    let world = listened("ChanSpy(SIM/6001,qX)", "", &[(10, Act::Press('8')), (9000, BYE)]);
    assert_eq!(noted(&world), [""; 0], "8 is no extension of the present context");
    let set = "Set(SPY_EXIT_CONTEXT=out)\n same => n,ChanSpy(SIM/6001,qX)";
    assert_eq!(noted(&listened(set, "", &press("8"))), ["eight"]);
}

#[test]
fn options_choose_channels() {
    for (name, step, more, expected) in [
        ("the first of all", "ChanSpy(,q)", "", Some(ALICE)),
        ("a prefix", "ChanSpy(sim/BOB,q)", "", Some(BOB)),
        ("none", "ChanSpy(PJSIP,q)", "", None),
        ("u, the whole name", &format!("ChanSpy({BOB},uq)"), "", Some(BOB)),
        ("u, part of a name", "ChanSpy(SIM/bob,uq)", "", None),
        ("e", "ChanSpy(SIM,qe(carol:SIM/bob))", "", Some(BOB)),
        ("e, only the resource", "ChanSpy(SIM,qe(6001))", "", Some(ALICE)),
        ("e, another", "ChanSpy(SIM,qe(carol))", "", None),
        ("g", "ChanSpy(SIM,qg(sales:help))", "Set(SPYGROUP=a:help)", Some(ALICE)),
        ("g, another", "ChanSpy(SIM,qg(sales))", "Set(SPYGROUP=a:help)", None),
        ("g, none", "ChanSpy(SIM,qg(sales))", "", None),
        ("b", "ChanSpy(SIM,qb)", "", Some(ALICE)),
        ("an extension", "ExtenSpy(1@default,q)", "", Some(ALICE)),
        ("an extension of its own context", "ExtenSpy(1,q)", "", Some(ALICE)),
        ("an extension of another context", "ExtenSpy(1@out,q)", "", None),
    ] {
        let world = listened(step, more, &[(5000, BYE)]);
        let expected = expected.map(|on| format!("SIM/chief-00000002 on {on}"));
        assert_eq!(told(&world).first(), expected.as_ref(), "{name}");
    }
    let world = listened("ExtenSpy(,q)", "", &[]);
    assert!(warnings(&world).iter().any(|line| line.contains("requires an argument")));
}

#[test]
fn what_cannot_be_is_said() {
    for (options, why) in
        [("qv(9)", "the volume is -4 to 4"), ("qc(x)", "wants a digit"), ("qZ", "option Z: there is none")]
    {
        let world = spied(options, &[(5000, BYE)]);
        assert!(warnings(&world).iter().any(|line| line.contains(why)), "{options}: {:?}", warnings(&world));
        assert_eq!(told(&world).len(), 2, "{options}: it listens all the same");
    }
}

#[test]
fn when_the_channel_ends_the_spy_goes_on_or_ends() {
    for (name, options, expected) in [
        ("E ends with the channel", "qE", vec!["goes on SIM/6001-00000000"]),
        ("S ends after the last", "qS", vec!["goes on SIM/6001-00000000"]),
        ("else it waits for others", "q", vec![]),
    ] {
        let world = spied(options, &[(30_000, BYE)]);
        assert_eq!(noted(&world), expected, "{name}");
        assert_eq!(said(&world, "#1 is monitored by 4: mixed"), 1, "{name}");
    }
    // S has heard each of them once.
    let world = listened("ChanSpy(SIM,qS)", "", &[(1000, Act::Press('*')), (2000, Act::Press('*'))]);
    assert_eq!(noted(&world), [format!("goes on {BOB}")]);
}

#[test]
fn who_barges_in_is_heard_by_whoever_comes_into_the_bridge_and_b_waits_for_one() {
    let plan = "[default]\nexten => 1,1,Answer()\n same => n,Wait(3)\n same => n,Dial(SIM/bob)\n\
                exten => 2,1,ChanSpy(SIM/6001,qB)\nexten => 3,1,ChanSpy(SIM/6001,qb)\n";
    let mut world = world(plan);
    world.watch();
    world.phone("bob", phone(&[(1000, Act::Answer), (5000, BYE)]));
    call(&mut world, "1", &[(20_000, BYE)]);
    world.run_until(at(1000));
    spy(&mut world, &[(15_000, BYE)]);
    let id = world.incoming("deputy", "", location("default", "3"), &[(15_000, BYE)]);
    assert!(apps::pbx::start(&world.shard.clone(), id, location("default", "3")));
    world.run_until(at(2000));
    assert_eq!(said(&world, "is murmured to"), 1, "alice alone");
    assert_eq!(told(&world), ["SIM/chief-00000001 on SIM/6001-00000000"]);
    world.run_until(at(6000));
    assert_eq!(said(&world, "#4 is murmured to by 2"), 1, "{:#?}", world.transcript());
    assert!(told(&world).contains(&"SIM/deputy-00000002 on SIM/6001-00000000".to_owned()));
    world.run();
    at_rest(&world, "barge");
    assert_eq!(said(&world, "is murmured to by 1 no more"), 1);
}

#[test]
fn nobody_listens_to_a_spy_or_to_himself() {
    let mut world = world("[default]\nexten => 2,1,ChanSpy(SIM,q)\n");
    world.watch();
    spy(&mut world, &[(5000, BYE)]);
    spy(&mut world, &[(6000, BYE)]);
    world.run();
    // The second hears the first only while that hears nobody.
    let told = told(&world);
    assert!(
        told.iter().all(|line| line.contains("chief-00000001") && line.contains("chief-00000000")),
        "{told:?}"
    );
}
