//! The REST interface (ARI): programs look at calls and steer them by requests over HTTP, and hear what happens by WebSocket.
//!
//! A machine without a socket: the HTTP machine hands it requests, the engine bytes of WebSockets and notices. It knows
//! nothing of how a channel is played to or bridged; that is the call core's and the applications'. Who asks, and whether
//! they may, is settled in one place, [`Ari::request`], before an operation of the table is looked for.

mod asked;
mod auth;
mod events;
mod manual;
mod models;
mod ops;
mod said;
mod sockets;
mod swagger;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod view;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;

use base::Instant;
use call::{Level, Notice};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};
use store::date::Zone;

use crate::ami::WebAnswer;
use crate::http::ws::{Refusal, Socket};
use crate::http::{Http, form};
use crate::site::Site;
use crate::socket::Output;

pub use manual::{MARKS, manual};
pub use models::{EVENTS, MODELS, Model, ModelField};
pub use sockets::{APPS_OF_SOCKET_MAX, SOCKETS_MAX};
pub use table::{Kind, Method, Operation, Param, Place, operations};

use asked::{Asked, Given};
use auth::{Caller, Denied};
use sockets::{Connected, Sockets};
use table::{Answer, Fault, NOT_READ, Route, methods, route};
use view::{Facts, View};

/// Where the interface is, below the prefix of http.conf.
pub const PATH: &str = "ari";
/// Parts of a path: the longest of the table has five.
const PARTS_MAX: usize = 16;
/// What JSON is.
const KIND: &str = "application/json";

/// A request for the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AriRequest {
    /// Connection that waits for the answer.
    pub connection: u64,
    /// Who asks.
    pub peer: SocketAddr,
    /// Under TLS.
    pub secure: bool,
    /// `GET` and so on.
    pub method: String,
    /// Path below /ari, as it came.
    pub path: String,
    /// Query, as it came.
    pub query: String,
    /// Body.
    pub body: Vec<u8>,
    /// Content type of the body; empty: none was said.
    pub kind: String,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The page that asks.
    pub origin: Option<String>,
    /// How far that page is from what it asks (`Sec-Fetch-Site`).
    pub fetch_site: Option<String>,
    /// Whom it asks, as it knows it.
    pub host: Option<String>,
    /// The answer that makes it a WebSocket, or why not, when it asks for one.
    pub upgrade: Option<Result<Vec<u8>, Refusal>>,
    /// What came after it.
    pub rest: Vec<u8>,
}

/// What the console shows of the interface.
#[derive(Debug, Default)]
pub struct Sight {
    /// Where the machine stands, once somebody has asked: read anew with the configuration.
    pub zone: Option<Rc<Zone>>,
    /// Identity of this server, once somebody has asked.
    pub identity: String,
    /// Applications whose events are logged.
    pub debug: BTreeSet<String>,
    /// Connections: user, address, applications, since when.
    pub connected: Vec<(String, SocketAddr, Vec<String>, Instant)>,
    /// Events that were sent.
    pub events: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Digests of passwords that users have proved whose passwords are kept as crypt(3) makes them.
    pub(crate) proved: std::collections::BTreeMap<String, [u8; 32]>,
}

/// The machine.
pub struct Ari {
    site: Rc<Site>,
    sockets: Sockets,
    facts: Facts,
}

impl Ari {
    /// Without connections. What programs said of devices before the process last ended holds again.
    pub fn new(site: Rc<Site>) -> Self {
        ops::devices::restore(&mut site.shard.core.borrow_mut());
        Self { site, sockets: Sockets::default(), facts: Facts::default() }
    }
    /// After a reload: users who are gone are let go. Their applications stay with their channels, until they come again.
    pub fn configure(&mut self, out: &mut Vec<Output>) {
        let snapshot = self.site.snapshot.borrow().clone();
        self.site.ari.borrow_mut().identity.clear();
        self.site.ari.borrow_mut().zone = None;
        self.site.ari.borrow_mut().proved.clear();
        let is_known = |user: &str| snapshot.ari.is_served() && snapshot.ari.users.contains_key(user);
        let gone: Vec<u64> =
            self.sockets.iter().filter(|(_, one)| !is_known(&one.user)).map(|(client, _)| client).collect();
        for client in gone {
            self.closed(client);
            out.push(Output::Close(client));
        }
    }
    /// Whether a client is a connection for events.
    pub fn has(&self, client: u64) -> bool {
        self.sockets.has(client)
    }
    /// Whether somebody hears of anything, so that notices are made.
    pub fn is_watching(&self) -> bool {
        self.sockets.len() > 0
    }
    /// A request came in. The one gate: who asks and whether they may comes before everything else.
    pub fn request(&mut self, request: AriRequest, http: &mut Http, now: Instant, out: &mut Vec<Output>) {
        let connection = request.connection;
        self.site.ari.borrow_mut().requests += 1;
        let taken = catch_unwind(AssertUnwindSafe(|| self.judge(&request, now)));
        let outcome = taken.unwrap_or_else(|_| {
            self.log(Level::Error, "an operation panicked; it is refused");
            Err(Fault::new(500, "Internal Server Error"))
        });
        match outcome {
            Ok(Outcome::Socket(answer, connected)) => {
                http.release(connection);
                out.push(Output::Send(connection, answer));
                self.join(connection, *connected);
                if !request.rest.is_empty() {
                    self.bytes(connection, &request.rest, out);
                }
            }
            Ok(Outcome::Plain(answer)) => http.answer(connection, answer, out),
            Ok(Outcome::Recording(name)) => http.send_recording(connection, name, out),
            Err(fault) => {
                let mut answer = self.spelt(&request, fault.0, Some(&fault.json()), "");
                if fault.1 == NOT_READ {
                    answer.status = "500 Error With Function";
                }
                http.answer(connection, answer, out);
            }
        }
        if !self.is_watching() {
            // What was shown to who asked is told to nobody when it goes.
            self.facts.clear();
        }
        self.settle(out);
    }
    /// Bytes of a connection for events came.
    pub fn bytes(&mut self, client: u64, bytes: &[u8], out: &mut Vec<Output>) {
        let (goes_on, said) = self.sockets.receive(client, bytes);
        for text in said {
            self.said(client, &text);
        }
        self.settle(out);
        if !goes_on {
            self.closed(client);
            out.push(Output::Close(client));
        }
    }
    /// A connection for events is gone; its applications have nobody who hears for them.
    pub fn closed(&mut self, client: u64) {
        for app in self.sockets.remove(client) {
            self.site.shard.core.borrow_mut().stasis.unregister(&app);
        }
        if self.sockets.len() == 0 {
            self.facts.clear();
        }
        self.show();
    }
    /// Tells programs what happened, each what it listens to. An event is written once for all of them.
    pub fn notices(&mut self, notices: &[Notice], out: &mut Vec<Output>) {
        if self.sockets.len() == 0 {
            return;
        }
        let snapshot = self.site.snapshot.borrow().clone();
        let site = self.site.clone();
        let zone = zone_of(&site);
        for notice in notices {
            let apps = site.shard.core.borrow_mut().stasis.route(notice);
            self.facts.note(&site.shard.core.borrow(), notice);
            if apps.is_empty() {
                self.facts.forget(notice);
                continue;
            }
            let core = site.shard.core.borrow();
            let variables = &snapshot.ari.general.channelvars;
            let mut view =
                View { site: &site, core: &core, facts: &mut self.facts, variables, zone: zone.clone() };
            let mut events = events::events_of(notice, &mut view);
            let stamp = view.moment(core.services.wall.now_micros());
            drop(core);
            if std::mem::take(&mut self.facts.asks) {
                events.iter_mut().for_each(|(_, event)| view::ask_functions(&site, event));
            }
            let core = site.shard.core.borrow();
            for (name, mut event) in events {
                if let Some(fields) = event.as_object_mut() {
                    fields.insert("type".into(), Value::from(name));
                    fields.insert("timestamp".into(), stamp.clone());
                    fields.insert("asterisk_id".into(), Value::from(identity_of(&site)));
                }
                let apps = apps.iter().filter(|app| core.stasis.app(app).is_some_and(|own| own.hears(name)));
                tell(&site, &mut self.sockets, &event, apps.map(|app| &**app));
            }
            self.facts.forget(notice);
        }
        self.settle(out);
    }

    /// Whether a request may be carried out, and what comes of it.
    fn judge(&mut self, request: &AriRequest, now: Instant) -> Result<Outcome, Fault> {
        if request.method == "OPTIONS" {
            return Ok(Outcome::Plain(self.preflight(request)));
        }
        match auth::caller(&self.site, request) {
            Ok(caller) => self.judge_of(request, &caller, now),
            Err(Denied::Address) => Err(Fault::new(403, "Access denied by ACL")),
            Err(Denied::Unknown) => {
                let realm =
                    self.site.snapshot.borrow().ari.general.auth_realm.replace(['"', '\\', '\r', '\n'], "");
                let header = format!("WWW-Authenticate: Basic realm=\"{realm}\"\r\n");
                let fault = Fault::new(401, "Authentication required");
                Ok(Outcome::Plain(self.spelt(request, 401, Some(&fault.json()), &header)))
            }
        }
    }
    /// The same of a user who is known.
    fn judge_of(&mut self, request: &AriRequest, caller: &Caller, now: Instant) -> Result<Outcome, Fault> {
        let method = Method::named(&request.method);
        if caller.read_only && method.is_none_or(Method::is_write) {
            return Err(Fault::new(403, "Write access denied"));
        }
        // A browser sends the password that its user once gave along with what any page asks for; a key no page knows.
        let changes = method.is_none_or(Method::is_write) || request.upgrade.is_some();
        if changes && !caller.by_key && self.is_foreign(request) {
            return Err(Fault::new(403, "the page that asks is not in allowed_origins"));
        }
        let whole = request.path.trim_start_matches('/');
        if let Some(without) = whole.strip_suffix('/').filter(|without| !without.is_empty()) {
            let without = without.trim_end_matches('/');
            let text = format!("ARI URLs do not end with a slash. Try /ari/{without}");
            return Err(Fault::not_found(text));
        }
        let parts = parts(&request.path)?;
        if let (Some(Method::Get), [first, file]) = (method, parts.as_slice())
            && first == "api-docs"
        {
            return self.described(request, file);
        }
        let (operation, in_path) = match method.map(|method| route(method, &parts)) {
            Some(Route::Found(operation, in_path)) => (operation, in_path),
            Some(Route::OtherMethods) | None => {
                let fault = Fault::new(405, "Invalid method");
                return Ok(Outcome::Plain(self.spelt(request, 405, Some(&fault.json()), &allow(&parts))));
            }
            Some(Route::Nowhere) => return Err(Fault::not_found("Resource not found")),
        };
        self.carry_out(request, caller, operation, in_path, now)
    }
    fn carry_out(
        &mut self,
        request: &AriRequest,
        caller: &Caller,
        operation: &'static Operation,
        in_path: Vec<(&'static str, String)>,
        now: Instant,
    ) -> Result<Outcome, Fault> {
        let site = self.site.clone();
        let (in_query, body) = parameters(request)?;
        ops::before(&site, operation, &in_path)?;
        let mut asked = Asked::new(
            &site,
            (&mut self.sockets, &mut self.facts),
            operation,
            Given { in_path, in_query, body },
        )?;
        asked.read_only = caller.read_only;
        if operation.name == "eventWebsocket" {
            let apps = ops::events::joined(&asked)?;
            let all = asked.is("subscribeAll");
            return self.upgrade(request, caller, apps, all, now);
        }
        let answer = (operation.run)(&mut asked)?;
        let (status, body, place) = match answer {
            Answer::Recording(name) => return Ok(Outcome::Recording(name)),
            Answer::Nothing => (204, None, None),
            Answer::Found(body) => (200, Some(body), None),
            Answer::Made(body, place) => (201, Some(body), Some(place)),
            Answer::Accepted => (202, None, None),
        };
        let place = place.map(|place| format!("Location: /{PATH}{place}\r\n")).unwrap_or_default();
        Ok(Outcome::Plain(self.spelt(request, status, body.as_ref(), &place)))
    }
    /// A connection becomes one for events.
    fn upgrade(
        &mut self,
        request: &AriRequest,
        caller: &Caller,
        apps: Vec<String>,
        all: bool,
        now: Instant,
    ) -> Result<Outcome, Fault> {
        let answer = match &request.upgrade {
            Some(Ok(answer)) => answer.clone(),
            Some(Err(refusal)) => {
                let fault = Fault::bad("Bad WebSocket request");
                let mut answer = self.spelt(request, 400, Some(&fault.json()), refusal.headers);
                answer.status = refusal.status;
                return Ok(Outcome::Plain(answer));
            }
            None => {
                let header = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
                let fault = Fault::new(426, "WebSocket upgrade required");
                return Ok(Outcome::Plain(self.spelt(request, 426, Some(&fault.json()), header)));
            }
        };
        if !self.sockets.has_room() {
            return Err(Fault::new(503, "Too many programs are connected"));
        }
        // Who may only look takes no calls away from a program of somebody else.
        let others = |app: &String| self.sockets.user_of(app).is_some_and(|user| user != caller.user);
        if caller.read_only && apps.iter().any(others) {
            return Err(Fault::new(403, "another user's program hears for the application"));
        }
        for (at, app) in apps.iter().enumerate() {
            let taken = self.site.shard.core.borrow_mut().stasis.register(app, all);
            match taken {
                Ok(true) if self.sockets.hears_for(app) => self.replaced(app),
                Ok(_) => {}
                Err(error) => {
                    let mut core = self.site.shard.core.borrow_mut();
                    let own = apps.iter().take(at).filter(|app| !self.sockets.hears_for(app));
                    own.for_each(|app| core.stasis.unregister(app));
                    return Err(ops::fault(&error));
                }
            }
        }
        let mut core = self.site.shard.core.borrow_mut();
        // Channels come to it from the next story on; what happens before its next turn is told as well.
        core.watched = true;
        drop(core);
        let connected = Connected {
            frames: Socket::default(),
            apps,
            user: caller.user.clone(),
            peer: request.peer,
            since: now,
        };
        Ok(Outcome::Socket(answer, Box::new(connected)))
    }
    fn join(&mut self, client: u64, connected: Connected) {
        let ip = connected.peer.ip().to_canonical();
        let text = format!("WebSocket connection from {ip} for '{}' accepted", connected.apps.join(","));
        self.log(Level::Verbose(2), &text);
        if !self.is_watching() {
            self.facts.begin(&self.site.shard.core.borrow());
        }
        self.sockets.add(client, connected);
        self.show();
    }
    /// Who heard for an application is told that another one does.
    fn replaced(&mut self, app: &str) {
        let site = self.site.clone();
        let micros = site.shard.core.borrow().services.wall.now_micros();
        let event = json!({
            "type": "ApplicationReplaced",
            "timestamp": time::stamp(micros, &zone_of(&site)),
            "asterisk_id": identity_of(&site),
        });
        tell(&site, &mut self.sockets, &event, [app].into_iter());
    }
    /// The answer to whoever asks what may be done to a path, and to a browser that asks whether a page may ask.
    fn preflight(&self, request: &AriRequest) -> WebAnswer {
        let parts = parts(&request.path).unwrap_or_default();
        let mut headers = allow(&parts);
        if request.origin.is_some() && !self.is_foreign(request) {
            headers.push_str(&headers.replacen("Allow", "Access-Control-Allow-Methods", 1));
            headers.push_str("Access-Control-Allow-Headers: Authorization,Content-Type\r\n");
        }
        self.spelt(request, 204, None, &headers)
    }
    /// Whether a page asks that lies elsewhere and is not among those that may.
    fn is_foreign(&self, request: &AriRequest) -> bool {
        let snapshot = self.site.snapshot.borrow();
        let (origin, host) = (request.origin.as_deref(), request.host.as_deref());
        let asker =
            crate::http::Asker { origin, host, site: request.fetch_site.as_deref(), secure: request.secure };
        asker.is_foreign(&snapshot.ari.general.allowed_origins)
    }
    /// Descriptions of the operations.
    fn described(&self, request: &AriRequest, file: &str) -> Result<Outcome, Fault> {
        let snapshot = self.site.snapshot.borrow().clone();
        let host = request.host.as_deref().filter(|host| is_host(host)).unwrap_or("localhost");
        let scheme = if request.secure { "https" } else { "http" };
        let base = format!("{scheme}://{host}{}", snapshot.http.path(PATH));
        let found = match file.strip_suffix(".json") {
            Some("resources") => Some(swagger::resources(&base)),
            Some(name) => swagger::resource(name, &base),
            None => None,
        };
        let body = found.ok_or_else(|| Fault::not_found("Resource not found"))?;
        Ok(Outcome::Plain(self.spelt(request, 200, Some(&body), "")))
    }
    /// An answer as it is sent.
    fn spelt(&self, request: &AriRequest, status: u16, body: Option<&Value>, headers: &str) -> WebAnswer {
        let snapshot = self.site.snapshot.borrow();
        let mut headers = headers.to_owned();
        if let Some(origin) = request.origin.as_deref().filter(|_| !self.is_foreign(request)) {
            let origin = origin.replace(['\r', '\n'], "");
            headers.push_str(&format!(
                "Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n"
            ));
        }
        let body = match body {
            Some(body) if snapshot.ari.general.pretty => format!("{body:#}"),
            Some(body) => body.to_string(),
            None => String::new(),
        };
        WebAnswer { status: reason(status), kind: KIND, headers, body }
    }
    fn settle(&mut self, out: &mut Vec<Output>) {
        for line in std::mem::take(&mut self.sockets.lines) {
            self.log(Level::Notice, &line);
        }
        if !self.sockets.out.is_empty() {
            out.append(&mut self.sockets.out);
            self.site.ari.borrow_mut().events = self.sockets.sent;
        }
    }
    /// What the console and metrics see.
    fn show(&self) {
        let connected = self.sockets.iter();
        let connected =
            connected.map(|(_, one)| (one.user.clone(), one.peer, one.apps.clone(), one.since)).collect();
        self.site.ari.borrow_mut().connected = connected;
    }
    fn log(&self, level: Level, text: &str) {
        self.site.shard.core.borrow_mut().log(level, "ari", text);
    }
}

/// What comes of a request that is not refused.
enum Outcome {
    Plain(WebAnswer),
    /// A file below the folder of recordings.
    Recording(PathBuf),
    /// The answer that makes it a WebSocket.
    Socket(Vec<u8>, Box<Connected>),
}

/// Writes an event once, and sends it for each of the applications under its name.
fn tell<'a>(site: &Site, sockets: &mut Sockets, event: &Value, apps: impl Iterator<Item = &'a str>) {
    let mut rest: Option<String> = None;
    for app in apps.filter(|app| !app.is_empty()) {
        let rest = rest.get_or_insert_with(|| event.to_string().split_off(1));
        let text = format!("{{\"application\":{},{rest}", Value::from(app));
        sockets.tell(app, &text);
        if site.ari.borrow().debug.contains(app) {
            sockets.lines.push(format!("event for '{app}': {text}"));
        }
    }
}

/// The header that says what may be done to a path.
fn allow(parts: &[String]) -> String {
    let all = methods(parts).into_iter().map(|method| format!(",{}", method.name())).collect::<String>();
    format!("Allow: OPTIONS{all}\r\n")
}

/// The parts of a path, decoded.
fn parts(path: &str) -> Result<Vec<String>, Fault> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    if parts.len() > PARTS_MAX {
        return Err(Fault::not_found("Resource not found"));
    }
    let decode = |part: &&str| String::from_utf8(form::unescaped(part, false)).ok();
    let decoded: Option<Vec<String>> = parts.iter().map(decode).collect();
    decoded.ok_or_else(|| Fault::bad("the path is no text"))
}

/// What the query and the body say.
fn parameters(request: &AriRequest) -> Result<(Vec<(String, String)>, Value), Fault> {
    let mut query = form::fields(&request.query);
    let body = request.body.trim_ascii();
    if body.is_empty() {
        return Ok((query, Value::Null));
    }
    if request.kind.starts_with("application/x-www-form-urlencoded") && !body.starts_with(b"{") {
        let text = std::str::from_utf8(body).map_err(|_| Fault::bad("the body is no text"))?;
        query.extend(form::fields(text));
        return Ok((query, Value::Null));
    }
    match serde_json::from_slice(body) {
        Ok(body @ Value::Object(_)) => Ok((query, body)),
        Ok(_) | Err(_) => Err(Fault::bad("Error parsing request body")),
    }
}

/// Whether the header `Host` names one.
fn is_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_%".contains(&byte);
    !host.is_empty() && host.bytes().all(is_plain)
}

/// Where the machine stands. The disk is asked once, not for each event.
fn zone_of(site: &Site) -> Rc<Zone> {
    site.ari.borrow_mut().zone.get_or_insert_with(|| Rc::new(Zone::local())).clone()
}

/// Who this server is among others, in the form of a MAC address: `entityid` of asterisk.conf, or one made of its name.
fn identity_of(site: &Site) -> String {
    let known = site.ari.borrow().identity.clone();
    if !known.is_empty() {
        return known;
    }
    let written = site.snapshot.borrow().asterisk.options.entityid.clone();
    let identity = if written.is_empty() {
        let name = site.shard.core.borrow().settings.system_name.clone();
        // The first byte says that nobody has given it out (IEEE 802, a local address of one).
        let digest = Md5::digest(format!("strowger {name}"));
        let bytes = digest.iter().take(5).map(|byte| format!(":{byte:02x}"));
        format!("02{}", bytes.collect::<String>())
    } else {
        written
    };
    site.ari.borrow_mut().identity.clone_from(&identity);
    identity
}

/// A status with its reason.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "200 OK",
        201 => "201 Created",
        202 => "202 Accepted",
        204 => "204 No Content",
        400 => "400 Bad Request",
        401 => "401 Unauthorized",
        403 => "403 Forbidden",
        404 => "404 Not Found",
        405 => "405 Method Not Allowed",
        409 => "409 Conflict",
        412 => "412 Precondition Failed",
        422 => "422 Unprocessable Entity",
        426 => "426 Upgrade Required",
        501 => "501 Not Implemented",
        503 => "503 Service Unavailable",
        _ => "500 Internal Server Error",
    }
}
