//! The running system: puts configuration, calls, SIP, media, sounds and the dialects together, and turns the loop.
//!
//! One thread reads one clock, waits once, hands what happened to the machines and carries out what they say. Everything
//! that may block (files, name look-ups, recordings, logs, records) has a thread of its own and answers over a queue
//! that wakes the loop.
#![forbid(unsafe_code)]

mod callfiles;
mod cel;
mod certificates;
mod check;
mod contacts;
mod databases;
mod datagrams;
mod dialplan_load;
mod doors;
mod externals;
mod family;
mod hep;
mod iax;
mod iax_rows;
mod inquiries;
mod keys;
mod ledger;
mod links;
mod listen;
mod mail;
mod managers;
mod names;
mod queue_rows;
mod queues;
mod records;
mod registrations;
mod reload;
mod resolve;
mod rows;
mod secure;
mod start;
mod statics;
mod statsd;
mod subscriptions;
mod telemetry;
mod trace;
mod turn;
mod web;
mod wire;
mod writer;

pub use check::{Remark, check_site, nobody_served};
pub use start::{Asked, Options, StartError, secret};
pub use turn::{End, Engine};
