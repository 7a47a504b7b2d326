//! The table of commands: help, completion, JSON, the manual.

use std::path::Path;

use super::*;

#[test]
fn what_does_not_exist_is_named_and_wrong_arguments_tell_the_usage() {
    let mut desk = Desk::new("unknown");
    for (line, help) in [
        ("dundi show", "dundi show"),
        ("!ls", "!ls"),
        ("core show", "core show"),
        ("x", "x"),
        ("fax set debug on", "fax set"),
        ("nothing at all", "nothing at"),
        // Words that begin commands are no part of what is not known.
        ("core show nothing", "core show nothing"),
        ("core show nothing at all here", "core show nothing at"),
    ] {
        let told =
            format!("No such command '{line}' (type 'core show help {help}' for other possible commands)\n");
        assert_eq!(desk.run(line), (told, 1), "{line}");
    }
    for (line, told) in [
        ("core show application none", "Your application(s) is (are) not registered\n"),
        ("core show function none", "No function by that name registered.\n"),
        ("dialplan show none", "There is no existence of 'none' context\n"),
    ] {
        assert_eq!(desk.run(line), (format!("{told}Command '{line}' failed.\n"), 1), "{line}");
    }
    for (line, usage) in [
        ("core show channels all", "Usage: core show channels [concise|verbose|count]\n"),
        ("core show channel", "Usage: core show channel <channel>\n"),
        ("database put a b", "Usage: database put <family> <key> <value>\n"),
        (
            "channel originate SIM/1",
            "Usage: channel originate <dial> application <application> [<data...>]\n",
        ),
        ("pjsip set logger maybe", "Usage: pjsip set logger on|off\n"),
    ] {
        let (text, status) = desk.run(line);
        assert!(text.starts_with(usage), "{line}: {text}");
        assert_eq!(status, 1, "{line}");
    }
}

#[test]
fn help_lists_what_begins_like_it_and_tells_the_usage_of_one() {
    let mut desk = Desk::new("help");
    let all = desk.lines("core show help");
    assert_eq!(all.len(), rows().count());
    let database = desk.lines("core show help database");
    assert_eq!(database.len(), super::database::ROWS.len());
    assert!(desk.text("core show help core show uptime").starts_with("Usage: core show uptime [seconds]\n"));
    assert!(desk.text("help sip reload").starts_with("Usage: pjsip reload\n"));
    assert_eq!(desk.run("core show help nothing here"), ("No such command 'nothing here'.\n".into(), 1));
}

#[test]
fn completion_knows_words_and_names() {
    let mut desk = Desk::new("completion");
    desk.call("6001", "100");
    for (line, expected) in [
        ("core show chann", &["channel", "channels", "channeltype", "channeltypes"][..]),
        ("core show channel ", &["SIM/6001-00000000"]),
        ("CORE show channels ", &["concise", "count", "verbose"]),
        ("core show channels c", &["concise", "count"]),
        ("core show channels count ", &[]),
        ("pjsip show endpoint 600", &["6001", "6002"]),
        ("core show application Playb", &["Playback"]),
        ("core show function le", &["LEN"]),
        ("dialplan show ", &["default", "globals"]),
        ("channel originate SIM/1 ", &["application", "extension"]),
        ("core stop ", &["gracefully", "now", "when"]),
        ("nothing like it ", &[]),
        ("pjsip set logger o", &["off", "on"]),
    ] {
        assert_eq!(desk.cli.complete(line, None), expected, "{line:?}");
    }
    assert!(desk.cli.complete("", None).contains(&"core".to_owned()));
    assert!(desk.cli.complete("é", None).is_empty());
}

/// `a [b c] d` as `a`, `a[].b`, `a[].c`, `d`.
fn keys_of(text: &str) -> BTreeSet<String> {
    let (mut keys, mut lists, mut last) = (BTreeSet::new(), vec![String::new()], String::new());
    for word in text.split_whitespace() {
        if word.starts_with('[') {
            lists.push(format!("{last}[]."));
        }
        last = format!("{}{}", lists.last().unwrap(), word.trim_matches(['[', ']']));
        keys.insert(last.clone());
        let open = lists.len() - word.chars().filter(|symbol| *symbol == ']').count();
        lists.truncate(open);
    }
    keys
}

/// Whether the elements of all lists below have the keys that the row names, and no others.
fn assert_elements(
    line: &str,
    within: &str,
    object: &serde_json::Map<String, Value>,
    named: &BTreeSet<String>,
) {
    for (list, value) in object {
        let list = format!("{within}{list}[].");
        let wanted: BTreeSet<&str> = named.iter().filter_map(|key| key.strip_prefix(&list)).collect();
        // What lies deeper may be left to whoever looks.
        if wanted.is_empty() && !within.is_empty() {
            continue;
        }
        for element in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
            let has: BTreeSet<&str> = element.keys().map(String::as_str).collect();
            let wanted = wanted.iter().copied().filter(|key| !key.contains('[')).collect();
            assert_eq!(has, wanted, "{line}: {list}");
            assert_elements(line, &list, element, named);
        }
    }
}

/// A line that means something in the desk's world for each shape that shows.
fn example(shape: &str) -> String {
    let plain = shape.split('[').next().unwrap_or_default().trim();
    [
        ("<channel>", "SIM/6001-00000000"),
        ("<channel|all>", "all"),
        ("<conference>", "room"),
        ("bridge <profile>", "bridge default_bridge"),
        ("user <profile>", "user default_user"),
        ("<application>", "Dial"),
        ("<function>", "LEN"),
        ("<technology>", "PJSIP"),
        ("<event>", "Hangup"),
        ("<exten>", "6001"),
        ("<endpoint>", "6001"),
        ("<aor>", "6001"),
        ("<agent>", "1001"),
        ("<auth>", "6001"),
        ("<registration>", "provider"),
        ("<uri>", "sip:6001@192.0.2.7:5070"),
        ("<transport>", "transport-udp"),
        ("<family> <key>", "f k"),
        ("<key>", "k"),
        ("<action>", "Ping"),
        ("<number>", "3"),
        ("<codec>", "gsm"),
        ("<seconds>", "1"),
        ("<expression...>", "number >= 0"),
        ("<call_id>", "kept@example.com"),
        ("<iax-peer>", "site-b"),
    ]
    .iter()
    .fold(plain.to_owned(), |line, (name, value)| line.replace(name, value))
}

#[test]
fn every_show_answers_json_with_the_keys_its_row_names() {
    let mut desk = Desk::new("json");
    let iax = std::rc::Rc::new(std::cell::RefCell::new(crate::testing::Iax::default()));
    *desk.cli.site.iax_sight.borrow_mut() = Some(iax);
    desk.call("6001", "100");
    desk.call("6001", "102");
    desk.pass(2);
    let agent = ("1001".to_owned(), std::rc::Rc::new(call::AgentRules::default()));
    desk.cli.site.shard.core.borrow_mut().configure_agents([agent]);
    desk.text("database put f k v");
    desk.text("devstate change Custom:lamp BUSY");
    desk.text("pjsip set history on");
    for number in 1..=4 {
        desk.hear(&format!(
            "OPTIONS sip:100@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bK{number}\r\n\
             From: <sip:a@example.com>;tag=1\r\nTo: <sip:100@192.0.2.1>\r\nCall-ID: kept@example.com\r\n\
             CSeq: {number} OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
        ));
    }
    for row in rows().filter(|row| !row.keys.is_empty()) {
        let line = example(row.shape);
        let refused = [
            ("manager show user <user>", "There is no manager called <user>"),
            ("ari show user <user>", "User '<user>' not found"),
            ("ari show app <app>", "No such application '<app>'"),
            (
                "core show channel SIM/6001-00000000 ladder",
                "No channel of this call speaks SIP: SIM/6001-00000000",
            ),
            ("bridge show <bridge>", "Bridge '<bridge>' not found"),
            ("confbridge show menu <profile>", "No conference menu named '<profile>' found!"),
            ("voicemail show mailbox <mailbox>", "Could not find voicemail user <mailbox>"),
            ("pjsip show identify <identify>", "Unable to find object <identify>."),
            ("stir_shaken show tn 3", "TN '3' not found"),
            ("stir_shaken show profile <stir-profile>", "Profile '<stir-profile>' not found"),
            ("stir_shaken show eprofile <stir-profile>", "Profile '<stir-profile>' not found"),
            ("sorcery memory cache show <cache>", "There is no sorcery memory cache '<cache>'."),
            ("sorcery memory cache dump <cache>", "There is no sorcery memory cache '<cache>'."),
            ("realtime load <row-family> <column> <value>", "A database is asked; ask on the console."),
        ];
        if let Some((_, why)) = refused.iter().find(|(refused, _)| *refused == line) {
            let (text, status) = desk.ask(&line, true);
            assert_eq!((text, status), (format!("{{\"error\":\"{why}\"}}\n"), 1), "{line}");
            continue;
        }
        let json = desk.json(&line);
        let named = keys_of(row.keys);
        let top: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> =
            named.iter().map(String::as_str).filter(|key| !key.contains('[')).collect();
        assert_eq!(top, expected, "{line}");
        assert_elements(&line, "", json.as_object().unwrap(), &named);
    }
    for row in rows() {
        let shows = row.shape.starts_with("realtime load")
            || row.shape.split(' ').any(|word| ["show", "showkey", "list", "get", "dump"].contains(&word));
        assert_eq!(
            shows && row.shape != "core show help [<command...>]",
            !row.keys.is_empty(),
            "{}: what shows has JSON keys, what does not has none",
            row.shape
        );
    }
}

#[test]
fn no_two_rows_claim_the_same_shape() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        for shape in std::iter::once(&row.shape).chain(row.also) {
            assert!(seen.insert(*shape), "{shape} stands twice");
        }
        assert!(row.summary.ends_with('.'), "{}", row.shape);
    }
}

/// After a change of a row: `UPDATE_DOCS=1 cargo test -p control manual` writes the page anew.
#[test]
fn the_manual_of_commands_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = manual();
    for row in rows() {
        assert!(page.contains(&format!("### `{}`", row.shape)), "{}", row.shape);
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    if before == page {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let line = before.lines().zip(page.lines()).find(|(old, new)| old != new);
    panic!("docs/commands.md is behind the table, first at {line:?}; see the comment above this test");
}

/// What scripts and administrators type most, and what of it has nothing to show yet, with the reason.
#[test]
fn the_commands_that_scripts_use_most_exist() {
    let mut desk = Desk::new("most-used");
    desk.call("6001", "100");
    for (lines, why_not) in [
        (
            &[
                "core waitfullybooted",
                "core show channels",
                "core show channel SIM/6001-00000000",
                "core show version",
                "core show uptime",
                "core show hints",
                "core show translation",
                "core show codecs",
                "core show applications",
                "core show application Dial",
                "core show functions",
                "core show sysinfo",
                "core show settings",
                "core set verbose 3",
                "core set debug 1",
                "core reload",
                "reload",
                "core stop gracefully",
                "core restart gracefully",
                "core restart now",
                "channel originate SIM/6002 application Wait 1",
                "channel redirect SIM/6001-00000000 default,101,1",
                "channel request hangup SIM/6001-00000000",
                "dialplan show",
                "dialplan show default",
                "dialplan show globals",
                "dialplan set global NAME value",
                "dialplan reload",
                "database put f k v",
                "database get f k",
                "database show",
                "database showkey k",
                "database del f k",
                "database deltree f",
                "module show",
                "module load x",
                "module unload x",
                "module reload x",
                "manager show connected",
                "manager show users",
                "manager show commands",
                "confbridge list",
                "confbridge kick room all",
                "confbridge mute room all",
                "moh show classes",
                "logger reload",
                "logger rotate",
                "logger show channels",
                "rtp show settings",
                "rtp set debug on",
                "http show status",
                "cdr show status",
                "pjsip show endpoints",
                "pjsip show endpoint 6001",
                "pjsip show contacts",
                "pjsip show registrations",
                "pjsip show transports",
                "pjsip show aors",
                "pjsip show aor 6001",
                "pjsip show auths",
                "pjsip show identifies",
                "pjsip show history",
                "pjsip send notify check-sync endpoint 6001",
                "pjsip set logger on",
                "pjsip reload",
                "sip show peers",
                "sip set debug on",
            ][..],
            None,
        ),
        (&["iax2 show peers", "iax2 reload"], None),
        (&["queue show", "queue add member x to y", "queue pause member x"], None),
        (&["agent show all", "agent logoff 1001", "cel show status"], None),
        (&["voicemail reload", "voicemail show users", "voicemail show zones"], None),
        (&["parking show", "parking show default"], None),
        (&["ari show apps", "ari show users", "ari show status"], None),
        (&["odbc show", "sorcery memory cache show res_pjsip/endpoint"], None),
        (&["fax set debug on"], Some("fax is not built in")),
        (&["presencestate change CustomPresence:x away"], None),
        (&["dialplan save", "core show locks", "core show taskprocessors", "core show threads"], None),
        (&["manager show events", "indication show", "module refresh x", "group show channels"], None),
    ] {
        for line in lines {
            let (text, _) = desk.run(line);
            assert_eq!(
                text.starts_with("No such command"),
                why_not.is_some(),
                "{line} ({why_not:?}): {text}"
            );
            assert!(!text.starts_with("Usage: "), "{line}: {text}");
        }
    }
}
