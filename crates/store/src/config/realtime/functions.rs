//! `func_odbc.conf`: functions of the dialplan that a site makes of SQL statements.

use super::{Driver, Settings};
use crate::config::kind::{Int, Text, YesNo};
use crate::config::{Object as _, Row, options, read_object, read_settings};
use conf::{File, Findings, Section};
use std::collections::BTreeMap;

/// Databases that one function can name, as in the field.
const HANDLES_MAX: usize = 5;
/// Section that holds for all.
const GENERAL: &str = "general";
/// Functions that a site can make: far more than any has.
const FUNCTIONS_MAX: usize = 1_000;

options! {
    /// A function of `func_odbc.conf`.
    FuncOdbc, "func_odbc.conf", "function", IsIgnored;
    dsn: Text = "", "Class of res_odbc.conf that is read from and written to, where readhandle and writehandle say no other.";
    readhandle: Text = "", "Classes that are read from, up to five parted by commas: the next is asked when one cannot be reached.";
    writehandle: Text = "", "Classes that are written to.";
    readsql also "read": Text = "", "Statement that reading the function sends, with ${ARG1} and so on for its arguments. Values become a part of the text: write '${SQL_ESC(${ARG1})}'.";
    writesql also "write": Text = "", "Statement that setting the function sends, with ${VALUE}, ${VAL1} and so on for what is set.";
    insertsql also "insert": Text = "", "Statement that follows when writesql has changed no row.";
    mode: Text = "", "`multirow`: reading gives the name of a result whose rows ODBC_FETCH() takes.";
    rowlimit: Int<0, 10_000> = "0", "Most rows that are kept of a result; 0: 10000.";
    prefix: Text = "ODBC", "What stands before the name of the section and an underscore in the name of the function.";
    escapecommas: YesNo = "yes", "Commas of values come with a backslash, so that ARRAY() and HASH() can tell them apart.";
    syntax: Text = "", "Arguments, as `core show function` shows them.";
    synopsis: Text = "", "One sentence, for `core show function`.";
    minargs: Int<0, 100> = "0", "ARG1 to this one are there, empty when the call has no such argument.";
    @recognised {}
}

options! {
    /// `[general]` of `func_odbc.conf`.
    FuncOdbcGeneral, "func_odbc.conf", "general", IsIgnored;
    single_db_connection: YesNo = "no", "All functions share one connection to each database.",
        Later "no" "max_connections of the class says how many there are";
    @recognised {}
}

/// A function that the site has made.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementFunction {
    /// Name in the dialplan.
    pub name: String,
    /// Its options.
    pub of: FuncOdbc,
    /// Databases that are read from.
    pub read_from: Vec<String>,
    /// Databases that are written to.
    pub write_to: Vec<String>,
}

/// `func_odbc.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Functions(pub Vec<StatementFunction>);

pub(super) fn rows() -> Vec<Row> {
    [FuncOdbcGeneral::rows(), FuncOdbc::rows()].concat()
}

impl Functions {
    /// Reads the file.
    pub(super) fn read(
        file: &File,
        databases: &BTreeMap<(Driver, String), Settings>,
        findings: &mut Findings,
    ) -> Self {
        let _general: FuncOdbcGeneral = read_settings(file, GENERAL, findings);
        let mut made: Vec<StatementFunction> = Vec::new();
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case(GENERAL)) {
            if made.len() >= FUNCTIONS_MAX {
                let message = format!("there are more than {FUNCTIONS_MAX} functions");
                findings.error(&section.place, message, "remove those that no dialplan calls");
                break;
            }
            if let Some(function) = function(section, databases, findings) {
                made.push(function);
            }
        }
        Self(made)
    }
}

fn function(
    section: &Section,
    databases: &BTreeMap<(Driver, String), Settings>,
    findings: &mut Findings,
) -> Option<StatementFunction> {
    let of: FuncOdbc = read_object(section, findings, &mut |_, _, _| false)?;
    let prefix = if of.prefix.is_empty() { "ODBC" } else { &of.prefix };
    let name = format!("{prefix}_{}", section.name);
    let mut refuse = |message: String, remedy: &str| {
        findings.error(&section.place, format!("{name}() is not made: {message}"), remedy);
        None
    };
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return refuse(
            "its name has other characters than letters, digits and _".to_owned(),
            "rename the section",
        );
    }
    if name.eq_ignore_ascii_case("ODBC_FETCH") {
        return refuse("ODBC_FETCH() takes rows of results".to_owned(), "rename the section");
    }
    if of.readsql.is_empty() && of.writesql.is_empty() {
        return refuse("there is no statement".to_owned(), "add readsql=, writesql= or both");
    }
    let handles = |own: &str| -> Vec<String> {
        let list = if own.is_empty() { &of.dsn } else { own };
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(ToOwned::to_owned).collect()
    };
    let (mut read_from, mut write_to) = (handles(&of.readhandle), handles(&of.writehandle));
    if read_from.is_empty() && of.readhandle.is_empty() {
        read_from.clone_from(&write_to);
    }
    read_from.truncate(HANDLES_MAX);
    write_to.truncate(HANDLES_MAX);
    if !of.readsql.is_empty() && read_from.is_empty() {
        return refuse("nothing says which database is read".to_owned(), "add dsn= or readhandle=");
    }
    if !of.writesql.is_empty() && write_to.is_empty() {
        return refuse("nothing says which database is written".to_owned(), "add dsn= or writehandle=");
    }
    let known = |name: &String| databases.keys().any(|(_, known)| known == name);
    if let Some(unknown) = read_from.iter().chain(&write_to).find(|name| !known(name)) {
        let message = format!("{name}() names '{unknown}', which is no class of res_odbc.conf");
        findings.warning(&section.place, message, "describe it there, or correct the name");
    }
    if !of.mode.is_empty() && !of.mode.eq_ignore_ascii_case("multirow") {
        let message = format!("{name}(): mode={} is not known; it gives one row", of.mode);
        findings.warning(of.origin.place_of("mode"), message, "write mode=multirow, or remove the line");
    }
    Some(StatementFunction { name, of, read_from, write_to })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Functions, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("func_odbc.conf", text);
        let file = conf::load(&source, "func_odbc.conf", conf::Options::default(), &mut findings).unwrap();
        let functions = Functions::read(&file, &BTreeMap::new(), &mut findings);
        (functions, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn a_section_is_a_function_with_the_databases_it_names() {
        for (name, lines, expected) in [
            ("both by dsn", "dsn=a\nreadsql=SELECT 1\nwritesql=UPDATE t", Some((vec!["a"], vec!["a"]))),
            ("handles", "readhandle=a, b\nwritehandle=c\nread=SELECT 1", Some((vec!["a", "b"], vec!["c"]))),
            ("read where it is written", "writehandle=c\nreadsql=SELECT 1", Some((vec!["c"], vec!["c"]))),
            (
                "five at most",
                "dsn=a,b,c,d,e,f\nwrite=UPDATE t",
                Some((vec!["a", "b", "c", "d", "e"], vec!["a", "b", "c", "d", "e"])),
            ),
            ("nowhere", "readsql=SELECT 1", None),
            ("nothing to say", "dsn=a", None),
        ] {
            let (functions, told) = read(&format!("[general]\nsingle_db_connection=no\n[X]\n{lines}\n"));
            let first = functions.0.first();
            let handles = first.map(|function| (function.read_from.clone(), function.write_to.clone()));
            let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(
                handles,
                expected.map(|(read, write)| (owned(read), owned(write))),
                "{name}: {told:?}"
            );
        }
    }

    #[test]
    fn a_function_is_called_by_its_prefix_and_section() {
        let (functions, told) = read(
            "[A]\ndsn=d\nreadsql=x\n[B]\nprefix=ACME\ndsn=d\nreadsql=x\n[FETCH]\ndsn=d\nreadsql=x\n[no name]\ndsn=d\nreadsql=x\n",
        );
        let names: Vec<&str> = functions.0.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["ODBC_A", "ACME_B"]);
        let refused = told.iter().filter(|line| line.contains("is not made")).count();
        assert_eq!(refused, 2, "{told:?}");
    }
}
