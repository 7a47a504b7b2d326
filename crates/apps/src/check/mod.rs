//! What a dialplan asks of applications that will not be done, said at load rather than during a call.
//!
//! Names that do not exist are the loader's business; here are options, modules and functions, and [`uses`]: what steps
//! name, for whoever knows the rest of the configuration.

mod expressions;
mod fixed;
mod letters;
mod names;

use std::collections::BTreeSet;

use dialplan::args::{split_app, split_raw};
use dialplan::{Options, Program, Step};

pub use fixed::{Constants, UNKNOWN};
pub use names::{Named, Use, devices, names, uses};

use crate::dial::{DialOptions, SUPPORTED_OPTIONS, why_without_effect};
use crate::monitor::{Unmet, unmet};
use crate::{AppRow, UNSUPPORTED_OPTIONS, table};

/// Something a step asks for that it will not get.
#[derive(Debug, Clone)]
pub struct Concern<'p> {
    /// The step; its `place` is the file and line.
    pub step: &'p Step,
    /// The call ends at this step; else only a part of it has no effect.
    pub fatal: bool,
    /// One word for the kind: `module`, `option`, `function`.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Looks at every step. `disabled` are the modules that modules.conf switches off, without `.so`.
pub fn check<'p>(program: &'p Program, disabled: &BTreeSet<String>) -> Vec<Concern<'p>> {
    let mut concerns = Vec::new();
    for context in program.contexts() {
        for step in context.extensions.iter().flat_map(|extension| &extension.steps) {
            let mut look = Look { program, step, disabled, concerns: &mut concerns };
            look.application(&step.name, &step.args, true);
            look.expressions();
        }
    }
    concerns
}

/// Looks at one step.
struct Look<'a, 'p> {
    program: &'p Program,
    step: &'p Step,
    disabled: &'a BTreeSet<String>,
    concerns: &'a mut Vec<Concern<'p>>,
}

impl Look<'_, '_> {
    fn add(&mut self, kind: &'static str, fatal: bool, message: String, remedy: impl Into<String>) {
        self.concerns.push(Concern { step: self.step, fatal, kind, message, remedy: remedy.into() });
    }

    /// What callers write and `$[…]` takes without quotation marks: it is read as operators there.
    fn expressions(&mut self) {
        for name in expressions::unquoted(&self.step.args) {
            let message = format!(
                "`${{{name}(…)}}` stands in `$[…]` without quotation marks: what a caller writes is read as operators"
            );
            let remedy = format!(
                "write \"${{{name}(…)}}\", and the other side of the comparison in quotation marks too"
            );
            self.add("expression", false, message, remedy);
        }
    }

    /// Looks at an application, and once at those inside of it.
    fn application(&mut self, name: &str, args: &str, outer: bool) {
        let Some(row) = table::lookup(name) else { return };
        self.module(row);
        self.letters(row, args);
        match row.name {
            "Dial" => self.dial(args),
            "MixMonitor" | "Monitor" | "Record" | "MeetMe" => self.recording(row.name, args),
            "Set" => self.target(args),
            "MSet" => split_raw(args, ',').into_iter().for_each(|part| self.target(part)),
            "ExecIf" if outer => {
                for text in names::branches(args) {
                    let (name, args, _) = split_app(text);
                    self.application(name, args, false);
                }
            }
            "Exec" | "TryExec" if outer => {
                let (name, args, _) = split_app(args);
                self.application(name, args, false);
            }
            _ => {}
        }
    }

    fn module(&mut self, row: &AppRow) {
        if self.disabled.contains(row.module) {
            let (name, module) = (row.name, row.module);
            self.add(
                "module",
                true,
                format!("{name} is of module {module}, which modules.conf switches off: the call ends here"),
                format!("remove `noload => {module}.so` from modules.conf, or this step"),
            );
        }
    }

    /// Letters that come from variables are known only when the call is there.
    fn letters(&mut self, row: &AppRow, args: &str) {
        let Some((name, at, known)) = letters::LETTERS.iter().find(|(name, ..)| *name == row.name) else {
            return;
        };
        let args = split_raw(args, ',');
        let Some(text) = args.get(*at).map(|text| literal(text)) else { return };
        for letter in Options::parse(&text, known).unknown {
            let message = format!("{name} has no option '{letter}': it is ignored");
            self.add("option", false, message, "leave the option out");
        }
    }

    fn dial(&mut self, args: &str) {
        let args = split_raw(args, ',');
        let Some(whole) = args.get(2) else { return };
        let known = [SUPPORTED_OPTIONS, UNSUPPORTED_OPTIONS].concat();
        let given = Options::parse(&literal(whole), &known);
        for letter in UNSUPPORTED_OPTIONS.chars().filter(|letter| given.has(*letter)) {
            let message = format!("Dial option '{letter}' {}", why_without_effect(letter));
            self.add("option", false, message, "leave the option out");
        }
        for letter in given.unknown {
            let message = format!("Dial has no option '{letter}': it is ignored");
            self.add("option", false, message, "leave the option out");
        }
        if !whole.contains('$')
            && let Err(why) = DialOptions::parse(whole)
        {
            self.add("option", true, why, "correct the option: nobody is called by this step");
        }
    }

    fn recording(&mut self, app: &str, args: &str) {
        let parts: Vec<String> = split_raw(args, ',').into_iter().map(literal).collect();
        for Unmet { what, remedy } in unmet(app, &parts) {
            self.add("option", false, format!("{app}: no effect has {what}"), remedy);
        }
    }

    /// `NAME(…)=value`: a function that does not exist, or that cannot be written.
    fn target(&mut self, text: &str) {
        let Some((target, _)) = names::split_assignment(text) else { return };
        let Some((name, _)) = target.split_once('(') else { return };
        let name = name.trim();
        if name.contains(['$', '{', '"']) {
            return;
        }
        let row = self.program.functions().lookup(name).and_then(|id| self.program.functions().row(id));
        match row {
            None => self.add(
                "function",
                true,
                format!("function {name}() does not exist"),
                "see `core show functions` for what this build has; nothing will be set",
            ),
            Some(row) if !row.writable() => self.add(
                "function",
                true,
                format!("function {name}() cannot be written"),
                "nothing will be set; read it, or set a variable",
            ),
            Some(_) => {}
        }
    }
}

/// Text without its `${…}` and `$[…]`.
fn literal(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        match symbol {
            '$' if matches!(symbols.peek(), Some('{' | '[')) => {
                symbols.next();
                depth += 1;
            }
            '{' | '[' if depth > 0 => depth += 1,
            '}' | ']' if depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(symbol),
            _ => {}
        }
    }
    out
}
