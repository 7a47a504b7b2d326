//! `switch => Realtime/…`: extensions that are rows of a table, as a call finds them.

mod common;

use call::Level;
use common::{call, lines, noted, warnings, world};
use sim::{Act, World};

const COLUMNS: &[&str] = &["context", "exten", "priority", "app", "appdata"];
const ROWS: &[&str] = &[
    "default|100|1|NoOp|one ${EXTEN}",
    "default|100|2|NoOp|two ${CONTEXT}",
    "default|200|2|NoOp|row of 200",
    "default|_3XX|1|NoOp|pattern ${EXTEN}",
    "default|_3XX|2|Goto|100,2",
    "default|300|1|NoOp|own",
    "default|400|1|Gosub|routine,1(x)",
    "default|400|2|NoOp|back",
    "default|routine|1|NoOp|in ${ARG1}",
    "default|routine|2|Return|",
    "default|500|1|ExecIf|$[1=1]?Set(a=b)",
    "default|500|2|NoOp|${a}",
    "default|600|1|Answer|",
    "default|600|2|WaitExten|5",
    "default|42|1|NoOp|pressed ${EXTEN}",
    "default|t|1|NoOp|too late",
    "default|700|1|NoSuchApp|",
    "ends|100|1|NoOp|here",
    "ends|h|1|NoOp|and its end",
    "ends|i|1|NoOp|no ${INVALID_EXTEN}",
    "office|100|1|NoOp|in the office",
    "ends|s|1|NoOp|from the start",
    "default|_8.|1|NoOp|patterns are asked",
];

fn called(plan: &str, number: &str, acts: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\n{plan}\n"));
    world.watch();
    world.table("extensions", COLUMNS, ROWS);
    call(&mut world, number, acts);
    world.run();
    world
}

#[test]
fn steps_that_the_dialplan_lacks_are_rows_of_the_table() {
    const PLAIN: &str = "switch => Realtime/@";
    let press: Vec<(u64, Act)> = vec![(1000, Act::Press('4')), (1200, Act::Press('2'))];
    for (name, plan, number, acts, expected) in [
        ("rows one after the other", PLAIN, "100", &[][..], &["one 100", "two default"][..]),
        (
            "an extension of its own goes first",
            "exten => 100,1,NoOp(own)\n same => n,Hangup()\nswitch => Realtime",
            "100",
            &[],
            &["own"],
        ),
        (
            "a priority that it lacks is a row",
            "exten => 200,1,NoOp(own)\nswitch => Realtime/@",
            "200",
            &[],
            &["own", "row of 200"],
        ),
        ("a pattern, and a Goto to another row", PLAIN, "310", &[], &["pattern 310", "two default"]),
        (
            "the row of the number goes before a pattern's, each priority by itself",
            PLAIN,
            "300",
            &[],
            &["own", "two default"],
        ),
        ("option p leaves patterns out", "switch => Realtime/@/p", "310", &[], &[]),
        ("a routine of rows", PLAIN, "400", &[], &["in x", "back"]),
        ("applications that the run loop carries out itself", PLAIN, "500", &[], &["b"]),
        ("another context of the table", "switch => Realtime/office@", "100", &[], &["in the office"]),
        (
            "a switch that is expanded for the call",
            "eswitch => Realtime/${TOLOWER(OFFICE)}@extensions",
            "100",
            &[],
            &["in the office"],
        ),
        (
            "the context is that which the switch stands in",
            "include => ends\n[ends]\nswitch => Realtime/@",
            "100",
            &[],
            &["here", "and its end"],
        ),
        (
            "the second switch has it",
            "switch => Realtime/nowhere@\nswitch => Realtime/office@",
            "100",
            &[],
            &["in the office"],
        ),
        ("digits lead to rows as long as one may be longer", PLAIN, "600", &press, &["pressed 42"]),
        ("nobody presses", PLAIN, "600", &[], &["too late"]),
        (
            "special extensions are rows, and hang-up is one",
            "switch => Realtime/ends@",
            "999",
            &[],
            &["no 999", "and its end"],
        ),
        ("a call to s", "switch => Realtime/ends@", "s", &[], &["from the start", "and its end"]),
        ("a pattern that ends with a dot", PLAIN, "812", &[], &["patterns are asked"]),
    ] {
        let world = called(plan, number, acts);
        assert_eq!(noted(&world), expected, "{name}: {:?}", warnings(&world));
    }
}

#[test]
fn what_nobody_has_ends_with_cause_1_and_what_nobody_can_say_with_42() {
    for (name, plan, number, cause, said) in [
        ("no row", "switch => Realtime/@", "999", 1, "no invalid handler"),
        ("an application that is not there", "switch => Realtime/@", "700", 0, "No application 'NoSuchApp'"),
        (
            "no family",
            "exten => i,1,Hangup(21)\nswitch => Realtime/@other",
            "999",
            42,
            "switch Realtime/default@other: no family 'other'",
        ),
        ("an own i takes what no row has", "exten => i,1,Hangup(21)\nswitch => Realtime/@", "999", 21, ""),
    ] {
        let world = called(plan, number, &[]);
        let logged = warnings(&world);
        assert!(said.is_empty() || logged.iter().any(|line| line.contains(said)), "{name}: {logged:?}");
        let ends = lines(&world, " ends with ");
        assert_eq!(ends.len(), 1, "{name}");
        assert!(cause == 0 || ends[0].ends_with(&format!(" ends with {cause}")), "{name}: {ends:?}");
    }
}

#[test]
fn a_table_is_asked_once_for_each_extension_and_not_for_those_that_the_dialplan_has() {
    let asked = |plan: &str, number: &str| {
        let world = called(plan, number, &[]);
        assert!(world.log(Level::Error).is_empty());
        world.wanted_links().len()
    };
    // The number and the patterns, and the same for `h`.
    assert_eq!(asked("switch => Realtime/@", "100"), 4);
    assert_eq!(asked("switch => Realtime/@/p", "100"), 2);
    assert_eq!(
        asked(
            "exten => 100,1,NoOp()\nexten => 100,2,Hangup()\nexten => h,1,NoOp()\nexten => h,2,NoOp()\n[x]\nswitch => Realtime/@",
            "100"
        ),
        0
    );
}

#[test]
fn a_number_of_a_table_can_be_called_and_one_with_a_separator_cannot() {
    let world = world("[default]\nswitch => Realtime/@\n[other]\nexten => 1,1,NoOp()\n");
    let reach = |context: &str, number: &str| {
        let core = world.shard.core.borrow();
        apps::reach(&core, context, number, "")
    };
    assert_eq!(reach("default", "100"), call::Reach::Whole);
    assert_eq!(reach("default", "s"), call::Reach::Whole);
    assert_eq!(reach("default", "100@x"), call::Reach::Separator('@'));
    assert_eq!(reach("other", "100"), call::Reach::None);
}
