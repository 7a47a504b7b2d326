//! Call detail records to `Master.csv`.
//!
//! The shard hands a record over and goes on; a thread writes what came within 20 ms, under load within 100 ms, with one
//! write and one sync a file. A record counts as done when it is on the disk.

use crate::config::cdr::CdrCsv;
use crate::date::{Zone, format};
use call::Cdr;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Folder below astlogdir.
pub const FOLDER: &str = "cdr-csv";
/// File all records go to.
pub const MASTER: &str = "Master.csv";
/// Most records that wait for the disk, a few hundred bytes each: five minutes of 100 calls a second. Further ones are
/// lost and counted.
pub const WAITING_MAX: u64 = 30_000;
/// How long a record waits for others, so that one wake-up and one sync serve them all.
const GATHER: Duration = Duration::from_millis(20);
/// Least time between two syncs: a sync costs as much as a call, so under load ten a second serve all.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Most records of one write.
const BATCH_MAX: usize = 1_024;
/// Time between two tries when the disk refuses.
const RETRY: Duration = Duration::from_secs(1);
/// Tries at the end of the process before what waits is given up.
const LAST_TRIES: u32 = 3;
/// Longest account code that names a file, in bytes; a file name has at most 255.
const ACCOUNT_BYTES_MAX: usize = 200;

/// How many records came how far.
#[derive(Debug, Default)]
struct Shared {
    handed: AtomicU64,
    written: AtomicU64,
    closing: AtomicBool,
}

/// The shard's end.
#[derive(Debug)]
pub struct CdrSink {
    records: Option<Sender<Box<Cdr>>>,
    shared: Arc<Shared>,
    lost: u64,
    trouble: Receiver<String>,
    writer: Option<JoinHandle<()>>,
}

impl CdrSink {
    /// Starts a writer into `astlogdir`.
    pub fn start(astlogdir: &Path, options: &CdrCsv) -> io::Result<Self> {
        let zone = if options.usegmtime { Zone::utc() } else { Zone::local() };
        let (records, queue) = channel();
        let (tell, trouble) = channel();
        let shared = Arc::new(Shared::default());
        let mut writer = Writer {
            folder: astlogdir.join(FOLDER),
            options: options.clone(),
            zone,
            shared: shared.clone(),
            tell,
            line: String::new(),
            dates: Dates::default(),
            synced: None,
        };
        let thread = std::thread::Builder::new().name("cdr".into()).spawn(move || writer.run(&queue))?;
        Ok(Self { records: Some(records), shared, lost: 0, trouble, writer: Some(thread) })
    }

    /// Hands a record over; its number, to compare with [`Self::written`]. `None` when too many wait already: the record
    /// is lost and counted.
    pub fn write(&mut self, record: Cdr) -> Option<u64> {
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

impl Drop for CdrSink {
    /// Waits until everything is on the disk, or was tried often enough.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.records = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

struct Writer {
    folder: PathBuf,
    options: CdrCsv,
    zone: Zone,
    shared: Arc<Shared>,
    tell: Sender<String>,
    line: String,
    dates: Dates,
    synced: Option<Instant>,
}

impl Writer {
    fn run(&mut self, queue: &Receiver<Box<Cdr>>) {
        let mut last_tries = LAST_TRIES;
        while let Ok(first) = queue.recv() {
            let batch = self.gather(*first, queue);
            let mut files = self.lines(&batch);
            let mut told = false;
            while let Err((path, error)) = write_all(&mut files) {
                if !std::mem::replace(&mut told, true) {
                    let kept = self.shared.handed.load(Ordering::Relaxed)
                        - self.shared.written.load(Ordering::Relaxed);
                    let message = format!(
                        "{}: cannot be written: {error}; {kept} call records wait in memory; free space on the disk and let \
                         astlogdir belong to the user Strowger runs as",
                        path.display()
                    );
                    let _ = self.tell.send(message);
                }
                if self.shared.closing.load(Ordering::Relaxed) {
                    last_tries -= 1;
                    if last_tries == 0 {
                        return;
                    }
                }
                std::thread::sleep(RETRY);
            }
            self.synced = Some(Instant::now());
            self.shared.written.fetch_add(batch.len() as u64, Ordering::Release);
        }
    }

    /// Waits a moment for more, so that one sync serves them all.
    ///
    /// It sleeps through the moment instead of waiting on the queue, where every record would wake it.
    fn gather(&self, first: Cdr, queue: &Receiver<Box<Cdr>>) -> Vec<Cdr> {
        if !self.shared.closing.load(Ordering::Relaxed) {
            let rest = self.synced.map_or(Duration::ZERO, |at| SYNC_EVERY.saturating_sub(at.elapsed()));
            std::thread::sleep(rest.max(GATHER));
        }
        let more = queue.try_iter().take(BATCH_MAX - 1).map(|record| *record);
        std::iter::once(first).chain(more).collect()
    }

    /// What goes to which file.
    fn lines(&mut self, batch: &[Cdr]) -> BTreeMap<PathBuf, String> {
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut master = String::new();
        for record in batch {
            self.line.clear();
            line(record, &self.options, &self.zone, &mut self.dates, &mut self.line);
            master.push_str(&self.line);
            if self.options.accountlogs
                && let Some(name) = account_file(&record.account)
            {
                files.entry(self.folder.join(name)).or_default().push_str(&self.line);
            }
        }
        files.insert(self.folder.join(MASTER), master);
        files
    }
}

/// The file of an account. An account code comes from the dialplan, so it must not lead out of the folder, nor be taken
/// for the master.
fn account_file(account: &str) -> Option<String> {
    let plain = !account.is_empty()
        && account.len() <= ACCOUNT_BYTES_MAX
        && !account.starts_with('.')
        && !account.contains(['/', '\0'])
        && account != "Master";
    plain.then(|| format!("{account}.csv"))
}

/// Writes every file and takes it out of the map, so that a second try repeats nothing.
fn write_all(files: &mut BTreeMap<PathBuf, String>) -> Result<(), (PathBuf, io::Error)> {
    while let Some(entry) = files.first_entry() {
        append(entry.key(), entry.get().as_bytes()).map_err(|error| (entry.key().clone(), error))?;
        entry.remove();
    }
    Ok(())
}

/// Appends and syncs. The file is opened each time, so that it may be renamed at any time; half a line is taken back.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Call records tell who called whom: not for everyone.
    let open = || OpenOptions::new().append(true).create(true).mode(0o640).open(path);
    let mut file = match (open(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            open()?
        }
        (opened, _) => opened?,
    };
    let before = file.metadata()?.len();
    let result = file.write_all(bytes).and_then(|()| file.sync_data());
    if result.is_err() {
        take_back(&file, before);
    }
    result
}

fn take_back(file: &File, length: u64) {
    // When even this fails, the next try appends after half a line, which is better than losing records.
    let _ = file.set_len(length);
}

/// One line, in Asterisk's column order and quoting: text in quotes with quotes doubled, numbers bare, a time that never
/// was as nothing.
fn line(record: &Cdr, options: &CdrCsv, zone: &Zone, dates: &mut Dates, out: &mut String) {
    for column in [&record.account, &record.src, &record.dst, &record.dcontext, &record.clid] {
        text(column, out);
    }
    for column in [&record.channel, &record.dst_channel, &record.last_app, &record.last_data] {
        text(column, out);
    }
    text(dates.of(record.start, zone), out);
    match record.answer {
        Some(answer) => text(dates.of(answer, zone), out),
        None => out.push(','),
    }
    text(dates.of(record.end, zone), out);
    // Writing to a String cannot fail.
    let _ = write!(out, "{},{},", record.duration.as_secs(), record.billsec.as_secs());
    text(record.disposition.name(), out);
    text(record.ama_flags.name(), out);
    if options.loguniqueid {
        text(&record.uniqueid, out);
    }
    if options.loguserfield {
        text(&record.user_field, out);
    }
    if options.newcdrcolumns {
        text(&record.peer_account, out);
        text(&record.linkedid, out);
        let _ = write!(out, "{},", record.sequence);
    }
    out.pop();
    out.push('\n');
}

/// A quoted column with its comma. A line break inside would look like another record, so it becomes a space.
fn text(column: &str, out: &mut String) {
    out.push('"');
    if column.bytes().any(|byte| matches!(byte, b'"' | b'\n' | b'\r')) {
        for c in column.chars() {
            match c {
                '"' => out.push_str("\"\""),
                '\n' | '\r' => out.push(' '),
                c => out.push(c),
            }
        }
    } else {
        out.push_str(column);
    }
    out.push_str("\",");
}

/// Records of one moment share their dates: the second written last, with its text.
#[derive(Debug, Default)]
struct Dates {
    second: Option<i64>,
    text: String,
}

impl Dates {
    fn of(&mut self, micros: i64, zone: &Zone) -> &str {
        let second = micros.div_euclid(1_000_000);
        if self.second != Some(second) {
            self.text = format(micros, zone, "%Y-%m-%d %T");
            self.second = Some(second);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use call::{AmaFlags, Disposition};

    fn record() -> Cdr {
        Cdr {
            account: "sales".into(),
            src: "101".into(),
            dst: "102".into(),
            dcontext: "internal".into(),
            clid: "\"Ann, A\" <101>".into(),
            channel: "PJSIP/101-00000001".into(),
            dst_channel: "PJSIP/102-00000002".into(),
            last_app: "Dial".into(),
            last_data: "PJSIP/102,20\r\nx".into(),
            start: 1_763_762_068_900_000,
            answer: None,
            end: 1_763_762_078_000_000,
            duration: Duration::from_millis(10_900),
            billsec: Duration::ZERO,
            disposition: Disposition::NoAnswer,
            ama_flags: AmaFlags::Documentation,
            uniqueid: "1763762068.1".into(),
            user_field: "x;y".into(),
            linkedid: "1763762068.0".into(),
            peer_account: "p".into(),
            sequence: 7,
            custom: Vec::new(),
        }
    }

    #[test]
    fn a_line_has_asterisks_columns_and_quoting() {
        let common = "\"sales\",\"101\",\"102\",\"internal\",\"\"\"Ann, A\"\" <101>\",\"PJSIP/101-00000001\",\
                      \"PJSIP/102-00000002\",\"Dial\",\"PJSIP/102,20  x\",\"2025-11-21 21:54:28\",";
        let rest = "\"2025-11-21 21:54:38\",10,0,\"NO ANSWER\",\"DOCUMENTATION\"";
        let answered = Cdr { answer: Some(1_763_762_070_000_000), ..record() };
        let none = CdrCsv::default();
        let ids = CdrCsv { loguniqueid: true, loguserfield: true, ..CdrCsv::default() };
        let all = CdrCsv { newcdrcolumns: true, ..ids.clone() };
        for (name, record, options, expected) in [
            ("unanswered", record(), &none, format!("{common},{rest}\n")),
            ("answered", answered, &none, format!("{common}\"2025-11-21 21:54:30\",{rest}\n")),
            ("with ids", record(), &ids, format!("{common},{rest},\"1763762068.1\",\"x;y\"\n")),
            (
                "with new columns",
                record(),
                &all,
                format!("{common},{rest},\"1763762068.1\",\"x;y\",\"p\",\"1763762068.0\",7\n"),
            ),
        ] {
            let mut out = String::new();
            line(&record, options, &Zone::utc(), &mut Dates::default(), &mut out);
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn an_account_names_a_file_only_inside_the_folder() {
        for (account, expected) in [
            ("sales", Some("sales.csv")),
            ("", None),
            ("../passwd", None),
            ("a/b", None),
            (".hidden", None),
            ("Master", None),
        ] {
            assert_eq!(account_file(account).as_deref(), expected, "{account:?}");
        }
    }
}
