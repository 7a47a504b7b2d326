//! What a process can do to itself: limits, identity, leaving the terminal.
//!
//! Everything here happens once, at the start, before any other thread exists; the watch over the terminal and
//! [`forget_start`] are for later.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::sys::process as sys;

pub mod broker;
mod terminal;

pub use terminal::{Terminal, when_terminal_goes};

/// Set in the environment of the background process, so that it knows it already is one.
pub const BACKGROUND_MARK: &str = "STROWGER_BACKGROUND";

/// Raises the limit of open files to what the administrator allows, and says what it is then.
pub fn raise_file_limit() -> io::Result<u64> {
    let (_, hard) = sys::limit(libc::RLIMIT_NOFILE)?;
    sys::set_limit(libc::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

/// Gives back the memory that only the start has used: what was allocated for it, and where the kernel has mapped those parts
/// of the program that nothing else runs. Of an idle process that is most of what it would seem to take.
pub fn forget_start() {
    sys::release_free_memory();
    let _bytes = sys::unmap_program();
}

/// `-g`: lets a crash write a core file of any size the administrator allows.
pub fn allow_core_files() -> io::Result<()> {
    let (_, hard) = sys::limit(libc::RLIMIT_CORE)?;
    sys::set_limit(libc::RLIMIT_CORE, hard, hard)?;
    sys::set_dumpable(true)
}

/// Without `-g` memory, which holds secrets, is not readable by other processes of the user either.
pub fn forbid_core_files() -> io::Result<()> {
    let (_, hard) = sys::limit(libc::RLIMIT_CORE)?;
    sys::set_limit(libc::RLIMIT_CORE, 0, hard)?;
    sys::set_dumpable(false)
}

/// `-p`: asks for a better share of the processor. Needs root or CAP_SYS_NICE.
pub fn raise_priority() -> io::Result<()> {
    sys::set_nice(PRIORITY)
}

/// Between the desktop and the kernel's own threads; the media workers have their own, real-time class.
const PRIORITY: libc::c_int = -10;

/// A user or group that cannot be taken.
#[derive(Debug)]
pub struct IdentityError {
    what: String,
    error: Option<io::Error>,
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.error {
            Some(error) => {
                write!(f, "cannot become {}: {error}; start as root, or without -U and -G", self.what)
            }
            None => write!(f, "there is no {}; create it, or correct -U, -G, runuser or rungroup", self.what),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Becomes `user` (with that user's groups) and `group`, for good. Root's powers are gone afterwards, but for those over
/// networks that the media plane's set-up may want; [`drop_media_powers`] gives them up too.
pub fn become_user(user: Option<&str>, group: Option<&str>) -> Result<(), IdentityError> {
    let group_id = group.map(|name| find("group", name, sys::group_id)).transpose()?;
    let user_ids = user.map(|name| find("user", name, sys::user_ids)).transpose()?;
    let failed = |what: String| move |error| IdentityError { what, error: Some(error) };
    let gid = group_id.or(user_ids.map(|(_, gid)| gid));
    if let (Some(name), Some((uid, own_gid))) = (user, user_ids) {
        if uid == sys::effective_uid() && group_id.is_none_or(|gid| gid == own_gid) {
            return Ok(());
        }
        let name =
            CString::new(name).map_err(|_| IdentityError { what: format!("user '{name}'"), error: None })?;
        sys::set_groups_of(&name, gid.unwrap_or(own_gid)).map_err(failed(format!("user {name:?}")))?;
    }
    // The group first: afterwards the right to change it is gone.
    if let Some(gid) = gid {
        sys::set_gid(gid).map_err(failed(format!("group {}", group.or(user).unwrap_or(""))))?;
    }
    if let Some((uid, _)) = user_ids {
        let failed = || failed(format!("user {}", user.unwrap_or("")));
        let was_root = sys::effective_uid() == 0;
        if was_root {
            sys::keep_capabilities().map_err(failed())?;
        }
        sys::set_uid(uid).map_err(failed())?;
        if was_root && uid != 0 {
            sys::limit_capabilities(|capabilities| capabilities & sys::MEDIA).map_err(failed())?;
        }
    }
    Ok(())
}

/// Gives up the powers over networks of a process that is not root's: whatever else it was given it keeps. Threads that
/// are started afterwards, and programs, do not have them either.
pub fn drop_media_powers() -> io::Result<()> {
    if sys::effective_uid() == 0 {
        // Root's programs, which the dialplan may run, expect root's powers.
        return Ok(());
    }
    sys::limit_capabilities(|capabilities| capabilities & !sys::MEDIA)
}

/// What the process makes from here on is for its user alone.
pub fn keep_files_private() {
    sys::set_umask(0o077);
}

/// Gives a file to a user, a group, or both; who is not named stays.
pub fn own(path: &Path, user: Option<&str>, group: Option<&str>) -> Result<(), IdentityError> {
    let gid = group.map(|name| find("group", name, sys::group_id)).transpose()?;
    let uid = user.map(|name| find("user", name, sys::user_ids)).transpose()?.map(|(uid, _)| uid);
    std::os::unix::fs::chown(path, uid, gid).map_err(|error| IdentityError {
        what: format!("the owner of {}", path.display()),
        error: Some(error),
    })
}

/// Gives a folder to the user and group that `become_user` will become.
pub fn give_to(folder: &Path, user: Option<&str>, group: Option<&str>) -> Result<(), IdentityError> {
    let group_id = group.map(|name| find("group", name, sys::group_id)).transpose()?;
    let user_ids = user.map(|name| find("user", name, sys::user_ids)).transpose()?;
    let (uid, gid) = (user_ids.map(|(uid, _)| uid), group_id.or(user_ids.map(|(_, gid)| gid)));
    std::os::unix::fs::chown(folder, uid, gid).map_err(|error| IdentityError {
        what: format!("the owner of {}", folder.display()),
        error: Some(error),
    })
}

fn find<T>(what: &str, name: &str, look: impl Fn(&CString) -> Option<T>) -> Result<T, IdentityError> {
    let found = CString::new(name).ok().and_then(|name| look(&name));
    found.ok_or_else(|| IdentityError { what: format!("{what} '{name}'"), error: None })
}

/// The machine's name, for prompts.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".into(), |s| s.trim().into())
}

/// Starts this program again as a background process of its own session, shows what it prints until it calls
/// `Background::ready`, and says how it went: `None` while it runs on.
///
/// Starting anew instead of forking keeps the process free of half-copied state.
pub fn start_in_background(program: &Path, args: &[std::ffi::OsString]) -> io::Result<Option<ExitStatus>> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env(BACKGROUND_MARK, "1")
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    sys::new_session(&mut command);
    let mut child = command.spawn()?;
    // The command holds the pipe's other end; without this the end of the child's output would never come.
    drop(command);
    let mut buffer = [0; 4096];
    let mut out = io::stdout();
    let mut ready = false;
    while !ready {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let text = buffer.get(..count).unwrap_or(&[]);
                // Other threads may say something behind it before the streams are taken away.
                for part in text.split(|byte| *byte == READY) {
                    out.write_all(part)?;
                }
                ready = text.contains(&READY);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.flush()?;
    if ready { Ok(None) } else { child.wait().map(Some) }
}

/// What a background process prints when it is ready: "end of transmission", which no message contains.
const READY: u8 = 0x04;

/// The background side of `start_in_background`.
#[derive(Debug)]
pub struct Background;

impl Background {
    /// Whether this process was started by `start_in_background`.
    pub fn is_one() -> bool {
        std::env::var_os(BACKGROUND_MARK).is_some()
    }
    /// Lets the waiting parent go: standard input, output and error become `/dev/null`.
    pub fn ready() -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(&[READY])?;
        out.flush()?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        sys::replace_standard_streams(null.as_fd())
    }
}

/// The file that names this process; removed when dropped.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the process id and a newline.
    pub fn write(path: &Path) -> io::Result<Self> {
        std::fs::write(path, format!("{}\n", std::process::id()))?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Gone already is as good.
        let _removed = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_no_longer_uses_is_unmapped_and_comes_back_as_it_was() {
        let mapped = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("RssFile")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        static TABLE: [u8; 3 << 20] = {
            let mut table = [7; 3 << 20];
            table[1 << 20] = 9;
            table
        };
        let sum = || TABLE.iter().map(|byte| u64::from(*std::hint::black_box(byte))).sum::<u64>();
        let before = sum();
        let used = mapped();
        assert!(sys::unmap_program() > TABLE.len());
        assert!(mapped() + 2 * 1024 < used, "{} of {used} kB are left", mapped());
        assert_eq!(sum(), before);
    }

    #[test]
    fn the_limit_of_open_files_is_raised_to_what_is_allowed() {
        let allowed = raise_file_limit().unwrap();
        assert_eq!(sys::limit(libc::RLIMIT_NOFILE).unwrap(), (allowed, allowed));
    }

    #[test]
    fn a_user_or_group_that_does_not_exist_is_named_with_a_remedy() {
        for (user, group, name) in [
            (Some("no-such-user"), None, "user 'no-such-user'"),
            (None, Some("no\0group"), "group 'no\0group'"),
        ] {
            let error = become_user(user, group).unwrap_err().to_string();
            assert!(error.starts_with(&format!("there is no {name}; create it")), "{error}");
        }
    }

    #[test]
    fn becoming_who_one_is_needs_no_power() {
        let root = sys::user_ids(&CString::new("root").unwrap());
        assert_eq!(root, Some((0, 0)));
        if sys::effective_uid() == 0 {
            assert!(become_user(Some("root"), Some("root")).is_ok());
        } else {
            println!("skipped: only root can check that root stays root");
        }
    }

    #[test]
    fn a_background_process_shows_its_words_until_it_is_ready_and_its_status_when_it_fails() {
        let shell = Path::new("/bin/sh");
        let run = |script: &str| start_in_background(shell, &["-c".into(), script.into()]).unwrap();
        // The reader at the other end of the pipe is gone after "ready"; the process itself goes on.
        for words in ["hello\\n\\004", "hello\\n\\004a thread that has more to say\\n"] {
            let script = format!("printf '{words}'; exec >/dev/null 2>&1; read line");
            assert_eq!(run(&script).map(|status| status.code()), None, "{words}");
        }
        assert_eq!(run("echo cannot bind >&2; exit 3").and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn the_pid_file_names_the_process_and_goes_with_it() {
        let path = std::env::temp_dir().join(format!("strowger-pid-{}", std::process::id()));
        let file = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
    }
}
