//! Sections of `pjsip.conf` that other files stand for: `sip.conf` and `pjsip_wizard.conf`.
//!
//! Each line keeps the place where its value was written, so that what the reader of `pjsip.conf` has to say about it points
//! there.

use conf::{File, Finding, Findings, Place, Section, Variable};
use std::collections::{BTreeMap, BTreeSet};

/// A section in the making.
#[derive(Debug)]
pub(super) struct Made(Section);

impl Made {
    /// An object of a type, without options so far.
    pub(super) fn new(kind: &str, name: &str, place: &Place) -> Self {
        let (name, parents, variables) = (name.into(), Vec::new(), Vec::new());
        let mut made = Self(Section { name, template: false, place: place.clone(), parents, variables });
        made.line("type", kind, place);
        made
    }
    /// Adds an option; of those that hold one value, the last of a name holds.
    pub(super) fn line(&mut self, name: &str, value: &str, place: &Place) {
        let (name, value, place) = (name.into(), value.into(), place.clone());
        self.0.variables.push(Variable { name, value, object: false, place, inherited: false });
    }
    /// Whether a line has the option.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.last(name).is_some()
    }
    pub(super) fn into_section(self) -> Section {
        self.0
    }
}

/// Whether the file has an object of this type and name.
pub(super) fn is_there(file: &File, kind: &str, name: &str) -> bool {
    let is_kind =
        |section: &Section| section.value("type").is_some_and(|value| value.eq_ignore_ascii_case(kind));
    file.objects().any(|section| &*section.name == name && is_kind(section))
}

impl Made {
    /// Whether it is of this type.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.0.value("type") == Some(kind)
    }
}

impl From<Section> for Made {
    fn from(section: Section) -> Self {
        Self(section)
    }
}

/// Words what the reader of `pjsip.conf` has to say of lines of this file, each message by `word`.
pub(crate) fn reword(
    findings: &mut Findings,
    file: &File,
    mut word: impl FnMut(&mut Finding, Option<&Variable>),
) {
    let lines = file.sections.iter().flat_map(|section| &section.variables);
    let lines: BTreeMap<&Place, &Variable> = lines.map(|line| (&line.place, line)).collect();
    let files: BTreeSet<&str> = file.files.iter().map(|file| &**file).collect();
    for finding in findings.iter_mut().filter(|finding| files.contains(&*finding.place.file)) {
        let line = lines.get(&finding.place).copied();
        word(finding, line);
    }
}

/// A message that begins with an option of `pjsip.conf` and its value begins with the word of the line instead.
pub(crate) fn in_word_of(finding: &mut Finding, line: Option<&Variable>) {
    let (Some(line), Some((option, rest))) = (line, finding.message.split_once('=')) else { return };
    let is_name = !option.is_empty() && option.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name && !line.is(option) {
        finding.message = format!("{}={rest}", line.name);
    }
}
