//! Status codes and their phrases.

/// A status code, 100 to 699.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($code:literal $name:ident $phrase:literal;)*) => {
        impl Status {
            $(#[doc = $phrase] pub const $name: Self = Self($code);)*

            /// The phrase that RFC 3261 and its successors give this code; that of its class for an unknown one.
            pub const fn phrase(self) -> &'static str {
                match self.0 {
                    $($code => $phrase,)*
                    100..200 => "Session Progress",
                    200..300 => "OK",
                    300..400 => "Multiple Choices",
                    400..500 => "Bad Request",
                    500..600 => "Server Internal Error",
                    _ => "Busy Everywhere",
                }
            }
        }
    };
}

statuses! {
    100 TRYING "Trying";
    180 RINGING "Ringing";
    181 CALL_IS_BEING_FORWARDED "Call Is Being Forwarded";
    182 QUEUED "Queued";
    183 SESSION_PROGRESS "Session Progress";
    199 EARLY_DIALOG_TERMINATED "Early Dialog Terminated";
    200 OK "OK";
    202 ACCEPTED "Accepted";
    204 NO_NOTIFICATION "No Notification";
    300 MULTIPLE_CHOICES "Multiple Choices";
    301 MOVED_PERMANENTLY "Moved Permanently";
    302 MOVED_TEMPORARILY "Moved Temporarily";
    305 USE_PROXY "Use Proxy";
    380 ALTERNATIVE_SERVICE "Alternative Service";
    400 BAD_REQUEST "Bad Request";
    401 UNAUTHORIZED "Unauthorized";
    402 PAYMENT_REQUIRED "Payment Required";
    403 FORBIDDEN "Forbidden";
    404 NOT_FOUND "Not Found";
    405 METHOD_NOT_ALLOWED "Method Not Allowed";
    406 NOT_ACCEPTABLE "Not Acceptable";
    407 PROXY_AUTHENTICATION_REQUIRED "Proxy Authentication Required";
    408 REQUEST_TIMEOUT "Request Timeout";
    410 GONE "Gone";
    412 CONDITIONAL_REQUEST_FAILED "Conditional Request Failed";
    413 REQUEST_ENTITY_TOO_LARGE "Request Entity Too Large";
    414 REQUEST_URI_TOO_LONG "Request-URI Too Long";
    415 UNSUPPORTED_MEDIA_TYPE "Unsupported Media Type";
    416 UNSUPPORTED_URI_SCHEME "Unsupported URI Scheme";
    420 BAD_EXTENSION "Bad Extension";
    421 EXTENSION_REQUIRED "Extension Required";
    422 SESSION_INTERVAL_TOO_SMALL "Session Interval Too Small";
    423 INTERVAL_TOO_BRIEF "Interval Too Brief";
    428 USE_IDENTITY_HEADER "Use Identity Header";
    429 PROVIDE_REFERRER_IDENTITY "Provide Referrer Identity";
    430 FLOW_FAILED "Flow Failed";
    433 ANONYMITY_DISALLOWED "Anonymity Disallowed";
    436 BAD_IDENTITY_INFO "Bad Identity Info";
    437 UNSUPPORTED_CREDENTIAL "Unsupported Certificate";
    438 INVALID_IDENTITY_HEADER "Invalid Identity Header";
    439 FIRST_HOP_LACKS_OUTBOUND_SUPPORT "First Hop Lacks Outbound Support";
    469 BAD_INFO_PACKAGE "Bad Info Package";
    480 TEMPORARILY_UNAVAILABLE "Temporarily Unavailable";
    481 CALL_DOES_NOT_EXIST "Call/Transaction Does Not Exist";
    482 LOOP_DETECTED "Loop Detected";
    483 TOO_MANY_HOPS "Too Many Hops";
    484 ADDRESS_INCOMPLETE "Address Incomplete";
    485 AMBIGUOUS "Ambiguous";
    486 BUSY_HERE "Busy Here";
    487 REQUEST_TERMINATED "Request Terminated";
    488 NOT_ACCEPTABLE_HERE "Not Acceptable Here";
    489 BAD_EVENT "Bad Event";
    491 REQUEST_PENDING "Request Pending";
    493 UNDECIPHERABLE "Undecipherable";
    494 SECURITY_AGREEMENT_REQUIRED "Security Agreement Required";
    500 SERVER_INTERNAL_ERROR "Server Internal Error";
    501 NOT_IMPLEMENTED "Not Implemented";
    502 BAD_GATEWAY "Bad Gateway";
    503 SERVICE_UNAVAILABLE "Service Unavailable";
    504 SERVER_TIMEOUT "Server Time-out";
    505 VERSION_NOT_SUPPORTED "Version Not Supported";
    513 MESSAGE_TOO_LARGE "Message Too Large";
    580 PRECONDITION_FAILURE "Precondition Failure";
    600 BUSY_EVERYWHERE "Busy Everywhere";
    603 DECLINE "Decline";
    604 DOES_NOT_EXIST_ANYWHERE "Does Not Exist Anywhere";
    606 NOT_ACCEPTABLE_ANYWHERE "Not Acceptable";
    607 UNWANTED "Unwanted";
    608 REJECTED "Rejected";
}

impl Status {
    /// The status with this code; `None` outside 100 to 699.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            100..700 => Some(Self(code)),
            _ => None,
        }
    }
    /// The code.
    pub const fn code(self) -> u16 {
        self.0
    }
    /// Its first digit, 1 to 6.
    pub const fn class(self) -> u8 {
        (self.0 / 100) as u8
    }
    /// Whether it is 1xx.
    pub const fn is_provisional(self) -> bool {
        self.0 < 200
    }
    /// Whether it is 2xx to 6xx.
    pub const fn is_final(self) -> bool {
        self.0 >= 200
    }
    /// Whether it is 2xx.
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }
    /// The three digits on the wire.
    pub(crate) const fn digits(self) -> [u8; 3] {
        [b'0' + self.class(), b'0' + (self.0 / 10 % 10) as u8, b'0' + (self.0 % 10) as u8]
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}", self.0, self.phrase())
    }
}
