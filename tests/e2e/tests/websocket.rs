//! SIP over WebSocket (RFC 6455, RFC 7118): a phone that is a page, and frames that none would send.

use e2e::websocket::{REQUEST, frame};
use e2e::{Authority, Server, Site, WebSocket, installed, python_with, wait};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Port of the HTTP server, on the server's own address.
const HTTP: u16 = 8088;
const HTTPS: u16 = 8089;

/// A site that waits for WebSockets, with more lines for http.conf.
fn site(name: &str, http: &str) -> Site {
    let site = Site::new(name);
    let ip = site.sip.ip();
    site.phone("alice")
        .dialplan("[test]\nexten => 600,1,Answer()\n same => n,Echo()\n")
        .add(
            "pjsip.conf",
            "[ws]\ntype=transport\nprotocol=ws\nbind=0.0.0.0\n[wss]\ntype=transport\nprotocol=wss\n",
        )
        .add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={HTTP}\n{http}"))
}

fn http(server: &Server) -> SocketAddr {
    SocketAddr::new(server.site.sip.ip(), HTTP)
}

fn options(branch: &str) -> String {
    format!(
        "OPTIONS sip:pbx.example.com SIP/2.0\r\nVia: SIP/2.0/WS gone.invalid;branch=z9hG4bK{branch}\r\nMax-Forwards: 70\r\n\
         From: <sip:x@gone.invalid>;tag=1\r\nTo: <sip:pbx.example.com>\r\nCall-ID: {branch}\r\nCSeq: 1 OPTIONS\r\n\r\n"
    )
}

/// The Python phone registers, calls, is called and hung up on.
fn converse(server: &Server, url: &str, authority: Option<&str>) {
    let Some(python) = python_with("websocket", "websocket-client") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/ws_phone.py");
    let mut child = Command::new(python)
        .args([script, url, "alice", e2e::SECRET, "600"])
        .args(authority)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    let mut heard = Vec::new();
    let mut until = |words: &str| loop {
        match lines.next() {
            Some(Ok(line)) if line == words => return true,
            Some(Ok(line)) => heard.push(line),
            _ => return false,
        }
    };
    let called = until("called");
    let up = called && {
        server.cli("channel originate PJSIP/alice extension 600@test");
        until("up")
    };
    if up {
        let contacts = server.cli("pjsip show contacts");
        assert!(contacts.contains(".invalid;transport=ws"), "{contacts}");
        server.cli("channel request hangup all");
    }
    let over = up && until("over");
    let output = child.wait_with_output().expect("it ends");
    assert!(over && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // RFC 7118 §5.2.3: with its connection goes the only way to it.
    wait::until_true("its registration is gone", || !server.cli("pjsip show contacts").contains(".invalid"));
    server.until_idle();
}

#[test]
fn rfc7118_a_page_registers_calls_and_is_called_by_its_connection() {
    let server = Server::start(site("ws", ""));
    converse(&server, &format!("ws://{}/ws", http(&server)), None);
}

#[test]
fn rfc7118_the_same_under_tls() {
    if !installed(&["openssl"]) {
        return;
    }
    let authority = Authority::new("wss");
    let own = authority.sign("DNS:pbx.example.com");
    let lines = format!(
        "tlsenable=yes\ntlscertfile={}\ntlsprivatekey={}\nprefix=pbx\nws_allowed_origins=https://phone.example.com\n",
        own.certificate.display(),
        own.key.display()
    );
    let server = Server::start(site("wss", &lines));
    let list = authority.list().display().to_string();
    let at = SocketAddr::new(server.site.sip.ip(), HTTPS);
    converse(&server, &format!("wss://{at}/pbx/ws"), Some(&list));
}

#[test]
fn rfc6455_4_2_requests_that_lack_something_are_not_upgraded() {
    let server = Server::start(site("ws-asked", "ws_allowed_origins=https://phone.example.com\n"));
    for (name, from, to, status) in [
        ("another path", "/ws", "/wx", "404"),
        ("another method", "GET", "POST", "405"),
        ("no upgrade", "Upgrade: websocket\r\n", "", "426"),
        ("another version", "Version: 13", "Version: 12", "426"),
        ("a key that is none", "dGhlIHNhbXBsZSBub25jZQ==", "short", "400"),
        ("no subprotocol", "Sec-WebSocket-Protocol: sip\r\n", "", "400"),
        ("another subprotocol", "Protocol: sip", "Protocol: xmpp", "400"),
        ("a page of somebody else", "Host:", "Origin: https://evil.example\r\nHost:", "403"),
    ] {
        let (mut socket, answer) = WebSocket::ask(http(&server), &REQUEST.replace(from, to));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        while socket.frame().is_some() {}
    }
    let (mut socket, answer) = WebSocket::ask(
        http(&server),
        &REQUEST.replace("Host:", "Origin: https://phone.example.com\r\nHost:"),
    );
    assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
    socket.say(options("asked").as_bytes());
    assert_eq!(socket.message().status(), Some(401));
}

#[test]
fn rfc6455_7_1_7_frames_that_break_the_rules_end_their_connection_and_no_other() {
    let server = Server::start(site("ws-frames", ""));
    let mut good = WebSocket::connect(http(&server));
    good.say(options("before").as_bytes());
    assert_eq!(good.message().status(), Some(401));
    for (name, bytes, code) in [
        ("unmasked", vec![0x81, 2, b'a', b'b'], 1002),
        ("a reserved bit", frame(0xc1, b"a"), 1002),
        ("a reserved opcode", frame(0x83, b"a"), 1002),
        ("a ping of 126 bytes", frame(0x89, &[0; 126]), 1002),
        ("a ping in pieces", frame(0x09, b"a"), 1002),
        ("a continuation of nothing", frame(0x80, b"a"), 1002),
        ("text that is none", frame(0x81, &[0xff, 0xff]), 1007),
        ("65,537 bytes", frame(0x82, &vec![b'a'; 65_537]), 1009),
        ("a length of 2^63", [&[0x82, 0xff, 0x80][..], &[0; 11]].concat(), 1009),
        ("pieces that add up", [frame(0x02, &[0; 40_000]), frame(0x80, &[0; 40_000])].concat(), 1009),
        ("a goodbye of one byte", frame(0x88, &[3]), 1002),
        ("a goodbye with 1005", frame(0x88, &1005u16.to_be_bytes()), 1002),
        ("a goodbye", frame(0x88, &1000u16.to_be_bytes()), 1000),
    ] {
        let mut bad = WebSocket::connect(http(&server));
        bad.send(&bytes);
        let said = bad.frame();
        // Whoever sends on after the end may lose the goodbye to a reset.
        assert!(said.as_ref().is_none_or(|said| said.code() == Some(code)), "{name}: {said:?}");
        if bytes.len() < 200 {
            assert!(said.is_some(), "{name}: no goodbye");
        }
        while bad.frame().is_some() {}
    }
    // RFC 6455 §5.5.2 and §5.6: pings are answered, also within a message; bytes are as good as text.
    let text = options("after");
    let (head, tail) = text.as_bytes().split_at(40);
    good.send(&[frame(0x02, head), frame(0x89, b"there?"), frame(0x80, tail)].concat());
    let pong = good.frame().expect("a pong");
    assert_eq!((pong.first, &pong.payload[..]), (0x8a, &b"there?"[..]));
    assert_eq!(good.message().status(), Some(401));
    // A message that is none is answered or passed over as one in a datagram is.
    good.say(b"\r\n\r\n");
    good.say(b"nonsense");
    good.say(options("still").as_bytes());
    let answers = std::iter::from_fn(|| Some(good.message()));
    let mut answers = answers.filter(|answer| answer.header("Call-ID") == Some("still"));
    assert_eq!(answers.next().and_then(|answer| answer.status()), Some(401));
}
