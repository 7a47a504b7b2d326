//! Configuration that lies in databases: `extconfig.conf` says which families are where, `sorcery.conf` which objects of SIP
//! are, and the files of the drivers how the databases are reached.
//!
//! This room reads files only. Whoever holds the connections makes one connection of each [`Settings`].

mod extconfig;
mod families;
pub mod files;
mod functions;
mod native;
mod odbc;
mod rows;
mod sorcery;

pub use extconfig::{Backend, Driver, Families};
pub(crate) use families::is_row;
pub use families::{FAMILIES, FamilyRow, FamilyRows, member_of_row, queue_of_row};
pub use functions::{FuncOdbc, Functions, StatementFunction};
pub use native::{Mysql, Pgsql, Sqlite};
pub(crate) use odbc::Environment;
pub use odbc::{DataSources, OdbcClass};
pub use rows::{ID, NAME, RowReader};
pub use sorcery::{MemoryCache, ObjectKind, Objects, Sorcery, Wizard};

use super::{Row, kind::Secret};
use base::Isolation;
use conf::{File, Findings, Place};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options of all these files, for the manual.
pub(crate) fn rows() -> Vec<Row> {
    [
        extconfig::rows(),
        sorcery::rows(),
        odbc::rows(),
        functions::rows(),
        <Mysql as super::Object>::rows(),
        <Pgsql as super::Object>::rows(),
        <Sqlite as super::Object>::rows(),
    ]
    .concat()
}

/// How a database is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// Through unixODBC.
    Odbc {
        /// Data source of `odbc.ini`.
        dsn: String,
        /// User; empty: the one of `odbc.ini`.
        user: String,
        /// Password; empty: the one of `odbc.ini`.
        password: Secret,
        /// Variables of `[ENV]`, for unixODBC and its drivers.
        environment: Vec<(String, String)>,
    },
    /// MySQL and MariaDB.
    Mysql(Server),
    /// PostgreSQL.
    Pgsql(Server),
    /// A file of SQLite.
    Sqlite(PathBuf),
}

impl Link {
    /// What it is called where a person reads it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Odbc { .. } => "odbc",
            Self::Mysql(_) => "mysql",
            Self::Pgsql(_) => "pgsql",
            Self::Sqlite(_) => "sqlite3",
        }
    }
}

/// A server that databases lie on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Socket in the file system, instead of host and port; empty: none.
    pub socket: String,
    /// Name of the database.
    pub database: String,
    /// User.
    pub user: String,
    /// Password.
    pub password: Secret,
}

/// A database, and how it is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name that `extconfig.conf` calls it by.
    pub name: String,
    /// How it is reached.
    pub link: Link,
    /// Most connections at once.
    pub connections: u32,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// For how long no connection is tried after one has failed.
    pub retry_after: Duration,
    /// A query that took longer is worth a line of the log; zero: none is.
    pub slow: Duration,
    /// How long a transaction may last.
    pub transaction_timeout: Duration,
    /// What transactions see of others, unless they say otherwise.
    pub isolation: Isolation,
    /// A transaction is committed when its call ends, unless it says otherwise.
    pub forcecommit: bool,
    /// Connections are made at the start.
    pub pre_connect: bool,
    /// Where it was written.
    pub place: Place,
}

/// Family of who calls by IAX2.
pub const IAX_USERS: &str = "iaxusers";
/// Family of who registers and is called by IAX2.
pub const IAX_PEERS: &str = "iaxpeers";

/// All there is to know of databases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Realtime {
    /// `extconfig.conf`.
    pub families: Families,
    /// `sorcery.conf`.
    pub sorcery: Sorcery,
    /// Databases by the driver and name that `extconfig.conf` calls them by.
    pub databases: BTreeMap<(Driver, String), Settings>,
    /// `func_odbc.conf`.
    pub functions: Functions,
}

/// The files as they were read; `None` is one that is not there.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) extconfig: Option<File>,
    pub(crate) sorcery: Option<File>,
    pub(crate) odbc: Option<File>,
    pub(crate) mysql: Option<File>,
    pub(crate) pgsql: Option<File>,
    pub(crate) sqlite: Option<File>,
    pub(crate) functions: Option<File>,
}

impl Realtime {
    /// Reads the files. `sources` are the data sources of ODBC.
    pub(crate) fn read(
        files: &Files,
        sources: &dyn Fn(&odbc::Environment) -> DataSources,
        findings: &mut Findings,
    ) -> Self {
        let families =
            files.extconfig.as_ref().map(|file| Families::read(file, findings)).unwrap_or_default();
        let odbc = files.odbc.as_ref().map(|file| odbc::read(file, sources, findings));
        let mysql = files.mysql.as_ref().map(|file| native::mysql(file, findings));
        let sqlite = files.sqlite.as_ref().map(|file| native::sqlite(file, findings));
        let mut databases: BTreeMap<(Driver, String), Settings> = BTreeMap::new();
        for (driver, made) in [(Driver::Odbc, odbc), (Driver::Mysql, mysql), (Driver::Sqlite3, sqlite)] {
            let made = made.unwrap_or_default().into_iter();
            databases.extend(made.map(|settings| ((driver, settings.name.clone()), settings)));
        }
        if let Some(file) = &files.pgsql {
            let settings = native::pgsql(file, findings);
            // One file describes one database: every name that families call it by is that one.
            let called = families.backends().filter(|backend| backend.driver == Driver::Pgsql);
            for backend in called {
                let name = backend.database.clone();
                databases.insert((Driver::Pgsql, name.clone()), Settings { name, ..settings.clone() });
            }
        }
        families.check(&databases, findings);
        let sorcery = files.sorcery.as_ref().map(|file| Sorcery::read(file, findings)).unwrap_or_default();
        sorcery.check(&families, findings);
        let functions = files
            .functions
            .as_ref()
            .map(|file| Functions::read(file, &databases, findings))
            .unwrap_or_default();
        Self { families, sorcery, databases, functions }
    }

    /// The database that a back-end of a family lies in.
    pub fn database(&self, backend: &Backend) -> Option<&Settings> {
        self.databases.get(&(backend.driver, backend.database.clone()))
    }

    /// Whether users or peers of IAX2 lie in a database.
    pub fn has_iax(&self) -> bool {
        [IAX_USERS, IAX_PEERS].iter().any(|family| !self.families.of(family).is_empty())
    }
    /// Whether any object of SIP lies in a database.
    pub fn has_sip(&self) -> bool {
        self.sorcery.objects.values().any(|objects| objects.family().is_some())
    }
}

#[cfg(test)]
mod tests;
