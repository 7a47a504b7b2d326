//! The hands of the signalling plane: sockets, clocks, wake-ups, processes.
//!
//! Everything here moves bytes and keeps bounds; nothing here knows a protocol. `unsafe` stands only in `sys`
//! and in the media back-ends' own counterparts, each block with its reason.

pub mod clock;
pub mod dns;
pub mod es256;
pub mod external;
pub mod media;
pub mod net;
pub mod probe;
pub mod process;
mod sys;
pub mod wake;
pub mod web;
