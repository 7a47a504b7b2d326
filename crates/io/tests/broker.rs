//! The broker of programs with real programs and real servers.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use io::process::broker::{BACKLOG_BYTES_MAX, Broker, CHUNK_BYTES, CHUNKS_MAX, Report, Want};

/// Longer than any machine under load takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker and what it has said.
struct Desk {
    broker: Broker,
    news: VecDeque<(u64, Report)>,
}

impl Desk {
    fn new() -> Self {
        Self { broker: Broker::start().unwrap(), news: VecDeque::new() }
    }
    fn program(&mut self, path: &str, args: &[&str]) -> u64 {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.broker.open(Want::Program { path: path.to_owned(), args, environment: Vec::new(), audio: false })
    }
    fn shell(&mut self, script: &str) -> u64 {
        self.program("/bin/sh", &["-c", script])
    }
    /// The next news of a conversation.
    fn next(&mut self, talk: u64) -> Report {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Self { broker, news } = self;
            broker.reports().drain(|report| news.push_back(report));
            if let Some(place) = news.iter().position(|(of, _)| *of == talk) {
                return news.remove(place).unwrap().1;
            }
            assert!(Instant::now() < deadline, "no news");
            std::thread::yield_now();
        }
    }
    fn opened(&mut self, talk: u64) {
        let news = self.next(talk);
        assert!(matches!(news, Report::Open { .. }), "{}", told(&news));
    }
    /// All bytes to the end, taken as they come.
    fn rest(&mut self, talk: u64) -> String {
        let mut all = Vec::new();
        loop {
            match self.next(talk) {
                Report::Bytes(bytes) => {
                    all.extend(bytes);
                    self.broker.took(talk);
                }
                Report::End => return String::from_utf8(all).unwrap(),
                other => panic!("{}", told(&other)),
            }
        }
    }
}

fn told(report: &Report) -> String {
    match report {
        Report::Open { address, .. } => format!("open {address:?}"),
        Report::Bytes(bytes) => format!("bytes {}", bytes.len()),
        Report::End => "end".to_owned(),
        Report::Exited(code) => format!("exited {code:?}"),
        Report::Failed { not_found, why } => format!("failed {not_found} {why}"),
    }
}

#[test]
fn a_program_hears_answers_and_ends_with_its_code() {
    let mut desk = Desk::new();
    let talk = desk.shell("read a; echo \"got $a\"; exit 3");
    desk.opened(talk);
    desk.broker.send(talk, b"this\n".to_vec());
    assert_eq!(desk.rest(talk), "got this\n");
    assert_eq!(told(&desk.next(talk)), "exited Some(3)");
}

#[test]
fn arguments_reach_a_program_as_they_are_and_no_shell_sees_them() {
    let mut desk = Desk::new();
    let odd = ["a b", "$(touch /tmp/strowger-was-here)", ";id", "`id`", "'", "\"", "*", "", "\n"];
    let talk = desk.program("/usr/bin/printf", &[&["%s|"][..], &odd[..]].concat());
    desk.opened(talk);
    assert_eq!(desk.rest(talk), odd.map(|arg| format!("{arg}|")).concat());
    assert!(!std::path::Path::new("/tmp/strowger-was-here").exists());
}

#[test]
fn a_program_has_its_own_descriptors_and_nobody_elses() {
    let mut desk = Desk::new();
    let _others = [TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    let talk = desk.program("/bin/ls", &["/proc/self/fd"]);
    desk.opened(talk);
    // Whoever runs the tests may have left some open for every program.
    let usual = std::process::Command::new("/bin/ls").arg("/proc/self/fd").output().unwrap();
    assert_eq!(desk.rest(talk), String::from_utf8(usual.stdout).unwrap());
}

#[test]
fn what_cannot_be_started_says_whether_it_is_there() {
    let mut desk = Desk::new();
    let plain = std::env::temp_dir().join(format!("strowger-broker-{}", std::process::id()));
    std::fs::write(&plain, "text").unwrap();
    for (path, not_found) in [
        ("/no/such/program", true),
        (plain.to_str().unwrap(), true),
        ("/tmp", true),
        ("/bin/sh/x", true),
        ("nul\0byte", false),
    ] {
        let talk = desk.program(path, &[]);
        match desk.next(talk) {
            Report::Failed { not_found: said, .. } => assert_eq!(said, not_found, "{path:?}"),
            other => panic!("{path:?}: {}", told(&other)),
        }
    }
    std::fs::remove_file(&plain).unwrap();
}

#[test]
fn who_floods_is_read_only_as_far_as_his_lines_are_taken() {
    let mut desk = Desk::new();
    let flood = desk.program("/usr/bin/yes", &[]);
    let quiet = desk.shell("read a; echo $a");
    desk.opened(flood);
    desk.opened(quiet);
    for _ in 0..CHUNKS_MAX {
        match desk.next(flood) {
            Report::Bytes(bytes) => assert!(bytes.len() <= CHUNK_BYTES),
            other => panic!("{}", told(&other)),
        }
    }
    // Others are served meanwhile, and nothing more comes of the flood.
    desk.broker.send(quiet, b"hello\n".to_vec());
    assert_eq!(desk.rest(quiet), "hello\n");
    assert!(desk.news.iter().all(|(of, _)| *of != flood));
    desk.broker.took(flood);
    assert!(matches!(desk.next(flood), Report::Bytes(_)));
    desk.broker.close(flood);
}

#[test]
fn who_does_not_read_is_let_go_of() {
    let mut desk = Desk::new();
    let talk = desk.program("/bin/sleep", &["100"]);
    desk.opened(talk);
    // What the pipe holds comes on top.
    for _ in 0..3 {
        desk.broker.send(talk, vec![b'x'; BACKLOG_BYTES_MAX / 2]);
    }
    assert_eq!(told(&desk.next(talk)), "end");
    desk.broker.hang_up(talk);
    assert_eq!(told(&desk.next(talk)), "exited None");
}

#[test]
fn the_end_of_a_call_is_a_signal_though_this_process_has_blocked_it_and_ignores_it() {
    // As `nohup` leaves it to what it starts.
    // SAFETY: no handler of ours is replaced, and nobody sends this process SIGHUP.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    // Threads that are started from here on have signals blocked, as in the running system.
    let mut net = io::net::Net::new(io::net::Limits::default()).unwrap();
    net.catch_signals().unwrap();
    let mut desk = Desk::new();
    let talk = desk.program("/bin/sleep", &["100"]);
    desk.opened(talk);
    desk.broker.hang_up(talk);
    assert_eq!(told(&desk.next(talk)), "end");
    assert_eq!(told(&desk.next(talk)), "exited None");
}

#[test]
fn a_program_that_is_let_go_hears_what_was_said_last_and_is_collected() {
    let mut desk = Desk::new();
    let path = std::env::temp_dir().join(format!("strowger-broker-last-{}", std::process::id()));
    let talk = desk.shell(&format!("cat > {0}.part; mv {0}.part {0}", path.display()));
    desk.opened(talk);
    desk.broker.send(talk, b"the last word".to_vec());
    desk.broker.close(talk);
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read_to_string(&path).unwrap_or_default() != "the last word" {
        assert!(Instant::now() < deadline, "it heard nothing");
        std::thread::yield_now();
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn children_that_hold_the_output_open_do_not_keep_the_end_back() {
    let mut desk = Desk::new();
    let talk = desk.shell("sleep 100 & echo $!; exit 4");
    desk.opened(talk);
    let child: i32 = desk.rest(talk).trim().parse().unwrap();
    assert_eq!(told(&desk.next(talk)), "exited Some(4)");
    std::process::Command::new("/bin/kill").arg(child.to_string()).status().unwrap();
}

#[test]
fn a_program_hears_a_call_by_descriptor_three() {
    let mut desk = Desk::new();
    let talk = desk.broker.open(Want::Program {
        path: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), "head -c 8 <&3 | od -An -td2".to_owned()],
        environment: Vec::new(),
        audio: true,
    });
    let Report::Open { audio: Some(mut sink), .. } = desk.next(talk) else { panic!("no audio") };
    assert_eq!(sink.write(&[1, -2]), 2);
    assert_eq!(sink.write(&[300, -32768]), 2);
    let words = desk.rest(talk);
    assert_eq!(words.split_whitespace().collect::<Vec<_>>(), ["1", "-2", "300", "-32768"]);
    assert_eq!(told(&desk.next(talk)), "exited Some(0)");
}

#[test]
fn a_program_that_does_not_listen_loses_sound_and_costs_nothing() {
    let mut desk = Desk::new();
    let talk = desk.broker.open(Want::Program {
        path: "/bin/sleep".to_owned(),
        args: vec!["100".to_owned()],
        environment: Vec::new(),
        audio: true,
    });
    let Report::Open { audio: Some(mut sink), .. } = desk.next(talk) else { panic!("no audio") };
    let deadline = Instant::now() + PATIENCE;
    // Pipe and ring fill up.
    while sink.write(&[0; 160]) == 160 {
        assert!(Instant::now() < deadline, "there is no bound");
    }
    desk.broker.hang_up(talk);
    assert_eq!(told(&desk.next(talk)), "end");
}

#[test]
fn servers_are_tried_in_turn_and_talked_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Nobody listens there, and the kernel gives it to nobody.
    let closed = 1;
    let served = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 6];
            stream.read_exact(&mut heard).unwrap();
            stream.write_all(&heard).unwrap();
        }
    });
    let mut desk = Desk::new();
    for hosts in [vec![("127.0.0.1", closed), ("127.0.0.1", port)], vec![("localhost", port)]] {
        let hosts = hosts.into_iter().map(|(host, port)| (host.to_owned(), port)).collect();
        let talk = desk.broker.open(Want::Server { hosts });
        desk.broker.send(talk, b"hello\n".to_vec());
        desk.opened(talk);
        assert_eq!(desk.rest(talk), "hello\n");
        desk.broker.close(talk);
    }
    served.join().unwrap();
    let failures =
        [vec![("127.0.0.1".to_owned(), closed)], vec![("no.such.name.invalid".to_owned(), 1)], vec![]];
    for hosts in failures {
        let talk = desk.broker.open(Want::Server { hosts: hosts.clone() });
        let news = desk.next(talk);
        assert!(matches!(news, Report::Failed { not_found: false, .. }), "{hosts:?}: {}", told(&news));
    }
}

#[test]
fn a_server_that_accepts_and_never_speaks_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut desk = Desk::new();
    let silent = desk.broker.open(Want::Server { hosts: vec![("127.0.0.1".to_owned(), port)] });
    desk.opened(silent);
    let (stream, _): (TcpStream, _) = listener.accept().unwrap();
    let talk = desk.shell("echo quick");
    desk.opened(talk);
    assert_eq!(desk.rest(talk), "quick\n");
    desk.broker.close(silent);
    let mut rest = Vec::new();
    (&stream).read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "the connection is closed");
}
