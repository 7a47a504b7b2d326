//! Databases through unixODBC and the drivers of Debian's packages: what native drivers answer, these answer alike.

#[path = "../../realtime/tests/common/mod.rs"]
mod common;
mod sources;

use common::Server;
use common::contract::contract;
use sources::Sources;

#[test]
fn mariadb_keeps_the_contract() {
    let Some(sources) = Sources::for_driver("libmaodbc.so") else { return };
    let Some(server) = Server::mariadb() else { return };
    contract(sources.connection(&server), "mysql");
}

#[test]
fn postgresql_keeps_the_contract_in_both_codings_of_its_driver() {
    for library in ["psqlodbcw.so", "psqlodbca.so"] {
        let Some(sources) = Sources::for_driver(library) else { return };
        let Some(server) = Server::postgres() else { return };
        contract(sources.connection(&server), "postgresql");
    }
}

#[test]
fn sqlite_keeps_the_contract() {
    let Some(sources) = Sources::for_driver("libsqlite3odbc.so") else { return };
    contract(sources.file(), "sqlite");
}
