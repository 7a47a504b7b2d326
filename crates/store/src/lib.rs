//! What outlives a call: typed configuration, and what is written down.
//!
//! This room may block, open files and start threads, so nothing here runs on the signalling shard except the cheap
//! front ends: a configuration [`config`] value is read as plain fields, and sinks take a message over a bounded channel.
//! It knows no protocol and does not know what a dialplan means.
#![forbid(unsafe_code)]

pub mod astdb;
pub mod cdr;
pub mod config;
pub mod date;
mod defaults;
pub mod editable;
mod folder;
pub mod journal;
pub mod log;
mod patience;
mod snapshot;
pub mod sounds;
pub mod spool;
pub mod voicemail;

pub use defaults::{Defaults, PHONES};
pub use folder::Folder;
pub use snapshot::{CORE_FILES, Examined, Kept, Snapshot, Where, examine, is_core_file};
