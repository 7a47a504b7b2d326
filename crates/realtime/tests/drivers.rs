//! What every database answers alike.

mod common;

use common::contract::{contract, rows, set};
use common::{Server, open, raw};
use realtime::schema::{self, DOUBLES_MAX, Done, Found, Parts, TABLES};
use realtime::{Answer, Connection, Databases, Failure, Load, Query, Row, Target, Tls};

#[test]
fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pbx.db");
    contract(Connection::new("db", Target::Sqlite { path }), "sqlite");
}

#[test]
fn mariadb_keeps_the_contract() {
    if let Some(server) = Server::mariadb() {
        contract(server.settings(), "mysql");
    }
}

#[test]
fn postgresql_keeps_the_contract() {
    if let Some(server) = Server::postgres() {
        contract(server.settings(), "postgresql");
    }
}

#[test]
fn sqlite_gets_the_standard_tables() {
    let folder = tempfile::tempdir().unwrap();
    standard_tables(Connection::new("db", Target::Sqlite { path: folder.path().join("pbx.db") }));
}

#[test]
fn mariadb_gets_the_standard_tables() {
    if let Some(server) = Server::mariadb() {
        standard_tables(server.settings());
    }
}

#[test]
fn postgresql_gets_the_standard_tables() {
    if let Some(server) = Server::postgres() {
        standard_tables(server.settings());
    }
}

fn standard_tables(connection: Connection) {
    let (driver, target) = (connection.target.driver(), connection.target.clone());
    let mut databases = open(connection);
    let db = &mut databases;
    for table in TABLES {
        assert_eq!(schema::check(db, ("db", &target), table), Ok(Found::Missing), "{driver}: {}", table.name);
        let done = schema::make(db, ("db", &target), table, false);
        assert_eq!(done, Ok(Done::Created), "{driver}: {}", table.name);
        assert_eq!(schema::check(db, ("db", &target), table), Ok(Found::Whole), "{driver}: {}", table.name);
        assert_eq!(
            schema::make(db, ("db", &target), table, true),
            Ok(Done::Nothing),
            "{driver}: {}",
            table.name
        );
    }
    // A table of an older hand: made without columns that came later, and with one of the site's own.
    db.ask("db", raw("DROP TABLE ps_contacts")).unwrap();
    db.ask("db", raw("CREATE TABLE ps_contacts (id VARCHAR(255), uri VARCHAR(511), our_own INTEGER)"))
        .unwrap();
    db.ask(
        "db",
        Query::Store { table: "ps_contacts".into(), sets: vec![set("id", "a"), set("our_own", "7")] },
    )
    .unwrap();
    let contacts = schema::standard("ps_contacts").unwrap();
    let Ok(Found::Lacks(lacks)) = schema::check(db, ("db", &target), contacts) else { panic!("{driver}") };
    assert_eq!(lacks.columns.len(), contacts.columns.len() - 2, "{driver}: {lacks:?}");
    assert_eq!(
        schema::make(db, ("db", &target), contacts, false),
        Ok(Done::Nothing),
        "{driver}: only completed when wanted"
    );
    assert_eq!(schema::make(db, ("db", &target), contacts, true), Ok(Done::Added(lacks, vec![])), "{driver}");
    assert_eq!(schema::check(db, ("db", &target), contacts), Ok(Found::Whole), "{driver}");
    let load = Load { table: "ps_contacts".into(), ..Load::default() };
    let kept: Row = [("id", "a"), ("our_own", "7")].into_iter().collect();
    assert_eq!(rows(db.ask("db", Query::Load(load))), [kept], "{driver}: rows are kept");
    // A member of a queue gets its number by itself.
    let sets = vec![set("queue_name", "sales"), set("interface", "PJSIP/6001"), set("paused", "0")];
    let stored = db.ask("db", Query::Store { table: "queue_members".into(), sets });
    assert_eq!(stored, Ok(Answer::Changed(1)), "{driver}");
    unique_names(db, &target);
}

/// A name of IAX2 stands once in a new table, and in an older one as soon as no row stands in the way.
fn unique_names(db: &mut Databases, target: &Target) {
    let driver = target.driver();
    let table = schema::standard("iaxfriends").unwrap();
    let lacks = || Parts { columns: Vec::new(), unique: vec![&["name"]] };
    let store = |db: &mut Databases, name: Option<&str>| {
        let sets = vec![("name".to_owned(), name.map(str::to_owned)), set("type", "friend")];
        db.ask("db", Query::Store { table: "iaxfriends".into(), sets })
    };
    assert_eq!(store(db, Some("once")), Ok(Answer::Changed(1)), "{driver}");
    assert!(matches!(store(db, Some("once")), Err(Failure::Value { .. })), "{driver}");
    // As tables were made before, with an index that has the columns and not the rule.
    let drop = match target {
        Target::Mysql(_) => "DROP INDEX iaxfriends_name_key ON iaxfriends",
        _ => "DROP INDEX iaxfriends_name_key",
    };
    db.ask("db", raw(drop)).unwrap();
    db.ask("db", raw("CREATE INDEX iaxfriends_name ON iaxfriends (name)")).unwrap();
    assert_eq!(schema::check(db, ("db", target), table), Ok(Found::Lacks(lacks())), "{driver}");
    for (name, rows) in [("a'b", 2), ("b", 3), ("c", 2), ("d", 2), ("e", 2), ("f", 2), ("g", 1)] {
        (0..rows).for_each(|_| assert_eq!(store(db, Some(name)), Ok(Answer::Changed(1)), "{driver}"));
    }
    let Ok(Done::Added(added, doubles)) = schema::make(db, ("db", target), table, true) else {
        panic!("{driver}")
    };
    assert!(added.is_empty(), "{driver}: {added:?}");
    assert_eq!(doubles.len(), 1, "{driver}: {doubles:?}");
    assert_eq!(doubles[0].examples, ["a'b", "b", "c", "d", "e"], "{driver}");
    assert!(doubles[0].is_more && doubles[0].examples.len() == DOUBLES_MAX, "{driver}");
    db.ask("db", raw("DELETE FROM iaxfriends WHERE name <> 'g'")).unwrap();
    assert_eq!(
        schema::make(db, ("db", target), table, true),
        Ok(Done::Added(lacks(), vec![])),
        "{driver}: nothing is in the way"
    );
    assert_eq!(schema::check(db, ("db", target), table), Ok(Found::Whole), "{driver}");
    assert!(matches!(store(db, Some("g")), Err(Failure::Value { .. })), "{driver}");
    // Who made the name the key has what is wanted.
    db.ask("db", raw("DROP TABLE iaxfriends")).unwrap();
    let columns = table.columns.iter().filter(|(name, _)| *name != "name");
    let columns: Vec<String> = columns.map(|(name, _)| format!("{name} VARCHAR(20)")).collect();
    db.ask(
        "db",
        raw(&format!("CREATE TABLE iaxfriends (name VARCHAR(40) PRIMARY KEY, {})", columns.join(", "))),
    )
    .unwrap();
    assert_eq!(schema::check(db, ("db", target), table), Ok(Found::Whole), "{driver}: a primary key");
}

#[test]
fn mariadb_is_asked_under_tls_when_that_is_wanted() {
    if let Some(server) = Server::mariadb() {
        under_tls(
            server,
            "SELECT VARIABLE_VALUE <> '' FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'SSL_CIPHER'",
        );
    }
}

#[test]
fn postgresql_is_asked_under_tls_when_that_is_wanted() {
    if let Some(server) = Server::postgres() {
        under_tls(server, "SELECT CAST(ssl AS INTEGER) FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    }
}

/// `question` gives 1 when the connection is encrypted.
fn under_tls(mut server: Server, question: &str) {
    if !server.restart_with_certificate() {
        return;
    }
    let with = |wanted| {
        let mut connection = server.settings();
        let (Target::Mysql(at) | Target::Postgres(at)) = &mut connection.target else { panic!("no server") };
        at.tls = wanted;
        open(connection)
    };
    for (tls, expected) in [(Tls::Never, "0"), (Tls::Required, "1")] {
        let Answer::Set(set) = common::wait_for_answer(&mut with(tls), raw(question)) else {
            panic!("{tls:?}")
        };
        assert_eq!(set.rows, [[Some(expected.to_owned())]], "{tls:?}");
    }
    let stranger = with(Tls::Verified).ask("db", raw(question));
    assert!(
        matches!(&stranger, Err(Failure::Unreachable { why, .. }) if why.contains("ertificate")),
        "whose certificate nobody knows is not asked: {stranger:?}"
    );
}
