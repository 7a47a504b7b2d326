//! The manager protocol, spoken by a Python client from PyPI.

use e2e::{Phone, Server, Site, python, wait};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PORT: &str = "5038";
const SECRET: &str = "a-long-manager-secret";

fn server(name: &str) -> Server {
    let site = Site::new(name).phone("bob").dialplan(
        "[test]\nexten => event,1,Answer()\n same => n,UserEvent(Basket,Fruit: apple,Colour: ${COLOUR})\n \
         same => n,Hangup()\n",
    );
    let ip = site.sip.ip();
    Server::start(site.add(
        "manager.conf",
        &format!(
            "[general]\nenabled=yes\nport={PORT}\nbindaddr={ip}\n\
             [admin]\nsecret={SECRET}\nread=all\nwrite=all\n\
             [reader]\nsecret={SECRET}\nread=system\nwrite=system\n"
        ),
    ))
}

fn client(server: &Server, python: &Path, user: &str, how: &str) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/manager_client.py");
    Command::new(python)
        .arg(script)
        .args([&server.site.sip.ip().to_string(), PORT, user, SECRET, how])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python starts")
}

fn seen(client: Child) -> Value {
    let output = client.wait_with_output().expect("python ends");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}\n{said}");
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}\n{error}"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Events of one name about channels of bob, in order.
fn events<'a>(seen: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = seen["events"].as_array().expect("a list of events");
    all.iter().filter(|event| text(event, "Event") == name).collect()
}

#[test]
fn a_client_from_pypi_logs_in_asks_places_a_call_and_hears_its_events() {
    let Some(python) = python() else { return };
    for how in ["plain", "md5"] {
        let server = server(how);
        let mut bob = Phone::new(server.site.sip, "bob");
        bob.must_register();
        let client = client(&server, &python, "admin", how);
        let invite = bob.ring();
        assert!(invite.must("From").contains("7000"), "{}", invite.text());
        bob.take(&invite);
        bob.until_hung_up();
        let seen = seen(client);
        for (answer, key, expected) in [
            ("login", "Response", "Success"),
            ("ping", "Ping", "Pong"),
            ("setvar", "Response", "Success"),
            ("getvar", "Value", "apple"),
            ("unknown", "Response", "Error"),
            ("originate", "Response", "Success"),
            ("logoff", "Response", "Goodbye"),
        ] {
            assert_eq!(text(&seen[answer], key), expected, "{how}: {answer}: {}", seen[answer]);
        }
        assert!(seen["command"].to_string().contains("Asterisk "), "{}", seen["command"]);
        assert!(seen["channels"].to_string().contains("CoreShowChannelsComplete"), "{}", seen["channels"]);
        assert!(seen["status"].to_string().contains("StatusComplete"), "{}", seen["status"]);

        let channel = |name: &str| {
            let found = events(&seen, name);
            let of_bob = found.iter().find(|event| text(event, "Channel").starts_with("PJSIP/bob-"));
            (*of_bob.unwrap_or_else(|| panic!("{how}: no {name} of bob in {}", seen["events"]))).clone()
        };
        let uniqueid = text(&channel("Newchannel"), "Uniqueid").to_owned();
        assert!(uniqueid.contains('.'), "{uniqueid}");
        for name in ["Newchannel", "Newstate", "Newexten", "Hangup", "UserEvent"] {
            let event = channel(name);
            assert_eq!(text(&event, "Uniqueid"), uniqueid, "{how}: {event}");
            for field in ["ChannelState", "ChannelStateDesc", "Context", "Exten", "Priority", "Linkedid"] {
                assert!(event.get(field).is_some(), "{how}: {name} lacks {field}: {event}");
            }
        }
        let basket = channel("UserEvent");
        assert_eq!(
            ["UserEvent", "Fruit", "Colour"].map(|key| text(&basket, key)),
            ["Basket", "apple", "green"],
            "{basket}"
        );
        assert_eq!(text(&channel("Hangup"), "Cause"), "16");
    }
}

#[test]
fn a_wrong_secret_is_refused() {
    let Some(python) = python() else { return };
    let server = server("wrong");
    let seen = seen(client(&server, &python, "admin", "wrong"));
    assert_eq!(text(&seen["login"], "Response"), "Error", "{seen}");
    assert_eq!(text(&seen["login"], "Message"), "Authentication failed", "{seen}");
    assert!(events(&seen, "FullyBooted").is_empty(), "{seen}");
}

#[test]
fn the_greeting_is_what_clients_look_for() {
    use std::io::Read as _;
    let server = server("greeting");
    let mut stream = std::net::TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    let mut greeting = [0; 64];
    let mut length = 0;
    wait::until_true("a greeting comes", || {
        length += stream.read(&mut greeting[length..]).unwrap_or(0);
        greeting[..length].ends_with(b"\r\n")
    });
    let greeting = String::from_utf8_lossy(&greeting[..length]).into_owned();
    assert!(greeting.starts_with("Asterisk Call Manager/"), "{greeting}");
}

#[test]
fn what_a_user_may_not_do_is_refused() {
    use std::io::{Read as _, Write as _};
    let server = server("rights");
    let mut stream = std::net::TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("a time-out");
    let mut heard = String::new();
    let mut until = |stream: &mut std::net::TcpStream, words: &str| {
        wait::until(words, || {
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).unwrap_or(0);
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
            heard.contains(words).then(|| std::mem::take(&mut heard))
        })
    };
    write!(stream, "Action: Ping\r\nActionID: before\r\n\r\n").expect("the connection stands");
    let said = until(&mut stream, "ActionID: before");
    assert!(said.contains("Response: Error"), "a stranger is served: {said}");
    let login = format!("Action: Login\r\nUsername: reader\r\nSecret: {SECRET}\r\nActionID: login\r\n\r\n");
    stream.write_all(login.as_bytes()).expect("the connection stands");
    until(&mut stream, "Authentication accepted");
    for (number, action) in [
        "Action: Originate\r\nChannel: PJSIP/bob\r\nApplication: System\r\nData: id",
        "Action: Originate\r\nChannel: PJSIP/bob\r\nContext: test\r\nExten: event\r\nPriority: 1",
        "Action: Getvar\r\nVariable: SHELL(id)",
        "Action: Setvar\r\nVariable: FRUIT\r\nValue: apple",
    ]
    .iter()
    .enumerate()
    {
        stream.write_all(format!("{action}\r\nActionID: no{number}\r\n\r\n").as_bytes()).expect("it stands");
        let said = until(&mut stream, &format!("ActionID: no{number}"));
        assert!(said.contains("Response: Error"), "{action}: {said}");
    }
    assert_eq!(server.channels(), 0);
}
