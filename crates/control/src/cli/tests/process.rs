//! Commands about the process, its levels and its settings.

use std::cell::RefCell;
use std::net::Ipv4Addr;

use super::*;
use crate::site::{Reloaded, When, Wish};

#[test]
fn the_process_says_what_tools_wait_for() {
    let mut desk = Desk::new("process");
    assert!(desk.text("core waitfullybooted").ends_with("Asterisk has fully booted.\n"));
    let version = desk.text("core show version");
    let meant = format!("Asterisk {} (Strowger ", apps::SPEAKS);
    assert!(version.starts_with(&meant), "{version}: another version than VERSION() reads");
    desk.pass(90_061);
    assert_eq!(
        desk.text("core show uptime"),
        "System uptime: 1 day, 1 hour, 1 minute, 1 second\nLast reload: 1 day, 1 hour, 1 minute, 1 second\n"
    );
    assert_eq!(desk.text("core show uptime seconds"), "System uptime: 90061\nLast reload: 90061\n");
    assert_eq!(desk.text("core show calls"), "0 active calls\n0 calls processed\n");
}

#[test]
fn stopping_and_rotating_are_wishes_to_the_engine() {
    let mut desk = Desk::new("wishes");
    for (line, wish) in [
        ("core stop now", Wish::Stop { when: When::Now, restart: false }),
        ("core stop gracefully", Wish::Stop { when: When::Gracefully, restart: false }),
        ("core stop when convenient", Wish::Stop { when: When::Convenient, restart: false }),
        ("core restart now", Wish::Stop { when: When::Now, restart: true }),
        ("restart gracefully", Wish::Stop { when: When::Gracefully, restart: true }),
        ("core restart when convenient", Wish::Stop { when: When::Convenient, restart: true }),
        ("core abort shutdown", Wish::AbortStop),
        ("logger rotate", Wish::RotateLogs),
        ("core reload", Wish::Reload { module: String::new() }),
        ("module reload res_pjsip.so", Wish::Reload { module: "res_pjsip".into() }),
        ("reload", Wish::Reload { module: String::new() }),
        ("sip reload", Wish::Reload { module: "res_pjsip".into() }),
    ] {
        desk.text(line);
        assert_eq!(*desk.cli.site.wishes.borrow(), [wish], "{line}");
        desk.cli.site.wishes.borrow_mut().clear();
    }
    assert_eq!(desk.run("module reload chan_nothing.so"), ("No such module 'chan_nothing.so'\n".into(), 1));
    assert_eq!(*desk.cli.site.wishes.borrow(), []);
}

#[test]
fn a_reload_tells_how_it_came_out_and_its_status_says_so_too() {
    let mut desk = Desk::new("reload");
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = asked.clone();
    let reload = move |module: &str| {
        seen.borrow_mut().push(module.to_owned());
        let taken = module != "res_pjsip";
        Reloaded { taken, said: if taken { vec![] } else { vec!["pjsip.conf:3: no".to_owned()] } }
    };
    *desk.cli.site.reload.borrow_mut() = Some(Box::new(reload));
    assert_eq!(desk.run("dialplan reload"), ("Dialplan reloaded.\n".into(), 0));
    assert_eq!(
        desk.run("pjsip reload"),
        (
            "pjsip.conf:3: no\nThe configuration was not taken; what ran before goes on.\n\
             Command 'pjsip reload' failed.\n"
                .into(),
            1
        )
    );
    assert_eq!(desk.run("core reload"), (String::new(), 0));
    assert_eq!(*asked.borrow(), ["pbx_config", "res_pjsip", ""]);
}

#[test]
fn levels_belong_to_the_console_that_sets_them() {
    let mut desk = Desk::new("levels");
    desk.view.attached = true;
    for (line, said) in [
        ("core set verbose 3", "Console verbose was OFF and is now 3.\n"),
        ("core set verbose 3", "Console verbose is still 3.\n"),
        ("core set verbose atleast 2", "Console verbose is still 3.\n"),
        ("core set verbose atleast 5", "Console verbose was 3 and is now 5.\n"),
        ("core set verbose off", "Console verbose was 5 and is now OFF.\n"),
        ("core set debug 2", "Core debug was OFF and is now 2.\n"),
    ] {
        assert_eq!(desk.text(line), said, "{line}");
    }
    assert_eq!((desk.view.verbose, desk.view.debug), (0, 2));
    assert_eq!(desk.run("core set verbose much").1, 1);
    assert_eq!(desk.text("logger mute"), "Logging to this console is disabled.\n");
    assert!(desk.view.muted);
    for (line, said, hidden) in [
        ("logger set level debug off", "Logger status for 'DEBUG' has been set to 'off'.\n", true),
        ("logger set level DEBUG on", "Logger status for 'DEBUG' has been set to 'on'.\n", false),
        ("logger set level loud on", "loud is no level: logger show levels lists them\n", false),
    ] {
        assert_eq!(desk.run(line).0, said);
        assert_eq!(desk.view.hidden.contains(store::config::logger::LogLevel::Debug), hidden, "{line}");
    }
    assert!(desk.text("logger show levels").contains("WARNING"));
    assert_eq!(desk.json("logger show levels")["levels"][0]["name"], "DEBUG");
    desk.view = View::default();
    assert_eq!(desk.text("core set verbose 4"), "Console verbose was 1 and is now 4.\n");
    assert_eq!(desk.text("core set verbose 4"), "Console verbose is still 4.\n");
    assert_eq!(desk.view, View::default());
}

#[test]
fn manager_clients_are_listed_with_what_they_may() {
    let mut desk = Desk::new("managers");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000));
    desk.cli.set_connected([(3, "admin", address)].into_iter());
    desk.pass(7);
    desk.cli.set_connected([(3, "admin", address), (4, "board", address)].into_iter());
    let json = desk.json("manager show connected");
    assert_eq!(
        (json["clients"][0]["seconds"].as_u64(), json["clients"][1]["seconds"].as_u64()),
        (Some(7), Some(0))
    );
    let row = desk.lines("manager show connected")[1].clone();
    let row: Vec<&str> = row.split_whitespace().collect();
    // User, address, start, seconds, session, requests over HTTP, and permissions as numbers.
    assert_eq!((row[0], row[1], &row[3..6], row.len()), ("admin", "127.0.0.1", &["7", "3", "0"][..], 8));
    assert!(desk.text("manager show connected").ends_with("\n2 users connected.\n"));
    desk.cli.set_connected(std::iter::empty());
    assert_eq!(desk.json("manager show connected")["clients"], serde_json::json!([]));
}

#[test]
fn what_was_written_is_shown_and_secrets_are_not() {
    let mut desk = Desk::new("written");
    let files = [
        (
            "pjsip.conf",
            "[trunk]\ntype=endpoint\nallow=ulaw\n[trunk-in]\ntype=identify\nendpoint=trunk\n\
             match=192.0.2.0/24,peer.example\nmatch_header=X-Trunk: /a+/\n",
        ),
        ("acl.conf", "[office]\ndeny=0.0.0.0/0\npermit=192.0.2.0/24\n"),
        (
            "manager.conf",
            "[general]\nenabled=no\n[board]\nsecret=not to be told ever\nread=call,cdr\nwrite=\n",
        ),
        ("logger.conf", "[logfiles]\nmessages = notice,warning,error\n"),
        ("extensions.conf", ""),
    ];
    for (name, text) in files {
        std::fs::write(desk.folder.join(name), text).unwrap();
    }
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
    *desk.cli.site.snapshot.borrow_mut() = snapshot;
    assert_eq!(
        desk.lines("pjsip show identifies")[5..9],
        [
            " Identify:  trunk-in/trunk",
            "      Match:  192.0.2.0/24",
            "      Match:  peer.example",
            "      Match:  X-Trunk: /a+/",
        ]
    );
    assert_eq!(desk.lines("pjsip show identify trunk-in"), desk.lines("pjsip show identifies"));
    assert_eq!(
        desk.run("pjsip show identify other"),
        ("Unable to find object other.\n\nCommand 'pjsip show identify other' failed.\n".into(), 1)
    );
    assert_eq!(desk.lines("acl show office")[2..], ["  0: deny  - 0.0.0.0/0", "  1: allow - 192.0.2.0/24"]);
    assert_eq!(desk.lines("acl show"), ["acl", "---", "office"]);
    assert_eq!(desk.run("acl show home"), ("Could not find the named ACL 'home'\n".into(), 1));
    assert!(desk.text("manager show users").ends_with("\n1 manager users configured.\n"));
    let json = desk.json("manager show user board");
    assert_eq!((json["read"].as_str(), json["write"].as_str()), (Some("call,cdr"), Some("")));
    for line in ["manager show user board", "manager show users", "core show settings"] {
        assert!(!desk.text(line).contains("not to be told"), "{line}");
        assert!(!desk.json(line).to_string().contains("not to be told"), "{line}");
    }
    let logger = desk.cli.site.snapshot.borrow().logger.clone();
    desk.cli.site.log.configure(logger);
    let log = desk.lines("logger show channels");
    assert!(
        log.iter().any(|line| line.contains("/messages") && line.ends_with(" - NOTICE WARNING ERROR")),
        "{log:?}"
    );
    let trouble = |desk: &mut Desk| {
        let log = desk.lines("logger show channels");
        log.into_iter().find(|line| line.contains("/trouble")).map(|line| line.trim_end().to_owned())
    };
    assert_eq!(trouble(&mut desk), None);
    assert_eq!(desk.text("logger add channel trouble [json]warning, error"), "Logging to trouble\n");
    let added = trouble(&mut desk).unwrap_or_default();
    assert!(added.contains(" json ") && added.ends_with(" - WARNING ERROR"), "{added}");
    for (line, why) in [
        ("logger add channel ../x error", "'../x' is no name of a file in astlogdir\n"),
        ("logger remove channel messages", "messages was not added by logger add channel\n"),
    ] {
        assert_eq!(desk.run(line), (why.to_owned(), 1), "{line}");
    }
    assert_eq!(desk.run("logger add channel x loud").1, 1);
    assert_eq!(desk.text("logger remove channel trouble"), "Removed trouble\n");
    assert_eq!(trouble(&mut desk), None);
}

#[test]
fn bans_are_listed_and_taken_back() {
    let mut desk = Desk::new("bans");
    assert_eq!(desk.json("core show bans"), serde_json::json!({ "bans": [] }));
    {
        let mut core = desk.world.shard.core.borrow_mut();
        core.bans.configure(call::BanRules {
            per_user: 2,
            per_address: 3,
            span: core::time::Duration::from_secs(60),
            first: core::time::Duration::from_secs(600),
            longest: core::time::Duration::from_secs(600),
            allowed: Vec::new(),
        });
        for user in ["6001", "6001", "6002"] {
            core.password_refused("PJSIP", "192.0.2.1".parse().unwrap(), user, || false);
        }
    }
    assert_eq!(
        desk.json("core show bans"),
        serde_json::json!({ "bans": [
            { "address": "192.0.2.1", "user": null, "seconds_left": 600, "count": 1 },
            { "address": "192.0.2.1", "user": "6001", "seconds_left": 600, "count": 1 },
        ] })
    );
    let lines = desk.lines("core show bans");
    assert!(lines[1].starts_with("192.0.2.1 ") && lines[1].contains(" (all) "), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "2 bans");
    for (line, expected) in [
        ("core unban 192.0.2.2", ("There is no such ban\n", 1)),
        ("core unban 192.0.2.1 6001", ("1 ban lifted\n", 0)),
        ("core unban all", ("1 ban lifted\n", 0)),
        ("core unban all", ("There is no such ban\n", 1)),
    ] {
        assert_eq!(desk.run(line), (expected.0.to_owned(), expected.1), "{line}");
    }
    assert!(desk.run("core unban nowhere").0.starts_with("Usage: core unban <address> [<user>]\n"));
    let log = desk.world.log(call::Level::Security);
    assert_eq!(
        log,
        [
            "user '6001' at 192.0.2.1 is banned for 600 s after too many wrong passwords; `core unban 192.0.2.1` lifts it",
            "192.0.2.1 is banned for 600 s after too many wrong passwords; `core unban 192.0.2.1` lifts it",
        ]
    );
}

#[test]
fn commands_have_the_names_that_cli_aliases_conf_gives_them() {
    let mut desk = Desk::new("aliases");
    let known = [
        ("up", "core show uptime"),
        ("tell me", "core show"),
        ("core show uptime", "core show version"),
        ("loop", "loop"),
        ("twice", "up"),
    ];
    let mut snapshot = (**desk.cli.site.snapshot.borrow()).clone();
    snapshot.aliases.known =
        known.iter().map(|(alias, command)| ((*alias).to_owned(), (*command).to_owned())).collect();
    *desk.cli.site.snapshot.borrow_mut() = snapshot.into();
    let uptime = desk.text("core show uptime");
    assert!(uptime.starts_with("System uptime"), "a command keeps its name: {uptime}");
    assert_eq!(desk.text("UP"), uptime);
    assert_eq!(desk.text(" tell  me uptime"), uptime);
    for (line, answer) in [
        ("loop", "No such command 'loop'"),
        ("twice", "No such command 'up'"),
        ("upp", "No such command 'upp'"),
        ("tell", "No such command 'tell'"),
    ] {
        let (text, status) = desk.run(line);
        assert!(text.starts_with(answer) && status == 1, "{line}: {text}");
    }
    for (line, word) in [("tel", "tell"), ("tell m", "me"), ("tell me upt", "uptime"), ("core sh", "show")] {
        assert!(desk.cli.complete(line, None).iter().any(|known| known == word), "{line}");
    }
}

#[test]
fn an_application_is_of_the_module_that_takes_it_away() {
    use store::config::modules::{Capability, known};
    const CORE: &str = "pbx_builtins";
    // What it did is done here, and it has gone from the field.
    const OLDER: &str = "chan_sip";
    let rows = apps::table::applications();
    let provided: Vec<(&str, &str)> = known()
        .flat_map(|(module, what)| what.iter().map(move |what| (module, *what)))
        .filter_map(|(module, what)| match what {
            Capability::Application(name) => Some((name, module)),
            _ => None,
        })
        .collect();
    for row in rows.iter().filter(|row| row.module != CORE && row.module != OLDER) {
        assert!(provided.contains(&(row.name, row.module)), "{} is of {}", row.name, row.module);
    }
    for (name, module) in provided {
        let row = rows.iter().find(|row| row.name == name);
        assert_eq!(row.map(|row| row.module), Some(module), "{name}");
    }
}

#[test]
fn listeners_that_are_off_are_not_shown_as_if_they_were_on() {
    let mut desk = Desk::new("down");
    std::fs::write(desk.folder.join("http.conf"), "[general]\nenabled=yes\ntlsenable=yes\n").unwrap();
    for file in ["asterisk.conf", "pjsip.conf", "extensions.conf"] {
        std::fs::write(desk.folder.join(file), "").unwrap();
    }
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
    *desk.cli.site.snapshot.borrow_mut() = snapshot;
    let (plain, secure) = ("Server Enabled and Bound to 127.0.0.1:8088", "HTTPS Server Enabled and Bound to");
    for (name, http, https) in [("both", false, false), ("HTTP", true, false), ("HTTPS", false, true)] {
        *desk.cli.site.down.borrow_mut() = crate::site::Down { http, https, ..Default::default() };
        let said = desk.text("http show status");
        assert_eq!((said.contains(plain), said.contains(secure)), (!http, !https), "{name}: {said}");
        assert_eq!(said.contains("Server Disabled"), http, "{name}: {said}");
    }
    desk.cli.site.down.borrow_mut().transports.insert("transport-udp".into());
    assert_eq!(desk.text("pjsip show transports"), "No objects found.\n\n");
    assert_eq!(desk.run("pjsip show transport transport-udp").1, 1);
}

#[test]
fn a_single_command_that_asks_for_the_end_waits_until_it_is_called_off() {
    let mut desk = Desk::new("end");
    let ask = |desk: &mut Desk, session: u64, line: &str, may_wait: bool| {
        let call = Call {
            session,
            who: None,
            line,
            json: false,
            columns: 0,
            may_wait,
            may_reach_outside: true,
            rights: dialplan::Rights::ALL,
            view: &mut desk.view,
        };
        match desk.cli.run(call) {
            Answer::Done { text, status, .. } => (text, status),
            other => panic!("{other:?}"),
        }
    };
    let waiting = "Waiting for inactivity to perform ";
    let again = "Ignoring asterisk shutdown request, already in progress.\n";
    for (line, said, then, repeated) in [
        ("core stop gracefully", String::new(), When::Gracefully, "core restart when convenient"),
        (
            "core stop when convenient",
            format!("{waiting}halt\n"),
            When::Convenient,
            "core stop when convenient",
        ),
        (
            "core restart when convenient",
            format!("{waiting}restart\n"),
            When::Convenient,
            "core stop when convenient",
        ),
        ("core restart gracefully", String::new(), When::Gracefully, "core stop gracefully"),
        ("core stop now", String::new(), When::Now, "core stop gracefully"),
    ] {
        assert_eq!(ask(&mut desk, 7, line, true), (said, 0), "{line}");
        assert_eq!(desk.cli.released(), Vec::<u64>::new(), "{line}: nobody has looked at it");
        desk.cli.site.wishes.borrow_mut().clear();
        desk.cli.site.stopping.set(Some(then));
        assert_eq!(ask(&mut desk, 8, repeated, true), (again.to_owned(), 1), "{line}");
        assert_eq!(desk.cli.released(), Vec::<u64>::new(), "{line}: it goes on");
        desk.cli.site.stopping.set(None);
        assert_eq!(desk.cli.released(), [7], "{line}: it is called off");
        assert_eq!(desk.cli.released(), Vec::<u64>::new(), "{line}: once");
    }
    ask(&mut desk, 9, "core stop gracefully", false);
    desk.cli.site.wishes.borrow_mut().clear();
    assert_eq!(desk.cli.released(), Vec::<u64>::new(), "a manager's command is answered at once");
}
