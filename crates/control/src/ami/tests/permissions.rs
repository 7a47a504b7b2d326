//! Who may do what, and that the tables say so.

use std::path::Path;

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
            assert_eq!(
                desk.act(2, row.name),
                error(&format!("{} not specified", field.name)),
                "{}",
                row.name
            );
        }
    }
    let unknown = "Invalid/unknown command: Nonsense. Use Action: ListCommands to show available commands.";
    assert_eq!(desk.act(2, "Nonsense"), error(unknown));
    assert_eq!(desk.bytes(2, b"X: y\r\n\r\n"), error("Missing action in request"));
    let all = desk.act(2, "ListCommands");
    assert_eq!(messages(&all)[0].len(), 1 + actions().count());
    let few = desk.act(1, "ListCommands");
    assert!(few.contains("Ping: ") && !few.contains("Originate: "), "{few}");
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
    let of = |allowed: fn(&str) -> bool, has: fn(&dialplan::FunctionRow) -> bool| -> Vec<&str> {
        let mut names: Vec<&str> = tables
            .functions
            .iter()
            .filter(|row| has(row) && !allowed(&row.name))
            .map(|row| &*row.name)
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        of(capability::is_plain_to_read, dialplan::FunctionRow::readable),
        [
            "AST_CONFIG",
            "CONFBRIDGE",
            "CURL",
            "CURLOPT",
            "DB_DELETE",
            "ENUMLOOKUP",
            "ENUMQUERY",
            "ENV",
            "EVAL",
            "EVAL_EXTEN",
            "FILE",
            "FILE_COUNT_LINE",
            "FILE_FORMAT",
            "IMPORT",
            "LOCK",
            "MASTER_CHANNEL",
            "MINIVMACCOUNT",
            "MINIVMCOUNTER",
            "ODBC",
            "ODBC_FETCH",
            "REALTIME",
            "REALTIME_DESTROY",
            "REALTIME_FIELD",
            "REALTIME_HASH",
            "SHELL",
            "STAT",
            "TRYLOCK",
            "UNLOCK",
            "VM_INFO",
        ]
    );
    assert_eq!(
        of(capability::is_plain_to_write, dialplan::FunctionRow::writable),
        [
            "CONFBRIDGE",
            "CURLOPT",
            "DB",
            "DB_DELETE",
            "DIALGROUP",
            "EXPORT",
            "MASTER_CHANNEL",
            "MINIVMCOUNTER",
            "ODBC",
            "QUEUE_MEMBER",
            "QUEUE_MEMBER_PENALTY",
            "REALTIME",
            "REALTIME_DESTROY",
            "REALTIME_FIELD",
            "REALTIME_STORE"
        ]
    );
    for act in [
        "Getvar|Variable: ENV(HOME)",
        "Getvar|Variable: file(/etc/passwd)",
        "Setvar|Variable: DB(a/b)|Value: 1",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${FILE(/etc/passwd)}",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${${a}(x)}",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${LEN(${ENV(HOME)})}",
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
                capability::is_plain_to_read(&row.name),
            ),
            (
                format!("Setvar{on}|Variable: {}({made})|Value: x", row.name),
                capability::is_plain_to_write(&row.name),
            ),
            (
                format!("Status{on}|Variables: {}({argument})", row.name),
                capability::is_plain_to_read(&row.name),
            ),
        ] {
            let answer = desk.act(1, &act);
            assert_eq!(!answer.contains("Permission denied for"), allowed, "{act}: {answer}");
            assert!(!answer.contains("caught"), "{act}: {answer}");
        }
        let act = format!(
            "Originate|Async: true|Channel: SIM/bob|Application: NoOp|Data: ${{{}({argument})}}",
            row.name
        );
        let refused = desk.act(1, &act).contains("Forbidden");
        assert_eq!(!refused, capability::is_plain_to_read(&row.name), "{act}");
    }
    for row in apps::table::applications() {
        for data in [made.as_str(), "f/k=x", "touch\u{20}made"] {
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
