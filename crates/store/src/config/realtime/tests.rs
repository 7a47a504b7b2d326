//! The files of databases, case by case.

use super::*;

fn file(name: &str, text: &str, findings: &mut Findings) -> Option<File> {
    let source = conf::Memory::new().with(name, text);
    conf::load(&source, name, conf::Options::default(), findings).ok()
}

/// Every message, without those of warnings that a case does not look at.
fn messages(findings: &Findings) -> Vec<String> {
    findings.iter().map(|finding| finding.message.clone()).collect()
}

#[test]
fn families_lie_where_extconfig_says() {
    let place = |driver, database: &str, table: &str, priority| {
        Some((driver, database.to_owned(), table.to_owned(), priority))
    };
    for (line, expected, told) in [
        ("ps_endpoints => odbc,asterisk", place(Driver::Odbc, "asterisk", "ps_endpoints", 1), None),
        ("ps_endpoints = ODBC , asterisk , t1 ", place(Driver::Odbc, "asterisk", "t1", 1), None),
        ("queues.conf => mysql,general,ast_config", place(Driver::Mysql, "general", "ast_config", 1), None),
        ("sippeers => pgsql,\"db\",t", place(Driver::Pgsql, "db", "t", 1), None),
        ("cdr => sqlite3,db,cdr,1", place(Driver::Sqlite3, "db", "cdr", 1), None),
        ("cdr => sqlite3,db,cdr,2", place(Driver::Sqlite3, "db", "cdr", 2), Some("priority 2 and none of 1")),
        ("queues.conf => odbc,asterisk", None, Some("without a table")),
        ("extconfig.conf => odbc,asterisk,t", None, Some("cannot lie in a database")),
        ("Asterisk => odbc,asterisk,t", None, Some("cannot lie in a database")),
        ("logger.conf => odbc,asterisk,t", None, Some("cannot lie in a database")),
        ("ps_aors => curl,http://h/", None, Some("no driver 'curl'")),
        ("ps_aors => obdc,asterisk", None, Some("no driver 'obdc'")),
        ("ps_aors => odbc", None, Some("names no database")),
        ("ps_aors => odbc,a,t,0", None, Some("no priority")),
        ("ps_aors => odbc,a,t,1,x", None, Some("no priority")),
    ] {
        let mut findings = Findings::new();
        let read = file("extconfig.conf", &format!("[settings]\n{line}\n"), &mut findings).unwrap();
        let families = Families::read(&read, &mut findings);
        let found = families.backends().next();
        let found = found.map(|b| (b.driver, b.database.clone(), b.table.clone(), b.priority));
        assert_eq!(found, expected, "{line}");
        let said = messages(&findings);
        assert_eq!(said.len(), usize::from(told.is_some()), "{line}: {said:?}");
        assert!(told.is_none_or(|told| said.iter().any(|said| said.contains(told))), "{line}: {said:?}");
    }
}

#[test]
fn variables_of_env_are_for_unixodbc_and_its_drivers() {
    let mut findings = Findings::new();
    let text = "[ENV]\nODBCSYSINI => /opt/odbc\nTDSVER => 7.4\n[class]\ndsn => asterisk\n";
    let read = file("res_odbc.conf", text, &mut findings).unwrap();
    let sources = |environment: &odbc::Environment| {
        assert_eq!(environment.drivers_file(), PathBuf::from("/opt/odbc/odbcinst.ini"));
        DataSources::default()
    };
    let made = odbc::read(&read, &sources, &mut findings);
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let Some(Settings { link: Link::Odbc { environment, .. }, .. }) = made.first() else {
        panic!("{made:?}")
    };
    assert_eq!(*environment, [set("ODBCSYSINI", "/opt/odbc"), set("TDSVER", "7.4")]);
    assert!(messages(&findings).is_empty());
}

#[test]
fn the_databases_of_a_family_are_asked_by_priority() {
    let mut findings = Findings::new();
    let text = "[settings]\nps_aors => odbc,second,t,2\nps_aors => odbc,first,t\nps_aors => odbc,third,t,2\n";
    let read = file("extconfig.conf", text, &mut findings).unwrap();
    let families = Families::read(&read, &mut findings);
    let names: Vec<&str> = families.of("ps_aors").iter().map(|b| b.database.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(messages(&findings), ["family 'ps_aors' has another line of priority 2 above"]);
    assert!(families.of("ps_auths").is_empty());
}

const ODBC_INI: &str = "[asterisk]\nDescription = x\nDriver = MariaDB\nServer = db.example\nPort = 3307\nDatabase = pbx\nUser = ann\n\
                        Password = p=w\n[pg]\nDriver=/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so\nServername=::1\nDatabase=pbx\n\
                        [file]\nDriver=SQLite3\nDatabase=/var/lib/a.db\n[odd]\nDriver=Oracle\nDatabase=x\n[bare]\nDriver=MariaDB\n";
const ODBCINST_INI: &str =
    "[MariaDB]\nDriver=libmaodbc.so\n[SQLite3]\nDriver=libsqlite3odbc.so\n[Oracle]\nDriver=libsqora.so\n";

#[test]
fn a_class_is_served_by_unixodbc_or_by_the_driver_that_one_line_asks_for() {
    let odbc = |dsn: &str, user: &str| {
        Some(Link::Odbc {
            dsn: dsn.to_owned(),
            user: user.to_owned(),
            password: Secret::default(),
            environment: Vec::new(),
        })
    };
    let server = |host: &str, port, user: &str, password: &str| Server {
        host: host.to_owned(),
        port,
        socket: String::new(),
        database: "pbx".to_owned(),
        user: user.to_owned(),
        password: Secret::new(password),
    };
    let maria = || Some(Link::Mysql(server("db.example", 3307, "ann", "p=w")));
    for (lines, expected, told) in [
        ("dsn => asterisk", odbc("asterisk", ""), None),
        ("dsn => asterisk\nusername => bob", odbc("asterisk", "bob"), None),
        ("enabled => no\ndsn => asterisk", None, None),
        ("username => bob", odbc("class", "bob"), None),
        ("dsn => asterisk\nnative => yes", maria(), None),
        ("dsn => asterisk\nnative => mysql", maria(), None),
        ("dsn => ASTERISK\nnative => yes", maria(), None),
        (
            "dsn => asterisk\nnative => yes\nusername => bob\npassword => own",
            Some(Link::Mysql(server("db.example", 3307, "bob", "own"))),
            None,
        ),
        ("dsn => pg\nnative => yes", Some(Link::Pgsql(server("::1", 5432, "", ""))), None),
        ("dsn => file\nnative => yes", Some(Link::Sqlite("/var/lib/a.db".into())), None),
        ("dsn => odd\nnative => yes", odbc("odd", ""), Some("which driver data source 'odd' has")),
        ("dsn => none\nnative => yes", odbc("none", ""), Some("which driver data source 'none' has")),
        ("dsn => bare\nnative => yes", None, Some("has no Database")),
        ("dsn => asterisk\nnative => oracle", odbc("asterisk", ""), Some("native=oracle is no driver")),
    ] {
        let mut findings = Findings::new();
        let read = file("res_odbc.conf", &format!("[class]\n{lines}\n"), &mut findings).unwrap();
        let sources = |_: &odbc::Environment| DataSources::parse(ODBC_INI, ODBCINST_INI);
        let made = odbc::read(&read, &sources, &mut findings);
        assert_eq!(made.first().map(|settings| settings.link.clone()), expected, "{lines}");
        let said = messages(&findings);
        assert_eq!(said.len(), usize::from(told.is_some()), "{lines}: {said:?}");
        assert!(told.is_none_or(|told| said.iter().any(|said| said.contains(told))), "{lines}: {said:?}");
    }
}

#[test]
fn a_class_has_the_limits_of_its_lines_and_the_fields_defaults() {
    let mut findings = Findings::new();
    let text = "[a]\n[b]\npre-connect => yes\nmax_connections => 20\nconnect_timeout => 3\nnegative_connection_cache => 7\n\
                sanitysql => select 1\nslow_query_limit => 250\n[ENV]\nODBCSYSINI => /opt/odbc\n";
    let read = file("res_odbc.conf", text, &mut findings).unwrap();
    let asked = std::cell::RefCell::new(Vec::new());
    let sources = |of: &odbc::Environment| {
        asked.borrow_mut().push(of.drivers_file());
        DataSources::default()
    };
    let made = odbc::read(&read, &sources, &mut findings);
    let secs = Duration::from_secs;
    let limits =
        |of: &Settings| (of.connections, of.connect_timeout, of.retry_after, of.slow, of.pre_connect);
    assert_eq!(
        made.iter().map(limits).collect::<Vec<_>>(),
        [(1, secs(10), secs(300), secs(5), false), (20, secs(3), secs(7), Duration::from_millis(250), true),]
    );
    assert_eq!(asked.into_inner(), [PathBuf::from("/opt/odbc/odbcinst.ini")]);
    assert!(findings.is_empty(), "{:?}", messages(&findings));
}

#[test]
fn native_files_describe_their_databases() {
    let mut findings = Findings::new();
    let files = Files {
        extconfig: file(
            "extconfig.conf",
            "[settings]\nps_aors => mysql,one\nps_auths => pgsql,any\nps_endpoints => sqlite3,lite\ncdr => sqlite3,none\n",
            &mut findings,
        ),
        mysql: file("res_config_mysql.conf", "[one]\ndbhost=h\ndbuser=u\ndbpass=p\n", &mut findings),
        pgsql: file("res_pgsql.conf", "[general]\ndbname=pbx\ndbsock=/run/postgresql\n", &mut findings),
        sqlite: file(
            "res_config_sqlite3.conf",
            "[general]\n[lite]\ndbfile => /tmp/x.db\n[empty]\n",
            &mut findings,
        ),
        ..Files::default()
    };
    let realtime = Realtime::read(&files, &|_| DataSources::default(), &mut findings);
    let link = |family: &str| {
        let backend = realtime.families.of(family).first()?;
        realtime.database(backend).map(|settings| settings.link.clone())
    };
    let Some(Link::Mysql(server)) = link("ps_aors") else { panic!("{realtime:?}") };
    assert_eq!((server.host.as_str(), server.database.as_str(), server.port), ("h", "one", 3306));
    let Some(Link::Pgsql(server)) = link("ps_auths") else { panic!("{realtime:?}") };
    assert_eq!((server.socket.as_str(), server.database.as_str()), ("/run/postgresql", "pbx"));
    assert_eq!(link("ps_endpoints"), Some(Link::Sqlite("/tmp/x.db".into())));
    assert_eq!(
        messages(&findings),
        [
            "database 'empty' has no dbfile",
            "family 'cdr' lies in 'none', which res_config_sqlite3.conf does not describe",
        ]
    );
    assert!(!format!("{realtime:?}").contains("\"p\""), "a password is never shown");
}

#[test]
fn sorcery_places_objects_and_says_what_is_remembered() {
    let secs = Duration::from_secs;
    let mut findings = Findings::new();
    let text = "[general]\nupdate_or_create_on_update_miss=no\n\
                [res_pjsip]\nendpoint/cache=memory_cache,maximum_objects=10,object_lifetime_maximum=900,object_lifetime_stale=300,\
                expire_on_reload=yes\nendpoint=realtime,ps_endpoints\n\
                endpoint=config,pjsip.conf,criteria=type=endpoint\naor=config,pjsip.conf,criteria=type=aor\naor=realtime,ps_aors\n\
                auth=realtime,ps_auths\n\
                auth/cache=memory_cache,full_backend_cache=yes\ntransport=config,pjsip.conf,criteria=type=transport\n\
                [res_pjsip_endpoint_identifier_ip]\nidentify=realtime,ps_endpoint_id_ips\n";
    let read = file("sorcery.conf", text, &mut findings).unwrap();
    let sorcery = Sorcery::read(&read, &mut findings);
    assert!(findings.is_empty(), "{:?}", messages(&findings));
    assert!(!sorcery.general.update_or_create_on_update_miss);
    assert!(Sorcery::default().general.update_or_create_on_update_miss, "where nothing is written");
    let (family, cache) = sorcery.realtime("endpoint").unwrap();
    let cache = cache.unwrap();
    assert_eq!(family, "ps_endpoints");
    assert_eq!((cache.maximum_objects, cache.object_lifetime_maximum), (10, secs(900)));
    assert_eq!((cache.object_lifetime_stale, cache.expire_on_reload), (secs(300), true));
    let of_auths = sorcery.realtime("auth").unwrap().1.unwrap();
    assert_eq!((cache.full_backend_cache, of_auths.full_backend_cache), (false, true));
    for (kind, in_file, database_first, is_realtime) in [
        ("endpoint", true, true, true),
        ("aor", true, false, true),
        ("auth", false, true, true),
        ("transport", true, false, false),
        ("identify", false, true, true),
        ("global", true, false, false),
    ] {
        assert_eq!(sorcery.reads_file(kind), in_file, "{kind}");
        assert_eq!(sorcery.realtime(kind).is_some(), is_realtime, "{kind}");
        let first = sorcery.objects.get(kind).is_some_and(Objects::database_first);
        assert_eq!(first, database_first, "{kind}");
    }
}

#[test]
fn what_sorcery_cannot_do_is_told() {
    for (text, told) in [
        ("[res_pjsip]\nendpont=realtime,ps_endpoints\n", "'endpont' of [res_pjsip]"),
        ("[res_pjsipp]\nendpoint=realtime,ps_endpoints\n", "[res_pjsipp] is no module"),
        ("[res_pjsip]\nendpoint=realtim,ps_endpoints\n", "no wizard 'realtim'"),
        ("[res_pjsip]\nendpoint=realtime\n", "names no family"),
        ("[res_pjsip]\nendpoint/cache=realtime,x\n", "is no cache"),
        ("[res_pjsip]\nendpoint=config,other.conf\n", "come from pjsip.conf"),
        ("[res_pjsip]\nendpoint=realtime,a\nendpoint=realtime,b\n", "in a family already"),
        ("[res_pjsip]\nendpoint/cache=memory_cache,maximum_object=1\n", "no option `maximum_object`"),
        (
            "[res_pjsip]\nendpoint/cache=memory_cache,object_lifetime_maximum=5,object_lifetime_stale=5\n",
            "nothing is ever served stale",
        ),
        (
            "[res_pjsip]\nendpoint/cache=memory_cache,full_backend_cache=yes,maximum_objects=100\n",
            "of a table with more than maximum_objects=100 rows not all are remembered",
        ),
        ("[general]\nupdate_or_create_on_update_miss=perhaps\n", "perhaps"),
        ("[general]\nupdate_or_create=yes\n", "no option `update_or_create`"),
        ("[res_stir_shaken]\ncertificate=realtime,x\n", "has no effect"),
    ] {
        let mut findings = Findings::new();
        let read = file("sorcery.conf", text, &mut findings).unwrap();
        Sorcery::read(&read, &mut findings);
        let said = messages(&findings);
        assert!(said.iter().any(|said| said.contains(told)), "{text}: {said:?}");
    }
    let mut findings = Findings::new();
    let files = Files {
        sorcery: file("sorcery.conf", "[res_pjsip]\nendpoint=realtime,ps_endpoints\n", &mut findings),
        ..Files::default()
    };
    Realtime::read(&files, &|_| DataSources::default(), &mut findings);
    let said = messages(&findings);
    assert!(said.iter().any(|said| said.contains("which extconfig.conf does not place")), "{said:?}");
}
