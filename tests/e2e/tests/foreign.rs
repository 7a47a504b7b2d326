//! Clients that others have written, each with what it does: sipsak asks, registers, sends texts and floods; linphone's
//! command line client registers and calls.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use e2e::{Owned, Phone, Server, Site, address, free_ports, installed, wait};

const DIALPLAN: &str = "
[test]
exten => alice,1,Dial(PJSIP/alice,20)
exten => bob,1,Dial(PJSIP/bob,20)
exten => notes,1,Set(DB(notes/said)=${MESSAGE(body)})
 same => n,Set(DB(notes/by)=${MESSAGE(from)})
";

fn server(name: &str) -> Server {
    Server::start(Site::new(name).phone("alice").phone("bob").dialplan(DIALPLAN))
}

/// Runs sipsak to its end as user `alice`.
fn sipsak(server: &Server, words: &[&str]) -> Output {
    let own = address();
    Command::new("sipsak")
        .args(["-H", &own.to_string(), "-l", &free_ports(own, 1).to_string(), "-vvv"])
        .args(["--auth-username=alice", &format!("--password={}", e2e::SECRET)])
        .args(words)
        .args(["-s", &format!("sip:alice@{}", server.site.sip)])
        .stdin(Stdio::null())
        .output()
        .expect("sipsak starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn sipsak_asks_registers_and_sends_a_text() {
    if !installed(&["sipsak"]) {
        return;
    }
    let mut server = server("sipsak");
    let at = server.site.sip;
    // Requests of alice, each challenged first. (sipsak's own message mode crashes in Debian's 0.9.8.)
    for (method, user, body, status) in
        [("OPTIONS", "alice", "", "SIP/2.0 200"), ("MESSAGE", "notes", "bring the keys", "SIP/2.0 202")]
    {
        let own = format!("{}:{}", address(), free_ports(address(), 1));
        let text = format!(
            "{method} sip:{user}@{at} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK{method};rport\r\n\
             From: <sip:alice@{at}>;tag=1\r\nTo: <sip:{user}@{at}>\r\nCall-ID: {method}@{own}\r\nCSeq: 1 {method}\r\n\
             Contact: <sip:alice@{own}>\r\nMax-Forwards: 70\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let file = server.site.place.join("request");
        std::fs::write(&file, text).expect("a file");
        let asked = sipsak(&server, &["-f", &file.display().to_string()]);
        assert!(said(&asked).contains(status), "{method}: {}", said(&asked));
        assert_eq!(asked.status.code(), Some(0), "{method}: {}", said(&asked));
    }
    wait::until_true("the text is taken", || {
        server.database_now("notes", "said").is_some_and(|text| text.contains("bring the keys"))
    });
    assert!(server.database("notes", "by").contains("alice"));
    // A registration.
    let contact = format!("sip:alice@{}:5099", address());
    let registered = sipsak(&server, &["-U", "-C", &contact, "-x", "120"]);
    assert_eq!(registered.status.code(), Some(0), "{}", said(&registered));
    wait::until_true("the contact is known", || server.cli("pjsip show contacts").contains(&contact));
    server.assert_healthy();
    server.until_idle();
}

#[test]
fn sipsak_floods_and_a_phone_registers_all_the_same() {
    if !installed(&["sipsak"]) {
        return;
    }
    let mut server = server("flood");
    let own = address();
    let flood = Command::new("sipsak")
        .args(["-H", &own.to_string(), "-F", "-e", "2000", "-s", &format!("sip:alice@{}", server.site.sip)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sipsak starts");
    let mut flood = Owned(flood);
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    wait::until_true("the flood is over", || flood.0.try_wait().expect("it can be asked").is_some());
    server.assert_healthy();
    server.until_idle();
}

/// linphonec under a home of its own, told what to do by its standard input.
struct Linphone {
    process: Owned,
    input: std::process::ChildStdin,
    log: std::path::PathBuf,
}

impl Linphone {
    fn start(server: &Server) -> Self {
        let home = server.site.place.join("linphone");
        std::fs::create_dir_all(home.join(".local/share/linphone")).expect("a folder");
        let own = address();
        let port = free_ports(own, 1);
        let config = format!(
            "[sip]\nsip_port={port}\nsip_tcp_port=0\nsip_tls_port=0\nguess_hostname=0\n[video]\ncapture=0\ndisplay=0\n"
        );
        let path = home.join("linphonerc");
        std::fs::write(&path, config).expect("a file");
        let log = home.join("said");
        let file = std::fs::File::create(&log).expect("a file");
        let mut child = Command::new("linphonec")
            .arg("-c")
            .arg(&path)
            .env("HOME", &home)
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a handle"))
            .stderr(file)
            .spawn()
            .expect("linphonec starts");
        let input = child.stdin.take().expect("its input");
        Self { process: Owned(child), input, log }
    }
    fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("linphonec listens");
    }
    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

#[test]
fn linphone_registers_and_calls_a_phone() {
    if !installed(&["linphonec"]) {
        return;
    }
    let server = server("linphone");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let mut linphone = Linphone::start(&server);
    linphone.tell("soundcard use files");
    let at = server.site.sip;
    linphone.tell(&format!("register sip:alice@{at} sip:{at} {}", e2e::SECRET));
    wait::until_true("linphone has registered", || server.cli("pjsip show contacts").contains("sip:alice@"));
    linphone.tell(&format!("call sip:bob@{at}"));
    let invite = bob.ring();
    assert!(invite.must("From").contains("alice"), "{}\n{}", invite.text(), linphone.said());
    bob.take(&invite);
    wait::until_true("linphone's call is answered", || server.channels() == 2);
    linphone.tell("terminate");
    bob.until_hung_up();
    server.until_idle();
    linphone.tell("quit");
    wait::until_true("linphone has gone", || {
        linphone.process.0.try_wait().expect("it can be asked").is_some()
    });
}
