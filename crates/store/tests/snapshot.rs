//! Whole folders: what a site's configuration becomes, what `check` says, what a reload keeps.

mod common;

use common::Scratch;
use conf::{Findings, Level};
use std::fs;
use std::path::{Path, PathBuf};
use store::config::logger::{LogLevel, Target};
use store::config::manager::Classes;
use store::config::modules::Capability;
use store::config::music::{Mode, Sort};
use store::{Defaults, Snapshot, Where, examine};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Findings as text, with the folder's name taken out.
fn told(findings: &Findings, dir: &Path) -> String {
    findings.to_string().replace(&format!("{}/", dir.display()), "")
}

#[test]
fn golden_folders_are_told_line_by_line() {
    for name in ["office", "legacy", "broken"] {
        let dir = golden(name);
        let findings = examine(&dir, false).findings;
        let told = told(&findings, &dir);
        let expected = dir.join("expected.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&expected, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&expected).unwrap(), "{name}");
    }
}

#[test]
fn an_office_becomes_what_its_files_say() {
    let (snapshot, findings) = Snapshot::load(&Where::Dir(golden("office"))).unwrap();
    assert!(!findings.has_errors(), "{findings}");
    assert_eq!(snapshot.asterisk.options.maxcalls, 200);
    assert_eq!(snapshot.asterisk.options.runuser, "asterisk");
    assert_eq!(snapshot.asterisk.directories.astspooldir, Path::new("/srv/spool"));
    assert_eq!(snapshot.asterisk.control_socket(), Path::new("/var/run/asterisk/asterisk.ctl"));
    assert_eq!((snapshot.rtp.rtpstart, snapshot.rtp.rtpend), (12000, 12999));

    assert_eq!(snapshot.pjsip.endpoints.keys().collect::<Vec<_>>(), ["alice", "bob", "carrier"]);
    assert_eq!(snapshot.pjsip.endpoints["bob"].context, "internal");
    assert!(!snapshot.pjsip.endpoints["carrier"].access.allows("192.0.2.1".parse().unwrap()));
    assert!(snapshot.pjsip.endpoints["carrier"].access.allows("198.51.100.7".parse().unwrap()));

    let jazz = &snapshot.music.classes["jazz"];
    assert_eq!((jazz.mode, jazz.entry.len()), (Mode::Playlist, 2));
    assert_eq!(snapshot.music.classes["default"].sort, Sort::Random, "random=yes is sort=random");

    let full = &snapshot.logger.channels[1];
    assert_eq!((&full.target, full.verbose), (&Target::File("full".into()), Some(3)));
    assert!(full.levels.contains(LogLevel::Debug) && !full.levels.contains(LogLevel::Dtmf));

    let csv = snapshot.cdr.csv.as_ref().unwrap();
    assert!(csv.loguniqueid && csv.usegmtime && !csv.newcdrcolumns);

    let admin = &snapshot.manager.users["admin"];
    assert!(admin.write.contains(Classes::named("originate").unwrap()));
    assert!(!admin.read.intersects(Classes::named("cdr").unwrap()));
    assert!(!admin.access.allows("192.0.2.1".parse().unwrap()));
    assert_eq!(admin.eventfilter, ["!Event: RTCPSent", "!Event: RTCPReceived"]);

    assert!(!snapshot.modules.has(Capability::CdrCsv));
    assert!(!snapshot.modules.has_application("milliwatt"));
    assert!(snapshot.modules.has_application("Dial"));
    assert_eq!(snapshot.modules.disabled().iter().collect::<Vec<_>>(), ["app_milliwatt", "cdr_csv"]);

    assert_eq!(snapshot.tones.general.country, "de");
    assert_eq!(
        snapshot.tones.zone("xx").unwrap().ring_cadence,
        [1000, 4000],
        "an unknown country is the default one"
    );
    assert_eq!(snapshot.tones.zone("MARS").unwrap().tones["dial"][0].first_hz, 222);

    let globals = snapshot.extensions.section("globals").unwrap();
    assert_eq!(globals.value("TRUNK"), Some("PJSIP/carrier"));
    assert_eq!(snapshot.extensions.section("internal").unwrap().variables.len(), 3, "through the include");
}

#[test]
fn with_autoload_off_only_what_is_named_is_on() {
    let dir = Scratch::new("autoload");
    dir.write("modules.conf", "[modules]\nautoload=no\nload = app_dial.so\nload => res_pjsip.so\n");
    dir.write("extensions.conf", "[a]\n").write("pjsip.conf", "[t]\ntype=transport\nbind=127.0.0.1\n");
    let (snapshot, findings) = Snapshot::load(&Where::Dir(dir.0.clone())).unwrap();
    assert!(snapshot.modules.has_application("Dial"));
    assert!(!snapshot.modules.has_application("Echo"));
    assert!(!snapshot.modules.has(Capability::Technology("PJSIP")), "chan_pjsip is not named");
    assert!(findings.iter().any(|f| f.message.contains("SIP is not served")), "{findings}");
}

#[test]
fn chan_iax2_that_is_turned_off_serves_nothing_and_that_is_told() {
    for (name, modules, served) in [
        ("on by default", "[modules]\nautoload=yes\n", true),
        ("refused", "[modules]\nautoload=yes\nnoload=chan_iax2.so\n", false),
        ("not named", "[modules]\nautoload=no\nload=app_dial.so\n", false),
        ("named", "[modules]\nautoload=no\nload=chan_iax2.so\n", true),
    ] {
        let dir = Scratch::new("noload-iax");
        dir.write("modules.conf", modules).write("extensions.conf", "[a]\n").write("iax.conf", "[general]\n");
        let (snapshot, findings) = Snapshot::load(&Where::Dir(dir.0.clone())).unwrap();
        assert_eq!(snapshot.iax.enabled, served, "{name}");
        let told = findings.iter().any(|f| f.message.contains("chan_iax2 is turned off"));
        assert_eq!(told, !served, "{name}: {findings}");
    }
}

#[test]
fn a_reload_keeps_the_old_one_when_a_file_is_refused() {
    let dir = Scratch::new("reload");
    dir.write("asterisk.conf", "[options]\nmaxcalls=5\n");
    dir.write("extensions.conf", "[a]\nexten => 1,1,NoOp()\n#include more.conf\n")
        .write("more.conf", "[b]\n");
    dir.write("pjsip.conf", "[t]\ntype=transport\nbind=127.0.0.1\n");
    let (old, _) = Snapshot::load(&Where::Site(dir.0.join("asterisk.conf"))).unwrap();
    assert!(!old.changed());
    dir.write("more.conf", "[b](missing)\n");
    fs::remove_file(dir.0.join("pjsip.conf")).unwrap();
    assert!(old.changed(), "an included file or a missing one counts");
    let findings = old.reload().unwrap_err();
    let error = findings.iter().find(|f| f.level == Level::Error).unwrap();
    assert_eq!(error.place.to_string(), format!("{}:1", dir.0.join("more.conf").display()));
    assert_eq!((old.asterisk.options.maxcalls, old.extensions.sections.len()), (5, 2), "untouched");
    dir.write("more.conf", "[b]\n[c]\n").write("asterisk.conf", "[options]\nmaxcalls=6\n");
    let (new, _) = old.reload().unwrap();
    assert_eq!((new.asterisk.options.maxcalls, new.extensions.sections.len()), (6, 3));
}

#[test]
fn a_file_that_is_refused_is_told_once() {
    for name in ["http.conf", "pjsip.conf", "extensions.conf", "rtp.conf"] {
        let dir = Scratch::new(&format!("refused-{name}"));
        dir.write("extensions.conf", "[a]\n").write("pjsip.conf", "[t]\ntype=transport\nbind=127.0.0.1\n");
        dir.write(name, "[b](missing)\n");
        let (snapshot, findings) = Snapshot::start(&Where::Dir(dir.0.clone())).unwrap();
        let path = dir.0.join(name).display().to_string();
        assert_eq!(snapshot.refused, [path.as_str()], "{name}");
        let told = findings.iter().filter(|finding| finding.message.contains("refused as a whole"));
        assert_eq!(told.count(), 1, "{name}: {findings}");
        assert!(
            !findings.iter().any(|finding| finding.message.contains("no such file")),
            "{name}: {findings}"
        );
        assert_eq!(examine(&dir.0, false).refused, [path], "{name}");
        snapshot.reload().unwrap();
        assert!(Snapshot::load(&Where::Dir(dir.0.clone())).is_err(), "{name}");
    }
}

#[test]
fn the_other_files_lie_in_astetcdir_or_beside() {
    let dir = Scratch::new("etc");
    dir.write(
        "main/asterisk.conf",
        &format!("[directories]\nastetcdir => {}/etc\nastvarlibdir => /v\n", dir.0.display()),
    );
    dir.write("etc/extensions.conf", "[there]\n").write("main/extensions.conf", "[beside]\n");
    let (snapshot, _) = Snapshot::load(&Where::Site(dir.0.join("main/asterisk.conf"))).unwrap();
    assert!(snapshot.extensions.section("there").is_some());
    assert_eq!(snapshot.asterisk.directories.astdbdir, Path::new("/v"), "the database follows astvarlibdir");
    dir.write("main/asterisk.conf", "[directories](!)\nastetcdir => /nowhere\n");
    let (snapshot, _) = Snapshot::load(&Where::Site(dir.0.join("main/asterisk.conf"))).unwrap();
    assert!(snapshot.extensions.section("beside").is_some(), "a template says nothing");
    let findings = Snapshot::load(&Where::Site(dir.0.join("none.conf"))).unwrap_err();
    assert!(findings.iter().any(|f| !f.remedy.is_empty()), "{findings}");
}

#[test]
fn exec_runs_only_with_execincludes() {
    let dir = Scratch::new("exec");
    dir.write("extensions.conf", "[a]\n#exec \"printf 'x=%s' ok\"\n");
    let (snapshot, findings) = Snapshot::load(&Where::Dir(dir.0.clone())).unwrap();
    assert_eq!(snapshot.extensions.section("a").unwrap().value("x"), None);
    assert!(findings.iter().any(|f| f.remedy.contains("execincludes=yes")), "{findings}");
    dir.write("asterisk.conf", "[options]\nexecincludes=yes\n");
    let (snapshot, _) = Snapshot::load(&Where::Dir(dir.0.clone())).unwrap();
    assert_eq!(snapshot.extensions.section("a").unwrap().value("x"), Some("ok"));
    assert!(snapshot.changed(), "what a command prints may differ every time");
}

#[test]
fn includes_match_wildcards_in_sorted_order_on_disk() {
    let dir = Scratch::new("glob");
    dir.write("extensions.conf", "[a]\n#include ext.d/*.conf\n#include \"*/nested/[ab].inc\"\n");
    dir.write("ext.d/20.conf", "n=20").write("ext.d/10.conf", "n=10").write("ext.d/.hidden.conf", "n=0");
    dir.write("ext.d/skip.txt", "n=1").write("ext.d/nested/a.inc", "m=1").write("ext.d/nested/c.inc", "m=2");
    let here = std::env::current_dir().unwrap();
    let up: std::path::PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = up.join(dir.0.strip_prefix("/").unwrap());
    for folder in [dir.0.clone(), relative] {
        let (snapshot, findings) = Snapshot::load(&Where::Dir(folder.clone())).unwrap();
        let a =
            snapshot.extensions.section("a").unwrap_or_else(|| panic!("{}: {findings}", folder.display()));
        let values: Vec<_> = a.variables.iter().map(|v| format!("{}{}", v.name, v.value)).collect();
        assert_eq!(values, ["n10", "n20", "m1"], "{}: {findings}", folder.display());
    }
}

fn defaults() -> Defaults {
    Defaults {
        root: "/var/lib/strowger".into(),
        data: "/usr/share/strowger".into(),
        bind: Defaults::BIND,
        secrets: ["first;secret-of-6001".into(), "second-secret-of-6002".into()],
    }
}

#[test]
fn the_embedded_defaults_are_secure_and_draw_no_remark() {
    let (snapshot, findings) = Snapshot::load(&Where::Embedded(defaults())).unwrap();
    assert!(findings.is_empty(), "{findings}");
    for transport in snapshot.pjsip.transports.values() {
        assert!(transport.address().unwrap().ip().is_loopback());
    }
    for (name, endpoint) in &snapshot.pjsip.endpoints {
        assert_eq!(&endpoint.auth[..], std::slice::from_ref(name), "every phone has a password");
    }
    assert!(!snapshot.pjsip.endpoints.contains_key("anonymous"), "no guests");
    assert_eq!(snapshot.pjsip.auths["6001"].password.expose(), "first;secret-of-6001");
    assert_eq!(snapshot.pjsip.auths["6002"].username, "6002");
    assert!(!snapshot.manager.general.enabled && snapshot.manager.users.is_empty());
    assert!(!snapshot.asterisk.options.execincludes && !snapshot.asterisk.options.live_dangerously);
    assert!(snapshot.cdr.csv.is_some());
    assert!(snapshot.music.classes["default"].folder(Path::new("/d")) == Path::new("/d/moh"));
    assert_eq!(snapshot.asterisk.directories.astdbdir, Path::new("/var/lib/strowger/lib"));
    assert!(!snapshot.changed());
    assert!(!format!("{:?} {snapshot:?}", defaults()).contains("secret-of"), "secrets are never printed");
}

#[test]
fn the_embedded_files_written_out_are_a_site_of_their_own() {
    let dir = Scratch::new("written");
    for (name, text) in defaults().files() {
        dir.write(name, &text);
    }
    let findings = examine(&dir.0, false).findings;
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn findings_serialise_for_scripts() {
    let dir = golden("broken");
    let findings = examine(&dir, false).findings;
    let json = serde_json::to_value(&findings).unwrap();
    let first = &json[0];
    assert!(first["file"].as_str().unwrap().ends_with(".conf"), "{first}");
    assert!(first["line"].is_u64() && first["message"].is_string() && first["remedy"].is_string(), "{first}");
    assert!(["error", "warning", "note"].contains(&first["level"].as_str().unwrap()));
}

#[test]
fn transports_of_websockets_are_told_when_nobody_listens_for_them() {
    for (name, protocol, http, expected) in [
        ("nothing is served", "ws", "", Some("http.conf serves nothing")),
        ("the server is off", "wss", "[general]\nenabled=no\n", Some("http.conf serves nothing")),
        ("it listens", "ws", "[general]\nenabled=yes\n", None),
        ("it has no certificate", "wss", "[general]\nenabled=yes\n", Some("as a proxy that speaks TLS")),
        ("it has one", "wss", "[general]\nenabled=yes\ntlsenable=yes\n", None),
    ] {
        let scratch = Scratch::new(&format!("websockets-{}", name.replace(' ', "-")));
        scratch
            .write("asterisk.conf", "")
            .write("extensions.conf", "")
            .write("pjsip.conf", &format!("[x]\ntype=transport\nprotocol={protocol}\n"))
            .write("http.conf", http);
        let findings = told(&examine(&scratch.0, false).findings, &scratch.0);
        let remarks: Vec<&str> = findings.lines().filter(|line| line.contains("transport 'x'")).collect();
        assert_eq!(remarks.len(), usize::from(expected.is_some()), "{name}: {findings}");
        assert!(expected.is_none_or(|words| remarks[0].contains(words)), "{name}: {findings}");
    }
}
