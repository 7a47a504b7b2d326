//! The called side: INVITE from its acceptance to its ACK, and CANCEL.

use super::call::{Call, Phase, REFRESH, Unacked, held};
use super::reliable::Kept;
use super::{Accept, Answer, DialogId, End, Event, Incoming, Output, Refused, ServerId, Stack};
use crate::dialog::Dialog;
use crate::header::Method;
use crate::layer::{Flow, Place, ReplyHead, Send, ServerMethod, TransactionKey, reply_flow};
use crate::message::{Message, Status};
use base::Instant;

/// An answer that has to wait, with all that it borrows.
pub(super) fn keep_answer(answer: &Answer<'_>) -> Kept {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Kept {
        status: answer.status,
        reason: answer.reason.to_owned(),
        headers: answer.headers.iter().map(owned).collect(),
        body: answer.body.map(|body| (body.content_type.to_owned(), body.bytes.to_vec())),
    }
}

impl Stack {
    /// Stores an INVITE and the dialog it will make. A 100 leaves by itself if nothing else does within 200 ms.
    ///
    /// A retransmission of an INVITE that was accepted before gives the same dialog.
    pub fn accept_invite(
        &mut self,
        incoming: &Incoming,
        accept: &Accept<'_>,
        now: Instant,
    ) -> Result<DialogId, Refused> {
        if let Some((_, dialog)) = self.layer.server_by_key(incoming.key.transaction) {
            return dialog
                .filter(|place| self.calls.get(*place).is_some())
                .map(DialogId)
                .ok_or(Refused::Gone);
        }
        let message = incoming.message.view();
        let tag = self.tag_for(&message);
        let (source, force_rport) = (incoming.source, incoming.force_rport);
        let way = (accept.contact, source, accept.symmetric, force_rport);
        let mut call = Call::new(Dialog::answering(&message, &tag, way), Phase::Ringing);
        call.unproved = accept.unproved;
        let place = self.insert(call).ok_or(Refused::Full)?;
        match self.start_server(&message, source, force_rport, incoming.key, Some(place), now) {
            Ok(invite) => {
                if let Some(call) = self.calls.get_mut(place) {
                    call.invite_server = Some(invite);
                    call.invite_cseq = message.cseq().map_or(0, |cseq| cseq.number);
                }
                Ok(DialogId(place))
            }
            Err(refused) => {
                self.remove(place);
                Err(refused)
            }
        }
    }

    /// Says 100 at once to the INVITE that made this dialog (RFC 3261 §17.2.1), before anybody works on it.
    pub fn trying(&mut self, dialog: DialogId, now: Instant, out: &mut Vec<Output>) {
        let invite = self.calls.get(dialog.0).and_then(|call| call.invite_server);
        invite.into_iter().for_each(|invite| self.layer.trying(invite, now, out));
    }

    /// Headers of the 487 that leaves by itself when the peer withdraws the INVITE that made this dialog.
    pub fn set_withdrawal(&mut self, dialog: DialogId, headers: Vec<(String, String)>) {
        if let Some(call) = self.calls.get_mut(dialog.0) {
            call.withdrawal = headers;
        }
    }

    /// Answers the INVITE that made this dialog: any number of provisional responses, then one final one. After a refusal
    /// the dialog is gone.
    pub fn answer(
        &mut self,
        dialog: DialogId,
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let status = Status::new(answer.status).ok_or(Refused::BadStatus)?;
        let call = self.calls.get(dialog.0).ok_or(Refused::Gone)?;
        let invite =
            call.invite_server.filter(|_| call.phase == Phase::Ringing).ok_or(Refused::WrongState)?;
        if status.is_success() && call.reliable.holds_success() {
            if let Some(call) = self.calls.get_mut(dialog.0) {
                call.reliable.keep_success(answer); // RFC 3262 §3: not before the PRACK of a description
            }
            return Ok(());
        }
        self.respond_inside(invite, dialog.0, status, answer, now, out)
    }

    pub(super) fn start_server(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        force_rport: bool,
        key: TransactionKey,
        dialog: Option<Place>,
        now: Instant,
    ) -> Result<Place, Refused> {
        let tag = self.tag_for(message);
        let head = ReplyHead::new(message, &tag, (source.remote, force_rport), &mut self.scratch);
        let method =
            if message.method() == Method::Invite { ServerMethod::Invite } else { ServerMethod::Other };
        let flow = reply_flow(message, source, force_rport);
        self.layer.start_server(method, key, (flow, head, dialog), now).ok_or(Refused::Full)
    }

    /// Puts a response through its transaction. Gives what left.
    pub(super) fn respond_with(
        &mut self,
        request: Place,
        status: Status,
        answer: &Answer<'_>,
        contact: Option<&[u8]>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Send, Refused> {
        let mut rest = core::mem::take(&mut self.scratch);
        rest.clear();
        self.finish_response(answer, contact, &mut rest);
        let write = |head: &ReplyHead, bytes: &mut Vec<u8>| {
            head.write(status, answer.reason, bytes);
            bytes.extend_from_slice(&rest);
        };
        let sent = self.layer.respond(request, status, write, now, out);
        self.scratch = rest;
        let (bytes, flow) = sent.ok_or(Refused::Gone)?;
        Ok(Send { flow, bytes })
    }

    /// A response to a request of a dialog, its INVITEs included.
    pub(super) fn respond_inside(
        &mut self,
        request: Place,
        dialog: Place,
        status: Status,
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let Some(call) = self.calls.get(dialog) else {
            return self.respond_with(request, status, answer, None, now, out).map(drop);
        };
        let is_invite = call.invite_server == Some(request);
        let refreshes = is_invite && status.code() > 100 && status.class() < 3
            || status.is_success() && self.layer.refreshes_target(request);
        let contact = refreshes.then(|| call.dialog.contact.clone());
        let cseq = call.invite_cseq;
        let sent = self.respond_with(request, status, answer, contact.as_deref(), now, out)?;
        let timers = self.config.timers;
        let Some(call) = self.calls.get_mut(dialog) else { return Ok(()) };
        if is_invite {
            let first = call.phase == Phase::Ringing;
            if status.is_final() {
                call.reliable.settle();
            }
            match status.class() {
                1 => call.refresh_at = Some(now + REFRESH).filter(|_| first && status != Status::TRYING),
                2 => {
                    (call.invite_server, call.refresh_at, call.phase) = (None, None, Phase::Confirmed);
                    call.unacked = Some(Unacked {
                        response: sent,
                        interval: timers.t1,
                        repeat_at: now + timers.t1,
                        give_up_at: now + timers.timeout,
                        cseq,
                    });
                }
                _ if first => {
                    self.layer.disown_server(request);
                    self.remove(dialog);
                }
                _ => call.invite_server = None,
            }
        }
        self.schedule(dialog);
        Ok(())
    }

    pub(super) fn receive_ack(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let call_id = message.call_id().unwrap_or_default();
        let Some(place) = message.to_tag().and_then(|tag| self.find(call_id, tag)) else { return };
        self.enter(place);
        let Some(call) = self.calls.get_mut(place) else { return };
        let number = message.cseq().map_or(0, |cseq| cseq.number);
        let known = call.dialog.fork(message.from_tag().unwrap_or_default()).is_some();
        if !known || call.unacked.as_ref().is_none_or(|unacked| unacked.cseq != number) {
            return; // a repetition, or not for us
        }
        if self.is_elsewhere(place, (message, source), TransactionKey::of(message, self.key), out) {
            return;
        }
        let Some(call) = self.calls.get_mut(place) else { return };
        (call.unacked, call.unproved) = (None, false);
        if call.bye_when_acked {
            let headers = core::mem::take(&mut call.held_headers);
            self.bye_now(place, &held(&headers), now, out);
        } else {
            let dialog = DialogId(place);
            out.push(Output::Event(Event::Acked { dialog, message: message.into_owned() }));
        }
        self.schedule(place);
    }

    pub(super) fn receive_cancel(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        key: TransactionKey,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let invite = self.layer.server_by_key(TransactionKey::of_canceled(message, self.key));
        let Some((invite, dialog)) = invite else {
            return self.answer_statelessly(message, source, false, &Answer::new(481), out); // §9.2
        };
        if dialog.is_some_and(|place| self.is_elsewhere(place, (message, source), key, out)) {
            return;
        }
        let call = dialog.and_then(|place| self.calls.get(place));
        let force_rport = call.is_some_and(|call| call.dialog.force_rport);
        if let Ok(cancel) = self.start_server(message, source, force_rport, key, None, now) {
            // The transaction is new, so that it takes its first answer.
            let _ = self.respond_with(cancel, Status::OK, &Answer::new(200), None, now, out);
        }
        if !self.layer.is_open(invite) {
            return; // too late: it has no effect (§9.2)
        }
        let call = dialog.and_then(|place| self.calls.get(place)).filter(|call| call.phase == Phase::Ringing);
        let withdrawal = call.map(|call| call.withdrawal.clone()).unwrap_or_default();
        let headers = held(&withdrawal);
        let answer = Answer::new(487).headers(&headers);
        let _ = self.respond_with(invite, Status::REQUEST_TERMINATED, &answer, None, now, out);
        let Some(dialog) = dialog else { return };
        match self.calls.get_mut(dialog) {
            Some(call) if call.phase == Phase::Ringing => {
                self.layer.disown_server(invite);
                let message = message.into_owned();
                self.end(dialog, |dialog| Event::Canceled { dialog, message }, out);
            }
            // A re-INVITE is withdrawn; the session stays.
            Some(call) => {
                call.invite_server = None;
                let (dialog, request) = (DialogId(dialog), ServerId(invite));
                out.push(Output::Event(Event::Withdrawn { dialog, request }));
            }
            None => {}
        }
    }

    /// No response to this INVITE can leave any more.
    pub(super) fn unreachable(&mut self, request: Place, dialog: Place, out: &mut Vec<Output>) {
        let Some(call) = self.calls.get_mut(dialog).filter(|call| call.invite_server == Some(request)) else {
            return;
        };
        call.invite_server = None;
        if call.phase == Phase::Ringing {
            let reason = End::PeerLost;
            self.end(dialog, |dialog| Event::Ended { dialog, reason, message: None }, out);
        }
    }
}
