//! `res_odbc.conf`: classes of connections; `odbc.ini` and `odbcinst.ini`: the data sources they name.
//!
//! A class may be served by a native driver instead of unixODBC: one line, `native => yes`, and what `odbc.ini` says of its
//! data source is given to that driver.

use super::{Link, Server, Settings};
use crate::config::kind::{Hidden, Int, Seconds, Text, YesNo};
use crate::config::{Object as _, Row, Status, options, read_object};
use base::Isolation;
use conf::{File, Findings, Place};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Section of `res_odbc.conf` that sets variables of the environment.
const ENVIRONMENT: &str = "ENV";

options! {
    /// A class of `res_odbc.conf`.
    OdbcClass, "res_odbc.conf", "class", IsIgnored;
    enabled: YesNo = "yes", "Use the class.";
    dsn: Text = "", "Data source in odbc.ini; empty is the name of the section.";
    username: Text = "", "User; empty is the one of odbc.ini.";
    password: Hidden = "", "Password; empty is the one of odbc.ini.";
    native: Text = "no", "Serve the class without unixODBC: `yes` takes the built-in driver for what odbc.ini leads to, `mysql`, `pgsql` or `sqlite3` names it; `no`: through unixODBC and the library that odbc.ini names.";
    pre_connect as "pre-connect": YesNo = "no", "Connect at the start.";
    max_connections: Int<1, 1000> = "1", "Most connections at once.";
    connect_timeout: Seconds<1, 600> = "10", "How long making a connection may take.";
    negative_connection_cache: Seconds<0, 86_400> = "300", "For how long no connection is tried after one has failed: ten seconds at most, but for a driver that ends again and again.";
    sanitysql: Text = "", "Statement that shows a connection to be alive.",
        Ignored "*" "a connection is tried before it is used, by the driver's own means";
    slow_query_limit: Int<0, 3_600_000> = "5000", "Milliseconds after which a query is worth a line of the log; 0: none is.";
    logging: YesNo = "no", "Count queries and log slow ones.",
        Ignored "*" "queries are always counted, and slow ones logged";
    isolation: Text = "read_committed", "Isolation of transactions: read_committed, read_uncommitted, repeatable_read or serializable. Transactions of SQLite are always serializable.";
    forcecommit: YesNo = "no", "Commit a transaction that is open at the end of its call; otherwise it is rolled back.";
    transaction_timeout: Seconds<1, 3600> = "60", "How long a transaction of a call may last from its first statement; then it is rolled back.";
    cache_type: Text = "stack", "Which free connection is taken: `stack` or `rr`.",
        Ignored "*" "the connection that was used last is taken";
    cache_size: Text = "", "Connections that are kept; empty: all.",
        Ignored "*" "all that were made are kept";
    backslash_is_escape: YesNo = "yes", "Whether the server takes a backslash in a string as escape.",
        Ignored "*" "values are parameters, never text of a statement";
    @recognised {
        "pooling" "no" Ignored "connections are always shared";
        "limit" "*" Ignored "max_connections says how many there are";
        "share_connections" "*" Ignored "connections are always shared";
        "shared_connections" "*" Ignored "connections are always shared";
        "idlecheck" "*" Ignored "a connection that has gone is found by the query that meets it";
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = OdbcClass::rows();
    rows.push(Row {
        file: "res_odbc.conf",
        section: "ENV",
        name: "ODBCINI",
        kind: "file".to_owned(),
        default: "/etc/odbc.ini",
        doc: "File of the data sources.",
        status: Status::Supported,
    });
    rows.push(Row {
        file: "res_odbc.conf",
        section: "ENV",
        name: "ODBCSYSINI",
        kind: "folder".to_owned(),
        default: "/etc",
        doc: "Folder of odbc.ini and odbcinst.ini.",
        status: Status::Supported,
    });
    rows
}

/// Variables that say where the data sources are described: those of the process, then `[ENV]` of `res_odbc.conf`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Environment {
    /// `ODBCINI`.
    pub(crate) sources: Option<PathBuf>,
    /// `ODBCSYSINI`.
    pub(crate) folder: Option<PathBuf>,
}

impl Environment {
    /// Of the process.
    pub(crate) fn of_process() -> Self {
        let set = |name| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        Self { sources: set("ODBCINI"), folder: set("ODBCSYSINI") }
    }
    /// Where `odbc.ini` is.
    pub(crate) fn sources_file(&self) -> PathBuf {
        let folder = self.folder.clone().unwrap_or_else(|| PathBuf::from("/etc"));
        self.sources.clone().unwrap_or_else(|| folder.join("odbc.ini"))
    }
    /// Where `odbcinst.ini` is.
    pub(crate) fn drivers_file(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| PathBuf::from("/etc")).join("odbcinst.ini")
    }
}

/// What `odbc.ini` and `odbcinst.ini` say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataSources {
    sources: BTreeMap<String, BTreeMap<String, String>>,
    drivers: BTreeMap<String, BTreeMap<String, String>>,
}

impl DataSources {
    /// Reads both files; a missing one is empty.
    pub fn parse(sources: &str, drivers: &str) -> Self {
        Self { sources: sections(sources), drivers: sections(drivers) }
    }
    /// What the data source says under any of these names.
    fn value(&self, dsn: &str, names: &[&str]) -> Option<&str> {
        let source = self.sources.get(&dsn.to_ascii_lowercase())?;
        names.iter().find_map(|name| source.get(*name)).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// The library of its driver, or what stands for it.
    fn library(&self, dsn: &str) -> Option<&str> {
        let driver = self.value(dsn, &["driver"])?;
        let named = self.drivers.get(&driver.to_ascii_lowercase());
        let library = named.and_then(|driver| driver.get("driver64").or_else(|| driver.get("driver")));
        Some(library.map_or(driver, String::as_str))
    }
    /// Which of our drivers speaks to what the data source leads to.
    fn native(&self, dsn: &str) -> Option<&'static str> {
        let library = self.library(dsn)?.to_ascii_lowercase();
        let file = library.rsplit('/').next().unwrap_or(&library);
        let known = NATIVE.iter().chain([&NATIVE_FILE]);
        known.into_iter().find(|(part, _)| file.contains(part)).map(|(_, driver)| *driver)
    }
}

/// What the names of ODBC drivers and of their libraries hold, and the native driver that speaks the same.
const NATIVE: [(&str, &str); 6] = [
    ("maodbc", "mysql"),
    ("mariadb", "mysql"),
    ("myodbc", "mysql"),
    ("mysql", "mysql"),
    ("psqlodbc", "pgsql"),
    ("postgres", "pgsql"),
];
/// The same for files.
const NATIVE_FILE: (&str, &str) = ("sqlite", "sqlite3");

/// Sections of a file of unixODBC: names in lower case, values as written.
fn sections(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim().to_ascii_lowercase();
            found.entry(section.clone()).or_default();
        } else if let Some((name, value)) = line.split_once('=') {
            let known = found.entry(section.clone()).or_default();
            known.entry(name.trim().to_ascii_lowercase()).or_insert_with(|| value.trim().to_owned());
        }
    }
    found
}

/// What the classes have in common.
struct Sources {
    known: DataSources,
    /// `[ENV]`.
    variables: Vec<(String, String)>,
}

/// Databases of `res_odbc.conf`.
pub(super) fn read(
    file: &File,
    sources: &dyn Fn(&Environment) -> DataSources,
    findings: &mut Findings,
) -> Vec<Settings> {
    let mut environment = Environment::of_process();
    let mut variables = Vec::new();
    for variable in file.named(ENVIRONMENT).flat_map(|section| &section.variables) {
        let path = PathBuf::from(&*variable.value);
        match &*variable.name {
            "ODBCINI" => environment.sources = Some(path),
            "ODBCSYSINI" => environment.folder = Some(path),
            _ => {}
        }
        if variable.name.contains(['=', '\0']) || variable.value.contains('\0') {
            let message = format!("{} cannot be the name of a variable", variable.name);
            findings.warning(&variable.place, message, "write NAME => value");
            continue;
        }
        variables.push((variable.name.to_string(), variable.value.to_string()));
    }
    let sources = Sources { known: sources(&environment), variables };
    let classes = file.objects().filter(|section| &*section.name != ENVIRONMENT);
    let mut made = Vec::new();
    for section in classes {
        let Some(class) = read_object::<OdbcClass>(section, findings, &mut |_, _, _| false) else { continue };
        if class.enabled {
            made.extend(settings(&section.name, &class, &sources, findings));
        }
    }
    made
}

fn settings(
    name: &str,
    class: &OdbcClass,
    Sources { known: sources, variables }: &Sources,
    findings: &mut Findings,
) -> Option<Settings> {
    let dsn = if class.dsn.is_empty() { name } else { &class.dsn };
    let place = class.origin.place_of("native");
    let native = match class.native.to_ascii_lowercase().as_str() {
        "" => None,
        "mysql" | "mariadb" => Some("mysql"),
        "pgsql" | "postgresql" => Some("pgsql"),
        "sqlite3" | "sqlite" => Some("sqlite3"),
        word => match conf::boolean(word) {
            Some(false) => None,
            Some(true) => {
                let found = sources.native(dsn);
                if found.is_none() {
                    let message = format!(
                        "class '{name}': odbc.ini does not say which driver data source '{dsn}' has, or it is none of MySQL, \
                         MariaDB, PostgreSQL and SQLite; unixODBC is used"
                    );
                    findings.warning(
                        place,
                        message,
                        "write native => mysql, pgsql or sqlite3, or remove the line",
                    );
                }
                found
            }
            None => {
                let message = format!("native={} is no driver; unixODBC is used", class.native);
                findings.warning(place, message, "write yes, mysql, pgsql, sqlite3 or no");
                None
            }
        },
    };
    let link = match native {
        None => Link::Odbc {
            dsn: dsn.to_owned(),
            user: class.username.clone(),
            password: class.password.clone(),
            environment: variables.clone(),
        },
        Some("sqlite3") => {
            let Some(file) = sources.value(dsn, &["database", "dbq", "dbname"]) else {
                return nowhere(name, dsn, "Database", place, findings);
            };
            Link::Sqlite(PathBuf::from(file))
        }
        Some(driver) => {
            let Some(database) = sources.value(dsn, &["database", "dbname", "db"]) else {
                return nowhere(name, dsn, "Database", place, findings);
            };
            let default = if driver == "mysql" { 3306 } else { 5432 };
            let text = |names: &[&str]| sources.value(dsn, names).unwrap_or_default().to_owned();
            let chosen =
                |own: &str, names: &[&str]| if own.is_empty() { text(names) } else { own.to_owned() };
            let server = Server {
                host: text(&["server", "servername", "host", "tcpip"]),
                port: text(&["port"]).parse().unwrap_or(default),
                socket: text(&["socket"]),
                database: database.to_owned(),
                user: chosen(&class.username, &["user", "uid", "username"]),
                password: super::Secret::new(chosen(class.password.expose(), &["password", "pwd"])),
            };
            if driver == "mysql" { Link::Mysql(server) } else { Link::Pgsql(server) }
        }
    };
    Some(Settings {
        name: name.to_owned(),
        link,
        connections: class.max_connections,
        connect_timeout: class.connect_timeout,
        retry_after: class.negative_connection_cache,
        slow: Duration::from_millis(class.slow_query_limit.into()),
        transaction_timeout: class.transaction_timeout,
        isolation: Isolation::named(&class.isolation).unwrap_or_else(|| {
            let message = format!("isolation={} is not known; it is read_committed", class.isolation);
            let remedy = "write read_committed, read_uncommitted, repeatable_read or serializable";
            findings.warning(class.origin.place_of("isolation"), message, remedy);
            Isolation::default()
        }),
        forcecommit: class.forcecommit,
        pre_connect: class.pre_connect,
        place: class.origin.place.clone(),
    })
}

fn nowhere(name: &str, dsn: &str, option: &str, place: &Place, findings: &mut Findings) -> Option<Settings> {
    let message = format!("class '{name}' is not used: data source '{dsn}' of odbc.ini has no {option}");
    findings.error(place, message, format!("add {option} = … to [{dsn}] of odbc.ini, or remove native="));
    None
}
