//! `$[…]` expressions (§6): one grammar, evaluated while it is read, or compiled when only plain variables vary.
//!
//! The compiled form is a short cut. Each variable in it must turn out to be a single token at run time;
//! if one does not (empty, several words, an operator), the text is put together and parsed as a whole.

use std::cmp::Ordering;

use crate::env::{Env, Level};
use crate::ere::Regex;
use crate::num::{Float, write_integer};
use crate::template::{Piece, SliceSpec, Template, call_read, read_variable};

/// How deep parentheses and signs may nest.
pub const EXPRESSION_DEPTH_MAX: u32 = 100;
/// Operations in a compiled expression; longer ones are parsed at each use.
const COMPILED_NODES_MAX: u32 = 200;
/// Integers beyond this print in exponent form, so they are kept as floats.
const INTEGER_LIMIT: i64 = 1_000_000_000_000_000_000;
/// What division by zero or by text gives.
const DIVIDED_BY_NOTHING: i64 = 2_147_483_647;

/// A value inside an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A whole number below 10^18.
    Int(i64),
    /// Any other number.
    Num(Float),
    /// A number that came as text and prints as it came: `007`, `1.0`.
    Digits(String),
    /// Text, quotes included.
    Text(String),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Anchored,
    Search,
    Join,
}

impl Op {
    /// Binding strength, 1 weakest.
    fn level(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => 3,
            Self::Add | Self::Sub => 4,
            Self::Mul | Self::Div | Self::Rem => 5,
            Self::Anchored | Self::Search | Self::Join => MATCH_LEVEL,
        }
    }
}

/// Level of the signs; the match operators bind tighter.
const SIGN_LEVEL: u8 = 6;
const MATCH_LEVEL: u8 = 7;

#[derive(Debug, Clone, PartialEq)]
enum Token<A> {
    Atom(A),
    Op(Op),
    Not,
    Question,
    Else,
    Open,
    Close,
    Comma,
    /// A name directly before an opening parenthesis, which it includes.
    Call(String),
}

/// What the parser makes of an expression: a value at once, or a tree.
trait Build {
    type Atom;
    type Node;
    fn atom(&mut self, atom: Self::Atom) -> Self::Node;
    fn binary(&mut self, op: Op, a: Self::Node, b: Self::Node) -> Result<Self::Node, Broken>;
    fn negate(&mut self, a: Self::Node) -> Result<Self::Node, Broken>;
    fn not(&mut self, a: Self::Node) -> Result<Self::Node, Broken>;
    fn choose(&mut self, test: Self::Node, yes: Self::Node, no: Self::Node) -> Result<Self::Node, Broken>;
    fn call(&mut self, name: &str, args: Vec<Self::Node>) -> Result<Self::Node, Broken>;
}

struct Parser<'b, B: Build> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token<B::Atom>>>,
    build: &'b mut B,
    depth: u32,
}

impl<B: Build> Parser<'_, B> {
    fn deeper(&mut self) -> Result<(), Broken> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return Err(Broken(format!("nested more than {EXPRESSION_DEPTH_MAX} deep")));
        }
        Ok(())
    }
    fn whole(&mut self) -> Result<B::Node, Broken> {
        let node = self.choice()?;
        match self.tokens.next() {
            None => Ok(node),
            Some(_) => Err(Broken("syntax error: an operator is missing".to_owned())),
        }
    }
    fn choice(&mut self) -> Result<B::Node, Broken> {
        self.deeper()?;
        let test = self.binary(1)?;
        let node = if matches!(self.tokens.peek(), Some(Token::Question)) {
            self.tokens.next();
            let yes = self.choice()?;
            if !matches!(self.tokens.next(), Some(Token::Else)) {
                return Err(Broken("syntax error: `?` without `::`".to_owned()));
            }
            let no = self.choice()?;
            self.build.choose(test, yes, no)?
        } else {
            test
        };
        self.depth -= 1;
        Ok(node)
    }
    fn binary(&mut self, level: u8) -> Result<B::Node, Broken> {
        if level == SIGN_LEVEL {
            return self.signed();
        }
        let mut left = if level == MATCH_LEVEL { self.primary()? } else { self.binary(level + 1)? };
        while let Some(&Token::Op(op)) = self.tokens.peek()
            && op.level() == level
        {
            self.tokens.next();
            let right = if level == MATCH_LEVEL { self.operand()? } else { self.binary(level + 1)? };
            left = self.build.binary(op, left, right)?;
        }
        Ok(left)
    }
    /// The right side of a match operator, which may carry a sign.
    fn operand(&mut self) -> Result<B::Node, Broken> {
        match self.tokens.peek() {
            Some(Token::Not | Token::Op(Op::Sub)) => self.signed(),
            _ => self.primary(),
        }
    }
    fn signed(&mut self) -> Result<B::Node, Broken> {
        match self.tokens.peek() {
            Some(Token::Op(Op::Sub)) => {
                self.tokens.next();
                self.deeper()?;
                let node = self.signed()?;
                self.depth -= 1;
                self.build.negate(node)
            }
            Some(Token::Not) => {
                self.tokens.next();
                self.deeper()?;
                let node = self.signed()?;
                self.depth -= 1;
                self.build.not(node)
            }
            _ => self.binary(MATCH_LEVEL),
        }
    }
    fn primary(&mut self) -> Result<B::Node, Broken> {
        match self.tokens.next() {
            Some(Token::Atom(atom)) => Ok(self.build.atom(atom)),
            Some(Token::Open) => {
                let node = self.choice()?;
                match self.tokens.next() {
                    Some(Token::Close) => Ok(node),
                    _ => Err(Broken("syntax error: `)` is missing".to_owned())),
                }
            }
            Some(Token::Call(name)) => {
                let mut args = Vec::new();
                if matches!(self.tokens.peek(), Some(Token::Close)) {
                    self.tokens.next();
                    return self.build.call(&name, args);
                }
                loop {
                    args.push(self.choice()?);
                    match self.tokens.next() {
                        Some(Token::Comma) => {}
                        Some(Token::Close) => return self.build.call(&name, args),
                        _ => return Err(Broken(format!("syntax error: `)` of {name}() is missing"))),
                    }
                }
            }
            _ => Err(Broken("syntax error: a value is missing".to_owned())),
        }
    }
}

fn is_word(symbol: char) -> bool {
    symbol.is_ascii_alphanumeric()
        || matches!(symbol, '.' | '\'' | ';' | '\\' | '_' | '^' | '#' | '@')
        || !symbol.is_ascii()
}

/// Cuts one operator or bracket off the front of `text`; the second part says how many bytes it took.
fn symbol<A>(text: &str) -> Option<(Token<A>, usize)> {
    let bytes = text.as_bytes();
    let next = bytes.get(1).copied();
    let one = |token| Some((token, 1));
    let two = |token| Some((token, 2));
    match (*bytes.first()?, next) {
        (b'|', Some(b'|')) => two(Token::Op(Op::Or)),
        (b'|', _) => one(Token::Op(Op::Or)),
        (b'&', Some(b'&')) => two(Token::Op(Op::And)),
        (b'&', _) => one(Token::Op(Op::And)),
        (b'=', Some(b'=')) => two(Token::Op(Op::Eq)),
        (b'=', Some(b'~')) => two(Token::Op(Op::Search)),
        (b'=', _) => one(Token::Op(Op::Eq)),
        (b'!', Some(b'=')) => two(Token::Op(Op::Ne)),
        (b'!', _) => one(Token::Not),
        (b'<', Some(b'=')) => two(Token::Op(Op::Le)),
        (b'<', _) => one(Token::Op(Op::Lt)),
        (b'>', Some(b'=')) => two(Token::Op(Op::Ge)),
        (b'>', _) => one(Token::Op(Op::Gt)),
        (b'~', Some(b'~')) => two(Token::Op(Op::Join)),
        (b':', Some(b':')) => two(Token::Else),
        (b':', _) => one(Token::Op(Op::Anchored)),
        (b'+', _) => one(Token::Op(Op::Add)),
        (b'-', _) => one(Token::Op(Op::Sub)),
        (b'*', _) => one(Token::Op(Op::Mul)),
        (b'/', _) => one(Token::Op(Op::Div)),
        (b'%', _) => one(Token::Op(Op::Rem)),
        (b'?', _) => one(Token::Question),
        (b'(', _) => one(Token::Open),
        (b')', _) => one(Token::Close),
        (b',', _) => one(Token::Comma),
        _ => None,
    }
}

fn tokens(text: &str) -> Result<Vec<Token<Value>>, Broken> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_whitespace() {
            rest = rest.get(1..).unwrap_or("");
        } else if first == '"' {
            let end = rest.get(1..).and_then(|tail| tail.find('"'));
            let end = end.ok_or_else(|| Broken("syntax error: a quote is not closed".to_owned()))? + 2;
            tokens.push(Token::Atom(Value::Text(rest.get(..end).unwrap_or("").to_owned())));
            rest = rest.get(end..).unwrap_or("");
        } else if is_word(first) {
            let end = rest.find(|symbol| !is_word(symbol)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if after.starts_with('(') && first.is_ascii_alphabetic() {
                tokens.push(Token::Call(word.to_owned()));
                rest = after.get(1..).unwrap_or("");
            } else {
                tokens.push(Token::Atom(Value::classify(word)));
                rest = after;
            }
        } else {
            let (token, taken) =
                symbol(rest).ok_or_else(|| Broken(format!("syntax error: `{first}` has no meaning here")))?;
            tokens.push(token);
            rest = rest.get(taken..).unwrap_or("");
        }
    }
    Ok(tokens)
}

/// Reads a canonical decimal (no sign, no leading zero, at most 18 digits).
fn plain_integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 18 || (bytes.len() > 1 && bytes.first() == Some(&b'0')) {
        return None;
    }
    bytes.iter().try_fold(0i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// `digits` or `digits.digits`.
fn is_number(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

impl Value {
    /// A bare word: a number when it is written as one.
    fn classify(word: &str) -> Self {
        match plain_integer(word) {
            Some(value) => Self::Int(value),
            None if is_number(word) => Self::Digits(word.to_owned()),
            None => Self::Text(word.to_owned()),
        }
    }
    /// What came out of a regex or a function: a number when all of it is one, sign allowed.
    fn from_answer(text: &str) -> Self {
        match text.strip_prefix('-') {
            Some(size) if is_number(size) => Self::Digits(text.to_owned()),
            _ => Self::classify(text),
        }
    }
    fn from_float(value: Float) -> Self {
        value.to_integer().map_or(Self::Num(value), Self::Int)
    }
    /// The number, if it is one. Text that reads wholly as a number counts; quotes spoil that.
    fn number(&self) -> Option<Float> {
        match self {
            Self::Int(value) => Some(Float::from_i64(*value)),
            Self::Num(value) => Some(*value),
            Self::Digits(text) | Self::Text(text) => Float::parse(text.trim()),
        }
    }
    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Int(value) => write_integer(*value, out),
            Self::Num(value) => value.write(out),
            Self::Digits(text) | Self::Text(text) => out.push_str(text),
        }
    }
    fn into_text(self) -> String {
        match self {
            Self::Digits(text) | Self::Text(text) => text,
            number => {
                let mut text = String::new();
                number.write(&mut text);
                text
            }
        }
    }
    /// Empty or zero, as `|`, `&` and `!` see it.
    fn is_nothing(&self) -> bool {
        match self {
            Self::Int(value) => *value == 0,
            Self::Text(text) if text.is_empty() => true,
            other => other.number().is_some_and(Float::is_zero),
        }
    }
}

fn strip_quotes(text: &str) -> &str {
    match text.strip_prefix('"') {
        Some(inner) => inner.strip_suffix('"').unwrap_or(inner),
        None => text,
    }
}

fn truth(yes: bool) -> Value {
    Value::Int(i64::from(yes))
}

fn compare(op: Op, a: &Value, b: &Value) -> Value {
    let ordering = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        _ if a.is_text() || b.is_text() => {
            let (mut left, mut right) = (String::new(), String::new());
            a.write(&mut left);
            b.write(&mut right);
            Some(left.as_bytes().cmp(right.as_bytes()))
        }
        _ => a.number().zip(b.number()).and_then(|(a, b)| a.cmp(b)),
    };
    let Some(ordering) = ordering else { return truth(op == Op::Ne) };
    truth(match op {
        Op::Eq => ordering == Ordering::Equal,
        Op::Ne => ordering != Ordering::Equal,
        Op::Lt => ordering == Ordering::Less,
        Op::Le => ordering != Ordering::Greater,
        Op::Gt => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    })
}

fn arithmetic(op: Op, a: &Value, b: &Value) -> Value {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        let whole = match op {
            Op::Add => a.checked_add(*b),
            Op::Sub => a.checked_sub(*b),
            Op::Mul => a.checked_mul(*b),
            Op::Div if *b != 0 && a % b == 0 => Some(a / b),
            Op::Rem if *b != 0 => Some(a % b),
            _ => None,
        };
        if let Some(whole) = whole.filter(|whole| whole.unsigned_abs() < INTEGER_LIMIT.unsigned_abs()) {
            return Value::Int(whole);
        }
    }
    let (left, right) = (a.number(), b.number());
    Value::from_float(match (op, left, right) {
        (Op::Add, ..) => left.unwrap_or(Float::ZERO).add(right.unwrap_or(Float::ZERO)),
        (Op::Sub, ..) => left.unwrap_or(Float::ZERO).sub(right.unwrap_or(Float::ZERO)),
        (Op::Mul, Some(a), Some(b)) => a.mul(b),
        (Op::Div, None, _) => Float::ZERO,
        (Op::Div, Some(_), None) => Float::from_i64(DIVIDED_BY_NOTHING),
        (Op::Div, Some(_), Some(b)) if b.is_zero() => Float::from_i64(DIVIDED_BY_NOTHING),
        (Op::Div, Some(a), Some(b)) => a.div(b),
        (Op::Rem, Some(a), Some(b)) if !b.is_zero() => a.rem(b),
        _ => Float::ZERO,
    })
}

fn matching(op: Op, a: Value, b: Value) -> Result<Value, Broken> {
    let (subject, pattern) = (a.into_text(), b.into_text());
    let (subject, pattern) = (strip_quotes(&subject), strip_quotes(&pattern));
    if op == Op::Join {
        return Ok(Value::from_answer(&format!("{subject}{pattern}")));
    }
    let regex = Regex::new(pattern).map_err(|why| Broken(format!("regex `{pattern}`: {why}")))?;
    let found = regex.find(subject).filter(|found| op == Op::Search || found.start == 0);
    Ok(if regex.groups() > 0 {
        let group = found.and_then(|found| found.group(1)).and_then(|range| subject.get(range));
        Value::from_answer(group.unwrap_or(""))
    } else {
        Value::Int(found.map_or(0, |found| i64::try_from(found.end - found.start).unwrap_or(i64::MAX)))
    })
}

fn binary(op: Op, a: Value, b: Value) -> Result<Value, Broken> {
    Ok(match op {
        Op::Or if a.is_nothing() => b,
        Op::Or => a,
        Op::And if a.is_nothing() || b.is_nothing() => Value::Int(0),
        Op::And => a,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => compare(op, &a, &b),
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem => arithmetic(op, &a, &b),
        Op::Anchored | Op::Search | Op::Join => matching(op, a, b)?,
    })
}

fn negate(a: &Value) -> Value {
    match a {
        Value::Int(value) => Value::Int(-value),
        other => Value::from_float(other.number().map_or(Float::ZERO, Float::neg)),
    }
}

fn not(a: &Value) -> Value {
    truth(match a {
        Value::Text(text) if a.number().is_none() => {
            crate::template::leading_integer(text).0.unwrap_or(0) == 0
        }
        other => other.is_nothing(),
    })
}

/// Whether `?` takes its first branch: an empty quoted string counts as nothing here.
fn chosen(test: &Value) -> bool {
    match test {
        Value::Text(text) => !(text.is_empty() || text == "\"\"" || text == "0"),
        other => !other.is_nothing(),
    }
}

struct Evaluate<'e> {
    env: &'e mut dyn Env,
}

impl Build for Evaluate<'_> {
    type Atom = Value;
    type Node = Value;
    fn atom(&mut self, atom: Value) -> Value {
        atom
    }
    fn binary(&mut self, op: Op, a: Value, b: Value) -> Result<Value, Broken> {
        binary(op, a, b)
    }
    fn negate(&mut self, a: Value) -> Result<Value, Broken> {
        Ok(negate(&a))
    }
    fn not(&mut self, a: Value) -> Result<Value, Broken> {
        Ok(not(&a))
    }
    fn choose(&mut self, test: Value, yes: Value, no: Value) -> Result<Value, Broken> {
        Ok(if chosen(&test) { yes } else { no })
    }
    fn call(&mut self, name: &str, args: Vec<Value>) -> Result<Value, Broken> {
        let numbers: Vec<Float> = args.iter().map(|arg| arg.number().unwrap_or(Float::ZERO)).collect();
        if let Some(answer) = crate::mathfn::call(name, &numbers) {
            return answer.map(Value::from_float).map_err(Broken);
        }
        let program = self.env.program();
        let Some(id) = program.functions().lookup(name) else {
            return Err(Broken(format!("function {name}() does not exist")));
        };
        let text = args.into_iter().map(Value::into_text).collect::<Vec<_>>().join(",");
        let mut answer = String::new();
        call_read(self.env, Some(id), name, &text, &mut answer);
        Ok(Value::from_answer(&answer))
    }
}

/// Evaluates the text of an expression; `None` when there is nothing in it.
pub(crate) fn evaluate(env: &mut dyn Env, text: &str) -> Result<Option<Value>, Broken> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut build = Evaluate { env };
    Parser { tokens: tokens.into_iter().peekable(), build: &mut build, depth: 0 }.whole().map(Some)
}

/// Appends an expression's value. A broken one gives `0` and a warning.
pub(crate) fn expand_expression(env: &mut dyn Env, text: &str, out: &mut String) {
    match evaluate(env, text) {
        Ok(Some(value)) => value.write(out),
        Ok(None) => {}
        Err(Broken(why)) => {
            env.log(Level::Warning, &format!("$[{text}]: {why}"));
            out.push('0');
        }
    }
}

/// The tree of a compiled expression.
#[derive(Debug, Clone)]
enum Node {
    Constant(Value),
    /// A run of word characters and variables that must come out as one number or word.
    Word(Template),
    /// The same between quotes.
    Quoted(Template),
    Binary(Op, Box<Node>, Box<Node>),
    /// A match against a pattern known at load.
    Match {
        op: Op,
        subject: Box<Node>,
        regex: Box<Regex>,
    },
    Negate(Box<Node>),
    Not(Box<Node>),
    Choose(Box<[Node; 3]>),
}

/// The compiled form does not hold for what the variables turned out to be.
struct Mismatch;

struct Compile {
    nodes: u32,
}

impl Compile {
    fn count(&mut self) -> Result<(), Broken> {
        self.nodes += 1;
        if self.nodes > COMPILED_NODES_MAX {
            return Err(Broken("too long to compile".to_owned()));
        }
        Ok(())
    }
}

impl Build for Compile {
    type Atom = Node;
    type Node = Node;
    fn atom(&mut self, atom: Node) -> Node {
        atom
    }
    fn binary(&mut self, op: Op, a: Node, b: Node) -> Result<Node, Broken> {
        self.count()?;
        if let (Op::Anchored | Op::Search, Node::Constant(value)) = (op, &b) {
            let text = value.clone().into_text();
            if let Ok(regex) = Regex::new(strip_quotes(&text)) {
                return Ok(Node::Match { op, subject: Box::new(a), regex: Box::new(regex) });
            }
        }
        Ok(Node::Binary(op, Box::new(a), Box::new(b)))
    }
    fn negate(&mut self, a: Node) -> Result<Node, Broken> {
        self.count()?;
        Ok(Node::Negate(Box::new(a)))
    }
    fn not(&mut self, a: Node) -> Result<Node, Broken> {
        self.count()?;
        Ok(Node::Not(Box::new(a)))
    }
    fn choose(&mut self, test: Node, yes: Node, no: Node) -> Result<Node, Broken> {
        self.count()?;
        Ok(Node::Choose(Box::new([test, yes, no])))
    }
    fn call(&mut self, _: &str, _: Vec<Node>) -> Result<Node, Broken> {
        Err(Broken("functions are called at run time".to_owned()))
    }
}

impl Node {
    fn value(&self, env: &mut dyn Env, scratch: &mut String) -> Result<Value, Mismatch> {
        let broken = |_: Broken| Mismatch;
        Ok(match self {
            Self::Constant(value) => value.clone(),
            Self::Word(template) => {
                let from = scratch.len();
                match template.pieces.as_slice() {
                    [Piece::Variable { name, builtin, slice: SliceSpec::Whole }] => {
                        read_variable(env, name.as_var(), *builtin, scratch);
                    }
                    _ => template.expand(env, scratch),
                }
                let value = single_word(scratch.get(from..).unwrap_or(""));
                scratch.truncate(from);
                value.ok_or(Mismatch)?
            }
            Self::Quoted(template) => {
                let mut text = String::from('"');
                template.expand(env, &mut text);
                text.push('"');
                let inner = text.get(1..text.len() - 1).unwrap_or("");
                if inner.contains('"') {
                    return Err(Mismatch);
                }
                Value::Text(text)
            }
            Self::Binary(op, a, b) => {
                let a = a.value(env, scratch)?;
                let b = b.value(env, scratch)?;
                binary(*op, a, b).map_err(broken)?
            }
            Self::Match { op, subject, regex } => {
                let subject = subject.value(env, scratch)?.into_text();
                let subject = strip_quotes(&subject);
                let found = regex.find(subject).filter(|found| *op == Op::Search || found.start == 0);
                if regex.groups() > 0 {
                    let group = found.and_then(|found| found.group(1)).and_then(|range| subject.get(range));
                    Value::from_answer(group.unwrap_or(""))
                } else {
                    let length = found.map_or(0, |found| found.end - found.start);
                    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
                }
            }
            Self::Negate(a) => negate(&a.value(env, scratch)?),
            Self::Not(a) => not(&a.value(env, scratch)?),
            Self::Choose(parts) => {
                let [test, yes, no] = &**parts;
                // All three are evaluated, as text substitution would; a mismatch in any spoils the whole.
                let test = test.value(env, scratch)?;
                let (yes, no) = (yes.value(env, scratch)?, no.value(env, scratch)?);
                if chosen(&test) { yes } else { no }
            }
        })
    }
}

/// The value of text that is exactly one bare word.
fn single_word(text: &str) -> Option<Value> {
    if let Some(value) = plain_integer(text) {
        return Some(Value::Int(value));
    }
    (!text.is_empty() && text.chars().all(is_word)).then(|| Value::classify(text))
}

/// Turns literal text and plain variables into tokens; `None` where a token's end depends on a value.
fn compiled_tokens(template: &Template) -> Option<Vec<Token<Node>>> {
    let mut tokens = Vec::new();
    // The word or quoted text that is being put together.
    let mut word: Vec<Piece> = Vec::new();
    let mut quoted: Option<Vec<Piece>> = None;
    for piece in &template.pieces {
        let Piece::Text(text) = piece else {
            if !matches!(piece, Piece::Variable { slice: SliceSpec::Whole | SliceSpec::Fixed(_), .. }) {
                return None;
            }
            quoted.as_mut().unwrap_or(&mut word).push(piece.clone());
            continue;
        };
        let mut rest: &str = text;
        while let Some(first) = rest.chars().next() {
            if let Some(parts) = &mut quoted {
                let end = rest.find('"').unwrap_or(rest.len());
                let (inner, after) = rest.split_at(end);
                if !inner.is_empty() {
                    parts.push(Piece::Text(inner.into()));
                }
                rest = after;
                if let Some(after) = after.strip_prefix('"') {
                    tokens.push(Token::Atom(quoted_node(quoted.take().unwrap_or_default())));
                    rest = after;
                }
                continue;
            }
            if is_word(first) {
                let end = rest.find(|symbol| !is_word(symbol)).unwrap_or(rest.len());
                let (part, after) = rest.split_at(end);
                word.push(Piece::Text(part.into()));
                rest = after;
                continue;
            }
            let had_word = !word.is_empty();
            if had_word {
                if first == '(' || first == '"' {
                    return None;
                }
                tokens.push(Token::Atom(word_node(std::mem::take(&mut word))));
            }
            if first == '"' {
                quoted = Some(Vec::new());
                rest = rest.get(1..).unwrap_or("");
            } else if first.is_ascii_whitespace() {
                rest = rest.get(1..).unwrap_or("");
            } else {
                let (token, taken) = symbol(rest)?;
                tokens.push(token);
                rest = rest.get(taken..).unwrap_or("");
            }
        }
    }
    if quoted.is_some() {
        return None;
    }
    if !word.is_empty() {
        tokens.push(Token::Atom(word_node(word)));
    }
    Some(tokens)
}

fn word_node(pieces: Vec<Piece>) -> Node {
    let template = Template { pieces };
    match template.literal() {
        Some(text) => Node::Constant(Value::classify(text)),
        None => Node::Word(template),
    }
}

fn quoted_node(pieces: Vec<Piece>) -> Node {
    let template = Template { pieces };
    match template.literal() {
        Some(text) => Node::Constant(Value::Text(format!("\"{text}\""))),
        None => Node::Quoted(template),
    }
}

/// An expression in a template: its text, and its tree where that is fixed.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    text: Template,
    tree: Option<Node>,
}

impl Expression {
    pub(crate) fn new(text: Template) -> Self {
        let tree = compiled_tokens(&text).filter(|tokens| !tokens.is_empty()).and_then(|tokens| {
            let mut build = Compile { nodes: 0 };
            Parser { tokens: tokens.into_iter().peekable(), build: &mut build, depth: 0 }.whole().ok()
        });
        Self { text, tree }
    }
    pub(crate) fn expand(&self, env: &mut dyn Env, out: &mut String) {
        if let Some(tree) = &self.tree
            && let Ok(value) = tree.value(env, out)
        {
            value.write(out);
            return;
        }
        self.expand_slowly(env, out);
    }
    /// By text, as the short cut must agree with.
    pub(crate) fn expand_slowly(&self, env: &mut dyn Env, out: &mut String) {
        let mut text = String::new();
        self.text.expand(env, &mut text);
        expand_expression(env, &text, out);
    }
    #[cfg(test)]
    pub(crate) fn is_compiled(&self) -> bool {
        self.tree.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testenv::TestEnv;

    #[test]
    fn section_6_values_seen_on_a_running_asterisk() {
        let mut env = TestEnv::new();
        for (text, expected) in [
            (r#"$["1" = 1]"#, "0"),
            ("$[1 = 1.0]", "1"),
            (r#"$["" | 0]"#, r#""""#),
            ("$[3 & 4]", "3"),
            ("$[1 + ]", "0"),
            ("$[]", ""),
            ("$[1/3]", "0.333333333333333333"),
            ("$[!abc]", "1"),
            (r#"$[!""]"#, "1"),
            (r#"$["10" > "9"]"#, "0"),
            (r#"$["abc" =~ "([0-9])"]"#, ""),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn section_6_operators_and_types() {
        let mut env = TestEnv::new();
        for (text, expected) in [
            ("$[1+2*3]", "7"),
            ("$[(1+2)*3]", "9"),
            ("$[10-4-3]", "3"),
            ("$[1/4]", "0.25"),
            ("$[10/2]", "5"),
            ("$[7%3]", "1"),
            ("$[5.5 % 2]", "1.5"),
            ("$[-3 + 5]", "2"),
            ("$[abc - 5]", "-5"),
            ("$[abc * 5]", "0"),
            ("$[abc / 5]", "0"),
            ("$[5 / 0]", "2147483647"),
            ("$[5 / abc]", "2147483647"),
            ("$[5 % abc]", "0"),
            ("$[\"1\" + 1]", "1"),
            ("$[1 < 2]", "1"),
            ("$[10 > 9]", "1"),
            ("$[2 >= 2]", "1"),
            ("$[2 != 2]", "0"),
            ("$[2 == 2]", "1"),
            ("$[a < b]", "1"),
            ("$[\"a\" = \"a\"]", "1"),
            ("$[\"a\" = \"A\"]", "0"),
            ("$[0 | 5]", "5"),
            ("$[4 || 5]", "4"),
            ("$[0 && 5]", "0"),
            ("$[!0]", "1"),
            ("$[!5]", "0"),
            ("$[!5a]", "0"),
            ("$[1 ? 2 :: 3]", "2"),
            ("$[0 ? 2 :: 3]", "3"),
            ("$[\"\" ? 2 :: 3]", "3"),
            ("$[0 ? 1 :: 0 ? 2 :: 3]", "3"),
            ("$[\"hello\" : \"h.l\"]", "3"),
            ("$[\"hello\" : \"(h.l)\"]", "hel"),
            ("$[\"hello\" : \"l\"]", "0"),
            ("$[\"hello\" =~ \"l+\"]", "2"),
            ("$[\"5551234\" =~ \"^([0-9]{3})\"]", "555"),
            ("$[\"abc\" ~~ \"def\"]", "abcdef"),
            ("$[007]", "007"),
            ("$[007 + 0]", "7"),
            ("$[1.0 | 0]", "1.0"),
            ("$[999999999999999999 + 1]", "1e+18"),
            ("$[123456789 * 1000]", "123456789000"),
            ("$[0.1 + 0.2 = 0.3]", "1"),
            ("$[SQRT(16)]", "4"),
            ("$[SQRT(2)]", "1.41421356237309505"),
            ("$[POW(2,10) + 1]", "1025"),
            ("$[FLOOR(2.7) + CEIL(2.2)]", "5"),
            ("$[ROUND(2.5) - ROUND(-2.5)]", "6"),
            ("$[RINT(2.5)]", "2"),
            ("$[TRUNC(-2.7)]", "-2"),
            ("$[REMAINDER(7,4)]", "-1"),
            ("$[LOG10(1000)]", "3"),
            ("$[2 + 3 = 5 & 1]", "2"),
            ("$[ 1\t+\n2 ]", "3"),
            ("$[1 $ 2]", "0"),
            ("$[(1]", "0"),
            ("$[1 2]", "0"),
        ] {
            let expected = if text == "$[2 + 3 = 5 & 1]" { "1" } else { expected };
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn a_broken_expression_gives_zero_and_says_why() {
        let mut env = TestEnv::new();
        assert_eq!(env.expand("x$[1 + ]y"), "x0y");
        assert!(env.logs.iter().any(|line| line.contains("1 + ")), "{:?}", env.logs);
    }

    #[test]
    fn deep_nesting_ends_as_an_error_not_a_crash() {
        let mut env = TestEnv::new();
        assert_eq!(env.expand(&format!("$[{}1{}]", "(".repeat(20_000), ")".repeat(20_000))), "0");
        assert_eq!(env.expand(&format!("$[{}1]", "!".repeat(20_000))), "0");
        assert_eq!(env.expand(&format!("$[0{}]", "+1".repeat(10_000))), "10000");
        assert_eq!(env.expand(&format!("$[{}1{}]", "1?".repeat(5_000), "::2".repeat(5_000))), "0");
    }

    fn expression(env: &TestEnv, text: &str) -> Expression {
        Expression::new(Template::compile(text, env.program.symbols(), env.program.functions()))
    }

    proptest::proptest! {
        #[test]
        fn compiled_expressions_equal_their_text(
            text in r#"(\$\{a\}|\$\{b\}|"\$\{a\}"|"|[0-9]{1,3}|[+*/%=<>&|!?:~() -]|abc){0,8}"#,
            a in r#"[0-9]{1,4}|-?[0-9]\.[0-9]|[a-c"(+ -]{0,3}"#,
            b in r"[0-9]{0,2}|x",
        ) {
            let mut env = TestEnv::new();
            env.set("a", &a);
            env.set("b", &b);
            let compiled = expression(&env, &text);
            let (mut fast, mut slow) = (String::new(), String::new());
            compiled.expand(&mut env, &mut fast);
            compiled.expand_slowly(&mut env, &mut slow);
            proptest::prop_assert_eq!(fast, slow);
        }

        #[test]
        fn no_expression_panics(text in "[0-9a-z\"+*/%=<>&|!?:~(), .-]{0,40}") {
            let mut out = String::new();
            expand_expression(&mut TestEnv::new(), &text, &mut out);
        }
    }

    #[test]
    fn loops_of_plain_variables_take_the_compiled_path() {
        let env = TestEnv::new();
        for text in ["${i}+1", "${i}<1000000", "\"${x}\"=\"\"", "${a:1}*${b}", "\"${x}\" =~ \"^[0-9]+$\""] {
            assert!(expression(&env, text).is_compiled(), "{text}");
        }
        assert!(!expression(&env, "${LEN(${x})} > 3").is_compiled());
    }
}
