//! How people and programs steer the process: dialects over the same verbs and notices.
#![forbid(unsafe_code)]

pub mod cli_client;
pub mod console;
pub mod socket;
