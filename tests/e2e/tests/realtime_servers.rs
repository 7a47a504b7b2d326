//! Phones of SIP in MariaDB and PostgreSQL, in the tables that `strowger db` makes: they register and call, also while the
//! server is stopped, and their contacts are rows.

mod database;

use std::process::Command;

use database::{Database, common};
use e2e::{Phone, SECRET, Server, Site, program, wait};

const TABLES: [&str; 4] = ["ps_endpoints", "ps_auths", "ps_aors", "ps_contacts"];

fn add_phone(database: &mut Database, name: &str) {
    for sql in [
        format!(
            "INSERT INTO ps_endpoints (id, context, disallow, allow, direct_media, auth, aors) \
             VALUES ('{name}', 'test', 'all', 'ulaw', 'no', '{name}', '{name}')"
        ),
        format!(
            "INSERT INTO ps_auths (id, auth_type, username, password) VALUES ('{name}', 'userpass', '{name}', '{SECRET}')"
        ),
        format!("INSERT INTO ps_aors (id, max_contacts, minimum_expiration) VALUES ('{name}', 4, 5)"),
    ] {
        database.sql(&sql);
    }
}

/// Rows of `ps_contacts` of an AOR.
fn contacts(database: &mut Database, aor: &str) -> usize {
    database.sql(&format!("SELECT id FROM ps_contacts WHERE endpoint = '{aor}'")).len()
}

fn phones_of(mut database: Database, name: &str) {
    let made = Command::new(program()).args(["db", "create", &database.url()]).args(TABLES).output();
    let made = made.expect("the program");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    add_phone(&mut database, "alice");
    add_phone(&mut database, "bob");
    let cached = |kind: &str| {
        format!("{kind}/cache=memory_cache,object_lifetime_maximum=3600\n{kind}=realtime,ps_{kind}s\n")
    };
    let kinds = ["endpoint", "auth", "aor"].map(cached).concat();
    let site = Site::new(name)
        .add("sorcery.conf", &format!("[res_pjsip]\n{kinds}contact=realtime,ps_contacts\n"))
        .add("asterisk.conf", "systemname = own\n")
        .dialplan("[test]\nexten => _[a-z].,1,Dial(PJSIP/${EXTEN},20)\n");
    let mut server = Server::start(database.described(site, &TABLES.map(|table| (table, table))));
    let to = server.site.sip;
    let (mut alice, mut bob) = (Phone::new(to, "alice"), Phone::new(to, "bob"));
    alice.must_register();
    bob.must_register();
    wait::until_true("both are rows", || {
        contacts(&mut database, "alice") == 1 && contacts(&mut database, "bob") == 1
    });
    let talk = |alice: &mut Phone, bob: &mut Phone| {
        alice.begin("bob");
        let invite = bob.ring();
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200));
        alice.hang_up();
        bob.until_hung_up();
    };
    talk(&mut alice, &mut bob);
    // A row that comes is seen without a reload.
    assert_eq!(Phone::new(to, "carol").register(300).status(), Some(401));
    add_phone(&mut database, "carol");
    let mut carol = Phone::new(to, "carol");
    wait::until_true("carol is known", || carol.register(300).status() == Some(200));

    database.stop();
    assert_eq!(alice.register(300).status(), Some(200), "known");
    let mut second = Phone::new(to, "alice");
    assert_eq!(second.register(300).status(), Some(200), "from another place");
    assert_eq!(Phone::new(to, "dave").register(300).status(), Some(503), "nobody can say");
    talk(&mut alice, &mut bob);
    assert_eq!(carol.register(0).status(), Some(200));
    server.kill_and_restart();
    database.start();
    wait::until_true("rows have caught up", || {
        contacts(&mut database, "alice") == 2 && contacts(&mut database, "carol") == 0
    });
    add_phone(&mut database, "dave");
    let mut dave = Phone::new(to, "dave");
    wait::until_true("a row that came", || dave.register(300).status() == Some(200));
    server.assert_healthy();
}

#[test]
fn phones_of_mariadb_register_and_call_while_it_runs_and_while_it_is_stopped() {
    let Some(server) = common::Server::mariadb() else { return };
    phones_of(Database::on(server), "sip-mariadb");
}

#[test]
fn phones_of_postgresql_register_and_call_while_it_runs_and_while_it_is_stopped() {
    let Some(server) = common::Server::postgres() else { return };
    phones_of(Database::on(server), "sip-postgres");
}
