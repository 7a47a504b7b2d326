//! The function table: one row a function, its code in the module of its topic.

mod channel;
mod ciphers;
mod codes;
mod digests;
mod documents;
mod lists;
mod logic;
pub(crate) mod rows;
mod storage;
mod strings;
mod times;
mod variables;

use std::borrow::Cow;

use crate::env::{Env, Fault};
use crate::registry::{Body, ChannelFunction, FunctionRow, ReadFn, WriteFn};
use crate::rights::Reach;
use crate::template::read_reference;

pub use codes::{base64_of, text_of_base64};
pub use storage::{calls, calls_of};
pub use variables::COLUMNS;

type Answer = Result<(), Fault>;

const fn native(
    name: &'static str,
    reach: Reach,
    syntax: &'static str,
    synopsis: &'static str,
    read: Option<ReadFn>,
    write: Option<WriteFn>,
) -> FunctionRow {
    table_row(name, reach, syntax, synopsis, Body::Native { read, write })
}

const fn table_row(
    name: &'static str,
    reach: Reach,
    syntax: &'static str,
    synopsis: &'static str,
    body: Body,
) -> FunctionRow {
    FunctionRow {
        name: Cow::Borrowed(name),
        syntax: Cow::Borrowed(syntax),
        synopsis: Cow::Borrowed(synopsis),
        body,
        reach,
    }
}

/// A function that the channel answers.
const fn channel_row(
    name: &'static str,
    reach: Reach,
    syntax: &'static str,
    synopsis: &'static str,
    function: ChannelFunction,
    read: bool,
    write: bool,
) -> FunctionRow {
    table_row(name, reach, syntax, synopsis, Body::Channel { function, read, write })
}

/// A function that is only read.
const fn reader(
    name: &'static str,
    reach: Reach,
    syntax: &'static str,
    synopsis: &'static str,
    read: ReadFn,
) -> FunctionRow {
    native(name, reach, syntax, synopsis, Some(read), None)
}

/// Every row of this crate.
pub(crate) fn rows() -> Vec<FunctionRow> {
    [
        variables::ROWS,
        logic::ROWS,
        strings::ROWS,
        lists::ROWS,
        ciphers::ROWS,
        codes::ROWS,
        digests::ROWS,
        documents::ROWS,
        times::ROWS,
        storage::ROWS,
        channel::ROWS,
        rows::ROWS,
    ]
    .concat()
}

/// The value of the variable (or function call) an argument names, as CUT() and its kin take their text.
fn value_of(env: &mut dyn Env, name: &str) -> String {
    let mut value = String::new();
    read_reference(env, name, &mut value);
    value
}

/// An argument by place; empty when it is not there.
fn arg(args: &[String], at: usize) -> &str {
    args.get(at).map_or("", String::as_str)
}

/// Fails when a required argument is empty.
fn required<'a>(args: &'a [String], at: usize, what: &'static str) -> Result<&'a str, Fault> {
    Some(arg(args, at))
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Fault::new(format!("{what} is missing")))
}

/// Cuts at the first comma outside brackets and quotes; the rest keeps its commas.
fn head_and_rest(args: &str) -> (&str, &str) {
    let head = crate::args::split_raw(args, ',').first().copied().unwrap_or("");
    (head, args.get(head.len() + 1..).unwrap_or(""))
}

/// Appends a truth value as the functions spell it.
fn flag(yes: bool, out: &mut String) -> Answer {
    out.push(if yes { '1' } else { '0' });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::Functions;

    #[test]
    fn every_function_of_the_ninety_per_cent_has_a_row() {
        let functions = Functions::standard();
        for name in [
            "CALLERID",
            "CHANNEL",
            "GLOBAL",
            "DB",
            "HASH",
            "IF",
            "LEN",
            "LOCAL",
            "CUT",
            "CDR",
            "TIMEOUT",
            "FILTER",
            "DB_EXISTS",
            "DEVICE_STATE",
            "CONNECTEDLINE",
            "ISNULL",
            "REGEX",
            "PJSIP_HEADER",
            "HANGUPCAUSE",
            "EXISTS",
            "CDR_PROP",
            "DIALPLAN_EXISTS",
            "ARRAY",
            "STRFTIME",
            "PJSIP_INHERITABLE_HEADER",
            "REDIRECTING",
            "HANGUPCAUSE_KEYS",
            "SHARED",
            "MATH",
            "FIELDQTY",
            "SET",
            "ENUMLOOKUP",
        ] {
            assert!(functions.lookup(name).is_some(), "{name}");
            assert_eq!(functions.lookup(&name.to_lowercase()), functions.lookup(name), "{name}");
        }
        for row in functions.iter() {
            assert!(row.readable() || row.writable(), "{}", row.name);
            assert!(row.syntax.starts_with(&*row.name) && row.synopsis.ends_with('.'), "{}", row.name);
        }
    }
}
