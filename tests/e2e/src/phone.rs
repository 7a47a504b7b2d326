//! A phone that does exactly what a test says: UDP, one call at a time.

use crate::digest;
use crate::media::{EVENTS, Media, PCMA};
use crate::message::Message;
use crate::place::address;
use crate::repeats::Repeats;
use crate::site::SECRET;
use crate::wait::SOON;
use crate::wire::Wire;
use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How a phone that plays a carrier asks for a password.
const CHALLENGE: &str =
    "Digest realm=\"elsewhere\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", algorithm=MD5";

/// What identifies the call it is in.
#[derive(Debug, Clone)]
struct Dialog {
    call_id: String,
    /// Its own side, as From of its requests.
    local: String,
    /// The other side, as To of its requests.
    remote: String,
    /// Where its requests go.
    target: String,
    sequence: u32,
}

/// A phone.
#[derive(Debug)]
pub struct Phone {
    /// Its user name.
    pub name: String,
    /// Its password.
    pub secret: String,
    /// What stands before its address in From: a name in quotation marks.
    pub display: String,
    /// Payload types it offers and accepts, preferred first.
    pub codecs: Vec<u8>,
    /// The only format it offers and accepts, if any, instead of [`codecs`](Self::codecs).
    pub wire: Option<&'static Wire>,
    /// What it offers instead of a description of its audio; bytes, because a test may offer nonsense.
    pub offer: Option<Vec<u8>>,
    /// Further lines of its descriptions, behind those of its audio.
    pub also: String,
    /// The address it claims to have in Contact and in its descriptions, as a phone behind NAT does.
    pub claims: Option<SocketAddr>,
    /// What it writes in Contact, if not its address in brackets.
    pub contact: Option<String>,
    /// Its audio.
    pub media: Media,
    /// Statuses of all responses that came, in order, those that were sent again too.
    pub seen: Vec<u16>,
    double: bool,
    socket: UdpSocket,
    local: SocketAddr,
    server: SocketAddr,
    count: u32,
    dialog: Option<Dialog>,
    /// The INVITE that waits for its final response: URI, branch and what it carried.
    pending: Option<(String, String, u32)>,
    inbox: VecDeque<Message>,
    /// All that came: what is sent again, because a phone had no time to answer, is no news (RFC 3261 §17).
    known: HashSet<Vec<u8>>,
    repeats: Repeats,
}

impl Phone {
    /// A phone on an address of its own.
    pub fn new(server: SocketAddr, name: &str) -> Self {
        let ip = if server.is_ipv4() { address() } else { server.ip() };
        Self::at(ip, server, name)
    }

    /// A phone on a given address.
    pub fn at(ip: IpAddr, server: SocketAddr, name: &str) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port for SIP");
        let local = socket.local_addr().expect("its address");
        Self {
            name: name.to_owned(),
            secret: SECRET.to_owned(),
            display: String::new(),
            codecs: vec![0],
            wire: None,
            offer: None,
            also: String::new(),
            claims: None,
            contact: None,
            media: Media::open(ip),
            seen: Vec::new(),
            double: false,
            socket,
            local,
            server,
            count: 0,
            dialog: None,
            pending: None,
            inbox: VecDeque::new(),
            known: HashSet::new(),
            repeats: Repeats::default(),
        }
    }

    /// Where it is reached.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Unique in this process and, by its number, among processes: a port that is used again must not repeat a branch.
    fn unique(&mut self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        self.count += 1;
        format!("{}-{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// What it writes in Contact.
    fn reached(&self) -> String {
        let at = self.claims.unwrap_or(self.local);
        self.contact.clone().unwrap_or_else(|| format!("<sip:{}@{at}>", self.name))
    }

    /// Sends bytes as they are.
    pub fn send(&self, bytes: &[u8]) {
        for _ in 0..=u8::from(self.double) {
            self.socket.send_to(bytes, self.server).expect("the datagram leaves");
        }
    }

    /// Next message, from those that waited or from the net.
    fn receive(&mut self, limit: Duration) -> Option<Message> {
        if let Some(message) = self.inbox.pop_front() {
            return Some(message);
        }
        self.receive_new(Instant::now() + limit)
    }

    fn receive_new(&mut self, end: Instant) -> Option<Message> {
        let mut buffer = vec![0; 65_536];
        let length = loop {
            let now = Instant::now();
            for bytes in self.repeats.due(now) {
                self.send(&bytes);
            }
            let until = self.repeats.deadline().map_or(end, |again| again.min(end));
            end.checked_duration_since(now).filter(|left| !left.is_zero())?;
            let left = until.saturating_duration_since(now).max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left)).expect("a time-out that is not zero");
            match self.socket.recv_from(&mut buffer) {
                Ok((length, _)) => break length,
                // The time is over, or a signal interrupts the wait, as one that stops a process for a while does.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => panic!("{}: {error}", self.name),
            }
        };
        let message = Message::parse(&buffer[..length]);
        if message.method() == "OPTIONS" {
            self.respond(&message, 200, "OK", false);
            return self.receive_new(end);
        }
        self.seen.extend(message.status());
        self.repeats.came(&message);
        if !self.known.insert(buffer[..length].to_vec()) {
            if let Some(bytes) = self.repeats.again(&message) {
                self.send(bytes);
            }
            return self.receive_new(end);
        }
        Some(message)
    }

    /// First message that fits, within [`SOON`]; others wait in order.
    fn expect_message(&mut self, what: &str, fits: impl Fn(&Message) -> bool) -> Message {
        if let Some(at) = self.inbox.iter().position(&fits) {
            return self.inbox.remove(at).expect("it was just found");
        }
        let end = Instant::now() + SOON;
        while let Some(message) = self.receive_new(end) {
            if fits(&message) {
                return message;
            }
            self.inbox.push_back(message);
        }
        panic!(
            "{}: {what} did not come; waiting: {:?}",
            self.name,
            self.inbox.iter().map(|m| &m.start).collect::<Vec<_>>()
        );
    }

    /// Next request of this method.
    pub fn expect(&mut self, method: &str) -> Message {
        self.expect_message(method, |message| message.method() == method)
    }

    /// Whether any request of this method has come or comes within a time.
    pub fn comes(&mut self, method: &str, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let waiting = self.inbox.iter().any(|message| message.method() == method);
        waiting || std::iter::from_fn(|| self.receive_new(end)).any(|message| message.method() == method)
    }

    /// Next response to a branch; a final one when `last`.
    fn response(&mut self, branch: &str, last: bool) -> Message {
        self.expect_message("a response", |message| {
            message.branch() == branch && message.status().is_some_and(|status| !last || status >= 200)
        })
    }

    /// Sends a request outside or inside a call; its branch.
    fn request(&mut self, method: &str, uri: &str, dialog: &Dialog, more: &str, body: &[u8]) -> String {
        let branch = format!("z9hG4bK{}", self.unique());
        let head = self.request_head((method, uri), dialog, &branch, more, body.len());
        let bytes = [head.as_bytes(), body].concat();
        self.send(&bytes);
        self.repeats.asked(&branch, method, &bytes);
        branch
    }

    /// ACK of a good response to an INVITE (RFC 3261 §13.2.2.4), a request of its own.
    fn ack(&mut self, response: &Message, dialog: &Dialog, answer: &str) {
        let branch = format!("z9hG4bK{}", self.unique());
        let head = self.request_head(("ACK", &dialog.target), dialog, &branch, "", answer.len());
        let bytes = [head.as_bytes(), answer.as_bytes()].concat();
        self.send(&bytes);
        self.repeats.acknowledges(response, &bytes);
    }

    fn request_head(
        &self,
        (method, uri): (&str, &str),
        dialog: &Dialog,
        branch: &str,
        more: &str,
        body_bytes: usize,
    ) -> String {
        let Dialog { call_id, local, remote, sequence, .. } = dialog;
        let (at, contact) = (self.local, self.reached());
        let kind = if body_bytes == 0 { "" } else { "Content-Type: application/sdp\r\n" };
        format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {at};rport;branch={branch}\r\nMax-Forwards: 70\r\n\
             From: {local}\r\nTo: {remote}\r\nCall-ID: {call_id}\r\nCSeq: {sequence} {method}\r\n\
             Contact: {contact}\r\n{more}{kind}Content-Length: {body_bytes}\r\n\r\n"
        )
    }

    fn new_dialog(&mut self, to: &str) -> Dialog {
        let (name, server, tag) = (self.name.clone(), self.server, self.unique());
        Dialog {
            call_id: format!("{tag}@e2e"),
            local: format!("{}<sip:{name}@{server}>;tag={tag}", self.display),
            remote: format!("<sip:{to}@{server}>"),
            target: format!("sip:{to}@{server}"),
            sequence: 1,
        }
    }

    /// An answer to the challenge in a 401.
    fn credentials(&self, refused: &Message, method: &str, uri: &str) -> Option<String> {
        let value = digest::answer(refused.challenge()?, &self.name, &self.secret, method, uri);
        let name = if refused.status() == Some(407) { "Proxy-Authorization" } else { "Authorization" };
        Some(format!("{name}: {value}\r\n"))
    }

    /// One request outside a call without credentials, and its final response.
    pub fn ask(&mut self, method: &str, user: &str) -> Message {
        let dialog = self.new_dialog(user);
        let branch = self.request(method, &dialog.target.clone(), &dialog, "", b"");
        self.response(&branch, true)
    }

    /// Registers for so many seconds, with the password when asked; the last response.
    pub fn register(&mut self, seconds: u32) -> Message {
        let uri = format!("sip:{}", self.server);
        let mut dialog = self.new_dialog(&self.name.clone());
        let expires = format!("Expires: {seconds}\r\n");
        let branch = self.request("REGISTER", &uri, &dialog, &expires, b"");
        let response = self.response(&branch, true);
        let Some(credentials) = self.credentials(&response, "REGISTER", &uri) else { return response };
        dialog.sequence += 1;
        let branch = self.request("REGISTER", &uri, &dialog, &(expires + &credentials), b"");
        self.response(&branch, true)
    }

    /// Registers, which must succeed.
    pub fn must_register(&mut self) {
        let response = self.register(300);
        assert_eq!(response.status(), Some(200), "{}", response.text());
    }

    /// Session description of an offer or answer.
    pub fn sdp(&self, direction: &str) -> String {
        let at = self.claims.unwrap_or_else(|| self.media.local());
        let version = if at.is_ipv4() { "IP4" } else { "IP6" };
        let mut text = format!(
            "v=0\r\no=- 1 {} IN {version} {ip}\r\ns=-\r\nc=IN {version} {ip}\r\nt=0 0\r\nm=audio {} RTP/AVP",
            self.count,
            at.port(),
            ip = at.ip()
        );
        let codecs = self.wire.map_or_else(|| self.codecs.clone(), |wire| vec![wire.payload_type]);
        for codec in &codecs {
            // Writing to a String cannot fail.
            let _ = write!(text, " {codec}");
        }
        let _ = write!(text, " {EVENTS}\r\n");
        for codec in &codecs {
            let name = if *codec == PCMA { "PCMA/8000" } else { "PCMU/8000" };
            let name = self.wire.map_or(name, |wire| wire.rtpmap);
            let _ = write!(text, "a=rtpmap:{codec} {name}\r\n");
        }
        if let Some(Wire { payload_type, fmtp: Some(fmtp), .. }) = self.wire {
            let _ = write!(text, "a=fmtp:{payload_type} {fmtp}\r\n");
        }
        let ptime = self.wire.map_or(20, |wire| wire.ms);
        let _ = write!(
            text,
            "a=rtpmap:{EVENTS} telephone-event/8000\r\na=fmtp:{EVENTS} 0-16\r\na=ptime:{ptime}\r\na={direction}\r\n{}",
            self.also
        );
        text
    }

    /// Sends audio where a session description says, in its first codec that the phone knows.
    fn follow(&self, message: &Message) {
        let Some(media) = message.sdp("m=audio ") else { return };
        let mut words = media.split(' ');
        let port = words.next().and_then(|port| port.parse().ok());
        let ip = message
            .sdp("c=IN IP4 ")
            .or_else(|| message.sdp("c=IN IP6 "))
            .and_then(|ip| ip.parse::<IpAddr>().ok());
        if let (Some(ip), Some(port)) = (ip, port) {
            self.media.send_to((ip, port).into());
        }
        let known = |codec: &u8| self.codecs.contains(codec);
        let common = words.filter_map(|word| word.parse().ok()).find(known);
        if let Some(codec) = common {
            self.media.payload_type(codec);
        }
    }

    /// Sends an INVITE and answers the challenge; [`Phone::progress`] and [`Phone::outcome`] tell how it goes on.
    pub fn begin(&mut self, number: &str) {
        self.begin_with(number, "");
    }

    /// The same with more header lines.
    pub fn begin_with(&mut self, number: &str, more: &str) {
        let mut dialog = self.new_dialog(number);
        let body = self.offer.clone().unwrap_or_else(|| self.sdp("sendrecv").into_bytes());
        let uri = dialog.target.clone();
        let branch = self.request("INVITE", &uri, &dialog, more, &body);
        let first = self.response(&branch, false);
        let branch = match self.credentials(&first, "INVITE", &uri) {
            Some(credentials) => {
                self.ack_refusal(&dialog, &branch, &first);
                dialog.sequence += 1;
                self.request("INVITE", &uri, &dialog, &(more.to_owned() + &credentials), &body)
            }
            None => {
                self.inbox.push_front(first);
                branch
            }
        };
        self.pending = Some((uri, branch, dialog.sequence));
        self.dialog = Some(dialog);
    }

    /// ACK of a response that is no 2xx (RFC 3261 §17.1.1.3): the INVITE's own branch.
    fn ack_refusal(&mut self, dialog: &Dialog, branch: &str, response: &Message) {
        let dialog = Dialog { remote: response.must("To").to_owned(), ..dialog.clone() };
        let text = self.request_head(("ACK", &dialog.target), &dialog, branch, "", 0);
        self.send(text.as_bytes());
        self.repeats.acknowledges(response, text.as_bytes());
    }

    /// Next response to the INVITE that is not 100; audio follows what it describes.
    pub fn progress(&mut self) -> Message {
        let (_, branch, _) = self.pending.clone().expect("an INVITE is under way");
        loop {
            let response = self.response(&branch, false);
            if response.status() != Some(100) {
                self.follow(&response);
                return self.settle(response, &branch);
            }
        }
    }

    /// Final response to the INVITE.
    pub fn outcome(&mut self) -> Message {
        loop {
            let response = self.progress();
            if response.status() >= Some(200) {
                return response;
            }
        }
    }

    /// Acknowledges a final response and keeps the dialog of a good one.
    fn settle(&mut self, response: Message, branch: &str) -> Message {
        let Some(mut dialog) = self.dialog.clone() else { return response };
        match response.status().unwrap_or_default() {
            ..200 => return response,
            200..300 => {
                dialog.remote = response.must("To").to_owned();
                dialog.target = response.contact().unwrap_or(&dialog.target).to_owned();
                // Without an offer in the INVITE the answer goes into the ACK (RFC 3261 §13.2.1).
                let late = self.offer.as_ref().is_some_and(Vec::is_empty);
                let answer = if late { self.sdp("sendrecv") } else { String::new() };
                self.ack(&response, &dialog, &answer);
                self.dialog = Some(dialog);
            }
            _ => {
                self.ack_refusal(&dialog, branch, &response);
                self.dialog = None;
            }
        }
        self.pending = None;
        response
    }

    /// Calls and waits for the final response.
    pub fn call(&mut self, number: &str) -> Message {
        self.begin(number);
        self.outcome()
    }

    /// Calls, which must be answered.
    pub fn must_call(&mut self, number: &str) -> Message {
        let response = self.call(number);
        assert_eq!(response.status(), Some(200), "calling {number}:\n{}", response.text());
        response
    }

    /// CANCELs the INVITE under way; the response to the CANCEL.
    pub fn cancel(&mut self) -> Message {
        let (uri, branch, _) = self.pending.clone().expect("an INVITE is under way");
        let dialog = self.dialog.clone().expect("an INVITE is under way");
        let text = self.request_head(("CANCEL", &uri), &dialog, &branch, "", 0);
        self.send(text.as_bytes());
        self.repeats.asked(&branch, "CANCEL", text.as_bytes());
        self.expect_message("a response to CANCEL", |message| {
            message.status().is_some()
                && message.header("CSeq").is_some_and(|value| value.ends_with("CANCEL"))
        })
    }

    /// Sends a request outside a call with more header lines, and answers the challenge; the final response.
    pub fn ask_with(&mut self, method: &str, user: &str, more: &str) -> Message {
        let mut dialog = self.new_dialog(user);
        let uri = dialog.target.clone();
        let branch = self.request(method, &uri, &dialog, more, b"");
        let first = self.response(&branch, true);
        let Some(credentials) = self.credentials(&first, method, &uri) else { return first };
        dialog.sequence += 1;
        let branch = self.request(method, &uri, &dialog, &(more.to_owned() + &credentials), b"");
        self.response(&branch, true)
    }

    /// Subscribes as [`Phone::ask_with`] asks, which must be granted, and keeps the dialog for [`Phone::set`].
    pub fn subscribe(&mut self, user: &str, more: &str) -> Message {
        let granted = self.ask_with("SUBSCRIBE", user, more);
        assert_eq!(granted.status(), Some(200), "subscribing to {user}:\n{}", granted.text());
        let mut dialog = self.new_dialog(user);
        // The one that was granted, not another.
        dialog.call_id = granted.must("Call-ID").to_owned();
        dialog.local = granted.must("From").to_owned();
        dialog.remote = granted.must("To").to_owned();
        dialog.target = granted.contact().unwrap_or(&dialog.target).to_owned();
        dialog.sequence =
            granted.must("CSeq").split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        self.dialog = Some(dialog);
        granted
    }

    /// A SUBSCRIBE inside the subscription with a body of this type; answers the challenge; the final response.
    pub fn set(&mut self, more: &str, kind: &str, body: &str) -> Message {
        let mut dialog = self.dialog.clone().expect("a subscription is there");
        dialog.sequence += 1;
        let target = dialog.target.clone();
        let branch = self.typed(("SUBSCRIBE", &target), &dialog, more, (kind, body));
        let mut answer = self.response(&branch, true);
        if let Some(credentials) = self.credentials(&answer, "SUBSCRIBE", &target) {
            dialog.sequence += 1;
            let more = more.to_owned() + &credentials;
            let branch = self.typed(("SUBSCRIBE", &target), &dialog, &more, (kind, body));
            answer = self.response(&branch, true);
        }
        self.dialog = Some(dialog);
        answer
    }

    /// Sends the same request twice, as a net that doubles datagrams does; otherwise as [`Phone::begin`].
    pub fn doubled(&mut self) {
        self.double = true;
    }

    /// Changes the tag of the other side, so that requests belong to no call.
    pub fn lose_tag(&mut self) {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.remote = dialog.remote.replace(";tag=", ";tag=not-");
    }

    /// A request inside the call and its final response.
    pub fn inside(&mut self, method: &str, body: &str) -> Message {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.sequence += 1;
        let dialog = dialog.clone();
        let branch = self.request(method, &dialog.target, &dialog, "", body.as_bytes());
        self.response(&branch, true)
    }

    /// A request inside the call with more header lines, and its final response.
    pub fn inside_with(&mut self, method: &str, more: &str) -> Message {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.sequence += 1;
        let dialog = dialog.clone();
        let branch = self.request(method, &dialog.target, &dialog, more, b"");
        self.response(&branch, true)
    }

    /// A NOTIFY inside the call with a body of this type, and its final response.
    pub fn tell(&mut self, more: &str, kind: &str, body: &str) -> Message {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.sequence += 1;
        let dialog = dialog.clone();
        let branch = self.typed(("NOTIFY", &dialog.target), &dialog, more, (kind, body));
        self.response(&branch, true)
    }

    /// A MESSAGE outside calls with a body of this type; answers the challenge; the final response.
    pub fn say(&mut self, user: &str, kind: &str, body: &str) -> Message {
        let mut dialog = self.new_dialog(user);
        let uri = dialog.target.clone();
        let branch = self.typed(("MESSAGE", &uri), &dialog, "", (kind, body));
        let first = self.response(&branch, true);
        let Some(credentials) = self.credentials(&first, "MESSAGE", &uri) else { return first };
        dialog.sequence += 1;
        let branch = self.typed(("MESSAGE", &uri), &dialog, &credentials, (kind, body));
        self.response(&branch, true)
    }

    /// Sends a request whose body is not a description; its branch.
    fn typed(
        &mut self,
        line: (&str, &str),
        dialog: &Dialog,
        more: &str,
        (kind, body): (&str, &str),
    ) -> String {
        let branch = format!("z9hG4bK{}", self.unique());
        let more = format!("{more}Content-Type: {kind}\r\n");
        let head = self.request_head(line, dialog, &branch, &more, 0);
        let head = head.replace("Content-Length: 0", &format!("Content-Length: {}", body.len()));
        let text = head + body;
        self.send(text.as_bytes());
        self.repeats.asked(&branch, line.0, text.as_bytes());
        branch
    }

    /// Its call as another one names it that is to replace it (RFC 3891), escaped for a URI: as the server sees it.
    pub fn replaces(&self) -> String {
        let dialog = self.dialog.as_ref().expect("a call is up");
        self.replaces_early(&dialog.remote)
    }

    /// The same for a call that is not answered; the other side's To stands in its provisional response.
    pub fn replaces_early(&self, remote: &str) -> String {
        let dialog = self.dialog.as_ref().expect("a call is up");
        let tag = |value: &str| value.split(";tag=").nth(1).unwrap_or_default().to_owned();
        let text = format!("{};to-tag={};from-tag={}", dialog.call_id, tag(remote), tag(&dialog.local));
        text.replace('@', "%40").replace(';', "%3B").replace('=', "%3D")
    }

    /// A request inside the call, whose response nobody waits for.
    pub fn poke(&mut self, method: &str) {
        self.poke_with(method, "");
    }

    /// The same with more header lines.
    pub fn poke_with(&mut self, method: &str, more: &str) {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.sequence += 1;
        let dialog = dialog.clone();
        self.request(method, &dialog.target, &dialog, more, b"");
    }

    /// INFO with a digit (`application/dtmf-relay`) and its final response.
    pub fn info(&mut self, relay: &str) -> Message {
        let dialog = self.dialog.as_mut().expect("a call is up");
        dialog.sequence += 1;
        let dialog = dialog.clone();
        let branch = self.typed(("INFO", &dialog.target), &dialog, "", ("application/dtmf-relay", relay));
        self.response(&branch, true)
    }

    /// A new offer inside the call; its answer, not acknowledged.
    pub fn offer_again(&mut self, direction: &str) -> Message {
        let body = self.sdp(direction);
        self.inside("INVITE", &body)
    }

    /// Takes another port for its audio.
    pub fn move_media(&mut self) {
        self.media = Media::open(self.local.ip());
    }

    /// Acknowledges nothing any more.
    pub fn deaf(&mut self) {
        self.pending = None;
        self.dialog = None;
    }

    /// Sends a caller elsewhere.
    pub fn redirect(&mut self, invite: &Message, contact: &str) {
        let mut text = format!("SIP/2.0 302 Moved Temporarily\r\nTo: {}\r\n", self.tagged_to(invite));
        for name in ["Via", "From", "Call-ID", "CSeq"] {
            for value in invite.all(name) {
                let _ = write!(text, "{name}: {value}\r\n");
            }
        }
        let _ = write!(text, "Contact: {contact}\r\nContent-Length: 0\r\n\r\n");
        self.send(text.as_bytes());
        self.repeats.answered(invite, 302, text.as_bytes());
        self.expect("ACK");
    }

    /// A new offer inside the call; its answer, acknowledged.
    pub fn reinvite(&mut self, direction: &str) -> Message {
        let body = self.sdp(direction);
        let response = self.inside("INVITE", &body);
        self.follow(&response);
        let dialog = self.dialog.clone().expect("a call is up");
        self.ack(&response, &dialog, "");
        response
    }

    /// An offer inside the call as it stands there; its answer, acknowledged when it is a 200.
    pub fn reinvite_with(&mut self, description: &str) -> Message {
        let response = self.inside("INVITE", description);
        self.follow(&response);
        if response.status() == Some(200) {
            let dialog = self.dialog.clone().expect("a call is up");
            self.ack(&response, &dialog, "");
        }
        response
    }

    /// Takes an INVITE inside the call with a description as it stands there.
    pub fn take_with(&mut self, invite: &Message, description: &str) {
        self.respond_with(invite, (200, "OK"), "Content-Type: application/sdp\r\n", description);
        self.expect("ACK");
    }

    /// Ends the call.
    pub fn hang_up(&mut self) {
        let response = self.inside("BYE", "");
        assert_eq!(response.status(), Some(200), "BYE:\n{}", response.text());
        self.dialog = None;
    }

    /// Waits until the other side ends the call.
    pub fn until_hung_up(&mut self) {
        let bye = self.expect("BYE");
        self.respond(&bye, 200, "OK", false);
        self.dialog = None;
    }

    /// Answers a request, with a session description when `describe`.
    pub fn respond(&mut self, request: &Message, status: u16, reason: &str, describe: bool) {
        let body = if describe { self.sdp("sendrecv") } else { String::new() };
        let kind = if describe { "Content-Type: application/sdp\r\n" } else { "" };
        self.respond_with(request, (status, reason), kind, &body);
    }

    /// Answers a request 200 with more header lines.
    pub fn grant(&mut self, request: &Message, more: &str) {
        self.respond_with(request, (200, "OK"), more, "");
    }

    fn respond_with(&mut self, request: &Message, (status, reason): (u16, &str), more: &str, body: &str) {
        let mut text = format!("SIP/2.0 {status} {reason}\r\n");
        for name in ["Via", "From", "Call-ID", "CSeq", "Record-Route"] {
            for value in request.all(name) {
                let _ = write!(text, "{name}: {value}\r\n");
            }
        }
        let to = self.tagged_to(request);
        let contact = self.reached();
        let _ = write!(
            text,
            "To: {to}\r\nContact: {contact}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.send(text.as_bytes());
        self.repeats.answered(request, status, text.as_bytes());
    }

    /// Answers a request with a demand for a password.
    pub fn demand(&mut self, request: &Message) {
        let more = format!("WWW-Authenticate: {CHALLENGE}\r\n");
        self.respond_with(request, (401, "Unauthorized"), &more, "");
    }

    /// Asks for the password of `user` and returns the request that proves to know it (RFC 2617 §3.2.2.1).
    pub fn challenge(&mut self, request: &Message, user: &str) -> Message {
        let method = request.method().to_owned();
        self.demand(request);
        if method == "INVITE" {
            self.expect("ACK");
        }
        let again = self.expect(&method);
        let proof = again.must("Authorization");
        let uri = digest::parameter(proof, "uri").unwrap_or_default();
        let expected = digest::answer(CHALLENGE, user, &self.secret, &method, uri);
        assert_eq!(digest::parameter(proof, "username"), Some(user), "{proof}");
        assert_eq!(digest::parameter(proof, "response"), digest::parameter(&expected, "response"), "{proof}");
        again
    }

    fn tagged_to(&self, request: &Message) -> String {
        let to = request.must("To");
        if to.contains(";tag=") { to.to_owned() } else { format!("{to};tag=callee-{}", self.local.port()) }
    }

    /// Waits for an INVITE and rings.
    pub fn ring(&mut self) -> Message {
        let invite = self.expect("INVITE");
        self.respond(&invite, 180, "Ringing", false);
        invite
    }

    /// Takes a call that rings, or answers an INVITE inside the call. Without an offer in the INVITE the answer is in ACK.
    pub fn take(&mut self, invite: &Message) {
        self.accept(invite);
        let ack = self.expect("ACK");
        self.follow(&ack);
    }

    /// As [`Phone::take`], before the ACK has come.
    pub fn accept(&mut self, invite: &Message) {
        self.follow(invite);
        let call_id = invite.must("Call-ID");
        // Inside a call its numbers go on.
        let said =
            self.dialog.as_ref().filter(|dialog| dialog.call_id == call_id).map(|dialog| dialog.sequence);
        self.dialog = Some(Dialog {
            call_id: call_id.to_owned(),
            local: self.tagged_to(invite),
            remote: invite.must("From").to_owned(),
            target: invite.contact().unwrap_or_default().to_owned(),
            sequence: said.unwrap_or(100),
        });
        self.respond(invite, 200, "OK", true);
    }

    /// Refuses a call that rings.
    pub fn refuse(&mut self, invite: &Message, status: u16, reason: &str) {
        self.respond(invite, status, reason, false);
        self.expect("ACK");
    }

    /// Next message of any kind within a time.
    pub fn next(&mut self, limit: Duration) -> Option<Message> {
        self.receive(limit)
    }
}
