//! Text with `${…}` and `$[…]`, compiled once and expanded many times (§6).
//!
//! Asterisk substitutes text and then parses what came out. A template parses first, so each short cut
//! below holds only while the substituted text cannot change the parse; where it could, the piece is
//! expanded to text and parsed at run time.

use std::sync::Arc;

use crate::env::{Env, Level};
use crate::expr::Expression;
use crate::registry::{FunctionId, FunctionRow, Functions, read_row, write_row};
use crate::vars::{Builtin, Inherit, Symbols, Var, VarName};

/// Longest text one expansion gives, bytes: sixteen times the longest line the reader takes.
pub const EXPAND_BYTES_MAX: usize = 64 * 1024;
/// What one evaluation may read and make in all its parts, bytes: a step in use stays below a thousandth, and this many
/// take less than two milliseconds of the thread that all calls share.
pub const EVALUATION_BYTES_MAX: usize = 1024 * 1024;
/// What calling a function counts beside its text.
const CALL_BYTES: usize = 64;
/// How deep `${…}` may stand in `${…}`, and EVAL() in EVAL().
pub const SUBSTITUTION_DEPTH_MAX: u32 = 15;

/// `:offset[:length]` after a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// From the start, or from the end when negative.
    pub offset: i64,
    /// Bytes to keep; negative drops that many from the end; `None` keeps all.
    pub length: Option<i64>,
}

impl Slice {
    /// Reads what stands after the first colon. What is no number counts as absent, as `sscanf` has it.
    pub fn parse(text: &str) -> Self {
        let (offset, rest) = leading_integer(text);
        let Some(offset) = offset else { return Self { offset: 0, length: None } };
        let length = rest.strip_prefix(':').and_then(|rest| leading_integer(rest).0);
        Self { offset, length }
    }
    /// The byte range of a text of `len` bytes.
    fn range(self, len: usize) -> std::ops::Range<usize> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let start =
            if self.offset < 0 { len.saturating_add(self.offset).max(0) } else { self.offset.min(len) };
        let end = match self.length {
            None => len,
            Some(length) if length < 0 => len.saturating_add(length),
            Some(length) => start.saturating_add(length).min(len),
        };
        let index = |value: i64| usize::try_from(value).unwrap_or(0);
        index(start)..index(end.max(start))
    }
    /// Keeps only the slice of what follows `from` in `out`.
    pub(crate) fn apply(self, out: &mut String, from: usize) {
        let Some(tail) = out.get(from..) else { return };
        let range = self.range(tail.len());
        if range == (0..tail.len()) {
            return;
        }
        // Offsets are bytes; a cut inside a character leaves a replacement mark instead of half of it.
        match tail.get(range.clone()) {
            Some(_) => {
                out.truncate(from + range.end);
                out.drain(from..from + range.start);
            }
            None => {
                let kept = tail.as_bytes().get(range).unwrap_or(&[]);
                let kept = String::from_utf8_lossy(kept).into_owned();
                out.truncate(from);
                out.push_str(&kept);
            }
        }
    }
}

/// The integer at the start of `text` after blanks, and what follows it.
pub(crate) fn leading_integer(text: &str) -> (Option<i64>, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(sign + digits);
    if digits == 0 {
        return (None, text);
    }
    let saturated = if number.starts_with('-') { i64::MIN } else { i64::MAX };
    (Some(number.strip_prefix('+').unwrap_or(number).parse().unwrap_or(saturated)), rest)
}

/// Something the compiler noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// An error will make the step fail; a warning will not.
    pub error: bool,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: &'static str,
}

/// Where the compiler finds variable names.
pub(crate) enum Names<'a> {
    /// The loader: new names get ids.
    Mint(&'a mut Symbols),
    /// A running program: names outside it stay without an id.
    Known(&'a Symbols),
}

/// Compiles text to templates and collects what it noticed.
pub(crate) struct Compiler<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) functions: &'a Functions,
    pub(crate) problems: Vec<Problem>,
}

/// One part of a template.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Text(Box<str>),
    Variable {
        name: VarName,
        builtin: Option<Builtin>,
        slice: SliceSpec,
    },
    Function {
        id: Option<FunctionId>,
        name: Box<str>,
        args: Template,
        slice: SliceSpec,
    },
    /// `${…}` whose inside has to be expanded before one can tell what it names.
    Indirect(Template),
    Expression(Box<Expression>),
}

#[derive(Debug, Clone)]
pub(crate) enum SliceSpec {
    Whole,
    Fixed(Slice),
    Late(Template),
}

/// Compiled text.
#[derive(Debug, Clone, Default)]
pub struct Template {
    pub(crate) pieces: Vec<Piece>,
}

/// A set of ASCII characters that substituted text must not hold for a short cut to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Guard(pub(crate) u128);

impl Guard {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut set, mut at) = (0u128, 0);
        while at < bytes.len() {
            set |= 1u128 << (bytes[at] & 0x7f);
            at += 1;
        }
        Self(set)
    }
    pub(crate) fn trips(self, text: &str) -> bool {
        self.0 != 0 && text.bytes().any(|byte| byte < 0x80 && self.0 >> byte & 1 == 1)
    }
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(names: Names<'a>, functions: &'a Functions) -> Self {
        Self { names, functions, problems: Vec::new() }
    }
    pub(crate) fn name(&mut self, name: &str) -> VarName {
        match &mut self.names {
            Names::Mint(symbols) => symbols.intern(name),
            Names::Known(symbols) => {
                symbols.lookup(name).unwrap_or_else(|| VarName { id: None, name: Arc::from(name) })
            }
        }
    }
    fn warn(&mut self, message: String, remedy: &'static str) {
        self.problems.push(Problem { error: false, message, remedy });
    }
    pub(crate) fn compile(&mut self, text: &str) -> Template {
        self.compile_at(text, 0)
    }
    fn compile_at(&mut self, text: &str, depth: u32) -> Template {
        let mut pieces = Vec::new();
        let mut rest = text;
        if depth > SUBSTITUTION_DEPTH_MAX {
            self.problems.push(Problem {
                error: true,
                message: format!("substitutions are nested more than {SUBSTITUTION_DEPTH_MAX} deep"),
                remedy: "put inner parts into variables of their own",
            });
            return Template::default();
        }
        let mut literal = String::new();
        while let Some(at) = rest.find('$') {
            let (before, found) = rest.split_at(at);
            literal.push_str(before);
            let (open, close) = match found.as_bytes().get(1) {
                Some(b'{') => ('{', '}'),
                Some(b'[') => ('[', ']'),
                _ => {
                    literal.push('$');
                    rest = found.get(1..).unwrap_or("");
                    continue;
                }
            };
            let body = found.get(2..).unwrap_or("");
            let (inside, after) = match closing(body, open, close) {
                Some(end) => (body.get(..end).unwrap_or(""), body.get(end + 1..).unwrap_or("")),
                None => {
                    self.warn(
                        format!("`${open}{body}` is never closed: `{close}` is missing"),
                        "add the missing bracket; until then the rest of the line counts as inside",
                    );
                    (body, "")
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
            }
            pieces.push(if open == '{' {
                self.reference(inside, depth + 1)
            } else {
                let template = self.compile_at(inside, depth + 1);
                Piece::Expression(Box::new(Expression::new(template)))
            });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Template { pieces }
    }
    /// The inside of `${…}`.
    fn reference(&mut self, inside: &str, depth: u32) -> Piece {
        let parts = self.compile_at(inside, depth);
        if !parts.is_literal() {
            return self.mixed_reference(parts);
        }
        let (name, slice) = split_slice(inside);
        let slice = slice.map_or(SliceSpec::Whole, |text| SliceSpec::Fixed(Slice::parse(text)));
        match name.split_once('(') {
            Some((function, args)) => {
                let args = args.rsplit_once(')').map_or(args, |(args, _)| args);
                self.function(function, Template::text(args), slice)
            }
            None => self.variable(name, slice),
        }
    }
    fn variable(&mut self, name: &str, slice: SliceSpec) -> Piece {
        Piece::Variable { name: self.name(name), builtin: Builtin::from_name(name), slice }
    }
    fn function(&mut self, name: &str, args: Template, slice: SliceSpec) -> Piece {
        let id = self.functions.lookup(name);
        if id.is_none() {
            self.problems.push(Problem {
                error: true,
                message: format!("function {name}() does not exist"),
                remedy: "see `core show functions` for what this build has; the result will be empty",
            });
        }
        Piece::Function { id, name: name.into(), args, slice }
    }
    /// `${…}` with substitutions inside: a known function or variable when the literal text alone settles that.
    fn mixed_reference(&mut self, parts: Template) -> Piece {
        let Some(Piece::Text(first)) = parts.pieces.first() else { return Piece::Indirect(parts) };
        match first.find(['(', ':']) {
            Some(at) if first.as_bytes().get(at) == Some(&b'(') => {
                let name = first.get(..at).unwrap_or("").to_owned();
                match function_parts(&parts, at) {
                    Some((args, slice)) => self.function(&name, args, slice),
                    None => Piece::Indirect(parts),
                }
            }
            Some(at) => {
                let name = first.get(..at).unwrap_or("").to_owned();
                let mut late = parts.clone();
                if let Some(Piece::Text(text)) = late.pieces.first_mut() {
                    *text = text.get(at + 1..).unwrap_or("").into();
                }
                self.variable(&name, SliceSpec::Late(late))
            }
            None => Piece::Indirect(parts),
        }
    }
}

/// Splits `NAME(` args `)` [`:slice`] out of mixed parts; `None` when the literal text does not settle where it ends.
fn function_parts(parts: &Template, open: usize) -> Option<(Template, SliceSpec)> {
    let mut args = Vec::new();
    let mut depth = 0u32;
    let last = parts.pieces.len().checked_sub(1)?;
    for (index, piece) in parts.pieces.iter().enumerate() {
        let Piece::Text(text) = piece else {
            args.push(piece.clone());
            continue;
        };
        let from = if index == 0 { open } else { 0 };
        for (at, byte) in text.bytes().enumerate().skip(from) {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                let rest = text.get(at + 1..)?;
                let settled = index == last && (rest.is_empty() || rest.starts_with(':'));
                let inner = text.get(if index == 0 { open + 1 } else { 0 }..at)?;
                if !settled {
                    return None;
                }
                if !inner.is_empty() {
                    args.push(Piece::Text(inner.into()));
                }
                let slice = rest
                    .strip_prefix(':')
                    .map_or(SliceSpec::Whole, |text| SliceSpec::Fixed(Slice::parse(text)));
                return Some((Template { pieces: args }, slice));
            }
        }
        let inner = text.get(if index == 0 { open + 1 } else { 0 }..)?;
        if !inner.is_empty() {
            args.push(Piece::Text(inner.into()));
        }
    }
    None
}

/// Where the bracket that closes `text` stands, nested ones counted.
pub fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 1u32;
    for (at, symbol) in text.char_indices() {
        if symbol == open {
            depth += 1;
        } else if symbol == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Splits at the first colon outside parentheses.
fn split_slice(inside: &str) -> (&str, Option<&str>) {
    let mut depth = 0i32;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b':' if depth == 0 => return (inside.get(..at).unwrap_or(""), inside.get(at + 1..)),
            _ => {}
        }
    }
    (inside, None)
}

/// What parentheses in substituted function arguments would change.
const PARENTHESES: Guard = Guard::of("()");

impl Template {
    /// A template of plain text.
    pub(crate) fn text(text: &str) -> Self {
        let pieces = if text.is_empty() { Vec::new() } else { vec![Piece::Text(text.into())] };
        Self { pieces }
    }
    /// Compiles text against a program's names. Problems are dropped: callers are run-time paths.
    pub fn compile(text: &str, symbols: &Symbols, functions: &Functions) -> Self {
        Compiler::new(Names::Known(symbols), functions).compile(text)
    }
    /// The text, when it has no substitutions.
    pub fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
    pub(crate) fn is_literal(&self) -> bool {
        self.literal().is_some()
    }
    /// Appends the expanded text. Bounded by [`EXPAND_BYTES_MAX`]; what is beyond is cut with a warning.
    pub fn expand(&self, env: &mut dyn Env, out: &mut String) {
        self.expand_guarded(env, out, Guard::NONE);
    }
    /// Expands, and says where in `out` the values stand.
    pub(crate) fn expand_marked(
        &self,
        env: &mut dyn Env,
        out: &mut String,
        values: &mut Vec<std::ops::Range<usize>>,
    ) {
        let start = out.len();
        for piece in &self.pieces {
            let from = out.len();
            piece.expand(env, out);
            let whole = out.len() - start <= EXPAND_BYTES_MAX;
            if !whole {
                cut(out, start + EXPAND_BYTES_MAX);
                env.log(Level::Warning, "substitution gave more than 64 KiB: the rest was cut off");
            }
            if !matches!(piece, Piece::Text(_)) {
                values.push(from..out.len());
            }
            if !whole {
                break;
            }
        }
    }
    /// Expands; false when substituted text held a guarded character.
    pub(crate) fn expand_guarded(&self, env: &mut dyn Env, out: &mut String, guard: Guard) -> bool {
        let start = out.len();
        let mut clean = true;
        for piece in &self.pieces {
            let from = out.len();
            piece.expand(env, out);
            if !matches!(piece, Piece::Text(_)) {
                clean = clean && !guard.trips(out.get(from..).unwrap_or(""));
            }
            if out.len() - start > EXPAND_BYTES_MAX {
                cut(out, start + EXPAND_BYTES_MAX);
                env.log(Level::Warning, "substitution gave more than 64 KiB: the rest was cut off");
                break;
            }
        }
        clean
    }
}

/// Shortens to at most `to` bytes, on a character boundary.
pub(crate) fn cut(out: &mut String, to: usize) {
    let mut to = to.min(out.len());
    while !out.is_char_boundary(to) {
        to -= 1;
    }
    out.truncate(to);
}

impl Piece {
    fn expand(&self, env: &mut dyn Env, out: &mut String) {
        let from = out.len();
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Variable { name, builtin, slice } => {
                if env.spend(0) {
                    read_variable(env, name.as_var(), *builtin, out);
                    env.spend(out.len() - from);
                    slice.apply(env, out, from);
                }
            }
            Self::Function { id, name, args, slice } => {
                let mut text = String::new();
                if args.expand_guarded(env, &mut text, PARENTHESES) {
                    call_read(env, *id, name, &text, out);
                    slice.apply(env, out, from);
                } else {
                    // A parenthesis came in by substitution: only the whole text tells where the arguments end.
                    let mut whole = format!("{name}({text})");
                    if let SliceSpec::Fixed(slice) = slice {
                        slice.write(&mut whole);
                    }
                    read_reference(env, &whole, out);
                }
            }
            Self::Indirect(inside) => {
                let mut text = String::new();
                inside.expand(env, &mut text);
                read_reference(env, &text, out);
            }
            Self::Expression(expression) => expression.expand(env, out),
        }
    }
}

impl Slice {
    fn write(self, out: &mut String) {
        use std::fmt::Write as _;
        let _ = write!(out, ":{}", self.offset);
        if let Some(length) = self.length {
            let _ = write!(out, ":{length}");
        }
    }
}

impl SliceSpec {
    fn apply(&self, env: &mut dyn Env, out: &mut String, from: usize) {
        match self {
            Self::Whole => {}
            Self::Fixed(slice) => slice.apply(out, from),
            Self::Late(template) => {
                let mut text = String::new();
                template.expand(env, &mut text);
                Slice::parse(&text).apply(out, from);
            }
        }
    }
}

/// Appends a variable's value in the order built-in, channel, global; false when there is none.
pub fn read_variable(env: &dyn Env, var: Var<'_>, builtin: Option<Builtin>, out: &mut String) -> bool {
    builtin.is_some_and(|which| env.builtin(which, out)) || env.variable(var, out) || env.global(var, out)
}

/// Appends a variable's value by name.
pub fn read_named(env: &dyn Env, name: &str, out: &mut String) -> bool {
    let program = env.program();
    let known = program.symbols().lookup(name);
    let var = known.as_ref().map_or(Var::named(name), VarName::as_var);
    read_variable(env, var, Builtin::from_name(name), out)
}

/// Appends what `${text}` means, `text` being already substituted.
pub(crate) fn read_reference(env: &mut dyn Env, text: &str, out: &mut String) {
    let from = out.len();
    let (name, slice) = split_slice(text);
    if name.contains('(') {
        read_call(env, name, out);
    } else if env.spend(0) {
        read_named(env, name, out);
        env.spend(out.len() - from);
    }
    if let Some(slice) = slice {
        Slice::parse(slice).apply(out, from);
    }
}

/// Splits `NAME(args)`.
pub fn split_call(text: &str) -> (&str, &str) {
    match text.split_once('(') {
        Some((name, args)) => (name, args.rsplit_once(')').map_or(args, |(args, _)| args)),
        None => (text, ""),
    }
}

/// Appends the answer of the function call `NAME(args)`; `false` when there was none, which was logged.
pub fn read_call(env: &mut dyn Env, call: &str, out: &mut String) -> bool {
    let (name, args) = split_call(call);
    let program = env.program();
    call_read(env, program.functions().lookup(name), name, args, out)
}

/// Reads a function; faults are logged, whatever it had appended by then stays out.
pub(crate) fn call_read(
    env: &mut dyn Env,
    id: Option<FunctionId>,
    name: &str,
    args: &str,
    out: &mut String,
) -> bool {
    let program = env.program();
    let Some(row) = id.and_then(|id| program.functions().row(id)) else {
        env.log(Level::Error, &format!("Function {name} not registered"));
        return false;
    };
    let from = out.len();
    if !env.spend(args.len() + CALL_BYTES) {
        return false;
    }
    let done = with_depth(env, |env| read_row(row, env, args, out));
    env.spend(out.len().saturating_sub(from));
    if let Err(fault) = &done {
        out.truncate(from);
        env.log(Level::Warning, &format!("{}({args}): {}", row.name, fault.0));
    }
    done.is_ok()
}

/// Runs `body` one substitution deeper; refused beyond [`SUBSTITUTION_DEPTH_MAX`].
fn with_depth(
    env: &mut dyn Env,
    body: impl FnOnce(&mut dyn Env) -> Result<(), crate::env::Fault>,
) -> Result<(), crate::env::Fault> {
    if *env.depth() >= SUBSTITUTION_DEPTH_MAX {
        return Err(crate::env::Fault::new("substitutions are nested more than 15 deep"));
    }
    *env.depth() += 1;
    let result = body(env);
    *env.depth() -= 1;
    result
}

/// Writes a function by the text of its call, `NAME(args)`; false when that failed (and was logged).
pub fn write_call(env: &mut dyn Env, call: &str, value: &str) -> bool {
    let (name, args) = split_call(call);
    let program = env.program();
    let row = program.functions().lookup(name).and_then(|id| program.functions().row(id));
    write_function(env, row, name, args, value)
}

pub(crate) fn write_function(
    env: &mut dyn Env,
    row: Option<&FunctionRow>,
    name: &str,
    args: &str,
    value: &str,
) -> bool {
    let Some(row) = row else {
        env.log(Level::Error, &format!("Function {name} not registered"));
        return false;
    };
    match write_row(row, env, args, value) {
        Ok(()) => true,
        Err(fault) => {
            env.log(Level::Warning, &format!("{}({args}): {}", row.name, fault.0));
            false
        }
    }
}

/// Expands text and says where its values stand.
pub fn expand_written(env: &mut dyn Env, text: &str) -> crate::step::Written {
    let program = env.program();
    let template = Template::compile(text, program.symbols(), program.functions());
    let (mut text, mut values) = (String::new(), Vec::new());
    template.expand_marked(env, &mut text, &mut values);
    crate::step::Written { text, values: Some(values) }
}

/// Appends `text` with its substitutions made, as EVAL() and run-time callers need it.
pub fn expand_text(env: &mut dyn Env, text: &str, out: &mut String) {
    if !text.contains('$') {
        out.push_str(text);
        return;
    }
    let program = env.program();
    Template::compile(text, program.symbols(), program.functions()).expand(env, out);
}

/// Set(): `name` is a variable with its `_` prefixes, or a function when it ends in `)`.
pub fn set_by_name(env: &mut dyn Env, name: &str, value: &str) -> bool {
    if name.ends_with(')') && name.contains('(') {
        return write_call(env, name, value);
    }
    if !env.rights().sets {
        env.log(Level::Warning, &format!("{name} is not set: {}", crate::registry::REFUSED));
        return false;
    }
    let (inherit, plain) = Inherit::strip(name);
    let program = env.program();
    let known = program.symbols().lookup(plain);
    env.set_variable(known.as_ref().map_or(Var::named(plain), VarName::as_var), value, inherit);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testenv::TestEnv;

    #[test]
    fn section_6_substrings_and_nested_names() {
        let mut env = TestEnv::new();
        env.set("V", "012345");
        env.set("W", "7");
        env.set("V7", "vv");
        env.set("f", "LEN");
        env.set("p", "a)b");
        env.set("c", "x:1");
        env.globals.set(Var::named("G"), "global", Inherit::Never);
        env.globals.set(Var::named("W"), "hidden", Inherit::Never);
        env.builtins.insert(Builtin::Exten, "5551234".to_owned());
        env.vars.set(Var::named("EXTEN"), "never seen", Inherit::Never);
        for (text, expected) in [
            ("${V:-10:2}", "01"),
            ("${V${W}}", "vv"),
            ("${V}", "012345"),
            ("${V:2}", "2345"),
            ("${V:2:3}", "234"),
            ("${V:-2}", "45"),
            ("${V:-3:2}", "34"),
            ("${V:1:-2}", "123"),
            ("${V:0:-9}", ""),
            ("${V:6}${V:99}", ""),
            ("${V:2:0}", ""),
            ("${V:}", "012345"),
            ("${V:x}", "012345"),
            ("${V:${W}}", ""),
            ("${V:${LEN(ab)}:1}", "2"),
            ("${G}${W}", "global7"),
            ("${EXTEN:3}", "1234"),
            ("${EXTEN}", "5551234"),
            ("${v}${nothing}", ""),
            ("a$b$", "a$b$"),
            ("$${W}", "$7"),
            ("${LEN(${V})}", "6"),
            ("${LEN(${V}):0:1}", "6"),
            ("${${f}(abcd)}", "4"),
            ("${TOLOWER(${TOUPPER(a${W}b)})}", "a7b"),
            // A parenthesis that came in by substitution takes part in finding the end, as in the text.
            ("${LEN(${p})}", "3"),
            ("${TOUPPER(${c})}", "X:1"),
            ("${V:0:1}${V:1:1}", "01"),
            ("{${W}}", "{7}"),
            ("$[${W}+1]", "8"),
            ("$[\"${V}\" = \"012345\"]", "1"),
            ("$[${LEN(${V})} > 3 & ${W} = 7]", "1"),
            ("${V:$[1+1]:$[2-1]}", "2"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
        assert!(env.logs.is_empty(), "{:?}", env.logs);
    }

    #[test]
    fn output_of_a_substitution_is_not_looked_at_again() {
        let mut env = TestEnv::new();
        env.vars.set(Var::named("x"), "${y}$[1+1]", Inherit::Never);
        env.set("y", "secret");
        assert_eq!(env.expand("<${x}>"), "<${y}$[1+1]>");
    }

    #[test]
    fn an_unknown_function_is_an_error_that_names_itself() {
        let mut env = TestEnv::new();
        assert_eq!(env.expand("[${FROB(1)}]"), "[]");
        assert!(env.logs.iter().any(|line| line.contains("FROB")), "{:?}", env.logs);
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let mut env = TestEnv::new();
        env.set("x", &"x".repeat(60_000));
        assert_eq!(env.expand("${x}${x}").len(), EXPAND_BYTES_MAX);
        let deep = format!("{}x{}", "${".repeat(5_000), "}".repeat(5_000));
        assert_eq!(env.expand(&deep), "");
        assert_eq!(env.expand("${STRREPLACE(x,x,xxxxxxxxxxxxxxxxxxxxxxxxx)}").len(), EXPAND_BYTES_MAX);
    }

    #[test]
    fn a_cut_inside_a_character_leaves_text() {
        let mut env = TestEnv::new();
        env.set("n", "Jörg");
        assert_eq!(env.expand("${n:0:1}|${n:3}|${LEN(${n})}"), "J|rg|5");
        assert_eq!(env.expand("${n:2}"), "\u{fffd}rg");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in r#"([$]\{|[$]\[|[a-cV:()\[\]{}0-9",=?-]|LEN\(|EVAL\(|IF\(|CUT\(|SPRINTF\(%){0,24}"#, a in r"[a-c(){}:$,\[-]{0,6}") {
            let mut env = TestEnv::new();
            env.vars.set(Var::named("a"), &a, Inherit::Never);
            env.expand(&text);
        }

        #[test]
        fn compiled_references_equal_their_text(inner in r"(a|LEN\(|TOUPPER\(|[():x0-3-]|\$\{a\}){1,8}", a in r"[():x0-2-]{0,4}") {
            // Every `${…}` whose inside is expanded first must mean what the expanded inside means.
            let mut env = TestEnv::new();
            env.vars.set(Var::named("a"), &a, Inherit::Never);
            let compiled = env.expand(&format!("${{{inner}}}"));
            let inside = env.expand(&inner);
            let mut by_text = String::new();
            read_reference(&mut env, &inside, &mut by_text);
            proptest::prop_assert_eq!(compiled, by_text);
        }
    }
}
