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
use crate::ari::AriRequest;
use crate::base64;
use crate::crowd::Crowd;
use crate::metrics;
use crate::site::{Down, Site};
use crate::socket::Output;
use files::Sending;
pub use files::{FILES_MAX, FileFolder, FileWish, Piece, Version};

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
    asked_ari: Vec<AriRequest>,
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
    Ari(AriRequest),
    /// Its name, and what the client has of it already.
    File(PathBuf, Vec<u8>),
    /// Its answer, and what came after the request.
    Socket(Vec<u8>, Vec<u8>),
}

impl Http {
    /// Without connections.
    pub fn new(site: Rc<Site>) -> Self {
        Self {
            site,
            sessions: BTreeMap::new(),
            asked: Vec::new(),
            asked_ari: Vec::new(),
            wishes: Vec::new(),
            upgraded: Vec::new(),
        }
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
    /// Requests for the REST interface that came in; [`Http::answer`] or [`Http::release`] follows for each.
    pub fn take_ari(&mut self) -> Vec<AriRequest> {
        std::mem::take(&mut self.asked_ari)
    }
    /// Somebody who may have it is sent a recording, by its name below the folder of those.
    pub fn send_recording(&mut self, session: u64, name: PathBuf, out: &mut Vec<Output>) {
        let sending = Sending::new(&name, false, Vec::new());
        self.send_file(session, (FileFolder::Recordings, name), sending, out);
    }
    /// A connection has become a WebSocket of the REST interface, and is no business of this machine any more.
    pub fn release(&mut self, session: u64) {
        self.sessions.remove(&session);
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
                    Ok(_) if is_kept_out(&self.site, &request, peer) => {
                        (Taken::Reply(Reply::error("403 Forbidden")), false)
                    }
                    Ok(0) if is_socket(&self.site, &request) => (socket(&self.site, &request, body), false),
                    Ok(length) if length > BODY_BYTES_MAX => {
                        (Taken::Reply(Reply::error("413 Content Too Large")), false)
                    }
                    Ok(length) if body.len() < length => {
                        open.bytes = whole;
                        return;
                    }
                    Ok(length) => {
                        let (body, rest) = body.split_at_checked(length).unwrap_or_default();
                        let taken = match self.ari(&request, body, rest, session) {
                            Some(asked) => Taken::Ari(asked),
                            None => self.take(&request, body, session, peer),
                        };
                        (taken, request.method == Some("HEAD"))
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
            Taken::Ari(request) => {
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.waits = true;
                }
                self.asked_ari.push(request);
            }
            Taken::File(name, known) => {
                let sending = Sending::new(&name, only_head, known);
                self.send_file(session, (FileFolder::Static, name), sending, out);
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

    /// A request for a path of the REST interface, when that is served.
    fn ari(
        &self,
        request: &httparse::Request<'_, '_>,
        body: &[u8],
        rest: &[u8],
        connection: u64,
    ) -> Option<AriRequest> {
        let snapshot = self.site.snapshot.borrow();
        let open = self.sessions.get(&connection).filter(|_| snapshot.ari.is_served())?;
        let target = request.path.unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let below = path.strip_prefix(&snapshot.http.path(crate::ari::PATH))?;
        if !below.is_empty() && !below.starts_with('/') {
            return None;
        }
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::to_owned)
        };
        let upgrade = header("Upgrade").map(|_| ws::upgrade(request, &[], ws::Speech::Events));
        Some(AriRequest {
            connection,
            peer: open.peer,
            secure: open.secure,
            method: request.method.unwrap_or_default().to_owned(),
            path: below.to_owned(),
            query: query.to_owned(),
            body: body.to_vec(),
            kind: header("Content-Type").unwrap_or_default(),
            authorization: header("Authorization"),
            origin: header("Origin"),
            fetch_site: header("Sec-Fetch-Site"),
            host: header("Host"),
            upgrade,
            rest: rest.to_vec(),
        })
    }

    fn send_file(
        &mut self,
        session: u64,
        (folder, name): (FileFolder, PathBuf),
        sending: Sending,
        out: &mut Vec<Output>,
    ) {
        let is_crowded = self.sessions.values().filter(|open| open.file.is_some()).count() >= FILES_MAX;
        let Some(open) = self.sessions.get_mut(&session) else { return };
        (open.waits, open.file) = (true, Some(sending));
        if is_crowded {
            return self.file(session, Piece::Busy, out);
        }
        self.wishes.push(FileWish::Open { session, folder, name });
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
                body: status_page(&snapshot.http, &self.site.down.borrow()),
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
        // A browser sends cookies and digests along for whatever page asks; only pages of ours may.
        let secure = self.sessions.get(&connection).is_some_and(|open| open.secure);
        let asker =
            Asker { origin: header("Origin"), host: header("Host"), site: header("Sec-Fetch-Site"), secure };
        if asker.is_foreign(&snapshot.ari.general.allowed_origins) {
            return Taken::Reply(Reply::error("403 Forbidden"));
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
                let line = format!("{} failed to authenticate as '{METRICS_USER}'", peer.ip().to_canonical());
                core.log(call::Level::Notice, "http", &line);
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

/// Whether http.conf does not let this address ask for this path.
fn is_kept_out(site: &Site, request: &httparse::Request<'_, '_>, peer: SocketAddr) -> bool {
    let snapshot = site.snapshot.borrow();
    if snapshot.restrictions.is_empty() {
        return false;
    }
    let path = store::config::web::plain_path(request.path.unwrap_or(""));
    let ip = peer.ip().to_canonical();
    !snapshot.restrictions.iter().all(|one| one.allows(&snapshot.http.prefix, &path, ip))
}

/// Which page a browser asks for; programs that are none say nothing of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// `Origin` (RFC 6454 §7).
    pub origin: Option<&'a str>,
    /// `Host`.
    pub host: Option<&'a str>,
    /// `Sec-Fetch-Site` of Fetch Metadata, which also requests without an origin have.
    pub site: Option<&'a str>,
    /// It came under TLS.
    pub secure: bool,
}

impl Asker<'_> {
    /// Whether a page asks that lies elsewhere and is not among those that may.
    pub(crate) fn is_foreign(&self, allowed: &[String]) -> bool {
        let Some(origin) = self.origin else {
            return self.site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        };
        let scheme = if self.secure { "https" } else { "http" };
        let is_own = self.host.is_some_and(|host| {
            origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) == Some(host)
        });
        !is_own && !allowed.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
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
fn status_page(http: &HttpGeneral, down: &Down) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html><head><title>Asterisk HTTP Status</title></head><body>\n<h2>Asterisk HTTP Status</h2>\n\
         <table>\n",
    );
    let address = |at: Option<SocketAddr>| at.map_or_else(String::new, |at| at.to_string());
    for (name, value) in [
        ("Server", http.servername.clone()),
        ("Prefix", http.prefix.clone()),
        ("Bind Address", address(http.address().filter(|_| !down.http))),
        ("SSL Bind Address", address(http.tls_address().filter(|_| !down.https))),
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
    match ws::upgrade(request, origins, ws::Speech::Sip) {
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
    let wanted = base64::encode(format!("{user}:{password}").as_bytes());
    let equal: bool = token.trim_ascii().ct_eq(wanted.as_bytes()).into();
    equal && scheme.eq_ignore_ascii_case(b"Basic ") && !user.is_empty() && !password.is_empty()
}

#[cfg(test)]
mod tests;
