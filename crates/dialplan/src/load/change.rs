//! Changes of a loaded dialplan while calls go on, each a new [`Program`]; the next load forgets them.

use conf::{Findings, Place, Section, Variable};

use super::{Loader, Tables};
use crate::program::{ContextId, Extension, Program};

/// A step that somebody adds while calls go on.
#[derive(Debug, Clone, Copy)]
pub struct Addition<'a> {
    /// Context; made when there is none.
    pub context: &'a str,
    /// Extension, or a pattern.
    pub exten: &'a str,
    /// Priority, with a label in parentheses, or `hint`.
    pub priority: &'a str,
    /// Application.
    pub app: &'a str,
    /// Its arguments.
    pub data: &'a str,
    /// It may take the place of a step with this priority.
    pub replace: bool,
}

impl Addition<'_> {
    /// As a file would write it.
    pub(super) fn section(&self, place: &Place) -> Section {
        let value = if self.priority.eq_ignore_ascii_case("hint") {
            format!("{},hint,{}", self.exten, self.app)
        } else {
            format!("{},{},{}({})", self.exten, self.priority, self.app, self.data)
        };
        section(self.context, "exten", &value, place)
    }
}

/// Where findings of a change say that they stand.
pub(crate) const MADE_BY: &str = "manager";

/// A section with one line.
fn section(context: &str, name: &str, value: &str, place: &Place) -> Section {
    let variable = Variable {
        name: name.into(),
        value: value.into(),
        object: true,
        place: place.clone(),
        inherited: false,
    };
    Section {
        name: context.into(),
        template: false,
        place: place.clone(),
        parents: Vec::new(),
        variables: vec![variable],
    }
}

/// A dialplan with the lines of a section; an error of theirs refuses them.
fn compiled(program: &Program, tables: &Tables, section: &Section) -> Result<Program, ChangeError> {
    let mut findings = Findings::new();
    let mut loader = Loader::resume(program, tables, &mut findings);
    loader.section(section);
    let whole = loader.finish();
    let own = |found: &&conf::Finding| found.level == conf::Level::Error && &*found.place.file == MADE_BY;
    match findings.iter().find(own) {
        Some(error) => Err(ChangeError::Invalid(error.message.clone())),
        None => Ok(whole),
    }
}

/// Why a dialplan was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeError {
    /// There is a step at this place already.
    Exists,
    /// There is no such context, extension or step.
    Missing,
    /// It cannot be compiled; the text says why.
    Invalid(String),
}

/// A dialplan with one more step.
pub fn add(program: &Program, tables: &Tables, new: &Addition<'_>) -> Result<Program, ChangeError> {
    let number = new.priority.split('(').next().unwrap_or_default().trim().parse::<u32>().ok();
    if number == Some(0) || new.exten.trim().is_empty() {
        return Err(ChangeError::Invalid("an extension and a priority from 1 are needed".into()));
    }
    let mut base = None;
    if let Some(number) = number {
        let has = |extension: &Extension| *extension.name == *new.exten && extension.find(number).is_some();
        let known = program.context_id(new.context).and_then(|id| program.context(id));
        if known.is_some_and(|context| context.extensions.iter().any(has)) {
            if !new.replace {
                return Err(ChangeError::Exists);
            }
            base = Some(remove(program, tables, new.context, new.exten, Some(number))?);
        }
    }
    compiled(base.as_ref().unwrap_or(program), tables, &new.section(&Place::new(MADE_BY, 0)))
}

/// A dialplan with more steps, as [`load_with`](super::load_with) takes them.
pub fn extend(
    program: &Program,
    tables: &Tables,
    own: (&[Addition<'_>], &str),
    findings: &mut Findings,
) -> Program {
    let mut loader = Loader::resume(program, tables, findings);
    let place = Place::new(own.1, 0);
    own.0.iter().for_each(|step| loader.section(&step.section(&place)));
    loader.finish()
}

/// A dialplan without an extension, or without one step of it.
pub fn remove(
    program: &Program,
    tables: &Tables,
    context: &str,
    exten: &str,
    priority: Option<u32>,
) -> Result<Program, ChangeError> {
    let mut findings = Findings::new();
    let mut loader = Loader::resume(program, tables, &mut findings);
    let index = program.context_id(context).and_then(|id| usize::try_from(id.0).ok());
    let drafts = index.and_then(|index| loader.drafts.get_mut(index)).ok_or(ChangeError::Missing)?;
    let mut gone = 0;
    for draft in drafts.0.iter_mut().filter(|draft| *draft.extension.name == *exten) {
        let before = draft.extension.steps.len() + usize::from(draft.extension.hint.is_some());
        match priority {
            Some(priority) => draft.extension.steps.retain(|step| step.priority != priority),
            None => {
                draft.extension.steps.clear();
                draft.extension.hint = None;
            }
        }
        gone += before - draft.extension.steps.len() - usize::from(draft.extension.hint.is_some());
    }
    drafts.0.retain(|draft| !draft.extension.steps.is_empty() || draft.extension.hint.is_some());
    if gone == 0 {
        return Err(ChangeError::Missing);
    }
    Ok(loader.finish())
}

/// A line of a context that is no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextLine {
    /// `include => context[,times,…]`.
    Include,
    /// `ignorepat => pattern`.
    IgnorePattern,
}

impl ContextLine {
    fn keyword(self) -> &'static str {
        match self {
            Self::Include => "include",
            Self::IgnorePattern => "ignorepat",
        }
    }
    /// Whether the context has this very line.
    fn stands_in(self, program: &Program, context: &str, text: &str) -> bool {
        let context = program.context_id(context).and_then(|id| program.context(id));
        context.is_some_and(|context| match self {
            Self::Include => context.includes.iter().any(|include| *include.text == *text),
            Self::IgnorePattern => context.ignorepats.iter().any(|pattern| **pattern == *text),
        })
    }
}

/// A dialplan whose context has one more line; the context is made when there is none.
pub fn add_line(
    program: &Program,
    tables: &Tables,
    context: &str,
    line: ContextLine,
    text: &str,
) -> Result<Program, ChangeError> {
    if line.stands_in(program, context, text) {
        return Err(ChangeError::Exists);
    }
    compiled(program, tables, &section(context, line.keyword(), text, &Place::new(MADE_BY, 0)))
}

/// A dialplan whose context lacks a line that it has.
pub fn remove_line(
    program: &Program,
    tables: &Tables,
    context: &str,
    line: ContextLine,
    text: &str,
) -> Result<Program, ChangeError> {
    if !line.stands_in(program, context, text) {
        return Err(ChangeError::Missing);
    }
    let mut findings = Findings::new();
    let mut loader = Loader::resume(program, tables, &mut findings);
    for known in loader.program.contexts.iter_mut().filter(|known| *known.name == *context) {
        match line {
            ContextLine::Include => known.includes.retain(|include| *include.text != *text),
            ContextLine::IgnorePattern => {
                let mut keeps = known.ignorepats.iter().map(|pattern| **pattern != *text);
                known.ignore_patterns.retain(|_| keeps.next().unwrap_or(true));
                known.ignorepats.retain(|pattern| **pattern != *text);
            }
        }
    }
    Ok(loader.finish())
}

/// A dialplan without a context. What includes it or goes there finds nothing.
pub fn remove_context(program: &Program, tables: &Tables, name: &str) -> Result<Program, ChangeError> {
    let index = program.context_id(name).and_then(|id| usize::try_from(id.0).ok());
    let index = index.filter(|index| *index < program.contexts.len()).ok_or(ChangeError::Missing)?;
    let mut findings = Findings::new();
    let mut loader = Loader::resume(program, tables, &mut findings);
    loader.program.contexts.remove(index);
    loader.drafts.remove(index);
    let names = loader.program.contexts.iter().map(|context| context.name.clone());
    loader.program.by_name = names.zip((0..).map(ContextId)).collect();
    Ok(loader.finish())
}
