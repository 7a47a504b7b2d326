//! What the machine cannot give: descriptors, room on the disk, ports. It is said with a remedy, and calls go on.

use e2e::{Owned, Phone, Server, Site, Speak, wait};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => store,1,Set(DB(kept/value)=${CALLERID(num)})
 same => n,Answer()
 same => n,Hangup()
";

/// A program with a handful of descriptors has room for so many calls at most.
const DESCRIPTORS: u32 = 80;
/// Each takes one at least.
const CALLS_MAX: usize = DESCRIPTORS as usize;

fn site(name: &str) -> Site {
    Site::new(name).phone("alice").dialplan(DIALPLAN)
}

fn call(server: &Server) -> (Phone, Option<u16>) {
    let mut phone = Phone::new(server.site.sip, "alice");
    phone.media.speak(Speak::Tone(440.0));
    let status = phone.call("echo").status();
    (phone, status)
}

fn until_logged(server: &Server, words: &[&str]) {
    server.until_logged(&[&["ERROR"], words].concat());
}

#[test]
fn without_descriptors_new_calls_get_503_old_ones_go_on_and_new_ones_come_in_when_some_are_free() {
    let mut server = Server::start(site("nofile").descriptors(DESCRIPTORS));
    let mut up = Vec::new();
    let refused = loop {
        let (phone, status) = call(&server);
        match status {
            Some(200) => up.push(phone),
            status => break (phone, status),
        }
        assert!(up.len() < CALLS_MAX, "{DESCRIPTORS} descriptors never run out");
    };
    let (mut late, status) = refused;
    assert_eq!(status, Some(503));
    assert!(up.len() >= 4, "only {} calls fit into {DESCRIPTORS} descriptors", up.len());
    // Connections find nobody, and those who have one keep it.
    let _waiting: Vec<_> = (0..4).filter_map(|_| TcpStream::connect(server.site.sip).ok()).collect();
    until_logged(&server, &["no media for a call of 'alice'", "no descriptor is left", "ulimit -n"]);
    until_logged(&server, &["no descriptor is left for a connection", "ulimit -n"]);
    for phone in &up {
        phone.media.forget();
    }
    for phone in &up {
        wait::until_true("the echo goes on", || phone.media.heard().tone(440.0) >= 1_000);
        assert_eq!(phone.media.heard().lost(), 0);
    }
    assert_eq!(late.call("echo").status(), Some(503), "there is still none");

    for mut phone in up.drain(1..) {
        phone.hang_up();
    }
    wait::until_true("a call comes in", || late.call("echo").status() == Some(200));
    late.hang_up();
    up.iter_mut().for_each(Phone::hang_up);
    server.until_idle();
    server.assert_healthy();
}

#[test]
fn a_full_disk_below_the_log_and_the_call_records_is_said_and_records_wait_for_room() {
    let mut site = site("full");
    site.append("logger.conf", "errors => error\n");
    // Every write to this device finds the disk full (full(4)).
    std::fs::create_dir_all(site.place.join("log/cdr-csv")).expect("a folder");
    for file in ["log/full", "log/cdr-csv/Master.csv"] {
        symlink("/dev/full", site.place.join(file)).expect("a link");
    }
    let mut server = Server::start(site);
    for _ in 0..2 {
        let (mut phone, status) = call(&server);
        assert_eq!(status, Some(200));
        wait::until_true("the call has audio", || phone.media.heard().tone(440.0) >= 200);
        phone.hang_up();
    }
    for words in
        [["log/full: cannot be written", "free space"], ["Master.csv: cannot be written", "free space"]]
    {
        wait::until_true(&format!("{words:?} is said"), || {
            // The database's answer is a turn of the loop, after which nothing is left unsaid.
            server.cli("core show uptime");
            let said = server.site.place.read("log/errors");
            said.lines().any(|line| words.iter().all(|word| line.contains(word)))
        });
    }
    for file in ["log/full", "log/cdr-csv/Master.csv"] {
        std::fs::remove_file(server.site.place.join(file)).expect("a link");
    }
    wait::until_true("both records are written", || server.records().len() == 2);
    let (mut phone, _) = call(&server);
    phone.hang_up();
    wait::until_true("the log is written again", || server.log().contains("Executing"));
    wait::until_true("and says what is missing", || {
        server.cli("core show uptime");
        server.log().contains("can be written again")
    });
    server.assert_healthy();
}

#[test]
fn a_database_that_cannot_be_written_is_said_and_its_values_serve_on() {
    let server = Server::start(site("astdb"));
    // Another program holds the file and does not let go: to this one it is as good as read-only.
    let file = server.site.place.join("db/astdb.sqlite3");
    let Some(holder) = hold(&file) else { return };
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("store");
    alice.until_hung_up();
    assert_eq!(server.database("kept", "value"), "alice");
    wait::until_true("the trouble is said", || {
        server.cli("core show uptime");
        let words = ["astdb.sqlite3: cannot be written", "astdbdir"];
        server.log().lines().any(|line| words.iter().all(|word| line.contains(word)))
    });
    alice.must_call("store");
    alice.until_hung_up();
    drop(holder);
    let mut server = server;
    // The end of the process waits for what is not written yet.
    server.run("core stop now");
    server.ended();
    server.kill_and_restart();
    assert_eq!(server.database("kept", "value"), "alice");
}

/// A process that holds the database locked, once it does.
fn hold(file: &std::path::Path) -> Option<Owned> {
    use std::io::BufRead as _;
    if !e2e::installed(&["python3"]) {
        return None;
    }
    let program = "import sqlite3, sys, time\n\
                   held = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)\n\
                   held.execute('BEGIN EXCLUSIVE')\n\
                   print('held', flush=True)\n\
                   time.sleep(600)\n";
    let child = std::process::Command::new("python3")
        .args(["-c", program])
        .arg(file)
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut child = Owned(child.expect("python3 runs"));
    let mut line = String::new();
    std::io::BufReader::new(child.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("it speaks");
    assert_eq!(line, "held\n");
    Some(child)
}

#[test]
fn a_folder_of_the_database_that_cannot_be_is_said_at_the_start_with_option_and_remedy() {
    for (folder, option, remedy) in [
        ("db", "astdbdir", "make the folder writable or change astdbdir"),
        ("run", "astrundir", "make it, or set astrundir"),
        ("spool", "astspooldir", "make the folder writable or change astspooldir"),
        ("log", "astlogdir", "make the folder writable or change astlogdir"),
    ] {
        let site = site(folder);
        // A file stands where the folder should be: not even root can write into it.
        site.place.write(folder, "");
        let refused = Server::try_start(site).expect_err("it starts without the folder");
        assert!(refused.code.is_some_and(|code| code != 0), "{option}: {refused:?}");
        assert!(refused.said.contains(remedy), "{option}: no remedy in: {}", refused.said);
    }
    let site = site("damaged");
    site.place.write("db/astdb.sqlite3", "this is no database, and long enough to be looked at as one");
    let refused = Server::try_start(site).expect_err("it starts on a damaged database");
    for word in ["astdb.sqlite3", "moved away"] {
        assert!(refused.said.contains(word), "no {word} in: {}", refused.said);
    }
}

#[test]
fn a_reload_that_needs_a_port_in_use_keeps_what_ran_and_says_where() {
    let mut server = Server::start(site("port"));
    let (mut up, status) = call(&server);
    assert_eq!(status, Some(200));
    let taken = std::net::UdpSocket::bind((server.site.sip.ip(), 5070)).expect("the port is free");
    let more = format!("[more]\ntype=transport\nprotocol=udp\nbind={}\n", taken.local_addr().expect("bound"));
    let text = format!("{}{more}", server.site.text("pjsip.conf"));
    server.site.rewrite("pjsip.conf", &text);
    let output = server.run("core reload");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("pjsip.conf:") && line.contains("5070"));
    assert!(line.is_some_and(|line| line.contains("; ")), "no file, line, port and remedy in: {said}");
    up.media.forget();
    wait::until_true("the call goes on", || up.media.heard().tone(440.0) >= 500);
    up.hang_up();
    let (mut next, status) = call(&server);
    assert_eq!(status, Some(200));
    next.hang_up();
    drop(taken);
    server.cli("core reload");
    assert!(server.sockets().iter().any(|(_, at)| at.port() == 5070), "{:?}", server.sockets());
    server.until_idle();
}
