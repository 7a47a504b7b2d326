//! Call records in tables of databases: written behind, kept while there is no table, set aside when it does not take one.

use std::process::Command;

use e2e::{Phone, Server, Site, Sqlite, wait};

const DIALPLAN: &str = "[test]
exten => _X.,1,Set(CDR(accountcode)=sales)
 same => n,Set(CDR(rate)=7)
 same => n,Answer()
 same => n,Hangup()
";

fn site(name: &str) -> Option<(Site, Sqlite)> {
    let site = Site::new(name).phone("alice").dialplan(DIALPLAN);
    let file = Sqlite::new(&site, "cdr.sqlite3", "")?;
    Some((file.as_class(site, "asteriskcdrdb"), file))
}

/// Calls are numbered from each start on, behind its second: a process that is started twice within one says a number twice.
fn another_second() {
    let second = || std::time::SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs()).ok();
    let now = second();
    wait::until_true("the next second", || second() > now);
}

#[test]
fn records_wait_for_their_table_through_a_kill_and_are_written_when_it_is_there() {
    let Some((site, file)) = site("records-sql") else { return };
    let site = site.add(
        "cdr_adaptive_odbc.conf",
        "[first]\nconnection=asteriskcdrdb\nloguniqueid=yes\ntable=cdr\nalias start => calldate\nstatic \"north\" => site\n\
         [others]\nconnection=asteriskcdrdb\ntable=cdr_others\nfilter accountcode != sales\n",
    );
    let mut server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    for number in ["100", "101"] {
        alice.must_call(number);
        alice.until_hung_up();
    }
    server.until_logged(&["cdr_adaptive_odbc/first", "call records wait", "there is no table"]);
    let waiting = |server: &Server| server.json("cdr show status")["tables"][0]["waiting"].as_u64();
    wait::until_true("both records wait", || waiting(&server) == Some(2));
    server.kill_and_restart();
    assert_eq!(waiting(&server), Some(2), "{}", server.log());
    file.sql("CREATE TABLE cdr (calldate DATETIME, src TEXT, dst TEXT, disposition TEXT, amaflags INTEGER, duration INTEGER, \
         accountcode TEXT, rate TEXT, site TEXT, uniqueid TEXT UNIQUE)",
    );
    wait::until_true("both are written", || file.sql("SELECT count(*) FROM cdr") == "2");
    let rows =
        file.sql("SELECT src, dst, disposition, amaflags, accountcode, rate, site FROM cdr ORDER BY dst");
    assert_eq!(rows, "alice|100|ANSWERED|3|sales|7|north\nalice|101|ANSWERED|3|sales|7|north");
    let dates = file
        .sql("SELECT count(*) FROM cdr WHERE calldate LIKE '20__-__-__ __:__:__' AND uniqueid LIKE '%.%'");
    assert_eq!(dates, "2");
    wait::until_true("none waits", || waiting(&server) == Some(0));

    // What is written does not come again.
    another_second();
    server.kill_and_restart();
    assert_eq!(waiting(&server), Some(0));
    // The phone begins anew with the process.
    let mut alice = Phone::new(server.site.sip, "alice");
    file.sql("CREATE TRIGGER refuse BEFORE INSERT ON cdr WHEN NEW.dst = '102' BEGIN SELECT RAISE(ABORT, 'not this one'); END",
    );
    for number in ["102", "103"] {
        alice.must_call(number);
        alice.until_hung_up();
    }
    wait::until_true("the good one is written", || {
        file.sql("SELECT count(*) FROM cdr WHERE dst = '103'") == "1"
    });
    server.until_logged(&["a call record is set aside", "not this one"]);
    let aside = std::fs::read_to_string(wait::until("the file", || {
        let found = Command::new("find")
            .arg(server.site.place.join("."))
            .args(["-name", "cdr-refused.jsonl"])
            .output()
            .ok()?;
        let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        (!path.is_empty()).then_some(path)
    }))
    .expect("it can be read");
    assert!(aside.contains("\"dst\":\"102\"") && aside.lines().count() == 1, "{aside}");
    let status = server.cli("cdr show status");
    assert!(status.contains("cdr_adaptive_odbc/first: 0 records wait, 1 written, 1 set aside"), "{status}");
    server.assert_healthy();
}

#[test]
fn the_plain_file_writes_its_columns_and_no_others() {
    let Some((site, file)) = site("records-odbc") else { return };
    let site = site
        .add("cdr_odbc.conf", "[global]\ndsn=asteriskcdrdb\ntable=calls\nloguniqueid=yes\nusegmtime=yes\n");
    file.sql(
        "CREATE TABLE calls (calldate DATETIME, src TEXT, dst TEXT, disposition INTEGER, amaflags INTEGER, \
         linkedid TEXT, uniqueid TEXT, start TEXT)",
    );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.until_hung_up();
    wait::until_true("it is written", || file.sql("SELECT count(*) FROM calls") == "1");
    let row = file.sql(
        "SELECT src, dst, disposition, amaflags, linkedid IS NULL, start IS NULL, \
         abs(strftime('%s', calldate) - strftime('%s', 'now')) < 600 FROM calls",
    );
    assert_eq!(row, "alice|100|8|3|1|1|1");
}

#[test]
fn channel_events_go_to_tables_through_a_kill_and_to_sqlite() {
    let Some((site, file)) = site("events-sql") else { return };
    let site = site
        .add("cel.conf", "[general]\nenable=yes\nevents=ALL\napps=answer\n")
        .add(
            "cel_odbc.conf",
            "[events]\nconnection=asteriskcdrdb\ntable=cel\nshow_user_defined=yes\n\
             [numbers]\nconnection=asteriskcdrdb\ntable=kinds\nalias eventtype => kind\nfilter eventtype != DTMF\n",
        )
        .add(
            "cel_sqlite3_custom.conf",
            "[master]\ntable=cel\ncolumns=eventtype, number, extra\nvalues='${eventtype}','${CALLERID(num)}','${eventextra}'\n",
        )
        .dialplan(
            "[test]\nexten => 100,1,CELGenUserEvent(Hello,it's \"me\")\n same => n,Answer()\n same => n,Hangup()\n",
        );
    file.sql("CREATE TABLE kinds (kind INTEGER, channame TEXT)");
    let mut server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.until_hung_up();
    // The other table is not there yet.
    wait::until_true("the numbers are written", || {
        file.sql("SELECT group_concat(kind) FROM kinds") == "1,9,5,4,6,3,2,16"
    });
    server.until_logged(&["cel_odbc/events", "wait", "there is no table"]);
    assert!(server.cli("cel show status").contains("cel_odbc/events: 8 records wait for the database"));
    server.kill_and_restart();
    file.sql("CREATE TABLE cel (eventtype TEXT, eventtime TEXT, cid_num TEXT, appname TEXT, extra TEXT, uniqueid TEXT, linkedid TEXT)",
    );
    wait::until_true("the words are written", || {
        file.sql("SELECT group_concat(eventtype) FROM cel")
            == "CHAN_START,Hello,APP_START,ANSWER,APP_END,HANGUP,CHAN_END,LINKEDID_END"
    });
    let row = file.sql("SELECT cid_num, extra, eventtime LIKE '20__-__-__ __:__:__.______', uniqueid = linkedid FROM cel WHERE eventtype = 'Hello'",
    );
    assert_eq!(row, "alice|{\"extra\":\"it's \\\"me\\\"\"}|1|1");
    let master = Sqlite { path: server.site.place.join("log/master.db") };
    let own = master.sql("SELECT number, extra FROM cel WHERE eventtype = 'USER_DEFINED'");
    assert_eq!(own, "alice|{\"extra\":\"it's \\\"me\\\"\"}");
    let status = server.cli("cel show status");
    assert!(status.contains("cel_odbc/events: 0 records wait, 8 written, 0 set aside"), "{status}");
    assert!(!server.cli("cdr show status").contains("cel_"), "call records are not channel events");
    server.assert_healthy();
}
