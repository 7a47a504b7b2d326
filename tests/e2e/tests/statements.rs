//! Rows that a dialplan reads and writes: REALTIME() and its kin, and functions of func_odbc.conf.

use e2e::{Phone, Server, Site, Sqlite, wait};

/// A site with a table of customers in SQLite, whose class of res_odbc.conf is served by the native driver.
fn site(name: &str, dialplan: &str) -> Option<(Site, Sqlite)> {
    let site = Site::new(name).phone("alice");
    let file = Sqlite::new(
        &site,
        "customers.sqlite3",
        "CREATE TABLE customers (number TEXT PRIMARY KEY, name TEXT, city TEXT, calls INTEGER DEFAULT 0, note TEXT);\
         INSERT INTO customers VALUES ('100', 'O''Brien, Pat', 'Cork', 0, NULL);\
         INSERT INTO customers VALUES ('200', 'Quinn', 'Cork', 0, 'x');",
    )?;
    let site = file
        .as_class(site, "crm")
        .add("extconfig.conf", "[settings]\ncustomers => odbc,crm\n")
        .add(
            "func_odbc.conf",
            "[CUSTOMER]\ndsn=crm\nreadsql=SELECT name, city FROM customers WHERE number = '${SQL_ESC(${ARG1})}'\n\
             writesql=UPDATE customers SET name = '${SQL_ESC(${VAL1})}', city = '${SQL_ESC(${VAL2})}' WHERE number = '${SQL_ESC(${ARG1})}'\n\
             insertsql=INSERT INTO customers (number, name, city) VALUES ('${SQL_ESC(${ARG1})}', '${SQL_ESC(${VAL1})}', '${SQL_ESC(${VAL2})}')\n\
             synopsis=Looks a customer up.\nsyntax=<number>\n\
             [IN]\nprefix=LIST\ndsn=crm\nmode=multirow\nrowlimit=5\nreadsql=SELECT number, name FROM customers WHERE city = '${SQL_ESC(${ARG1})}' ORDER BY number\n\
             [BROKEN]\nreadhandle=crm\nreadsql=SELECT nothing FROM nowhere\n\
             [SPARE]\nreadhandle=gone,crm\nreadsql=SELECT count(*) FROM customers\n",
        )
        .dialplan(dialplan);
    Some((site, file))
}

#[test]
fn functions_of_statements_read_write_and_tell_how_it_went() {
    let Some((site, file)) = site(
        "statements",
        "[test]
exten => read,1,Set(ARG1=mine)
 same => n,Set(row=${ODBC_CUSTOMER(100)})
 same => n,Set(DB(t/read)=${row}|${ODBCROWS}|${ODBCSTATUS}|${ARG1})
 same => n,Set(ARRAY(name,city)=${row})
 same => n,Set(DB(t/array)=${name}|${city})
 same => n,Set(HASH(c)=${ODBC_CUSTOMER(${FILTER(0-9,2x00)})})
 same => n,Set(DB(t/hash)=${HASH(c,name)}|${HASH(c,city)})
 same => n,Set(DB(t/none)=${ODBC_CUSTOMER(999)}|${ODBCROWS}|${ODBCSTATUS})
 same => n,Set(DB(t/bad)=${ODBC_BROKEN()}|${ODBCROWS}|${ODBCSTATUS})
 same => n,Set(DB(t/spare)=${ODBC_SPARE()}|${ODBCSTATUS})
 same => n,Set(DB(t/quoted)=${ODBC_CUSTOMER(' OR '1'='1)}|${ODBCROWS})
 same => n,Set(id=${LIST_IN(Cork)})
 same => n,Set(DB(t/rows)=${ODBCROWS})
 same => n,While($[${LEN(${SET(next=${ODBC_FETCH(${id})})})} > 0])
 same => n,Set(all=${all}[${next}])
 same => n,EndWhile()
 same => n,Set(DB(t/all)=${all}|${ODBC_FETCH_STATUS})
 same => n,ODBCFinish(${id})
 same => n,Busy(1)
exten => write,1,Set(ODBC_CUSTOMER(200)=Quinn,Bray)
 same => n,Set(DB(t/updated)=${ODBCROWS}|${ODBCSTATUS})
 same => n,ExecIf($[1=1]?Set(ODBC_CUSTOMER(300)=New,Sligo))
 same => n,Set(DB(t/inserted)=${ODBCROWS}|${ODBC_CUSTOMER(300)})
 same => n,Busy(1)
exten => family,1,Set(DB(f/row)=${REALTIME(customers,number,200)})
 same => n,Set(DB(f/marks)=${REALTIME(customers,number,100,|,:)})
 same => n,Set(DB(f/field)=${REALTIME_FIELD(customers,number,100,name)})
 same => n,Set(HASH(r)=${REALTIME_HASH(customers,number,100)})
 same => n,Set(DB(f/hash)=${HASH(r,name)}|${HASH(r,city)})
 same => n,Set(DB(f/like)=${REALTIME_FIELD(customers,name LIKE,Qu%,number)})
 same => n,Set(REALTIME(customers,number,200,city)=Kells)
 same => n,Set(REALTIME_FIELD(customers,number,200,note)=y)
 same => n,Set(DB(f/set)=${REALTIME_FIELD(customers,number,200,city)}|${REALTIME_FIELD(customers,number,200,note)})
 same => n,Set(REALTIME_STORE(customers,number,name)=400,Last)
 same => n,Set(DB(f/stored)=${RTSTOREID}|${REALTIME_FIELD(customers,number,400,name)})
 same => n,Set(DB(f/removed)=${REALTIME_DESTROY(customers,number,400)})
 same => n,Set(DB(f/gone)=${REALTIME(customers,number,400)}.)
 same => n,Set(DB(f/nowhere)=${REALTIME(elsewhere,number,400)}.)
 same => n,Busy(1)
",
    ) else {
        return;
    };
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    for (number, family, expected) in [
        (
            "read",
            "t",
            &[
                ("read", "O'Brien\\, Pat,Cork|1|SUCCESS|mine"),
                ("array", "O'Brien, Pat|Cork"),
                ("hash", "Quinn|Cork"),
                ("none", "|0|NODATA"),
                ("bad", "|-1|FAILURE"),
                ("spare", "2|SUCCESS"),
                ("quoted", "|0"),
                ("rows", "2"),
                ("all", "[100,O'Brien\\, Pat][200,Quinn]|FAILURE"),
            ][..],
        ),
        ("write", "t", &[("updated", "1|SUCCESS"), ("inserted", "1|New,Sligo")]),
        (
            "family",
            "f",
            &[
                ("row", "number=200,name=Quinn,city=Bray,calls=0,note=x"),
                ("marks", "number:100|name:O'Brien, Pat|city:Cork|calls:0"),
                ("field", "O'Brien, Pat"),
                ("hash", "O'Brien, Pat|Cork"),
                ("like", "200"),
                ("set", "Kells|y"),
                ("stored", "1|Last"),
                ("removed", "number=400,name=Last,calls=0"),
                ("gone", "."),
                ("nowhere", "."),
            ],
        ),
    ] {
        assert_eq!(alice.call(number).status(), Some(486), "{number}: {}", server.log());
        for (key, expected) in expected {
            assert_eq!(server.database(family, key), *expected, "{number} {key}: {}", server.log());
        }
    }
    assert_eq!(file.sql("SELECT name, city FROM customers WHERE number = '300'"), "New|Sligo");
    assert_eq!(file.sql("SELECT count(*) FROM customers"), "3");
    let shown = server.cli("core show function ODBC_CUSTOMER");
    assert!(shown.contains("Looks a customer up.") && shown.contains("ODBC_CUSTOMER(<number>)"), "{shown}");
    server.until_idle();
}

#[test]
fn transactions_of_a_call_are_kept_taken_back_or_over_with_it() {
    let dialplan = "[test]
exten => both,1,Set(ODBC(transaction,crm)=first)
 same => n,Set(ODBC(isolation)=serializable)
 same => n,Set(DB(x/active)=${ODBC(transaction)}|${ODBC(isolation)}|${ODBC(forcecommit)})
 same => n,Set(ODBC_CUSTOMER(300)=New,Sligo)
 same => n,Set(ODBC_CUSTOMER(100)=Pat,Bray)
 same => n,Set(DB(x/inside)=${ODBC_CUSTOMER(300)}|${ODBC_CUSTOMER(100)})
 same => n,ODBC_Rollback()
 same => n,Set(DB(x/back)=${ODBCSTATUS}|${ODBC_CUSTOMER(300)}.)
 same => n,Set(ODBC_CUSTOMER(300)=Kept,Sligo)
 same => n,Set(ODBC(transaction,crm)=second)
 same => n,Set(DB(x/second)=${ODBC(transaction)}|${ODBC(isolation)})
 same => n,Set(ODBC(transaction)=first)
 same => n,ODBC_Commit(first)
 same => n,Set(DB(x/kept)=${ODBCSTATUS}|${ODBC_CUSTOMER(300)})
 same => n,Set(ODBC(transaction,nowhere)=third)
 same => n,Set(DB(x/unknown)=${ODBC(transaction)})
 same => n,Busy(1)
exten => left,1,Set(ODBC(transaction,crm)=t)
 same => n,Set(ODBC_CUSTOMER(200)=Left,Nowhere)
 same => n,Busy(1)
exten => forced,1,Set(ODBC(transaction,crm)=t)
 same => n,Set(ODBC(forcecommit)=1)
 same => n,Set(ODBC_CUSTOMER(200)=Forced,Kells)
 same => n,Busy(1)
exten => late,1,Set(ODBC(transaction,crm)=t)
 same => n,Set(ODBC_CUSTOMER(200)=Late,Nowhere)
 same => n,Answer()
 same => n,Wait(2)
 same => n,Set(ODBC_CUSTOMER(200)=Later,Nowhere)
 same => n,Set(DB(x/late)=${ODBCSTATUS})
 same => n,ODBC_Commit(t)
 same => n,Set(DB(x/over)=${ODBCSTATUS})
 same => n,Hangup()
";
    let Some((site, file)) = site("transactions", dialplan) else { return };
    let server = Server::start(site.add("res_odbc.conf", "transaction_timeout => 1\n"));
    let mut alice = Phone::new(server.site.sip, "alice");
    let of = |key: &str| server.database("x", key);
    assert_eq!(alice.call("both").status(), Some(486), "{}", server.log());
    for (key, expected) in [
        ("active", "first|serializable|0"),
        ("inside", "New,Sligo|Pat,Bray"),
        ("back", "SUCCESS|."),
        ("second", "second|read_committed"),
        ("kept", "SUCCESS|Kept,Sligo"),
        ("unknown", "first"),
    ] {
        assert_eq!(of(key), expected, "{key}: {}", server.log());
    }
    let name_of = |number: &str| file.sql(&format!("SELECT name FROM customers WHERE number = '{number}'"));
    assert_eq!((name_of("100").as_str(), name_of("300").as_str()), ("O'Brien, Pat", "Kept"));
    assert_eq!(alice.call("left").status(), Some(486), "{}", server.log());
    server.until_idle();
    wait::until_true("the connection is given back", || {
        server.json("odbc show")["databases"][0]["lent"] == 0
    });
    assert_eq!(name_of("200"), "Quinn", "a call that ends takes back what it did not commit");
    assert_eq!(alice.call("forced").status(), Some(486), "{}", server.log());
    wait::until_true("forcecommit keeps it", || name_of("200") == "Forced");
    assert_eq!(alice.call("late").status(), Some(200), "{}", server.log());
    alice.until_hung_up();
    assert_eq!((of("late"), of("over")), ("FAILURE".into(), "FAILURE".into()), "{}", server.log());
    assert_eq!(name_of("200"), "Forced", "what lasts too long is taken back, and nothing follows it");
    server.until_idle();
}

#[test]
fn a_file_that_lies_in_a_database_is_read_from_there_and_again_when_it_changes() {
    let site = Site::new("whole-files").phone("alice").dialplan("[test]\nexten => 100,1,Congestion(1)\n");
    let file = Sqlite::new(
        &site,
        "pbx.sqlite3",
        "CREATE TABLE ast_config (id INTEGER PRIMARY KEY, cat_metric INTEGER, var_metric INTEGER, commented INTEGER, \
         filename TEXT, category TEXT, var_name TEXT, var_val TEXT);\
         INSERT INTO ast_config VALUES (1, 1, 2, 0, 'extensions.conf', 'test', 'same', 'n,Busy(1)'),\
         (2, 1, 1, 0, 'extensions.conf', 'test', 'exten', '100,1,Set(DB(file/is)=first;one)'),\
         (3, 1, 1, 1, 'extensions.conf', 'test', 'exten', '100,1,Congestion(1)'),\
         (4, 1, 1, 0, 'other.conf', 'test', 'exten', '100,1,Congestion(1)');",
    );
    let Some(file) = file else { return };
    let site = site
        .add("res_config_sqlite3.conf", &format!("[pbx]\ndbfile => {}\n", file.path.display()))
        .add("extconfig.conf", "[settings]\nextensions.conf => sqlite3,pbx,ast_config\n");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    assert_eq!(alice.call("100").status(), Some(486), "{}", server.log());
    assert_eq!(server.database("file", "is"), "first;one");
    file.sql("UPDATE ast_config SET var_val = '100,1,Set(DB(file/is)=second)' WHERE id = 2");
    server.cli("dialplan reload");
    wait::until_true("the new text holds", || {
        assert_eq!(alice.call("100").status(), Some(486), "{}", server.log());
        server.database("file", "is") == "second"
    });
    // A text that is refused changes nothing.
    file.sql("UPDATE ast_config SET var_name = '#include', var_val = 'nowhere.conf' WHERE id = 2");
    server.cli("dialplan reload");
    server.until_logged(&["nowhere.conf"]);
    assert_eq!(alice.call("100").status(), Some(486), "{}", server.log());
    server.until_idle();
}
