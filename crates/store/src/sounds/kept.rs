//! Recordings that are kept: which there are in a folder, and copies of them.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// How deep folders lie in each other that are looked into.
const DEPTH_MAX: usize = 8;
/// Longest file that is copied while its asker waits: a few minutes of sound, and a few milliseconds. A longer one is copied
/// on a thread of its own.
const COPIED_AT_ONCE_MAX: u64 = 4 << 20;
/// What a copy is called until it is whole.
const UNFINISHED: &str = "part";

/// Names below `folder`, without extension, and extensions of sounds in it, in order; at most `most`. What is a link, or begins
/// with a dot, is none.
pub(super) fn list(folder: &Path, most: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    look(folder, "", DEPTH_MAX, most, &mut found);
    found.sort_unstable();
    found
}

fn look(folder: &Path, before: &str, depth: usize, most: usize, found: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let kind = |entry: &DirEntry| entry.file_type().ok();
    for entry in entries.flatten() {
        if found.len() >= most {
            return;
        }
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let Some(kind) = kind(&entry) else { continue };
        if kind.is_dir() && depth > 0 {
            look(&path, &format!("{before}{name}/"), depth - 1, most, found);
        } else if kind.is_file()
            && let Some((stem, extension)) = name.rsplit_once('.')
            && codec::extensions().any(|known| known == extension)
        {
            found.push((format!("{before}{stem}"), extension.to_owned()));
        }
    }
}

/// Copies a file to a name that has none: at once, or a long one by and by. It is there when it is whole.
pub(super) fn copy(from: PathBuf, to: PathBuf) -> Result<(), String> {
    let fail = |why: std::io::Error| format!("{}: {why}", to.display());
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let long = std::fs::metadata(&from).map_err(fail)?.len() > COPIED_AT_ONCE_MAX;
    let target = to.clone();
    let work = move || -> std::io::Result<()> {
        let mut unfinished = to.clone().into_os_string();
        unfinished.push(".");
        unfinished.push(UNFINISHED);
        std::fs::copy(&from, &unfinished)?;
        std::fs::rename(&unfinished, &to)
    };
    let fail = |why: std::io::Error| format!("{}: {why}", target.display());
    if !long {
        return work().map_err(fail);
    }
    let thread = std::thread::Builder::new().name("copying".to_owned());
    // What becomes of it is seen by whether the copy is there.
    thread.spawn(move || drop(work())).map(drop).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_are_listed_by_their_names_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        for name in ["two.wav", "one.gsm", "a/b/deep.wav", "note.txt", ".hidden.wav", "bare", "x.wav.part"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/etc", at("away")).unwrap();
        std::os::unix::fs::symlink(at("two.wav"), at("link.wav")).unwrap();
        let pair = |name: &str, extension: &str| (name.to_owned(), extension.to_owned());
        assert_eq!(
            list(folder.path(), 10),
            [pair("a/b/deep", "wav"), pair("one", "gsm"), pair("two", "wav")]
        );
        assert_eq!(list(folder.path(), 2).len(), 2);
        assert!(list(&at("nowhere"), 10).is_empty());
    }

    #[test]
    fn a_copy_is_whole_wherever_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("two.wav"), "sound").unwrap();
        copy(at("two.wav"), at("new/place.wav")).unwrap();
        assert_eq!(std::fs::read(at("new/place.wav")).unwrap(), b"sound");
        assert!(!at("new/place.wav.part").exists());
        assert!(copy(at("none.wav"), at("x.wav")).is_err());
    }
}
