//! Numbers as the field reads them.

use super::tell_rest;
use conf::{Finding, Findings, Level, Variable};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// An empty value, or a number out of range: the line has no effect, and what it belongs to goes on.
pub(super) fn no_effect(variable: &Variable, why: &str, remedy: &str) -> Finding {
    let message = format!("{}={} {why}; the default holds", variable.name, variable.value);
    variable.finding(Level::Warning, message, remedy)
}

/// A whole number as the field takes it. One that is too large is the largest there is.
pub(super) fn whole(
    variable: &Variable,
    range: RangeInclusive<u32>,
    notes: &mut Findings,
) -> Result<u32, Finding> {
    // What no field can hold is the largest that one holds, so that nothing is said where that is in the range.
    let leading = variable.leading_integer().map(|(number, rest)| (number.min(u32::MAX.into()), rest));
    let range = i64::from(*range.start())..=i64::from(*range.end());
    let number = held(variable, range, leading, Variable::integer, notes)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The same for a decimal number.
pub(super) fn decimal(
    variable: &Variable,
    range: RangeInclusive<f64>,
    notes: &mut Findings,
) -> Result<f64, Finding> {
    held(variable, range, variable.leading_decimal(), Variable::decimal, notes)
}

/// The number that a value begins with, which `plain` judges when there is none. What stands behind it is not read, and of
/// a number that is out of range the rest of the object does not suffer.
fn held<N: Copy + PartialOrd + Display>(
    variable: &Variable,
    range: RangeInclusive<N>,
    leading: Option<(N, &str)>,
    plain: fn(&Variable, RangeInclusive<N>) -> Result<N, Finding>,
    notes: &mut Findings,
) -> Result<N, Finding> {
    let (low, high) = (*range.start(), *range.end());
    if variable.value.is_empty() {
        return Err(no_effect(variable, "is empty", "write a number, or remove the line"));
    }
    let Some((number, rest)) = leading else { return plain(variable, range) };
    if number < low {
        let remedy = format!("write {low} or more, or remove the line");
        return Err(no_effect(variable, &format!("is less than {low}"), &remedy));
    }
    tell_rest(variable, "number", rest, notes);
    if number > high {
        let message = format!("{}={} is more than {high}, which holds", variable.name, variable.value);
        notes.push(variable.finding(Level::Warning, message, format!("write {high} or less")));
        return Ok(high);
    }
    Ok(number)
}
