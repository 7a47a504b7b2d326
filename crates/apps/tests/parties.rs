//! Who talks to whom, as channels and their phones are told: Dial, forwards, bridges, interception routines.

mod common;

use call::{Notice, PartyId};
use common::{BYE, at, at_rest, dialled, location, noted, phone, world};
use sim::{Act, Phone};

/// What phones were told of whom they talk to, without the time.
fn told(world: &sim::World) -> Vec<String> {
    let wanted = |line: &&String| line.contains("is shown") || line.contains("is told that");
    let text = |line: &String| line.split_once(' ').map_or(String::new(), |(_, text)| text.to_owned());
    world.transcript().iter().filter(wanted).map(text).collect()
}

fn tells(at: u64, party: &str) -> (u64, Act) {
    (at, Act::Tell(PartyId::parse(party)))
}

#[test]
fn a_dial_shows_the_caller_who_rings_and_who_answers() {
    let rings =
        |acts: &[(u64, Act)]| phone(&[&[(100, Act::Ring), (3000, Act::Answer), (8000, BYE)], acts].concat());
    type Row<'a> = (&'a str, &'a str, Vec<(&'a str, Phone)>, Vec<&'a str>);
    let rows: Vec<Row> = vec![
        (
            "one that rings",
            "Dial(SIM/6002,20)",
            vec![("6002", rings(&[]))],
            vec!["SIM/6001-00000000 is shown 6002"],
        ),
        (
            "one that says who it is while it rings, and again while they talk",
            "Dial(SIM/6002,20)",
            vec![("6002", rings(&[tells(200, "Bob <200>"), tells(4000, "Carol <300>")]))],
            vec![
                "SIM/6001-00000000 is shown 6002",
                "SIM/6001-00000000 is shown \"Bob\" <200>",
                "SIM/6001-00000000 is shown \"Carol\" <300>",
            ],
        ),
        (
            "of several only the one that answers",
            "Dial(SIM/6002&SIM/6003,20)",
            vec![("6002", rings(&[tells(200, "Bob <200>")])), ("6003", phone(&[(100, Act::Ring)]))],
            vec!["SIM/6001-00000000 is shown \"Bob\" <200>"],
        ),
        (
            "option I keeps it to itself",
            "Dial(SIM/6002,20,I)",
            vec![("6002", rings(&[tells(200, "Bob <200>")]))],
            vec![],
        ),
        (
            "a forward",
            "Dial(SIM/6002,20)",
            vec![
                ("6002", phone(&[(500, Act::Forward("SIM/6003".to_owned()))])),
                ("6003", phone(&[(1000, Act::Answer), (4000, BYE)])),
            ],
            vec![
                "SIM/6001-00000000 is shown 6002",
                "SIM/6001-00000000 is told that 6002 sends it on to 6003 (unknown, 1)",
                "SIM/6001-00000000 is shown 6003",
            ],
        ),
    ];
    for (name, dial, phones, expected) in rows {
        let world = dialled(&format!("exten => 1,1,{dial}"), &phones, &[]);
        assert_eq!(told(&world), expected, "{name}");
    }
}

#[test]
fn interception_routines_run_on_who_is_told_and_change_what_is_told() {
    let dialplan = "exten => 1,1,Set(CONNECTED_LINE_SEND_SUB=sub,shown,1)
 same => n,Set(CONNECTED_LINE_SEND_SUB_ARGS=x,y)
 same => n,Set(REDIRECTING_SEND_SUB=sub,sent,1)
 same => n,Dial(SIM/6002,20)
[sub]
exten => shown,1,NoOp(${CHANNEL} ${CONNECTEDLINE(all)} ${ARG1}${ARG2})
 same => n,Set(CONNECTEDLINE(name,i)=Front desk)
 same => n,Return()
exten => sent,1,NoOp(${REDIRECTING(from-num)} to ${REDIRECTING(to-num)})
 same => n,Set(REDIRECTING(from-num,i)=999)
 same => n,Return()";
    let phones = [
        ("6002", phone(&[(500, Act::Forward("SIM/6003".to_owned()))])),
        ("6003", phone(&[(1000, Act::Answer), (4000, BYE)])),
    ];
    let world = dialled(dialplan, &phones, &[]);
    assert_eq!(
        noted(&world),
        ["SIM/6001-00000000 \"\" <6002> xy", "6002 to 6003", "SIM/6001-00000000 \"\" <6003> xy",]
    );
    assert_eq!(
        told(&world),
        [
            "SIM/6001-00000000 is shown \"Front desk\" <6002>",
            "SIM/6001-00000000 is told that 999 sends it on to 6003 (unknown, 1)",
            "SIM/6001-00000000 is shown \"Front desk\" <6003>",
        ]
    );
    // The step that shows is the Dial again.
    let dial = world.notices.iter().rev().find_map(|notice| match notice {
        Notice::BridgeEnter { channel, .. } if channel.name.contains("6001") => {
            Some(channel.location.clone())
        }
        _ => None,
    });
    assert_eq!(
        dial.map(|at| (at.context, at.exten, at.priority)),
        Some(("default".to_owned(), "1".to_owned(), 4))
    );
}

#[test]
fn a_routine_that_is_not_there_changes_nothing() {
    let phones = [("6002", common::talks())];
    let world = dialled(
        "exten => 1,1,Set(CONNECTED_LINE_SEND_SUB=none,s,1)\n same => n,Dial(SIM/6002,20)",
        &phones,
        &[],
    );
    assert_eq!(told(&world).last().map(String::as_str), Some("SIM/6001-00000000 is shown 6002"));
    assert!(common::warnings(&world).iter().any(|line| line.contains("cannot run routine")));
}

#[test]
fn channels_that_are_bridged_by_name_are_shown_each_other() {
    let mut world = world("[default]\nexten => 1,1,Answer()\n same => n,Wait(30)\n");
    world.watch();
    let a = world.incoming("6001", "\"Alice\" <6001>", location("default", "1"), &[(9000, BYE)]);
    let b = world.incoming("6002", "\"Bob\" <6002>", location("default", "1"), &[]);
    for id in [a, b] {
        assert!(apps::pbx::start(&world.shard.clone(), id, location("default", "1")));
    }
    world.run_until(at(1000));
    assert_eq!(apps::transfer::bridge(&world.shard.clone(), a, b), Ok(()));
    world.run();
    at_rest(&world, "bridge");
    assert_eq!(
        told(&world),
        ["SIM/6001-00000000 is shown \"Bob\" <6002>", "SIM/6002-00000001 is shown \"Alice\" <6001>",]
    );
    let shown = world.notices.iter().filter(|notice| matches!(notice, Notice::NewConnectedLine(_))).count();
    assert_eq!(shown, 2);
}

#[test]
fn what_a_call_costs_is_told_to_who_makes_it_before_and_after_the_answer_and_at_its_end() {
    use call::charge::{Advice, Fee, Item, Rate};
    let price = Advice::Setup { item: Item::BasicCommunication, rate: Rate::Free };
    let during = Advice::During { fee: Fee::Free, is_total: true, billing: None };
    let end = Advice::End { fee: Fee::Free, billing: None, association: None };
    let carrier = || {
        phone(&[
            (100, Act::Charge(price.clone())),
            (3000, Act::Answer),
            (5000, Act::Charge(during.clone())),
            // The end of the call says what it has cost.
            (8000, Act::Charge(end.clone())),
            (8000, BYE),
        ])
    };
    let mute = || phone(&[(9000, BYE)]);
    for (name, dial, expected) in [
        ("one carrier", "Dial(SIM/6002,20)", &["the price", "the cost so far", "the cost"][..]),
        (
            "one of two: nobody knows whose price it will be",
            "Dial(SIM/6002&SIM/6003,20)",
            &["the cost so far", "the cost"],
        ),
    ] {
        let world = dialled(&format!("exten => 1,1,{dial}"), &[("6002", carrier()), ("6003", mute())], &[]);
        let of_caller = |line: &String| {
            let (_, text) = line.split_once(' ')?;
            text.strip_prefix("SIM/6001-00000000 is told ").map(str::to_owned)
        };
        let told: Vec<String> = world.transcript().iter().filter_map(of_caller).collect();
        assert_eq!(told, expected, "{name}");
    }
}
