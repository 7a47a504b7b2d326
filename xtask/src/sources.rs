//! Rules about the text of our own sources.

use std::path::Path;

use anyhow::Context;

use crate::floors::{PURE_FLOORS, floor};
use crate::workspace::{Member, Workspace};

/// Beyond this a file is asked whether it has two owners.
pub const LONG_LINES: usize = 600;

/// The crates that may hold `unsafe`, block by block with its reason: system calls, SIMD instructions, codec libraries in C;
/// and what counts allocations for tests.
const MAY_BE_UNSAFE: &[&str] = &["io", "lanes", "bound", "strowger-odbc", "kit"];

/// The crate whose threads packets pass, and the types that its clippy.toml refuses.
const MEDIA_THREADS: &str = "io";
const LOCKS: &[&str] = &["std::sync::Mutex\"", "std::sync::RwLock\"", "std::sync::Condvar\""];

/// One source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the workspace.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }
    /// The first line that only tests see.
    fn tests_begin(&self) -> usize {
        let whole = self.path.contains("/tests/") || self.path.ends_with("tests.rs");
        let start =
            if whole { Some(0) } else { self.text.lines().position(|line| line.trim() == "#[cfg(test)]") };
        start.unwrap_or(usize::MAX)
    }
    /// Lines that only tests see, with their numbers.
    fn test_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().skip(self.tests_begin())
    }
    /// The others.
    pub fn program_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().take(self.tests_begin())
    }
}

/// Every `.rs` file of `crates`, `tools`, `xtask` and `tests`, in order of their paths.
pub fn read(root: &Path) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders: Vec<_> =
        ["crates", "tools", "xtask", "tests"].iter().map(|name| root.join(name)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Everything in the sources that the house does not allow.
pub fn check(workspace: &Workspace, files: &[File]) -> Vec<String> {
    let mut broken: Vec<String> = workspace.members.iter().flat_map(check_member).collect();
    broken.extend(files.iter().flat_map(check_file));
    broken
}

fn check_member(member: &Member) -> Vec<String> {
    let name = &member.name;
    let mut broken = Vec::new();
    let read = |path: &str| std::fs::read_to_string(member.folder.join(path)).unwrap_or_default();
    let root = [read("src/lib.rs"), read("src/main.rs")];
    let forbids = |text: &String| text.is_empty() || text.contains("#![forbid(unsafe_code)]");
    if !MAY_BE_UNSAFE.contains(&name.as_str()) && !root.iter().all(forbids) {
        broken.push(format!("crate '{name}' does not say #![forbid(unsafe_code)] at its root"));
    }
    if !read("Cargo.toml").contains("[lints]\nworkspace = true") {
        broken.push(format!("crate '{name}' does not take the workspace's lints"));
    }
    if floor(name).is_some_and(|floor| floor <= PURE_FLOORS) && read("clippy.toml").is_empty() {
        broken.push(format!("crate '{name}' is a pure machine and has no clippy.toml that keeps it one"));
    }
    if name == MEDIA_THREADS && !LOCKS.iter().all(|lock| read("clippy.toml").contains(lock)) {
        broken.push(format!("crate '{name}' runs media threads and has no clippy.toml that refuses locks"));
    }
    broken
}

fn check_file(file: &File) -> Vec<String> {
    // The rules themselves stand here as text.
    if file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for (word, why) in [
            ("todo!(", "says that something is missing"),
            ("unimplemented!(", "says that something is missing"),
            ("dbg!(", "is for the developer's own terminal"),
            ("FIXME", "belongs in an issue"),
            ("TODO", "belongs in an issue"),
        ] {
            if line.contains(word) {
                broken.push(format!("{}:{number}: `{word}` {why}", file.path));
            }
        }
    }
    for (index, line) in file.test_lines() {
        if line.contains("thread::sleep(") || line.contains("time::sleep(") {
            broken.push(format!(
                "{}:{}: a test sleeps: invent the time or wait for the event",
                file.path,
                index + 1
            ));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_words_are_found_with_their_line() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        for (path, text, expected) in [
            ("crates/sip/src/a.rs", "fn a() {\n    todo!()\n}\n", Some("crates/sip/src/a.rs:2: `todo!(`")),
            ("crates/io/src/a.rs", "std::thread::sleep(x);\n", None),
            (
                "crates/io/tests/a.rs",
                "std::thread::sleep(x);\n",
                Some("crates/io/tests/a.rs:1: a test sleeps"),
            ),
            (
                "crates/io/src/a.rs",
                "a\n#[cfg(test)]\nthread::sleep(x);\n",
                Some("crates/io/src/a.rs:3: a test sleeps"),
            ),
            ("crates/io/src/a.rs", "a\n#[cfg(test)]\nb\n", None),
            ("xtask/src/a.rs", "todo!()\n", None),
        ] {
            let broken = check_file(&file(path, text));
            match expected {
                Some(start) => {
                    assert!(broken.len() == 1 && broken[0].starts_with(start), "{path}: {broken:?}")
                }
                None => assert!(broken.is_empty(), "{path}: {broken:?}"),
            }
        }
    }
}
