//! Databases that are stopped, slow, silent or lying: nobody waits for them longer than agreed, and they are found again.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::{LIMIT, Server, collect, open, raw, wait_for_answer};
use realtime::{Answer, Connection, Databases, Failure, Load, Query, Standing, Target, Ticket, Turned};

/// A server that is none: what it does with each connection.
#[derive(Clone, Copy)]
enum Manners {
    /// Takes the connection, and says nothing.
    Silent,
    /// Says what no database says, and goes on.
    Lying,
    /// Closes at once.
    Closing,
    /// Says the first packet of MariaDB, cut in the middle, and goes silent.
    HalfSaid,
}

fn impostor(manners: Manners) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut open: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let nonsense = b"HTTP/1.1 400 Bad Request\r\nServer: \xff\xff\xff\xff\0\0\0\x01\x0a\r\n\r\n";
            match manners {
                Manners::Silent => {}
                Manners::Closing => continue,
                Manners::Lying => {
                    let _ = stream.write_all(&nonsense.repeat(200));
                    let mut said = [0; 512];
                    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                    let _ = stream.read(&mut said);
                    let _ = stream.write_all(nonsense);
                }
                Manners::HalfSaid => {
                    let _ = stream.write_all(b"\x5d\0\0\0\x0a10.11.6-MariaDB\0\x01\0\0\0abc");
                }
            }
            open.push(stream);
        }
    });
    port
}

fn quick(target: Target) -> Connection {
    Connection {
        connect_within: Duration::from_millis(300),
        query_within: Duration::from_millis(900),
        negative_cache: Duration::from_millis(250),
        ..Connection::new("db", target)
    }
}

fn submit(databases: &mut Databases, number: u64, query: Query) -> Duration {
    let before = Instant::now();
    databases.submit("db", Ticket { asker: 0, number }, query).unwrap();
    before.elapsed()
}

fn anything() -> Query {
    Query::Load(Load { table: "ps_endpoints".into(), ..Load::default() })
}

#[test]
fn a_server_that_is_none_fails_every_query_in_time_and_holds_nobody_up() {
    for scheme in ["mysql", "postgresql"] {
        for (name, manners) in [
            ("silent", Manners::Silent),
            ("lying", Manners::Lying),
            ("closing", Manners::Closing),
            ("half said", Manners::HalfSaid),
        ] {
            let url = format!("{scheme}://pbx:x@127.0.0.1:{}/pbx", impostor(manners));
            let mut databases = open(quick(Target::from_url(&url).unwrap()));
            let handed: Duration = (0..20).map(|number| submit(&mut databases, number, anything())).sum();
            assert!(handed < LIMIT, "{scheme} {name}: handing over waits for nothing");
            let (answers, turned) = collect(&mut databases, 20);
            for (ticket, answer) in answers {
                let failure = answer.expect_err(name);
                assert!(failure.is_passing(), "{scheme} {name} {ticket:?}: {failure}");
                assert!(!failure.to_string().contains('\n'), "{scheme} {name}: {failure}");
            }
            assert_eq!(turned.len(), 1, "{scheme} {name}: told once: {turned:?}");
            assert!(matches!(&turned[0].standing, Standing::Down(_)), "{scheme} {name}: {turned:?}");
            assert_eq!(databases.status()[0].failed, 20, "{scheme} {name}");
            databases.finish(LIMIT);
        }
    }
}

#[test]
fn a_database_that_cannot_be_reached_fails_at_once_and_is_told_once() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let url = format!("mysql://pbx:secret@127.0.0.1:{port}/pbx");
    let mut databases = open(quick(Target::from_url(&url).unwrap()));
    for number in 0..3 {
        submit(&mut databases, number, anything());
        let (answers, turned) = collect(&mut databases, 1);
        let failure = answers[0].1.clone().unwrap_err();
        assert!(matches!(&failure, Failure::Unreachable { .. }), "{failure}");
        assert!(!failure.to_string().contains("secret"), "{failure}");
        assert_eq!(turned.len(), usize::from(number == 0), "{turned:?}");
    }
}

#[test]
fn as_many_queries_wait_as_may_and_the_next_is_turned_away() {
    let url = format!("mysql://pbx:x@127.0.0.1:{}/pbx", impostor(Manners::Silent));
    let settings = Connection { waiting_max: 5, ..quick(Target::from_url(&url).unwrap()) };
    let mut databases = open(settings);
    for number in 0..5 {
        submit(&mut databases, number, anything());
    }
    let ticket = Ticket { asker: 0, number: 5 };
    let sixth = databases.submit("db", ticket, anything());
    assert_eq!(sixth, Err(Failure::Busy { name: "db".into(), waiting: 5 }));
    assert_eq!(databases.status()[0].refused, 1);
    let other = databases.submit("other", ticket, anything());
    assert_eq!(other, Err(Failure::Unknown { name: "other".into() }));
    collect(&mut databases, 5);
    assert_eq!(databases.submit("db", ticket, anything()), Ok(()));
}

#[test]
fn what_was_handed_over_is_written_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let target = || Target::Sqlite { path: folder.path().join("pbx.db") };
    let mut databases = open(Connection::new("db", target()));
    databases.ask("db", raw("CREATE TABLE t (name TEXT)")).unwrap();
    for number in 0..200 {
        let sets = vec![("name".to_owned(), Some(number.to_string()))];
        submit(&mut databases, number, Query::Store { table: "t".into(), sets });
    }
    assert!(databases.finish(LIMIT));
    let (answers, _) = collect(&mut databases, 200);
    assert!(answers.iter().all(|(_, answer)| *answer == Ok(Answer::Changed(1))), "{answers:?}");
    let late = databases.submit("db", Ticket { asker: 0, number: 1000 }, anything());
    assert!(late.is_err(), "nothing is taken after the end");
    let mut again = open(Connection::new("db", target()));
    let Ok(Answer::Set(set)) = again.ask("db", raw("SELECT count(*) FROM t")) else { panic!() };
    assert_eq!(set.rows, [[Some("200".to_owned())]]);
}

#[test]
fn a_reload_leaves_alone_what_is_described_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::new("db", Target::Sqlite { path: folder.path().join("a.db") });
    let mut databases = open(connection.clone());
    databases.ask("db", raw("CREATE TABLE t (name TEXT)")).unwrap();
    let settings = |connections| realtime::Settings { connections };
    databases.configure(settings(vec![connection.clone()]));
    assert_eq!(databases.status()[0].connects, 1, "the connection is kept");
    submit(&mut databases, 7, raw("SELECT 1"));
    let other = Connection { slow_query: Duration::ZERO, ..connection };
    databases.configure(settings(vec![other]));
    let (answers, _) = collect(&mut databases, 1);
    assert!(answers[0].1.is_ok(), "what the old one was asked is answered: {answers:?}");
    databases.ask("db", raw("SELECT 1")).unwrap();
    assert_eq!((databases.status()[0].connects, databases.status()[0].slow), (1, 1));
    databases.configure(settings(Vec::new()));
    assert!(!databases.has("db"));
}

#[test]
fn mariadb_that_is_stopped_is_missed_and_found_again() {
    if let Some(mut server) = Server::mariadb() {
        stopped_and_started(&mut server, "SELECT SLEEP(30)");
    }
}

#[test]
fn postgresql_that_is_stopped_is_missed_and_found_again() {
    if let Some(mut server) = Server::postgres() {
        stopped_and_started(&mut server, "SELECT pg_sleep(30)");
    }
}

fn stopped_and_started(server: &mut Server, sleep: &str) {
    let settings = Connection {
        negative_cache: Duration::from_millis(250),
        query_within: Duration::from_secs(5),
        connections_max: 2,
        ..server.settings()
    };
    let mut databases = open(settings);
    wait_for_answer(&mut databases, raw("CREATE TABLE t (name VARCHAR(20))"));
    // Slow: its time is over, others go on beside it, and the connection is not used again.
    submit(&mut databases, 1, raw(sleep));
    assert!(databases.submit("db", Ticket { asker: 0, number: 2 }, raw("SELECT 2")).is_ok());
    let (answers, _) = collect(&mut databases, 2);
    let of = |number| &answers.iter().find(|(ticket, _)| ticket.number == number).unwrap().1;
    assert!(matches!(of(1), Err(Failure::Slow { .. })), "{answers:?}");
    assert!(of(2).is_ok(), "{answers:?}");
    // Stopped while a query is on its way.
    submit(&mut databases, 3, raw(sleep));
    wait_for_answer(&mut databases, raw("SELECT 3"));
    server.stop();
    let (answers, _) = collect(&mut databases, 1);
    assert!(answers[0].1.as_ref().is_err_and(Failure::is_passing), "{answers:?}");
    let load = || Query::Load(Load { table: "t".into(), ..Load::default() });
    let mut turned: Vec<Turned> = Vec::new();
    let until = Instant::now() + LIMIT;
    while !turned.iter().any(|turned| matches!(turned.standing, Standing::Down(_))) {
        assert!(Instant::now() < until, "it is not missed");
        submit(&mut databases, 4, load());
        let (answers, more) = collect(&mut databases, 1);
        assert!(answers[0].1.as_ref().is_err_and(Failure::is_passing), "{answers:?}");
        turned.extend(more);
    }
    // Found again without being asked.
    server.start(false);
    let (mut answers, mut turned) = (Vec::new(), Vec::new());
    let until = Instant::now() + LIMIT;
    while !turned.iter().any(|turned: &Turned| turned.standing == Standing::Up) {
        assert!(Instant::now() < until, "it is not found again");
        databases.wait(Duration::from_secs(1));
        databases.drain(&mut answers, &mut turned);
    }
    assert_eq!(wait_for_answer(&mut databases, load()), Answer::Rows(Vec::new()));
    let sets = vec![("name".to_owned(), Some("6001".to_owned()))];
    let store = Query::Store { table: "t".into(), sets };
    assert_eq!(wait_for_answer(&mut databases, store), Answer::Changed(1));
}

#[test]
fn a_database_may_be_connected_to_at_once_and_each_connection_begins_with_the_site_s_statements() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::Sqlite { path: folder.path().join("pbx.db") };
    let at_connect = vec!["CREATE TEMP TABLE mine (name TEXT)".to_owned()];
    let mut databases =
        open(Connection { at_once: true, at_connect, ..Connection::new("db", target.clone()) });
    let (mut answers, mut turned) = (Vec::new(), Vec::new());
    let until = Instant::now() + LIMIT;
    while turned.is_empty() {
        assert!(Instant::now() < until, "it is not connected to");
        databases.wait(Duration::from_secs(1));
        databases.drain(&mut answers, &mut turned);
    }
    assert_eq!(turned, [Turned { name: "db".into(), standing: Standing::Up }]);
    assert!(databases.ask("db", raw("SELECT * FROM mine")).is_ok());
    let at_connect = vec!["SELEC".to_owned()];
    let mut wrong = open(Connection { at_connect, ..Connection::new("db", target) });
    let refused = wrong.ask("db", raw("SELECT 1"));
    assert!(
        matches!(&refused, Err(Failure::Unreachable { why, .. }) if why.contains("SELEC")),
        "{refused:?}"
    );
}
