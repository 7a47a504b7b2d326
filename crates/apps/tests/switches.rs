//! `switch => IAX2/…`: numbers that another site has, as a call finds them.

mod common;

use core::time::Duration;

use call::{Level, SwitchAnswer};
use common::{call, lines, world};
use sim::Act;

const YES: SwitchAnswer = SwitchAnswer { exists: true, more: false };
const MORE: SwitchAnswer = SwitchAnswer { exists: false, more: true };
const NO: SwitchAnswer = SwitchAnswer { exists: false, more: false };

#[test]
fn what_no_extension_takes_is_asked_for_and_dialled_where_it_is() {
    type Row = (
        &'static str,
        &'static str,
        &'static str,
        Vec<(u64, Act)>,
        Vec<(&'static str, &'static str, SwitchAnswer)>,
        Option<&'static str>,
        &'static str,
    );
    let press = |digits: &str| -> Vec<(u64, Act)> {
        digits.chars().zip(0u64..).map(|(digit, index)| (1000 + 200 * index, Act::Press(digit))).collect()
    };
    let rows: Vec<Row> = vec![
        (
            "an extension of its own goes first",
            "exten => 100,1,Hangup(17)\nswitch => IAX2/b/in",
            "100",
            vec![],
            vec![("b/in", "100", YES)],
            None,
            "ends with 17",
        ),
        (
            "the other site has it",
            "switch => IAX2/b/in",
            "100",
            vec![],
            vec![("b/in", "100", YES)],
            Some("100 is at IAX2/b@in"),
            "ends with ",
        ),
        (
            "passwords are not told",
            "switch => IAX2/us:secret@b.example/in",
            "100",
            vec![],
            vec![("us:secret@b.example/in", "100", YES)],
            Some("100 is at IAX2/b.example@in"),
            "ends with ",
        ),
        (
            "nobody has it",
            "switch => IAX2/b/in",
            "100",
            vec![],
            vec![("b/in", "100", NO)],
            None,
            "ends with 1",
        ),
        (
            "an own s is no way out while another site might have it",
            "exten => s,1,Hangup(17)\nswitch => IAX2/b/in",
            "100",
            vec![],
            vec![("b/in", "100", YES)],
            Some("100 is at IAX2/b@in"),
            "ends with ",
        ),
        (
            "i is, when it has not",
            "exten => i,1,Hangup(21)\nswitch => IAX2/b/in",
            "100",
            vec![],
            vec![("b/in", "100", NO)],
            None,
            "ends with 21",
        ),
        (
            "the second site has it",
            "switch => IAX2/b/in\nswitch => IAX2/c/in",
            "100",
            vec![],
            vec![("b/in", "100", NO), ("c/in", "100", YES)],
            Some("100 is at IAX2/c@in"),
            "ends with ",
        ),
        (
            "the switch of a context that is included",
            "include => more\n[more]\nswitch => IAX2/b",
            "100",
            vec![],
            vec![("b", "100", YES)],
            Some("100 is at IAX2/b"),
            "ends with ",
        ),
        (
            "a switch that is expanded for the call",
            "eswitch => IAX2/${CONTEXT}-b/in",
            "100",
            vec![],
            vec![("default-b/in", "100", YES)],
            Some("100 is at IAX2/default-b@in"),
            "ends with ",
        ),
        (
            "digits are asked for one after the other until no longer number can be there",
            "exten => 1,1,Answer()\n same => n,WaitExten(10)\nswitch => IAX2/b/in",
            "1",
            press("42"),
            vec![("b/in", "4", MORE), ("b/in", "42", YES)],
            Some("42 is at IAX2/b@in"),
            "ends with ",
        ),
        (
            "a number that would become part of a dial string",
            "switch => IAX2/b/in",
            "100@x&IAX2/c",
            vec![],
            vec![("b/in", "100@x&IAX2/c", YES)],
            None,
            "ends with ",
        ),
    ];
    for (name, plan, number, acts, answers, told, end) in rows {
        let mut world = world(&format!("[default]\n{plan}\n"));
        world.verbose(3);
        for (switch, number, answer) in answers {
            let question = (switch.to_owned(), number.to_owned());
            let keep = Some((answer, Duration::from_secs(600)));
            world.shard.core.borrow_mut().switch_said(question, keep);
        }
        call(&mut world, number, &acts);
        world.run();
        let logged = world.log(Level::Verbose(3));
        let found = logged.iter().find(|line| line.contains(" is at IAX2/"));
        assert_eq!(found.is_some(), told.is_some(), "{name}: {logged:?}");
        assert!(found.is_none_or(|line| line.ends_with(told.unwrap_or_default())), "{name}: {found:?}");
        let ends = lines(&world, " ends with ");
        assert!(ends.len() == 1 && ends[0].contains(end), "{name}: {ends:?}");
    }
}

#[test]
fn a_call_waits_for_the_answer_and_no_longer_than_ten_seconds() {
    let mut world = world("[default]\nswitch => IAX2/b/in\n");
    call(&mut world, "100", &[]);
    world.run();
    let ends = lines(&world, " ends with ");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert!(ends[0].starts_with("10") && ends[0].ends_with(" ends with 1"), "{ends:?}");
    let wanted = world.shard.core.borrow_mut().switches.take_wanted();
    assert!(!wanted.is_empty() && wanted.iter().all(|(_, number)| number == "100"), "{wanted:?}");
}
