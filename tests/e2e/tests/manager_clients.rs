//! The manager protocol with clients that sites use, unmodified, from PyPI and npm; and with one that does not read.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::{Phone, Server, Site, node_with, python_with, wait};
use serde_json::Value;

const PORT: &str = "5038";
const SECRET: &str = "a-long-manager-secret";

fn server(name: &str) -> Server {
    let site = Site::new(name).phone("alice").phone("bob").dialplan(
        "[test]\nexten => event,1,Answer()\n same => n,UserEvent(Basket,Colour: ${COLOUR})\n same => n,Hangup()\n\
         exten => 200,1,Dial(PJSIP/bob,20)\n same => n,Hangup()\n\
         exten => 201,1,Dial(Local/200@test,20)\n same => n,Hangup()\n\
         exten => 202,1,Answer()\n same => n,Wait(60)\n",
    );
    let ip = site.sip.ip();
    Server::start(site.add(
        "manager.conf",
        &format!("[general]\nenabled=yes\nport={PORT}\nbindaddr={ip}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n"),
    ))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn start(command: &mut Command, server: &Server, more: &[&str]) -> Child {
    let ip = server.site.sip.ip().to_string();
    command
        .args([&ip, PORT, "admin", SECRET])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client starts")
}

fn said(client: Child) -> Value {
    let output = client.wait_with_output().expect("the client ends");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}\n{said}");
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}\n{error}"))
}

/// A client asks, calls bob, and hears the end of that call.
fn places_a_call(name: &str, mut command: Command) {
    let server = server(name);
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let client = start(&mut command, &server, &[]);
    let invite = bob.ring();
    bob.take(&invite);
    bob.until_hung_up();
    let seen = said(client);
    for answer in ["login", "ping", "originate"] {
        assert_eq!(seen[answer], "Success", "{name}: {answer}: {seen}");
    }
    assert_eq!(seen["logoff"], "Goodbye", "{name}: {seen}");
    assert!(seen["version"].to_string().contains("Asterisk "), "{name}: {}", seen["version"]);
    if let Some(value) = seen.get("variable") {
        assert_eq!(value, "value", "{name}");
    }
    let events = seen["events"].as_array().expect("a list of events");
    let of = |wanted: &str| events.iter().find(|event| event[0] == wanted).map(|event| event[1].to_string());
    let hangup = of("Hangup").unwrap_or_else(|| panic!("{name}: no Hangup in {seen}"));
    assert!(hangup.contains("PJSIP/bob-"), "{name}: {hangup}");
    let basket = of("UserEvent").unwrap_or_else(|| panic!("{name}: no UserEvent in {seen}"));
    assert!(basket.contains("Basket") && basket.contains("green"), "{name}: {basket}");
}

#[test]
fn pyst2_from_pypi_asks_calls_and_hears() {
    let Some(python) = python_with("asterisk.manager", "pyst2") else { return };
    let mut command = Command::new(python);
    command.arg(script("python/other_clients.py")).arg("pyst2");
    places_a_call("pyst2", command);
}

#[test]
fn asterisk_ami_from_pypi_asks_calls_and_hears() {
    let Some(python) = python_with("asterisk.ami", "asterisk-ami") else { return };
    let mut command = Command::new(python);
    command.arg(script("python/other_clients.py")).arg("asterisk-ami");
    places_a_call("asterisk-ami", command);
}

#[test]
fn asterisk_manager_and_asterisk_ami_client_from_npm_ask_call_and_hear() {
    for client in ["asterisk-manager", "asterisk-ami-client"] {
        let Some((node, modules)) = node_with(client) else { continue };
        let mut command = Command::new(node);
        command.env("NODE_PATH", modules).arg(script("node/clients.js")).arg(client);
        places_a_call(client, command);
    }
}

/// Who took part, without the number behind the name.
fn party(name: &Value) -> &str {
    let name = name.as_str().unwrap_or_default();
    name.rsplit_once('-').map_or(name, |(name, _)| name)
}

#[test]
fn cacofonisk_from_pypi_makes_the_right_calls_of_the_events_and_complains_of_none() {
    let Some(python) = python_with("cacofonisk", "cacofonisk") else { return };
    let server = server("cacofonisk");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    let mut command = Command::new(python);
    let client = start(command.arg(script("python/call_flows.py")), &server, &["3"]);
    wait::until_true("cacofonisk is logged in", || server.cli("manager show connected").contains("admin"));
    for number in ["200", "201"] {
        alice.begin(number);
        let invite = bob.ring();
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200), "{number}");
        alice.hang_up();
        bob.until_hung_up();
        wait::until_true("the call is gone", || server.channels() == 0);
    }
    alice.begin("200");
    let invite = bob.ring();
    bob.refuse(&invite, 486, "Busy Here");
    assert!(alice.outcome().status() >= Some(400));
    let told = said(client);
    assert_eq!(told["complaints"], serde_json::json!([]), "{told}");
    let heard: Vec<(&str, &str, Vec<&str>)> = told["heard"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|what| {
            let others = what[2].as_array().map(|others| others.iter().map(party).collect());
            (what[0].as_str().unwrap_or_default(), party(&what[1]), others.unwrap_or_default())
        })
        .collect();
    let call = |end| {
        [
            ("dial", "PJSIP/alice", vec!["PJSIP/bob"]),
            ("up", "PJSIP/alice", vec!["PJSIP/bob"]),
            (end, "PJSIP/alice", vec![]),
        ]
    };
    let mut expected = [call("hangup completed"), call("hangup completed")].concat();
    expected.extend([("dial", "PJSIP/alice", vec!["PJSIP/bob"]), ("hangup busy", "PJSIP/alice", vec![])]);
    assert_eq!(heard, expected);
}

/// A connection of a user that is logged in.
fn login(server: &Server, events: &str) -> TcpStream {
    let mut stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\nEvents: {events}\r\n\r\n");
    stream.write_all(login.as_bytes()).expect("the connection stands");
    until(&mut stream, "Authentication accepted");
    stream
}

fn until(stream: &mut TcpStream, words: &str) -> String {
    let mut heard = String::new();
    wait::until(words, || {
        let mut buffer = [0; 65_536];
        let length = stream.read(&mut buffer).unwrap_or(0);
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        heard.contains(words).then(|| heard.clone())
    })
}

#[test]
fn a_client_that_does_not_read_is_disconnected_and_delays_nobody() {
    let server = server("deaf");
    let deaf = login(&server, "on");
    let mut good = login(&server, "off");
    let connected = |server: &Server| server.cli("manager show connected").matches("admin").count();
    assert_eq!(connected(&server), 2);
    let filler = "x".repeat(7_000);
    let event: String = (0..16).map(|number| format!("Field{number}: {filler}\r\n")).collect();
    let event = format!("Action: UserEvent\r\nUserEvent: Flood\r\n{event}\r\n");
    // What the kernel takes for a socket that nobody reads is a few megabytes; then ours counts.
    for number in 0.. {
        assert!(number < 400, "40 MB wait for a client that does not read");
        good.write_all(event.as_bytes()).expect("the connection stands");
        until(&mut good, "Event Sent");
        good.write_all(format!("Action: Ping\r\nActionID: {number}\r\n\r\n").as_bytes()).expect("it stands");
        until(&mut good, &format!("ActionID: {number}"));
        if number % 20 == 19 && connected(&server) == 1 {
            break;
        }
    }
    // What the kernel had taken comes, and then the end.
    let mut deaf = deaf;
    wait::until_true("the connection is over", || {
        let mut buffer = vec![0; 1 << 20];
        match deaf.read(&mut buffer) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    });
}
