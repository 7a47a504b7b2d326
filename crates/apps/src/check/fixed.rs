//! What of an argument is known before there is a call: its letters, and the values of globals that nothing writes.

use std::collections::{BTreeMap, BTreeSet};

use dialplan::Program;
use dialplan::template::{closing, split_call};

/// Stands for what only a call knows; no line of a file has it.
pub const UNKNOWN: char = '\u{1}';

/// Globals that no step of the dialplan writes.
#[derive(Debug, Default)]
pub struct Constants<'p> {
    values: BTreeMap<&'p str, &'p str>,
}

impl<'p> Constants<'p> {
    /// Those of a program. A name that stands anywhere but in `${NAME}` may be written there.
    pub fn of(program: &'p Program) -> Self {
        let mut written: BTreeSet<&str> = BTreeSet::new();
        let steps = program
            .contexts()
            .iter()
            .flat_map(|context| &context.extensions)
            .flat_map(|extension| &extension.steps);
        for step in steps {
            names_outside_of_reads(&step.args, &mut written);
        }
        let values = program
            .globals()
            .map(|(name, value)| (&*name.name, value))
            .filter(|(name, value)| !written.contains(name) && !value.contains('$'))
            .collect();
        Self { values }
    }

    /// The text with constants in place, and [`UNKNOWN`] for everything else that is substituted.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(rest.get(..at).unwrap_or(""));
            rest = rest.get(at + 1..).unwrap_or("");
            let (open, close) = match rest.chars().next() {
                Some('{') => ('{', '}'),
                Some('[') => ('[', ']'),
                _ => {
                    out.push('$');
                    continue;
                }
            };
            let inner = rest.get(1..).unwrap_or("");
            let end = closing(inner, open, close).unwrap_or(inner.len());
            let name = inner.get(..end).unwrap_or("");
            rest = inner.get(end + 1..).unwrap_or("");
            let name = name.strip_prefix("GLOBAL(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
            match self.values.get(name).filter(|_| open == '{') {
                Some(value) => out.push_str(value),
                None => out.push(UNKNOWN),
            }
        }
        out.push_str(rest);
        out
    }
}

/// Whether a name may have this byte.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Names in a text that do not stand directly behind `${`, nor in `${GLOBAL(…)}`.
fn names_outside_of_reads<'a>(text: &'a str, found: &mut BTreeSet<&'a str>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        while bytes.get(at).is_some_and(|byte| is_part(*byte)) {
            at += 1;
        }
        if at > begin {
            let before = text.get(..begin).unwrap_or("");
            if !before.ends_with("${") && !before.ends_with("${GLOBAL(") {
                // `__NAME` hands the variable on to other channels.
                found.extend(text.get(begin..at).map(|name| name.trim_start_matches('_')));
            }
        } else {
            at += 1;
        }
    }
}

/// The calls of functions in a text, `${NAME(arguments)}`, those inside others too.
pub fn function_reads(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("${") {
        let rest = text.get(at + 2..).unwrap_or("");
        let inner = rest.get(..closing(rest, '{', '}').unwrap_or(rest.len())).unwrap_or("");
        // What follows the call is a substring, `:0:3`, and is left out.
        let (name, args) = split_call(inner);
        if inner.contains('(') && !name.is_empty() && name.bytes().all(is_part) {
            found.push((name, args));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_be_written_and_functions_that_are_read() {
        let mut found = BTreeSet::new();
        names_outside_of_reads("GLOBAL(TRUNK)=PJSIP/${PEER}&${GLOBAL(OTHER)}", &mut found);
        assert!(found.contains("TRUNK") && !found.contains("PEER") && !found.contains("OTHER"), "{found:?}");
        for (text, expected) in [
            ("${A}", vec![]),
            ("${LEN(${B})}", vec![("LEN", "${B}")]),
            ("x${CUT(${DB(a/b)},-,1)}:2", vec![("CUT", "${DB(a/b)},-,1"), ("DB", "a/b")]),
            ("${QUEUE_MEMBER(q,free):0:1}", vec![("QUEUE_MEMBER", "q,free")]),
        ] {
            assert_eq!(function_reads(text), expected, "{text}");
        }
    }
}
