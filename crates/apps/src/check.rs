//! What a dialplan asks of applications that will not be done, said at load rather than during a call.
//!
//! Names that do not exist are the loader's business; here are options and modules.

use std::collections::BTreeSet;

use conf::Findings;
use dialplan::{Program, Step};

use crate::{AppRow, UNSUPPORTED_OPTIONS, table};

/// Looks at every step. `disabled` are the modules that modules.conf switches off, without `.so`.
pub fn check(program: &Program, disabled: &BTreeSet<String>, findings: &mut Findings) {
    let rows = table::applications();
    for context in program.contexts() {
        for step in context.extensions.iter().flat_map(|extension| &extension.steps) {
            let row = step.app.and_then(|app| rows.get(usize::from(app.0)).copied());
            if let Some(row) = row {
                check_step(step, row, disabled, findings);
            }
        }
    }
}

fn check_step(step: &Step, row: &AppRow, disabled: &BTreeSet<String>, findings: &mut Findings) {
    if disabled.contains(row.module) {
        findings.error(
            &step.place,
            format!(
                "{} belongs to module {}, which modules.conf switches off; the call will end here",
                row.name, row.module
            ),
            format!("remove `noload => {}.so` from modules.conf, or this step", row.module),
        );
    }
    match row.name {
        "Dial" => check_dial(step, findings),
        "System" | "TrySystem" => findings.warning(
            &step.place,
            format!("{} will not run its command: dialplans may not run programs", row.name),
            "do the work outside, for instance from a manager client that hears a UserEvent",
        ),
        _ => {}
    }
}

fn check_dial(step: &Step, findings: &mut Findings) {
    let args = dialplan::args::split_raw(&step.args, ',');
    // Letters that come from variables are known only when the call is there; Dial logs them then.
    let Some(options) = args.get(2).map(|text| literal(text)) else { return };
    for (letter, remedy) in UNSUPPORTED_OPTIONS.chars().map(|letter| (letter, remedy(letter))) {
        if dialplan::Options::parse(&options, &letter.to_string()).has(letter) {
            let message = format!("Dial option '{letter}' is not supported yet and has no effect");
            findings.warning(&step.place, message, remedy);
        }
    }
}

fn remedy(letter: char) -> &'static str {
    match letter {
        't' | 'T' => "transfer from the phone (REFER is not affected), or leave the option out",
        'k' | 'K' => "parking is not built in; leave the option out",
        'w' | 'W' | 'x' | 'X' => "recording on demand is not built in; leave the option out",
        _ => "leave the option out",
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
