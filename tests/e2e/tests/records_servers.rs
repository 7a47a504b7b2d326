//! Call records and channel events in MariaDB, PostgreSQL and SQLite: by the files of their own, and by families of
//! `extconfig.conf`.

mod database;

use database::{Database, common};
use e2e::{Phone, Server, Site, wait};
use realtime::Target;

const DIALPLAN: &str = "[test]
exten => 100,1,Set(CDR(accountcode)=sales)
 same => n,CELGenUserEvent(Hello,it's \"me\")
 same => n,Answer()
 same => n,Hangup()
";
const EVENTS: &str = "[general]\nenable=yes\nevents=ALL\napps=answer\n";
const KINDS: [&str; 8] =
    ["CHAN_START", "Hello", "APP_START", "ANSWER", "APP_END", "HANGUP", "CHAN_END", "LINKEDID_END"];

fn make_tables(database: &mut Database, records: &str, events: &str) {
    let text = "VARCHAR(200)";
    database.sql(&format!(
        "CREATE TABLE {records} (calldate TIMESTAMP, src {text}, dst {text}, disposition {text}, billsec INTEGER, \
         accountcode {text}, uniqueid {text})"
    ));
    database.sql(&format!(
        "CREATE TABLE {events} (id SERIAL, eventtype {text}, eventtime TIMESTAMP, cid_num {text}, extra {text}, \
         uniqueid {text})"
    ));
}

/// A call is made; both tables tell of it. `own` is what the type of an event that the dialplan made looks like.
fn call_is_told(server: &Server, database: &mut Database, (records, events): (&str, &str), own: &str) {
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.until_hung_up();
    let asked =
        format!("SELECT src, dst, disposition, accountcode FROM {records} WHERE calldate IS NOT NULL");
    wait::until_true("the record is written", || {
        database.sql(&asked) == [["alice", "100", "ANSWERED", "sales"].map(str::to_owned).to_vec()]
    });
    let mut expected: Vec<&str> =
        KINDS.iter().map(|kind| if *kind == "Hello" { own } else { kind }).collect();
    expected.sort_unstable();
    let asked = format!("SELECT eventtype FROM {events} WHERE cid_num = 'alice' AND eventtime IS NOT NULL");
    wait::until_true("the events are written", || {
        let mut kinds: Vec<String> = database.sql(&asked).concat();
        kinds.sort_unstable();
        kinds == expected
    });
    let extra = database.sql(&format!("SELECT extra FROM {events} WHERE eventtype = '{own}'"));
    assert_eq!(extra, [["{\"extra\":\"it's \\\"me\\\"\"}"]]);
    server.until_idle();
}

fn site(name: &str) -> Site {
    Site::new(name).phone("alice").dialplan(DIALPLAN).add("cel.conf", EVENTS)
}

#[test]
fn files_of_postgresql_fill_its_tables() {
    let Some(postgres) = common::Server::postgres() else { return };
    let Target::Postgres(of) = postgres.settings().target else { panic!("another server") };
    let mut database = Database::on(postgres);
    make_tables(&mut database, "calls", "events");
    let realtime::Transport::Tcp { host, port } = of.transport else { panic!("a port") };
    let global = format!(
        "[global]\nhostname={host}\nport={port}\ndbname={}\nuser={}\npassword={}\n",
        of.database, of.user, of.password
    );
    let site = site("records-pgsql")
        .add("cdr_pgsql.conf", &format!("{global}table=calls\n"))
        .add("cel_pgsql.conf", &format!("{global}table=events\nshow_user_defined=yes\n"));
    let mut server = Server::start(site);
    call_is_told(&server, &mut database, ("calls", "events"), "Hello");
    // While the server is stopped both wait.
    database.stop();
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.until_hung_up();
    let waits = |command: &str| server.cli(command).contains("records wait for the database");
    wait::until_true("they wait", || waits("cdr show status") && waits("cel show status"));
    database.start();
    let count = |database: &mut Database, table: &str| database.sql(&format!("SELECT count(*) FROM {table}"));
    wait::until_true("both are written", || {
        count(&mut database, "calls") == [["2"]] && count(&mut database, "events") == [["16"]]
    });
    server.assert_healthy();
}

fn families_of(mut database: Database, name: &str) {
    make_tables(&mut database, "calls", "events");
    let site = database.described(site(name), &[("cdr", "calls"), ("cel", "events")]);
    let server = Server::start(site);
    call_is_told(&server, &mut database, ("calls", "events"), "USER_DEFINED");
    let shown = server.cli("cdr show status");
    assert!(shown.contains("extconfig/cdr: 0 records wait, 1 written, 0 set aside"), "{shown}");
}

#[test]
fn families_of_extconfig_take_records_and_events_in_mariadb() {
    let Some(server) = common::Server::mariadb() else { return };
    families_of(Database::on(server), "records-mysql");
}

#[test]
fn families_of_extconfig_take_records_and_events_in_postgresql() {
    let Some(server) = common::Server::postgres() else { return };
    families_of(Database::on(server), "records-pg-family");
}
