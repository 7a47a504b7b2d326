//! extensions.conf to a [`Program`] (§4). Whatever is wrong becomes a finding; nothing is skipped in silence.

pub mod change;

use std::collections::HashMap;
use std::sync::Arc;

use conf::{File, Findings, Place, Section, Variable};

use self::change::Addition;
use crate::args::{Priority, split_app, split_raw};
use crate::env::{Calendar, Env, Fault, Level, Wall};
use crate::pattern::Pattern;
use crate::program::{CallerMatch, Context, ContextId, Extension, Hint, Include, LabelId, Program, Switch};
use crate::registry::{Apps, ChannelFunction, Functions};
use crate::step::{Kind, Source, Step};
use crate::template::{Compiler, Names, expand_text};
use crate::timing::Timing;
use crate::vars::{Builtin, Inherit, Symbols, Var, VarName, Vars};
use crate::zone::Offset;

/// Steps one program may have: ten times the largest generated dialplan of the field corpus.
pub const STEPS_MAX: usize = 1_000_000;
/// Highest priority.
pub const PRIORITY_MAX: u32 = 1_000_000;

/// What a program is compiled against.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Applications of this build.
    pub apps: Arc<Apps>,
    /// Functions of this build.
    pub functions: Arc<Functions>,
}

/// Loads a dialplan. `before` is the program it follows: variable ids stay the same. `registered` are contexts that have
/// [registered extensions](crate::registered), made when they are not written.
pub fn load(
    file: &File,
    tables: &Tables,
    registered: &[&str],
    before: Option<&Program>,
    findings: &mut Findings,
) -> Program {
    load_with(file, tables, registered, (&[], ""), before, findings)
}

/// The same with steps that the dialplan does not write itself, and the name of the file from which they come. Where both
/// have a step, that of the dialplan holds.
pub fn load_with(
    file: &File,
    tables: &Tables,
    registered: &[&str],
    (own, own_file): (&[Addition<'_>], &str),
    before: Option<&Program>,
    findings: &mut Findings,
) -> Program {
    let symbols = before.map(|program| program.symbols.clone()).unwrap_or_default();
    let empty = Program::empty(Arc::clone(&tables.apps), Arc::clone(&tables.functions));
    let mut loader = Loader {
        program: empty,
        symbols,
        tables,
        findings,
        globals: LoadEnv::new(Arc::new(Program::empty(
            Arc::clone(&tables.apps),
            Arc::clone(&tables.functions),
        ))),
        drafts: Vec::new(),
        steps: 0,
    };
    for section in file.objects() {
        match section.name.to_ascii_lowercase().as_str() {
            "general" => loader.general(section),
            "globals" => loader.add_globals(section),
            _ => {}
        }
    }
    for section in file.objects() {
        if !["general", "globals"].iter().any(|name| section.name.eq_ignore_ascii_case(name)) {
            loader.section(section);
        }
    }
    let place = Place::new(own_file, 0);
    own.iter().for_each(|step| loader.section(&step.section(&place)));
    registered.iter().for_each(|context| loader.registered(context));
    loader.finish()
}

/// Name and caller part of an extension as written.
type ExtensionKey = (Box<str>, Option<Box<str>>);

/// An extension while its context is still read.
struct Draft {
    extension: Extension,
    caller_text: Option<Box<str>>,
}

struct Loader<'a> {
    program: Program,
    symbols: Symbols,
    tables: &'a Tables,
    findings: &'a mut Findings,
    globals: LoadEnv,
    /// Extensions by context, in file order, with an index by name and caller.
    drafts: Vec<(Vec<Draft>, HashMap<ExtensionKey, usize>)>,
    steps: usize,
}

/// Where a section's lines stand.
#[derive(Default)]
struct Cursor {
    /// Name and caller part of the last `exten`.
    last: Option<ExtensionKey>,
    /// Last priority; carries over between extensions of a section.
    priority: Option<u32>,
}

impl<'a> Loader<'a> {
    /// A loader that goes on with a program.
    fn resume(program: &Program, tables: &'a Tables, findings: &'a mut Findings) -> Self {
        let mut program = program.clone();
        let mut drafts = Vec::new();
        let mut steps = 0;
        for context in &mut program.contexts {
            let (mut list, mut by_key) = (Vec::new(), HashMap::new());
            for extension in std::mem::take(&mut context.extensions) {
                let caller_text: Option<Box<str>> = match &extension.caller {
                    CallerMatch::Any => None,
                    CallerMatch::Absent => Some("".into()),
                    CallerMatch::Number { text, .. } => Some(text.clone()),
                };
                steps += extension.steps.len();
                by_key.insert((extension.name.clone(), caller_text.clone()), list.len());
                list.push(Draft { extension, caller_text });
            }
            drafts.push((list, by_key));
        }
        let symbols = program.symbols.clone();
        let empty = Program::empty(Arc::clone(&tables.apps), Arc::clone(&tables.functions));
        Self { program, symbols, tables, findings, globals: LoadEnv::new(Arc::new(empty)), drafts, steps }
    }
}

impl Loader<'_> {
    fn general(&mut self, section: &Section) {
        let general = &mut self.program.general;
        for variable in &section.variables {
            let yes = conf::boolean(&variable.value);
            match variable.name.to_ascii_lowercase().as_str() {
                "autofallthrough" => general.autofallthrough = yes.unwrap_or(general.autofallthrough),
                "clearglobalvars" => general.clearglobalvars = yes.unwrap_or(general.clearglobalvars),
                "static" => general.static_config = yes.unwrap_or(general.static_config),
                "writeprotect" => general.writeprotect = yes.unwrap_or(general.writeprotect),
                "extenpatternmatchnew" => {}
                "priorityjumping" => self.findings.note(
                    &variable.place,
                    "priorityjumping has no effect",
                    "applications say in variables such as DIALSTATUS how they ended",
                ),
                "userscontext" | "overrideswitch" => self.findings.warning(
                    &variable.place,
                    format!("{} is not supported", variable.name),
                    "name the context or the switch in the dialplan itself",
                ),
                _ => self.findings.warning(
                    &variable.place,
                    format!("[general] has no option {}", variable.name),
                    "remove the line or correct its name",
                ),
            }
        }
    }
    fn add_globals(&mut self, section: &Section) {
        for variable in &section.variables {
            let mut value = String::new();
            self.substitute(&variable.value, &variable.place, &mut value);
            let name = self.symbols.intern(&variable.name);
            self.globals.vars.set(name.as_var(), &value, Inherit::Never);
            match self.program.globals.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.program.globals.push((name, value)),
            }
        }
    }
    /// Substitutes globals in a configuration line.
    fn substitute(&mut self, text: &str, place: &Place, out: &mut String) {
        expand_text(&mut self.globals, text, out);
        for message in std::mem::take(&mut self.globals.messages) {
            self.findings.warning(
                place,
                message,
                "what stands here is substituted while loading, without a call",
            );
        }
    }
    fn substituted(&mut self, variable: &Variable) -> String {
        let mut value = String::new();
        self.substitute(&variable.value, &variable.place, &mut value);
        value
    }
    fn context(&mut self, section: &Section) -> usize {
        let name: Box<str> = (*section.name).into();
        if let Some(ContextId(id)) = self.program.by_name.get(&name) {
            return usize::try_from(*id).unwrap_or(0);
        }
        let index = self.program.contexts.len();
        self.program.by_name.insert(name.clone(), ContextId(u32::try_from(index).unwrap_or(u32::MAX)));
        self.program.contexts.push(Context {
            name,
            extensions: Vec::new(),
            includes: Vec::new(),
            ignorepats: Vec::new(),
            switches: Vec::new(),
            autohints: false,
            place: section.place.clone(),
            registered: None,
            ignore_patterns: Vec::new(),
            literals: HashMap::new(),
            patterns: Vec::new(),
            by_digit: Default::default(),
        });
        self.drafts.push((Vec::new(), HashMap::new()));
        index
    }
    /// A context gets what stands for all its registered extensions.
    fn registered(&mut self, context: &str) {
        let place = Place::new("regcontext", 0);
        let parents = Vec::new();
        let section = Section {
            name: context.into(),
            template: false,
            place: place.clone(),
            parents,
            variables: Vec::new(),
        };
        let index = self.context(&section);
        let app = self.tables.apps.lookup("NoOp");
        let kind = app.map_or(Kind::Plain, |id| self.program.kind(id));
        let source = Source { priority: 1, label: None, app, name: "NoOp", args: "${EXTEN}", place: &place };
        let mut compiler = Compiler::new(Names::Mint(&mut self.symbols), &self.tables.functions);
        let step = Step::compile(source, kind, &self.tables.apps, &mut compiler);
        let Ok(pattern) = Pattern::parse("") else { return };
        let extension = Extension {
            name: "".into(),
            pattern,
            caller: CallerMatch::Any,
            steps: vec![step],
            hint: None,
            labels: Vec::new(),
        };
        if let Some(context) = self.program.contexts.get_mut(index) {
            context.registered = Some(Box::new(extension));
        }
    }
    fn section(&mut self, section: &Section) {
        let index = self.context(section);
        let mut cursor = Cursor::default();
        for variable in &section.variables {
            match variable.name.to_ascii_lowercase().as_str() {
                "exten" => self.exten(index, variable, &mut cursor, false),
                "same" => self.exten(index, variable, &mut cursor, true),
                "include" => self.include(index, variable),
                "ignorepat" => self.ignorepat(index, variable),
                "switch" | "lswitch" => self.switch(index, variable, false),
                "eswitch" => self.switch(index, variable, true),
                "autohints" => {
                    let yes = conf::boolean(&variable.value).unwrap_or(false);
                    if let Some(context) = self.program.contexts.get_mut(index) {
                        context.autohints = yes;
                    }
                }
                _ => self.findings.error(
                    &variable.place,
                    format!("[{}] has no option {}", section.name, variable.name),
                    "a context holds exten, same, include, ignorepat, switch, lswitch, eswitch and autohints",
                ),
            }
        }
    }
    fn include(&mut self, index: usize, variable: &Variable) {
        let text = self.substituted(variable);
        let (name, times) = text.split_once(',').map_or((&*text, None), |(name, times)| (name, Some(times)));
        let timing = match times.map(Timing::parse).transpose() {
            Ok(timing) => timing,
            Err(why) => {
                let remedy = "write include => context,times,weekdays,monthdays,months[,zone]";
                self.findings.error(&variable.place, format!("include => {text}: {why}"), remedy);
                return;
            }
        };
        let include = Include {
            name: name.trim().into(),
            context: None,
            timing,
            text: text.as_str().into(),
            place: variable.place.clone(),
        };
        let Some(context) = self.program.contexts.get_mut(index) else { return };
        if context.includes.iter().any(|known| known.text == include.text) {
            let message = format!("include => {text} stands here twice");
            self.findings.warning(&variable.place, message, "remove one of them");
            return;
        }
        context.includes.push(include);
    }
    fn ignorepat(&mut self, index: usize, variable: &Variable) {
        let text = self.substituted(variable);
        match Pattern::parse(&text) {
            Ok(pattern) => {
                if let Some(context) = self.program.contexts.get_mut(index) {
                    context.ignorepats.push(text.into());
                    context.ignore_patterns.push(pattern);
                }
            }
            Err(why) => {
                let message = format!("ignorepat => {text}: {why}");
                self.findings.error(&variable.place, message, "correct the pattern");
            }
        }
    }
    fn switch(&mut self, index: usize, variable: &Variable, late: bool) {
        let text = if late { variable.value.to_string() } else { self.substituted(variable) };
        let (engine, data) = text.split_once('/').unwrap_or((&text, ""));
        if !["IAX2", crate::rowed::ENGINE].iter().any(|known| engine.eq_ignore_ascii_case(known)) {
            self.findings.warning(
                &variable.place,
                format!("switch {engine} is accepted, but no engine answers it yet"),
                "extensions that only the switch knows are not found; write them as exten lines for the time being",
            );
        }
        let switch = Switch { engine: engine.into(), data: data.into(), late, place: variable.place.clone() };
        if let Some(context) = self.program.contexts.get_mut(index) {
            context.switches.push(switch);
        }
    }
    fn exten(&mut self, index: usize, variable: &Variable, cursor: &mut Cursor, same: bool) {
        let place = &variable.place;
        let Some(line) = self.split_line(variable, same) else { return };
        if let Some(name) = line.name {
            let mut full = String::new();
            self.substitute(name, place, &mut full);
            let (name, caller) = match full.split_once('/') {
                Some((name, caller)) => (name.trim(), Some(caller.trim())),
                None => (full.trim(), None),
            };
            cursor.last = Some((name.into(), caller.map(Into::into)));
        }
        let Some(key) = cursor.last.clone() else {
            let remedy = "begin with exten => NAME,1,…";
            self.findings.error(place, "same => before any exten => in this context", remedy);
            return;
        };
        let Some(at) = self.draft(index, &key, place) else { return };
        let (text, label, offset) = priority_parts(line.priority);
        if text.eq_ignore_ascii_case("hint") {
            self.hint(index, at, line.app, place);
            return;
        }
        let Some(priority) = self.priority(index, at, text, offset, cursor, place) else { return };
        cursor.priority = Some(priority);
        self.add_step(index, at, priority, label, line.app, place);
    }
    /// Cuts a line at its commas; those in `${…}` and `[…]` of the name do not count.
    fn split_line<'v>(&mut self, variable: &'v Variable, same: bool) -> Option<Line<'v>> {
        let text: &str = &variable.value;
        let (name, rest) = if same {
            (None, text)
        } else {
            match cut_name(text) {
                Some((name, rest)) => (Some(name.trim()), rest),
                None => (Some(text.trim()), ""),
            }
        };
        let (priority, app) = match cut_name(rest) {
            Some((priority, app)) => (priority.trim(), app.trim()),
            None => (rest.trim(), ""),
        };
        let what = if name == Some("") {
            "the extension's name is missing"
        } else if priority.is_empty() {
            "the priority is missing"
        } else if app.is_empty() {
            "the application is missing"
        } else {
            return Some(Line { name, priority, app });
        };
        let message = format!("{} => {text}: {what}", variable.name);
        let remedy = "write exten => NAME,PRIORITY,Application(arguments)";
        self.findings.error(&variable.place, message, remedy);
        None
    }
    /// The draft of an extension, made when it is new.
    fn draft(&mut self, index: usize, key: &ExtensionKey, place: &Place) -> Option<usize> {
        let (list, by_key) = self.drafts.get_mut(index)?;
        if let Some(&at) = by_key.get(key) {
            return Some(at);
        }
        let (name, caller) = key;
        let parsed = Pattern::parse(name).and_then(|pattern| {
            let caller = match caller.as_deref() {
                None => CallerMatch::Any,
                Some("") => CallerMatch::Absent,
                Some(text) => CallerMatch::Number { text: text.into(), pattern: Pattern::parse(text)? },
            };
            Ok((pattern, caller))
        });
        let (pattern, caller_match) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                let message = format!("extension {name}: {why}");
                self.findings.error(place, message, "correct the pattern; the extension is left out");
                return None;
            }
        };
        if pattern.takes_everything() {
            self.findings.warning(
                place,
                format!("{name} also takes the special extensions h, i, t and so on"),
                "use _X. or write those extensions out",
            );
        }
        let extension = Extension {
            name: name.clone(),
            pattern,
            caller: caller_match,
            steps: Vec::new(),
            hint: None,
            labels: Vec::new(),
        };
        list.push(Draft { extension, caller_text: caller.clone() });
        by_key.insert(key.clone(), list.len() - 1);
        Some(list.len() - 1)
    }
    fn hint(&mut self, index: usize, at: usize, app: &str, place: &Place) {
        let (devices, presence) = app.split_once(',').unwrap_or((app, ""));
        let hint =
            Hint { devices: devices.trim().into(), presence: presence.trim().into(), place: place.clone() };
        let Some(draft) = self.drafts.get_mut(index).and_then(|(list, _)| list.get_mut(at)) else { return };
        if draft.extension.hint.is_some() {
            let message = format!("extension {} has a hint already", draft.extension.name);
            self.findings.warning(place, message, "the first one stays; remove this one");
            return;
        }
        draft.extension.hint = Some(hint);
    }
    fn priority(
        &mut self,
        index: usize,
        at: usize,
        text: &str,
        offset: u32,
        cursor: &Cursor,
        place: &Place,
    ) -> Option<u32> {
        let extension = &self.drafts.get(index)?.0.get(at)?.extension;
        let base = match text {
            "n" | "N" | "next" => cursor.priority.map(|last| last.saturating_add(1)),
            "s" | "S" | "same" => cursor.priority,
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            label => {
                extension.steps.iter().find(|step| step.label.as_deref() == Some(label)).map(|s| s.priority)
            }
        };
        let priority = base.and_then(|base: u32| base.checked_add(offset));
        match priority.filter(|priority| (1..=PRIORITY_MAX).contains(priority)) {
            Some(priority) => Some(priority),
            None => {
                let message = if matches!(text, "n" | "N" | "next" | "s" | "S" | "same") {
                    format!("priority {text} before any numbered priority in this context")
                } else {
                    format!(
                        "`{text}` is neither a priority from 1 nor a label of extension {}",
                        extension.name
                    )
                };
                self.findings.error(place, message, "begin with priority 1; the line is left out");
                None
            }
        }
    }
    fn add_step(
        &mut self,
        index: usize,
        at: usize,
        priority: u32,
        label: Option<&str>,
        app: &str,
        place: &Place,
    ) {
        if self.steps >= STEPS_MAX {
            let message = format!("more than {STEPS_MAX} steps");
            self.findings.error(place, message, "the line is left out");
            return;
        }
        let (name, args, closed) = split_app(app);
        if !closed {
            let message = format!("{app}: the closing parenthesis is missing");
            self.findings.warning(place, message, "add `)` at the end of the line");
        }
        let id = self.tables.apps.lookup(name);
        if id.is_none() {
            self.findings.error(
                place,
                format!("application {name}() does not exist"),
                "a call that gets here is hung up; `core show applications` lists what this build has",
            );
        }
        let Some(draft) = self.drafts.get_mut(index).and_then(|(list, _)| list.get_mut(at)) else { return };
        let extension = &mut draft.extension;
        let label = label.filter(|label| {
            let taken = extension.steps.iter().find(|step| step.label.as_deref() == Some(*label));
            if let Some(taken) = taken {
                self.findings.warning(
                    place,
                    format!("label {label} is at priority {} of {} already", taken.priority, extension.name),
                    "labels are unique in an extension; rename this one, which is left out",
                );
            }
            taken.is_none()
        });
        let slot = match extension.steps.binary_search_by_key(&priority, |step| step.priority) {
            Err(slot) => slot,
            Ok(taken) => {
                let first = extension.steps.get(taken).map(|step| step.place.to_string()).unwrap_or_default();
                self.findings.warning(
                    place,
                    format!("extension {} has priority {priority} already, from {first}", extension.name),
                    "the first one stays and this line is left out; use n for the next priority",
                );
                return;
            }
        };
        let kind = id.map_or(Kind::Plain, |id| self.program.kind(id));
        let source = Source { priority, label, app: id, name, args, place };
        let mut compiler = Compiler::new(Names::Mint(&mut self.symbols), &self.tables.functions);
        let step = Step::compile(source, kind, &self.tables.apps, &mut compiler);
        for problem in compiler.problems {
            let level = if problem.error { conf::Level::Error } else { conf::Level::Warning };
            self.findings.add(level, place, problem.message, problem.remedy);
        }
        nested_apps(&step, &self.tables.apps, self.findings);
        extension.steps.insert(slot, step);
        self.steps += 1;
    }
    fn finish(mut self) -> Program {
        for (index, (list, _)) in std::mem::take(&mut self.drafts).into_iter().enumerate() {
            let mut list: Vec<Draft> = list;
            list.sort_by(|a, b| {
                // For one name, callers with a match come before everybody.
                let any = |draft: &Draft| draft.extension.caller == CallerMatch::Any;
                a.extension
                    .pattern
                    .cmp(&b.extension.pattern)
                    .then_with(|| any(a).cmp(&any(b)))
                    .then_with(|| caller_order(&a.extension.caller, &b.extension.caller))
                    .then_with(|| a.caller_text.cmp(&b.caller_text))
            });
            let mut extensions: Vec<Extension> = list.into_iter().map(|draft| draft.extension).collect();
            for extension in &mut extensions {
                extension.labels = self.labels(extension);
            }
            if let Some(context) = self.program.contexts.get_mut(index) {
                context.index(extensions);
            }
        }
        self.link_labels();
        self.resolve_includes();
        self.check_destinations();
        self.program.symbols = self.symbols;
        self.program
    }
    fn labels(&mut self, extension: &Extension) -> Vec<(LabelId, u32)> {
        let mut labels = Vec::new();
        for step in &extension.steps {
            let Some(label) = &step.label else { continue };
            let next = LabelId(u32::try_from(self.program.labels.len()).unwrap_or(u32::MAX));
            let id = *self.program.labels.entry(label.clone()).or_insert(next);
            labels.push((id, step.priority));
        }
        labels
    }
    /// Gives the labels in fixed destinations their ids, so that no step looks them up by name.
    fn link_labels(&mut self) {
        let labels = &self.program.labels;
        for context in &mut self.program.contexts {
            for step in context.extensions.iter_mut().flat_map(|extension| &mut extension.steps) {
                for destination in step.destinations_mut() {
                    if let Priority::Label(label) = &mut destination.place {
                        label.id = labels.get(&**label).copied();
                    }
                }
            }
        }
    }
    fn resolve_includes(&mut self) {
        for context in &mut self.program.contexts {
            for include in &mut context.includes {
                include.context = self.program.by_name.get(&include.name).copied();
                if include.context.is_none() {
                    self.findings.warning(
                        &include.place,
                        format!("[{}] includes [{}], which does not exist", context.name, include.name),
                        "add the context or remove the line",
                    );
                }
            }
        }
    }
    /// Names fixed targets that cannot exist: an unknown context, or a label that no extension has.
    fn check_destinations(&mut self) {
        for context in &self.program.contexts {
            for step in context.extensions.iter().flat_map(|extension| &extension.steps) {
                for destination in step.destinations() {
                    let missing = match (&destination.context, &destination.place) {
                        (Some(name), _) if !self.program.by_name.contains_key(name) => {
                            format!("{}: context [{name}] does not exist", step.name)
                        }
                        (_, Priority::Label(label)) if !self.program.labels.contains_key(&**label) => {
                            format!("{}: no extension has a label {label}", step.name)
                        }
                        _ => continue,
                    };
                    let remedy = "a call that goes there ends as invalid; correct the target";
                    self.findings.warning(&step.place, missing, remedy);
                }
            }
        }
    }
}

/// Names applications inside ExecIf and its kin that do not exist.
fn nested_apps(step: &Step, apps: &Apps, findings: &mut Findings) {
    let inner: Vec<&str> = match step.kind() {
        Kind::ExecIf => match split_raw(&step.args, '?').get(1) {
            Some(rest) => split_raw(rest, ':'),
            None => return,
        },
        Kind::ExecIfTime => step.args.split_once('?').map(|(_, app)| app).into_iter().collect(),
        Kind::Exec => vec![&step.args],
        _ => return,
    };
    for app in inner {
        let (name, _, _) = split_app(app);
        if !name.is_empty() && !name.contains('$') && apps.lookup(name).is_none() {
            findings.error(
                &step.place,
                format!("application {name}() in {} does not exist", step.name),
                "a call that gets here is hung up; `core show applications` lists what this build has",
            );
        }
    }
}

/// Order of caller matches of one extension: numbers by their patterns, then the absent number.
fn caller_order(a: &CallerMatch, b: &CallerMatch) -> std::cmp::Ordering {
    match (a, b) {
        (CallerMatch::Number { pattern: a, .. }, CallerMatch::Number { pattern: b, .. }) => a.cmp(b),
        (CallerMatch::Number { .. }, _) => std::cmp::Ordering::Less,
        (_, CallerMatch::Number { .. }) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    }
}

impl Context {
    /// Takes the sorted extensions and indexes them.
    pub(crate) fn index(&mut self, extensions: Vec<Extension>) {
        self.literals.clear();
        self.patterns.clear();
        self.by_digit = Default::default();
        for (at, extension) in (0u32..).zip(&extensions) {
            if extension.pattern.is_literal() {
                let key = Pattern::key(&extension.name).into_boxed_str();
                self.literals.entry(key).or_default().push(at);
            } else {
                self.patterns.push(at);
                for (digit, list) in (b'0'..=b'9').zip(&mut self.by_digit) {
                    if extension.pattern.may_begin(digit) {
                        list.push(at);
                    }
                }
            }
        }
        self.extensions = extensions;
    }
}

struct Line<'v> {
    name: Option<&'v str>,
    priority: &'v str,
    app: &'v str,
}

/// Cuts at the first comma that is not inside `{}`, `[]` or `()`.
fn cut_name(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return text.get(..at).zip(text.get(at + 1..)),
            _ => {}
        }
    }
    // An unbalanced bracket hides the comma: take the first one there is.
    text.split_once(',')
}

/// Splits `PRIO(label)+off` and `PRIO+off(label)`.
fn priority_parts(text: &str) -> (&str, Option<&str>, u32) {
    let end = text.find(['(', '+']).unwrap_or(text.len());
    let (base, mut rest) = text.split_at(end);
    let (mut label, mut offset) = (None, 0);
    while let Some(first) = rest.chars().next() {
        if first == '(' {
            let inner = rest.get(1..).unwrap_or("");
            let (name, after) = inner.split_once(')').unwrap_or((inner, ""));
            label = Some(name.trim()).filter(|name| !name.is_empty());
            rest = after;
        } else if first == '+' {
            let digits = rest.get(1..).unwrap_or("");
            let (number, after) = crate::template::leading_integer(digits);
            offset = number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
            rest = after.trim_start_matches('+');
        } else {
            rest = rest.get(first.len_utf8()..).unwrap_or("");
        }
    }
    (base.trim(), label, offset)
}

/// The world while loading: globals, and nothing else.
struct LoadEnv {
    program: Arc<Program>,
    vars: Vars,
    depth: u32,
    messages: Vec<String>,
}

impl LoadEnv {
    fn new(program: Arc<Program>) -> Self {
        Self { program, vars: Vars::new(), depth: 0, messages: Vec::new() }
    }
}

impl Calendar for LoadEnv {
    fn wall(&self) -> Wall {
        Wall::default()
    }
    fn offset(&self, _: i64, _: &str) -> Offset {
        Offset::default()
    }
}

impl Env for LoadEnv {
    fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, _: Builtin, _: &mut String) -> bool {
        false
    }
    fn variable(&self, _: Var<'_>, _: &mut String) -> bool {
        false
    }
    fn set_variable(&mut self, var: Var<'_>, _: &str, _: Inherit) {
        self.messages.push(format!("variable {} cannot be set while loading", var.name));
    }
    fn set_local(&mut self, var: Var<'_>, value: &str) {
        self.set_variable(var, value, Inherit::Never);
    }
    fn remove_variable(&mut self, _: Var<'_>) {}
    fn variable_names(&self, _: &mut dyn FnMut(&str)) {}
    fn global(&self, var: Var<'_>, out: &mut String) -> bool {
        self.vars.get_name(var.name).map(|value| out.push_str(value)).is_some()
    }
    fn set_global(&mut self, var: Var<'_>, value: &str) {
        self.set_variable(var, value, Inherit::Never);
    }
    fn remove_global(&mut self, _: Var<'_>) {}
    fn random(&mut self) -> u64 {
        0
    }
    fn log(&mut self, level: Level, text: &str) {
        if level >= Level::Warning {
            self.messages.push(text.to_owned());
        }
    }
    fn db_get(&self, _: &str, _: &str, _: &mut String) -> bool {
        false
    }
    fn db_put(&mut self, _: &str, _: &str, _: &str) -> bool {
        false
    }
    fn db_delete(&mut self, _: &str, _: &str) -> bool {
        false
    }
    fn db_keys(&self, _: &str, _: &mut dyn FnMut(&str)) {}
    fn channel_read(&mut self, _: ChannelFunction, _: &str, _: &mut String) -> Result<(), Fault> {
        Err(Fault::new("needs a call"))
    }
    fn channel_write(&mut self, _: ChannelFunction, _: &str, _: &str) -> Result<(), Fault> {
        Err(Fault::new("needs a call"))
    }
}

/// A global's name for callers that set one by hand.
pub fn global_name(program: &Program, name: &str) -> VarName {
    program.symbols().lookup(name).unwrap_or_else(|| VarName { id: None, name: Arc::from(name) })
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(crate) mod tests;
