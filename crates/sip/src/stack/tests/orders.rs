//! Every order in which a call's messages can come, up to a depth, against rules that hold in all of them.
//!
//! Each sequence runs on a stack of its own; then whoever drives it hangs up and all time passes. The rules: an INVITE
//! has exactly one final response, a dialog ends exactly once, and nothing is left behind.

use super::*;
use crate::message::OwnedMessage;
use std::collections::BTreeMap;

/// Calls `run` with each sequence of `depth` numbers below `base` that begins with 0, the INVITE: before it there is no
/// state that an input could meet. Shorter sequences that begin otherwise show that.
fn sequences(base: usize, depth: u32, mut run: impl FnMut(&[usize])) {
    for (depth, free) in [(3, 3), (depth, depth - 1)] {
        let mut sequence = vec![0; depth as usize];
        for number in 0..base.pow(free) {
            let mut rest = number;
            for slot in sequence.iter_mut().rev().take(free as usize) {
                (*slot, rest) = (rest % base, rest / base);
            }
            run(&sequence);
        }
    }
}

/// Whether the operation was allowed is not the question here.
fn either(_: Result<(), Refused>) {}

const PEER: &str = "192.0.2.9:5062";

/// What both sides of the test share: the stack, what left it and how its dialogs ended.
struct Bench {
    stack: Stack,
    now: Instant,
    /// Final responses by call and INVITE number: each distinct one once.
    finals: BTreeMap<(u32, u32), Vec<Arc<[u8]>>>,
    /// The latest INVITE of ours.
    our_invite: Option<OwnedMessage>,
    ended: BTreeMap<DialogId, u32>,
    begun: Vec<DialogId>,
    pending: Option<ServerId>,
    our_tag: String,
}

impl Bench {
    fn new() -> Self {
        Self {
            stack: stack("10.0.0.1:5060", config(), 1),
            now: Instant::ZERO,
            finals: BTreeMap::new(),
            our_invite: None,
            ended: BTreeMap::new(),
            begun: Vec::new(),
            pending: None,
            our_tag: String::new(),
        }
    }

    fn current(&self) -> Option<DialogId> {
        self.begun.last().copied()
    }

    fn act(&mut self, operation: impl FnOnce(&mut Stack, Instant, &mut Vec<Output>)) {
        let mut out = Vec::new();
        operation(&mut self.stack, self.now, &mut out);
        for output in out {
            match output {
                Output::Send(send) => self.left(&send),
                Output::Event(event) => self.happened(event),
            }
        }
    }

    fn left(&mut self, send: &Send) {
        let message = OwnedMessage::parse(Arc::clone(&send.bytes)).unwrap();
        let view = message.view();
        let cseq = view.cseq().unwrap();
        match view.status() {
            Some(status) if cseq.method == Method::Invite => {
                if status.is_success() || status.is_provisional() {
                    self.our_tag = String::from_utf8_lossy(view.to_tag().unwrap_or_default()).into_owned();
                }
                if status.is_final() {
                    let call = std::str::from_utf8(view.call_id().unwrap()).unwrap().parse().unwrap();
                    let heard = self.finals.entry((call, cseq.number)).or_default();
                    if !heard.iter().any(|bytes| **bytes == *send.bytes) {
                        heard.push(Arc::clone(&send.bytes));
                    }
                }
            }
            None if cseq.method == Method::Invite => self.our_invite = Some(message),
            Some(_) | None => {}
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Invite(incoming) => {
                let accept = Accept { contact: "<sip:us@10.0.0.1>", symmetric: false, unproved: false };
                let dialog = self.stack.accept_invite(&incoming, &accept, self.now).unwrap();
                self.begun.push(dialog);
                self.act(|stack, now, out| stack.answer(dialog, &Answer::new(180), now, out).unwrap());
            }
            Event::InDialog { request, .. } => self.pending = Some(request),
            Event::Withdrawn { .. } => self.pending = None,
            Event::Canceled { dialog, .. } | Event::Ended { dialog, .. } | Event::Failed { dialog, .. } => {
                *self.ended.entry(dialog).or_default() += 1;
            }
            _ => {}
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.act(|stack, now, out| stack.receive(udp(PEER), &bytes, now, out));
    }

    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(deadline) = self.stack.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.act(Stack::due);
        }
        self.now = until;
    }

    /// Hangs up and lets all time pass; nothing may be left.
    fn close(&mut self, name: &str) {
        if let Some(request) = self.pending {
            self.act(|stack, now, out| either(stack.respond(request, &Answer::new(488), now, out)));
        }
        for dialog in self.begun.clone() {
            self.act(|stack, now, out| either(stack.hang_up(dialog, 480, &[], now, out)));
        }
        self.wait(Duration::from_secs(400));
        assert_eq!(self.stack.load(), Load::default(), "{name}");
        assert_eq!(self.stack.deadline(), None, "{name}");
        for (dialog, count) in &self.ended {
            assert_eq!(*count, 1, "{name}: {dialog:?} ended {count} times");
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Called {
    Invite,
    Cancel,
    Answer,
    Bye,
    Reinvite,
    Ack,
    Timeout,
}

/// The peer's requests: a call number, which is its Call-ID, and a CSeq that counts up.
struct Peer {
    call: u32,
    cseq: u32,
    invite_cseq: u32,
    invites: Vec<(u32, u32)>,
}

impl Peer {
    fn request(&self, method: &str, cseq: u32, tag: &str) -> Vec<u8> {
        let branch = if matches!(method, "CANCEL" | "INVITE") { "i" } else { method };
        let tag = if tag.is_empty() { String::new() } else { format!(";tag={tag}") };
        let call = self.call;
        format!(
            "{method} sip:us@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {PEER};branch=z9hG4bK{branch}-{call}-{cseq}\r\n\
             From: <sip:peer@h>;tag=peer\r\nTo: <sip:us@h>{tag}\r\nCall-ID: {call}\r\nCSeq: {cseq} {method}\r\n\
             Contact: <sip:peer@{PEER}>\r\n\r\n"
        )
        .into_bytes()
    }
}

#[test]
fn rfc3261_called_side_gives_each_invite_one_final_response_in_every_order() {
    use Called::*;
    let inputs = [Invite, Cancel, Answer, Bye, Reinvite, Ack, Timeout];
    sequences(inputs.len(), 6, |sequence| {
        let mut bench = Bench::new();
        let mut peer = Peer { call: 0, cseq: 0, invite_cseq: 0, invites: Vec::new() };
        for input in sequence {
            match inputs[*input] {
                Invite => {
                    peer = Peer { call: peer.call + 1, cseq: 1, invite_cseq: 1, ..peer };
                    peer.invites.push((peer.call, 1));
                    bench.hear(&peer.request("INVITE", 1, ""));
                }
                Reinvite => {
                    (peer.cseq, peer.invite_cseq) = (peer.cseq + 1, peer.cseq + 1);
                    peer.invites.push((peer.call, peer.cseq));
                    bench.hear(&peer.request(
                        "INVITE",
                        peer.cseq,
                        if bench.our_tag.is_empty() { "none" } else { &bench.our_tag },
                    ));
                }
                Cancel => {
                    let tag = if peer.invite_cseq > 1 { bench.our_tag.clone() } else { String::new() };
                    bench.hear(&peer.request("CANCEL", peer.invite_cseq, &tag));
                }
                Bye => {
                    peer.cseq += 1;
                    bench.hear(&peer.request("BYE", peer.cseq, &bench.our_tag));
                }
                Ack => bench.hear(&peer.request("ACK", peer.invite_cseq, &bench.our_tag)),
                Answer => match (bench.pending.take(), bench.current()) {
                    (Some(request), _) => {
                        bench.act(|stack, now, out| {
                            either(stack.respond(request, &super::Answer::new(200), now, out))
                        });
                    }
                    (None, Some(dialog)) => {
                        bench.act(|stack, now, out| {
                            either(stack.answer(dialog, &super::Answer::new(200), now, out))
                        });
                    }
                    (None, None) => {}
                },
                Timeout => bench.wait(Duration::from_secs(33)),
            }
        }
        let name = format!("{:?}", sequence.iter().map(|input| inputs[*input]).collect::<Vec<_>>());
        bench.close(&name);
        for invite in &peer.invites {
            // An INVITE numbered like one before it (a re-INVITE after nothing) is the same request to its peer.
            let heard = bench.finals.get(invite).map_or(0, Vec::len);
            assert_eq!(heard, 1, "{name}: INVITE {invite:?} was answered finally {heard} times");
        }
    });
}

#[derive(Debug, Clone, Copy)]
enum Calling {
    Invite,
    Cancel,
    Ringing,
    Answer,
    Busy,
    Ack,
    Bye,
    PeerBye,
    Reinvite,
    Timeout,
}

#[test]
fn rfc3261_calling_side_ends_each_dialog_once_in_every_order() {
    use Calling::*;
    let inputs = [Invite, Cancel, Ringing, Answer, Busy, Ack, Bye, PeerBye, Reinvite, Timeout];
    sequences(inputs.len(), 5, |sequence| {
        let mut bench = Bench::new();
        let mut peer_cseq = 0;
        for input in sequence {
            let current = bench.current();
            match (inputs[*input], current) {
                (Invite, _) => {
                    let mut begun = None;
                    bench.act(|stack, now, out| {
                        begun = stack.invite(&outgoing("<sip:us@10.0.0.1>", PEER), now, out).ok();
                    });
                    bench.begun.extend(begun);
                }
                (Ringing | Answer | Busy, _) => {
                    let Some(invite) = bench.our_invite.clone() else { continue };
                    let status = match inputs[*input] {
                        Ringing => Status::RINGING,
                        Answer => Status::OK,
                        _ => Status::BUSY_HERE,
                    };
                    let mut bytes = Vec::new();
                    let reply = Reply { to_tag: Some(b"peer"), ..Reply::default() };
                    let mut writer = MessageWriter::response(&mut bytes, &invite.view(), status, &reply);
                    writer.header(HeaderName::Contact, format!("<sip:peer@{PEER}>"));
                    writer.finish();
                    bench.hear(&bytes);
                }
                (PeerBye, _) => {
                    let Some(invite) = bench.our_invite.clone() else { continue };
                    let view = invite.view();
                    peer_cseq += 1;
                    let text = |bytes: Option<&[u8]>| {
                        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
                    };
                    let (us, id) = (text(view.header(HeaderName::From)), text(view.call_id()));
                    let bye = format!(
                        "BYE sip:us@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {PEER};branch=z9hG4bKb{peer_cseq}\r\n\
                         From: <sip:callee@there>;tag=peer\r\nTo: {us}\r\nCall-ID: {id}\r\n\
                         CSeq: {peer_cseq} BYE\r\n\r\n"
                    );
                    bench.hear(bye.as_bytes());
                }
                (Timeout, _) => bench.wait(Duration::from_secs(33)),
                (_, None) => {}
                (Cancel, Some(dialog)) => {
                    bench.act(|stack, now, out| either(stack.cancel(dialog, &[], now, out)))
                }
                (Ack, Some(dialog)) => bench.act(|stack, _, out| either(stack.ack(dialog, None, out))),
                (Bye, Some(dialog)) => bench.act(|stack, now, out| either(stack.bye(dialog, &[], now, out))),
                (Reinvite, Some(dialog)) => {
                    bench.act(|stack, now, out| either(stack.reinvite(dialog, &[], None, now, out)));
                }
            }
        }
        let name = format!("{:?}", sequence.iter().map(|input| inputs[*input]).collect::<Vec<_>>());
        bench.close(&name);
        assert_eq!(bench.ended.len(), bench.begun.len(), "{name}: each dialog tells its end");
    });
}
