//! Reliable provisional responses and their PRACK, in both directions (RFC 3262), and who may offer in UPDATE (RFC 3311).

use super::call::{Call, Phase};
use super::uas::keep_answer;
use super::{Answer, DialogId, End, Event, Header, Output, Refused, ServerId, Stack};
use crate::dialog::FORKS_MAX;
use crate::header::{HeaderName, Method, RAck};
use crate::layer::{Flow, Place, Purpose, Send, TransactionKey};
use crate::message::{Message, Status};
use base::Instant;
use core::time::Duration;

/// Largest RSeq to begin with, so that the series never wraps (RFC 3262 §3: the first is below 2^31).
const RSEQ_FIRST_MAX: u64 = 0x7FFF_0000;

/// An answer that waits for its turn.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<(String, Vec<u8>)>,
}

/// A reliable response without its PRACK.
#[derive(Debug)]
struct Pending {
    rseq: u32,
    /// Number of the INVITE, which RAck repeats.
    cseq: u32,
    response: Send,
    /// It holds a description.
    described: bool,
    interval: Duration,
    repeat_at: Instant,
    give_up_at: Instant,
}

/// What reliable responses have come to in one call.
#[derive(Debug, Default)]
pub(super) struct Reliable {
    /// RSeq of the latest response of ours; 0 before the first.
    rseq: u32,
    pending: Option<Box<Pending>>,
    /// The latest provisional response that waits for the PRACK of the one before (§3).
    next: Option<Box<Kept>>,
    /// The 2xx that waits for the PRACK of a description (§3).
    last: Option<Box<Kept>>,
    /// The first offer has its answer though the INVITE is not over: either side may offer again (RFC 3311 §5.1).
    pub(super) agreed: bool,
    /// RSeq of the latest response of each fork of the peer.
    heard: Vec<(Box<[u8]>, u32)>,
}

impl Reliable {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.repeat_at.min(pending.give_up_at))
    }
    /// The INVITE has its final response, so that nothing before it matters.
    pub(super) fn settle(&mut self) {
        (self.pending, self.next, self.last) = (None, None, None);
    }
    /// Another INVITE of ours starts: the peer numbers its responses anew for each (§3).
    pub(super) fn begin(&mut self) {
        self.heard.clear();
    }
    /// Whether a 2xx has to wait.
    pub(super) fn holds_success(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.described)
    }
    pub(super) fn keep_success(&mut self, answer: &Answer<'_>) {
        (self.next, self.last) = (None, Some(Box::new(keep_answer(answer))));
    }
    /// Whether a provisional response has to wait.
    pub(super) fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }
    /// Whether a response with this number is the next of its fork (§4).
    fn follows(&mut self, tag: &[u8], rseq: u32) -> bool {
        let room = self.heard.len() < FORKS_MAX;
        match self.heard.iter_mut().find(|(known, _)| **known == *tag) {
            Some((_, last)) if last.checked_add(1) == Some(rseq) => {
                *last = rseq;
                true
            }
            Some(_) => false,
            None if room => {
                self.heard.push((tag.into(), rseq));
                true
            }
            None => false,
        }
    }
}

impl Stack {
    /// Gives a provisional response that the peer has to acknowledge by PRACK. One at a time: while another one is
    /// unacknowledged the latest waits. Without PRACK for 64*T1 the call is refused and ends with [`End::NoAck`].
    pub fn answer_reliably(
        &mut self,
        dialog: DialogId,
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        if !(101..=199).contains(&answer.status) {
            return Err(Refused::BadStatus);
        }
        let call = self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?;
        if call.invite_server.is_none() || call.phase != Phase::Ringing {
            return Err(Refused::WrongState);
        }
        if call.reliable.is_waiting() {
            call.reliable.next = Some(Box::new(keep_answer(answer)));
            return Ok(());
        }
        self.send_reliably(dialog.0, answer, now, out)
    }

    fn send_reliably(
        &mut self,
        place: Place,
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let first = 1 + self.random.below(RSEQ_FIRST_MAX) as u32;
        let timers = self.config.timers;
        let status = Status::new(answer.status).ok_or(Refused::BadStatus)?;
        let call = self.calls.get_mut(place).ok_or(Refused::Gone)?;
        let invite = call.invite_server.ok_or(Refused::WrongState)?;
        let rseq = match call.reliable.rseq {
            0 => first,
            last => last.saturating_add(1),
        };
        let (contact, cseq) = (call.dialog.contact.clone(), call.invite_cseq);
        let number = rseq.to_string();
        let mut headers: Vec<Header<'_>> = vec![("Require", "100rel"), ("RSeq", &number)];
        headers.extend_from_slice(answer.headers);
        let reliable = Answer { headers: &headers, ..*answer };
        let response = self.respond_with(invite, status, &reliable, Some(&contact), now, out)?;
        if let Some(call) = self.calls.get_mut(place) {
            call.refresh_at = Some(now + super::call::REFRESH);
            call.reliable.rseq = rseq;
            call.reliable.pending = Some(Box::new(Pending {
                rseq,
                cseq,
                response,
                described: answer.body.is_some(),
                interval: timers.t1,
                repeat_at: now + timers.t1,
                give_up_at: now + timers.timeout,
            }));
        }
        self.schedule(place);
        Ok(())
    }

    /// A PRACK. One without body is answered here; with one, the driver answers it.
    pub(super) fn receive_prack(
        &mut self,
        place: Place,
        message: &Message<'_>,
        source: Flow,
        (key, force_rport): (TransactionKey, bool),
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let rack = message.header(HeaderName::RAck).and_then(RAck::parse);
        let acknowledged = call.reliable.pending.take_if(|pending| {
            rack.is_some_and(|rack| {
                rack.rseq == pending.rseq
                    && rack.cseq.number == pending.cseq
                    && rack.cseq.method == Method::Invite
            })
        });
        let Some(acknowledged) = acknowledged else {
            return self.refuse_inside(message, source, (key, force_rport), &Answer::new(481), now, out);
        };
        call.reliable.agreed |= acknowledged.described;
        call.dialog.arrived(source);
        self.follow(place);
        match message.body() {
            [] => self.refuse_inside(message, source, (key, force_rport), &Answer::new(200), now, out),
            _ => match self.start_server(message, source, force_rport, key, Some(place), now) {
                Ok(request) => {
                    let (dialog, request) = (DialogId(place), ServerId(request));
                    let message = message.into_owned();
                    out.push(Output::Event(Event::InDialog { dialog, request, message, source }));
                }
                Err(_) => self.answer_statelessly(message, source, force_rport, &Answer::new(503), out),
            },
        }
        self.go_on_answering(place, now, out);
        self.schedule(place);
    }

    /// Sends what waited for a PRACK.
    fn go_on_answering(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let (next, last) = (call.reliable.next.take(), call.reliable.last.take());
        // What cannot leave any more has no call.
        if let Some(last) = last {
            let _ = last.with(|answer| self.answer(DialogId(place), answer, now, out));
        } else if let Some(next) = next {
            let _ = next.with(|answer| self.send_reliably(place, answer, now, out));
        }
    }

    /// Repeats a reliable response, or gives the call up (§3: no cap on the interval, 5xx after 64*T1).
    pub(super) fn reliable_due(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let Some(pending) = call.reliable.pending.as_mut() else { return };
        if pending.give_up_at <= now {
            call.reliable.settle();
            let Some(invite) = call.invite_server else { return };
            let status = Status::SERVER_TIMEOUT;
            let _ = self.respond_with(invite, status, &Answer::new(status.code()), None, now, out);
            self.layer.disown_server(invite);
            let reason = End::NoAck;
            self.end(place, |dialog| Event::Ended { dialog, reason, message: None }, out);
        } else if pending.repeat_at <= now {
            out.push(Output::Send(pending.response.clone()));
            pending.interval *= 2;
            pending.repeat_at = now + pending.interval;
        }
    }

    /// Whether a provisional response is to be heeded. A reliable one is acknowledged, when it is the next of its fork;
    /// repeated ones and those that overtook another are dropped (§4).
    pub(super) fn acknowledge_provisional(
        &mut self,
        place: Place,
        message: &Message<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> bool {
        if !message.lists(HeaderName::Require, b"100rel") {
            return true;
        }
        let rseq = message.header(HeaderName::RSeq).and_then(number);
        let cseq = message.cseq().map(|cseq| cseq.number);
        let (Some(rseq), Some(cseq), Some(tag)) = (rseq, cseq, message.to_tag()) else { return false };
        let Some(call) = self.calls.get_mut(place) else { return false };
        let heeded = match call.phase {
            // The dialog is there, and its route stays; its target may have moved (RFC 6141 §4.6).
            Phase::Confirmed | Phase::Ending => {
                let heeded = call.dialog.fork(tag).is_some() && call.reliable.follows(tag, rseq);
                if heeded {
                    call.dialog.refresh_target(message);
                }
                heeded
            }
            Phase::Calling | Phase::Canceling | Phase::Challenged { .. } | Phase::Ringing => {
                call.reliable.follows(tag, rseq) && call.dialog.learn(message).is_some()
            }
        };
        if !heeded {
            return false;
        }
        call.reliable.agreed |= message.sdp().is_some();
        let rack = format!("{rseq} {cseq} INVITE");
        let headers = [("RAck", rack.as_str())];
        let sent = self.start_inside(place, Method::Prack, Purpose::Request, (&headers, None), now, out);
        sent.is_ok()
    }
}

/// Why a request inside a dialog is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// For good.
    Now(u16),
    /// One of the same peer is not over: 500, and when to come back (RFC 3261 §14.2, RFC 3311 §5.2).
    Crossing,
}

impl Call {
    /// Why an UPDATE with an offer cannot be taken (RFC 3311 §5.2): an offer of ours, or of the peer, has no answer yet.
    pub(super) fn refusal_of_update(&self) -> Option<Refusal> {
        let ours = Refusal::Now(491);
        let theirs = Refusal::Crossing;
        match self.phase {
            Phase::Confirmed if self.update_client.is_some() || self.invite_client.is_some() => Some(ours),
            Phase::Confirmed if self.invite_server.is_some() => Some(theirs),
            _ if self.update_client.is_some() => Some(ours),
            Phase::Calling if !self.reliable.agreed => Some(ours),
            Phase::Ringing if !self.reliable.agreed => Some(theirs),
            Phase::Confirmed
            | Phase::Calling
            | Phase::Ringing
            | Phase::Canceling
            | Phase::Challenged { .. }
            | Phase::Ending => None,
        }
    }
    /// Whether an UPDATE of ours may carry an offer (RFC 3311 §5.1).
    pub(super) fn may_offer(&self) -> bool {
        match self.phase {
            Phase::Confirmed => !self.is_busy() && self.update_client.is_none(),
            Phase::Calling | Phase::Ringing => self.reliable.agreed && self.update_client.is_none(),
            Phase::Canceling | Phase::Challenged { .. } | Phase::Ending => false,
        }
    }
}

impl Kept {
    fn with<R>(&self, use_it: impl FnOnce(&Answer<'_>) -> R) -> R {
        let headers: Vec<Header<'_>> = super::call::held(&self.headers);
        let body = self.body.as_ref();
        use_it(&Answer {
            status: self.status,
            reason: &self.reason,
            headers: &headers,
            body: body.map(|(content_type, bytes)| super::Body { content_type, bytes }),
        })
    }
}

/// The number of an RSeq.
fn number(value: &[u8]) -> Option<u32> {
    core::str::from_utf8(value).ok()?.trim().parse().ok().filter(|number| *number > 0)
}
