//! The words every other room speaks: time, identifiers, causes, digits, formats,
//! and the two enums through which the signalling plane and the media plane talk.
//!
//! This room knows no protocol, no socket, no thread and no clock. It allocates nothing on its own.
#![forbid(unsafe_code)]

mod audio;
mod cause;
mod digit;
pub mod dns;
mod format;
mod id;
mod media;
mod network;
mod room;
mod srtp;
mod time;

pub use audio::{SampleRate, Samples, Tick};
pub use cause::Cause;
pub use digit::Digit;
pub use format::{Codec, Coded, Coding, FormatId, FormatSet, Granule, VARIABLE_BYTES_MAX, Wishes};
pub use id::{BridgeId, ChannelId, PlayId, RoomId, StreamId};
pub use media::{
    AudioSink, Clip, Command, Direction, DtmfMode, Event, Fault, Fax, Latch, MAX_RX_PAYLOADS, Marking,
    Packets, Plan, PlayEnd, RxPayload, StreamStats, UdptlProtection,
};
pub use network::in_network;
pub use room::{Gain, MemberSettings, MonitorSettings, MonitorSinks, RoomSettings};
pub use srtp::{SRTP_SECRET_BYTES_MAX, SrtpKeys, SrtpSecret, SrtpSuite};
pub use time::Instant;
