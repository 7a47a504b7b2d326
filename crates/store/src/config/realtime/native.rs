//! `res_config_mysql.conf`, `res_pgsql.conf` and `res_config_sqlite3.conf`.

use super::{Link, Server, Settings};
use crate::config::kind::{Folder, Hidden, Int, Port, Seconds, Text, YesNo};
use crate::config::{options, read_object, read_settings};
use base::Isolation;
use conf::{File, Findings, Place};
use std::time::Duration;

/// Section that holds for all of `res_config_sqlite3.conf`.
const GENERAL: &str = "general";

options! {
    /// A section of `res_config_mysql.conf`: a database.
    Mysql, "res_config_mysql.conf", "database", IsIgnored;
    dbhost: Text = "", "Server; empty is this machine, by its socket.";
    dbport: Port = "3306", "Port of the server.";
    dbsock: Text = "", "Socket of the server on this machine.";
    dbname: Text = "", "Database; empty is the name of the section.";
    dbuser: Text = "", "User.";
    dbpass: Hidden = "", "Password.";
    dbcharset: Text = "", "Character set of the connection.",
        Ignored "*" "connections speak UTF-8";
    requirements: Text = "warn", "What becomes of columns that are missing: `warn`, `createclose` or `createchar`.",
        Ignored "warn" "missing columns are left out; `strowger db upgrade` makes them";
    max_connections: Int<1, 1000> = "4", "Most connections at once.";
    connect_timeout: Seconds<1, 600> = "10", "How long making a connection may take.";
    slow_query_limit: Int<0, 3_600_000> = "5000", "Milliseconds after which a query is worth a line of the log; 0: none is.";
    @recognised {}
}

options! {
    /// `[general]` of `res_pgsql.conf`.
    Pgsql, "res_pgsql.conf", "general", IsIgnored;
    dbhost: Text = "", "Server; empty is this machine, by its socket.";
    dbport: Port = "5432", "Port of the server.";
    dbsock: Text = "", "Folder of the server's socket on this machine.";
    dbname: Text = "asterisk", "Database.";
    dbuser: Text = "asterisk", "User.";
    dbpass: Hidden = "", "Password.";
    dbappname: Text = "", "Name that the server shows of us.",
        Ignored "*" "the server is told `strowger`";
    requirements: Text = "warn", "What becomes of columns that are missing: `warn`, `createclose` or `createchar`.",
        Ignored "warn" "missing columns are left out; `strowger db upgrade` makes them";
    order_multi_row_results_by_initial_column: YesNo = "yes", "Rows come in the order of the column that is asked for first.",
        Ignored "*" "rows are told apart by their keys";
    max_connections: Int<1, 1000> = "4", "Most connections at once.";
    connect_timeout: Seconds<1, 600> = "10", "How long making a connection may take.";
    slow_query_limit: Int<0, 3_600_000> = "5000", "Milliseconds after which a query is worth a line of the log; 0: none is.";
    @recognised {}
}

options! {
    /// A section of `res_config_sqlite3.conf`: a database.
    Sqlite, "res_config_sqlite3.conf", "database", IsIgnored;
    dbfile: Folder = "", "File of the database.";
    debug: YesNo = "no", "Log every statement.",
        Later "no" "statements are not logged";
    requirements: Text = "warn", "What becomes of columns that are missing: `warn`, `createclose` or `createchar`.",
        Ignored "warn" "missing columns are left out; `strowger db upgrade` makes them";
    batch: Int<0, 60_000> = "100", "Milliseconds for which writes are gathered.",
        Ignored "*" "writes are always gathered for a moment";
    busy_timeout: Int<0, 600_000> = "1000", "Milliseconds for which a query waits while the file is locked.",
        Ignored "*" "a query waits for the connect timeout at most, and what is known serves meanwhile";
    max_connections: Int<1, 1000> = "4", "Most connections at once.";
    slow_query_limit: Int<0, 3_600_000> = "5000", "Milliseconds after which a query is worth a line of the log; 0: none is.";
    @recognised {}
}

/// After a connection has failed, the next is tried this much later by drivers whose files do not say.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long a transaction may last, for drivers whose files do not say.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long making a connection may take, for drivers whose files do not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What the files of these drivers say alike: `common` is the most connections, and the milliseconds of a slow query.
fn database(name: String, link: Link, common: (u32, u32), place: &Place) -> Settings {
    let (connections, slow) = common;
    Settings {
        name,
        link,
        connections,
        connect_timeout: CONNECT_TIMEOUT,
        retry_after: RETRY_AFTER,
        slow: Duration::from_millis(slow.into()),
        transaction_timeout: TRANSACTION_TIMEOUT,
        isolation: Isolation::default(),
        forcecommit: false,
        pre_connect: true,
        place: place.clone(),
    }
}

/// Databases of `res_config_mysql.conf`.
pub(super) fn mysql(file: &File, findings: &mut Findings) -> Vec<Settings> {
    // A section of a stock file says nothing, and is no database.
    let made = file.objects().filter(|section| !section.variables.is_empty()).filter_map(|section| {
        let of: Mysql = read_object(section, findings, &mut |_, _, _| false)?;
        let name = section.name.to_string();
        let link = Link::Mysql(Server {
            host: of.dbhost,
            port: of.dbport,
            socket: of.dbsock,
            database: if of.dbname.is_empty() { name.clone() } else { of.dbname },
            user: of.dbuser,
            password: of.dbpass,
        });
        let common = (of.max_connections, of.slow_query_limit);
        Some(Settings { connect_timeout: of.connect_timeout, ..database(name, link, common, &section.place) })
    });
    made.collect()
}

/// The database of `res_pgsql.conf`.
pub(super) fn pgsql(file: &File, findings: &mut Findings) -> Settings {
    let of: Pgsql = read_settings(file, GENERAL, findings);
    let common = (of.max_connections, of.slow_query_limit);
    let link = Link::Pgsql(Server {
        host: of.dbhost,
        port: of.dbport,
        socket: of.dbsock,
        database: of.dbname.clone(),
        user: of.dbuser,
        password: of.dbpass,
    });
    Settings { connect_timeout: of.connect_timeout, ..database(of.dbname, link, common, &of.origin.place) }
}

/// Databases of `res_config_sqlite3.conf`.
pub(super) fn sqlite(file: &File, findings: &mut Findings) -> Vec<Settings> {
    let mut made = Vec::new();
    for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case(GENERAL)) {
        let Some(of) = read_object::<Sqlite>(section, findings, &mut |_, _, _| false) else { continue };
        if of.dbfile.as_os_str().is_empty() {
            let message = format!("database '{}' has no dbfile", section.name);
            findings.error(&section.place, message, "add dbfile=/var/lib/asterisk/realtime.sqlite3");
            continue;
        }
        let common = (of.max_connections, of.slow_query_limit);
        made.push(database(section.name.to_string(), Link::Sqlite(of.dbfile), common, &section.place));
    }
    made
}
