//! What is written down: the internal database, call records, the journal, the log.

mod common;

use call::{Cdr, Level};
use common::Scratch;
use rusqlite::{Connection, TransactionBehavior};
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::astdb::{AstDb, FILE_NAME, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use store::cdr::{CdrSink, Line, Row, Sink};
use store::config::cdr::{CdrCsv, CdrTable};
use store::config::logger::{Channel, Formatter, Levels, LogLevel, Logger, Rotate, Target};
use store::journal::{AppendError, Journal, RECORD_BYTES_MAX, Replay};
use store::log::{ADDED_MAX, LogSink};

fn rows(path: &std::path::Path) -> Vec<(String, String)> {
    let connection = Connection::open(path).unwrap();
    let mut query = connection.prepare("SELECT key, value FROM astdb ORDER BY key").unwrap();
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[test]
fn astdb_keeps_what_asterisk_wrote_and_asterisk_finds_what_we_write() {
    let dir = Scratch::new("astdb");
    let path = dir.0.join(FILE_NAME);
    let theirs = Connection::open(&path).unwrap();
    theirs
        .execute_batch(
            "CREATE TABLE astdb(key VARCHAR(256), value VARCHAR(256), PRIMARY KEY(key));
             INSERT INTO astdb VALUES('/cidname/100', 'Ann'), ('/registrar/contact/x', '{\"a\":1}'), ('/n/1', 42);",
        )
        .unwrap();
    drop(theirs);
    let mut db = AstDb::open(&path).unwrap();
    assert_eq!(db.get("cidname", "100"), Some("Ann"));
    assert_eq!(db.get("n", "1"), Some("42"), "whatever the column's type");
    assert_eq!(db.get("registrar", "contact/x"), Some("{\"a\":1}"));
    assert!(db.put("cidname", "100", "Anna") && db.put("new", "key/with/slashes", ""));
    assert_eq!(db.get("cidname", "100"), Some("Anna"), "at once");
    assert!(db.delete("n", "1") && !db.delete("n", "1"));
    drop(db);
    let expected =
        [("/cidname/100", "Anna"), ("/new/key/with/slashes", ""), ("/registrar/contact/x", "{\"a\":1}")];
    assert_eq!(rows(&path), expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn astdb_trees_end_at_a_slash() {
    let dir = Scratch::new("astdb-tree");
    let mut db = AstDb::open(&dir.0.join(FILE_NAME)).unwrap();
    for (family, key) in [("a", "b"), ("a", "b/c"), ("a", "bc"), ("ab", "b"), ("A", "b")] {
        assert!(db.put(family, key, "v"));
    }
    let keys = |db: &AstDb, prefix: &str| db.under(prefix).map(|(key, _)| key.to_owned()).collect::<Vec<_>>();
    for (prefix, expected) in [
        ("", &["/A/b", "/a/b", "/a/b/c", "/a/bc", "/ab/b"][..]),
        ("/", &["/A/b", "/a/b", "/a/b/c", "/a/bc", "/ab/b"]),
        ("/a", &["/a/b", "/a/b/c", "/a/bc"]),
        ("/a/b", &["/a/b", "/a/b/c"]),
        ("/a/b/", &["/a/b", "/a/b/c"]),
        ("/x", &[]),
    ] {
        assert_eq!(keys(&db, prefix), expected, "{prefix:?}");
        assert_eq!(db.count(prefix), expected.len(), "{prefix:?}");
    }
    assert_eq!(db.delete_tree("a", "b"), 2);
    assert_eq!(db.delete_tree("a", ""), 1);
    assert_eq!(keys(&db, ""), ["/A/b", "/ab/b"], "case and neighbours stay");
    assert_eq!(db.delete_tree("", ""), 2);
    db.flush();
    assert_eq!((db.len(), db.waiting()), (0, 0));
    assert_eq!(rows(&dir.0.join(FILE_NAME)), []);
}

#[test]
fn astdb_refuses_what_is_over_its_bounds_and_a_file_that_is_no_database() {
    let dir = Scratch::new("astdb-bounds");
    let mut db = AstDb::open(&dir.0.join(FILE_NAME)).unwrap();
    let key = "k".repeat(KEY_BYTES_MAX - "/f/".len());
    assert!(db.put("f", &key, "v"));
    assert!(!db.put("f", &format!("{key}k"), "v"));
    assert!(!db.put("f", "v", &"v".repeat(VALUE_BYTES_MAX + 1)));
    assert_eq!(db.len(), 1);
    fs::write(dir.0.join("bad"), "no database, but longer than a header of one would have to be".repeat(20))
        .unwrap();
    let error = AstDb::open(&dir.0.join("bad")).unwrap_err();
    assert!(error.to_string().contains("bad: the internal database cannot be opened"), "{error}");
    assert!(!error.remedy().is_empty());
}

#[test]
fn astdb_order_of_writes_to_a_key_is_kept_over_many_batches() {
    let dir = Scratch::new("astdb-order");
    let mut db = AstDb::open(&dir.0.join(FILE_NAME)).unwrap();
    for n in 0..5_000 {
        assert!(db.put("count", &(n % 7).to_string(), &n.to_string()));
        if n % 3 == 0 {
            db.delete("count", &(n % 7).to_string());
        }
    }
    let map: Vec<_> = db.under("").map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    drop(db);
    assert_eq!(rows(&dir.0.join(FILE_NAME)), map);
}

#[test]
fn astdb_says_what_is_on_the_disk_and_rings_when_more_of_it_is() {
    let dir = Scratch::new("astdb-saved");
    let path = dir.0.join(FILE_NAME);
    let (bell, rings) = mpsc::channel();
    let mut db = AstDb::open_with(&path, move || bell.send(()).unwrap()).unwrap();
    assert!(db.is_saved(db.mark()), "there is nothing to save");
    // The disk stands still: nobody else gets at the file.
    let mut holder = Connection::open(&path).unwrap();
    let held = holder.transaction_with_behavior(TransactionBehavior::Exclusive).unwrap();
    assert!(db.put("f", "first", "1"));
    let first = db.mark();
    assert!(db.put("f", "second", "2") && db.delete("f", "first"));
    let all = db.mark();
    assert!(!db.is_saved(first) && !db.is_saved(all));
    assert_eq!(rings.try_recv(), Err(TryRecvError::Empty));
    held.commit().unwrap();
    while !db.is_saved(all) {
        rings.recv_timeout(Duration::from_secs(60)).expect("whoever has asked in vain is told");
    }
    assert!(db.is_saved(first), "what was written before is there, too");
    assert_eq!(rows(&path), [("/f/second".to_owned(), "2".to_owned())]);
    // What is refused is nothing to wait for.
    assert!(!db.put("f", "long", &"v".repeat(VALUE_BYTES_MAX + 1)));
    assert_eq!(db.mark(), all);
    // Each that asks in vain is told, however often others have been.
    for n in 0..200 {
        assert!(db.put("f", "count", &n.to_string()));
        let mark = db.mark();
        while !db.is_saved(mark) {
            rings.recv_timeout(Duration::from_secs(60)).expect("it is told each time");
        }
        assert_eq!(rows(&path)[0].1, n.to_string());
    }
}

fn record(src: &str, account: &str) -> Cdr {
    Cdr { src: src.into(), account: account.into(), ..Cdr::default() }
}

#[test]
fn call_records_are_on_disk_when_they_count_as_written() {
    let dir = Scratch::new("cdr");
    let mut sink = CdrSink::start(&dir.0, &CdrCsv::default()).unwrap();
    for n in 1..=100 {
        assert_eq!(sink.write(record(&n.to_string(), if n % 2 == 0 { "even" } else { "" })), Some(n));
    }
    while sink.waiting() > 0 {
        std::thread::yield_now();
    }
    let master = fs::read_to_string(dir.0.join("cdr-csv/Master.csv")).unwrap();
    let sources: Vec<_> = master.lines().map(|line| line.split(',').nth(1).unwrap().to_owned()).collect();
    assert_eq!(sources, (1..=100).map(|n| format!("\"{n}\"")).collect::<Vec<_>>(), "in order, each once");
    assert_eq!(fs::read_to_string(dir.0.join("cdr-csv/even.csv")).unwrap().lines().count(), 50);
    sink.write(record("last", ""));
    drop(sink);
    let master = fs::read_to_string(dir.0.join("cdr-csv/Master.csv")).unwrap();
    assert!(master.lines().last().unwrap().contains("\"last\""), "the end of the process waits for the last");
}

#[test]
fn call_records_wait_in_memory_while_the_disk_refuses() {
    let dir = Scratch::new("cdr-full");
    // A file where the folder should be stands for a disk that refuses.
    fs::write(dir.0.join("cdr-csv"), "").unwrap();
    let mut sink = CdrSink::start(&dir.0, &CdrCsv::default()).unwrap();
    sink.write(record("1", ""));
    let complaint = loop {
        match sink.trouble() {
            Some(complaint) => break complaint,
            None => std::thread::yield_now(),
        }
    };
    assert!(complaint.contains("Master.csv: cannot be written"), "{complaint}");
    sink.write(record("2", ""));
    assert_eq!((sink.written(), sink.waiting(), sink.lost()), (0, 2, 0));
    fs::remove_file(dir.0.join("cdr-csv")).unwrap();
    while sink.waiting() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(dir.0.join("cdr-csv/Master.csv")).unwrap().lines().count(), 2);
}

#[test]
fn lines_of_the_site_go_to_their_files_each_record_one_line() {
    let dir = Scratch::new("cdr-lines");
    let mut sink = Sink::<Line>::start(&dir.0).unwrap();
    for (file, text) in [("Master.csv", "a,1"), ("day/one.csv", "x"), ("Master.csv", "b\r\nforged,2")] {
        assert!(sink.write(Line { file: file.into(), text: text.into() }).is_some());
    }
    drop(sink);
    let read = |name: &str| fs::read_to_string(dir.0.join("cdr-custom").join(name)).unwrap();
    assert_eq!((read("Master.csv").as_str(), read("day/one.csv").as_str()), ("a,1\nb  forged,2\n", "x\n"));
}

fn table(columns: &[&str]) -> CdrTable {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    CdrTable { table: "call \"log\"".into(), columns, values: Vec::new(), busy_timeout: 1_000 }
}

/// All rows of the table, each as its columns in text.
fn table_rows(folder: &std::path::Path) -> Vec<Vec<String>> {
    let db = Connection::open(folder.join("master.db")).unwrap();
    let mut query = db.prepare("SELECT * FROM \"call \"\"log\"\"\" ORDER BY AcctId").unwrap();
    let columns = query.column_count();
    let rows = query.query_map([], |row| {
        (1..columns).map(|n| row.get::<_, Option<String>>(n).map(Option::unwrap_or_default)).collect()
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn rows_go_to_a_table_that_is_made_and_widened_when_needed() {
    let dir = Scratch::new("cdr-table");
    let mut sink = Sink::<Row>::start(&dir.0, &table(&["src", "dst"])).unwrap();
    let evil = "x'); DROP TABLE \"call \"\"log\"\"\"; --";
    for row in [["1", "2"], ["3", evil]] {
        assert!(sink.write(row.map(str::to_owned).to_vec()).is_some());
    }
    while sink.waiting() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(table_rows(&dir.0), [["1", "2"], ["3", evil]], "on the disk when it counts as written");
    drop(sink);
    let mut sink = Sink::<Row>::start(&dir.0, &table(&["src", "user field", "DST"])).unwrap();
    assert!(sink.write(["4", "new", "5"].map(str::to_owned).to_vec()).is_some());
    drop(sink);
    assert_eq!(table_rows(&dir.0), [["1", "2", ""], ["3", evil, ""], ["4", "5", "new"]]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(dir.0.join("master.db")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o007, 0, "not for everyone to read");
}

#[test]
fn rows_wait_in_memory_while_the_database_refuses() {
    let dir = Scratch::new("cdr-table-full");
    fs::create_dir(dir.0.join("master.db")).unwrap();
    let mut sink = Sink::<Row>::start(&dir.0, &table(&["src"])).unwrap();
    sink.write(vec!["1".into()]);
    let complaint = loop {
        match sink.trouble() {
            Some(complaint) => break complaint,
            None => std::thread::yield_now(),
        }
    };
    assert!(complaint.contains("master.db: cannot be written"), "{complaint}");
    assert_eq!((sink.written(), sink.waiting(), sink.lost()), (0, 1, 0));
    fs::remove_dir(dir.0.join("master.db")).unwrap();
    while sink.waiting() > 0 {
        std::thread::yield_now();
    }
    // Who moves the file away gets the next records in a new one.
    fs::rename(dir.0.join("master.db"), dir.0.join("old.db")).unwrap();
    sink.write(vec!["2".into()]);
    drop(sink);
    assert_eq!(table_rows(&dir.0), [["2"]]);
}

#[test]
fn a_journal_gives_back_what_was_appended() {
    let dir = Scratch::new("journal");
    let stem = dir.0.join("registrations");
    let (mut journal, replay) = Journal::open(&stem).unwrap();
    assert_eq!(replay, Replay::default());
    for record in ["one", "", "three"] {
        journal.append(record.as_bytes()).unwrap();
    }
    assert!(matches!(journal.append(&vec![0; RECORD_BYTES_MAX + 1]), Err(AppendError::TooLong(_))));
    // Another reader sees the records before anything is closed: they outlive the process.
    let (_, replay) = Journal::open(&stem).unwrap();
    assert_eq!(replay.records, [&b"one"[..], b"", b"three"]);
    drop(journal);
    // A crash cut the last record.
    let log = dir.0.join("registrations.0.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 2]).unwrap();
    let (mut journal, replay) = Journal::open(&stem).unwrap();
    assert_eq!((replay.records.len(), replay.torn_bytes), (2, 11));
    journal.append(b"four").unwrap();
    drop(journal);
    let (_, replay) = Journal::open(&stem).unwrap();
    assert_eq!(replay.records, [&b"one"[..], b"", b"four"], "the torn end is gone");
    assert_eq!(replay.torn_bytes, 0);
}

#[test]
fn a_journal_compacts_to_what_is_alive() {
    let dir = Scratch::new("journal-compact");
    let stem = dir.0.join("r");
    let (mut journal, _) = Journal::open(&stem).unwrap();
    for n in 0..20_000_u32 {
        journal
            .append(format!("contact {} and enough text to make the log grow", n % 10).as_bytes())
            .unwrap();
    }
    assert!(journal.wants_compaction(1_000));
    assert!(journal.compact([&b"a"[..], b"b"]));
    assert!(!journal.wants_compaction(1_000));
    journal.append(b"c").unwrap();
    drop(journal);
    let (_, replay) = Journal::open(&stem).unwrap();
    assert_eq!(replay.records, [b"a", b"b", b"c"]);
    let mut files: Vec<_> =
        fs::read_dir(&dir.0).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["r.1.base", "r.1.log"], "the old log is gone");
}

#[test]
fn a_journal_whose_base_was_never_finished_still_has_everything() {
    let dir = Scratch::new("journal-crash");
    let stem = dir.0.join("r");
    let (mut journal, _) = Journal::open(&stem).unwrap();
    journal.append(b"old").unwrap();
    assert!(journal.compact([&b"old"[..]]));
    journal.append(b"new").unwrap();
    drop(journal);
    // The state of a crash between the new log and the base: the old log is there, the base is not.
    fs::rename(dir.0.join("r.1.base"), dir.0.join("r.1.new")).unwrap();
    let log = fs::read(dir.0.join("r.1.log")).unwrap();
    fs::write(dir.0.join("r.0.log"), &log[..8]).unwrap();
    let (mut first, _) = {
        fs::remove_file(dir.0.join("r.1.log")).unwrap();
        Journal::open(&stem).unwrap()
    };
    first.append(b"old").unwrap();
    drop(first);
    fs::write(dir.0.join("r.1.log"), log).unwrap();
    let (_, replay) = Journal::open(&stem).unwrap();
    assert_eq!(replay.records, [b"old", b"new"]);
}

/// A console that remembers.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn channel(target: Target, levels: &[LogLevel], verbose: Option<u8>) -> Channel {
    let mut set = Levels::default();
    levels.iter().for_each(|level| set.insert(*level));
    Channel { target, formatter: Formatter::Default, levels: set, verbose }
}

#[test]
fn log_lines_go_where_the_configuration_says() {
    let dir = Scratch::new("log");
    let screen = Screen::default();
    let channels = vec![
        channel(Target::Console, &[LogLevel::Error, LogLevel::Verbose], None),
        channel(
            Target::File("full".into()),
            &[LogLevel::Notice, LogLevel::Error, LogLevel::Verbose],
            Some(3),
        ),
    ];
    let logger = Logger { channels, ..Logger::default() };
    let (sink, log) = LogSink::start(&logger, &dir.0, Some(Box::new(screen.clone()))).unwrap();
    sink.set_verbose(1);
    for (level, enabled) in [
        (Level::Error, true),
        (Level::Notice, true),
        (Level::Warning, false),
        (Level::Verbose(3), true),
        (Level::Verbose(4), false),
        (Level::Debug(1), false),
        (Level::Security, false),
    ] {
        assert_eq!(log.enabled(level), enabled, "{level:?}");
        log.line(level, "test", &format!("{level:?}"));
    }
    log.line(Level::Verbose(1), "test", "loud\nand forged");
    sink.flush();
    let seen = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    assert_eq!(seen.lines().count(), 2, "{seen}");
    assert!(seen.ends_with("loud\\nand forged\n"), "{seen}");
    let full = fs::read_to_string(dir.0.join("full")).unwrap();
    let ends: Vec<_> = full.lines().map(|line| line.rsplit("test: ").next().unwrap()).collect();
    assert_eq!(ends, ["Error", "Notice", "Verbose(3)", "loud\\nand forged"]);
}

#[test]
fn log_files_rotate_by_their_strategy() {
    for (name, strategy, files) in [
        ("sequential", Rotate::Sequential, &[("full", "3"), ("full.0", "1"), ("full.1", "2")][..]),
        ("rotate", Rotate::Rotate, &[("full", "3"), ("full.0", "2"), ("full.1", "1")]),
        ("none", Rotate::None, &[("full", "123")]),
    ] {
        let dir = Scratch::new(&format!("log-{name}"));
        let mut logger = Logger::default();
        logger.general.rotatestrategy = strategy;
        logger.channels = vec![channel(Target::File("full".into()), &[LogLevel::Error], None)];
        let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
        for n in ["1", "2", "3"] {
            log.line(Level::Error, "t", n);
            if n != "3" {
                sink.rotate();
            }
        }
        sink.flush();
        for (file, expected) in files {
            let text = fs::read_to_string(dir.0.join(file)).unwrap();
            let numbers: String = text.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
            assert_eq!(&numbers, expected, "{name} {file}");
        }
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), files.len(), "{name}");
    }
}

/// A socket as the system's log has one.
fn daemon(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn heard(daemon: &UnixDatagram) -> String {
    let mut buffer = [0; 16_384];
    let length = daemon.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[test]
fn lines_go_to_the_systems_log_by_facility_and_level_and_a_daemon_that_comes_again_is_found() {
    let dir = Scratch::new("log-syslog");
    let path = dir.0.join("dev-log");
    let mut findings = conf::Findings::new();
    let text = format!(
        "[general]\nsyslog_socket={}\n[logfiles]\nsyslog.local0 => notice,warning,error\n\
         syslog.nothing => error\nfull => warning\n",
        path.display()
    );
    let source = conf::Memory::new().with("logger.conf", text.as_str());
    let file = conf::load(&source, "logger.conf", conf::Options::default(), &mut findings).unwrap();
    let logger = Logger::read(&file, &mut findings);
    assert_eq!(logger.channels.len(), 2);
    assert_eq!(findings.iter().filter(|found| found.message.contains("syslog.nothing")).count(), 1);
    let first = daemon(&path);
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    log.line(Level::Verbose(1), "t", "unheard");
    log.line_of_call(Some(0xA), Level::Warning, "app_dial", "two\nlines");
    let line = heard(&first);
    assert!(line.starts_with("<132>"), "{line}");
    let rest = format!("asterisk[{}]: WARNING[C-0000000a]: app_dial: two\\nlines", std::process::id());
    assert!(line.ends_with(&rest), "{line}");
    // The daemon goes: what is logged meanwhile is lost to it, counted and told, and nothing else waits.
    drop(first);
    fs::remove_file(&path).unwrap();
    log.line(Level::Error, "t", "lost");
    log.line(Level::Warning, "t", "written");
    sink.flush();
    assert!(fs::read_to_string(dir.0.join("full")).unwrap().ends_with("t: written\n"));
    let told = sink.trouble().unwrap();
    assert!(told.contains("dev-log: cannot be written"), "{told}");
    let second = daemon(&path);
    log.line(Level::Notice, "t", "back");
    assert!(heard(&second).ends_with("]: NOTICE: t: back"));
    sink.flush();
    let told = sink.trouble().unwrap();
    assert!(told.contains("can be written again; 2 lines were lost"), "{told}");
    drop(sink);
}

#[test]
fn a_command_runs_after_each_rotation_and_knows_the_file_whatever_its_name() {
    let dir = Scratch::new("log-follow-up");
    let mut logger = Logger::default();
    logger.general.exec_after_rotate = "cp \"${filename}.0\" \"${filename}.copy\"".to_owned();
    logger.channels = vec![channel(Target::File("a $(touch b) full".into()), &[LogLevel::Error], None)];
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    log.line(Level::Error, "t", "kept");
    sink.rotate();
    sink.flush();
    let copy = dir.0.join("a $(touch b) full.copy");
    let since = Instant::now();
    while !fs::read_to_string(&copy).is_ok_and(|text| text.ends_with("t: kept\n")) {
        assert!(since.elapsed() < Duration::from_secs(60), "no copy");
        std::thread::yield_now();
    }
    assert!(!dir.0.join("b").exists(), "no name is a command");
    drop(sink);
}

#[test]
fn files_may_be_named_after_the_machine() {
    let dir = Scratch::new("log-host");
    let mut logger = Logger::default();
    logger.general.appendhostname = true;
    logger.channels = vec![channel(Target::File("full".into()), &[LogLevel::Error], None)];
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    log.line(Level::Error, "t", "here");
    sink.flush();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let file = dir.0.join(format!("full.{}", host.trim()));
    assert!(fs::read_to_string(file).unwrap().ends_with("t: here\n"));
}

#[test]
fn log_lines_over_the_limit_are_dropped_counted_and_told() {
    let dir = Scratch::new("log-limit");
    let mut logger = Logger::default();
    logger.general.logger_queue_limit = 1;
    logger.channels = vec![channel(Target::File("full".into()), &[LogLevel::Error, LogLevel::Warning], None)];
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    for n in 0..50_000 {
        log.line(Level::Error, "t", &n.to_string());
    }
    sink.flush();
    sink.flush();
    let full = fs::read_to_string(dir.0.join("full")).unwrap();
    let written = full.lines().filter(|line| line.contains("ERROR")).count() as u64;
    assert_eq!(written + sink.dropped(), 50_000);
    assert_eq!(full.contains("log lines were dropped"), sink.dropped() > 0);
}

#[test]
fn a_new_log_configuration_holds_at_once() {
    let dir = Scratch::new("log-configure");
    let channels = vec![channel(Target::File("a".into()), &[LogLevel::Error], None)];
    let mut logger = Logger { channels, ..Logger::default() };
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    log.line(Level::Error, "t", "first");
    logger.channels = vec![channel(Target::File("b".into()), &[LogLevel::Notice], None)];
    sink.configure(logger);
    assert!(!log.enabled(Level::Error) && log.enabled(Level::Notice));
    log.line(Level::Notice, "t", "second");
    sink.flush();
    assert!(fs::read_to_string(dir.0.join("a")).unwrap().ends_with("first\n"));
    assert!(fs::read_to_string(dir.0.join("b")).unwrap().ends_with("second\n"));
}

#[test]
fn a_log_file_that_was_added_by_hand_stays_through_reloads_until_it_is_removed() {
    let dir = Scratch::new("log-added");
    let file = |name: &str| Target::File(name.into());
    let channels = vec![channel(file("full"), &[LogLevel::Error], None)];
    let logger = Logger { channels, ..Logger::default() };
    let (sink, log) = LogSink::start(&logger, &dir.0, None).unwrap();
    assert!(!log.enabled(Level::Notice));
    assert!(sink.add(Channel::named("extra", "[json]notice").unwrap()));
    log.line(Level::Notice, "t", "one");
    sink.configure(logger);
    log.line(Level::Notice, "t", "two");
    log.line(Level::Error, "t", "bad");
    // A file of logger.conf can be told to hear something else for a while.
    assert!(sink.add(Channel::named("full", "warning").unwrap()));
    log.line(Level::Error, "t", "unheard");
    log.line(Level::Warning, "t", "heard");
    assert!(sink.remove(&file("full")) && !sink.remove(&file("full")));
    assert!(sink.remove(&file("extra")));
    log.line(Level::Notice, "t", "three");
    log.line(Level::Error, "t", "again");
    sink.flush();
    let read = |name: &str| fs::read_to_string(dir.0.join(name)).unwrap();
    let ends = |name: &str| {
        read(name).lines().map(|line| line.rsplit("t: ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ends("full"), ["bad", "heard", "again"]);
    let extra = read("extra");
    assert_eq!(extra.lines().count(), 2, "{extra}");
    assert!(extra.lines().all(|line| line.starts_with('{')), "{extra}");
    for n in 0..ADDED_MAX {
        assert!(sink.add(Channel::named(&format!("f{n}"), "error").unwrap()));
    }
    assert!(!sink.add(Channel::named("more", "error").unwrap()));
    for (name, levels) in
        [("../x", "error"), ("/etc/x", "error"), (".x", "error"), ("", "error"), ("x", "loud"), ("x", "")]
    {
        assert!(Channel::named(name, levels).is_err(), "{name} {levels}");
    }
}
