//! Codecs in another process: the words spoken with it, and a stream's end of the line.
//!
//! A codec that cannot be linked runs as a program of its own and codes frames for any number of streams. A media
//! worker never waits for it: it puts a frame into its [`Port`] and takes out what has come back, which is the answer to
//! a frame before. This room knows bytes and rings; the process, its pipes and its death are `io::external`.
//! `docs/codecs.md`, "Codecs in another process", is the protocol for those who write such a program.

mod line;
mod port;
mod wire;

pub use line::has_frames;
pub(crate) use line::{LineDecoder, LineEncoder, frames};
pub use port::{Bell, Desk, Direction, Faults, Geometry, Health, Port, Refused, port};
pub use wire::{BODY_BYTES_MAX, HEAD_BYTES, Kind, Malformed, Message, VERSION};

/// Where lines to a codec's process are opened. Must not block: a worker opens one when a route is planned.
pub trait External: Send + Sync + core::fmt::Debug {
    /// A line for one direction of a stream, in frames of the format's granule; `None` when there can be no more.
    fn open(&self, direction: Direction) -> Option<Port>;
}
