//! What a dialplan asks of applications that will not be done, said at load rather than during a call.
//!
//! Names that do not exist are the loader's business; here are options and modules.

use std::collections::BTreeSet;

use dialplan::{Program, Step};

use crate::dial::why_without_effect;
use crate::monitor::{Unmet, unmet};
use crate::{AppRow, UNSUPPORTED_OPTIONS, table};

/// Something a step asks for that it will not get.
#[derive(Debug, Clone)]
pub struct Concern<'p> {
    /// The step; its `place` is the file and line.
    pub step: &'p Step,
    /// The call ends at this step; else only a part of it has no effect.
    pub fatal: bool,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Looks at every step. `disabled` are the modules that modules.conf switches off, without `.so`.
pub fn check<'p>(program: &'p Program, disabled: &BTreeSet<String>) -> Vec<Concern<'p>> {
    let rows = table::applications();
    let mut concerns = Vec::new();
    for context in program.contexts() {
        for step in context.extensions.iter().flat_map(|extension| &extension.steps) {
            let row = step.app.and_then(|app| rows.get(usize::from(app.0)).copied());
            if let Some(row) = row {
                check_step(step, row, disabled, &mut concerns);
            }
        }
    }
    concerns
}

fn check_step<'p>(
    step: &'p Step,
    row: &AppRow,
    disabled: &BTreeSet<String>,
    concerns: &mut Vec<Concern<'p>>,
) {
    if disabled.contains(row.module) {
        let (name, module) = (row.name, row.module);
        concerns.push(Concern {
            step,
            fatal: true,
            message: format!(
                "{name} is of module {module}, which modules.conf switches off: the call ends here"
            ),
            remedy: format!("remove `noload => {module}.so` from modules.conf, or this step"),
        });
    }
    check_expressions(step, concerns);
    match row.name {
        "Dial" => check_dial(step, concerns),
        "MixMonitor" | "Monitor" | "Record" | "MeetMe" => check_recording(step, row.name, concerns),
        _ => {}
    }
}

/// Functions whose value a caller, or whoever sent the message, has written.
const OF_CALLERS: [&str; 7] =
    ["CALLERID", "CONNECTEDLINE", "REDIRECTING", "PJSIP_HEADER", "SIP_HEADER", "MESSAGE", "MESSAGE_DATA"];

/// What callers write and `$[…]` takes without quotation marks: it is read as operators there.
fn check_expressions<'p>(step: &'p Step, concerns: &mut Vec<Concern<'p>>) {
    for name in unquoted(&step.args) {
        concerns.push(Concern {
            step,
            fatal: false,
            message: format!(
                "`${{{name}(…)}}` stands in `$[…]` without quotation marks: what a caller writes is read as operators"
            ),
            remedy: format!("write \"${{{name}(…)}}\", and the other side of the comparison in quotation marks too"),
        });
    }
}

/// Those of [`OF_CALLERS`] that stand in `$[…]` of a text and not between quotation marks, each once.
fn unquoted(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    // What is open, innermost last: `$[` with whether a quotation mark is, or `${`.
    let mut open: Vec<(u8, bool)> = Vec::new();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let after_dollar = at > 0 && bytes.get(at - 1) == Some(&b'$');
        match (byte, open.last_mut()) {
            (b'[', _) if after_dollar => open.push((b'[', false)),
            (b'{', last) if after_dollar => {
                if last.is_some_and(|(kind, quoted)| *kind == b'[' && !*quoted) {
                    let name =
                        text.get(at + 1..).and_then(|rest| rest.split_once('(')).map_or("", |(name, _)| name);
                    let named = OF_CALLERS.into_iter().find(|known| known.eq_ignore_ascii_case(name));
                    found.extend(named.filter(|name| !found.contains(name)));
                }
                open.push((b'{', false));
            }
            (b'"', Some((b'[', quoted))) => *quoted = !*quoted,
            (b']', Some((b'[', false))) | (b'}', Some((b'{', _))) => drop(open.pop()),
            _ => {}
        }
    }
    found
}

fn check_dial<'p>(step: &'p Step, concerns: &mut Vec<Concern<'p>>) {
    let args = dialplan::args::split_raw(&step.args, ',');
    // Letters that come from variables are known only when the call is there; Dial logs them then.
    let Some(options) = args.get(2).map(|text| literal(text)) else { return };
    for letter in UNSUPPORTED_OPTIONS.chars() {
        if dialplan::Options::parse(&options, &letter.to_string()).has(letter) {
            let message = format!("Dial option '{letter}' {}", why_without_effect(letter));
            concerns.push(Concern { step, fatal: false, message, remedy: "leave the option out".to_owned() });
        }
    }
}

fn check_recording<'p>(step: &'p Step, app: &str, concerns: &mut Vec<Concern<'p>>) {
    let parts: Vec<String> = dialplan::args::split_raw(&step.args, ',').into_iter().map(literal).collect();
    for Unmet { what, remedy } in unmet(app, &parts) {
        let message = format!("{app}: no effect has {what}");
        concerns.push(Concern { step, fatal: false, message, remedy: remedy.to_owned() });
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

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn what_callers_write_is_named_where_an_expression_reads_it() {
        for (text, expected) in [
            ("$[\"${CALLERID(name)}\" = \"boss\"]?yes", vec![]),
            ("$[${CALLERID(name)} = boss]?yes", vec!["CALLERID"]),
            ("$[\"${EXTEN}\" = \"1\" & ${callerid(num)} > 5]?yes", vec!["CALLERID"]),
            ("$[${LEN(${CALLERID(name)})} > 3]?yes", vec![]),
            ("${CALLERID(name)}?yes", vec![]),
            ("$[ \"a\" : \"[a-z]\" & ${PJSIP_HEADER(read,X)}]", vec!["PJSIP_HEADER"]),
            ("$[${EXTEN} = 100]?yes", vec![]),
            ("x=${IF($[${CALLERID(num)}=1]?a:b)}$[${CALLERID(ani)}+1]", vec!["CALLERID"]),
            ("$[", vec![]),
        ] {
            assert_eq!(unquoted(text), expected, "{text}");
        }
    }
}
