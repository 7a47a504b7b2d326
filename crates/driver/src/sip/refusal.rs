//! `PJSIPHangup()`: the final response that refuses a call, as the dialplan or a manager chooses it.

use ::sip::Status;
use base::ChannelId;
use call::Core;

use super::SipDriver;
use super::leg::Stage;

/// What is told for a response that nobody knows.
const DECLINE: u16 = 603;

/// Responses by the names that the field gives them, without `PJSIP_SC_`.
const NAMED: &[(&str, u16)] = &[
    ("BAD_REQUEST", 400),
    ("UNAUTHORIZED", 401),
    ("PAYMENT_REQUIRED", 402),
    ("FORBIDDEN", 403),
    ("NOT_FOUND", 404),
    ("METHOD_NOT_ALLOWED", 405),
    ("NOT_ACCEPTABLE", 406),
    ("PROXY_AUTHENTICATION_REQUIRED", 407),
    ("REQUEST_TIMEOUT", 408),
    ("CONFLICT", 409),
    ("GONE", 410),
    ("LENGTH_REQUIRED", 411),
    ("CONDITIONAL_REQUEST_FAILED", 412),
    ("REQUEST_ENTITY_TOO_LARGE", 413),
    ("REQUEST_URI_TOO_LONG", 414),
    ("UNSUPPORTED_MEDIA_TYPE", 415),
    ("UNSUPPORTED_URI_SCHEME", 416),
    ("UNKNOWN_RESOURCE_PRIORITY", 417),
    ("BAD_EXTENSION", 420),
    ("EXTENSION_REQUIRED", 421),
    ("SESSION_TIMER_TOO_SMALL", 422),
    ("INTERVAL_TOO_BRIEF", 423),
    ("BAD_LOCATION_INFORMATION", 424),
    ("USE_IDENTITY_HEADER", 428),
    ("PROVIDE_REFERRER_HEADER", 429),
    ("FLOW_FAILED", 430),
    ("ANONIMITY_DISALLOWED", 433),
    ("ANONYMITY_DISALLOWED", 433),
    ("BAD_IDENTITY_INFO", 436),
    ("UNSUPPORTED_CERTIFICATE", 437),
    ("INVALID_IDENTITY_HEADER", 438),
    ("FIRST_HOP_LACKS_OUTBOUND_SUPPORT", 439),
    ("MAX_BREADTH_EXCEEDED", 440),
    ("BAD_INFO_PACKAGE", 469),
    ("CONSENT_NEEDED", 470),
    ("TEMPORARILY_UNAVAILABLE", 480),
    ("CALL_TSX_DOES_NOT_EXIST", 481),
    ("LOOP_DETECTED", 482),
    ("TOO_MANY_HOPS", 483),
    ("ADDRESS_INCOMPLETE", 484),
    ("AMBIGUOUS", 485),
    ("BUSY_HERE", 486),
    ("REQUEST_TERMINATED", 487),
    ("NOT_ACCEPTABLE_HERE", 488),
    ("BAD_EVENT", 489),
    ("REQUEST_UPDATED", 490),
    ("REQUEST_PENDING", 491),
    ("UNDECIPHERABLE", 493),
    ("SECURITY_AGREEMENT_NEEDED", 494),
    ("INTERNAL_SERVER_ERROR", 500),
    ("NOT_IMPLEMENTED", 501),
    ("BAD_GATEWAY", 502),
    ("SERVICE_UNAVAILABLE", 503),
    ("SERVER_TIMEOUT", 504),
    ("VERSION_NOT_SUPPORTED", 505),
    ("MESSAGE_TOO_LARGE", 513),
    ("PUSH_NOTIFICATION_SERVICE_NOT_SUPPORTED", 555),
    ("PRECONDITION_FAILURE", 580),
    ("BUSY_EVERYWHERE", 600),
    ("DECLINE", 603),
    ("DOES_NOT_EXIST_ANYWHERE", 604),
    ("NOT_ACCEPTABLE_ANYWHERE", 606),
    ("UNWANTED", 607),
    ("REJECTED", 608),
];

/// The final response that a number from 400 to 699 or a name means; any other text is a decline.
fn response_of(text: &str) -> u16 {
    let text = text.trim();
    let bare = text.get(..9).filter(|prefix| prefix.eq_ignore_ascii_case("PJSIP_SC_"));
    let name = bare.and_then(|prefix| text.get(prefix.len()..)).unwrap_or(text);
    let by_number = text.parse().ok().filter(|code| (400..700).contains(code));
    let by_name = || NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, code)| *code);
    by_number.or_else(by_name).unwrap_or(DECLINE)
}

impl SipDriver {
    /// A call that has come and is not answered will be refused with this response when it is hung up; `false`: it is up,
    /// or none of those.
    pub(super) fn refuse_with(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool {
        let waits = |leg: &&mut super::Leg| leg.stage == Stage::Ringing;
        let Some(leg) = self.leg_of(channel, core).filter(waits) else { return false };
        let code = response_of(text);
        leg.refusal = Status::new(code).map(Status::code);
        if let Some(entry) = core.get_mut(channel) {
            entry.tech_cause = Some(code);
        }
        true
    }
    /// The response that was chosen for a call.
    pub(super) fn chosen_refusal(&mut self, core: &Core, channel: ChannelId) -> Option<String> {
        self.leg_of(channel, core)?.refusal.map(|code| code.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_chosen_by_number_or_by_the_name_that_the_field_gives_it() {
        for (text, code) in [
            ("437", 437),
            (" 486 ", 486),
            ("UNSUPPORTED_CERTIFICATE", 437),
            ("pjsip_sc_busy_here", 486),
            ("PJSIP_SC_USE_IDENTITY_HEADER", 428),
            ("Unwanted", 607),
            ("999", 603),
            ("200", 603),
            ("399", 603),
            ("700", 603),
            ("nonsense", 603),
            ("PJSIP_SC_", 603),
            ("", 603),
        ] {
            assert_eq!(response_of(text), code, "{text:?}");
        }
    }
}
