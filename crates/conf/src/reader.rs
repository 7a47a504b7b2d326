//! The reader: from logical lines to sections, through includes.

use crate::file::{File, Section, Variable};
use crate::finding::{Findings, Place};
use crate::lines::{self, Line};
use crate::source::{ReadError, Source, is_glob};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of `#include`, `#tryinclude` and `#exec`, the field's limit.
pub const INCLUDE_DEPTH_MAX: usize = 10;
/// Most files one load may read, so that files that include each other through wildcards end.
pub const INCLUDES_MAX: usize = 10_000;
/// Most memory one load may fill with variables, in bytes, so that sections that inherit each other in pairs end.
/// The largest configuration seen in the field holds 2 MB.
pub const BYTES_MAX: usize = 256 << 20;
/// What a variable costs beside its value, in bytes.
const VARIABLE_BYTES: usize = size_of::<Variable>();

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// `execincludes=yes`: `#exec` may run commands.
    pub allow_exec: bool,
}

/// Why there is no file; the findings say where and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file asked for is not there.
    #[error("no such file")]
    Missing,
    /// The file, or one it includes, is refused as a whole.
    #[error("the file is not valid")]
    Invalid,
}

/// Reads a configuration file and all it includes.
///
/// Everything worth a person's attention goes to `findings`; a missing file adds nothing, because only the caller knows
/// whether that matters.
pub fn load(
    source: &dyn Source,
    path: &str,
    options: Options,
    findings: &mut Findings,
) -> Result<File, LoadError> {
    let name = source.full_name(path);
    let bytes = match source.read(path) {
        Ok(bytes) => bytes,
        Err(ReadError::NotFound) => return Err(LoadError::Missing),
        Err(error) => {
            let remedy = "check that the file is a plain file the user Strowger runs as may read";
            findings.error(&Place::new(name, 0), format!("cannot be read: {error}"), remedy);
            return Err(LoadError::Invalid);
        }
    };
    let mut reader = Reader {
        source,
        options,
        findings,
        file: File::default(),
        by_name: BTreeMap::new(),
        current: None,
        includes: 0,
        bytes: 0,
    };
    reader.text(name.into(), &bytes, 0).map_err(|Invalid| LoadError::Invalid)?;
    Ok(reader.file)
}

/// The file is refused; the finding has been pushed.
struct Invalid;

struct Reader<'a> {
    source: &'a dyn Source,
    options: Options,
    findings: &'a mut Findings,
    file: File,
    /// Where in `file.sections` the sections of a name are, by the name in lower case.
    by_name: BTreeMap<String, Vec<usize>>,
    /// Index of the section that lines belong to. It stays open at the end of an included file.
    current: Option<usize>,
    includes: usize,
    bytes: usize,
}

impl Reader<'_> {
    fn refuse(&mut self, place: &Place, message: impl Into<String>, remedy: &str) -> Invalid {
        self.findings.error(place, message, remedy);
        Invalid
    }

    /// Reads one file's bytes at an include depth.
    fn text(&mut self, path: Arc<str>, bytes: &[u8], depth: usize) -> Result<(), Invalid> {
        self.file.files.push(path.clone());
        let mut told_encoding = false;
        for line in lines::scan(bytes) {
            match line {
                Line::Text { line, text, decoded } => {
                    let place = Place { file: path.clone(), line };
                    if decoded && !told_encoding {
                        told_encoding = true;
                        self.findings.warning(
                            &place,
                            "the line is not UTF-8 and is read as Latin-1",
                            format!("convert the file: iconv -f LATIN1 -t UTF-8 {path}"),
                        );
                    }
                    self.line(place, &text, depth)?;
                }
                Line::TooLong { line, bytes } => self.findings.warning(
                    &Place { file: path.clone(), line },
                    format!("the line has {bytes} bytes and is skipped; {} are read", lines::LINE_BYTES_MAX),
                    "split the value",
                ),
                Line::TooDeep { line } => self.findings.warning(
                    &Place { file: path.clone(), line },
                    format!("comment blocks nest deeper than {}", lines::COMMENT_DEPTH_MAX),
                    "close a block with `--;`",
                ),
                Line::Unclosed { line } => self.findings.warning(
                    &Place { file: path.clone(), line },
                    "the comment block that begins here is never closed; everything after it is ignored",
                    "close it with `--;`",
                ),
            }
        }
        Ok(())
    }

    fn line(&mut self, place: Place, text: &str, depth: usize) -> Result<(), Invalid> {
        match text.as_bytes().first() {
            Some(b'[') => self.header(place, text),
            Some(b'#') => self.directive(place, text, depth),
            _ => self.variable(place, text),
        }
    }

    fn header(&mut self, place: Place, text: &str) -> Result<(), Invalid> {
        let Some((name, rest)) = text.get(1..).and_then(|text| text.split_once(']')) else {
            return Err(self.refuse(&place, "the section header has no closing `]`", "write [name]"));
        };
        let Some(list) = rest.strip_prefix('(') else {
            if rest.trim_start().starts_with('(') {
                let remedy = "remove the space between `]` and `(`";
                self.findings.warning(&place, format!("options of [{name}] are not read"), remedy);
            } else if !rest.is_empty() {
                self.findings.warning(&place, format!("text after [{name}] is ignored"), "remove it");
            }
            self.open(Section::new(name, place));
            return Ok(());
        };
        let Some((list, _)) = list.split_once(')') else {
            return Err(self.refuse(&place, format!("the options of [{name}] have no closing `)`"), ""));
        };
        self.open(Section::new(name, place.clone()));
        for option in list.split(',').map(str::trim) {
            self.header_option(&place, name, option)?;
        }
        Ok(())
    }

    fn open(&mut self, section: Section) {
        let at = self.file.sections.len();
        self.current = Some(at);
        self.by_name.entry(section.name.to_ascii_lowercase()).or_default().push(at);
        self.file.sections.push(section);
    }

    fn header_option(&mut self, place: &Place, name: &str, option: &str) -> Result<(), Invalid> {
        if let Some(filter) = option.strip_prefix('+') {
            // The header continues another section, so the one it opened goes again.
            if self.file.sections.last().is_some_and(|section| section.place == *place) {
                self.file.sections.pop();
                if let Some(same) = self.by_name.get_mut(&name.to_ascii_lowercase()) {
                    same.pop();
                }
            }
            let filter = Filter::parse(filter).map_err(|message| {
                self.refuse(place, message, "write (+key=regex&key=regex), with POSIX extended expressions")
            })?;
            let found = self.find(name, &filter).ok_or_else(|| {
                self.refuse(
                    place,
                    format!("[{name}](+) continues a section that is not there yet"),
                    "put the section above this line, or remove the `+`",
                )
            })?;
            self.current = Some(found);
            return Ok(());
        }
        let Some(current) = self.current else { return Ok(()) };
        if option == "!" {
            if let Some(section) = self.file.sections.get_mut(current) {
                section.template = true;
            }
            return Ok(());
        }
        if option.is_empty() {
            return Ok(());
        }
        let anything = Filter { templates: Templates::Include, pairs: Vec::new() };
        // A section does not inherit from itself: the name means an earlier one.
        let parent = self.find_before(current, option, &anything).ok_or_else(|| {
            self.refuse(
                place,
                format!("[{name}] inherits from [{option}], which is not there yet"),
                "put the template above this line, or correct its name",
            )
        })?;
        self.inherit(place, current, parent)
    }

    fn inherit(&mut self, place: &Place, current: usize, parent: usize) -> Result<(), Invalid> {
        let Some((parent_name, copies)) = self.file.sections.get(parent).map(|section| {
            let copies: Vec<_> =
                section.variables.iter().map(|v| Variable { inherited: true, ..v.clone() }).collect();
            (section.name.clone(), copies)
        }) else {
            return Ok(());
        };
        self.spend(place, copies.len().saturating_mul(VARIABLE_BYTES))?;
        if let Some(section) = self.file.sections.get_mut(current) {
            section.parents.push(parent_name);
            section.variables.extend(copies);
        }
        Ok(())
    }

    /// The first section of this name that passes the filter; one in another case if there is none.
    fn find(&self, name: &str, filter: &Filter) -> Option<usize> {
        let same = self.by_name.get(&name.to_ascii_lowercase())?;
        let passing = || {
            let all = same.iter().filter_map(|at| Some((*at, self.file.sections.get(*at)?)));
            all.filter(|(_, section)| filter.passes(section))
        };
        let exact = passing().find(|(_, section)| &*section.name == name);
        exact.or_else(|| passing().next()).map(|(at, _)| at)
    }

    fn find_before(&self, end: usize, name: &str, filter: &Filter) -> Option<usize> {
        let same = self.by_name.get(&name.to_ascii_lowercase())?;
        let passing = || {
            let earlier = same.iter().rev().copied().filter(|at| *at < end);
            earlier.filter_map(|at| Some((at, self.file.sections.get(at)?))).filter(|(_, s)| filter.passes(s))
        };
        let exact = passing().find(|(_, section)| &*section.name == name);
        exact.or_else(|| passing().next()).map(|(at, _)| at)
    }

    fn spend(&mut self, place: &Place, bytes: usize) -> Result<(), Invalid> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BYTES_MAX {
            return Ok(());
        }
        let message = format!("the configuration grows over {} MB here", BYTES_MAX >> 20);
        Err(self.refuse(place, message, "look for templates that inherit from each other several times"))
    }

    fn variable(&mut self, place: Place, text: &str) -> Result<(), Invalid> {
        let text = match text.as_bytes() {
            [b'\\', b'[' | b'#' | b';', ..] => text.get(1..).unwrap_or_default(),
            _ => text,
        };
        let Some(at) = self.current else {
            return Err(self.refuse(
                &place,
                "there is a line before the first section",
                "begin the file with a section, such as [general]",
            ));
        };
        let Some((name, value)) = text.split_once('=') else {
            self.findings.warning(&place, "the line has no `=` and is ignored", "write name = value");
            return Ok(());
        };
        let (value, object) = value.strip_prefix('>').map_or((value, false), |value| (value, true));
        let (name, append) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let (name, value) = (trim(name), trim(value));
        if name.is_empty() {
            self.findings.warning(&place, "the line has no name before its `=` and is ignored", "");
            return Ok(());
        }
        self.spend(&place, VARIABLE_BYTES + name.len() + value.len())?;
        let earlier = self
            .file
            .sections
            .get_mut(at)
            .filter(|_| append)
            .and_then(|section| section.variables.iter_mut().rev().find(|variable| variable.is(name)))
            .map(|variable| (variable.value.len(), variable));
        if let Some((length, variable)) = earlier {
            variable.value = format!("{}{value}", variable.value).into();
            return self.spend(&place, length);
        }
        if let Some(section) = self.file.sections.get_mut(at) {
            section.variables.push(Variable {
                name: name.into(),
                value: value.into(),
                object,
                place,
                inherited: false,
            });
        }
        Ok(())
    }

    fn directive(&mut self, place: Place, text: &str, depth: usize) -> Result<(), Invalid> {
        let body = text.get(1..).unwrap_or_default().trim_start();
        let end = body.find(|c: char| c.is_ascii_whitespace() || c == '"' || c == '<').unwrap_or(body.len());
        let (word, argument) = body.split_at(end);
        let argument = unquote(trim(argument));
        let known = ["include", "tryinclude", "exec"].iter().find(|known| word.eq_ignore_ascii_case(known));
        let Some(&word) = known else {
            self.findings.warning(
                &place,
                format!("#{word} is no directive and is ignored"),
                "the directives are #include, #tryinclude and #exec; write `;` for a comment",
            );
            return Ok(());
        };
        if argument.is_empty() {
            self.findings.warning(&place, format!("#{word} names nothing and is ignored"), "");
            return Ok(());
        }
        if word == "exec" && !self.options.allow_exec {
            self.findings.warning(
                &place,
                "#exec is not allowed and is ignored",
                "to run commands from configuration files, set execincludes=yes in asterisk.conf [options]",
            );
            return Ok(());
        }
        if depth + 1 > INCLUDE_DEPTH_MAX {
            let message = format!("includes nest deeper than {INCLUDE_DEPTH_MAX}");
            return Err(self.refuse(&place, message, "look for files that include each other"));
        }
        match word {
            "exec" => self.exec(&place, argument, depth + 1),
            word => self.include(&place, argument, word == "tryinclude", depth + 1),
        }
    }

    fn count_include(&mut self, place: &Place) -> Result<(), Invalid> {
        self.includes += 1;
        if self.includes <= INCLUDES_MAX {
            return Ok(());
        }
        let message = format!("more than {INCLUDES_MAX} files are included");
        Err(self.refuse(place, message, "look for files that include each other"))
    }

    fn exec(&mut self, place: &Place, command: &str, depth: usize) -> Result<(), Invalid> {
        self.count_include(place)?;
        self.file.ran_exec = true;
        match self.source.exec(command) {
            Err(ReadError::NotRun) => {
                let message = format!("#exec {command} is not run; what it would print is not looked at");
                self.findings.warning(place, message, "add --exec to have it run");
                Ok(())
            }
            Ok(bytes) => self.text(format!("#exec {command}").into(), &bytes, depth),
            Err(error) => {
                let message = format!("the command of #exec failed: {error}");
                Err(self.refuse(place, message, "run the command by hand and see what it says"))
            }
        }
    }

    fn include(&mut self, place: &Place, path: &str, optional: bool, depth: usize) -> Result<(), Invalid> {
        let paths = if is_glob(path) { self.source.glob(path) } else { vec![path.to_owned()] };
        if paths.is_empty() && !optional {
            let remedy = "write #tryinclude if that is meant";
            self.findings.warning(place, format!("no file matches {path}"), remedy);
        }
        for path in paths {
            self.count_include(place)?;
            match self.source.read(&path) {
                Ok(bytes) => self.text(self.source.full_name(&path).into(), &bytes, depth)?,
                Err(ReadError::NotFound) if optional => {}
                Err(error) => {
                    let message = format!("#include {path}: {error}");
                    let remedy =
                        "create the file, correct the name, or write #tryinclude if it may be missing";
                    return Err(self.refuse(place, message, remedy));
                }
            }
        }
        Ok(())
    }
}

impl Section {
    fn new(name: &str, place: Place) -> Self {
        Self { name: name.into(), template: false, place, parents: Vec::new(), variables: Vec::new() }
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Takes the quotes or angle brackets off an include's argument.
fn unquote(text: &str) -> &str {
    for (open, close) in [('"', '"'), ('<', '>')] {
        if let Some(inner) = text.strip_prefix(open) {
            return inner.split_once(close).map_or(inner, |(inner, _)| inner);
        }
    }
    text
}

/// Which templates a `(+…)` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Templates {
    Exclude,
    Include,
    Restrict,
}

/// What follows a `+`: `key=regex&key=regex`, with `TEMPLATES=include|restrict` as one of the keys.
struct Filter {
    templates: Templates,
    pairs: Vec<(String, regex_lite::Regex)>,
}

impl Filter {
    fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self { templates: Templates::Exclude, pairs: Vec::new() };
        for pair in text.split('&').map(trim).filter(|pair| !pair.is_empty()) {
            let (key, expression) =
                pair.split_once('=').ok_or_else(|| format!("the filter `{pair}` has no `=`"))?;
            let (key, expression) = (trim(key), trim(expression));
            if key == "TEMPLATES" {
                filter.templates = match expression {
                    "include" => Templates::Include,
                    "restrict" => Templates::Restrict,
                    _ => return Err(format!("TEMPLATES={expression} is neither include nor restrict")),
                };
            } else {
                let regex = regex_lite::Regex::new(expression)
                    .map_err(|error| format!("the filter expression `{expression}` is not valid: {error}"))?;
                filter.pairs.push((key.to_owned(), regex));
            }
        }
        Ok(filter)
    }

    fn passes(&self, section: &Section) -> bool {
        let kind = match self.templates {
            Templates::Exclude => !section.template,
            Templates::Include => true,
            Templates::Restrict => section.template,
        };
        kind && self.pairs.iter().all(|(key, regex)| section.all(key).any(|v| regex.is_match(&v.value)))
    }
}
