//! Why a call ended: ITU-T Q.850 cause values, their names and their SIP counterparts.

/// A Q.850 cause value, 0 to 127; 0 means that none was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cause(pub u8);

struct Row {
    value: u8,
    name: &'static str,
    text: &'static str,
    sip: u16,
}

macro_rules! causes {
    ($($value:literal $name:ident $sip:literal $text:literal;)*) => {
        impl Cause {
            $(#[doc = $text] pub const $name: Self = Self($value);)*
        }
        /// One row a cause: Q.850 value, name in manager and dialplan, SIP status that carries it (RFC 3398 §8.2.6.1 where it speaks).
        const CAUSES: &[Row] = &[$(Row { value: $value, name: stringify!($name), text: $text, sip: $sip },)*];
    };
}

causes! {
    1 UNALLOCATED 404 "Unallocated (unassigned) number";
    2 NO_ROUTE_TRANSIT_NET 404 "No route to specified transmit network";
    3 NO_ROUTE_DESTINATION 404 "No route to destination";
    6 CHANNEL_UNACCEPTABLE 500 "Channel unacceptable";
    7 CALL_AWARDED_DELIVERED 500 "Call awarded and being delivered in an established channel";
    16 NORMAL_CLEARING 480 "Normal Clearing";
    17 USER_BUSY 486 "User busy";
    18 NO_USER_RESPONSE 408 "No user responding";
    19 NO_ANSWER 480 "User alerting, no answer";
    20 SUBSCRIBER_ABSENT 480 "Subscriber absent";
    21 CALL_REJECTED 403 "Call Rejected";
    22 NUMBER_CHANGED 410 "Number changed";
    23 REDIRECTED 410 "Redirected to new destination";
    26 ANSWERED_ELSEWHERE 487 "Answered elsewhere";
    27 DESTINATION_OUT_OF_ORDER 502 "Destination out of order";
    28 INVALID_NUMBER_FORMAT 484 "Invalid number format";
    29 FACILITY_REJECTED 501 "Facility rejected";
    30 RESPONSE_TO_STATUS_ENQUIRY 500 "Response to STATus ENQuiry";
    31 NORMAL_UNSPECIFIED 480 "Normal, unspecified";
    34 NORMAL_CIRCUIT_CONGESTION 503 "Circuit/channel congestion";
    38 NETWORK_OUT_OF_ORDER 500 "Network out of order";
    41 NORMAL_TEMPORARY_FAILURE 500 "Temporary failure";
    42 SWITCH_CONGESTION 503 "Switching equipment congestion";
    43 ACCESS_INFO_DISCARDED 500 "Access information discarded";
    44 REQUESTED_CHAN_UNAVAIL 503 "Requested channel not available";
    50 FACILITY_NOT_SUBSCRIBED 500 "Facility not subscribed";
    52 OUTGOING_CALL_BARRED 403 "Outgoing call barred";
    54 INCOMING_CALL_BARRED 403 "Incoming call barred";
    57 BEARERCAPABILITY_NOTAUTH 403 "Bearer capability not authorized";
    58 BEARERCAPABILITY_NOTAVAIL 488 "Bearer capability not available";
    65 BEARERCAPABILITY_NOTIMPL 488 "Bearer capability not implemented";
    66 CHAN_NOT_IMPLEMENTED 500 "Channel not implemented";
    69 FACILITY_NOT_IMPLEMENTED 501 "Facility not implemented";
    81 INVALID_CALL_REFERENCE 500 "Invalid call reference value";
    88 INCOMPATIBLE_DESTINATION 488 "Incompatible destination";
    95 INVALID_MSG_UNSPECIFIED 500 "Invalid message unspecified";
    96 MANDATORY_IE_MISSING 500 "Mandatory information element is missing";
    97 MESSAGE_TYPE_NONEXIST 500 "Message type nonexist.";
    98 WRONG_MESSAGE 500 "Wrong message";
    99 IE_NONEXIST 500 "Info. element nonexist or not implemented";
    100 INVALID_IE_CONTENTS 500 "Invalid information element contents";
    101 WRONG_CALL_STATE 500 "Message not compatible with call state";
    102 RECOVERY_ON_TIMER_EXPIRE 504 "Recover on timer expiry";
    103 MANDATORY_IE_LENGTH_ERROR 500 "Mandatory IE length error";
    111 PROTOCOL_ERROR 500 "Protocol error, unspecified";
    127 INTERWORKING 500 "Interworking, unspecified";
}

impl Cause {
    /// No cause was given.
    pub const NONE: Self = Self(0);

    fn row(self) -> Option<&'static Row> {
        CAUSES.iter().find(|row| row.value == self.0)
    }
    /// The name dialplans may use instead of the number (`USER_BUSY`); `None` for a value without one.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.name)
    }
    /// The sentence that manager clients see as `Cause-txt`.
    pub fn text(self) -> &'static str {
        self.row().map_or("Unknown", |row| row.text)
    }
    /// The SIP status that refuses an INVITE with this cause; 603 for a cause outside the table.
    pub fn to_sip(self) -> u16 {
        self.row().map_or(603, |row| row.sip)
    }
    /// Parses a number (`17`) or a name (`USER_BUSY`, `AST_CAUSE_USER_BUSY`, `busy`), any case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(value) = text.parse::<u8>() {
            return (value <= 127).then_some(Self(value));
        }
        let name = text.to_ascii_uppercase();
        let name = name.strip_prefix("AST_CAUSE_").unwrap_or(&name);
        match name {
            "BUSY" => return Some(Self::USER_BUSY),
            "NORMAL" => return Some(Self::NORMAL_CLEARING),
            "CONGESTION" => return Some(Self::NORMAL_CIRCUIT_CONGESTION),
            "NOTDEFINED" => return Some(Self::NONE),
            _ => {}
        }
        CAUSES.iter().find(|row| row.name == name).map(|row| Self(row.value))
    }
    /// The cause for a final SIP status of an outgoing call (RFC 3398 §7.2.4.1 and the field's practice).
    pub fn from_sip(status: u16) -> Self {
        match status {
            200..300 => Self::NORMAL_CLEARING,
            401 | 402 | 403 | 407 | 603 => Self::CALL_REJECTED,
            404 => Self::UNALLOCATED,
            406 | 415 | 488 | 606 => Self::BEARERCAPABILITY_NOTAVAIL,
            408 => Self::NO_USER_RESPONSE,
            409 => Self::NORMAL_TEMPORARY_FAILURE,
            410 => Self::NUMBER_CHANGED,
            420 => Self::NO_ROUTE_DESTINATION,
            480 | 483 => Self::NO_ANSWER,
            484 => Self::INVALID_NUMBER_FORMAT,
            485 | 604 => Self::UNALLOCATED,
            486 | 600 => Self::USER_BUSY,
            487 => Self::NORMAL_CLEARING,
            500 => Self::NETWORK_OUT_OF_ORDER,
            501 => Self::FACILITY_REJECTED,
            502 => Self::DESTINATION_OUT_OF_ORDER,
            503 => Self::NORMAL_CIRCUIT_CONGESTION,
            504 => Self::RECOVERY_ON_TIMER_EXPIRE,
            _ if matches!(status, 505 | 400..500 | 600..700) => Self::INTERWORKING,
            _ if matches!(status, 500..600) => Self::NETWORK_OUT_OF_ORDER,
            _ => Self::NORMAL_UNSPECIFIED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_parse_by_number_by_name_and_by_prefix() {
        for (text, expected) in [
            ("17", Some(Cause::USER_BUSY)),
            ("user_busy", Some(Cause::USER_BUSY)),
            ("AST_CAUSE_NO_ANSWER", Some(Cause::NO_ANSWER)),
            (" 16 ", Some(Cause::NORMAL_CLEARING)),
            ("128", None),
            ("nonsense", None),
        ] {
            assert_eq!(Cause::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn rfc3398_busy_survives_the_way_to_sip_and_back() {
        for cause in [Cause::USER_BUSY, Cause::UNALLOCATED, Cause::NUMBER_CHANGED, Cause::CALL_REJECTED] {
            assert_eq!(Cause::from_sip(cause.to_sip()), cause, "{}", cause.text());
        }
    }
}
