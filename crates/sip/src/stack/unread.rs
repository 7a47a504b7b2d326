//! Messages that cannot be read: what is told of them, and responses to requests of ours among them.
//!
//! A final response ends its transaction whatever is wrong with it (RFC 3261 §8.1.3), or the one who answered would wait
//! for an ACK, and the one who asked for an answer. What stands in its place has the same status, but for a 2xx, whose
//! promise cannot be used: it counts as 500. The 2xx to an INVITE has made a session that the other side knows of; it is
//! acknowledged and ended. A 2xx to a re-INVITE loses its bad header only.

use super::call::Phase;
use super::{Event, Failure, Flow, Output, Stack};
use crate::header::{HeaderName, Method, NameAddr};
use crate::layer::build::{self, Written};
use crate::layer::{Branch, Place};
use crate::message::{Message, OwnedMessage, Status};
use base::Instant;

/// Most bytes of a header that is told of; whoever looks for the fault sees the beginning.
const SHOWN_BYTES_MAX: usize = 160;

impl Stack {
    /// Tells of a message that cannot be read: what it is, and why. `why` begins with the name of the header, if it is one.
    pub(super) fn tell_unread(message: &Message<'_>, why: &str, source: Flow, out: &mut Vec<Output>) {
        let kind = match message.status() {
            Some(status) => {
                let method = message.cseq().map(|cseq| cseq.method.as_bytes().escape_ascii().to_string());
                format!("{} to {}", status.code(), method.as_deref().unwrap_or("a request"))
            }
            None => clipped(message.method().as_bytes()),
        };
        let name = why.split(' ').next().unwrap_or_default();
        let value = message.header(HeaderName::from_bytes(name.as_bytes()));
        let value = value.map(|value| format!(": {name}: {}", clipped(value))).unwrap_or_default();
        let what = format!("{kind} cannot be read: {why}{value}");
        out.push(Output::Event(Event::Malformed { source, what }));
    }

    /// A response that cannot be read. A final one to a request of ours is taken as what it still says.
    pub(super) fn receive_unread(
        &mut self,
        message: &Message<'_>,
        source: Flow,
        now: Instant,
        out: &mut Vec<Output>,
    ) {
        let Some(status) = message.status().filter(|status| status.is_final()) else { return };
        let branch = message.top_via().and_then(|via| via.branch());
        let Some((branch, (place, invite))) = branch
            .and_then(|text| Some((text, Branch::parse(text)?)))
            .and_then(|(text, branch)| Some((text, self.layer.client_of(branch)?)))
        else {
            return;
        };
        let is_cancel = message.cseq().is_some_and(|cseq| cseq.method == Method::Cancel);
        if message.values(HeaderName::Via).nth(1).is_some() || is_cancel {
            return;
        }
        let status = match (status.is_success(), invite) {
            (true, false) => Status::SERVER_INTERNAL_ERROR,
            _ => status,
        };
        let Some(stand_in) = self.stand_in(message, status, (branch, place)) else { return };
        let dialog = self.layer.owner(place).and_then(|owner| owner.dialog);
        let call = dialog.and_then(|dialog| self.calls.get_mut(dialog));
        let first = call.filter(|call| status.is_success() && invite && call.phase == Phase::Calling);
        let refused = first.map(|call| call.phase = Phase::Canceling).is_some();
        let before = out.len();
        self.receive_response(&stand_in.view(), source, now, out);
        for output in out.iter_mut().skip(before) {
            if let Output::Event(Event::Failed { failure: failure @ Failure::Canceled, .. }) = output
                && refused
            {
                let status = Status::SERVER_INTERNAL_ERROR.code();
                *failure = Failure::Refused { status, message: stand_in.clone() };
            }
        }
    }

    /// What can be read of a response, filled up from the request that it answers.
    fn stand_in(
        &self,
        message: &Message<'_>,
        status: Status,
        (branch, place): (&[u8], Place),
    ) -> Option<OwnedMessage> {
        let request = self.layer.request_bytes(place).map(|(bytes, ..)| bytes);
        let request = request.as_deref().map(Written::new);
        let asked = |name: &str| request.as_ref().and_then(|request| request.value(name));
        let mut bytes = format!("SIP/2.0 {} {}\r\n", status.code(), status.phrase()).into_bytes();
        build::header(&mut bytes, "Via", &[b"SIP/2.0/UDP invalid.invalid;branch=", branch].concat());
        for (name, header) in [("From", HeaderName::From), ("To", HeaderName::To)] {
            let is_good =
                |value: &&[u8]| NameAddr::parse(value).is_some_and(|addr| addr.params.well_formed());
            let value = message.header(header).filter(is_good).or_else(|| asked(name))?;
            build::header(&mut bytes, name, value);
        }
        let call_id = asked("Call-ID").or_else(|| message.call_id())?;
        build::header(&mut bytes, "Call-ID", call_id);
        let said = || message.header(HeaderName::CSeq).filter(|_| message.cseq().is_some());
        build::header(&mut bytes, "CSeq", asked("CSeq").or_else(said)?);
        for route in message.headers(HeaderName::RecordRoute) {
            build::header(&mut bytes, "Record-Route", route);
        }
        let content_type = message.header(HeaderName::ContentType).filter(|_| !message.body().is_empty());
        let content_type = content_type.and_then(|value| core::str::from_utf8(value).ok());
        build::finish(&mut bytes, content_type.map(|content_type| (content_type, message.body())));
        OwnedMessage::parse(bytes).ok().filter(|message| message.view().validate().is_ok())
    }
}

/// The beginning of what a stranger wrote, without control characters.
fn clipped(value: &[u8]) -> String {
    value.get(..SHOWN_BYTES_MAX).unwrap_or(value).escape_ascii().to_string()
}
