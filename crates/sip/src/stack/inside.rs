//! Inside a dialog: re-INVITE and its glare, BYE, other requests, and what a call's own timers do.

use super::call::{Call, Phase};
use super::reliable::Refusal;
use super::uac::finish_request;
use super::{Answer, Body, ClientId, DialogId, End, Event, Header, Output, Refused, ServerId, Stack};
use crate::dialog::Order;
use crate::header::Method;
use crate::layer::{ClientMethod, Flow, Owner, Place, Purpose, TransactionKey};
use crate::message::{Message, Status};
use base::Instant;

/// A request that crosses another one may come back after so many seconds at most, each number as likely (RFC 3261 §14.2,
/// RFC 3311 §5.2).
const CROSSING_SECONDS_MAX: u64 = 10;

impl Stack {
    /// Sends a request in a dialog: INFO, UPDATE, MESSAGE, REFER, NOTIFY, OPTIONS. The outcome comes as
    /// [`Event::Response`] or [`Event::Unanswered`].
    pub fn request_inside(
        &mut self,
        dialog: DialogId,
        (method, headers, body): (Method<'_>, &[Header<'_>], Option<Body<'_>>),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<ClientId, Refused> {
        let call = self.calls.get(dialog.0).ok_or(Refused::Gone)?;
        let own = matches!(method, Method::Invite | Method::Ack | Method::Bye | Method::Cancel);
        if own || call.dialog.peer().is_none() || call.phase == Phase::Ending {
            return Err(Refused::WrongState);
        }
        let offers = method == Method::Update && body.is_some();
        if offers && !call.may_offer() {
            return Err(Refused::Pending);
        }
        let place = self.start_inside(dialog.0, method, Purpose::Request, (headers, body), now, out)?;
        if let Some(call) = self.calls.get_mut(dialog.0).filter(|_| offers) {
            call.update_client = Some(place);
        }
        Ok(ClientId(place))
    }

    /// The same with other display names in From and To, in this request alone (RFC 3261 §12.2.1.1 wants URIs and tags).
    pub fn request_inside_named(
        &mut self,
        dialog: DialogId,
        names: [Option<&str>; 2],
        request: (Method<'_>, &[Header<'_>], Option<Body<'_>>),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<ClientId, Refused> {
        let before = self.calls.get_mut(dialog.0).map(|call| call.dialog.named(names));
        let sent = self.request_inside(dialog, request, now, out);
        if let Some((call, before)) = self.calls.get_mut(dialog.0).zip(before) {
            call.dialog.rename(before);
        }
        sent
    }

    /// Whether an offer may be made in a session that is up, or what is in its way (RFC 3264 §4, RFC 6337 §3): one of either
    /// side that is not answered, an INVITE that is not over, or the wait after a glare.
    pub fn may_offer(&self, dialog: DialogId) -> Result<(), Refused> {
        let call = self.calls.get(dialog.0).ok_or(Refused::Gone)?;
        match call.may_offer() && call.retry_at.is_none() {
            true => Ok(()),
            false => Err(Refused::Pending),
        }
    }
    /// Sends a re-INVITE. [`Event::Answered`], [`Event::Challenged`] or [`Event::ReinviteFailed`] follows; a glare (491)
    /// is tried again by the stack.
    pub fn reinvite(
        &mut self,
        dialog: DialogId,
        headers: &[Header<'_>],
        body: Option<Body<'_>>,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get(dialog.0).ok_or(Refused::Gone)?;
        match call.phase {
            Phase::Confirmed => self.may_offer(dialog)?,
            _ => return Err(Refused::WrongState),
        }
        if call.answered.as_ref().is_some_and(|answered| answered.ack.is_none()) {
            self.ack(dialog, None, out)?;
        }
        if let Some(call) = self.calls.get_mut(dialog.0) {
            call.reliable.begin();
        }
        let invite =
            self.start_inside(dialog.0, Method::Invite, Purpose::Invite, (headers, body), now, out)?;
        let request = self.layer.request_bytes(invite).map(|(bytes, ..)| bytes);
        if let Some(call) = self.calls.get_mut(dialog.0) {
            (call.invite_client, call.request) = (Some(invite), request);
        }
        Ok(())
    }

    /// Ends a session that is up. [`Event::Ended`] with [`End::Local`] follows when the peer has answered or is given up.
    /// If the ACK for our 2xx is still to come, BYE waits for it (RFC 3261 §15), and for the answer to a re-INVITE of ours, so that
    /// the peer is not left with half a negotiation; `headers` are not said then.
    pub fn bye(
        &mut self,
        dialog: DialogId,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let call = self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?;
        if call.phase != Phase::Confirmed {
            return Err(Refused::WrongState);
        }
        if call.unacked.is_some() {
            call.bye_when_acked = true;
            call.hold(headers);
            return Ok(());
        }
        if call.invite_client.is_some() {
            call.bye_when_answered = Some(now + self.config.timers.timeout);
            self.schedule(dialog.0);
            return Ok(());
        }
        self.bye_now(dialog.0, headers, now, out);
        Ok(())
    }

    /// Ends the call in whatever state it is: refuses an INVITE with `status`, cancels ours, says BYE. `headers` go into
    /// that message (Reason).
    pub fn hang_up(
        &mut self,
        dialog: DialogId,
        status: u16,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        match self.calls.get(dialog.0).ok_or(Refused::Gone)?.phase {
            Phase::Ringing => {
                self.answer(dialog, &Answer::new(status.clamp(300, 699)).headers(headers), now, out)
            }
            Phase::Calling | Phase::Challenged { .. } => self.cancel(dialog, headers, now, out),
            Phase::Confirmed => self.bye(dialog, headers, now, out),
            Phase::Canceling | Phase::Ending => Ok(()),
        }
    }

    /// The way that requests in this dialog take from here on, when the driver has resolved a name or knows better.
    pub fn set_flow(&mut self, dialog: DialogId, flow: Flow) -> Result<(), Refused> {
        self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?.dialog.redirect(flow);
        self.follow(dialog.0);
        Ok(())
    }

    /// Headers that every request of ours in this dialog has from here on, but ACK and CANCEL.
    pub fn set_headers(&mut self, dialog: DialogId, headers: Vec<(String, String)>) -> Result<(), Refused> {
        self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?.standing_headers = headers;
        Ok(())
    }

    /// A body for the end of the call: our BYE carries it, or our answer to the peer's.
    pub fn set_farewell(
        &mut self,
        dialog: DialogId,
        content_type: &'static str,
        bytes: Vec<u8>,
    ) -> Result<(), Refused> {
        let call = self.calls.get_mut(dialog.0).ok_or(Refused::Gone)?;
        call.farewell = Some((content_type, bytes.into_boxed_slice()));
        Ok(())
    }

    pub(super) fn start_inside(
        &mut self,
        place: Place,
        method: Method<'_>,
        purpose: Purpose,
        (headers, body): (&[Header<'_>], Option<Body<'_>>),
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Place, Refused> {
        let call = self.calls.get_mut(place).ok_or(Refused::Gone)?;
        let (flow, cseq) = (call.dialog.next_hop(), call.dialog.next_cseq());
        let secret = self.random.next();
        let kind = if method == Method::Invite { ClientMethod::Invite } else { ClientMethod::Other };
        let owner = Owner { dialog: Some(place), purpose };
        let call = self.calls.get(place).ok_or(Refused::Gone)?;
        let sent_by = self.via_host(flow).to_owned();
        let refreshes = matches!(
            method,
            Method::Invite | Method::Update | Method::Refer | Method::Subscribe | Method::Notify
        );
        let contact = refreshes.then_some(&*call.dialog.contact);
        let (config, dialog) = (&self.config, &call.dialog);
        let standing = call.standing_headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all: Vec<Header<'_>> = standing.chain(headers.iter().copied()).collect();
        let headers = all.as_slice();
        let write = |branch: &str, bytes: &mut Vec<u8>| {
            super::uac::write_request(dialog, method, (&sent_by, branch, cseq, flow), config, bytes);
            finish_request(config, kind, contact, headers, body, bytes);
        };
        let started = self.layer.start_client((kind, owner, flow, secret), write, now, out);
        self.started(started, now, out)
    }

    /// Sends BYE; acknowledges first what is not acknowledged.
    pub(super) fn bye_now(
        &mut self,
        place: Place,
        headers: &[Header<'_>],
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        call.phase = Phase::Ending;
        (call.unacked, call.retry_at, call.request) = (None, None, None);
        call.bye_when_answered = None;
        let (client, server) = (call.invite_client.take(), call.invite_server.take());
        let farewell = call.farewell.take();
        if call.answered.as_ref().is_some_and(|answered| answered.ack.is_none()) {
            let _ = self.ack(DialogId(place), None, out); // it is there and unacknowledged
        }
        if let Some(invite) = client {
            self.layer.disown_client(invite, now);
        }
        if let Some(invite) = server {
            let _ = self.respond_with(invite, Status::REQUEST_TERMINATED, &Answer::new(487), None, now, out);
        }
        let body = farewell.as_ref().map(|(content_type, bytes)| Body { content_type, bytes });
        if self.start_inside(place, Method::Bye, Purpose::Bye, (headers, body), now, out).is_err() {
            self.end(place, |dialog| Event::Ended { dialog, reason: End::Local, message: None }, out);
        }
    }

    /// The peer does not know the dialog any more (§12.2.1.2): the driver hears it at once, BYE leaves for good measure.
    pub(super) fn peer_lost(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        self.say_ended(place, End::PeerLost, out);
        self.bye_now(place, &[], now, out);
    }

    fn say_ended(&mut self, place: Place, reason: End, out: &mut Vec<Output>) {
        if let Some(call) = self.calls.get_mut(place).filter(|call| !call.silent) {
            call.silent = true;
            out.push(Output::Event(Event::Ended { dialog: DialogId(place), reason, message: None }));
        }
    }

    pub(super) fn receive_inside(
        &mut self,
        place: Place,
        message: &Message<'_>,
        source: Flow,
        key: TransactionKey,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        // Whoever does not know the peer's tag learns nothing (Order::Stranger); whoever does may have overheard it.
        let known = |call: &Call| call.dialog.fork(message.from_tag().unwrap_or_default()).is_some();
        if self.calls.get(place).is_some_and(known) && self.is_elsewhere(place, (message, source), key, out) {
            return;
        }
        let unknown = self.unknown_extensions(message);
        let Some(call) = self.calls.get_mut(place) else { return };
        let force_rport = call.dialog.force_rport;
        let method = message.method();
        let refusal = match call.dialog.order(message) {
            Order::Stranger => Some(Refusal::Now(481)),
            Order::Old => Some(Refusal::Now(500)), // §12.2.2
            Order::Next if call.phase == Phase::Ending && method != Method::Bye => Some(Refusal::Now(481)),
            // §14.2: one INVITE at a time in each direction.
            Order::Next if method == Method::Invite && call.invite_client.is_some() => {
                Some(Refusal::Now(491))
            }
            Order::Next if method == Method::Invite && call.is_busy() => Some(Refusal::Crossing),
            Order::Next if method == Method::Update && !message.body().is_empty() => call.refusal_of_update(),
            Order::Next => None,
        };
        if let Some(refusal) = refusal {
            let seconds;
            let later;
            let answer = match refusal {
                Refusal::Now(status) => Answer::new(status),
                Refusal::Crossing => {
                    seconds = self.random.below(CROSSING_SECONDS_MAX + 1).to_string();
                    later = [("Retry-After", seconds.as_str())];
                    Answer::new(500).headers(&later)
                }
            };
            return self.refuse_inside(message, source, (key, force_rport), &answer, now, out);
        }
        call.unproved = false; // it knows our tag
        if method == Method::Bye {
            return self.receive_bye(place, message, source, key, now, out);
        }
        // §12.2.2: as outside dialogs (§8.2.2.3); a call that is to end ends whatever its BYE requires.
        if !unknown.is_empty() {
            let headers = [("Unsupported", unknown.as_str())];
            let answer = Answer::new(420).headers(&headers);
            return self.refuse_inside(message, source, (key, force_rport), &answer, now, out);
        }
        if method == Method::Prack {
            return self.receive_prack(place, message, source, (key, force_rport), now, out);
        }
        call.dialog.arrived(source);
        if matches!(
            method,
            Method::Invite | Method::Update | Method::Subscribe | Method::Notify | Method::Refer
        ) {
            call.dialog.refresh_target(message);
        }
        self.follow(place);
        let Ok(request) = self.start_server(message, source, force_rport, key, Some(place), now) else {
            return self.answer_statelessly(message, source, force_rport, &Answer::new(503), out);
        };
        if method == Method::Invite
            && let Some(call) = self.calls.get_mut(place)
        {
            call.invite_server = Some(request);
            call.invite_cseq = message.cseq().map_or(0, |cseq| cseq.number);
        }
        let (dialog, request) = (DialogId(place), ServerId(request));
        out.push(Output::Event(Event::InDialog { dialog, request, message: message.into_owned(), source }));
    }

    /// Answers with a transaction, so that the same request is not judged twice (an old CSeq would be).
    pub(super) fn refuse_inside(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        (key, force_rport): (TransactionKey, bool),
        answer: &Answer<'_>,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(status) = Status::new(answer.status) else { return };
        match self.start_server(message, source, force_rport, key, None, now) {
            Ok(request) => {
                let _ = self.respond_with(request, status, answer, None, now, out); // new, so it takes an answer
            }
            Err(_) => self.answer_statelessly(message, source, force_rport, answer, out),
        }
    }

    fn receive_bye(
        &mut self,
        place: Place,
        message: &Message<'_>,
        source: Flow,
        key: TransactionKey,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(call) = self.calls.get_mut(place) else { return };
        let (force_rport, client, server) = (call.dialog.force_rport, call.invite_client, call.invite_server);
        let farewell = call.farewell.take();
        let body = farewell.as_ref().map(|(content_type, bytes)| Body { content_type, bytes });
        let answer = Answer { body, ..Answer::new(200) };
        self.refuse_inside(message, source, (key, force_rport), &answer, now, out);
        if let Some(invite) = server {
            // §15.1.2: what the peer still waits for is answered.
            let _ = self.respond_with(invite, Status::REQUEST_TERMINATED, &Answer::new(487), None, now, out);
            self.layer.disown_server(invite);
        }
        if let Some(invite) = client {
            self.layer.disown_client(invite, now);
        }
        let message = Some(message.into_owned());
        self.end(place, |dialog| Event::Ended { dialog, reason: End::Bye, message }, out);
    }

    pub(super) fn bye_response(
        &mut self,
        place: Place,
        dialog: Option<Place>,
        message: &Message<'_>,
        status: Status,
        out: &mut Vec<Output>,
    ) {
        if status.is_provisional() {
            return;
        }
        if matches!(status.code(), 401 | 407) {
            let (request, dialog, status) = (ClientId(place), dialog.map(DialogId), status.code());
            let message = message.into_owned();
            out.push(Output::Event(Event::Response { request, dialog, status, message }));
        }
        if let Some(dialog) = dialog {
            // Whoever says something then says what the call has cost.
            let message = (!message.body().is_empty()).then(|| message.into_owned());
            self.end(dialog, |dialog| Event::Ended { dialog, reason: End::Local, message }, out);
        }
    }

    pub(super) fn request_response(
        &mut self,
        place: Place,
        dialog: Option<Place>,
        message: &Message<'_>,
        status: Status,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let dialog = dialog.filter(|place| self.calls.get(*place).is_some());
        if let Some(call) = dialog.and_then(|place| self.calls.get_mut(place)).filter(|_| status.is_final()) {
            call.update_client.take_if(|update| *update == place);
        }
        let refreshes = status.is_success() && message.method() == Method::Update;
        if let Some(call) = dialog.filter(|_| refreshes).and_then(|place| self.calls.get_mut(place)) {
            call.dialog.refresh_target(message);
        }
        let request = ClientId(place);
        let (code, owned) = (status.code(), message.into_owned());
        out.push(Output::Event(Event::Response {
            request,
            dialog: dialog.map(DialogId),
            status: code,
            message: owned,
        }));
        // Before it is answered, the INVITE's own response says what becomes of the call.
        let up = |place: &Place| self.calls.get(*place).is_some_and(|call| call.phase == Phase::Confirmed);
        if let (481, Some(place)) = (code, dialog.filter(up)) {
            self.peer_lost(place, now, out);
        }
    }

    /// A call's own time has come.
    pub(super) fn call_due(&mut self, place: Place, now: Instant, out: &mut Vec<Output>) {
        let t2 = self.config.timers.t2;
        let Some(call) = self.calls.get_mut(place) else { return };
        if call.refresh_at.is_some_and(|at| at <= now) {
            call.refresh_at = Some(now + super::call::REFRESH);
            if let Some(invite) = call.invite_server {
                self.layer.repeat_response(invite, out);
            }
        }
        if call.retry_at.is_some_and(|at| at <= now) {
            call.retry_at = None;
            if call.is_busy() {
                call.retry_at = Some(now + t2); // the peer was faster; ours comes after
            } else if self.invite_again(place, &[], now, out).is_err() {
                self.say_ended(place, End::PeerLost, out);
                self.bye_now(place, &[], now, out);
            }
        }
        let Some(call) = self.calls.get_mut(place) else { return };
        if call.bye_when_answered.is_some_and(|at| at <= now) {
            return self.bye_now(place, &[], now, out);
        }
        match call.phase {
            Phase::Challenged { until } if until <= now => {
                let reason = End::Abandoned;
                return self.end(place, |dialog| Event::Ended { dialog, reason, message: None }, out);
            }
            Phase::Calling
            | Phase::Canceling
            | Phase::Challenged { .. }
            | Phase::Ringing
            | Phase::Confirmed
            | Phase::Ending => {}
        }
        self.reliable_due(place, now, out);
        let Some(call) = self.calls.get_mut(place) else { return };
        let Some(unacked) = call.unacked.as_mut() else { return };
        if unacked.give_up_at <= now && call.unproved {
            // Its Contact may be anybody's.
            self.end(place, |dialog| Event::Ended { dialog, reason: End::NoAck, message: None }, out);
        } else if unacked.give_up_at <= now {
            self.say_ended(place, End::NoAck, out);
            self.bye_now(place, &[], now, out);
        } else if unacked.repeat_at <= now {
            out.push(Output::Send(unacked.response.clone()));
            unacked.interval = (unacked.interval * 2).min(t2);
            unacked.repeat_at = now + unacked.interval;
        }
    }
}
