//! Call files: a file put into `outgoing` of the spool is a call to be placed.
//!
//! One thread looks into the folder, reads what is due, and writes down what became of it; who places the calls asks
//! [`Spool::due`] and answers with [`Spool::done`]. Files are moved into the folder whole, so what is found is whole.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest call file.
pub const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Variables that one may set.
pub const VARIABLES_MAX: usize = 256;
/// Calls of call files that are being placed at once; the others wait in the folder.
pub const CALLS_MAX: usize = 256;
/// Files of the folder that are looked at in one round.
pub const FILES_MAX: usize = 10_000;
/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a call file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFile {
    /// `PJSIP/6001`.
    pub channel: String,
    /// Caller id.
    pub caller: String,
    /// Tries after the first.
    pub max_retries: u32,
    /// Seconds between two tries.
    pub retry_secs: u64,
    /// Seconds that it rings.
    pub wait_secs: u64,
    /// Account code.
    pub account: String,
    /// Where the call goes on: context, extension, priority or label.
    pub place: (String, String, String),
    /// Or what it does: application and data.
    pub application: Option<(String, String)>,
    /// Formats, as `allow=` writes them.
    pub codecs: String,
    /// Variables of the channel.
    pub variables: Vec<(String, String)>,
    /// Deletes the file even when its time lies in the future.
    pub always_delete: bool,
    /// Keeps it in `outgoing_done`.
    pub archive: bool,
    /// Goes on at early media.
    pub early_media: bool,
    /// Tries that were begun before.
    pub tries: u32,
}

impl Default for CallFile {
    fn default() -> Self {
        Self {
            channel: String::new(),
            caller: String::new(),
            max_retries: 0,
            retry_secs: 300,
            wait_secs: 45,
            account: String::new(),
            place: (String::new(), String::new(), "1".to_owned()),
            application: None,
            codecs: String::new(),
            variables: Vec::new(),
            always_delete: true,
            archive: false,
            early_media: false,
            tries: 0,
        }
    }
}

impl CallFile {
    /// Reads a file's text. The error says what is missing; what makes no sense otherwise is in the list of complaints.
    pub fn parse(text: &str, complaints: &mut Vec<String>) -> Result<Self, String> {
        let mut file = Self::default();
        let (mut application, mut data) = (String::new(), String::new());
        for (number, line) in (1..).zip(text.lines()) {
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            let Some((name, value)) = line.split_once(':') else {
                complaints.push(format!("line {number}: there is no ':' in '{line}'"));
                continue;
            };
            let value = value.trim();
            let mut count = |into: &mut u64| match value.parse() {
                Ok(value) => *into = value,
                Err(_) => complaints.push(format!("line {number}: '{value}' is no number")),
            };
            match name.trim().to_ascii_lowercase().as_str() {
                "channel" => file.channel = value.to_owned(),
                "callerid" => file.caller = value.to_owned(),
                "account" | "accountcode" => file.account = value.to_owned(),
                "context" => file.place.0 = value.to_owned(),
                "extension" => file.place.1 = value.to_owned(),
                "priority" => file.place.2 = value.to_owned(),
                "application" => application = value.to_owned(),
                "data" => data = value.to_owned(),
                "codecs" => file.codecs = value.to_owned(),
                "maxretries" => {
                    let mut retries = 0;
                    count(&mut retries);
                    file.max_retries = u32::try_from(retries).unwrap_or(u32::MAX);
                }
                "retrytime" => count(&mut file.retry_secs),
                "waittime" => count(&mut file.wait_secs),
                "set" | "setvar" => match value.split_once('=') {
                    Some(_) if file.variables.len() >= VARIABLES_MAX => {
                        complaints.push(format!("line {number}: more than {VARIABLES_MAX} variables"));
                    }
                    Some((name, value)) => {
                        file.variables.push((name.trim().to_owned(), value.trim().to_owned()));
                    }
                    None => complaints.push(format!("line {number}: there is no '=' in '{value}'")),
                },
                "alwaysdelete" => file.always_delete = is_yes(value),
                "archive" => file.archive = is_yes(value),
                "early_media" => file.early_media = is_yes(value),
                // Written by us: a try was begun. One of a process that is gone counts, too.
                "startretry" => file.tries = file.tries.saturating_add(1),
                "endretry" | "abortretry" | "delayedretry" | "status" => {}
                other => complaints.push(format!("line {number}: unknown keyword '{other}'")),
            }
        }
        if file.channel.is_empty() || !file.channel.contains('/') {
            return Err("there is no Channel: Technology/resource".to_owned());
        }
        if !application.is_empty() {
            file.application = Some((application, data));
        } else if file.place.1.is_empty() {
            return Err("there is neither an Application nor a Context with an Extension".to_owned());
        }
        Ok(file)
    }
}

/// A line up to a `;` at its start or after a blank; `#` at its start is a comment, too.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == ';' && before.is_whitespace() {
            return line.get(..at).unwrap_or_default();
        }
        before = c;
    }
    line
}

fn is_yes(text: &str) -> bool {
    conf::boolean(text) == Some(true)
}

/// A call to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Which file, for [`Spool::done`].
    pub path: PathBuf,
    /// What it asks for.
    pub file: CallFile,
}

/// Something to say about a file, or a call to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A call is due.
    Due(Box<Due>),
    /// A line for the log.
    Complaint(String),
}

/// The folder's thread, seen by who places the calls.
#[derive(Debug)]
pub struct Spool {
    news: Receiver<News>,
    done: SyncSender<(PathBuf, bool)>,
}

impl Spool {
    /// Looks after `outgoing` and `outgoing_done` of the spool; `ring` is called when there is news.
    ///
    /// # Errors
    /// When the folders or the thread cannot be made.
    pub fn start(spool: &Path, ring: impl Fn() + Send + 'static) -> io::Result<Self> {
        let keeper = Keeper::new(spool)?;
        let (tell, news) = sync_channel(CALLS_MAX);
        let (done, ended) = sync_channel::<(PathBuf, bool)>(CALLS_MAX);
        std::thread::Builder::new().name("call-files".to_owned()).spawn(move || {
            let mut keeper = keeper;
            loop {
                let now = SystemTime::now();
                for news in keeper.look(now) {
                    if tell.send(news).is_err() {
                        return;
                    }
                    ring();
                }
                match ended.recv_timeout(LOOK_EVERY) {
                    Ok((path, placed)) => {
                        keeper.ended(&path, placed, SystemTime::now());
                        while let Ok((path, placed)) = ended.try_recv() {
                            keeper.ended(&path, placed, SystemTime::now());
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Self { news, done })
    }
    /// The next news.
    pub fn due(&self) -> Option<News> {
        self.news.try_recv().ok()
    }
    /// Where it is told how calls came out: the file, and whether the call was answered. There is room for each.
    pub fn done(&self) -> SyncSender<(PathBuf, bool)> {
        self.done.clone()
    }
}

/// The folder itself.
#[derive(Debug)]
struct Keeper {
    outgoing: PathBuf,
    archive: PathBuf,
    /// Files whose calls are being placed.
    busy: BTreeSet<PathBuf>,
    /// Files that cannot be dealt with, by what they are: said once.
    hopeless: BTreeSet<(PathBuf, Option<SystemTime>)>,
}

impl Keeper {
    fn new(spool: &Path) -> io::Result<Self> {
        let (outgoing, archive) = (spool.join("outgoing"), spool.join("outgoing_done"));
        fs::create_dir_all(&outgoing)?;
        fs::create_dir_all(&archive)?;
        Ok(Self { outgoing, archive, busy: BTreeSet::new(), hopeless: BTreeSet::new() })
    }
    /// Reads what is due.
    fn look(&mut self, now: SystemTime) -> Vec<News> {
        let mut news = Vec::new();
        let Ok(entries) = fs::read_dir(&self.outgoing) else { return news };
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| is_candidate(path))
            .take(FILES_MAX)
            .collect();
        paths.sort();
        self.hopeless.retain(|(path, _)| path.exists());
        for path in paths {
            if self.busy.len() >= CALLS_MAX {
                break;
            }
            if !self.busy.contains(&path) {
                self.take(path, now, &mut news);
            }
        }
        news
    }
    fn take(&mut self, path: PathBuf, now: SystemTime, news: &mut Vec<News>) {
        // A link is no call file: it could name any file that this process may read.
        let Ok(known) = fs::symlink_metadata(&path) else { return };
        let modified = known.modified().ok();
        if modified.is_some_and(|modified| modified > now)
            || self.hopeless.contains(&(path.clone(), modified))
        {
            return;
        }
        let mut complain = |why: &str| news.push(News::Complaint(format!("{}: {why}", path.display())));
        let text = match read(&path, &known) {
            Ok(text) => text,
            Err(why) => {
                complain(&why.to_string());
                self.hopeless.insert((path, modified));
                return;
            }
        };
        let mut complaints = Vec::new();
        let parsed = CallFile::parse(&text, &mut complaints);
        complaints.iter().for_each(|why| complain(why));
        match parsed {
            Ok(file) if file.tries > file.max_retries => {
                complain("has had its tries");
                self.finish(&path, &file, "Expired", now);
            }
            Ok(file) => {
                let began = line("StartRetry", file.tries + 1, now);
                if let Err(error) = append(&path, &began) {
                    // A file that cannot be written would be dialled for ever.
                    complain(&format!("cannot be written and is not dialled: {error}"));
                    self.hopeless.insert((path, modified));
                    return;
                }
                self.busy.insert(path.clone());
                news.push(News::Due(Box::new(Due { path, file })));
            }
            Err(why) => {
                complain(&why);
                self.finish(&path, &CallFile { always_delete: true, ..CallFile::default() }, "Failed", now);
                if path.exists() {
                    self.hopeless.insert((path, modified));
                }
            }
        }
    }
    /// Writes down how a call came out.
    fn ended(&mut self, path: &Path, placed: bool, now: SystemTime) {
        self.busy.remove(path);
        // Read anew: somebody may have changed the file meanwhile.
        let Ok(known) = fs::symlink_metadata(path) else { return };
        let text = read(path, &known).unwrap_or_default();
        let file = CallFile::parse(&text, &mut Vec::new()).unwrap_or_default();
        if placed {
            return self.finish(path, &file, "Completed", now);
        }
        if file.tries > file.max_retries {
            return self.finish(path, &file, "Expired", now);
        }
        let _written = append(path, &line("EndRetry", file.tries, now));
        let again = now + Duration::from_secs(file.retry_secs);
        if let Ok(opened) = fs::File::options().append(true).open(path) {
            let _set = opened.set_modified(again);
        }
    }
    /// Takes a file out of the folder: to the archive with its status, or for good. One that is to be kept for another time
    /// stays until then.
    fn finish(&self, path: &Path, file: &CallFile, status: &str, now: SystemTime) {
        let modified = fs::metadata(path).and_then(|known| known.modified());
        if !file.always_delete && modified.is_ok_and(|modified| modified > now) {
            return;
        }
        let kept = file.archive
            && path.file_name().is_some_and(|name| {
                let _written = append(path, &format!("\nStatus: {status}\n"));
                fs::rename(path, self.archive.join(name)).is_ok()
            });
        if !kept {
            let _removed = fs::remove_file(path);
        }
    }
}

/// Names that begin with a dot, and those that editors leave, are no call files.
fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    !name.starts_with('.') && !name.ends_with('~')
}

fn read(path: &Path, known: &fs::Metadata) -> io::Result<String> {
    if !known.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    if known.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("has more than {FILE_BYTES_MAX} bytes")));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let modified = fs::metadata(path)?.modified()?;
    let mut file = fs::File::options().append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    // Its time is when it is due; writing into it changes nothing about that.
    file.set_modified(modified)
}

/// `StartRetry: PID TRY (EPOCH)`.
fn line(word: &str, tries: u32, now: SystemTime) -> String {
    let epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n{word}: {} {tries} ({epoch})", std::process::id());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<CallFile, String> {
        CallFile::parse(text, &mut Vec::new())
    }

    #[test]
    fn every_keyword_is_read() {
        let text = "# a comment\nChannel: PJSIP/6001 ; and another\nCallerid: \"A; B\" <123>\nMaxRetries: 2\nRetryTime: 60\n\
                    WaitTime: 30\nAccount: acc\nContext: ctx\nExtension: 10\nPriority: start\nCodecs: ulaw,alaw\n\
                    Set: a=b=c\nSetvar: __d = e\nAlwaysDelete: no\nArchive: yes\nEarly_Media: yes\n";
        let mut complaints = Vec::new();
        let file = CallFile::parse(text, &mut complaints).unwrap();
        assert!(complaints.is_empty(), "{complaints:?}");
        let expected = CallFile {
            channel: "PJSIP/6001".to_owned(),
            // A semicolon after a letter is text, one after a blank begins a comment.
            caller: "\"A; B\" <123>".to_owned(),
            max_retries: 2,
            retry_secs: 60,
            wait_secs: 30,
            account: "acc".to_owned(),
            place: ("ctx".to_owned(), "10".to_owned(), "start".to_owned()),
            application: None,
            codecs: "ulaw,alaw".to_owned(),
            variables: vec![("a".to_owned(), "b=c".to_owned()), ("__d".to_owned(), "e".to_owned())],
            always_delete: false,
            archive: true,
            early_media: true,
            tries: 0,
        };
        assert_eq!(file, expected);
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        for (text, error) in [
            ("", true),
            ("Channel: PJSIP/1\n", true),
            ("Channel: nothing\nApplication: Echo\n", true),
            ("Application: Echo\n", true),
            ("Channel: PJSIP/1\nContext: x\n", true),
            ("Channel: PJSIP/1\nExtension: 1\n", false),
            ("Channel: PJSIP/1\nApplication: Echo\n", false),
        ] {
            assert_eq!(parsed(text).is_err(), error, "{text:?}");
        }
        let mut complaints = Vec::new();
        let text = "Channel: PJSIP/1\nApplication: Echo\nMaxRetries: many\nSet: x\nColour: red\nnonsense\n";
        assert!(CallFile::parse(text, &mut complaints).is_ok());
        assert_eq!(complaints.len(), 4, "{complaints:?}");
        let many = format!("Channel: a/b\nApplication: c\n{}", "Set: a=b\n".repeat(VARIABLES_MAX + 5));
        assert_eq!(parsed(&many).unwrap().variables.len(), VARIABLES_MAX);
    }

    /// A spool with one file, and its keeper.
    fn spool(text: &str) -> (tempfile::TempDir, Keeper, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let keeper = Keeper::new(folder.path()).unwrap();
        let path = folder.path().join("outgoing/a.call");
        fs::write(&path, text).unwrap();
        (folder, keeper, path)
    }
    fn dues(news: Vec<News>) -> usize {
        news.iter().filter(|news| matches!(news, News::Due(_))).count()
    }
    /// A moment so many seconds after the files were written.
    fn later(secs: u64) -> SystemTime {
        SystemTime::now() + Duration::from_secs(secs)
    }

    const ONE: &str = "Channel: PJSIP/1\nApplication: Echo\n";

    #[test]
    fn a_file_is_dialled_once_and_deleted_or_kept_with_its_status() {
        for (more, kept) in [("", None), ("Archive: yes\n", Some("Completed"))] {
            let (folder, mut keeper, path) = spool(&format!("{ONE}{more}"));
            assert_eq!(dues(keeper.look(later(1))), 1);
            assert_eq!(dues(keeper.look(later(2))), 0, "it is being dialled");
            keeper.ended(&path, true, later(3));
            assert!(!path.exists());
            let done = fs::read_to_string(folder.path().join("outgoing_done/a.call")).ok();
            assert_eq!(done.is_some(), kept.is_some());
            if let (Some(done), Some(status)) = (done, kept) {
                assert!(
                    done.contains("StartRetry: ") && done.ends_with(&format!("Status: {status}\n")),
                    "{done}"
                );
            }
            assert_eq!(dues(keeper.look(later(4))), 0);
        }
    }

    #[test]
    fn a_time_in_the_future_delays_and_so_does_a_try_that_failed() {
        let (folder, mut keeper, path) = spool(&format!("{ONE}MaxRetries: 1\nRetryTime: 60\nArchive: yes\n"));
        fs::File::options().append(true).open(&path).unwrap().set_modified(later(100)).unwrap();
        assert_eq!(dues(keeper.look(later(50))), 0);
        assert_eq!(dues(keeper.look(later(101))), 1);
        keeper.ended(&path, false, later(110));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("EndRetry: "), "{text}");
        assert_eq!(dues(keeper.look(later(160))), 0);
        assert_eq!(dues(keeper.look(later(175))), 1);
        keeper.ended(&path, false, later(180));
        assert!(!path.exists());
        let done = fs::read_to_string(folder.path().join("outgoing_done/a.call")).unwrap();
        assert!(done.ends_with("Status: Expired\n"), "{done}");
    }

    #[test]
    fn a_file_that_is_put_off_while_it_is_dialled_stays_unless_it_is_to_be_deleted() {
        for (always, stays) in [("yes", false), ("no", true)] {
            let (_folder, mut keeper, path) = spool(&format!("{ONE}AlwaysDelete: {always}\n"));
            assert_eq!(dues(keeper.look(later(1))), 1);
            fs::File::options().append(true).open(&path).unwrap().set_modified(later(1000)).unwrap();
            keeper.ended(&path, true, later(2));
            assert_eq!(path.exists(), stays, "{always}");
        }
    }

    #[test]
    fn tries_of_a_process_that_died_count() {
        let (_folder, mut keeper, path) = spool(&format!("{ONE}MaxRetries: 1\n"));
        assert_eq!(dues(keeper.look(later(1))), 1);
        let mut after = Keeper::new(path.parent().unwrap().parent().unwrap()).unwrap();
        assert_eq!(dues(after.look(later(2))), 1);
        let mut again = Keeper::new(path.parent().unwrap().parent().unwrap()).unwrap();
        assert_eq!(dues(again.look(later(3))), 0);
        assert!(!path.exists(), "it has had its tries");
    }

    #[test]
    fn what_is_no_call_file_is_left_alone_and_told_once() {
        let (folder, mut keeper, path) = spool("nonsense\n");
        let outgoing = folder.path().join("outgoing");
        fs::create_dir(outgoing.join("folder")).unwrap();
        fs::write(outgoing.join("large"), vec![b'#'; FILE_BYTES_MAX as usize + 1]).unwrap();
        fs::write(outgoing.join(".hidden"), ONE).unwrap();
        fs::write(outgoing.join("backup~"), ONE).unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, ONE).unwrap();
        std::os::unix::fs::symlink(&secret, outgoing.join("link")).unwrap();
        let news = keeper.look(later(1));
        assert_eq!(dues(news.clone()), 0);
        // The folder, the link, the large file; and of the nonsense its line and what is missing.
        assert_eq!(news.len(), 5, "{news:?}");
        assert!(!path.exists() && secret.exists());
        assert_eq!(keeper.look(later(2)), []);
    }

    #[test]
    fn the_thread_tells_of_files_and_hears_how_they_came_out() {
        let folder = tempfile::tempdir().unwrap();
        let (ring, rung) = std::sync::mpsc::channel();
        let spool = Spool::start(folder.path(), move || {
            let _rung = ring.send(());
        })
        .unwrap();
        let part = folder.path().join("a.part");
        fs::write(&part, ONE).unwrap();
        let path = folder.path().join("outgoing/a.call");
        fs::rename(&part, &path).unwrap();
        rung.recv_timeout(Duration::from_secs(60)).unwrap();
        let Some(News::Due(due)) = spool.due() else { panic!("no call") };
        assert_eq!(due.path, path);
        spool.done().send((path.clone(), true)).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while path.exists() {
            assert!(std::time::Instant::now() < deadline, "it stays");
            std::thread::yield_now();
        }
    }
}
