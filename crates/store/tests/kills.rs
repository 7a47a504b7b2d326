//! Records of calls, channel events and queues, and values of the internal database, while the process that writes them is
//! killed, again and again.

mod common;

use call::Cdr;
use common::Scratch;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use store::astdb::{AstDb, FILE_NAME};
use store::cdr::{CEL_FOLDER, CdrSink, Line, Row, Sink};
use store::config::cdr::{CdrCsv, CdrTable};

const CHILD: &str = "STROWGER_TEST_RECORDS_CHILD";
/// How often the process is killed.
const KILLS: u64 = 25;
/// Numbers of one process.
const RUN: u64 = 1_000_000;

fn table() -> CdrTable {
    let columns = ["number", "text"].map(str::to_owned).to_vec();
    CdrTable { table: "cdr".into(), columns, values: Vec::new(), busy_timeout: 1_000 }
}

fn options() -> CdrCsv {
    let mut options = CdrCsv::default();
    options.loguserfield = true;
    options
}

/// What stands in a record beside its number, of another length each time.
fn text(number: u64) -> String {
    let word = format!("{number} \"and, on\" ");
    word.repeat(1 + usize::try_from(number % 40).unwrap())
}

fn line(number: u64) -> String {
    format!("{number}|{}|end", text(number))
}

/// Writes records to all places until it is killed; says the number of each that is on the disk.
#[test]
#[ignore = "the process that the next test kills"]
fn writes_records_until_it_is_killed() {
    let Some(told) = std::env::var_os(CHILD) else { return };
    let told = told.into_string().unwrap();
    let (first, folder) = told.split_once(' ').unwrap();
    let (first, folder): (u64, &Path) = (first.parse().unwrap(), Path::new(folder));
    let mut csv = CdrSink::start(folder, &options()).unwrap();
    let mut rows = Sink::<Row>::start(folder, &table()).unwrap();
    let mut cel = Sink::<Line>::below(&folder.join(CEL_FOLDER)).unwrap();
    let mut queue_log = Sink::<Line>::below(folder).unwrap();
    let mut said = [0; 4];
    let mut burst = first;
    for number in first..first + RUN {
        let record = Cdr { src: number.to_string(), user_field: text(number), ..Cdr::default() };
        csv.write(record).unwrap();
        rows.write(vec![number.to_string(), text(number)]).unwrap();
        let whole = |file: &str| Line { file: file.into(), text: line(number) };
        cel.write(whole("Master.csv")).unwrap();
        queue_log.write(whole("queue_log")).unwrap();
        // Bursts of different lengths, so that kills meet short writes and long ones.
        if number < burst {
            continue;
        }
        burst = number + 1 + number % 701;
        while csv.written() + 2 < number - first {
            std::thread::yield_now();
            let written = [csv.written(), rows.written(), cel.written(), queue_log.written()];
            for ((place, written), said) in
                ["csv", "rows", "cel", "queue_log"].iter().zip(written).zip(&mut said)
            {
                for n in *said..written {
                    println!("written {place} {}", first + n);
                }
                *said = written;
            }
        }
    }
}

/// A process of its own that does what a test of this file does, from this number on.
fn writer(test: &str, first: u64, folder: &Scratch) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD, format!("{first} {}", folder.0.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn no_kill_loses_or_tears_a_record_that_was_said_to_be_written() {
    let folder = Scratch::new("kills");
    let mut random = base::Random::new(11);
    let places = ["csv", "rows", "cel", "queue_log"];
    let mut acknowledged: [BTreeSet<u64>; 4] = Default::default();
    for run in 0..KILLS {
        let first = run * RUN;
        let mut child = writer("writes_records_until_it_is_killed", first, &folder);
        // It dies in the middle of whatever it does after so many records.
        let (mut after, spin) = (1 + random.below(2000).cast_signed(), random.below(2_000_000));
        for told in BufReader::new(child.stdout.take().unwrap()).lines() {
            let told = told.unwrap();
            let Some((place, number)) =
                told.split_once("written ").and_then(|(_, told)| told.split_once(' '))
            else {
                continue;
            };
            let (place, number) = (places.iter().position(|name| *name == place), number.parse());
            let (Some(place), Ok(number)) = (place, number) else { continue };
            acknowledged[place].insert(number);
            after -= 1;
            if after == 0 {
                (0..spin).for_each(|_| std::hint::spin_loop());
                let _ = child.kill();
            }
        }
        child.wait().unwrap();
    }
    // The next process takes back what a kill has left of a line.
    let mut csv = CdrSink::start(&folder.0, &options()).unwrap();
    let last = KILLS * RUN;
    csv.write(Cdr { src: last.to_string(), user_field: text(last), ..Cdr::default() }).unwrap();
    for below in [folder.0.join(CEL_FOLDER), folder.0.clone()] {
        let mut sink = Sink::<Line>::below(&below).unwrap();
        let file = if below == folder.0 { "queue_log" } else { "Master.csv" };
        sink.write(Line { file: file.into(), text: line(last) }).unwrap();
    }
    drop(csv);
    let connection = Connection::open(folder.0.join("master.db")).unwrap();
    let mut query = connection.prepare("SELECT number, text FROM cdr").unwrap();
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let rows = rows.map(|row| {
        let (number, said): (String, String) = row.unwrap();
        let number = number.parse().unwrap();
        assert_eq!(said, text(number), "a row");
        number
    });
    let lines = |file: &str| {
        let read = fs::read_to_string(folder.0.join(file)).unwrap();
        assert!(read.ends_with('\n'), "{file}");
        read.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = |file: &str| {
        let numbers = lines(file).into_iter().map(|read| {
            let number = read.split('|').next().unwrap().parse().unwrap_or_else(|_| panic!("{file}: {read}"));
            assert_eq!(read, line(number), "{file}");
            number
        });
        numbers.collect::<Vec<u64>>()
    };
    let of_csv = lines("cdr-csv/Master.csv").into_iter().map(|read| {
        let number = read.split(',').nth(1).and_then(|src| src.trim_matches('"').parse().ok());
        let number = number.unwrap_or_else(|| panic!("Master.csv: {read}"));
        let expected = text(number).replace('"', "\"\"");
        assert!(read.ends_with(&format!(",\"{expected}\"")), "Master.csv: {read}");
        number
    });
    let found = [of_csv.collect(), rows.collect(), whole("cel-custom/Master.csv"), whole("queue_log")];
    for ((place, acknowledged), found) in places.iter().zip(&acknowledged).zip(found) {
        assert!(acknowledged.len() > 500, "{place}: {}", acknowledged.len());
        let once: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "{place}: none is there twice");
        let lost: Vec<&u64> = acknowledged.difference(&once).collect();
        assert!(lost.is_empty(), "{place} lost {lost:?}");
    }
}

/// Writes values to the internal database until it is killed; says the number of each that is on the disk.
#[test]
#[ignore = "the process that the next test kills"]
fn writes_values_until_it_is_killed() {
    let Some(told) = std::env::var_os(CHILD) else { return };
    let told = told.into_string().unwrap();
    let (first, folder) = told.split_once(' ').unwrap();
    let first: u64 = first.parse().unwrap();
    let (bell, rings) = channel();
    let ring = move || bell.send(()).unwrap_or_default();
    let mut db = AstDb::open_with(&Path::new(folder).join(FILE_NAME), ring).unwrap();
    let mut number = first;
    loop {
        // Bursts of different lengths, so that kills meet short transactions and long ones.
        for _ in 0..1 + number % 97 {
            number += 1;
            assert!(db.put("kept", &number.to_string(), &text(number)));
            // What is deleted is gone for good, too.
            assert!(db.put("gone", &number.to_string(), "") && db.delete("gone", &number.to_string()));
        }
        let mark = db.mark();
        while !db.is_saved(mark) {
            rings.recv().unwrap();
        }
        println!("written values {number}");
    }
}

#[test]
fn no_kill_loses_a_value_that_was_said_to_be_saved() {
    let folder = Scratch::new("kills-astdb");
    let mut random = base::Random::new(12);
    let (mut kept, mut said) = (0, 0);
    for run in 0..KILLS {
        let first = run * RUN;
        let mut child = writer("writes_values_until_it_is_killed", first, &folder);
        let (mut after, spin) = (1 + random.below(30).cast_signed(), random.below(2_000_000));
        let mut last = first;
        for told in BufReader::new(child.stdout.take().unwrap()).lines() {
            let told = told.unwrap();
            let Some((_, number)) = told.split_once("written values ") else { continue };
            let Ok(number) = number.parse() else { continue };
            last = number;
            after -= 1;
            if after == 0 {
                (0..spin).for_each(|_| std::hint::spin_loop());
                let _ = child.kill();
            }
        }
        child.wait().unwrap();
        let db = AstDb::open(&folder.0.join(FILE_NAME)).unwrap();
        for number in first + 1..=last {
            let value = db.get("kept", &number.to_string());
            assert_eq!(value, Some(text(number).as_str()), "{number} of {last}");
            assert!(!db.exists("gone", &number.to_string()), "{number} of {last}");
        }
        (kept, said) = (db.count("/kept"), said + last - first);
    }
    assert!(said > 500, "{said}");
    assert!(kept as u64 >= said, "{kept} {said}");
}

#[test]
fn half_a_line_that_a_kill_has_left_is_taken_back_and_a_file_of_others_is_left_alone() {
    let long = format!("a\n{}", "x".repeat(300_000));
    for (name, before, expected) in [
        ("nothing yet", "", "new\n"),
        ("whole lines", "a\nb\n", "a\nb\nnew\n"),
        ("half a line", "a\n\"b, c", "a\nnew\n"),
        ("half a first line", "\"b, c", "new\n"),
        ("a line longer than ours", long.as_str(), &format!("{long}new\n")),
    ] {
        let folder = Scratch::new("half");
        fs::write(folder.0.join("queue_log"), before).unwrap();
        let mut sink = Sink::<Line>::below(&folder.0).unwrap();
        sink.write(Line { file: "queue_log".into(), text: "new".into() }).unwrap();
        drop(sink);
        let after = fs::read_to_string(folder.0.join("queue_log")).unwrap();
        assert!(after == expected, "{name}");
    }
}
