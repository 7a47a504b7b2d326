//! The media plane: a [`Worker`] owns streams and moves their audio, one tick after another.
//!
//! A tick is a function of time, of what [`PacketIo`] received and of the [`Input`]s that signalling sent. This room
//! knows no socket, no thread and no clock, so a thousand calls run on invented time in a test. On the packet path
//! it allocates nothing and locks nothing; what changes once per call is decided when a command arrives.
//!
//! Files: `worker` (tick, commands, faults), `stream` (what one stream owns), `routes` (who hears whom, and how),
//! `receive` and `send` (the packet path), `ear` (jitter buffer, decoder), `mouth` (encoder), `groups` (who is coded side
//! by side), `digits`, `phase` (what time goes into), `sealed` (SRTP), `relay` (bridges below the worker), `report` (RTCP),
//! `room` (more than two who hear each other), `show` (whom they see), `trace` (packets that somebody wants to see), `wheel`
//! (slots), `whisper` (beeps beside a talk), `shaper` (how loud it is).
#![forbid(unsafe_code)]

mod digits;
mod ear;
mod fax;
mod groups;
mod load;
mod monitor;
mod mouth;
mod packet_io;
mod phase;
mod play;
mod receive;
mod relay;
mod report;
mod room;
mod routes;
mod sealed;
mod send;
mod shaper;
mod show;
mod stream;
mod taps;
mod trace;
mod wheel;
mod whisper;
mod worker;

pub use codec::{Level, UnknownLevel};
pub use groups::{Lanes, WAIT_MS_MAX};
pub use load::Load;
pub use packet_io::{Arrival, BATCH_MAX, Batch, PACKET_BYTES_MAX, PacketIo};
pub use phase::Phase;
pub use relay::{RelayPlan, Relayed};
pub use stream::Moving;
pub use trace::{Carried, Noted, Traced, Tracing, Watch};
pub use worker::{Config, Input, STREAMS_MAX, Worker, tick_step};
