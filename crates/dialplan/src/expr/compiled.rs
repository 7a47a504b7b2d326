//! Expressions in which only plain variables vary, as trees.

use super::expand_expression;
use super::grammar::{Build, Op, Token, Values, is_word, parse, symbol};
use super::value::{Broken, Value, binary, chosen, matched, negate, not, plain_integer, strip_quotes};
use crate::env::Env;
use crate::ere::Regex;
use crate::template::{Piece, SliceSpec, Template, read_variable};

/// Operations in a compiled expression; longer ones are parsed at each use.
const COMPILED_NODES_MAX: u32 = 200;

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
                Value::Text(text)
            }
            Self::Binary(op, a, b) => {
                let a = a.value(env, scratch)?;
                let b = b.value(env, scratch)?;
                binary(*op, a, b).map_err(broken)?
            }
            Self::Match { op, subject, regex } => {
                let subject = subject.value(env, scratch)?.into_text();
                matched(*op, regex, strip_quotes(&subject))
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
        let tokens = compiled_tokens(&text).filter(|tokens| !tokens.is_empty());
        let tree = tokens.and_then(|tokens| parse(tokens, &mut Compile { nodes: 0 }).ok());
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
        let (mut text, mut values) = (String::new(), Vec::new());
        self.text.expand_marked(env, &mut text, &mut values);
        expand_expression(env, &text, Values(&values), out);
    }
    #[cfg(test)]
    pub(crate) fn is_compiled(&self) -> bool {
        self.tree.is_some()
    }
}
