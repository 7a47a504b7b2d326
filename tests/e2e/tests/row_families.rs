//! Queues, mailboxes, music and access lists whose rows stand beside files.

use std::process::Command;

use e2e::{Phone, SECRET, Server, Site, Speak, Sqlite, program, wait};

const FAMILIES: &[&str] =
    &["queues", "queue_members", "queue_rules", "queue_log", "voicemail", "musiconhold", "acls"];

const DIALPLAN: &str = "[test]
exten => 300,1,Answer()
 same => n,Queue(sales,,,,4)
 same => n,Set(DB(q/status)=${QUEUESTATUS})
 same => n,Hangup()
exten => 301,1,Queue(late,,,,1)
 same => n,Set(DB(q/late)=${QUEUESTATUS})
 same => n,Busy(1)
exten => 310,1,PauseQueueMember(sales,PJSIP/anna,,lunch)
 same => n,Set(DB(q/paused)=${PQMSTATUS})
 same => n,Busy(1)
exten => 311,1,RemoveQueueMember(sales,PJSIP/anna)
 same => n,Set(DB(q/removed)=${RQMSTATUS})
 same => n,Busy(1)
";

/// A site with the standard tables in SQLite.
fn site(name: &str) -> Option<(Site, Sqlite)> {
    let site = Site::new(name).phone("alice").phone("anna").dialplan(DIALPLAN);
    let file = Sqlite::new(&site, "pbx.sqlite3", "")?;
    let url = format!("sqlite:{}", file.path.display());
    let made =
        Command::new(program()).args(["db", "create", &url]).args(FAMILIES).output().expect("the program");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file.sql(
        "INSERT INTO queues (name, strategy, timeout, retry) VALUES ('sales', 'ringall', 3, 1);\
         INSERT INTO queue_members (queue_name, interface, membername, uniqueid, penalty, paused) \
         VALUES ('sales', 'PJSIP/anna', 'Anna', 11, 2, 0);\
         INSERT INTO queue_rules (rule_name, time, max_penalty) VALUES ('wider', '30', '+3');\
         INSERT INTO voicemail (uniqueid, context, mailbox, password, fullname) VALUES (1, 'default', '100', '4711', 'Ann');\
         INSERT INTO acls (name, sense, prefix) VALUES ('office', 'deny', '0.0.0.0/0'), ('office', 'permit', '127.0.0.0/8');",
    );
    Some((file.described(site, "pbx", FAMILIES), file))
}

#[test]
fn queues_of_a_database_are_read_when_a_caller_comes_and_members_are_written_back() {
    let Some((site, file)) = site("row-queues") else { return };
    let mut server = Server::start(site);
    let shown = server.cli("queue show sales");
    assert!(shown.contains("Anna") && shown.contains("realtime"), "{shown}");
    assert!(server.cli("queue show rules").contains("wider"));
    let (mut alice, mut anna) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "anna"));
    anna.must_register();
    alice.begin("300");
    let invite = anna.ring();
    anna.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    anna.hang_up();
    alice.until_hung_up();

    // What is changed here is written, and holds though the row is read again.
    assert_eq!(alice.call("310").status(), Some(486), "{}", server.log());
    assert_eq!(server.database("q", "paused"), "PAUSED");
    let row = "SELECT paused || reason_paused || penalty FROM queue_members WHERE uniqueid = 11";
    wait::until_true("the row says so", || file.sql(row) == "1lunch2");
    assert_eq!(alice.call("311").status(), Some(486));
    assert_eq!(server.database("q", "removed"), "NOTDYNAMIC");
    alice.must_call("300");
    alice.until_hung_up();
    assert_eq!(server.database("q", "status"), "TIMEOUT", "she is paused: {}", server.log());

    // What is changed in the table holds for the next caller.
    file.sql("UPDATE queue_members SET paused = 0");
    alice.begin("300");
    let invite = anna.ring();
    anna.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    anna.hang_up();
    alice.until_hung_up();
    assert_eq!(alice.call("301").status(), Some(486));
    assert_eq!(server.database("q", "late"), "", "there is no such queue yet");
    file.sql("INSERT INTO queues (name, timeout) VALUES ('late', 1)");
    assert_eq!(alice.call("301").status(), Some(486));
    assert_eq!(server.database("q", "late"), "TIMEOUT", "a queue that came: {}", server.log());

    let events = "SELECT group_concat(event, ' ') FROM (SELECT event FROM queue_log WHERE queuename = 'sales' ORDER BY id)";
    wait::until_true("the log is a table", || {
        file.sql(events)
            == "ENTERQUEUE CONNECT COMPLETEAGENT PAUSE ENTERQUEUE EXITWITHTIMEOUT ENTERQUEUE CONNECT COMPLETEAGENT"
    });
    let when =
        "SELECT count(*) FROM queue_log WHERE abs(strftime('%s', time, 'utc') - strftime('%s', 'now')) < 600";
    assert_ne!(file.sql(when), "0");
    assert!(!server.site.place.join("log/queue_log").exists(), "and no file");
    server.assert_healthy();
}

#[test]
fn mailboxes_music_and_access_lists_of_a_database_come_at_a_reload_and_files_go_first() {
    let Some((site, file)) = site("row-files") else { return };
    let folder = site.place.join("jazz");
    std::fs::create_dir_all(&folder).expect("the site's folder");
    let site = site.add("voicemail.conf", "[general]\n[default]\n200 => 1,Filed\n");
    let server = Server::start(site);
    let users = || server.cli("voicemail show users");
    assert!(users().contains("Ann") && users().contains("Filed"), "{}", users());
    let office = server.cli("acl show office");
    assert!(office.contains("127.0.0.0"), "{office}");
    file.sql(&format!(
        "INSERT INTO musiconhold (name, mode, directory) VALUES ('jazz', 'files', '{}');\
         INSERT INTO voicemail (uniqueid, context, mailbox, password, fullname) VALUES (2, 'default', '200', '2', 'Rowed'), (3, 'default', '300', '3', 'Third');",
        folder.display()
    ));
    assert!(!users().contains("Third"), "read at a reload");
    server.cli("voicemail reload");
    wait::until_true("the new mailbox is there", || users().contains("Third"));
    assert!(users().contains("Filed") && !users().contains("Rowed"), "the file goes first: {}", users());
    assert!(server.cli("moh show classes").contains("jazz"));
}

/// Waits until the phone hears this tone, and types.
fn answer(phone: &Phone, tone: f64, digits: &str) {
    wait::until_true("it is asked", || phone.media.heard().tone(tone) >= 300);
    phone.media.type_digits(digits);
    wait::until_true("all is typed", || phone.media.typed());
}

#[test]
fn a_pin_that_is_changed_by_phone_is_written_into_its_row() {
    const PASSWORD: f64 = 1000.0;
    const NEW: f64 = 750.0;
    const AGAIN: f64 = 600.0;
    const CHANGED: f64 = 440.0;
    let Some((site, file)) = site("row-pin") else { return };
    let site = site
        .prompt("vm-password", PASSWORD, 0.6)
        .prompt("vm-newpassword", NEW, 0.6)
        .prompt("vm-reenterpassword", AGAIN, 0.6)
        .prompt("vm-passchanged", CHANGED, 0.6)
        .add("voicemail.conf", "[general]\nformat=wav\n[default]\n")
        .dialplan("exten => 320,1,VoiceMailMain(100@default)\n same => n,Hangup()\n");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let pin = || file.sql("SELECT password FROM voicemail WHERE mailbox = '100' AND context = 'default'");
    for (round, (old, new)) in [("4711", "9876"), ("9876", "13579")].into_iter().enumerate() {
        alice.media.forget();
        alice.media.speak(Speak::Silence);
        alice.must_call("320");
        answer(&alice, PASSWORD, &format!("{old}#05"));
        answer(&alice, NEW, &format!("{new}#"));
        assert_eq!(pin(), old, "it is typed twice");
        answer(&alice, AGAIN, &format!("{new}#"));
        wait::until_true("it is kept", || alice.media.heard().tone(CHANGED) >= 300);
        assert_eq!(pin(), new, "written before it is told: {}", server.log());
        alice.hang_up();
        server.until_idle();
        // A reload takes the rows that are remembered before the database has answered: they are as the call has changed
        // them.
        server.cli("voicemail reload");
        let read = || server.log().matches("the configuration was read again and taken").count();
        wait::until_true("the rows are read", || read() > round);
    }
    assert_eq!(file.sql("SELECT count(*) FROM voicemail WHERE password = '13579'"), "1");
}

#[test]
fn the_console_reads_and_writes_rows() {
    let Some((site, file)) = site("row-console") else { return };
    let site = site
        .add("func_odbc.conf", "[BOX]\ndsn=pbx\nreadsql=SELECT fullname, password FROM voicemail WHERE mailbox = '${SQL_ESC(${ARG1})}'\n\
             writesql=UPDATE voicemail SET fullname = '${SQL_ESC(${VAL1})}' WHERE mailbox = '${SQL_ESC(${ARG1})}'\n");
    let server = Server::start(site);
    let shown = server.cli("realtime load voicemail mailbox 100");
    assert!(shown.contains("Column Name") && shown.contains("4711"), "{shown}");
    assert_eq!(server.json("realtime load voicemail mailbox 100")["rows"][0]["fullname"], "Ann");
    assert!(server.cli("realtime load voicemail mailbox 999").contains("No rows found"));
    for (command, said) in [
        ("realtime update voicemail mailbox 100 fullname \"Ann B\"", "Updated 1 RealTime record."),
        (
            "realtime update2 queue_members queue_name sales interface PJSIP/anna NULL penalty 5 membername \"A B\"",
            "Updated 1",
        ),
        ("realtime store voicemail mailbox 400 context default password 9", "Stored 1 RealTime record."),
        ("realtime destroy voicemail mailbox 400", "Removed 1 RealTime record."),
        ("odbc read ODBC_BOX 100", "SELECT fullname, password FROM voicemail WHERE mailbox = '100'"),
        ("odbc read BOX 100 exec", "Returned 1 row."),
        ("odbc write ODBC_BOX 100 \"O'Brien\"", "SET fullname = 'O''Brien' WHERE mailbox = '100'"),
        ("odbc write ODBC_BOX 100 \"O'Brien\" exec", "Affected 1 row."),
    ] {
        let shown = server.cli(command);
        assert!(shown.contains(said), "{command}: {shown}");
    }
    assert_eq!(file.sql("SELECT fullname FROM voicemail WHERE mailbox = '100'"), "O'Brien");
    assert_eq!(file.sql("SELECT membername || penalty FROM queue_members"), "A B5");
    for command in ["realtime load nowhere a b", "realtime store voicemail mailbox", "odbc read NOTHING 1"] {
        assert!(!server.run(command).status.success(), "{command}");
    }
}

#[test]
fn a_row_that_is_missed_is_found_without_a_reload_and_one_that_changes_holds_a_minute_later() {
    let Some((site, file)) = site("row-missed") else { return };
    let site = site.add("voicemail.conf", "[general]\nformat=wav\n[default]\n").add(
        "extensions.conf",
        "[general]\nclearglobalvars=yes\n[globals]\nKEPT=file\n[test]\n\
         exten => _X.,1,Set(GLOBAL(KEPT)=call)\n same => n,GotoIf($[${VM_INFO(${EXTEN}@default,exists)}]?there)\n\
         same => n,VoiceMail(${EXTEN}@default,s)\n same => n,Wait(30)\n same => n(there),Busy(1)\n",
    );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    // VoiceMail asks the database again for a mailbox that is not known, and says that there is none.
    let mut is_there = |number: &str| {
        let answers = alice.call(number).status() == Some(200);
        if answers {
            alice.hang_up();
        }
        !answers
    };
    assert!(is_there("100"));
    assert!(!is_there("200"));
    file.sql(
        "INSERT INTO voicemail (uniqueid, context, mailbox, password) VALUES (2, 'default', '200', '1')",
    );
    // Whoever misses a row has them asked for at most once a second.
    wait::until_true("it is found", || is_there("200"));
    assert!(server.cli("dialplan show globals").contains("KEPT=call"), "what a call has set is as it was");

    file.sql("UPDATE voicemail SET fullname = 'Berta' WHERE mailbox = '200'");
    let limit = std::time::Duration::from_secs(120);
    let shown = || server.cli("voicemail show users").contains("Berta").then_some(());
    assert!(wait::for_some(limit, shown).is_some(), "the table is read every minute");

    // Files that are being edited are nobody's to take but the administrator's.
    let dialplan = server.site.config().with_file_name("extensions.conf");
    let text = std::fs::read_to_string(&dialplan).expect("the file");
    std::fs::write(&dialplan, text + " same => n,Half(finished\n").expect("it is written");
    file.sql(
        "INSERT INTO voicemail (uniqueid, context, mailbox, password) VALUES (3, 'default', '400', '1')",
    );
    wait::until_true("it is told", || {
        assert!(!is_there("400"));
        server.log().contains("reload to take both")
    });
    assert!(!server.log().contains("the configuration is refused"), "{}", server.log());
}

#[test]
fn transports_registrations_domain_aliases_and_what_holds_for_all_of_sip_come_from_rows() {
    let site = Site::new("row-stack");
    let ip = site.sip.ip();
    let carrier = std::net::UdpSocket::bind((ip, 0)).expect("a port for the carrier");
    carrier.set_read_timeout(Some(wait::SOON)).expect("a socket");
    let Some(file) = Sqlite::new(&site, "pbx.sqlite3", "") else { return };
    let kinds = [
        ("res_pjsip", "domain_alias", "ps_domain_aliases"),
        ("res_pjsip", "transport", "ps_transports"),
        ("res_pjsip", "global", "ps_globals"),
        ("res_pjsip", "system", "ps_systems"),
        ("res_pjsip_outbound_registration", "registration", "ps_registrations"),
    ];
    let families = kinds.map(|(_, _, family)| family);
    let url = format!("sqlite:{}", file.path.display());
    let made =
        Command::new(program()).args(["db", "create", &url]).args(families).output().expect("the program");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file.sql(&format!(
        "INSERT INTO ps_domain_aliases (id, domain) VALUES ('{ip}', 'home.example');\
         INSERT INTO ps_transports (id, protocol, bind) VALUES ('rowed', 'udp', '{ip}:5080');\
         INSERT INTO ps_globals (id, user_agent, default_realm) VALUES ('global', 'Rows of a table', 'rows.example');\
         INSERT INTO ps_systems (id, disable_rport) VALUES ('system', 'yes');\
         INSERT INTO ps_registrations (id, server_uri, client_uri) \
         VALUES ('carrier', 'sip:{}', 'sip:us@{ip}');",
        carrier.local_addr().expect("its address")
    ));
    let modules: String = kinds
        .chunk_by(|a, b| a.0 == b.0)
        .flat_map(|same| {
            let lines = same.iter().map(|(_, kind, family)| {
                // Those of the file count as well: SIP listens where it always does in a test.
                format!("{kind}=config,pjsip.conf,criteria=type={kind}\n{kind}=realtime,{family}\n")
            });
            std::iter::once(format!("[{}]\n", same[0].0)).chain(lines)
        })
        .collect();
    let site = file.described(site, "pbx", &families).add("sorcery.conf", &modules).add(
        "pjsip.conf",
        &format!(
            "[alice@home.example]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\nauth=alice\n\
             aors=alice@home.example\n[alice]\ntype=auth\nauth_type=userpass\nusername=alice\npassword={SECRET}\n\
             [alice@home.example]\ntype=aor\nmax_contacts=1\n"
        ),
    );
    let mut server = Server::start(site);
    // ps_registrations and, by a Via without rport, ps_systems.
    let mut bytes = [0; 4096];
    let length = carrier.recv(&mut bytes).expect("a registration of ours");
    let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
    assert!(request.starts_with("REGISTER ") && !request.contains("rport"), "{request}");
    assert!(server.cli("pjsip show registrations").contains("carrier"));
    // ps_globals, ps_transports and ps_domain_aliases, by a phone that registers there under the alias.
    assert!(server.cli("pjsip show settings").contains("Rows of a table"));
    assert!(server.cli("pjsip show transports").contains("rowed"));
    let mut alice = Phone::new((ip, 5080).into(), "alice");
    let refused = alice.ask("REGISTER", "alice");
    let text = refused.text();
    assert!(text.contains("rows.example") && text.contains("Rows of a table"), "{text}");
    alice.must_register();
    let contacts = server.cli("pjsip show contacts");
    assert!(contacts.contains("alice@home.example"), "{contacts}");
    server.assert_healthy();
}
