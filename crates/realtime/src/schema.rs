//! The standard tables: their columns, made, completed and compared in any of the databases.
//!
//! Columns that are not here are left alone, as are types: a table that was made by another hand keeps its own. What a yes or
//! a no is written as differs from site to site, so such columns are made as short texts.

mod tables;
mod unique;

use std::fmt::Write as _;

use crate::query::{Answer, Query};
use crate::settings::Target;
use crate::sql::{Dialect, Marks};
use crate::{Databases, Failure};

pub use tables::TABLES;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text of at most so many characters.
    Text(u16),
    /// Text of any length.
    Long,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    BigInt,
    /// A date and a time of day, without a zone.
    Time,
    /// A number that the database counts up.
    Serial,
    /// Bytes of any length.
    Bytes,
}

/// A standard table.
#[derive(Debug, Clone, Copy)]
pub struct Standard {
    /// Its name.
    pub name: &'static str,
    /// Names and kinds of its columns, in order.
    pub columns: &'static [(&'static str, Kind)],
    /// What no two rows have in common; empty: nothing.
    pub key: &'static [&'static str],
    /// What else no two rows have in common: a name by which one row is looked up while another column is the key.
    pub unique: &'static [&'static [&'static str]],
    /// What else it is looked up by.
    pub indexes: &'static [&'static [&'static str]],
}

/// What a table lacks, or got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// Columns.
    pub columns: Vec<&'static str>,
    /// Indexes that keep two rows from having the same in these columns.
    pub unique: Vec<&'static [&'static str]>,
}

impl Parts {
    /// Whether there is nothing.
    pub const fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.unique.is_empty()
    }
}

/// Rows that stand in the way of an index which keeps each from being there twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubles {
    /// The columns of the index.
    pub columns: &'static [&'static str],
    /// What several rows have there, joined by commas; [`DOUBLES_MAX`] at most.
    pub examples: Vec<String>,
    /// Whether there are more.
    pub is_more: bool,
}

/// Most of what several rows have in common that is told: who has many looks at all of them by a query.
pub const DOUBLES_MAX: usize = 5;

/// How a table compares with the standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// There is none.
    Missing,
    /// All columns and unique indexes are there.
    Whole,
    /// These are missing.
    Lacks(Parts),
}

/// What was done about a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It was made.
    Created,
    /// These were added; the indexes that rows stand in the way of were not.
    Added(Parts, Vec<Doubles>),
    /// Nothing.
    Nothing,
}

/// The standard table of this name.
pub fn standard(name: &str) -> Option<&'static Standard> {
    TABLES.iter().find(|table| table.name == name)
}

/// Compares a table of a database with the standard. Waits for the database. What is unique is not known of a database
/// through ODBC, whose catalog is its own.
pub fn check(
    databases: &mut Databases,
    (connection, target): (&str, &Target),
    table: &Standard,
) -> Result<Found, Failure> {
    let Answer::Columns(columns) = databases.ask(connection, Query::Columns { table: table.name.into() })?
    else {
        return Ok(Found::Missing);
    };
    if columns.is_empty() {
        return Ok(Found::Missing);
    }
    let has = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let columns = table.columns.iter().map(|(name, _)| *name).filter(|name| !has(name)).collect();
    let unique = match dialect(target) {
        Some(dialect) => unique::lacking(databases, connection, dialect, table)?,
        None => Vec::new(),
    };
    let lacks = Parts { columns, unique };
    Ok(if lacks.is_empty() { Found::Whole } else { Found::Lacks(lacks) })
}

/// Makes a table that is missing, and adds what it lacks when `completes`. Waits for the database.
pub fn make(
    databases: &mut Databases,
    (connection, target): (&str, &Target),
    table: &Standard,
    completes: bool,
) -> Result<Done, Failure> {
    let Some(dialect) = dialect(target) else {
        let why = "tables are made in MySQL, PostgreSQL and SQLite: name the database itself, not its DSN"
            .to_owned();
        return Err(Failure::Unaskable { name: connection.to_owned(), why });
    };
    match check(databases, (connection, target), table)? {
        Found::Missing => {
            for sql in dialect.creation(table) {
                databases.ask(connection, Query::Raw { sql, limit: Some(0) })?;
            }
            Ok(Done::Created)
        }
        Found::Lacks(lacks) if completes => {
            for column in table.columns.iter().filter(|(name, _)| lacks.columns.contains(name)) {
                let sql = dialect.addition(table, *column);
                databases.ask(connection, Query::Raw { sql, limit: Some(0) })?;
            }
            let (mut added, mut in_the_way) =
                (Parts { columns: lacks.columns, unique: Vec::new() }, Vec::new());
            for columns in lacks.unique {
                match unique::doubles(databases, connection, dialect, table, columns)? {
                    Some(doubles) => in_the_way.push(doubles),
                    None => {
                        let sql = dialect.unique_index(table, columns);
                        databases.ask(connection, Query::Raw { sql, limit: Some(0) })?;
                        added.unique.push(columns);
                    }
                }
            }
            Ok(Done::Added(added, in_the_way))
        }
        Found::Lacks(_) | Found::Whole => Ok(Done::Nothing),
    }
}

const fn dialect(target: &Target) -> Option<Dialect> {
    match target {
        Target::Mysql(_) => Some(Dialect::Mysql),
        Target::Postgres(_) => Some(Dialect::Postgres(Marks::Numbered)),
        Target::Sqlite { .. } => Some(Dialect::Sqlite),
        Target::Odbc(_) => None,
    }
}

impl Dialect {
    /// A column's type, with what keeps it filled.
    fn kind(self, kind: Kind, is_key: bool) -> String {
        let kind = match (kind, self) {
            (Kind::Text(most), _) => format!("VARCHAR({most})"),
            (Kind::Long, _) => "TEXT".to_owned(),
            (Kind::Int, _) => "INTEGER".to_owned(),
            (Kind::BigInt, _) => "BIGINT".to_owned(),
            (Kind::Time, Self::Postgres(_)) => "TIMESTAMP".to_owned(),
            (Kind::Time, _) => "DATETIME".to_owned(),
            (Kind::Bytes, Self::Postgres(_)) => "BYTEA".to_owned(),
            (Kind::Bytes, Self::Mysql) => "LONGBLOB".to_owned(),
            (Kind::Bytes, Self::Sqlite | Self::Other { .. }) => "BLOB".to_owned(),
            (Kind::Serial, Self::Mysql) if is_key => return "INTEGER NOT NULL AUTO_INCREMENT".to_owned(),
            (Kind::Serial, Self::Mysql) => return "INTEGER NOT NULL AUTO_INCREMENT UNIQUE".to_owned(),
            (Kind::Serial, Self::Postgres(_)) => return "SERIAL".to_owned(),
            (Kind::Serial, Self::Sqlite | Self::Other { .. }) => "INTEGER".to_owned(),
        };
        format!("{kind}{}", if is_key { " NOT NULL" } else { "" })
    }
    fn names(self, names: &[&str]) -> String {
        names.iter().map(|name| self.quoted(name)).collect::<Vec<_>>().join(", ")
    }
    /// The statements that make a table, its key and its indexes.
    fn creation(self, table: &Standard) -> Vec<String> {
        let mut sql = format!("CREATE TABLE {} (", self.quoted(table.name));
        for (name, kind) in table.columns {
            let kind = self.kind(*kind, table.key.contains(name));
            let _ = write!(sql, "{} {kind}, ", self.quoted(name));
        }
        if table.key.is_empty() {
            sql.truncate(sql.len() - 2);
        } else {
            let _ = write!(sql, "PRIMARY KEY ({})", self.names(table.key));
        }
        sql.push(')');
        if self == Self::Mysql {
            sql.push_str(" CHARACTER SET utf8mb4");
        }
        let index = |columns: &&[&str]| {
            let name = self.quoted(&format!("{}_{}", table.name, columns.join("_")));
            format!("CREATE INDEX {name} ON {} ({})", self.quoted(table.name), self.names(columns))
        };
        let unique = table.unique.iter().map(|columns| self.unique_index(table, columns));
        std::iter::once(sql).chain(unique).chain(table.indexes.iter().map(index)).collect()
    }
    /// The statement that makes an index which keeps two rows from having the same in these columns. Its name is not that
    /// of an index over the same columns without that, which an older table has.
    fn unique_index(self, table: &Standard, columns: &[&str]) -> String {
        let name = self.quoted(&format!("{}_{}_key", table.name, columns.join("_")));
        format!("CREATE UNIQUE INDEX {name} ON {} ({})", self.quoted(table.name), self.names(columns))
    }
    /// The statement that adds a column.
    fn addition(self, table: &Standard, (name, kind): (&str, Kind)) -> String {
        let kind = self.kind(kind, false);
        format!("ALTER TABLE {} ADD COLUMN {} {kind}", self.quoted(table.name), self.quoted(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_indexes_are_columns_and_no_column_stands_twice() {
        for table in TABLES {
            let has = |name: &str| table.columns.iter().filter(|(column, _)| *column == name).count();
            for (name, _) in table.columns {
                assert_eq!(has(name), 1, "{}.{name}", table.name);
            }
            for name in table.indexes.iter().chain(table.unique).chain([&table.key]).copied().flatten() {
                assert_eq!(has(name), 1, "{}: index over {name}", table.name);
            }
        }
    }

    #[test]
    fn rows_fit_into_what_mysql_allows_one() {
        for table in TABLES {
            let bytes = |kind: Kind| match kind {
                Kind::Text(most) => usize::from(most) * 4 + 2,
                _ => 12,
            };
            let all: usize = table.columns.iter().map(|(_, kind)| bytes(*kind)).sum();
            assert!(all < 65_535, "{} has rows of {all} bytes", table.name);
        }
    }
}
