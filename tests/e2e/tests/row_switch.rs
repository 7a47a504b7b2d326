//! A dialplan whose numbers are rows of a table: `switch => Realtime/…`.

use std::process::Command;

use e2e::{Phone, Server, Site, Sqlite, program, wait};

/// A site whose numbers lie in the table that `strowger db create` makes.
fn site(name: &str) -> Option<(Site, Sqlite)> {
    let site = Site::new(name).phone("alice");
    let file = Sqlite::new(&site, "pbx.sqlite3", "")?;
    let url = format!("sqlite:{}", file.path.display());
    let made =
        Command::new(program()).args(["db", "create", &url, "extensions"]).output().expect("the program");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let site = file.described(site, "pbx", &["extensions"]).dialplan(
        "[test]\nexten => 1,1,Congestion(1)\nswitch => Realtime/phones@extensions\n\
         exten => i,1,Set(DB(r/invalid)=${INVALID_EXTEN})\n same => n,Hangup(21)\n",
    );
    Some((site, file))
}

fn row(file: &Sqlite, exten: &str, priority: u32, app: &str, data: &str) {
    file.sql(&format!(
        "INSERT INTO extensions (context, exten, priority, app, appdata) VALUES ('phones', '{exten}', {priority}, '{app}', '{data}')"
    ));
}

#[test]
fn numbers_of_a_table_are_called_as_they_come_and_go_and_known_ones_while_it_is_away() {
    let Some((site, file)) = site("row-switch") else { return };
    row(&file, "100", 1, "Set", "DB(r/100)=${EXTEN}@${CONTEXT}");
    row(&file, "100", 2, "Busy", "1");
    row(&file, "_2XX", 1, "Set", "DB(r/pattern)=${EXTEN:1}");
    row(&file, "_2XX", 2, "Answer", "");
    row(&file, "_2XX", 3, "Wait", "30");
    row(&file, "h", 1, "Set", "DB(r/end)=${HANGUPCAUSE}");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    assert_eq!(alice.call("100").status(), Some(486), "{}", server.log());
    assert_eq!(server.database("r", "100"), "100@test");
    assert_eq!(alice.call("1").status(), Some(503), "the dialplan's own goes first");
    alice.must_call("234");
    alice.hang_up();
    assert_eq!(server.database("r", "pattern"), "34");
    // A caller who talks to nobody hangs up without a cause.
    wait::until_true("the row of the end", || server.database("r", "end") == "0");
    assert_ne!(alice.call("300").status(), Some(486), "there is no such row");
    assert_eq!(server.database("r", "invalid"), "300");
    row(&file, "300", 1, "Busy", "1");
    assert_eq!(alice.call("300").status(), Some(486), "a row that came");
    file.sql("DELETE FROM extensions WHERE exten = '300'");
    assert_ne!(alice.call("300").status(), Some(486), "a row that went");

    let held = file.hold();
    assert_eq!(alice.call("100").status(), Some(486), "what is known serves: {}", server.log());
    drop(held);
    wait::until_true("the database is back", || alice.call("100").status() == Some(486));
    server.until_idle();
}
