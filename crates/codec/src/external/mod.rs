//! Codecs in another process: the words spoken with it, and a stream's end of the line.
//!
//! A codec that cannot be linked runs as a program of its own and codes frames for any number of streams. A media
//! worker never waits for it: it puts a frame into its [`Port`] and takes out what has come back, which is the answer to
//! a frame before. This room knows bytes and rings; the process, its pipes and its death are `io::external`.
//! `docs/codecs.md`, "Codecs in another process", is the protocol for those who write such a program.

mod port;
mod wire;

pub use port::{Bell, Desk, Direction, Faults, Geometry, IN_FLIGHT_MAX, Port, port};
pub use wire::{BODY_BYTES_MAX, HEAD_BYTES, Kind, Malformed, Message, VERSION};
