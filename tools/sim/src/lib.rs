//! A whole world on invented time for tests: one shard of calls, phones that follow a script, media that plays by the
//! clock, prompts that exist when asked for, a database in memory and a log that is kept.
//!
//! Nothing here reads a clock or a random number; a run repeats exactly.
#![forbid(unsafe_code)]

mod fakes;
mod mail;
mod phones;
mod scripts;
mod world;

pub use fakes::{CLIP_DEFAULT, MEDIA_BYTES_PER_MS, WALL_START};
pub use mail::MailStore;
pub use phones::{Act, Phone};
pub use scripts::Script;
pub use world::{World, parse_dialplan};
