//! The words every other room speaks: time, identifiers, causes, digits, formats,
//! and the two enums through which the signalling plane and the media plane talk; and what every machine keeps its
//! state in: slabs with generations, one timer wheel of deadlines, maps under a keyed hash.
//!
//! This room knows no protocol, no socket, no thread and no clock.
#![forbid(unsafe_code)]

mod audio;
mod broadcast;
mod cause;
mod deadlines;
mod digit;
pub mod dns;
mod format;
pub mod hash;
mod id;
mod line;
mod media;
mod network;
mod page;
mod random;
mod room;
mod rows;
mod slab;
mod srtp;
mod time;
mod wheel;

pub use audio::{SampleRate, Samples, Tick};
pub use broadcast::{Broadcast, Listening};
pub use cause::Cause;
pub use deadlines::{Deadlines, Scheduled};
pub use digit::Digit;
pub use format::{Codec, Coded, Coding, FormatId, FormatSet, Granule, VARIABLE_BYTES_MAX, Wishes};
pub use id::{BridgeId, ChannelId, PlayId, RoomId, StreamId};
pub use line::{LineIn, LineOut, line};
pub use media::{
    AUDIO_SLOTS, AudioSink, AudioSource, Clip, Command, Direction, DtmfMode, Event, Fault, Fax, HoldBack,
    Latch, Listener, Loudness, MAX_RX_PAYLOADS, Marking, PIPE, Packets, PictureRequest, Plan, PlayEnd,
    ReportBlock, RtcpReport, RxPayload, SenderInfo, SoundWatch, StreamStats, ToneWatch, Tones, TrunkDigits,
    UdptlProtection, VIDEO_SLOTS,
};
pub use network::{answer_octets, datagram_overhead, in_network, source_of};
pub use page::PageWant;
pub use random::Random;
pub use room::{
    Combined, Estimates, Gain, MemberSettings, MonitorSettings, MonitorSinks, RoomSettings, RoomVideo,
};
pub use rows::{Isolation, Rows, RowsAsk, RowsWant, Transaction};
pub use slab::{Place, Slab};
pub use srtp::{SRTP_SECRET_BYTES_MAX, SrtpKeys, SrtpSecret, SrtpSuite};
pub use time::Instant;
