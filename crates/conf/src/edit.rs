//! A file as text to be changed: what nobody touches keeps its comments, blanks and order, byte for byte.
//!
//! The reader forgets what only people need; this keeps it. It looks at one file alone: sections that come from an
//! `#include` are not in it and are changed where they are written.

use crate::lines;

/// One physical line and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// As it was written, without its newline.
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Comments, blanks, directives, and lines that cannot be read.
    Other,
    Header(Header),
    Variable {
        name: String,
        value: String,
        object: bool,
    },
    /// A variable with a comment block that goes on in the next line: it cannot be changed by itself.
    Entangled {
        name: String,
    },
}

/// A section's header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    name: String,
    template: bool,
    parents: Vec<String>,
    /// What it inherited when [`Document::note_inherited`] looked.
    inherited: Vec<Assigned>,
}

/// A variable: name, value, and whether it is written with `=>`.
type Assigned = (String, String, bool);

/// Why a change was not made; the document is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no such section.
    #[error("there is no such section")]
    NoSection,
    /// There is such a section already.
    #[error("there is such a section already")]
    Exists,
    /// A template to inherit from is not there.
    #[error("there is no such template")]
    NoTemplate,
    /// There is no such variable, or none with this value.
    #[error("there is no such variable")]
    NoVariable,
    /// A name or value that could not be read back as it was given.
    #[error("the name or value cannot be written")]
    Unwritable,
    /// The variable stands beside a comment block that goes on in other lines.
    #[error("the line is entangled with a comment block")]
    Entangled,
}

/// How far templates of templates are followed: deeper ones than anybody writes.
const TEMPLATES_DEPTH_MAX: usize = 8;

/// A variable's name, and what is asked of its value.
pub type Condition<'a> = (&'a str, &'a dyn Fn(&str) -> bool);

/// Which of the sections of a name are meant.
#[derive(Clone, Default)]
pub struct Choice<'a> {
    /// Templates as well.
    pub templates: Templates,
    /// All of this must hold.
    pub with: Vec<Condition<'a>>,
}

/// Whether templates count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Templates {
    /// Only sections that are not templates.
    #[default]
    Without,
    /// Both.
    With,
    /// Templates alone.
    Only,
}

/// A new section.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewSection<'a> {
    /// Between the brackets.
    pub name: &'a str,
    /// It is a template.
    pub template: bool,
    /// Templates that it inherits from.
    pub parents: &'a [&'a str],
    /// It may have the name of another.
    pub doubled: bool,
    /// It goes before the first section of this name, else to the end.
    pub before: Option<&'a str>,
}

/// The text of a configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    lines: Vec<Line>,
    /// The last line has no newline.
    open_end: bool,
}

impl Document {
    /// Takes a file's text.
    pub fn parse(bytes: &[u8]) -> Self {
        let (body, open_end) = match bytes.strip_suffix(b"\n") {
            Some(body) => (body, false),
            None => (bytes, !bytes.is_empty()),
        };
        if bytes.is_empty() {
            return Self::default();
        }
        let mut lines: Vec<Line> = body
            .split(|byte| *byte == b'\n')
            .map(|line| Line { bytes: line.to_vec(), kind: Kind::Other })
            .collect();
        for (at, text, alone) in lines::positions(bytes) {
            if let Some(line) = lines.get_mut(at) {
                line.kind = kind(&text, alone);
            }
        }
        Self { lines, open_end }
    }
    /// The text as it stands.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.lines.iter().fold(Vec::new(), |mut out, line| {
            out.extend_from_slice(&line.bytes);
            out.push(b'\n');
            out
        });
        if self.open_end {
            out.pop();
        }
        out
    }

    /// Adds a section.
    pub fn add_section(&mut self, new: &NewSection<'_>) -> Result<(), EditError> {
        let fits =
            |name: &&str| is_writable(name) && !name.is_empty() && !name.contains([']', '[', ',', ')']);
        if !fits(&new.name) || !new.parents.iter().all(fits) {
            return Err(EditError::Unwritable);
        }
        if !new.doubled && self.headers().any(|(_, header)| header.name == new.name) {
            return Err(EditError::Exists);
        }
        let known = |name: &str| self.headers().any(|(_, header)| header.name == name);
        if !new.parents.iter().all(|parent| known(parent)) {
            return Err(EditError::NoTemplate);
        }
        let at = match new.before {
            Some(name) => {
                let found = self.headers().find(|(_, header)| header.name == name);
                self.above(found.ok_or(EditError::NoSection)?.0)
            }
            None => self.lines.len(),
        };
        let header = Header {
            name: new.name.to_owned(),
            template: new.template,
            parents: new.parents.iter().map(|name| (*name).to_owned()).collect(),
            inherited: Vec::new(),
        };
        let blank = || Line { bytes: Vec::new(), kind: Kind::Other };
        let mut lines = vec![header.line()];
        if at < self.lines.len() {
            lines.push(blank());
        } else if self.lines.last().is_some_and(|line| !line.bytes.trim_ascii().is_empty()) {
            lines.insert(0, blank());
        }
        self.open_end = false;
        self.lines.splice(at..at, lines);
        Ok(())
    }
    /// Gives the chosen sections of a name another one.
    pub fn rename_section(&mut self, name: &str, to: &str, choice: &Choice<'_>) -> Result<(), EditError> {
        if !is_writable(to) || to.is_empty() || to.contains([']', '[', ',', ')']) {
            return Err(EditError::Unwritable);
        }
        for at in self.chosen(name, choice)? {
            let Some(line) = self.lines.get_mut(at) else { continue };
            let Kind::Header(header) = &mut line.kind else { continue };
            header.name = to.to_owned();
            let written = header.line().bytes;
            let rest = comment_of(&line.bytes);
            line.bytes = [written, rest].concat();
        }
        Ok(())
    }
    /// Takes the chosen sections of a name away, with what stands in them.
    pub fn delete_section(&mut self, name: &str, choice: &Choice<'_>) -> Result<(), EditError> {
        for at in self.chosen(name, choice)?.into_iter().rev() {
            let end = self.end_of(at);
            let end = if end == self.lines.len() { end } else { self.above(end) };
            self.lines.drain(at..end.max(at + 1));
        }
        Ok(())
    }
    /// Takes all variables of the chosen sections away; comments stay.
    pub fn empty_section(&mut self, name: &str, choice: &Choice<'_>) -> Result<(), EditError> {
        for at in self.chosen(name, choice)?.into_iter().rev() {
            let end = self.end_of(at);
            if self.within(at, end).any(|(_, line)| matches!(line.kind, Kind::Entangled { .. })) {
                return Err(EditError::Entangled);
            }
            let own: Vec<usize> = self
                .within(at, end)
                .filter(|(_, line)| matches!(line.kind, Kind::Variable { .. }))
                .map(|(at, _)| at)
                .collect();
            own.into_iter().rev().for_each(|at| drop(self.lines.remove(at)));
        }
        Ok(())
    }
    /// Gives the last variable of a name, in each of the chosen sections, another value; only one that has the value `old`,
    /// when that is given.
    pub fn update(
        &mut self,
        section: &str,
        choice: &Choice<'_>,
        name: &str,
        value: &str,
        old: Option<&str>,
    ) -> Result<(), EditError> {
        let sections = self.chosen(section, choice)?;
        if !is_value(value) {
            return Err(EditError::Unwritable);
        }
        let mut found = Vec::new();
        for header in sections {
            let end = self.end_of(header);
            found.push(self.matching(header, end, name, old)?.last().copied().ok_or(EditError::NoVariable)?);
        }
        found.into_iter().for_each(|at| self.rewrite(at, value));
        Ok(())
    }
    /// Takes variables of a name away: those with the value `old`, when that is given; and of these the one that is
    /// number `line` among the variables of its section.
    pub fn delete(
        &mut self,
        section: &str,
        choice: &Choice<'_>,
        name: &str,
        old: Option<&str>,
        line: Option<usize>,
    ) -> Result<(), EditError> {
        let mut gone = Vec::new();
        for header in self.chosen(section, choice)? {
            let end = self.end_of(header);
            let numbered = line.map(|number| self.variables(header, end).nth(number));
            let found = self.matching(header, end, name, old)?;
            gone.extend(found.into_iter().filter(|at| numbered.is_none_or(|wanted| wanted == Some(*at))));
        }
        if gone.is_empty() {
            return Err(EditError::NoVariable);
        }
        gone.sort_unstable();
        gone.into_iter().rev().for_each(|at| drop(self.lines.remove(at)));
        Ok(())
    }
    /// Takes the variable away that is number `line` of its section.
    pub fn delete_line(&mut self, section: &str, choice: &Choice<'_>, line: usize) -> Result<(), EditError> {
        for header in self.chosen(section, choice)? {
            let found = self.variables(header, self.end_of(header)).nth(line);
            let Some(at) = found else { continue };
            if self.lines.get(at).is_some_and(|line| matches!(line.kind, Kind::Entangled { .. })) {
                return Err(EditError::Entangled);
            }
            self.lines.remove(at);
            return Ok(());
        }
        Err(EditError::NoVariable)
    }
    /// Adds a variable to each of the chosen sections: after the last one of it, or as its number `line`. `object` writes
    /// `=>`.
    pub fn add(
        &mut self,
        section: &str,
        choice: &Choice<'_>,
        (name, value, object): (&str, &str, bool),
        line: Option<usize>,
    ) -> Result<(), EditError> {
        let sections = self.chosen(section, choice)?;
        let named = is_writable(name) && !name.is_empty() && !name.contains('=') && !name.ends_with('+');
        if !named || !is_value(value) || name.starts_with(['[', '#']) {
            return Err(EditError::Unwritable);
        }
        for header in sections.into_iter().rev() {
            let end = self.end_of(header);
            let at = match line {
                Some(number) => self.variables(header, end).nth(number),
                None => None,
            };
            let last = || self.variables(header, end).last().map_or(header, |last| self.past_block(last));
            let at = at.unwrap_or_else(|| last() + 1);
            self.open_end &= at < self.lines.len();
            self.lines.insert(at, variable(name, value, object));
        }
        Ok(())
    }

    /// Notes of each section what it inherits, for [`Document::keep_inherited`].
    pub fn note_inherited(&mut self) {
        let headers: Vec<usize> = self.headers().map(|(at, _)| at).collect();
        for at in headers {
            let inherited = self.inherited(at, TEMPLATES_DEPTH_MAX);
            if let Some(Kind::Header(header)) = self.lines.get_mut(at).map(|line| &mut line.kind) {
                header.inherited = inherited;
            }
        }
    }
    /// Writes into each section what it inherited when that was noted, but for what it says itself: a change of a template
    /// changes nothing of those that are there.
    pub fn keep_inherited(&mut self) {
        let headers: Vec<(usize, Vec<Assigned>)> =
            self.headers().map(|(at, header)| (at, header.inherited.clone())).collect();
        for (at, inherited) in headers.into_iter().rev() {
            let own: Vec<String> = self.own(at).into_iter().map(|(name, ..)| name).collect();
            let is_own = |name: &str| own.iter().any(|own| own.eq_ignore_ascii_case(name));
            let lines = inherited.iter().filter(|(name, value, _)| !is_own(name) && is_value(value));
            let lines: Vec<Line> =
                lines.map(|(name, value, object)| variable(name, value, *object)).collect();
            self.open_end &= lines.is_empty() || at + 1 < self.lines.len();
            self.lines.splice(at + 1..at + 1, lines);
        }
    }
    /// Takes what says the same as a template out of the sections that inherit from it, so that they follow a change of it.
    pub fn drop_inherited(&mut self) {
        let headers: Vec<usize> = self.headers().map(|(at, _)| at).collect();
        for at in headers.into_iter().rev() {
            let inherited = self.inherited(at, TEMPLATES_DEPTH_MAX);
            let same = |name: &str, value: &str| {
                let last = inherited.iter().rev().find(|(known, ..)| known.eq_ignore_ascii_case(name));
                last.is_some_and(|(_, known, _)| known == value)
            };
            let gone: Vec<usize> = self
                .within(at, self.end_of(at))
                .filter(
                    |(_, line)| matches!(&line.kind, Kind::Variable { name, value, .. } if same(name, value)),
                )
                .map(|(at, _)| at)
                .collect();
            gone.into_iter().rev().for_each(|at| drop(self.lines.remove(at)));
        }
    }
    /// Puts these lines at the start in the place of those that begin with `mark`.
    pub fn head(&mut self, mark: &str, lines: &[String]) {
        let old = self.lines.iter().take_while(|line| line.bytes.starts_with(mark.as_bytes())).count();
        let new = lines.iter().map(|line| Line { bytes: line.clone().into_bytes(), kind: Kind::Other });
        self.lines.splice(..old, new);
    }
    /// Variables that a section says itself.
    fn own(&self, header: usize) -> Vec<Assigned> {
        let of = |(_, line): (usize, &Line)| match &line.kind {
            Kind::Variable { name, value, object } => Some((name.clone(), value.clone(), *object)),
            _ => None,
        };
        self.within(header, self.end_of(header)).filter_map(of).collect()
    }
    /// Variables that a section has from its templates, and they from theirs.
    fn inherited(&self, header: usize, depth: usize) -> Vec<Assigned> {
        let Some(Kind::Header(of)) = self.lines.get(header).map(|line| &line.kind) else { return Vec::new() };
        let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
        let template = |name: &String| self.headers().find(|(at, other)| *at < header && other.name == *name);
        of.parents
            .iter()
            .filter_map(template)
            .flat_map(|(at, _)| self.inherited(at, depth).into_iter().chain(self.own(at)).collect::<Vec<_>>())
            .collect()
    }

    fn headers(&self) -> impl Iterator<Item = (usize, &Header)> {
        self.lines.iter().enumerate().filter_map(|(at, line)| match &line.kind {
            Kind::Header(header) => Some((at, header)),
            _ => None,
        })
    }
    /// Where the headers of the chosen sections of a name are.
    fn chosen(&self, name: &str, choice: &Choice<'_>) -> Result<Vec<usize>, EditError> {
        let fits = |at: usize, header: &Header| {
            let kind = match choice.templates {
                Templates::Without => !header.template,
                Templates::With => true,
                Templates::Only => header.template,
            };
            let end = self.end_of(at);
            let has = |(wanted, is): &Condition<'_>| {
                self.within(at, end).any(|(_, line)| {
                    matches!(&line.kind, Kind::Variable { name, value, .. }
                        if name.eq_ignore_ascii_case(wanted) && is(value))
                })
            };
            kind && choice.with.iter().all(has)
        };
        let found: Vec<usize> = self
            .headers()
            .filter(|(at, header)| header.name == name && fits(*at, header))
            .map(|(at, _)| at)
            .collect();
        if found.is_empty() { Err(EditError::NoSection) } else { Ok(found) }
    }
    /// The line after the last of the section whose header this is.
    fn end_of(&self, header: usize) -> usize {
        self.headers().map(|(at, _)| at).find(|at| *at > header).unwrap_or(self.lines.len())
    }
    /// The first of the comments and blanks right above a header: they belong to it.
    fn above(&self, header: usize) -> usize {
        let before = self.lines.get(..header).unwrap_or_default();
        let own = before.iter().rev().take_while(|line| line.bytes.trim_ascii_start().starts_with(b";"));
        header - own.count()
    }
    fn within(&self, header: usize, end: usize) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().take(end).skip(header + 1)
    }
    /// Where the variables of a section are.
    fn variables(&self, header: usize, end: usize) -> impl Iterator<Item = usize> {
        let is = |line: &Line| matches!(line.kind, Kind::Variable { .. } | Kind::Entangled { .. });
        self.within(header, end).filter(move |(_, line)| is(line)).map(|(at, _)| at)
    }
    /// The last line of the comment block that a line begins.
    fn past_block(&self, at: usize) -> usize {
        let entangled = |line: &Line| matches!(line.kind, Kind::Entangled { .. });
        if !self.lines.get(at).is_some_and(entangled) {
            return at;
        }
        let rest = self.lines.get(at..).unwrap_or_default();
        at + rest.iter().position(|line| line.bytes.windows(3).any(|three| three == b"--;")).unwrap_or(0)
    }
    fn matching(
        &self,
        header: usize,
        end: usize,
        name: &str,
        old: Option<&str>,
    ) -> Result<Vec<usize>, EditError> {
        let mut found = Vec::new();
        for (at, line) in self.within(header, end) {
            match &line.kind {
                Kind::Variable { name: own, value, .. }
                    if own.eq_ignore_ascii_case(name) && old.is_none_or(|old| old == value) =>
                {
                    found.push(at);
                }
                Kind::Entangled { name: own } if own.eq_ignore_ascii_case(name) => {
                    return Err(EditError::Entangled);
                }
                _ => {}
            }
        }
        Ok(found)
    }
    fn rewrite(&mut self, at: usize, value: &str) {
        let Some(line) = self.lines.get_mut(at) else { return };
        let Kind::Variable { name, object, .. } = &line.kind else { return };
        let comment = comment_of(&line.bytes);
        let mut written = variable(name, value, *object);
        written.bytes.extend_from_slice(&comment);
        *line = written;
    }
}

impl Header {
    fn line(&self) -> Line {
        let mark = if self.template { Some("!") } else { None };
        let options: Vec<&str> = mark.into_iter().chain(self.parents.iter().map(String::as_str)).collect();
        let options = if options.is_empty() { String::new() } else { format!("({})", options.join(",")) };
        let bytes = format!("[{}]{options}", self.name).into_bytes();
        Line { bytes, kind: Kind::Header(self.clone()) }
    }
}

/// What a line means; `alone`: no comment block reaches into it or out of it.
fn kind(text: &str, alone: bool) -> Kind {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((name, rest)) = rest.split_once(']') else { return Kind::Other };
        let list = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(list, _)| list);
        let (marks, parents): (Vec<&str>, Vec<&str>) = list
            .split(',')
            .map(str::trim)
            .filter(|option| !option.is_empty() && !option.starts_with('+'))
            .partition(|option| *option == "!");
        let parents = parents.into_iter().map(str::to_owned).collect();
        let template = !marks.is_empty();
        return Kind::Header(Header { name: name.to_owned(), template, parents, inherited: Vec::new() });
    }
    if text.starts_with('#') {
        return Kind::Other;
    }
    let text = match text.as_bytes() {
        [b'\\', b'[' | b'#' | b';', ..] => text.get(1..).unwrap_or_default(),
        _ => text,
    };
    let Some((name, value)) = text.split_once('=') else { return Kind::Other };
    let (value, object) = value.strip_prefix('>').map_or((value, false), |value| (value, true));
    let name = name.trim().to_owned();
    if !alone {
        return Kind::Entangled { name };
    }
    Kind::Variable { name, value: value.trim().to_owned(), object }
}

fn variable(name: &str, value: &str, object: bool) -> Line {
    let equals = if object { "=>" } else { "=" };
    let written = format!("{name} {equals} {}", value.replace(';', "\\;"));
    let kind = Kind::Variable { name: name.to_owned(), value: value.to_owned(), object };
    Line { bytes: written.into_bytes(), kind }
}

/// The comment at the end of a line, with the blanks before it; empty when there is none.
fn comment_of(line: &[u8]) -> Vec<u8> {
    let begins = |at: &usize| line.get(*at) == Some(&b';') && (*at == 0 || line.get(at - 1) != Some(&b'\\'));
    let Some(at) = (0..line.len()).find(begins) else { return Vec::new() };
    let before = line.get(..at).unwrap_or_default();
    let blanks = before.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    line.get(at - blanks..).unwrap_or_default().to_vec()
}

/// Whether text stays one piece of one line.
fn is_writable(text: &str) -> bool {
    !text.chars().any(char::is_control) && !text.contains(';') && text.trim() == text
}

/// Whether text can be a value: a semicolon is escaped, and what would begin a block or an object cannot be said.
fn is_value(text: &str) -> bool {
    let short = text.len() <= lines::LINE_BYTES_MAX / 2;
    !text.chars().any(char::is_control) && text.trim() == text && !text.starts_with('>') && short
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "; my phones\n[general](!)\ncontext = default ; where they begin\n\n; Alice\n[100](general)\n\
                        secret = a ; first\nsecret = b\nallow => ulaw\n\n; Bob, twice\n[200]\nname = one\n[200]\nname = two\n";

    fn edited(edit: impl FnOnce(&mut Document) -> Result<(), EditError>) -> Result<String, EditError> {
        let mut document = Document::parse(FILE.as_bytes());
        edit(&mut document)?;
        let bytes = document.to_bytes();
        assert_eq!(Document::parse(&bytes), document, "what was written reads back the same");
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_is_not_touched_is_written_back_byte_for_byte() {
        for file in [
            FILE.as_bytes(),
            b"",
            b"\n",
            b"a",
            b"[a]\r\nb=1\r\n;-- x\n[c]\n--;\n",
            b"\xef\xbb\xbf[a]\nb=\xff",
            b"x=1\n#include \"y\"\n\n\n",
        ] {
            assert_eq!(Document::parse(file).to_bytes(), file, "{:?}", String::from_utf8_lossy(file));
        }
    }

    #[test]
    fn each_change_touches_its_lines_and_no_other() {
        let all = Choice::default;
        let one = |value: &str| value == "two";
        let second = || Choice { with: vec![("name", &one)], ..Choice::default() };
        for (what, edit, from, to) in [
            (
                "update keeps the comment",
                &(|d: &mut Document| d.update("100", &all(), "secret", "c;d", Some("a")))
                    as &dyn Fn(&mut Document) -> Result<(), EditError>,
                "secret = a ; first",
                "secret = c\\;d ; first",
            ),
            (
                "update of the last of a name",
                &|d| d.update("100", &all(), "secret", "c", None),
                "secret = b",
                "secret = c",
            ),
            (
                "update of the one that matches",
                &|d| d.update("100", &all(), "SECRET", "c", Some("b")),
                "secret = b",
                "secret = c",
            ),
            (
                "an object stays one",
                &|d| d.update("100", &all(), "allow", "alaw", None),
                "allow => ulaw",
                "allow => alaw",
            ),
            ("delete", &|d| d.delete("100", &all(), "secret", Some("b"), None), "secret = b\n", ""),
            (
                "delete by number",
                &|d| d.delete("100", &all(), "secret", None, Some(0)),
                "secret = a ; first\n",
                "",
            ),
            (
                "append",
                &|d| d.add("100", &all(), ("callerid", "A <1>", false), None),
                "allow => ulaw\n",
                "allow => ulaw\ncallerid = A <1>\n",
            ),
            (
                "insert",
                &|d| d.add("100", &all(), ("type", "peer", true), Some(0)),
                "secret = a",
                "type => peer\nsecret = a",
            ),
            ("delete whatever has the number", &|d| d.delete_line("100", &all(), 2), "allow => ulaw\n", ""),
            ("rename", &|d| d.rename_section("100", "101", &all()), "[100](general)", "[101](general)"),
            (
                "a section is taken away with its lines",
                &|d| d.delete_section("100", &all()),
                "[100](general)\nsecret = a ; first\nsecret = b\nallow => ulaw\n\n",
                "",
            ),
            (
                "an emptied one keeps its header",
                &|d| d.empty_section("100", &all()),
                "secret = a ; first\nsecret = b\nallow => ulaw\n",
                "",
            ),
            (
                "the chosen one of two",
                &|d| d.update("200", &second(), "name", "three", None),
                "name = two",
                "name = three",
            ),
            (
                "the other stays when one is taken away",
                &|d| d.delete_section("200", &second()),
                "[200]\nname = two\n",
                "",
            ),
            (
                "a new section",
                &|d| d.add_section(&NewSection { name: "300", parents: &["general"], ..Default::default() }),
                "name = two\n",
                "name = two\n\n[300](general)\n",
            ),
            (
                "a new section before another and its comment",
                &|d| {
                    d.add_section(&NewSection {
                        name: "t",
                        template: true,
                        before: Some("100"),
                        ..Default::default()
                    })
                },
                "; Alice\n",
                "[t](!)\n\n; Alice\n",
            ),
        ] {
            assert_eq!(edited(edit), Ok(FILE.replacen(from, to, 1)), "{what}");
        }
    }

    #[test]
    fn what_cannot_be_done_or_could_not_be_read_back_is_refused() {
        let all = Choice::default;
        let new = |name| NewSection { name, ..NewSection::default() };
        for (what, error, edit) in [
            (
                "no section",
                EditError::NoSection,
                &(|d: &mut Document| d.update("x", &all(), "a", "b", None))
                    as &dyn Fn(&mut Document) -> Result<(), EditError>,
            ),
            ("a template is not meant", EditError::NoSection, &|d| d.delete_section("general", &all())),
            ("no variable", EditError::NoVariable, &|d| d.update("100", &all(), "x", "b", None)),
            ("no such value", EditError::NoVariable, &|d| d.delete("100", &all(), "secret", Some("x"), None)),
            ("exists", EditError::Exists, &|d| d.add_section(&new("100"))),
            ("no template", EditError::NoTemplate, &|d| {
                d.add_section(&NewSection { parents: &["nobody"], ..new("300") })
            }),
            ("a line end in a value", EditError::Unwritable, &|d| {
                d.update("100", &all(), "secret", "a\n[system]", None)
            }),
            ("a line end in a name", EditError::Unwritable, &|d| {
                d.add("100", &all(), ("a\nb", "c", false), None)
            }),
            ("a header as a name", EditError::Unwritable, &|d| {
                d.add("100", &all(), ("[x]", "c", false), None)
            }),
            ("a directive as a name", EditError::Unwritable, &|d| {
                d.add("100", &all(), ("#exec x", "c", false), None)
            }),
            ("a bracket in a section", EditError::Unwritable, &|d| d.add_section(&new("a]\nb"))),
            ("a comment in a section", EditError::Unwritable, &|d| d.rename_section("100", "a;b", &all())),
        ] {
            assert_eq!(edited(edit), Err(error), "{what}");
        }
        let mut tangled = Document::parse(b"[a]\nb = 1 ;-- why\nnot --;\nc = 2\n");
        assert_eq!(tangled.update("a", &all(), "b", "3", None), Err(EditError::Entangled));
        assert_eq!(tangled.update("a", &all(), "c", "3", None), Ok(()));
    }
}
