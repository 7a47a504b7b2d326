//! The server's own process: background, identity, limits, pid file. All of it before the first thread starts.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use io::process::{self, Background, PidFile};

use crate::args::Args;

/// What the process is to be; the command line wins over asterisk.conf, and `main` has already joined the two.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// `-g` or `dumpcore`.
    pub core_files: bool,
    /// `-p` or `highpriority`.
    pub high_priority: bool,
    /// `-U` or `runuser`.
    pub user: Option<&'a str>,
    /// `-G` or `rungroup`.
    pub group: Option<&'a str>,
    /// `astrundir`.
    pub run_folder: &'a Path,
}

/// Starts the server anew in the background when `forks` asks for it. `Some` is the exit status of the process the
/// administrator started; `None` means "this process is the server".
pub fn go_to_background(forks: bool) -> anyhow::Result<Option<u8>> {
    if !forks || Background::is_one() {
        return Ok(None);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let status = process::start_in_background(&program, &args).context("cannot start in the background")?;
    Ok(Some(status.map_or(0, |status| status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))))
}

/// Sets limits, makes the run folder and becomes the wanted user; returns how many files may be open. What is not
/// granted but not needed either is said in `notes`.
pub fn settle(wanted: Wanted<'_>, notes: &mut Vec<String>) -> anyhow::Result<u64> {
    let files = process::raise_file_limit().context("cannot raise the limit of open files")?;
    if wanted.high_priority
        && let Err(error) = process::raise_priority()
    {
        notes.push(format!("no higher priority: {error}; start as root or grant CAP_SYS_NICE"));
    }
    make_run_folder(wanted)?;
    process::become_user(wanted.user, wanted.group)?;
    // Becoming another user resets this, so it comes after.
    if wanted.core_files {
        process::allow_core_files().context("cannot allow core files")?;
    } else {
        process::forbid_core_files().context("cannot forbid core files")?;
    }
    Ok(files)
}

/// Writes the pid file, which is removed when the returned value is dropped. Call it after the control socket is
/// bound, so that a second server, which fails there, leaves the first one's file alone.
pub fn write_pid(run_folder: &Path) -> anyhow::Result<PidFile> {
    let path = run_folder.join("asterisk.pid");
    PidFile::write(&path).with_context(|| {
        format!("cannot write {}; make its folder writable for the user Strowger runs as", path.display())
    })
}

/// `/run` is empty after a boot: the folder is made by root and given to the user that will need it.
fn make_run_folder(wanted: Wanted<'_>) -> anyhow::Result<()> {
    let folder = wanted.run_folder;
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| {
        format!("cannot make astrundir {}; make it, or set astrundir in asterisk.conf", folder.display())
    })?;
    process::give_to(folder, wanted.user, wanted.group)?;
    Ok(())
}

/// Tells the waiting terminal that the server runs, when it was started in the background.
pub fn ready() -> anyhow::Result<()> {
    if Background::is_one() { Background::ready().context("cannot leave the terminal") } else { Ok(()) }
}

/// Whether the server goes to the background: the command line's wish, else asterisk.conf's `nofork` and `alwaysfork`.
pub fn forks(args: &Args, nofork: bool, alwaysfork: bool) -> bool {
    let joined = Args {
        foreground: args.foreground || nofork,
        always_fork: args.always_fork || alwaysfork,
        ..args.clone()
    };
    // -f on the command line is stronger than alwaysfork in the file.
    joined.forks() && (!args.foreground || args.always_fork)
}

/// Becomes a fresh server with the same arguments, in the place of this process (`core restart`).
pub fn start_again() -> anyhow::Result<u8> {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let error = std::process::Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(error).context("cannot start again")
}

/// A panic ends one call, and what is said of it must not hold up the others: one line, and no backtrace, whose symbols
/// take a thread most of a second to look up, whatever `RUST_BACKTRACE` says.
pub fn tell_panics_briefly() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        // Standard error may be closed; the log says what became of the call.
        let _told = writeln!(
            std::io::stderr(),
            "strowger: thread '{}': {panic}",
            thread.name().unwrap_or("without a name")
        );
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_stronger_than_the_file_about_forking() {
        let args = |line: &[&str]| crate::args::parse(line.iter().map(|&word| word.to_owned())).unwrap();
        for (line, nofork, alwaysfork, expected) in [
            (&[][..], false, false, true),
            (&[], true, false, false),
            (&["-vv"], false, true, true),
            (&["-f"], false, true, false),
            (&["-F"], true, false, true),
            (&["-c"], false, true, false),
        ] {
            assert_eq!(forks(&args(line), nofork, alwaysfork), expected, "{line:?} {nofork} {alwaysfork}");
        }
    }
}
