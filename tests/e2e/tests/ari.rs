//! The REST interface: with the library that sites use, unmodified, from npm; as a stranger meets it; and with a program
//! that does not read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{Authority, Baresip, Phone, Secure, Server, Site, installed, node_with, wait};
use serde_json::Value;

const PASSWORD: &str = "a-long-ari-password";
const PORT: u16 = 8088;
/// What the phones say.
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;

fn site(name: &str) -> Site {
    site_with(name, "")
}

/// With more lines of http.conf.
fn site_with(name: &str, more: &str) -> Site {
    let site = Site::new(name).phone("alice").phone("bob").prompt("welcome", 1000.0, 0.7).dialplan(
        "[test]\nexten => 100,1,Stasis(hello,door,two)\n same => n,Hangup()\nexten => 200,1,Answer()\n same => n,Wait(60)\n",
    );
    let ip = site.sip.ip();
    site.add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={PORT}\n{more}")).add(
        "ari.conf",
        &format!(
            "[general]\nenabled=yes\n[panel]\ntype=user\npassword={PASSWORD}\n[looks]\ntype=user\npassword={PASSWORD}\nread_only=yes\n"
        ),
    )
}

/// Sends a request; status and body.
fn ask(server: &Server, user: &str, method: &str, target: &str) -> (u16, String) {
    let mut stream = TcpStream::connect((server.site.sip.ip(), PORT)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    let mark = if target.contains('?') { '&' } else { '?' };
    let request = format!(
        "{method} /ari{target}{mark}api_key={user}:{PASSWORD} HTTP/1.1\r\nHost: pbx\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the connection stands");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
}

/// A program that is connected, its handshake read.
fn connect(server: &Server, query: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect((server.site.sip.ip(), PORT)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    let request = format!(
        "GET /ari/events?{query}&api_key=panel:{PASSWORD} HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the connection stands");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    assert!(line.contains(" 101 "), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("a header");
    }
    reader
}

/// The next event.
fn event(program: &mut BufReader<TcpStream>) -> Value {
    let mut head = [0; 2];
    program.read_exact(&mut head).expect("a frame");
    let length = match head[1] {
        126 => {
            let mut more = [0; 2];
            program.read_exact(&mut more).expect("a length");
            usize::from(u16::from_be_bytes(more))
        }
        short => usize::from(short),
    };
    let mut text = vec![0; length];
    program.read_exact(&mut text).expect("an event");
    serde_json::from_slice(&text).expect("JSON")
}

/// Events up to the one of this name.
fn until(program: &mut BufReader<TcpStream>, name: &str) -> Value {
    loop {
        let event = event(program);
        if event["type"] == name {
            return event;
        }
    }
}

#[test]
fn ari_client_from_npm_calls_plays_bridges_records_and_hears() {
    let Some((node, modules)) = node_with("ari-client") else { return };
    if !installed(&["baresip"]) {
        return;
    }
    let server = Server::start(site("ari-client"));
    let alice = Baresip::start(server.site.sip, "alice", "pcmu", ALICE);
    let bob = Baresip::start(server.site.sip, "bob", "pcmu", BOB);
    wait::until_true("both phones are there", || {
        server.cli("pjsip show contacts").matches("sip:").count() >= 2
    });
    let mut program = Command::new(node)
        .env("NODE_PATH", modules)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("node/ari_client.js"))
        .args([&format!("http://{}:{PORT}", server.site.sip.ip()), "panel", PASSWORD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(program.stdout.take().expect("its output"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    if line.trim() == "talking" {
        alice.until_hears(&[BOB], &[ALICE, BOB]);
        bob.until_hears(&[ALICE], &[ALICE, BOB]);
        assert!(server.cli("ari show apps").contains("hello"));
        program.stdin.take().expect("its input").write_all(b"go on\n").expect("it listens");
        line.clear();
        said.read_line(&mut line).expect("it says what it has seen");
    }
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
    for (what, expected) in [
        ("apps", serde_json::json!(["hello"])),
        ("args", serde_json::json!(["alice"])),
        ("same", true.into()),
        ("variable", "green".into()),
        ("playback", "done".into()),
        ("bridged", 2.into()),
        ("stored", serde_json::json!(["talk"])),
        ("ended", true.into()),
    ] {
        assert_eq!(seen[what], expected, "{what}: {seen}");
    }
    assert_eq!(seen["endpoints"], serde_json::json!(["PJSIP/alice online", "PJSIP/bob online"]), "{seen}");
    assert_eq!(
        (&seen["recording"]["state"], &seen["recording"]["duration"]),
        (&"done".into(), &2.into()),
        "{seen}"
    );
    assert!(seen["missing"].as_str().is_some_and(|text| text.contains("Channel not found")), "{seen}");
    // Two seconds at 8 kHz.
    assert!(seen["file"].as_u64().is_some_and(|length| length > 20_000), "{}", seen["file"]);
    let names: Vec<&str> = seen["events"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    for wanted in [
        "Dial",
        "ChannelStateChange",
        "StasisStart",
        "PlaybackStarted",
        "PlaybackFinished",
        "ChannelEnteredBridge",
        "RecordingStarted",
        "RecordingFinished",
        "ChannelLeftBridge",
        "BridgeDestroyed",
        "ChannelHangupRequest",
        "StasisEnd",
        "ChannelDestroyed",
    ] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    let count = |name: &str| names.iter().filter(|own| **own == name).count();
    assert_eq!((count("StasisStart"), count("StasisEnd"), count("PlaybackFinished")), (2, 2, 1), "{names:?}");
    server.until_idle();
}

#[test]
fn a_call_of_a_phone_is_a_programs_until_it_lets_it_go() {
    let mut server = Server::start(site("ari-phone"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    let mut program = connect(&server, "app=hello");
    alice.begin("100");
    let start = until(&mut program, "StasisStart");
    assert_eq!(start["args"], serde_json::json!(["door", "two"]));
    assert!(start["channel"]["protocol_id"].as_str().is_some_and(|id| !id.is_empty()), "{start}");
    let id = start["channel"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(ask(&server, "looks", "POST", &format!("/channels/{id}/answer")).0, 403);
    assert_eq!(ask(&server, "looks", "GET", &format!("/channels/{id}")).0, 200);
    assert_eq!(ask(&server, "panel", "POST", &format!("/channels/{id}/answer")).0, 204);
    assert_eq!(alice.outcome().status(), Some(200));
    assert_eq!(
        ask(
            &server,
            "panel",
            "POST",
            &format!("/channels/{id}/continue?context=test&extension=200&priority=1")
        )
        .0,
        204
    );
    until(&mut program, "StasisEnd");
    assert_eq!(ask(&server, "panel", "DELETE", &format!("/channels/{id}")).0, 204);
    alice.until_hung_up();
    assert_eq!(ask(&server, "nobody", "GET", "/channels").0, 401);
    server.assert_healthy();
}

#[test]
fn a_program_that_does_not_read_is_disconnected_and_delays_nobody() {
    let server = Server::start(site("ari-deaf"));
    let deaf = connect(&server, "app=deaf");
    let connected = |server: &Server| server.json("ari show status")["connections"].as_u64().unwrap_or(0);
    assert_eq!(connected(&server), 1);
    let filler = "x".repeat(6_000);
    // What the kernel takes for a socket that nobody reads is a few megabytes; then ours counts.
    for number in 0.. {
        assert!(number < 8_000, "48 MB wait for a program that does not read");
        let (status, body) =
            ask(&server, "panel", "POST", &format!("/events/user/{filler}?application=deaf"));
        if status == 404 {
            break;
        }
        assert_eq!(status, 204, "{body}");
    }
    assert_eq!(connected(&server), 0);
    drop(deaf);
}

#[test]
fn the_same_is_served_under_tls() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("ari");
    let own = authority.sign("DNS:pbx.example.com");
    let (certificate, key) = (own.certificate.display(), own.key.display());
    let more = format!("prefix=pbx\ntlsenable=yes\ntlscertfile={certificate}\ntlsprivatekey={key}\n");
    let server = Server::start(site_with("ari-tls", &more));
    let list = authority.list().display().to_string();
    let verified = ["-CAfile", &list, "-verify_return_error", "-verify_hostname", "pbx.example.com"];
    let at = SocketAddr::new(server.site.sip.ip(), 8089);
    let key = format!("api_key=panel:{PASSWORD}");
    let mut client = Secure::connect(at, &verified);
    client.send(format!(
        "GET /pbx/ari/api-docs/resources.json?{key} HTTP/1.1\r\nHost: pbx.example.com\r\n\r\n"
    ));
    client.until("HTTP/1.1 200 OK");
    client.until("https://pbx.example.com/pbx/ari");
    let mut program = Secure::connect(at, &verified);
    program.send(format!(
        "GET /pbx/ari/events?app=hello&{key} HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ));
    program.until("HTTP/1.1 101 ");
    let mut client = Secure::connect(at, &verified);
    client.send(format!(
        "POST /pbx/ari/events/user/word?application=hello&{key} HTTP/1.1\r\nHost: pbx\r\nContent-Length: 0\r\n\r\n"
    ));
    client.until("HTTP/1.1 204 ");
    program.until("ChannelUserevent");
}
