//! Who may do what, and that the tables say so.

use std::path::Path;

use dialplan::registry::Functions;
use dialplan::{Body, Env, Fault, FunctionRow, Reach, Rights, Touch};
use sim::{Act, Phone};

use super::*;

#[test]
fn every_action_that_needs_a_class_is_refused_to_a_user_without_it_and_named_fields_are_needed() {
    let mut desk = Desk::new("matrix");
    desk.login(1, "one");
    desk.login(2, "all");
    for row in actions().filter(|row| !["Login", "Logoff"].contains(&row.name)) {
        if !row.class.is_empty() {
            let fields: String = row.fields.iter().map(|field| format!("|{}: 1", field.name)).collect();
            let answer = desk.act(1, &format!("{}{fields}", row.name));
            assert_eq!(answer, error("Permission denied"), "{}", row.name);
        }
        for class in row.class {
            assert!(store::config::manager::Classes::named(class).is_some(), "{}: {class}", row.name);
        }
        if let Some(field) = row.fields.iter().find(|field| field.required) {
            let said = crate::ami::refusals::missing(row.name, field.name);
            assert_eq!(desk.act(2, row.name), error(&said), "{}", row.name);
        }
    }
    let unknown = "Invalid/unknown command: Nonsense. Use Action: ListCommands to show available commands.";
    assert_eq!(desk.act(2, "Nonsense"), error(unknown));
    assert_eq!(desk.bytes(2, b"X: y\r\n\r\n"), error("Missing action in request"));
    let all = desk.act(2, "ListCommands");
    let is_listed = |row: &&ActionRow| !crate::ami::actions::OLDER.contains(&row.name);
    assert_eq!(messages(&all)[0].len(), 1 + actions().filter(is_listed).count());
    let few = desk.act(1, "ListCommands");
    assert!(few.contains("Ping: ") && !few.contains("Originate: "), "{few}");
}

#[test]
fn actions_of_modules_without_their_files_are_not_there() {
    let mut desk = Desk::new("no-files");
    FILES.iter().for_each(|file| std::fs::remove_file(desk.folder.join(file)).unwrap());
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
    *desk.site().snapshot.borrow_mut() = snapshot;
    desk.login(1, "all");
    let listed = desk.act(1, "ListCommands");
    for action in ["Agents", "ConfbridgeListRooms", "IAXpeers", "PJSIPNotify", "ParkedCalls", "QueueStatus"] {
        let why = format!(
            "Invalid/unknown command: {action}. Use Action: ListCommands to show available commands."
        );
        assert_eq!(desk.act(1, action), error(&why), "{action}");
        assert!(!listed.contains(&format!("{action}: ")), "{action}");
    }
    assert!(listed.contains("PJSIPQualify: ") && desk.act(1, "BridgeList").starts_with("Response: Success"));
}

#[test]
fn what_reaches_beyond_calls_needs_the_class_system_and_nothing_in_the_tables_is_missed() {
    let mut desk = Desk::new("capability");
    desk.world.phone("bob", Phone { acts: vec![(1, Act::Answer)], refuses: None });
    desk.login(1, "calls");
    let mut refused = Vec::new();
    for row in apps::table::applications() {
        desk.act(1, &format!("Originate|Async: true|Channel: SIM/bob|Application: {}", row.name))
            .contains("Forbidden")
            .then(|| refused.push(row.name));
    }
    refused.sort_unstable();
    let expected = [
        "AGI",
        "AddQueueMember",
        "AgentLogin",
        "AgentRequest",
        "Authenticate",
        "ChangeMonitor",
        "DBdel",
        "DBdeltree",
        "DBget",
        "DBput",
        "DISA",
        "DeadAGI",
        "Dictate",
        "EAGI",
        "Espeak",
        "Exec",
        "ExecIf",
        "ExecIfTime",
        "ExternalIVR",
        "Festival",
        "ImportVar",
        "MSet",
        "MeetMe",
        "MessageSend",
        "MinivmAccMess",
        "MinivmDelete",
        "MinivmGreet",
        "MinivmMWI",
        "MinivmNotify",
        "MinivmRecord",
        "MixMonitor",
        "Monitor",
        "ODBCFinish",
        "ODBC_Commit",
        "ODBC_Rollback",
        "Originate",
        "PauseQueueMember",
        "Queue",
        "QueueCallback",
        "QueueLog",
        "QueueUpdate",
        "Record",
        "RemoveQueueMember",
        "Set",
        "SetGlobalVar",
        "Setvar",
        "Stasis",
        "StasisBroadcast",
        "StatsD",
        "System",
        "TryExec",
        "TrySystem",
        "UnpauseQueueMember",
        "VMAuthenticate",
        "VoiceMail",
        "VoiceMailMain",
        "VoiceMailPlayMsg",
        "VoicemailGreeting",
        "WaitForCondition",
    ];
    assert_eq!(refused, expected, "an application that is new is refused until it is listed");
    let tables = apps::table::tables();
    let beyond = |touch: fn(&dialplan::FunctionRow) -> Option<Touch>, least: Touch| -> Vec<String> {
        let rows = tables.functions.iter().filter(|row| touch(row).is_some_and(|touch| touch >= least));
        let mut names: Vec<String> = rows.map(|row| row.name.to_string()).collect();
        names.sort_unstable();
        names
    };
    // Lists on purpose: whoever writes a row that is plain has to say so here, too.
    let read = |row: &dialplan::FunctionRow| row.readable().then_some(row.reach.read);
    assert_eq!(
        beyond(read, Touch::Evaluates).join(" "),
        "AST_CONFIG CONFBRIDGE CURL CURLOPT DB DB_DELETE DB_EXISTS ENUMLOOKUP ENUMQUERY ENV EVAL EVAL_EXTEN FILE \
         FILE_COUNT_LINE FILE_FORMAT IMPORT LOCK MASTER_CHANNEL MINIVMACCOUNT MINIVMCOUNTER ODBC ODBC_FETCH REALTIME \
         REALTIME_DESTROY REALTIME_FIELD REALTIME_HASH SHELL STAT TRYLOCK UNLOCK VM_INFO"
    );
    assert_eq!(
        beyond(read, Touch::Outside).join(" "),
        "AST_CONFIG CURL DB DB_DELETE DB_EXISTS ENV FILE FILE_COUNT_LINE FILE_FORMAT LOCK ODBC ODBC_FETCH REALTIME \
         REALTIME_DESTROY REALTIME_FIELD REALTIME_HASH SHELL STAT TRYLOCK UNLOCK"
    );
    let write = |row: &dialplan::FunctionRow| row.writable().then_some(row.reach.write);
    assert_eq!(
        beyond(write, Touch::Evaluates).join(" "),
        "CONFBRIDGE CURLOPT DB DB_DELETE DIALGROUP EXPORT MASTER_CHANNEL MINIVMCOUNTER ODBC QUEUE_MEMBER \
         QUEUE_MEMBER_PENALTY REALTIME REALTIME_DESTROY REALTIME_FIELD REALTIME_STORE"
    );
    assert_eq!(
        beyond(write, Touch::Outside).join(" "),
        "CONFBRIDGE DB DB_DELETE ODBC REALTIME REALTIME_DESTROY REALTIME_FIELD REALTIME_STORE"
    );
    for act in [
        "Getvar|Variable: ENV(HOME)",
        "Getvar|Variable: file(/etc/passwd)",
        "Setvar|Variable: DB(a/b)|Value: 1",
        "Getvar|Variable: DB(a/b)",
        "Getvar|Variable: NOFUNCTION(x)",
        "Originate|Channel: SIM/bob|Application: NoOp|Variable: DB(a/b)=1",
        "Originate|Channel: SIM/bob|Application: NoOp|Variable: x=1,DB(a/b)=1",
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains("Permission denied for") || answer.contains("Forbidden"), "{act}: {answer}");
    }
    assert_eq!(desk.world.stored("a", "b"), None);
}

/// Every function of the table, read and written with the name of a file and of a host as its argument.
#[test]
fn no_function_or_application_reaches_a_file_or_a_program_for_a_user_without_the_class_system() {
    let mut desk = Desk::new("generated");
    desk.world.phone("bob", Phone { acts: vec![(1, Act::Answer)], refuses: None });
    set_traps(&mut desk);
    desk.login(1, "calls");
    desk.call("alice", "100");
    desk.pass_to(10);
    let bait = desk.folder.join("bait");
    std::fs::write(&bait, "caught").unwrap();
    let made = desk.folder.join("made").display().to_string();
    let before = entries(&desk.folder);
    let tables = apps::table::tables();
    let on = "|Channel: SIM/alice-00000000";
    let argument = bait.display().to_string();
    for row in tables.functions.iter() {
        for (act, allowed) in [
            (
                format!("Getvar{on}|Variable: {}({argument})", row.name),
                dialplan::Rights::CALLS.may_read(row.reach.read),
            ),
            (
                format!("Setvar{on}|Variable: {}({made})|Value: x", row.name),
                dialplan::Rights::CALLS.may_write(row.reach.write),
            ),
            (
                format!("Status{on}|Variables: {}({argument})", row.name),
                dialplan::Rights::CALLS.may_read(row.reach.read),
            ),
        ] {
            let answer = desk.act(1, &act);
            assert_eq!(!answer.contains("Permission denied for"), allowed, "{act}: {answer}");
            assert!(!answer.contains("caught"), "{act}: {answer}");
        }
    }
    for row in apps::table::applications() {
        for data in [
            made.as_str(),
            "f/k=x",
            "touch\u{20}made",
            "TRAP_OUTSIDE(a)",
            "TRAP_OUTSIDE(a)=1",
            "${CUT(TRAP_OUTSIDE(a),b,1)}",
        ] {
            desk.act(
                1,
                &format!("Originate|Async: true|Channel: SIM/bob|Application: {}|Data: {data}", row.name),
            );
        }
    }
    desk.pass_to(5_000);
    assert_eq!(entries(&desk.folder), before, "a file was touched");
    assert_eq!(children(), 0, "a program was started");
    assert_eq!(desk.world.stored("f", "k"), None);
    assert_eq!(CAUGHT.take(), 0, "a function was called that reaches outside");
}

thread_local! {
    /// How often a trap was reached.
    static CAUGHT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

fn sprung() -> Result<(), Fault> {
    CAUGHT.set(CAUGHT.get() + 1);
    Ok(())
}

fn read_trap(_: &mut dyn Env, _: &str, out: &mut String) -> Result<(), Fault> {
    out.push_str("caught");
    sprung()
}

fn write_trap(_: &mut dyn Env, _: &str, _: &str) -> Result<(), Fault> {
    sprung()
}

/// Functions that only count who reaches them, one for each way of touching something.
const TRAPS: [(&str, Touch); 5] = [
    ("TRAP_SETS", Touch::Sets),
    ("TRAP_EVALUATES", Touch::Evaluates),
    ("TRAP_BEYOND", Touch::Beyond),
    ("TRAP_OUTSIDE", Touch::Outside),
    ("TRAP_PROGRAM", Touch::Program),
];

/// Puts the traps among the functions; gives the table.
fn set_traps(desk: &mut Desk) -> std::sync::Arc<Functions> {
    let trap = |(name, touch): (&'static str, Touch)| FunctionRow {
        name: name.into(),
        syntax: name.into(),
        synopsis: "A trap.".into(),
        body: Body::Native { read: Some(read_trap), write: Some(write_trap) },
        reach: Reach::of(touch, touch),
    };
    let mut tables = apps::table::tables();
    tables.functions = std::sync::Arc::new((*tables.functions).clone().with(TRAPS.map(trap)));
    let (program, _) = sim::parse_dialplan(DIALPLAN, &tables);
    desk.world.shard.core.borrow_mut().program = std::sync::Arc::new(program);
    CAUGHT.set(0);
    tables.functions
}

/// Every function, read, written and substituted, with calls of traps wherever it may take the name of a variable: for
/// every kind of user. The names of functions come from the table, so that a new one is in this test.
#[test]
fn no_function_inside_another_reaches_further_than_whoever_asks_may() {
    let mut desk = Desk::new("inside");
    let functions = set_traps(&mut desk);
    let channel = desk.call("alice", "100");
    desk.pass_to(10);
    let shard = desk.world.shard.clone();
    let system = Rights { sets: true, system: true, outside: false };
    for (user, rights) in [("who reads", Rights::READS), ("who calls", Rights::CALLS), ("system", system)] {
        let call = apps::Call::new(call::Chan::new(shard.clone(), channel)).with_rights(rights);
        let names = || {
            let core = shard.core.borrow();
            let vars = core.get(channel).map(|channel| {
                channel.vars.iter().map(|(_, name, value)| format!("{name}={value}")).collect::<Vec<_>>()
            });
            vars.unwrap_or_default()
        };
        let before = names();
        for (trap, touch) in TRAPS {
            let reached = |how: &str, text: &str| {
                let caught = CAUGHT.take();
                let may = if how == "assign" {
                    rights.may_write(touch) || rights.may_read(touch)
                } else {
                    rights.may_read(touch)
                };
                assert!(caught == 0 || may, "{user}: {how} {text} reached {trap}");
            };
            for row in functions.iter().filter(|row| !row.name.starts_with("TRAP_")) {
                let outer = &row.name;
                for inner in [
                    format!("{trap}(a)"),
                    format!("{trap}(a),b,1"),
                    format!("a,{trap}(b),1"),
                    format!("1,2,{trap}(b)"),
                    format!("{trap}(a)=1"),
                    format!("${{{trap}(a)}}"),
                    format!("CUT({trap}(a),x,1),x,1"),
                ] {
                    let text = format!("{outer}({inner})");
                    call.read(&text);
                    reached("read", &text);
                    call.expand(&format!("${{{text}}}"));
                    reached("expand", &text);
                    call.assign(&text, &format!("${{{trap}(a)}},{trap}(b)"));
                    reached("assign", &text);
                }
            }
        }
        assert!(rights.sets || names() == before, "{user} has set something");
    }
    // The traps do spring where they may be reached.
    let call = apps::Call::new(call::Chan::new(shard, channel));
    assert_eq!(call.read("CUT(TRAP_PROGRAM(a),-,1)"), "caught");
    assert_eq!(CAUGHT.take(), 1);
}

/// The doors by which text of users comes to be evaluated: each hands the rights of its user on.
#[test]
fn every_door_evaluates_with_the_rights_of_its_user() {
    let mut desk = Desk::new("doors");
    desk.world.phone("bob", Phone { acts: vec![(1, Act::Answer)], refuses: None });
    set_traps(&mut desk);
    desk.call("alice", "120");
    desk.pass_to(10);
    let on = "|Channel: SIM/alice-00000000";
    let mut at = 10;
    for (user, trap, doors) in [
        ("reads", "TRAP_SETS", "get status"),
        ("reads", "TRAP_OUTSIDE", "get status"),
        ("calls", "TRAP_BEYOND", "get status set originate data"),
        ("calls", "TRAP_OUTSIDE", "get status set originate data"),
        ("steers", "TRAP_OUTSIDE", "agi"),
        ("steers", "TRAP_EVALUATES", "agi"),
        // A class opens nothing that `live_dangerously` keeps shut; only who originates programs may have text run by them.
        ("all", "TRAP_OUTSIDE", "get status set originate agi"),
        ("all", "TRAP_PROGRAM", "get status set originate agi"),
    ] {
        desk.login(1, user);
        let name = format!("CUT({trap}(a),b,1)");
        for door in doors.split(' ') {
            let acts = match door {
                "get" => vec![format!("Getvar|Variable: {name}"), format!("Getvar{on}|Variable: {name}")],
                "status" => vec![format!("Status{on}|Variables: {name}")],
                "set" => vec![
                    format!("Setvar{on}|Variable: ARRAY({trap}(a))|Value: 1"),
                    format!("Setvar{on}|Variable: PUSH({trap}(a))|Value: 1"),
                ],
                "originate" => vec![format!(
                    "Originate|Async: true|Channel: SIM/bob|Application: NoOp|Variable: ARRAY({trap}(a))=1"
                )],
                // The name may be computed, too.
                "data" => [format!("${{{name}}}"), format!("${{${{PASSTHRU({trap})}}(a)}}")]
                    .map(|data| {
                        format!("Originate|Async: true|Channel: SIM/bob|Application: NoOp|Data: {data}")
                    })
                    .to_vec(),
                _ => vec![
                    format!("AGI{on}|Command: GET VARIABLE {name}"),
                    format!("AGI{on}|Command: GET FULL VARIABLE ${{{name}}}"),
                    format!("AGI{on}|Command: GET FULL VARIABLE ${{{name}}} SIM/alice-00000000"),
                    format!("AGI{on}|Command: SET VARIABLE ARRAY({trap}(a)) 1"),
                ],
            };
            for act in acts {
                let answer = desk.act(1, &act);
                at += 2_000;
                desk.pass_to(at);
                assert_eq!(CAUGHT.take(), 0, "{user}: {act}");
                assert!(!answer.contains("caught"), "{user}: {act}: {answer}");
            }
        }
        desk.act(1, "Logoff");
    }
}

fn entries(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Processes that threads of this test's own have started.
fn children() -> usize {
    let own = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    own.split_whitespace().count()
}

#[test]
fn a_site_that_lives_dangerously_lets_every_user_reach_every_function() {
    let mut desk = Desk::new("dangerously");
    desk.login(1, "calls");
    assert!(desk.act(1, "Getvar|Variable: ENV(HOME)").contains("Permission denied for"));
    desk.world.settings(|settings| settings.live_dangerously = true);
    assert!(desk.act(1, "Getvar|Variable: ENV(HOME)").starts_with("Response: Success"));
}

#[test]
fn names_in_both_tables_are_unique_and_every_row_says_something() {
    let mut names: Vec<String> = actions().map(|row| row.name.to_ascii_lowercase()).collect();
    names.extend(EVENTS.iter().map(|row| format!("event {}", row.name)));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    for row in actions() {
        assert!(row.synopsis.ends_with('.'), "{}", row.name);
        assert!(row.fields.iter().all(|field| !field.text.is_empty()), "{}", row.name);
    }
}

/// With `UPDATE_DOCS=1` in the environment the page is written anew.
#[test]
fn the_manual_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manager.md");
    let page = manual();
    for name in actions().map(|row| format!("### {}\n", row.name)) {
        assert!(page.contains(&name), "{name}");
    }
    for name in EVENTS.iter().map(|row| format!("| {} |", row.name)) {
        assert!(page.contains(&name), "{name}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let line = written.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(written == page, "docs/manager.md is behind the tables, first at {line:?}: set UPDATE_DOCS=1");
}
