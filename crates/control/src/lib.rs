//! How people and programs steer the process: dialects over the same verbs and notices.
#![forbid(unsafe_code)]

pub mod ami;
pub mod ari;
mod base64;
pub mod cli;
pub mod cli_client;
pub mod console;
pub(crate) mod crowd;
mod crypt;
pub mod http;
pub mod iax;
pub mod metrics;
pub mod pages;
mod queues;
pub mod site;
pub mod socket;
#[cfg(test)]
mod testing;

/// What `-V` prints and `core show version` begins with: the version whose configuration and interfaces are meant, in
/// the form that scripts cut apart, then our own.
pub const VERSION: &str = concat!("Asterisk 23.4.1 (Strowger ", env!("CARGO_PKG_VERSION"), ")");
