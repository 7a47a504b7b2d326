//! HTTP for those who ask for metrics, for manager clients that are browsers, and for phones that are: one request a
//! connection, answered and closed, or turned into a WebSocket.
//!
//! A machine without a socket. Who does not finish a request within the reactor's probation is cut off there; who sends
//! more than [`HEAD_BYTES_MAX`] without an end, or a body over [`BODY_BYTES_MAX`], is closed here.

mod files;
pub(crate) mod form;
pub mod ws;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use store::config::web::HttpGeneral;
use subtle::ConstantTimeEq as _;

use crate::ami::{WebAnswer, WebForm, WebRequest, escaped};
use crate::crowd::Crowd;
use crate::metrics;
use crate::site::Site;
use crate::socket::Output;
use files::Sending;
pub use files::{FILES_MAX, FileWish, Piece, Version};

/// Longest request line and headers; a scrape has some 300 bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Longest form that is posted: an action of the manager with long variables.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Connections at once that have not been answered.
pub const SESSIONS_MAX: usize = 256;

/// All connections of HTTP.
pub struct Http {
    site: Rc<Site>,
    sessions: BTreeMap<u64, Open>,
    asked: Vec<WebRequest>,
    wishes: Vec<FileWish>,
    upgraded: Vec<Upgraded>,
}

/// A connection that speaks SIP in WebSocket frames from here on.
#[derive(Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// The connection; no business of this machine any more.
    pub session: u64,
    /// Who is at its other end.
    pub peer: SocketAddr,
    /// Whether it is under TLS.
    pub secure: bool,
    /// What came after the request.
    pub rest: Vec<u8>,
}

/// A connection.
struct Open {
    peer: SocketAddr,
    secure: bool,
    bytes: Vec<u8>,
    /// The manager has its request, or a file is on its way.
    waits: bool,
    file: Option<Sending>,
}

/// Status, reason, kind of the body, further headers, body.
struct Reply {
    status: &'static str,
    kind: &'static str,
    headers: String,
    body: String,
}

impl Reply {
    fn error(status: &'static str) -> Self {
        Self { status, kind: PLAIN, headers: String::new(), body: format!("{status}\n") }
    }
}

/// As whom those who read metrics are kept account of: there is one user, and whatever name is tried is a guess at it.
const METRICS_USER: &str = "prometheus";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Where the page about the server itself is, below the prefix.
const STATUS_PATH: &str = "httpstatus";
/// Where files are.
pub(crate) const STATIC_PATH: &str = "static";
/// Of files: their endings say what they are, and nobody guesses.
const NO_GUESS: &str = "X-Content-Type-Options: nosniff\r\n";
/// What is made for each who asks is kept by nobody.
const NOT_KEPT: &str = "no-cache, no-store";
/// A file may be kept by whoever asks each time whether it is still that.
const ASKED_AGAIN: &str = "no-cache";

/// What becomes of a request.
enum Taken {
    Reply(Reply),
    Manager(WebRequest),
    /// Its name, and what the client has of it already.
    File(PathBuf, Vec<u8>),
    /// Its answer, and what came after the request.
    Socket(Vec<u8>, Vec<u8>),
}

impl Http {
    /// Without connections.
    pub fn new(site: Rc<Site>) -> Self {
        Self { site, sessions: BTreeMap::new(), asked: Vec::new(), wishes: Vec::new(), upgraded: Vec::new() }
    }
    /// Somebody has connected; `secure` says whether under TLS.
    ///
    /// When all places are taken, the source that has most gives up its oldest, and who comes with others gives up one of
    /// theirs: connections that ask nothing must not keep out who does. Who waits for an answer is left alone.
    pub fn open(&mut self, session: u64, peer: SocketAddr, secure: bool, out: &mut Vec<Output>) {
        if self.sessions.len() >= SESSIONS_MAX {
            let asking = self.sessions.iter().filter(|(_, open)| !open.waits);
            let crowd = Crowd::of(asking.map(|(id, open)| (*id, open.peer.ip())));
            let own = crowd.from(peer.ip());
            let oldest = match crowd.most() {
                Some((count, oldest)) if count > own => Some(oldest),
                _ => crowd.oldest_of(peer.ip()),
            };
            let Some(oldest) = oldest else {
                out.push(Output::Close(session));
                return;
            };
            self.sessions.remove(&oldest);
            out.push(Output::Close(oldest));
        }
        self.sessions.insert(session, Open { peer, secure, bytes: Vec::new(), waits: false, file: None });
    }
    /// Somebody is gone.
    pub fn closed(&mut self, session: u64) {
        self.sessions.remove(&session);
    }
    /// Requests for the manager that came in; [`Http::answer`] follows for each.
    pub fn take_requests(&mut self) -> Vec<WebRequest> {
        std::mem::take(&mut self.asked)
    }
    /// What files are wanted; [`Http::file`] follows for each wish.
    pub fn take_wishes(&mut self) -> Vec<FileWish> {
        std::mem::take(&mut self.wishes)
    }
    /// Connections of whose file there is more, and nobody reads it.
    pub fn reading(&self) -> impl Iterator<Item = u64> {
        let waits = |open: &Open| open.file.as_ref().is_some_and(|file| !file.is_read);
        self.sessions.iter().filter(move |(_, open)| waits(open)).map(|(session, _)| *session)
    }
    /// A connection has room for more of its file.
    pub fn turn_page(&mut self, session: u64) {
        let file = self.sessions.get_mut(&session).and_then(|open| open.file.as_mut());
        if let Some(file) = file.filter(|file| !file.is_read) {
            file.is_read = true;
            self.wishes.push(FileWish::More { session });
        }
    }
    /// A piece of a file was read, or not.
    pub fn file(&mut self, session: u64, piece: Piece, out: &mut Vec<Output>) {
        let Some(file) = self.sessions.get_mut(&session).and_then(|open| open.file.as_mut()) else { return };
        file.is_read = false;
        let (kind, only_head) = (file.kind, file.only_head);
        let refused = |status| Some(Reply::error(status));
        let (reply, bytes, is_over) = match piece {
            Piece::Missing => (refused("404 Not Found"), Vec::new(), true),
            Piece::Busy => (refused("503 Service Unavailable"), Vec::new(), true),
            // What was promised does not come: the end of the connection says so.
            Piece::Broken => (None, Vec::new(), true),
            Piece::Begin(version, _) if files::knows(&file.known, &version.tag()) => {
                let headers = format!("ETag: {}\r\n", version.tag());
                (None, self.head("304 Not Modified", None, ASKED_AGAIN, &headers), true)
            }
            Piece::Begin(version, mut bytes) => {
                file.left = Some(version.length);
                let is_over = file.take(&mut bytes) || only_head;
                let headers = format!("{NO_GUESS}ETag: {}\r\n", version.tag());
                let mut head = self.head("200 OK", Some((kind, version.length)), ASKED_AGAIN, &headers);
                head.extend(if only_head { Vec::new() } else { bytes });
                (None, head, is_over)
            }
            Piece::More(mut bytes) => {
                let is_over = file.take(&mut bytes);
                (None, bytes, is_over)
            }
        };
        let bytes = reply.map_or(bytes, |reply| self.written(&reply, only_head));
        if !bytes.is_empty() {
            out.push(Output::Send(session, bytes));
        }
        if is_over {
            self.sessions.remove(&session);
            out.push(Output::Close(session));
        }
    }
    /// Connections that have become WebSockets. What [`Http::bytes`] put out for them goes first.
    pub fn take_upgraded(&mut self) -> Vec<Upgraded> {
        std::mem::take(&mut self.upgraded)
    }
    /// The manager has answered.
    pub fn answer(&mut self, session: u64, answer: WebAnswer, out: &mut Vec<Output>) {
        if self.sessions.remove(&session).is_none() {
            return;
        }
        let WebAnswer { status, kind, headers, body } = answer;
        out.push(Output::Send(session, self.written(&Reply { status, kind, headers, body }, false)));
        out.push(Output::Close(session));
    }
    /// Bytes of a request came in.
    pub fn bytes(&mut self, session: u64, bytes: &[u8], out: &mut Vec<Output>) {
        let Some(open) = self.sessions.get_mut(&session).filter(|open| !open.waits) else { return };
        let room = (HEAD_BYTES_MAX + BODY_BYTES_MAX).saturating_sub(open.bytes.len());
        open.bytes.extend(bytes.iter().take(room));
        let (peer, secure, whole) = (open.peer, open.secure, core::mem::take(&mut open.bytes));
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let (taken, only_head) = match request.parse(&whole) {
            Ok(httparse::Status::Partial) if whole.len() < HEAD_BYTES_MAX => {
                open.bytes = whole;
                return;
            }
            Ok(httparse::Status::Complete(end)) if end <= HEAD_BYTES_MAX => {
                let length = length(&request);
                let body = whole.get(end..).unwrap_or_default();
                match length {
                    Ok(0) if is_socket(&self.site, &request) => (socket(&self.site, &request, body), false),
                    Ok(length) if length > BODY_BYTES_MAX => {
                        (Taken::Reply(Reply::error("413 Content Too Large")), false)
                    }
                    Ok(length) if body.len() < length => {
                        open.bytes = whole;
                        return;
                    }
                    Ok(length) => {
                        let body = body.get(..length).unwrap_or_default();
                        (self.take(&request, body, session, peer), request.method == Some("HEAD"))
                    }
                    Err(()) => (Taken::Reply(Reply::error("400 Bad Request")), false),
                }
            }
            Ok(_) | Err(httparse::Error::TooManyHeaders) => {
                (Taken::Reply(Reply::error("431 Request Header Fields Too Large")), false)
            }
            Err(_) => (Taken::Reply(Reply::error("400 Bad Request")), false),
        };
        match taken {
            Taken::Manager(request) => {
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.waits = true;
                }
                self.asked.push(request);
            }
            Taken::File(name, known) => {
                let sending = Sending::new(&name, only_head, known);
                self.send_file(session, name, sending, out);
            }
            Taken::Socket(answer, rest) => {
                self.sessions.remove(&session);
                out.push(Output::Send(session, answer));
                self.upgraded.push(Upgraded { session, peer, secure, rest });
            }
            Taken::Reply(reply) => {
                self.sessions.remove(&session);
                out.push(Output::Send(session, self.written(&reply, only_head)));
                out.push(Output::Close(session));
            }
        }
    }

    fn send_file(&mut self, session: u64, name: PathBuf, sending: Sending, out: &mut Vec<Output>) {
        let is_crowded = self.sessions.values().filter(|open| open.file.is_some()).count() >= FILES_MAX;
        let Some(open) = self.sessions.get_mut(&session) else { return };
        (open.waits, open.file) = (true, Some(sending));
        if is_crowded {
            return self.file(session, Piece::Busy, out);
        }
        self.wishes.push(FileWish::Open { session, name });
    }

    fn take(
        &self,
        request: &httparse::Request<'_, '_>,
        body: &[u8],
        connection: u64,
        peer: SocketAddr,
    ) -> Taken {
        let snapshot = self.site.snapshot.borrow().clone();
        let target = request.path.unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let redirected = snapshot.http.redirect.iter().find(|(from, _)| from.eq_ignore_ascii_case(path));
        if let Some((_, to)) = redirected {
            let to = to.replace(['\r', '\n'], "");
            return Taken::Reply(Reply {
                headers: format!("Location: {to}\r\n"),
                ..Reply::error("302 Moved Temporarily")
            });
        }
        if snapshot.http.enable_status && path == snapshot.http.path(STATUS_PATH) {
            return Taken::Reply(Reply {
                status: "200 OK",
                kind: "text/html; charset=utf-8",
                headers: String::new(),
                body: status_page(&snapshot.http),
            });
        }
        if let Some(taken) = static_file(&snapshot.http, request, path) {
            return taken;
        }
        let found = WebForm::PATHS.iter().find(|(name, _)| path == snapshot.http.path(name));
        let Some((_, form)) = found.filter(|_| snapshot.manager.is_on_the_web()) else {
            return Taken::Reply(self.metrics(request, peer));
        };
        let Some(method @ ("GET" | "POST")) = request.method else {
            return Taken::Reply(Reply {
                headers: "Allow: GET, POST\r\n".into(),
                ..Reply::error("405 Method Not Allowed")
            });
        };
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let mut fields = form::fields(query);
        if method == "POST" {
            fields.extend(form::fields(&String::from_utf8_lossy(body)));
        }
        Taken::Manager(WebRequest {
            connection,
            peer,
            form: *form,
            method: method.to_owned(),
            target: target.to_owned(),
            fields,
            token: header("Cookie").and_then(|text| form::cookie(text, "mansession_id")).map(str::to_owned),
            authorization: header("Authorization").map(str::to_owned),
        })
    }

    fn metrics(&self, request: &httparse::Request<'_, '_>, peer: SocketAddr) -> Reply {
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
        let may = || {
            let core = self.site.shard.core.borrow();
            !core.bans.is_user_banned(peer.ip(), METRICS_USER, core.now)
        };
        let is_let_in = is_open || (may() && is_known());
        if !is_let_in {
            if given.is_some() {
                let home = || crate::ami::is_home(&self.site, peer.ip());
                let mut core = self.site.shard.core.borrow_mut();
                core.password_refused("HTTP", peer.ip(), METRICS_USER, home);
            }
            let realm = prometheus.auth_realm.replace(['"', '\\', '\r', '\n'], "");
            return Reply {
                headers: format!("WWW-Authenticate: Basic realm=\"{realm}\"\r\n"),
                ..Reply::error("401 Unauthorized")
            };
        }
        let body = metrics::text(&self.site);
        Reply { status: "200 OK", kind: metrics::CONTENT_TYPE, headers: String::new(), body }
    }

    fn written(&self, reply: &Reply, only_head: bool) -> Vec<u8> {
        let Reply { status, kind, headers, body } = reply;
        let mut out = self.head(status, Some((kind, body.len() as u64)), NOT_KEPT, headers);
        out.extend_from_slice(if only_head { b"" } else { body.as_bytes() });
        out
    }

    /// All of an answer but its body, of which kind and length are told; one without says nothing of it.
    fn head(&self, status: &str, body: Option<(&str, u64)>, kept: &str, headers: &str) -> Vec<u8> {
        let snapshot = self.site.snapshot.borrow();
        let name = snapshot.http.servername.replace(['\r', '\n'], "");
        let server = if name.is_empty() { String::new() } else { format!("Server: {name}\r\n") };
        let body = body.map_or_else(String::new, |(kind, length)| {
            format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n")
        });
        format!(
            "HTTP/1.1 {status}\r\n{server}{body}Cache-Control: {kept}\r\nConnection: close\r\n{headers}\r\n"
        )
        .into_bytes()
    }
}

/// What becomes of a request for a path below `/static`, when files are served; `None` for any other.
fn static_file(http: &HttpGeneral, request: &httparse::Request<'_, '_>, path: &str) -> Option<Taken> {
    let below =
        path.strip_prefix(&http.path(STATIC_PATH))?.strip_prefix('/').filter(|_| http.enablestatic)?;
    // Several lines of one header are one list (RFC 9110 §5.3).
    let known = || {
        let is = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("If-None-Match");
        let lines: Vec<&[u8]> = request.headers.iter().filter(is).map(|header| header.value).collect();
        lines.join(&b","[..])
    };
    Some(match (request.method, files::name_of(below)) {
        (Some("GET" | "HEAD"), Some(name)) => Taken::File(name, known()),
        (Some("GET" | "HEAD"), None) => Taken::Reply(Reply::error("404 Not Found")),
        _ => {
            let refused = Reply::error("405 Method Not Allowed");
            Taken::Reply(Reply { headers: "Allow: GET, HEAD\r\n".into(), ..refused })
        }
    })
}

/// What the server is called and where it listens.
fn status_page(http: &HttpGeneral) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html><head><title>Asterisk HTTP Status</title></head><body>\n<h2>Asterisk HTTP Status</h2>\n\
         <table>\n",
    );
    let address = |at: Option<SocketAddr>| at.map_or_else(String::new, |at| at.to_string());
    for (name, value) in [
        ("Server", http.servername.clone()),
        ("Prefix", http.prefix.clone()),
        ("Bind Address", address(http.address())),
        ("SSL Bind Address", address(http.tls_address())),
    ] {
        page.push_str(&format!("<tr><td><i>{name}</i></td><td><b>"));
        escaped(&value, &mut page);
        page.push_str("</b></td></tr>\n");
    }
    page.push_str("</table></body></html>\n");
    page
}

/// Whether a request is for the place of WebSockets, and there is a transport for them.
fn is_socket(site: &Site, request: &httparse::Request<'_, '_>) -> bool {
    let snapshot = site.snapshot.borrow();
    let target = request.path.unwrap_or("");
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    snapshot.pjsip.has_websockets() && path == snapshot.http.path(ws::PATH)
}

/// What becomes of it; `rest` came after it.
fn socket(site: &Site, request: &httparse::Request<'_, '_>, rest: &[u8]) -> Taken {
    let origins = &site.snapshot.borrow().http.ws_allowed_origins;
    match ws::upgrade(request, origins) {
        Ok(answer) => Taken::Socket(answer, rest.to_vec()),
        Err(ws::Refusal { status, headers }) => {
            Taken::Reply(Reply { headers: headers.to_owned(), ..Reply::error(status) })
        }
    }
}

/// Bytes of the body; 0 when nothing is said. A body in chunks is not read.
fn length(request: &httparse::Request<'_, '_>) -> Result<usize, ()> {
    let all = |name: &'static str| {
        request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    if all("Transfer-Encoding").next().is_some() {
        return Err(());
    }
    let mut lengths = all("Content-Length").map(|header| std::str::from_utf8(header.value).map(str::trim));
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(0),
        (Some(Ok(text)), None) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| ())
        }
        // Two lengths are a way to smuggle a request.
        _ => Err(()),
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
        http_with(name, prometheus, "")
    }
    /// The same with more lines of `http.conf`.
    fn http_with(name: &str, prometheus: &str, more: &str) -> (Http, Folder, sim::World) {
        let general = format!("[general]\nenabled=yes\nprefix=pbx\n{more}");
        let folder = Folder::new(&format!("http-{name}"));
        for (file, text) in [
            ("asterisk.conf", ""),
            ("http.conf", &general),
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
            let wish = FileWish::Open { session: 1, name: "a/b.html".into() };
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
