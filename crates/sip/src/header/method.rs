//! Request methods.

macro_rules! methods {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A request method; case matters (RFC 3261 §7.1). An unknown one keeps its token, so that 405 and 501 are possible.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Method<'a> {
            $(#[doc = $doc] $variant,)*
            /// Any other method, as it was written.
            Other(&'a [u8]),
        }

        impl<'a> Method<'a> {
            /// Every method with a variant.
            pub const KNOWN: &'static [Method<'static>] = &[$(Method::$variant,)*];

            /// The method these bytes spell.
            pub fn from_bytes(token: &'a [u8]) -> Self {
                $(if token == $name.as_bytes() { return Self::$variant; })*
                Self::Other(token)
            }
            /// The method as it goes on the wire.
            pub const fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(Self::$variant => $name.as_bytes(),)*
                    Self::Other(token) => token,
                }
            }
            /// The same method without a borrow; `None` for one outside the table.
            pub const fn known(self) -> Option<Method<'static>> {
                match self {
                    $(Self::$variant => Some(Method::$variant),)*
                    Self::Other(_) => None,
                }
            }
        }
    };
}

methods! {
    Invite "INVITE" "RFC 3261";
    Ack "ACK" "RFC 3261";
    Bye "BYE" "RFC 3261";
    Cancel "CANCEL" "RFC 3261";
    Register "REGISTER" "RFC 3261";
    Options "OPTIONS" "RFC 3261";
    Prack "PRACK" "RFC 3262";
    Subscribe "SUBSCRIBE" "RFC 6665";
    Notify "NOTIFY" "RFC 6665";
    Publish "PUBLISH" "RFC 3903";
    Info "INFO" "RFC 6086";
    Refer "REFER" "RFC 3515";
    Message "MESSAGE" "RFC 3428";
    Update "UPDATE" "RFC 3311";
}

impl core::fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}
