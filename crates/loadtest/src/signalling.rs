//! SIP of callers and callees: one datagram socket and one stack for all of them.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use base::Instant;
use sip::Method;
use sip::digest::{self, Authenticator, Login, Secret};
use sip::stack::{
    Accept, Answer, Body, ClientId, Config, DialogId, End, Event, Failure, Flow, Incoming, Outgoing, Output,
    PeerName, Protocol, Refused, Stack, Transport, TransportId,
};

use crate::plan::Plan;

/// The one bind that there is.
const BIND: TransportId = TransportId(0);
/// Datagrams read in one turn; the rest waits a millisecond in the socket.
const READ_MAX: usize = 512;
/// Seconds that a registration is asked for, and after which it is renewed.
const EXPIRES: u64 = 3600;
const RENEW: Duration = Duration::from_secs(EXPIRES / 2);
/// How often a request is sent again with another proof, for a peer whose nonces run out.
const PROOFS_MAX: u8 = 3;

/// What signalling has to tell.
#[derive(Debug)]
pub enum Told {
    /// A callee answered; the answer to our offer.
    Answered(u32, Vec<u8>),
    /// A caller calls.
    Offered(Box<Incoming>),
    /// The call was refused with this status; 408 when nobody answered.
    Refused(u32, u16),
    /// The call is over; true when the peer ended it.
    Ended(u32, bool),
    /// A new description inside the call: answer with [`Signalling::answer_inside`].
    Renewed(u32, sip::stack::ServerId, Vec<u8>),
    /// The registration stands, or does not.
    Registered(Result<(), u16>),
}

/// One call, as signalling sees it.
#[derive(Debug)]
struct Party {
    slot: u32,
    proofs: Option<Box<Authenticator>>,
    tries: u8,
}

/// The SIP side of a run.
#[derive(Debug)]
pub struct Signalling {
    socket: UdpSocket,
    stack: Stack,
    out: Vec<Output>,
    parties: HashMap<DialogId, Party>,
    dialogs: HashMap<u32, DialogId>,
    flow: Flow,
    names: Names,
    secret: String,
    registration: Registration,
    /// Proofs made so far, for a nonce of our own in each.
    draws: u64,
    seed: u64,
}

/// What we write into messages.
#[derive(Debug)]
struct Names {
    user: String,
    /// Number dialled as a URI, and in angle brackets.
    target: String,
    to: String,
    from: String,
    contact: String,
    registrar: String,
}

#[derive(Debug, Default)]
struct Registration {
    request: Option<ClientId>,
    proofs: Authenticator,
    tries: u8,
    renew_at: Option<Instant>,
}

impl Signalling {
    /// Binds the socket. `seed` makes tags and branches.
    ///
    /// # Errors
    /// When the address or port is not to be had.
    pub fn new(plan: &Plan, seed: u128) -> io::Result<Self> {
        let ip = plan.local.first().copied().ok_or(ErrorKind::AddrNotAvailable)?;
        let socket = UdpSocket::bind((ip, plan.sip_port))?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let config = Config {
            product: "strowger-load".into(),
            allow: "INVITE, ACK, CANCEL, OPTIONS, BYE, UPDATE".into(),
            ..Config::default()
        };
        let mut stack = Stack::new(config, seed);
        let transport =
            Transport { sent_by: local.to_string(), external: None, local_nets: Vec::new(), stream: None };
        stack.set_transport(BIND, transport);
        let flow = Flow {
            transport: BIND,
            protocol: Protocol::Udp,
            connection: None,
            name: PeerName::NONE,
            remote: plan.server,
        };
        let (user, server) = (&plan.user, plan.server);
        let target = format!("sip:{}@{server}", plan.number.as_deref().unwrap_or_default());
        let names = Names {
            to: format!("<{target}>"),
            target,
            from: format!("<sip:{user}@{server}>"),
            contact: format!("<sip:{user}@{local}>"),
            registrar: format!("sip:{server}"),
            user: user.clone(),
        };
        Ok(Self {
            socket,
            stack,
            out: Vec::new(),
            parties: HashMap::new(),
            dialogs: HashMap::new(),
            flow,
            names,
            secret: plan.secret.clone(),
            registration: Registration::default(),
            draws: 0,
            seed: seed as u64,
        })
    }

    /// Where callees are reached.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Calls, with this offer.
    ///
    /// # Errors
    /// When there are more calls than the stack has room for.
    pub fn invite(&mut self, slot: u32, offer: &[u8], now: Instant) -> Result<(), Refused> {
        let Names { target, to, from, contact, .. } = &self.names;
        let request = Outgoing {
            method: Method::Invite,
            target,
            from,
            to,
            contact: Some(contact),
            routes: &[],
            headers: &[],
            body: Some(Body::sdp(offer)),
            flow: self.flow,
            series: None,
            symmetric: true,
        };
        let dialog = self.stack.invite(&request, now, &mut self.out)?;
        self.admit(dialog, slot);
        self.send();
        Ok(())
    }

    /// Answers a call that came in.
    ///
    /// # Errors
    /// When it is gone, or there is no room.
    pub fn accept(
        &mut self,
        slot: u32,
        incoming: &Incoming,
        answer: &[u8],
        now: Instant,
    ) -> Result<(), Refused> {
        let accept = Accept { contact: &self.names.contact, symmetric: true, unproved: false };
        let dialog = self.stack.accept_invite(incoming, &accept, now)?;
        if self.parties.contains_key(&dialog) {
            // The INVITE again: its answer was sent, and goes out again by itself.
            return Err(Refused::Pending);
        }
        self.admit(dialog, slot);
        let done = self.stack.answer(dialog, &Answer::new(200).body(Body::sdp(answer)), now, &mut self.out);
        self.send();
        done
    }

    /// Refuses a call that came in.
    pub fn refuse(&mut self, incoming: &Incoming, status: u16) {
        self.stack.respond_stateless(incoming, &Answer::new(status), &mut self.out);
        self.send();
    }

    /// Answers a new description inside a call.
    pub fn answer_inside(&mut self, request: sip::stack::ServerId, answer: Option<&[u8]>, now: Instant) {
        let said = match answer {
            Some(answer) => Answer::new(200).body(Body::sdp(answer)),
            None => Answer::new(488),
        };
        // One that is gone needs no answer.
        let _ = self.stack.respond(request, &said, now, &mut self.out);
        self.send();
    }

    /// Ends the call in this place, in whatever state it is.
    pub fn hang_up(&mut self, slot: u32, now: Instant) {
        if let Some(dialog) = self.dialogs.get(&slot) {
            // One that is gone needs no end.
            let _ = self.stack.hang_up(*dialog, 480, &[], now, &mut self.out);
            self.send();
        }
    }

    fn admit(&mut self, dialog: DialogId, slot: u32) {
        self.parties.insert(dialog, Party { slot, proofs: None, tries: 0 });
        self.dialogs.insert(slot, dialog);
    }

    fn dismiss(&mut self, dialog: DialogId) -> Option<Party> {
        let party = self.parties.remove(&dialog)?;
        // The place may be another call's already.
        if self.dialogs.get(&party.slot) == Some(&dialog) {
            self.dialogs.remove(&party.slot);
        }
        Some(party)
    }

    /// Registers, and goes on doing so.
    pub fn register(&mut self, now: Instant) {
        let Names { registrar, from, contact, .. } = &self.names;
        let expires = EXPIRES.to_string();
        let request = Outgoing {
            method: Method::Register,
            target: registrar,
            from,
            to: from,
            contact: Some(contact),
            routes: &[],
            headers: &[("Expires", &expires)],
            body: None,
            flow: self.flow,
            series: None,
            symmetric: true,
        };
        self.registration.tries = 0;
        self.registration.renew_at = None;
        self.registration.request = self.stack.request(&request, now, &mut self.out).ok();
        self.send();
    }

    /// Reads what has come and wakes what is due.
    pub fn turn(&mut self, now: Instant, told: &mut Vec<Told>) {
        let mut buffer = [0; sip::message::MAX_MESSAGE];
        for _ in 0..READ_MAX {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let bytes = buffer.get(..length).unwrap_or_default();
                    self.stack.receive(self.flow.towards(from), bytes, now, &mut self.out);
                    self.heed(now, told);
                }
                // An ICMP answer to something that was sent takes a datagram's place.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        if self.stack.deadline().is_some_and(|deadline| deadline <= now) {
            self.stack.due(now, &mut self.out);
        }
        if self.registration.renew_at.is_some_and(|at| at <= now) {
            self.register(now);
        }
        self.heed(now, told);
    }

    fn send(&mut self) {
        // Events stay where they are until `turn`.
        for output in &self.out {
            if let Output::Send(send) = output {
                // What the socket has no room for is sent again by its transaction.
                let _ = self.socket.send_to(&send.bytes, send.flow.remote);
            }
        }
        self.out.retain(|output| matches!(output, Output::Event(_)));
    }

    fn heed(&mut self, now: Instant, told: &mut Vec<Told>) {
        while !self.out.is_empty() {
            for output in std::mem::take(&mut self.out) {
                match output {
                    Output::Send(send) => {
                        let _ = self.socket.send_to(&send.bytes, send.flow.remote);
                    }
                    Output::Event(event) => self.event(event, now, told),
                }
            }
        }
    }

    fn event(&mut self, event: Event, now: Instant, told: &mut Vec<Told>) {
        match event {
            Event::Answered { dialog, message, .. } => {
                let _ = self.stack.ack(dialog, None, &mut self.out);
                if let Some(party) = self.parties.get(&dialog) {
                    let sdp = message.view().sdp().unwrap_or_default().to_vec();
                    told.push(Told::Answered(party.slot, sdp));
                }
            }
            Event::Challenged { dialog, message } => self.prove(dialog, &message.view(), now, told),
            Event::Failed { dialog, failure } => {
                if let Some(party) = self.dismiss(dialog) {
                    told.push(Told::Refused(party.slot, status(&failure)));
                }
            }
            Event::Ended { dialog, reason, .. } => {
                if let Some(party) = self.dismiss(dialog) {
                    told.push(Told::Ended(party.slot, reason != End::Local));
                }
            }
            Event::Canceled { dialog, .. } => {
                if let Some(party) = self.dismiss(dialog) {
                    told.push(Told::Ended(party.slot, true));
                }
            }
            Event::Invite(incoming) => told.push(Told::Offered(incoming)),
            Event::Request(incoming) => {
                let known = incoming.message.view().method() == Method::Options;
                let answer = Answer::new(if known { 200 } else { 405 });
                self.stack.respond_stateless(&incoming, &answer, &mut self.out);
            }
            Event::InDialog { dialog, request, message, .. } => {
                let view = message.view();
                match (view.sdp(), self.parties.get(&dialog)) {
                    (Some(sdp), Some(party)) => {
                        told.push(Told::Renewed(party.slot, request, sdp.to_vec()));
                    }
                    _ => {
                        let _ = self.stack.respond(request, &Answer::new(200), now, &mut self.out);
                    }
                }
            }
            Event::Response { request, status, message, .. } => {
                self.registrar_said(request, status, &message.view(), now, told)
            }
            Event::Unanswered { request, failure, .. } if self.registration.request == Some(request) => {
                told.push(Told::Registered(Err(status(&failure))));
            }
            // Ringing, our own re-INVITEs (there are none), and what was no SIP change nothing.
            _ => {}
        }
    }

    fn prove(&mut self, dialog: DialogId, message: &sip::Message<'_>, now: Instant, told: &mut Vec<Told>) {
        let login = login(&self.names, &self.secret);
        let Some(party) = self.parties.get_mut(&dialog) else { return };
        party.tries += 1;
        let proofs = party.proofs.get_or_insert_default();
        let retry = proofs.challenged(message, &[login]) == digest::Answer::Retry;
        if !retry || party.tries > PROOFS_MAX || self.secret.is_empty() {
            let slot = party.slot;
            self.dismiss(dialog);
            let _ = self.stack.hang_up(dialog, 480, &[], now, &mut self.out);
            told.push(Told::Refused(slot, message.status().map_or(401, sip::Status::code)));
            return;
        }
        let nonce = cnonce(self.seed, &mut self.draws);
        let headers = credentials(proofs, "INVITE", &self.names.target, &nonce, login);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let _ = self.stack.retry_invite(dialog, &headers, now, &mut self.out);
    }

    fn registrar_said(
        &mut self,
        request: ClientId,
        status: u16,
        message: &sip::Message<'_>,
        now: Instant,
        told: &mut Vec<Told>,
    ) {
        if self.registration.request != Some(request) || status < 200 {
            return;
        }
        let registration = &mut self.registration;
        if status < 300 {
            registration.renew_at = Some(now + RENEW);
            told.push(Told::Registered(Ok(())));
            return;
        }
        registration.tries += 1;
        let login = login(&self.names, &self.secret);
        let may = matches!(status, 401 | 407) && registration.tries <= PROOFS_MAX && !self.secret.is_empty();
        if !may || registration.proofs.challenged(message, &[login]) != digest::Answer::Retry {
            told.push(Told::Registered(Err(status)));
            return;
        }
        let nonce = cnonce(self.seed, &mut self.draws);
        let headers = credentials(&mut registration.proofs, "REGISTER", &self.names.registrar, &nonce, login);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        registration.request = self.stack.retry(request, &headers, now, &mut self.out).ok();
    }
}

fn login<'a>(names: &'a Names, secret: &'a str) -> Login<'a> {
    Login {
        realm: None,
        username: names.user.as_bytes(),
        secret: Secret::Password(secret.as_bytes()),
        algorithms: &[],
    }
}

/// A nonce of ours: different each time, and nobody's secret.
fn cnonce(seed: u64, draws: &mut u64) -> String {
    *draws += 1;
    format!("{:016x}", (seed ^ *draws).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Headers that answer the challenges so far.
fn credentials(
    proofs: &mut Authenticator,
    method: &str,
    uri: &str,
    cnonce: &str,
    login: Login<'_>,
) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    proofs.credentials(method.as_bytes(), uri.as_bytes(), cnonce.as_bytes(), &[login], |name, value| {
        let name = match name {
            sip::HeaderName::ProxyAuthorization => "Proxy-Authorization",
            _ => "Authorization",
        };
        headers.push((name, String::from_utf8_lossy(value).into_owned()));
    });
    headers
}

fn status(failure: &Failure) -> u16 {
    match failure {
        Failure::Refused { status, .. } => *status,
        Failure::Timeout => 408,
        Failure::Transport => 503,
        Failure::Canceled => 487,
    }
}
