//! Drivers: each translates one protocol to and from the call core. Translation only; no socket, no clock.
#![forbid(unsafe_code)]

mod directory;
pub mod iax;
pub mod local;
pub mod sip;

pub use directory::Lookup;
