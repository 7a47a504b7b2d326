//! Where the bytes come from: a trait, an in-memory implementation, and the wildcard matcher both kinds share.

use std::collections::BTreeMap;

/// Why a source gave no bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such file.
    #[error("no such file")]
    NotFound,
    /// A command that whoever reads does not want to be run.
    #[error("not run")]
    NotRun,
    /// There, but not to be had; the text says why.
    #[error("{0}")]
    Failed(String),
}

/// Gives the reader its bytes. Relative paths are relative to the configuration directory.
pub trait Source {
    /// The whole file.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError>;
    /// Paths that match a pattern with wildcards, sorted; each can be given to [`Source::read`].
    fn glob(&self, pattern: &str) -> Vec<String>;
    /// The name findings tell for a path: the full one, where there is one.
    fn full_name(&self, path: &str) -> String {
        path.to_owned()
    }
    /// What a command prints. Asked only when the options allow `#exec`.
    fn exec(&self, command: &str) -> Result<Vec<u8>, ReadError>;
}

/// Files held in memory: embedded defaults and tests. Commands are answered from a table too.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    commands: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a file, or replaces it.
    pub fn with(mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), bytes.into());
        self
    }
    /// Adds what a command prints.
    pub fn with_command(mut self, command: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.commands.insert(command.into(), bytes.into());
        self
    }
}

impl Source for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.files.get(path).cloned().ok_or(ReadError::NotFound)
    }
    fn glob(&self, pattern: &str) -> Vec<String> {
        self.files.keys().filter(|path| glob_matches(pattern, path)).cloned().collect()
    }
    fn exec(&self, command: &str) -> Result<Vec<u8>, ReadError> {
        self.commands.get(command).cloned().ok_or(ReadError::NotFound)
    }
}

/// Whether a path holds a wildcard at all.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Most alternatives a pattern's braces may spell out; more is a pattern that matches nothing.
const ALTERNATIVES_MAX: usize = 256;

/// Whether a path matches a wildcard pattern: `*`, `?`, `[a-z]`, `[!a]`, `{one,two}`. `*` and `?` match neither a `/` nor
/// a leading dot.
pub fn glob_matches(pattern: &str, path: &str) -> bool {
    let mut alternatives = vec![pattern.to_owned()];
    let mut done = 0;
    while let Some(text) = alternatives.get(done).cloned() {
        match split_braces(&text) {
            Some(more) if alternatives.len() + more.len() <= ALTERNATIVES_MAX => {
                alternatives.swap_remove(done);
                alternatives.extend(more);
            }
            Some(_) => return false,
            None => done += 1,
        }
    }
    alternatives.iter().any(|alternative| plain_glob_matches(alternative, path))
}

/// `a{b,c}d` as `abd` and `acd`; `None` without a closed pair of braces.
fn split_braces(pattern: &str) -> Option<Vec<String>> {
    let open = pattern.find('{')?;
    let (before, rest) = (pattern.get(..open)?, pattern.get(open + 1..)?);
    let mut depth = 0usize;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                parts.push(rest.get(start..at)?);
                start = at + 1;
            }
            '}' => {
                parts.push(rest.get(start..at)?);
                let after = rest.get(at + 1..)?;
                return Some(parts.into_iter().map(|part| format!("{before}{part}{after}")).collect());
            }
            _ => {}
        }
    }
    None
}

fn plain_glob_matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    pattern.len() == path.len()
        && pattern.iter().zip(&path).all(|(pattern, name)| {
            let hidden = name.starts_with('.') && !pattern.starts_with('.');
            !hidden && segment_matches(pattern.as_bytes(), name.as_bytes())
        })
}

/// One path segment, iteratively: on a mismatch the last `*` takes one byte more.
fn segment_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match (pattern.get(p), name.get(n)) {
            (Some(b'*'), _) => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            (Some(b'?'), Some(_)) => Some(1),
            (Some(b'['), Some(&byte)) => match set_matches(pattern.get(p + 1..).unwrap_or_default(), byte) {
                Some((true, length)) => Some(length + 1),
                Some((false, _)) => None,
                None => (byte == b'[').then_some(1),
            },
            (Some(wanted), Some(byte)) if wanted == byte => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((after, taken))) => {
                star = Some((after, taken + 1));
                p = after;
                n = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

/// A set without its opening bracket: whether it holds the byte, and its length with the closing bracket.
fn set_matches(set: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(set.first(), Some(b'!' | b'^'));
    let mut at = usize::from(negated);
    let mut found = false;
    let first = at;
    loop {
        let &low = set.get(at)?;
        if low == b']' && at > first {
            return Some((found != negated, at + 1));
        }
        match (set.get(at + 1), set.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            _ => {
                found |= low == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_matches_like_the_c_librarys() {
        for (pattern, path, expected) in [
            ("*.conf", "sip.conf", true),
            ("*.conf", "sip.conf.bak", false),
            ("*.conf", ".hidden.conf", false),
            ("*.conf", "a/sip.conf", false),
            ("a/*.conf", "a/sip.conf", true),
            ("*/*.conf", "a/sip.conf", true),
            ("s?p.conf", "sip.conf", true),
            ("s?p.conf", "siip.conf", false),
            ("[a-m]*.conf", "b.conf", true),
            ("[!a-m]*.conf", "b.conf", false),
            ("[]x].conf", "].conf", true),
            ("[unclosed", "[unclosed", true),
            ("{a,b}.conf", "b.conf", true),
            ("{a,b{c,d}}.conf", "bd.conf", true),
            ("{a,b}.conf", "c.conf", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("**", "anything", true),
            ("", "", true),
        ] {
            assert_eq!(glob_matches(pattern, path), expected, "{pattern:?} on {path:?}");
        }
    }
}
