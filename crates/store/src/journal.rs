//! A journal of records that are soft state: written before the answer goes out, on the disk within a second.
//!
//! Appending writes to the file at once, so a crash of the process loses nothing; a thread syncs, so a crash of the
//! machine loses at most [`SYNC_WITHIN`]. When the journal has grown far beyond what is alive, its owner hands over the
//! live records and a thread makes a new base of them while appending goes on in a new log.
//!
//! Files: `NAME.<generation>.log`, and `NAME.<generation>.base` for all generations but the first. A base stands for
//! everything before its log. Replay takes the newest complete base and every log from its generation on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time a record waits for its sync.
pub const SYNC_WITHIN: Duration = Duration::from_millis(900);
/// Of that so long is waited for more to share the sync; the rest is for the disk.
const GATHER: Duration = Duration::from_millis(500);
/// Longest record, in bytes: a contact with all it carries is below 4 kB.
pub const RECORD_BYTES_MAX: usize = 64 << 10;
/// Log size below which compaction is not worth it, in bytes.
const COMPACT_ABOVE: u64 = 1 << 20;
/// First bytes of every file: name and version.
const MAGIC: &[u8; 8] = b"STRJRNL1";
/// Length and checksum before each record, in bytes.
const HEAD: usize = 8;

/// Why appending failed.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Over [`RECORD_BYTES_MAX`].
    #[error("the record has {0} bytes")]
    TooLong(usize),
    /// The disk refused; nothing of the record stays.
    #[error(
        "the journal cannot be written: {0}; free space on the disk and let astdbdir belong to the user Strowger runs as"
    )]
    Disk(#[from] io::Error),
}

/// What replay found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Records, oldest first.
    pub records: Vec<Vec<u8>>,
    /// Bytes at the ends of files that were no whole record: what a crash cut off.
    pub torn_bytes: u64,
}

enum Job {
    Sync { log: File, due: Arc<AtomicBool> },
    Base { records: Vec<u8>, generation: u64 },
}

/// The journal. Belongs to one thread.
#[derive(Debug)]
pub struct Journal {
    stem: PathBuf,
    generation: u64,
    log: File,
    log_bytes: u64,
    /// A sync of this log is due that will cover what is appended until it begins.
    sync_due: Arc<AtomicBool>,
    jobs: Option<Sender<Job>>,
    trouble: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Journal {
    /// Opens the journal `stem` (`/var/lib/…/registrations`), and reads what it holds.
    pub fn open(stem: &Path) -> io::Result<(Self, Replay)> {
        if let Some(folder) = stem.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut replay = Replay::default();
        let (bases, logs) = generations(stem)?;
        let base = bases.iter().rev().find(|generation| {
            // A base appears under its name only when it is complete, so a damaged one is a damaged disk: take an older.
            read(&path(stem, **generation, "base"), &mut replay, true).is_ok()
        });
        let first = base.copied().unwrap_or(0);
        for &generation in logs.iter().filter(|generation| **generation >= first) {
            read(&path(stem, generation, "log"), &mut replay, false)?;
        }
        let generation = logs.iter().chain(&bases).max().copied().unwrap_or(0).max(first);
        let (log, log_bytes) = open_log(&path(stem, generation, "log"))?;
        remove_before(stem, first)?;
        let (jobs, queue) = channel();
        let (tell, trouble) = sync_channel(1);
        let sync_due = Arc::new(AtomicBool::new(false));
        let worker = Worker { stem: stem.to_owned(), tell };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || worker.run(&queue))?;
        let (stem, jobs, thread) = (stem.to_owned(), Some(jobs), Some(thread));
        Ok((Self { stem, generation, log, log_bytes, sync_due, jobs, trouble, thread }, replay))
    }

    /// Writes a record. When this returns the record outlives the process; within [`SYNC_WITHIN`] also the machine.
    pub fn append(&mut self, record: &[u8]) -> Result<(), AppendError> {
        self.append_all([record])
    }
    /// Writes records with one system call: all of them, or none.
    pub fn append_all<'a>(&mut self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<(), AppendError> {
        let mut framed = Vec::new();
        for record in records {
            if record.len() > RECORD_BYTES_MAX {
                return Err(AppendError::TooLong(record.len()));
            }
            frame(record, &mut framed);
        }
        if let Err(error) = self.log.write_all(&framed) {
            // Half a record would end the replay of everything after it.
            let _ = self.log.set_len(self.log_bytes);
            return Err(error.into());
        }
        self.log_bytes += framed.len() as u64;
        if !self.sync_due.swap(true, Ordering::AcqRel)
            && let (Some(jobs), Ok(log)) = (&self.jobs, self.log.try_clone())
        {
            let _ = jobs.send(Job::Sync { log, due: self.sync_due.clone() });
        }
        Ok(())
    }

    /// Whether the log is far larger than `live_bytes`, what the live records take.
    pub fn wants_compaction(&self, live_bytes: u64) -> bool {
        self.log_bytes > COMPACT_ABOVE && self.log_bytes / 4 > live_bytes
    }

    /// Begins a new log and makes a base of the live records in the background. False when that cannot be done at the
    /// moment; the old log goes on then.
    pub fn compact<'a>(&mut self, live: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let Some(jobs) = &self.jobs else { return false };
        let mut records = MAGIC.to_vec();
        live.into_iter().for_each(|record| frame(record, &mut records));
        let generation = self.generation + 1;
        let Ok((log, log_bytes)) = open_log(&path(&self.stem, generation, "log")) else { return false };
        if jobs.send(Job::Base { records, generation }).is_err() {
            let _ = fs::remove_file(path(&self.stem, generation, "log"));
            return false;
        }
        // The sync that may be due is one of the old log.
        self.sync_due = Arc::new(AtomicBool::new(false));
        (self.log, self.log_bytes, self.generation) = (log, log_bytes, generation);
        true
    }

    /// Bytes of the log.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// What the thread has to complain about.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }
}

impl Drop for Journal {
    /// Waits for what is under way and syncs the rest.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = self.log.sync_data();
    }
}

struct Worker {
    stem: PathBuf,
    tell: SyncSender<String>,
}

impl Worker {
    fn run(&self, queue: &Receiver<Job>) {
        let mut next = None;
        // Sleeps in recv while nothing is due; ends when the owner is gone and everything is done.
        while let Some(job) = next.take().or_else(|| queue.recv().ok()) {
            match job {
                Job::Sync { log, due } => {
                    // What comes in a moment shares the sync. Another job or the end cuts the wait short.
                    match queue.recv_timeout(GATHER) {
                        Ok(job) => next = Some(job),
                        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                    }
                    // Before the sync: what is appended during it asks for another.
                    due.store(false, Ordering::Release);
                    self.report("cannot be synced", log.sync_data());
                }
                Job::Base { records, generation } => {
                    self.report("cannot be compacted", base(&self.stem, &records, generation));
                }
            }
        }
    }

    fn report(&self, what: &str, result: io::Result<()>) {
        if let Err(error) = result {
            // One complaint at a time is enough.
            let _ = self
                .tell
                .try_send(format!("{}: {what}: {error}; free space on the disk", self.stem.display()));
        }
    }
}

/// Writes a base beside its name, syncs it, gives it its name, and removes what it stands for.
fn base(stem: &Path, records: &[u8], generation: u64) -> io::Result<()> {
    let (temporary, named) = (path(stem, generation, "new"), path(stem, generation, "base"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(records)?;
    file.sync_all()?;
    fs::rename(&temporary, &named)?;
    sync_folder(stem)?;
    remove_before(stem, generation)
}

fn sync_folder(stem: &Path) -> io::Result<()> {
    stem.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn remove_before(stem: &Path, first: u64) -> io::Result<()> {
    let (bases, logs) = generations(stem)?;
    for (generations, kind) in [(bases, "base"), (logs, "log")] {
        for generation in generations.into_iter().filter(|generation| *generation < first) {
            fs::remove_file(path(stem, generation, kind))?;
        }
    }
    Ok(())
}

fn path(stem: &Path, generation: u64, kind: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(format!(".{generation}.{kind}"));
    name.into()
}

/// Generations of bases and of logs, in order.
fn generations(stem: &Path) -> io::Result<(Vec<u64>, Vec<u64>)> {
    let (mut bases, mut logs) = (Vec::new(), Vec::new());
    let name = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = stem.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(folder)?.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let rest = file.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.'));
        let Some((generation, kind)) = rest.and_then(|rest| rest.split_once('.')) else { continue };
        let Ok(generation) = generation.parse() else { continue };
        match kind {
            "base" => bases.push(generation),
            "log" => logs.push(generation),
            _ => {}
        }
    }
    bases.sort_unstable();
    logs.sort_unstable();
    Ok((bases, logs))
}

/// Opens a log for appending, a new one with its first bytes; a torn end is cut off.
fn open_log(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let bytes = fs::read(path)?;
    let whole = whole_bytes(&bytes);
    if whole == 0 {
        file.set_len(0)?;
        file.write_all(MAGIC)?;
        return Ok((file, MAGIC.len() as u64));
    }
    if whole < bytes.len() {
        file.set_len(whole as u64)?;
    }
    Ok((file, whole as u64))
}

/// Adds a file's records to the replay. A base must be whole.
fn read(path: &Path, replay: &mut Replay, must_be_whole: bool) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let whole = whole_bytes(&bytes);
    if must_be_whole && (whole == 0 || whole != bytes.len()) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    replay.torn_bytes += (bytes.len() - whole) as u64;
    replay.records.extend(records(&bytes).map(<[u8]>::to_vec));
    Ok(())
}

/// Bytes from the beginning that are whole records; 0 when the file does not begin as it should.
fn whole_bytes(bytes: &[u8]) -> usize {
    if !bytes.starts_with(MAGIC) {
        return 0;
    }
    MAGIC.len() + records(bytes).map(|record| HEAD + record.len()).sum::<usize>()
}

/// Whole records of a file, up to the first that is not.
fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.strip_prefix(MAGIC).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (sum, after) = after.split_first_chunk::<4>()?;
        let length =
            usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= RECORD_BYTES_MAX)?;
        let record = after.get(..length)?;
        if checksum(record) != u32::from_le_bytes(*sum) {
            return None;
        }
        rest = after.get(length..)?;
        Some(record)
    })
}

fn frame(record: &[u8], out: &mut Vec<u8>) {
    // Bounded by RECORD_BYTES_MAX when appended; a longer live record was never appended.
    out.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&checksum(record).to_le_bytes());
    out.extend_from_slice(record);
}

/// Of the length and the record, so that a run of zeros, which a crash can leave, is no empty record.
fn checksum(record: &[u8]) -> u32 {
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes();
    crc32(length.iter().chain(record))
}

/// CRC-32 of IEEE 802.3.
fn crc32<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.into_iter().fold(u32::MAX, |crc, byte| {
        let index = (crc ^ u32::from(*byte)) & 0xff;
        (crc >> 8) ^ TABLE.get(index as usize).copied().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_file_cut_anywhere_gives_its_whole_records() {
        let mut bytes = MAGIC.to_vec();
        for record in [&b"one"[..], b"", b"three"] {
            frame(record, &mut bytes);
        }
        let ends = [MAGIC.len() + HEAD + 3, MAGIC.len() + HEAD + 3 + HEAD, bytes.len()];
        for length in 0..=bytes.len() {
            let cut = bytes.get(..length).unwrap();
            let whole = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(records(cut).count(), whole, "{length}");
        }
        for at in MAGIC.len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(records(&damaged).count() < 3, "{at}");
        }
    }

    #[test]
    fn zeros_after_a_crash_are_no_record() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[0; 64]);
        assert_eq!(records(&bytes).count(), 0);
    }
}
