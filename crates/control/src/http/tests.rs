use super::*;
use crate::testing::{self, Folder, sip_config};
use store::{Snapshot, Where};

/// A site whose `prometheus.conf` says this.
fn http(name: &str, prometheus: &str) -> (Http, Folder, sim::World) {
    http_with(name, prometheus, "")
}
/// The same with more lines of `http.conf`.
fn http_with(name: &str, prometheus: &str, more: &str) -> (Http, Folder, sim::World) {
    http_of(name, prometheus, more, "")
}
/// The same with lists of `acl.conf`.
fn http_of(name: &str, prometheus: &str, more: &str, acl: &str) -> (Http, Folder, sim::World) {
    let general = format!("[general]\nenabled=yes\nprefix=pbx\n{more}");
    let folder = Folder::new(&format!("http-{name}"));
    for (file, text) in [
        ("asterisk.conf", ""),
        ("http.conf", &general),
        ("prometheus.conf", prometheus),
        ("acl.conf", acl),
        ("pjsip.conf", ""),
        ("extensions.conf", ""),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let (snapshot, _) = Snapshot::load(&Where::Dir(folder.to_path_buf())).unwrap();
    let world = testing::world("[default]\nexten => 1,1,Wait(9)\n");
    let site = testing::site(&world, &folder, snapshot, sip_config());
    (Http::new(site), folder, world)
}
/// Sends a request in pieces; the answer, once there is one.
fn ask(http: &mut Http, pieces: &[&[u8]]) -> Option<String> {
    let mut out = Vec::new();
    http.open(1, "127.0.0.1:4000".parse().unwrap(), false, &mut out);
    for piece in pieces {
        http.bytes(1, piece, &mut out);
    }
    match out.as_slice() {
        [] => None,
        [Output::Send(1, bytes), Output::Close(1)] => Some(String::from_utf8(bytes.clone()).unwrap()),
        other => panic!("{other:?}"),
    }
}

const ON: &str = "[general]\nenabled=yes\n";

#[test]
fn a_request_is_answered_once_it_is_whole_and_the_connection_ends() {
    let (mut http, ..) = http("whole", ON);
    let answer = ask(&mut http, &[b"GET /pbx/met", b"rics?x=1 HTTP/1.1\r\nHost: a\r\n", b"\r\n"]).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nServer: Asterisk\r\nContent-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nContent-Length: {}\r\n", body.len()))
            && head.contains("Connection: close")
    );
    assert!(body.contains("\nasterisk_calls_count "), "{body}");
    let only_head = ask(&mut http, &[b"HEAD /pbx/metrics HTTP/1.0\r\n\r\n"]).unwrap();
    assert!(only_head.ends_with("\r\n\r\n") && only_head.contains("200 OK"), "{only_head}");
    assert_eq!(ask(&mut http, &[b"GET /pbx/metrics HTTP/1.1\r\n"]), None, "not whole yet");
}

#[test]
fn connections_that_ask_nothing_keep_nobody_out() {
    let (mut http, ..) = http("crowd", ON);
    let from = |host: u8| SocketAddr::from(([192, 0, 2, host], 4000));
    let mut out = Vec::new();
    // Eight addresses take all places; one of their connections waits for the manager.
    for session in 0..SESSIONS_MAX as u64 {
        http.open(session, from((session / 32) as u8), false, &mut out);
    }
    http.sessions.get_mut(&0).unwrap().waits = true;
    assert_eq!(out, []);
    for (name, session, host, gone) in [
        ("an address of its own", 1000, 100, 32),
        ("another one", 1001, 101, 64),
        ("the same one again", 1002, 101, 96),
        ("one of the crowd gives up its own", 1003, 7, 224),
    ] {
        http.open(session, from(host), false, &mut out);
        assert_eq!(core::mem::take(&mut out), [Output::Close(gone)], "{name}");
    }
    http.bytes(1000, b"GET /pbx/metrics HTTP/1.1\r\n\r\n", &mut out);
    assert!(matches!(&out[0], Output::Send(1000, bytes) if bytes.starts_with(b"HTTP/1.1 200")));
    // Nobody is turned out who waits.
    http.sessions.values_mut().for_each(|open| open.waits = true);
    out.clear();
    http.open(2000, from(200), false, &mut out);
    http.open(2001, from(201), false, &mut out);
    assert_eq!(out, [Output::Close(2000)], "the only one that asks nothing");
    http.sessions.values_mut().for_each(|open| open.waits = true);
    out.clear();
    http.open(2002, from(202), false, &mut out);
    assert_eq!(out, [Output::Close(2002)]);
    assert!(http.sessions.contains_key(&0));
}

#[test]
fn whatever_is_wrong_with_a_request_has_its_status() {
    let long = [&b"GET /pbx/metrics HTTP/1.1\r\nX: "[..], &vec![b'a'; 9000]].concat();
    let many = [&b"GET / HTTP/1.1\r\n"[..], &b"A: b\r\n".repeat(65), b"\r\n"].concat();
    for (name, settings, request, status) in [
        ("off", "", &b"GET /pbx/metrics HTTP/1.1\r\n\r\n"[..], "404"),
        ("elsewhere", ON, b"GET /metrics HTTP/1.1\r\n\r\n", "404"),
        (
            "another name",
            "[general]\nenabled=yes\nuri=/numbers/\n",
            b"GET /pbx/numbers HTTP/1.1\r\n\r\n",
            "200",
        ),
        ("a post", ON, b"POST /pbx/metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense", ON, b"\x00\x01\x02\r\n\r\n", "400"),
        ("a long head", ON, &long, "431"),
        ("many headers", ON, &many, "431"),
    ] {
        let (mut http, ..) = http("status", settings);
        let answer = ask(&mut http, &[request]).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
    }
}

#[test]
fn a_path_leads_elsewhere_and_the_server_says_what_it_is_when_it_is_wanted() {
    let more = "servername=<b>\ntlsenable=yes\nenable_status=yes\nredirect = / /pbx/httpstatus\nredirect=/old https://a.example/new\n";
    for (name, more, path, status, said) in [
        ("the page", more, "/pbx/httpstatus", "200", "<b>127.0.0.1:8088</b>"),
        ("under TLS", more, "/pbx/httpstatus?x", "200", "<b>127.0.0.1:8089</b>"),
        ("its name is text", more, "/pbx/httpstatus", "200", "<b>&lt;b&gt;</b>"),
        ("the top", more, "/", "302", "\r\nLocation: /pbx/httpstatus\r\n"),
        ("another server", more, "/OLD?x=1", "302", "\r\nLocation: https://a.example/new\r\n"),
        ("below it", more, "/old/more", "404", ""),
        ("outside the prefix", more, "/httpstatus", "404", ""),
        ("unless written", "", "/pbx/httpstatus", "404", ""),
        ("nothing leads on", "", "/", "404", ""),
    ] {
        let (mut http, ..) = http_with("pages", "", more);
        let answer = ask(&mut http, &[format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()]).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert!(answer.contains(said), "{name}: {answer}");
    }
}

fn begin(length: u64, bytes: &[u8]) -> Piece {
    Piece::Begin(Version { length, changed: (10, 11) }, bytes.to_vec())
}

#[test]
fn rfc9110_13_1_2_a_file_that_is_known_already_is_not_sent_again() {
    let (mut http, ..) = http_with("etag", "", "enablestatic=yes\n");
    let peer = "127.0.0.1:4000".parse().unwrap();
    let tag = "W/\"a.b-3\"";
    for (name, headers, piece, status) in [
        ("nothing is known", String::new(), begin(3, b"abc"), "200 OK"),
        ("it is", format!("If-None-Match: {tag}\r\n"), begin(3, b"abc"), "304 Not Modified"),
        (
            "in one of two lines",
            format!("If-None-Match: \"x\"\r\nif-none-match: {tag}\r\n"),
            begin(3, b"abc"),
            "304 Not Modified",
        ),
        ("another one is", "If-None-Match: \"x\"\r\n".to_owned(), begin(3, b"abc"), "200 OK"),
        ("it has changed", format!("If-None-Match: {tag}\r\n"), begin(4, b"abcd"), "200 OK"),
        ("it is gone", "If-None-Match: *\r\n".to_owned(), Piece::Missing, "404 Not Found"),
    ] {
        for method in ["GET", "HEAD"] {
            let mut out = Vec::new();
            http.open(1, peer, false, &mut out);
            let request = format!("{method} /pbx/static/a.js HTTP/1.1\r\n{headers}\r\n");
            http.bytes(1, request.as_bytes(), &mut out);
            let piece = match &piece {
                Piece::Begin(version, bytes) => Piece::Begin(*version, bytes.clone()),
                _ => Piece::Missing,
            };
            http.file(1, piece, &mut out);
            http.take_wishes();
            let [Output::Send(1, sent), Output::Close(1)] = &out[..] else { panic!("{name}: {out:?}") };
            let (head, body) = core::str::from_utf8(sent).unwrap().split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{name}: {head}");
            let is_file = !status.starts_with("404");
            assert_eq!(head.contains("\r\nETag: W/\"a.b-"), is_file, "{name}: {head}");
            assert_eq!(head.contains("\r\nCache-Control: no-cache\r\n"), is_file, "{name}: {head}");
            let is_whole = status.starts_with("200");
            assert_eq!(is_whole && method == "GET", body.starts_with("abc"), "{name}: {body}");
            let is_bare = !head.contains("Content-Length") && !head.contains("Content-Type");
            assert_eq!(is_bare, status.starts_with("304"), "{name}: {head}");
        }
    }
}

#[test]
fn a_file_is_sent_piece_by_piece_as_long_as_somebody_takes_it() {
    let (mut http, ..) = http_with("static", "", "enablestatic=yes\n");
    let peer = "127.0.0.1:4000".parse().unwrap();
    for (name, method, pieces, expected, closes) in [
        ("whole", "GET", vec![begin(3, b"abc")], "\r\n\r\nabc", true),
        ("empty", "GET", vec![begin(0, b"")], "Length: 0\r\n", true),
        ("two pieces", "GET", vec![begin(5, b"abc"), Piece::More(b"de".to_vec())], "abcde", true),
        ("it has grown", "GET", vec![begin(2, b"abc")], "\r\n\r\nab", true),
        ("there is more", "GET", vec![begin(5, b"abc")], "\r\n\r\nabc", false),
        ("it breaks", "GET", vec![begin(5, b"abc"), Piece::Broken], "\r\n\r\nabc", true),
        ("its head", "HEAD", vec![begin(5, b"abc")], "Content-Length: 5\r\n", true),
        ("none", "GET", vec![Piece::Missing], "HTTP/1.1 404 ", true),
        ("too many", "GET", vec![Piece::Busy], "HTTP/1.1 503 ", true),
    ] {
        let mut out = Vec::new();
        http.open(1, peer, false, &mut out);
        http.bytes(1, format!("{method} /pbx/static/a/b.html?x HTTP/1.1\r\n\r\n").as_bytes(), &mut out);
        let wish = FileWish::Open { session: 1, folder: FileFolder::Static, name: "a/b.html".into() };
        assert_eq!((http.take_wishes(), out.len()), (vec![wish], 0), "{name}");
        for piece in pieces {
            http.turn_page(1);
            http.file(1, piece, &mut out);
        }
        let asked = http.take_wishes().len();
        assert!(asked <= 1, "{name}: somebody reads already");
        assert_eq!(out.pop_if(|last| *last == Output::Close(1)).is_some(), closes, "{name}");
        let sent: Vec<u8> = out
            .iter()
            .flat_map(|output| match output {
                Output::Send(1, bytes) => bytes.clone(),
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.contains(expected), "{name}: {sent}");
        let is_file = sent.contains("\r\nContent-Type: text/html") && sent.contains("nosniff");
        assert_eq!(is_file, sent.starts_with("HTTP/1.1 200"), "{name}: {sent}");
        assert_eq!(sent.ends_with("\r\n\r\n"), method == "HEAD" || name == "empty", "{name}: {sent}");
        assert_eq!(http.reading().next().is_some(), !closes, "{name}");
        http.closed(1);
    }
}

#[test]
fn files_are_served_where_it_is_wanted_and_to_a_bounded_number() {
    for (name, more, request, status) in [
        ("off", "", "GET /pbx/static/a.html", "404"),
        ("outside the prefix", "enablestatic=yes\n", "GET /static/a.html", "404"),
        ("the folder", "enablestatic=yes\n", "GET /pbx/static/", "404"),
        ("beside it", "enablestatic=yes\n", "GET /pbx/statical/a", "404"),
        ("upwards", "enablestatic=yes\n", "GET /pbx/static/../a", "404"),
        ("upwards in disguise", "enable_static=yes\n", "GET /pbx/static/%2e%2e%2fa", "404"),
        ("a post", "enable_static=yes\n", "POST /pbx/static/a", "405"),
    ] {
        let (mut http, ..) = http_with("no-static", "", more);
        let answer = ask(&mut http, &[format!("{request} HTTP/1.1\r\n\r\n").as_bytes()]).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert_eq!(http.take_wishes(), [], "{name}");
    }
    let (mut http, ..) = http_with("static-crowd", "", "enablestatic=yes\n");
    let mut out = Vec::new();
    for session in 0..=FILES_MAX as u64 {
        http.open(session, "127.0.0.1:4000".parse().unwrap(), false, &mut out);
        http.bytes(session, b"GET /pbx/static/a HTTP/1.1\r\n\r\n", &mut out);
    }
    assert_eq!(http.take_wishes().len(), FILES_MAX);
    assert!(matches!(&out[0], Output::Send(_, bytes) if bytes.starts_with(b"HTTP/1.1 503 ")));
}

#[test]
fn rfc7617_a_password_is_asked_for_and_half_a_pair_lets_nobody_in() {
    let both = "[general]\nenabled=yes\nauth_username=Aladdin\nauth_password=open sesame\nauth_realm=a\"b\n";
    let half = "[general]\nenabled=yes\nauth_username=Aladdin\n";
    for (settings, header, status) in [
        (both, "", "401"),
        (both, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n", "200"),
        (both, "authorization: basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n", "200"),
        (both, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==\r\n", "401"),
        (both, "Authorization: Bearer x\r\n", "401"),
        (both, "Authorization: B\r\n", "401"),
        (half, "Authorization: Basic QWxhZGRpbjo=\r\n", "401"),
    ] {
        let (mut http, ..) = http("password", settings);
        let request = format!("GET /pbx/metrics HTTP/1.1\r\n{header}\r\n");
        let answer = ask(&mut http, &[request.as_bytes()]).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{header}: {answer}");
        if status == "401" {
            assert!(answer.contains("WWW-Authenticate: Basic realm=\""), "{answer}");
        }
    }
}

#[test]
fn rfc4648_10_test_vectors() {
    for (plain, coded) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64::encode(plain.as_bytes()), coded);
    }
}

#[test]
fn restrictions_of_http_conf_say_who_may_ask_for_which_paths() {
    let more = "enable_status=yes\n";
    let section = |lines: &str| format!("[closed]\ntype=restriction\n{lines}");
    for (name, lines, open, shut) in [
        ("nobody", "path=/metrics\ndeny=0.0.0.0/0\n", &["/pbx/httpstatus"][..], &["/pbx/metrics"][..]),
        ("without the first stroke", "path=metrics\ndeny=0.0.0.0/0\n", &[], &["/pbx/metrics"]),
        ("with the prefix", "path=/pbx/metrics\ndeny=0.0.0.0/0\n", &["/pbx/httpstatus"], &["/pbx/metrics"]),
        (
            "all paths",
            "path=/\ndeny=0.0.0.0/0\n",
            &[],
            &["/pbx/metrics", "/pbx/httpstatus", "/", "/elsewhere"],
        ),
        ("no path is all paths", "deny=0.0.0.0/0\n", &[], &["/pbx/metrics", "/pbx/httpstatus"]),
        (
            "those that are known",
            "path=/metrics\ndeny=0.0.0.0/0\npermit=127.0.0.0/8\n",
            &["/pbx/metrics", "/pbx/httpstatus"],
            &[],
        ),
        (
            "others",
            "path=/metrics\ndeny=0.0.0.0/0\npermit=192.0.2.0/24\n",
            &["/pbx/httpstatus"],
            &["/pbx/metrics"],
        ),
        (
            "however it is spelt",
            "path=/metrics\ndeny=0.0.0.0/0\n",
            &[],
            &[
                "/pbx/metrics?x=1",
                "/pbx/METRICS",
                "/pbx/m%65trics",
                "//pbx//metrics",
                "/pbx/./metrics",
                "/pbx/ari/../metrics",
                "/pbx/metrics/",
            ],
        ),
        (
            "below it",
            "path=/ari\ndeny=0.0.0.0/0\n",
            &["/pbx/metrics"],
            &["/pbx/ari/channels", "/pbx/ari/events", "/pbx/ari"],
        ),
        (
            "doors of the manager",
            "path=/arawman\ndeny=0.0.0.0/0\n[two]\ntype=restriction\npath=/mxml\ndeny=0.0.0.0/0\n",
            &["/pbx/metrics"],
            &["/pbx/arawman?action=ping", "/pbx/mxml?action=ping"],
        ),
        ("WebSockets", "path=/ws\ndeny=0.0.0.0/0\n", &["/pbx/metrics"], &["/pbx/ws"]),
        ("files", "path=/static\ndeny=0.0.0.0/0\n", &["/pbx/metrics"], &["/pbx/static/a.html"]),
        (
            "a network that is none",
            "path=/metrics\npermit=10.0.0.0/99\n",
            &["/pbx/httpstatus"],
            &["/pbx/metrics"],
        ),
        ("a list that is missing", "path=/metrics\nacl=nowhere\n", &["/pbx/httpstatus"], &["/pbx/metrics"]),
        ("a list of acl.conf", "path=/metrics\nacl=offices\n", &["/pbx/httpstatus"], &["/pbx/metrics"]),
    ] {
        let acl = "[offices]\ndeny=0.0.0.0/0\npermit=192.0.2.0/24\n";
        for (paths, is_open) in [(open, true), (shut, false)] {
            for path in paths {
                let (mut http, ..) = http_of("restricted", ON, &format!("{more}{}", section(lines)), acl);
                let answer = ask(&mut http, &[format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()]);
                let answer = answer.unwrap_or_default();
                assert_eq!(!answer.starts_with("HTTP/1.1 403 "), is_open, "{name}: {path}: {answer}");
                assert!(!is_open || answer.starts_with("HTTP/1.1 200 "), "{name}: {path}: {answer}");
            }
        }
    }
}
