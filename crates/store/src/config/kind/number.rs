//! Numbers as the field reads them.

use conf::{Finding, Findings, Level, Variable};
use std::ops::RangeInclusive;

/// What there is to say of text behind a number, which the field does not read either.
pub(super) fn tell_rest(variable: &Variable, rest: &str, notes: &mut Findings) {
    if !rest.is_empty() {
        let message = format!("{}={}: `{rest}` behind the number is not read", variable.name, variable.value);
        notes.push(variable.finding(Level::Warning, message, "remove it; a comment begins with `;`"));
    }
}

/// An empty value, or a number out of range: the line has no effect, and what it belongs to goes on.
pub(super) fn no_effect(variable: &Variable, why: &str, remedy: &str) -> Finding {
    let message = format!("{}={} {why}; the default holds", variable.name, variable.value);
    variable.finding(Level::Warning, message, remedy)
}

/// A whole number as the field takes it: what stands behind it is not read, and of a number that is out of range the rest
/// of the object does not suffer. One that is too large is the largest there is.
pub(super) fn whole(
    variable: &Variable,
    range: RangeInclusive<u32>,
    notes: &mut Findings,
) -> Result<u32, Finding> {
    let (low, high) = (*range.start(), *range.end());
    if variable.value.is_empty() {
        return Err(no_effect(variable, "is empty", "write a number, or remove the line"));
    }
    let Some((number, rest)) = variable.leading_integer() else { return variable.integer(range) };
    if number < i64::from(low) {
        let remedy = format!("write {low} or more, or remove the line");
        return Err(no_effect(variable, &format!("is less than {low}"), &remedy));
    }
    tell_rest(variable, rest, notes);
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    if number > high {
        let message = format!("{}={} is more than {high}, which holds", variable.name, variable.value);
        notes.push(variable.finding(Level::Warning, message, format!("write {high} or less")));
    }
    Ok(number.min(high))
}

/// The same for a decimal number.
pub(super) fn decimal(
    variable: &Variable,
    range: RangeInclusive<f64>,
    notes: &mut Findings,
) -> Result<f64, Finding> {
    let (low, high) = (*range.start(), *range.end());
    if variable.value.is_empty() {
        return Err(no_effect(variable, "is empty", "write a number, or remove the line"));
    }
    let Some((number, rest)) = variable.leading_decimal() else { return variable.decimal(range) };
    if number < low {
        let remedy = format!("write {low} or more, or remove the line");
        return Err(no_effect(variable, &format!("is less than {low}"), &remedy));
    }
    tell_rest(variable, rest, notes);
    if number > high {
        let message = format!("{}={} is more than {high}, which holds", variable.name, variable.value);
        notes.push(variable.finding(Level::Warning, message, format!("write {high} or less")));
    }
    Ok(number.min(high))
}
