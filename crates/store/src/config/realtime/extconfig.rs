//! `extconfig.conf`: which families of configuration lie in which database.

use super::{Row, Settings};
use crate::config::{Status, suggestion};
use conf::{File, Findings, Place};
use std::collections::BTreeMap;

/// Most databases one family fails over between: more than any site has, and few enough to try in turn.
const BACKENDS_MAX: usize = 8;

/// How a database is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Driver {
    /// `odbc`: a class of `res_odbc.conf`.
    Odbc,
    /// `mysql`: a section of `res_config_mysql.conf`.
    Mysql,
    /// `pgsql`: `res_pgsql.conf`.
    Pgsql,
    /// `sqlite3`: a section of `res_config_sqlite3.conf`.
    Sqlite3,
}

/// Drivers with the file that says how their databases are reached.
const DRIVERS: [(&str, Driver, &str); 4] = [
    ("odbc", Driver::Odbc, "res_odbc.conf"),
    ("mysql", Driver::Mysql, "res_config_mysql.conf"),
    ("pgsql", Driver::Pgsql, "res_pgsql.conf"),
    ("sqlite3", Driver::Sqlite3, "res_config_sqlite3.conf"),
];

impl Driver {
    /// As `extconfig.conf` writes it.
    pub fn word(self) -> &'static str {
        DRIVERS.iter().find(|(_, driver, _)| *driver == self).map_or("", |(word, ..)| word)
    }
    /// The file that says how its databases are reached.
    pub fn file(self) -> &'static str {
        DRIVERS.iter().find(|(_, driver, _)| *driver == self).map_or("", |(_, _, file)| file)
    }
}

/// Drivers of Asterisk that are not here.
const FOREIGN: [(&str, &str); 4] = [
    ("curl", "let the web server's database be read by mysql, pgsql, sqlite3 or odbc"),
    ("ldap", "put the family into a database"),
    ("sqlite", "SQLite 2 is no longer made; copy its tables to SQLite 3 and write sqlite3"),
    ("mongodb", "put the family into a database"),
];

/// Files that say where others lie, so that they cannot lie elsewhere themselves.
const FILES_ONLY: [&str; 3] = ["asterisk.conf", "extconfig.conf", "logger.conf"];

/// One place of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// How it is spoken to.
    pub driver: Driver,
    /// The database, by the name its driver's file gives it.
    pub database: String,
    /// Table.
    pub table: String,
    /// 1 is asked first.
    pub priority: u32,
    /// The line.
    pub place: Place,
}

/// `extconfig.conf` as a whole: the places of each family, first asked first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Families(BTreeMap<String, Vec<Backend>>);

pub(super) fn rows() -> Vec<Row> {
    let row = |name, kind: &str, doc| Row {
        file: "extconfig.conf",
        section: "settings",
        name,
        kind: kind.to_owned(),
        default: "",
        doc,
        status: Status::Supported,
    };
    vec![row(
        "FAMILY",
        "driver,database[,table[,priority]]",
        "Where the rows of a family lie. Drivers are odbc, mysql, pgsql and sqlite3; the table is called as the family unless \
         one is written; several lines of one family are tried by priority, from 1, each when the one before it cannot answer.",
    )]
}

impl Families {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut families: BTreeMap<String, Vec<Backend>> = BTreeMap::new();
        for line in file.named("settings").flat_map(|section| &section.variables) {
            let family = line.name.to_string();
            if let Some(name) = FILES_ONLY.iter().find(|name| is_file(&family, name)) {
                let message = format!("{name} cannot lie in a database: it is read before any is reached");
                findings.error(&line.place, message, "remove the line");
                continue;
            }
            let Some(backend) = backend(&family, &line.value, &line.place, findings) else { continue };
            let known = families.entry(family.clone()).or_default();
            if known.len() >= BACKENDS_MAX {
                let message = format!("family '{family}' has more than {BACKENDS_MAX} databases");
                findings.error(&line.place, message, "remove the line");
            } else if known.iter().any(|other| other.priority == backend.priority) {
                let message =
                    format!("family '{family}' has another line of priority {} above", backend.priority);
                findings.error(&line.place, message, "write the next priority behind the table, such as ,2");
            } else {
                known.push(backend);
            }
        }
        for (family, backends) in &mut families {
            backends.sort_by_key(|backend| backend.priority);
            for (expected, backend) in (1..).zip(backends.iter()) {
                if backend.priority != expected {
                    let message = format!(
                        "family '{family}' has priority {} and none of {expected}; they are asked in their order",
                        backend.priority
                    );
                    findings.warning(&backend.place, message, "write priorities from 1 on without a gap");
                    break;
                }
            }
        }
        Self(families)
    }

    /// The places of a family, first asked first; none: it does not lie in a database.
    pub fn of(&self, family: &str) -> &[Backend] {
        self.0.get(family).map_or(&[], Vec::as_slice)
    }
    /// All families.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Backend])> {
        self.0.iter().map(|(name, backends)| (name.as_str(), backends.as_slice()))
    }
    /// Whether none lies in a database.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The places of all families.
    pub(super) fn backends(&self) -> impl Iterator<Item = &Backend> {
        self.0.values().flatten()
    }
    /// What they say about databases that nobody describes.
    pub(super) fn check(&self, databases: &BTreeMap<(Driver, String), Settings>, findings: &mut Findings) {
        for (family, backend) in
            self.0.iter().flat_map(|(family, list)| list.iter().map(move |b| (family, b)))
        {
            let Backend { driver, database, place, .. } = backend;
            if databases.contains_key(&(*driver, database.clone())) {
                continue;
            }
            let file = driver.file();
            let message = format!("family '{family}' lies in '{database}', which {file} does not describe");
            findings.error(
                place,
                message,
                format!("add a section [{database}] to {file}, or correct the name"),
            );
        }
    }
}

/// Whether a family is the file of this name, with or without its ending.
fn is_file(family: &str, file: &str) -> bool {
    let plain = file.strip_suffix(".conf").unwrap_or(file);
    family.eq_ignore_ascii_case(file) || family.eq_ignore_ascii_case(plain)
}

fn backend(family: &str, text: &str, place: &Place, findings: &mut Findings) -> Option<Backend> {
    let mut items = text.split(',').map(|item| item.trim().trim_matches('"').trim());
    let word = items.next().unwrap_or_default();
    let Some((_, driver, _)) = DRIVERS.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name)) else {
        let foreign = FOREIGN.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        let names: Vec<&str> = DRIVERS.iter().map(|(name, ..)| *name).collect();
        let remedy = foreign.map_or_else(|| suggestion(word, &names), |(_, remedy)| (*remedy).to_owned());
        findings.error(place, format!("family '{family}': there is no driver '{word}'"), remedy);
        return None;
    };
    let database = items.next().unwrap_or_default();
    if database.is_empty() {
        let remedy = format!("write {family} => {word},DATABASE, a name of {}", driver.file());
        findings.error(place, format!("family '{family}' names no database"), remedy);
        return None;
    }
    let table = items.next().filter(|table| !table.is_empty()).unwrap_or(family);
    // A file's table has to be written; the family's name would be no name of a table.
    if family.contains('.') && table == family {
        let remedy = format!("write {family} => {word},{database},ast_config");
        findings.error(place, format!("file '{family}' lies in a database without a table"), remedy);
        return None;
    }
    let priority = match items.next() {
        None | Some("") => Some(1),
        Some(text) => text.parse().ok().filter(|priority| *priority > 0),
    };
    let Some(priority) = priority.filter(|_| items.next().is_none()) else {
        let message = format!("family '{family}': what follows the table is no priority");
        findings.error(place, message, "write driver,database,table,priority, the priority from 1");
        return None;
    };
    let (database, table) = (database.to_owned(), table.to_owned());
    Some(Backend { driver: *driver, database, table, priority, place: place.clone() })
}
