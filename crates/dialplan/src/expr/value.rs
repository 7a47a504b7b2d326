//! Values, and what operators make of them.

use std::cmp::Ordering;

use super::grammar::Op;
use crate::ere::Regex;
use crate::num::{Float, write_integer};

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

/// Reads a canonical decimal (no sign, no leading zero, at most 18 digits).
pub(super) fn plain_integer(text: &str) -> Option<i64> {
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
    pub(super) fn classify(word: &str) -> Self {
        match plain_integer(word) {
            Some(value) => Self::Int(value),
            None if is_number(word) => Self::Digits(word.to_owned()),
            None => Self::Text(word.to_owned()),
        }
    }
    /// What came out of a regex or a function: a number when all of it is one, sign allowed.
    pub(super) fn from_answer(text: &str) -> Self {
        match text.strip_prefix('-') {
            Some(size) if is_number(size) => Self::Digits(text.to_owned()),
            _ => Self::classify(text),
        }
    }
    pub(super) fn from_float(value: Float) -> Self {
        value.to_integer().map_or(Self::Num(value), Self::Int)
    }
    /// The number, if it is one. Text that reads wholly as a number counts; quotes spoil that.
    pub(super) fn number(&self) -> Option<Float> {
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
    pub(super) fn into_text(self) -> String {
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

pub(super) fn strip_quotes(text: &str) -> &str {
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
    Ok(matched(op, &regex, subject))
}

/// What a match gives: the first group where the pattern has one, else how many bytes it covers.
pub(super) fn matched(op: Op, regex: &Regex, subject: &str) -> Value {
    let found = regex.find(subject).filter(|found| op == Op::Search || found.start == 0);
    if regex.groups() > 0 {
        let group = found.and_then(|found| found.group(1)).and_then(|range| subject.get(range));
        Value::from_answer(group.unwrap_or(""))
    } else {
        Value::Int(found.map_or(0, |found| i64::try_from(found.end - found.start).unwrap_or(i64::MAX)))
    }
}

pub(super) fn binary(op: Op, a: Value, b: Value) -> Result<Value, Broken> {
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

pub(super) fn negate(a: &Value) -> Value {
    match a {
        Value::Int(value) => Value::Int(-value),
        other => Value::from_float(other.number().map_or(Float::ZERO, Float::neg)),
    }
}

pub(super) fn not(a: &Value) -> Value {
    truth(match a {
        Value::Text(text) if a.number().is_none() => {
            crate::template::leading_integer(text).0.unwrap_or(0) == 0
        }
        other => other.is_nothing(),
    })
}

/// Whether `?` takes its first branch: an empty quoted string counts as nothing here.
pub(super) fn chosen(test: &Value) -> bool {
    match test {
        Value::Text(text) => !(text.is_empty() || text == "\"\"" || text == "0"),
        other => !other.is_nothing(),
    }
}
