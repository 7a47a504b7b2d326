//! Bad input against a whole stack with a call up: no panic, nothing invalid leaves, nothing is left behind, and the
//! call goes on.

mod torture_support;

use base::Instant;
use core::time::Duration;
use sip::OwnedMessage;
use sip::stack::{
    Accept, Answer, Body, Config, DialogId, Event, Flow, Load, Output, PeerName, Protocol, ServerId, Stack,
    Transport, TransportId,
};
use std::collections::BTreeMap;
use torture_support::{bad_input, unpacked};

fn flow(protocol: Protocol) -> Flow {
    Flow {
        transport: TransportId(0),
        protocol,
        connection: None,
        name: PeerName::NONE,
        remote: "192.0.2.9:5062".parse().unwrap(),
    }
}

fn request(method: &str, cseq: u32, tag: &str) -> String {
    format!(
        "{method} sip:us@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9:5062;rport;branch=z9hG4bK{method}{cseq}\r\n\
         From: <sip:peer@192.0.2.9>;tag=peer\r\nTo: <sip:us@10.0.0.1>{tag}\r\nCall-ID: the-call-that-is-up\r\n\
         CSeq: {cseq} {method}\r\nContact: <sip:peer@192.0.2.9:5062>\r\nRecord-Route: <sip:p1;lr>, <sip:p2>\r\n\
         Max-Forwards: 70\r\nContent-Type: application/sdp\r\nContent-Length: 5\r\n\r\nv=0\r\n"
    )
}

/// A stack whose driver takes everything: it accepts, answers with a status drawn from a seed, acknowledges, hangs up.
struct Site {
    stack: Stack,
    now: Instant,
    seed: u64,
    up: Option<DialogId>,
    tag: String,
    ended: BTreeMap<DialogId, u32>,
    open: Vec<DialogId>,
    ringing: Vec<ServerId>,
    last_sent: Vec<u8>,
    answering_invalid: bool,
}

impl Site {
    fn new(seed: u64) -> Self {
        let config = Config { supported: "replaces".into(), ..Config::default() };
        let mut stack = Stack::new(config, u128::from(seed));
        let transport =
            Transport { sent_by: "10.0.0.1".into(), external: None, local_nets: Vec::new(), stream: None };
        stack.set_transport(TransportId(0), transport);
        let mut site = Self {
            stack,
            now: Instant::ZERO,
            seed: 1, // even draws: the first INVITE is answered 200
            up: None,
            tag: String::new(),
            ended: BTreeMap::new(),
            open: Vec::new(),
            ringing: Vec::new(),
            last_sent: Vec::new(),
            answering_invalid: false,
        };
        site.hear(Protocol::Udp, request("INVITE", 1, "").as_bytes(), Some(200));
        let answer = OwnedMessage::parse(site.last_sent.clone()).unwrap();
        site.tag = format!(";tag={}", String::from_utf8_lossy(answer.view().to_tag().unwrap()));
        site.hear(Protocol::Udp, request("ACK", 1, &site.tag.clone()).as_bytes(), None);
        site.up = site.open.pop();
        site.seed = seed;
        site
    }

    fn draw(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % end
    }

    fn hear(&mut self, protocol: Protocol, bytes: &[u8], status: Option<u16>) {
        let mut out = Vec::new();
        self.stack.receive(flow(protocol), bytes, self.now, &mut out);
        self.answering_invalid =
            OwnedMessage::parse(bytes).is_ok_and(|message| message.view().validate().is_err());
        self.carry_out(out, status);
        self.answering_invalid = false;
    }

    fn wait(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(deadline) = self.stack.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            let mut out = Vec::new();
            self.stack.due(self.now, &mut out);
            self.carry_out(out, None);
        }
        self.now = until;
    }

    fn carry_out(&mut self, out: Vec<Output>, status: Option<u16>) {
        for output in out {
            match output {
                Output::Send(send) => {
                    let message = OwnedMessage::parse(send.bytes.clone()).unwrap();
                    // A refusal gives back what was wrong with the request.
                    if !self.answering_invalid {
                        assert_eq!(message.view().validate(), Ok(()), "{}", send.bytes.escape_ascii());
                    }
                    self.last_sent = send.bytes.to_vec();
                }
                Output::Event(event) => self.heed(event, status),
            }
        }
    }

    fn heed(&mut self, event: Event, status: Option<u16>) {
        let statuses = [180, 200, 200, 302, 401, 486, 603];
        let drawn = self.draw(statuses.len() as u64) as usize;
        let status = status.unwrap_or(statuses[drawn]);
        let answer = Answer::new(status).body(Body::sdp(b"v=0\r\n"));
        let (now, mut out) = (self.now, Vec::new());
        match event {
            Event::Invite(incoming) => {
                let accept = Accept {
                    contact: "<sip:us@10.0.0.1>",
                    symmetric: drawn.is_multiple_of(2),
                    unproved: false,
                };
                if let Ok(dialog) = self.stack.accept_invite(&incoming, &accept, now) {
                    self.open.push(dialog);
                    self.stack.answer(dialog, &answer, now, &mut out).unwrap();
                }
            }
            Event::Request(incoming) if drawn.is_multiple_of(2) => {
                self.stack.respond_stateless(&incoming, &answer, &mut out)
            }
            Event::Request(incoming) => {
                let request = self.stack.accept(&incoming, now).unwrap();
                self.stack.respond(request, &answer, now, &mut out).unwrap();
            }
            Event::InDialog { request, .. } => {
                self.stack.respond(request, &answer, now, &mut out).unwrap();
                self.ringing.push(request);
            }
            Event::Ended { dialog, .. } | Event::Canceled { dialog, .. } => {
                *self.ended.entry(dialog).or_default() += 1;
            }
            _ => {}
        }
        self.carry_out(out, None);
    }

    /// Hangs up what the input has started, lets all time pass, and ends the call that was up by the peer's BYE.
    fn close(mut self, name: &str) {
        for dialog in std::mem::take(&mut self.open) {
            let mut out = Vec::new();
            let _ = self.stack.hang_up(dialog, 480, &[], self.now, &mut out); // it may be over
            self.carry_out(out, Some(200));
        }
        for request in std::mem::take(&mut self.ringing) {
            let mut out = Vec::new();
            let _ = self.stack.respond(request, &Answer::new(488), self.now, &mut out); // most have their final answer
            self.carry_out(out, Some(200));
        }
        self.wait(400_000);
        assert_eq!(self.stack.load(), Load { dialogs: 1, ..Load::default() }, "{name}");
        let up = self.up.unwrap();
        assert!(!self.ended.contains_key(&up), "{name}: the call that was up is still up");
        self.hear(Protocol::Udp, request("BYE", 900_000, &self.tag.clone()).as_bytes(), None);
        assert!(self.ended.values().all(|count| *count == 1) && self.ended.contains_key(&up), "{name}");
        self.wait(400_000);
        assert_eq!((self.stack.load(), self.stack.deadline()), (Load::default(), None), "{name}");
    }
}

#[test]
fn torture_messages_of_rfc4475_and_rfc5118_leave_the_stack_and_its_call_as_they_were() {
    let Some(folder) = bad_input() else { return };
    for set in ["rfc4475", "rfc5118"] {
        for entry in std::fs::read_dir(folder.join(set)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(bytes) = std::fs::read(&path) else { continue };
            for protocol in [Protocol::Udp, Protocol::Tcp] {
                let mut site = Site::new(7);
                for _ in 0..2 {
                    site.hear(protocol, &bytes, None);
                    site.wait(700);
                }
                site.close(&path.display().to_string());
            }
        }
    }
}

#[test]
fn hostile_sets_leave_the_stack_and_its_call_as_they_were() {
    for set in ["protos-c07-sip.tar.xz", "pjsip-fuzz.tar.xz", "generated.tar.xz"] {
        let Some(files) = unpacked(set) else { continue };
        let mut site = Site::new(9);
        for path in files {
            let bytes = std::fs::read(&path).unwrap();
            site.hear(Protocol::Udp, &bytes, None);
            site.wait(20);
        }
        site.close(set);
    }
}

#[test]
fn mutated_messages_of_a_call_leave_nothing_behind() {
    let methods = ["INVITE", "ACK", "BYE", "CANCEL", "INFO", "UPDATE", "OPTIONS", "REGISTER", "PRACK"];
    for seed in 0..100 {
        let mut site = Site::new(seed);
        for step in 0..30 {
            let method = methods[site.draw(methods.len() as u64) as usize];
            let tag = if site.draw(3) == 0 { site.tag.clone() } else { String::new() };
            let cseq = 2 + site.draw(6) as u32;
            let mut bytes = request(method, cseq, &tag).into_bytes();
            if !tag.is_empty() && matches!(method, "BYE" | "INVITE") {
                continue; // BYE would end the call, rightly, and so would a re-INVITE whose answer nobody acknowledges
            }
            if tag.is_empty() {
                bytes = String::from_utf8(bytes)
                    .unwrap()
                    .replace("that-is-up", &format!("{}", step / 4))
                    .into_bytes();
            }
            for _ in 0..site.draw(4) {
                let at = site.draw(bytes.len() as u64) as usize;
                match site.draw(3) {
                    // Nothing that could turn another method into BYE for the call that is up.
                    0 if at > 10 => bytes[at] = site.draw(256) as u8,
                    1 => bytes.truncate(at.max(10)),
                    _ => bytes.extend_from_slice(b"x"),
                }
            }
            site.hear(Protocol::Udp, &bytes, None);
            let pause = site.draw(900);
            site.wait(pause);
        }
        site.close(&format!("seed {seed}"));
    }
}

#[test]
fn responses_that_nobody_asked_for_are_dropped() {
    let mut site = Site::new(3);
    let heard = site.last_sent.clone();
    for (from, to) in
        [("200 OK", "200 OK"), ("200 OK", "180 Ringing"), ("INVITE", "BYE"), ("z9hG4bK", "z9hG4bK0")]
    {
        let text = String::from_utf8(heard.clone()).unwrap().replace(from, to);
        site.last_sent.clear();
        site.hear(Protocol::Udp, text.as_bytes(), None);
        assert!(site.last_sent.is_empty(), "{from} to {to}");
    }
    site.close("responses");
}
