//! One step: an application with compiled arguments, and what the run loop gets from it.
//!
//! Asterisk substitutes a step's whole argument text and then lets the application split it. The forms below
//! split first, at load, and mark which characters in substituted text would have moved a split. When one of
//! those turns up, the text is split anew; [`Step::prepare_by_text`] does so always and is the reference.

use std::borrow::Cow;
use std::ops::Range;

use conf::Place;

use crate::args::{Destination, condition, split_app, split_raw};
use crate::env::{Env, Level};
use crate::program::Program;
use crate::registry::{AppId, Apps, FunctionId, Functions};
use crate::template::{
    Compiler, EXPAND_BYTES_MAX, Guard, Piece, Template, expand_text, set_by_name, split_call, write_function,
};
use crate::timing::Timing;
use crate::vars::{Inherit, VarName};

/// What an application does to its argument text, for those that the run loop itself carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Any application: gets its argument text.
    #[default]
    Plain,
    /// An application that may run a program: gets its argument text, and is told which parts of it are values.
    Command,
    /// Set(name=value), Setvar.
    Set,
    /// Goto(place).
    Goto,
    /// GotoIf(condition?place:place).
    GotoIf,
    /// GotoIfTime(fields?place:place).
    GotoIfTime,
    /// Gosub(place(args)).
    Gosub,
    /// GosubIf(condition?place(args):place(args)).
    GosubIf,
    /// ExecIf(condition?App(args):App(args)).
    ExecIf,
    /// ExecIfTime(fields?App(args)).
    ExecIfTime,
    /// Exec(App(args)) and TryExec.
    Exec,
}

impl Kind {
    /// The kind of an application's name.
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "set" | "setvar" => Self::Set,
            "goto" => Self::Goto,
            "gotoif" => Self::GotoIf,
            "gotoiftime" => Self::GotoIfTime,
            "gosub" => Self::Gosub,
            "gosubif" => Self::GosubIf,
            "execif" => Self::ExecIf,
            "execiftime" => Self::ExecIfTime,
            "exec" => Self::Exec,
            "system" | "trysystem" | "mixmonitor" => Self::Command,
            _ => Self::Plain,
        }
    }
}

/// What Set() writes to.
#[derive(Debug, Clone)]
pub enum Target {
    /// A variable known at load.
    Variable {
        /// Which.
        name: VarName,
        /// From its `_` prefix.
        inherit: Inherit,
    },
    /// A function with arguments known at load.
    Function {
        /// Which; `None` when it does not exist.
        id: Option<FunctionId>,
        /// Name as written.
        name: Box<str>,
        /// Its arguments.
        args: Box<str>,
    },
    /// Anything, by the text before `=`.
    Named(Box<str>),
}

impl Target {
    /// Writes the value; false when that failed (and was logged).
    pub fn assign(&self, env: &mut dyn Env, value: &str) -> bool {
        match self {
            Self::Variable { name, inherit } => {
                env.set_variable(name.as_var(), value, *inherit);
                true
            }
            Self::Function { id, name, args } => {
                let program = env.program();
                write_function(env, id.and_then(|id| program.functions().row(id)), name, args, value)
            }
            Self::Named(name) => set_by_name(env, name, value),
        }
    }
    fn compile(text: &str, compiler: &mut Compiler<'_>) -> Self {
        if text.ends_with(')') && text.contains('(') {
            let (name, args) = split_call(text);
            let id = compiler.functions.lookup(name);
            if id.is_none() {
                compiler.problems.push(crate::template::Problem {
                    error: true,
                    message: format!("function {name}() does not exist"),
                    remedy: "see `core show functions` for what this build has; nothing will be set",
                });
            }
            return Self::Function { id, name: name.into(), args: args.into() };
        }
        let (inherit, plain) = Inherit::strip(text);
        Self::Variable { name: compiler.name(plain), inherit }
    }
}

/// Buffers a run loop reuses from step to step.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    text: String,
    ranges: Vec<Range<usize>>,
}

/// A destination and the arguments of a subroutine call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubCall<'s> {
    /// Where to.
    pub destination: Cow<'s, Destination>,
    /// ARG1 and on; quotes and backslashes as written.
    pub args: Vec<&'s str>,
}

/// Substituted text of which it is known what was written in the dialplan and what came in by substitution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The whole text.
    pub text: String,
    /// Where its values stand, in order; two may touch, and one may be empty. `None`: nothing is known, all of it may be values.
    pub values: Option<Vec<Range<usize>>>,
}

/// What a step asks for once its arguments are substituted.
#[derive(Debug, Clone)]
pub enum Ready<'s> {
    /// Write `value` to `target` ([`Target::assign`]) and go on.
    Set {
        /// To what.
        target: Cow<'s, Target>,
        /// Which value.
        value: &'s str,
    },
    /// Go there; `None`: fall through to the next priority.
    Goto(Option<Cow<'s, Destination>>),
    /// Call the subroutine; `None`: fall through.
    Gosub(Option<SubCall<'s>>),
    /// Run the named application; `None`: fall through. One that does not exist has no `app`: log it and hang up.
    Exec(Option<Nested<'s>>),
    /// Run the step's own application with this text.
    Run(&'s str),
    /// The same for an application of [`Kind::Command`].
    Command(Written),
    /// The arguments make no sense; the reason is to be logged. The call goes on.
    Bad(String),
}

/// An application named in the arguments of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested<'s> {
    /// The application, when it exists. [`Program::interpret`] takes it further.
    pub app: Option<AppId>,
    /// Its name as written.
    pub name: &'s str,
    /// Its argument text, substituted.
    pub args: Cow<'s, str>,
    /// Where the values in it stand ([`Written::values`]), when it is of [`Kind::Command`] and that is known.
    pub values: Option<Vec<Range<usize>>>,
}

#[derive(Debug, Clone)]
enum Form {
    /// Split at run time.
    Text,
    Set {
        target: Target,
        value: Template,
        prefix: Box<str>,
    },
    Goto(Destination),
    Branch {
        test: Template,
        rest: Branches,
    },
    Timed {
        timing: Timing,
        rest: Branches,
    },
    Gosub {
        destination: Destination,
        args: Vec<Template>,
    },
    /// ExecIf and GosubIf: all parts are expanded, as their text would be, and one is chosen.
    Choice {
        test: Template,
        yes: Part,
        no: Option<Part>,
    },
}

/// One branch of ExecIf or GosubIf.
#[derive(Debug, Clone)]
struct Part {
    template: Template,
    head: Head,
}

/// What stands before a branch's parenthesis.
#[derive(Debug, Clone)]
enum Head {
    Nothing,
    App { app: Option<AppId>, name: Box<str> },
    Place(Destination),
}

/// `a:b` after the question mark, literal.
#[derive(Debug, Clone)]
struct Branches {
    text: Box<str>,
    yes: Option<Destination>,
    no: Option<Destination>,
}

/// One priority of an extension.
#[derive(Debug, Clone)]
pub struct Step {
    /// 1 and up.
    pub priority: u32,
    /// Label, if it has one.
    pub label: Option<Box<str>>,
    /// Application; `None` when this build has none of that name.
    pub app: Option<AppId>,
    /// Application's name as written.
    pub name: Box<str>,
    /// Argument text as written.
    pub args: Box<str>,
    /// Where it is written.
    pub place: Place,
    kind: Kind,
    template: Template,
    form: Form,
    asks: Option<Asks>,
}

/// What has to be asked of others before a step's arguments are expanded, by the functions that they spell out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asks {
    /// `ENUMLOOKUP()`, `ENUMQUERY()`.
    pub numbers: bool,
    /// `LOCK()`.
    pub locks: bool,
    /// `SRVQUERY()`, `SRVRESULT()`.
    pub services: bool,
    /// `SHELL()`.
    pub shell: bool,
    /// `CURL()`.
    pub web: bool,
    /// `CHANNEL(rtcp,…)`, `CHANNEL(rtpqos,…)`.
    pub quality: bool,
    /// `REALTIME()` and its kin, and functions of `func_odbc.conf`.
    pub rows: bool,
}

impl Asks {
    /// Those of a step's arguments; `None`: there are none.
    pub fn of(args: &str, functions: &Functions) -> Option<Self> {
        if !args.contains("${") {
            return None;
        }
        let calls =
            |names: &[&str]| names.iter().any(|name| crate::functions::calls(args, name).next().is_some());
        let asks = Self {
            locks: calls(&["LOCK"]),
            numbers: calls(&["ENUMLOOKUP", "ENUMQUERY"]),
            services: calls(&["SRVQUERY", "SRVRESULT"]),
            shell: calls(&["SHELL"]),
            web: calls(&["CURL"]),
            quality: ["CHANNEL(rtcp", "CHANNEL(rtpqos"].iter().any(|call| mentions(args, call)),
            rows: crate::functions::calls_of(args, |name| functions.asks_rows(name)).next().is_some(),
        };
        (asks != Self::default()).then_some(asks)
    }
}

/// Everything a step is made of before it is compiled.
pub(crate) struct Source<'a> {
    pub(crate) priority: u32,
    pub(crate) label: Option<&'a str>,
    pub(crate) app: Option<AppId>,
    pub(crate) name: &'a str,
    pub(crate) args: &'a str,
    pub(crate) place: &'a Place,
}

/// Whether the text holds `call`, in any case.
fn mentions(text: &str, call: &str) -> bool {
    text.as_bytes().windows(call.len()).any(|part| part.eq_ignore_ascii_case(call.as_bytes()))
}

impl Step {
    pub(crate) fn compile(source: Source<'_>, kind: Kind, apps: &Apps, compiler: &mut Compiler<'_>) -> Self {
        let template = compiler.compile(source.args);
        let form = Form::compile(kind, &template, apps, compiler);
        Self {
            priority: source.priority,
            label: source.label.map(Into::into),
            app: source.app,
            name: source.name.into(),
            args: source.args.into(),
            place: source.place.clone(),
            kind,
            template,
            form,
            asks: Asks::of(source.args, compiler.functions),
        }
    }
    /// What has to be asked of others before its arguments are expanded; `None`: nothing, as of most.
    pub fn asks(&self) -> Option<Asks> {
        self.asks
    }
    /// What the run loop does to the arguments.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// The argument text as compiled.
    pub fn template(&self) -> &Template {
        &self.template
    }
    /// The destinations that are fixed at load, for `check`.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &Destination> {
        let (a, b) = match &self.form {
            Form::Goto(destination) | Form::Gosub { destination, .. } => (Some(destination), None),
            Form::Branch { rest, .. } | Form::Timed { rest, .. } => (rest.yes.as_ref(), rest.no.as_ref()),
            Form::Choice { yes, no, .. } => (yes.place(), no.as_ref().and_then(Part::place)),
            Form::Text | Form::Set { .. } => (None, None),
        };
        a.into_iter().chain(b)
    }
    pub(crate) fn destinations_mut(&mut self) -> impl Iterator<Item = &mut Destination> {
        let (a, b) = match &mut self.form {
            Form::Goto(destination) | Form::Gosub { destination, .. } => (Some(destination), None),
            Form::Branch { rest, .. } | Form::Timed { rest, .. } => (rest.yes.as_mut(), rest.no.as_mut()),
            Form::Choice { yes, no, .. } => (yes.place_mut(), no.as_mut().and_then(Part::place_mut)),
            Form::Text | Form::Set { .. } => (None, None),
        };
        a.into_iter().chain(b)
    }
    /// Substitutes and splits the arguments.
    pub fn prepare<'s>(&'s self, env: &mut dyn Env, scratch: &'s mut Scratch) -> Ready<'s> {
        scratch.text.clear();
        scratch.ranges.clear();
        match &self.form {
            Form::Text if self.kind == Kind::Command => {
                let (mut text, mut values) = (String::new(), Vec::new());
                self.template.expand_marked(env, &mut text, &mut values);
                Ready::Command(Written { text, values: Some(values) })
            }
            Form::Text => {
                if let Some(text) = self.template.literal() {
                    return self.interpret(env, text);
                }
                self.template.expand(env, &mut scratch.text);
                self.interpret(env, &scratch.text)
            }
            Form::Set { target, value, .. } => {
                if let Some(value) = value.literal() {
                    return Ready::Set { target: Cow::Borrowed(target), value };
                }
                value.expand(env, &mut scratch.text);
                Ready::Set { target: Cow::Borrowed(target), value: &scratch.text }
            }
            Form::Goto(destination) => Ready::Goto(Some(Cow::Borrowed(destination))),
            Form::Branch { test, rest } => {
                if test.expand_guarded(env, &mut scratch.text, QUESTION) {
                    return Ready::Goto(rest.pick(condition(&scratch.text)).map(Cow::Borrowed));
                }
                scratch.text.push('?');
                scratch.text.push_str(&rest.text);
                self.interpret(env, &scratch.text)
            }
            Form::Choice { test, yes, no } => self.choose(env, scratch, (test, yes, no.as_ref())),
            Form::Timed { timing, rest } => Ready::Goto(rest.pick(timing.applies_on(env)).map(Cow::Borrowed)),
            Form::Gosub { destination, args } => {
                let mut clean = true;
                for template in args {
                    let start = scratch.text.len();
                    clean &= template.expand_guarded(env, &mut scratch.text, ARGUMENTS);
                    scratch.ranges.push(start..scratch.text.len());
                    scratch.text.push(',');
                }
                scratch.text.pop();
                if !clean {
                    // Put back what stands before the arguments, as the text would read.
                    let head = self.args.split_once('(').map_or("", |(head, _)| head);
                    scratch.text.insert(0, '(');
                    scratch.text.insert_str(0, head);
                    scratch.text.push(')');
                    return self.interpret(env, &scratch.text);
                }
                let text = &scratch.text;
                let args = scratch.ranges.iter().filter_map(|range| text.get(range.clone())).collect();
                Ready::Gosub(Some(SubCall { destination: Cow::Borrowed(destination), args }))
            }
        }
    }
    /// Expands every part into the scratch text, separators between them, and picks one.
    fn choose<'s>(
        &'s self,
        env: &mut dyn Env,
        scratch: &'s mut Scratch,
        (test, yes, no): (&Template, &'s Part, Option<&'s Part>),
    ) -> Ready<'s> {
        let (text, ranges) = (&mut scratch.text, &mut scratch.ranges);
        let mut expand = |env: &mut dyn Env, part: &Part, text: &mut String| match part.commands() {
            // What a value holds decides nothing here: else it could name the program.
            true => {
                part.template.expand_marked(env, text, ranges);
                true
            }
            false => part.template.expand_guarded(env, text, CHOICE),
        };
        let mut clean = test.expand_guarded(env, text, CHOICE);
        let truth = condition(text);
        text.push('?');
        let from = text.len();
        clean &= expand(env, yes, text);
        let mut chosen = (Some(yes), from..text.len());
        if let Some(no) = no {
            text.push(':');
            let from = text.len();
            clean &= expand(env, no, text);
            if !truth {
                chosen = (Some(no), from..text.len());
            }
        } else if !truth {
            chosen = (None, 0..0);
        }
        let text: &'s str = &scratch.text;
        let commands = chosen.0.is_some_and(Part::commands);
        if (!clean && !commands) || text.len() > EXPAND_BYTES_MAX {
            return self.interpret(env, text);
        }
        let start = chosen.1.start;
        let part = text.get(chosen.1).unwrap_or("");
        let (head, args) = sub_text(part);
        let gosub = self.kind == Kind::GosubIf;
        match chosen.0.map(|part| &part.head) {
            Some(Head::App { app, name }) => {
                let args = args.unwrap_or("");
                let start = start + head.len() + 1;
                let values = commands.then(|| within(&scratch.ranges, start..start + args.len()));
                Ready::Exec(Some(Nested { app: *app, name, args: args.into(), values }))
            }
            Some(Head::Place(destination)) => {
                let args = args.map(|args| split_raw(args, ',')).unwrap_or_default();
                Ready::Gosub(Some(SubCall { destination: Cow::Borrowed(destination), args }))
            }
            Some(Head::Nothing) | None if gosub => Ready::Gosub(None),
            Some(Head::Nothing) | None => Ready::Exec(None),
        }
    }
    /// The same by substituting the whole text first, which `text()` of the scratch then shows.
    pub fn prepare_by_text<'s>(&'s self, env: &mut dyn Env, scratch: &'s mut Scratch) -> Ready<'s> {
        scratch.text.clear();
        scratch.ranges.clear();
        self.template.expand(env, &mut scratch.text);
        self.interpret(env, &scratch.text)
    }
    fn interpret<'s>(&self, env: &mut dyn Env, text: &'s str) -> Ready<'s> {
        if self.kind == Kind::Plain {
            return Ready::Run(text);
        }
        let program = env.program();
        interpret(&program, env, self.kind, text)
    }
    /// Whether it may run a program: then only [`Step::prepare`] knows what was written and what was substituted.
    pub fn commands(&self) -> bool {
        match &self.form {
            Form::Choice { yes, no, .. } => yes.commands() || no.as_ref().is_some_and(Part::commands),
            _ => self.kind == Kind::Command,
        }
    }
    /// The text Set() puts before the value, for showing a step's substituted arguments.
    pub fn set_prefix(&self) -> Option<&str> {
        match &self.form {
            Form::Set { prefix, .. } => Some(prefix),
            _ => None,
        }
    }
}

/// The parts of `ranges` that lie in `part`, counted from its start.
fn within(ranges: &[Range<usize>], part: Range<usize>) -> Vec<Range<usize>> {
    let inside = |range: &&Range<usize>| range.start >= part.start && range.end <= part.end;
    let moved = |range: &Range<usize>| range.start - part.start..range.end - part.start;
    ranges.iter().filter(inside).map(moved).collect()
}

impl Scratch {
    /// The substituted text of the last step.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What ends the condition.
const QUESTION: Guard = Guard::of("?");
/// What an argument list splits on or counts.
const ARGUMENTS: Guard = Guard::of(",()[]\"\\");

/// What the split of ExecIf and GosubIf looks at.
const CHOICE: Guard = Guard::of("?:()[]\"\\");

impl Part {
    /// Whether it runs an application of [`Kind::Command`].
    fn commands(&self) -> bool {
        matches!(&self.head, Head::App { name, .. } if Kind::of(name) == Kind::Command)
    }
    fn place(&self) -> Option<&Destination> {
        match &self.head {
            Head::Place(destination) => Some(destination),
            Head::App { .. } | Head::Nothing => None,
        }
    }
    fn place_mut(&mut self) -> Option<&mut Destination> {
        match &mut self.head {
            Head::Place(destination) => Some(destination),
            Head::App { .. } | Head::Nothing => None,
        }
    }
    /// `None` when only the substituted text tells what is called.
    fn new(kind: Kind, template: Template, apps: &Apps) -> Option<Self> {
        let first = match template.pieces.first() {
            None => "",
            Some(Piece::Text(text)) => text,
            Some(_) => return None,
        };
        let head = match first.split_once('(') {
            Some((head, _)) => head,
            None if template.is_literal() => first,
            None => return None,
        };
        let head = if kind == Kind::GosubIf {
            Destination::parse(head).map_or(Head::Nothing, Head::Place)
        } else if head.trim().is_empty() {
            Head::Nothing
        } else {
            Head::App { app: apps.lookup(head), name: head.trim().into() }
        };
        Some(Self { template, head })
    }
}

/// ExecIf and GosubIf whose separators, names and places stand in the literal text.
fn choice_form(kind: Kind, template: &Template, apps: &Apps) -> Option<Form> {
    let (test, rest) = split_outside(template, '?')?;
    let (yes, no) = match split_outside(&rest, ':') {
        Some((yes, no)) => (yes, Some(no)),
        None => (rest, None),
    };
    let no = match no {
        Some(no) => Some(Part::new(kind, no, apps)?),
        None => None,
    };
    Some(Form::Choice { test, yes: Part::new(kind, yes, apps)?, no })
}

impl Branches {
    fn new(text: &str) -> Self {
        let (yes, no) = branches(text);
        Self { text: text.into(), yes: Destination::parse(yes), no: Destination::parse(no) }
    }
    fn pick(&self, test: bool) -> Option<&Destination> {
        if test { self.yes.as_ref() } else { self.no.as_ref() }
    }
}

/// Splits `a:b`; what follows a second colon belongs to neither.
fn branches(text: &str) -> (&str, &str) {
    text.split_once(':').unwrap_or((text, ""))
}

/// Splits a template at the first literal `separator`, which is dropped; `None` when it has none.
fn split_template(template: &Template, separator: char) -> Option<(Template, Template)> {
    split_at(template, &mut |text| text.find(separator))
}

/// The same, but only outside brackets and quotes of the literal text.
fn split_outside(template: &Template, separator: char) -> Option<(Template, Template)> {
    let mut scan = crate::args::Scan::default();
    split_at(template, &mut |text| {
        text.char_indices().find(|&(_, symbol)| scan.step(symbol) && symbol == separator).map(|(at, _)| at)
    })
}

/// Splits at the one-byte separator that `find` finds in a piece of literal text.
fn split_at(
    template: &Template,
    find: &mut dyn FnMut(&str) -> Option<usize>,
) -> Option<(Template, Template)> {
    for (index, piece) in template.pieces.iter().enumerate() {
        let Piece::Text(text) = piece else { continue };
        let Some(at) = find(text) else { continue };
        let (before, after) = text.get(..at).zip(text.get(at + 1..))?;
        let head = template.pieces.iter().take(index).cloned();
        let head = head.chain(Template::text(before).pieces).collect();
        let tail = Template::text(after).pieces.into_iter();
        let tail = tail.chain(template.pieces.iter().skip(index + 1).cloned()).collect();
        return Some((Template { pieces: head }, Template { pieces: tail }));
    }
    None
}

impl Form {
    fn compile(kind: Kind, template: &Template, apps: &Apps, compiler: &mut Compiler<'_>) -> Self {
        match kind {
            Kind::Set => match split_template(template, '=') {
                Some((name, value)) => match name.literal() {
                    Some(name) => {
                        let prefix = format!("{name}=").into();
                        Self::Set { target: Target::compile(name, compiler), value, prefix }
                    }
                    None => Self::Text,
                },
                None => Self::Text,
            },
            Kind::Goto => template.literal().and_then(Destination::parse).map_or(Self::Text, Self::Goto),
            Kind::GotoIf => match split_template(template, '?') {
                Some((test, rest)) => match rest.literal() {
                    Some(rest) => Self::Branch { test, rest: Branches::new(rest) },
                    None => Self::Text,
                },
                None => Self::Text,
            },
            Kind::GotoIfTime => {
                let Some((times, rest)) = template.literal().and_then(|text| text.split_once('?')) else {
                    return Self::Text;
                };
                match Timing::parse(times) {
                    Ok(timing) => Self::Timed { timing, rest: Branches::new(rest) },
                    Err(why) => {
                        compiler.problems.push(crate::template::Problem {
                            error: true,
                            message: format!("GotoIfTime: {why}"),
                            remedy: "write times,weekdays,monthdays,months[,zone], each `*`, a range or a list with &",
                        });
                        Self::Text
                    }
                }
            }
            Kind::Gosub => gosub_form(template).unwrap_or(Self::Text),
            Kind::ExecIf | Kind::GosubIf => choice_form(kind, template, apps).unwrap_or(Self::Text),
            Kind::ExecIfTime | Kind::Exec | Kind::Plain | Kind::Command => Self::Text,
        }
    }
}

/// Gosub with a literal destination and arguments whose commas are literal.
fn gosub_form(template: &Template) -> Option<Form> {
    if let Some(text) = template.literal() {
        let (head, args) = sub_text(text);
        let args = args.map(|args| split_raw(args, ',')).unwrap_or_default();
        let args = args.into_iter().map(Template::text).collect();
        return Some(Form::Gosub { destination: Destination::parse(head)?, args });
    }
    let (head, rest) = split_template(template, '(')?;
    let destination = Destination::parse(head.literal()?)?;
    let mut scan = crate::args::Scan::default();
    let mut args = vec![Template::default()];
    let last = rest.pieces.len().checked_sub(1)?;
    for (index, piece) in rest.pieces.iter().enumerate() {
        let Piece::Text(text) = piece else {
            args.last_mut()?.pieces.push(piece.clone());
            continue;
        };
        // The list ends at the last parenthesis; anything after it makes this a case for run time.
        let text = if index == last { text.strip_suffix(')')? } else { text };
        let mut start = 0;
        for (at, symbol) in text.char_indices() {
            if scan.step(symbol) && symbol == ',' {
                args.last_mut()?.pieces.extend(Template::text(text.get(start..at)?).pieces);
                args.push(Template::default());
                start = at + 1;
            }
        }
        args.last_mut()?.pieces.extend(Template::text(text.get(start..)?).pieces);
    }
    matches!(rest.pieces.last(), Some(Piece::Text(_))).then_some(Form::Gosub { destination, args })
}

/// Splits `place(args)`.
fn sub_text(text: &str) -> (&str, Option<&str>) {
    match text.split_once('(') {
        None => (text, None),
        Some((head, args)) => (head, Some(args.rsplit_once(')').map_or(args, |(args, _)| args))),
    }
}

fn sub_call(text: &str) -> Option<SubCall<'_>> {
    let (head, args) = sub_text(text);
    let args = args.map(|args| split_raw(args, ',')).unwrap_or_default();
    Some(SubCall { destination: Cow::Owned(Destination::parse(head)?), args })
}

fn nested<'s>(program: &Program, text: &'s str) -> Option<Nested<'s>> {
    let (name, args, _) = split_app(text);
    let app = program.apps().lookup(name);
    (!name.is_empty()).then(|| Nested { app, name, args: args.into(), values: None })
}

/// Splits off at the first `separator` outside brackets and quotes.
fn split_first(text: &str, separator: char) -> (&str, Option<&str>) {
    let first = split_raw(text, separator).first().copied().unwrap_or(text);
    (first, text.get(first.len() + separator.len_utf8()..).filter(|_| first.len() < text.len()))
}

/// Splits substituted text as the applications of `kind` do.
fn interpret<'s>(program: &Program, env: &mut dyn Env, kind: Kind, text: &'s str) -> Ready<'s> {
    match kind {
        Kind::Plain => Ready::Run(text),
        Kind::Command => Ready::Command(Written { text: text.to_owned(), values: None }),
        Kind::Set => match text.split_once('=') {
            Some((name, value)) => Ready::Set { target: Cow::Owned(Target::Named(name.into())), value },
            None => Ready::Bad(format!("Set({text}): there is no `=`")),
        },
        Kind::Goto => match Destination::parse(text) {
            Some(destination) => Ready::Goto(Some(Cow::Owned(destination))),
            None => Ready::Bad(format!("Goto({text}): there is no priority")),
        },
        Kind::GotoIf => {
            let Some((test, rest)) = text.split_once('?') else {
                return Ready::Bad(format!("GotoIf({text}): there is no `?`"));
            };
            let (yes, no) = branches(rest);
            let chosen = if condition(test) { yes } else { no };
            Ready::Goto(Destination::parse(chosen).map(Cow::Owned))
        }
        Kind::GotoIfTime => {
            let (times, rest) = text.split_once('?').unwrap_or((text, ""));
            let (yes, no) = branches(rest);
            let chosen = if timing_applies(env, times) { yes } else { no };
            Ready::Goto(Destination::parse(chosen).map(Cow::Owned))
        }
        Kind::Gosub => match sub_call(text) {
            Some(call) => Ready::Gosub(Some(call)),
            None => Ready::Bad(format!("Gosub({text}): there is no priority")),
        },
        Kind::GosubIf => {
            let (test, Some(rest)) = split_first(text, '?') else {
                return Ready::Bad(format!("GosubIf({text}): there is no `?`"));
            };
            let (yes, no) = split_first(rest, ':');
            Ready::Gosub(sub_call(if condition(test) { yes } else { no.unwrap_or("") }))
        }
        Kind::ExecIf => {
            let (test, Some(rest)) = split_first(text, '?') else {
                return Ready::Bad(format!("ExecIf({text}): there is no `?`"));
            };
            let (yes, no) = split_first(rest, ':');
            Ready::Exec(nested(program, if condition(test) { yes } else { no.unwrap_or("") }))
        }
        Kind::ExecIfTime => {
            let (times, rest) = text.split_once('?').unwrap_or((text, ""));
            Ready::Exec(if timing_applies(env, times) { nested(program, rest) } else { None })
        }
        Kind::Exec => {
            // Exec() substitutes once more than other applications.
            let (name, args, _) = split_app(text);
            let mut again = String::new();
            expand_text(env, args, &mut again);
            Ready::Exec(nested(program, name).map(|nested| Nested { args: again.into(), ..nested }))
        }
    }
}

fn timing_applies(env: &mut dyn Env, times: &str) -> bool {
    match Timing::parse(times) {
        Ok(timing) => timing.applies_on(env),
        Err(why) => {
            env.log(Level::Warning, &format!("time fields `{times}`: {why}"));
            false
        }
    }
}

impl Program {
    /// What an application named in another's arguments asks for, given its substituted argument text.
    pub fn interpret<'s>(&self, env: &mut dyn Env, app: AppId, args: &'s str) -> Ready<'s> {
        interpret(self, env, self.kind(app), args)
    }
}
