//! Header names: a closed table with compact forms, and [`HeaderName::Other`] for the rest.

/// Slots of the look-up table; a power of two, more than twice the names so that probes stay short.
const BUCKETS: usize = 256;
/// Marks a name outside the table.
pub(crate) const OTHER: u8 = u8::MAX;

macro_rules! headers {
    ($($variant:ident $name:literal $compact:literal;)*) => {
        /// The name of a header field; compared without regard to case (RFC 3261 §7.3.1).
        #[derive(Debug, Clone, Copy)]
        pub enum HeaderName<'a> {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other name, as it was written.
            Other(&'a [u8]),
        }

        #[repr(u8)]
        enum Place { $($variant,)* }

        struct Row { name: &'static str, compact: &'static str, variant: HeaderName<'static> }

        const TABLE: &[Row] = &[$(Row { name: $name, compact: $compact, variant: HeaderName::$variant },)*];

        impl<'a> HeaderName<'a> {
            /// The row in the table, [`OTHER`] for a name outside it.
            pub(crate) const fn id(self) -> u8 {
                match self {
                    $(Self::$variant => Place::$variant as u8,)*
                    Self::Other(_) => OTHER,
                }
            }
            /// The name with its colon and blank, for a name in the table.
            pub(crate) const fn prefix(self) -> Option<&'static [u8]> {
                match self {
                    $(Self::$variant => Some(concat!($name, ": ").as_bytes()),)*
                    Self::Other(_) => None,
                }
            }
            /// The name as it goes on the wire, long form.
            pub const fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(Self::$variant => $name.as_bytes(),)*
                    Self::Other(name) => name,
                }
            }
        }
    };
}

headers! {
    Via "Via" "v";
    From "From" "f";
    To "To" "t";
    CallId "Call-ID" "i";
    CSeq "CSeq" "";
    MaxForwards "Max-Forwards" "";
    Contact "Contact" "m";
    ContentLength "Content-Length" "l";
    ContentType "Content-Type" "c";
    Route "Route" "";
    RecordRoute "Record-Route" "";
    Allow "Allow" "";
    Supported "Supported" "k";
    Require "Require" "";
    UserAgent "User-Agent" "";
    Authorization "Authorization" "";
    ProxyAuthorization "Proxy-Authorization" "";
    WwwAuthenticate "WWW-Authenticate" "";
    ProxyAuthenticate "Proxy-Authenticate" "";
    AuthenticationInfo "Authentication-Info" "";
    Expires "Expires" "";
    MinExpires "Min-Expires" "";
    Accept "Accept" "";
    AcceptContact "Accept-Contact" "a";
    AcceptEncoding "Accept-Encoding" "";
    AcceptLanguage "Accept-Language" "";
    AlertInfo "Alert-Info" "";
    AllowEvents "Allow-Events" "u";
    CallInfo "Call-Info" "";
    ContentDisposition "Content-Disposition" "";
    ContentEncoding "Content-Encoding" "e";
    ContentLanguage "Content-Language" "";
    Date "Date" "";
    Diversion "Diversion" "";
    ErrorInfo "Error-Info" "";
    Event "Event" "o";
    HistoryInfo "History-Info" "";
    Identity "Identity" "y";
    InReplyTo "In-Reply-To" "";
    InfoPackage "Info-Package" "";
    Join "Join" "";
    MimeVersion "MIME-Version" "";
    MinSe "Min-SE" "";
    Organization "Organization" "";
    PAssertedIdentity "P-Asserted-Identity" "";
    PCalledPartyId "P-Called-Party-ID" "";
    PEarlyMedia "P-Early-Media" "";
    PPreferredIdentity "P-Preferred-Identity" "";
    Path "Path" "";
    Priority "Priority" "";
    Privacy "Privacy" "";
    ProxyRequire "Proxy-Require" "";
    RAck "RAck" "";
    RSeq "RSeq" "";
    Reason "Reason" "";
    RecvInfo "Recv-Info" "";
    ReferSub "Refer-Sub" "";
    ReferTo "Refer-To" "r";
    ReferredBy "Referred-By" "b";
    RejectContact "Reject-Contact" "j";
    RemotePartyId "Remote-Party-ID" "";
    Replaces "Replaces" "";
    ReplyTo "Reply-To" "";
    RequestDisposition "Request-Disposition" "d";
    RetryAfter "Retry-After" "";
    Server "Server" "";
    ServiceRoute "Service-Route" "";
    SessionExpires "Session-Expires" "x";
    SipEtag "SIP-ETag" "";
    SipIfMatch "SIP-If-Match" "";
    Subject "Subject" "s";
    SubscriptionState "Subscription-State" "";
    TargetDialog "Target-Dialog" "";
    Timestamp "Timestamp" "";
    Unsupported "Unsupported" "";
    Warning "Warning" "";
}

impl<'a> HeaderName<'a> {
    /// The name these bytes spell, long or compact, any case.
    pub fn from_bytes(name: &'a [u8]) -> Self {
        find(name).and_then(|id| Self::from_id(id, name)).unwrap_or(Self::Other(name))
    }
    /// Its compact form, if it has one.
    pub(crate) fn compact(self) -> Option<&'static str> {
        TABLE.get(usize::from(self.id())).map(|row| row.compact).filter(|letter| !letter.is_empty())
    }
    /// The variant of row `id`; `written` when the row is [`OTHER`].
    pub(crate) fn from_id(id: u8, written: &'a [u8]) -> Option<Self> {
        if id == OTHER {
            return Some(Self::Other(written));
        }
        TABLE.get(usize::from(id)).map(|row| row.variant)
    }
}

impl PartialEq for HeaderName<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (HeaderName::Other(a), HeaderName::Other(b)) => a.eq_ignore_ascii_case(b),
            _ => self.id() == other.id(),
        }
    }
}
impl Eq for HeaderName<'_> {}

impl core::fmt::Display for HeaderName<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// The row of `name`, if the table has it.
pub(crate) fn find(name: &[u8]) -> Option<u8> {
    if let [letter] = name {
        let id = *COMPACT.get(usize::from(letter.to_ascii_lowercase()))?;
        return (id != OTHER).then_some(id);
    }
    let mut bucket = hash(name);
    loop {
        let id = *LONG.get(bucket)?;
        let row = TABLE.get(usize::from(id))?; // an empty bucket holds OTHER, which no row has
        // Most senders spell names as the RFC does, and equality is cheaper to find.
        if row.name.as_bytes() == name || row.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(id);
        }
        bucket = (bucket + 1) % BUCKETS;
    }
}

const fn hash(name: &[u8]) -> usize {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return 0 };
    let mix = name.len() * 37 + (first | 0x20) as usize * 11 + (last | 0x20) as usize * 29;
    mix % BUCKETS
}

static LONG: [u8; BUCKETS] = {
    let mut buckets = [OTHER; BUCKETS];
    let mut id = 0;
    while id < TABLE.len() {
        let mut bucket = hash(TABLE[id].name.as_bytes());
        while buckets[bucket] != OTHER {
            bucket = (bucket + 1) % BUCKETS;
        }
        buckets[bucket] = id as u8;
        id += 1;
    }
    buckets
};

static COMPACT: [u8; 128] = {
    let mut letters = [OTHER; 128];
    let mut id = 0;
    while id < TABLE.len() {
        if let [letter] = TABLE[id].compact.as_bytes() {
            letters[*letter as usize] = id as u8;
        }
        id += 1;
    }
    letters
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_long_and_compact_form_and_any_case() {
        for (id, row) in TABLE.iter().enumerate() {
            assert_eq!(usize::from(row.variant.id()), id, "{}", row.name);
            for spelled in [row.name.to_owned(), row.name.to_uppercase(), row.name.to_lowercase()] {
                assert_eq!(HeaderName::from_bytes(spelled.as_bytes()), row.variant, "{spelled}");
            }
            if !row.compact.is_empty() {
                assert_eq!(HeaderName::from_bytes(row.compact.to_uppercase().as_bytes()), row.variant);
            }
        }
        assert_eq!(HeaderName::from_bytes(b"x-foo"), HeaderName::Other(b"X-FOO"));
        assert_eq!(HeaderName::from_bytes(b""), HeaderName::Other(b""));
        assert_eq!(HeaderName::from_bytes(b"\xff"), HeaderName::Other(b"\xff"));
        assert_ne!(HeaderName::Other(b"Via"), HeaderName::Via, "Other is for names outside the table");
    }
}
