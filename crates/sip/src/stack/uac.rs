//! The calling side: requests of ours, INVITE from its start to its ACK, forks, cancellation, credentials.

use super::call::{Answered, Call, Phase, held};
use super::{
    Asked, Body, ClientId, DialogId, End, Event, Failure, Header, Outgoing, Output, Protocol, Refused, Stack,
    Way,
};
use crate::dialog::{Dialog, FORKS_MAX};
use crate::header::{HeaderName, Method};
use crate::layer::build::{RequestHead, Written};
use crate::layer::{self, ClientMethod, Flow, Owner, Place, Purpose, Send, build};
use crate::message::{Message, Status};
use base::Instant;
use core::time::Duration;
use std::sync::Arc;

/// A Call-ID of 128 random bits, spelt as a UUID (RFC 9562 §5.4), as the field's tools expect it.
pub fn call_id(one: u64, two: u64) -> String {
    let one = one & !0xf000 | 0x4000;
    let two = two & !(3 << 62) | 1 << 63;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        one >> 32,
        one >> 16 & 0xffff,
        one & 0xffff,
        two >> 48,
        two & 0xffff_ffff_ffff
    )
}

impl Stack {
    /// Starts a request outside dialogs: REGISTER, OPTIONS, MESSAGE and their like.
    pub fn request(
        &mut self,
        request: &Outgoing<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<ClientId, Refused> {
        let owner = Owner { dialog: None, purpose: Purpose::Request };
        let (call_id, cseq) = self.series(request);
        let tag = format!("{:016x}", self.random.next());
        self.send_first(request, request.method, owner, (&call_id, &tag, cseq), now, out).map(ClientId)
    }

    /// Starts a call.
    pub fn invite(
        &mut self,
        request: &Outgoing<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<DialogId, Refused> {
        if self.sent_by(request.flow).is_none() {
            return Err(Refused::UnknownTransport);
        }
        let (call_id, cseq) = self.series(request);
        let tag = format!("{:016x}", self.random.next());
        let local = format!("{};tag={tag}", request.from);
        let dialog = Dialog::calling(
            (call_id.as_bytes(), &tag, cseq),
            local.as_bytes(),
            request.contact.unwrap_or_default(),
            (request.flow, request.symmetric),
        );
        let place = self.insert(Call::new(dialog, Phase::Calling)).ok_or(Refused::Full)?;
        let owner = Owner { dialog: Some(place), purpose: Purpose::Invite };
        let sent = self.send_first(request, Method::Invite, owner, (&call_id, &tag, cseq), now, out);
        match sent {
            Ok(invite) => {
                let bytes = self.layer.request_bytes(invite).map(|(bytes, ..)| bytes);
                if let Some(call) = self.calls.get_mut(place) {
                    (call.invite_client, call.request) = (Some(invite), bytes);
                }
                Ok(DialogId(place))
            }
            Err(refused) => {
                self.remove(place);
                Err(refused)
            }
        }
    }

    fn series(&mut self, request: &Outgoing<'_>) -> (String, u32) {
        match request.series {
            Some((call_id, cseq)) => (call_id.to_owned(), cseq),
            None => {
                let call_id = call_id(self.random.next(), self.random.next());
                (call_id, 1 + self.random.below(10_000) as u32)
            }
        }
    }

    fn send_first(
        &mut self,
        request: &Outgoing<'_>,
        method: Method<'_>,
        owner: Owner,
        (call_id, tag, cseq): (&str, &str, u32),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Place, Refused> {
        let flow = request.flow;
        let sent_by = self.sent_by(flow).ok_or(Refused::UnknownTransport)?.to_owned();
        let from = format!("{};tag={tag}", request.from);
        let secret = self.random.next();
        let kind = if method == Method::Invite { ClientMethod::Invite } else { ClientMethod::Other };
        let config = &self.config;
        let hops = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Max-Forwards"));
        let max_forwards = hops.and_then(|(_, hops)| hops.parse().ok()).unwrap_or(config.max_forwards);
        let write = |branch: &str, bytes: &mut Vec<u8>| {
            RequestHead {
                method,
                uri: request.target.as_bytes(),
                protocol: flow.protocol,
                sent_by: &sent_by,
                branch,
                from: from.as_bytes(),
                to: request.to.as_bytes(),
                call_id: call_id.as_bytes(),
                cseq,
                max_forwards,
            }
            .write(request.routes.iter().map(|route| route.as_bytes()), bytes);
            let contact = request.contact.map(str::as_bytes);
            finish_request(config, kind, contact, request.headers, request.body, bytes);
        };
        let started = self.layer.start_client((kind, owner, flow, secret), write, now, out);
        self.started(started, now, out)
    }

    /// Names the servers that a request goes to when the one before fails: by a transport error, by silence, or by a 503
    /// (RFC 3263 §4.3). To be called right after [`request`](Self::request); [`Event::Moved`] tells each step.
    pub fn request_also_by(&mut self, request: ClientId, ways: &[Way]) {
        self.also_by(request.0, ways);
    }

    /// As [`request_also_by`](Self::request_also_by), right after [`invite`](Self::invite).
    pub fn invite_also_by(&mut self, dialog: DialogId, ways: &[Way]) {
        if let Some(invite) = self.calls.get(dialog.0).and_then(|call| call.invite_client) {
            self.also_by(invite, ways);
        }
    }

    /// The driver waits no longer for the server that a request has gone to: the next of those that were named is asked,
    /// which [`Event::Moved`] tells. `false` when there is none; the transaction goes on as it was.
    pub fn next_server(&mut self, request: ClientId, now: Instant, out: &mut Vec<Output>) -> bool {
        let moved = self.layer.next_server(request.0, now, out);
        self.heed_notices(now, out);
        moved
    }

    fn also_by(&mut self, place: Place, ways: &[Way]) {
        let large = self.layer.is_large(place);
        let mut all = Vec::with_capacity(ways.len());
        for Way { flow, contact } in ways {
            // A large request goes by the bind's stream there too, and as a datagram after that (RFC 3261 §18.1.1).
            let stream = Some(flow).filter(|flow| large && flow.protocol == Protocol::Udp);
            let stream = stream.and_then(|flow| self.beside(*flow));
            for flow in stream.into_iter().chain([*flow]) {
                let Some(sent_by) = self.sent_by(flow).map(str::to_owned) else { continue };
                let contact = contact.as_ref().map(|contact| contact.as_bytes().into());
                all.push(layer::Way { flow, secret: self.random.next(), sent_by, contact });
            }
        }
        self.layer.also_by(place, all);
    }

    /// A request of ours has gone to another server.
    pub(super) fn moved(
        &mut self,
        (to, owner): (Place, Owner),
        (failed, flow): (Flow, Flow),
        contact: Option<Box<[u8]>>,
        out: &mut Vec<Output>,
    ) {
        let dialog = owner.dialog.filter(|_| owner.purpose == Purpose::Invite);
        let request = self.layer.request_bytes(to).map(|(bytes, ..)| bytes);
        if let Some(call) = dialog.and_then(|dialog| self.calls.get_mut(dialog)) {
            (call.invite_client, call.request, call.dialog.flow) = (Some(to), request, flow);
            if let Some(contact) = &contact {
                call.dialog.contact.clone_from(contact);
            }
        }
        dialog.into_iter().for_each(|dialog| self.follow(dialog));
        let contact = contact.map(|contact| String::from_utf8_lossy(&contact).into_owned());
        let (dialog, request) = (dialog.map(DialogId), dialog.is_none().then_some(ClientId(to)));
        out.push(Output::Event(Event::Moved { dialog, request, failed, flow, contact }));
    }

    /// What a request of ours asked, while it may be sent again: while handling the 401 or 407 to it.
    pub fn asked(&self, request: ClientId) -> Option<Asked> {
        self.layer.request_bytes(request.0).map(|(bytes, ..)| asked(&bytes))
    }
    /// The same of the INVITE that [`Event::Challenged`] is about.
    pub fn asked_by_invite(&self, dialog: DialogId) -> Option<Asked> {
        self.calls.get(dialog.0)?.request.as_ref().map(|bytes| asked(bytes))
    }

    /// A request has been started: one too large for a datagram goes by the bind's stream (RFC 3261 §18.1.1).
    pub(super) fn started(
        &mut self,
        started: Option<Place>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Place, Refused> {
        let place = started.ok_or(Refused::Full)?;
        let Some(flow) = self.layer.too_large(place).and_then(|flow| self.beside(flow)) else {
            return Ok(place);
        };
        if let Some(sent_by) = self.sent_by(flow).map(str::to_owned) {
            self.layer.take_to_stream(place, (flow, &sent_by), now, out);
        }
        Ok(place)
    }

    /// The same way by the stream beside a bind for datagrams.
    fn beside(&self, flow: Flow) -> Option<Flow> {
        let transport = self.transports.get(usize::from(flow.transport.0)).and_then(Option::as_ref)?;
        Some(Flow { transport: transport.stream?, protocol: Protocol::Tcp, connection: None, ..flow })
    }

    /// Sends a request again with further headers, credentials as a rule, as a new transaction with the next CSeq number
    /// (RFC 3261 §22.2). To be called while handling the 401 or 407; later the request may be forgotten.
    pub fn retry(
        &mut self,
        request: ClientId,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<ClientId, Refused> {
        let (bytes, flow, owner) = self.layer.request_bytes(request.0).ok_or(Refused::Gone)?;
        let call = owner.dialog.and_then(|place| self.calls.get_mut(place));
        let cseq = match call {
            Some(call) => call.dialog.next_cseq(),
            None => Written::new(&bytes).sequence().saturating_add(1),
        };
        let secret = self.random.next();
        let sent_by = self.via_host(flow).to_owned();
        let write = |branch: &str, again: &mut Vec<u8>| {
            Written::new(&bytes).again((flow.protocol, &sent_by, branch), cseq, headers, again);
        };
        let started = self.layer.start_client((ClientMethod::Other, owner, flow, secret), write, now, out);
        self.started(started, now, out).map(ClientId)
    }

    /// Sends a challenged INVITE again with credentials. Not after [`Event::Failed`].
    pub fn retry_invite(
        &mut self,
        dialog: DialogId,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?;
        match call.phase {
            Phase::Challenged { .. } => call.phase = Phase::Calling,
            Phase::Confirmed if !call.is_busy() => {}
            Phase::Confirmed => return Err(Refused::Pending),
            Phase::Calling | Phase::Canceling | Phase::Ringing | Phase::Ending => {
                return Err(Refused::WrongState);
            }
        }
        self.invite_again(dialog.0, headers, now, out)
    }

    pub(super) fn invite_again(
        &mut self,
        place: Place,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get_mut(place).ok_or(Refused::Gone)?;
        let bytes = call.request.clone().ok_or(Refused::Gone)?;
        let flow = if call.phase == Phase::Confirmed { call.dialog.next_hop() } else { call.dialog.flow };
        let cseq = call.dialog.next_cseq();
        call.retry_at = None;
        call.reliable.begin();
        let owner = Owner { dialog: Some(place), purpose: Purpose::Invite };
        let secret = self.random.next();
        let sent_by = self.via_host(flow).to_owned();
        let write = |branch: &str, again: &mut Vec<u8>| {
            Written::new(&bytes).again((flow.protocol, &sent_by, branch), cseq, headers, again);
        };
        let started = self.layer.start_client((ClientMethod::Invite, owner, flow, secret), write, now, out);
        let invite = self.started(started, now, out)?;
        let request = self.layer.request_bytes(invite).map(|(bytes, ..)| bytes);
        if let Some(call) = self.calls.get_mut(place) {
            (call.invite_client, call.request) = (Some(invite), request);
        }
        Ok(())
    }

    /// Gives our unanswered INVITE up. CANCEL leaves when the first provisional response has come (RFC 3261 §9.1);
    /// [`Event::Failed`] follows. For a re-INVITE the dialog goes on.
    pub fn cancel(
        &mut self,
        dialog: DialogId,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?;
        match call.phase {
            Phase::Calling => {
                let invite = call.invite_client.ok_or(Refused::WrongState)?;
                call.phase = Phase::Canceling;
                call.hold(headers);
                self.layer.cancel(invite, headers, now, out);
            }
            Phase::Challenged { .. } => {
                let failed = |dialog| Event::Failed { dialog, failure: Failure::Canceled };
                self.end(dialog.0, failed, out);
            }
            Phase::Confirmed => {
                let invite = call.invite_client.ok_or(Refused::WrongState)?;
                call.withdraw = true;
                call.hold(headers);
                self.layer.cancel(invite, headers, now, out);
            }
            Phase::Canceling | Phase::Ringing | Phase::Ending => return Err(Refused::WrongState),
        }
        self.schedule(dialog.0);
        Ok(())
    }

    /// Acknowledges the 2xx of [`Event::Answered`], with our answer if the 2xx carried the offer. The ACK has the credentials
    /// of the INVITE (RFC 3261 §13.2.2.4).
    pub fn ack(
        &mut self,
        dialog: DialogId,
        body: Option<Body<'_>>,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get(dialog.0).ok_or(Refused::Gone)?;
        let answered = call.answered.as_ref().filter(|answered| answered.ack.is_none());
        let Answered { cseq, invite, .. } = *answered.ok_or(Refused::WrongState)?;
        let flow = call.dialog.next_hop();
        let branch = format!("z9hG4bK{:016x}{:016x}", self.random.next(), self.random.next());
        let mut bytes = core::mem::take(&mut self.scratch);
        bytes.clear();
        self.write_inside(dialog.0, Method::Ack, (&branch, cseq, flow), &mut bytes);
        bytes.extend_from_slice(self.layer.credentials(invite));
        build::finish(&mut bytes, body.map(|body| (body.content_type, body.bytes)));
        let ack = Send { flow, bytes: Arc::from(bytes.as_slice()) };
        self.scratch = bytes;
        out.push(Output::Send(ack.clone()));
        if let Some(answered) = self.calls.get_mut(dialog.0).and_then(|call| call.answered.as_mut()) {
            answered.ack = Some(ack);
        }
        Ok(())
    }

    /// A response to our INVITE, the first or a re-INVITE, came up from its transaction.
    #[allow(clippy::too_many_arguments, reason = "what a response is: whose, to what, from where, when")]
    pub(super) fn invite_response(
        &mut self,
        place: Place,
        invite: Place,
        message: &Message<'_>,
        source: Flow,
        status: Status,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        match call.phase {
            _ if status.is_success() && call.is_repeated(invite) => {
                self.repeated_answer(place, invite, message, source, now, out)
            }
            Phase::Calling if status.is_provisional() => {
                call.dialog.prove(source); // our branch is known to nobody else
                self.ringing(place, message, status, now, out);
            }
            Phase::Canceling if status.is_provisional() => {
                self.layer.cancel(invite, &held(&call.held_headers), now, out); // held until here, or sent before
            }
            Phase::Calling | Phase::Canceling if status.is_success() => {
                self.answered(place, invite, message, source, now, out);
            }
            Phase::Calling => self.refused(place, message, status, now, out),
            Phase::Canceling if status.is_final() => {
                self.end(place, |dialog| Event::Failed { dialog, failure: Failure::Canceled }, out);
            }
            Phase::Confirmed if status.is_provisional() && call.withdraw => {
                self.layer.cancel(invite, &held(&call.held_headers), now, out);
            }
            Phase::Confirmed if status.is_provisional() && call.invite_client == Some(invite) => {
                // What it says is said by the final response, too; it is acknowledged so that it ends (RFC 3262 §4).
                let _ = status == Status::TRYING || self.acknowledge_provisional(place, message, now, out);
            }
            Phase::Confirmed if status.is_final() && call.invite_client == Some(invite) => {
                self.reinvite_response(place, invite, message, status, now, out);
            }
            // Ringing changes nothing any more; a session that nobody wants is ended.
            Phase::Canceling
            | Phase::Challenged { .. }
            | Phase::Ringing
            | Phase::Confirmed
            | Phase::Ending => {
                let known = call.dialog.fork(message.to_tag().unwrap_or_default()).is_some();
                if status.is_success() && !known {
                    self.refuse_late_answer(invite, message, source, now, out);
                }
            }
        }
        self.schedule(place);
    }

    fn ringing(
        &mut self,
        place: Place,
        message: &Message<'_>,
        status: Status,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        if status == Status::TRYING || !self.acknowledge_provisional(place, message, now, out) {
            return;
        }
        let Some(call) = self.calls.get_mut(place) else { return };
        let fork = message.to_tag().and_then(|_| call.dialog.learn(message));
        let (dialog, status) = (DialogId(place), status.code());
        out.push(Output::Event(Event::Provisional { dialog, fork, status, message: message.into_owned() }));
    }

    fn answered(
        &mut self,
        place: Place,
        invite: Place,
        message: &Message<'_>,
        source: Flow,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let canceled = matches!(call.phase, Phase::Canceling);
        let Some(fork) = call.dialog.learn(message) else {
            return self.refuse_late_answer(invite, message, source, now, out);
        };
        call.dialog.settle();
        call.dialog.prove(source);
        call.dialog.arrived(source);
        call.phase = Phase::Confirmed;
        (call.invite_client, call.request) = (None, None);
        let cseq = message.cseq().map_or(0, |cseq| cseq.number);
        call.answered = Some(Answered { cseq, invite, ack: None });
        self.follow(place);
        let Some(call) = self.calls.get_mut(place) else { return };
        let dialog = DialogId(place);
        if canceled {
            out.push(Output::Event(Event::Failed { dialog, failure: Failure::Canceled }));
            call.silent = true;
            self.bye_now(place, &[], now, out);
        } else {
            out.push(Output::Event(Event::Answered { dialog, fork, message: message.into_owned() }));
        }
    }

    /// A 2xx after the first: repeated, or of another fork (RFC 3261 §13.2.2.4).
    fn repeated_answer(
        &mut self,
        place: Place,
        invite: Place,
        message: &Message<'_>,
        source: Flow,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let tag = message.to_tag().unwrap_or_default();
        if call.dialog.fork(tag).is_some() {
            if let Some(ack) = call.answered.as_ref().and_then(|answered| answered.ack.clone()) {
                out.push(Output::Send(ack));
            }
        } else if call.surplus.iter().any(|ended| **ended == *tag) {
            self.ack_orphan(invite, message, source, out);
        } else {
            if call.surplus.len() < FORKS_MAX {
                call.surplus.push(tag.into());
            }
            self.refuse_late_answer(invite, message, source, now, out);
        }
    }

    fn refused(
        &mut self,
        place: Place,
        message: &Message<'_>,
        status: Status,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        call.invite_client = None;
        let dialog = DialogId(place);
        if matches!(status.code(), 401 | 407 | 422 | 494) {
            call.phase = Phase::Challenged { until: now + self.config.timers.timeout };
            out.push(Output::Event(Event::Challenged { dialog, message: message.into_owned() }));
            return;
        }
        let failure = Failure::Refused { status: status.code(), message: message.into_owned() };
        self.end(place, |dialog| Event::Failed { dialog, failure }, out);
    }

    fn reinvite_response(
        &mut self,
        place: Place,
        invite: Place,
        message: &Message<'_>,
        status: Status,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let dialog = DialogId(place);
        (call.invite_client, call.withdraw) = (None, false);
        if call.bye_when_answered.is_some() {
            if status.is_success() {
                call.dialog.refresh_target(message);
                let cseq = message.cseq().map_or(0, |cseq| cseq.number);
                call.answered = Some(Answered { cseq, invite, ack: None });
            }
            return self.bye_now(place, &[], now, out);
        }
        match status.code() {
            200..300 => {
                call.request = None;
                call.dialog.refresh_target(message);
                let cseq = message.cseq().map_or(0, |cseq| cseq.number);
                call.answered = Some(Answered { cseq, invite, ack: None });
                out.push(Output::Event(Event::Answered { dialog, fork: 0, message: message.into_owned() }));
            }
            491 if call.request.is_some() => {
                let wait = self.random_glare(place);
                if let Some(call) = self.calls.get_mut(place) {
                    call.retry_at = Some(now + wait);
                }
            }
            401 | 407 | 422 => {
                out.push(Output::Event(Event::Challenged { dialog, message: message.into_owned() }))
            }
            408 | 481 => self.peer_lost(place, now, out),
            _ => {
                call.request = None;
                let failure = Failure::Refused { status: status.code(), message: message.into_owned() };
                out.push(Output::Event(Event::ReinviteFailed { dialog, failure }));
            }
        }
    }

    /// How long to wait after 491: the owner of the Call-ID 2.1 to 4 s, the other side up to 2 s (RFC 3261 §14.1).
    fn random_glare(&mut self, place: Place) -> Duration {
        let owner = self.calls.get(place).is_some_and(|call| call.dialog.is_caller());
        let tens = if owner { 210 + self.random.below(191) } else { self.random.below(201) };
        Duration::from_millis(10 * tens)
    }

    /// One of our transactions ended without a final response.
    pub(super) fn unanswered(
        &mut self,
        place: Place,
        owner: Owner,
        failure: Failure,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let call = owner.dialog.filter(|dialog| self.calls.get(*dialog).is_some());
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            call.update_client.take_if(|update| *update == place);
        }
        match (owner.purpose, call) {
            (Purpose::Invite, Some(dialog)) => match self.calls.get(dialog).map(|call| call.phase) {
                Some(Phase::Calling) => self.end(dialog, |dialog| Event::Failed { dialog, failure }, out),
                Some(Phase::Canceling) => {
                    self.end(dialog, |dialog| Event::Failed { dialog, failure: Failure::Canceled }, out);
                }
                Some(Phase::Confirmed)
                    if self.calls.get(dialog).is_some_and(|c| c.invite_client == Some(place)) =>
                {
                    self.peer_lost(dialog, now, out); // a re-INVITE that nobody answers
                }
                // The transaction of an answered INVITE has nothing more to fail at.
                Some(Phase::Challenged { .. } | Phase::Ringing | Phase::Confirmed | Phase::Ending) | None => {
                }
            },
            (Purpose::Bye, Some(dialog)) => {
                let reason = End::Local;
                self.end(dialog, |dialog| Event::Ended { dialog, reason, message: None }, out);
            }
            (Purpose::Request, dialog) => {
                let (request, dialog) = (ClientId(place), dialog.map(DialogId));
                out.push(Output::Event(Event::Unanswered { request, dialog, failure }));
            }
            (Purpose::Notify, _) => self.notify_unanswered(place, now, out),
            (Purpose::Quiet, _) | (Purpose::Invite | Purpose::Bye, None) => {}
        }
    }

    /// Acknowledges and ends a dialog that nobody here wants: a surplus fork, or a call given up (§13.2.2.4, §15.1.1).
    pub(super) fn refuse_late_answer(
        &mut self,
        invite: Place,
        message: &Message<'_>,
        source: Flow,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        self.ack_orphan(invite, message, source, out);
        let Some(dialog) = orphan(message, source) else { return };
        let mut call = Call::new(dialog, Phase::Ending);
        call.silent = true;
        let flow = call.dialog.next_hop();
        let cseq = call.dialog.next_cseq();
        let owner = Owner { dialog: None, purpose: Purpose::Quiet };
        let secret = self.random.next();
        let sent_by = self.via_host(flow).to_owned();
        let config = &self.config;
        let write = |branch: &str, bytes: &mut Vec<u8>| {
            write_request(&call.dialog, Method::Bye, (&sent_by, branch, cseq, flow), config, bytes);
            finish_request(config, ClientMethod::Other, None, &[], None, bytes);
        };
        self.layer.start_client((ClientMethod::Other, owner, flow, secret), write, now, out);
    }

    fn ack_orphan(&mut self, invite: Place, message: &Message<'_>, source: Flow, out: &mut Vec<Output>) {
        let Some(dialog) = orphan(message, source) else { return };
        let flow = dialog.next_hop();
        let branch = format!("z9hG4bK{:016x}{:016x}", self.random.next(), self.random.next());
        let cseq = message.cseq().map_or(0, |cseq| cseq.number);
        let mut bytes = Vec::new();
        let way = (self.via_host(flow), &*branch, cseq, flow);
        write_request(&dialog, Method::Ack, way, &self.config, &mut bytes);
        bytes.extend_from_slice(self.layer.credentials(invite));
        build::finish(&mut bytes, None);
        out.push(Output::Send(Send { flow, bytes: Arc::from(bytes) }));
    }

    /// Writes a request of a stored dialog up to its CSeq.
    pub(super) fn write_inside(
        &self,
        place: Place,
        method: Method<'_>,
        (branch, cseq, flow): (&str, u32, Flow),
        bytes: &mut Vec<u8>,
    ) {
        if let Some(call) = self.calls.get(place) {
            let way = (self.via_host(flow), branch, cseq, flow);
            write_request(&call.dialog, method, way, &self.config, bytes);
        }
    }
}

/// What a request that has left asks.
fn asked(bytes: &[u8]) -> Asked {
    let written = Written::new(bytes);
    let proves = ["Authorization", "Proxy-Authorization"].iter().any(|name| written.value(name).is_some());
    Asked { method: written.method().to_vec(), uri: written.uri().to_vec(), proves }
}

impl Call {
    /// Whether a 2xx of this transaction has been seen.
    fn is_repeated(&self, invite: Place) -> bool {
        self.answered.as_ref().is_some_and(|answered| answered.invite == invite)
    }
}

/// Writes a request of a dialog up to its CSeq.
pub(super) fn write_request(
    dialog: &Dialog,
    method: Method<'_>,
    (sent_by, branch, cseq, flow): (&str, &str, u32, Flow),
    config: &super::Config,
    bytes: &mut Vec<u8>,
) {
    let Some(peer) = dialog.peer() else { return };
    let (uri, routes) = peer.path();
    let routes: Vec<_> = routes.collect();
    RequestHead {
        method,
        uri,
        protocol: flow.protocol,
        sent_by,
        branch,
        from: dialog.local(),
        to: peer.value(),
        call_id: &dialog.call_id,
        cseq,
        max_forwards: config.max_forwards,
    }
    .write(routes.iter().map(Vec::as_slice), bytes);
}

/// Everything after CSeq.
pub(super) fn finish_request(
    config: &super::Config,
    kind: ClientMethod,
    contact: Option<&[u8]>,
    headers: &[Header<'_>],
    body: Option<Body<'_>>,
    bytes: &mut Vec<u8>,
) {
    if let Some(contact) = contact {
        build::header(bytes, "Contact", contact);
    }
    let own = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if !config.product.is_empty() && !own("User-Agent") {
        build::header(bytes, "User-Agent", config.product.as_bytes());
    }
    for (name, value) in [("Allow", &config.allow), ("Supported", &config.supported)] {
        if kind == ClientMethod::Invite && !value.is_empty() && !own(name) {
            build::header(bytes, name, value.as_bytes());
        }
    }
    for (name, value) in headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("Max-Forwards")) {
        build::header(bytes, name, value.as_bytes());
    }
    build::finish(bytes, body.map(|body| (body.content_type, body.bytes)));
}

/// The dialog that a 2xx of ours-to-refuse would make.
fn orphan(message: &Message<'_>, source: Flow) -> Option<Dialog> {
    let local = message.header(HeaderName::From)?;
    let (call_id, cseq) = (message.call_id()?, message.cseq()?.number);
    let mut dialog = Dialog::calling((call_id, "", cseq), local, "", (source, false));
    dialog.learn(message)?;
    Some(dialog)
}
