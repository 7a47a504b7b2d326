//! What a reader has to say to a person: where, what, and what to do about it.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A line of a configuration file. Line 0 means the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// Path as the source names it, or `#exec command` for what a command printed.
    pub file: Arc<str>,
    /// Physical line, counted from 1.
    pub line: u32,
}

impl Place {
    /// A line of a file.
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing; everything works as written.
    Note,
    /// Something written has no effect or not the whole effect.
    Warning,
    /// An object is skipped or a file refused.
    Error,
}

impl Level {
    /// The word a report prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing found in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// Where it is written.
    #[serde(flatten)]
    pub place: Place,
    /// What is the matter. Never holds a secret.
    pub message: String,
    /// What to do about it; empty when the message says it all.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.level, self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n    {}", self.remedy) }
    }
}

/// Everything found, in the order it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Nothing found.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.list.push(finding);
    }
    /// Adds an error: an object is skipped or a file refused.
    pub fn error(&mut self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Error, place, message, remedy);
    }
    /// Adds a warning: something written has no effect or not the whole effect.
    pub fn warning(&mut self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Warning, place, message, remedy);
    }
    /// Adds a note.
    pub fn note(&mut self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Note, place, message, remedy);
    }
    /// Adds a finding of any level.
    pub fn add(
        &mut self,
        level: Level,
        place: &Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.list.push(Finding {
            level,
            place: place.clone(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }
    /// In the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }
    /// The same, to be worded otherwise.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Finding> {
        self.list.iter_mut()
    }
    /// Drops those that are not wanted.
    pub fn retain(&mut self, wanted: impl FnMut(&Finding) -> bool) {
        self.list.retain(wanted);
    }
    /// How many of this level.
    pub fn count(&self, level: Level) -> usize {
        self.list.iter().filter(|finding| finding.level == level).count()
    }
    /// Whether an object was skipped or a file refused.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.level == Level::Error)
    }
    /// How many in all.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Drops what was said already: a line of a template is read once for every section that inherits it. What is the same
    /// of several objects but for their names is said of the first, with how many more there are.
    pub fn dedup(&mut self) {
        let mut seen = std::collections::BTreeSet::new();
        self.list.retain(|finding| seen.insert((finding.place.clone(), finding.message.clone())));
        self.fold(|finding| nameless(&finding.message).map(|alike| (finding.place.clone(), alike)));
    }
    /// Keeps the first of the findings that begin so, with how many more there are.
    pub fn keep_first(&mut self, beginning: &str) {
        self.fold(|finding| finding.message.starts_with(beginning).then_some(()));
    }
    /// Keeps the first of those alike, with how many more there are; `None` is like no other.
    fn fold<K: Ord>(&mut self, alike: impl Fn(&Finding) -> Option<K>) {
        let mut first: BTreeMap<K, (usize, usize)> = BTreeMap::new();
        let mut at = 0;
        self.list.retain(|finding| {
            let Some(key) = alike(finding) else {
                at += 1;
                return true;
            };
            let (_, more) = first.entry(key).and_modify(|(_, more)| *more += 1).or_insert((at, 0));
            at += usize::from(*more == 0);
            *more == 0
        });
        for &(at, more) in first.values().filter(|(_, more)| *more > 0) {
            if let Some(finding) = self.list.get_mut(at) {
                finding.message += &format!(" (the same holds for {more} more)");
            }
        }
    }
    /// Sorts by file, then line, keeping the order of findings of one line.
    pub fn sort(&mut self) {
        self.list.sort_by(|a, b| a.place.cmp(&b.place));
    }
}

/// Kinds of objects that messages begin with, before the object's name in single quotes.
const OBJECTS: [&str; 9] = [
    "endpoint '",
    "aor '",
    "auth '",
    "peer '",
    "registration '",
    "identify '",
    "the password of auth '",
    "the secret of peer '",
    "queue '",
];

/// A message without the name of the object that it begins with; `None` when it begins otherwise.
fn nameless(message: &str) -> Option<String> {
    let object = OBJECTS.iter().find(|object| message.starts_with(**object))?;
    let (_, rest) = message.get(object.len()..)?.split_once('\'')?;
    Some(format!("{object}'{rest}"))
}

impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        self.list.extend(findings);
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}
