//! A peer that says what a test tells it, with the bookkeeping of Call-ID, tags, CSeq and branches done for it.

use std::fmt::Write as _;

use ::sip::digest::{Authenticator, Login, Secret};
use ::sip::stack::Flow;
use ::sip::{HeaderName, OwnedMessage};
use driver::sip::Config;

use crate::lab::{Lab, PHONE, SECRET, header, line, udp};

/// See the module's page.
pub struct Phone {
    pub user: String,
    pub flow: Flow,
    pub call_id: String,
    pub tag: String,
    pub cseq: u32,
    /// To tag of the other side, once known.
    pub remote_tag: String,
    /// Request-URI in the dialog.
    pub target: String,
    branch: u32,
    password: Option<String>,
    authenticator: Authenticator,
}

/// A description with these formats.
pub fn sdp(address: &str, port: u16, formats: &str) -> String {
    sdp_with(address, port, formats, "")
}
/// The same with attributes.
pub fn sdp_with(address: &str, port: u16, formats: &str, attributes: &str) -> String {
    format!(
        "v=0\r\no=- 1 {port} IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\nm=audio {port} RTP/AVP {formats}\r\n\
         a=rtpmap:101 telephone-event/8000\r\n{attributes}"
    )
}

impl Phone {
    /// `user` at the address of the tables, with the right password.
    pub fn new(user: &str) -> Self {
        Self::at(user, udp(PHONE))
    }
    pub fn at(user: &str, flow: Flow) -> Self {
        Self {
            user: user.to_owned(),
            flow,
            call_id: format!("call-of-{user}-{}", flow.remote.port()),
            tag: format!("tag-{user}"),
            cseq: 0,
            remote_tag: String::new(),
            target: String::new(),
            branch: 0,
            password: Some(SECRET.to_owned()),
            authenticator: Authenticator::new(),
        }
    }
    pub fn password(mut self, password: Option<&str>) -> Self {
        self.password = password.map(str::to_owned);
        self
    }
    pub fn call(mut self, call_id: &str) -> Self {
        self.call_id = call_id.to_owned();
        self
    }
    /// The same phone in another dialog.
    pub fn call_again(&self) -> Self {
        Self::at(&self.user, self.flow).call(&format!("{}-again", self.call_id))
    }
    fn contact(&self) -> String {
        format!("<sip:{}@{}>", self.user, self.flow.remote)
    }
    /// The text of a request with a new CSeq and branch. `headers` end in CRLF each.
    pub fn request(&mut self, method: &str, uri: &str, headers: &str, body: &str) -> String {
        self.cseq += 1;
        self.numbered(method, uri, self.cseq, headers, body)
    }
    /// A request with this CSeq number: ACK.
    pub fn numbered(&mut self, method: &str, uri: &str, cseq: u32, headers: &str, body: &str) -> String {
        self.branch += 1;
        self.same_branch(method, uri, cseq, headers, body)
    }
    /// A request in the transaction of the last one: CANCEL.
    pub fn same_branch(&self, method: &str, uri: &str, cseq: u32, headers: &str, body: &str) -> String {
        let Self { user, call_id, tag, .. } = self;
        let to = match (method, &*self.remote_tag) {
            ("REGISTER", _) => format!("<sip:{user}@strowger>"),
            (_, "") => format!("<{uri}>"),
            (_, remote) => format!("<sip:x@strowger>;tag={remote}"),
        };
        let mut text = format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/{} {};branch=z9hG4bK{user}{}{}\r\nMax-Forwards: 70\r\n\
             From: <sip:{user}@strowger>;tag={tag}\r\nTo: {to}\r\nCall-ID: {call_id}\r\nCSeq: {cseq} {method}\r\n",
            self.flow.protocol.name(),
            self.flow.remote,
            self.call_id,
            self.branch,
        );
        if !headers.contains("Contact:") && method != "CANCEL" {
            write!(text, "Contact: {}\r\n", self.contact()).unwrap();
        }
        text.push_str(headers);
        if !body.is_empty() && !headers.contains("Content-Type") {
            text.push_str("Content-Type: application/sdp\r\n");
        }
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        text
    }
    /// Sends a request, answers a challenge once, and gives the last response that came of it.
    pub fn ask(&mut self, lab: &mut Lab, method: &str, uri: &str, headers: &str, body: &str) -> OwnedMessage {
        let text = self.request(method, uri, headers, body);
        lab.receive(self.flow, text.clone());
        // Nothing leaves at once for a call that was taken on without a password.
        let Some((_, answer)) = lab.next() else { return OwnedMessage::parse(text.into_bytes()).unwrap() };
        if line(&answer) != "401" || self.password.is_none() {
            return answer;
        }
        if method == "INVITE" {
            let ack = self.same_branch("ACK", uri, self.cseq, "", "");
            lab.receive(self.flow, ack);
        }
        let credentials = self.credentials(&answer, method, uri);
        let text = self.request(method, uri, &format!("{headers}{credentials}"), body);
        lab.receive(self.flow, text);
        // Nothing leaves at once for a call that was taken on.
        lab.next().map_or(answer, |(_, answer)| answer)
    }
    /// Sends a request and drops what comes of it.
    pub fn ask_quietly(&mut self, lab: &mut Lab, method: &str, uri: &str, headers: &str, body: &str) {
        let text = self.request(method, uri, headers, body);
        lab.receive(self.flow, text);
        lab.lines();
    }
    /// The Authorization header that answers a challenge.
    pub fn credentials(&mut self, challenge: &OwnedMessage, method: &str, uri: &str) -> String {
        let password = self.password.clone().unwrap_or_default();
        let logins = [Login {
            realm: None,
            username: self.user.as_bytes(),
            secret: Secret::Password(password.as_bytes()),
            algorithms: &[],
        }];
        self.authenticator.challenged(&challenge.view(), &logins);
        let mut out = String::new();
        self.authenticator.credentials(
            method.as_bytes(),
            uri.as_bytes(),
            b"c0ffee",
            &logins,
            |name: HeaderName<'_>, value| {
                write!(
                    out,
                    "{}: {}\r\n",
                    String::from_utf8_lossy(name.as_bytes()),
                    String::from_utf8_lossy(value)
                )
                .unwrap();
            },
        );
        out
    }
    /// Registers its contact; the status.
    pub fn register(&mut self, lab: &mut Lab, headers: &str) -> OwnedMessage {
        let first = self.ask(lab, "REGISTER", "sip:strowger", headers, "");
        // What it is told or asked because of that leaves before the answer.
        let mut before = vec![first];
        while before.last().is_some_and(|message| message.view().status().is_none()) {
            before.push(lab.sent());
        }
        let answer = before.pop().unwrap();
        lab.give_back(before);
        answer
    }
    /// Calls a number; the channel whose dialplan begins. Panics when the call is refused.
    #[track_caller]
    pub fn invite(&mut self, lab: &mut Lab, number: &str, body: &str) -> base::ChannelId {
        let answer = self.ask(lab, "INVITE", &format!("sip:{number}@strowger"), "", body);
        lab.started.pop_front().unwrap_or_else(|| panic!("the call was refused with {}", line(&answer)))
    }
    /// Takes note of our tag and contact in a response, so that requests in the dialog can follow.
    pub fn learn(&mut self, response: &OwnedMessage) {
        let view = response.view();
        self.remote_tag = String::from_utf8_lossy(view.to_tag().unwrap_or_default()).into_owned();
        if let Some(contact) = view.contact() {
            self.target = String::from_utf8_lossy(contact.uri.as_bytes()).into_owned();
        }
    }
    /// Acknowledges a 2xx.
    pub fn ack(&mut self, lab: &mut Lab, response: &OwnedMessage, body: &str) {
        self.learn(response);
        let number: u32 = header(response, "CSeq").split(' ').next().unwrap().parse().unwrap();
        let text = self.numbered("ACK", &self.target.clone(), number, "", body);
        lab.receive(self.flow, text);
    }
    /// A request in the dialog.
    pub fn inside(&mut self, lab: &mut Lab, method: &str, headers: &str, body: &str) {
        let text = self.request(method, &self.target.clone(), headers, body);
        lab.receive(self.flow, text);
    }
    /// The same, once more with the password when it is challenged.
    pub fn inside_proved(&mut self, lab: &mut Lab, method: &str, headers: &str, body: &str) {
        // A nonce of another moment is another one.
        lab.pass(core::time::Duration::from_millis(1));
        let target = self.target.clone();
        self.inside(lab, method, headers, body);
        if let Some(challenge) = lab.challenge() {
            let credentials = self.credentials(&challenge, method, &target);
            self.inside(lab, method, &format!("{headers}{credentials}"), body);
        }
    }
    /// The text of a response to a request of ours.
    pub fn response(&self, request: &OwnedMessage, status: u16, headers: &str, body: &str) -> String {
        let tag = format!(";tag={}", self.tag);
        let to = header(request, "To");
        let tag = if status == 100 || to.contains("tag=") { "" } else { &tag };
        let mut text = format!("SIP/2.0 {status} Whatever\r\n");
        for via in request.view().headers(HeaderName::Via) {
            write!(text, "Via: {}\r\n", String::from_utf8_lossy(via)).unwrap();
        }
        let copied = ["From", "Call-ID", "CSeq"];
        copied.iter().for_each(|name| write!(text, "{name}: {}\r\n", header(request, name)).unwrap());
        write!(text, "To: {to}{tag}\r\n").unwrap();
        if !headers.contains("Contact:") && status < 300 {
            write!(text, "Contact: {}\r\n", self.contact()).unwrap();
        }
        text.push_str(headers);
        if !body.is_empty() && !headers.contains("Content-Type") {
            text.push_str("Content-Type: application/sdp\r\n");
        }
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        text
    }
    /// Responds.
    pub fn respond(&self, lab: &mut Lab, request: &OwnedMessage, status: u16, headers: &str, body: &str) {
        let text = self.response(request, status, headers, body);
        lab.receive(self.flow, text);
    }
    /// Takes note of what an INVITE of ours says, so that requests in its dialog can follow.
    pub fn called(&mut self, invite: &OwnedMessage) {
        let view = invite.view();
        self.call_id = String::from_utf8_lossy(view.call_id().unwrap()).into_owned();
        self.remote_tag = String::from_utf8_lossy(view.from_tag().unwrap()).into_owned();
        self.target = String::from_utf8_lossy(view.contact().unwrap().uri.as_bytes()).into_owned();
    }
}

/// A call from `alice`, who offers the first, to `trunk`, which answers with the second. They talk: the phones and their
/// channels, hers first.
pub fn talking(config: Config, offer: &str, answer: &str) -> (Lab, [Phone; 2], [base::ChannelId; 2]) {
    let mut lab = Lab::new(config);
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let caller = alice.invite(&mut lab, "100", offer);
    lab.answer(caller);
    let ok = lab.sent();
    alice.ack(&mut lab, &ok, "");
    let callee = lab.dial("trunk").unwrap();
    let invite = lab.sent();
    let mut trunk = Phone::new("trunk");
    trunk.called(&invite);
    trunk.respond(&mut lab, &invite, 200, "Allow: INVITE, UPDATE\r\n", answer);
    assert_eq!(lab.lines(), ["ACK"]);
    lab.talk(caller, callee);
    (lab, [alice, trunk], [caller, callee])
}
