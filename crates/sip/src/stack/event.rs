//! The words between the stack and its driver: what comes out, what goes in.

use super::{ClientId, DialogId, ServerId, SubscriptionId};
use crate::header::Method;
use crate::layer::{Flow, Send, TransactionKey};
use crate::message::OwnedMessage;

/// What a driver carries out, in order.
#[derive(Debug)]
pub enum Output {
    /// Bytes that leave.
    Send(Send),
    /// Something the driver decides about.
    Event(Event),
}

/// A request outside any dialog. Nothing is stored for it until the driver accepts it.
///
/// Dropping it is an answer too: silence. While the driver looks something up it may keep this; the peer's
/// retransmissions then come up as further `Incoming`s with the same [`key`](Self::key).
#[derive(Debug)]
pub struct Incoming {
    /// The request as it arrived.
    pub message: OwnedMessage,
    /// Where it came from.
    pub source: Flow,
    /// Answers go to the address the request came from even if it did not ask for that (`force_rport`); the driver may
    /// set it once it knows the endpoint.
    pub force_rport: bool,
    /// Whoever sent it was let in, so that it is answered in full; the driver sets it. What answers others by datagrams
    /// is bounded, see [`Stack::respond_stateless`](super::Stack::respond_stateless).
    pub proved: bool,
    pub(crate) key: TransactionKey,
}

impl Incoming {
    /// Equal for retransmissions of one request (RFC 3261 §17.2.3).
    pub const fn key(&self) -> u128 {
        self.key.transaction
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// An INVITE that would make a dialog. Answer it with [`Stack::accept_invite`](super::Stack::accept_invite) or
    /// [`Stack::respond_stateless`](super::Stack::respond_stateless).
    Invite(Box<Incoming>),
    /// Any other request outside dialogs. Answer it with [`Stack::accept`](super::Stack::accept) and
    /// [`Stack::respond`](super::Stack::respond), or with [`Stack::respond_stateless`](super::Stack::respond_stateless).
    Request(Box<Incoming>),
    /// A request inside a dialog, re-INVITE and UPDATE included; answer with [`Stack::respond`](super::Stack::respond).
    /// BYE is answered by the stack and comes up as [`Event::Ended`].
    InDialog {
        /// Dialog.
        dialog: DialogId,
        /// Transaction to answer.
        request: ServerId,
        /// The request.
        message: OwnedMessage,
        /// Where it came from.
        source: Flow,
    },
    /// A request inside a dialog, ACK and CANCEL included, from an address that its peer was not known to be at. Nothing
    /// was done. The driver lets it in by [`Stack::receive_proved`](super::Stack::receive_proved), or answers it with
    /// [`Stack::respond_stateless`](super::Stack::respond_stateless).
    Elsewhere {
        /// Dialog.
        dialog: DialogId,
        /// The request.
        incoming: Box<Incoming>,
    },
    /// A provisional response to our INVITE; `status` is above 100.
    Provisional {
        /// Dialog.
        dialog: DialogId,
        /// Which of the forked early dialogs; 0 for the first. `None` when the response carries no To tag.
        fork: Option<u16>,
        /// 101 to 199.
        status: u16,
        /// The response.
        message: OwnedMessage,
    },
    /// The first 2xx to our INVITE or re-INVITE. The driver calls [`Stack::ack`](super::Stack::ack); repetitions are
    /// acknowledged by the stack, other forks are acknowledged and ended.
    Answered {
        /// Dialog.
        dialog: DialogId,
        /// Which fork answered; the others are gone.
        fork: u16,
        /// The response.
        message: OwnedMessage,
    },
    /// Our INVITE was answered 401, 407, 422 (RFC 4028 §6) or 494 (RFC 3329 §2.3.1). The dialog waits for [`Stack::retry_invite`](super::Stack::retry_invite) or
    /// [`Stack::hang_up`](super::Stack::hang_up); for a re-INVITE the dialog goes on whether retried or not.
    Challenged {
        /// Dialog.
        dialog: DialogId,
        /// The response with its challenges.
        message: OwnedMessage,
    },
    /// Our INVITE failed for good; the dialog is gone.
    Failed {
        /// Dialog.
        dialog: DialogId,
        /// Why.
        failure: Failure,
    },
    /// Our re-INVITE failed; the dialog and its session stay as they were.
    ReinviteFailed {
        /// Dialog.
        dialog: DialogId,
        /// Why.
        failure: Failure,
    },
    /// A response to one of our requests other than INVITE, ACK, CANCEL and BYE.
    Response {
        /// The request.
        request: ClientId,
        /// Its dialog, if it was inside one.
        dialog: Option<DialogId>,
        /// Provisional or final.
        status: u16,
        /// The response.
        message: OwnedMessage,
    },
    /// One of our requests other than INVITE got no final response.
    Unanswered {
        /// The request.
        request: ClientId,
        /// Its dialog, if it was inside one.
        dialog: Option<DialogId>,
        /// Timeout or transport error.
        failure: Failure,
    },
    /// A server failed, and our request has gone to the next one of those that were named for it (RFC 3263 §4.3).
    Moved {
        /// The dialog, when the request was its first INVITE.
        dialog: Option<DialogId>,
        /// The request, when it was another.
        request: Option<ClientId>,
        /// The server that failed.
        failed: Flow,
        /// Where it has gone.
        flow: Flow,
        /// Our Contact there.
        contact: Option<String>,
    },
    /// A response can be sent neither back nor to the address that its request came from. The driver says by
    /// [`Stack::respond_by`](super::Stack::respond_by) where the DNS finds the peer (RFC 3263 §5).
    Stranded {
        /// The request that is answered.
        request: ServerId,
        /// Who its sender says to be: `sent-by` of its Via.
        host: String,
        /// With this port.
        port: Option<u16>,
        /// The last way that failed.
        failed: Flow,
    },
    /// The ACK for our 2xx arrived; it may carry the answer to our offer.
    Acked {
        /// Dialog.
        dialog: DialogId,
        /// The ACK.
        message: OwnedMessage,
    },
    /// The caller gave up before we answered. The stack has answered 200 and 487; the dialog is gone.
    Canceled {
        /// Dialog.
        dialog: DialogId,
        /// The CANCEL, which may carry Reason.
        message: OwnedMessage,
    },
    /// The peer took back a request that [`Event::InDialog`] brought, a re-INVITE; the stack has answered it 487.
    Withdrawn {
        /// Dialog.
        dialog: DialogId,
        /// The request; answering it is refused.
        request: ServerId,
    },
    /// The dialog is gone.
    Ended {
        /// Dialog.
        dialog: DialogId,
        /// Why.
        reason: End,
        /// The BYE, if that ended it; the answer to ours, if that has a body.
        message: Option<OwnedMessage>,
    },
    /// A NOTIFY of this subscription is to leave: answer with [`Stack::notify`](super::Stack::notify), which tells the
    /// state as it is at that moment.
    NotifyDue {
        /// Subscription.
        subscription: SubscriptionId,
        /// What the NOTIFY says of it.
        standing: crate::subscription::Standing,
    },
    /// The watcher's SUBSCRIBE in a subscription of its own: a refresh, or its end. Answer with
    /// [`Stack::refresh`](super::Stack::refresh) or [`Stack::respond`](super::Stack::respond).
    Resubscribe {
        /// Subscription.
        subscription: SubscriptionId,
        /// Transaction to answer.
        request: ServerId,
        /// Where it came from.
        source: Flow,
        /// The request.
        message: OwnedMessage,
    },
    /// The subscription is gone.
    Unsubscribed {
        /// Subscription.
        subscription: SubscriptionId,
    },
    /// A message that cannot be understood; it was answered if it could be, else dropped, unless it was a final response
    /// to a request of ours: that ends its transaction.
    Malformed {
        /// Where it came from.
        source: Flow,
        /// What it is, which header cannot be read, and why; without control characters.
        what: String,
    },
}

/// Why a request of ours failed.
#[derive(Debug)]
pub enum Failure {
    /// A final response of 300 or above.
    Refused {
        /// Status.
        status: u16,
        /// The response.
        message: OwnedMessage,
    },
    /// No final response in time (counts as 408).
    Timeout,
    /// It could not be sent (counts as 503).
    Transport,
    /// We canceled it; the peer said so, or said nothing for 64*T1.
    Canceled,
}

/// Why a dialog ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer said BYE.
    Bye,
    /// Our 2xx was not acknowledged within 64*T1; we said BYE (RFC 3261 §13.3.1.4).
    NoAck,
    /// The peer answered a request in the dialog with 481, or not at all (RFC 3261 §12.2.1.2).
    PeerLost,
    /// We said BYE and it was answered or given up.
    Local,
    /// The driver did not retry a challenged INVITE within 64*T1.
    Abandoned,
}

/// A body and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'a> {
    /// Content-Type.
    pub content_type: &'a str,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Body<'a> {
    /// `application/sdp`.
    pub const fn sdp(bytes: &'a [u8]) -> Self {
        Self { content_type: "application/sdp", bytes }
    }
}

/// A header that the stack does not write by itself: name and value. A value with a line break or NUL is left out.
/// User-Agent, Allow, Supported and Max-Forwards take the place of the stack's own.
pub type Header<'a> = (&'a str, &'a str);

/// A response as the driver wants it; the stack adds Via, From, To, Call-ID, CSeq, Record-Route, Contact, Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// 100 to 699.
    pub status: u16,
    /// Reason phrase; empty for the usual one.
    pub reason: &'a str,
    /// Further headers.
    pub headers: &'a [Header<'a>],
    /// Body.
    pub body: Option<Body<'a>>,
}

impl<'a> Answer<'a> {
    /// A bare response.
    pub const fn new(status: u16) -> Self {
        Self { status, reason: "", headers: &[], body: None }
    }
    /// With these headers.
    pub const fn headers(self, headers: &'a [Header<'a>]) -> Self {
        Self { headers, ..self }
    }
    /// With this body.
    pub const fn body(self, body: Body<'a>) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// A request that starts something: an INVITE with its dialog, or a request outside dialogs.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Method; ignored by [`Stack::invite`](super::Stack::invite).
    pub method: Method<'a>,
    /// Request-URI.
    pub target: &'a str,
    /// From: name-addr or URI in angle brackets, without tag.
    pub from: &'a str,
    /// To: name-addr or URI in angle brackets, without tag.
    pub to: &'a str,
    /// Our Contact value, in angle brackets; required for INVITE.
    pub contact: Option<&'a str>,
    /// Route values, first hop first.
    pub routes: &'a [&'a str],
    /// Further headers.
    pub headers: &'a [Header<'a>],
    /// Body.
    pub body: Option<Body<'a>>,
    /// Where the request leaves to; the driver has resolved it.
    pub flow: Flow,
    /// Call-ID and CSeq number to use, for a series such as REGISTER (RFC 3261 §10.2); fresh ones when `None`.
    pub series: Option<(&'a str, u32)>,
    /// Requests in the dialog go to the address the peer's messages come from, whatever its Contact says
    /// (`rewrite_contact`).
    pub symmetric: bool,
}

/// Another server that a request may go to when the one before it fails (RFC 3263 §4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Where it is.
    pub flow: Flow,
    /// Our Contact value there, in angle brackets; that of the request when `None`.
    pub contact: Option<String>,
}

/// How the stack behaves as the called side of one INVITE.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accept<'a> {
    /// Our Contact value, in angle brackets.
    pub contact: &'a str,
    /// As in [`Outgoing::symmetric`].
    pub symmetric: bool,
    /// Nothing shows that the caller is where the INVITE says to come from: a dialog that it never acknowledges ends
    /// without a word to its Contact.
    pub unproved: bool,
}
