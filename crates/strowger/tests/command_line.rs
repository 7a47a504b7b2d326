//! The real program, as scripts and people call it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A site of its own under the temporary folder.
struct Site {
    folder: PathBuf,
    pid: Option<u32>,
}

impl Site {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let run = folder.join("run");
        let text = format!(
            "[directories]\nastetcdir => {0}\nastrundir => {1}\nastvarlibdir => {0}\nastdbdir => {0}\nastdatadir => {0}\n\
             astspooldir => {0}\nastlogdir => {0}\nastkeydir => {0}\nastcachedir => {0}\n",
            folder.display(),
            run.display()
        );
        std::fs::write(folder.join("asterisk.conf"), text).unwrap();
        Self { folder, pid: None }
    }
    fn config(&self) -> PathBuf {
        self.folder.join("asterisk.conf")
    }
    fn call(&self, words: &[&str]) -> Output {
        program().arg("-C").arg(self.config()).args(words).stdin(Stdio::null()).output().unwrap()
    }
    /// Starts the server as an administrator does: the command returns when it answers. `limits` are shell words
    /// that come first.
    fn start(&mut self, limits: &str) {
        let script =
            format!("{limits} exec '{}' -C '{}' -g", env!("CARGO_BIN_EXE_strowger"), self.config().display());
        let output = Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let pid = std::fs::read_to_string(self.folder.join("run/asterisk.pid")).unwrap();
        self.pid = Some(pid.trim().parse().unwrap());
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.pid.is_some() {
            self.call(&["-rx", "core stop now"]);
        }
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_strowger"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_version_begins_as_tools_expect_and_names_strowger() {
    let output = program().arg("-V").output().unwrap();
    let version = text(&output.stdout);
    assert!(
        output.status.success() && version.starts_with("Asterisk ") && version.contains("Strowger"),
        "{version}"
    );
    assert!(
        version.split(' ').nth(1).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())),
        "{version}"
    );
}

#[test]
fn a_server_that_is_not_there_is_told_with_a_remedy_and_status_1() {
    let site = Site::new("absent");
    let output = site.call(&["-rx", "core show version"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "Unable to connect to remote strowger (does {}/run/asterisk.ctl exist?)",
        site.folder.display()
    );
    assert!(said.starts_with(&expected) && said.contains("start it with"), "{said}");
}

#[test]
fn a_configuration_that_is_not_there_is_told_and_an_option_that_does_not_exist_too() {
    let output = program().args(["-C", "/nonexistent/asterisk.conf", "-f"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/nonexistent/asterisk.conf does not exist"),
        "{}",
        text(&output.stderr)
    );
    let output = program().arg("-Z").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("there is no option '-Z'"), "{}", text(&output.stderr));
}

#[test]
fn check_reads_a_folder_and_says_by_its_status_whether_it_would_run() {
    let site = Site::new("check");
    let folder = site.folder.display().to_string();
    std::fs::write(site.folder.join("rtp.conf"), "[general]\nrtpstart=ten\n").unwrap();
    let output = program().args(["check", &folder]).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("rtp.conf:2") && said.contains("rtpstart"), "{said}");
    let json = program().args(["check", &folder, "--json"]).output().unwrap();
    assert!(text(&json.stdout).starts_with("{\"exit\":0"), "{}", text(&json.stdout));
    assert_eq!(output.status.code(), json.status.code());
    let absent = program().args(["check", "/nonexistent"]).output().unwrap();
    assert_eq!(absent.status.code(), Some(64));
    let help = program().args(["check", "--help"]).output().unwrap();
    assert!(help.status.success() && text(&help.stdout).contains("strowger check DIR"));
    assert!(text(&absent.stderr).contains("is no folder"), "{}", text(&absent.stderr));
}

#[test]
fn one_process_goes_to_the_background_answers_commands_and_stops() {
    let mut site = Site::new("life");
    site.start("");
    let run = site.folder.join("run");

    for (line, answer, status) in [
        ("core waitfullybooted", "Asterisk has fully booted.", 0),
        ("core show version", "Asterisk ", 0),
        ("core frobnicate", "No such command 'core frobnicate' (type 'core show help core frobnicate'", 1),
    ] {
        let output = site.call(&["-rx", line]);
        let said = text(&output.stdout);
        assert!(said.lines().any(|said| said.starts_with(answer)), "{line}: {said}");
        assert_eq!(output.status.code(), Some(status), "{line}");
    }

    let second = site.call(&["-f"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("another Strowger"), "{}", text(&second.stderr));
    assert!(run.join("asterisk.pid").exists(), "the first server's file is not the second's to remove");

    let said = console(&site.config(), "core show version\ncore sho?\n!ls\nexit\n");
    assert!(said.starts_with("Asterisk "), "{said}");
    assert!(said.contains("\nshow\n") && said.contains("Shell commands are not run"), "{said}");

    assert!(site.call(&["-rx", "core stop now"]).status.success());
    site.pid = None;
    // The command may return before the process has removed its files; the socket is the last to go.
    let give_up = Instant::now() + PATIENCE;
    while run.join("asterisk.ctl").exists() || run.join("asterisk.pid").exists() {
        assert!(
            Instant::now() < give_up,
            "the files of the run folder stay: {:?}",
            std::fs::read_dir(&run).unwrap().collect::<Vec<_>>()
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_process_without_descriptors_rests_and_answers_again_when_it_has_some() {
    let mut site = Site::new("descriptors");
    site.start("ulimit -n 64;");
    let socket = site.folder.join("run/asterisk.ctl");
    // More than the process can hold: the rest waits in the kernel's queue or is closed at the door.
    let crowd: Vec<_> = (0..80).map(|_| std::os::unix::net::UnixStream::connect(&socket).unwrap()).collect();
    let used = processor_ticks(site.pid.unwrap());
    drop(crowd);
    let output = site.call(&["-rx", "core show version"]);
    assert!(
        output.status.success() && text(&output.stdout).starts_with("Asterisk "),
        "{}",
        text(&output.stderr)
    );
    let spent = processor_ticks(site.pid.unwrap()) - used;
    assert!(spent < 50, "{spent} hundredths of a second of processor time while resting");
}

/// Processor time of a process in hundredths of a second (proc(5): utime and stime).
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// A console without a terminal: commands from standard input.
fn console(config: &Path, input: &str) -> String {
    let mut child = program()
        .arg("-C")
        .arg(config)
        .arg("-r")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    text(&output.stdout)
}

#[test]
fn doctor_judges_the_running_server_for_the_calls_that_are_asked_for() {
    let mut site = Site::new("doctor");
    let doctor = |site: &Site, calls: &str| {
        let output = site.call(&["doctor", "-M", calls, "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), told)
    };
    let open_files = |told: &serde_json::Value| {
        let checks = told["checks"].as_array().unwrap().iter();
        checks.clone().find(|row| row["check"] == "open files").unwrap()["level"].clone()
    };
    site.start("ulimit -n 900 &&");
    let pid = site.pid.unwrap();
    let (status, told) = doctor(&site, "500");
    assert_eq!(told["limits_of"], format!("the running server, process {pid}"));
    assert_eq!((status, open_files(&told)), (Some(2), "error".into()), "{told}");
    let (_, told) = doctor(&site, "50");
    assert_eq!((told["calls"].as_u64(), open_files(&told)), (Some(50), "good".into()), "{told}");
    let (status, told) = doctor(&site, "40000");
    assert_eq!((status, told["level"].as_str()), (Some(2), Some("error")), "there are not so many ports");

    let missing = program().args(["-C", "/no/such/asterisk.conf", "doctor"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(3), "nothing to judge by");
    assert!(text(&missing.stderr).contains("/no/such/asterisk.conf"), "{}", text(&missing.stderr));
}

#[test]
fn metrics_are_served_where_http_conf_says_and_a_reload_moves_them() {
    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpStream};

    let mut site = Site::new("metrics");
    // An address that hardly another process has.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 46 + high % 200, low, 1);
    let listen = |site: &Site, port: u16| {
        let text = format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={port}\n");
        std::fs::write(site.folder.join("http.conf"), text).unwrap();
    };
    let scrape = |port: u16| -> std::io::Result<String> {
        let mut stream = TcpStream::connect((ip, port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let (first, second) = (8088, 8090);
    listen(&site, first);
    std::fs::write(site.folder.join("prometheus.conf"), "[general]\nenabled=yes\n").unwrap();
    site.start("");
    let answer = scrape(first).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\nstrowger_media_worker_seconds_total{worker=\"0\",phase=\"idle\"} "),
        "{answer}"
    );
    listen(&site, second);
    assert!(site.call(&["-rx", "core reload"]).status.success());
    assert!(scrape(second).unwrap().contains("\nasterisk_calls_count 0\n"));
    assert!(scrape(first).is_err(), "nobody listens where it was");
}

#[test]
fn db_makes_completes_and_checks_the_standard_tables_and_names_what_is_wrong() {
    let site = Site::new("db");
    let url = format!("sqlite:{}", site.folder.join("pbx.db").display());
    let db = |words: &[&str]| {
        let output = program().arg("db").args(words).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, said, _) = db(&["check", &url, "cdr", "ps_aors"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("cdr: missing\nps_aors: missing\n2 of 2 tables are not whole"), "{said}");
    let (code, said, error) = db(&["create", &url]);
    assert_eq!(code, Some(0), "{said}{error}");
    assert!(said.contains("ps_endpoints: created\n") && said.contains("iaxfriends: created\n"), "{said}");
    let (code, said, _) = db(&["upgrade", &url, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("\"wanting\": 0") && !said.contains("created"), "{said}");
    assert_eq!(db(&["check", &url]).0, Some(0));
    let connection = realtime::Connection::new("db", realtime::Target::from_url(&url).unwrap());
    let settings = realtime::Settings { connections: vec![connection] };
    let mut databases = realtime::Databases::open(settings).unwrap();
    let mut sql = |text: &str| {
        let query = realtime::Query::Raw { sql: text.to_owned(), limit: Some(0) };
        databases.ask("db", query).unwrap();
    };
    sql("DROP INDEX iaxfriends_name_key");
    sql("INSERT INTO iaxfriends (id, name, type) VALUES (1, 'a', 'friend'), (2, 'a', 'user')");
    let (code, said, _) = db(&["check", &url, "iaxfriends"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("iaxfriends: lacks a unique index over name\n1 of 1 tables"), "{said}");
    let (code, said, _) = db(&["upgrade", &url, "iaxfriends"]);
    assert_eq!(code, Some(1), "{said}");
    let told = "iaxfriends: lacks a unique index over name, which is not added: several rows have 'a'\n  remedy: leave one row";
    assert!(said.starts_with(told), "{said}");
    let (_, said, _) = db(&["upgrade", &url, "iaxfriends", "--json"]);
    assert!(said.contains("\"doubles\": [\n") && said.contains("\"wanting\": 1"), "{said}");
    sql("DELETE FROM iaxfriends WHERE id = 2");
    let (code, said, _) = db(&["upgrade", &url, "iaxfriends"]);
    assert_eq!((code, &said[..]), (Some(0), "iaxfriends: added a unique index over name\n"));
    for (words, expected) in [
        (["check", "sqlite:/nowhere/at/all/pbx.db", "cdr"], "remedy: "),
        (["check", "mysql://ann:secret@127.0.0.1:1/pbx", "cdr"], "cannot be reached"),
        (["check", "oracle://ann:secret@db/pbx", "cdr"], "mysql://"),
        (["check", &url, "no_such_table"], "there are ps_endpoints, "),
    ] {
        let (code, said, error) = db(&words);
        assert_eq!(code, Some(1), "{words:?}: {said}");
        assert!(error.contains(expected) && !error.contains("secret"), "{words:?}: {error}");
    }
}
