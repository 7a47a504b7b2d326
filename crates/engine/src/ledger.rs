//! Call records and channel events on their way into tables of databases: journaled when they are finished, written behind, in batches, and
//! kept until the database has them.
//!
//! A record that its table does not take (a value that its column cannot hold, a key that is there) is set aside in a file
//! and in nobody's way; one whose table is missing waits. A process that is killed begins again with what its journal
//! says is not written; what was written in its last moment may come twice.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use apps::records::{EVENT_FIELDS, cdr_field, cdr_field_utc, date, event_field, own_fields};
use base::Instant;
use call::{Cdr, Cel, CelKind, Core, Level};
use realtime::behind::{Behind, Outcome};
use realtime::{Answer, Failure, Query, Value};
use serde::{Deserialize, Serialize};
use store::Snapshot;
use store::cdr::{CelPlaces, Places};
use store::config::cdr_sql::CdrSql;
use store::journal::{Journal, RECORD_BYTES_MAX};

use crate::databases::{Asker, Shared, connection_name};

/// File name in `astdbdir`, without its generation.
const STEM: &str = "cdr-sql";
/// Lines of records that no table takes, in `astlogdir`.
const ASIDE: &str = "cdr-refused.jsonl";
/// Most records that wait, about a kilobyte each: a day without a database at one call a second.
const WAITING_MAX: usize = 100_000;
/// Fields that every record has.
const FIELDS: [&str; 21] = [
    "clid",
    "src",
    "dst",
    "dcontext",
    "channel",
    "dstchannel",
    "lastapp",
    "lastdata",
    "start",
    "answer",
    "end",
    "duration",
    "billsec",
    "disposition",
    "amaflags",
    "accountcode",
    "uniqueid",
    "linkedid",
    "userfield",
    "peeraccount",
    "sequence",
];

/// A line of the journal.
#[derive(Serialize, Deserialize)]
enum Line {
    /// A record of this number is to go to this table.
    Wanted(u64, String, Vec<Cell>),
    /// These records are written, or set aside.
    Done(Vec<u64>),
}

/// A column, its text, and what is written where it holds numbers.
type Cell = (String, Option<String>, Option<String>);

/// What goes into a table.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// A finished call record.
    Call(&'a Cdr),
    /// A channel event.
    Event(&'a Cel),
}

impl Entry<'_> {
    /// A table takes one kind.
    fn is_for(self, table: &CdrSql) -> bool {
        table.module.starts_with("cel_") == matches!(self, Self::Event(_))
    }
    /// A field as people read it, for conditions.
    fn shown(self, core: &Core, table: &CdrSql, field: &str) -> String {
        match self {
            Self::Call(record) => cdr_field(core, record, field),
            Self::Event(event) => event_value(core, table, event, field).0,
        }
    }
}

/// All tables that this configuration wants filled.
fn tables_of(snapshot: &Snapshot) -> impl Iterator<Item = CdrSql> {
    Places::of(snapshot).sql.into_iter().chain(CelPlaces::of(snapshot).sql)
}

/// A table that records go to.
struct Table {
    of: CdrSql,
    connection: String,
    behind: Behind<u64, ()>,
    /// The batch on its way, by its number among questions.
    flight: Option<(u64, Vec<u64>)>,
    /// It was told that records wait.
    is_told: bool,
}

/// See the module's page.
pub(crate) struct Ledger {
    databases: Option<Shared>,
    journal: Journal,
    /// Records that are not written, as the journal has them.
    alive: BTreeMap<u64, Vec<u8>>,
    alive_bytes: u64,
    tables: BTreeMap<String, Table>,
    next_record: u64,
    next_question: u64,
    aside: PathBuf,
    lines: Vec<(Level, String)>,
    /// The figures are others than those that were taken.
    changed: bool,
}

impl Ledger {
    /// Begins with what an earlier process has left. `None`: there is nothing to write, and nowhere.
    pub(crate) fn open(
        snapshot: &Snapshot,
        databases: Option<Shared>,
        now: Instant,
    ) -> std::io::Result<Option<Self>> {
        let directories = &snapshot.asterisk.directories;
        if tables_of(snapshot).next().is_none() && !has_journal(&directories.astdbdir) {
            return Ok(None);
        }
        let (journal, replay) = Journal::open(&directories.astdbdir.join(STEM))?;
        let mut ledger = Self {
            databases: None,
            journal,
            alive: BTreeMap::new(),
            alive_bytes: 0,
            tables: BTreeMap::new(),
            next_record: 0,
            next_question: 0,
            aside: directories.astlogdir.join(ASIDE),
            lines: Vec::new(),
            changed: true,
        };
        for bytes in replay.records {
            match serde_json::from_slice::<Line>(&bytes) {
                Ok(Line::Wanted(number, ..)) => {
                    ledger.next_record = ledger.next_record.max(number);
                    ledger.alive.insert(number, bytes);
                }
                Ok(Line::Done(numbers)) => numbers.iter().for_each(|number| _ = ledger.alive.remove(number)),
                Err(_) => {}
            }
        }
        ledger.alive_bytes = ledger.alive.values().map(|bytes| bytes.len() as u64).sum();
        ledger.configure(snapshot, databases, now);
        if !ledger.alive.is_empty() {
            let line = format!("{} call records of before wait for their databases", ledger.alive.len());
            ledger.lines.push((Level::Notice, line));
        }
        Ok(Some(ledger))
    }
    /// A reload says which tables there are. What waits for a table that is still there goes on waiting.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, databases: Option<Shared>, now: Instant) {
        self.databases = databases;
        let mut before = std::mem::take(&mut self.tables);
        for of in tables_of(snapshot) {
            let (driver, name) = &of.connection;
            let connection = connection_name(&snapshot.realtime, *driver, name);
            let table = match before.remove(&of.name) {
                Some(table) => Table { of, connection, ..table },
                None => Table { of, connection, behind: Behind::default(), flight: None, is_told: false },
            };
            self.tables.insert(table.of.name.clone(), table);
        }
        // Records of a table that is described no more stay in the journal until it is again.
        for (number, bytes) in &self.alive {
            let Ok(Line::Wanted(_, name, _)) = serde_json::from_slice(bytes) else { continue };
            let Some(table) = self.tables.get_mut(&name) else { continue };
            let flies = table.flight.as_ref().is_some_and(|(_, numbers)| numbers.contains(number));
            if !flies {
                // A number that waits already keeps its place.
                table.behind.put(*number, (), now);
            }
        }
        self.changed = true;
    }
    /// Takes finished records or events, with one write of the journal. How many were lost because too many wait.
    pub(crate) fn write<'a>(
        &mut self,
        core: &Core,
        records: impl Iterator<Item = Entry<'a>>,
        now: Instant,
    ) -> u32 {
        let mut lost = 0;
        let mut lines: Vec<(u64, String, Vec<u8>)> = Vec::new();
        let wanted: Vec<Entry<'_>> = records.collect();
        let pairs = wanted.iter().flat_map(|record| self.tables.iter().map(move |table| (*record, table)));
        for (record, (name, table)) in pairs {
            if !record.is_for(&table.of) || !wants(core, &table.of, record) {
                continue;
            }
            if self.alive.len() + lines.len() >= WAITING_MAX {
                lost += 1;
                continue;
            }
            self.next_record += 1;
            let cells = cells(core, &table.of, record);
            let line = Line::Wanted(self.next_record, name.clone(), cells);
            let bytes = serde_json::to_vec(&line).unwrap_or_default();
            match bytes.len() <= RECORD_BYTES_MAX {
                true => lines.push((self.next_record, name.clone(), bytes)),
                false => lost += 1,
            }
        }
        if let Err(why) = self.journal.append_all(lines.iter().map(|(.., bytes)| bytes.as_slice())) {
            let line = format!("call records wait in memory alone: {why}");
            self.lines.push((Level::Error, line));
        }
        for (number, name, bytes) in lines {
            self.alive_bytes += bytes.len() as u64;
            self.alive.insert(number, bytes);
            if let Some(table) = self.tables.get_mut(&name) {
                table.behind.put(number, (), now);
            }
        }
        self.changed = true;
        lost
    }
    /// Asks for what is due.
    pub(crate) fn due(&mut self, now: Instant) {
        let Self { databases, tables, alive, next_question, .. } = self;
        let Some(databases) = databases.as_ref() else { return };
        let mut failed = Vec::new();
        for (name, table) in tables.iter_mut() {
            let batch: Vec<u64> = table.behind.take(now).iter().map(|(number, ())| *number).collect();
            if batch.is_empty() {
                continue;
            }
            let rows = batch.iter().filter_map(|number| query(&table.of.table, alive.get(number)?));
            let mut rows: Vec<Query> = rows.collect();
            let query = match rows.len() {
                1 => rows.remove(0),
                _ => Query::Batch(rows),
            };
            *next_question += 1;
            table.flight = Some((*next_question, batch));
            let submitted =
                databases.borrow_mut().submit(&table.connection, (Asker::Records, *next_question), query);
            if let Err(failure) = submitted {
                failed.push((name.clone(), *next_question, failure));
            }
        }
        for (name, number, failure) in failed {
            self.answered(&name, number, Err(failure), now);
        }
    }
    /// Takes in what databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let came = match &self.databases {
            Some(databases) => databases.borrow_mut().take(Asker::Records),
            None => Vec::new(),
        };
        for (number, answer) in came {
            let is_its = |table: &Table| table.flight.as_ref().is_some_and(|(flight, _)| *flight == number);
            let found = self.tables.iter().find(|(_, table)| is_its(table)).map(|(name, _)| name.clone());
            if let Some(name) = found {
                self.answered(&name, number, answer, now);
            }
        }
    }
    fn answered(&mut self, name: &str, number: u64, answer: Result<Answer, Failure>, now: Instant) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some((_, batch)) = table.flight.take_if(|(flight, _)| *flight == number) else { return };
        let single = batch.len() == 1;
        let outcome = match &answer {
            Ok(_) => Outcome::Written,
            Err(Failure::Value { .. }) => Outcome::Refused,
            // A table that is missing may come, and rights may be given.
            Err(_) => Outcome::Away,
        };
        table.behind.done(outcome, now);
        self.changed = true;
        match answer {
            Ok(_) => {
                if std::mem::take(&mut table.is_told) {
                    let line = format!("{name}: call records are written again");
                    self.lines.push((Level::Notice, line));
                }
                self.done(batch);
            }
            Err(failure @ Failure::Value { .. }) if single => {
                self.set_aside(name, &batch, &failure);
                self.done(batch);
            }
            // Each goes alone then, so that the bad one is found.
            Err(Failure::Value { .. }) => {}
            Err(failure) => {
                if !std::mem::replace(&mut table.is_told, true) {
                    let line = format!("{name}: call records wait: {failure}; {}", failure.remedy());
                    self.lines.push((Level::Error, line));
                }
            }
        }
    }
    fn done(&mut self, numbers: Vec<u64>) {
        for number in &numbers {
            if let Some(bytes) = self.alive.remove(number) {
                self.alive_bytes = self.alive_bytes.saturating_sub(bytes.len() as u64);
            }
        }
        let line = serde_json::to_vec(&Line::Done(numbers)).unwrap_or_default();
        // Without it they come twice, which is better than not at all.
        let _unwritten = self.journal.append(&line);
        if self.journal.wants_compaction(self.alive_bytes) {
            self.journal.compact(self.alive.values().map(Vec::as_slice));
        }
    }
    fn set_aside(&mut self, name: &str, numbers: &[u64], failure: &Failure) {
        for bytes in numbers.iter().filter_map(|number| self.alive.get(number)) {
            let Ok(Line::Wanted(_, table, cells)) = serde_json::from_slice(bytes) else { continue };
            let fields: serde_json::Map<String, serde_json::Value> =
                cells.into_iter().map(|(column, text, _)| (column, text.into())).collect();
            let line = serde_json::json!({ "table": table, "why": failure.to_string(), "record": fields });
            let file = OpenOptions::new().append(true).create(true).mode(0o640).open(&self.aside);
            let written = file.and_then(|mut file| {
                file.write_all(format!("{line}\n").as_bytes())?;
                file.sync_data()
            });
            let told = match written {
                Ok(()) => {
                    format!("{name}: a call record is set aside in {}: {failure}", self.aside.display())
                }
                Err(why) => {
                    format!("{name}: a call record is lost: {failure}; {}: {why}", self.aside.display())
                }
            };
            self.lines.push((Level::Error, format!("{told}; {}", failure.remedy())));
        }
    }
    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.tables.values().filter_map(|table| table.behind.deadline()).min()
    }
    /// What there is to say.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        if let Some(trouble) = self.journal.trouble() {
            self.lines.push((Level::Error, trouble));
        }
        std::mem::take(&mut self.lines)
    }
    /// Of each table what there is to show, when it is something else than before.
    pub(crate) fn take_figures(&mut self) -> Option<Vec<control::site::RecordLine>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let line = |(name, table): (&String, &Table)| {
            let (written, refused) = table.behind.counts();
            control::site::RecordLine {
                name: name.clone(),
                waiting: table.behind.len() as u64,
                written,
                refused,
                is_away: table.is_told,
            }
        };
        Some(self.tables.iter().map(line).collect())
    }
    /// Writes what waits while the process ends, at most this long; the journal keeps the rest.
    pub(crate) fn finish(&mut self, clock: &dyn Fn() -> Instant, within: Duration) {
        let until = clock() + within;
        self.tables.values_mut().for_each(|table| table.behind.hurry(clock()));
        loop {
            let now = clock();
            let waits = |table: &Table| !table.behind.is_empty() && !table.is_told;
            if now >= until || !self.tables.values().any(waits) {
                return;
            }
            self.due(now);
            if let Some(databases) = self.databases.clone() {
                databases.borrow_mut().wait(until.since(now).min(Duration::from_millis(100)));
            }
            self.take_in(clock());
        }
    }
}

fn has_journal(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| {
        name.to_str().and_then(|name| name.strip_prefix(STEM)).is_some_and(|rest| rest.starts_with('.'))
    })
}

fn query(table: &str, bytes: &[u8]) -> Option<Query> {
    let Ok(Line::Wanted(_, _, cells)) = serde_json::from_slice(bytes) else { return None };
    let values = cells.into_iter().map(|(column, text, number)| Value { column, text, number }).collect();
    Some(Query::Record { table: table.to_owned(), values })
}

fn wants(core: &Core, table: &CdrSql, record: Entry<'_>) -> bool {
    table.filters.iter().all(|filter| {
        let is_it = record.shown(core, table, &filter.field).eq_ignore_ascii_case(&filter.value);
        is_it != filter.negated
    })
}

/// What a record is in a table.
fn cells(core: &Core, table: &CdrSql, record: Entry<'_>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut put = |field: &str, columns: &[&str]| {
        let value = match record {
            Entry::Call(record) => value(core, table, record, field),
            Entry::Event(event) => Some(event_value(core, table, event, field)),
        };
        let Some((text, number)) = value else { return };
        cells.extend(columns.iter().map(|column| ((*column).to_owned(), Some(text.clone()), number.clone())));
    };
    match (&table.fields, record) {
        (Some(fields), _) => fields.iter().for_each(|(field, column)| put(field, &[column])),
        (None, Entry::Event(_)) => {
            EVENT_FIELDS.iter().for_each(|field| put(field, &table.columns(field)));
        }
        (None, Entry::Call(record)) => {
            let own = own_fields(record);
            for field in FIELDS.into_iter().chain(own.iter().map(String::as_str)) {
                put(field, &table.columns(field));
            }
        }
    }
    cells.extend(table.statics.iter().map(|(value, column)| (column.clone(), Some(value.clone()), None)));
    cells
}

/// A field's text, and its number where it has one beside; `None` for a time that never was, whose column keeps its
/// default.
fn value(core: &Core, table: &CdrSql, record: &Cdr, field: &str) -> Option<(String, Option<String>)> {
    let plain = |name: &str| match table.utc {
        true => cdr_field_utc(record, name),
        false => cdr_field(core, record, name),
    };
    Some(match field {
        "start" | "answer" | "end" => (Some(plain(field)).filter(|text| !text.is_empty())?, None),
        "amaflags" => (plain("amaflags,u"), None),
        "disposition" if table.numbers => (plain("disposition,u"), None),
        "disposition" => (plain(field), Some(plain("disposition,u"))),
        "duration" | "billsec" if table.fractions => (plain(&format!("{field},f")), None),
        _ => (plain(field), None),
    })
}

/// The same of an event. Its type is a number in columns of numbers.
fn event_value(core: &Core, table: &CdrSql, event: &Cel, field: &str) -> (String, Option<String>) {
    match field {
        "eventtime" => {
            let zone = |at| if table.utc { 0 } else { core.services.wall.offset(at, "").seconds };
            let date = date(event.time, &zone);
            (format!("{date}.{:06}", event.time.rem_euclid(1_000_000)), None)
        }
        "eventtype" if table.user_defined && event.kind == CelKind::UserDefined => {
            (event.user_defined.clone(), Some(event_field(event, "eventenum")))
        }
        "eventtype" => (event_field(event, field), Some(event_field(event, "eventenum"))),
        _ => (event_field(event, field), None),
    }
}
