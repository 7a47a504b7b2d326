//! Commands about files of the configuration, and who may run which.

use store::config::permissions::{Permissions, Permitted, Rule, Subject};

use super::*;
use crate::socket::Who;

#[test]
fn help_for_the_configuration_goes_from_modules_to_one_option() {
    let mut desk = Desk::new("config-help");
    let all = desk.lines("config show help");
    assert_eq!(all[0], "The following modules have configuration information:");
    assert!(all.contains(&"\tres_pjsip                 pjsip.conf".to_owned()), "{all:#?}");
    for (line, expected) in [
        ("config show help res_hep", "res_hep: hep.conf\n\tgeneral                   6 options\n"),
        ("config show help res_hep.so", "res_hep: hep.conf\n"),
        (
            "config show help hep.conf general",
            "\tuuid_type = [call-id, channel] (Default: call-id)\n\t\tWhat ties",
        ),
        (
            "config show help res_pjsip AOR Max_Contacts",
            "[aor] in pjsip.conf, of res_pjsip\n\nmax_contacts = [",
        ),
        ("config show help http general session_keep_alive", "No meaning here: each answer"),
        ("config show help res_pjsip auth oauth_secret", "Not supported yet: tokens"),
    ] {
        let text = desk.text(line);
        assert!(text.contains(expected), "{line}: {text}");
    }
    for (line, what) in [
        ("config show help nothing", "nothing"),
        ("config show help res_hep user", "res_hep user"),
        ("config show help res_hep general nothing", "res_hep general nothing"),
    ] {
        assert_eq!(desk.run(line), (format!("There is no help for '{what}'.\n"), 1), "{line}");
    }
    let json = desk.json("config show help res_hep general capture_id");
    let option = &json["modules"][0]["types"][0]["options"][0];
    assert_eq!((&option["name"], &option["default"]), (&"capture_id".into(), &"0".into()));
    assert!(desk.cli.complete("config show help res_pj", None).contains(&"res_pjsip".to_owned()));
}

#[test]
fn files_that_were_read_are_listed_with_their_modules() {
    let mut desk = Desk::new("config-list");
    // The embedded configuration has no files.
    assert_eq!(desk.text("config list"), "");
    let folder = desk.folder.to_path_buf();
    for file in ["asterisk.conf", "pjsip.conf", "extensions.conf", "queues.conf"] {
        std::fs::write(folder.join(file), "").unwrap();
    }
    let (snapshot, _) = Snapshot::load(&Where::Dir(folder.clone())).unwrap();
    *desk.cli.site.snapshot.borrow_mut() = snapshot;
    let place = folder.display();
    let lines = desk.lines("config list");
    for (module, file) in
        [("app_queue", "queues.conf"), ("core", "asterisk.conf"), ("res_pjsip", "pjsip.conf")]
    {
        assert!(lines.contains(&format!("{module:<23} {place}/{file}")), "{file}: {lines:#?}");
    }
    assert!(
        !lines.iter().any(|line| line.contains("sip.conf") && line.starts_with("chan_sip")),
        "{lines:#?}"
    );
}

#[test]
fn who_comes_to_the_socket_runs_what_cli_permissions_conf_lets_them() {
    let mut desk = Desk::new("permissions");
    let rule = |permit, command: &str| Rule { permit, command: command.to_owned() };
    let section = |name: &str, subject, rules| Permitted { name: name.to_owned(), subject, rules };
    let mut snapshot = (**desk.cli.site.snapshot.borrow()).clone();
    snapshot.aliases.known = vec![("halt".to_owned(), "core stop now".to_owned())];
    snapshot.permissions = Permissions {
        default: false,
        sections: vec![
            section("ada", Subject::User(1001), vec![rule(true, "all"), rule(false, "core stop")]),
            section("@adm", Subject::Group(4), vec![rule(true, "core show"), rule(false, "pjsip reload")]),
        ],
    };
    *desk.cli.site.snapshot.borrow_mut() = snapshot.into();
    let (ada, adm, eve) = (Who { uid: 1001, gid: 100 }, Who { uid: 7, gid: 4 }, Who { uid: 666, gid: 666 });
    for (name, who, line, may) in [
        ("all", Some(ada), "core show uptime", true),
        ("but one", Some(ada), "core stop now", false),
        ("however it is spelt", Some(ada), "  CORE   \"stop\" now", false),
        ("under another name", Some(ada), "halt", false),
        ("a group", Some(adm), "core show version", true),
        ("not named", Some(adm), "database show", false),
        ("in the words of chan_sip", Some(adm), "sip reload", false),
        ("nobody", Some(eve), "core show version", false),
        ("a manager client", None, "core show version", true),
    ] {
        desk.who = who;
        let (text, status) = desk.run(line);
        assert_eq!(text.starts_with("You don't have permissions to run '"), !may, "{name}: {text}");
        assert_eq!(status, u8::from(!may), "{name}: {text}");
    }
    for (name, who, line, has, has_not) in [
        ("all but one", ada, "core show help", "core show uptime ", "core stop now"),
        ("only some", adm, "core show help", "core show uptime ", "database show"),
        (
            "one that is denied",
            ada,
            "core show help core stop now",
            "No such command 'core stop now'",
            "Usage",
        ),
        ("one that is not", ada, "core show help core show uptime", "Usage: core show uptime", "No such"),
        ("nothing", eve, "core show help", "You don't have permissions", "core show uptime "),
        ("a line that begins like one", adm, "core show uptime a b", "Usage: core show uptime", "No such"),
        ("a line that begins like one that is denied", ada, "core stop now a", "No such command", "Usage"),
        ("a line that begins like one not named", adm, "database put a", "No such command", "Usage"),
    ] {
        desk.who = Some(who);
        let (text, _) = desk.run(line);
        assert!(text.contains(has) && !text.contains(has_not), "{name}: {text}");
    }
    for (line, word, offered) in
        [("core sto", "stop", false), ("database sh", "show", true), ("core show ver", "version", true)]
    {
        assert_eq!(desk.cli.complete(line, Some(ada)).contains(&word.to_owned()), offered, "{line}");
    }
    desk.who = None;
    assert_eq!(
        desk.lines("cli show permissions"),
        [
            "Default permission: deny",
            "",
            "User: ada [uid=1001]",
            "Permissions:",
            "\tpermit -> all",
            "\tdeny -> core stop",
            "",
            "Group: adm [gid=4]",
            "Permissions:",
            "\tpermit -> core show",
            "\tdeny -> pjsip reload",
        ]
    );
    for (line, said) in [
        ("ada core stop now", "User 'ada' is not allowed to run command: 'core stop now'\n"),
        ("ada database show", "User 'ada' is allowed to run command: 'database show'\n"),
        ("@adm core show hints", "Group '@adm' is allowed to run command: 'core show hints'\n"),
        ("eve core show hints", "User 'eve' is not allowed to run command: 'core show hints'\n"),
    ] {
        assert_eq!(desk.text(&format!("cli check permissions {line}")), said);
    }
}
