//! ExternalIVR: what programs say and are told, and what the end of a call and bad programs do.

mod common;

use std::time::Duration;

use apps::agi::{AFTER_END_MAX, LINE_BYTES_MAX};
use apps::ivr::SOUNDS_MAX;
use call::LinkWant;
use common::{BYE, at, at_rest, call, lines, noted, warnings, world};
use sim::{Act, Script, World};

const DIALPLAN: &str = "
[default]
exten => 1,1,ExternalIVR(/s(one,a b),n)
 same => n,NoOp(on ${A})
exten => i,1,ExternalIVR(/s,ni)
exten => d,1,ExternalIVR(/s,nd)
exten => up,1,ExternalIVR(/s)
 same => n,NoOp(on)
exten => net,1,ExternalIVR(ivr://h(x,y),n)
 same => n,NoOp(on)
exten => bad,1,ExternalIVR(../s)
 same => n,NoOp(on)
exten => late,1,Hangup()
exten => h,1,NoOp(h ${LATE})
";

fn by_the_clock(lines: &[(u64, &str)]) -> Script {
    let lines = lines.iter().map(|(ms, line)| (*ms, (*line).to_owned())).collect();
    Script { lines, on_time: true, stays: true, ..Script::default() }
}

fn prepared(script: Script) -> World {
    let mut world = world(DIALPLAN);
    world.watch();
    world.script("/s", script.clone());
    world.script("h:2949", script);
    world.missing("none");
    world.clip("a", Duration::from_secs(2));
    world.clip("b", Duration::from_secs(3));
    world.clip("d", Duration::from_secs(1));
    world
}

/// What the program was told, and when, without the seconds of each line: `1000 F,a`.
fn told(world: &World) -> Vec<String> {
    let lines = world.transcript();
    let told = lines.iter().filter_map(|line| {
        let (before, said) = line.split_once(" script 1 reads ")?;
        let mut parts = said.splitn(3, ',');
        let (tag, seconds, data) = (parts.next()?, parts.next()?.parse::<u64>().unwrap(), parts.next());
        let ms: u64 = before.parse().unwrap();
        assert_eq!(seconds, 1_795_262_400 + ms / 1000, "{line}");
        let data = data.map(|data| format!(",{data}")).unwrap_or_default();
        Some(format!("{ms} {tag}{data}"))
    });
    told.collect()
}

type Row = (
    &'static str,
    &'static str,
    &'static [(u64, &'static str)],
    Vec<(u64, Act)>,
    &'static [&'static str],
    &'static [&'static str],
);

fn rows() -> Vec<Row> {
    let press = |digit, ms| (ms, Act::Press(digit));
    vec![
        (
            "sounds are heard one after the other",
            "1",
            &[(0, "S,a"), (0, "A,b"), (6000, "E,done")],
            vec![],
            &["2000 F,a", "5000 F,b", "6000 E"],
            &["on ", "h "],
        ),
        (
            "a sound at once drops those that wait",
            "1",
            &[(0, "S,a"), (0, "A,b"), (0, "A,c"), (1000, "S,d"), (9000, "E")],
            vec![],
            &["1000 T", "1000 D,b", "1000 D,c", "2000 F,d", "9000 E"],
            &["on ", "h "],
        ),
        (
            "silence, and again, when it is silent",
            "1",
            &[(0, "S,a"), (500, "I,1"), (600, "I"), (1000, "E")],
            vec![],
            &["500 T", "1000 E"],
            &["on ", "h "],
        ),
        (
            "digits are told of while a sound goes on",
            "1",
            &[(0, "S,a"), (3000, "E")],
            vec![press('5', 500), press('#', 700)],
            &["500 5", "700 #", "2000 F,a", "3000 E"],
            &["on ", "h "],
        ),
        (
            "a digit clears, as long as that is wanted",
            "1",
            &[(0, "O,autoclear"), (0, "S,a"), (0, "A,b"), (900, "O,noautoclear"), (900, "S,a"), (4000, "E")],
            vec![press('5', 500), press('6', 1000)],
            &["500 5", "500 T", "500 D,b", "1000 6", "2900 F,a", "4000 E"],
            &["on ", "h "],
        ),
        (
            "what cannot be done is told",
            "1",
            &[(0, "S,none"), (0, "A,none"), (0, "X,1"), (0, "O,maybe"), (0, "V,A"), (10, "E")],
            vec![],
            &["0 Z,none", "0 Z,none", "0 Z,X,1", "0 Z,O,maybe", "0 Z,V,A", "10 E"],
            &["on ", "h "],
        ),
        (
            "variables and words",
            "1",
            &[(0, "V,A=1,B=x y"), (0, "G,A,B,C"), (0, "P,1795262400"), (10, "E")],
            vec![],
            &["0 G,A=1,B=x y,C=", "0 P,/s,one,a b", "10 E"],
            &["on 1", "h "],
        ),
        (
            "a server is told the words, too",
            "net",
            &[(0, "P"), (10, "E")],
            vec![],
            &["0 P,ivr://h,x,y", "10 E"],
            &["on", "h "],
        ),
        ("it ends the call", "1", &[(500, "H,no")], vec![], &["500 H"], &["h "]),
        ("the caller ends it", "1", &[(0, "S,a")], vec![(1000, BYE)], &["1000 H"], &["h "]),
        (
            "the end is told of and it goes on",
            "i",
            &[(0, "S,a"), (3000, "V,LATE=1"), (3000, "S,a"), (3000, "T"), (4000, "E")],
            vec![(1000, BYE)],
            &["1000 I,HANGUP", "3000 Z,a", "3000 Z,ANSWER_FAILED", "4000 E"],
            &["h 1"],
        ),
        (
            "the end is not looked for",
            "d",
            &[(0, "S,a"), (3000, "V,LATE=2"), (4000, "E")],
            vec![(1000, BYE)],
            &["4000 E"],
            &["h 2"],
        ),
    ]
}

#[test]
fn each_command_does_what_it_says_and_each_event_is_told_of() {
    for (name, exten, script, acts, expected, steps) in rows() {
        let mut world = prepared(by_the_clock(script));
        call(&mut world, exten, &acts);
        world.run();
        at_rest(&world, name);
        assert_eq!(told(&world), expected, "{name}: {:?}", world.transcript());
        assert_eq!(noted(&world), steps, "{name}");
    }
}

#[test]
fn who_ends_without_saying_so_or_says_too_much_ends_the_call() {
    let long = "L,".to_owned() + &"x".repeat(LINE_BYTES_MAX);
    for (name, exten, script, said) in [
        ("it ends", "1", Script { stays: false, ..by_the_clock(&[(500, "L,hello")]) }, "it has ended"),
        ("a server goes", "net", Script { stays: false, ..by_the_clock(&[(500, "S,a")]) }, "it has ended"),
        ("a line without end", "1", by_the_clock(&[(500, &long)]), "a line of more than"),
        ("there is none", "1", Script { fails: Some("no such file"), ..Script::default() }, "no such file"),
        ("nobody listens", "net", Script { fails: Some("refused"), ..Script::default() }, "refused"),
        ("a name that leads upwards", "bad", Script::default(), "must not lead upwards"),
    ] {
        let mut world = prepared(script);
        call(&mut world, exten, &[]);
        world.run();
        at_rest(&world, name);
        assert_eq!(noted(&world), ["h "], "{name}");
        assert!(warnings(&world).iter().any(|line| line.contains(said)), "{name}: {:?}", warnings(&world));
    }
}

#[test]
fn who_goes_on_after_the_end_of_the_call_is_let_go_of_in_time() {
    let mut world = prepared(by_the_clock(&[]));
    call(&mut world, "i", &[(1000, BYE)]);
    world.run();
    at_rest(&world, "let go");
    let gone = lines(&world, "script 1 is let go");
    let expected = 1000 + AFTER_END_MAX.as_millis();
    assert_eq!(gone, [format!("{expected} script 1 is let go")]);
    assert!(warnings(&world).iter().any(|line| line.contains("for too long")));
}

#[test]
fn a_call_that_has_ended_is_served_when_the_dialplan_wants_it() {
    for (options, expected, said) in
        [(",d", &["0 G,X=1", "100 E"][..], ""), ("", &[][..], "the call has ended; with option d")]
    {
        let mut world = common::world(&format!(
            "[default]\nexten => 1,1,Hangup()\nexten => h,1,Set(X=1)\n same => n,ExternalIVR(/s{options})\n same => n,NoOp(after)\n"
        ));
        world.watch();
        world.script("/s", by_the_clock(&[(0, "G,X"), (100, "E")]));
        call(&mut world, "1", &[]);
        world.run();
        at_rest(&world, options);
        assert_eq!(
            (told(&world), noted(&world)),
            (expected.iter().map(|line| (*line).to_owned()).collect(), vec!["after".to_owned()]),
            "{options}"
        );
        assert_eq!(warnings(&world).iter().any(|line| line.contains("with option d")), !said.is_empty());
    }
}

#[test]
fn a_call_is_answered_first_or_when_it_is_said() {
    for (exten, before) in [("up", call::ChanState::Up), ("1", call::ChanState::Ring)] {
        let mut world = prepared(by_the_clock(&[(1000, "S,a"), (2000, "T"), (4000, "E")]));
        let id = call(&mut world, exten, &[]);
        for (ms, state) in [(1500, before), (2500, call::ChanState::Up)] {
            world.run_until(at(ms));
            assert_eq!(world.shard.core.borrow().get(id).unwrap().state, state, "{exten} {ms}");
        }
        world.run();
        assert_eq!(lines(&world, "hears a").len(), 1, "{exten}");
        assert!(warnings(&world).is_empty(), "{exten}");
    }
}

#[test]
fn the_list_of_sounds_has_an_end_and_a_flood_of_lines_delays_nobody() {
    let mut script = vec![(0, "S,a"); 1];
    script.extend(vec![(0, "A,b"); SOUNDS_MAX + 2]);
    script.push((100, "E"));
    let mut world = prepared(by_the_clock(&script));
    call(&mut world, "1", &[]);
    world.run();
    let told = told(&world);
    assert_eq!(told.iter().filter(|line| line.contains("Z,b")).count(), 2, "one is heard, {SOUNDS_MAX} wait");
    assert_eq!(told.last().unwrap(), "100 E");

    let mut world = prepared(by_the_clock(&[(0, &"L,x\n".repeat(10_000)), (500, "E")]));
    call(&mut world, "1", &[]);
    let other = call(&mut world, "up", &[(100, BYE)]);
    world.run_until(at(200));
    assert!(world.shard.core.borrow().get(other).is_none());
    world.run();
}

#[test]
fn a_program_gets_its_words_and_a_server_its_port() {
    let mut world = prepared(by_the_clock(&[(0, "E")]));
    for exten in ["1", "net"] {
        call(&mut world, exten, &[]);
    }
    world.run();
    match &world.wanted_links()[..] {
        [LinkWant::Program { path, args, audio: false, .. }, LinkWant::Server { hosts }] => {
            assert_eq!((path.as_str(), args.join("|").as_str()), ("/s", "one|a b"));
            assert_eq!(hosts, &[("h".to_owned(), 2949)]);
        }
        other => panic!("{other:?}"),
    }
}
