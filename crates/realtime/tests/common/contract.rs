//! What every database answers alike, whatever speaks to it.

use std::time::Duration;

use realtime::{
    Answer, Connection, Databases, Failure, Filter, Isolation, Load, Op, Order, Query, ResultSet, Rewrite,
    Row, Ticket,
};

use super::{LIMIT, collect, open, raw};

pub fn set(name: &str, value: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(value.to_owned()))
}
pub fn key(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
fn load(table: &str, filters: Vec<Filter>) -> Query {
    let order = vec![Order { column: "name".into(), descending: false }];
    Query::Load(Load { table: table.into(), filters, order, limit: None })
}
pub fn rows(answer: Result<Answer, Failure>) -> Vec<Row> {
    match answer.unwrap() {
        Answer::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}
fn names(answer: Result<Answer, Failure>) -> Vec<String> {
    rows(answer).iter().map(|row| row.get("name").unwrap().to_owned()).collect()
}

/// Checks a database that has nothing in it yet; `driver` is the native one of its kind.
pub fn contract(connection: Connection, driver: &str) {
    let hasty = Connection { transaction_within: Duration::from_secs(1), ..connection.clone() };
    let mut databases = open(connection);
    let db = &mut databases;
    let made = db.ask(
        "db",
        raw("CREATE TABLE friends (name VARCHAR(40) NOT NULL PRIMARY KEY, port INTEGER, host VARCHAR(40) DEFAULT \
             'dynamic', price NUMERIC(6,2), seen TIMESTAMP NULL)"),
    );
    made.unwrap_or_else(|failure| panic!("{driver}: {failure}"));
    rows_are_written_and_found(driver, db);
    values_are_text_as_the_field_shows_them(driver, db);
    hostile_values_stay_values(driver, db);
    a_batch_is_done_whole_or_not_at_all(driver, db);
    many_rows_are_rewritten_at_once(driver, db);
    columns_that_come_later_are_seen(driver, db);
    statements_of_the_site(driver, db);
    many_at_once_are_each_answered_once(driver, db);
    rows_looked_up_together_are_those_looked_up_alone(driver, db);
    a_transaction_is_kept_or_taken_back_as_a_whole(driver, db);
    a_statement_that_fails_leaves_no_half_transaction(driver, db);
    what_a_transaction_sees_is_what_was_wanted(driver, db);
    transactions_leave_connections_to_others(driver, db);
    a_transaction_that_lasts_too_long_is_taken_back(driver, &mut open(hasty));
    assert!(databases.finish(LIMIT), "{driver}");
}

fn rows_are_written_and_found(driver: &str, db: &mut Databases) {
    for (name, port) in [("6001", "4569"), ("6002", "4570"), ("7001", "")] {
        let sets = vec![set("name", name), set("port", port), set("unknown_to_this_table", "x")];
        let stored = db.ask("db", Query::Store { table: "friends".into(), sets });
        assert_eq!(stored, Ok(Answer::Changed(1)), "{driver}");
    }
    let filter = |column: &str, op, value: &str| Filter { column: column.into(), op, value: value.into() };
    for (filters, expected) in [
        (vec![], vec!["6001", "6002", "7001"]),
        (vec![Filter::is("name", "6001")], vec!["6001"]),
        (vec![Filter::is("NAME", "6001")], vec!["6001"]),
        (vec![filter("name", Op::Like, "60%")], vec!["6001", "6002"]),
        (vec![filter("name", Op::NotLike, "60%")], vec!["7001"]),
        (vec![filter("name", Op::Like, "60\\%")], vec![]),
        (vec![filter("port", Op::Greater, "4569")], vec!["6002"]),
        (vec![filter("port", Op::LessOrEqual, "4570")], vec!["6001", "6002"]),
        (vec![filter("port", Op::NotEqual, "4570")], vec!["6001"]),
        (vec![filter("name", Op::Like, "60%"), Filter::is("port", "4570")], vec!["6002"]),
    ] {
        assert_eq!(names(db.ask("db", load("friends", filters.clone()))), expected, "{driver}: {filters:?}");
    }
    let schema = match driver {
        "postgresql" => "public",
        "mysql" => "pbx",
        _ => "main",
    };
    let named = names(db.ask("db", load(&format!("{schema}.friends"), vec![Filter::is("port", "4569")])));
    assert_eq!(named, ["6001"], "{driver}: a table may be named with its schema");
    let one = rows(db.ask("db", load("friends", vec![Filter::is("name", "7001")])));
    let expected: Row = [("name", "7001"), ("host", "dynamic")].into_iter().collect();
    assert_eq!(one, [expected], "{driver}: NULL is left out, and what was not given has its default");
    let update = |name: &str| Query::Update {
        table: "friends".into(),
        keys: vec![key("name", name)],
        sets: vec![set("port", "5000"), set("nowhere", "x"), ("host".into(), None)],
    };
    assert_eq!(db.ask("db", update("7001")), Ok(Answer::Changed(1)), "{driver}");
    assert_eq!(
        db.ask("db", update("7001")),
        Ok(Answer::Changed(1)),
        "{driver}: found, though it changes nothing"
    );
    assert_eq!(db.ask("db", update("9999")), Ok(Answer::Changed(0)), "{driver}");
    for (port, expected) in
        [("1", Ok(Answer::Changed(1))), ("1", Ok(Answer::Changed(1))), ("2", Ok(Answer::Changed(1)))]
    {
        let put = Query::Put {
            table: "friends".into(),
            keys: vec![key("name", "8001")],
            sets: vec![set("port", port)],
        };
        assert_eq!(db.ask("db", put), expected, "{driver}");
    }
    let found = rows(db.ask("db", load("friends", vec![Filter::is("name", "8001")])));
    assert_eq!(found[0].get("port"), Some("2"), "{driver}");
    let destroy = |keys| Query::Destroy { table: "friends".into(), keys };
    assert_eq!(db.ask("db", destroy(vec![key("name", "8001")])), Ok(Answer::Changed(1)), "{driver}");
    let everything = db.ask("db", destroy(vec![]));
    assert!(matches!(everything, Err(Failure::Unaskable { .. })), "{driver}: {everything:?}");
    let twice = db.ask("db", Query::Store { table: "friends".into(), sets: vec![set("name", "6001")] });
    assert!(matches!(twice, Err(Failure::Refused { .. } | Failure::Value { .. })), "{driver}: {twice:?}");
    let nowhere = db.ask("db", load("no_such_table", vec![]));
    assert!(matches!(nowhere, Err(Failure::Refused { .. })), "{driver}: {nowhere:?}");
    let unknown = db.ask("db", load("friends", vec![Filter::is("no_such_column", "1")]));
    assert!(matches!(unknown, Err(Failure::Unaskable { .. })), "{driver}: {unknown:?}");
}

fn values_are_text_as_the_field_shows_them(driver: &str, db: &mut Databases) {
    let sets = vec![
        set("name", "typed"),
        set("port", "-7"),
        set("price", "12.50"),
        set("seen", "2026-11-22 21:30:00"),
        set("host", "Zoë \u{1F4DE}"),
    ];
    db.ask("db", Query::Store { table: "friends".into(), sets }).unwrap();
    let [row] = rows(db.ask("db", load("friends", vec![Filter::is("name", "typed")]))).try_into().unwrap();
    let price = if driver == "sqlite" { "12.5" } else { "12.50" };
    for (column, expected) in
        [("port", "-7"), ("price", price), ("seen", "2026-11-22 21:30:00"), ("host", "Zoë \u{1F4DE}")]
    {
        assert_eq!(row.get(column), Some(expected), "{driver}: {column}");
    }
    let set = db.ask("db", raw("SELECT name, port, price, seen, host FROM friends WHERE name = 'typed'"));
    let Ok(Answer::Set(ResultSet { columns, rows, .. })) = set else { panic!("{driver}: {set:?}") };
    assert_eq!(columns, ["name", "port", "price", "seen", "host"], "{driver}");
    let expected =
        ["typed", "-7", price, "2026-11-22 21:30:00", "Zoë \u{1F4DE}"].map(|text| Some(text.to_owned()));
    assert_eq!(rows, [expected], "{driver}");
    db.ask("db", Query::Destroy { table: "friends".into(), keys: vec![key("name", "typed")] }).unwrap();
}

fn hostile_values_stay_values(driver: &str, db: &mut Databases) {
    for hostile in ["x' OR '1'='1", "\"; DROP TABLE friends; --", "\\' OR 1=1 #", "`", "${x}", "%", "a\nb"] {
        let sets = vec![set("name", hostile), set("friends; DROP TABLE friends", "x")];
        assert_eq!(
            db.ask("db", Query::Store { table: "friends".into(), sets }),
            Ok(Answer::Changed(1)),
            "{driver}"
        );
        let found = names(db.ask("db", load("friends", vec![Filter::is("name", hostile)])));
        assert_eq!(found, [hostile], "{driver}: what was written is found, and nothing else");
        let destroyed = Query::Destroy { table: "friends".into(), keys: vec![key("name", hostile)] };
        assert_eq!(db.ask("db", destroyed), Ok(Answer::Changed(1)), "{driver}");
        let named = db.ask("db", load(hostile, vec![]));
        assert!(
            matches!(named, Err(Failure::Refused { .. } | Failure::Unaskable { .. })),
            "{driver}: {named:?}"
        );
    }
    assert_eq!(names(db.ask("db", load("friends", vec![]))), ["6001", "6002", "7001"], "{driver}");
}

fn a_batch_is_done_whole_or_not_at_all(driver: &str, db: &mut Databases) {
    let store = |name: &str| Query::Store { table: "friends".into(), sets: vec![set("name", name)] };
    let bad = db.ask("db", Query::Batch(vec![store("9001"), store("9002"), store("6001")]));
    assert!(matches!(bad, Err(Failure::Refused { .. } | Failure::Value { .. })), "{driver}: {bad:?}");
    assert_eq!(names(db.ask("db", load("friends", vec![]))), ["6001", "6002", "7001"], "{driver}");
    let good = db.ask("db", Query::Batch(vec![store("9001"), store("9002")]));
    assert_eq!(good, Ok(Answer::Batch(vec![1, 1])), "{driver}");
    let mixed = db.ask("db", Query::Batch(vec![store("9003"), load("friends", vec![])]));
    assert!(matches!(mixed, Err(Failure::Unaskable { .. })), "{driver}: {mixed:?}");
    assert_eq!(names(db.ask("db", load("friends", vec![]))).len(), 5, "{driver}");
}

fn many_rows_are_rewritten_at_once(driver: &str, db: &mut Databases) {
    let name = |row: u32| format!("r{row:03}'");
    let store = |row| Query::Store { table: "friends".into(), sets: vec![set("name", &name(row))] };
    db.ask("db", Query::Batch((0..100).map(store).collect())).unwrap();
    let columns = ["nowhere", "port", "host"].map(str::to_owned);
    let row = |row: u32, host: Option<&str>| {
        // Of every fourth the port is not known: nothing in a number is NULL.
        let port = if row % 4 == 3 { String::new() } else { row.to_string() };
        (name(row), vec![Some("x".to_owned()), Some(port), host.map(str::to_owned)])
    };
    // One of them is there twice, and some are not there.
    let rows: Vec<_> =
        std::iter::once(row(7, Some("early"))).chain((0..105).map(|nth| row(nth, Some("late")))).collect();
    for (rows, expected) in [(rows.as_slice(), None), (&rows[..1], Some(1)), (&[], Some(0))] {
        let rows = rows.to_vec();
        let asked = Rewrite { table: "friends".into(), key: "name".into(), columns: columns.to_vec(), rows };
        let asked = Query::Rewrite(Box::new(asked));
        let Ok(Answer::Batch(changed)) = db.ask("db", Query::Batch(vec![asked])) else {
            panic!("{driver}: not rewritten")
        };
        // A row that is there twice counts once or twice, as it comes to stand in one statement or in two.
        let changed = changed[0];
        assert!(
            expected.map_or((100..=101).contains(&changed), |rows| rows == changed),
            "{driver}: {changed}"
        );
    }
    let found = rows_of(db, "r%");
    assert_eq!(found.len(), 100, "{driver}: none is made");
    for (nth, found) in (0u32..).zip(&found) {
        let port = (nth % 4 != 3).then(|| nth.to_string());
        assert_eq!(found.get("name"), Some(name(nth).as_str()), "{driver}");
        assert_eq!(found.get("port"), port.as_deref(), "{driver}: {nth}");
        assert_eq!(found.get("host"), Some(if nth == 7 { "early" } else { "late" }), "{driver}: {nth}");
    }
    let rows = rows[..2].to_vec();
    let nowhere = Rewrite { table: "friends".into(), key: "nowhere".into(), columns: columns.to_vec(), rows };
    let nowhere = db.ask("db", Query::Rewrite(Box::new(nowhere)));
    assert!(matches!(nowhere, Err(Failure::Unaskable { .. })), "{driver}");
    db.ask("db", raw("DELETE FROM friends WHERE name LIKE 'r%'")).unwrap();
}

fn rows_of(db: &mut Databases, like: &str) -> Vec<Row> {
    let filters = vec![Filter { column: "name".into(), op: Op::Like, value: like.into() }];
    let order = vec![Order { column: "name".into(), descending: false }];
    rows(db.ask("db", Query::Load(Load { table: "friends".into(), filters, order, limit: None })))
}

fn columns_that_come_later_are_seen(driver: &str, db: &mut Databases) {
    db.ask("db", raw("ALTER TABLE friends ADD COLUMN context VARCHAR(20)")).unwrap();
    // Known columns are asked for until one is wanted that is not among them.
    let found = db.ask("db", load("friends", vec![Filter::is("context", "internal")]));
    assert_eq!(names(found), Vec::<String>::new(), "{driver}");
    let update = Query::Update {
        table: "friends".into(),
        keys: vec![key("name", "6001")],
        sets: vec![set("context", "internal")],
    };
    assert_eq!(db.ask("db", update), Ok(Answer::Changed(1)), "{driver}");
    let columns = db.ask("db", Query::Columns { table: "friends".into() });
    let expected = ["name", "port", "host", "price", "seen", "context"].map(str::to_owned).to_vec();
    assert_eq!(columns, Ok(Answer::Columns(expected)), "{driver}");
    db.ask("db", raw("ALTER TABLE friends DROP COLUMN context")).unwrap();
    assert_eq!(
        names(db.ask("db", load("friends", vec![]))).len(),
        5,
        "{driver}: a column that is gone is forgotten"
    );
    assert_eq!(
        db.ask("db", Query::Columns { table: "none".into() }),
        Ok(Answer::Columns(Vec::new())),
        "{driver}"
    );
}

fn statements_of_the_site(driver: &str, db: &mut Databases) {
    let changed = db.ask("db", raw("UPDATE friends SET port = 1 WHERE name LIKE '900_'"));
    let Ok(Answer::Set(set)) = changed else { panic!("{driver}: {changed:?}") };
    assert_eq!(set.changed, 2, "{driver}");
    let limited = Query::Raw { sql: "SELECT name FROM friends ORDER BY name".into(), limit: Some(2) };
    let Ok(Answer::Set(set)) = db.ask("db", limited) else { panic!("{driver}") };
    assert_eq!(set.rows.len(), 2, "{driver}");
    let wrong = db.ask("db", raw("SELEC 1"));
    assert!(matches!(wrong, Err(Failure::Refused { .. })), "{driver}: {wrong:?}");
    let null = db.ask("db", raw("SELECT NULL AS no_value, '' AS empty_text"));
    let Ok(Answer::Set(set)) = null else { panic!("{driver}: {null:?}") };
    assert_eq!(set.rows, [[None, Some(String::new())]], "{driver}");
}

fn many_at_once_are_each_answered_once(driver: &str, db: &mut Databases) {
    for number in 0..500 {
        let query = load("friends", vec![Filter::is("name", "6001")]);
        db.submit("db", Ticket { asker: 1, number }, query).unwrap();
    }
    let (answers, _) = collect(db, 500);
    let mut numbers: Vec<u64> = answers.iter().map(|(ticket, _)| ticket.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>(), "{driver}");
    assert!(answers.into_iter().all(|(_, answer)| names(answer) == ["6001"]), "{driver}");
    let status = db.status();
    assert!((1..=4).contains(&status[0].open), "{driver}: {status:?}");
    assert_eq!(status[0].standing, realtime::Standing::Up, "{driver}");
}

/// What databases hold for equal they disagree on; here each is only to agree with itself.
fn rows_looked_up_together_are_those_looked_up_alone(driver: &str, db: &mut Databases) {
    let store = |name: &str| Query::Store { table: "friends".into(), sets: vec![set("name", name)] };
    let stored = (0..150).map(|nth| format!("Peer{nth:03}")).chain(["o'brien \\ %".into(), "größe".into()]);
    db.ask("db", Query::Batch(stored.map(|name| store(&name)).collect())).unwrap();
    let one = |column: &str, value: &str| {
        let filters = vec![Filter::is(column, value)];
        Query::Load(Load { table: "friends".into(), filters, limit: Some(1), ..Load::default() })
    };
    let plain: Vec<_> = (0..200).map(|nth| one("name", &format!("Peer{nth:03}"))).collect();
    let odd: Vec<_> = (0..150)
        .map(|nth| match nth % 10 {
            0 => one("name", &format!("pEER{nth:03}")),
            1 => one("name", &format!("Peer{nth:03} ")),
            2 => one("name", "Peer007"),
            3 => one("NAME", "o'brien \\ %"),
            4 => one("name", "größe"),
            5 => one("name", ""),
            _ => one("name", &format!("Peer{nth:03}")),
        })
        .collect();
    // A number is compared as a number, and what no column holds is refused for itself alone.
    let numbers: Vec<_> =
        (0..50).map(|nth| one("port", if nth % 2 == 0 { "4569" } else { "no port" })).collect();
    let mut spoilt = plain.clone();
    spoilt.insert(70, one("name", "a NUL\0"));
    for (what, queries) in [("plain", plain), ("odd", odd), ("numbers", numbers), ("spoilt", spoilt)] {
        let alone: Vec<_> = queries.iter().map(|query| db.ask("db", query.clone())).collect();
        for (number, query) in (0..).zip(&queries) {
            db.submit("db", Ticket { asker: 1, number }, query.clone()).unwrap();
        }
        let (mut together, _) = collect(db, queries.len());
        together.sort_by_key(|(ticket, _)| ticket.number);
        // Of a table whose columns are looked at again in between a row may have more of them.
        let found = |answer: &Result<Answer, Failure>| match answer {
            Ok(Answer::Rows(rows)) => {
                Ok(rows.iter().map(|row| row.get("name").map(str::to_owned)).collect::<Vec<_>>())
            }
            other => Err(other.clone()),
        };
        for (((_, together), alone), query) in together.iter().zip(&alone).zip(&queries) {
            assert_eq!(found(together), found(alone), "{driver}: {what}: {query:?}");
        }
        assert!(
            alone.iter().any(|answer| !matches!(answer, Ok(Answer::Rows(rows)) if rows.is_empty())),
            "{what}"
        );
    }
    db.ask("db", raw("DELETE FROM friends WHERE name NOT LIKE '6%' AND name NOT LIKE '7%'")).unwrap();
}

fn within(transaction: u64, begins: bool, sql: &str) -> Query {
    let isolation = Isolation::ReadCommitted;
    Query::Within { transaction, begins, isolation, sql: sql.to_owned(), limit: None }
}
fn insert(name: &str) -> String {
    format!("INSERT INTO friends (name) VALUES ('{name}')")
}
fn end(transaction: u64, commit: bool) -> Query {
    Query::End { transaction, commit }
}
/// How many rows there are whose names begin with `tx`, for everybody.
fn kept(db: &mut Databases) -> usize {
    rows_of(db, "tx%").len()
}
/// The first value of an answer.
fn value(answer: Result<Answer, Failure>) -> String {
    let Ok(Answer::Set(set)) = answer else { panic!("{answer:?}") };
    set.rows[0][0].clone().unwrap()
}
const COUNT: &str = "SELECT count(*) FROM friends WHERE name LIKE 'tx%'";

fn a_transaction_is_kept_or_taken_back_as_a_whole(driver: &str, db: &mut Databases) {
    for (number, commit, left) in [(1, false, 0), (2, true, 2)] {
        let first = db.ask("db", within(number, true, &insert("tx1")));
        assert!(matches!(&first, Ok(Answer::Set(set)) if set.changed == 1), "{driver}: {first:?}");
        db.ask("db", within(number, false, &insert("tx2"))).unwrap();
        assert_eq!(kept(db), 0, "{driver}: nobody else sees it yet");
        assert_eq!(value(db.ask("db", within(number, false, COUNT))), "2", "{driver}: it sees itself");
        assert_eq!(db.status()[0].lent, 1, "{driver}");
        assert_eq!(db.ask("db", end(number, commit)), Ok(Answer::Changed(0)), "{driver}");
        assert_eq!(kept(db), left, "{driver}: commit {commit}");
        let over = db.ask("db", within(number, false, COUNT));
        assert!(matches!(over, Err(Failure::Refused { .. })), "{driver}: it is over: {over:?}");
        let again = db.ask("db", end(number, true));
        assert!(matches!(again, Err(Failure::Refused { .. })), "{driver}: {again:?}");
        assert_eq!(db.ask("db", end(number, false)), Ok(Answer::Changed(0)), "{driver}");
    }
    db.ask("db", raw("DELETE FROM friends WHERE name LIKE 'tx%'")).unwrap();
}

/// PostgreSQL takes nothing more after a statement that fails, others do: whatever is told as committed is there.
fn a_statement_that_fails_leaves_no_half_transaction(driver: &str, db: &mut Databases) {
    db.ask("db", within(10, true, &insert("tx1"))).unwrap();
    let twice = db.ask("db", within(10, false, &insert("tx1")));
    assert!(matches!(twice, Err(Failure::Refused { .. } | Failure::Value { .. })), "{driver}: {twice:?}");
    let more = db.ask("db", within(10, false, &insert("tx2")));
    let committed = db.ask("db", end(10, true));
    // What SQLite says through ODBC does not tell whether it has let go of the transaction.
    let goes_on = match driver {
        "postgresql" => false,
        "sqlite" => db.status()[0].driver == "sqlite",
        _ => true,
    };
    match goes_on {
        true => assert_eq!((more.is_ok(), committed), (true, Ok(Answer::Changed(0))), "{driver}"),
        false => {
            assert!(matches!(more, Err(Failure::Refused { .. })), "{driver}: {more:?}");
            assert!(matches!(committed, Err(Failure::Refused { .. })), "{driver}: {committed:?}");
        }
    }
    assert_eq!(kept(db), if goes_on { 2 } else { 0 }, "{driver}");
    db.ask("db", raw("DELETE FROM friends WHERE name LIKE 'tx%'")).unwrap();
}

fn what_a_transaction_sees_is_what_was_wanted(driver: &str, db: &mut Databases) {
    if driver == "sqlite" {
        // While one has begun, nobody else writes.
        return;
    }
    for (number, isolation, seen) in
        [(20, Isolation::ReadCommitted, "1"), (21, Isolation::RepeatableRead, "0")]
    {
        let count = |begins| Query::Within {
            transaction: number,
            begins,
            isolation,
            sql: COUNT.to_owned(),
            limit: None,
        };
        assert_eq!(value(db.ask("db", count(true))), "0", "{driver}");
        db.ask("db", raw(&insert("tx1"))).unwrap();
        assert_eq!(value(db.ask("db", count(false))), seen, "{driver}: {isolation:?}");
        db.ask("db", end(number, true)).unwrap();
        db.ask("db", raw("DELETE FROM friends WHERE name LIKE 'tx%'")).unwrap();
    }
}

fn transactions_leave_connections_to_others(driver: &str, db: &mut Databases) {
    let status = db.status();
    // Writers of a file take turns, and whoever has begun may write.
    let most = if status[0].driver == "sqlite" { 1 } else { u64::from(status[0].connections_max) };
    for number in 0..most {
        assert_eq!(value(db.ask("db", within(30 + number, true, "SELECT 7"))), "7", "{driver}");
    }
    assert_eq!(kept(db), 0, "{driver}: whoever has no transaction is answered");
    let late = Ticket { asker: 1, number: 99 };
    db.submit("db", late, within(99, true, "SELECT 8")).unwrap();
    db.submit("db", Ticket { asker: 1, number: 1 }, load("friends", vec![Filter::is("name", "6001")]))
        .unwrap();
    let (first, _) = collect(db, 1);
    assert_eq!(first[0].0.number, 1, "{driver}: a further transaction waits");
    db.submit("db", Ticket { asker: 1, number: 2 }, end(30, false)).unwrap();
    let (rest, _) = collect(db, 2);
    let mut numbers: Vec<u64> = rest.iter().map(|(ticket, _)| ticket.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 99], "{driver}: and begins when another has ended");
    for number in (31..30 + most).chain([99]) {
        db.ask("db", end(number, false)).unwrap();
    }
    // The figures follow an answer; the next one comes behind them.
    assert_eq!(kept(db), 0, "{driver}");
    assert_eq!(db.status()[0].lent, 0, "{driver}");
}

fn a_transaction_that_lasts_too_long_is_taken_back(driver: &str, db: &mut Databases) {
    db.ask("db", within(40, true, &insert("tx1"))).unwrap();
    let over = loop {
        match db.ask("db", within(40, false, COUNT)) {
            Ok(_) => {}
            Err(failure) => break failure,
        }
    };
    assert!(matches!(&over, Failure::Refused { why, .. } if why.contains("over")), "{driver}: {over:?}");
    assert_eq!(kept(db), 0, "{driver}");
    assert_eq!(db.ask("db", within(41, true, COUNT)).map(|_| ()), Ok(()), "{driver}: the next one begins");
    assert_eq!(db.ask("db", end(41, true)), Ok(Answer::Changed(0)), "{driver}");
    assert!(db.finish(LIMIT), "{driver}");
}
