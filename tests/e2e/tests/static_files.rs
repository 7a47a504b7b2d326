//! Files that HTTP serves: whole, in pieces, and nothing but those of their folder.

use e2e::{Place, Server, Site, wait};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

fn site(name: &str) -> Site {
    let site = Site::new(name);
    let ip = site.sip.ip();
    site.add(
        "http.conf",
        &format!(
            "[general]\nenabled=yes\nbindaddr={ip}\nbindport=8088\nenablestatic=yes\n\
             redirect=/ /static/pages/index.html\n"
        ),
    )
}

/// The head of an answer, and its body.
fn ask(server: &Server, request: &str) -> (String, Vec<u8>) {
    ask_with(server, request, "")
}

/// The same with more headers.
fn ask_with(server: &Server, request: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(SocketAddr::new(server.site.sip.ip(), 8088)).expect("a connection");
    stream.set_read_timeout(Some(wait::SOON)).expect("a time-out");
    stream
        .write_all(format!("{request} HTTP/1.1\r\nHost: a\r\n{headers}\r\n").as_bytes())
        .expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).expect("text"), body)
}

fn fill(place: &Place) -> Vec<u8> {
    let large = kit::Random(3).bytes(5_000_000);
    place.write("data/static-http/pages/index.html", "<p>hello</p>");
    place.write("data/static-http/large.bin", &large);
    place.write("data/static-http/private/letter.txt", "for managers");
    place.write("data/secret", "for nobody");
    std::os::unix::fs::symlink("../secret", place.join("data/static-http/out")).expect("a link");
    large
}

#[test]
fn files_of_the_folder_are_served_and_no_other() {
    let server = Server::start(site("static"));
    let large = fill(&server.site.place);
    let (head, _) = ask(&server, "GET /");
    assert!(head.contains("\r\nLocation: /static/pages/index.html\r\n"), "{head}");
    let (head, body) = ask(&server, "GET /static/pages/index.html");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Type: text/html"), "{head}");
    assert_eq!(body, b"<p>hello</p>");
    let (head, body) = ask(&server, "HEAD /static/large.bin");
    assert!(head.contains("Content-Length: 5000000\r\n") && body.is_empty(), "{head}");
    let (_, body) = ask(&server, "GET /static/large.bin");
    assert!(body == large, "{} bytes came, and are those", body.len());
    for (request, status) in [
        ("GET /static/none", "404"),
        ("GET /static/pages", "404"),
        ("GET /static/../secret", "404"),
        ("GET /static/%2e%2e/secret", "404"),
        ("GET /static/out", "404"),
        ("GET /static/private/letter.txt", "404"),
        ("GET /static//etc/passwd", "404"),
        ("POST /static/pages/index.html", "405"),
    ] {
        let (head, _) = ask(&server, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
    }
    assert_eq!(server.channels(), 0);
}

#[test]
fn rfc9110_13_1_2_a_file_is_sent_again_once_it_has_changed() {
    let server = Server::start(site("static-known"));
    fill(&server.site.place);
    let page = "GET /static/pages/index.html";
    let (head, _) = ask(&server, page);
    let tag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a validator").to_owned();
    let known = format!("If-None-Match: \"of another file\", {tag}\r\n");
    let (head, body) = ask_with(&server, page, &known);
    assert!(head.starts_with("HTTP/1.1 304 Not Modified\r\n") && body.is_empty(), "{head}");
    assert!(head.contains(&format!("\r\nETag: {tag}\r\n")), "{head}");
    server.site.place.write("data/static-http/pages/index.html", "<p>hello again</p>");
    let (head, body) = ask_with(&server, page, &known);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body == b"<p>hello again</p>", "{head}");
    assert!(!head.contains(&tag), "{head}");
}

#[test]
fn who_takes_nothing_of_a_file_keeps_nobody_waiting() {
    let server = Server::start(site("static-slow"));
    fill(&server.site.place);
    let at = SocketAddr::new(server.site.sip.ip(), 8088);
    let _open: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(at).expect("a connection");
            stream.write_all(b"GET /static/large.bin HTTP/1.1\r\n\r\n").expect("it is sent");
            stream
        })
        .collect();
    let (head, body) = ask(&server, "GET /static/pages/index.html");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body == b"<p>hello</p>", "{head}");
}
