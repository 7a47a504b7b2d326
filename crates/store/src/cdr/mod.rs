//! Call detail records on their way to the disk: to `Master.csv`, to files of the site's own lines, to a table of SQLite.
//!
//! The shard hands a record over and goes on; a thread for each place writes what came within 20 ms, under load within
//! 100 ms, with one write and one sync. A record counts as done when it is on the disk.

mod csv;
mod lines;
mod table;

pub use csv::{CdrSink, FOLDER, MASTER};
pub use lines::{CEL_FOLDER, CUSTOM_FOLDER, Line};
pub use table::{DATABASE, Row};

use crate::Snapshot;
use crate::config::cdr::{CdrCsv, CdrCustom, CdrManager, CdrTable};
use crate::config::cdr_sql::CdrSql;
use crate::config::cel::CelManager;
use crate::patience::Patience;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most records that wait for the disk, a few hundred bytes each: five minutes of 100 calls a second. Further ones are
/// lost and counted.
pub const WAITING_MAX: u64 = 30_000;
/// How long a record waits for others, so that one wake-up and one sync serve them all.
const GATHER: Duration = Duration::from_millis(20);
/// Least time between two syncs: a sync costs as much as a call, so under load ten a second serve all.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Most records of one write.
const BATCH_MAX: usize = 1_024;

/// The places that a configuration sends records to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Places {
    /// `Master.csv`.
    pub csv: Option<CdrCsv>,
    /// Files of the site's own lines.
    pub custom: Option<CdrCustom>,
    /// A table of SQLite.
    pub table: Option<CdrTable>,
    /// Events for managers.
    pub manager: Option<CdrManager>,
    /// Tables of databases.
    pub sql: Vec<CdrSql>,
}

impl Places {
    /// Those of this configuration: what is described, switched on, and whose module is not switched off.
    pub fn of(snapshot: &Snapshot) -> Self {
        if !snapshot.cdr.general.enable {
            return Self::default();
        }
        let loaded = |module| snapshot.modules.has_module(module);
        Self {
            csv: snapshot.cdr.csv.clone().filter(|_| loaded("cdr_csv")),
            custom: Some(&snapshot.cdr_custom)
                .filter(|custom| !custom.files.is_empty() && loaded("cdr_custom"))
                .cloned(),
            table: snapshot.cdr_table.clone().filter(|_| loaded("cdr_sqlite3_custom")),
            manager: Some(&snapshot.cdr_manager)
                .filter(|manager| manager.enabled && loaded("cdr_manager"))
                .cloned(),
            sql: snapshot.cdr_sql.iter().filter(|table| loaded(table.module)).cloned().collect(),
        }
    }
    /// Their names, as `cdr show status` lists them.
    pub fn names(&self) -> Vec<&'static str> {
        let names = [
            self.csv.as_ref().map(|_| "csv"),
            self.custom.as_ref().map(|_| "cdr-custom"),
            self.table.as_ref().map(|_| "cdr_sqlite3_custom"),
            self.manager.as_ref().map(|_| "cdr_manager"),
        ];
        let sql = self.sql.iter().map(|table| table.module);
        let mut names: Vec<&'static str> = names.into_iter().flatten().chain(sql).collect();
        names.dedup();
        names
    }
}

/// The places that a configuration sends channel events to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CelPlaces {
    /// Files of the site's own lines.
    pub custom: Option<CdrCustom>,
    /// A table of SQLite.
    pub table: Option<CdrTable>,
    /// Events for managers.
    pub manager: Option<CelManager>,
    /// Tables of databases.
    pub sql: Vec<CdrSql>,
    /// `dateformat`.
    pub dateformat: String,
}

impl CelPlaces {
    /// Those of this configuration: what is described, switched on, and whose module is not switched off.
    pub fn of(snapshot: &Snapshot) -> Self {
        if snapshot.cel.settings().is_none() {
            return Self::default();
        }
        let loaded = |module| snapshot.modules.has_module(module);
        let manager = &snapshot.cel.manager;
        Self {
            custom: Some(&snapshot.cel_custom)
                .filter(|custom| !custom.files.is_empty() && loaded("cel_custom"))
                .cloned(),
            table: snapshot.cel_table.clone().filter(|_| loaded("cel_sqlite3_custom")),
            manager: Some(manager).filter(|of| of.enabled && loaded("cel_manager")).cloned(),
            sql: snapshot.cel_sql.iter().filter(|table| loaded(table.module)).cloned().collect(),
            dateformat: snapshot.cel.general.dateformat.clone(),
        }
    }
    /// Their names, as `cel show status` lists them.
    pub fn names(&self) -> Vec<&'static str> {
        let names = [
            self.custom.as_ref().map(|_| "cel-custom"),
            self.table.as_ref().map(|_| "cel_sqlite3_custom"),
            self.manager.as_ref().map(|_| "CEL Manager Event Logging"),
        ];
        let sql = self.sql.iter().map(|table| table.module);
        let mut names: Vec<&'static str> = names.into_iter().flatten().chain(sql).collect();
        names.dedup();
        names
    }
}

/// A place that records go to.
trait Outlet<T>: Send + 'static {
    /// Takes what is to be written next; what was taken before is written.
    fn take(&mut self, batch: Vec<T>);
    /// Writes and syncs what was taken. Called again after a refusal, and repeats nothing then that is written already.
    fn write(&mut self) -> Result<(), Refused>;
}

/// What refuses to be written, and why.
struct Refused {
    path: PathBuf,
    why: String,
}

/// How many records came how far.
#[derive(Debug, Default)]
struct Shared {
    handed: AtomicU64,
    written: AtomicU64,
    closing: AtomicBool,
}

/// The shard's end.
#[derive(Debug)]
pub struct Sink<T> {
    records: Option<Sender<Box<T>>>,
    shared: Arc<Shared>,
    lost: u64,
    trouble: Receiver<String>,
    writer: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Sink<T> {
    /// Starts a writer with a thread of this name.
    fn over(name: &str, outlet: impl Outlet<T>) -> io::Result<Self> {
        let (records, queue) = channel();
        let (tell, trouble) = channel();
        let shared = Arc::new(Shared::default());
        let mut writer = Writer { outlet, shared: shared.clone(), tell, synced: None };
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || writer.run(&queue))?;
        Ok(Self { records: Some(records), shared, lost: 0, trouble, writer: Some(thread) })
    }

    /// Hands a record over; its number, to compare with [`Self::written`]. `None` when too many wait already: the record
    /// is lost and counted.
    pub fn write(&mut self, record: T) -> Option<u64> {
        let handed = self.shared.handed.load(Ordering::Relaxed);
        let waits = handed - self.shared.written.load(Ordering::Acquire);
        let sent = waits < WAITING_MAX
            && self.records.as_ref().is_some_and(|queue| queue.send(Box::new(record)).is_ok());
        if !sent {
            self.lost += 1;
            return None;
        }
        self.shared.handed.store(handed + 1, Ordering::Relaxed);
        Some(handed + 1)
    }
    /// Number of the last record that is on the disk; records get there in order.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Acquire)
    }
    /// Records that are not on the disk yet.
    pub fn waiting(&self) -> u64 {
        self.shared.handed.load(Ordering::Relaxed) - self.written()
    }
    /// Records that were lost because too many waited.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// What the writer has to complain about, once for each time it begins.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }
}

impl<T> Drop for Sink<T> {
    /// Waits until everything is on the disk, or was tried often enough.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.records = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

struct Writer<O> {
    outlet: O,
    shared: Arc<Shared>,
    tell: Sender<String>,
    synced: Option<Instant>,
}

impl<O> Writer<O> {
    fn run<T>(&mut self, queue: &Receiver<Box<T>>)
    where
        O: Outlet<T>,
    {
        let mut patience = Patience::new();
        while let Ok(first) = queue.recv() {
            let batch = self.gather(*first, queue);
            let count = batch.len() as u64;
            self.outlet.take(batch);
            let tell = |Refused { path, why }| {
                let kept =
                    self.shared.handed.load(Ordering::Relaxed) - self.shared.written.load(Ordering::Relaxed);
                let message = format!(
                    "{}: cannot be written: {why}; {kept} call records wait in memory; free space on the disk and let \
                     astlogdir belong to the user Strowger runs as",
                    path.display()
                );
                let _ = self.tell.send(message);
            };
            if !patience.write(&self.shared.closing, || self.outlet.write(), tell) {
                return;
            }
            self.synced = Some(Instant::now());
            self.shared.written.fetch_add(count, Ordering::Release);
        }
    }

    /// Waits a moment for more, so that one sync serves them all.
    ///
    /// It sleeps through the moment instead of waiting on the queue, where every record would wake it.
    fn gather<T>(&self, first: T, queue: &Receiver<Box<T>>) -> Vec<T> {
        if !self.shared.closing.load(Ordering::Relaxed) {
            let rest = self.synced.map_or(Duration::ZERO, |at| SYNC_EVERY.saturating_sub(at.elapsed()));
            std::thread::sleep(rest.max(GATHER));
        }
        let more = queue.try_iter().take(BATCH_MAX - 1).map(|record| *record);
        std::iter::once(first).chain(more).collect()
    }
}

/// Appends to every file and takes it out of the map, so that a second try repeats nothing.
fn append_all(files: &mut BTreeMap<PathBuf, String>) -> Result<(), Refused> {
    while let Some(entry) = files.first_entry() {
        append(entry.key(), entry.get().as_bytes())
            .map_err(|error| Refused { path: entry.key().clone(), why: error.to_string() })?;
        entry.remove();
    }
    Ok(())
}

/// Opens a file of records to append to, and makes its folder when there is none.
fn open(path: &Path) -> io::Result<File> {
    // Call records tell who called whom: not for everyone.
    let open = || OpenOptions::new().read(true).append(true).create(true).mode(0o640).open(path);
    match (open(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            open()
        }
        (opened, _) => opened,
    }
}

/// Longest half line that is looked for: longer than any record.
const HALF_BYTES_MAX: u64 = 256 * 1024;

/// Where the last whole line of a file ends. What follows is what a process was writing when it was killed: nobody was told
/// that it is there, and a quotation mark in it would make readers take the next records for a part of it.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut last = [0];
    if length == 0 {
        return Ok(length);
    }
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(length);
    }
    let from = length.saturating_sub(HALF_BYTES_MAX);
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(HALF_BYTES_MAX).read_to_end(&mut end)?;
    let newline = end.iter().rposition(|byte| *byte == b'\n').map(|at| from + at as u64 + 1);
    // A line longer than that is none of ours; it is left alone.
    Ok(newline.unwrap_or(if from == 0 { 0 } else { length }))
}

/// Appends and syncs. The file is opened each time, so that it may be renamed at any time; half a line is taken back, that of
/// a process that was killed too.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    let before = whole_lines(&mut file, length)?;
    if before < length {
        file.set_len(before)?;
    }
    let result = file.write_all(bytes).and_then(|()| file.sync_data());
    if result.is_err() {
        // When even this fails, the next try appends after half a line, which is better than losing records.
        let _ = file.set_len(before);
    }
    result
}
