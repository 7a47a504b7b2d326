//! Rows of a table in SQLite, as `cdr_sqlite3_custom.conf` describes them.

use super::{Outlet, Refused, Sink, open};
use crate::config::cdr::CdrTable;
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the database in astlogdir.
pub const DATABASE: &str = "master.db";

/// Values of the table's columns, in their order.
pub type Row = Vec<String>;

impl Sink<Row> {
    /// Starts a writer into the database in `astlogdir`. The table, and columns that it lacks, are made with the first
    /// record.
    pub fn start(astlogdir: &Path, table: &CdrTable) -> io::Result<Self> {
        let statements = Statements::of(&table.table, &table.columns);
        let busy = Duration::from_millis(u64::from(table.busy_timeout));
        let path = astlogdir.join(DATABASE);
        Self::over(
            "cdr-sqlite",
            Table { path, columns: table.columns.clone(), statements, busy, open: None, rows: Vec::new() },
        )
    }
}

struct Table {
    path: PathBuf,
    columns: Vec<String>,
    statements: Statements,
    busy: Duration,
    /// Closed after a refusal, so that the next try begins with what lies there then.
    open: Option<Connection>,
    rows: Vec<Row>,
}

impl Outlet<Row> for Table {
    fn take(&mut self, batch: Vec<Row>) {
        self.rows = batch;
    }
    fn write(&mut self) -> Result<(), Refused> {
        self.insert().map_err(|why| {
            self.open = None;
            Refused { path: self.path.clone(), why }
        })?;
        self.rows.clear();
        Ok(())
    }
}

impl Table {
    /// Writes all rows or none.
    fn insert(&mut self) -> Result<(), String> {
        let told = |error: rusqlite::Error| error.to_string();
        // SQLite goes on writing to a file that was renamed or removed.
        if !self.path.exists() {
            self.open = None;
        }
        let connection = match &mut self.open {
            Some(connection) => connection,
            none => {
                // Made here, so that it is not for everyone to read.
                drop(open(&self.path).map_err(|error| error.to_string())?);
                let connection = Connection::open(&self.path).map_err(told)?;
                connection.busy_timeout(self.busy).map_err(told)?;
                self.statements.prepare(&connection, &self.columns).map_err(told)?;
                none.insert(connection)
            }
        };
        let transaction = connection.transaction().map_err(told)?;
        {
            let mut insert = transaction.prepare_cached(&self.statements.insert).map_err(told)?;
            for row in &self.rows {
                insert.execute(rusqlite::params_from_iter(row)).map_err(told)?;
            }
        }
        transaction.commit().map_err(told)
    }
}

/// Statements with the names of the configuration in them, quoted. Values are only ever bound.
struct Statements {
    table: String,
    create: String,
    insert: String,
}

impl Statements {
    fn of(table: &str, columns: &[String]) -> Self {
        let table = quoted(table);
        let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let names = names.join(", ");
        let marks = vec!["?"; columns.len()].join(", ");
        Self {
            create: format!("CREATE TABLE IF NOT EXISTS {table} (\"AcctId\" INTEGER PRIMARY KEY, {names})"),
            insert: format!("INSERT INTO {table} ({names}) VALUES ({marks})"),
            table,
        }
    }
    /// Makes the table and adds the columns that it lacks.
    fn prepare(&self, connection: &Connection, columns: &[String]) -> rusqlite::Result<()> {
        connection.execute(&self.create, [])?;
        let known: Vec<String> = connection
            .prepare(&format!("PRAGMA table_info({})", self.table))?
            .query_map([], |row| row.get::<_, String>(1))?
            .collect::<Result<_, _>>()?;
        for column in
            columns.iter().filter(|column| !known.iter().any(|name| name.eq_ignore_ascii_case(column)))
        {
            connection.execute(&format!("ALTER TABLE {} ADD COLUMN {}", self.table, quoted(column)), [])?;
        }
        Ok(())
    }
}

/// A name as SQL takes any name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
