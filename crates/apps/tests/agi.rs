//! AGI: what scripts say and are answered, and what the end of a call and bad scripts do.

mod common;

use std::time::Duration;

use apps::agi::{AFTER_END_MAX, COMMANDS, LINE_BYTES_MAX};
use base::Cause;
use call::{AgiChange, AgiRefused, LinkWant, Location, Notice};
use common::{at, at_rest, call, noted, steps, warnings, world};
use sim::{Act, Script, World};

const BYE: Act = Act::Hangup(Cause::NORMAL_CLEARING);

const DIALPLAN: &str = "
[default]
exten => 1,1,AGI(s)
 same => n,NoOp(${AGISTATUS})
 same => n(label),NoOp(label)
exten => 2,1,NoOp(two one)
 same => n,NoOp(two two)
exten => h,1,NoOp(h ${AGISTATUS})
[sub]
exten => s,1,Set(GLOBAL(said)=${ARG1} ${ARG2})
 same => n,Return()
exten => bad,1,Hangup()
";

/// A world in which program `s` says these lines.
fn prepared(script: Script) -> World {
    let mut world = world(DIALPLAN);
    world.watch();
    world.script("/s", script);
    world.missing("none");
    world.missing("no/where.wav");
    world.clip("long", Duration::from_secs(10));
    world.database("fruit", "apple", "red");
    world.database("fruit", "pear/small", "green");
    world
}

/// What the script read, without the first block.
fn answers(world: &World) -> Vec<String> {
    let said = world.transcript();
    let read =
        said.iter().filter_map(|line| line.split_once("script 1 reads ").map(|(_, text)| text.to_owned()));
    let read: Vec<String> = read.collect();
    let block = read.iter().position(|line| line.is_empty()).expect("a block");
    read[block + 1..].to_vec()
}

fn steered(lines: &[&str], acts: &[(u64, Act)]) -> World {
    let mut world = prepared(Script::of(lines));
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, &format!("{lines:?}"));
    world
}

#[test]
fn the_first_block_says_who_calls() {
    let mut world = world("[default]\nexten => 1,1,AGI(s,one,a b,)\n");
    world.script("/s", Script::of(&[]));
    let id = call(&mut world, "1", &[]);
    let set = |world: &World, change: fn(&mut call::Channel)| {
        change(world.shard.core.borrow_mut().get_mut(id).unwrap());
    };
    set(&world, |c| {
        c.dialed = Some("100".to_owned());
        c.account = "acc".to_owned();
        c.caller.name = Some("Eve\nagi_uniqueid: forged".to_owned());
    });
    world.run();
    let said = world.transcript();
    let read: Vec<&str> = said.iter().filter_map(|line| Some(line.split_once(" reads ")?.1)).collect();
    let version = read.iter().find_map(|line| line.strip_prefix("agi_version: ")).expect("a version");
    assert!(!version.is_empty());
    let expected = [
        "agi_request: s",
        "agi_channel: SIM/6001-00000000",
        "agi_language: en",
        "agi_type: SIM",
        "agi_uniqueid: 1795262400.0",
        &format!("agi_version: {version}"),
        "agi_callerid: 6001",
        "agi_calleridname: Eve agi_uniqueid: forged",
        "agi_callingpres: 0",
        "agi_callingani2: 0",
        "agi_callington: 0",
        "agi_callingtns: 0",
        "agi_dnid: 100",
        "agi_rdnis: unknown",
        "agi_context: default",
        "agi_extension: 1",
        "agi_priority: 1",
        "agi_enhanced: 0.0",
        "agi_accountcode: acc",
        "agi_threadid: 1",
        "agi_arg_1: one",
        "agi_arg_2: a b",
        "agi_arg_3: ",
        "",
    ];
    assert_eq!(read, expected);
    match &world.wanted_links()[..] {
        [LinkWant::Program { path, args, environment, audio: false }] => {
            assert_eq!((path.as_str(), args.join("|").as_str()), ("/s", "one|a b|"));
            assert!(environment.iter().any(|(name, _)| name == "AST_AGI_DIR"));
        }
        other => panic!("{other:?}"),
    }
}

/// With `UPDATE_DOCS=1` in the environment the page is written anew.
#[test]
fn the_manual_lists_every_command() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agi.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- commands -->\n", "<!-- end of commands -->");
    let (head, rest) = page.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let mut table = String::from("\n| Command | | Dead |\n|---|---|---|\n");
    for row in COMMANDS {
        let dead = if row.dead { "yes" } else { "" };
        let syntax = format!("{} {}", row.name, row.syntax).trim_end().replace('|', "\\|");
        let text = format!("{} {}", row.synopsis, row.description.replace('\n', " "));
        table += &format!("| `{syntax}` | {} | {dead} |\n", text.replace('|', "\\|"));
    }
    let expected = format!("{head}{begin}{table}\n{end}{tail}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert_eq!(page, expected, "run UPDATE_DOCS=1 cargo test -p apps --test agi");
}

/// Command, what the caller does meanwhile, answers. The second command of each row is what follows in the script.
type Row = (&'static str, &'static [(u64, Act)], &'static [&'static str]);

const ROWS: &[Row] = &[
    ("ANSWER", &[], &["200 result=0"]),
    ("answer", &[], &["200 result=0"]),
    ("ASYNCAGI BREAK", &[], &["200 result=0"]),
    ("CHANNEL STATUS", &[], &["200 result=4"]),
    ("CHANNEL STATUS SIM/6001-00000000", &[], &["200 result=4"]),
    ("CHANNEL STATUS SIM/none", &[], &["200 result=-1"]),
    ("CONTROL STREAM FILE a \"\"", &[], &["200 result=0 endpos=-1"]),
    ("CONTROL STREAM FILE long 5", &[(2000, Act::Press('5'))], &["200 result=53 endpos=2000"]),
    (
        "CONTROL STREAM FILE long 5 4000 6",
        &[(1000, Act::Press('6')), (2000, Act::Press('5'))],
        &["200 result=53 endpos=6000"],
    ),
    ("CONTROL STREAM FILE long 5 3000 # * 1 9000", &[], &["200 result=0 endpos=-1"]),
    ("CONTROL STREAM FILE none 5", &[], &["200 result=-1 endpos=0"]),
    ("DATABASE DEL fruit apple", &[], &["200 result=1"]),
    ("DATABASE DEL fruit plum", &[], &["200 result=1"]),
    ("DATABASE DELTREE fruit", &[], &["200 result=1"]),
    ("DATABASE DELTREE fruit pear", &[], &["200 result=1"]),
    ("DATABASE DELTREE fruit plum", &[], &["200 result=1"]),
    ("DATABASE GET fruit apple", &[], &["200 result=1 (red)"]),
    ("DATABASE GET fruit plum", &[], &["200 result=0"]),
    ("DATABASE PUT fruit plum \"dark blue\"", &[], &["200 result=1"]),
    ("EXEC NoOp x", &[], &["200 result=0"]),
    ("exec noop", &[], &["200 result=0"]),
    ("EXEC Set \"a=${EXTEN}\"", &[], &["200 result=0"]),
    ("EXEC Nothing x", &[], &["200 result=-2"]),
    ("EXEC Hangup", &[], &["200 result=-1"]),
    ("EXEC AGI s", &[], &["200 result=-1"]),
    (
        "GET DATA a 3000 4",
        &[(500, Act::Press('1')), (600, Act::Press('2')), (900, Act::Press('#'))],
        &["200 result=12"],
    ),
    ("GET DATA a 3000 2", &[(500, Act::Press('1')), (600, Act::Press('2'))], &["200 result=12"]),
    ("GET DATA a 3000", &[(500, Act::Press('1'))], &["200 result=1 (timeout)"]),
    ("GET DATA a 3000", &[], &["200 result= (timeout)"]),
    ("GET DATA a", &[(500, Act::Press('#'))], &["200 result="]),
    ("GET DATA a x", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("GET FULL VARIABLE \"${EXTEN} of ${CHANNEL}\"", &[], &["200 result=1 (1 of SIM/6001-00000000)"]),
    ("GET FULL VARIABLE ${EXTEN} SIM/6001-00000000", &[], &["200 result=1 (1)"]),
    ("GET FULL VARIABLE ${EXTEN} SIM/none", &[], &["200 result=0"]),
    ("GET OPTION a 12", &[(500, Act::Press('1'))], &["200 result=49 endpos=4000"]),
    ("GET OPTION a 12 2000", &[(2000, Act::Press('2'))], &["200 result=50 endpos=8000"]),
    ("GET OPTION a 12 2000", &[(2000, Act::Press('3'))], &["200 result=0 endpos=8000"]),
    ("GET OPTION a 12 2000", &[], &["200 result=0 endpos=8000"]),
    ("GET OPTION none 12", &[], &["200 result=0 endpos=0"]),
    ("GET VARIABLE EXTEN", &[], &["200 result=1 (1)"]),
    ("GET VARIABLE CALLERID(num)", &[], &["200 result=1 (6001)"]),
    ("GET VARIABLE nothing", &[], &["200 result=0"]),
    ("GOSUB sub s 1 a,b", &[], &["100 result=0 Trying...", "200 result=0 Gosub complete"]),
    ("GOSUB sub s 1", &[], &["100 result=0 Trying...", "200 result=0 Gosub complete"]),
    ("GOSUB sub none 1", &[], &["200 result=-1 Gosub label not found"]),
    ("GOSUB sub s nolabel", &[], &["200 result=-1 Gosub label not found"]),
    ("GOSUB sub bad 1", &[], &["100 result=0 Trying...", "200 result=-1 Gosub failed"]),
    ("HANGUP SIM/none", &[], &["200 result=-1"]),
    ("HANGUP", &[], &["200 result=1"]),
    ("NOOP", &[], &["200 result=0"]),
    ("NOOP with words", &[], &["200 result=0"]),
    ("RECEIVE CHAR 3000", &[(500, Act::Text(String::new()))], &["200 result=0"]),
    ("RECEIVE CHAR 3000", &[], &["200 result=-1 (hangup)"]),
    ("RECEIVE CHAR 0", &[(500, BYE)], &["200 result=-1 (hangup)"]),
    ("RECEIVE TEXT 3000", &[], &["200 result=-1"]),
    ("RECORD FILE a wav 5# 3000", &[(2000, Act::Press('#'))], &["200 result=35 (dtmf) endpos=16000"]),
    ("RECORD FILE a wav 5# 3000", &[], &["200 result=0 (timeout) endpos=24000"]),
    ("RECORD FILE a wav 5# 3000 beep", &[], &["200 result=0 (timeout) endpos=24000"]),
    ("RECORD FILE a wav 5# -1 s=2", &[(4000, Act::Silence(2000))], &["200 result=0 (timeout) endpos=32000"]),
    ("RECORD FILE a wav 5# -1 0 BEEP s=2", &[(4000, BYE)], &["200 result=-1 (hangup) endpos=24000"]),
    ("RECORD FILE no/where wav 5# 3000", &[], &["200 result=-1 (writefile) endpos=0"]),
    ("RECORD FILE a wav 5# 3000 nonsense", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SAY ALPHA abc \"\"", &[], &["200 result=0"]),
    ("SAY ALPHA abc 5", &[(1500, Act::Press('5'))], &["200 result=53"]),
    ("SAY DATE 1795262400 5", &[], &["200 result=0"]),
    ("SAY DATE today 5", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SAY DATETIME 1795262400 5 YmdHMS UTC", &[], &["200 result=0"]),
    ("SAY DIGITS 12 *", &[(1500, Act::Press('*'))], &["200 result=42"]),
    ("SAY NUMBER 12 5", &[], &["200 result=0"]),
    ("SAY NUMBER 12 5 f", &[], &["200 result=0"]),
    ("SAY NUMBER twelve 5", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SAY PHONETIC abc 5", &[], &["200 result=0"]),
    ("SAY TIME 1795262400 5", &[], &["200 result=0"]),
    ("SEND IMAGE picture", &[], &["200 result=0"]),
    ("SEND TEXT \"hello there\"", &[], &["200 result=0"]),
    ("SET AUTOHANGUP 20", &[], &["200 result=0"]),
    ("SET AUTOHANGUP x", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SET CALLERID \"\\\"Bob\\\" <77>\"", &[], &["200 result=1"]),
    ("SET CALLERID \"Bob\" <77>", &[], &["200 result=1"]),
    ("SET CONTEXT default", &[], &["200 result=0"]),
    ("SET EXTENSION 2", &[], &["200 result=0"]),
    ("SET MUSIC ON default", &[], &["200 result=0"]),
    ("SET MUSIC OFF", &[], &["200 result=0"]),
    ("SET MUSIC maybe", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SET PRIORITY label", &[], &["200 result=0"]),
    ("SET PRIORITY nolabel", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("SET VARIABLE x \"a b\"", &[], &["200 result=1"]),
    ("SET VARIABLE CALLERID(name) Bob", &[], &["200 result=1"]),
    ("SPEECH CREATE x", &[], &["200 result=0"]),
    ("SPEECH RECOGNIZE prompt 10", &[], &["200 result=0"]),
    ("STREAM FILE a \"\"", &[], &["200 result=0 endpos=8000"]),
    ("STREAM FILE a 1 4000", &[], &["200 result=0 endpos=8000"]),
    ("STREAM FILE long 12#", &[(2000, Act::Press('#'))], &["200 result=35 endpos=16000"]),
    ("STREAM FILE long 12", &[(2000, Act::Press('3'))], &["200 result=0 endpos=80000"]),
    ("STREAM FILE none 12", &[], &["200 result=-1 endpos=0"]),
    ("STREAM FILE long 12", &[(2000, BYE)], &["200 result=-1 endpos=0"]),
    ("STREAM FILE a 1 x", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("TDD MODE on", &[], &["200 result=0"]),
    ("VERBOSE \"a message\" 1", &[], &["200 result=1"]),
    ("WAIT FOR DIGIT 3000", &[(1000, Act::Press('7'))], &["200 result=55"]),
    ("WAIT FOR DIGIT 3000", &[], &["200 result=0"]),
    ("WAIT FOR DIGIT -1", &[(60_000, Act::Press('A'))], &["200 result=65"]),
    ("WAIT FOR DIGIT -1", &[(1000, BYE)], &["200 result=-1"]),
    ("WAIT FOR DIGIT soon", &[], &["520-Invalid command syntax.  Proper usage follows:"]),
    ("", &[], &["510 Invalid or unknown command"]),
    ("SET", &[], &["510 Invalid or unknown command"]),
    ("SAY", &[], &["510 Invalid or unknown command"]),
    ("GIVE ME MONEY", &[], &["510 Invalid or unknown command"]),
    ("NOOPX", &[], &["510 Invalid or unknown command"]),
];

#[test]
fn every_command_is_answered_as_documented() {
    for (command, acts, expected) in ROWS {
        let world = steered(&[command], acts);
        let mut got = answers(&world);
        if got.first().is_some_and(|line| line.starts_with("520-")) {
            assert_eq!(got.last().map(String::as_str), Some("520 End of proper usage."), "{command}");
            got.truncate(1);
        }
        assert_eq!(got, *expected, "{command}");
    }
}

#[test]
fn every_command_has_a_row_and_refuses_too_few_words() {
    for row in COMMANDS {
        let tested = ROWS.iter().any(|(command, ..)| {
            let same = command.get(..row.name.len()).is_some_and(|name| name.eq_ignore_ascii_case(row.name));
            same && !matches!(command.as_bytes().get(row.name.len()), Some(c) if *c != b' ')
        });
        // One SPEECH command stands for all: they share their code.
        assert!(tested || row.name.starts_with("SPEECH "), "{}", row.name);
        let needs = row.syntax.split(' ').any(|word| !word.is_empty() && !word.starts_with('['));
        if needs && row.name != "NOOP" {
            let world = steered(&[row.name], &[]);
            let got = answers(&world);
            assert!(got[0].starts_with("520-") && got[1].contains(row.name), "{}: {got:?}", row.name);
        }
    }
}

#[test]
fn a_call_that_has_ended_may_read_and_write_and_nothing_else() {
    for row in COMMANDS {
        let words = ["1"; 4];
        let command = format!(
            "{} {}",
            row.name,
            words[..row.syntax.split(' ').filter(|w| !w.is_empty() && !w.starts_with('[')).count()].join(" ")
        );
        let mut world = prepared(Script::of(&["WAIT FOR DIGIT -1", "NOOP", &command]));
        call(&mut world, "1", &[(1000, BYE)]);
        world.run();
        at_rest(&world, row.name);
        let answers = answers(&world);
        assert_eq!(answers[..2], ["200 result=-1", "200 result=0"], "{command}");
        let refused = answers[2] == "511 Command Not Permitted on a dead channel or intercept routine";
        assert_eq!(refused, !row.dead, "{command}: {answers:?}");
        assert_eq!(noted(&world), ["h HANGUP"], "{command}");
    }
}

#[test]
fn commands_do_what_they_say() {
    let world = steered(
        &[
            "SET VARIABLE CALLERID(all) \"\\\"Bob\\\" <77>\"",
            "GET VARIABLE CALLERID(all)",
            "SET CALLERID \"Carol <88>\"",
            "GET VARIABLE CALLERID(num)",
            "DATABASE PUT a b c",
            "DATABASE GET a b",
            "SET VARIABLE x \"line\\\"quote\"",
            "GET VARIABLE x",
            "GOSUB sub s 1 \"one,two\"",
            "GET FULL VARIABLE \"${GLOBAL(said)}\"",
            "SET MUSIC ON loud",
            "SET MUSIC OFF",
            "VERBOSE \"what is told\" 0",
        ],
        &[],
    );
    let said = answers(&world);
    for line in [
        "200 result=1 (\"Bob\" <77>)",
        "200 result=1 (88)",
        "200 result=1 (c)",
        "200 result=1 (line\"quote)",
        "200 result=1 (one two)",
    ] {
        assert!(said.iter().any(|answer| answer == line), "{line}: {said:?}");
    }
    assert!(world.transcript().iter().any(|line| line.ends_with("#1 hears music loud")));
    assert!(world.log(call::Level::Verbose(0)).iter().any(|line| line.contains("what is told")));
}

#[test]
fn a_script_chooses_where_the_dialplan_goes_on() {
    for (name, lines, expected) in [
        ("as it stood", vec!["NOOP"], vec!["SUCCESS", "label", "h SUCCESS"]),
        ("another priority", vec!["SET PRIORITY 3"], vec!["label", "h SUCCESS"]),
        ("a label", vec!["SET PRIORITY label"], vec!["label", "h SUCCESS"]),
        (
            "after the same priority of another extension",
            vec!["SET EXTENSION 2"],
            vec!["two two", "h SUCCESS"],
        ),
        (
            "another extension's first",
            vec!["SET CONTEXT default", "SET EXTENSION 2", "SET PRIORITY 1"],
            vec!["two one", "two two", "h SUCCESS"],
        ),
        ("Goto", vec!["EXEC Goto default,2,1"], vec!["two one", "two two", "h SUCCESS"]),
        ("HANGUP", vec!["HANGUP"], vec!["h HANGUP"]),
        ("an application that ends the call", vec!["EXEC Hangup"], vec!["SUCCESS", "label", "h SUCCESS"]),
    ] {
        let world = steered(&lines, &[]);
        assert_eq!(noted(&world), expected, "{name}");
    }
}

#[test]
fn how_a_script_ended_is_agistatus() {
    let exits = |exit| Script { exit, ..Script::of(&["NOOP"]) };
    let fails = Script { fails: Some("it is broken"), ..Script::default() };
    for (name, target, script, expected) in [
        ("well", "s", exits(0), "SUCCESS"),
        ("with an error", "s", exits(1), "FAILURE"),
        ("a program that is not there", "none", exits(0), "NOTFOUND"),
        ("one that cannot be started", "s", fails.clone(), "FAILURE"),
        ("a name that leads upwards", "../s", exits(0), "NOTFOUND"),
        ("no name", "", exits(0), "NOTFOUND"),
        ("a server", "agi://h/s", exits(7), "SUCCESS"),
        ("a server that is not there", "agi://h:1/s", exits(0), "FAILURE"),
        ("a server that cannot be reached", "agi://broken", exits(0), "FAILURE"),
        ("servers by SRV records that nobody has", "hagi://h/s", exits(0), "FAILURE"),
        ("a server without a name", "agi:///s", exits(0), "NOTFOUND"),
    ] {
        let mut world =
            world(&format!("[default]\nexten => 1,1,AGI({target})\n same => n,NoOp(${{AGISTATUS}})\n"));
        world.watch();
        world.script("/s", script.clone());
        world.script("h:4573", script);
        world.script("broken:4573", fails.clone());
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(noted(&world), [expected], "{name}");
        at_rest(&world, name);
    }
}

/// A DNS that names two servers once it is let.
#[derive(Clone, Default)]
struct Names(std::rc::Rc<std::cell::Cell<bool>>);

impl call::Outside for Names {
    fn dns(&self, question: &base::dns::Question) -> call::DnsAnswer {
        assert_eq!((question.kind, &*question.name), (base::dns::Kind::Srv, "_agi._tcp.example.com"));
        if !self.0.get() {
            return call::DnsAnswer::Loading;
        }
        let server = |priority, target: &str, port| base::dns::Srv {
            priority,
            weight: 0,
            port,
            target: target.into(),
        };
        let servers = [server(20, "second", 99), server(10, "first", 98)];
        call::DnsAnswer::Ready(base::dns::Records::Srv(servers.into()))
    }
}

#[test]
fn rfc2782_hagi_goes_to_the_servers_that_the_dns_names_in_their_order() {
    let mut world =
        world("[default]\nexten => 1,1,AGI(hagi://example.com/s)\n same => n,NoOp(${AGISTATUS})\n");
    world.watch();
    world.script("first:98", Script::of(&["NOOP"]));
    let names = Names::default();
    world.shard.core.borrow_mut().services.outside = Box::new(names.clone());
    call(&mut world, "1", &[]);
    world.run_until(at(1_000));
    assert!(noted(&world).is_empty(), "it waits for the DNS");
    names.0.set(true);
    world.shard.core.borrow_mut().outside_changed();
    world.run();
    assert_eq!(noted(&world), ["SUCCESS"]);
    let hosts = vec![("first".to_owned(), 98), ("second".to_owned(), 99)];
    assert_eq!(world.wanted_links(), [LinkWant::Server { hosts }]);
    at_rest(&world, "hagi");
    // Nobody answers for five seconds: the dialplan goes on.
    let mut world =
        common::world("[default]\nexten => 1,1,AGI(hagi://example.com/s)\n same => n,NoOp(${AGISTATUS})\n");
    world.watch();
    world.shard.core.borrow_mut().services.outside = Box::new(Names::default());
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["FAILURE"]);
    assert_eq!(world.now(), at(5_000));
}

#[test]
fn the_end_of_a_call_is_told_by_sighup_or_a_line_unless_the_dialplan_forbids_it() {
    let mute = |heeds| Script { stays: true, heeds, ..Script::of(&[]) };
    for (name, set, target, heeds, told) in [
        ("a program", "", "s", true, "script 1 gets SIGHUP"),
        ("a server", "", "agi://h/s", true, "script 1 reads HANGUP"),
        ("a program that is not told", "Set(AGISIGHUP=no)", "s", false, ""),
        ("a server that is not told", "Set(AGISIGHUP=no)", "agi://h/s", false, ""),
        ("a program that is let go", "Set(AGIEXITONHANGUP=yes)", "s", false, "script 1 gets SIGHUP"),
        ("one let go untold", "MSet(AGIEXITONHANGUP=yes,AGISIGHUP=no)", "s", false, ""),
    ] {
        let set = if set.is_empty() { "NoOp(begin)" } else { set };
        let mut world = world(&format!(
            "[default]\nexten => 1,1,{set}\n same => n,AGI({target})\nexten => h,1,NoOp(${{AGISTATUS}})\n"
        ));
        world.watch();
        world.script("/s", mute(heeds));
        world.script("h:4573", mute(heeds));
        call(&mut world, "1", &[(5000, BYE)]);
        world.run();
        at_rest(&world, name);
        let said = world.transcript();
        let told_at: Vec<&String> =
            said.iter().filter(|line| line.contains("SIGHUP") || line.contains("HANGUP")).collect();
        let expected: Vec<String> = if told.is_empty() { vec![] } else { vec![format!("5000 {told}")] };
        assert_eq!(told_at, expected.iter().collect::<Vec<_>>(), "{name}");
        let status = if name.contains("server that is not") || name.contains("program that is not") {
            "FAILURE"
        } else {
            "HANGUP"
        };
        assert_eq!(noted(&world).last().map(String::as_str), Some(status), "{name}");
    }
}

#[test]
fn a_script_that_never_answers_delays_nobody_and_is_let_go_some_time_after_the_end() {
    let mut world = prepared(Script { stays: true, ..Script::of(&[]) });
    call(&mut world, "1", &[(5000, BYE)]);
    call(&mut world, "2", &[]);
    world.run();
    at_rest(&world, "hung");
    assert!(noted(&world).starts_with(&["two one".to_owned(), "two two".to_owned()]));
    let said = world.transcript();
    let let_go = at(5000) + AFTER_END_MAX;
    assert!(
        said.iter().any(|line| *line == format!("{} script 1 is let go", let_go.as_millis())),
        "{said:?}"
    );
    assert!(warnings(&world).iter().any(|line| line.contains("for too long after the end of the call")));
}

#[test]
fn a_line_without_an_end_and_a_flood_of_commands_are_bounded() {
    let long = "NOOP ".to_owned() + &"x".repeat(LINE_BYTES_MAX);
    let world = steered(&["NOOP", &long, "NOOP"], &[]);
    assert_eq!(answers(&world), ["200 result=0"]);
    assert!(noted(&world).contains(&"FAILURE".to_owned()));
    assert!(warnings(&world).iter().any(|line| line.contains("a line of more than")));

    let lines = vec!["NOOP"; 10_000];
    let mut world = prepared(Script { hasty: true, ..Script::of(&lines) });
    call(&mut world, "1", &[]);
    world.run();
    at_rest(&world, "flood");
    assert_eq!(answers(&world).len(), lines.len());
}

#[test]
fn a_script_that_goes_on_and_on_hears_of_the_end_and_is_ended() {
    // As fast as it can, until it is let go.
    let mut world = prepared(Script { lines: vec![(100, "NOOP".to_owned()); 5000], ..Script::default() });
    call(&mut world, "1", &[(5000, BYE)]);
    world.run();
    at_rest(&world, "on and on");
    let told = world.transcript().iter().filter(|line| line.contains("SIGHUP")).count();
    assert_eq!(told, 1);
    assert!(noted(&world).contains(&"h FAILURE".to_owned()));
}

#[test]
fn somebody_else_may_send_the_call_elsewhere() {
    let to = Location { context: "default".to_owned(), exten: "2".to_owned(), priority: 1 };
    let mut world = prepared(Script { stays: true, ..Script::of(&[]) });
    call(&mut world, "1", &[(1000, Act::Redirect(to))]);
    world.run();
    at_rest(&world, "redirected");
    assert_eq!(noted(&world), ["two one", "two two", "h HANGUP"]);
    assert!(world.transcript().contains(&"1000 script 1 is let go".to_owned()));
}

#[test]
fn managers_steer_a_call_by_commands_until_one_says_break() {
    let mut world = world(
        "[default]\nexten => 1,1,AGI(agi:async,x)\n same => n,NoOp(${AGISTATUS})\nexten => 2,1,NoOp()\n",
    );
    world.watch();
    let other = call(&mut world, "2", &[]);
    assert_eq!(world.agi(other, "NOOP", "0"), Err(AgiRefused::NotThere));
    let id = call(&mut world, "1", &[]);
    world.run();
    for (line, command_id) in
        [("GET VARIABLE EXTEN", "a"), ("NONSENSE", "b"), ("STREAM FILE long 1", "c"), ("ASYNCAGI BREAK", "d")]
    {
        assert_eq!(world.agi(id, line, command_id), Ok(()));
    }
    world.run();
    assert_eq!(noted(&world), ["", "SUCCESS"]);
    let changes: Vec<AgiChange> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Agi { change, .. } => Some(change.clone()),
            _ => None,
        })
        .collect();
    let Some(AgiChange::AsyncStart(environment)) = changes.first() else { panic!("{changes:?}") };
    assert!(environment.starts_with("agi_request: async\n") && environment.contains("agi_arg_1: x\n"));
    let results: Vec<(&str, &str)> = changes
        .iter()
        .filter_map(|change| match change {
            AgiChange::AsyncExec { id, result } => Some((id.as_str(), result.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(
        results,
        [
            ("a", "200 result=1 (1)\n"),
            ("b", "510 Invalid or unknown command\n"),
            ("c", "200 result=0 endpos=8000\n"),
            ("d", "200 result=0\n"),
        ]
    );
    assert_eq!(changes.last(), Some(&AgiChange::AsyncEnd));
    let executed =
        changes.iter().filter(|change| matches!(change, AgiChange::ExecEnd { code: 200, .. })).count();
    assert_eq!(executed, 3);
}

#[test]
fn commands_of_managers_are_bounded_and_end_with_the_call() {
    let mut world = world("[default]\nexten => 1,1,AGI(agi:async)\nexten => h,1,NoOp(${AGISTATUS})\n");
    world.watch();
    let id = call(&mut world, "1", &[]);
    world.run_until(at(10));
    assert_eq!(world.agi(id, "WAIT FOR DIGIT -1", "0"), Ok(()));
    world.run_until(at(20));
    let taken = (0..200).take_while(|number| world.agi(id, "NOOP", &number.to_string()).is_ok()).count();
    assert_eq!((taken, world.agi(id, "NOOP", "x")), (64, Err(AgiRefused::Full)));
    world.hang_up(id);
    world.run();
    at_rest(&world, "async");
    assert_eq!(noted(&world), ["HANGUP"]);
}

#[test]
fn a_program_that_hears_the_caller_says_so_and_a_server_cannot() {
    let mut world = world(
        "[default]\nexten => 1,1,EAGI(s)\n same => n,EAGI(agi://h/s)\n same => n,NoOp(${AGISTATUS})\n same => n,DeadAGI(s)\n",
    );
    world.watch();
    world.script("/s", Script::of(&[]));
    world.script("h:4573", Script::of(&[]));
    call(&mut world, "1", &[]);
    world.run();
    let wanted = world.wanted_links();
    assert!(
        matches!(
            &wanted[..],
            [LinkWant::Program { audio: true, .. }, LinkWant::Program { audio: false, .. }]
        ),
        "{wanted:?}"
    );
    assert!(world.transcript().iter().any(|line| line.ends_with("agi_enhanced: 1.0")));
    assert_eq!(noted(&world), ["FAILURE"]);
    assert!(steps(&world).iter().any(|step| step.contains("DeadAGI")));
}

#[test]
fn digits_that_come_while_the_script_thinks_are_not_lost() {
    let lines = [(0, "STREAM FILE long 1"), (2000, "GET DATA a 1000 3")];
    let script =
        Script { lines: lines.map(|(after, line)| (after, line.to_owned())).to_vec(), ..Script::default() };
    let mut world = prepared(script);
    call(&mut world, "1", &[(1000, Act::Press('1')), (1500, Act::Press('2')), (1800, Act::Press('3'))]);
    world.run();
    assert_eq!(answers(&world)[1], "200 result=23 (timeout)");
}
