//! Rows of databases, and text on its way into statements.

use super::{Answer, channel_row as row, reader};
use crate::env::Env;
use crate::registry::{Body, ChannelFunction as F, FunctionRow};
use crate::rights::Reach;

pub(super) const ROWS: &[FunctionRow] = &[
    row(
        "REALTIME",
        Reach::OUTSIDE,
        "REALTIME(family,fieldmatch[,matchvalue[,delim1|field[,delim2]]])",
        "Gives a row of a family of extconfig.conf, or sets a field of it.",
        F::Realtime,
        true,
        true,
    ),
    row(
        "REALTIME_FIELD",
        Reach::OUTSIDE,
        "REALTIME_FIELD(family,fieldmatch,matchvalue,fieldname)",
        "Gives a field of a row of a family, or sets it.",
        F::RealtimeField,
        true,
        true,
    ),
    row(
        "REALTIME_HASH",
        Reach::OUTSIDE,
        "REALTIME_HASH(family,fieldmatch,matchvalue)",
        "Gives a row of a family to Set(HASH(name)=…).",
        F::RealtimeHash,
        true,
        false,
    ),
    row(
        "REALTIME_STORE",
        Reach::OUTSIDE,
        "REALTIME_STORE(family,field1[,field2[,…]])",
        "Makes a row of a family, of up to 30 fields; the values follow the equals sign.",
        F::RealtimeStore,
        false,
        true,
    ),
    row(
        "REALTIME_DESTROY",
        Reach::OUTSIDE,
        "REALTIME_DESTROY(family,fieldmatch[,matchvalue[,delim1[,delim2]]])",
        "Removes rows of a family; reading it gives the row that was there.",
        F::RealtimeDestroy,
        true,
        true,
    ),
    row(
        "ODBC",
        Reach::OUTSIDE,
        "ODBC(transaction|forcecommit|isolation[,argument])",
        "Opens a transaction for functions of func_odbc.conf, or says or sets which is active and what holds for it.",
        F::Odbc,
        true,
        true,
    ),
    row(
        "ODBC_FETCH",
        Reach::OUTSIDE,
        "ODBC_FETCH(result-id)",
        "Gives the next row of a result of a function of func_odbc.conf with mode=multirow.",
        F::OdbcFetch,
        true,
        false,
    ),
    reader(
        "SQL_ESC",
        Reach::PLAIN,
        "SQL_ESC(string)",
        "Doubles single quotes, for text between quotes in a statement.",
        escape,
    ),
    reader(
        "SQL_ESC_BACKSLASHES",
        Reach::PLAIN,
        "SQL_ESC_BACKSLASHES(string)",
        "Doubles backslashes, for databases that take them for an escape.",
        escape_backslashes,
    ),
];

fn doubled(text: &str, which: char, out: &mut String) -> Answer {
    for symbol in text.chars() {
        if symbol == which {
            out.push(symbol);
        }
        out.push(symbol);
    }
    Ok(())
}

fn escape(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    doubled(args, '\'', out)
}

fn escape_backslashes(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    doubled(args, '\\', out)
}

/// Whether the function asks a database when it is read.
pub(crate) fn asks_when_read(row: &FunctionRow) -> bool {
    match &row.body {
        Body::Statement(of) => !of.read.is_empty(),
        Body::Channel { function, .. } => {
            matches!(function, F::Realtime | F::RealtimeField | F::RealtimeHash | F::RealtimeDestroy)
        }
        Body::Native { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn text_for_statements_has_its_quotes_or_backslashes_doubled() {
        let mut env = TestEnv::new();
        for (text, expected) in [
            ("${SQL_ESC(O'Brien, it''s)}", "O''Brien, it''''s"),
            ("${SQL_ESC()}", ""),
            (r"${SQL_ESC_BACKSLASHES(a\b)}", r"a\\b"),
            (r"${SQL_ESC(${SQL_ESC_BACKSLASHES(\')})}", r"\\''"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }
}
