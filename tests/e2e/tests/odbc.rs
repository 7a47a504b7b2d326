//! Phones in MariaDB, asked through unixODBC: known, called, and there while a driver dies.

#[path = "../../../crates/realtime/tests/common/mod.rs"]
mod common;

use std::path::Path;

use common::{open, raw, wait_for_answer};
use e2e::{Phone, SECRET, Server, Site, wait};

/// Where Debian's package puts the driver.
const DRIVERS: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/odbc/libmaodbc.so", "/usr/lib/aarch64-linux-gnu/odbc/libmaodbc.so"];

/// Columns as the field's tables have them.
const SCHEMA: [&str; 3] = [
    "CREATE TABLE ps_endpoints (id VARCHAR(40) PRIMARY KEY, context VARCHAR(40), disallow VARCHAR(200), allow VARCHAR(200), \
     direct_media ENUM('yes','no'), auth VARCHAR(40), aors VARCHAR(200), callerid VARCHAR(40))",
    "CREATE TABLE ps_auths (id VARCHAR(40) PRIMARY KEY, auth_type ENUM('md5','userpass'), username VARCHAR(40), \
     password VARCHAR(80))",
    "CREATE TABLE ps_aors (id VARCHAR(40) PRIMARY KEY, max_contacts INT, contact VARCHAR(255))",
];

fn add_phone(databases: &mut realtime::Databases, name: &str) {
    for sql in [
        format!(
            "INSERT INTO ps_endpoints VALUES ('{name}','test','all','ulaw','no','{name}','{name}','Zoë <{name}>')"
        ),
        format!("INSERT INTO ps_auths VALUES ('{name}','userpass','{name}','{SECRET}')"),
        format!("INSERT INTO ps_aors VALUES ('{name}',4,NULL)"),
    ] {
        databases.ask("db", raw(&sql)).unwrap();
    }
}

/// The site, as its administrator has it for Asterisk.
fn site(name: &str, driver: &str, port: u16) -> Site {
    let site = Site::new(name);
    let folder = site.place.join("odbc");
    std::fs::create_dir_all(&folder).unwrap();
    let source =
        format!("[connector]\nDriver = MariaDB\nServer = 127.0.0.1\nPort = {port}\nDatabase = pbx\n");
    std::fs::write(folder.join("odbc.ini"), source).unwrap();
    std::fs::write(folder.join("odbcinst.ini"), format!("[MariaDB]\nDriver = {driver}\n")).unwrap();
    let classes = format!(
        "[ENV]\nODBCSYSINI => {0}\nODBCINI => {0}/odbc.ini\n[pbx]\nenabled => yes\ndsn => connector\nusername => pbx\n\
         password => s3cr#t'\nmax_connections => 3\nnegative_connection_cache => 1\n",
        folder.display()
    );
    let families = ["endpoint", "auth", "aor"].map(|kind| format!("{kind}=realtime,ps_{kind}s\n")).concat();
    site.add("res_odbc.conf", &classes)
        .add(
            "extconfig.conf",
            "[settings]\nps_endpoints => odbc,pbx\nps_auths => odbc,pbx\nps_aors => odbc,pbx\n",
        )
        .add("sorcery.conf", &format!("[res_pjsip]\n{families}"))
        .dialplan("[test]\nexten => _[a-z].,1,Dial(PJSIP/${EXTEN},20)\n")
}

/// The programs that a server has started to speak ODBC.
fn programs(server: &Server) -> Vec<u32> {
    let children = format!("/proc/{0}/task", server.pid());
    let tasks = std::fs::read_dir(children).unwrap().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<u32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>())
        .collect();
    let is_one = |number: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        name.trim() == "strowger-odbc"
    };
    numbers.into_iter().filter(is_one).collect()
}

#[test]
fn phones_of_mariadb_register_and_call_through_unixodbc_while_its_driver_dies() {
    let Some(driver) = DRIVERS.into_iter().find(|path| Path::new(path).exists()) else {
        println!("skipped: odbc-mariadb is not installed");
        return;
    };
    let Some(mariadb) = common::Server::mariadb() else { return };
    let mut databases = open(mariadb.settings());
    for sql in SCHEMA {
        wait_for_answer(&mut databases, raw(sql));
    }
    add_phone(&mut databases, "alice");
    add_phone(&mut databases, "bob");
    let mut server = Server::start(site("odbc", driver, mariadb.port()));
    let registered = |name: &str| Phone::new(server.site.sip, name).register(300).status();
    assert_eq!(registered("alice"), Some(200));
    assert_eq!(registered("carol"), Some(401), "there is no such row");
    add_phone(&mut databases, "carol");
    assert_eq!(registered("carol"), Some(200), "each request asks the database");
    let shown = server.json("odbc show");
    let shown = &shown["databases"][0];
    assert_eq!((&shown["name"], &shown["standing"]), (&"pbx".into(), &"up".into()), "{shown}");
    assert_eq!((&shown["driver"], &shown["max"]), (&"odbc (MariaDB)".into(), &3.into()), "{shown}");
    assert!(server.cli("odbc show").contains("(out of 3)"));
    // All programs at once, as a driver that has a bad day would: a call that is up does not notice, the next request is
    // answered, and the log says what happened.
    let mut bob = Phone::new(server.site.sip, "bob");
    assert_eq!(bob.register(300).status(), Some(200));
    let before = programs(&server);
    assert!(!before.is_empty() && before.len() <= 3, "{before:?}");
    for process in &before {
        let killed =
            std::process::Command::new("kill").arg("-ABRT").arg(process.to_string()).status().unwrap();
        assert!(killed.success());
    }
    wait::until_true("the next request is answered", || registered("alice") == Some(200));
    server.until_logged(&["database pbx", "has ended its program by signal 6"]);
    wait::until_true("the database is up again", || {
        server.json("odbc show")["databases"][0]["standing"] == "up" && registered("carol") == Some(200)
    });
    let after = programs(&server);
    assert!(after.iter().all(|process| !before.contains(process)), "{before:?} {after:?}");
    server.assert_healthy();
}
