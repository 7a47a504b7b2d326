//! SRTP and SRTCP (RFC 3711, RFC 6188, RFC 7714): packets are sealed and opened in place, in the caller's buffer.
//!
//! [`Session`] is both directions of one stream. Nothing is allocated after it was made. A packet is authenticated
//! before anything else happens: one that is not from the holder of the key changes nothing here, neither rollover
//! counter nor replay window nor the table of sources.
//!
//! This room knows no key exchange, no addresses and no streams; which source may talk at all is for others to say.
//!
//! Files: `cipher` (AES in counter mode, Galois/counter mode), `mac` (HMAC-SHA1), `derive` (session keys), `window`
//! (replays), `sources` (rollover counters), `packet` (where a header ends), `direction` (one direction), `session`.
#![forbid(unsafe_code)]

mod cipher;
mod derive;
mod direction;
mod mac;
mod packet;
mod session;
mod sources;
mod window;

pub use session::Session;
pub use sources::SOURCES_MAX;

/// Bytes that sealing RTP adds at most.
pub const RTP_TRAILER_MAX: usize = 16;
/// Bytes that sealing RTCP adds at most: the tag, and the index with its flag.
pub const RTCP_TRAILER_MAX: usize = 16 + 4;

/// Why a packet was not sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Shorter than its header and its tag.
    TooShort,
    /// Not version 2.
    BadVersion,
    /// The buffer has no room for the tag.
    NoRoom,
    /// Not from the holder of the key, or damaged.
    BadTag,
    /// It came, or was sent, before (RFC 3711 §3.3.2).
    Replayed,
    /// Older than the window reaches back.
    TooOld,
    /// Not encrypted, as was agreed (RFC 3711 §3.4, the E flag).
    NotEncrypted,
    /// This key has sealed as many packets as it may (RFC 3711 §9.2); another is needed.
    KeyUsedUp,
}
