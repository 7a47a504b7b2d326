//! The grammar: words and symbols, and what binds how tightly.

use super::value::{Broken, Value};

/// How deep parentheses and signs may nest.
pub const EXPRESSION_DEPTH_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
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
pub(super) enum Token<A> {
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
pub(super) trait Build {
    type Atom;
    type Node;
    fn atom(&mut self, atom: Self::Atom) -> Self::Node;
    fn binary(&mut self, op: Op, a: Self::Node, b: Self::Node) -> Result<Self::Node, Broken>;
    fn negate(&mut self, a: Self::Node) -> Result<Self::Node, Broken>;
    fn not(&mut self, a: Self::Node) -> Result<Self::Node, Broken>;
    fn choose(&mut self, test: Self::Node, yes: Self::Node, no: Self::Node) -> Result<Self::Node, Broken>;
    fn call(&mut self, name: &str, args: Vec<Self::Node>) -> Result<Self::Node, Broken>;
}

/// Builds what the tokens say; an error when they are no expression.
pub(super) fn parse<B: Build>(tokens: Vec<Token<B::Atom>>, build: &mut B) -> Result<B::Node, Broken> {
    Parser { tokens: tokens.into_iter().peekable(), build, depth: 0 }.whole()
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

pub(super) fn is_word(symbol: char) -> bool {
    symbol.is_ascii_alphanumeric()
        || matches!(symbol, '.' | '\'' | ';' | '\\' | '_' | '^' | '#' | '@')
        || !symbol.is_ascii()
}

/// Cuts one operator or bracket off the front of `text`; the second part says how many bytes it took.
pub(super) fn symbol<A>(text: &str) -> Option<(Token<A>, usize)> {
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

/// Where in an expression's text values were put in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'v>(pub(super) &'v [std::ops::Range<usize>]);

impl<'v> Values<'v> {
    /// The value that the byte at `at` came with.
    fn around(self, at: usize) -> Option<&'v std::ops::Range<usize>> {
        // They stand in order and do not overlap.
        let after = self.0.partition_point(|value| value.end <= at);
        self.0.get(after).filter(|value| value.contains(&at))
    }
}

/// Where the text ends whose opening quotation mark stands at `open`: a value between marks of the dialplan closes
/// nothing, and one that opens a text itself has to close it.
fn closing_quote(text: &str, values: Values<'_>, open: usize) -> Option<usize> {
    let opener = values.around(open);
    let mut marks = text.match_indices('"').map(|(at, _)| at).filter(|at| *at > open);
    marks.find(|at| values.around(*at) == opener)
}

pub(super) fn tokens(text: &str, values: Values<'_>) -> Result<Vec<Token<Value>>, Broken> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        if first.is_ascii_whitespace() {
            rest = rest.get(1..).unwrap_or("");
        } else if first == '"' {
            let end = closing_quote(text, values, at);
            let end = end.ok_or_else(|| Broken("syntax error: a quote is not closed".to_owned()))? + 1 - at;
            tokens.push(Token::Atom(Value::Text(rest.get(..end).unwrap_or("").to_owned())));
            rest = rest.get(end..).unwrap_or("");
        } else if is_word(first) {
            let end = rest.find(|symbol| !is_word(symbol)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if after.starts_with('(') && first.is_ascii_alphabetic() {
                if values.around(at).is_some() && !crate::mathfn::is_known(word) {
                    return Err(Broken(format!("a value names the function {word}(), which is not called")));
                }
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
