//! The log: lines from the shard to the console, to files and to the system's log, as `logger.conf` says.
//!
//! The shard's end decides by a bit whether anyone would read a line and hands it over; a thread writes. When lines come
//! faster than the disk takes them, further ones are dropped and counted, and the count is logged.

pub(crate) mod syslog;

use crate::config::logger::{Channel, Formatter, LogLevel, Logger, Rotate, Target};
use crate::date::{Zone, format};
use call::Level;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::SystemTime;
use syslog::Syslog;

/// Longest message written, in bytes; the rest is cut off. Asterisk's own buffer is 4 kB.
pub const MESSAGE_BYTES_MAX: usize = 8 << 10;
/// Most lines of one write.
const BATCH_MAX: usize = 256;
/// Most files that are logged to beside those of logger.conf; a console adds them one by one.
pub const ADDED_MAX: usize = 32;
/// Most old files that sequential rotation looks past.
const OLD_FILES_MAX: u32 = 100_000;

struct Line {
    at_micros: i64,
    level: Level,
    /// The number of the call that it is about.
    call: Option<u32>,
    place: String,
    message: String,
}

enum Job {
    Line(Line),
    Configure(Box<Logger>),
    Rotate,
    Flush(Sender<()>),
}

/// What both ends see.
#[derive(Debug, Default)]
struct Shared {
    /// A bit for every level somebody reads.
    levels: AtomicU32,
    /// Verbosity of the console, as `-v` and `core set verbose`.
    verbose: AtomicU8,
    /// Highest verbose level that a file of its own asks for.
    verbose_of_files: AtomicU8,
    /// As `-d` and `core set debug`.
    debug: AtomicU8,
    /// Verbose lines on the console begin with the time, as `-T`.
    timestamps: AtomicBool,
    waiting: AtomicU64,
    waiting_max: AtomicU64,
    dropped: AtomicU64,
}

/// The thread that writes. Dropping it writes what waits.
#[derive(Debug)]
pub struct LogSink {
    jobs: Option<Sender<Job>>,
    /// `logger.conf`.
    configured: RefCell<Logger>,
    /// Channels that were added by hand; they stay through reloads.
    added: RefCell<Vec<Channel>>,
    shared: Arc<Shared>,
    trouble: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

/// The end that code logs into; cheap to clone, one for each thread.
#[derive(Debug, Clone)]
pub struct LogSender {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
}

impl LogSink {
    /// Starts the thread. `console` is where lines for the console go, if there is one.
    pub fn start(
        logger: &Logger,
        astlogdir: &Path,
        console: Option<Box<dyn Write + Send>>,
    ) -> io::Result<(Self, LogSender)> {
        let shared = Arc::new(Shared::default());
        let (jobs, queue) = channel();
        let (tell, trouble) = channel();
        let mut writer = Writer {
            folder: astlogdir.to_owned(),
            console,
            logger: logger.clone(),
            files: BTreeMap::new(),
            refusing: BTreeMap::new(),
            syslog: Syslog::default(),
            host: hostname(),
            tell,
            zone: Zone::local(),
            process: std::process::id(),
            shared: shared.clone(),
        };
        shared.configure(logger);
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || writer.run(&queue))?;
        let sender = LogSender { jobs: jobs.clone(), shared: shared.clone() };
        let (configured, added) = (RefCell::new(logger.clone()), RefCell::default());
        Ok((Self { jobs: Some(jobs), configured, added, shared, trouble, thread: Some(thread) }, sender))
    }
    /// What keeps lines from a file, once for each time it begins, and once when it is over.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }
    /// Takes a new `logger.conf`; files are opened anew.
    pub fn configure(&self, logger: Logger) {
        *self.configured.borrow_mut() = logger;
        self.apply();
    }
    /// Logs to one more file, or to a known one in another way. False when so many were added that no more fit.
    pub fn add(&self, channel: Channel) -> bool {
        {
            let mut added = self.added.borrow_mut();
            added.retain(|known| known.target != channel.target);
            if added.len() >= ADDED_MAX {
                return false;
            }
            added.push(channel);
        }
        self.apply();
        true
    }
    /// Takes back what [`Self::add`] did to a target; false when it did nothing to it.
    pub fn remove(&self, target: &Target) -> bool {
        let before = self.added.borrow().len();
        self.added.borrow_mut().retain(|known| known.target != *target);
        let found = self.added.borrow().len() < before;
        if found {
            self.apply();
        }
        found
    }
    /// Where lines go: as logger.conf says, and as was added to it by hand.
    pub fn channels(&self) -> Vec<Channel> {
        self.in_force().channels
    }
    fn in_force(&self) -> Logger {
        let mut logger = self.configured.borrow().clone();
        let added = self.added.borrow();
        logger.channels.retain(|channel| !added.iter().any(|other| other.target == channel.target));
        logger.channels.extend(added.iter().cloned());
        logger
    }
    fn apply(&self) {
        let logger = self.in_force();
        self.shared.configure(&logger);
        self.send(Job::Configure(Box::new(logger)));
    }
    /// Rotates the files, as `logger rotate`.
    pub fn rotate(&self) {
        self.send(Job::Rotate);
    }
    /// Waits until everything handed over so far is written. Blocks: for shutdown and tests.
    pub fn flush(&self) {
        let (done, wait) = channel();
        self.send(Job::Flush(done));
        let _ = wait.recv();
    }
    /// Sets the verbosity of the console.
    pub fn set_verbose(&self, level: u8) {
        self.shared.verbose.store(level, Ordering::Relaxed);
    }
    /// Sets the debug level.
    pub fn set_debug(&self, level: u8) {
        self.shared.debug.store(level, Ordering::Relaxed);
    }
    /// Whether verbose lines on the console begin with the time; all other lines always do.
    pub fn set_timestamps(&self, stamped: bool) {
        self.shared.timestamps.store(stamped, Ordering::Relaxed);
    }
    /// Lines dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        // Senders may outlive the sink, so the end is a job and not the end of the channel.
        self.flush();
        self.shared.levels.store(0, Ordering::Relaxed);
        self.jobs = None;
        // The thread ends with the last sender.
        self.thread = None;
    }
}

impl Shared {
    fn configure(&self, logger: &Logger) {
        let levels = logger.channels.iter().fold(0, |bits, channel| {
            LogLevel::ALL
                .iter()
                .filter(|level| channel.levels.contains(**level))
                .fold(bits, |b, l| b | bit(*l))
        });
        let verbose = logger.channels.iter().filter_map(|channel| channel.verbose).max().unwrap_or(0);
        self.levels.store(levels, Ordering::Relaxed);
        self.verbose_of_files.store(verbose, Ordering::Relaxed);
        self.waiting_max.store(logger.general.logger_queue_limit.into(), Ordering::Relaxed);
    }
}

fn bit(level: LogLevel) -> u32 {
    1 << level as u32
}

fn kind(level: Level) -> LogLevel {
    match level {
        Level::Debug(_) => LogLevel::Debug,
        Level::Verbose(_) => LogLevel::Verbose,
        Level::Notice => LogLevel::Notice,
        Level::Warning => LogLevel::Warning,
        Level::Error => LogLevel::Error,
        Level::Dtmf => LogLevel::Dtmf,
        Level::Security => LogLevel::Security,
    }
}

impl LogSender {
    /// Whether anybody would read a line of this level.
    pub fn enabled(&self, level: Level) -> bool {
        let shared = &self.shared;
        let wanted = match level {
            Level::Debug(n) => n <= shared.debug.load(Ordering::Relaxed),
            Level::Verbose(n) => {
                n <= shared
                    .verbose
                    .load(Ordering::Relaxed)
                    .max(shared.verbose_of_files.load(Ordering::Relaxed))
            }
            Level::Notice | Level::Warning | Level::Error | Level::Dtmf | Level::Security => true,
        };
        wanted && shared.levels.load(Ordering::Relaxed) & bit(kind(level)) != 0
    }
    /// Hands a line over; drops it when too many wait. `place` is `app_dial`, `extensions.conf:12` and the like. Secrets
    /// and, above debug, numbers do not belong into messages.
    pub fn line(&self, level: Level, place: &str, message: &str) {
        self.line_of_call(None, level, place, message);
    }
    /// The same about a call with this number.
    pub fn line_of_call(&self, call: Option<u32>, level: Level, place: &str, message: &str) {
        if !self.enabled(level) {
            return;
        }
        let shared = &self.shared;
        if shared.waiting.load(Ordering::Relaxed) >= shared.waiting_max.load(Ordering::Relaxed) {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            at_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            level,
            call,
            place: place.to_owned(),
            message: cut(message).to_owned(),
        };
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        if self.jobs.send(Job::Line(line)).is_err() {
            shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl call::Log for LogSender {
    fn enabled(&self, level: Level) -> bool {
        LogSender::enabled(self, level)
    }
    fn line(&mut self, level: Level, place: &str, text: &str) {
        LogSender::line(self, level, place, text);
    }
    fn line_of_call(&mut self, call: Option<u32>, level: Level, place: &str, text: &str) {
        LogSender::line_of_call(self, call, level, place, text);
    }
}

fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}

struct Writer {
    folder: PathBuf,
    console: Option<Box<dyn Write + Send>>,
    logger: Logger,
    files: BTreeMap<PathBuf, File>,
    /// Files that cannot be written, and the lines that each has lost so far; the socket of syslog is one of them.
    refusing: BTreeMap<PathBuf, u64>,
    syslog: Syslog,
    host: String,
    tell: Sender<String>,
    zone: Zone,
    process: u32,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(&mut self, queue: &Receiver<Job>) {
        let mut told_dropped = 0;
        while let Ok(first) = queue.recv() {
            let mut text = Texts::default();
            for job in std::iter::once(first).chain(queue.try_iter().take(BATCH_MAX)) {
                match job {
                    Job::Line(line) => {
                        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                        self.write(&line, &mut text);
                    }
                    Job::Configure(logger) => {
                        self.put(&mut text);
                        self.files.clear();
                        self.zone = Zone::local();
                        self.logger = *logger;
                    }
                    Job::Rotate => {
                        self.put(&mut text);
                        self.rotate();
                    }
                    Job::Flush(done) => {
                        self.put(&mut text);
                        let _ = done.send(());
                    }
                }
            }
            let dropped = self.shared.dropped.load(Ordering::Relaxed);
            if dropped > told_dropped {
                let message = format!(
                    "{} log lines were dropped, more came than could be written",
                    dropped - told_dropped
                );
                told_dropped = dropped;
                let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let at_micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
                let line =
                    Line { at_micros, level: Level::Warning, call: None, place: "logger".into(), message };
                self.write(&line, &mut text);
            }
            self.put(&mut text);
        }
    }

    /// Adds a line to the text of every channel that wants it.
    fn write(&self, line: &Line, text: &mut Texts) {
        let verbose = self.shared.verbose.load(Ordering::Relaxed);
        let stamped = self.shared.timestamps.load(Ordering::Relaxed);
        for channel in &self.logger.channels {
            let loud = match line.level {
                Level::Verbose(n) => n <= channel.verbose.unwrap_or(verbose),
                _ => true,
            };
            if loud && channel.levels.contains(kind(line.level)) {
                let written = Written {
                    dateformat: &self.logger.general.dateformat,
                    zone: &self.zone,
                    process: self.process,
                    stamped,
                    numbered: self.logger.general.use_callids,
                    host: &self.host,
                };
                if let Target::Syslog(facility) = channel.target {
                    let mut one = String::new();
                    render(line, channel, &written, &mut one);
                    text.syslog.push(syslog::datagram(line, facility, &self.zone, self.process, &one));
                    continue;
                }
                let out = text.lines.entry(channel.target.clone()).or_default();
                render(line, channel, &written, out);
            }
        }
    }

    fn put(&mut self, text: &mut Texts) {
        let Texts { lines, syslog } = std::mem::take(text);
        if !syslog.is_empty() {
            let path = PathBuf::from(&self.logger.general.syslog_socket);
            let (lost, sent) = self.syslog.send(&path, &syslog);
            self.heed(path, sent, lost);
        }
        for (target, text) in lines {
            match target {
                Target::Console => {
                    if let Some(console) = &mut self.console {
                        // A console that went away is no reason to stop.
                        let _ = console.write_all(text.as_bytes()).and_then(|()| console.flush());
                    }
                }
                Target::File(name) => {
                    let path = self.path(&name);
                    let written = self.open(&path).and_then(|file| file.write_all(text.as_bytes()));
                    let lines = text.lines().count() as u64;
                    self.heed(path, written, lines);
                }
                Target::Syslog(_) => {}
            }
        }
    }

    /// Tells of a file that refuses lines, and of one that takes them again.
    fn heed(&mut self, path: PathBuf, written: io::Result<()>, lines: u64) {
        let told = match written {
            Ok(()) => {
                let Some(lost) = self.refusing.remove(&path) else { return };
                format!("{}: can be written again; {lost} lines were lost", path.display())
            }
            Err(error) => {
                self.files.remove(&path);
                if let Some(lost) = self.refusing.get_mut(&path) {
                    *lost += lines;
                    return;
                }
                let remedy = if path == Path::new(&self.logger.general.syslog_socket) {
                    "see that a daemon of syslog listens there"
                } else {
                    "free space on the disk and let astlogdir belong to the user Strowger runs as"
                };
                let told = format!(
                    "{}: cannot be written: {error}; its lines are lost until it can: {remedy}",
                    path.display()
                );
                self.refusing.insert(path, lines);
                told
            }
        };
        // Nobody listens any more only when the process ends.
        let _ = self.tell.send(told);
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        match self.logger.general.appendhostname {
            true => PathBuf::from(format!("{}.{}", path.display(), self.host)),
            false => path,
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<&mut File> {
        use std::collections::btree_map::Entry;
        match self.files.entry(path.to_owned()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                Ok(entry.insert(OpenOptions::new().append(true).create(true).mode(0o640).open(path)?))
            }
        }
    }

    fn rotate(&mut self) {
        self.files.clear();
        let names: std::collections::BTreeSet<_> = self
            .logger
            .channels
            .iter()
            .filter_map(|channel| match &channel.target {
                Target::File(name) => Some(name.clone()),
                Target::Console | Target::Syslog(_) => None,
            })
            .collect();
        for name in names {
            let path = self.path(&name);
            if path.exists() {
                let _ = set_aside(&path, self.logger.general.rotatestrategy);
                self.follow_up(&path);
            }
        }
    }
    /// Starts what `exec_after_rotate` wants done with a file. Nobody waits for it.
    fn follow_up(&self, path: &Path) {
        let command = &self.logger.general.exec_after_rotate;
        if command.is_empty() {
            return;
        }
        // The shell puts the name in the place of ${filename}: no name can become a part of the command.
        let started = Command::new("/bin/sh")
            .args(["-c", command])
            .env("filename", path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let told = match started {
            Ok(mut child) => {
                // Who has ended is to be asked, or stays in the table of processes.
                let waits = std::thread::Builder::new().name("rotated".into()).spawn(move || child.wait());
                waits.err().map(|why| format!("exec_after_rotate is not waited for: {why}"))
            }
            Err(why) => Some(format!("exec_after_rotate={command} cannot be started: {why}")),
        };
        if let Some(told) = told {
            let _ = self.tell.send(told);
        }
    }
}

/// Text of one batch, by where it goes.
#[derive(Default)]
struct Texts {
    lines: BTreeMap<Target, String>,
    syslog: Vec<Vec<u8>>,
}

/// The name of this machine.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}

fn numbered(path: &Path, number: impl std::fmt::Display) -> PathBuf {
    PathBuf::from(format!("{}.{number}", path.display()))
}

/// Gives the old file its new name.
/// Gives a file another name, as the strategy says, so that a new one begins.
pub fn set_aside(path: &Path, strategy: Rotate) -> io::Result<()> {
    let free = (0..OLD_FILES_MAX).find(|number| !numbered(path, number).exists()).unwrap_or(OLD_FILES_MAX);
    match strategy {
        Rotate::None => Ok(()),
        Rotate::Sequential => std::fs::rename(path, numbered(path, free)),
        Rotate::Rotate => {
            for number in (0..free).rev() {
                std::fs::rename(numbered(path, number), numbered(path, number + 1))?;
            }
            std::fs::rename(path, numbered(path, 0))
        }
        Rotate::Timestamp => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            std::fs::rename(path, numbered(path, now.as_secs()))
        }
    }
}

/// What is the same for all lines.
struct Written<'a> {
    host: &'a str,
    dateformat: &'a str,
    zone: &'a Zone,
    process: u32,
    /// Verbose lines of the console have a date too.
    stamped: bool,
    /// Lines about a call have its number.
    numbered: bool,
}

/// One line, in the format of its channel.
fn render(line: &Line, channel: &Channel, written: &Written<'_>, out: &mut String) {
    let process = written.process;
    let date = format(line.at_micros, written.zone, written.dateformat);
    let level = kind(line.level).name();
    let console = channel.target == Target::Console;
    let call = line.call.filter(|_| written.numbered).map(|number| format!("C-{number:08x}"));
    // Writing to a String cannot fail.
    let _ = match channel.formatter {
        Formatter::Json => {
            let mut object = serde_json::json!({
                "hostname": written.host, "timestamp": date, "level": level, "process": process,
                "location": line.place, "message": line.message,
            });
            if let (Some(call), Some(object)) = (&call, object.as_object_mut()) {
                object.insert("identifiers".to_owned(), serde_json::json!({ "callid": call }));
            }
            writeln!(out, "{object}")
        }
        // What the dialplan does reads as a story on the console, without date and level.
        Formatter::Default if console && matches!(line.level, Level::Verbose(_)) => {
            let date = if written.stamped { format!("[{date}] ") } else { String::new() };
            writeln!(out, "{date}{}", Escaped(&line.message))
        }
        Formatter::Default | Formatter::Plain => {
            // The system's log stamps lines itself, and knows the process.
            let head = match channel.target {
                Target::Syslog(_) => level.to_owned(),
                Target::Console | Target::File(_) => format!("[{date}] {level}[{process}]"),
            };
            let call = call.map(|call| format!("[{call}]")).unwrap_or_default();
            writeln!(out, "{head}{call}: {}: {}", Escaped(&line.place), Escaped(&line.message))
        }
    };
}

/// A line as an attached console shows it: without date, control characters escaped.
pub fn console_line(level: Level, place: &str, message: &str) -> String {
    match level {
        Level::Verbose(_) => Escaped(cut(message)).to_string(),
        other => format!("{}: {}: {}", kind(other).name(), Escaped(place), Escaped(cut(message))),
    }
}

/// Control characters as `\n` and `\x1b`, so that nobody outside can write a line of his own or steer a terminal.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_char('\t')?,
                c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::logger::Levels;

    fn rendered(level: Level, target: Target, formatter: Formatter, message: &str) -> String {
        rendered_of(None, level, target, formatter, message)
    }
    fn rendered_of(
        call: Option<u32>,
        level: Level,
        target: Target,
        formatter: Formatter,
        message: &str,
    ) -> String {
        let line = Line {
            at_micros: 1_763_762_068_000_000,
            level,
            call,
            place: "app_dial".into(),
            message: message.into(),
        };
        let channel = Channel { target, formatter, levels: Levels::ALL, verbose: None };
        let mut out = String::new();
        let written = written(false);
        render(&line, &channel, &written, &mut out);
        out
    }

    static UTC: std::sync::LazyLock<Zone> = std::sync::LazyLock::new(Zone::utc);

    fn written(stamped: bool) -> Written<'static> {
        Written { dateformat: "%b %e %T", zone: &UTC, process: 42, stamped, numbered: true, host: "north" }
    }

    #[test]
    fn a_line_about_a_call_has_its_number_where_people_look_for_it() {
        let file = || Target::File("full".into());
        let of = |target, formatter| rendered_of(Some(0x1F), Level::Notice, target, formatter, "busy");
        assert_eq!(
            of(file(), Formatter::Default),
            "[Nov 21 21:54:28] NOTICE[42][C-0000001f]: app_dial: busy\n"
        );
        assert_eq!(of(Target::Syslog(16), Formatter::Default), "NOTICE[C-0000001f]: app_dial: busy\n");
        let json: serde_json::Value = serde_json::from_str(&of(file(), Formatter::Json)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "hostname": "north", "timestamp": "Nov 21 21:54:28", "level": "NOTICE", "process": 42,
                "location": "app_dial", "message": "busy", "identifiers": { "callid": "C-0000001f" },
            })
        );
        let unnumbered = Written { numbered: false, ..written(false) };
        let line = Line {
            at_micros: 1_763_762_068_000_000,
            level: Level::Notice,
            call: Some(1),
            place: "x".into(),
            message: "y".into(),
        };
        let channel =
            Channel { target: file(), formatter: Formatter::Plain, levels: Levels::ALL, verbose: None };
        let mut out = String::new();
        render(&line, &channel, &unnumbered, &mut out);
        assert_eq!(out, "[Nov 21 21:54:28] NOTICE[42]: x: y\n");
    }

    #[test]
    fn datagrams_for_syslog_have_facility_and_severity_rfc5424_6_2_1() {
        for (level, facility, priority) in [
            (Level::Error, 16, 131),
            (Level::Warning, 16, 132),
            (Level::Notice, 23, 189),
            (Level::Security, 4, 37),
            (Level::Verbose(1), 3, 31),
            (Level::Debug(1), 0, 7),
        ] {
            let line = Line {
                at_micros: 1_763_762_068_000_000,
                level,
                call: None,
                place: "x".into(),
                message: "y".into(),
            };
            let sent = syslog::datagram(&line, facility, &UTC, 42, "X: x: y\n\n");
            assert_eq!(
                String::from_utf8(sent).unwrap(),
                format!("<{priority}>Nov 21 21:54:28 asterisk[42]: X: x: y")
            );
        }
        let line = Line {
            at_micros: 0,
            level: Level::Error,
            call: None,
            place: String::new(),
            message: String::new(),
        };
        let long = syslog::datagram(&line, 1, &UTC, 1, &"é".repeat(9_000));
        assert!((8 * 1024 - 1..=8 * 1024).contains(&long.len()), "cut between characters: {}", long.len());
    }

    #[test]
    fn verbose_lines_of_the_console_have_the_time_when_it_is_asked_for() {
        let line = Line {
            at_micros: 1_763_762_068_000_000,
            level: Level::Verbose(3),
            call: Some(1),
            place: "app_dial".into(),
            message: "    -- Called".into(),
        };
        let channel = Channel {
            target: Target::Console,
            formatter: Formatter::Default,
            levels: Levels::ALL,
            verbose: None,
        };
        let mut out = String::new();
        render(&line, &channel, &written(true), &mut out);
        assert_eq!(out, "[Nov 21 21:54:28]     -- Called\n");
    }

    #[test]
    fn a_line_has_asterisks_format_and_stays_one_line() {
        let file = || Target::File("full".into());
        for (name, actual, expected) in [
            (
                "a file",
                rendered(Level::Warning, file(), Formatter::Default, "no such host"),
                "[Nov 21 21:54:28] WARNING[42]: app_dial: no such host\n",
            ),
            (
                "a forged line",
                rendered(Level::Notice, file(), Formatter::Plain, "x\r\n[Nov] \x1b[31mNOTICE"),
                "[Nov 21 21:54:28] NOTICE[42]: app_dial: x\\r\\n[Nov] \\x1b[31mNOTICE\n",
            ),
            (
                "verbose on the console",
                rendered(Level::Verbose(3), Target::Console, Formatter::Default, "    -- Called"),
                "    -- Called\n",
            ),
            (
                "verbose in a file",
                rendered(Level::Verbose(3), file(), Formatter::Default, "    -- Called"),
                "[Nov 21 21:54:28] VERBOSE[42]: app_dial:     -- Called\n",
            ),
        ] {
            assert_eq!(actual, expected, "{name}");
        }
        let json = rendered(Level::Security, file(), Formatter::Json, "a \"b\"\n");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (value["level"].as_str(), value["message"].as_str()),
            (Some("SECURITY"), Some("a \"b\"\n"))
        );
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = format!("{}é", "x".repeat(MESSAGE_BYTES_MAX - 1));
        assert_eq!(cut(&long).len(), MESSAGE_BYTES_MAX - 1);
        assert_eq!(cut("short"), "short");
    }
}
