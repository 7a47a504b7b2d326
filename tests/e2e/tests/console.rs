//! The interactive consoles at a terminal: `-r` beside the process, `-c` in it.

use e2e::{Phone, Place, Server, Site, Terminal, installed, wait};

const TAB: &str = "\t";
const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";

fn site(name: &str) -> Site {
    Site::new(name).phone("alice").dialplan("[test]\nexten => 100,1,Answer()\n same => n,Wait(60)\n")
}

/// Completion, `?`, errors, the shell that does not exist, and history.
fn drive(terminal: &Terminal, place: &Place) {
    terminal.until_shown("*CLI> ");
    terminal.press(&format!("core show upt{TAB}"));
    terminal.until_shown("core show uptime");
    terminal.press(ENTER);
    terminal.until_shown("System uptime:");

    terminal.wipe();
    terminal.press("core show channels ?");
    for word in ["verbose", "count"] {
        terminal.until_shown(word);
    }
    // Typing goes on in the list: Enter takes what fits, and Enter runs the line.
    terminal.press(&format!("cou{ENTER}{ENTER}"));
    terminal.until_shown("active channel");

    terminal.wipe();
    terminal.press(&format!("no such thing{ENTER}"));
    terminal.until_shown("No such command 'no such thing'");

    terminal.wipe();
    terminal.press(&format!("!touch {}{ENTER}", place.join("touched").display()));
    terminal.until_shown("Shell commands are not run");
    assert!(!place.join("touched").exists());

    // The line before the last one once more.
    terminal.wipe();
    terminal.press(&format!("{UP}{UP}{ENTER}"));
    terminal.until_shown("No such command 'no such thing'");
}

#[test]
fn a_remote_console_completes_helps_remembers_and_leaves_the_process_running() {
    if !installed(&["script"]) {
        return;
    }
    let mut server = Server::start(site("remote"));
    let mut first = Terminal::start(&server.site, &["-vvvr"]);
    drive(&first, &server.site.place);
    // Log lines stand above the prompt.
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    first.until_shown("Executing [100@test:1] Answer(\"PJSIP/alice-00000000\"");
    alice.hang_up();
    first.press(&format!("exit{ENTER}"));
    first.ended();

    // History outlives the console, Ctrl-C leaves it.
    let mut second = Terminal::start(&server.site, &["-r"]);
    second.until_shown("*CLI> ");
    second.press(UP);
    second.until_shown("exit");
    second.press(CTRL_C);
    second.ended();
    server.assert_healthy();

    let mut third = Terminal::start(&server.site, &["-r"]);
    third.until_shown("*CLI> ");
    server.run("core stop now");
    assert_eq!(server.ended(), Some(0));
    third.until_shown("Disconnected from Strowger.");
    assert_eq!(third.ended(), Some(0));
}

#[test]
fn the_console_of_the_process_belongs_to_it_and_ctrl_c_stops_both() {
    if !installed(&["script"]) {
        return;
    }
    let site = site("local");
    site.write();
    let mut terminal = Terminal::start(&site, &["-cvvv", "-n"]);
    drive(&terminal, &site.place);
    let mut alice = Phone::new(site.sip, "alice");
    alice.must_call("100");
    terminal.until_shown("Executing [100@test:1] Answer(\"PJSIP/alice-00000000\"");
    terminal.wipe();
    terminal.press(&format!("exit{ENTER}"));
    terminal.until_shown("core stop gracefully");
    terminal.press(CTRL_C);
    alice.until_hung_up();
    assert_eq!(terminal.ended(), Some(0));
    wait::until_true("the call has its record", || {
        site.place.read("log/cdr-csv/Master.csv").contains("PJSIP/alice-00000000")
    });
}

#[test]
fn a_terminal_that_hangs_up_leaves_the_process_running_without_a_console() {
    if !installed(&["script"]) {
        return;
    }
    let site = site("hangup");
    site.write();
    let terminal = Terminal::start(&site, &["-cvvv", "-n"]);
    terminal.until_shown("*CLI> ");
    let call = |words: &[&str]| {
        let mut command = std::process::Command::new(e2e::program());
        command.arg("-C").arg(site.config()).args(words).output().expect("the program runs")
    };
    let program = terminal.hang_up();
    assert_eq!(site.place.read("run/asterisk.pid").trim(), program.pid().to_string());
    let input = std::path::PathBuf::from(format!("/proc/{}/fd/0", program.pid()));
    // On a terminal that is gone the line editor would read for ever: its place is taken by a pipe that stays silent.
    wait::until_true("the process lets go of its terminal", || {
        std::fs::read_link(&input).is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"))
    });
    assert!(call(&["-rx", "core show uptime"]).status.success(), "it still answers");
    call(&["-rx", "core stop now"]);
    wait::until_true("the process ends", || !input.exists());
}

#[test]
fn a_user_runs_what_cli_permissions_conf_lets_them() {
    use std::os::unix::fs::MetadataExt as _;
    let site = site("permissions");
    site.write();
    let uid = std::fs::metadata(site.config()).expect("a file of ours").uid();
    let server =
        Server::start(site.add("cli_permissions.conf", &format!("[{uid}]\ndeny=core show version\n")));
    let refused = server.run("core  show version");
    assert!(!refused.status.success());
    let said =
        String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("You don't have permissions to run 'core  show version' command"), "{said}");
    assert!(server.cli("core show uptime").contains("System uptime"));
    let rules = server.cli("cli show permissions");
    assert!(
        rules.contains(&format!("User: {uid} [uid={uid}]")) && rules.contains("deny -> core show version")
    );
}
