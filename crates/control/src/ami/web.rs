//! The manager protocol over HTTP: each request is an action, a cookie ties them to one session, and what happens
//! meanwhile waits until the client fetches it with `WaitEvent`.
//!
//! The paths `/arawman`, `/amxml` and `/amanager` ask for HTTP digest authentication (RFC 2617) instead of `Login`.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use base::Instant;
use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;

use super::packet::{Action, Message};
use super::session::{Session, Stage};
use super::{Manager, SESSIONS_MAX, login};
use crate::socket::Output;

/// Numbers of these sessions begin here; those of connections never come so far.
pub(super) const FIRST: u64 = 1 << 63;
/// What a session may have waiting for `WaitEvent`, bytes; the same as a connection that is not read.
const QUEUE_BYTES_MAX: usize = 1 << 20;
/// Longest answer of pages over HTTP, bytes: it is sent whole, and a form that is longer than it was would be too long for
/// what a connection may have unsent.
const ANSWER_BYTES_MAX: usize = 1 << 18;
/// Digest challenges that are remembered; each is good for one session.
const NONCES_MAX: usize = 1024;
/// How long a challenge may be used, seconds.
const NONCE_SECONDS: u64 = 300;
/// Realm of digest authentication.
const REALM: &str = "asterisk";

/// In what form a path answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebForm {
    spelling: Spelling,
    /// By HTTP digest authentication.
    digest: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Raw,
    Xml,
    Html,
}

impl WebForm {
    /// Paths below the prefix of http.conf.
    pub const PATHS: [(&'static str, Self); 6] = [
        ("rawman", Self { spelling: Spelling::Raw, digest: false }),
        ("mxml", Self { spelling: Spelling::Xml, digest: false }),
        ("manager", Self { spelling: Spelling::Html, digest: false }),
        ("arawman", Self { spelling: Spelling::Raw, digest: true }),
        ("amxml", Self { spelling: Spelling::Xml, digest: true }),
        ("amanager", Self { spelling: Spelling::Html, digest: true }),
    ];
}

/// A request for the manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// Connection that waits for the answer.
    pub connection: u64,
    /// Who asks.
    pub peer: SocketAddr,
    /// In what form.
    pub form: WebForm,
    /// `GET` or `POST`.
    pub method: String,
    /// Path and query as they came.
    pub target: String,
    /// Headers of the action.
    pub fields: Vec<(String, String)>,
    /// The session's cookie.
    pub token: Option<String>,
    /// The header `Authorization`.
    pub authorization: Option<String>,
}

/// What a connection is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// `200 OK`.
    pub status: &'static str,
    /// Content type.
    pub kind: &'static str,
    /// Further headers, a line each.
    pub headers: String,
    /// Body.
    pub body: String,
}

/// What a session over HTTP has beside others.
pub(crate) struct Web {
    token: String,
    /// It ends at this moment, unless a request comes first.
    until: Instant,
    /// What `WaitEvent` will give.
    events: String,
    /// The connection that waits for an answer, and its form.
    asked: Option<(u64, WebForm)>,
    /// The answer so far.
    answer: String,
}

impl Web {
    /// What has happened since this was last asked.
    pub fn take_events(&mut self) -> String {
        std::mem::take(&mut self.events)
    }
    /// When it ends; while somebody waits for an answer it does not.
    pub fn deadline(&self) -> Option<Instant> {
        self.asked.is_none().then_some(self.until)
    }
    /// Whether so many bytes more may be answered; else that is the answer.
    pub fn has_room(&mut self, more: usize) -> bool {
        let has_room = self.answer.len() + more <= ANSWER_BYTES_MAX;
        if !has_room {
            self.answer.clear();
            Message::response("Error", None, &mut self.answer)
                .field("Message", "The list is too long for HTTP: ask for a part of it")
                .end();
        }
        has_room
    }
    /// Keeps events; `false` when the client leaves too many.
    pub fn keep(&mut self, events: &str) -> bool {
        self.events.push_str(events);
        self.events.len() <= QUEUE_BYTES_MAX
    }
}

/// Sessions by cookie, and challenges that were given.
#[derive(Default)]
pub(super) struct Webs {
    by_token: BTreeMap<String, u64>,
    last: u64,
    nonces: BTreeMap<String, Nonce>,
    /// Sessions that ended while somebody waits for their last words.
    leaving: BTreeMap<u64, (u64, WebForm)>,
    done: Vec<(u64, WebAnswer)>,
}

impl Webs {
    fn last_words(&mut self, id: u64, text: &str) {
        if let Some((connection, form)) = self.leaving.remove(&id) {
            self.done.push((connection, spelt(form, text, None)));
        }
    }
}

struct Nonce {
    until: Instant,
    /// The last count that was used with it.
    count: u64,
    /// The session that it opened.
    session: Option<u64>,
}

impl Manager {
    /// A request came in over HTTP. It is answered by [`Manager::take_web_answers`], at once or when the action is done.
    pub fn web(&mut self, request: WebRequest, now: Instant) {
        let form = request.form;
        let id = match self.web_session(&request, now) {
            Ok(id) => id,
            Err(answer) => return self.webs.done.push((request.connection, answer)),
        };
        let idle = self.web_idle();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(web) = session.web.as_mut() else { return };
        if web.asked.is_some() {
            let mut text = String::new();
            Message::response("Error", None, &mut text).field("Message", "The session waits already").end();
            return self.webs.done.push((request.connection, spelt(form, &text, None)));
        }
        web.asked = Some((request.connection, form));
        web.until = now + idle;
        let action = Action::of(request.fields);
        let mut out = Vec::new();
        self.act(id, &action, now, &mut out);
        self.answer_later(now, &mut out);
        self.web_settle(&mut out);
        self.pending.append(&mut out);
        // Who neither logged in nor asked for a challenge leaves nothing behind.
        let stays = |session: &Session| session.login().is_some() || session.challenge.is_some();
        if self.sessions.get(&id).is_some_and(|session| !stays(session)) {
            self.forget(id);
        }
    }
    /// A connection is gone; an answer that it waited for is not kept.
    pub fn web_closed(&mut self, connection: u64) {
        for session in self.sessions.values_mut() {
            if let Some(web) =
                session.web.as_mut().filter(|web| web.asked.is_some_and(|(own, _)| own == connection))
            {
                web.asked = None;
                web.answer.clear();
                session.busy = None;
            }
        }
    }
    /// Answers that are ready.
    pub fn take_web_answers(&mut self) -> Vec<(u64, WebAnswer)> {
        std::mem::take(&mut self.webs.done)
    }

    fn web_idle(&self) -> core::time::Duration {
        let seconds = self.site.snapshot.borrow().manager.general.httptimeout;
        core::time::Duration::from_secs(seconds.into())
    }
    /// The session that a request belongs to; a new one when it names none.
    fn web_session(&mut self, request: &WebRequest, now: Instant) -> Result<u64, WebAnswer> {
        if request.form.digest {
            return self.digest_session(request, now);
        }
        let known = request.token.as_ref().and_then(|token| self.webs.by_token.get(token)).copied();
        match known.filter(|id| self.sessions.contains_key(id)) {
            Some(id) => Ok(id),
            None => self.new_web_session(request.peer, false, now),
        }
    }
    /// A session for a stranger, who is one of the strangers that [`Manager::open`] counts, or for a user who is proved.
    fn new_web_session(&mut self, peer: SocketAddr, is_proved: bool, now: Instant) -> Result<u64, WebAnswer> {
        let mut out = std::mem::take(&mut self.pending);
        let has_room = is_proved && self.sessions.len() < SESSIONS_MAX || self.has_room(peer.ip(), &mut out);
        self.pending = out;
        let (true, Some(token)) = (has_room, random_token()) else {
            return Err(WebAnswer {
                status: "503 Service Unavailable",
                kind: "text/plain; charset=utf-8",
                headers: "Retry-After: 5\r\n".into(),
                body: "503 Service Unavailable\n".into(),
            });
        };
        self.webs.last += 1;
        let id = FIRST | self.webs.last;
        let mut session = Session::new(peer, now + self.login_timeout);
        let until = now + self.web_idle();
        session.web = Some(Box::new(Web {
            token: token.clone(),
            until,
            events: String::new(),
            asked: None,
            answer: String::new(),
        }));
        self.sessions.insert(id, session);
        self.webs.by_token.insert(token, id);
        Ok(id)
    }
    /// The session of somebody who has proved to be a user by HTTP digest authentication.
    fn digest_session(&mut self, request: &WebRequest, now: Instant) -> Result<u64, WebAnswer> {
        self.webs.nonces.retain(|_, nonce| nonce.until > now);
        let Some(given) = request.authorization.as_deref().and_then(Credentials::parse) else {
            return Err(self.challenge(now, false));
        };
        let snapshot = self.site.snapshot.borrow().clone();
        let user = snapshot.manager.users.get(given.username);
        let right =
            given.prove(&request.method, user.map_or("no user has this secret", |user| user.secret.expose()));
        let here = user.is_some_and(|user| user.access.allows(request.peer.ip()));
        let proved = if user.is_none() {
            Err(login::Denied::UnknownUser)
        } else if !here {
            Err(login::Denied::Address)
        } else if right && given.uri == request.target {
            Ok(())
        } else {
            Err(login::Denied::Key)
        };
        let judged = login::judged(&self.site, request.peer, given.username, proved);
        let Some(user) = user.filter(|_| judged.is_ok()) else {
            if let Err(why) = judged {
                login::tell_denied(&self.site, request.peer, 0, given.username, why);
            }
            return Err(self.challenge(now, false));
        };
        let until = now + core::time::Duration::from_secs(NONCE_SECONDS) + self.web_idle();
        let count = u64::from_str_radix(given.nc, 16).unwrap_or(0);
        let sessions = &self.sessions;
        // A challenge that has opened a session is its user's, and no other user's way into it.
        let is_own = |nonce: &Nonce| {
            let session = nonce.session.and_then(|id| sessions.get(&id));
            session.is_none_or(|session| session.login().is_some_and(|login| login.user == given.username))
        };
        let known = self.webs.nonces.get_mut(given.nonce);
        let Some(nonce) = known.filter(|nonce| count > nonce.count && is_own(nonce)) else {
            return Err(self.challenge(now, true));
        };
        nonce.count = count;
        nonce.until = until;
        if let Some(id) = nonce.session.filter(|id| self.sessions.contains_key(id)) {
            return Ok(id);
        }
        let id = self.new_web_session(request.peer, true, now)?;
        if let Some(nonce) = self.webs.nonces.get_mut(given.nonce) {
            nonce.session = Some(id);
        }
        let login = login::entered(given.username, user, &snapshot.manager.general, None);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.stage = Stage::User(Box::new(login));
        }
        Ok(id)
    }
    fn challenge(&mut self, now: Instant, stale: bool) -> WebAnswer {
        if self.webs.nonces.len() >= NONCES_MAX {
            // Strangers push out strangers, never somebody who is at work.
            let unused = self.webs.nonces.iter().filter(|(_, nonce)| nonce.session.is_none());
            let oldest = unused.min_by_key(|(_, nonce)| nonce.until).map(|(nonce, _)| nonce.clone());
            oldest.map(|nonce| self.webs.nonces.remove(&nonce));
        }
        let nonce = random_token().filter(|_| self.webs.nonces.len() < NONCES_MAX).unwrap_or_default();
        let until = now + core::time::Duration::from_secs(NONCE_SECONDS);
        if !nonce.is_empty() {
            self.webs.nonces.insert(nonce.clone(), Nonce { until, count: 0, session: None });
        }
        let stale = if stale { ", stale=true" } else { "" };
        WebAnswer {
            status: "401 Unauthorized",
            kind: "text/plain; charset=utf-8",
            headers: format!(
                "WWW-Authenticate: Digest realm=\"{REALM}\", nonce=\"{nonce}\", algorithm=MD5, qop=\"auth\"{stale}\r\n"
            ),
            body: "401 Unauthorized\n".into(),
        }
    }
    /// Takes what is meant for sessions over HTTP out of `out`, and finishes the requests that are answered with it.
    pub(super) fn web_settle(&mut self, out: &mut Vec<Output>) {
        let is_web =
            |output: &Output| matches!(output, Output::Send(id, _) | Output::Close(id) if *id >= FIRST);
        if !out.iter().any(is_web) && !self.sessions.values().any(|session| session.web.is_some()) {
            return;
        }
        let mut others = Vec::with_capacity(out.len());
        for output in out.drain(..) {
            match output {
                Output::Send(id, bytes) if id >= FIRST => {
                    let web = self.sessions.get_mut(&id).and_then(|session| session.web.as_mut());
                    let text = String::from_utf8_lossy(&bytes);
                    match web {
                        Some(web) => web.answer.push_str(&text),
                        // Its last words: the session is gone already.
                        None => self.webs.last_words(id, &text),
                    }
                }
                Output::Close(id) if id >= FIRST => self.webs.last_words(id, ""),
                other => others.push(other),
            }
        }
        *out = others;
        let idle = self.web_idle();
        for session in self.sessions.values_mut() {
            let is_known = session.login().is_some() || session.challenge.is_some();
            if session.busy.is_some() {
                continue;
            }
            let Some(web) = session.web.as_mut().filter(|web| !web.answer.is_empty()) else { continue };
            let Some((connection, form)) = web.asked.take() else { continue };
            let text = std::mem::take(&mut web.answer);
            let cookie = (is_known && !form.digest).then(|| {
                let seconds = idle.as_secs();
                let token = &web.token;
                format!(
                    "Set-Cookie: mansession_id=\"{token}\"; Version=1; Max-Age={seconds}; HttpOnly; SameSite=Strict\r\n"
                )
            });
            self.webs.done.push((connection, spelt(form, &text, cookie)));
        }
    }
    /// A session is no more: whoever waits for its answer gets what there is of it.
    pub(super) fn web_forget(&mut self, id: u64, web: &Web) {
        self.webs.by_token.remove(&web.token);
        if let Some(asked) = web.asked {
            self.webs.leaving.insert(id, asked);
            if !web.answer.is_empty() {
                self.webs.last_words(id, &web.answer);
            }
        }
    }
}

/// A name for a session that nobody can guess.
fn random_token() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(login::hex(&bytes))
}

/// What a client says to prove who it is (RFC 2617 §3.2.2).
struct Credentials<'a> {
    username: &'a str,
    nonce: &'a str,
    uri: &'a str,
    response: &'a str,
    nc: &'a str,
    cnonce: &'a str,
}

impl<'a> Credentials<'a> {
    fn parse(header: &'a str) -> Option<Self> {
        let (scheme, list) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        let mut found: BTreeMap<&str, &str> = BTreeMap::new();
        let mut rest = list.trim();
        while let Some((name, tail)) = rest.split_once('=') {
            let (value, tail) = match tail.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => tail.split_once(',').map_or((tail, ""), |(value, tail)| (value.trim(), tail)),
            };
            found.insert(name.trim(), value);
            rest = tail.trim_start_matches([',', ' ']);
        }
        let get = |name: &str| found.get(name).copied();
        if get("realm") != Some(REALM) || get("qop") != Some("auth") {
            return None;
        }
        Some(Self {
            username: get("username")?,
            nonce: get("nonce")?,
            uri: get("uri")?,
            response: get("response")?,
            nc: get("nc")?,
            cnonce: get("cnonce")?,
        })
    }
    /// Whether whoever made this knows the secret.
    fn prove(&self, method: &str, secret: &str) -> bool {
        let hash = |text: String| login::hex(&Md5::digest(text));
        let who = hash(format!("{}:{REALM}:{secret}", self.username));
        let what = hash(format!("{method}:{}", self.uri));
        let expected = hash(format!("{who}:{}:{}:{}:auth:{what}", self.nonce, self.nc, self.cnonce));
        bool::from(self.response.to_ascii_lowercase().as_bytes().ct_eq(expected.as_bytes()))
    }
}

/// Messages in the form that the path asks for.
fn spelt(form: WebForm, text: &str, cookie: Option<String>) -> WebAnswer {
    let (kind, body) = match form.spelling {
        Spelling::Raw => ("text/plain; charset=utf-8", text.to_owned()),
        Spelling::Xml => ("text/xml; charset=utf-8", xml(text)),
        Spelling::Html => ("text/html; charset=utf-8", html(text)),
    };
    WebAnswer { status: "200 OK", kind, headers: cookie.unwrap_or_default(), body }
}

/// Each message as its fields.
fn messages(text: &str) -> impl Iterator<Item = Vec<(&str, &str)>> {
    text.split("\r\n\r\n").filter(|part| !part.is_empty()).map(|part| {
        part.split("\r\n").filter_map(|line| line.split_once(": ").or_else(|| line.split_once(':'))).collect()
    })
}

/// Text as it stands in XML and HTML.
pub(crate) fn escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
}

/// One element a message, one attribute a field; a name that comes again is numbered.
fn xml(text: &str) -> String {
    let mut out = String::from("<ajax-response>\n");
    for message in messages(text) {
        out.push_str("<response type='object' id='unknown'><generic");
        let mut counted: BTreeMap<String, u32> = BTreeMap::new();
        for (name, value) in message {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
            let mut name: String = name.chars().map(plain).collect();
            if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                name.insert(0, '_');
            }
            let count = counted.entry(name.clone()).or_default();
            *count += 1;
            // Writing to a String cannot fail.
            let _ = if *count > 1 { write!(out, " {name}-{count}='") } else { write!(out, " {name}='") };
            escaped(value, &mut out);
            out.push('\'');
        }
        out.push_str(" /></response>\n");
    }
    out.push_str("</ajax-response>\n");
    out
}

/// A page with a table, and a form for the next action.
fn html(text: &str) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html><head><title>Manager</title></head><body>\n<form method=\"post\">\
         Action: <input name=\"action\"> <input type=\"submit\" value=\"Send\"></form>\n<table>\n",
    );
    for message in messages(text) {
        for (name, value) in message {
            out.push_str("<tr><td>");
            escaped(name, &mut out);
            out.push_str("</td><td>");
            escaped(value, &mut out);
            out.push_str("</td></tr>\n");
        }
        out.push_str("<tr><td colspan=\"2\"><hr></td></tr>\n");
    }
    out.push_str("</table></body></html>\n");
    out
}
