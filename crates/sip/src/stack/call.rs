//! One call leg: its dialog, where its INVITEs stand and what it waits for.

use super::reliable::Reliable;
use super::{DialogId, Stack};
use crate::dialog::Dialog;
use crate::layer::{self, ConnectionId, Flow, Place, Scheduled, Send};
use crate::stack::{Event, Header, Output};
use base::Instant;
use core::time::Duration;
use std::sync::Arc;

/// How often a ringing call repeats its provisional response, so that proxies do not give up (RFC 3261 §13.3.1.1).
pub(super) const REFRESH: Duration = Duration::from_secs(60);

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Our first INVITE has no final response.
    Calling,
    /// We gave our first INVITE up. CANCEL has left, or waits for a provisional response (§9.1).
    Canceling,
    /// Our first INVITE was challenged and waits for the driver.
    Challenged { until: Instant },
    /// The peer's first INVITE has no final response of ours.
    Ringing,
    /// There is a session.
    Confirmed,
    /// Our BYE is out.
    Ending,
}

/// A 2xx of ours that has not been acknowledged (§13.3.1.4).
#[derive(Debug)]
pub(super) struct Unacked {
    pub(super) response: Send,
    pub(super) interval: Duration,
    pub(super) repeat_at: Instant,
    pub(super) give_up_at: Instant,
    /// Number of the INVITE, which the ACK repeats.
    pub(super) cseq: u32,
}

/// A 2xx of the peer and our ACK for it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) cseq: u32,
    /// The transaction that absorbs repetitions of the 2xx.
    pub(super) invite: Place,
    /// The ACK, once the driver has sent it.
    pub(super) ack: Option<Send>,
}

/// One call leg.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) dialog: Dialog,
    pub(super) phase: Phase,
    /// Our INVITE without final response.
    pub(super) invite_client: Option<Place>,
    /// The peer's INVITE without final response.
    pub(super) invite_server: Option<Place>,
    /// CSeq number of the peer's latest INVITE: other requests may have come after it.
    pub(super) invite_cseq: u32,
    /// Our INVITE as it left, while it may have to be sent again with credentials or after a glare.
    pub(super) request: Option<Arc<[u8]>>,
    pub(super) answered: Option<Answered>,
    pub(super) unacked: Option<Unacked>,
    /// Our re-INVITE is to be canceled as soon as it may (§9.1).
    pub(super) withdraw: bool,
    /// The driver has hung up while an ACK was still due: BYE when it has come (§15).
    pub(super) bye_when_acked: bool,
    /// The driver has hung up while a re-INVITE of ours was out: BYE when that is answered and acknowledged, and then at the
    /// latest.
    pub(super) bye_when_answered: Option<Instant>,
    /// Headers of a CANCEL or BYE that has to wait.
    pub(super) held_headers: Vec<(String, String)>,
    /// Headers of every request of ours in the dialog, ACK and CANCEL excepted.
    pub(super) standing_headers: Vec<(String, String)>,
    /// What the 487 says when the peer withdraws its INVITE.
    pub(super) withdrawal: Vec<(String, String)>,
    /// What our BYE carries, or our answer to the peer's: media type and content.
    pub(super) farewell: Option<(&'static str, Box<[u8]>)>,
    /// The driver has been told that the call is over, or does not want to be.
    pub(super) silent: bool,
    /// Provisional responses that are acknowledged.
    pub(super) reliable: Reliable,
    /// Our UPDATE whose offer has no answer.
    pub(super) update_client: Option<Place>,
    /// Forks that answered after another one, already ended.
    pub(super) surplus: Vec<Box<[u8]>>,
    /// When the ringing is repeated.
    pub(super) refresh_at: Option<Instant>,
    /// When our re-INVITE is tried again after 491 (§14.1).
    pub(super) retry_at: Option<Instant>,
    pub(super) scheduled: Scheduled,
    /// The connection that it is found under.
    connection: Option<ConnectionId>,
    /// Nothing has shown that the peer is where its INVITE came from.
    pub(super) unproved: bool,
    /// Its next step panics: fault injection.
    pub(super) poisoned: bool,
}

impl Call {
    pub(super) fn new(dialog: Dialog, phase: Phase) -> Self {
        Self {
            dialog,
            phase,
            invite_client: None,
            invite_server: None,
            invite_cseq: 0,
            request: None,
            answered: None,
            unacked: None,
            withdraw: false,
            bye_when_acked: false,
            bye_when_answered: None,
            held_headers: Vec::new(),
            standing_headers: Vec::new(),
            withdrawal: Vec::new(),
            farewell: None,
            silent: false,
            reliable: Reliable::default(),
            update_client: None,
            surplus: Vec::new(),
            refresh_at: None,
            retry_at: None,
            scheduled: Scheduled::default(),
            connection: None,
            unproved: false,
            poisoned: false,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Challenged { until } => Some(until),
            Phase::Calling | Phase::Canceling | Phase::Ringing | Phase::Confirmed | Phase::Ending => None,
        };
        let unacked = self.unacked.as_ref().map(|unacked| unacked.repeat_at.min(unacked.give_up_at));
        let own = [phase, unacked, self.refresh_at, self.retry_at, self.reliable.deadline()];
        own.into_iter().chain([self.bye_when_answered]).flatten().min()
    }

    /// An INVITE client transaction has ended: no 2xx can come from it any more, so that its ACK is not needed.
    pub(super) fn invite_gone(&mut self, place: Place) {
        if self.invite_client == Some(place) {
            self.invite_client = None;
        }
        if self.answered.as_ref().is_some_and(|answered| answered.invite == place && answered.ack.is_some()) {
            self.answered = None;
            self.surplus = Vec::new();
        }
    }

    /// Keeps headers until the message that they belong to may leave.
    pub(super) fn hold(&mut self, headers: &[Header<'_>]) {
        self.held_headers =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    }

    /// Whether an INVITE is in progress in either direction, so that none of ours may start (§14.1).
    pub(super) fn is_busy(&self) -> bool {
        self.invite_client.is_some() || self.invite_server.is_some() || self.unacked.is_some()
    }
}

/// What [`Call::hold`] kept, as headers.
pub(super) fn held(headers: &[(String, String)]) -> Vec<Header<'_>> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

impl Stack {
    /// Stores a call under its Call-ID and our tag.
    pub(super) fn insert(&mut self, call: Call) -> Option<Place> {
        let key = self.dialog_key(&call.dialog.call_id, call.dialog.local_tag.as_bytes());
        let place = self.calls.insert_with(|_| call)?;
        self.by_tag.insert(key, place);
        self.follow(place);
        Some(place)
    }

    /// Finds the call by its connection from here on; to be called whenever its way may have changed.
    pub(super) fn follow(&mut self, place: Place) {
        let Some(call) = self.calls.get_mut(place) else { return };
        self.by_connection.follow(place, &mut call.connection, call.dialog.flow.connection);
    }

    /// The calls that used this connection have to find another one.
    pub(super) fn connection_closed(&mut self, connection: ConnectionId) {
        for place in self.by_connection.of(connection) {
            if let Some(call) = self.calls.get_mut(place) {
                call.dialog.flow.connection = None;
                // A 2xx is repeated until it is acknowledged, where its peer can be reached.
                let unacked = call.unacked.as_mut().map(|unacked| &mut unacked.response);
                if let Some(sent) = unacked.filter(|sent| sent.flow.connection == Some(connection)) {
                    sent.flow = layer::way_back(&sent.bytes, sent.flow);
                }
            }
            self.follow(place);
        }
    }

    /// Forgets a call.
    pub(super) fn remove(&mut self, place: Place) -> Option<Call> {
        let call = self.calls.remove(place)?;
        self.by_connection.forget(place, call.connection);
        let key = self.dialog_key(&call.dialog.call_id, call.dialog.local_tag.as_bytes());
        if self.by_tag.get(&key) == Some(&place) {
            self.by_tag.remove(&key);
        }
        Some(call)
    }

    /// Sees to the call's next deadline.
    pub(super) fn schedule(&mut self, place: Place) {
        if let Some(call) = self.calls.get_mut(place) {
            let deadline = call.deadline();
            self.deadlines.schedule(place, &mut call.scheduled, deadline);
        }
    }

    /// Forgets a call and says why, unless the driver knows.
    pub(super) fn end(&mut self, place: Place, event: impl FnOnce(DialogId) -> Event, out: &mut Vec<Output>) {
        if let Some(call) = self.remove(place)
            && !call.silent
        {
            out.push(Output::Event(event(DialogId(place))));
        }
    }

    /// `host[:port]` for the Via of a message on this flow; the address we know least wrong when none was set.
    pub(super) fn via_host(&self, flow: Flow) -> &str {
        self.sent_by(flow).unwrap_or("invalid.invalid")
    }
}
