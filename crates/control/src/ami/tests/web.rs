//! The manager over HTTP, as a browser and as scripts speak to it.

use super::*;
use crate::http::Http;

/// A desk with an HTTP server before the manager.
struct Server {
    desk: Desk,
    http: Http,
    last: u64,
}

/// Status line with headers, and body.
type Heard = (String, String);

impl Server {
    fn new(name: &str) -> Self {
        let desk = Desk::new(name);
        std::fs::write(desk.folder.join("http.conf"), "[general]\nenabled = yes\nprefix = pbx\n").unwrap();
        let config = MANAGER.replacen("[general]", "[general]\nwebenabled = yes\nhttptimeout = 30", 1);
        std::fs::write(desk.folder.join("manager.conf"), config).unwrap();
        let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
        let site = desk.site();
        *site.snapshot.borrow_mut() = snapshot;
        let mut server = Self { desk, http: Http::new(site), last: 0 };
        server.desk.manager.configure();
        server
    }
    /// Sends a request; the connection's number.
    fn send(&mut self, request: &str) -> u64 {
        self.last += 1;
        self.http.open(self.last, peer(), false, &mut self.desk.out);
        self.http.bytes(self.last, request.as_bytes(), &mut self.desk.out);
        let now = self.desk.world.now();
        for request in self.http.take_requests() {
            self.desk.manager.web(request, now);
        }
        self.last
    }
    fn heard(&mut self, connection: u64) -> Option<Heard> {
        for (connection, answer) in self.desk.manager.take_web_answers() {
            self.http.answer(connection, answer, &mut self.desk.out);
        }
        let text = self.desk.sent(connection);
        let (head, body) = text.strip_suffix("<closed>")?.split_once("\r\n\r\n")?;
        Some((head.to_owned(), body.to_owned()))
    }
    fn get(&mut self, target: &str, headers: &str) -> Heard {
        let connection = self.send(&format!("GET {target} HTTP/1.1\r\nHost: pbx\r\n{headers}\r\n"));
        self.heard(connection).unwrap_or_else(|| panic!("{target} is not answered"))
    }
    /// Logs in; the header that brings the session back.
    fn login(&mut self) -> String {
        let (head, body) = self
            .get(&format!("/pbx/rawman?action=login&username=all&secret={}", SECRET.replace(' ', "+")), "");
        assert!(body.starts_with("Response: Success\r\nMessage: Authentication accepted\r\n"), "{body}");
        let cookie = head.split("Set-Cookie: ").nth(1).unwrap().split(';').next().unwrap();
        assert!(cookie.len() > 32 && head.contains("HttpOnly; SameSite=Strict"), "{head}");
        format!("Cookie: other=1; {cookie}\r\n")
    }
}

#[test]
fn a_session_lasts_from_one_request_to_the_next_in_all_three_forms() {
    let mut server = Server::new("web-forms");
    let (head, body) = server.get("/pbx/rawman?action=Ping", "");
    assert!(head.starts_with("HTTP/1.1 200 OK") && !head.contains("Set-Cookie"), "{head}");
    assert_eq!(body, error("Permission denied"));
    assert_eq!(server.desk.manager.sessions.len(), 0, "a stranger leaves nothing behind");
    let cookie = server.login();
    let (_, body) = server.get("/pbx/rawman?action=Getvar&variable=LEN(a%26b)&ActionID=7", &cookie);
    assert_eq!(body, "Response: Success\r\nActionID: 7\r\nVariable: LEN(a&b)\r\nValue: 3\r\n\r\n");
    let (head, body) = server.get("/pbx/mxml?action=Getvar&variable=LEN(a)&ActionID=%3C'%0d%0a", &cookie);
    assert!(head.contains("Content-Type: text/xml"), "{head}");
    assert_eq!(
        body,
        "<ajax-response>\n<response type='object' id='unknown'><generic response='Success' actionid='&lt;&apos;' \
         variable='LEN(a)' value='1' /></response>\n</ajax-response>\n"
    );
    let (head, body) = server.get("/pbx/manager?action=Ping&ActionID=%3Cscript%3E", &cookie);
    assert!(head.contains("Content-Type: text/html"), "{head}");
    assert!(body.contains("<tr><td>ActionID</td><td>&lt;script&gt;</td></tr>"), "{body}");
    let post = "action=Setvar&variable=g&value=x%3Dy";
    let request =
        format!("POST /pbx/rawman HTTP/1.1\r\n{cookie}Content-Length: {}\r\n\r\n{post}", post.len());
    let connection = server.send(&request);
    assert!(server.heard(connection).unwrap().1.contains("Message: Variable Set"));
    assert!(server.get("/pbx/rawman?action=Getvar&variable=g", &cookie).1.contains("Value: x=y"));
    assert!(server.get("/pbx/rawman?action=Logoff", &cookie).1.starts_with("Response: Goodbye"));
    assert_eq!(server.get("/pbx/rawman?action=Getvar&variable=g", &cookie).1, error("Permission denied"));
}

#[test]
fn what_happens_between_requests_waits_for_wait_event_and_a_wait_ends_with_the_next_event() {
    let mut server = Server::new("web-events");
    let cookie = server.login();
    server.desk.tell();
    server.get("/pbx/rawman?action=WaitEvent&timeout=1", &cookie);
    server.get("/pbx/rawman?action=UserEvent&userevent=One", &cookie);
    server.desk.tell();
    let (_, body) = server.get("/pbx/rawman?action=WaitEvent&timeout=20", &cookie);
    assert_eq!(event_names(&body), ["UserEvent", "WaitEventComplete"]);
    let waiting = server.send(&format!("GET /pbx/mxml?action=WaitEvent&timeout=20 HTTP/1.1\r\n{cookie}\r\n"));
    assert_eq!(server.heard(waiting), None);
    let (_, body) = server.get("/pbx/rawman?action=Ping", &cookie);
    assert!(body.contains("The session waits already"), "{body}");
    server.desk.login(1, "all");
    server.desk.act(1, "UserEvent|UserEvent: Two");
    server.desk.tell();
    let (_, body) = server.heard(waiting).unwrap();
    assert!(body.contains("event='UserEvent'") && body.contains("userevent='Two'"), "{body}");
    let waiting =
        server.send(&format!("GET /pbx/rawman?action=WaitEvent&timeout=20 HTTP/1.1\r\n{cookie}\r\n"));
    server.desk.pass_to(20_000);
    let (_, body) = server.heard(waiting).unwrap();
    assert_eq!(event_names(&body), ["WaitEventComplete"]);
    // Who goes away while waiting leaves the session free.
    let gone = server.send(&format!("GET /pbx/rawman?action=WaitEvent HTTP/1.1\r\n{cookie}\r\n"));
    server.http.closed(gone);
    server.desk.manager.web_closed(gone);
    assert!(server.get("/pbx/rawman?action=Ping", &cookie).1.contains("Ping: Pong"));
}

#[test]
fn a_session_ends_when_no_request_comes_and_when_nothing_is_fetched() {
    let mut server = Server::new("web-ends");
    let cookie = server.login();
    server.desk.pass_to(29_999);
    assert!(server.get("/pbx/rawman?action=Ping", &cookie).1.contains("Ping: Pong"));
    server.desk.pass_to(59_999);
    assert_eq!(server.desk.manager.sessions.len(), 0);
    let cookie = server.login();
    server.desk.login(1, "all");
    for _ in 0..300 {
        server.desk.act(1, &format!("UserEvent|UserEvent: Long|Text: {}", "x".repeat(4_000)));
        server.desk.tell();
    }
    assert_eq!(server.desk.manager.sessions.len(), 1, "it left more than 1 MiB");
    assert_eq!(server.get("/pbx/rawman?action=WaitEvent", &cookie).1, error("Permission denied"));
}

#[test]
fn rfc2617_digest_authentication_opens_a_session_and_a_count_is_good_once() {
    let mut server = Server::new("web-digest");
    let hash = |text: String| login::hex(&<md5::Md5 as md5::Digest>::digest(text));
    let (head, _) = server.get("/pbx/arawman?action=Ping", "");
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let nonce = head.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let authorization = |user: &str, secret: &str, target: &str, nonce: &str, nc: &str| {
        let who = hash(format!("{user}:asterisk:{secret}"));
        let what = hash(format!("GET:{target}"));
        let response = hash(format!("{who}:{nonce}:{nc}:abc:auth:{what}"));
        format!(
            "Authorization: Digest username=\"{user}\", realm=\"asterisk\", nonce=\"{nonce}\", uri=\"{target}\", \
             qop=auth, nc={nc}, cnonce=\"abc\", response=\"{response}\", algorithm=MD5\r\n"
        )
    };
    let target = "/pbx/arawman?action=Getvar&variable=LEN(abcd)";
    let header = authorization("all", SECRET, target, &nonce, "00000001");
    let (head, body) = server.get(target, &header);
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("Value: 4"), "{head} {body}");
    let (head, _) = server.get(target, &header);
    assert!(head.starts_with("HTTP/1.1 401") && head.contains("stale=true"), "{head}");
    let (head, _) = server.get(target, &authorization("all", SECRET, target, &nonce, "00000002"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(server.desk.manager.sessions.len(), 1, "it is the same session");
    for (what, header) in [
        ("a wrong secret", authorization("all", "wrong", target, &nonce, "00000003")),
        ("nobody", authorization("nobody", SECRET, target, &nonce, "00000003")),
        ("another place", authorization("far", SECRET, target, &nonce, "00000003")),
        ("another target", authorization("all", SECRET, "/pbx/arawman", &nonce, "00000003")),
        ("a nonce of its own", authorization("all", SECRET, target, "0123456789abcdef", "00000001")),
        ("nothing", "Authorization: Digest x\r\n".to_owned()),
        ("another user", authorization("apart", SECRET, target, &nonce, "00000003")),
    ] {
        let (head, _) = server.get(target, &header);
        assert!(head.starts_with("HTTP/1.1 401"), "{what}");
        let is_stale = ["a nonce of its own", "another user"].contains(&what);
        assert_eq!(head.contains("stale=true"), is_stale, "{what}: {head}");
    }
    let (head, _) = server.get(target, &authorization("all", SECRET, target, &nonce, "00000003"));
    assert!(head.starts_with("HTTP/1.1 200"), "what was refused has used up no count: {head}");
    for _ in 0..2_000 {
        server.get(target, "");
    }
    let (head, _) = server.get(target, &authorization("all", SECRET, target, &nonce, "00000009"));
    assert!(head.starts_with("HTTP/1.1 200"), "strangers push nobody out: {head}");
}

#[test]
fn strangers_over_http_are_counted_with_those_of_connections() {
    let mut server = Server::new("web-crowd");
    let challenge = |server: &mut Server, address: &str| {
        let peer = SocketAddr::new(address.parse().unwrap(), 4000);
        server.last += 1;
        server.http.open(server.last, peer, false, &mut server.desk.out);
        let request = b"GET /pbx/rawman?action=challenge&authtype=md5 HTTP/1.1\r\n\r\n";
        server.http.bytes(server.last, request, &mut server.desk.out);
        let now = server.desk.world.now();
        for request in server.http.take_requests() {
            server.desk.manager.web(request, now);
        }
        server.heard(server.last).unwrap().0.starts_with("HTTP/1.1 200")
    };
    // The addresses of a /64 are one source, here as for connections.
    for host in 0..STRANGERS_OF_ADDRESS_MAX {
        assert!(challenge(&mut server, &format!("2001:db8::{host:x}")), "{host}");
    }
    assert!(!challenge(&mut server, "2001:db8::ffff"));
    assert!(challenge(&mut server, "2001:db8:0:1::1"));
    // 50 by authlimit: the crowd gives up its oldest, for a connection as for a request.
    for host in 0..30 {
        assert!(challenge(&mut server, &format!("192.0.2.{host}")), "{host}");
    }
    assert_eq!(server.desk.manager.sessions.len(), 50);
    let ours = SocketAddr::from(([192, 0, 2, 200], 4000));
    let greeting = "Asterisk Call Manager/12.0.0\r\n";
    assert_eq!(server.desk.open_from(1 << 40, ours), greeting);
    assert_eq!(server.desk.manager.sessions.len(), 50);
    // Whoever has proved to be a user is no stranger.
    server.login();
}

#[test]
fn bodies_are_bounded_and_ambiguous_ones_refused() {
    let mut server = Server::new("web-bounds");
    let post = |length: &str| format!("POST /pbx/rawman HTTP/1.1\r\n{length}\r\naction=ping");
    for (what, request, status) in [
        ("too large", post("Content-Length: 70000\r\n"), "413"),
        ("two lengths", post("Content-Length: 11\r\nContent-Length: 3\r\n"), "400"),
        ("chunks", post("Transfer-Encoding: chunked\r\n"), "400"),
        ("no number", post("Content-Length: +11\r\n"), "400"),
        ("another method", "DELETE /pbx/rawman HTTP/1.1\r\n\r\n".to_owned(), "405"),
        ("outside the prefix", "GET /rawman?action=ping HTTP/1.1\r\n\r\n".to_owned(), "404"),
    ] {
        let connection = server.send(&request);
        let (head, _) = server.heard(connection).unwrap_or_else(|| panic!("{what}"));
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{what}: {head}");
    }
    let connection = server.send("POST /pbx/rawman HTTP/1.1\r\nContent-Length: 11\r\n\r\nacti");
    assert_eq!(server.heard(connection), None, "it is not whole");
    let mut off = Http::new(server.desk.site());
    std::fs::write(server.desk.folder.join("manager.conf"), MANAGER).unwrap();
    let (snapshot, _) = Snapshot::load(&Where::Dir(server.desk.folder.to_path_buf())).unwrap();
    *server.desk.site().snapshot.borrow_mut() = snapshot;
    let mut out = Vec::new();
    off.open(1, peer(), false, &mut out);
    off.bytes(1, b"GET /pbx/rawman?action=ping HTTP/1.1\r\n\r\n", &mut out);
    assert!(
        matches!(&out[0], Output::Send(1, bytes) if bytes.starts_with(b"HTTP/1.1 404")),
        "it is off by default"
    );
}

#[test]
fn a_page_of_another_site_reaches_no_door_of_the_manager() {
    let mut server = Server::new("web-origins");
    let ari = "[general]\nallowed_origins = https://panel.example.com\n";
    std::fs::write(server.desk.folder.join("ari.conf"), ari).unwrap();
    let (snapshot, _) = Snapshot::load(&Where::Dir(server.desk.folder.to_path_buf())).unwrap();
    *server.desk.site().snapshot.borrow_mut() = snapshot;
    let cookie = server.login();
    for (who, headers, status) in [
        ("a program", "", "200"),
        ("a page of ours", "Origin: http://pbx\r\nSec-Fetch-Site: same-origin\r\n", "200"),
        ("an address that is typed", "Sec-Fetch-Site: none\r\n", "200"),
        ("a page that may", "Origin: https://panel.example.com\r\nSec-Fetch-Site: cross-site\r\n", "200"),
        ("a page of another site", "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n", "403"),
        ("by another way than ours", "Origin: https://pbx\r\n", "403"),
        ("whose name begins like ours", "Origin: http://pbx.evil.example\r\n", "403"),
        ("from nowhere", "Origin: null\r\n", "403"),
        ("an image in a page", "Sec-Fetch-Site: cross-site\r\n", "403"),
        ("a neighbour's page", "Sec-Fetch-Site: same-site\r\n", "403"),
    ] {
        for (name, _) in crate::ami::WebForm::PATHS {
            for request in [
                format!("GET /pbx/{name}?action=Ping HTTP/1.1\r\nHost: pbx\r\n{cookie}{headers}\r\n"),
                format!(
                    "POST /pbx/{name} HTTP/1.1\r\nHost: pbx\r\n{cookie}{headers}Content-Length: 11\r\n\r\naction=Ping"
                ),
            ] {
                let connection = server.send(&request);
                // A digest that a door with a password of its own asks for is an answer too: whoever asks may ask.
                let (head, _) = server.heard(connection).unwrap_or_else(|| panic!("{who}: {request}"));
                let status = if status == "200" && name.starts_with('a') { "401" } else { status };
                assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{who}: {request}{head}");
            }
        }
    }
}
