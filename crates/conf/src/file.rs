//! What the reader returns: sections with their variables, in file order.

use crate::finding::Place;
use std::sync::Arc;

/// A variable of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Trimmed, in the case it was written.
    pub name: Arc<str>,
    /// Trimmed; quotes are part of it. Empty when nothing followed the `=`.
    pub value: Arc<str>,
    /// Written with `=>`; means the same, kept for writing the file again.
    pub object: bool,
    /// Where it was written; for an inherited one, in its template.
    pub place: Place,
    /// Copied from a parent section.
    pub inherited: bool,
}

impl Variable {
    /// Whether the variable has this name, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A section and what belongs to it: inherited variables first, then its own, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Text between the brackets.
    pub name: Arc<str>,
    /// Written with `(!)`: only there to be inherited from, never an object.
    pub template: bool,
    /// Where its header is.
    pub place: Place,
    /// Names of the sections it inherits from, left to right, for writing the file again.
    pub parents: Vec<Arc<str>>,
    /// All variables. An own value does not erase an inherited one of the same name.
    pub variables: Vec<Variable>,
}

impl Section {
    /// The first variable of this name: an inherited one before an own one.
    pub fn first(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.is(name))
    }
    /// The last variable of this name: what consumers with “last wins” see, so own values override inherited ones.
    pub fn last(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| variable.is(name))
    }
    /// Value of [`Self::last`].
    pub fn value(&self, name: &str) -> Option<&str> {
        self.last(name).map(|variable| &*variable.value)
    }
    /// Every variable of this name, inherited ones first.
    pub fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a Variable> + 'a {
        self.variables.iter().filter(move |variable| variable.is(name))
    }
}

/// A configuration file with everything it includes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Sections and templates in file order. Same-named sections are separate objects.
    pub sections: Vec<Section>,
    /// Every file read, the first being the one asked for; a reload compares their times.
    pub files: Vec<Arc<str>>,
    /// An `#exec` ran, so the file counts as changed at every reload.
    pub ran_exec: bool,
}

impl File {
    /// The file as a whole, for findings that belong to no line.
    pub fn place(&self) -> Place {
        Place { file: self.files.first().cloned().unwrap_or_default(), line: 0 }
    }
    /// Sections that are not templates.
    pub fn objects(&self) -> impl DoubleEndedIterator<Item = &Section> {
        self.sections.iter().filter(|section| !section.template)
    }
    /// The first section of this name that is not a template: what simple consumers look at. Exact case goes first.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.objects()
            .find(|section| &*section.name == name)
            .or_else(|| self.objects().find(|section| section.name.eq_ignore_ascii_case(name)))
    }
    /// Every section of this name that is not a template, in any case.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Section> + 'a {
        self.objects().filter(move |section| section.name.eq_ignore_ascii_case(name))
    }
    /// Value of the first variable of this name in the first section of this name.
    pub fn get(&self, section: &str, name: &str) -> Option<&Variable> {
        self.section(section)?.first(name)
    }
}
