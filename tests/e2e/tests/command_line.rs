//! The running program at the hands of an administrator.

use e2e::{Phone, Server, Site, Speak, address, program, wait};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

const DIALPLAN: &str = "
[test]
exten => 100,1,Answer()
 same => n,Wait(60)
exten => echo,1,Answer()
 same => n,Echo()
exten => bob,hint,PJSIP/bob
";

fn site(name: &str) -> Site {
    Site::new(name).phone("alice").phone("bob").dialplan(DIALPLAN)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_command_that_tools_use_answers_with_status_0() {
    let server = Server::start(site("commands"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    alice.must_call("100");
    wait::until_true("the dialplan waits", || server.cli("core show channels concise").contains("!Wait!"));
    for (command, part) in [
        ("core show version", "Asterisk "),
        ("core show version", "Strowger"),
        ("core show uptime", "System uptime"),
        ("core show settings", "Maximum calls"),
        ("core show channels", "PJSIP/alice-"),
        ("core show channels", "1 active channel"),
        ("core show channels concise", "PJSIP/alice-00000000!test!100!2!Up!Wait!60!"),
        ("core show channels verbose", "PJSIP/alice-"),
        ("core show channels count", "1 active channel"),
        ("show channels", "1 active channel"),
        ("sip show channels", "alice"),
        ("core show channel PJSIP/alice-00000000", "State: Up"),
        ("core show applications", "Playback"),
        ("core show application Dial", "Dial"),
        ("core show functions", "CALLERID"),
        ("core show hints", "bob@test"),
        ("dialplan show test", "'100' =>"),
        ("dialplan show 100@test", "Answer()"),
        ("pjsip show endpoints", "alice"),
        ("pjsip show endpoint alice", "alice"),
        ("pjsip show aors", "alice"),
        ("pjsip show contacts", "sip:alice@"),
        ("pjsip show transports", "udp"),
        ("sip show peers", "alice"),
        ("moh show classes", "default"),
        ("database put fruit apple red", "Updated database successfully"),
        ("database get fruit apple", "Value: red"),
        ("database show fruit", "/fruit/apple"),
        ("database del fruit apple", "Database entry removed."),
        ("logger reload", ""),
        ("pjsip set logger on", ""),
        ("pjsip set logger off", ""),
        ("rtp set debug on", ""),
        ("rtp set debug off", ""),
        ("channel request hangup PJSIP/alice-00000000", "Requested Hangup"),
    ] {
        let said = server.cli(command);
        assert!(said.contains(part), "-rx '{command}' lacks '{part}':\n{said}");
    }
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn every_show_command_speaks_json() {
    let server = Server::start(site("json"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    alice.must_call("100");
    for command in [
        "core show version",
        "core show uptime",
        "core show settings",
        "core show channels",
        "core show channels concise",
        "core show channel PJSIP/alice-00000000",
        "core show applications",
        "core show functions",
        "core show application Dial",
        "core show hints",
        "dialplan show test",
        "pjsip show endpoints",
        "pjsip show endpoint alice",
        "pjsip show aors",
        "pjsip show contacts",
        "pjsip show transports",
        "moh show classes",
        "database show",
    ] {
        let said = server.json(command).to_string();
        assert!(said.len() > 2, "{command}: {said}");
    }
    let channels = server.json("core show channels").to_string();
    assert!(channels.contains("PJSIP/alice-00000000"), "{channels}");
    alice.hang_up();
}

#[test]
fn wrong_commands_are_told_apart_by_their_status() {
    let server = Server::start(site("wrong"));
    for (command, part) in [
        ("frobnicate the phones", "No such command"),
        ("core show channel PJSIP/nobody-00000001", "PJSIP/nobody-00000001"),
        ("database get no key", "Database entry not found."),
        ("core show application Frobnicate", "Frobnicate"),
    ] {
        let output = server.run(command);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(part), "{command}: {said}");
        assert!(!output.status.success(), "{command} succeeds: {said}");
    }
}

#[test]
fn nothing_that_runs_is_status_1_with_a_remedy() {
    let site = site("nothing");
    site.write();
    let output = Command::new(program())
        .arg("-C")
        .arg(site.config())
        .args(["-rx", "core show version"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("asterisk.ctl"), "{}", text(&output.stderr));
}

#[test]
fn a_call_placed_from_the_console_reaches_the_phone() {
    let server = Server::start(site("originate"));
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    bob.media.speak(Speak::Tone(440.0));
    server.cli("channel originate PJSIP/bob extension echo@test");
    let invite = bob.ring();
    bob.take(&invite);
    wait::until_true("bob hears himself", || bob.media.heard().tone(440.0) >= 500);
    bob.hang_up();
    server.until_idle();
}

#[test]
fn core_stop_now_ends_the_process_with_status_0() {
    let mut server = Server::start(site("stop"));
    server.cli("core stop now");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn phones_are_told_when_the_process_stops() {
    for how in ["core stop now", "SIGTERM"] {
        let mut server = Server::start(site("told"));
        let mut alice = Phone::new(server.site.sip, "alice");
        alice.must_call("100");
        if how == "SIGTERM" {
            server.signal("TERM");
        } else {
            server.cli(how);
        }
        assert!(alice.comes("BYE", wait::SOON), "{how}: no BYE");
        assert_eq!(server.ended(), Some(0), "{how}");
    }
}

#[test]
fn a_hangup_signal_reloads() {
    let mut server = Server::start(site("sighup"));
    let more = format!("{}[test]\nexten => new,1,Busy(1)\n", server.site.text("extensions.conf"));
    server.site.rewrite("extensions.conf", &more);
    server.signal("HUP");
    wait::until_true("the new extension is there", || server.run("dialplan show new@test").status.success());
    server.assert_healthy();
}

#[test]
fn an_endpoint_that_a_reload_takes_away_keeps_its_call_and_gets_no_other() {
    let mut server = Server::start(site("gone"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    let without = server.site.text("pjsip.conf").replace("[alice]", "[other]").replace("alice", "other");
    server.site.rewrite("pjsip.conf", &without);
    server.cli("core reload");
    alice.media.forget();
    wait::until_true("the call goes on", || alice.media.heard().tone(440.0) >= 500);
    assert_eq!(Phone::new(server.site.sip, "alice").call("echo").status(), Some(401));
    alice.hang_up();
    server.until_idle();
}

#[test]
fn who_asks_for_the_end_waits_for_it_and_calls_are_waited_for() {
    for (line, said, new_call) in [
        ("core stop gracefully", "", 503),
        ("core stop when convenient", "Waiting for inactivity to perform halt\n", 200),
    ] {
        let mut server = Server::start(site("graceful"));
        let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
        alice.must_call("100");
        std::thread::scope(|scope| {
            let (server, wanted) = (&server, || server.call(&["-rx", line]));
            // One that is called off lets its client go, and calls come in again.
            let first = scope.spawn(wanted);
            until_stopping(server, 1);
            server.cli("core abort shutdown");
            let output = first.join().expect("it ends");
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), said.into()), "{line}");
            bob.must_call("100");
            bob.hang_up();
            let second = scope.spawn(wanted);
            until_stopping(server, 2);
            assert_eq!(bob.call("100").status(), Some(new_call), "{line}");
            if new_call == 200 {
                bob.hang_up();
            }
            assert!(!second.is_finished(), "{line}: a call is up");
            alice.hang_up();
            let output = second.join().expect("it ends");
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), said.into()), "{line}");
            assert!(
                !server.site.place.join("run/asterisk.ctl").exists()
                    || !server.run("core show uptime").status.success()
            );
        });
        assert_eq!(server.ended(), Some(0), "{line}");
    }
}

/// Waits until the server has heard for the `nth` time of an end that somebody wants.
fn until_stopping(server: &Server, nth: usize) {
    wait::until_true("the end is wanted", || {
        server.log().matches("waits until no call is up").count() == nth
    });
}

#[test]
fn a_reload_takes_what_is_new_while_a_call_is_up() {
    let mut server = Server::start(site("reload"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    let more = format!("{}[test]\nexten => new,1,Busy(1)\n", server.site.text("extensions.conf"));
    server.site.rewrite("extensions.conf", &more);
    server.cli("core reload");
    let mut bob = Phone::new(server.site.sip, "bob");
    assert_eq!(bob.call("new").status(), Some(486));
    alice.media.forget();
    wait::until_true("the call goes on", || alice.media.heard().tone(440.0) >= 500);
    alice.hang_up();
}

#[test]
fn a_reload_with_an_error_says_where_and_keeps_what_ran() {
    let mut server = Server::start(site("badreload"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    for (file, wrong) in [
        ("extensions.conf", "[test\nexten => 100,1,Hangup()\n"),
        ("extensions.conf", "[test]\nexten => 100,1,Frobnicate()\n"),
        ("pjsip.conf", "[udp]\ntype=transport\nprotocol=udp\nbind=nowhere\n"),
        ("pjsip.conf", "[alice]\ntype=endpoint\n#include \"missing.conf\"\n"),
    ] {
        let good = server.site.text(file).to_owned();
        server.site.rewrite(file, wrong);
        let output = server.run("core reload");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!output.status.success(), "{wrong:?} is taken:\n{said}");
        assert!(said.contains(&format!("{file}:")), "{wrong:?}: no file and line in:\n{said}");
        let mut bob = Phone::new(server.site.sip, "bob");
        bob.must_call("100");
        bob.hang_up();
        server.site.rewrite(file, &good);
    }
    alice.media.forget();
    wait::until_true("the call goes on", || alice.media.heard().tone(440.0) >= 500);
    assert_eq!(alice.media.heard().lost(), 0);
    alice.hang_up();
}

#[test]
fn check_says_whether_a_folder_would_run_and_what_would_not() {
    let good = site("check");
    good.write();
    let check = |folder: &std::path::Path, words: &[&str]| {
        Command::new(program()).arg("check").arg(folder).args(words).output().expect("the program runs")
    };
    let output = check(&good.place.join("etc"), &[]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));

    let bad = site("checkbad")
        .dialplan("[test]\nexten => 1,1,AlarmReceiver(1)\nexten => 2,1,Frobnicate()\n")
        .add("pjsip.conf", "[alice](+type=endpoint)\nallow=g7231\n")
        .add("pjsip.conf", "[lamps]\ntype=phoneprov\nPROFILE=x\n");
    bad.write();
    let output = check(&bad.place.join("etc"), &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "it would run in part:\n{said}");
    for name in ["AlarmReceiver", "Frobnicate", "g7231", "phoneprov"] {
        let line = said.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.contains(".conf:")), "{name} has no file and line:\n{said}");
    }
    let json = check(&bad.place.join("etc"), &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(json.to_string().contains("Frobnicate"));
}

#[test]
fn several_binds_serve_side_by_side() {
    let second = SocketAddr::new(address(), 5066);
    let site =
        site("binds").add("pjsip.conf", &format!("[second]\ntype=transport\nprotocol=udp\nbind={second}\n"));
    let server = Server::start(site);
    for at in [server.site.sip, second] {
        let mut alice = Phone::new(at, "alice");
        alice.must_register();
        alice.media.speak(Speak::Tone(440.0));
        alice.must_call("echo");
        wait::until_true("audio flows", || alice.media.heard().tone(440.0) >= 200);
        alice.hang_up();
    }
}

#[test]
fn a_port_in_use_is_said_with_file_line_and_remedy_and_everything_else_runs() {
    for protocol in ["udp", "tcp"] {
        let site = site(protocol);
        let _udp = (protocol == "udp").then(|| UdpSocket::bind(site.sip).expect("the port is free"));
        let _tcp = (protocol == "tcp").then(|| TcpListener::bind(site.sip).expect("the port is free"));
        let mut server = Server::start(site);
        server.until_logged(&[
            "ERROR",
            "could not be started: Address already in use",
            "pjsip.conf:",
            "5060",
            "; ",
        ]);
        server.assert_healthy();
    }
}

#[test]
fn a_missing_configuration_and_an_unwritable_folder_are_said_with_a_remedy() {
    let output = Command::new(program())
        .args(["-f", "-C", "/nonexistent/asterisk.conf"])
        .output()
        .expect("the program runs");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("/nonexistent/asterisk.conf"), "{}", text(&output.stderr));

    let site = site("folder");
    // A file stands where the folder should be: not even root can write into it.
    site.place.write("log", "");
    let refused = Server::try_start(site).expect_err("it starts without a log folder");
    assert!(refused.said.contains("astlogdir"), "{}", refused.said);
}

#[test]
fn waiting_for_the_boot_is_over_at_once_when_it_has_booted() {
    let server = Server::start(site("boot"));
    let said = text(&server.run("core waitfullybooted").stdout);
    assert!(said.trim_end().ends_with("fully booted."), "{said}");
}
