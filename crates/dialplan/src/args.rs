//! Helpers for application arguments (§5, §6): splitting, option letters, conditions, destinations.

use crate::program::LabelId;
use crate::template::leading_integer;

/// Arguments one application may get; more are joined into the last.
pub const ARGUMENTS_MAX: usize = 256;

/// Splits on `separator` outside `()`, `[]` and `""`, keeping quotes and backslashes; never empty.
pub fn split_raw(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut scan = Scan::default();
    for (at, symbol) in text.char_indices() {
        if scan.step(symbol) && symbol == separator && parts.len() + 1 < ARGUMENTS_MAX {
            parts.push(text.get(start..at).unwrap_or(""));
            start = at + separator.len_utf8();
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

/// Follows brackets and quotes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Scan {
    parens: u32,
    brackets: u32,
    quoted: bool,
    escaped: bool,
}

impl Scan {
    /// Takes one character; true when it stands outside everything and so may separate.
    pub(crate) fn step(&mut self, symbol: char) -> bool {
        if self.escaped {
            self.escaped = false;
            return false;
        }
        match symbol {
            '\\' => self.escaped = true,
            '(' => self.parens += 1,
            ')' => self.parens = self.parens.saturating_sub(1),
            '[' => self.brackets += 1,
            ']' => self.brackets = self.brackets.saturating_sub(1),
            '"' => self.quoted = !self.quoted,
            _ => return self.parens == 0 && self.brackets == 0 && !self.quoted,
        }
        false
    }
}

/// Takes quotes out and `\x` to `x`.
pub fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut symbols = text.chars();
    while let Some(symbol) = symbols.next() {
        match symbol {
            '"' => {}
            '\\' => out.extend(symbols.next()),
            _ => out.push(symbol),
        }
    }
    out
}

/// The standard arguments of an application: split on commas, quotes removed. Empty text has one empty argument.
pub fn split_args(text: &str) -> Vec<String> {
    split_raw(text, ',').into_iter().map(unquote).collect()
}

/// Whether a condition holds: empty is false, a leading integer decides by itself, any other text is true.
pub fn condition(text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    match leading_integer(text.trim_start()).0 {
        Some(number) => number != 0,
        None => true,
    }
}

/// Option letters of an application with their `(arguments)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    letters: u128,
    args: Vec<(char, String)>,
    /// Letters that the caller's list does not have.
    pub unknown: Vec<char>,
}

impl Options {
    /// Reads option letters. `known` lists those the application has; a missing `)` takes the rest of the text.
    pub fn parse(text: &str, known: &str) -> Self {
        let mut options = Self::default();
        let mut rest = text.trim();
        while let Some(letter) = rest.chars().next() {
            rest = rest.get(letter.len_utf8()..).unwrap_or("");
            let mut arg = None;
            if let Some(inner) = rest.strip_prefix('(') {
                let end = closing_paren(inner).unwrap_or(inner.len());
                arg = inner.get(..end);
                rest = inner.get(end + 1..).unwrap_or("");
            }
            if letter.is_whitespace() {
                continue;
            }
            if !known.contains(letter) {
                options.unknown.push(letter);
                continue;
            }
            if letter.is_ascii() {
                options.letters |= 1 << u32::from(letter);
            }
            if let Some(arg) = arg {
                options.args.retain(|(known, _)| *known != letter);
                options.args.push((letter, arg.trim_matches('"').to_owned()));
            }
        }
        options
    }
    /// The letter was given.
    pub fn has(&self, letter: char) -> bool {
        letter.is_ascii() && self.letters >> u32::from(letter) & 1 == 1
    }
    /// The letter's argument; empty when it was given as `x()`, `None` without parentheses.
    pub fn arg(&self, letter: char) -> Option<&str> {
        self.args.iter().find(|(known, _)| *known == letter).map(|(_, arg)| arg.as_str())
    }
}

/// Where the parenthesis that ends `text` stands.
fn closing_paren(text: &str) -> Option<usize> {
    let mut depth = 1u32;
    let mut quoted = false;
    for (at, symbol) in text.char_indices() {
        match symbol {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits `App(args)` as dialplan lines and ExecIf write it: up to the first `(`, then to the last `)`.
/// The third value is false when the closing parenthesis is missing.
pub fn split_app(text: &str) -> (&str, &str, bool) {
    match text.split_once('(') {
        None => (text.trim(), "", true),
        Some((name, args)) => match args.rsplit_once(')') {
            Some((args, _)) => (name.trim(), args, true),
            None => (name.trim(), args, false),
        },
    }
}

/// A label as a destination holds it: its name, and its id once the loader has linked it.
#[derive(Debug, Clone, Eq)]
pub struct Label {
    name: Box<str>,
    pub(crate) id: Option<LabelId>,
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self { name: name.into(), id: None }
    }
}

impl std::ops::Deref for Label {
    type Target = str;
    fn deref(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Label {
    /// By name: whether a label was linked is no part of what it says.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Where in an extension to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Priority {
    /// A priority, 1 and up.
    Number(u32),
    /// A label.
    Label(Label),
    /// That many priorities on.
    Forward(u32),
    /// That many priorities back.
    Back(u32),
}

/// A parsed Goto target: what is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Context.
    pub context: Option<Box<str>>,
    /// Extension.
    pub exten: Option<Box<str>>,
    /// Priority, label or step.
    pub place: Priority,
}

impl Priority {
    /// Reads a priority; text that is no number is a label. `None` when it is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
        };
        match text.as_bytes().first()? {
            b'+' => number(text.get(1..)?).map(Self::Forward),
            b'-' => number(text.get(1..)?).map(Self::Back),
            _ => Some(number(text).map_or_else(|| Self::Label(text.into()), Self::Number)),
        }
    }
}

impl Destination {
    /// Reads `prio`, `exten,prio` or `context,exten,prio`. `None` when there is no priority.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ',').map(str::trim);
        let (first, second, third) = (parts.next()?, parts.next(), parts.next());
        let (context, exten, place) = match (second, third) {
            (None, _) => (None, None, first),
            (Some(place), None) => (None, Some(first), place),
            (Some(exten), Some(place)) => (Some(first), Some(exten), place),
        };
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(Into::into);
        Some(Self { context: given(context), exten: given(exten), place: Priority::parse(place)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_6_arguments_split_outside_brackets_and_quotes() {
        for (text, expected) in [
            ("a,b,c", vec!["a", "b", "c"]),
            ("", vec![""]),
            ("a,,b", vec!["a", "", "b"]),
            ("PJSIP/a,20,U(sub^x,y)g", vec!["PJSIP/a", "20", "U(sub^x,y)g"]),
            ("\"a,b\",c", vec!["a,b", "c"]),
            ("a\\,b,c", vec!["a,b", "c"]),
            ("[a,b],c", vec!["[a,b]", "c"]),
            ("a(b", vec!["a(b"]),
            (r#"say \"hi\""#, vec!["say \"hi\""]),
        ] {
            assert_eq!(split_args(text), expected, "{text}");
        }
    }

    #[test]
    fn section_6_conditions_on_a_running_asterisk() {
        for (text, expected) in [
            ("", false),
            ("0", false),
            ("00", false),
            ("0abc", false),
            ("1", true),
            ("1x", true),
            ("abc", true),
            ("-1", true),
            ("\"\"", true),
        ] {
            assert_eq!(condition(text), expected, "{text:?}");
        }
    }

    #[test]
    fn option_letters_take_arguments_in_parentheses() {
        let options = Options::parse("tU(sub(x)^1)gm(default)S(5", "tUgmSr");
        assert!(options.has('t') && options.has('U') && options.has('g') && !options.has('r'));
        assert_eq!(options.arg('U'), Some("sub(x)^1"));
        assert_eq!(options.arg('m'), Some("default"));
        assert_eq!(options.arg('S'), Some("5"));
        assert_eq!(options.arg('g'), None);
        assert_eq!(Options::parse("tZ", "t").unknown, ['Z']);
    }

    #[test]
    fn section_5_goto_forms() {
        let at = |context: Option<&str>, exten: Option<&str>, place| {
            Some(Destination { context: context.map(Into::into), exten: exten.map(Into::into), place })
        };
        for (text, expected) in [
            ("5", at(None, None, Priority::Number(5))),
            ("loop", at(None, None, Priority::Label("loop".into()))),
            ("+2", at(None, None, Priority::Forward(2))),
            ("-1", at(None, None, Priority::Back(1))),
            ("s,1", at(None, Some("s"), Priority::Number(1))),
            ("ctx, s ,start", at(Some("ctx"), Some("s"), Priority::Label("start".into()))),
            ("", None),
            ("a,b,", None),
        ] {
            assert_eq!(Destination::parse(text), expected, "{text}");
        }
    }
}
