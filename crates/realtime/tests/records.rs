//! Rows of records: cut to their columns, and told apart from those that a table does not take.

mod common;

use common::{Server, open, raw};
use realtime::{Answer, Connection, Failure, Query, Target, Value};

#[test]
fn sqlite_takes_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cdr.db");
    takes_records(Connection::new("db", Target::Sqlite { path }), false);
}

#[test]
fn mariadb_takes_records() {
    if let Some(server) = Server::mariadb() {
        takes_records(server.settings(), true);
    }
}

#[test]
fn postgresql_takes_records() {
    if let Some(server) = Server::postgres() {
        takes_records(server.settings(), true);
    }
}

fn value(column: &str, text: &str, number: Option<&str>) -> Value {
    Value { column: column.to_owned(), text: Some(text.to_owned()), number: number.map(str::to_owned) }
}

fn record(values: Vec<Value>) -> Query {
    Query::Record { table: "calls".to_owned(), values }
}

/// `strict`: columns have lengths and types that hold.
fn takes_records(connection: Connection, strict: bool) {
    let driver = connection.target.driver();
    let mut db = open(connection);
    let missing = db.ask("db", record(vec![value("src", "100", None)]));
    assert!(matches!(missing, Err(Failure::Refused { .. })), "{driver}: no table: {missing:?}");
    let table = "CREATE TABLE calls (src VARCHAR(5), lastdata VARCHAR(8), seconds INTEGER, disposition INTEGER, \
                 word VARCHAR(20), uniqueid VARCHAR(20) NOT NULL UNIQUE)";
    db.ask("db", raw(table)).unwrap();
    let whole = vec![
        value("src", "100", None),
        value("lastdata", "äöüäöüäöüäöü", None),
        value("seconds", "", None),
        value("disposition", "ANSWERED", Some("8")),
        value("word", "ANSWERED", Some("8")),
        value("uniqueid", "1.1", None),
        value("nowhere", "x", None),
    ];
    assert_eq!(db.ask("db", record(whole.clone())), Ok(Answer::Changed(1)), "{driver}");
    let Ok(Answer::Set(set)) = db.ask("db", raw("SELECT * FROM calls")) else { panic!("{driver}") };
    let lastdata = if strict { "äöüäöüäö" } else { "äöüäöüäöüäöü" };
    let expected = [Some("100"), Some(lastdata), None, Some("8"), Some("ANSWERED"), Some("1.1")];
    assert_eq!(set.rows, [expected.map(|text| text.map(str::to_owned))], "{driver}");
    let twice = db.ask("db", record(whole));
    assert!(matches!(twice, Err(Failure::Value { .. })), "{driver}: the same again: {twice:?}");
    if strict {
        let bad = vec![value("seconds", "many", None), value("uniqueid", "1.2", None)];
        let bad = db.ask("db", record(bad));
        assert!(matches!(bad, Err(Failure::Value { .. })), "{driver}: no number: {bad:?}");
    }
    let batch =
        vec![record(vec![value("uniqueid", "2.1", None)]), record(vec![value("uniqueid", "1.1", None)])];
    let refused = db.ask("db", Query::Batch(batch));
    assert!(matches!(refused, Err(Failure::Value { .. })), "{driver}: one of two: {refused:?}");
}
