//! The internal database: families, keys and values in `astdb.sqlite3`.
//!
//! All of it lives in a map, so that a dialplan's read never waits. Writes change the map at once and reach the file
//! through a thread, in order and several to a transaction. Who has to know that a write is on the disk takes a mark after
//! it and asks. The file stays one that Asterisk can read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::patience::Patience;

/// Name of the file in astdbdir.
pub const FILE_NAME: &str = "astdb.sqlite3";
/// Longest full key, `/family/key`, in bytes; Asterisk's buffer without its terminator.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest value, in bytes. Asterisk has no limit of its own; values in the field are paths and JSON of some kB.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// Most writes that may wait for the disk. At 1,000 a second it is a minute and a half of a disk that stands still.
pub const WAITING_MAX: usize = 100_000;
/// Most writes of a transaction.
const BATCH_MAX: usize = 1_000;
/// What to do about a file that refuses.
const REMEDY: &str = "free space on the disk and let astdbdir belong to the user Strowger runs as";

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: the internal database cannot be opened: {source}", path.display())]
pub struct OpenError {
    path: PathBuf,
    source: rusqlite::Error,
}

impl OpenError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        "check that the folder astdbdir exists and belongs to the user Strowger runs as; \
         a damaged file can be moved away, and is then made anew"
    }
}

enum Write {
    Put(String, String),
    Delete(String),
    Flush(Sender<()>),
}

/// What the owner and the writer both see.
#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    closing: AtomicBool,
    /// Somebody has found that what it waits for is not in the file.
    awaited: AtomicBool,
}

/// The database. Belongs to one thread.
#[derive(Debug)]
pub struct AstDb {
    map: BTreeMap<String, String>,
    writes: Option<Sender<Write>>,
    /// Writes that were handed to the writer since the file was opened.
    sent: u64,
    shared: Arc<Shared>,
    trouble: Receiver<String>,
    writer: Option<JoinHandle<()>>,
}

impl AstDb {
    /// Opens the file, or makes it, and reads all of it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, || ())
    }
    /// The same; `ring` is called on another thread when more is in the file and somebody has asked for it in vain by
    /// [`Self::is_saved`].
    pub fn open_with(path: &Path, ring: impl Fn() + Send + 'static) -> Result<Self, OpenError> {
        let fail = |source| OpenError { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(fail)?;
        let map = read_all(&connection).map_err(fail)?;
        let (writes, queue) = channel();
        let (tell, trouble) = channel();
        let shared = Arc::new(Shared::default());
        let mut writer =
            Writer { connection, shared: shared.clone(), tell, path: path.to_owned(), ring: Box::new(ring) };
        let writer = std::thread::Builder::new()
            .name("astdb".into())
            .spawn(move || writer.run(&queue))
            .map_err(|error| fail(rusqlite::Error::ToSqlConversionFailure(Box::new(error))))?;
        Ok(Self { map, writes: Some(writes), sent: 0, shared, trouble, writer: Some(writer) })
    }

    /// A value.
    pub fn get(&self, family: &str, key: &str) -> Option<&str> {
        self.map.get(&full_key(family, key)).map(String::as_str)
    }
    /// Whether there is a value.
    pub fn exists(&self, family: &str, key: &str) -> bool {
        self.get(family, key).is_some()
    }
    /// Sets a value. False when it cannot be kept: a key or value over its bound, or a disk that has stood still too long.
    pub fn put(&mut self, family: &str, key: &str, value: &str) -> bool {
        let full = full_key(family, key);
        if full.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return false;
        }
        if !self.send(|| Write::Put(full.clone(), value.to_owned())) {
            return false;
        }
        self.map.insert(full, value.to_owned());
        true
    }
    /// Deletes a value; whether it was there.
    pub fn delete(&mut self, family: &str, key: &str) -> bool {
        let full = full_key(family, key);
        self.map.contains_key(&full)
            && self.send(|| Write::Delete(full.clone()))
            && self.map.remove(&full).is_some()
    }
    /// Deletes a family, or what is at and under `prefix` in it; how many. An empty family is everything.
    pub fn delete_tree(&mut self, family: &str, prefix: &str) -> usize {
        let keys: Vec<String> = self.under(&tree(family, prefix)).map(|(key, _)| key.to_owned()).collect();
        keys.into_iter()
            .filter(|key| self.send(|| Write::Delete(key.clone())) && self.map.remove(key).is_some())
            .count()
    }
    /// Full keys and values at and under a prefix (`/family` or `/family/key`, or nothing for everything), in order.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        let prefix = prefix.trim_end_matches('/');
        self.map
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map_while(move |(key, value)| {
                key.strip_prefix(prefix).map(|rest| (key.as_str(), value.as_str(), rest))
            })
            .filter(|(_, _, rest)| rest.is_empty() || rest.starts_with('/'))
            .map(|(key, value, _)| (key, value))
    }
    /// How many values at and under a prefix.
    pub fn count(&self, prefix: &str) -> usize {
        self.under(prefix).count()
    }
    /// How many values.
    pub fn len(&self) -> usize {
        self.map.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
    /// Writes that have not reached the file.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }
    /// How much was written so far, for [`Self::is_saved`].
    pub fn mark(&self) -> u64 {
        self.sent
    }
    /// Whether what was written before this mark is in the file, and the file on the disk.
    pub fn is_saved(&self, mark: u64) -> bool {
        // First: the writer looks for it after it has counted what it has written, so that one of both sees the other.
        self.shared.awaited.store(true, Ordering::SeqCst);
        let waiting = self.shared.waiting.load(Ordering::SeqCst) as u64;
        self.sent.saturating_sub(waiting) >= mark
    }
    /// What the writer has to complain about, once each.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }
    /// Waits until everything is in the file or the writer has stopped. Blocks: for shutdown and tests.
    pub fn flush(&self) {
        let (done, wait) = channel();
        if self.writes.as_ref().is_some_and(|writes| writes.send(Write::Flush(done)).is_ok()) {
            let _ = wait.recv();
        }
    }

    fn send(&mut self, write: impl FnOnce() -> Write) -> bool {
        let Some(writes) = &self.writes else { return false };
        if self.shared.waiting.fetch_add(1, Ordering::SeqCst) < WAITING_MAX && writes.send(write()).is_ok() {
            self.sent += 1;
            return true;
        }
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        false
    }
}

impl Drop for AstDb {
    /// Waits until everything is in the file, or was tried often enough.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.writes = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl call::Database for AstDb {
    fn get(&self, family: &str, key: &str) -> Option<String> {
        AstDb::get(self, family, key).map(str::to_owned)
    }
    fn put(&mut self, family: &str, key: &str, value: &str) -> bool {
        AstDb::put(self, family, key, value)
    }
    fn delete(&mut self, family: &str, key: &str) -> bool {
        AstDb::delete(self, family, key)
    }
    fn delete_tree(&mut self, family: &str, prefix: &str) -> usize {
        AstDb::delete_tree(self, family, prefix)
    }
    fn list(&self, prefix: &str) -> Vec<(String, String)> {
        self.under(prefix).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
    fn mark(&self) -> u64 {
        AstDb::mark(self)
    }
    fn is_saved(&mut self, mark: u64) -> bool {
        AstDb::is_saved(self, mark)
    }
    fn trouble(&mut self) -> Option<String> {
        AstDb::trouble(self)
    }
}

fn full_key(family: &str, key: &str) -> String {
    format!("/{family}/{key}")
}

fn tree(family: &str, prefix: &str) -> String {
    match (family, prefix) {
        ("", _) => String::new(),
        (family, "") => format!("/{family}"),
        (family, prefix) => full_key(family, prefix),
    }
}

fn read_all(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    // Another process may hold the file for a moment: a backup, or an Asterisk that is going down.
    connection.busy_timeout(Duration::from_secs(5))?;
    // What counts as saved outlives a power cut, too: the folder is synced after the journal has gone from it.
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS astdb(key VARCHAR(256), value VARCHAR(256), PRIMARY KEY(key))",
    )?;
    let mut rows = connection.prepare("SELECT key, value FROM astdb")?;
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    };
    rows.query_map([], |row| Ok((text(row.get_ref(0)?), text(row.get_ref(1)?))))?.collect()
}

struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    tell: Sender<String>,
    path: PathBuf,
    ring: Box<dyn Fn() + Send>,
}

impl Writer {
    fn run(&mut self, queue: &Receiver<Write>) {
        let mut patience = Patience::new();
        // Sleeps here until there is something to write; ends when the owner is gone and nothing is left.
        while let Ok(first) = queue.recv() {
            let mut batch = vec![first];
            batch.extend(queue.try_iter().take(BATCH_MAX - 1));
            let tell = |error| {
                let message =
                    format!("{}: cannot be written, trying again: {error}; {REMEDY}", self.path.display());
                let _ = self.tell.send(message);
            };
            if !patience.write(&self.shared.closing, || write(&mut self.connection, &batch), tell) {
                return;
            }
            for write in batch {
                match write {
                    Write::Put(..) | Write::Delete(_) => {
                        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
                    }
                    Write::Flush(done) => {
                        let _ = done.send(());
                    }
                }
            }
            if self.shared.awaited.swap(false, Ordering::SeqCst) {
                (self.ring)();
            }
        }
    }
}

/// Writes them all, or none.
fn write(connection: &mut Connection, batch: &[Write]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for write in batch {
        match write {
            Write::Put(key, value) => transaction
                .prepare_cached("INSERT OR REPLACE INTO astdb (key, value) VALUES (?1, ?2)")?
                .execute([key, value])?,
            Write::Delete(key) => {
                transaction.prepare_cached("DELETE FROM astdb WHERE key = ?1")?.execute([key])?
            }
            Write::Flush(_) => 0,
        };
    }
    transaction.commit()
}
