//! A folder that one process at a time changes: `.lock` in it, made whole by a link, as the field does.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long another process is waited for.
const WAIT: Duration = Duration::from_secs(5);
/// How often it is looked whether it has gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A lock of this age was left behind: nobody works on a folder for so long.
const STALE: Duration = Duration::from_secs(60);

/// Given back when dropped.
#[derive(Debug)]
pub(super) struct Lock(PathBuf);

impl Lock {
    /// Waits for a folder. One that a process of ours left behind when it was killed is taken over at once.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let own = folder.join(format!(".lock-{}", std::process::id()));
        let path = folder.join(".lock");
        let until = Instant::now() + WAIT;
        loop {
            fs::write(&own, std::process::id().to_string())?;
            let linked = fs::hard_link(&own, &path);
            let _ = fs::remove_file(&own);
            match linked {
                Ok(()) => return Ok(Self(path)),
                Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
                Err(_) if left_behind(&path) => take_away(&path)?,
                Err(_) if Instant::now() >= until => {
                    let text = format!("{} is held by another program", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether nobody holds a lock any more.
fn left_behind(path: &Path) -> bool {
    let Ok(facts) = fs::metadata(path) else { return false };
    let of = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let is_gone = of.is_some_and(|process| {
        process == std::process::id() || !Path::new("/proc").join(process.to_string()).exists()
    });
    let age = facts.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    is_gone || age.is_some_and(|age| age > STALE)
}

/// Takes away the lock that was looked at and no newer one: of those who do so at once only one finds it.
fn take_away(path: &Path) -> io::Result<()> {
    let before = fs::metadata(path).map(|facts| facts.ino());
    let aside = path.with_file_name(format!(".lock-old-{}", std::process::id()));
    match fs::rename(path, &aside) {
        Ok(()) => {
            let same = fs::metadata(&aside).map(|facts| facts.ino()).ok() == before.ok();
            if !same {
                // Somebody's fresh one: it goes back, unless there is another already.
                let _ = fs::hard_link(&aside, path);
            }
            fs::remove_file(aside)
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_one_of_a_killed_process_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let held = Lock::of(folder.path()).unwrap();
        assert!(path.exists());
        drop(held);
        assert!(!path.exists());
        // No process has this number: the largest is 4194304.
        fs::write(&path, "4999999").unwrap();
        drop(Lock::of(folder.path()).unwrap());
        // Another program's, which writes nothing into it, of a minute ago.
        fs::write(&path, "").unwrap();
        assert!(!left_behind(&path));
        let old = SystemTime::now() - STALE - Duration::from_secs(1);
        fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        drop(Lock::of(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
