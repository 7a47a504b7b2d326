//! Requests that a program sends on the connection that it hears events by (`RESTRequest`), and their answers.
//!
//! They are judged like those that come by HTTP: as the user who has opened the connection.

use std::panic::{AssertUnwindSafe, catch_unwind};

use call::Level;
use serde_json::{Map, Value};

use super::auth::Caller;
use super::table::{Fault, NOT_READ};
use super::{Ari, AriRequest, KIND, Outcome, form, identity_of, time, zone_of};
use crate::ami::WebAnswer;

/// What a request says of itself and its answer repeats.
#[derive(Default)]
struct Names {
    transaction: String,
    request: String,
    uri: String,
}

impl Ari {
    /// A program has said something on its connection.
    pub(super) fn said(&mut self, client: u64, text: &[u8]) {
        let Some(connected) = self.sockets.get(client) else { return };
        let (user, peer, apps) = (connected.user.clone(), connected.peer, connected.apps.join(","));
        self.site.ari.borrow_mut().requests += 1;
        let asked: Value = serde_json::from_slice(text).unwrap_or(Value::Null);
        let word = |name: &str| asked.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut names =
            Names { transaction: word("transaction_id"), request: word("request_id"), ..Names::default() };
        let read_only = self.site.snapshot.borrow().ari.users.get(&user).map(|user| user.read_only);
        let answer = match (word("type") == "RESTRequest", read_only) {
            (false, _) => Err(Fault::bad("Unknown request type.")),
            (true, None) => Err(Fault::new(401, "Authentication required")),
            (true, Some(read_only)) => {
                let request = request_of(&asked, client, peer);
                names.uri = request.path.trim_start_matches('/').to_owned();
                self.asked_on_socket(&request, Caller { user, read_only, by_key: true })
            }
        };
        let answer = answer.unwrap_or_else(|fault| {
            let status = if fault.1 == NOT_READ { "500 Error With Function" } else { super::reason(fault.0) };
            WebAnswer { status, kind: KIND, headers: String::new(), body: fault.json().to_string() }
        });
        let event = self.response(&names, &answer, &apps);
        self.sockets.answer(client, &event.to_string());
    }
    fn asked_on_socket(&mut self, request: &AriRequest, caller: Caller) -> Result<WebAnswer, Fault> {
        let now = self.site.shard.core.borrow().now;
        let judged = catch_unwind(AssertUnwindSafe(|| match request.method.as_str() {
            "OPTIONS" => Ok(Outcome::Plain(self.preflight(request))),
            _ => self.judge_of(request, &caller, now),
        }));
        match judged {
            Ok(Ok(Outcome::Plain(answer))) => Ok(answer),
            Ok(Ok(Outcome::Recording(_) | Outcome::Socket(..))) => {
                Err(Fault::new(501, "This is to be had by HTTP only"))
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => {
                self.log(Level::Error, "an operation panicked; it is refused");
                Err(Fault::new(500, "Internal Server Error"))
            }
        }
    }
    fn response(&self, names: &Names, answer: &WebAnswer, apps: &str) -> Value {
        let (status, reason) = answer.status.split_once(' ').unwrap_or((answer.status, ""));
        let micros = self.site.shard.core.borrow().services.wall.now_micros();
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("type", Value::from("RESTResponse"));
        put("transaction_id", Value::from(names.transaction.as_str()));
        put("request_id", Value::from(names.request.as_str()));
        put("status_code", Value::from(status.parse::<u16>().unwrap_or(500)));
        put("reason_phrase", Value::from(reason));
        put("uri", Value::from(names.uri.as_str()));
        if !answer.body.is_empty() {
            put("content_type", Value::from(answer.kind));
            put("message_body", Value::from(answer.body.as_str()));
        }
        put("application", Value::from(apps));
        put("timestamp", time::stamp(micros, &zone_of(&self.site)).into());
        put("asterisk_id", Value::from(identity_of(&self.site)));
        Value::Object(fields)
    }
}

/// A request as it would have come by HTTP.
fn request_of(asked: &Value, client: u64, peer: std::net::SocketAddr) -> AriRequest {
    let word = |name: &str| asked.get(name).and_then(Value::as_str).unwrap_or_default();
    let (path, query) = word("uri").split_once('?').unwrap_or((word("uri"), ""));
    let mut query = query.to_owned();
    for pair in asked.get("query_strings").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| pair.get(name).and_then(Value::as_str).map(form::escaped).unwrap_or_default();
        let joint = if query.is_empty() { "" } else { "&" };
        query.push_str(&format!("{joint}{}={}", part("name"), part("value")));
    }
    AriRequest {
        connection: client,
        peer,
        secure: false,
        method: word("method").to_ascii_uppercase(),
        path: format!("/{}", path.trim_start_matches('/')),
        query,
        body: word("message_body").as_bytes().to_vec(),
        kind: word("content_type").to_owned(),
        authorization: None,
        origin: None,
        fetch_site: None,
        host: None,
        upgrade: None,
        rest: Vec::new(),
    }
}
