//! Attended transfers by keys: who talks to whom, who is called back, and three who talk at once.

mod common;

use std::rc::Rc;
use std::time::Duration;

use call::features::Features;
use common::{BYE, at, at_rest, call, in_order, lines, phone, world};
use sim::{Act, World};

fn presses(from: u64, keys: &str) -> Vec<(u64, Act)> {
    (from..).step_by(200).zip(keys.chars().map(Act::Press)).collect()
}

/// 6001 calls 6002, who answers after three seconds, and asks at 300 from the eighth second on; the keys are done at 8.8 s.
fn asking(
    change: impl FnOnce(&mut Features),
    caller: &[(u64, Act)],
    third: &[(u64, Act)],
    back: &[(u64, Act)],
) -> World {
    let mut world = world("[default]\nexten => 1,1,Dial(SIM/6002,,T)\nexten => 300,1,NoOp()\n");
    world.watch();
    let mut features = Features::default();
    features.map.attended = "*2".to_owned();
    change(&mut features);
    world.settings(|settings| settings.features = Rc::new(features));
    world.shard.core.borrow_mut().reach = apps::reach;
    world.phones_at_extensions();
    world.phone("6002", phone(&[(3000, Act::Answer), (200_000, BYE)]));
    world.phone("300@default", phone(third));
    world.phone("6001", phone(back));
    call(&mut world, "1", &[presses(8000, "*2300"), caller.to_vec()].concat());
    world
}

fn rest(mut world: World, name: &str) -> World {
    world.run();
    at_rest(&world, name);
    world
}

#[test]
fn who_asks_connects_the_two_others_by_hanging_up_or_by_a_key_and_the_first_two_never_talk_in_between() {
    for (name, end) in [("hangs up", vec![(15_000, BYE)]), ("key", presses(15_000, "*2"))] {
        let world = rest(asking(|_| {}, &end, &[(2000, Act::Answer), (60_000, BYE)], &[]), name);
        let talks = lines(&world, " talk");
        let talks: Vec<&str> =
            talks.iter().filter(|line| !line.contains("no more")).map(String::as_str).collect();
        assert_eq!(talks[..2], ["3000 #1 and #2 talk", "10800 #1 and #3 talk"], "{name}: {talks:?}");
        assert!(talks[2].ends_with("#2 and #3 talk") && talks.len() == 3, "{name}: {talks:?}");
    }
}

#[test]
fn who_does_not_like_the_answer_talks_to_the_first_again() {
    for (name, third, keys) in [
        ("by a key", vec![(2000, Act::Answer), (60_000, BYE)], presses(15_000, "*1")),
        ("refused", vec![(2000, BYE)], vec![]),
        ("no answer", vec![], vec![]),
    ] {
        let world = rest(asking(|_| {}, &[keys, vec![(100_000, BYE)]].concat(), &third, &[]), name);
        let talks = lines(&world, " talk");
        let last = talks.iter().rfind(|line| !line.contains("no more")).unwrap();
        assert!(last.ends_with("#1 and #2 talk"), "{name}: {talks:?}");
        assert!(!lines(&world, "#1 hears beeperr").is_empty(), "{name}");
    }
}

#[test]
fn keys_change_between_the_two_others() {
    let keys = [presses(15_000, "*4"), presses(20_000, "*4"), presses(25_000, "*2")].concat();
    let world = rest(asking(|_| {}, &keys, &[(2000, Act::Answer), (60_000, BYE)], &[]), "swap");
    in_order(
        &world,
        &[
            "10800 #1 and #3 talk",
            "15200 #3 hears music default",
            "15200 #1 and #2 talk",
            "20200 #1 and #3 talk",
        ],
    );
}

#[test]
fn who_hangs_up_while_it_rings_is_called_back_when_nobody_answers() {
    let gone = [(10_000, BYE)];
    // Who is called when, in milliseconds, and who talks at last.
    for (name, change, third, back, called, talks) in [
        (
            "the third party answers",
            (|_| {}) as fn(&mut Features),
            vec![(9000, Act::Answer), (60_000, BYE)],
            vec![],
            vec![(8800, "300@default")],
            Some("17800 #2 and #3 talk"),
        ),
        (
            "who transferred answers",
            |_| {},
            vec![],
            vec![(4000, Act::Answer), (30_000, BYE)],
            vec![(8800, "300@default"), (25_000, "6001")],
            Some("29000 #4 and #2 talk"),
        ),
        (
            "nobody does",
            |_| {},
            vec![],
            vec![],
            vec![(8800, "300@default"), (25_000, "6001"), (50_000, "300@default"), (65_000, "6001")],
            None,
        ),
        (
            "nobody is called back",
            |of| of.drop_call = true,
            vec![],
            vec![],
            vec![(8800, "300@default")],
            None,
        ),
        (
            "once",
            |of| of.callback_retries = 1,
            vec![],
            vec![],
            vec![(8800, "300@default"), (25_000, "6001")],
            None,
        ),
        (
            "the third party answers at last",
            |of| of.loop_delay = Duration::from_secs(1),
            vec![(14_500, Act::Hangup(base::Cause::USER_BUSY))],
            vec![(500, Act::Hangup(base::Cause::USER_BUSY))],
            vec![(8800, "300@default"), (23_300, "6001"), (24_800, "300@default"), (39_300, "6001")],
            None,
        ),
    ] {
        let world = rest(asking(change, &gone, &third, &back), name);
        let calls: Vec<String> = lines(&world, "is called").into_iter().skip(1).collect();
        let expected: Vec<String> = called.iter().map(|(at, who)| format!("{at} SIM/{who}-")).collect();
        assert_eq!(calls.len(), expected.len(), "{name}: {calls:?}");
        for (call, expected) in calls.iter().zip(&expected) {
            assert!(call.starts_with(expected.as_str()), "{name}: {calls:?}");
        }
        if let Some(talks) = talks {
            in_order(&world, &[talks]);
        }
    }
}

#[test]
fn three_talk_at_once_until_one_is_left() {
    let keys = [presses(15_000, "*3"), vec![(30_000, BYE)]].concat();
    let mut world = asking(|_| {}, &keys, &[(2000, Act::Answer), (60_000, BYE)], &[]);
    let members = |world: &World| {
        let core = world.shard.core.borrow();
        core.bridges().map(|(_, members)| members.len()).sum::<usize>()
    };
    world.run_until(at(20_000));
    assert_eq!(members(&world), 3);
    world.run_until(at(31_000));
    assert_eq!(members(&world), 2);
    world.run_until(at(69_500));
    assert_eq!((members(&world), world.shard.core.borrow().channel_count()), (0, 0));
    rest(world, "three");
}
