//! Whether a message can be worked with, and what to answer when not (RFC 3261 §8.1.1, §8.2, §16.3; RFC 4475).

use super::{Flaw, Message, Status};
use crate::header::lex::{Params, number};
use crate::header::{CSeq, CommaList, Contact, HeaderName, Method, NameAddr};
use crate::uri::{Scheme, Uri};

/// What to do with a message that cannot be worked with. The text goes to the log; one about a header begins with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// A request to answer with this status.
    Answer(Status, &'static str),
    /// A response, an ACK, or a request whose answer has no way back.
    Drop(&'static str),
}

/// What the answer to a request says that would make a dialog and does not say where its sender is (§8.1.1.8).
pub(crate) const MISSING_CONTACT: &str = "Missing Contact header";

/// Fields that stand once at most (RFC 3261 §7.3.1).
const SINGLE: [(HeaderName<'static>, &str); 8] = [
    (HeaderName::From, "From stands twice"),
    (HeaderName::To, "To stands twice"),
    (HeaderName::CallId, "Call-ID stands twice"),
    (HeaderName::CSeq, "CSeq stands twice"),
    (HeaderName::MaxForwards, "Max-Forwards stands twice"),
    (HeaderName::ContentType, "Content-Type stands twice"),
    (HeaderName::ContentLength, "Content-Length stands twice"),
    (HeaderName::Expires, "Expires stands twice"),
];

impl Message<'_> {
    /// Whether transaction and dialog code can rely on this message.
    ///
    /// After `Ok`, [`Message::top_via`], [`Message::from`], [`Message::to`], [`Message::call_id`] and [`Message::cseq`]
    /// are there, and so is [`Message::request_uri`] or [`Message::status`]. A missing tag, branch or Max-Forwards is
    /// what RFC 2543 phones send, and no fault. Whether method, extensions and body can be served is not asked here.
    pub fn validate(&self) -> Result<(), Invalid> {
        let result = self.check();
        match result {
            Err(Invalid::Answer(_, why)) if !self.is_request() || self.method() == Method::Ack => {
                Err(Invalid::Drop(why))
            }
            other => other,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        const fn bad(why: &'static str) -> Invalid {
            Invalid::Answer(Status::BAD_REQUEST, why)
        }
        let via = self.top_via().ok_or(Invalid::Drop("Via is missing or names no way back"))?;
        if let Some(flaw) = self.flaw() {
            return Err(bad(flaw_text(flaw)));
        }
        if !self.version().eq_ignore_ascii_case(b"SIP/2.0") {
            return Err(Invalid::Answer(Status::VERSION_NOT_SUPPORTED, "version is not SIP/2.0"));
        }
        self.check_once().map_err(bad)?;
        if self.call_id().is_none() {
            return Err(bad("Call-ID is missing"));
        }
        let cseq = self.header(HeaderName::CSeq).ok_or(bad("CSeq is missing"))?;
        let cseq = CSeq::parse(cseq).ok_or(bad("CSeq is unreadable or above 2^31 - 1"))?;
        if !via.params.well_formed() {
            return Err(bad("Via has malformed parameters"));
        }
        for (name, [missing, unreadable, malformed]) in [
            (HeaderName::From, ["From is missing", "From is no address", "From has malformed parameters"]),
            (HeaderName::To, ["To is missing", "To is no address", "To has malformed parameters"]),
        ] {
            let value = self.header(name).ok_or(bad(missing))?;
            let addr = NameAddr::parse(value).ok_or(bad(unreadable))?;
            if !addr.params.well_formed() {
                return Err(bad(malformed));
            }
        }
        self.check_contacts()?;
        if self.is_request() {
            if cseq.method != self.method() {
                return Err(bad("CSeq has another method than the request"));
            }
            self.check_request()?;
        }
        Ok(())
    }

    fn check_request(&self) -> Result<(), Invalid> {
        let bad = |why| Err(Invalid::Answer(Status::BAD_REQUEST, why));
        let foreign = |why| Err(Invalid::Answer(Status::UNSUPPORTED_URI_SCHEME, why));
        let Some(uri) = Uri::parse(self.request_uri_bytes()) else { return bad("Request-URI is unreadable") };
        if matches!(uri.scheme, Scheme::Other(scheme) if !scheme.eq_ignore_ascii_case(b"urn")) {
            return foreign("scheme of the Request-URI is not served");
        }
        let may_be_number =
            matches!(self.method(), Method::Invite | Method::Ack | Method::Bye | Method::Cancel);
        if uri.scheme == Scheme::Tel && !may_be_number {
            return foreign("only calls have a number as Request-URI");
        }
        let is_foreign =
            |addr: Option<NameAddr<'_>>| addr.is_some_and(|addr| matches!(addr.uri.scheme, Scheme::Other(_)));
        if is_foreign(self.from()) || is_foreign(self.to()) {
            return foreign("scheme of From or To is not served");
        }
        let makes_dialog = matches!(self.method(), Method::Invite | Method::Subscribe | Method::Refer);
        if makes_dialog && self.to_tag().is_none() && !self.has(HeaderName::Contact) {
            return bad(MISSING_CONTACT);
        }
        if !uri.headers.is_empty() {
            return bad("Request-URI carries headers");
        }
        if self.has(HeaderName::MaxForwards) && self.max_forwards().is_none() {
            return bad("Max-Forwards is not 0 to 255");
        }
        if let Some(expires) = self.header(HeaderName::Expires)
            && number(expires).is_none_or(|seconds| seconds > u64::from(u32::MAX))
        {
            return bad("Expires is not 0 to 2^32 - 1");
        }
        Ok(())
    }

    /// One pass that counts what may stand once.
    fn check_once(&self) -> Result<(), &'static str> {
        let mut seen = 0_u128; // one bit a row of the header table, which has fewer than 128
        for slot in self.slots() {
            let Some(bit) = 1_u128.checked_shl(u32::from(slot.id)) else { continue };
            if seen & bit != 0
                && let Some((_, twice)) = SINGLE.iter().find(|(name, _)| name.id() == slot.id)
            {
                return Err(twice);
            }
            seen |= bit;
        }
        Ok(())
    }

    /// Contacts that a request or a 2xx makes somebody's address. Elsewhere they are read one by one by whoever wants
    /// them: a contact of somebody else in the list of a registrar, or one among several of a 3xx, spoils nothing.
    fn check_contacts(&self) -> Result<(), Invalid> {
        let bad = |why| Err(Invalid::Answer(Status::BAD_REQUEST, why));
        let method = match self.status() {
            Some(status) if !status.is_success() => return Ok(()),
            Some(_) => self.cseq().map_or(Method::Other(b""), |cseq| cseq.method),
            None => self.method(),
        };
        let makes_target = matches!(
            method,
            Method::Invite | Method::Update | Method::Subscribe | Method::Refer | Method::Notify
        );
        if matches!(method, Method::Ack | Method::Bye | Method::Cancel | Method::Prack)
            || !(self.is_request() || makes_target)
        {
            return Ok(());
        }
        for value in self.headers(HeaderName::Contact) {
            for one in CommaList::new(value) {
                match Contact::parse(one) {
                    Some(Contact::Star) if method == Method::Register => {}
                    Some(Contact::Star) => return bad("Contact '*' is for REGISTER only"),
                    Some(Contact::Addr(addr)) if !contact_params_fit(addr.params) => {
                        return bad("Contact has malformed parameters");
                    }
                    Some(Contact::Addr(addr)) if self.is_request() && !addr.uri.is_sip() => {
                        let why = "scheme of Contact is not served";
                        return Err(Invalid::Answer(Status::UNSUPPORTED_URI_SCHEME, why));
                    }
                    // RFC 3261 §8.1.1.8: where the other side sends its requests.
                    Some(Contact::Addr(addr)) if makes_target && !addr.uri.can_be_sent_to() => {
                        return bad("Contact is nothing that a request can be sent to");
                    }
                    Some(Contact::Addr(_)) => {}
                    None => return bad("Contact is no address"),
                }
            }
        }
        Ok(())
    }
}

/// Contact parameters are read one by one by whoever wants them; only what would change where they end is refused.
fn contact_params_fit(params: Params<'_>) -> bool {
    params.well_formed()
}

const fn flaw_text(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::StartLine => "request line or status line is malformed",
        Flaw::HeaderLine => "a line among the headers is no header",
        Flaw::TooManyHeaders => "too many headers",
        Flaw::HeaderTooLong => "a header is too long",
        Flaw::ContentLength => "Content-Length does not fit",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn vias_that_cannot_be_read_leave_nobody_to_answer() {
        let mut index = crate::Index::new();
        let bytes = b"OPTIONS sip:a@b SIP/2.0\r\nVia: garbage\r\n\r\n";
        let message = crate::Message::parse(bytes, &mut index).unwrap();
        assert!(matches!(message.validate(), Err(super::Invalid::Drop(_))));
        assert_eq!(crate::Via::parse(b"garbage"), None);
    }
}
