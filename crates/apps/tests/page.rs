//! `Page` in an invented world: who is called, who hears whom, and when it ends.

mod common;

use common::*;
use sim::{Act, World};

const AFTER: &str = "\nexten => h,1,NoOp(over)";

/// Alice pages bob, who answers after a second, and carol, who answers after two, for ten seconds.
fn paged(options: &str) -> World {
    paged_with(options, "", answering(1000), answering(2000))
}

fn answering(after: u64) -> sim::Phone {
    phone(&[(after, Act::Answer)])
}

fn paged_with(options: &str, before: &str, bob: sim::Phone, carol: sim::Phone) -> World {
    let plan = format!(
        "exten => 1,1,{before}Page(SIM/bob&SIM/carol,{options}){AFTER}\n[sub]\nexten => s,1,Set(X=1)\n same => n,Return()"
    );
    dialled(&plan, &[("bob", bob), ("carol", carol), ("dave", answering(500))], &[(10_000, BYE)])
}

fn said(world: &World, words: &str) -> usize {
    world.transcript().iter().filter(|line| line.contains(words)).count()
}

#[test]
fn each_option_changes_who_hears_what() {
    for (name, options, expected) in [
        (
            "one way",
            "",
            vec![
                ("#1 hears beep", 1),
                ("#1 enters room 0", 1),
                ("enters room 0 muted", 2),
                ("#2 enters room", 1),
            ],
        ),
        ("d, all talk", "d", vec![("muted", 0), ("enters room 0", 3)]),
        ("q, no beep", "q", vec![("hears beep", 0), ("enters room 0", 3)]),
        (
            "A, an announcement for all",
            "qA(hello)",
            vec![("#1 hears hello", 1), ("#2 hears hello", 1), ("#3 hears hello", 1), ("enters room 0", 3)],
        ),
        ("n, not for the caller", "qA(hello)n", vec![("#1 hears hello", 0), ("#2 hears hello", 1)]),
        (
            "r, a recording",
            "qr",
            vec![("records /monitor/confbridge-page-", 1), ("#1 is monitored by 4: mixed", 1)],
        ),
        ("b, a routine on each", "qb(sub^s^1)", vec![("enters room 0", 3)]),
        ("B, a routine before", "qB(sub^s^1)", vec![("enters room 0", 3)]),
    ] {
        let world = paged(options);
        for (words, count) in expected {
            assert_eq!(said(&world, words), count, "{name}: {words}: {:#?}", world.transcript());
        }
        assert_eq!(noted(&world), ["over"], "{name}");
        assert_eq!(ends(&world), ["ANSWER", "ANSWER"], "{name}");
        assert_eq!(warnings(&world), [""; 0], "{name}");
    }
    let routines =
        |options: &str| steps(&paged(options)).iter().filter(|step| step.contains("Set(X=1)")).count();
    assert_eq!((routines("b(sub^s^1)"), routines("B(sub^s^1)")), (2, 1));
}

#[test]
fn who_does_not_answer_in_time_refuses_or_is_busy_is_left_out() {
    let never = phone(&[(500, Act::Ring)]);
    let refuses = phone(&[(500, Act::Hangup(base::Cause::USER_BUSY))]);
    for (name, options, bob, expected) in [
        ("in time", "q,5", answering(4000), vec!["ANSWER", "ANSWER"]),
        ("too late", "q,3", answering(4000), vec!["ANSWER", "NOANSWER"]),
        ("without a limit it rings to the end", "q", never, vec!["ANSWER", "CANCEL"]),
        ("refuses", "q", refuses, vec!["BUSY", "ANSWER"]),
        (
            "sent on",
            "q",
            phone(&[(500, Act::Forward("SIM/dave".to_owned()))]),
            vec!["CANCEL", "ANSWER", "ANSWER"],
        ),
        (
            "i, sent on and left out",
            "qi",
            phone(&[(500, Act::Forward("SIM/dave".to_owned()))]),
            vec!["CANCEL", "ANSWER"],
        ),
    ] {
        assert_eq!(ends(&paged_with(options, "", bob, answering(2000))), expected, "{name}");
    }
}

#[test]
fn with_s_phones_that_talk_are_not_disturbed() {
    let plan = "[default]\nexten => 2,1,Dial(SIM/bob)\nexten => 1,1,Page(SIM/bob&SIM/carol,qs)\n";
    let mut world = world(plan);
    world.watch();
    world.phone("bob", answering(500));
    world.phone("carol", answering(500));
    let place = location("default", "2");
    let id = world.incoming("dave", "", place.clone(), &[(9000, BYE)]);
    assert!(apps::pbx::start(&world.shard.clone(), id, place));
    world.run_until(at(2000));
    call(&mut world, "1", &[(5000, BYE)]);
    world.run();
    let called = lines(&world, "is called");
    assert_eq!(called.iter().filter(|line| line.contains("SIM/bob-")).count(), 1, "{called:#?}");
    assert_eq!(said(&world, "enters room 0 muted"), 1);
}

#[test]
fn all_end_with_the_caller_and_the_caller_does_not_end_with_them() {
    let world = paged_with(
        "q",
        "",
        phone(&[(1000, Act::Answer), (3000, BYE)]),
        phone(&[(1000, Act::Answer), (4000, BYE)]),
    );
    assert_eq!(noted(&world), ["over"]);
    let last = world.transcript().last().cloned().unwrap_or_default();
    assert!(last.starts_with("10000 "), "{last}");
}

#[test]
fn what_cannot_be_paged_is_said() {
    for (step, why) in [
        ("Page()", "requires an argument"),
        ("Page(SIM/bob,Z)", "option Z: there is none"),
        ("Page(bob,q)", "takes format"),
    ] {
        let world = dialled(&format!("exten => 1,1,{step}"), &[("bob", answering(500))], &[(5000, BYE)]);
        assert!(warnings(&world).iter().any(|line| line.contains(why)), "{step}: {:?}", warnings(&world));
    }
}
