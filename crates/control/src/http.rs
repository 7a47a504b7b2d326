//! HTTP for those who ask for metrics: one request a connection, answered and closed.
//!
//! A machine without a socket. Who does not finish a request within the reactor's probation is cut off there; who sends
//! more than [`HEAD_BYTES_MAX`] without an end is closed here.

use std::collections::BTreeMap;
use std::rc::Rc;

use subtle::ConstantTimeEq as _;

use crate::metrics;
use crate::site::Site;
use crate::socket::Output;

/// Longest request line and headers; a scrape has some 300 bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Connections that have not asked yet.
const SESSIONS_MAX: usize = 256;

/// All connections of HTTP.
pub struct Http {
    site: Rc<Site>,
    sessions: BTreeMap<u64, Vec<u8>>,
}

/// Status, reason, further headers, body.
struct Reply {
    status: &'static str,
    headers: String,
    body: String,
}

impl Reply {
    fn error(status: &'static str) -> Self {
        Self { status, headers: String::new(), body: format!("{status}\n") }
    }
}

impl Http {
    /// Without connections.
    pub fn new(site: Rc<Site>) -> Self {
        Self { site, sessions: BTreeMap::new() }
    }
    /// Somebody has connected.
    pub fn open(&mut self, session: u64, out: &mut Vec<Output>) {
        if self.sessions.len() >= SESSIONS_MAX {
            out.push(Output::Close(session));
            return;
        }
        self.sessions.insert(session, Vec::new());
    }
    /// Somebody is gone.
    pub fn closed(&mut self, session: u64) {
        self.sessions.remove(&session);
    }
    /// Bytes of a request came in.
    pub fn bytes(&mut self, session: u64, bytes: &[u8], out: &mut Vec<Output>) {
        let Some(head) = self.sessions.get_mut(&session) else { return };
        let room = HEAD_BYTES_MAX.saturating_sub(head.len());
        head.extend(bytes.iter().take(room));
        let head = core::mem::take(head);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let (reply, only_head) = match request.parse(&head) {
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => {
                self.sessions.insert(session, head);
                return;
            }
            Ok(httparse::Status::Complete(_)) => (self.answer(&request), request.method == Some("HEAD")),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                (Reply::error("431 Request Header Fields Too Large"), false)
            }
            Err(_) => (Reply::error("400 Bad Request"), false),
        };
        self.sessions.remove(&session);
        out.push(Output::Send(session, self.written(&reply, only_head)));
        out.push(Output::Close(session));
    }

    fn answer(&self, request: &httparse::Request<'_, '_>) -> Reply {
        let snapshot = self.site.snapshot.borrow().clone();
        let (http, prometheus) = (&snapshot.http, &snapshot.prometheus);
        let target = request.path.unwrap_or("");
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        if !prometheus.enabled || path != http.path(&prometheus.uri) {
            return Reply::error("404 Not Found");
        }
        if !matches!(request.method, Some("GET" | "HEAD")) {
            return Reply {
                headers: "Allow: GET, HEAD\r\n".into(),
                ..Reply::error("405 Method Not Allowed")
            };
        }
        let (user, password) = (&*prometheus.auth_username, prometheus.auth_password.expose());
        let given = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("Authorization"));
        let is_open = user.is_empty() && password.is_empty();
        let is_known = || given.is_some_and(|given| is_basic(given.value, user, password));
        if !is_open && !is_known() {
            let realm = prometheus.auth_realm.replace(['"', '\\', '\r', '\n'], "");
            return Reply {
                headers: format!("WWW-Authenticate: Basic realm=\"{realm}\"\r\n"),
                ..Reply::error("401 Unauthorized")
            };
        }
        let body = metrics::text(&self.site);
        Reply { status: "200 OK", headers: String::new(), body }
    }

    fn written(&self, reply: &Reply, only_head: bool) -> Vec<u8> {
        let Reply { status, headers, body } = reply;
        let snapshot = self.site.snapshot.borrow();
        let name = snapshot.http.servername.replace(['\r', '\n'], "");
        let server = if name.is_empty() { String::new() } else { format!("Server: {name}\r\n") };
        let kind = if *status == "200 OK" { metrics::CONTENT_TYPE } else { "text/plain; charset=utf-8" };
        let length = body.len();
        let body = if only_head { "" } else { body };
        format!(
            "HTTP/1.1 {status}\r\n{server}Content-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-cache, \
             no-store\r\nConnection: close\r\n{headers}\r\n{body}"
        )
        .into_bytes()
    }
}

/// Whether the header is `Basic` with this user and password (RFC 7617). Takes the same time wherever they differ; half of
/// a pair is never right.
fn is_basic(given: &[u8], user: &str, password: &str) -> bool {
    let Some((scheme, token)) = given.split_at_checked(6) else { return false };
    let wanted = base64(format!("{user}:{password}").as_bytes());
    let equal: bool = token.trim_ascii().ct_eq(wanted.as_bytes()).into();
    equal && scheme.eq_ignore_ascii_case(b"Basic ") && !user.is_empty() && !password.is_empty()
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * n)) as usize % 64];
            out.push(if n <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Folder, sip_config};
    use store::{Snapshot, Where};

    /// A site whose `prometheus.conf` says this.
    fn http(name: &str, prometheus: &str) -> (Http, Folder, sim::World) {
        let folder = Folder::new(&format!("http-{name}"));
        for (file, text) in [
            ("asterisk.conf", ""),
            ("http.conf", "[general]\nenabled=yes\nprefix=pbx\n"),
            ("prometheus.conf", prometheus),
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
        http.open(1, &mut out);
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
        let answer =
            ask(&mut http, &[b"GET /pbx/met", b"rics?x=1 HTTP/1.1\r\nHost: a\r\n", b"\r\n"]).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with(
                "HTTP/1.1 200 OK\r\nServer: Asterisk\r\nContent-Type: text/plain; version=0.0.4"
            ),
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
    fn rfc7617_a_password_is_asked_for_and_half_a_pair_lets_nobody_in() {
        let both =
            "[general]\nenabled=yes\nauth_username=Aladdin\nauth_password=open sesame\nauth_realm=a\"b\n";
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
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
