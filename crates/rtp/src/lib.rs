//! RTP and RTCP as machines and views: packets in, decisions out (RFC 3550, RFC 3551, RFC 4733, RFC 5761).
//!
//! One file a topic. Everything that arrives is hostile: a fault on the packet path is a counted [`Discard`], never
//! an error with text. This room knows no socket, no clock (time comes in as [`base::Instant`]) and no codec.
#![forbid(unsafe_code)]

mod discard;
mod events;
mod header;
mod jitter;
mod latch;
mod outgoing;
mod reception;
pub mod rtcp;
mod udptl;

pub use discard::{Discard, DiscardCounts};
pub use events::{EVENT_MAX, EventEdge, EventPacket, EventPayload, EventPlace, EventReceiver, EventSender};
pub use header::{HEADER_BYTES, Header, is_rtcp, parse, write};
pub use jitter::{Grid, Jitter, JitterCounts, JitterLimits, LENGTH_BYTES, Pulled};
pub use latch::{SourceLock, Verdict};
pub use outgoing::{Offsets, Outgoing, Stamp};
pub use reception::{Arrived, MAX_DROPOUT, Reception, smooth};
pub use udptl::{IFP_BYTES_MAX, Piece, UDPTL_BYTES_MAX, UdptlReceiver, UdptlSender};
