//! Endpoints, AORs and auths in a database: known at the start, looked up while running, and there while it is away.

use e2e::{Phone, SECRET, Server, Site, Sqlite, wait};

/// Columns as the field's tables have them, and one that nobody knows.
const SCHEMA: &str = "CREATE TABLE ps_endpoints (id TEXT PRIMARY KEY, context TEXT, disallow TEXT, allow TEXT, direct_media TEXT, \
                      auth TEXT, aors TEXT, tenant INTEGER);\
                      CREATE TABLE ps_auths (id TEXT PRIMARY KEY, auth_type TEXT, username TEXT, password TEXT);\
                      CREATE TABLE ps_aors (id TEXT PRIMARY KEY, max_contacts INTEGER, minimum_expiration INTEGER, contact TEXT);\
                      CREATE TABLE ps_endpoint_id_ips (id TEXT PRIMARY KEY, endpoint TEXT, \"match\" TEXT);";

fn add_phone(file: &Sqlite, name: &str) {
    file.sql(&format!(
        "INSERT INTO ps_endpoints VALUES ('{name}', 'test', 'all', 'ulaw', '0', '{name}', '{name}', 7);\
             INSERT INTO ps_auths VALUES ('{name}', 'userpass', '{name}', '{SECRET}');\
             INSERT INTO ps_aors VALUES ('{name}', 4, 5, NULL);"
    ));
}

fn remove_phone(file: &Sqlite, name: &str) {
    file.sql(&format!(
        "DELETE FROM ps_endpoints WHERE id = '{name}'; DELETE FROM ps_auths WHERE id = '{name}'; \
             DELETE FROM ps_aors WHERE id = '{name}';"
    ));
}

/// A site whose phones are in SQLite, `alice` and `bob` among them; `cache` is what is remembered.
fn site(name: &str, cache: Option<&str>) -> Option<(Site, Sqlite)> {
    let site = Site::new(name);
    let file = Sqlite::new(&site, "realtime.sqlite3", SCHEMA)?;
    add_phone(&file, "alice");
    add_phone(&file, "bob");
    let families = ["endpoint", "auth", "aor"].map(|kind| match cache {
        Some(cache) => format!("{kind}/cache=memory_cache,{cache}\n{kind}=realtime,ps_{kind}s\n"),
        None => format!("{kind}=realtime,ps_{kind}s\n"),
    });
    let tables = ["ps_endpoints", "ps_auths", "ps_aors", "ps_endpoint_id_ips"];
    let site = file
        .described(site, "lite", &tables)
        .add(
            "sorcery.conf",
            &format!(
                "[res_pjsip]\n{}[res_pjsip_endpoint_identifier_ip]\nidentify=realtime,ps_endpoint_id_ips\n",
                families.concat()
            ),
        )
        .dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(30)\nexten => _[a-z].,1,Dial(PJSIP/${EXTEN},20)\n");
    Some((site, file))
}

/// The status that ends a registration.
fn registered(server: &Server, name: &str) -> Option<u16> {
    Phone::new(server.site.sip, name).register(300).status()
}

#[test]
fn phones_of_a_database_register_call_and_are_called() {
    let Some((site, _)) = site("realtime-calls", None) else { return };
    let server = Server::start(site);
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    alice.must_register();
    bob.must_register();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn rows_that_come_and_go_while_it_runs_are_seen_without_a_reload() {
    let Some((site, file)) = site("realtime-rows", None) else { return };
    let server = Server::start(site);
    assert_eq!(registered(&server, "carol"), Some(401), "nobody knows her");
    add_phone(&file, "carol");
    assert_eq!(registered(&server, "carol"), Some(200), "a new row");
    file.sql("UPDATE ps_auths SET password = 'another-long-word' WHERE id = 'carol'");
    assert_eq!(registered(&server, "carol"), Some(401), "the password is another");
    file.sql(&format!("UPDATE ps_auths SET password = '{SECRET}' WHERE id = 'carol'"));
    assert_eq!(registered(&server, "carol"), Some(200));
    remove_phone(&file, "carol");
    assert_eq!(registered(&server, "carol"), Some(401), "a row that is gone");
}

#[test]
fn what_is_known_serves_while_the_database_is_locked() {
    for (name, cache) in [("realtime-away", None), ("realtime-cached", Some("object_lifetime_maximum=3600"))]
    {
        let Some((site, file)) = site(name, cache) else { return };
        let server = Server::start(site);
        assert_eq!(registered(&server, "alice"), Some(200), "{name}");
        let lock = file.hold();
        assert_eq!(registered(&server, "alice"), Some(200), "{name}: known");
        assert_eq!(registered(&server, "bob"), Some(200), "{name}: known since the start");
        let unknown = registered(&server, "carol");
        assert_eq!(unknown, Some(503), "{name}: nobody can say whether she exists");
        drop(lock);
        wait::until_true("the database says that there is no carol", || {
            registered(&server, "carol") == Some(401)
        });
        assert_eq!(registered(&server, "alice"), Some(200), "{name}: and after");
    }
}

#[test]
fn a_cached_row_is_asked_for_again_after_a_reload_and_registrations_outlive_a_kill() {
    let Some((site, file)) =
        site("realtime-reload", Some("object_lifetime_maximum=3600,full_backend_cache=yes"))
    else {
        return;
    };
    let mut server = Server::start(site);
    assert_eq!(registered(&server, "alice"), Some(200));
    add_phone(&file, "carol");
    assert_eq!(registered(&server, "carol"), Some(401), "all rows are remembered, and she is not among them");
    let mut carol = Phone::new(server.site.sip, "carol");
    let mut status = || carol.register(300).status();
    server.cli("core reload");
    wait::until_true("her row is seen", || status() == Some(200));
    remove_phone(&file, "carol");
    assert_eq!(registered(&server, "carol"), Some(200), "what is remembered holds");
    server.cli("core reload");
    wait::until_true("her row is gone", || status() == Some(401));
    server.kill_and_restart();
    let contacts = server.cli("pjsip show contacts");
    assert!(contacts.contains("alice"), "{contacts}");
}

#[test]
fn an_identify_row_is_taken_at_a_reload() {
    let Some((site, file)) = site("realtime-identify", None) else { return };
    let server = Server::start(site);
    let mut phone = Phone::new(server.site.sip, "stranger");
    let mut ask = || phone.ask("OPTIONS", "100").status();
    assert_eq!(ask(), Some(401));
    file.sql(
        "INSERT INTO ps_endpoints VALUES ('trunk', 'test', 'all', 'ulaw', 'no', NULL, NULL, 7);\
         INSERT INTO ps_endpoint_id_ips VALUES ('t', 'trunk', '127.0.0.0/8');",
    );
    server.cli("core reload");
    wait::until_true("it is known by its address", || ask() == Some(200));
}

#[test]
fn a_cache_is_shown_and_told_to_ask_again() {
    let Some((site, file)) = site("realtime-cache", Some("object_lifetime_maximum=3600,negative_lifetime=0"))
    else {
        return;
    };
    let server = Server::start(site);
    assert_eq!(server.json("sorcery memory cache show res_pjsip/endpoint")["objects"], 2);
    let dump = server.json("sorcery memory cache dump res_pjsip/aor");
    assert_eq!(
        (&dump["objects"][0]["name"], &dump["objects"][1]["name"]),
        (&"alice".into(), &"bob".into()),
        "{dump}"
    );
    let databases = server.json("odbc show");
    assert_eq!(
        (&databases["databases"][0]["name"], &databases["databases"][0]["standing"]),
        (&"lite".into(), &"up".into())
    );
    assert_eq!(server.json("odbc show lite")["databases"][0]["name"], "lite");
    assert!(!server.run("odbc show none").status.success());
    let mappings = server.cli("core show config mappings");
    assert!(
        mappings.starts_with("Config Engine: sqlite3\n===> ps_aors (db=lite, table=ps_aors)\n"),
        "{mappings}"
    );
    remove_phone(&file, "alice");
    assert_eq!(registered(&server, "alice"), Some(200), "what is remembered holds");
    server.cli("sorcery memory cache expire res_pjsip/endpoint alice");
    assert_eq!(registered(&server, "alice"), Some(401), "the row is gone");
    assert_eq!(registered(&server, "bob"), Some(200));
    file.sql("UPDATE ps_auths SET password = 'another-long-word' WHERE id = 'bob'");
    server.cli("sorcery memory cache stale res_pjsip/auth bob");
    let mut bob = Phone::new(server.site.sip, "bob");
    let mut status = || bob.register(300).status();
    wait::until_true("the row is asked for behind its use", || status() == Some(401));
    add_phone(&file, "carol");
    server.cli("sorcery memory cache populate res_pjsip/endpoint");
    wait::until_true("the row is among all", || {
        server.json("sorcery memory cache show res_pjsip/endpoint")["objects"] == 2
    });
    for command in
        ["sorcery memory cache show res_pjsip/nothing", "sorcery memory cache expire res_pjsip/aor nobody"]
    {
        assert!(!server.run(command).status.success(), "{command}");
    }
}

/// What `ps_contacts` says of an AOR: reg_server and prune_on_boot of each row.
fn contacts(file: &Sqlite, aor: &str) -> Vec<String> {
    let text =
        format!("SELECT reg_server || ' ' || prune_on_boot FROM ps_contacts WHERE id LIKE '{aor}^3B@%'");
    file.sql(&text).lines().map(str::to_owned).collect()
}

#[test]
fn contacts_are_written_behind_and_those_of_other_systems_are_called() {
    let Some((site, file)) = site("realtime-contacts", None) else { return };
    file.sql("CREATE TABLE ps_contacts (id TEXT PRIMARY KEY, uri TEXT, expiration_time BIGINT, qualify_frequency INTEGER, path TEXT, \
         user_agent TEXT, reg_server TEXT, via_addr TEXT, via_port INTEGER, call_id TEXT, endpoint TEXT, prune_on_boot TEXT);\
         INSERT INTO ps_contacts VALUES ('alice^3B@00', 'sip:alice@192.0.2.1', 4000000000, 0, '', '', 'own', '192.0.2.1', 5060, \
         'x', 'alice', 'yes');",
    );
    // Bob has registered at another system.
    let (to, mut bob) = (site.sip, Phone::new(site.sip, "bob"));
    let at = bob.local();
    let insert = format!(
        "INSERT INTO ps_contacts VALUES ('bob^3B@11', 'sip:bob@{at}', 4000000000, 0, '', '', 'other', '{}', {}, 'y', 'bob', 'no')",
        at.ip(),
        at.port()
    );
    file.sql(&insert);
    let site = site
        .add("asterisk.conf", "systemname = own\n")
        .add("extconfig.conf", "ps_contacts => sqlite3,lite\n")
        .add("sorcery.conf", "[res_pjsip]\ncontact=realtime,ps_contacts\n");
    let mut server = Server::start(site);
    wait::until_true("what a connection of ours left is gone", || contacts(&file, "alice").is_empty());
    let mut alice = Phone::new(to, "alice");
    alice.must_register();
    wait::until_true("alice is written", || contacts(&file, "alice") == ["own no"]);
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    bob.until_hung_up();
    // A row that was lost is written again.
    file.sql("DELETE FROM ps_contacts WHERE reg_server = 'own'");
    server.kill_and_restart();
    wait::until_true("alice is written again", || contacts(&file, "alice") == ["own no"]);
    assert_eq!(contacts(&file, "bob"), ["other no"], "it is the other's");
    assert_eq!(alice.register(0).status(), Some(200));
    wait::until_true("alice has gone", || contacts(&file, "alice").is_empty());
}

#[test]
fn a_row_that_was_removed_is_made_again_by_a_renewal_unless_update_or_create_on_update_miss_is_no() {
    for (value, made_again) in [("yes", true), ("no", false)] {
        let Some((site, file)) = site(&format!("realtime-miss-{value}"), None) else { return };
        file.sql("CREATE TABLE ps_contacts (id TEXT PRIMARY KEY, uri TEXT, expiration_time BIGINT, reg_server TEXT, \
             prune_on_boot TEXT);");
        let sorcery = format!(
            "[general]\nupdate_or_create_on_update_miss={value}\n[res_pjsip]\ncontact=realtime,ps_contacts\n"
        );
        let to = site.sip;
        let site = site.add("extconfig.conf", "ps_contacts => sqlite3,lite\n").add("sorcery.conf", &sorcery);
        let server = Server::start(site);
        let until = || file.sql("SELECT expiration_time FROM ps_contacts");
        let (mut alice, mut bob) = (Phone::new(to, "alice"), Phone::new(to, "bob"));
        assert_eq!(alice.register(600).status(), Some(200));
        wait::until_true("alice is written", || !until().is_empty());
        let first = until();
        assert_eq!(alice.register(3600).status(), Some(200));
        wait::until_true("a renewal is written", || until() != first && until().lines().count() == 1);
        file.sql("DELETE FROM ps_contacts");
        assert_eq!(alice.register(600).status(), Some(200));
        // Who comes after alice is written after her.
        assert_eq!(bob.register(600).status(), Some(200));
        wait::until_true("bob is written", || contacts(&file, "bob").len() == 1);
        assert_eq!(contacts(&file, "alice").len(), usize::from(made_again), "{value}");
        assert_eq!(alice.register(0).status(), Some(200));
        assert_eq!(alice.register(600).status(), Some(200));
        wait::until_true("what is new is made in any case", || contacts(&file, "alice").len() == 1);
        drop(server);
    }
}

#[test]
fn an_endpoint_that_came_while_it_runs_is_dialled_without_a_reload() {
    let Some((site, file)) = site("realtime-dialled", Some("object_lifetime_maximum=3600")) else { return };
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    assert_ne!(alice.call("carol").status(), Some(200), "nobody knows her");
    add_phone(&file, "carla");
    let mut carla = Phone::new(server.site.sip, "carla");
    file.sql(&format!("UPDATE ps_aors SET contact = 'sip:carla@{}' WHERE id = 'carla'", carla.local()));
    alice.begin("carla");
    let invite = carla.ring();
    carla.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    carla.until_hung_up();
    server.until_idle();
}

#[test]
fn a_member_of_a_queue_that_came_while_it_runs_is_called_without_a_reload() {
    let Some((site, file)) = site("realtime-member", Some("object_lifetime_maximum=3600")) else { return };
    let site = site
        .add("queues.conf", "[sales]\nstrategy = ringall\nmember = PJSIP/carla\n")
        .dialplan("[test]\nexten => 500,1,Queue(sales)\n");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    add_phone(&file, "carla");
    let mut carla = Phone::new(server.site.sip, "carla");
    file.sql(&format!("UPDATE ps_aors SET contact = 'sip:carla@{}' WHERE id = 'carla'", carla.local()));
    alice.begin("500");
    let invite = carla.ring();
    carla.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    carla.until_hung_up();
    server.until_idle();
}
