//! What users of few rights reach by the manager, by ARI and by pages.

use super::peers::{Manager, escaped, managed, page, secret};
use e2e::{Phone, Server, Site, digest};
use std::time::{Duration, Instant};

const DIALPLAN: &str = "
[test]
exten => 600,1,Answer()
 same => n,Wait(60)
";

fn site(name: &str) -> Site {
    managed(Site::new(name)).phone("alice").dialplan(DIALPLAN)
}

/// Functions that take the name of a variable, or text, in the place of the sign.
const OUTER: [&str; 30] = [
    "CUT(@,~,1)",
    "STRREPLACE(@,zzz,y)",
    "REPLACE(@,z,y)",
    "SHIFT(@)",
    "POP(@)",
    "LISTFILTER(@,:,x)",
    "FILTER(A-Za-z/-,@)",
    "FIELDQTY(@,~)",
    "FIELDNUM(@,~,x)",
    "SORT(@)",
    "HASHKEYS(@)",
    "JSON_DECODE(@,x)",
    "EVAL(${@})",
    "QUOTE(${@})",
    "TOUPPER(${@})",
    "TOLOWER(${@})",
    "LEN(${@})",
    "IF(1?${@}:x)",
    "IMPORT(none,@)",
    "UNSHIFT(@)",
    "PUSH(@)",
    "PASSTHRU(@)",
    "BASE64_ENCODE(${@})",
    "URIENCODE(${@})",
    "STRBETWEEN(@,a,b)",
    "TRIM(@)",
    "LTRIM(@)",
    "RTRIM(@)",
    "CUT(CUT(@,~,1),~,1)",
    "@",
];

/// Functions that take the name of a variable, with a call of a function in its place: what they would tell.
fn readers(folder: &str) -> Vec<(String, &'static str)> {
    let file = format!("FILE({folder}/secret-file)");
    let mut rows: Vec<(String, &str)> = Vec::new();
    let shell = format!("SHELL(cat {folder}/secret-file)");
    for inner in [file.as_str(), "AST_CONFIG(manager.conf,admin,secret)", "ENV(HOME)", &shell] {
        let told = match inner.split('(').next().unwrap_or_default() {
            "AST_CONFIG" => "admin-secret",
            "ENV" => "strowger-",
            _ => "TOP-SECRET",
        };
        for outer in OUTER {
            rows.push((outer.replace('@', inner), told));
        }
    }
    rows
}

/// Functions that write, in the place of what is read.
const WRITERS: [&str; 11] = [
    "SET(DB(made/by)=1)",
    "INC(DB(made/by))",
    "DEC(DB(made/by))",
    "CUT(DB_DELETE(keep/it),x,1)",
    "DB_DELETE(keep/it)",
    "SHIFT(DB(keep/it))",
    "POP(DB(keep/it))",
    "EVAL(${SET(DB(made/by)=1)})",
    "IF(1?${SET(DB(made/by)=1)}:x)",
    "CUT(SET(DB(made/by)=1),x,1)",
    "LEN(${INC(DB(made/by))})",
];

#[test]
fn a_function_inside_a_function_reads_and_writes_no_further_than_its_user_by_every_door() {
    let server = Server::start(site("case-functions"));
    let place = server.site.place.write("secret-file", "TOP-SECRET");
    let folder = place.parent().expect("a folder").display().to_string();
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    alice.must_call("600");
    let channel = wait_channel(&server);
    server.cli("database put keep secret TOP-SECRET");
    server.cli("database put keep it 1,2,3");
    let mut managers: Vec<(&str, Manager)> =
        ["reporting", "call", "command"].map(|user| (user, Manager::login(&server, user))).into();
    // Many questions at once: each of them takes a turn of the engine.
    let ask = |managers: &mut Vec<(&str, Manager)>, texts: &[String]| -> Vec<(String, String, String)> {
        let mut said = Vec::new();
        for (user, manager) in managers.iter_mut() {
            let commands: Vec<String> =
                texts.iter().map(|text| format!("dialplan eval function {text}")).collect();
            let mut actions = Vec::new();
            for (text, command) in texts.iter().zip(&commands) {
                actions.push(("Getvar", vec![("Variable", text.as_str())]));
                actions.push(("Getvar", vec![("Channel", channel.as_str()), ("Variable", text)]));
                actions.push(("Status", vec![("Channel", channel.as_str()), ("Variables", text)]));
                actions.push(("Command", vec![("Command", command.as_str())]));
            }
            for (number, answer) in manager.act_all(&actions).into_iter().enumerate() {
                let text = texts[number / 4].clone();
                said.push((format!("{} of {user}", actions[number].0), text, answer));
            }
        }
        said
    };
    let key = escaped(&format!("look:{}", secret("look")));
    let look = |text: &str| -> Vec<(String, String, String)> {
        let paths = ["asterisk".to_owned(), format!("channels/{channel}")];
        let asked = paths.iter().map(|path| {
            let line = format!("GET /ari/{path}/variable?api_key={key}&variable={}", escaped(text));
            (format!("ARI {path}"), text.to_owned(), page(&server, &line, "").2)
        });
        asked.collect()
    };
    let rows = readers(&folder);
    let texts: Vec<String> = rows.iter().map(|(text, _)| text.clone()).collect();
    let mut said = ask(&mut managers, &texts);
    // One of each function, and of each thing that is not to be told.
    for (number, (text, _)) in rows.iter().enumerate() {
        if number < OUTER.len() || number % OUTER.len() == 0 {
            said.extend(look(text));
        }
    }
    for (door, text, said) in said {
        let (_, told) = rows.iter().find(|(row, _)| *row == text).expect("its row");
        // The question is repeated.
        let said = said.replace(&text, "").to_ascii_lowercase();
        assert!(!said.contains(&told.to_ascii_lowercase()), "{door}: {text}:\n{said}");
    }
    let kept = || server.cli("database show");
    for text in WRITERS {
        ask(&mut managers, &[text.to_owned()]);
        look(text);
        let kept = kept();
        assert!(kept.contains("1,2,3") && !kept.contains("/made/"), "{text}:\n{kept}");
    }
    // Who originates calls may set variables; who only reads may not.
    managers[0].1.act("Getvar", &[("Variable", "SET(GLOBAL(MADE)=1)")]);
    assert!(!server.cli("dialplan show globals").contains("MADE"), "who reads has set a variable");
    // Data of an application that a manager without the class `system` has run, and variables that it sets.
    for text in
        [format!("${{CUT(FILE({folder}/secret-file),~,1)}}"), format!("${{SHELL(touch {folder}/made)}}")]
    {
        for fields in [
            [("Channel", "Local/600@test/n"), ("Application", "UserEvent"), ("Data", text.as_str())],
            [("Channel", "Local/600@test/n"), ("Application", "Set"), ("Data", text.as_str())],
        ] {
            managers[1].1.act("Originate", &fields);
        }
        managers[1].1.act("Setvar", &[("Channel", &channel), ("Variable", "X"), ("Value", &text)]);
        let value = managers[1].1.act("Getvar", &[("Channel", &channel), ("Variable", "X")]);
        assert!(!value.contains("Value: TOP-SECRET"), "{value}");
    }
    assert!(!server.site.place.join("made").exists());
}

fn wait_channel(server: &Server) -> String {
    e2e::wait::until("a channel", || {
        let said = server.cli("core show channels concise");
        said.lines()
            .find(|line| line.starts_with("PJSIP/alice"))
            .and_then(|line| Some(line.split('!').next()?.to_owned()))
    })
}

/// A page of another site, whose browser sends the digest along, reaches no door of the manager.
#[test]
fn a_page_of_another_site_writes_nothing_by_the_doors_of_the_manager() {
    let server = Server::start(site("case-origin"));
    let own = format!("Origin: http://{}:8088\r\nSec-Fetch-Site: same-origin\r\n", server.site.sip.ip());
    for (number, (case, headers, obeyed)) in [
        ("a page of another site", "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n", false),
        ("an image of another site", "Sec-Fetch-Site: cross-site\r\n", false),
        ("a neighbour's page", "Sec-Fetch-Site: same-site\r\n", false),
        ("from nowhere", "Origin: null\r\n", false),
        ("a name that begins like ours", "Origin: http://127.0.0.1.evil.example\r\n", false),
        ("a page of ours", own.as_str(), true),
        ("a program", "", true),
    ]
    .into_iter()
    .enumerate()
    {
        for door in ["arawman", "amxml", "amanager"] {
            let path = format!("/{door}?action=DBPut&family=page&key={door}{number}&val=1");
            let (status, head, _) = page(&server, &format!("GET {path}"), "");
            assert_eq!(status, 401, "{head}");
            let challenge =
                head.lines().find_map(|line| line.strip_prefix("WWW-Authenticate: ")).expect("a challenge");
            let proof = digest::answer(challenge, "admin", &secret("admin"), "GET", &path);
            page(&server, &format!("GET {path}"), &format!("Authorization: {proof}\r\n{headers}"));
            let written = server.database_now("page", &format!("{door}{number}")).is_some();
            assert_eq!(written, obeyed, "{case}, {door}");
        }
    }
}

/// What was acknowledged is there after the process was killed, whoever asked for it.
#[test]
fn a_value_of_the_database_is_on_the_disk_when_it_is_acknowledged() {
    let mut server = Server::start(site("case-acknowledged"));
    for round in 0..3 {
        let mut manager = Manager::login(&server, "admin");
        for key in ["gone", "tree/a", "tree/b", "told"] {
            manager.act("DBPut", &[("Family", "w"), ("Key", key), ("Val", "1")]);
        }
        for number in 0..10 {
            let (key, value) = (format!("k{number}"), format!("{round}v{number}"));
            let said = manager.act("DBPut", &[("Family", "w"), ("Key", &key), ("Val", &value)]);
            assert!(said.contains("Success"), "{said}");
        }
        // Alternately by the manager and by the console; the last is what the kill might take.
        match round {
            0 => assert!(manager.act("DBDel", &[("Family", "w"), ("Key", "gone")]).contains("Success")),
            1 => assert!(manager.act("DBDelTree", &[("Family", "w/tree")]).contains("Success")),
            _ => drop(server.cli("database put w told 2")),
        }
        server.kill_and_restart();
        let kept = server.cli("database show w");
        let value = |key: &str| server.database_now("w", key);
        for number in 0..10 {
            assert_eq!(value(&format!("k{number}")), Some(format!("{round}v{number}")), "{kept}");
        }
        match round {
            0 => assert_eq!(value("gone"), None, "{kept}"),
            1 => assert_eq!(value("tree/a"), None, "{kept}"),
            _ => assert_eq!(value("told").as_deref(), Some("2"), "{kept}"),
        }
    }
}

/// Longest time a phone may wait for an answer: a machine may be busy, a search that has no bound takes many seconds.
const ANSWER: Duration = Duration::from_secs(2);

/// A pattern that takes long keeps nobody waiting, whoever brings it.
#[test]
fn patterns_that_take_long_keep_no_phone_waiting_by_any_door() {
    let server = Server::start(site("case-patterns"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    let (pattern, text) = (format!("{}c", "(a|b|ab)*".repeat(200)), "ab".repeat(1000));
    let regex = format!("REGEX(\"{pattern}\" {text})");
    let sum = |operator: &str| format!("x=${{IF($[\"{text}\" {operator} \"{pattern}\"]?1:0)}}");
    let mut reporting = Manager::login(&server, "reporting");
    let mut admin = Manager::login(&server, "admin");
    let (equals, colon) = (sum("=~"), sum(":"));
    let originate =
        |data| [("Channel", "Local/600@test/n"), ("Application", "Set"), ("Data", data), ("Async", "true")];
    let filter = format!("!{pattern}");
    let like = format!("pjsip list endpoints like {pattern}");
    type Row<'a> = (&'a str, &'a mut Manager, &'a str, Vec<(&'a str, &'a str)>);
    let rows: [Row<'_>; 5] = [
        ("REGEX by Getvar", &mut reporting, "Getvar", vec![("Variable", &regex)]),
        ("=~ by Originate", &mut admin, "Originate", originate(&equals).into()),
        (": by Originate", &mut Manager::login(&server, "admin"), "Originate", originate(&colon).into()),
        (
            "a filter of events",
            &mut Manager::login(&server, "admin"),
            "Filter",
            vec![("Operation", "Add"), ("Filter", &filter)],
        ),
        ("like by Command", &mut Manager::login(&server, "command"), "Command", vec![("Command", &like)]),
    ];
    for (case, manager, action, fields) in rows {
        for _ in 0..5 {
            manager.ask(action, &fields);
        }
        for _ in 0..5 {
            let asked = Instant::now();
            alice.ask("OPTIONS", "600");
            assert!(asked.elapsed() < ANSWER, "{case}: {:?}", asked.elapsed());
        }
    }
    let key = format!("look:{}", secret("look"));
    let line = format!("GET /ari/asterisk/variable?api_key={}&variable={}", escaped(&key), escaped(&regex));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| drop(page(&server, &line, ""))));
        for _ in 0..5 {
            let asked = Instant::now();
            alice.ask("OPTIONS", "600");
            assert!(asked.elapsed() < ANSWER, "ARI: {:?}", asked.elapsed());
        }
    });
}
