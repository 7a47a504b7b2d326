//! Drivers that crash and hang, sources that are not there, programs that lie: each costs its own question, and no more.

#[path = "../../realtime/tests/common/mod.rs"]
mod common;
mod sources;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{LIMIT, Server, collect, open, raw, wait_for_answer};
use realtime::{
    Answer, Connection, Databases, Failure, Query, ResultSet, Source, Standing, Target, Ticket, Turned,
};
use rustix::io::{FdFlags, fcntl_setfd};
use sources::Sources;

fn submit(databases: &mut Databases, number: u64, query: Query) {
    databases.submit("db", Ticket { asker: 0, number }, query).unwrap();
}

/// The programs of ODBC that a thread of this test has started: `Databases` starts them on one of its own.
fn programs(of: &Path) -> BTreeSet<u32> {
    let own = std::process::id().to_string();
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(number) = process.file_name().to_string_lossy().parse() else { continue };
        let read = |name: &str| std::fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let (line, status) = (read("cmdline"), read("status"));
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        let is_gone = status.lines().any(|line| line.starts_with("State:") && line.contains('Z'));
        if line.trim_end_matches('\0') == of.display().to_string() && parent == Some(&own) && !is_gone {
            found.insert(number);
        }
    }
    found
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").arg(name).arg(process.to_string()).status().unwrap().success());
}

/// A program of this test's own name, so that the programs of other tests are not taken for it.
fn named(sources: &Sources, connection: &mut Connection) -> PathBuf {
    let path = sources.place().join("strowger-odbc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_strowger-odbc"), &path).unwrap();
    program(connection).program = Some(path.clone());
    path
}

fn program(connection: &mut Connection) -> &mut Source {
    let Target::Odbc(source) = &mut connection.target else { panic!("no source of ODBC") };
    source
}

fn one(text: &str) -> Result<Answer, Failure> {
    Ok(Answer::Set(ResultSet { columns: vec!["x".into()], rows: vec![vec![Some(text.into())]], changed: 0 }))
}

/// Waits for a standing of the database.
fn until(databases: &mut Databases, turned: &mut Vec<Turned>, what: &str, is_it: impl Fn(&Standing) -> bool) {
    let (end, mut answers) = (Instant::now() + LIMIT, Vec::new());
    while !turned.iter().any(|turned| is_it(&turned.standing)) {
        assert!(Instant::now() < end, "never {what}: {turned:?}");
        databases.wait(Duration::from_secs(1));
        databases.drain(&mut answers, turned);
    }
}

#[test]
fn a_driver_that_is_killed_costs_its_own_question_and_is_started_again() {
    let Some(sources) = Sources::for_driver("libmaodbc.so") else { return };
    let Some(server) = Server::mariadb() else { return };
    let mut connection = Connection { connections_max: 2, ..sources.connection(&server) };
    let path = named(&sources, &mut connection);
    let mut databases = open(connection);
    wait_for_answer(&mut databases, raw("SELECT 'up' AS x"));
    let first = programs(&path);
    assert_eq!(first.len(), 1, "a connection is a process");
    // One is at work when it is killed, and the other answers beside it.
    submit(&mut databases, 1, raw("SELECT SLEEP(30)"));
    submit(&mut databases, 2, raw("SELECT 'beside' AS x"));
    let (answers, _) = collect(&mut databases, 1);
    assert_eq!(answers, [(Ticket { asker: 0, number: 2 }, one("beside"))]);
    let busy = *first.first().unwrap();
    signal("-KILL", busy);
    let (answers, mut turned) = collect(&mut databases, 1);
    let Err(Failure::Broken { why, .. }) = &answers[0].1 else { panic!("{answers:?}") };
    assert!(why.contains("by signal 9"), "it is told what became of it: {why}");
    until(&mut databases, &mut turned, "down", |standing| matches!(standing, Standing::Down(_)));
    submit(&mut databases, 3, raw("SELECT 'still' AS x"));
    let (answers, more) = collect(&mut databases, 1);
    assert_eq!(answers[0].1, one("still"), "the other one answers on");
    turned.extend(more);
    until(&mut databases, &mut turned, "up again", |standing| *standing == Standing::Up);
    let later = programs(&path);
    assert!(!later.contains(&busy) && later.len() == 2, "{busy} is gone and another there: {later:?}");
    drop(databases);
    let end = Instant::now() + LIMIT;
    while !programs(&path).is_empty() {
        assert!(Instant::now() < end, "they end with the one that asks: {:?}", programs(&path));
        std::thread::yield_now();
    }
}

#[test]
fn a_driver_that_hangs_is_ended_when_its_question_s_time_is_over() {
    let Some(sources) = Sources::for_driver("libsqlite3odbc.so") else { return };
    let mut connection =
        Connection { query_within: Duration::from_millis(400), connections_max: 1, ..sources.file() };
    let path = named(&sources, &mut connection);
    let mut databases = open(connection);
    wait_for_answer(&mut databases, raw("SELECT 'up' AS x"));
    let first = programs(&path);
    let hanging = *first.first().unwrap();
    signal("-STOP", hanging);
    let hung = databases.ask("db", raw("SELECT 1"));
    assert!(matches!(hung, Err(Failure::Slow { .. })), "{hung:?}");
    assert_eq!(wait_for_answer(&mut databases, raw("SELECT 'again' AS x")), one("again").unwrap());
    let end = Instant::now() + LIMIT;
    while programs(&path).contains(&hanging) {
        assert!(Instant::now() < end, "the one that hangs is ended, and collected");
        std::thread::yield_now();
    }
}

#[test]
fn a_source_that_is_not_there_a_wrong_password_and_a_missing_driver_are_told_in_words() {
    let Some(sources) = Sources::for_driver("libsqlite3odbc.so") else { return };
    sources.file();
    let mut no_program = sources.source("pbx", "", "");
    program(&mut no_program).program = Some("/nonexistent/strowger-odbc".into());
    let cases = [
        ("no source", sources.source("nowhere", "", ""), "Data source name not found"),
        ("no program", no_program, "`make install` puts it there"),
        ("no driver", sources.source("Driver=/nonexistent.so;Database=/x", "", ""), "/nonexistent.so"),
    ];
    for (name, connection, words) in cases {
        let failure = open(connection).ask("db", raw("SELECT 1")).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
    }
    let Some(sources) = Sources::for_driver("libmaodbc.so") else { return };
    let Some(server) = Server::mariadb() else { return };
    let mut connection = sources.connection(&server);
    wait_for_answer(&mut open(connection.clone()), raw("SELECT 1"));
    program(&mut connection).password = "wr0ng-one".into();
    let failure = open(connection).ask("db", raw("SELECT 1")).unwrap_err();
    assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
    let told = failure.to_string();
    assert!(told.contains("Access denied") && !told.contains("wr0ng-one"), "{told}");
}

/// A program that does with its socket, which is its standard input, what this script says.
fn liar(folder: &Path, script: &str) -> Connection {
    let path = folder.join("liar");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let source = Source { dsn: "pbx".into(), program: Some(path), ..Source::default() };
    Connection {
        connect_within: Duration::from_secs(5),
        negative_cache: Duration::from_millis(250),
        ..Connection::new("db", Target::Odbc(source))
    }
}

#[test]
fn a_program_that_lies_or_ends_is_not_believed_and_costs_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    // A good beginning: `Connected` to a database called "x", which puts nothing around names.
    let hello = r"printf '\012\000\000\000C\001\000\000\000x\000\000\000\000' >&0; ";
    for (name, script, words) in [
        ("a frame of 4 GB", r"printf '\377\377\377\377R' >&0; exec cat", "a frame of 4294967295 bytes"),
        ("an unknown kind", r"printf '\001\000\000\000?' >&0; exec cat", "a frame of kind 63"),
        ("cut short", r"printf '\005\000\000\000CCCCC' >&0; exec cat", "ends too early"),
        (
            "done before it was asked",
            r"printf '\011\000\000\000D\0\0\0\0\0\0\0\0' >&0; exec cat",
            "first request",
        ),
        ("its last words", "echo it cannot go on >&2; exit 3", "with status 3: it cannot go on"),
        ("a signal", "kill -SEGV $$", "by signal 11"),
        ("no unixODBC", "echo x: libodbc.so.2: cannot open >&2; exit 127", "apt-get install unixodbc"),
    ] {
        let failure = open(liar(folder.path(), script)).ask("db", raw("SELECT 1")).unwrap_err();
        assert!(failure.is_passing(), "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
    }
    for (name, script, words) in [
        (
            "rows without an end",
            r"printf '\005\0\0\0R\377\377\377\377' >&0; exec cat",
            "a list of 4294967295",
        ),
        ("connected twice", r"printf '\012\0\0\0C\001\0\0\0x\0\0\0\0' >&0; exec cat", "connected twice"),
        ("an end in the middle", "exit 0", "with status 0"),
    ] {
        // What it is asked first is as long as the test's, and it reads that much before it goes on.
        let wait = "dd bs=1 count=1 <&0 >/dev/null 2>&1; ";
        let mut databases = open(liar(folder.path(), &format!("{hello}{wait}{script}")));
        let failure = databases.ask("db", raw("SELECT 1")).unwrap_err();
        assert!(failure.is_passing(), "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
    }
}

#[test]
fn a_program_that_never_answers_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = liar(folder.path(), "exec sleep 600");
    connection.connect_within = Duration::from_millis(300);
    let failure = open(connection).ask("db", raw("SELECT 1")).unwrap_err();
    assert!(
        matches!(&failure, Failure::Unreachable { why, .. } if why.contains("within 300 ms")),
        "{failure}"
    );
}

#[test]
fn the_program_has_no_descriptor_of_its_parent_and_no_password_on_its_command_line() {
    let Some(sources) = Sources::for_driver("libsqlite3odbc.so") else { return };
    let mut connection = sources.file();
    program(&mut connection).password = "s3cr3t".into();
    let path = named(&sources, &mut connection);
    // One that any program would inherit.
    let left_open = std::fs::File::open("/dev/zero").unwrap();
    fcntl_setfd(&left_open, FdFlags::empty()).unwrap();
    let mut databases = open(connection);
    wait_for_answer(&mut databases, raw("SELECT 1"));
    let process = *programs(&path).first().unwrap();
    let at = PathBuf::from(format!("/proc/{process}"));
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap_or_default();
    assert!(!read("cmdline").contains("s3cr3t"));
    // Only root may look at what another process has open, when that one shows no core.
    for open in std::fs::read_dir(at.join("fd")).into_iter().flatten().flatten() {
        let to = std::fs::read_link(open.path()).unwrap_or_default();
        assert!(!to.starts_with("/dev/zero"), "{open:?}");
    }
    let limits = read("limits");
    let of = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(of("Max core file size").split_whitespace().any(|word| word == "0"), "{limits}");
    assert!(of("Max open files").contains("64"), "{limits}");
    assert!(of("Max address space").contains("2147483648"), "{limits}");
    let status = read("status");
    assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"), "{status}");
}
